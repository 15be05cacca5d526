"""Comparisons and choices: setp set selp slct testp copysign.

Knows the numbers of integer and floating types, the comparison operators of PTX ISA 9.0 (sections 9.3.1 and
9.7.5 to 9.7.7) and the spellings that ptxas 13.0 takes. Comparisons are exact: no value is rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....isa.features import Feature
from ...bind.value_types import bits_of, dtype_of
from ..operation import Operation, Row, Values
from .words import halves, number_dtype, packed

Test = Callable[[Values, Values], Values]  # of two lanes' bits: bool

_BITS = ("b16", "b32", "b64")
_UNSIGNED = ("u16", "u32", "u64")
_SIGNED = ("s16", "s32", "s64")
_FLOATS = ("f32", "f64")

_EQUALITY = ("eq", "ne")
_ORDER = (*_EQUALITY, "lt", "le", "gt", "ge")
_UNSIGNED_ORDER = (*_ORDER, "lo", "ls", "hi", "hs")
_FLOAT_ORDER = (*_ORDER, "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
_COMBINE = ("", "and", "or", "xor")

# --- comparison operators ------------------------------------------------------------------------


def _unordered(a: Values, b: Values) -> Values:
    unordered: Values = (a != a) | (b != b)
    return unordered


# A name ending in "u" holds of unordered numbers, too: it is what the opposite is not.
_COMPARISONS: dict[str, Callable[[Values, Values], Values]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: (a < b) | (a > b),
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lo": lambda a, b: a < b,
    "ls": lambda a, b: a <= b,
    "hi": lambda a, b: a > b,
    "hs": lambda a, b: a >= b,
    "equ": lambda a, b: ~((a < b) | (a > b)),
    "neu": lambda a, b: a != b,
    "ltu": lambda a, b: ~(a >= b),
    "leu": lambda a, b: ~(a > b),
    "gtu": lambda a, b: ~(a <= b),
    "geu": lambda a, b: ~(a < b),
    "num": lambda a, b: ~_unordered(a, b),
    "nan": _unordered,
}

_COMBINATIONS: dict[str, Any] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}

# --- bits as numbers -----------------------------------------------------------------------------

# Exponent bits and sign bit of the floating types.
_EXPONENTS = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000, "f64": 0x7FF0000000000000}
_SIGNS = {"f16": 0x8000, "bf16": 0x8000, "f32": 0x80000000, "f64": 0x8000000000000000}


def flushed(values: Values, type_name: str) -> Values:
    """Return the bits with subnormal numbers made zeros of their sign (.ftz)."""
    return np.where((values & _EXPONENTS[type_name]) == 0, values & _SIGNS[type_name], values)


def _bfloat_numbers(values: Values) -> Values:
    return (values.astype(np.uint32) << 16).view(np.float32)


_FLOAT_NUMBERS: dict[str, Callable[[Values], Values]] = {
    "f16": lambda values: values.view(np.float16),
    "bf16": _bfloat_numbers,
    "f32": lambda values: values.view(np.float32),
    "f64": lambda values: values.view(np.float64),
}


def _numbers(type_name: str, flush: bool) -> Callable[[Values], Values]:
    """Return a view of the bits of a type as numbers that compare as the type does."""
    floats = _FLOAT_NUMBERS.get(type_name)
    if floats is None:
        dtype = number_dtype(type_name)
        return lambda values: values.view(dtype)
    return (lambda values: floats(flushed(values, type_name))) if flush else floats


def comparison(name: str, type_name: str, flush: bool = False) -> Test:
    """Return the comparison ``name`` of the bits of a scalar type; under ``flush`` subnormals are zeros."""
    compare, numbers = _COMPARISONS[name], _numbers(type_name, flush)
    return lambda a, b: compare(numbers(a), numbers(b))


def _combined(result: Values, combine: str, others: tuple[Values, ...]) -> Values:
    """Return the result itself, or combined with the predicate source."""
    return _COMBINATIONS[combine](result, *others) if combine else result


# --- setp ----------------------------------------------------------------------------------------


def _predicates(name: str, combine: str, flush: str, type_name: str) -> Operation:
    """p from the comparison and q from its opposite; of a vector, p from its low and q from its high element.

    The scalar 16-bit floating types have no q.
    """
    element = type_name.removesuffix("x2")
    test = comparison(name, element, flush == "ftz")

    def opposites(a: Values, b: Values) -> tuple[Values, Values]:
        result = test(a, b)
        return result, ~result

    def of_halves(a: Values, b: Values) -> tuple[Values, Values]:
        (a_low, a_high), (b_low, b_high) = halves(a), halves(b)
        return test(a_low, b_low), test(a_high, b_high)

    both = opposites if element == type_name else of_halves

    def compute(a: Values, b: Values, *others: Values) -> tuple[Values, ...]:
        return tuple(_combined(result, combine, others) for result in both(a, b))

    return Operation(
        results=("pred", "pred"),
        sources=(type_name, type_name, *_predicate(combine)),
        compute=compute,
        optional=1,
    )


def _predicate_alone(name: str, combine: str, flush: str, type_name: str) -> Operation:
    test = comparison(name, type_name, flush == "ftz")
    return Operation(
        results=("pred",),
        sources=(type_name, type_name, *_predicate(combine)),
        compute=lambda a, b, *others: (_combined(test(a, b), combine, others),),
    )


def _predicate(combine: str) -> tuple[str, ...]:
    return ("pred",) if combine else ()


# --- set -----------------------------------------------------------------------------------------

# What set writes for true; false is zero. Of integers all bits are set.
_ONE = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}


def _truth(result_type: str) -> Callable[[Values], Values]:
    dtype = dtype_of(result_type)
    true = np.array(_ONE.get(result_type, (1 << bits_of(result_type)) - 1), dtype)
    return lambda result: np.where(result, true, np.zeros((), dtype))


def _set(name: str, combine: str, flush: str, result_type: str, type_name: str) -> Operation:
    test, truth = comparison(name, type_name, flush == "ftz"), _truth(result_type)

    def compute(a: Values, b: Values, *others: Values) -> tuple[Values]:
        return (truth(_combined(test(a, b), combine, others)),)

    return Operation(
        results=(result_type,), sources=(type_name, type_name, *_predicate(combine)), compute=compute
    )


def _set_pairs(name: str, combine: str, flush: str, result_type: str, type_name: str) -> Operation:
    """Return the operation on each half; the predicate is combined with both."""
    element = "u16" if bits_of(result_type.removesuffix("x2")) == 32 else result_type.removesuffix("x2")
    of_half = _set(name, combine, flush, element, type_name.removesuffix("x2")).compute

    def compute(a: Values, b: Values, *others: Values) -> tuple[Values]:
        (a_low, a_high), (b_low, b_high) = halves(a), halves(b)
        return (packed(*of_half(a_low, b_low, *others), *of_half(a_high, b_high, *others)),)

    return Operation(
        results=(result_type,), sources=(type_name, type_name, *_predicate(combine)), compute=compute
    )


# --- choices -------------------------------------------------------------------------------------


def _chosen(condition: Values, a: Values, b: Values) -> Values:
    return np.where(condition, a, b)


def _select(type_name: str) -> Operation:
    return Operation(
        results=(type_name,),
        sources=(type_name, type_name, "pred"),
        compute=lambda a, b, p: (_chosen(p, a, b),),
    )


def _select_by_sign(flush: str, type_name: str, condition: str) -> Operation:
    numbers = _numbers(condition, flush == "ftz")
    return Operation(
        results=(type_name,),
        sources=(type_name, type_name, condition),
        compute=lambda a, b, c: (_chosen(numbers(c) >= 0, a, b),),
    )


# --- classes of floating numbers -----------------------------------------------------------------

# From the bits without the sign, with infinity's, and with those of the smallest normal number.
_CLASSES: dict[str, Callable[[Values, int, int], Values]] = {
    "finite": lambda bits, infinity, normal: bits < infinity,
    "infinite": lambda bits, infinity, normal: bits == infinity,
    "number": lambda bits, infinity, normal: bits <= infinity,
    "notanumber": lambda bits, infinity, normal: bits > infinity,
    "normal": lambda bits, infinity, normal: ((bits >= normal) & (bits < infinity)) | (bits == 0),
    "subnormal": lambda bits, infinity, normal: (bits < normal) & (bits != 0),
}


def _classify(name: str, type_name: str) -> Operation:
    """Return zeros count as normal, as PTX says."""
    belongs, infinity = _CLASSES[name], _EXPONENTS[type_name]
    normal, magnitude = infinity & -infinity, _SIGNS[type_name] - 1
    return Operation(
        results=("pred",),
        sources=(type_name,),
        compute=lambda a: (belongs(a & magnitude, infinity, normal),),
    )


def _copy_sign(type_name: str) -> Operation:
    """b with the sign of a."""
    sign = _SIGNS[type_name]
    return Operation(
        results=(type_name,),
        sources=(type_name, type_name),
        compute=lambda a, b: ((a & sign) | (b & (sign - 1)),),
    )


_WORDS = ("u32", "s32")
_INTEGERS = ("u16", "s16", "u32", "s32")
_NONE = ("",)
_FLUSH = ("", "ftz")
_SELECTED = (*_BITS, *_UNSIGNED, *_SIGNED, *_FLOATS)

_SOURCES: tuple[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...] = (
    # types              comparisons       flush
    (_BITS,              _EQUALITY,        _NONE),
    (_UNSIGNED,          _UNSIGNED_ORDER,  _NONE),
    (_SIGNED,            _ORDER,           _NONE),
    (("f32",),           _FLOAT_ORDER,     _FLUSH),
    (("f64",),           _FLOAT_ORDER,     _NONE),
)  # fmt: skip

_BF16_ARITHMETIC = Feature.BF16_ARITHMETIC
# fmt: off
ROWS: tuple[Row, ...] = (
    *(Row(opcode="setp", slots=(names, _COMBINE, flush, types), build=_predicates)
      for types, names, flush in _SOURCES),
    Row(opcode="setp", slots=(_FLOAT_ORDER, _COMBINE, _FLUSH, ("f16",)),
        build=_predicate_alone, since=(4, 2)),
    Row(opcode="setp", slots=(_FLOAT_ORDER, _COMBINE, _FLUSH, ("f16x2",)), build=_predicates, since=(4, 2)),
    Row(opcode="setp", slots=(_FLOAT_ORDER, _COMBINE, _NONE, ("bf16",)),
        build=_predicate_alone, since=(7, 8), feature=_BF16_ARITHMETIC),
    Row(opcode="setp", slots=(_FLOAT_ORDER, _COMBINE, _NONE, ("bf16x2",)),
        build=_predicates, since=(7, 8), feature=_BF16_ARITHMETIC),
    *(Row(opcode="set", slots=(names, _COMBINE, flush, ("u32", "s32", "f32"), types), build=_set)
      for types, names, flush in _SOURCES),
    *(Row(opcode="set", slots=(names, _COMBINE, flush, ("f16",), types), build=_set, since=(4, 2))
      for types, names, flush in _SOURCES),
    *(Row(opcode="set", slots=(names, _COMBINE, _NONE, ("bf16",), types),
          build=_set, since=(7, 8), feature=_BF16_ARITHMETIC)
      for types, names, _ in _SOURCES),
    Row(opcode="set", slots=(_FLOAT_ORDER, _COMBINE, _FLUSH, ("f16",), ("f16",)), build=_set, since=(4, 2)),
    Row(opcode="set", slots=(_FLOAT_ORDER, _COMBINE, _NONE, ("bf16",), ("f16",)),
        build=_set, since=(7, 8), feature=_BF16_ARITHMETIC),
    Row(opcode="set", slots=(_FLOAT_ORDER, _COMBINE, _FLUSH, _INTEGERS, ("f16",)), build=_set, since=(6, 5)),
    Row(opcode="set", slots=(_FLOAT_ORDER, _COMBINE, _NONE, (*_INTEGERS, "bf16"), ("bf16",)),
        build=_set, since=(7, 8), feature=_BF16_ARITHMETIC),
    Row(opcode="set", slots=(_FLOAT_ORDER, _COMBINE, _FLUSH, _WORDS, ("f16x2",)),
        build=_set_pairs, since=(6, 5)),
    Row(opcode="set", slots=(_FLOAT_ORDER, _COMBINE, _FLUSH, ("f16x2",), ("f16x2",)),
        build=_set_pairs, since=(4, 2)),
    Row(opcode="set", slots=(_FLOAT_ORDER, _COMBINE, _NONE, (*_WORDS, "bf16x2"), ("bf16x2",)),
        build=_set_pairs, since=(7, 8), feature=_BF16_ARITHMETIC),
    Row(opcode="selp", slots=(_SELECTED,), build=_select),
    Row(opcode="slct", slots=(_NONE, _SELECTED, ("s32", "f32")), build=_select_by_sign),
    Row(opcode="slct", slots=(("ftz",), _SELECTED, ("f32",)), build=_select_by_sign),
    Row(opcode="testp", slots=(tuple(_CLASSES), _FLOATS), build=_classify, since=(2, 0)),
    Row(opcode="copysign", slots=(_FLOATS,), build=_copy_sign, since=(2, 0)),
)
# fmt: on
