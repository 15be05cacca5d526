"""Structures of CUDA: a class each, whose annotations are its fields, laid out as C lays them out on x86-64.

Fields with a default have no effect here; they are written as the default.
Source: driver_types.h and cuda.h of CUDA 13.0.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple, TypeVar

Word = int  # 64 bits: a size, an address, a handle
Int = int  # 32 bits
Unsigned = int
Dimensions3 = tuple[int, int, int]  # dim3, or three sizes in a row
Extent = tuple[int, int, int]  # cudaExtent, cudaPos
AttributeValue = bytes  # cudaLaunchAttributeValue
Pool = bytes  # cudaMemPoolProps
ATTRIBUTE_BYTES = 64
POOL_BYTES = 88
_CODES = {
    "Word": "Q",
    "Int": "i",
    "Unsigned": "I",
    "Dimensions3": "3I",
    "Extent": "3Q",
    "AttributeValue": f"0Q{ATTRIBUTE_BYTES}s",
    "Pool": f"0Q{POOL_BYTES}s",
}
Structure = TypeVar("Structure", bound=NamedTuple)


@cache
def layout(kind: type[tuple[Any, ...]]) -> str:
    """Return the format of a structure, as struct names it, with the alignment of the machine."""
    codes = (_CODES.get(field) or layout(globals()[field])[1:] for field in _fields(kind))
    return "@" + "".join(codes)


def size_of(kind: type[tuple[Any, ...]]) -> int:
    """Return the bytes from one structure of an array to the next."""
    return struct.calcsize(layout(kind) + ("0Q" if "Q" in layout(kind) else "0I"))


def unpack(kind: type[Structure], content: bytes) -> Structure:
    """Return a structure from its bytes, from which those behind its last field may be left out."""
    form = layout(kind)
    value: Structure = _structure(kind, iter(struct.unpack_from(form, content)))
    return value


def numbers(value: tuple[Any, ...]) -> Iterator[Any]:
    """Yield the fields of a structure as ``layout`` has them."""
    for each in value:
        if isinstance(each, tuple):
            yield from numbers(each)
        else:
            yield each


def _fields(kind: type[tuple[Any, ...]]) -> list[str]:
    return [str(field.__forward_arg__) for field in kind.__annotations__.values()]


def _structure(kind: type[Any], flat: Iterator[Any]) -> Any:
    values = []
    for field in _fields(kind):
        if field in ("Dimensions3", "Extent"):
            values.append((next(flat), next(flat), next(flat)))
        else:
            values.append(next(flat) if field in _CODES else _structure(globals()[field], flat))
    return kind(*values)


# --- launches --------------------------------------------------------------------------------------


class RuntimeLaunchConfig(NamedTuple):
    """cudaLaunchConfig_t."""

    grid: Dimensions3
    block: Dimensions3
    shared: Word
    stream: Word
    attributes: Word
    attribute_count: Unsigned


class DriverLaunchConfig(NamedTuple):
    """CUlaunchConfig."""

    grid: Dimensions3
    block: Dimensions3
    shared: Unsigned
    stream: Word
    attributes: Word
    attribute_count: Unsigned


class LaunchAttribute(NamedTuple):
    """cudaLaunchAttribute."""

    number: Int
    value: AttributeValue


class FunctionAttributes(NamedTuple):
    """cudaFuncAttributes, of which nothing behind the ten is written."""

    shared_bytes: Word
    constant_bytes: Word
    local_bytes: Word
    most_threads: Int
    registers: Int
    ptx_version: Int
    binary_version: Int
    cache_mode: Int
    most_dynamic_shared: Int
    carveout: Int


# --- copies and memory -----------------------------------------------------------------------------


class PitchedPointer(NamedTuple):
    """cudaPitchedPtr: bytes from row to row, bytes of a row, rows."""

    address: Word
    pitch: Word
    width: Word
    rows: Word


class RuntimeSide(NamedTuple):
    """A side of cudaMemcpy3DParms: an array or memory, and a place in it."""

    array: Word
    place: Extent
    memory: PitchedPointer


class RuntimeCopy3D(NamedTuple):
    """cudaMemcpy3DParms."""

    source: RuntimeSide
    target: RuntimeSide
    sizes: Extent
    kind: Int


class DriverSide2D(NamedTuple):
    """A side of CUDA_MEMCPY2D: its place in bytes and rows, and its memory by type."""

    x: Word
    y: Word
    kind: Unsigned
    host: Word
    device: Word
    array: Word
    pitch: Word


class DriverCopy2D(NamedTuple):
    """CUDA_MEMCPY2D."""

    source: DriverSide2D
    target: DriverSide2D
    width: Word
    height: Word


class DriverSide3D(NamedTuple):
    """A side of CUDA_MEMCPY3D: its place in bytes, rows and layers, and its memory by type."""

    place: Extent
    level: Word
    kind: Unsigned
    host: Word
    device: Word
    array: Word
    reserved: Word
    pitch: Word
    rows: Word


class DriverCopy3D(NamedTuple):
    """CUDA_MEMCPY3D."""

    source: DriverSide3D
    target: DriverSide3D
    sizes: Extent


class FillParameters(NamedTuple):
    """cudaMemsetParams."""

    target: Word
    pitch: Word
    value: Unsigned
    element_bytes: Unsigned
    width: Word
    height: Word


class MemoryLocation(NamedTuple):
    """cudaMemLocation, CUmemLocation."""

    kind: Int
    number: Int


class AllocationProperties(NamedTuple):
    """CUmemAllocationProp."""

    kind: Int
    handles: Int
    location: MemoryLocation
    metadata: Word = 0
    flags: Word = 0


class PoolProperties(NamedTuple):
    """The beginning of cudaMemPoolProps."""

    kind: Int
    handles: Int
    location: MemoryLocation


class AccessDescription(NamedTuple):
    """CUmemAccessDesc."""

    location: MemoryLocation
    flags: Int


class PointerAttributes(NamedTuple):
    """cudaPointerAttributes."""

    kind: Int
    device: Int
    on_device: Word
    on_host: Word


# --- graphs ----------------------------------------------------------------------------------------


class KernelNodeParameters(NamedTuple):
    """cudaKernelNodeParams, which CUDA_KERNEL_NODE_PARAMS begins with."""

    function: Word
    grid: Dimensions3
    block: Dimensions3
    shared: Unsigned
    arguments: Word
    extra: Word = 0


class DriverKernelNodeParameters(NamedTuple):
    """CUDA_KERNEL_NODE_PARAMS_v2."""

    runtime: KernelNodeParameters
    kernel: Word = 0
    context: Word = 0


class HostNodeParameters(NamedTuple):
    """cudaHostNodeParams."""

    function: Word
    data: Word


class AllocationNodeParameters(NamedTuple):
    """cudaMemAllocNodeParams."""

    pool: Pool
    accesses: Word
    access_count: Word
    size: Word
    address: Word


class ConditionalNodeParameters(NamedTuple):
    """The beginning of cudaConditionalNodeParams."""

    handle: Word
    kind: Int
    size: Unsigned


class InstantiateParameters(NamedTuple):
    """cudaGraphInstantiateParams."""

    flags: Word
    stream: Word
    error_node: Word
    result: Int


class UpdateResult(NamedTuple):
    """cudaGraphExecUpdateResultInfo."""

    result: Int
    error_node: Word = 0
    error_from_node: Word = 0


# --- images ----------------------------------------------------------------------------------------


class FatbinaryWrapper(NamedTuple):
    """What a host object gives of its device code: __fatBinC_Wrapper_t of fatbinary_section.h."""

    magic: Unsigned
    version: Unsigned
    data: Word
    objects: Word
