"""Every experiment decides rightly on devices that behave as each of its candidates does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import islice

import pytest

from tools.capture.candidates import as_target, predicted
from tools.capture.capturing import captured
from tools.capture.experiments import EXPERIMENTS, Trial, Verdict, classes_of, decide
from tools.capture.simulated import SimulatedDriver

# What inputs of a form cannot tell apart, because there is no difference in its result.
SAME = {
    "tf32 has two groups of two in m16n8k8": ("groups of 2", "chunk pairs"),
}
TARGETS = {
    "sparse-grouping": ("sm_80", "sm_120a"),
    "exponent-floor": ("sm_80",),
    "tf32-low-bits": ("sm_80", "sm_90a"),
    "imma-saturation": ("sm_75", "sm_90a"),
    "metadata-undefined": ("sm_80", "sm_90a"),
    "fp8-sync": ("sm_89", "sm_90a"),
    "nan-payload": ("sm_80", "sm_90a"),
    "scale-groups": ("sm_100a",),
}
PAIRS = [(name, target) for name, targets in TARGETS.items() for target in targets]
CONFIRMS = {  # what survives on a device that computes as the model does
    "sparse-grouping": {"dense", "emulated"},
    "exponent-floor": {"floor -133", "floor -132", "floor -21", "floor -20", "floor -139"},
    "tf32-low-bits": {"dropped first"},
    "imma-saturation": {"once"},
    "metadata-undefined": {"literal"},
    "fp8-sync": {"emulated", "native F=13, groups of 16"},
    "nan-payload": {"canonical", "not read", "IEEE default"},
    "scale-groups": {"groups of 16"},
}


# One trial in so many, where sets are large; python -m tools.capture.variations plays all of them.
SPARSELY = {"sparse-grouping": 4, "exponent-floor": 5, "fp8-sync": 8}


@cache
def trials(name: str, target: str) -> tuple[Trial, ...]:
    return tuple(islice(EXPERIMENTS[name].trials(target), 0, None, SPARSELY.get(name, 1)))


def behaving(trial: Trial) -> Iterator[tuple[str, Verdict]]:
    """What the decision is where outputs are those of each candidate, without a kernel in between."""
    for candidate in trial.candidates:
        outputs = replace(trial.vectors, d=trial.predictions[candidate.name])
        yield candidate.name, decide("x", trial, outputs)


def test_the_names_of_the_experiments() -> None:
    assert list(EXPERIMENTS) == list(TARGETS)
    assert [experiment.name for experiment in EXPERIMENTS.values()] == list(TARGETS)


@pytest.mark.parametrize(("name", "target"), PAIRS)
def test_candidates_are_told_apart(name: str, target: str) -> None:
    assert len(trials(name, target)) >= 2
    for trial in trials(name, target):
        names = [candidate.name for candidate in trial.candidates]
        assert len(set(names)) == len(names) >= 3
        together = [one for one in classes_of(trial) if len(one) > 1]
        assert set(together) <= set(SAME.values()), (trial.form.mnemonic, together)


@pytest.mark.parametrize(("name", "target"), PAIRS)
def test_the_decision_is_right(name: str, target: str) -> None:
    """On a third of the forms: all candidates of all forms would be the same work over and over."""
    for trial in trials(name, target)[::3]:
        classes = {name: names for names in classes_of(trial) for name in names}
        for candidate, verdict in behaving(trial):
            assert verdict.survivors == classes[candidate], (trial.form.mnemonic, candidate)


@pytest.mark.parametrize(("name", "target"), [(name, targets[-1]) for name, targets in TARGETS.items()])
def test_the_decision_is_right_through_a_kernel(name: str, target: str) -> None:
    trial = min(trials(name, target), key=lambda one: len(one.vectors))
    classes = {name: names for names in classes_of(trial) for name in names}
    for candidate in trial.candidates[:8]:
        outputs = captured(trial.vectors, SimulatedDriver(target, candidate.arithmetic))
        assert decide(name, trial, outputs).survivors == classes[candidate.name]


@pytest.mark.parametrize(("name", "target"), PAIRS)
def test_the_model_survives_on_a_device_like_it(name: str, target: str) -> None:
    for trial in trials(name, target):
        verdict = decide(name, trial, trial.vectors)
        assert CONFIRMS[name] & set(verdict.survivors), (trial.form.mnemonic, verdict.differences)


def test_no_candidate_survives_on_another_device() -> None:
    """A chip that none of the candidates describes is not talked into one of them."""
    trials_of_all = EXPERIMENTS["sparse-grouping"].trials("sm_90a")
    trial = next(one for one in trials_of_all if one.form.shape.k == 32)
    vectors = replace(trial.vectors, d=predicted(trial.vectors, as_target("sm_80")))
    verdict = decide("sparse-grouping", trial, vectors)
    assert not verdict.decided
    document = verdict.document()
    assert document["verdict"] == "none of the candidates"
    assert document["survivors"] == []
    assert min(document["differences"].values()) > 0
    # ... but what it does can be read from the structure cases: two groups of eight.
    (line,) = document["observations"]
    assert line == ("summands added after C has met stored column 0, 1, ...: 8 8 8 8 8 8 8 8 0 0 0 0 0 0 0 0")


def test_observations_of_undefined_metadata_spell_the_rows() -> None:
    trial = next(one for one in trials("metadata-undefined", "sm_80") if one.form.ordered)
    lines = decide("metadata-undefined", trial, trial.vectors).observations
    assert lines[0] == "field 0b0000: the first unit multiplies rows [0], the second [0] (D is 17)"
    assert len(lines) == 10  # of 16 fields, six ascend


def test_the_exponent_floor_is_observed() -> None:
    trials_of_all = EXPERIMENTS["exponent-floor"].trials("sm_90a")
    trial = next(one for one in trials_of_all if one.form.a.name == "bf16")
    verdict = decide("exponent-floor", trial, trial.vectors)
    assert verdict.observations == ("the small product counts up to 9 halvings",)  # -133 - 25 is -149 - 9


def test_experiments_without_forms_have_no_trials() -> None:
    assert trials("fp8-sync", "sm_80") == ()
    assert trials("sparse-grouping", "sm_75") == ()
