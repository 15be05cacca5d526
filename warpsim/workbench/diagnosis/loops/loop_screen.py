"""Which candidates of a loop may give D, judged by what they would add to it in float64.

A candidate is let pass unless some element is further off than roundings can take it: each step rounds, at
most, in proportion to the largest sum that its terms can come to. Does not compute anything exactly.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..dumps.dump_comparison import numbers
from ..solving.loop_operands import unit_of
from ..solving.product_loops import Loop, Matrix, View
from .loop_candidates import Candidate

_ROUNDINGS = 8  # of the unit, of a step: products cut, groups, the sum, in the right D and in the candidate's
_OTHER = 2.0**-10  # the unit of candidates with another arithmetic, such as f16 accumulators
_WRAP = 2.0**32


class Seen(NamedTuple):
    """What D has more than expected, how far it is known, and which elements are known at all."""

    rest: Matrix
    spread: Matrix
    known: npt.NDArray[np.bool_]


class Screen:
    """How far the roundings of one loop reach in the elements of a view."""

    def __init__(self, loop: Loop, view: View) -> None:
        self.loop, self.view = loop, view

    def off(
        self, candidate: Candidate, seen: tuple[Matrix, Matrix, npt.NDArray[np.bool_]], size: float
    ) -> float:
        """Return how far a candidate is off, in units of what roundings may come to; below 1 it may be exact.

        ``size`` is the largest element of D, and of what it has more than expected.
        """
        rest, spread, known = Seen(*seen)
        with np.errstate(all="ignore"):
            apart = np.abs(rest - candidate.change)
            if not self.loop.form.d.is_float:
                apart = np.abs(apart - _WRAP * np.round(apart / _WRAP))  # sums wrap
            far = np.maximum(apart - spread, 0)[known]
        far = far[np.isfinite(far)]  # what is not finite may be anything
        unit = max(self._unit, _OTHER) if candidate.rounds_otherwise else self._unit
        reach = max(self._reach, candidate.reach, size)
        limit = _ROUNDINGS * (self.loop.steps + 2) * unit * reach + 2.0**-1022
        return float(far.max(initial=0) / limit)

    @cached_property
    def _unit(self) -> float:
        """Return the unit in the last place of a sum, as a share of its largest term."""
        return unit_of(self.loop.form) or 2.0**-40  # float64 is exact

    @cached_property
    def _reach(self) -> float:
        """Return the largest sum that the terms can come to: no sum on the way is larger."""
        loop, form = self.loop, self.loop.form
        most = []
        for codes, element in ((loop.a, form.a), (loop.b, form.b), (loop.c, form.c)):
            values = np.abs(numbers(codes, element))
            most.append(float(values[np.isfinite(values)].max(initial=0)))
        terms = loop.a.shape[1] * most[0] * most[1] if form.scale is None else self._partial_sums
        return float(terms + most[2])

    @cached_property
    def _partial_sums(self) -> float:
        """Return the sum of the sizes of what the steps add, of scaled forms."""
        with np.errstate(all="ignore"):
            sums = np.abs(self.loop.contributions(self.view)).sum(axis=0)
        return _SCALED * float(sums[np.isfinite(sums)].max(initial=0))


_SCALED = 64.0  # products of a block may be so much larger than their sum
