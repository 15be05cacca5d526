"""Cells of text in columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Row = Sequence[str]


def words(rows: Sequence[Row]) -> list[str]:
    """Return lines of left-aligned columns."""
    return _lines(rows, str.ljust)


def numbers(rows: Sequence[Row]) -> list[str]:
    """Return lines of right-aligned columns."""
    return _lines(rows, str.rjust)


def _lines(rows: Sequence[Row], align: Callable[[str, int], str]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    cells = ([align(cell, width) for cell, width in zip(row, widths, strict=True)] for row in rows)
    return ["  ".join(row).rstrip() for row in cells]
