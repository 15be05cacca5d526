"""Clusters of a launch that have not begun: they begin in order, or give their work to others that ask.

A kernel asks by clusterlaunchcontrol.try_cancel. A machine may grant nothing, so that every cluster begins,
or grant as long as clusters are left; the schedule has both. Does not know statements. PTX ISA 9.3, section
9.7.13.18 "clusterlaunchcontrol".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .side_tables import SideTable


class ClusterQueue:
    """``order`` has the numbers of the clusters in the order in which they begin; ``grants`` decides about
    one request.
    """

    def __init__(self, order: Sequence[int], grants: Callable[[], bool]) -> None:
        self._order = order
        self._next = 0
        self._grants = grants
        self.elsewhere = 0  # clusters that never begin here

    def __len__(self) -> int:
        return len(self._order) - self._next

    def begin(self, count: int) -> Sequence[int]:
        """Take up to so many clusters, which begin now."""
        taken = self._order[self._next : self._next + count]
        self._next += len(taken)
        return taken

    def skip(self, count: int) -> None:
        """Leave out up to so many clusters, which have been executed elsewhere."""
        self.elsewhere += len(self.begin(count))

    def cancel(self) -> int | None:
        """Return a cluster that now never begins; None where none is left, or the request is refused."""
        if not len(self) or not self._grants():
            return None
        self.elsewhere += 1
        return self.begin(1)[0]


def _nothing_left(owner: object) -> ClusterQueue:
    return ClusterQueue((), bool)


CLUSTER_QUEUE = SideTable(_nothing_left)  # of a wave: that of its launch
