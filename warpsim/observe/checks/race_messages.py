"""Findings of races in shared memory: what lanes access, both statements, the byte, and the missing order.

Knows wording; which accesses are in a race is found in shared_races.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ...isa.warps import WARP
from ...machine.run.clusters import in_shared, named
from ...machine.state.lanes import Mask
from ...machine.state.memory_access import MemoryAccess
from .finding_catalogue import Site, report
from .findings import Findings
from .shadow import MANY, Cells, Records, Shadow, has, places, whose

if TYPE_CHECKING:
    from ...machine.run.wave import Wave
    from .order import Order

Clash = tuple[int, int, int]  # row and byte of a clash, and the earlier access
Verbs = tuple[str, str]  # what is done now, and what has been done before


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

    def first(self, clash: Mask, differs: Mask | None, seen: Records) -> Clash:
        """Return row and byte, in the wave's shared memory, of the first clash, and the earlier access."""
        each = self.access.size // clash.shape[1]
        wide = np.repeat(clash, each, axis=1)
        row, column = np.argwhere(wide if differs is None else wide & differs)[0].tolist()
        return row, int(self.access.offsets[row]) + column, int(seen[row, column // each])


def between_warps(findings: Findings, reach: Reach, clash: Clash, verbs: Verbs) -> None:
    """Report two warps of a CTA."""
    _report(findings, "race of warps", reach, clash, verbs)


def between_lanes(findings: Findings, reach: Reach, clash: Clash, verbs: Verbs, *, met: bool) -> None:
    """Report two lanes of a warp; ``met`` says that .sync statements stand between them."""
    old = clash[2]
    here, there = (reach.wave.code[pc].statement.location() for pc in (reach.pc, int(places(old))))
    lanes = f"lane {whose(old) % WARP} of the same warp has"
    if has(old, MANY):
        lanes = "several lanes of the same warp have"
    turn = ", in every turn of the loop" if here.line < there.line else ""
    name, facts = "race of lanes that met" if met else "race of lanes", {"lanes": lanes, "turn": turn}
    _report(findings, name, reach, clash, verbs, **facts)


def between_ctas(findings: Findings, reach: Reach, order: Order, clash: Clash, verbs: Verbs) -> None:
    """Report two CTAs of a cluster."""
    wave, (row, _, old) = reach.wave, clash
    first = int(wave.cta[int(reach.lanes[row, 0])]) // wave.cluster.count * wave.cluster.count
    cta = first + whose(old) // WARP // wave.warps
    facts, name, relaxed = {"cta": named(wave, cta)}, "race of CTAs", order.relaxed.get(cta)
    if relaxed is not None:
        name, facts["arrival"] = "race of CTAs that met", wave.code[relaxed].statement.location().short
    _report(findings, name, reach, clash, verbs, **facts)


def _report(findings: Findings, name: str, reach: Reach, clash: Clash, verbs: Verbs, **facts: Any) -> None:
    wave, (row, byte, old) = reach.wave, clash
    lane, other = int(reach.lanes[row, 0]), int(places(old))
    kind = "cluster race" if "cta" in facts else "race"
    key = (kind, reach.pc, other, *((verbs, name) if "lanes" in facts else verbs[1:]))
    facts |= {"verb": verbs[0], "byte": in_shared(wave, lane, byte), "done": verbs[1]}
    report(findings, name, Site(wave, reach.pc, lane, other), key=key, **facts)
