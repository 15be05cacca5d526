"""The benchmark: what it is compared with, and the families whose limits it knows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tools.bench.bare_loops import LOOPS
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
