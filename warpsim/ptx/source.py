"""Text with positions: a Source turns offsets into locations, a Cursor reads tokens and reports mistakes.

PTX is ASCII text; blanks, line ends and the comments ``// ...`` and ``/* ... */`` may stand between any two
tokens (PTX ISA 9.1, sections 4.1 and 4.2). A comment that opens with ``//!`` is not skipped: such a line
binds data in a trace, and is a statement of its own.

This module knows tokens. It knows no grammar: its callers know which token may follow which.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import NoReturn

from ..base.errors import Location, PtxError
from .source_lines import Reader, SourceLines, unread

__all__ = ["BINDING", "NAME", "TRIVIA", "Cursor", "Source", "Span"]

Span = tuple[int, int]  # offsets of the first character, and of the character after the last

BINDING = "//!"
NAME = r"(?:[A-Za-z][\w$]*+|[_$%][\w$]++)"
TRIVIA = r"(?:[ \t\r\n]++|//(?!!)[^\n]*+|/\*[^*]*+(?:\*(?!/)[^*]*+)*+\*/)*+"

_STRETCH = 1 << 12  # characters
_AROUND = 1 << 10  # characters of a line that a location keeps, before and after
_SKIP = re.compile(TRIVIA, re.ASCII)
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
# What an error message quotes as "found": a whole word where there is a word, or else a character.
_FOUND = re.compile(rf'{BINDING}|\.?{NAME}|[0-9][\w.]*|"[^"\n]*"|::|&&|\|\||<<|>>|[=!<>]=|.', re.ASCII)


@dataclass(frozen=True)
class Source:
    """A text and the name of the file it came from."""

    text: str
    file: str = "<string>"
    read: Reader = field(default=unread, compare=False, repr=False)  # of files that .file names

    def location(self, start: int, end: int | None = None) -> Location:
        """Return the place of the characters start..end (default: a single character), cut at the end of the
        first line.
        """
        line, line_start = self._line_of(start)
        wanted = start + 1 if end is None else end
        shown = max(start, wanted) + _AROUND
        line_end = self.text.find("\n", start, shown)
        first = max(line_start, start - _AROUND)
        text = self.text[first : shown if line_end < 0 else line_end]
        if line_end >= 0 or shown >= len(self.text):
            text = text.rstrip("\r")
        length = min(wanted, first + len(text)) - start
        cut = first - line_start
        source = self._source_lines.at(start)
        return Location(self.file, line + 1, start - line_start + 1, max(length, 1), text, cut, source)

    @cached_property
    def _source_lines(self) -> SourceLines:
        return SourceLines(self.text, self.read)

    def _line_of(self, offset: int) -> tuple[int, int]:
        """Return the number of the line that has an offset, from 0, and where it starts."""
        number = offset // _STRETCH
        lines, line_start = self._stretches[number]
        begin = number * _STRETCH
        last = self.text.rfind("\n", begin, offset)
        return lines + self.text.count("\n", begin, offset), line_start if last < 0 else last + 1

    @cached_property
    def _stretches(self) -> list[tuple[int, int]]:
        """For every stretch of text: the lines that end before it, and where the one begins that it is in.

        Not for every line, for a text may consist of nothing else; nor only for the text, which may be one
        line.
        """
        found, lines, line_start = [], 0, 0
        for begin in range(0, len(self.text) + 1, _STRETCH):
            found.append((lines, line_start))
            lines += self.text.count("\n", begin, begin + _STRETCH)
            line_start = self.text.rfind("\n", begin, begin + _STRETCH) + 1 or line_start
        return found


class Cursor:
    """A position in a source, always at the first character of a token or at the end of the text.

    ``position`` is that offset; ``end`` is the offset after the last token read.
    Raises PtxError for characters that are not ASCII and, on any move, for a comment that is not closed.
    """

    __slots__ = ("end", "position", "source", "text")

    def __init__(self, source: Source, position: int = 0) -> None:
        if not source.text.isascii() and (stray := _NOT_ASCII.search(source.text)):
            raise PtxError(f"PTX is ASCII text, found {stray[0]!a}", source.location(stray.start()))
        self.source = source
        self.text = source.text
        self.seek(position)

    def seek(self, end: int) -> None:
        """Move to the first token at or after the offset ``end``."""
        self.end = end
        # The pattern matches everywhere, if only the empty string.
        self.position = _SKIP.match(self.text, end).end()  # type: ignore[union-attr]
        if self.text.startswith("/*", self.position):
            raise self.error(
                "this comment is never closed: no '*/' follows", self.position, self.position + 2
            )

    def peek(self, rule: re.Pattern[str]) -> str | None:
        """Return the text that ``rule`` matches here, or None; the cursor stays."""
        match = rule.match(self.text, self.position)
        return match[0] if match else None

    def take(self, rule: re.Pattern[str]) -> str | None:
        """Return the text that ``rule`` matches here, after which the cursor moves on, or None."""
        match = rule.match(self.text, self.position)
        if match is None:
            return None
        self.seek(match.end())
        return match[0]

    def expect(self, rule: re.Pattern[str], wanted: str) -> str:
        """Return the text that ``rule`` matches here; PtxError "expected wanted, found ..." where it does
        not.
        """
        token = self.take(rule)
        return self.fail(wanted) if token is None else token

    def accept(self, symbol: str) -> bool:
        """Return whether ``symbol`` stands here; if so the cursor moves on."""
        if not self.sees(symbol):
            return False
        self.seek(self.position + len(symbol))
        return True

    def require(self, symbol: str, wanted: str | None = None) -> None:
        """Move over ``symbol``; PtxError "expected wanted, found ..." where another token stands."""
        if not self.accept(symbol):
            self.fail(wanted or repr(symbol))

    def sees(self, symbol: str) -> bool:
        """Return whether ``symbol`` stands here; the cursor stays."""
        return self.text.startswith(symbol, self.position)

    def at_end(self) -> bool:
        """Return whether no token is left."""
        return self.position >= len(self.text)

    def error(self, message: str, start: int, end: int | None = None) -> PtxError:
        """Return a PtxError that points at the characters start..end."""
        return PtxError(message, self.source.location(start, end))

    @contextmanager
    def blamed(self, start: int | None = None) -> Iterator[None]:
        """Let a PtxError of the block, if it has no location, point at the tokens read from ``start`` or
        here.
        """
        start = self.position if start is None else start
        try:
            yield
        except PtxError as error:
            raise error if error.location else error.at(self.source.location(start, self.end)) from None

    def fail(self, wanted: str) -> NoReturn:
        """Raise the PtxError "expected ..., found ...".

        It points at the token found; where that stands on a later line or the text has ended, just behind the
        last token read, for there the missing token belongs.
        """
        found = _FOUND.match(self.text, self.position)
        if not found:
            raise self.error(f"expected {wanted}, found the end of the text", self.end)
        message = f"expected {wanted}, found {found[0]!r}"
        if "\n" not in self.text[self.end : self.position]:
            raise self.error(message, self.position, found.end())
        raise self.error(f"{message} on line {self.source.location(self.position).line}", self.end)
