"""Rules of asynchronous operations on shared memory: what must happen before what.

    read early           bytes of a copy are read by a warp that has not seen the end of its mbarrier's phase
    overwritten early    a copy is issued over bytes that a warp or operation may still read, or write; where
    a warp has
                         stored them in order, but without a proxy fence: a warning
    source overwritten   a warp stores where an operation may still read, or a copy may still write; where
                         another lane of the warp knows better, and the two have not met since: a warning
    not visible          an operation reads what a warp has stored without a barrier, or without a proxy
                         fence; what another lane of the warp has, without bar.warp.sync: a warning
    phase over early     bytes come in a later phase than that in which their copy was issued
    not initialised      an mbarrier is used without a barrier since another warp has initialised it
    phase overrun        a phase may end while a warp still waits for the phase before (mbarrier_checks.py)
    left in flight       a CTA ends, and no warp has waited for a copy to its memory or from it

What is ordered is judged by the happens-before relation (order.py), so that a copy which happens to be in
time is found as well. A wgmma with operands in registers, A or metadata, begins when its four warps have
their values: a warp that has waited for it knows that what they loaded before has been read, as CUTLASS's
sparse pipeline has it. Only modules that have asynchronous operations are looked at. Messages are in
copy_words.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from weakref import proxy

import numpy as np
import numpy.typing as npt

from ...isa.warps import WARP
from ...machine.run.convergence import Warpgroups
from ...machine.run.events import GroupWait, Observer, helper
from ...machine.run.pending import Pending, Stretches
from ...machine.state.lanes import DivergentPath, Lanes, Mask
from ...machine.state.memory_access import MemoryAccess
from ...machine.state.spaces import Offsets
from . import fast_path
from .clocks import HAPPENED, Clock, Clocks, Warps
from .copy_words import Words
from .findings import Findings
from .index_runs import in_a_row
from .mbarrier_checks import PhaseWaits
from .order import Order, Watcher
from .order_kinds import kinds_of
from .shadow import OPERATION, Cells, Records, Shadow, has, places, record, times, whose

if TYPE_CHECKING:
    from ...machine.run.events import Share, WgmmaStatement
    from ...machine.run.wave import Record, Wave

_COPIES = 0  # the row of the shadow that stands for operations that are not wgmma
_End = tuple[int, int]  # the component that says that an operation is complete, and from which time on


class CopyOrder(Watcher, Observer):
    """An observer of operations that nothing orders with what comes before or after them."""

    shadow: Shadow
    words: Words

    def __init__(self, findings: Findings, order: Order) -> None:
        self.findings, self.order = findings, order
        self.active = self.ready = False
        self.promised: dict[int, tuple[int, Pending]] = {}  # by mbarrier: the phase of the latest copy
        self.waits: dict[tuple[int, int], int] = {}  # by warp and mbarrier: the statement of its latest wait
        self.issued_in: dict[tuple[Pending, int], int] = {}  # by mbarrier: phases that were over
        self.stored: dict[int, tuple[int, Pending]] = {}  # by lane: the number of the latest group, plus 1
        self.phase_waits = PhaseWaits()
        self.drained_at: dict[int, int] = {}  # by lane that has waited for its groups: the time

    def instrument(self, code: Sequence[Record]) -> Sequence[Record]:
        """Return the code as it is; nothing is looked at where nothing is asynchronous."""
        self.active = kinds_of(code).asynchronous
        if self.active:
            self.order.watchers.append(proxy(self))  # each would hold the other after the launch
        return code

    @helper
    def looks(self, wave: Wave) -> bool:
        """Return whether there is anything to look at; prepared when first asked."""
        if self.active and not self.ready:
            self.ready = True
            self.shadow = self.order.shared(wave)
            self.words = Words(self.findings, self.order, self.shadow, self.waits)
        return self.active

    @property
    def clocks(self) -> Clocks:
        """The clocks of the wave."""
        return self.order.clocks

    # --- mbarriers ---

    def initialised(self, wave: Wave, path: DivergentPath, lanes: Lanes, offsets: Offsets) -> None:
        """mbarriers begin: waits for those that were there before are of no more use."""
        for offset in offsets.tolist() if self.looks(wave) else ():
            self.promised.pop(offset, None)
            self.phase_waits.begin(offset)

    def updated(
        self, wave: Wave, path: DivergentPath, lanes: Lanes, offsets: Offsets, ends: dict[int, int]
    ) -> None:
        """Lanes arrive at mbarriers: they know that these have been initialised."""
        for offset in ends if self.looks(wave) else ():
            self._check_begun(wave, path, int(lanes.index[offsets == offset][0]), offset)

    def acquired(self, wave: Wave, path: DivergentPath, lanes: Lanes, offsets: Offsets) -> None:
        """Lanes wait at mbarriers: they know that these have been initialised."""
        for offset in np.unique(offsets).tolist() if self.looks(wave) else ():
            self._check_begun(wave, path, int(lanes.index[offsets == offset][0]), offset)

    def _check_begun(self, wave: Wave, path: DivergentPath, lane: int, offset: int) -> None:
        if not self.order.knows(wave, lane, offset):
            self.words.not_begun(wave, path, lane, offset, self.order.begun[offset][2])

    @helper
    def waited(self, wave: Wave, path: DivergentPath, warps: Warps, offset: int) -> None:
        """Warps have waited for a phase."""
        self.waits |= {(warp, offset): path.pc for warp in warps.tolist()}
        self.phase_waits.seen(self.clocks, offset, self.order.barrier_at(offset).phases, warps, path.pc)

    @helper
    def ended(self, wave: Wave, offset: int, record: Record, lane: int) -> None:
        """Check, when a phase is over, that no warp may still wait for the phase before."""
        barrier = self.order.barrier_at(offset)
        for warp, wait in self.phase_waits.overrun(
            offset, barrier.phases, barrier.over[HAPPENED], self.clocks
        ):
            self.words.overrun(wave, offset, record, warp, wait)

    # --- accesses of warps ---

    def load(self, wave: Wave, access: MemoryAccess) -> None:
        """Bytes are read: those that an operation brings must have come, as far as the reader knows."""
        if access.memory is not wave.memories.shared or not self.looks(wave):
            return
        cells, warps = self.shadow.of(access), access.lane_of[:, None] // WARP
        late = _unfinished_cells(self.shadow.wrote[cells], self.clocks.visible, warps)
        if late is not None:
            self.words.read_early(wave, access.path, access.lanes, cells, late)

    def store(self, wave: Wave, access: MemoryAccess) -> None:
        """Bytes are written: no operation may still read them, or write."""
        if access.memory is not wave.memories.shared or not self.looks(wave):
            return
        cells, warps = self.shadow.of(access), access.lane_of[:, None] // WARP
        late = _unfinished_cells(self.shadow.wrote[cells], self.clocks.visible, warps)
        if late is not None:
            self.words.stored_under_a_copy(wave, access.path, access.lanes, cells, late)
        if len(self.shadow.takes) and self.shadow.takes[_COPIES].any():
            self._check_source(wave, access.path, access.lanes, cells, warps)

    def atomic(self, wave: Wave, access: MemoryAccess) -> None:
        """As a load and a store."""
        self.load(wave, access)
        self.store(wave, access)

    def _check_source(
        self, wave: Wave, path: DivergentPath, lanes: Lanes, cells: Cells, warps: Warps
    ) -> None:
        """Bytes that are written are no longer read by copies; of wgmma, warpgroup_order.py says so."""
        taken = self.shadow.taken[_COPIES, cells]
        busy = (taken != 0) & (self.clocks.visible[warps, whose(taken)] < times(taken))
        if busy.any():
            self.words.source_overwritten(wave, path, lanes, cells, busy)
        elif self.drained_at:
            self._check_lanes(wave, path, lanes, cells, taken)

    def _check_lanes(
        self, wave: Wave, path: DivergentPath, lanes: Lanes, cells: Cells, taken: Records
    ) -> None:
        """Where another lane of the warp has waited for a copy that read, the two must have met since."""
        size = self.clocks.of_cluster * WARP
        for lane, time in self.drained_at.items():
            component = int(self.clocks.groups["bulk"][lane % size]) if "bulk" in self.clocks.groups else 0
            mine = np.resize(lanes.index, len(cells))[:, None]
            apart = (
                (taken != 0) & (whose(taken) == component) & (mine != lane) & (mine // WARP == lane // WARP)
            )
            apart &= bool(component) & self.order.lanes.met.apart(mine, lane, time)
            if apart.any():
                self.words.reader_apart(wave, path, cells, apart, mine, lane)

    # --- operations ---

    def issued(self, wave: Wave, path: DivergentPath, pending: Pending) -> None:
        """Check that what a new operation reads and overwrites is free for it."""
        if not self.looks(wave) or pending.record.matrix is not None:
            return
        end = self._end(wave, path, pending)
        if end is None:
            return
        for stretches in pending.reads:
            if stretches.space == "shared":
                self._reads(wave, path, pending, self.shadow.within(stretches.ranges), end)
        for place, stretches in enumerate(pending.writes):
            if stretches.space == "shared":
                offset = pending.signals[min(place, len(pending.signals) - 1)][0]
                barrier = self.order.barrier_at(offset)
                until = (barrier.component, barrier.phases + 1)
                if not self._covers(wave, path, pending, stretches, until):
                    self._writes(wave, path, pending, self.shadow.within(stretches.ranges), until)

    def _end(self, wave: Wave, path: DivergentPath, pending: Pending) -> _End | None:
        """Return what says that an operation is complete; None where nothing does."""
        for offset in pending.arrivals:
            self._check_begun(wave, path, pending.lane, offset)
        ends = list[_End]()
        for offset, _ in pending.signals:
            barrier = self.order.barrier_at(offset)
            self._check_begun(wave, path, pending.lane, offset)
            self.issued_in[pending, offset] = barrier.phases
            self.promised[offset] = (barrier.phases + 1, pending)
            ends.append((barrier.component, barrier.phases + 1))
        if ends:
            return ends[0]
        if not pending.group:
            return None
        if pending.reads and pending.reads[0].space == "shared" and pending.group == "bulk":
            self.stored[pending.lane] = (pending.number + 1, pending)
        return self.clocks.group_of(pending.group, pending.lane), pending.number + 1

    def _reads(self, wave: Wave, path: DivergentPath, pending: Pending, cells: Cells, end: _End) -> None:
        shadow, clocks, warp = self.shadow, self.clocks, pending.lane // WARP
        wrote = shadow.wrote[cells]
        if self._knows(warp, wrote):
            shadow.take(_COPIES, cells, record(end[1], path.pc, end[0], OPERATION))
            return
        component, operation = _components(wrote), has(wrote, OPERATION)
        unknown = (wrote != 0) & (clocks.visible[warp, component] < times(wrote))
        hidden = (wrote != 0) & ~operation & (clocks.proxy[warp, component] < times(wrote))
        if unknown.any():
            self.words.not_ordered(wave, path, pending, cells, unknown)
        elif hidden.any():
            self.words.not_fenced(wave, path, pending, cells, hidden)
        else:
            apart = (wrote != 0) & (component == clocks.column[warp]) & ~operation
            apart &= whose(wrote) % WARP != pending.lane % WARP
            apart &= self.order.lanes.met.apart(np.asarray(pending.lane), whose(wrote), times(wrote))
            if apart.any():
                self.words.lanes_apart(wave, path, pending, cells, apart)
        shadow.take(_COPIES, cells, record(end[1], path.pc, end[0], OPERATION))

    def _knows(self, warp: int, wrote: Records) -> bool:
        """Return whether all cells are of one operation that a warp knows to be complete, as tiles are."""
        first = int(wrote[0])
        if not has(first, OPERATION) or self.clocks.visible[warp, whose(first)] < times(first):
            return False
        return bool((wrote == first).all())

    def _covers(
        self, wave: Wave, path: DivergentPath, pending: Pending, stretches: Stretches, end: _End
    ) -> bool:
        """Note writes to cells in a row of which nothing is to be said; false where they are to be looked
        at.
        """
        if len(stretches.ranges) != 1 or reduces(pending.record):
            return False
        ((first, past),) = self.shadow.spans(stretches.ranges)
        written = int(record(end[1], path.pc, end[0], OPERATION))
        return fast_path.covers(
            wave, self.shadow, self.clocks, pending.lane // WARP, slice(first, past), written
        )

    def _writes(self, wave: Wave, path: DivergentPath, pending: Pending, cells: Cells, end: _End) -> None:
        shadow, warp, row = self.shadow, pending.lane // WARP, in_a_row(cells)
        written = record(end[1], path.pc, end[0], OPERATION)
        visible, wrote = self.clocks.visible[warp], _one_if_alike(shadow.wrote[row])
        table = shadow.taken
        warps, kinds = shadow.rows(shadow.reads, row), shadow.rows(shadow.takes, row)
        reading = times(shadow.read_by(warps, row)) > visible[warps, None]
        taking = _taking(_table_rows(table, kinds, row), kinds, visible)
        component, operation = _components(wrote), has(wrote, OPERATION)
        writing = (wrote != 0) & (visible[component] < times(wrote))
        if reduces(pending.record):  # reductions may meet
            joined = [pc for pc in np.unique(places(wrote)).tolist() if reduces(wave.code[pc])]
            writing &= ~(operation & np.isin(places(wrote), joined))
        hidden = (wrote != 0) & ~operation & (self.clocks.proxy[warp, component] < times(wrote))
        if reading.any():
            self.words.still_read(wave, path, pending, cells, reading, warps)
        elif taking is not None:
            self.words.still_taken(wave, path, pending, cells, taking, kinds)
        elif writing.any():
            self.words.still_written(wave, path, pending, cells, writing)
        elif hidden.any():
            self.words.covered_unfenced(wave, path, pending, cells, hidden)
        shadow.wrote[row] = written
        shadow.forget_reads(row)

    def bytes_came(self, wave: Wave, pending: Pending, offset: int, over: bool) -> None:
        """Check that an operation has signalled its mbarrier in the phase in which it was issued."""
        if not self.looks(wave):
            return
        phases = self.order.barrier_at(offset).phases
        issued = self.issued_in.pop((pending, offset), phases)
        if issued != phases:
            self.words.over_early(wave, pending, offset, issued + 1)

    def drained(self, wave: Wave, wait: GroupWait) -> None:
        """Lanes have waited for their groups."""
        if wait.family == "bulk" and self.looks(wave):
            now = self.clocks.own(wait.lanes.index // WARP).tolist()
            self.order.lanes.accessed += 1
            self.drained_at |= dict(zip(wait.lanes.index.tolist(), now, strict=True))

    # --- wgmma, of which warpgroup_order.py and tile_reads.py say the rest ---

    def wgmma(self, wave: Wave, path: DivergentPath, statement: WgmmaStatement, share: Share) -> None:
        """Warpgroups read tiles: what copies bring must have come, as far as each of their warps knows."""
        if not self.looks(wave):
            return
        if not self.order.reads(wave, share).late:
            return
        cells = self.order.tiles(wave, share)
        warps, visible = Warpgroups.of(wave).members(share.groups), self.clocks.visible
        wrote, slowest = self.shadow.wrote[cells], visible[warps].min(axis=1)
        if _unfinished_cells(wrote, slowest, np.arange(len(cells))[:, None]) is None:
            return
        late = _unfinished_cells(wrote[:, None], visible, warps[:, :, None])
        if late is not None:
            for row in np.flatnonzero(late.any(axis=(1, 2))).tolist():
                self.words.multiplied_early(wave, path, int(warps[row, 0]), cells[row], late[row])

    # --- ends ---

    def exit(self, wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        """Lanes have exited, perhaps the last lanes of their CTAs."""
        if not self.looks(wave):
            return
        size = self.clocks.of_cluster * WARP
        for lane in self.stored.keys() & set(lanes.index.tolist()):
            number, pending = self.stored[lane]
            component = self.clocks.groups["bulk"][lane % size]
            if self.clocks.visible[lane // WARP, component] < number:
                self.words.not_stored(wave, pending)
        for cta in np.unique(wave.cta[lanes.index]).tolist():
            if not wave.alive_of_cta[cta]:
                self._check_promises(wave, cta)

    def _check_promises(self, wave: Wave, cta: int) -> None:
        """Check that copies to a CTA that has ended have been waited for."""
        warps = slice(cta * wave.warps, (cta + 1) * wave.warps)
        for offset, (phase, pending) in self.promised.items():
            component = self.order.barrier_at(offset).component
            if (
                offset // wave.memories.shared_stride == cta
                and self.clocks.visible[warps, component].max() < phase
            ):
                self.words.not_awaited(wave, pending, offset)


def reduces(record: Record) -> bool:
    """Return whether an operation adds to what is there, or the like."""
    return record.statement.opcode == "red" or "reduce" in record.statement.modifiers


def _unfinished_cells(wrote: Records, visible: Clock, warps: Warps) -> Mask | None:
    """Return cells that operations bring, of which rows of clocks do not say that they have come; None for
    none.
    """
    operation = has(wrote, OPERATION)
    if not operation.any():
        return None
    component = whose(wrote) if operation.all() else np.where(operation, whose(wrote), 0)
    late: Mask = operation & (visible[warps, component] < times(wrote))
    return late if late.any() else None


def _taking(taken: Records, kinds: Cells, visible: Clock) -> Mask | None:
    """Return ``(kinds, cells)``: what operations may still read, as far as a warp knows; None for nothing.

    All operations of a kind other than copies have one component: then the latest of a row decides.
    """
    latest = taken.max(axis=1, initial=0)
    if _COPIES not in kinds and (visible[whose(latest)] >= times(latest)).all():
        return None
    taking: Mask = (taken != 0) & (visible[whose(taken)] < times(taken))
    return taking if taking.any() else None


def _one_if_alike(records: Records) -> Records:
    """Return records, or the first alone where all are equal, as in memory that copies have filled."""
    return records[:1] if (records == records[:1]).all() else records


def _components(wrote: Records) -> npt.NDArray[np.int64]:
    """Return the components of writes, of warps or of operations."""
    owners = whose(wrote)
    return np.asarray(np.where(has(wrote, OPERATION), owners, owners // WARP))


def _table_rows(table: Records, rows: Cells, cells: Cells | slice) -> Any:
    """Return ``(rows, cells)``: a part of a table."""
    return table[rows, cells] if isinstance(cells, slice) else table[rows[:, None], cells]
