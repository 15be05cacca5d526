"""The observer that computes keys beside the values of a launch, statement by statement.

Each record's step is wrapped: operands are read before it, results after it. Registers have cells by frame
and number, memories by byte. Statements that no key reaches cost a look at their registers. What moves bytes
is in moves.py, what multiplies matrices in matrix_keys.py; scalar statements are computed here, by the rule
that their row's meaning names.

Knows waves and statements; does not know what arguments mean (leaves.py) or what a reference has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...machine.bind.value_types import bits_of
from ...machine.run.events import MatrixExecution
from ...machine.run.wave import Record, Step, Wave
from ...machine.state.lanes import DivergentPath, Lanes, Values
from ...machine.state.memory_access import MemoryAccess
from ...machine.state.spaces import Offsets
from .formula_values import FormulaValues
from .key_store import Turn, spread
from .keys.finite_fields import Keys
from .keys.key_cells import Cells
from .keys.key_reading import KeyReader
from .moves import Handler, Moves
from .provenance import Provenance
from .rules import arithmetic_rules, bit_rules
from .rules.keyed_statements import Element, Statement
from .rules.rule_calls import Call, Outcome, Rule

RULES: dict[str, Rule] = arithmetic_rules.RULES | bit_rules.RULES


class Algebra(Moves):
    """The keys of a launch. Give it to ``kernel(..., observers=[algebra])``; one instance observes all waves.

    ``bind`` is called with the first wave, to put keys on arguments. ``provenance`` is kept where it is
    given, of all CTAs. ``uninterpreted`` counts executions by opcode that had no law, ``overflows`` names
    statements whose signed integers wrapped, ``by_value`` those that are a function by value. ``at_zero``
    sets the key of every maximum to 0: the gauge of a softmax. ``values`` are what registers hold in place of
    what the kernel computes.
    """

    def __init__(
        self,
        reader: KeyReader,
        bind: Callable[[Algebra, Wave], None],
        by_value: Sequence[str] = (),
        provenance: Provenance | None = None,
        *,
        at_zero: bool = False,
        values: FormulaValues | None = None,
    ) -> None:
        super().__init__(reader, by_value, provenance)
        self.at_zero, self.values = at_zero, values
        self._bind: Callable[[Algebra, Wave], None] | None = bind

    # --- statements ---

    def instrument(self, code: Sequence[Record]) -> Sequence[Record]:
        """Return records that keep keys beside what they do."""
        self.code = code
        return [record.stepping(self._wrapped(pc, record)) for pc, record in enumerate(code)]

    def _wrapped(self, pc: int, record: Record) -> Step:
        inner = record.step
        kept: list[tuple[Statement, Handler]] = []

        def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> bool | None:
            if not kept:
                statement = self.statement(wave, pc)
                kept.append((statement, self._handler(statement)))
            if self._bind is not None:
                bind, self._bind = self._bind, None
                bind(self, wave)
            statement, handler = kept[0]
            self.together = None
            self.accesses.clear()
            turn = Turn(wave, path, lanes, path.frame, statement, inner)
            if self.values is not None:
                self.values.put(turn, self.registers(path.frame))
            return handler(turn)

        return step

    def _handler(self, statement: Statement) -> Handler:
        own = self.handlers.get(statement.meaning)
        if own is not None:
            return own
        decides = statement.meaning in ("control", "decision", "count") or statement.operation is None
        return self.forgetting if decides else self._scalar

    def _scalar(self, turn: Turn) -> bool | None:
        wave, lanes, statement = turn.wave, turn.lanes, turn.statement
        registers = self.registers(turn.frame)
        if registers.keys().isdisjoint(statement.reads):
            return self.forgetting(turn)
        operation = statement.operation
        assert operation is not None
        cells, bits = list[Cells | None](), list[Values]()
        for source, type_name in zip(statement.sources, operation.sources, strict=False):
            held = registers.get(source.number)
            cells.append(held if held is None or lanes.whole else held.of_lanes(lanes.index))
            cut = statement.meaning != "conversion" or source.bits < bits_of(type_name)
            read = type_name if cut else f"b{source.bits}"  # whether a part is the number, all bits say
            bits.append(lanes.of(source.value(turn.frame, wave.lanes, read)))
        turn.inner(wave, turn.path, lanes)
        self.forget(turn, [n for n in statement.writes if n != statement.target])
        if statement.target >= 0:
            self._result(turn, cells, bits)
        return None

    def _result(self, turn: Turn, cells: list[Cells | None], bits: list[Values]) -> None:
        value = turn.frame.values[turn.statement.target]
        if value is None or value.dtype == np.bool_ or all(each is None for each in cells):
            self.put(turn, turn.statement.target, None)
        else:
            unbounded, after = self.values is not None, turn.lanes.of(value)
            call = Call(self.reader, turn.statement, cells, bits, after, unbounded=unbounded)
            self._write(turn, call, self._outcome(call))

    def _outcome(self, call: Call) -> Outcome:
        statement = call.statement
        outcome = RULES[statement.meaning](call) if statement.meaning in RULES else None
        if outcome is None or (outcome.keys is None and outcome.cells is None):
            self.uninterpreted[statement.opcode] += 1
            outcome = call.hashed()
        if call.overflowed:
            self.overflows.add(statement.pc)
        if call.parted and self.values is not None:
            self.values.parted.setdefault(statement.pc, call.parted)
        several = sum(each is not None for each in call.cells) > 1
        if self.at_zero and several and statement.opcode == "max" and outcome.keys is not None:
            return Outcome(np.zeros_like(outcome.keys), None, "max", outcome.operands)
        return outcome

    def _write(self, turn: Turn, call: Call, outcome: Outcome) -> None:
        wave, lanes, statement, width = turn.wave, turn.lanes, turn.statement, call.after.dtype.itemsize
        cells: Cells | None = outcome.cells
        if outcome.keys is not None:
            element = outcome.element or call.element
            outcome = self._by_value(wave, lanes, call, outcome, element)
            assert outcome.keys is not None
            for number, made in enumerate(outcome.keys if outcome.name else ()):
                own = (np.broadcast_to(x, outcome.keys.shape)[number] for x in outcome.operands)
                self.made(turn, outcome.name, made, own, lanes.index)
            cells = _cells_of(outcome.keys, element, width)
        assert cells is not None
        if not call.live.all():
            cells = cells.merged(call.live, None)
        self.put(turn, statement.target, spread(cells, lanes, wave.lanes))

    def _by_value(self, wave: Wave, lanes: Lanes, call: Call, outcome: Outcome, element: Element) -> Outcome:
        """Return a result as the function of an earlier result that it is by value, if it is any."""
        if not self.by_value.names or element.kind != "f32" or element.parts != 1 or outcome.keys is None:
            return outcome
        values = call.results(element)[0]
        for place, cells in enumerate(call.cells):
            if cells is not None and cells.kind == "f32" and call.bits[place].itemsize == element.size:
                loaded = call.values(place, element)[0]
                self.by_value.loaded(wave, lanes, cells.numbers[0], loaded)
        found = self.by_value.looked_at(wave, lanes, call.statement.pc, outcome.keys[0], values)
        if found is None:
            return outcome
        name, argument, keys = found
        return Outcome(keys[None], None, name, (argument,), element)

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

    def passed(self, wave: Wave, lanes: Lanes, source: Offsets, target: Offsets, size: int) -> None:
        """Copy the cells of a variable of a call."""
        memory = self.memory(wave.memories.local, wave)
        memory.store(target, size, memory.load(source, size), -1)

    def matrix(self, wave: Wave, execution: MatrixExecution) -> None:
        """Multiply keys as an instruction has multiplied values."""
        self.matrices.multiplied(wave, execution)

    def exit(self, wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        """Forget the cells of a wave that has ended."""
        if not wave.alive:
            self.forget_wave(wave)


def _cells_of(keys: Keys, element: Element, width: int) -> Cells:
    """Return the cells of a register that holds numbers; integers fill it, extended."""
    kind, size, count = element
    size = width if count == 1 and kind in ("s", "u") else size
    found = Cells.of(keys, kind, size)
    return found if found.width == width else found.resized(width)
