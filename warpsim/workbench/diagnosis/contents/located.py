"""Where the elements of a dump are: the entrance, and what it returns.

The values of a dump and those of its matrix are both known, so that ``fit`` says which map of places they
follow: in the operand's tile, in other tiles and matrices, through functions of values, then in the whole
matrix. A map without a description is solved bit by bit of the index, from values that stand once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ....base.environment import in_default_environment
from ....isa.codes import integers, values_of
from ....isa.formats import Format
from ....isa.products import Codes
from ..solving.atoms import Flags
from ..solving.fitting import Block, Fit, Piece, Values, fit
from ..solving.map_words import Speaker, conditions
from ..solving.naming import advice, phrase, spoken, unit_words
from ..solving.views import Index
from .dump_places import Places, formula, most_frequent, where_of
from .tile_sources import Blocks, Source, blocks_of, standing_once, whole_values

_LEAST = 0.2  # share of the elements that a map without a description holds
_BITS = 6, 20  # of surprise that a map has to give for each of its weights, and besides
_TILES = ("own", "tile", "matrix")  # kinds of elements that lie as in their matrix
IN_ORDER = "in the order of the layout"


@dataclass(frozen=True)
class Name:
    """What was done, and what to change."""

    text: str
    advice: str


@dataclass(frozen=True, kw_only=True)
class Part:
    """``count`` elements that follow one map in matrix ``source``; of places that hold zero it is empty.

    ``kind`` is that of the map, or of the function of values; ``tile``: row and column of the tile where all
    lie, if there is such a tile; ``formula``: the map bit by bit, if it is a sum of bits; ``name``: what that
    is in a kernel's terms.
    """

    source: str
    count: int
    where: str
    kind: str
    formula: str
    tile: tuple[int, int] | None
    name: Name | None

    @property
    def in_order(self) -> bool:
        """Whether the elements lie as the layout has them, in whatever tile."""
        return self.kind in _TILES


@dataclass(frozen=True, kw_only=True)
class Location:
    """What was located of ``total`` elements.

    ``right`` are where they belong; ``first`` describes the first element that no part holds; ``others`` are
    other explanations that hold as many; ``legend`` is what the letters of a formula are.
    """

    operand: str
    total: int
    right: int
    layout: str
    parts: tuple[Part, ...]
    first: str
    others: tuple[str, ...] = ()
    value: str = ""
    legend: str = ""

    @property
    def left(self) -> int:
        """Elements that no part holds."""
        return self.total - sum(part.count for part in self.parts)


@dataclass(frozen=True, kw_only=True)
class View:
    """One reading of a dump: ``codes (n,)`` of its places, and the matrices in which they are looked up."""

    places: Places
    codes: Codes
    sources: tuple[Source, ...]


@dataclass(frozen=True, kw_only=True)
class _Held:
    """Places ``mask`` that hold the elements ``row`` and ``column`` of a source, -1: zero."""

    mask: Flags
    source: int
    row: Index
    column: Index
    kind: str
    name: Name | None


@dataclass(frozen=True, kw_only=True)
class _Map:
    """What a dump holds: parts, and other explanations of the same cost."""

    parts: tuple[_Held, ...]
    others: tuple[str, ...] = ()

    @cached_property
    def followed(self) -> Flags:
        """The places that some part holds."""
        found: Flags = np.any([part.mask for part in self.parts], axis=0)
        return found

    @property
    def is_plain(self) -> bool:
        """Whether every place is held, by one part, or with all parts as in their tiles."""
        whole = bool(self.followed.all())
        return whole and (len(self.parts) == 1 or all(part.kind in (*_TILES, "zero") for part in self.parts))

    @property
    def rank(self) -> tuple[int, int]:
        """How many places are held, and by how few parts."""
        return int(self.followed.sum()), -len(self.parts)


@in_default_environment
def locate(views: Iterable[View], origin: tuple[int, int] = (0, 0)) -> Location:
    """Return where the elements of a dump are, as the first of ``views`` in which they are anywhere.

    The first view is that of the operand's own type, its first source the operand's own matrix, and
    ``origin`` the element of this that belongs in the first row and column of the dump.
    """
    own, *others = (_Search(view, origin) for view in views)
    found = own.location()
    if any(part.source for part in found.parts) or found.right == found.total or found.value:
        return found
    for other in others:
        seen = other.location(anyway=True)
        if any(part.source for part in seen.parts):
            return replace(seen, right=found.right)
    return found


class _Search:
    """One search: the codes of a dump, and the matrices in which they are looked up."""

    def __init__(self, view: View, origin: tuple[int, int]) -> None:
        self.places, self.codes, self.sources, self.origin = view.places, view.codes, view.sources, origin
        self.own = self.sources[0]
        self.speaker = Speaker(self.places.operand, self.places.bits)

    def location(self, *, anyway: bool = False) -> Location:
        """Return the result; ``anyway``: with the parts of a dump that is right."""
        expected, inside = self._expected()
        right = expected == self.codes
        found = self._map() if anyway or not right.all() else None
        left = ~found.followed if found else np.ones(len(self.codes), np.bool_)
        value = "" if found or right.all() else self._of_values(expected[inside], self.codes[inside])
        return Location(
            operand=self.places.operand,
            total=len(self.codes),
            right=int(right.sum()),
            layout=formula(self.places, self.places.row, self.places.column),
            parts=tuple(self._part(each) for each in found.parts) if found else (),
            first=self._first(np.flatnonzero(left), expected, inside) if found else "",
            others=(*found.others, *self._alike()) if found else (),
            value=value,
            legend=self.places.legend,
        )

    def _expected(self) -> tuple[Codes, Flags]:
        """Return what belongs in each place, and which places have something."""
        row, column = self.places.row + self.origin[0], self.places.column + self.origin[1]
        rows, columns = self.own.codes.shape
        inside = (row < rows) & (column < columns)
        found = self.own.codes[np.minimum(row, rows - 1), np.minimum(column, columns - 1)]
        return np.where(inside, found, 0), inside

    # --- maps ---

    def _map(self) -> _Map | None:
        """Return the first map that holds every element in one part, else that which holds most."""
        best: _Map | None = None
        for search in (self._in_tiles, self._in_matrix, self._by_bits):
            found = search()
            if found and (best is None or found.rank > best.rank):
                best = found
            if best is not None and best.is_plain:
                break
        return best

    def _in_tiles(self) -> _Map | None:
        blocks = blocks_of(self.places, self.codes, self.sources, self.origin)
        return self._fitted(blocks)

    def _in_matrix(self, origin: tuple[int, int] | None = None) -> _Map | None:
        """Return the map in the whole matrix of the operand, for places at an element of it."""
        blocks = whole_values(self.places, self.codes, self.own, origin or self.origin)
        return None if blocks is None else self._fitted(blocks)

    def _fitted(self, blocks: Blocks) -> _Map | None:
        answer = fit(blocks.held, blocks.ranks)
        fits = [each for each in answer.fits if each.certain]
        if not fits:
            return None
        first, *others = fits
        said = (self._said(each, blocks.held) for each in others)
        return _Map(parts=tuple(self._parts(first, blocks)), others=tuple(filter(None, said)))

    def _parts(self, found: Fit, blocks: Blocks) -> Iterator[_Held]:
        follows = ~np.isin(blocks.held.places, found.rest)
        source, row, column = blocks.elements(found.table)
        if found.units:
            text, noun = unit_words(found.units, self.speaker), self.speaker.noun(found.units[0])
            said = Name(text, f"check the {noun} in the address")
            yield _Held(mask=follows, source=0, row=row, column=column, kind="units", name=said)
        for piece in self._spoken(found, blocks.held):
            mask = follows
            for where in piece.within:
                mask = mask & (where.mask if where.inside else ~where.mask)
            kind = piece.source.kind if piece.atom.kind == "unchanged" else piece.atom.kind
            number = int(source[mask].max(initial=0))
            name = self._name(piece)
            yield _Held(mask=mask, source=number, row=row, column=column, kind=kind, name=name)

    @staticmethod
    def _spoken(found: Fit, held: Values) -> list[Piece]:
        return [replace(piece, atom=spoken(piece.atom, held.atoms)[0]) for piece in found.pieces]

    def _name(self, piece: Piece) -> Name:
        if piece.source.kind == "zero":
            return Name("zero", "they were not written, or were cleared")
        own = replace(piece, within=())
        if piece.source.kind in (*_TILES, "turned", "shift"):
            own = replace(own, source=Block(0, "own", {}))
        text = phrase(own, own.atom, self.speaker)
        if piece.source.kind == "shift":
            facts = piece.source.facts
            base = f"taken from another place (row {facts['down']:+d}, column {facts['across']:+d})"
            said = ", ".join(filter(None, (base.replace("+0", "+ 0"), text)))
            return Name(said, "check the base address of the tile")
        if piece.source.kind == "turned":
            text = ", ".join(filter(None, ("rows and columns exchanged", text)))
        return Name(text, advice(own, own.atom, self.speaker)) if text else Name(IN_ORDER, "")

    def _said(self, found: Fit, held: Values) -> str:
        texts = []
        for piece in self._spoken(found, held):
            where = conditions([each for each in piece.within if each.inside], self.speaker)
            texts.append(self._name(piece).text + (f" where {where}" if where else ""))
        return "; ".join(texts)

    def _by_bits(self) -> _Map | None:
        """Return the map that is a sum, or an exclusive or, of the bits of an index.

        Where it begins in another tile, it may be a map of the places of this tile.
        """
        best: _Held | None = None
        for number, source in enumerate(self.sources):
            # the mean share of a matrix that is equal to a code
            values, count = np.unique(source.codes, return_counts=True)
            at = np.searchsorted(values, self.codes).clip(0, len(values) - 1)
            share = np.where(values[at] == self.codes, count[at], 0).mean() / source.codes.size
            chance = min(max(float(share), 1e-9), 1 - 1e-9)
            for row, column in _sums(self.places, self.codes, source.codes):
                rows, columns = source.codes.shape
                inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
                held = source.codes[np.where(inside, row, 0), np.where(inside, column, 0)]
                mask = np.asarray(inside & (held == self.codes), np.bool_)
                if (best is None or mask.sum() > best.mask.sum()) and self._means_something(mask, chance):
                    best = _Held(mask=mask, source=number, row=row, column=column, kind="bits", name=None)
        if best is None:
            return None
        size = self.places.rows, self.places.columns
        first = (int(best.row[0]) // size[0] * size[0], int(best.column[0]) // size[1] * size[1])
        named = self._in_matrix(first) if best.source == 0 and first != self.origin else None
        plain = _Map(parts=(best,))
        return named if named and named.rank >= plain.rank else plain

    def _means_something(self, hits: Flags, chance: float) -> bool:
        """Return whether a map holds more than values that repeat would give it, with so many weights."""
        share = float(hits.mean())
        if share <= chance or share < _LEAST:
            return False
        rest = (1 - share) * np.log2(max(1 - share, 1e-300) / (1 - chance))
        surprise = len(hits) * (share * np.log2(share / chance) + rest)
        return bool(surprise > (len(self.places.digits) + 1) * _BITS[0] + _BITS[1])

    # --- what is said ---

    def _part(self, held: _Held) -> Part:
        zero = held.kind == "zero"
        source = self.sources[held.source].name
        return Part(
            source="" if zero else source,
            count=int(held.mask.sum()),
            where="" if held.mask.all() else where_of(self.places, held.mask, by_row=held.kind in _TILES),
            kind=held.kind,
            formula="" if zero else formula(self.places, held.row, held.column, held.mask),
            tile=None if zero else self._tile(held),
            name=held.name,
        )

    def _tile(self, held: _Held) -> tuple[int, int] | None:
        """Return row and column of the tile in which all elements lie, in multiples of a tile's size."""
        origin = []
        for values, size in ((held.row, self.places.rows), (held.column, self.places.columns)):
            tiles = np.unique(values[held.mask & (values >= 0)] // size)
            if len(tiles) != 1:
                return None
            origin.append(int(tiles[0]) * size)
        return origin[0], origin[1]

    def _alike(self) -> Iterator[str]:
        """Yield that rows or columns of the matrix are equal, so that a map of them is not certain."""
        for axis, what in enumerate(self.places.axes):
            lines = np.moveaxis(self.own.codes, axis, 0)
            lines = lines[lines.any(axis=1)]
            distinct = len(np.unique(lines, axis=0)) if lines.size <= 1 << 20 else len(lines)
            if distinct < len(lines):
                yield f"{what}s of {self.own.name} are equal: which of them was read is not certain"

    def _of_values(self, expected: Codes, codes: Codes) -> str:
        """Return by which function of the value every element is where it belongs."""
        if not len(codes) or self.own.element is None:
            return ""
        pairs = np.unique(np.stack([expected, codes]).astype(np.uint64), axis=1)
        if len(np.unique(pairs[0])) < pairs.shape[1]:
            return ""  # equal values became different values
        return next(_functions(pairs[0], pairs[1], self.own.element), "")

    def _first(self, left: Index, expected: Codes, inside: Flags) -> str:
        if not len(left):
            return ""
        at, digits = int(left[0]), -(-self.places.bits // 4)
        text = f"{self.places.named(at)}: 0x{int(self.codes[at]):0{digits}x}"
        row, column = self.places.row[at] + self.origin[0], self.places.column[at] + self.origin[1]
        if inside[at]:
            text += f", where {self.own.name}[{row}, {column}] = 0x{int(expected[at]):0{digits}x} belongs"
        for source in self.sources:
            found = np.argwhere(source.codes == self.codes[at])
            if len(found):
                where = f"{source.name}[{found[0][0]}, {found[0][1]}]"
                return f"{text}; it is {where}" + f" and {len(found) - 1} others" * (len(found) > 1)
        return f"{text}; it is in no matrix"


# --- maps that are sums of bits ----------------------------------------------------------------------------


def _sums(places: Places, codes: Codes, matrix: Codes) -> Iterator[tuple[Index, Index]]:
    """Yield row and column of every place as a sum, and as an exclusive or, of the bits of its index.

    A bit adds what it adds in most pairs of neighbours whose values stand once in the matrix.
    """
    known, *sources = standing_once(codes, matrix)
    for xor in (False, True) if known.any() else ():
        yield tuple(_voted(places, known, each, xor=xor) for each in sources)  # type: ignore[misc]


def _voted(places: Places, known: Flags, values: Index, *, xor: bool) -> Index:
    _, moved = places.weights(values, known, xor=xor)
    base = most_frequent((values ^ moved if xor else values - moved)[known])
    return np.asarray(moved ^ base if xor else moved + base, np.intp)


# --- functions of the value --------------------------------------------------------------------------------


def _functions(wanted: Index, got: Index, element: Format) -> Iterator[str]:
    """Yield which function of each value, with a constant that the values state, stands in its place."""
    flipped = np.unique(wanted ^ got)
    if len(flipped) == 1 and len(wanted) > 2:
        yield f"every value is in its place with bits 0x{int(flipped[0]):x} flipped"
    before, after = (
        values_of(codes, element) if element.is_float else integers(codes, element).astype(np.float64)
        for codes in (wanted, got)
    )
    with np.errstate(all="ignore"):
        apart = np.unique(after - before)
        times = np.unique(after[before != 0] / before[before != 0])
    if len(apart) == 1 and np.isfinite(apart[0]) and len(wanted) > 2:
        yield f"every value is in its place with {apart[0]:g} added (an offset, or a zero point)"
    if len(times) == 1 and np.isfinite(times[0]) and len(wanted) > 2:
        yield f"every value is in its place times {times[0]:g} (a scale)"
