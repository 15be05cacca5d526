"""What statements have computed of the bytes of arrays, as short formulas: "relu(x[3] * scale[1])".

Executions are kept as they are, and a formula is put into words only when it is asked for. Knows keys and
statements; the names of bytes are given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ....isa.formats import FORMATS
from ....observe.algebra.keys.finite_fields import Keys
from ....observe.algebra.keys.key_bits import BitTable
from ....observe.algebra.keys.key_cells import Cells
from ....observe.algebra.keys.key_reading import numbers
from ....observe.algebra.rules.keyed_statements import element_of
from ....observe.algebra.rules.rule_calls import Call
from .byte_keys import COMPUTED, CONSTANT, ByteKeys

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
