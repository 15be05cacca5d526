"""The timeline of a launch as pieces of the page: names of rows, numbers of events, strips and arrows.

The pieces are SVG of one panel, which scrolls in a box with the names and numbers at its edges. A strip has
the number of its own, ``data-strip``, and of the instructions of the page that it stands for,
``data-instructions``; an arrow the strips at its ends. A CTA is a group of names and one of events, each with
its ``data-top`` and ``data-height``, and with ``inner``, its rows, and ``summary``, what its heading shows
where it is folded. What can be drawn is views/timelines/timeline_panels.py's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement, tostring

from ...observe.recording.recorder import LaunchEvent
from ...observe.recording.strips import Link, Strip, Timeline
from ...workbench.vectors.recordings import Recording
from ..views.timelines.timeline import (
    CAPTION,
    Panel,
    fold_of,
    folded_ctas,
    legend_of,
    rows_of,
    shown_links,
)
from ..views.timelines.timeline_panels import (
    Attributes,
    Place,
    arrow_head,
    draw_arrow,
    draw_band,
    draw_label,
    draw_numbers,
    draw_row,
    draw_rules,
    draw_sample,
    draw_text,
    placed,
)
from ..views.timelines.timeline_svg import page_colours

if TYPE_CHECKING:
    from ...machine.bind.tuning import Dimensions

_NAMES = 188  # pixels of the names of rows
_NUMBERS = 20  # of the numbers of events
_GAP = 10  # at the edges of the events
_WIDTH = 1040  # as wide as columns may make it,
_NARROWEST, _WIDEST = 13.0, 30.0  # if they are so wide


@dataclass(frozen=True, kw_only=True)
class TimelinePieces:
    """Texts of SVG: ``legend`` is pairs of a sample and words. ``style`` has the colours."""

    caption: str
    names: str
    numbers: str
    events: str
    legend: Sequence[tuple[str, str]]
    style: str
    count: int
    links: int
    ctas: int
    folded: bool


def timeline_pieces(recording: Recording) -> TimelinePieces | None:
    """Return the timeline of a recording; None where it has none."""
    found = recording.timeline
    if found is None or not found.strips:
        return None
    rows, moments = rows_of(found), max(found.moments, 1)
    pitch = min(max(_WIDTH / moments, _NARROWEST), _WIDEST)
    width = 2 * _GAP + moments * pitch
    panel = Panel(first=0, past=moments)
    place = placed(panel, rows, pitch, top=4, left=_GAP, right=width - 2)
    links = shown_links(found, rows)
    return TimelinePieces(
        caption=_caption(found),
        names=_names(place),
        numbers=_numbers(place, width),
        events=_events(recording, found, place, links, width),
        legend=[(_sample(kind), words) for kind, words in legend_of(found)],
        style=page_colours("#timeline"),
        count=len(found.strips),
        links=len(links),
        ctas=len(_groups(place)),
        folded=bool(folded_ctas(found)),
    )


def _events(
    recording: Recording, timeline: Timeline, place: Place, links: Sequence[Link], width: float
) -> str:
    """Return strips and arrows: those within a CTA in its group, the others behind all groups."""
    attributes = _attributes(timeline, recording.events)
    root = _svg(width, place.bottom + 6, "events")
    arrow_head(root)
    draw_rules(root, place, 0, place.bottom + 6)
    inner: dict[Dimensions, Element] = {}
    groups = _groups(place)
    for cta, numbers in groups.items():
        group = _group(root, place, numbers)
        inner[cta] = SubElement(group, "g", {"class": "inner"})
        for number in numbers[1:]:
            draw_band(inner[cta], place, number, 0, width)
            if place.rows[number].strips or place.rows[number].sort == "warp":
                draw_row(inner[cta], place, number, place.rows[number], attributes)
        if len(groups) > 1:
            summary = SubElement(group, "g", {"class": "summary"})
            fold = fold_of(timeline, cta)
            draw_row(summary, place, numbers[0], fold, _folded(attributes, cta))
    across = SubElement(root, "g", {"class": "across"})
    rows = place.numbers
    for link in links:
        ends = rows[id(link.source)], rows[id(link.target)]
        within = link.source.cta == link.target.cta
        draw_arrow(inner[link.source.cta] if within else across, place, link, ends, attributes)
    return _text(root)


def _groups(place: Place) -> dict[Dimensions, list[int]]:
    """Return the numbers of the rows of each CTA, its heading first."""
    found: dict[Dimensions, list[int]] = {}
    for number, row in enumerate(place.rows):
        found.setdefault(row.cta, []).append(number)
    return found


def _group(root: Element, place: Place, numbers: Sequence[int]) -> Element:
    """Return the group of a CTA, with its place in pixels."""
    top, head = place.tops[numbers[0]], place.height(numbers[0])
    height = place.tops[numbers[-1]] + place.height(numbers[-1]) - top
    at = {"data-top": f"{top:g}", "data-height": f"{height:g}", "data-head": str(head)}
    return SubElement(root, "g", {"class": "of-cta", **at})


def _folded(attributes: Attributes, cta: Dimensions) -> Attributes:
    """Return the attributes of strips in the heading of a CTA: a number of their own."""
    head = "-".join(map(str, cta))

    def of(strip: Strip) -> Mapping[str, str]:
        own = attributes(strip)
        return {**own, "data-strip": f"{head}/{own['data-strip']}"}

    return of


def _caption(timeline: Timeline) -> str:
    schedule = f"Schedule {timeline.schedule}. " if timeline.schedule else ""
    return f"{schedule}{' '.join(CAPTION)}"


def _attributes(timeline: Timeline, events: Sequence[LaunchEvent]) -> Attributes:
    """Return what an element of a strip is called, and which instructions are behind it."""
    places = {(item.cta, item.warp, item.pc, item.index): at for at, item in enumerate(events)}
    numbers = {id(strip): at for at, strip in enumerate(timeline.strips)}

    def of(strip: Strip) -> Mapping[str, str]:
        keys = ((strip.cta, strip.warp, *execution) for execution in strip.executions)
        shown = [str(places[key]) for key in keys if key in places]
        found = {"data-strip": str(numbers[id(strip)]), "tabindex": "-1", "role": "img"}
        return found | ({"data-instructions": " ".join(shown), "role": "button"} if shown else {})

    return of


def _names(place: Place) -> str:
    root = _svg(_NAMES, place.bottom + 6, "names")
    groups = _groups(place)
    for numbers in groups.values():
        group = _group(root, place, numbers)
        label = place.rows[numbers[0]].label
        head = SubElement(group, "g", {"class": "head", "role": "button", "aria-label": label})
        size = {"width": str(_NAMES), "height": str(place.height(numbers[0]))}
        SubElement(head, "rect", {"class": "ground", "x": "0", "y": f"{place.tops[numbers[0]]:g}", **size})
        draw_label(head, place, numbers[0], 18 if len(groups) > 1 else 2, _NAMES - 8)
        draw_text(head, "▾", 4, place.y(numbers[0]) + 6, "fold-mark")
        inner = SubElement(group, "g", {"class": "inner"})
        for number in numbers[1:]:
            draw_band(inner, place, number, 0, _NAMES)
            draw_label(inner, place, number, 2, _NAMES - 8)
    return _text(root)


def _numbers(place: Place, width: float) -> str:
    root = _svg(width, _NUMBERS, "numbers")
    draw_numbers(root, place, _NUMBERS - 6)
    return _text(root)


def _sample(kind: str) -> str:
    root = _svg(22, 14, "sample")
    draw_sample(root, kind, 1, 7)
    return _text(root)


def _svg(width: float, height: float, name: str) -> Element:
    size = {"width": f"{width:.1f}", "height": f"{height:.1f}", "class": name}
    root = Element("svg", size)
    if name not in ("events", "names"):
        root.set("aria-hidden", "true")
    return root


def _text(root: Element) -> str:
    return tostring(root, encoding="unicode")
