"""A launch of a host program that is executed again for a reference, with memory as before afterwards.

Arrays whose type nothing says get it from a first execution: what the kernel reads and stores them as.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ....base.errors import WarpsimError
from ....isa.formats import FORMATS
from ....machine.run.events import Observer
from ....machine.run.wave import Wave
from ....machine.state.device import Device
from ....machine.state.memory_access import MemoryAccess
from ....machine.state.spaces import DEVICE_BASE
from ....observe.algebra.keys.key_cells import NAMES
from ....observe.algebra.keys.key_reading import KeyReader
from ....observe.algebra.leaves import Argument, Leaves
from ....observe.algebra.observer import Algebra
from ..host_launch import HostLaunch
from .argument_types import Kind
from .host_arguments import ADDRESS, Array, HostArguments


@dataclass(frozen=True)
class HostAttempt:
    """One execution: its report, or the error that ended it, and arrays by argument."""

    report: Any
    error: WarpsimError | None
    arrays: Mapping[int, Array]


class RepeatedHostLaunch:
    """A launch of a host program for the comparison with ``function``; memory is as before afterwards."""

    def __init__(self, launch: HostLaunch, function: Callable[..., Any]) -> None:
        self.launch, self.kernel = launch, launch.kernel
        read = HostArguments(launch, function)
        self.given, self._open = read.read(), read.open

    def formula_arguments(self) -> list[Argument]:
        """Return what the reference is called with."""
        if self._open:
            for index, kind in self._types(self._open).items():
                self._view(index, kind)
            self._open = []
        return [replace(each) for each in self.given]

    def attempt(self, **options: Any) -> HostAttempt:
        """Execute once, with observers; the host program sees nothing of it."""
        launch, report, error = self.launch, None, None
        with _restore_memory(launch.device):
            try:
                report = self.kernel(
                    launch.grid, launch.block, launch.parameters, launch.shared_bytes, launch.cluster,
                    device=launch.device, output=None, **{**launch.options, **options},
                )  # fmt: skip
            except WarpsimError as fault:
                error = fault
            memory = launch.device.memory
            arrays = {
                each.index: _strided_view(
                    memory.data[self._address(each.index) - DEVICE_BASE :], each.content
                )
                for each in self.given
                if each.content is not None and each.content.ndim
            }
        return HostAttempt(report, error, arrays)

    def _types(self, numbers: Sequence[int]) -> dict[int, Kind]:
        """Return the dtypes of arrays by what the kernel reads and stores."""
        widths = _Widths()
        self.attempt(checks="off", observers=(widths,))
        for index in numbers:
            width = widths.of(self._address(index), self.given[index].content.size)  # type: ignore[union-attr]
            self._view(index, np.dtype(f"u{width}"))
        reader = KeyReader(1)
        leaves = Leaves(reader, [replace(each) for each in self.given])
        algebra = Algebra(reader, leaves.bind)
        algebra.target = self.kernel.module.target
        self.attempt(checks="off", observers=(algebra,))
        return {index: _type_of(leaves, leaves.arguments[index]) for index in numbers}

    def _view(self, index: int, kind: Kind) -> None:
        """Take an array of bytes as one of another type."""
        flat = self.given[index].content
        assert flat is not None
        content = flat.view(np.uint8)
        self.given[index].content = content[: content.size // kind.itemsize * kind.itemsize].view(kind)

    def _address(self, index: int) -> int:
        argument = self.given[index]
        content = self.launch.parameters[argument.parameter][argument.offset :][:ADDRESS]
        return int.from_bytes(content, "little")


def _strided_view(data: Array, like: Array) -> Array:
    """Return the array of that type, shape and strides at the beginning of bytes."""
    kind = like.dtype
    flat = data[: data.size // kind.itemsize * kind.itemsize].view(kind)
    return np.lib.stride_tricks.as_strided(flat, like.shape, like.strides).copy()


class _Widths(Observer):
    """The bytes of the words that statements take from places of a device's memory."""

    def __init__(self) -> None:
        self.seen = set[tuple[int, int, int]]()  # first and last byte, size of a word

    def of(self, address: int, size: int) -> int:
        """Return the bytes of the smallest word that is taken from a stretch of memory, 4 for none."""
        first = address - DEVICE_BASE
        sizes = [word for low, high, word in self.seen if low < first + size and high >= first]
        return min((each for each in sizes if each <= ADDRESS), default=4)

    def load(self, wave: Wave, access: MemoryAccess) -> None:
        """Note what a statement reads."""
        if access.memory is wave.memories.device.data and access.offsets.size:
            self.seen.add((int(access.offsets.min()), int(access.offsets.max()), access.size))

    store = atomic = load


def _type_of(leaves: Leaves, argument: Argument) -> Kind:
    """Return the dtype of an array of unsigned words that a kernel has read and stored as other numbers."""
    assert argument.content is not None
    size, left = argument.size, leaves.left(argument)
    tags = np.zeros(0, np.uint16) if left.cells is None else left.cells.tags[:, left.writers >= 0]
    stored = np.unique(tags >> 4).tolist()
    kinds = {(NAMES[each >> 4], each & 15) for each in stored if each}
    kinds |= {(kind, FORMATS[kind].bits // 8) for kind in leaves.read_as(argument)}
    floats = {kind for kind, _ in kinds} - {"s", "u"}
    if len(floats) == 1 and len(kinds) == 1:
        return np.dtype(FORMATS[floats.pop()].dtype)
    return np.dtype(f"i{size}" if size >= _INT else f"u{size}")


_INT = 4  # bytes of C's int


@contextmanager
def _restore_memory(device: Device) -> Iterator[None]:
    """Put memory back as it is now."""
    memory, heap = device.memory, device.heap.state()
    before = [(allocation, memory.bytes_of(allocation).copy()) for allocation in memory.allocations]
    fresh = None if memory.fresh is None else memory.fresh.copy()
    try:
        yield
    finally:
        for allocation, content in before:
            memory.bytes_of(allocation)[:] = content
        memory.release(len(before))
        if fresh is not None and memory.fresh is not None:
            memory.fresh[: fresh.size] = fresh
        device.heap.restore(heap)
