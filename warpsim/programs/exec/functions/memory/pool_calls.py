"""Pools: memory that is allocated and freed as work of a stream."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from ...calls import Call, Handle, Int, Pointer, Size, row
from ...clients.client_memory import DEVICE, MANAGED, PINNED, Kind
from ...cuda_structures import POOL_BYTES, AllocationNodeParameters, MemoryLocation, PoolProperties
from ...error_codes import CudaError
from ...graphs import GraphNode, NodeKind
from ...streams import Touches
from ..device_calls import check_device

_ON_DEVICE_0 = 1, 0, 1, 0  # pinned, no handles of other processes
_DEFAULT_POOL = struct.pack(f"@4i{POOL_BYTES - 16}x", *_ON_DEVICE_0)
_CURRENT, _MOST = frozenset({5, 7}), frozenset({6, 8})  # bytes reserved and used, of cudaMemPoolAttr
_REUSE = {1: 1, 2: 1, 3: 1}  # attributes that are set at first
_MANAGED_TYPE = 2  # of cudaMemAllocationType
_ON_HOST = frozenset({2, 3, 4})  # of cudaMemLocationType: the host, a node of it, that of the thread


@dataclass(eq=False)
class Pool:
    """A pool of memory of a kind; its attributes have no effect. ``most`` bytes have been used at a time."""

    kind: Kind = DEVICE
    attributes: dict[int, int] = field(default_factory=lambda: dict(_REUSE))
    most: int = 0


def _kind_of(allocation: int, location: int) -> Kind:
    """Return the memory of a pool, by cudaMemAllocationType and cudaMemLocationType."""
    if allocation == _MANAGED_TYPE:
        return MANAGED
    return PINNED if location in _ON_HOST else DEVICE


def _default(call: Call, kind: Kind = DEVICE) -> int:
    """Return the handle of the default pool of a kind: the first."""
    handles = call.process.handles
    pools = ((handle, value) for handle, value in handles.items() if isinstance(value, Pool))
    known = next((handle for handle, pool in pools if pool.kind == kind), None)
    return call.process.handle(Pool(kind)) if known is None else known


def _pool_handle(call: Call, kind: Kind = DEVICE) -> int:
    """Return the handle of the pool that is used for a kind."""
    used = call.process.used_pools.get(kind.name, 0)
    return used if isinstance(call.process.handles.get(used), Pool) else _default(call, kind)


def _allocate(call: Call, result: int, size: int, stream: int, pool: Pool) -> None:
    process = call.process
    address = 0
    if size and pool.kind.shared:
        address = process.shared_allocation(call.connection.channel, size, "allocation", pool.kind).address
    elif size:
        address = process.allocate(size, "allocation", pool.kind).address
    pool.most = max(pool.most, process.memory.used)
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
    """Return the work of cudaMemAllocNodeParams, and give it the address."""
    asked = call.structure(AllocationNodeParameters, parameters)
    if not asked.size:
        raise CudaError("InvalidValue", f"{call.name}: an allocation of 0 bytes")
    address = call.process.allocate(asked.size, "allocation", DEVICE).address
    call.process.graph_memory.add(address)
    call.put_structure(parameters, asked._replace(address=address))
    return _allocation(call.name, address, asked.size, asked.pool)


@row("cudaMallocAsync", "cuMemAllocAsync")
def malloc_async(call: Call, result: Pointer, size: Size, stream: Handle) -> None:
    """Allocate as work of a stream."""
    _allocate(call, result, size, stream, call.process.held(_pool_handle(call), Pool, "pool"))


@row("cudaMallocFromPoolAsync", "cuMemAllocFromPoolAsync")
def malloc_from_pool(call: Call, result: Pointer, size: Size, pool: Handle, stream: Handle) -> None:
    """Allocate from a pool as work of a stream."""
    _allocate(call, result, size, stream, call.process.held(pool, Pool, "pool"))


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
    call.put(result, "Q", _pool_handle(call))


@row("cudaDeviceSetMemPool", "cuDeviceSetMemPool")
def set_pool(call: Call, device: Int, pool: Handle) -> None:
    """Use a pool."""
    check_device(device)
    found = call.process.held(pool, Pool, "pool")
    call.process.used_pools[found.kind.name] = pool


@row("cudaMemGetDefaultMemPool", "cuMemGetDefaultMemPool")
def get_default_pool_of(call: Call, result: Pointer, location: Pointer, allocation: Int) -> None:
    """Give the first pool of a place and a type of allocations."""
    call.put(result, "Q", _default(call, _kind_at(call, location, allocation)))


@row("cudaMemGetMemPool", "cuMemGetMemPool")
def get_pool_of(call: Call, result: Pointer, location: Pointer, allocation: Int) -> None:
    """Give the pool that is used for a place and a type of allocations."""
    call.put(result, "Q", _pool_handle(call, _kind_at(call, location, allocation)))


@row("cudaMemSetMemPool", "cuMemSetMemPool")
def set_pool_of(call: Call, location: Pointer, allocation: Int, pool: Handle) -> None:
    """Use a pool for a place and a type of allocations. Raises CudaError for a pool of another kind."""
    wanted, found = _kind_at(call, location, allocation), call.process.held(pool, Pool, "pool")
    if found.kind != wanted:
        raise CudaError("InvalidValue", f"{call.name}: a pool of {found.kind.name} memory for {wanted.name}")
    call.process.used_pools[wanted.name] = pool


def _kind_at(call: Call, location: int, allocation: int) -> Kind:
    """Return the memory of a cudaMemLocation. Raises CudaError."""
    location_of(call, location)
    return _kind_of(allocation, *call.get(location, "i"))


@row("cudaMemPoolCreate", "cuMemPoolCreate")
def pool_create(call: Call, result: Pointer, properties: Pointer) -> None:
    """Make a pool, of cudaMemPoolProps."""
    asked = call.structure(PoolProperties, properties)
    kind = _kind_of(asked.kind, asked.location.kind)
    _default(call, kind)
    call.put(result, "Q", call.process.handle(Pool(kind)))


@row("cudaMemPoolDestroy", "cuMemPoolDestroy")
def pool_destroy(call: Call, pool: Handle) -> None:
    """Forget a pool."""
    call.process.drop(pool, Pool, "pool")


@row("cudaMemPoolSetAttribute", "cuMemPoolSetAttribute")
def pool_set_attribute(call: Call, pool: Handle, attribute: Int, value: Pointer) -> None:
    """Set an attribute."""
    layout = "i" if attribute <= 3 else "Q"
    found = call.process.held(pool, Pool, "pool")
    (wanted,) = call.get(value, layout)
    if attribute in _MOST:
        found.most = wanted
    found.attributes[attribute] = wanted


@row("cudaMemPoolGetAttribute", "cuMemPoolGetAttribute")
def pool_get_attribute(call: Call, pool: Handle, attribute: Int, value: Pointer) -> None:
    """Give an attribute."""
    layout = "i" if attribute <= 3 else "Q"
    found = call.process.held(pool, Pool, "pool")
    used = call.process.memory.used
    counted = used if attribute in _CURRENT else max(used, found.most)
    held = counted if attribute in _CURRENT | _MOST else found.attributes.get(attribute, 0)
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
    """Give the access of a place: reading and writing, but for the host none to memory of the device."""
    found = call.process.held(pool, Pool, "pool")
    call.put(result, "i", 3 if location_of(call, location) >= 0 or found.kind.shared else 0)


def location_of(call: Call, location: int) -> int:
    """Return the device of a cudaMemLocation; -1 for the host. Raises CudaError."""
    kind, number = call.structure(MemoryLocation, location)
    if kind == 1:
        check_device(number)
        return int(number)
    return -1
