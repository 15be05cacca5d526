"""Mistakes within the instructions of a loop along k, in every step or in one step.

Knows what a mistake changes in the registers of a step. Does not know the mistakes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from ....isa.products import Codes
from ..library.arithmetic_mistakes import Arithmetic
from ..library.mistake import Mistake
from ..library.setting import Registers
from ..solving.product_loops import Loop, Matrix, Step, View
from .loop_candidates import Candidate

Tiles = int | slice  # a single tile, or all
# registers (steps, …) or (steps, tiles, …), of which steps and tiles -> those that change
Change = Callable[[Registers, Sequence[int], Tiles], Registers]


class WithinSteps:
    """Mistakes made in every step, and in one step."""

    def __init__(self, loop: Loop, view: View) -> None:
        self.loop, self.view, self.each = loop, view, loop.contributions(view)

    def __call__(self, mistakes: Iterable[Mistake]) -> Iterator[Candidate]:
        """Yield those of the library that change what steps read or compute."""
        for mistake in mistakes:
            if mistake.arithmetic is not None or (
                mistake.change is not None and not {"c", "d"} & {*mistake.operands}
            ):
                for candidate in self.made(
                    mistake.name, mistake.advice, _change_of(mistake), mistake.arithmetic
                ):
                    yield candidate if mistake.describe is None else _named_later(candidate, mistake)

    def in_every_step(
        self, mistakes: Iterable[Mistake]
    ) -> Iterator[tuple[Mistake, Matrix, Callable[[], list[Step]]]]:
        """Yield mistakes in every step, what the steps add with them, and those steps."""
        for mistake in mistakes:
            if mistake.arithmetic is not None or mistake.change is None or {"c", "d"} & {*mistake.operands}:
                continue
            change = _change_of(mistake)
            wrong = self._wrong(change, None)
            if (wrong != self.each).any():
                yield mistake, wrong, lambda change=change: self._steps(change, range(self.loop.steps))  # type: ignore[misc]

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

    def made(
        self, name: str, advice: str, change: Change, arithmetic: Arithmetic | None = None
    ) -> Iterator[Candidate]:
        """Yield one change in every step, and in each."""
        count = self.loop.steps
        with np.errstate(all="ignore"):
            more = self._wrong(change, arithmetic) - self.each
            whole = more.sum(axis=0)
        if arithmetic is None and not more.any():
            return  # another arithmetic may add the same to nothing, and something else to a sum
        every = f"in every step (all steps): {name}"
        yield self._candidate(every, advice, whole, change, arithmetic, range(count))
        for at in range(count if count > 1 else 0):
            yield self._candidate(f"in step {at} only: {name}", advice, more[at], change, arithmetic, (at,))

    def _wrong(self, change: Change, arithmetic: Arithmetic | None) -> Matrix:
        """Return ``(steps, m, n)``: what the steps add with the mistake."""
        registers = {name: words[:, self.view.tile] for name, words in self.loop.registers.items()}
        changed = change(registers, range(self.loop.steps), self.view.tile)
        return self.loop.contributions(self.view, arithmetic, **changed)

    def _candidate(
        self,
        name: str,
        advice: str,
        more: Matrix,
        change: Change,
        arithmetic: Arithmetic | None,
        where: Sequence[int],
    ) -> Candidate:
        def run() -> Codes:
            return self.loop.chain(self._steps(change, where, arithmetic), self.loop.accumulators)

        return Candidate(
            name=name,
            advice=advice,
            change=more,
            exact=run,
            rounds_otherwise=arithmetic is not None,
            reach=self._reach(more),
        )

    def _reach(self, more: Matrix) -> float:
        """Return what a step may come to with what it adds more."""
        finite = np.abs(more[np.isfinite(more)])
        return float(self._right_reach + self.loop.steps * finite.max(initial=0))

    @cached_property
    def _right_reach(self) -> float:
        with np.errstate(all="ignore"):
            sums = np.abs(self.each).sum(axis=0)
        return float(sums[np.isfinite(sums)].max(initial=0))


def _named_later(candidate: Candidate, mistake: Mistake) -> Candidate:
    """Return a candidate that finds the words of its mistake when they are asked for."""
    where = candidate.name.removesuffix(mistake.name)

    def words() -> tuple[str, str]:
        named = mistake.named
        return f"{where}{named.name}", named.advice

    return replace(candidate, described=words)


def _change_of(mistake: Mistake) -> Change:
    """Return the same change in all steps."""

    def change(registers: Registers, steps: Sequence[int], tiles: Tiles) -> dict[str, Any]:
        return mistake.change(registers) if mistake.change else {}

    return change
