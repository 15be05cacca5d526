"""Commands about calls: ``backtrace``, and ``frame``, ``up`` and ``down``, which choose whose registers are
looked at.

Knows calls; does not know values.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING

from ....base.errors import OperandError
from ....isa.numerals import whole_number
from ....observe.stops.stop_places import line_name
from ....workbench.debugger.call_frames import Call

if TYPE_CHECKING:
    from ....workbench.debugger.travel import Travel

_MOST = 1_000_000  # calls that up and down pass


def backtrace(session: Travel, text: str) -> str:
    """Print the calls around the statement of the focus; * is the call that is looked at."""
    if text:
        raise OperandError(f"backtrace takes nothing: {text}")
    level = session.level()
    return "\n".join(
        line
        for depth, calls in enumerate(session.frames())
        for line in _call_lines(depth, calls, marked=bool(level) and depth == level)
    )


def _call_lines(depth: int, calls: list[Call], *, marked: bool) -> Iterator[str]:
    """Yield a call, and those that a compiler has inlined into it."""
    name = calls[0].name.removeprefix("inlined in ")
    yield f"#{depth}{'*' if marked else ''} {name} at {line_name(calls[0].location)}"
    for call in calls[1:]:
        assert call.source is not None
        yield f"  inlined at {PurePath(call.source.file).name}:{call.source.line}"


def frame(session: Travel, text: str) -> str:
    """Look at a call, by its number in backtrace; without a number print which is looked at."""
    if not text:
        return _looked_at(session)
    number, count = whole_number(text), len(session.frames())
    if number is None or number >= count:
        raise OperandError(f"frame {text}: expected a number of backtrace, from 0 to {count - 1}")
    return _move_to_frame(session, number)


def up(session: Travel, text: str) -> str:
    """Look at the caller."""
    return _by(session, text, 1)


def down(session: Travel, text: str) -> str:
    """Look at what is called."""
    return _by(session, text, -1)


def _by(session: Travel, text: str, sign: int) -> str:
    count = 1 if not text else whole_number(text)
    if not count or count > _MOST:
        raise OperandError(f"{text}: expected how many calls, from 1 to {_MOST:,}")
    wanted, last = session.level() + sign * count, len(session.frames()) - 1
    if not 0 <= wanted <= last:
        raise OperandError(f"there is no call {'above' if sign > 0 else 'below'} this; backtrace prints all")
    return _move_to_frame(session, wanted)


def _move_to_frame(session: Travel, level: int) -> str:
    session.look_at_frame(level)
    return _looked_at(session)


def _looked_at(session: Travel) -> str:
    level = session.level()
    call = session.frames()[level][0]
    lines = [*_call_lines(level, [call], marked=False)]
    if call.source is not None and call.source.text.strip():
        lines.append(f"  {call.source.line:>5}  {call.source.text.rstrip()}")
    return "\n".join(lines)
