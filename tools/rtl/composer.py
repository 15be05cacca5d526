"""Dot products put together from terms of chosen exponents and significands.

Knows how to write a number of a given exponent in a format and a product of a given exponent as two
factors, and how to hide a few terms among zeros, metadata and unselected elements. Does not know which
sums are interesting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from warpsim.isa.formats import Format
from warpsim.isa.fragments import legal_fields

from .configuration import Configuration, highest_exponent
from .stimulus import FIELD, DotProduct

Factors = tuple[int, int]  # codes of a and b

PLAIN, FULL = 0.0, 1.0  # fractions: none of the bits, all of them


@dataclass(frozen=True, slots=True)
class Codes:
    """Codes of one format by what they are."""

    element: Format

    def number(self, exponent: int, fraction: int, negative: bool = False) -> int:
        """Return the normal number of an exponent; fractions beyond the largest number become its own."""
        element = self.element
        code = (exponent + element.bias) << element.fraction_bits | fraction
        return self._signed(min(code, self.largest), negative)

    def subnormal(self, significand: int, negative: bool = False) -> int:
        """Return ``significand`` times the smallest subnormal number; 0 is a zero."""
        return self._signed(significand, negative)

    def infinity(self, negative: bool = False) -> int:
        """Inf, where the format has one; otherwise the largest number."""
        code = self._ones << self.element.fraction_bits if self.ieee else self.largest
        return self._signed(code, negative)

    def nan(self, random: Random, signalling: bool | None = None) -> int:
        """Return a NaN, quiet or signalling where the format has both."""
        negative = random.random() < 0.5
        if not self.ieee:
            return self._signed(self.largest + 1, negative)
        quiet = 1 << (self.element.fraction_bits - 1)
        signalling = random.random() < 0.5 if signalling is None else signalling
        payload = random.randint(1, quiet - 1) if signalling else quiet | random.randint(0, quiet - 1)
        return self._signed(self._ones << self.element.fraction_bits | payload, negative)

    def fraction(self, random: Random, share: float | None = None) -> int:
        """Return a fraction: the given share of all ones, or a random one, often of few bits."""
        ones = (1 << self.element.fraction_bits) - 1
        if share is not None:
            return int(share * ones)
        return random.choice((0, ones, 1, random.randint(0, ones), random.randint(0, ones)))

    @property
    def ieee(self) -> bool:
        """Whether the format has Inf."""
        return self.element.has_infinity

    @property
    def largest(self) -> int:
        """The code of the largest finite number."""
        ones = (1 << (self.element.exponent_bits + self.element.fraction_bits)) - 1
        if self.ieee:
            return ones - (1 << self.element.fraction_bits)
        return ones - 1

    @property
    def _ones(self) -> int:
        return (1 << self.element.exponent_bits) - 1

    def _signed(self, code: int, negative: bool) -> int:
        return (code | int(negative) * self.element.sign_bit >> self.element.ignored_bits) << (
            self.element.ignored_bits
        )


class Composer:
    """Makes dot products for one configuration; everything left open is random."""

    def __init__(self, configuration: Configuration, random: Random) -> None:
        self.configuration = configuration
        self.random = random
        form = configuration.instruction
        self.a, self.b, self.c = Codes(form.a), Codes(form.b), Codes(form.d)
        legal = legal_fields(form) if form.sparse else ()
        self.fields = [field for field, good in enumerate(legal) if good]

    def sign(self) -> bool:
        """Return either sign."""
        return self.random.random() < 0.5

    def product(
        self, exponent: int, negative: bool | None = None, a: float | None = None, b: float | None = None
    ) -> Factors:
        """Return two normal factors whose exponents add up to ``exponent``, in shares of their fractions."""
        lows = [codes.element.minimum_exponent for codes in (self.a, self.b)]
        highs = [highest_exponent(codes.element) for codes in (self.a, self.b)]
        first = self.random.randint(max(lows[0], exponent - highs[1]), min(highs[0], exponent - lows[1]))
        negative = self.sign() if negative is None else negative
        flipped = self.sign()
        return (
            self.a.number(first, self.a.fraction(self.random, a), flipped),
            self.b.number(exponent - first, self.b.fraction(self.random, b), flipped != negative),
        )

    def power(self, exponent: int, negative: bool = False) -> Factors:
        """Return factors whose product is exactly that power of two, subnormal ones where it has to be."""
        if self.can_multiply(exponent):
            return self.product(exponent, negative, PLAIN, PLAIN)
        places = exponent - self.least_power
        first = min(places, self.a.element.fraction_bits - 1)
        return self.a.subnormal(1 << first), self.b.subnormal(1 << (places - first), negative)

    @property
    def least_power(self) -> int:
        """The exponent of the smallest product there is."""
        bits = self.a.element.fraction_bits + self.b.element.fraction_bits
        return self.configuration.lowest_product - bits

    def accumulator(self, exponent: int, negative: bool | None = None, share: float | None = None) -> int:
        """Return a normal C of that exponent."""
        negative = self.sign() if negative is None else negative
        return self.c.number(exponent, self.c.fraction(self.random, share), negative)

    def can_multiply(self, exponent: int) -> bool:
        """Return whether products of normal factors reach that exponent."""
        return self.configuration.lowest_product <= exponent <= self.configuration.highest_product

    def can_accumulate(self, exponent: int) -> bool:
        """Return whether a normal C has that exponent."""
        return self.c.element.minimum_exponent <= exponent <= highest_exponent(self.c.element)

    def zero(self) -> Factors:
        """Return a product that is zero; half of them have a factor with the largest exponent."""
        zero = 0, self.b.number(highest_exponent(self.b.element), 0, self.sign())
        other = self.a.number(highest_exponent(self.a.element), 0, self.sign()), 0
        plain = self.a.subnormal(0, self.sign()), self.b.subnormal(0, self.sign())
        return self.random.choice((zero, other, plain, plain))

    def compose(
        self,
        label: str,
        products: Sequence[Factors],
        c: int = 0,
        *,
        clock: int | None = None,
        fill: Sequence[Factors] | None = None,
    ) -> DotProduct:
        """Return a dot product of these terms, all in one clock, in random places; the others are
        ``fill``.
        """
        configuration = self.configuration
        clock = self.random.randrange(configuration.clocks) if clock is None else clock
        length, stored = configuration.length, configuration.instruction.stored_k
        factors = [self.random.choice(fill) if fill else self.zero() for _ in range(stored)]
        for place, chosen in zip(self.random.sample(range(length), len(products)), products, strict=True):
            factors[clock * length + place] = chosen
        return self.placed(label, factors, c)

    def placed(
        self, label: str, factors: Sequence[Factors], c: int, fields: Sequence[int] | None = None
    ) -> DotProduct:
        """Return a dot product of exactly these factors in stored order, with metadata where the form is
        sparse.
        """
        a, b = [x for x, _ in factors], [y for _, y in factors]
        if not self.fields:
            return DotProduct(label, a, b, range(len(a)), c)
        fields = fields or self.random.choices(self.fields, k=len(a) // 2)
        columns = [
            FIELD * chunk + index for chunk, field in enumerate(fields) for index in (field & 3, field >> 2)
        ]
        spread = [self._unselected() for _ in range(2 * len(a))]
        for column, code in zip(columns, b, strict=True):
            spread[column] = code
        return DotProduct(label, a, spread, columns, c)

    def _unselected(self) -> int:
        """Return an element of B that must not matter: NaN, Inf, large, or anything."""
        anything = self.random.getrandbits(self.b.element.bits)
        return self.random.choice((self.b.nan(self.random), self.b.infinity(self.sign()), anything, anything))
