"""Requests that set breakpoints: of a source, of functions, and of data.

Each replaces those of its kind that were set before. What comes before the launch is kept for it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from ....base.errors import OperandError, WarpsimError
from ....observe.stops.expressions import parse_expression
from ....observe.stops.points import Breakpoint, Watchpoint, hit_condition
from ....observe.stops.stop_places import lines_with_statements
from ..commands.point_commands import add_breakpoint, add_watchpoint, check_condition
from ..session import Session
from .wire import Arguments

Point = Breakpoint | Watchpoint


class Points:
    """The points that a client has set, by kind: a source by its path, functions and data by their names."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self.first_line = 1
        self._points: dict[str, list[Point]] = {}
        self._asked: dict[str, Callable[[Session], Any]] = {}

    def take(self, session: Session) -> None:
        """Set in a session what was asked for before it."""
        self.session = session
        for ask in self._asked.values():
            ask(session)

    def _set(self, kind: str, wanted: list[Arguments], make: Callable[[Session, Arguments], Point]) -> Any:
        def ask(session: Session) -> Any:
            session.forget(self._points.pop(kind, []))
            points = self._points[kind] = []
            return {"breakpoints": [_answer(session, each, make, points) for each in wanted]}

        if self.session is None:
            self._asked[kind] = ask
            waiting = {"verified": False, "message": "there is no launch yet"}
            return {"breakpoints": [waiting for _ in wanted]}
        return ask(self.session)

    # --- requests -------------------------------------------------------------------------------------

    def set_breakpoints(self, arguments: Arguments) -> Any:
        """Set the breakpoints of a source."""
        source = arguments.part("source")
        path = source.given.get("path") or source.given.get("name")
        if not isinstance(path, str):
            raise OperandError("setBreakpoints: the source has no path")

        def make(session: Session, wanted: Arguments) -> Point:
            line = wanted.number("line") + 1 - self.first_line
            line = _next_line(session, path, line)
            try:
                return add_breakpoint(session, f"{path}:{line}")
            except OperandError:
                return add_breakpoint(session, f"{PurePath(path).name}:{line}")

        return self._set(f"source {path}", arguments.parts("breakpoints"), make)

    def set_function_breakpoints(self, arguments: Arguments) -> Any:
        """Set breakpoints of functions, or of what break takes: ``mnemonic mma``."""
        return self._set(
            "functions",
            arguments.parts("breakpoints"),
            lambda session, wanted: add_breakpoint(session, wanted.text("name")),
        )

    def set_data_breakpoints(self, arguments: Arguments) -> Any:
        """Watch registers and addresses."""
        return self._set(
            "data",
            arguments.parts("breakpoints"),
            lambda session, wanted: add_watchpoint(session, wanted.text("dataId")),
        )

    def set_exception_breakpoints(self, arguments: Arguments) -> Any:
        """Set nothing: findings of checks always stop."""
        return {"breakpoints": []}


def _next_line(session: Session, path: str, line: int) -> int:
    """Return the first line of a file, from a line on, that statements come from; the line without any."""
    name = PurePath(path).name
    session.module.bind()
    known = (at for file, at in lines_with_statements(session.module) if PurePath(file).name == name)
    return min((at for at in known if at >= line), default=line)


def _answer(
    session: Session, wanted: Arguments, make: Callable[[Session, Arguments], Point], points: list[Point]
) -> Any:
    """Set a point; return what the client is answered."""
    point: Point | None = None
    try:
        condition = wanted.text("condition", default="").strip()
        hits = wanted.text("hitCondition", default="").strip()
        counted = hit_condition(hits) if hits else None
        parsed = parse_expression(condition) if condition else None
        point = make(session, wanted)
        if isinstance(point, Breakpoint):
            check_condition(session, point.place.pcs, parsed)
        point.condition = parsed
        if isinstance(point, Breakpoint):
            point.counted = counted
            point.log = wanted.text("logMessage", default="") or None
    except WarpsimError as error:
        if point is not None:
            session.forget([point])
        return {"verified": False, "message": error.message}
    points.append(point)
    return {"id": point.number, "verified": True, **_line(session, point)}


def _line(session: Session, point: Point) -> dict[str, int]:
    """Return the line that a breakpoint stops at."""
    if not isinstance(point, Breakpoint) or not point.place.pcs:
        return {}
    line = point.place.text.rpartition(":")[2]
    return {"line": int(line)} if line.isdigit() else {}
