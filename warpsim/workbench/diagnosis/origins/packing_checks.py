"""What is wrong with tiles that a kernel has loaded, from the operands alone, not from results.

A tile of A is some consecutive rows and columns of its buffer, in order, and the columns of A are the rows of
B that it is multiplied with: what breaks this is found, and named by tile_patterns.py and by
words/metadata_checks.py.
A tile that is permuted along k together with its partner is right: the product is the same. Arrays of
fragments are not matrices: any order is right in which the place of an element is a sum over the bits of the
lane's and the element's numbers, and elements that break the sum are reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.errors import Location
from .anchors import Anchored, Places, alike, permuted_together, sides_of
from .anchors import anchored as anchored_tiles
from .byte_keys import Indices
from .loaded_operands import Mask, Operand, bits_of, index_text, mode, sums_of_bits
from .placed_tiles import Fit
from .tile_patterns import named


@dataclass(frozen=True, kw_only=True)
class TilesAtFault:
    """Executions whose tiles are not as they should be: where they begin, and their partners."""

    tiles: Anchored
    other: Anchored | None
    events: npt.NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class OtherByte:
    """Scales of k step ``held`` in k step ``used``: byte ``read`` of words of which ``own`` has the right."""

    held: int
    used: int
    read: int
    own: int


@dataclass(frozen=True, kw_only=True)
class PackingFinding:
    """Something that does not fit: ``kind``, the operand, what is wrong in words, and where it happens.

    ``fault`` has the tiles, where it is they that are wrong; ``byte`` what a byte id reads by mistake,
    ``fit`` the descriptors of tcgen05 that are right, of some executions.
    """

    kind: str
    operand: str
    message: str
    location: Location
    places: Places
    fault: TilesAtFault | None = field(default=None, compare=False, repr=False)
    byte: OtherByte | None = field(default=None, compare=False, repr=False)
    fit: tuple[Fit, ...] = field(default=(), compare=False, repr=False)

    @property
    def where(self) -> str:
        """Its executions in words."""
        return places_text(self.places)

    def __str__(self) -> str:
        return f"{self.location}: {self.message} [{self.where}]"

    @classmethod
    def of(
        cls, operand: Operand, kind: str, message: str, events: Any = slice(None), **more: Any
    ) -> PackingFinding:
        """Return what is found of some executions of an operand, all by default."""
        where, places = operand.given.location, operand.places[events]
        return cls(kind=kind, operand=operand.role, message=message, location=where, places=places, **more)


def places_text(places: Places) -> str:
    """Return executions in words: CTAs, warps, and how many."""
    ctas = len(np.unique(places[:, :3], axis=0))
    first = f"CTA ({', '.join(map(str, places[0, :3].tolist()))})" if ctas == 1 else f"{ctas} CTAs"
    return f"{first}, {warps_text(places)}, {len(places)} execution{'s'[: len(places) != 1]}"


def warps_text(places: Places) -> str:
    """Return warps in words."""
    warps = np.unique(places[:, 3]).tolist()
    return f"warp{'s'[: len(warps) != 1]} {', '.join(map(str, warps))}"


# --- findings --------------------------------------------------------------------------------------


def tile_findings(a: Anchored | None, b: Anchored | None) -> Iterator[PackingFinding]:
    """Yield what is wrong with the tiles of A and B of one statement."""
    for anchored, other in ((a, b), (b, a)):
        if anchored is not None:
            # tiles that are not in order, those with the same sentence together
            wrong = ~anchored.clean
            if other is not None and wrong.any():
                wrong &= ~permuted_together(anchored, other)
            found: dict[tuple[str, str], list[int]] = {}
            unnamed = list[int]()
            other_way, turned = _turned(anchored, wrong)
            for event in np.flatnonzero(wrong).tolist():
                order = anchored.disorders[event] or turned.get(event)
                if order is None:
                    unnamed.append(event)
                else:
                    found.setdefault(order, []).append(event)
            inner = expected_inner(anchored, other)
            for pattern, events in alike(anchored.tiles, anchored.outer, inner, np.array(unnamed, np.intp)):
                found.setdefault(named(pattern), []).extend(events)
            for (kind, message), group in found.items():
                turn = group[0] in turned and anchored.disorders[group[0]] is None
                chosen = np.array(sorted(group), np.intp)
                fault = TilesAtFault(tiles=other_way if turn else anchored, other=other, events=chosen)
                yield _finding(fault, kind, message)
    if a is not None and b is not None:
        yield from _unlike_steps(a, b)


def _turned(anchored: Anchored, wrong: Mask) -> tuple[Anchored, dict[int, tuple[str, str]]]:
    """Return the tiles of which every 8x8 matrix is transposed: k seems to run along the other axis of the
    buffer; and all tiles that way.
    """
    if not any(anchored.disorders[event] is None for event in np.flatnonzero(wrong)):
        return anchored, {}
    other_way = turned_tiles(anchored)
    found = enumerate(other_way.disorders)
    named_so = {event: order for event, order in found if order is not None and order[0] == "transposed"}
    return other_way, named_so


def turned_tiles(anchored: Anchored) -> Anchored:
    """Return the same tiles with k along the other axis of the buffer."""
    return anchored_tiles(anchored.tiles.turned)


def _finding(fault: TilesAtFault, kind: str, message: str) -> PackingFinding:
    return PackingFinding.of(fault.tiles.tiles.operand, kind, message, fault.events, fault=fault)


def expected_inner(anchored: Anchored, other: Anchored | None) -> Indices:
    """Return ``(n,)``: the first k of each tile; that of a disordered tile is its partner's."""
    if other is None:
        return anchored.inner
    usable = other.usable & ~anchored.usable
    return np.where(usable, inner_of_partner(anchored, other), anchored.inner)


def inner_of_partner(anchored: Anchored, other: Anchored) -> Indices:
    """Return the first k of the partner, in the elements of this operand."""
    k = other.logical()
    pattern = anchored.tiles.operand.instruction.pattern
    if anchored.tiles.operand.role == "a" and pattern is not None:
        return k * pattern.stored // pattern.chunk
    return k


# --- k steps ---------------------------------------------------------------------------------------


def _unlike_steps(a: Anchored, b: Anchored) -> Iterator[PackingFinding]:
    sides = sides_of(a, b)
    blamed: dict[tuple[str, int], list[int]] = {}
    for event in sides.unlike.tolist():
        blamed.setdefault(sides.blame(event), []).append(event)
    for (role, by), events in blamed.items():
        anchored, other = (a, b) if role != "b" else (b, a)
        fault = TilesAtFault(tiles=anchored, other=other, events=np.array(events))
        yield _finding(fault, "stage", _step_message(anchored, other, role, by, events))


def _step_message(anchored: Anchored, other: Anchored, role: str, by: int, events: Sequence[int]) -> str:
    name, event = name_of(anchored), events[0]
    places = anchored.tiles.operand.places[events]
    reads = f"{anchored.tiles.inner_axis} {_range(anchored, event)}"
    if not role:
        theirs = f"{name_of(other)} of {other.tiles.inner_axis} {_range(other, event)}"
        return f"{name} is of {reads} where {theirs}: they are not of the same k"
    stage = _stage_text(anchored, by)
    expected = f"{name_of(other)} is of {other.tiles.inner_axis} {_range(other, event)}"
    right = _others(anchored, event) or expected
    verb = "reads" if len(set(places[:, 3].tolist())) == 1 else "read"
    right += _unwritten(anchored, other, events)
    return f"{warps_text(places)} {verb} {name} of {stage}: {reads} where {right}"


def _unwritten(anchored: Anchored, other: Anchored, events: Sequence[int]) -> str:
    places = anchored.tiles.operand.places
    same = np.isin(places[:, 3], places[list(events), 3])
    missing = np.flatnonzero(anchored.empty & ~other.empty & same)
    if not missing.size:
        return ""
    steps = ", ".join(map(str, np.unique(places[missing, 4]).tolist()))
    return f"; in step {steps} nothing of any array"


def name_of(anchored: Anchored) -> str:
    """Return the buffer that tiles come from."""
    return anchored.tiles.operand.source.name


def _range(anchored: Anchored, event: int) -> str:
    first = int(anchored.inner[event])
    return f"{first}..{first + anchored.tiles.inner.shape[2] - 1}"


def _others(anchored: Anchored, event: int) -> str:
    places = anchored.tiles.operand.places
    alike = (places[:, :3] == places[event, :3]).all(axis=1) & (places[:, 4] == places[event, 4])
    alike &= ~anchored.empty & (anchored.inner != anchored.inner[event])
    found = np.flatnonzero(alike)
    return f"the others read {_range(anchored, int(found[0]))}" if found.size else ""


def _stage_text(anchored: Anchored, by: int) -> str:
    """Return how far off in time: turns of the loop, if it is some of them."""
    k, known = anchored.logical(), ~anchored.empty
    later = np.flatnonzero(anchored.tiles.operand.later & known[1:] & known[:-1])
    depth = mode(k[later + 1] - k[later]) if later.size else 0
    if depth and by % depth == 0:
        stages = by // depth
        where = "before" if stages < 0 else "ahead"
        return f"the stage {where}" if abs(stages) == 1 else f"{abs(stages)} stages {where}"
    return f"another k step ({by:+d})"


# --- products that are added twice -----------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Products:
    """Tiles of A and B that a statement multiplies; ``begins (n,)``: a new sum, which C is not a part of."""

    a: Anchored
    b: Anchored
    begins: Mask

    @property
    def sums(self) -> Indices:
        """``(n, 6)``: the warp, and the rows and columns of D, of the sum that each execution adds to."""
        return np.column_stack([self.a.tiles.operand.places[:, :4], self.a.outer, self.b.outer])


def repeated_products(products: Sequence[Products]) -> Iterator[PackingFinding]:
    """Yield the same tiles of A and B added twice to one sum of a warp, by one statement or by several.

    A sum begins where C is not a result: a kernel may compute a tile of D again for another purpose.
    """
    if _are_different(products):
        return
    seen: dict[tuple[object, ...], set[tuple[int, int]]] = {}
    found: dict[int, list[int]] = {}
    for number, event in _in_time(products):
        product = products[number]
        key = (name_of(product.a), name_of(product.b), *product.sums[event].tolist())
        factors = int(product.a.inner[event]), int(product.b.inner[event])
        if product.begins[event]:
            seen[key] = set()
        if factors in seen.setdefault(key, set()):
            found.setdefault(number, []).append(event)
        seen[key].add(factors)
    for number, events in sorted(found.items()):
        a, b, again = products[number].a, products[number].b, np.array(sorted(events))
        first = int(again[0])
        message = (
            f"{name_of(a)} of {a.tiles.inner_axis} {_range(a, first)} and {name_of(b)} of "
            f"{b.tiles.inner_axis} {_range(b, first)} are multiplied again, the first time in "
            f"step {int(a.tiles.operand.places[first, 4])}"
        )
        yield _finding(TilesAtFault(tiles=a, other=b, events=again), "repeated", message)


def _are_different(products: Sequence[Products]) -> bool:
    """Return whether no two executions have the same hash of warp, tile of D and first k: none is repeated.

    Where hashes are equal, as by chance, nothing is known.
    """
    keys = [np.column_stack([each.sums, each.a.inner, each.b.inner]) for each in products]
    rows = np.concatenate([np.zeros((0, _FACTORS.size), np.int64), *keys]).astype(np.uint64)
    hashes = np.sort((rows * _FACTORS).sum(axis=1, dtype=np.uint64))
    return bool((hashes[1:] != hashes[:-1]).all())


_FACTORS = np.uint64(0x9E3779B97F4A7C15) ** np.arange(1, 9, dtype=np.uint64)


def _in_time(products: Sequence[Products]) -> list[tuple[int, int]]:
    """Return statement and execution of everything whose tiles are known, in the order of execution."""
    order = list[tuple[int, int, int]]()
    for number, product in enumerate(products):
        usable = product.a.clean & product.b.clean & ~product.a.empty & ~product.b.empty
        times = product.a.tiles.operand.given.times
        order += [(int(times[event]), number, event) for event in np.flatnonzero(usable).tolist()]
    return [(number, event) for _, number, event in sorted(order)]


# --- fragments in an order of their own ----------------------------------------------------------------


_LEAST = 0.75  # of the elements follow the sum, or there is none
_LISTED = 3


def follows_sum(operand: Operand) -> bool:
    """Return whether most elements that come from the buffer follow a sum over bits of lane and element."""
    _, lanes, values = operand.bits.shape
    known = operand.moved.reshape(len(operand.index), -1)
    if values & values - 1 or lanes & lanes - 1 or not known.any():
        return not known.any()
    index = operand.index.reshape(known.shape)
    wrong = known & (index != _sum(index, known))
    return bool(wrong.sum() <= (1 - _LEAST) * known.sum())


def arranged_findings(operand: Operand) -> Iterator[PackingFinding]:
    """Yield lanes and registers whose elements break the sum; nothing if hardly any follow it."""
    if operand.buffer is None or not operand.moved.any() or not follows_sum(operand):
        return
    index = operand.index.reshape(len(operand.index), -1)
    known = operand.moved.reshape(index.shape)
    expected = _sum(index, known)
    wrong = known & (index != expected)
    found: dict[str, list[int]] = {}
    for event in np.flatnonzero(wrong.any(axis=1)).tolist():
        found.setdefault(_message(operand, index[event], expected[event], wrong[event]), []).append(event)
    for message, events in found.items():
        yield PackingFinding.of(operand, "order", message, events)


def _sum(index: Indices, known: Mask) -> Indices:
    """Return ``(n, lanes * values)``: the sum that most elements follow, from the commonest start of each."""
    steps, base = sums_of_bits(index, known, 0)
    total: Indices = base[:, None] + bits_of(index.shape[1]) @ steps
    return total


def _message(operand: Operand, index: Indices, expected: Indices, wrong: npt.NDArray[np.bool_]) -> str:
    """Describe the first wrong elements and what they should be, without places of the execution."""
    values, width = operand.bits.shape[2], operand.width
    places = np.flatnonzero(wrong)
    lanes, registers = np.unique(places // values), np.unique(places % values // operand.each)
    texts = list[str]()
    for place in places[:_LISTED].tolist():
        held, should = (
            index_text(operand.source, int(indices[place]), width) for indices in (index, expected)
        )
        register = place % values // operand.each
        if operand.is_matrix:
            texts.append(f"row {place // values}, k {register} is {held}, not {should}")
            continue
        texts.append(f"lane {place // values} holds {held} in {operand.role}{register}, not {should}")
    where = (
        operand.holder
        if operand.is_matrix
        else (
            f"lane{'s'[: lanes.size != 1]} {', '.join(map(str, lanes.tolist()))}, "
            f"{', '.join(f'{operand.role}{register}' for register in registers.tolist())}"
        )
    )
    return f"elements of {operand.source.name} that are out of order ({where}): {'; '.join(texts)}"
