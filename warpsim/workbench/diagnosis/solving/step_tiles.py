"""Loops along k: which tiles were multiplied at which step, and with which weight, solved from D.

A row of tiles of D is ``sum of theta[s, u] * A_u B_s`` over steps s and sources u (tiles of A by row of tiles
and step), plus a weight times C. Least squares finds theta: steps left out, doubled, stale or exchanged,
tiles of other rows, weights. Where there are more weights than elements of D, maps of the step are tried.
Knows matrices of numbers; does not know instructions or names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from ....base.errors import present
from .views import Index, Numbers

_SIMPLE = (1, 2, 4, 8, 16, 64)  # denominators of weights
_DEVIATIONS = 8.0  # of the error of a weight
_LIKELY = 4.0  # deviations that the rounding of a solved value takes
_LEAST = 2.0**-20  # error of a weight, at least
_MOST = 0.25  # error of a weight, at most: else the equations do not decide it
_LARGEST = 1 << 24  # elements of the equations
_FLOOR = 2.0**-10  # of the largest bound, of others
_TINY = 2.0**-1000
_MORE = 2  # elements of D for each weight


class Weights(NamedTuple):
    """``theta (U,)``: simple fractions where these are within the error ``off (U,)``."""

    theta: Numbers
    off: Numbers


def weights(parts: Numbers, rest: Numbers, near: Numbers) -> Weights | None:
    """Return the weights of ``parts (U, E)`` that sum to ``rest (E,)`` within ``near (E,)``.

    None where the equations do not decide them or do not hold, and with fewer than two elements a weight.
    Elements that are not finite are left out.
    """
    near = np.broadcast_to(near, rest.shape)
    known = np.isfinite(rest) & np.isfinite(near) & np.isfinite(parts).all(axis=0)
    if known.sum() < _MORE * len(parts) or parts.size > _LARGEST:
        return None
    parts, rest, near = parts[:, known], rest[known], near[known]
    scale = np.maximum(near, _FLOOR * near.max() + _TINY)  # elements weigh as they are known
    found, error = _least_squares(parts / scale, rest / scale)
    if found is None or (error > _MOST).any():
        return None
    theta = np.array([simple(x, by) for x, by in zip(found, error, strict=True)])
    if any((np.abs(rest - each @ parts) <= near).all() for each in (theta, found)):
        return Weights(theta, error)
    return None


def _least_squares(parts: Numbers, rest: Numbers) -> tuple[Numbers | None, Numbers]:
    """Return the weights and their errors: roundings may be biased by as much as 1, in units of ``rest``."""
    size = np.sqrt((parts * parts).sum(axis=1))
    size[size == 0] = 1.0
    scaled = parts / size[:, None]
    try:
        inverse = np.linalg.inv(scaled @ scaled.T)
    except np.linalg.LinAlgError:
        return None, size
    found = inverse @ (scaled @ rest)
    found += inverse @ (scaled @ (rest - found @ scaled))  # one step of refinement
    deviation = np.sqrt(float(((rest - found @ scaled) ** 2).mean()))
    error = max(_DEVIATIONS * deviation, 1.0) * np.sqrt(np.maximum(np.diag(inverse), 0)) / size + _LEAST
    return (found / size if np.isfinite(found).all() else None), error


class Solved(NamedTuple):
    """Values, and how far each may be off."""

    values: Numbers
    bound: Numbers


def least_squares(weights: Numbers, target: Numbers, near: Numbers) -> Solved | None:
    """Return X ``(L, J)`` with ``X @ weights (J, E) = target (L, E)`` within ``near (L, E)``.

    None with fewer elements than values, and without full rank.
    """
    size, elements = weights.shape
    if elements < size or not np.isfinite(target).all() or np.linalg.matrix_rank(weights) < size:
        return None
    inverse = np.linalg.pinv(weights)
    worst, likely = near @ np.abs(inverse), _LIKELY * np.sqrt(near**2 @ inverse**2)
    return Solved(target @ inverse, np.minimum(worst, likely))


def simple(value: float, off: float) -> float:
    """Return the simplest fraction within the error, or the value itself."""
    for most in _SIMPLE:
        near = float(Fraction(float(value)).limit_denominator(most))
        if abs(near - value) <= off:
            return near
    return float(value)


@dataclass(frozen=True, kw_only=True)
class Tiles:
    """``a (R, S, m, k)`` and ``b (S, C, k, n)`` as numbers, ``c`` and ``d`` ``(R, m, N)`` with N = C * n.

    ``near (R, m, N)`` is how far roundings take D.
    """

    a: Numbers
    b: Numbers
    c: Numbers
    d: Numbers
    near: Numbers

    @property
    def rows(self) -> int:
        """Rows of tiles."""
        return len(self.a)

    @property
    def steps(self) -> int:
        """Steps along k."""
        return len(self.b)

    @property
    def across(self) -> Numbers:
        """``(S, k, N)``: B of each step."""
        steps, columns, k, n = self.b.shape
        found: Numbers = self.b.swapaxes(1, 2).reshape(steps, k, columns * n)
        return found

    @property
    def of_every_k(self) -> Tiles:
        """The same product as a single tile, with steps of one k."""
        rows, steps, m, k = self.a.shape
        a = self.a.transpose(1, 3, 0, 2).reshape(1, steps * k, rows * m, 1)
        b = self.across.reshape(steps * k, 1, 1, -1)
        c, d, near = (x.reshape(1, rows * m, -1) for x in (self.c, self.d, self.near))
        return Tiles(a=a, b=b, c=c, d=d, near=near)

    @property
    def of_lines(self) -> Tiles:
        """The same product with tiles of a single row of D."""
        rows, steps, m, k = self.a.shape
        lines = self.a.swapaxes(1, 2).reshape(rows * m, steps, 1, k)
        c, d, near = (x.reshape(rows * m, 1, -1) for x in (self.c, self.d, self.near))
        return Tiles(a=lines, b=self.b, c=c, d=d, near=near)

    @property
    def turned(self) -> Tiles:
        """The transposed product: rows of tiles are columns of tiles."""
        columns, n = self.b.shape[1], self.b.shape[3]

        def sides(x: Numbers) -> Numbers:
            return x.reshape(-1, columns, n).transpose(1, 2, 0)

        return Tiles(
            a=self.b.transpose(1, 0, 3, 2),
            b=self.a.transpose(1, 0, 3, 2),
            c=sides(self.c),
            d=sides(self.d),
            near=sides(self.near),
        )


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """``theta (R, S, R, S)``: how often B of step s meets tile (r', s') of A in row r; ``c (R,)``."""

    theta: Numbers
    c: Numbers

    @property
    def own(self) -> Numbers | None:
        """``(R, S)``: the weight of each step with its own operands; None where others are used."""
        rows, steps = self.theta.shape[:2]
        r, s = np.indices((rows, steps))
        rest = self.theta.copy()
        rest[r, s, r, s] = 0
        return None if rest.any() else self.theta[r, s, r, s]

    @property
    def sources(self) -> Index | None:
        """``(R, S, 2)``: row and step of the tile of A at each step, -1 for none; None for other weights."""
        rows, steps = self.theta.shape[:2]
        flat = self.theta.reshape(rows, steps, -1)
        if not np.isin(flat, (0, 1)).all() or (flat.sum(axis=2) > 1).any():
            return None
        used = np.stack(np.divmod(flat.argmax(axis=2), steps), axis=2)
        return np.where(flat.max(axis=2, keepdims=True) > 0, used, -1)

    @property
    def partners(self) -> Index | None:
        """``(R, S)``: the step of B that A of each step meets, -1 for none; None for tiles of other rows."""
        rows, rest = len(self.theta), self.theta.copy()
        found = np.stack([rest[r, :, r] for r in range(rows)])  # (R, S of B, S of A)
        for r in range(rows):
            rest[r, :, r] = 0
        if rest.any() or not np.isin(found, (0, 1)).all() or (found.sum(axis=1) > 1).any():
            return None
        return np.where(found.any(axis=1), found.argmax(axis=1), -1)


def mixture(tiles: Tiles, kinds: int = 3) -> Mixture | None:
    """Return theta of every row of tiles, of the fewest sources that fit; None where none do.

    Sources are first the row's own tiles at their own step, then at any step, then tiles of any row;
    ``kinds`` of these three are tried.
    """
    for kind in range(kinds):
        solved = (_of_row(tiles, row, kind) for row in range(tiles.rows))
        found = list(takewhile(lambda each: each is not None, solved))
        if len(found) == tiles.rows:
            both = [present(each, "solved") for each in found]
            return Mixture(
                theta=np.stack([theta for theta, _ in both]), c=np.array([of_c for _, of_c in both])
            )
    return None


def _of_row(tiles: Tiles, row: int, kind: int) -> tuple[Numbers, float] | None:
    """Return theta ``(S, R, S)`` of a row of tiles and the weight of C."""
    used = list(_used(tiles, row, kind))
    across = tiles.across
    if len(used) * tiles.d[row].size > _LARGEST:
        return None
    parts = np.stack([(tiles.a[r, u] @ across[s]).reshape(-1) for s, r, u in used])
    c, d, near = (x[row].reshape(-1) for x in (tiles.c, tiles.d, tiles.near))
    with_c = bool(c.any())
    found = weights(np.concatenate([parts, c[None]]) if with_c else parts, d, near)
    if found is None:
        return None
    theta = np.zeros((tiles.steps, tiles.rows, tiles.steps))
    for at, (s, r, u) in enumerate(used):
        theta[s, r, u] = found.theta[at]
    return theta, float(found.theta[-1]) if with_c else 1.0


def _used(tiles: Tiles, row: int, kind: int) -> Iterator[tuple[int, int, int]]:
    """Yield step of B, row and step of A of the products that may be in a row of tiles."""
    steps = range(tiles.steps)
    for s in steps:
        for r in range(tiles.rows) if kind == 2 else (row,):
            for u in steps if kind else (s,):
                yield s, r, u


def ordered(parts: Numbers, rest: Numbers, near: Numbers, orders: Index) -> Index:
    """Return which of ``orders (M, S)``, -1 for no source, sum to ``rest (E,)`` within ``near (E,)``.

    ``parts (S, S', E)`` is what step s adds with an operand of step s'.
    """
    known = np.flatnonzero(np.isfinite(rest) & np.isfinite(parts).all(axis=(0, 1)))
    near = np.broadcast_to(near, rest.shape)
    live = np.arange(len(orders))
    step = np.arange(parts.shape[0])
    probes = known[np.argsort(-np.abs(rest[known]), kind="stable")[:4]]
    for element in (*probes.tolist(), None):
        at = known if element is None else np.array([element])
        padded = np.concatenate([parts[:, :, at], np.zeros((len(parts), 1, len(at)))], axis=1)
        sums = padded[step, orders[live]].sum(axis=1)
        live = live[(np.abs(sums - rest[at]) <= near[at]).all(axis=1)]
    return live
