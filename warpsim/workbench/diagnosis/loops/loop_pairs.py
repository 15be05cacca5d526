"""Two mistakes in one loop along k: steps left out or doubled, C forgotten or doubled, and a mistake in every
step (of the library, an operand of another step, or a matrix read otherwise), two of these at once.

Each pair is judged in ordinary numbers, as single mistakes are, and computed exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from ....isa.codes import codes_of, matrix_of
from ....isa.fragments import codes_from
from ....isa.products import Codes
from ..dumps.closeness import numbers
from ..library.mistake import Mistake
from .loop_candidates import Candidate, exactly
from .loop_mistakes import WithinSteps
from .loop_sources import Sources
from .product_loops import Loop, Matrix, Step, View
from .whole_matrices import in_every_step

_ADVICE = "two mistakes together"


@dataclass(frozen=True, kw_only=True)
class _Order:
    """Which steps are executed, in order."""

    name: str
    steps: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class _Start:
    """With which registers of C a loop begins, what that adds to the view, and what is done with D."""

    name: str
    c: Any
    change: Matrix
    after: Callable[[Codes], Codes] | None = None


class Pairs:
    """Pairs of mistakes, judged on one view."""

    def __init__(self, loop: Loop, view: View) -> None:
        self.loop, self.view = loop, view
        self.within = WithinSteps(loop, view)
        self.each = self.within.each

    def __call__(self, library: Iterable[Mistake]) -> Iterator[Candidate]:
        """Yield steps with C, then each mistake of the library with either."""
        orders, starts = list(self._orders()), list(self._starts())
        plain = self.loop.plain()
        for order in orders:
            for start in starts:
                yield self._candidate(self.each, plain, order, start, f"{order.name} + {start.name}")
        whole = _Order(name="", steps=tuple(range(self.loop.steps)))
        none = _Start(name="", c=self.loop.accumulators, change=np.zeros_like(self.each[0]))
        whole_changes = (
            self.within.in_every_step(library),
            Sources(self.loop, self.view).in_every_step(),
            in_every_step(self.loop, self.view),
        )
        for name, wrong, steps in chain.from_iterable(whole_changes):
            for order in orders:
                yield self._candidate(wrong, steps, order, none, f"{name} + {order.name}")
            for start in starts:
                yield self._candidate(wrong, steps, whole, start, f"{name} + {start.name}")

    def _candidate(
        self,
        added: Matrix,
        steps: list[Step] | Callable[[], list[Step]],
        order: _Order,
        start: _Start,
        name: str,
    ) -> Candidate:
        change = added[list(order.steps)].sum(axis=0) - self.each.sum(axis=0) + start.change

        def run() -> Codes:
            made = steps() if callable(steps) else steps
            return exactly(self.loop, [made[at] for at in order.steps], start.c, start.after)()

        return Candidate(name=name, advice=_ADVICE, change=change, exact=run)

    def _orders(self) -> Iterator[_Order]:
        """Yield steps left out or doubled, loops that start late or end early."""
        count = self.loop.steps
        every = tuple(range(count))
        for at in range(count if count > 1 else 0):
            yield _Order(name=f"step {at} left out (missing)", steps=every[:at] + every[at + 1 :])
            yield _Order(name=f"step {at} twice", steps=every[: at + 1] + every[at:])
            if 0 < at < count - 1:
                yield _Order(name=f"steps {at} to {count - 1} left out (missing)", steps=every[:at])
                yield _Order(name=f"steps 0 to {at} left out (missing)", steps=every[at + 1 :])

    def _starts(self) -> Iterator[_Start]:
        """Yield C forgotten, and twice."""
        form, words = self.loop.form, self.loop.accumulators
        c = numbers(codes_from(words, form, "c"), form.c)
        if not c.any():
            return
        tile = self.view.part.of_result(c[self.view.tile])
        yield _Start(name="C not added (forgotten)", c=np.zeros_like(words), change=-tile)
        yield _Start(name="C twice", c=words, change=tile, after=lambda d: self._plus(d, c))

    def _plus(self, codes: Codes, c: Matrix) -> Codes:
        element = self.loop.form.d
        with np.errstate(all="ignore"):
            total = matrix_of(codes, element) + c.astype(element.dtype)
        return codes_of(np.asarray(total, element.dtype), element, "D")
