"""Stops that are shown while a kernel goes on: where a line is executed, and where a register is written.

A Debugger gives the wave records whose steps look before and after; all other statements cost nothing. It
hands out stops; it prints nothing. Does not know what statements do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.errors import OperandError
from ...isa.families import is_matrix
from ...isa.warps import WARP
from ...machine.run.events import MatrixExecution, Observer
from ...machine.state.lanes import DivergentPath, Lanes, Mask, Values
from ..recording.recorder import LaunchEvent, Recorder
from ..recording.selection import Executions, Selection
from .contexts import At, register_named, registers_of
from .stop_places import Break, line_of, statements_at
from .values import Value

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
class WarpStop:
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

    show: Callable[[WarpStop], object]
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
                stop = WarpStop(
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
        for line in self.breaks:
            for number in statements_at(code, line):
                start = code[number].statement.start
                if isinstance(line, int):
                    self._breaks_at[start] = line
                else:
                    self._breaks_at.setdefault(start, line)
        for name in self.watches:
            if all(register_named(record.scope, name) is None for record in code):
                raise OperandError(f"no function has a register {name}")

    def _looking(self, record: Record) -> Record:
        """Return the record, or a record that looks before and after."""
        wanted = self._breaks_at.get(record.statement.start)
        watched = [name for name in self.watches if register_named(record.scope, name) is not None]
        if record.scope is None or (wanted is None and not watched):  # with a problem it is not executed
            return record
        return record.stepping(self._step(record, wanted, watched))

    def _step(self, record: Record, line: Break | None, watched: list[str]) -> Step:
        names = [*registers_of(record)]
        matrix = is_matrix(record.statement.opcode, record.statement.modifiers)  # shown when it is done
        inner = record.step

        def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> bool | None:
            at = At(wave=wave, frame=path.frame, record=record)
            wanted = dict.fromkeys([*(names if line is not None else ()), *watched])
            look = _Look(at=at, pc=path.pc, lanes=lanes, before={name: _value(at, name) for name in wanted})
            try:
                changed = inner(wave, path, lanes)
            except BaseException:
                if line is not None:
                    self._at_line(look, line, names)
                raise
            if line is not None and not matrix:
                self._at_line(look, line, names)
            for name in watched:
                self._written(look, name)
            return changed

        return step

    def _at_line(self, look: _Look, line: Break, names: Iterable[str]) -> None:
        for warp, index in self._chosen(look, line, look.lanes.mask):
            registers = tuple(look.register(name, warp) for name in names)
            self._stop(line, look.stop(warp, index, registers=registers))

    def _written(self, look: _Look, name: str) -> None:
        """WarpStop for each warp in which the statement wrote the register."""
        old, new = look.before[name], _value(look.at, name)
        if not _is_written(old, new):
            return
        mask = look.lanes.mask | (False if old.is_missing else new.words != old.words)
        for warp, index in self._chosen(look, name, mask):
            self._stop(name, look.stop(warp, index, watched=name, registers=(look.register(name, warp),)))

    def _chosen(self, look: _Look, why: Break | str, mask: Mask) -> Iterator[tuple[int, int]]:
        """Yield the number in the wave and the execution of each warp that is to be shown."""
        if self.selection is None and why in self._seen:
            return
        warps, wave = np.flatnonzero(mask.reshape(-1, WARP).any(axis=1)), look.at.wave
        is_break = not isinstance(why, str)
        key = look.pc if is_break else ~(look.pc * len(self.watches) + self.watches.index(why))
        numbers = self._executions.numbers(wave, key, warps)
        if self.selection is not None:
            chosen = self.selection.chosen(wave, line_of(look.at.record), warps, numbers)
            warps, numbers = warps[chosen], numbers[chosen]
        yield from zip(warps.tolist(), numbers.tolist(), strict=True)

    def _stop(self, key: Break | str, stop: WarpStop) -> None:
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

    at: At
    pc: int
    lanes: Lanes
    before: dict[str, Value]

    def register(self, name: str, warp: int) -> RegisterValue:
        """Return a register of a warp of the wave, before and now."""
        part = slice(WARP * warp, WARP * (warp + 1))
        old, new = self.before[name], _value(self.at, name)
        missing = np.zeros(WARP, np.bool_) if old.missing is None else old.missing[part]
        after = new.words[part] if _is_written(old, new) else None
        return RegisterValue(name=name, type=old.type, before=old.words[part], missing=missing, after=after)

    def stop(self, warp: int, index: int, **more: Any) -> WarpStop:
        """Return a stop of a warp of the wave."""
        wave = self.at.wave
        x, y, z = wave.ctas[warp // wave.warps].tolist()
        return WarpStop(
            statement=self.at.record.statement,
            cta=(x, y, z),
            warp=warp % wave.warps,
            index=index,
            lanes=self.lanes.mask[WARP * warp : WARP * (warp + 1)],
            **more,
        )


def _value(at: At, name: str) -> Value:
    """Return a register at a statement that has it."""
    meaning = register_named(at.record.scope, name)
    assert meaning is not None
    return at.register(meaning)


def _is_written(old: Value, new: Value) -> bool:
    """Return whether a register was written: a new array is there."""
    return new.words is not old.words and not new.is_missing


__all__ = ["STOPS", "Debugger", "RegisterValue", "WarpStop"]
