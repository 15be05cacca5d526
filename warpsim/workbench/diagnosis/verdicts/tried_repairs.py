"""Repairs that are tried: the launch again with something put right; a count of the elements that stay wrong.

A repair counts only where it holds on other data, too, if the formula of the expected values is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ....base.errors import OperandError
from .formula_causes import Formulas
from .matrix_hooks import MatrixHook
from .output_errors import output_error
from .repeated_launch import Array, Attempt, RepeatedLaunch

Wanted = Mapping[int, npt.ArrayLike]
_SEED = 7
_NEAR = 2.0**-6  # of sums in another order and narrow outputs, where expected values are computed here


class Trial:
    """Launches that are executed in another way; counts what stays wrong.

    ``formulas`` give the expected values of other data, None where they are not known.
    """

    def __init__(
        self,
        *,
        launch: RepeatedLaunch,
        expected: Wanted,
        tolerance: float,
        formulas: Formulas | None = None,
    ) -> None:
        self.launch, self.expected, self.tolerance = launch, expected, tolerance
        self.formulas, self.budget = formulas, launch.budget

    def with_formulas(self, formulas: Formulas) -> Trial:
        """Return the trial with formulas of the expected values."""
        return Trial(launch=self.launch, expected=self.expected, tolerance=self.tolerance, formulas=formulas)

    def wrong(self, hook: MatrixHook) -> int | None:
        """Return how many elements of outputs are wrong; None where that is not known."""
        return self._left_by(self.launch, (hook,))

    def wrong_of(self, launch: RepeatedLaunch) -> int | None:
        """Return how many elements of outputs are wrong after another launch; None where not known."""
        return self._left_by(launch, ())

    def again(self, evidence: str) -> str:
        """Return what shows a repair, in words: a trial, and whether other data were tried."""
        more = "" if self._other_data(self.launch) is None else "; other data agree"
        return f"a trial: {evidence}{more}"

    def _left_by(self, launch: RepeatedLaunch, observers: Sequence[MatrixHook]) -> int | None:
        others = [_unused(hook) for hook in observers]
        left = self._count(launch, observers, self.expected, self.tolerance)
        fresh = self._other_data(launch) if left == 0 else None
        if fresh is None:
            return left
        other, expected = fresh
        return self._count(other, others, expected, max(self.tolerance, _NEAR))

    def _count(
        self, launch: RepeatedLaunch, observers: Sequence[MatrixHook], expected: Wanted, tolerance: float
    ) -> int | None:
        attempt = self._executed(launch, observers)
        if attempt is None or attempt.error is not None:
            return None
        errors = [
            output_error(index, launch.name(index), attempt.arrays[index], value, tolerance)
            for index, value in expected.items()
        ]
        return sum(error.count for error in errors if error is not None)

    def _executed(self, launch: RepeatedLaunch, observers: Sequence[MatrixHook]) -> Attempt | None:
        if not self.budget.allows():
            return None
        try:
            return launch.again(checks="off", observers=observers)
        except OperandError:  # sizes or arguments that no launch has
            return None

    def _other_data(self, launch: RepeatedLaunch) -> tuple[RepeatedLaunch, dict[int, Array]] | None:
        """Return a launch on other data with its expected values; None where they are not known."""
        if self.formulas is None or launch.args is not self.launch.args:
            return None
        random, args = np.random.default_rng(_SEED), list(launch.args)
        for index in {at for each in self.formulas.found for at in each.term.kinds}:
            if not isinstance(args[index], np.ndarray):
                return None
            args[index] = random.permutation(launch.initial(index).ravel()).reshape(args[index].shape)
        before = {at: content for at, content in launch.before.items() if args[at] is launch.args[at]}
        values = self.formulas.values(args)
        expected = {at: values[at].astype(np.asarray(self.expected[at]).dtype) for at in values}
        return replace(launch, args=args, before=before), expected


def _unused(hook: MatrixHook) -> MatrixHook:
    """Return a hook that has counted no executions."""
    other = copy(hook)
    vars(other).update({name: Counter() for name, value in vars(hook).items() if isinstance(value, Counter)})
    return other
