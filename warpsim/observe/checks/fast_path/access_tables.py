"""What compiled loops over accesses are given, and the questions that several of them ask.

Cells and records are those of shadow.py. Imported when it is worth loading a compiler.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....sums.arithmetic.kernels._jit import Array, kernel

# Look closer; all is noted; the same, but warps may have met in a cell; reads have to be in their table.
CLOSER, QUIET, SEVERAL, STALE = range(4)
# Of cells that are read: some were never written, a cp.async may write them, a warp wrote them; what wrote
# them need not have been before; of tiles, an operation did, or a warp.
UNFILLED, FLYING, GENERIC, LATE, UNORDERED = 1, 2, 4, 8, 16

PAGE = 12  # bits of a place in a page
MANY, STRONG, OPERATION, PRESENT = 8, 4, 2, 1
LANE, WARP, PLACE, TIME = 4, 9, 19, 39  # where fields of a record begin: a lane is part of a warp
WARPS, STATEMENT = 0x3FF, 0xFFFFF  # their bits
COMPONENTS = 0x7FFF  # bits of the component of an operation, from that of a lane on
LANES, IN_WARP = 5, 31  # bits of a lane in its warp


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


class Marks(NamedTuple):
    """What else is known of cells: which are written, and the cp.async that may still write them."""

    filled: Array
    flying: Array


class Words(NamedTuple):
    """An access: ``size`` bytes at each of ``offsets``, by lanes in rounds of all of them; its statement is
    ``place``; ``warps`` are those of a cluster; ``since`` (warps,) is when all lanes of each were ordered.
    """

    lanes: Array
    offsets: Array
    size: int
    place: int
    flags: int
    warps: int
    since: Array


@kernel
def all_are(shifts: Array, bases: Array, table: Array, value: int, offsets: Array, size: int) -> bool:
    """Return whether all cells of words hold a value; false where cells have to be parted."""
    page, shift, base, count = -1, 0, 0, 0
    for word in range(len(offsets)):
        offset = offsets[word]
        if offset >> PAGE != page:
            page = offset >> PAGE
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
        if size >> shifts[np.uint64(offsets[word] >> PAGE)] == 0:
            return False
    page, shift, base, count = -1, 0, 0, 0
    for word in range(len(offsets)):
        offset = offsets[word]
        if offset >> PAGE != page:
            page = offset >> PAGE
            shift, base = shifts[page], bases[page]
            count = size >> shift
        first = base + (offset >> shift)
        for cell in range(first, first + count):
            table[np.uint64(cell)] = value
    return True


@kernel
def is_late(seen: int, visible: Array, warp: int) -> bool:
    """Return whether an access by a warp, 0 for none, need not be before what another warp does."""
    if seen == 0 or seen & OPERATION != 0:
        return False
    return bool(seen >> TIME > visible[np.uint64(warp), np.uint64(seen >> WARP & WARPS)])


@kernel
def is_of_lanes(seen: int, row: int, warp: int, words: Words) -> bool:
    """Return whether an access is one of lanes of the same warp, not ordered with others of it since."""
    if seen == 0 or seen & OPERATION != 0 or seen >> WARP & WARPS != row:
        return False
    return bool(seen >> TIME >= words.since[np.uint64(warp)])


@kernel
def is_apart(seen: int, row: int, warp: int, lane: int, words: Words) -> bool:
    """Return whether an access by one lane, which another lane of its warp makes as well, is not ordered
    with it; strong accesses need not be.
    """
    if seen & words.flags & STRONG != 0 or seen >> LANE & IN_WARP == lane & IN_WARP:
        return False
    return is_of_lanes(seen, row, warp, words)


@kernel
def with_lanes(new: int, before: int, row: int, warp: int, words: Words) -> Any:
    """Return the record of an access that takes the place of another record: of many lanes where that is of
    another lane, and is not ordered with it.
    """
    if not is_of_lanes(before, row, warp, words):
        return new
    many = before & MANY != 0 or (before ^ new) >> LANE & IN_WARP != 0
    return new | MANY if many else new


@kernel
def record_of(time: int, row: int, words: Words) -> Any:
    """Return the record of an access by the first lane of a warp of a cluster."""
    return (np.int64(time) << TIME) | (words.place << PLACE) | (row << WARP) | words.flags | PRESENT


@kernel
def all_known(latest: Array, visible: Array, warp: int, page: int) -> bool:
    """Return whether a warp knows of all that warps have done in a page."""
    known = True
    for row in range(len(latest)):
        known &= latest[row, page] <= visible[warp, row]
    return known
