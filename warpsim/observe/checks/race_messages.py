"""Findings of races in shared memory: what lanes access, both statements, the byte, and the missing order.

Knows wording; which accesses are in a race is found in shared_races.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ...isa.warps import WARP
from ...machine.run.clusters import in_shared, named
from ...machine.state.lanes import Mask
from ...machine.state.memory_access import MemoryAccess
from .findings import LaunchFinding, Severity
from .shadow import MANY, Cells, Records, Shadow, has, places, whose

if TYPE_CHECKING:
    from ...machine.run.wave import Wave
    from .order import Order

Verbs = tuple[str, str]  # what is done now, and what has been done before
Keyed = tuple[tuple[object, ...], LaunchFinding]


@dataclass(eq=False)
class Reach:
    """What lanes do now: ``cells`` (words, cells) of a shadow; ``lanes`` (words, 1), their ``warps``, the
    ``rows`` of those in the shadow, and ``records`` alike.
    """

    wave: Wave
    access: MemoryAccess
    shadow: Shadow
    cells: Cells
    lanes: Cells
    warps: Cells
    rows: Cells
    records: Records

    @cached_property
    def differs(self) -> Mask | None:
        """``(words, bytes)``: the bytes that are stored anew; None for all, or where that is not known."""
        new = self.access.stored
        return None if new is None else self.access.memory[self.access.cells] != new

    @cached_property
    def touched(self) -> Mask:
        """``(pages,)``: the pages of the shadow that they lie in."""
        found = np.zeros(self.shadow.widths.size, np.bool_)
        found[self.shadow.pages(self.cells)] = True
        return found

    def of_cells(self, differs: Mask | None) -> Any:
        """Which cells have bytes in a mask, which may be None for all."""
        return True if differs is None else differs.reshape(*self.cells.shape, -1).any(axis=2)

    @property
    def pc(self) -> int:
        """The statement."""
        return self.access.path.pc

    def first(self, clash: Mask, differs: Mask | None, seen: Records) -> tuple[int, int, int]:
        """Return row and byte, in the wave's shared memory, of the first clash, and the earlier access."""
        each = self.access.size // clash.shape[1]
        wide = np.repeat(clash, each, axis=1)
        row, column = np.argwhere(wide if differs is None else wide & differs)[0].tolist()
        return row, int(self.access.offsets[row]) + column, int(seen[row, column // each])


def between_warps(reach: Reach, row: int, byte: int, old: int, verbs: Verbs) -> Keyed:
    """Return two warps of a CTA."""
    wave, lane, (now, before) = reach.wave, int(reach.lanes[row, 0]), verbs
    statement, other = (wave.code[pc].statement for pc in (reach.pc, int(places(old))))
    message = (
        f"race: {statement.mnemonic} {now} byte {in_shared(wave, lane, byte)}, "
        f"which another warp has {before} at {other.location().short} "
        f"without a barrier in between [{wave.describe_lane(lane)}]"
    )
    return ("race", reach.pc, int(places(old)), before), _race(reach, message, old)


def between_lanes(reach: Reach, row: int, byte: int, old: int, verbs: Verbs, *, met: bool) -> Keyed:
    """Return two lanes of a warp; ``met`` says that .sync statements stand between them."""
    wave, lane, (now, before) = reach.wave, int(reach.lanes[row, 0]), verbs
    statement, other = (wave.code[pc].statement for pc in (reach.pc, int(places(old))))
    here, there = statement.location(), other.location()
    whom = f"lane {whose(old) % WARP} of the same warp has"
    if has(old, MANY):
        whom = "several lanes of the same warp have"
    missing = "without a bar.warp.sync in between"
    if met:
        missing = "with only .sync statements in between that PTX does not promise to order memory"
    message = (
        f"race: {statement.mnemonic} {now} byte {in_shared(wave, lane, byte)}, which {whom} {before} at "
        f"{there.short} {missing} [{wave.describe_lane(lane)}]"
    )
    turn = ", in every turn of the loop" if here.line < there.line else ""
    fix = f"put bar.warp.sync (__syncwarp()) between {there.short} and {here.short}{turn}"
    key = ("race", reach.pc, int(places(old)), verbs, met)
    return key, replace(_race(reach, message, old, "warning" if met else "error"), fix=fix)


def between_ctas(reach: Reach, order: Order, row: int, byte: int, old: int, verbs: Verbs) -> Keyed:
    """Return two CTAs of a cluster."""
    wave, lane, (now, before) = reach.wave, int(reach.lanes[row, 0]), verbs
    statement, first = (wave.code[pc].statement for pc in (reach.pc, int(places(old))))
    cta = int(wave.cta[lane]) // wave.cluster.count * wave.cluster.count + whose(old) // WARP // wave.warps
    line, relaxed = first.location().short, order.relaxed.get(cta)
    fix = f"put barrier.cluster.arrive behind {line}, and barrier.cluster.wait before this"
    if relaxed is not None:
        arrival = wave.code[relaxed].statement.location().short
        fix = f"barrier.cluster.arrive.relaxed at {arrival} orders nothing: leave out .relaxed"
    message = (
        f"race: {statement.mnemonic} {now} byte {in_shared(wave, lane, byte)}, which "
        f"{named(wave, cta)}, has {before} at {line}, and nothing orders the two: {fix} "
        f"[{wave.describe_lane(lane)}]"
    )
    return ("cluster race", reach.pc, int(places(old)), before), _race(reach, message, old)


def _race(reach: Reach, message: str, old: int, severity: Severity = "error") -> LaunchFinding:
    code = reach.wave.code
    return LaunchFinding(
        kind="race",
        severity=severity,
        message=message,
        location=code[reach.pc].statement.location(),
        other=code[int(places(old))].statement.location(),
    )
