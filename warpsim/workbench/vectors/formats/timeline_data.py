"""A timeline as JSON-ready data in the manifest of a recording: write it and read it back.

``moments``, ``schedule``, ``warps`` (x, y, z, warp, and the moment of its exit or null), ``statements``
(place in the module and text), ``strips`` and ``links`` (numbers of two strips, and a moment). Readers trust
nothing: every object that a strip or link refers to must exist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, get_args

from ....base.errors import TraceError
from ....observe.recording.strip_keeper import MOST_STRIPS
from ....observe.recording.strips import Kind, Link, Strip, Timeline, WarpName

Document = dict[str, Any]

_KEYS = ("moments", "schedule", "warps", "statements", "strips", "links")
_STRIP_KEYS = tuple(field.name for field in fields(Strip) if field.name not in ("statement", "flying"))
_MOST = 1 << 40  # limit of any number
_MOST_TEXT = 4096  # characters of a note or statement
_MOST_LINKS = 64 * MOST_STRIPS


# --- writing ---------------------------------------------------------------------------------------


def timeline_document(timeline: Timeline) -> Document:
    """Return the timeline as JSON-ready data."""
    numbers = {strip: number for number, strip in enumerate(timeline.strips)}
    return {
        "moments": timeline.moments,
        "schedule": timeline.schedule,
        "warps": [[*cta, warp, end] for (cta, warp), end in timeline.warps.items()],
        "statements": sorted({(item.pc, item.statement) for item in timeline.strips}),
        "strips": [_strip_document(item) for item in timeline.strips],
        "links": [[numbers[link.source], numbers[link.target], link.moment] for link in timeline.links],
    }


def _strip_document(strip: Strip) -> Document:
    values = {name: getattr(strip, name) for name in _STRIP_KEYS}
    return values | {"cta": list(strip.cta), "notes": list(strip.notes)}


# --- reading ---------------------------------------------------------------------------------------


def timeline_from(given: Any, grid: Sequence[int], warps: int) -> Timeline:
    """Return the timeline of the data, for a launch of this grid and number of warps in a CTA.

    Raises TraceError.
    """
    document = _keys(given, _KEYS, "timeline")
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


# --- pieces ------------------------------------------------------------------------------------------


def _keys(given: Any, keys: Sequence[str], what: str) -> Document:
    if not isinstance(given, dict) or set(given) != set(keys):
        raise TraceError(f"{what}: an object with the keys {', '.join(keys)}")
    return given


def _list(given: Any, what: str, most: int = _MOST) -> list[Any]:
    if not isinstance(given, list) or len(given) > most:
        raise TraceError(f"{what} is an array" + (f" of at most {most:,}" if most < _MOST else ""))
    return given


def _number(given: Any, what: str, most: int = _MOST) -> int:
    if type(given) is not int or not 0 <= given <= most:
        raise TraceError(f"{what}: {given!r} is not a number from 0 to {most:,}")
    return given


def _numbers(given: Any, what: str) -> list[int]:
    return [_number(item, what) for item in _list(given, what)]


def _text(given: Any, what: str) -> str:
    if not isinstance(given, str) or not given.isprintable() or len(given) > _MOST_TEXT:
        raise TraceError(f"{what} is printable text on one line")
    return given
