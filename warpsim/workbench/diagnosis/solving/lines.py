"""Operands solved from D line by line: with as many elements as places, by least squares.

Line ``l`` of an operand meets D in ``T[l, e] = sum_j V[where[l, j]] * W[l, j, e]``. Knows no instructions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]
_DEVIATIONS = 4.0  # of the rounding of a solved value


@dataclass(frozen=True, kw_only=True)
class Lines:
    """The linear problem of an operand: places ``where (L, J)``, D minus the rest ``T (L, E)`` with its bound
    of rounding ``near (L, E)``, and weights ``W (L, J, E)``.
    """

    where: Index
    T: Numbers
    near: Numbers
    W: Numbers

    @classmethod
    def of(cls, weights: Numbers, target: Numbers, near: Numbers) -> Lines:
        """Return the problem of lines ``X`` with ``X @ weights = target (L, E)`` within ``near``."""
        lines, size = len(target), len(weights)
        where = np.arange(lines * size).reshape(lines, size)
        every = np.broadcast_to(weights, (lines, *weights.shape))
        return cls(where=where, T=target, near=near, W=every)


class Solved(NamedTuple):
    """Values by place ``(N,)`` and how far each may be off."""

    values: Numbers
    bound: Numbers


def least_squares(problem: Lines) -> Solved | None:
    """Return the values that stood in the places; None with too few elements, or without full rank."""
    (lines, size), elements = problem.where.shape, problem.T.shape[1]
    if elements < size or not np.isfinite(problem.T).all():
        return None
    count = problem.where.max() + 1
    values, bound = np.zeros(count), np.zeros(count)
    near = np.broadcast_to(problem.near, problem.T.shape)
    inverse, known = np.zeros((0, 0)), None
    for line in range(lines):
        weights = problem.W[line]
        alike = known is not None and (problem.W.strides[0] == 0 or np.array_equal(weights, known))
        if not alike:
            if np.linalg.matrix_rank(weights) < size:
                return None
            inverse, known = np.linalg.pinv(weights.T), weights
        at = problem.where[line]
        values[at] = inverse @ problem.T[line]
        worst = np.abs(inverse) @ near[line]
        bound[at] = np.minimum(worst, _DEVIATIONS * np.sqrt(inverse**2 @ near[line] ** 2))
    return Solved(values, bound)
