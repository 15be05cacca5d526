"""Factors of rows in attention: whose maximum is subtracted, and whose factor rescales what was summed.

Each row of S is given a value of its own, so that its maximum is known; operands show which rows' values they
have in their exponents. Knows values of operands; does not know kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..matrix_hooks import MatrixStep
from ..repeated_launch import RepeatedLaunch
from .computed_operands import Computed
from .driven_launch import Place, driven

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.intp]
_RUNS = 4
_SPREAD = 2.0  # of exponents of e
_NEAR = 0.02  # exponents that are equal
_FIRST = 1  # the execution from which sums are rescaled


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """Of the rows of a tile: ``maxima (rows,)``, the row whose maximum is subtracted from each row of P, and
    ``factors (rows, columns)``, the row whose factor each element of the sums is multiplied with.

    -1 where no row fits; -2 where nothing is subtracted, or multiplied. None where it was not seen.
    """

    maxima: Rows | None
    factors: Rows | None


def row_statistics(launch: RepeatedLaunch, computed: Computed) -> Statistics:
    """Return which rows' statistics are used."""
    slope = float(np.median([operand.slope for operand in computed.operands]))
    if not np.isfinite(slope) or slope <= 0 or any(operand.role != "a" for operand in computed.operands):
        return Statistics(maxima=None, factors=None)
    return Statistics(maxima=_maxima(launch, computed, slope), factors=_factors(launch, computed, slope))


def _offsets(run: int, rows: int) -> Array:
    """Return a value for each row of a tile, from 0.25 to 1."""
    found: Array = np.random.default_rng(run).permutation(np.linspace(0.25, 1.0, rows))
    return found


def _runs(
    launch: RepeatedLaunch, computed: Computed, slope: float, role: str, rising: bool
) -> list[tuple[Array, dict[tuple[int, Place], Array]]]:
    """Return exponents of rows and the operand of the watched executions, by run."""
    watched = {operand.pc: set(operand.places) for operand in computed.operands}
    found = []
    for run in range(_RUNS):

        def give(step: MatrixStep, run: int = run) -> Array:
            values = np.ones((len(step.places), *step.shape))
            if step.pc in computed.makers:
                times = step.places[:, 4] + 1.0 if rising else np.ones(len(step.places))
                rows = _SPREAD / slope * _offsets(run, step.shape[0])
                values = values * times[:, None, None] * rows[:, None]
            return values

        seen = driven(launch, give, lambda pc, place: place in watched.get(pc, ()))
        if seen is None:
            return []
        rows = _SPREAD * _offsets(run, len(next(iter(seen.values())).operands[role]))
        found.append((rows, {key: each.operands[role] for key, each in seen.items()}))
    return found


def _maxima(launch: RepeatedLaunch, computed: Computed, slope: float) -> Rows | None:
    """Return the row whose maximum is subtracted: P[i] is e to the exponent of i less that of the row."""
    runs = _runs(launch, computed, slope, "a", rising=False)
    if not runs:
        return None
    operand = computed.operands[0]
    key = operand.pc, operand.places[0]
    exponents = np.stack([rows for rows, _ in runs])
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.stack([np.log(each[key].mean(axis=1)) for _, each in runs])
    sources = operand.tiles.tiles.outer[0].max(axis=1) - operand.tiles.outer[0]
    if not (np.isin(sources, np.arange(exponents.shape[1]))).all():
        return None
    own = exponents[:, sources]
    return _matching(own - values, exponents, own)


def _matching(subtracted: Array, exponents: Array, own: Array) -> Rows:
    """Return ``(...)``: the row whose exponents ``(runs, rows)`` these are, up to a constant."""
    found = np.full(subtracted.shape[1:], -1, np.intp)
    for index in np.ndindex(found.shape):
        series = subtracted[(slice(None), *index)]
        if _constant(series):
            found[index] = -2
            continue
        fits = [row for row in range(exponents.shape[1]) if _constant(series - exponents[:, row])]
        found[index] = fits[0] if len(fits) == 1 else -1
    return found


def _constant(series: Array) -> bool:
    return bool(np.isfinite(series).all() and np.ptp(series) < _NEAR)


def _factors(launch: RepeatedLaunch, computed: Computed, slope: float) -> Rows | None:
    """Return the row whose factor each element of C is multiplied with: e to less the growth of the row."""
    runs = _runs(launch, computed, slope, "c", rising=True)
    if not runs:
        return None
    exponents = np.stack([rows for rows, _ in runs])
    best: Rows | None = None
    for key in runs[0][1]:
        if key[1][4] < _FIRST:
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.stack([-np.log(each[key]) for _, each in runs])
        if not np.isfinite(values).all():
            continue
        found = _matching(values, exponents, values)
        if best is None or (best == -2).all():
            best = found  # only the first step of a turn is rescaled
    return best
