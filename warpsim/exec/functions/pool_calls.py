"""Pools: memory that is allocated and freed as work of a stream."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from ..calls import Call, Handle, Int, Pointer, Size, row
from ..clients.client_memory import DEVICE
from ..error_codes import CudaError
from ..graphs import GraphNode, NodeKind
from ..streams import Touches
from .device_calls import check_device

_POOL_BYTES = 88  # of cudaMemPoolProps
_DEFAULT_POOL = struct.pack("<4i72x", 1, 0, 1, 0)  # pinned, no handles of other processes, device 0
_CURRENT = frozenset({4 + 1, 4 + 3})  # bytes reserved and used, of cudaMemPoolAttr


@dataclass(eq=False)
class Pool:
    """A pool; its attributes have no effect."""

    attributes: dict[int, int] = field(default_factory=dict)


def _default(call: Call) -> int:
    """Return the handle of the default pool."""
    handles = call.process.handles
    known = next((handle for handle, value in handles.items() if isinstance(value, Pool)), None)
    return call.process.handle(Pool()) if known is None else known


def _allocate(call: Call, result: int, size: int, stream: int) -> None:
    process = call.process
    address = process.allocate(size, "allocation", DEVICE).address if size else 0
    call.put(result, "Q", address)
    found = call.stream(stream)
    if found.handle in process.captures:
        process.graph_memory.add(address)
    process.submit(call, found, _allocation(call.name, address, size))


def _allocation(name: str, address: int, size: int, pool: bytes = _DEFAULT_POOL) -> GraphNode:
    """Return the work of an allocation, which is made already."""
    touches = Touches(writes=((address, address + size),))
    fields = address, size, pool
    return GraphNode(f"{name} of {address:#x}", lambda later: touches, kind=NodeKind.ALLOCATE, fields=fields)


def allocated_in_graph(call: Call, parameters: int) -> GraphNode:
    """Return the work of cudaMemAllocNodeParams: pool, accesses of 16 bytes, size, address."""
    place = parameters + _POOL_BYTES + 16
    (size,) = call.get(place, "Q")
    if not size:
        raise CudaError("InvalidValue", f"{call.name}: an allocation of 0 bytes")
    address = call.process.allocate(size, "allocation", DEVICE).address
    call.process.graph_memory.add(address)
    call.put(place + 8, "Q", address)
    return _allocation(call.name, address, size, call.read(parameters, _POOL_BYTES))


@row("cudaMallocAsync", "cuMemAllocAsync")
def malloc_async(call: Call, result: Pointer, size: Size, stream: Handle) -> None:
    """Allocate as work of a stream."""
    _allocate(call, result, size, stream)


@row("cudaMallocFromPoolAsync", "cuMemAllocFromPoolAsync")
def malloc_from_pool(call: Call, result: Pointer, size: Size, pool: Handle, stream: Handle) -> None:
    """Allocate from a pool as work of a stream."""
    call.process.held(pool, Pool, "pool")
    _allocate(call, result, size, stream)


@row("cudaFreeAsync", "cuMemFreeAsync")
def free_async(call: Call, address: Pointer, stream: Handle) -> None:
    """Free as work of a stream."""
    if not address:
        return

    call.process.submit(call, call.stream(stream), freed_in_graph(address))


def freed_in_graph(address: int) -> GraphNode:
    """Return the work of a free: what a graph has allocated stays with it, since it may be launched again."""

    def run(later: Call) -> Touches:
        found = later.process.memory.find(address)
        size = found.size if found else 1
        if found is not None and address in later.process.graph_memory:
            later.process.memory.unwritten(found)
        else:
            later.process.free(later.connection.channel, address)
        return Touches(writes=((address, address + size),))

    return GraphNode(f"free of {address:#x}", run, kind=NodeKind.FREE, fields=(address,))


@row("cudaDeviceGetDefaultMemPool", "cuDeviceGetDefaultMemPool")
def get_default_pool(call: Call, result: Pointer, device: Int) -> None:
    """Give the first pool of the device."""
    check_device(device)
    call.put(result, "Q", _default(call))


@row("cudaDeviceGetMemPool", "cuDeviceGetMemPool")
def get_pool(call: Call, result: Pointer, device: Int) -> None:
    """Give the pool that the device uses."""
    check_device(device)
    used = call.process.used_pool
    held = isinstance(call.process.handles.get(used), Pool)
    call.put(result, "Q", used if held else _default(call))


@row("cudaDeviceSetMemPool", "cuDeviceSetMemPool")
def set_pool(call: Call, device: Int, pool: Handle) -> None:
    """Use a pool."""
    check_device(device)
    call.process.held(pool, Pool, "pool")
    call.process.used_pool = pool


@row("cudaMemPoolCreate", "cuMemPoolCreate")
def pool_create(call: Call, result: Pointer, properties: Pointer) -> None:
    """Make a pool."""
    call.get(properties, "i")  # that a null pointer is an error
    _default(call)
    call.put(result, "Q", call.process.handle(Pool()))


@row("cudaMemPoolDestroy", "cuMemPoolDestroy")
def pool_destroy(call: Call, pool: Handle) -> None:
    """Forget a pool."""
    call.process.drop(pool, Pool, "pool")


@row("cudaMemPoolSetAttribute", "cuMemPoolSetAttribute")
def pool_set_attribute(call: Call, pool: Handle, attribute: Int, value: Pointer) -> None:
    """Set an attribute."""
    layout = "i" if attribute <= 3 else "Q"
    found = call.process.held(pool, Pool, "pool")
    found.attributes[attribute] = call.get(value, layout)[0]


@row("cudaMemPoolGetAttribute", "cuMemPoolGetAttribute")
def pool_get_attribute(call: Call, pool: Handle, attribute: Int, value: Pointer) -> None:
    """Give an attribute."""
    layout = "i" if attribute <= 3 else "Q"
    found = call.process.held(pool, Pool, "pool")
    held = call.process.memory.used if attribute in _CURRENT else found.attributes.get(attribute, 0)
    call.put(value, layout, held)


@row("cudaMemPoolTrimTo", "cuMemPoolTrimTo")
def pool_trim(call: Call, pool: Handle, keep: Size) -> None:
    """Nothing is held back."""
    call.process.held(pool, Pool, "pool")


@row("cudaMemPoolSetAccess", "cuMemPoolSetAccess")
def pool_set_access(call: Call, pool: Handle, descriptions: Pointer, number: Size) -> None:
    """There is no other device."""
    call.process.held(pool, Pool, "pool")


@row("cudaMemPoolGetAccess", "cuMemPoolGetAccess")
def pool_get_access(call: Call, result: Pointer, pool: Handle, location: Pointer) -> None:
    """Give the access of a place: reading and writing for the device, none for the host."""
    call.process.held(pool, Pool, "pool")
    call.put(result, "i", 3 if location_of(call, location) >= 0 else 0)


def location_of(call: Call, location: int) -> int:
    """Return the device of a cudaMemLocation; -1 for the host. Raises CudaError."""
    kind, number = call.get(location, "ii")
    if kind == 1:
        check_device(number)
        return int(number)
    return -1
