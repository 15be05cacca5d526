"""Where a tile of few values lies in a large matrix: every place is tried, in the layout and usual mistakes.

Values that repeat say little each; all of a tile's together leave few places. Knows layouts as formulas of
row and column; does not know why a tile is where it is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....isa.products import Codes
from .dump_places import Index, Places
from .index_maps import Flags, IndexMap, Matrix, Space, made

_WIDE = 4  # as far as index_maps has rows apart
_LARGEST = 1 << 24  # elements of a matrix
_VARIANTS: tuple[Callable[[Index, Index], tuple[Index, Index]], ...] = (
    lambda r, c: (r, c),
    lambda r, c: (r, c ^ 1),
    lambda r, c: (r, c ^ 8),
    lambda r, c: (r ^ 8, c),
    lambda r, c: (r % 8 + c // 8 % 2 * 8, c % 8 + r // 8 % 2 * 8 + c // 16 * 16),
    lambda r, c: (r // 8 * 8 + c % 8, c // 8 * 8 + r % 8),
    lambda r, c: (c, r),
    *(lambda r, c, by=by: (r ^ by, c) for by in (1, 2, 4)),
    *(lambda r, c, by=by: (r, c ^ by) for by in (2, 4, 3, 7)),
)


def scanned(places: Places, codes: Codes, matrix: Matrix, where: Flags) -> IndexMap | None:
    """Return the only place, of the first variant that has a place, where a matrix holds all of ``where``."""
    if not places.belongs or not where.all() or matrix.codes.size > _LARGEST:
        return None
    space = Space(matrix.rows, matrix.columns, _WIDE * matrix.columns)
    for variant in _VARIANTS:
        row, column = variant(places.row, places.column)
        bases = _bases(row, column, codes, matrix)
        if len(bases) > 1:
            return None
        if len(bases) and (weights := _weights(places, space.addresses(row, column))) is not None:
            first, step = weights
            base = int(space.addresses(*np.divmod(bases[:1], matrix.columns))[0])
            return made(places, codes, matrix, (space, base + first, step), where)
    return None


def _bases(row: Index, column: Index, codes: Codes, matrix: Matrix) -> Index:
    """Return the flat places of the first row and column with which every element is where it should be."""
    height, width = matrix.rows - int(row.max()), matrix.columns - int(column.max())
    if height < 1 or width < 1:
        return np.zeros(0, np.intp)
    flat = matrix.codes.reshape(-1)
    left: Index = (np.arange(height)[:, None] * matrix.columns + np.arange(width)).reshape(-1)
    counts, _ = matrix.found(codes)
    for at in np.argsort(counts, kind="stable").tolist():
        left = left[flat[left + row[at] * matrix.columns + column[at]] == codes[at]]
        if not len(left):
            break
    return left


def _weights(places: Places, addresses: Index) -> tuple[int, tuple[int, ...]] | None:
    """Return the address of index 0, and what each bit of an index adds, if that is always the same."""
    steps = []
    for clear, given in places.pairs:
        step = np.unique(addresses[given] - addresses[clear])
        if len(step) != 1:
            return None
        steps.append(int(step[0]))
    first = np.unique(addresses - places.index_bits @ np.asarray(steps, np.intp))
    return (int(first[0]), tuple(steps)) if len(first) == 1 else None
