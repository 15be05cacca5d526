"""CTAs of a launch on a Dask cluster: waves go out in parts, and what they have written comes back.

Only for kernels whose CTAs cannot wait for each other: each part starts with the memory as it was before the
launch. Bytes come back that were written, even if with what was there before, and are put in place in the
order of the parts, so that the last CTA stays, as here. What one part has read and another has written is a
race between CTAs, and a finding. Knows memory and parts; does not know how a cluster is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...base.cluster.connection import connected, thread_total
from ...base.cluster.distribution import Sent, in_order
from ...base.errors import OperandError
from ...isa.warps import WARP
from ...machine.bind.tuning import Dimensions
from ...machine.grid import LANES, Launch, communicates, run
from ...machine.load.program import Module, load_module
from ...machine.opcodes.control.system_calls import calls_the_system
from ...machine.run.addition_orders import OpenAddition, Place
from ...machine.run.engines import modes_of
from ...machine.run.schedules import Schedule
from ...machine.state.device import Device
from ...machine.state.spaces import DEVICE_BASE, Allocation, Bytes
from ...machine.state.undefined_metadata import UndefinedField
from ...observe.checks.defaults import checks_of
from ...observe.checks.findings import Findings, LaunchFinding, Mode
from .touched_bytes import READ, WRITTEN, Touched

if TYPE_CHECKING:
    from distributed import Client

    from ...machine.run.wave import Entry

_PARTS = 4  # for each thread of the cluster, so that all end at about the same time
_LEAST = 1024  # lanes of a wave; fewer together are slower


@dataclass(frozen=True, kw_only=True)
class Job:
    """What every part of a launch needs, to be sent once."""

    text: str
    file: str
    target: str
    kernel: str
    grid: Dimensions
    block: Dimensions
    parameters: Bytes
    shared_bytes: int
    resident: int
    schedule: str | int
    lanes: int
    checks: Mode
    engine: str
    undefined: str
    most_statements: int | None  # of each part
    bound: tuple[str, ...]  # the functions whose code the module has, in its order
    allocations: tuple[Allocation, ...]
    symbols: Mapping[str, int]
    memory: Bytes
    fresh: Bytes | None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a part has done: the bytes that it has written, and where; what it has read; findings, counts."""

    places: npt.NDArray[np.int64]
    content: Bytes
    read: Bytes  # a bit for each byte of memory
    findings: tuple[LaunchFinding, ...]
    counts: npt.NDArray[np.int64]
    ctas: int
    inferred: Mapping[int, str]
    with_c: Mapping[int, set[bool]]
    additions: Mapping[Place, OpenAddition]
    undefined: Mapping[int, UndefinedField]


# --- on a worker -----------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def _module(text: str, file: str, target: str, bound: tuple[str, ...]) -> Module:
    module = load_module(text, file, target)
    module.bind(bound)  # in the same order as here: program counters are those of the other side
    return module


def execute_part(job: Job, first: int, count: int) -> Outcome:
    """Run ``count`` waves of a launch, from ``first`` on, on a copy of the memory. Raises their errors."""
    module, device = _module(job.text, job.file, job.target, job.bound), Device(job.target)
    memory, findings, touched = device.memory, Findings(mode=job.checks), Touched()
    memory.restore(job.memory.copy(), job.allocations, None if job.fresh is None else job.fresh.copy())
    device.symbols[module] = dict(job.symbols)
    launch = Launch(
        module=module,
        entry=module.entry(job.kernel),
        device=device,
        grid=job.grid,
        block=job.block,
        parameters=job.parameters,
        shared_bytes=job.shared_bytes,
        resident=job.resident,
        schedule=Schedule(job.schedule),
        observers=lambda: (*checks_of(findings), touched),
        modes=modes_of(job.engine, job.undefined),  # type: ignore[arg-type]
        lanes=job.lanes,
        most_statements=job.most_statements,
    )
    part = replace(launch, first=first, count=count)
    counts = run(part)
    places = np.flatnonzero(touched.marks & WRITTEN)
    return Outcome(
        places=places,
        content=memory.data[places],
        read=np.packbits(touched.marks & READ),
        findings=tuple(findings.found),
        counts=counts,
        ctas=part.total,
        inferred=part.inferred,
        with_c=part.with_c,
        additions=part.additions.found(),
        undefined=part.undefined.found,
    )


# --- here ------------------------------------------------------------------------------------------


def why_together(entry: Entry, cluster: int) -> str:
    """Return why the CTAs of a kernel, in clusters of so many, stay on this machine; "" if they need not."""
    if communicates(entry):
        return (
            "the module has atomics, fences or ordered accesses, by which CTAs may wait for each other; such "
            "kernels are launched here, without scheduler"
        )
    if cluster > 1:
        return "CTAs of a cluster reach each other's memory; launch them here"
    return "printf, malloc and assertions stay here" if calls_the_system(entry) else ""


def check_spreadable(launch: Launch, others: Sequence[Any], engine: Any) -> None:
    """Check that the CTAs may go to several machines; raises OperandError."""
    if why := why_together(launch.entry, launch.cluster.count):
        raise OperandError(f"scheduler: {why}")
    if others or callable(engine):
        raise OperandError("scheduler: record, observers and engines of the caller stay here")


def run_spread(
    launch: Launch,
    job: Job,
    scheduler: str | Client,
    findings: Findings,
    progress: Callable[[int, int], None] | None = None,
) -> npt.NDArray[np.int64]:
    """As grid.run, over a cluster. Raises what parts raise, ClusterError, and UndefinedBehavior for races."""
    counts, done = np.zeros(len(launch.module.code), np.int64), 0
    memory = launch.device.memory
    written, read = np.zeros((2, memory.data.size), np.bool_)
    with connected(scheduler) as client:
        job = replace(job, lanes=_lanes(launch, thread_total(client)))
        pieces = _pieces(replace(launch, lanes=job.lanes), thread_total(client), Sent(job))
        for outcome in in_order(execute_part, pieces, client):
            others = np.unpackbits(outcome.read, count=memory.data.size).view(np.bool_)
            own = np.zeros_like(written)
            own[outcome.places] = True
            _check_races(launch, findings, (written & others) | (read & own))
            written |= own
            read |= others
            memory.data[outcome.places] = outcome.content
            if memory.fresh is not None:
                memory.fresh[outcome.places] = 0
            for number, finding in enumerate(outcome.findings):
                findings.add(("part", finding.kind, finding.location.line, number), finding)
            counts += outcome.counts
            _merge(launch, outcome)
            done += outcome.ctas
            if progress:
                progress(done, launch.total)
    return counts


def _merge(launch: Launch, outcome: Outcome) -> None:
    """Take what showed of statements while a part was executed."""
    launch.inferred.update(outcome.inferred)
    launch.additions.elsewhere.update(outcome.additions)
    for pc, first in outcome.undefined.items():
        launch.undefined.found.setdefault(pc, first)
    for pc, added in outcome.with_c.items():
        launch.with_c.setdefault(pc, set()).update(added)


def _lanes(launch: Launch, threads: int) -> int:
    """Return lanes of a wave: fewer than here where there would be less than one for each thread."""
    lanes = -(-launch.block[0] * launch.block[1] * launch.block[2] // WARP) * WARP
    return int(np.clip(launch.total * lanes // max(threads, 1), min(_LEAST, LANES), LANES))


def _pieces(launch: Launch, threads: int, job: Sent) -> Iterator[tuple[Any, ...]]:
    """Yield the arguments of every part."""
    waves = launch.wave_count
    each = max(waves // (_PARTS * max(threads, 1)), 1)
    for first in range(0, waves, each):
        yield job, first, min(each, waves - first)


def _check_races(launch: Launch, findings: Findings, both: npt.NDArray[np.bool_]) -> None:
    """No part has read what another has written."""
    if findings.mode == "off" or not both.any():
        return
    address = DEVICE_BASE + int(both.argmax())
    allocation = launch.device.memory.allocation_at(address)
    message = (
        f"race: byte {address - allocation.address} of the {allocation} is written by some CTAs and read by "
        "others, which nothing orders"
    )
    place = launch.module.functions[launch.entry.name].kernel.location()
    findings.add(
        ("race", "CTAs"), LaunchFinding(kind="race", severity="error", message=message, location=place)
    )
