"""Which operand was read from where: explanations of a D, the simplest first.

``solve`` tries classes of candidates in the order of their cost on every operand: a map of places or another
source of values, also in some places only. The first class that agrees with D ends the search. Explanations
are screened in floating point; the caller confirms them with the exact engine. The budget counts candidates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ....isa.registers import Words
from ..library.setting import Registers
from .atoms import Atom, Facts, Flags, Where
from .fitting import ZERO as NOTHING_THERE
from .fitting import Block
from .linear_operands import Operand, Tile, operands, read, written
from .pairs import (
    MULTIPLIED,
    Pairs,
    Side,
    composed,
    maps_of_d,
    of_both,
    of_products,
    of_results,
    of_sums,
    ordered,
    side_of,
    zero_in_two,
)
from .screening import (
    EVERYWHERE,
    ZERO,
    Candidates,
    alternatives,
    costs,
    evaluated,
    fitting,
    nearest,
    probes,
    screened_partly,
    singles,
    surviving,
)
from .views import Index

_MOST = 32  # explanations of an operand in a class
_ROUNDED = ("rounded", "cut", "tf32")  # kinds of values that differ little from those that belong there
_CHEAP = 3.0  # of maps of C and D together before another of C
_NEAREST = 3  # partial explanations of an operand
ORDER = ("a", "b", "e", "scale_a", "scale_b", "c", "d", "cd")  # of operands that cost the same


@dataclass(frozen=True, eq=False, kw_only=True)
class Explanation:
    """One operand that was read from elsewhere: for every place the source that stood there.

    ``table`` counts blocks of N places, a block a source; -1 is zero. ``atom`` is the map, ``source`` the
    values that were moved, ``within`` the places where both apply (None: all; several: where all hold).
    ``then`` is a second map, of what the first made.
    """

    operand: Operand
    table: Index
    cost: float
    atom: Atom
    source: Block
    within: tuple[Where, ...] = ()
    then: Atom | None = None

    @property
    def kind(self) -> str:
        """The kind of the map, or of the values where nothing is moved."""
        return self.source.kind if self.atom.kind == "unchanged" else self.atom.kind

    @property
    def facts(self) -> Facts:
        """The facts of the map and of the values."""
        return {**self.source.facts, **self.atom.facts}

    @property
    def is_permutation(self) -> bool:
        """Whether every place is read once."""
        return bool(np.array_equal(np.sort(self.table), np.arange(self.operand.size)))

    def applied(self, given: Registers) -> Registers:
        """Return what changes in registers ``(..., lanes, registers)`` that are read.

        Nothing for D alone; of C and D together, C.
        """
        if self.operand.name == "d":
            return {}
        if self.operand.name == "cd":
            codes = read(self.operand.setting, "c", given)[..., np.argsort(self.table)]
            return {"c": written(self.operand.setting, "c", codes, given)}
        return {self.operand.name: self.operand.changed(self.table, given)}

    @property
    def moves_d(self) -> bool:
        """Whether D is stored, or read, elsewhere than it was written."""
        return self.operand.name in ("d", "cd")

    def stored(self, d: Words) -> Words:
        """Return D as it is read, from D as it was written."""
        return self.operand.changed(self.table, {"d": d}) if self.moves_d else d

    @property
    def inverse(self) -> Explanation | None:
        """The explanation that undoes a permutation of what belongs there; None for others."""
        if not self.is_permutation:
            return None
        return replace(self, table=np.argsort(self.table))


@dataclass(frozen=True, eq=False)
class Answer:
    """The explanations of a D, the simplest first, and how many candidates were tried."""

    explanations: tuple[Explanation, ...]
    tried: int


def solve(
    tile: Tile, settled: Flags, spread: npt.NDArray[np.float64] | None = None, *, partly: bool = True
) -> Answer:
    """Return what explains D of a tile but for rounding, the simplest first.

    ``settled ([products,] m, n)`` marks elements of D that are as expected; ``spread`` is how far each
    element is known. ``partly``: also other values, and causes that hold in some places only.
    """
    found, tried = list[Explanation](), 0
    for operand in operands(tile, spread):
        with np.errstate(all="ignore"):
            more, count = single_causes(operand, _lines(operand, ~settled), partly)
            found += [*more, *(_near_the_rounding(operand) if partly else ())]
        tried += count
    return Answer(tuple(sorted(found, key=lambda each: (each.cost, ORDER.index(each.operand.name)))), tried)


def partial(tile: Tile, spread: npt.NDArray[np.float64] | None = None) -> Iterator[Explanation]:
    """Yield the single causes that explain most of D of a tile, some of each operand."""
    for operand in operands(tile, spread):
        with np.errstate(all="ignore"):
            candidates = alternatives(operand)
            best = nearest(operand, candidates, _NEAREST)
        for number in best.tolist():
            made = explained(operand, candidates, number)
            if operand.name != "cd" or made.is_permutation:
                yield made


def _lines(operand: Operand, wrong: Flags) -> Flags:
    """Return flags of D's elements as the operand's lines meet them, ``(L, E)``."""
    form = operand.setting.instruction
    flags = wrong.reshape(form.products, *form.matrix_shape("d"))
    if operand.name in ("b", "scale_b"):
        flags = flags.transpose(0, 2, 1)
    return flags.reshape(operand.T.shape)


def single_causes(operand: Operand, wrong: Flags, partly: bool) -> tuple[list[Explanation], int]:
    """Return the explanations of an operand by a single cause, and the number of candidates.

    ``wrong (L, E)`` marks elements of D that are not as expected.
    """
    few = probes(operand, wrong)
    if not wrong.any() or not few:
        return [], 0
    candidates = singles(operand)
    if not partly:
        candidates = candidates.of(candidates.source <= 0)
    tried = len(candidates.source) * (1 + partly * len(operand.predicates))
    live = surviving(operand, candidates, few)
    if partly:
        more = surviving(operand, screened_partly(operand, few), few[1:])
        live = Candidates(*(np.concatenate(each) for each in zip(live, more, strict=True)))
    return list(_explanations(operand, live)), tried


def _near_the_rounding(operand: Operand) -> Iterator[Explanation]:
    """Yield values rounded on the way: they may be nearer than screening sees, so the engine decides."""
    for number, source in enumerate(operand.sources):
        if source.kind in _ROUNDED:
            single = Candidates(np.array([number]), np.zeros(1, np.intp), np.array([EVERYWHERE]))
            yield explained(operand, single, 0)


def _explanations(operand: Operand, live: Candidates) -> Iterator[Explanation]:
    for count, fit in enumerate(fitting(operand, live)):
        if count == _MOST:
            return
        made = explained(operand, live, fit.number)
        if operand.name != "cd" or made.is_permutation:
            yield made


def explained(operand: Operand, candidates: Candidates, number: int) -> Explanation:
    """Return the explanation of a single candidate."""
    chosen = candidates.of(np.array([number]))
    source, atom, predicate = (int(each[0]) for each in chosen)
    return Explanation(
        operand=operand,
        table=evaluated(operand, chosen, np.arange(operand.size))[0],
        cost=float(costs(operand, chosen)[0]),
        atom=operand.atoms[atom],
        source=NOTHING_THERE if source == ZERO else operand.sources[source],
        within=() if predicate == EVERYWHERE else (operand.predicates.where(predicate),),
    )


# --- two causes ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Both:
    """Explanations that hold together, and the length of their description."""

    explanations: tuple[Explanation, ...]
    cost: float


def solve_pairs(tile: Tile, settled: Flags, spread: npt.NDArray[np.float64] | None = None) -> Iterator[Both]:
    """Yield two causes that explain D of a tile but for rounding, class by class, each the cheapest first.

    Two steps of an operand, two operands, and an operand and D. The arguments are those of solve.
    """
    known = {operand.name: operand for operand in operands(tile, spread)}
    if not tile.offset.any():
        known.pop("cd")  # D alone says the same
    with np.errstate(all="ignore"):
        for operand in known.values():
            yield from _twice(operand, _lines(operand, ~settled))
        yield from sorted(_across(tile, known, ~settled), key=lambda both: both.cost)


def _twice(operand: Operand, wrong: Flags) -> Iterator[Both]:
    few = probes(operand, wrong)
    if not wrong.any() or not few:
        return
    for found in composed(operand, few):
        made = Explanation(
            operand=operand,
            table=found.table,
            cost=found.cost,
            atom=operand.atoms[found.first],
            source=operand.sources[0],
            then=operand.atoms[found.second],
        )
        if operand.name != "cd" or made.is_permutation:
            yield Both((made,), found.cost)
    own = explained(operand, Candidates(*(np.full(1, number) for number in (ZERO, 0, EVERYWHERE))), 0)
    for found in zero_in_two(operand, few) if operand.name != "cd" else ():
        within = tuple(map(operand.predicates.where, (found.first, found.second)))
        yield Both((replace(own, table=found.table, cost=found.cost, within=within),), found.cost)


def _across(tile: Tile, known: dict[str, Operand], wrong: Flags) -> Iterator[Both]:
    sides = {name: side_of(operand) for name, operand in known.items()}
    for first, second in MULTIPLIED:
        if first in known and second in known and not tile.is_xor:
            found = of_products(tile, sides[first], sides[second], wrong)
            yield from _both(sides[first], sides[second], found)
    for name, side in sides.items():
        if name not in ("c", "d", "cd"):
            yield from _both(side, sides["c"], of_sums(tile, side, sides["c"], wrong))
        for moved in ("d", "cd") if name not in ("d", "cd") else ():
            if (name, moved) == ("c", "cd") and moved in known:
                maps = maps_of_d(known[moved], _CHEAP)
                yield from _both(maps, side, of_both(tile, maps, side, wrong))
            elif moved in known:
                maps = maps_of_d(known[moved])
                for both in _both(side, maps, of_results(tile, side, maps, wrong)):
                    if moved == "d" or both.explanations[1].is_permutation:
                        yield both


def _both(first: Side, second: Side, found: Pairs) -> Iterator[Both]:
    for i, j in zip(*(each.tolist() for each in ordered(first, second, found)), strict=True):
        made = tuple(
            explained(side.operand, side.candidates, number) for side, number in ((first, i), (second, j))
        )
        yield Both(made, sum(each.cost for each in made) + 1)
