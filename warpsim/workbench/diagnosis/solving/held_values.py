"""Whole matrices as sources of the values of an operand: views of all tiles, and of places of a tile.

The places are the elements of a matrix of whole tiles, row by row. A tile is known by its registers, the
matrix by rows, columns and chunks of 16 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from ....isa.instruction import Instruction
from .atoms import Atoms, Predicates, atoms, predicates
from .lines import Numbers
from .views import ACCUMULATORS, Index, View, matrix_views, view, views_of

_BLOCKS = 64  # tiles that are sources of their own
_ELEMENTS = 1 << 21  # of all blocks


@dataclass(frozen=True)
class Block:
    """A block of values, ``cost``: the length of its description."""

    cost: float
    kind: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, kw_only=True)
class Values:
    """Blocks of values of the places of some views; ``places`` are known."""

    views: tuple[View, ...]
    sources: Sequence[Block]
    values: Numbers
    places: Index

    @cached_property
    def atoms(self) -> Atoms:
        """Maps of the places."""
        return _atoms(self.views)

    @cached_property
    def predicates(self) -> Predicates:
        """Sets of the known places."""
        return predicates([_of_places(each, self.places) for each in self.views])


@lru_cache(maxsize=16)
def _atoms(views: tuple[View, ...]) -> Atoms:
    return atoms(views)


def _of_places(whole: View, places: Index) -> View:
    names = [each.name for each in whole.fields]
    return view(whole.name, list(zip(names, whole.coordinates[places].T, strict=True)))


def tile_places(shape: tuple[int, int], tile: tuple[int, int], size: tuple[int, int]) -> Index:
    """Return the places of a tile of ``size`` at an element of a matrix."""
    row, column = np.indices(size).reshape(2, -1)
    return np.asarray((row + tile[0]) * shape[1] + column + tile[1], np.intp)


@lru_cache(maxsize=64)
def whole_views(instruction: Instruction, operand: str, shape: tuple[int, int]) -> tuple[View, ...]:
    """Return the views of all elements of a matrix of whole tiles of an operand.

    Those of one tile have the tile's row and step, or row and column, before their fields.
    """
    rows, columns = instruction.matrix_shape(operand)
    row, column = np.indices(shape).reshape(2, -1)
    inside = row % rows * columns + column % columns
    names = {"a": ("row tile", "k step"), "b": ("k step", "column tile")}.get(
        operand, ("row tile", "column tile")
    )
    tiles = [(names[0], row // rows), (names[1], column // columns)]
    found = []
    for each in views_of(instruction, operand):
        if each.name != "matrix" and len(each.coordinates) == rows * columns:
            fields = [(own.name, each.coordinates[inside, at]) for at, own in enumerate(each.fields)]
            before = 1 if each.name == ACCUMULATORS and operand == "a" else 0  # its lines, as in the matrix
            found.append(view(each.name, [tiles[0], *fields[:before], tiles[1], *fields[before:]]))
    bits = instruction.storage(operand).bits
    return (*found, *matrix_views(shape, bits, along_rows=operand == "b"))


def with_tiles(
    views: tuple[View, ...], values: Numbers, shape: tuple[int, int], tile: tuple[tuple[int, int], Index]
) -> Values:
    """Return a matrix ``values (N,)`` whose tile, of a size and at known places, may be of any other tile."""
    size, places = tile
    blocks, every = [Block(0, "own")], [values]
    for down, across in _shifts(shape, size, len(values)):
        moved = np.roll(values.reshape(shape), (-down, -across), axis=(0, 1))
        blocks.append(Block(2, "tile", {"down": down, "across": across}))
        every.append(moved.reshape(-1))
    return Values(views=views, sources=blocks, values=np.append(np.concatenate(every), 0.0), places=places)


def _shifts(shape: tuple[int, int], size: tuple[int, int], count: int) -> Iterator[tuple[int, int]]:
    """Yield the distances of other tiles, the nearest first; none where these are many."""
    tiles = [
        (row, column)
        for row in range(0, shape[0], size[0])
        for column in range(0, shape[1], size[1])
        if row or column
    ]
    if len(tiles) <= _BLOCKS and len(tiles) * count <= _ELEMENTS:
        yield from sorted(
            tiles, key=lambda each: min(each[0], shape[0] - each[0]) + min(each[1], shape[1] - each[1])
        )
