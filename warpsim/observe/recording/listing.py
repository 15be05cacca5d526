"""The part of the sources that matrix instructions come from, with the statements of each line.

Knows statements and their lines; reads files as the module does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...base.errors import inline_stack

if TYPE_CHECKING:
    from ...machine.run.wave import Record
    from .recorder import LaunchEvent

AROUND = 3  # lines before and after each
MOST_STATEMENTS = 64  # of a line
MOST_LINES = 1000  # of a listing
Place = tuple[str, int]


@dataclass(frozen=True, kw_only=True)
class ListedLine:
    """A line of a source: its text, "" where it is not known, and lines and texts of its PTX statements.

    ``more`` statements of it are left out.
    """

    file: str
    line: int
    text: str
    statements: tuple[tuple[int, str], ...] = ()
    more: int = 0


def listing_of(code: Sequence[Record], events: Sequence[LaunchEvent]) -> tuple[ListedLine, ...]:
    """Return the lines that events come from, their calls, and lines around them; by file and line."""
    wanted = _around({(each.file, each.line) for event in events for each in inline_stack(event.source)})
    texts, statements = dict[Place, str](), dict[Place, dict[tuple[int, str], None]]()
    for record in code if wanted else ():
        place = record.statement.location()
        for each in inline_stack(place.source):
            texts.setdefault((each.file, each.line), each.text)
        if place.source is not None and (own := (place.source.file, place.source.line)) in wanted:
            statements.setdefault(own, {})[place.line, str(record.statement)] = None
    found = list[ListedLine]()
    for file, line in wanted[:MOST_LINES]:
        known = list(statements.get((file, line), ()))
        text = texts.get((file, line)) or _text(code, file, line)
        if text.strip() or known:
            shown = tuple(known[:MOST_STATEMENTS])
            more = len(known) - len(shown)
            found.append(ListedLine(file=file, line=line, text=text, statements=shown, more=more))
    return tuple(found)


def _around(places: set[Place]) -> list[Place]:
    """Return places and their neighbours, in order."""
    near = range(-AROUND, AROUND + 1)
    return sorted({(file, line + step) for file, line in places for step in near if line + step > 0})


def _text(code: Sequence[Record], file: str, line: int) -> str:
    """Return a line of a file that no statement comes from; "" where it cannot be read."""
    lines = code[0].statement.source.read(file)
    return lines[line - 1] if line <= len(lines) else ""
