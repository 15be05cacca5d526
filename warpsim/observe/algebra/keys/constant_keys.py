"""The keys of numbers that a kernel has in its text, computes from such, or finds in memory.

A number is its exact dyadic rational, unless it is a rounding of a constant that the reference uses, such as
0.044715, of its reciprocal, of log2(e), or of a product of these and a power of two: then it has the key of
that constant, in each format. Knows values; does not know where they come from.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ....isa.formats import FORMATS
from .finite_fields import ZERO, Keys, P, Q, hashed, inv, joined, mul, neg

_U = np.uint64
_FRACTION = 53
_LOWEST = -1200  # the least exponent of the table of powers of two
_TWOS = joined(
    np.array([pow(2, e % (Q - 1), Q) for e in range(_LOWEST, 1200)], np.uint64),
    np.array([pow(2, e % (P - 1), P) for e in range(_LOWEST, 1200)], np.uint64),
)
LOG2E = int(hashed("log2(e)"))  # log2(e) and ln(2) are inverse to each other, and otherwise unknown
_SHORT = 11  # bits of a significand that is taken as it stands, not as a rounding
_OF_LOG2E = 8  # bits of a factor of log2(e)
_NARROW = {  # fraction bits of formats that round constants visibly
    name: each.fraction_bits
    for name, each in FORMATS.items()
    if each.is_float and each.signed and each.bits in (8, 16)
}
_PRECISIONS = {**_NARROW, "f64": 30}  # bits; f32 and others have 22


def dyadic(values: Any) -> Keys:
    """Return the keys of finite float64 numbers as exact rationals."""
    fraction, exponent = np.frexp(np.asarray(values, np.float64))
    whole = np.ldexp(fraction, _FRACTION).astype(np.int64)
    keys = joined(whole % Q, whole % P)
    return mul(keys, _TWOS[exponent - _FRACTION - _LOWEST])


def integer_keys(values: npt.NDArray[Any]) -> Keys:
    """Return the keys of integers of any width."""
    if values.dtype.kind == "u":
        return joined(values.astype(_U) % _U(Q), values.astype(_U) % _U(P))
    wide = values.astype(np.int64)
    return joined(wide % Q, wide % P)


def two_to(exponents: Any) -> Keys:
    """Return the keys of 2 ** exponents, for integers."""
    found: Keys = _TWOS[np.asarray(exponents, np.int64) - _LOWEST]
    return found


class ConstantKeys:
    """The constants that a reference uses, and the keys of numbers beside them."""

    def __init__(self) -> None:
        self._fractions = list[float]()  # in [0.5, 1)
        self._keys = list[int]()  # of these fractions
        self._note(np.log2(np.e), LOG2E)
        self._note(np.log(2), int(inv(LOG2E)))

    @property
    def count(self) -> int:
        """Constants that are known."""
        return len(self._keys)

    def note(self, value: float) -> None:
        """Know a constant of the reference, and its reciprocal."""
        value = abs(float(value))
        if not np.isfinite(value) or value == 0 or _bits_of(value) <= 1:
            return
        key = int(self.keys(np.array(value), "f64"))
        if _bits_of(value) > _SHORT:
            self._note(value, key)
            self._note(value * np.log2(np.e), int(mul(key, LOG2E)))
        self._note(1 / value, int(inv(key)))
        self._note(np.log2(np.e) / value, int(mul(inv(key), LOG2E)))

    def _note(self, value: float, key: int) -> None:
        fraction, exponent = np.frexp(value)
        if not any(abs(known - fraction) < 2.0**-30 for known in self._fractions):
            self._fractions.append(float(fraction))
            self._keys.append(int(mul(key, two_to(-exponent))))

    def keys(self, values: npt.ArrayLike, kind: str = "f32") -> Keys:
        """Return the keys of float64 values that a format holds."""
        values = np.asarray(values, np.float64)
        if not values.any():
            return np.zeros(values.shape, _U)
        finite = np.isfinite(values)
        if finite.all():
            return self._finite(values, kind)
        keys = self._finite(np.where(finite, values, 0.0), kind)
        names = np.where(np.isnan(values), hashed("nan"), hashed("infinity"))
        special = np.where(np.isneginf(values), neg(names), names)
        return np.where(finite, keys, special)

    def inverses(self, values: npt.ArrayLike, kind: str = "f32") -> Keys:
        """Return the keys that divide by numbers: those of reciprocals where the reference uses these.

        A multiple of sqrt(2) is, but for a power of two, its own reciprocal: so the constant has one key.
        """
        values = np.asarray(values, np.float64)
        own = inv(self.keys(values, kind))
        with np.errstate(divide="ignore", invalid="ignore"):
            other = np.where(np.isfinite(1 / values), 1 / values, 0.0)
        named = self.keys(other, kind)
        return np.where((other != 0) & (named != dyadic(other)), named, own)

    def _finite(self, values: npt.NDArray[np.float64], kind: str) -> Keys:
        first = float(values.flat[0])
        if values.size > 1 and (values == first).all():
            return np.broadcast_to(self._finite(np.array(first), kind), values.shape)
        keys = dyadic(values)
        fraction, exponent = np.frexp(np.abs(values))
        long = np.ldexp(fraction, _SHORT) % 1 != 0
        if kind in _NARROW:
            long = np.ldexp(fraction, 3) % 1 != 0
        if not long.any():
            return keys
        near = 2.0 ** -_PRECISIONS.get(kind, 22)
        named = np.zeros(values.shape, _U)
        for known, key in zip(self._fractions, self._keys, strict=True):
            hit = long & (named == ZERO) & (np.abs(fraction - known) <= near * known)
            if hit.any():
                named = np.where(hit, _U(key), named)
        named = self._multiples(fraction, long & (named == ZERO) & (kind in ("f32", "f64")), named)
        found = mul(named, two_to(exponent))
        return np.where(named != ZERO, np.where(values < 0, neg(found), found), keys)

    @staticmethod
    def _multiples(fraction: npt.NDArray[Any], open_: npt.NDArray[np.bool_], named: Keys) -> Keys:
        """Name roundings of log2(e) times a number of few bits."""
        if not open_.any():
            return named
        factor, exponent = np.frexp(fraction / np.log2(np.e))
        scaled = np.ldexp(factor, _OF_LOG2E)
        short = np.rint(scaled)
        hit = open_ & (np.abs(scaled - short) <= 2.0**-22 * scaled)
        found = mul(LOG2E, dyadic(np.ldexp(short, exponent - _OF_LOG2E)))
        return np.where(hit, found, named)


def _bits_of(value: float) -> int:
    """Return how many bits the significand of a number takes."""
    whole = int(np.ldexp(np.frexp(value)[0], _FRACTION))
    return _FRACTION + 1 - (whole & -whole).bit_length()
