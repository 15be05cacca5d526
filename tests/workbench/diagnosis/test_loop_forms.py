"""Loops along k of every family: mistakes that the test makes by itself, right products, and noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers.families import sample
from tools.mistakes.grammar.injected_loops import STEPS, expected, random_given, trials
from warpsim.isa.codes import matrix_of
from warpsim.isa.instruction import Instruction
from warpsim.workbench.diagnosis import LoopDiagnosis, diagnose_product
from warpsim.workbench.diagnosis.solving.product_loops import Given, Loop

_SCALED = "row.col.kind::{}.block_scale{}.f32.e2m1.e2m1.f32.{}"
FORMS = [
    warpsim.decode(mnemonic, target=target)
    for mnemonic, target in (
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "sm_80"),
        ("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", "sm_90"),
        ("mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32", "sm_90a"),
        ("wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16", "sm_90a"),
        ("wgmma.mma_async.sync.aligned.m64n8k32.s32.u8.u8", "sm_90a"),
        ("wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc", "sm_90a"),
        ("wgmma.mma_async.sp.sync.aligned.m64n16k64.f32.e4m3.e4m3", "sm_90a"),
        ("mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e2m3.f32.ue8m0", "sm_120a"),
        ("mma.sync.aligned.m16n8k64." + _SCALED.format("mxf4", "", "ue8m0"), "sm_120a"),
        ("mma.sync.aligned.m16n8k64." + _SCALED.format("mxf4nvf4", ".scale_vec::4X", "ue4m3"), "sm_120a"),
        (
            "mma.sp::ordered_metadata.sync.aligned.m16n8k128." + _SCALED.format("mxf4", "", "ue8m0"),
            "sm_120a",
        ),
    )
]

SCALED = [form for form in FORMS if form.scale]


def found(form: Instruction, given: Given, D: Any) -> LoopDiagnosis:
    return diagnose_product(form, given.A, given.B, D, given.C, **given.scales)


def names(one: LoopDiagnosis) -> list[str]:
    return [name for match in one.matches for name in (match.name, *match.also)]


@pytest.mark.parametrize("form", sample(FORMS, 2), ids=str)
def test_what_is_right_is_as_expected(form: Instruction) -> None:
    given = random_given(form, 1, rows=2, columns=2)
    assert found(form, given, expected(form, given)).as_expected


@pytest.mark.parametrize("form", sample(FORMS, 2, 1), ids=str)
def test_a_step_is_left_out(form: Instruction) -> None:
    given, k, chunks = random_given(form, 2, rows=2), form.shape.k, form.scale_chunks
    keep = [at for at in range(STEPS) if at != 3]
    columns = np.concatenate([np.arange(at * k, at * k + k) for at in keep])
    scales = [at * chunks + one for at in keep for one in range(chunks)] if form.scale else []
    less = Given(
        A=given.A[:, columns],
        B=given.B[columns],
        C=given.C,
        scale_a=given.scale_a[:, scales] if form.scale else None,
        scale_b=given.scale_b[scales] if form.scale else None,
    )
    assert "step 3 left out (missing)" in names(found(form, given, expected(form, less)))


@pytest.mark.parametrize("form", sample(SCALED, 2), ids=str)
def test_scales_of_the_step_before(form: Instruction) -> None:
    given, chunks = random_given(form, 3), form.scale_chunks
    order = np.maximum(np.arange(STEPS * chunks) - chunks, np.arange(STEPS * chunks) % chunks)
    stale = Given(A=given.A, B=given.B, C=given.C, scale_a=given.scale_a, scale_b=given.scale_b[order])
    assert "every step reads scales of B of the previous step" in names(
        found(form, given, expected(form, stale))
    )


@pytest.mark.parametrize("form", sample(SCALED, 2, 1), ids=str)
def test_scales_of_other_rows_in_every_step(form: Instruction) -> None:
    given = random_given(form, 8, rows=2)
    rows = np.arange(len(given.scale_a)) ^ 8
    wrong = Given(A=given.A, B=given.B, C=given.C, scale_a=given.scale_a[rows], scale_b=given.scale_b)
    first = found(form, given, expected(form, wrong)).matches[0]
    assert first.facts["operand"] == "scales of A", first
    assert "scales of A: rows g and g + 8 exchanged" in (first.name, *first.also), first


@pytest.mark.parametrize("form", sample(SCALED, 2), ids=str)
def test_rows_of_a_beside_scales_that_are_right(form: Instruction) -> None:
    given = random_given(form, 10)
    A = given.A.copy()
    A[::3, ::5] = 0  # zeros have scales, too
    right = Given(A=A, B=given.B, C=given.C, **given.scales)
    wrong = Given(A=A[np.arange(len(A)) ^ 8], B=given.B, C=given.C, **given.scales)
    first = found(form, right, expected(form, wrong)).matches[0]
    assert (first.facts["operand"], first.facts["map"]) == ("A", "xor"), first


@pytest.mark.parametrize("form", sample((form for form in FORMS if form.sparse), 2, 1), ids=str)
def test_metadata_of_other_lanes_in_every_step(form: Instruction) -> None:
    given, lanes = random_given(form, 9), np.arange(form.lanes) ^ 4
    loop = Loop(form, given)
    steps = [(registers | {"e": registers["e"][..., lanes, :]}, how) for registers, how in loop.plain()]
    (codes,) = loop.chain(steps, loop.accumulators)
    first = found(form, given, matrix_of(codes, form.d)).matches[0]
    assert (first.facts["operand"], first.facts["map"]) == ("metadata", "xor"), first


@pytest.mark.parametrize("form", FORMS[3:5], ids=str)
def test_a_row_of_a_tile_in_shared_memory(form: Instruction) -> None:
    given = random_given(form, 4)
    B = given.B.copy()
    B[:, 5] = 0
    wrong = Given(A=given.A, B=B, C=given.C)
    first = found(form, given, expected(form, wrong)).matches[0]
    assert (first.facts["operand"], first.facts["values"]) in (("B", "zero"), ("D", "own"), ("D", "zero")), (
        first
    )


def test_a_mistake_in_one_tile_is_told_to_be_there_only() -> None:
    form = FORMS[0]
    given = random_given(form, 5, rows=2)
    right = expected(form, given)
    A = given.A.copy()
    A[16:, :8] = 0
    wrong = expected(form, Given(A=A, B=given.B, C=given.C))
    assert not np.array_equal(wrong, right)
    assert "step 0 left out (missing), in tiles (1, 0) only" in names(found(form, given, wrong))


@pytest.mark.parametrize("form", sample([FORMS[3], FORMS[1]], 2), ids=str)
def test_noise_has_no_cause(form: Instruction) -> None:
    given = random_given(form, 6)
    noise = np.random.default_rng(0).standard_normal(given.C.shape).astype(form.d.dtype)
    assert found(form, given, noise).matches == ()


@pytest.mark.parametrize("form", sample([FORMS[0], FORMS[4]], 2), ids=str)
def test_what_the_search_knows_is_found_and_nothing_else(form: Instruction) -> None:
    outcomes = [outcome for _, outcome in trials(form, 1, np.random.default_rng(7))]
    assert {*outcomes} <= {"found", "no effect"}
