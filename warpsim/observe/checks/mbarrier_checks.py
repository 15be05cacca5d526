"""mbarriers: memory used for something else while they are valid, waits that may miss a phase, wrong counts.

Between mbarrier.init and mbarrier.inval only mbarrier operations may touch an object, and init is none of
them: what else writes there, or begins another object, has no defined result (PTX ISA 9.1, sections
9.7.13.15.3 and 9.7.13.15.9). These are warnings: where the object is not used any more, nothing follows from
it, as in kernels of Triton 3.4 and 3.5, which let mbarriers lie in tiles. A use of a broken object is an
error of its own. Loads are not looked at.

A wait by parity distinguishes a phase from the next only. So a warp that waits for the end of phase n must
have looked before phase n + 1 ends, which is so where something that ends it comes after the wait: the
arrival of a warp that knows of it (section 9.7.13.15.16).

A warp whose lanes arrive by a statement arrives in a phase: where the phase is over after some of its lanes,
and the others arrive in the next, the count of the object is not that of the threads that arrive.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from ...isa.warps import WARP
from ...machine.run.barriers.mbarrier import Object, named
from ...machine.run.events import Observer
from ...machine.run.pending import Pending
from ...machine.state.lanes import DivergentPath, Lanes
from ...machine.state.memory_access import MemoryAccess
from ...machine.state.spaces import Offsets, words_at
from .clocks import Clocks, Warps
from .findings import Findings, LaunchFinding
from .order_kinds import places_of

if TYPE_CHECKING:
    from ...machine.run.wave import Record, Wave

_BYTES = 8


class LiveBarriers(Observer):
    """Reports writes to mbarriers that are valid."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.begun: dict[int, int] = {}  # by offset in the wave's shared memory: the statement that did it
        self.active = True
        self.valid: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)  # by 8 bytes

    def instrument(self, code: Sequence[Record]) -> Sequence[Record]:
        """Return the code as it is; where nothing begins, nothing is looked at."""
        self.active = any("init" in code[place].statement.modifiers for place in places_of(code, "mbarrier"))
        return code

    def initialised(self, wave: Wave, path: DivergentPath, lanes: Lanes, offsets: Offsets) -> None:
        """mbarriers begin."""
        if not self.valid.size:
            self.valid = np.zeros(-(-wave.memories.shared.size // _BYTES), np.bool_)
        for lane, offset in zip(lanes.index.tolist(), offsets.tolist(), strict=True):
            if offset in self.begun:
                self._report(wave, path.pc, lane, offset, "initialises the mbarrier")
            self.begun[offset] = path.pc
        self.valid[offsets // _BYTES] = True

    def invalidated(self, wave: Wave, path: DivergentPath, lanes: Lanes, offsets: Offsets) -> None:
        """mbarriers end."""
        for offset in offsets.tolist():
            self.begun.pop(offset, None)
        if self.valid.size:
            self.valid[offsets // _BYTES] = False

    def store(self, wave: Wave, access: MemoryAccess) -> None:
        """Bytes are about to be written."""
        if (
            access.memory is not wave.memories.shared
            or not self.begun
            or wave.code[access.path.pc].statement.opcode == "mbarrier"
        ):
            return
        cells = access.offsets[:, None] // _BYTES + np.arange(-(-access.size // _BYTES))
        struck = self.valid[cells]
        if struck.any():
            place, column = np.argwhere(struck)[0].tolist()
            lane = int(access.lane_of[place])
            self._struck(wave, access.path.pc, lane, cells[struck], int(cells[place, column]))

    def atomic(self, wave: Wave, access: MemoryAccess) -> None:
        """Bytes are about to be changed."""
        self.store(wave, access)

    def issued(self, wave: Wave, path: DivergentPath, pending: Pending) -> None:
        """Check the bytes that an operation will write."""
        if not self.begun:
            return
        for write in pending.writes:
            for first, past in write.ranges.tolist() if write.space == "shared" else ():
                low = first // _BYTES
                struck = low + self.valid[low : -(-past // _BYTES)].nonzero()[0]
                if struck.size:
                    self._struck(wave, path.pc, pending.lane, struck, int(struck[0]))

    def _struck(self, wave: Wave, pc: int, lane: int, cells: npt.NDArray[np.int64], first: int) -> None:
        """Objects are overwritten, and are objects no more."""
        self._report(wave, pc, lane, first * _BYTES, "overwrites the mbarrier")
        for offset in (np.unique(cells) * _BYTES).tolist():
            self.begun.pop(offset, None)
        self.valid[cells] = False

    def _report(self, wave: Wave, pc: int, lane: int, offset: int, what: str) -> None:
        record, other = wave.code[pc], wave.code[self.begun[offset]]
        line = other.statement.location().line
        finding = LaunchFinding(
            kind="mbarrier",
            severity="warning",
            message=(
                f"{record.statement.mnemonic} {what} at {offset % wave.memories.shared_stride:#x} "
                "of shared memory, "
                f"which that of line {line} has begun and mbarrier.inval has not ended: PTX leaves open what "
                f"comes of it [{wave.describe_lane(lane)}]"
            ),
            location=record.statement.location(),
            other=other.statement.location(),
            note="where it begins",
        )
        self.findings.add(("mbarrier", pc, self.begun[offset]), finding)


class SplitArrivals(Observer):
    """Reports warps of which some lanes arrive in a phase, and the others in the next."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings

    def updated(
        self, wave: Wave, path: DivergentPath, lanes: Lanes, offsets: Offsets, ends: dict[int, int]
    ) -> None:
        """Lanes have arrived at mbarriers, some of whose phases are complete now."""
        statement = wave.code[path.pc].statement
        words = statement.modifiers
        counted = len(statement.operands or ()) > 2 and "expect_tx" not in words
        if counted or "arrive" not in words:
            return
        for offset, count in ends.items():
            barrier = Object.of(int(words_at(wave.memories.shared, np.array([offset]), 8)[0, 0]))
            late = barrier.expected - barrier.pending
            if count != 1 or not late:
                continue
            each = np.unique(lanes.index[offsets == offset] // WARP, return_counts=True)
            behind = np.cumsum(each[1][::-1]).tolist()  # of the last warp, of the last two
            if late not in behind:
                warp = next(own for own, most in zip(each[0][::-1], behind, strict=True) if late < most)
                self._report(wave, path.pc, int(warp), offset, late)

    def _report(self, wave: Wave, pc: int, warp: int, offset: int, late: int) -> None:
        record = wave.code[pc]
        message = (
            f"{record.statement.mnemonic} ends a phase of the mbarrier {named(wave, offset)} before all "
            f"lanes of the warp have arrived: the next phase has {late} of its arrivals "
            f"[{wave.describe_lane(warp * WARP)}]"
        )
        finding = LaunchFinding(
            kind="phase split",
            severity="warning",
            message=message,
            location=record.statement.location(),
            fix="let the count of mbarrier.init be the number of threads that arrive in a phase",
            legal=True,
        )
        self.findings.add(("phase split", pc), finding)


class Wait(NamedTuple):
    """A warp's latest wait at an mbarrier: the phases that were complete, its statement, and its time."""

    phase: int
    pc: int
    time: int


class PhaseWaits:
    """The latest wait of each warp at each mbarrier."""

    def __init__(self) -> None:
        self.waits: dict[int, dict[int, Wait]] = {}  # by mbarrier and warp

    def begin(self, offset: int) -> None:
        """Forget the waits of an mbarrier that is initialised."""
        self.waits.pop(offset, None)

    def seen(self, clocks: Clocks, offset: int, phase: int, warps: Warps, pc: int) -> None:
        """Warps have seen that a phase is complete."""
        known = self.waits.setdefault(offset, {})
        for warp, time in zip(warps.tolist(), clocks.own(warps).tolist(), strict=True):
            known[warp] = Wait(phase, pc, time)

    def overrun(
        self, offset: int, phase: int, over: npt.NDArray[np.int32], clocks: Clocks
    ) -> Iterator[tuple[int, Wait]]:
        """Yield, for a complete phase (counted from 1), the warps whose wait for the phase before is not
        ordered before its end.
        """
        for warp, wait in self.waits.get(offset, {}).items():
            if wait.phase == phase - 1 and over[clocks.column[warp]] < wait.time:
                yield warp, wait
