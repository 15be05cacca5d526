"""Values by place: which map of which source they follow, and where. Dumps, stored results, solved lines.

Both sides are known by value, so a map is judged by its share of hits. An explanation is the best map, or two
that a predicate splits, and the places that follow neither. Knows no instructions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .atoms import Atom, Atoms, Flags, Predicates, Where, atoms, predicates
from .views import NOTHING, Index, Numbers, View

_PROBES = 64  # places on which every map is judged
_SEED = 0
_FIRST = 48  # maps that are judged on all places
_OTHERS = 13  # of these, that may hold in the rest of the places
_MOST = 16  # explanations of the same cost
_CHUNK = 1 << 17  # sources that are looked up at once
_BITS = 10.0  # of surprise beyond the number of maps
_HALF = 0.5
_LEAST = 0.2  # share of the places that a located map holds
NOWHERE = -2  # the source of a value that no source has
_FEWEST = 2  # places of a predicate
_UNITS = 64  # values of fields that may come from anywhere


@dataclass(frozen=True)
class Block:
    """A block of values: the length of its description, its kind and facts."""

    cost: float
    kind: str
    facts: Mapping[str, Any]


ZERO = Block(1.0, "zero", {})  # of places that hold zero


@dataclass(frozen=True, eq=False, kw_only=True)
class Values:
    """Views of N places and what may stand there: ``values (S * N + 1,)``, blocks of N and a zero at the end.

    The first of the blocks, ``sources``, belongs there. ``places (n,)`` are those whose values are known.
    """

    views: tuple[View, ...]
    sources: Sequence[Block]
    values: Numbers
    places: Index

    @cached_property
    def atoms(self) -> Atoms:
        """Maps of the places."""
        return atoms(self.views)

    @cached_property
    def predicates(self) -> Predicates:
        """Sets of the known places, masks ``(P, n)``."""
        return predicates([each.of(self.places) for each in self.views])


@dataclass(frozen=True, eq=False)
class Piece:
    """Places that hold a map of a source; ``within`` says which: all, without any."""

    atom: Atom
    source: Block
    within: tuple[Where, ...] = ()
    then: Atom | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Fit:
    """One explanation: for every place the source that stood there, a block times N and a place, or NOTHING.

    ``pieces`` say it in maps; none where units come from anywhere (``units``: a field, and the source of each
    of its values). ``share`` of the places follow; ``rest`` do not, and hold ``others``: sources of the first
    block, NOTHING for zero, NOWHERE for values that stand nowhere. ``certain`` is not set where values repeat
    so much that chance gives as good a map.
    """

    table: Index
    cost: float
    pieces: tuple[Piece, ...] = ()
    units: tuple[str, tuple[int, ...]] | None = None
    share: float = 1.0
    rest: Index
    others: Index
    certain: bool = True

    @property
    def kind(self) -> str:
        """The kind of the first map, or of the values where nothing is moved."""
        if not self.pieces:
            return "units"
        first = self.pieces[0]
        return first.source.kind if first.atom.kind == "unchanged" else first.atom.kind


@dataclass(frozen=True)
class Answer:
    """Explanations of the lowest cost, and how many maps were tried."""

    fits: tuple[Fit, ...]
    tried: int


def fit(held: Values, values: Numbers, bound: Numbers | float = 0.0, *, located: bool = True) -> Answer:
    """Return what ``values (n,)`` of the known places are, each within ``bound``; NaN equals NaN.

    The simplest maps that hold everywhere, else two maps split by a predicate, else fields whose values come
    from anywhere, else, where ``located``, the best map with the places that leave it.
    """
    return _Fitting(held, values, bound).answer(located)


class _Fitting:
    """One search."""

    def __init__(self, held: Values, values: Numbers, bound: Numbers | float) -> None:
        self.held, self.places = held, held.places
        self.size = len(held.views[0].coordinates)
        self.values = _comparable(values)
        self.bound = np.broadcast_to(np.asarray(bound, np.float64), values.shape)
        self.pool = _comparable(held.values)
        self.cost = np.concatenate(
            [each.cost + held.atoms.cost for each in held.sources] + [np.array([ZERO.cost])]
        )

    def answer(self, located: bool) -> Answer:
        """Return the explanations."""
        scores = self._scores(np.arange(len(self.places)))
        tried = len(scores)
        whole = self._whole(np.flatnonzero(scores == 1.0))
        if whole:
            return Answer(tuple(whole), tried)
        splits = float(scores.max()) >= _HALF  # one of two maps that hold all probes holds a half of them
        chosen, hits = self._likely(scores, splits), np.zeros((0, 0), np.bool_)
        if splits or located:
            hits = np.stack([self._near(self._table(int(at))) for at in chosen])
        if splits:
            tried += len(chosen) * min(len(chosen), _OTHERS) * len(self.held.predicates)
        found = self._split(chosen, hits) if splits else []
        found = found or list(self._units())
        found = found or (self._best(chosen, hits) if located else [])
        return Answer(tuple(found), tried)

    # --- candidates: a block times the atoms, and zero last ---

    def _likely(self, scores: Numbers, splits: bool) -> Index:
        """Return the maps that may hold a part: unchanged, zero, the best, to split also of the rest."""
        order = np.lexsort((self.cost, -scores))[:_FIRST]
        left = np.flatnonzero(~self._near(self._table(int(order[0])))) if splits else order[:0]
        others = np.lexsort((self.cost, -self._scores(left)))[:_OTHERS] if len(left) else order[:0]
        chosen = [0, len(scores) - 1, int(order[0]), *others.tolist(), *order.tolist()]
        return np.array(list(dict.fromkeys(chosen)), np.intp)

    def _scores(self, known: Index) -> Numbers:
        """Return the share that each map holds of some known places, of which a few are probed."""
        probes = known[np.random.default_rng(_SEED).permutation(len(known))[:_PROBES]]
        at_probes, atoms, found = self.places[probes], self.held.atoms, []
        step = max(1, _CHUNK // len(probes))
        tables = [
            atoms.at(at_probes, np.arange(at, min(at + step, len(atoms))))
            for at in range(0, len(atoms), step)
        ]
        values, bound = self.values[probes], self.bound[probes]
        for block in range(len(self.held.sources)):
            pool = self.pool[[*range(block * self.size, (block + 1) * self.size), NOTHING]]  # the last at -1
            for table in tables:
                apart = pool.take(table)
                apart -= values
                np.abs(apart, out=apart)
                found.append((apart <= bound).mean(axis=1))
        zero = self._near(np.full((1, len(probes)), NOTHING), probes).mean(axis=1)
        return np.concatenate([*found, zero])

    def _near(self, table: Index, known: Index | slice = slice(None)) -> Flags:
        near: Flags = np.abs(self.pool[table] - self.values[known]) <= self.bound[known]
        return near

    def _parts(self, number: int) -> tuple[Atom, Block]:
        block, at = divmod(number, len(self.held.atoms))
        if block == len(self.held.sources):
            return self.held.atoms[0], ZERO
        return self.held.atoms[at], self.held.sources[block]

    def _table(self, number: int) -> Index:
        block, at = divmod(number, len(self.held.atoms))
        if block == len(self.held.sources):
            return np.full(len(self.places), NOTHING)
        table = self.held.atoms.at(self.places, np.array([at]))[0]
        return np.where(table < 0, NOTHING, table + block * self.size)

    def _whole(self, numbers: Index) -> list[Fit]:
        """Return the cheapest maps that hold everywhere, those of equal values once."""
        found: dict[bytes, Fit] = {}
        for number in numbers[np.argsort(self.cost[numbers], kind="stable")].tolist():
            cost = float(self.cost[number])
            if len(found) == _MOST or (found and cost > next(iter(found.values())).cost):
                break
            table = self._table(number)
            if self._near(table).all():
                key = self.pool[table].tobytes()
                found.setdefault(key, self._fit(table, cost, (Piece(*self._parts(number)),)))
        return list(found.values())

    def _fit(self, table: Index, cost: float, pieces: tuple[Piece, ...], rest: Index | None = None) -> Fit:
        rest = np.zeros(0, np.intp) if rest is None else rest
        share = 1 - len(rest) / len(self.places)
        return Fit(
            table=table,
            cost=cost,
            pieces=pieces,
            share=share,
            rest=self.places[rest],
            others=np.array([self._source(at) for at in rest.tolist()], np.intp),
            certain=self._surprise(share) > np.log2(len(self.cost)) + _BITS,
        )

    def _surprise(self, share: float) -> float:
        """Return the bits that a map says which holds so much, beside a map that means nothing."""
        pool = np.sort(self.pool[: self.size])
        low = np.searchsorted(pool, self.values - self.bound)
        high = np.searchsorted(pool, self.values + self.bound, "right")
        chance = min(max(float((high - low).mean()) / len(pool), 1e-9), 1 - 1e-9)
        if share <= chance:
            return 0.0
        rest = (1 - share) * np.log2(max(1 - share, 1e-300) / (1 - chance))
        return float(len(self.values) * (share * np.log2(share / chance) + rest))

    # --- two maps ---

    def _split(self, chosen: Index, hits: Flags) -> list[Fit]:
        """Return two maps that a predicate splits and that hold everything."""
        known = self.held.predicates
        if not len(known):
            return []
        masks = known.masks.astype(np.float32)
        single = masks.sum(axis=1) < _FEWEST  # a place may hold anything
        misses = (~hits).astype(np.float32)
        inside = misses @ masks.T == 0  # map, predicate
        outside = misses[:_OTHERS] @ (1 - masks).T == 0
        cost = self.cost[chosen]
        total = (
            np.where(inside, cost[:, None], np.inf)[:, None] + np.where(outside, cost[:_OTHERS, None], np.inf)
        ) + np.where(single, np.inf, known.cost)
        if not np.isfinite(total).any():
            return []
        found: dict[bytes, Fit] = {}
        for first, other, at in np.argwhere(total == total.min())[:_MOST].tolist():
            mask = known.masks[at]
            numbers = int(chosen[first]), int(chosen[other])
            table = np.where(mask, self._table(numbers[0]), self._table(numbers[1]))
            pieces = tuple(
                Piece(*self._parts(number), within=(known.where(at, inside=inside),))
                for number, inside in zip(numbers, (True, False), strict=True)
            )
            fit = self._fit(table, float(total.min()), pieces)
            found.setdefault(self.pool[table].tobytes(), fit)
        return list(found.values())

    # --- fields whose values come from anywhere ---

    def _units(self) -> Iterator[Fit]:
        """Yield the first field each of whose values may come from any other, the same in all places."""
        for view in self.held.views:
            for number, unit in enumerate(view.fields):
                if 2 < unit.size <= _UNITS and unit.size < len(self.places):
                    sources = self._unit_sources(view, number)
                    if sources is not None:
                        order, table = sources
                        yield replace(self._fit(table, 10.0, ()), units=(unit.name, order))
                        return

    def _unit_sources(self, view: View, number: int) -> tuple[tuple[int, ...], Index] | None:
        """Return which value of a field every value is, -1 for zero, and the table of that."""
        table, order, size = self.places.copy(), [], view.fields[number].size
        own = view.coordinates[self.places]
        for value in range(size):
            known = np.flatnonzero(own[:, number] == value)
            moved = np.repeat(own[known][None], size, axis=0)
            moved[:, :, number] = np.arange(size)[:, None]
            options = np.concatenate([view.at(moved), np.full((1, len(known)), NOTHING)])
            right = np.flatnonzero(self._near(options, known).all(axis=1))
            if not len(right):
                return None
            pick = value if value in right else int(right[0])
            order.append(pick if pick < size else NOTHING)
            table[known] = options[pick]
        return tuple(order), table

    # --- the best map and what leaves it ---

    def _best(self, chosen: Index, hits: Flags) -> list[Fit]:
        """Return the map that most places follow, with a predicate of its own where that is exact."""
        share = hits.mean(axis=1)
        misses = ((self._table(int(at)), ~near) for at, near in zip(chosen, hits, strict=True))
        claimed = np.array([(table[miss] != NOTHING).sum() for table, miss in misses])
        best = int(np.lexsort((self.cost[chosen], claimed, -share))[0])  # what lies outside may be anything
        if share[best] < _LEAST:
            return []
        number = int(chosen[best])
        table = self._table(number)
        rest = np.flatnonzero(~hits[best])
        fit = self._fit(table, float(self.cost[number]), (Piece(*self._parts(number)),), rest)
        return [fit] if fit.certain else []

    def _source(self, known: int) -> int:
        """Return the nearest source of a known place: its own, another, NOTHING or NOWHERE."""
        apart = np.abs(self.pool[: self.size] - self.values[known])
        place, at = int(self.places[known]), int(apart.argmin())
        if apart[place] <= self.bound[known]:
            return place
        if apart[at] <= self.bound[known]:
            return at
        return NOTHING if abs(self.values[known]) <= self.bound[known] else NOWHERE


def _comparable(values: Numbers) -> Numbers:
    """Return values in which NaN and infinities are numbers of their own."""
    return np.nan_to_num(np.asarray(values, np.float64), nan=1e300, posinf=2e300, neginf=-2e300)
