"""Planes of distances, and sums of factors whose exponents lie further apart than these bytes hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers import nasty
from tests.helpers.families import usual
from tests.sums.arithmetic.test_panels import BLOCKS, FORMS, SIDE, Product, compiled, one_by_one, whole
from warpsim.isa.instruction import Instruction
from warpsim.sums.arithmetic import plans
from warpsim.sums.arithmetic.kernels import distances, variants
from warpsim.sums.execution.pipeline import rule_for

Array = Any


@compiled
@pytest.mark.parametrize("products", [4, 8, 16])
def test_distances_in_bytes_lead_to_the_largest_exponent(products: int) -> None:
    """To 0 below the bias, and to 255 where a bound is above bytes or a factor is Inf or NaN."""
    rng, size = np.random.default_rng(products), 64
    numbers = rng.integers(-126, 128, (2, size, products)) + rng.integers(-120, 121, (2, size, 1))
    numbers = np.clip(numbers, -126, 127)
    numbers[rng.random(numbers.shape) < 0.3] = variants.ZERO
    numbers[rng.random(numbers.shape) < 0.01] = variants.SPECIAL
    numbers[:, :2] = variants.ZERO
    a, b = numbers.astype(np.int16)
    far_a, far_b = np.empty(a.shape, np.uint8), np.empty(b.T.shape, np.uint8)
    bounds_a, bounds_b = np.empty(size, np.uint8), np.empty(size, np.uint8)
    distances.pack_distances_a(a.ravel(), bounds_a, far_a.reshape(-1), products)
    distances.pack_distances_b(b.T.ravel(), bounds_b, far_b.reshape(-1), (products, size, size))
    bound = np.minimum(bounds_a[:, None].astype(int) + bounds_b, 255)
    sums = np.minimum(far_a[..., None].astype(int) + far_b, 255)
    found = np.where(bound == 255, 255, np.maximum(bound - sums.min(axis=1), 0))
    exact = (numbers[0][..., None] + numbers[1].T).max(axis=1) + 127
    unbounded = np.maximum(numbers[0].max(axis=1)[:, None], 0) + numbers[1].max(axis=1) >= 128
    special = (numbers == variants.SPECIAL).any(axis=2)
    unbounded |= special[0][:, None] | special[1]
    np.testing.assert_array_equal(found, np.where(unbounded, 255, np.maximum(exact, 0)))
    assert 0.1 < unbounded.mean() < 0.9


RELATIVE = [form for form in FORMS if plans.plan_of(form.product, rule_for(form)).variant.relative]


def distant(form: Instruction, side: int, rng: np.random.Generator) -> Product:
    """Of each product, a factor is zero, or both are tiny beside others: further than bytes hold.

    Rows and columns have exponents of their own, and C any exponent, or it is zero.
    """
    k, stored = BLOCKS * form.shape.k, BLOCKS * form.stored_k
    large, tiny = rng.integers(-40, 128, (2, side, 1)), rng.integers(-140, 30, (2, side, 1))
    sort = rng.choice(3, stored, p=[0.4, 0.4, 0.2])
    parts = []
    for number, element in enumerate((form.a, form.b)):
        exponent = np.where(sort == 2, tiny[number], large[number])
        codes = nasty.encode(element, exponent, nasty.fractions(element, exponent.shape, rng), 0)
        parts.append(np.where(sort == 1 - number, element.code_dtype.type(0), codes))
    c = nasty.encode(form.c, rng.integers(-150, 128, (side, side)), rng.integers(0, 1 << 23, (side, side)))
    c[:, ::3] = 0
    more: dict[str, Array] = {}
    b = parts[1].T
    if form.sparse:
        unit = nasty.indices(form, (1,), rng).repeat(side, axis=0)
        units = np.concatenate([unit] * BLOCKS, 1)
        where = np.concatenate([nasty.columns(form, unit) + i * form.shape.k for i in range(BLOCKS)], 1)
        b = np.full((k, side), form.b.code_dtype.type(0))
        b[where[0]] = parts[1].T
        more = {"indices": units, "columns": where}
    return Product(a=parts[0], b=b, c=c.astype(form.c.code_dtype), **more)


@compiled
@pytest.mark.parametrize("form", RELATIVE, ids=nasty.name)
def test_factors_further_apart_than_bytes_hold(form: Instruction) -> None:
    for seed in range(usual(3, 8)):
        problem = distant(form, SIDE, np.random.default_rng(seed))
        np.testing.assert_array_equal(whole(form, problem), one_by_one(form, problem))
