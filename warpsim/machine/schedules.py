"""In which order the CTAs of a launch run, and which of the lanes that have parted go first.

    "program"            CTAs by their number, the lanes at the lowest statement first: fast, all in step
    7 or "random:7"      CTAs and warps in an order that the seed decides; warps are not kept in step

PTX promises neither; a kernel whose results depend on it has a race. One seed gives one order on every
machine. Knows fronts; does not know statements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import numpy as np

from ..errors import OperandError
from ..isa.numerals import whole_number
from .lanes import Front, Lanes

WARP = 32


class Schedule:
    """An order; ``seed`` is None for that of the program."""

    def __init__(self, given: str | int) -> None:
        self.seed = _seed(given)

    def order(self, count: int) -> Sequence[int]:
        """The numbers of CTAs, in the order in which they run."""
        if self.seed is None:
            return range(count)
        numbers = list(range(count))
        Random(self.seed).shuffle(numbers)
        return numbers

    def chooser(self, wave: int) -> Callable[[list[Front]], Front] | None:
        """Which front of the so many-th wave is next; None for the wave's own choice."""
        if self.seed is None:
            return None
        return Random(f"{self.seed} {wave}").choice


def parted(front: Front) -> list[Front]:
    """The lanes of a front by their warps, so that each goes its own way."""
    parts = list[Front]()
    for warp in np.unique(front.lanes.index // WARP).tolist():
        mask = np.zeros_like(front.lanes.mask)
        mask[warp * WARP : (warp + 1) * WARP] = front.lanes.mask[warp * WARP : (warp + 1) * WARP]
        parts.append(Front(front.pc, front.frame, Lanes(mask), front.turns))
    return parts


def _seed(given: str | int) -> int | None:
    """The seed of a random schedule; raises OperandError for what is no schedule."""
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        return int(given)
    if given == "program":
        return None
    word, _, number = str(given).partition(":")
    seed = whole_number(number) if word == "random" else None
    if seed is None:
        raise OperandError(f"schedule={given!r}: it is 'program', an integer or 'random:SEED'")
    return seed
