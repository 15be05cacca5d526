"""Candidate tables of an operand, screened on few elements of D and then on all of them.

A candidate is a source of values, a map of places, and the places where both apply; what is elsewhere is
right. It is evaluated on the places that an element of D meets, so that a million of candidates take one
product of matrices. The budget counts candidates. Knows no words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ....base.errors import present
from .linear_operands import Operand
from .views import NOTHING, Index

_WRONG, _RIGHT = 16, 8  # elements of D that are probed
_BLOCK = 1 << 20  # numbers at once
_FEW = 64  # candidates that are compared on all of D at once
_KEPT = 1 << 18  # candidates in some places only that agree with the first probe
_MORE = 3  # probes where these are more
_COMPARED = 1 << 11  # candidates that are compared on all of D
_SAMPLED = 1 << 11  # places, of which the nearest candidates are compared
_CHEAP = 3  # of maps that are joined with other sources
_MANY = 1 << 10  # places, from which only cheaper maps are joined
ZERO = -1  # the source of candidates that hold zero
EVERYWHERE = -1  # the predicate of candidates that hold in all places


class Candidates(NamedTuple):
    """``(C,)`` numbers: of the source of values, of the map, and of the predicate."""

    source: Index
    atom: Index
    predicate: Index

    def of(self, chosen: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> Candidates:
        """Return some of the candidates."""
        return Candidates(*(each[chosen] for each in self))


class Probe(NamedTuple):
    """An element of D that an operand meets: its line and number in the line."""

    line: int
    element: int


def probes(operand: Operand, wrong: npt.NDArray[np.bool_]) -> list[Probe]:
    """Return elements of D of several lines, ``wrong (L, E)`` elements first, and the largest before others.

    The larger a sum is beside its rounding, the fewer candidates agree with it by chance.
    """
    finite = np.isfinite(operand.T)
    found = []
    for flags, count in ((wrong & finite, _WRONG), (~wrong & finite, _RIGHT)):
        if flags.any():
            size = np.where(flags, np.abs(operand.T) / operand.near, -1.0)
            found.append(Probe(*(int(each) for each in np.unravel_index(size.argmax(), size.shape))))
        lines = np.flatnonzero(flags.any(axis=1))
        for at, line in enumerate(_spread(lines, count).tolist()):
            own = np.flatnonzero(flags[line])
            found.append(Probe(line, int(own[at * len(own) // max(count, 1) % len(own)])))
    return found


def _spread(numbers: Index, count: int) -> Index:
    if len(numbers) <= count:
        return numbers
    return numbers[np.linspace(0, len(numbers) - 1, count).astype(np.intp)]


def evaluated(operand: Operand, candidates: Candidates, places: Index) -> Index:
    """Return ``(C, n)``: the sources that candidates have in some places."""
    made = operand.atoms.at(places, candidates.atom)
    source = candidates.source[:, None]
    made = np.where((made < 0) | (source == ZERO), NOTHING, made + source * operand.size)
    if (candidates.predicate == EVERYWHERE).all():
        return made
    masks = operand.predicates.masks[:, places]
    masks = np.concatenate([masks, np.ones((1, len(places)), np.bool_)])  # the last: everywhere
    return np.where(masks[candidates.predicate], made, places)


def costs(operand: Operand, candidates: Candidates) -> npt.NDArray[np.float64]:
    """Return the length of the description of each candidate."""
    of_source = np.array([*(source.cost for source in operand.sources), 1.0])
    of_predicate = np.append(operand.predicates.cost, 0.0)
    of_atom = operand.cost[candidates.atom]
    of_atom = of_atom + (operand.name == "cd")  # two operands are wrong
    return np.asarray(of_source[candidates.source] + of_atom + of_predicate[candidates.predicate])


# --- the first probe: a grid of candidates ---------------------------------------------------------------


def singles(operand: Operand) -> Candidates:
    """Return every map, every source of values alone, and other sources joined with cheap maps."""
    count, sources = len(operand.atoms), len(operand.sources)
    cheap = np.flatnonzero(operand.cost <= _CHEAP - (operand.size > _MANY))
    source = [np.zeros(count, np.intp), np.repeat(np.arange(1, sources), len(cheap)), np.array([ZERO])]
    atom = [np.arange(count), np.tile(cheap, sources - 1), np.array([0])]
    made = Candidates(np.concatenate(source), np.concatenate(atom), np.zeros(0, np.intp))
    return made._replace(predicate=np.full(len(made.source), EVERYWHERE))


def alternatives(operand: Operand) -> Candidates:
    """Return what may stand in some places only: maps, other sources of values, and zero."""
    most = 5 if operand.size <= _MANY else 3
    maps = np.flatnonzero((operand.cost > 0) & (operand.cost <= most))
    source = np.concatenate([np.zeros(len(maps), np.intp), np.arange(1, len(operand.sources)), [ZERO]])
    atom = np.concatenate([maps, np.zeros(len(operand.sources), np.intp)])
    return Candidates(source, atom, np.full(len(source), EVERYWHERE))


def left_out(operand: Operand) -> Candidates:
    """Return zero in the places of every predicate."""
    count = len(operand.predicates)
    return Candidates(np.full(count, ZERO), np.zeros(count, np.intp), np.arange(count))


def screened_partly(operand: Operand, few: list[Probe]) -> Candidates:
    """Return the candidates with a predicate that agree with the first probe; of many, with the next, too."""
    probe = few[0]
    places = operand.where[probe.line]
    others = alternatives(operand)
    masks = operand.predicates.masks[:, places].astype(np.float64)
    own = operand.parts(places, *probe)
    found = []
    step = max(1, _BLOCK // max(1, len(masks)))
    for first in range(0, len(others.source), step):
        part = others.of(np.arange(first, min(first + step, len(others.source))))
        moved = operand.parts(evaluated(operand, part, places), *probe) - own
        moved = np.nan_to_num(moved, nan=0.0, posinf=0.0, neginf=0.0)
        hit = operand.agrees(own.sum() + moved @ masks.T, operand.T[probe], operand.near[probe])
        at, predicate = np.nonzero(hit)
        found.append(Candidates(part.source[at], part.atom[at], predicate))
    made = Candidates(*(np.concatenate(each) for each in zip(*found, strict=True)))
    if len(made.source) > _KEPT:
        made = surviving(operand, made, [each for each in few[1:] if _is_far(operand, each)][:_MORE])
    if len(made.source) <= _KEPT:
        return made
    return made.of(np.argsort(costs(operand, made), kind="stable")[:_KEPT])


def _is_far(operand: Operand, probe: Probe) -> bool:
    """Return whether an element of D is off by more than rounding, as the operand stands."""
    own = operand.parts(operand.where[probe.line], *probe).sum()
    return not operand.agrees(own, operand.T[probe], operand.near[probe])


# --- all probes, all of D --------------------------------------------------------------------------------


def surviving(operand: Operand, candidates: Candidates, few: list[Probe]) -> Candidates:
    """Return the candidates that agree with every probe."""
    for probe in few:
        places = operand.where[probe.line]
        step, kept = max(1, _BLOCK // len(places)), []
        for first in range(0, len(candidates.source), step):
            part = candidates.of(np.arange(first, min(first + step, len(candidates.source))))
            parts = operand.parts(evaluated(operand, part, places), *probe)
            hit = operand.agrees(parts.sum(axis=1), operand.T[probe], operand.near[probe])
            kept.append(np.flatnonzero(hit) + first)
        candidates = candidates.of(np.concatenate(kept) if kept else np.zeros(0, np.intp))
    return candidates


class Fitting(NamedTuple):
    """A candidate that agrees with all of D: its number among the candidates, and its table."""

    number: int
    table: Index


def fitting(operand: Operand, candidates: Candidates) -> Iterator[Fitting]:
    """Yield what agrees with all of D, the cheapest first, and each set of values once."""
    order = np.argsort(costs(operand, candidates), kind="stable")[:_COMPARED]
    values = np.append(operand.codes.astype(np.uint64), np.uint64(0))
    every, seen = np.arange(operand.size), set[bytes]()
    step = max(1, min(_FEW, _BLOCK // operand.size))
    for first in range(0, len(order), step):
        numbers = order[first : first + step]
        for number, table in zip(
            numbers.tolist(), evaluated(operand, candidates.of(numbers), every), strict=True
        ):
            key = values[table].tobytes()
            if key in seen:
                continue
            seen.add(key)
            made = operand.sums(table)
            finite = np.isfinite(made) | ~np.isfinite(operand.T)  # Inf and NaN stay in a sum
            if finite.all() and operand.agrees(made, operand.T, operand.near).all():
                yield Fitting(number, table)


def all_sums(operand: Operand, candidates: Candidates) -> Iterator[npt.NDArray[np.float64]]:
    """Yield ``(c, L, E)``: all sums of candidates, block by block."""
    step, count = max(1, _BLOCK // operand.where.size), len(candidates.source)
    for start in range(0, count, step):
        part = candidates.of(np.arange(start, min(start + step, count)))
        values = operand.values[evaluated(operand, part, operand.where.reshape(-1))]
        values = values.reshape(-1, *operand.where.shape)
        if operand.look is None:
            yield np.asarray(np.einsum("clj,lje->cle", values, present(operand.W, "W"), optimize=True))
        else:
            line, unit = np.indices(operand.where.shape)
            yield np.asarray(operand.look[line, unit, :, values.astype(np.intp)].sum(axis=2))


def _sample(operand: Operand, places: int, elements: int) -> Operand:
    """Return the problem of some lines of an operand with so many places, and of some elements of each."""
    rng = np.random.default_rng(0)
    (count, size), every = operand.where.shape, operand.T.shape[1]
    lines = np.sort(rng.permutation(count)[: max(1, places // size)])
    own = np.sort(rng.permutation(every)[:elements])
    weights = None if operand.W is None else operand.W[lines][:, :, own]
    look = None if operand.look is None else operand.look[lines][:, :, own]
    target, near = operand.T[lines][:, own], operand.near[lines][:, own]
    return replace(operand, where=operand.where[lines], T=target, near=near, W=weights, look=look)


def _shares(operand: Operand, candidates: Candidates) -> npt.NDArray[np.float64]:
    every = all_sums(operand, candidates)
    return np.concatenate([operand.agrees(sums, operand.T, operand.near).mean(axis=(1, 2)) for sums in every])


def nearest(operand: Operand, candidates: Candidates, count: int) -> Index:
    """Return the candidates that agree with most elements of D, the cheapest of equal first.

    All are compared on some elements of large operands, and the best of them on more.
    """
    cost = costs(operand, candidates)
    order = np.arange(len(cost))
    for places, elements in ((_SAMPLED >> 2, _FEW >> 2), (_SAMPLED, operand.T.shape[1])):
        part = candidates.of(order)
        share = _shares(_sample(operand, places, elements), part)
        order = order[np.lexsort((cost[order], -share))[:_FEW]]
    return order[:count]
