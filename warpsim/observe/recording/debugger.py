"""Looking at registers while a kernel runs: where a line is executed, and where a register is written.

A Debugger gives the wave records whose steps look before and after; all other statements cost nothing. It
hands out stops; it prints nothing. Knows frames and scopes; does not know what statements do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.errors import OperandError
from ...isa.families import is_matrix
from ...isa.warps import WARP
from ...machine.bind.scope import RegisterName
from ...machine.run.events import MatrixExecution, Observer
from ...machine.state.lanes import DivergentPath, Frame, Lanes, Mask, Values
from .recorder import LaunchEvent, Recorder
from .selection import Executions, Selection
from .source_breaks import Break, SourcePlace, stops_of

if TYPE_CHECKING:
    from ...machine.bind.tuning import Dimensions
    from ...machine.run.wave import Record, Step, Wave
    from ...ptx.statements import InstructionStatement

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

    ``lanes`` (32,) execute it, of a wgmma (128,) those of the four warps; of tcgen05.mma they are those of
    tensor memory. ``event`` is what a matrix
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
    """An observer that calls ``show`` with stops: at ``breaks``, lines of the PTX or of a source, and where
    registers ``watches`` are written.

    Of each line and register the first stop, or, with a ``selection``, those that are selected, at most
    STOPS; ``more`` counts the others. ``missed`` are lines and registers at which nothing has stopped.
    """

    show: Callable[[Stop], object]
    breaks: Sequence[Break] = ()
    watches: Sequence[str] = ()
    selection: Selection | None = None
    shown: int = 0
    more: int = 0
    _seen: set[Break | str] = field(default_factory=set)
    _executions: Executions = field(default_factory=Executions)
    _codes: dict[int, tuple[Any, list[Record]]] = field(default_factory=dict)
    _breaks_at: dict[int, Break] = field(default_factory=dict)  # by the place of the statement in the text

    @property
    def missed(self) -> list[Break | str]:
        """Lines and registers at which nothing has stopped so far."""
        wanted: list[Break | str] = [*self.breaks, *self.watches]
        return [place for place in wanted if place not in self._seen]

    def instrument(self, code: Sequence[Record]) -> Sequence[Record]:
        """Return the code, with records that look; raises OperandError for a line or register that is not
        there.
        """
        known = self._codes.get(id(code))
        if known is None:
            self._check(code)
            made = [self._looking(record) for record in code]
            known = self._codes[id(code)] = (code, made)
        return known[1]

    def matrix(self, wave: Wave, execution: MatrixExecution) -> None:
        """Show operands and D of an executed matrix instruction where its line is wanted."""
        wanted = self._breaks_at.get(execution.record.statement.start)
        if wanted is None:
            return
        numbers = self._executions.numbers(wave, execution.pc, execution.warps)
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
                self._stop(wanted, stop)

    # --- records that look ---

    def _check(self, code: Sequence[Record]) -> None:
        """Find the statements to stop at. Raises OperandError."""
        lines = [_line(record) for record in code] if self.breaks else []
        for line in self.breaks:
            if isinstance(line, SourcePlace):
                starts = (code[number].statement.start for number in stops_of(code, line))
                for start in starts:
                    self._breaks_at.setdefault(start, line)
                continue
            if line not in lines:
                nearest = sorted(set(lines), key=lambda found: (abs(found - line), found))[:2]
                others = " and ".join(map(str, sorted(nearest)))
                raise OperandError(f"no statement begins at line {line}; the nearest are at {others}")
            own = (record for record, place in zip(code, lines, strict=True) if place == line)
            self._breaks_at |= {record.statement.start: line for record in own}
        for name in self.watches:
            if not any(_number(record, name) is not None for record in code):
                raise OperandError(f"no function has a register {name}")

    def _looking(self, record: Record) -> Record:
        """Return the record, or a record that looks before and after."""
        wanted = self._breaks_at.get(record.statement.start)
        watched = [name for name in self.watches if _number(record, name) is not None]
        if record.scope is None or (
            wanted is None and not watched
        ):  # a statement with a problem is not executed
            return record
        step, original = self._step(record, wanted, watched), record
        return original.stepping(step)

    def _step(self, record: Record, line: Break | None, watched: list[str]) -> Step:
        names = [name for name in record.statement.names if _number(record, name) is not None]
        matrix = is_matrix(record.statement.opcode, record.statement.modifiers)  # shown when it is done
        inner = record.step

        def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> bool | None:
            frame, pc = path.frame, path.pc
            wanted = list(dict.fromkeys([*(names if line is not None else ()), *watched]))
            before = {name: _register_values(record, frame, name, wave) for name in wanted}
            look = _Look(wave=wave, record=record, frame=frame, pc=pc, lanes=lanes, before=before)
            try:
                changed = inner(wave, path, lanes)
            except BaseException:
                if line is not None:
                    self._at_line(look, line, names)
                raise
            if line is not None and not matrix:
                self._at_line(look, line, names)
            for name in watched:
                self._stop_at_writes(look, name)
            return changed

        return step

    def _at_line(self, look: _Look, line: Break, names: Iterable[str]) -> None:
        for warp, index in self._chosen(look, line, look.lanes.mask):
            registers = tuple(look.register(name, warp) for name in names)
            self._stop(line, look.stop(warp, index, registers=registers))

    def _stop_at_writes(self, look: _Look, name: str) -> None:
        """Stop for each warp in which the statement wrote the register: a new array is there."""
        old, _ = look.before[name]
        new, _ = _register_values(look.record, look.frame, name, look.wave)
        if new is old:
            return
        mask = look.lanes.mask if old is None else look.lanes.mask | (new != old)
        for warp, index in self._chosen(look, name, mask):
            self._stop(name, look.stop(warp, index, watched=name, registers=(look.register(name, warp),)))

    def _chosen(self, look: _Look, why: Break | str, mask: Mask) -> Iterator[tuple[int, int]]:
        """Yield the number in the wave and the execution of each warp that is to be shown."""
        if self.selection is None and why in self._seen:
            return
        warps = np.flatnonzero(mask.reshape(-1, WARP).any(axis=1))
        is_break = not isinstance(why, str)
        key = look.pc if is_break else ~(look.pc * len(self.watches) + self.watches.index(why))
        numbers = self._executions.numbers(look.wave, key, warps)
        if self.selection is None:
            chosen = np.ones(len(warps), np.bool_)
        else:
            chosen = self.selection.chosen(look.wave, _line(look.record), warps, numbers)
        yield from zip(warps[chosen].tolist(), numbers[chosen].tolist(), strict=True)

    def _stop(self, key: Break | str, stop: Stop) -> None:
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
        new, _ = _register_values(self.record, self.frame, name, self.wave)
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


def _register_values(
    record: Record, frame: Frame, name: str, wave: Wave
) -> tuple[Values | None, Mask | None]:
    """Return a register in all lanes of the wave, and where it has been written, None for everywhere or
    nowhere.
    """
    number = _meaning(record, name).number
    return frame.values[number], frame.partial.get(number)


__all__ = ["STOPS", "Debugger", "RegisterValue", "Stop"]
