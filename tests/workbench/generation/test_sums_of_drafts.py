"""Sums that vectors are made from: in one order, so that a seed gives the same vectors on every CPU."""

from __future__ import annotations

import numpy as np

from warpsim.workbench.generation.cases.drafts import _products


def test_products_are_added_one_after_the_other() -> None:
    """BLAS adds them in an order that depends on the CPU, and fuses some."""
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(3, 4, 40)), rng.normal(size=(3, 40, 5))
    found = _products(a, b)
    assert found.shape == (3, 4, 5)
    for case, row, column in np.ndindex(found.shape):
        total = 0.0
        for x, y in zip(a[case, row].tolist(), b[case, :, column].tolist(), strict=True):
            total += x * y
        assert found[case, row, column] == total
