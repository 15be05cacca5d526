"""Conversions of one element a lane between floating-point formats, with every modifier of ``cvt``.

Knows what .ftz, .sat, .relu and .satfinite do and which NaN comes out. Does not know integers (whole), how
elements are packed, nor which combinations PTX has. PTX ISA 9.0, section 9.7.9.21 "cvt".

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

from ..operation import looked_up
from .codes import LAYOUTS, Layout, Random, decode, encode, rounded

Array = npt.NDArray[Any]
Step = Callable[[Array], Array]  # codes or values in, codes or values out

# What a NaN becomes: the result format's canonical NaN; the same sign and payload, made quiet; the same bits.
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


# .ftz of an f64 source flushes what is below 2**-126 once rounded to 24 bits whatever the exponent: the code
# that ptxas makes keeps results from these magnitudes on, where rounding leads to zero, to nearest, or away.
_NORMAL, _NEAREST_NORMAL, _AWAY_NORMAL = map(
    np.uint64, (0x3810_0000_0000_0000, 0x380F_FFFF_F000_0000, 0x380F_FFFF_E000_0000)
)


def format_conversion(source: Layout, result: Layout, modifiers: Modifiers) -> Step:
    """Return codes of ``source`` to codes of ``result``."""
    if source.bits <= 16:
        return lambda codes: looked_up(_table(source, result, modifiers), codes)
    if result.bits <= 8:
        return lambda codes: looked_up(
            _joined_table(source, result, modifiers), _sticky_upper_half(codes, source)
        )
    core = _core(source, result, modifiers)
    before = [flushing(source)] if modifiers.ftz and source.name == "f32" else []
    return chain(*before, core, *after(source, result, modifiers))


def chain(*steps: Step) -> Step:
    """One step after the other."""
    if len(steps) == 1:
        return steps[0]

    def chained(codes: Array) -> Array:
        for step in steps:
            codes = step(codes)
        return codes

    return chained


def _core(source: Layout, result: Layout, modifiers: Modifiers) -> Step:
    """Return the rounding alone, by a short cut where possible; for f64 to f32 with the flush, if any."""
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
    """Return numbers rounded to integers, as codes of the same format; zeros keep the number's sign."""
    numbers = decode(codes, layout)
    shift = np.maximum(-numbers.exponent, 0)
    whole = rounded(numbers, shift, modifiers.rounding.removesuffix("i"))
    made = encode(replace(numbers, significand=whole, exponent=numbers.exponent + shift), layout, "rz")
    return _with_nan(made, codes, layout, layout, modifiers.nan)


def _same_exponent(codes: Array, source: Layout, result: Layout, modifiers: Modifiers) -> Array:
    """Return formats that differ in their fraction alone: the magnitude is rounded as it stands, carries
    and all.
    """
    shift = source.fraction_bits - result.fraction_bits
    assert shift > 0
    magnitude = codes & codes.dtype.type(source.magnitude)
    kept = _ROUNDED_BITS[modifiers.rounding or "rn"](magnitude, codes, shift)
    infinity = codes.dtype.type(source.exponent_mask)
    if modifiers.satfinite:
        kept = np.minimum(kept, codes.dtype.type(result.largest))
    sign = (codes >> codes.dtype.type(source.bits - result.bits)) & codes.dtype.type(result.sign)
    made: Array = np.where(magnitude > infinity, codes.dtype.type(result.nan), kept | sign)
    return made.astype(result.dtype)


def _nearest_bits(magnitude: Array, codes: Array, shift: int) -> Array:
    kind = magnitude.dtype.type
    odd = magnitude >> kind(shift) & kind(1)
    kept: Array = (magnitude + (kind((1 << (shift - 1)) - 1) + odd)) >> kind(shift)
    return kept


def _away_bits(magnitude: Array, shift: int, away: Array) -> Array:
    kind = magnitude.dtype.type
    kept: Array = (magnitude + away * kind((1 << shift) - 1)) >> kind(shift)
    return kept


def _negative(codes: Array) -> Array:
    bit: Array = codes >> codes.dtype.type(codes.dtype.itemsize * 8 - 1)
    return bit


# Magnitudes with ``shift`` bits less. NaNs become anything.
_ROUNDED_BITS: dict[str, Callable[[Array, Array, int], Array]] = {
    "rn": _nearest_bits,
    "rz": lambda magnitude, codes, shift: magnitude >> magnitude.dtype.type(shift),
    "rm": lambda magnitude, codes, shift: _away_bits(magnitude, shift, _negative(codes)),
    "rp": lambda magnitude, codes, shift: _away_bits(
        magnitude, shift, _negative(codes) ^ codes.dtype.type(1)
    ),
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


# One IEEE conversion each, rounded once. A NaN keeps its sign and the upper bits of its payload and becomes
# quiet, as IEEE 754 recommends and x86-64 and AArch64 do; for f16 it is replaced here.
_CASTS: dict[tuple[str, str, str], tuple[Step, NotANumber]] = {
    ("f32", "f16", "rn"): (_half, "canonical"),
    ("f32", "f64", ""): (_quiet_cast(np.float64), "quiet"),
    ("f64", "f32", "rn"): (_quiet_cast(np.float32), "quiet"),
}


def _with_nan(made: Array, codes: Array, source: Layout, result: Layout, nan: NotANumber) -> Array:
    """Return ``made`` with the NaN that is asked for where the source is NaN."""
    if nan == "same" and source is result:
        return made
    nans = codes & codes.dtype.type(source.magnitude) > codes.dtype.type(source.exponent_mask)
    if nan == "canonical":
        return np.where(nans, made.dtype.type(result.nan), made)
    wide = codes.astype(np.uint64)
    payload = wide & np.uint64((1 << source.fraction_bits) - 1)
    left, right = (max(x, 0) for x in _bit_distance(source, result))
    carried = payload << np.uint64(left) >> np.uint64(right) | np.uint64(result.exponent_mask)
    if nan == "quiet":
        carried |= np.uint64(1 << (result.fraction_bits - 1))
    carried |= _signs(codes, source, result).astype(np.uint64)
    return np.where(nans, carried.astype(made.dtype), made)


def _bit_distance(source: Layout, result: Layout) -> tuple[int, int]:
    wider = result.fraction_bits - source.fraction_bits
    return wider, -wider


def _signs(codes: Array, source: Layout, result: Layout) -> Array:
    """Return zeros of the result's format with the signs of the codes."""
    negative = codes & codes.dtype.type(source.sign) != 0
    zeros: Array = negative.astype(result.dtype) << result.dtype.type(result.bits - 1)
    return zeros


def _tiny(codes: Array, rounding: str) -> Array:
    """Return where f64 numbers rounded to 24 bits are below the smallest normal f32."""
    magnitude, negative = codes & np.uint64(LAYOUTS["f64"].magnitude), _negative(codes) != 0
    from_here: dict[str, Any] = {
        "rn": _NEAREST_NORMAL,
        "rz": _NORMAL,
        "rm": np.where(negative, _AWAY_NORMAL, _NORMAL),
        "rp": np.where(negative, _NORMAL, _AWAY_NORMAL),
    }
    tiny: Array = magnitude < from_here[rounding]
    return tiny


def flushing(layout: Layout) -> Step:
    """Return codes with subnormal numbers replaced by zeros of their signs."""
    kind = layout.dtype.type
    exponent, sign = kind(layout.exponent_mask), kind(layout.sign)
    return lambda codes: np.where(codes & exponent == 0, codes & sign, codes)


def after(source: Layout, result: Layout, modifiers: Modifiers) -> list[Step]:
    """Return what is done to a result's code once it is rounded."""
    steps: list[Step] = []
    if modifiers.ftz and result.name == "f32" and source.name != "f64":
        steps.append(flushing(result))
    if modifiers.sat:
        steps.append(lambda codes: saturated(codes, result))
    if modifiers.relu:
        zero, sign = result.dtype.type(0), result.dtype.type(result.sign)
        steps.append(lambda codes: np.where(codes & sign, zero, codes))
    return steps


def saturated(codes: Array, layout: Layout) -> Array:
    """Return codes of the numbers clamped to [0, 1]: +0 for NaN and -0, whose codes are above infinity's."""
    kind = layout.dtype.type
    code_of_1 = kind(layout.bias << layout.fraction_bits)
    clamped: Array = np.where(codes > kind(layout.exponent_mask), kind(0), np.minimum(codes, code_of_1))
    return clamped


@cache
def _table(source: Layout, result: Layout, modifiers: Modifiers) -> Array:
    """Return the core's result for every code of a source of up to 16 bits."""
    codes = np.arange(1 << source.bits).astype(source.dtype)
    before = [flushing(source)] if modifiers.ftz and source.name == "f32" else []
    return chain(*before, _core(source, result, modifiers), *after(source, result, modifiers))(codes)


def _sticky_upper_half(codes: Array, source: Layout) -> Array:
    """Return the upper 16 bits of f32 codes, the lower bits joined into a single bit: all that 8-bit results
    need.
    """
    assert source.name == "f32"
    joined: Array = codes >> np.uint32(16) | (codes & np.uint32(0xFFFF) != 0)
    return joined


@cache
def _joined_table(source: Layout, result: Layout, modifiers: Modifiers) -> Array:
    """Return the core's result for every value of ``_sticky_upper_half``.

    Any of them stands for its binade's numbers strictly between two neighbours, and 8 significant bits are
    at least two more than results have: no rounding distinguishes those numbers.
    """
    codes = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
    steps = [lambda x: _rounded_codes(x, source, result, modifiers), *after(source, result, modifiers)]
    return chain(*steps)(codes)


def stochastic(source: Layout, result: Layout, modifiers: Modifiers) -> Callable[[Array, Random], Array]:
    """Return codes of ``source`` and random bits to codes of ``result``, under ``.rs``."""
    finish = chain(lambda codes: codes, *after(source, result, modifiers))

    def step(codes: Array, random: Random) -> Array:
        numbers = decode(codes, source)
        return finish(encode(numbers, result, "rs", satfinite=modifiers.satfinite, random=random))

    return step
