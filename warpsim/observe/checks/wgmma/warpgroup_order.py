"""The ordering rules of wgmma in launches: fences, groups and waits that are missing, by warpgroup.

The rules are those of register_order.py and hazard.py, which a Warpgroup has, too. Warpgroups that have done
the same so far share one state. A store must not meet a wgmma in flight that reads the bytes, and a wgmma
must see the generic stores that it reads: the warp that stored, or one of the warpgroup, has executed
fence.proxy.async since. Both are asked of the shadow of shared memory; the rest is tile_reads.py's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import proxy

import numpy as np

from ....isa.warps import WARP
from ....machine.run.convergence import Warpgroups
from ....machine.run.events import CHUNK, Observer, RegisterUse, helper
from ....machine.run.pending import Pending, Stretches
from ....machine.state.lanes import DivergentPath, Lanes, Mask, Values
from ....machine.state.memory_access import MemoryAccess
from ..findings import Findings, LaunchFinding
from ..index_runs import in_a_row
from ..order import Order
from ..shadow import OPERATION, Cells, has, places, times, whose
from .hazard import Hazard, Place, overwritten, runs_of, uniformity_hazard, unproxied, warp_values
from .register_order import Operation, RegisterOrder
from .register_uses import RegisterUses, uses_of

if TYPE_CHECKING:
    from ....machine.opcodes.matrix.wgmma_groups import Verb
    from ....machine.run.events import Groups, Share, WgmmaStatement
    from ....machine.run.wave import Record, Wave

_OPERANDS = {"a-desc": "a_descriptor", "b-desc": "b_descriptor", "scale-d": "scale_d"}  # by their roles


@dataclass(eq=False)
class Cohort:
    """Warpgroups, as a mask over those of the wave, that have done the same so far."""

    groups: Mask
    order: RegisterOrder
    steps: dict[tuple[int, int], int] = field(default_factory=dict)  # in flight, by wgmma-group and statement


class HazardReport:
    """Adds findings; ``where`` says which warpgroup is looked at."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.where: Callable[[], str] = str  # it must not hold the wave, which holds this

    def __call__(self, hazards: Sequence[Hazard]) -> None:
        """Add findings; the warpgroup is named. What ptxas mends is a warning: chips execute mended code."""
        for hazard in hazards:
            what = f"{hazard.message}; {hazard.mended}" if hazard.mended else hazard.message
            finding = LaunchFinding(
                kind=hazard.rule,
                severity="warning" if hazard.mended else hazard.severity,
                message=f"{what} [{self.where()}]",
                location=hazard.second,
                other=hazard.first,
                note=hazard.note,
                fix=hazard.fix,
                legal=hazard.severity == "warning",
            )
            self.findings.add((hazard.rule, *_place(hazard.second), *_place(hazard.first)), finding)


class WarpgroupOrder(Observer):
    """An observer that finds what is missing between wgmma and other statements; of one wave."""

    def __init__(self, findings: Findings, order: Order) -> None:
        self.report, self.order = HazardReport(findings), order
        self.uses: RegisterUses | None = None  # None where there is no wgmma
        self.active = True
        self.cohorts: list[Cohort] = []
        self.names: dict[int, Mapping[str, tuple[str, ...]]] = {}  # of registers, by statement and role
        self.stores: dict[int, None] = {}  # statements, in the order of their latest stores
        self._seen: tuple[Lanes | None, Mask] = (None, np.zeros(0, np.bool_))

    def instrument(self, code: Sequence[Record]) -> Sequence[Record]:
        """Return the code, with records that report where registers of wgmma are touched."""
        kept = uses_of(code)
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

    def wgmma(self, wave: Wave, path: DivergentPath, statement: WgmmaStatement, share: Share) -> None:
        """Check a wgmma.mma_async that some warpgroups are about to execute."""
        if self.uses is None:
            return
        record = wave.code[path.pc]
        names = self._names(self.uses, record, path.pc, statement)
        place = record.statement.location
        for cohort in self._cohorts(wave, _mask(wave, share.groups)):
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
            cohort.steps[int(self.order.committed[groups[0]]) + 1, path.pc] = step

    def _names(
        self, uses: RegisterUses, record: Record, pc: int, statement: WgmmaStatement
    ) -> Mapping[str, tuple[str, ...]]:
        """Return the names of the registers of a wgmma, by role; found once for a statement."""
        if pc not in self.names:
            named = partial(uses.named, record)
            self.names[pc] = {role: named(numbers) for role, numbers in statement.registers.items()}
        return self.names[pc]

    def wgmma_order(self, wave: Wave, path: DivergentPath, groups: Groups, verb: Verb, most: int) -> None:
        """Apply wgmma.fence, commit_group or wait_group of some warpgroups."""
        if self.uses is None:
            return
        for cohort in self._cohorts(wave, _mask(wave, groups)):
            if verb == "fence":
                cohort.order.fence()
            elif verb == "commit":
                cohort.order.commit()
            else:
                cohort.order.wait(most, wave.code[path.pc].statement.location)
                late = cohort.order.completed
                cohort.steps = {read: step for read, step in cohort.steps.items() if step > late}

    def differing(self, wave: Wave, path: DivergentPath, group: int, role: str, values: Values) -> None:
        """Report an operand that must be the same in the whole warpgroup and is not."""
        self._look_at(wave, group)
        record = wave.code[path.pc]
        assert record.matrix is not None
        place = partial(record.statement.operand_location, record.matrix.places[_OPERANDS[role]])
        self.report(list(uniformity_hazard(role, warp_values(values), place)))

    def store(self, wave: Wave, access: MemoryAccess) -> None:
        """Bytes are about to be written through the generic proxy."""
        if self.uses is not None and access.memory is wave.memories.shared:
            self.copying(wave, access)
            self.stores.pop(access.path.pc, None)
            self.stores[access.path.pc] = None

    landed = atomic = store

    def copying(self, wave: Wave, access: MemoryAccess) -> None:
        """Check a cp.async, which may write at any time from now on."""
        if self._is_multiplying():
            place = wave.code[access.path.pc].statement.location
            self.written(wave, self.order.shared(wave).of(access).reshape(-1), place)

    def issued(self, wave: Wave, path: DivergentPath, pending: Pending) -> None:
        """Check other asynchronous operations, too."""
        for write in pending.writes if self._is_multiplying() else ():
            if write.space == "shared" and self._may_be_read(wave, write):
                cells = self.order.shared(wave).within(write.ranges)
                self.written(wave, cells, pending.record.statement.location)

    def exit(self, wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        """Lanes are done: so should be their wgmma."""
        if self.uses is None or not self.cohorts:
            return
        at = wave.code[path.pc]
        place = (at if at.statement.opcode in ("exit", "ret") else wave.code[path.pc - 1]).statement.location
        for cohort in self._cohorts(wave, self._groups(wave, lanes)):
            cohort.order.finish(place)

    # --- shared memory ---

    def _is_multiplying(self) -> bool:
        """Return whether any wgmma is in flight."""
        return any(cohort.order.operations for cohort in self.cohorts)

    @helper
    def written(self, wave: Wave, cells: Cells, place: Place) -> None:
        """Check cells of shared memory that are about to be written."""
        found = self._in_flight(wave, cells)
        if found is None:
            return
        group, cells, operation = found
        order = self._cohort(group).order
        self._look_at(wave, group)
        ranges = runs_of(self.order.shared(wave).all_bytes(cells) % wave.memories.shared_stride)
        self.report([overwritten(ranges, operation.place, order.cause(operation, place), place)])

    @helper
    def _may_be_read(self, wave: Wave, write: Stretches) -> bool:
        """Return whether a wgmma in flight may read what an operation writes."""
        if len(write.ranges) != 1:
            return True
        (span,) = self.order.shared(wave).spans(write.ranges)
        return self._may_read(wave, slice(*span), len(Warpgroups.of(wave).first) // len(wave.ctas))

    def _in_flight(self, wave: Wave, cells: Cells) -> tuple[int, Cells, Operation] | None:
        """Return a warpgroup whose wgmma in flight reads some of the cells, which, and the latest wgmma."""
        shadow, groups = self.order.shared(wave), Warpgroups.of(wave)
        each, row = len(groups.first) // len(wave.ctas), in_a_row(cells)
        if isinstance(row, slice) and not self._may_read(wave, row, each):
            return None
        ctas = shadow.bytes_of(cells) // wave.memories.shared_stride
        for own in range(each):
            here = ctas * each + own
            taken = shadow.taken_by(1 + here % (each * wave.cluster.count), cells)
            late = self.order.clocks.visible[groups.warps[here], whose(taken)] < times(taken)
            if not late.any():
                continue
            for group in dict.fromkeys(here[late].tolist()):
                cohort = self._cohort(group)
                reads = zip(times(taken).tolist(), places(taken).tolist(), strict=True)
                steps = np.array([cohort.steps.get(read, 0) for read in reads])
                busy = late & (here == group) & (steps > cohort.order.completed)
                if busy.any():
                    return group, cells[busy], cohort.order.operations[int(steps[busy].max())]
        return None

    @helper
    def _may_read(self, wave: Wave, cells: slice, each: int) -> bool:
        """Return whether a wgmma in flight may read in the pages of cells; warpgroups are so many a CTA."""
        shadow, groups, clocks = self.order.shared(wave), Warpgroups.of(wave), self.order.clocks
        pages, stride = shadow.pages(cells), wave.memories.shared_stride
        first, last = (int(shadow.bytes_of(cell)) // stride for cell in (cells.start, cells.stop - 1))
        for group in range(first * each, (last + 1) * each):
            row, component = 1 + group % (each * wave.cluster.count), self.order.group_of(wave, group)
            if row < len(shadow.takes):
                known = clocks.visible[groups.warps[group], component]
                if (shadow.takes[row, pages] > known).any():
                    return True
        return False

    def _cohort(self, group: int) -> Cohort:
        """Return the cohort of a warpgroup."""
        return next(cohort for cohort in self.cohorts if cohort.groups[group])

    @helper
    def unproxied(self, wave: Wave, groups: Groups, share: Share, place: Place) -> Iterator[Hazard]:
        """Return the hazards of generic stores that a wgmma need not see."""
        shadow = self.order.shared(wave)
        if not self.order.reads(wave, share).generic or not self.order.unfenced(shadow):
            return
        cells = self.order.tiles(wave, share)[np.searchsorted(share.groups, groups)]
        wrote = shadow.wrote[cells]
        generic = (wrote != 0) & ~has(wrote, OPERATION) & (shadow.flying[cells] == 0)
        proxy, size = self.order.clocks.proxy, self.order.clocks.of_cluster
        warps, writers = Warpgroups.of(wave).members(groups), np.where(generic, whose(wrote) // WARP, 0)
        known = proxy[warps[:, :, None], writers[:, None]].max(axis=1)
        known = np.maximum(known, proxy[warps[:, :1] // size * size + writers, writers])
        late = generic & (times(wrote) > known)
        if not late.any():
            return
        row = int(late.any(axis=1).argmax())
        self._look_at(wave, int(groups[row]))
        stored = set(places(wrote[row][late[row]]).tolist())
        first = wave.code[[pc for pc in self.stores if pc in stored][-1]].statement.location
        chunks = shadow.bytes_of(cells[row][late[row]]) % wave.memories.shared_stride // CHUNK
        yield unproxied(tuple((CHUNK * low, CHUNK * past) for low, past in runs_of(chunks)), first, place)

    # --- cohorts ---

    def _groups(self, wave: Wave, lanes: Lanes) -> Mask:
        """Return the warpgroups that some lanes belong to."""
        if self._seen[0] is not lanes:
            self._seen = lanes, Warpgroups.of(wave).counts(lanes.mask) > 0
        return self._seen[1]

    def _look_at(self, wave: Wave, group: int) -> None:
        """Let what is found be of a warpgroup, which is named where anything is."""
        self.report.where = partial(Warpgroups.of(wave).place, proxy(wave), group)

    def _cohorts(self, wave: Wave, groups: Mask) -> Iterator[Cohort]:
        """Yield cohorts of just these warpgroups: those of which some are not among them are parted."""
        if not self.cohorts:
            everyone = np.ones(len(groups), np.bool_)
            self.cohorts.append(Cohort(everyone, RegisterOrder(self.report, compiled=True)))
        for cohort in list(self.cohorts):
            inside = cohort.groups & groups
            if not inside.any():
                continue
            if (inside != cohort.groups).any():
                self.cohorts.append(Cohort(cohort.groups & ~groups, cohort.order.copy(), dict(cohort.steps)))
                cohort.groups = inside
            self._look_at(wave, int(inside.argmax()))
            yield cohort


def _place(location: Any) -> tuple[Any, ...]:
    return (None,) if location is None else (location.file, location.line, location.column)


def _mask(wave: Wave, groups: Groups) -> Mask:
    """Return some warpgroups as a mask over those of the wave."""
    mask = np.zeros(len(Warpgroups.of(wave).first), np.bool_)
    mask[groups] = True
    return mask
