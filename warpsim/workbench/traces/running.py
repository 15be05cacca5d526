"""Running traces: execute their statements, and apply their ``//!`` lines in between.

Does not know what the lines look like (see reading.py) or how comparisons are made.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...base.environment import in_default_environment
from ...base.errors import located
from ...machine.run.engines import Engine, EngineName
from ...observe.recording.matrix_events import Event
from ...programs.interactive.machines import Machine, Warp, Warpgroup
from ...sums.execution.pipeline import Undefined
from .checks import Check, compare, compare_shared
from .reading import Load, Trace, as_trace_error

if TYPE_CHECKING:
    from ...observe.checks.wgmma.hazard import Hazard, Mode


@dataclass(kw_only=True)
class Run:
    """The result of running a trace: the machine afterwards, the executed matrix instructions, and the
    checks.
    """

    trace: Trace
    machine: Machine
    events: list[Event] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether every expectation held."""
        return all(check.passed for check in self.checks)

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """Broken ordering rules that were collected rather than raised, and warnings."""
        return self.machine.hazards


@in_default_environment
def run_trace(
    trace: Trace,
    *,
    target: str | None = None,
    engine: EngineName | Engine = "kernel",
    undefined: Undefined = "error",
    hazards: Mode = "error",
    progress: Callable[[int, int], None] | None = None,
) -> Run:
    """Execute a trace, on another ``target`` if it is given, and compare its results with its expectations.

    ``engine`` computes matrix instructions: its name, or a function as Warp takes it. ``hazards`` says what
    becomes of broken ordering rules in the trace of a warpgroup: errors, a collection (``Run.hazards``), or
    nothing. ``progress`` is called after each matrix instruction with the current offset in the text and the
    length of the text. Raises what Warp.run and Warpgroup.run raise, and TraceError where data does not fit
    its registers or shared memory.
    """
    machine = _machine(trace, target, engine, undefined, hazards)
    if trace.version:
        machine.version = trace.version
    run = Run(trace=trace, machine=machine)
    with closing(machine.steps(trace.statements)) as steps:
        for step in steps:
            if isinstance(step, Event):
                run.events.append(step)
                if progress:
                    progress(step.statement.start, len(step.statement.source.text))
            elif step.start in trace.loads:
                _apply(run, trace.loads[step.start])
    machine.finish(trace.end)
    return run


def _machine(
    trace: Trace, target: str | None, engine: EngineName | Engine, undefined: Undefined, hazards: Mode
) -> Machine:
    """Return the machine that executes the trace, on another ``target`` if it is given."""
    target = target or trace.target
    if trace.shared_bytes is None:
        return Warp(target, engine=engine, undefined=undefined)
    return Warpgroup(target, trace.shared_bytes, engine=engine, undefined=undefined, hazards=hazards)


def _apply(run: Run, load: Load) -> None:
    with located(lambda: load.location), as_trace_error():
        if load.shared:
            _apply_shared(run, load)
        elif load.expected:
            run.checks.append(compare(run.machine, load.registers, load.words, load.location))
        else:
            run.machine.load(load.registers, load.words, load.location)


def _apply_shared(run: Run, load: Load) -> None:
    if load.expected:
        run.checks.append(compare_shared(run.machine, load.registers, load.words, load.location))
    else:
        run.machine.write_shared(load.registers, load.words, load.location)
