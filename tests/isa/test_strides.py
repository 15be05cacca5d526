"""Extents and strides: points, joined modes, and layouts that are not bijections."""

from __future__ import annotations

import numpy as np
import pytest

from warpsim.isa.layouts.field_layout import metadata_fields
from warpsim.isa.layouts.fragment_layout import Layout, column_fragment, row_fragment
from warpsim.isa.layouts.strides import Mode, extent, joined, modes, placed, points


def test_points_are_sums_of_digits() -> None:
    digits = modes((4, (0, 2)), (1, (9, 9)), (3, (10, 0)))
    assert [mode.extent for mode in digits] == [4, 3]
    expected = [(10 * (index // 4), 2 * (index % 4)) for index in range(12)]
    assert [tuple(point) for point in points(digits, 2).tolist()] == expected
    assert extent(digits) == 12
    assert points((), 2).tolist() == [[0, 0]]


def test_digits_have_their_place_value() -> None:
    found = [(digit.value, digit.slowest) for digit in placed(modes((4, (1,)), (8, (4,)), (2, (64,))))]
    assert found == [(1, False), (4, False), (32, True)]


@pytest.mark.parametrize(
    ("digits", "expected"),
    [
        ((), ()),
        (((4, (1,)), (8, (4,))), ((32, (1,)),)),
        (((4, (1,)), (8, (5,))), ((4, (1,)), (8, (5,)))),
        (((2, (1, 0)), (2, (2, 0)), (2, (0, 4))), ((4, (1, 0)), (2, (0, 4)))),
    ],
)
def test_modes_that_continue_each_other_are_joined(digits: tuple, expected: tuple) -> None:  # type: ignore[type-arg]
    found = joined(modes(*digits))
    assert found == tuple(Mode(*mode) for mode in expected)
    assert np.array_equal(
        points(found, 2 if digits[2:] else 1), points(modes(*digits), 2 if digits[2:] else 1)
    )


def test_layouts_are_bijections() -> None:
    with pytest.raises(AssertionError, match="not a bijection onto 4x1"):
        Layout(lane_modes=modes((4, (1, 0))), value_modes=modes((2, (0, 0))))


def test_extents_follow_from_modes() -> None:
    layout = row_fragment(lanes=128, values=24, width=4, halves=2)
    assert (layout.lanes, layout.values, layout.rows, layout.columns) == (128, 24, 64, 48)
    layout = column_fragment(values=6, width=2)
    assert (layout.lanes, layout.values, layout.rows, layout.columns) == (32, 6, 24, 8)


def test_fields_of_a_word_that_is_not_full() -> None:
    """Two chunks a row: the digit of the chunk in a word ends early."""
    layout = metadata_fields(rows=16, chunks=2, field_bits=4, element_bits=16, first_lane=1)
    assert layout.shape == (16, 2)
    assert layout.index[9].tolist() == [[5, 16], [5, 20]]
