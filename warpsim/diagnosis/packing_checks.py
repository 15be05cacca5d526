"""What is wrong with tiles that a kernel has loaded, said of the operands alone: no result is looked at.

A tile of A is some consecutive rows and columns of its buffer, in order, and the columns of A are the rows of
B that it is multiplied with: what breaks this is found, and named by patterns.py and metadata_checks.py.
A tile that is permuted along k together with its partner is right: the product is the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import Location
from .loaded import Mask, Tiles, mode
from .patterns import Pattern, named
from .tags import Indices

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class PackingFinding:
    """Something that does not fit: ``kind``, the operand, what is wrong in words, and where it happens."""

    kind: str
    operand: str
    message: str
    location: Location
    places: Places

    @property
    def where(self) -> str:
        """Its executions in words."""
        return places_text(self.places)

    def __str__(self) -> str:
        return f"{self.location}: {self.message} [{self.where}]"


def places_text(places: Places) -> str:
    """Executions in words: CTAs, warps, and how many."""
    ctas = len(np.unique(places[:, :3], axis=0))
    first = f"CTA ({', '.join(map(str, places[0, :3].tolist()))})" if ctas == 1 else f"{ctas} CTAs"
    return f"{first}, {warps_text(places)}, {len(places)} execution{'s'[: len(places) != 1]}"


def warps_text(places: Places) -> str:
    """Warps in words."""
    warps = np.unique(places[:, 3]).tolist()
    return f"warp{'s'[: len(warps) != 1]} {', '.join(map(str, warps))}"


@dataclass(frozen=True, kw_only=True)
class Anchored:
    """Tiles with the first row and k of each, ``outer`` and ``inner (n,)``; -1 where nothing is loaded.

    ``clean`` (n,) tells which tiles are as they should be; ``empty`` which have no element of the buffer.
    """

    tiles: Tiles
    outer: Indices
    inner: Indices
    clean: Mask

    @property
    def empty(self) -> Mask:
        """``(n,)``: tiles without an element of the buffer."""
        empty: Mask = np.logical_not(self.tiles.valid.any(axis=(1, 2)))
        return empty

    def logical(self) -> Indices:
        """``(n,)``: the first k of each tile; that of compressed A counts the elements that were dropped."""
        form, pattern = self.tiles.operand.instruction, self.tiles.operand.instruction.pattern
        if self.tiles.operand.role != "a" or not form.sparse or pattern is None:
            return self.inner
        return self.inner * pattern.chunk // pattern.stored


def anchored(tiles: Tiles) -> Anchored:
    """Where each tile begins, by its own elements."""
    _, rows, columns = tiles.outer.shape
    outer, clean_outer = _anchors(tiles.outer, tiles.valid, np.arange(rows)[:, None])
    inner, clean_inner = _anchors(tiles.inner, tiles.valid, np.arange(columns))
    return Anchored(tiles=tiles, outer=outer, inner=inner, clean=clean_outer & clean_inner)


def _anchors(values: Indices, valid: Mask, offset: npt.NDArray[np.intp]) -> tuple[Indices, Mask]:
    """``(n,)``: the first of the consecutive values of each tile, and whether all are in order."""
    base = (values - offset).reshape(len(values), -1)
    known = valid.reshape(len(values), -1)
    most = np.where(known, base, -1).max(axis=1)
    least = np.where(known, base, np.iinfo(np.int64).max).min(axis=1)
    clean = (most == least) | ~known.any(axis=1)
    found = np.where(known.any(axis=1), most, -1)
    for one in np.flatnonzero(~clean):
        inside = values[one][valid[one]]
        different = np.unique(inside)
        whole = len(different) == offset.size and different[-1] - different[0] == offset.size - 1
        found[one] = different[0] if whole else mode(base[one][known[one]])
    return found, clean


# --- findings --------------------------------------------------------------------------------------


def tile_findings(a: Anchored | None, b: Anchored | None) -> Iterator[PackingFinding]:
    """What is wrong with the tiles of A and B of one statement."""
    for one, other in ((a, b), (b, a)):
        if one is not None:
            yield from _disorders(one, other)
    if a is not None and b is not None:
        yield from _unlike_steps(a, b)


def _disorders(one: Anchored, other: Anchored | None) -> Iterator[PackingFinding]:
    """Tiles that are not in order, those with the same pattern together."""
    inner = _expected_inner(one, other)
    wrong = ~one.clean
    if other is not None:
        wrong &= ~_permuted_together(one, other)
    dirty = np.flatnonzero(wrong)
    if not dirty.size:
        return
    tiles = one.tiles
    relative = np.stack([tiles.outer - one.outer[:, None, None], tiles.inner - inner[:, None, None]], axis=-1)
    relative[~tiles.valid] = np.iinfo(np.int64).min
    flat = relative[dirty].reshape(dirty.size, -1)
    _, first, group = np.unique(flat, axis=0, return_index=True, return_inverse=True)
    found: dict[tuple[str, str], list[int]] = {}
    for number, place in enumerate(first.tolist()):
        event = int(dirty[place])
        pattern = Pattern(
            tiles=tiles,
            relative=relative[event],
            valid=tiles.valid[event],
            outer=int(one.outer[event]),
            inner=int(inner[event]),
        )
        found.setdefault(named(pattern), []).extend(dirty[group.reshape(-1) == number].tolist())
    for (kind, message), events in found.items():
        yield _finding(tiles, kind, message, np.array(sorted(events)))


def _finding(tiles: Tiles, kind: str, message: str, events: npt.NDArray[np.intp]) -> PackingFinding:
    operand = tiles.operand
    return PackingFinding(
        kind=kind,
        operand=operand.role,
        message=message,
        location=operand.given.location,
        places=operand.places[events],
    )


def _expected_inner(one: Anchored, other: Anchored | None) -> Indices:
    """``(n,)``: the first k of each tile; a partner in order knows that of one that is not."""
    if other is None:
        return one.inner
    usable = other.clean & ~other.empty & ~one.clean
    return np.where(usable, _converted(one, other), one.inner)


def _converted(one: Anchored, other: Anchored) -> Indices:
    """The first k of the partner, in the elements of this operand."""
    k = other.logical()
    pattern = one.tiles.operand.instruction.pattern
    if one.tiles.operand.role == "a" and pattern is not None:
        return k * pattern.stored // pattern.chunk
    return k


def _permuted_together(one: Anchored, other: Anchored) -> Mask:
    """``(n,)``: dense tiles in which A and B have the same permutation of k, which changes nothing."""
    x, y = _along_k(one), _along_k(other)
    if one.tiles.operand.instruction.sparse:
        return np.zeros(len(x), np.bool_)
    together: Mask = (x == y).all(axis=1) & (x >= 0).all(axis=1)
    return together


def _along_k(one: Anchored) -> Indices:
    """``(n, k)``: the k of each place along k, -1 where rows or columns do not agree on it."""
    tiles = one.tiles
    order = one.outer[:, None, None] + np.arange(tiles.outer.shape[1])[:, None]
    agreed = (tiles.inner == tiles.inner[:, :1]) & tiles.valid & (tiles.outer == order)
    found: Indices = np.where(agreed.all(axis=1), tiles.inner[:, 0], -1)
    return found


# --- k steps ---------------------------------------------------------------------------------------


def _unlike_steps(a: Anchored, b: Anchored) -> Iterator[PackingFinding]:
    """Executions in which A and B are of different k."""
    sides = _sides(a, b)
    blamed: dict[tuple[str, int], list[int]] = {}
    for event in sides.unlike.tolist():
        blamed.setdefault(sides.blame(event), []).append(event)
    for (role, by), events in blamed.items():
        one, other = (a, b) if role != "b" else (b, a)
        yield _finding(one.tiles, "stage", _step_message(one, other, role, by, events), np.array(events))


def agreed_k(a: Anchored, b: Anchored | None) -> Indices:
    """``(n,)``: the first k of A and B, where they differ that of the one that is right."""
    if b is None:
        return a.logical()
    sides = _sides(a, b)
    agreed = np.where(a.clean & ~a.empty, sides.a, sides.b)
    for event in sides.unlike.tolist():
        if sides.blame(event)[0] == "a":
            agreed[event] = sides.b[event]
    return agreed


@dataclass(frozen=True, kw_only=True)
class _Sides:
    """The first k of A and of B ``(n,)``, one for the other where one is not in order; and who may vote."""

    a: Indices
    b: Indices
    known: Mask
    empty_a: Mask
    empty_b: Mask
    places: Places

    @property
    def unlike(self) -> npt.NDArray[np.intp]:
        """Executions in which they differ."""
        return np.flatnonzero(self.known & (self.a != self.b))

    def blame(self, event: int) -> tuple[str, int]:
        """Which operand is off, "" if nobody can tell, and by how many k: other warps of the CTA vote."""
        alike = self.known & (self.places[:, :3] == self.places[event, :3]).all(axis=1)
        alike &= self.places[:, 4] == self.places[event, 4]
        votes = np.concatenate([self.a[alike], self.b[alike]])
        x, y = int(self.a[event]), int(self.b[event])
        for_a, for_b = int((votes == x).sum()), int((votes == y).sum())
        if for_a == for_b:
            for_a, for_b = self.written(self.places[event])
        if for_a == for_b:
            return "", x - y
        return ("b", y - x) if for_a > for_b else ("a", x - y)

    def written(self, place: Places) -> tuple[int, int]:
        """How often A and B of a warp come from an array: what is a stage late does not at first."""
        mine = (self.places[:, :4] == place[:4]).all(axis=1)
        return int((mine & ~self.empty_a).sum()), int((mine & ~self.empty_b).sum())


def _sides(a: Anchored, b: Anchored) -> _Sides:
    usable_a, usable_b = a.clean & ~a.empty, b.clean & ~b.empty
    k_a, k_b = a.logical(), b.logical()
    return _Sides(
        a=np.where(usable_a | ~usable_b, k_a, k_b),
        b=np.where(usable_b | ~usable_a, k_b, k_a),
        known=usable_a & usable_b,
        empty_a=a.empty,
        empty_b=b.empty,
        places=a.tiles.operand.places,
    )


def _step_message(one: Anchored, other: Anchored, role: str, by: int, events: Sequence[int]) -> str:
    name, event = _name(one), events[0]
    places = one.tiles.operand.places[events]
    reads = f"{one.tiles.inner_axis} {_range(one, event)}"
    if not role:
        theirs = f"{_name(other)} of {other.tiles.inner_axis} {_range(other, event)}"
        return f"{name} is of {reads} where {theirs}: they are not of the same k"
    stage = _stage_text(one, by)
    right = _others(one, event) or f"{_name(other)} is of {other.tiles.inner_axis} {_range(other, event)}"
    verb = "reads" if len(set(places[:, 3].tolist())) == 1 else "read"
    right += _unwritten(one, other, events)
    return f"{warps_text(places)} {verb} {name} of {stage}: {reads} where {right}"


def _unwritten(one: Anchored, other: Anchored, events: Sequence[int]) -> str:
    """What the same warps are given where the stage before has never been written."""
    places = one.tiles.operand.places
    same = np.isin(places[:, 3], places[list(events), 3])
    missing = np.flatnonzero(one.empty & ~other.empty & same)
    if not missing.size:
        return ""
    steps = ", ".join(map(str, np.unique(places[missing, 4]).tolist()))
    return f"; in step {steps} nothing of any array"


def _name(one: Anchored) -> str:
    buffer = one.tiles.operand.buffer
    assert buffer is not None
    return buffer.name


def _range(one: Anchored, event: int) -> str:
    first = int(one.inner[event])
    return f"{first}..{first + one.tiles.inner.shape[2] - 1}"


def _others(one: Anchored, event: int) -> str:
    """What other warps of the CTA read at the same time."""
    places = one.tiles.operand.places
    alike = (places[:, :3] == places[event, :3]).all(axis=1) & (places[:, 4] == places[event, 4])
    alike &= ~one.empty & (one.inner != one.inner[event])
    found = np.flatnonzero(alike)
    return f"the others read {_range(one, int(found[0]))}" if found.size else ""


def _stage_text(one: Anchored, by: int) -> str:
    """How far off in time: turns of the loop, if it is some of them."""
    places, k = one.tiles.operand.places, one.logical()
    later = np.flatnonzero((places[1:, :4] == places[:-1, :4]).all(axis=1) & ~one.empty[1:] & ~one.empty[:-1])
    depth = mode(k[later + 1] - k[later]) if later.size else 0
    if depth and by % depth == 0:
        stages = by // depth
        where = "before" if stages < 0 else "ahead"
        return f"the stage {where}" if abs(stages) == 1 else f"{abs(stages)} stages {where}"
    return f"another k step ({by:+d})"


# --- products that are added twice -----------------------------------------------------------------


def repeated_products(pairs: Sequence[tuple[Anchored, Anchored]]) -> Iterator[PackingFinding]:
    """The same tiles of A and B multiplied twice by one warp, by the same statement or another one."""
    seen: dict[tuple[object, ...], None] = {}
    for a, b in pairs:
        keys = np.column_stack([a.tiles.operand.places[:, :4], a.outer, a.inner, b.outer, b.inner])
        usable = a.clean & b.clean & ~a.empty & ~b.empty
        again = list[int]()
        for event in np.flatnonzero(usable).tolist():
            key = (_name(a), _name(b), *keys[event].tolist())
            if key in seen:
                again.append(event)
            seen[key] = None
        if again:
            first = again[0]
            message = (
                f"{_name(a)} of {a.tiles.inner_axis} {_range(a, first)} and {_name(b)} of "
                f"{b.tiles.inner_axis} {_range(b, first)} are multiplied again, the first time in "
                f"step {int(a.tiles.operand.places[first, 4])}"
            )
            yield _finding(a.tiles, "repeated", message, np.array(again))
