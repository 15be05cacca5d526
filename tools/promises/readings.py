"""How figures are read from what tools wrote or printed: a table's numbers, a sentence, a line.

Knows Markdown tables, tables of columns and text. A text without what is looked for has no figures: None.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

Reading = Callable[[str], str | None]
Rows = list[dict[str, str]]  # heading -> cell


def sentence(pattern: str, says: str = "{0}") -> Reading:
    """Return a reading of the pattern's groups as ``says`` has them, on one line and without emphasis."""

    def read(text: str) -> str | None:
        found = re.search(pattern, text)
        return " ".join(says.format(*found.groups()).replace("**", "").split()) if found else None

    return read


def total(row: str) -> Reading:
    """Return a reading of the first Markdown row that begins so, cells before headings: ``422 reported``."""

    def read(text: str) -> str | None:
        found = next((one for one in _markdown(text) if next(iter(one.values())) == row), None)
        if found is None:
            return None
        cells = [
            (cell, heading) for heading, cell in list(found.items())[1:] if re.fullmatch(r"[\d,]+", cell)
        ]
        return ", ".join(f"{cell} {heading}" for cell, heading in cells) or None

    return read


def sums(*headings: str, markdown: bool = False, of: str) -> Reading:
    """Return a reading of the sums of columns, and of how many rows: ``9 targets: 17,526 statements``."""

    def read(text: str) -> str | None:
        rows = [row for row in (_markdown if markdown else _columns)(text) if _has(row, headings)]
        if not rows:
            return None
        parts = (f"{sum(_number(row[one]) for row in rows):,} {one}" for one in headings)
        return f"{len(rows)} {of}: {', '.join(parts)}"

    return read


def _has(row: dict[str, str], headings: tuple[str, ...]) -> bool:
    return all(re.fullmatch(r"[\d,]+", row.get(one, "")) for one in headings)


def _number(cell: str) -> int:
    return int(cell.replace(",", ""))


def _markdown(text: str) -> Iterator[dict[str, str]]:
    """Yield the rows of all Markdown tables, under their headings."""
    headings: list[str] = []
    for line in text.splitlines():
        if not line.startswith("|"):
            headings = []
            continue
        cells = [cell.strip() for cell in line.strip("| ").split("|")] if not headings else _cells(line)
        if not headings:
            headings = cells
        elif set(line) - set("|-: ") and len(cells) == len(headings):
            yield dict(zip(headings, cells, strict=True))


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


def _columns(text: str) -> Iterator[dict[str, str]]:
    """Yield rows of tables whose columns stand below headings, two spaces apart; the last heading counts."""
    headings: list[str] = []
    for line in text.splitlines():
        cells = line.split()
        if cells and not any(map(str.isdecimal, cells)):
            headings = cells
        elif len(cells) == len(headings):
            yield dict(zip(headings, cells, strict=True))
