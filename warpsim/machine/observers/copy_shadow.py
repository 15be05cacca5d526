"""Who touched each word of shared memory last, as far as asynchronous operations are concerned.

A word is 4 bytes. Of each there are the latest write, by a warp or by an operation; the latest read of each
warp of its CTA; and the latest reads of operations: one of a copy, one of each warpgroup's wgmma. Each has
the clock at which others know of it (clocks.py) and its statement. Does not know what is allowed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..asynchrony import Stretches

if TYPE_CHECKING:
    from ..program import Record
    from ..wave import Wave

Integers = npt.NDArray[np.int32]
Cells = npt.NDArray[np.int64]  # numbers of words
WORD = 4
NOBODY = -1
_GROUP = 4  # warps of a warpgroup


def cells_of(offsets: Cells, size: int) -> Cells:
    """``(lanes, words)``: the words that each lane's bytes lie in."""
    return np.asarray(offsets[:, None] // WORD + np.arange(max(-(-size // WORD), 1)))


def cells_within(stretches: Stretches) -> Cells:
    """The words of some ranges of bytes."""
    if len(stretches.ranges) == 1:
        first, past = stretches.ranges[0].tolist()
        return np.arange(first // WORD, -(-past // WORD))
    parts = [np.arange(first // WORD, -(-past // WORD)) for first, past in stretches.ranges.tolist()]
    return np.unique(np.concatenate(parts)) if parts else np.zeros(0, np.int64)


def reduces(record: Record) -> bool:
    """Whether an operation adds to what is there, or the like."""
    return record.statement.opcode == "red" or "reduce" in record.statement.modifiers


def in_a_row(cells: Cells) -> Cells | slice:
    """The same words, as a slice where they follow each other: that is several times faster to look at."""
    if not cells.size or int(cells[-1]) - int(cells[0]) != cells.size - 1:
        return cells
    return slice(int(cells[0]), int(cells[-1]) + 1)


@dataclass(eq=False)
class Shadow:
    """``writer`` and ``reader`` are components, or NOBODY; ``operation`` says that a writer is an operation.

    ``read`` and ``read_at`` are (warps of a CTA, words), those of operations that read (readers, words).
    """

    writer: Integers
    operation: npt.NDArray[np.bool_]
    due: Integers
    wrote_at: Integers
    lane: Integers  # of a warp that wrote, and how often it had synchronised then
    step: Integers
    read: Integers  # the clock of the reader, 0 for nobody
    read_at: Integers
    reader: Integers
    reader_due: Integers
    reader_at: Integers

    @classmethod
    def of(cls, wave: Wave) -> Shadow:
        """An empty one."""
        count, readers = wave.shared.size // WORD, 1 + -(-wave.warps // _GROUP)
        rows = np.zeros((4, count), np.int32)
        by_warp = np.zeros((2, wave.warps, count), np.int32)
        by_reader = np.zeros((2, readers, count), np.int32)
        return cls(
            writer=np.full(count, NOBODY, np.int32),
            operation=np.zeros(count, np.bool_),
            due=rows[0],
            wrote_at=rows[1],
            lane=rows[2],
            step=rows[3],
            read=by_warp[0],
            read_at=by_warp[1],
            reader=np.full((readers, count), NOBODY, np.int32),
            reader_due=by_reader[0],
            reader_at=by_reader[1],
        )

    def stored(self, cells: Cells | slice, writer: Any, due: Any, pc: int) -> None:
        """Warps have written words."""
        self.writer[cells] = writer
        self.due[cells] = due
        self.wrote_at[cells] = pc
        self.operation[cells] = False

    def brought(self, cells: Cells | slice, writer: int, due: int, pc: int) -> None:
        """An operation writes words; who read what was there before is forgotten."""
        self.stored(cells, writer, due, pc)
        self.operation[cells] = True
        self.read[:, cells] = 0
        self.reader[:, cells] = NOBODY

    def taken(self, cells: Cells, slot: int, reader: int, due: int, pc: int) -> None:
        """An operation reads words."""
        self.reader[slot, cells] = reader
        self.reader_due[slot, cells] = due
        self.reader_at[slot, cells] = pc
