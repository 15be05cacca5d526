"""Causes that are tried: the launch once more with an operand put right, before it is called a cause.

What makes every output right is the cause. What does not is said to be located only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy.typing as npt

from ....base.errors import OperandError
from ..origins.element_origins import Origins
from .corrections import Corrected, Correction
from .hypotheses import Hypothesis, hypotheses
from .launch_causes import BY_TAGS, Cause, causes_of, origin_causes
from .matrix_hooks import MatrixHook
from .output_errors import output_error
from .repeated_launch import RepeatedLaunch

Wanted = Mapping[int, npt.ArrayLike]
_RIGHT = "with the operand put right, every output is as expected"


def tried_causes(trial: Trial, origins: Origins) -> list[Cause]:
    """Return causes from the origins of operands that are confirmed."""
    with trial.budget.search("operands put right"):
        return _tried(trial, hypotheses(trial.launch, origins))


def _tried(trial: Trial, possible: Sequence[Hypothesis]) -> list[Cause]:
    launch = trial.launch
    for hypothesis in possible:
        if trial.of(hypothesis) == 0:
            return _confirmed(launch, [hypothesis], _RIGHT)
    several = [*_compatible(possible)]
    if (
        len(several) > 1
        and trial.corrected([each for hypothesis in several for each in hypothesis.corrections]) == 0
    ):
        texts = f"with these {len(several)} put right together, every output is as expected"
        return _confirmed(launch, several, texts)
    return []


def located_causes(trial: Trial, origins: Origins) -> list[Cause]:
    """Return what the origins of operands show, though no trial has confirmed it."""
    untried = ("unused",)  # no elements are known that would be right
    return [
        cause if cause.kind in untried else replace(cause, evidence=trial.evidence(cause))
        for cause in origin_causes(trial.launch, origins)
    ]


def _confirmed(launch: RepeatedLaunch, found: Sequence[Hypothesis], what: str) -> list[Cause]:
    causes = list[Cause]()
    for hypothesis in found:
        causes += causes_of(launch, hypothesis.findings, f"{BY_TAGS}; {what}")
    return causes


def _compatible(possible: Sequence[Hypothesis]) -> Iterator[Hypothesis]:
    """Yield hypotheses, of those on k steps the first only."""
    steps = 0
    for hypothesis in possible:
        steps += hypothesis.first.kind == "stage"
        if hypothesis.first.kind != "stage" or steps == 1:
            yield hypothesis


class Trial:
    """Launches whose matrix instructions are computed in another way; counts what stays wrong."""

    def __init__(self, *, launch: RepeatedLaunch, expected: Wanted, tolerance: float) -> None:
        self.launch, self.expected, self.tolerance = launch, expected, tolerance
        self.budget = launch.budget
        self._left: dict[tuple[str, str], int | None] = {}  # by kind and operand

    def of(self, hypothesis: Hypothesis) -> int | None:
        """Return how many elements are wrong with what a hypothesis says put right; None where not known."""
        left = self.corrected(hypothesis.corrections)
        self._left[hypothesis.first.kind, hypothesis.first.operand] = left
        return left

    def corrected(self, corrections: Sequence[Correction]) -> int | None:
        """Return how many elements of outputs are wrong with operands put right; None where not known."""
        return self.wrong(Corrected(list(corrections)))

    def wrong(self, hook: MatrixHook) -> int | None:
        """Return how many elements of outputs are wrong; None where that is not known."""
        return self._left_by(self.launch, (hook,))

    def wrong_of(self, launch: RepeatedLaunch) -> int | None:
        """Return how many elements of outputs are wrong after another launch; None where not known."""
        return self._left_by(launch, ())

    def _left_by(self, launch: RepeatedLaunch, observers: Sequence[MatrixHook]) -> int | None:
        if not self.budget.allows():
            return None
        try:
            attempt = launch.again(checks="off", observers=observers)
        except OperandError:  # sizes or arguments that no launch has
            return None
        if attempt.error is not None:
            return None
        errors = [
            output_error(index, launch.name(index), attempt.arrays[index], value, self.tolerance)
            for index, value in self.expected.items()
        ]
        return sum(error.count for error in errors if error is not None)

    def evidence(self, cause: Cause) -> str:
        """Return what shows a cause that is located only: the trial of its own operand, if it was tried."""
        left = self._left.get((cause.kind, cause.operand))
        if left is None:
            return f"{BY_TAGS}; located: the operand put right was not tried"
        return f"{BY_TAGS}; located: with it put right {left:,} elements of outputs are still wrong"
