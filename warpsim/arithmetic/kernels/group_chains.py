"""Sums of exactly summed groups, each with its own scale, all columns of D at a time.

The sums of ``groups``, here in int16 and float64, for any number of instructions along k. Nothing is rounded
before the end of a step: a group's sum fits int16, its product with two significands of scales and every sum
of terms is below 2**53 (``fits`` decides for which rules), and powers of two are normal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._jit import Array, Planes, kernel
from .variants import CANONICAL_NAN

_LOWEST = -1 << 20  # below every exponent
_F32_LOWEST = -126
_MAGIC = 1.5 * 2.0**52  # to nearest even, for magnitudes below 2**51
_MOST_BITS = 53

Rule = tuple[int, int, int, int, int, int, int]


def fits(group: int, largest: int, scale_bits: int, fraction_bits: int, terms: int) -> bool:
    """Return whether all sums are exact; ``largest``: of a product, in its units; ``scale_bits``: of two
    scales.

    A term is below its group's sum over the unit of a product times 4, two significands of scales being
    below 2 each, in units of 2**-fraction_bits; there are ``terms`` of them, and C.
    """
    total = group * largest * 4 << fraction_bits
    return group * largest < 1 << 15 and scale_bits < 16 and total * terms < 1 << _MOST_BITS


@kernel
def group_chain(
    operands: tuple[Array, Array, Array],
    scales: tuple[Planes, Planes],
    rule: Rule,
    nearest: bool,
    result: Array,
) -> None:
    """Continue ``result (batch, m, n)`` float32 by steps of ``stored`` columns of a, each rounded once.

    ``operands = (a, b, columns)``: ``a (batch, m, s)`` and ``b (batch, k, n)`` are int16 in units of their
    formats' smallest numbers, ``columns`` as in groups. ``scales``: of a ``(significand, exponent, special)``
    of shape (batch, m, chunks) and of b (batch, chunks, n). ``rule = (stored, group,
    columns that share a scale, fraction bits, exponent floor, fraction bits of a product and two scales,
    precision)``.
    """
    a, b, columns = operands
    scale_a, scale_b = scales
    stored, group, chunk, fraction_bits, floor, unit_bits, precision = rule
    batches, m, n = result.shape
    groups = stored // group
    sums, present = np.empty((groups, n), np.int16), np.empty((groups, n), np.int16)
    top, total, invalid = np.empty(n, np.int32), np.empty(n, np.int64), np.empty(n, np.int8)
    for batch in range(batches):
        for i in range(m):
            row = result[batch, i]
            for first in range(0, columns.shape[2], stored):
                _start(row, floor, top, invalid)
                for g in range(groups):
                    start = first + g * group
                    span = (start, start + group)
                    _add_group(a[batch, i], b[batch], columns[batch, i], span, sums[g], present[g])
                    q = columns[batch, i, start] // chunk
                    of_row = scale_a[0][batch, i, q], scale_a[1][batch, i, q], scale_a[2][batch, i, q]
                    _raise_top(of_row, scale_b[0][batch, q], scale_b[1][batch, q], present[g], top)
                    _note_invalid(of_row[2], scale_b[2][batch, q], invalid)
                _align(row, fraction_bits, top, total)
                for g in range(groups):
                    q = columns[batch, i, first + g * group] // chunk
                    shift = fraction_bits - unit_bits + scale_a[1][batch, i, q]
                    scale = (scale_a[0][batch, i, q], shift)
                    _add_term(sums[g], scale, scale_b[0][batch, q], scale_b[1][batch, q], top, total)
                _finish(total, top, invalid, (fraction_bits, precision, nearest), row)


@kernel
def _start(row: Array, floor: int, top: Array, invalid: Array) -> None:
    """Return the accumulator's exponents, at least the floor; the floor for zeros."""
    for j in range(len(row)):
        field = np.int32(np.int32(np.float32(row[j]).view(np.int32) >> np.int32(23)) & np.int32(255))
        exponent = np.int32(max(field, np.int32(1)) - np.int32(127))
        exponent = exponent if row[j] != np.float32(0) else np.int32(_LOWEST)
        top[j] = max(exponent, np.int32(floor))
        invalid[j] = 0


@kernel
def _add_group(
    a: Array, b: Array, columns: Array, span: tuple[int, int], sums: Array, present: Array
) -> None:
    """Write the sums of a group's products, and a number other than 0 where a product is not 0."""
    sums[:] = 0
    present[:] = 0
    for s in range(span[0], span[1]):
        x = np.int16(a[s])
        if x == 0:
            continue
        y = b[columns[s]]
        for j in range(len(sums)):
            sums[j] = np.int16(sums[j] + np.int16(x * y[j]))
            present[j] = np.int16(present[j] | y[j])


@kernel
def _raise_top(
    scale: tuple[int, int, int], significand: Array, exponent: Array, present: Array, top: Array
) -> None:
    """Let the exponents of a group's scales take part, where it has a product that is not 0."""
    if scale[0] == 0:
        return
    for j in range(len(top)):
        counts = present[j] != 0 and significand[j] != 0
        top[j] = max(top[j], np.int32(scale[1] + exponent[j]) if counts else np.int32(_LOWEST))


@kernel
def _note_invalid(of_row: int, of_columns: Array, invalid: Array) -> None:
    """Make the result NaN where a scale is NaN, for any factor."""
    for j in range(len(invalid)):
        invalid[j] |= np.int8(of_row | of_columns[j])


@kernel
def _power(exponent: Any) -> Any:
    """Return 2**exponent as float64, for exponents (int64) of normal numbers."""
    return np.float64(np.int64((exponent + 1023) << 52).view(np.float64))


@kernel
def _align(row: Array, fraction_bits: int, top: Array, total: Array) -> None:
    for j in range(len(row)):
        total[j] = np.int64(np.float64(row[j]) * _power(np.int64(fraction_bits - top[j])))


@kernel
def _add_term(
    sums: Array, scale: tuple[int, int], significand: Array, exponent: Array, top: Array, total: Array
) -> None:
    """Add a group's sum times its scales, truncated toward zero; ``scale``: a's factor and shift."""
    factor, shift = scale
    for j in range(len(top)):
        term = np.float64(np.int32(sums[j]) * np.int32(np.int32(factor) * np.int32(significand[j])))
        total[j] += np.int64(term * _power(np.int64(shift + exponent[j] - top[j])))


@kernel
def _finish(total: Array, top: Array, invalid: Array, rule: tuple[int, int, bool], row: Array) -> None:
    """Round the sums to so many significant bits of f32; Inf and NaN stay as they are."""
    fraction_bits, precision, nearest = rule
    for j in range(len(row)):
        number = np.float64(total[j]) * _power(np.int64(top[j] - fraction_bits))
        field: Any = np.int64(np.int64(np.float64(number).view(np.int64)) >> 52) & 2047
        last: Any = max(field - 1023, _F32_LOWEST) - (precision - 1)
        whole = number * _power(np.int64(-last))
        if nearest:
            whole = (whole + _MAGIC) - _MAGIC
        value = np.float32(np.float64(np.int64(whole)) * _power(np.int64(last)))
        kept = np.int32(np.float32(row[j]).view(np.int32))
        finite = np.int32(kept & np.int32(0x7F800000)) != np.int32(0x7F800000)
        bits = np.int32(np.float32(value).view(np.int32)) if finite else kept
        bits = np.int32(CANONICAL_NAN) if invalid[j] else bits
        row[j] = np.int32(bits).view(np.float32)
