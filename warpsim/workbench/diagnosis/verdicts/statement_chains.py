"""The statements that bring an operand of a matrix instruction, the last first: loads, then copies or stores.

Registers are followed backwards through the text, statement by statement, to the loads that fill them; bytes
of shared memory are followed in an execution that notes the last statement that wrote each of them. Knows
statements and bytes; does not know whether they are right.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ....base.errors import Location
from ....machine.run.events import Observer
from ....machine.run.pending import Pending
from ....machine.run.wave import Record, Wave
from ....machine.state.memory_access import MemoryAccess
from ....machine.state.side_tables import SideTable
from ....observe.algebra.locating.operand_copies import loads_of

Writers = npt.NDArray[np.int32]

_REGISTER = re.compile(r"(?<![\w.$%])%?[A-Za-z_$][\w$]*")  # inline assembly has names without %


def _unwritten(wave: Wave) -> Writers:
    return np.full(wave.memories.shared.size, -1, np.int32)


@dataclass
class SharedWriters(Observer):
    """Notes which statements wrote the bytes of shared memory that each statement reads."""

    written_by: dict[int, set[int]] = field(default_factory=dict)  # pc of a reader: pcs of writers
    _last: SideTable[Writers] = field(default_factory=lambda: SideTable(_unwritten))
    _number: dict[int, int] = field(default_factory=dict)  # id of a record: its pc

    def instrument(self, code: Sequence[Record]) -> Sequence[Record]:
        """Note the number of each record."""
        self._number = {id(record): pc for pc, record in enumerate(code)}
        return code

    def store(self, wave: Wave, access: MemoryAccess) -> None:
        """Note the writer of bytes of shared memory."""
        if access.memory is wave.memories.shared:
            self._last.of(wave)[access.cells] = access.path.pc

    copying = store

    def load(self, wave: Wave, access: MemoryAccess) -> None:
        """Note the writers of the bytes that a statement reads."""
        if access.memory is wave.memories.shared:
            self._read(access.path.pc, self._last.of(wave)[access.cells])

    def completed(self, wave: Wave, pending: Pending) -> None:
        """Note what an asynchronous copy has written."""
        pc = self._number.get(id(pending.record), -1)
        for stretches in pending.writes:
            if stretches.space == "shared":
                self._last.of(wave)[stretches.cells] = pc

    def fetched(self, wave: Wave, pending: Pending) -> None:
        """Note the writers of the bytes that an asynchronous operation reads."""
        pc = self._number.get(id(pending.record), -1)
        for stretches in pending.reads:
            if stretches.space == "shared":
                self._read(pc, self._last.of(wave)[stretches.cells])

    def _read(self, pc: int, writers: Writers) -> None:
        self.written_by.setdefault(pc, set()).update(np.unique(writers).tolist())


@dataclass(frozen=True, kw_only=True)
class Chain:
    """Statements that bring an operand, as places in the text: ``loads`` fill its registers, ``writers`` the
    shared memory that those read."""

    loads: tuple[Location, ...]
    writers: tuple[Location, ...]

    @property
    def nearest(self) -> Location | None:
        """The load, or the writer where the instruction reads shared memory itself."""
        return next(iter((*self.loads, *self.writers)), None)


def chain_of(code: Sequence[Record], at: Location, registers: Sequence[str], writers: SharedWriters) -> Chain:
    """Return what brings ``registers`` to the matrix instruction at a place; without registers, what it reads
    from shared memory.
    """
    number = next(pc for pc, record in enumerate(code) if record.statement.location() == at)
    loads = sorted(set(loads_of(code, number, registers)), reverse=True)
    readers = loads or [number]
    written = sorted({pc for reader in readers for pc in writers.written_by.get(reader, ()) if pc >= 0})
    return Chain(
        loads=tuple(code[pc].statement.location() for pc in loads),
        writers=tuple(code[pc].statement.location() for pc in written),
    )


def operand_registers(text: str, role: str) -> list[str]:
    """Return the registers of operand a, b, c, e, scale_a or scale_b of a matrix instruction, from the text
    of its operands.
    """
    groups = re.findall(r"\{[^}]*\}|[^,\s{}][^,{}]*", text)
    places: Mapping[str, int] = {"a": 1, "b": 2, "c": 3, "e": 4, "scale_a": -4, "scale_b": -2}
    place = places.get(role)
    inside = place is not None and -len(groups) <= place < len(groups)
    return _REGISTER.findall(groups[place]) if place is not None and inside else []
