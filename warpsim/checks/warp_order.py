"""What orders warps, as observers are told: mbarriers, barriers of CTAs and clusters, fences, statements.

An observer that looks at memory is made of this one. ``steps`` counts how often the lanes of each warp have
come together. Knows events and clocks; does not know memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..isa.warps import WARP
from ..machine.run.events import BarrierArrival, Observer, helper
from ..machine.state.lanes import DivergentPath, Lanes, Mask
from ..machine.state.spaces import Offsets
from .clocks import Clock, Clocks, Warps

if TYPE_CHECKING:
    from ..machine.load.entries import Record
    from ..machine.run.asynchronous import Pending
    from ..machine.run.cluster_barrier import ClusterBarrier
    from ..machine.run.wave import Wave

_ACQUIRES = frozenset({"acquire", "acq_rel", "sc"})
_PROXIES = frozenset({"async", "async::generic"})


def _asynchronous(record: Record) -> bool:
    """Whether a statement starts a copy from or to shared memory; of wgmma alone, others say everything."""
    opcode, words = record.statement.opcode, record.statement.modifiers
    return (opcode == "cp" and "bulk" in words) or any("complete_tx::" in one for one in words)


class WarpOrder(Observer):
    """Keeps the clocks of a wave, in modules that have asynchronous operations."""

    clocks: Clocks
    steps: npt.NDArray[np.int32]

    def __init__(self) -> None:
        self.active = self.ready = False
        self.promised: dict[int, tuple[int, Pending]] = {}  # by mbarrier: the phase of the latest copy
        self.begun: dict[int, tuple[int, int, int]] = {}  # by mbarrier: warp, its clock, statement
        self.waits: dict[tuple[int, int], int] = {}  # by warp and mbarrier: the statement of its latest wait
        self.left: dict[tuple[int, int], list[Clock]] = {}  # by CTA and barrier: of who arrived and went on

    def instrument(self, code: Sequence[Record]) -> Sequence[Record]:
        """Nothing is looked at where nothing is asynchronous."""
        self.active = any(map(_asynchronous, code))
        if not self.active:
            return code
        return [self._counting(one) if "sync" in one.statement.modifiers else one for one in code]

    def _counting(self, record: Record) -> Record:
        """A statement of the whole warp orders its lanes."""

        def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> bool | None:
            changed = record.step(wave, path, lanes)
            if self.looks(wave):
                self.steps[some_of_each(lanes.mask)] += 1
            return changed

        return replace(record, step=step)

    @helper
    def prepare(self, wave: Wave) -> None:
        """A wave begins; what an observer keeps besides is its own business."""
        self.clocks = Clocks(wave.lanes // WARP)
        self.steps = np.zeros(wave.lanes // WARP, np.int32)

    @helper
    def looks(self, wave: Wave) -> bool:
        """Whether there is anything to look at; prepared when first asked."""
        if self.active and not self.ready:
            self.prepare(wave)
            self.ready = True
        return self.active

    @helper
    def begun_by_another(self, wave: Wave, path: DivergentPath, lane: int, offset: int, pc: int) -> None:
        """A lane uses an mbarrier that another warp initialises there, unknown to it."""

    @helper
    def seen(self, wave: Wave, path: DivergentPath, warps: Warps, offset: int) -> None:
        """Warps have seen that the latest phase of an mbarrier is over."""

    @helper
    def ended(self, wave: Wave, offset: int, record: Record, lane: int) -> None:
        """A phase of an mbarrier is over, by what a lane has done there."""

    # --- order between warps ---

    def initialised(self, wave: Wave, path: DivergentPath, lanes: Lanes, offsets: Offsets) -> None:
        """mbarriers begin."""
        if self.looks(wave):
            for lane, offset in zip(lanes.index.tolist(), offsets.tolist(), strict=True):
                self.clocks.begin(offset)
                self.promised.pop(offset, None)
                self.begun[offset] = (
                    lane // WARP,
                    int(self.clocks.known[lane // WARP, lane // WARP]),
                    path.pc,
                )

    def updated(
        self, wave: Wave, path: DivergentPath, lanes: Lanes, offsets: Offsets, ends: dict[int, int]
    ) -> None:
        """Lanes have arrived at mbarriers, some of whose phases are over now."""
        if self.looks(wave):
            for offset, count in ends.items():
                part = lanes.index[offsets == offset]
                self.check_begun(wave, path, int(part[0]), offset)
                self.clocks.release(self.clocks.barrier(offset), np.unique(part // WARP), ends=count)
                if count:
                    self.ended(wave, offset, wave.code[path.pc], int(part[-1]))

    def acquired(self, wave: Wave, path: DivergentPath, lanes: Lanes, offsets: Offsets) -> None:
        """Lanes have seen that the latest phases of mbarriers are over."""
        if self.looks(wave):
            for offset in np.unique(offsets).tolist():
                part = lanes.index[offsets == offset]
                warps = np.unique(part // WARP)
                self.check_begun(wave, path, int(part[0]), offset)
                self.clocks.acquire(self.clocks.barrier(offset), warps)
                self.steps[warps] += 1
                self.waits |= {(warp, offset): path.pc for warp in warps.tolist()}
                self.seen(wave, path, warps, offset)

    @helper
    def check_begun(self, wave: Wave, path: DivergentPath, lane: int, offset: int) -> None:
        """A lane that uses an mbarrier must know that it has been initialised."""
        warp, clock, pc = self.begun.get(offset, (0, 0, 0))
        if warp // wave.warps == lane // WARP // wave.warps and self.clocks.known[lane // WARP, warp] < clock:
            self.begun_by_another(wave, path, lane, offset, pc)

    def arriving(self, wave: Wave, arrival: BarrierArrival) -> None:
        """Lanes come to a barrier: those that go on tell what they know now, and not what they do later."""
        if arrival.waits or not self.looks(wave):
            return
        for cta, warps in _by_cta(wave, arrival.lanes.mask):
            self.left.setdefault((cta, arrival.number), []).append(self.clocks.shared(warps))

    def meeting(self, wave: Wave, number: int, arrived: Mask, waited: Mask) -> None:
        """A barrier of some CTAs is complete: who has arrived, and who has waited."""
        if not self.looks(wave):
            return
        waiting = dict(_by_cta(wave, waited))
        for cta, _ in _by_cta(wave, arrived):
            told, warps = self.left.pop((cta, number), ()), waiting.get(cta)
            if warps is not None:
                self.clocks.meet(warps, warps)
                for one in told:
                    self.clocks.learn(warps, one)

    def arrived(self, wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        """Lanes have arrived at the barriers of their clusters."""
        if self.looks(wave):
            for cluster, warps in _by_cluster(wave, lanes):
                self.clocks.release(self.clocks.barrier(-1 - cluster), warps, ends=0)

    def cluster_barrier(self, wave: Wave, clusters: npt.NDArray[np.intp], state: ClusterBarrier) -> None:
        """The barriers of some clusters are complete."""
        if self.looks(wave):
            for cluster in clusters.tolist():
                self.clocks.end(self.clocks.barrier(-1 - cluster), 1)

    def cluster_met(self, wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        """Lanes go on behind the barriers of their clusters."""
        if self.looks(wave):
            for cluster, warps in _by_cluster(wave, lanes):
                self.clocks.acquire(self.clocks.barrier(-1 - cluster), warps)

    def fence(self, wave: Wave, path: DivergentPath, lanes: Lanes, words: tuple[str, ...]) -> None:
        """A proxy fence, or one by which anything may be ordered."""
        if not self.looks(wave):
            return
        if "proxy" not in words:
            self._anything(wave, lanes)
        elif not _PROXIES.isdisjoint(words):
            self.clocks.fence(some_of_each(lanes.mask))

    @helper
    def may_acquire(self, wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        """A statement that acquires may order anything."""
        if self.looks(wave) and not _ACQUIRES.isdisjoint(wave.code[path.pc].statement.modifiers):
            self._anything(wave, lanes)

    def _anything(self, wave: Wave, lanes: Lanes) -> None:
        """With flags in memory, lanes may have synchronised with any warp."""
        everyone = np.arange(self.clocks.warps)
        self.steps[some_of_each(lanes.mask)] += 1
        self.clocks.meet(everyone, some_of_each(lanes.mask))


def some_of_each(mask: Mask) -> Warps:
    """The warps of which some lanes are in a mask."""
    return np.flatnonzero(mask.reshape(-1, WARP).any(axis=1))


def _by_cluster(wave: Wave, lanes: Lanes) -> list[tuple[int, Any]]:
    """The clusters of lanes, each with the warps of theirs."""
    warps = np.unique(lanes.index // WARP)
    clusters = warps // wave.warps // wave.cluster.count
    return [(one, warps[clusters == one]) for one in np.unique(clusters).tolist()]


def _by_cta(wave: Wave, mask: Mask) -> list[tuple[int, Warps]]:
    """The CTAs of lanes, each with the warps of theirs."""
    warps = some_of_each(mask)
    ctas = warps // wave.warps
    return [(one, warps[ctas == one]) for one in np.unique(ctas).tolist()]
