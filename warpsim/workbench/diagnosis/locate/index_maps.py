"""Maps from the places of a dump to elements of a matrix, fitted to where the values are.

A map is a sum, or an exclusive or, of a weight for each bit of a place's index: base pointer, lane formula,
strides, transposition and swizzle all are. Each weight is what most pairs of neighbours say whose values
stand once in the matrix; where few do, all weights are decided together. Knows codes, not what they mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ....isa.products import Codes
from .dump_places import Index, Places

Flags = npt.NDArray[np.bool_]
_PADS = (1, 2, 4, 8, 16, 32)  # elements between rows
_WIDE = 4  # times its columns lie the rows of a matrix apart where row and column are separate
_STATES = 1 << 13  # places of unfinished maps that are kept at once
_RARE = 0.5  # of the places: with fewer values that stand once, all weights are decided together
_SMALL = 1 << 16  # elements of a matrix of few values, up to which they are
_ENOUGH = 0.9  # of the places that a map which is not finished has to hold


@dataclass(frozen=True)
class Space:
    """Addresses of a matrix: rows (``across``: columns) lie ``stride`` apart; ``xor``: no carries."""

    rows: int
    columns: int
    stride: int
    across: bool = False
    xor: bool = False

    def addresses(self, row: Index, column: Index) -> Index:
        """Return the addresses of elements."""
        return column * self.stride + row if self.across else row * self.stride + column

    def elements(self, addresses: Index) -> tuple[Index, Index, Flags]:
        """Return row and column of addresses, and which addresses hold an element."""
        outer, inner = np.divmod(addresses, self.stride)
        row, column = (inner, outer) if self.across else (outer, inner)
        inside = (row >= 0) & (row < self.rows) & (column >= 0) & (column < self.columns)
        return row, column, inside

    @property
    def separate(self) -> bool:
        """Whether row and column are two formulas, and not one address."""
        return self.xor or self.stride >= _WIDE * (self.rows if self.across else self.columns)


def spaces(rows: int, columns: int) -> Iterator[Space]:
    """Yield where a matrix may lie, the plainest first."""
    yield Space(rows, columns, _WIDE * columns)
    yield Space(rows, columns, 1 << (columns - 1).bit_length(), xor=True)
    yield Space(rows, columns, columns)
    yield Space(rows, columns, rows, across=True)
    for pad in _PADS:
        yield Space(rows, columns, columns + pad)
        yield Space(rows, columns, rows + pad, across=True)


@dataclass(frozen=True, kw_only=True)
class IndexMap:
    """A map, and what it gives: ``row``, ``column`` of each place, and ``hits``, where the values agree."""

    space: Space
    base: int
    weights: tuple[int, ...]
    row: Index
    column: Index
    hits: Flags

    @property
    def count(self) -> int:
        """Places whose value is where the map says."""
        return int(self.hits.sum())


class Matrix:
    """Codes ``(rows, columns)`` that can be looked up by value."""

    def __init__(self, codes: Codes) -> None:
        self.codes = codes
        self.rows, self.columns = codes.shape
        flat = codes.reshape(-1)
        self._order = np.argsort(flat, kind="stable")
        self._sorted = flat[self._order]

    def found(self, codes: Codes) -> tuple[Index, Index]:
        """Return how often each code stands in the matrix, and the first flat place, if any."""
        low, high = (np.searchsorted(self._sorted, codes, side) for side in ("left", "right"))
        return high - low, self._order[np.minimum(low, len(self._order) - 1)]

    def everywhere(self, code: int) -> Index:
        """Return all flat places of a code."""
        low, high = (int(np.searchsorted(self._sorted, code, side)) for side in ("left", "right"))
        return self._order[low:high]

    def chance(self, codes: Codes) -> float:
        """Return the share of codes that a map which means nothing would hit."""
        return float(self.found(codes)[0].mean() / self._sorted.size) if len(codes) else 1.0


def fit(places: Places, codes: Codes, matrix: Matrix, where: Flags) -> IndexMap | None:
    """Return the map that most places of ``where`` follow; None where no weight can be decided."""
    counts, first = matrix.found(codes)
    known = where & (counts == 1) & (codes != 0)
    best: IndexMap | None = None
    for space in spaces(matrix.rows, matrix.columns):
        found = _voted(places, codes, matrix, space, (known, first, where))
        if found is not None and (best is None or found.count > best.count):
            best = found
        if best is not None and best.hits[where].all():
            return best
    searched = codes[where].size * matrix.chance(codes[where]) < 1 or matrix.codes.size <= _SMALL
    if known.sum() < _RARE * where.sum() and searched:
        for found in together(places, codes, matrix, where):
            if best is None or found.count > best.count:
                best = found
    return best


def _voted(
    places: Places, codes: Codes, matrix: Matrix, space: Space, seen: tuple[Flags, Index, Flags]
) -> IndexMap | None:
    """Return the map of what most pairs of neighbours say."""
    known, first, where = seen
    addresses = space.addresses(*np.divmod(first, matrix.columns))
    weights = []
    for clear, given in places.pairs:
        both = known[clear] & known[given]
        if not both.any():
            weights.append(
                _own_weight(places, space, clear, given) if (where[clear] & where[given]).any() else 0
            )
            continue
        clear, given = clear[both], given[both]
        step = addresses[clear] ^ addresses[given] if space.xor else addresses[given] - addresses[clear]
        weights.append(_most(step))
    if not known.any():
        return None
    moved = _sum(places.index_bits, weights, space.xor)
    base = _most((addresses ^ moved if space.xor else addresses - moved)[known])
    return made(places, codes, matrix, (space, base, tuple(weights)), where)


def _own_weight(places: Places, space: Space, clear: Index, given: Index) -> int:
    """Return the weight of the layout, for places whose neighbours are nowhere."""
    if not len(clear):
        return 0
    before, after = (space.addresses(places.row[at[:1]], places.column[at[:1]]) for at in (clear, given))
    return int((before ^ after if space.xor else after - before)[0])


def made(
    places: Places,
    codes: Codes,
    matrix: Matrix,
    parameters: tuple[Space, int, tuple[int, ...]],
    where: Flags | None = None,
) -> IndexMap:
    """Return the map of a base and weights with what it gives; hits count in ``where`` alone."""
    space, base, weights = parameters
    moved = _sum(places.index_bits, weights, space.xor)
    row, column, inside = space.elements(base ^ moved if space.xor else base + moved)
    hits = np.zeros(len(codes), np.bool_)
    hits[inside] = matrix.codes[row[inside], column[inside]] == codes[inside]
    if where is not None:
        hits &= where
    return IndexMap(space=space, base=base, weights=weights, row=row, column=column, hits=hits)


def _most(values: Index) -> int:
    """Return the most frequent value."""
    unique, counts = np.unique(values, return_counts=True)
    return int(unique[counts.argmax()])


def _sum(bits: Index, weights: Sequence[int], xor: bool) -> Index:
    each = bits * np.asarray(weights, np.intp)
    total: Index = np.bitwise_xor.reduce(each, axis=1) if xor else each.sum(axis=1)
    return total


def as_good(places: Places, codes: Codes, matrix: Matrix, found: IndexMap) -> Iterator[IndexMap]:
    """Yield other maps that hold as many places, that differ in the base or in a weight."""
    space = found.space
    if space.xor:
        return
    for step in _steps(space).tolist():
        if not step:
            continue
        for number in range(-1, len(found.weights)):
            weights = list(found.weights)
            if number >= 0:
                weights[number] += step
            base = found.base if number >= 0 else found.base + step
            other = made(places, codes, matrix, (space, base, tuple(weights)))
            if other.count >= found.count:
                yield other


# --- all weights together ---------------------------------------------------------------------------------


def together(places: Places, codes: Codes, matrix: Matrix, where: Flags) -> Iterator[IndexMap]:
    """Yield maps that hold, bit by bit, most of the places reached so far, from the rarest values on.

    Weights are steps of powers of two along rows and columns. Maps that are nearer to the layout come first.
    """
    space = Space(matrix.rows, matrix.columns, _WIDE * matrix.columns)
    steps = _steps(space)
    flat = places.index_bits @ (1 << np.arange(len(places.digits)))
    at = np.full(1 << len(places.digits), -1, np.intp)
    at[flat] = np.arange(len(flat))
    counts = np.where(where & (codes != 0), matrix.found(codes)[0], 0)
    order = np.argsort(np.where(counts > 0, counts, np.iinfo(np.intp).max), kind="stable")[:2]
    own = space.addresses(places.row, places.column)
    for anchor in order[counts[order] > 0].tolist():
        search = _Together(places, codes, matrix, (space, steps, at))
        yield from search.maps(int(flat[anchor]), own, where)


def _steps(space: Space) -> Index:
    """Return the weights that are tried."""

    def powers(size: int) -> list[int]:
        up = [1 << bit for bit in range((size - 1).bit_length())]
        return [0, *up, *(-each for each in up)]

    pairs = [(row, column) for row in powers(space.rows) for column in powers(space.columns)]
    return np.array([row * space.stride + column for row, column in pairs], np.intp)


class _Together:
    """The search for weights from one place on: unfinished maps, by the addresses of the places reached."""

    def __init__(
        self, places: Places, codes: Codes, matrix: Matrix, tables: tuple[Space, Index, Index]
    ) -> None:
        self.places, self.codes, self.matrix = places, codes, matrix
        self.space, self.steps, self.at = tables

    def maps(self, anchor: int, own: Index, where: Flags) -> Iterator[IndexMap]:
        """Yield finished maps, the nearest to the layout first."""
        flat = self.matrix.everywhere(int(self.codes[self.at[anchor]]))[:_STATES]
        reached = np.array([anchor])
        addresses = self.space.addresses(*np.divmod(flat, self.matrix.columns))[:, None]
        weights = np.zeros((len(flat), 0), np.intp)
        near = np.zeros(len(flat), np.intp)
        for bit in range(len(self.places.digits)):
            other = reached ^ 1 << bit
            real = self.at[other]
            step = self._own_step(bit, anchor, own)
            if not (real >= 0).all():
                weights = np.concatenate([weights, np.zeros((len(weights), 1), np.intp)], axis=1)
                continue
            taken = self._extended(addresses, self.codes[real], where[real], near, step)
            kept, chosen = taken
            new = addresses[kept] + chosen[:, None]
            addresses = np.concatenate([addresses[kept], new], axis=1)
            weights = np.concatenate([weights[kept], chosen[:, None]], axis=1)
            near = near[kept] + (chosen == step)
            reached = np.concatenate([reached, other])
            if not len(addresses):
                return
        for at in np.argsort(-near, kind="stable")[:8].tolist():
            yield self._finished(addresses[at, 0], weights[at], anchor, where)

    def _own_step(self, bit: int, anchor: int, own: Index) -> int:
        other = self.at[anchor ^ 1 << bit]
        return int(own[other] - own[self.at[anchor]]) if other >= 0 else 0

    def _extended(
        self, addresses: Index, codes: Codes, where: Flags, near: Index, own: int
    ) -> tuple[Index, Index]:
        """Return which maps go on and by which weight: those that hold most of the new places."""
        new = addresses[:, None, :] + self.steps[None, :, None]
        row, column, inside = self.space.elements(new)
        hit = inside & (self.matrix.codes[np.where(inside, row, 0), np.where(inside, column, 0)] == codes)
        score = np.where(where, hit, True).mean(axis=2)
        score = np.where(score >= _ENOUGH, score, 0)
        ranked = score * 64 + near[:, None] + (self.steps == own)[None, :]
        flat = np.argsort(-ranked.reshape(-1), kind="stable")[: max(_STATES // (2 * addresses.shape[1]), 32)]
        flat = flat[score.reshape(-1)[flat] > 0]
        kept, step = np.divmod(flat, len(self.steps))
        return kept, self.steps[step]

    def _finished(self, address: int, steps: Index, anchor: int, where: Flags) -> IndexMap:
        """Return the map whose base is that of place 0, not of the anchor."""
        bits = np.array([anchor >> bit & 1 for bit in range(len(steps))])
        weights = np.where(bits == 1, -steps, steps)
        base = int(address - (weights * bits).sum())
        parameters = (self.space, base, tuple(weights.tolist()))
        return made(self.places, self.codes, self.matrix, parameters, where)
