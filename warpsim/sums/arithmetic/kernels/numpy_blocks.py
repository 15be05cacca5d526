"""Fused sums of blocks of D with NumPy alone: the sums of panels, where there is no compiler.

The same two ways as in ``steps``, on whole arrays instead of lanes, and with the same planes: float32 values
and int16 exponents with ZERO and SPECIAL. ``fast`` takes a block of rows and columns and returns which of its
elements it is not proven for; ``exact`` takes a list of elements. The proofs are those in steps, but sums are
formed in float64 once they may exceed int32, so that their size is not a hazard.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .variants import (
    ALL_ZERO,
    CANONICAL_NAN,
    F16_LARGEST,
    F16_LOWEST,
    HIGHEST,
    LOWEST,
    NO_TERM,
    SCALE_LIMIT,
    Variant,
)

Array = npt.NDArray[Any]
Factors = tuple[Array, Array]  # values and exponents, with the products along the first axis
Numbers = tuple[int, int, int]  # fraction bits, exponent floor, precision

_F32_LOWEST = -126
_NAN = np.array([CANONICAL_NAN], np.uint32).view(np.float32)[0]


def pass_of(
    a: Factors, b: Factors, scale: Array | None, c: Array, numbers: Numbers, variant: Variant
) -> tuple[Array, Array]:
    """Return (results, mask of elements that must be computed exactly) of a pass over a block.

    Factors of a are ``(products, rows, 1)``, of b ``(products, 1 or rows, columns)``; ``scale`` is
    the exponent of each element's block scale; c ``(rows, columns)`` float32.
    """
    with np.errstate(all="ignore"):
        value = np.zeros_like(c) if variant.emulated else c
        hazard = np.zeros(c.shape, np.bool_)
        for start in range(0, variant.products, variant.length):
            of = slice(start, start + variant.length)
            step = (a[0][of], a[1][of]), (b[0][of], b[1][of])
            value, uncertain = fast(*step, scale, value, numbers, variant)
            hazard |= uncertain
        if variant.emulated:
            value = _add(c, value, variant)
        settled = np.isnan(c)
        return np.where(settled, c, value), hazard & ~settled


def exact_pass(
    a: Factors, b: Factors, scale: Array | None, c: Array, numbers: Numbers, variant: Variant
) -> Array:
    """Return results of a pass for a list of elements: factors ``(products, elements)``, c
    ``(elements,)``.
    """
    with np.errstate(all="ignore"):
        value = np.zeros_like(c) if variant.emulated else c
        for start in range(0, variant.products, variant.length):
            of = slice(start, start + variant.length)
            value = exact((a[0][of], a[1][of]), (b[0][of], b[1][of]), scale, value, numbers, variant)
        return _add(c, value, variant) if variant.emulated else value


def fast(
    a: Factors, b: Factors, scale: Array | None, c: Array, numbers: Numbers, variant: Variant
) -> tuple[Array, Array]:
    """Return (results, mask of elements that must be computed exactly) of one step over a block."""
    fraction_bits, floor, precision = numbers
    top = _largest(a[1], b[1], scale, c.shape)
    np.maximum(top, _exponent(c, variant), out=top)
    hazard = (top > HIGHEST) | (top < LOWEST) & (top > ALL_ZERO)
    if scale is not None:
        hazard |= np.abs(scale) > SCALE_LIMIT
    np.clip(top, floor if variant.half else LOWEST, HIGHEST, out=top)
    distance = fraction_bits - top.astype(np.int32)
    up = _single_power(distance)
    number = _cut_sum(
        a[0], b[0], up if scale is None else _single_power(np.clip(distance + scale, -126, 120))
    )
    number += np.trunc(c * up)
    number *= _single_power(-distance)
    return (_rounded if variant.half else _truncate)(number, precision, variant), hazard


def _single_power(exponent: Array) -> Array:
    """Return 2**exponent (int32) as float32, for exponents of normal numbers."""
    return ((exponent + 127) << 23).view(np.float32)


def _power(exponent: Array) -> Array:
    """Return 2**exponent as float64, for exponents of normal numbers."""
    return ((exponent.astype(np.int64) + 1023) << 52).view(np.float64)


def _largest(a: Array, b: Array, scale: Array | None, shape: tuple[int, ...]) -> Array:
    """Return the largest exponent of each element's products."""
    top, each = np.empty(shape, np.int16), np.empty(shape, np.int16)
    np.add(a[0], b[0], out=top)
    for x, y in zip(a[1:], b[1:], strict=True):
        np.add(x, y, out=each)
        np.maximum(top, each, out=top)
    return top if scale is None else top + scale


def _cut_sum(a: Array, b: Array, up: Array) -> Array:
    """Return sums of products times up, each cut toward zero, as float64; 16 of them fit int32."""
    product, term = np.empty(up.shape, np.float32), np.empty(up.shape, np.int32)
    total = np.zeros(up.shape, np.float64)
    for start in range(0, len(a), 16):
        part = np.zeros(up.shape, np.int32)
        for x, y in zip(a[start : start + 16], b[start : start + 16], strict=True):
            np.multiply(x, y, out=product)
            np.multiply(product, up, out=product)
            np.copyto(term, product, casting="unsafe")
            np.add(part, term, out=part)
        total += part
    return total


def _exponent(c: Array, variant: Variant) -> Array:
    """Return exponents of accumulators: a subnormal number has the smallest, zero has NO_TERM."""
    exponent = (c.view(np.int32) >> 23 & 255).astype(np.int16)
    np.maximum(exponent, 1, out=exponent)
    exponent -= 127
    if variant.half:
        np.maximum(exponent, F16_LOWEST, out=exponent)
    return np.where(c == 0, np.int16(NO_TERM), exponent)


def exact(a: Factors, b: Factors, scale: Array | None, c: Array, numbers: Numbers, variant: Variant) -> Array:
    """Return results of a step for any list of elements."""
    fraction_bits, floor, precision = numbers
    top = _largest(a[1], b[1], scale, c.shape)
    top = np.maximum(np.maximum(top, _exponent(c, variant)), floor).astype(np.int32)
    up = fraction_bits - np.minimum(top, 400)  # more only where the sum is infinite or NaN
    products = a[0].astype(np.float64) * b[0]
    plain = products.sum(axis=0) + c
    if scale is not None:
        plain = np.where(np.abs(scale) > SCALE_LIMIT, np.nan, plain)
    scaled = np.trunc(products * _power(up if scale is None else up + np.clip(scale, -400, 400)))
    number = scaled.sum(axis=0) + np.trunc(c * _power(up))
    result = _rounded(number * _power(-up), precision, variant)
    result = np.where(np.isfinite(plain), result, plain.astype(np.float32))
    return np.where(np.isnan(plain), _NAN, result)


def _rounded(number: Array, precision: int, variant: Variant) -> Array:
    """Return float64 (an integer of at most 38 bits, scaled) in the result's precision and range; zero is
    +0.
    """
    lowest = F16_LOWEST if variant.half else _F32_LOWEST
    exponent = (number.view(np.int64) >> 52 & 2047) - 1023
    last = np.maximum(exponent, lowest) - (precision - 1)
    whole = number * _power(-last)
    (np.rint if variant.half else np.trunc)(whole, out=whole)
    whole *= _power(last)
    whole += 0.0
    result: Array = whole.astype(np.float32)
    return _overflow_to_infinity(result) if variant.half else result


def _truncate(number: Array, precision: int, variant: Variant) -> Array:
    """Return float64, 0 or of the size of normal numbers of float32, cut to the result's precision.

    The number is overwritten; it is not -0, as no sum is that begins with +0.
    """
    bits = number.view(np.int64)
    bits &= -1 << (53 - precision)
    return number.astype(np.float32)


def _overflow_to_infinity(number: Array) -> Array:
    """Return the numbers, those above f16's largest replaced by infinities."""
    return np.where(np.abs(number) > F16_LARGEST, np.copysign(np.float32(np.inf), number), number)


def _add(c: Array, partial: Array, variant: Variant) -> Array:
    """Return the IEEE sum in the accumulator's format, NaN canonical (see steps.emulated_sum)."""
    result = c + partial
    if variant.half:
        result = result.astype(np.float16).astype(np.float32)
    return np.where(np.isnan(result), _NAN, result)
