"""One clock of the unit as the model sees it, and the questions that coverage asks of it.

Everything is derived from operands and from warpsim's own steps, never from what a generator had in mind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, log2

from warpsim.isa.formats import Format
from warpsim.sums.arithmetic.reference import Kind, Number, Step, decode

from .configuration import Configuration
from .stimulus import DotProduct


@dataclass(frozen=True, kw_only=True, eq=False)
class Event:
    """One clock of one dot product, as the model sees it."""

    configuration: Configuration
    dot: DotProduct
    clock: int
    step: Step

    @cached_property
    def places(self) -> range:
        """The stored places of this clock's products."""
        length = self.configuration.length
        return range(self.clock * length, (self.clock + 1) * length)

    @cached_property
    def a(self) -> list[Number]:
        """The factors from A."""
        return [decode(self.dot.a[place], self.configuration.instruction.a) for place in self.places]

    @cached_property
    def b(self) -> list[Number]:
        """The factors from B."""
        columns = (self.dot.columns[place] for place in self.places)
        return [decode(self.dot.b[column], self.configuration.instruction.b) for column in columns]

    @property
    def products(self) -> tuple[Number, ...]:
        """The products."""
        return self.step.terms[:-1]

    @property
    def c(self) -> Number:
        """The accumulator: C, or the partial sum."""
        return self.step.terms[-1]

    @cached_property
    def finite(self) -> bool:
        """Whether every term is."""
        return all(term.kind is Kind.FINITE for term in self.step.terms)

    @cached_property
    def gaps(self) -> list[int]:
        """How far below the largest exponent each term lies that is not zero."""
        if not self.finite:
            return []
        return [self.step.exponent - term.exponent for term in self.step.terms if term.significand]

    @cached_property
    def total(self) -> int:
        """The sum in units of the last bit kept; 0 where some term is Inf or NaN."""
        return sum(self.step.kept) if self.finite else 0

    @cached_property
    def cut(self) -> list[tuple[int, bool]]:
        """Terms that lose bits in the alignment: their places (the last is C) and signs."""
        if not self.finite:
            return []
        unit = self.step.unit
        return [
            (place, term.negative)
            for place, (term, kept) in enumerate(zip(self.step.terms, self.step.kept, strict=True))
            if abs(kept) << max(0, unit - term.scale) != term.significand << max(0, term.scale - unit)
        ]

    @cached_property
    def _rounded(self) -> tuple[int, int]:
        output, result = self.configuration.rule.output, self.configuration.result
        smallest = result.minimum_exponent - (output.precision - 1)
        own = abs(self.total).bit_length() + self.step.unit - output.precision
        count = max(own, smallest) - self.step.unit
        if count <= 0:
            return abs(self.total), 0
        kept, rest = divmod(abs(self.total), 1 << count)
        half = 1 << (count - 1)
        return kept, 2 * (rest >= half) + (rest % half > 0)

    @property
    def magnitude(self) -> int:
        """What is left of the sum's magnitude before it is rounded up or not."""
        return self._rounded[0]

    @property
    def discarded(self) -> int:
        """What the rounding discards: 0 nothing, 1 less than half a unit, 2 half, 3 more."""
        return self._rounded[1]

    @property
    def code(self) -> int:
        """D."""
        return self.step.code

    @property
    def subnormal(self) -> bool:
        """Whether D is a subnormal number or zero."""
        return self._magnitude_code < 1 << self.configuration.result.fraction_bits

    @property
    def infinite(self) -> bool:
        """Whether D is Inf."""
        element = self.configuration.result
        return self._magnitude_code == element.canonical_nan >> element.fraction_bits << element.fraction_bits

    @property
    def _magnitude_code(self) -> int:
        return self.code & self.configuration.result.canonical_nan

    @cached_property
    def infinities(self) -> tuple[set[bool], set[bool]]:
        """The signs of infinite products, and of an infinite C; nothing where some term is NaN."""
        if any(term.kind is Kind.NAN for term in self.step.terms):
            return set(), set()
        parts = self.products, (self.c,)
        products, c = ({term.negative for term in part if term.kind is Kind.INFINITE} for part in parts)
        return products, c


# --- questions -------------------------------------------------------------------------------------


def at_gap(event: Event, low: int, high: int) -> bool:
    """Return some term lies from ``low`` to ``high`` below the largest exponent."""
    return any(low <= gap <= high for gap in event.gaps)


def just_beyond(event: Event, *, kept: bool) -> bool:
    """Return a term F + 1 below the largest exponent: of 2 or more a bit is kept, of less than 2 nothing."""
    gap = event.configuration.rule.fraction_bits + 1
    return event.finite and any(
        bool(left) is kept
        for term, left in zip(event.step.terms, event.step.kept, strict=True)
        if term.significand and event.step.exponent - term.exponent == gap
    )


def cuts(event: Event, *, negative: bool) -> bool:
    """Return a product of that sign loses bits in the alignment."""
    return any(sign is negative and place < len(event.products) for place, sign in event.cut)


def cuts_c(event: Event) -> bool:
    """Return C loses bits in the alignment."""
    return any(place == len(event.products) for place, _ in event.cut)


def largest(event: Event) -> tuple[bool, bool]:
    """Return whether a product, and whether C, has the largest exponent."""
    having = [term.significand > 0 and term.exponent == event.step.exponent for term in event.step.terms]
    return event.finite and any(having[:-1]), event.finite and having[-1]


def zero_above(event: Event) -> bool:
    """Return a zero product whose factors' exponents add up to more than the largest exponent."""
    above = (not term.significand and term.exponent > event.step.exponent for term in event.products)
    return event.finite and bool(event.gaps) and any(above)


def wide_product(event: Event) -> bool:
    """Return a product of 2 or more has the largest exponent."""
    top = (term for term in event.products if term.exponent == event.step.exponent)
    return event.finite and any(term.significand >> (1 + term.exponent - term.scale) for term in top)


def infinity_times_zero(event: Event) -> bool:
    """Return some product is NaN though neither factor is."""
    kinds = ({x.kind, y.kind} for x, y in zip(event.a, event.b, strict=True))
    products = zip(kinds, event.products, strict=True)
    return any(product.kind is Kind.NAN and Kind.NAN not in factors for factors, product in products)


def any_subnormal(numbers: Sequence[Number], element: Format) -> bool:
    """Return a subnormal number of the format among the numbers."""
    smallest_normal = 1 << element.fraction_bits
    return any(number.kind is Kind.FINITE and 0 < number.significand < smallest_normal for number in numbers)


def beyond_ieee(event: Event) -> bool:
    """Return a finite number of A has all ones in the exponent field."""
    bias = event.configuration.instruction.a.bias
    return any(number.kind is Kind.FINITE and number.exponent == bias + 1 for number in event.a)


def nan_in_c(event: Event, *, quiet: bool) -> bool:
    """Return C, as it came, is a NaN, quiet or signalling, and nothing else is special."""
    alone = event.clock == 0 and only_special(event, [event.c])
    return alone and event.c.kind is Kind.NAN and is_quiet(event.dot.c, event.configuration.result) is quiet


def signalling_nan_in_a(event: Event) -> bool:
    """Return a signalling NaN in A, and nothing else is special."""
    element = event.configuration.instruction.a
    codes = [event.dot.a[place] for place in event.places]
    numbers = zip(event.a, codes, strict=True)
    signalling = any(number.kind is Kind.NAN and not is_quiet(code, element) for number, code in numbers)
    return signalling and only_special(event, event.a)


def is_quiet(code: int, element: Format) -> bool:
    """Return the first bit of the fraction of a NaN is set."""
    return bool(code >> (element.ignored_bits + element.fraction_bits - 1) & 1)


def only_special(event: Event, numbers: Sequence[Number]) -> bool:
    """Return the one operand that is not finite is a NaN, and among these numbers."""
    special = [number for number in (*event.a, *event.b, event.c) if number.kind is not Kind.FINITE]
    return len(special) == 1 and any(number.kind is Kind.NAN for number in numbers)


def special_not_selected(event: Event) -> bool:
    """Inf or NaN among the elements of B that metadata leaves out, and nowhere else."""
    if not event.configuration.instruction.sparse or not event.finite:
        return False
    left_out = set(range(2 * event.places.start, 2 * event.places.stop)) - set(event.dot.columns)
    element = event.configuration.instruction.b
    return any(decode(event.dot.b[column], element).kind is not Kind.FINITE for column in left_out)


def has_field(event: Event, value: int) -> bool:
    """Return some chunk of a sparse row has that metadata."""
    chunks = slice(event.places.start // 2, event.places.stop // 2)
    return event.configuration.instruction.sparse and value in event.dot.fields()[chunks]


def rounding_carries(event: Event) -> bool:
    """Return the rounding carries into the next binade."""
    rounds_up = event.discarded + event.magnitude % 2 > 2
    return event.configuration.rule.output.nearest and rounds_up and (event.magnitude + 1).bit_count() == 1


def units(event: Event) -> int:
    """Return the sum's magnitude in powers of two of the largest exponent, whole ones."""
    return abs(event.total) >> event.configuration.rule.fraction_bits


def uses_topmost_bit(event: Event) -> bool:
    """Return the magnitude needs the last bit that the adder has for it."""
    return bool(units(event) >> (1 + ceil(log2(event.configuration.length + 1))))


def all_zero(event: Event) -> bool:
    """Return every term is zero."""
    return not any(term.significand for term in event.step.terms)


def all_negative_zero(event: Event) -> bool:
    """Return every term is -0."""
    return event.finite and all_zero(event) and all(term.negative for term in event.step.terms)
