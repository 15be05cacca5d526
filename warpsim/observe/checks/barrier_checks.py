"""Barriers of a CTA: lanes of a warp come together, and warps of a phase after those of the phase before.

Lanes of a warp execute an aligned barrier together (PTX ISA 9.1, section 9.7.13.1). Judged when a barrier is
complete, by the lanes that wait at each statement: lanes of a warp may come by turns, as schedules have it.
Lanes that have exited are not missed. Does not know lanes that only arrive.

A barrier of a CTA counts threads, whichever they are, and counts for its next phase as soon as a phase is
complete. So where nothing says that a warp of phase n has come before another comes to phase n + 1, the
former may be counted into phase n instead, and some warps go on too early. Judged by what has happened before
(order.py), under whichever schedule; in modules with barriers of some of the threads of a CTA: where all
threads have to come, each has waited for the phase before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...isa.warps import WARP
from ...machine.run.barriers.cluster_barrier import ClusterBarrier, Clusters
from ...machine.run.barriers.waits import BarrierWait, waiting_record
from ...machine.run.convergence import in_words, warp_words, warps_of
from ...machine.run.events import BarrierArrival, Observer
from ...machine.state.lanes import DivergentPath, Mask
from .clocks import HAPPENED, VISIBLE, Warps
from .findings import Findings, LaunchFinding
from .order import Order
from .order_kinds import kinds_of

if TYPE_CHECKING:
    from ...machine.run.wave import Record, Wave


class DivergentBarriers(Observer):
    """Reports warps of which only some lanes are at an aligned barrier when it is complete."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings

    def barrier(
        self, wave: Wave, number: int, ctas: npt.NDArray[np.int64], path: DivergentPath | None
    ) -> None:
        """Check that whole warps wait at each statement, as far as they are alive."""
        if path is not None:
            return  # all lanes are there
        of_ctas = np.zeros(len(wave.ctas), np.bool_)
        of_ctas[ctas] = True
        for pc, mask in _waiting(wave, number).items():
            if _is_aligned(wave, pc):
                self._check(wave, pc, mask & of_ctas[wave.cta])

    def cluster_barrier(self, wave: Wave, clusters: Clusters) -> None:
        """Check that whole warps have arrived at each statement, as far as they are alive."""
        barrier = ClusterBarrier.of(wave)
        here = barrier.here() & np.isin(barrier.cluster, clusters)
        for pc in np.unique(barrier.places[here]).tolist():
            if _is_aligned(wave, pc):
                self._check(wave, pc, here & (barrier.places == pc))

    def _check(self, wave: Wave, pc: int, here: Mask) -> None:
        """Find the first warp of which some lanes are here and others are not."""
        absent = wave.alive_mask & ~here & np.repeat(warp_words(here) != 0, WARP)
        if not absent.any():
            return
        lane = int(absent.argmax())
        warp, statement = lane // WARP, wave.code[pc].statement
        there, missing = (in_words(int(warp_words(mask)[warp])) for mask in (here, absent))
        message = (
            f"lanes {there} of a warp execute {statement.mnemonic}{_elsewhere_text(wave, lane, missing)}: "
            "all lanes of a warp execute an aligned barrier together "
            f"[{wave.describe_lane(lane).rpartition(',')[0]}]"
        )
        finding = LaunchFinding(
            kind="divergent barrier", severity="warning", message=message, location=statement.location()
        )
        self.findings.add(("divergent barrier", pc), finding)


def _waiting(wave: Wave, number: int) -> dict[int, Mask]:
    """Return the lanes that wait at a barrier, by statement."""
    found = dict[int, Mask]()
    for path in wave.scheduler.waiting:
        if isinstance(path.waits, BarrierWait) and path.waits.number == number:
            pc = path.pc - 1
            found[pc] = found[pc] | path.lanes.mask if pc in found else path.lanes.mask
    return found


def _is_aligned(wave: Wave, pc: int) -> bool:
    """bar is barrier.aligned."""
    statement = wave.code[pc].statement
    return statement.opcode == "bar" or "aligned" in statement.modifiers


def _elsewhere_text(wave: Wave, lane: int, missing: str) -> str:
    """Return where lanes that are missed stand: the line of the first."""
    for path in (*wave.scheduler.waiting, *wave.scheduler.paths):
        if path.lanes.mask[lane]:
            record = waiting_record(wave, path) if path.waits is not None else wave.code[path.pc]
            return f" while lanes {missing} are at line {record.statement.location().line}"
    return f", but lanes {missing} do not"


@dataclass(eq=False)
class _Phases:
    """The warps that have come to the phase of a barrier that is not complete, and to the latest that is:
    ``(2, warps)``, the time of each warp, 0 for a warp that did not, and the statement.
    """

    coming: npt.NDArray[np.int64]
    over: npt.NDArray[np.int64]


class BarrierReuse(Observer):
    """An observer of warps that come to a phase, and may come to the phase before."""

    def __init__(self, findings: Findings, order: Order) -> None:
        self.findings, self.order = findings, order
        self.active = False
        self.phases: dict[int, _Phases] = {}  # by number, of all CTAs

    def instrument(self, code: Sequence[Record]) -> Sequence[Record]:
        """Return the code as it is; nothing is looked at where all threads come to each barrier."""
        self.active = kinds_of(code).of_some
        return code

    def arriving(self, wave: Wave, arrival: BarrierArrival) -> None:
        """Lanes come to a barrier: after all that came to its phase before?"""
        if arrival.threads != WARP:  # a warp that completes a phase alone takes the place of no other
            self.order.prepare(wave)
            self._come(wave, arrival.path, warps_of(arrival.lanes.mask), arrival.number)

    def _come(self, wave: Wave, path: DivergentPath, warps: Warps, number: int) -> None:
        """Warps come to a barrier of several."""
        none = np.zeros((2, self.order.clocks.warps), np.int64)
        phases = self.phases.setdefault(number, _Phases(none, none.copy()))
        if phases.over[0].any():
            self._check(wave, path, number, warps, phases.over)
        phases.coming[:, warps] = self.order.clocks.own(warps), np.full(warps.size, path.pc)

    def _check(
        self, wave: Wave, path: DivergentPath, number: int, warps: Warps, over: npt.NDArray[np.int64]
    ) -> None:
        """Each warp knows of all warps of its CTA that came to the phase that is over."""
        others = warps[:, None] // wave.warps * wave.warps + np.arange(wave.warps)
        clocks = self.order.clocks
        known = clocks.state[[VISIBLE, HAPPENED]].max(axis=0)[warps[:, None], clocks.column[others]]
        late = known < over[0, others]
        if late.any():
            row, column = np.argwhere(late)[0].tolist()
            other = int(others[row, column])
            self._say(wave, path, number, int(warps[row]), other, int(over[1, other]))

    def barrier(
        self, wave: Wave, number: int, ctas: npt.NDArray[np.int64], path: DivergentPath | None
    ) -> None:
        """Complete a phase in some CTAs."""
        phases = self.phases.get(number)
        if phases is not None:
            warps = np.isin(np.arange(self.order.clocks.warps) // wave.warps, ctas)
            phases.over[:, warps] = phases.coming[:, warps]
            phases.coming[:, warps] = 0

    def _say(self, wave: Wave, path: DivergentPath, number: int, warp: int, other: int, pc: int) -> None:
        now, then = wave.code[path.pc].statement, wave.code[pc].statement
        here, there, name = now.location(), then.location(), f"warp {other % wave.warps}"
        what = (
            f"{now.mnemonic} comes to barrier {number} in the phase after that to which {name} comes by "
            f"{then.mnemonic} of line {there.line}, but nothing says that {name} has come: this warp may "
            f"be counted there instead, and others go on without {name}"
        )
        fix = (
            f"give one of the two another barrier, or put a wait for something that {name} does behind line "
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
