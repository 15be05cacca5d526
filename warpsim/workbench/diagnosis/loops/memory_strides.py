"""Matrices in memory at another distance between rows, or in another order: A and B as read, C as added, D as
stored.

Knows addresses; does not know instructions. What lies between rows, and beyond the end, counts as zero for
what is read, and as not known for what was stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[Any]
_PADS = (1, 2, 4, *range(8, 136, 8))
_KNOWN = 0.5  # of a stored D: so much must be D's


class Strides(NamedTuple):
    """Rows lie ``stored`` elements apart, and are taken to lie ``read`` apart."""

    stored: int
    read: int

    def __str__(self) -> str:
        return (
            f"read with a stride (leading dimension) of {self.read} elements, but stored with {self.stored}"
        )


def strides_of(columns: int, others: tuple[int, ...] = ()) -> Iterator[Strides]:
    """Yield strides that are confused, of rows with so many columns; ``others`` are sizes of the product."""
    wide = 1 << max(0, columns - 1).bit_length()
    sizes = dict.fromkeys([*(columns + pad for pad in _PADS), wide, *others])
    for size in (size for size in sizes if size > columns):
        yield Strides(size, columns)
        yield Strides(columns, size)
    for size in dict.fromkeys([*(columns - pad for pad in _PADS), *others]):
        if 0 < size < columns:
            yield Strides(columns, size)


def read_at(values: Values, strides: Strides) -> Values:
    """Return ``(rows, columns)`` as they are read; zero between rows and beyond the end."""
    rows, columns = values.shape
    row, column = np.divmod(np.arange(rows)[:, None] * strides.read + np.arange(columns), strides.stored)
    inside = (row < rows) & (column < columns)
    found = values[np.minimum(row, rows - 1), np.minimum(column, columns - 1)]
    read: Values = np.where(inside, found, found.dtype.type(0))
    return read


def in_other_order(values: Values) -> Iterator[tuple[str, Values]]:
    """Yield a matrix in memory with the axes exchanged, as it is read."""
    rows, columns = values.shape
    if rows == columns:
        yield "transposed (row-major against column-major)", values.T
        return
    yield "read column-major but stored row-major", values.reshape(-1).reshape(columns, rows).T
    yield "read row-major but stored column-major", values.T.reshape(-1).reshape(rows, columns)


# --- C ---------------------------------------------------------------------------------------------------


def other_c(c: Values, sizes: tuple[int, int]) -> Iterator[tuple[str, Values]]:
    """Yield what may be added in place of C: its name, and the values; ``sizes`` are those of a tile."""
    yield from ((f"C is {text}", values) for text, values in in_other_order(c))
    yield from _biases(c)
    yield from ((f"C is {strides}", read_at(c, strides)) for strides in strides_of(c.shape[1]))
    for axis, name in ((0, "row"), (1, "column")):
        for count in (1, 2, 4, 8):
            by = sizes[axis] * count
            for step in (by, -by) if by < c.shape[axis] else ():
                moved = np.roll(c, -step, axis=axis)
                yield f"C is taken {abs(step)} {name}s {'further' if step > 0 else 'before'}", moved


def _biases(c: Values) -> Iterator[tuple[str, Values]]:
    """Yield the bias of the columns added to the rows, and the other way round."""
    m, n = c.shape
    if (c == c[:1]).all() and n > 1 and m > 1:
        wrong = np.broadcast_to(c[0, np.arange(m) % n][:, None], c.shape)
        yield "C is a bias for each column, and is added to the rows: row i gets that of column i", wrong
    elif (c == c[:, :1]).all() and n > 1:
        wrong = np.broadcast_to(c[np.arange(n) % m, 0], c.shape)
        yield "C is a bias for each row, and is added to the columns: column j gets that of row j", wrong


# --- D ---------------------------------------------------------------------------------------------------


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
