"""The formula that most elements of an operand follow: row and column as sums over CTA, warp and step.

Every coefficient is the commonest difference between executions that differ in one thing only, so that a
few that are wrong do not change it. Knows tiles; does not know what they should be.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from .anchors import Anchored
from .loaded_operands import mode
from .tags import Indices

_VARIABLES = ("ctaid.x", "ctaid.y", "ctaid.z", "warp", "step")
_WARP = 3


def formulas_of(found: Anchored | None) -> Iterator[str]:
    """Yield sentences as "row 64 * ctaid.y + 16 * warp + r, column 32 * step + c: 99.8 % of elements"."""
    if found is None:
        return
    tiles, operand = found.tiles, found.tiles.operand
    known = np.flatnonzero(~found.empty)
    outer, inner = (_fitted(axis[known], operand.places[known]) for axis in (found.outer, found.inner))
    share = _share(found, known, outer[1], inner[1])
    terms = {tiles.outer_axis: (outer[0], "nr"[tiles.operand.role != "b"]), tiles.inner_axis: (inner[0], "k")}
    if tiles.operand.role == "c":
        terms = {"rows": (outer[0], "r"), "columns": (inner[0], "c")}
    row, column = (_sum([*terms[axis][0], terms[axis][1]]) for axis in ("rows", "columns"))
    yield f"row = {row}, column = {column} ({share:.1%} of the elements that are moved)"


def _fitted(values: Indices, places: npt.NDArray[np.int64]) -> tuple[list[str], Indices]:
    """Return the terms of a sum that most values follow, and what it gives for each."""
    terms, sums = list[str](), np.zeros(len(values), np.int64)
    for axis, name in enumerate(_VARIABLES):
        digits = range(int(places[:, axis].max()).bit_length()) if axis == _WARP else [None]
        factors = [_factor(values, places, axis, bit) for bit in digits]
        terms += _terms(name, factors, axis == _WARP)
        for bit, factor in zip(digits, factors, strict=True):
            sums += factor * (places[:, axis] if bit is None else places[:, axis] >> bit & 1)
    first = mode(values - sums) if len(values) else 0
    return [*terms, *([str(first)] if first else [])], sums + first


def _factor(values: Indices, places: npt.NDArray[np.int64], axis: int, bit: int | None) -> int:
    """Return the commonest difference of values when one thing goes up by one, or one bit of it is set."""
    by = np.zeros(places.shape[1], np.int64)
    by[axis] = 1 if bit is None else 1 << bit
    number = {place: n for n, place in enumerate(map(tuple, places.tolist()))}
    pairs = [
        (n, number[tuple(value)])
        for n, value in enumerate((places + by).tolist())
        if tuple(value) in number and (bit is None or not places[n, axis] >> bit & 1)
    ]
    if not pairs:
        return 0
    low, high = np.array(pairs).T
    return mode(values[high] - values[low])


def _terms(name: str, factors: list[int], by_bits: bool) -> list[str]:
    """Return ``16 * warp``, or bit by bit where these do not double."""
    if not any(factors):
        return []
    if not by_bits or all(factor == factors[0] << bit for bit, factor in enumerate(factors)):
        return [_times(factors[0], name)]
    return [
        _times(factor, f"({name} / {1 << bit} % 2)" if bit else f"({name} % 2)")
        for bit, factor in enumerate(factors)
        if factor
    ]


def _times(factor: int, what: str) -> str:
    return what if factor == 1 else f"{factor} * {what}"


def _sum(terms: list[str]) -> str:
    return " + ".join(terms).replace("+ -", "- ")


def _share(found: Anchored, known: npt.NDArray[np.intp], outer: Indices, inner: Indices) -> float:
    """Return how many of the moved elements the sums give."""
    tiles = found.tiles
    _, rows, columns = tiles.outer.shape
    right = tiles.outer[known] == outer[:, None, None] + np.arange(rows)[:, None]
    right &= tiles.inner[known] == inner[:, None, None] + np.arange(columns)
    valid = tiles.valid[known]
    return float((right & valid).sum() / max(int(valid.sum()), 1))
