"""What the wrong elements of an output are, found by value: unwritten, moved, shifted, scaled.

A relation is read off a few wrong elements and holds only if it gives every wrong element (as exactly as the
output is compared). Does not know kernels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ....programs.launch.array_agreement import agree
from .output_errors import OutputError

Array = npt.NDArray[Any]

_SAMPLE = 64  # wrong elements that are looked up
_LEAST = 4  # elements of a line that give its factor
_LARGE = 0.05  # of the largest: smaller elements are too inexact for a factor
_PRECISE = 2.0**-6
_FOLLOW = 0.98  # of wrong elements with a source inside the output that a move has to give


def relations(error: OutputError, before: Array) -> Iterator[str]:
    """Yield sentences on the wrong elements; ``before`` is the output before the launch."""
    for describe in (_unwritten, _special, _shifted, _scaled, _lines_scaled):
        if text := describe(error, before):
            yield text
            return
    if text := _moved(error):
        yield text


def _unwritten(error: OutputError, before: Array) -> str:
    given = error.given[error.wrong]
    if given.tobytes() != np.ascontiguousarray(before[error.wrong]).tobytes():
        return ""
    return "the wrong elements are as they were before the launch: they are never written, or written alike"


def _special(error: OutputError, before: Array) -> str:
    with np.errstate(invalid="ignore"):
        given = error.given[error.wrong].astype(np.float64)
    if np.isnan(given).all():
        return "the wrong elements are NaN"
    if np.isinf(given).all():
        return "the wrong elements are Inf"
    return "the wrong elements are zero" if not given.any() else ""


def _shifted(error: OutputError, before: Array) -> str:
    x, y = _numbers(error)
    by = _common(x - y, np.abs(y) + np.abs(x))
    return "" if by is None or not by else f"every wrong element is too large by {by:.6g}"


def _scaled(error: OutputError, before: Array) -> str:
    x, y = _numbers(error)
    if not y.size or (y == 0).any():
        return ""
    by = _common(x / y, np.abs(x / y))
    if by is None or abs(by - 1) < _PRECISE:
        return ""  # a difference of rounding, or of the last digits, has no factor
    return f"every wrong element is {by:.6g} times what is expected"


def _lines_scaled(error: OutputError, before: Array) -> str:
    """Describe rows, or columns, that have a factor each."""
    if error.wrong.ndim != 2 or min(error.wrong.shape) < _LEAST:
        return ""
    given, expected = (x.astype(np.float64) for x in (error.given, error.expected))
    large = np.abs(expected) > _LARGE * np.abs(expected).max(initial=0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(large, given / expected, np.nan)
    for name, axis in (("row", 1), ("column", 0)):
        enough = large.sum(axis=axis) >= _LEAST
        if not enough.all() or not np.isfinite(ratios[large]).all():
            continue
        factors = np.nanmedian(ratios, axis=axis)
        spread = np.nanmax(np.abs(ratios - np.expand_dims(factors, axis)), axis=axis)
        if (spread <= _PRECISE * np.abs(factors)).all() and np.ptp(factors) > _PRECISE:
            first, last = float(factors.min()), float(factors.max())
            return (
                f"every {name} has a factor of its own, from {first:.4g} to {last:.4g} times what is expected"
            )
    return ""


def _numbers(error: OutputError) -> tuple[Array, Array]:
    pairs = (x[error.wrong].astype(np.float64) for x in (error.given, error.expected))
    x, y = pairs
    finite = np.isfinite(x) & np.isfinite(y)
    return (x[finite], y[finite]) if finite.all() else (x[:0], y[:0])


def _common(values: Array, sizes: Array) -> float | None:
    """Return the median of values, if all are as near to it as rounding to f16 or bf16 may leave them."""
    if values.size < 2:
        return None
    middle = float(np.median(values))
    return middle if (np.abs(values - middle) <= 2.0**-7 * np.abs(middle) + 2.0**-20 * sizes).all() else None


# --- moved elements --------------------------------------------------------------------------------


def _moved(error: OutputError) -> str:
    """Describe wrong elements that are what other places should hold, by a move that most follow."""
    if error.wrong.ndim != 2:
        return ""
    places = np.argwhere(error.wrong)
    sources = _sources(error, places[:: max(1, len(places) // _SAMPLE)][:_SAMPLE])
    for name, move in _moves(sources):
        if _gives(error, places, move):
            return f"{error.name}[r, c] holds what belongs to {name}"
    return ""


def _sources(error: OutputError, places: Array) -> list[tuple[int, int, int, int]]:
    """Return places and where alone their values are expected: row, column, row and column of the source."""
    flat = error.expected.reshape(-1)
    found = []
    for row, column in places.tolist():
        hits = np.flatnonzero(
            agree(np.broadcast_to(error.given[row, column], flat.shape), flat, error.tolerance)
        )
        if len(hits) == 1:
            other = divmod(int(hits[0]), error.expected.shape[1])
            found.append((row, column, *other))
    return found


Move = Callable[[Array, Array], tuple[Array, Array]]


def _moves(sources: list[tuple[int, int, int, int]]) -> Iterator[tuple[str, Move]]:
    """Yield transposition, the commonest offsets and the commonest exchanges by xor."""
    if not sources:
        return
    yield "[c, r]: it is transposed", lambda r, c: (c, r)
    offsets = Counter((y - r, x - c) for r, c, y, x in sources).most_common(2)
    exchanges = Counter((r ^ y, c ^ x) for r, c, y, x in sources).most_common(2)
    for (down, right), _ in offsets:
        yield f"[{_sum('r', down)}, {_sum('c', right)}]", _offset(down, right)
    for (rows, columns), _ in exchanges:
        yield f"[{_xor('r', rows)}, {_xor('c', columns)}]", _exchange(rows, columns)


def _offset(down: int, right: int) -> Move:
    return lambda rows, columns: (rows + down, columns + right)


def _exchange(down: int, right: int) -> Move:
    return lambda rows, columns: (rows ^ down, columns ^ right)


def _sum(name: str, by: int) -> str:
    return name if not by else f"{name} {'+-'[by < 0]} {abs(by)}"


def _xor(name: str, by: int) -> str:
    return name if not by else f"{name} xor {by}"


def _gives(error: OutputError, places: Array, move: Move) -> bool:
    """Return whether a move gives the wrong elements, but for few."""
    rows, columns = move(places[:, 0], places[:, 1])
    inside = (
        (rows >= 0) & (columns >= 0) & (rows < error.expected.shape[0]) & (columns < error.expected.shape[1])
    )
    if inside.sum() < max(2, len(places) // 2):
        return False
    given = error.given[places[inside, 0], places[inside, 1]]
    fits = agree(given, error.expected[rows[inside], columns[inside]], error.tolerance)
    return bool(fits.mean() >= _FOLLOW)
