"""What an observer keeps of keys: registers by frame and number, memories by byte, accesses of a statement.

Knows cells and where they are; does not know what statements do with them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from ...machine.opcodes.tensor.tensor_places import TENSOR_MEMORY
from ...machine.run.events import Observer, helper
from ...machine.run.wave import Record, Step, Wave
from ...machine.state.lanes import DivergentPath, Frame, Lanes
from ...machine.state.memory_access import MemoryAccess
from .keys.finite_fields import Keys
from .keys.key_cells import Cells, MemoryCells
from .keys.key_reading import KeyReader
from .provenance import Copy, Provenance, Stores, place_of_wave
from .rules.functions_by_value import ByValue
from .rules.keyed_statements import Statement

Registers = dict[int, Cells]
_LOCAL, _TENSOR = "local memory of keys", "tensor memory of keys"  # slots of a wave


class KeyStore(Observer):
    """The keys of a launch, and what its statements left to say.

    ``provenance`` is kept where it is given. ``uninterpreted`` counts executions by opcode that had no law,
    ``overflows`` names statements whose signed integers wrapped. ``accesses`` are those of the current
    statement,
    ``together`` the lanes that executed it as a whole. ``loaded_from`` counts, by load, the statements that
    wrote what it has read.
    """

    target = ""  # of the module, which fragments of wmma depend on

    def __init__(self, reader: KeyReader, by_value: Sequence[str], provenance: Provenance | None) -> None:
        self.reader, self.provenance = reader, provenance
        self.by_value = ByValue(by_value)
        self.uninterpreted: Counter[str] = Counter()
        self.overflows = set[int]()
        self.memories = dict[int, MemoryCells]()
        self.accesses = list[MemoryAccess]()
        self.loaded_from = dict[int, Counter[int]]()
        self.code: Sequence[Record] = ()
        self.together: Lanes | None = None
        self._frames: WeakKeyDictionary[Frame, Registers] = WeakKeyDictionary()
        self._last: tuple[Frame | None, Registers] = (None, {})
        self._statements = dict[int, Statement]()

    def statement(self, pc: int) -> Statement:
        """Return what is known of a statement."""
        found = self._statements.get(pc)
        if found is None:
            found = self._statements[pc] = Statement(pc, self.code[pc])
        return found

    @helper
    def forgetting(
        self, wave: Wave, path: DivergentPath, lanes: Lanes, statement: Statement, inner: Step
    ) -> bool | None:
        """Execute a statement whose results have no keys."""
        frame = path.frame
        changed = inner(wave, path, lanes)
        self.forget(wave, frame, lanes, statement.writes)
        return changed

    # --- registers ---

    def registers(self, frame: Frame) -> Registers:
        """Return the cells of the registers of a frame, by number."""
        if frame is not self._last[0]:
            found = self._frames.get(frame)
            if found is None:
                found = self._frames[frame] = {}
            self._last = frame, found
        return self._last[1]

    @helper
    def forget(self, wave: Wave, frame: Frame, lanes: Lanes, numbers: Sequence[int]) -> None:
        """Let registers have no keys in lanes that have written them."""
        registers = self.registers(frame)
        for number in numbers:
            if number in registers:
                self.put(wave, frame, lanes, number, None)

    @helper
    def put(self, wave: Wave, frame: Frame, lanes: Lanes, number: int, cells: Cells | None) -> None:
        """Write the cells of a register, of all lanes of the wave, in some lanes; None for no keys."""
        registers = self.registers(frame)
        before = registers.get(number)
        if number < 0 or (cells is None and before is None):
            return
        if lanes.count != wave.alive:
            width = (cells or before).width  # type: ignore[union-attr]
            empty = Cells.empty(width, wave.lanes)
            cells = (cells or empty).merged(lanes.mask, before if before is not None else empty)
        if cells is None or not cells.any:
            registers.pop(number, None)
        else:
            registers[number] = cells

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
        """Take over the cells of local memory as it was before it grew."""
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
    def stored(self, wave: Wave, pc: int, access: tuple[Any, Any, Any], memory: Any, lanes: Any) -> None:
        """Note keys ``(words, size)`` that lanes store in the memory of the device."""
        if self.provenance is not None and memory is wave.memories.device.data:
            self.provenance.stores.append(Stores(pc, *access, lanes, place_of_wave(wave)))

    @helper
    def copied(
        self, wave: Wave, pc: int, data: Any, rows: tuple[Keys, Any], *, written: bool = False
    ) -> None:
        """Note keys and tags that a statement reads in a memory, or writes in shared memory."""
        if self.provenance is None or not rows[1].any():
            return
        device = data is wave.memories.device.data
        if not (device and written):
            kind = "device" if device else "write" if written else "read"
            self.provenance.copies.append(Copy(pc, kind, np.unique(rows[0][rows[1] != 0])))

    def note_writers(self, pc: int, writers: npt.NDArray[np.int32]) -> None:
        """Note which statements wrote what a statement reads."""
        self.loaded_from.setdefault(pc, Counter()).update(np.unique(writers).tolist())


def spread(cells: Cells, lanes: Lanes) -> Cells:
    """Return the cells of all lanes of a wave from those of some."""
    if lanes.whole:
        return cells
    if cells.kind:
        return Cells.of(lanes.spread(cells.keys[0]), cells.kind, cells.size, cells.writer)
    writer = lanes.spread(cells.writer) if np.ndim(cells.writer) else cells.writer
    return Cells(lanes.spread(cells.keys.T).T, lanes.spread(cells.tags.T).T, writer)


def spread_over(cells: Cells, lanes: Lanes, count: int) -> Cells:
    """Return the cells of all lanes of a wave, of an access of some."""
    return cells if cells.keys.shape[1] == count else spread(cells, lanes)


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
