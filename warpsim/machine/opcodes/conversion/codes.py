"""Floating-point codes and the numbers they stand for: the fields of each format, one exact rounding.

Knows how a code splits into sign, significand and exponent, and how a number becomes the code of any
format under every rounding of PTX. Does not know registers, packing, or which conversions exist. All of it
is integer arithmetic on bits, so the process's rounding mode and flushing of subnormals have no say.

Encodings: IEEE 754 for f16, f32 and f64; PTX ISA 9.0, section 5.2.3 "Alternate Floating-Point Data Formats",
and the OCP MX specification 1.0 for the rest. Roundings: PTX ISA 9.0, section 9.7.9.21 "cvt".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ....isa import formats

Array = npt.NDArray[Any]
Specials = Literal["ieee", "nan", "none"]  # infinities and NaNs; one NaN a sign, no infinity; neither

_ONE, _MOST_BITS = np.uint64(1), 62  # significands have at most 62 bits: twice a remainder fits
_RANDOM_BITS = 47  # beyond this shift no random bits reach the kept part of a significand of 24 bits


@dataclass(frozen=True, kw_only=True)
class Layout:
    """One format: its fields, and what its top codes mean. ``bits`` is derived."""

    name: str
    exponent_bits: int
    fraction_bits: int
    specials: Specials
    signed: bool = True

    def __hash__(self) -> int:
        return hash(self.name)  # names are unique

    @cached_property
    def bits(self) -> int:
        """The width of a code."""
        return self.signed + self.exponent_bits + self.fraction_bits

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The unsigned dtype that holds a code."""
        return np.dtype(f"u{max(8, 1 << (self.bits - 1).bit_length()) // 8}")

    @cached_property
    def bias(self) -> int:
        """Exponent bias."""
        return int((1 << (self.exponent_bits - 1)) - 1)

    @cached_property
    def subnormals(self) -> bool:
        """Whether codes with a zero exponent field are subnormal; a format of powers of two has none."""
        return self.fraction_bits > 0

    @cached_property
    def minimum_exponent(self) -> int:
        """Exponent of the smallest normal number."""
        return int(self.subnormals) - self.bias

    @cached_property
    def sign(self) -> int:
        """The sign bit, or 0 where there is none."""
        return 1 << (self.bits - 1) if self.signed else 0

    @cached_property
    def magnitude(self) -> int:
        """All bits but the sign."""
        return int((1 << (self.bits - self.signed)) - 1)

    @cached_property
    def exponent_mask(self) -> int:
        """The bits of the exponent field, which is infinity's code where the format has infinities."""
        return int(((1 << self.exponent_bits) - 1) << self.fraction_bits)

    @cached_property
    def largest(self) -> int:
        """The code of the largest finite number."""
        return {
            "ieee": self.exponent_mask - 1,
            "nan": self.magnitude - 1,
            "none": self.magnitude,
        }[self.specials]

    @cached_property
    def infinity(self) -> int:
        """What an infinity becomes: the format's own, else its NaN, else its largest number."""
        return self.exponent_mask if self.specials == "ieee" else self.nan

    @cached_property
    def nan(self) -> int:
        """The canonical NaN, all bits but the sign; the largest number where there is no NaN."""
        return self.magnitude


_SPECIALS: dict[formats.Specials, Specials] = {
    formats.Specials.INFINITIES: "ieee",
    formats.Specials.ONE_NAN: "nan",
    formats.Specials.NONE: "none",
}


def _layout(element: formats.Format) -> Layout:
    """Return the fields of a format; of tf32 the 19 upper bits of a register."""
    return Layout(
        name=element.name,
        exponent_bits=element.exponent_bits,
        fraction_bits=element.fraction_bits,
        specials=_SPECIALS[element.specials],
        signed=element.signed,
    )


LAYOUTS: dict[str, Layout] = {name: _layout(form) for name, form in formats.FORMATS.items() if form.is_float}


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """(-1)**negative * significand * 2**exponent, unless ``infinite`` or ``nan``; arrays of one shape."""

    negative: npt.NDArray[np.bool_]
    significand: npt.NDArray[np.uint64]  # below 2**62
    exponent: npt.NDArray[np.int64]
    infinite: npt.NDArray[np.bool_]
    nan: npt.NDArray[np.bool_]


def decode(codes: Array, layout: Layout) -> Numbers:
    """Return the numbers that codes stand for; bits above the format's are passed over."""
    bits = codes.astype(np.uint64)
    magnitude = bits & np.uint64(layout.magnitude)
    fraction = magnitude & np.uint64((1 << layout.fraction_bits) - 1)
    field = (magnitude >> np.uint64(layout.fraction_bits)).astype(np.int64)
    normal = field > 0 if layout.subnormals else np.ones_like(field, dtype=np.bool_)
    infinite = magnitude == layout.exponent_mask if layout.specials == "ieee" else np.zeros_like(normal)
    return Numbers(
        negative=bits & np.uint64(layout.sign) != 0,
        significand=fraction | normal.astype(np.uint64) << np.uint64(layout.fraction_bits),
        exponent=np.maximum(field, int(layout.subnormals)) - (layout.bias + layout.fraction_bits),
        infinite=infinite,
        nan=(magnitude > layout.largest) & ~infinite,
    )


def integers(values: Array) -> Numbers:
    """Return integers of any NumPy dtype as numbers; bits that no rounding can distinguish are joined into a
    single bit.
    """
    negative = values < 0
    wide = values.astype(np.uint64)
    magnitude = np.where(negative, ~wide + _ONE, wide)
    long = magnitude >> np.uint64(_MOST_BITS) != 0
    joined = magnitude >> np.uint64(2) | (magnitude & np.uint64(3) != 0).astype(np.uint64)
    none = np.zeros_like(negative)
    return Numbers(
        negative=negative,
        significand=np.where(long, joined, magnitude),
        exponent=2 * long.astype(np.int64),
        infinite=none,
        nan=none,
    )


def bit_length(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return the bits of each value from its highest one down; 0 for 0."""
    smeared = values
    for step in (1, 2, 4, 8, 16, 32):
        smeared = smeared | smeared >> np.uint64(step)
    return np.bitwise_count(smeared).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class Cut:
    """A significand divided by ``unit``, a power of two: the quotient is ``kept``, the remainder ``rest``."""

    kept: npt.NDArray[np.uint64]
    rest: npt.NDArray[np.uint64]
    unit: npt.NDArray[np.uint64]
    negative: npt.NDArray[np.bool_]
    random: npt.NDArray[np.uint64] | None = None  # as a fraction of ``unit``, in its own scale


def _nearest_even(cut: Cut) -> Array:
    twice = cut.rest << _ONE
    odd: Array = cut.kept & _ONE != 0
    grows: Array = (twice > cut.unit) | (twice == cut.unit) & odd
    return grows


def _stochastic(cut: Cut) -> Array:
    assert cut.random is not None
    grows: Array = cut.rest + cut.random >= cut.unit
    return grows


Decision = Callable[[Cut], Array]

# Whether the kept part grows by one.
_GROWS: dict[str, Decision] = {
    "rn": _nearest_even,
    "rna": lambda cut: cut.rest << _ONE >= cut.unit,
    "rz": lambda cut: np.zeros_like(cut.negative),
    "rm": lambda cut: cut.negative & (cut.rest != 0),
    "rp": lambda cut: ~cut.negative & (cut.rest != 0),
    "rs": _stochastic,
}

# Whether a number beyond the largest becomes infinite.
_OVERFLOWS: dict[str, Callable[[Array], Array]] = {
    "rn": np.ones_like,
    "rna": np.ones_like,
    "rz": np.zeros_like,
    "rm": lambda negative: negative,
    "rp": lambda negative: ~negative,
    "rs": np.ones_like,
}


@dataclass(frozen=True, kw_only=True)
class Random:
    """Random bits of each lane for ``.rs``: they are added to the uppermost bits that are cut off."""

    bits: npt.NDArray[np.uint64]
    count: int  # how many they are, at most 16

    def scaled(self, shift: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        """Return the bits as a remainder of a division by 2**shift."""
        return self.bits << np.minimum(shift, np.uint64(_RANDOM_BITS)) >> np.uint64(self.count)


def rounded(
    numbers: Numbers, shift: npt.NDArray[np.int64], rounding: str, random: Random | None = None
) -> npt.NDArray[np.uint64]:
    """significand / 2**shift rounded to an integer; with a negative shift what exceeds 64 bits is lost."""
    left, right = (np.clip(x, 0, 63).astype(np.uint64) for x in (-shift, shift))
    unit = _ONE << right
    kept = numbers.significand << left >> right
    cut = Cut(
        kept=kept,
        rest=numbers.significand & (unit - _ONE),
        unit=unit,
        negative=numbers.negative,
        random=None if random is None else random.scaled(right),
    )
    return kept + _GROWS[rounding](cut).astype(np.uint64)


def encode(
    numbers: Numbers, layout: Layout, rounding: str, *, satfinite: bool = False, random: Random | None = None
) -> Array:
    """Return codes of the numbers rounded to the format, in its dtype; every NaN becomes canonical.

    With ``satfinite`` infinities and what overflows become the largest number. A format without a sign
    takes magnitudes. The exponent field is counted from the smallest normal number's, whose leading bit adds
    the missing 1, and a carry out of the fraction adds another: no case is special.
    """
    if not layout.signed:
        numbers = _magnitudes(numbers)
    top = numbers.exponent + bit_length(numbers.significand) - 1
    above = np.where(numbers.significand == 0, 0, np.maximum(top - layout.minimum_exponent, 0))
    last = above + (layout.minimum_exponent - layout.fraction_bits)
    kept = rounded(numbers, last - numbers.exponent, rounding, random).astype(np.int64)
    huge = above > 1 << layout.exponent_bits  # its field would not fit the code
    code = (np.where(huge, 0, above) << layout.fraction_bits) + kept
    if not layout.subnormals:
        code = np.maximum(code - 1, 0)
    overflow = np.where(_OVERFLOWS[rounding](numbers.negative), layout.infinity, layout.largest)
    over = huge | (code > layout.largest)
    code = np.where(numbers.infinite, layout.infinity, np.where(over, overflow, code))
    if satfinite:
        code = np.minimum(code, layout.largest)
    signs = numbers.negative.astype(np.uint64) << np.uint64(max(layout.bits - 1, 0))
    signed = np.where(numbers.nan, np.uint64(layout.nan), code.astype(np.uint64) | signs)
    return signed.astype(layout.dtype)


def _magnitudes(numbers: Numbers) -> Numbers:
    return Numbers(
        negative=np.zeros_like(numbers.negative),
        significand=numbers.significand,
        exponent=numbers.exponent,
        infinite=numbers.infinite,
        nan=numbers.nan,
    )


def whole_magnitudes(numbers: Numbers, rounding: str) -> npt.NDArray[np.uint64]:
    """Return magnitudes rounded to integers, 2**64 - 1 for those beyond and for infinities; NaN gives
    anything.
    """
    whole = rounded(numbers, -numbers.exponent, rounding)
    beyond = numbers.infinite | (numbers.exponent + bit_length(numbers.significand) > 64)
    return np.where(beyond, np.uint64((1 << 64) - 1), whole)
