"""Rows of a timeline as elements of SVG: bars, marks and arrows of a panel, its labels and its numbers.

Knows pixels; the words are timeline.py's, the colours and the document timeline_svg.py's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element, SubElement

from ....observe.recording.strips import Link, Strip
from .timeline import Panel, Row, arrival, captions, detail, link_detail

CHARACTER = 5.7  # approximate width in pixels, in bars and legends
_HEIGHTS = {"cta": 26, "group": 20, "warp": 17, "flight": 15, "fold": 17}
_HEADINGS = {"cta": "cta", "group": "muted"}
_BAR = {"warp": 11, "flight": 12, "fold": 12}
_FOLDED = {False: (-2.5, 8), True: (4.5, 4)}  # by what is in flight: how far from the middle, and how high
_MARKS = {  # points around the place of a mark
    "arrival": ((-4, -5), (4.5, 0), (-4, 5)),
    "start": ((-4, -4), (4, -4), (4, 4), (-4, 4)),
    "fence": ((0, -5.5), (2.2, 0), (0, 5.5), (-2.2, 0)),
}

Attributes = Callable[[Strip], Mapping[str, str]]


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a panel lies: rows' tops by number, its columns, their width, and its edges."""

    panel: Panel
    tops: Sequence[float]
    rows: Sequence[Row]
    pitch: float
    left: float
    right: float
    bottom: float

    def x(self, moment: int) -> float:
        """Return the middle of a column, at most one behind the edges of the panel."""
        inside = min(max(moment, self.panel.first - 1), self.panel.past)
        middle = self.left + (inside - self.panel.first + 0.5) * self.pitch
        return min(max(middle, self.left), self.right)

    @property
    def numbers(self) -> dict[int, int]:
        """The number of the row of each strip, by its id."""
        return {id(strip): number for number, row in enumerate(self.rows) for strip in row.strips}

    def height(self, row: int) -> int:
        """Return the height of a row."""
        return _HEIGHTS[self.rows[row].sort]

    def y(self, row: int) -> float:
        """Return the middle of a row."""
        return self.tops[row] + _HEIGHTS[self.rows[row].sort] / 2


def placed(
    panel: Panel, rows: Sequence[Row], pitch: float, *, top: float, left: float, right: float
) -> Place:
    """Return the rows of a panel below each other; nothing is drawn beyond its edges."""
    tops = list[float]()
    for row in rows:
        tops.append(top)
        top += _HEIGHTS[row.sort]
    return Place(panel=panel, tops=tops, rows=rows, pitch=pitch, left=left, right=right, bottom=top)


def draw_rows(
    group: Element, place: Place, links: Sequence[Link], attributes: Attributes = lambda strip: {}
) -> None:
    """Draw what is in rows, and arrows between them; ``attributes`` are more of them for the strips."""
    for number, row in enumerate(place.rows):
        if row.sort not in _HEADINGS:
            draw_row(group, place, number, row, attributes)
    numbers = place.numbers
    for link in links:
        if place.panel.first <= arrival(link) < place.panel.past:
            draw_arrow(group, place, link, (numbers[id(link.source)], numbers[id(link.target)]), attributes)


def draw_labels(group: Element, place: Place, left: float, right: float) -> None:
    """Headings of CTAs and warpgroups from the left, names of rows up to the right."""
    for number in range(len(place.rows)):
        draw_label(group, place, number, left, right)


def draw_label(group: Element, place: Place, number: int, left: float, right: float) -> None:
    """Write the heading or name of a row."""
    row, y = place.rows[number], place.y(number)
    if row.sort in _HEADINGS:
        draw_text(group, row.label, left, y + 6, _HEADINGS[row.sort])
    else:
        draw_text(group, row.label, right, y + 4, "muted small" if row.sort == "flight" else "", "end")


def draw_bands(group: Element, place: Place, left: float, right: float) -> None:
    """Behind rows of what is in flight."""
    for number in range(len(place.rows)):
        draw_band(group, place, number, left, right)


def draw_band(group: Element, place: Place, number: int, left: float, right: float) -> None:
    """Behind a row of what is in flight."""
    if place.rows[number].sort == "flight":
        size = {"width": f"{right - left:.1f}", "height": str(_HEIGHTS["flight"])}
        at = {"x": f"{left:g}", "y": f"{place.tops[number]:g}"}
        SubElement(group, "rect", {"class": "band", **at, **size})


def tens(panel: Panel) -> range:
    """Return every tenth event."""
    return range(-(-panel.first // 10) * 10, panel.past, 10)


def draw_rules(group: Element, place: Place, top: float, bottom: float) -> None:
    """Draw a line at every tenth event."""
    for moment in tens(place.panel):
        x = f"{place.x(moment):.1f}"
        draw_line(group, "rule", x, top, x, bottom)


def draw_numbers(group: Element, place: Place, y: float) -> None:
    """Write the numbers of every tenth event."""
    for moment in tens(place.panel):
        draw_text(group, str(moment), place.x(moment), y, "muted small", "middle")


def draw_row(group: Element, place: Place, number: int, row: Row, attributes: Attributes) -> None:
    """Draw the strips of a row at the place of the numbered row."""
    y, first, past = place.y(number), place.panel.first, place.panel.past
    drawn = SubElement(group, "g", {"class": f"row {row.sort}"})
    if row.sort in ("warp", "fold"):
        _life(drawn, place, y, row.end)
    inside = (item for item in row.strips if item.first < past and (item.last is None or item.last >= first))
    for strip in sorted(inside, key=lambda entry: entry.kind in _MARKS):
        _strip(drawn, place, strip, y, row.sort, attributes(strip))


def _life(group: Element, place: Place, y: float, end: int | None) -> None:
    """Draw a line from the beginning of a warp to its exit."""
    first, past = place.panel.first, place.panel.past
    if end is not None and end < first:
        return
    left = place.x(first - 1 if first else first)
    right = place.x(past if end is None else min(end, past))
    draw_line(group, "life", f"{left:.1f}", y, f"{right:.1f}", y)
    if end is not None and end < past:
        draw_line(group, "life", f"{right:.1f}", y - 4, f"{right:.1f}", y + 4)


def _strip(group: Element, place: Place, strip: Strip, y: float, sort: str, more: Mapping[str, str]) -> None:
    own = SubElement(group, "g", {"class": f"strip {strip.kind}-strip", **more})
    SubElement(own, "title").text = detail(strip)
    if strip.kind in _MARKS:
        draw_mark(own, strip.kind, place.x(strip.first), y)
        return
    left = place.x(strip.first)
    right = place.x(place.panel.past if strip.last is None else strip.last)
    shown = max(right - left, min(place.pitch, 6))
    name = f"bar {strip.kind}" + (" endless" if strip.last is None else "")
    if sort == "fold":
        down, high = _FOLDED[strip.in_flight]
        draw_box(own, name, left, y + down, shown, high)
        return
    draw_box(own, name, left, y, shown, _BAR[sort])
    room = (shown - 5) / CHARACTER
    fitting = (item for item in captions(strip) if len(item) <= room)
    if strip.first >= place.panel.first and (caption := next(fitting, "")):
        draw_text(own, caption, left + 3.5, y + 3.6, "small")


def draw_arrow(
    group: Element, place: Place, link: Link, rows: tuple[int, int], attributes: Attributes
) -> None:
    """Draw a curve from the strip that ended a wait to the end of the wait, between their two rows."""
    source, target = rows
    x, right = place.x(link.moment), place.x(arrival(link))
    y, end = place.y(source), place.y(target)
    below = 1 if y < end else -1
    half = {row: _BAR[place.rows[row].sort] / 2 for row in (source, target)}
    y, end = y + below * half[source] * (source != target), end - below * half[target] * (source != target)
    bend = min(max(abs(end - y) / 2, 8), 60)
    curve = f"M{x:.1f},{y:.1f} C{x:.1f},{y + below * bend:.1f} {right:.1f},{end - below * bend:.1f} "
    name = "arrow" if link.moment >= link.target.first else "arrow early"  # it has hardly waited
    path = {"class": name, "d": f"{curve}{right:.1f},{end:.1f}", "marker-end": "url(#head)"}
    ends = (("from", link.source), ("to", link.target))
    path |= {f"data-{side}": own for side, item in ends if (own := attributes(item).get("data-strip"))}
    SubElement(SubElement(group, "path", path), "title").text = link_detail(link)


def arrow_head(root: Element) -> None:
    """Define what ``url(#head)`` refers to."""
    place = {"refX": "6", "refY": "3", "markerWidth": "6", "markerHeight": "6", "orient": "auto"}
    units = {"markerUnits": "userSpaceOnUse"}
    marker = SubElement(SubElement(root, "defs"), "marker", {"id": "head", **place, **units})
    SubElement(marker, "path", {"d": "M0,0 L6,3 L0,6 z", "class": "head"})


# --- pieces ------------------------------------------------------------------------------------------


def draw_sample(group: Element, kind: str, x: float, y: float) -> None:
    """Return what a legend shows of a kind of strips, of "arrow" or "endless"."""
    if kind in _MARKS:
        draw_mark(group, kind, x + 10, y)
    elif kind == "arrow":
        SubElement(group, "path", {"class": "arrow", "d": f"M{x:g},{y:g} h19", "marker-end": "url(#head)"})
    else:
        draw_box(group, "bar wait endless" if kind == "endless" else f"bar {kind}", x, y, 20, 11)


def draw_box(group: Element, name: str, x: float, middle: float, width: float, height: float) -> None:
    """Draw a bar, by the middle of its left edge."""
    place: Mapping[str, Any] = {"x": x, "y": middle - height / 2, "width": width, "height": height, "rx": 2.5}
    texts = {key: f"{value:.4g}" if value < 1000 else f"{value:.1f}" for key, value in place.items()}
    SubElement(group, "rect", {"class": name, **texts})


def draw_mark(group: Element, kind: str, x: float, y: float) -> None:
    """Draw a mark around a place."""
    points = " ".join(f"{x + right:.1f},{y + down:.1f}" for right, down in _MARKS[kind])
    SubElement(group, "polygon", {"class": kind, "points": points})


def draw_line(group: Element, name: str, x: str, y: float, right: str, end: float) -> None:
    """Draw a line."""
    SubElement(group, "line", {"class": name, "x1": x, "y1": f"{y:.1f}", "x2": right, "y2": f"{end:.1f}"})


def draw_text(group: Element, text: str, x: float, y: float, name: str = "", anchor: str = "start") -> None:
    """Text, which begins, ends or has its middle at x."""
    place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor}
    SubElement(group, "text", place | ({"class": name} if name else {})).text = text
