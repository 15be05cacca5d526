"""A timeline as one SVG document, light or dark as the viewer prefers; nothing is loaded from anywhere.

Knows colours and pixels of a picture 1120 wide, which grows and shrinks with its window; what stands where
is timeline.py's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from xml.etree.ElementTree import Element, SubElement, tostring

from ....observe.recording.strips import Link, Timeline
from ..drawings.figure_files import Drawing
from .timeline import (
    CAPTION,
    FOLDED,
    Panel,
    Row,
    folded_ctas,
    legend_of,
    panels_of,
    rows_in,
    rows_of,
    shown_links,
)
from .timeline_panels import (
    CHARACTER,
    arrow_head,
    draw_bands,
    draw_labels,
    draw_numbers,
    draw_rows,
    draw_rules,
    draw_sample,
    draw_text,
    placed,
)

_WIDTH, _MARGIN, _GUTTER = 1120, 16, 92
_WIDEST = 30  # of a column
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
    (".matrix, .wgmma, .tensor", "fill", "#f8d9bb", "#6b3c12"),
    (".matrix, .wgmma, .tensor", "stroke", "#a64c08", "#f5a65b"),
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


def draw_timeline(timeline: Timeline, title: str = "", notes: Sequence[str] = ()) -> Drawing:
    """Return the picture of a launch's timeline as one SVG document; ``notes`` stand below the title.

    The timeline is that of a report: ``kernel(..., timeline=True).timeline``. Notebooks show the picture;
    ``save("x.png")``, .svg, .pdf or .tex writes it.
    """
    svg = tostring(timeline_element(timeline, title, notes), encoding="unicode")
    return Drawing(svg, partial(str, svg))


def timeline_element(timeline: Timeline, title: str, notes: Sequence[str] = ()) -> Element:
    """Return the same as an element, to be put into a page."""
    root = Element("svg", {"xmlns": _SVG, "class": "timeline", "role": "img"})
    SubElement(root, "title").text = title
    SubElement(root, "style").text = _style()
    arrow_head(root)
    page = SubElement(root, "rect", {"class": "page", "width": str(_WIDTH)})
    folded = folded_ctas(timeline)
    top = _heading(root, title, [*notes, *CAPTION, *([FOLDED] if folded else [])])
    top = _legend(root, timeline, top)
    rows = rows_of(timeline, folded)
    links, panels = shown_links(timeline, rows), panels_of(timeline)
    longest = max(panel.past - panel.first for panel in panels)
    pitch = min((_WIDTH - 2 * _MARGIN - _GUTTER) / longest, _WIDEST)
    for panel in panels:
        bottom = _panel(root, panel, rows_in(panel, rows, links), links, pitch, top)
        top = bottom + _AXIS + _GAP
    page.set("height", f"{top:g}")
    root.set("viewBox", f"0 0 {_WIDTH} {top:g}")
    root.set("width", str(_WIDTH))
    root.set("height", f"{top:g}")
    root.set("style", "max-width: 100%; height: auto")  # no narrower window makes it lower than wide
    return root


def page_colours(place: str) -> str:
    """Return the colours of what is drawn in a page that has both, by a selector of where it is."""
    rules = ((", ".join(f"{place} {item}" for item in names.split(", ")), *rest) for names, *rest in _COLOURS)
    return "\n".join(
        f"{names} {{ {what}: light-dark({light}, {dark}) }}" for names, what, light, dark in rules
    )


def _style() -> str:
    rules = ([f"{name} {{ {what}: {item} }}" for name, what, *both in _COLOURS for item in (both[dark],)]
             for dark in (0, 1))  # fmt: skip
    light, dark = map("\n".join, rules)
    return f"{_STYLE}\n{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}"


# --- above the panels --------------------------------------------------------------------------------


def _heading(root: Element, title: str, lines: Iterable[str]) -> float:
    draw_text(root, title, _MARGIN, 28, "title")
    top = 46.0
    for line in lines:
        draw_text(root, line, _MARGIN, top, "muted")
        top += 15
    return top


def _legend(root: Element, timeline: Timeline, top: float) -> float:
    """Return a sample and a word for each kind that there is."""
    x, y = float(_MARGIN), top + 2
    for kind, words in legend_of(timeline):
        width = 26 + CHARACTER * len(words) + 16
        if x + width > _WIDTH - _MARGIN:
            x, y = float(_MARGIN), y + 18
        draw_sample(root, kind, x, y)
        draw_text(root, words, x + 26, y + 4, "small")
        x += width
    return y + 24


def _panel(
    root: Element, panel: Panel, rows: Sequence[Row], links: Sequence[Link], pitch: float, top: float
) -> float:
    """Draw a panel below what there is; its bottom."""
    group = SubElement(root, "g", {"class": "panel"})
    left = _MARGIN + _GUTTER
    place = placed(panel, rows, pitch, top=top, left=left, right=_WIDTH - _MARGIN)
    draw_bands(group, place, _MARGIN, left + (panel.past - panel.first) * pitch)
    draw_rules(group, place, top + 4, place.bottom + 4)
    draw_numbers(group, place, place.bottom + 15)
    draw_text(group, "event", left - 8, place.bottom + 15, "muted small", "end")
    draw_labels(group, place, _MARGIN, left - 8)
    draw_rows(group, place, links)
    return place.bottom
