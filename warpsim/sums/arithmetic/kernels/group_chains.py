"""Sums of exactly summed groups, each with its own scale, all columns of D at a time.

The sums of ``groups``, here in int16 and float64 (see llvm.groups), for any number of instructions along k.
Nothing is rounded before the end of a step: a group's sum fits int16, its product with two significands of
scales int32, every sum of terms is below 2**53 (``fits`` decides for which rules), and powers of two are
normal. The planes, flat, of one product of matrices, *stored* columns of a being those of a step:

    a values             [row][stored column]     int16, in units of the format's smallest number
    a starts             [row][stored column]     int32: the row of b's step that each meets, times the
                                                  columns of b's planes; of a single row where all are alike
    a masks, scales      [row][group]             int32: which rows of b meet an element that is not 0, none
                                                  where the scale is 0; significands and exponents
    a NaN                [row][step]              int32: 1 where a scale is NaN
    b values             [row][column]            int16
    b masks, scales      [group][column]          int32
    b NaN                [step][column]           int32
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import _jit
from ._jit import Array, kernel, variant_kernel
from .llvm import groups, steps, vectors
from .llvm.groups import ALIGNED, SUMMED, GroupRow, Place
from .llvm.vectors import cgutils, intrinsic, pointer_of, pointers, types

COLUMNS, WIDTH = (
    ALIGNED,
    SUMMED,
)  # the columns that are computed are a multiple of the first, planes of the second
_MOST_BITS = 53
_SPANS = (8, 16, 32)  # as masks have bits

# Numba's cache sees edits only of the file that defines a kernel; this constant sees edits of the others.
_FINGERPRINT = _jit.fingerprint(_jit, groups, steps, vectors)

PlanesA = tuple[
    Array, Array, Array, Array, Array, Array
]  # values, starts, masks, significands, exponents, NaN
PlanesB = tuple[Array, Array, Array, Array, Array]  # the same without starts
Numbers = tuple[int, int, int, int]  # fraction bits, exponent floor, fraction bits of a term, precision


def fits(group: int, largest: int, scale_bits: int, fraction_bits: int, terms: int, span: int) -> bool:
    """Return whether all sums are exact; ``largest``: of a product, in its units; ``scale_bits``: of two
    scales; ``span``: rows of B that a group may meet.

    A term is below its group's sum over the unit of a product times 4, two significands of scales being
    below 2 each, in units of 2**-fraction_bits; there are ``terms`` of them, and C.
    """
    total = group * largest * 4 << fraction_bits
    small = group * largest < 1 << 15 and scale_bits + 2 <= 16 and span in _SPANS
    return small and total * terms < 1 << _MOST_BITS


# --- packing -------------------------------------------------------------------------------------------


@kernel
def pack_a(codes: Array, units: Array, columns: Array, numbers: tuple[int, int, int], a: PlanesA) -> None:
    """Fill values and masks of a's planes from codes (rows, s), whose values are ``units[code]``.

    ``columns (some rows, s)``: the row of b that each meets, of as many rows as there are, again and again;
    ``numbers = (group, span, mask of a code's bits)``. Where a's significand of a scale is 0, so is the mask.
    """
    group, span, bits = numbers
    values, masks, significands = a[0], a[2], a[3]
    rows, s = codes.shape
    groups = s // group
    for i in range(rows):
        meets = columns[i % columns.shape[0]]
        for g in range(groups):
            mask = 0
            for k in range(g * group, (g + 1) * group):
                value = units[codes[i, k] & bits]
                values[i * s + k] = value
                mask |= int(value != 0) << (meets[k] & (span - 1))
            masks[i * groups + g] = mask if significands[i * groups + g] != 0 else 0


@kernel
def pack_b(codes: Array, units: Array, numbers: tuple[int, int, int], b: PlanesB) -> None:
    """Fill values and masks of b's planes from codes (rows, n); ``numbers = (span, columns, mask of bits)``.

    The rows are those of all products of matrices.
    """
    span, stride, bits = numbers
    values, masks, significands = b[0], b[1], b[2]
    rows, n = codes.shape
    values[:] = 0
    for first in range(0, rows, span):
        group = first // span * stride
        mask = masks[group : group + stride]
        mask[:] = 0
        for k in range(first, first + span):
            row, bit = values[k * stride : (k + 1) * stride], np.int32(np.int64(1) << (k - first))
            for j in range(n):
                row[j] = units[codes[k, j] & bits]
            for j in range(n):
                mask[j] = np.int32(mask[j] | (bit if row[j] != 0 else np.int32(0)))
        for j in range(n):
            mask[j] = mask[j] if significands[group + j] != 0 else np.int32(0)


# --- sums ----------------------------------------------------------------------------------------------


@intrinsic
def _row(typing: Any, code: Any, arrays: Any, at: Any, extent: Any, numbers: Any) -> Any:
    """Add a step to a row; ``code`` is a constant, group | groups << 8 | a fingerprint.

    ``arrays = (planes of a, planes of b, c, scratch for sums)``; ``at``, ``extent`` and ``numbers`` are those
    of llvm.groups.
    """
    if not isinstance(code, types.IntegerLiteral):
        return None  # Numba asks again with the literal type
    group, number = code.literal_value & 255, code.literal_value >> 8 & 255

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        of_a, of_b, of_c, of_sums = signature.args[1].types
        a, b, c, sums = cgutils.unpack_tuple(builder, values[1], 4)
        place = Place(
            a=pointers(context, builder, of_a, a),
            b=pointers(context, builder, of_b, b),
            c=pointer_of(context, builder, of_c, c),
            sums=pointer_of(context, builder, of_sums, sums),
            at=cgutils.unpack_tuple(builder, values[2], 8),
        )
        n, stride = cgutils.unpack_tuple(builder, values[3], 2)
        row = GroupRow(builder, place, group, number, (n, stride))
        row.emit(cgutils.unpack_tuple(builder, values[4], 4))
        return context.get_dummy_value()

    return types.none(code, arrays, at, extent, numbers), emit


def group_kernel(group: int, groups: int) -> Callable[..., None]:
    """Return the compiled ``chain`` of steps of ``groups`` groups of ``group`` products (see below)."""
    code = group | groups << 8 | (_FINGERPRINT & 0x3FFFFFF) << 16
    stored = group * groups

    @variant_kernel(code)
    def chain(
        a: PlanesA, b: PlanesB, c: Array, shape: tuple[int, int, int], step: tuple[int, int], numbers: Numbers
    ) -> None:
        """Continue ``c (products of matrices, m, stride)`` float32, flat, by all steps, each rounded once.

        ``shape = (m, n, stride)``: of stride columns, n are computed, a multiple of 16. ``step = (steps, rows
        of b of a step)``.
        """
        m, n, stride = shape
        count, depth = step
        alike = len(a[1]) == count * stored
        sums = np.empty(groups * stride, np.int16)
        for case in range(len(c) // (m * stride)):
            for number in range(count):
                of_b = case * count + number
                for i in range(m):
                    row = (case * m + i) * count + number
                    start = number if alike else row
                    at_a = (row * stored, start * stored, row * groups, row)
                    at_b = (of_b * depth * stride, of_b * groups * stride, of_b * stride)
                    at = (*at_a, *at_b, (case * m + i) * stride)
                    _row(code, (a, b, c, sums), at, (n, stride), numbers)

    return chain
