"""Where the elements of a dump are: the entrance, and what it returns.

Every element is looked up by its value in matrices: the operand's own, then others; then the matrix in
another type; then values that are functions of the right value. Elements decide together: a map has to hold
more of them than chance would give it.
What leaves the map is looked up again, so that a dump may be of several parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ....base.environment import in_default_environment
from ....isa.codes import integers, values_of
from ....isa.formats import FORMATS, Format, floats_of
from ....isa.products import Codes
from .causes import IN_ORDER, Found, Name, names_of, origin_of
from .dump_places import Index, Places
from .index_maps import Flags, IndexMap, Matrix, as_good, fit
from .map_formulas import formula, layout_formula, where_of
from .tile_scans import scanned

_PARTS = 4  # of a dump
_FEWEST = 4  # elements of a part
_LEAST = 0.2  # of the elements, of the first part; of those that are left, of others:
_MOST = 0.5
_BITS = 6, 20  # of surprise that a map has to give for each of its weights, and besides
_OTHERS = 64  # other maps that are counted


@dataclass(frozen=True, kw_only=True)
class Source:
    """A matrix of codes in which elements are looked up, under the name that a message uses."""

    name: str
    codes: Codes
    element: Format | None


@dataclass(frozen=True, kw_only=True)
class Part:
    """``count`` elements that follow one ``formula`` in matrix ``source``.

    ``tile``: row and column of the tile where all lie, if there is such a tile; ``name``: what that is in a
    kernel's terms, if all of them follow it.
    """

    source: str
    count: int
    where: str
    formula: str
    tile: tuple[int, int] | None
    name: Name | None

    @property
    def in_order(self) -> bool:
        """Whether the elements lie as the layout has them, in whatever tile."""
        return self.name is not None and self.name.text == IN_ORDER


@dataclass(frozen=True, kw_only=True)
class Location:
    """What was located of ``total`` elements.

    ``right`` are where they belong; ``first`` describes the first element that no part holds; ``repeated``
    elements stand several times in the matrix; ``others`` are names of other maps that hold as many;
    ``legend`` is what the letters of a formula of metadata or scales are.
    """

    operand: str
    total: int
    right: int
    layout: str
    parts: tuple[Part, ...]
    first: str
    repeated: int
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


@in_default_environment
def locate(views: Iterable[View], origin: tuple[int, int] = (0, 0)) -> Location:
    """Return where the elements of a dump are, as the first of ``views`` in which they are anywhere.

    The first view is that of the operand's own type, its first source the operand's own matrix, and
    ``origin`` the element of this that belongs in the first row and column of the dump.
    """
    own, *others = (_Search(view, origin) for view in views)
    found = own.location()
    if found.parts or found.right == found.total or found.value:
        return found
    for other in others:
        if (seen := other.location(anyway=True)).parts:
            return replace(seen, right=found.right, total=found.total if other.places.belongs else seen.total)
    return found


class _Search:
    """One search: the elements that are left, and the parts found so far."""

    def __init__(self, view: View, origin: tuple[int, int]) -> None:
        self.places, self.codes, self.sources, self.origin = view.places, view.codes, view.sources, origin
        self.own = self.sources[0]
        self.matrices = [Matrix(source.codes) for source in self.sources]
        self.left = np.ones(len(self.codes), np.bool_)
        self.parts: list[Part] = []
        self.others: tuple[str, ...] = ()

    def location(self, *, anyway: bool = False) -> Location:
        """Return the result; ``anyway``: with the parts of a dump that is right."""
        expected, inside = self._expected()
        right = expected == self.codes
        if anyway or not right.all():
            self._find_parts()
        repeated = int((self.matrices[0].found(self.codes)[0] > 1).sum())
        value = "" if self.parts or right.all() else self._of_values(expected[inside], self.codes[inside])
        return Location(
            operand=self.places.operand,
            total=len(self.codes),
            right=int(right.sum()),
            layout=layout_formula(self.places) if self.places.belongs else "",
            parts=tuple(self.parts),
            first=self._first(expected, inside),
            repeated=repeated,
            others=self.others,
            value=value,
            legend=self.places.legend,
        )

    def _expected(self) -> tuple[Codes, Flags]:
        """Return what belongs in each place, and which places have something."""
        row, column = self.places.row + self.origin[0], self.places.column + self.origin[1]
        rows, columns = self.own.codes.shape
        inside = (row < rows) & (column < columns) & self.places.belongs
        found = self.own.codes[np.minimum(row, rows - 1), np.minimum(column, columns - 1)]
        return np.where(inside, found, 0), inside

    # --- parts ---

    def _find_parts(self) -> None:
        for number in range(_PARTS):
            if self.left.sum() < (_FEWEST if number else 1) or not self._part(number):
                return

    def _part(self, number: int) -> bool:
        """Find the part that most of the rest follow. Return whether there is any."""
        if number and not self.codes[self.left].any():
            self._take_zeros()
            return True
        best: tuple[IndexMap, int] | None = None
        for at, matrix in enumerate(self.matrices):
            found = fit(self.places, self.codes, matrix, self.left)
            if at == 0 and not number and (found is None or not found.hits.all()):
                found = scanned(self.places, self.codes, matrix, self.left) or found
            if found is None or not self._means_something(found, matrix, number):
                continue
            if best is None or found.count > best[0].count:
                best = found, at
            if found.hits[self.left].all():
                break
        if best is None:
            return False
        self._take(*best)
        return True

    def _means_something(self, found: IndexMap, matrix: Matrix, number: int) -> bool:
        """Return whether a map holds more than values that repeat would give it, with so many weights."""
        chance = min(max(matrix.chance(self.codes[self.left]), 1e-9), 1 - 1e-9)
        total = int(self.left.sum())
        share = found.count / total
        if share <= chance or share < (_MOST if number else _LEAST):
            return False
        rest = (1 - share) * np.log2(max(1 - share, 1e-300) / (1 - chance))
        surprise = total * (share * np.log2(share / chance) + rest)
        varying = int((np.ptp(self.places.index_bits[self.left], axis=0) > 0).sum())
        return bool(surprise > (varying + 1) * _BITS[0] + _BITS[1])

    def _take(self, found: IndexMap, at: int) -> None:
        source, matrix = self.sources[at], self.matrices[at]
        where = "" if found.hits.all() else where_of(self.places, found.hits)
        facts = Found(
            places=self.places, followed=found.hits, row=found.row, column=found.column, space=found.space
        )
        part = Part(
            source=source.name,
            count=found.count,
            where=where,
            formula=formula(self.places, found),
            tile=origin_of(facts) if self.places.belongs else None,
            name=names_of(facts, alone=not self.parts),
        )
        if not self.parts and matrix.found(self.codes)[0].min() > 1:
            self.others = self._as_good(found, matrix)
        self.parts.append(part)
        self.left &= ~found.hits

    def _as_good(self, found: IndexMap, matrix: Matrix) -> tuple[str, ...]:
        """Return the formulas of other maps that hold as many elements."""
        texts: dict[str, None] = {}
        for other in as_good(self.places, self.codes, matrix, found):
            texts[formula(self.places, other)] = None
            if len(texts) == _OTHERS:
                break
        return tuple(texts)

    def _take_zeros(self) -> None:
        """Take the rest as one part: all of it is zero."""
        count, where = int(self.left.sum()), where_of(self.places, self.left)
        name = Name("zero", "they were not written, or were cleared")
        self.parts.append(Part(source="", count=count, where=where, formula="", tile=None, name=name))
        self.left[:] = False

    # --- values and what is left ---

    def _of_values(self, expected: Codes, codes: Codes) -> str:
        """Return by which function of the value every element is where it belongs."""
        if not len(codes):
            return ""
        pairs = np.unique(np.stack([expected, codes]).astype(np.uint64), axis=1)
        if len(np.unique(pairs[0])) < pairs.shape[1] or self.own.element is None:
            return ""  # equal values became different values
        return next(_functions(pairs[0], pairs[1], self.own.element), "")

    def _first(self, expected: Codes, inside: Flags) -> str:
        """Return the first element that no part holds, what belongs there, and where it is."""
        if not self.left.any() or not self.parts:
            return ""
        at = int(np.flatnonzero(self.left)[0])
        digits = -(-self.places.bits // 4)
        text = f"{self.places.named(at)}: 0x{int(self.codes[at]):0{digits}x}"
        row, column = self.places.row[at] + self.origin[0], self.places.column[at] + self.origin[1]
        if inside[at]:
            text += f", where {self.own.name}[{row}, {column}] = 0x{int(expected[at]):0{digits}x} belongs"
        for source, matrix in zip(self.sources, self.matrices, strict=True):
            flat = matrix.everywhere(int(self.codes[at]))
            if len(flat):
                where = f"{source.name}[{flat[0] // matrix.columns}, {flat[0] % matrix.columns}]"
                return f"{text}; it is {where}" + f" and {len(flat) - 1} others" * (len(flat) > 1)
        return f"{text}; it is in no matrix"


# --- functions of the value --------------------------------------------------------------------------------


def _functions(wanted: Index, got: Index, element: Format) -> Iterator[str]:
    """Yield which function of each value stands in its place."""
    flipped = np.unique(wanted ^ got)
    if len(flipped) == 1:
        mask = int(flipped[0])
        what = " (the sign bit: an offset of the zero point)" if mask == element.sign_bit else ""
        yield f"every value is in its place with bits 0x{mask:x} flipped{what}"
    before, after = (
        values_of(codes, element) if element.is_float else integers(codes, element).astype(np.float64)
        for codes in (wanted, got)
    )
    with np.errstate(all="ignore"):
        apart = np.unique(after - before)
        times = np.unique(after[before != 0] / before[before != 0])
    if element.is_float:
        yield from _narrowed(before, after)
    if len(apart) == 1 and np.isfinite(apart[0]) and len(wanted) > 2:
        yield f"every value is in its place with {apart[0]:g} added (an offset, or a zero point)"
    if len(times) == 1 and np.isfinite(times[0]) and len(wanted) > 2:
        yield f"every value is in its place times {times[0]:g} (a scale)"


def _narrowed(before: npt.NDArray[np.float64], after: npt.NDArray[np.float64]) -> Iterator[str]:
    """Yield values that went through a narrower type, rounded to nearest or cut."""
    for name in floats_of(8, 16):
        element = FORMATS[name]
        with np.errstate(all="ignore"):
            nearest = before.astype(element.dtype)
            beyond = np.abs(nearest.astype(np.float64)) > np.abs(before)
            codes = nearest.view(element.code_dtype)
            cut = np.where(beyond, codes - element.code_dtype.type(1), codes).view(element.dtype)
        for how, values in (("rounded", nearest), ("truncated", cut)):
            if np.array_equal(values.astype(np.float64), after):
                yield f"every value is in its place, {how} to {name}"
