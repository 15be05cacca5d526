"""Conversions of one element a lane between integers, and between them and floating-point formats.

Knows ranges, clamping, and which integer a NaN becomes. Does not know how elements are packed, nor which
combinations PTX has. PTX ISA 9.0, section 9.7.9.21 "cvt". What elements says of short cuts holds here too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from ..operation import looked_up
from .codes import Layout, Numbers, decode, encode, integers, whole_magnitudes
from .elements import Array, Modifiers, Step, after, chain, flushing


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
        """Return whether it has all values of another type."""
        return self.least <= other.least and other.greatest <= self.greatest


INTEGERS = {name: Integer(name=name) for name in ("u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64")}


def integer_conversion(source: Integer, result: Integer, *, sat: bool) -> Step:
    """Return integers to integers: extended or cut, or clamped with ``sat``."""
    if not sat:
        return lambda values: values.view(source.by_value).astype(result.by_value).view(result.dtype)
    kind = source.by_value.type
    low, high = kind(max(source.least, result.least)), kind(min(source.greatest, result.greatest))

    def clamp(values: Array) -> Array:
        clamped: Array = np.minimum(np.maximum(values.view(source.by_value), low), high)
        return clamped.astype(result.by_value).view(result.dtype)

    return clamp


def from_integer(source: Integer, result: Layout, modifiers: Modifiers) -> Step:
    """Return integers to codes; NumPy's cast to f32 and f64 rounds once, to nearest."""

    def cast(values: Array) -> Array:
        return values.view(source.by_value).astype(f"f{result.bits // 8}").view(result.dtype)

    def from_table(values: Array) -> Array:
        return looked_up(_integer_table(source, result, modifiers.rounding), values)

    def exact(values: Array) -> Array:
        return encode(integers(values.view(source.by_value)), result, modifiers.rounding)

    nearest = modifiers.rounding == "rn" and result.bits >= 32
    core = cast if nearest else from_table if source.bits <= 16 else exact
    return chain(core, *after(result, result, replace(modifiers, ftz=False)))


@cache
def _integer_table(source: Integer, result: Layout, rounding: str) -> Array:
    values = np.arange(1 << source.bits).astype(source.dtype)
    return encode(integers(values.view(source.by_value)), result, rounding)


def to_integer(source: Layout, result: Integer, modifiers: Modifiers) -> Step:
    """Return a conversion of codes to integers, clamped to the type's range, which makes ``.sat`` redundant.

    NaN becomes 0 where neither type is of 64 bits, otherwise 1 << (bits - 1).
    """
    if source.bits <= 16:
        return lambda codes: looked_up(_whole_table(source, result, modifiers), codes)
    before = [flushing(source)] if modifiers.ftz else []
    if result.bits <= 32:
        return chain(*before, lambda codes: _whole_by_cast(codes, source, result, modifiers))
    return chain(*before, lambda codes: _to_integers(decode(codes, source), source, result, modifiers))


@cache
def _whole_table(source: Layout, result: Integer, modifiers: Modifiers) -> Array:
    codes = np.arange(1 << source.bits).astype(source.dtype)
    return _to_integers(decode(codes, source), source, result, modifiers)


def nan_as_integer(source: Layout, result: Integer) -> int:
    """Return what a NaN becomes: PTX ISA 9.0, section 9.7.9.21, "Integer Notes"."""
    return 1 << (result.bits - 1) if 64 in (source.bits, result.bits) else 0


def _to_integers(numbers: Numbers, source: Layout, result: Integer, modifiers: Modifiers) -> Array:
    magnitude = whole_magnitudes(numbers, modifiers.rounding.removesuffix("i"))
    down = np.minimum(magnitude, np.uint64(-result.least))
    up = np.minimum(magnitude, np.uint64(result.greatest))
    value = np.where(numbers.negative, ~down + np.uint64(1), up)
    value = np.where(numbers.nan, np.uint64(nan_as_integer(source, result)), value)
    return value.astype(result.dtype)


_WHOLE: dict[str, Callable[..., Array]] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def _whole_by_cast(codes: Array, source: Layout, result: Integer, modifiers: Modifiers) -> Array:
    """Return results of up to 32 bits: f64 has all values of source and result, and every step is exact."""
    values = codes.view(f"f{source.bits // 8}")
    with np.errstate(invalid="ignore"):  # a signaling NaN
        whole = np.clip(_WHOLE[modifiers.rounding](values.astype(np.float64)), result.least, result.greatest)
        nan = np.isnan(whole)
    integer = np.where(nan, 0.0, whole).astype(np.int64).astype(result.dtype)
    return np.where(nan, result.dtype.type(nan_as_integer(source, result)), integer)
