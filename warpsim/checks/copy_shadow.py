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

from ..machine.run.asynchronous import Stretches

if TYPE_CHECKING:
    from ..machine.load.entries import Record
    from ..machine.run.wave import Wave

Integers = npt.NDArray[np.int32]
Cells = npt.NDArray[np.int64]  # numbers of words
WORD = 4
NOBODY = -1
_GROUP = 4  # warps of a warpgroup
_PAGE = 256  # words, of which is known whether anybody has read some of them: in most nobody ever has


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

    ``read`` and ``read_at`` are (warps of a CTA, words), of no words before one is read, those of operations
    that read (readers, words).
    ``visited`` (warps of a CTA, pages) and ``lent`` (readers, pages) say where they may be other than empty.
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
    visited: npt.NDArray[np.bool_]
    lent: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, wave: Wave) -> Shadow:
        """An empty one."""
        count, readers = wave.shared.size // WORD, 1 + -(-wave.warps // _GROUP)
        rows = np.zeros((4, count), np.int32)
        by_reader = np.zeros((2, readers, count), np.int32)
        return cls(
            writer=np.full(count, NOBODY, np.int32),
            operation=np.zeros(count, np.bool_),
            due=rows[0],
            wrote_at=rows[1],
            lane=rows[2],
            step=rows[3],
            read=np.zeros((wave.warps, 0), np.int32),
            read_at=np.zeros((wave.warps, 0), np.int32),
            reader=np.full((readers, count), NOBODY, np.int32),
            reader_due=by_reader[0],
            reader_at=by_reader[1],
            visited=np.zeros((wave.warps, -(-count // _PAGE)), np.bool_),
            lent=np.zeros((readers, -(-count // _PAGE)), np.bool_),
        )

    # --- who reads ---

    def warps_at(self, cells: Cells | slice) -> Cells:
        """The warps of the CTA that may have read words."""
        return np.flatnonzero(self.visited[:, _pages(cells)].any(axis=1))

    def slots_at(self, cells: Cells | slice) -> Cells:
        """The readers that stand for operations which may have read words."""
        return np.flatnonzero(self.lent[:, _pages(cells)].any(axis=1))

    # --- what happens ---

    def loaded(self, cells: Cells, warps: Cells, clocks: Any, pc: int) -> None:
        """Warps have read words; ``warps`` are numbers in their CTA."""
        if not self.read.size:
            self.read, self.read_at = np.zeros((2, len(self.visited), self.writer.size), np.int32)
        self.read[warps, cells] = clocks
        self.read_at[warps, cells] = pc
        self.visited[warps, cells // _PAGE] = True

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
        for warp in self.warps_at(cells).tolist():
            self.read[warp, cells] = 0
        for slot in self.slots_at(cells).tolist():
            self.reader[slot, cells] = NOBODY

    def taken(self, cells: Cells, slots: Any, readers: Any, dues: Any, pc: int) -> None:
        """Operations read words."""
        places = slots * self.reader.shape[1] + cells
        self.reader.reshape(-1)[places] = readers
        self.reader_due.reshape(-1)[places] = dues
        self.reader_at.reshape(-1)[places] = pc
        self.lent[slots, cells // _PAGE] = True


def rows_of(table: Integers, rows: Cells, cells: Cells | slice) -> Integers:
    """``(rows, words)``: the part of a table."""
    if not rows.size:
        return np.zeros((0, 1), np.int32)
    return np.asarray(table[rows, cells] if isinstance(cells, slice) else table[rows[:, None], cells])


def _pages(cells: Cells | slice) -> Cells | slice:
    """The pages that words lie in."""
    if isinstance(cells, slice):
        return slice(cells.start // _PAGE, -(-cells.stop // _PAGE))
    return cells // _PAGE
