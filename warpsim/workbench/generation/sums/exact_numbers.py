"""Arrays of exact numbers: decoding, cutting and rounding, as the sums of coverage need them.

A third derivation of the arithmetic, beside the kernels and reference.py: it shares nothing with them but
the facts in formats and architectures, and keeps what they throw away (what was cut off, ties, carries).
Knows bit fields and rounding; does not know which products a rule adds up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ....isa.formats import Format, Specials

Array = Any  # npt.NDArray[Any], which NumPy's types lose at every comparison and reduction

FINITE, INFINITE, NOT_A_NUMBER = 0, 1, 2
BELOW_HALF, HALF, ABOVE_HALF = 1, 2, 3  # what was cut off; 0 is nothing

_WIDEST = 62  # bits that an int64 magnitude may be shifted by


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """``significand * 2**scale``, the significand signed; arrays of one shape.

    ``exponent`` is what tensor cores align by. ``special`` is FINITE, INFINITE or NOT_A_NUMBER; an Inf has
    a significand of its sign. ``negative`` is the sign bit, which a zero has too.
    """

    significand: Array
    scale: Array
    exponent: Array
    special: Array
    negative: Array

    def __getitem__(self, index: Any) -> Numbers:
        return Numbers(**{name: getattr(self, name)[index] for name in _FIELDS})

    def chosen(self, outputs: Array) -> Numbers:
        """Return those of some outputs, by their numbers; the first three axes are those of outputs."""
        return self[np.unravel_index(outputs, self.significand.shape[:3])]

    @property
    def nonzero(self) -> Array:
        """Where the number is not zero."""
        return self.significand != 0

    def subnormal(self, element: Format) -> Array:
        """Return where it is a subnormal number of a format."""
        small = np.abs(self.significand) < 1 << element.fraction_bits
        return _flags(small & self.nonzero & (self.special == FINITE))

    def flushed(self, element: Format) -> Numbers:
        """Return subnormal numbers of a format as zeros (no chip reads them so)."""
        return replace(self, significand=np.where(self.subnormal(element), 0, self.significand))

    def exact(self) -> Numbers:
        """Return the same with Python integers, for sums of any width."""
        wide = {name: getattr(self, name).astype(object) for name in ("significand", "scale", "exponent")}
        return Numbers(**wide, special=self.special, negative=self.negative)


_FIELDS = ("significand", "scale", "exponent", "special", "negative")


def decode(codes: Array, element: Format) -> Numbers:
    """Return the numbers of an array of codes."""
    bits = codes.astype(np.uint64)
    negative = (bits & np.uint64(element.sign_bit)) != 0
    if not element.is_float:
        value = bits.astype(np.int64) & element.mask
        value = value - ((value & element.sign_bit) << 1)
        zero = np.zeros(value.shape, np.int64)
        return Numbers(significand=value, scale=zero, exponent=zero, special=zero, negative=value < 0)
    magnitude = bits & np.uint64(element.mask & ~element.sign_bit)
    magnitude = (magnitude >> np.uint64(element.ignored_bits)).astype(np.int64)
    fraction = magnitude & ((1 << element.fraction_bits) - 1)
    field = magnitude >> element.fraction_bits
    normal = (field > 0) | (element.fraction_bits == 0)  # without fractions neither zero nor subnormals
    exponent = np.where(normal, field - element.bias, element.minimum_exponent)
    significand = fraction + (normal.astype(np.int64) << element.fraction_bits)
    return Numbers(
        significand=np.where(negative, -significand, significand),
        scale=exponent - element.fraction_bits,
        exponent=exponent,
        special=_special(field, fraction, element),
        negative=negative,
    )


# What a number of the largest exponent field is, by its fraction and the largest fraction.
_SPECIAL: dict[Specials, Callable[[Array, int], Array]] = {
    Specials.INFINITIES: lambda fraction, ones: np.where(fraction > 0, NOT_A_NUMBER, INFINITE),
    Specials.ONE_NAN: lambda fraction, ones: np.where(fraction == ones, NOT_A_NUMBER, FINITE),
    Specials.NONE: lambda fraction, ones: np.full(fraction.shape, FINITE),
}


def _special(field: Array, fraction: Array, element: Format) -> Array:
    full = field == (1 << element.exponent_bits) - 1
    special = _SPECIAL[element.specials](fraction, (1 << element.fraction_bits) - 1)
    return np.where(full, special, FINITE).astype(np.int8)


def product(x: Numbers, y: Numbers) -> Numbers:
    """Return ``x * y``, exact and not normalised; Inf * 0 is NaN."""
    significand = x.significand * y.significand
    special = np.maximum(x.special, y.special)
    invalid = (special == INFINITE) & (significand == 0)
    return Numbers(
        significand=significand,
        scale=x.scale + y.scale,
        exponent=x.exponent + y.exponent,
        special=np.where(invalid, NOT_A_NUMBER, special).astype(np.int8),
        negative=x.negative ^ y.negative,
    )


def bit_length(magnitude: Array) -> Array:
    """Return bits of non-negative integers below 2**53, or of Python integers."""
    if magnitude.dtype == object:
        return np.frompyfunc(int.bit_length, 1, 1)(magnitude)
    return np.frexp(magnitude.astype(np.float64))[1].astype(np.int64)


def cut(magnitude: Array, count: Array) -> tuple[Array, Array, Array]:
    """Return magnitudes without their ``count`` lowest bits, what was cut off, and its class (0 to
    ABOVE_HALF).

    A negative count shifts up.
    """
    down, up = np.maximum(count, 0), np.maximum(-count, 0)
    if magnitude.dtype != object:
        down, up = np.minimum(down, _WIDEST), np.minimum(up, _WIDEST)
    raised = magnitude << up
    kept = raised >> down
    rest = raised - (kept << down)
    twice, unit = 2 * rest, np.left_shift(magnitude * 0 + 1, down)
    tail = _flags(rest > 0).astype(np.int8)  # BELOW_HALF, one more at half a unit, and one more above it
    return kept, rest, tail + _flags(twice >= unit) + _flags(twice > unit)


# --- rounding --------------------------------------------------------------------------------------

# Does the kept magnitude grow by a unit: (negative, odd, class of what was cut off).
_GROWS: dict[str, Callable[[Array, Array, Array], Array]] = {
    "cut": lambda negative, odd, tail: np.zeros(tail.shape, np.bool_),
    "rz": lambda negative, odd, tail: np.zeros(tail.shape, np.bool_),
    "rn": lambda negative, odd, tail: (tail == ABOVE_HALF) | ((tail == HALF) & odd),
    "ra": lambda negative, odd, tail: tail >= HALF,
    "rm": lambda negative, odd, tail: negative & (tail > 0),
    "rp": lambda negative, odd, tail: ~negative & (tail > 0),
    "away": lambda negative, odd, tail: tail > 0,
}
# Does what is too large become Inf, and not the largest finite number.
_OVERFLOWS: dict[str, Callable[[Array], Array]] = {
    "cut": lambda negative: np.ones(negative.shape, np.bool_),
    "rn": lambda negative: np.ones(negative.shape, np.bool_),
    "ra": lambda negative: np.ones(negative.shape, np.bool_),
    "rz": lambda negative: np.zeros(negative.shape, np.bool_),
    "rm": lambda negative: negative,
    "rp": lambda negative: ~negative,
}


def grows(mode: str, negative: Array, odd: Array, tail: Array) -> Array:
    """Return where a mode of rounding adds a unit to kept magnitudes, by the class of what was cut off."""
    return _GROWS[mode](negative, odd, tail)


@dataclass(frozen=True, kw_only=True)
class Rounded:
    """What rounding did: code, class of what was cut off, whether the last kept bit was odd, and overflow."""

    code: Array
    negative: Array
    tail: Array
    odd: Array
    overflow: Array
    magnitude: Array
    kept: Array  # of the magnitude, before rounding adds to it
    grown: Array  # and after
    small: Array  # below the normal numbers before rounding

    @property
    def carried(self) -> Array:
        """Whether the rounding carried into the next binade: 1 bits became a power of two."""
        return _flags(self.kept > 0) & _flags(self.grown & self.kept == 0)

    @property
    def subnormal(self) -> Array:
        """Whether the value was subnormal before it was rounded."""
        return self.small & _flags(self.magnitude != 0)

    @property
    def vanished(self) -> Array:
        """Whether it is not zero, and was rounded to zero."""
        return _flags(self.grown == 0) & _flags(self.magnitude != 0)


def rounded(total: Array, unit: Array, element: Format, precision: int, mode: str) -> Rounded:
    """Return codes of ``total * 2**unit`` to ``precision`` bits; gradual underflow; zero is +0."""
    negative, magnitude = _flags(total < 0), np.abs(total)
    smallest = element.minimum_exponent - (precision - 1)
    own = bit_length(magnitude) + unit - precision
    place = np.where(_flags(magnitude == 0), smallest, np.maximum(own, smallest))
    kept, _, tail = cut(magnitude, place - unit)
    odd = _flags(kept & 1)
    grown = kept + _GROWS[mode](negative, odd, tail)
    code = ((place - smallest) << element.fraction_bits) + (grown << (element.fraction_bits + 1 - precision))
    infinity = ((1 << element.exponent_bits) - 1) << element.fraction_bits
    overflow = _flags(code >= infinity)
    code = np.where(overflow, infinity - 1 + _OVERFLOWS[mode](negative), code)
    return Rounded(
        code=code + negative.astype(code.dtype) * element.sign_bit,
        negative=negative,
        tail=tail,
        odd=odd,
        overflow=overflow,
        magnitude=magnitude,
        kept=kept,
        grown=grown,
        small=_flags(own < smallest),
    )


def _flags(array: Array) -> Array:
    """Return comparisons of Python integers, which NumPy leaves as objects, as booleans."""
    return array.astype(np.bool_, copy=False)


def special_of(terms: Numbers) -> tuple[Array, Array]:
    """Return the special class of sums over the last axis, and whether the Inf is negative."""
    infinite = terms.special == INFINITE
    plus = (infinite & (terms.significand > 0)).any(-1)
    minus = (infinite & (terms.significand < 0)).any(-1)
    invalid = (terms.special == NOT_A_NUMBER).any(-1) | (plus & minus)
    return np.where(invalid, NOT_A_NUMBER, np.where(plus | minus, INFINITE, FINITE)), minus


def with_specials(code: Array, special: Array, negative: Array, element: Format) -> Array:
    """Return codes with the canonical NaN and the infinities in place."""
    infinite = negative.astype(code.dtype) * code.dtype.type(element.sign_bit) + element.infinity
    return np.where(
        special == NOT_A_NUMBER, element.canonical_nan, np.where(special == INFINITE, infinite, code)
    )


def joined(parts: list[Numbers]) -> Numbers:
    """Return numbers side by side along a new last axis."""
    return Numbers(**{name: np.stack([getattr(part, name) for part in parts], -1) for name in _FIELDS})


def beside(x: Numbers, y: Numbers) -> Numbers:
    """Return ``x (..., n)`` with ``y (...)`` as one more element of the last axis."""
    merged = {
        name: np.concatenate([getattr(x, name), getattr(y, name)[..., None]], axis=-1) for name in _FIELDS
    }
    return Numbers(**merged)
