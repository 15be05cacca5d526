"""Figures as text: aligned boxes for any terminal, coloured by lane where there is colour.

Every box says in words which lane it belongs to; colour only repeats it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from colorsys import hls_to_rgb
from typing import NamedTuple

from ..layouts.figures import Cell, Figure

_SEPARATOR = " | "


class Piece(NamedTuple):
    """A piece of a line; ``lane`` is None where it has no colour."""

    text: str
    lane: int | None = None


def lane_colour(lane: int) -> str:
    """Return ``#rrggbb``, light enough for black text: a hue a group of four lanes, darker by thread."""
    group, thread = lane // 4 % 8, lane % 4
    red, green, blue = hls_to_rgb(group / 8, 0.88 - 0.07 * thread, 0.75)
    return f"#{round(255 * red):02x}{round(255 * green):02x}{round(255 * blue):02x}"


def figure_lines(figure: Figure, width: int | None = None) -> list[str]:
    """Return a figure as lines of plain text, in panels of as many columns as fit ``width`` (None: all)."""
    lines = ("".join(piece.text for piece in line).rstrip() for line in _lines(figure, width))
    return [figure.title, *lines]


def figure_markup(figure: Figure, width: int | None = None) -> list[str]:
    """Return the same lines in the markup of the rich library, each box on its lane's colour."""
    lines = ("".join(map(_markup, line)).rstrip() for line in _lines(figure, width))
    return [f"[bold]{escaped(figure.title)}[/]", *lines]


def _markup(piece: Piece) -> str:
    text = escaped(piece.text)
    return text if piece.lane is None else f"[black on {lane_colour(piece.lane)}]{text}[/]"


def escaped(text: str) -> str:
    """Return text as rich's markup spells it: brackets that could be tags, and backslashes before them."""
    return re.sub(r"(\\*)(\[[a-z#/@])", r"\1\1\\\2", text)


def _lines(figure: Figure, width: int | None) -> Iterator[list[Piece]]:
    label = max(map(len, [figure.corner, *figure.row_labels]))
    widths = figure.column_widths()
    for number, columns in enumerate(_panels(widths, label, width)):
        if number:
            yield []
        yield _line(
            figure.corner.ljust(label), [Piece(figure.column_labels[i].center(widths[i])) for i in columns]
        )
        for name, row in zip(figure.row_labels, figure.grid, strict=True):
            yield _line(name.rjust(label), [_piece(row[i], widths[i]) for i in columns])


def _panels(widths: Sequence[int], label: int, width: int | None) -> list[list[int]]:
    """Return the columns of each panel: as many as fit, at least one, and about as many in each."""
    columns = list(range(len(widths)))
    room = (width or 0) - label
    widest = max(widths) + len(_SEPARATOR)
    fitting = max(1, room // widest) if width else len(columns)
    count = -(-len(columns) // fitting)
    each = -(-len(columns) // count)
    return [columns[first : first + each] for first in range(0, len(columns), each)]


def _line(label: str, boxes: Sequence[Piece]) -> list[Piece]:
    line = [Piece(label)]
    for box in boxes:
        line += [Piece(_SEPARATOR), box]
    return line


def _piece(cell: Cell | None, width: int) -> Piece:
    return Piece(_text(cell).ljust(width), cell.lane if cell else None)


def _text(cell: Cell | None) -> str:
    return cell.text if cell else ""
