"""An observer of one launch on its own data: the byte of an array that each byte of each matrix operand is.

Beside every value runs its key (observe/algebra), and the bytes of the arrays that are traced have keys that
say which they are (byte_keys.py). Statements that move bytes or bits move keys; others make a key of those of
their operands. Predicates and addresses that depend on a key are noted. Metadata without a meaning is not an
error: the product is zeros then. Knows waves and statements; does not know what operands should be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ....isa.formats import FORMATS
from ....machine.run.wave import Record, Step, Wave
from ....machine.state.lanes import DivergentPath, Lanes, Values
from ....observe.algebra.key_store import Turn
from ....observe.algebra.keys.finite_fields import Keys, hashed
from ....observe.algebra.keys.key_bits import BitTable
from ....observe.algebra.keys.key_cells import Cells
from ....observe.algebra.keys.key_reading import KeyReader, numbers
from ....observe.algebra.moves import Handler
from ....observe.algebra.observer import RULES, Algebra
from ....observe.algebra.rules.keyed_statements import Statement, element_of
from ....observe.algebra.rules.rule_calls import Call, Outcome
from .byte_keys import BYTE, COMPUTED, CONSTANT, ByteKeys
from .kept_products import KeptMatrices, KeptProducts

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


_WIDEST = 4  # bytes of integers whose bits have keys
_SUMS = {"add": (0, 1), "mul": (0,), "mad": (0, 2)}  # by opcode: the operands that are terms
_SCALED = ("mul", "mad")  # the first term times the second operand


def packed(call: Call) -> Outcome | None:
    """Return the bits of a sum of integers that do not overlap; None for other statements and sums."""
    opcode, size = call.statement.opcode, call.after.dtype.itemsize
    if opcode not in _SUMS or call.element.kind not in ("s", "u") or size > _WIDEST:
        return None
    if {"sat", "hi", "wide", "cc"} & set(call.modifiers) or (opcode == "mul" and call.cells[0] is None):
        return None
    found = np.zeros((call.lanes, 8 * size), np.uint64)
    for place in _SUMS[opcode]:
        rows = _bits(call, place, size, scaled=opcode in _SCALED and place == 0)
        if rows is None or ((rows != 0) & (found != 0)).any():
            return None
        found = np.where(rows != 0, rows, found)
    return Outcome(call.reader.bits.number(found)[None])


def _bits(call: Call, place: int, size: int, *, scaled: bool) -> Keys | None:
    """Return the bits ``(lanes, bits)`` of a term; None where they are not known, or the factor is no power
    of two.
    """
    rows, known = call.reader.rows(call.cells[place], call.bits[place], size)
    if not known.all():
        return None
    if not scaled:
        return rows
    factor = int(call.bits[1][0])
    if call.cells[1] is not None or factor.bit_count() != 1 or (call.bits[1] != factor).any():
        return None
    shift = min(factor.bit_length() - 1, 8 * size)
    return np.pad(rows, ((0, 0), (shift, 0)))[:, : 8 * size]


Name = Callable[
    [int, int, int, int], str
]  # of so many bits from a bit of a byte on, read in elements of a size
_MOST = 1 << 28  # bytes of keys that are kept
_DEEPEST = 5  # operations inside another
_INFIX = {"add": " + ", "sub": " - ", "mul": " * ", "div": " / "}
_SIGNS = {"neg": "-"}
_SAME = ("cvt",)  # the number as it is, but for rounding


class _Made(NamedTuple):
    """An execution of a statement by some lanes: operands as cells, or as bits where these have no keys."""

    opcode: str
    types: tuple[str, ...]
    made: Keys
    cells: tuple[Cells | None, ...]
    bits: tuple[npt.NDArray[Any], ...]


class Formulas:
    """The executions that computed anything of bytes with keys."""

    def __init__(self, keys: ByteKeys, bits: BitTable) -> None:
        self.keys, self.bits = keys, bits
        self._made = list[_Made]()
        self._size = 0
        self._index: tuple[Keys, npt.NDArray[np.intp], npt.NDArray[np.intp]] | None = None

    def add(self, call: Call, made: Keys) -> None:
        """Keep an execution, as long as there is room."""
        size = made.nbytes * (2 + sum(2 if each is None else 2 * each.width for each in call.cells))
        if self._size + size > _MOST:
            return
        self._size += size
        own = _Made(call.statement.opcode, tuple(call.types), made, tuple(call.cells), tuple(call.bits))
        self._made.append(own)
        self._index = None

    def text(self, key: int, name: Name, depth: int = 0) -> str:
        """Return the formula of a key, "" where it is not known, or is too deep."""
        keys, groups, lanes = self._looked_up()
        place = int(np.searchsorted(keys, np.uint64(key)))
        if depth > _DEEPEST or place == len(keys) or int(keys[place]) != key:
            return ""
        made, lane = self._made[int(groups[place])], int(lanes[place])
        parts = [
            self._operand(cells, bits, lane, kind, (name, depth))
            for cells, bits, kind in zip(made.cells, made.bits, made.types, strict=False)
        ]
        # an operation on operands in words
        if made.opcode in _SAME and len(parts) == 1:
            return parts[0]
        if made.opcode == "max" and "0" in parts and len(parts) == 2:
            return f"relu({parts[1 - parts.index('0')]})"
        factors = [_closed(part) for part in parts]
        if made.opcode in _SIGNS:
            return f"{_SIGNS[made.opcode]}{factors[0]}"
        if made.opcode in _INFIX:
            return _INFIX[made.opcode].join(factors)
        if made.opcode in ("fma", "mad"):
            return f"{factors[0]} * {factors[1]} + {parts[2]}"
        return f"{made.opcode}({', '.join(parts)})"

    def _looked_up(self) -> tuple[Keys, npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return all keys sorted, each once, with the execution and the lane that made each first."""
        if self._index is None:
            every = np.concatenate([np.zeros(0, np.uint64), *(each.made for each in self._made)])
            counts = [len(each.made) for each in self._made]
            keys, first = np.unique(every, return_index=True)
            groups = np.repeat(np.arange(len(counts)), counts)[first]
            starts = np.cumsum([0, *counts])[:-1]
            self._index = keys, groups, first - starts[groups] if counts else first
        return self._index

    def _operand(
        self,
        cells: Cells | None,
        bits: npt.NDArray[Any],
        lane: int,
        type_name: str,
        within: tuple[Name, int],
    ) -> str:
        name, depth = within
        if bits.dtype == np.bool_:
            return str(bool(bits[lane])).lower() if cells is None else "..."
        if cells is None:
            return _number(bits[lane : lane + 1], type_name)
        element = element_of(type_name)
        size = min(element.size * element.parts, cells.width)
        keys, tags = cells.keys[:size, lane], cells.tags[:size, lane]
        found = self.keys.indices(self.bits, keys, tags)
        first = int(found[0])
        if first == self.keys.result:
            return "D"
        if (found == CONSTANT).all():
            return _number(bits[lane : lane + 1], type_name)
        count = int((found == first + np.arange(size)).cumprod().sum())  # bytes in a row, zeros above
        if first > 0 and (count == size or int(bits[lane]) >> 8 * count == 0):
            return name(first, 8 * count, 0, element.size)
        rows, known = self.bits.rows(keys[:1])
        place = self.keys.bits_of(rows[0, : 8 * size]) if known[0] else None
        if place is not None:
            byte, low, count = place
            return name(byte, count, low, element.size)
        computed = np.flatnonzero(found == COMPUTED)
        return self.text(int(keys[computed[0]]), name, depth + 1) or "..." if computed.size else "..."


def _closed(part: str) -> str:
    """Return a formula in parentheses, unless it is a name or a call."""
    depth = 0
    for letter in part:
        depth += (letter in "([") - (letter in ")]")
        if letter == " " and not depth:
            return f"({part})"
    return part


def _number(bits: npt.NDArray[Any], type_name: str) -> str:
    """Return a constant; of several numbers the first."""
    kind, size, _ = element_of(type_name)
    low = bits.astype(np.uint64) & np.uint64((1 << 8 * size) - 1)
    code = f"u{size}" if kind in ("s", "u") else FORMATS[kind].code_dtype
    value = numbers(low.astype(code), kind, size)[0]
    if kind not in ("s", "u"):
        return f"{float(value):g}"
    return f"{int(value):#x}" if type_name[0] == "b" and value > 9 else str(int(value))
