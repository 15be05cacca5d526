"""Commands that print values, and the text around a statement."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ....base.errors import OperandError
from ....isa.numerals import whole_number
from ....isa.warps import WARP
from ....observe.stops.contexts import PLACES, names_in
from ....observe.stops.expressions import parse_expression
from ....observe.stops.stop_places import line_of
from ....observe.stops.values import Value, check_format, shown
from .fragment_commands import fragment
from .memory_commands import cells, is_cells, tile
from .moving import where_lines

if TYPE_CHECKING:
    from ....workbench.debugger.travel import Travel

_AROUND = 5  # lines before and after that list prints
_COLUMNS = 4  # lanes in a line


def print_(session: Travel, text: str) -> str:
    """Print the value of an expression."""
    letters, text = format_of(text)
    word, _, rest = text.partition(" ")
    if word == "fragment":
        return fragment(session, rest)
    if word == "tile":
        return tile(session, rest)
    if is_cells(text):
        return cells(session, text, letters)
    if not text:
        raise OperandError("print what? A register, as in %r5, an expression, fragment a, or tile")
    body, _, last = text.rpartition(" ")
    if last == "lanes" and body:
        return "\n".join(_lanes(session, body, letters))
    return f"{text} = {printed(session, text, letters)}"


def format_of(text: str) -> tuple[str, str]:
    """Return the format that a text begins with, as in /x %r5, and the rest. Raises OperandError."""
    if not text.startswith("/"):
        return "", text
    letters, _, rest = text[1:].partition(" ")
    return check_format(letters), rest.strip()


def printed(session: Travel, text: str, letters: str = "") -> str:
    """Return the value of an expression at the focus."""
    value, lane = session.evaluate(parse_expression(text))
    return shown(value.lane(lane), value.type, letters)


def value_at(session: Travel, text: str) -> tuple[Value, Any]:
    """Return the value of an expression, and its word at the focus."""
    value, lane = session.evaluate(parse_expression(text))
    return value, value.lane(lane)


def _lanes(session: Travel, text: str, letters: str) -> Iterator[str]:
    """Yield the value in all lanes of the warp; lanes that execute nothing now are among them."""
    value, lane = session.evaluate(parse_expression(text))
    first = lane // WARP * WARP
    cells = [
        f"{number:>2}: {shown(value.lane(first + number), value.type, letters)}" for number in range(WARP)
    ]
    width = max(map(len, cells))
    yield f"{text}, CTA ({', '.join(map(str, session.focus.cta))}), warp {session.focus.warp}:"
    for start in range(0, WARP, _COLUMNS):
        yield "  " + "  ".join(f"{cell:<{width}}" for cell in cells[start : start + _COLUMNS]).rstrip()


def names(session: Travel) -> Iterator[str]:
    """Yield what print may complete."""
    yield from ("fragment", "tile", *PLACES)
    place = session.moment
    if place is not None:
        yield from names_in(place.record.scope)


def where(session: Travel, text: str) -> str:
    """Print where the session stands."""
    return "\n".join(where_lines(session))


def list_(session: Travel, text: str) -> str:
    """Print lines of the source around the statement, or around a line."""
    here = session.at().record.statement.location() if session.level() else session.place()
    wanted = None
    if text:
        wanted = whole_number(text)
        if not wanted:
            raise OperandError(f"list {text}: expected a line")
    if here.source is not None:
        lines = source_text(here.source.file)
        if lines:
            return "\n".join(_around(lines, wanted or here.source.line, here.source.line))
    lines = session.module.program.source.text.split("\n")
    current = line_of(session.at().record) if session.moment is not None else here.line
    return "\n".join(_around(lines, wanted or here.line, current))


def source_text(file: str) -> list[str]:
    """Return the lines of a source; none where it cannot be read."""
    from ....programs.launch.loading import source_lines

    return [*source_lines(file)]


def _around(lines: list[str], line: int, current: int) -> Iterator[str]:
    if line > len(lines):
        raise OperandError(f"there are {len(lines)} lines")
    first = max(line - _AROUND, 1)
    for number in range(first, min(line + _AROUND, len(lines)) + 1):
        mark = "=>" if number == current else "  "
        yield f"{mark} {number:>5}  {lines[number - 1]}".rstrip()


# --- messages of breakpoints ------------------------------------------------------------

_BRACES = re.compile(r"\{([^{}]*)\}")


def filled(session: Travel, text: str) -> str:
    """Return a text with the values of its expressions; of those that have none, why."""

    def value(match: re.Match[str]) -> str:
        try:
            return printed(session, match[1])
        except OperandError as error:
            return f"<{error.message}>"

    return _BRACES.sub(value, text)
