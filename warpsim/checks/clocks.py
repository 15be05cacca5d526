"""What warps know of each other: happens-before, by vector clocks (PTX ISA 9.1, 8.10 "causality order").

A component stands for a warp, an mbarrier, or the groups that a lane closes. ``known[w, c]`` is how far warp
w knows component c: of a warp, its releases; of an mbarrier, phases that are over; of groups, those that are
complete. ``fenced`` is the same for what async proxies may see: what was known at a proxy fence on the way.
``caused`` is it for what must have happened at all, which the issue of a copy tells its mbarrier, too,
though it makes nothing visible. A warp counts as one thread; orders that are not told apart (scopes,
.relaxed) are taken for the strongest, so that no alarm is false. Does not know memory or statements.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..isa.warps import WARP

Clock = npt.NDArray[np.int32]  # by component
Warps = npt.NDArray[np.int64]
_ROOM = 64  # components beyond those of warps, at first


@dataclass(eq=False)
class Barrier:
    """An mbarrier: what has been released into the phase to come, and what the end of the last one tells."""

    component: int
    coming: npt.NDArray[np.int32]  # (3, components): known, fenced and caused
    over: npt.NDArray[np.int32]
    phases: int = 0  # that are over


class Clocks:
    """The clocks of a wave with so many warps, ``per_cta`` of them in a CTA."""

    def __init__(self, warps: int) -> None:
        self.warps = warps
        self.components = warps
        self.state = np.zeros((3, warps, warps + _ROOM), np.int32)  # known, fenced, caused
        self.state[0, np.arange(warps), np.arange(warps)] = 1
        self.barriers: dict[int, Barrier] = {}  # by offset in shared memory
        self.groups: dict[str, npt.NDArray[np.int64]] = {}  # by family: of each lane its component, or 0
        self.places: dict[int, int] = {}  # the offset of the mbarrier that a component stands for
        self.lanes: dict[int, int] = {}  # and the lane whose groups

    @property
    def known(self) -> npt.NDArray[np.int32]:
        """(warps, components)."""
        found: npt.NDArray[np.int32] = self.state[0]
        return found

    @property
    def fenced(self) -> npt.NDArray[np.int32]:
        """(warps, components)."""
        found: npt.NDArray[np.int32] = self.state[1]
        return found

    def own(self, warps: Warps) -> npt.NDArray[np.int32]:
        """How often each of some warps has released."""
        found: npt.NDArray[np.int32] = self.state[0, warps, warps]
        return found

    # --- components ---

    def _component(self) -> int:
        if self.components == self.state.shape[2]:
            self.state = _wider(self.state)
            for one in self.barriers.values():
                one.coming, one.over = _wider(one.coming), _wider(one.over)
        self.components += 1
        return self.components - 1

    def barrier(self, offset: int) -> Barrier:
        """The mbarrier at an offset."""
        found = self.barriers.get(offset)
        if found is None:
            component = self._component()
            empty = np.zeros((3, self.state.shape[2]), np.int32)
            found = self.barriers[offset] = Barrier(component, empty, empty.copy())
            self.places[component] = offset
        return found

    def begin(self, offset: int) -> None:
        """An mbarrier is initialised: what was known of the one before is of no more use."""
        self.barriers.pop(offset, None)
        self.barrier(offset)

    def group(self, family: str, lane: int) -> int:
        """The component of the groups of a lane."""
        return int(self.groups_of(family, np.array([lane]))[0])

    def groups_of(self, family: str, lanes: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
        """The components of the groups of some lanes."""
        known = self.groups.setdefault(family, np.zeros(self.warps * WARP, np.int64))
        for lane in lanes[known[lanes] == 0].tolist():
            known[lane] = self._component()
            self.lanes[int(known[lane])] = lane
        return np.asarray(known[lanes])

    # --- order ---

    def release(self, barrier: Barrier, warps: Warps, *, ends: int) -> None:
        """Warps arrive, upon which so many phases come to their end."""
        self._cause(warps)
        barrier.coming = np.maximum(barrier.coming, self.state[:, warps].max(axis=1))
        self.state[0, warps, warps] += 1
        self.end(barrier, ends)

    def end(self, barrier: Barrier, ends: int) -> None:
        """So many phases are over."""
        if ends:
            barrier.phases += ends
            barrier.coming[:, barrier.component] = barrier.phases
            barrier.over = barrier.coming.copy()

    def _cause(self, warps: Warps) -> None:
        """What warps know has happened."""
        self.state[2, warps] = np.maximum(self.state[2, warps], self.state[0, warps])

    def issue(self, barrier: Barrier, warp: int) -> None:
        """A warp issues an operation without which the phase to come does not end."""
        self._cause(np.array([warp]))
        barrier.coming[2] = np.maximum(barrier.coming[2], self.state[2, warp])
        self.state[0, warp, warp] += 1

    def acquire(self, barrier: Barrier, warps: Warps) -> None:
        """Warps have seen that the latest phase is over."""
        self.state[:, warps] = np.maximum(self.state[:, warps], barrier.over[:, None])

    def meet(self, arrived: Warps, waited: Warps) -> None:
        """Warps have arrived at a barrier, and some have waited there for the others."""
        self._cause(arrived)
        together = self.state[:, arrived].max(axis=1, keepdims=True)
        self.state[:, waited] = np.maximum(self.state[:, waited], together)
        self.state[0, arrived, arrived] += 1

    def shared(self, warps: Warps) -> npt.NDArray[np.int32]:
        """``(2, components)``: what some warps know together now; what they do later is none of it."""
        together: npt.NDArray[np.int32] = self.state[:, warps].max(axis=1)
        self.state[0, warps, warps] += 1
        return together

    def learn(self, warps: Warps, told: npt.NDArray[np.int32]) -> None:
        """Warps know what others knew, as ``shared`` gave it."""
        part = self.state[:, warps, : told.shape[1]]
        self.state[:, warps, : told.shape[1]] = np.maximum(part, told[:, None])

    def learn_of(self, warps: Warps) -> None:
        """Warps know how far each of them has come, which makes nothing visible."""
        self._cause(warps)
        self.state[2, warps] = self.state[2, warps].max(axis=0)

    def fence(self, warps: Warps) -> None:
        """A proxy fence: what the warps know, async proxies of those that learn of it see."""
        self.state[1, warps] = np.maximum(self.state[1, warps], self.state[0, warps])
        self.state[0, warps, warps] += 1  # what comes later is not fenced

    def advance(self, components: Warps, warps: Warps, numbers: Warps) -> None:
        """Warps know components up to numbers, of shapes that go together."""
        self.state[:, warps, components] = np.maximum(self.state[:, warps, components], numbers)

    def complete(self, family: str, lanes: npt.NDArray[np.intp], numbers: Warps) -> None:
        """Lanes have waited for their groups below these numbers."""
        if family in self.groups:
            components = self.groups[family][lanes]
            counted = components > 0
            place = lanes[counted] // WARP, components[counted]
            for row in self.state:
                row[place] = np.maximum(row[place], numbers[counted])


def _wider(clocks: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Twice as many components."""
    return np.concatenate([clocks, np.zeros_like(clocks)], axis=-1)
