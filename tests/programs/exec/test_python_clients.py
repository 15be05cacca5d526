"""Packages of Python that use CUDA, under ``warpsim exec``; each is skipped where it is not installed.

``WARPSIM_CLIENT_PYTHON`` names another Python, whose packages are used.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PYTHON = os.environ.get("WARPSIM_CLIENT_PYTHON", sys.executable)
NEEDS = {  # program -> what it imports
    "numba": ("numba_cuda",),
    "core": ("cuda.core", "cuda.bindings.nvrtc"),
    "triton": ("triton", "cuda.bindings.driver"),
    "torch": ("torch", "triton"),
    "eager": ("torch", "triton"),
}
OPTIONS = {"eager": ("--torch-on-cpu",)}
_LOOK = """
import sys
from importlib.util import find_spec
for name in sys.argv[1:]:
    try:
        found = find_spec(name)
    except ModuleNotFoundError:
        found = None
    if found is None:
        sys.exit(f"needs {name}")
if "torch" in sys.argv:
    import torch
    if torch.version.cuda is None:
        sys.exit("needs PyTorch for CUDA")
"""


@cache
def _missing(program: str) -> str:
    """What the Python of clients lacks, or ""."""
    if not sys.platform.startswith("linux") or shutil.which("cc") is None:
        return "needs Linux and a C compiler"
    command = [PYTHON, "-c", _LOOK, *NEEDS[program]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr.strip().splitlines()[-1] if done.returncode else ""


@pytest.mark.parametrize("program", NEEDS)
def test_a_package_of_python(program: str) -> None:
    if missing := _missing(program):
        pytest.skip(missing)
    command = [
        sys.executable,
        "-m",
        "warpsim",
        "exec",
        "--chip",
        "sm_80",
        "--memory",
        "1",
        *OPTIONS.get(program, ()),
    ]
    done = subprocess.run(
        [*command, PYTHON, str(HERE / "python_clients.py"), program],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(HERE.parents[2])},
    )
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
    assert "1 launch of 1 kernel" in done.stderr
    assert "findings: 0 errors, 0 warnings" in done.stderr
