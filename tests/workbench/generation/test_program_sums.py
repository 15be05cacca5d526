"""Programs over many outputs: the interpreter's codes, of the rules of chips and of every rewrite of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.helpers import nasty
from tests.helpers.dot_codes import ARITHMETICS, codes_of
from warpsim.isa.instruction import Instruction
from warpsim.sums.execution.pipeline import rule_for
from warpsim.sums.rule_programs.program_rewrites import rewrites, rewritten
from warpsim.sums.rule_programs.rule_interpreter import run
from warpsim.sums.rule_programs.rule_operations import Program
from warpsim.sums.rule_programs.rule_templates import program_of
from warpsim.workbench.generation.sums.program_sums import program_codes


def of_each_kind() -> list[Instruction]:
    """The first arithmetic of every rule, by formats of A and D, with and without scales."""
    found: dict[Any, Instruction] = {}
    for each in ARITHMETICS:
        key = type(rule_for(each)), each.a.bits, each.d.name, each.scale is None
        found.setdefault(key, each)
    return list(found.values())


KINDS = of_each_kind()


@cache
def dots(instruction: Instruction, count: int) -> list[dict[str, list[int]]]:
    """Nasty dot products, some of each kind."""
    return [
        codes
        for seed, make in enumerate(nasty.makers(instruction))
        for codes in codes_of(instruction, make(instruction, count, np.random.default_rng(seed + 5)))
    ]


def together(program: Program, rows: list[dict[str, list[int]]]) -> list[int]:
    """The codes of D of all dot products at once."""
    inputs = {name: np.array([row[name] for row in rows], np.uint64) for name in rows[0]}
    return [int(code) for code in program_codes(program, inputs)]


def alone(program: Program, rows: list[dict[str, list[int]]]) -> list[int]:
    """The codes of D, one dot product after the other."""
    return [int(run(program, row)[program.result]) for row in rows]


@pytest.mark.parametrize("instruction", KINDS, ids=nasty.name)
def test_a_rule_over_many_outputs(instruction: Instruction) -> None:
    program, rows = program_of(rule_for(instruction).bare, instruction.product), dots(instruction, 8)
    assert together(program, rows) == alone(program, rows)


@pytest.mark.parametrize("instruction", KINDS, ids=nasty.name)
def test_every_rewrite_over_many_outputs(instruction: Instruction) -> None:
    rule, rows = rule_for(instruction).bare, dots(instruction, 1)
    for each in rewrites(rule, instruction.product):
        program = rewritten(rule, instruction.product, each)
        assert together(program, rows) == alone(program, rows), (each.kind, each.facts)


def kinds_of_rewrites() -> Iterator[str]:
    for instruction in KINDS:
        yield from (each.kind for each in rewrites(rule_for(instruction).bare, instruction.product))


def test_every_operation_has_its_neighbours() -> None:
    assert {*kinds_of_rewrites()} == {
        *("accumulator", "aligned by", "cut", "floor", "group", "kept bits", "left out", "not aligned by"),
        *("not converted", "operation", "order", "precision", "read as", "rounded products", "rounding"),
        *("saturation", "step", "subnormals", "units vanish", "zeros align"),
    }
