"""The commonest of many numbers. Knows nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]


def mode(values: Numbers) -> int:
    """Return the commonest value, the least of those that are equally common."""
    flat = values.reshape(-1)
    for likely in (flat[0], np.partition(flat, flat.size // 2)[flat.size // 2]):  # a majority is the median
        if 2 * np.count_nonzero(flat == likely) > flat.size:
            return int(likely)
    different, counts = np.unique(flat, return_counts=True)
    return int(different[counts.argmax()])


def modes_of_rows(values: Numbers, known: npt.NDArray[np.bool_], none: int) -> npt.NDArray[np.int64]:
    """Return ``(n,)``: the mode of what is known of each row of ``(n, m)``, ``none`` where nothing is."""
    least = np.where(known, values, np.iinfo(np.int64).max).min(axis=1, initial=np.iinfo(np.int64).max)
    most = np.where(known, values, np.iinfo(np.int64).min).max(axis=1, initial=np.iinfo(np.int64).min)
    found: npt.NDArray[np.int64] = np.where(least > most, none, least)
    for row in np.flatnonzero(least < most):
        found[row] = mode(values[row][known[row]])
    return found
