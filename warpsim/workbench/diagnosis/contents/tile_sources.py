"""What the places of a dump may hold: tiles of matrices, functions of values, and a whole matrix.

A block of sources holds a code for every place of the dump, or of the whole matrix. Does not search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ....isa.formats import Format
from ....isa.products import Codes
from ..solving.atoms import Flags
from ..solving.fitting import Block, Values
from ..solving.value_functions import scale_functions, value_functions
from ..solving.views import Index, Numbers, tile_places
from .dump_places import Places

_TILES = 24  # that share most values with the dump
_MOST = 1 << 14  # tiles that are compared
_WHOLE = 1 << 18  # elements of a matrix whose maps are tried
_SHARE = 4  # the least of an origin: this part of the elements
_ORIGINS = 2  # that most elements agree on


@dataclass(frozen=True, kw_only=True)
class Source:
    """A matrix of codes in which elements are looked up, under the name that a message uses."""

    name: str
    codes: Codes
    element: Format | None


class _Window(NamedTuple):
    """A block: which source it is of, the element in its first row and column, and whether it is turned."""

    source: int
    row: int
    column: int
    turned: bool = False


class Blocks(NamedTuple):
    """Sources of the places of a dump, the ``ranks`` of its values among theirs, and where they are."""

    held: Values
    ranks: Numbers
    elements: Callable[[Index], tuple[Index, Index, Index]]  # table -> source, row and column, -1 for zero


def blocks_of(places: Places, codes: Codes, sources: tuple[Source, ...], origin: tuple[int, int]) -> Blocks:
    """Return the tile that belongs in the places, functions of it, and the likely tiles of all sources."""
    own = _Window(0, *origin)
    right = _codes(places, sources[0].codes, own)
    every = [(Block(0, "own", {}), right, own)]
    element = sources[0].element
    makers = scale_functions if places.operand.startswith("scale") else value_functions
    functions = makers(element) if element is not None else ()
    every += [(each, each.change(right), own) for each in functions]
    for window, block in _windows(places, codes, sources, own):
        every.append((block, _codes(places, sources[window.source].codes, window), window))
    windows = [window for *_, window in every]
    size = len(codes)

    def elements(table: Index) -> tuple[Index, Index, Index]:
        block, at = np.divmod(table, size)
        source, first, second, turned = np.array(windows, np.intp)[np.where(table < 0, 0, block)].T
        row, column = places.row[at], places.column[at]
        row, column = np.where(turned, column, row) + first, np.where(turned, row, column) + second
        return source, np.where(table < 0, -1, row), np.where(table < 0, -1, column)

    values, ranks = _ranked(np.concatenate([each for _, each, _ in every]), codes)
    held = Values(
        views=places.views, sources=[block for block, *_ in every], values=values, places=np.arange(size)
    )
    return Blocks(held, ranks, elements)


def whole_values(places: Places, codes: Codes, own: Source, origin: tuple[int, int]) -> Blocks | None:
    """Return all elements of a matrix that is larger than the tile; None where it is not, or too large."""
    shape = own.codes.shape
    size = places.rows, places.columns
    outside = any(at + each > whole for at, each, whole in zip(origin, size, shape, strict=True))
    if shape == size or own.codes.size > _WHOLE or outside or not places.is_matrix:
        return None

    def elements(table: Index) -> tuple[Index, Index, Index]:
        row, column = np.divmod(table, shape[1])
        return np.zeros_like(table), np.where(table < 0, -1, row), np.where(table < 0, -1, column)

    values, ranks = _ranked(own.codes.reshape(-1), codes)
    known = tile_places((shape[0], shape[1]), origin, size)
    views = places.views_in((shape[0], shape[1]))
    held = Values(views=views, sources=[Block(0, "own", {})], values=values, places=known)
    return Blocks(held, ranks, elements)


def _ranked(pool: Codes, codes: Codes) -> tuple[Numbers, Numbers]:
    """Return numbers that are equal where codes are, with that of zero, which is 0, after those of a pool."""
    every = np.concatenate([pool.astype(np.uint64), [np.uint64(0)], codes.astype(np.uint64)])
    ranks = np.unique(every, return_inverse=True)[1].astype(np.float64)
    return ranks[: len(pool) + 1], ranks[len(pool) + 1 :]


# --- tiles -------------------------------------------------------------------------------------------------


def _windows(
    places: Places, codes: Codes, sources: tuple[Source, ...], own: _Window
) -> Iterator[tuple[_Window, Block]]:
    """Yield tiles of the operand's matrix, of its matrix at other places, and of other matrices."""
    found: list[tuple[int, _Window, Block]] = []
    for number, source in enumerate(sources):
        for turned in (False, True)[: 1 + (number > 0)]:
            for row, column in _tiles(places, source.codes, turned=turned):
                window = _Window(number, row, column, turned)
                if window != own:
                    block = (
                        Block(2, "tile", {})
                        if not number
                        else Block(3 + turned, "turned" if turned else "matrix", {})
                    )
                    shared = _shared(codes, _codes(places, source.codes, window))
                    found.append((shared, window, block))
    found.sort(key=lambda each: -each[0])
    yield from ((window, block) for shared, window, block in found[:_TILES] if shared)
    known = {window for _, window, _ in found}
    for down, across in _origins(places, codes, sources[0].codes):
        window = _Window(0, down, across)
        if window == own or window in known:
            continue
        facts = {"down": down - own.row, "across": across - own.column}
        aligned = not (down % places.rows or across % places.columns)
        yield window, Block(2, "tile", {}) if aligned else Block(2, "shift", facts)


def _tiles(places: Places, matrix: Codes, *, turned: bool) -> list[tuple[int, int]]:
    rows, columns = (places.columns, places.rows) if turned else (places.rows, places.columns)
    found = [
        (row, column)
        for row in range(0, matrix.shape[0], rows)
        for column in range(0, matrix.shape[1], columns)
    ]
    return found if len(found) <= _MOST else []


def _codes(places: Places, matrix: Codes, window: _Window) -> Codes:
    """Return what a window holds in each place, zero outside of the matrix."""
    row, column = (places.column, places.row) if window.turned else (places.row, places.column)
    row, column = row + window.row, column + window.column
    inside = (row >= 0) & (column >= 0) & (row < matrix.shape[0]) & (column < matrix.shape[1])
    found: Codes = np.where(inside, matrix[np.where(inside, row, 0), np.where(inside, column, 0)], 0)
    return found


def _shared(codes: Codes, tile: Codes) -> int:
    """Return how many elements of a dump stand in a tile, each as often as there."""
    values, inverse = np.unique(np.concatenate([codes, tile]), return_inverse=True)
    counts = [np.bincount(half, minlength=len(values)) for half in np.split(inverse, [len(codes)])]
    return int(np.minimum(*counts).sum())


def standing_once(codes: Codes, matrix: Codes) -> tuple[Flags, Index, Index]:
    """Return which codes stand once in a matrix, zero apart, and in which row and column."""
    values, first, count = np.unique(matrix, return_index=True, return_counts=True)
    at = np.searchsorted(values, codes).clip(0, len(values) - 1)
    known = (values[at] == codes) & (count[at] == 1) & (codes != 0)
    return known, *np.divmod(first[at], matrix.shape[1])


def _origins(places: Places, codes: Codes, matrix: Codes) -> list[tuple[int, int]]:
    """Return the rows and columns from which most elements that stand once in a matrix were taken."""
    known, row, column = standing_once(codes, matrix)
    row, column = row[known], column[known]
    moved, number = np.unique(
        np.stack([row - places.row[known], column - places.column[known]], axis=1), axis=0, return_counts=True
    )
    order = np.argsort(-number, kind="stable")[:_ORIGINS]
    return [(int(moved[at, 0]), int(moved[at, 1])) for at in order if number[at] * _SHARE >= len(codes)]
