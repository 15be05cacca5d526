"""Experiments, trials, verdicts: the records, and the one decision rule that all of them share.

Knows nothing of any question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import warpsim
from warpsim.isa.instruction import Instruction
from warpsim.isa.registers import Words
from warpsim.workbench.vectors.sets import VectorSet

from ..candidates import Candidate, predicted

RULE = "a candidate survives where it predicts every output bit for bit; the others are refuted"


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One form's part of an experiment: inputs, candidates, and what to say about outputs in any case.

    D of ``vectors`` is the model's. ``observe`` puts what captured outputs show into words. ``unasked`` is
    what no verdict of the trial speaks about, and which experiment does.
    """

    vectors: VectorSet
    candidates: tuple[Candidate, ...]
    observe: Callable[[VectorSet], Iterable[str]] | None = None
    unasked: tuple[str, ...] = ()

    @property
    def form(self) -> Instruction:
        """The instruction."""
        return self.vectors.instruction

    @cached_property
    def predictions(self) -> dict[str, Words]:
        """D registers as each candidate has them, by its name."""
        return {
            candidate.name: predicted(self.vectors, candidate.arithmetic) for candidate in self.candidates
        }


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A question; ``answers`` says what follows from a verdict, ``trials`` are those of a target."""

    name: str
    question: str
    source: str  # where the question is raised
    answers: str
    trials: Callable[[str], Iterator[Trial]]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a trial has decided: differing outputs of every candidate, and the survivors.

    ``together`` lists the candidates that the trial cannot tell apart. ``observations`` is what the outputs
    show, whoever survives.
    """

    experiment: str
    mnemonic: str
    target: str
    outputs: int
    differences: dict[str, int]
    together: tuple[tuple[str, ...], ...]
    observations: tuple[str, ...]
    unasked: tuple[str, ...] = ()

    @property
    def survivors(self) -> tuple[str, ...]:
        """The candidates that predict every output."""
        return tuple(name for name, count in self.differences.items() if count == 0)

    @property
    def decided(self) -> bool:
        """Whether any candidate is left; those that are left agree on all inputs."""
        return bool(self.survivors)

    def document(self) -> dict[str, Any]:
        """For machines."""
        return {
            "experiment": self.experiment,
            "mnemonic": self.mnemonic,
            "target": self.target,
            "rule": RULE,
            "outputs": self.outputs,
            "differences": self.differences,
            "indistinguishable": [list(names) for names in self.together if len(names) > 1],
            "verdict": " = ".join(self.survivors) if self.decided else "none of the candidates",
            "survivors": list(self.survivors),
            "observations": list(self.observations),
            "not asked": list(self.unasked),
        }


def classes_of(trial: Trial) -> tuple[tuple[str, ...], ...]:
    """Return the candidates in classes that predict the same outputs for all inputs of the trial."""
    classes: dict[bytes, list[str]] = {}
    for name, words in trial.predictions.items():
        classes.setdefault(words.tobytes(), []).append(name)
    return tuple(tuple(names) for names in classes.values())


def decide(experiment: str, trial: Trial, outputs: VectorSet) -> Verdict:
    """Return which candidates the outputs of a device leave."""
    form, differences, classes = trial.form, dict[str, int](), dict[bytes, list[str]]()
    found = elements(form, outputs.d)
    for name, words in trial.predictions.items():
        differences[name] = int((elements(form, words) != found).sum())
        classes.setdefault(words.tobytes(), []).append(name)
    return Verdict(
        experiment=experiment,
        mnemonic=form.mnemonic,
        target=str(form.target),
        outputs=found.size,
        differences=differences,
        together=tuple(map(tuple, classes.values())),
        observations=tuple(trial.observe(outputs)) if trial.observe else (),
        unasked=trial.unasked,
    )


def elements(form: Instruction, words: Any) -> Any:
    """Return the codes ``(cases, m, n)`` of D."""
    matrix = warpsim.unpack(form, "d", words)
    return np.ascontiguousarray(matrix).view(form.d.code_dtype)


def representatives(
    target: str, key: Callable[[Instruction], object | None], most_columns: int = 8
) -> Iterator[Instruction]:
    """Yield the first form of the target with each key; None is of no interest. Of wgmma the narrowest
    ones.
    """
    seen = set[object]()
    for form in warpsim.instructions(target):
        value = key(form) if form.shape.n <= most_columns and form.products == 1 else None
        if value is not None and value not in seen:
            seen.add(value)
            yield form
