"""Checks of memories: bytes that were never written, or that are still in flight.

A shadow has one byte for each byte of memory, so that an access to the memory is an access to the shadow. The
order of accesses is the business of shared_races.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..machine.run.clusters import in_shared
from ..machine.run.events import Observer, helper
from ..machine.run.pending import Pending
from ..machine.run.windows import place_of
from ..machine.state.lanes import DivergentPath, Lanes
from ..machine.state.memory_access import MemoryAccess
from ..machine.state.spaces import DEVICE_BASE, Allocation, Bytes
from ..ptx.symbols import shown
from .findings import Findings, LaunchFinding

if TYPE_CHECKING:
    from ..machine.run.wave import Record, Wave

Shadow = npt.NDArray[np.uint8]


def unset_variable(record: Record, size: int, variable: Allocation, lane: str) -> LaunchFinding:
    """Return the finding of a read of a variable that has no initial value and was never set.

    Compilers write ``= 0`` as no initial value, so a .global variable is worth a note only.
    """
    name, statement = shown(variable.name), record.statement
    message = (
        f"{statement.mnemonic} reads {size} bytes of {name}, a .{variable.space} variable without an initial "
        f"value that was never set [{lane}]"
    )
    constant = variable.space == "const"
    return LaunchFinding(
        kind="uninitialised",
        severity="warning" if constant else "note",
        message=message,
        location=statement.location(),
        fix=f'set it before the launch: module.symbol("{name}").set(...), or --symbol' if constant else "",
    )


class UninitialisedReads(Observer):
    """Reports bytes of shared and local memory, and registers, that are read before they are written."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.written: dict[int, Shadow] = {}

    @helper
    def shadow(self, wave: Wave, memory: Bytes) -> Shadow | None:
        """Return the shadow of a memory of the wave; device memory and parameters have none."""
        if memory is not wave.memories.shared and memory is not wave.memories.local:
            return None
        known = self.written.get(memory is wave.memories.shared)
        if known is None or known.size < memory.size:
            grown = np.zeros(memory.size, np.uint8)
            if known is not None:  # local memory has grown: a lane's bytes are no longer where they were
                grown[:] = 1
            known = self.written[memory is wave.memories.shared] = grown
        return known

    def store(self, wave: Wave, access: MemoryAccess) -> None:
        """Mark the bytes as written."""
        shadow = self.shadow(wave, access.memory)
        if access.memory is wave.memories.device.data and wave.memories.device.fresh is not None:
            wave.memories.device.fresh[access.cells] = 0
        if shadow is not None:
            unit = min(access.size, 8)
            view = shadow.view(f"u{unit}")
            for place in range(0, access.size, unit):
                view[(access.offsets + place) // unit] = (1 << 8 * unit) // 255

    landed = store

    def completed(self, wave: Wave, pending: Pending) -> None:
        """Mark what an operation has written."""
        for stretches in pending.writes:
            outside = stretches.space == "global"
            shadow = wave.memories.device.fresh if outside else self.shadow(wave, wave.memories.shared)
            if shadow is not None:
                for first, past in stretches.ranges.tolist():
                    shadow[first:past] = 0 if outside else 1

    def fetched(self, wave: Wave, pending: Pending) -> None:
        """Report bytes without a write that an operation reads."""
        for stretches in pending.reads:
            outside = stretches.space == "global"
            shadow = wave.memories.device.fresh if outside else self.shadow(wave, wave.memories.shared)
            if shadow is not None:
                for first, past in stretches.ranges.tolist():
                    missing = (shadow[first:past] != 0) == outside
                    if missing.any():
                        self._fetched(wave, pending, stretches.space, first + int(missing.argmax()))

    def atomic(self, wave: Wave, access: MemoryAccess) -> None:
        """Report bytes without a write, unless they are only exchanged; then they hold something."""
        if "exch" not in wave.code[access.path.pc].statement.modifiers:
            self.load(wave, access)
        self.store(wave, access)

    def load(self, wave: Wave, access: MemoryAccess) -> None:
        """Report bytes without a write."""
        if access.memory is wave.memories.device.data and wave.memories.device.fresh is not None:
            missing = wave.memories.device.fresh[access.cells].any(axis=1)
            if missing.any():
                self._found(wave, access, int(missing.argmax()))
            return
        shadow = self.shadow(wave, access.memory)
        if shadow is None:
            return
        unit = min(access.size, 8)
        view, whole = shadow.view(f"u{unit}"), (1 << 8 * unit) // 255
        for place in range(0, access.size, unit):
            missing = view[(access.offsets + place) // unit] != whole
            if missing.any():
                self._found(wave, access, int(missing.argmax()))
                return

    def _found(self, wave: Wave, access: MemoryAccess, first: int) -> None:
        lane = int(access.lane_of[first])
        record = wave.code[access.path.pc]
        variable = self._variable(wave, access, first)
        if variable is not None:
            finding = unset_variable(record, access.size, variable, wave.describe_lane(lane))
            self.findings.add(("uninitialised", access.path.pc), finding)
            return
        where = place_of(wave, lane, access.memory, int(access.offsets[first]))
        message = (
            f"{record.statement.mnemonic} reads {access.size} bytes at {where} that were never written "
            f"[{wave.describe_lane(lane)}]"
        )
        finding = LaunchFinding(
            kind="uninitialised", severity="warning", message=message, location=record.statement.location()
        )
        self.findings.add(("uninitialised", access.path.pc), finding)

    @staticmethod
    def _variable(wave: Wave, access: MemoryAccess, first: int) -> Allocation | None:
        """Return the variable of the module that an access reads, None where it reads something else."""
        if access.memory is not wave.memories.device.data:
            return None
        allocation = wave.memories.device.allocation_at(DEVICE_BASE + int(access.offsets[first]))
        return allocation if allocation.space else None

    def _fetched(self, wave: Wave, pending: Pending, space: str, offset: int) -> None:
        statement = pending.record.statement
        memory = wave.memories.device.data if space == "global" else wave.memories.shared
        where = place_of(wave, pending.lane, memory, offset)
        message = (
            f"{statement.mnemonic} reads {where} that were never written [{wave.describe_lane(pending.lane)}]"
        )
        finding = LaunchFinding(
            kind="uninitialised", severity="warning", message=message, location=statement.location()
        )
        self.findings.add(("uninitialised", statement.location().line), finding)

    def uninitialised(
        self, wave: Wave, path: DivergentPath, register: int, mask: npt.NDArray[np.bool_]
    ) -> None:
        """Warn of a register that is read and was never written."""
        if not mask.any():
            return
        message = "reads a register that was never written, as 0"
        self._warned(wave, path, "register", int(mask.argmax()), message, register)

    def unspecified(self, wave: Wave, path: DivergentPath, lanes: Lanes, what: str) -> None:
        """Lanes get a result that PTX leaves open; here it is 0."""
        self._warned(wave, path, "unspecified", int(lanes.index[0]), f"{what}: PTX leaves the result open")

    def _warned(
        self, wave: Wave, path: DivergentPath, kind: str, lane: int, what: str, detail: int | None = None
    ) -> None:
        """Warn about a lane at this statement, once."""
        statement = wave.code[path.pc].statement
        message = f"{statement.mnemonic} {what} [{wave.describe_lane(lane)}]"
        finding = LaunchFinding(kind=kind, severity="warning", message=message, location=statement.location())
        self.findings.add((kind, path.pc, detail), finding)


class CopiesInFlight(Observer):
    """Reports bytes of shared memory that are read while an asynchronous copy may still be writing them.

    ``started_at`` has, of each byte in flight, the statement that started its copy, plus 1.
    """

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.started_at: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self.flying = 0

    def copying(self, wave: Wave, access: MemoryAccess) -> None:
        """Mark the bytes as in flight."""
        if self.started_at.size != wave.memories.shared.size:
            self.started_at = np.zeros(wave.memories.shared.size, np.int32)
        self.started_at[access.cells] = access.path.pc + 1
        self.flying += access.offsets.size

    def landed(self, wave: Wave, access: MemoryAccess) -> None:
        """Mark the bytes as written by their copy."""
        self.started_at[access.cells] = 0
        self.flying -= access.offsets.size

    def load(self, wave: Wave, access: MemoryAccess) -> None:
        """Bytes in flight are read: what is there is left to chance."""
        if not self.flying or access.memory is not wave.memories.shared:
            return
        cells = access.cells
        started = self.started_at[cells]
        if not started.any():
            return
        row, column = (int(place) for place in np.argwhere(started)[0])
        lane = int(access.lane_of[row])
        record, copy = wave.code[access.path.pc], wave.code[int(started[row, column]) - 1]
        line = copy.statement.location().line
        byte = in_shared(wave, lane, int(cells[row, column]))
        message = (
            f"{record.statement.mnemonic} reads byte {byte} while the cp.async of "
            f"line {line} is in flight: no cp.async.wait_group that covers it has come between "
            f"[{wave.describe_lane(lane)}]"
        )
        finding = LaunchFinding(
            kind="in flight",
            severity="error",
            message=message,
            location=record.statement.location(),
            other=copy.statement.location(),
        )
        self.findings.add(("in flight", access.path.pc, int(started[row, column])), finding)
