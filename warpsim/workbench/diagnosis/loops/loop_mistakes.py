"""Mistakes within the instructions of a loop along k, also together with weights of steps and of C.

Knows what a mistake changes in the registers of a step. Weights are solved from D; those that are all 1 are
no second mistake. Does not know the mistakes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ....isa.codes import codes_of
from ....isa.products import Codes
from ....sums.products.gemm import gemm
from ..dumps.dump_comparison import numbers
from ..library.arithmetic_mistakes import Arithmetic
from ..library.mistake import Mistake
from ..library.setting import Registers
from ..solving.loop_operands import unit_of
from ..solving.product_loops import Loop, Matrix, Step, View
from ..solving.step_tiles import weights
from ..solving.step_words import weights_text

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


_ROUNDINGS = 8  # of the unit, of a step: products cut, groups, the sum, in the right D and in the candidate's
_OTHER = 2.0**-10  # the unit of candidates with another arithmetic, such as f16 accumulators
_WRAP = 2.0**32
_SCALED = 64.0  # products of a block may be so much larger than their sum
_ORDER_ADVICE = "the sums are right, and in another order: warpsim.gemm computes this order too"
_TURNS = 2, 4  # accumulators
_OPTIONS = {"split_k": (2, 4, 8), "promote_every": (1, 2, 4, 8)}  # of gemm


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A mistake of a loop: what it changes in the view of D, roughly, and D of all tiles, exactly."""

    name: str
    advice: str
    change: Matrix
    exact: Callable[[], Codes]
    rounds_otherwise: bool = False  # its sums are computed in another arithmetic
    whole: bool = False  # a matrix, or all tiles: it is no explanation of some tiles only
    kind: str = "candidate"
    reach: float = 0.0  # the largest sum on the way to its D, if values are changed
    described: Callable[[], tuple[str, str]] | None = None  # name and advice, where finding these takes long

    @property
    def words(self) -> tuple[str, str]:
        """Name and advice."""
        return (self.name, self.advice) if self.described is None else self.described()


class Screen:
    """How far the roundings of one loop reach in the elements of a view."""

    def __init__(self, loop: Loop, view: View) -> None:
        self.loop, self.view = loop, view

    def off(
        self, candidate: Candidate, seen: tuple[Matrix, Matrix, npt.NDArray[np.bool_]], size: float
    ) -> float:
        """Return how far a candidate is off, in units of what roundings may come to; below 1 it may be exact.

        ``seen`` is what D has more than expected, how far that is known, and where. ``size`` is the largest
        element of D, and of what it has more.
        """
        rest, spread, known = seen
        with np.errstate(all="ignore"):
            apart = np.abs(rest - candidate.change)
            if not self.loop.form.d.is_float:
                apart = np.abs(apart - _WRAP * np.round(apart / _WRAP))  # sums wrap
            far = np.maximum(apart - spread, 0)[known]
        unit = unit_of(self.loop.form) or 2.0**-40  # float64 is exact
        unit = max(unit, _OTHER) if candidate.rounds_otherwise else unit
        reach = max(self._reach, candidate.reach, size)
        limit = _ROUNDINGS * (self.loop.steps + 2) * unit * reach + 2.0**-1022
        return float(largest(far) / limit)  # what is not finite may be anything

    @cached_property
    def _reach(self) -> float:
        """Return the largest sum that the terms can come to: no sum on the way is larger."""
        loop, form = self.loop, self.loop.form
        a, b, c = (
            largest(numbers(codes, element))
            for codes, element in ((loop.a, form.a), (loop.b, form.b), (loop.c, form.c))
        )
        if form.scale is None:
            return float(loop.a.shape[1] * a * b + c)
        with np.errstate(all="ignore"):
            return _SCALED * largest(np.abs(loop.contributions(self.view)).sum(axis=0)) + c


def largest(values: Matrix) -> float:
    """Return the largest size of a finite value."""
    return float(np.abs(values[np.isfinite(values)]).max(initial=0))


def orders(loop: Loop, view: View) -> Iterator[Candidate]:
    """Yield the same sums in another order, which changes roundings only; none of integers."""
    if not loop.form.d.is_float:
        return
    plain, zero = loop.plain(), np.zeros_like(loop.accumulators)

    def in_turns(count: int, c_first: bool) -> Codes:
        """Return D of several accumulators that take turns, added in the end."""
        total = loop.chain(plain[::count], loop.accumulators if c_first else zero)
        for at in range(1, count):
            total = loop.plus(total, numbers(loop.chain(plain[at::count], zero), loop.form.d))
        return total if c_first else loop.plus(total, loop.c_values)

    def computed(**options: Any) -> Codes:
        given = loop.given
        d = gemm(loop.form, given.A, given.B, given.C, **given.scales, **options)
        return loop.tiles_of(codes_of(d, loop.form.d, "D"))

    runs: dict[str, Callable[[], Codes]] = {
        "steps in descending order of k (reverse)": lambda: loop.chain(plain[::-1], loop.accumulators),
        "C added in the end (epilogue), not in the beginning": partial(in_turns, 1, False),
    }
    for count in (count for count in _TURNS if count < loop.steps):
        for first, text in ((True, "C in the first"), (False, "C added last")):
            runs[f"{count} accumulators take turns, {text}"] = partial(in_turns, count, first)
    for option, every in _OPTIONS.items():
        for number in every:
            split = f": split in {number} runs along k" * (option == "split_k")
            runs[f"{option}={number}{split}"] = partial(computed, **{option: number})
    nothing = np.zeros_like(loop.contributions(view)[0])
    for name, run in runs.items():
        yield Candidate(kind="sums", name=name, advice=_ORDER_ADVICE, change=nothing, exact=run)
