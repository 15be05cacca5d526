"""Marks of the bytes of an access: several together, as wide as the words allow, against each byte."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warpsim.machine.state.memory_access import MemoryAccess


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16, 32])
def test_marks_of_words(size: int) -> None:
    random = np.random.default_rng(size)
    table = (random.random(512) < 0.1).astype(np.uint8) * 255
    offsets = random.permutation(512 // size)[:10].astype(np.int64) * size
    no_lanes: Any = None
    access = MemoryAccess(no_lanes, no_lanes, table, offsets, size)
    marks, places = access.marks_in(table)
    assert np.array_equal((marks[places] != 0).any(axis=1), (table[access.cells] != 0).any(axis=1))
    marks[places] = 0
    assert not table[access.cells].any()
    assert table.sum() // 255 == (np.delete(table, access.cells.reshape(-1)) != 0).sum()
