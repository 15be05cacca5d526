"""The global memory of a client: at fixed addresses in one file of memory, which the client maps as well.

    device memory          the client has no access: to touch it is a fault there, as with a real chip
    managed, pinned        whole pages, which client and kernels share without copies

Addresses begin at DEVICE_BASE, where Linux maps nothing by itself. Knows allocations; does not know calls.
"""

from __future__ import annotations

import mmap
import os
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ....base.errors import WarpsimError
from ....machine.state.spaces import DEVICE_BASE, Allocation, Bytes, DeviceMemory

PAGE = 4096
_MAP_NORESERVE = 0x4000  # of Linux, from Python 3.13 on in mmap
_ALIGNMENT, _GAP = 256, 256
_FRESH_ROOM = 64 << 20  # bytes beyond which places that were freed are handed out again
_MOST_RESERVED = 2 << 30  # bytes of a range of addresses
_SNAPSHOT = 16 << 20  # bytes of all allocations beyond which a launch is not executed again


class OutOfMemory(WarpsimError):
    """The device has no room for an allocation."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What an allocation is: ``name`` ("device", "managed", "host"), and whether the client has access."""

    name: str
    shared: bool = False


DEVICE, MANAGED, PINNED = (
    Kind(name="device"),
    Kind(name="managed", shared=True),
    Kind(name="host", shared=True),
)


class ClientMemory(DeviceMemory):
    """Global memory in a file of memory of ``capacity`` bytes; ``kinds`` has what each allocation is."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity = capacity
        self.descriptor = os.memfd_create("warpsim")
        os.ftruncate(self.descriptor, capacity)
        self._map = mmap.mmap(self.descriptor, capacity, flags=mmap.MAP_SHARED | _MAP_NORESERVE)
        self._all: Bytes = np.frombuffer(self._map, np.uint8)
        self.kinds: dict[int, Kind] = {}  # of allocations that the host made, by address
        self.used = 0
        self.count = 0
        self._kept: list[Allocation] = []  # places that are not handed out again
        self.managed: set[str] = set()  # names of variables whose pages the client reads and writes, too

    def _grow(self, size: int) -> Bytes:
        if size > self.capacity:
            raise OutOfMemory(f"the device has {self.capacity} bytes")
        return self._all[: min(-(-size // PAGE) * PAGE, self.capacity)]

    def detach(self, data: Bytes) -> None:
        """Leave the file of memory, which may have changed meanwhile, for a copy of what it held."""
        self.data = data.copy()

    def allocate(self, size: int, name: str = "", alignment: int = _ALIGNMENT, space: str = "") -> Allocation:
        """Allocate bytes for a variable, zero; whole pages where it is managed."""
        if name not in self.managed:
            return super().allocate(size, name, alignment, space)
        found = super().allocate(size, name, max(alignment, PAGE), space)
        self._end = -(-(self._end - _GAP) // PAGE) * PAGE + _GAP
        self._reach(self._end)
        return found

    def host_allocate(self, size: int, name: str, kind: Kind = DEVICE) -> Allocation:
        """Allocate for the host; raises OutOfMemory. Bytes of device memory are unwritten."""
        if size > self.capacity - self.used:
            raise OutOfMemory(f"{size} bytes: {self.capacity - self.used} of {self.capacity} are free")
        alignment = PAGE if kind.shared else _ALIGNMENT
        room = -(-size // PAGE) * PAGE if kind.shared else size
        place = self._place(room, alignment)
        allocation = Allocation(address=DEVICE_BASE + place, size=size, name=name)
        self._end = max(self._end, place + room + _GAP)
        self._reach(self._end)
        insort(self.allocations, allocation, key=lambda other: other.address)
        insort(self._bases, allocation.address)
        self.kinds[allocation.address] = kind
        self.used += size
        self.count += 1
        if not kind.shared:
            self.unwritten(allocation)
        return allocation

    def host_free(self, address: int) -> tuple[Allocation, Kind]:
        """Give an allocation of the host back; raises KeyError where none begins at the address."""
        kind = self.kinds.pop(address)
        place = self._bases.index(address)
        allocation = self.allocations[place]
        self._clear(allocation)
        self.written(allocation)
        del self.allocations[place], self._bases[place]
        self.used -= allocation.size
        return allocation, kind

    def is_shared(self, allocation: Allocation) -> bool:
        """Return whether the client reads and writes an allocation, too."""
        kind = self.kinds.get(allocation.address, DEVICE)
        return kind.shared or allocation.name in self.managed

    def reserve(self, size: int, alignment: int) -> int:
        """Return the address of a range that no allocation gets, without bytes. Raises OutOfMemory."""
        place = -(-self._end // alignment) * alignment
        if size > _MOST_RESERVED or place + size > self.capacity:
            most = min(_MOST_RESERVED, self.capacity - place)
            raise OutOfMemory(f"a range of {size} addresses: at most {max(most, 0)}")
        self._end = place + size + _GAP
        self._reach(self._end)
        self._kept.append(Allocation(address=DEVICE_BASE + place, size=size, name="a range of addresses"))
        return DEVICE_BASE + place

    def give_back(self, address: int) -> None:
        """Hand out the addresses of a range again."""
        self._kept = [each for each in self._kept if each.address != address]

    def offset_of(self, address: int) -> int:
        """Return the place of an address in ``data``."""
        return address - DEVICE_BASE

    def show(self, first: int, past: int, stretches: Sequence[tuple[int, int, str]]) -> None:
        """Have allocations at these stretches (address, bytes, name) of a range, and at no other of it."""
        kept = [each for each in self.allocations if not first <= each.address < past]
        kept += [
            Allocation(address=address, size=size, name=name, reserved=first)
            for address, size, name in stretches
        ]
        self.allocations = sorted(kept, key=lambda other: other.address)
        self._bases = [each.address for each in self.allocations]

    def withhold(self, address: int) -> None:
        """Forget an allocation whose bytes stay, and whose place is not handed out again."""
        allocation = self.allocation_at(address)
        del self.kinds[address]
        self.withdraw(address)
        self._kept.append(allocation)
        self.used -= allocation.size

    def clear(self, kept: Kind) -> None:
        """Free all but the allocations of a kind: those of the host, and variables of modules."""
        for allocation in list(self.allocations):
            if self.kinds.get(allocation.address) is not kept:
                self.kinds.setdefault(allocation.address, DEVICE)
                self.host_free(allocation.address)
        self.used = sum(allocation.size for allocation in self.allocations)

    def snapshot(self) -> Bytes | None:
        """Return a copy of all allocations; None where there are too many bytes."""
        if self.used > _SNAPSHOT:
            return None
        return super().snapshot()

    def close(self) -> None:
        """Free everything; the memory must not be used afterwards."""
        os.ftruncate(self.descriptor, 0)
        os.close(self.descriptor)

    def _place(self, size: int, alignment: int) -> int:
        """Return where bytes go: behind all others while there is room, then where others were freed."""
        end = -(-self._end // alignment) * alignment
        if end + size <= max(_FRESH_ROOM, 2 * self.used):
            return end
        before = 0
        for allocation in sorted([*self.allocations, *self._kept], key=lambda other: other.address):
            start = -(-before // alignment) * alignment
            if start + size + _GAP <= allocation.address - DEVICE_BASE:
                return start
            before = max(before, allocation.address - DEVICE_BASE + allocation.size + _GAP)
            if self.kinds.get(allocation.address, DEVICE).shared:
                before = -(-before // PAGE) * PAGE
        return end

    def _clear(self, allocation: Allocation) -> None:
        """Zero bytes; whole pages go back to the system."""
        start = allocation.address - DEVICE_BASE
        first, past = -(-start // PAGE) * PAGE, (start + allocation.size) // PAGE * PAGE
        if past <= first:
            self.bytes_of(allocation)[:] = 0
            return
        self._all[start:first] = 0
        self._all[past : start + allocation.size] = 0
        self._map.madvise(mmap.MADV_REMOVE, first, past - first)
