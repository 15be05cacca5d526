"""Checks of shared memory that CTAs of a cluster share: races, CTAs not begun, CTAs that end too soon.

A shadow has, for each byte of the wave's shared memory, who wrote it last, who read it last in its own CTA
and in another one, when, and at which statement. What stands between two accesses is the business of
cluster_order.py; warps of one CTA are memory_checks.py's. Operations in flight write when they complete:
their bytes are known to those who have waited for an mbarrier, not by a cluster barrier. PTX ISA 9.1,
sections 8, 9.7.9.12 and 9.7.13.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..clusters import in_shared, named
from ..lanes import Front, Lanes, Values
from ..spaces import Bytes, Offsets
from .cluster_order import NEVER, ClusterOrder
from .findings import Findings, LaunchFinding

if TYPE_CHECKING:
    from ...errors import Location
    from ..asynchrony import Pending
    from ..cluster_barrier import ClusterBarrier, Clusters
    from ..wave import Wave

_STRONG = frozenset({"volatile", "relaxed", "acquire", "release", "mmio"})
_ACQUIRES = frozenset({"acquire", "acq_rel", "sc"})
_ATOMIC = frozenset({"atom", "red", "mbarrier"})
_REMOTE = frozenset({"st.async", "red.async"})


@dataclass(eq=False)
class _Shadow:
    """Of each byte: the CTA that touched it last, -1 for none; when; and at which statement."""

    cta: npt.NDArray[np.int16]
    time: npt.NDArray[np.int64]
    place: npt.NDArray[np.int32]

    @classmethod
    def of(cls, size: int) -> _Shadow:
        """Nobody has touched anything."""
        return cls(np.full(size, -1, np.int16), np.full(size, NEVER, np.int64), np.zeros(size, np.int32))

    def note(self, cells: Values, ctas: Values, time: int, place: int) -> None:
        """Bytes are touched now."""
        self.cta[cells], self.time[cells], self.place[cells] = ctas, time, place


@dataclass(frozen=True)
class _Access:
    """Bytes (words, size) that lanes touch: ``lanes`` and ``ctas`` (words, 1) say whose."""

    wave: Wave
    place: int  # the statement
    cells: Values
    lanes: Values
    ctas: Values
    location: Location
    mnemonic: str

    @property
    def homes(self) -> Values:
        """The CTA whose memory each byte is in."""
        homes: Values = self.cells // self.wave.shared_stride
        return homes

    @property
    def far(self) -> Values:
        """Which bytes are in the memory of another CTA."""
        return np.asarray(self.homes != self.ctas)

    def where(self, row: int, column: int) -> str:
        """A byte in words."""
        return in_shared(self.wave, int(self.lanes[row, 0]), int(self.cells[row, column]))

    def who(self, row: int) -> str:
        """A lane in words."""
        return self.wave.place(int(self.lanes[min(row, len(self.lanes) - 1), 0]))


class ClusterMemory:
    """Tells of accesses of different CTAs of a cluster that nothing orders."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.order: ClusterOrder | None = None
        self.issued_at: dict[int, tuple[int, int]] = {}  # when and where what is in flight was issued, by id

    def _begin(self, wave: Wave) -> ClusterOrder:
        if self.order is None:
            self.order = ClusterOrder(wave)
            self.wrote, self.own_read, self.far_read = (_Shadow.of(wave.shared.size) for _ in range(3))
            self.later = np.zeros(wave.shared.size, np.bool_)  # the last write was of what is asynchronous
            # (home, by) -> when a CTA used the memory of another one last, where, whether it completes later
            self.touched: dict[tuple[int, int], tuple[int, int, bool]] = {}
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

    def met(self, wave: Wave, front: Front, lanes: Lanes, barrier: ClusterBarrier) -> None:
        """Lanes have waited for the cluster barrier."""
        self._begin(wave).meet(wave, lanes, barrier)

    def cluster_barrier(self, wave: Wave, clusters: Clusters, barrier: ClusterBarrier) -> None:
        """The barrier of some clusters is complete."""
        self._begin(wave).complete(wave, clusters)

    # --- accesses ---

    def load(
        self, wave: Wave, front: Front, lanes: Lanes, memory: Bytes, offsets: Offsets, size: int
    ) -> None:
        """Written by another CTA before, with nothing in between: a race."""
        if memory is not wave.shared:
            return
        order, access = self._begin(wave), _access(wave, front, lanes, offsets, size)
        if not _ACQUIRES.isdisjoint(wave.code[front.pc].statement.modifiers):
            order.acquire(wave, lanes)
        self._check_begun(access)
        self._meet(access, self.wrote, "reads", "written")
        self._note_read(access)

    def store(
        self,
        wave: Wave,
        front: Front,
        lanes: Lanes,
        memory: Bytes,
        offsets: Offsets,
        size: int,
        words: Values | None = None,
    ) -> None:
        """Written or read by another CTA before, with nothing in between: a race."""
        if memory is not wave.shared:
            return
        self._begin(wave)
        access = _access(wave, front, lanes, offsets, size)
        self._check_begun(access)
        self._check_write(access)
        self._note_write(access)

    landed = store  # what cp.async brings

    def _check_write(self, access: _Access) -> None:
        for shadow, before in ((self.wrote, "written"), (self.own_read, "read"), (self.far_read, "read")):
            self._meet(access, shadow, "writes", before)

    def atomic(
        self, wave: Wave, front: Front, lanes: Lanes, memory: Bytes, offsets: Offsets, size: int
    ) -> None:
        """As a store; one that acquires orders what comes after it."""
        if not _ACQUIRES.isdisjoint(wave.code[front.pc].statement.modifiers):
            self._begin(wave).acquire(wave, lanes)
        self.store(wave, front, lanes, memory, offsets, size)

    def mbarrier(self, wave: Wave, front: Front, lanes: Lanes, memory: Bytes, offsets: Offsets) -> None:
        """Operations on an object of another CTA, whose initialisation must be known."""
        self._begin(wave)
        access = _access(wave, front, lanes, offsets, 8)
        self._check_initialised(access)
        self._note_far(access)

    # --- operations in flight ---

    def issued(self, wave: Wave, front: Front, pending: Pending) -> None:
        """What it will write and signal in other CTAs is there, and nobody else uses it."""
        self._begin(wave)
        self.issued_at[id(pending)] = wave.statements, front.pc
        for offset, _ in pending.signals:
            signal = _of_lane(wave, front.pc, pending.lane, np.arange(offset, offset + 8))
            self._check_initialised(signal)
        for access in _written(wave, front.pc, pending):
            self._check_begun(access)
            self._check_write(access)

    def completed(self, wave: Wave, pending: Pending) -> None:
        """Its bytes are written now; who touched them since it was issued did so too early."""
        self._begin(wave)
        begun, place = self.issued_at.pop(id(pending))
        for access in _written(wave, place, pending):
            if pending.kind in _REMOTE:
                self._check_flight(access, begun)
            self._note_write(access, later=True)

    def _check_flight(self, access: _Access, begun: int) -> None:
        early = self.own_read.time[access.cells] > begun
        if early.any():
            row, column = (int(one) for one in np.argwhere(early)[0])
            cell = int(access.cells[row, column])
            reader = access.wave.code[int(self.own_read.place[cell])].statement
            home = named(access.wave, cell // access.wave.shared_stride)
            message = (
                f"race: {reader.mnemonic} reads byte {cell % access.wave.shared_stride:#x} of shared memory "
                f"while {access.mnemonic} of line {access.location.line} is on its way there: "
                f"wait for the phase of its mbarrier before [{home}]"
            )
            key = ("cluster flight", access.place, int(self.own_read.place[cell]))
            self._add("race", key, message, reader.location(), access.location)

    # --- ends ---

    def exit(self, wave: Wave, front: Front, lanes: Lanes) -> None:
        """CTAs that are done: others have told them that they no longer use their memory."""
        self._begin(wave)
        for cta in np.unique(wave.cta[lanes.index]).tolist():
            if not wave.alive_of_cta[cta]:
                self._check_end(wave, front, lanes, cta)

    def _check_end(self, wave: Wave, front: Front, lanes: Lanes, cta: int) -> None:
        assert self.order is not None
        for (home, other), (time, place, later) in self.touched.items():
            if home != cta:
                continue
            known = self.order.acquired[cta] >= time
            if not later:
                known = bool(self.order.known(np.array(cta), np.array(other), np.array(time)))
            if not known:
                used, end = wave.code[place].statement, wave.code[front.pc].statement
                message = (
                    f"{named(wave, cta)}, ends while {named(wave, other)}, may still use its shared memory: "
                    f"nothing says that {used.mnemonic} of line {used.location().line} is done; "
                    f"put barrier.cluster.arrive behind that line, and barrier.cluster.wait before this end"
                )
                key = ("cluster end", place)
                self._add("lifetime", key, message, end.location(), used.location())

    # --- what is wrong ---

    def _check_begun(self, access: _Access) -> None:
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

    def _check_initialised(self, access: _Access) -> None:
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

    def _meet(self, access: _Access, shadow: _Shadow, now: str, before: str) -> None:
        """Find bytes that another CTA has touched, with nothing in between."""
        assert self.order is not None
        cells = access.cells
        other = (shadow.cta[cells] >= 0) & (shadow.cta[cells] != access.ctas)
        if not other.any():
            return
        weak = ~(self.strong[access.place] & self.strong[shadow.place[cells]])
        known = self.order.known(access.ctas, shadow.cta[cells], shadow.time[cells])
        if shadow is self.wrote:
            acquired = self.order.acquired[access.ctas] >= shadow.time[cells]
            known = np.where(self.later[cells], acquired, known)
        wrong = other & weak & ~known
        if wrong.any():
            self._race(access, shadow, wrong, now, before)

    def _race(self, access: _Access, shadow: _Shadow, wrong: Values, now: str, before: str) -> None:
        assert self.order is not None
        wave = access.wave
        row, column = (int(one) for one in np.argwhere(wrong)[0])
        cell = int(access.cells[row, column])
        first, other = wave.code[int(shadow.place[cell])].statement, int(shadow.cta[cell])
        line, relaxed = first.location().line, int(self.order.relaxed[other])
        fix = f"put barrier.cluster.arrive behind line {line}, and barrier.cluster.wait before this"
        if shadow is self.wrote and self.later[cell]:
            fix = "wait for the phase of its mbarrier before"
        elif relaxed >= 0:
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

    def _note_write(self, access: _Access, *, later: bool = False) -> None:
        ctas = np.broadcast_to(access.ctas, access.cells.shape)
        self.wrote.note(access.cells, ctas, access.wave.statements, access.place)
        self.later[access.cells] = later
        self._note_far(access, later=later)

    def _note_read(self, access: _Access) -> None:
        ctas = np.broadcast_to(access.ctas, access.cells.shape)
        for shadow, chosen in ((self.own_read, ~access.far), (self.far_read, access.far)):
            if chosen.any():
                shadow.note(access.cells[chosen], ctas[chosen], access.wave.statements, access.place)
        self._note_far(access)

    def _note_far(self, access: _Access, *, later: bool = False) -> None:
        """Which CTAs have used the memory of which others, and when."""
        far = access.far
        if far.any():
            ctas = np.broadcast_to(access.ctas, far.shape)
            for home, by in np.unique(np.stack([access.homes[far], ctas[far]], axis=1), axis=0).tolist():
                self.touched[home, by] = (access.wave.statements, access.place, later)


def _is_strong(statement: object) -> bool:
    opcode, words = statement.opcode, statement.modifiers  # type: ignore[attr-defined]
    return opcode in _ATOMIC or not _STRONG.isdisjoint(words)


def _access(wave: Wave, front: Front, lanes: Lanes, offsets: Offsets, size: int) -> _Access:
    """The bytes of a statement's lanes."""
    index = np.resize(lanes.index, offsets.size)[:, None]
    statement = wave.code[front.pc].statement
    cells = offsets[:, None] + np.arange(size)
    return _Access(wave, front.pc, cells, index, wave.cta[index], statement.location(), statement.mnemonic)


def _of_lane(wave: Wave, place: int, lane: int, cells: Values) -> _Access:
    """Bytes that an operation of one lane touches."""
    index, statement = np.array([[lane]]), wave.code[place].statement
    return _Access(
        wave, place, cells[None, :], index, wave.cta[index], statement.location(), statement.mnemonic
    )


def _written(wave: Wave, place: int, pending: Pending) -> list[_Access]:
    """The bytes of shared memory that an operation writes, if some are in other CTAs."""
    found = [
        _of_lane(wave, place, pending.lane, one.cells) for one in pending.writes if one.space == "shared"
    ]
    return [one for one in found if one.cells.size and one.far.any()]
