"""Parts of the manifest of a recording as JSON-ready data: the seal, a timeline, and lines of sources.

The seal is how much a recording has, and the SHA-256 of the other keys: no part of a file passes for all.
The arrays have their own SHA-256 in the manifest, so that its digest stands for them, too.

A timeline has ``moments``, ``schedule``, ``warps`` (x, y, z, warp, and the moment of its exit or null),
``statements`` (place in the module and text), ``strips`` and ``links`` (numbers of two strips, and a moment).
A line of a source has ``file``, ``line``, ``column``, ``text``, and ``inlined_at``: the line of the call, or
null. A listing has ``file``, ``line`` and ``text`` of each line, ``statements`` (line and text) and how many
``more`` there are. Readers trust nothing: every object that another refers to must exist.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, get_args

from ....base.errors import SourceLine, TraceError
from ....observe.recording.listing import MOST_LINES, MOST_STATEMENTS, ListedLine
from ....observe.recording.recorder import LaunchEvent
from ....observe.recording.strip_keeper import MOST_STRIPS
from ....observe.recording.strips import Kind, Link, Strip, Timeline, WarpName

Document = dict[str, Any]

SEAL = ("events", "words", "sha256")  # keys
_TIMELINE_KEYS = ("moments", "schedule", "warps", "statements", "strips", "links")
_STRIP_KEYS = tuple(field.name for field in fields(Strip) if field.name not in ("statement", "flying"))
_SOURCE_KEYS = ("file", "line", "column", "text", "inlined_at")
_LISTED_KEYS = ("file", "line", "text", "statements", "more")
_MOST = 1 << 40  # limit of any number
_MOST_LINE = (1 << 31) - 1
_MOST_TEXT = 4096  # characters of a line, note or statement
_MOST_LINKS = 64 * MOST_STRIPS
_MOST_CALLS = 64


# --- seal ------------------------------------------------------------------------------------------


def sealed(document: Mapping[str, Any], events: Sequence[LaunchEvent]) -> dict[str, Any]:
    """Return the manifest with the counts of what it describes, and its digest."""
    counted = {**document, **_counted(events)}
    return {**counted, "sha256": _digest(counted)}


def check_seal(document: Mapping[str, Any], events: Sequence[LaunchEvent]) -> None:
    """Raise TraceError unless a manifest has the counts of these events, and its own digest."""
    for name, count in _counted(events).items():
        if document[name] != count:
            raise TraceError(
                f"the manifest says {document[name]!r} {name}, but the file has {count:,}: "
                "it is not the whole recording"
            )
    unsealed = {name: value for name, value in document.items() if name != "sha256"}
    if document["sha256"] != _digest(unsealed):
        raise TraceError(
            f"the manifest has SHA-256 {_digest(unsealed)}, but says {document['sha256']!r}: it was changed"
        )


def _counted(events: Sequence[LaunchEvent]) -> dict[str, int]:
    """Return the number of executions, and of words of D."""
    return dict(zip(SEAL[:2], (len(events), sum(event.d.size for event in events)), strict=True))


def _digest(document: Mapping[str, Any]) -> str:
    text = json.dumps(document, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


# --- timeline --------------------------------------------------------------------------------------


def timeline_document(timeline: Timeline) -> Document:
    """Return the timeline as JSON-ready data."""
    numbers = {strip: number for number, strip in enumerate(timeline.strips)}
    return {
        "moments": timeline.moments,
        "schedule": timeline.schedule,
        "warps": [[*cta, warp, end] for (cta, warp), end in timeline.warps.items()],
        "statements": sorted({(item.pc, item.statement) for item in timeline.strips}),
        "strips": [
            {name: getattr(item, name) for name in _STRIP_KEYS}
            | {"cta": list(item.cta), "notes": list(item.notes)}
            for item in timeline.strips
        ],
        "links": [[numbers[link.source], numbers[link.target], link.moment] for link in timeline.links],
    }


def timeline_from(given: Any, grid: Sequence[int], warps: int) -> Timeline:
    """Return the timeline of the data, for a launch of this grid and number of warps in a CTA.

    Raises TraceError.
    """
    document = _keys(given, _TIMELINE_KEYS, "timeline")
    moments = _number(document["moments"], "timeline: moments")
    known = dict(_warp(item, grid, warps, moments) for item in _list(document["warps"], "timeline: warps"))
    texts = dict(_statement(item) for item in _list(document["statements"], "timeline: statements"))
    strips = _list(document["strips"], "timeline: strips", MOST_STRIPS)
    made = tuple(
        _strip(strip, f"timeline: strip {at}", known, texts, moments) for at, strip in enumerate(strips)
    )
    links = _list(document["links"], "timeline: links", _MOST_LINKS)
    return Timeline(
        strips=made,
        links=tuple(_link(link, made, moments) for link in links),
        warps=known,
        moments=moments,
        schedule=_text(document["schedule"], "timeline: schedule"),
    )


def _warp(given: Any, grid: Sequence[int], warps: int, moments: int) -> tuple[WarpName, int | None]:
    what = "timeline: warps"
    if not isinstance(given, list) or len(given) != 5:
        raise TraceError(f"{what}: each has x, y, z, a warp and an end")
    x, y, z, warp = (
        _number(item, what, most - 1) for item, most in zip(given[:4], [*grid, warps], strict=True)
    )
    return ((x, y, z), warp), None if given[4] is None else _number(given[4], what, moments)


def _statement(given: Any) -> tuple[int, str]:
    if not isinstance(given, list) or len(given) != 2:
        raise TraceError("timeline: statements: each has a place and a text")
    return _number(given[0], "timeline: statements"), _text(given[1], "timeline: statements")


def _strip(
    given: Any, what: str, warps: Mapping[WarpName, int | None], texts: Mapping[int, str], moments: int
) -> Strip:
    given = {"sources": []} | given if isinstance(given, dict) else given
    strip = _keys(given, _STRIP_KEYS, what)
    if strip["kind"] not in get_args(Kind):
        raise TraceError(f"{what}: there is no kind {strip['kind']!r}")
    cta = tuple(_numbers(strip["cta"], f"{what}: cta"))
    numbers = {
        name: _number(strip[name], f"{what}: {name}") for name in ("warp", "warps", "count", "size", "pc")
    }
    if len(cta) != 3 or (cta, numbers["warp"]) not in warps:
        raise TraceError(f"{what} is of a warp that the timeline does not have")
    if numbers["pc"] not in texts:
        raise TraceError(f"{what} is of a statement that the timeline does not have")
    first = _number(strip["first"], f"{what}: first", moments)
    last = None if strip["last"] is None else _number(strip["last"], f"{what}: last", moments)
    if last is not None and last < first:
        raise TraceError(f"{what} ends before it begins")
    if not strip["lines"]:
        raise TraceError(f"{what}: lines is empty")
    return Strip(
        kind=strip["kind"],
        cta=(cta[0], cta[1], cta[2]),
        statement=texts[numbers["pc"]],
        name=_text(strip["name"], f"{what}: name"),
        first=first,
        last=last,
        lines=_numbers(strip["lines"], f"{what}: lines"),
        sources=[_text(item, f"{what}: sources") for item in _list(strip["sources"], f"{what}: sources")],
        notes={_text(note, f"{what}: notes"): None for note in _list(strip["notes"], f"{what}: notes")},
        executions=[_execution(pair, what) for pair in _list(strip["executions"], f"{what}: executions")],
        **numbers,
    )


def _execution(given: Any, what: str) -> tuple[int, int]:
    numbers = _numbers(given, f"{what}: executions")
    if len(numbers) != 2:
        raise TraceError(f"{what}: executions: each has a place and a number")
    return numbers[0], numbers[1]


def _link(given: Any, strips: Sequence[Strip], moments: int) -> Link:
    numbers = _numbers(given, "timeline: links")
    if len(numbers) != 3 or max(numbers[:2]) >= len(strips) or numbers[2] > moments:
        raise TraceError("timeline: links: each has the numbers of two strips and a moment")
    return Link(source=strips[numbers[0]], target=strips[numbers[1]], moment=numbers[2])


# --- sources ---------------------------------------------------------------------------------------


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
    if calls > _MOST_CALLS:
        raise TraceError(f"source: inlined_at has at most {_MOST_CALLS} calls")
    line = _keys(given, _SOURCE_KEYS, "source")
    call = line["inlined_at"]
    return SourceLine(
        file=printable(_limited(line["file"], "source: file"), "source: file"),
        line=_number(line["line"], "source: line", _MOST_LINE, 1),
        column=_number(line["column"], "source: column", _MOST_LINE),
        text=_limited(line["text"], "source: text"),
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
    return tuple(_listed(each) for each in _list(given, "listing", MOST_LINES))


def _listed(given: Any) -> ListedLine:
    line = _keys(given, _LISTED_KEYS, "listing")
    statements = _list(line["statements"], "listing: statements", MOST_STATEMENTS)
    if not all(isinstance(each, list) and len(each) == 2 for each in statements):
        raise TraceError("listing: each of statements has a line and a text")
    return ListedLine(
        file=_limited(line["file"], "listing: file"),
        line=_number(line["line"], "listing: line", _MOST_LINE),
        text=_limited(line["text"], "listing: text"),
        statements=tuple(
            (_number(at, "listing: line", _MOST_LINE), _limited(text, "listing: text"))
            for at, text in statements
        ),
        more=_number(line["more"], "listing: more", _MOST_LINE),
    )


# --- pieces ----------------------------------------------------------------------------------------


def _keys(given: Any, keys: Sequence[str], what: str) -> Document:
    if not isinstance(given, dict) or set(given) != set(keys):
        raise TraceError(f"{what}: an object with the keys {', '.join(keys)}")
    return given


def _list(given: Any, what: str, most: int = _MOST) -> list[Any]:
    if not isinstance(given, list) or len(given) > most:
        raise TraceError(f"{what} is an array" + (f" of at most {most:,}" if most < _MOST else ""))
    return given


def _number(given: Any, what: str, most: int = _MOST, least: int = 0) -> int:
    if type(given) is not int or not least <= given <= most:
        raise TraceError(f"{what}: {given!r} is not a number from {least} to {most:,}")
    return given


def _numbers(given: Any, what: str) -> list[int]:
    return [_number(item, what) for item in _list(given, what)]


def _limited(given: Any, what: str) -> str:
    if not isinstance(given, str) or len(given) > _MOST_TEXT:
        raise TraceError(f"{what} is a text of at most {_MOST_TEXT:,} characters")
    return given


def _text(given: Any, what: str) -> str:
    printable(given, what)
    return _limited(given, what)


def printable(given: Any, what: str) -> str:
    """Return a printable text on one line. Raises TraceError."""
    if not isinstance(given, str) or not given.isprintable():
        raise TraceError(f"{what} is printable text on one line")
    return given
