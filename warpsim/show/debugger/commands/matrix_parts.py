"""Parts of matrices as commands name them, ``[0:8,16:32]`` or ``[3,5]``, and their cells as text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ....base.errors import OperandError
from ....base.text_columns import numbers

_SPELLING = re.compile(r"\[\s*(\d{1,6})(?::(\d{1,6}))?\s*,\s*(\d{1,6})(?::(\d{1,6}))?\s*\]")
_COLUMNS = 8  # of a matrix, side by side


@dataclass(frozen=True, kw_only=True)
class Part:
    """Rows and columns of a matrix; ``single`` where a text names an element."""

    rows: range
    columns: range
    single: bool = False


def split_part(text: str) -> tuple[str, str]:
    """Return what stands before brackets, and the brackets."""
    name, bracket, rest = text.partition("[")
    return name.strip(), bracket + rest.strip()


def part_of(text: str, shape: tuple[int, int], default: Part) -> Part:
    """Return the part that brackets name, the default without them. Raises OperandError."""
    if not text:
        return default
    match = _SPELLING.fullmatch(text)
    if match is None:
        raise OperandError(f"{text}: expected an element, as in [3,5], or a part, as in [0:8,16:32]")
    row, row_end, column, column_end = (None if each is None else int(each) for each in match.groups())
    assert row is not None
    assert column is not None
    rows = range(row, min(row_end, shape[0]) if row_end is not None else row + 1)
    columns = range(column, min(column_end, shape[1]) if column_end is not None else column + 1)
    if not rows or not columns or rows[-1] >= shape[0] or columns[-1] >= shape[1]:
        raise OperandError(f"{text} is outside of {shape[0]} x {shape[1]} elements")
    return Part(rows=rows, columns=columns, single=row_end is None and column_end is None)


def grid(part: Part, cell: Callable[[int, int], str]) -> list[str]:
    """Return the cells of a part with row and column numbers, some columns side by side."""
    lines = list[str]()
    for start in range(0, len(part.columns), _COLUMNS):
        columns = part.columns[start : start + _COLUMNS]
        rows = [[str(row), *(cell(row, column) for column in columns)] for row in part.rows]
        lines += numbers([["", *map(str, columns)], *rows])
    return lines


def rest_of(part: Part, shape: tuple[int, int], command: str) -> list[str]:
    """Return how the rest is printed, if there is a rest."""
    if len(part.rows) == shape[0] and len(part.columns) == shape[1]:
        return []
    return [f"of {shape[0]} x {shape[1]}: {command}[0:{shape[0]},0:{shape[1]}] prints all"]
