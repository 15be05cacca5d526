"""Which permutation of the expected values D is where no map says it: of rows, of columns, or of some places.

Works on matrices of values; does not know lanes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ..dumps.remark import Remark, RemarkKind, remark

Matrix = npt.NDArray[np.float64]
_LISTED = 16  # places of a permutation
_FIRST = 4  # elements that are elsewhere


def permutations(x: Matrix, y: Matrix, tolerance: float = 0.0) -> Iterator[Remark]:
    """Yield how y holds the values of x; nothing if it does not, or if too many values are equal."""
    ranks = np.argsort(x, axis=None, kind="stable"), np.argsort(y, axis=None, kind="stable")
    same = np.abs(x.reshape(-1)[ranks[0]] - y.reshape(-1)[ranks[1]]) <= tolerance
    if len(np.unique(x)) < x.size // 2 or not same.all() or (np.abs(x - y) <= tolerance).all():
        return
    rows, columns = _order(x, y), _order(x.T, y.T)
    if rows and columns and np.array_equal(x[rows][:, columns], y):
        for kind, order in ((RemarkKind.ROWS, rows), (RemarkKind.COLUMNS, columns)):
            if moved := sum(i != j for i, j in enumerate(order)):
                yield remark(kind, order=_listed(order), moved=moved, count=len(order))
    else:
        source = np.empty(x.size, np.intp)
        source[ranks[1]] = ranks[0]
        yield _of_elements(source, x.shape)


def _order(x: Matrix, y: Matrix) -> list[int]:
    """Return which row of x has the values of each row of y, in any order; empty where some has none."""
    known = {row.tobytes(): at for at, row in enumerate(np.sort(x, axis=1))}
    found = [known.get(row.tobytes(), -1) for row in np.sort(y, axis=1)]
    return found if sorted(found) == list(range(len(x))) else []


def _listed(order: list[int]) -> str:
    return f"({', '.join(map(str, order[:_LISTED]))}{', …' if len(order) > _LISTED else ''})"


def _of_elements(source: npt.NDArray[np.intp], shape: tuple[int, ...]) -> Remark:
    """Return the first elements that are elsewhere."""
    moved = np.flatnonzero(source != np.arange(source.size))
    pairs = [(divmod(at, shape[1]), divmod(int(source[at]), shape[1])) for at in moved[:_FIRST].tolist()]
    first = ", ".join(f"D{list(at)} holds {list(origin)}" for at, origin in pairs)
    count = f", {len(moved)} of {source.size} of them elsewhere" if len(moved) < source.size else ""
    return remark(RemarkKind.ELEMENTS, count=count, first=first)
