"""Checks of barriers: lanes of a warp execute an aligned one together (PTX ISA 9.1, section 9.7.13.1).

Judged when a barrier is complete, by the lanes that wait at each statement: lanes of a warp may come by
turns, as schedules have it. Lanes that have exited are not missed. Does not know lanes that only arrive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..isa.warps import WARP
from ..machine.run.convergence import in_words, warp_words
from ..machine.run.events import Observer
from ..machine.run.waits import BarrierWait
from ..machine.state.lanes import DivergentPath, Mask
from .findings import Findings, LaunchFinding

if TYPE_CHECKING:
    from ..machine.run.cluster_barrier import ClusterBarrier, Clusters
    from ..machine.run.wave import Wave


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
            if _aligned(wave, pc):
                self._check(wave, pc, mask & of_ctas[wave.cta])

    def cluster_barrier(self, wave: Wave, clusters: Clusters, barrier: ClusterBarrier) -> None:
        """Check that whole warps have arrived at each statement, as far as they are alive."""
        here = barrier.here() & np.isin(barrier.cluster, clusters)
        for pc in np.unique(barrier.places[here]).tolist():
            if _aligned(wave, pc):
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
            f"{statement.mnemonic} is executed by lanes {there} of a warp{_elsewhere(wave, lane, missing)}: "
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


def _aligned(wave: Wave, pc: int) -> bool:
    """bar is barrier.aligned."""
    statement = wave.code[pc].statement
    return statement.opcode == "bar" or "aligned" in statement.modifiers


def _elsewhere(wave: Wave, lane: int, missing: str) -> str:
    """Return where lanes that are missed stand: the line of the first."""
    for path in (*wave.scheduler.waiting, *wave.scheduler.paths):
        if path.lanes.mask[lane]:
            record = wave.waiting_record(path) if path.waits is not None else wave.code[path.pc]
            return f" while lanes {missing} are at line {record.statement.location().line}"
    return f", but not by lanes {missing}"
