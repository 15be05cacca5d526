"""Races in shared memory: accesses that nothing orders, one of them a write, of warps, lanes or CTAs.

Two accesses are in a race where neither is before the other (order.py), at least one of them writes, and at
least one of them is weak; atomics are in none. Threads of a CTA that store what is there already are in none,
either, nor are lanes of a warp that store in one statement, of which one stays. Lanes of a warp are threads
like others (PTX ISA 9.1, section 3.1): to execute side by side orders nothing, bar.warp.sync with both lanes
or a wider barrier does (section 9.7.13). Whether other .sync statements order memory PTX leaves open: a race
that only they separate is a warning. What operations in flight read and write is copy_order.py's. This
observer is the last of those that look at shared memory, and notes every access in its shadow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from ...isa.warps import WARP
from ...machine.run.events import Observer
from ...machine.state.lanes import Lanes, Mask
from ...machine.state.memory_access import MemoryAccess
from .fast_path.accesses import Accesses, StoreMark
from .findings import Findings
from .race_messages import Reach, Verbs, between_ctas, between_lanes, between_warps
from .shadow import MANY, OPERATION, STRONG, Cells, Records, has, places, record, times, whose

if TYPE_CHECKING:
    from ...machine.run.wave import Wave

_STORED, _LANDED = StoreMark(initialised=True), StoreMark(initialised=True, pending_copy=0)
_MOST_KNOWN = 16  # sets of lanes that are remembered


class _Owners(NamedTuple):
    """Lanes of accesses ``(words, 1)``, their warps, the rows of those in a shadow, and owners of records.

    ``of`` keeps the lanes, by whose identity these are found again.
    """

    of: Lanes
    lanes: Cells
    warps: Cells
    rows: Cells
    owner: Records


class Races(Observer):
    """An observer that notes accesses to shared memory, and finds those in a race."""

    def __init__(self, findings: Findings, accesses: Accesses) -> None:
        self.findings, self.order, self.accesses = findings, accesses.order, accesses
        self.known: set[tuple[int, str]] = set()  # earlier accesses, "read" or "written", of races found
        self.landing = False
        self.owners: dict[tuple[int, int], _Owners] = {}

    # --- accesses ---

    def load(self, wave: Wave, access: MemoryAccess) -> None:
        """Written before, with nothing in between: a race."""
        if access.memory is not wave.memories.shared or self.accesses.is_race_free_load(wave, access):
            return
        reach = self._reach(wave, access)
        self._check_written(reach, "reads")
        reach.shadow.note_read(reach.rows, reach.cells, reach.records, self._since(reach))

    def store(self, wave: Wave, access: MemoryAccess) -> None:
        """Written or read before, with nothing in between: a race."""
        self._store(wave, access, _STORED)

    atomic = store

    def copying(self, wave: Wave, access: MemoryAccess) -> None:
        """Check an asynchronous copy, which may write at any time from now on."""
        self._store(wave, access, StoreMark(initialised=False, pending_copy=access.path.pc + 1))

    def landed(self, wave: Wave, access: MemoryAccess) -> None:
        """Check a copy that lands; an access that its start was in a race with is not reported again."""
        self.landing = True
        self._store(wave, access, _LANDED)
        self.landing = False

    def _store(self, wave: Wave, access: MemoryAccess, left: StoreMark) -> None:
        if access.memory is not wave.memories.shared:
            return
        quiet, several = self.accesses.store(wave, access, left)
        if quiet and not several:
            return
        reach = self._reach(wave, access)
        if not quiet:
            self._check_store(reach)
            self._note(reach, left)
        if wave.lanes > WARP:
            self._check_together(reach, reach.shadow.wrote[reach.cells])

    def _note(self, reach: Reach, left: StoreMark) -> None:
        """Note a store, and what it leaves."""
        shadow = reach.shadow
        shadow.write(reach.rows, reach.cells, reach.records, self._since(reach))
        if left.initialised:
            shadow.filled[reach.cells] = 1
        if left.pending_copy >= 0:
            shadow.flying[reach.cells] = left.pending_copy

    # --- accesses that are looked at ---

    def _reach(self, wave: Wave, access: MemoryAccess) -> Reach:
        shadow, clocks = self.accesses.shadow(wave), self.order.clocks
        self.order.lanes.accessed += 1
        flags = STRONG * int(self.accesses.is_strong(wave, access.path.pc))
        of_warps = record(clocks.own(np.arange(clocks.warps)), access.path.pc, 0, flags)
        known = self._owners(access)
        records = of_warps[known.warps] + known.owner
        return Reach(wave, access, shadow, shadow.of(access), known.lanes, known.warps, known.rows, records)

    def _owners(self, access: MemoryAccess) -> _Owners:
        """Return what the lanes of an access are; remembered of some lanes, for they come again."""
        key = id(access.lanes), access.offsets.size
        known = self.owners.get(key)
        if known is None:
            clocks, lanes = self.order.clocks, access.lane_of[:, None]
            owner = lanes % (clocks.of_cluster * WARP) << 4
            warps = lanes // WARP
            known = _Owners(access.lanes, lanes, warps, clocks.column[warps], owner)
            if len(self.owners) == _MOST_KNOWN:
                self.owners.clear()
            self.owners[key] = known
        return known

    def _since(self, reach: Reach) -> npt.NDArray[np.int32]:
        """Return ``(words, 1)``: when all lanes of the warps were ordered."""
        since: npt.NDArray[np.int32] = self.order.lanes.ordered.since[reach.warps]
        return since

    # --- what is in a race ---

    def _check_written(self, reach: Reach, now: str) -> None:
        """Find cells with earlier writes that are not before this access."""
        shadow, verbs = reach.shadow, (now, "written")
        if self._fresh(reach, shadow.writes).size:
            self._check(reach, verbs, shadow.wrote[reach.cells])
        if self._near(reach, shadow.writes):
            self._check_lanes(reach, verbs, shadow.wrote[reach.cells])

    def _check_store(self, reach: Reach) -> None:
        shadow, verbs = reach.shadow, ("writes", "read")
        self._check_written(reach, "writes")
        near = self._near(reach, shadow.reads)
        rows = self._fresh(reach, shadow.reads)
        if rows.size:
            self._check(reach, verbs, self._first_of(reach, rows))
        if near:
            self._check_lanes(reach, verbs, shadow.read[reach.rows, reach.cells])

    def _near(self, reach: Reach, latest: npt.NDArray[np.int32]) -> bool:
        """Return whether warps have accessed the pages of an access since all their lanes were ordered."""
        if int(reach.rows.max()) >= len(latest):
            return False
        times_: Mask = latest[reach.rows, reach.shadow.pages(reach.cells)] >= self._since(reach)
        return bool(times_.any())

    def _first_of(self, reach: Reach, rows: Cells) -> Records:
        """Of each cell the first read that need not be before an access."""
        found = np.zeros(reach.cells.shape, np.int64)
        for row in rows.tolist():
            seen = reach.shadow.read[row, reach.cells]
            found = np.where(self._late(reach, seen) & (found == 0), seen, found)
        return found

    def _late(self, reach: Reach, seen: Records) -> Mask:
        """Return which earlier accesses of warps are not known to those of this access."""
        clocks = self.order.clocks
        column = whose(seen) // WARP % clocks.of_cluster
        late: Mask = times(seen) > clocks.visible[reach.warps, column]
        late &= ~has(seen, OPERATION)
        return late

    def _fresh(self, reach: Reach, latest: npt.NDArray[np.int32]) -> Cells:
        """Return the rows of which some warps need not know all that they did in the pages of an access."""
        if not len(latest):
            return np.zeros(0, np.int64)
        fresh = self.order.fresh(reach.shadow, latest)
        if not fresh.any():
            if latest is reach.shadow.reads and self.order.all_lanes_know(latest):
                reach.shadow.forget_noted()
            return np.zeros(0, np.int64)
        return np.flatnonzero((fresh & reach.touched).any(axis=1))

    def _check(self, reach: Reach, verbs: Verbs, seen: Records) -> None:
        """Find cells with earlier accesses that are not before this access."""
        if not seen.any():
            return
        late = self._late(reach, seen)
        if late.any():
            self._report_unordered(reach, verbs, seen, late, reach.differs if verbs[1] == "written" else None)

    def _report_unordered(
        self, reach: Reach, verbs: Verbs, seen: Records, late: Mask, differs: Mask | None
    ) -> None:
        """Report accesses of other warps: of the CTA, where they write another value, or of other CTAs."""
        late = late & ~(has(reach.records, STRONG) & has(seen, STRONG))
        wave, ctas = reach.wave, reach.warps // reach.wave.warps
        rank = ctas % wave.cluster.count
        near = whose(seen) // WARP // wave.warps == rank
        clash = late & near & reach.of_cells(differs)
        if self.landing and clash.any():
            clash &= ~np.isin(places(seen), [pc for pc, how in self.known if how == verbs[1]])
        if clash.any():
            row, byte, old = reach.first(clash, differs, seen)
            self.known.add((int(places(old)), verbs[1]))
            self._report_race(reach, row, byte, old, verbs)
        clash = late & ~near & ~self._both_strong(reach, seen)
        if clash.any():
            row, byte, old = reach.first(clash, None, seen)
            self.findings.add(*between_ctas(reach, self.order, row, byte, old, verbs))

    def _report_race(self, reach: Reach, row: int, byte: int, old: int, verbs: Verbs) -> None:
        """Report two warps of a CTA."""
        self.findings.add(*between_warps(reach, row, byte, old, verbs))

    def _both_strong(self, reach: Reach, seen: Records) -> Mask:
        """Return where both accesses are strong, or of mbarriers."""
        wave = reach.wave
        strong = [
            pc
            for pc in (reach.pc, *np.unique(places(seen)).tolist())
            if self.accesses.is_strong(wave, pc) or wave.code[pc].statement.opcode == "mbarrier"
        ]
        return np.isin(places(seen), strong if reach.pc in strong[:1] else [])

    def _check_together(self, reach: Reach, left: Records) -> None:
        """Find cells to which several warps write different values by one statement."""
        if (left & ~MANY == reach.records).all() or self.accesses.is_strong(reach.wave, reach.pc):
            return
        other = whose(left) // WARP != whose(reach.records) // WARP
        new, differs = reach.access.stored, None
        if new is not None and other.any():
            bytes_ = np.zeros(reach.wave.memories.shared.size, np.uint8)
            bytes_[reach.access.cells] = new
            differs = bytes_[reach.access.cells] != new
            other &= reach.of_cells(differs)
        if other.any():
            self._report_unordered(reach, ("writes", "written"), left, other, differs)

    def _check_lanes(self, reach: Reach, verbs: Verbs, seen: Records) -> None:
        """Find accesses of other lanes of the same warp that nothing orders with this access.

        What several lanes have written at once, any lane may read: it may be one of them.
        """
        size = self.order.clocks.of_cluster * WARP
        owners, mine, many = whose(seen), reach.lanes % size, has(seen, MANY)
        clash = (seen != 0) & (owners // WARP == mine // WARP) & ~has(seen, OPERATION)
        clash &= (owners != mine) & ~many if verbs[0] == "reads" else (owners != mine) | many
        clash &= ~(has(reach.records, STRONG) & has(seen, STRONG)) & reach.of_cells(reach.differs)
        clash &= self.order.lanes.ordered.apart(reach.lanes, owners, times(seen))
        if self.landing and clash.any():
            clash &= ~np.isin(places(seen), [pc for pc, how in self.known if how == verbs[1]])
        for pc in np.unique(places(seen[clash])).tolist():
            self._two_lanes(reach, verbs, seen, clash & (places(seen) == pc))

    def _two_lanes(self, reach: Reach, verbs: Verbs, seen: Records, clash: Mask) -> None:
        """Report accesses of one statement: with a warning where all lanes have met at .sync statements."""
        apart = clash & self.order.lanes.met.apart(reach.lanes, whose(seen), times(seen))
        other = reach.wave.code[int(places(seen[clash][0]))].statement
        met = not apart.any() or "sync" in other.modifiers
        place = reach.first(clash if met else apart, reach.differs, seen)
        self.known.add((int(places(place[2])), verbs[1]))
        self._found_lanes(reach, place, verbs, met=met)

    def _found_lanes(self, reach: Reach, place: tuple[int, int, int], verbs: Verbs, *, met: bool) -> None:
        """Report two lanes of a warp."""
        self.findings.add(*between_lanes(reach, *place, verbs, met=met))
