"""Bits of floating-point values: the four formats, flushing, clamping, canonical NaNs, and values in pairs.

Knows where sign, exponent and fraction lie, and what an operation's modifiers do to the bits before and after
the arithmetic; computes nothing itself.

NaN results: every f32, f16 and bf16 operation yields one canonical NaN, 0x7fffffff or 0x7fff, whatever the
operands' payloads (CUDA C++ Programming Guide, "Floating-Point Standard"). The f64 one is CUDART_NAN of
math_constants.h, which ptxas's own square root returns for negative operands as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np

from .operation import Compute, Values


@dataclass(frozen=True, kw_only=True)
class Format:
    """An IEEE 754 binary format: ``fraction_bits`` below the exponent's field, the sign on top.

    ``real`` is the NumPy dtype of the values, None where NumPy has none.
    """

    bits: int
    fraction_bits: int
    nan: int
    real: type[np.floating[Any]] | None

    def __post_init__(self) -> None:
        assert self.infinity < self.nan % 2**self.bits < 2**self.bits, f"{self.nan:#x} is not a NaN"

    @property
    def word(self) -> type[np.unsignedinteger[Any]]:
        """The unsigned type of the bits."""
        return _WORDS[self.bits]

    @property
    def sign(self) -> int:
        """The bit of the sign."""
        return 1 << (self.bits - 1)

    @property
    def smallest_normal(self) -> int:
        """Bits of the smallest normal value, which are also the exponent's lowest bit."""
        return 1 << self.fraction_bits

    @property
    def infinity(self) -> int:
        """Bits of plus infinity, which are also the exponent's field."""
        return self.sign - self.smallest_normal

    @property
    def bias(self) -> int:
        """What the exponent's field holds for 1.0."""
        return (1 << (self.bits - 2 - self.fraction_bits)) - 1

    @property
    def one(self) -> int:
        """Bits of 1.0."""
        return self.bias << self.fraction_bits


_WORDS: dict[int, type[np.unsignedinteger[Any]]] = {16: np.uint16, 32: np.uint32, 64: np.uint64}

FORMATS = {
    "f16":  Format(bits=16, fraction_bits=10, nan=0x7FFF,                 real=np.float16),
    "bf16": Format(bits=16, fraction_bits=7,  nan=0x7FFF,                 real=None),
    "f32":  Format(bits=32, fraction_bits=23, nan=0x7FFF_FFFF,            real=np.float32),
    "f64":  Format(bits=64, fraction_bits=52, nan=0xFFF8_0000_0000_0000, real=np.float64),
}  # fmt: skip


def format_of(type_name: str) -> Format:
    """The format of a type's values, which for "f16x2" are those of "f16"."""
    return FORMATS[type_name.removesuffix("x2")]


def quiet(compute: Compute) -> Compute:
    """The same function, without NumPy's floating-point warnings, and with arrays for scalars."""

    @wraps(compute)
    def silent(*sources: Values) -> tuple[Values, ...]:
        with np.errstate(all="ignore"):
            return tuple(np.asarray(result) for result in compute(*sources))

    return silent


def in_pairs(function: Callable[..., Values], type_name: str) -> Callable[..., Values]:
    """``function`` of words applied to each half of the words of an x2 type; itself for other types."""
    if not type_name.endswith("x2"):
        return function
    half = format_of(type_name).word
    whole = _WORDS[2 * format_of(type_name).bits]

    def paired(*sources: Values) -> Values:
        halves = [np.ascontiguousarray(source[..., None]).view(half) for source in sources]
        joined: Values = np.ascontiguousarray(function(*halves)).view(whole)[..., 0]
        return joined

    return paired


def is_nan(bits: Values, form: Format) -> Values:
    """Where ``bits`` are of a NaN: a bool array."""
    return (bits & form.word(form.sign - 1)) > form.word(form.infinity)


def flushed(bits: Values, form: Format) -> Values:
    """``bits`` with subnormals replaced by the zero of their sign."""
    subnormal = (bits & form.word(form.infinity)) == 0
    return np.where(subnormal, bits & form.word(form.sign), bits)


def canonical(bits: Values, form: Format) -> Values:
    """``bits`` with every NaN replaced by the format's own."""
    nan = is_nan(bits, form)
    return np.where(nan, form.word(form.nan), bits) if nan.any() else bits


def saturated(bits: Values, form: Format) -> Values:
    """``bits`` clamped to +0.0 .. 1.0, a NaN and minus zero to +0.0 (modifier .sat)."""
    outside = bits > form.word(form.infinity)  # every negative value and every NaN
    return np.where(outside, form.word(0), np.minimum(bits, form.word(form.one)))


def rectified(bits: Values, form: Format) -> Values:
    """``bits`` with negative values, minus zero among them, replaced by +0.0 (modifier .relu); a NaN stays."""
    negative = (bits >= form.word(form.sign)) & ~is_nan(bits, form)
    return np.where(negative, form.word(0), bits)


def widened(bits: Values, type_name: str) -> Values:
    """float64 of the values of bits of "f16", "bf16" or "f32"."""
    if type_name == "bf16":
        bits = bits.astype(np.uint32) << np.uint32(16)
    real = np.float16 if type_name == "f16" else np.float32
    return bits.view(real).astype(np.float64)
