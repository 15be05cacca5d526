"""Devices and their buffers: memory that several launches share.

Knows arrays and allocations; does not know kernels. Buffers stay as long as the device does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.errors import OperandError
from ...isa.arrays import as_array, as_integer
from ...ptx.qualifiers import check_target
from .heap import HEAP_BYTES, Heap
from .spaces import Allocation, DeviceMemory


class Device:
    """A chip with global memory. ``target`` is its PTX target, such as "sm_90a", or None for any.

    ``device.array(x)`` copies an array there; buffers stay until the device goes. ``heap_bytes`` is the size
    of the heap that malloc of device code takes from, as cudaLimitMallocHeapSize sets it.
    """

    def __init__(
        self, target: str | None = None, *, heap_bytes: int = HEAP_BYTES, memory: DeviceMemory | None = None
    ) -> None:
        if target is not None:
            check_target(target)
        self.target = target
        self.memory = DeviceMemory() if memory is None else memory
        self.symbols: dict[Any, dict[str, int]] = {}  # addresses of variables, by module
        self.heap = Heap(self.memory, heap_bytes)

    def __repr__(self) -> str:
        held = self.memory.allocations
        size = sum(item.size for item in held)
        return f"<device {self.target or 'of any chip'}: {len(held)} allocations, {size:,} bytes>"

    def array(self, value: Any, name: str = "") -> Buffer:
        """Return a buffer with the bytes of an array, or of what has ``__bytes__``, as a tensor map.

        Raises OperandError for what is not an array of numbers.
        """
        if hasattr(value, "__bytes__") and not hasattr(value, "dtype"):
            value = np.frombuffer(bytes(value), np.uint8)
        array = as_array(value)
        if array.dtype.hasobject or array.dtype.kind in "US":
            raise OperandError(f"{name or 'the array'} has dtype {array.dtype}, which has no bytes to copy")
        buffer = self._buffer(array.shape, array.dtype, name)
        buffer.set(array)
        return buffer

    def empty(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike = np.uint8, name: str = "") -> Buffer:
        """Return a buffer for an array of that shape and dtype, which has not been written.

        Its bytes are zero here, and anything on a chip: a launch warns of reading them (``checks``).
        """
        buffer = self._buffer((shape,) if isinstance(shape, int) else tuple(shape), np.dtype(dtype), name)
        self.memory.unwritten(buffer.allocation)
        return buffer

    def _buffer(self, shape: tuple[int, ...], kind: np.dtype[Any], name: str) -> Buffer:
        size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
        return Buffer(self, self.memory.allocate(size, name), shape, kind)


class Buffer:
    """An array in the memory of a device: ``address``, ``shape`` and ``dtype``."""

    def __init__(
        self, device: Device, allocation: Allocation, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        self.device = device
        self.allocation = allocation
        self.shape = shape
        self.dtype = dtype

    @property
    def address(self) -> int:
        """Return the address of its first byte."""
        return self.allocation.address

    def get(self) -> npt.NDArray[Any]:
        """Return a copy of what it holds."""
        content = self.device.memory.bytes_of(self.allocation)
        return content.copy().view(self.dtype).reshape(self.shape)

    def at(self, offset: int) -> BufferPlace:
        """Return the address ``offset`` bytes behind its first byte, as an argument. Raises OperandError."""
        size = self.allocation.size
        offset = as_integer(offset, "an offset in a buffer")
        if not 0 <= offset <= size:
            raise OperandError(f"offset {offset}: the buffer has {size} bytes")
        return BufferPlace(buffer=self, offset=offset)

    def set(self, value: Any) -> None:
        """Copy an array of its shape and dtype there. Raises OperandError."""
        array = np.asarray(as_array(value), order="C")
        if array.shape != self.shape or array.dtype != self.dtype:
            given = f"{array.dtype} {array.shape}"
            raise OperandError(f"the buffer is {self.dtype} {self.shape}, but the array is {given}")
        self.device.memory.bytes_of(self.allocation)[:] = array.reshape(-1).view(np.uint8)
        self.device.memory.written(self.allocation)

    def __repr__(self) -> str:
        return f"<Buffer {self.dtype} {self.shape} at {self.address:#x}>"


@dataclass(frozen=True, kw_only=True)
class BufferPlace:
    """A byte of a buffer: what ``buffer.at(offset)`` gives."""

    buffer: Buffer
    offset: int

    @property
    def address(self) -> int:
        """Return its address."""
        return self.buffer.address + self.offset
