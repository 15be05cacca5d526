"""Figures as SVG, and pages of HTML that need nothing but themselves.

Built with xml.etree, which escapes whatever it writes. Every box carries its lane in ``data-lane`` and
a tooltip with registers, bits and elements; in a page, pointing at a box lights up all of its lane.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.etree.ElementTree import Element, SubElement, tostring

from ....base.files.content_policy import content_policy
from ..layouts.figures import Cell, Figure
from .drawing import lane_colour

_CHARACTER, _LINE, _MARGIN = 7.3, 20, 8  # pixels; of the 12-pixel monospaced font below
_SVG = "http://www.w3.org/2000/svg"

_STYLE = """
:root { color-scheme: light dark; --page: light-dark(#fff, #14171c); --ink: light-dark(#111, #e6e9ee);
  --line: light-dark(#ccc, #363d49); --head: light-dark(#eee, #272c35); }
body { font-family: system-ui, sans-serif; margin: 1.5em; color: var(--ink); background: var(--page); }
h1 { font-size: 1.2em; overflow-wrap: anywhere; } h2 { font-size: 1.05em; }
pre { font-size: 12px; overflow-x: auto; } .figure { overflow-x: auto; margin: 1em 0; }
table { border-collapse: collapse; font: 12px ui-monospace, monospace; margin: .6em 0; }
th, td { border: 1px solid var(--line); padding: 1px 6px; text-align: right; white-space: pre; }
th { background: var(--head); } .lit rect { stroke-width: 3; stroke: light-dark(#c00, #ff4040); }
svg text { fill: var(--ink); } svg [data-lane] text { fill: #111; }
""".strip()
_SCRIPT = """
for (const type of ["mouseover", "mouseout"]) document.addEventListener(type, event => {
  const box = event.target.closest("[data-lane]");
  if (!box) return;
  for (const same of document.querySelectorAll('[data-lane="' + box.dataset.lane + '"]'))
    same.classList.toggle("lit", type === "mouseover");
});
""".strip()


def figures_svg(figures: Sequence[Figure]) -> str:
    """Return one SVG document with the figures below each other."""
    return tostring(figures_element(figures), encoding="unicode")


def figures_element(figures: Sequence[Figure]) -> Element:
    """Return the same as an element, to be put into a page."""
    root = Element("svg", {"xmlns": _SVG, "font-family": "ui-monospace, monospace", "font-size": "12"})
    top, right = float(_MARGIN), 0.0
    for figure in figures:
        width, height = _draw(root, figure, top)
        top, right = top + height + 2 * _LINE, max(right, width)
    size = (f"{right + 2 * _MARGIN:g}", f"{top:g}")
    root.set("width", size[0])
    root.set("height", size[1])
    root.set("viewBox", f"0 0 {size[0]} {size[1]}")
    return root


def _draw(root: Element, figure: Figure, top: float) -> tuple[float, float]:
    """Draw one figure below ``top``; its width and height."""
    group = SubElement(root, "g", {"transform": f"translate({_MARGIN},{top:g})"})
    label = _CHARACTER * max(map(len, [figure.corner, *figure.row_labels])) + _MARGIN
    widths = [_CHARACTER * characters + _MARGIN for characters in figure.column_widths()]
    starts = [label + sum(widths[:column]) for column in range(len(widths))]
    _label(group, figure.title, 0, 0, anchor="start", weight="bold")
    _label(group, figure.corner, 0, _LINE, anchor="start")
    for name, start, width in zip(figure.column_labels, starts, widths, strict=True):
        _label(group, name, start + width / 2, _LINE)
    for number, (name, row) in enumerate(zip(figure.row_labels, figure.grid, strict=True), start=2):
        _label(group, name, label - _MARGIN, number * _LINE, anchor="end")
        for cell, start, width in zip(row, starts, widths, strict=True):
            if cell:
                _box(group, cell, start, number * _LINE, width)
    title = _CHARACTER * len(figure.title)
    return max(title, label + sum(widths)), _LINE * (len(figure.grid) + 2)


def _label(
    group: Element, text: str, x: float, y: float, anchor: str = "middle", weight: str = "normal"
) -> None:
    place = {"x": f"{x:g}", "y": f"{y + 14:g}", "text-anchor": anchor, "font-weight": weight}
    SubElement(group, "text", place).text = text


def _box(group: Element, cell: Cell, x: float, y: float, width: float) -> None:
    box = SubElement(group, "g", {"data-lane": str(cell.lane)})
    SubElement(box, "title").text = cell.detail
    rectangle = {"x": f"{x:g}", "y": f"{y:g}", "width": f"{width:g}", "height": str(_LINE)}
    SubElement(box, "rect", rectangle | {"fill": lane_colour(cell.lane), "stroke": "#444"})
    _label(box, cell.text, x + width / 2, y)


# --- pages -----------------------------------------------------------------------------------------


def page(title: str, parts: Iterable[Element]) -> str:
    """Return a page of HTML with a heading and the given elements in its body."""
    root = Element("html", {"lang": "en"})
    head, body = SubElement(root, "head"), SubElement(root, "body")
    SubElement(head, "meta", {"charset": "utf-8"})
    policy = {"http-equiv": "Content-Security-Policy", "content": content_policy(_SCRIPT)}
    SubElement(head, "meta", policy)
    SubElement(head, "title").text = title
    SubElement(head, "style").text = _STYLE
    SubElement(body, "h1").text = title
    body.extend(parts)
    SubElement(body, "script").text = _SCRIPT
    return "<!DOCTYPE html>\n" + tostring(root, encoding="unicode", method="html") + "\n"


def element(tag: str, text: str = "", **attributes: str) -> Element:
    """Return an element with text in it."""
    made = Element(tag, attributes)
    made.text = text
    return made


def boxed(inner: Element) -> Element:
    """Return an element that scrolls sideways where it does not fit."""
    outer = Element("div", {"class": "figure"})
    outer.append(inner)
    return outer


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Element:
    """Return a table with a line of headings."""
    made = Element("table")
    for tag, cells in (("th", header), *(("td", row) for row in rows)):
        line = SubElement(made, "tr")
        for cell in cells:
            SubElement(line, tag).text = cell
    return boxed(made)
