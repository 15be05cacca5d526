"""Lanes that part and meet again: random programs against a thread at a time in Python integers."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from tests.helpers.random_programs import VARIABLES, as_ptx, random_program, run_thread
from warpsim.programs.launch.launching import load_text


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed: int) -> None:
    random = Random(seed)
    program = random_program(random)
    block, grid = random.choice([1, 7, 32, 33, 96]), random.choice([1, 2, 5])
    values = np.random.default_rng(seed).integers(0, 1 << 32, (grid * block, VARIABLES), np.uint32)
    values[: len(values) // 2] &= 7  # small ones, so that threads also agree
    expected = [run_thread(program, row) for row in values.tolist()]
    module = load_text(as_ptx(program))
    module["run"](grid, block, [values])
    assert values.tolist() == expected
