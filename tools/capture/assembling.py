"""What ptxas says about kernels, many of them at a time. Needs ptxas, which a GPU's driver does not.

Knows how to run it on modules of several kernels; knows nothing of what a kernel does.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.helpers import ptxas

from .kernels import ENTRY, Kernel

_TOGETHER = 48  # kernels of a module
_COMPILED_FOR = {"sm_70": "sm_75"}  # the rules are those of .target; releases from 13.0 on have no sm_70
_HEADER_LINES = 5  # a comment, .version, .target, .address_size, nothing


def missing() -> str:
    """Return why there are no verdicts on this computer; empty where there are."""
    return "" if ptxas.program() else "ptxas is not installed"


def refusals(kernels: Sequence[Kernel], target: str) -> Iterator[tuple[Kernel, str]]:
    """Yield the kernels that ptxas does not assemble for a target, and its errors."""
    versions: dict[str, list[Kernel]] = {}
    for kernel in kernels:
        versions.setdefault(kernel.ptx.splitlines()[1], []).append(kernel)
    for group in versions.values():
        for start in range(0, len(group), _TOGETHER):
            yield from _refused(group[start : start + _TOGETHER], target)


def _refused(kernels: Sequence[Kernel], target: str) -> Iterator[tuple[Kernel, str]]:
    errors = _assembled(_module(kernels), target)
    if errors and len(kernels) == 1:
        yield kernels[0], errors
    elif errors:
        middle = len(kernels) // 2
        yield from _refused(kernels[:middle], target)
        yield from _refused(kernels[middle:], target)


def _module(kernels: Sequence[Kernel]) -> str:
    """One module of all kernels, the entries renamed; they share the declaration of the tiles."""
    header = kernels[0].ptx.splitlines()[:_HEADER_LINES]
    tiles, entries = "", []
    for number, kernel in enumerate(kernels):
        text = "\n".join(kernel.ptx.splitlines()[_HEADER_LINES:])
        if text.startswith(".extern"):
            tiles, _, text = text.partition("\n")
        entries.append(text.replace(f".entry {ENTRY}(", f".entry {ENTRY}{number}("))
    return "\n".join([*header, tiles, *entries, ""])


def _assembled(ptx: str, target: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "module.ptx").write_text(ptx, encoding="utf-8")
        chip = f"-arch={_COMPILED_FOR.get(target, target)}"
        command = [str(ptxas.program()), chip, "module.ptx", "-o", "module.cubin"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else (done.stderr.strip() or f"ptxas exits with {done.returncode}")
