"""Checks of shared memory that CTAs of a cluster share: races, CTAs not begun, CTAs that end too soon.

A shadow has, for each byte of the wave's shared memory, who wrote it last, who read it last in its own CTA
and in another one, when, and at which statement. What stands between two accesses is the business of
cluster_order.py; warps of one CTA are warp_races.py's, and what becomes of bytes that come
asynchronously is copy_order.py's. PTX ISA 9.1, sections 8 and 9.7.13.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..machine.run.cluster_barrier import ClusterBarrier
from ..machine.run.clusters import named
from ..machine.run.events import Observer
from ..machine.state.lanes import DivergentPath, Lanes, Values
from ..machine.state.memory_access import MemoryAccess
from .cluster_order import ClusterOrder
from .cluster_shadow import Access, Shadow, access_of, access_of_lane, written_by
from .findings import Findings, LaunchFinding

if TYPE_CHECKING:
    from ..errors import Location
    from ..machine.run.asynchronous import Pending
    from ..machine.run.cluster_barrier import Clusters
    from ..machine.run.wave import Wave

_STRONG = frozenset({"volatile", "relaxed", "acquire", "release", "mmio"})
_ACQUIRES = frozenset({"acquire", "acq_rel", "sc"})
_ATOMIC = frozenset({"atom", "red", "mbarrier"})


class ClusterMemory(Observer):
    """Tells of accesses of different CTAs of a cluster that nothing orders."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.order: ClusterOrder | None = None
        self.issued_at: dict[int, int] = {}  # the statement of what is in flight, by id

    def _begin(self, wave: Wave) -> ClusterOrder:
        if self.order is None:
            self.order = ClusterOrder(wave)
            self.wrote, self.own_read, self.far_read = (Shadow.of(wave.shared.size) for _ in range(3))
            self.later = np.zeros(wave.shared.size, np.bool_)  # the last write was of what is asynchronous
            # (home, by) -> when a CTA used the memory of another one last, and where
            self.latest: dict[tuple[int, int], tuple[int, int]] = {}
            self.strong = np.array([_is_strong(one.statement) for one in wave.code])
        return self.order

    # --- order ---

    def ordered(self, wave: Wave, lanes: Lanes) -> None:
        """Lanes have waited for a phase of an mbarrier."""
        self._begin(wave).acquire(wave, lanes)

    def fence(self, wave: Wave, path: DivergentPath, lanes: Lanes, words: tuple[str, ...]) -> None:
        """Lanes execute a fence."""
        self._begin(wave).fence(wave, lanes, words)

    def arrived(self, wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        """Lanes arrive at the cluster barrier."""
        self._begin(wave).arrive(wave, path, lanes)

    def cluster_met(self, wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        """Lanes have waited for the cluster barrier."""
        self._begin(wave).meet(wave, lanes, ClusterBarrier.of(wave))

    def cluster_barrier(self, wave: Wave, clusters: Clusters, barrier: ClusterBarrier) -> None:
        """The barrier of some clusters is complete."""
        self._begin(wave).complete(wave, clusters)

    # --- accesses ---

    def load(self, wave: Wave, access: MemoryAccess) -> None:
        """Written by another CTA before, with nothing in between: a race."""
        if access.memory is not wave.shared:
            return
        order, reach = self._begin(wave), access_of(wave, access)
        if not _ACQUIRES.isdisjoint(wave.code[access.path.pc].statement.modifiers):
            order.acquire(wave, access.lanes)
        self._check_begun(reach)
        self._meet(reach, self.wrote, "reads", "written")
        self._note_read(reach)

    def store(self, wave: Wave, access: MemoryAccess) -> None:
        """Written or read by another CTA before, with nothing in between: a race."""
        if access.memory is not wave.shared:
            return
        self._begin(wave)
        reach = access_of(wave, access)
        self._check_begun(reach)
        self._check_write(reach)
        self._note_write(reach)
        if (new := access.stored) is not None:
            self._check_together(reach, new)

    landed = store  # what cp.async brings

    def _check_together(self, reach: Access, new: Values) -> None:
        """Lanes of several CTAs write different values to one byte in one statement."""
        clash = (self.wrote.cta[reach.cells] != reach.ctas) & ~self.strong[reach.place]
        if clash.any():
            left = np.zeros(reach.wave.shared.size, np.uint8)
            left[reach.cells] = new
            clash &= left[reach.cells] != new
            if clash.any():
                self._race(reach, self.wrote, clash, "writes", "written")

    def _check_write(self, reach: Access) -> None:
        for shadow, before in ((self.wrote, "written"), (self.own_read, "read"), (self.far_read, "read")):
            self._meet(reach, shadow, "writes", before)

    def atomic(self, wave: Wave, access: MemoryAccess) -> None:
        """As a store; one that acquires orders what comes after it."""
        if not _ACQUIRES.isdisjoint(wave.code[access.path.pc].statement.modifiers):
            self._begin(wave).acquire(wave, access.lanes)
        self.store(wave, access)

    def mbarrier(self, wave: Wave, access: MemoryAccess) -> None:
        """Operations on an object of another CTA, whose initialisation must be known."""
        self._begin(wave)
        reach = access_of(wave, access)
        self._check_initialised(reach)
        self._note_far(reach)

    # --- operations in flight ---

    def issued(self, wave: Wave, path: DivergentPath, pending: Pending) -> None:
        """What it will write and signal in other CTAs is there."""
        self._begin(wave)
        self.issued_at[id(pending)] = path.pc
        for offset, _ in pending.signals:
            self._check_initialised(
                access_of_lane(wave, path.pc, pending.lane, np.arange(offset, offset + 8))
            )
        for reach in written_by(wave, path.pc, pending):
            self._check_begun(reach)

    def completed(self, wave: Wave, pending: Pending) -> None:
        """Its bytes are written now."""
        self._begin(wave)
        for reach in written_by(wave, self.issued_at.pop(id(pending)), pending):
            self._note_write(reach, later=True)

    # --- ends ---

    def exit(self, wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        """CTAs that are done: others have told them that they no longer use their memory."""
        self._begin(wave)
        for cta in np.unique(wave.cta[lanes.index]).tolist():
            if not wave.alive_of_cta[cta]:
                self._check_end(wave, path, cta)

    def _check_end(self, wave: Wave, path: DivergentPath, cta: int) -> None:
        assert self.order is not None
        for (home, other), (time, place) in self.latest.items():
            known = self.order.known(np.array(cta), np.array(other), np.array(time))
            if home != cta or known:
                continue
            used, end = wave.code[place].statement, wave.code[path.pc].statement
            line = used.location().line
            message = (
                f"{named(wave, cta)}, ends while {named(wave, other)}, may still use its shared memory: "
                f"nothing says that {used.mnemonic} of line {line} is done; put barrier.cluster.arrive "
                f"behind line {line}, and barrier.cluster.wait before this end"
            )
            self._add("lifetime", ("cluster end", place), message, end.location(), used.location())

    # --- what is wrong ---

    def _check_begun(self, reach: Access) -> None:
        """Another CTA is known to have begun before its memory is used."""
        assert self.order is not None
        wrong = reach.far & ~self.order.begun(reach.ctas)
        if wrong.any():
            row, column = (int(one) for one in np.argwhere(wrong)[0])
            message = (
                f"{reach.mnemonic} reaches {reach.where(row, column)}, and nothing says that this CTA "
                f"has begun: put barrier.cluster.arrive and barrier.cluster.wait before line "
                f"{reach.location.line} [{reach.who(row)}]"
            )
            self._add("not begun", ("not begun", reach.place), message, reach.location, None)

    def _check_initialised(self, reach: Access) -> None:
        """The initialisation of mbarriers of other CTAs is known."""
        assert self.order is not None
        cells, init = reach.cells, self.wrote
        known = self.order.known(reach.ctas, init.cta[cells], init.time[cells], init=True)
        wrong = reach.far & (init.cta[cells] >= 0) & (init.cta[cells] != reach.ctas) & ~known
        if not wrong.any():
            return
        row, column = (int(one) for one in np.argwhere(wrong)[0])
        first = reach.wave.code[int(init.place[cells[row, column]])].statement
        message = (
            f"{reach.mnemonic} reaches the mbarrier at {reach.where(row, column)}, whose initialisation at "
            f"line {first.location().line} it need not see: put fence.mbarrier_init.release.cluster and "
            f"barrier.cluster.arrive behind that line, and barrier.cluster.wait before line "
            f"{reach.location.line} [{reach.who(row)}]"
        )
        key = ("mbarrier init", reach.place)
        self._add("mbarrier init", key, message, reach.location, first.location())

    def _meet(self, reach: Access, shadow: Shadow, now: str, before: str) -> None:
        """Find bytes that another CTA has touched, with nothing in between."""
        assert self.order is not None
        cells = reach.cells
        other = (shadow.cta[cells] >= 0) & (shadow.cta[cells] != reach.ctas)
        if not other.any():
            return
        weak = ~(self.strong[reach.place] & self.strong[shadow.place[cells]])
        known = self.order.known(reach.ctas, shadow.cta[cells], shadow.time[cells])
        if shadow is self.wrote:
            known |= self.later[cells]
        wrong = other & weak & ~known
        if wrong.any():
            self._race(reach, shadow, wrong, now, before)

    def _race(self, reach: Access, shadow: Shadow, wrong: Values, now: str, before: str) -> None:
        assert self.order is not None
        wave = reach.wave
        row, column = (int(one) for one in np.argwhere(wrong)[0])
        cell = int(reach.cells[row, column])
        first, other = wave.code[int(shadow.place[cell])].statement, int(shadow.cta[cell])
        line, relaxed = first.location().line, int(self.order.relaxed[other])
        fix = f"put barrier.cluster.arrive behind line {line}, and barrier.cluster.wait before this"
        if relaxed >= 0:
            arrival = wave.code[relaxed].statement.location().line
            fix = f"barrier.cluster.arrive.relaxed at line {arrival} orders nothing: leave out .relaxed"
        message = (
            f"race: {reach.mnemonic} {now} byte {reach.where(row, column)}, which "
            f"{named(wave, other)}, has {before} at line {line}, and nothing orders the two: {fix} "
            f"[{reach.who(row)}]"
        )
        key = ("cluster race", reach.place, int(shadow.place[cell]), before)
        self._add("race", key, message, reach.location, first.location())

    def _add(
        self, kind: str, key: tuple[object, ...], message: str, location: Location, other: Location | None
    ) -> None:
        finding = LaunchFinding(kind=kind, severity="error", message=message, location=location, other=other)
        self.findings.add(key, finding)

    # --- shadows ---

    def _note_write(self, reach: Access, *, later: bool = False) -> None:
        ctas = np.broadcast_to(reach.ctas, reach.cells.shape)
        self.wrote.note(reach.cells, ctas, reach.wave.statements, reach.place)
        self.later[reach.cells] = later
        if not later:
            self._note_far(reach)

    def _note_read(self, reach: Access) -> None:
        ctas = np.broadcast_to(reach.ctas, reach.cells.shape)
        for shadow, chosen in ((self.own_read, ~reach.far), (self.far_read, reach.far)):
            if chosen.any():
                shadow.note(reach.cells[chosen], ctas[chosen], reach.wave.statements, reach.place)
        self._note_far(reach)

    def _note_far(self, reach: Access) -> None:
        """Which CTAs have used the memory of which others, and when."""
        far = reach.far
        if far.any():
            ctas = np.broadcast_to(reach.ctas, far.shape)
            for home, by in np.unique(np.stack([reach.homes[far], ctas[far]], axis=1), axis=0).tolist():
                self.latest[home, by] = reach.wave.statements, reach.place


def _is_strong(statement: object) -> bool:
    opcode, words = statement.opcode, statement.modifiers  # type: ignore[attr-defined]
    return opcode in _ATOMIC or not _STRONG.isdisjoint(words)
