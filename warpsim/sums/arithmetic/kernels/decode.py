"""Codes to the planes that panels work on, and float32 results to codes.

A format arrives as numbers, and codes are decoded by arithmetic, in vectors. Values are float32, which holds
every value of the formats exactly; exponents are int16, with ZERO and SPECIAL for zero and for Inf and NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ._jit import Array, kernel
from .llvm.vectors import (
    F32,
    I1,
    I8,
    I16,
    I32,
    I64,
    Lanes,
    cgutils,
    intrinsic,
    ir,
    load,
    pointer_of,
    pointers,
    power_of_two,
    splat,
    types,
)
from .variants import BYTE_SPECIAL, BYTE_ZERO, LIFT_LOW, LOW_ZERO, OTHER_SIGN, SPECIAL, ZERO

_INFINITY = 0x7F800000

# A format: bits of a code and its shift together, the shift, mask of a magnitude (without ignored bits),
# fraction bits (with ignored bits), bias, first magnitude that is Inf or NaN, lowest exponent; and the number
# added to exponents in planes of bytes.
Coding = tuple[int, int, int, int, int, int, int, int]
# Columns of B: the first, their number, their number with padding, and the width of the planes.
Part = tuple[int, int, int, int]


def _decoded(code: Lanes, coding: list[Lanes], plane: Any) -> tuple[Lanes, Lanes]:
    """Return (values, exponents for the plane) of codes in int32 lanes; bits above the code are ignored.

    The magnitude's bits, moved to float32's places, stand for the value times 2**(bias - 127); the
    product with a power of two is exact, and makes subnormal numbers right as well. Their exponent is
    the format's lowest, which is above that of their leading bit.
    """
    bits, shift, mask, fraction, bias, special_from, lowest, lift = coding
    magnitude = code.logical_shift(shift) & mask
    moved = magnitude << (fraction * -1 + 23)
    value = (moved.seen_as(F32) * power_of_two(bias * -1 + 127, F32)).seen_as(I32)
    special = magnitude >= special_from
    sign = (code << (bits * -1 + 32)) & -(1 << 31)
    exponent = (value.field(23, 8) - 127).maximum(lowest)
    value = special.choose(moved | _INFINITY, value) | sign
    zero_as, special_as = (BYTE_ZERO, BYTE_SPECIAL) if plane == I8 else (ZERO, SPECIAL)
    raised = exponent + lift if plane == I8 else exponent
    exponent = special.choose(special_as, magnitude.equals(0).choose(zero_as, raised))
    return value.seen_as(F32), exponent.to(plane)


def _coding(builder: Any, numbers: Any, width: int) -> list[Lanes]:
    parts = cgutils.unpack_tuple(builder, numbers, 8)
    return [splat(builder, builder.trunc(number, I32), width) for number in parts]


@intrinsic
def decode_run(
    typing: Any, codes: Any, start: Any, count: Any, values: Any, exponents: Any, place: Any, coding: Any
) -> tuple[Any, Callable[..., Any]]:
    """Decode ``codes[start : start + count]`` (flat, uint8 to uint32) to both planes at ``place``."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        source, *planes = (pointer_of(context, builder, kinds[k], arguments[k]) for k in (0, 3, 4))
        low = ir.Constant(I64, 0)
        for width in (16, 4, 1):
            high = builder.and_(arguments[2], ir.Constant(I64, -width))
            numbers = _coding(builder, arguments[6], width)
            with cgutils.for_range_slice(builder, low, high, ir.Constant(I64, width), I64) as (k, _):
                code = load(builder, source, builder.add(arguments[1], k), width).unsigned_to(I32)
                at = builder.add(arguments[5], k)
                for plane, lanes in zip(planes, _decoded(code, numbers, planes[1].type.pointee), strict=True):
                    lanes.store(plane, at)
            low = high
        return context.get_dummy_value()

    return types.void(codes, start, count, values, exponents, place, coding), emit


@intrinsic
def decode_words(
    typing: Any,
    words: Any,
    start: Any,
    bits: Any,
    planes: Any,
    place: Any,
    rows: Any,
    coding: Any,
) -> tuple[Any, Callable[..., Any]] | None:
    """Decode eight columns' words ``words[start : start + 8]`` (uint32), which hold several rows.

    ``bits``, a constant, is the width of an element; ``planes = (values, exponents)``; ``place = (word of the
    column, first column, columns of the planes)``. Element i of the words goes to row ``rows[word of the
    column * elements + i]``.
    """
    if not isinstance(bits, types.IntegerLiteral):
        return None  # Numba asks again with the literal type
    element = int(bits.literal_value)

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        source, rows_at = (pointer_of(context, builder, kinds[k], arguments[k]) for k in (0, 5))
        targets = pointers(context, builder, kinds[3], arguments[3])
        group, column, stride = cgutils.unpack_tuple(builder, arguments[4], 3)
        numbers = _coding(builder, arguments[6], 8)
        word = load(builder, source, arguments[1], 8)
        first = builder.mul(group, ir.Constant(I64, 32 // element))
        for i in range(32 // element):
            number = builder.add(first, ir.Constant(I64, i))
            row = builder.sext(builder.load(builder.gep(rows_at, [number])), I64)
            at = builder.add(builder.mul(row, stride), column)
            code = word.field(element * i, element) if element < 32 else word
            for plane, lanes in zip(targets, _decoded(code, numbers, targets[1].type.pointee), strict=True):
                lanes.store(plane, at)
        return context.get_dummy_value()

    return types.void(words, start, bits, planes, place, rows, coding), emit


@intrinsic
def index_offsets(
    typing: Any, kept: Any, metadata: Any, tables: Any, numbers: Any, offsets: Any
) -> tuple[Any, Callable[..., Any]] | None:
    """Write the offsets that an execution's 4-bit metadata fields select; return whether any is illegal.

    ``kept``, a constant, is the number of indices of a field: two of 2 bits, or a single index in bit 1.
    ``tables = (words, bits, bases)``: four fields begin at bit ``bits[k]`` of ``metadata[start + words[k]]``
    (uint32). ``numbers = (start, count of k, legal, stored, factor)``: ``legal`` has a bit for each legal
    field, and index i of element j gives ``offsets[j] = bases[j % stored] + factor * index``.
    """
    if not isinstance(kept, types.IntegerLiteral):
        return None  # Numba asks again with the literal type
    count = int(kept.literal_value)

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds, width = signature.args, 4 * count
        source, target = (pointer_of(context, builder, kinds[k], arguments[k]) for k in (1, 4))
        words, bits, bases = pointers(context, builder, kinds[2], arguments[2])
        start, number, legal, stored, factor = cgutils.unpack_tuple(builder, arguments[3], 5)
        wrong = cgutils.alloca_once_value(builder, ir.Constant(I1, 0))
        with cgutils.for_range(builder, number, intp=I64) as loop:
            place, bit = (builder.load(builder.gep(table, [loop.index])) for table in (words, bits))
            word = builder.load(builder.gep(source, [builder.add(start, builder.sext(place, I64))]))
            word = builder.lshr(word, bit)
            fields = splat(builder, word, 4).logical_shift(_ramp(builder, 4, 4, 0)) & 15
            meant = splat(builder, builder.trunc(legal, I32), 4).logical_shift(fields) & 1
            builder.store(builder.or_(builder.load(wrong), meant.equals(0).any()), wrong)
            shifts = _ramp(builder, width, 2, 0) if count == 2 else _ramp(builder, width, 4, 1)
            index = splat(builder, word, width).logical_shift(shifts) & (3 if count == 2 else 1)
            at = builder.mul(loop.index, ir.Constant(I64, width))
            base = load(builder, bases, builder.srem(at, stored), width)
            (base + index * splat(builder, builder.trunc(factor, I32), width)).store(target, at)
        return builder.load(wrong)

    return types.boolean(kept, metadata, tables, numbers, offsets), emit


def _ramp(builder: Any, width: int, step: int, first: int) -> Lanes:
    numbers = [first + step * lane for lane in range(width)]
    return Lanes(builder, ir.Constant(ir.VectorType(I32, width), numbers))


def _half_codes(number: Lanes) -> Lanes:
    """Return int16 codes of float32 numbers that f16 holds; every NaN becomes the canonical NaN."""
    bits = number.seen_as(I32)
    magnitude = bits & 0x7FFFFFFF
    normal = (magnitude - (112 << 23)) >> 13
    subnormal = (number.magnitude() * 2.0**24).to(I32)  # in units of the smallest subnormal
    code = (magnitude < 113 << 23).choose(subnormal, normal)
    code = magnitude.equals(_INFINITY).choose(0x7C00, code)
    signed = code | ((bits >> 16) & 0x8000)
    return number.is_nan().choose(0x7FFF, signed).to(I16)


@intrinsic
def encode_halves(typing: Any, numbers: Any, codes: Any, count: Any) -> tuple[Any, Callable[..., Any]]:
    """Write the f16 codes (uint16) of ``numbers[:count]``, float32 that are values of f16."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, target = (pointer_of(context, builder, signature.args[k], arguments[k]) for k in (0, 1))
        low = ir.Constant(I64, 0)
        for width in (16, 4, 1):
            high = builder.and_(arguments[2], ir.Constant(I64, -width))
            with cgutils.for_range_slice(builder, low, high, ir.Constant(I64, width), I64) as (k, _):
                _half_codes(load(builder, source, k, width)).store(target, k)
            low = high
        return context.get_dummy_value()

    return types.void(numbers, codes, count), emit


@intrinsic
def lows_run(typing: Any, values: Any, lows: Any, count: Any, other: Any) -> tuple[Any, Callable[..., Any]]:
    """Write the lowest bits of ``values[:count]``; ``other``: the sign bit of those with OTHER_SIGN."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, target = (pointer_of(context, builder, signature.args[k], arguments[k]) for k in (0, 1))
        sign = builder.trunc(arguments[3], I32)
        low = ir.Constant(I64, 0)
        for width in (16, 4, 1):
            high = builder.and_(arguments[2], ir.Constant(I64, -width))
            with cgutils.for_range_slice(builder, low, high, ir.Constant(I64, width), I64) as (k, _):
                _lows(load(builder, source, k, width), splat(builder, sign, width)).store(target, k)
            low = high
        return context.get_dummy_value()

    return types.void(values, lows, count, other), emit


def _lows(values: Lanes, other: Lanes) -> Lanes:
    """Return bytes of lowest bits: the lowest bit of a significand is a power of two that float32 holds."""
    bits = values.seen_as(I32)
    significand = (bits & 0x7FFFFF) | (1 << 23)
    lowest = (significand & (significand * -1)).to(F32).seen_as(I32).field(23, 8) - 127
    exponent = bits.field(23, 8) - (127 + 23) + lowest + LIFT_LOW
    same = bits.field(31, 1).equals(other)
    code = same.choose(exponent + OTHER_SIGN, exponent)
    return values.equals(0.0).choose(LOW_ZERO, code).to(I8)


@kernel
def pack_lows(values: Array, lows: Array, other: int) -> None:
    """Write the plane of lowest bits of a plane of values; ``other`` as in lows_run: 1 for A, 0 for B."""
    lows_run(values, lows, len(values), other)


# --- A: [pass][row][product] -------------------------------------------------------------------------


@kernel
def pack_a(
    codes: Array, values: Array, exponents: Array, order: Array, permuted: bool, coding: Coding
) -> None:
    """Write planes of rows of A, codes (rows, stored), up to the end of the planes, padded with zeros.

    Product k of a pass is the pass's stored column ``order[k]``, which is k unless ``permuted``.
    """
    rows, stored = codes.shape
    products = len(order)
    flat = codes.reshape(-1)
    filled = len(values) // rows
    row = np.zeros(products, codes.dtype)
    for i in range(rows):
        for start in range(0, filled, products):
            place = start * rows + i * products
            count = min(products, stored - start)
            if permuted or count < products:
                for k in range(products):
                    column = start + order[k]
                    row[k] = codes[i, column] if column < stored else 0
                decode_run(row, 0, products, values, exponents, place, coding)
            else:
                decode_run(flat, i * stored + start, count, values, exponents, place, coding)


@kernel
def pack_offsets(
    indices: Array, offsets: Array, stored: int, units: Array, bases: Array, unit: int, stride: int
) -> None:
    """Write where in a pass's rows of B, ``stride`` columns wide, each stored element of A finds its factor.

    ``indices (rows, units of a row)`` are positions of units of ``unit`` elements in their chunks. Product k
    of a pass belongs to the pass's unit ``units[k]`` and meets row ``bases[k] + unit * index`` of the pass.
    """
    rows = indices.shape[0]
    products = len(units)
    for start in range(0, len(offsets) // rows, products):
        for i in range(rows):
            place = start * rows + i * products
            for k in range(products):
                offsets[place + k] = 0
                if start + unit * units[k] < stored:
                    index = indices[i, start // unit + units[k]]
                    offsets[place + k] = (bases[k] + unit * index) * stride


@kernel
def pack_scales_a(codes: Array, scales: Array, bias: int, nan: int) -> None:
    """Write exponents [pass][row] of the power-of-two scales (rows, passes) of A; SPECIAL for NaN."""
    rows, passes = codes.shape
    for number in range(passes):
        for i in range(rows):
            code = codes[i, number]
            scales[number * rows + i] = SPECIAL if code == nan else code - bias


# --- B: [pass][row of the pass][column] --------------------------------------------------------------


@kernel
def _fill(values: Array, exponents: Array, start: int, stop: int, zero: int) -> None:
    for place in range(start, stop):
        values[place], exponents[place] = 0, zero


@kernel
def pack_b(codes: Array, part: Part, values: Array, exponents: Array, order: Array, coding: Coding) -> None:
    """Write planes of some columns of B, codes (k, columns), padded with zero columns and a zero last row.

    Row r of a pass is row ``order[r]`` of those of B that belong to the pass.
    """
    depth, columns = codes.shape
    first, count, n, stride = part
    flat = codes.reshape(-1)
    zero = BYTE_ZERO if exponents.itemsize == 1 else ZERO
    for row in range(len(values) // stride):
        k = row // len(order) * len(order) + order[row % len(order)]
        filled = 0
        if k < depth:
            decode_run(flat, k * columns + first, count, values, exponents, row * stride, coding)
            filled = count
        _fill(values, exponents, row * stride + filled, row * stride + n, zero)


@kernel
def pack_scales_b(codes: Array, part: Part, scales: Array, bias: int, nan: int) -> None:
    """Write exponents [pass][column] of the power-of-two scales (passes, columns) of B; SPECIAL for NaN."""
    first, count, n, stride = part
    for number in range(codes.shape[0]):
        for j in range(n):
            code = codes[number, first + j] if j < count else bias
            scales[number * stride + j] = SPECIAL if code == nan else code - bias


@kernel
def decode_all(codes: Array, values: Array, exponents: Array, coding: Coding) -> None:
    """Write both planes of a flat array of codes."""
    decode_run(codes, 0, len(codes), values, exponents, 0, coding)
