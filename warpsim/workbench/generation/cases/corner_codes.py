"""Codes that break arithmetic: the edge cases of each format, and codes of given exponents.

Knows bit fields; does not know instructions or rules.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ....isa.formats import Format
from ..sums.exact_numbers import Array
from ..sums.limits import largest, top_exponent

Rng = np.random.Generator


def encode(element: Format, exponent: Any, fraction: Any = 0, negative: Any = False) -> Array:
    """Return codes of ``1.fraction * 2**exponent``, at most the largest finite number.

    Of an exponent below the normal numbers the power of two alone, or zero below those.
    """
    exponent = np.minimum(np.asarray(exponent, np.int64), top_exponent(element) + 1)
    magnitude = (np.maximum(exponent + element.bias, 0) << element.fraction_bits) + fraction
    depth = element.minimum_exponent - exponent
    if np.any(depth > 0):
        subnormal = (1 << element.fraction_bits) >> np.minimum(np.maximum(depth, 0), 62)
        magnitude = np.where(depth > 0, subnormal, magnitude)
    code = np.minimum(magnitude, largest(element)).astype(np.uint64) << np.uint64(element.ignored_bits)
    sign = np.asarray(negative).astype(np.uint64) * np.uint64(element.sign_bit)
    return (code | sign).astype(element.code_dtype)


@cache
def catalogue(element: Format) -> Array:
    """Return every edge-case code of a format.

    Of a floating-point format both signs of exponent fields 0, 1, bias, largest less 1 and largest with
    fractions 0, 1, upper half and all bits set (hence zeros, subnormal, smallest and largest normal numbers,
    infinities, quiet and signaling NaNs), and ignored low bits. Of an integer format both ends, 0, 1
    and -1.
    """
    if not element.is_float:
        middle = element.mask >> 1
        values = np.array([0, 1, middle, middle + 1, element.mask - 1, element.mask], np.uint64)
        return np.unique(values & np.uint64(element.mask)).astype(element.code_dtype)
    top, full = (1 << element.exponent_bits) - 1, (1 << element.fraction_bits) - 1
    ones = (1 << element.ignored_bits) - 1
    codes = {
        (sign * element.sign_bit) | (field << element.fraction_bits | fraction) << element.ignored_bits | low
        for sign in (0, 1)
        for field in (0, 1, element.bias, top - 1, top)
        for fraction in {0, 1 & full, (full + 1) // 2 & full, full - 1 & full, full}
        for low in {0, ones, (ones + 1) // 2}
    }
    return np.array(sorted(codes), np.uint64).astype(element.code_dtype)


def is_special(codes: Array, element: Format) -> Array:
    """Return which codes are an Inf or a NaN."""
    if not element.is_float:
        return np.zeros(codes.shape, np.bool_)
    magnitude = codes.astype(np.uint64) & np.uint64(element.mask & ~element.sign_bit)
    special: Array = magnitude >> np.uint64(element.ignored_bits) > np.uint64(largest(element))
    return special


@cache
def finite_catalogue(element: Format) -> Array:
    """Return the catalogue without infinities and NaNs."""
    codes = catalogue(element)
    return codes[~is_special(codes, element)]


@cache
def special_catalogue(element: Format) -> Array:
    """Return the infinities and NaNs of the catalogue; zeros for a format that has none."""
    codes = catalogue(element)
    special = codes[is_special(codes, element)]
    return special if len(special) else np.zeros(1, element.code_dtype)


def random_codes(element: Format, shape: tuple[int, ...], rng: Rng) -> Array:
    """Return raw bit patterns."""
    return rng.integers(0, element.mask, shape, np.uint64, endpoint=True).astype(element.code_dtype)


def tamed(codes: Array, element: Format) -> Array:
    """Return codes whose infinities and NaNs lose their highest exponent bit."""
    bit = 1 << (element.ignored_bits + element.fraction_bits + max(element.exponent_bits - 1, 0))
    return np.where(is_special(codes, element), codes & ~element.code_dtype.type(bit), codes)


def zeros(element: Format, shape: tuple[int, ...], rng: Rng) -> Array:
    """Return zeros of both signs; of a format without zero its smallest number."""
    sign = element.code_dtype.type(element.sign_bit if element.is_float else 0)
    return np.where(signs(shape, rng), sign, element.code_dtype.type(0))


def signs(shape: tuple[int, ...], rng: Rng) -> Array:
    """Return signs, half of them negative."""
    return rng.random(shape) < 0.5


def fractions(element: Format, shape: tuple[int, ...], rng: Rng) -> Array:
    """Return fractions: none, the last bit, the first bit, all bits, or random bits."""
    full = (1 << element.fraction_bits) - 1
    edges = np.array([0, 1 & full, (full + 1) >> 1 & full, full])
    edge = edges[rng.integers(0, len(edges), shape)]
    return np.where(rng.random(shape) < 0.5, edge, rng.integers(0, full, shape, endpoint=True))


def near(element: Format, shape: tuple[int, ...], width: int, rng: Rng, middle: int = 0) -> Array:
    """Return codes of either sign within ``width`` binades of an exponent."""
    low, high = element.minimum_exponent, top_exponent(element)
    exponent = np.clip(middle + rng.integers(-width, width, shape, endpoint=True), low, high)
    fraction = rng.integers(0, 1 << element.fraction_bits, shape)
    return encode(element, exponent, fraction, element.signed & signs(shape, rng))


def small(element: Format, shape: tuple[int, ...], rng: Rng) -> Array:
    """Return subnormal numbers and zeros of either sign."""
    fraction = rng.integers(0, 1 << element.fraction_bits, shape).astype(np.uint64)
    code = fraction << np.uint64(element.ignored_bits)
    negative = element.signed & signs(shape, rng)
    return (code | negative * np.uint64(element.sign_bit)).astype(element.code_dtype)


def pick(rng: Rng, options: Any, shape: tuple[int, ...]) -> Array:
    """Return random choices from some options."""
    choices = np.asarray(options)
    return choices[rng.integers(0, len(choices), shape)]
