"""Fused sums of many small matrices in sequence: from a warp's registers, or from plain matrices.

Tables of positions give the place of each fragment element among an operand's registers, so that no function
here knows lanes. Each product of matrices is decoded and then summed row by row, as panels are; A's planes
are [row][stored column] here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.np.unsafe.ndarray import to_fixed_tuple

from ._jit import Array, kernel, variant_kernel
from .decode import Coding, decode_run, decode_words, encode_halves, index_offsets
from .panels import literal, row_sum
from .variants import SPECIAL, Variant

COLUMNS = 8  # columns of B in a warp's registers, the smallest number


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
    """Write every run of ``len(order)`` elements in another order."""
    for start in range(0, len(source), len(order)):
        for k in range(len(order)):
            result[start + k] = source[start + order[k]]


class Header(NamedTuple):
    """The numbers of a recipe, as consecutive integers in front of its tables.

    ``words_*``: words of a case in each operand (0: all cases share the same; C's in pairs of accumulators).
    ``legal``: a bit for each value of a metadata field.
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
_taken: Any = to_fixed_tuple  # Numba types it, mypy does not


@kernel
def _header(recipe: Array) -> Header:
    numbers = recipe[:HEADER].astype(np.int64)
    a, b, c = numbers[_NUMBERS:], numbers[_NUMBERS + _CODING :], numbers[_NUMBERS + 2 * _CODING :]
    codings: Any = (_taken(a, _CODING), _taken(b, _CODING), _taken(c, _CODING))
    return Header(*_taken(numbers, _NUMBERS), *codings)


@kernel
def _tables(recipe: Array, sizes: tuple[int, int, int], depth: int, products: int, stored: int) -> Tables:
    """Return the tables of a recipe; ``sizes``: words of A and of B and pairs of C that the tables place."""
    at_b = HEADER + sizes[0]
    at_c = at_b + sizes[1]
    at_row = at_c + sizes[2]
    at_order = at_row + depth
    at_base = at_order + products
    at_field = min(at_base + stored, len(recipe))  # dense A has no tables from here on
    at_bit = at_field + (len(recipe) - at_field) // 2
    places = recipe[HEADER:at_b], recipe[at_b:at_c], recipe[at_c:at_row]
    orders = recipe[at_row:at_order], recipe[at_order:at_base]
    return Tables(*places, *orders, recipe[at_base:at_field], recipe[at_field:at_bit], recipe[at_bit:])


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
    narrow = stride == COLUMNS

    @variant_kernel(code, bits, kept)
    def registers(a: Array, b: Array, c: Array, words: Array, d: Array, count: int, recipe: Array) -> int:
        """Write all results; return -1, or the first element with an illegal metadata field, where it stops.

        ``a``, ``b``, ``c``, ``words`` (metadata) and ``d`` are flat uint32 registers; a and b may be words of
        shared memory. ``recipe``: a Header, then Tables, in one array of integers.
        """
        header = _header(recipe)
        rows, passes = header.rows, header.passes
        n = COLUMNS if narrow else header.columns
        stored = passes * products
        size_a, size_b, size_c = rows * stored, passes * depth, rows * n
        sizes = (size_a // per_word, size_b * n // per_word, size_c // held)
        tables = _tables(recipe, sizes, size_b, products, stored)
        places_a, places_b, places_c = tables.words_a, tables.words_b, tables.words_c
        row_of_b, order, bases = tables.row_of_b, tables.order, tables.bases
        legal = header.legal
        numbers = (header.fraction_bits, header.exponent_floor, header.precision)
        coding_a, coding_b, coding_c = header.coding_a, header.coding_b, header.coding_c
        word_a, word_b = np.empty(len(places_a), np.uint32), np.empty(len(places_b), np.uint32)
        code_a, word_c = word_a.view(unit), np.zeros(rows * stride // held, np.uint32)
        order_a = np.empty(size_a if emulated else 0, unit)
        values_a, exponents_a = np.empty(size_a, np.float32), np.empty(size_a, np.int16)
        values_b, exponents_b = np.empty(size_b * stride, np.float32), np.empty(size_b * stride, np.int16)
        offsets = np.empty(size_a if kept else 0, np.int32)
        order_offsets = np.empty(size_a if kept and emulated else 0, np.int32)
        scales, lows = np.empty(0, np.int16), np.empty(0, np.uint8)
        sums = np.empty(rows * stride, np.float32) if half else word_c.view(np.float32)
        exponents_c = np.empty(rows * stride if half else 0, np.int16)
        marks = np.empty(stride, np.int8)
        planes_a = (values_a, exponents_a, order_offsets if emulated else offsets, scales, lows)
        planes_b = (values_b, exponents_b, scales, lows)
        for element in range(count):
            if kept:
                width = 4 * kept
                groups = size_a // width
                wrong = False
                for group in range(groups):
                    word = np.int64(words[element * header.words_e + tables.field_words[group]])
                    word >>= tables.field_bits[group]
                    place = group * width
                    if index_offsets(kept, word, legal, bases, place % stored, stride, offsets, place):
                        wrong = True
                if wrong:
                    return element
            _gathered(a, element * header.words_a, places_a, word_a)
            if emulated:
                _permuted(code_a, order_a, order)
                decode_run(order_a, 0, size_a, values_a, exponents_a, 0, coding_a)
                if kept:
                    _permuted(offsets, order_offsets, order)
            else:
                decode_run(code_a, 0, size_a, values_a, exponents_a, 0, coding_a)
            if element == 0 or header.words_b != 0:
                _gathered(b, element * header.words_b, places_b, word_b)
                for group in range(len(word_b) // n):
                    for j in range(0, n, COLUMNS):
                        spot = (group, j, stride)
                        decode_words(
                            word_b, group * n + j, bits, (values_b, exponents_b), spot, row_of_b, coding_b
                        )
            for i in range(rows):
                row, place = places_c[i * n // held : (i + 1) * n // held], i * stride // held
                _gathered(c, element * header.words_c, row, word_c[place:])
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
                row, place = places_c[i * n // held : (i + 1) * n // held], i * stride // held
                _scattered(word_c[place:], d, element * header.words_c, row)
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
        lows = np.empty(0, np.uint8)
        planes_a = (values_a, exponents_a, order_offsets if emulated else offsets, scales_a, lows)
        planes_b = (values_b, exponents_b, scales_b, lows)
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
