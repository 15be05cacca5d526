"""The alignment of the terms of a step: the largest exponent of each lane, and where it is out of bounds.

Emits LLVM code (see vectors). Exponents are a plane of int16, or of bytes where the formats of both factors
have few exponents (see variants). Sums of bytes have the bias of float32, as accumulators' fields have; below
BYTE_LOWEST all products are zero, so that m is at least -47 elsewhere. Formats with more exponents have
planes of distances too: the largest sum of two exponents is the sum of their bounds less the smallest sum of
their distances, all bytes. Knows for which m the fast step of ``steps`` is proven, but not how it sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial, reduce

from ..variants import (
    ALL_ZERO,
    BYTE_HIGHEST,
    BYTE_LOWEST,
    F16_LOWEST,
    FLOORED_HIGHEST,
    HIGHEST,
    LOWEST,
    NO_TERM,
    NOTHING,
    SCALE_LIMIT,
    UNBOUNDED,
    ZERO,
    Variant,
)
from .vectors import F32, I1, I8, I16, I32, Lanes, constant, power_of_two

Load = Callable[[], Lanes]


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """Run-time numbers of a rule, the same in every lane, as int32."""

    fraction_bits: Lanes
    floor: Lanes
    precision: Lanes


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The products of one step, lane by lane: factors' values, exponents and lowest bits, and block scales.

    Factors are functions, so that each load stands where its value is used.
    """

    a: list[Load] = field(default_factory=list)
    b: list[Load] = field(default_factory=list)
    a_exponent: list[Load] = field(default_factory=list)
    b_exponent: list[Load] = field(default_factory=list)
    a_low: list[Load] = field(default_factory=list)
    b_low: list[Load] = field(default_factory=list)
    scale: Lanes | None = None
    bound: Lanes | None = None  # of relative variants: the sum of both factors' bounds, as bytes
    top: Lanes | None = None  # known before, where the variant is bytewise
    too_low: Lanes | None = None  # see floors

    def largest(self) -> Lanes:
        """Return the largest exponent of the products, as int16."""
        sums = [x() + y() for x, y in self._exponents()]
        largest = combined(Lanes.maximum, sums)
        return largest if self.scale is None else largest + self.scale

    def largest_of_bytes(self) -> Lanes:
        """Return what ``largest`` is, of planes of bytes: ZERO where all products are zero."""
        byte = self.largest_byte()
        exponent = byte.unsigned_to(I16) - 127
        return byte.unsigned_above(BYTE_LOWEST - 1).choose(exponent, exponent.like(ZERO))

    def largest_byte(self) -> Lanes:
        """Return the largest exponent of the products, of planes of bytes, with float32's bias."""
        return combined(Lanes.unsigned_maximum, [x().unsigned_sum(y()) for x, y in self._exponents()])

    def largest_by_distance(self) -> Lanes:
        """Return what ``largest_byte`` is, of planes of distances: 0 also where it is below, UNBOUNDED so.

        Other bounds are at most 254: a product so distant that bytes do not hold it is below 0.
        """
        bound = self.bound
        assert bound is not None
        distance = combined(Lanes.unsigned_minimum, [x().unsigned_sum(y()) for x, y in self._exponents()])
        return bound.equals(UNBOUNDED - 256).choose(bound, bound.unsigned_difference(distance))

    def _exponents(self) -> list[tuple[Load, Load]]:
        return list(zip(self.a_exponent, self.b_exponent, strict=True))


def combined(operation: Callable[[Lanes, Lanes], Lanes], terms: list[Lanes]) -> Lanes:
    """Return all terms combined, in two chains that the processor can execute in parallel."""
    chains = [reduce(operation, terms[start::2]) for start in range(2) if start < len(terms)]
    return reduce(operation, chains)


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """The factors that bring the terms of each lane to their common scale and back.

    ``top`` is m (of bytes with float32's bias), ``up`` and ``down`` are 2**(F - m) and its inverse,
    ``up_product`` the factor of products. ``doubtful`` are lanes for which the fast step is not proven,
    unless they are ``excused``, a function that is called where lanes are doubtful: where only zeros are
    added, the scale has no effect. In lanes ``beyond`` the bounds a term is too large.
    """

    top: Lanes
    up: Lanes
    down: Lanes
    up_product: Lanes
    doubtful: Lanes
    excused: Load
    beyond: Lanes


def aligned(terms: Terms, c: Lanes | None, numbers: Numbers, variant: Variant) -> Alignment:
    """Return how the terms of a step are aligned; c None is zero."""
    return (_by_bytes if variant.bytewise else _by_words)(terms, c, numbers, variant)


def byte_tops(terms: Terms, c: Lanes | None, variant: Variant) -> Lanes:
    """Return the largest exponent of the products and the accumulator, of planes of bytes; c None is zero."""
    top = terms.largest_by_distance() if variant.relative else terms.largest_byte()
    return top if c is None else top.unsigned_maximum(exponent_byte(c, variant))


def raised(top: Lanes, numbers: Numbers, variant: Variant) -> Lanes:
    """Return the exponent to align by, of a largest exponent with float32's bias; the floor of f16
    results counts.
    """
    return top.unsigned_maximum((numbers.floor + 127).to(I8) if variant.half else _lowest_byte(variant))


def _lowest_byte(variant: Variant) -> int:
    """Return the lowest exponent for which the fast step is proven, or below which all products are zero."""
    return LOWEST + 127 if variant.relative else BYTE_LOWEST


def _by_bytes(terms: Terms, c: Lanes | None, numbers: Numbers, variant: Variant) -> Alignment:
    top = terms.top
    assert top is not None
    highest = FLOORED_HIGHEST if variant.floored else BYTE_HIGHEST
    beyond = top.unsigned_above(highest)
    if variant.half:
        doubtful, excused = beyond, partial(_no_lanes, top)
    else:
        doubtful = top.outside(_lowest_byte(variant), highest)
        excused = partial(_none_counts, terms, top, c, variant)
    top = raised(top, numbers, variant)
    place = top.unsigned_to(I32) << 23
    # Frozen, or LLVM would subtract first and shift both differences.
    up = ((numbers.fraction_bits + 254) << 23).frozen() - place
    down = place - (numbers.fraction_bits << 23).frozen()
    up, down = up.seen_as(F32), down.seen_as(F32)
    by = {"top": top, "up": up, "down": down, "up_product": up, "doubtful": doubtful, "beyond": beyond}
    return Alignment(excused=excused, **by)


def _none_counts(terms: Terms, top: Lanes, c: Lanes | None, variant: Variant) -> Lanes:
    """Return where the accumulator is zero and no product is large enough to count."""
    none = terms.largest() < NOTHING if variant.relative else ~top.unsigned_above(BYTE_LOWEST - 1)
    return none if c is None else none & c.equals(0.0)


def exponent_byte(c: Lanes, variant: Variant) -> Lanes:
    """Return exponents of accumulators with their bias, 0 for zero and subnormal numbers: a subnormal
    accumulator is truncated to zero beside any term of BYTE_LOWEST.
    """
    biased = (c.seen_as(I32).upper_halves() << 1).upper_bytes()
    if not variant.half:
        return biased
    return biased.equals(0).choose(0, biased.unsigned_maximum(F16_LOWEST + 127))


def _by_words(terms: Terms, c: Lanes | None, numbers: Numbers, variant: Variant) -> Alignment:
    top = terms.largest()
    if c is not None:
        top = top.maximum(_exponent(c, variant))
    doubtful, beyond = _hazard(top, terms.scale, variant), top > HIGHEST
    if c is not None and not (variant.half or variant.emulated):
        doubtful = doubtful | (_is_subnormal(c) & (top < LOWEST))
    top = top.maximum(numbers.floor.to(I16) if variant.half else LOWEST)
    distance = numbers.fraction_bits.to(I16) - top
    up = power_of_two(distance, F32)
    down = (constant(top.builder, I32, 254 << 23, top.width) - up.seen_as(I32)).seen_as(F32)
    up_product = up if terms.scale is None else _scaled_up(distance, terms.scale)
    by = {
        "top": top,
        "up": up,
        "down": down,
        "up_product": up_product,
        "doubtful": doubtful,
        "beyond": beyond,
    }
    return Alignment(excused=partial(_no_lanes, top), **by)


def _no_lanes(like: Lanes) -> Lanes:
    return constant(like.builder, I1, 0, like.width)


def _hazard(top: Lanes, scale: Lanes | None, variant: Variant) -> Lanes:
    """Return lanes whose maximum is out of bounds. Zeros alone are not a hazard; f16's floor is above the
    lower bound.
    """
    if variant.half:
        return top > HIGHEST
    hazard = top.outside(LOWEST, HIGHEST) & (top > ALL_ZERO)
    return hazard if scale is None else hazard | scale.outside(-SCALE_LIMIT, SCALE_LIMIT)


def _exponent(c: Lanes, variant: Variant) -> Lanes:
    """Return exponents of accumulators, NO_TERM for zero (and for subnormal numbers, see _is_subnormal)."""
    biased = c.seen_as(I32).upper_halves().field(7, 8)
    exponent = biased - 127
    if variant.half:
        exponent = exponent.maximum(F16_LOWEST)
    return biased.equals(0).choose(NO_TERM, exponent)


def _is_subnormal(c: Lanes) -> Lanes:
    """Return lanes whose accumulator the fast step takes for zero, to which any term of
    LOWEST truncates it.
    """
    return ~(c.seen_as(I32) << 1).outside(1, (1 << 24) - 1)


def _scaled_up(distance: Lanes, scale: Lanes) -> Lanes:
    """Return 2**(distance + scale). Outside these limits every product is cut to zero, or is zero already."""
    return power_of_two((distance + scale).maximum(-126).minimum(120), F32)
