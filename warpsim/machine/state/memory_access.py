"""An access of lanes to memory, as events carry it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .lanes import DivergentPath, Lanes, Values
from .spaces import Bytes, Offsets

_WIDEST = 8  # bytes of an element of NumPy


@dataclass(slots=True)
class MemoryAccess:
    """``size`` bytes at each of ``offsets`` in a memory that lanes of a path load, store or change.

    Each lane has one word, or several in as many rounds of all lanes. ``words`` is what is stored, a row for
    each offset, or None where that is not known.
    """

    path: DivergentPath
    lanes: Lanes
    memory: Bytes
    offsets: Offsets
    size: int
    words: Values | None = None

    @property
    def lane_of(self) -> npt.NDArray[np.intp]:
        """Return ``(words,)``: the lane of each."""
        index = self.lanes.index
        return index if index.size == self.offsets.size else np.resize(index, self.offsets.size)

    @property
    def cells(self) -> npt.NDArray[np.int64]:
        """Return ``(words, size)``: the places of all bytes."""
        return self.offsets[:, None] + np.arange(self.size)

    def marks_in(self, table: Bytes) -> tuple[Values, Offsets]:
        """Return a table with a mark for each byte of the memory, several together, and ``(words, parts)``:
        where those of the words are. Words are aligned to their size.
        """
        width = min(self.size & -self.size, _WIDEST)
        first = (self.offsets // width)[:, None]
        count = self.size // width
        return table.view(f"u{width}"), first if count == 1 else first + np.arange(count)

    @property
    def ranges(self) -> npt.NDArray[np.int64]:
        """Return ``(words, 2)``: where each begins and ends."""
        return np.stack((self.offsets, self.offsets + self.size), axis=-1)

    @property
    def stored(self) -> Bytes | None:
        """Return ``(words, size)``: the bytes of what is stored, if that is known."""
        if self.words is None:
            return None
        return np.ascontiguousarray(self.words).view(np.uint8).reshape(self.offsets.size, self.size)
