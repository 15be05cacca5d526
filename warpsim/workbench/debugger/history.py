"""What a launch has executed so far, statement by statement: the positions in time of a session.

The machine is deterministic, so what was executed once is executed again: the history of a session grows only
where an execution gets further than all before. Knows numbers; does not know statements or values.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ...isa.warps import WARP
from ...machine.state.lanes import Lanes, Mask


@dataclass(frozen=True, slots=True)
class Executed:
    """A statement that was executed: when, the number of the wave, the place in the code, how deep in calls.

    ``lanes`` is the number of the mask of its lanes (``History.mask``).
    """

    time: int
    wave: int
    pc: int
    depth: int
    lanes: int


class History:
    """The statements of a launch in their order; ``len`` is how many are known."""

    def __init__(self) -> None:
        self._waves = array("i")
        self._places = array("i")
        self._depths = array("i")
        self._lanes = array("i")
        self._masks: list[Mask] = []
        self._numbers: dict[bytes, int] = {}
        self._latest: tuple[Lanes | None, int] = (None, -1)

    def __len__(self) -> int:
        return len(self._places)

    def add(self, wave: int, pc: int, depth: int, lanes: Lanes) -> None:
        """Add the statement that is executed next."""
        self._waves.append(wave)
        self._places.append(pc)
        self._depths.append(depth)
        self._lanes.append(self._latest[1] if lanes is self._latest[0] else self._number(lanes))

    def _number(self, lanes: Lanes) -> int:
        key = np.packbits(lanes.mask).tobytes()
        number = self._numbers.setdefault(key, len(self._masks))
        if number == len(self._masks):
            self._masks.append(lanes.mask)
        self._latest = lanes, number
        return number

    def at(self, time: int) -> Executed:
        """Return the statement that is executed at a time."""
        return Executed(time, self._waves[time], self._places[time], self._depths[time], self._lanes[time])

    def mask(self, number: int) -> Mask:
        """Return lanes by their number, as Executed has it."""
        return self._masks[number]

    def of_lane(self, wave: int, lane: int, before: int) -> Iterator[Executed]:
        """Yield what a lane of a wave has executed before a time, the latest first."""
        inside = [lane < mask.size and bool(mask[lane]) for mask in self._masks]
        for time in range(before - 1, -1, -1):
            if self._waves[time] == wave and inside[self._lanes[time]]:
                yield self.at(time)

    def latest(self, wanted: Callable[[int], bool], before: int) -> Executed | None:
        """Return the latest statement before a time whose place is wanted, None for none."""
        for time in range(before - 1, -1, -1):
            if wanted(self._places[time]):
                return self.at(time)
        return None

    def steps_of(self, pc: int, wave: int, warp: int, before: int) -> int:
        """Return how often a warp of a wave has executed a statement before a time."""
        inside = [bool(mask[WARP * warp : WARP * (warp + 1)].any()) for mask in self._masks]
        return sum(
            self._places[time] == pc and self._waves[time] == wave and inside[self._lanes[time]]
            for time in range(min(before, len(self)))
        )
