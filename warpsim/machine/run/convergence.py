"""Statements that lanes of a warp, or of a warpgroup, execute together: which must stand there, which wait.

A lane names members of its warp by a mask. It executes when every member that has not exited stands at the
same statement of the same frame and names the same members; until then it waits. Lanes that wait for lanes
that never come end in a deadlock, which says so. Knows masks and paths; not what a statement does.

PTX ISA 9.1, section 9.7.9: a thread waits "until all non-exited threads corresponding to membermask have
executed" it "with the same qualifiers and same membermask value". PTX does not ask that members stand at the
same statement; two that are spelled alike are not joined here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ...base.errors import UndefinedBehavior
from ...isa.warps import WARP, WARPGROUP
from ..state.lanes import DivergentPath, Lanes, Mask, Values
from ..state.side_tables import SideTable
from .barriers.waits import LaneWait
from .events import observers_of
from .wave import Wave

Act = Callable[[Wave, DivergentPath, Lanes], object]
GroupAct = Callable[[Wave, DivergentPath, Lanes, npt.NDArray[np.intp]], object]
EVERYONE = np.array(0xFFFF_FFFF, np.uint32)  # the members that statements of the whole warp name


def together(
    wave: Wave, path: DivergentPath, lanes: Lanes, members: Values, act: Act, *, exited: bool = True
) -> bool:
    """Do ``act(wave, path, ready)`` for the lanes whose members are all here; true where paths changed.

    ``members`` is uint32, a mask of its warp for each lane, or for all, shape (). Lanes that waited here
    are taken along; of warps (or groups) that are not complete, lanes wait. Raises UndefinedBehavior for a
    lane that is not a member of its own mask and, without ``exited``, for members that have exited.
    """
    whole = members is EVERYONE or (not members.ndim and members == EVERYONE)
    if whole and lanes.count == wave.alive and not wave.scheduler.waiting:
        _check_exited(wave, path, lanes, members, exited)
        observers_of(wave).met(wave, lanes, EVERYONE, False)
        act(wave, path, lanes)
        return False
    waited = _waiting_here(wave, path)
    here = lanes.mask | waited
    members = np.broadcast_to(members, here.shape)
    _check_members(wave, path, here, members)
    ready = _ready(wave, here, members)
    _regroup(wave, path, waited & ready, here & ~ready, members)
    if ready.any():
        now = Lanes(ready)
        _check_exited(wave, path, now, members, exited)
        observers_of(wave).met(wave, now, members, False)
        act(wave, path, now)
    return not path.lanes.count


def _no_members(wave: Wave) -> Values:
    return np.zeros(wave.lanes, np.uint32)


_MEMBERS = SideTable(_no_members)  # (lanes,): the members that each lane named when it last met others


def meet(wave: Wave, path: DivergentPath, lanes: Lanes, members: Values) -> bool:
    """Continue lanes when all their members stand at any statement that meets, with the same members.

    ``members`` as in ``together``; true where paths changed. Raises UndefinedBehavior for a lane
    outside its own mask.
    """
    if lanes.count == wave.alive and not members.ndim and members == EVERYONE:
        observers_of(wave).met(wave, lanes, members, True)
        return False
    known = _MEMBERS.of(wave)
    known[lanes.mask] = np.broadcast_to(members, lanes.mask.shape)[lanes.mask]
    _check_members(wave, path, lanes.mask, known)
    waits = ((other, other.waits) for other in wave.scheduler.waiting)
    halted = [other for other, wait in waits if isinstance(wait, LaneWait) and wait.anywhere]
    ready = _ready(wave, np.logical_or.reduce([lanes.mask, *(other.lanes.mask for other in halted)]), known)
    observers_of(wave).met(wave, Lanes(ready), known, True)
    for other in halted:
        wave.scheduler.release(other, ready)
    left = Lanes(lanes.mask & ~ready)
    if not left.count:
        return False
    return wave.scheduler.wait(
        path, left, LaneWait(names=_missing_members_text(wave, left.mask, known), anywhere=True), behind=False
    )


def warpgroups_together(wave: Wave, path: DivergentPath, lanes: Lanes, act: GroupAct) -> bool:
    """Do ``act(wave, path, ready, groups)`` for the warpgroups that are all here; true where paths changed.

    Lanes of others wait, and those that waited here are taken along. Raises UndefinedBehavior for a warpgroup
    some of whose threads have exited or were never started (PTX ISA 9.1, section 9.7.15: four contiguous
    warps, of which the first has a rank that is a multiple of 4).
    """
    places = Warpgroups.of(wave)
    if lanes.whole and lanes.count == wave.alive and places.complete:  # nothing waits
        act(wave, path, lanes, places.groups)
        return False
    waited = _waiting_here(wave, path) if wave.scheduler.waiting else None
    here = lanes.mask if waited is None else lanes.mask | waited
    _check_whole(wave, path, here, places)
    present = places.counts(here) == WARPGROUP
    ready = here & present[places.number]
    if waited is not None or int(np.count_nonzero(ready)) != lanes.count:
        left = here & ~ready
        wait = LaneWait(names=_absent_warps_text(wave, left, places)) if left.any() else None
        _part(wave, path, here & ~lanes.mask & ready, left, wait)
    if ready.any():
        act(wave, path, Lanes(ready), np.flatnonzero(present))
    return not path.lanes.count


class Warpgroups:
    """The warpgroups of a wave: ``number`` (lanes,) of each lane, ``first`` (groups,) the first lane of each,
    ``warps`` (groups,) its first warp. Those at the end of a CTA may lack lanes."""

    def __init__(self, wave: Wave) -> None:
        of_cta = -(-wave.warps * WARP // WARPGROUP)
        self.number = wave.cta * of_cta + wave.thread // WARPGROUP
        self.first = np.searchsorted(self.number, np.arange(len(wave.ctas) * of_cta))
        self.groups = np.arange(len(self.first))
        self.warps = self.first // WARP
        self.cta = wave.cta[self.first]
        self.complete = wave.warps * WARP % WARPGROUP == 0
        self._whole = Lanes(np.ones(wave.lanes, np.bool_))

    @classmethod
    def of(cls, wave: Wave) -> Warpgroups:
        """Return the warpgroups of a wave, made once."""
        return _WARPGROUPS.of(wave)

    def counts(self, mask: Mask) -> npt.NDArray[np.int64]:
        """Count ``(groups,)`` how many lanes of each are in a mask."""
        return np.add.reduceat(mask, self.first, dtype=np.int64)

    def lanes_of(self, groups: npt.NDArray[np.intp]) -> Lanes:
        """Return the lanes of some warpgroups, each of them named once."""
        if len(groups) == len(self.first):
            return self._whole
        chosen = np.zeros(len(self.first), np.bool_)
        chosen[groups] = True
        return Lanes(chosen[self.number])

    def members(self, groups: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
        """Return ``(groups, 4)``: the warps of some warpgroups."""
        first: npt.NDArray[np.int64] = self.warps[groups]
        return first[:, None] + np.arange(WARPGROUP // WARP)

    def place(self, wave: Wave, group: int) -> str:
        """Return CTA and warpgroup in words."""
        cta = ", ".join(map(str, wave.ctas[self.cta[group]].tolist()))
        return f"CTA ({cta}), warpgroup {int(wave.thread[self.first[group]]) // WARPGROUP}"


_WARPGROUPS = SideTable(Warpgroups)


def _check_whole(wave: Wave, path: DivergentPath, here: Mask, places: Warpgroups) -> None:
    """Check that no thread of a warpgroup that is here has exited; raises UndefinedBehavior."""
    if wave.alive == wave.lanes and places.complete:
        return
    alive, touched = places.counts(wave.alive_mask), places.counts(here)
    short = np.flatnonzero((touched > 0) & (alive < WARPGROUP))
    if short.size:
        missing = WARPGROUP - int(alive[short[0]])
        statement = wave.code[path.pc].statement
        message = f"{missing} of the {WARPGROUP} threads of the warpgroup have exited, or were never started"
        text = f"{statement.mnemonic}: {message} [{places.place(wave, int(short[0]))}]"
        raise UndefinedBehavior(text, statement.location())


def _absent_warps_text(wave: Wave, left: Mask, places: Warpgroups) -> str:
    """Describe the warps that the first of some lanes waits for."""
    group = places.number[int(left.argmax())]
    gone = (places.number == group) & ~left
    warps = np.unique(wave.thread[gone] // WARP).tolist()
    return f"warp{'s' if len(warps) > 1 else ''} {', '.join(map(str, warps))} of its warpgroup"


def warps_of(mask: Mask) -> npt.NDArray[np.int64]:
    """Return the warps of which some lanes are in a mask."""
    return np.flatnonzero(mask.reshape(-1, WARP).any(axis=1))


def warps_by_cta(wave: Wave, mask: Mask) -> list[tuple[int, npt.NDArray[np.int64]]]:
    """Return the CTAs of lanes, each with the warps of these lanes."""
    warps = warps_of(mask)
    ctas = warps // wave.warps
    return [(cta, warps[ctas == cta]) for cta in np.unique(ctas).tolist()]


def warp_words(mask: Mask) -> npt.NDArray[np.uint32]:
    """Return (warps,): the lanes of a mask as a word for each warp, lane 0 lowest."""
    words: npt.NDArray[np.uint32] = np.packbits(mask.reshape(-1, WARP), axis=1, bitorder="little").view("<u4")
    return words[:, 0]


def lane_words(mask: Mask) -> npt.NDArray[np.uint32]:
    """Return (lanes,): for each lane, which lanes of its warp are in a mask."""
    return np.repeat(warp_words(mask), WARP)


def _waiting_here(wave: Wave, path: DivergentPath) -> Mask:
    """Lanes that wait at this statement of this frame."""
    mask = np.zeros(wave.lanes, np.bool_)
    for other in wave.scheduler.waiting:
        if _waits_at(other, path):
            mask |= other.lanes.mask
    return mask


def _waits_at(other: DivergentPath, path: DivergentPath) -> bool:
    here = other.pc == path.pc and other.frame is path.frame
    return here and isinstance(other.waits, LaneWait) and not other.waits.anywhere


def _ready(wave: Wave, here: Mask, members: Values) -> Mask:
    """Those of the lanes here whose members are here with the same members, or have exited."""
    ready = np.zeros_like(here)
    alive = lane_words(wave.alive_mask)
    for value in np.unique(members[here]):
        group = here & (members == value)
        ready |= group & (value & alive & ~lane_words(group) == 0)
    return ready


def _regroup(wave: Wave, path: DivergentPath, joining: Mask, left: Mask, members: Values) -> None:
    """Lanes that waited join the path; lanes that are not ready leave it, and wait together."""
    wait = LaneWait(names=_missing_members_text(wave, left, members)) if left.any() else None
    _part(wave, path, joining, left, wait)


def _part(wave: Wave, path: DivergentPath, joining: Mask, left: Mask, wait: LaneWait | None) -> None:
    """Lanes join the path, others leave it and wait, together with those that waited here before."""
    if joining.any() or wait is not None:
        wave.scheduler.waiting = [other for other in wave.scheduler.waiting if not _waits_at(other, path)]
        path.lanes = Lanes((path.lanes.mask | joining) & ~left)
    if wait is not None:
        halted = DivergentPath(path.pc, path.frame, Lanes(left), path.turns)
        halted.waits = wait
        wave.scheduler.waiting.append(halted)
    if not path.lanes.count:
        wave.scheduler.paths.remove(path)


def _missing_members_text(wave: Wave, left: Mask, members: Values) -> str:
    """Describe the members that the first of some lanes waits for."""
    first = int(left.argmax())
    group = left & (members == members[first])
    absent = int(members[first] & lane_words(wave.alive_mask & ~group)[first])
    return f"lanes {in_words(absent)} of its warp, members of its mask {int(members[first]):#x}"


def in_words(mask: int) -> str:
    """Write the bits of a mask as numbers: "0, 3, 8-15"."""
    runs = list[str]()
    bits = [bit for bit in range(WARP) if mask >> bit & 1]
    for start in (bit for bit in bits if bit - 1 not in bits):
        end = next(bit for bit in range(start, WARP) if bit + 1 not in bits)
        runs.append(str(start) if start == end else f"{start}-{end}")
    return ", ".join(runs)


def _check_members(wave: Wave, path: DivergentPath, here: Mask, members: Values) -> None:
    """Check that a lane is a member of its own mask; raises UndefinedBehavior."""
    own = np.uint32(1) << (np.arange(wave.lanes, dtype=np.uint32) & np.uint32(WARP - 1))
    outside = here & (members & own == 0)
    if outside.any():
        lane = int(outside.argmax())
        message = f"the lane is not a member of its own mask {int(members[lane]):#x}"
        raise _undefined(wave, path, lane, message)


def _check_exited(wave: Wave, path: DivergentPath, lanes: Lanes, members: Values, exited: bool) -> None:
    """Check, where a statement demands it, that no member has exited; raises UndefinedBehavior."""
    if exited or wave.alive == wave.lanes:
        return
    gone = np.where(lanes.mask, members & ~lane_words(wave.alive_mask), np.uint32(0))
    if gone.any():
        lane = int(gone.argmax())
        message = f"lanes {in_words(int(gone[lane]))} of the warp have exited, or were never started"
        raise _undefined(wave, path, lane, message)


def _undefined(wave: Wave, path: DivergentPath, lane: int, message: str) -> UndefinedBehavior:
    statement = wave.code[path.pc].statement
    text = f"{statement.mnemonic}: {message} [{wave.describe_lane(lane)}]"
    return UndefinedBehavior(text, statement.location())
