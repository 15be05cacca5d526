"""Sums of products that are each below D's smallest number: whether they reach it shows what is cut off them.

A probe of its own, because such sums have to be made: drawn at random, D is zero whatever is cut. Knows
formats; knows no rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import log2

import numpy as np

from warpsim.isa.instruction import Instruction

from .operands import Array, values

_MOST_BITS = 24  # of a fraction that sums keep, or somewhat more


def gathered(form: Instruction) -> Iterator[tuple[Array, Array, Array]]:
    """Codes of A and B over stored columns and of C, a case at a time; none where no bits can be cut."""
    last = sum(element.minimum_exponent - element.fraction_bits for element in (form.a, form.b))
    if form.scale is None and last < _smallest(form) - _MOST_BITS:
        yield from (_gathering(form, count) for count in (4, 8, 16, 32) if count <= form.stored_k)


def _smallest(form: Instruction) -> int:
    return form.d.minimum_exponent - form.d.fraction_bits


def _gathering(form: Instruction, count: int) -> tuple[Array, Array, Array]:
    """So many products, from the first column on: all but the last add up to D's smallest number.

    The last one is against them, and halved by rows and columns until it is cut off: then D is not zero.
    """
    pairs = np.array(_quarters(count - 1))
    exponent = _smallest(form) - int(log2(pairs.prod(axis=1).sum() / 16))
    rows, columns = np.arange(form.shape.m), np.arange(form.shape.n)
    in_a, in_b = exponent // 2, exponent - exponent // 2
    a, b = np.zeros((1, form.shape.m, form.stored_k)), np.zeros((1, form.stored_k, form.shape.n))
    a[0, :, : count - 1] = np.ldexp(pairs[:, 0] / 4, in_a)
    b[0, : count - 1] = np.ldexp(pairs[:, 1] / 4, in_b)[:, None]
    a[0, :, count - 1] = np.ldexp(-1.0, in_a - rows % 8)
    b[0, count - 1] = np.ldexp(1.0, in_b - 1 - 8 * (columns % 4))
    b = np.where(columns % 8 < 4, b, -b)
    return values(form.a, a), values(form.b, b), np.zeros((1, form.shape.m, form.shape.n), form.c.code_dtype)


def _quarters(count: int) -> list[tuple[int, int]]:
    """Pairs of quarters from 1 to 7/4 whose products add up to the largest power of two that they can.

    The largest product first that leaves the others at least 1 each, which comes out even for 3, 7, 15, 31.
    """
    products = {x * y: (x, y) for x, y in product(range(4, 8), repeat=2)}
    rest = 1 << int(log2(max(products) * count))
    found = list[tuple[int, int]]()
    for others in reversed(range(count)):
        one = max(p for p in products if rest - p == 0 or (others and rest - p >= min(products) * others))
        found.append(products[one])
        rest -= one
    assert rest == 0
    return found
