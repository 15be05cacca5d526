"""What goes wrong with whole steps of a loop along k: left out, doubled, fed with another step's operands,
added to another C, or in another order.

A candidate knows what it would change in one tile, roughly, and D of all tiles, exactly. Mistakes within an
instruction are elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..isa.codes import codes_of, matrix_of
from ..isa.fragments import codes_from, registers_of
from ..isa.instruction import Codes
from ..products.gemm import gemm
from .loops import Loop, Matrix, Step, numbers


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A mistake of a loop: what it changes in the tile ``(m, n)``, roughly, and D of all tiles, exactly."""

    name: str
    advice: str
    change: Matrix
    exact: Callable[[], Codes]


class Candidates:
    """Those of a loop, judged on one tile; ``given`` are A, B and C as they came."""

    def __init__(self, loop: Loop, tile: int, given: tuple[Any, Any, Any]) -> None:
        self.loop, self.tile, self.given = loop, tile, given

    def __iter__(self) -> Iterator[Candidate]:
        each = self.loop.contributions(self.tile)
        yield from self._of_steps(each)
        yield from self._of_accumulators(each)
        yield from self._of_order()

    def _exactly(
        self,
        steps: list[Step],
        c: Any = None,
        after: Callable[[Any], Any] | None = None,
    ) -> Callable[[], Codes]:
        def run() -> Codes:
            start = self.loop.accumulators if c is None else c
            codes = self.loop.chain(steps, start)
            return codes if after is None else after(codes)

        return run

    def _of_steps(self, each: Matrix) -> Iterator[Candidate]:
        """Steps left out, doubled, with operands of others."""
        plain, count = self.loop.plain(), self.loop.steps
        for at in range(count):
            for name, steps, change in (
                (f"step {at} left out (missing)", plain[:at] + plain[at + 1 :], -each[at]),
                (f"step {at} twice", plain[: at + 1] + plain[at:], each[at]),
            ):
                yield self._candidate(name, "check the bounds of the loop along k", change, steps)
            if 0 < at < count - 1:
                name = f"steps {at} to {count - 1} left out (missing): the loop ends early"
                yield self._candidate(
                    name, "check the bounds of the loop", -each[at:].sum(axis=0), plain[:at]
                )
                name = f"steps 0 to {at} left out (missing): the loop starts late"
                yield self._candidate(
                    name, "check the bounds of the loop", -each[: at + 1].sum(axis=0), plain[at + 1 :]
                )
        if self.loop.tail:
            k = self.loop.form.shape.k
            name = f"the tail left out: k from {(count - 1) * k} on, step {count - 1}"
            yield self._candidate(
                name, "k is no multiple of the instruction's: add its rest", -each[-1], plain[:-1]
            )
        yield from self._of_neighbours()

    def _of_neighbours(self) -> Iterator[Candidate]:
        """Operands of one step, or of all, taken from another step."""
        count, held = self.loop.steps, self.loop.registers
        advice = "check the stage of the pipeline: what is read is not what was loaded for this step"
        for name in held:
            spelled = "metadata" if name == "e" else name.upper()
            for step in (1, -1):
                order = np.clip(np.arange(count) + step, 0, count - 1)
                around = (np.arange(count) + step) % count
                which = "next" if step > 0 else "previous"
                for text, taken in (
                    (f"of the {which} step", order),
                    (f"of the {which} step, around the end", around),
                ):
                    yield self._taken(f"every step reads {spelled} {text}", advice, name, taken)
                for at in range(count):
                    if 0 <= at + step < count:
                        one = np.arange(count)
                        one[at] = at + step
                        yield self._taken(f"step {at} reads {spelled} of step {at + step}", advice, name, one)
            first = np.zeros(count, np.intp)
            yield self._taken(f"every step reads {spelled} of step 0", advice, name, first)

    def _taken(self, name: str, advice: str, operand: str, order: npt.NDArray[Any]) -> Candidate:
        """An operand of every step from the step in ``order``."""
        plain, words = self.loop.plain(), self.loop.registers[operand]
        steps = [(registers | {operand: words[order[at]]}, how) for at, (registers, how) in enumerate(plain)]
        moved = np.flatnonzero(order != np.arange(len(order)))
        change = self.loop.added([steps[at] for at in moved], self.tile)
        change -= self.loop.added([plain[at] for at in moved], self.tile)
        return self._candidate(name, advice, change, steps)

    def _candidate(
        self, name: str, advice: str, change: Matrix, steps: list[Step], c: Any = None
    ) -> Candidate:
        return Candidate(name=name, advice=advice, change=change, exact=self._exactly(steps, c))

    def _of_accumulators(self, each: Matrix) -> Iterator[Candidate]:
        """C forgotten, twice, scaled; accumulators cleared on the way."""
        form, plain = self.loop.form, self.loop.plain()
        c = numbers(codes_from(self.loop.accumulators, form, "c"), form.c)
        zero = np.zeros_like(self.loop.accumulators)
        tile = c[self.tile]
        if c.any():
            yield self._candidate(
                "C not added (forgotten)", "start from C, or add it in the end", -tile, plain, zero
            )
            for factor, text in ((2.0, "C twice"), (0.5, "C times 0.5 (beta)"), (-1.0, "C times -1 (beta)")):
                scaled = registers_of(codes_of((c * factor).astype(form.c.dtype), form.c, "C"), form, "c")
                advice = "C enters once, with a factor of one"
                yield self._candidate(text, advice, (factor - 1) * tile, plain, scaled)
                yield Candidate(
                    name=f"{text}, added in the end",
                    advice=advice,
                    change=(factor - 1) * tile,
                    exact=self._exactly(plain, zero, lambda d, f=factor: self._plus(d, c, f)),  # type: ignore[misc]
                )
            yield Candidate(
                name="C twice: once in the beginning and once in the end",
                advice="C enters once",
                change=tile,
                exact=self._exactly(plain, None, lambda d: self._plus(d, c, 1.0)),
            )
        for at in range(1, len(plain)):
            name = f"accumulators cleared (reset) before step {at}"
            change = -each[:at].sum(axis=0) - tile
            yield self._candidate(name, "clear them once, before the loop", change, plain[at:], zero)
            name = f"accumulators start from C again at step {at}"
            yield self._candidate(name, "load C once, before the loop", change + tile, plain[at:])

    def _plus(self, codes: Codes, c: Matrix, factor: float) -> Codes:
        element = self.loop.form.d
        with np.errstate(all="ignore"):
            total = matrix_of(codes, element) + (c * factor).astype(element.dtype)
            return codes_of(np.asarray(total, element.dtype), element, "D")

    def _of_order(self) -> Iterator[Candidate]:
        """The same sums in another order, which changes roundings only."""
        form, (A, B, C) = self.loop.form, self.given
        nothing = np.zeros((form.shape.m, form.shape.n))
        if not form.d.is_float:
            return
        advice = "the sums are right, and in another order: warpsim.gemm computes this one too"
        plain = self.loop.plain()
        yield self._candidate("steps in descending order of k (reverse)", advice, nothing, plain[::-1])
        zero, c = (
            np.zeros_like(self.loop.accumulators),
            numbers(codes_from(self.loop.accumulators, form, "c"), form.c),
        )
        yield Candidate(
            name="C added in the end (epilogue), not in the beginning",
            advice=advice,
            change=nothing,
            exact=self._exactly(plain, zero, lambda d: self._plus(d, c, 1.0)),
        )
        for option in (
            {"split_k": 2},
            {"split_k": 4},
            {"split_k": 8},
            {"promote_every": 1},
            {"promote_every": 4},
        ):
            (name, number), *_ = option.items()
            yield Candidate(
                name=f"{name}={number}" + (f": split in {number} runs along k" if name == "split_k" else ""),
                advice=advice,
                change=nothing,
                exact=lambda more=option: self.loop.tiles_of(  # type: ignore[misc]
                    codes_of(gemm(form, A, B, C, **more), form.d, "D")
                ),
            )
