"""Fused sums of many small matrices in sequence: from a warp's registers, or from plain matrices.

Tables of positions give the place of each fragment element among an operand's registers, so that no function
here knows lanes. Each product of matrices is decoded and then summed row by row, as panels are; A's planes
are [row][stored column] here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ._jit import Array, kernel, variant_kernel
from .decode import Coding, decode_run, decode_words, encode_halves, index_offsets
from .llvm.vectors import types
from .llvm.workspace import (
    RUN,
    gathered,
    gathered_rows,
    keep,
    record_of,
    runs_of,
    scattered_rows,
    scratch,
    seen_as,
)
from .panels import literal, row_sum
from .variants import SPECIAL, Variant

COLUMNS = 8  # columns of B in a warp's registers, the smallest number


@kernel
def permuted(source: Array, result: Array, order: Array) -> None:
    """Write every run of ``len(order)`` elements in another order."""
    for start in range(0, len(source), len(order)):
        for k in range(len(order)):
            result[start + k] = source[start + order[k]]


class Header(NamedTuple):
    """The numbers of a recipe, as consecutive integers in front of its tables.

    ``words_*``: words of a case in each operand (0: all cases share the same; C's in pairs of accumulators).
    ``legal``: a bit for each value of a metadata field. ``narrow``: whether the exponents of A and B are
    those of f16 at most. ``adjacent``: whether words of C's rows lie as gathered_rows takes them.
    """

    rows: int
    passes: int
    columns: int
    words_a: int
    words_b: int
    words_c: int
    words_e: int
    legal: int
    fraction_bits: int
    exponent_floor: int
    precision: int
    narrow: int
    adjacent: int
    coding_a: Coding
    coding_b: Coding
    coding_c: Coding


class Tables(NamedTuple):
    """The tables of a recipe, which follow its header in this order; the last three are for sparse A only.

    The place of each word of A [row][word], of B [word of a column][column] and of C [row][pair]; the row
    where each row of B goes; the order of a pass's products; the offset of the chunk of each stored column of
    a row; place and lowest bit of every four metadata fields.
    """

    words_a: Array
    words_b: Array
    words_c: Array
    row_of_b: Array
    order: Array
    bases: Array
    field_words: Array
    field_bits: Array


_NUMBERS, _CODING = len(Header._fields) - 3, 8  # plain numbers of a header, and those of a coding
HEADER = _NUMBERS + 3 * _CODING  # integers in front of the tables
header_of = record_of(Header, _NUMBERS, 3, _CODING)
# The scratch memory of registers: of A words, codes in the order of products, planes and offsets, twice; of B
# words and planes; of C words, planes and the marks of a row; and planes that A and B do not have.
_PLANES = (types.float32, types.int16)
_OF_A, _OF_B = (types.uint32, None, *_PLANES, types.int32, types.int32), (types.uint32, *_PLANES)
_size, _parts = scratch((*_OF_A, *_OF_B, types.uint32, *_PLANES, types.int8, types.int16, types.uint8))


def register_kernel(variant: Variant, bits: int, kept: int) -> Callable[..., int]:
    """Return the compiled ``registers`` of a variant (see below), for elements of so many bits in A and B.

    ``kept``: indices of a metadata field, 0 for dense A. Planes that are COLUMNS wide have that many columns;
    wider planes have a multiple of the variant's width.
    """
    code = literal(variant)
    products, half, emulated, stride = variant.products, variant.half, variant.emulated, variant.stride
    depth = products * (2 if variant.sparse else 1)
    per_word, unit = 32 // bits, {8: np.uint8, 16: np.uint16, 32: np.uint32}[bits]
    held = 2 if half else 1  # accumulators in a word
    plane = np.uint8 if variant.compact else np.int16
    narrow = stride == COLUMNS
    runs = COLUMNS // RUN // held

    @variant_kernel(code, bits, kept)
    def registers(a: Array, b: Array, c: Array, metadata: Array, d: Array, count: int, recipe: Array) -> int:
        """Write all results; return -1, or the first element with an illegal metadata field, where it stops.

        ``a``, ``b``, ``c``, ``metadata`` and ``d`` are flat uint32 registers; a and b may be words of
        shared memory. ``recipe``: a Header, then Tables, in one array of integers.
        """
        header = header_of(recipe)
        rows, passes = header.rows, header.passes
        n = COLUMNS if narrow else header.columns
        stored = passes * products
        size_a, size_b, size_c = rows * stored, passes * depth, rows * stride
        count_a, count_b = size_a // per_word, size_b * n // per_word
        fields = size_a // (4 * kept) if kept else 0
        tables = (count_a, count_b, rows * n // held, size_b, products, stored if kept else 0, fields, fields)
        places_a, places_b, places_c, row_of_b, order, bases, field_words, field_bits = runs_of(
            recipe, HEADER, tables
        )
        adjacent, rows_c = header.adjacent != 0, (rows, n // held, stride // held)
        of_fields = (field_words, field_bits, bases)
        numbers = (header.fraction_bits, header.exponent_floor, header.precision)
        narrow_factors = header.narrow != 0
        coding_a, coding_b, coding_c = header.coding_a, header.coding_b, header.coding_c
        of_a = (count_a, size_a if emulated else 0, size_a, size_a, size_a, size_a if emulated else 0)
        of_b, of_c = (count_b, size_b * stride, size_b * stride), (size_c // held, size_c, size_c, stride)
        counts = (*of_a, *of_b, *of_c, 0, 0)
        memory = np.empty(_size(counts, unit), np.uint8)
        found = _parts(memory, counts, unit)
        word_a, order_a, values_a, exponents_a, offsets, order_offsets = found[:6]
        word_b, values_b, exponents_b, word_c, sums, exponents_c, marks, scales, lows = found[6:]
        exponents_a, exponents_b = seen_as(exponents_a, plane), seen_as(exponents_b, plane)
        code_a, code_c = seen_as(word_a, unit), seen_as(word_c, np.uint16)
        if not half:
            sums = seen_as(word_c, np.float32)
        planes_a = (values_a, exponents_a, order_offsets if emulated else offsets, scales, lows)
        planes_b = (values_b, exponents_b, scales, lows)
        if n < stride:
            for k in range(size_c // held):
                word_c[k] = 0
        for element in range(count):
            if kept:
                at = (element * header.words_e, fields, header.legal, stored, stride)
                if index_offsets(kept, metadata, of_fields, at, offsets):
                    keep(memory)
                    return element
            gathered(a, places_a, word_a, (element * header.words_a, 0, 0), count_a)
            if emulated:
                permuted(code_a, order_a, order)
                decode_run(order_a, 0, size_a, values_a, exponents_a, 0, coding_a)
                if kept:
                    permuted(offsets, order_offsets, order)
            else:
                decode_run(code_a, 0, size_a, values_a, exponents_a, 0, coding_a)
            if element == 0 or header.words_b != 0:
                gathered(b, places_b, word_b, (element * header.words_b, 0, 0), count_b)
                for group in range(count_b // n):
                    for j in range(0, n, COLUMNS):
                        part = (group, j, stride)
                        decode_words(
                            word_b, group * n + j, bits, (values_b, exponents_b), part, row_of_b, coding_b
                        )
            at_c = element * header.words_c
            for j in range(0, n // held, COLUMNS // held):
                gathered_rows(c, places_c, word_c, (at_c, j, j), rows_c, runs, adjacent)
            if half:
                decode_run(code_c, 0, size_c, sums, exponents_c, 0, coding_c)
            for number in range(passes):
                for i in range(rows):
                    first = (i * passes + number) * products
                    places = (first, number * rows + i, number * depth * stride, number * stride, i * stride)
                    row_sum(code, planes_a, planes_b, sums, marks, places, n, numbers, narrow_factors)
            if half:
                encode_halves(sums, code_c, size_c)
            for j in range(0, n // held, COLUMNS // held):
                scattered_rows(d, places_c, word_c, (at_c, j, j), rows_c, runs, adjacent)
        keep(memory)
        return -1

    return registers


# --- from matrices -----------------------------------------------------------------------------------


@kernel
def _column_offsets(columns: Array, start: int, passes: int, depth: int, stride: int, offsets: Array) -> None:
    """Write the offsets in the planes of B of the logical columns of A's stored elements (rows of equal
    length).
    """
    stored = len(offsets)
    each = depth // 2
    for k in range(stored):
        number = k // each % passes
        offsets[k] = (columns[start + k] - number * depth) * stride


@kernel
def _scale_exponents(
    codes: Array, start: int, shape: tuple[int, int, bool], numbers: Array, scales: Array
) -> None:
    """Write the exponents of power-of-two scales ``codes[start:]``; ``shape = (outer, inner, swap axes)``."""
    outer, inner, swap = shape
    for x in range(outer):
        for y in range(inner):
            code = np.int64(codes[start + x * inner + y])
            place = y * outer + x if swap else x * inner + y
            scales[place] = SPECIAL if code == numbers[1] else code - numbers[0]


def matrix_kernel(variant: Variant) -> Callable[..., None]:
    """Return the compiled ``matrices`` of a variant (see below)."""
    code = literal(variant)
    products, half, emulated, stride = variant.products, variant.half, variant.emulated, variant.stride
    sparse, scaled = variant.sparse, variant.scaled
    depth = products * (2 if sparse else 1)

    @variant_kernel(code)
    def matrices(
        codes: tuple[Array, Array, Array, Array, Array],
        scales: tuple[Array, Array, Array],
        shape: tuple[int, int, int, int],
        orders: tuple[Array, Array],
        codings: tuple[Coding, Coding, Coding],
        numbers: tuple[int, int, int],
    ) -> None:
        """Write all results.

        ``codes = (a, b, c, columns, results)`` are flat; ``shape = (batch, rows, passes, n)``.
        ``orders``: of the products of a pass, and of its rows of B. ``scales = (of a, of b, (bias,
        NaN))``.
        """
        a, b, c, columns, results = codes
        count, rows, passes, n = shape
        size_a, size_b, size_c = rows * passes * products, passes * depth, rows * n
        values_a, exponents_a = np.empty(size_a, np.float32), np.empty(size_a, np.int16)
        values_b, exponents_b = np.empty(size_b * stride, np.float32), np.empty(size_b * stride, np.int16)
        offsets, order_offsets = np.empty(size_a if sparse else 0, np.int32), np.empty(size_a, np.int32)
        scales_a, scales_b = np.zeros(rows * passes, np.int16), np.zeros(stride * passes, np.int16)
        sums, marks = np.zeros(rows * stride, np.float32), np.empty(stride, np.int8)
        bits, exponents_c = sums.view(np.uint32), np.empty(rows * stride, np.int16)
        row_codes, order_a = np.empty(stride, c.dtype), np.empty(size_a if emulated else 0, a.dtype)
        planes_b = (values_b, exponents_b, scales_b, np.empty(0, np.uint8))
        planes_a = (values_a, exponents_a, order_offsets if emulated else offsets, scales_a, planes_b[3])
        for element in range(count):
            if sparse:
                _column_offsets(columns, element * size_a, passes, depth, stride, offsets)
            if emulated:
                if sparse:
                    permuted(offsets, order_offsets, orders[0])
                permuted(a[element * size_a : (element + 1) * size_a], order_a, orders[0])
                decode_run(order_a, 0, size_a, values_a, exponents_a, 0, codings[0])
            else:
                decode_run(a, element * size_a, size_a, values_a, exponents_a, 0, codings[0])
            for row in range(size_b):
                k = element * size_b + row // depth * depth + orders[1][row % depth]
                decode_run(b, k * n, n, values_b, exponents_b, row * stride, codings[1])
            if scaled:
                size = rows * passes
                _scale_exponents(scales[0], element * size, (rows, passes, True), scales[2], scales_a)
                for number in range(passes):
                    start = (element * passes + number) * n
                    row_scales = scales_b[number * stride : number * stride + n]
                    _scale_exponents(scales[1], start, (1, n, False), scales[2], row_scales)
            for i in range(rows):
                start = element * size_c + i * n
                if half:
                    decode_run(c, start, n, sums, exponents_c, i * stride, codings[2])
                else:
                    for j in range(n):
                        bits[i * stride + j] = c[start + j]
            for number in range(passes):
                for i in range(rows):
                    first = (i * passes + number) * products
                    at = (first, number * rows + i, number * depth * stride, number * stride, i * stride)
                    row_sum(code, planes_a, planes_b, sums, marks, at, n, numbers, False)
            for i in range(rows):
                start = element * size_c + i * n
                if half:
                    encode_halves(sums[i * stride : i * stride + n], row_codes, n)
                    results[start : start + n] = row_codes[:n]
                else:
                    for j in range(n):
                        results[start + j] = bits[i * stride + j]

    return matrices
