"""Lines of sources as JSON-ready data in the manifest of a recording: write them and read them back.

``file``, ``line``, ``column``, ``text``, and ``inlined_at``: the line of the call, or null. A listing has
``file``, ``line`` and ``text`` of each line, ``statements`` (line and text) and how many ``more`` there are.
Readers trust nothing.
"""

from __future__ import annotations

from typing import Any

from ....base.errors import SourceLine, TraceError
from ....observe.recording.listing import MOST_LINES, MOST_STATEMENTS, ListedLine

Document = dict[str, Any]

_KEYS = {"file", "line", "column", "text", "inlined_at"}
_MOST_CALLS = 64
_MOST_TEXT = 4096  # characters
_MOST = 1 << 31


def source_document(source: SourceLine, calls: int = 0) -> Document:
    """Return a line, and the calls that it was inlined at, as JSON-ready data."""
    call = source.inlined_at
    return {
        "file": source.file,
        "line": source.line,
        "column": source.column,
        "text": source.text[:_MOST_TEXT],
        "inlined_at": None if call is None or calls >= _MOST_CALLS else source_document(call, calls + 1),
    }


def source_from(given: Any, calls: int = 0) -> SourceLine:
    """Return the line of the data. Raises TraceError."""
    if not isinstance(given, dict) or given.keys() != _KEYS or calls > _MOST_CALLS:
        raise TraceError(
            f"source: an object with the keys {', '.join(sorted(_KEYS))}, of {_MOST_CALLS} calls"
        )
    for name in ("file", "text"):
        if not isinstance(given[name], str) or len(given[name]) > _MOST_TEXT:
            raise TraceError(f"source: {name} is a text of at most {_MOST_TEXT:,} characters")
    if not given["file"].isprintable():
        raise TraceError("source: file is printable text on one line")
    for name in ("line", "column"):
        if type(given[name]) is not int or not (name == "line") <= given[name] < _MOST:
            raise TraceError(f"source: {name} is a number below {_MOST:,}")
    call = given["inlined_at"]
    return SourceLine(
        file=given["file"],
        line=given["line"],
        column=given["column"],
        text=given["text"],
        inlined_at=None if call is None else source_from(call, calls + 1),
    )


def listing_document(listing: tuple[ListedLine, ...]) -> list[Document]:
    """Return lines of sources as JSON-ready data."""
    return [
        {
            "file": each.file,
            "line": each.line,
            "text": each.text[:_MOST_TEXT],
            "statements": [[line, text[:_MOST_TEXT]] for line, text in each.statements],
            "more": each.more,
        }
        for each in listing
    ]


def listing_from(given: Any) -> tuple[ListedLine, ...]:
    """Return the lines of the data. Raises TraceError."""
    if not isinstance(given, list) or len(given) > MOST_LINES:
        raise TraceError(f"listing is an array of at most {MOST_LINES:,} lines")
    return tuple(map(_listed_line, given))


def _listed_line(given: Any) -> ListedLine:
    if not isinstance(given, dict) or given.keys() != {"file", "line", "text", "statements", "more"}:
        raise TraceError("listing: an object with the keys file, line, text, statements, more")
    statements = given["statements"]
    if not isinstance(statements, list) or len(statements) > MOST_STATEMENTS:
        raise TraceError(f"listing: statements is an array of at most {MOST_STATEMENTS}")
    if not all(isinstance(each, list) and len(each) == 2 for each in statements):
        raise TraceError("listing: each of statements has a line and a text")
    for number in (given["line"], given["more"], *(each[0] for each in statements)):
        if type(number) is not int or not 0 <= number < _MOST:
            raise TraceError(f"listing: {number!r} is not a number below {_MOST:,}")
    for text in (given["file"], given["text"], *(each[1] for each in statements)):
        if not isinstance(text, str) or len(text) > _MOST_TEXT:
            raise TraceError(f"listing: a text of at most {_MOST_TEXT:,} characters")
    return ListedLine(
        file=given["file"],
        line=given["line"],
        text=given["text"],
        statements=tuple((line, text) for line, text in statements),
        more=given["more"],
    )
