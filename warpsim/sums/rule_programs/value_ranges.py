"""Ranges of the values of a program: fraction bits, exponents and magnitudes, hence widths of a datapath.

Numbers are aligned below the largest exponent of their lists, so that a cut term has no more bits than its
distance from that exponent allows: the widths hold for all inputs. Knows formats and programs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import groupby

from ...isa.formats import FORMATS, Format, Specials
from .rule_operations import Operation, Program

SPARE = 3  # bits by which products may exceed a power of two, where their leading bit aligns them


@dataclass(frozen=True)
class Part:
    """Consecutive numbers of a list that are alike.

    A magnitude is at most ``most * 2**(exponent - fraction)``, with exponents of ``low`` to ``high``. It is
    at most ``bound * 2**(e - bound_fraction)``, too, where e is the largest live exponent of the list
    ``source``. ``special`` says that some may be Inf or NaN; the ranges are those of the others.
    """

    source: str
    count: int
    fraction: int
    most: int
    low: int
    high: int
    special: bool
    bound: int
    bound_fraction: int

    @property
    def scale(self) -> int:
        """The scale of a significand whose exponent is 0."""
        return -self.fraction


@dataclass(frozen=True)
class Ranges:
    """``parts`` of lists of numbers, the largest magnitude of ``units`` and totals, by names of results."""

    parts: Mapping[str, tuple[Part, ...]]
    units: Mapping[str, int]

    def count(self, name: str) -> int:
        """Return the length of a list of numbers."""
        return sum(part.count for part in self.parts[name])

    def width(self, name: str) -> int:
        """Return the bits of a sum in two's complement."""
        return self.units[name].bit_length() + 1


def format_part(name: str, element: Format, count: int) -> Part:
    """Return the range of the numbers of a format."""
    if not element.is_float:
        most = 1 << element.bits - 1 if element.signed else (1 << element.bits) - 1
        return Part(name, count, 0, most, 0, 0, False, most, 0)
    fraction, special = element.fraction_bits, element.specials is not Specials.NONE
    high = (1 << element.exponent_bits) - 1 - element.bias - element.has_infinity
    most = (2 << fraction) - 1
    return Part(name, count, fraction, most, element.minimum_exponent, high, special, most, fraction)


def ranges_of(program: Program, *, bounded: bool = True) -> Ranges:
    """Return the ranges of all values of a program.

    Raises OverflowError for a sum that no alignment bounds: of a program that leaves terms out of it; the
    ranges that are not ``bounded`` have no ``units``.
    """
    found = _Analysis(program)
    for each in program.operations:
        if bounded or each.name not in ("cut", "total", "pick"):
            found.add(each)
    return Ranges(found.parts, found.units)


class _Analysis:
    """The ranges so far; ``slack[unit][source]``: how far a unit may be below a source's top exponent."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.counts = {each.name: each.count for each in program.inputs}
        self.parts: dict[str, tuple[Part, ...]] = {}
        self.units: dict[str, int] = {}
        self.slack: dict[str, dict[str, int]] = {}

    def add(self, operation: Operation) -> None:
        """Add the value of an operation, whose operands are known."""
        if method := getattr(self, f"_{operation.name}", None):
            method(operation, *operation.values)

    # --- numbers ---

    def _read(self, at: Operation, codes: str) -> None:
        part = format_part(at.result, FORMATS[at.given[0]], self.counts.get(codes, 1))
        if at.given[1:] == ("leading",):
            part = replace(part, low=part.low - part.fraction)
        self.parts[at.result] = (part,)

    def _convert(self, at: Operation, numbers: str) -> None:
        self.parts[at.result] = (format_part(at.result, FORMATS[at.given[0]], self._count(numbers)),)

    def _zero(self, at: Operation) -> None:
        self.parts[at.result] = (Part(at.result, 1, 0, 0, 0, 0, False, 0, 0),)

    def _bits(self, at: Operation, left: str, right: str) -> None:
        self.parts[at.result] = (Part(at.result, self._count(left), 0, 1, 0, 0, False, 1, 0),)

    def _mul(self, at: Operation, left: str, right: str) -> None:
        (x,), (y,) = self.parts[left], self.parts[right]
        spare = SPARE if at.given else 0
        fraction, most = x.fraction + y.fraction + spare, x.most * y.most << spare
        exponents, special = (x.low + y.low, x.high + y.high), x.special or y.special
        if at.given:
            exponents = (exponents[0] - fraction, exponents[1] + spare)
        self.parts[at.result] = (
            Part(at.result, x.count, fraction, most, *exponents, special, most, fraction),
        )

    def _sum(self, at: Operation, numbers: str) -> None:
        (x,), count = self.parts[numbers], at.given[0]
        most = count * x.most << x.high - x.low
        self.parts[at.result] = (
            replace(
                x,
                count=-(-x.count // count),  # the last may have fewer
                fraction=x.fraction - x.low,
                most=most,
                low=0,
                high=0,
                bound=count * x.bound,
            ),
        )

    def _take(self, at: Operation, numbers: str) -> None:
        each = [part for part in self.parts[numbers] for _ in range(part.count)]
        chosen = [each[place] for place in at.given[0]]
        self.parts[at.result] = tuple(replace(part, count=len(list(run))) for part, run in groupby(chosen))

    def _join(self, at: Operation, *lists: str) -> None:
        self.parts[at.result] = tuple(part for name in lists for part in self.parts[name])

    def _count(self, name: str) -> int:
        return sum(part.count for part in self.parts[name])

    # --- exponents ---

    def _top(self, at: Operation, numbers: str, of: str) -> None:
        self.slack[at.result] = {part.source: 0 for part in self.parts[numbers]}

    def _add(self, at: Operation, exponent: str) -> None:
        self.slack[at.result] = {name: each - at.given[0] for name, each in self.slack[exponent].items()}

    def _max(self, at: Operation, *exponents: str) -> None:
        first, second = (self.slack[each] for each in exponents)
        both = {name: min(first[name], second[name]) for name in first.keys() & second.keys()}
        self.slack[at.result] = first | second | both

    def _pick(self, at: Operation, condition: str, chosen: str, other: str) -> None:
        if chosen in self.units:
            self.units[at.result] = max(self.units[chosen], self.units[other])
            return
        slack = dict(self.slack[chosen])
        below = self.program.by_result[condition].values[1]  # no larger than the first, where it is chosen
        slack |= dict.fromkeys(self.slack[below], max(slack.values()))
        both = slack.keys() & self.slack[other].keys()
        self.slack[at.result] = {name: max(slack[name], self.slack[other][name]) for name in both}

    # --- units ---

    def _cut(self, at: Operation, numbers: str, unit: str) -> None:
        slack = self.slack.get(unit)
        self.units[at.result] = sum(
            part.count * (part.most if slack is None else _aligned(at, part, slack))
            for part in self.parts[numbers]
        )

    def _total(self, at: Operation, units: str) -> None:
        self.units[at.result] = self.units[units]


def _aligned(at: Operation, part: Part, slack: Mapping[str, int]) -> int:
    """Return the largest magnitude of a number in the units of an alignment."""
    if part.source not in slack:
        raise OverflowError(f"{at.result}: {part.source} takes no part in the alignment")
    up = slack[part.source] - part.bound_fraction
    return part.bound << up if up >= 0 else part.bound >> -up
