"""Commands that set and delete what a session stops at."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ....base.errors import OperandError
from ....isa.numerals import whole_number
from ....machine.bind.scope import RegisterName
from ....observe.stops.contexts import check_names
from ....observe.stops.expressions import Expression, parse_expression
from ....observe.stops.points import Breakpoint, MemoryWatch, RegisterWatch, Watchpoint, lanes_of_warp
from ....observe.stops.stop_places import lines_with_statements, place_of
from ....ptx.symbols import shown
from ....workbench.debugger.addresses import area_of

if TYPE_CHECKING:
    from ....workbench.debugger.travel import Travel

_CONDITION = re.compile(r"(?:^|\s)if(?:\s+(.*))?$")


def conditioned(text: str) -> tuple[str, Expression | None]:
    """Return a text without its condition, and the condition. Raises OperandError."""
    match = _CONDITION.search(text)
    if match is None:
        return text.strip(), None
    if not match[1]:
        raise OperandError("if what? An expression, as in lane == 5 or %r3 > 100")
    return text[: match.start()].strip(), parse_expression(match[1])


def add_breakpoint(session: Travel, text: str, *, temporary: bool = False) -> Breakpoint:
    """Set a breakpoint and return it. Raises OperandError."""
    place, condition = conditioned(text)
    session.module.bind()
    if not place:
        raise OperandError("break where? A line, as in gemm.cu:153 or 120, a function, or mnemonic mma")
    found = place_of(session.module, place, session.place())
    check_condition(session, found.pcs, condition)
    session.numbers += 1
    point = Breakpoint(number=session.numbers, place=found, condition=condition, temporary=temporary)
    session.breakpoints.append(point)
    return point


def check_condition(session: Travel, pcs: Iterable[int], condition: Expression | None) -> None:
    """Raise OperandError for a condition with a name that none of some statements knows."""
    if condition is not None:
        scopes = [session.module.code[pc].scope for pc in sorted(pcs)]
        check_names(condition.names, scopes, session.kernel.entry, session.recipe.symbols)


def break_(session: Travel, text: str) -> str:
    """Set a breakpoint."""
    return _point_text(session, add_breakpoint(session, text))


def tbreak(session: Travel, text: str) -> str:
    """Set a breakpoint for one stop."""
    return _point_text(session, add_breakpoint(session, text, temporary=True))


def _point_text(session: Travel, point: Breakpoint) -> str:
    records = [session.module.code[pc].statement for pc in sorted(point.place.pcs)]
    lines = [str(statement.location().line) for statement in records]
    shown_lines = ", ".join(lines[:_SHOWN]) + (
        f" and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    )
    what = f"{len(lines)} statements, lines" if len(lines) > 1 else "line"
    return f"{point}: {what} {shown_lines} of the PTX"


_SHOWN = 6


def watch(session: Travel, text: str) -> str:
    """Watch a register or bytes."""
    return str(add_watchpoint(session, text))


def add_watchpoint(session: Travel, text: str) -> Watchpoint:
    """Watch a register or bytes, and return the point. Raises OperandError."""
    what, condition = conditioned(text)
    if not what:
        raise OperandError("watch what? A register, as in %r5, or bytes, as in shared+0x400 or arg2[3,5]")
    if session.execution is None:
        session.start()
    session.numbers += 1
    try:
        point = _register(session, what, condition) or _memory(session, what, condition)
    except OperandError:
        session.numbers -= 1
        raise
    session.watch(point)
    return point


def _register(session: Travel, name: str, condition: Expression | None) -> Watchpoint | None:
    number, wave, lane = session.wave()
    try:
        here = session.standing()
    except OperandError:  # the launch has ended, or the lane
        if name.startswith("%"):
            raise
        return None
    meaning = here.record.scope.find(name) if here.record.scope else None
    if not isinstance(meaning, RegisterName):
        if name.startswith("%"):
            session.at().named(name)  # raises, unless it is a special register
            raise OperandError(f"{name} is a special register: it is never written")
        return None
    return RegisterWatch(
        number=session.numbers,
        text=f"{name} in CTA ({', '.join(map(str, session.focus.cta))}), warp {session.focus.warp}",
        condition=condition,
        wave=number,
        function=here.frame.function,
        register=meaning.number,
        lanes=lanes_of_warp(wave, lane // 32),
        type=meaning.type,
    )


def _memory(session: Travel, text: str, condition: Expression | None) -> Watchpoint:
    area, kind = area_of(session, text)
    return MemoryWatch(number=session.numbers, text=text, condition=condition, area=area, type=kind)


def points_of(session: Travel) -> list[Breakpoint | Watchpoint]:
    """Return all points."""
    return [*session.breakpoints, *session.watchpoints]


def _numbered(session: Travel, text: str) -> Iterator[Breakpoint | Watchpoint]:
    known = {point.number: point for point in points_of(session)}
    for word in text.split():
        point = known.get(whole_number(word) or 0)
        if point is None:
            numbers = ", ".join(map(str, known)) or "none"
            raise OperandError(f"{word} is not a breakpoint or watchpoint; there are {numbers}")
        yield point


def delete(session: Travel, text: str) -> str:
    """Delete points."""
    gone = [*_numbered(session, text)] if text else points_of(session)
    session.forget(gone)
    return f"deleted: {', '.join(str(point.number) for point in gone) or 'nothing'}"


def enable(session: Travel, text: str) -> str:
    """Let points stop again."""
    return _enabled(session, text, wanted=True)


def disable(session: Travel, text: str) -> str:
    """Let points stop no more."""
    return _enabled(session, text, wanted=False)


def _enabled(session: Travel, text: str, *, wanted: bool) -> str:
    points = [*_numbered(session, text)]
    if not points:
        raise OperandError("which? Give the numbers that info breakpoints lists")
    for point in points:
        point.enabled = wanted
    return f"{'enabled' if wanted else 'disabled'}: {', '.join(str(point.number) for point in points)}"


def ignore(session: Travel, text: str) -> str:
    """Pass over hits of a breakpoint."""
    number, _, count_text = text.partition(" ")
    count = whole_number(count_text.strip())
    if count is None:
        raise OperandError("ignore takes the number of a breakpoint and a count, as in ignore 1 10")
    for point in _numbered(session, number):
        if not isinstance(point, Breakpoint):
            raise OperandError(f"{number} is a watchpoint: a condition chooses its stops")
        point.ignore = point.hits + count
    return f"the next {count} hits of {number} are passed over"


def places(session: Travel) -> Iterator[str]:
    """Yield what break may complete."""
    yield from ("kernel", "mnemonic")
    yield from (shown(name) for name in session.module.functions)
    yield from (f"{file.rpartition('/')[2]}:{line}" for file, line in lines_with_statements(session.module))
