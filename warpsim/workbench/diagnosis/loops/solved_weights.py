"""How much every k, every step and C weigh in D, solved from D: steps left out or doubled, factors along k.

D is taken as the sum of the products of each k times a weight, and of C times a weight; with more elements
of D than weights, a D of which this holds in every element, but for rounding, says what the weights were.
Knows matrices; does not know which mistakes there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ..dumps.wrong_elements import ranges

Matrix = npt.NDArray[np.float64]
_MORE = 4  # elements of D for each weight
_DEVIATIONS = 8.0  # of the error of a weight
_LEAST = 2.0**-20  # by which a weight may be off
_SIMPLE = 64  # the largest denominator of a factor that is written as it is
_RUNS = 8  # of k with the same weight, that are listed
_PERIODS = (2, 4, 8, 16, 32, 64)
_LARGEST = 4096  # k
_NEARLY_ALL = 0.75
_UNEVEN = 2.0**-8  # by which the weight of a step in a row differs from 1


@dataclass(frozen=True, kw_only=True)
class Equations:
    """A ``(m, k)``, B ``(k, n)``, C and D ``(m, n)`` as numbers; ``near (m, n)``: how far roundings reach."""

    a: Matrix
    b: Matrix
    c: Matrix
    d: Matrix
    near: Matrix

    def finite(self) -> Equations | None:
        """Return the rows and columns in which everything is finite; None where few are left."""
        ok = np.isfinite(self.d) & np.isfinite(self.c)
        columns = np.isfinite(self.b).all(axis=0) & (ok.mean(axis=0) > 0.5)
        rows = np.isfinite(self.a).all(axis=1) & ok[:, columns].all(axis=1)
        if rows.sum() < 2 or columns.sum() < 2:
            return None
        part = np.ix_(rows, columns)
        return Equations(
            a=self.a[rows], b=self.b[:, columns], c=self.c[part], d=self.d[part], near=self.near[part]
        )


@dataclass(frozen=True, kw_only=True)
class Weights:
    """The weight of each k, and of C; each may be ``off`` by so much."""

    k: Matrix
    c: float
    off: Matrix

    def text(self, step: int) -> str:
        """Return what is not 1, by steps of so many k where these explain it; empty where all are 1."""
        along = _along_k(self.k, self.off, step)
        if self.c == 1:
            return along
        of_c = {0.0: "C not added (forgotten)", 2.0: "C twice"}.get(self.c, f"C times {self.c:.6g} (beta)")
        return f"{along}; {of_c}" if along else of_c


def solve(given: Equations) -> Weights | None:
    """Return the weights that give every element of D; None where there are none, or too few elements."""
    seen = given.finite()
    if seen is None or seen.a.shape[1] > _LARGEST or seen.d.size < _MORE * (seen.a.shape[1] + 1):
        return None
    k, with_c = seen.a.shape[1], bool(seen.c.any())
    gram = np.zeros((k + 1, k + 1))
    gram[:k, :k] = (seen.a.T @ seen.a) * (seen.b @ seen.b.T)
    gram[:k, k] = gram[k, :k] = ((seen.a.T @ seen.c) * seen.b).sum(axis=1)
    gram[k, k] = (seen.c * seen.c).sum() if with_c else 1.0
    right = np.append(((seen.a.T @ seen.d) * seen.b).sum(axis=1), (seen.c * seen.d).sum() if with_c else 1.0)
    try:
        inverse = np.linalg.inv(gram)
    except np.linalg.LinAlgError:
        return None
    found = inverse @ right
    found += inverse @ (right - gram @ found)  # one step of refinement
    rest = seen.d - (seen.a * found[:k]) @ seen.b - (found[k] * seen.c if with_c else 0)
    if not (np.abs(rest) <= seen.near).all():
        return None
    variance = float((rest * rest).mean())
    off = _DEVIATIONS * np.sqrt(np.maximum(np.diag(inverse), 0) * variance) + _LEAST
    if (off > 0.25).any():
        return None  # the equations do not decide them
    simple = np.array([_simple(x, by) for x, by in zip(found.tolist(), off.tolist(), strict=True)])
    return Weights(k=simple[:k], c=float(simple[k]) if with_c else 1.0, off=off[:k])


def _simple(value: float, off: float) -> float:
    """Return the simplest fraction within the error, or the value itself."""
    for most in (1, 2, 4, 8, 16, _SIMPLE):
        near = float(Fraction(value).limit_denominator(most))
        if abs(near - value) <= off:
            return near
    return value


# --- words -------------------------------------------------------------------------------------------------


def _along_k(weights: Matrix, off: Matrix, step: int) -> str:
    """Return which k have a weight that is not 1."""
    level = float(np.median(weights))
    if (np.abs(weights - level) <= 2 * off).all():
        return "" if abs(level - 1) <= off.max() else f"A·B is taken times {level:.6g} (alpha)"
    steps = -(-len(weights) // step)
    each = [weights[at * step : (at + 1) * step] for at in range(steps)]
    if all(np.ptp(part) <= 4 * off.max() for part in each):
        return _of_steps([float(np.median(part)) for part in each], float(off.max()))
    return _of_runs(weights, off) or _of_periods(weights, off) or _of_each(weights)


def _of_steps(each: list[float], off: float) -> str:
    """Return steps by their weights, or the factor that each step leaves to those before it."""
    ratios = [after / before for before, after in pairwise(each) if before]
    even = not ratios or abs(ratios[0] - 1) <= 4 * off
    if (
        len(each) > 2
        and not even
        and len(ratios) == len(each) - 1
        and np.ptp(ratios) <= 4 * off * max(ratios, key=abs)
    ):
        factor = _simple(1 / ratios[0], 4 * off)
        last = "after every step" if abs(each[-1] - factor) <= 4 * off else "before every step but the first"
        return f"a scale of {factor:.6g} is applied in the loop, {last}, and not once in the end"
    return "; ".join(_weighed("step", at, weight) for weight, at in _grouped(each, off))


def _of_runs(weights: Matrix, off: Matrix) -> str:
    """Return runs of k of equal weights, if they are few."""
    near = float(4 * off.max())
    runs: list[list[float]] = []
    for at, weight in enumerate(weights.tolist()):
        if not runs or abs(runs[-1][2] - weight) > near:
            runs.append([at, at, weight])
        runs[-1][1] = at
    if len(runs) > _RUNS:
        return ""
    wrong = [run for run in runs if abs(run[2] - 1) > near]
    return "; ".join(f"k {int(a)} to {int(b)}{_times(weight)}" for a, b, weight in wrong)


def _of_periods(weights: Matrix, off: Matrix) -> str:
    """Return which k, of every so many, have which weight."""
    near = float(4 * off.max())
    for period in _PERIODS:
        if len(weights) % period or len(weights) <= period:
            continue
        table = weights.reshape(-1, period)
        if np.ptp(table, axis=0).max() <= near:
            found = _grouped(np.median(table, axis=0).tolist(), near)
            texts = (f"k % {period} in {', '.join(map(str, at))}{_times(weight)}" for weight, at in found)
            return "; ".join(texts)
    return ""


def _of_each(weights: Matrix) -> str:
    low, high = float(weights.min()), float(weights.max())
    return f"every k has a factor of its own, from {low:.6g} to {high:.6g}"


def _grouped(each: list[float], off: float) -> Iterator[tuple[float, list[int]]]:
    """Yield weights that are not 1, with all that have them."""
    order = sorted(range(len(each)), key=lambda at: (round(each[at] / (8 * off)), at))
    for _, group in groupby(order, key=lambda at: round(each[at] / (8 * off))):
        found = list(group)
        if abs(each[found[0]] - 1) > 4 * off:
            yield each[found[0]], found


def _weighed(what: str, at: list[int], weight: float) -> str:
    listed = ", ".join(map(str, at[:_RUNS])) + ", …" * (len(at) > _RUNS)
    return f"{what}{'s'[: len(at) != 1]} {listed}{_times(weight)}"


def _times(weight: float) -> str:
    if abs(weight) < 2.0**-16:
        return " left out (missing)"
    return " twice" if weight == 2 else f" times {weight:.6g}"


# --- weights of steps in each row, column or tile ---------------------------------------------------------


def of_lines(parts: Matrix, c: Matrix, d: Matrix, near: Matrix) -> str:
    """Return what steps weigh in all of D; else in each row, if every row has its own; else in each column.

    ``parts (steps, m, n)`` are what the steps add. There must be more elements than steps. Empty where no
    weights give D.
    """
    whole = _solved(parts.reshape(1, len(parts), -1), (d - c).reshape(1, -1), near.reshape(1, -1))
    if whole is not None:
        return _of_steps([_simple(x, _UNEVEN / 16) for x in whole[0].tolist()], _UNEVEN / 64)
    for axis, name in ((1, "row"), (2, "column")):
        turned = parts if axis == 1 else parts.swapaxes(1, 2)
        rest, own_near = (x if axis == 1 else x.T for x in (d - c, near))
        found = _solved(np.moveaxis(turned, 0, 1), rest, own_near)
        if found is not None and (text := _of_each_line(found, name)):
            return text
    return ""


def _solved(parts: Matrix, rest: Matrix, near: Matrix) -> Matrix | None:
    """Return weights ``(lines, steps)`` of ``parts (lines, steps, elements)`` that give ``rest``."""
    _, steps, size = parts.shape
    if size < 2 * steps or not all(np.isfinite(x).all() for x in (parts, rest)):
        return None
    gram = parts @ parts.swapaxes(1, 2)
    try:
        found: Matrix = np.asarray(np.linalg.solve(gram, parts @ rest[..., None])[..., 0], np.float64)
    except np.linalg.LinAlgError:
        return None
    left = rest - (found[:, None, :] @ parts)[:, 0]
    return found if (np.abs(left) <= near).all() else None


def _of_each_line(found: Matrix, name: str) -> str:
    """Return which steps have a weight that is not 1 in which lines: ``found (lines, steps)``.

    Empty where a line has no step at all: an operand is zero there, which the search of its elements names.
    """
    steps = found.shape[1]
    if (np.abs(found) < _UNEVEN).all(axis=1).any():
        return ""
    wrong = np.abs(found - 1) > _UNEVEN
    if not wrong.any() or (wrong.all() and np.ptp(found, axis=1).max() <= _UNEVEN):
        return ""
    lines: dict[bytes, list[int]] = {}
    for at in range(steps):
        if wrong[:, at].any():
            lines.setdefault(wrong[:, at].tobytes(), []).append(at)
    return "; ".join(_of_some_lines(found[:, at], wrong[:, at[0]], at, name) for at in lines.values())


def _of_some_lines(weights: Matrix, wrong: npt.NDArray[np.bool_], steps: list[int], name: str) -> str:
    """Return what steps weigh in the lines in which they are wrong: ``weights (lines, steps)``."""
    listed = f"step{'s'[: len(steps) != 1]} {', '.join(map(str, steps))}"
    where = "" if wrong.mean() > _NEARLY_ALL else f" in {name}s {ranges(np.flatnonzero(wrong).tolist())}"
    low, high = float(weights[wrong].min()), float(weights[wrong].max())
    if high - low <= _UNEVEN:
        near = float(round(high))
        return f"{listed}{_times(near if abs(high - near) < _UNEVEN else high)}{where}"
    return f"{listed}: a factor of its own in each {name}{where}, from {low:.6g} to {high:.6g}"


def numbers_near(expected: Matrix, plain: Matrix, d: Matrix, spread: Any) -> Matrix:
    """Return how far roundings may take D: eight times what they take the right D from the plain sum.

    Where D is larger than that, in proportion.
    """
    with np.errstate(all="ignore"):
        apart = np.abs(expected - plain)
        size, other = (float(np.abs(x[np.isfinite(x)]).max(initial=0)) for x in (plain, d))
    most = float(apart[np.isfinite(apart)].max(initial=0))
    larger = max(1.0, other / max(size, 1e-300))
    near: Matrix = np.full(plain.shape, (8 * most + 2.0**-40 * size) * larger)
    if spread is not None:
        near += spread
    return near
