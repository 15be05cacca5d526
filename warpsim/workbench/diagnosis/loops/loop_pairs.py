"""A mistake in every step together with weights of steps and of C, which are solved from D.

Knows what the steps add with each mistake. Weights that are all 1 are no pair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ....isa.codes import codes_of
from ....isa.fragments import codes_from, registers_of
from ....isa.products import Codes
from ..dumps.dump_comparison import numbers
from ..library.mistake import Mistake
from ..solving.product_loops import Loop, Matrix, Step, View
from ..solving.step_tiles import weights
from ..solving.step_words import weights_text
from .loop_candidates import Candidate
from .loop_mistakes import WithinSteps

_MOST = 8  # times that a step is executed


class Pairs:
    """Pairs of mistakes in the view of ``d``, which roundings take as far as ``near``."""

    def __init__(self, loop: Loop, view: View, d: Matrix, near: Matrix) -> None:
        self.loop, self.view, self.d, self.near = loop, view, d, near.reshape(-1)
        self.within = WithinSteps(loop, view)
        c = numbers(codes_from(loop.accumulators[view.tile], loop.form, "c"), loop.form.c)
        self.c = view.part.of_result(c)

    def __call__(self, library: Iterable[Mistake]) -> Iterator[Candidate]:
        """Yield each mistake of the library with the weights that fit."""
        for mistake, wrong, steps in self.within.in_every_step(library):
            parts = np.concatenate([wrong, self.c[None]]) if self.c.any() else wrong
            solved = weights(parts.reshape(len(parts), -1), self.d.reshape(-1), self.near)
            if solved is None:
                continue
            of_steps = solved.theta[: len(wrong)]
            of_c = float(solved.theta[-1]) if len(parts) > len(wrong) else 1.0
            whole = ((of_steps >= 0) & (of_steps % 1 == 0) & (of_steps <= _MOST)).all()
            if whole and ((of_steps != 1).any() or of_c != 1):
                name = f"in every step (all steps): {mistake.named.name}"
                yield self._candidate(
                    f"{name} + {weights_text(of_steps.tolist(), of_c)}", wrong, steps, solved.theta
                )

    def _candidate(
        self, name: str, wrong: Matrix, steps: Callable[[], list[Step]], theta: Matrix
    ) -> Candidate:
        of_c = float(theta[-1]) if len(theta) > len(wrong) else 1.0
        change = (
            np.tensordot(theta[: len(wrong)], wrong, 1) - self.within.each.sum(axis=0) + (of_c - 1) * self.c
        )

        def run() -> Codes:
            made = steps()
            counts = theta[: len(wrong)].astype(int).tolist()
            return self.loop.chain(
                [made[at] for at, n in enumerate(counts) for _ in range(n)], self._times(of_c)
            )

        return Candidate(name=name, advice="two mistakes together", change=change, exact=run)

    def _times(self, factor: float) -> Any:
        """Return registers of C times a factor."""
        form, words = self.loop.form, self.loop.accumulators
        if factor == 1:
            return words
        c = numbers(codes_from(words, form, "c"), form.c)
        with np.errstate(all="ignore"):
            return registers_of(codes_of((c * factor).astype(form.c.dtype), form.c, "C"), form, "c")
