"""The right D in memory at another distance between rows, or in another order.

Knows addresses; does not know instructions. What lies between rows, and beyond the end, is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[Any]
_PADS = (1, 2, 4, *range(8, 136, 8))
_KNOWN = 0.5  # of a stored D: so much must be D's


def in_other_order(values: Values) -> Iterator[tuple[str, Values]]:
    """Yield a matrix in memory with the axes exchanged, as it is read."""
    rows, columns = values.shape
    if rows == columns:
        yield "transposed (row-major against column-major)", values.T
        return
    yield "read column-major but stored row-major", values.reshape(-1).reshape(columns, rows).T
    yield "read row-major but stored column-major", values.T.reshape(-1).reshape(rows, columns)


class StoredAt(NamedTuple):
    """A right D, stored at other addresses: the name, and the elements that it gives, where it gives any."""

    name: str
    codes: Values
    known: npt.NDArray[np.bool_]


def stored_d(expected: Values) -> Iterator[StoredAt]:
    """Yield the expected D as it would be found in memory ``(m, n)`` if it was stored at other addresses."""
    m, n = expected.shape
    for stride in dict.fromkeys([*(n + pad for pad in _PADS), m]):
        if stride > n:
            yield _stored(
                expected,
                stride,
                f"D is stored with a stride (leading dimension) of {stride} elements, not {n}",
            )
    whole = np.ones(expected.shape, np.bool_)
    for text, codes in in_other_order(expected):
        yield StoredAt(f"D is {text}", codes, whole)


def _stored(expected: Values, stride: int, name: str) -> StoredAt:
    m, n = expected.shape
    at = (np.arange(m)[:, None] * stride + np.arange(n)).reshape(-1)
    inside = at < m * n
    codes, known = np.zeros(m * n, expected.dtype), np.zeros(m * n, np.bool_)
    codes[at[inside]], known[at[inside]] = expected.reshape(-1)[inside], True
    return StoredAt(name, codes.reshape(m, n), known.reshape(m, n))


def found_in_memory(expected: Values, wanted: Values, same: Callable[[Values], Values]) -> Iterator[str]:
    """Yield how the right D was stored, if that gives every element of D that is known.

    ``same`` settles codes with those that are wanted. Nothing of a D of which few values differ.
    """
    if len(np.unique(expected)) < expected.size // 2:
        return
    for stored in stored_d(expected):
        if stored.known.mean() >= _KNOWN and (same(stored.codes) == wanted)[stored.known].all():
            yield stored.name
