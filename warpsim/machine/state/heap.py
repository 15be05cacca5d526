"""The heap of a device: what malloc, free, new and delete of device code take and give back.

Blocks are allocations of the device like any other, so an access outside of a block is found. The limit is
cudaLimitMallocHeapSize (CUDA C++ Programming Guide, "Dynamic Global Memory Allocation and Operations"):
8 MiB by default, and malloc gives a null pointer beyond it. Knows sizes and addresses; does not know lanes.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...base.errors import Location
from .spaces import Allocation, DeviceMemory

HEAP_BYTES = 8 << 20
_ALIGNMENT = 16  # of a block


@dataclass(frozen=True, slots=True, kw_only=True)
class HeapBlock:
    """A block that malloc gave, and the statement that called it."""

    allocation: Allocation
    location: Location


class Heap:
    """The blocks of one device: ``blocks`` in use by address, ``used`` bytes of ``limit``."""

    def __init__(self, memory: DeviceMemory, limit: int = HEAP_BYTES) -> None:
        self._memory = memory
        self.limit = limit
        self.used = 0
        self.blocks: dict[int, HeapBlock] = {}
        self._parked: dict[int, list[int]] = {}  # by size: addresses that were freed, for the next block

    def allocate(self, size: int, location: Location) -> int:
        """Return the address of a new block of unwritten bytes; 0 for no bytes, and beyond the limit."""
        rounded = _rounded(size)
        if size == 0 or self.used + rounded > self.limit:
            return 0
        parked, name = self._parked.get(rounded), f"malloc({size})"
        if parked:
            allocation = Allocation(address=parked.pop(), size=size, name=name)
            self._memory.readmit(allocation)
        else:
            allocation = self._memory.allocate(size, name)
        self._memory.unwritten(allocation)
        self.used += rounded
        self.blocks[allocation.address] = HeapBlock(allocation=allocation, location=location)
        return allocation.address

    def free(self, address: int) -> bool:
        """Give a block back; false where no block begins at the address."""
        block = self.blocks.pop(address, None)
        if block is None:
            return False
        rounded = _rounded(block.allocation.size)
        self.used -= rounded
        self._memory.written(block.allocation)
        self._memory.withdraw(address)
        self._parked.setdefault(rounded, []).append(address)
        return True

    def state(self) -> tuple[int, dict[int, HeapBlock]]:
        """Return what ``restore`` takes to forget everything that happens from now on."""
        return self.used, dict(self.blocks)

    def restore(self, state: tuple[int, dict[int, HeapBlock]]) -> None:
        """Be as at that state; the memory is restored by the caller."""
        self.used, self.blocks = state[0], dict(state[1])
        self._parked.clear()

    def settle(self) -> None:
        """Forget the places of freed blocks: a launch has ended, and others may take them."""
        self._parked.clear()


def _rounded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
