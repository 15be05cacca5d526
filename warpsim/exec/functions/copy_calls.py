"""Copies and fills of memory and of variables, as work of streams."""

from __future__ import annotations

from typing import NamedTuple

from ..calls import Call, Extent, Handle, Int, Pitched, Pointer, Size, Unsigned, row
from ..error_codes import CudaError
from ..memory_transfers import Plane, check_direction, copy, copy_box, fill
from ..streams import Touches
from .memory_calls import variable_of

_DRIVER_HOST = 1  # of CUmemorytype


# --- copies --------------------------------------------------------------------------------------


def _copied(call: Call, target: int, source: int, size: int, stream: int, *, wait: bool) -> None:
    """Copy as work of a stream; ``wait`` for it."""
    process = call.process
    found = call.stream(stream)
    label = f"{call.name}({target:#x}, {source:#x}, {size})"
    process.submit(call, found, label, lambda later: copy(later, target, source, size))
    if wait:
        process.order.wait(found.clock)
        call.connection.synchronise()


@row("cudaMemcpy")
def memcpy(call: Call, target: Pointer, source: Pointer, size: Size, kind: Int) -> None:
    """Copy bytes."""
    if size:
        check_direction(call.process, target, source, kind)
    _copied(call, target, source, size, 0, wait=True)


@row("cudaMemcpyAsync")
def memcpy_async(call: Call, target: Pointer, source: Pointer, size: Size, kind: Int, stream: Handle) -> None:
    """Copy bytes as work of a stream."""
    if size:
        check_direction(call.process, target, source, kind)
    _copied(call, target, source, size, stream, wait=False)


@row("cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2", "cuMemcpyDtoD_v2", "cuMemcpy")
def driver_memcpy(call: Call, target: Pointer, source: Pointer, size: Size) -> None:
    """Copy bytes."""
    _copied(call, target, source, size, 0, wait=True)


@row("cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2", "cuMemcpyAsync")
def driver_memcpy_async(call: Call, target: Pointer, source: Pointer, size: Size, stream: Handle) -> None:
    """Copy bytes as work of a stream."""
    _copied(call, target, source, size, stream, wait=False)


@row("cudaMemcpyPeer")
def memcpy_peer(call: Call, target: Pointer, to: Int, source: Pointer, of: Int, size: Size) -> None:
    """Copy bytes; there is one device."""
    _copied(call, target, source, size, 0, wait=True)


class PeerCopy(NamedTuple):
    """The parameters of cudaMemcpyPeerAsync."""

    target: Pointer
    to: Int
    source: Pointer
    of: Int
    size: Size
    stream: Handle


@row("cudaMemcpyPeerAsync")
def memcpy_peer_async(call: Call, asked: PeerCopy) -> None:
    """Copy bytes; there is one device."""
    _copied(call, asked.target, asked.source, asked.size, asked.stream, wait=False)


def _boxed(
    call: Call, planes: tuple[Plane, Plane], sizes: tuple[int, int, int], stream: int, *, wait: bool
) -> None:
    """Copy a box; ``planes`` are target and source."""
    process = call.process
    found = call.stream(stream)
    process.submit(call, found, call.name, lambda later: copy_box(later, *planes, sizes))
    if wait:
        process.order.wait(found.clock)
        call.connection.synchronise()


class RowCopy(NamedTuple):
    """The parameters of cudaMemcpy2D; cudaMemcpy2DAsync has a stream behind them."""

    target: Pointer
    to_pitch: Size
    source: Pointer
    of_pitch: Size
    width: Size
    height: Size
    kind: Int


def _copy_rows(call: Call, asked: RowCopy, stream: int, *, wait: bool) -> None:
    check_direction(call.process, asked.target, asked.source, asked.kind)
    pitches = asked.to_pitch, asked.of_pitch
    if asked.width > min(pitches):
        raise CudaError("InvalidPitchValue", f"rows of {asked.width} bytes, pitches {pitches}")
    target = Plane(address=asked.target, pitch=asked.to_pitch)
    source = Plane(address=asked.source, pitch=asked.of_pitch)
    _boxed(call, (target, source), (asked.width, asked.height, 1), stream, wait=wait)


@row("cudaMemcpy2D")
def memcpy_2d(call: Call, asked: RowCopy) -> None:
    """Copy rows."""
    _copy_rows(call, asked, 0, wait=True)


@row("cudaMemcpy2DAsync")
def memcpy_2d_async(call: Call, asked: RowCopy, stream: Handle) -> None:
    """Copy rows as work of a stream."""
    _copy_rows(call, asked, stream, wait=False)


def _copy_3d(call: Call, parameters: int, stream: int, *, wait: bool) -> None:
    """Copy what cudaMemcpy3DParms says, between memory that is no array."""
    words = call.get(parameters, "20Q")
    from_array, (from_x, from_y, from_z), source = words[0], words[1:4], words[4:8]
    to_array, (to_x, to_y, to_z), target = words[8], words[9:12], words[12:16]
    if from_array or to_array:
        raise CudaError("NotSupported", f"{call.name}: arrays of textures are not there")
    planes = [
        Plane(address=base + x + y * pitch + z * pitch * rows, pitch=pitch, slice=pitch * rows)
        for (base, pitch, _, rows), x, y, z in (
            (target, to_x, to_y, to_z),
            (source, from_x, from_y, from_z),
        )
    ]
    _boxed(call, (planes[0], planes[1]), (words[16], words[17], words[18]), stream, wait=wait)


@row("cudaMemcpy3D")
def memcpy_3d(call: Call, parameters: Pointer) -> None:
    """Copy layers of rows."""
    _copy_3d(call, parameters, 0, wait=True)


@row("cudaMemcpy3DAsync")
def memcpy_3d_async(call: Call, parameters: Pointer, stream: Handle) -> None:
    """Copy layers of rows as work of a stream."""
    _copy_3d(call, parameters, stream, wait=False)


def _driver_copy(call: Call, parameters: int, stream: int, *, deep: bool, wait: bool) -> None:
    """Copy what CUDA_MEMCPY2D or CUDA_MEMCPY3D says."""
    planes = list[Plane]()
    place = parameters
    for _ in range(2):
        if deep:
            x, y, z, _, kind, host, device, array, _, pitch, rows = call.get(place, "4QI4xQQQQQQ")
            place += 88
        else:
            x, y, kind, host, device, array, pitch = call.get(place, "2QI4x4Q")
            z, rows = 0, 0
            place += 56
        if array or kind == 3:
            raise CudaError("NotSupported", f"{call.name}: arrays of textures are not there")
        base = host if kind == _DRIVER_HOST else device
        planes.append(Plane(address=base + x + y * pitch + z * pitch * rows, pitch=pitch, slice=pitch * rows))
    width, height = call.get(place, "2Q")
    depth = call.get(place + 16, "Q")[0] if deep else 1
    _boxed(call, (planes[1], planes[0]), (width, height, depth), stream, wait=wait)


@row("cuMemcpy2D_v2", "cuMemcpy2DUnaligned_v2")
def driver_memcpy_2d(call: Call, parameters: Pointer) -> None:
    """Copy rows."""
    _driver_copy(call, parameters, 0, deep=False, wait=True)


@row("cuMemcpy2DAsync_v2")
def driver_memcpy_2d_async(call: Call, parameters: Pointer, stream: Handle) -> None:
    """Copy rows as work of a stream."""
    _driver_copy(call, parameters, stream, deep=False, wait=False)


@row("cuMemcpy3D_v2")
def driver_memcpy_3d(call: Call, parameters: Pointer) -> None:
    """Copy layers of rows."""
    _driver_copy(call, parameters, 0, deep=True, wait=True)


@row("cuMemcpy3DAsync_v2")
def driver_memcpy_3d_async(call: Call, parameters: Pointer, stream: Handle) -> None:
    """Copy layers of rows as work of a stream."""
    _driver_copy(call, parameters, stream, deep=True, wait=False)


# --- fills ---------------------------------------------------------------------------------------


def _filled(call: Call, target: int, pattern: bytes, count: int, stream: int, *, wait: bool) -> None:
    process = call.process
    found = call.stream(stream)
    label = f"{call.name}({target:#x}, {len(pattern) * count})"
    process.submit(call, found, label, lambda later: fill(later, target, pattern, count))
    if wait:
        process.order.wait(found.clock)


@row("cudaMemset")
def memset(call: Call, target: Pointer, value: Int, size: Size) -> None:
    """Fill bytes."""
    _filled(call, target, bytes([value & 255]), size, 0, wait=True)


@row("cudaMemsetAsync")
def memset_async(call: Call, target: Pointer, value: Int, size: Size, stream: Handle) -> None:
    """Fill bytes as work of a stream."""
    _filled(call, target, bytes([value & 255]), size, stream, wait=False)


_WIDTHS = {"D8": 1, "D16": 2, "D32": 4}


def _pattern(call: Call, value: int) -> bytes:
    width = next(
        size for name, size in _WIDTHS.items() if f"{name}_v2" in call.name or f"{name}Async" in call.name
    )
    return (value & (1 << 8 * width) - 1).to_bytes(width, "little")


@row("cuMemsetD8_v2", "cuMemsetD16_v2", "cuMemsetD32_v2")
def driver_memset(call: Call, target: Pointer, value: Unsigned, count: Size) -> None:
    """Fill elements."""
    _filled(call, target, _pattern(call, value), count, 0, wait=True)


@row("cuMemsetD8Async", "cuMemsetD16Async", "cuMemsetD32Async")
def driver_memset_async(call: Call, target: Pointer, value: Unsigned, count: Size, stream: Handle) -> None:
    """Fill elements as work of a stream."""
    _filled(call, target, _pattern(call, value), count, stream, wait=False)


def _fill_rows(call: Call, target: tuple[int, int], value: int, sizes: tuple[int, int], stream: int) -> None:
    """Fill rows; ``target`` is address and pitch, ``sizes`` bytes of a row, and rows."""
    process = call.process
    (address, pitch), (width, rows) = target, sizes

    def run(later: Call) -> Touches:
        parts = [fill(later, address + line * pitch, bytes([value & 255]), width) for line in range(rows)]
        return Touches(writes=tuple(stretch for part in parts for stretch in part.writes))

    process.submit(call, call.stream(stream), call.name, run)


@row("cudaMemset2D")
def memset_2d(call: Call, target: Pointer, pitch: Size, value: Int, width: Size, height: Size) -> None:
    """Fill rows."""
    _fill_rows(call, (target, pitch), value, (width, height), 0)


class RowFill(NamedTuple):
    """The parameters of cudaMemset2DAsync."""

    target: Pointer
    pitch: Size
    value: Int
    width: Size
    height: Size
    stream: Handle


@row("cudaMemset2DAsync")
def memset_2d_async(call: Call, asked: RowFill) -> None:
    """Fill rows as work of a stream."""
    target = asked.target, asked.pitch
    _fill_rows(call, target, asked.value, (asked.width, asked.height), asked.stream)


@row("cudaMemset3D")
def memset_3d(call: Call, target: Pitched, value: Int, extent: Extent) -> None:
    """Fill layers of rows."""
    address, pitch, _, rows = target
    for layer in range(extent[2]):
        _fill_rows(call, (address + layer * pitch * rows, pitch), value, extent[:2], 0)


# --- variables of the program --------------------------------------------------------------------


def _place(call: Call, symbol: int, size: int, offset: int) -> int:
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


def _to_symbol(call: Call, asked: SymbolCopy, stream: int, *, wait: bool) -> None:
    target = _place(call, asked.target, asked.size, asked.offset)
    _copied(call, target, asked.source, asked.size, stream, wait=wait)


def _from_symbol(call: Call, asked: SymbolCopy, stream: int, *, wait: bool) -> None:
    source = _place(call, asked.source, asked.size, asked.offset)
    _copied(call, asked.target, source, asked.size, stream, wait=wait)


@row("cudaMemcpyToSymbol")
def memcpy_to_symbol(call: Call, asked: SymbolCopy) -> None:
    """Copy bytes to a variable."""
    _to_symbol(call, asked, 0, wait=True)


@row("cudaMemcpyFromSymbol")
def memcpy_from_symbol(call: Call, asked: SymbolCopy) -> None:
    """Copy bytes of a variable."""
    _from_symbol(call, asked, 0, wait=True)


@row("cudaMemcpyToSymbolAsync")
def memcpy_to_symbol_async(call: Call, asked: SymbolCopy, stream: Handle) -> None:
    """Copy bytes to a variable as work of a stream."""
    _to_symbol(call, asked, stream, wait=False)


@row("cudaMemcpyFromSymbolAsync")
def memcpy_from_symbol_async(call: Call, asked: SymbolCopy, stream: Handle) -> None:
    """Copy bytes of a variable as work of a stream."""
    _from_symbol(call, asked, stream, wait=False)
