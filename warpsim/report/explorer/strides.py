"""Layouts as extents and strides: what an index array says, in a few numbers that a page can evaluate.

A *mode* is ``[extent, step, step …]``: one digit of an index, fastest first, and what it adds to each
coordinate. Found by looking at the array, and evaluated against it at every point; an array that has no such
form is our bug. Does not know what the coordinates mean.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Mode = list[int]
Points = npt.NDArray[np.intp]  # (points, coordinates)


def modes_of(points: npt.ArrayLike) -> list[Mode]:
    """As few modes as will do for ``(points, coordinates)``, counted from the first point.

    The slowest digit may end early: 24 points are 16 and the first 8 of the next 16.
    """
    rest = np.asarray(points, np.intp)
    rest = rest - rest[0]
    modes: list[Mode] = []
    while len(rest) > 1:
        extent = _straight(rest, rest[1])
        modes.append([extent, *rest[1].tolist()])
        rest = rest[::extent]
    return modes


def _straight(points: Points, step: Points) -> int:
    """How many points follow one another by the same step."""
    expected = step * np.arange(len(points))[:, None]
    same = np.append((points == expected).all(axis=1), False)
    return int(np.argmin(same))


def points_of(modes: Sequence[Mode], coordinates: int) -> Points:
    """``(points, coordinates)``: what every index adds, with points behind the last; undoes modes_of."""
    total = np.zeros((1, coordinates), np.intp)
    for extent, *step in modes:
        digit = np.arange(extent)[:, None, None] * np.array(step)
        total = (total + digit).reshape(-1, coordinates)
    return total


def grid_modes(grid: npt.ArrayLike) -> tuple[list[Mode], list[Mode]]:
    """Modes of both axes of ``(first, second, coordinates)``, whose points are sums of one of each.

    The point at (0, 0) is counted from, and not part of them.
    """
    points = np.asarray(grid, np.intp)
    first, second = modes_of(points[:, 0]), modes_of(points[0])
    made = grid_of(first, second, points.shape) + points[0, 0]
    if not np.array_equal(made, points):
        raise AssertionError(f"no sum of {first} and {second}")
    return first, second


def grid_of(first: Sequence[Mode], second: Sequence[Mode], shape: Sequence[int]) -> Points:
    """``(first, second, coordinates)``, the shape: sums of the points of both; the inverse of grid_modes."""
    rows, columns, coordinates = shape
    return points_of(first, coordinates)[:rows, None] + points_of(second, coordinates)[:columns]
