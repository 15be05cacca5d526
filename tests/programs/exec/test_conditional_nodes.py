"""Conditional nodes of graphs, by a program that is linked of objects."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
Run = Callable[..., Any]
PRINTED = """0 10 0 0
0 15 0 0
0 0 20 0
1 10 0 0
0 0 0 30
1 0 0 31
0 3 0 0
3 0 0 0
1 1 1 1
"""


@pytest.fixture(scope="module")
def conditional_nodes(programs: Path) -> Path:
    path = programs.parent / "conditional_nodes"
    options = ["-cudart", "shared", "-rdc=true", "-arch=compute_80", "-Xfatbin", "--compress-mode=none"]
    command = ["nvcc", *options, "-o", str(path), str(HERE / "conditional_nodes.cu")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"nvcc cannot compile: {done.stderr[-400:]}")
    return path


@pytest.mark.parametrize("schedule", ["program", "latest"])
def test_what_conditions_decide(run: Run, conditional_nodes: Path, schedule: str) -> None:
    """Sums of a loop, both branches, all of a switch and none of them, and a loop in a branch."""
    done = run(options=("--schedule", schedule), command=(str(conditional_nodes),))
    assert (done.code, done.stdout) == (0, PRINTED)
    assert [kind for kind, _ in done.findings()] == ["call", "call"]
    assert "is not a condition of the graph that is free" in done.findings()[0][1]
    assert [each["launches"] for each in done.report["kernels"]] == [11, 6, 4]
