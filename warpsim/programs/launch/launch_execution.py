"""One launch of a kernel: what is asked for, checked and prepared, executed, and reported.

Knows arguments, checks and recorders; what happens in a launch is the business of machine/run. The classes of
settings have the parameters of ``LaunchableKernel.__call__`` (launching.py), which explains them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from ...base.errors import OperandError, WarpsimError
from ...isa.displayed import Displayed
from ...machine.grid import (
    LANES,
    Launch,
    communicates,
    grid_workspace,
    resident_of,
    run,
    sizes_of,
    symbols_of,
)
from ...machine.host.arguments import arguments_of, buffers_before, changed_buffers, device_of
from ...machine.load.program import Module
from ...machine.native.objects import failed_self_test
from ...machine.run.engines import Engine, EngineName, Undefined, modes_of
from ...machine.run.events import Observer
from ...machine.run.execute import checked
from ...machine.run.schedules import Schedule
from ...machine.run.wave import Entry
from ...machine.state.device import Buffer
from ...machine.state.device import Device as DeviceState
from ...machine.state.device_runtime import DeviceRuntime, Printed
from ...machine.state.side_tables import SideTable
from ...machine.state.undefined_metadata import UndefinedMetadata
from ...observe.checks.defaults import check_declared, check_portable, checks_of, kernel_checks
from ...observe.checks.findings import Findings, LaunchFinding, Mode
from ...observe.checks.undefined_rows import Reaches, judge_rows, note_rows
from ...observe.recording.recorder import LaunchEvent, Recorder
from ...observe.recording.selection import Selection, selection_of
from ...observe.recording.strips import Timeline
from ...observe.recording.timeline import TimelineRecorder
from ...ptx.symbols import shown_variable
from .array_use import ArrayUse
from .device_output import note_runtime
from .fidelity import Fidelity, Shown, fidelity_of
from .finding_groups import grouped
from .helper_processes import Helpers, checked_processes
from .repeated.other_schedules import OtherSchedules, number_of_schedules
from .repeated.repetition import Repetition
from .repeated.unwritten_reads import any_questionable, judge_reads, next_fills, prove_reads
from .value_flow import Arguments

if TYPE_CHECKING:
    from distributed import Client

    from ...workbench.diagnosis.verdicts import Verdict  # a type of results: that room comes later
    from .spreading import Job

Size = int | Sequence[int]


@dataclass(frozen=True, kw_only=True)
class LaunchReport(Displayed):
    """What a launch did: ``hazards``, findings; ``fidelity``, how exact it was; ``events``, if recorded, and
    the ``timeline``, if it was asked for; ``printed``, the texts of device printf in their order.
    ``open_words`` are offsets in the memory of the device, by format, of sums of floats by several threads,
    which depend on the order that the schedule chose. ``processes`` have executed the CTAs. ``notes`` say how
    this process executes statements where it is not the usual way.
    """

    hazards: tuple[LaunchFinding, ...] = ()
    fidelity: Fidelity = Fidelity()  # noqa: RUF009 (it is frozen)
    events: tuple[LaunchEvent, ...] = ()
    timeline: Timeline | None = None
    printed: tuple[Printed, ...] = ()
    launched: Launched | None = field(default=None, repr=False, compare=False)
    open_words: Mapping[str, npt.NDArray[np.int64]] = field(default_factory=dict, repr=False, compare=False)
    processes: int = field(default=1, repr=False, compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)

    def __repr__(self) -> str:
        kernel = f" of {self.launched.kernel.name}" if self.launched is not None else ""
        found = Counter(finding.severity for finding in self.hazards)
        findings = ", ".join(f"{name} {count}" for name, count in found.items()) or "none"
        return f"<launch{kernel}: {'; '.join((str(self.fidelity), f'findings: {findings}', *self.notes))}>"

    def why(
        self,
        expected: Mapping[int | str, npt.ArrayLike] | None = None,
        tolerance: float = 0.0,
        reference: str | Callable[..., Any] | None = None,
    ) -> Verdict:
        """Return why the launch is wrong, as ``warpsim.why`` does, which executes it again and again.

        ``expected`` has the right content of arrays by argument, ``tolerance`` is relative, 0 compares bits.
        ``reference`` is a NumPy function of the kernel's arguments, "FILE.py:FUNCTION" or a name, whose
        formula the kernel should compute.
        The arrays of the launch must not have been changed since. Raises OperandError.
        """
        if self.launched is None:
            raise OperandError("the report has no launch to execute again: call warpsim.why")
        if self.launched.before is None:
            raise OperandError(
                "the device buffers of the launch are too large to be kept: set their content, and call "
                "warpsim.why"
            )
        verdicts = import_module(
            ".workbench.diagnosis.verdicts", __name__.partition(".")[0]
        )  # it comes after this room
        launch = verdicts.RepeatedLaunch(**self.launched._asdict())
        verdict: Verdict = verdicts.verdict_of(launch, expected or {}, tolerance, reference)
        return verdict


class Launched(NamedTuple):
    """What a launch was given, to execute it again.

    ``before`` has the arrays and buffers that it has changed; None where buffers are too large to keep.
    """

    kernel: Any
    sizes: Mapping[str, Any]
    args: Sequence[Any]
    options: Mapping[str, Any]
    before: Mapping[int, npt.NDArray[Any]] | None


class LaunchShape(NamedTuple):
    """The sizes of a launch, as they are given."""

    grid: Size
    block: Size
    cluster: Size | None
    shared_bytes: int
    cooperative: bool
    resident: int


class LaunchModes(NamedTuple):
    """How a launch is executed."""

    schedule: str | int
    engine: EngineName | Engine
    undefined: Undefined
    most_statements: int | None
    scheduler: str | Client | None
    processes: int | None = None


class LaunchWatch(NamedTuple):
    """What is checked, recorded and shown of a launch."""

    checks: Mode
    record: bool | str | Selection
    timeline: bool | str | Selection
    observers: Sequence[Observer]
    progress: Callable[[int, int], None] | None
    output: Callable[[str], object] | None
    schedules: int = 1


class LaunchExecution:
    """A launch of a kernel of a module. Raises OperandError for settings that are not possible."""

    def __init__(
        self, module: Module, entry: Entry, shape: LaunchShape, modes: LaunchModes, watch: LaunchWatch
    ) -> None:
        self.module, self.entry = module, entry
        self.shape, self.modes, self.watch = shape, modes, watch
        self.findings = Findings(mode=watch.checks)
        self.recorder = Recorder(selection_of(watch.record))
        self.times = TimelineRecorder(selection_of(watch.timeline))
        function = module.functions[entry.name]
        check_declared(self.findings, function.overrun)
        asked = ((self.recorder, watch.record), (self.times, watch.timeline))
        self.watching = (*watch.observers, *(recorder for recorder, wanted in asked if wanted))
        self.sizes = sizes_of(
            entry, shape.grid, shape.block, shape.cluster, shape.shared_bytes, module.target
        )
        self.resident = resident_of(shape.resident, self.sizes, module.target)
        self.engines, self.order = modes_of(modes.engine, modes.undefined), Schedule(modes.schedule)
        self.of_kernel = kernel_checks(self.findings, entry)
        ordered = communicates(entry) or self.sizes.cluster.count > 1
        self.arrays = () if watch.checks == "off" else (ArrayUse(self.findings, ordered=ordered),)
        check_portable(self.findings, self.sizes.cluster, function.kernel.location())
        self.processes = 1  # that have executed CTAs
        self.failed_self_tests = set[str]()  # of other processes
        self.before: Mapping[int, npt.NDArray[Any]] | None = {}
        self.arguments = Arguments(np.zeros(0, np.uint8), ())
        self.schedules = number_of_schedules(watch.schedules, modes.scheduler)

    def report(
        self, args: Sequence[Any], given: DeviceState | None, home: Callable[[], DeviceState]
    ) -> LaunchReport:
        """Execute the launch on a device, or on that of the arguments, or on ``home``; write arrays back.

        Raises what LaunchableKernel.__call__ raises.
        """
        device = _device(given, args, self.module, home)
        symbols_of(device, self.module)
        if self.watch.checks == "off":
            device.memory.fresh = None  # no check asks what this launch writes
        runtime = DeviceRuntime(heap=device.heap, write=self.watch.output)
        kept = len(device.memory.allocations)
        try:
            launch, counts = self._executed(device, args, runtime)
            temporary = given is None and device_of(args) is None
            note_runtime(self.findings, runtime, temporary=temporary)
        except WarpsimError as error:
            error.earlier = self.findings.collected()
            raise
        finally:
            device.heap.settle()
            device.memory.release(kept, device.heap.blocks)
        schedule = str(self.modes.schedule)
        shown = Shown(launch.inferred, launch.with_c, launch.additions.found())
        return LaunchReport(
            hazards=grouped(self.findings.found, self.module),
            fidelity=fidelity_of(self.module, counts, shown, self.arguments),
            open_words=launch.additions.open_words(),
            events=self.recorder.events(),
            timeline=replace(self.times.timeline(), schedule=schedule) if self.watch.timeline else None,
            printed=tuple(runtime.printed),
            processes=self.processes,
            notes=tuple(sorted(filter(None, {failed_self_test(), *self.failed_self_tests}))),
        )

    def _executed(
        self, device: DeviceState, args: Sequence[Any], runtime: DeviceRuntime
    ) -> tuple[Launch, npt.NDArray[np.int64]]:
        """Execute every CTA and write arrays back; return the launch and how often each statement ran."""
        if self.shape.cooperative:
            runtime.grid_workspace = grid_workspace(device, self.sizes.grid)
        arguments = arguments_of(device, self.entry.parameters, self.entry.parameter_bytes, args)
        launch = Launch(
            module=self.module,
            entry=self.entry,
            device=device,
            parameters=arguments.content,
            resident=self.resident,
            schedule=self.order,
            observers=self._observers,
            modes=self.engines,
            most_statements=checked(self.modes.most_statements),
            runtime=runtime,
            **vars(self.sizes),
        )
        modes = self.modes
        judged = self.watch.checks != "off" and modes.scheduler is None and isinstance(modes.engine, str)
        repetition = Repetition(launch) if judged or self.schedules > 1 else None
        buffers = buffers_before(args)
        counts = self._counts(launch)
        self._judge(launch, repetition if judged else None, counts)
        pairs = zip(self.entry.parameters, arguments.buffers, strict=True)
        named = [(shown_variable(given.name), buffer) for given, buffer in pairs if buffer is not None]
        for arrays in self.arrays:
            arrays.report(device.memory, named)
        if repetition is not None and self.schedules > 1:
            self._other_schedules(repetition, named).judge(self.schedules)
        for write_back in arguments.write_back:
            write_back()
        self.arguments = Arguments(launch.parameters, tuple(device.memory.allocations))
        self.before = None if buffers is None else arguments.before | changed_buffers(args, buffers)
        return launch, counts

    def _judge(self, launch: Launch, repetition: Repetition | None, counts: npt.NDArray[np.int64]) -> None:
        """Judge whether unwritten bytes and rows of undefined metadata matter: both at once, if neither."""
        rows, findings, reaching = launch.undefined.found, self.findings, _REACHING.of(self.entry)
        reads = repetition is not None and any_questionable(findings)
        fills = next_fills(self.entry) if reads else ()
        if repetition is not None and (reads or not reaching.issuperset(rows)):
            from .repeated import taint  # keys, which few launches need

            if taint.none_leaks(repetition, counts, rows):
                prove_reads(findings)
                return
        both = reads and rows and not reaching.issuperset(rows)
        if both and repetition and judge_reads(repetition, findings, counts, fills, frozenset(rows)):
            note_rows(rows, findings)
            return
        judge_rows(rows, _rows_reach(repetition, counts), findings, reaching)
        if repetition and reads:
            judge_reads(repetition, findings, counts, fills)

    def _observers(self) -> tuple[Observer, ...]:
        """Return the observers of one wave: new checks, and the recorders and observers of the launch."""
        return (*self._checks(self.findings), *self.arrays, *self.watching)

    def _checks(self, findings: Findings) -> tuple[Observer, ...]:
        """Return new checks of one wave, which add to the findings."""
        of_kernel = (check(findings) for check in self.of_kernel)
        return (*checks_of(findings, clusters=self.sizes.cluster.count > 1), *of_kernel)

    def _other_schedules(self, repetition: Repetition, named: Sequence[tuple[str, Buffer]]) -> OtherSchedules:
        return OtherSchedules(
            repetition=repetition,
            own=str(self.modes.schedule),
            findings=self.findings,
            checks=self._checks,
            buffers=named,
        )

    def _counts(self, launch: Launch) -> npt.NDArray[np.int64]:
        """Execute every CTA, here or spread over processes; return how often each statement ran."""
        scheduler, progress = self.modes.scheduler, self.watch.progress
        if scheduler is None:
            return self._counts_here(launch)
        from .spreading import check_spreadable, run_spread

        check_spreadable(launch, self.watching, self.modes.engine)
        return run_spread(launch, self._job(launch), scheduler, self.findings, progress)

    def _counts_here(self, launch: Launch) -> npt.NDArray[np.int64]:
        """Execute every CTA on this machine, over processes where that is worth it."""
        processes, progress = checked_processes(self.modes.processes), self.watch.progress
        if processes == 1 or self.watching or callable(self.modes.engine):
            return run(launch, progress)
        with Helpers(launch, self.findings, self.arrays, processes) as helpers:
            counts = run(replace(launch, ahead=helpers), progress) + helpers.counts
            self.processes, self.failed_self_tests = helpers.used, helpers.failed_self_tests
        return counts

    def _job(self, launch: Launch) -> Job:
        """Return what another process needs to execute a part of the launch."""
        from .spreading import Job

        source, memory = self.module.program.source, launch.device.memory
        return Job(
            text=source.text,
            file=source.file,
            target=self.module.target,
            kernel=self.entry.name,
            grid=launch.grid,
            block=launch.block,
            parameters=launch.parameters,
            shared_bytes=launch.shared_bytes,
            resident=launch.resident,
            schedule=self.modes.schedule,
            lanes=launch.lanes or LANES,
            checks=self.watch.checks,
            engine=cast(str, self.modes.engine),  # a name, as check_spreadable has found
            undefined=self.modes.undefined,
            most_statements=launch.most_statements,
            bound=tuple(self.module.bound),
            allocations=tuple(memory.allocations),
            symbols=launch.device.symbols[self.module],
            memory=memory.data,
            fresh=memory.fresh,
        )


# Statements whose rows of undefined metadata have reached a result.
_REACHING = SideTable[set[int]](lambda _: set())


def _rows_reach(repetition: Repetition | None, counts: npt.NDArray[np.int64]) -> Reaches | None:
    """Return what says what a launch leaves otherwise with other values in rows of undefined metadata."""
    if repetition is None or repetition.data is None:
        return None
    return lambda places: repetition.difference(
        repetition.copy(), counts, undefined=UndefinedMetadata(places)
    )


def _device(
    given: DeviceState | None, args: Sequence[Any], module: Module, home: Callable[[], DeviceState]
) -> DeviceState:
    """Return the device that is given, or that of buffers, or ``home``; OperandError for another chip's."""
    if given is None:
        given = device_of(args) or home()
    if not isinstance(given, DeviceState):
        raise OperandError(f"device={given!r}: expected a warpsim.Device")
    if given.target not in (None, module.target):
        raise OperandError(f"the device is {given.target}, but the module is loaded for {module.target}")
    return given
