"""Devices that compute as no candidate does are not taken for one: a sample of tools.capture.variations."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest

import warpsim
from tools.capture.candidates import computing, predicted
from tools.capture.experiments import EXPERIMENTS, Trial
from tools.capture.floors import idle_floor
from tools.capture.operands import random_set, vector_set
from tools.capture.probes import probes
from tools.capture.variations import __main__ as command
from tools.capture.variations.equivalence import settled
from tools.capture.variations.of_sums import listed
from tools.capture.variations.play import KINDS, Tally, play
from tools.capture.variations.sums import Choices, chosen, computed
from warpsim.isa.instruction import Instruction
from warpsim.isa.registers import Words
from warpsim.isa.rules import Rule
from warpsim.sums.execution.pipeline import rule_for

MMA = "mma.sync.aligned"
NVF4 = ".scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
SPARSE = "mma.sp::ordered_metadata.sync.aligned"
FORMS = (
    (f"{MMA}.m16n8k16.row.col.f32.f16.f16.f32", "sm_80"),
    (f"{MMA}.m16n8k8.row.col.f32.tf32.tf32.f32", "sm_90"),
    (f"{MMA}.m16n8k32.row.col.f32.e5m2.e4m3.f32", "sm_89"),
    (f"{MMA}.m16n8k32.row.col.f16.e5m2.e4m3.f16", "sm_90"),
    (f"{MMA}.m16n8k16.row.col.f32.e4m3.e4m3.f32", "sm_100a"),
    (f"{MMA}.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e3m2.e2m3.f32.ue8m0", "sm_120a"),
    (f"{SPARSE}.m16n8k128.row.col.kind::mxf4nvf4.block_scale{NVF4}", "sm_120a"),
    (f"{SPARSE}.m16n8k32.row.col.f16.f16.f16.f16", "sm_80"),
    (f"{SPARSE}.m16n8k32.row.col.f32.bf16.bf16.f32", "sm_90"),
)  # fmt: skip
PLAYED = (  # experiment, target, which trial
    ("sparse-grouping", "sm_80", 0),
    ("exponent-floor", "sm_80", 3),
    ("fp8-sync", "sm_89", 0),
    ("tf32-low-bits", "sm_80", 0),
    ("imma-saturation", "sm_80", 3),
    ("metadata-undefined", "sm_80", 1),
    ("nan-payload", "sm_80", 1),
    ("scale-groups", "sm_100a", 0),
)


@pytest.mark.parametrize(("mnemonic", "target"), FORMS)
def test_the_slow_sums_are_the_models_with_its_choices(mnemonic: str, target: str) -> None:
    form = warpsim.decode(mnemonic, target)
    vectors = random_set(form, 24, 5)
    choices = chosen(form, rule_for(form))
    found = predicted(vectors, computing(lambda operands, _: computed(operands, choices)))
    assert np.array_equal(found, vectors.d)


@pytest.mark.parametrize(("experiment", "target", "place"), PLAYED)
def test_no_variation_is_taken_for_a_candidate(experiment: str, target: str, place: int) -> None:
    trial = next(islice(EXPERIMENTS[experiment].trials(target), place, None))
    tally = Tally(experiment)
    play(tally, trial, 8, 8)
    assert tally.wrong == []
    assert (sum(tally.verdicts.values()), tally.through_kernels) == (8, 1)


def test_every_experiment_is_varied() -> None:
    assert list(KINDS) == [name for name, *_ in PLAYED]
    assert set(KINDS) == set(EXPERIMENTS)


@pytest.mark.parametrize(("experiment", "target"), [("sparse-grouping", "sm_80"), ("fp8-sync", "sm_89")])
def test_choices_of_candidates_are_their_arithmetic(experiment: str, target: str) -> None:
    """What equivalence is proven with is what the candidates compute."""
    trial = next(iter(EXPERIMENTS[experiment].trials(target)))
    keys = listed(trial)
    assert set(keys) == {candidate.name for candidate in trial.candidates}
    for name, words in trial.predictions.items():
        choices = Choices(**{**vars(chosen(trial.form, rule_for(trial.form))), **_named(dict(keys[name]))})
        found = predicted(trial.vectors, computing(lambda operands, _, one=choices: computed(operands, one)))  # type: ignore[misc]
        assert np.array_equal(found, words), name


def _named(key: dict[str, object]) -> dict[str, object]:
    """The groups and numbers of a key; None is a floor below all others."""
    groups = tuple(tuple(sorted(group)) for group in key["groups"])  # type: ignore[attr-defined]
    floor = -1000 if key["floor"] is None else key["floor"]
    plain = {name: key[name] for name in ("fraction_bits", "precision", "c_last")}
    return {"groups": groups, "floor": floor, **plain}


def test_what_makes_no_difference() -> None:
    form = warpsim.decode(f"{MMA}.m16n8k16.row.col.f32.f16.f16.f32", "sm_90")
    rule = rule_for(form)
    base = chosen(form, rule)

    def same(**changes: object) -> bool:
        return settled(form, rule, Choices(**{**vars(base), **changes})) == settled(form, rule, base)

    assert same(groups=(tuple(range(15, -1, -1)),))  # one exact sum, in any order
    assert same(floor=-150)
    assert same(floor=-124)
    assert not same(floor=-123)  # the last bit of the smallest C
    assert same(carry_bits=5)
    assert not same(carry_bits=4)
    assert same(between="even")  # there are no partial sums
    assert not same(fraction_bits=26)


@pytest.mark.parametrize(
    ("mnemonic", "alike", "different"),
    [
        (f"{MMA}.m16n8k16.row.col.f16.f16.f16.f16", {"between": "nearest"}, {"between": "away"}),
        (
            f"{MMA}.m16n8k16.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32",  # one step
            {"between": "away", "between_precision": 22, "saturates": True},
            {"rounding": "away"},
        ),
        (
            f"{MMA}.m16n8k64.row.col.kind::mxf4nvf4.block_scale{NVF4}",
            {"normalised": True, "between": "away"},
            {"fraction_bits": 30},
        ),
    ],
)
def test_two_words_for_one_thing(mnemonic: str, alike: dict[str, Any], different: dict[str, Any]) -> None:
    target = "sm_80" if "f16.f16" in mnemonic else "sm_120a"
    form = warpsim.decode(mnemonic, target)
    rule = rule_for(form)
    base = chosen(form, rule)
    keys = [settled(form, rule, replace(base, **changes)) for changes in ({}, alike, different)]
    assert keys[0] == keys[1] != keys[2]


def test_the_lowest_floor_that_makes_a_difference() -> None:
    """Only in sums of products that are each below D's smallest number; one lower, all such sums are zero."""
    for trial in EXPERIMENTS["exponent-floor"].trials("sm_80"):
        if trial.form.a.name not in ("bf16", "tf32"):
            continue
        rule = rule_for(trial.form)
        none, idle, next_one = (_with_floor(trial, floor) for floor in _floors(trial.form, rule))
        assert np.array_equal(idle, none), trial.form.mnemonic
        assert not np.array_equal(next_one, none), trial.form.mnemonic


def _floors(form: Instruction, rule: Rule) -> tuple[int, int, int]:
    """None, the highest that is like it, and the next one; the proof for choices has the same limit."""
    idle, base = idle_floor(form, rule), chosen(form, rule)
    keys = [settled(form, rule, replace(base, floor=floor)) for floor in (-1000, idle, idle + 1)]
    assert keys[0] == keys[1] != keys[2]
    return -1000, idle, idle + 1


def _with_floor(trial: Trial, floor: int) -> Words:
    rule = rule_for(trial.form).realigned(exponent_floor=floor)
    return predicted(trial.vectors, computing(rule=rule))


@pytest.mark.parametrize("target", ["sm_89", "sm_90"])
@pytest.mark.parametrize("types", ["e4m3.e5m2", "e5m2.e4m3", "e5m2.e5m2"])
def test_what_rounds_to_zero_shows_its_sign(types: str, target: str) -> None:
    form = warpsim.decode(f"{MMA}.m16n8k16.row.col.f16.{types}.f16", target)
    *codes, labels = probes(form)
    vectors = vector_set(form, *codes, title="probes", labels=labels)
    choices = replace(chosen(form, rule_for(form)), small_zero=True)
    found = predicted(vectors, computing(lambda operands, _: computed(operands, choices)))
    differing = {labels[case] for case in np.flatnonzero((found != vectors.d).any(axis=(1, 2)))}
    assert differing == {"vanishing"}


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--experiment", "imma-saturation", "--targets", "sm_75", "--count", "6", "--kernels", "0"]
    assert command.main(arguments) == 0
    head, _, row = capsys.readouterr().out.splitlines()
    assert head.startswith(
        "| experiment         | trials | candidates | variations |   none | equal a listed |"
    )
    assert row.split("|")[1].strip() == "imma-saturation"
    assert row.split("|")[7].strip() == "0"
