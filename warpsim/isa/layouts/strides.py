"""Extents and strides: an index as mixed-radix digits, each of which moves along the coordinates.

A *mode* is one digit: its extent and the step that each unit of it adds to every coordinate, as in a
CuTe layout whose strides are tuples. The digits of an index come fastest first, and the slowest takes
what is left of the index. Does not know what indices and coordinates mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.intp]


class Mode(NamedTuple):
    """One digit of an index: its extent, and what each unit of it adds to every coordinate."""

    extent: int
    steps: tuple[int, ...]

    def along(self, coordinate: int) -> int:
        """Return the step along one coordinate."""
        return self.steps[coordinate]


Modes = tuple[Mode, ...]


class Digit(NamedTuple):
    """A mode with its place value, and whether it is the slowest digit of its index."""

    value: int
    mode: Mode
    slowest: bool


def modes(*digits: tuple[int, tuple[int, ...]]) -> Modes:
    """Return the modes of ``(extent, steps)``, fastest first, without those of extent 1."""
    return tuple(Mode(extent, steps) for extent, steps in digits if extent > 1)


def extent(digits: Iterable[Mode]) -> int:
    """Return how many indices the modes have."""
    return prod(mode.extent for mode in digits)


def points(digits: Iterable[Mode], coordinates: int) -> Indices:
    """Return ``(indices, coordinates)``: what every index adds to the coordinates."""
    total = np.zeros((1, coordinates), np.intp)
    for mode in digits:
        moved = np.arange(mode.extent)[:, None, None] * np.array(mode.steps)
        total = (total + moved).reshape(-1, coordinates)
    return total


def placed(digits: Sequence[Mode]) -> Iterator[Digit]:
    """Yield every digit with its place value."""
    value = 1
    for number, mode in enumerate(digits):
        yield Digit(value, mode, number == len(digits) - 1)
        value *= mode.extent


def joined(digits: Iterable[Mode]) -> Modes:
    """Return the same layout in as few modes as possible: a mode that continues the last is joined to it."""
    found: list[Mode] = []
    for mode in digits:
        last = found[-1] if found else None
        if last and mode.steps == tuple(last.extent * step for step in last.steps):
            found[-1] = Mode(last.extent * mode.extent, last.steps)
        else:
            found.append(mode)
    return tuple(found)
