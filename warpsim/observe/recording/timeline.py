"""A timeline of a launch: what warps wait for, copy, multiply and signal to each other, in the order of
events.

An event is a moment; warps that do the same in one step do so at one moment, and of consecutive matrix
instructions of a warp only the first is an event. Loads, stores and arithmetic are not events. What has
happened is as the schedule has it: a timeline is not a model of performance. Strips are bounded by a limit.
Knows the events of a wave; strips and links are strips.py's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...isa.families import is_matrix
from ...isa.warps import WARP
from ...machine.run.asynchronous import ASYNCHRONY
from ...machine.run.barriers.mbarrier import history_of, named
from ...machine.run.convergence import Warpgroups
from ...machine.run.events import GroupWait, MatrixExecution
from ...machine.state.lanes import DivergentPath, Lanes, Mask
from ...machine.state.memory_access import MemoryAccess
from .strip_keeper import StripKeeper, unless_full, warps_of
from .strips import Kind, Strip
from .timeline_state import is_commit, is_ended_by_itself, wait_kind

if TYPE_CHECKING:
    from ...machine.opcodes.matrix.wgmma_groups import Verb
    from ...machine.run.events import Groups, Share, WgmmaStatement
    from ...machine.run.pending import Pending
    from ...machine.run.wave import Record, Wave
    from ...machine.state.spaces import Offsets

_GROUP = 4  # warps of a warpgroup


class TimelineRecorder(StripKeeper):
    """An observer that keeps what selected warps of a launch do."""

    # --- statements ---

    def instrument(self, code: Sequence[Record]) -> Sequence[Record]:
        """Return the code, with records that report where waits begin."""
        return [self._reporting(record) for record in code]

    def _reporting(self, record: Record) -> Record:
        if is_commit(record.statement):

            def commit(wave: Wave, path: DivergentPath, lanes: Lanes) -> bool | None:
                self._state(wave).end_runs(warps_of(lanes))
                return record.step(wave, path, lanes)

            return record.stepping(commit)
        kind = wait_kind(record.statement)
        if kind is None:
            return record
        by_itself = is_ended_by_itself(record.statement)

        def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> bool | None:
            if self.is_full:
                return record.step(wave, path, lanes)
            pc = path.pc
            self._wait(wave, pc, lanes, kind)
            changed = record.step(wave, path, lanes)
            if by_itself:
                self._end(wave, lanes, pc)
            return changed

        return record.stepping(step)

    # --- waits ---

    @unless_full
    def mbarrier(self, wave: Wave, access: MemoryAccess) -> None:
        """Lanes look at mbarriers: those that wait may do so for ever, and this is for what."""
        waits = self._state(wave).waits
        for warp, offset in dict.fromkeys(
            zip((access.lanes.index // WARP).tolist(), access.offsets.tolist(), strict=True)
        ):
            if (warp, access.path.pc) in waits:
                waits[warp, access.path.pc][0].notes.setdefault(f"mbarrier {named(wave, offset)}", None)

    @unless_full
    def acquired(self, wave: Wave, path: DivergentPath, lanes: Lanes, offsets: Offsets) -> None:
        """Lanes have seen the end of a phase of mbarriers."""
        state = self._state(wave)
        for offset in np.unique(offsets).tolist():
            over = history_of(wave, offset).over
            phase = f"phase {over} is over" if over else "before its first phase is over"
            for warp in np.unique(lanes.index[offsets == offset] // WARP).tolist():
                strip, _ = state.waits.get((warp, path.pc), (None, None))
                if strip is not None:
                    strip.notes.pop(f"mbarrier {named(wave, offset)}", None)
                    strip.notes[f"mbarrier {named(wave, offset)}: {phase}"] = None
                    self._link(state.causes.get(offset), strip)
        self._end(wave, lanes, path.pc)

    @unless_full
    def meeting(self, wave: Wave, number: int, arrived: Mask, waited: Mask) -> None:
        """Link the last arrival at a complete barrier of CTAs to the waits that it ends."""
        state = self._state(wave)
        here = [state.came[warp] for warp in warps_of(Lanes(arrived)) if warp in state.came]
        for strip in self._end(wave, Lanes(waited), kind="barrier"):
            others = (other for other in here if other.cta == strip.cta)
            latest = max(others, key=lambda other: other.first, default=strip)
            if latest.first > strip.first:
                self._link(latest, strip, latest.first)

    @unless_full
    def arrived(self, wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        """Lanes arrive at the barrier of their cluster."""
        state = self._state(wave)
        for warp, strip in self._mark(wave, warps_of(lanes), path.pc, "arrival").items():
            state.clusters[warp // wave.warps // wave.cluster.count] = strip

    @unless_full
    def cluster_barrier(self, wave: Wave, clusters: npt.NDArray[np.intp]) -> None:
        """Remember the last arrival at a cluster barrier that is complete."""
        state = self._state(wave)
        found = {cluster: state.clusters.get(cluster) for cluster in clusters.tolist()}
        state.ended |= {cluster: strip for cluster, strip in found.items() if strip is not None}

    @unless_full
    def cluster_met(self, wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        """Lanes go on behind the barrier of their cluster."""
        state = self._state(wave)
        for warp in warps_of(lanes):
            cause = state.ended.get(warp // wave.warps // wave.cluster.count)
            self._link(cause, state.waits.get((warp, path.pc), (None, None))[0])
        self._end(wave, lanes, path.pc)

    @unless_full
    def exit(self, wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        """Lanes are done, also with mbarriers that they only asked once."""
        self._end(wave, lanes)
        state = self._state(wave)
        for warp in warps_of(lanes):
            if state.chosen[warp] and not wave.alive_mask[warp * WARP : (warp + 1) * WARP].any():
                self._warps[state.names[warp]] = self._moment(wave, "exit")

    # --- mbarriers and fences ---

    @unless_full
    def initialised(self, wave: Wave, path: DivergentPath, lanes: Lanes, offsets: Offsets) -> None:
        """mbarriers begin."""
        for strip in self._mark(wave, warps_of(lanes), path.pc, "start", run="start").values():
            strip.notes |= {f"mbarrier {named(wave, offset)}": None for offset in offsets.tolist()}

    @unless_full
    def updated(
        self, wave: Wave, path: DivergentPath, lanes: Lanes, offsets: Offsets, ends: dict[int, int]
    ) -> None:
        """Record that lanes arrive at mbarriers, or announce bytes to them."""
        state = self._state(wave)
        for warp, strip in self._mark(wave, warps_of(lanes), path.pc, "arrival").items():
            for offset in np.unique(offsets[lanes.index // WARP == warp]).tolist():
                ended = f", ends phase {history_of(wave, offset).over}" if ends.get(offset) else ""
                strip.notes[f"mbarrier {_named_from(wave, offset, warp)}{ended}"] = None
                if ended:
                    state.causes[offset] = strip

    @unless_full
    def fence(self, wave: Wave, path: DivergentPath, lanes: Lanes, words: tuple[str, ...]) -> None:
        """Record a fence."""
        self._mark(wave, warps_of(lanes), path.pc, "fence")

    # --- what is in flight ---

    @unless_full
    def issued(self, wave: Wave, path: DivergentPath, pending: Pending) -> None:
        """Record that an operation begins."""
        warp, pc = pending.lane // WARP, path.pc
        multiplies = pending.record.matrix is not None
        strip = self._multiplication(wave, warp, pc) if multiplies else self._flight(wave, warp, pc, pending)
        if strip is None:
            return
        strip.flying, strip.last = strip.flying + 1, None
        touched = () if multiplies else pending.writes or pending.reads
        strip.size += sum(
            int((stretches.ranges[:, 1] - stretches.ranges[:, 0]).sum()) for stretches in touched
        )
        strip.notes |= {f"mbarrier {_named_from(wave, offset, warp)}": None for offset, _ in pending.signals}
        self._state(wave).flights[pending] = strip

    def _flight(self, wave: Wave, warp: int, pc: int, pending: Pending) -> Strip | None:
        """Return the strip of what a thread issues; None if it is not shown."""
        statement, executions = pending.record.statement, list[tuple[int, int]]()
        if is_matrix(statement.opcode, statement.modifiers):
            executions.append(self._state(wave).execution(warp, pc))
        run = f"{pc} {pending.signals} {pending.number}"
        strip = self._add(wave, warp, pc, _kind_of(pending), name=pending.kind, run=run)
        if strip is not None:
            strip.executions += executions
        return strip

    @unless_full
    def completed(self, wave: Wave, pending: Pending) -> None:
        """Record that an operation is done."""
        self._down(wave, self._state(wave).flights.get(pending))

    def _down(self, wave: Wave, strip: Strip | None) -> None:
        if strip is not None:
            strip.flying -= 1
            if not strip.flying:
                strip.last = self._moment(wave, "completed")

    @unless_full
    def bytes_came(self, wave: Wave, pending: Pending, offset: int, over: bool) -> None:
        """Record that an operation signals its mbarrier, whose phase may be over by that."""
        state = self._state(wave)
        strip = state.flights.get(pending)
        if over:
            state.causes.pop(offset, None)
            if strip is not None:
                state.causes[offset] = strip

    @unless_full
    def drained(self, wave: Wave, wait: GroupWait) -> None:
        """Lanes have waited for groups: of copies, those of wgmma are counted apart."""
        if wait.family == "wgmma":
            return
        state, before = self._state(wave), ASYNCHRONY.of(wave).closed(wave, wait.family) - wait.most
        for pending, strip in list(state.flights.items()):
            awaited = pending.group == wait.family and wait.lanes.mask[pending.lane]
            if awaited and pending.number < before[pending.lane]:
                target, _ = state.waits.get((pending.lane // WARP, wait.path.pc), (None, None))
                self._link(strip, target, None if pending.done or target is None else target.first)
                if pending.done:
                    del state.flights[pending]

    @unless_full
    def copying(self, wave: Wave, access: MemoryAccess) -> None:
        """Lanes start copies of cp.async."""
        state, warps = self._state(wave), access.lanes.index // WARP
        for warp in warps_of(access.lanes):
            strip = self._add(wave, warp, access.path.pc, "copy", name="cp.async", run="cp.async")
            if strip is None:
                continue
            own = access.offsets[warps == warp].tolist()
            strip.size += access.size * len(own)
            strip.flying += len(own)
            for offset in own:
                if offset in state.copies:  # a copy over a copy that has not landed
                    self._down(wave, state.copies[offset])
                state.copies[offset] = strip

    @unless_full
    def landed(self, wave: Wave, access: MemoryAccess) -> None:
        """Record that copies of cp.async land."""
        state, done = self._state(wave), dict[Strip, int]()
        for offset, warp in zip(access.offsets.tolist(), (access.lanes.index // WARP).tolist(), strict=True):
            strip = state.copies.pop(offset, None)
            if strip is not None:
                self._down(wave, strip)
                done[strip] = warp
        for strip, warp in done.items():
            self._link(strip, state.waits.get((warp, access.path.pc), (None, None))[0])

    # --- matrix instructions ---

    @unless_full
    def matrix(self, wave: Wave, execution: MatrixExecution) -> None:
        """Warps execute an mma; wgmma and tcgen05.mma have events of their own."""
        if execution.instruction.lanes != WARP:  # what is asynchronous was noted when it was issued
            return
        pc = execution.pc
        for warp in execution.warps.tolist():
            numbered = self._state(wave).execution(warp, pc)
            strip = self._add(wave, warp, pc, "matrix", name="mma", run="mma")
            if strip is not None:
                strip.executions.append(numbered)
                strip.last = self.moments - 1

    def _multiplication(self, wave: Wave, warp: int, pc: int) -> Strip | None:
        """Return the strip of a wgmma of the warpgroup with that first warp; None if it is not shown."""
        execution = self._state(wave).execution(warp, pc)
        strip = self._add(wave, warp, pc, "wgmma", name="wgmma", warps=_GROUP, run="wgmma")
        if strip is not None:
            strip.executions.append(execution)
            self._state(wave).open.setdefault(warp, {})[strip] = None
        return strip

    @unless_full
    def wgmma(self, wave: Wave, path: DivergentPath, statement: WgmmaStatement, share: Share) -> None:
        """Warpgroups issue a wgmma; it completes at once where the schedule says so (run/asynchronous.py)."""
        if ASYNCHRONY.of(wave).moment not in ("program", "earliest"):
            return
        for group in share.groups.tolist():
            warp = int(Warpgroups.of(wave).warps[group])
            strip = self._multiplication(wave, warp, path.pc)
            if strip is not None:
                strip.flying += 1
                self._down(wave, strip)

    @unless_full
    def wgmma_order(self, wave: Wave, path: DivergentPath, groups: Groups, verb: Verb, most: int) -> None:
        """Warpgroups commit what they have issued, or wait for it."""
        places, state = Warpgroups.of(wave), self._state(wave)
        warps = places.warps[groups].tolist()
        if verb == "commit":
            state.close_groups(warps)
        if verb != "wait":
            return
        for warp in warps:
            for strip in state.awaited(warp, most):
                for own in range(warp, warp + _GROUP):
                    self._link(strip, state.waits.get((own, path.pc), (None, None))[0])
        self._end(wave, Lanes(np.isin(places.number, groups)), path.pc)


def _kind_of(pending: Pending) -> Kind:
    """Return what an operation is to the memory of its CTA: what it multiplies, brings in or takes out."""
    if pending.record.statement.opcode == "tcgen05":
        return "copy" if "cp" in pending.record.statement.modifiers else "tensor"
    return "copy" if any(write.space == "shared" for write in pending.writes) else "store"


def _named_from(wave: Wave, offset: int, warp: int) -> str:
    """Return an mbarrier as a warp would name it: in the shared memory of another CTA, with that."""
    own = int(offset // wave.memories.shared_stride)
    where = "" if own == warp // wave.warps else f" of CTA ({', '.join(map(str, wave.ctas[own].tolist()))})"
    return f"{named(wave, offset)}{where}"
