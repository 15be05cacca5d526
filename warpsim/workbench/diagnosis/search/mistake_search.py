"""Mistakes that are no maps, simulated in batches and compared bit for bit.

Knows how mistakes are stacked along batch axes so that one call of the pipeline covers many of
them. Does not know what the mistakes are, nor how findings are worded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ....isa.fragments import codes_from, registers_of
from ....isa.instruction import Instruction
from ....isa.products import Storage
from ....isa.registers import Words, unpacked
from ...inputs.decimals import Printed
from ..dumps.closeness import closeness
from ..library.all_mistakes import composed
from ..library.arithmetic_mistakes import WHOLE, Arithmetic, Part
from ..library.grids import Registers, Setting
from ..library.mistake import Mistake

Elements = npt.NDArray[Any]  # (..., tiles, elements of D)


class Score(NamedTuple):
    """What an explanation gives: the fraction of D's elements that is equal, and how close it comes."""

    fraction: float
    closeness: float
    names: tuple[Mistake, ...]


Scores = list[Score]

_BATCH = 1 << 21  # products of A and B elements that one call of the pipeline may sum
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

    @property
    def arithmetic(self) -> Arithmetic:
        """What should have been computed."""
        return Arithmetic(instruction=self.setting.instruction)

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
    wrong = [mistake for mistake in explanation if mistake.arithmetic]
    if wrong:
        arithmetic = (composed(*wrong) if len(wrong) > 1 else wrong[0].arithmetic) or arithmetic
    for mistake in explanation:
        registers |= mistake.change(registers) if mistake.change else {}
    d = registers_of(arithmetic.simulate(setting, registers), setting.instruction, "d")
    for mistake in explanation:
        d = mistake.read(d) if mistake.read else d
    return d


# --- stacks of mistakes --------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Stack:
    """Explanations that touch the same operands, along the first axis of their arrays.

    ``registers`` are the operands that change, ``(variants, tiles, lanes, registers)``; ``actual`` is D as
    it must have been written, ``(variants or 1, tiles, lanes, registers)``.
    """

    names: tuple[tuple[Mistake, ...], ...]
    registers: Registers
    actual: Words
    operands: frozenset[str]


def _stack(case: Case, group: Sequence[Mistake]) -> Stack:
    """Return a stack of single mistakes with the same operands."""
    changed = [mistake.change(case.registers) if mistake.change else {} for mistake in group]
    undone = [mistake.undo(case.actual) if mistake.undo else case.actual for mistake in group]
    return Stack(
        names=tuple((mistake,) for mistake in group),
        registers={name: np.stack([part[name] for part in changed]) for name in changed[0]},
        actual=np.stack(undone) if any(mistake.undo for mistake in group) else case.actual[None],
        operands=frozenset(group[0].operands),
    )


def _groups(case: Case, library: Sequence[Mistake]) -> list[Stack]:
    """Return stacks of all mistakes that are not arithmetic, by operands."""
    found: dict[tuple[tuple[str, ...], bool], list[Mistake]] = {}
    for mistake in library:
        if not mistake.arithmetic:
            found.setdefault((mistake.operands, mistake.change is None), []).append(mistake)
    return [_stack(case, group) for group in found.values()]


def _scores(case: Case, stack: Stack, arithmetic: Arithmetic) -> Scores:
    """Return what every explanation of a stack gives."""
    step = _step(case)
    scores: Scores = []
    for first in range(0, len(stack.names), step):
        part = slice(first, first + step)
        registers = {name: words[None, None] for name, words in case.registers.items()}
        registers |= {name: words[part, None] for name, words in stack.registers.items()}
        actual = stack.actual[part, None] if len(stack.actual) > 1 else stack.actual[:, None]
        fractions, near = _given(case, registers, actual, arithmetic)
        names, shape = stack.names[part], (len(stack.names[part]), 1)
        full, close = (np.broadcast_to(each, shape)[:, 0].tolist() for each in (fractions, near))
        scores += [Score(*each) for each in zip(full, close, names, strict=True)]
    return scores


def _step(case: Case) -> int:
    """Return variants of a stack that one call covers."""
    instruction = case.setting.instruction
    m, n = instruction.matrix_shape("d")
    m = m if case.part.rows is None else len(case.part.rows)
    n = n if case.part.columns is None else len(case.part.columns)
    products = m * n * instruction.stored_k * instruction.products * len(case.actual)
    return max(1, _BATCH // products)


def _given(
    case: Case, registers: Registers, actual: Words, arithmetic: Arithmetic
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return fractions and closenesses, both ``(variants of the first stack, of the second)``."""
    element = case.setting.instruction.d
    wanted = case.part.of_result(codes_from(actual, case.setting.instruction, "d"))
    d = case.settled(arithmetic.simulate(case.setting, registers, case.part), wanted)
    both = (d == wanted).astype(np.float64), closeness(d, wanted, element)
    fractions, near = (each.reshape(*each.shape[:2], -1).mean(axis=-1) for each in both)
    return fractions, near


# --- the search ----------------------------------------------------------------------------------------


def singles(case: Case, library: Sequence[Mistake]) -> Scores:
    """Return what every single mistake gives, in the order of the library."""
    scores: Scores = []
    for stack in _groups(case, library):
        scores += _scores(case, stack, case.arithmetic)
    for mistake in library:
        if mistake.arithmetic:
            scores += _scores(case, _plain(case, (mistake,)), mistake.arithmetic)
    return scores


def _plain(case: Case, names: tuple[Mistake, ...]) -> Stack:
    """Return a stack of one case, with nothing rearranged."""
    return Stack(names=(names,), registers={}, actual=case.actual[None], operands=frozenset())
