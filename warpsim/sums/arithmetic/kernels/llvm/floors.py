"""Sums of products of few bits, each truncated toward zero, by one fused multiply-add for each product.

Emits LLVM code (see vectors). A number whose last place is 2**(m - F), added to a product by a multiply-add
that rounds toward zero, stays a multiple of that place: a positive number has the product's floor added to
it. Floors of products that are positive, or multiples of the place, are the wanted result; every other floor
is too low by one place, and those are counted: the exponent of a product's lowest bit is the sum of its
factors'. All sums are exact: 32 products of less than 2**(m + 2) sum to less than 2**(F + 7) places, F + 7 <=
21, and MAGIC, 1.5 * 2**23 places, keeps them positive and in one binade of float32.
"""

from __future__ import annotations

from ..variants import LIFT_LOW, MOST_LOW
from .alignment import Alignment, Numbers, Terms, combined
from .vectors import F32, I8, I32, Lanes, constant, embedded_fused_toward_zero

_CHAINS = 2  # which the processor can execute in parallel
MOST_FRACTION_BITS = 14


def floored_sum(terms: Terms, by: Alignment, numbers: Numbers) -> Lanes:
    """Return the sum of the products, each truncated toward zero, in units of 2**(m - F), as int32."""
    top = by.top.unsigned_to(I32)
    magic = ((top - numbers.fraction_bits + 23) << 23) | (1 << 22)
    chains = [magic.seen_as(F32)] * _CHAINS
    for k, (x, y) in enumerate(zip(terms.a, terms.b, strict=True)):
        chains[k % _CHAINS] = embedded_fused_toward_zero(x(), y(), chains[k % _CHAINS])
    assert terms.too_low is not None
    floors = [chain.seen_as(I32) - magic for chain in chains]
    return combined(Lanes.__add__, [*floors, terms.too_low.unsigned_to(I32)])


def too_low(terms: Terms, numbers: Numbers) -> Lanes:
    """Return how many negative products have a bit below the last place, as bytes."""
    top = terms.top
    assert top is not None
    place = top.unsigned_difference((numbers.fraction_bits + (127 - 2 * LIFT_LOW)).to(I8))
    place = place.unsigned_minimum(MOST_LOW)
    one, none = (constant(top.builder, I8, number, top.width) for number in (1, 0))
    lows = [x() + y() for x, y in zip(terms.a_low, terms.b_low, strict=True)]
    return combined(Lanes.__add__, [place.unsigned_above(low).choose(one, none) for low in lows])
