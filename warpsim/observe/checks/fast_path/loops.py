"""Loops over the words of accesses by lanes, compiled: what checks of whole arrays do where nothing is wrong.

Each function first looks, and changes tables only if nothing has to be looked at more closely. The module is
imported when it is worth loading a compiler, and has all loops.
"""

from __future__ import annotations

import numpy as np

from ....sums.arithmetic.kernels._jit import Array, kernel
from .access_tables import (
    CLOSER,
    FLYING,
    GENERIC,
    IN_WARP,
    LANE,
    LANES,
    LATE,
    MANY,
    PAGE,
    PLACE,
    QUIET,
    SEVERAL,
    STALE,
    STATEMENT,
    STRONG,
    UNFILLED,
    UNORDERED,
    WARP,
    WARPS,
    Marks,
    Tables,
    Words,
    all_are,
    all_become,
    all_known,
    is_apart,
    is_late,
    is_of_lanes,
    record_of,
    with_lanes,
)
from .array_loops import Owners, own
from .operation_loops import Operation, covers, tiles

__all__ = [
    "CLOSER",
    "FLYING",
    "GENERIC",
    "LATE",
    "QUIET",
    "SEVERAL",
    "STALE",
    "UNFILLED",
    "UNORDERED",
    "Marks",
    "Operation",
    "Owners",
    "Tables",
    "Words",
    "all_are",
    "all_become",
    "compile_all",
    "covers",
    "load",
    "note_reads",
    "own",
    "store",
    "tiles",
]


@kernel
def _knows_writes(tables: Tables, warp: int, first: int, count: int) -> bool:
    """Return whether a warp knows of the latest writes to some cells."""
    for cell in range(first, first + count):
        if is_late(tables.wrote[np.uint64(cell)], tables.visible, warp):
            return False
    return True


@kernel
def _knows_reads(tables: Tables, warp: int, first: int, count: int) -> bool:
    """Return whether a warp knows of all reads of some cells."""
    for row in range(len(tables.reads)):
        for cell in range(first, first + count):
            if is_late(tables.read[row, cell], tables.visible, warp):
                return False
    return True


@kernel
def _wrote_apart(tables: Tables, words: Words, warp: int, lane: int, first: int, count: int) -> bool:
    """Return whether another lane alone has written some cells that a lane of its warp reads, not ordered."""
    row = warp % words.warps
    for cell in range(first, first + count):
        seen = tables.wrote[np.uint64(cell)]
        if seen & MANY == 0 and is_apart(seen, row, warp, lane, words):
            return True
    return False


@kernel
def _others_apart(table: Array, words: Words, warp: int, lane: int, first: int, count: int) -> bool:
    """Return whether other lanes of the warp have accesses in some cells of a table, not ordered with that of
    a lane.
    """
    row = warp % words.warps
    for cell in range(first, first + count):
        seen = table[np.uint64(cell)]
        if seen & MANY != 0 and seen & words.flags & STRONG == 0 and is_of_lanes(seen, row, warp, words):
            return True
        if is_apart(seen, row, warp, lane, words):
            return True
    return False


@kernel
def load(tables: Tables, words: Words, marks: Marks, flies: bool, own: Array) -> int:
    """Look at reads by lanes, and note their times, also in ``own`` (warps,). Return flags of what has to be
    looked at more closely: UNFILLED, LATE, and FLYING where ``flies`` says that any cp.async may still
    write. Their records are to be noted by ``note_reads``.
    """
    turn, page, warp, shift, base, count, closer, near, found = 0, -1, -1, 0, 0, 0, True, True, 0
    for word in range(len(words.offsets)):
        offset, lane = words.offsets[word], words.lanes[np.uint64(turn)]
        if lane >> LANES != warp or offset >> PAGE != page:
            warp, page = lane >> LANES, offset >> PAGE
            shift, base = tables.shifts[page], tables.bases[page]
            count, row = words.size >> shift, warp % words.warps
            if count == 0:
                return UNFILLED | FLYING | LATE
            own[warp] = tables.visible[warp, row]
            near = tables.writes[row, page] >= words.since[warp]
            closer = near or not all_known(tables.writes, tables.visible, warp, page)
        first = base + (offset >> shift)
        if closer:
            if not _knows_writes(tables, warp, first, count):
                found |= LATE
            if near and _wrote_apart(tables, words, warp, lane, first, count):
                found |= LATE
        for cell in range(first, first + count):
            found |= UNFILLED * (marks.filled[np.uint64(cell)] == 0)
            if flies:
                found |= FLYING * (marks.flying[np.uint64(cell)] != 0)
        turn += 1
        if turn == len(words.lanes):
            turn = 0
    if found & LATE == 0:
        _note_times(tables.reads, words, own)
    return found


@kernel
def _note_times(latest: Array, words: Words, own: Array) -> None:
    """Note the times of accesses in their pages."""
    turn, page, warp = 0, -1, -1
    for word in range(len(words.offsets)):
        offset, lane = words.offsets[word], words.lanes[np.uint64(turn)]
        if lane >> LANES != warp or offset >> PAGE != page:
            warp, page = lane >> LANES, offset >> PAGE
            row = warp % words.warps
            latest[row, page] = max(latest[row, page], own[warp])
        turn += 1
        if turn == len(words.lanes):
            turn = 0


@kernel
def note_reads(shifts: Array, bases: Array, words: Words, own: Array, read: Array) -> None:
    """Put the records of reads at some times ``(warps,)`` in a table ``(rows of warps, cells)``."""
    turn, page, warp, row, shift, base, count = 0, -1, -1, 0, 0, 0, 0
    head = np.int64(0)
    for word in range(len(words.offsets)):
        offset, lane = words.offsets[word], words.lanes[np.uint64(turn)]
        if lane >> LANES != warp or offset >> PAGE != page:
            warp, page = lane >> LANES, offset >> PAGE
            shift, base = shifts[page], bases[page]
            count, row = words.size >> shift, warp % words.warps
            head = record_of(own[warp], row, words)
        first, new = base + (offset >> shift), head | (lane & IN_WARP) << LANE
        for cell in range(first, first + count):
            before = read[np.uint64(row), np.uint64(cell)]
            read[np.uint64(row), np.uint64(cell)] = with_lanes(new, before, row, warp, words)
        turn += 1
        if turn == len(words.lanes):
            turn = 0


@kernel
def _may_store(tables: Tables, words: Words, stale: bool) -> int:
    """Return QUIET where the warps know of all writes to the words, and of all reads."""
    turn, page, warp, shift, base, count, closer, unread, near = 0, -1, -1, 0, 0, 0, True, True, True
    for word in range(len(words.offsets)):
        offset, lane = words.offsets[word], words.lanes[np.uint64(turn)]
        if lane >> LANES != warp or offset >> PAGE != page:
            warp, page = lane >> LANES, offset >> PAGE
            shift, base = tables.shifts[page], tables.bases[page]
            count = words.size >> shift
            if count == 0:
                return CLOSER
            row, since = warp % words.warps, words.since[warp]
            unread = all_known(tables.reads, tables.visible, warp, page) and tables.reads[row, page] < since
            if stale and not unread:
                return STALE
            near = tables.writes[row, page] >= since
            closer = not unread or near or not all_known(tables.writes, tables.visible, warp, page)
        if closer:
            first = base + (offset >> shift)
            if not _knows_writes(tables, warp, first, count):
                return CLOSER
            if near and _others_apart(tables.wrote, words, warp, lane, first, count):
                return CLOSER
            if not unread and not _knows_reads(tables, warp, first, count):
                return CLOSER
            if not unread and _others_apart(tables.read[row], words, warp, lane, first, count):
                return CLOSER
        turn += 1
        if turn == len(words.lanes):
            turn = 0
    return QUIET


@kernel
def store(tables: Tables, words: Words, marks: Marks, fills: bool, flight: int, stale: bool) -> int:
    """Note writes by lanes; whether they leave cells written, and the statement, plus 1, of the cp.async that
    may still write these, 0 for none, -1 for what there was. Return CLOSER, QUIET or SEVERAL; STALE where
    reads are needed whose table is ``stale``.
    """
    found = _may_store(tables, words, stale)
    if found != QUIET:
        return found
    turn, page, warp, row, shift, base, count, several = 0, -1, -1, 0, 0, 0, 0, False
    head = np.int64(0)
    for word in range(len(words.offsets)):
        offset, lane = words.offsets[word], words.lanes[np.uint64(turn)]
        if lane >> LANES != warp or offset >> PAGE != page:
            warp, page = lane >> LANES, offset >> PAGE
            shift, base = tables.shifts[page], tables.bases[page]
            count, row = words.size >> shift, warp % words.warps
            head = record_of(tables.visible[warp, row], row, words)
            tables.writes[row, page] = max(tables.writes[row, page], tables.visible[warp, row])
        first, new = base + (offset >> shift), head | (lane & IN_WARP) << LANE
        for cell in range(first, first + count):
            before = tables.wrote[np.uint64(cell)]
            several |= before >> PLACE & STATEMENT == words.place and before >> WARP & WARPS != row
            tables.wrote[np.uint64(cell)] = with_lanes(new, before, row, warp, words)
            if fills:
                marks.filled[np.uint64(cell)] = 1
            if flight >= 0:
                marks.flying[np.uint64(cell)] = flight
        turn += 1
        if turn == len(words.lanes):
            turn = 0
    return SEVERAL if several else QUIET


def compile_all() -> None:
    """Have all of them compiled, or loaded: nothing is left to be compiled in a fork."""
    page, time, record = np.zeros(1, np.int64), np.zeros((1, 1), np.int32), np.zeros((1, 1), np.int64)
    words = Words(page, page, 1, 0, 0, 1, time[0].copy())
    tables = Tables(page, page, page.copy(), time, record, time.copy(), time.copy())
    for kind in (np.uint8, np.int32):
        all_become(page, page, np.zeros(1, kind), 1, page, 1)
        all_are(page, page, np.zeros(1, kind), 1, page, 1)
    tiles(record[0], np.zeros(1, np.uint8), time[0], time, page.reshape(1, 1))
    marks = Marks(np.zeros(1, np.uint8), np.zeros(1, np.int32))
    load(tables, words, marks, True, time[0])
    note_reads(page, page, words, time[0], record)
    store(tables, words, marks, True, 0, False)
    covers(tables, Operation((0, 1), (0, 1), 0, 0, time, record, time.copy()))
    numbers, byte = np.zeros(1, np.int32), np.zeros(1, np.uint8)
    own(Owners(0, numbers, numbers.copy(), byte, byte.copy()), words, numbers.copy(), byte.reshape(1, 1))
