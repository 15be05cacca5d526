"""A or B as a kernel read it, solved from D and the other operand.

With n > k each row of D has more elements than A has unknowns (with m > k the same holds for B). Knows
matrices of codes; does not know what they should be.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...isa.codes import matrix_of
from ...isa.formats import Format
from ...isa.products import Codes
from ..locate.changed_lines import nearest_codes

Matrix = npt.NDArray[np.float64]
_LARGEST = 1 << 20  # elements of an operand


def solve_lines(other: Matrix, rest: Matrix, near: float, right: tuple[Codes, Format]) -> Codes | None:
    """Return codes X ``(lines, k)`` with X times ``other (k, elements)`` = ``rest (lines, elements)``.

    ``near`` is how far roundings may take an element of ``rest``; ``right`` are the codes that X should be,
    to which those of X are likely to belong. None where there is no such X.
    The caller computes D of it again, whose bits decide.
    """
    k, size = other.shape
    element = right[1]
    if size < k or rest.shape[0] * k > _LARGEST or element.bits > 16:
        return None
    if not (np.isfinite(other).all() and np.isfinite(rest).all()):
        return None
    inverse = np.linalg.pinv(other)
    values = rest @ inverse
    off = near * float(np.sqrt((inverse * inverse).sum(axis=0)).max())
    codes = _settled(values, off, right)
    snapped = matrix_of(codes, element).astype(np.float64)
    if not np.isfinite(snapped).all() or (np.abs(snapped @ other - rest) > 4 * near * max(1, k / 16)).any():
        return None
    return codes


def _settled(values: Matrix, off: float, right: tuple[Codes, Format]) -> Codes:
    """Return the codes nearest to values; of the right matrix where its value is within the error."""
    known, element = right
    numbers = matrix_of(np.unique(known), element).astype(np.float64)
    numbers = np.sort(numbers[np.isfinite(numbers)])
    at = np.searchsorted(numbers, values).clip(1, len(numbers) - 1)
    below, above = numbers[at - 1], numbers[at]
    near = np.where(values - below < above - values, below, above)
    return nearest_codes(np.where(np.abs(near - values) <= off, near, values), element)
