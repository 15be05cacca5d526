"""Which bytes of device memory some waves of a launch read and write, and the pages that have them.

Knows accesses and pages; does not know what becomes of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...machine.run.events import Observer, helper
from ...machine.run.pending import Pending, Stretches
from ...machine.run.wave import Wave
from ...machine.state.memory_access import MemoryAccess
from ...machine.state.spaces import Bytes

READ, WRITTEN = 1, 2
PAGE = 4096  # bytes
_BLOCK = PAGE << 8  # bytes that are looked through at a time
_PAGES_AT_ONCE = 1 << 8  # of which copies are made
_MOST = 1 << 12  # ranges of operations that are remembered


@dataclass
class Touched(Observer):
    """An observer that notes which bytes of device memory are read and written."""

    marks: Bytes = field(default_factory=lambda: np.zeros(0, np.uint8))
    _known: set[tuple[int, bytes]] = field(default_factory=set)  # marks of ranges, which come again

    def load(self, wave: Wave, access: MemoryAccess) -> None:
        """Mark bytes that are read."""
        self._mark(wave, access, READ)

    def store(self, wave: Wave, access: MemoryAccess) -> None:
        """Mark bytes that are written."""
        self._mark(wave, access, WRITTEN)

    def atomic(self, wave: Wave, access: MemoryAccess) -> None:
        """Mark bytes that are read and written."""
        self._mark(wave, access, READ | WRITTEN)

    def fetched(self, wave: Wave, pending: Pending) -> None:
        """Mark bytes that an asynchronous operation reads."""
        self._mark_ranges(wave, pending.reads, READ)

    def completed(self, wave: Wave, pending: Pending) -> None:
        """Mark bytes that an asynchronous operation has written."""
        self._mark_ranges(wave, pending.writes, WRITTEN)

    @helper
    def _mark(self, wave: Wave, access: MemoryAccess, mark: int) -> None:
        if access.memory is not wave.memories.device.data:
            return
        self._room(wave)
        table, places = access.marks_in(self.marks)
        ones = np.array((1 << 8 * table.itemsize) // 255 * mark, table.dtype)
        table[places] |= ones

    @helper
    def _mark_ranges(self, wave: Wave, stretches: tuple[Stretches, ...], mark: int) -> None:
        for each in stretches:
            if each.space != "global" or each.some is None:
                continue
            self._room(wave)
            key = mark, each.ranges.tobytes()
            if key not in self._known:
                if len(self._known) == _MOST:
                    self._known.clear()
                self._known.add(key)
                for first, past in each.ranges.tolist():
                    self.marks[first:past] |= np.uint8(mark)

    @helper
    def _room(self, wave: Wave) -> None:
        size = wave.memories.device.data.size
        if self.marks.size != size:
            self.marks = np.zeros(size, np.uint8)
            self._known.clear()


def pages_of(marks: Bytes, mark: int) -> npt.NDArray[np.int64]:
    """Return the numbers of the pages that have a mark."""
    found = [
        np.flatnonzero((part & mark).reshape(-1, PAGE).any(axis=1)) + first // PAGE
        for first in range(0, marks.size // PAGE * PAGE, _BLOCK)
        if (part := marks[first : min(first + _BLOCK, marks.size // PAGE * PAGE)]).any()
    ]
    rest = marks[marks.size // PAGE * PAGE :]
    last = [np.array([marks.size // PAGE])] if (rest & mark).any() else []
    return np.concatenate([np.zeros(0, np.int64), *found, *last]).astype(np.int64)


def gathered(table: npt.NDArray[Any], pages: npt.NDArray[np.int64], width: int = PAGE) -> npt.NDArray[Any]:
    """Return ``(pages, width)``: copies of some pages of a table, in rising order; the last is filled up.

    ``width`` is the number of elements for a page of bytes.
    """
    found = np.zeros((len(pages), width), table.dtype)
    whole, rest = _parts(table, width)
    inside = np.searchsorted(pages, len(whole))
    found[:inside] = whole[pages[:inside]]
    if inside < len(pages):
        found[-1, : rest.size] = rest
    return found


def put_pages(
    table: npt.NDArray[Any],
    pages: npt.NDArray[np.int64],
    marks: npt.NDArray[np.bool_],
    content: npt.NDArray[Any],
) -> None:
    """Write the marked elements of some pages to a table; ``(pages, width)`` marks and elements."""
    width = marks.shape[1]
    whole, rest = _parts(table, width)
    for part in parts_of(pages):
        here = pages[part]
        mixed = np.where(marks[part], content[part], gathered(table, here, width))
        inside = np.searchsorted(here, len(whole))
        whole[here[:inside]] = mixed[:inside]
        if inside < len(here):
            rest[:] = mixed[-1, : rest.size]


def parts_of(pages: npt.NDArray[np.int64]) -> Iterator[slice]:
    """Yield parts of some pages, each small beside a memory: copies of it take little room."""
    return (slice(first, first + _PAGES_AT_ONCE) for first in range(0, len(pages), _PAGES_AT_ONCE))


def _parts(table: npt.NDArray[Any], width: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the whole pages of a table, and what is behind them; views."""
    size = table.size // width * width
    return table[:size].reshape(-1, width), table[size:]
