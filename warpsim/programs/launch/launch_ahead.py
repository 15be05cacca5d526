"""A whole launch that a fork executes before its turn, on the memory of the device as it is then.

When its turn comes, what it has done is taken if this process would do the same now: no byte that it has read
is another, or no longer unwritten. Otherwise, and where it fails, dies, or leaves what cannot be taken, the
caller executes the launch. So bytes and findings are those of launches one behind the other.

Knows memory and forks; does not know kernels.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...machine.run.events import Observer
from ...machine.state.spaces import Bytes, DeviceMemory
from .forks import Cursor, Fork, begun, check_marked
from .touched_bytes import PAGE, READ, WRITTEN, Touched, gathered, pages_of, parts_of, put_pages

_NEVER = 1e9  # seconds


@dataclass(frozen=True, kw_only=True)
class _Done:
    """What a fork has returned, and how many pages it has read and written."""

    result: Any
    read: int
    written: int


class LaunchAhead:
    """A launch that a fork executes: a function that is given an observer, for the launch to notify.

    The function returns what the caller needs, which is to have a pickle, or raises where that cannot be
    taken.
    """

    def __init__(self, memory: DeviceMemory, execute: Callable[[Observer], Any]) -> None:
        self._memory = memory
        self._data = memory.data.copy()
        self._fresh = None if memory.fresh is None else memory.fresh.copy()
        most = memory.data.size * 3 + 32 * (memory.data.size // PAGE + 2) * 8
        self._fork: Fork | None = begun(lambda pages: self._executed(execute, pages), most)

    def take(self) -> Any | None:
        """Put in place what the launch has written; return what the function returned.

        None where it is not to be taken, and nothing has changed.
        """
        done = None if self._fork is None else self._fork.wait(_NEVER)
        try:
            return done.result if isinstance(done, _Done) and self._put(done) else None
        finally:
            self.end()

    def end(self) -> None:
        """End the fork."""
        if self._fork is not None:
            self._fork.end()
        self._fork = None

    def _executed(self, execute: Callable[[Observer], Any], room: mmap.mmap) -> _Done:
        """Execute the launch in the fork, and put the bytes that it touched in place."""
        memory, touched = self._memory, Touched()
        memory.detach(self._data)
        kept = tuple(memory.allocations)
        result = execute(touched)
        if memory.data.size != self._data.size or tuple(memory.allocations) != kept:
            raise RuntimeError("the launch has allocated memory")
        if touched.marks.size != memory.data.size:
            touched.marks = np.zeros(memory.data.size, np.uint8)
        check_marked(memory.data, self._data, touched.marks)
        reading, writing = (pages_of(touched.marks, mark) for mark in (READ, WRITTEN))
        cursor = Cursor(np.frombuffer(room, np.uint8))
        for pages in (reading, writing):
            cursor.put(pages)
            cursor.put(gathered(touched.marks, pages))
        cursor.put(gathered(memory.data, writing))
        return _Done(result=result, read=len(reading), written=len(writing))

    def _put(self, done: _Done) -> bool:
        """Put bytes in place; return whether this process would have done the same."""
        assert self._fork is not None, "it has answered"
        memory, cursor = self._memory, Cursor(np.frombuffer(self._fork.pages, np.uint8))
        reading, read = cursor.take(np.int64, done.read), cursor.pages(np.uint8, done.read)
        writing, written = cursor.take(np.int64, done.written), cursor.pages(np.uint8, done.written)
        content = cursor.pages(np.uint8, done.written)
        if not self._same(reading, (read & READ) != 0):
            return False
        marks = (written & WRITTEN) != 0
        put_pages(memory.data, writing, marks, content)
        if memory.fresh is not None:
            put_pages(memory.fresh, writing, marks, np.zeros_like(content))
        return True

    def _same(self, pages: npt.NDArray[np.int64], read: npt.NDArray[np.bool_]) -> bool:
        """Return whether bytes that the fork has read are now what they were when it began."""
        memory = self._memory
        pairs: list[tuple[Bytes, Bytes]] = [(self._data, memory.data)]
        if (self._fresh is None) != (memory.fresh is None) or self._data.size != memory.data.size:
            return False
        if self._fresh is not None and memory.fresh is not None:
            pairs.append((self._fresh, memory.fresh))
        return not any(
            ((gathered(then, pages[part]) != gathered(now, pages[part])) & read[part]).any()
            for then, now in pairs
            for part in parts_of(pages)
        )
