"""A launch that stops: executed in a thread of its own, which waits before a statement as long as asked to.

``Recipe`` begins the same launch as often as it is asked to, each time from the memory as it was;
``Execution`` is an execution of it. A position in time is the count of statements that have been executed; a
statement that no lane executes, because its guard holds in none, does not count. Knows when the launch stops;
does not know why.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...base.environment import in_default_environment
from ...base.errors import OperandError, WarpsimError
from ...machine.grid import Launch, symbols_of
from ...machine.host.arguments import device_of
from ...machine.run import wave as waves
from ...machine.run.events import Observer, TensorAccess
from ...machine.run.pending import Pending
from ...machine.run.wave import Record, Wave
from ...machine.state.device import Device
from ...machine.state.lanes import DivergentPath, Lanes
from ...machine.state.memory_access import MemoryAccess
from ...machine.state.spaces import copied
from ...observe.checks.findings import LaunchFinding
from ...observe.stops.areas import Writes
from ...observe.stops.points import Moment
from ...programs.launch.launch_execution import LaunchExecution, LaunchModes, LaunchShape, LaunchWatch
from ...programs.launch.launching import LaunchableKernel
from .history import History


class _Abandoned(BaseException):
    """The session needs this execution no more."""


_LARGEST = 1 << 28  # bytes of a device of which there may be several
Plan = Callable[["Execution", Moment], object]  # what to stop for before a statement, None for nothing


@dataclass(frozen=True, kw_only=True)
class Ended:
    """The launch has ended: ``error`` is what ended it, None where every lane has exited."""

    error: WarpsimError | None


class Recipe:
    """A launch that can begin again and again. Raises OperandError for sizes or arguments that do not fit."""

    def __init__(
        self,
        kernel: LaunchableKernel,
        shape: LaunchShape,
        modes: LaunchModes,
        checks: Any,
        args: Sequence[Any],
    ) -> None:
        self.kernel, self.shape, self.modes, self.checks, self.args = kernel, shape, modes, checks, args
        self._given = device_of(args)
        home = self._given or kernel.home()
        symbols_of(home, kernel.module)
        memory = home.memory
        data = memory.snapshot()
        if data is None:
            raise OperandError("the memory of the device is too large to be kept for another execution")
        self._data, self._allocations = data, tuple(memory.allocations)
        self._spans, self._end = memory.spans(), memory.end
        self._fresh = None if memory.fresh is None else copied(memory.fresh, self._spans)
        self._heap, self._heap_bytes = home.heap.state(), home.heap.limit
        self.symbols = home.symbols[kernel.module]

    @property
    def allows_several(self) -> bool:
        """Whether several executions may wait at a time: each has a device of its own, which is not large."""
        return self._given is None and self._data.nbytes <= _LARGEST

    def device(self) -> Device:
        """Return a device as it was before the launch: that of the buffers among the arguments, or a new
        device.
        """
        device = self._given or Device(self.kernel.module.target, heap_bytes=self._heap_bytes)
        fresh = None if self._fresh is None else copied(self._fresh, self._spans)
        device.memory.restore(copied(self._data, self._spans), self._allocations, fresh, self._end)
        device.heap.restore(self._heap)
        device.symbols[self.kernel.module] = self.symbols
        return device

    def execution(self, watching: Observer, output: Callable[[str], object] | None) -> LaunchExecution:
        """Return the launch once more, watched. Raises OperandError."""
        watch = LaunchWatch(self.checks, False, False, (watching,), None, output)
        return _Stopping(self.kernel.module, self.kernel.entry, self.shape, self.modes, watch)


class _Stopping(LaunchExecution):
    """A launch that waits once more before its memory is given back."""

    def _counts(self, launch: Launch) -> Any:
        execution = self.watch.observers[0]
        assert isinstance(execution, Execution)
        execution.launch = launch
        try:
            counts = super()._counts(launch)
        except WarpsimError as error:
            execution.end(error)
            raise
        execution.end(None)
        return counts


class Execution(Observer):
    """One execution of a launch. ``time`` statements have been executed; ``moment`` is what comes next.

    ``waves`` are those that have begun, ``writes`` what was written to watched bytes since the last moment.
    """

    def __init__(self, recipe: Recipe, history: History) -> None:
        self.history = history
        self.time = 0
        self.moment: Moment | None = None
        self.ended: Ended | None = None
        self.launch: Launch | None = None
        self.waves: list[Wave | None] = []
        self.writes = Writes(self)
        self.interrupted = False
        self.reason: object = None
        self._codes: dict[int, tuple[Sequence[Record], list[Record]]] = {}
        self._plan: Plan = lambda *_: None
        self._abandoned = False
        self._crash: BaseException | None = None
        self._go, self._parked = threading.Semaphore(0), threading.Semaphore(0)
        self.printed: list[str] = []  # by device code
        self._execution = recipe.execution(self, self.printed.append)
        self._device = recipe.device()
        self._recipe = recipe
        self._thread = threading.Thread(target=self._work, name="warpsim-debug", daemon=True)
        self._thread.start()

    # --- the side of the session ---

    @property
    def findings(self) -> Sequence[LaunchFinding]:
        """What checks have found so far."""
        return self._execution.findings.found

    def resume(self, plan: Plan) -> object:
        """Go on until the plan stops the launch, or it ends; return what the plan gave.

        Raises what is wrong with the launch, and what the plan raises.
        """
        if self.ended is not None:
            return None
        self._plan, self.reason = plan, None
        self._go.release()
        while True:
            try:
                self._parked.acquire()
                break
            except KeyboardInterrupt:
                self.interrupted = True
        self.interrupted = False
        crash, self._crash = self._crash, None
        if crash is not None:
            raise crash
        return self.reason

    def abandon(self) -> None:
        """End the thread; nothing is written back."""
        self._abandoned = True
        self._go.release()
        self._thread.join()

    # --- the side of the launch ---

    @in_default_environment
    def _work(self) -> None:
        self._go.acquire()
        try:
            if not self._abandoned:
                self._execution.report(self._recipe.args, self._device, lambda: self._device)
        except _Abandoned:
            pass
        except WarpsimError as error:
            if self.ended is None:  # before the first statement, or in the plan
                self._crash = error
                self.ended = Ended(error=error)
        except BaseException as error:
            self._crash, self.ended = error, Ended(error=None)
        self._parked.release()

    def end(self, error: WarpsimError | None) -> None:
        """Wait at the end of the launch, as long as its memory is asked for."""
        if self.ended is None:
            self.ended = Ended(error=error)
            self._park()

    def _park(self) -> None:
        self._parked.release()
        self._go.acquire()
        if self._abandoned:
            raise _Abandoned

    def instrument(self, code: Sequence[Record]) -> Sequence[Record]:
        """Return records that ask the plan before they do anything."""
        known = self._codes.get(id(code))
        if known is None:
            known = self._codes[id(code)] = (code, [self._stopping(record) for record in code])
        return known[1]

    def _stopping(self, record: Record) -> Record:
        """Return a record that stops; it is bound when it is first executed, as all are."""

        def bind(_: Record) -> waves.Execution:
            inner = record.step

            def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> bool | None:
                self._note_before(wave, path, lanes)
                try:
                    return inner(wave, path, lanes)
                except Exception:
                    self.time -= 1  # a statement that fails has done nothing
                    raise

            return waves.Execution(step, record.flow, record.matrix)

        return replace(record, bind=bind)

    def _note_before(self, wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        number = wave.side_tables.get(_NUMBER)
        if number is None:
            number = wave.side_tables[_NUMBER] = len(self.waves)
            self.waves = [other if other and other.alive else None for other in self.waves]
            self.waves.append(wave)
        if self.time == len(self.history):
            self.history.add(number, path.pc, path.frame.depth, path.lanes)
        moment = Moment(time=self.time, number=number, wave=wave, path=path, lanes=lanes, pc=path.pc)
        self.moment = moment
        try:
            reason = self._plan(self, moment)
        except Exception as error:  # of the session, not of the launch
            reason = self._crash = error
        if reason is None and self.interrupted:
            reason = INTERRUPTED
        if reason is not None:
            self.reason = reason
            self._park()
        if self.writes.found:
            self.writes.found.clear()
        self.time += 1

    # --- writes to watched bytes ---

    def store(self, wave: Wave, access: MemoryAccess) -> None:
        """Note what lanes are about to write to watched bytes."""
        if self.writes.watched:
            self.writes.by_lanes(wave, access)

    atomic = mbarrier = store

    def copying(self, wave: Wave, access: MemoryAccess) -> None:
        """Note copies to watched bytes that lanes begin."""
        if self.writes.watched:
            self.writes.copying(wave, access)

    def landed(self, wave: Wave, access: MemoryAccess) -> None:
        """Note copies of lanes that write watched bytes now."""
        if self.writes.watched:
            self.writes.landed(wave, access)

    def tensor_access(self, wave: Wave, access: TensorAccess) -> None:
        """Note watched cells of tensor memory that the next operation writes."""
        if self.writes.watched:
            self.writes.tensor_access(wave, access)

    def issued(self, wave: Wave, path: DivergentPath, pending: Pending) -> None:
        """Note an operation that writes watched cells."""
        if self.writes.watched:
            self.writes.issued(wave, pending)

    def completed(self, wave: Wave, pending: Pending) -> None:
        """Note what an operation has written to watched bytes."""
        if self.writes.watched:
            self.writes.completed(wave, pending)


INTERRUPTED = object()
_NUMBER = object()  # of a wave, in its slots
