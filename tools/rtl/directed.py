"""Directed cases: each function makes the sums that one part of the arithmetic can get wrong.

Knows the places where truncated sums, roundings and special values are delicate; the rest of every case is
random. Infeasible cases of a configuration (an exponent that its formats lack) are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from .composer import FULL, PLAIN, Composer, Factors
from .configuration import Configuration, highest_exponent
from .model import steps_of
from .stimulus import DotProduct

Source = Callable[[Composer], Iterator[DotProduct]]


def gaps(make: Composer) -> Iterator[DotProduct]:
    """Yield terms 0, 1, F - 1, F, F + 1 … below the largest exponent, C on top, below, or absent."""
    fraction_bits = make.configuration.rule.fraction_bits
    for gap in (0, 1, 2, fraction_bits - 1, fraction_bits, fraction_bits + 1, fraction_bits + 2, 40):
        for top in _tops(make, gap):
            low = [make.product(top - gap, a=share, b=share) for share in (PLAIN, FULL, None)]
            if make.can_accumulate(top):
                yield make.compose(
                    f"gap {gap}, C on top", low[: make.configuration.length], make.accumulator(top)
                )
            if make.can_multiply(top):
                yield make.compose(f"gap {gap}, a product on top", [make.product(top), *low[:2]])
        for top in _tops(make, 0):
            if make.can_accumulate(top - gap):
                c = make.accumulator(top - gap)
                yield make.compose(f"gap {gap}, C below", [make.product(top)], c)


def _tops(make: Composer, gap: int) -> list[int]:
    """Return some exponents from which a product may lie ``gap`` lower."""
    configuration = make.configuration
    low, high = configuration.lowest_product + gap, configuration.highest_product
    high = max(high, min(low + 8, highest_exponent(make.c.element)))  # of C alone, with a wide gap
    return [make.random.randint(low, high) for _ in range(3)] if low <= high else []


def cancellations(make: Composer) -> Iterator[DotProduct]:
    """Large terms that cancel, and something left over: nothing, the last bit kept, or one bit less."""
    configuration = make.configuration
    for below in (None, 1, 8, configuration.rule.fraction_bits, configuration.rule.fraction_bits + 1):
        for top in _tops(make, below or 0):
            if not make.can_multiply(top):
                continue
            x, y = make.product(top)
            pair = [(x, y), (x ^ make.a.element.sign_bit, y)]
            rest = [make.product(top - below, a=PLAIN, b=PLAIN)] if below else []
            yield make.compose(f"cancels to {below}", pair + rest)
    for _ in range(8):
        yield from _minus_the_sum(make)


def _minus_the_sum(make: Composer) -> Iterator[DotProduct]:
    """Random products, and C what they add up to with the other sign."""
    middle = (make.configuration.lowest_product + make.configuration.highest_product) // 2
    factors = [make.product(middle + make.random.randint(-6, 6)) for _ in range(make.configuration.length)]
    dot = make.compose("C cancels the products", factors, clock=0)
    code = steps_of(make.configuration, dot)[0].code
    yield DotProduct(dot.label, dot.a, dot.b, dot.columns, code ^ make.c.element.sign_bit)


def carries(make: Composer) -> Iterator[DotProduct]:
    """As many and as large terms of one sign as there are: the sum carries as far as it can."""
    configuration = make.configuration
    for share, negative in ((FULL, False), (FULL, True), (None, False), (None, True)):
        for top in (0, configuration.highest_product - 4, configuration.highest_product - 5):
            factors = [make.product(top, negative, share, share) for _ in range(configuration.length)]
            c = make.accumulator(top, negative, share) if make.can_accumulate(top) else 0
            for clock in range(configuration.clocks):
                yield make.compose("carries", factors, c, clock=clock)


def floors(make: Composer) -> Iterator[DotProduct]:
    """Yield products below the exponent floor, and just above it."""
    configuration = make.configuration
    floor, low = configuration.rule.exponent_floor, configuration.lowest_product
    if low > floor:
        return
    for _ in range(24):
        count = make.random.randint(1, configuration.length)
        high = make.random.choice((floor, floor + 1, floor + 2))
        factors = [make.product(make.random.randint(max(low, high - 12), high)) for _ in range(count)]
        yield make.compose("at the floor", factors, make.c.subnormal(0, make.sign()))
    yield from _ties_at_the_floor(make)


def _ties_at_the_floor(make: Composer) -> Iterator[DotProduct]:
    """Half the smallest result, or all of it, and a little that only a floor of the right height cuts off."""
    unit = make.c.element.minimum_exponent - (make.configuration.rule.output.precision - 1)
    for half in (unit - 1, unit):
        for little in range(max(unit - 26, make.least_power), unit - 1):
            negative = make.sign()
            for opposite in (False, True):
                terms = [make.power(half, negative), make.power(little, negative != opposite)]
                yield make.compose("a tie at the floor", terms)


def subnormals(make: Composer) -> Iterator[DotProduct]:
    """Subnormal factors, alone and beside normal terms; subnormal C."""
    for _ in range(12):
        factors = [_subnormal_product(make) for _ in range(make.random.randint(1, 2))]
        yield make.compose("subnormal factors", factors)
        low = make.configuration.lowest_product
        top = low + make.random.randint(0, make.configuration.rule.fraction_bits + 1)
        if make.can_multiply(top):
            yield make.compose("subnormal factors below a product", [*factors[:1], make.product(top)])
        yield make.compose("subnormal C", [], _subnormal_c(make))
        yield make.compose("subnormal C and factors", factors, _subnormal_c(make))
        yield make.compose("tiny product, subnormal C", [make.product(low)], _subnormal_c(make))


def _subnormal_product(make: Composer) -> Factors:
    """Return a product with at least one subnormal factor."""
    highs = [highest_exponent(codes.element) for codes in (make.a, make.b)]
    x, y = (
        codes.subnormal(make.random.randint(1, (1 << codes.element.fraction_bits) - 1), make.sign())
        for codes in (make.a, make.b)
    )
    other_x = make.a.number(make.random.randint(0, highs[0]), make.a.fraction(make.random), make.sign())
    other_y = make.b.number(make.random.randint(0, highs[1]), make.b.fraction(make.random), make.sign())
    return make.random.choice(((x, other_y), (other_x, y), (x, y)))


def _subnormal_c(make: Composer) -> int:
    return make.c.subnormal(make.random.randint(1, (1 << make.c.element.fraction_bits) - 1), make.sign())


def underflows(make: Composer) -> Iterator[DotProduct]:
    """Yield sums about the smallest subnormal result and about half of it."""
    unit = make.c.element.minimum_exponent - (make.configuration.rule.output.precision - 1)
    for exponent in range(max(unit - 4, make.least_power), unit + 4):
        for negative in (False, True):
            yield make.compose("underflow of a power", [make.power(exponent, negative)])
        if make.can_multiply(exponent):
            low = make.product(max(exponent - 3, make.configuration.lowest_product))
            for share in (FULL, None):
                yield make.compose("underflow", [make.product(exponent, a=share, b=share)])
                yield make.compose("underflow, more", [make.product(exponent, a=share), low])


def overflows(make: Composer) -> Iterator[DotProduct]:
    """Yield sums about the largest finite result."""
    top, precision = highest_exponent(make.c.element), make.configuration.rule.output.precision
    for exponent in (top - precision - 1, top - precision, top - 8, top - 2, top - 1, top, top + 1, top + 9):
        if not make.can_multiply(exponent):
            continue
        for negative in (False, True):
            c = make.c.number(top, make.c.fraction(make.random, FULL), negative)
            factors = [make.product(exponent, negative, share, share) for share in (PLAIN, FULL)]
            yield make.compose("about the largest", factors[:1], c)
            yield make.compose("about the largest", factors, c)
            yield make.compose("about the largest", factors, make.accumulator(top, not negative, FULL))
            yield make.compose("above the largest", factors)


def rounds(make: Composer) -> Iterator[DotProduct]:
    """Exactly half a unit of the result, a little less and a little more; the result odd and even."""
    precision = make.configuration.rule.output.precision
    for above in (0, 1):  # whether two terms carry the sum into the next binade
        for top in _tops_of_results(make, precision + 2):
            for little in (None, False, True):
                for share in (PLAIN, FULL, 0.5, None):
                    negative = make.sign()
                    terms = [make.product(top - precision + above, negative, PLAIN, PLAIN)]
                    if little is not None:
                        terms.append(make.product(top - precision - 1, negative != little, PLAIN, PLAIN))
                    if above and make.can_multiply(top):
                        terms.append(make.product(top, negative, PLAIN, PLAIN))
                    if make.can_accumulate(top):
                        c = make.accumulator(top, negative, share)
                        yield make.compose("half a unit below C", terms, c)
                    if make.can_multiply(top):
                        terms = [make.product(top, negative, share), *terms]
                        yield make.compose("half a unit below a product", terms[: make.configuration.length])


def _tops_of_results(make: Composer, gap: int) -> list[int]:
    """Return some exponents of normal results from which a product may lie ``gap`` lower."""
    configuration, result = make.configuration, make.c.element
    low = max(configuration.lowest_product + gap, result.minimum_exponent + 2)
    high = highest_exponent(result) - 3
    high = min(high, max(configuration.highest_product, low + 8))
    return [make.random.randint(low, high) for _ in range(4)] if low <= high else []


def specials(make: Composer) -> Iterator[DotProduct]:
    """NaN and Inf in every operand, every mix of them, beside ordinary terms and zeros."""
    one_a, one_b, plain = make.a.number(0, 0), make.b.number(0, 0), make.product(0)
    for signalling in (False, True):
        yield make.compose("NaN in A", [(make.a.nan(make.random, signalling), one_b), plain])
        yield make.compose("NaN in B", [(one_a, make.b.nan(make.random, signalling)), plain])
        yield make.compose("C = NaN", [plain], make.c.nan(make.random, signalling), clock=0)
    yield make.compose("NaN in A, zero in B", [(make.a.nan(make.random), 0)])
    for sign in (False, True):
        infinity, minus = make.c.infinity(sign), make.c.infinity(not sign)
        yield make.compose("C = Inf", [plain], infinity)
        for infinite, opposite, times_zero in _infinite_products(make, sign):
            yield make.compose("Inf product", [infinite, plain])
            yield make.compose("Inf times zero", [times_zero, plain])
            yield make.compose("Inf minus Inf", [infinite, opposite])
            yield make.compose("Inf and NaN", [infinite, (make.a.nan(make.random), one_b)])
            yield make.compose("Inf and C = Inf", [infinite], infinity)
            yield make.compose("Inf and C = -Inf", [infinite], minus)
            yield make.compose("Inf and C = NaN", [infinite], make.c.nan(make.random))


def _infinite_products(make: Composer, sign: bool) -> Iterator[tuple[Factors, Factors, Factors]]:
    """With Inf in A, and in B, as far as the formats have it: of that sign, of the other, and times zero."""
    one_a, one_b = make.a.number(0, 0), make.b.number(0, 0)
    zero_a, zero_b = make.a.subnormal(0, sign), make.b.subnormal(0, sign)
    a, b = make.a.infinity(sign), make.b.infinity(sign)
    if make.a.ieee:
        yield (a, one_b), (make.a.infinity(not sign), one_b), (a, zero_b)
    if make.b.ieee:
        yield (one_a, b), (one_a, make.b.infinity(not sign)), (zero_a, b)
    if make.a.ieee and make.b.ieee:
        yield (a, make.b.infinity()), (a, make.b.infinity(True)), (a, zero_b)


def zeros(make: Composer) -> Iterator[DotProduct]:
    """Yield zeros of both signs, with factors of the largest exponent, alone and beside small terms."""
    zero, minus = make.c.subnormal(0), make.c.subnormal(0, True)
    for c in (zero, minus):
        yield make.compose("zeros", [], c)
        yield make.compose("negative zeros", [], c, fill=[(make.a.subnormal(0, True), make.b.subnormal(0))])
    for _ in range(12):
        small = make.product(make.random.randint(make.configuration.lowest_product, 0))
        yield make.compose("a small product among zeros", [small], make.random.choice((zero, minus)))
        yield make.compose(
            "C among zeros", [], make.accumulator(make.random.randint(make.c.element.minimum_exponent, 0))
        )


def metadata(make: Composer) -> Iterator[DotProduct]:
    """Yield every metadata field in every chunk, over factors that tell their places apart."""
    for field in make.fields:
        middle = (make.configuration.lowest_product + make.configuration.highest_product) // 2
        for repeat in range(2):
            factors = [make.product(middle) for _ in range(make.configuration.instruction.stored_k)]
            fields = [field] * (len(factors) // 2) if repeat == 0 else None
            yield make.placed(f"field {field:#06b}", factors, 0, fields)


DIRECTED: tuple[Source, ...] = (
    gaps,
    cancellations,
    carries,
    floors,
    subnormals,
    underflows,
    overflows,
    rounds,
    specials,
    zeros,
    metadata,
)


# --- random cases ----------------------------------------------------------------------------------


def _raw(make: Composer) -> DotProduct:
    """Return bits as they come."""
    factors = [
        (make.random.getrandbits(make.a.element.bits), make.random.getrandbits(make.b.element.bits))
        for _ in range(make.configuration.instruction.stored_k)
    ]
    return make.placed("random bits", factors, make.random.getrandbits(make.c.element.bits))


def _near(make: Composer) -> DotProduct:
    """Return exponents in a window somewhat wider than what alignment keeps."""
    configuration = make.configuration
    width = make.random.choice((2, 6, configuration.rule.fraction_bits + 3))
    width = min(width, configuration.highest_product - configuration.lowest_product)
    low = make.random.randint(configuration.lowest_product, configuration.highest_product - width)
    exponents = [make.random.randint(low, low + width) for _ in range(configuration.instruction.stored_k)]
    top = make.random.randint(low, low + width)
    c = make.accumulator(top) if make.can_accumulate(top) else make.c.subnormal(0)
    factors = [
        make.product(exponent) if make.random.random() < 0.9 else make.zero() for exponent in exponents
    ]
    return make.placed("random near", factors, c)


def cases(configuration: Configuration, seed: int, random_cases: int, repeats: int = 2) -> list[DotProduct]:
    """Return all directed cases, some times over with other choices of what is left open, and random ones.

    Three of four random cases have terms near each other, one is raw bits. The order is random too, so that
    a short run sees a bit of everything.
    """
    make = Composer(configuration, Random(seed))
    chosen = [dot for source in DIRECTED for _ in range(repeats) for dot in source(make)]
    chosen += [_raw(make) if index % 4 == 3 else _near(make) for index in range(random_cases)]
    make.random.shuffle(chosen)
    return chosen
