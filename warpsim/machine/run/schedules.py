"""In which order the CTAs of a launch run, which lanes that have parted go first, and when copies complete.

    "program"            CTAs by their number, the lanes at the lowest statement first: fast, all in step;
                         what is asynchronous completes where it is issued
    "earliest"           the same, but the first warp of each CTA runs ahead until it has to wait
    "latest"             the same, but nothing completes before lanes wait for it and no path can run, and
                         every cluster begins: no request for the work of others is granted
    7 or "random:7"      CTAs and warps in an order that the seed decides; warps are not kept in step, but
                         go in two teams where they are many (warp_scheduling.py); asynchronous operations
                         complete in between, in any order, the same in all clusters that run together

PTX promises none of them; a kernel whose results depend on it has a race. One seed gives one order on every
machine. Knows paths; does not know statements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import overload

import numpy as np

from ...base.errors import OperandError
from ...isa.numerals import whole_number
from .asynchronous import Asynchrony, Moment
from .scheduler import Order
from .warp_scheduling import Drawn, first_warps, in_step

_STRETCH = 1 << 17  # CTAs that are put in order at a time
_GRANTED = 0.5  # the chance that a request for the work of others is granted
_NAMED: tuple[Moment, ...] = ("program", "earliest", "latest")
_OTHERS = ("random:1", "latest", "earliest", "program")  # what other schedules show, they show of these first


def other_schedules(count: int, than: str | int = "program") -> list[str]:
    """Return so many schedules, none of which is ``than``: those that show most, then further seeds."""
    own = f"random:{than}" if str(than).isdigit() else str(than)
    seeds = (f"random:{seed}" for seed in range(2, count + 2))
    return [name for name in (*_OTHERS, *seeds) if name != own][:count]


class Schedule:
    """An order; ``moment`` says when operations complete, ``seed`` is None where nothing is random."""

    def __init__(self, given: str | int) -> None:
        self.moment: Moment = "random"
        self.seed: int | None = None
        if given in _NAMED:
            self.moment = given
        else:
            self.seed = _seed(given)

    def asynchrony(self, wave: int) -> Asynchrony:
        """Return when the operations of a wave complete."""
        return Asynchrony(self.moment, Random(f"{self.seed} asynchrony {wave}"))

    def ctas(self, count: int) -> Sequence[int]:
        """Return the numbers of CTAs, or of clusters, in the order in which they run."""
        if self.seed is None:
            return range(count)
        return _Shuffled(self.seed, count)

    def grants(self) -> Callable[[], bool]:
        """Return what decides whether the work of a cluster that has not begun is given to others."""
        if self.moment != "random":
            return lambda: self.moment != "latest"
        random = Random(f"{self.seed} grants")
        return lambda: random.random() < _GRANTED

    def order_of(self, wave: int) -> Order:
        """Return which lanes of a wave are next."""
        if self.moment == "earliest":
            return first_warps
        return in_step if self.seed is None else Drawn(Random(f"{self.seed} {wave}"))


class _Shuffled(Sequence[int]):
    """The numbers below a count in the order of a seed: in stretches, for a grid may have 2^31 CTAs."""

    def __init__(self, seed: int, count: int) -> None:
        self._seed = seed
        self._count = count
        self._stretch: tuple[int, list[int]] = (-1, [])  # where the latest stretch starts, and its numbers

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> int: ...

    @overload
    def __getitem__(self, place: slice) -> list[int]: ...

    def __getitem__(self, place: int | slice) -> int | list[int]:
        if isinstance(place, slice):
            return [self[number] for number in range(self._count)[place]]
        start = place // _STRETCH * _STRETCH
        if self._stretch[0] != start:
            numbers = list(range(start, min(start + _STRETCH, self._count)))
            Random(f"{self._seed} {start}" if start else self._seed).shuffle(numbers)
            self._stretch = start, numbers
        return self._stretch[1][place - start]


def _seed(given: str | int) -> int:
    """Return the seed of a random schedule; raises OperandError for what is not a schedule."""
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        return int(given)
    word, _, number = str(given).partition(":")
    seed = whole_number(number) if word == "random" else None
    if seed is None:
        raise OperandError(
            f"schedule={given!r}: expected 'program', 'earliest', 'latest', an integer or 'random:SEED'"
        )
    return seed
