"""Host programs, compiled once: nvcc and a C compiler are needed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from warpsim.programs.exec.libraries import libraries

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


@dataclass(frozen=True)
class Done:
    """A run of ``warpsim exec``: its exit code, what it printed, and the report."""

    code: int
    stdout: str
    stderr: str
    report: dict[str, Any]

    def findings(self, severity: str = "error") -> list[tuple[str, str]]:
        found = [each for each in self.report["findings"] if each["severity"] == severity]
        return [(each["kind"], each["message"]) for each in found]


Run = Callable[..., Done]


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The executable of programs.cu, with a shared runtime and plain PTX."""
    if not sys.platform.startswith("linux") or shutil.which("cc") is None:
        pytest.skip("needs Linux and a C compiler")
    if shutil.which("nvcc") is None:
        pytest.skip("needs nvcc")
    path = tmp_path_factory.mktemp("programs") / "programs"
    compiled(path, "-lineinfo", "-arch=compute_80", "-Xfatbin", "--compress-mode=none")
    return path


def compiled(path: Path, *options: str) -> None:
    """Compile programs.cu with a shared runtime."""
    command = ["nvcc", "-cudart", "shared", *options, "-o", str(path), str(HERE / "programs.cu")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"nvcc cannot compile: {done.stderr[-400:]}")


@pytest.fixture(scope="session")
def driver_modes(programs: Path) -> Path:
    """The executable of driver_modes.c, by a C compiler and the headers of nvcc, for the libraries here."""
    return compiled_c(programs.parent / "driver_modes")


@pytest.fixture(scope="session")
def runtime_modes(programs: Path) -> Path:
    """The executable of runtime_modes.c."""
    return compiled_c(programs.parent / "runtime_modes")


@pytest.fixture(scope="session")
def cuda_headers() -> Path:
    """The folder of cuda.h."""
    return headers()


def headers() -> Path:
    """Return the folder of cuda.h of the nvcc here; skip without it."""
    if shutil.which("nvcc") is None:
        pytest.skip("needs nvcc")
    compiler = Path(os.path.realpath(str(shutil.which("nvcc"))))
    for folder in (*compiler.parents, Path("/usr/local/cuda")):
        if (folder / "include/cuda.h").is_file():
            return folder / "include"
    pytest.skip("needs cuda.h")


def compiled_c(path: Path) -> Path:
    """Compile the source of that name here with the libraries here."""
    shared = [str(libraries() / name) for name in ("libcuda.so.1", "libcudart.so.13")]
    command = ["cc", "-w", "-o", str(path), str(HERE / f"{path.name}.c"), f"-I{headers()}", *shared]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cc cannot compile: {done.stderr[-400:]}")
    return path


@pytest.fixture(scope="session")
def run(programs: Path) -> Run:
    """Run modes of the programs, or another command, under ``warpsim exec``."""

    def runs(*modes: str, options: tuple[str, ...] = (), command: tuple[str, ...] = ()) -> Done:
        report = programs.parent / f"{os.getpid()}-{len(list(programs.parent.iterdir()))}.json"
        command = command or (str(programs), *modes)
        all_options = ["--chip", "sm_80", "--report", str(report), *options]
        done = subprocess.run(
            [sys.executable, "-m", "warpsim", "exec", *all_options, *command],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        found = json.loads(report.read_text()) if report.exists() else {}
        return Done(done.returncode, done.stdout, done.stderr, found)

    return runs
