"""Layouts: which matrix element each (lane, value) of a warp holds.

Knows maps, their inverses and their index arrays. Does not know registers, formats or PTX. A layout
is a formula, never a list: ``(lane, value) -> (row, column)``, where ``value`` counts the elements
that one lane holds, lowest register and lowest bits first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.intp]
Formula = Callable[[Any, Any], tuple[Any, Any]]  # on integers and on integer arrays alike


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A bijection ``(lane, value) -> (row, column)`` between a warp and a matrix."""

    lanes: int
    values: int
    rows: int
    columns: int
    formula: Formula

    def __post_init__(self) -> None:
        places = self.row_index * self.columns + self.column_index
        if not np.array_equal(np.sort(places, axis=None), np.arange(self.rows * self.columns)):
            raise AssertionError(f"not a bijection onto {self.rows}x{self.columns}")

    def __call__(self, lane: int, value: int) -> tuple[int, int]:
        """``(row, column)`` of one value of one lane."""
        row, column = self.formula(lane, value)
        return int(row), int(column)

    @cached_property
    def _index(self) -> tuple[Indices, Indices]:
        lane, value = np.indices((self.lanes, self.values))
        row, column = self.formula(lane, value)
        shape = lane.shape
        return np.broadcast_to(row, shape), np.broadcast_to(column, shape)

    @property
    def row_index(self) -> Indices:
        """``(lanes, values)``: the row of each value."""
        return self._index[0]

    @property
    def column_index(self) -> Indices:
        """``(lanes, values)``: the column of each value."""
        return self._index[1]

    @cached_property
    def inverse(self) -> Indices:
        """``(rows, columns)``: ``lane * values + value`` of each matrix element."""
        places = np.empty((self.rows, self.columns), np.intp)
        places[self.row_index, self.column_index] = np.arange(self.lanes * self.values).reshape(
            self.lanes, self.values
        )
        return places

    def distribute(self, matrix: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """``(..., rows, columns)`` to ``(..., lanes, values)``."""
        flat = matrix.reshape(*matrix.shape[:-2], self.rows * self.columns)
        return flat.take(self.row_index * self.columns + self.column_index, -1)

    def collect(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """``(..., lanes, values)`` to ``(..., rows, columns)``; the inverse of distribute."""
        return values.reshape(*values.shape[:-2], self.lanes * self.values).take(self.inverse, -1)
