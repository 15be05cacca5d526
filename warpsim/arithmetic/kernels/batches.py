"""Fused sums of many small matrices, one after the other: from a warp's registers, or from plain matrices.

Where an element of a fragment lies among an operand's registers is told by tables of positions, so that
nothing here knows lanes. Each product of matrices is decoded and then summed row by row, as panels are;
A's planes lie [row][stored column] here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ._jit import Array, kernel, variant_kernel
from .decode import Coding, decode_run, decode_words, encode_halves, index_offsets
from .panels import literal, row_sum
from .variants import SPECIAL, Variant

COLUMNS = 8  # of B in a warp's registers, and the least that there are


@kernel
def _gathered(source: Array, start: int, places: Array, result: Array) -> None:
    for k in range(len(places)):
        result[k] = source[np.uint64(start + places[k])]  # unsigned: no index counts from the end


@kernel
def _scattered(source: Array, result: Array, start: int, places: Array) -> None:
    for k in range(len(places)):
        result[np.uint64(start + places[k])] = source[k]


@kernel
def _permuted(source: Array, result: Array, order: Array) -> None:
    """Every run of ``len(order)`` elements in another order."""
    for start in range(0, len(source), len(order)):
        for k in range(len(order)):
            result[start + k] = source[start + order[k]]


HEADER = 40  # integers in front of the tables of a recipe


@kernel
def _coding(recipe: Array, first: int) -> Coding:
    bits, shift, mask = int(recipe[first]), int(recipe[first + 1]), int(recipe[first + 2])
    fraction, bias = int(recipe[first + 3]), int(recipe[first + 4])
    return bits, shift, mask, fraction, bias, int(recipe[first + 5]), int(recipe[first + 6])


def register_kernel(variant: Variant, bits: int, kept: int) -> Callable[..., int]:
    """The compiled ``registers`` of a variant (see below), for elements of so many bits in A and B.

    ``kept``: indices of a metadata field, 0 for dense A. Planes that are COLUMNS wide have that many columns;
    wider ones have a multiple of the variant's width.
    """
    code = literal(variant)
    products, half, emulated, stride = variant.products, variant.half, variant.emulated, variant.stride
    depth = products * (2 if variant.sparse else 1)
    per_word, unit = 32 // bits, {8: np.uint8, 16: np.uint16, 32: np.uint32}[bits]
    pair = np.uint32 if half else np.uint64
    narrow = stride == COLUMNS

    @variant_kernel(code, bits, kept)
    def registers(a: Array, b: Array, c: Array, words: Array, d: Array, count: int, recipe: Array) -> int:
        """Write all results; -1, or the first element with an illegal metadata field, where it stops.

        ``a``, ``b``, ``c``, ``words`` (metadata) and ``d`` are flat uint32 registers; a and b may be words of
        shared memory. ``recipe``: rows, passes, words of an element in a, b, c and metadata (0: all elements
        have the same), legal fields as bits, fraction bits, floor and precision, the codings of A, B and C,
        then columns; after HEADER integers, tables: the place of each word of A [row][word], of B [word of a
        column][column] and of C [row][pair]; the row where each row of B goes; the order of a pass's
        products; and for sparse A the offset of the chunk of each stored column of a row, and place and
        lowest bit of every four metadata fields.
        """
        rows, passes = recipe[0], recipe[1]
        n = COLUMNS if narrow else np.int64(recipe[31])
        pairs, results = c.view(pair), d.view(pair)  # two accumulators in each
        stored = passes * products
        size_a, size_b, size_c = rows * stored, passes * depth, rows * n
        at_b = HEADER + size_a // per_word
        at_c = at_b + size_b * n // per_word
        at_row = at_c + size_c // 2
        at_order = at_row + passes * depth
        at_base = at_order + products
        at_group = at_base + stored
        places_a, places_b, places_c = recipe[HEADER:at_b], recipe[at_b:at_c], recipe[at_c:at_row]
        row_of_b, order, bases = recipe[at_row:at_order], recipe[at_order:at_base], recipe[at_base:at_group]
        legal = int(recipe[6])
        numbers = (int(recipe[7]), int(recipe[8]), int(recipe[9]))
        coding_a, coding_b, coding_c = _coding(recipe, 10), _coding(recipe, 17), _coding(recipe, 24)
        word_a, word_b = np.empty(len(places_a), np.uint32), np.empty(len(places_b), np.uint32)
        code_a, word_c = word_a.view(unit), np.zeros(rows * stride // 2, pair)
        order_a = np.empty(size_a if emulated else 0, unit)
        values_a, exponents_a = np.empty(size_a, np.float32), np.empty(size_a, np.int16)
        values_b, exponents_b = np.empty(size_b * stride, np.float32), np.empty(size_b * stride, np.int16)
        offsets = np.empty(size_a if kept else 0, np.int32)
        order_offsets = np.empty(size_a if kept and emulated else 0, np.int32)
        scales = np.empty(0, np.int16)
        sums = np.empty(rows * stride, np.float32) if half else word_c.view(np.float32)
        exponents_c = np.empty(rows * stride if half else 0, np.int16)
        marks = np.empty(stride, np.int8)
        planes_a = (values_a, exponents_a, order_offsets if emulated else offsets, scales)
        planes_b = (values_b, exponents_b, scales)
        for element in range(count):
            if kept:
                width = 4 * kept
                groups = size_a // width
                wrong = False
                for group in range(groups):
                    word = np.int64(words[element * recipe[5] + recipe[at_group + group]])
                    word >>= recipe[at_group + groups + group]
                    place = group * width
                    if index_offsets(kept, word, legal, bases, place % stored, stride, offsets, place):
                        wrong = True
                if wrong:
                    return element
            _gathered(a, element * recipe[2], places_a, word_a)
            if emulated:
                _permuted(code_a, order_a, order)
                decode_run(order_a, 0, size_a, values_a, exponents_a, 0, coding_a)
                if kept:
                    _permuted(offsets, order_offsets, order)
            else:
                decode_run(code_a, 0, size_a, values_a, exponents_a, 0, coding_a)
            if element == 0 or recipe[3] != 0:
                _gathered(b, element * recipe[3], places_b, word_b)
                for group in range(len(word_b) // n):
                    for j in range(0, n, COLUMNS):
                        spot = (group, j, stride)
                        decode_words(
                            word_b, group * n + j, bits, (values_b, exponents_b), spot, row_of_b, coding_b
                        )
            for i in range(rows):
                row, place = places_c[i * n // 2 : (i + 1) * n // 2], i * stride // 2
                _gathered(pairs, element * recipe[4], row, word_c[place:])
            if half:
                decode_run(word_c.view(np.uint16), 0, rows * stride, sums, exponents_c, 0, coding_c)
            for number in range(passes):
                for i in range(rows):
                    first = (i * passes + number) * products
                    at = (first, number * rows + i, number * depth * stride, number * stride, i * stride)
                    row_sum(code, planes_a, planes_b, sums, marks, at, n, numbers)
            if half:
                encode_halves(sums, word_c.view(np.uint16), rows * stride)
            for i in range(rows):
                row, place = places_c[i * n // 2 : (i + 1) * n // 2], i * stride // 2
                _scattered(word_c[place:], results, element * recipe[4], row)
        return -1

    return registers


# --- from matrices -----------------------------------------------------------------------------------


@kernel
def _column_offsets(columns: Array, start: int, passes: int, depth: int, stride: int, offsets: Array) -> None:
    """Offsets in the planes of B, of the logical columns of A's stored elements (rows of equal length)."""
    stored = len(offsets)
    each = depth // 2
    for k in range(stored):
        number = k // each % passes
        offsets[k] = (columns[start + k] - number * depth) * stride


@kernel
def _scale_exponents(
    codes: Array, start: int, outer: int, inner: int, swap: bool, numbers: Array, scales: Array
) -> None:
    """Exponents of power-of-two scales ``codes[start:]`` (outer, inner), with axes swapped on demand."""
    for x in range(outer):
        for y in range(inner):
            code = np.int64(codes[start + x * inner + y])
            place = y * outer + x if swap else x * inner + y
            scales[place] = SPECIAL if code == numbers[1] else code - numbers[0]


def matrix_kernel(variant: Variant) -> Callable[..., None]:
    """The compiled ``matrices`` of a variant (see below)."""
    code = literal(variant)
    products, half, emulated, stride = variant.products, variant.half, variant.emulated, variant.stride
    sparse, scaled = variant.sparse, variant.scaled
    depth = products * (2 if sparse else 1)

    @variant_kernel(code)
    def matrices(
        codes: tuple[Array, Array, Array, Array],
        columns: Array,
        scales: tuple[Array, Array, Array],
        shape: tuple[int, int, int, int],
        orders: tuple[Array, Array],
        codings: tuple[Coding, Coding, Coding],
        numbers: tuple[int, int, int],
    ) -> None:
        """Write all results.

        ``codes = (a, b, c, results)`` and ``columns`` are flat; ``shape = (batch, rows, passes, n)``.
        ``orders``: of the products of a pass, and of its rows of B. ``scales = (of a, of b, (bias,
        NaN))``.
        """
        a, b, c, results = codes
        count, rows, passes, n = shape
        size_a, size_b, size_c = rows * passes * products, passes * depth, rows * n
        values_a, exponents_a = np.empty(size_a, np.float32), np.empty(size_a, np.int16)
        values_b, exponents_b = np.empty(size_b * stride, np.float32), np.empty(size_b * stride, np.int16)
        offsets, order_offsets = np.empty(size_a if sparse else 0, np.int32), np.empty(size_a, np.int32)
        scales_a, scales_b = np.zeros(rows * passes, np.int16), np.zeros(stride * passes, np.int16)
        sums, marks = np.zeros(rows * stride, np.float32), np.empty(stride, np.int8)
        bits, exponents_c = sums.view(np.uint32), np.empty(rows * stride, np.int16)
        row_codes, order_a = np.empty(stride, c.dtype), np.empty(size_a if emulated else 0, a.dtype)
        planes_a = (values_a, exponents_a, order_offsets if emulated else offsets, scales_a)
        planes_b = (values_b, exponents_b, scales_b)
        for element in range(count):
            if sparse:
                _column_offsets(columns, element * size_a, passes, depth, stride, offsets)
            if emulated:
                if sparse:
                    _permuted(offsets, order_offsets, orders[0])
                _permuted(a[element * size_a : (element + 1) * size_a], order_a, orders[0])
                decode_run(order_a, 0, size_a, values_a, exponents_a, 0, codings[0])
            else:
                decode_run(a, element * size_a, size_a, values_a, exponents_a, 0, codings[0])
            for row in range(size_b):
                k = element * size_b + row // depth * depth + orders[1][row % depth]
                decode_run(b, k * n, n, values_b, exponents_b, row * stride, codings[1])
            if scaled:
                size = rows * passes
                _scale_exponents(scales[0], element * size, rows, passes, True, scales[2], scales_a)
                for number in range(passes):
                    start = (element * passes + number) * n
                    row_scales = scales_b[number * stride : number * stride + n]
                    _scale_exponents(scales[1], start, 1, n, False, scales[2], row_scales)
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
                    row_sum(code, planes_a, planes_b, sums, marks, at, n, numbers)
            for i in range(rows):
                start = element * size_c + i * n
                if half:
                    encode_halves(sums[i * stride : i * stride + n], row_codes, n)
                    results[start : start + n] = row_codes[:n]
                else:
                    for j in range(n):
                        results[start + j] = bits[i * stride + j]

    return matrices
