"""Devices that compute as variations do, put before a trial: what its verdict is, and whether it is right."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ..candidates import predicted
from ..capturing import captured
from ..experiments import EXPERIMENTS, Trial
from ..operands import Rng
from ..simulated import SimulatedDriver
from . import of_integers, of_low_bits, of_metadata, of_nan, of_scale_groups, of_sums
from .variation import Variation

NONE, EQUAL, WRONG = "none of the candidates", "a candidate that it equals", "another candidate"


class Kind(Protocol):
    """A module of variations."""

    variations: Callable[[Trial, int, Rng], Iterator[Variation]]
    listed: Callable[[Trial], dict[str, Any]]


KINDS: dict[str, Any] = {
    "sparse-grouping": of_sums,
    "exponent-floor": of_sums,
    "fp8-sync": of_sums,
    "tf32-low-bits": of_low_bits,
    "imma-saturation": of_integers,
    "metadata-undefined": of_metadata,
    "nan-payload": of_nan,
    "scale-groups": of_scale_groups,
}


@dataclass
class Tally:
    """Verdicts on the variations of an experiment, and those that are wrong, in words."""

    experiment: str
    trials: int = 0
    candidates: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    through_kernels: int = 0
    wrong: list[str] = field(default_factory=list)


def trials_of(experiment: str, targets: list[str]) -> Iterator[Trial]:
    """Yield the trials of all targets; that of scale-d 0 is one question with three answers, and not
    varied.
    """
    for target in targets:
        for trial in EXPERIMENTS[experiment].trials(target):
            if "scale-d 0" not in trial.vectors.title:
                yield trial


def played(experiment: str, targets: list[str], count: int, every: int) -> Tally:
    """At least so many variations, shared out among the trials; one in ``every`` through a kernel as well."""
    tally, trials = Tally(experiment), list(trials_of(experiment, targets))
    each = -(-count // len(trials))
    for trial in trials:
        play(tally, trial, each, every)
    return tally


def play(tally: Tally, trial: Trial, count: int, every: int) -> None:
    """So many variations of one trial."""
    kind: Kind = KINDS[tally.experiment]
    keys = kind.listed(trial)
    candidates = {
        candidate.name: predicted(trial.vectors, candidate.arithmetic) for candidate in trial.candidates
    }
    rng = np.random.default_rng(zlib.crc32(f"{trial.form} {trial.form.target}".encode()))
    tally.trials += 1
    tally.candidates += len(candidates)
    for number, variation in enumerate(kind.variations(trial, count, rng)):
        outputs = predicted(trial.vectors, variation.arithmetic)
        if every and number % every == 0:
            _through_a_kernel(trial, variation, outputs)
            tally.through_kernels += 1
        survivors = [name for name, words in candidates.items() if np.array_equal(words, outputs)]
        verdict = _verdict(survivors, keys, variation)
        tally.verdicts[verdict] += 1
        if verdict == WRONG:
            tally.wrong.append(
                f"{trial.form} on {trial.form.target}: {variation.name} is taken for {survivors}"
            )


def _verdict(survivors: list[str], keys: dict[str, Any], variation: Variation) -> str:
    if not survivors:
        return NONE
    proven = all(name in keys and keys[name] == variation.key for name in survivors)
    return EQUAL if proven else WRONG


def _through_a_kernel(trial: Trial, variation: Variation, outputs: Any) -> None:
    """Check that the simulated device, running the kernel's text, has the same outputs."""
    driver = SimulatedDriver(str(trial.form.target), variation.arithmetic)
    assert np.array_equal(captured(trial.vectors, driver).d, outputs), variation.name
