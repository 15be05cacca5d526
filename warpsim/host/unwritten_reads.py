"""Whether reads of bytes that were never written matter: the launch again, with other bytes in their place.

Kernels read rows that they never use, as FlashAttention-2 does of the last tile. Where nothing that a launch
leaves depends on such bytes (no result, no text, no fault, and each statement is executed as often), reading
them is worth a note only. Does not say which read matters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from ..checks.findings import Findings, LaunchFinding
from ..errors import WarpsimError
from ..machine.grid import Launch, run
from ..machine.state.device import Device
from ..machine.state.device_runtime import DeviceRuntime
from ..machine.state.heap import HeapBlock
from ..machine.state.spaces import DEVICE_BASE, Allocation, Bytes

Counts = npt.NDArray[np.int64]
_FILLS = (1, 2)  # seeds of the bytes that are tried
_HARMLESS = "; no result depends on them: with other bytes there the launch leaves the same"


class UnwrittenReads:
    """The memory of a launch as it begins, to begin once more from it."""

    def __init__(self, launch: Launch) -> None:
        memory = launch.device.memory
        self.launch = launch
        self.data = memory.snapshot()
        kept = self.data is not None and memory.fresh is not None
        self.fresh: Bytes | None = memory.fresh.copy() if kept and memory.fresh is not None else None
        self.allocations: Sequence[Allocation] = tuple(memory.allocations)
        self.heap: tuple[int, dict[int, HeapBlock]] = launch.device.heap.state()

    def judge(self, findings: Findings, counts: Counts) -> None:
        """Make notes of the warnings about unwritten bytes, where nothing depends on these."""
        if self.data is None or not any(map(_questionable, findings.found)):
            return
        tried = (self._differs(self.data.copy(), fill, counts) for fill in _FILLS)
        differs = next(filter(None, tried), "")
        change = partial(_depended_on, differs) if differs else _noted
        findings.found[:] = [change(found) if _questionable(found) else found for found in findings.found]

    def _differs(self, data: Bytes, fill: int, counts: Counts) -> str:
        """Return what the launch does or leaves otherwise with these bytes, "" for nothing."""
        first = self.launch
        device = Device(first.module.target, heap_bytes=first.device.heap.limit)
        device.memory.restore(self._filled(data, fill), self.allocations, None)
        device.heap.restore(self.heap)
        device.symbols[first.module] = first.device.symbols[first.module]
        workspace = first.runtime.grid_workspace if first.runtime else 0
        runtime = DeviceRuntime(heap=device.heap, grid_workspace=workspace)
        again = replace(
            first, device=device, runtime=runtime, observers=tuple, inferred={}, kept={}, fill=fill
        )
        try:
            same = np.array_equal(run(again), counts)
        except WarpsimError as error:
            return f"the launch ends with an error: {error.message}"
        printed = [item.text for item in first.runtime.printed] if first.runtime else []
        if not same:
            return "statements are executed more or less often"
        if printed != [item.text for item in runtime.printed]:
            return "other text is printed"
        return _difference(first.device, device)

    def _filled(self, data: Bytes, fill: int) -> Bytes:
        """Return the memory with other bytes where none were written, variables apart."""
        if self.fresh is not None:
            places = self.fresh != 0
            for allocation in self.allocations:
                start = allocation.address - DEVICE_BASE
                places[start : start + allocation.size] &= not allocation.space
            data[places] = np.random.default_rng(fill).integers(0, 256, int(places.sum()), np.uint8)
        return data


def _difference(first: Device, second: Device) -> str:
    """Return where what the first launch has written, or found, is not the same in both memories; "" for
    nowhere.
    """
    data, other, fresh = first.memory.data, second.memory.data, first.memory.fresh
    if data.size != other.size:
        return "other memory is allocated"
    differs = data != other
    if fresh is not None:
        differs &= fresh == 0
    if not differs.any():
        return ""
    place = int(differs.argmax())
    allocation = first.memory.find(DEVICE_BASE + place)
    if allocation is None:
        return "memory that device code has allocated holds other bytes"
    start = allocation.address - DEVICE_BASE
    count = int(differs[start : start + allocation.size].sum())
    plural = "s"[: count != 1]
    return f"{allocation} holds other values in {count} byte{plural}, from byte {place - start} on"


def _questionable(finding: LaunchFinding) -> bool:
    """Return whether a finding is about bytes that were read and never written, and is no variable's."""
    return finding.kind == "uninitialised" and finding.severity == "warning" and not finding.fix


def _noted(finding: LaunchFinding) -> LaunchFinding:
    return replace(finding, severity="note", message=finding.message + _HARMLESS)


def _depended_on(differs: str, finding: LaunchFinding) -> LaunchFinding:
    return replace(finding, message=f"{finding.message}; with other bytes there {differs}")


def watch(launch: Launch, *, wanted: bool) -> Callable[[Findings, Counts], None]:
    """Return what judges the findings of a launch when it has ended; nothing where that is not wanted."""
    return UnwrittenReads(launch).judge if wanted else lambda findings, counts: None
