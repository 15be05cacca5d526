"""Phases of named barriers: who comes to one must come after all who came to the phase before.

A barrier of a CTA counts threads, whoever they are, and counts for its next phase as soon as one is complete
(PTX ISA 9.1, section 9.7.13.1). So where nothing says that a warp of phase n has come before another comes to
phase n + 1, that one may be counted into phase n instead, and somebody goes on too early. Judged by vector
clocks (clocks.py), under whichever schedule; in modules with barriers of some of the threads of a CTA: where
all threads have to come, each has waited for the phase before. A warp counts as one thread. What may have
synchronised through flags in memory has; so have warps of a warpgroup that has waited for its wgmma.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..isa.warps import WARP
from ..machine.run.convergence import Warpgroups
from ..machine.run.events import BarrierArrival
from ..machine.state.lanes import DivergentPath, Lanes
from .clocks import Warps
from .findings import Findings, LaunchFinding
from .warp_order import WarpOrder, some_of_each

if TYPE_CHECKING:
    from ..machine.load.entries import Record
    from ..machine.opcodes.matrix.wgmma_groups import Verb
    from ..machine.run.events import Groups
    from ..machine.run.wave import Wave

_BARRIERS = frozenset({"bar", "barrier"})
_OTHERS = frozenset({"warp", "cluster"})  # of which every thread has to come
_FLAGS = frozenset({"relaxed", "acquire", "volatile", "mmio"})  # loads that may wait for another warp's store


@dataclass(eq=False)
class _Phases:
    """Who has come to the phase of a barrier that is not complete, and who came to the latest one that is:
    ``(2, warps)``, the clock of each warp, 0 for one that did not, and the statement.
    """

    coming: npt.NDArray[np.int64]
    over: npt.NDArray[np.int64]


class BarrierReuse(WarpOrder):
    """Tells of warps that come to a phase, and may come to the one before."""

    def __init__(self, findings: Findings) -> None:
        super().__init__()
        self.findings = findings
        self.phases: dict[int, _Phases] = {}  # by number, of all CTAs

    def instrument(self, code: Sequence[Record]) -> Sequence[Record]:
        """Nothing is looked at where all threads come to each barrier."""
        self.active = any(map(_of_some, code))
        return [self._told(one) if _may_order(one) else one for one in code] if self.active else code

    def _told(self, record: Record) -> Record:
        """What a load or an atomic tells may come from any warp."""

        def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> bool | None:
            changed = record.step(wave, path, lanes)
            if self.looks(wave):
                self._anything(wave, lanes)
            return changed

        return replace(record, step=step)

    def arriving(self, wave: Wave, arrival: BarrierArrival) -> None:
        """Lanes come to a barrier: after all who came to its phase before?"""
        if not self.looks(wave):
            return
        if arrival.threads != WARP:  # a warp that completes a phase alone takes the place of no other
            self._come(wave, arrival.path, some_of_each(arrival.lanes.mask), arrival.number)
        super().arriving(wave, arrival)

    def _come(self, wave: Wave, path: DivergentPath, warps: Warps, number: int) -> None:
        """Warps come to a barrier of several."""
        nobody = np.zeros((2, self.clocks.warps), np.int64)
        phases = self.phases.setdefault(number, _Phases(nobody, nobody.copy()))
        if phases.over[0].any():
            self._check(wave, path, number, warps, phases.over)
        phases.coming[:, warps] = self.clocks.own(warps), np.full(warps.size, path.pc)

    def _check(
        self, wave: Wave, path: DivergentPath, number: int, warps: Warps, over: npt.NDArray[np.int64]
    ) -> None:
        """Each warp knows of all warps of its CTA that came to the phase that is over."""
        others = warps[:, None] // wave.warps * wave.warps + np.arange(wave.warps)
        known = self.clocks.state[::2, warps[:, None], others].max(axis=0)  # visible, or only caused
        late = known < over[0, others]
        if late.any():
            row, column = np.argwhere(late)[0].tolist()
            other = int(others[row, column])
            self._say(wave, path, number, int(warps[row]), other, int(over[1, other]))

    def barrier(
        self, wave: Wave, number: int, ctas: npt.NDArray[np.int64], path: DivergentPath | None
    ) -> None:
        """A phase is complete in some CTAs."""
        phases = self.phases.get(number)
        if phases is not None:
            warps = np.isin(np.arange(self.clocks.warps) // wave.warps, ctas)
            phases.over[:, warps] = phases.coming[:, warps]
            phases.coming[:, warps] = 0

    def wgmma_order(self, wave: Wave, path: DivergentPath, groups: Groups, verb: Verb, most: int) -> None:
        """A warpgroup that has waited for its wgmma knows that its four warps have come there."""
        if verb == "wait" and self.looks(wave):
            for first in Warpgroups.of(wave).warps[groups].tolist():
                warps = np.arange(first, min(first + 4, (first // wave.warps + 1) * wave.warps))
                self.clocks.learn_of(warps)

    def _say(self, wave: Wave, path: DivergentPath, number: int, warp: int, other: int, pc: int) -> None:
        now, then = wave.code[path.pc].statement, wave.code[pc].statement
        here, there, who = now.location(), then.location(), f"warp {other % wave.warps}"
        what = (
            f"{now.mnemonic} comes to barrier {number} in the phase after that to which {who} comes by "
            f"{then.mnemonic} of line {there.line}, but nothing says here that {who} has come: this warp may "
            f"be counted there instead, and others go on without {who}"
        )
        fix = (
            f"give one of the two another barrier, or put a wait for something that {who} does behind line "
            f"{there.line} before line {here.line}"
        )
        finding = LaunchFinding(
            kind="barrier reuse",
            severity="error",
            message=f"{what}; {fix} [{wave.describe_lane(warp * WARP)}]",
            location=here,
            other=there,
            note="the phase before",
        )
        self.findings.add(("barrier reuse", path.pc, pc), finding)


def _of_some(record: Record) -> bool:
    """Whether a statement is a barrier to which not all threads of a CTA have to come, or only arrive."""
    one = record.statement
    if one.opcode not in _BARRIERS or not _OTHERS.isdisjoint(one.modifiers):
        return False
    return len(one.operands or ()) - 2 * ("red" in one.modifiers) > 1


def _may_order(record: Record) -> bool:
    """Whether what a statement reads may say how far another warp has come."""
    one = record.statement
    return one.opcode == "atom" or (one.opcode == "ld" and not _FLAGS.isdisjoint(one.modifiers))
