"""Variations of what metadata selects: any table from the sixteen fields to rows of B."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from warpsim.isa.fragments import legal_fields, read_fields, registers_of
from warpsim.isa.instruction import Instruction
from warpsim.isa.operand_places.placements import Inputs
from warpsim.isa.products import Operands
from warpsim.isa.registers import Words
from warpsim.isa.rules import Rule
from warpsim.machine.run.engines import Engine as Arithmetic
from warpsim.sums.execution.pipeline import rule_for

from ..candidates import computing, gathered, rule_compute
from ..experiments.experiment import Trial
from ..experiments.metadata_undefined import PAIRS, Pair, selecting
from ..operands import Array, Rng
from .variation import Variation

_ROWS = (0, 1, 2, 3, None)  # of a chunk; None multiplies nothing
_NUMBERS = {  # of two: the bit of a field that chooses
    "literal": 1,
    "bit 3": 3,
    "bit 0": 0,
}


def variations(trial: Trial, count: int, rng: Rng) -> Iterator[Variation]:
    """So many tables; of the fields with a meaning all but a few are right."""
    seen = set[Any]()
    while len(seen) < count:
        table = _of_one(rng, trial.form) if _one(trial.form) else _of_two(rng, trial.form)
        if table not in seen:
            seen.add(table)
            chosen = _choosing(table) if _one(trial.form) else _reading(table)
            yield Variation(name=" ".join(map(str, table)), arithmetic=chosen, key=table)


def listed(trial: Trial) -> dict[str, Any]:
    """Return the tables of the candidates; 'halves' has none."""
    if _one(trial.form):
        return {name: tuple(field >> bit & 1 for field in range(16)) for name, bit in _NUMBERS.items()}
    return {name: tuple(pair(field & 3, field >> 2) for field in range(16)) for name, _, pair in PAIRS}


def _one(form: Instruction) -> bool:
    return form.pattern is not None and form.pattern.kept == 1


def _of_two(rng: Rng, form: Instruction) -> tuple[Pair, ...]:
    legal, wrong = legal_fields(form), rng.random() < 0.1
    table = list[Pair]()
    for field in range(16):
        if legal[field] and not (wrong and rng.random() < 0.3):
            table.append((field & 3, field >> 2))
        else:
            first, second = (_ROWS[int(place)] for place in rng.integers(0, len(_ROWS), 2))
            table.append((first, second))
    return tuple(table)


def _of_one(rng: Rng, form: Instruction) -> tuple[int, ...]:
    legal = legal_fields(form)
    return tuple(field >> 1 & 1 if legal[field] else int(rng.integers(2)) for field in range(16))


def _reading(table: tuple[Pair, ...]) -> Arithmetic:
    return computing(selecting(lambda first, second: table[first | second << 2]))


def _choosing(table: tuple[int, ...]) -> Arithmetic:
    def arithmetic(instruction: Instruction, inputs: Inputs) -> Words:
        fields = read_fields(instruction, inputs.registers["e"], inputs.selector)
        operands, batch = gathered(instruction, inputs)
        codes = _numbers(operands, np.array(table)[fields], rule_for(instruction))
        return registers_of(codes.reshape(*batch, *instruction.matrix_shape("d")), instruction, "d")

    return arithmetic


def _numbers(operands: Operands, chosen: Array, rule: Rule) -> Array:
    columns = 2 * np.arange(operands.a.shape[2]) + chosen.reshape(operands.a.shape)
    return rule_compute(replace(operands, columns=columns), rule)
