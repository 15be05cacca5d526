"""A launch that goes forwards and backwards in time, and the lane that is looked at while it stands.

A position in time is the count of statements that have been executed. To go back the launch is executed again
from its beginning, or from a checkpoint, up to the position: it is deterministic. Arrays are never written.
Knows points, steps and the focus; does not know commands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from ...base.errors import Fault, OperandError
from ...observe.stops.contexts import standing
from ...observe.stops.expressions import Expression
from ...observe.stops.points import Breakpoint, Change, Hit, MemoryWatch, Moment, Stop, Watchpoint
from .executions import INTERRUPTED, Execution, Plan
from .launch_state import LaunchState
from .stepping import Done, Origin, Unit, call_before, step_back


class Interrupted(OperandError):
    """The launch was interrupted on the way to another time; the session stands where it was interrupted."""


class Travel(LaunchState):
    """A launch that can be stopped, and executed forwards and backwards; commands are in session.py. What is
    given is that of LaunchState.
    """

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
            for each in running.findings[known:]:
                if each.severity == "error" or each.kind == "uninitialised":
                    return Stop(kind="finding", time=moment.time, finding=each)
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
        return self._arrived(reason, moment)

    def _arrived(self, stop: Stop, moment: Moment | None) -> Stop:
        """Move the focus to what has stopped the launch; return the stop."""
        if stop.changes:
            self._look_at_change(stop.changes[0])
        elif stop.hit is not None and moment is not None:
            self._follow(moment, stop.hit.lanes)
            if stop.hit.point.temporary:
                self.breakpoints.remove(stop.hit.point)
        elif stop.kind == "finding" and moment is not None:
            self._follow(moment, moment.lanes.mask)
        self.last = stop
        return stop

    def _stopped(self, kind: Any, **more: Any) -> Stop:
        execution = self.execution
        error = None if execution is None or execution.ended is None else execution.ended.error
        moment = None if execution is None else execution.moment
        if kind in ("end", "time") and moment is not None:
            try:
                self.wave()
            except OperandError:  # the CTA of the focus is gone
                self.look_at(moment.wave, int(moment.lanes.index[0]))
        if error is not None:
            kind = "error"
            if moment is not None and isinstance(error, Fault) and error.lane is not None:
                self.look_at(moment.wave, error.lane)
            elif moment is not None:
                self._follow(moment, moment.lanes.mask)
        self.last = Stop(kind=kind, time=self.time, error=error, **more)
        return self.last

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
                return Hit(point, moment.time, lanes)
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
        origin, before = self.origin(), self.time
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
        return self._at_time(call_before(self.history, origin, self.time), "step", origin)

    def _at_time(self, time: int | None, kind: str, origin: Origin) -> Stop:
        self.go_to(time or 0)
        if self.execution is not None and self.execution.waves:
            wave = self.execution.waves[origin.wave] if origin.wave < len(self.execution.waves) else None
            if wave is not None:
                self.look_at(wave, origin.lane)
        return self._stopped("start" if time is None else kind)

    def backward(self) -> Stop:
        """Go back to the last breakpoint or write to what is watched before now; else to the beginning."""
        found = self._last_before(self.time)
        if found is None:
            return self.start()
        self.go_to(found.time)
        return self._arrived(found, self.moment)

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
            lanes_of = ((point, point.lanes(moment, self._holds)) for point in plain)
            hit = next(
                (Hit(point, moment.time, lanes) for point, lanes in lanes_of if lanes is not None), None
            )
            if hit is not None:
                found[:] = [Stop(kind="breakpoint", time=moment.time, hit=hit)]
            return None

        self._resume(execution, plan)
        self._check_interrupted(execution)
        changes = self._changes(execution, None) if execution.ended is not None else ()
        if changes:
            found = [Stop(kind="watch", time=changes[-1].time, changes=changes[::-1])]
        return found[0] if found else None

    def _last_of_history(self, points: Sequence[Breakpoint], limit: int) -> Stop | None:
        wanted = frozenset[int]().union(*(point.place.pcs for point in points))
        executed = self.history.latest(wanted.__contains__, limit)
        if executed is None:
            return None
        point = next(point for point in points if executed.pc in point.place.pcs)
        hit = Hit(point, executed.time, self.history.mask(executed.lanes))
        return Stop(kind="breakpoint", time=executed.time, hit=hit)


_SAMPLE = 100  # statements that say how long a statement takes
