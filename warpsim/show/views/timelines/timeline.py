"""A timeline laid out: rows of warps and of what they have in flight, and panels below each other.

An axis of events that does not fit is broken, as the lines of a score are; of many CTAs, all but the first
are folded to a row each. Knows rows, panels and words; does not know colours or SVG (timeline_svg.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal

from ....observe.recording.strips import Link, Strip, Timeline, WarpName

if TYPE_CHECKING:
    from ....machine.bind.tuning import Dimensions

_GROUP = 4  # warps of a warpgroup
PANEL_MOMENTS = 120  # at most, of one panel
FEW_CTAS = 4  # at most, that are shown warp by warp at first


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line of the picture: a heading of a CTA or warpgroup, a warp, operations that do not overlap, or a
    whole CTA that is folded.
    """

    sort: Literal["cta", "group", "warp", "flight", "fold"]
    label: str
    cta: Dimensions
    strips: tuple[Strip, ...] = ()
    end: int | None = None  # of a warp: the moment at which it exits


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Moments from ``first`` to before ``past``."""

    first: int
    past: int


def rows_of(timeline: Timeline, folded: Collection[Dimensions] = ()) -> list[Row]:
    """Return a row for each warp, CTA by CTA, with what it has in flight below it.

    A folded CTA is a single row. What a warpgroup has in flight, wgmma, is below its last warp. Warpgroups
    have headings where there are several, which say what they do.
    """
    found = list[Row]()
    by_warp = _by_warp(timeline)
    for cta, names in groupby(timeline.warps, key=lambda name: name[0]):
        if cta in folded:
            found.append(fold_of(timeline, cta))
        else:
            found.append(Row(sort="cta", label=cta_text(cta), cta=cta))
            found += _rows_of_cta(timeline, list(names), by_warp)
    return found


def cta_text(cta: Dimensions) -> str:
    """Return ``CTA (1, 0, 0)``."""
    return f"CTA ({', '.join(map(str, cta))})"


def folded_ctas(timeline: Timeline) -> tuple[Dimensions, ...]:
    """Return the CTAs that are folded at first: of more than a few, all but the first."""
    ctas = tuple(dict.fromkeys(cta for cta, _ in timeline.warps))
    return ctas[1:] if len(ctas) > FEW_CTAS else ()


def fold_of(timeline: Timeline, cta: Dimensions) -> Row:
    """Return the row of a folded CTA: what its warps do and have in flight, each once, waits behind the rest.

    Of warps that do the same at the same moments, the first stands for all; marks are left out.
    """
    own = [item for item in timeline.strips if item.cta == cta and item.kind in _FOLDED]
    first = {(item.kind, item.pc, item.first, item.last): item for item in reversed(own)}
    strips = sorted(first.values(), key=lambda item: (_FOLDED.index(item.kind), item.first))
    ends = [end for (of, _), end in timeline.warps.items() if of == cta]
    last = None if None in ends else max(end for end in ends if end is not None)
    return Row(sort="fold", label=cta_text(cta), cta=cta, strips=tuple(strips), end=last)


_FOLDED = ("wait", "barrier", "copy", "store", "wgmma", "tensor", "matrix")  # from behind to the front


def _by_warp(timeline: Timeline) -> dict[WarpName, list[Strip]]:
    """Return the strips of each warp, in the order of their first moments."""
    found = dict[WarpName, list[Strip]]()
    for strip in sorted(timeline.strips, key=lambda item: item.first):
        found.setdefault((strip.cta, strip.warp), []).append(strip)
    return found


def _rows_of_cta(
    timeline: Timeline, own: Sequence[WarpName], by_warp: Mapping[WarpName, list[Strip]]
) -> Iterator[Row]:
    for name in own:
        if own[-1][1] >= _GROUP and (name == own[0] or name[1] % _GROUP == 0):
            yield _heading(by_warp, own, name)
        yield from _rows_of_warp(timeline, name, by_warp.get(name, []))
        if name == own[-1] or name[1] % _GROUP == _GROUP - 1:
            first = name[1] // _GROUP * _GROUP
            strips = [item for item in by_warp.get((name[0], first), []) if item.warps > 1]
            yield from _packed(strips, timeline.moments, name[0])


def _heading(by_warp: Mapping[WarpName, list[Strip]], own: Sequence[WarpName], first: WarpName) -> Row:
    """Return the number of a warpgroup, and what its warps do."""
    group = first[1] // _GROUP
    kinds = {
        item.kind
        for name in own
        if name[1] // _GROUP == group
        for item in by_warp.get(name, [])
        if item.kind in _ROLES
    }
    does = ", ".join(words for kind, words in _ROLES.items() if kind in kinds)
    label = f"warpgroup {group}" + (f": {does}" if does else "")
    return Row(sort="group", label=label, cta=first[0])


def _rows_of_warp(timeline: Timeline, name: WarpName, strips: Sequence[Strip]) -> Iterator[Row]:
    cta, warp = name
    here = tuple(item for item in strips if not item.in_flight)
    yield Row(sort="warp", label=f"warp {warp}", cta=cta, strips=here, end=timeline.warps[name])
    flights = [strip for strip in strips if strip.in_flight and strip.warps == 1]
    yield from _packed(flights, timeline.moments, cta)


def _packed(strips: Sequence[Strip], moments: int, cta: Dimensions) -> Iterator[Row]:
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
            yield Row(sort="flight", label=label, cta=cta, strips=tuple(line))


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
    """Return the links to draw: of waits of a CTA with the same end, the link of the nearest row.

    What is folded has none.
    """
    places = {
        id(strip): place for place, row in enumerate(rows) for strip in row.strips if row.sort != "fold"
    }
    nearest = dict[tuple[object, ...], Link]()

    def distance(link: Link) -> int:
        return abs(places[id(link.source)] - places[id(link.target)])

    for link in timeline.links:
        target = link.target
        if id(link.source) not in places or id(target) not in places:
            continue
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


FOLDED = "CTAs behind the first are folded: a row has what all warps of a CTA do, each event once."
CAPTION = (
    "An order of events, not a performance model: one column per event, not to scale.",
    "Loads, stores and arithmetic are not shown.",
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
    """Return the tooltip of a strip: warps, statement, first and last moment, and operands."""
    last = strip.warp + strip.warps - 1
    warps = f"warp {strip.warp}" if strip.warps == 1 else f"warps {strip.warp} to {last}"
    times = f"{strip.count} times, first " if strip.count > 1 else ""
    ended = f"event {strip.last}" if strip.last is not None else f"the end: it {ENDLESS}"
    when = f"event {strip.first}" if strip.last == strip.first else f"event {strip.first} to {ended}"
    lines = [
        f"{lines_text(strip)}: {times}{strip.statement}",
        f"{cta_text(strip.cta)}, {warps}, {when}",
        *([f"{strip.size:,} bytes"] if strip.size else []),
        *strip.notes,
    ]
    return "\n".join(lines)


def link_detail(link: Link) -> str:
    """Return the tooltip of an arrow."""
    source, target = link.source, link.target
    apart = source.cta != target.cta
    of, at = (f" of {cta_text(item.cta)}" if apart else "" for item in (source, target))
    return f"{lines_text(source)}{of} lets go on what waits at {lines_text(target)}{at}"
