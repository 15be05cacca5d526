"""Rounding an exact sum to a floating-point format, and packing the result.

A number is ``(significand, exponent, special)``: significand * 2**(exponent - fraction bits of its
format), special 0 finite, 1 Inf (the significand's sign is its sign), 2 NaN.
"""

from __future__ import annotations

from .._jit import Output, kernel

Number = tuple[int, int, int]


@kernel
def bit_length(magnitude: int) -> int:
    """Return the bit length of a non-negative integer below 2**62; 0 for 0."""
    length = 0
    for step in (32, 16, 8, 4, 2, 1):
        if magnitude >> step:
            magnitude >>= step
            length += step
    return length + magnitude


@kernel
def shifted(magnitude: int, shift: int) -> int:
    """Return magnitude * 2**shift, truncated toward zero."""
    if shift >= 0:
        return magnitude << shift
    return magnitude >> min(-shift, 63)


@kernel
def rounded(total: int, lsb: int, output: Output) -> Number:
    """Return the number ``total * 2**lsb`` rounded to ``precision`` significant bits of a format.

    To nearest with ties to even, or toward zero; gradual underflow below ``emin``; Inf above ``emax``
    in either mode. Zero comes out without a sign.
    """
    precision, fraction_bits, emin, emax, nearest = output
    if total == 0:
        return 0, emin, 0
    magnitude = abs(total)
    exponent = max(bit_length(magnitude) - 1 + lsb, emin)
    cut = exponent - (precision - 1) - lsb
    kept = shifted(magnitude, -cut)
    if nearest and cut > 0:
        rest = magnitude - (kept << cut) if cut < 62 else magnitude
        half = 1 << min(cut - 1, 61)
        if rest > half or (rest == half and kept & 1):
            kept += 1
        if kept >> precision:
            kept >>= 1
            exponent += 1
    if exponent > emax:
        return (1 if total > 0 else -1), emax, 1
    significand = kept << (fraction_bits - (precision - 1))
    return (significand if total > 0 else -significand), exponent, 0


@kernel
def packed(number: Number, output: Output) -> int:
    """Return the code of a number: an IEEE pattern whose NaN has every bit set but the sign; zero is +0."""
    significand, exponent, special = number
    _, fraction_bits, emin, emax, _ = output
    exponent_field = emax - emin + 2
    sign = (exponent_field + 1) << fraction_bits
    if special == 2:
        return sign - 1
    magnitude = abs(significand)
    # The hidden bit of a normal number carries the field from exponent - emin to one more.
    finite = magnitude + ((exponent - emin) << fraction_bits)
    code = exponent_field << fraction_bits if special == 1 else finite
    return code + sign if significand < 0 else code
