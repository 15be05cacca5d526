"""Tiles and where they begin: by their own elements, their partners, a formula of CTA, warp and step.

Knows the order that elements of a tile should have; does not name wrong orders.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from .byte_keys import Indices
from .loaded_operands import Kept, Mask, Operand, Tiles, kept_property, mode
from .tile_patterns import Pattern, ordered

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Anchored(Kept):
    """Tiles with the first row and k of each, ``outer`` and ``inner (n,)``; -1 where nothing is loaded.

    ``clean`` (n,) marks tiles that are as they should be; ``empty`` which have no element of the buffer;
    ``disorders`` (n,) are kind and sentence of those that are in another order, which begin where they say.
    """

    tiles: Tiles
    outer: Indices
    inner: Indices
    clean: Mask
    disorders: tuple[tuple[str, str] | None, ...]

    def of(self, operand: Operand) -> Anchored:
        """Return the tiles of an operand that is alike."""
        return replace(self, tiles=replace(self.tiles, operand=operand), shared=self.kept)

    @kept_property
    def usable(self) -> Mask:
        """``(n,)``: tiles whose beginning is known."""
        known = np.array([disorder is not None for disorder in self.disorders], np.bool_)
        usable: Mask = (self.clean | known) & ~self.empty
        return usable

    @kept_property
    def empty(self) -> Mask:
        """``(n,)``: tiles without an element of the buffer."""
        return np.logical_not(self.tiles.valid.any(axis=(1, 2)))

    def logical(self) -> Indices:
        """Return ``(n,)``: the first k of each tile; of compressed A with the elements that were dropped."""
        form, pattern = self.tiles.operand.instruction, self.tiles.operand.instruction.pattern
        if self.tiles.operand.role != "a" or not form.sparse or pattern is None:
            return self.inner
        return self.inner * pattern.chunk // pattern.stored


def anchored(tiles: Tiles) -> Anchored:
    """Return where each tile begins, by its own elements."""
    _, rows, columns = tiles.outer.shape
    outer, clean_outer = _anchors(tiles.outer, tiles.valid, np.arange(rows)[:, None])
    inner, clean_inner = _anchors(tiles.inner, tiles.valid, np.arange(columns))
    clean = clean_outer & clean_inner
    found: list[tuple[str, str] | None] = [None] * len(clean)
    for pattern, events in alike(tiles, outer, inner, np.flatnonzero(~clean)):
        order = ordered(pattern)
        for event in events:
            found[event] = order
    return Anchored(tiles=tiles, outer=outer, inner=inner, clean=clean, disorders=tuple(found))


def _anchors(values: Indices, valid: Mask, offset: npt.NDArray[np.intp]) -> tuple[Indices, Mask]:
    """Return ``(n,)``: the first of the consecutive values of each tile, and whether all are in order."""
    base = (values - offset).reshape(len(values), -1)
    known = valid.reshape(len(values), -1)
    ends = np.iinfo(np.int64)  # a tile over the edge begins before its array
    most = np.where(known, base, ends.min).max(axis=1)
    least = np.where(known, base, ends.max).min(axis=1)
    clean = (most == least) | ~known.any(axis=1)
    found = np.where(known.any(axis=1), most, -1)
    for event in np.flatnonzero(~clean):
        inside = values[event][valid[event]]
        different = np.unique(inside)
        whole = len(different) == offset.size and different[-1] - different[0] == offset.size - 1
        found[event] = different[0] if whole else mode(base[event][known[event]])
    return found, clean


def alike(
    tiles: Tiles, outer: Indices, inner: Indices, events: npt.NDArray[np.intp]
) -> Iterator[tuple[Pattern, list[int]]]:
    """Yield the different patterns of some executions, and which have them."""
    if not events.size:
        return
    across = tiles.outer[events] - outer[events, None, None]
    along = tiles.inner[events] - inner[events, None, None]
    relative = np.stack([across, along], axis=-1)
    relative[~tiles.valid[events]] = np.iinfo(np.int64).min
    flat = relative.reshape(events.size, -1)
    _, first, group = np.unique(flat, axis=0, return_index=True, return_inverse=True)
    for number, place in enumerate(first.tolist()):
        event = int(events[place])
        pattern = Pattern(
            tiles=tiles,
            relative=relative[place],
            valid=tiles.valid[event],
            outer=int(outer[event]),
            inner=int(inner[event]),
        )
        yield pattern, events[group.reshape(-1) == number].tolist()


def permuted_together(anchored: Anchored, other: Anchored) -> Mask:
    """Return ``(n,)``: dense tiles in which A and B have the same permutation of k, which changes nothing."""
    x, y = _along_k(anchored), _along_k(other)
    if anchored.tiles.operand.instruction.sparse:
        return np.zeros(len(x), np.bool_)
    together: Mask = (x == y).all(axis=1) & (x >= 0).all(axis=1)
    return together


def _along_k(anchored: Anchored) -> Indices:
    """Return ``(n, k)``: the k of each place along k, -1 where rows or columns do not agree on it."""
    tiles = anchored.tiles
    order = anchored.outer[:, None, None] + np.arange(tiles.outer.shape[1])[:, None]
    agreed = (tiles.inner == tiles.inner[:, :1]) & tiles.valid & (tiles.outer == order)
    found: Indices = np.where(agreed.all(axis=1), tiles.inner[:, 0], -1)
    return found


# --- A and B ---------------------------------------------------------------------------------------


def agreed_k(a: Anchored, b: Anchored | None) -> Indices:
    """Return ``(n,)``: the first k of A and B, of the right operand where they differ; -1 if unknown."""
    if b is None:
        return np.where(a.usable, a.logical(), -1)
    sides = sides_of(a, b)
    agreed = np.where(a.usable, sides.a, sides.b)
    for event in sides.unlike.tolist():
        if sides.blame(event)[0] == "a":
            agreed[event] = sides.b[event]
    return np.where(a.usable | b.usable, agreed, -1)


@dataclass(frozen=True, kw_only=True)
class Sides:
    """Return the first k of A and of B ``(n,)``, for a disordered tile that of the other, and which count."""

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
        """Return which operand is off ("": unknown) and by how many k: other warps of the CTA vote."""
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
        """Return how often A and B of a warp come from an array: what is a stage late does not at first."""
        mine = (self.places[:, :4] == place[:4]).all(axis=1)
        return int((mine & ~self.empty_a).sum()), int((mine & ~self.empty_b).sum())


def sides_of(a: Anchored, b: Anchored) -> Sides:
    """Return the first k of the tiles of A and B of one statement."""
    usable_a, usable_b = a.usable, b.usable
    k_a, k_b = a.logical(), b.logical()
    return Sides(
        a=np.where(usable_a | ~usable_b, k_a, k_b),
        b=np.where(usable_b | ~usable_a, k_b, k_a),
        known=usable_a & usable_b,
        empty_a=a.empty,
        empty_b=b.empty,
        places=a.tiles.operand.places,
    )


# --- formulas ------------------------------------------------------------------------------------------


_VARIABLES = ("ctaid.x", "ctaid.y", "ctaid.z", "warp", "step")
_WARP = 3


def formulas_of(found: Anchored | None) -> Iterator[str]:
    """Yield sentences as "row 64 * ctaid.y + 16 * warp + r, column 32 * step + c: 99.8 % of elements"."""
    if found is None:
        return
    tiles, operand = found.tiles, found.tiles.operand
    known = np.flatnonzero(~found.empty)
    outer, inner = (_fitted(axis[known], operand.places[known]) for axis in (found.outer, found.inner))
    share = _share(found, known, outer[1], inner[1])
    terms = {tiles.outer_axis: (outer[0], "nr"[tiles.operand.role != "b"]), tiles.inner_axis: (inner[0], "k")}
    if tiles.operand.role == "c":
        terms = {"rows": (outer[0], "r"), "columns": (inner[0], "c")}
    row, column = (
        " + ".join([*terms[axis][0], terms[axis][1]]).replace("+ -", "- ") for axis in ("rows", "columns")
    )
    yield f"row = {row}, column = {column} ({share:.1%} of the elements that are moved)"


def _fitted(values: Indices, places: npt.NDArray[np.int64]) -> tuple[list[str], Indices]:
    """Return the terms of a sum that most values follow, and what it gives for each."""
    terms, sums = list[str](), np.zeros(len(values), np.int64)
    for axis, name in enumerate(_VARIABLES):
        digits = range(int(places[:, axis].max()).bit_length()) if axis == _WARP else [None]
        factors = [_factor(values, places, axis, bit) for bit in digits]
        terms += _terms(name, factors, axis == _WARP)
        for bit, factor in zip(digits, factors, strict=True):
            sums += factor * (places[:, axis] if bit is None else places[:, axis] >> bit & 1)
    first = mode(values - sums) if len(values) else 0
    return [*terms, *([str(first)] if first else [])], sums + first


def _factor(values: Indices, places: npt.NDArray[np.int64], axis: int, bit: int | None) -> int:
    """Return the commonest difference of values when one thing goes up by one, or one bit of it is set."""
    by = 1 if bit is None else 1 << bit
    extents = places.max(axis=0, initial=0) + 1
    numbers = np.ravel_multi_index(tuple(places.T), tuple(extents))
    order = np.argsort(numbers)
    low = np.flatnonzero(places[:, axis] + by < extents[axis])
    if bit is not None:
        low = low[places[low, axis] >> bit & 1 == 0]
    wanted = numbers[low] + by * int(np.prod(extents[axis + 1 :]))
    at = order[np.minimum(np.searchsorted(numbers, wanted, sorter=order), len(order) - 1)]
    there = numbers[at] == wanted
    return mode(values[at[there]] - values[low[there]]) if there.any() else 0


def _terms(name: str, factors: list[int], by_bits: bool) -> list[str]:
    """Return ``16 * warp``, or bit by bit where these do not double."""
    if not any(factors):
        return []
    if not by_bits or all(factor == factors[0] << bit for bit, factor in enumerate(factors)):
        return [_times(factors[0], name)]
    return [
        _times(factor, f"({name} / {1 << bit} % 2)" if bit else f"({name} % 2)")
        for bit, factor in enumerate(factors)
        if factor
    ]


def _times(factor: int, what: str) -> str:
    return what if factor == 1 else f"{factor} * {what}"


def _share(found: Anchored, known: npt.NDArray[np.intp], outer: Indices, inner: Indices) -> float:
    tiles = found.tiles
    _, rows, columns = tiles.outer.shape
    right = tiles.outer[known] == outer[:, None, None] + np.arange(rows)[:, None]
    right &= tiles.inner[known] == inner[:, None, None] + np.arange(columns)
    valid = tiles.valid[known]
    return float((right & valid).sum() / max(int(valid.sum()), 1))
