"""From an exact result to the bits of f32, f16 or bf16: one rounding, in any direction, and flushing.

The way there: an operation computes in float64 and leaves there a value rounded to odd: the exact result
where float64 holds it, else its neighbour with a last bit of 1. Such a value lies on the same
side of every number of 51 bits or fewer as the exact result does, so that rounding it once more gives what
rounding the exact result gives, in every direction (Boldo and Melquiond, "Emulation of a FMA and Correctly
Rounded Sums"). Products of two f32 are exact in float64, and so are all f32, f16 and bf16 values.

Tininess, for .ftz: a result is flushed where it is below the smallest normal number after it was rounded to
the format's precision with an exponent of unbounded range. The code of div.ftz.f32 that ptxas generates does
so, and ptxas folds constants so.

Relies on float64 and float32 arithmetic of NumPy that rounds to nearest even and keeps subnormals: the caller
sets such an environment.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..operation import Values, array, is_recorded
from .float_bits import Format, widened

TININESS = (
    "results just below the smallest normal number: inferred that .ftz decides after rounding, "
    "as the code does that ptxas generates for div.ftz.f32"
)
Exact = Callable[..., Values]  # values as float64, then the rounding -> float64, rounded to odd

_LAST = np.int64(1)


def odd_sum(a: Values, b: Values, rounding: str) -> Values:
    """Return a + b of float64, rounded to odd; a zero has the sign that ``rounding`` gives it.

    The sum must neither overflow nor consist of numbers so small that float64 does not hold its error.
    """
    total = a + b
    other = total - a
    error = (a - (total - other)) + (b - other)
    if rounding == "rm":
        negative = np.signbit(a) | np.signbit(b)
        total = np.where((total == 0) & negative, np.float64(-0.0), total)
    inexact = (error != 0) & np.isfinite(error)
    return _odd(total, error, inexact) if inexact.any() else total


def _odd(nearest: Values, error: Values, inexact: Values) -> Values:
    """Return ``nearest`` where it is exact or its last bit is set, else its neighbour on the side of
    ``error``.
    """
    bits = array(nearest).view(np.int64)
    outward = np.where((error > 0) == (nearest > 0), _LAST, -_LAST)
    step = np.where(inexact & ((bits & _LAST) == 0), outward, np.int64(0))
    return (bits + step).view(np.float64)


def odd_product(a: Values, b: Values, rounding: str) -> Values:
    """Return a * b, which float64 holds."""
    return a * b


def odd_fma(a: Values, b: Values, c: Values, rounding: str) -> Values:
    """Return a * b + c, rounded to odd."""
    return odd_sum(a * b, c, rounding)


def single(value: Values, rounding: str) -> Values:
    """Return uint32 bits of ``value``, float64 rounded to odd, as f32."""
    near = array(value.astype(np.float32))
    bits = near.view(np.uint32)
    if rounding == "rn":
        return bits
    wide = near.astype(np.float64)
    up, down = wide < value, wide > value  # where the result must go up, or down, to get beyond the value
    if rounding == "rz":
        return array(bits - (np.abs(wide) > np.abs(value)).astype(np.uint32))
    moved = up if rounding == "rp" else down
    toward_infinity = up & (value > 0) | down & (value < 0)
    step = np.where(toward_infinity, np.uint32(1), np.uint32(0xFFFF_FFFF))
    return np.where(moved, bits + step, bits)


def half(value: Values, type_name: str) -> Values:
    """Return uint16 bits of ``value``, float64 rounded to odd, as "f16" or "bf16" to nearest even.

    To bf16 by way of f32, whose own rounding does harm only where it makes a tie.
    """
    if type_name == "f16" and is_recorded(value):  # processors convert singles alone to halves
        return single_odd(value).view(np.float32).astype(np.float16).view(np.uint16)
    if type_name == "f16":
        return array(value.astype(np.float16)).view(np.uint16)
    near = array(value.astype(np.float32))
    bits = near.view(np.uint32)
    tie = (bits & np.uint32(0xFFFF)) == np.uint32(0x8000)
    return brain(single_odd(value) if tie.any() and (tie & (near != value)).any() else bits)


def single_odd(value: Values) -> Values:
    """Return uint32 bits of ``value``, float64 rounded to odd, as f32 rounded to odd."""
    near = array(value.astype(np.float32))
    bits = near.view(np.uint32)
    wide = near.astype(np.float64)
    too_far = np.abs(wide) > np.abs(value)
    even = (bits & np.uint32(1)) == 0
    step = np.where(too_far, np.uint32(0xFFFF_FFFF), np.uint32(1))
    return np.where(even & (wide != value) & ~np.isnan(value), bits + step, bits)


def brain(bits: Values) -> Values:
    """Return uint16 bits of bf16 nearest to f32 values of ``bits``; a NaN becomes some NaN."""
    even = (bits >> np.uint32(16)) & np.uint32(1)
    rounded = ((bits + (np.uint32(0x7FFF) + even)) >> np.uint32(16)).astype(np.uint16)
    nan = (bits & np.uint32(0x7FFF_FFFF)) > np.uint32(0x7F80_0000)
    return np.where(nan, np.uint16(0x7FFF), rounded) if nan.any() else rounded


def is_tiny(value: Values, form: Format, rounding: str) -> Values:
    """Return where the exact result behind ``value`` is flushed, once rounded to the format's precision."""
    smallest = 2.0 ** (1 - form.bias)
    precision = form.fraction_bits + 1
    magnitude = np.abs(value)
    toward: Values = magnitude < smallest
    if rounding == "rz":
        return toward
    if rounding == "rn":
        return array(magnitude < smallest - smallest * 2.0 ** (-precision - 1))
    away = value > 0 if rounding == "rp" else value < 0
    return np.where(away, magnitude <= smallest - smallest * 2.0**-precision, toward)


def flush_result(bits: Values, form: Format, rounding: str, exact: Callable[[], Values]) -> Values:
    """Return the result ``bits`` with subnormals replaced by the zero of their sign.

    Only results of exactly the smallest normal magnitude need ``exact()``, the value before it was rounded.
    """
    smallest = form.smallest_normal
    magnitude = bits & form.magnitude
    if not (magnitude - form.word(1) < smallest).any():  # of a zero the largest number
        return bits
    tiny, border = magnitude < smallest, magnitude == smallest
    if border.any():
        tiny = tiny | border & is_tiny(exact(), form, rounding)
    return np.where(tiny, bits & form.sign, bits)


def wide_values(sources: tuple[Values, ...], type_name: str) -> list[Values]:
    """Return float64 of each source."""
    return [widened(source, type_name) for source in sources]
