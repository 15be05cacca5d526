"""Races in shared memory: accesses that nothing orders, one of them a write, of warps, lanes or CTAs.

Two accesses are in a race where neither is before the other (order.py), at least one of them writes, and at
least one of them is weak; atomics are in none. Warps of a CTA that store what is there already are in none,
either. Lanes of a warp count only where they had taken different paths: what they do side by side in one
statement is ordered enough (PTX ISA 9.1, section 3.1). What operations in flight read and write is
copy_order.py's. This observer is the last of those that look at shared memory, and notes every access in its
shadow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from ...isa.warps import WARP
from ...machine.run.events import Observer
from ...machine.state.lanes import Lanes, Mask
from ...machine.state.memory_access import MemoryAccess
from .findings import Findings
from .quiet.accesses import Accesses, Left
from .race_messages import Reach, Verbs, between_ctas, between_lanes, between_warps
from .shadow import OPERATION, PARTED, STRONG, Cells, Records, has, places, record, times, whose

if TYPE_CHECKING:
    from ...machine.run.wave import Wave

_STORED, _LANDED = Left(filled=True), Left(filled=True, flight=0)  # what a store leaves, or a copy that lands
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
        self.together = accesses.together
        self.known: set[tuple[int, str]] = set()  # earlier accesses, "read" or "written", of races found
        self.landing = False
        self.owners: dict[tuple[int, int], _Owners] = {}

    # --- accesses ---

    def load(self, wave: Wave, access: MemoryAccess) -> None:
        """Written before, with nothing in between: a race."""
        if access.memory is not wave.memories.shared or self.accesses.is_quiet_load(wave, access):
            return
        reach = self._reach(wave, access)
        if self._fresh(reach, reach.shadow.writes).size:
            self._check(reach, ("reads", "written"), reach.shadow.wrote[reach.cells])
        records = reach.records
        if self.together:
            records = self._kept(reach)
        reach.shadow.note_read(reach.rows, reach.cells, records)

    def store(self, wave: Wave, access: MemoryAccess) -> None:
        """Written or read before, with nothing in between: a race."""
        self._store(wave, access, _STORED)

    atomic = store

    def copying(self, wave: Wave, access: MemoryAccess) -> None:
        """Check an asynchronous copy, which may write at any time from now on."""
        self._store(wave, access, Left(filled=False, flight=access.path.pc + 1))

    def landed(self, wave: Wave, access: MemoryAccess) -> None:
        """Check a copy that lands; an access that its start was in a race with is not reported again."""
        self.landing = True
        self._store(wave, access, _LANDED)
        self.landing = False

    def _store(self, wave: Wave, access: MemoryAccess, left: Left) -> None:
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

    @staticmethod
    def _note(reach: Reach, left: Left) -> None:
        """Note a store, and what it leaves."""
        shadow = reach.shadow
        shadow.write(reach.rows, reach.cells, reach.records)
        if left.filled:
            shadow.filled[reach.cells] = 1
        if left.flight >= 0:
            shadow.flying[reach.cells] = left.flight

    # --- accesses that are looked at ---

    def _reach(self, wave: Wave, access: MemoryAccess) -> Reach:
        shadow, clocks = self.accesses.shadow(wave), self.order.clocks
        flags: int | Records = STRONG * int(self.accesses.is_strong(wave, access.path.pc))
        if access.path.lanes.count != wave.alive:
            flags = flags + PARTED * self.accesses.parted(wave, access.path)
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

    def _kept(self, reach: Reach) -> Records:
        """Return records of reads, where those of lanes on other paths, which are not ordered yet, stay."""
        shadow, rows = reach.shadow, reach.rows
        if int(rows.max()) >= len(shadow.read):
            return reach.records
        before = shadow.read[rows, reach.cells]
        stay = has(before, PARTED) & self.order.apart(reach.warps, times(before))
        return np.where(stay, before, reach.records)

    # --- what is in a race ---

    def _check_store(self, reach: Reach) -> None:
        shadow = reach.shadow
        if self._fresh(reach, shadow.writes).size:
            self._check(reach, ("writes", "written"), shadow.wrote[reach.cells])
        rows = self._fresh(reach, shadow.reads)
        if rows.size:
            self._check(reach, ("writes", "read"), self._first_of(reach, rows))

    def _first_of(self, reach: Reach, rows: Cells) -> Records:
        """Of each cell the first read that need not be before an access."""
        found = np.zeros(reach.cells.shape, np.int64)
        for row in rows.tolist():
            seen = reach.shadow.read[row, reach.cells]
            matters = self._late(reach, seen)
            if self.together:
                matters |= has(seen, PARTED)
            found = np.where(matters & (found == 0), seen, found)
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
        if not len(latest) or self.together:
            return np.flatnonzero(latest.any(axis=1))
        fresh = self.order.fresh(reach.shadow, latest)
        if not fresh.any():
            if latest is reach.shadow.reads:
                reach.shadow.forget_noted()
            return np.zeros(0, np.int64)
        return np.flatnonzero((fresh & reach.touched).any(axis=1))

    def _check(self, reach: Reach, verbs: Verbs, seen: Records) -> None:
        """Find cells with earlier accesses that are not before this access."""
        if not seen.any():
            return
        late = self._late(reach, seen)
        if late.any():
            self._unordered(reach, verbs, seen, late, reach.differs if verbs[1] == "written" else None)
        if self.together:
            self._check_lanes(reach, verbs, seen)

    def _unordered(self, reach: Reach, verbs: Verbs, seen: Records, late: Mask, differs: Mask | None) -> None:
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
            self._found(reach, row, byte, old, verbs)
        clash = late & ~near & ~self._of_mbarriers(reach, seen)
        if clash.any():
            row, byte, old = reach.first(clash, None, seen)
            self.findings.add(*between_ctas(reach, self.order, row, byte, old, verbs))

    def _found(self, reach: Reach, row: int, byte: int, old: int, verbs: Verbs) -> None:
        """Report two warps of a CTA."""
        self.findings.add(*between_warps(reach, row, byte, old, verbs))

    def _of_mbarriers(self, reach: Reach, seen: Records) -> Mask:
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
        if (left == reach.records).all() or self.accesses.is_strong(reach.wave, reach.pc):
            return
        other = whose(left) // WARP != whose(reach.records) // WARP
        new, differs = reach.access.stored, None
        if new is not None and other.any():
            bytes_ = np.zeros(reach.wave.memories.shared.size, np.uint8)
            bytes_[reach.access.cells] = new
            differs = bytes_[reach.access.cells] != new
            other &= reach.of_cells(differs)
        if other.any():
            self._unordered(reach, ("writes", "written"), left, other, differs)

    def _check_lanes(self, reach: Reach, verbs: Verbs, seen: Records) -> None:
        """Find accesses of lanes of the same warp that had taken another path, and have not met since."""
        size = self.order.clocks.of_cluster * WARP
        owners, mine = whose(seen), reach.lanes % size
        clash = (
            has(seen, PARTED) & (owners // WARP == mine // WARP) & (owners != mine) & ~has(seen, OPERATION)
        )
        clash &= ~(has(reach.records, STRONG) & has(seen, STRONG))
        clash &= self.order.apart(reach.warps, times(seen))
        if not clash.any():
            return
        clash &= reach.of_cells(reach.differs)
        for pc in np.unique(places(seen[clash])).tolist():
            paths = self.together[pc][reach.lanes - mine + owners]
            apart = clash & (places(seen) == pc) & (paths >> (mine % WARP).astype(np.uint32) & 1 == 0)
            if apart.any():
                self.findings.add(*between_lanes(reach, *reach.first(apart, reach.differs, seen), verbs))
