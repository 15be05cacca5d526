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
from importlib.metadata import PackageNotFoundError, PackagePath, files
from pathlib import Path

from warpsim.ptx.qualifiers import default_version

RELEASES = ("13.0", "13.5")  # whose verdicts the tests state
CHOICE = "WARPSIM_PTXAS"  # environment variable with the path of another ptxas than that on the path
BATCH = 256  # instructions a run: enough to hide the start of the process, few enough to repeat cheaply
PROCESSES = 2

# The chip that code is generated for, where this release has no such chip any more. The rules are
# those of the text's `.target` all the same.
_COMPILED_FOR = {"sm_70": "sm_75"}

_ERROR = re.compile(r"^ptxas module\.ptx, line (\d+); (?:error|fatal)\s*: (.*)$", re.MULTILINE)
_ANY_ERROR = re.compile(r"^ptxas (.*?); (?:error|fatal)\s*: (.*)$", re.MULTILINE)


@cache
def missing() -> str:
    """Why there are no verdicts on this machine; empty where there are."""
    if program() is None:
        return "ptxas is not installed"
    known = any(f"release {one}," in _said("--version") for one in RELEASES)
    return "" if known else f"ptxas is not of release {' or '.join(RELEASES)}"


@cache
def program() -> str | None:
    """The path of the assembler: the one chosen, that on the path, or that of the wheel nvidia-cuda-nvcc."""
    bundled = [str(one.locate()) for one in _wheel_files() if one.name == "ptxas"]
    return os.environ.get(CHOICE) or shutil.which("ptxas") or next(iter(bundled), None)


def _wheel_files() -> Sequence[PackagePath]:
    try:
        return files("nvidia-cuda-nvcc") or ()
    except PackageNotFoundError:
        return ()


@cache
def _said(option: str) -> str:
    """What the assembler prints for an option."""
    return subprocess.run([str(program()), option], capture_output=True, text=True, check=False).stdout


def knows(target: str) -> bool:
    """Whether the assembler judges text for a target."""
    return re.search(rf"\b{_COMPILED_FOR.get(target, target)}\b", _said("--help")) is not None


def newest(target: str) -> str:
    """The PTX version that warpsim reads text for a target as, where it names none."""
    return "{}.{}".format(*default_version(target))


def verdicts(
    instructions: Iterable[str], *, target: str, declarations: str, version: str = ""
) -> list[str | None]:
    """For each instruction None where ptxas assembles it, or its errors about it, joined by "; ".

    Every instruction is one line, its ``;`` included, and is judged on its own. ``declarations`` are
    those of the registers; ``version`` is the PTX version, by default what warpsim takes for the target.
    """
    version = version or newest(target)
    header = f".version {version}\n.target {target}\n.address_size 64\n.entry k() {{ {declarations}\n"
    lines = list(instructions)
    assert not any("\n" in line for line in lines)
    batches = [lines[start : start + BATCH] for start in range(0, len(lines), BATCH)]
    with ThreadPoolExecutor(PROCESSES) as pool:
        judged = pool.map(lambda batch: _judge(header, batch, target), batches)
        return [verdict for batch in judged for verdict in batch]


def _judge(header: str, lines: Sequence[str], target: str) -> list[str | None]:
    """Verdicts on lines in one module: those with an error are taken out until the rest assembles.

    A syntax error hides whatever follows it, and the errors of code generation come only after all
    others. Where ptxas crashes, or does not name a line, the lines are judged half by half.
    """
    found: list[str | None] = [None] * len(lines)
    left = list(range(len(lines)))
    while left:
        errors, general = _run(header, [lines[i] for i in left], target)
        for line, message in errors.items():
            found[left[line]] = message
        if not errors and general:
            for i, verdict in zip(
                left, _judge_halves(header, [lines[i] for i in left], target, general), strict=True
            ):
                found[i] = verdict
        left = [i for line, i in enumerate(left) if line not in errors] if errors else []
    return found


def _judge_halves(header: str, lines: Sequence[str], target: str, general: str) -> list[str | None]:
    middle = len(lines) // 2
    if not middle:
        return [general]
    return [*_judge(header, lines[:middle], target), *_judge(header, lines[middle:], target)]


def _run(header: str, lines: Sequence[str], target: str) -> tuple[dict[int, str], str]:
    """Errors of each line, counted from 0, and the error of the whole (or empty).

    An error in the header, which is one of its version or target, is one of every line.
    """
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "module.ptx").write_text(header + "".join(f"{line}\n" for line in lines) + "}\n")
        command = [
            str(program()),
            f"-arch={_COMPILED_FOR.get(target, target)}",
            "module.ptx",
            "-o",
            "module.cubin",
        ]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
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
