"""Indices as slices, and which are none."""

from __future__ import annotations

import numpy as np
import pytest

from warpsim.observe.checks.index_runs import in_a_row


@pytest.mark.parametrize("indices", [[], [4], [4, 5], [4, 6], [0, 1, 2], [0, 2, 3], [[4, 5], [6, 7]]])
def test_a_slice_has_what_the_indices_have(indices: list[object]) -> None:
    of, given = np.arange(100, 110), np.array(indices, np.int64)
    found = in_a_row(given)
    assert isinstance(found, slice) == (given.size > 0 and given.tolist() in ([4], [4, 5], [0, 1, 2]))
    assert of[found].tolist() == of[given].tolist()
