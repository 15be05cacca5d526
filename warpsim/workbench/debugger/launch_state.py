"""A launch that stands somewhere in time, and the lane of it that is looked at.

Knows positions, the focus, frames and values; does not know how the launch is moved, which is travel.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ...base.errors import Location, OperandError
from ...isa.warps import WARP
from ...machine.run.wave import Record, Wave
from ...observe.checks.findings import LaunchFinding, Mode
from ...observe.stops.contexts import At, Standing, map_addresses, parameter_values, shapes_of, standing
from ...observe.stops.expressions import Expression
from ...observe.stops.points import Breakpoint, Moment, Stop, Watchpoint
from ...observe.stops.stop_places import source_line
from ...observe.stops.values import Array, Value
from ...programs.launch.launch_execution import LaunchModes, LaunchShape
from ...programs.launch.launching import LaunchableKernel
from .call_frames import Call, calls_of
from .checkpoints import Checkpoints
from .executions import Execution, Recipe
from .history import History
from .stepping import Line


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
    """How a launch of a session is executed: parameters of programs/launch/launching.py, and a tolerance."""

    cluster: Any = None
    shared_bytes: int = 0
    cooperative: bool = False
    resident: int = 1
    schedule: str | int = "program"
    checks: Mode = "error"
    engine: Any = "kernel"
    undefined: Any = "error"
    most_statements: int | None = None
    tolerance: float = 0.0  # within which arrays are as expected (programs/launch/array_agreement.py)


class LaunchState:
    """A launch that can stand at any statement, and what is looked at there.

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
        """Return the address that an argument is; None where it is not a pointer or nothing runs."""
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
