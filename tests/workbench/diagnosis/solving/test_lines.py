"""Operands of loops solved from D alone: made-up problems, whose values must come back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warpsim.workbench.diagnosis.solving.step_tiles import least_squares

NOISE = 1e-6


def made(elements: int, seed: int = 0) -> tuple[Any, Any, Any, Any]:
    """Return the problem of an operand A ``(16, 16)`` that meets B ``(16, elements)``, and A."""
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((16, 16)), rng.standard_normal((16, elements))
    d = a @ b + NOISE * rng.uniform(-1, 1, (16, elements))
    return b, d, np.full(d.shape, 2 * NOISE), a


@pytest.mark.parametrize("seed", range(3))
def test_values_are_solved_where_elements_suffice(seed: int) -> None:
    *problem, values = made(24, seed)
    found = least_squares(*problem)
    assert found is not None
    assert (np.abs(found.values - values) <= found.bound).all()
    assert found.bound.max() < 1e-3


def test_lines_with_too_few_elements_or_rank_have_no_values() -> None:
    assert least_squares(*made(15)[:3]) is None
    weights, d, near, _ = made(24)
    weights[3] = weights[2]
    assert least_squares(weights, d, near) is None
