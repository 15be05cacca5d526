"""What an observer keeps of keys: registers by frame and number, memories by byte, accesses of a statement.

Knows cells and where they are; does not know what statements do with them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from ...isa.warps import WARP
from ...machine.opcodes.tensor.tensor_places import TENSOR_MEMORY
from ...machine.run.events import Observer, helper
from ...machine.run.wave import Record, Step, Wave
from ...machine.state.lanes import DivergentPath, Frame, Lanes
from ...machine.state.memory_access import MemoryAccess
from ...machine.state.side_tables import SideTable
from .keys.finite_fields import Keys
from .keys.key_cells import Cells, MemoryCells
from .keys.key_reading import KeyReader
from .provenance import Copy, Provenance, Stores, identity_of
from .provenance import Step as Made
from .rules.functions_by_value import ByValue
from .rules.keyed_statements import Statement, elements_of

Registers = dict[int, Cells]


class Turn(NamedTuple):
    """One execution of a statement: ``inner`` is what it does without keys."""

    wave: Wave
    path: DivergentPath
    lanes: Lanes
    frame: Frame  # before the statement, which may leave it
    statement: Statement
    inner: Step


_STATEMENTS = SideTable(lambda entry: dict[int, Statement]())
_LOCAL, _TENSOR = "local memory of keys", "tensor memory of keys"  # side tables of a wave


class KeyStore(Observer):
    """The keys of a launch, and what its statements left to say.

    ``provenance`` is kept where it is given. ``uninterpreted`` counts executions by opcode that had no law,
    ``overflows`` names statements whose signed integers wrapped. ``accesses`` are those of the current
    statement, ``together`` the lanes that executed it as a whole. ``written_by`` are
    the statements that wrote the shared memory that a statement, or an operand of it, reads, None where
    they are not kept.
    """

    target = ""  # of the module, which fragments of wmma depend on

    def __init__(self, reader: KeyReader, by_value: Sequence[str], provenance: Provenance | None) -> None:
        self.reader, self.provenance = reader, provenance
        self.by_value = ByValue(by_value)
        self.uninterpreted: Counter[str] = Counter()
        self.overflows = set[int]()
        self.memories = dict[int, MemoryCells]()
        self.accesses = list[MemoryAccess]()
        self.code: Sequence[Record] = ()
        self.together: Lanes | None = None
        self.fragments = dict[tuple[Any, ...], tuple[list[Cells | None], Keys]]()  # by registers
        self.written_by: dict[tuple[int, str], set[int]] | None = None if provenance is None else {}
        self._frames: WeakKeyDictionary[Frame, Registers] = WeakKeyDictionary()
        self._last: tuple[Frame | None, Registers] = (None, {})

    @helper
    def statement(self, wave: Wave, pc: int) -> Statement:
        """Return what is known of a statement: the same in all launches."""
        known = _STATEMENTS.of(wave.entry)
        found = known.get(pc)
        if found is None:
            found = known[pc] = Statement(pc, wave.entry.code[pc])
        return found

    def forgetting(self, turn: Turn) -> bool | None:
        """Execute a statement whose results have no keys."""
        changed = turn.inner(turn.wave, turn.path, turn.lanes)
        self.forget(turn, turn.statement.writes)
        return changed

    def execute(self, turn: Turn) -> tuple[bool | None, Lanes | None]:
        """Execute a statement; return what it returns, and the lanes that executed it together, if any."""
        changed = turn.inner(turn.wave, turn.path, turn.lanes)
        return changed, self.together or (None if changed else turn.lanes)

    # --- registers ---

    def registers(self, frame: Frame) -> Registers:
        """Return the cells of the registers of a frame, by number."""
        if frame is not self._last[0]:
            found = self._frames.get(frame)
            if found is None:
                found = self._frames[frame] = {}
            self._last = frame, found
        return self._last[1]

    def forget(self, turn: Turn, numbers: Sequence[int], lanes: Lanes | None = None) -> None:
        """Let registers have no keys in lanes that have written them."""
        registers = self.registers(turn.frame)
        for number in numbers:
            if number in registers:
                self.put(turn, number, None, lanes)

    def put(self, turn: Turn, number: int, cells: Cells | None, lanes: Lanes | None = None) -> None:
        """Write the cells of a register, of all lanes of the wave, in some lanes; None for no keys.

        The lanes are those of the turn, if none are given.
        """
        registers, lanes = self.registers(turn.frame), lanes or turn.lanes
        before = registers.get(number)
        if number < 0 or (cells is None and before is None):
            return
        if lanes.count != turn.wave.alive:
            if cells is not None:
                cells = cells.merged(lanes.mask, before)
            elif before is not None:
                cells = before.merged(~lanes.mask, None)
        if cells is None or not cells.any:
            registers.pop(number, None)
        else:
            registers[number] = cells

    def rearrange(self, turn: Turn, lanes: Lanes, rows: Cells | None, places: Any) -> None:
        """Write the first operand's registers: of the bytes of all rows of a warp, those at ``places
        (registers, 32, bytes)``.
        """
        warps = Lanes(np.repeat(lanes.mask[::WARP], WARP))
        for here, number in zip(places, turn.statement.numbers(0), strict=True):
            cells = rows and rows.rearranged(len(lanes.warps), here)
            self.put(turn, number, spread(cells, warps, turn.wave.lanes), lanes)

    def joined(self, turn: Turn, index: int) -> Cells:
        """Return the cells of an operand, those of a vector side by side."""
        statement, registers = turn.statement, self.registers(turn.frame)
        elements = list(elements_of(statement.spread(index)))
        sizes = [statement.width(each) for each in elements]
        known = max(sizes) or statement.width(statement.operands[0]) // len(elements) or 4
        empty = [Cells.empty(size or known, turn.wave.lanes) for size in sizes]
        held = [registers.get(statement.number(each)) for each in elements]
        return Cells.joined([own or none for own, none in zip(held, empty, strict=True)])

    @helper
    def made(self, turn: Turn, name: str, made: Keys, operands: Iterable[Keys], lanes: Any) -> None:
        """Note keys that a statement has made in lanes."""
        if self.provenance is not None:
            step = Made(turn.statement.pc, name, made, tuple(operands), lanes, identity_of(turn.wave))
            self.provenance.order.append(step)

    # --- memories ---

    def memory(self, data: npt.NDArray[np.uint8], wave: Wave | None = None) -> MemoryCells:
        """Return the cells of a memory; local memory of a wave grows, and its lanes move apart."""
        found = self.memories.get(id(data))
        if found is None:
            found = self.memories[id(data)] = MemoryCells(data)
            if wave is not None and data is wave.memories.local:
                self._grow(wave, found)
        return found

    def _grow(self, wave: Wave, cells: MemoryCells) -> None:
        before = wave.side_tables.get(_LOCAL)
        wave.side_tables[_LOCAL] = cells
        if before is not None:
            self.memories.pop(id(before.data), None)
            old = len(before.keys) // wave.lanes
            for name in ("keys", "tags", "writers"):
                table = getattr(cells, name).reshape(wave.lanes, -1)
                table[:, :old] = getattr(before, name).reshape(wave.lanes, -1)

    @helper
    def forget_wave(self, wave: Wave) -> None:
        """Forget the memories of a wave that has ended."""
        for data in (wave.memories.shared, wave.memories.local, wave.side_tables.pop(_TENSOR, None)):
            self.memories.pop(id(data), None)

    @helper
    def write(
        self, wave: Wave, pc: int, data: Any, place: tuple[Any, int], cells: Cells | None, lanes: Any
    ) -> None:
        """Write the cells of words at ``place``, offsets and size, for lanes."""
        self.memory(data, wave).store(*place, cells, pc)
        self.stored(wave, pc, data, place[0], cells, lanes)

    @helper
    def stored(
        self, wave: Wave, pc: int, data: Any, offsets: npt.NDArray[np.int64], cells: Cells | None, lanes: Any
    ) -> None:
        """Note what a statement has stored, for lanes, in the memory of the device, or copied elsewhere."""
        if self.provenance is None or cells is None or not cells.any:
            return
        if data is wave.memories.device.data:
            rows = np.ascontiguousarray(cells.keys.T)
            self.provenance.stores.append(Stores(pc, offsets, rows, lanes, identity_of(wave)))
        else:
            self.provenance.copies.append(Copy(pc, "write", np.unique(cells.known())))

    @helper
    def read(self, wave: Wave, pc: int, data: Any, offsets: npt.NDArray[np.int64], size: int) -> Cells | None:
        """Return the cells of words that a statement reads."""
        cells = self.memory(data, wave).load(offsets, size)
        if data is wave.memories.shared:
            self.note_writers(wave, pc, offsets, size)
        if cells is not None and self.provenance is not None:
            kind = "device" if data is wave.memories.device.data else "read"
            self.provenance.copies.append(Copy(pc, kind, np.unique(cells.known())))
        return cells

    @helper
    def note_writers(self, wave: Wave, pc: int, offsets: npt.NDArray[Any], size: int, role: str = "") -> None:
        """Note the statements that wrote the shared memory that a statement, or an operand of it, reads."""
        if self.written_by is not None:
            places = offsets[..., None] + np.arange(size)
            writers = np.unique(self.memory(wave.memories.shared).writers[places])
            self.written_by.setdefault((pc, role), set()).update(writers[writers >= 0].tolist())


def spread(cells: Cells | None, lanes: Lanes, count: int = 0) -> Cells | None:
    """Return the cells of all lanes of a wave, so many, from those of some."""
    if cells is None or lanes.whole or cells.lanes == count:
        return cells
    if cells.kind:
        there = None if cells.there is None else lanes.spread(cells.there)
        return Cells.of(lanes.spread(cells.numbers.T).T, cells.kind, cells.size, there)
    return Cells(lanes.spread(cells.keys.T).T, lanes.spread(cells.tags.T).T)


def tensor_bytes(wave: Wave) -> npt.NDArray[np.uint8]:
    """Return the bytes of tensor memory: the same array each time."""
    memory = TENSOR_MEMORY.of(wave)
    known = wave.side_tables.get(_TENSOR)
    if known is None:
        known = wave.side_tables[_TENSOR] = memory.cells.reshape(-1).view(np.uint8)
    found: npt.NDArray[np.uint8] = known
    return found


def bytes_of_space(wave: Wave, space: str) -> Any:
    """Return the bytes of "global", "shared" or "tensor" memory."""
    if space == "tensor":
        return tensor_bytes(wave)
    return wave.memories.device.data if space == "global" else wave.memories.shared
