"""Source lines of PTX statements, as ``.file`` and ``.loc`` give them (PTX ISA 9.1, section 11.5).

A ``.loc`` holds for every statement up to the next one of its function. Knows directives and offsets in a
text; does not read files: ``read`` gives the lines of a file.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property

from ..base.errors import SourceLine

__all__ = ["Reader", "SourceLines", "unread"]

Reader = Callable[[str], Sequence[str]]  # the lines of a file, none where it cannot be read

_BLANK = r"[ \t]+"
_PLACE = rf"(\d+){_BLANK}(\d+){_BLANK}(\d+)"
# Functions end the reach of a .loc, so their headers are found, too.
_MARK = re.compile(
    rf"^[ \t]*(?:\.loc{_BLANK}{_PLACE}(?:[^;\n]*?inlined_at{_BLANK}{_PLACE})?"
    r"|(?:\.(?:visible|weak|extern)[ \t]+)?\.(?:entry|func)\b)",
    re.MULTILINE | re.ASCII,
)
_FILE = re.compile(rf'^[ \t]*\.file{_BLANK}(\d+){_BLANK}"([^"\n]*)"', re.MULTILINE | re.ASCII)


def unread(file: str) -> Sequence[str]:
    """Read no file."""
    return ()


class SourceLines:
    """The lines that the statements of one text come from."""

    def __init__(self, text: str, read: Reader = unread) -> None:
        self._files = {int(number): file for number, file in _FILE.findall(text)}
        self._marks = list(_MARK.finditer(text)) if self._files else []
        self._starts = [match.start() for match in self._marks]
        self._read = read

    def at(self, offset: int) -> SourceLine | None:
        """Return the line of the statement at an offset; None where the compiler names none."""
        return self._at_mark(bisect_right(self._starts, offset) - 1)

    def _at_mark(self, number: int) -> SourceLine | None:
        """Return the line that a .loc names; None before the first of a text, or of a function."""
        if number < 0:
            return None
        own, call = self._marks[number].groups()[:3], self._marks[number].groups()[3:]
        if own[0] is None:  # the header of a function
            return None
        return self._line(own, None if call[0] is None else self._call(call, number))

    def _call(self, place: Sequence[str], number: int) -> SourceLine | None:
        """Return the line of a call: that of the latest .loc there, which may have been inlined itself."""
        known = self._inlined_calls.get(tuple(place), [])
        latest = bisect_right(known, number - 1) - 1
        if latest < 0 or bisect_right(self._headers, known[latest]) != bisect_right(self._headers, number):
            return self._line(place, None)
        return self._at_mark(known[latest])

    @cached_property
    def _inlined_calls(self) -> dict[tuple[str, ...], list[int]]:
        """The numbers of the .loc of each place that name a call."""
        found = dict[tuple[str, ...], list[int]]()
        for number, mark in enumerate(self._marks):
            if mark[4] is not None:
                found.setdefault(mark.group(1, 2, 3), []).append(number)
        return found

    @cached_property
    def _headers(self) -> list[int]:
        """The numbers of the marks that are headers of functions."""
        return [number for number, mark in enumerate(self._marks) if mark[1] is None]

    def _line(self, place: Sequence[str], called: SourceLine | None) -> SourceLine | None:
        file, number, column = map(int, place)
        name = self._files.get(file)
        if name is None or number == 0:  # DWARF: line 0 is code that comes from no line
            return None
        lines = self._read(name)
        text = lines[number - 1] if number <= len(lines) else ""
        return SourceLine(_relative_path(name), number, column, text, called)


def _relative_path(path: str) -> str:
    """Return a path as the user would name it: from the current folder where it lies there."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # on another drive
        return path
    return path if relative.startswith("..") else relative
