"""Which lanes go on next, where lanes have parted: in step, or in teams of warps of which one gets ahead.

In step, the lanes at the lowest statement are next, so that all meet again. Were every warp by itself, a
launch would cost as many times more as there are warps in a wave. Two teams cost about twice: each is in
step, and one gets ahead of the other; who belongs to which is drawn anew from time to time, so that any two
warps part sooner or later. Small grids can afford a team for every warp,
which often takes some of those along that stand where it does.
Knows fronts and warps; does not know seeds, or when copies complete (schedules.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from ...isa.warps import WARP
from ..state.lanes import Front, Lanes, Mask

if TYPE_CHECKING:
    from .wave import Wave

# Rounds of a loop before other lanes get their turn: many, so that lanes that work are not torn apart each
# time round; a round of a loop that waits for others (see spins.py) counts for as many.
PATIENCE = 512
_FEW = 32  # warps of a grid that need no teams
_ALONG = 3 / 4  # the chance that there some of those that stand at the same place go along
_ANEW = 1 / 32  # the chance that teams are drawn anew when a front is chosen,
_TURNS = 1 / 32  # that the other team gets ahead,
_ANYBODY = 1 / 8  # and that any front is chosen, be it of the team behind or not the lowest

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


def _members(wave: Wave, split: Callable[[Front], Sequence[Member]]) -> list[Member]:
    """The fronts of a wave by team."""
    parts = [part for front in wave.fronts for part in split(front)]
    found = joined(parts) if len(parts) > 1 else parts
    wave.fronts = [front for _, front in found]
    return found


def _by_warp(front: Front) -> Sequence[Member]:
    """Every warp is a team."""
    warps = np.unique(front.lanes.index // WARP).tolist()
    if len(warps) == 1:
        return [(warps[0], front)]
    parts = list[Member]()
    for warp in warps:
        mask = np.zeros_like(front.lanes.mask)
        mask[warp * WARP :][:WARP] = front.lanes.mask[warp * WARP :][:WARP]
        parts.append((warp, Front(front.pc, front.frame, Lanes(mask), front.turns)))
    return parts


def _by_half(second: Mask, front: Front) -> Sequence[Member]:
    """Teams 0 and 1; the mask has the lanes of the latter."""
    mask = front.lanes.mask & second
    count = int(np.count_nonzero(mask))
    if count in (0, front.lanes.count):
        return [(int(count > 0), front)]
    front.lanes = Lanes(front.lanes.mask & ~second)
    return [(0, front), (1, Front(front.pc, front.frame, Lanes(mask), front.turns))]


# --- the orders of schedules -------------------------------------------------------------------------


def first_warps(wave: Wave) -> Front:
    """The first warp of each CTA gets ahead of the others, until it has to wait."""

    def place(member: Member) -> tuple[int, int, tuple[int, int, int]]:
        team, front = member
        return front.turns // PATIENCE, team, in_program(front)

    return min(_members(wave, partial(_by_half, wave.thread >= WARP)), key=place)[1]


class Drawn:
    """Teams that are drawn by lot, as is the one that gets ahead, and now and then any front; where there are
    few warps, any front at any time.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.second: Mask | None = None
        self.ahead = 0

    def __call__(self, wave: Wave) -> Front:
        """The front that is next; in step where the wave only went round, so that a standstill shows."""
        if wave.vain:
            return in_step(wave)
        if wave.warps * wave.grid[0] * wave.grid[1] * wave.grid[2] <= _FEW:
            return self._any_warp(wave)
        if self.second is None or self.random.random() < _ANEW:
            self.second = self._dealt(wave)
        members = _members(wave, partial(_by_half, self.second))
        if len(members) == 1:
            return members[0][1]
        if self.random.random() < _ANYBODY:
            return self.random.choice(members)[1]
        if self.random.random() < _TURNS:
            self.ahead = 1 - self.ahead
        team = [front for one, front in members if one == self.ahead]
        return min(team or (front for _, front in members), key=in_program)

    def _any_warp(self, wave: Wave) -> Front:
        """Any warp, often with some of those at the same place; never all that run, for then nobody parts."""
        chosen = self.random.choice(members := _members(wave, _by_warp))[1]
        here = [one for _, one in members if one.pc == chosen.pc and one.frame is chosen.frame]
        others = [one for one in here if one is not chosen]
        most = len(others) - (len(here) == len(members))
        if most > 0 and self.random.random() < _ALONG:
            along = self.random.sample(others, self.random.randint(1, most))
            chosen.lanes = Lanes(np.logical_or.reduce([one.lanes.mask for one in (chosen, *along)]))
            wave.fronts = [one for one in wave.fronts if one not in along]
        return chosen

    def _dealt(self, wave: Wave) -> Mask:
        """Half of the warps of each CTA, dealt out like cards to the two teams, CTA after CTA."""
        second = np.zeros((len(wave.ctas), wave.warps), np.bool_)
        dealt = self.random.randrange(2)
        for cta in self.random.sample(range(len(second)), len(second)):
            order = self.random.sample(range(wave.warps), wave.warps)
            second[cta, order[dealt::2]] = True
            dealt = (dealt + wave.warps) % 2
        return np.repeat(second.reshape(-1), WARP)
