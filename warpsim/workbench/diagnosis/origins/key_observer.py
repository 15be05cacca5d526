"""An observer of one launch on its own data: the byte of an array that each byte of each matrix operand is.

Beside every value runs its key (observe/algebra), and the bytes of the arrays that are traced have keys that
say which they are (byte_keys.py). Statements that move bytes or bits move keys; others make a key of those of
their operands. Predicates and addresses that depend on a key are noted. Metadata without a meaning is not an
error: the product is zeros then. Knows waves and statements; does not know what operands should be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from ....machine.run.wave import Record, Step, Wave
from ....machine.state.lanes import DivergentPath, Lanes, Values
from ....observe.algebra.key_store import Turn
from ....observe.algebra.keys.finite_fields import hashed
from ....observe.algebra.keys.key_cells import Cells
from ....observe.algebra.keys.key_reading import KeyReader
from ....observe.algebra.moves import Handler
from ....observe.algebra.observer import RULES, Algebra
from ....observe.algebra.rules.keyed_statements import Statement, element_of
from ....observe.algebra.rules.rule_calls import Call, Outcome
from .byte_keys import BYTE, ByteKeys
from .element_formulas import Formulas
from .kept_products import KeptMatrices, KeptProducts
from .packed_words import packed

_MOVING = ("logic", "shift", "field", "bytes", "selection")  # meanings whose rules move bytes or bits
_BLOCK = 1 << 20  # bytes that get keys at once
_DECIDED = hashed("decided", np.ones(1, np.uint64))


class KeyObserver(Algebra):
    """``products`` are the matrix instructions that were executed, ``formulas`` what was computed.

    ``decided`` are statements that some lanes execute or not as values in the arrays say, ``addressed`` those
    whose addresses do. ``starts`` are the offsets of the arrays in the device's memory and their bytes.
    """

    def __init__(self, keys: ByteKeys, starts: Sequence[tuple[int, int]], target: str) -> None:
        super().__init__(KeyReader(0), self._begin)
        self.byte_keys, self.starts, self.target = keys, starts, target
        self.reader.bits.leaves.append(keys)
        self.formulas = Formulas(keys, self.reader.bits)
        self.products = KeptProducts(self, keys)
        self.decided, self.addressed = set[int](), set[int]()
        self.written_by = {}
        self._predicates = set[tuple[int, int]]()  # that depend on the data, by the statement that wrote them
        self.matrices = KeptMatrices(self, self.products)
        self.handlers["matrix product"] = self.matrices.executed

    def _begin(self, algebra: Algebra, wave: Wave) -> None:
        """Put keys on the bytes of the arrays."""
        memory, first = self.memory(wave.memories.device.data), 1
        for offset, size in self.starts:
            for begin in range(0, size, _BLOCK):
                count = min(_BLOCK, size - begin)
                keys = self.byte_keys.of(np.arange(first + begin, first + begin + count))
                memory.keys[offset + begin : offset + begin + count] = keys
            memory.tags[offset : offset + size] = BYTE
            first += size

    # --- statements ---

    def _wrapped(self, pc: int, record: Record) -> Step:
        inner, addresses = super()._wrapped(pc, record), record.flow.addresses

        def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> bool | None:
            self.products.now = pc, path.frame
            if addresses and not self.registers(path.frame).keys().isdisjoint(addresses):
                self.addressed.add(pc)
            return inner(wave, path, lanes)

        return step

    def _handler(self, statement: Statement) -> Handler:
        found = super()._handler(statement)
        if statement.meaning in ("matrices", "matrix product"):
            return partial(self._lawful, found)
        if statement.opcode == "brx" or (found == self.forgetting and statement.meaning != "control"):
            return self._derived
        return found

    def _lawful(self, handler: Handler, turn: Turn) -> bool | None:
        """Execute a statement of matrices; what it reads in a way that has no rule is computed."""
        before = self.uninterpreted[turn.statement.opcode]
        changed = handler(turn)
        if self.uninterpreted[turn.statement.opcode] > before:
            for number in turn.statement.writes:
                self._decide(turn, self.together or turn.lanes, number)
        return changed

    def _derived(self, turn: Turn) -> bool | None:
        """Execute a statement whose results depend on keys in a way that has no rule."""
        registers, lanes, statement = self.registers(turn.frame), turn.lanes, turn.statement
        keyed = [registers[number] for number in statement.reads if number in registers]
        if not any(lanes.of(np.asarray(cells.tags.any(axis=0))).any() for cells in keyed):
            return self.forgetting(turn)
        changed = turn.inner(turn.wave, turn.path, lanes)
        together = self.together or (None if changed else lanes)
        if statement.opcode == "brx":
            self.decided.add(statement.pc)
        elif together is not None:
            for number in statement.writes:
                self._decide(turn, together, number)
        return changed

    def _decide(self, turn: Turn, lanes: Lanes, number: int) -> None:
        """Write a register that depends on the data; note what a predicate guards."""
        value, pc = turn.frame.values[number], turn.statement.pc
        if value is None:
            return
        keys = np.broadcast_to(_DECIDED, (turn.wave.lanes,))
        self.put(turn, number, Cells.of(keys, "u", value.dtype.itemsize), lanes)
        if value.dtype == np.bool_ and (pc, number) not in self._predicates:
            self._predicates.add((pc, number))
            self.decided.update(self._guarded(pc, number))

    def _guarded(self, pc: int, number: int) -> Iterator[int]:
        """Yield the statements that a predicate guards as a statement has written it, in sequence or in the
        next turn of a loop."""
        function = self.code[pc].function
        for later in (*range(pc + 1, len(self.code)), *range(pc)):
            record = self.code[later]
            if record.function != function:
                continue
            if record.guard == number:
                yield later
            elif number in record.flow.written:
                return

    def _result(self, turn: Turn, cells: list[Cells | None], bits: list[Values]) -> None:
        """Write the keys of a result: bytes and bits that moved, or a key of the operands' keys."""
        statement, lanes = turn.statement, turn.lanes
        value = turn.frame.values[statement.target]
        if value is None or not any(each is not None and each.any for each in cells):
            self.put(turn, statement.target, None)
        elif value.dtype == np.bool_:
            self._decide(turn, lanes, statement.target)
        else:
            call = Call(self.reader, statement, cells, bits, after=lanes.of(value))
            outcome = (_moved(call) or call.hashed())._replace(name="")
            if outcome.keys is not None:
                self.formulas.add(call, outcome.keys[0])
            self._write(turn, call, outcome)


def _moved(call: Call) -> Outcome | None:
    """Return bytes or bits that have moved; None for what a statement has computed."""
    meaning = call.statement.meaning
    if meaning == "selection" and call.cells[2] is not None:
        return None
    if meaning == "conversion" and not (call.has("pack") or call.has("sat")):
        kinds = {element_of(word).kind for word in (call.types[0], call.result_type)}
        found = RULES[meaning](call) if kinds <= {"s", "u"} else None
    else:
        found = RULES[meaning](call) if meaning in _MOVING else packed(call)
    return None if found is None or (found.keys is None and found.cells is None) else found
