"""Which of several divergent paths runs next: in step, or in teams of warps of which one gets ahead.

In step, the lanes at the lowest statement are next, so that all meet again. Were every warp by itself, a
launch would cost as many times more as there are warps in a wave. Two teams cost less than twice: each is in
step, and one gets ahead of the other; where both stand at one place they mostly go on together, until the
next choice. The teams are drawn anew from time to time, so that any two warps diverge sooner or later.
Small grids can afford a team for every warp, which often takes some of those along that stand where it does.
Knows paths and warps; does not know seeds, or when copies complete (schedules.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from random import Random

import numpy as np

from ...isa.warps import WARP
from ..state.lanes import DivergentPath, Lanes, Mask
from .geometry import Geometry
from .scheduler import PATIENCE, Scheduler

_FEW = 32  # warps of a grid that need no teams
_ALONG = 3 / 4  # the chance that there some of those that stand at the same place go along
_ANEW = 1 / 32  # the chance that teams are drawn anew when a path is chosen,
_TURNS = 1 / 32  # that the other team gets ahead,
_ANY_PATH = 1 / 8  # that any path is chosen, be it of the team behind or not the lowest,
_TOGETHER = 3 / 4  # and that both teams go on together from a place where both stand

Member = tuple[int, DivergentPath]  # the number of a team, and lanes of it


def in_program(path: DivergentPath) -> tuple[int, int, int]:
    """Return the order of paths in step: those that do not go round in vain, the deepest, the lowest."""
    return path.turns // PATIENCE, -path.frame.depth, path.pc


def joined(members: Iterable[Member]) -> list[Member]:
    """Join the paths of a team at the same place of the same frame."""
    places: dict[tuple[int, int, int], Member] = {}
    for team, path in members:
        _, known = places.setdefault((id(path.frame), path.pc, team), (team, path))
        if known is not path:
            join(known, path)
    return list(places.values())


def join(path: DivergentPath, other: DivergentPath) -> DivergentPath:
    """Return a path with the lanes of another at the same place, too."""
    path.lanes = Lanes(path.lanes.mask | other.lanes.mask)
    path.turns = min(path.turns, other.turns)
    return path


def in_step(scheduler: Scheduler, geometry: Geometry) -> DivergentPath:
    """Choose the next path with all lanes in one team."""
    paths = scheduler.paths
    if len(paths) == 1:
        paths[0].turns = 0
        return paths[0]
    scheduler.paths = [path for _, path in joined((0, path) for path in paths)]
    return min(scheduler.paths, key=in_program)


def _members(scheduler: Scheduler, split: Callable[[DivergentPath], Sequence[Member]]) -> list[Member]:
    """Return the paths of a wave by team."""
    parts = [part for path in scheduler.paths for part in split(path)]
    found = joined(parts) if len(parts) > 1 else parts
    scheduler.paths = [path for _, path in found]
    return found


def _by_warp(path: DivergentPath) -> Sequence[Member]:
    """Split a path by warp: every warp is a team."""
    warps = np.unique(path.lanes.index // WARP).tolist()
    if len(warps) == 1:
        return [(warps[0], path)]
    parts = list[Member]()
    for warp in warps:
        mask = np.zeros_like(path.lanes.mask)
        mask[warp * WARP :][:WARP] = path.lanes.mask[warp * WARP :][:WARP]
        parts.append((warp, DivergentPath(path.pc, path.frame, Lanes(mask), path.turns)))
    return parts


def _by_half(second: Mask, path: DivergentPath) -> Sequence[Member]:
    """Split a path into teams 0 and 1; the mask has the lanes of the latter."""
    mask = path.lanes.mask & second
    count = int(np.count_nonzero(mask))
    if count in (0, path.lanes.count):
        return [(int(count > 0), path)]
    path.lanes = Lanes(path.lanes.mask & ~second)
    return [(0, path), (1, DivergentPath(path.pc, path.frame, Lanes(mask), path.turns))]


# --- the orders of schedules -------------------------------------------------------------------------


def first_warps(scheduler: Scheduler, geometry: Geometry) -> DivergentPath:
    """Choose the first warp of each CTA ahead of the others, until it has to wait."""

    def place(member: Member) -> tuple[int, int, tuple[int, int, int]]:
        team, path = member
        return path.turns // PATIENCE, team, in_program(path)

    return min(_members(scheduler, partial(_by_half, geometry.thread >= WARP)), key=place)[1]


class Drawn:
    """Teams that are drawn by lot, as is the team that gets ahead, and now and then any path; where there
    are few warps, any path at any time.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.second: Mask | None = None
        self.ahead = 0

    def __call__(self, scheduler: Scheduler, geometry: Geometry) -> DivergentPath:
        """Choose the next path; in step where the wave only went round, so that a livelock shows."""
        if scheduler.vain:
            return in_step(scheduler, geometry)
        if geometry.warps * geometry.grid[0] * geometry.grid[1] * geometry.grid[2] <= _FEW:
            return self._any_warp(scheduler)
        if self.second is None or self.random.random() < _ANEW:
            self.second = self._dealt(geometry)
        members = _members(scheduler, partial(_by_half, self.second))
        if len(members) == 1:
            return members[0][1]
        if self.random.random() < _ANY_PATH:
            return self.random.choice(members)[1]
        if self.random.random() < _TURNS:
            self.ahead = 1 - self.ahead
        team = [path for number, path in members if number == self.ahead]
        return self._merge_teams(scheduler, min(team or (path for _, path in members), key=in_program))

    def _merge_teams(self, scheduler: Scheduler, chosen: DivergentPath) -> DivergentPath:
        """Return the path, now and then with the lanes of the other team that stand at the same place."""
        for other in scheduler.paths:
            here = other.pc == chosen.pc and other.frame is chosen.frame
            if here and other is not chosen and self.random.random() < _TOGETHER:
                scheduler.paths = [path for path in scheduler.paths if path is not other]
                return join(chosen, other)
        return chosen

    def _any_warp(self, scheduler: Scheduler) -> DivergentPath:
        """Choose any warp, often with others at the same place; never all that run, for then none diverge."""
        chosen = self.random.choice(members := _members(scheduler, _by_warp))[1]
        here = [other for _, other in members if other.pc == chosen.pc and other.frame is chosen.frame]
        others = [other for other in here if other is not chosen]
        most = len(others) - (len(here) == len(members))
        if most > 0 and self.random.random() < _ALONG:
            along = self.random.sample(others, self.random.randint(1, most))
            chosen.lanes = Lanes(np.logical_or.reduce([other.lanes.mask for other in (chosen, *along)]))
            scheduler.paths = [other for other in scheduler.paths if other not in along]
        return chosen

    def _dealt(self, geometry: Geometry) -> Mask:
        """Return half of the warps of each CTA, dealt out like cards to the two teams, CTA after CTA."""
        second = np.zeros((len(geometry.ctas), geometry.warps), np.bool_)
        dealt = self.random.randrange(2)
        for cta in self.random.sample(range(len(second)), len(second)):
            order = self.random.sample(range(geometry.warps), geometry.warps)
            second[cta, order[dealt::2]] = True
            dealt = (dealt + geometry.warps) % 2
        return np.repeat(second.reshape(-1), WARP)
