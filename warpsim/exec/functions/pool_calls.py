"""Pools: memory that is allocated and freed as work of a stream."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..calls import Call, Handle, Int, Pointer, Size, row
from ..client_memory import DEVICE
from ..streams import Touches
from .device_calls import check_device

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
    touches = Touches(writes=((address, address + size),))
    process.submit(call, call.stream(stream), f"{call.name} of {address:#x}", lambda later: touches)


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

    def run(later: Call) -> Touches:
        found = later.process.memory.find(address)
        size = found.size if found else 1
        later.process.free(later.connection.channel, address)
        return Touches(writes=((address, address + size),))

    call.process.submit(call, call.stream(stream), f"{call.name} of {address:#x}", run)


@row("cudaDeviceGetDefaultMemPool", "cudaDeviceGetMemPool", "cuDeviceGetDefaultMemPool", "cuDeviceGetMemPool")
def get_pool(call: Call, result: Pointer, device: Int) -> None:
    """Give the pool of the device."""
    check_device(device)
    call.put(result, "Q", _default(call))


@row("cudaDeviceSetMemPool", "cuDeviceSetMemPool")
def set_pool(call: Call, device: Int, pool: Handle) -> None:
    """Use a pool."""
    check_device(device)
    call.process.held(pool, Pool, "pool")


@row("cudaMemPoolCreate", "cuMemPoolCreate")
def pool_create(call: Call, result: Pointer, properties: Pointer) -> None:
    """Make a pool."""
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
