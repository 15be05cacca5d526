"""Units under test: faults of another derivation are named from D alone; no false name is given.

The wrong units are reference.py with a line changed (``tools.mutants.faults``), or kernels on changed
operands; the search computes its candidates with ``generation.sums``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import warpsim
from tools.mutants.faults import B1, F16, F16_F16, F64, FAULTS, S8_SATURATING
from tools.mutants.trial import mutated
from warpsim import OperandError
from warpsim.isa.fragments import registers_of
from warpsim.isa.products import Operands
from warpsim.sums.arithmetic.numerics import compute
from warpsim.sums.execution.pipeline import rule_for
from warpsim.workbench.diagnosis.units import UnitDiagnosis, diagnose_unit
from warpsim.workbench.diagnosis.units.unit_sample import matrix_codes
from warpsim.workbench.generation.coverage.vector_coverage import gathered
from warpsim.workbench.generation.generate import generate_vectors
from warpsim.workbench.vectors.sets import VectorSet

BY_NAME = {fault.name: fault for fault in FAULTS}


@cache
def corner_set(form: tuple[str, str], count: int = 32) -> VectorSet:
    return generate_vectors(warpsim.decode(form[0], target=form[1]), count=count)


def unit_d(vectors: VectorSet, made: Any) -> Any:
    """D registers of a unit that computes ``made(operands, rule)``."""
    form = vectors.instruction
    codes = matrix_codes(vectors, vectors.d).copy()
    for part in vectors.inputs():
        cases = np.arange(len(vectors))[part.cases]
        codes[cases] = made(gathered(form, part), rule_for(form))
    return registers_of(codes, form, "d")


def diagnosed(name: str, form: tuple[str, str], count: int = 32) -> UnitDiagnosis:
    fault, vectors = BY_NAME[name], corner_set(form, count)
    if fault.numbers:
        d = unit_d(vectors, lambda operands, rule: compute(operands, rule.realigned(**fault.numbers)))
    else:
        d = unit_d(vectors, mutated(fault).compute)
    return diagnose_unit(vectors, d)


@pytest.mark.parametrize(
    ("name", "form", "told"),
    [
        ("terms rounded to nearest", F16, "terms rounded to nearest, ties away from zero"),
        ("a sticky bit is kept", F16, "terms cut with a sticky bit"),
        ("one fraction bit fewer, f16", F16, "alignment keeps 23 fraction bits"),
        ("steps in reversed order", F16, "steps in reversed order"),
        ("NaN is the quiet one", F16, "NaN is written as 0x7fc00000"),
        ("subnormal operands become zero", F16, "subnormal operands read as zero"),
        ("ties away from zero", F16_F16, "results rounded to nearest, ties away from zero"),
        ("f64 products in reversed order", F64, "products in reversed order"),
        ("saturation missing", S8_SATURATING, "the sum does not saturate"),
        ("ones of AND instead of XOR", B1, "bits are combined by and"),
    ],
)
def test_a_fault_of_another_derivation_is_named(name: str, form: tuple[str, str], told: str) -> None:
    found = diagnosed(name, form)
    assert not found.as_expected
    assert any(told in each.name for each in found.explanations), found
    assert all(each.complete for each in found.explanations)


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("Inf * 0 is Inf", F16),
        ("saturates one too high", S8_SATURATING),
        ("results rounded twice", F16_F16),
    ],
)
def test_a_fault_that_the_library_lacks_is_not_given_another_name(name: str, form: tuple[str, str]) -> None:
    found = diagnosed(name, form)
    if not found.as_expected:
        assert found.explanations == ()
        assert found.traits or name != "Inf * 0 is Inf"


def test_the_cause_of_an_unknown_fault_is_seen_in_what_wrong_outputs_share() -> None:
    found = diagnosed("Inf * 0 is Inf", F16, 80)
    assert any("Inf * 0" in trait.name and trait.right == 0 for trait in found.traits)
    assert {name for name, _ in found.transitions} <= {"NaN became +Inf", "NaN became -Inf"}


def test_two_faults_at_once_are_both_named() -> None:
    vectors = corner_set(F16)

    def made(operands: Operands, rule: Any) -> Any:
        magnitude = operands.c & np.uint32(0x7FFFFFFF)
        tiny = (magnitude > 0) & (magnitude < 0x00800000)
        flushed = replace(operands, c=np.where(tiny, operands.c & np.uint32(0x80000000), operands.c))
        return compute(flushed, rule.realigned(fraction_bits=rule.fraction_bits - 2))

    found = diagnose_unit(vectors, unit_d(vectors, made))
    names = [each.name for each in found.explanations]
    assert any("alignment keeps 22 fraction bits" in name and "subnormal" in name for name in names), names


@pytest.mark.parametrize(
    ("side", "place", "told"),
    [
        ("b", 0, "bit 0 of B is read as 0"),
        ("c", 30, "bit 30 of C is read as 0"),
        ("a", 15, "the sign bit of A"),
    ],
)
def test_a_bit_of_an_operand_that_is_not_read(side: str, place: int, told: str) -> None:
    vectors = corner_set(F16)

    def made(operands: Operands, rule: Any) -> Any:
        codes = getattr(operands, side)
        return compute(replace(operands, **{side: codes & ~codes.dtype.type(1 << place)}), rule)

    found = diagnose_unit(vectors, unit_d(vectors, made))
    assert any(told in each.name for each in found.explanations), found.partial


def test_stuck_bits_are_read_off_the_outputs() -> None:
    vectors = corner_set(F16)
    found = diagnose_unit(vectors, vectors.d & np.uint32(~(1 << 9) & 0xFFFFFFFF))
    assert [each.name for each in found.explanations] == ["bit 9 of D is stuck at 0"]


def test_only_known_outputs_count() -> None:
    vectors = corner_set(F16)
    d, known = vectors.d.copy(), np.full_like(vectors.d, 0xFFFFFFFF)
    d[3, 4, 1] ^= 1
    known[3, 4, 1] = 0xFFFFFFFE
    assert diagnose_unit(vectors, d, known).as_expected
    found = diagnose_unit(vectors, d)
    assert (found.wrong_outputs, found.wrong_cases, found.unknown_outputs) == (1, 1, 0)
    place = np.argwhere(matrix_codes(vectors, d) != matrix_codes(vectors, vectors.d))[0]
    assert found.first is not None
    assert found.first[:3] == tuple(place)


def test_a_row_that_is_wrong_is_seen() -> None:
    vectors = corner_set(F16)
    codes = matrix_codes(vectors, vectors.d).copy()
    codes[:, 9, :] ^= np.random.default_rng(1).integers(1, 1 << 20, codes[:, 9, :].shape).astype(codes.dtype)
    found = diagnose_unit(vectors, registers_of(codes, vectors.instruction, "d"))
    assert found.explanations == ()
    assert (found.traits[0].name, found.traits[0].correlation) == ("row 9", 1.0)


def test_an_array_of_another_set_is_refused() -> None:
    vectors = corner_set(F16)
    with pytest.raises(
        OperandError, match=r"d is uint32 \(31, 32, 4\), but D of the set is uint32 \(32, 32, 4\)"
    ):
        diagnose_unit(vectors, vectors.d[1:])
