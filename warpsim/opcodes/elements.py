"""Conversions of one element a lane, between formats, integers and both, with every modifier of ``cvt``.

Knows what .ftz, .sat, .relu and .satfinite do and which NaN comes out. Does not know how elements are packed,
nor which combinations PTX has. PTX ISA 9.0, section 9.7.9.21 "cvt".

The exact core (codes) converts everything. Short cuts give the same bits sooner: tables of the core's results
for sources of up to 16 bits; roundings of raw bits; and NumPy's casts where they are a single IEEE operation.
The casts alone depend on the process's floating-point environment, which the machine sets to the default
(nearest, subnormals kept) while it executes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .codes import LAYOUTS, Layout, Numbers, Random, decode, encode, integers, rounded, whole_magnitudes

Array = npt.NDArray[Any]
Step = Callable[[Array], Array]  # codes or values in, codes or values out

# Which NaN a NaN becomes: the result format's canonical one; the same sign and payload, made quiet; the same bits.
NotANumber = Literal["canonical", "quiet", "same"]


@dataclass(frozen=True, kw_only=True)
class Modifiers:
    """The modifiers of a conversion. ``rounding`` may be an integer rounding (rni); "" stands for rn."""

    rounding: str = ""
    ftz: bool = False
    sat: bool = False
    relu: bool = False
    satfinite: bool = False
    nan: NotANumber = "canonical"


# --- between formats -------------------------------------------------------------------------------

# .ftz of an f64 source flushes what is below 2**-126 once rounded to 24 bits whatever the exponent: these are the
# magnitudes from which on results are kept, by whether rounding leads away from zero; the code that
# ptxas makes compares with them.
_NORMAL, _ROUNDS_TO_NORMAL = 0x3810_0000_0000_0000, {"nearest": 0x380F_FFFF_F000_0000, "away": 0x380F_FFFF_E000_0000}


def format_conversion(source: Layout, result: Layout, modifiers: Modifiers) -> Step:
    """Codes of ``source`` to codes of ``result``."""
    if source.bits <= 16:
        return lambda codes: np.asarray(_table(source, result, modifiers)[codes])
    if result.bits <= 8:
        return lambda codes: np.asarray(_joined_table(source, result, modifiers)[_joined(codes, source)])
    core = _core(source, result, modifiers)
    before = [_flushing(source)] if modifiers.ftz and source.name == "f32" else []
    return _chain(*before, core, *_after(source, result, modifiers))


def _chain(*steps: Step) -> Step:
    if len(steps) == 1:
        return steps[0]

    def chained(codes: Array) -> Array:
        for step in steps:
            codes = step(codes)
        return codes

    return chained


def _core(source: Layout, result: Layout, modifiers: Modifiers) -> Step:
    """The rounding alone, by a short cut where there is one; flushes for f64 to f32, which rounding decides."""
    flush_narrowed = modifiers.ftz and source.name == "f64"
    integral = modifiers.rounding.endswith("i")
    if source.exponent_bits == result.exponent_bits and source.fraction_bits > result.fraction_bits > 0:
        return lambda codes: _same_exponent(codes, source, result, modifiers)
    cast = _CASTS.get((source.name, result.name, modifiers.rounding))
    if cast and not modifiers.satfinite and not flush_narrowed and modifiers.nan == cast[1]:
        return cast[0]
    if source is result and not integral:
        return lambda codes: _with_nan(codes.copy(), codes, source, result, modifiers.nan)
    if integral:
        return lambda codes: _integral(codes, source, modifiers)
    if flush_narrowed:
        return lambda codes: np.where(_tiny(codes, modifiers.rounding), _signs(codes, source, result),
                                      _rounded_codes(codes, source, result, modifiers))  # fmt: skip
    return lambda codes: _rounded_codes(codes, source, result, modifiers)


def _rounded_codes(codes: Array, source: Layout, result: Layout, modifiers: Modifiers) -> Array:
    numbers = decode(codes, source)
    made = encode(numbers, result, modifiers.rounding or "rn", satfinite=modifiers.satfinite)
    return made if modifiers.nan == "canonical" else _with_nan(made, codes, source, result, modifiers.nan)


def _integral(codes: Array, layout: Layout, modifiers: Modifiers) -> Array:
    """Numbers rounded to integers, as codes of the same format; zeros keep the number's sign."""
    numbers = decode(codes, layout)
    shift = np.maximum(-numbers.exponent, 0)
    whole = rounded(numbers, shift, modifiers.rounding.removesuffix("i"))
    made = encode(replace(numbers, significand=whole, exponent=numbers.exponent + shift), layout, "rz")
    return _with_nan(made, codes, layout, layout, modifiers.nan)


def _same_exponent(codes: Array, source: Layout, result: Layout, modifiers: Modifiers) -> Array:
    """Formats that differ in their fraction alone: the magnitude is rounded as it stands, carries and all."""
    shift = source.fraction_bits - result.fraction_bits
    assert shift > 0
    magnitude = codes & codes.dtype.type(source.magnitude)
    kept = _ROUNDED_BITS[modifiers.rounding or "rn"](magnitude, codes, shift)
    infinity = codes.dtype.type(source.exponent_mask)
    if modifiers.satfinite:
        kept = np.minimum(kept, codes.dtype.type(result.largest))
    sign = (codes >> codes.dtype.type(source.bits - result.bits)) & codes.dtype.type(result.sign)
    made = np.where(magnitude > infinity, codes.dtype.type(result.nan), kept | sign)
    return made.astype(result.dtype)


def _nearest_bits(magnitude: Array, codes: Array, shift: int) -> Array:
    kind = magnitude.dtype.type
    odd = magnitude >> kind(shift) & kind(1)
    return (magnitude + (kind((1 << (shift - 1)) - 1) + odd)) >> kind(shift)


def _away_bits(magnitude: Array, codes: Array, shift: int, away: Array) -> Array:
    kind = magnitude.dtype.type
    return (magnitude + away * kind((1 << shift) - 1)) >> kind(shift)


def _negative(codes: Array) -> Array:
    return codes >> codes.dtype.type(codes.dtype.itemsize * 8 - 1)


# Magnitudes with ``shift`` bits less. NaNs become anything.
_ROUNDED_BITS: dict[str, Callable[[Array, Array, int], Array]] = {
    "rn": _nearest_bits,
    "rz": lambda magnitude, codes, shift: magnitude >> magnitude.dtype.type(shift),
    "rm": lambda magnitude, codes, shift: _away_bits(magnitude, codes, shift, _negative(codes)),
    "rp": lambda magnitude, codes, shift: _away_bits(magnitude, codes, shift, _negative(codes) ^ codes.dtype.type(1)),
}


def _cast(codes: Array, to: type[np.floating[Any]]) -> Array:
    made: Array = codes.view(f"f{codes.dtype.itemsize}").astype(to)
    return made.view(f"u{made.dtype.itemsize}")


def _quiet_cast(to: type[np.floating[Any]]) -> Step:
    def step(codes: Array) -> Array:
        with np.errstate(all="ignore"):
            return _cast(codes, to)

    return step


def _half(codes: Array) -> Array:
    nan = codes & np.uint32(0x7FFF_FFFF) > np.uint32(0x7F80_0000)
    with np.errstate(all="ignore"):
        return np.where(nan, np.uint16(0x7FFF), _cast(codes, np.float16))


# One IEEE conversion each, rounded once. A NaN keeps its sign and the upper bits of its payload and becomes quiet,
# as IEEE 754 recommends and both x86-64 and AArch64 do; for f16 it is replaced here. The name is that of the NaN.
_CASTS: dict[tuple[str, str, str], tuple[Step, NotANumber]] = {
    ("f32", "f16", "rn"): (_half, "canonical"),
    ("f32", "f64", ""): (_quiet_cast(np.float64), "quiet"),
    ("f64", "f32", "rn"): (_quiet_cast(np.float32), "quiet"),
}


def _with_nan(made: Array, codes: Array, source: Layout, result: Layout, nan: NotANumber) -> Array:
    """``made`` with the NaN that is asked for where the source is one."""
    if nan == "same" and source is result:
        return made
    nans = codes & codes.dtype.type(source.magnitude) > codes.dtype.type(source.exponent_mask)
    if nan == "canonical":
        return np.where(nans, made.dtype.type(result.nan), made)
    wide = codes.astype(np.uint64)
    payload = wide & np.uint64((1 << source.fraction_bits) - 1)
    left, right = (max(x, 0) for x in _apart(source, result))
    carried = payload << np.uint64(left) >> np.uint64(right) | np.uint64(result.exponent_mask)
    if nan == "quiet":
        carried |= np.uint64(1 << (result.fraction_bits - 1))
    carried |= _signs(codes, source, result).astype(np.uint64)
    return np.where(nans, carried.astype(made.dtype), made)


def _apart(source: Layout, result: Layout) -> tuple[int, int]:
    wider = result.fraction_bits - source.fraction_bits
    return wider, -wider


def _signs(codes: Array, source: Layout, result: Layout) -> Array:
    """Zeros of the result's format with the signs of the codes."""
    negative = codes & codes.dtype.type(source.sign) != 0
    return negative.astype(result.dtype) << result.dtype.type(result.bits - 1)


def _tiny(codes: Array, rounding: str) -> Array:
    """Where f64 numbers rounded to 24 bits are below the smallest normal f32."""
    magnitude, negative = codes & np.uint64(LAYOUTS["f64"].magnitude), _negative(codes) != 0
    nearest, away = (np.uint64(x) for x in _ROUNDS_TO_NORMAL.values())
    from_here: dict[str, Any] = {
        "rn": nearest,
        "rz": np.uint64(_NORMAL),
        "rm": np.where(negative, away, np.uint64(_NORMAL)),
        "rp": np.where(negative, np.uint64(_NORMAL), away),
    }
    tiny: Array = magnitude < from_here[rounding]
    return tiny


def _flushing(layout: Layout) -> Step:
    kind = layout.dtype.type
    exponent, sign = kind(layout.exponent_mask), kind(layout.sign)
    return lambda codes: np.where(codes & exponent == 0, codes & sign, codes)


def _after(source: Layout, result: Layout, modifiers: Modifiers) -> list[Step]:
    """What is done to a result's code once it is rounded."""
    steps: list[Step] = []
    if modifiers.ftz and result.name == "f32" and source.name != "f64":
        steps.append(_flushing(result))
    if modifiers.sat:
        steps.append(lambda codes: saturated(codes, result))
    if modifiers.relu:
        steps.append(lambda codes: np.where(codes & result.dtype.type(result.sign), result.dtype.type(0), codes))
    return steps


def saturated(codes: Array, layout: Layout) -> Array:
    """Codes of the numbers clamped to [0, 1]: +0 for NaN and -0, whose codes are above infinity's."""
    kind = layout.dtype.type
    one = kind(layout.bias << layout.fraction_bits)
    return np.where(codes > kind(layout.exponent_mask), kind(0), np.minimum(codes, one))


@cache
def _table(source: Layout, result: Layout, modifiers: Modifiers) -> Array:
    """The core's result for every code of a source of up to 16 bits."""
    codes = np.arange(1 << source.bits).astype(source.dtype)
    before = [_flushing(source)] if modifiers.ftz and source.name == "f32" else []
    return _chain(*before, _core(source, result, modifiers), *_after(source, result, modifiers))(codes)


def _joined(codes: Array, source: Layout) -> Array:
    """The upper 16 bits of f32 codes, the lower ones joined into the last: all that 8-bit results depend on."""
    assert source.name == "f32"
    return codes >> np.uint32(16) | (codes & np.uint32(0xFFFF) != 0)


@cache
def _joined_table(source: Layout, result: Layout, modifiers: Modifiers) -> Array:
    """The core's result for every value of ``_joined``.

    Any of them stands for its binade's numbers strictly between two neighbours, and 8 significant bits are
    at least two more than results have: no rounding tells those numbers apart.
    """
    codes = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
    steps = [lambda x: _rounded_codes(x, source, result, modifiers), *_after(source, result, modifiers)]
    return _chain(*steps)(codes)


def stochastic(source: Layout, result: Layout, modifiers: Modifiers) -> Callable[[Array, Random], Array]:
    """Codes of ``source`` and random bits to codes of ``result``, under ``.rs``."""
    after = _chain(lambda codes: codes, *_after(source, result, modifiers))

    def step(codes: Array, random: Random) -> Array:
        numbers = decode(codes, source)
        return after(encode(numbers, result, "rs", satfinite=modifiers.satfinite, random=random))

    return step


# --- integers --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Integer:
    """An integer type of PTX, as ``u8``."""

    name: str

    @property
    def signed(self) -> bool:
        """Whether it has negative values."""
        return self.name[0] == "s"

    @property
    def bits(self) -> int:
        """Its width."""
        return int(self.name[1:])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The unsigned dtype of its values."""
        return np.dtype(f"u{self.bits // 8}")

    @property
    def by_value(self) -> np.dtype[Any]:
        """The dtype that has its values."""
        return np.dtype(f"{'i' if self.signed else 'u'}{self.bits // 8}")

    @property
    def least(self) -> int:
        """Its smallest value."""
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def greatest(self) -> int:
        """Its largest value."""
        return int((1 << (self.bits - self.signed)) - 1)

    def holds(self, other: Integer) -> bool:
        """Whether it has all values of another type."""
        return self.least <= other.least and other.greatest <= self.greatest


INTEGERS = {name: Integer(name=name) for name in ("u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64")}


def integer_conversion(source: Integer, result: Integer, *, sat: bool) -> Step:
    """Integers to integers: extended or cut, or clamped with ``sat``."""
    if not sat:
        return lambda values: values.view(source.by_value).astype(result.by_value).view(result.dtype)
    kind = source.by_value.type
    low, high = kind(max(source.least, result.least)), kind(min(source.greatest, result.greatest))

    def clamp(values: Array) -> Array:
        clamped = np.minimum(np.maximum(values.view(source.by_value), low), high)
        return clamped.astype(result.by_value).view(result.dtype)

    return clamp


def from_integer(source: Integer, result: Layout, modifiers: Modifiers) -> Step:
    """Integers to codes; NumPy's cast to f32 and f64 rounds once, to nearest."""

    def cast(values: Array) -> Array:
        return values.view(source.by_value).astype(f"f{result.bits // 8}").view(result.dtype)

    def looked_up(values: Array) -> Array:
        return np.asarray(_integer_table(source, result, modifiers.rounding)[values])

    def exact(values: Array) -> Array:
        return encode(integers(values.view(source.by_value)), result, modifiers.rounding)

    nearest = modifiers.rounding == "rn" and result.bits >= 32
    core = cast if nearest else looked_up if source.bits <= 16 else exact
    return _chain(core, *_after(result, result, replace(modifiers, ftz=False)))


@cache
def _integer_table(source: Integer, result: Layout, rounding: str) -> Array:
    values = np.arange(1 << source.bits).astype(source.dtype)
    return encode(integers(values.view(source.by_value)), result, rounding)


def to_integer(source: Layout, result: Integer, modifiers: Modifiers) -> Step:
    """Codes to integers, clamped to the type's range, which makes ``.sat`` redundant.

    NaN becomes 0 where neither type is of 64 bits, otherwise the type's upper half's first value, 1 << (bits - 1).
    """
    if source.bits <= 16:
        return lambda codes: np.asarray(_whole_table(source, result, modifiers)[codes])
    before = [_flushing(source)] if modifiers.ftz else []
    if result.bits <= 32:
        return _chain(*before, lambda codes: _whole_by_cast(codes, source, result, modifiers))
    return _chain(*before, lambda codes: _whole(decode(codes, source), source, result, modifiers))


@cache
def _whole_table(source: Layout, result: Integer, modifiers: Modifiers) -> Array:
    codes = np.arange(1 << source.bits).astype(source.dtype)
    return _whole(decode(codes, source), source, result, modifiers)


def nan_as_integer(source: Layout, result: Integer) -> int:
    """What a NaN becomes: PTX ISA 9.0, section 9.7.9.21, "Integer Notes"."""
    return 1 << (result.bits - 1) if 64 in (source.bits, result.bits) else 0


def _whole(numbers: Numbers, source: Layout, result: Integer, modifiers: Modifiers) -> Array:
    magnitude = whole_magnitudes(numbers, modifiers.rounding.removesuffix("i"))
    down = np.minimum(magnitude, np.uint64(-result.least))
    up = np.minimum(magnitude, np.uint64(result.greatest))
    value = np.where(numbers.negative, ~down + np.uint64(1), up)
    value = np.where(numbers.nan, np.uint64(nan_as_integer(source, result)), value)
    return value.astype(result.dtype)


_WHOLE: dict[str, Callable[..., Array]] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def _whole_by_cast(codes: Array, source: Layout, result: Integer, modifiers: Modifiers) -> Array:
    """Results of up to 32 bits: f64 has all values of the source and of the result, and the steps are exact."""
    values = codes.view(f"f{source.bits // 8}")
    with np.errstate(invalid="ignore"):  # a signaling NaN
        whole = np.clip(_WHOLE[modifiers.rounding](values.astype(np.float64)), result.least, result.greatest)
        nan = np.isnan(whole)
    integer = np.where(nan, 0.0, whole).astype(np.int64).astype(result.dtype)
    return np.where(nan, result.dtype.type(nan_as_integer(source, result)), integer)
