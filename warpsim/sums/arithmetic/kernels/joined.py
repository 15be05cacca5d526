"""Fused sums of executions from registers that share factors: side by side, as columns of a wider product.

A group of executions (see sharing) is one product with as many columns as all of them have. A is decoded once
a group, and B once for all groups in a row that have the same. Sums are those of batches, in wider
vectors; knows neither instructions nor lanes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from . import batches
from ._jit import Array, fingerprint, variant_kernel
from .batches import COLUMNS, HEADER, header_of, permuted
from .decode import decode_run, decode_words, encode_halves, index_offsets
from .llvm.vectors import types
from .llvm.workspace import (
    RUN,
    gathered,
    gathered_rows,
    keep,
    runs_of,
    scattered_rows,
    scratch,
    seen_as,
)
from .panels import literal, row_sum
from .sharing import SAME_A, SAME_B, WIDEST_GROUP
from .variants import Variant

# Numba's cache sees edits of this file only; this constant sees edits of what tables are read by.
_FINGERPRINT = fingerprint(batches)
STRIDE = COLUMNS * WIDEST_GROUP  # columns of the planes of B
# The scratch memory, as batches has it; exponents may be seen as bytes.
_PLANES = (types.float32, types.int16)
_OF_A, _OF_B = (types.uint32, None, *_PLANES, types.int32, types.int32), (types.uint32, *_PLANES)
_size, _parts = scratch((*_OF_A, *_OF_B, types.uint32, *_PLANES, types.int8, types.int16, types.uint8))


def joined_kernel(variant: Variant, bits: int, kept: int) -> Callable[..., int]:
    """Return the compiled ``joined`` of a variant (see below), for elements of so many bits in A and B.

    ``kept``: indices of a metadata field, 0 for dense A. Planes are STRIDE columns wide.
    """
    code = literal(variant)
    products, half, emulated = variant.products, variant.half, variant.emulated
    depth = products * (2 if variant.sparse else 1)
    per_word, unit = 32 // bits, {8: np.uint8, 16: np.uint16, 32: np.uint32}[bits]
    plane = np.uint8 if variant.compact else np.int16
    held = 2 if half else 1  # accumulators in a word
    width, runs = variant.width, COLUMNS // RUN // held

    @variant_kernel(code, bits, kept, _FINGERPRINT)
    def joined(
        operands: tuple[Array, Array, Array, Array, Array], found: tuple[Array, Array, Array], recipe: Array
    ) -> int:
        """Write all results; return -1, or the first member of a group with an illegal metadata field.

        ``operands = (a, b, c, metadata, d)`` and ``recipe`` as in batches; ``found``: as ``groups`` returns.
        """
        a, b, c, metadata, d = operands
        members, starts, group_marks = found
        header = header_of(recipe)
        rows, passes, adjacent = header.rows, header.passes, header.adjacent != 0
        stored = passes * products
        size_a, size_b, size_c = rows * stored, passes * depth, rows * STRIDE
        count_a, count_b = size_a // per_word, size_b * COLUMNS // per_word
        fields = size_a // (4 * kept) if kept else 0
        tables = (count_a, count_b, rows * COLUMNS // held, size_b, products, stored if kept else 0)
        places_a, places_b, places_c, row_of_b, order, bases, field_words, field_bits = runs_of(
            recipe, HEADER, (*tables, fields, fields)
        )
        of_fields, rows_c = (field_words, field_bits, bases), (rows, COLUMNS // held, STRIDE // held)
        numbers = (header.fraction_bits, header.exponent_floor, header.precision)
        coding_a, coding_b, coding_c = header.coding_a, header.coding_b, header.coding_c
        of_a = (count_a, size_a if emulated else 0, size_a, size_a, size_a, size_a if emulated else 0)
        of_b, of_c = (count_b, size_b * STRIDE, size_b * STRIDE), (size_c // held, size_c, size_c, STRIDE)
        counts = (*of_a, *of_b, *of_c, 0, 0)
        memory = np.zeros(_size(counts, unit), np.uint8)  # columns without an execution: never a NaN
        parts = _parts(memory, counts, unit)
        word_a, order_a, values_a, exponents_a, offsets, order_offsets = parts[:6]
        word_b, values_b, exponents_b, word_c, sums, exponents_c, marks, scales, lows = parts[6:]
        exponents_a, exponents_b = seen_as(exponents_a, plane), seen_as(exponents_b, plane)
        code_a, code_c = seen_as(word_a, unit), seen_as(word_c, np.uint16)
        if not half:
            sums = seen_as(word_c, np.float32)
        planes_a = (values_a, exponents_a, order_offsets if emulated else offsets, scales, lows)
        planes_b = (values_b, exponents_b, scales, lows)
        for group in range(len(group_marks)):
            first, stop = int(starts[group]), int(starts[group + 1])
            n = (COLUMNS * (stop - first) + width - 1) // width * width
            element = int(members[first])
            if not group_marks[group] & SAME_A:
                if kept:
                    at = (element * header.words_e, fields, header.legal, stored, STRIDE)
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
            for k in range(first, stop):
                element, j = int(members[k]), (k - first) * COLUMNS
                if not group_marks[group] & SAME_B:
                    gathered(b, places_b, word_b, (element * header.words_b, 0, 0), count_b)
                    for number in range(count_b // COLUMNS):
                        part = (number, j, STRIDE)
                        planes = (values_b, exponents_b)
                        decode_words(word_b, number * COLUMNS, bits, planes, part, row_of_b, coding_b)
                place = (element * header.words_c, 0, j // held)
                gathered_rows(c, places_c, word_c, place, rows_c, runs, adjacent)
            if half:
                decode_run(code_c, 0, size_c, sums, exponents_c, 0, coding_c)
            for number in range(passes):
                for i in range(rows):
                    first_a = (i * passes + number) * products
                    row = (first_a, number * rows + i, number * depth * STRIDE, number * STRIDE, i * STRIDE)
                    row_sum(code, planes_a, planes_b, sums, marks, row, n, numbers, header.narrow != 0)
            if half:
                encode_halves(sums, code_c, size_c)
            for k in range(first, stop):
                place = (int(members[k]) * header.words_c, 0, (k - first) * COLUMNS // held)
                scattered_rows(d, places_c, word_c, place, rows_c, runs, adjacent)
        keep(memory)
        return -1

    return joined
