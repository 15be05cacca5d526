"""Two causes at once: of two operands, of an operand and D, or two steps of one operand.

Of two operands that are multiplied, all pairs of candidates are screened by one product of matrices for each
element of D that is probed; with C they are sums, and with D look-ups. Knows no words and no engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ....base.errors import present
from ....isa.fragments import columns_of, require_sparse
from ..dumps.dump_comparison import numbers
from .linear_operands import Operand, Tile
from .screening import EVERYWHERE, Candidates, all_sums, alternatives, costs, evaluated, left_out
from .views import NOTHING, Index, Numbers

_BLOCK = 1 << 22  # pairs at once
_MOST = 3.0  # cost of each of two maps of one operand
_LARGE = 1 << 10  # places
_OPERATIONS = 1 << 31  # of a product of matrices
_SIDE = 1 << 11  # candidates of an operand in pairs, the cheapest
_KEPT = 1 << 16  # pairs that are probed further
_FEW = 48  # pairs that are given to the engine
_PROBES = 12

Pairs = tuple[Index, Index]  # numbers of the first, and of the second candidates


class Side(NamedTuple):
    """An operand with the candidates that may be wrong with it, and what each costs."""

    operand: Operand
    candidates: Candidates
    cost: npt.NDArray[np.float64]


def side_of(operand: Operand, most: float = 5.0) -> Side:
    """Return an operand with its single steps in all places, and zero in some, up to a cost."""
    made = Candidates(*map(np.concatenate, zip(alternatives(operand), left_out(operand), strict=True)))
    cost = costs(operand, made)
    chosen = np.flatnonzero(cost <= (most if operand.size <= _LARGE else min(most, 3.0)))
    chosen = chosen[np.argsort(cost[chosen], kind="stable")[: _most_of(operand)]]
    return Side(operand, made.of(chosen), cost[chosen])


def _most_of(operand: Operand) -> int:
    """Return how many candidates of an operand are paired: fewer of large operands and of a large D."""
    return min(_SIDE, _BLOCK // max(operand.size, operand.T.size))


def ordered(first: Side, second: Side, pairs: Pairs) -> Pairs:
    """Return the cheapest pairs, in the order of their cost."""
    i, j = pairs
    order = np.argsort(first.cost[i] + second.cost[j], kind="stable")[:_FEW]
    return i[order], j[order]


def elements(tile: Tile, wrong: npt.NDArray[np.bool_], near: Numbers | float) -> list[tuple[int, int]]:
    """Return rows (of products stacked) and columns of wrong, then of right elements, the largest first.

    None where no wrong element is off by more than what sums may be apart from D: all pairs would agree.
    """
    off = np.abs(tile.result - numbers(tile.expected, tile.instruction.d))
    wrong = wrong.reshape(off.shape) & ~(off <= float(np.nanmax(near)))
    if not wrong.any():
        return []
    d, flags = (each.reshape(-1, wrong.shape[-1]) for each in (np.abs(tile.result), wrong))
    right = ~flags & ~(off > 0).reshape(flags.shape)
    finite = np.isfinite(d)
    found = []
    for which, count in ((flags & finite, _PROBES), (right & finite, 3)):
        at = np.argwhere(which)
        if len(at):
            chosen = at[np.linspace(0, len(at) - 1, count).astype(int)]
            found += [(int(row), int(column)) for row, column in (at[d[which].argmax()], *chosen)]
    return found


def _distinct(rows: Numbers) -> tuple[Index, Index]:
    """Return numbers of distinct rows, and which of these each row equals: few candidates reach a probe."""
    whole = np.ascontiguousarray(rows.reshape(len(rows), -1))
    keys = whole.view(np.dtype((np.void, whole.dtype.itemsize * whole.shape[1])))[:, 0]
    _, numbers, own = np.unique(keys, return_index=True, return_inverse=True)
    return numbers, own


def _pairs_of(hits: npt.NDArray[np.bool_], first: Index, second: Index) -> Pairs:
    rows = np.flatnonzero(np.asarray(hits.any(axis=1))[first])
    i, j = np.nonzero(hits[first[rows]][:, second])
    return rows[i], j


def _joined(found: Sequence[Pairs]) -> Pairs:
    if not found:
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    return np.concatenate([i for i, _ in found]), np.concatenate([j for _, j in found])


# --- products --------------------------------------------------------------------------------------------


MULTIPLIED = (
    *(("a", "b"), ("a", "e"), ("a", "scale_a"), ("a", "scale_b")),
    *(("b", "e"), ("b", "scale_a"), ("b", "scale_b"), ("scale_a", "scale_b")),
)


Factors = Callable[[int, int], tuple[Numbers, Numbers, float, float]]


def _agreeing(tile: Tile, first: Side, second: Side, wrong: npt.NDArray[np.bool_], factors: Factors) -> Pairs:
    """Return the pairs that agree with every probe.

    Of an element of D, ``factors`` are vectors of the candidates of both sides, whose products are what the
    pairs make of it, and what it is, within a bound.
    """
    live: Pairs | None = None
    for row, column in elements(tile, wrong, 4 * first.operand.near):
        values, weights, target, near = factors(row, column)
        values, weights = _finite(values), _finite(weights)
        if live is None:
            (i, own), (j, other) = _distinct(values), _distinct(weights)
            live = _pairs_of(first.operand.agrees(values[i] @ weights[j].T, target, near), own, other)
        else:
            i, j = live
            kept = first.operand.agrees((values[i] * weights[j]).sum(axis=1), target, near)
            live = i[kept], j[kept]
        if len(live[0]) > _KEPT:
            live = _cheapest(first, second, live)
    return live if live is not None else _joined([])


def of_products(tile: Tile, first: Side, second: Side, wrong: npt.NDArray[np.bool_]) -> Pairs:
    """Return the pairs of two operands that are multiplied that agree with every probe."""
    held = first.operand

    def factors(row: int, column: int) -> tuple[Numbers, Numbers, float, float]:
        line, element = _line(tile, held, row, column)
        values = held.values[evaluated(held, first.candidates, held.where[line])]
        weights = _weights(tile, held, second, line, row, column)
        return values, weights, held.T[line, element], 4 * held.near[line, element]

    return _agreeing(tile, first, second, wrong, factors)


def _cheapest(first: Side, second: Side, pairs: Pairs) -> Pairs:
    i, j = pairs
    cost = first.cost[i] + second.cost[j]
    limit = np.partition(cost, _KEPT)[_KEPT]
    below, at = np.flatnonzero(cost < limit), np.flatnonzero(cost == limit)
    kept = np.sort(np.concatenate([below, at[: _KEPT - len(below)]]))
    return i[kept], j[kept]


def _finite(values: Numbers) -> Numbers:
    return np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)


def _column(tile: Tile, row: int, column: int) -> int:
    """Return the line of B: its column, of the product that a row belongs to."""
    shape = tile.instruction.shape
    return row // shape.m * shape.n + column


def _weights(tile: Tile, held: Operand, second: Side, line: int, row: int, column: int) -> Numbers:
    """Return ``(C, J)``: the weights of the first operand's places, as candidates of the second make them."""
    shape, other = tile.instruction.shape, second.operand
    product, row = row // shape.m, row % shape.m
    scale_a, scale_b = tile.scales("a")[row], tile.scales("b")[:, column]
    right, left = tile.matrix("b")[product, :, column] * scale_b, tile.left[product, row] * scale_a
    if other.name == "b":
        places = other.where[_column(tile, product * shape.m + row, column)]
        values = other.values[evaluated(other, second.candidates, places)] * scale_b
        return np.asarray((values * scale_a)[:, tile.columns[row]])
    if other.name == "e":
        columns = _columns_of(tile, second, row)
        if held.name == "a":
            return np.asarray((right * scale_a)[columns])
        full = np.zeros((len(columns), shape.k))
        at = np.arange(len(columns))[:, None]
        np.add.at(full, (at, columns), np.broadcast_to(tile.matrix("a")[0, row], columns.shape))
        return np.asarray(full * scale_a * scale_b)
    return _scaled_weights(tile, held, second, row, column, (left, right))


def _scaled_weights(
    tile: Tile, held: Operand, second: Side, row: int, column: int, vectors: tuple[Numbers, Numbers]
) -> Numbers:
    """Return the weights where the second operand is a block scale."""
    other, shape = second.operand, tile.instruction.shape
    places = other.where[row if other.name == "scale_a" else column]
    scales = other.values[evaluated(other, second.candidates, places)]
    own = tile.scales("a")[row] if other.name == "scale_a" else tile.scales("b")[:, column]
    each = np.repeat(scales, shape.k // scales.shape[1], axis=1) / np.where(own == 0, 1, own)
    left, right = vectors
    if held.name == "a":
        return np.asarray((each * right * tile.scales("a")[row])[:, tile.columns[row]])
    if held.name == "b":
        return np.asarray(each * left * tile.scales("b")[:, column])
    products = each * tile.left[0, row] * right
    return np.asarray(products.reshape(len(each), scales.shape[1], -1).sum(axis=2))


def _columns_of(tile: Tile, second: Side, row: int) -> Index:
    """Return ``(C, stored k)``: the columns that candidates of the metadata give the stored elements."""
    form, other = tile.instruction, second.operand
    pattern = require_sparse(form)
    codes = other.values[evaluated(other, second.candidates, other.where[row])].astype(np.uint8)
    fields = codes if pattern.kept == 1 else codes[:, ::2] | codes[:, 1::2] << np.uint8(2)
    return columns_of(form, fields, None, literal=True)


# --- sums and look-ups -----------------------------------------------------------------------------------


def of_sums(tile: Tile, first: Side, c: Side, wrong: npt.NDArray[np.bool_]) -> Pairs:
    """Return the pairs of an operand of the products and C that agree with every probe."""
    held, n = first.operand, tile.instruction.shape.n
    offset = tile.offset.reshape(-1, n)

    def factors(row: int, column: int) -> tuple[Numbers, Numbers, float, float]:
        line, element = _line(tile, held, row, column)
        parts = held.parts(evaluated(held, first.candidates, held.where[line]), line, element)
        made = _finite(parts).sum(axis=1)
        values = c.operand.values[evaluated(c.operand, c.candidates, np.array([row * n + column]))[:, 0]]
        sums = np.stack([made, np.ones_like(made)], axis=1), np.stack([np.ones_like(values), values], axis=1)
        target = held.T[line, element] + offset[row, column]
        return *sums, target, 4 * held.near[line, element]

    return _agreeing(tile, first, c, wrong, factors)


def _line(tile: Tile, operand: Operand, row: int, column: int) -> tuple[int, int]:
    shape = tile.instruction.shape
    if operand.name in ("a", "e", "scale_a"):
        return row, column
    if operand.name in ("b", "scale_b"):
        return _column(tile, row, column), row % shape.m
    return row * shape.n + column, 0


def of_results(tile: Tile, first: Side, d: Side, wrong: npt.NDArray[np.bool_]) -> Pairs:
    """Return the pairs of an operand and D: all of D of every first candidate, looked up by the second."""
    held, form = first.operand, tile.instruction
    made = np.concatenate(list(all_sums(held, first.candidates)))
    if held.name in ("b", "scale_b"):
        made = made.reshape(-1, form.products, form.shape.n, form.shape.m).transpose(0, 1, 3, 2)
    made = made.reshape(len(made), -1)
    joint = d.operand.name == "cd"
    own = 0 if joint else tile.offset.reshape(-1)
    rest = tile.products.reshape(-1) if held.name == "c" else _fixed(tile, held) + own
    made = made + rest
    made = np.concatenate([_finite(made), np.zeros((len(made), 1))], axis=1)
    actual = (tile.result - tile.offset * joint).reshape(-1)
    near = 8 * float(np.nanmax(held.near))
    places = [row * form.shape.n + column for row, column in elements(tile, wrong, near)]
    if not places:
        return _joined([])
    every = evaluated(d.operand, d.candidates, np.array(places, np.intp)).T
    i, j = _pairs_of(held.agrees(made, actual[places[0]], near), np.arange(len(made)), every[0])
    for place, source in zip(places[1:], every[1:], strict=True):
        kept = held.agrees(made[i, source[j]], actual[place], near)
        i, j = i[kept], j[kept]
    return i, j


def of_both(tile: Tile, moved: Side, c: Side, wrong: npt.NDArray[np.bool_]) -> Pairs:
    """Return the pairs of C and D moved together, and C moved then, that agree with every probe."""
    held, count, n = c.operand, c.operand.size, tile.instruction.shape.n
    tables = evaluated(moved.operand, moved.candidates, np.arange(count))
    first = np.flatnonzero((np.sort(tables, axis=1) == np.arange(count)).all(axis=1))
    back, products = np.argsort(tables[first], axis=1), tile.products.reshape(-1)
    near, made = 4 * float(np.nanmax(held.near)), tile.result.reshape(-1)
    i, j = np.indices((len(first), len(c.cost))).reshape(2, -1)
    for row, column in elements(tile, wrong, near):
        place = row * n + column
        source = evaluated(held, c.candidates, np.array([place]))[:, 0]
        block, at = (source // count) * count, source % count
        values = held.values[np.where(source[j] < 0, -1, block[j] + back[i, at[j]])]
        kept = held.agrees(_finite(values) + products[place], made[back[i, place]], near)
        i, j = i[kept], j[kept]
    return first[i], j


def maps_of_d(operand: Operand, most: float = 4.0) -> Side:
    """Return the maps of D's places alone."""
    chosen = np.flatnonzero((operand.cost > 0) & (operand.cost <= most))
    chosen = chosen[np.argsort(operand.cost[chosen], kind="stable")[: _most_of(operand)]]
    zeros = np.zeros(len(chosen), np.intp)
    return Side(operand, Candidates(zeros, chosen, zeros + EVERYWHERE), operand.cost[chosen])


def _fixed(tile: Tile, held: Operand) -> Numbers:
    """Return what D has besides C and the products of an operand: counts of the other, of bits with xor."""
    if not tile.is_xor:
        return np.zeros(tile.result.size)
    sums = tile.matrix("b").sum(axis=1)[:, None] if held.name == "a" else tile.left.sum(axis=2)[..., None]
    return np.broadcast_to(sums, tile.result.shape).reshape(-1)


# --- one operand -----------------------------------------------------------------------------------------


class Twice(NamedTuple):
    """Two steps of one operand: the table of both, its cost, and the candidates' numbers."""

    table: Index
    cost: float
    first: int
    second: int


def composed(operand: Operand, few: Sequence[tuple[int, int]]) -> Iterator[Twice]:
    """Yield two maps in sequence that agree with D: the second reads what the first has made."""
    chosen = _maps(operand)
    tables = operand.atoms.at(np.arange(operand.size), chosen)
    tables = np.concatenate([tables, np.full((len(tables), 1), NOTHING)], axis=1)
    cost = operand.cost[chosen]
    live: Pairs | None = None
    for line, element in few:
        target, near = operand.T[line, element], operand.near[line, element]
        if live is None:
            live = _first_composed(operand, tables, line, element)
        else:
            i, j = live
            parts = operand.parts(tables[i[:, None], tables[j][:, operand.where[line]]], line, element)
            kept = operand.agrees(parts.sum(axis=1), target, near)
            live = i[kept], j[kept]
        order = np.argsort(cost[live[0]] + cost[live[1]], kind="stable")[:_KEPT]
        live = live[0][order], live[1][order]
    if live is None:
        return
    for i, j in zip(live[0][:_FEW].tolist(), live[1][:_FEW].tolist(), strict=True):
        table = tables[i][tables[j][:-1]]
        if operand.agrees(operand.sums(table), operand.T, operand.near).all():
            yield Twice(table, float(cost[i] + cost[j]) + 1, int(chosen[i]), int(chosen[j]))


def _maps(operand: Operand) -> Index:
    """Return the maps of which two are tried in sequence: as many as a product of matrices bears."""
    codes = 1 if operand.look is None else operand.look.shape[-1]
    for most in (_MOST, _MOST - 1):
        chosen = np.flatnonzero((operand.cost > 0) & (operand.cost <= most))
        if len(chosen) ** 2 * operand.size * codes <= _OPERATIONS:
            return chosen
    return chosen[:_FEW]


def _first_composed(operand: Operand, tables: Index, line: int, element: int) -> Pairs:
    """Return the pairs of maps that agree with the first probe: one product of matrices.

    Each first map gives values by place, and each second map sums weights by place.
    """
    places, size = operand.where[line], operand.size
    after = tables[:, places]
    if operand.look is None:
        held = _finite(operand.values[tables[:, :-1]])
        weights = np.broadcast_to(present(operand.W, "W")[line, :, element], after.shape)
        at = after
    else:
        count = operand.look.shape[-1]
        codes = operand.values[tables[:, :-1]].astype(np.intp)
        held = (codes[..., None] == np.arange(count)).reshape(len(tables), -1).astype(np.float64)
        weights = np.broadcast_to(operand.look[line, :, element], (*after.shape, count)).reshape(
            len(after), -1
        )
        at = (np.where(after < 0, size, after)[..., None] * count + np.arange(count)).reshape(len(after), -1)
        size *= count
    summed = np.zeros((len(tables), size + (1 if operand.look is None else operand.look.shape[-1])))
    np.add.at(summed, (np.arange(len(tables))[:, None], np.where(at < 0, size, at)), weights)
    found, step = list[Pairs](), max(1, _BLOCK // len(tables))
    nothing = 0.0 if operand.look is None else summed[:, size]
    for start in range(0, len(tables), step):
        made = held[start : start + step] @ summed[:, :size].T + nothing
        hits = operand.agrees(made, operand.T[line, element], operand.near[line, element])
        i, j = np.nonzero(hits)
        found.append((i + start, j))
    return _joined(found)


def zero_in_two(operand: Operand, few: Sequence[tuple[int, int]]) -> Iterator[Twice]:
    """Yield places of two predicates that hold zero."""
    masks, cost = operand.predicates.masks, operand.predicates.cost
    first, second = np.triu_indices(len(masks), 1)
    for line, element in few:
        places = operand.where[line]
        own = operand.parts(places, line, element)
        nothing = operand.parts(np.full_like(places, NOTHING), line, element)
        here, kept = masks[:, places], []
        step = max(1, _BLOCK // len(places))
        for start in range(0, len(first), step):
            part = slice(start, start + step)
            both = here[first[part]] & here[second[part]]
            made = own.sum() + both @ (nothing - own)
            target, near = operand.T[line, element], operand.near[line, element]
            kept.append(np.flatnonzero(operand.agrees(made, target, near)) + start)
        chosen = np.concatenate(kept) if kept else np.zeros(0, np.intp)
        first, second = first[chosen], second[chosen]
    order = np.argsort(cost[first] + cost[second], kind="stable")[:_FEW]
    for i, j in zip(first[order].tolist(), second[order].tolist(), strict=True):
        table = np.where(masks[i] & masks[j], NOTHING, np.arange(operand.size))
        if operand.agrees(operand.sums(table), operand.T, operand.near).all():
            yield Twice(table, float(cost[i] + cost[j]) + 1, i, j)
