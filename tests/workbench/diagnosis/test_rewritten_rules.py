"""D of another arithmetic: the rewrite of the rule's program that gives every bit is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import warpsim
from warpsim.isa.fragments import gather, registers_of
from warpsim.isa.operand_places.placements import Inputs
from warpsim.isa.rules import FusedSum
from warpsim.sums.arithmetic.reference import compute
from warpsim.sums.execution.pipeline import rule_for
from warpsim.workbench.diagnosis.library.setting import Setting
from warpsim.workbench.diagnosis.search.cases import probe

DENSE = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32"
E4M3 = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"


@pytest.mark.parametrize(
    ("mnemonic", "target", "numbers", "told"),
    [
        (DENSE, "sm_90a", {"fraction_bits": 21}, "alignment keeps 21 fraction bits"),
        (DENSE, "sm_90a", {"length": 4}, "steps of 4 products"),
        (SPARSE, "sm_80", {"fraction_bits": 20}, "alignment keeps 20 fraction bits"),
        (E4M3, "sm_89", {"fraction_bits": 10}, "alignment keeps 10 fraction bits"),
    ],
)
def test_numbers_of_a_rule(mnemonic: str, target: str, numbers: dict[str, int], told: str) -> None:
    form = warpsim.decode(mnemonic, target=target)
    given: dict[str, Any] = probe(Setting(instruction=form), 2, seed=4)
    operands = gather(form, Inputs(registers=given, literal=True))
    d = registers_of(compute(operands, rule_for(form).realigned(**numbers)), form, "d")
    found = warpsim.diagnose(form, **given, d=d)
    assert told in found.matches[0].simplest.names[0], found
    ((kind, facts),) = found.matches[0].simplest.mistakes[0].records
    assert kind in ("kept bits", "step")
    assert next(iter(numbers.values())) in facts.values()


def test_two_instructions_of_half_the_k_in_sequence() -> None:
    form = warpsim.decode(DENSE, target="sm_90a")
    rule = rule_for(form)
    assert isinstance(rule, FusedSum)
    given: dict[str, Any] = probe(Setting(instruction=form), 1, seed=4)
    halves = compute(gather(form, Inputs(registers=given)), replace(rule, length=8))
    found = warpsim.diagnose(form, **given, d=registers_of(halves, form, "d"))
    assert "as several of m16n8k8 do in sequence" in str(found)


def test_few_wrong_elements_are_no_evidence() -> None:
    """A last bit or two that are wrong are not taken for another arithmetic."""
    form = warpsim.decode(DENSE, target="sm_90a")
    given: dict[str, Any] = probe(Setting(instruction=form), 1, seed=4)
    d = warpsim.execute(form, **given)
    for lane in (3, 17):
        d[0, lane, 1] += np.uint32(1)
        found = warpsim.diagnose(form, **given, d=d, most=1)
        assert not any("arithmetic" in match.simplest.names[0] for match in found.matches)
