"""Candidates of a loop: what each would add to D, which of them may give D, and sums in another order.

A candidate knows what it would change in one tile, roughly, and D of all tiles, exactly. It is let pass
unless some element is further off than roundings can take it: each step rounds, at most, in proportion to the
largest sum that its terms can come to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ....isa.codes import codes_of
from ....isa.products import Codes
from ....sums.products.gemm import gemm
from ..dumps.dump_comparison import numbers
from ..solving.loop_operands import unit_of
from ..solving.product_loops import Loop, Matrix, View

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
