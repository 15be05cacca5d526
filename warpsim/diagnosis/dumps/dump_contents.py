"""Does this dump hold this matrix? An operand's registers against those that its matrix should be in.

Needs no D: the rearrangements and values of the library that touch the operand alone are tried on the
registers themselves. Words that the instruction does not read (of other selectors) are not compared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...environment import in_default_environment
from ...isa.fragments import metadata_map
from ...isa.instruction import Instruction
from ...isa.registers import Words
from ..library.all_mistakes import mistakes
from ..library.grids import Setting
from ..library.local_mistakes import local_mistakes
from ..library.mistake import Mistake

_CLOSEST = 3
_LEAST = 0.5  # of the words


@dataclass(frozen=True, kw_only=True)
class Holding:
    """How many of ``total`` words of an operand are as its matrix says, and the mistakes that give all.

    ``closest`` are the best of the others, with their number of words.
    """

    operand: str
    equal: int
    total: int
    matches: tuple[Mistake, ...]
    closest: tuple[tuple[int, Mistake], ...]

    @property
    def holds(self) -> bool:
        """Whether every word is as it should be."""
        return self.equal == self.total


@in_default_environment
def holding(
    instruction: Instruction, operand: str, expected: Words, dump: Words, *, selector: int = 0
) -> Holding:
    """Return whether ``dump (lanes, registers)`` of operand a, b, c or e is what its matrix is packed
    into.
    """
    read = words_read(instruction, operand, expected.shape, selector)
    setting = Setting(instruction=instruction, selector=selector)
    library = [mistake for mistake in mistakes(setting) if mistake.operands == (operand,) and mistake.change]
    library += [
        mistake for mistake in local_mistakes(setting) if mistake.operands == (operand,) and mistake.change
    ]
    given = {operand: expected[None]}
    scored = [
        (_equal(mistake.change(given)[operand][0], dump, read), mistake)
        for mistake in library
        if mistake.change
    ]
    scored.sort(key=lambda pair: -pair[0])
    own, total = _equal(expected, dump, read), int(read.sum())
    closest = [pair for pair in scored if total > pair[0] > max(own, total * _LEAST)]
    return Holding(
        operand=operand,
        equal=own,
        total=total,
        matches=tuple(mistake for count, mistake in scored if count == total) if own < total else (),
        closest=tuple(closest[:_CLOSEST]),
    )


def words_read(
    instruction: Instruction, operand: str, shape: tuple[int, ...], selector: int
) -> npt.NDArray[np.bool_]:
    """Return ``(lanes, registers)``: words that are read; of metadata those of the selector's lanes."""
    read = np.ones(shape, np.bool_)
    if operand == "e":
        read[:] = False
        read[metadata_map(instruction, selector)[:, 0]] = True
    return read


def _equal(words: Words, dump: Words, read: npt.NDArray[np.bool_]) -> int:
    return int(((words == dump) & read).sum())
