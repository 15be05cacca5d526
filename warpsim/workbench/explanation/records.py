"""The records of an explanation of an element of D.

Plain data with its own arithmetic facts (dropped bits, place of the leading bit); no rules, no registers and
no drawing. Numbers are those of reference.py: exact integers, never floating point.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch

from ...base.environment import in_default_environment
from ...isa.displayed import Displayed
from ...isa.formats import Format
from ...isa.instruction import Instruction
from ...isa.operand_places.places import Place
from ...isa.rules import Rule
from ...sums.arithmetic.reference import Kind, Number, decode


@singledispatch
def lines_of(record: object) -> list[str]:
    """Return a record as lines of text; the modules that write text register their records here."""
    raise TypeError(f"no module writes {type(record).__name__} as text")


def value_of(number: Number) -> Fraction | None:
    """Return the exact value; None for Inf and NaN."""
    if number.kind is not Kind.FINITE:
        return None
    return Fraction(number.signed) * Fraction(2) ** number.scale


@dataclass(frozen=True, kw_only=True)
class Factor:
    """A code, its number and the register bits it was read from (None: shared memory, or not read at all)."""

    code: int
    format: Format
    place: Place | None = None

    @property
    def number(self) -> Number:
        """The number of the code."""
        return decode(self.code, self.format)


@dataclass(frozen=True, kw_only=True)
class Product:
    """A product of a row of A and a column of B.

    ``position`` counts A's stored columns, ``k`` the logical columns. ``metadata`` and ``index`` select k in
    a sparse row. ``number`` is the product as it enters its step: exact, not normalised, with block scales
    where the rule multiplies them in, and with the exponents that align it.
    """

    position: int
    k: int
    a: Factor
    b: Factor
    number: Number
    step: int
    metadata: Place | None = None
    field: int | None = None
    index: int | None = None
    scale_a: Factor | None = None
    scale_b: Factor | None = None


@dataclass(frozen=True, kw_only=True)
class Term:
    """An addend of a step. ``kept`` is the addend after alignment, in units of the step's ``2**unit``.

    ``aligns`` is whether its exponent takes part in the maximum; zeros do not. ``positions`` are the products
    in it: a single product, a group, or none for an accumulator.
    """

    name: str
    number: Number
    kept: int
    unit: int
    aligns: bool = True
    positions: tuple[int, ...] = ()

    @property
    def cut_width(self) -> int:
        """Number of bits of the significand below the unit; all of them are dropped."""
        return max(0, self.unit - self.number.scale)

    @property
    def cut(self) -> int:
        """The bits that alignment dropped, as an integer of ``cut_width`` bits."""
        return self.number.significand & ((1 << self.cut_width) - 1)


@dataclass(frozen=True, kw_only=True)
class Step:
    """A rounded operation: its terms, their alignment, their exact sum, and the resulting code.

    ``exponent`` is the largest exponent, None where nothing is aligned (IEEE operations, integers); the terms
    are in units of ``2**unit`` and ``total`` is their sum. ``precision`` is the number of significant bits of
    the result, 0 for integers. ``special`` marks Inf or NaN among the terms: ``total`` then means nothing.
    """

    operation: str
    terms: tuple[Term, ...]
    exponent: int | None
    unit: int
    code: int
    format: Format
    rounding: str
    precision: int = 0

    @property
    def special(self) -> bool:
        """Whether a term is Inf or NaN."""
        return any(term.number.kind is not Kind.FINITE for term in self.terms)

    @property
    def total(self) -> int:
        """The exact sum of the kept parts, in units of ``2**unit``."""
        return sum(term.kept for term in self.terms)

    @property
    def number(self) -> Number:
        """The result."""
        return decode(self.code, self.format)

    @property
    def leading(self) -> int | None:
        """The exponent of the sum's leading bit; None where it is zero."""
        return self.total.bit_length() - 1 + self.unit if self.total else None

    @property
    def dropped_width(self) -> int:
        """Number of low bits of the sum that the result has no room for, gradual underflow included."""
        if self.leading is None or not self.precision:
            return 0
        own = self.leading - (self.precision - 1)
        return max(0, max(own, self.format.minimum_exponent - (self.precision - 1)) - self.unit)

    @property
    def dropped(self) -> int:
        """Those low bits of the sum's magnitude, which decide the rounding."""
        return abs(self.total) & ((1 << self.dropped_width) - 1)

    @property
    def positions(self) -> tuple[int, ...]:
        """The products that this step sums."""
        return tuple(position for term in self.terms for position in term.positions)


@dataclass(frozen=True, kw_only=True)
class Yardstick:
    """Another way to sum the same products: its code in D's format, and D's distance from it in ulps.

    ``value`` is exact where the sum is; ``ulps`` is how far D lies above, None beside Inf or NaN.
    """

    name: str
    code: int
    ulps: Fraction | None
    value: Fraction | None = None


@dataclass(frozen=True, kw_only=True)
class Explanation(Displayed):
    """How an element of D is computed: its products, steps and code.

    ``product`` is the index among the four products of m8n8k4 f16. ``notes`` are conditions that affect the
    operands.
    """

    instruction: Instruction
    rule: Rule
    row: int
    column: int
    product: int
    c: Factor
    products: tuple[Product, ...]
    steps: tuple[Step, ...]
    place: Place
    yardsticks: tuple[Yardstick, ...]
    notes: tuple[str, ...] = ()

    @in_default_environment
    def __str__(self) -> str:
        return "\n".join(lines_of(self))

    def __repr__(self) -> str:
        form = self.instruction
        return f"<D[{self.row}, {self.column}] = {self.code:#x} of {form.mnemonic} on {form.target}>"

    @property
    def code(self) -> int:
        """D's code."""
        return self.steps[-1].code

    @property
    def number(self) -> Number:
        """D's number."""
        return decode(self.code, self.instruction.d)


@dataclass(frozen=True, kw_only=True)
class Parting:
    """The first step that differs between targets: its number and, for each group of targets, the targets and
    the step.

    ``partial`` is the smallest number of products after which rounded sums of the same products differ; None
    where no two targets round after the same products, or all agree there.
    """

    step: int
    ways: tuple[tuple[tuple[str, ...], Step | None], ...]
    partial: int | None


@dataclass(frozen=True, kw_only=True)
class TargetComparison(Displayed):
    """An element of D on several targets; ``parting`` is None where every step is the same."""

    explanations: tuple[Explanation, ...]
    parting: Parting | None

    @in_default_environment
    def __str__(self) -> str:
        return "\n".join(lines_of(self))

    def __repr__(self) -> str:
        first = self.explanations[0]
        codes = ", ".join(f"{target} {code:#x}" for target, code in self.codes.items())
        return f"<D[{first.row}, {first.column}] of {first.instruction.mnemonic}: {codes}>"

    @property
    def codes(self) -> dict[str, int]:
        """D's code by target."""
        return {str(each.instruction.target): each.code for each in self.explanations}

    @property
    def same_d(self) -> bool:
        """Whether D has the same code on all targets, in whatever steps they compute it."""
        return len({each.code for each in self.explanations}) == 1
