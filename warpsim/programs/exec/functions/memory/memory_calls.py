"""Memory: of the device, of the host that both see, and of variables; what an address is."""

from __future__ import annotations

from .....machine.host.device import Symbol, symbol_of
from ...calls import Call, Extent, Int, Pointer, Size, Unsigned, row
from ...clients.client import Registered
from ...clients.client_memory import DEVICE, MANAGED, PINNED, Kind
from ...cuda_structures import PitchedPointer, PointerAttributes
from ...error_codes import CudaError
from ...memory_transfers import range_of
from ..registration import image_of

_PITCH_ALIGNMENT = 512
_HOST, _DEVICE, _MANAGED = 1, 2, 3  # of cudaMemoryType
_SYNCHRONOUS, _SYNCHRONOUS_NOTE = 6, -6  # an attribute of pointers; among what is said of an allocation
_READ_AND_WRITE = 3  # of CUDA_POINTER_ATTRIBUTE_ACCESS_FLAGS
_MAPPED = 2  # of the flags of registered memory
_WITH_FLAGS = ("cudaHostAlloc", "cuMemHostAlloc")
_HOST_FLAGS = 7  # portable, mapped, write-combined
_DRIVER_HOST, _DRIVER_DEVICE = 1, 2  # of CUmemorytype


# --- allocations ---------------------------------------------------------------------------------


def allocated(call: Call, result: int, size: int) -> int:
    """Allocate device memory, give its address, and return it."""
    address = call.process.allocate(size, "allocation", DEVICE).address
    call.put(result, "Q", address)
    return address


@row("cudaMalloc", "cuMemAlloc_v2")
def malloc(call: Call, result: Pointer, size: Size) -> None:
    """Allocate memory of the device."""
    if not size and call.name.startswith("cuda"):
        call.put(result, "Q", 0)
        return
    if not size:
        raise CudaError("InvalidValue", "an allocation of 0 bytes")
    allocated(call, result, size)


@row("cudaFree", "cuMemFree_v2")
def free(call: Call, address: Pointer) -> None:
    """Free memory of the device, when all streams have ended."""
    call.process.wait_for_all(call)
    call.connection.synchronise()
    if address:
        _check_kind(call, address, host=False)
        call.process.free(call.connection.channel, address)


def _check_kind(call: Call, address: int, *, host: bool) -> None:
    """Raise CudaError where an allocation is freed by the function for the other side's."""
    found = call.process.memory.kinds.get(address)
    if found is not None and (found == PINNED) != host:
        other = "cudaFreeHost frees that" if found == PINNED else "cudaFree frees that"
        raise CudaError(
            "InvalidValue", f"{address:#x} {call.process.where(address)}, {found.name} memory: {other}"
        )


def _allocate_shared(call: Call, result: int, size: int, what: str, kind: Kind) -> None:
    """Allocate memory that host and device see, and give its address."""
    found = call.process.shared_allocation(call.connection.channel, size, what, kind)
    call.put(result, "Q", found.address)


@row("cudaMallocManaged", "cuMemAllocManaged")
def malloc_managed(call: Call, result: Pointer, size: Size, flags: Unsigned) -> None:
    """Allocate memory that host and device see at the same address."""
    if not size:
        raise CudaError("InvalidValue", "an allocation of 0 bytes")
    address = call.process.shared_allocation(
        call.connection.channel, size, "managed allocation", MANAGED
    ).address
    call.put(result, "Q", address)


@row("cudaMallocHost", "cudaHostAlloc", "cuMemHostAlloc", "cuMemAllocHost_v2")
def malloc_host(call: Call, result: Pointer, size: Size, flags: Unsigned) -> None:
    """Allocate memory of the host that the device sees at the same address."""
    if call.name in _WITH_FLAGS and flags & ~_HOST_FLAGS:
        raise CudaError("InvalidValue", f"{call.name}: flags {flags:#x}")
    address = call.process.shared_allocation(call.connection.channel, size, "host allocation", PINNED).address
    call.put(result, "Q", address)


@row("cudaFreeHost", "cuMemFreeHost")
def free_host(call: Call, address: Pointer) -> None:
    """Free memory of the host."""
    if address:
        call.process.wait_for_all(call)
        _check_kind(call, address, host=True)
        call.process.free(call.connection.channel, address)


@row("cudaHostGetDevicePointer", "cuMemHostGetDevicePointer_v2")
def host_device_pointer(call: Call, result: Pointer, address: Pointer, flags: Unsigned) -> None:
    """Give the address of the device for memory of the host: the same, but of registered memory."""
    found = call.process.registered_at(address)
    if found is not None:
        base = found[0]
        call.put(result, "Q", call.process.map_registered(call.connection.channel, base) + address - base)
        return
    if call.process.memory.find(address) is None:
        raise CudaError("InvalidValue", f"{address:#x} {call.process.where(address)}")
    call.put(result, "Q", address)


@row("cudaHostGetFlags", "cuMemHostGetFlags")
def host_flags(call: Call, result: Pointer, address: Pointer) -> None:
    """Give the flags of memory of the host: mapped."""
    call.put(result, "I", 2)


@row("cudaHostRegister", "cuMemHostRegister_v2")
def host_register(call: Call, address: Pointer, size: Size, flags: Unsigned) -> None:
    """Note memory of the host; kernels reach it at the address that cudaHostGetDevicePointer gives."""
    if not address or not size:
        raise CudaError("InvalidValue", f"{size} bytes at {address:#x}")
    for byte in (address, address + size - 1):
        call.read(byte, 1)  # that the program has mapped them
    if call.process.registered_at(address) is not None:
        raise CudaError("HostMemoryAlreadyRegistered", f"{address:#x}")
    call.process.registered[address] = Registered(size, flags)
    if flags & _MAPPED:
        call.process.map_registered(call.connection.channel, address)


@row("cudaHostUnregister", "cuMemHostUnregister")
def host_unregister(call: Call, address: Pointer) -> None:
    """Forget memory of the host, when all streams have ended."""
    call.process.wait_for_all(call)
    try:
        call.process.unregister(call.connection.channel, address)
    except KeyError:
        inside = call.process.registered_at(address) is not None
        raise CudaError("InvalidValue" if inside else "HostMemoryNotRegistered", f"{address:#x}") from None


@row("cudaMallocPitch")
def malloc_pitch(call: Call, result: Pointer, pitch: Pointer, width: Size, height: Size) -> None:
    """Allocate rows that begin at multiples of 512 bytes."""
    row_bytes = -(-width // _PITCH_ALIGNMENT) * _PITCH_ALIGNMENT
    call.put(pitch, "Q", row_bytes)
    allocated(call, result, row_bytes * height)


@row("cuMemAllocPitch_v2")
def driver_malloc_pitch(
    call: Call, result: Pointer, pitch: Pointer, width: Size, height: Size, element: Unsigned
) -> None:
    """Allocate rows that begin at multiples of 512 bytes."""
    malloc_pitch(call, result, pitch, width, height)


@row("cudaMalloc3D")
def malloc_3d(call: Call, result: Pointer, extent: Extent) -> None:
    """Allocate layers of rows; give cudaPitchedPtr."""
    width, height, depth = extent
    pitch = -(-width // _PITCH_ALIGNMENT) * _PITCH_ALIGNMENT
    address = call.process.allocate(pitch * height * depth, "allocation").address
    call.put_structure(result, PitchedPointer(address, pitch, width, height))


@row("cudaMemGetInfo", "cuMemGetInfo_v2")
def mem_get_info(call: Call, free_bytes: Pointer, total: Pointer) -> None:
    """Give the free and all bytes of the device."""
    memory = call.process.memory
    call.put_some(free_bytes, "Q", memory.capacity - memory.used)
    call.put_some(total, "Q", memory.capacity)


@row("cuDeviceTotalMem_v2")
def device_total(call: Call, result: Pointer, device: Int) -> None:
    """Give all bytes of the device."""
    call.put(result, "Q", call.process.memory.capacity)


# --- variables of the program --------------------------------------------------------------------


def variable_of(call: Call, address: int) -> Symbol:
    """Return a variable by its address in the host program. Raises CudaError."""
    process = call.process
    found = process.modules.variables.get(address)
    if found is None:
        raise CudaError("InvalidSymbol", f"{call.name}: no variable is registered at {address:#x}")
    handle, name = found
    return symbol_of(process.device, image_of(call, handle).module, call.text(name))


@row("cudaGetSymbolAddress")
def symbol_address(call: Call, result: Pointer, symbol: Pointer) -> None:
    """Give the address of a variable on the device."""
    call.put(result, "Q", variable_of(call, symbol).address)


@row("cudaGetSymbolSize")
def symbol_size(call: Call, result: Pointer, symbol: Pointer) -> None:
    """Give the bytes of a variable."""
    call.put(result, "Q", variable_of(call, symbol).allocation.size)


# --- what an address is --------------------------------------------------------------------------


def _memory_type(call: Call, address: int) -> int:
    """Return cudaMemoryType of an address; 0 for memory that CUDA does not know."""
    process = call.process
    found = process.memory.find(address)
    if found is None:
        return _HOST if process.registered_at(address) else 0
    if found.name in process.memory.managed:
        return _MANAGED
    kind = process.memory.kinds.get(found.address, DEVICE)
    return {MANAGED.name: _MANAGED, PINNED.name: _HOST}.get(kind.name, _DEVICE)


@row("cudaPointerGetAttributes")
def pointer_attributes(call: Call, result: Pointer, address: Pointer) -> None:
    """Give cudaPointerAttributes: type, device, and the addresses on device and host."""
    kind = _memory_type(call, address)
    registered = call.process.registered_at(address)
    on_device = address if kind and call.process.on_device(address) else 0
    if registered is not None and registered[1].place is not None:
        on_device = registered[1].place + address - registered[0]
    on_host = address if kind in (_HOST, _MANAGED) else 0
    call.put_structure(result, PointerAttributes(kind, 0 if kind else -2, on_device, on_host))


@row("cuPointerGetAttribute")
def driver_pointer_attribute(call: Call, result: Pointer, attribute: Int, address: Pointer) -> None:
    """Give an attribute of an address."""
    layout, value = _pointer_attribute(call, attribute, address)
    call.put(result, layout, value)


def _pointer_attribute(call: Call, attribute: int, address: int) -> tuple[str, int]:
    process = call.process
    kind = _memory_type(call, address)
    if not kind:
        raise CudaError("InvalidValue")
    found = process.memory.find(address)
    base, size = (found.address, found.size) if found else (address, 0)
    values: dict[int, tuple[str, int]] = {
        1: ("Q", process.primary.handle),
        2: ("I", _DRIVER_HOST if kind == _HOST else _DRIVER_DEVICE),
        3: ("Q", address),
        4: ("Q", address),
        _SYNCHRONOUS: ("I", process.hints.get(base, {}).get(_SYNCHRONOUS_NOTE, 0)),
        7: ("Q", base),
        8: ("I", int(kind == _MANAGED)),
        9: ("i", 0),
        10: ("I", 0),  # no other process opens it
        11: ("Q", base),
        12: ("Q", size),
        13: ("I", 1),
        14: ("Q", 0),
        15: ("I", 0),  # no network card reads it
        16: ("I", _READ_AND_WRITE),
        17: ("Q", 0),
    }
    if attribute not in values:
        raise CudaError("NotSupported", f"{call.name}: attribute {attribute}")
    return values[attribute]


@row("cuPointerSetAttribute")
def set_pointer_attribute(call: Call, value: Pointer, attribute: Int, address: Pointer) -> None:
    """Keep whether copies of an allocation are synchronous, as all are here. Raises CudaError for others."""
    if attribute != _SYNCHRONOUS:
        raise CudaError("InvalidValue", f"{call.name}: attribute {attribute} cannot be set")
    base, _ = range_of(call.process, address)
    call.process.hints.setdefault(base, {})[_SYNCHRONOUS_NOTE] = int(any(call.get(value, "I")))


_WORDS = frozenset({2, 6, 8, 10, 13, 15, 16})  # attributes of 32 bits


@row("cuPointerGetAttributes")
def driver_pointer_attributes(
    call: Call, count: Unsigned, attributes: Pointer, results: Pointer, address: Pointer
) -> None:
    """Give several attributes of an address; 0 for memory that CUDA does not know."""
    numbers = call.get(attributes, f"{count}i")
    places = call.get(results, f"{count}Q")
    for number, place in zip(numbers, places, strict=True):
        try:
            layout, value = _pointer_attribute(call, number, address)
        except CudaError:
            layout, value = ("i", -2) if number == 9 else ("I" if number in _WORDS else "Q", 0)
        call.put(place, layout, value)


@row("cuMemGetAddressRange_v2")
def address_range(call: Call, base: Pointer, size: Pointer, address: Pointer) -> None:
    """Give the allocation around an address."""
    start, total = range_of(call.process, address)
    call.put_some(base, "Q", start)
    call.put_some(size, "Q", total)
