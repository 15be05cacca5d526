"""Memory that a program places itself: ranges of addresses, memory of handles, and which lies where.

    cuMemAddressReserve    a range of addresses, in which nothing lies
    cuMemCreate            bytes without an address
    cuMemMap               the bytes of a handle lie in a range, once cuMemSetAccess permits it

The bytes of a handle stay when they are mapped elsewhere. A handle is mapped at one place at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ...calls import Call, Handle, Int, Pointer, Size, row
from ...clients.client_memory import OutOfMemory
from ...cuda_structures import AccessDescription, AllocationProperties, MemoryLocation, size_of
from ...error_codes import CudaError
from .pool_calls import location_of

_GRANULARITY = 2 << 20
_READ_WRITE = 3
_PINNED, _DEVICE = 1, 1  # of CUmemAllocationType and CUmemLocationType


@dataclass(eq=False)
class Backing:
    """Memory of a handle: what it holds while it is mapped nowhere, and which bytes nothing wrote (255)."""

    size: int
    content: npt.NDArray[np.uint8] | None = None
    fresh: npt.NDArray[np.uint8] | None = None
    mapped: bool = False
    released: bool = False


@dataclass(eq=False)
class Mapped:
    """A handle in a range; ``access`` says whether kernels reach it."""

    address: int
    backing: Backing
    access: bool = False

    @property
    def past(self) -> int:
        """The address behind it."""
        return self.address + self.backing.size


@dataclass(eq=False)
class Range:
    """A range of addresses, and what is mapped there, in order."""

    address: int
    size: int
    mapped: list[Mapped] = field(default_factory=list)

    def stretches(self) -> Iterator[tuple[int, int, str]]:
        """Yield what kernels reach: neighbours are one stretch."""
        start = end = 0
        for each in sorted((each for each in self.mapped if each.access), key=lambda each: each.address):
            if each.address != end:
                if end:
                    yield start, end - start, f"mapped memory at {start:#x}"
                start = each.address
            end = each.past
        if end:
            yield start, end - start, f"mapped memory at {start:#x}"


def _range_of(call: Call, address: int, size: int) -> Range:
    """Return the range that addresses are in. Raises CudaError."""
    for found in call.process.ranges:
        inside = found.address <= address and address + size <= found.address + found.size
        if inside and isinstance(found, Range):
            return found
    raise CudaError("InvalidValue", f"{call.name}: {size} bytes at {address:#x} are in no reserved range")


def _within(call: Call, address: int, size: int) -> tuple[Range, list[Mapped]]:
    """Return a range and what is mapped in a part of it, which must be whole handles. Raises CudaError."""
    found = _range_of(call, address, size)
    inside = [each for each in found.mapped if address <= each.address and each.past <= address + size]
    if sum(each.backing.size for each in inside) != size:
        raise CudaError("InvalidValue", f"{call.name}: {size} bytes at {address:#x} are not whole mappings")
    return found, inside


def _show(call: Call, found: Range) -> None:
    call.process.memory.show(found.address, found.address + found.size, list(found.stretches()))


@row("cuMemGetAllocationGranularity")
def granularity(call: Call, result: Pointer, properties: Pointer, option: Int) -> None:
    """Give the bytes that sizes and addresses are multiples of."""
    call.put(result, "Q", _GRANULARITY)


@row("cuMemCreate")
def create(call: Call, result: Pointer, size: Size, properties: Pointer, flags: Size) -> None:
    """Make memory without an address, by CUmemAllocationProp."""
    asked = call.structure(AllocationProperties, properties)
    if asked.kind != _PINNED or asked.location.kind != _DEVICE:
        raise CudaError("NotSupported", f"{call.name}: memory of the device is there, no other")
    memory = call.process.memory
    if not size or size % _GRANULARITY:
        raise CudaError("InvalidValue", f"{call.name}: {size} bytes, no multiple of {_GRANULARITY}")
    if size > memory.capacity - memory.used:
        raise CudaError("MemoryAllocation", f"{call.name}: {memory.capacity - memory.used} bytes are free")
    memory.used += size
    call.put(result, "Q", call.process.handle(Backing(size)))


def _release(call: Call, backing: Backing) -> None:
    """Free memory that has no handle and no place any more."""
    if backing.released and not backing.mapped:
        call.process.memory.used -= backing.size


@row("cuMemRelease")
def release(call: Call, handle: Handle) -> None:
    """Forget a handle; memory that is mapped stays until it is not."""
    backing: Backing = call.process.drop(handle, Backing, "handle of memory")
    backing.released = True
    _release(call, backing)


@row("cuMemAddressReserve")
def reserve(call: Call, result: Pointer, size: Size, alignment: Size, wanted: Pointer, flags: Size) -> None:
    """Give a range of addresses; that which is wanted is a hint."""
    if not size or size % _GRANULARITY:
        raise CudaError("InvalidValue", f"{call.name}: {size} bytes, no multiple of {_GRANULARITY}")
    try:
        address = call.process.memory.reserve(size, max(alignment, _GRANULARITY))
    except OutOfMemory as error:
        raise CudaError("MemoryAllocation", f"{call.name}: {error}") from None
    call.process.ranges.append(Range(address, size))
    call.put(result, "Q", address)


@row("cuMemAddressFree")
def address_free(call: Call, address: Pointer, size: Size) -> None:
    """Forget a range of addresses, in which nothing is mapped."""
    found = _range_of(call, address, size)
    if found.mapped or (found.address, found.size) != (address, size):
        raise CudaError("InvalidValue", f"{call.name}: memory is mapped there, or the range is another")
    call.process.ranges.remove(found)
    call.process.memory.give_back(address)


@row("cuMemMap")
def map_memory(call: Call, address: Pointer, size: Size, offset: Size, handle: Handle, flags: Size) -> None:
    """Let the bytes of a handle lie in a range; kernels reach them after cuMemSetAccess."""
    backing: Backing = call.process.held(handle, Backing, "handle of memory")
    found = _range_of(call, address, size)
    if offset or size != backing.size or address % _GRANULARITY:
        raise CudaError(
            "InvalidValue",
            f"{call.name}: {size} bytes from byte {offset} on at {address:#x}: a handle of {backing.size} "
            f"bytes is mapped as a whole, at multiples of {_GRANULARITY}",
        )
    if backing.mapped or any(each.address < address + size and address < each.past for each in found.mapped):
        raise CudaError("InvalidValue", f"{call.name}: the handle is mapped, or other memory is there")
    memory, place = call.process.memory, address - found.address
    start = memory.offset_of(found.address) + place
    if memory.fresh is None:
        memory.fresh = np.zeros(memory.data.size, np.uint8)
    memory.data[start : start + size] = 0 if backing.content is None else backing.content
    memory.fresh[start : start + size] = 255 if backing.fresh is None else backing.fresh
    backing.mapped = True
    backing.content = backing.fresh = None
    found.mapped.append(Mapped(address, backing))


@row("cuMemUnmap")
def unmap(call: Call, address: Pointer, size: Size) -> None:
    """Take memory out of a range, when all streams have ended; a handle keeps its bytes."""
    call.process.wait_for_all(call)
    found, inside = _within(call, address, size)
    memory = call.process.memory
    for each in inside:
        backing, start = each.backing, memory.offset_of(each.address)
        if not backing.released:
            backing.content = memory.data[start : start + backing.size].copy()
            if memory.fresh is not None:
                backing.fresh = memory.fresh[start : start + backing.size].copy()
        backing.mapped = False
        found.mapped.remove(each)
        _release(call, backing)
    _show(call, found)


@row("cuMemSetAccess")
def set_access(call: Call, address: Pointer, size: Size, descriptions: Pointer, number: Size) -> None:
    """Let kernels reach what is mapped, or not."""
    found, inside = _within(call, address, size)
    for index in range(number):
        asked = call.structure(AccessDescription, descriptions + size_of(AccessDescription) * index)
        if asked.location.kind == _DEVICE:
            for each in inside:
                each.access = bool(asked.flags)
    _show(call, found)


@row("cuMemGetAccess")
def get_access(call: Call, result: Pointer, location: Pointer, address: Pointer) -> None:
    """Give whether kernels reach mapped memory."""
    found = _range_of(call, address, 1)
    each = next((each for each in found.mapped if each.address <= address < each.past), None)
    if each is None:
        raise CudaError("InvalidValue", f"{call.name}: nothing is mapped at {address:#x}")
    call.put(result, "Q", _READ_WRITE if each.access and location_of(call, location) >= 0 else 0)


@row("cuMemGetAllocationPropertiesFromHandle")
def properties_of(call: Call, result: Pointer, handle: Handle) -> None:
    """Give CUmemAllocationProp: memory of the device."""
    call.process.held(handle, Backing, "handle of memory")
    call.put_structure(result, AllocationProperties(_PINNED, 0, MemoryLocation(_DEVICE, 0)))


@row("cuMemRetainAllocationHandle")
def retain(call: Call, result: Pointer, address: Pointer) -> None:
    """Give a handle of what is mapped at an address."""
    found = _range_of(call, address, 1)
    each = next((each for each in found.mapped if each.address <= address < each.past), None)
    if each is None:
        raise CudaError("InvalidValue", f"{call.name}: nothing is mapped at {address:#x}")
    each.backing.released = False
    call.put(result, "Q", call.process.handle(each.backing))
