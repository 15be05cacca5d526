"""Which lanes go on next, where lanes have parted: in step, or in teams of warps of which one gets ahead.

In step, the lanes at the lowest statement are next, so that all meet again. A warp by itself costs as many
times more as there are warps in a wave. Two teams cost twice at most: each is in step, and one gets ahead of the
other; who belongs to which is drawn anew from time to time, so that any two warps part sooner or later.
Knows fronts and warps; does not know seeds, or when copies complete (schedules.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from .lanes import Front, Lanes, Mask

if TYPE_CHECKING:
    from .wave import Wave

# Rounds of a loop before other lanes get their turn: many, so that lanes that work are not torn apart each
# time round; a round of a loop that waits for others (see spins.py) counts for as many.
PATIENCE = 512
_WARP = 32
_ANEW = 1 / 32  # the chance that teams are drawn anew when a front is chosen,
_ANYBODY = 1 / 8  # and that it is not the lowest one

Member = tuple[int, Front]  # the number of a team, and lanes of it
Order = Callable[["Wave"], Front]  # the front that is next; fronts of the wave may be joined and split


def in_program(front: Front) -> tuple[int, int, int]:
    """By what lanes are in order in step: those that do not go round in vain, the deepest, the lowest."""
    return front.turns // PATIENCE, -front.frame.depth, front.pc


def joined(members: Iterable[Member]) -> list[Member]:
    """Fronts of a team at one place of one frame become one."""
    places: dict[tuple[int, int, int], Member] = {}
    for team, front in members:
        _, known = places.setdefault((id(front.frame), front.pc, team), (team, front))
        if known is not front:
            known.lanes = Lanes(known.lanes.mask | front.lanes.mask)
            known.turns = min(known.turns, front.turns)
    return list(places.values())


def in_step(wave: Wave) -> Front:
    """All lanes are one team."""
    fronts = wave.fronts
    if len(fronts) == 1:
        fronts[0].turns = 0
        return fronts[0]
    wave.fronts = [front for _, front in joined((0, front) for front in fronts)]
    return min(wave.fronts, key=in_program)


def _members(wave: Wave, second: Mask) -> list[Member]:
    """The fronts of a wave by team, 0 or 1; ``second`` has the lanes of the latter."""
    parts = [part for front in wave.fronts for part in _split(front, second)]
    found = joined(parts) if len(parts) > 1 else parts
    wave.fronts = [front for _, front in found]
    return found


def _split(front: Front, second: Mask) -> Sequence[Member]:
    mask = front.lanes.mask & second
    count = int(np.count_nonzero(mask))
    if count in (0, front.lanes.count):
        return [(int(count > 0), front)]
    front.lanes = Lanes(front.lanes.mask & ~second)
    return [(0, front), (1, Front(front.pc, front.frame, Lanes(mask), front.turns))]


# --- the orders of schedules -------------------------------------------------------------------------


def first_warps(wave: Wave) -> Front:
    """The first warp of each CTA gets ahead of the others, until it has to wait."""
    second = wave.thread >= _WARP
    return min(_members(wave, second), key=lambda one: (one[1].turns // PATIENCE, one[0], in_program(one[1])))[1]


class Drawn:
    """Teams that are drawn by lot, as is the one that is next, and now and then any front of it."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.second: Mask | None = None

    def __call__(self, wave: Wave) -> Front:
        """The front that is next."""
        if self.second is None or self.random.random() < _ANEW:
            self.second = self._dealt(wave)
        members = _members(wave, self.second)
        if len(members) == 1:
            return members[0][1]
        if self.random.random() < _ANYBODY:
            return self.random.choice(members)[1]
        team = self.random.choice(sorted({team for team, _ in members}))
        return min((front for one, front in members if one == team), key=in_program)

    def _dealt(self, wave: Wave) -> Mask:
        """Half of the warps of each CTA, dealt out like cards to the two teams, CTA after CTA."""
        second = np.zeros((len(wave.ctas), wave.warps), np.bool_)
        dealt = self.random.randrange(2)
        for cta in self.random.sample(range(len(second)), len(second)):
            order = self.random.sample(range(wave.warps), wave.warps)
            second[cta, order[dealt::2]] = True
            dealt = (dealt + wave.warps) % 2
        return np.repeat(second.reshape(-1), _WARP)
