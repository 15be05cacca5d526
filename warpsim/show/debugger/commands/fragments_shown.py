"""An operand of a matrix instruction at a statement, as commands and editors show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Key = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Fragment:
    """An operand at a statement: its elements as text by row and column, and where each lies.

    ``lanes`` are those whose registers, or cells of tensor memory, hold an element; none in shared memory.
    """

    title: str
    shape: tuple[int, int]
    values: Mapping[Key, str]
    holders: Mapping[Key, str]
    details: Mapping[Key, str]
    lanes: Mapping[Key, int]
