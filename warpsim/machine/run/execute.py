"""The execution of a wave: statement by statement, until all lanes have exited or a limit is reached.

The path with the lowest program counter runs first, unless the schedule has another order, so divergent paths
converge without a reconvergence stack. A path that only repeats a loop yields to the others, so that no lane
waits forever for lanes that could run (PTX ISA 9.1, section 3.1 "independent thread scheduling"). The text
does not say whether a kernel ends: loops that change nothing are a livelock (livelock.py), all others may
execute a limited number of statements. Does not know what statements do.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...base.errors import Deadlock, Fault, OperandError, WarpsimError
from ...isa.warps import WARP
from ..state.lanes import DivergentPath, Lanes
from ..state.spaces import InvalidAccess
from .asynchronous import ASYNCHRONY, finish_all
from .barriers.cta_barriers import Barriers
from .barriers.waits import LaneWait, waiting_record
from .basic_blocks import HOT, begin_block, begin_mma_batch
from .events import observers_of
from .wave import Record, Wave, bind_from

_VAIN = 4096  # rounds of loops without a store, after which other waves get their turn
_BETWEEN = 2048  # statements between two looks, at least
OF_A_WAVE = 1_000_000_000  # statements without a stated limit: a quarter of an hour or more


def run(wave: Wave, budget: int | None = None, look: Callable[[], None] | None = None) -> bool:
    """Execute until every lane has exited, or ``budget`` statements; return whether all have exited.

    With a budget, a wave that only repeats loops stops early: it may wait for another wave. ``look`` is
    called now and then.
    Raises Fault (deadlock, trespass) and what statements raise, pointing at the statement.
    """
    scheduler, asynchrony = wave.scheduler, ASYNCHRONY.of(wave)
    end = None if budget is None else scheduler.statements + budget
    due = scheduler.statements
    while scheduler.paths or (scheduler.waiting and asynchrony.resolve_stall(wave)):
        if end is not None and (scheduler.statements >= end or scheduler.rounds >= _VAIN):
            scheduler.vain, scheduler.rounds = scheduler.rounds >= _VAIN, 0
            return False
        if look is not None and scheduler.statements >= due:
            look()
            due = scheduler.statements + _BETWEEN
        if scheduler.paths:
            _advance(wave, scheduler.order(scheduler, wave.geometry))
        if asynchrony.flying:
            asynchrony.pass_time(wave)
    if scheduler.waiting:
        raise _deadlock(wave)
    if asynchrony.flying:
        finish_all(wave)
    return True


def _advance(wave: Wave, path: DivergentPath) -> None:
    """Execute statements until paths change, or this path reaches another."""
    code, scheduler, compiled = wave.code, wave.scheduler, wave.compiled
    others = [other.pc for other in scheduler.paths if other is not path and other.frame is path.frame]
    stop = min((pc for pc in others if pc > path.pc), default=-1)
    record = code[path.pc]
    try:
        while True:
            pc = path.pc
            record = code[pc]
            if compiled and record.basic_block is not None and record.basic_block.run(wave, path, stop):
                if path.pc == stop:
                    return
                continue
            times = scheduler.singles[pc] + 1
            if times == 1 and _first(wave, pc):
                continue
            scheduler.statements += 1
            scheduler.singles[pc] = times
            if times == HOT and compiled:
                begin_block(wave.entry, pc)
            lanes: Lanes | None = path.lanes
            if record.guard >= 0:
                lanes = _guarded(wave, path, record)
            if lanes is not None and record.step(wave, path, lanes):
                return
            path.pc += 1
            if path.pc == stop:
                return
    except InvalidAccess as invalid:
        raise wave.trespass(record, invalid) from None
    except WarpsimError as error:
        if error.location is None:
            error.at(record.statement.location())
        raise


def _first(wave: Wave, pc: int) -> bool:
    """Bind a statement that is executed for the first time; return whether a run of members begins there."""
    if not wave.code[pc].bound:
        bind_from(wave.code, pc)
    return wave.compiled and begin_mma_batch(wave.entry, pc)


def _guarded(wave: Wave, path: DivergentPath, record: Record) -> Lanes | None:
    """Return the lanes of a path whose guard holds; None for none."""
    value = wave.read(path, record.guard)
    mask = path.lanes.mask & (~value if record.negated else value)
    count = int(np.count_nonzero(mask))
    if count == path.lanes.count:
        return path.lanes
    return Lanes(mask) if count else None


# --- lanes that leave a function or exit ------------------------------------------------------------------


def resume(wave: Wave, path: DivergentPath, lanes: Lanes) -> bool:
    """Return some lanes to their caller; the return of the kernel itself is its exit."""
    frame = path.frame
    if frame.caller is None:
        return retire(wave, path, lanes)
    if frame.leave is not None:
        frame.leave(wave, lanes)
    frame.lanes -= lanes.count
    wave.scheduler.leave(path, lanes)
    wave.scheduler.paths.append(DivergentPath(frame.resume, frame.caller, lanes))
    return True


def retire(wave: Wave, path: DivergentPath, lanes: Lanes) -> bool:
    """Retire lanes that exit; barriers that lacked these lanes only are complete."""
    wave.scheduler.leave(path, lanes)
    wave.alive -= lanes.count
    wave.alive_mask = wave.alive_mask & ~lanes.mask
    wave.alive_of_cta -= wave.count_of(lanes)
    observers_of(wave).exit(wave, path, lanes)
    for look in wave.leaving:
        look(wave, lanes)
    Barriers.of(wave).look_again(wave)
    _look_again(wave, lanes)
    return True


def _look_again(wave: Wave, exited: Lanes) -> None:
    """Wake lanes that wait for others of their warps, some of which have exited, to count them again."""
    reasons = {path.waits for path in wave.scheduler.waiting if isinstance(path.waits, LaneWait)}
    if reasons:
        warps = exited.mask.reshape(-1, WARP).any(axis=1)
        for reason in reasons:
            wave.scheduler.wake(reason, np.repeat(warps, WARP))


# --- what does not end ------------------------------------------------------------------------------------


def _deadlock(wave: Wave) -> Fault:
    """Return the error of a deadlock: which lanes wait, at which statement and for what."""
    lines, waiting = list[str](), wave.scheduler.waiting
    places = [waiting_record(wave, path).statement.location() for path in waiting]
    for path, place in zip(waiting, places, strict=True):
        explain = getattr(path.waits, "explain", None)
        reason = explain(wave, path) if explain else path.waits
        lines.append(f"{wave.describe_lanes(path.lanes)} at {place} for {reason}")
    counts = ", ".join(Barriers.of(wave).counts(wave, int(wave.cta[waiting[0].lanes.index[0]])))
    detail = f" ({counts})" if counts else ""
    return Deadlock(f"deadlock: no lane can continue{detail}; waiting: " + "; ".join(lines), places[0])


def checked(most: object) -> int | None:
    """Return the statements that a launch may execute, None for the default; raises OperandError."""
    if most is None:
        return None
    if isinstance(most, bool) or not isinstance(most, int | np.integer) or most < 1:
        raise OperandError(f"most_statements={most!r}: expected a positive integer, or None")
    return int(most)


class Allowance:
    """The statements that are left: of all waves together where a launch states them, else of each wave.

    A statement counts once for all lanes of a wave that execute it together.
    """

    def __init__(self, most: int | None, look: Callable[[], None] | None = None) -> None:
        self._most, self._look = most, look
        self._left, self._spent = most, 0

    def run(self, wave: Wave, turn: int) -> bool:
        """Execute at most ``turn`` statements of a wave; return whether it has ended.

        Raises Fault when none is left. Errors say how many were executed.
        """
        left = OF_A_WAVE - wave.scheduler.statements if self._left is None else self._left
        before = wave.scheduler.statements
        try:
            ended = run(wave, min(turn, left), self._look)
            if not ended and wave.scheduler.statements - before >= left:
                raise _endless(wave, self._most)
        except WarpsimError as error:
            error.executed = self._spent + wave.scheduler.statements - before
            raise
        spent = wave.scheduler.statements - before
        self._spent += spent
        if self._left is not None:
            self._left -= spent
        return ended


def _endless(wave: Wave, most: int | None) -> Fault:
    """Return the error of a launch that does not end: where its lanes are, what was executed most often."""
    most_often = int(np.argmax(wave.scheduler.counts))
    often = wave.code[most_often].statement
    path = min(
        (*wave.scheduler.paths, *wave.scheduler.waiting), key=lambda path: (path.waits is not None, path.pc)
    )
    record = waiting_record(wave, path) if path.waits else wave.code[path.pc]
    place = record.statement.location()
    whose = "of CTAs that run together" if most is None else "of the launch"
    return Fault(
        f"not ended after {OF_A_WAVE if most is None else most:,} statements {whose}: "
        f"{wave.describe_lanes(path.lanes)} at line {place.line}; line {often.location().line}, "
        f"{often.mnemonic}, was executed {wave.scheduler.counts[most_often]:,} times; "
        "most_statements, or --limit, allows more",
        often.location(),
    )
