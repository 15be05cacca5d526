"""What is said of operations that nothing orders with others: both statements, what is missing, and where.

Knows wording; whether something is wrong is found in copy_order.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...isa.warps import WARP
from ...machine.run.barriers.mbarrier import named
from ...machine.run.pending import Pending
from ...machine.state.lanes import DivergentPath, Lanes, Mask
from .findings import Findings, LaunchFinding, Severity
from .shadow import OPERATION, Cells, Shadow, has, places, times, whose

if TYPE_CHECKING:
    from ...machine.run.wave import Record, Wave
    from .mbarrier_checks import Wait
    from .order import Order

_TRY = "mbarrier.try_wait.parity"


class Words:
    """The findings of an observer."""

    def __init__(
        self, findings: Findings, order: Order, shadow: Shadow, waits: dict[tuple[int, int], int]
    ) -> None:
        self.findings, self.order, self.shadow = findings, order, shadow
        self.waits = waits  # by warp and mbarrier: the statement of its latest wait

    # --- what is found by accesses of warps ---

    def read_early(self, wave: Wave, path: DivergentPath, lanes: Lanes, cells: Cells, late: Mask) -> None:
        """Report bytes of a copy that are read by a warp that does not know that they have come."""
        cell, lane = _first(lanes, cells, late)
        missing, fix = self._not_waited(wave, lane // WARP, cell, _line(wave, path.pc))
        now = f"{_name(wave, path.pc)} reads {self._byte(wave, cell)}"
        self._say(wave, "read early", lane, f"{now}, {missing}; {fix}", (path.pc, self._writer(cell)))

    def multiplied_early(self, wave: Wave, path: DivergentPath, warp: int, cells: Cells, late: Mask) -> None:
        """Report a tile of a wgmma with bytes of a copy of which a warp does not know that they have come."""
        row, column = np.argwhere(late)[0].tolist()
        cell, lane = int(cells[column]), (warp + row) * WARP
        missing, fix = self._not_waited(wave, warp + row, cell, _line(wave, path.pc))
        now = f"{_name(wave, path.pc)} reads {self._byte(wave, cell)}"
        self._say(wave, "read early", lane, f"{now}, {missing}; {fix}", (path.pc, self._writer(cell)))

    def stored_under_a_copy(
        self, wave: Wave, path: DivergentPath, lanes: Lanes, cells: Cells, late: Mask
    ) -> None:
        """Report that a warp stores what a copy may still write."""
        cell, lane = _first(lanes, cells, late)
        missing, fix = self._not_waited(wave, lane // WARP, cell, _line(wave, path.pc))
        now = f"{_name(wave, path.pc)} writes {self._byte(wave, cell)}"
        self._say(wave, "source overwritten", lane, f"{now}, {missing}; {fix}", (path.pc, self._writer(cell)))

    def source_overwritten(
        self, wave: Wave, path: DivergentPath, lanes: Lanes, cells: Cells, busy: Mask
    ) -> None:
        """Report that a warp stores what an operation may still read."""
        cell, lane = _first(lanes, cells, busy)
        taken = int(self.shadow.taken[0, cell])
        pc, (wait, of) = int(places(taken)), self._wait_for(wave, lane, taken)
        what = (
            f"{_name(wave, path.pc)} writes {self._byte(wave, cell)}, which {_name(wave, pc)} of line "
            f"{_line(wave, pc)} may still read: nothing says here that it has been read"
        )
        fix = f"put {wait} before line {_line(wave, path.pc)}{of}"
        self._say(wave, "source overwritten", lane, f"{what}; {fix}", (path.pc, pc))

    def reader_apart(
        self, wave: Wave, path: DivergentPath, cells: Cells, apart: Mask, mine: Cells, waiter: int
    ) -> None:
        """Report that a lane stores where a copy has read, for which another lane of the warp has waited."""
        row, column = np.argwhere(apart)[0].tolist()
        cell, lane = int(cells[row, column]), int(mine[row, 0])
        pc = int(places(self.shadow.taken[0, cell]))
        what = (
            f"{_name(wave, path.pc)} writes {self._byte(wave, cell)}, which {_name(wave, pc)} of line "
            f"{_line(wave, pc)} has read as far as lane {waiter % WARP} knows, which has waited for it: "
            f"without bar.warp.sync in between other lanes of the warp may be here before"
        )
        fix = f"put bar.warp.sync 0xffffffff before line {_line(wave, path.pc)}"
        self._say(wave, "source overwritten", lane, f"{what}; {fix}", (path.pc, pc), severity="warning")

    def _wait_for(self, wave: Wave, lane: int, taken: int) -> tuple[str, str]:
        """Return the statement that waits for an operation that reads, and the warp that has to execute
        it.
        """
        clocks, component = self.order.clocks, int(whose(taken))
        cluster = lane // WARP // clocks.of_cluster
        if self.order.offset_of(cluster, component) is not None:
            return f"{_TRY} {self._phase(wave, cluster, component, int(times(taken)))}", ""
        family = next(name for name, known in clocks.groups.items() if component in known)
        waiter = int(np.flatnonzero(clocks.groups[family] == component)[0])
        if family.startswith("tcgen05"):
            barrier = f"{_TRY} on the mbarrier of a tcgen05.commit that follows it"
            return barrier, ""
        wait = "wgmma.wait_group.sync.aligned 0" if family == "wgmma" else "cp.async.bulk.wait_group.read 0"
        warp = waiter // WARP % wave.warps
        return (
            wait,
            f", in warp {warp}, lane {waiter % WARP}, and a barrier behind it if that is another warp",
        )

    # --- what is found when operations are issued ---

    def not_ordered(
        self, wave: Wave, path: DivergentPath, pending: Pending, cells: Cells, unknown: Mask
    ) -> None:
        """Report that an operation reads what is perhaps not there yet."""
        cell = int(cells[unknown.argmax()])
        now = f"{_name(wave, path.pc)} reads {self._byte(wave, cell)}"
        if has(self.shadow.wrote[cell], OPERATION):
            what, fix = self._not_waited(wave, pending.lane // WARP, cell, _line(wave, path.pc))
        else:
            writer, line = self._warp(cell), _line(wave, self._writer(cell))
            what = f"which warp {writer % wave.warps} stores at line {line}, without a barrier in between"
            here = _line(wave, path.pc)
            fix = f"put fence.proxy.async.shared::cta, then bar.sync, between lines {line} and {here}"
        self._say(wave, "not visible", pending.lane, f"{now}, {what}; {fix}", (path.pc, self._writer(cell)))

    def not_fenced(
        self, wave: Wave, path: DivergentPath, pending: Pending, cells: Cells, hidden: Mask
    ) -> None:
        """Report that an operation reads a store of the generic proxy, without a proxy fence."""
        cell = int(cells[hidden.argmax()])
        writer, line = self._warp(cell), _line(wave, self._writer(cell))
        what = (
            f"{_name(wave, path.pc)} reads {self._byte(wave, cell)}, which warp {writer % wave.warps} stores "
            f"at line {line}, through the async proxy: no fence.proxy.async has come between"
        )
        other = writer != pending.lane // WARP % self.order.clocks.of_cluster
        fix = f"put fence.proxy.async.shared::cta behind line {line}" + ", before the barrier" * other
        self._say(wave, "not visible", pending.lane, f"{what}; {fix}", (path.pc, self._writer(cell)))

    def covered_unfenced(
        self, wave: Wave, path: DivergentPath, pending: Pending, cells: Cells, hidden: Mask
    ) -> None:
        """Report a copy over a store of the generic proxy, without a proxy fence."""
        cell = int(cells[hidden.argmax()])
        pc = self._writer(cell)
        writer, line = self._warp(cell), _line(wave, pc)
        what = (
            f"{_name(wave, path.pc)} overwrites {self._byte(wave, cell)} through the async proxy, which "
            f"warp {writer % wave.warps} stores at line {line}: no fence.proxy.async says which comes last"
        )
        other = writer != pending.lane // WARP % self.order.clocks.of_cluster
        fix = f"put fence.proxy.async.shared::cta behind line {line}" + ", before the barrier" * other
        self._say(
            wave, "overwritten early", pending.lane, f"{what}; {fix}", (path.pc, pc), severity="warning"
        )

    def lanes_apart(
        self, wave: Wave, path: DivergentPath, pending: Pending, cells: Cells, apart: Mask
    ) -> None:
        """Report that an operation reads an unordered store of another lane of the warp."""
        cell = int(cells[apart.argmax()])
        pc, lane = self._writer(cell), int(whose(self.shadow.wrote[cell])) % WARP
        what = (
            f"{_name(wave, path.pc)} reads {self._byte(wave, cell)}, which lane {lane} of the same warp "
            f"stores at line {_line(wave, pc)}, without bar.warp.sync in between"
        )
        fix = f"put bar.warp.sync 0xffffffff before line {_line(wave, path.pc)}, where all lanes come by"
        self._say(wave, "not visible", pending.lane, f"{what}; {fix}", (path.pc, pc), severity="warning")

    def still_read(
        self, wave: Wave, path: DivergentPath, pending: Pending, cells: Cells, reading: Mask, warps: Cells
    ) -> None:
        """Report a copy over words that one of some warps of the cluster may still read."""
        row, column = np.argwhere(reading)[0].tolist()
        row, cell, clocks = int(warps[row]), int(cells[column]), self.order.clocks
        reader = pending.lane // WARP // clocks.of_cluster * clocks.of_cluster + row
        pc, time = int(places(self.shadow.read[row, cell])), int(times(self.shadow.read[row, cell]))
        line, here = _line(wave, pc), _line(wave, path.pc)
        released = clocks.was_released(reader, time)
        since = (
            "has arrived somewhere since, but no wait for that is here"
            if released
            else ("has not arrived anywhere since")
        )
        what = (
            f"{_name(wave, path.pc)} overwrites {self._byte(wave, cell)}, which warp {row % wave.warps} may "
            f"still read at line {line}: it {since}"
        )
        fix = f"put {_TRY} on the mbarrier that says that the readers are done before line {here}"
        if not released:
            fix = f"put mbarrier.arrive behind line {line}, and wait for it before line {here}"
        self._say(wave, "overwritten early", pending.lane, f"{what}; {fix}", (path.pc, pc))

    def still_taken(
        self, wave: Wave, path: DivergentPath, pending: Pending, cells: Cells, taking: Mask, slots: Cells
    ) -> None:
        """Report a copy over words that an operation, of one of some readers, may still read."""
        row, column = np.argwhere(taking)[0].tolist()
        taken = int(self.shadow.taken[int(slots[row]), int(cells[column])])
        cell, pc, (wait, of) = (
            int(cells[column]),
            int(places(taken)),
            self._wait_for(wave, pending.lane, taken),
        )
        what = (
            f"{_name(wave, path.pc)} overwrites {self._byte(wave, cell)}, which {_name(wave, pc)} of line "
            f"{_line(wave, pc)} may still read"
        )
        fix = f"put {wait} before line {_line(wave, path.pc)}{of}"
        self._say(wave, "overwritten early", pending.lane, f"{what}; {fix}", (path.pc, pc))

    def still_written(
        self, wave: Wave, path: DivergentPath, pending: Pending, cells: Cells, writing: Mask
    ) -> None:
        """Report a copy over words that a warp or operation may still write."""
        cell = int(cells[writing.argmax()])
        now, pc = f"{_name(wave, path.pc)} overwrites {self._byte(wave, cell)}", self._writer(cell)
        if has(self.shadow.wrote[cell], OPERATION):
            what, _ = self._not_waited(wave, pending.lane // WARP, cell, _line(wave, path.pc))
            fix = f"put {_TRY} on the mbarrier at which its readers arrive before line {_line(wave, path.pc)}"
        else:
            warp = self._warp(cell) % wave.warps
            what = f"which warp {warp} stores at line {_line(wave, pc)}, without a barrier in between"
            fix = f"put a barrier between lines {_line(wave, pc)} and {_line(wave, path.pc)}"
        self._say(wave, "overwritten early", pending.lane, f"{now}, {what}; {fix}", (path.pc, pc))

    # --- mbarriers and ends ---

    def over_early(self, wave: Wave, pending: Pending, offset: int, phase: int) -> None:
        """Bytes come after the end of the phase in which their copy was issued."""
        bytes_ = next(count for signal, count in pending.signals if signal == offset)
        what = (
            f"the {bytes_} bytes of {pending.record.statement.mnemonic} come after the end of phase {phase} "
            f"of the mbarrier {named(wave, offset)}, in which it was issued: the phase expected too few bytes"
        )
        fix = "let mbarrier.arrive.expect_tx expect the bytes of all copies of the phase, before it arrives"
        self._report_pending(wave, "phase over early", pending, what, fix)

    def overrun(self, wave: Wave, offset: int, record: Record, warp: int, wait: Wait) -> None:
        """Report a complete phase where no order shows that a warp has seen the end of the phase before."""
        line, place = _line(wave, wait.pc), record.statement.location()
        which = "the phase before the first" if not wait.phase else f"phase {wait.phase}"
        what = (
            f"{_name(wave, wait.pc)} waits for {which} of the mbarrier {named(wave, offset)} by its parity, "
            f"but nothing keeps phase {wait.phase + 1} from ending before, by {record.statement.mnemonic} of "
            f"line {place.line}: the wait would then go on until phase {wait.phase + 2}"
        )
        fix = (
            f"check the stage of line {line}; or let what arrives at {named(wave, offset)} in phase "
            f"{wait.phase + 1} wait for something that warp {warp % wave.warps} does behind line {line}"
        )
        finding = LaunchFinding(
            kind="phase overrun",
            severity="error",
            message=f"{what}; {fix} [{wave.describe_lane(warp * WARP)}]",
            location=wave.code[wait.pc].statement.location(),
            other=place,
        )
        self.findings.add(("phase overrun", wait.pc, place.line), finding)

    def not_begun(self, wave: Wave, path: DivergentPath, lane: int, offset: int, pc: int) -> None:
        """Report an mbarrier that is used by a warp that does not know of its initialisation."""
        what = (
            f"{_name(wave, path.pc)} uses the mbarrier {named(wave, offset)}, which another warp "
            f"initialises at line {_line(wave, pc)}, without a barrier in between"
        )
        fix = f"put bar.sync 0 behind line {_line(wave, pc)}"
        self._say(wave, "not initialised", lane, f"{what}; {fix}", (path.pc, pc))

    def not_stored(self, wave: Wave, pending: Pending) -> None:
        """Report a lane that exits without having waited for its bulk stores."""
        what = f"the lane exits while {pending.record.statement.mnemonic} may still read shared memory"
        fix = "put cp.async.bulk.wait_group.read 0 before the end"
        self._report_pending(wave, "left in flight", pending, what, fix, severity="warning")

    def not_awaited(self, wave: Wave, pending: Pending, offset: int) -> None:
        """Report a CTA that ends without having waited for a copy."""
        what = (
            f"the CTA ends while {pending.record.statement.mnemonic} may still write its shared memory: "
            f"no warp of the CTA has seen the end of its phase of the mbarrier {named(wave, offset)}"
        )
        fix = f"put {_TRY} on {named(wave, offset)} before the end, or do not issue the copy"
        self._report_pending(wave, "left in flight", pending, what, fix)

    # --- parts ---

    def _writer(self, cell: int) -> int:
        return int(places(self.shadow.wrote[cell]))

    def _warp(self, cell: int) -> int:
        """Return the warp of the cluster that has written a cell."""
        return int(whose(self.shadow.wrote[cell])) // WARP

    def _byte(self, wave: Wave, cell: int) -> str:
        return f"{named(wave, int(self.shadow.bytes_of(cell)), mbarrier=False)} of shared memory"

    def _phase(self, wave: Wave, cluster: int, component: int, due: int) -> str:
        offset = self.order.offset_of(cluster, component)
        assert offset is not None
        place = named(wave, offset)
        return f"on {place} with parity {(due - 1) & 1}"

    def _not_waited(self, wave: Wave, warp: int, cell: int, here: int) -> tuple[str, str]:
        """Return that a warp has not seen the end of the phase of a word's copy, and what to do."""
        wrote, cluster = int(self.shadow.wrote[cell]), warp // self.order.clocks.of_cluster
        component, due, pc = int(whose(wrote)), int(times(wrote)), int(places(wrote))
        offset = self.order.offset_of(cluster, component)
        assert offset is not None
        seen, at = int(self.order.clocks.visible[warp, component]), self.waits.get((warp, offset))
        what = (
            f"which {_name(wave, pc)} of line {_line(wave, pc)} brings: it is there when phase {due} of the "
            f"mbarrier {named(wave, offset)} is over, and warp {warp % wave.warps} has not seen that"
        )
        if at is not None:
            what += f" (its wait at line {_line(wave, at)} was over with phase {seen})"
            return what, f"wait there for phase {due}, parity {(due - 1) & 1}, before line {here}"
        return what, f"put {_TRY} {self._phase(wave, cluster, component, due)} before line {here}"

    def _say(
        self,
        wave: Wave,
        kind: str,
        lane: int,
        text: str,
        pcs: tuple[int, int],
        severity: Severity = "error",
    ) -> None:
        """Add a finding about two statements, the later one first."""
        pc, other = pcs
        record = wave.code[pc]
        finding = LaunchFinding(
            kind=kind,
            severity=severity,
            message=f"{text} [{wave.describe_lane(lane)}]",
            location=record.statement.location(),
            other=wave.code[other].statement.location(),
        )
        self.findings.add((kind, pc, other), finding)

    def _report_pending(
        self, wave: Wave, kind: str, pending: Pending, what: str, fix: str, severity: Severity = "error"
    ) -> None:
        place = pending.record.statement.location()
        message = f"{what}; {fix} [{wave.describe_lane(pending.lane)}]"
        finding = LaunchFinding(kind=kind, severity=severity, message=message, location=place)
        self.findings.add((kind, place.line), finding)


def _first(lanes: Lanes, cells: Cells, late: Mask) -> tuple[int, int]:
    """Return the first word in a mask, and the lane that touches it."""
    row, column = np.argwhere(late)[0].tolist()
    return int(cells[row, column]), int(lanes.index[row % lanes.count])


def _line(wave: Wave, pc: int) -> int:
    return wave.code[pc].statement.location().line


def _name(wave: Wave, pc: int) -> str:
    return wave.code[pc].statement.mnemonic
