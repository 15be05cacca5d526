"""Distinct entries that others name by their numbers, and modes as JSON-ready lists."""

from __future__ import annotations

import json
from typing import Any

from ....isa.layouts.strides import Modes, joined

Document = dict[str, Any]


class Table:
    """Distinct entries, each kept once; a form refers to an entry by its number."""

    def __init__(self) -> None:
        self.entries: list[Any] = []
        self._known: dict[str, int] = {}

    def number(self, entry: Any) -> int:
        """Return the number of an entry, which is added if it is new."""
        key = json.dumps(entry)
        if key not in self._known:
            self._known[key] = len(self.entries)
            self.entries.append(entry)
        return self._known[key]


def written(modes: Modes) -> list[list[int]]:
    """Return modes as ``[extent, step, step …]``, as few as possible."""
    return [[mode.extent, *mode.steps] for mode in joined(modes)]
