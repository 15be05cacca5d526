"""What programs say about memory and streams for speed alone: kept, so that it can be asked for again.

Nothing depends on it here: memory of host and device is the same, and a stream has no caches.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..calls import Call, Handle, Int, Pointer, Size, Unsigned, row
from ..clients.client import Process
from ..cuda_structures import MemoryLocation, size_of
from ..error_codes import CudaError
from ..graphs import GraphNode
from ..memory_transfers import range_of
from ..streams import Touches

_READ_MOSTLY, _PREFERRED, _ACCESSED_BY, _LAST_PREFETCH = 1, 2, 3, 4  # of cudaMemRangeAttribute
_HOST, _NOWHERE = -1, -2  # cudaCpuDeviceId, cudaInvalidDeviceId
_DEVICE_KIND, _HOST_KIND = 1, 2  # of cudaMemLocationType; 0 is not a location
_PARTS = {  # of a location, by attributes -> what was said, and which part
    _PREFERRED: (_PREFERRED, "device"),
    _LAST_PREFETCH: (_LAST_PREFETCH, "device"),
    5: (_PREFERRED, "kind"),
    6: (_PREFERRED, "number"),
    7: (_LAST_PREFETCH, "kind"),
    8: (_LAST_PREFETCH, "number"),
}
_UNWRITTEN = 255
_STREAM_VALUE_BYTES = 64  # of cudaLaunchAttributeValue
_PRIORITY = 8  # of cudaLaunchAttributeID
_MOST_OF_GRAPHS = (1, 3)  # high watermarks of cudaGraphMemAttributeType: used and reserved


class Location(NamedTuple):
    """A cudaMemLocation: its type, and the number of a device or of a NUMA node."""

    kind: int = 0
    number: int = 0

    @property
    def device(self) -> int:
        """The device as attributes of one number have it."""
        return {0: _NOWHERE, _DEVICE_KIND: self.number}.get(self.kind, _HOST)


def _location(call: Call, words: int) -> Location:
    """Return where memory is to be: given as the number of a device, or as a cudaMemLocation by value."""
    kind = words & 0xFFFF_FFFF
    if call.of_runtime_13 or call.name.endswith("_v2"):
        return Location(kind, words >> 32)
    return Location(_HOST_KIND) if kind >> 31 else Location(_DEVICE_KIND, kind)


def _hints_at(process: Process, address: int, size: int) -> dict[int, Any]:
    """Return what was said about the allocation around bytes. Raises CudaError."""
    base, total = range_of(process, address)
    if address + size > base + total:
        raise CudaError("InvalidValue", f"{size} bytes at {address:#x} leave the allocation of {total} bytes")
    return process.hints.setdefault(base, {})


@row("cudaMemPrefetchAsync", "cuMemPrefetchAsync", "cuMemPrefetchAsync_v2", "cudaMemPrefetchAsync_v2")
def prefetch(call: Call, address: Pointer, size: Size, location: Size, fourth: Size) -> None:
    """Memory of host and device is the same: nothing moves."""
    _hints_at(call.process, address, size)[_LAST_PREFETCH] = _location(call, location)


class Batch(NamedTuple):
    """Stretches of memory: arrays of addresses and sizes, and how many."""

    addresses: Pointer
    sizes: Pointer
    number: Size


class Places(NamedTuple):
    """Where stretches go: arrays of locations and of the first stretch of each, and how many."""

    locations: Pointer
    firsts: Pointer
    number: Size


def _stretches(call: Call, batch: Batch) -> list[tuple[int, int]]:
    """Return addresses and sizes. Raises CudaError."""
    if not batch.number:
        raise CudaError("InvalidValue", f"{call.name}: no stretches of memory")
    layout = f"{batch.number}Q"
    found = list(zip(call.get(batch.addresses, layout), call.get(batch.sizes, layout), strict=True))
    for stretch in found:
        _hints_at(call.process, *stretch)
    return found


@row("cudaMemPrefetchBatchAsync", "cuMemPrefetchBatchAsync")
def prefetch_batch(call: Call, batch: Batch, places: Places, flags: Size, stream: Handle) -> None:
    """Note of each stretch where it goes: nothing moves."""
    call.stream(stream)
    firsts = call.get(places.firsts, f"{places.number}Q") if places.number else ()
    if not firsts or firsts[0] or list(firsts) != sorted(set(firsts)):
        raise CudaError(
            "InvalidValue", f"{call.name}: locations begin at stretches {list(firsts)}, not 0 and on"
        )
    for number, (address, size) in enumerate(_stretches(call, batch)):
        place = sum(first <= number for first in firsts) - 1
        location = call.structure(MemoryLocation, places.locations + size_of(MemoryLocation) * place)
        _hints_at(call.process, address, size)[_LAST_PREFETCH] = Location(*location)


@row("cudaMemDiscardBatchAsync", "cuMemDiscardBatchAsync")
def discard_batch(call: Call, batch: Batch, flags: Size, stream: Handle) -> None:
    """Say that nothing reads what memory has until it is written again."""
    stretches = _stretches(call, batch)

    def run(later: Call) -> Touches:
        for address, size in stretches:
            fresh = later.process.fresh_at(address, size)
            if fresh is not None:
                fresh[:] = _UNWRITTEN
        return Touches(writes=tuple((address, address + size) for address, size in stretches))

    call.process.submit(call, call.stream(stream), GraphNode(f"{call.name} of {batch.number}", run))


@row("cudaMemDiscardAndPrefetchBatchAsync", "cuMemDiscardAndPrefetchBatchAsync")
def discard_and_prefetch_batch(call: Call, batch: Batch, places: Places, flags: Size, stream: Handle) -> None:
    """Do both."""
    discard_batch(call, batch, flags, stream)
    prefetch_batch(call, batch, places, flags, stream)


@row("cudaMemAdvise", "cuMemAdvise", "cudaMemAdvise_v2", "cuMemAdvise_v2")
def advise(call: Call, address: Pointer, size: Size, advice: Int, location: Size) -> None:
    """Keep an advice: pairs of setting and taking back, of the attributes from 1 on."""
    if not 1 <= advice <= 6:
        raise CudaError("InvalidValue", f"{call.name}: advice {advice}")
    noted, attribute = _hints_at(call.process, address, size), (advice + 1) // 2
    if attribute == _ACCESSED_BY:
        others = [each for each in noted.get(attribute, ()) if each != _location(call, location)]
        noted[attribute] = [*others, _location(call, location)] if advice % 2 else others
    elif advice % 2 == 0:
        noted.pop(attribute, None)
    else:
        noted[attribute] = 1 if attribute == _READ_MOSTLY else _location(call, location)


def _range_attribute(call: Call, result: int, attribute: int, place: tuple[int, int]) -> None:
    noted = _hints_at(call.process, *place)
    size, attribute = attribute >> 32, attribute & 0xFFFF_FFFF
    if attribute == _READ_MOSTLY:
        call.put(result, "i", noted.get(attribute, 0))
    elif attribute == _ACCESSED_BY:
        devices = sorted((each.device for each in noted.get(attribute, ())), reverse=True)
        room = size // 4
        call.put(result, f"{room}i", *[*devices, *[_NOWHERE] * room][:room])
    elif attribute in _PARTS:
        said, part = _PARTS[attribute]
        call.put(result, "i", getattr(noted.get(said, Location()), part))
    else:
        raise CudaError("NotSupported", f"{call.name}: attribute {attribute}")


@row("cudaMemRangeGetAttribute", "cuMemRangeGetAttribute")
def range_attribute(
    call: Call, result: Pointer, size: Size, attribute: Unsigned, address: Pointer, count: Size
) -> None:
    """Give what was said about memory."""
    _range_attribute(call, result, size << 32 | attribute, (address, count))


@row("cudaMemRangeGetAttributes", "cuMemRangeGetAttributes")
def range_attributes(
    call: Call, results: Pointer, sizes: Pointer, attributes: Pointer, number: Size, address: Pointer
) -> None:
    """Give several attributes of memory."""
    places, bytes_ = call.get(results, f"{number}Q"), call.get(sizes, f"{number}Q")
    for result, size, attribute in zip(places, bytes_, call.get(attributes, f"{number}I"), strict=True):
        _range_attribute(call, result, size << 32 | attribute, (address, 1))


@row("cudaStreamAttachMemAsync", "cuStreamAttachMemAsync")
def attach(call: Call, stream: Handle, address: Pointer, size: Size, flags: Unsigned) -> None:
    """Do nothing: all streams see managed memory."""
    call.stream(stream)
    _hints_at(call.process, address, size)


@row("cudaCtxResetPersistingL2Cache", "cuCtxResetPersistingL2Cache")
def reset_persisting(call: Call) -> None:
    """There are no caches."""


@row("cudaStreamSetAttribute", "cuStreamSetAttribute")
def set_stream_attribute(call: Call, handle: Handle, attribute: Int, value: Pointer) -> None:
    """Keep an attribute of a stream."""
    stream = call.stream(handle)
    content = call.read(value, _STREAM_VALUE_BYTES)
    stream.attributes[attribute] = content
    if attribute == _PRIORITY:
        stream.priority = int.from_bytes(content[:4], "little", signed=True)


@row("cudaStreamGetAttribute", "cuStreamGetAttribute")
def get_stream_attribute(call: Call, handle: Handle, attribute: Int, value: Pointer) -> None:
    """Give an attribute of a stream, zero where none was set."""
    stream = call.stream(handle)
    usual = stream.priority.to_bytes(4, "little", signed=True) if attribute == _PRIORITY else b""
    call.write(value, stream.attributes.get(attribute, usual.ljust(_STREAM_VALUE_BYTES, b"\0")))


@row("cudaStreamCopyAttributes", "cuStreamCopyAttributes")
def copy_stream_attributes(call: Call, target: Handle, source: Handle) -> None:
    """Copy the attributes of a stream."""
    call.stream(target).attributes = dict(call.stream(source).attributes)


@row("cudaDeviceGraphMemTrim", "cuDeviceGraphMemTrim", "cudaDeviceFlushGPUDirectRDMAWrites")
def nothing_held(call: Call, device: Int) -> None:
    """Nothing is held back."""


@row("cudaDeviceGetGraphMemAttribute", "cuDeviceGetGraphMemAttribute")
def graph_memory(call: Call, device: Int, attribute: Int, result: Pointer) -> None:
    """Give the bytes that graphs have, which are the most that they have had."""
    process = call.process
    sizes = (process.memory.find(address) for address in process.graph_memory)
    call.put(result, "Q", sum(found.size for found in sizes if found is not None))


@row("cudaDeviceSetGraphMemAttribute", "cuDeviceSetGraphMemAttribute")
def reset_graph_memory(call: Call, device: Int, attribute: Int, value: Pointer) -> None:
    """Begin to count the most bytes anew: what graphs have, they keep."""
    if attribute not in _MOST_OF_GRAPHS or any(call.get(value, "Q")):
        raise CudaError("InvalidValue", f"{call.name}: attribute {attribute} cannot be set, or only to 0")
