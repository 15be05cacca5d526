"""Benches: files beside a vector set with which a simulator of hardware runs its cases.

Knows the list of benches, the format that each reads, and the files of each. Does not know the languages: the
modules beside this file do.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ....base.errors import OperandError
from ....base.files.archives import write_lines
from ....base.files.replacing import together
from ..formats import format_of
from ..formats.readmemh import READMEMH, identifier
from ..sets import VectorSet
from .sv_bench import Names, bench_lines, dut_lines
from .sv_layout import package_lines

_OPENED = re.compile(r'[^"\\%]+', re.ASCII)  # names of files that $readmemh opens, where they are printable


@dataclass(frozen=True, kw_only=True)
class Part:
    """A file of a bench; an existing file that the user edits (``edited``) is never replaced."""

    path: Path
    lines: Iterator[str]
    edited: bool = False


@dataclass(frozen=True, kw_only=True)
class Written:
    """A written bench: the files made, the files left as they were, the command that runs it."""

    made: tuple[Path, ...]
    kept: tuple[Path, ...]
    command: str


def _sv(path: Path, vectors: VectorSet) -> tuple[str, tuple[Part, ...]]:
    """Return the command that runs a bench of SystemVerilog, and its parts."""
    parameters = path.with_suffix(".svh")
    layout, dut, bench = (path.with_name(f"{path.stem}_{part}.sv") for part in ("layout", "dut", "bench"))
    module, image = identifier(path.stem), shlex.quote(f"{path.stem}.vvp")
    sources = shlex.join(parameter.name for parameter in (parameters, layout, dut, bench))
    names = Names(
        vectors_file=path.name,
        command=f"iverilog -g2012 -s {module}_bench -o {image} {sources} && vvp {image}",
        vectors=f"{module}_vectors",
        layout=f"{module}_layout",
        dut=f"{module}_dut",
        bench=f"{module}_bench",
    )
    parts = (
        Part(path=layout, lines=package_lines(names.layout, vectors)),
        Part(path=dut, lines=dut_lines(names, vectors), edited=True),
        Part(path=bench, lines=bench_lines(names, vectors)),
    )
    return names.command, parts


BENCHES: Mapping[str, Callable[[Path, VectorSet], tuple[str, tuple[Part, ...]]]] = {"sv": _sv}


def check_bench(path: Path, format: str | None = None) -> None:
    """Raise OperandError where no bench can go beside a file of vectors, or read it."""
    if format_of(path, format) is not READMEMH:
        suffixes = ", ".join(READMEMH.suffixes)
        raise OperandError(f"a bench reads a file of format {READMEMH.name} ({suffixes}), not {path.name!r}")
    if not _OPENED.fullmatch(path.name) or not path.name.isascii() or not path.name.isprintable():
        raise OperandError(
            f"$readmemh opens no {path.name!r}: name it in ASCII without quotes, backslashes, percent signs"
        )


def write_bench(path: Path, vectors: VectorSet, bench: str = "sv", format: str | None = None) -> Written:
    """Write a set and the bench that runs it, all files or none; an existing device file is kept.

    Raises OperandError as check_bench does, OSError.
    """
    check_bench(path, format)
    command, parts = BENCHES[bench](path, vectors)
    kept = tuple(part.path for part in parts if part.edited and part.path.is_file())
    made = [part for part in parts if part.path not in kept]
    with together():
        READMEMH.write(path, vectors)
        for part in made:
            write_lines(part.path, part.lines)
    return Written(made=tuple(part.path for part in made), kept=kept, command=command)
