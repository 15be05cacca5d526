"""Maps between the places of an operand and predicates on them, each with the length of its description.

An atom is one step from the layout: a field of a view changed by an operation, two fields mixed, or the
matrix read with another stride. Cheaper atoms are simpler causes. Atoms are generated from views alone and
evaluated on the places that a caller asks for. Knows no values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, wraps
from itertools import combinations, permutations
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from .views import ORDERS, Field, Index, View

Flags = npt.NDArray[np.bool_]
Facts = Mapping[str, Any]
Made = TypeVar("Made")
Evaluate = Callable[[Index, Index], Index]  # numbers of atoms (m,), places (n,) -> sources (m, n)
_KNOWN_BEST = ("words", "registers", "matrix")  # views whose fields users know best
_SMALL = 32  # values of a field, up to which every factor, order of bits and pair of values is an atom
_PADS = range(8, 136, 8)  # elements behind rows in memory, so that banks or chunks of 16 bytes differ
_FACTORS = (2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 32, 33)  # of larger fields
_STEPS = 17  # over an edge
_COMPARED = 1 << 10  # places, up to which each table is kept once
_SAMPLED = 4, 64  # places, by which tables are compared first
_KEPT = 1 << 22  # sources, up to which tables are kept in memory
_REMEMBERED = 32  # operands whose atoms, or predicates, are kept


@dataclass(frozen=True, eq=False)
class Atom:
    """One map: ``table (N,)`` has the place that is read instead of each place, -1 for nothing (zero).

    ``cost`` is the length of its description; ``kind`` and ``facts`` say what it does to fields of ``view``.
    """

    table: Index
    cost: float
    view: View
    kind: str
    facts: Facts

    def __str__(self) -> str:
        facts = " ".join(f"{name}={value}" for name, value in self.facts.items())
        return f"{self.view.name}: {self.kind} {facts}"


@dataclass(frozen=True)
class _Step:
    """One atom before it is evaluated: its cost, kind and facts, and the operation as data of its group."""

    cost: float
    kind: str
    facts: Facts
    data: Any


@dataclass(frozen=True, eq=False)
class _Group:
    """Atoms of one view that are evaluated together."""

    view: View
    steps: tuple[_Step, ...]
    evaluate: Evaluate


class Atoms:
    """All atoms of some views, the cheapest first, each table once with its shortest description.

    Of large operands a table may come several times, the cheapest first. ``cost (M,)`` are their costs; the
    first atom changes nothing and costs 0.
    """

    def __init__(self, views: Sequence[View]) -> None:
        self.places = len(views[0].coordinates)
        unchanged = (_Step(0, "unchanged", {}, None),)
        groups = [_Group(views[0], unchanged, lambda which, at: np.repeat(at[None], len(which), 0))]
        groups += [*(group for view in views for group in _groups(view)), *_renumbered(views)]
        steps = [step for group in groups for step in group.steps]
        costs = np.array([step.cost for step in steps])
        number = np.repeat(np.arange(len(groups)), [len(group.steps) for group in groups])
        inside = np.concatenate([np.arange(len(group.steps)) for group in groups])
        every, kept = np.arange(self.places), np.argsort(costs, kind="stable")
        self._tables: npt.NDArray[np.int32] | None = None
        if self.places <= _COMPARED:
            made = [group.evaluate(np.arange(len(group.steps)), every).astype(np.int32) for group in groups]
            tables = np.concatenate(made)
            keys = np.array([hash(table.tobytes()) for table in tables])
            _, first = np.unique(keys[kept], return_index=True)
            kept = kept[np.sort(first)]
            self._tables = tables[kept] if len(kept) * self.places <= _KEPT else None
        self.cost, self._groups = costs[kept], groups
        self._group, self._inside = number[kept], inside[kept]
        self._steps = [steps[at] for at in kept.tolist()]
        if self.places > _COMPARED and len(kept) * self.places <= _KEPT:
            self._tables = self._evaluated(np.arange(len(kept)), every).astype(np.int32)

    def _evaluated(self, which: Index, places: Index) -> Index:
        made = np.empty((len(which), len(places)), np.intp)
        for number in np.unique(self._group[which]).tolist():
            own = np.flatnonzero(self._group[which] == number)
            made[own] = self._groups[number].evaluate(self._inside[which[own]], places)
        return made

    def at(self, places: Index, which: Index | None = None) -> Index:
        """Return ``(M, n)``: the sources of some places, in all atoms or those of some numbers."""
        if self._tables is not None:
            if which is not None and len(which) < len(self):
                return self._tables[np.ix_(which, places)].astype(np.intp)
            tables = self._tables.take(places, axis=1).astype(np.intp)
            return tables if which is None else tables.take(which, axis=0)
        if which is None:
            return self._evaluated(np.arange(len(self)), places)
        once, inverse = np.unique(which, return_inverse=True)
        return self._evaluated(once, places)[inverse]

    def __len__(self) -> int:
        return len(self._steps)

    def __getitem__(self, number: int) -> Atom:
        step, view = self._steps[number], self._groups[int(self._group[number])].view
        table = self.at(np.arange(self.places), np.array([number]))[0]
        return Atom(table, step.cost, view, step.kind, step.facts)

    def __iter__(self) -> Iterator[Atom]:
        return (self[number] for number in range(len(self)))

    def alike(self, table: Index, most: float = np.inf) -> list[Atom]:
        """Return every atom of a table that costs at most so much, of each view, the cheapest first."""
        found, every = list[Atom](), np.arange(self.places)
        samples = [every[:: max(1, self.places // count)] for count in (*_SAMPLED, self.places)]
        for group in self._groups:
            which = np.flatnonzero([step.cost <= most for step in group.steps])
            for places in samples:
                if len(which):
                    which = which[(group.evaluate(which, places) == table[places]).all(axis=1)]
            for at in which.tolist():
                step = group.steps[at]
                found.append(Atom(table, step.cost, group.view, step.kind, step.facts))
        return sorted(found, key=lambda atom: atom.cost)

    def named(self, kind: str, **facts: Any) -> Atom:
        """Return the atom of a kind with these facts, under this name; raises KeyError."""
        for group in self._groups:
            for at, step in enumerate(group.steps):
                if step.kind == kind and facts.items() <= step.facts.items():
                    table = group.evaluate(np.array([at]), np.arange(self.places))[0]
                    return Atom(table, step.cost, group.view, step.kind, step.facts)
        raise KeyError(f"{kind} {facts}")


def _once(make: Callable[[Sequence[View]], Made]) -> Callable[[Sequence[View]], Made]:
    """Make something of equal views once: forms of other types have the same layouts."""
    known: dict[Any, Made] = {}

    @wraps(make)
    def made(views: Sequence[View]) -> Made:
        key = tuple((view.name, view.fields, view.coordinates.tobytes()) for view in views)
        if key not in known:
            if len(known) > _REMEMBERED:
                known.clear()
            known[key] = make(views)
        return known[key]

    return made


@_once
def atoms(views: Sequence[View]) -> Atoms:
    """Return all atoms of views of the same places."""
    return Atoms(views)


def _groups(view: View) -> Iterator[_Group]:
    if view.name in ORDERS:
        return  # an order only
    for number, field in enumerate(view.fields):
        if field.size > 1:
            yield _of_one_field(view, number)
    yield from _of_bits(view)
    yield from _of_two_fields(view)
    if view.name in ("matrix", "memory") and len(view.fields) == 2:
        yield _of_strides(view)


# --- one field -------------------------------------------------------------------------------------------


def _of_one_field(view: View, number: int) -> _Group:
    field = view.fields[number]
    steps = _changes(field)
    values = np.array([step.data for step in steps])
    own, nothing = view.coordinates[:, number], len(view.places)
    further = (values - np.arange(field.size)) << view.shifts[number]  # of the packed index
    further[(values < 0) | (values >= field.size)] = nothing
    known = np.append(view.places, -1)

    def evaluate(which: Index, places: Index) -> Index:
        packed = further[which][:, own[places]] + view.packed[places]
        return np.asarray(known.take(packed, mode="clip"))

    return _Group(view, steps, evaluate)


@lru_cache(maxsize=256)
def _changes(field: Field) -> tuple[_Step, ...]:
    parts = (_moved, _over_the_edge, _scaled, _cut, _reordered_bits, _single_values, _within_blocks)
    return tuple(
        _Step(cost, kind, {"field": field.name, "size": field.size, **facts}, values)
        for part in parts
        for cost, kind, facts, values in part(field.size)
    )


Change = tuple[float, str, Facts, Index]  # cost, kind, facts, the new value of every value


def _moved(size: int) -> Iterator[Change]:
    value = np.arange(size)
    if size & (size - 1) == 0:
        for by in range(1, size):
            yield 2 + (by & (by - 1) != 0 and by != size - 1), "xor", {"by": by}, value ^ by
    else:
        yield 2, "reversed", {}, size - 1 - value
    for by in range(1, size):
        yield 2 + (by not in (1, size - 1)), "rotated", {"by": by}, (value + by) % size


def _over_the_edge(size: int) -> Iterator[Change]:
    value = np.arange(size)
    for by in range(1, min(size, _STEPS)):
        for signed in (-by, by):
            new = value + signed
            yield 4, "shifted", {"by": signed}, np.where((new >= 0) & (new < size), new, -1)
            yield 4, "clamped", {"by": signed}, np.clip(new, 0, size - 1)


def _scaled(size: int) -> Iterator[Change]:
    value = np.arange(size)
    for factor in range(2, size) if size <= _SMALL else sorted({*_FACTORS, size - 1}):
        offsets = range(size) if size <= _SMALL else sorted({0, 1, factor - 1, size - 1})
        for offset in offsets:
            yield (
                4 + (offset > 0),
                "scaled",
                {"factor": factor, "by": offset},
                (value * factor + offset) % size,
            )


def _cut(size: int) -> Iterator[Change]:
    value = np.arange(size)
    for other in range(size):
        yield 3, "constant", {"value": other}, np.full(size, other)
    for bit in range((size - 1).bit_length()):
        unit = 2 << bit
        yield 3, "cleared", {"bit": bit}, value & ~(1 << bit)
        yield 3, "set", {"bit": bit}, np.where(value | 1 << bit < size, value | 1 << bit, -1)
        yield 3, "rounded down", {"to": unit}, value // unit * unit
        yield 3, "remainder", {"of": unit}, value % unit
        yield 3, "divided", {"by": unit}, value // unit


def _reordered_bits(size: int) -> Iterator[Change]:
    value, bits = np.arange(size), (size - 1).bit_length()
    for order in permutations(range(size)) if size <= 4 else ():
        yield 3, "ordered", {"order": order}, np.array(order)
    if size & (size - 1) or size > _SMALL:
        return
    for order in permutations(range(bits)):
        moved = sum(place != bit for place, bit in enumerate(order))
        new = np.sum([(value >> bit & 1) << place for place, bit in enumerate(order)], axis=0)
        yield 1 + (moved + 1) // 2, "bits", {"order": order}, new


def _single_values(size: int) -> Iterator[Change]:
    value = np.arange(size)
    if size > _SMALL:
        return
    for first, second in combinations(range(size), 2):
        both = np.where(value == first, second, np.where(value == second, first, value))
        yield 3, "swapped", {"first": first, "second": second}, both
        yield 3, "copied", {"at": first, "from": second}, np.where(value == first, second, value)
        yield 3, "copied", {"at": second, "from": first}, np.where(value == second, first, value)


def _within_blocks(size: int) -> Iterator[Change]:
    value = np.arange(size)
    for width in range(2, size):
        if size % width:
            continue
        yield 3, "interleaved", {"width": width}, value % width * (size // width) + value // width
        block, inside = value // width * width, value % width
        if 2 * width < size:
            even, after = block // width % 2 == 0, 2 * block + inside
            yield 4, "spread", {"width": width}, np.where(even, block // 2 + inside, -1)
            yield 4, "packed", {"width": width}, np.where(after < size, after, -1)
        yield 3, "reversed in blocks", {"width": width}, block + width - 1 - inside
        for by in (1, -1):
            yield 3, "rotated in blocks", {"width": width, "by": by}, block + (inside + by) % width


# --- bits of the whole index -----------------------------------------------------------------------------


def _of_bits(view: View) -> Iterator[_Group]:
    """Yield the atoms that move, or add, bits of the packed index: maps that are linear in its bits."""
    named = [
        (int(view.shifts[number]) + bit, field.name, bit)
        for number, field in enumerate(view.fields)
        if field.is_power
        for bit in range(field.bits)
    ]
    steps = tuple(_linear(sorted(named), view))
    if not steps:
        return
    total = sum(field.bits for field in view.fields)
    images = np.array([step.data for step in steps], np.intp)

    def evaluate(which: Index, places: Index) -> Index:
        packed = view.packed[places]
        made = np.zeros((len(which), len(places)), np.intp)
        for bit in range(total):
            made ^= images[which, bit, None] * (packed >> bit & 1)
        return view.places[made]

    yield _Group(view, steps, evaluate)


Named = tuple[int, str, int]  # bit of the packed index, field, bit of the field


def _linear(named: Sequence[Named], view: View) -> Iterator[_Step]:
    own = [1 << bit for bit in range(sum(field.bits for field in view.fields))]

    def step(cost: float, kind: str, facts: Facts, images: dict[int, int]) -> _Step:
        return _Step(cost, kind, facts, [images.get(bit, image) for bit, image in enumerate(own)])

    for (p, *first), (q, *second) in combinations(named, 2):
        yield step(2, "bits exchanged", {"first": first, "second": second}, {p: 1 << q, q: 1 << p})
    for (p, *first), (q, *second) in permutations(named, 2):
        facts = {"first": first, "second": second}
        yield step(3, "bit added", facts, {q: 1 << q | 1 << p})
        yield step(4, "bit read as", facts, {p: 0, q: 1 << q | 1 << p})
    for (p, *first), (q, *second), (r, *third) in permutations(named, 3):
        if p < q and p < r:
            facts = {"first": first, "second": second, "third": third}
            yield step(4, "bits rotated", facts, {q: 1 << p, r: 1 << q, p: 1 << r})
    movable = [bit for bit, *_ in named]
    for by in range(1, len(movable)):
        images = {bit: 1 << movable[at - by] for at, bit in enumerate(movable)}
        yield step(3, "index rotated", {"by": by}, images)
    mirrored = dict(zip(movable, (1 << bit for bit in reversed(movable)), strict=True))
    yield step(3, "index reversed", {}, mirrored)
    yield from _groups_of_bits(view, step)


def _groups_of_bits(
    view: View, step: Callable[[float, str, Facts, dict[int, int]], _Step]
) -> Iterator[_Step]:
    """Yield groups of bits of two fields exchanged (blocks transposed), or added (swizzles)."""
    fields = [(number, field) for number, field in enumerate(view.fields) if field.is_power]
    for (f, field), (g, other) in permutations(fields, 2):
        for width in range(2, min(field.bits, other.bits) + 1):
            for low, from_low in np.ndindex(field.bits - width + 1, other.bits - width + 1):
                p, q = int(view.shifts[f]) + low, int(view.shifts[g]) + from_low
                facts = {"first": [field.name, low], "second": [other.name, from_low], "width": width}
                added = {q + bit: 1 << q + bit | 1 << p + bit for bit in range(width)}
                yield step(3, "swizzled", facts, added)
                if f < g:
                    each = range(width)
                    both = {q + bit: 1 << p + bit for bit in each} | {p + bit: 1 << q + bit for bit in each}
                    yield step(2, "transposed", facts, both)


# --- two fields, strides, other views --------------------------------------------------------------------


def _of_two_fields(view: View) -> Iterator[_Group]:
    """Yield a field moved by a multiple of another, and two fields nested in the other order."""
    steps = []
    for f, g in permutations(range(len(view.fields)), 2):
        size, other = view.fields[f].size, view.fields[g].size
        names = {"field": view.fields[f].name, "other": view.fields[g].name}
        for factor in sorted({1, 2, 4, 8, size - 1}):
            if factor < size:
                steps.append(_Step(4, "skewed", {**names, "factor": factor, "size": size}, (f, g, factor)))
        if size != other:
            steps.append(_Step(2, "nested", names, (f, g, 0)))

    def moved(place: Index, f: int, g: int, factor: int) -> Index:
        x, y, size, other = place[:, f], place[:, g], view.fields[f].size, view.fields[g].size
        new = place.copy()
        if factor:
            new[:, f] = (x + factor * y) % size
        else:
            new[:, g], new[:, f] = np.divmod(x * other + y, size)
        return view.at(new)

    def evaluate(which: Index, places: Index) -> Index:
        own = view.coordinates[places]
        return np.stack([moved(own, *steps[at].data) for at in which.tolist()])

    if steps:
        yield _Group(view, tuple(steps), evaluate)


def _of_strides(view: View) -> _Group:
    """Return a matrix read, or written, with another row stride, by columns, or from another base."""
    rows, columns = (field.size for field in view.fields)
    steps = tuple(_strides(rows, columns))
    size = rows * columns
    places = view.at(np.stack(np.divmod(np.arange(size), columns), -1))

    def sources(step: _Step, row: Index, column: Index) -> Index:
        down, across, base, wrapped, written = step.data
        flat = row * columns + column
        if written:
            flat = np.where(flat % down < columns, flat // down * columns + flat % down, -1)
        else:
            flat = row * down + column * across + base
        flat = flat % size if wrapped else np.where((flat >= 0) & (flat < size), flat, -1)
        return np.where(flat < 0, -1, places.take(np.maximum(flat, 0)))

    def evaluate(which: Index, places: Index) -> Index:
        row, column = view.coordinates[places].T
        return np.stack([sources(steps[at], row, column) for at in which.tolist()])

    return _Group(view, steps, evaluate)


def _strides(rows: int, columns: int) -> Iterator[_Step]:
    near = {columns + by for by in (-8, -4, -1, 1, 2, 4, *_PADS)} | {columns // 4, columns // 2, 2 * columns}
    strides = (
        set(range(1, 2 * columns + 1)) if columns <= _SMALL else near | {columns, rows, rows + 4, rows + 8}
    )
    for stride in sorted(each for each in strides if each > 0):
        facts = {"stride": stride, "own": columns}
        for wrapped in (False, True):
            if stride != columns:
                data = stride, 1, 0, wrapped, False
                yield _Step(3 + wrapped, "row stride", {**facts, "wrapped": wrapped}, data)
            data = 1, stride, 0, wrapped, False
            yield _Step(3 + wrapped, "by columns", {**facts, "wrapped": wrapped}, data)
        if stride > columns:
            yield _Step(3, "written with stride", facts, (stride, 1, 0, False, True))
    for by in sorted({*range(1, min(columns, 33)), columns // 2, columns, 2 * columns} - {0}):
        for signed in (by, -by):
            cost = 3 + (by & (by - 1) != 0)
            yield _Step(cost, "base", {"by": signed, "wrapped": False}, (columns, 1, signed, False, False))
            yield _Step(4, "base", {"by": signed, "wrapped": True}, (columns, 1, signed, True, False))


def _renumbered(views: Sequence[View]) -> Iterator[_Group]:
    """Yield the i-th place of one view holding the i-th place of another."""
    for first, second in permutations(views, 2):
        table = np.empty(len(first.packed), np.intp)
        table[first.order] = second.order
        facts = {"as": first.name, "from": second.name, "each": _each(first, second)}
        step = _Step(4, "renumbered", facts, None)
        yield _Group(first, (step,), lambda which, places, table=table: table[places][None])  # type: ignore[misc]


def _each(*views: View) -> int:
    """Return the elements of a lane, where one of the views is of lanes; else 1."""
    for each in views:
        if any(field.name == "lane" for field in each.fields):
            return int(np.prod([field.size for field in each.fields if field.name not in ("warp", "lane")]))
    return 1


# --- predicates ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Predicates:
    """Sets of places, each once with its shortest description: ``masks (P, N)``, ``cost (P,)``, facts."""

    masks: Flags
    cost: npt.NDArray[np.float64]
    views: tuple[View, ...]
    facts: tuple[Facts, ...]

    def __len__(self) -> int:
        return len(self.facts)

    def where(self, number: int, *, inside: bool = True) -> Where:
        """Return a set, or its complement."""
        return Where(self.views[number], self.facts[number], self.masks[number], inside)


@dataclass(frozen=True, eq=False)
class Where:
    """A set of places: a view and the facts of its predicate; ``inside`` is not set for its complement."""

    view: View
    facts: Facts
    mask: Flags
    inside: bool = True


@_once
def predicates(views: Sequence[View]) -> Predicates:
    """Return sets of places: by a bit or value of a field, a bound, or two bits of small fields."""
    found = [
        (cost, view, facts, mask)
        for view in views
        if view.name not in ORDERS
        for cost, facts, mask in _conditions(view)
    ]
    order_of = {name: number for number, name in enumerate(_KNOWN_BEST)}
    found.sort(key=lambda each: (each[0], order_of.get(each[1].name, len(order_of))))
    kept: dict[bytes, tuple[float, View, Facts, Flags]] = {}
    for each in found:
        if each[3].any() and not each[3].all():
            kept.setdefault(np.packbits(each[3]).tobytes(), each)
    costs, own, facts, masks = zip(*kept.values(), strict=True) if kept else ((), (), (), ())
    shape = len(kept), len(views[0].coordinates)
    return Predicates(np.array(masks, np.bool_).reshape(shape), np.array(costs, float), own, facts)


Condition = tuple[float, Facts, Flags]


def _conditions(view: View) -> Iterator[Condition]:
    for number, field in enumerate(view.fields):
        yield from _of_field(field, view.coordinates[:, number])
    if len(view.fields) == 2:
        (first, second), (x, y) = view.fields, view.coordinates.T
        for by in range(-1, 2):
            facts = {"field": first.name, "other": second.name, "by": by}
            yield 4 + (by != 0), {**facts, "is": "beyond"}, x >= y + by
            yield 4 + (by != 0), {**facts, "is": "before"}, x < y + by
    small = [
        (field.name, bit, view.coordinates[:, number] >> bit & 1)
        for number, field in enumerate(view.fields)
        if field.size <= 4
        for bit in range(field.bits)
    ]
    for (name, bit, x), (other, other_bit, y) in combinations(small, 2):
        facts = {"bits": ((name, bit), (other, other_bit))}
        for first, second in np.ndindex(2, 2):
            yield 4, {**facts, "are": (first, second)}, (x == first) & (y == second)
        for total in (0, 1):
            yield 4, {**facts, "xor": total}, x ^ y == total


def _of_field(field: Field, value: Index) -> Iterator[Condition]:
    name = {"field": field.name, "size": field.size}
    for bit in range(field.bits):
        for given in (0, 1):
            yield 2, {**name, "bit": bit, "is": given}, value >> bit & 1 == given
    every = range(field.size) if field.size <= 2 * _SMALL else (0, field.size - 1)
    for number in every:
        yield 3, {**name, "value": number}, value == number
    for bound in range(2, field.size - 1) if field.size <= _SMALL else range(8, field.size, 8):
        yield 4, {**name, "from": bound}, value >= bound
        yield 4, {**name, "below": bound}, value < bound
