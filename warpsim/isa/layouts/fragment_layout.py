"""Fragment layouts: which matrix element each (lane, value) of a warp or warpgroup holds.

Knows extents and strides, the index arrays made of them, and their inverses. Does not know registers,
formats or PTX. The coordinates are row and column; ``value`` counts the elements that one lane holds,
lowest register and lowest bits first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .strides import Indices, Mode, Modes, extent, modes, points

ROW, COLUMN = 0, 1


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A bijection ``(lane, value) -> (row, column)``: the sum of what the digits of both indices add.

    ``lane_modes`` and ``value_modes`` have the steps ``(rows, columns)``. The independent products of one
    instruction are stacked along the rows.
    """

    lane_modes: Modes
    value_modes: Modes
    products: int = 1

    def __post_init__(self) -> None:
        elements = self.row_index * self.columns + self.column_index
        if not np.array_equal(np.sort(elements, axis=None), np.arange(self.rows * self.columns)):
            raise AssertionError(f"not a bijection onto {self.rows}x{self.columns}")

    @cached_property
    def lanes(self) -> int:
        """The lanes that hold the matrix."""
        return extent(self.lane_modes)

    @cached_property
    def values(self) -> int:
        """The elements in one lane."""
        return extent(self.value_modes)

    @cached_property
    def rows(self) -> int:
        """The rows of all products."""
        return self._size(ROW)

    @cached_property
    def columns(self) -> int:
        """The columns of the matrix."""
        return self._size(COLUMN)

    def _size(self, coordinate: int) -> int:
        digits = self.lane_modes + self.value_modes
        return 1 + sum((mode.extent - 1) * mode.along(coordinate) for mode in digits)

    def _coordinate(self, number: int) -> Indices:
        return points(self.lane_modes, 2)[:, None, number] + points(self.value_modes, 2)[:, number]

    @cached_property
    def row_index(self) -> Indices:
        """``(lanes, values)``: the row of each value."""
        return self._coordinate(ROW)

    @cached_property
    def column_index(self) -> Indices:
        """``(lanes, values)``: the column of each value."""
        return self._coordinate(COLUMN)

    @cached_property
    def inverse(self) -> Indices:
        """``(rows, columns)``: ``lane * values + value`` of each matrix element."""
        places = np.empty((self.rows, self.columns), np.intp)
        places[self.row_index, self.column_index] = np.arange(self.lanes * self.values).reshape(
            self.lanes, self.values
        )
        return places

    def distribute(self, matrix: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return ``(..., lanes, values)`` of ``(..., rows, columns)``."""
        flat = matrix.reshape(*matrix.shape[:-2], self.rows * self.columns)
        return flat.take(self.row_index * self.columns + self.column_index, -1)

    def collect(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return ``(..., rows, columns)`` of ``(..., lanes, values)``; the inverse of distribute."""
        return values.reshape(*values.shape[:-2], self.lanes * self.values).take(self.inverse, -1)


def separated(layout: Layout, digits: Modes) -> Modes:
    """Return digits of a layout with the steps ``(products, rows of a product, columns)``."""
    rows = layout.rows // layout.products
    return tuple(Mode(mode.extent, (*divmod(mode.along(ROW), rows), mode.along(COLUMN))) for mode in digits)


# --- the layouts of mma and wgmma ------------------------------------------------------------------


def row_fragment(*, lanes: int, values: int, width: int, halves: int) -> Layout:
    """Return the layout of A, C or D: ``width`` neighbours of a row fill a register.

    Digits of the lane: threadID_in_group, groupID and the warp of a warpgroup, which holds 16 rows.
    Registers run over the ``halves`` of 8 rows first, then along the columns. PTX ISA 9.1, sections
    9.7.14.5, 9.7.14.6 and 9.7.15.5.1.1.
    """
    return Layout(
        lane_modes=modes((4, (0, width)), (8, (1, 0)), (lanes // 32, (16, 0))),
        value_modes=modes((width, (0, 1)), (halves, (8, 0)), (values // (width * halves), (0, 4 * width))),
    )


def column_fragment(*, values: int, width: int) -> Layout:
    """Return the layout of B: ``width`` neighbours of a column fill a register."""
    return Layout(
        lane_modes=modes((4, (width, 0)), (8, (0, 1))),
        value_modes=modes((width, (1, 0)), (values // width, (4 * width, 0))),
    )


# m8n8k4 f16 (PTX ISA 9.1, section 9.7.14.5.1): lanes 4q..4q+3 and 4q+16..4q+19 form the independent product
# q. Product q lies at rows 8q.. (A, C, D) or 4q.. (B) of the four stacked products. By operand, and by the
# order of A and B or the type of C and D.
_HALF_ROWS = (modes((4, (1, 0)), (4, (8, 0)), (2, (4, 0))), modes((8, (0, 1))))
_SINGLE_ROWS = (
    modes((2, (1, 0)), (2, (0, 2)), (4, (8, 0)), (2, (4, 0))),
    modes((2, (0, 1)), (2, (2, 0)), (2, (0, 4))),
)
_QUADS: dict[tuple[str, str], tuple[Modes, Modes]] = {
    #               lane: fastest digit, product, half of 16 lanes      value
    ("a", "row"): (modes((4, (1, 0)), (4, (8, 0)), (2, (4, 0))), modes((4, (0, 1)))),
    ("a", "col"): (modes((4, (0, 1)), (4, (8, 0)), (2, (4, 0))), modes((4, (1, 0)))),
    ("b", "row"): (modes((4, (1, 0)), (4, (4, 0)), (2, (0, 4))), modes((4, (0, 1)))),
    ("b", "col"): (modes((4, (0, 1)), (4, (4, 0)), (2, (0, 4))), modes((4, (1, 0)))),
    ("c", "f16"): _HALF_ROWS,
    ("d", "f16"): _HALF_ROWS,
    ("c", "f32"): _SINGLE_ROWS,
    ("d", "f32"): _SINGLE_ROWS,
}  # fmt: skip


def quad_fragment(operand: str, order: str) -> Layout:
    """Return the layout of an operand of m8n8k4 f16, whose four products are stacked along the rows."""
    lane_modes, value_modes = _QUADS[operand, order]
    return Layout(lane_modes=lane_modes, value_modes=value_modes, products=4)
