"""Vector clocks: the happens-before relation of the warps of a wave (PTX ISA 9.1, section 8.10).

A component of a clock stands for a warp, an mbarrier, or the groups of operations that a lane commits. The
component of a warp counts its releases, that of an mbarrier its complete phases, that of groups those that
are complete. ``state[VISIBLE, w, c]`` is the time of component c up to which all is visible to warp w by
causality order. The other rows are weaker or narrower relations of the same form:

    VISIBLE     accesses of the generic proxy
    PROXY       what async proxies may access: VISIBLE at a proxy fence on the way
    HAPPENED    what has happened, visible or not: relaxed arrivals and the issue of copies pass it on, too
    BEGUN       initialisations of mbarriers: fence.mbarrier_init passes on these and no more

A release publishes the row of a warp; an acquire that observes it takes the maximum. A relaxed write
publishes what the latest fence of its warp covers, and a relaxed read acquires at the next fence. Clusters
share no memory that is looked at, so columns are those of one cluster. A warp counts as one thread, and
scopes as large enough. Lanes of a warp have clocks of their own (``LaneClocks``), which count the time of the
warp. Does not know memory, statements or events.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...isa.warps import WARP
from .index_runs import in_a_row

VISIBLE, PROXY, HAPPENED, BEGUN = range(4)
ROWS = 4
Clock = npt.NDArray[np.int32]  # (rows, components)
Warps = npt.NDArray[np.int64]


@dataclass(eq=False)
class Barrier:
    """An mbarrier: what has been released into the phase that is not complete, and into those before."""

    cluster: int
    component: int
    coming: Clock
    over: Clock
    phases: int = 0  # that are complete


class Clocks:
    """The clocks of ``warps`` warps, ``of_cluster`` of them in a cluster."""

    def __init__(self, warps: int, of_cluster: int) -> None:
        self.warps, self.of_cluster = warps, of_cluster
        self.components = of_cluster
        self.state = np.zeros((ROWS, warps, of_cluster), np.int32)
        self.observed = np.zeros_like(self.state)  # by relaxed reads, and not acquired
        self.published = np.zeros_like(self.state)  # what relaxed writes release
        self.column = np.arange(warps) % of_cluster  # the component of each warp
        self.state[VISIBLE, np.arange(warps), self.column] = 1
        self.barriers: dict[tuple[int, Hashable], Barrier] = {}  # by cluster and name
        self.names: dict[Hashable, int] = {}  # the component of a name
        self.groups: dict[str, npt.NDArray[np.int64]] = {}  # by family and lane of a cluster: its component
        self.version = 0  # counts what warps have come to know of others

    @property
    def visible(self) -> npt.NDArray[np.int32]:
        """``(warps, components)``."""
        found: npt.NDArray[np.int32] = self.state[VISIBLE]
        return found

    @property
    def proxy(self) -> npt.NDArray[np.int32]:
        """``(warps, components)``."""
        found: npt.NDArray[np.int32] = self.state[PROXY]
        return found

    def happened(self, warp: int) -> npt.NDArray[np.int32]:
        """Return the times up to which a warp knows that all has happened, visible or not."""
        found: npt.NDArray[np.int32] = self.state[[VISIBLE, HAPPENED], warp].max(axis=0)
        return found

    def own(self, warps: Warps) -> npt.NDArray[np.int32]:
        """Return the time of some warps: an access is at the time of its warp."""
        found: npt.NDArray[np.int32] = self.state[VISIBLE, warps, self.column[warps]]
        return found

    def was_released(self, warp: int, time: int) -> bool:
        """Return whether a warp has released anywhere what it did at a time."""
        cluster, column = warp // self.of_cluster, self.column[warp]
        every = self.visible[cluster * self.of_cluster : (cluster + 1) * self.of_cluster, column].copy()
        every[column] = 0
        barriers = (
            barrier.coming[VISIBLE, column]
            for barrier in self.barriers.values()
            if barrier.cluster == cluster
        )
        return bool(every.max() >= time) or any(barrier >= time for barrier in barriers)

    # --- components ---

    def _component(self) -> int:
        self.version += 1
        if self.components == self.state.shape[2]:
            more = max(self.components, 8)
            self.state, self.observed, self.published = (
                _wider(item, more) for item in (self.state, self.observed, self.published)
            )
            for barrier in self.barriers.values():
                barrier.coming, barrier.over = _wider(barrier.coming, more), _wider(barrier.over, more)
        self.components += 1
        return self.components - 1

    def barrier(self, cluster: int, name: Hashable) -> Barrier:
        """Return the mbarrier of a name in a cluster; those of one name share a component."""
        found = self.barriers.get((cluster, name))
        if found is None:
            component = self.names.get(name)
            if component is None:
                component = self.names[name] = self._component()
            empty = np.zeros((ROWS, self.state.shape[2]), np.int32)
            found = self.barriers[cluster, name] = Barrier(cluster, component, empty, empty.copy())
        return found

    def begin(self, cluster: int, name: Hashable) -> None:
        """Initialise an mbarrier: its phases count from 0 again."""
        self.version += 1
        if self.barriers.pop((cluster, name), None) is not None:
            rows = slice(cluster * self.of_cluster, (cluster + 1) * self.of_cluster)
            for clocks in (self.state, self.observed, self.published):
                clocks[:, rows, self.names[name]] = 0
        self.barrier(cluster, name)

    def groups_of(self, family: str, lanes: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
        """Return the components of the groups that some lanes of the wave commit."""
        size = self.of_cluster * WARP
        known = self.groups.setdefault(family, np.zeros(size, np.int64))
        places = lanes % size
        if not known[places].all():
            for lane in np.unique(places[known[places] == 0]).tolist():
                known[lane] = self._component()
        return np.asarray(known[places])

    def group_of(self, family: str, lane: int) -> int:
        """Return the component of the groups that a lane of the wave commits."""
        size = self.of_cluster * WARP
        known = self.groups.get(family)
        found = 0 if known is None else int(known[lane % size])
        return found or int(self.groups_of(family, np.array([lane]))[0])

    def by_cluster(self, warps: Warps) -> Iterator[tuple[int, Warps]]:
        """Yield the clusters of warps, each with its own."""
        clusters = warps // self.of_cluster
        for cluster in dict.fromkeys(clusters.tolist()):
            yield cluster, warps[clusters == cluster]

    # --- release and acquire ---

    def _happen(self, warps: Warps) -> None:
        """Let what is visible to warps have happened, and begun."""
        rows = in_a_row(warps)
        now = self.state[VISIBLE, rows]
        for row in (HAPPENED, BEGUN):
            self.state[row, rows] = np.maximum(self.state[row, rows], now)

    def advance(self, warps: Warps) -> None:
        """Advance the time of what warps do from now on."""
        self.state[VISIBLE, warps, self.column[warps]] += 1

    def release(self, warps: Warps, *, relaxed: bool = False) -> Clock:
        """Return what some warps of a cluster release together; what they do later is not a part of it."""
        self._happen(warps)
        rows = in_a_row(warps)
        released = self.state[:, rows]
        if relaxed:
            happened = released[HAPPENED]
            released = self.published[:, rows].copy()
            released[HAPPENED] = happened
        together: Clock = released.max(axis=1)
        self.advance(warps)
        return together

    def acquire(self, warps: Warps, released: Clock, *, relaxed: bool = False) -> None:
        """Warps observe what has been released; a relaxed observation counts from the next fence on."""
        self.version += 1
        width, rows = released.shape[1], in_a_row(warps)
        target = self.observed if relaxed else self.state
        target[:, rows, :width] = np.maximum(target[:, rows, :width], released[:, None])
        if relaxed:
            part = self.state[HAPPENED, rows, :width]
            self.state[HAPPENED, rows, :width] = np.maximum(part, released[HAPPENED])

    def fence(self, warps: Warps, *, acquire: bool = True, release: bool = True) -> None:
        """Apply a fence: relaxed reads before it acquire, relaxed writes behind it release."""
        self.version += 1
        if acquire:
            self.state[:, warps] = np.maximum(self.state[:, warps], self.observed[:, warps])
        if release:
            self._happen(warps)
            self.published[:, warps] = self.state[:, warps]
            self.advance(warps)

    def fence_begun(self, warps: Warps) -> None:
        """fence.mbarrier_init: relaxed writes behind it release initialisations."""
        self._happen(warps)
        self.published[BEGUN, warps] = self.state[BEGUN, warps]
        self.advance(warps)

    def fence_proxy(self, warps: Warps) -> None:
        """Apply a proxy fence: what is visible to the warps may be accessed by the async proxy."""
        self.version += 1
        self.state[PROXY, warps] = np.maximum(self.state[PROXY, warps], self.state[VISIBLE, warps])
        self.advance(warps)

    def meet(self, warps: Warps) -> None:
        """Warps ``(groups, each)`` wait for each other in each group: all release, then all acquire."""
        self.version += 1
        self._happen(warps)
        together = self.state[:, warps].max(axis=2, keepdims=True)
        self.state[:, warps] = together
        self.advance(warps)

    def happen_together(self, warps: Warps) -> None:
        """Warps ``(groups, each)`` know how far each of their group has come, which makes nothing visible."""
        self.version += 1
        self._happen(warps)
        self.state[HAPPENED, warps] = self.state[HAPPENED, warps].max(axis=1, keepdims=True)
        self.advance(warps)

    def everything(self, warps: Warps) -> None:
        """Warps may have acquired from any warp of their clusters."""
        self.version += 1
        everyone = np.arange(self.warps)
        self._happen(everyone)
        every = self.state.reshape(ROWS, -1, self.of_cluster, self.state.shape[2]).max(axis=2)
        self.state[:, warps] = every[:, warps // self.of_cluster]
        self.advance(everyone)

    # --- mbarriers and groups ---

    def arrive(self, barrier: Barrier, warps: Warps, *, ends: int, relaxed: bool = False) -> None:
        """Warps arrive at an mbarrier, by which so many phases are complete."""
        barrier.coming = np.maximum(barrier.coming, self.release(warps, relaxed=relaxed))
        self.complete_phases(barrier, ends)

    def complete_phases(self, barrier: Barrier, ends: int) -> None:
        """So many phases are complete."""
        if ends:
            barrier.phases += ends
            barrier.coming[:, barrier.component] = barrier.phases
            barrier.over = barrier.coming.copy()

    def issue(self, barrier: Barrier, warps: Warps) -> None:
        """Warps issue an operation without which the phase is not complete: this makes nothing visible."""
        self._happen(warps)
        issued = self.state[HAPPENED, in_a_row(warps)].max(axis=0)
        barrier.coming[HAPPENED] = np.maximum(barrier.coming[HAPPENED], issued)
        self.advance(warps)

    def complete_groups(
        self, family: str, lanes: npt.NDArray[np.intp], warps: Warps, numbers: npt.NDArray[np.int64]
    ) -> None:
        """Warps know that so many groups of some lanes are complete; shapes that broadcast."""
        self.version += 1
        columns = self.groups_of(family, lanes.reshape(-1)).reshape(lanes.shape)
        self.state[:, warps, columns] = np.maximum(self.state[:, warps, columns], numbers)


class Meetings:
    """When lanes of each warp last met: what a lane did before that time is before what others do now.

    ``since`` (warps,) is the time at which all lanes of a warp met. ``pairs`` (warps, 32, 32) has it for what
    the first lane does now after what the second did; None as long as only whole warps have met.
    """

    def __init__(self, warps: int) -> None:
        self.since = np.ones(warps, np.int32)
        self.pairs: npt.NDArray[np.int32] | None = None

    def join(self, warps: Warps, now: npt.NDArray[np.int32]) -> None:
        """All lanes of some warps meet. ``since`` becomes another array: readers may keep the old."""
        self.since = self.since.copy()
        self.since[warps] = now
        if self.pairs is not None:
            self.pairs[warps] = now[:, None, None]

    def join_some(self, warps: Warps, members: npt.NDArray[np.bool_], now: npt.NDArray[np.int32]) -> None:
        """Members ``(warps, 32)`` of some warps meet: each knows what any of them knows."""
        if self.pairs is None:
            self.pairs = np.broadcast_to(self.since[:, None, None], (self.since.size, WARP, WARP)).copy()
        pairs, here = self.pairs[warps], members[:, :, None]
        known = np.where(here, pairs, 0).max(axis=1)
        known = np.where(members, now[:, None], known)
        self.pairs[warps] = np.where(here, known[:, None], pairs)

    def apart(self, lanes: Any, others: Any, then: Any) -> npt.NDArray[np.bool_]:
        """Return whether what other lanes of the same warps did at some times need not be before what lanes
        of the wave do now; shapes that broadcast.
        """
        warps = lanes // WARP
        found = then >= self.since[warps]
        if self.pairs is not None:
            found = found & (then >= self.pairs[warps, lanes % WARP, others % WARP])
        return np.asarray(found)


class LaneClocks:
    """The order of the lanes of each warp: ``ordered`` are meetings that order memory, ``met`` all of them.

    Of memory PTX says it of bar.warp.sync and of barriers of more warps (PTX ISA 9.1, section 9.7.13); other
    .sync statements make lanes wait for each other, of which "met" is the order. Meetings change nothing
    unless lanes have accessed memory in between, which ``accessed`` counts.
    """

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self.ordered, self.met = Meetings(clocks.warps), Meetings(clocks.warps)
        self.accessed = 1
        self._every = np.arange(clocks.warps)
        self._seen = {True: 0, False: 0}  # accesses at the latest meeting of all warps, by whether it orders

    def meet_all(self, *, orders: bool) -> None:
        """All lanes of all warps meet."""
        if self._seen[orders] != self.accessed:
            self.meet(self._every, orders=orders)
            self._seen[False] = self.accessed
            if orders:
                self._seen[True] = self.accessed

    def meet(self, warps: Warps, *, orders: bool) -> None:
        """All lanes of some warps meet."""
        self.clocks.advance(warps)
        now = self.clocks.own(warps)
        self.met.join(warps, now)
        if orders:
            self.ordered.join(warps, now)

    def meet_some(self, warps: Warps, members: npt.NDArray[np.bool_], *, orders: bool) -> None:
        """Members ``(warps, 32)`` of some warps meet."""
        self.clocks.advance(warps)
        now = self.clocks.own(warps)
        self.met.join_some(warps, members, now)
        if orders:
            self.ordered.join_some(warps, members, now)


def joined(first: Clock | None, other: Clock) -> Clock:
    """Return the maximum of two clocks, of which the first may have fewer components."""
    if first is None:
        return other
    found = other.copy()
    found[:, : first.shape[1]] = np.maximum(found[:, : first.shape[1]], first)
    return found


def _wider(clocks: npt.NDArray[np.int32], more: int) -> npt.NDArray[np.int32]:
    """So many more components."""
    return np.concatenate([clocks, np.zeros((*clocks.shape[:-1], more), np.int32)], axis=-1)
