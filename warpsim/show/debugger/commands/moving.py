"""Commands that move in time, and what is printed where they stop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ....base.errors import OperandError, inline_stack
from ....isa.numerals import whole_number
from ....observe.stops.points import Change, RegisterWatch, Stop
from ....observe.stops.stop_places import line_name, place_of
from ....observe.stops.values import shown
from ....workbench.debugger.stepping import Unit, advancing, finishing, reaching, stepping
from .results import result_lines

if TYPE_CHECKING:
    from ....workbench.debugger.travel import Travel

_MOST = 1_000_000  # steps of a command
_LONGEST = 110  # characters of a statement


def count_of(text: str) -> int:
    """Return how often a command is repeated. Raises OperandError."""
    count = 1 if not text else whole_number(text)
    if not count or count > _MOST:
        raise OperandError(f"{text}: expected how often, from 1 to {_MOST:,}")
    return count


def _nothing(text: str, name: str) -> None:
    if text:
        raise OperandError(f"{name} takes nothing: {text}")


def _begun(session: Travel) -> None:
    if session.execution is None:
        raise OperandError("the kernel is not running: run, or start, begins the launch")


# --- forwards ---------------------------------------------------------------------------------------


def run(session: Travel, text: str) -> str:
    """Begin the launch again and go to the first stop."""
    _nothing(text, "run")
    session.begin()
    return stop_text(session, session.forward())


def start(session: Travel, text: str) -> str:
    """Begin the launch again."""
    _nothing(text, "start")
    return stop_text(session, session.start())


def continue_(session: Travel, text: str) -> str:
    """Go on to the next stop."""
    _begun(session)
    count = count_of(text)
    stop = session.forward()
    for _ in range(count - 1):
        if stop.kind in ("end", "error", "interrupt"):
            break
        stop = session.forward()
    return stop_text(session, stop)


def step(session: Travel, text: str, *, unit: Unit, over: bool) -> str:
    """Go on to another line or statement; ``over`` passes over functions that are called."""
    if session.execution is None:
        session.start()
    count = count_of(text)
    for _ in range(count):  # what stops a step earlier ends it
        stop = session.forward(stepping(session.origin(), unit, session.line_of, over=over))
        if stop.kind != "step":
            break
    return stop_text(session, stop)


def finish(session: Travel, text: str) -> str:
    """Go on until the function returns."""
    _nothing(text, "finish")
    _begun(session)
    return stop_text(session, session.forward(finishing(session.origin())))


def until(session: Travel, text: str) -> str:
    """Go on behind a loop, or to a place."""
    _begun(session)
    origin = session.origin()
    if not text:
        return stop_text(session, session.forward(advancing(origin)))
    place = place_of(session.module, text, session.place())
    return stop_text(session, session.forward(reaching(origin, place.pcs)))


def goto(session: Travel, text: str) -> str:
    """Go to a position in time."""
    time = whole_number(text, 1 << 40)
    if time is None:
        raise OperandError(f"goto {text}: expected a position in time, a count of statements")
    return stop_text(session, session.go_to(time))


# --- backwards --------------------------------------------------------------------------------------


def reverse_continue(session: Travel, text: str) -> str:
    """Go back to the last stop."""
    _begun(session)
    count = count_of(text)
    stop = session.backward()
    for _ in range(count - 1):
        if stop.kind in ("start", "interrupt"):
            break
        stop = session.backward()
    return stop_text(session, stop)


def reverse_step(session: Travel, text: str, *, unit: Unit, over: bool) -> str:
    """Go back to where a line begins, or by a statement."""
    _begun(session)
    return stop_text(session, session.back(unit, over=over, count=count_of(text)))


def reverse_finish(session: Travel, text: str) -> str:
    """Go back to the call of the function."""
    _nothing(text, "reverse-finish")
    _begun(session)
    return stop_text(session, session.back_to_call())


# --- what is printed --------------------------------------------------------------------------------


def stop_text(session: Travel, stop: Stop) -> str:
    """Return why the launch has stopped, and where."""
    return "\n".join(_lines(session, stop))


def _lines(session: Travel, stop: Stop) -> Iterator[str]:
    if stop.hit is not None:
        yield f"{stop.hit.point}, {_lanes(session, stop.hit.lanes)}"
    for change in stop.changes:
        yield from change_lines(session, change)
    if stop.finding is not None:
        yield str(stop.finding)
    if stop.error is not None:
        yield f"the launch ends with an error:\n{stop.error}"
    if stop.kind == "interrupt":
        yield "interrupted"
    if stop.kind == "start":
        yield "the launch begins"
    if stop.kind == "end":
        yield from result_lines(session)
        return
    yield from where_lines(session)


def where_lines(session: Travel) -> Iterator[str]:
    """Yield where the session stands: time, focus, and the statement of the focus."""
    if session.execution is None:
        yield "the kernel is not running: run, or start, begins the launch"
        return
    yield f"time {session.time}, {session.focus}"
    try:
        here = session.standing()
    except OperandError as error:
        yield error.message
        return
    location = here.record.statement.location()
    yield f"{line_name(location)}: {_cut(str(here.record.statement))}"
    for source in inline_stack(location.source):
        if source.text.strip():
            yield f"  {source.line:>5}  {source.text.rstrip()}"
    if here.waits is not None:
        yield f"  the lane waits for {here.waits}"
    elif session.moment is not None and session.moment.path is not here.path:
        yield "  other lanes are executed next"
    elif session.moment is not None and not session.moment.lanes.mask[here.lane]:
        yield "  the guard does not hold in this lane"


def _cut(text: str) -> str:
    """Return a statement, without the middle of many operands."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 30]} ... {text[-25:]}"


def _lanes(session: Travel, mask: object) -> str:
    """Return how many lanes have come to a breakpoint, and where they are."""
    lanes = np.flatnonzero(np.asarray(mask))
    warps = np.unique(lanes // 32)
    count = f"{len(lanes)} lane{'s'[: len(lanes) != 1]}"
    return f"{count} of {len(warps)} warp{'s'[: len(warps) != 1]}"


def change_lines(session: Travel, change: Change) -> Iterator[str]:
    """Yield what a statement has written to what is watched."""
    kind = change.point.type if isinstance(change.point, RegisterWatch) else getattr(change.point, "type", "")
    execution = session.execution
    wave = None if execution is None else execution.waves[change.number]
    statement = session.module.code[change.pc].statement
    yield f"{change.point}"
    yield f"  before: {shown_bytes(change.before, kind)}"
    if change.after is not None:
        yield f"  after:  {shown_bytes(change.after, kind)}"
    whose = "" if wave is None else f" by {wave.describe_lane(change.lanes[0])}"
    more = len(change.lanes) - 1
    others = f" and {more} more" if more > 0 else ""
    place = line_name(statement.location())
    if change.copy is not None:
        place = line_name(change.copy.record.statement.location())
        what = f"a {change.copy.kind} issued at {place}, which completes here"
        yield f"  written{whose}: {what}, time {change.time}"
    else:
        yield f"  written{whose}{others} at {place}, time {change.time}: {_cut(str(statement))}"


def shown_bytes(word: object, kind: str) -> str:
    """Return a word, or bytes, as text."""
    return word.hex(" ") if isinstance(word, bytes) else shown(word, kind)
