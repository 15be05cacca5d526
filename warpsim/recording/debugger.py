"""Looking at registers while a kernel runs: where a line is executed, and where a register is written.

A Debugger gives the wave records whose steps look before and after; all other statements cost nothing. It
hands out stops; it prints nothing. Knows frames and scopes; does not know what statements do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..checks.register_uses import is_multiplication
from ..errors import OperandError
from ..isa.warps import WARP
from ..machine.bind.scope import RegisterName
from ..machine.run.events import MatrixExecution, Observer
from ..machine.state.lanes import DivergentPath, Frame, Lanes, Mask, Values
from .recorder import LaunchEvent, Recorder
from .selection import Executions, Selection

if TYPE_CHECKING:
    from ..machine.bind.tuning import Dimensions
    from ..machine.run.wave import Record, Step, Wave
    from ..ptx.statements import InstructionStatement

STOPS = 64  # that are handed out where many are selected


@dataclass(frozen=True, kw_only=True, eq=False)
class RegisterValue:
    """A register of a warp: ``before`` the statement, and ``after`` it, None where it has not changed.

    Both are (32,); ``missing`` are lanes in which it had never been written.
    """

    name: str
    type: str
    before: Values
    missing: Mask
    after: Values | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Stop:
    """A warp at a statement: ``watched`` is the register that it writes, if that is why.

    ``lanes`` (32,) execute it, of a wgmma (128,) those of the four warps. ``event`` is what a matrix
    instruction read and computed, otherwise ``registers`` are those that the statement names, or the register
    that is watched.
    """

    statement: InstructionStatement
    cta: Dimensions
    warp: int
    index: int
    lanes: Mask
    watched: str | None = None
    registers: tuple[RegisterValue, ...] = ()
    event: LaunchEvent | None = None

    @property
    def line(self) -> int:
        """The line of the statement."""
        return self.statement.location().line

    @property
    def place(self) -> str:
        """CTA, warp and execution, in words."""
        if self.event is not None:
            return self.event.place
        return f"CTA ({', '.join(map(str, self.cta))}), warp {self.warp}, step {self.index}"


@dataclass(kw_only=True)
class Debugger(Observer):
    """An observer that calls ``show`` with stops: at lines ``breaks``, and where registers ``watches`` are
    written.

    Of each line and register the first stop, or, with a ``selection``, those that are selected, at most
    STOPS; ``more`` counts the others. ``missed`` are lines and registers at which nothing has stopped.
    """

    show: Callable[[Stop], object]
    breaks: Sequence[int] = ()
    watches: Sequence[str] = ()
    selection: Selection | None = None
    shown: int = 0
    more: int = 0
    _seen: set[int | str] = field(default_factory=set)
    _executions: Executions = field(default_factory=Executions)
    _codes: dict[int, tuple[Any, list[Record]]] = field(default_factory=dict)

    @property
    def missed(self) -> list[int | str]:
        """Lines and registers at which nothing has stopped so far."""
        wanted: list[int | str] = [*self.breaks, *self.watches]
        return [place for place in wanted if place not in self._seen]

    def instrument(self, code: Sequence[Record]) -> Sequence[Record]:
        """Return the code, with records that look; raises OperandError for a line or register that is not
        there.
        """
        known = self._codes.get(id(code))
        if known is None:
            lines = [_line(record) for record in code]
            self._check(code, lines)
            made = [self._looking(record, line) for record, line in zip(code, lines, strict=True)]
            known = self._codes[id(code)] = (code, made)
        return known[1]

    def matrix(self, wave: Wave, execution: MatrixExecution) -> None:
        """Show operands and D of an executed matrix instruction where its line is wanted."""
        line = _line(execution.record) if self.breaks else 0
        if line not in self.breaks:
            return
        numbers = self._executions.numbers(wave, execution.path.pc, execution.warps)
        recorder = Recorder()
        recorder.matrix(wave, execution)
        for number, event in zip(numbers.tolist(), recorder.events(), strict=True):
            event = replace(event, index=number)
            if self.selection is None or self.selection.takes(event):
                stop = Stop(
                    statement=execution.record.statement,
                    cta=event.cta,
                    warp=event.warp,
                    index=number,
                    lanes=np.ones(execution.instruction.lanes, np.bool_),
                    event=event,
                )
                self._stop(line, stop)

    # --- records that look ---

    def _check(self, code: Sequence[Record], lines: list[int]) -> None:
        for line in self.breaks:
            if line not in lines:
                nearest = sorted(set(lines), key=lambda found: (abs(found - line), found))[:2]
                others = " and ".join(map(str, sorted(nearest)))
                raise OperandError(f"no statement begins at line {line}; the nearest are at {others}")
        for name in self.watches:
            if not any(_number(record, name) is not None for record in code):
                raise OperandError(f"no function has a register {name}")

    def _looking(self, record: Record, line: int) -> Record:
        """Return the record, or a record that looks before and after."""
        is_break = line in self.breaks
        watched = [name for name in self.watches if _number(record, name) is not None]
        if not is_break and not watched:
            return record
        step, original = self._step(record, line if is_break else None, watched), record
        return replace(original, step=step)

    def _step(self, record: Record, line: int | None, watched: list[str]) -> Step:
        names = [name for name in record.statement.names if _number(record, name) is not None]
        is_matrix = record.statement.opcode == "mma" or is_multiplication(record.statement)
        inner = record.step

        def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> bool | None:
            frame, pc = path.frame, path.pc
            wanted = list(dict.fromkeys([*(names if line is not None else ()), *watched]))
            before = {name: _held(record, frame, name, wave) for name in wanted}
            look = _Look(wave=wave, record=record, frame=frame, pc=pc, lanes=lanes, before=before)
            try:
                changed = inner(wave, path, lanes)
            except BaseException:
                if line is not None:
                    self._at_line(look, line, names)
                raise
            if line is not None and not is_matrix:
                self._at_line(look, line, names)
            for name in watched:
                self._written(look, name)
            return changed

        return step

    def _at_line(self, look: _Look, line: int, names: Iterable[str]) -> None:
        for warp, index in self._chosen(look, line, look.lanes.mask):
            registers = tuple(look.register(name, warp) for name in names)
            self._stop(line, look.stop(warp, index, registers=registers))

    def _written(self, look: _Look, name: str) -> None:
        """Stop for each warp in which the statement wrote the register: a new array is there."""
        old, _ = look.before[name]
        new, _ = _held(look.record, look.frame, name, look.wave)
        if new is old:
            return
        mask = look.lanes.mask if old is None else look.lanes.mask | (new != old)
        for warp, index in self._chosen(look, _line(look.record), mask, name):
            self._stop(name, look.stop(warp, index, watched=name, registers=(look.register(name, warp),)))

    def _chosen(self, look: _Look, line: int, mask: Mask, watched: str = "") -> Iterator[tuple[int, int]]:
        """Yield the number in the wave and the execution of each warp that is to be shown."""
        if self.selection is None and (watched or line) in self._seen:
            return
        warps = np.flatnonzero(mask.reshape(-1, WARP).any(axis=1))
        key = look.pc if not watched else ~(look.pc * len(self.watches) + self.watches.index(watched))
        numbers = self._executions.numbers(look.wave, key, warps)
        if self.selection is None:
            chosen = np.ones(len(warps), np.bool_)
        else:
            chosen = self.selection.chosen(look.wave, line, warps, numbers)
        yield from zip(warps[chosen].tolist(), numbers[chosen].tolist(), strict=True)

    def _stop(self, key: int | str, stop: Stop) -> None:
        if self.selection is None and key in self._seen:
            return
        self._seen.add(key)
        if self.shown < STOPS:
            self.shown += 1
            self.show(stop)
        else:
            self.more += 1


@dataclass(frozen=True, kw_only=True, eq=False)
class _Look:
    """A statement of a wave, and registers as they were before it."""

    wave: Wave
    record: Record
    frame: Frame
    pc: int
    lanes: Lanes
    before: dict[str, tuple[Values | None, Mask | None]]

    def register(self, name: str, warp: int) -> RegisterValue:
        """Return a register of a warp of the wave, before and now."""
        meaning = _meaning(self.record, name)
        part = slice(WARP * warp, WARP * (warp + 1))
        old, written = self.before[name]
        new, _ = _held(self.record, self.frame, name, self.wave)
        missing = np.full(WARP, old is None) if written is None else ~written[part]
        before = np.zeros(WARP, _dtype(new)) if old is None else old[part]
        after = None if new is old or new is None else new[part]
        return RegisterValue(name=name, type=meaning.type, before=before, missing=missing, after=after)

    def stop(self, warp: int, index: int, **more: Any) -> Stop:
        """Return a stop of a warp of the wave."""
        x, y, z = self.wave.ctas[warp // self.wave.warps].tolist()
        return Stop(
            statement=self.record.statement,
            cta=(x, y, z),
            warp=warp % self.wave.warps,
            index=index,
            lanes=self.lanes.mask[WARP * warp : WARP * (warp + 1)],
            **more,
        )


def _dtype(values: Values | None) -> Any:
    return np.uint32 if values is None else values.dtype


def _line(record: Record) -> int:
    """Return where a statement begins; that of the return at the end of a body is the head of the
    function.
    """
    statement = record.statement
    return statement.source.location(statement.start).line


def _number(record: Record, name: str) -> int | None:
    """Return the number of a register at a statement, None where it is not in scope."""
    found = None if record.scope is None else record.scope.find(name)
    return found.number if isinstance(found, RegisterName) else None


def _meaning(record: Record, name: str) -> RegisterName:
    found = None if record.scope is None else record.scope.find(name)
    assert isinstance(found, RegisterName)
    return found


def _held(record: Record, frame: Frame, name: str, wave: Wave) -> tuple[Values | None, Mask | None]:
    """Return a register in all lanes of the wave, and where it has been written, None for everywhere or
    nowhere.
    """
    number = _meaning(record, name).number
    return frame.values[number], frame.partial.get(number)


__all__ = ["STOPS", "Debugger", "RegisterValue", "Stop"]
