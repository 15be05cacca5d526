"""What has filled each allocation: calls of the host and kernels, the last of each byte.

Knows names and stretches of bytes; does not know calls, nor how memory is written.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...machine.run.events import Observer, helper
from ...machine.run.pending import Pending
from ...machine.run.wave import Wave
from ...machine.state.memory_access import MemoryAccess
from ...machine.state.spaces import DEVICE_BASE, Allocation, DeviceMemory, Offsets

_KEPT = 8  # of an allocation
_SHOWN = 3


class Fill(NamedTuple):
    """What has written bytes of an allocation, from ``first`` on to before ``past``."""

    what: str
    first: int
    past: int


class Fills:
    """What has filled the allocations of a client, the latest last."""

    def __init__(self) -> None:
        self._by: dict[Allocation, list[Fill]] = {}

    def note(self, allocation: Allocation, what: str, first: int, size: int) -> None:
        """Note that bytes from ``first`` on were written; those that are written again are forgotten."""
        past = first + size
        earlier = self._by.get(allocation, [])
        if earlier and earlier[-1].what == what:  # another row of the same copy
            *earlier, last = earlier
            first, past = min(first, last.first), max(past, last.past)
        left = [fill for fill in earlier if fill.first < first or fill.past > past]
        self._by[allocation] = [*left, Fill(what, first, past)][-_KEPT:]

    def of(self, allocation: Allocation) -> tuple[Fill, ...]:
        """Return what has filled an allocation."""
        return tuple(self._by.get(allocation, ()))

    def forget(self, allocation: Allocation) -> None:
        """Forget an allocation that was freed."""
        self._by.pop(allocation, None)

    def text(self, allocation: Allocation) -> str:
        """Describe what has filled an allocation."""
        fills = self.of(allocation)
        parts = [
            fill.what
            if (fill.first, fill.past) == (0, allocation.size)
            else f"{fill.what} (bytes {fill.first} to {fill.past - 1})"
            for fill in fills[-_SHOWN:]
        ]
        more = [f"{len(fills) - _SHOWN} earlier"] if len(fills) > _SHOWN else []
        return ", then ".join([*more, *parts]) or "nothing"


class WrittenAllocations(Observer):
    """The allocations that a launch writes to, and the stretch of each that holds all of that."""

    def __init__(self) -> None:
        self.stretches: dict[Allocation, tuple[int, int]] = {}

    def store(self, wave: Wave, access: MemoryAccess) -> None:
        """Note what is written."""
        memory = wave.memories.device
        if access.memory is not memory.data:
            return
        low, high = (memory.allocation_at(DEVICE_BASE + int(end)) for end in _ends(access.offsets))
        groups = [access.offsets] if low is high else _by_allocation(memory, access.offsets)
        for offsets in groups:
            first, last = _ends(offsets)
            self._note(memory, first, last + access.size)

    atomic = store

    def completed(self, wave: Wave, pending: Pending) -> None:
        """Note what an asynchronous operation has written."""
        for stretches in pending.writes:
            if stretches.space == "global":
                for first, past in stretches.ranges.tolist():
                    self._note(wave.memories.device, first, past)

    @helper
    def _note(self, memory: DeviceMemory, first: int, past: int) -> None:
        """Note bytes of the memory, which lie in one allocation."""
        allocation = memory.allocation_at(DEVICE_BASE + first)
        start = allocation.address - DEVICE_BASE
        old = self.stretches.get(allocation, (first - start, past - start))
        self.stretches[allocation] = min(old[0], first - start), max(old[1], past - start)


def _ends(offsets: Offsets) -> tuple[int, int]:
    return int(offsets.min()), int(offsets.max())


def _by_allocation(memory: DeviceMemory, offsets: Offsets) -> list[Offsets]:
    """Return offsets, those in one allocation together."""
    bases = np.array([allocation.address - DEVICE_BASE for allocation in memory.allocations])
    places = np.searchsorted(bases, offsets, "right")
    return [offsets[places == place] for place in np.unique(places)]
