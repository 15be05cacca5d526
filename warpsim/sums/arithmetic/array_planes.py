"""Values and exponents of codes, decoded with NumPy alone, for sums of whole arrays.

The planes are those of the kernels: float32 values and int16 exponents, ZERO for zero and SPECIAL for Inf and
NaN. Codes of 16 bits are decoded by arithmetic, which takes half as long as to look them up; narrower codes
are looked up. Knows formats; no sums, no lanes. Imports no Numba.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ...isa.codes import values_of
from ...isa.formats import FORMATS, Format
from .kernels.variants import SPECIAL, ZERO
from .planes import converted, planes

Array = npt.NDArray[Any]
Factor = tuple[Array, Array]  # float32 values and int16 exponents

_F32 = FORMATS["f32"]


def decoded(codes: Array, element: Format, as_half: bool) -> Factor:
    """Return values and exponents; those of f16 for what is computed in it."""
    codes = np.ascontiguousarray(codes)
    if element.bits > 16:
        with np.errstate(invalid="ignore"):
            value = values_of(codes, element).astype(np.float32)
        return value, _exponents(value)
    if element.bits == 16:
        return _decode_half_words(codes, element)
    values, exponents = _table(element, as_half)
    index = codes & codes.dtype.type(element.mask)
    return values.take(index), exponents.take(index)


def _decode_half_words(codes: Array, element: Format) -> Factor:
    """Return values and exponents of codes of 16 bits.

    A magnitude, its bits moved to float32's places, stands for the value times 2**(bias - 127): the product
    with a power of two is exact. An exponent field of 0 has the exponent of 1.
    """
    magnitude = codes & np.uint16(element.mask & ~element.sign_bit)
    special = None
    if magnitude.size and magnitude.max() >= element.infinity:
        special = magnitude >= element.infinity
    places = _F32.fraction_bits - element.fraction_bits
    bits = codes.view(np.int16).astype(np.int32)  # the sign goes on to the left
    bits <<= places
    bits &= np.int32(-(1 << 31) | (element.mask & ~element.sign_bit) << places)
    values = bits.view(np.float32)
    if element.bias != _F32.bias:
        values *= np.float32(2.0 ** (_F32.bias - element.bias))
    exponents = _exponents_of_magnitudes(magnitude, element)
    if special is not None:
        exponents[special] = SPECIAL
        values[special] = _table(element, False)[0].take(codes[special])
    return values, exponents


def _exponents_of_magnitudes(magnitude: Array, element: Format) -> Array:
    """Return exponents of magnitudes of at most 15 bits, which are overwritten."""
    zero = (magnitude - np.uint16(1)).view(np.int16)  # negative for 0 alone
    zero >>= 15
    zero &= np.int16(ZERO - element.minimum_exponent)
    magnitude >>= np.uint16(element.fraction_bits)
    exponents: Array = magnitude.view(np.int16)
    np.maximum(exponents, 1, out=exponents)
    exponents -= np.int16(element.bias)
    exponents += zero
    return exponents


@cache
def _table(element: Format, as_half: bool) -> Factor:
    """Return value and exponent of every code."""
    codes, half = np.arange(1 << element.bits, dtype=element.code_dtype), FORMATS["f16"]
    split = planes(converted(codes, element, half), half) if as_half else planes(codes, element)
    exponents = np.where(split.significand == 0, ZERO, split.exponent)
    exponents = np.where(split.special != 0, SPECIAL, exponents).astype(np.int16)
    with np.errstate(invalid="ignore"):
        return values_of(codes, element).astype(np.float32), exponents


def _exponents(value: Array) -> Array:
    """Return the exponents of float32 numbers: a subnormal number has the smallest."""
    field = (value.view(np.int32) >> 23 & 255).astype(np.int16)
    exponents = np.where(field == 255, np.int16(SPECIAL), np.maximum(field, 1) - np.int16(127))
    return np.where(value == 0, np.int16(ZERO), exponents)
