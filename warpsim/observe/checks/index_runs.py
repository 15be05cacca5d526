"""Indices that follow each other, as slices: NumPy looks at a slice several times faster than at indices.

Does not know what is indexed.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt


def in_a_row(indices: npt.NDArray[Any]) -> npt.NDArray[Any] | slice:
    """Return ascending indices, each once, as a slice where they follow each other, else as they are.

    So are those of several axes, and none at all.
    """
    if indices.ndim != 1 or not indices.size or int(indices[-1]) - int(indices[0]) != indices.size - 1:
        return indices
    return slice(int(indices[0]), int(indices[-1]) + 1)
