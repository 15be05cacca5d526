"""Operands of a warpgroup in shared memory: reading their tiles, and the mistakes of descriptors.

Knows where a descriptor finds the elements of A and B, and what else could have been read there. Does not
know what a tile is multiplied with.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.errors import present
from ....isa.descriptors.matrix_descriptor import Descriptor
from ....isa.descriptors.tile_addresses import tile_addresses
from ....isa.descriptors.tile_shape import TileShape
from ....isa.formats import Format
from ....isa.memory import Bytes, element_view
from .descriptor_mistakes import Misreading, misreadings
from .grids import Grid, Index, Setting
from .rearrangements import Row

Codes = npt.NDArray[Any]  # (..., mn, k): of A, or of B transposed


def _shape(setting: Setting, operand: str) -> TileShape:
    tile = setting.instruction.in_shared_memory(operand)
    return tile.shape(transposed=present(setting.tiles, "tiles").transposed[tile.side])


def read_tile(setting: Setting, operand: str, memory: Bytes) -> Codes:
    """Return codes ``(..., mn, k)`` of A or B as its descriptor finds them in memories ``(..., bytes)``."""
    descriptor, shape = _descriptor(setting, operand), _shape(setting, operand)
    addresses = tile_addresses(descriptor, shape, memory_bytes=memory.shape[-1], literal=True)
    return codes_at(addresses, setting.instruction.format(operand), memory)


def codes_at(addresses: Index, element: Format, memory: Bytes) -> Codes:
    """Return the codes at byte addresses; eight 1-bit elements are a byte, the first in its lowest bit."""
    size = max(element.bits, 8) // 8
    words: Codes = element_view(memory, size)[..., addresses // size]
    return words if element.bits >= 8 else np.unpackbits(words, axis=-1, bitorder="little")


def _descriptor(setting: Setting, operand: str) -> Descriptor:
    tiles = present(setting.tiles, "tiles")
    word = tiles.b if operand == "b" else tiles.a
    word = present(word, "word")
    return Descriptor.decode(word)


def misread(setting: Setting, operand: str) -> Iterator[tuple[Misreading, Format]]:
    """Yield every way to read a tile with one mistake in its descriptor, and the format of its elements."""
    tiles = present(setting.tiles, "tiles")
    descriptor, element = _descriptor(setting, operand), setting.instruction.format(operand)
    found = misreadings(descriptor, _shape(setting, operand), tiles.memory_bytes)
    yield from ((reading, element) for reading in found)


# --- elements of a tile: (row along M or N, column along K) -> source ----------------------------------


def _read_across(grid: Grid, row: Index, column: Index, slot: Index) -> tuple[Index, Index, Index]:
    place = column * grid.lanes + row
    return place // grid.registers, place % grid.registers, slot


def _written_across(grid: Grid, row: Index, column: Index, slot: Index) -> tuple[Index, Index, Index]:
    place = row * grid.registers + column
    return place % grid.lanes, place // grid.lanes, slot


def _k_halves(grid: Grid, row: Index, column: Index, slot: Index) -> tuple[Index, Index, Index]:
    return row, (column + grid.registers // 2) % grid.registers, slot


def _row_halves(grid: Grid, row: Index, column: Index, slot: Index) -> tuple[Index, Index, Index]:
    return row ^ 8, column, slot


def _blocks(grid: Grid, row: Index, column: Index, slot: Index) -> tuple[Index, Index, Index]:
    """Return every 8 x 8 block transposed."""
    return row // 8 * 8 + column % 8, column // 8 * 8 + row % 8, slot


def _next_rows(step: int) -> Any:
    def formula(grid: Grid, row: Index, column: Index, slot: Index) -> tuple[Index, Index, Index]:
        return (row + step) % grid.lanes, column, slot

    return formula


_STORE = "change the order in which {operand} is written to shared memory"

TILE_ROWS: tuple[Row, ...] = (
    Row(
        name="{operand}: tile transposed (rows read as columns)",
        operands=("a", "b"),
        advice=f"{_STORE}: K-major against MN-major",
        applies=lambda grid: True,
        formula=_read_across,
    ),
    Row(
        name="{operand}: tile transposed (columns read as rows)",
        operands=("a", "b"),
        advice=f"{_STORE}: K-major against MN-major",
        applies=lambda grid: True,
        formula=_written_across,
    ),
    Row(
        name="{operand}: 8 x 8 blocks of the tile transposed",
        operands=("a", "b"),
        advice="transpose each 8 x 8 block of {operand}: .trans of stmatrix is missing, or too much",
        applies=lambda grid: grid.registers % 8 == 0,
        formula=_blocks,
    ),
    Row(
        name="{operand}: k halves of the tile exchanged",
        operands=("a", "b"),
        advice="exchange the lower and the upper half of {operand}'s k in shared memory",
        applies=lambda grid: True,
        formula=_k_halves,
    ),
    Row(
        name="{operand}: groups of 8 rows of the tile exchanged",
        operands=("a", "b"),
        advice="exchange every two groups of 8 rows along M or N of {operand} in shared memory",
        applies=lambda grid: grid.lanes % 16 == 0,
        formula=_row_halves,
    ),
    *(
        Row(
            name=f"{{operand}}: rows of the tile off by {step:+d}",
            operands=("a", "b"),
            advice=f"each row along M or N of {{operand}} holds what belongs {abs(step)} "
            f"{'further' if step > 0 else 'before'}: correct where rows are written",
            applies=lambda grid, step=step: grid.lanes > abs(step),  # type: ignore[misc]
            formula=_next_rows(step),
        )
        for step in (1, -1, 8, -8, 16, -16)
    ),
)
