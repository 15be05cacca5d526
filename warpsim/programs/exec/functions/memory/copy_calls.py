"""Copies and fills of memory and of variables, as work of streams."""

from __future__ import annotations

from typing import NamedTuple

from ...calls import AsyncStream, Call, Extent, Handle, Int, Pitched, Pointer, Size, Unsigned, row
from ...clients.client import Process
from ...cuda_structures import (
    DriverCopy2D,
    DriverCopy3D,
    DriverSide2D,
    DriverSide3D,
    RuntimeCopy3D,
    RuntimeSide,
)
from ...error_codes import CudaError
from ...graphs import GraphNode, NodeKind
from ...memory_transfers import Box, Plane, Rows, check_direction, copy, copy_box, fill_rows
from .memory_calls import variable_of

_DRIVER_HOST, _DRIVER_ARRAY = 1, 3  # of CUmemorytype


# --- copies --------------------------------------------------------------------------------------


def _enqueue(call: Call, stream: int, work: GraphNode) -> None:
    """Do work of a stream; functions that are not named Async wait for it."""
    process = call.process
    found = call.stream(stream)
    process.submit(call, found, work)
    if found.handle not in process.captures and _pageable(process, work):
        process.do_until(
            call, found.clock
        )  # such a copy has read or written the host's memory when it returns
    if "Async" not in call.name:
        process.wait(call, found.clock)
        call.connection.synchronise()


def _pageable(process: Process, work: GraphNode) -> bool:
    """Return whether work copies from or to memory of the host that is not the device's, too."""
    box = work.fields
    return isinstance(box, Box) and not all(
        process.on_device(plane.address) for plane in (box.target, box.source)
    )


def _enqueue_copy(call: Call, target: int, source: int, size: int, stream: int) -> None:
    """Copy as work of a stream."""
    _enqueue(call, stream, copy_work(call.name, target, source, size))


def copy_work(name: str, target: int, source: int, size: int) -> GraphNode:
    """Return the work of a copy of bytes."""
    return GraphNode(
        f"{name}({target:#x}, {source:#x}, {size})",
        lambda later: copy(later, target, source, size),
        kind=NodeKind.COPY,
        fields=Box(target=Plane(address=target), source=Plane(address=source), sizes=(size, 1, 1)),
    )


@row("cudaMemcpy", "cudaMemcpyAsync")
def memcpy(call: Call, target: Pointer, source: Pointer, size: Size, kind: Int, stream: AsyncStream) -> None:
    """Copy bytes."""
    if size:
        check_direction(call.process, target, source, kind)
    _enqueue_copy(call, target, source, size, stream)


@row(
    *("cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2", "cuMemcpyDtoD_v2", "cuMemcpy"),
    *("cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2", "cuMemcpyAsync"),
)
def driver_memcpy(call: Call, target: Pointer, source: Pointer, size: Size, stream: AsyncStream) -> None:
    """Copy bytes."""
    _enqueue_copy(call, target, source, size, stream)


class PeerCopy(NamedTuple):
    """The parameters of functions that copy between devices, or contexts of the driver."""

    target: Pointer
    to: Handle
    source: Pointer
    of: Handle
    size: Size


@row("cudaMemcpyPeer", "cudaMemcpyPeerAsync", "cuMemcpyPeer", "cuMemcpyPeerAsync")
def memcpy_peer(call: Call, asked: PeerCopy, stream: AsyncStream) -> None:
    """Copy bytes; there is one device."""
    _enqueue_copy(call, asked.target, asked.source, asked.size, stream)


def _enqueue_box(call: Call, target: Plane, source: Plane, sizes: tuple[int, int, int], stream: int) -> None:
    """Copy a box as work of a stream."""
    _enqueue(call, stream, box_work(call.name, Box(target=target, source=source, sizes=sizes)))


def box_work(name: str, box: Box) -> GraphNode:
    """Return the work of a copy of a box."""
    return GraphNode(
        name,
        lambda later: copy_box(later, box.target, box.source, box.sizes),
        kind=NodeKind.COPY,
        fields=box,
    )


class RowCopy(NamedTuple):
    """The parameters of cudaMemcpy2D, and of cudaMemcpy2DAsync."""

    target: Pointer
    to_pitch: Size
    source: Pointer
    of_pitch: Size
    width: Size
    height: Size
    kind: Int


@row("cudaMemcpy2D", "cudaMemcpy2DAsync")
def memcpy_2d(call: Call, asked: RowCopy, stream: AsyncStream) -> None:
    """Copy rows."""
    check_direction(call.process, asked.target, asked.source, asked.kind)
    pitches = asked.to_pitch, asked.of_pitch
    if asked.width > min(pitches):
        raise CudaError("InvalidPitchValue", f"rows of {asked.width} bytes, pitches {pitches}")
    target = Plane(address=asked.target, pitch=asked.to_pitch)
    source = Plane(address=asked.source, pitch=asked.of_pitch)
    _enqueue_box(call, target, source, (asked.width, asked.height, 1), stream)


@row("cudaMemcpy3D", "cudaMemcpy3DAsync")
def memcpy_3d(call: Call, parameters: Pointer, stream: AsyncStream) -> None:
    """Copy layers of rows, as cudaMemcpy3DParms says, between memory that is not an array."""
    _enqueue(call, stream, box_work(call.name, box_at(call, parameters)))


def box_at(call: Call, parameters: int) -> Box:
    """Return what cudaMemcpy3DParms says. Raises CudaError for arrays."""
    copy = call.structure(RuntimeCopy3D, parameters)
    source, target = (_runtime_plane(call, side) for side in (copy.source, copy.target))
    return Box(target=target, source=source, sizes=copy.sizes)


def _runtime_plane(call: Call, side: RuntimeSide) -> Plane:
    if side.array:
        raise CudaError("NotSupported", f"{call.name}: arrays of textures are not there")
    return _plane(side.memory.address, side.place, side.memory.pitch, side.memory.rows)


def _plane(base: int, place: tuple[int, int, int], pitch: int, rows: int) -> Plane:
    """Return where a box begins, at x bytes, y rows and z layers of so many rows."""
    x, y, z = place
    return Plane(address=base + x + y * pitch + z * pitch * rows, pitch=pitch, slice=pitch * rows)


@row("cuMemcpy2D_v2", "cuMemcpy2DUnaligned_v2", "cuMemcpy2DAsync_v2")
def driver_memcpy_2d(call: Call, parameters: Pointer, stream: AsyncStream) -> None:
    """Copy rows, as CUDA_MEMCPY2D says."""
    copy = call.structure(DriverCopy2D, parameters)
    source, target = (
        _plane(_driver_base(call, side), (side.x, side.y, 0), side.pitch, 0)
        for side in (copy.source, copy.target)
    )
    _enqueue_box(call, target, source, (copy.width, copy.height, 1), stream)


@row("cuMemcpy3D_v2", "cuMemcpy3DAsync_v2")
def driver_memcpy_3d(call: Call, parameters: Pointer, stream: AsyncStream) -> None:
    """Copy layers of rows, as CUDA_MEMCPY3D says."""
    _enqueue(call, stream, box_work(call.name, driver_box_at(call, parameters)))


def driver_box_at(call: Call, parameters: int) -> Box:
    """Return what CUDA_MEMCPY3D says. Raises CudaError for arrays."""
    copy = call.structure(DriverCopy3D, parameters)
    source, target = (
        _plane(_driver_base(call, side), side.place, side.pitch, side.rows)
        for side in (copy.source, copy.target)
    )
    return Box(target=target, source=source, sizes=copy.sizes)


def _driver_base(call: Call, side: DriverSide2D | DriverSide3D) -> int:
    """Return the address of a side of a copy. Raises CudaError for arrays."""
    if side.array or side.kind == _DRIVER_ARRAY:
        raise CudaError("NotSupported", f"{call.name}: arrays of textures are not there")
    return side.host if side.kind == _DRIVER_HOST else side.device


# --- fills ---------------------------------------------------------------------------------------


def _enqueue_fill(call: Call, target: int, pattern: bytes, count: int, stream: int) -> None:
    rows = Rows(target=Plane(address=target), pattern=pattern, count=count)
    _enqueue(call, stream, fill_work(f"{call.name}({target:#x}, {len(pattern) * count})", rows))


def fill_work(label: str, asked: Rows) -> GraphNode:
    """Return the work of a fill of rows."""
    return GraphNode(label, lambda later: fill_rows(later, asked), kind=NodeKind.FILL, fields=asked)


@row("cudaMemset", "cudaMemsetAsync")
def memset(call: Call, target: Pointer, value: Int, size: Size, stream: AsyncStream) -> None:
    """Fill bytes."""
    _enqueue_fill(call, target, bytes([value & 255]), size, stream)


_WIDTHS = {"D8": 1, "D16": 2, "D32": 4}  # cuMemsetD2D32 ends with D32, too


def _pattern(call: Call, value: int) -> bytes:
    width = next(
        size for name, size in _WIDTHS.items() if f"{name}_v2" in call.name or f"{name}Async" in call.name
    )
    return (value & (1 << 8 * width) - 1).to_bytes(width, "little")


def _check_aligned(call: Call, *words: int) -> None:
    """Raise CudaError for an address or a pitch that is not a multiple of an element's bytes."""
    width = len(_pattern(call, 0))
    if any(word % width for word in words):
        shown = ", ".join(f"{word:#x}" for word in words)
        raise CudaError("InvalidValue", f"{call.name}: {shown}: not a multiple of {width}")


@row(
    *("cuMemsetD8_v2", "cuMemsetD16_v2", "cuMemsetD32_v2"),
    *("cuMemsetD8Async", "cuMemsetD16Async", "cuMemsetD32Async"),
)
def driver_memset(call: Call, target: Pointer, value: Unsigned, count: Size, stream: AsyncStream) -> None:
    """Fill elements."""
    _check_aligned(call, target)
    _enqueue_fill(call, target, _pattern(call, value), count, stream)


class RowsOfElements(NamedTuple):
    """The parameters of cuMemsetD2D32 and its like."""

    target: Pointer
    pitch: Size
    value: Unsigned
    width: Size
    height: Size


@row(
    *("cuMemsetD2D8_v2", "cuMemsetD2D16_v2", "cuMemsetD2D32_v2"),
    *("cuMemsetD2D8Async", "cuMemsetD2D16Async", "cuMemsetD2D32Async"),
)
def driver_memset_2d(call: Call, asked: RowsOfElements, stream: AsyncStream) -> None:
    """Fill rows of elements."""
    _check_aligned(call, asked.target, asked.pitch)
    rows = Rows(
        target=Plane(address=asked.target, pitch=asked.pitch),
        pattern=_pattern(call, asked.value),
        count=asked.width,
        rows=asked.height,
    )
    _enqueue(call, stream, fill_work(call.name, rows))


class RowFill(NamedTuple):
    """The parameters of cudaMemset2D, and of cudaMemset2DAsync."""

    target: Pointer
    pitch: Size
    value: Int
    width: Size
    height: Size


@row("cudaMemset2D", "cudaMemset2DAsync")
def memset_2d(call: Call, asked: RowFill, stream: AsyncStream) -> None:
    """Fill rows."""
    rows = Rows(
        target=Plane(address=asked.target, pitch=asked.pitch),
        pattern=bytes([asked.value & 255]),
        count=asked.width,
        rows=asked.height,
    )
    _enqueue(call, stream, fill_work(call.name, rows))


@row("cudaMemset3D", "cudaMemset3DAsync")
def memset_3d(call: Call, target: Pitched, value: Int, extent: Extent, stream: AsyncStream) -> None:
    """Fill layers of rows."""
    address, pitch, _, rows = target
    asked = Rows(
        target=Plane(address=address, pitch=pitch, slice=pitch * rows),
        pattern=bytes([value & 255]),
        count=extent[0],
        rows=extent[1],
        layers=extent[2],
    )
    _enqueue(call, stream, fill_work(call.name, asked))


# --- variables of the program --------------------------------------------------------------------


def symbol_place(call: Call, symbol: int, size: int, offset: int) -> int:
    """Return the address of a part of a variable. Raises CudaError."""
    variable = variable_of(call, symbol)
    if offset + size > variable.allocation.size:
        raise CudaError(
            "InvalidValue",
            f"{call.name}: bytes {offset} to {offset + size} of {variable.name}, which has "
            f"{variable.allocation.size}",
        )
    return variable.address + offset


class SymbolCopy(NamedTuple):
    """The parameters of cudaMemcpyToSymbol; cudaMemcpyFromSymbol has the variable second."""

    target: Pointer
    source: Pointer
    size: Size
    offset: Size
    kind: Int


@row("cudaMemcpyToSymbol", "cudaMemcpyToSymbolAsync")
def memcpy_to_symbol(call: Call, asked: SymbolCopy, stream: AsyncStream) -> None:
    """Copy bytes to a variable."""
    target = symbol_place(call, asked.target, asked.size, asked.offset)
    _enqueue_copy(call, target, asked.source, asked.size, stream)


@row("cudaMemcpyFromSymbol", "cudaMemcpyFromSymbolAsync")
def memcpy_from_symbol(call: Call, asked: SymbolCopy, stream: AsyncStream) -> None:
    """Copy bytes of a variable."""
    source = symbol_place(call, asked.source, asked.size, asked.offset)
    _enqueue_copy(call, asked.target, source, asked.size, stream)
