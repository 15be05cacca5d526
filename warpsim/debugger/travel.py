"""A launch that goes forwards and backwards in time, and the lane that is looked at while it stands.

A position in time is the count of statements that have been executed. To go back the launch is executed again
from its beginning, up to the position: it is deterministic. Arrays among the arguments are never written.
Knows points, steps and the focus; does not know commands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Self

import numpy as np

from ..checks.findings import LaunchFinding, Mode
from ..errors import Fault, Location, OperandError, WarpsimError
from ..host.launch_execution import LaunchModes, LaunchShape
from ..host.launching import LaunchableKernel
from ..isa.warps import WARP
from ..machine.run.wave import Record, Wave
from .break_places import source_line
from .call_frames import Call, calls_of
from .checkpoints import Checkpoints
from .contexts import At, Standing, map_addresses, parameter_values, shapes_of, standing
from .executions import INTERRUPTED, Execution, Moment, Plan, Recipe
from .expressions import Expression
from .halts import Stop
from .history import History
from .points import Breakpoint, Change, Hit, MemoryWatch, Watchpoint
from .stepping import Done, Line, Origin, Unit, call_before, step_back
from .words_shown import Array, Value


def _is_grave(finding: LaunchFinding) -> bool:
    """Return whether a finding stops the launch: an error, or a read of what was never written."""
    return finding.severity == "error" or finding.kind == "uninitialised"


class Interrupted(OperandError):
    """The launch was interrupted on the way to another time; the session stands where it was interrupted."""


@dataclass(frozen=True, kw_only=True)
class Focus:
    """The lane that is looked at."""

    cta: tuple[int, int, int] = (0, 0, 0)
    warp: int = 0
    lane: int = 0

    def __str__(self) -> str:
        return f"CTA ({', '.join(map(str, self.cta))}), warp {self.warp}, lane {self.lane}"


@dataclass(frozen=True, kw_only=True)
class Running:
    """How a launch of a session is executed: parameters of a launch (host/launching.py), and a tolerance."""

    cluster: Any = None
    shared_bytes: int = 0
    cooperative: bool = False
    resident: int = 1
    schedule: str | int = "program"
    checks: Mode = "error"
    engine: Any = "kernel"
    undefined: Any = "error"
    most_statements: int | None = None
    tolerance: float = 0.0  # within which arrays are as expected, relative to the largest value


class Travel:
    """A launch that can be stopped, and executed forwards and backwards; commands are in session.py.

    ``expected`` are the right contents of arrays, by argument, which the end of the launch is compared with.
    ``running`` are the fields of Running. Raises OperandError for a launch that is not possible.
    """

    def __init__(
        self,
        kernel: LaunchableKernel,
        grid: Any,
        block: Any,
        args: Sequence[Any] = (),
        *,
        expected: Mapping[int, Any] | None = None,
        **running: Any,
    ) -> None:
        self.kernel, self.args = kernel, args
        self.expected = {index: np.asarray(array) for index, array in (expected or {}).items()}
        self.given = Running(**running)
        how = self.given
        self.shape = LaunchShape(grid, block, how.cluster, how.shared_bytes, how.cooperative, how.resident)
        modes = LaunchModes(how.schedule, how.engine, how.undefined, how.most_statements, None)
        self.recipe = Recipe(kernel, self.shape, modes, how.checks, args)
        self.module = kernel.module
        self.shapes = shapes_of(args)
        self.history = History()
        self.execution: Execution | None = None
        self.focus = Focus()
        self.breakpoints: list[Breakpoint] = []
        self.watchpoints: list[Watchpoint] = []
        self.numbers = 0
        self.last = Stop(kind="start", time=0)
        self.checkpoints = Checkpoints(lambda: Execution(self.recipe, self.history))
        self._taken = 0
        self._level = 0, self.focus, 0
        self._pace = 0.0  # seconds that a statement takes
        self.log: Callable[[str], object] | None = None  # takes the messages of breakpoints that log
        self.origins: Any = None  # of operands, found when they are asked for
        self._lines: dict[int, Line] = {}
        self._parameters: dict[str, Value] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the execution; memory of buffers among the arguments is as before the session."""
        self.checkpoints.close()
        if self.execution is not None:
            self.execution.abandon()
            self.execution = None
            self.recipe.device()

    def interrupt(self) -> None:
        """Stop the launch before its next statement; may be called from a signal handler or a thread."""
        if self.execution is not None:
            self.execution.interrupted = True

    def output(self) -> str:
        """Return what device code has printed and was not returned before."""
        printed = [] if self.execution is None else self.execution.printed
        texts, self._taken = printed[self._taken :], max(self._taken, len(printed))
        return "".join(texts)

    # --- where the session stands ---

    @property
    def time(self) -> int:
        """How many statements have been executed."""
        if self.execution is None:
            return 0
        return self.execution.time

    @property
    def moment(self) -> Moment | None:
        """The statement that is executed next, None before the launch and at its end."""
        execution = self.execution
        return None if execution is None or execution.ended is not None else execution.moment

    @property
    def findings(self) -> Sequence[LaunchFinding]:
        """What checks have found so far."""
        return () if self.execution is None else self.execution.findings

    def line_of(self, pc: int) -> Line:
        """Return the line that stepping goes by."""
        found = self._lines.get(pc)
        if found is None:
            found = self._lines[pc] = source_line(self.module.code[pc])
        return found

    def wave(self) -> tuple[int, Wave, int]:
        """Return number and wave of the focus, and the number of its lane there. Raises OperandError."""
        if self.execution is None:
            raise OperandError("the kernel is not running: run, or start, begins the launch")
        for number, wave in enumerate(self.execution.waves):
            if wave is None:
                continue
            ctas = np.flatnonzero((wave.ctas == self.focus.cta).all(axis=1))
            if ctas.size:
                return number, wave, (int(ctas[0]) * wave.warps + self.focus.warp) * WARP + self.focus.lane
        raise OperandError(f"{self.focus}: this CTA has not begun, or others have begun since it ended")

    def standing(self) -> Standing:
        """Return where the focus stands. Raises OperandError where the lane does not run."""
        _, wave, lane = self.wave()
        execution = self.execution
        assert execution is not None
        if execution.ended is not None and execution.ended.error is None:
            raise OperandError("the launch has ended: run begins it again, reverse-continue goes back")
        moment = execution.moment
        if moment is not None and moment.wave is wave and moment.path.lanes.mask[lane]:
            path, record = moment.path, moment.record
            return Standing(wave=wave, lane=lane, frame=path.frame, record=record, path=path, waits=None)
        found = standing(wave, lane)
        if found is None:
            raise OperandError(f"{self.focus} has exited, or was never started")
        return found

    def place(self) -> Location:
        """Return the location of the statement of the focus; before a launch and at its end that of the first
        statement of the kernel.
        """
        try:
            return self.standing().record.statement.location()
        except OperandError:
            self.module.bind([self.kernel.name])
            return self.module.code[self.kernel.entry.start].statement.location()

    def at(self) -> At:
        """Return the statement of the focus, to evaluate expressions at. Raises OperandError."""
        here = self.standing()
        level = self.level()
        call = self.frames()[level][0] if level else None
        if call is None:
            return self._at(here.wave, here.frame, here.record)
        return self._at(here.wave, call.frame, call.record)

    def frames(self) -> list[list[Call]]:
        """Return the calls of the lane of the focus, the innermost first; those that a compiler has inlined
        stand together with that which has a frame. Raises OperandError.
        """
        found = list[list[Call]]()
        for call in calls_of(self.standing(), self.kernel.name):
            if found and found[-1][0].frame is call.frame:
                found[-1].append(call)
            else:
                found.append([call])
        return found

    def level(self) -> int:
        """Return the number of the call that is looked at: 0, the innermost, after each move."""
        time, focus, level = self._level
        return level if (time, focus) == (self.time, self.focus) else 0

    def look_at_frame(self, level: int) -> None:
        """Look at a call until the launch or the focus moves."""
        self._level = self.time, self.focus, level

    def at_record(self, here: Standing, record: Record) -> At:
        """Return a statement of the calls around a lane, to evaluate expressions at."""
        return self._at(here.wave, here.frame, record)

    def _at(self, wave: Wave, frame: Any, record: Any) -> At:
        if self._parameters is None:
            self._parameters = self._named_arguments(wave.memories.parameters)
        return At(
            wave=wave,
            frame=frame,
            record=record,
            time=self.time,
            arguments=self._parameters,
            plain=self.module.code,
            shapes=self.shapes,
        )

    def evaluate(self, expression: Expression) -> tuple[Value, int]:
        """Return the value of an expression at the focus, and the number of its lane in the wave; at the end
        of a launch, in the kernel itself.
        """
        _, wave, lane = self.wave()
        if self.execution is not None and self.execution.ended is not None:
            at = self._at(wave, wave.frame, wave.code[wave.entry.start])
            return expression.value(at), lane
        return expression.value(self.at()), lane

    def argument_address(self, index: int) -> int | None:
        """Return the address that an argument is; None where it is no pointer or nothing runs."""
        execution = self.execution
        if execution is None or execution.launch is None:
            return None
        if self._parameters is None:
            self._parameters = self._named_arguments(execution.launch.parameters)
        value = self._parameters.get(f"arg{index}")
        return None if value is None else int(value.integers())

    def _named_arguments(self, content: Array) -> dict[str, Value]:
        """Return the parameters that are words by their names, and where arrays behind tensor maps begin."""
        entry = self.kernel.entry
        return map_addresses(self.args, entry, content) | parameter_values(entry, content)

    def look_at(self, wave: Wave, lane: int) -> None:
        """Move the focus to a lane of a wave."""
        x, y, z = wave.ctas[wave.cta[lane]].tolist()
        thread = int(wave.thread[lane])
        self.focus = Focus(cta=(x, y, z), warp=thread // WARP, lane=thread % WARP)

    # --- forwards ---

    def begin(self) -> Execution:
        """Begin the launch again, before its first statement."""
        if self.execution is not None:
            self.execution.abandon()
        return self._go_on_with(Execution(self.recipe, self.history))

    def _go_on_with(self, execution: Execution) -> Execution:
        """Take another execution of the launch in place of that which there is."""
        self._parameters = None
        self.execution = execution
        self._set_areas()
        return execution

    def _behind(self, time: int) -> Execution:
        """Return an execution that stands at a position or before it: a checkpoint, or the beginning."""
        found = self.checkpoints.take(time)
        if found is None:
            return self.begin()
        if self.execution is not None:
            self.execution.abandon()
        return self._go_on_with(found)

    def _resume(self, execution: Execution, plan: Plan) -> object:
        """Go on; no checkpoint is made meanwhile."""
        with self.checkpoints.moving():
            return execution.resume(plan)

    def start(self) -> Stop:
        """Begin the launch, and stop before its first statement."""
        execution = self.begin()
        self._resume(execution, lambda *_: True)
        if execution.moment is not None:
            self._follow(execution.moment, execution.moment.lanes.mask)
        return self._stopped("start")

    def forward(self, done: Done | None = None) -> Stop:
        """Go on until a step is done, or anything else stops the launch."""
        execution = self.execution or self.begin()
        if execution.ended is not None:
            return self._stopped("end")
        known = len(execution.findings)
        self._rewatch(execution)

        def plan(running: Execution, moment: Moment) -> Stop | None:
            changes = self._changes(running, moment)
            if changes:
                return Stop(kind="watch", time=moment.time, changes=changes)
            found = [each for each in running.findings[known:] if _is_grave(each)]
            if found:
                return Stop(kind="finding", time=moment.time, finding=found[0])
            hit = self._hit(moment)
            if hit is not None:
                return Stop(kind="breakpoint", time=moment.time, hit=hit)
            return Stop(kind="step", time=moment.time) if done and done(moment) else None

        return self._settle(self._resume(execution, plan))

    def _settle(self, reason: object) -> Stop:
        """Return the stop of a reason, and move the focus there."""
        execution = self.execution
        assert execution is not None
        if execution.ended is not None:
            changes = self._changes(execution, None)
            if changes:
                self._look_at_change(changes[0])
                return self._stopped("end" if execution.ended.error is None else "error", changes=changes)
            return self._stopped("end")
        moment = execution.moment
        assert moment is not None
        if reason is INTERRUPTED:
            self._follow(moment, moment.lanes.mask)
            return self._stopped("interrupt")
        assert isinstance(reason, Stop)
        if reason.hit is not None:
            self._follow(moment, reason.hit.lanes)
            if reason.hit.point.temporary:
                self.breakpoints.remove(reason.hit.point)
        elif reason.changes:
            self._look_at_change(reason.changes[0])
        elif reason.kind == "finding":
            self._follow(moment, moment.lanes.mask)
        self.last = reason
        return reason

    def _stopped(self, kind: Any, **more: Any) -> Stop:
        execution = self.execution
        error = None if execution is None or execution.ended is None else execution.ended.error
        if kind in ("end", "time") and execution is not None and execution.moment is not None:
            self._keep_focus(execution.moment)
        if error is not None:
            kind = "error"
            if execution is not None and execution.moment is not None:
                self._look_at_error(execution.moment, error)
        self.last = Stop(kind=kind, time=self.time, error=error, **more)
        return self.last

    def _look_at_error(self, moment: Moment, error: WarpsimError) -> None:
        """Move the focus to the lane whose fault has ended the launch, else to lanes that ran."""
        lane = error.lane if isinstance(error, Fault) else None
        if lane is None:
            self._follow(moment, moment.lanes.mask)
        else:
            self.look_at(moment.wave, lane)

    def _keep_focus(self, moment: Moment) -> None:
        """Move the focus to the last lanes that ran, where its own CTA is gone."""
        try:
            self.wave()
        except OperandError:
            self.look_at(moment.wave, int(moment.lanes.index[0]))

    def _look_at_change(self, change: Change) -> None:
        wave = self.execution.waves[change.number] if self.execution is not None else None
        if wave is not None:
            self.look_at(wave, change.lanes[0])

    def _follow(self, moment: Moment, mask: Any) -> None:
        """Keep the focus where it is among some lanes, else move it to the first of them."""
        try:
            number, _, lane = self.wave()
        except OperandError:
            number, lane = -1, 0
        if number != moment.number or not mask[lane]:
            self.look_at(moment.wave, int(np.flatnonzero(mask)[0]))

    # --- points ---

    def watch(self, point: Watchpoint) -> None:
        """Watch a register or bytes from now on."""
        self.watchpoints.append(point)
        self._set_areas()

    def forget(self, points: Sequence[Breakpoint | Watchpoint]) -> None:
        """Delete points."""
        self.breakpoints = [point for point in self.breakpoints if point not in points]
        self.watchpoints = [point for point in self.watchpoints if point not in points]
        self._set_areas()

    def _set_areas(self) -> None:
        if self.execution is not None:
            memories = (watch for watch in self.watchpoints if isinstance(watch, MemoryWatch))
            self.execution.writes.watched = [watch.area for watch in memories]

    def _holds(self, expression: Expression, moment: Moment) -> Any:
        return expression.holds(self._at(moment.wave, moment.path.frame, moment.record))

    def _hit(self, moment: Moment) -> Hit | None:
        """Return the first breakpoint that stops here; those that log do not."""
        for point in self.breakpoints:
            lanes = point.lanes(moment, self._holds)
            if lanes is None:
                continue
            if not point.takes_hit():
                continue
            if point.log is None:
                return Hit(point=point, time=moment.time, lanes=lanes)
            if self.log is not None:
                self._follow(moment, lanes)
                self.log(point.log)
        return None

    def _rewatch(self, execution: Execution) -> None:
        """Look at what is watched as it is now."""
        for watch in self.watchpoints:
            watch.begin(execution)
            if execution.moment is not None:
                list(watch.changes(execution, execution.moment))

    def _changes(self, execution: Execution, moment: Moment | None) -> tuple[Change, ...]:
        found = [
            change
            for watch in self.watchpoints
            if watch.enabled
            for change in watch.changes(execution, moment)
            if watch.condition is None or self._is_meant(execution, change)
        ]
        for change in found:
            change.point.hits += 1
        return tuple(found)

    def _is_meant(self, execution: Execution, change: Change) -> bool:
        wave = execution.waves[change.number]
        condition = change.point.condition
        if wave is None or condition is None:
            return False
        holds = condition.holds(self._at(wave, wave.frame, wave.code[change.pc]))
        return bool(np.broadcast_to(holds, (wave.lanes,))[list(change.lanes)].any())

    # --- backwards, and to any time ---

    def go_to(self, time: int) -> Stop:
        """Go to a position, forwards or backwards, past all points. Raises OperandError for one below 0."""
        if time < 0:
            raise OperandError("a position in time is at least 0")
        execution = self.execution
        if execution is None or execution.ended is not None or execution.time > time:
            execution = self._behind(time)
        first, began = execution.time, perf_counter()
        if execution.moment is None or execution.time != time:
            self._resume(execution, lambda _, moment: True if moment.time >= time else None)
        self._check_interrupted(execution)
        self._want_checkpoints(first, perf_counter() - began)
        return self._stopped("time" if execution.ended is None else "end")

    def _want_checkpoints(self, first: int, seconds: float) -> None:
        """Ask for checkpoints where the way to here would take long from the beginning."""
        if not self.recipe.allows_several or self.time <= first:
            return
        if self.time - first > _SAMPLE:
            self._pace = seconds / (self.time - first)
        self.checkpoints.want(self.time, self._pace * self.time)

    def _check_interrupted(self, execution: Execution) -> None:
        """Raise Interrupted where the execution was stopped on its way."""
        if execution.reason is INTERRUPTED:
            self._stopped("interrupt")
            raise Interrupted(f"interrupted on the way, at time {execution.time}")

    def origin(self) -> Origin:
        """Return where the focus stands, for a step from there. Raises OperandError."""
        number, wave, lane = self.wave()
        here = standing(wave, lane)
        if here is None:
            return Origin(wave=number, lane=lane, pc=-1, depth=0, line=("", 0))
        pc = here.path.pc
        return Origin(wave=number, lane=lane, pc=pc, depth=here.frame.depth, line=self.line_of(pc))

    def back(self, unit: Unit, *, over: bool, count: int = 1) -> Stop:
        """Go back by steps of the lane of the focus: the history says where to, so the launch is executed
        again once.
        """
        origin, before = self.origin(), self._before()
        found: int | None = before
        for _ in range(count):
            found = step_back(self.history, origin, before, self.line_of, unit, over=over)
            if found is None:
                break
            before, there = found, self.history.at(found)
            line = self.line_of(there.pc)
            origin = replace(origin, pc=there.pc, depth=there.depth, line=line)
        return self._at_time(found, "step", origin)

    def back_to_call(self) -> Stop:
        """Go back to the call of the function that the focus is in."""
        origin = self.origin()
        return self._at_time(call_before(self.history, origin, self._before()), "step", origin)

    def _before(self) -> int:
        """Return the time that steps backwards look before."""
        return self.time

    def _at_time(self, time: int | None, kind: str, origin: Origin) -> Stop:
        self.go_to(time or 0)
        if self.execution is not None and self.execution.waves:
            wave = self.execution.waves[origin.wave] if origin.wave < len(self.execution.waves) else None
            if wave is not None:
                self.look_at(wave, origin.lane)
        return self._stopped("start" if time is None else kind)

    def backward(self) -> Stop:
        """Go back to the last breakpoint or write to what is watched before now; else to the beginning."""
        limit = self._before()
        found = self._last_before(limit)
        if found is None:
            return self.start()
        self.go_to(found.time)
        if found.hit is not None and self.moment is not None:
            self._follow(self.moment, found.hit.lanes)
            if found.hit.point.temporary:
                self.breakpoints.remove(found.hit.point)
        elif found.changes:
            self._look_at_change(found.changes[0])
        self.last = found
        return found

    def _last_before(self, limit: int) -> Stop | None:
        """Return the last stop before a time."""
        plain = [point for point in self.breakpoints if point.enabled and point.log is None]
        watches = [watch for watch in self.watchpoints if watch.enabled]
        if not watches and all(point.condition is None for point in plain):
            return self._last_of_history(plain, limit)
        near = self.checkpoints.take(limit - 1)
        if near is None:
            return self._last_executed(self.begin(), plain, limit)
        if self.execution is not None:
            self.execution.abandon()
        found = self._last_executed(self._go_on_with(near), plain, limit)
        return found or self._last_executed(self.begin(), plain, limit)

    def _last_executed(self, execution: Execution, plain: Sequence[Breakpoint], limit: int) -> Stop | None:
        """Return the last stop that an execution comes to before a time."""
        self._rewatch(execution)
        found: list[Stop] = []

        def plan(running: Execution, moment: Moment) -> object:
            changes = self._changes(running, moment)
            if changes:
                found[:] = [Stop(kind="watch", time=changes[-1].time, changes=changes[::-1])]
            if moment.time >= limit:
                return True
            found[:] = [*self._hits(plain, moment)] or found
            return None

        self._resume(execution, plan)
        self._check_interrupted(execution)
        changes = self._changes(execution, None) if execution.ended is not None else ()
        if changes:
            found = [Stop(kind="watch", time=changes[-1].time, changes=changes[::-1])]
        return found[0] if found else None

    def _hits(self, points: Sequence[Breakpoint], moment: Moment) -> Iterator[Stop]:
        for point in points:
            lanes = point.lanes(moment, self._holds)
            if lanes is not None:
                yield Stop(
                    kind="breakpoint", time=moment.time, hit=Hit(point=point, time=moment.time, lanes=lanes)
                )
                return

    def _last_of_history(self, points: Sequence[Breakpoint], limit: int) -> Stop | None:
        wanted = frozenset[int]().union(*(point.place.pcs for point in points))
        executed = self.history.latest(wanted.__contains__, limit)
        if executed is None:
            return None
        point = next(point for point in points if executed.pc in point.place.pcs)
        hit = Hit(point=point, time=executed.time, lanes=self.history.mask(executed.lanes))
        return Stop(kind="breakpoint", time=executed.time, hit=hit)


_SAMPLE = 100  # statements that say how long a statement takes
