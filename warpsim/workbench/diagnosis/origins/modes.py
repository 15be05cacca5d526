"""The commonest of many numbers, and sums of what bits mostly add. Knows nothing else."""

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


def bits_of(count: int) -> Numbers:
    """Return ``(count, bits)``: the bits of the numbers below ``count``, lowest first."""
    return np.arange(count)[:, None] >> np.arange((count - 1).bit_length()) & 1


def sums_of_bits(values: Numbers, known: npt.NDArray[np.bool_], none: int) -> tuple[Numbers, Numbers]:
    """Return what each bit of the place mostly adds in rows ``(n, m)``, and the mode ``(n,)`` of the rest of
    what is known of each row, ``none`` where nothing is.
    """
    size = values.shape[1]
    bits = bits_of(size)
    steps = np.array([_step(values, known, bit) for bit in range(bits.shape[1])], np.int64)
    rest, ends = values - bits @ steps, np.iinfo(np.int64)
    least = np.where(known, rest, ends.max).min(axis=1, initial=ends.max)
    most = np.where(known, rest, ends.min).max(axis=1, initial=ends.min)
    base = np.where(least > most, none, least)
    for row in np.flatnonzero(least < most):
        base[row] = mode(rest[row][known[row]])
    return steps, base


def _step(values: Numbers, known: npt.NDArray[np.bool_], bit: int) -> int:
    count = values.shape[1] >> bit + 1 << bit + 1  # the others have no partner
    low, high, valid, partner = (
        part[:, :count].reshape(len(part), -1, 2, 1 << bit)[:, :, half]
        for part in (values, known)
        for half in (0, 1)
    )
    steps = (high - low)[valid & partner]
    return mode(steps) if steps.size else 0
