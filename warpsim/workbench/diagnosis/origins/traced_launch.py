"""A kernel run once with keys beside its data: what every matrix instruction is given, byte by byte.

What depends on the data is seen by its keys: predicates and addresses. Knows launches and bytes; does not
know what fragments mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ....base.errors import Location, OperandError, present
from ....machine.bind.tuning import Dimensions
from ....machine.grid import (
    BLOCK_LIMITS,
    Launch,
    check_block,
    dimensions,
    placed,
    run,
    shared_total,
    symbols_of,
)
from ....machine.host.arguments import Arguments, arguments_of, device_of
from ....machine.load.program import Module
from ....machine.run.engines import Modes
from ....machine.run.geometry import Cluster
from ....machine.run.schedules import Schedule
from ....machine.run.wave import Entry, Parameter
from ....machine.state.device import Device
from ....machine.state.spaces import DEVICE_BASE, Allocation
from .byte_keys import ByteKeys
from .kept_products import Given, given_of
from .key_observer import Formulas, KeyObserver

Size = int | Sequence[int]
Named = Mapping[str, Parameter] | Mapping[str, Allocation]


@dataclass(frozen=True, kw_only=True)
class TracedBuffer:
    """A buffer whose bytes have the indices from ``start`` on; ``parameter`` is -1 where none is named."""

    name: str
    parameter: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    start: int
    size: int
    allocation: Allocation | None = None

    def holds(self, index: int) -> bool:
        """Return whether a byte is one of it."""
        return self.start <= index < self.start + self.size


@dataclass(frozen=True, kw_only=True)
class Dependence:
    """A statement of which values in the buffers decide whether lanes execute it, or where it reads."""

    location: Location
    message: str

    def __str__(self) -> str:
        return f"{self.location}: {self.message}"


@dataclass(frozen=True, kw_only=True)
class Movement:
    """All that a run showed; ``result`` is the index of every byte of D.

    ``written_by`` are the statements that wrote the shared memory that each statement read, by its
    number and the operand ("" of loads).
    """

    buffers: tuple[TracedBuffer, ...]
    result: int
    written_by: Mapping[tuple[int, str], Set[int]]
    given: tuple[Given, ...]
    dependences: tuple[Dependence, ...]
    formulas: Formulas = field(compare=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class Job:
    """A launch; ``named`` are parameters, or allocations of ``device``, by the name that
    they go by. Without ``device`` it is that of buffers among the arguments, or a new device.
    """

    module: Module
    entry: Entry
    grid: Dimensions
    block: Dimensions
    arguments: Sequence[Any]
    shared_bytes: int
    cluster: Cluster
    named: Named
    most_statements: int | None = None
    device: Device | None = None

    def on(self) -> Device:
        """Return the device of the run."""
        return self.device or device_of(self.arguments) or Device(self.module.target)


def job_of(
    kernel: Any,
    sizes: tuple[Size, Size, Size | None],
    arguments: Sequence[Any],
    named: Named,
    shared_bytes: int = 0,
    **more: Any,
) -> Job:
    """Return a launch with ``sizes`` of grid, block and cluster, checked as a real launch is; ``more`` are
    other fields of Job.

    Raises OperandError.
    """
    (grid, block, cluster), entry = sizes, kernel._entry
    ctas, clusters = placed(entry, grid, cluster, kernel._module.target)
    threads = dimensions(block, "block", BLOCK_LIMITS)
    check_block(entry, threads, kernel._module.target)
    return Job(
        module=kernel._module,
        entry=entry,
        grid=ctas,
        block=threads,
        arguments=arguments,
        shared_bytes=shared_total(entry, shared_bytes, kernel._module.target),
        cluster=clusters,
        named=named,
        **more,
    )


# --- the run ---------------------------------------------------------------------------------------


def movement_of(job: Job) -> Movement:
    """Return what a run with keys shows; restore all memory.

    Raises OperandError, and what the launch raises.
    """
    device = job.on()
    symbols_of(device, job.module)
    memory, heap = device.memory, device.heap.state()
    before = [(allocation, memory.bytes_of(allocation).copy()) for allocation in memory.allocations]
    try:
        arguments = arguments_of(device, job.entry.parameters, job.entry.parameter_bytes, job.arguments)
        buffers = traced_buffers(job, arguments)
        observer = _observer(job, buffers)
        run(_launch(job, device, arguments, observer))
    finally:
        for allocation, content in before:
            memory.bytes_of(allocation)[:] = content
        memory.release(len(before))
        device.heap.restore(heap)
    return Movement(
        buffers=tuple(buffers),
        result=observer.byte_keys.result,
        written_by=observer.written_by or {},
        given=given_of(observer.products.events),
        dependences=tuple(_dependences(job, observer)),
        formulas=observer.formulas,
    )


def _observer(job: Job, buffers: Sequence[TracedBuffer]) -> KeyObserver:
    starts = [
        (present(buffer.allocation, "allocation").address - DEVICE_BASE, buffer.size) for buffer in buffers
    ]
    keys = ByteKeys(sum(buffer.size for buffer in buffers))
    return KeyObserver(keys, starts, job.module.target)


def _launch(job: Job, device: Device, arguments: Arguments, observer: KeyObserver) -> Launch:
    return Launch(
        module=job.module,
        entry=job.entry,
        device=device,
        grid=job.grid,
        block=job.block,
        parameters=arguments.content,
        shared_bytes=job.shared_bytes,
        cluster=job.cluster,
        schedule=Schedule("program"),
        observers=lambda: [observer],
        modes=Modes(interposed=observer.products),
        most_statements=job.most_statements,
    )


def traced_buffers(job: Job, arguments: Arguments) -> list[TracedBuffer]:
    """Return the buffers that are named, in sequence. Raises OperandError for anything else."""
    found, start = list[TracedBuffer](), 1
    for name, place in job.named.items():
        if isinstance(place, Allocation):
            parameter, allocation = -1, place
            shape: tuple[int, ...] = (place.size,)
            dtype: np.dtype[Any] = np.dtype(np.uint8)
        else:
            buffer = arguments.buffers[place.index]
            if buffer is None:
                raise OperandError(f"origins of {name}: parameter {place.index} is given no array")
            parameter, allocation, shape, dtype = place.index, buffer.allocation, buffer.shape, buffer.dtype
        found.append(
            TracedBuffer(
                name=name,
                parameter=parameter,
                shape=shape,
                dtype=dtype,
                start=start,
                size=allocation.size,
                allocation=allocation,
            )
        )
        start += allocation.size
    return found


def _dependences(job: Job, observer: KeyObserver) -> Iterator[Dependence]:
    """Yield the first statement whose lanes the data decide, and every statement whose addresses they do."""
    names, code = ", ".join(job.named), job.entry.code
    for pc in sorted(observer.decided)[:1]:
        branches = code[pc].statement.opcode in ("bra", "brx") and pc + 1 < len(code)
        line = code[pc + branches].statement.location().line
        message = f"which lanes go on at line {line} depends on values in {names}"
        yield Dependence(location=code[pc].statement.location(), message=message)
    for pc in sorted(observer.addressed):
        message = f"its addresses depend on values in {names}"
        yield Dependence(location=code[pc].statement.location(), message=message)
