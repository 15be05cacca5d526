"""A kernel run again and again on tags instead of data: what every matrix instruction is given, byte by byte.

Nothing is multiplied: D is a tag of its own. What the runs have in common is checked: which lanes execute
which statement, and at which addresses. Knows launches and bytes; does not know what fragments mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import Location, OperandError, WarpsimError, present
from ...host.arguments import Arguments, arguments_of, device_of
from ...isa.instruction import Instruction
from ...isa.operand_places.placements import ScaleSelectors
from ...machine.bind.tuning import Dimensions
from ...machine.grid import (
    BLOCK_LIMITS,
    Launch,
    check_block,
    dimensions,
    placed,
    run,
    shared_total,
    symbols_of,
)
from ...machine.load.program import Module
from ...machine.run.geometry import Cluster
from ...machine.run.schedules import Schedule
from ...machine.run.wave import Entry, Parameter, Record
from ...machine.state.device import Device
from ...machine.state.spaces import Allocation
from .tagged_observer import Event, Watch
from .tags import Indices, Tagging

Size = int | Sequence[int]
Numbers = npt.NDArray[np.intp]
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
class Snapshot:
    """The shared memory ``(runs, bytes)`` of execution ``event`` of a statement, and its descriptors."""

    event: int
    seen: npt.NDArray[np.uint8]
    words: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Given:
    """What one matrix statement was given in all its executions.

    ``places`` (n, 5): x, y, z of the CTA, its warp, and the how many-th time; ``bytes`` by operand
    (n, lanes, registers, bytes of a register): indices as ``Tagging.decoded`` has them. Of operands among
    ``tiles``, which lie in shared memory, (n, rows along m or n, k, bytes of an element). ``times (n,)``
    order the executions of all statements; ``ignores_c (n,)`` marks those with scale-d false.
    """

    record: Record
    instruction: Instruction
    selector: int
    scale_selectors: ScaleSelectors
    places: npt.NDArray[np.int64]
    bytes: dict[str, Indices]
    times: Indices
    ignores_c: npt.NDArray[np.bool_]
    tiles: frozenset[str] = frozenset()
    snapshots: tuple[Snapshot, ...] = ()

    @property
    def location(self) -> Location:
        """The place of the statement in the text."""
        return self.record.statement.location()


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
    watch = Watch(tag, np.zeros(size, np.uint64), np.zeros(size, np.uint64))
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
        index = np.arange(tagged.start, tagged.start + tagged.size)
        device.memory.bytes_of(present(tagged.allocation, "allocation"))[:] = tagging.tags(index, number)


# --- all runs --------------------------------------------------------------------------------------


def movement_of(job: Job) -> Movement:
    """Return what runs on tags show. Raises OperandError, and what the kernel raises on its data."""
    buffers = _sized(job)
    tagging = Tagging(total=sum(buffer.size for buffer in buffers))
    runs = list[Watch]()
    for number in range(tagging.runs):
        try:
            runs.append(_run(job, tagging, number)[0])
        except WarpsimError as error:
            _run(job, tagging, None)  # raises what is wrong without any tags
            return _broken(buffers, tagging, error)
    dependences = tuple(_dependences(job, runs))
    given = tuple(_given(tagging, runs))
    return Movement(buffers=tuple(buffers), tagging=tagging, given=given, dependences=dependences)


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
    executed, accessed = (np.array([getattr(run, what) for run in runs]) for what in ("executed", "accessed"))
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


def _given(tagging: Tagging, runs: Sequence[Watch]) -> list[Given]:
    """Return what each matrix statement was given, if it was executed alike in all runs."""
    tables = [_by_statement(run.events) for run in runs]
    found = list[Given]()
    for pc, events in sorted(tables[0].items()):
        places, order = _ordered(events)
        counts = [len(event.places) for event in events]
        others = [table.get(pc, []) for table in tables[1:]]
        if any(not run or not np.array_equal(_ordered(run)[0], places) for run in others):
            continue
        number = {form: n for n, form in enumerate(dict.fromkeys(event.instruction for event in events))}
        which = np.repeat([number[event.instruction] for event in events], counts)[order]
        times = np.repeat([event.number for event in events], counts)[order]
        ignores = np.repeat([not event.inputs.scale_d for event in events], counts)[order]
        for form, own in number.items():
            chosen = which == own
            alike = [[event for event in table if event.instruction == form] for table in (events, *others)]
            if all(map(len, alike)):
                settings = places[chosen], times[chosen], ignores[chosen]
                found.append(_of_form(tagging, alike, settings))
    return found


def _of_form(tagging: Tagging, runs: Sequence[Sequence[Event]], settings: tuple[Any, Any, Any]) -> Given:
    """Return what a statement was given in its executions as one instruction: a descriptor may state others.

    ``settings`` are places, times and ignores_c.
    """
    first, every = runs[0][0], [event for events in runs for event in events]
    orders = [_ordered(events)[1] for events in runs]
    roles = [
        role for role in first.inputs.registers if all(role in event.inputs.registers for event in every)
    ]
    return Given(
        record=first.record,
        instruction=first.instruction,
        selector=first.inputs.selector,
        scale_selectors=first.inputs.scale_selectors,
        places=settings[0],
        bytes={role: _decoded(tagging, runs, orders, role) for role in roles},
        times=settings[1],
        ignores_c=settings[2],
        tiles=first.tiles,
        snapshots=tuple(_snapshots(runs, orders)) if first.record.statement.opcode == "tcgen05" else (),
    )


def _snapshots(runs: Sequence[Sequence[Event]], orders: Sequence[Numbers]) -> Iterator[Snapshot]:
    """Yield what was kept of the shared memory of executions, in all runs."""
    for place, number in enumerate(orders[0].tolist()):
        event = runs[0][number]
        alike = [events[int(order[place])] for events, order in zip(runs, orders, strict=True)]
        seen = [other.inputs.shared for other in alike]
        words = {role: word for role in "ab" if (word := event.inputs.descriptor(role)) is not None}
        kept = [memory for memory in seen if memory is not None]
        if len(kept) == len(runs):
            own = {role: int(word[0]) for role, word in words.items()}
            yield Snapshot(event=place, seen=np.stack(kept), words=own)


def _by_statement(events: Sequence[Event]) -> dict[int, list[Event]]:
    table: dict[int, list[Event]] = {}
    for event in events:
        table.setdefault(event.pc, []).append(event)
    return table


def _ordered(events: Sequence[Event]) -> tuple[npt.NDArray[np.int64], Numbers]:
    """Return places by CTA, warp and count of executions of the warp, and their order."""
    places = np.concatenate([event.places for event in events])
    order = np.lexsort(places.T[::-1])
    sorted_places = places[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (sorted_places[1:] != sorted_places[:-1]).any(axis=1)
    first = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
    return np.column_stack([sorted_places, np.arange(len(order)) - first]), order


def _decoded(
    tagging: Tagging, runs: Sequence[Sequence[Event]], orders: Sequence[Numbers], role: str
) -> Indices:
    """Return ``(n, 32, registers, bytes)``: the indices of the bytes of one operand."""
    seen = []
    for events, order in zip(runs, orders, strict=True):
        words = np.concatenate([event.inputs.registers[role] for event in events])
        seen.append(words if _is_counted(order) else words[order])
    return tagging.decoded(np.stack(seen)[..., None].view(np.uint8))


def _is_counted(order: Numbers) -> bool:
    """Return whether an order changes nothing."""
    return bool((order[1:] > order[:-1]).all())
