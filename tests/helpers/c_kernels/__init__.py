"""CUDA C kernels, compiled by nvcc for the machine and by g++ for a host that runs them thread by thread.

A line ``// run: name grid block [shared bytes] [float]`` stands in front of each kernel. Knows compilers and
those lines; what threads do on the host is on_host.h's business.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from warpsim.programs.launch.launching import LoadedModule, load_text

FOLDER = Path(__file__).parent
FILES = tuple(sorted(FOLDER.glob("*.cu")))
WORDS_IN, WORDS_OUT, COUNT = 8192, 16384, 1000
Words = npt.NDArray[np.uint32]
_RUN = re.compile(r"^// run(?: from sm_(\d+))?: (\w+) ([\d,]+) ([\d,]+)(?: (\d+))?( float)?$", re.MULTILINE)


@dataclass(frozen=True)
class Run:
    """A kernel, and how it is launched."""

    file: Path
    name: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int
    floats: bool
    chip: int

    def given(self) -> Words:
        """What the kernel reads: any bits, or normal floats."""
        random = np.random.default_rng(7)
        if self.floats:
            return random.normal(size=WORDS_IN).astype(np.float32).view(np.uint32)
        return random.integers(0, 2**32, WORDS_IN, dtype=np.uint32)


def _three(text: str) -> tuple[int, ...]:
    return tuple([*map(int, text.split(",")), 1, 1][:3])


def runs() -> list[Run]:
    """Every kernel of every file."""
    return [
        Run(file, name, _three(grid), _three(block), int(shared or 0), bool(floats), int(chip or 0))
        for file in FILES
        for chip, name, grid, block, shared, floats in _RUN.findall(file.read_text())
    ]


def missing() -> str:
    """Why nothing can be compiled here; empty where it can."""
    lacking = [name for name in ("nvcc", "g++") if shutil.which(name) is None]
    return " and ".join(lacking) and f"{' and '.join(lacking)} is not installed"


@cache
def _include() -> str:
    listed = subprocess.run(
        ["nvcc", "--dryrun", "-E", str(FILES[0])], capture_output=True, text=True, check=True
    )
    return re.findall(r'"-I([^"]*include)"', listed.stderr)[0]


@cache
def _built(file: Path) -> ctypes.CDLL:
    exact = ["-fwrapv", "-fno-strict-aliasing", "-ffp-contract=off"]
    options = ["-x", "c++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC", *exact]
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "kernels.so"
        subprocess.run(["g++", *options, f"-I{_include()}", str(file), "-o", str(built)], check=True)
        return ctypes.CDLL(str(built))


@cache
def _loaded(file: Path, target: str, option: str) -> LoadedModule:
    options = ["-ptx", f"-arch={target}", "-std=c++17", "-fmad=false", "-w", option]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernels.ptx"
        subprocess.run(["nvcc", *options, str(file), "-o", str(path)], check=True)
        return load_text(path.read_text(), file.with_suffix(".ptx").name)


def on_host(run: Run) -> Words:
    """What g++'s code leaves."""
    left, given = np.zeros(WORDS_OUT, np.uint32), run.given()
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (given, left)]
    getattr(_built(run.file), run.name)((ctypes.c_uint * 6)(*run.grid, *run.block), *pointers, COUNT)
    return left


def on_machine(run: Run, target: str, option: str, **options: Any) -> Words:
    """What nvcc's code leaves, in a launch."""
    left = np.zeros(WORDS_OUT, np.uint32)
    kernel = _loaded(run.file, target, option)[run.name]
    kernel(run.grid, run.block, [run.given(), left, COUNT], shared_bytes=run.shared_bytes, **options)
    return left
