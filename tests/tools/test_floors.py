"""Exponent floors that scales let products reach: every one that operands show is asked, and no other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import warpsim
from tools.capture.candidates import computing, predicted
from tools.capture.experiments import EXPERIMENTS, Trial, decide
from tools.capture.experiments.exponent_floor import scale_words, sets
from tools.capture.floors import floor_of, idle_floor, unseen_floor
from tools.capture.operands import uniform_fields, vector_set
from tools.capture.probes import FIRST_TWO, spread
from tools.capture.variations.equivalence import settled
from tools.capture.variations.sums import Choices, chosen
from warpsim.isa.formats import Format
from warpsim.isa.instruction import Instruction
from warpsim.sums.execution.pipeline import rule_for
from warpsim.workbench.vectors.sets import VectorSet

MMA, SPARSE = "mma.sync.aligned", "mma.sp::ordered_metadata.sync.aligned"
MXF4 = "kind::mxf4nvf4.block_scale.scale_vec"
FORMS = (  # every rule, chunks of every number, and the highest floor that no operands show
    (f"{MMA}.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0", -155),
    (f"{SPARSE}.m16n8k64.row.col.kind::mxf8f6f4.block_scale.f32.e5m2.e5m2.f32.ue8m0", -155),
    (f"{MMA}.m16n8k64.row.col.{MXF4}::2X.f32.e2m1.e2m1.f32.ue8m0", -159),
    (f"{SPARSE}.m16n8k128.row.col.{MXF4}::4X.f32.e2m1.e2m1.f32.ue8m0", -159),
)
NONE = -300


def form_of(mnemonic: str) -> Instruction:
    return warpsim.decode(mnemonic, "sm_120a")


def with_floor(vectors: VectorSet, floor: int) -> bytes:
    rule = rule_for(vectors.instruction).realigned(exponent_floor=floor)
    return predicted(vectors, computing(rule=rule)).tobytes()


@pytest.mark.parametrize(("mnemonic", "idle"), FORMS)
def test_every_floor_that_shows_is_told_from_every_other(mnemonic: str, idle: int) -> None:
    form = form_of(mnemonic)
    rule = rule_for(form)
    assert idle_floor(form, rule) == idle
    vectors = sets(form, rule)
    floors = range(idle - 3, floor_of(rule) + 3)
    found = {floor: with_floor(vectors, floor) for floor in (NONE, *floors)}
    assert [floor for floor in floors if found[floor] == found[NONE]] == [idle - 3, idle - 2, idle - 1, idle]
    assert len(set(found.values())) == len(floors) - 3


@pytest.mark.parametrize(("mnemonic", "idle"), FORMS)
def test_lower_floors_are_proven_to_be_none(mnemonic: str, idle: int) -> None:
    form = form_of(mnemonic)
    rule = rule_for(form)
    base = vars(chosen(form, rule))
    keys = [settled(form, rule, Choices(**{**base, "floor": floor})) for floor in (-1000, idle, idle + 1)]
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize(("mnemonic", "idle"), FORMS)
def test_the_largest_sums_below_them_are_zero(mnemonic: str, idle: int) -> None:
    """Factors about the largest number, and scales that make exponents as large as such a floor allows."""
    form = form_of(mnemonic)
    vectors = largest_sums(form, idle)
    assert with_floor(vectors, idle) == with_floor(vectors, NONE)
    assert not predicted(vectors, computing(rule=rule_for(form))).any()


def largest_sums(form: Instruction, idle: int) -> VectorSet:
    rng, cases = np.random.default_rng(4), 48
    top = [element.largest_finite for element in (form.a, form.b)]
    a, b = (
        (high - (rng.random((cases, *shape)) < 0.1)).astype(element.code_dtype)
        for high, element, shape in zip(top, (form.a, form.b), shapes(form), strict=True)
    )
    a[:, :, -1], b[:, -1] = form.a.sign_bit | rng.integers(1, 4, a[:, :, -1].shape, a.dtype), 1
    highest = 0 if form.scale_chunks > 1 else sum(map(exponent, (form.a, form.b)))
    exponents = np.full((cases, form.scale_chunks), idle - 1 - highest)
    if form.scale_chunks > 1:  # the last chunk lies about where the floor cuts
        exponents[:, -1] -= 30 + np.arange(cases) % 12
    c = np.zeros((cases, *form.matrix_shape("c")), form.c.code_dtype)
    fields = uniform_fields(form, FIRST_TWO, cases) if form.sparse else None
    scales, labels = scale_words(form, exponents), ["largest"] * cases
    b = spread(form, b, 0.0)
    return vector_set(form, a, b, c, title="largest", labels=labels, fields=fields, scales=scales)


def shapes(form: Instruction) -> tuple[tuple[int, int], tuple[int, int]]:
    return (form.shape.m, form.stored_k), (form.stored_k, form.shape.n)


def exponent(element: Format) -> int:
    return int((element.largest_finite >> element.fraction_bits) - element.bias)


def scaled() -> Iterator[Trial]:
    for trial in EXPERIMENTS["exponent-floor"].trials("sm_120a"):
        if trial.form.scale is not None and not trial.form.scale.fraction_bits:
            yield trial


def test_verdicts_say_what_no_operands_show() -> None:
    trials = list(scaled())
    assert len(trials) == 6
    for trial in trials:
        idle = idle_floor(trial.form, rule_for(trial.form))
        assert unseen_floor(trial.form, rule_for(trial.form)) < idle < -149
        assert f"floor {idle + 1}" in {candidate.name for candidate in trial.candidates}
        assert len(set(map(bytes, trial.predictions.values()))) == len(trial.candidates)
        document = decide("exponent-floor", trial, trial.vectors).document()
        assert document["not asked"][0] == (
            f"floors up to {idle} cannot be seen by any operands: they give the same bits as none"
        )
        assert not any("floor" in line for line in document["not asked"][1:])
