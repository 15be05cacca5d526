"""Where a log of registers has the steps of an operand, and where it has one more than once.

Knows lines and names; does not know what the words are.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import NamedTuple

from .lane_logs import Cell, cells_of

_TILE = re.compile(r"^[\s#/]*tile\b", re.IGNORECASE | re.MULTILINE)  # a heading, which says what repeats


class Section(NamedTuple):
    """The registers of all lanes once: the step, how often they came before in it, first and last line."""

    step: int
    repeat: int
    first: int
    last: int


def sections(text: str, name: str, count: int) -> list[Section]:
    """Return the ``count`` sections of an operand in the order of steps; empty where no line has a lane.

    Words without a name are those of the operand where no word has its name.
    """
    cells = list(cells_of(text))
    own = [each for each in cells if each.name == name] or cells
    if not own:
        return []
    per_lane = max(1, sum(each.lane == own[0].lane for each in own) // count)
    seen: Counter[tuple[int, int, int | None]] = Counter()
    found: dict[tuple[int, int], Section] = {}
    for each in own:
        key = each.step, each.lane, each.register
        place = each.step, _repeat(each, seen[key], per_lane)
        seen[key] += 1
        before = found.get(place, Section(*place, each.line, each.line))
        found[place] = before._replace(first=min(before.first, each.line), last=max(before.last, each.line))
    return [found[place] for place in sorted(found)]


def _repeat(cell: Cell, before: int, per_lane: int) -> int:
    """Return how often the lane's registers were there, by how often this word's place was there before."""
    return before // per_lane if cell.register is None else before


def first_repeat(found: list[Section]) -> tuple[Section, Section] | None:
    """Return the first section that comes again in its step, and that which does."""
    return next((pair for pair in pairwise(found) if pair[0].step == pair[1].step), None)


def are_named(text: str, found: list[Section]) -> bool:
    """Return whether steps, or headings of tiles, say what the sections are."""
    return first_repeat(found) is None or bool(_TILE.search(text))
