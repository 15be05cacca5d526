"""Other ways to sum the products of an element of D, and how far D lies from each, in ulps.

The exact sum; IEEE fused multiply-adds in order; and products rounded, then added, in order. Both chains run
in f32 (f64 where D is f64) over ascending k and start from C; an f16 result is rounded once more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from ...isa.formats import FORMATS, Format
from ...sums.arithmetic.reference import Kind, Number, decode, exact_sum, ieee, ieee_sum, special_code
from .records import Yardstick, value_of

F32 = FORMATS["f32"]


def yardsticks(products: Sequence[Number], c: Number, result: Format, code: int) -> tuple[Yardstick, ...]:
    """Return the exact sum and, for floating point, both chains, against D's code. ``products`` ascend in
    k.
    """
    if not result.is_float:
        return (_exact_integer(products, c, result, code),)
    working = result if result.bits > 32 else F32
    fused = _chained(products, c, lambda term, total: ieee(working, term, total))
    separate = _chained(products, c, lambda term, total: ieee(working, ieee(working, term), total))
    return (
        _exact(products, c, result, code),
        _rounded(f"IEEE fma chain in {working}, from C, k ascending", fused, result, code),
        _rounded(f"{working} products, then {working} sums, from C, k ascending", separate, result, code),
    )


def _chained(products: Sequence[Number], c: Number, add: Callable[[Number, Number], Number]) -> Number:
    total = c
    for term in products:
        total = add(term, total)
    return total


def _exact(products: Sequence[Number], c: Number, result: Format, code: int) -> Yardstick:
    """Return the exact sum; its code is rounded to nearest, but the distance is to the sum itself."""
    terms = [*products, c]
    nearest = ieee_sum(terms, result)
    name = f"exact sum, rounded once to the nearest {result}"
    if special_code(terms, result) is not None:
        return Yardstick(name=name, code=nearest, ulps=None)
    total, scale = exact_sum(terms)
    value = Fraction(total) * Fraction(2) ** scale
    found = value_of(decode(code, result))
    ulps = None if found is None else (found - value) / ulp(value, result)
    return Yardstick(name=name, code=nearest, ulps=ulps, value=value)


def ulp(value: Fraction, element: Format) -> Fraction:
    """Return the distance between neighbours of a format around a value; that of subnormals near zero."""
    exponent = element.minimum_exponent
    if value:
        leading = abs(value.numerator).bit_length() - value.denominator.bit_length()
        leading -= abs(value) < Fraction(2) ** leading
        exponent = max(exponent, leading)
    return Fraction(2) ** (exponent - element.fraction_bits)


def _rounded(name: str, number: Number, result: Format, code: int) -> Yardstick:
    own = ieee_sum([number], result)
    return Yardstick(name=name, code=own, ulps=apart(code, own, result))


def apart(code: int, other: int, element: Format) -> Fraction | None:
    """Return how many codes ``code`` lies above ``other``; None beside NaN or Inf."""
    if any(decode(each, element).kind is not Kind.FINITE for each in (code, other)):
        return None
    return Fraction(_ordinal(code, element) - _ordinal(other, element))


def _ordinal(code: int, element: Format) -> int:
    """Return the rank of the code among all numbers of the format; both zeros are 0."""
    magnitude = code & ~element.sign_bit
    return -magnitude if code & element.sign_bit else magnitude


def _exact_integer(products: Sequence[Number], c: Number, result: Format, code: int) -> Yardstick:
    total = c.signed + sum(term.signed for term in products)
    difference = decode(code, result).signed - total
    return Yardstick(
        name="exact sum, before it becomes 32 bits",
        code=total & result.mask,
        ulps=Fraction(difference),
        value=Fraction(total),
    )
