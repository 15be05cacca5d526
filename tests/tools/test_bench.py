"""The benchmark: what it is compared with, and the families whose limits it knows."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.bench.bare_loops import LOOPS
from tools.bench.growth import CASES
from tools.bench.limits import FAMILIES
from tools.bench.products import product_cases

ROOT = Path(__file__).resolve().parents[2]


def test_every_family_is_a_case_and_its_loops_exist() -> None:
    assert FAMILIES.keys() <= {case.name for case in product_cases(64)}
    assert {loop for _, loops in FAMILIES.values() for loop in loops} == LOOPS.keys()


def test_blas_has_the_kernels_of_this_processor_whatever_the_environment_asks_for() -> None:
    command = [sys.executable, "-m", "tools.bench", "--only", "no such case"]
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
    printed = {
        subprocess.run(
            command, cwd=ROOT, env={**environment, **more}, capture_output=True, text=True, check=True
        ).stdout
        for more in ({}, {"OPENBLAS_CORETYPE": "Prescott"})
    }
    assert len(printed) == 1
    assert "BLAS core" in printed.pop()


@pytest.mark.parametrize("name", [case.name for case in CASES if case.launch is not None])
def test_programs_that_grow_run_at_any_size(name: str) -> None:
    case = next(case for case in CASES if case.name == name)
    for size in (0, 1, 600):
        case.run(size)


@pytest.mark.skipif(
    shutil.which("cc") is None or not sys.platform.startswith("linux"), reason="needs Linux and cc"
)
def test_growth_has_a_figure_for_each_size() -> None:
    command = [sys.executable, "-m", "tools.bench.growth", "--only", "synchronise", "--most", "300"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    (row,) = done.stdout.splitlines()[2:]
    assert row.startswith("| one stream, memset, synchronise | 250: ")
    assert len(row.split("|")) == 7
