"""Bits of floating-point values: the four formats, flushing, clamping, canonical NaNs, and values in pairs.

Knows where sign, exponent and fraction lie, and what an operation's modifiers do to the bits before and after
the arithmetic; computes nothing itself.

NaN results: every f32, f16 and bf16 operation yields one canonical NaN, 0x7fffffff or 0x7fff, whatever the
operands' payloads (CUDA C++ Programming Guide, "Floating-Point Standard"). The f64 NaN is CUDART_NAN of
math_constants.h, which ptxas's own square root returns for negative operands as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any

import numpy as np

from ..operation import Compute, Values, array, is_recorded

Constant = np.unsignedinteger[Any]


@dataclass(frozen=True, kw_only=True)
class Format:
    """An IEEE 754 binary format: ``fraction_bits`` below the exponent's field, the sign on top.

    ``canonical_nan`` is what operations return for a NaN.
    """

    bits: int
    fraction_bits: int
    canonical_nan: int

    def __post_init__(self) -> None:
        assert self.infinity < self.nan & self.magnitude, f"{self.canonical_nan:#x} is not a NaN"

    @cached_property
    def word(self) -> type[np.unsignedinteger[Any]]:
        """The unsigned type of the bits, and of the constants below."""
        return _WORDS[self.bits]

    @cached_property
    def sign(self) -> Constant:
        """The bit of the sign."""
        return self.word(1 << (self.bits - 1))

    @cached_property
    def magnitude(self) -> Constant:
        """All bits but the sign."""
        return self.word((1 << (self.bits - 1)) - 1)

    @cached_property
    def smallest_normal(self) -> Constant:
        """Bits of the smallest normal value, which are also the exponent's lowest bit."""
        return self.word(1 << self.fraction_bits)

    @cached_property
    def largest_subnormal(self) -> Constant:
        """Bits of the largest subnormal value, which are also all bits of a fraction."""
        return self.word((1 << self.fraction_bits) - 1)

    @cached_property
    def infinity(self) -> Constant:
        """Bits of plus infinity, which are also the exponent's field."""
        return self.word((1 << (self.bits - 1)) - (1 << self.fraction_bits))

    @cached_property
    def nan(self) -> Constant:
        """Bits of the NaN that operations return."""
        return self.word(self.canonical_nan)

    @cached_property
    def bias(self) -> int:
        """What the exponent's field holds for 1.0."""
        return (1 << (self.bits - 2 - self.fraction_bits)) - 1

    @cached_property
    def unity(self) -> Constant:
        """Bits of 1.0."""
        return self.word(self.bias << self.fraction_bits)


_WORDS: dict[int, type[np.unsignedinteger[Any]]] = {16: np.uint16, 32: np.uint32, 64: np.uint64}

FORMATS = {
    "f16":  Format(bits=16, fraction_bits=10, canonical_nan=0x7FFF),
    "bf16": Format(bits=16, fraction_bits=7,  canonical_nan=0x7FFF),
    "f32":  Format(bits=32, fraction_bits=23, canonical_nan=0x7FFF_FFFF),
    "f64":  Format(bits=64, fraction_bits=52, canonical_nan=0xFFF8_0000_0000_0000),
}  # fmt: skip


def format_of(type_name: str) -> Format:
    """Return the format of a type's values, which for "f16x2" are those of "f16"."""
    return FORMATS[type_name.removesuffix("x2")]


def quiet(compute: Compute) -> Compute:
    """Return the same function, without NumPy's floating-point warnings, and with arrays for scalars."""

    @wraps(compute)
    def silent(*sources: Values) -> tuple[Values, ...]:
        with np.errstate(all="ignore"):
            return tuple(array(result) for result in compute(*sources))

    return silent


def in_pairs(function: Callable[..., Values], type_name: str) -> Callable[..., Values]:
    """Return ``function`` of words applied to each half of the words of an x2 type; itself for other
    types.
    """
    if not type_name.endswith("x2"):
        return function
    half = format_of(type_name).word
    whole = _WORDS[2 * format_of(type_name).bits]

    def apart(*sources: Values) -> Values:
        """Compute the halves in turn: what is traced has no axis to put them in."""
        bits = whole(8 * half().itemsize)
        low = function(*(source.astype(half) for source in sources)).astype(whole)
        high = function(*((source >> bits).astype(half) for source in sources)).astype(whole)
        joined: Values = low | high << bits
        return joined

    def paired(*sources: Values) -> Values:
        if any(map(is_recorded, sources)):
            return apart(*sources)
        halves = [np.ascontiguousarray(source[..., None]).view(half) for source in sources]
        joined: Values = np.ascontiguousarray(function(*halves)).view(whole)[..., 0]
        return joined

    return paired


def is_nan(bits: Values, form: Format) -> Values:
    """Return where ``bits`` are of a NaN: a bool array."""
    return (bits & form.magnitude) > form.infinity


def nan_results(type_name: str) -> Callable[[Sequence[Values], Sequence[Values]], Values]:
    """Return the ``where`` of operations whose NaN results are not exact: lanes with a NaN, in a half of an
    x2 type too.
    """
    form = format_of(type_name)

    shifts = (0, form.bits) if type_name.endswith("x2") else (0,)

    def where(sources: Sequence[Values], results: Sequence[Values]) -> Values:
        words = results[0]
        parts = [is_nan((words >> words.dtype.type(shift)).astype(form.word), form) for shift in shifts]
        either: Values = parts[0] | parts[-1]
        return either

    return where


def flushed(bits: Values, form: Format) -> Values:
    """Return ``bits`` with subnormals replaced by the zero of their sign."""
    below = (bits & form.magnitude) - form.word(1)  # of a zero the largest number
    subnormal = below < form.largest_subnormal
    return np.where(subnormal, bits & form.sign, bits) if subnormal.any() else bits


def canonical(bits: Values, form: Format) -> Values:
    """Return ``bits`` with every NaN replaced by the format's own."""
    nan = is_nan(bits, form)
    return np.where(nan, form.nan, bits) if nan.any() else bits


def saturated(bits: Values, form: Format) -> Values:
    """Return ``bits`` clamped to +0.0 .. 1.0, a NaN to +0.0 (modifier .sat).

    Minus zero becomes +0.0 too, as where ptxas folds constants.
    """
    outside = bits > form.infinity  # every negative value and every NaN
    return np.where(outside, form.word(0), np.minimum(bits, form.unity))


def rectified(bits: Values, form: Format) -> Values:
    """Return ``bits`` with negative values, also minus zero, replaced by +0.0 (modifier .relu); a NaN
    stays.
    """
    negative = (bits >= form.sign) & ~is_nan(bits, form)
    return np.where(negative, form.word(0), bits)


def widened(bits: Values, type_name: str) -> Values:
    """Return float64 of the values of bits of "f16", "bf16" or "f32"."""
    if type_name == "bf16":
        bits = bits.astype(np.uint32) << np.uint32(16)
    real = np.float16 if type_name == "f16" else np.float32
    return bits.view(real).astype(np.float64)
