"""One step of a truncated fused sum on a vector of columns: the fast way and the exact way.

Emits LLVM code (see vectors). A *step* adds up to 32 products and the accumulator of each lane:

    m = max(exponent of every non-zero term);  v = sum(trunc(term * 2**(F - m)));  d = round(v * 2**(m - F))

Operands are two planes, the value as float32 and the exponent as int16 or as a byte (see alignment, which
finds m and its bounds). A zero has exponent ZERO, so that it has no say in the maximum; Inf and NaN have
SPECIAL, so that they always win it.

``fast`` computes in float32 and int32, and says for which lanes that is not proven exact. Elsewhere:

* a product of two significands of at most 12 bits is exact in float32 if it neither over- nor
  underflows. m <= 120 excludes overflow. A product below 2**-126 is at most 2**-126 after rounding and
  becomes at most 2**-126 * 2**(F + 100) < 1: it is cut to 0, as it should be;
* multiplying by 2**(F - m), a normal number since m >= -100, is exact, or underflows and is cut to 0;
* converting float to int cuts toward zero, and a term is less than 4 * 2**F <= 2**27 in magnitude
  (the accumulator less than 2**26), so that 16 products fit int32: 16 * 2**27 * (1 - 2**-11)**2 < 2**31.
  Where products and accumulator may exceed it, the lane is reported (or the sum formed in float64);
* products of few bits are summed in float32 where the CPU has roundings of its own (see floors);
* the rounded result is at least 2**(m - F) >= 2**-125 or zero, hence never subnormal, and at most
  2**31 * 2**(120 - 13) or, for more fraction bits, less: it does not overflow.

``exact`` computes in float64 and int64 whatever the operands are: products are exact (22 bits, exponents
within +-600), so is scaling by powers of two, and a sum of 33 terms below 2**37 fits int64 and float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from ..variants import CANONICAL_NAN, F16_LARGEST, F16_LOWEST, INT32_SAFE, NO_TERM, SCALE_LIMIT, Variant
from .alignment import Load, Numbers, Terms, aligned, combined
from .floors import floored_sum
from .vectors import F16, F32, F64, I1, I16, I32, I64, Lanes, constant, embedded_toward_zero, power_of_two

_INFINITY = 0x7F800000
_LARGE = 2.0**121  # above HIGHEST


# --- fast --------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Result:
    """Results of a step, lanes whose result may be wrong, those for which it is right nevertheless (which
    a function returns, called where there are such lanes), and those with a term above the bounds.
    """

    value: Lanes
    doubtful: Lanes
    excused: Load
    beyond: Lanes


def fast(terms: Terms, c: Lanes | None, numbers: Numbers, variant: Variant, embedded: bool) -> Result:
    """Return the result of one step, and where it must be computed exactly; c None is zero.

    ``embedded``: the target converts integers to float32 toward zero in one instruction, and to f16.
    """
    by = aligned(terms, c, numbers, variant)
    doubtful = by.doubtful
    sums = [floored_sum(terms, by, numbers)] if variant.floored else _partial_sums(terms, by.up_product)
    addend = [] if c is None else [(c * by.up).to(I32)]
    excused, beyond = by.excused, by.beyond
    if len(sums) > 1 and not variant.half:
        value = _cut_to_single([*sums, *addend])
    else:
        if variant.length >= 16 and not variant.floored:
            limit = INT32_SAFE // len(sums)
            large = reduce(Lanes.__or__, [part.outside(-limit, limit) for part in sums])
            doubtful = doubtful | large
        whole = reduce(Lanes.__add__, [*sums, *addend])
        if variant.half:
            value, overflows = (_embedded_half if embedded else _nearest_half)(whole, by.down)
            return Result(value=value, doubtful=doubtful | overflows, excused=excused, beyond=beyond)
        value = embedded_toward_zero(whole) if embedded else _toward_zero(whole)
    # Dropping low bits of the pattern cuts the magnitude further, to the rule's precision.
    value = value * by.down
    if variant.short:
        kept = constant(value.builder, I32, -1, value.width) << (numbers.precision * -1 + 24)
        value = (value.seen_as(I32) & kept).seen_as(F32)
    return Result(value=value, doubtful=doubtful, excused=excused, beyond=beyond)


def _partial_sums(terms: Terms, up: Lanes) -> list[Lanes]:
    """Return sums of 16 products each, which fit int32."""
    cut = [((x() * y()) * up).to(I32) for x, y in zip(terms.a, terms.b, strict=True)]
    return [combined(Lanes.__add__, cut[start : start + 16]) for start in range(0, len(cut), 16)]


def _toward_zero(whole: Lanes) -> Lanes:
    """Return int32 (magnitude at most 2**31 - 2**26) to float32, truncated toward zero.

    Converted to nearest and back, the difference shows whether the magnitude grew; then the pattern is
    decremented. A magnitude of 2**31 does not occur: it would need a sum above 2**31 - 64.
    """
    nearest = whole.to(F32)
    excess = nearest.to(I32) - whole
    sign = whole >> 31
    overshoot = (sign - (excess ^ sign)) >> 31  # -1 where excess has the sign of whole, else 0
    return (nearest.seen_as(I32) + overshoot).seen_as(F32)


def _cut_to_single(parts: list[Lanes]) -> Lanes:
    """Return the sum of int32 as float32, cut toward zero: exact in float64, whose low 29 bits are
    dropped.
    """
    exact_sum = reduce(Lanes.__add__, [part.to(F64) for part in parts])
    return (exact_sum.seen_as(I64) & -(1 << 29)).seen_as(F64).to(F32)


def _embedded_half(whole: Lanes, down: Lanes) -> tuple[Lanes, Lanes]:
    """Return what ``_nearest_half`` does, by the target's conversions, whose infinities are right.

    Cut to 24 bits, whose last stands for all that was cut (rounding to odd); the zero of a negative number
    loses its sign.
    """
    cut = embedded_toward_zero(whole)
    bits = cut.seen_as(I32)
    odd = cut.to(I32).equals(whole).choose(bits, bits | 1).seen_as(F32)
    nowhere = constant(whole.builder, I1, 0, whole.width)
    return (odd * down).to(F16).to(F32) + 0.0, nowhere


def _nearest_half(whole: Lanes, down: Lanes) -> tuple[Lanes, Lanes]:
    """Return int32 * down, rounded to nearest even to f16 (kept as float32), and where that overflows.

    From 2**20 on, the low 7 bits are folded into one sticky bit above them (rounding to odd), after
    which 24 bits suffice and leave more than two beyond the 11 of the result.
    """
    folded = (whole | ((whole & 127) + 127)) & ~127
    odd = whole.outside(-(1 << 20), 1 << 20).choose(folded, whole)
    result = _at_half_places(odd.to(F32) * down)
    return result, result.magnitude() > F16_LARGEST


def _at_half_places(number: Lanes) -> Lanes:
    """Return float32 rounded to nearest even at the last place that f16 has there (Inf and NaN stay so).

    Adding 1.5 * 2**23 units of that place makes it float32's last, at which the sum is rounded.
    """
    unit = number.seen_as(I32).field(23, 8).maximum(F16_LOWEST + 127) - 10
    magic = (((unit + 23) << 23) | (1 << 22)).seen_as(F32)
    return (number + magic) - magic


def emulated_sum(c: Lanes, partial: Lanes, variant: Variant) -> tuple[Lanes, Lanes]:
    """Return (IEEE sum of C and the steps' result, mask of lanes to be computed exactly), NaN canonical.

    The float32 sum of two f16 numbers, rounded again to f16, is the nearest: 24 bits are twice 11 and two
    more.
    """
    result = c + partial
    if variant.half:
        result = _at_half_places(result)
        hazard = result.magnitude() > F16_LARGEST
    else:
        hazard = constant(c.builder, I1, 0, c.width)
    return canonical(result), hazard


def exact_emulated_sum(c: Lanes, partial: Lanes, variant: Variant) -> Lanes:
    """Return the IEEE sum of C and the steps' result, NaN canonical; f16 results too large become
    infinite.
    """
    result, _ = emulated_sum(c, partial, variant)
    return _limited_half(result) if variant.half else result


def canonical_nan(like: Lanes) -> Lanes:
    """Return the NaN that tensor cores write, in every lane."""
    return constant(like.builder, I32, CANONICAL_NAN, like.width).seen_as(F32)


def canonical(number: Lanes) -> Lanes:
    """Return every NaN replaced by the NaN of tensor cores."""
    return number.is_nan().choose(canonical_nan(number), number)


# --- without alignment ---------------------------------------------------------------------------------


def settled(terms: list[Terms], c: Lanes, numbers: Numbers, variant: Variant) -> tuple[Lanes, Lanes]:
    """Return results of all steps of a pass, and in which lanes they are right; for factors below 2**16.

    * Products are below 2**32, and their float32 sum below 2**38: it overflows neither by itself nor added to
      the largest accumulator, half of whose last place is 2**103. So it is infinite or NaN where a term is.
    * Beside an accumulator of 2**121 or more every product is cut to zero, as 2**32 * 2**(F - 121) < 1. The
      accumulator itself is cut to F fraction bits, and to the rule's precision.
    """
    pairs = [pair for step in terms for pair in zip(step.a, step.b, strict=True)]
    plain = combined(Lanes.__add__, [x() * y() for x, y in pairs]) + c
    open_ = plain.magnitude() < float("inf")
    value = canonical(plain)
    if variant.half or variant.emulated:  # accumulators of f16 are not so large; others are added afterwards
        return value, ~open_
    bits = numbers.precision.minimum(numbers.fraction_bits + 1)
    cut = (c.seen_as(I32) & (constant(c.builder, I32, -1, c.width) << (bits * -1 + 24))).seen_as(F32)
    large = open_ & (c.magnitude() >= _LARGE)
    return large.choose(cut, value), large | ~open_


# --- exact -------------------------------------------------------------------------------------------


def exact(terms: Terms, c: Lanes, numbers: Numbers, variant: Variant) -> Lanes:
    """Return results of one step for any operands; f16 results are kept as float32."""
    top = terms.largest_of_bytes() if variant.compact else terms.largest()
    top = top.maximum(_exponent_of_any(c, variant)).maximum(numbers.floor.to(I16)).to(I64)
    up = numbers.fraction_bits.to(I64) - top
    up_product = up if terms.scale is None else up + terms.scale.to(I64)
    products = [x().to(F64) * y().to(F64) for x, y in zip(terms.a, terms.b, strict=True)]
    addend = c.to(F64)
    scales = power_of_two(up_product, F64)
    cut = [(product * scales).to(I64) for product in products] + [(addend * power_of_two(up, F64)).to(I64)]
    number = reduce(Lanes.__add__, cut).to(F64) * power_of_two(up * -1, F64)
    # Finite products are below 2**257 in magnitude: their plain sum is infinite or NaN only if a term is.
    plain = reduce(Lanes.__add__, [*products, addend])
    if terms.scale is not None:
        nan = constant(c.builder, F64, float("nan"), c.width)
        plain = terms.scale.outside(-SCALE_LIMIT, SCALE_LIMIT).choose(nan, plain)
    finite = plain.magnitude() < float("inf")
    rounded_number = rounded(number, numbers.precision, half=variant.half)
    return canonical(finite.choose(rounded_number, plain.to(F32)))


def _exponent_of_any(c: Lanes, variant: Variant) -> Lanes:
    """Return exponents of accumulators: a subnormal number has the smallest, zero has NO_TERM."""
    bits = c.seen_as(I32)
    exponent = bits.field(23, 8).maximum(1) - 127
    if variant.half:
        exponent = exponent.maximum(F16_LOWEST)
    return (bits << 1).equals(0).choose(NO_TERM, exponent).to(I16)


def rounded(number: Lanes, precision: Lanes, *, half: bool) -> Lanes:
    """Return a float64 (an integer below 2**53, scaled) rounded to the result's precision and range.

    To nearest for f16 results (integers below 2**51), else toward zero. The number in units of its last place
    is converted to an integer, so that a zero loses its sign.
    """
    lowest = F16_LOWEST if half else -126
    exponent = (number.seen_as(I64).field(52, 11) - 1023).maximum(lowest)
    last = exponent - precision.to(I64) + 1
    scaled = number * power_of_two(last * -1, F64)
    if half:
        magic = 1.5 * 2.0**52  # to nearest even, for magnitudes below 2**51
        scaled = (scaled + magic) - magic
    result = (scaled.to(I64).to(F64) * power_of_two(last, F64)).to(F32)
    return _limited_half(result) if half else result  # 2**128 and more have become infinite


def _limited_half(number: Lanes) -> Lanes:
    """Return numbers above f16's largest replaced by infinities of their sign."""
    infinity = (number.seen_as(I32) & -(1 << 31)) | _INFINITY
    return (number.magnitude() > F16_LARGEST).choose(infinity.seen_as(F32), number)
