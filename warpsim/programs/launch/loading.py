"""Modules from where users have them: PTX text, ``.ptx`` files, and ``.cu`` files, which nvcc compiles.

Knows names of files and nvcc; does not know what a module means.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from functools import lru_cache
from os import PathLike
from pathlib import Path

from ...base.environment import in_default_environment
from ...base.errors import OperandError, PtxError, WarpsimError
from ...base.files.archives import check_text_file, read_text, write_lines
from ...base.folders import temporary_folder
from ...ptx.qualifiers import check_target
from .command import run_compiler
from .launching import LoadedModule, load_text

_DEFAULT_TARGET = "sm_80"  # of a .cu file whose target is not given
_LARGEST_SOURCE = 16 << 20  # bytes of a source file that messages quote
_SHOWN = 24  # lines of what nvcc prints
_MISSING_HEADER = re.compile(r"fatal error: (\S+): No such file")
_HEADER_FIX = 'fix: name the folder of {0}: load(..., nvcc=["-Ifolder"]), or --nvcc -Ifolder'
_SOURCES = (".cu", ".cuh", ".cpp", ".c")


@in_default_environment
def load(
    source: str | bytes | PathLike[str],
    target: str | None = None,
    nvcc: Sequence[str] = (),
    keep: str | PathLike[str] | None = None,
) -> LoadedModule:
    """Return the module of a file or of PTX text, which is what has a line feed or ``.version`` in it.

    ``target`` is the chip that it runs on, by default that of the text. ``bytes`` are PTX text, with or
    without the NUL that NVRTC ends it with. A ``.cu`` file is compiled for the target (sm_80 by default) by
    the nvcc on the path, with the options ``-lineinfo`` and ``nvcc``; ``keep`` is where its PTX is written.
    Raises PtxError, IllegalInstruction for an unknown target, OperandError for a file that cannot be read,
    or compiled. What is wrong with statements is said when a kernel that contains them is taken.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        text = bytes(source).decode("utf-8", errors="surrogateescape").rstrip("\0")
        return load_text(text, target=target, read=source_lines)
    if isinstance(source, str) and ("\n" in source or ".version" in source):
        return load_text(source.rstrip("\0"), target=target, read=source_lines)
    path = Path(source)
    if path.suffix in _SOURCES:
        text, name = compiled(path, target, nvcc), f"PTX of {path.name}"
        if keep is not None:
            name = str(keep)
            write_lines(Path(keep), text.splitlines())
        return load_text(text, name, target, source_lines)
    try:
        return load_text(read_text(path).rstrip("\0"), str(path), target, source_lines)
    except OSError as error:
        raise OperandError(f"{path}: {error.strerror or error}") from None


def source_lines(file: str) -> tuple[str, ...]:
    """Return the lines of a source file that PTX names; none where it is not a readable, regular file."""
    path = Path(file)
    try:
        state = path.stat()
        if not path.is_file() or state.st_size > _LARGEST_SOURCE:
            return ()
        return _lines(path, state.st_mtime_ns, state.st_size)
    except (OSError, WarpsimError):
        return ()


@lru_cache(maxsize=16)
def _lines(path: Path, changed: int, size: int) -> tuple[str, ...]:
    """Read the lines of a file, again when it has changed."""
    return tuple(read_text(path).split("\n"))


def compiled(path: Path, target: str | None = None, nvcc: Sequence[str] = ()) -> str:
    """Return the PTX text that nvcc makes of a CUDA source file. Raises OperandError, PtxError."""
    if target is not None:
        check_target(target)
    try:
        check_text_file(path)
    except OSError as error:
        raise OperandError(f"{path}: {error.strerror}") from None
    program = shutil.which("nvcc")
    if program is None:
        raise OperandError(f"{path}: a CUDA source needs nvcc, which is not on the path; compile it to .ptx")
    with temporary_folder() as folder:
        result = folder / "module.ptx"
        options = ["-ptx", "-lineinfo", f"-arch={target or _DEFAULT_TARGET}", *nvcc]
        command = [program, *options, "-o", str(result), str(path)]
        done = run_compiler(command, folder)
        if done.returncode or not result.is_file():
            raise PtxError(f"{path}: nvcc failed:\n{_said(done.stderr or done.stdout)}")
        return read_text(result)


def _said(text: str) -> str:
    """Return the first lines that nvcc printed, and what to do about a missing header."""
    lines = [line for line in text.splitlines() if line.strip()] or ["it printed nothing"]
    more = [f"... and {len(lines) - _SHOWN} more lines"] if len(lines) > _SHOWN else []
    missing = _MISSING_HEADER.search(text)
    fix = [_HEADER_FIX.format(missing[1])] if missing else []
    return "\n".join(lines[:_SHOWN] + more + fix)
