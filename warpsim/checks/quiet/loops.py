"""Loops over the words of an access, compiled: what checks of whole arrays do where nothing is to be said.

Each function first looks, and changes tables only if nothing has to be looked at more closely. Cells and
records are those of shadow.py. Imported when it is worth loading a compiler.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...arithmetic.kernels._jit import Array, kernel

CLOSER, QUIET, SEVERAL = range(3)  # look closer; all is noted; the same, but warps may have met in a cell
# Of tiles: a cell was never written; a cp.async may write it; a warp wrote it; it may not have come yet.
UNFILLED, FLYING, GENERIC, LATE = 1, 2, 4, 8

_PAGE = 12  # bits of a place in a page
_PARTED, _OPERATION, _PRESENT = 8, 2, 1
_LANE, _WARP, _PLACE, _TIME = 4, 9, 19, 39  # where fields of a record begin: a lane is part of a warp
_WARPS, _STATEMENT = 0x3FF, 0xFFFFF  # their bits
_COMPONENTS = 0x7FFF  # bits of the component of an operation, from that of a lane on
_LANES, _IN_WARP = 5, 31  # bits of a lane in its warp


class Tables(NamedTuple):
    """What is known of a memory, as ``Shadow`` has it: ``shifts`` and ``bases`` (pages,) say where the cell
    of a byte is. ``visible`` (warps, components) is that of the clocks.
    """

    shifts: Array
    bases: Array
    wrote: Array
    writes: Array
    read: Array
    reads: Array
    visible: Array


class Words(NamedTuple):
    """An access: ``size`` bytes at each of ``offsets``, by lanes in rounds of all of them; its statement is
    ``place``; ``warps`` are those of a cluster; ``parted`` says whether lanes of a warp have been apart.
    """

    lanes: Array
    offsets: Array
    size: int
    place: int
    flags: int
    warps: int
    parted: bool


@kernel
def all_are(shifts: Array, bases: Array, table: Array, value: int, offsets: Array, size: int) -> bool:
    """Return whether all cells of words hold a value; false where cells have to be parted."""
    page, shift, base, count = -1, 0, 0, 0
    for word in range(len(offsets)):
        offset = offsets[word]
        if offset >> _PAGE != page:
            page = offset >> _PAGE
            shift, base = shifts[page], bases[page]
            count = size >> shift
            if count == 0:
                return False
        first = base + (offset >> shift)
        for cell in range(first, first + count):
            if table[np.uint64(cell)] != value:  # unsigned: no index counts from the end
                return False
    return True


@kernel
def all_become(shifts: Array, bases: Array, table: Array, value: int, offsets: Array, size: int) -> bool:
    """Let all cells of words hold a value; return false, with nothing done, where they have to be parted."""
    for word in range(len(offsets)):
        if size >> shifts[np.uint64(offsets[word] >> _PAGE)] == 0:
            return False
    page, shift, base, count = -1, 0, 0, 0
    for word in range(len(offsets)):
        offset = offsets[word]
        if offset >> _PAGE != page:
            page = offset >> _PAGE
            shift, base = shifts[page], bases[page]
            count = size >> shift
        first = base + (offset >> shift)
        for cell in range(first, first + count):
            table[np.uint64(cell)] = value
    return True


@kernel
def tiles(wrote: Array, filled: Array, flying: Array, known: Array, cells: Array) -> int:
    """Return what may have to be said of cells ``(rows, cells)`` that are read, by flags: UNFILLED, FLYING,
    GENERIC, LATE. ``known`` (rows, components) has the times up to which all is known to the readers.
    """
    found, latest = 0, np.int64(0)
    for row in range(len(cells)):
        for place in range(cells.shape[1]):
            cell = np.uint64(cells[row, place])
            found |= UNFILLED * (filled[cell] == 0) | FLYING * (flying[cell] != 0)
            seen = wrote[cell]
            if seen == latest or seen == 0:  # most cells of a tile are of one operation
                continue
            latest = seen
            if seen & _OPERATION == 0:
                found |= GENERIC
            elif known[row, seen >> _LANE & _COMPONENTS] < seen >> _TIME:
                found |= LATE
        latest = np.int64(0)
    return found


@kernel
def _late(seen: int, visible: Array, warp: int) -> bool:
    """Return whether an access by a warp, 0 for none, need not be before what another warp does."""
    if seen == 0 or seen & _OPERATION != 0:
        return False
    return bool(seen >> _TIME > visible[np.uint64(warp), np.uint64(seen >> _WARP & _WARPS)])


@kernel
def _record(time: int, row: int, words: Words) -> Any:
    """Return the record of an access by the first lane of a warp of a cluster."""
    return (np.int64(time) << _TIME) | (words.place << _PLACE) | (row << _WARP) | words.flags | _PRESENT


@kernel
def _all_known(reads: Array, visible: Array, warp: int, page: int) -> bool:
    """Return whether a warp knows of all reads in a page."""
    known = True
    for row in range(len(reads)):
        known &= reads[row, page] <= visible[warp, row]
    return known


@kernel
def _knows(tables: Tables, warp: int, first: int, count: int) -> bool:
    """Return whether a warp knows of all reads of some cells."""
    for row in range(len(tables.reads)):
        for cell in range(first, first + count):
            if _late(tables.read[row, cell], tables.visible, warp):
                return False
    return True


@kernel
def _apart(tables: Tables, row: int, first: int, count: int) -> bool:
    """Return whether lanes that were apart from others of their warp have accessed some cells, of a warp
    those that have read them.
    """
    found = 0
    for cell in range(first, first + count):
        found |= tables.wrote[np.uint64(cell)]
        if row < len(tables.reads):
            found |= tables.read[np.uint64(row), np.uint64(cell)]
    return found & _PARTED != 0


@kernel
def _all_before(tables: Tables, words: Words, stores: bool) -> bool:
    """Return whether the warps know of all writes to the words, and of all reads where they store."""
    turn, page, warp, shift, base, count, known = 0, -1, -1, 0, 0, 0, True
    for word in range(len(words.offsets)):
        offset, lane = words.offsets[word], words.lanes[np.uint64(turn)]
        if lane >> _LANES != warp or offset >> _PAGE != page:
            warp, page = lane >> _LANES, offset >> _PAGE
            shift, base = tables.shifts[page], tables.bases[page]
            count = words.size >> shift
            if count == 0:
                return False
            known = not stores or _all_known(tables.reads, tables.visible, warp, page)
        first = base + (offset >> shift)
        if not known and not _knows(tables, warp, first, count):
            return False
        if words.parted and _apart(tables, warp % words.warps, first, count):
            return False
        for cell in range(first, first + count):
            if _late(tables.wrote[np.uint64(cell)], tables.visible, warp):
                return False
        turn += 1
        if turn == len(words.lanes):
            turn = 0
    return True


@kernel
def _noted(tables: Tables, words: Words, table: Array, latest: Array) -> bool:
    """Put the records of words in a table ``(rows of warps, or 1, cells)``, and their times in ``latest``;
    return whether several warps may have met in a cell.
    """
    turn, page, warp, row, shift, base, count = 0, -1, -1, 0, 0, 0, 0
    head, several, own = np.int64(0), False, 0
    for word in range(len(words.offsets)):
        offset, lane = words.offsets[word], words.lanes[np.uint64(turn)]
        if lane >> _LANES != warp or offset >> _PAGE != page:
            warp, page = lane >> _LANES, offset >> _PAGE
            shift, base = tables.shifts[page], tables.bases[page]
            count, row = words.size >> shift, warp % words.warps
            own = row if len(table) > 1 else 0
            head = _record(tables.visible[warp, row], row, words)
            latest[row, page] = max(latest[row, page], tables.visible[warp, row])
        first, new = base + (offset >> shift), head | (lane & _IN_WARP) << _LANE
        for cell in range(first, first + count):
            before = table[np.uint64(own), np.uint64(cell)]
            several |= before >> _PLACE & _STATEMENT == words.place and before >> _WARP & _WARPS != row
            table[np.uint64(own), np.uint64(cell)] = new
        turn += 1
        if turn == len(words.lanes):
            turn = 0
    return several


@kernel
def load(tables: Tables, words: Words) -> int:
    """Note reads by lanes. Return CLOSER or QUIET."""
    if not _all_before(tables, words, False):
        return CLOSER
    _noted(tables, words, tables.read, tables.reads)
    return QUIET


@kernel
def store(tables: Tables, words: Words) -> int:
    """Note writes by lanes. Return CLOSER, QUIET or SEVERAL."""
    if not _all_before(tables, words, True):
        return CLOSER
    several = _noted(tables, words, tables.wrote.reshape(1, -1), tables.writes)
    return SEVERAL if several else QUIET


# --- operations ---------------------------------------------------------------------------------------


class Operation(NamedTuple):
    """An operation that writes ``cells``, those from the first of them to that before the last: the warp
    that issues it, the record of its writes, and what is known of the reads of operations.
    """

    cells: tuple[int, int]
    pages: tuple[int, int]
    warp: int
    record: int
    proxy: Array
    taken: Array
    takes: Array


@kernel
def _free(tables: Tables, operation: Operation, cell: int) -> bool:
    """Return whether the warp that issues knows of the write to a cell, as proxies must."""
    seen = tables.wrote[np.uint64(cell)]
    if seen == 0:
        return True
    component = seen >> _LANE & _COMPONENTS
    if seen & _OPERATION == 0:
        component >>= _LANES
        if operation.proxy[operation.warp, component] < seen >> _TIME:
            return False
    return bool(tables.visible[operation.warp, component] >= seen >> _TIME)


@kernel
def _unread(table: Array, row: int, tables: Tables, operation: Operation) -> bool:
    """Return whether the warp that issues knows of all reads in a row of a table of reads, by lanes of warps
    or by operations.
    """
    for cell in range(operation.cells[0], operation.cells[1]):
        seen = table[row, np.uint64(cell)]
        component = seen >> _LANE & _COMPONENTS if seen & _OPERATION else row
        if seen >> _TIME > tables.visible[operation.warp, component]:
            return False
    return True


@kernel
def _any(latest: Array, row: int, pages: tuple[int, int]) -> bool:
    """Return whether there is anything in some pages of a row."""
    found = False
    for page in range(pages[0], pages[1]):
        found |= latest[row, page] != 0
    return found


@kernel
def covers(tables: Tables, operation: Operation) -> int:
    """Note what an operation will write, and that nothing needs to know any more what has read there.
    Return CLOSER or QUIET.
    """
    first, past = operation.cells
    for cell in range(first, past):
        if not _free(tables, operation, cell):
            return CLOSER
    for table, latest in ((tables.read, tables.reads), (operation.taken, operation.takes)):
        for row in range(len(latest)):
            if _any(latest, row, operation.pages) and not _unread(table, row, tables, operation):
                return CLOSER
    for table, latest in ((tables.read, tables.reads), (operation.taken, operation.takes)):
        for row in range(len(latest)):
            if _any(latest, row, operation.pages):
                table[row, first:past] = 0
    tables.wrote[first:past] = operation.record
    return QUIET


# --- arrays of a launch -------------------------------------------------------------------------------


class Owners(NamedTuple):
    """The writes to global memory, as ``ArrayUse`` has them: by unit of ``1 << shift`` bytes the number of
    the CTA, 0 for none, and the statement; by byte whether there was any; and the memory.
    """

    shift: int
    owner: Array
    statement: Array
    written: Array
    memory: Array


@kernel
def _may_own(owners: Owners, words: Words, numbers: Array, stored: Array) -> bool:
    """Return whether no bytes of another CTA become others."""
    turn, units = 0, words.size >> owners.shift
    for word in range(len(words.offsets)):
        number, offset = numbers[words.lanes[np.uint64(turn)]], words.offsets[word]
        for unit in range(units):
            before = owners.owner[np.uint64((offset >> owners.shift) + unit)]
            if before != 0 and before != number:
                for byte in range(unit << owners.shift, unit + 1 << owners.shift):
                    if owners.memory[np.uint64(offset + byte)] != stored[word, byte]:
                        return False
        turn += 1
        if turn == len(words.lanes):
            turn = 0
    return True


@kernel
def own(owners: Owners, words: Words, numbers: Array, stored: Array) -> int:
    """Note writes by lanes, ``numbers`` has the CTA of each; ``stored`` (words, size), or nothing where that
    is not known. Return CLOSER, QUIET or SEVERAL, as ``store`` does, for CTAs.
    """
    if len(stored) and not _may_own(owners, words, numbers, stored):
        return CLOSER
    turn, units, several = 0, words.size >> owners.shift, False
    for word in range(len(words.offsets)):
        number, offset = numbers[words.lanes[np.uint64(turn)]], words.offsets[word]
        for unit in range(offset >> owners.shift, (offset >> owners.shift) + units):
            before = owners.owner[np.uint64(unit)]
            several |= before != 0 and before != number and owners.statement[np.uint64(unit)] == words.place
            owners.owner[np.uint64(unit)] = number
            owners.statement[np.uint64(unit)] = words.place
        for byte in range(offset, offset + words.size):
            owners.written[np.uint64(byte)] = 1
        turn += 1
        if turn == len(words.lanes):
            turn = 0
    return SEVERAL if several else QUIET


def compile_all() -> None:
    """Have all of them compiled, or loaded: nothing is left to be compiled in a fork."""
    page, time, record = np.zeros(1, np.int64), np.zeros((1, 1), np.int32), np.zeros((1, 1), np.int64)
    words = Words(page, page, 1, 0, 0, 1, False)
    tables = Tables(page, page, page.copy(), time, record, time.copy(), time.copy())
    for kind in (np.uint8, np.int32):
        all_become(page, page, np.zeros(1, kind), 1, page, 1)
        all_are(page, page, np.zeros(1, kind), 1, page, 1)
    tiles(record[0], np.zeros(1, np.uint8), time[0], time, page.reshape(1, 1))
    load(tables, words)
    store(tables, words)
    covers(tables, Operation((0, 1), (0, 1), 0, 0, time, record, time.copy()))
    numbers, byte = np.zeros(1, np.int32), np.zeros(1, np.uint8)
    own(Owners(0, numbers, numbers.copy(), byte, byte.copy()), words, numbers.copy(), byte.reshape(1, 1))
