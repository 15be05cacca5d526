"""What CTAs of a cluster know of each other: which of another's accesses come before one's own.

An access of CTA x comes before one of CTA y if x has arrived at the cluster barrier since, with .release or
behind a fence, and y has waited for that phase; or if y has waited for a phase of an mbarrier, acquired, or
executed a fence since: these are taken to order everything, so that no alarm is false. Times count statements
of the wave. Does not know memory (see cluster_memory.py). PTX ISA 9.1, section 8 "memory consistency model".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..machine.state.lanes import DivergentPath, Lanes, Values

if TYPE_CHECKING:
    from ..machine.run.cluster_barrier import ClusterBarrier, Clusters
    from ..machine.run.wave import Wave

Times = npt.NDArray[np.int64]
NEVER = -1


class ClusterOrder:
    """By CTA of a wave: ``acquired`` is the time up to which all is known to it, ``waited`` how many phases
    of the cluster barrier it has waited for, ``relaxed`` where it arrived without a release, or -1.

    ``_seen`` has, for the last two phases, the time up to which those who waited for it know of a CTA's
    accesses; ``_seen_init`` is that for mbarriers that it has initialised.
    """

    def __init__(self, wave: Wave) -> None:
        count = len(wave.ctas)

        def never() -> Times:
            return np.full(count, NEVER, np.int64)

        self.acquired, self.relaxed = never(), never()
        self.waited, self.phase = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self._fenced, self._init_fenced = never(), never()
        self._released, self._released_init = never(), never()
        self._seen, self._seen_init = (never(), never()), (never(), never())

    def known(self, reader: Values, writer: Values, times: Values, *, init: bool = False) -> Values:
        """Whether accesses of ``writer`` at these times come before what ``reader``, a CTA, does now."""
        before, now = self._seen_init if init else self._seen
        behind = self.waited[reader] < self.phase[reader]
        seen = np.where(behind, before[writer], now[writer])
        seen = np.where(self.waited[reader] > 0, seen, NEVER)
        return np.asarray((seen >= times) | (self.acquired[reader] >= times))

    def begun(self, ctas: Values) -> Values:
        """Whether a CTA has met others: those of its cluster have begun."""
        return np.asarray((self.waited[ctas] > 0) | (self.acquired[ctas] > NEVER))

    # --- what happens ---

    def acquire(self, wave: Wave, lanes: Lanes) -> None:
        """Lanes have waited for a phase of an mbarrier, or acquired."""
        self.acquired[wave.cta[lanes.index]] = wave.statements

    def fence(self, wave: Wave, lanes: Lanes, words: tuple[str, ...]) -> None:
        """A fence orders both ways; that of mbarrier.init only what has been initialised."""
        ctas = wave.cta[lanes.index]
        if "mbarrier_init" in words:
            self._init_fenced[ctas] = wave.statements
        elif "proxy" not in words:
            self._fenced[ctas] = wave.statements
            self.acquire(wave, lanes)

    def arrive(self, wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        """Lanes arrive at the cluster barrier."""
        ctas = np.unique(wave.cta[lanes.index])
        if "relaxed" not in wave.code[path.pc].statement.modifiers:
            self._released[ctas] = wave.statements
            self.relaxed[ctas] = -1
        else:
            self._released[ctas] = np.maximum(self._released[ctas], self._fenced[ctas])
            self.relaxed[ctas] = path.pc
        init = np.maximum(self._init_fenced[ctas], self._released[ctas])
        self._released_init[ctas] = np.maximum(self._released_init[ctas], init)

    def complete(self, wave: Wave, clusters: Clusters) -> None:
        """The barrier of some clusters is complete."""
        each = wave.cluster.count
        ctas = (clusters[:, None] * each + np.arange(each)).reshape(-1)
        for seen, released in ((self._seen, self._released), (self._seen_init, self._released_init)):
            seen[0][ctas] = seen[1][ctas]
            seen[1][ctas] = released[ctas]
        together = self.acquired[ctas].reshape(-1, each).max(axis=1)  # what one knows it hands on
        self.acquired[ctas] = np.repeat(together, each)
        self.phase[ctas] += 1

    def meet(self, wave: Wave, lanes: Lanes, barrier: ClusterBarrier) -> None:
        """Lanes have waited for the cluster barrier."""
        np.maximum.at(self.waited, wave.cta[lanes.index], barrier.since[lanes.index] + 1)
