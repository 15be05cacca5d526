"""Mistakes within the instructions of a loop along k, also together with weights of steps and of C.

Knows what a mistake changes in the registers of a step. Weights are solved from D; those that are all 1 are
no second mistake. Does not know the mistakes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ....isa.products import Codes
from ..library.arithmetic_mistakes import Arithmetic
from ..library.mistake import Mistake
from ..library.setting import Registers
from ..solving.product_loops import Loop, Matrix, Step, View
from ..solving.step_tiles import weights
from ..solving.step_words import weights_text
from .loop_candidates import Candidate, largest

Tiles = int | slice  # a single tile, or all
# registers (steps, …) or (steps, tiles, …), of which steps and tiles -> those that change
Change = Callable[[Registers, Sequence[int], Tiles], Registers]
_EVERY = "in every step (all steps): "
_MOST = 8  # times that a step is executed


class WithinSteps:
    """Mistakes made in every step, and in one step."""

    def __init__(self, loop: Loop, view: View) -> None:
        self.loop, self.view, self.each = loop, view, loop.contributions(view)

    def __call__(self, mistakes: Iterable[Mistake]) -> Iterator[Candidate]:
        """Yield those that change what steps read or compute."""
        for mistake in mistakes:
            if mistake.arithmetic is not None or _is_read(mistake):
                yield from self.made(mistake, _change_of(mistake))

    def made(self, mistake: Mistake, change: Change) -> Iterator[Candidate]:
        """Yield one change in every step, and in each."""
        count, arithmetic = self.loop.steps, mistake.arithmetic
        with np.errstate(all="ignore"):
            more = self._wrong(change, arithmetic) - self.each
            whole = more.sum(axis=0)
        if arithmetic is None and not more.any():
            return  # another arithmetic may add the same to nothing, and something else to a sum
        yield self._candidate(_EVERY, whole, mistake, change, range(count))
        for at in range(count if count > 1 else 0):
            yield self._candidate(f"in step {at} only: ", more[at], mistake, change, (at,))

    def _candidate(
        self, where: str, more: Matrix, mistake: Mistake, change: Change, steps: Sequence[int]
    ) -> Candidate:
        def words() -> tuple[str, str]:
            return f"{where}{mistake.named.name}", mistake.named.advice

        def run() -> Codes:
            return self.loop.chain(self._steps(change, steps, mistake.arithmetic), self.loop.accumulators)

        return Candidate(
            name=f"{where}{mistake.name}",
            advice=mistake.advice,
            change=more,
            exact=run,
            rounds_otherwise=mistake.arithmetic is not None,
            reach=self._right_reach + self.loop.steps * largest(more),
            described=words,
        )

    @cached_property
    def _right_reach(self) -> float:
        with np.errstate(all="ignore"):
            return largest(np.abs(self.each).sum(axis=0))

    def _steps(
        self, change: Change, where: Sequence[int], arithmetic: Arithmetic | None = None
    ) -> list[Step]:
        """Return all steps, those of ``where`` with a change."""
        steps: list[Step] = self.loop.plain()
        for at in where:
            registers, how = steps[at]
            alone = {name: words[None] for name, words in registers.items()}
            changed = {
                name: np.asarray(words)[0] for name, words in change(alone, (at,), slice(None)).items()
            }
            steps[at] = registers | changed, arithmetic or how
        return steps

    def _wrong(self, change: Change, arithmetic: Arithmetic | None = None) -> Matrix:
        """Return ``(steps, m, n)``: what the steps add with the mistake."""
        registers = {name: words[:, self.view.tile] for name, words in self.loop.registers.items()}
        changed = change(registers, range(self.loop.steps), self.view.tile)
        return self.loop.contributions(self.view, arithmetic, **changed)

    # --- together with weights of steps and of C ---

    def weighted(self, mistakes: Iterable[Mistake], d: Matrix, near: Matrix) -> Iterator[Candidate]:
        """Yield mistakes in every step with the weights that give ``d``, which roundings take by ``near``."""
        loop, steps = self.loop, self.loop.steps
        c = self.view.part.of_result(loop.c_values[self.view.tile])
        for mistake in mistakes:
            if mistake.arithmetic is not None or not _is_read(mistake):
                continue
            change = _change_of(mistake)
            wrong = self._wrong(change)
            if not (wrong != self.each).any():
                continue
            parts = np.concatenate([wrong, c[None]]) if c.any() else wrong
            solved = weights(parts.reshape(len(parts), -1), d.reshape(-1), near.reshape(-1))
            if solved is None:
                continue
            theta, of_c = solved.theta[:steps], float(solved.theta[-1]) if c.any() else 1.0
            whole = ((theta >= 0) & (theta % 1 == 0) & (theta <= _MOST)).all()
            if not whole or ((theta == 1).all() and of_c == 1):
                continue

            def run(change: Change = change, theta: Matrix = theta, of_c: float = of_c) -> Codes:
                made = self._steps(change, range(steps))
                chosen = [made[at] for at, n in enumerate(theta.astype(int).tolist()) for _ in range(n)]
                return loop.chain(chosen, loop.times_c(of_c))

            yield Candidate(
                name=f"{_EVERY}{mistake.named.name} + {weights_text(theta.tolist(), of_c)}",
                advice="two mistakes together",
                change=np.tensordot(theta, wrong, 1) - self.each.sum(axis=0) + (of_c - 1) * c,
                exact=run,
            )


def _is_read(mistake: Mistake) -> bool:
    """Return whether it changes what steps read besides C."""
    return mistake.change is not None and not {"c", "d"} & {*mistake.operands}


def _change_of(mistake: Mistake) -> Change:
    """Return the same change in all steps."""

    def change(registers: Registers, steps: Sequence[int], tiles: Tiles) -> dict[str, Any]:
        return mistake.change(registers) if mistake.change else {}

    return change
