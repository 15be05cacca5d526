"""Programs of rules in Python integers: the codes of the reference, for every arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.helpers import nasty
from tests.helpers.dot_codes import ARITHMETICS, codes_of
from tests.helpers.families import each_of, usual
from warpsim.isa.formats import FORMATS
from warpsim.isa.instruction import Instruction
from warpsim.sums.arithmetic import reference
from warpsim.sums.execution.pipeline import rule_for
from warpsim.sums.rule_programs.rule_interpreter import code_of, number_of, run
from warpsim.sums.rule_programs.rule_templates import program_of

DOTS = usual(3, 12)  # of each kind
NARROW = [row for row in FORMATS.values() if row.bits <= 16]


@each_of(ARITHMETICS, nasty.name, parts=4)
def test_programs_give_the_codes_of_the_reference(instruction: Instruction) -> None:
    rule, form = rule_for(instruction), instruction.product
    program = program_of(rule.bare, form)
    for seed, make in enumerate(nasty.makers(instruction)):
        for codes in codes_of(instruction, make(instruction, DOTS, np.random.default_rng(seed + 77))):
            scales = list(zip(codes.get("scale_a", ()), codes.get("scale_b", ()), strict=True))
            inputs = reference.inputs_of(form, codes["a"], codes["b"], codes["c"][0], scales)
            expected = reference.dot(rule, form, inputs)
            assert run(program, codes)[program.result] == expected, (make.__name__, seed, codes)


@pytest.mark.parametrize("element", NARROW, ids=str)
def test_every_code_is_the_number_of_the_reference(element: Any) -> None:
    for code in range(1 << element.bits):
        found, expected = number_of(code, element), reference.decode(code, element)
        assert found[0] == expected.kind
        if expected.kind == reference.Kind.FINITE:
            assert found[1:5] == expected[1:]


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("element", [FORMATS["f16"], FORMATS["bf16"], FORMATS["e5m2"]], ids=str)
def test_values_between_codes_are_rounded(element: Any, mode: str) -> None:
    """Every finite code, the middle to the next one and both sides of it, by the definition of the modes."""
    step = max(1, element.infinity // 500)
    for low in range(0, element.infinity - 1, step):
        values = [
            Fraction(each.significand) * Fraction(2) ** each.scale
            for each in (number_of(low, element), number_of(low + 1, element))
        ]
        for part in (Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)):
            for negative in (False, True):
                value = values[0] + part * (values[1] - values[0])
                up = {
                    "rn": part > Fraction(1, 2) or (part == Fraction(1, 2) and low % 2 == 1),
                    "rz": False,
                    "rm": negative and part > 0,
                    "rp": not negative and part > 0,
                }[mode]
                unit = 1 - value.denominator.bit_length()
                scaled = int(value * Fraction(2) ** -unit) * (-1 if negative else 1)
                precision = element.fraction_bits + 1
                assert code_of(scaled, unit, element, precision, mode, overflows=False) == low + up
