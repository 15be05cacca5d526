"""Lines of sources as JSON-ready data in the manifest of a recording: write them and read them back.

``file``, ``line``, ``column``, ``text``, and ``inlined_at``: the line of the call, or null. Readers trust
nothing.
"""

from __future__ import annotations

from typing import Any

from ...errors import SourceLine, TraceError

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
