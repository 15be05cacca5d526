"""Integer arithmetic: add sub mul mad mul24 mad24 sad div rem abs neg min max dp4a dp2a vabsdiff4.

Knows what PTX ISA 9.0, section 9.7.1 says and the spellings that ptxas 13.0 takes. Carries between
instructions (.cc, addc, subc, madc) are in carries.py. Of the SIMD video instructions there is vabsdiff4,
which nvcc 13.0 still writes (section 9.7.16), without masks and selectors of bytes.

What PTX leaves open is done as in the code that ptxas 13.0 makes for sm_90 (its disassembly): a division by
zero, quotient and remainder alike and of any width, sets all bits; the most negative number by -1 wraps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ....isa.features import Feature
from ...bind.value_types import bits_of
from ..operation import Compute, Operation, Row, Values, array
from .words import UNSIGNED, halves, is_signed, number_dtype, packed, signed, unsigned, wide_dtype

_ALL = ("u16", "u32", "u64", "s16", "s32", "s64")
_NARROW = ("u16", "u32", "s16", "s32")
_SIGNED = ("s16", "s32", "s64")
_PAIRS = ("u16x2", "s16x2")
_WORDS = ("u32", "s32")
_DOUBLE = {"u16": "u32", "u32": "u64", "s16": "s32", "s32": "s64"}

_QUOTIENT = (
    "a quotient by zero is unspecified by PTX, and that of the most negative number by -1 does not "
    "exist; inferred: all bits set, and the number itself, as in ptxas's code for sm_90"
)
_REMAINDER = (
    "of a remainder by zero PTX says nothing, and of negative numbers that it depends on the machine; "
    "inferred: all bits set, and the sign of the dividend, as in ptxas's code for sm_90"
)

Binary = Callable[[Values, Values], Values]


def _operation(type_name: str, sources: int, compute: Compute, note: str = "") -> Operation:
    return Operation(results=(type_name,), sources=(type_name,) * sources, compute=compute, note=note)


# --- sums and differences ------------------------------------------------------------------------


def _wrapping(function: Any) -> Callable[[str], Operation]:
    return lambda type_name: _binary(type_name, (type_name, type_name), function)


def _binary(result: str, sources: tuple[str, ...], function: Callable[..., Values]) -> Operation:
    return Operation(results=(result,), sources=sources, compute=lambda *values: (function(*values),))


def clamped(total: Values) -> Values:
    """Return uint32 bits of int64 totals, clamped to int32 (.sat)."""
    return unsigned(np.clip(total, -(1 << 31), (1 << 31) - 1).astype(np.int32))


def _saturating(function: Any) -> Callable[[str, str], Operation]:
    def compute(a: Values, b: Values) -> tuple[Values]:
        return (clamped(function(signed(a), signed(b), dtype=np.int64)),)

    return lambda saturate, type_name: _operation(type_name, 2, compute)


def _per_half(function: Binary) -> Compute:
    def compute(a: Values, b: Values) -> tuple[Values]:
        (a_low, a_high), (b_low, b_high) = halves(a), halves(b)
        return (packed(function(a_low, b_low), function(a_high, b_high)),)

    return compute


def _add_pairs(type_name: str) -> Operation:
    return _operation(type_name, 2, _per_half(np.add))


def _negate(type_name: str) -> Operation:
    return _operation(type_name, 1, lambda a: (np.negative(a),))


def _absolute(type_name: str) -> Operation:
    return _operation(type_name, 1, lambda a: (unsigned(np.abs(signed(a))),))


# --- the lesser and the greater ------------------------------------------------------------------


def _extreme(function: Any, type_name: str, relu: bool) -> Binary:
    """Return ``function`` of the numbers of two lanes; under .relu no less than zero."""
    dtype = number_dtype(type_name.removesuffix("x2"))

    def compute(a: Values, b: Values) -> Values:
        chosen = function(a.view(dtype), b.view(dtype))
        return unsigned(np.maximum(chosen, 0) if relu else chosen)

    return compute


def _extremes(function: Any) -> Callable[[str, str], Operation]:
    def build(relu: str, type_name: str) -> Operation:
        extreme = _extreme(function, type_name, relu == "relu")
        pairs = type_name.endswith("x2")
        return _operation(type_name, 2, _per_half(extreme) if pairs else lambda a, b: (extreme(a, b),))

    return build


# --- products ------------------------------------------------------------------------------------


def _high_unsigned(a: Values, b: Values) -> Values:
    """Return the upper 64 bits of the products of uint64 lanes, from four products of their halves."""
    mask = 0xFFFFFFFF
    a_low, a_high, b_low, b_high = a & mask, a >> 32, b & mask, b >> 32
    first = np.add(np.multiply(a_high, b_low), np.multiply(a_low, b_low) >> 32)
    second = np.add(np.multiply(a_low, b_high), first & mask)
    high: Values = np.add(np.add(np.multiply(a_high, b_high), first >> 32), second >> 32)
    return high


def _high_signed(a: Values, b: Values) -> Values:
    """As _high_unsigned of two's complement: a negative factor counts 2**64 too much of the other."""
    excess = np.add(np.where(signed(a) < 0, b, 0), np.where(signed(b) < 0, a, 0))
    return np.subtract(_high_unsigned(a, b), excess)


def high_product(type_name: str) -> Binary:
    """Return the upper half of the products, as wide as the factors."""
    bits = bits_of(type_name)
    if bits == 64:
        return _high_signed if is_signed(type_name) else _high_unsigned
    wide = _wide_product(type_name)

    def compute(a: Values, b: Values) -> Values:
        high: Values = np.right_shift(wide(a, b), bits).astype(UNSIGNED[bits])
        return high

    return compute


def _wide_product(type_name: str) -> Binary:
    """Return the whole products, twice as wide as the factors."""
    narrow, wide = number_dtype(type_name), number_dtype(_DOUBLE[type_name])
    return lambda a, b: unsigned(np.multiply(a.view(narrow), b.view(narrow), dtype=wide))


def product_half(half: str, type_name: str) -> Binary:
    """Return what .hi, .lo or .wide takes of the products; the lower half is as wide as the factors."""
    if half == "lo":
        return np.multiply
    return high_product(type_name) if half == "hi" else _wide_product(type_name)


def _result_type(half: str, type_name: str) -> str:
    return _DOUBLE[type_name] if half == "wide" else type_name


def _multiply(half: str, type_name: str) -> Operation:
    return _binary(_result_type(half, type_name), (type_name, type_name), product_half(half, type_name))


def _multiply_add(half: str, type_name: str) -> Operation:
    product, result = product_half(half, type_name), _result_type(half, type_name)
    return _binary(result, (type_name, type_name, result), lambda a, b, c: np.add(product(a, b), c))


def _multiply_add_saturating(product: Binary) -> Compute:
    return lambda a, b, c: (clamped(np.add(signed(product(a, b)), signed(c), dtype=np.int64)),)


def _mad_saturating(half: str, saturate: str, type_name: str) -> Operation:
    return _operation(type_name, 3, _multiply_add_saturating(product_half(half, type_name)))


def _product24(half: str, type_name: str) -> Binary:
    """Return bits 31..0 (.lo) or 47..16 (.hi) of the products of the low 24 bits of each factor."""
    dtype, wide = number_dtype(type_name), wide_dtype(type_name)
    shift = 16 if half == "hi" else 0

    def factor(values: Values) -> Values:
        return (values << 8).view(dtype).astype(wide) >> 8

    return lambda a, b: (np.multiply(factor(a), factor(b)) >> shift).astype(np.uint32)


def _multiply24(half: str, type_name: str) -> Operation:
    product = _product24(half, type_name)
    return _operation(type_name, 2, lambda a, b: (product(a, b),))


def _multiply_add24(half: str, type_name: str) -> Operation:
    product = _product24(half, type_name)
    return _operation(type_name, 3, lambda a, b, c: (np.add(product(a, b), c),))


def _mad24_saturating(half: str, saturate: str, type_name: str) -> Operation:
    return _operation(type_name, 3, _multiply_add_saturating(_product24(half, type_name)))


# --- dot products --------------------------------------------------------------------------------


def _elements(type_name: str, bits: int, first: int, count: int) -> Callable[[Values], list[Values]]:
    """From uint32 lanes ``count`` elements of ``bits`` bits, from bit ``first`` upwards, as uint32."""
    dtype = number_dtype(type_name)
    shifts = [32 - first - bits * (i + 1) for i in range(count)]  # which puts an element's sign at bit 31
    return lambda a: [unsigned((a << shift).view(dtype) >> (32 - bits)) for shift in shifts]


def _dot(a_type: str, b_type: str, a_bits: int, first: int) -> Operation:
    """c plus as many products as a has elements; b's are bytes, from bit ``first`` upwards."""
    count = 32 // a_bits
    of_a, of_b = _elements(a_type, a_bits, 0, count), _elements(b_type, 8, first, count)
    total = "u32" if a_type == b_type == "u32" else "s32"

    def compute(a: Values, b: Values, c: Values) -> tuple[Values]:
        for factor, other in zip(of_a(a), of_b(b), strict=True):
            c = np.add(c, np.multiply(factor, other))
        return (c,)

    return Operation(results=(total,), sources=(a_type, b_type, total), compute=compute)


def _dp4a(a_type: str, b_type: str) -> Operation:
    return _dot(a_type, b_type, 8, 0)


def _dp2a(half: str, a_type: str, b_type: str) -> Operation:
    return _dot(a_type, b_type, 16, 16 if half == "hi" else 0)


# --- differences and quotients -------------------------------------------------------------------


def _sum_of_differences(type_name: str) -> Operation:
    dtype = number_dtype(type_name)

    def compute(a: Values, b: Values, c: Values) -> tuple[Values]:
        less = a.view(dtype) < b.view(dtype)
        return (np.add(c, np.where(less, np.subtract(b, a), np.subtract(a, b))),)

    return _operation(type_name, 3, compute)


def _byte_sums(result: str, a_type: str, b_type: str, accumulate: str) -> Operation:
    """Return the operation |a - b| byte by byte, or c plus their sum; each is lower than 256."""
    of_a, of_b = _elements(a_type, 8, 0, 4), _elements(b_type, 8, 0, 4)

    def compute(a: Values, b: Values, c: Values) -> tuple[Values]:
        pairs = zip(of_a(a), of_b(b), strict=True)
        bytes_ = [unsigned(np.abs(signed(np.subtract(first, other)))) & 0xFF for first, other in pairs]
        if accumulate:
            return (sum(bytes_, c),)
        return (np.bitwise_or.reduce([byte << 8 * place for place, byte in enumerate(bytes_)]),)

    return Operation(results=(result,), sources=(a_type, b_type, result), compute=compute)


def _with_sign(magnitude: Values, negative: Values) -> Values:
    return np.where(negative, np.negative(magnitude), magnitude)


def _all_ones_by_zero(value: Values, divisor: Values) -> tuple[Values]:
    return (np.where(divisor == 0, np.iinfo(value.dtype).max, value),)


def _divide_signed(a: Values, b: Values) -> tuple[Values]:
    number, divisor = unsigned(np.abs(signed(a))), unsigned(np.abs(signed(b)))
    quotient = np.floor_divide(number, np.maximum(divisor, 1))
    return _all_ones_by_zero(_with_sign(quotient, signed(a ^ b) < 0), b)


def _divide_unsigned(a: Values, b: Values) -> tuple[Values]:
    return _all_ones_by_zero(np.floor_divide(a, np.maximum(b, 1)), b)


def _remainder_signed(a: Values, b: Values) -> tuple[Values]:
    number, divisor = unsigned(np.abs(signed(a))), unsigned(np.abs(signed(b)))
    remainder = np.remainder(number, np.maximum(divisor, 1))
    return _all_ones_by_zero(_with_sign(remainder, signed(a) < 0), b)


def _remainder_unsigned(a: Values, b: Values) -> tuple[Values]:
    return _all_ones_by_zero(np.remainder(a, np.maximum(b, 1)), b)


def _divide(type_name: str) -> Operation:
    compute = _divide_signed if is_signed(type_name) else _divide_unsigned

    def where(given: Sequence[Values], results: Sequence[Values]) -> Values:
        a, b = given
        if not is_signed(type_name):
            return array(b == 0)
        return array((b == 0) | ((signed(a) == np.iinfo(signed(a).dtype).min) & (signed(b) == -1)))

    return replace(_operation(type_name, 2, compute, _QUOTIENT), fidelity="inferred", where=where)


def _remainder(type_name: str) -> Operation:
    compute = _remainder_signed if is_signed(type_name) else _remainder_unsigned

    def where(given: Sequence[Values], results: Sequence[Values]) -> Values:
        a, b = given
        if not is_signed(type_name):
            return array(b == 0)
        return array((signed(a) < 0) | (signed(b) <= 0))

    return replace(_operation(type_name, 2, compute, _REMAINDER), fidelity="inferred", where=where)


_add, _subtract = _wrapping(np.add), _wrapping(np.subtract)
_add_saturating, _subtract_saturating = _saturating(np.add), _saturating(np.subtract)
_minimum, _maximum = _extremes(np.minimum), _extremes(np.maximum)
_HALVES, _ADD = ("lo", "hi"), ("", "add")

_PAIRED = Feature.INTEGER_PAIRS
# fmt: off
ROWS: tuple[Row, ...] = (
    Row(opcode="add",   slots=(_ALL,),                       build=_add),
    Row(opcode="add",   slots=(("sat",), ("s32",)),          build=_add_saturating),
    Row(opcode="add",   slots=(_PAIRS,),                     build=_add_pairs, since=(8, 0), feature=_PAIRED),
    Row(opcode="sub",   slots=(_ALL,),                       build=_subtract),
    Row(opcode="sub",   slots=(("sat",), ("s32",)),          build=_subtract_saturating),
    Row(opcode="mul",   slots=(_HALVES, _ALL),               build=_multiply),
    Row(opcode="mul",   slots=(("wide",), _NARROW),          build=_multiply),
    Row(opcode="mad",   slots=(_HALVES, _ALL),               build=_multiply_add),
    Row(opcode="mad",   slots=(("wide",), _NARROW),          build=_multiply_add),
    Row(opcode="mad",   slots=(("hi",), ("sat",), ("s32",)), build=_mad_saturating),
    Row(opcode="mul24", slots=(_HALVES, _WORDS),             build=_multiply24),
    Row(opcode="mad24", slots=(_HALVES, _WORDS),             build=_multiply_add24),
    Row(opcode="mad24", slots=(("hi",), ("sat",), ("s32",)), build=_mad24_saturating),
    Row(opcode="sad",   slots=(_ALL,),                       build=_sum_of_differences),
    Row(opcode="div",   slots=(_ALL,),                       build=_divide),
    Row(opcode="rem",   slots=(_ALL,),                       build=_remainder),
    Row(opcode="abs",   slots=(_SIGNED,),                    build=_absolute),
    Row(opcode="neg",   slots=(_SIGNED,),                    build=_negate),
    Row(opcode="min",   slots=(("",), _ALL),                 build=_minimum),
    Row(opcode="min",   slots=(("relu",), ("s32",)),         build=_minimum, since=(8, 0), feature=_PAIRED),
    Row(opcode="min",   slots=(("",), _PAIRS),               build=_minimum, since=(8, 0), feature=_PAIRED),
    Row(opcode="min",   slots=(("relu",), ("s16x2",)),       build=_minimum, since=(8, 0), feature=_PAIRED),
    Row(opcode="max",   slots=(("",), _ALL),                 build=_maximum),
    Row(opcode="max",   slots=(("relu",), ("s32",)),         build=_maximum, since=(8, 0), feature=_PAIRED),
    Row(opcode="max",   slots=(("",), _PAIRS),               build=_maximum, since=(8, 0), feature=_PAIRED),
    Row(opcode="max",   slots=(("relu",), ("s16x2",)),       build=_maximum, since=(8, 0), feature=_PAIRED),
    Row(opcode="dp4a",  slots=(_WORDS, _WORDS),              build=_dp4a, since=(5, 0)),
    Row(opcode="dp2a",  slots=(_HALVES, _WORDS, _WORDS),     build=_dp2a, since=(5, 0)),
    Row(opcode="vabsdiff4", slots=(("u32",), ("u32",), ("u32",), _ADD), build=_byte_sums, since=(3, 0)),
    Row(opcode="vabsdiff4", slots=(("u32",), ("s32",), ("s32",), _ADD), build=_byte_sums, since=(3, 0)),
)
# fmt: on
