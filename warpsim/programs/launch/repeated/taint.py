"""Taint of bytes that were never written and of rows of undefined metadata: does a launch depend on any?

The launch is executed again with a key on each such byte (observe/algebra), which moves as bytes move. What
a statement computes of a tainted operand is tainted, whatever its formula is: 0 times a NaN is a NaN. Where
no taint gets into global memory, an address, a guard, or a statement without a rule here, each statement does
the same whatever the bytes are, and no result depends on them. Knows which bytes are tainted; does not know
values.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.errors import Stopped, WarpsimError
from ....isa.formats import Format
from ....isa.fragments import metadata_map
from ....machine.run.events import MatrixExecution, helper
from ....machine.run.pending import Pending
from ....machine.run.wave import Record, Step, Wave
from ....machine.state.lanes import DivergentPath, Lanes, Mask, Values
from ....machine.state.memory_access import MemoryAccess
from ....machine.state.undefined_metadata import rows_of_undefined
from ....observe.algebra.key_store import Turn
from ....observe.algebra.keys.finite_fields import Keys
from ....observe.algebra.keys.key_cells import Cells, tag_of
from ....observe.algebra.keys.key_reading import KeyReader
from ....observe.algebra.matrix_keys import Matrices, MatrixOperands
from ....observe.algebra.moves import Handler
from ....observe.algebra.observer import Algebra
from ....observe.algebra.rules.keyed_statements import Statement
from .repetition import Counts, Repetition

_BYTE = tag_of("u", 1)
_MOST_STATEMENTS = 1 << 19  # of lanes, of a launch that is followed: a sixth of a second
_MOST_BYTES = 1 << 24  # of its memory
_BEGUN = "unwritten bytes are tainted"  # a side table of a wave
_FOLLOWED = ("copy", "load", "store", "matrices")  # meanings whose statements move bytes


def none_leaks(repetition: Repetition, counts: Counts, undefined: Collection[int]) -> bool:
    """Return whether it is proved that nothing depends on unwritten bytes and on rows of undefined metadata
    of the statements ``undefined``. Raises Stopped.

    Launches of clusters, and large launches, are not followed.
    """
    data, launch = repetition.data, repetition.launch
    lanes = min(launch.together, launch.total) * math.prod(launch.block)
    large = data is None or data.size > _MOST_BYTES or lanes * counts.sum() > _MOST_STATEMENTS
    if large or launch.cluster.count > 1:
        return False
    taint = TaintTracker()
    try:
        repetition.again(repetition.copy(), repetition.fresh_copy(), observers=lambda: (taint,))
    except (_Leak, WarpsimError) as error:
        if isinstance(error, Stopped):
            raise
        return False
    return taint.sparse.issuperset(undefined)


class _Leak(Exception):
    """Something may depend on tainted bytes."""


class _TaintReader(KeyReader):
    """Reads numbers of cells: 1 where any of their bytes is tainted, else 0."""

    def read(self, cells: Cells | None, bits: Values, kind: str, size: int, place: int = 0) -> Keys:
        """Return ``(lanes,)``."""
        if cells is None:
            return np.zeros(len(bits), np.uint64)
        return np.asarray(cells.tags[place : place + size].any(axis=0).astype(np.uint64))

    def elements(self, cells: Cells | None, bits: Values, element: Format, count: int) -> Keys:
        """Return ``(count, lanes)``: elements that share a word evenly."""
        if cells is None:
            return np.zeros((count, len(bits)), np.uint64)
        starts = np.arange(count) * cells.width // count
        return np.bitwise_or.reduceat((cells.tags != 0).astype(np.uint64), starts, axis=0)


class TaintTracker(Algebra):
    """An observer of all waves of a launch that ends it by an exception where taint may leak.

    ``sparse`` are the sparse products of which rows of undefined metadata are followed.
    """

    def __init__(self) -> None:
        super().__init__(_TaintReader(0), lambda algebra, wave: None)
        self.sparse = set[int]()
        self._guards = frozenset[int]()
        self.matrices = _TaintedMatrices(self)

    def instrument(self, code: Sequence[Record]) -> Sequence[Record]:
        """Return records that keep taint beside what they do."""
        self._guards = frozenset(record.guard for record in code)
        return super().instrument(code)

    def _wrapped(self, pc: int, record: Record) -> Step:
        inner, addresses = super()._wrapped(pc, record), record.flow.addresses

        def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> bool | None:
            if _BEGUN not in wave.side_tables:
                self._begin(wave)
            framed = record.flow.framed or path.frame.caller is not None
            if framed or self.tainted(path, lanes, addresses) is not None:
                raise _Leak
            return inner(wave, path, lanes)

        return step

    @helper
    def _begin(self, wave: Wave) -> None:
        """Taint the bytes that nothing has written when a wave begins."""
        wave.side_tables[_BEGUN], memories = True, wave.memories
        self._taint(self.memory(memories.shared), np.ones(memories.shared.size, np.bool_))
        fresh = memories.device.fresh
        if id(memories.device.data) not in self.memories and fresh is not None:
            self._taint(self.memory(memories.device.data), fresh != 0)

    @helper
    def _taint(self, memory: Any, mask: Mask) -> None:
        memory.keys[mask], memory.tags[mask] = 1, _BYTE

    def _grow(self, wave: Wave, cells: Any) -> None:
        self._taint(cells, np.ones(len(cells.keys), np.bool_))
        super()._grow(wave, cells)

    @helper
    def tainted(self, path: DivergentPath, lanes: Lanes, numbers: Iterable[int]) -> Mask | None:
        """Return which lanes of a wave have taint in any of some registers; None for none."""
        registers, found = self.registers(path.frame), None
        for number in numbers:
            if number in registers:
                own = registers[number].tags.any(axis=0) & lanes.mask
                found = own if found is None else found | own
        return found if found is not None and found.any() else None

    # --- statements ---

    def _handler(self, statement: Statement) -> Handler:
        semantics, moving = statement.record.semantics, self.handlers.get(statement.meaning)
        if statement.meaning in _FOLLOWED and moving is not None:
            return partial(self._moved, moving)
        if statement.opcode == "shfl" and moving is not None:
            return partial(self._careful, moving, statement.numbers(1))
        if statement.meaning == "atomic":
            return partial(self._careful, self._updated, ())
        if statement.meaning == "matrix product":
            return self.matrices.executed if statement.opcode == "mma" else _leak
        if semantics is not None and semantics.load is None and "cc" not in statement.modifiers:
            return self._computed
        return partial(self._careful, self.forgetting, ())

    def _moved(self, handler: Handler, turn: Turn) -> bool | None:
        changed = handler(turn)
        if self.uninterpreted:
            raise _Leak
        return changed

    def _careful(self, handler: Handler, apart: Collection[int], turn: Turn) -> bool | None:
        """Execute a statement none of whose operands, some ``apart``, may be tainted."""
        if self.tainted(turn.path, turn.lanes, set(turn.statement.reads).difference(apart)) is not None:
            raise _Leak
        return handler(turn)

    def _updated(self, turn: Turn) -> bool | None:
        changed = self.forgetting(turn)
        for access in self.accesses:
            if self.memory(access.memory, turn.wave).load(access.offsets, access.size) is not None:
                raise _Leak
        return changed

    def _computed(self, turn: Turn) -> bool | None:
        """Execute a statement that computes lane by lane."""
        tainted = self.tainted(turn.path, turn.lanes, turn.statement.reads)
        if tainted is None:
            return self.forgetting(turn)
        turn.inner(turn.wave, turn.path, turn.lanes)
        for number in turn.statement.writes:
            value = turn.frame.values[number]
            if value is not None:
                keys = np.broadcast_to(tainted.astype(np.uint64), (value.dtype.itemsize, tainted.size))
                self.put(turn, number, Cells.of(keys, "u", 1, there=tainted))
            if number in self._guards:  # a statement that no lane executes for it is not seen
                raise _Leak
        return None

    def put(self, turn: Turn, number: int, cells: Cells | None, lanes: Lanes | None = None) -> None:
        """Write the taint of a register, byte by byte."""
        if cells is not None:
            mask = (cells.keys != 0) & (cells.tags != 0)
            cells = Cells(mask.astype(np.uint64), mask * np.uint16(_BYTE))
        super().put(turn, number, cells, lanes)

    # --- memory ---

    def atomic(self, wave: Wave, access: MemoryAccess) -> None:
        """Note what a statement updates."""
        self.accesses.append(access)

    @helper
    def stored(
        self, wave: Wave, pc: int, data: Any, offsets: npt.NDArray[np.int64], cells: Cells | None, lanes: Any
    ) -> None:
        """Let no taint into global memory."""
        if data is wave.memories.device.data and cells is not None and cells.any:
            raise _Leak

    def completed(self, wave: Wave, pending: Pending) -> None:
        """Move the taint of a copy; other operations that read memory are not followed."""
        moved = None if pending.moved is None else pending.moved(wave)
        if (moved is None and pending.reads) or (moved is not None and (moved.update or moved.lossy)):
            raise _Leak
        super().completed(wave, pending)


def _leak(turn: Turn) -> bool | None:
    raise _Leak


class _TaintedMatrices(Matrices):
    """Products: an element of D comes of a row of A and its metadata, of a column of B, and of C there."""

    def __init__(self, tracker: TaintTracker) -> None:
        super().__init__(tracker)
        self.tracker = tracker

    def multiplied(self, wave: Wave, execution: MatrixExecution) -> None:
        """Write the taint of D."""
        work = MatrixOperands(self.tracker, self._turns[execution.pc], execution)
        operands = {number for role in "abce" for number in work.numbers_of(role)}
        turn, form = work.turn, execution.instruction
        others = set(turn.statement.reads) - operands
        if self.tracker.tainted(turn.path, work.lanes, others) is not None:
            raise _Leak
        rows, columns = (
            np.asarray(work.matrix(x).any(axis=y, keepdims=True)) for x, y in (("a", -1), ("b", -2))
        )
        if form.sparse:
            rows = rows | self._of_metadata(work).reshape(rows.shape)
        work.write((rows | columns | (work.matrix("c") != 0)).astype(np.uint64))

    def _of_metadata(self, work: MatrixOperands) -> Mask:
        """Return ``(executions, m)``: rows whose metadata are tainted or undefined."""
        form, inputs = work.form, work.inputs
        self.tracker.sparse.add(work.execution.pc)
        found = rows_of_undefined(form, inputs)
        cells = work.cells(work.numbers_of("e"))
        if cells is not None:
            if not work.wave.modes.literal:
                raise _Leak  # other metadata may be an error
            lane, row = metadata_map(form, inputs.selector)[:, [0, 3]].T
            tainted = cells.tags.any(axis=0).reshape(-1, form.lanes)
            np.logical_or.at(found.T, row, tainted[:, lane].T)
        return found
