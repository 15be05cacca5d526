"""A kernel run again and again on tags instead of data: what every matrix instruction is given, byte by byte.

Nothing is multiplied: D is a tag of its own. What the runs have in common is checked: which lanes execute
which statement, and at which addresses. Knows launches and bytes; does not know what fragments mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ....base.errors import Location, OperandError, WarpsimError, present
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
from ....machine.run.geometry import Cluster
from ....machine.run.schedules import Schedule
from ....machine.run.wave import Entry, Parameter, Record
from ....machine.state.device import Device
from ....machine.state.spaces import Allocation
from .given_operands import Given, given_of
from .tagged_observer import GroupWatch, Watch
from .tags import Tagging

Size = int | Sequence[int]
_WHOLE = (1 << 64) - 1  # what hashes are added in
_BLOCK = 1 << 20  # bytes that are tagged at once: their indices take eight times the memory
Named = Mapping[str, Parameter] | Mapping[str, Allocation]


@dataclass(frozen=True, kw_only=True)
class TaggedBuffer:
    """A buffer whose bytes have the indices from ``start`` on; ``parameter`` is -1 where none is named."""

    name: str
    parameter: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    start: int
    size: int
    allocation: Allocation | None = None


@dataclass(frozen=True, kw_only=True)
class Dependence:
    """A statement that does not do the same whatever the buffers hold, and what of it changes."""

    location: Location
    message: str

    def __str__(self) -> str:
        return f"{self.location}: {self.message}"


@dataclass(frozen=True, kw_only=True)
class Movement:
    """All that the runs showed."""

    buffers: tuple[TaggedBuffer, ...]
    tagging: Tagging
    given: tuple[Given, ...]
    dependences: tuple[Dependence, ...]


@dataclass(frozen=True, kw_only=True)
class Job:
    """A launch that is repeated; ``named`` are parameters, or allocations of ``device``, by the name that
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
        """Return the device of a run."""
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


# --- one run ---------------------------------------------------------------------------------------


def _run(job: Job, tagging: Tagging, number: int | None) -> tuple[Watch, list[TaggedBuffer]]:
    """Run once on tags, or on the data where ``number`` is None; restore all memory."""
    device = job.on()
    symbols_of(device, job.module)
    memory, heap = device.memory, device.heap.state()
    before = [(allocation, memory.bytes_of(allocation).copy()) for allocation in memory.allocations]
    size = len(job.entry.code)
    tag = 0 if number is None else int(tagging.tags(np.array(tagging.result), number))
    kind = GroupWatch if any(record.statement.opcode == "wgmma" for record in job.entry.code) else Watch
    watch = kind(tag, [0] * size, [0] * size)
    try:
        arguments = arguments_of(device, job.entry.parameters, job.entry.parameter_bytes, job.arguments)
        buffers = tagged_buffers(job, arguments)
        if number is not None:
            _tag(device, buffers, tagging, number)
        run(_launch(job, device, arguments, watch))
    finally:
        for allocation, content in before:
            memory.bytes_of(allocation)[:] = content
        memory.release(len(before))
        device.heap.restore(heap)
    return watch, buffers


def _launch(job: Job, device: Device, arguments: Arguments, watch: Watch) -> Launch:
    code = [record.stepping(watch.step(pc, record.step)) for pc, record in enumerate(job.entry.code)]
    return Launch(
        module=job.module,
        entry=replace(job.entry, code=code),
        device=device,
        grid=job.grid,
        block=job.block,
        parameters=arguments.content,
        shared_bytes=job.shared_bytes,
        cluster=job.cluster,
        schedule=Schedule("program"),
        observers=lambda: [watch],
        most_statements=job.most_statements,
    )


def tagged_buffers(job: Job, arguments: Arguments) -> list[TaggedBuffer]:
    """Return the buffers that are named, in sequence. Raises OperandError for anything else."""
    found, start = list[TaggedBuffer](), 1
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
            TaggedBuffer(
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


def _tag(device: Device, buffers: Sequence[TaggedBuffer], tagging: Tagging, number: int) -> None:
    for tagged in buffers:
        content = device.memory.bytes_of(present(tagged.allocation, "allocation"))
        for first in range(0, tagged.size, _BLOCK):
            part = content[first : first + _BLOCK]
            index = np.arange(tagged.start + first, tagged.start + first + part.size)
            part[:] = tagging.tags(index, number)


# --- all runs --------------------------------------------------------------------------------------


def movement_of(job: Job) -> Movement:
    """Return what runs on tags show: the first of them, and all where bytes come apart from their neighbours,
    are computed, or where what is done depends on the data.

    Raises OperandError, and what the kernel raises on its data.
    """
    buffers = _sized(job)
    tagging = Tagging(total=sum(buffer.size for buffer in buffers))
    runs = list[Watch]()
    for count in (tagging.first_runs, tagging.runs):
        try:
            runs += [_run(job, tagging, number)[0] for number in range(len(runs), count)]
        except WarpsimError as error:
            _run(job, tagging, None)  # raises what is wrong without any tags
            return _broken(buffers, tagging, error)
        dependences = tuple(_dependences(job, runs))
        given = None if dependences and count < tagging.runs else given_of(tagging, runs)
        if given is not None:
            break
    return Movement(
        buffers=tuple(buffers),
        tagging=tagging,
        given=tuple(present(given, "what is given")),
        dependences=dependences,
    )


def _sized(job: Job) -> list[TaggedBuffer]:
    """Return the buffers, before anything runs."""
    device = job.on()
    kept = len(device.memory.allocations)
    try:
        given = arguments_of(device, job.entry.parameters, job.entry.parameter_bytes, job.arguments)
        return tagged_buffers(job, given)
    finally:
        device.memory.release(kept)


def _broken(buffers: Sequence[TaggedBuffer], tagging: Tagging, error: WarpsimError) -> Movement:
    """Return a run that tags made impossible."""
    if error.location is None:
        raise error
    names = ", ".join(buffer.name for buffer in buffers)
    message = f"what it does depends on the values in {names}: with tags in their place, {error.message}"
    found = Dependence(location=error.location, message=message)
    return Movement(buffers=tuple(buffers), tagging=tagging, given=(), dependences=(found,))


def _dependences(job: Job, runs: Sequence[Watch]) -> list[Dependence]:
    """Return the first statement whose lanes differ between runs, and every statement whose addresses do."""
    names = ", ".join(job.named)
    found = list[Dependence]()
    executed, accessed = (
        np.array([[total & _WHOLE for total in getattr(run, what)] for run in runs], np.uint64)
        for what in ("executed", "accessed")
    )
    lanes = np.flatnonzero((executed != executed[0]).any(axis=0))
    for pc in lanes[:1].tolist():
        record, line = _decider(job.entry.code, pc), job.entry.code[pc].statement.location().line
        message = f"which lanes go on at line {line} depends on values in {names}"
        found.append(Dependence(location=record.statement.location(), message=message))
    for pc in np.flatnonzero((accessed != accessed[0]).any(axis=0) & (executed == executed[0]).all(axis=0)):
        location = job.entry.code[pc].statement.location()
        found.append(Dependence(location=location, message=f"its addresses depend on values in {names}"))
    return found


def _decider(code: Sequence[Record], pc: int) -> Record:
    """Return the statement that decides whether another runs: its own guard, or the branch before."""
    if code[pc].guard >= 0:
        return code[pc]
    branches = [
        record for record in code[:pc] if record.statement.opcode in ("bra", "brx") and record.guard >= 0
    ]
    return branches[-1] if branches else code[pc]
