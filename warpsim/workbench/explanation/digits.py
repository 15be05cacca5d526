"""Numbers, codes and dropped bits as text that marks every loss."""

from __future__ import annotations

from fractions import Fraction

from ...base.environment import in_default_environment
from ...base.errors import present
from ...isa.formats import Format
from ...sums.arithmetic.reference import Kind, Number
from .records import value_of

_NINE_DIGITS_SUFFICE = 32  # bits
_LONGEST = 24  # with more dropped bits than these, leading zeros are counted and the end is left out


def value_text(number: Number) -> str:
    """Return the value in nine significant digits; ``-Inf``, ``NaN``, ``-0``."""
    sign = "-" if number.negative else ""
    if number.kind is Kind.NAN:
        return "NaN"
    if number.kind is Kind.INFINITE:
        return f"{sign}Inf"
    if not number.significand:
        return f"{sign}0"
    value = value_of(number)
    value = present(value, "value")
    return fraction_text(value)


@in_default_environment
def code_text(number: Number, element: Format) -> str:
    """Return the value of a code: nine digits, which distinguish all codes of 32 bits; of wider codes every
    digit and the same in hexadecimal.
    """
    if element.bits <= _NINE_DIGITS_SUFFICE or number.kind is not Kind.FINITE or not number.significand:
        return value_text(number)
    value = present(value_of(number), "value")
    if value.denominator == 1:
        return str(value.numerator)
    return f"{float(value)!r} = {float(value).hex()}"


@in_default_environment
def fraction_text(value: Fraction) -> str:
    """Return nine significant digits, all digits of integers; a power of two beyond float64's range."""
    if value.denominator == 1 and abs(value.numerator) < 1 << 53:
        return str(value.numerator)
    try:
        decimal = float(value)
    except OverflowError:
        decimal = 0.0
    if decimal:
        return f"{decimal:.9g}"
    return exact_text(value.numerator, 1 - value.denominator.bit_length())


def exact_text(significand: int, scale: int) -> str:
    """Return ``-1365 * 2**-24``, with an odd significand."""
    shift = (significand & -significand).bit_length() - 1 if significand else 0
    if scale + shift == 0 or not significand:
        return str(significand >> shift)
    return f"{significand >> shift} * 2**{scale + shift}"


def hexadecimal(code: int, bits: int) -> str:
    """Return ``0x3c00``."""
    return f"0x{code:0{-(-bits // 4)}x}"


def bits_text(value: int, width: int) -> str:
    """Return the dropped bits, nothing where all are 0: leading zeros are counted where they are many."""
    if not value:
        return ""
    if width <= _LONGEST:
        return f"{value:0{width}b}"
    digits = f"{value:b}"
    shown = digits if len(digits) <= _LONGEST else f"{digits[:_LONGEST]}…"
    zeros = width - len(digits)
    return f"{zeros} zeros, {shown}" if zeros else shown


@in_default_environment
def ulps_text(ulps: Fraction | None) -> str:
    """Return a signed number, with two decimals unless whole or tiny; ``-`` where Inf or NaN takes part."""
    if ulps is None:
        return "-"
    if ulps.denominator == 1:
        return f"{int(ulps):+d}"
    return f"{float(ulps):+.2f}" if abs(ulps) >= Fraction(1, 200) else f"{float(ulps):+.1e}"
