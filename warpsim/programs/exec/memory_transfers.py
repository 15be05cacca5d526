"""Copies and fills, in whatever memory an address says: of the device, of the host, or of both.

Knows addresses, bytes and what was never written; does not know functions of CUDA or streams.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...machine.state.spaces import DEVICE_BASE, Bytes
from .calls import Call
from .clients.client import Process
from .clients.client_memory import PINNED
from .error_codes import CudaError
from .streams import Touches

HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE, DEFAULT = 1, 2, 3, 4
_HOST_END = 1 << 47  # of the addresses that Linux gives a program
_DEVICE_SIDES = {0: (False, False), 1: (True, False), 2: (False, True), 3: (True, True)}  # target, source


@dataclass(frozen=True, kw_only=True)
class Plane:
    """A box of bytes: ``width`` bytes in a row, rows ``pitch`` bytes apart, layers ``slice`` bytes apart."""

    address: int
    pitch: int = 0
    slice: int = 0

    def check(self, process: Process, sizes: tuple[int, int, int]) -> None:
        """Raise CudaError unless rows and layers lie apart, all of them in one allocation or in the host."""
        width, height, depth = sizes
        if height > 1 and width > self.pitch:
            raise CudaError("InvalidValue", f"rows of {width} bytes, pitch {self.pitch}")
        if depth > 1 and height * self.pitch > self.slice:
            message = f"layers of {height} rows, which are {self.slice // max(self.pitch, 1)} rows apart"
            raise CudaError("InvalidValue", message)
        size = (depth - 1) * self.slice + (height - 1) * self.pitch + width
        if process.on_device(self.address):
            process.bytes_at(self.address, size)
        elif not self.address or self.address + size > _HOST_END:
            raise CudaError("InvalidValue", f"{size} bytes at {self.address:#x} of the host")

    def rows(self, sizes: tuple[int, int, int]) -> Iterator[int]:
        """Yield where each row begins."""
        for layer in range(sizes[2]):
            for row in range(sizes[1]):
                yield self.address + layer * self.slice + row * self.pitch


@dataclass(frozen=True, kw_only=True)
class Box:
    """A copy of a box: ``sizes`` are bytes of a row, rows, and layers."""

    target: Plane
    source: Plane
    sizes: tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class Rows:
    """A fill of layers of rows, each with a pattern so many times."""

    target: Plane
    pattern: bytes
    count: int
    rows: int = 1
    layers: int = 1

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Bytes of a row, rows, and layers."""
        return len(self.pattern) * self.count, self.rows, self.layers

    @property
    def past(self) -> int:
        """The address behind the last byte."""
        width, height, depth = self.sizes
        return (
            self.target.address + (depth - 1) * self.target.slice + (height - 1) * self.target.pitch + width
        )


def check_direction(process: Process, target: int, source: int, kind: int) -> None:
    """Raise CudaError where addresses are not those of a cudaMemcpyKind."""
    if kind == DEFAULT:
        return
    if kind not in _DEVICE_SIDES:
        raise CudaError("InvalidMemcpyDirection", f"cudaMemcpyKind {kind}")
    for address, wanted, what in zip(
        (target, source), _DEVICE_SIDES[kind], ("target", "source"), strict=True
    ):
        found = process.on_device(address)
        if found != wanted and not _is_shared(process, address):
            side = ("the host", "the device")
            raise CudaError(
                "InvalidValue",
                f"a copy from {side[_DEVICE_SIDES[kind][1]]} to {side[_DEVICE_SIDES[kind][0]]}: the {what} "
                f"{address:#x} is memory of {side[found]}",
            )


def copy(call: Call, target: int, source: int, size: int, *, quiet: bool = False) -> Touches:
    """Copy bytes; ``quiet`` does not look for bytes that were never written. Raises CudaError."""
    if not size:
        return Touches()
    process, channel = call.process, call.connection.channel
    to_device, from_device = process.on_device(target), process.on_device(source)
    if from_device:
        content = process.bytes_at(source, size)
        if to_device:
            process.bytes_at(target, size)[:] = content.copy()
            _note(call, target, size, f", of {process.memory.find(source)}")
            if _is_shared(process, target):
                _reaches_host(call, target, source, size, quiet=quiet)
                _record_host_copy(call, source, content)
            else:
                _inherit(process, target, source, size)
        else:
            if not quiet:
                _unwritten(call, source, size)
            process.client_memory.write(channel, target, content)
            _record_host_copy(call, source, content)
    elif to_device:
        process.client_memory.read_into(channel, source, process.bytes_at(target, size))
        _mark_written(process, target, size)
        _note(call, target, size, ", of host memory")
    else:
        process.client_memory.write(channel, target, call.read(source, size))
    return Touches(reads=((source, source + size),), writes=((target, target + size),))


def _is_shared(process: Process, address: int) -> bool:
    """Return whether an address of the device is memory of the host, too."""
    found = process.memory.find(address)
    return found is not None and process.memory.is_shared(found)


def _record_host_copy(call: Call, source: int, content: Bytes) -> None:
    """Keep what goes to the host, where it is compared with that of another run."""
    if call.process.settings.compares:
        call.process.tally.copies.add(f"{call.name}, {content.size} bytes", content, source - DEVICE_BASE)


def copy_box(call: Call, target: Plane, source: Plane, sizes: tuple[int, int, int]) -> Touches:
    """Copy bytes of a row, rows and layers; nothing where a side does not fit. Raises CudaError."""
    width = sizes[0]
    if 0 in sizes:
        return Touches()
    for plane in (target, source):
        plane.check(call.process, sizes)
    reads, writes = list[tuple[int, int]](), list[tuple[int, int]]()
    for to, of in zip(target.rows(sizes), source.rows(sizes), strict=True):
        copy(call, to, of, width)
        reads.append((of, of + width))
        writes.append((to, to + width))
    return Touches(reads=tuple(reads), writes=tuple(writes))


def fill_rows(call: Call, asked: Rows) -> Touches:
    """Write a pattern to rows and layers; nothing where they do not fit. Raises CudaError."""
    if 0 in asked.sizes:
        return Touches()
    asked.target.check(call.process, asked.sizes)
    parts = [fill(call, start, asked.pattern, asked.count) for start in asked.target.rows(asked.sizes)]
    return Touches(writes=tuple(stretch for part in parts for stretch in part.writes))


def fill(call: Call, target: int, pattern: bytes, count: int) -> Touches:
    """Write a pattern so many times. Raises CudaError."""
    size = len(pattern) * count
    if not size:
        return Touches()
    process = call.process
    if not process.on_device(target):
        raise CudaError("InvalidValue", f"{call.name}: {target:#x} {process.where(target)}")
    process.bytes_at(target, size).reshape(count, -1)[:] = np.frombuffer(pattern, np.uint8)
    _mark_written(process, target, size)
    _note(call, target, size)
    return Touches(writes=((target, target + size),))


def _mark_written(process: Process, target: int, size: int) -> None:
    fresh = process.fresh_at(target, size)
    if fresh is not None:
        fresh[:] = 0


def _note(call: Call, target: int, size: int, source: str = "") -> None:
    """Keep which call has filled bytes of an allocation."""
    process = call.process
    found = process.memory.find(target)
    if found is not None:
        number = process.tally.calls[call.name]
        process.fills.note(found, f"call {number} of {call.name}{source}", target - found.address, size)


def _inherit(process: Process, target: int, source: int, size: int) -> None:
    """Bytes that were never written stay so when they are copied."""
    fresh, of = process.fresh_at(target, size), process.fresh_at(source, size)
    if fresh is not None and of is not None:
        fresh[:] = of.copy()


def _reaches_host(call: Call, target: int, source: int, size: int, *, quiet: bool) -> None:
    """Find unwritten bytes that are copied to pinned memory. No byte of the target counts as unwritten: the
    host may write to it at any time.
    """
    process = call.process
    found = process.memory.find(target)
    if not quiet and found is not None and process.memory.kinds.get(found.address) is PINNED:
        _unwritten(call, source, size)
    _mark_written(process, target, size)


def _unwritten(call: Call, source: int, size: int) -> None:
    """Find bytes that go to the host and that nothing has written."""
    process = call.process
    fresh = process.fresh_at(source, size)
    if fresh is None or process.settings.checks == "off":
        return
    count = int(np.count_nonzero(fresh))
    if count:
        allocation = process.memory.find(source)
        assert allocation is not None, "the bytes have been found"
        first = int((fresh != 0).argmax()) + source - allocation.address
        message = (
            f"{call.name} copies {count} bytes of {size} to the host that nothing has written: the first is "
            f"byte {first} of {allocation}"
        )
        process.tally.host_finding("uninitialised", "warning", allocation.name, message)


def range_of(process: Process, address: int) -> tuple[int, int]:
    """Return address and size of the allocation around an address; raises CudaError."""
    found = process.memory.find(address)
    if found is None:
        raise CudaError("InvalidValue", f"{address:#x} {process.where(address)}")
    return found.address, found.size
