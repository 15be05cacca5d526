"""A timeline as one SVG document, light or dark as its reader has it; nothing is loaded from anywhere.

Knows colours and pixels of a picture 1120 wide, which grows and shrinks with its window; what stands where
is timeline.py's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from ..machine.observers.strips import Link, Strip, Timeline
from .timeline import (
    CAPTION,
    ENDLESS,
    NAMES,
    Panel,
    Row,
    arrival,
    captions,
    detail,
    link_detail,
    panels_of,
    rows_in,
    rows_of,
    shown_links,
)

_WIDTH, _MARGIN, _GUTTER = 1120, 16, 92
_WIDEST = 30  # of a column
_HEIGHTS = {"cta": 26, "group": 20, "warp": 17, "flight": 15}
_HEADINGS = {"cta": "cta", "group": "muted"}
_BAR = {"warp": 11, "flight": 12}
_CHARACTER = 5.7  # of the text in bars
_AXIS, _GAP = 20, 16
_SVG = "http://www.w3.org/2000/svg"

# class: (property, light, dark); the colours are those of reports, by what the operand of that colour is
_COLOURS: tuple[tuple[str, str, str, str], ...] = (
    (".page", "fill", "#ffffff", "#14171c"),
    ("text", "fill", "#181c22", "#e6e9ee"),
    (".muted", "fill", "#566070", "#9ba5b4"),
    (".band", "fill", "#f4f5f7", "#1c2027"),
    (".life", "stroke", "#b9c0cb", "#4b5462"),
    (".rule", "stroke", "#e3e6ec", "#262c35"),
    (".wait", "fill", "#d9c9f5", "#4d3a78"),
    (".wait", "stroke", "#7038c8", "#b794f6"),
    (".barrier", "fill", "#d5d9e0", "#3c4451"),
    (".barrier", "stroke", "#566070", "#9ba5b4"),
    (".matrix, .wgmma", "fill", "#f8d9bb", "#6b3c12"),
    (".matrix, .wgmma", "stroke", "#b4540a", "#f5a65b"),
    (".copy", "fill", "#cfdffa", "#1f3f77"),
    (".copy", "stroke", "#1d5fd1", "#78aaff"),
    (".store", "fill", "#c5ebd9", "#134a34"),
    (".store", "stroke", "#0b7a4b", "#58c890"),
    (".arrival", "fill", "#b8195f", "#f58ab8"),
    (".start", "fill", "#0c7286", "#5cc5da"),
    (".fence", "fill", "#566070", "#9ba5b4"),
    (".endless", "stroke", "#c01c28", "#ff8080"),
    (".arrow", "stroke", "#3d4654", "#c3cad5"),
    (".head", "fill", "#3d4654", "#c3cad5"),
)
_STYLE = """
svg { color-scheme: light dark; font: 11px system-ui, "DejaVu Sans", sans-serif; }
.title { font-size: 15px; font-weight: 600; } .cta { font-weight: 600; } .small { font-size: 10px; }
.bar { stroke-width: 1; } .endless { stroke-width: 1.6; stroke-dasharray: 3 2; }
.life { stroke-width: 1.2; } .rule { stroke-width: 1; }
.arrow { fill: none; stroke-width: 1.1; opacity: .62; } .early { opacity: .28; }
.arrow:hover { opacity: 1; stroke-width: 2.2; }
.strip:hover .bar { stroke-width: 2.4; } .strip text { pointer-events: none; }
""".strip()
_MARKS = {  # points around the place of a mark
    "arrival": ((-4, -5), (4.5, 0), (-4, 5)),
    "start": ((-4, -4), (4, -4), (4, 4), (-4, 4)),
    "fence": ((0, -5.5), (2.2, 0), (0, 5.5), (-2.2, 0)),
}


@dataclass(frozen=True, kw_only=True)
class _Place:
    """Where a panel lies: rows' tops by number, its columns and their width."""

    panel: Panel
    tops: Sequence[float]
    rows: Sequence[Row]
    pitch: float
    bottom: float

    def x(self, moment: int) -> float:
        """The middle of a column, at most one behind the edges of the panel."""
        inside = min(max(moment, self.panel.first - 1), self.panel.past)
        middle = _MARGIN + _GUTTER + (inside - self.panel.first + 0.5) * self.pitch
        return min(max(middle, _MARGIN + _GUTTER), _WIDTH - _MARGIN)

    def y(self, row: int) -> float:
        """The middle of a row."""
        return self.tops[row] + _HEIGHTS[self.rows[row].sort] / 2


def draw_timeline(timeline: Timeline, title: str = "", notes: Sequence[str] = ()) -> str:
    """The picture of a launch's timeline as one SVG document; ``notes`` stand below the title.

    The timeline is that of a report: ``kernel(..., timeline=True).timeline``.
    """
    return tostring(timeline_element(timeline, title, notes), encoding="unicode")


def timeline_element(timeline: Timeline, title: str, notes: Sequence[str] = ()) -> Element:
    """The same as an element, to be put into a page."""
    root = Element("svg", {"xmlns": _SVG, "class": "timeline", "role": "img"})
    SubElement(root, "title").text = title
    SubElement(root, "style").text = _style()
    _arrow_head(root)
    page = SubElement(root, "rect", {"class": "page", "width": str(_WIDTH)})
    top = _heading(root, title, [*notes, *CAPTION])
    top = _legend(root, timeline, top)
    rows = rows_of(timeline)
    links, panels = shown_links(timeline, rows), panels_of(timeline)
    longest = max(panel.past - panel.first for panel in panels)
    pitch = min((_WIDTH - 2 * _MARGIN - _GUTTER) / longest, _WIDEST)
    for panel in panels:
        place = _placed(panel, rows_in(panel, rows, links), pitch, top)
        _panel(root, place, links)
        top = place.bottom + _AXIS + _GAP
    page.set("height", f"{top:g}")
    root.set("viewBox", f"0 0 {_WIDTH} {top:g}")
    root.set("width", "100%")
    root.set("preserveAspectRatio", "xMinYMin meet")
    return root


def _style() -> str:
    rules = ([f"{name} {{ {what}: {one} }}" for name, what, *both in _COLOURS for one in (both[dark],)]
             for dark in (0, 1))  # fmt: skip
    light, dark = map("\n".join, rules)
    return f"{_STYLE}\n{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}"


def _arrow_head(root: Element) -> None:
    place = {"refX": "6", "refY": "3", "markerWidth": "6", "markerHeight": "6", "orient": "auto"}
    units = {"markerUnits": "userSpaceOnUse"}
    marker = SubElement(SubElement(root, "defs"), "marker", {"id": "head", **place, **units})
    SubElement(marker, "path", {"d": "M0,0 L6,3 L0,6 z", "class": "head"})


# --- above the panels --------------------------------------------------------------------------------


def _heading(root: Element, title: str, lines: Iterable[str]) -> float:
    _text(root, title, _MARGIN, 28, "title")
    top = 46.0
    for line in lines:
        _text(root, line, _MARGIN, top, "muted")
        top += 15
    return top


def _legend(root: Element, timeline: Timeline, top: float) -> float:
    """A sample and a word for each kind that there is."""
    x, y = float(_MARGIN), top + 2
    there = {strip.kind for strip in timeline.strips}
    entries: list[tuple[str, str]] = [(kind, words) for kind, words in NAMES.items() if kind in there]
    if timeline.links:
        entries.append(("arrow", "ends the wait"))
    if any(strip.last is None for strip in timeline.strips):
        entries.append(("endless", ENDLESS))
    for kind, words in entries:
        width = 26 + _CHARACTER * len(words) + 16
        if x + width > _WIDTH - _MARGIN:
            x, y = float(_MARGIN), y + 18
        _sample(root, kind, x, y)
        _text(root, words, x + 26, y + 4, "small")
        x += width
    return y + 24


def _sample(root: Element, kind: str, x: float, y: float) -> None:
    if kind in _MARKS:
        _mark(root, kind, x + 10, y)
    elif kind == "arrow":
        SubElement(root, "path", {"class": "arrow", "d": f"M{x:g},{y:g} h19", "marker-end": "url(#head)"})
    else:
        _box(root, "bar wait endless" if kind == "endless" else f"bar {kind}", x, y, 20, 11)


# --- panels ------------------------------------------------------------------------------------------


def _placed(panel: Panel, rows: Sequence[Row], pitch: float, top: float) -> _Place:
    tops = list[float]()
    for row in rows:
        tops.append(top)
        top += _HEIGHTS[row.sort]
    return _Place(panel=panel, tops=tops, rows=rows, pitch=pitch, bottom=top)


def _panel(root: Element, place: _Place, links: Sequence[Link]) -> None:
    group = SubElement(root, "g", {"class": "panel"})
    _grid(group, place)
    for number, row in enumerate(place.rows):
        _row(group, place, number, row)
    numbers = {id(strip): number for number, row in enumerate(place.rows) for strip in row.strips}
    for link in links:
        if place.panel.first <= arrival(link) < place.panel.past:
            _arrow(group, place, link, numbers[id(link.source)], numbers[id(link.target)])


def _grid(group: Element, place: _Place) -> None:
    """Rules and numbers of every tenth event, below each other through all rows."""
    first, past = place.panel.first, place.panel.past
    right = _MARGIN + _GUTTER + (past - first) * place.pitch
    for number, row in enumerate(place.rows):
        if row.sort != "flight":
            continue
        size = {"width": f"{right - _MARGIN:.1f}", "height": str(_HEIGHTS["flight"])}
        SubElement(
            group, "rect", {"class": "band", "x": str(_MARGIN), "y": f"{place.tops[number]:g}", **size}
        )
    for moment in range(-(-first // 10) * 10, past, 10):
        x = f"{place.x(moment):.1f}"
        _line(group, "rule", x, place.tops[0] + 4, x, place.bottom + 4)
        _text(group, str(moment), float(x), place.bottom + 15, "muted small", "middle")
    _text(group, "event", _MARGIN + _GUTTER - 8, place.bottom + 15, "muted small", "end")


def _row(group: Element, place: _Place, number: int, row: Row) -> None:
    y, first, past = place.y(number), place.panel.first, place.panel.past
    if row.sort in _HEADINGS:
        _text(group, row.label, _MARGIN, y + 6, _HEADINGS[row.sort])
        return
    style = "" if row.sort == "warp" else "muted small"
    _text(group, row.label, _MARGIN + _GUTTER - 8, y + 4, style, "end")
    drawn = SubElement(group, "g", {"class": f"row {row.sort}"})
    if row.sort == "warp":
        _life(drawn, place, y, row.end)
    inside = (one for one in row.strips if one.first < past and (one.last is None or one.last >= first))
    for strip in sorted(inside, key=lambda one: one.kind in _MARKS):
        _strip(drawn, place, strip, y, row.sort)


def _life(group: Element, place: _Place, y: float, end: int | None) -> None:
    """A line from the beginning of a warp to its exit."""
    first, past = place.panel.first, place.panel.past
    if end is not None and end < first:
        return
    left = place.x(first - 1 if first else first)
    right = place.x(past if end is None else min(end, past))
    _line(group, "life", f"{left:.1f}", y, f"{right:.1f}", y)
    if end is not None and end < past:
        _line(group, "life", f"{right:.1f}", y - 4, f"{right:.1f}", y + 4)


def _strip(group: Element, place: _Place, strip: Strip, y: float, sort: str) -> None:
    box = SubElement(group, "g", {"class": f"strip {strip.kind}-strip"})
    SubElement(box, "title").text = detail(strip)
    if strip.kind in _MARKS:
        _mark(box, strip.kind, place.x(strip.first), y)
        return
    left = place.x(strip.first)
    right = place.x(place.panel.past if strip.last is None else strip.last)
    shown = max(right - left, min(place.pitch, 6))
    name = f"bar {strip.kind}" + (" endless" if strip.last is None else "")
    _box(box, name, left, y, shown, _BAR[sort])
    room = (shown - 5) / _CHARACTER
    fitting = (text for text in captions(strip) if len(text) <= room)
    if strip.first >= place.panel.first and (text := next(fitting, "")):
        _text(box, text, left + 3.5, y + 3.6, "small")


def _arrow(group: Element, place: _Place, link: Link, source: int, target: int) -> None:
    """A curve from the strip that ended a wait to the end of the wait."""
    x, right = place.x(link.moment), place.x(arrival(link))
    y, end = place.y(source), place.y(target)
    below = 1 if y < end else -1
    half = {row: _BAR[place.rows[row].sort] / 2 for row in (source, target)}
    y, end = y + below * half[source] * (source != target), end - below * half[target] * (source != target)
    bend = min(max(abs(end - y) / 2, 8), 60)
    curve = f"M{x:.1f},{y:.1f} C{x:.1f},{y + below * bend:.1f} {right:.1f},{end - below * bend:.1f} "
    name = "arrow" if link.moment >= link.target.first else "arrow early"  # it has hardly waited
    path = {"class": name, "d": f"{curve}{right:.1f},{end:.1f}", "marker-end": "url(#head)"}
    SubElement(SubElement(group, "path", path), "title").text = link_detail(link)


# --- pieces ------------------------------------------------------------------------------------------


def _box(group: Element, name: str, x: float, middle: float, width: float, height: float) -> None:
    place: Mapping[str, Any] = {"x": x, "y": middle - height / 2, "width": width, "height": height, "rx": 2.5}
    SubElement(group, "rect", {"class": name, **{key: f"{value:.4g}" for key, value in place.items()}})


def _mark(group: Element, kind: str, x: float, y: float) -> None:
    points = " ".join(f"{x + right:.1f},{y + down:.1f}" for right, down in _MARKS[kind])
    SubElement(group, "polygon", {"class": kind, "points": points})


def _line(group: Element, name: str, x: str, y: float, right: str, end: float) -> None:
    SubElement(group, "line", {"class": name, "x1": x, "y1": f"{y:.1f}", "x2": right, "y2": f"{end:.1f}"})


def _text(group: Element, text: str, x: float, y: float, name: str = "", anchor: str = "start") -> None:
    place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor}
    SubElement(group, "text", place | ({"class": name} if name else {})).text = text
