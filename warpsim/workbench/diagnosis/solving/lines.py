"""Operands solved from D line by line, without a grammar of whole maps: only units that move together.

Line ``l`` of an operand meets D in ``T[l, e] = sum_j V[table[where[l, j]]] * W[l, j, e]``. With as many
elements as places a line is solved by least squares. With fewer it is cut into halves, and the contributions
of all options of both halves meet in the middle (Horowitz and Sahni 1974). Knows no instructions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]
NOTHING = -1  # the source of a place that holds zero
_OPTIONS = 1 << 19  # contributions of half a line
_PAIRS = 1 << 23  # pairs that agree in one element
_HITS = 64  # solutions of a line that are kept
_DEVIATIONS = 4.0  # of the rounding of a solved value
_CODES = 16  # of a metadata nibble
_CHUNK = 4  # elements of an index
_MOST_STORED = 16  # stored elements of a row of metadata


class Problem(Protocol):
    """The linear problem of an operand: ``where (L, J)``, ``T, near (L, E)`` and ``W (L, J, E)``."""

    @property
    def values(self) -> Numbers:
        """Values of all sources."""

    @property
    def where(self) -> Index:
        """Places of each line."""

    @property
    def T(self) -> Numbers:
        """D minus the rest, by line."""

    @property
    def near(self) -> Numbers:
        """Bound of rounding."""

    @property
    def W(self) -> Numbers | None:
        """Weights of places in elements."""


@dataclass(frozen=True, kw_only=True)
class Lines:
    """A problem in which all lines meet the same weights ``(J, E)``."""

    values: Numbers
    where: Index
    T: Numbers
    near: Numbers
    W: Numbers

    @classmethod
    def of(cls, weights: Numbers, target: Numbers, near: Numbers) -> Lines:
        """Return the problem of lines ``X`` with ``X @ weights = target (L, E)`` within ``near``."""
        lines, size = len(target), len(weights)
        where = np.arange(lines * size).reshape(lines, size)
        every = np.broadcast_to(weights, (lines, *weights.shape))
        return cls(values=np.zeros(0), where=where, T=target, near=near, W=every)


class Fields(Protocol):
    """A view: names and sizes of fields, and the coordinates of every place in them."""

    @property
    def fields(self) -> Sequence[Any]:
        """Fields with ``name`` and ``size``."""

    @property
    def coordinates(self) -> Index:
        """``(N, F)`` coordinates."""

    def at(self, coordinates: Index) -> Index:
        """Return places of coordinates, -1 outside."""


class Solved(NamedTuple):
    """Values by place ``(N,)`` and how far each may be off."""

    values: Numbers
    bound: Numbers


def taken(values: Numbers, table: Index) -> Numbers:
    """Return the values of sources, zero for NOTHING."""
    found: Numbers = np.where(table == NOTHING, 0.0, values[table])
    return found


# --- as many elements as places -----------------------------------------------------------------------------


def least_squares(problem: Problem) -> Solved | None:
    """Return the values that stood in the places; None with too few elements, or without full rank."""
    (lines, size), elements = problem.where.shape, problem.T.shape[1]
    if problem.W is None or elements < size or not np.isfinite(problem.T).all():
        return None
    count = problem.where.max() + 1
    values, bound = np.zeros(count), np.zeros(count)
    near = np.broadcast_to(problem.near, problem.T.shape)
    inverse, known = np.zeros((0, 0)), None
    for line in range(lines):
        weights = problem.W[line]
        alike = known is not None and (problem.W.strides[0] == 0 or np.array_equal(weights, known))
        if not alike:
            if np.linalg.matrix_rank(weights) < size:
                return None
            inverse, known = np.linalg.pinv(weights.T), weights
        at = problem.where[line]
        values[at] = inverse @ problem.T[line]
        worst = np.abs(inverse) @ near[line]
        bound[at] = np.minimum(worst, _DEVIATIONS * np.sqrt(inverse**2 @ near[line] ** 2))
    return Solved(values, bound)


# --- meet in the middle --------------------------------------------------------------------------------


def meet(low: Numbers, high: Numbers, target: Numbers, near: Numbers) -> Iterator[tuple[int, int]]:
    """Yield ``(i, j)`` with ``low[i] + high[j]`` within ``near`` of ``target (E,)`` in every element.

    ``low`` is sorted by its most significant element, ``high`` is looked up in it. Nothing if too many agree.
    """
    first = int(np.argmax(np.abs(low).max(axis=0) / near))
    order = np.argsort(low[:, first], kind="stable")
    keys, wanted = low[order, first], target[first] - high[:, first]
    begin = np.searchsorted(keys, wanted - near[first])
    count = np.searchsorted(keys, wanted + near[first], "right") - begin
    if count.sum() > _PAIRS:
        return
    j = np.repeat(np.arange(len(high)), count)
    i = order[np.repeat(begin - np.cumsum(count) + count, count) + np.arange(count.sum())]
    for element in range(len(target)):
        fits = np.abs(low[i, element] + high[j, element] - target[element]) <= near[element]
        i, j = i[fits], j[fits]
    yield from zip(i.tolist(), j.tolist(), strict=True)


def _sums(parts: Sequence[Numbers], elements: int) -> Numbers:
    """Return the sums ``(options, E)`` of all combinations of options, the last part fastest."""
    total = np.zeros((1, elements))
    for part in parts:
        total = (total[:, None] + part[None]).reshape(-1, elements)
    return total


def units(problem: Problem, view: Fields, names: Sequence[str]) -> Index | None:
    """Return a table ``(N,)`` in which the places of a line that share ``names`` move together, anywhere.

    A unit keeps its other coordinates, or holds nothing. Each line is solved separately; of several
    solutions that with most places unchanged. None where a line has no solution or too many options.
    """
    table = np.arange(problem.where.max() + 1)
    for line in range(len(problem.where)):
        rows = list(_unit_rows(problem, line, view, names))
        if not rows:
            return None
        own = problem.where[line]
        table[own] = max(rows, key=lambda row: (int((row == own).sum()), -int((row == NOTHING).sum())))
    return table


def _unit_rows(problem: Problem, line: int, view: Fields, names: Sequence[str]) -> Iterator[Index]:
    """Yield the sources of a line's places in every solution."""
    groups, options = _unit_options(problem.where[line], view, names)
    half = max(1, len(groups) // 2)
    counts = [np.prod([float(len(option)) for option in part]) for part in (options[:half], options[half:])]
    if problem.W is None or max(counts) > _OPTIONS:
        return
    elements = problem.T.shape[1]
    parts = [
        taken(problem.values, option) @ problem.W[line, group]
        for group, option in zip(groups, options, strict=True)
    ]
    near = np.broadcast_to(problem.near, problem.T.shape)[line]
    low, high = _sums(parts[:half], elements), _sums(parts[half:], elements)
    for number, pair in enumerate(meet(low, high, problem.T[line], near)):
        if number == _HITS:
            return
        row = np.empty(problem.where.shape[1], np.intp)
        for at, mine in zip(pair, (slice(None, half), slice(half, None)), strict=True):
            chosen = np.unravel_index(at, [len(option) for option in options[mine]]) if options[mine] else ()
            for group, option, pick in zip(groups[mine], options[mine], chosen, strict=True):
                row[group] = option[pick]
        yield row


def _unit_options(places: Index, view: Fields, names: Sequence[str]) -> tuple[list[Index], list[Index]]:
    """Return the positions of each unit of a line, and the sources ``(options, positions)`` of each."""
    free = [at for at, field in enumerate(view.fields) if field.name in names]
    sizes = [view.fields[at].size for at in free]
    own = view.coordinates[places]
    keys = np.ravel_multi_index(list(own[:, free].T), sizes)
    groups = [np.flatnonzero(keys == key) for key in np.unique(keys)]
    values = np.stack(np.unravel_index(np.arange(int(np.prod(sizes))), sizes), axis=1)
    options = []
    for group in groups:
        moved = np.repeat(own[group][None], len(values), axis=0)
        moved[:, :, free] = values[:, None]
        options.append(np.concatenate([view.at(moved), np.full((1, len(group)), NOTHING)]))
    return groups, options


def pieces(problem: Problem, most: int) -> Index | None:
    """Return a table in which each half of a line is a linear map of its position, from any base.

    Sizes must be powers of two. A weight of a position bit costs 1 where it differs from that of the line,
    up to ``most``. None for other sizes, and where nothing fits.
    """
    lines, size = problem.where.shape
    count = lines * size
    if problem.W is None or count & (count - 1) or size & (size - 1) or size < 4:
        return None
    maps = _linear_maps(problem.where[0, : size // 2], count, most)
    maps = maps[: max(1, _OPTIONS // count)]
    at = (maps[:, None, :] ^ np.arange(count)[None, :, None]).reshape(-1, size // 2)
    at = np.concatenate([at, np.full((1, size // 2), NOTHING)])
    held = taken(problem.values, at)
    near = np.broadcast_to(problem.near, problem.T.shape)
    table = np.arange(count)
    for line, own in enumerate(problem.where):
        low, high = held @ problem.W[line, : size // 2], held @ problem.W[line, size // 2 :]
        hits = [
            np.concatenate([at[i], at[j]])
            for (i, j), _ in zip(meet(low, high, problem.T[line], near[line]), range(_HITS), strict=False)
        ]
        if not hits:
            return None
        table[own] = max(hits, key=lambda row: int((row == own).sum()))
    return table


def _linear_maps(own: Index, count: int, most: int) -> Index:
    """Return ``(maps, positions)``: exclusive ors of weights of position bits, cheapest first."""
    position = np.arange(len(own))
    right = [int(own[1 << bit] ^ own[0]) for bit in range((len(own) - 1).bit_length())]
    singles = [1 << bit for bit in range((count - 1).bit_length())]
    found = [(0, np.zeros(len(own), np.intp))]
    for bit, weight in enumerate(right):
        each = [(int(other != weight), other) for other in dict.fromkeys([weight, *singles, 0])]
        each += [(1, weight ^ single) for single in singles if weight ^ single not in (0, *singles)]
        found = [
            (cost + more, table ^ np.where(position >> bit & 1, other, 0))
            for cost, table in found
            for more, other in each
            if cost + more <= most
        ]
    found.sort(key=lambda pair: pair[0])
    return np.array([table for _, table in found])


# --- metadata ---------------------------------------------------------------------------------------------


def metadata_row(look: Numbers, target: Numbers, near: Numbers, own: Index) -> Index | None:
    """Return the indices ``(J,)`` of a row that give its elements of D, the nearest to ``own``.

    ``look (J, E, 4)`` is what a stored element adds to D with each index. All 16 codes of every pair are
    tried, half a row against the other half. None where no codes fit, and for more than 16 stored elements.
    """
    stored, elements = look.shape[:2]
    if stored % 4 or stored > _MOST_STORED:
        return None
    pairs = [
        (look[at].T[:, None] + look[at + 1].T[None]).reshape(_CODES, elements) for at in range(0, stored, 2)
    ]
    half = len(pairs) // 2
    codes = np.stack(np.unravel_index(np.arange(_CODES**half), (_CODES,) * half), axis=1)
    best: Index | None = None
    low, high = _sums(pairs[:half], elements), _sums(pairs[half:], elements)
    for number, (i, j) in enumerate(meet(low, high, target, near)):
        if number == _HITS:
            break
        row = np.stack(np.divmod(np.concatenate([codes[i], codes[j]]), _CHUNK), axis=1).reshape(-1)
        if best is None or (row != own).sum() < (best != own).sum():
            best = row
    return best
