"""Values of a reference in the registers of a run, so that the decisions of the run are the reference's.

Both sides of a comparison may have one formula and take a max, a select or a branch differently: an operand
of the kernel was rounded, wrapped, or is infinite. In a run with these values a statement reads each formula
that the reference has as the number that the reference has; conversions that saturate and sums that wrap
keep their formula. Where such a run computes the reference, values part, and no formula does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from ...machine.state.lanes import Frame
from .key_store import Registers, Turn
from .keys.finite_fields import Keys
from .keys.key_cells import PAIRED, Cells, Mask
from .keys.key_reading import bits_of, numbers, range_of
from .shadow_arrays import Shadow

Bits = npt.NDArray[Any]
Values = npt.NDArray[np.float64]


class FormulaValues:
    """The finite values of the arrays of a reference, by key.

    ``parted`` are the statements whose results are infinite, no numbers, or out of the range of their type
    where those of the reference are not: what they are, and what the reference has.
    """

    def __init__(self, arrays: Iterable[Shadow]) -> None:
        held = [each for each in arrays if each.values.dtype.kind != "b"]
        keys = np.concatenate([np.zeros(0, np.uint64), *(each.keys.reshape(-1) for each in held)])
        values = np.concatenate([np.zeros(0), *(each.values.reshape(-1) for each in held)])
        finite = np.isfinite(values)
        self._keys, first = np.unique(keys[finite], return_index=True)
        self._values: Values = values[finite][first]
        self.parted = dict[int, str]()
        self._out = set[int]()  # keys of numbers that are out of range, each where it was first
        self._writers: WeakKeyDictionary[Frame, dict[int, int]] = WeakKeyDictionary()  # of registers

    def of(self, keys: Keys) -> tuple[Mask, Values]:
        """Return which keys are of formulas of the reference, and their values."""
        if not self._keys.size:
            return np.zeros(keys.shape, np.bool_), np.zeros(keys.shape)
        place = np.minimum(np.searchsorted(self._keys, keys), self._keys.size - 1)
        return self._keys[place] == keys, self._values[place]

    def put(self, turn: Turn, registers: Registers) -> None:
        """Put the values into the registers that a statement reads."""
        statement, writers = turn.statement, self._writers.setdefault(turn.frame, {})
        for number in statement.reads:
            cells, held = registers.get(number), turn.frame.values[number]
            if cells is not None and held is not None and cells.kind not in ("", PAIRED):
                bits = np.broadcast_to(held, cells.lanes)
                right = self._right(cells, bits, turn, writers.get(number, -1))
                if right is not bits:
                    turn.frame.values[number] = right
        moved = [writers[number] for number in statement.reads if number in writers]
        writer = moved[0] if moved and statement.meaning == "copy" else statement.pc
        writers.update(dict.fromkeys(statement.writes, writer))

    def _right(self, cells: Cells, bits: Bits, turn: Turn, writer: int) -> Bits:
        """Return a register with the values of the numbers that it holds."""
        for place, keys in enumerate(cells.numbers):
            known, values = self.of(keys)
            shift = bits.dtype.type(8 * cells.size * place)
            held = numbers(bits >> shift, cells.kind, cells.size).astype(np.float64)
            known &= turn.lanes.mask & (held != values)
            if cells.there is not None:
                known &= cells.there
            if known.any():
                self._note(cells, keys, known, (held, values, writer))
                wanted = bits_of(values, cells.kind, cells.size).astype(bits.dtype) << shift
                kept = ~(np.array((1 << 8 * cells.size) - 1).astype(bits.dtype) << shift)
                bits = np.where(known, bits & kept | wanted, bits)
        return bits

    def _note(self, cells: Cells, keys: Keys, some: Mask, made: tuple[Values, Values, int]) -> None:
        """Note where values are out of the range of what holds them."""
        held, values, writer = made
        low, high = range_of(cells.kind, cells.size)
        out = some & (~np.isfinite(held) | (values < low) | (values > high))
        for lane in np.flatnonzero(out).tolist():
            if int(keys[lane]) not in self._out:
                self._out.add(int(keys[lane]))
                self.parted.setdefault(writer, f"{held[lane]:.9g} where the formula has {values[lane]:.9g}")
