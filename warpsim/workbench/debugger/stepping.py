"""When a step of a lane is over, forwards and backwards: by statement, by line, over calls, out of calls.

Forwards a step looks at each statement before it is executed, backwards it looks through the history. Knows
lines and depths of calls; does not know breakpoints.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ...observe.stops.points import Moment
from .history import Executed, History

Unit = Literal["statement", "line"]
Line = tuple[str, int]


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a step begins: a lane of wave number ``wave`` at a statement, ``depth`` calls deep."""

    wave: int
    lane: int
    pc: int
    depth: int
    line: Line


Done = Callable[[Moment], bool]


def _is_of(origin: Origin, moment: Moment) -> bool:
    return moment.number == origin.wave and bool(moment.path.lanes.mask[origin.lane])


def stepping(origin: Origin, unit: Unit, line_of: Callable[[int], Line], *, over: bool) -> Done:
    """Return when a step is over; ``over`` passes over functions that are called."""
    last = origin.pc

    def done(moment: Moment) -> bool:
        nonlocal last
        if not _is_of(origin, moment) or (over and moment.path.frame.depth > origin.depth):
            return False
        before, last = last, moment.pc
        if unit == "statement" or moment.path.frame.depth != origin.depth:
            return True
        return line_of(moment.pc) != origin.line or moment.pc <= before

    return done


def finishing(origin: Origin) -> Done:
    """Return when the lane has returned to its caller; of the kernel itself, never."""
    return lambda moment: _is_of(origin, moment) and moment.path.frame.depth < origin.depth


def advancing(origin: Origin) -> Done:
    """Return when the lane stands at a later statement: a loop is over."""
    return lambda moment: (
        _is_of(origin, moment) and moment.path.frame.depth <= origin.depth and moment.pc > origin.pc
    )


def reaching(origin: Origin, pcs: frozenset[int]) -> Done:
    """Return when the lane stands at any of some statements."""
    return lambda moment: _is_of(origin, moment) and moment.pc in pcs


# --- backwards ----------------------------------------------------------------------------------------


def step_back(
    history: History, origin: Origin, before: int, line_of: Callable[[int], Line], unit: Unit, *, over: bool
) -> int | None:
    """Return the time at which the step before this began; None where the lane had not begun.

    A step by line goes to where the line begins: this line, from its middle, else the line before.
    """
    found: Executed | None = None
    for executed in history.of_lane(origin.wave, origin.lane, before):
        if over and executed.depth > origin.depth:
            continue
        if unit == "statement":
            return executed.time
        if found is None:
            found = executed
        elif (line_of(executed.pc), executed.depth) != (
            line_of(found.pc),
            found.depth,
        ) or executed.pc >= found.pc:
            break
        else:
            found = executed
    return None if found is None else found.time


def call_before(history: History, origin: Origin, before: int) -> int | None:
    """Return the time of the call of the function that the lane is in; of the kernel, of its beginning."""
    first: int | None = None
    for executed in history.of_lane(origin.wave, origin.lane, before):
        if executed.depth < origin.depth:
            return executed.time
        first = executed.time
    return first
