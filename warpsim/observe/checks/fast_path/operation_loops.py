"""Loops over the cells that operations read or write, compiled, as those of accesses are (loops.py)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....sums.arithmetic.kernels._jit import Array, kernel
from .access_tables import (
    CLOSER,
    COMPONENTS,
    FLYING,
    GENERIC,
    LANE,
    LANES,
    LATE,
    OPERATION,
    QUIET,
    TIME,
    UNFILLED,
    UNORDERED,
    WARP,
    WARPS,
    Tables,
)


@kernel
def tiles(wrote: Array, filled: Array, flying: Array, known: Array, cells: Array) -> int:
    """Return what may have to be said of cells ``(rows, cells)`` that are read, by flags: UNFILLED, FLYING,
    GENERIC, LATE, UNORDERED. ``known`` (rows, components) has the times up to which readers know of all.
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
            if seen & OPERATION == 0:
                found |= GENERIC | UNORDERED * (known[row, seen >> WARP & WARPS] < seen >> TIME)
            elif known[row, seen >> LANE & COMPONENTS] < seen >> TIME:
                found |= LATE
        latest = np.int64(0)
    return found


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
    component = seen >> LANE & COMPONENTS
    if seen & OPERATION == 0:
        component >>= LANES
        if operation.proxy[operation.warp, component] < seen >> TIME:
            return False
    return bool(tables.visible[operation.warp, component] >= seen >> TIME)


@kernel
def _reads_are_ordered(table: Array, row: int, tables: Tables, operation: Operation) -> bool:
    """Return whether the warp that issues knows of all reads in a row of a table of reads, by lanes of warps
    or by operations.
    """
    for cell in range(operation.cells[0], operation.cells[1]):
        seen = table[row, np.uint64(cell)]
        component = seen >> LANE & COMPONENTS if seen & OPERATION else row
        if seen >> TIME > tables.visible[operation.warp, component]:
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
            if _any(latest, row, operation.pages) and not _reads_are_ordered(table, row, tables, operation):
                return CLOSER
    for table, latest in ((tables.read, tables.reads), (operation.taken, operation.takes)):
        for row in range(len(latest)):
            if _any(latest, row, operation.pages):
                table[row, first:past] = 0
    tables.wrote[first:past] = operation.record
    return QUIET
