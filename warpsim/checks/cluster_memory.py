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
from ..machine.state.lanes import Front, Lanes, Values
from ..machine.state.memory_access import Touch
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


class ClusterMemory:
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

    def fence(self, wave: Wave, front: Front, lanes: Lanes, words: tuple[str, ...]) -> None:
        """Lanes execute a fence."""
        self._begin(wave).fence(wave, lanes, words)

    def arrived(self, wave: Wave, front: Front, lanes: Lanes) -> None:
        """Lanes arrive at the cluster barrier."""
        self._begin(wave).arrive(wave, front, lanes)

    def cluster_met(self, wave: Wave, front: Front, lanes: Lanes) -> None:
        """Lanes have waited for the cluster barrier."""
        self._begin(wave).meet(wave, lanes, ClusterBarrier.of(wave))

    def cluster_barrier(self, wave: Wave, clusters: Clusters, barrier: ClusterBarrier) -> None:
        """The barrier of some clusters is complete."""
        self._begin(wave).complete(wave, clusters)

    # --- accesses ---

    def load(self, wave: Wave, touch: Touch) -> None:
        """Written by another CTA before, with nothing in between: a race."""
        if touch.memory is not wave.shared:
            return
        order, access = self._begin(wave), access_of(wave, touch)
        if not _ACQUIRES.isdisjoint(wave.code[touch.front.pc].statement.modifiers):
            order.acquire(wave, touch.lanes)
        self._check_begun(access)
        self._meet(access, self.wrote, "reads", "written")
        self._note_read(access)

    def store(self, wave: Wave, touch: Touch) -> None:
        """Written or read by another CTA before, with nothing in between: a race."""
        if touch.memory is not wave.shared:
            return
        self._begin(wave)
        access = access_of(wave, touch)
        self._check_begun(access)
        self._check_write(access)
        self._note_write(access)
        if (new := touch.stored) is not None:
            self._check_together(access, new)

    landed = store  # what cp.async brings

    def _check_together(self, access: Access, new: Values) -> None:
        """Lanes of several CTAs write different values to one byte in one statement."""
        clash = (self.wrote.cta[access.cells] != access.ctas) & ~self.strong[access.place]
        if clash.any():
            left = np.zeros(access.wave.shared.size, np.uint8)
            left[access.cells] = new
            clash &= left[access.cells] != new
            if clash.any():
                self._race(access, self.wrote, clash, "writes", "written")

    def _check_write(self, access: Access) -> None:
        for shadow, before in ((self.wrote, "written"), (self.own_read, "read"), (self.far_read, "read")):
            self._meet(access, shadow, "writes", before)

    def atomic(self, wave: Wave, touch: Touch) -> None:
        """As a store; one that acquires orders what comes after it."""
        if not _ACQUIRES.isdisjoint(wave.code[touch.front.pc].statement.modifiers):
            self._begin(wave).acquire(wave, touch.lanes)
        self.store(wave, touch)

    def mbarrier(self, wave: Wave, touch: Touch) -> None:
        """Operations on an object of another CTA, whose initialisation must be known."""
        self._begin(wave)
        access = access_of(wave, touch)
        self._check_initialised(access)
        self._note_far(access)

    # --- operations in flight ---

    def issued(self, wave: Wave, front: Front, pending: Pending) -> None:
        """What it will write and signal in other CTAs is there."""
        self._begin(wave)
        self.issued_at[id(pending)] = front.pc
        for offset, _ in pending.signals:
            self._check_initialised(
                access_of_lane(wave, front.pc, pending.lane, np.arange(offset, offset + 8))
            )
        for access in written_by(wave, front.pc, pending):
            self._check_begun(access)

    def completed(self, wave: Wave, pending: Pending) -> None:
        """Its bytes are written now."""
        self._begin(wave)
        for access in written_by(wave, self.issued_at.pop(id(pending)), pending):
            self._note_write(access, later=True)

    # --- ends ---

    def exit(self, wave: Wave, front: Front, lanes: Lanes) -> None:
        """CTAs that are done: others have told them that they no longer use their memory."""
        self._begin(wave)
        for cta in np.unique(wave.cta[lanes.index]).tolist():
            if not wave.alive_of_cta[cta]:
                self._check_end(wave, front, cta)

    def _check_end(self, wave: Wave, front: Front, cta: int) -> None:
        assert self.order is not None
        for (home, other), (time, place) in self.latest.items():
            known = self.order.known(np.array(cta), np.array(other), np.array(time))
            if home != cta or known:
                continue
            used, end = wave.code[place].statement, wave.code[front.pc].statement
            line = used.location().line
            message = (
                f"{named(wave, cta)}, ends while {named(wave, other)}, may still use its shared memory: "
                f"nothing says that {used.mnemonic} of line {line} is done; put barrier.cluster.arrive "
                f"behind line {line}, and barrier.cluster.wait before this end"
            )
            self._add("lifetime", ("cluster end", place), message, end.location(), used.location())

    # --- what is wrong ---

    def _check_begun(self, access: Access) -> None:
        """Another CTA is known to have begun before its memory is used."""
        assert self.order is not None
        wrong = access.far & ~self.order.begun(access.ctas)
        if wrong.any():
            row, column = (int(one) for one in np.argwhere(wrong)[0])
            message = (
                f"{access.mnemonic} reaches {access.where(row, column)}, and nothing says that this CTA "
                f"has begun: put barrier.cluster.arrive and barrier.cluster.wait before line "
                f"{access.location.line} [{access.who(row)}]"
            )
            self._add("not begun", ("not begun", access.place), message, access.location, None)

    def _check_initialised(self, access: Access) -> None:
        """The initialisation of mbarriers of other CTAs is known."""
        assert self.order is not None
        cells, init = access.cells, self.wrote
        known = self.order.known(access.ctas, init.cta[cells], init.time[cells], init=True)
        wrong = access.far & (init.cta[cells] >= 0) & (init.cta[cells] != access.ctas) & ~known
        if not wrong.any():
            return
        row, column = (int(one) for one in np.argwhere(wrong)[0])
        first = access.wave.code[int(init.place[cells[row, column]])].statement
        message = (
            f"{access.mnemonic} reaches the mbarrier at {access.where(row, column)}, whose initialisation at "
            f"line {first.location().line} it need not see: put fence.mbarrier_init.release.cluster and "
            f"barrier.cluster.arrive behind that line, and barrier.cluster.wait before line "
            f"{access.location.line} [{access.who(row)}]"
        )
        key = ("mbarrier init", access.place)
        self._add("mbarrier init", key, message, access.location, first.location())

    def _meet(self, access: Access, shadow: Shadow, now: str, before: str) -> None:
        """Find bytes that another CTA has touched, with nothing in between."""
        assert self.order is not None
        cells = access.cells
        other = (shadow.cta[cells] >= 0) & (shadow.cta[cells] != access.ctas)
        if not other.any():
            return
        weak = ~(self.strong[access.place] & self.strong[shadow.place[cells]])
        known = self.order.known(access.ctas, shadow.cta[cells], shadow.time[cells])
        if shadow is self.wrote:
            known |= self.later[cells]
        wrong = other & weak & ~known
        if wrong.any():
            self._race(access, shadow, wrong, now, before)

    def _race(self, access: Access, shadow: Shadow, wrong: Values, now: str, before: str) -> None:
        assert self.order is not None
        wave = access.wave
        row, column = (int(one) for one in np.argwhere(wrong)[0])
        cell = int(access.cells[row, column])
        first, other = wave.code[int(shadow.place[cell])].statement, int(shadow.cta[cell])
        line, relaxed = first.location().line, int(self.order.relaxed[other])
        fix = f"put barrier.cluster.arrive behind line {line}, and barrier.cluster.wait before this"
        if relaxed >= 0:
            arrival = wave.code[relaxed].statement.location().line
            fix = f"barrier.cluster.arrive.relaxed at line {arrival} orders nothing: leave out .relaxed"
        message = (
            f"race: {access.mnemonic} {now} byte {access.where(row, column)}, which "
            f"{named(wave, other)}, has {before} at line {line}, and nothing orders the two: {fix} "
            f"[{access.who(row)}]"
        )
        key = ("cluster race", access.place, int(shadow.place[cell]), before)
        self._add("race", key, message, access.location, first.location())

    def _add(
        self, kind: str, key: tuple[object, ...], message: str, location: Location, other: Location | None
    ) -> None:
        finding = LaunchFinding(kind=kind, severity="error", message=message, location=location, other=other)
        self.findings.add(key, finding)

    # --- shadows ---

    def _note_write(self, access: Access, *, later: bool = False) -> None:
        ctas = np.broadcast_to(access.ctas, access.cells.shape)
        self.wrote.note(access.cells, ctas, access.wave.statements, access.place)
        self.later[access.cells] = later
        if not later:
            self._note_far(access)

    def _note_read(self, access: Access) -> None:
        ctas = np.broadcast_to(access.ctas, access.cells.shape)
        for shadow, chosen in ((self.own_read, ~access.far), (self.far_read, access.far)):
            if chosen.any():
                shadow.note(access.cells[chosen], ctas[chosen], access.wave.statements, access.place)
        self._note_far(access)

    def _note_far(self, access: Access) -> None:
        """Which CTAs have used the memory of which others, and when."""
        far = access.far
        if far.any():
            ctas = np.broadcast_to(access.ctas, far.shape)
            for home, by in np.unique(np.stack([access.homes[far], ctas[far]], axis=1), axis=0).tolist():
                self.latest[home, by] = access.wave.statements, access.place


def _is_strong(statement: object) -> bool:
    opcode, words = statement.opcode, statement.modifiers  # type: ignore[attr-defined]
    return opcode in _ATOMIC or not _STRONG.isdisjoint(words)
