"""What NVIDIA's assembler says about instructions, many of them at a time.

Knows how to run ptxas and to tell which line an error is about. Knows nothing about what is legal.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from tests.helpers.ptxas_record import recorded
from warpsim.isa.architectures import ARCHITECTURES
from warpsim.ptx.qualifiers import PTX_VERSION, default_version

RELEASES = {"13.0": (9, 0), "13.5": (9, 5)}  # whose verdicts the tests state, and the newest PTX of each
OLDER = {"12.9": (8, 8)}  # judges matrix instructions as they do, and is the last to know sm_70
LATER = {("13.5", "sm_88"): (9, 0)}  # targets that a release takes from a later PTX on than those before it
CHOICE = "WARPSIM_PTXAS"  # environment variable with the path of another ptxas than that on the path
BATCH = 256  # instructions a run: enough to hide the start of the process, few enough to repeat cheaply
PROCESSES = 2
_PATIENCE = 60  # seconds for a run, of which nearly all take one

# The chip that code is generated for, where a release has no such chip any more. The rules are
# those of the text's `.target` all the same.
_COMPILED_FOR = {"sm_70": "sm_75"}

_ERROR = re.compile(r"^ptxas module\.ptx, line (\d+); (?:error|fatal)\s*: (.*)$", re.MULTILINE)
_ANY_ERROR = re.compile(r"^ptxas (.*?); (?:error|fatal)\s*: (.*)$", re.MULTILINE)


# --- which of them ----------------------------------------------------------------------------------


@cache
def missing() -> str:
    """Why there are no verdicts on this machine; empty where there are."""
    return _refused(RELEASES)


@cache
def missing_first() -> str:
    """The same for statements of which ptxas 13.5 says something else or nothing: 13.0 alone is compared."""
    return missing() or ("" if release() == "13.0" else f"ptxas {release()} judges these otherwise than 13.0")


@cache
def missing_for_matrices() -> str:
    """The same for matrix instructions alone, which an older release may judge, too."""
    return _refused(RELEASES | OLDER)


def _refused(releases: Iterable[str]) -> str:
    if program() is None:
        return "ptxas is not installed"
    return "" if release() in releases else f"ptxas is not of release {' or '.join(releases)}"


@cache
def program() -> str | None:
    """The path of the assembler: the one chosen, that on the path, or that of the wheel nvidia-cuda-nvcc."""
    return os.environ.get(CHOICE) or shutil.which("ptxas") or bundled("nvidia-cuda-nvcc", "ptxas")


@cache
def oldest() -> str | None:
    """The path of the assembler in the wheel nvidia-cuda-nvcc-cu12, which lies beside the other one."""
    return bundled("nvidia-cuda-nvcc-cu12", "ptxas")


@cache
def disassembler() -> str | None:
    """The path of nvdisasm: that on the path, or that of its wheel."""
    return shutil.which("nvdisasm") or bundled("nvidia-cuda-nvdisasm", "nvdisasm")


def bundled(wheel: str, name: str) -> str | None:
    """The path of a program in a wheel; None where the wheel is not installed."""
    try:
        found = (str(one.locate()) for one in files(wheel) or () if one.name == name)
        return next(found, None)
    except PackageNotFoundError:
        return None


@cache
def _said(path: str | None, option: str) -> str:
    """What an assembler prints for an option."""
    return subprocess.run([str(path), option], capture_output=True, text=True, check=False).stdout


def release(path: str | None = None) -> str:
    """The release of an assembler, such as 13.0."""
    named = re.search(r"release (\d+\.\d+),", _said(path or program(), "--version"))
    return named[1] if named else ""


def knows(target: str, path: str | None = None) -> bool:
    """Whether an assembler judges text for a target."""
    return _has(_COMPILED_FOR.get(target, target), path or program())


def _has(chip: str, path: str | None) -> bool:
    return f"'{chip}'" in _said(path, "--help")


def _compiled_for(target: str, path: str | None) -> str:
    return target if _has(target, path) else _COMPILED_FOR.get(target, target)


def newest(target: str, path: str | None = None) -> str:
    """The PTX version that warpsim reads text for a target as, or the last that the assembler knows."""
    return "{}.{}".format(*min(default_version(target), last(path)))


def first(target: str, path: str | None = None) -> tuple[int, int]:
    """The first PTX version in which an assembler takes a target."""
    return LATER.get((release(path), target), ARCHITECTURES[target].since)


def last(path: str | None = None) -> tuple[int, int]:
    """The last PTX version that an assembler knows."""
    return (RELEASES | OLDER).get(release(path), PTX_VERSION)


# --- verdicts ---------------------------------------------------------------------------------------


def verdicts(
    instructions: Iterable[str], *, target: str, declarations: str, version: str = "", path: str | None = None
) -> list[str | None]:
    """For each instruction None where ptxas assembles it, or its errors about it, joined by "; ".

    Every instruction is one line, its ``;`` included, and is judged on its own. ``declarations`` are
    those of the registers; ``version`` is the PTX version, by default ``newest``; ``path`` is the assembler,
    ``program()`` where none is named.
    """
    path = path or program()
    version = version or newest(target, path)
    header = f".version {version}\n.target {target}\n.address_size 64\n.entry k() {{ {declarations}\n"
    lines = list(instructions)
    assert not any("\n" in line for line in lines)
    command = [str(path), f"-arch={_compiled_for(target, path)}", "module.ptx", "-o", "module.cubin"]

    def ask() -> list[str | None]:
        batches = [lines[start : start + BATCH] for start in range(0, len(lines), BATCH)]
        with ThreadPoolExecutor(PROCESSES) as pool:
            judged = pool.map(lambda batch: _judge(header, batch, command), batches)
            return [verdict for batch in judged for verdict in batch]

    return recorded([release(path), command[1], header, *lines], ask)


def _judge(header: str, lines: Sequence[str], command: Sequence[str]) -> list[str | None]:
    """Verdicts on lines in one module: those with an error are taken out until the rest assembles.

    A syntax error hides whatever follows it, and the errors of code generation come only after all
    others. Where ptxas crashes, or does not name a line, the lines are judged half by half.
    """
    found: list[str | None] = [None] * len(lines)
    left = list(range(len(lines)))
    while left:
        errors, general = _run(header, [lines[i] for i in left], command)
        for line, message in errors.items():
            found[left[line]] = message
        if not errors and general:
            for i, verdict in zip(
                left, _judge_halves(header, [lines[i] for i in left], command, general), strict=True
            ):
                found[i] = verdict
        left = [i for line, i in enumerate(left) if line not in errors] if errors else []
    return found


def _judge_halves(
    header: str, lines: Sequence[str], command: Sequence[str], general: str
) -> list[str | None]:
    middle = len(lines) // 2
    if not middle:
        return [general]
    return [*_judge(header, lines[:middle], command), *_judge(header, lines[middle:], command)]


def _run(header: str, lines: Sequence[str], command: Sequence[str]) -> tuple[dict[int, str], str]:
    """Errors of each line, counted from 0, and the error of the whole (or empty).

    An error in the header, which is one of its version or target, is one of every line.
    """
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "module.ptx").write_text(header + "".join(f"{line}\n" for line in lines) + "}\n")
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, check=False, timeout=_PATIENCE
            )
        except subprocess.TimeoutExpired:  # of some combinations, which halves of them are not
            return {}, f"ptxas crashes (no end in {_PATIENCE} s)"
    if done.returncode == 0:
        return {}, ""
    errors: dict[int, list[str]] = {}
    for line, message in _ERROR.findall(done.stderr):
        errors.setdefault(int(line) - header.count("\n") - 1, []).append(message)
    joined = {line: "; ".join(dict.fromkeys(messages)) for line, messages in errors.items()}
    if in_header := [message for line, message in joined.items() if line < 0]:
        return dict.fromkeys(range(len(lines)), in_header[0]), ""
    return joined, _general(done.returncode, done.stderr)


def _general(status: int, output: str) -> str:
    if status < 0:
        return f"ptxas crashes (signal {-status})"
    elsewhere = _ANY_ERROR.search(output)
    return f"{elsewhere[1]}: {elsewhere[2]}" if elsewhere else output.strip()
