"""A D that is right on one side of a diagonal, and a single value on the other: a mask of attention."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..dumps.remark import Remark, RemarkKind, remark

Matrix = npt.NDArray[np.float64]
_FEWEST = 8  # elements beyond the diagonal


def masked(expected: Matrix, actual: Matrix, same: npt.NDArray[np.bool_]) -> Iterator[Remark]:
    """Yield that all elements above, or below, a diagonal are one value; ``same``: where D is right."""
    wrong = ~same
    row, column = np.nonzero(wrong)
    if len(row) < _FEWEST or same.sum() < _FEWEST:
        return
    apart = np.subtract.outer(np.arange(expected.shape[0]), np.arange(expected.shape[1]))
    for side, beyond, most in (
        ("above", -apart, (column - row).min()),
        ("below", apart, (row - column).min()),
    ):
        where: Any = beyond >= most
        values = np.unique(actual[where])
        if len(values) == 1 and (wrong <= where).all() and wrong[where].mean() > 0.5:
            first = f" from {most} on" if most > 1 else ", and on it" if most == 0 else ""
            yield remark(RemarkKind.MASKED, value=float(values[0]), side=side, first=first)
            return
