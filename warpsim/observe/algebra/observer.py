"""The observer that computes keys beside the values of a launch, statement by statement.

Each record's step is wrapped: operands are read before it, results after it. Registers have cells by frame
and number, memories by byte. Statements that no key reaches cost a look at their registers. What moves bytes
is in moves.py, what multiplies matrices in matrix_keys.py; scalar statements are computed here, by the rule
that their row's meaning names.

Knows waves and statements; does not know what arguments mean (leaves.py) or what a reference has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...machine.run.events import MatrixExecution
from ...machine.run.pending import Pending
from ...machine.run.wave import Record, Step, Wave
from ...machine.state.lanes import DivergentPath, Lanes, Values
from ...machine.state.memory_access import MemoryAccess
from ...machine.state.spaces import Offsets
from .key_store import KeyStore, spread
from .keys.finite_fields import Keys
from .keys.key_cells import Cells
from .keys.key_reading import KeyReader
from .moves import Moves
from .provenance import Provenance, place_of_wave
from .provenance import Step as Made
from .rules import arithmetic_rules, bit_rules
from .rules.keyed_statements import Element, Statement
from .rules.rule_calls import Call, Outcome, Rule

Registers = dict[int, Cells]
RULES: dict[str, Rule] = arithmetic_rules.RULES | bit_rules.RULES


class Algebra(KeyStore):
    """The keys of a launch. Give it to ``kernel(..., observers=[algebra])``; one instance observes all waves.

    ``bind`` is called with the first wave, to put keys on arguments. ``provenance`` is kept where it is
    given, of all CTAs. ``uninterpreted`` counts executions by opcode that had no law, ``overflows`` names
    statements whose signed integers wrapped, ``by_value`` those that are a function by value. ``at_zero``
    sets the key of every maximum to 0: the gauge of a softmax.
    """

    def __init__(
        self,
        reader: KeyReader,
        bind: Callable[[Algebra, Wave], None],
        by_value: Sequence[str] = (),
        provenance: Provenance | None = None,
        *,
        at_zero: bool = False,
    ) -> None:
        super().__init__(reader, by_value, provenance)
        self.at_zero = at_zero
        self.moves = Moves(self)
        self._bind: Callable[[Algebra, Wave], None] | None = bind

    # --- statements ---

    def instrument(self, code: Sequence[Record]) -> Sequence[Record]:
        """Return records that keep keys beside what they do."""
        self.code = code
        return [record.stepping(self._wrapped(pc, record)) for pc, record in enumerate(code)]

    def _wrapped(self, pc: int, record: Record) -> Step:
        inner = record.step
        kept: list[tuple[Statement, Callable[..., Any]]] = []

        def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> bool | None:
            if not kept:
                statement = self.statement(pc)
                kept.append((statement, self._handler(statement)))
            if self._bind is not None:
                bind, self._bind = self._bind, None
                bind(self, wave)
            statement, handler = kept[0]
            self.together = None
            changed: bool | None = handler(wave, path, lanes, statement, inner)
            return changed

        return step

    def _handler(self, statement: Statement) -> Callable[..., Any]:
        """Return what executes a statement and keeps its keys."""
        meaning = statement.meaning
        own = self.moves.handlers.get(meaning)
        if own is not None:
            return own
        if meaning in ("control", "decision", "count"):
            return self.forgetting
        return self._scalar if statement.operation is not None else self.forgetting

    def _scalar(
        self, wave: Wave, path: DivergentPath, lanes: Lanes, statement: Statement, inner: Step
    ) -> bool | None:
        registers = self.registers(path.frame)
        if registers.keys().isdisjoint(statement.reads):
            inner(wave, path, lanes)
            self.forget(wave, path.frame, lanes, statement.writes)
            return None
        operation = statement.operation
        assert operation is not None
        cells, bits = list[Cells | None](), list[Values]()
        for source, type_name in zip(statement.sources, operation.sources, strict=False):
            held = registers.get(source.number)
            cells.append(held if held is None or lanes.whole else held.of_lanes(lanes.index))
            bits.append(lanes.of(source.value(path.frame, wave.lanes, type_name)))
        inner(wave, path, lanes)
        self.forget(wave, path.frame, lanes, [n for n in statement.writes if n != statement.target])
        if statement.target >= 0:
            self._result(wave, path, lanes, statement, (cells, bits))
        return None

    def _result(
        self,
        wave: Wave,
        path: DivergentPath,
        lanes: Lanes,
        statement: Statement,
        operands: tuple[list[Cells | None], list[Values]],
    ) -> None:
        """Compute and write the keys of a result."""
        value = path.frame.values[statement.target]
        if value is None or value.dtype == np.bool_ or all(each is None for each in operands[0]):
            self.put(wave, path.frame, lanes, statement.target, None)
            return
        call = Call(self.reader, statement, *operands, after=lanes.of(value))
        outcome = RULES[statement.meaning](call) if statement.meaning in RULES else None
        if outcome is None or (outcome.keys is None and outcome.cells is None):
            self.uninterpreted[statement.opcode] += 1
            outcome = call.hashed()
        if call.overflowed:
            self.overflows.add(statement.pc)
        several = sum(each is not None for each in operands[0]) > 1
        if self.at_zero and several and statement.opcode == "max" and outcome.keys is not None:
            outcome = Outcome(np.zeros_like(outcome.keys), None, "max", outcome.operands)
        self._write(wave, path, lanes, call, outcome)

    def _write(self, wave: Wave, path: DivergentPath, lanes: Lanes, call: Call, outcome: Outcome) -> None:
        """Write an outcome to the register, extended where that is wider."""
        statement, width = call.statement, call.after.dtype.itemsize
        cells = outcome.cells
        if outcome.keys is not None:
            element = outcome.element or call.element
            outcome = self._by_value(wave, lanes, call, outcome, element)
            assert outcome.keys is not None
            if outcome.name:
                self._note(wave, lanes, statement, outcome)
            cells = _cells_of(outcome.keys, element, width, statement.pc)
        assert cells is not None
        if not call.live.all():
            cells = cells.merged(call.live, Cells.empty(cells.width, call.lanes))
        self.put(wave, path.frame, lanes, statement.target, spread(cells, lanes))

    def _by_value(self, wave: Wave, lanes: Lanes, call: Call, outcome: Outcome, element: Element) -> Outcome:
        """Return a result as the function of an earlier result that it is by value, if it is any."""
        if not self.by_value.names or element.kind != "f32" or element.parts != 1 or outcome.keys is None:
            return outcome
        values = call.results(element)[0]
        for place, cells in enumerate(call.cells):
            if cells is not None and cells.kind == "f32" and call.bits[place].itemsize == element.size:
                loaded = call.values(place, element)[0]
                self.by_value.loaded(wave, lanes, np.asarray(cells.keys[0]), loaded)
        found = self.by_value.looked_at(wave, lanes, call.statement.pc, outcome.keys[0], values)
        if found is None:
            return outcome
        name, argument, keys = found
        return Outcome(keys[None], None, name, (argument,), element)

    def _note(self, wave: Wave, lanes: Lanes, statement: Statement, outcome: Outcome) -> None:
        if self.provenance is None or outcome.keys is None:
            return
        operands = tuple(
            np.broadcast_to(each, outcome.keys.shape) if each.ndim > 1 else each for each in outcome.operands
        )
        for number, made in enumerate(outcome.keys):
            own = tuple(each[number] if each.ndim > 1 else each for each in operands)
            by_value = statement.pc in self.by_value.places
            self.provenance.step(
                Made(statement.pc, outcome.name, made, own, lanes.index, place_of_wave(wave), by_value)
            )

    # --- events ---

    def met(self, wave: Wave, lanes: Lanes, members: Values, orders: bool) -> None:
        """Note the lanes that execute a statement together."""
        self.together = lanes

    def load(self, wave: Wave, access: MemoryAccess) -> None:
        """Note what a statement reads."""
        self.accesses.append(access)

    def store(self, wave: Wave, access: MemoryAccess) -> None:
        """Note what a statement writes."""
        self.accesses.append(access)

    def atomic(self, wave: Wave, access: MemoryAccess) -> None:
        """Note what a statement updates, and its content."""
        self.moves.updating(access)

    def copying(self, wave: Wave, access: MemoryAccess) -> None:
        """Take the cells that cp.async copies."""
        self.moves.copying(wave, access)

    def landed(self, wave: Wave, access: MemoryAccess) -> None:
        """Put the cells of cp.async."""
        self.moves.landed(wave, access)

    def passed(self, wave: Wave, lanes: Lanes, source: Offsets, target: Offsets, size: int) -> None:
        """Copy the cells of a variable of a call."""
        memory = self.memory(wave.memories.local, wave)
        memory.store(target, size, memory.load(source, size), -1)

    def issued(self, wave: Wave, path: DivergentPath, pending: Pending) -> None:
        """Take the cells of registers that an operation stores later."""
        self.moves.issued(wave, path, pending)

    def fetched(self, wave: Wave, pending: Pending) -> None:
        """Take the cells that an operation has read."""
        self.moves.fetched(wave, pending)

    def completed(self, wave: Wave, pending: Pending) -> None:
        """Put the cells of an operation."""
        self.moves.completed(wave, pending)

    def matrix(self, wave: Wave, execution: MatrixExecution) -> None:
        """Multiply keys as an instruction has multiplied values."""
        self.moves.matrices.multiplied(wave, execution)

    def exit(self, wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        """Forget the cells of a wave that has ended."""
        if not wave.alive:
            self.forget_wave(wave)
            self.moves.forget_wave(wave)


def _cells_of(keys: Keys, element: Element, width: int, pc: int) -> Cells:
    """Return the cells of a register that holds numbers; integers fill it, extended."""
    kind, size, count = element
    if count == 1 and kind in ("s", "u"):
        return Cells.of(keys[0], kind, width, pc)
    found = Cells.joined([Cells.of(each, kind, size, pc) for each in keys], pc)
    return found if found.width == width else found.resized(width)
