"""Shadow memory: the latest accesses to each cell of a memory, whichever memory it is.

A cell is as many bytes as the smallest access so far, 16 at first; a smaller access parts cells, which
changes nothing, as every access before covers whole cells. Of each cell there are the latest write, the
latest read of each reader, and the latest reads of operations, all as records of 64 bits, 0 for none:

    24  time       at which others know of it (clocks.py), of its component
    20  place      its statement
    15  owner      a lane of the cluster; of an operation, the component that says that it is complete
     1  parted     lanes of its warp had taken another path
     1  strong     it may meet other strong accesses
     1  operation  it is asynchronous
     1  present

Knows cells and records; does not know what an address means, or which accesses may meet.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import numpy.typing as npt

Cells = npt.NDArray[np.int64]
Records = npt.NDArray[np.int64]
Bits = npt.NDArray[np.bool_]
_Tiles = tuple[Cells, Cells, Cells]  # cells (rows, cells); rows and pages of these

LARGEST = 16  # bytes of a cell
PRESENT, OPERATION, STRONG, PARTED = 1, 2, 4, 8
_OWNER, _PLACE, _TIME = 4, 19, 39
_PAGE = 4096  # bytes, of which is known whether anything has read some of them
_KINDS = 4  # rows that a table of reads of operations begins with


def record(time: Any, place: int, owner: Any, flags: Any) -> Any:
    """Return a record, or an array of records, of what is present."""
    return (
        (np.int64(1) * time << _TIME) | (place << _PLACE) | (np.int64(1) * owner << _OWNER) | flags | PRESENT
    )


def times(records: Any) -> Any:
    """When others know of accesses."""
    return records >> _TIME


def places(records: Any) -> Any:
    """Return the statements of accesses."""
    return records >> _PLACE & 0xFFFFF


def whose(records: Any) -> Any:
    """Return the lanes of accesses, or the components of operations."""
    return records >> _OWNER & 0x7FFF


def has(records: Any, flag: int) -> Any:
    """Return whether accesses have a flag."""
    return (records & flag) != 0


class Shadow:
    """The shadow of so many bytes: ``wrote`` (cells,) and ``read`` (readers, cells) of warps, of operations
    ``taken`` (kinds, cells). ``writes``, ``reads`` and ``takes`` (rows, pages) have the latest time of each.
    """

    def __init__(self, size: int, cell: int = LARGEST, most: int = 1) -> None:
        self.size, self.cell, self.most = size, cell, most
        count, pages = -(-size // LARGEST) * (LARGEST // cell), -(-size // _PAGE)
        self.wrote: Records = np.zeros(count, np.int64)
        self.read: Records = np.zeros((0, count), np.int64)
        self._taken: Records = np.zeros((0, count), np.int64)
        self._tiles: dict[tuple[Hashable, int], _Tiles] = {}  # by key and bytes of a cell
        self._later: dict[Hashable, tuple[Any, Cells, Any]] = {}  # reads that are not in the table yet
        self.writes, self.reads, self.takes = (np.zeros((0, pages), np.int32) for _ in range(3))

    # --- cells ---

    def cells(self, offsets: Cells, size: int) -> Cells:
        """Return ``(words, cells)``: the cells of words of so many bytes, each aligned to its size."""
        if size % self.cell:
            self.part(size & -size)
        first: Cells = offsets // self.cell
        return first[:, None] if size == self.cell else first[:, None] + np.arange(size // self.cell)

    def within(self, ranges: Cells) -> Cells:
        """Return the cells of ranges of bytes ``(ranges, 2)``, ascending."""
        if not len(ranges):
            return np.zeros(0, np.int64)
        low = int(np.bitwise_or.reduce(ranges, axis=None))
        if low % self.cell:
            self.part(low & -low)
        parts = [np.arange(first // self.cell, past // self.cell) for first, past in ranges.tolist()]
        return parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts))

    def part(self, size: int) -> None:
        """Part cells into cells of so many bytes."""
        ratio, self.cell = self.cell // size, size
        self.wrote = np.repeat(self.wrote, ratio)
        self.read, self._taken = np.repeat(self.read, ratio, axis=1), np.repeat(self._taken, ratio, axis=1)

    def pages(self, cells: Cells | slice) -> Cells | slice:
        """Return the pages that cells lie in."""
        each = _PAGE // self.cell
        if isinstance(cells, slice):
            return slice(cells.start // each, -(-cells.stop // each))
        return cells // each

    @property
    def first_bytes(self) -> Cells:
        """``(pages,)``: the first byte of each page."""
        return np.arange(self.reads.shape[1]) * _PAGE

    # --- notes: shapes of rows, cells and records broadcast ---

    def write(self, rows: Any, cells: Cells | slice, records: Any) -> None:
        """Cells are written by warps, or by an operation where ``rows`` is None."""
        self.wrote[cells] = records
        if rows is not None:
            (self.writes,) = _with(rows, self.most, self.writes)
            self.writes[rows, self.pages(cells)] = times(records)

    def note_read(self, rows: Any, cells: Cells, records: Any) -> None:
        """Cells are read by warps."""
        self.read, self.reads = _with(rows, self.most, self.read, self.reads)
        self.read[rows, cells] = records
        self.reads[rows, self.pages(cells)] = times(records)

    def take(self, rows: Any, cells: Cells, records: Any) -> None:
        """Cells are read by operations of some kinds."""
        self._taken, self.takes = _with(rows, _KINDS, self._taken, self.takes)
        self._taken[rows, cells] = records
        self.takes[rows, self.pages(cells)] = 1

    def take_later(self, key: Hashable, rows: Any, offsets: Cells, records: Any) -> None:
        """Cells of 16 bytes at offsets ``(rows, cells)`` are read; noted when first asked for, if ever.

        A read with the same key is of the same cells, and takes its place.
        """
        self._later.pop(key, None)
        self._later[key] = rows, offsets, records

    @property
    def taken(self) -> Records:
        """``(kinds, cells)``: the latest reads of operations."""
        if self._later:
            later, self._later = self._later, {}
            for key, (rows, offsets, records) in later.items():
                self._take_tiles(key, rows, offsets, records)
        return self._taken

    def _take_tiles(self, key: Hashable, rows: Any, offsets: Cells, records: Any) -> None:
        cells, owners, pages = self.tiles(key, offsets)
        self._taken, self.takes = _with(rows, _KINDS, self._taken, self.takes)
        self._taken[rows, cells] = records
        self.takes[np.broadcast_to(rows, (len(cells), 1))[owners, 0], pages] = 1

    def tiles(self, key: Hashable, offsets: Cells) -> _Tiles:
        """Return the cells of 16 bytes at offsets ``(rows, cells)``, found once for a key; and pages
        around them, each after the row that it belongs to.
        """
        known = self._tiles.get((key, self.cell))
        if known is None:
            cells = self.cells(offsets.reshape(-1), LARGEST).reshape(len(offsets), -1)
            pages = [np.arange(low, high + 1) for low, high in _bounds(cells, _PAGE // self.cell).tolist()]
            owners = np.repeat(np.arange(len(cells)), [len(page) for page in pages])
            known = self._tiles[key, self.cell] = cells, owners, np.concatenate(pages)
        return known

    def forget_reads(self, cells: Cells | slice) -> None:
        """Nothing needs to know any more what has read cells."""
        taken = self.taken
        for table, latest in ((self.read, self.reads), (taken, self.takes)):
            for row in self.rows(latest, cells).tolist():
                table[row, cells] = 0

    def rows(self, latest: npt.NDArray[Any], cells: Cells | slice) -> Cells:
        """Return the rows of a table that may be present in some cells, by their latest times."""
        if not len(latest):
            return np.zeros(0, np.int64)
        return np.flatnonzero(latest[:, self.pages(cells)].reshape(len(latest), -1).any(axis=1))


class Shadows:
    """The shadows of memories, by the name of their space; an access is to a (space, cell).

    ``cells`` has the bytes of a cell as waves before left them, and ``most`` is how many warps a CTA has.
    """

    def __init__(self, cells: dict[str, int], most: int) -> None:
        self.of: dict[str, Shadow] = {}
        self.cells, self.most = cells, most

    def at(self, space: str, size: int) -> Shadow:
        """Return the shadow of a space, which has so many bytes."""
        found = self.of.get(space)
        if found is None:
            found = self.of[space] = Shadow(size, self.cells.get(space, LARGEST), self.most)
        return found

    def keep(self) -> None:
        """Let shadows of waves to come begin with cells of the size of these."""
        self.cells |= {space: shadow.cell for space, shadow in self.of.items()}


def _with(rows: Any, least: int, *tables: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], ...]:
    """Return tables that have some rows; they begin with so many."""
    last = int(np.max(rows, initial=0))
    if last < len(tables[0]):
        return tables
    count = max(1 << last.bit_length(), least)
    return tuple(
        np.concatenate([table, np.zeros((count - len(table), table.shape[1]), table.dtype)])
        if len(table)
        else np.zeros((count, table.shape[1]), table.dtype)
        for table in tables
    )


def _bounds(cells: Cells, each: int) -> Cells:
    """Return ``(rows, 2)``: the first and the last page of the cells of each row."""
    return np.stack([cells.min(axis=1), cells.max(axis=1)], axis=1) // each


def in_a_row(cells: Cells) -> Cells | slice:
    """Return the same cells, as a slice where they follow each other: that is several times faster to look
    at.
    """
    if not cells.size or int(cells[-1]) - int(cells[0]) != cells.size - 1:
        return cells
    return slice(int(cells[0]), int(cells[-1]) + 1)
