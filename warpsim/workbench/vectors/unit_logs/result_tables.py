"""Tables of results: CSV, with tabs or semicolons too, with a header that names the columns.

A row is a result (``case,lane,register,value`` or ``case,row,column,value``), or a lane with all its
registers (``case,lane,d0,d1,d2,d3``; the columns of other operands are passed over).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path

from ..sets import VectorSet
from .simulator_lines import named_parts, take
from .unit_results import Collector, Line, UnitResults, digits_of, wrong

_REGISTER = re.compile(r"d\[?(\d{1,3})\]?")
_SEPARATORS = ",;\t"


def is_table(lines: Sequence[str]) -> bool:
    """Return whether the first line with content is a header that names a case."""
    header = _cells(next((line for line in lines if _content(line)), ""))
    return len(header) > 1 and "case" in named_parts(dict.fromkeys(header, "-"))


def read_table(path: Path, lines: Sequence[str], vectors: VectorSet) -> UnitResults:
    """Return the results in a table. Raises TraceError with the line."""
    collector, header = Collector(vectors=vectors), list[str]()
    for number, text in enumerate(lines, 1):
        if not _content(text):
            continue
        line, cells = Line(str(path), number, text), _cells(text)
        if not header:
            header = _checked(cells, line)
        elif len(cells) != len(header):
            raise wrong(line, f"{len(cells)} cells, but the header has {len(header)}")
        else:
            _row(collector, dict(zip(header, cells, strict=True)), line)
    missing = int((collector.known == 0).sum())
    note = f"the table lacks {missing:,} of {collector.d.size:,} registers of D; they are unknown"
    return collector.results(*([note] if missing else []))


def _content(line: str) -> str:
    return "" if line.lstrip().startswith(("#", "//")) else line.strip()


def _cells(line: str) -> list[str]:
    separator = max(_SEPARATORS, key=line.count)
    return [cell.strip() for cell in next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])]


def _checked(header: list[str], line: Line) -> list[str]:
    """Return the header, if its columns have place and value."""
    named = named_parts(dict.fromkeys(header, "-")).keys()
    wide = any(_REGISTER.fullmatch(name.lower()) for name in header)
    single = "value" in named and ({"lane", "register"} <= named or {"row", "column"} <= named)
    if "case" in named and (single or (wide and "lane" in named)):
        return header
    raise wrong(
        line,
        "expected columns case, lane, register, value; or case, row, column, value; or case, lane, d0, d1 …",
    )


def _row(collector: Collector, row: dict[str, str], line: Line) -> None:
    named = named_parts(row)
    if "value" in named:
        take(collector, named, line)
        return
    for name, cell in row.items():
        found = _REGISTER.fullmatch(name.lower())
        if found and cell:
            if (digits := digits_of(cell)) is None:
                raise wrong(line, f"{name}: {cell!r} is not a hexadecimal word", cell)
            take(collector, named | {"register": found[1], "value": digits}, line)
