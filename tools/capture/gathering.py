"""Sums of products that are each below D's smallest number: whether they reach it shows what is cut off them.

A probe of its own, because such sums have to be made: drawn at random, D is zero whatever is cut. Scales,
where there are any, make the products as small as that. Knows formats; knows no rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import log2

import numpy as np

from warpsim.isa.formats import Format
from warpsim.isa.instruction import Instruction

from .operands import Array, values

Matrices = tuple[Array, Array, Array]
_MOST_BITS = 24  # of a fraction that sums keep, or somewhat more
_HALVINGS = 40  # of a scale
_OF_GROUPS = 10  # the power of two that products of e2m1 add up to in all chunks but one, and no larger one


def gathered(form: Instruction) -> Iterator[Matrices]:
    """Yield codes of A and B over stored columns and of C, a case at a time; none where no bits can be
    cut.
    """
    last = sum(element.minimum_exponent - element.fraction_bits for element in (form.a, form.b))
    if form.scale is None and last < _smallest(form) - _MOST_BITS:
        yield from (_gathering(form, count) for count in (4, 8, 16, 32) if count <= form.stored_k)


def gathered_by_scales(form: Instruction) -> tuple[Matrices, Array]:
    """Return the same with scales of ue8m0: codes, and exponents of scale_a * scale_b ``(cases, chunks)``."""
    if form.scale_chunks > 1:
        return _gathered_groups(form)
    top = [_highest(element) for element in (form.a, form.b)]
    parts, exponents = list[Matrices](), list[int]()
    for count, further in product((8, form.stored_k), (0, 8)):
        pairs = _pairs(count)
        parts.append(_halved(form, pairs, top, (np.arange(8) + further, 1 + 8 * np.arange(3))))
        exponents.append(_exponent(form, pairs) - sum(top))
    a, b, c = (np.concatenate(list(part)) for part in zip(*parts, strict=True))
    return (a, b, c), np.array(exponents)[:, None]


def _gathered_groups(form: Instruction) -> tuple[Matrices, Array]:
    """Return chunks of one scale add up to D's smallest number; against them is one of the last, scaled
    down.
    """
    pairs = [(6.0, 6.0)] * 28 + [(4.0, 4.0)]
    assert sum(x * y for x, y in pairs) == 1 << _OF_GROUPS
    a = np.zeros((_HALVINGS, form.shape.m, form.stored_k))
    b = np.zeros((_HALVINGS, form.stored_k, form.shape.n))
    a[:, :, : len(pairs)] = [x for x, _ in pairs]
    b[:, : len(pairs)] = np.array([y for _, y in pairs])[:, None]
    last = form.stored_k - form.stored_k // form.scale_chunks
    a[:, :, last], b[:, last] = -1.0, 1.0
    a[:, 1::2] = -a[:, 1::2]
    exponents = np.full((_HALVINGS, form.scale_chunks), _smallest(form) - _OF_GROUPS)
    exponents[:, -1] -= 1 + np.arange(_HALVINGS)
    c = np.zeros((_HALVINGS, form.shape.m, form.shape.n), form.c.code_dtype)
    return (values(form.a, a), values(form.b, b), c), exponents


def _highest(element: Format) -> int:
    return (element.largest_finite >> element.fraction_bits) - element.bias


def _smallest(form: Instruction) -> int:
    return form.d.minimum_exponent - form.d.fraction_bits


def _gathering(form: Instruction, count: int) -> Matrices:
    """So many products, from the first column on: all but the last add up to D's smallest number."""
    pairs = _pairs(count)
    exponent = _exponent(form, pairs)
    return _halved(
        form, pairs, [exponent // 2, exponent - exponent // 2], (np.arange(8), 1 + 8 * np.arange(4))
    )


def _pairs(count: int) -> Array:
    """Return factors of all but the last of so many products, in quarters."""
    return np.array(_quarters(count - 1))


def _exponent(form: Instruction, pairs: Array) -> int:
    """Return what products of those pairs have to be multiplied by: ``2**`` that."""
    return _smallest(form) - int(log2(pairs.prod(axis=1).sum() / 16))


def _halved(form: Instruction, pairs: Array, exponents: list[int], down: tuple[Array, Array]) -> Matrices:
    """Return those products, factors times ``2**exponents``, and one against them.

    It is halved by rows and columns, as often as ``down`` says in turn, until it is cut: then D is not zero.
    """
    rows, columns = np.arange(form.shape.m), np.arange(form.shape.n)
    in_a, in_b = exponents
    place = len(pairs)
    a, b = np.zeros((1, form.shape.m, form.stored_k)), np.zeros((1, form.stored_k, form.shape.n))
    a[0, :, :place] = np.ldexp(pairs[:, 0] / 4, in_a)
    b[0, :place] = np.ldexp(pairs[:, 1] / 4, in_b)[:, None]
    a[0, :, place] = np.ldexp(-1.0, in_a - np.resize(down[0], rows.shape))
    b[0, place] = np.ldexp(1.0, in_b - np.resize(down[1], columns.shape))
    b = np.where(columns % 8 < 4, b, -b)
    return values(form.a, a), values(form.b, b), np.zeros((1, form.shape.m, form.shape.n), form.c.code_dtype)


def _quarters(count: int) -> list[tuple[int, int]]:
    """Return pairs of quarters from 1 to 7/4 whose products add up to the largest power of two that they can.

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
