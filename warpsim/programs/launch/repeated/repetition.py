"""A launch again, from the memory as it was when it began: whether it then leaves the same.

What is another the second time is the caller's. Where nothing that the launch leaves is another (no result,
no text, no fault, and each statement is executed as often), no result depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.errors import Stopped, WarpsimError
from ....machine.grid import Launch, run
from ....machine.run.addition_orders import AdditionOrders
from ....machine.state.device import Device
from ....machine.state.device_runtime import DeviceRuntime
from ....machine.state.heap import HeapBlock
from ....machine.state.spaces import DEVICE_BASE, Allocation, Bytes, DeviceMemory, Span, copied

Counts = npt.NDArray[np.int64]


class Repetition:
    """The memory of a launch as it begins, to begin once more from it; ``data`` is None if it is too large.

    ``fresh`` says which bytes were never written.
    """

    def __init__(self, launch: Launch) -> None:
        memory = launch.device.memory
        self.launch = launch
        self.data = memory.snapshot()
        self.allocations: Sequence[Allocation] = tuple(memory.allocations)
        self._spans, self._end = memory.spans(), memory.end
        kept = self.data is not None and memory.fresh is not None
        self.fresh: Bytes | None = (
            copied(memory.fresh, self._spans) if kept and memory.fresh is not None else None
        )
        self._heap: tuple[int, dict[int, HeapBlock]] = launch.device.heap.state()

    def copy(self) -> Bytes:
        """Return a copy of the memory, which is not None."""
        assert self.data is not None
        return copied(self.data, self._spans)

    def fresh_copy(self) -> Bytes | None:
        """Return a copy of ``fresh``."""
        return None if self.fresh is None else copied(self.fresh, self._spans)

    def difference(self, data: Bytes, counts: Counts, **others: Any) -> str:
        """Return what the launch does or leaves otherwise with this memory, "" for nothing.

        ``counts`` are those of the first time, and ``others`` fields of Launch. Raises Stopped.
        """
        first = self.launch
        try:
            device, runtime, times = self.again(data, None, observers=tuple, **others)
            same = np.array_equal(times, counts)
        except Stopped:
            raise
        except WarpsimError as error:
            return f"the launch ends with an error: {error.message}"
        printed = [item.text for item in first.runtime.printed] if first.runtime else []
        if not same:
            return "statements are executed more or less often"
        if printed != [item.text for item in runtime.printed]:
            return "other text is printed"
        return self._difference(first.device, device)

    def again(self, data: Bytes, fresh: Bytes | None, **others: Any) -> tuple[Device, DeviceRuntime, Counts]:
        """Return the device after a launch that begins with this memory, its texts, and how often each
        statement was executed. ``others`` are fields of Launch. Raises what launches raise.
        """
        first = self.launch
        device = Device(first.module.target, heap_bytes=first.device.heap.limit)
        device.memory.restore(data, self.allocations, fresh, self._end)
        device.heap.restore(self._heap)
        device.symbols[first.module] = first.device.symbols[first.module]
        workspace = first.runtime.grid_workspace if first.runtime else 0
        runtime = DeviceRuntime(heap=device.heap, grid_workspace=workspace)
        kept: dict[str, Any] = {"inferred": {}, "with_c": {}, "kept": {}, "additions": AdditionOrders()}
        return device, runtime, run(replace(first, device=device, runtime=runtime, **kept | others))

    def _difference(self, first: Device, second: Device) -> str:
        """Return where what the first launch has written, or found, is not the same in both memories; "" for
        nowhere.
        """
        if first.memory.data.size != second.memory.data.size:
            return "other memory is allocated"
        past = max(first.memory.end, second.memory.end)
        for span in (*self._spans, (self._end, past)):
            where = _differing(first.memory, second.memory, span)
            if where:
                return where
        return ""


def _differing(first: DeviceMemory, second: DeviceMemory, span: Span) -> str:
    """Return where a part of two memories is not the same, "" for nowhere."""
    part = slice(*span)
    differs = first.data[part] != second.data[part]
    if first.fresh is not None:
        differs &= first.fresh[part] == 0
    if not differs.any():
        return ""
    place = span[0] + int(differs.argmax())
    allocation = first.find(DEVICE_BASE + place)
    if allocation is None:
        return "memory that device code has allocated holds other bytes"
    start = allocation.address - DEVICE_BASE
    count = int(differs[start - span[0] : start - span[0] + allocation.size].sum())
    plural = "s"[: count != 1]
    return f"{allocation} holds other values in {count} byte{plural}, from byte {place - start} on"
