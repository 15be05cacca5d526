"""Figures as TikZ: a picture for \\input in a LaTeX document, of the SVG that this package draws.

Knows the elements, attributes and rules of style that layouts and timelines use; colours are those of a light
page. A document needs \\usepackage{tikz} and \\usetikzlibrary{svg.path}.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from xml.etree.ElementTree import Element, fromstring

from ....base.errors import OperandError

Style = Mapping[str, str]
Rules = list[tuple[str, str, str]]  # a tag or .class, a property, its value

_HEAD = """% \\usepackage{tikz} \\usetikzlibrary{svg.path}
\\begin{tikzpicture}[scale=0.75, yscale=-1, x=1pt, y=1pt]
"""
_TAIL = "\\end{tikzpicture}\n"
_INHERITED = ("fill", "stroke", "stroke-width", "opacity", "font-size", "font-weight", "text-anchor")
_HIDDEN = ("title", "style", "defs")
_SPECIAL = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "{}$&#%_"},
        "\\": "\\textbackslash{}",
        "^": "\\textasciicircum{}",
        "~": "\\textasciitilde{}",
        "<": "\\textless{}",
        ">": "\\textgreater{}",
        "|": "\\textbar{}",
        "\u00d7": "$\\times$",
        "…": "\\ldots{}",
        "→": "$\\to$",
        "·": "$\\cdot$",
    }
)
_SIZES = {"tt": "12", "sf": "11"}  # pixels of text: of layouts, of timelines
_ANCHORS = {"start": "base west", "middle": "base", "end": "base east"}
_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
_MEDIA = re.compile(r"@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}")
_TRANSLATION = re.compile(r"translate\(([-\d.]+),([-\d.]+)\)")


def tikz(svg: str) -> str:
    """Return an SVG document as a tikzpicture. Raises OperandError for an element that it does not know."""
    root = fromstring(svg)
    rules = [rule for sheet in root.iter() if _tag(sheet) == "style" for rule in _rules(sheet.text or "")]
    face = "tt" if "monospace" in root.get("font-family", "") else "sf"
    style = {"face": face, "font-size": _SIZES[face]}
    return _HEAD + "".join(f"  {line}\n" for line in _lines(root, rules, style, (0.0, 0.0))) + _TAIL


def _tag(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _rules(sheet: str) -> Iterator[tuple[str, str, str]]:
    """Yield the rules of a style sheet for a light page, of one tag or class each."""
    for names, body in _RULE.findall(_MEDIA.sub("", sheet)):
        for name in names.split(","):
            for item in filter(None, map(str.strip, body.split(";"))):
                what, _, value = item.partition(":")
                if re.fullmatch(r"\.?[\w-]+", name.strip()):
                    yield name.strip(), what.strip(), value.strip()


def _lines(element: Element, rules: Rules, inherited: Style, at: tuple[float, float]) -> Iterator[str]:
    """Yield the drawing commands of an element and of those in it."""
    tag = _tag(element)
    if tag in _HIDDEN:
        return
    style = {**inherited, **_style(element, tag, rules)}
    moved = _TRANSLATION.fullmatch(element.get("transform", "translate(0,0)").replace(" ", ""))
    if moved is None:
        raise OperandError(f"a figure with transform={element.get('transform')!r} is not written as TikZ")
    place = at[0] + float(moved[1]), at[1] + float(moved[2])
    if tag in _COMMANDS:
        yield from _COMMANDS[tag](element, style, place)
    elif tag not in ("svg", "g"):
        raise OperandError(f"a figure with <{tag}> is not written as TikZ")
    for part in element:
        yield from _lines(part, rules, style, place)


def _style(element: Element, tag: str, rules: Rules) -> dict[str, str]:
    """Return what an element's attributes and classes say; classes go before attributes, as in SVG."""
    names = {tag, *(f".{name}" for name in element.get("class", "").split())}
    own = {what: element.attrib[what] for what in _INHERITED if what in element.attrib}
    return own | {what: value for name, what, value in rules if name in names and what in _INHERITED}


# --- elements ----------------------------------------------------------------------------------------------


def _number(element: Element, name: str) -> float:
    return float(element.get(name, "0"))


def _options(style: Style, filled: str = "black") -> str:
    """Return the options of a path: its colours, width and opacity."""
    fill, stroke = style.get("fill", filled), style.get("stroke", "none")
    colours = (("fill", fill), ("draw", stroke))
    found = [f"{name}={_colour(value)}" for name, value in colours if value != "none"]
    if stroke != "none":
        found.append(f"line width={0.75 * float(style.get('stroke-width', '1')):g}pt")
    if "opacity" in style:
        found.append(f"opacity={float(style['opacity']):g}")
    return ", ".join(found)


def _colour(value: str) -> str:
    """Return a colour as xcolor spells it without a name: {rgb,255:red,R;green,G;blue,B}."""
    digits = value.removeprefix("#")
    if not re.fullmatch(r"[0-9a-fA-F]{3}|[0-9a-fA-F]{6}", digits):
        raise OperandError(f"a figure with the colour {value!r} is not written as TikZ")
    wide = digits if len(digits) == 6 else "".join(2 * sign for sign in digits)
    red, green, blue = (int(wide[at : at + 2], 16) for at in (0, 2, 4))
    return f"{{rgb,255:red,{red};green,{green};blue,{blue}}}"


def _rect(element: Element, style: Style, at: tuple[float, float]) -> Iterator[str]:
    x, y = at[0] + _number(element, "x"), at[1] + _number(element, "y")
    width, height = _number(element, "width"), _number(element, "height")
    radius = _number(element, "rx")
    corners = f", rounded corners={0.75 * radius:g}pt" if radius else ""
    right, bottom = x + width, y + height
    yield f"\\path[{_options(style, '#000')}{corners}] ({x:g},{y:g}) rectangle ({right:g},{bottom:g});"


def _line(element: Element, style: Style, at: tuple[float, float]) -> Iterator[str]:
    ends = [
        f"({at[0] + _number(element, f'x{end}'):g},{at[1] + _number(element, f'y{end}'):g})" for end in (1, 2)
    ]
    yield f"\\path[{_options({**style, 'fill': 'none'})}] {' -- '.join(ends)};"


def _polygon(element: Element, style: Style, at: tuple[float, float]) -> Iterator[str]:
    pairs = (pair.split(",") for pair in element.get("points", "").split())
    points = [f"({at[0] + float(x):g},{at[1] + float(y):g})" for x, y in pairs]
    yield f"\\path[{_options(style, '#000')}] {' -- '.join([*points, 'cycle'])};"


def _path(element: Element, style: Style, at: tuple[float, float]) -> Iterator[str]:
    head = ", -stealth" if element.get("marker-end") else ""
    moved = f"[shift={{({at[0]:g},{at[1]:g})}}] " if at != (0.0, 0.0) else ""
    yield f"\\path[{_options(style, '#000')}{head}] {moved}svg {{{element.get('d', '')}}};"


def _text(element: Element, style: Style, at: tuple[float, float]) -> Iterator[str]:
    words = (element.text or "").translate(_SPECIAL)
    x, y = at[0] + _number(element, "x"), at[1] + _number(element, "y")
    size = 0.75 * float(style.get("font-size", "12").removesuffix("px"))
    bold = "\\bfseries" if style.get("font-weight", "normal") not in ("normal", "400") else ""
    colour = f", text={_colour(style['fill'])}" if style.get("fill", "none") != "none" else ""
    anchor = _ANCHORS[style.get("text-anchor", "start")]
    font = f"font=\\{style['face']}family{bold}\\fontsize{{{size:g}}}{{{1.2 * size:g}}}\\selectfont"
    yield f"\\node[anchor={anchor}, inner sep=0pt{colour}, {font}] at ({x:g},{y:g}) {{{words}}};"


_COMMANDS: Mapping[str, Callable[[Element, Style, tuple[float, float]], Iterator[str]]] = {
    "rect": _rect,
    "line": _line,
    "polygon": _polygon,
    "path": _path,
    "text": _text,
}
