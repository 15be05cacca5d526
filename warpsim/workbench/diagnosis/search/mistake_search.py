"""Cases of the search, and D as it is read with mistakes made.

Does not know what the mistakes are, nor how findings are worded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ....isa.fragments import codes_from, registers_of
from ....isa.instruction import Instruction
from ....isa.products import Storage
from ....isa.registers import Words, unpacked
from ...inputs.decimals import Printed
from ..library.arithmetic_mistakes import WHOLE, Arithmetic, Part, alternatives
from ..library.mistake import Mistake
from ..library.setting import Registers, Setting

Elements = npt.NDArray[Any]  # (..., tiles, elements of D)


_SCREENED = 256  # elements of D; of larger results only some rows and columns are compared while searching
_PART_ROWS, _PART_COLUMNS = 16, 8


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is to be explained: registers ``(tiles, lanes, registers)`` by operand, and D as it came out."""

    setting: Setting
    registers: Registers
    actual: Words
    part: Part = WHOLE  # of D, which alone is compared while searching
    printed: Printed | None = None  # D's numbers, where their digits do not distinguish all codes

    def settled(self, d: Elements, wanted: Elements) -> Elements:
        """Return codes of D, replaced by the wanted codes where they print the same."""
        return d if self.printed is None else self.printed.settled(d, wanted, self.setting.instruction.d)

    def tile(self, index: int) -> Case:
        """Return the case of one tile."""
        registers = {name: words[index : index + 1] for name, words in self.registers.items()}
        return replace(self, registers=registers, actual=self.actual[index : index + 1])

    def screened(self, equal: npt.NDArray[np.bool_]) -> Case:
        """Return the case of the tile with the fewest ``equal (tiles, m, n)``, a part of large tiles."""
        worst = int(equal.reshape(len(equal), -1).sum(axis=-1).argmin())
        case, wrong = self.tile(worst), ~equal[worst]
        if wrong.ndim > 2 or wrong.size <= _SCREENED:
            return case
        return replace(case, part=spread_part(wrong, _PART_ROWS, _PART_COLUMNS))


def elements_of(words: Words, instruction: Instruction) -> Elements:
    """Return ``(..., elements)``: the codes of D in the order of the registers."""
    storage = Storage(bits=instruction.d.bits)
    flat = words.reshape(*words.shape[:-2], -1)
    return unpacked(flat, storage, instruction.register_bits, instruction.d.mask)


def spread_part(wrong: npt.NDArray[np.bool_], rows: int, columns: int) -> Part:
    """Return a part of a matrix, at most this size, wrong lines first."""
    if wrong.shape[0] <= rows and wrong.shape[1] <= columns:
        return WHOLE
    down, across = np.asarray(wrong.any(axis=1)), np.asarray(wrong.any(axis=0))
    return Part(rows=_spread(down, rows), columns=_spread(across, columns))


def _spread(flags: npt.NDArray[np.bool_], count: int) -> npt.NDArray[np.intp]:
    """Return indices of ``count`` flags, set flags first, evenly spread among them."""
    marked, others = np.flatnonzero(flags), np.flatnonzero(~flags)
    if len(marked) >= count:
        return marked[np.linspace(0, len(marked) - 1, count).astype(np.intp)]
    more = others[np.linspace(0, len(others) - 1, min(count - len(marked), len(others))).astype(np.intp)]
    return np.sort(np.concatenate([marked, more]))


# --- one explanation -----------------------------------------------------------------------------------


def outcome(setting: Setting, registers: Registers, explanation: Sequence[Mistake]) -> Words:
    """Return D ``(tiles, lanes, registers)`` as it is read with these mistakes made, in order."""
    registers, arithmetic = dict(registers), Arithmetic(instruction=setting.instruction)
    if wrong := [mistake for mistake in explanation if mistake.arithmetic]:
        arithmetic = _composed(*wrong) or arithmetic
    for mistake in explanation:
        registers |= mistake.change(registers) if mistake.change else {}
    d = registers_of(arithmetic.simulate(setting, registers), setting.instruction, "d")
    for mistake in explanation:
        d = mistake.read(d) if mistake.read else d
    return d


def _composed(first: Mistake, second: Mistake | None = None) -> Arithmetic | None:
    """Return one wrong arithmetic, or the second's change made to the first's; None if it has none."""
    if first.arithmetic is None or second is None:
        return first.arithmetic
    return {name: other for name, _, other in alternatives(first.arithmetic)}.get(second.name)


def reproduces(case: Case, mistake: Mistake) -> bool:
    """Return whether a single mistake gives every bit of D, or of the part of it that is compared."""
    form = case.setting.instruction
    registers = case.registers | (mistake.change(case.registers) if mistake.change else {})
    wanted = case.part.of_result(codes_from(case.actual, form, "d"))
    arithmetic = mistake.arithmetic or Arithmetic(instruction=form)
    return bool(
        (case.settled(arithmetic.simulate(case.setting, registers, case.part), wanted) == wanted).all()
    )
