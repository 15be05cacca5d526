"""Terms of aligned sums as float64: exact values, zeros with their signs, infinities and NaNs, and exponents.

A product of two numbers of at most 24 bits is exact in float64, and so is its scaling by powers of two; IEEE
multiplication gives the sign of a zero and the NaN of Inf * 0 by itself. Hence a term is a value and the
exponent that tensor cores align it by, which does not follow from the value. Knows no rule.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ....isa.formats import Format
from .exact_numbers import FINITE, INFINITE, NOT_A_NUMBER, Array, Numbers


@dataclass(frozen=True, kw_only=True)
class Terms:
    """``value``, float64, and ``exponent``, integers; arrays of one shape."""

    value: Array
    exponent: Array

    def __getitem__(self, index: Any) -> Terms:
        return Terms(value=self.value[index], exponent=self.exponent[index])

    def chosen(self, outputs: Array) -> Terms:
        """Return those of some outputs, by their numbers; the first three axes are those of outputs."""
        return Terms(value=_chosen(self.value, outputs), exponent=_chosen(self.exponent, outputs))

    @property
    def outermost(self) -> Terms:
        """The same, the last axis outermost in memory: sums over it then run along all outputs at once."""
        return Terms(value=_outermost(self.value), exponent=_outermost(self.exponent))

    @property
    def nonzero(self) -> Array:
        """Where the term is not zero."""
        return self.value != 0

    @property
    def negative(self) -> Array:
        """The sign bit, which a zero has too."""
        return np.signbit(self.value)

    @property
    def special(self) -> Array:
        """FINITE, INFINITE or NOT_A_NUMBER."""
        finite, nan = np.isfinite(self.value), np.isnan(self.value)
        return np.where(finite, FINITE, np.where(nan, NOT_A_NUMBER, INFINITE)).astype(np.int8)

    def subnormal(self, element: Format) -> Array:
        """Return where it is below the normal numbers of a format."""
        return self.nonzero & (np.abs(self.value) < 2.0**element.minimum_exponent)

    def flushed(self, element: Format) -> Terms:
        """Return subnormal numbers of a format as zeros (no chip reads them so)."""
        return replace(
            self, value=np.where(self.subnormal(element), np.copysign(0.0, self.value), self.value)
        )

    def raised(self, element: Format) -> Terms:
        """Return the same, the largest subnormal number of a format as the smallest normal number."""
        normal = 2.0**element.minimum_exponent
        largest = normal - 2.0 ** (element.minimum_exponent - element.fraction_bits)
        value = np.where(np.abs(self.value) == largest, np.copysign(normal, self.value), self.value)
        return replace(self, value=value)

    def lifted(self, lowest: Any) -> Terms:
        """Return the same values with the exponents of their leading 1 bits, at least ``lowest``."""
        lead = np.frexp(self.value)[1].astype(self.exponent.dtype) - 1
        lead = np.where(self.nonzero & np.isfinite(self.value), lead, self.exponent)
        return replace(self, exponent=np.maximum(lead, lowest))


def _outermost(array: Array) -> Array:
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, -1, 0)), 0, -1)


def _chosen(array: Array, outputs: Array) -> Array:
    if array.ndim == 3:
        return array.reshape(-1)[outputs]
    outermost = np.moveaxis(array, -1, 0)
    if not outermost.flags.c_contiguous:  # a row of A that many outputs share is not made anew for each
        return np.moveaxis(outermost[:, *np.unravel_index(outputs, array.shape[:3])], 0, -1)
    return np.moveaxis(outermost.reshape(len(outermost), -1).take(outputs, axis=1), 0, -1)


def terms_of(numbers: Numbers) -> Terms:
    """Return decoded numbers as terms."""
    value = np.ldexp(np.abs(numbers.significand).astype(np.float64), numbers.scale.astype(np.int32))
    value = np.where(numbers.special == INFINITE, np.inf, value)
    value = np.where(numbers.special == NOT_A_NUMBER, np.nan, value)
    value = np.copysign(value, np.where(numbers.negative, -1.0, 1.0))
    return Terms(value=value, exponent=numbers.exponent.astype(np.int16))


def results(codes: Array, element: Format) -> Terms:
    """Return codes of f16 or f32 as terms, as ``terms_of`` has them of numbers."""
    value = codes.astype(element.code_dtype).view(element.dtype).astype(np.float64)
    field = (codes >> np.uint64(element.fraction_bits)).astype(np.int16) & ((1 << element.exponent_bits) - 1)
    return Terms(value=value, exponent=np.maximum(field, 1) - np.int16(element.bias))


_BITS = 24  # of the widest term that goes back


def numbers_of(terms: Terms) -> Numbers:
    """Return terms of at most 24 bits as numbers of that many."""
    special = terms.special
    fraction, lead = np.frexp(np.where(special == FINITE, terms.value, np.copysign(1.0, terms.value)))
    return Numbers(
        significand=(fraction * 2.0**_BITS).astype(np.int64),
        scale=np.where(terms.nonzero, lead.astype(np.int64) - _BITS, 0),
        exponent=terms.exponent.astype(np.int64),
        special=special,
        negative=terms.negative,
    )


def times(x: Terms, y: Terms) -> Terms:
    """Return ``x * y``, exact; Inf * 0 is NaN."""
    with np.errstate(invalid="ignore"):
        return Terms(value=x.value * y.value, exponent=x.exponent + y.exponent)


def beside_terms(x: Terms, y: Terms) -> Terms:
    """Return ``x (..., n)`` with ``y (...)`` as one more of the last axis."""
    value = np.concatenate([x.value, y.value[..., None]], axis=-1)
    return Terms(value=value, exponent=np.concatenate([x.exponent, y.exponent[..., None]], axis=-1))
