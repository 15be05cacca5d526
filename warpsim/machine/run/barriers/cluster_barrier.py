"""The barrier of each cluster: lanes arrive, and later wait until every lane of the cluster has.

A lane arrives once, then waits once, and so on; lanes that have exited are not missed. Observers are
notified of ``arrived``, ``cluster_barrier`` (complete in some clusters) and ``cluster_met`` (events.py).
Does not know orders (.release, .relaxed): see observe/checks/cluster_memory.py.
PTX ISA 9.1, section 9.7.13.2.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ...state.lanes import DivergentPath, Lanes, Mask
from ...state.side_tables import SideTable
from ..events import Observer, observers_of
from ..wave import Wave
from .mbarrier import undefined
from .waits import LaneWait

Clusters = npt.NDArray[np.intp]  # their numbers in the wave


class ClusterBarrier:
    """The barriers of all clusters of a wave: ``phase`` (clusters,) counts the completed phases.

    ``arrived`` (lanes,) marks lanes that have arrived and not waited, ``since`` (lanes,) the phase in which
    they did, ``places`` (lanes,) the statement, -1 for none.
    """

    def __init__(self, wave: Wave) -> None:
        self.cluster = wave.cta // wave.cluster.count
        self.phase = np.zeros(len(wave.ctas) // wave.cluster.count, np.int64)
        self.arrived: Mask = np.zeros(wave.lanes, np.bool_)
        self.since = np.zeros(wave.lanes, np.int64)
        self.places = np.full(wave.lanes, -1)
        wave.leaving.append(self.complete)

    @classmethod
    def of(cls, wave: Wave) -> ClusterBarrier:
        """Return the barriers of a wave."""
        return _BARRIER.of(wave)

    def arrive(self, wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        """Make lanes arrive; raises UndefinedBehavior for a lane that has not waited since it arrived."""
        twice = lanes.mask & self.arrived
        if twice.any():
            lane = int(twice.argmax())
            line = wave.code[int(self.places[lane])].statement.location().line
            why = f"the lane has arrived at line {line} and has not waited since"
            raise undefined(wave, path, lane, f"{why}: barrier.cluster.wait is missing")
        self.arrived = self.arrived | lanes.mask
        self.since = np.where(lanes.mask, self.phase[self.cluster], self.since)
        self.places = np.where(lanes.mask, path.pc, self.places)
        observers_of(wave).arrived(wave, path, lanes)
        self.complete(wave)

    def wait(self, wave: Wave, path: DivergentPath, lanes: Lanes) -> bool:
        """Continue lanes whose barrier is complete, stop the others; return whether paths changed."""
        never = lanes.mask & ~self.arrived
        if never.any():
            why = "the lane has not arrived: barrier.cluster.arrive is missing"
            raise undefined(wave, path, int(never.argmax()), why)
        over = lanes.mask & (self.since < self.phase[self.cluster])
        left = Lanes(lanes.mask & ~over)
        if over.any():
            self.arrived = self.arrived & ~over
            if observers_of(wave).hear(Observer.cluster_met):
                observers_of(wave).cluster_met(wave, path, Lanes(over))
        return wave.scheduler.wait(path, left, _MEETING, behind=False) if left.count else False

    def complete(self, wave: Wave, exited: Lanes | None = None) -> None:
        """Wake the lanes of clusters in which all have arrived."""
        here = self.here()
        done = (self._count(here) > 0) & (self._count(wave.alive_mask & ~here) == 0)
        if done.any():
            clusters = np.flatnonzero(done)
            if observers_of(wave):
                observers_of(wave).cluster_barrier(wave, clusters)
                observers_of(wave).barrier(
                    wave, -1, np.flatnonzero(np.repeat(done, wave.cluster.count)), None
                )
            self.phase[clusters] += 1
            wave.scheduler.wake(_MEETING, done[self.cluster])

    def here(self) -> Mask:
        """Return the lanes that have arrived in the incomplete phase."""
        here: Mask = self.arrived & (self.since == self.phase[self.cluster])
        return here

    def _count(self, mask: Mask) -> npt.NDArray[np.intp]:
        return np.bincount(self.cluster[mask], minlength=self.phase.size)


_BARRIER = SideTable(ClusterBarrier)


def _missing_lanes_text(wave: Wave, path: DivergentPath) -> str:
    """Return in words the lanes that have not arrived at the barrier that lanes wait at."""
    state = ClusterBarrier.of(wave)
    number = int(state.cluster[path.lanes.index[0]])
    away = wave.alive_mask & ~state.here() & (state.cluster == number)
    names = ", ".join(_describe_absent(wave, away))
    return (
        f"the cluster barrier, at which {names} {'have' if np.count_nonzero(away) > 1 else 'has'} not arrived"
    )


def _describe_absent(wave: Wave, away: Mask) -> Iterator[str]:
    """Yield lanes in words, CTA by CTA."""
    for cta in np.unique(wave.cta[away]).tolist():
        yield wave.describe_lanes(Lanes(away & (wave.cta == cta)))


_MEETING = LaneWait(names="the cluster barrier", explain=_missing_lanes_text)
