"""Where D is wrong: the shape of the set of wrong elements, in rows and columns or in lanes and registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from ....isa.instruction import Instruction

Mask = Any  # npt.NDArray[np.bool_], which its own methods do not return


@dataclass(frozen=True, kw_only=True)
class Wrong:
    """The wrong elements of D over all tiles.

    ``rows`` and ``columns`` (of products stacked along the rows) have a wrong element, and so have
    ``lanes`` and ``registers``. ``text`` describes the set as simply as it can be.
    """

    count: int
    total: int
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    lanes: tuple[int, ...]
    registers: tuple[int, ...]
    text: str

    def __str__(self) -> str:
        return self.text


def wrong_elements(instruction: Instruction, mask: Mask) -> Wrong:
    """Return the pattern of a mask ``(tiles, lanes * registers * slots)`` in the order of the registers."""
    held = instruction.in_registers("d")
    layout = held.layout
    anywhere = mask.any(axis=0).reshape(layout.lanes, -1)
    matrix = layout.collect(anywhere)
    words = anywhere.reshape(*held.shape, -1)
    return Wrong(
        count=int(mask.sum()),
        total=mask.size,
        rows=_where(matrix.any(axis=1)),
        columns=_where(matrix.any(axis=0)),
        lanes=_where(anywhere.any(axis=1)),
        registers=_where(words.any(axis=(0, 2))),
        text=_text(matrix, words),
    )


def _where(flags: Mask) -> tuple[int, ...]:
    return tuple(int(index) for index in np.flatnonzero(flags))


def _text(matrix: Mask, words: Mask) -> str:
    """Return the first description that fits exactly, or else the rows and columns concerned."""
    if not matrix.any():
        return "nothing wrong"
    if matrix.all():
        return "every element wrong"
    candidates: tuple[tuple[Mask, tuple[str, str]], ...] = (
        (matrix, ("row", "column")),
        (words.any(axis=2), ("lane", "register")),
        (words.any(axis=0), ("register", "half")),
    )
    for mask, axes in candidates:
        if _is_product(mask) and mask.sum() * (matrix.size // mask.size) == matrix.sum():
            return _product_text(mask, axes)
    part = f"{int(matrix.sum())} of {matrix.size} elements wrong"
    return f"{part}, in {_axis_text(matrix.any(axis=1), 'row')}, {_axis_text(matrix.any(axis=0), 'column')}"


def _is_product(mask: Mask) -> bool:
    """Return whether a set is all combinations of some rows and some columns."""
    return bool((np.outer(mask.any(axis=1), mask.any(axis=0)) == mask).all())


def _product_text(mask: Mask, axes: tuple[str, str]) -> str:
    first, second = mask.any(axis=1), mask.any(axis=0)
    if second.all():
        return f"{_axis_text(first, axes[0])} wrong, {axes[1]}s all alike"
    if first.all():
        return f"{_axis_text(second, axes[1])} wrong, {axes[0]}s all alike"
    return f"{_axis_text(second, axes[1])} of {_axis_text(first, axes[0])} wrong"


def _axis_text(flags: Mask, name: str) -> str:
    if flags.all():
        return f"every {name}"
    indices = _where(flags)
    return f"{name}{'s'[: len(indices) != 1]} {ranges(indices)}"


def ranges(indices: Sequence[int]) -> str:
    """Return ``0-3, 8, 10-11``; a regular step as ``0, 4, ..., 28``."""
    steps = {after - before for before, after in pairwise(indices)}
    if len(indices) > 3 and len(steps) == 1 and steps != {1}:
        return f"{indices[0]}, {indices[1]}, ..., {indices[-1]}"
    parts = []
    for _, run in groupby(enumerate(indices), key=lambda pair: pair[1] - pair[0]):
        members = [index for _, index in run]
        parts.append(str(members[0]) if len(members) == 1 else f"{members[0]}-{members[-1]}")
    return ", ".join(parts)
