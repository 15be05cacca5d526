"""Checks of shared memory of other CTAs of a cluster: CTAs not begun, mbarriers not known, CTAs that end.

A CTA has begun where a warp knows of anything that one of its warps has done. Races are shared_races.py's,
and what becomes of bytes that come asynchronously is copy_order.py's. PTX ISA 9.1, sections 8 and 9.7.13.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...isa.warps import WARP
from ...machine.run.clusters import in_shared, named
from ...machine.run.events import Observer
from ...machine.state.lanes import DivergentPath, Lanes, Values
from ...machine.state.memory_access import MemoryAccess
from .clocks import BEGUN, HAPPENED, VISIBLE
from .finding_catalogue import Site, report
from .findings import Findings
from .order import Order

if TYPE_CHECKING:
    from ...machine.run.pending import Pending
    from ...machine.run.wave import Wave


@dataclass(frozen=True)
class _Far:
    """Words of other CTAs: the accessing warp, and where in the wave's shared memory; all (words,)."""

    wave: Wave
    pc: int
    lanes: Values
    offsets: Values

    @property
    def warps(self) -> Values:
        """The warp of each."""
        return np.asarray(self.lanes // WARP)

    @property
    def homes(self) -> Values:
        """The CTA whose memory each is in."""
        return np.asarray(self.offsets // self.wave.memories.shared_stride)

    def where(self, row: int) -> str:
        """Return a place in words."""
        return in_shared(self.wave, int(self.lanes[row]), int(self.offsets[row]))


class ClusterMemory(Observer):
    """An observer of accesses to the shared memory of other CTAs of a cluster."""

    def __init__(self, findings: Findings, order: Order) -> None:
        self.findings, self.order = findings, order
        # (home, warp) -> when a warp used the memory of another CTA last, and by which statement
        self.latest: dict[tuple[int, int], tuple[int, int]] = {}

    # --- accesses ---

    def load(self, wave: Wave, access: MemoryAccess) -> None:
        """Check that the CTA has begun."""
        if access.memory is wave.memories.shared and (far := _far(wave, access)) is not None:
            self._check_begun(far)
            self._note(far)

    store = atomic = landed = load

    def mbarrier(self, wave: Wave, access: MemoryAccess) -> None:
        """Operations on an object of another CTA, whose initialisation must be known."""
        if (far := _far(wave, access)) is not None:
            self._check_initialised(far)
            self._note(far)

    def issued(self, wave: Wave, path: DivergentPath, pending: Pending) -> None:
        """Check that what it will write and signal in other CTAs is there."""
        if not pending.barriers and not pending.writes:
            return
        written = [write.ranges[:, 0] for write in pending.writes if write.space == "shared"]
        signals = np.array(pending.barriers, np.int64)
        for offsets, check in (
            (signals, self._check_initialised),
            *((item, self._check_begun) for item in written),
        ):
            others = offsets[offsets // wave.memories.shared_stride != wave.cta[pending.lane]]
            if others.size:
                check(_Far(wave, path.pc, np.full(others.size, pending.lane), others))

    def exit(self, wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        """Check CTAs that are done: others have signalled that they no longer use their memory."""
        for cta in np.unique(wave.cta[lanes.index]).tolist():
            if not wave.alive_of_cta[cta]:
                self._check_end(wave, path, cta)

    def _note(self, far: _Far) -> None:
        """Which warps have used the memory of which CTAs, and when."""
        times = self.order.prepare(far.wave).own(far.warps)
        for home, warp, time in zip(far.homes.tolist(), far.warps.tolist(), times.tolist(), strict=True):
            self.latest[home, warp] = time, far.pc

    # --- what is wrong ---

    def _check_begun(self, far: _Far) -> None:
        """Another CTA is known to have begun before its memory is used."""
        clocks, wave = self.order.prepare(far.wave), far.wave
        known = clocks.state[[VISIBLE, HAPPENED]].max(axis=0)[:, : clocks.of_cluster]
        begun = known.reshape(len(known), wave.cluster.count, wave.warps).any(axis=2)
        wrong = ~begun[far.warps, far.homes % wave.cluster.count]
        if wrong.any():
            row = int(wrong.argmax())
            key, lane = ("not begun", far.pc), int(far.lanes[row])
            report(self.findings, "CTA not begun", Site(wave, far.pc, lane), key=key, place=far.where(row))

    def _check_initialised(self, far: _Far) -> None:
        """Check that the initialisation of mbarriers of other CTAs is known."""
        clocks, wave = self.order.prepare(far.wave), far.wave
        for row, (warp, offset) in enumerate(zip(far.warps.tolist(), far.offsets.tolist(), strict=True)):
            by, time, pc = self.order.begun.get(offset, (warp, 0, 0))
            if clocks.state[[VISIBLE, BEGUN], warp, clocks.column[by]].max() >= time:
                continue
            key, lane, place = ("mbarrier init", far.pc), int(far.lanes[row]), far.where(row)
            report(
                self.findings, "mbarrier of another CTA", Site(wave, far.pc, lane, pc), key=key, place=place
            )

    def _check_end(self, wave: Wave, path: DivergentPath, cta: int) -> None:
        clocks = self.order.prepare(wave)
        own = slice(cta * wave.warps, (cta + 1) * wave.warps)
        known = clocks.visible[own].max(axis=0)
        for (home, warp), (time, pc) in self.latest.items():
            if home != cta or known[clocks.column[warp]] >= time:
                continue
            key, end, user = ("cluster end", pc), named(wave, cta), named(wave, warp // wave.warps)
            report(self.findings, "CTA ends early", Site(wave, path.pc, "", pc), key=key, cta=end, user=user)


def _far(wave: Wave, access: MemoryAccess) -> _Far | None:
    """Return the words of lanes that are in other CTAs, if some are."""
    lanes = access.lane_of
    far = access.offsets // wave.memories.shared_stride != wave.cta[lanes]
    return _Far(wave, access.path.pc, lanes[far], access.offsets[far]) if far.any() else None
