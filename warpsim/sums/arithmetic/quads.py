"""Sums of few exactly summed scaled products, as a public model of B200 has nvfp4; NumPy in integers.

Nothing is rounded before the end: a sum of 16 products of e2m1 with two scales of ue4m3 has at most 20 bits,
and no term has more than 45 bits above the cut. Knows planes; does not know where operands lie.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...base.errors import present
from ...isa.products import Codes, Operands
from ...isa.rules import ScaledQuads
from .planes import Planes, canonical, planes

Integers = npt.NDArray[np.int64]
_NOTHING = -(1 << 20)  # below every exponent


class _Sum(NamedTuple):
    """Exact sums of some neighbouring products of every element of D, ``(batch, m, n)`` each.

    ``value * 2**scale`` with the scales, whose exponents are ``pair``; ``top`` is the largest exponent of a
    product, both far below others where all products are 0.
    """

    value: Integers
    scale: Integers
    pair: Integers
    top: Integers


def scaled_quads(operands: Operands, rule: ScaledQuads) -> Codes:
    """Return codes of D ``(batch, m, n)``."""
    stored = operands.a.shape[2]
    sums = [_group(operands, first, rule.group) for first in range(0, stored, rule.group)]
    c = planes(operands.c, operands.product.c)
    pair, top = (np.max([getattr(part, name) for part in sums], axis=0) for name in ("pair", "top"))
    of_c = np.where(c.significand != 0, c.exponent, _NOTHING).astype(np.int64)
    above = (c.significand != 0) & (of_c >= top)
    inside = np.maximum(np.maximum(top, of_c) - rule.product_bits, pair - rule.fraction_bits)
    cut = np.where(above, of_c - rule.fraction_bits, inside)
    together = rule.outranked // rule.group
    blocks = [_merge_neighbours(sums[first : first + together]) for first in range(0, len(sums), together)]
    small, large = (sum(_units(part.value, part.scale - cut) for part in terms) for terms in (sums, blocks))
    power = c.exponent.astype(np.int64) - c.fraction_bits
    total = np.where(above, large, small) + _units(c.significand, power - cut)
    return canonical(_special(operands, c, _toward_zero(total, cut)), operands.product.d)


def _merge_neighbours(sums: list[_Sum]) -> _Sum:
    """Return the sum of neighbours that share their scales."""
    return sums[0]._replace(value=sum((part.value for part in sums[1:]), sums[0].value))


def _group(operands: Operands, first: int, count: int) -> _Sum:
    """Return the sums of so many stored columns of A from the first on."""
    product = operands.product
    a, b = planes(operands.a, product.a), planes(operands.b, product.b)
    columns = operands.columns
    if columns is None:
        columns = np.broadcast_to(np.arange(operands.a.shape[2]), operands.a.shape)
    case = np.arange(len(columns))[:, None]
    unit = a.fraction_bits + b.fraction_bits
    lowest = product.a.minimum_exponent + product.b.minimum_exponent
    value, top = np.zeros(operands.c.shape, np.int64), np.full(operands.c.shape, _NOTHING, np.int64)
    for place in range(first, first + count):
        row, exponent = (getattr(a, name)[:, :, place, None] for name in ("significand", "exponent"))
        other, own = (getattr(b, name)[case, columns[:, :, place]] for name in ("significand", "exponent"))
        term, power = row * other, exponent.astype(np.int64) + own
        value += term << (power - lowest)
        top = np.where(term != 0, np.maximum(top, power), top)
    scales = _scales(operands, columns[:, :, first] // (product.shape.k // product.scale_chunks))
    some = (top > _NOTHING) & (scales.significand != 0)
    pair = np.where(some, scales.exponent, _NOTHING)
    return _Sum(
        value=value * scales.significand,
        scale=scales.exponent.astype(np.int64) - scales.fraction_bits - unit + lowest,
        pair=pair,
        top=np.where(some, top + scales.exponent, _NOTHING),
    )


def _scales(operands: Operands, chunk: npt.NDArray[np.intp]) -> Planes:
    """Return products of the scales of A and B ``(batch, m, n)``, of the chunk of each row."""
    element = present(operands.product.scale, "scale")
    a, b = (planes(present(codes, "scale"), element) for codes in (operands.scale_a, operands.scale_b))
    case, row = np.arange(len(chunk))[:, None], np.arange(chunk.shape[1])
    of_a = {name: getattr(a, name)[case, row, chunk][..., None] for name in ("significand", "exponent")}
    of_b = {name: getattr(b, name)[case, chunk] for name in ("significand", "exponent")}
    return Planes(
        significand=of_a["significand"] * of_b["significand"],
        exponent=of_a["exponent"].astype(np.int64) + of_b["exponent"],
        special=np.zeros(1, np.int8),
        fraction_bits=a.fraction_bits + b.fraction_bits,
    )


def _units(value: Integers, shift: Integers) -> Integers:
    """Return values times ``2**shift``, cut toward zero."""
    left = np.abs(value) << np.clip(shift, 0, 48)
    found: Integers = np.sign(value) * (left >> np.clip(-shift, 0, 63))
    return found


def _toward_zero(total: Integers, cut: Integers) -> npt.NDArray[np.float32]:
    """Return ``total * 2**cut`` as f32, truncated; totals are below 2**53."""
    value = np.ldexp(total.astype(np.float64), np.clip(cut, -1000, 1000).astype(np.int32))
    nearest = value.astype(np.float32)
    over = np.abs(nearest.astype(np.float64)) > np.abs(value)
    return np.where(over, np.nextafter(nearest, np.float32(0)), nearest)


def _special(operands: Operands, c: Planes, finite: npt.NDArray[np.float32]) -> npt.NDArray[Any]:
    """Return the results with Inf and NaN: those of C, and NaN where any scale of a row or column is NaN."""
    element = present(operands.product.scale, "scale")
    a, b = (planes(present(codes, "scale"), element) for codes in (operands.scale_a, operands.scale_b))
    nan = (a.special != 0).any(2)[:, :, None] | (b.special != 0).any(1)[:, None, :]
    of_c = operands.c.view(np.float32)
    result = np.where(c.special != 0, of_c, finite)
    return np.where(nan, np.float32(np.nan), result)
