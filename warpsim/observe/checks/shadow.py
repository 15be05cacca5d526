"""Shadow memory: what is known of each cell of a memory, whichever memory it is.

A cell is a few bytes of a page: as many as the smallest access to the page so far, 16 at first. A smaller
access parts the cells of its page, which changes nothing, as every access before covers whole cells. Of each
cell there is:

    wrote    (cells,)           the latest write
    read     (warps, cells)     the latest read of each warp of a cluster
    taken    (kinds, cells)     the latest reads of operations: of copies (row 0), of each warpgroup
    filled   (cells,)           1 where something has been written
    flying   (cells,)           the statement, plus 1, of a cp.async that may still write

The first three are records of 64 bits, 0 for none:

    24  time       at which others know of it (clocks.py), of its component
    20  place      its statement
    15  owner      a lane of the cluster; of an operation, the component that says that it is complete
     1  many       other lanes of its warp have done the same there, and nothing orders the two
     1  strong     it may meet other strong accesses
     1  operation  it is asynchronous
     1  present

To add a memory, add it to ``Order.shadow_of``: all rules get the same shadow there. An access is to offsets
in bytes from 0 on, of which there are the cells: ``of(access)`` of an access of lanes, ``within(ranges)`` of
an operation, ``tiles(key, offsets)`` of chunks that are looked at again and again. Tensor memory has the
offset ``4 * (column * 128 + lane)`` in each CTA, and cells of 4 bytes: few columns are few pages.

Ask for cells before tables: parting makes new tables.

Knows cells and records; does not know what an address means, or which accesses may meet.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from itertools import pairwise
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from ...isa.warps import WARP
from ...machine.state.memory_access import MemoryAccess

Cells = npt.NDArray[np.int64]
Records = npt.NDArray[np.int64]
Bits = npt.NDArray[np.bool_]
_Tiles = tuple[Cells, Cells, Cells]  # cells (rows, cells); rows and pages of these

LARGEST = 16  # bytes of a cell
PRESENT, OPERATION, STRONG, MANY = 1, 2, 4, 8
_OWNER, _PLACE, _TIME = 4, 19, 39
_PAGE = 4096  # bytes with cells of one width, of which is known when some of them were accessed last
_OF_CELLS = frozenset({"wrote", "_read", "_taken", "filled", "flying"})  # tables, cells are their last axis
_MANY, _MOST = 8, 4096  # ranges whose cells are kept, and how many such are
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


def put_lanes(table: Records, places_: Any, records: Records, since: Any) -> None:
    """Put records of accesses by lanes in a table: of many lanes where another lane of the warp stands there,
    since the warp's time ``since`` or by the same access.
    """
    before = table[places_]
    near = (before != 0) & ~has(before, OPERATION) & (times(before) >= since)
    near &= whose(before) // WARP == whose(records) // WARP
    many = near & (has(before, MANY) | (whose(before) != whose(records)))
    table[places_] = new = records | many * np.int64(MANY)
    if (whose(table[places_]) != whose(new)).any():
        _put_in_turn(table, *(np.broadcast_to(part, many.shape).reshape(-1) for part in (places_, new)))


def _put_in_turn(table: Records, places_: Any, records: Records) -> None:
    """Mark the records of places that an access puts several in: the last stays, of many lanes where those of
    its warp before it are of others.
    """
    order = np.argsort(places_, kind="stable")
    cells, records = places_[order], records[order]
    new = np.diff(cells, prepend=-1) != 0
    starts = np.flatnonzero(new | (np.diff(whose(records) // WARP, prepend=-1) != 0))
    lowest, highest = (part.reduceat(whose(records), starts) for part in (np.minimum, np.maximum))
    many = (lowest != highest) | (new[starts] & has(records[starts], MANY))
    last = np.append(new[starts[1:]], True)
    table[cells[starts[last]]] &= ~MANY
    table[cells[starts[last & many]]] |= MANY


class Shadow:
    """The shadow of so many bytes, with cells of ``widths`` bytes in each page.

    ``writes``, ``reads`` and ``takes`` (rows, pages) have the latest time of each row of ``wrote``, by warps,
    of ``read`` and of ``taken``, of copies 1; ``most`` is how many rows those of warps begin with.
    """

    def __init__(self, size: int, widths: int | Cells = LARGEST, most: int = 1) -> None:
        self.size, self.most = size, most
        pages = -(-size // _PAGE)
        self._lay(np.full(pages, widths) if isinstance(widths, int) else widths)
        self._read: Records = np.zeros((0, self._pages.size), np.int64)
        self._noted: list[Callable[[Records], None]] = []  # put reads in the table that are not there yet
        self._room = self._pages.size  # words of reads that may be noted before they go to the table
        self._taken: Records = np.zeros((0, self._pages.size), np.int64)
        self._tiles: dict[Hashable, _Tiles] = {}
        self._known: dict[bytes, Cells] = {}  # cells of many ranges
        self._offsets: dict[Hashable, Cells] = {}  # of tiles, by key
        self._touched: dict[Hashable, tuple[Cells, Cells, bool]] = {}  # rows and pages, all different or not
        self._later: dict[Hashable, tuple[Any, Any]] = {}  # reads of tiles that are not in the table yet
        self._latest: tuple[MemoryAccess | None, Cells] = None, np.zeros((0, 1), np.int64)
        self._paged: tuple[Cells | None, Cells] = None, np.zeros((0, 1), np.int64)
        self.writes, self.reads, self.takes = (np.zeros((0, pages), np.int32) for _ in range(3))
        self._owners: tuple[int, Cells] = 0, np.zeros(0, np.int64)

    @cached_property
    def wrote(self) -> Records:
        """``(cells,)``: the latest writes."""
        return np.zeros(self._pages.size, np.int64)

    @cached_property
    def filled(self) -> npt.NDArray[np.uint8]:
        """``(cells,)``: 1 where something has been written."""
        return np.zeros(self._pages.size, np.uint8)

    @cached_property
    def flying(self) -> npt.NDArray[np.int32]:
        """``(cells,)``: the statements, plus 1, of cp.async that may still write."""
        return np.zeros(self._pages.size, np.int32)

    # --- cells ---

    @property
    def places(self) -> tuple[Cells, Cells]:
        """By page: the bits of a place in a cell; and what the first cell would be of byte 0."""
        return self._shifts, self._bases

    def of(self, access: MemoryAccess) -> Cells:
        """Return ``(words, cells)``: the cells of the words of an access."""
        if self._latest[0] is not access:
            self._latest = access, self.cells(access.offsets, access.size)
        return self._latest[1]

    def cells(self, offsets: Cells, size: int) -> Cells:
        """Return ``(words, cells)``: the cells of words of so many bytes, each aligned to its size.

        Where cells of some words are smaller, those of others stand several times.
        """
        if self._width and not size % self._width:  # all cells are alike
            first = offsets // self._width
            count = size // self._width
            return first[:, None] if count == 1 else first[:, None] + np.arange(count)
        pages = offsets // _PAGE
        widths = self.widths[pages]
        if size < int(widths.max(initial=0)):
            self._part(pages[widths > size], size)
            widths = self.widths[pages]
        least = int(widths.min(initial=LARGEST))
        if least < size:
            offsets, pages = offsets[:, None] + np.arange(0, size, least), pages[:, None]
        cells: Cells = self._bases[pages] + (offsets >> self._shifts[pages])
        return cells if least < size else cells[:, None]

    def spans(self, ranges: Cells) -> list[tuple[int, int]]:
        """Return the cells of ranges of bytes ``(ranges, 2)``: the first and that behind the last of each."""
        if len(ranges) == 1:  # as mostly: several times faster than of arrays
            (first, past), shifts = ranges[0].tolist(), self._shifts
            page, last = first // _PAGE, (past - 1) // _PAGE
            if not (first & (1 << int(shifts[page])) - 1 or past & (1 << int(shifts[last])) - 1):
                end = int(self._bases[last]) + (past - 1 >> int(shifts[last]))
                return [(int(self._bases[page]) + (first >> int(shifts[page])), end + 1)]
        return [(first, past) for first, past in self._bounds(ranges).tolist()]

    def _bounds(self, ranges: Cells) -> Cells:
        """Return ``(ranges, 2)``: what ``spans`` returns; pages whose cells are too large are parted."""
        last = ranges - (0, 1)  # the first byte and the last
        pages = last // _PAGE
        for edge, page in zip(*self._inner_edges(ranges, pages), strict=True):
            if edge % int(self.widths[page]):
                self._part(np.array([page]), edge & -edge)
        found: Cells = self._bases[pages] + (last >> self._shifts[pages]) + (0, 1)
        return found

    def _inner_edges(self, ranges: Cells, pages: Cells) -> tuple[list[int], list[int]]:
        """Return the edges of ranges that lie inside cells, and their pages."""
        inside = (ranges & (self.widths[pages] - 1)) != 0
        return ranges[inside].tolist(), pages[inside].tolist()

    def within(self, ranges: Cells) -> Cells:
        """Return the cells of ranges of bytes ``(ranges, 2)``, ascending; do not write to them.

        Those of many ranges, as tiles have, are found once.
        """
        if len(ranges) == 1:
            ((first, past),) = self.spans(ranges)
            return np.arange(first, past)
        if len(ranges) < _MANY:
            return self._within(ranges)
        key = ranges.tobytes()
        found = self._known.get(key)
        if found is None:
            found = self._within(ranges)  # may part cells, which empties what is known
            if len(self._known) < _MOST:
                self._known[key] = found
        return found

    def _within(self, ranges: Cells) -> Cells:
        first, past = self._bounds(ranges).T
        counts = past - first
        found: Cells = np.arange(counts.sum()) + np.repeat(past - np.cumsum(counts), counts)
        return found if (past[:-1] <= first[1:]).all() else np.unique(found)

    def bytes_of(self, cells: Any) -> Any:
        """Return the first byte of cells."""
        pages = self._pages[cells]
        return (cells - self._bases[pages]) << self._shifts[pages]

    def all_bytes(self, cells: Cells) -> Cells:
        """Return all bytes of some cells."""
        widths = self.widths[self._pages[cells]].tolist()
        each = zip(self.bytes_of(cells).tolist(), widths, strict=True)
        return np.concatenate([np.arange(first, first + width) for first, width in each])

    def _part(self, pages: Cells, width: int) -> None:
        """Part the cells of pages into cells of so many bytes."""
        self.write_noted()
        widths = self.widths.copy()
        widths[pages] = width
        counts, starts = self.widths // widths, self._starts
        self._lay(widths)
        edges = [0, *(np.flatnonzero(np.diff(counts)) + 1).tolist(), len(counts)]
        for name in _OF_CELLS & vars(self).keys():  # that anything has asked for
            table = vars(self)[name]
            parted = np.zeros((*table.shape[:-1], self._pages.size), table.dtype)
            latest = {"read": self.reads, "_taken": self.takes}.get(name)
            rows: Any = ... if latest is None else np.flatnonzero(latest.any(axis=1))  # others have nothing
            for first, past in pairwise(edges):  # pages that are parted alike
                part = np.repeat(table[rows, starts[first] : starts[past]], int(counts[first]), axis=-1)
                parted[rows, self._starts[first] : self._starts[past]] = part
            setattr(self, name, parted)
        self._tiles, self._known, self._latest = {}, {}, (None, self._latest[1])
        self._paged = None, self._paged[1]

    def _lay(self, widths: Cells) -> None:
        """Lay out cells, ``widths`` bytes each in every page, in the order of their addresses."""
        self.widths = widths
        self._width = int(widths[0]) if (widths == widths[:1]).all() and widths.size else 0  # of all, or 0
        counts = _PAGE // widths
        self._starts = np.concatenate([[0], np.cumsum(counts)])
        self._shifts = np.log2(widths).astype(np.int64)
        self._bases = self._starts[:-1] - np.arange(widths.size) * counts
        self._pages = np.repeat(np.arange(widths.size, dtype=np.int32), counts)  # by cell

    @overload
    def pages(self, cells: slice) -> slice: ...

    @overload
    def pages(self, cells: Cells) -> Cells: ...

    def pages(self, cells: Cells | slice) -> Cells | slice:
        """Return the pages that cells lie in."""
        if isinstance(cells, slice):
            return slice(int(self._pages[cells.start]), int(self._pages[cells.stop - 1]) + 1)
        if self._paged[0] is not cells:  # those of an access are asked for several times
            self._paged = cells, np.asarray(self._pages[cells], np.int64)
        return self._paged[1]

    def owners(self, size: int) -> Cells:
        """Return ``(2 * pages,)``: of parts of so many bytes, the first that a page is of, and the one behind
        the last; the pages have no other sizes as long as the shadow is there.
        """
        if self._owners[0] != size:
            last = -(-self.size // size) - 1
            first = np.arange(self.widths.size) * _PAGE
            ends = np.minimum(first // size, last), np.minimum((first + _PAGE - 1) // size, last) + 1
            self._owners = size, np.stack(ends, axis=1).reshape(-1)
        return self._owners[1]

    # --- notes: shapes of rows, cells and records broadcast ---

    def write(self, rows: Any, cells: Cells, records: Any, since: Any) -> None:
        """Cells are written by lanes of warps that were ordered at times ``since``."""
        put_lanes(self.wrote, cells, records, since)
        (self.writes,) = _with(rows, self.most, self.writes)
        _raise(self.writes, rows, self.pages(cells), times(records))

    def note_read(self, rows: Any, cells: Cells, records: Any, since: Any) -> None:
        """Cells are read by lanes of warps that were ordered at times ``since``; the table has it when it is
        first asked for, if ever.
        """
        (self.reads,) = _with(rows, self.most, self.reads)
        _raise(self.reads, rows, self.pages(cells), times(records))

        def write(table: Records) -> None:
            put_lanes(table.reshape(-1, copy=False), rows * table.shape[1] + cells, records, since)

        self.note_later(cells.size, write)

    def note_later(self, count: int, write: Callable[[Records], None]) -> None:
        """So many words are read, at times that ``reads`` has; ``write`` puts their records in the table."""
        self._noted.append(write)
        self._room -= count
        if self._room < 0:
            self.write_noted()

    @property
    def stale(self) -> bool:
        """Whether there are reads that are not in the table yet."""
        return bool(self._noted)

    def forget_noted(self) -> None:
        """All warps know of all reads: those that are not in the table need not go there."""
        self._noted.clear()
        self._room = self._pages.size

    def write_noted(self) -> None:
        """Put reads in the table that are not there yet."""
        if len(self._read) < len(self.reads):
            (self._read,) = _with(len(self.reads) - 1, self.most, self._read)
        for write in self._noted:
            write(self._read)
        self.forget_noted()

    def tables(self, count: int) -> tuple[Records, npt.NDArray[np.int32], Records, npt.NDArray[np.int32]]:
        """Return ``wrote``, ``writes``, ``read`` and ``reads``, with rows of so many warps at least; ``read``
        lacks what has not been asked for yet where it is ``stale``.
        """
        if min(len(self._read), len(self.reads), len(self.writes)) < count:
            self._read, self.reads, self.writes = (
                _with(count - 1, count, table)[0] for table in (self.read, self.reads, self.writes)
            )
        return self.wrote, self.writes, self._read, self.reads

    @property
    def read(self) -> Records:
        """``(warps, cells)``: the latest reads of warps."""
        if self._noted or len(self._read) < len(self.reads):
            self.write_noted()
        return self._read

    def read_by(self, rows: Cells, cells: Cells | slice) -> Records:
        """Return ``(rows, cells)``: the latest reads by some warps."""
        table = self.read if rows.size else self._read
        found: Records = table[rows, cells] if isinstance(cells, slice) else table[rows[:, None], cells]
        return found

    def take(self, rows: Any, cells: Cells, records: Any) -> None:
        """Cells are read by operations of some kinds."""
        self._taken, self.takes = _with(rows, _KINDS, self._taken, self.takes)
        self._taken[rows, cells] = records
        self.takes[rows, self.pages(cells)] = 1

    def take_later(self, key: Hashable, rows: Cells, records: Records) -> None:
        """Tiles of a key, which stands for rows, too, are read by operations; noted when first asked for, if
        ever, in pages at once.
        """
        self._later.pop(key, None)
        self._later[key] = rows, records
        _, owners, pages = self.tiles(key, lambda: self._offsets[key])
        known = self._touched.get(key)
        if known is None:
            self._taken, self.takes = _with(rows, _KINDS, self._taken, self.takes)
            touched = rows[owners, 0]
            alone = np.bincount(touched * self.widths.size + pages).max(initial=0) <= 1
            known = self._touched[key] = touched, pages, bool(alone)
        if known[2]:
            at = known[:2]
            self.takes[at] = np.maximum(self.takes[at], times(records[owners, 0]))
        else:
            _latest(self.takes, *known[:2], times(records[owners, 0]))

    @property
    def taken(self) -> Records:
        """``(kinds, cells)``: the latest reads of operations."""
        if self._later:
            later, self._later = self._later, {}
            for key, (rows, records) in later.items():
                self._take_tiles(key, rows, records)
        return self._taken

    def taken_of(self, count: int) -> Records:
        """Return the latest reads of operations, with so many kinds at least."""
        taken = self.taken
        if len(taken) < count:
            self._taken, self.takes = _with(count - 1, count, self._taken, self.takes)
        return self._taken

    def taken_by(self, rows: Cells, cells: Cells) -> Records:
        """Return the latest reads of cells by operations of some kinds; shapes that broadcast."""
        taken = self.taken
        if int(rows.max(initial=0)) >= len(taken):
            taken, self.takes = self._taken, self.takes = _with(rows, _KINDS, taken, self.takes)
        found: Records = taken[rows, cells]
        return found

    def _take_tiles(self, key: Hashable, rows: Any, records: Any) -> None:
        self._taken[rows, self.tiles(key, lambda: self._offsets[key])[0]] = records

    def tiles(self, key: Hashable, find: Callable[[], Cells]) -> _Tiles:
        """Return the cells of 16 bytes at offsets ``(rows, cells)``, found once for a key; and pages
        around them, each after the row that it belongs to.
        """
        known = self._tiles.get(key)
        if known is None:
            offsets = self._offsets[key] = find()
            cells = self.cells(offsets.reshape(-1), LARGEST).reshape(len(offsets), -1)
            touched = np.zeros((len(cells), self.widths.size), np.bool_)
            touched[np.arange(len(cells))[:, None], self._pages[cells]] = True
            owners, pages = np.nonzero(touched)
            known = self._tiles[key] = cells, owners.astype(np.int64), pages.astype(np.int64)
        return known

    def forget_reads(self, cells: Cells | slice) -> None:
        """Nothing needs to know any more what has read cells."""
        for row in self.rows(self.reads, cells).tolist():
            self.read[row, cells] = 0
        taken = self.taken
        for row in self.rows(self.takes, cells).tolist():
            taken[row, cells] = 0

    def rows(self, latest: npt.NDArray[Any], cells: Cells | slice) -> Cells:
        """Return the rows of a table that may be present in some cells, by their latest times."""
        if not len(latest):
            return np.zeros(0, np.int64)
        pages = self.pages(cells)
        if not isinstance(pages, slice):  # few, of many cells
            pages = np.flatnonzero(np.bincount(pages.reshape(-1), minlength=latest.shape[1]))
        return np.flatnonzero(latest[:, pages].any(axis=1))


class Shadows:
    """The shadows of memories, by name; an access is to a (name, cell).

    ``widths`` has the bytes of cells, by page, as waves before left them; ``most``: warps of a CTA.
    """

    def __init__(self, widths: dict[str, Cells], most: int) -> None:
        self.of: dict[str, Shadow] = {}
        self.widths, self.most = widths, most

    def at(self, name: str, size: int, cell: int = LARGEST) -> Shadow:
        """Return the shadow of a memory of so many bytes; ``cell`` has the bytes that its cells begin with.

        A memory that has grown gets a new shadow: its bytes are no longer where they were, and count as
        written.
        """
        found = self.of.get(name)
        if found is None or found.size < size:
            widths = np.full(-(-size // _PAGE), cell)
            known = self.widths.get(name, widths)[: len(widths)]
            widths[: len(known)] = known
            grown = found is not None
            found = self.of[name] = Shadow(size, widths, self.most)
            found.filled[:] = grown
        return found

    def keep(self) -> None:
        """Let shadows of waves to come begin with the cells of these, also where they have more CTAs."""
        for name, shadow in self.of.items():
            known = self.widths.get(name, shadow.widths)
            count = min(len(known), len(shadow.widths))
            kept = (known if len(known) > count else shadow.widths).copy()
            kept[:count] = np.minimum(known[:count], shadow.widths[:count])
            self.widths[name] = kept


def _raise(latest: npt.NDArray[np.int32], rows: Any, pages: Any, time: Any) -> None:
    """Let latest times be no earlier than these: of those of several CTAs in a page the latest stays."""
    first = time.flat[0] if isinstance(time, np.ndarray) and time.size else time
    if isinstance(rows, np.ndarray) and isinstance(pages, np.ndarray) and np.all(time == first):
        touched = np.zeros(latest.size, np.bool_)  # few pages, of many cells
        touched[rows * latest.shape[1] + pages] = True
        flat, places_ = latest.reshape(-1), np.flatnonzero(touched)
        flat[places_] = np.maximum(flat[places_], first)
        return
    _latest(latest, rows, pages, time)


def _latest(latest: npt.NDArray[np.int32], rows: Any, pages: Any, time: Any) -> None:
    """Let latest times be no earlier than these."""
    latest[rows, pages] = np.maximum(latest[rows, pages], time)
    if (latest[rows, pages] < time).any():  # some stand there twice
        np.maximum.at(latest, (rows, pages), time)


def _with(rows: Any, least: int, *tables: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], ...]:
    """Return tables that have some rows; they begin with so many."""
    last = int(np.max(rows, initial=0))
    if last < len(tables[0]):
        return tables
    count = max(1 << last.bit_length(), least)
    return tuple(_grow(table, count) for table in tables)


def _grow(table: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    """Return a table with so many rows; new rows take no memory until something is noted there."""
    grown = np.zeros((count, table.shape[1]), table.dtype)
    grown[: len(table)] = table
    return grown
