"""Which lanes go on next, where lanes have parted: in step, or in teams of warps of which one gets ahead.

In step, the lanes at the lowest statement are next, so that all meet again. Were every warp by itself, a
launch would cost as many times more as there are warps in a wave. Two teams cost about twice: each is in
step, and one gets ahead of the other; who belongs to which is drawn anew from time to time, so that any two
warps part sooner or later, and three be at three places.
Knows fronts and warps; does not know seeds, or when copies complete (schedules.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
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
_FEW = 32  # warps of a grid in which any of them may be next
_ALONG = 1 / 2  # the chance that those who stand at the same place go along
_GROUP = 4  # warps of a warpgroup
_ANEW = 1 / 16  # the chance that teams are drawn anew when a front is chosen and they are level,
_ANEW_APART = 1 / 128  # and that they are where they are not,
_TURNS = 1 / 32  # that the other team gets ahead,
_ANYBODY = 1 / 8  # and that any front is chosen, be it of the team behind or not the lowest

Member = tuple[int, Front]  # the number of a team, and lanes of it
Deal = Callable[[Random, int, int], Mask]  # of so many CTAs and warps of each, which are in the second team
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
    warps = np.unique(front.lanes.index // _WARP).tolist()
    if len(warps) == 1:
        return [(warps[0], front)]
    parts = list[Member]()
    for warp in warps:
        mask = np.zeros_like(front.lanes.mask)
        mask[warp * _WARP :][:_WARP] = front.lanes.mask[warp * _WARP :][:_WARP]
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

    return min(_members(wave, partial(_by_half, wave.thread >= _WARP)), key=place)[1]


class Drawn:
    """Teams that are drawn by lot, as is the one that gets ahead, and now and then any front; where there are
    few warps, any of them at any time.

    Teams are drawn anew often where they stand at the same places, which costs nothing, and seldom where they
    do not; now and then all go in step for a while. Within a team those are next who have come round least
    often, so that its lanes meet again.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.second: Mask | None = None
        self.ahead = 0

    def __call__(self, wave: Wave) -> Front:
        """The front that is next; in step where the wave only went round, so that a standstill shows."""
        if wave.vain:
            return in_step(wave)
        draw = self.random.random
        if wave.warps * wave.grid[0] * wave.grid[1] * wave.grid[2] <= _FEW:
            return self._any_warp(wave)
        members = self._members(wave)
        if len(members) == 1:
            return members[0][1]
        if draw() < _ANYBODY:
            return self.random.choice(members)[1]
        if draw() < _TURNS:
            self.ahead = 1 - self.ahead
        team = [front for one, front in members if one == self.ahead]
        return min(team or (front for _, front in members), key=partial(_behind, wave))

    def _any_warp(self, wave: Wave) -> Front:
        """Any warp, often with those that stand at the same place."""
        chosen = self.random.choice(members := _members(wave, _by_warp))[1]
        if self.random.random() < _ALONG:
            same = [one for _, one in members if one.pc == chosen.pc and one.frame is chosen.frame]
            chosen.lanes = Lanes(np.logical_or.reduce([one.lanes.mask for one in same]))
            wave.fronts = [one for _, one in members if one is chosen or one not in same]
        return chosen

    def _members(self, wave: Wave) -> list[Member]:
        """The fronts by team, after teams have perhaps been drawn anew."""
        if self.second is None:
            self.second = self._dealt(wave, _DEALS)
        members = _members(wave, partial(_by_half, self.second))
        level = _level(members) or not self.second.any()
        if self.random.random() < (_ANEW if level else _ANEW_APART):
            self.second = self._dealt(wave, (*_DEALS, _nobody))
            members = _members(wave, partial(_by_half, self.second))
        return members

    def _dealt(self, wave: Wave, deals: Sequence[Deal]) -> Mask:
        """``(lanes,)``: the second team, by one of some ways to deal, drawn by lot."""
        hands = self.random.choice(deals)(self.random, len(wave.ctas), wave.warps)
        return np.repeat(hands.reshape(-1), _WARP)


def _behind(wave: Wave, front: Front) -> tuple[int, int, int, int]:
    """By what lanes are in order in a team: as in step, but those behind by a round of a loop come first."""
    turns, depth, pc = in_program(front)
    return turns, depth, int(wave.laps[front.lanes.mask.argmax()]), pc


def _level(members: Iterable[Member]) -> bool:
    """Whether the teams stand at the same places."""
    places: tuple[set[tuple[int, int]], ...] = (set(), set())
    for team, front in members:
        places[team].add((id(front.frame), front.pc))
    return places[0] == places[1]


# --- how teams are dealt: (CTAs, warps), who is of the second ----------------------------------------


def _like_cards(random: Random, ctas: int, warps: int) -> Mask:
    """Half of the warps of each CTA, dealt out like cards to the two teams, CTA after CTA."""
    second = np.zeros((ctas, warps), np.bool_)
    dealt = random.randrange(2)
    for cta in random.sample(range(ctas), ctas):
        order = random.sample(range(warps), warps)
        second[cta, order[dealt::2]] = True
        dealt = (dealt + warps) % 2
    return second


def _by_groups(random: Random, ctas: int, warps: int) -> Mask:
    """Half of the warpgroups: warps that wgmma needs together stay together; of one, half of its warps."""
    groups = -(-warps // _GROUP)
    if ctas * groups == 1:
        return _like_cards(random, ctas, warps)
    return np.repeat(_like_cards(random, ctas, groups), _GROUP, axis=1)[:, :warps]


def _one_of_each(random: Random, ctas: int, warps: int) -> Mask:
    """One warp of each CTA."""
    chosen = np.array([[random.randrange(warps)] for _ in range(ctas)])
    return np.asarray(np.arange(warps) == chosen)


def _nobody(random: Random, ctas: int, warps: int) -> Mask:
    """All go in step for a while."""
    return np.zeros((ctas, warps), np.bool_)


_DEALS: tuple[Deal, ...] = (_like_cards, _like_cards, _by_groups, _one_of_each)
