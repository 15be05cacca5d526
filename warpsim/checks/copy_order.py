"""Rules of asynchronous operations on shared memory: what must happen before what.

    read early           bytes of a copy are read by who has not seen the end of its mbarrier's phase
    overwritten early    a copy is issued over bytes that somebody may still read, or write; where a warp has
                         stored them in order, but without a proxy fence: a warning
    source overwritten   a warp stores where an operation may still read, or a copy may still write; where
                         another lane of the warp knows better, and the two have not met since: a warning
    not visible          an operation reads what a warp has stored without a barrier, or without a proxy
                         fence; what another lane of the warp has, without bar.warp.sync: a warning
    phase over early     bytes come in a later phase than that in which their copy was issued
    not initialised      an mbarrier is used without a barrier since another warp has initialised it
    phase overrun        a phase may end while somebody still waits for the one before (phase_waits.py)
    left in flight       a CTA ends, and nobody has waited for a copy to its memory or from it

What is ordered is judged by vector clocks (clocks.py), so that a copy which happens to be in time is found as
well. A wgmma with operands in registers, A or metadata, begins when its four warps have their values: who has
waited for it knows that what they loaded before has been read, as CUTLASS's sparse pipeline has it. Only
words of shared memory are looked at, in modules that have asynchronous operations. Reads by warps of other
CTAs are not remembered. Messages are in copy_words.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..isa.warps import WARP
from ..machine.run.asynchronous import Pending
from ..machine.run.convergence import Warpgroups
from ..machine.run.events import GroupWait, helper
from ..machine.state.lanes import DivergentPath, Lanes, Mask
from ..machine.state.memory_access import MemoryAccess
from ..machine.state.spaces import Offsets
from .clocks import Clock, Warps
from .copy_shadow import NOBODY, WORD, Cells, Shadow, cells_of, cells_within, in_a_row, reduces, rows_of
from .copy_words import Words
from .findings import Findings
from .phase_waits import PhaseWaits
from .warp_order import WarpOrder

if TYPE_CHECKING:
    from ..machine.load.entries import Record
    from ..machine.opcodes.matrix.wgmma_groups import Verb
    from ..machine.run.events import Groups, Share, WgmmaStatement
    from ..machine.run.wave import Wave

_CHUNK = 16 // WORD  # words of a chunk, of which the first stands for all
_GROUP = 4  # warps of a warpgroup
_COPIES = 0  # the reader of the shadow that stands for copies


class CopyOrder(WarpOrder):
    """Tells of operations that nothing orders with what comes before or after them."""

    shadow: Shadow
    words: Words
    multiplied: npt.NDArray[np.int64]  # by warpgroup: groups of wgmma that it has closed

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        super().__init__()
        self.issued_in: dict[tuple[Pending, int], int] = {}  # by mbarrier: phases that were over
        self.stored: dict[int, tuple[int, Pending]] = {}  # by lane: the number of the latest group, plus 1
        self.loaded: dict[int, dict[int, Clock]] = {}  # by warpgroup and group: known as operands were read
        self.phase_waits = PhaseWaits()
        self.drained_at: dict[int, int] = {}  # by lane that has waited for its groups: the step of its warp

    @helper
    def prepare(self, wave: Wave) -> None:
        """A wave begins."""
        super().prepare(wave)
        self.shadow, self.words = Shadow.of(wave), Words(self)
        self.multiplied = np.zeros(len(Warpgroups.of(wave).first), np.int64)

    @helper
    def begun_by_another(self, wave: Wave, path: DivergentPath, lane: int, offset: int, pc: int) -> None:
        """An mbarrier is used without a barrier since its initialisation."""
        self.words.not_begun(wave, path, lane, offset, pc)

    def initialised(self, wave: Wave, path: DivergentPath, lanes: Lanes, offsets: Offsets) -> None:
        """mbarriers begin: waits for those that were there before are of no more use."""
        super().initialised(wave, path, lanes, offsets)
        for offset in offsets.tolist():
            self.phase_waits.begin(offset)

    @helper
    def seen(self, wave: Wave, path: DivergentPath, warps: Warps, offset: int) -> None:
        """Warps have waited for a phase."""
        self.phase_waits.seen(self.clocks, offset, warps, path.pc)

    @helper
    def ended(self, wave: Wave, offset: int, record: Record, lane: int) -> None:
        """A phase is over: nobody may still wait for the one before."""
        barrier = self.clocks.barrier(offset)
        for warp, wait in self.phase_waits.overrun(offset, barrier.phases, barrier.over[2]):
            self.words.overrun(wave, offset, record, warp, wait)

    # --- accesses of warps ---

    def load(self, wave: Wave, access: MemoryAccess) -> None:
        """Words are read: those that an operation brings must have come, as far as the reader knows."""
        if access.memory is not wave.shared or not self.looks(wave):
            return
        cells, warps = cells_of(access.offsets, access.size), access.lane_of[:, None] // WARP
        late = self._unknown(cells, warps)
        if late is not None:
            self.words.read_early(wave, access.path, access.lanes, cells, late)
        own = self.clocks.own(warps[:, 0])[:, None]
        if wave.cluster.count > 1:
            own = np.where(cells * WORD // wave.shared_stride == warps // wave.warps, own, 0)
        self.shadow.loaded(cells, warps % wave.warps, own, access.path.pc)

    def store(self, wave: Wave, access: MemoryAccess) -> None:
        """Words are written: no operation may still read them, or write."""
        if access.memory is not wave.shared or not self.looks(wave):
            return
        cells, warps = cells_of(access.offsets, access.size), access.lane_of[:, None] // WARP
        late = self._unknown(cells, warps)
        if late is not None:
            self.words.stored_under_a_copy(wave, access.path, access.lanes, cells, late)
        if self.shadow.lent[_COPIES].any():  # of what wgmma reads, warpgroup_order.py says so
            self._check_source(wave, access.path, access.lanes, cells, warps)
        self.shadow.stored(cells, warps, self.clocks.own(warps[:, 0])[:, None], access.path.pc)
        self.shadow.lane[cells] = np.resize(access.lanes.index, access.offsets.size)[:, None]
        self.shadow.step[cells] = self.steps[warps]

    def _check_source(
        self, wave: Wave, path: DivergentPath, lanes: Lanes, cells: Cells, warps: Warps
    ) -> None:
        """Words that are written are no longer read by copies."""
        part = slice(_COPIES, _COPIES + 1)
        reader, due = self.shadow.reader[part, cells], self.shadow.reader_due[part, cells]
        busy = (reader != NOBODY) & (self.clocks.known[warps, reader] < due)
        if busy.any():
            self.words.source_overwritten(wave, path, lanes, cells, busy)
        else:
            self._check_lanes(wave, path, lanes, cells, reader[0])

    def _check_lanes(self, wave: Wave, path: DivergentPath, lanes: Lanes, cells: Cells, reader: Any) -> None:
        """Where another lane of the warp has waited for a copy that read, the two must have met since."""
        mine = np.resize(lanes.index, len(cells))[:, None]
        for component in np.unique(reader[reader != NOBODY]).tolist():
            lane = self.clocks.lanes.get(component, NOBODY)
            apart = (reader == component) & (mine != lane) & (mine // WARP == lane // WARP)
            if apart.any() and self.drained_at.get(lane) == self.steps[lane // WARP]:
                self.words.reader_apart(wave, path, cells, apart, mine, lane)

    def atomic(self, wave: Wave, access: MemoryAccess) -> None:
        """As a load and a store; one that acquires may order anything."""
        self.may_acquire(wave, access.path, access.lanes)
        self.load(wave, access)
        self.store(wave, access)

    def _unknown(self, cells: Cells, warps: Warps) -> Mask | None:
        """Words that operations bring, of which the warps do not know that they have come; None for none."""
        shadow = self.shadow
        operation = shadow.operation[cells]
        if not operation.any():
            return None
        late = operation & (self.clocks.known[warps, shadow.writer[cells]] < shadow.due[cells])
        return late if late.any() else None

    # --- operations ---

    def issued(self, wave: Wave, path: DivergentPath, pending: Pending) -> None:
        """An operation begins: what it reads and overwrites must be free for it."""
        if not self.looks(wave) or pending.group == "wgmma":
            return
        warp = pending.lane // WARP
        component, due = self._end(wave, path, pending)
        if component == NOBODY:
            return
        for stretches in pending.reads:
            if stretches.space == "shared":
                self._reads(wave, path, pending, warp, cells_within(stretches), (component, due))
        for place, stretches in enumerate(pending.writes):
            if stretches.space == "shared":
                offset = pending.signals[min(place, len(pending.signals) - 1)][0]
                barrier = self.clocks.barrier(offset)
                end = (barrier.component, barrier.phases + 1)
                self._writes(wave, path, pending, warp, cells_within(stretches), end)
        for offset, _ in pending.signals:
            self.clocks.issue(self.clocks.barrier(offset), warp)

    def _end(self, wave: Wave, path: DivergentPath, pending: Pending) -> tuple[int, int]:
        """By which component, from which clock on, it is known that an operation is complete."""
        for offset, _ in pending.signals:
            barrier = self.clocks.barrier(offset)
            self.check_begun(wave, path, pending.lane, offset)
            self.issued_in[pending, offset] = barrier.phases
            self.promised[offset] = (barrier.phases + 1, pending)
        if pending.signals:
            barrier = self.clocks.barrier(pending.signals[0][0])
            return barrier.component, barrier.phases + 1
        if not pending.group:
            return NOBODY, 0
        if pending.reads and pending.reads[0].space == "shared" and pending.group == "bulk":
            self.stored[pending.lane] = (pending.number + 1, pending)
        return self.clocks.group(pending.group, pending.lane), pending.number + 1

    def _reads(
        self, wave: Wave, path: DivergentPath, pending: Pending, warp: int, cells: Cells, end: tuple[int, int]
    ) -> None:
        shadow, clocks = self.shadow, self.clocks
        writer, due = shadow.writer[cells], shadow.due[cells]
        unknown = (writer != NOBODY) & (clocks.known[warp, writer] < due)
        hidden = (writer != NOBODY) & ~shadow.operation[cells] & (clocks.fenced[warp, writer] < due)
        if unknown.any():
            self.words.not_ordered(wave, path, pending, cells, unknown)
        elif hidden.any():
            self.words.not_fenced(wave, path, pending, cells, hidden)
        else:
            apart = (writer == warp) & ~shadow.operation[cells] & (shadow.lane[cells] != pending.lane)
            apart &= shadow.step[cells] == self.steps[warp]
            if apart.any():
                self.words.lanes_apart(wave, path, pending, cells, apart)
        shadow.taken(cells, _COPIES, *end, path.pc)

    def _writes(
        self, wave: Wave, path: DivergentPath, pending: Pending, warp: int, cells: Cells, end: tuple[int, int]
    ) -> None:
        shadow, known, row = self.shadow, self.clocks.known[warp], in_a_row(cells)
        first = int(cells[0]) * WORD // wave.shared_stride * wave.warps
        warps, slots = shadow.warps_at(row), shadow.slots_at(row)
        reading = rows_of(shadow.read, warps, row) > known[first + warps, None]
        reader, due = (rows_of(one, slots, row) for one in (shadow.reader, shadow.reader_due))
        taking = (reader != NOBODY) & (known[reader] < due)
        writing = (shadow.writer[row] != NOBODY) & (known[shadow.writer[row]] < shadow.due[row])
        if reduces(pending.record):  # reductions may meet
            places = np.unique(shadow.wrote_at[row]).tolist()
            joined = [pc for pc in places if reduces(wave.code[pc])]
            writing &= ~(shadow.operation[row] & np.isin(shadow.wrote_at[row], joined))
        mine, due = shadow.writer[row], shadow.due[row]
        hidden = (mine != NOBODY) & ~shadow.operation[row] & (self.clocks.fenced[warp, mine] < due)
        if reading.any():
            self.words.still_read(wave, path, pending, cells, reading, warps, first)
        elif taking.any():
            self.words.still_taken(wave, path, pending, cells, taking, slots)
        elif writing.any():
            self.words.still_written(wave, path, pending, cells, writing)
        elif hidden.any():
            self.words.covered_unfenced(wave, path, pending, cells, hidden)
        shadow.brought(row, *end, path.pc)

    def bytes_came(self, wave: Wave, pending: Pending, offset: int, over: bool) -> None:
        """An operation has told its mbarrier; in the phase in which it was issued?"""
        if not self.looks(wave):
            return
        barrier = self.clocks.barrier(offset)
        issued = self.issued_in.pop((pending, offset), barrier.phases)
        if issued != barrier.phases:
            self.words.over_early(wave, pending, offset, issued + 1)
        self.clocks.end(barrier, int(over))
        if over:
            self.ended(wave, offset, pending.record, pending.lane)

    def drained(self, wave: Wave, wait: GroupWait) -> None:
        """Lanes have waited for their groups."""
        if not self.looks(wave):
            return
        complete, index = wave.asynchrony.of(wave, wait.family) - wait.most, wait.lanes.index
        self.clocks.complete(wait.family, index, complete[index])
        if wait.family == "bulk":
            steps = self.steps[index // WARP].tolist()
            self.drained_at |= dict(zip(index.tolist(), steps, strict=True))

    # --- wgmma, of which warpgroup_order.py and tile_reads.py say the rest ---

    def wgmma(self, wave: Wave, path: DivergentPath, one: WgmmaStatement, share: Share) -> None:
        """Warpgroups read tiles: what copies bring must have come, as far as each of their warps knows."""
        if not self.looks(wave):
            return
        places, clocks, groups = Warpgroups.of(wave), self.clocks, share.groups
        first = places.first[groups]
        cells = share.chunks * _CHUNK + (places.cta[groups] * (wave.shared_stride // WORD))[:, None]
        warps = first[:, None] // WARP + np.arange(_GROUP)
        late = self._unknown(cells[:, None], warps[:, :, None])
        if late is not None:
            for row in np.flatnonzero(late.any(axis=(1, 2))).tolist():
                self.words.multiplied_early(wave, path, int(warps[row, 0]), cells[row], late[row])
        slots, ends = 1 + warps[:, :1] % wave.warps // _GROUP, self.multiplied[groups] + 1
        components = clocks.groups_of("wgmma", first)
        self.shadow.taken(cells, slots, components[:, None], ends[:, None], path.pc)
        if one.sources:
            for group, number, own in zip(groups.tolist(), ends.tolist(), warps, strict=True):
                self.loaded.setdefault(group, {})[number] = clocks.shared(own)

    def wgmma_order(self, wave: Wave, path: DivergentPath, groups: Groups, verb: Verb, most: int) -> None:
        """Warpgroups close a group, or wait until all but the latest are complete."""
        if not self.looks(wave) or verb == "fence":
            return
        if verb == "commit":
            self.multiplied[groups] += 1
            return
        first = Warpgroups.of(wave).first[groups]
        warps = first[:, None] // WARP + np.arange(_GROUP)
        complete = np.maximum(self.multiplied[groups] - most, 0)
        self.clocks.advance(self.clocks.groups_of("wgmma", first)[:, None], warps, complete[:, None])
        for group, own, number in zip(groups.tolist(), warps, complete.tolist(), strict=True):
            self._operands_read(group, own, number)
            self.phase_waits.multiplied(self.clocks, own)

    def _operands_read(self, group: int, warps: Warps, complete: int) -> None:
        """Warps of a warpgroup have waited for its groups up to a number."""
        loaded = self.loaded.get(group, {})
        for number in [one for one in loaded if one <= complete]:
            self.clocks.learn(warps, loaded.pop(number))

    # --- ends ---

    def exit(self, wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        """Lanes have exited, perhaps the last ones of their CTAs."""
        if not self.looks(wave):
            return
        for lane in self.stored.keys() & set(lanes.index.tolist()):
            number, pending = self.stored[lane]
            if self.clocks.known[lane // WARP, self.clocks.group("bulk", lane)] < number:
                self.words.not_stored(wave, pending)
        for cta in np.unique(wave.cta[lanes.index]).tolist():
            if not wave.alive_of_cta[cta]:
                self._check_promises(wave, cta)

    def _check_promises(self, wave: Wave, cta: int) -> None:
        """Copies to a CTA that has ended have been waited for."""
        warps = slice(cta * wave.warps, (cta + 1) * wave.warps)
        for offset, (phase, pending) in self.promised.items():
            component = self.clocks.barrier(offset).component
            if offset // wave.shared_stride == cta and self.clocks.known[warps, component].max() < phase:
                self.words.not_awaited(wave, pending, offset)
