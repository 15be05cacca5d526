"""The scalar kernels' sums on whole arrays, with NumPy alone: for calls too small to be worth compiling.

The functions have the names, arguments and bits of those in compiled, which explain the rules' numbers. All
arithmetic is of int64: shifts are limited, so that bits shifted out are gone, and nothing else wraps. Imports
no Numba, which takes longer to load than a few instructions to compute.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Planes = tuple[Array, Array, Array]  # significand int64, exponent int32, special int8
Output = tuple[int, int, int, int, bool]  # precision, fraction bits, emin, emax, nearest

_LOWEST = -1 << 20  # below every exponent
_INT32 = np.iinfo(np.int32)


@dataclass(frozen=True, kw_only=True)
class _Numbers:
    """Numbers of one shape: value = significand * 2**(exponent - fraction bits), unless special."""

    significand: Array
    exponent: Array
    special: Array
    fraction_bits: int


# --- sums ----------------------------------------------------------------------------------------------


def fused_sum(
    operands: tuple[Planes, Planes, Planes, Array],
    rule: tuple[int, int, int, int, int],
    output: Output,
    codes: Array,
) -> None:
    """Write the code of every D element into ``codes (batch, m, n)``, as fused.fused_sum does."""
    a, b, c, columns = operands
    length, fraction_bits, floor, product_bits, c_bits = rule
    value = _Numbers(significand=c[0], exponent=c[1], special=c[2], fraction_bits=c_bits)
    for start in range(0, columns.shape[2], length):
        chosen = slice(start, start + length)
        factors = [(x[:, :, chosen, None], _met(y, columns, chosen)) for x, y in zip(a, b, strict=True)]
        value = _step(factors, value, (fraction_bits, floor, product_bits), output)
    codes[...] = _packed(value, output)


def _met(b: Array, columns: Array, chosen: slice) -> Array:
    """Return rows of B that some stored columns meet, ``(batch, m or 1, products, n)``."""
    part = columns[:, :, chosen]
    if (part == part[:1, :1]).all():
        return b[:, part[0, 0]][:, None]
    return b[np.arange(len(b))[:, None, None], part]


def _step(
    factors: list[tuple[Array, Array]], c: _Numbers, rule: tuple[int, int, int], output: Output
) -> _Numbers:
    """Return a fused sum; ``factors``: of A and of B, their significands, exponents and specials."""
    fraction_bits, floor, product_bits = rule
    (x, y), (x_exponent, y_exponent), (x_special, y_special) = factors
    product, exponent = x * y, x_exponent + y_exponent
    top = np.where(product != 0, exponent, _LOWEST).max(axis=2)
    top = np.maximum(np.maximum(top, np.where(c.significand != 0, c.exponent, _LOWEST)), floor)
    terms = _shifted(product, exponent - top[:, :, None] + (fraction_bits - product_bits))
    total = terms.sum(axis=2) + _shifted(c.significand, c.exponent - top + (fraction_bits - c.fraction_bits))
    result = _rounded(total, top - fraction_bits, output)
    if not (x_special.any() or y_special.any() or c.special.any()):
        return result
    of_terms = np.where((x_special == 2) | (y_special == 2) | (product == 0), 2, 1)
    of_terms = np.where((x_special != 0) | (y_special != 0), of_terms, 0)
    return _with_specials(result, product, of_terms, c, output)


def _with_specials(result: _Numbers, product: Array, special: Array, c: _Numbers, output: Output) -> _Numbers:
    """Return the result where no term is special, and elsewhere the result of Inf and NaN among products and
    C.
    """
    infinite = np.where(special == 1, np.sign(product), 0)
    plus = (infinite > 0).any(axis=2) | (c.special == 1) & (c.significand > 0)
    minus = (infinite < 0).any(axis=2) | (c.special == 1) & (c.significand < 0)
    nan = (special == 2).any(axis=2) | (c.special == 2) | plus & minus
    return _replaced(result, plus | minus | nan, np.where(nan, 0, np.where(plus, 1, -1)), nan, output)


def _replaced(result: _Numbers, where: Array, sign: Array, nan: Array, output: Output) -> _Numbers:
    """Return the result with Inf of a sign, or NaN, in some places."""
    return _Numbers(
        significand=np.where(where, sign, result.significand),
        exponent=np.where(where, output[3], result.exponent),
        special=np.where(where, np.where(nan, 2, 1), result.special),
        fraction_bits=result.fraction_bits,
    )


def scaled_groups(
    operands: tuple[Array, Array, Planes, Array],
    scales: tuple[Planes, Planes],
    rule: tuple[int, int, int, int, int, int, int],
    output: Output,
    codes: Array,
) -> None:
    """Write the code of every D element into ``codes (batch, m, n)``, as groups.scaled_groups does."""
    a, b, c, columns = operands
    scale_a, scale_b = scales
    group, fraction_bits, floor, product_bits, scale_bits, c_bits, chunk = rule
    products = a[:, :, :, None] * _met(b, columns, slice(None))
    grouped = products.reshape(*products.shape[:2], -1, group, products.shape[3])
    chunks = columns[:, :, ::group] // chunk
    of_a, of_b = ([plane.astype(np.int64) for plane in scale[:2]] for scale in (scale_a, scale_b))
    factor, exponent = (
        combine(np.take_along_axis(x, chunks, 2)[..., None], _met(y, chunks, slice(None)))
        for combine, x, y in zip((np.multiply, np.add), of_a, of_b, strict=True)
    )
    counts = (grouped != 0).any(axis=3) & (factor != 0)
    top = np.where(counts, exponent, _LOWEST).max(axis=2)
    top = np.maximum(np.maximum(top, np.where(c[0] != 0, c[1], _LOWEST)), floor)
    distance = exponent - top[:, :, None] + (fraction_bits - product_bits - scale_bits)
    total = _shifted(grouped.sum(axis=3) * factor, distance).sum(axis=2)
    total += _shifted(c[0], c[1] - top + (fraction_bits - c_bits))
    result = _rounded(total, top - fraction_bits, output)
    nan = (scale_a[2] != 0).any(axis=2)[:, :, None] | (scale_b[2] != 0).any(axis=1)[:, None] | (c[2] == 2)
    codes[...] = _packed(_replaced(result, nan | (c[2] != 0), c[0], nan, output), output)


def integer_sum(
    operands: tuple[Array, Array, Array, Array], saturate: bool, exclusive: bool, result: Array
) -> None:
    """Write ``c + sum(a * b)`` as int64 codes modulo 2**32 into ``result (batch, m, n)``.

    ``saturate`` and ``exclusive`` as in integer.integer_sum.
    """
    a, b, c, columns = operands
    x, y = a[:, :, :, None], _met(b, columns, slice(None))
    total = c + (x ^ y if exclusive else x * y).sum(axis=2)
    result[...] = (np.clip(total, _INT32.min, _INT32.max) if saturate else total) & 0xFFFFFFFF


# --- rounding ------------------------------------------------------------------------------------------


def _shifted(number: Array, distance: Array) -> Array:
    """Return number * 2**distance, truncated toward zero."""
    magnitude = np.abs(number)
    up, down = np.clip(distance, 0, 62), np.clip(-distance, 0, 63)
    shifted: Array = np.sign(number) * ((magnitude << up) >> down)
    return shifted


def _bit_length(magnitude: Array) -> Array:
    """Return the bit length of positive integers below 2**62, corrected for float64's rounding up."""
    length: Array = np.frexp(magnitude.astype(np.float64))[1].astype(np.int64)
    length -= (magnitude >> np.maximum(length - 1, 0)) == 0
    return length


def _rounded(total: Array, lsb: Array, output: Output) -> _Numbers:
    """Return the numbers ``total * 2**lsb`` in a format, as rounding.rounded does for a single number."""
    precision, fraction_bits, emin, emax, nearest = output
    magnitude = np.abs(total)
    exponent = np.maximum(_bit_length(magnitude) - 1 + lsb, emin)
    cut = exponent - (precision - 1) - lsb
    kept = _shifted(magnitude, -cut)
    if nearest:
        rest = np.where(cut < 62, magnitude - (kept << np.clip(cut, 0, 61)), magnitude)
        half = np.int64(1) << np.clip(cut - 1, 0, 61)
        kept += (cut > 0) & ((rest > half) | (rest == half) & (kept & 1 == 1))
        carried = kept >> precision != 0
        kept, exponent = kept >> carried, exponent + carried
    infinite = exponent > emax
    significand = np.where(infinite, 1, kept << (fraction_bits - (precision - 1)))
    return _Numbers(
        significand=np.sign(total) * significand,
        exponent=np.where(total == 0, emin, np.minimum(exponent, emax)),
        special=infinite & (total != 0),
        fraction_bits=fraction_bits,
    )


def _packed(number: _Numbers, output: Output) -> Array:
    """Return the codes of numbers: IEEE patterns whose NaN has every bit set but the sign; zero is +0."""
    _, fraction_bits, emin, emax, _ = output
    field = emax - emin + 2
    sign = (field + 1) << fraction_bits
    finite = np.abs(number.significand) + ((number.exponent.astype(np.int64) - emin) << fraction_bits)
    code = np.where(number.special == 1, field << fraction_bits, finite)
    code = np.where(number.significand < 0, code + sign, code)
    return np.where(number.special == 2, sign - 1, code)
