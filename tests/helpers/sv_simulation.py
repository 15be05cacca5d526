"""Benches under Icarus Verilog: the device is given a body, and the command is run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def simulate(folder: Path, command: str, *options: str) -> subprocess.CompletedProcess[str]:
    """What the bench prints."""
    if not shutil.which("iverilog"):
        pytest.skip("no Icarus Verilog")
    words = " ".join([command, *options])
    return subprocess.run(words, shell=True, cwd=folder, capture_output=True, text=True, check=False)


def filled_in(folder: Path, body: str) -> None:
    """Give the device under test another body, behind its import."""
    path = folder / "cases_dut.sv"
    head, found, _ = path.read_text().partition("import cases_layout::*;\n")
    assert found
    path.write_text(head + found + body)
