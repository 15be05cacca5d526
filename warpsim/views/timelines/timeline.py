"""A timeline laid out: rows of warps and of what they have in flight, and panels below each other.

An axis of events that does not fit is broken, as the lines of a score are. Knows rows, panels and words; does
not know colours or SVG (timeline_svg.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePath
from typing import Literal

from ...recording.strips import Link, Strip, Timeline, WarpName

_GROUP = 4  # warps of a warpgroup
PANEL_MOMENTS = 120  # at most, of one panel


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line of the picture: a heading of a CTA or warpgroup, a warp, or operations that do not overlap."""

    sort: Literal["cta", "group", "warp", "flight"]
    label: str
    strips: tuple[Strip, ...] = ()
    end: int | None = None  # of a warp: the moment at which it exits


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Moments from ``first`` to before ``past``."""

    first: int
    past: int


def rows_of(timeline: Timeline) -> list[Row]:
    """Return a row for each warp, CTA by CTA, with rows of what it has in flight below it.

    What a warpgroup has in flight, wgmma, is below its last warp. Warpgroups have headings where there are
    several, which say what they do.
    """
    found = list[Row]()
    for cta, names in groupby(timeline.warps, key=lambda name: name[0]):
        found.append(Row(sort="cta", label=f"CTA ({', '.join(map(str, cta))})"))
        own = list(names)
        for name in own:
            if own[-1][1] >= _GROUP and (name == own[0] or name[1] % _GROUP == 0):
                found.append(_heading(timeline, own, name))
            found += _rows_of_warp(timeline, name)
            if name == own[-1] or name[1] % _GROUP == _GROUP - 1:
                found += _rows_of_group(timeline, own, name)
    return found


def _heading(timeline: Timeline, own: Sequence[WarpName], first: WarpName) -> Row:
    """Return the number of a warpgroup, and what its warps do."""
    group = first[1] // _GROUP
    kinds = {
        item.kind
        for name in own
        if name[1] // _GROUP == group
        for item in timeline.of(*name)
        if item.kind in _ROLES
    }
    does = ", ".join(words for kind, words in _ROLES.items() if kind in kinds)
    return Row(sort="group", label=f"warpgroup {group}" + (f": {does}" if does else ""))


def _rows_of_warp(timeline: Timeline, name: WarpName) -> Iterator[Row]:
    strips = timeline.of(*name)
    here = tuple(item for item in strips if not item.in_flight)
    yield Row(sort="warp", label=f"warp {name[1]}", strips=here, end=timeline.warps[name])
    flights = [strip for strip in strips if strip.in_flight and strip.warps == 1]
    yield from _packed(flights, f"warp {name[1]}", timeline.moments)


def _rows_of_group(timeline: Timeline, own: Sequence[WarpName], last: WarpName) -> Iterator[Row]:
    group = last[1] // _GROUP
    first = group * _GROUP
    strips = [item for item in timeline.of(last[0], first) if item.warps > 1]
    yield from _packed(strips, f"warps {first} to {first + _GROUP - 1}", timeline.moments)


def _packed(strips: Sequence[Strip], whose: str, moments: int) -> Iterator[Row]:
    """Yield as few rows as strips that overlap need, each kind apart."""
    for kind in dict.fromkeys(item.kind for item in strips):
        lines = list[list[Strip]]()
        for strip in (entry for entry in strips if entry.kind == kind):
            free = (line for line in lines if _last(line[-1], moments) < strip.first)
            line = next(free, None)
            if line is None:
                lines.append(line := [])
            line.append(strip)
        for number, line in enumerate(lines):
            label = _FLIGHTS[kind] if not number else ""
            yield Row(sort="flight", label=label, strips=tuple(line))


_FLIGHTS = {"copy": "copies", "store": "stores", "wgmma": "wgmma", "tensor": "tcgen05"}


_ROLES = {"matrix": "mma", "wgmma": "wgmma", "tensor": "tcgen05", "copy": "copies", "store": "stores"}


def _last(strip: Strip, moments: int) -> int:
    return moments if strip.last is None else strip.last


def panels_of(timeline: Timeline) -> list[Panel]:
    """Return as many panels as it takes, about equally long."""
    moments = max(timeline.moments, 1)
    count = -(-moments // PANEL_MOMENTS)
    size = -(-moments // count)
    return [Panel(first=first, past=min(first + size, moments)) for first in range(0, moments, size)]


def rows_in(panel: Panel, rows: Sequence[Row], links: Sequence[Link]) -> list[Row]:
    """Return the rows, without operations of which the panel shows no part and no arrow."""
    causes = {id(link.source) for link in links if panel.first <= arrival(link) < panel.past}
    return [
        row
        for row in rows
        if row.sort != "flight" or any(_is_in(panel, strip, causes) for strip in row.strips)
    ]


def _is_in(panel: Panel, strip: Strip, causes: set[int]) -> bool:
    inside = strip.first < panel.past and (strip.last is None or strip.last >= panel.first)
    return inside or id(strip) in causes


def arrival(link: Link) -> int:
    """Return the moment at which an arrow ends: that of the wait's end, or of its cause where it has none."""
    return link.moment if link.target.last is None else link.target.last


def shown_links(timeline: Timeline, rows: Sequence[Row]) -> list[Link]:
    """Return the links to draw: of waits of a CTA with the same end, the link of the nearest row."""
    places = {id(strip): place for place, row in enumerate(rows) for strip in row.strips}
    nearest = dict[tuple[object, ...], Link]()

    def distance(link: Link) -> int:
        return abs(places[id(link.source)] - places[id(link.target)])

    for link in timeline.links:
        target = link.target
        key = id(link.source), target.cta, target.first, target.last, target.pc
        if key not in nearest or distance(link) < distance(nearest[key]):
            nearest[key] = link
    return list(nearest.values())


# --- words -----------------------------------------------------------------------------------------

NAMES = {
    "wait": "waits: mbarriers, groups",
    "barrier": "at a barrier",
    "matrix": "mma",
    "wgmma": "wgmma, issued to complete",
    "tensor": "tcgen05.mma or commit, issued to complete",
    "copy": "copy to shared or tensor memory, issued to complete",
    "store": "copy or reduction from shared memory",
    "arrival": "arrives, expects bytes",
    "start": "mbarrier.init",
    "fence": "fence",
}
ENDLESS = "does not end"


def legend_of(timeline: Timeline) -> list[tuple[str, str]]:
    """Return kinds of strips, ``arrow`` and ``endless``, in words, as far as there are any."""
    there = {strip.kind for strip in timeline.strips}
    entries: list[tuple[str, str]] = [(kind, words) for kind, words in NAMES.items() if kind in there]
    if timeline.links:
        entries.append(("arrow", "ends the wait"))
    if any(strip.last is None for strip in timeline.strips):
        entries.append(("endless", ENDLESS))
    return entries


CAPTION = (
    "An order of events, not a performance model: a column is an event, whatever time it would take.",
    "Loads, stores and arithmetic are no events. Point at anything for its statement.",
)


def lines_text(strip: Strip) -> str:
    """Return ``line 12``, ``lines 12, 14`` or, where the source is known, ``gemm.cu:3 (lines 12, 14)``."""
    listed = ", ".join(map(str, strip.lines))
    own = f"line{'s'[: len(strip.lines) > 1]} {listed}"
    return f"{', '.join(strip.sources)} ({own})" if strip.sources else own


def captions(strip: Strip) -> tuple[str, ...]:
    """Return what may stand in a bar, the longest first."""
    count = f"{strip.count}x " if strip.count > 1 else ""
    short = f"{count}{strip.name}".strip()
    name = PurePath(strip.sources[0]).name if strip.sources else f"line {strip.lines[0]}"
    number = name.rpartition(":")[2].removeprefix("line ")
    return (f"{short}, {name}", short, number) if short else (number,)


def detail(strip: Strip) -> str:
    """Return whe tooltip of a strip: warps, statement, first and last moment, and operands."""
    last = strip.warp + strip.warps - 1
    warps = f"warp {strip.warp}" if strip.warps == 1 else f"warps {strip.warp} to {last}"
    times = f"{strip.count} times, first " if strip.count > 1 else ""
    ended = f"event {strip.last}" if strip.last is not None else f"the end: it {ENDLESS}"
    when = f"event {strip.first}" if strip.last == strip.first else f"event {strip.first} to {ended}"
    lines = [
        f"{lines_text(strip)}: {times}{strip.statement}",
        f"CTA ({', '.join(map(str, strip.cta))}), {warps}, {when}",
        *([f"{strip.size:,} bytes"] if strip.size else []),
        *strip.notes,
    ]
    return "\n".join(lines)


def link_detail(link: Link) -> str:
    """Return whe tooltip of an arrow."""
    source, target = link.source, link.target
    apart = source.cta != target.cta
    of, at = (f" of CTA ({', '.join(map(str, item.cta))})" if apart else "" for item in (source, target))
    return f"{lines_text(source)}{of} lets go on what waits at {lines_text(target)}{at}"
