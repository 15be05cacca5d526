"""The ordering rules of wgmma in launches: fences, groups and waits that are missing, by warpgroup.

The rules are those of register_order.py and hazard.py, which a Warpgroup has, too. Warpgroups that have done
the same so far share one state. Knows the events of a wave; accesses of shared memory are tile_marks.py's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..isa.warps import WARP
from ..machine.run.convergence import Warpgroups
from ..machine.run.events import Observer, RegisterUse, helper
from ..machine.run.pending import Pending
from ..machine.state.lanes import DivergentPath, Lanes, Mask, Values
from ..machine.state.memory_access import MemoryAccess
from ..machine.state.slots import Slot
from ..machine.state.spaces import Offsets
from .copy_order import reduces
from .findings import Findings, LaunchFinding
from .hazard import Hazard, Place, by_warps, differing, overwritten, runs_of, unproxied
from .register_order import RegisterOrder
from .register_uses import RegisterUses
from .tile_marks import CHUNK, TileMarks

if TYPE_CHECKING:
    from ..machine.opcodes.matrix.wgmma_groups import Verb
    from ..machine.run.events import Groups, Share, WgmmaStatement
    from ..machine.run.wave import Record, Wave

_PROXIES = ("async", "async.shared::cta", "async.shared::cluster")  # whose fence orders shared memory
_OPERANDS = {"a-desc": "a_descriptor", "b-desc": "b_descriptor", "scale-d": "scale_d"}  # by their roles


def _no_uses(findings: Findings) -> dict[int, RegisterUses]:
    return {}


_USES = Slot(_no_uses)  # by identity of the code, which RegisterUses keeps alive


@dataclass(eq=False)
class Cohort:
    """Warpgroups, as a mask over those of the wave, that have done the same so far."""

    groups: Mask
    order: RegisterOrder


class WarpgroupOrder(Observer):
    """An observer that finds what is missing between wgmma and other statements; of one wave."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.uses: RegisterUses | None = None  # None where there is no wgmma
        self.active = True
        self.cohorts: list[Cohort] = []
        self.marks: TileMarks | None = None
        self._where = ""  # the warpgroup that is looked at
        self._seen: tuple[Lanes | None, Mask] = (None, np.zeros(0, np.bool_))

    def instrument(self, code: Sequence[Record]) -> Sequence[Record]:
        """Return the code, with records that report where registers of wgmma are touched."""
        known = _USES.of(self.findings)
        if id(code) not in known:
            known[id(code)] = RegisterUses(code)
        kept = known[id(code)]
        self.uses = kept if kept.names else None
        self.active = self.uses is not None
        return kept.code

    # --- events ---

    def touched(self, wave: Wave, path: DivergentPath, lanes: Lanes, use: RegisterUse) -> None:
        """Check registers of wgmma that are about to be read or written."""
        for cohort in self._cohorts(wave, self._groups(wave, lanes)):
            order, copied = cohort.order, use.copies and bool(use.writes)
            if use.reads:
                order.access(use.reads, "read", use.place, copied=copied)
            if use.writes:
                order.access(use.writes, "write", use.place, copied=copied)
            if copied:
                order.copied(use.reads, use.writes)
            self._marks(wave).completed[cohort.groups] = order.completed

    def wgmma(self, wave: Wave, path: DivergentPath, statement: WgmmaStatement, share: Share) -> None:
        """Check a wgmma.mma_async that some warpgroups are about to execute."""
        if self.uses is None:
            return
        record, marks = wave.code[path.pc], self._marks(wave)
        names = {role: self.uses.named(record, numbers) for role, numbers in statement.registers.items()}
        place = record.statement.location
        mask = np.zeros(len(marks.completed), np.bool_)
        mask[share.groups] = True
        for cohort in self._cohorts(wave, mask):
            groups = np.flatnonzero(cohort.groups)
            step = cohort.order.wgmma(
                str(statement.form.shape),
                d=names["D"],
                a=names["A"],
                metadata=names["metadata"][0] if names["metadata"] else None,
                accumulate=share.scale_d,
                place=place,
                late=self.unproxied(wave, groups, share, place),
            )
            marks.reads(groups, share, step)

    def wgmma_order(self, wave: Wave, path: DivergentPath, groups: Groups, verb: Verb, most: int) -> None:
        """Apply wgmma.fence, commit_group or wait_group of some warpgroups."""
        if self.uses is None:
            return
        mask = np.zeros(len(self._marks(wave).completed), np.bool_)
        mask[groups] = True
        for cohort in self._cohorts(wave, mask):
            if verb == "fence":
                cohort.order.fence()
            elif verb == "commit":
                cohort.order.commit()
            else:
                cohort.order.wait(most, wave.code[path.pc].statement.location)
                self._marks(wave).completed[cohort.groups] = cohort.order.completed

    def differing(self, wave: Wave, path: DivergentPath, group: int, role: str, values: Values) -> None:
        """Report an operand that must be the same in the whole warpgroup and is not."""
        self._where = Warpgroups.of(wave).place(wave, group)
        record = wave.code[path.pc]
        assert record.matrix is not None
        place = partial(record.statement.operand_location, record.matrix.places[_OPERANDS[role]])
        self.report(list(differing(role, by_warps(values), place)))

    def fence(self, wave: Wave, path: DivergentPath, lanes: Lanes, words: tuple[str, ...]) -> None:
        """fence.proxy.async."""
        if self.uses is not None and words[:1] == ("proxy",) and ".".join(words[1:]) in _PROXIES:
            self._marks(wave).fence(np.unique(lanes.index // WARP))

    def store(self, wave: Wave, access: MemoryAccess) -> None:
        """Bytes are about to be written through the generic proxy."""
        if self.uses is None or access.memory is not wave.memories.shared:
            return
        chunks = _chunks(access.offsets, access.size)
        self._stored(wave, access, chunks)
        warps = access.lane_of // WARP
        self._marks(wave).store(chunks, np.resize(warps, chunks.size), access.path.pc)

    landed = store

    def atomic(self, wave: Wave, access: MemoryAccess) -> None:
        """Bytes are about to be changed through the generic proxy."""
        self.store(wave, access)

    def copying(self, wave: Wave, access: MemoryAccess) -> None:
        """Check a cp.async, which may write at any time from now on."""
        if self.uses is not None and access.memory is wave.memories.shared:
            self._stored(wave, access, _chunks(access.offsets, access.size))

    def issued(self, wave: Wave, path: DivergentPath, pending: Pending) -> None:
        """Check other asynchronous operations, too; they use the async proxy."""
        if self.uses is None:
            return
        for write in pending.writes:
            if write.space == "shared" and len(write.ranges):
                bounds = [
                    np.arange(first // CHUNK, -(-past // CHUNK)) for first, past in write.ranges.tolist()
                ]
                place = pending.record.statement.location
                self.written(wave, np.concatenate(bounds), place, partial(getattr, write, "cells"))
                whole = [
                    np.arange(-(-first // CHUNK), past // CHUNK) for first, past in write.ranges.tolist()
                ]
                if not reduces(pending.record):
                    self._marks(wave).brought(np.concatenate(whole))

    def exit(self, wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        """Lanes are done: so should be their wgmma."""
        if self.uses is None or not self.cohorts:
            return
        at = wave.code[path.pc]
        place = (at if at.statement.opcode in ("exit", "ret") else wave.code[path.pc - 1]).statement.location
        for cohort in self._cohorts(wave, self._groups(wave, lanes)):
            cohort.order.finish(place)

    # --- shared memory ---

    def _marks(self, wave: Wave) -> TileMarks:
        if self.marks is None:
            self.marks = TileMarks(wave)
        return self.marks

    def _stored(self, wave: Wave, access: MemoryAccess, chunks: npt.NDArray[np.int64]) -> None:
        place = wave.code[access.path.pc].statement.location
        self.written(wave, chunks, place, lambda: access.cells)

    @helper
    def written(
        self, wave: Wave, chunks: npt.NDArray[np.int64], place: Place, cells: Callable[[], Offsets]
    ) -> None:
        """Check chunks that are about to be written, of which ``cells`` returns the written bytes."""
        if not any(cohort.order.operations for cohort in self.cohorts):
            return
        marks = self._marks(wave)
        found = marks.busy(chunks)
        if found is None:
            return
        group, busy = found
        (order,) = (cohort.order for cohort in self.cohorts if cohort.groups[group])
        operation = order.operations[int(marks.read[group % marks.of_cta][busy].max())]
        self._where = marks.places.place(wave, group)
        cause = order.cause(operation, place)
        late = cells()
        ranges = runs_of(late[np.isin(late // CHUNK, busy)] % wave.memories.shared_stride)
        self.report([overwritten(ranges, operation.place, cause, place)])

    @helper
    def unproxied(self, wave: Wave, groups: Groups, share: Share, place: Place) -> Iterator[Hazard]:
        """Return the hazards of generic stores that a wgmma need not see."""
        marks = self._marks(wave)
        found = marks.unseen(groups, share)
        if found is not None:
            group, cells = found
            self._where = marks.places.place(wave, group)
            latest = cells[int(marks.stored[cells].argmax())]
            first = wave.code[int(marks.stored_at[latest])].statement.location
            yield unproxied(marks.ranges(cells), first, place)

    # --- cohorts ---

    def _groups(self, wave: Wave, lanes: Lanes) -> Mask:
        """Return the warpgroups that some lanes belong to."""
        if self._seen[0] is not lanes:
            self._seen = lanes, Warpgroups.of(wave).counts(lanes.mask) > 0
        return self._seen[1]

    def _cohorts(self, wave: Wave, groups: Mask) -> Iterator[Cohort]:
        """Yield cohorts of just these warpgroups: those of which some are not among them are parted."""
        if not self.cohorts:
            everyone = np.ones(len(groups), np.bool_)
            self.cohorts.append(Cohort(everyone, RegisterOrder(self.report, compiled=True)))
        for cohort in list(self.cohorts):
            inside = cohort.groups & groups
            if not inside.any():
                continue
            if not np.array_equal(inside, cohort.groups):
                self.cohorts.append(Cohort(cohort.groups & ~groups, cohort.order.copy()))
                cohort.groups = inside
            self._where = Warpgroups.of(wave).place(wave, int(inside.argmax()))
            yield cohort

    # --- reporting ---

    def report(self, hazards: Sequence[Hazard]) -> None:
        """Add findings; the warpgroup is named. What ptxas mends is a warning: chips execute mended code."""
        for hazard in hazards:
            what = f"{hazard.message}; {hazard.mended}" if hazard.mended else hazard.message
            finding = LaunchFinding(
                kind=hazard.rule,
                severity="warning" if hazard.mended else hazard.severity,
                message=f"{what} [{self._where}]",
                location=hazard.second,
                other=hazard.first,
                note=hazard.note,
                fix=hazard.fix,
            )
            self.findings.add((hazard.rule, *_place(hazard.second), *_place(hazard.first)), finding)


def _place(location: Any) -> tuple[Any, ...]:
    return (None,) if location is None else (location.file, location.line, location.column)


def _chunks(offsets: Offsets, size: int) -> npt.NDArray[np.int64]:
    """Return the chunks of words of so many bytes."""
    first: npt.NDArray[np.int64] = offsets // CHUNK
    if size <= CHUNK:
        return first
    return np.concatenate([first + place for place in range(size // CHUNK)])
