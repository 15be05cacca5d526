"""Checks of memories: bytes that were never written, or that are still in flight.

What has been written in global memory outlives a launch: the memory knows it (machine/state/device.py). The
order of accesses is the business of shared_races.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...machine.run.clusters import in_shared
from ...machine.run.events import Observer
from ...machine.run.pending import Pending, Stretches
from ...machine.run.windows import place_of
from ...machine.state.lanes import DivergentPath, Lanes
from ...machine.state.memory_access import MemoryAccess
from ...machine.state.spaces import DEVICE_BASE, Allocation
from ...ptx.symbols import shown
from . import fast_path
from .fast_path.accesses import Accesses
from .finding_catalogue import Site, report
from .findings import Findings
from .wgmma.tile_reads import TileFault, report_tile

if TYPE_CHECKING:
    from ...machine.run.events import Share, WgmmaStatement
    from ...machine.run.wave import Wave


Marks = npt.NDArray[np.uint8]
Span = tuple[int, int]


class UninitialisedReads(Observer):
    """Reports bytes of shared and local memory, and registers, that are read before they are written."""

    def __init__(self, findings: Findings, accesses: Accesses) -> None:
        self.findings, self.order, self.accesses = findings, accesses.order, accesses
        self.complete: set[tuple[bytes, bytes]] = set()  # tiles that are written all over, by their keys

    def store(self, wave: Wave, access: MemoryAccess) -> None:
        """Mark the bytes as written; those of shared memory ``Races`` marks as it notes the store."""
        if access.memory is wave.memories.shared:
            return
        shadow = self.order.shadow_of(wave, access.memory)
        if shadow is not None:
            fast_path.become(wave, shadow, "filled", 1, access)
        elif access.memory is wave.memories.device.data and wave.memories.device.fresh is not None:
            marks, places = access.marks_in(wave.memories.device.fresh)
            marks[places] = 0

    landed = store

    def completed(self, wave: Wave, pending: Pending) -> None:
        """Mark what an operation has written; report bytes without a write that tcgen05 reads."""
        if pending.read is None and pending.reads and pending.group.startswith("tcgen05"):
            self._check_tiles(wave, pending)
        for stretches in pending.writes:
            table, spans, written = self._table(wave, stretches)
            for first, past in spans:
                table[first:past] = written

    def fetched(self, wave: Wave, pending: Pending) -> None:
        """Report bytes without a write that an operation reads."""
        for stretches in pending.reads:
            table, spans, written = self._table(wave, stretches)
            for place in _unwritten_places(table, spans, written):
                is_shared = stretches.space == "shared"
                byte = int(self.order.shared(wave).bytes_of(place)) if is_shared else place
                self._report_fetched(wave, pending, stretches.space, byte)

    def _check_tiles(self, wave: Wave, pending: Pending) -> None:
        """Report bytes without a write in tiles, which are looked at until they are complete."""
        shadow = self.order.shared(wave)
        for stretches in pending.reads:
            key = stretches.ranges.tobytes(), b""
            if key in self.complete:
                continue
            cells = shadow.within(stretches.ranges)
            missing = shadow.filled[cells] == 0
            if missing.any():
                byte = int(shadow.bytes_of(cells[missing.argmax()]))
                self._report_fetched(wave, pending, stretches.space, byte)
            else:
                self.complete.add(key)

    def _table(self, wave: Wave, stretches: Stretches) -> tuple[Marks, list[Span], int]:
        """Return what knows which bytes of stretches are written, where in it, and the mark that says so."""
        if stretches.space == "global":
            fresh = wave.memories.device.fresh
            return (np.zeros(0, np.uint8), [], 0) if fresh is None else (fresh, stretches.ranges.tolist(), 0)
        shadow = self.order.shared(wave)
        spans = shadow.spans(stretches.ranges)
        return shadow.filled, spans, 1

    def atomic(self, wave: Wave, access: MemoryAccess) -> None:
        """Report bytes without a write, unless they are only exchanged; then they hold something."""
        if "exch" not in wave.code[access.path.pc].statement.modifiers:
            self._look(wave, access)
        self.store(wave, access)

    def load(self, wave: Wave, access: MemoryAccess) -> None:
        """Report bytes without a write."""
        if access.memory is wave.memories.shared:
            seen = self.accesses.load(wave, access)
            if seen is not None and not seen.uninitialised:
                return
        self._look(wave, access)

    def _look(self, wave: Wave, access: MemoryAccess) -> None:
        shadow = self.order.shadow_of(wave, access.memory)
        if shadow is not None:
            if fast_path.all_are(wave, shadow, shadow.filled, 1, access):
                return
            cells = shadow.of(access)
            missing = shadow.filled[cells] == 0
        elif access.memory is wave.memories.device.data and wave.memories.device.fresh is not None:
            marks, places = access.marks_in(wave.memories.device.fresh)
            missing = marks[places] != 0
        else:
            return
        if missing.any():
            words = missing.any(axis=1)
            self._report_unwritten(wave, access, int(words.argmax()))

    def wgmma(self, wave: Wave, path: DivergentPath, statement: WgmmaStatement, share: Share) -> None:
        """Report bytes of tiles without a write."""
        if share.key in self.complete:
            return
        if not self.order.reads(wave, share).unfilled:
            self.complete.add(share.key)
            return
        cells = self.order.tiles(wave, share)
        missing = self.order.shared(wave).filled[cells] == 0
        if missing.any():
            report_tile(self.findings, wave, path, share, missing, TileFault("uninitialised tile"))
        else:
            self.complete.add(share.key)

    def _report_unwritten(self, wave: Wave, access: MemoryAccess, first: int) -> None:
        """Report the first word without a write, once for a statement."""
        key, pc = ("uninitialised", access.path.pc), access.path.pc
        if key in self.findings.known:
            return
        lane = int(access.lane_of[first])
        variable = self._variable(wave, access, first)
        if variable is not None:
            name = "constant not set" if variable.space == "const" else "variable not set"
            facts: dict[str, Any] = {"size": access.size, "space": variable.space}
            report(self.findings, name, Site(wave, pc, lane), key=key, variable=shown(variable.name), **facts)
            return
        bytes_ = f"{access.size} bytes at {place_of(wave, lane, access.memory, int(access.offsets[first]))}"
        report(self.findings, "uninitialised bytes", Site(wave, pc, lane), key=key, bytes=bytes_)

    @staticmethod
    def _variable(wave: Wave, access: MemoryAccess, first: int) -> Allocation | None:
        """Return the variable of the module that an access reads, None where it reads something else."""
        if access.memory is not wave.memories.device.data:
            return None
        allocation = wave.memories.device.allocation_at(DEVICE_BASE + int(access.offsets[first]))
        return allocation if allocation.space else None

    def _report_fetched(self, wave: Wave, pending: Pending, space: str, offset: int) -> None:
        statement = pending.record.statement
        memory = wave.memories.device.data if space == "global" else wave.memories.shared
        where = place_of(wave, pending.lane, memory, offset)
        key, record = ("uninitialised", statement.location().line), pending.record
        report(self.findings, "uninitialised bytes", Site(wave, record, pending.lane), key=key, bytes=where)

    def uninitialised(
        self, wave: Wave, path: DivergentPath, register: int, mask: npt.NDArray[np.bool_]
    ) -> None:
        """Warn of a register that is read and was never written."""
        if not mask.any():
            return
        key = "register", path.pc, register
        report(self.findings, "unwritten register", Site(wave, path.pc, int(mask.argmax())), key=key)

    def unspecified(self, wave: Wave, path: DivergentPath, lanes: Lanes, what: str) -> None:
        """Lanes get a result that PTX leaves open."""
        report(self.findings, "unspecified", Site(wave, path.pc, int(lanes.index[0])), what=what)

    def unusual(self, wave: Wave, path: DivergentPath, lane: int, what: str) -> None:
        """Warn of what PTX allows and few kernels mean."""
        report(self.findings, "unusual", Site(wave, path.pc, lane), what=what)


def _unwritten_places(table: Marks, spans: Sequence[Span], written: int) -> Iterator[int]:
    """Yield the first place of each span that lacks the mark; rows of a box are looked at together."""
    alike = len(spans) > 1 and {past - first for first, past in spans}
    if alike and len(alike) == 1:
        marks = table[np.array(spans)[:, :1] + np.arange(alike.pop())]
        if (marks == written).all():
            return
    for first, past in spans:
        missing = table[first:past] != written
        if missing.any():
            yield first + int(missing.argmax())


class CopiesInFlight(Observer):
    """Reports bytes of shared memory that are read while a cp.async may still be writing them."""

    def __init__(self, findings: Findings, accesses: Accesses) -> None:
        self.findings, self.order, self.accesses = findings, accesses.order, accesses

    def copying(self, wave: Wave, access: MemoryAccess) -> None:
        """Count the words in flight, which ``Races`` marks as it notes the copy."""
        self.accesses.flights += access.offsets.size

    def landed(self, wave: Wave, access: MemoryAccess) -> None:
        """Count the words that their copy has written."""
        self.accesses.flights -= access.offsets.size

    def wgmma(self, wave: Wave, path: DivergentPath, statement: WgmmaStatement, share: Share) -> None:
        """Report bytes of tiles that are in flight."""
        if not self.accesses.flights or not self.order.reads(wave, share).flying:
            return
        cells = self.order.tiles(wave, share)
        started = self.order.shared(wave).flying[cells]
        if started.any():
            copy = int(started[started > 0][0]) - 1
            report_tile(self.findings, wave, path, share, started > 0, TileFault("tile in flight", copy))

    def load(self, wave: Wave, access: MemoryAccess) -> None:
        """Bytes in flight are read: what is there is left to chance."""
        if not self.accesses.flights or access.memory is not wave.memories.shared:
            return
        seen = self.accesses.load(wave, access)
        if seen is not None and not seen.copy_in_flight:
            return
        shadow = self.order.shared(wave)
        if fast_path.all_are(wave, shadow, shadow.flying, 0, access):
            return
        cells = shadow.of(access)
        started = shadow.flying[cells]
        if not started.any():
            return
        row, column = np.argwhere(started)[0].tolist()
        lane = int(access.lane_of[row])
        byte = in_shared(wave, lane, int(access.offsets[row]) + column * (access.size // started.shape[1]))
        copy = int(started[row, column]) - 1
        report(self.findings, "copy in flight", Site(wave, access.path.pc, lane, copy), byte=byte)
