"""The timeline of a launch as pieces of the page: names of rows, numbers of events, strips and arrows.

The pieces are SVG of one panel, which scrolls in a box with the names and numbers at its edges. A strip has
the number of its own, ``data-strip``, and of the instructions of the page that it stands for,
``data-instructions``; an arrow the strips at its ends. What can be drawn is views/timeline_panels.py's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element, tostring

from ..recording.recorder import LaunchEvent
from ..recording.strips import Strip, Timeline
from ..vectors.recordings import Recording
from ..views.timelines.timeline import CAPTION, Panel, legend_of, rows_of, shown_links
from ..views.timelines.timeline_panels import (
    Attributes,
    Place,
    arrow_head,
    draw_bands,
    draw_labels,
    draw_numbers,
    draw_rows,
    draw_rules,
    draw_sample,
    placed,
)
from ..views.timelines.timeline_svg import page_colours

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
    events = _svg(width, place.bottom + 6, "events")
    arrow_head(events)
    draw_bands(events, place, 0, width)
    draw_rules(events, place, 0, place.bottom + 6)
    draw_rows(events, place, links, _attributes(found, recording.events))
    return TimelinePieces(
        caption=_caption(found),
        names=_names(place),
        numbers=_numbers(place, width),
        events=_text(events),
        legend=[(_sample(kind), words) for kind, words in legend_of(found)],
        style=page_colours("#timeline"),
        count=len(found.strips),
        links=len(links),
    )


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
    draw_bands(root, place, 0, _NAMES)
    draw_labels(root, place, 2, _NAMES - 8)
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
    if name != "events":
        root.set("aria-hidden", "true")
    return root


def _text(root: Element) -> str:
    return tostring(root, encoding="unicode")
