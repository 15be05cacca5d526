"""Which permutation of the expected values D is: of rows, columns, bits of indices, or of some places.

Works on matrices of values; does not know lanes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ..dumps.remark import Remark, RemarkKind, remark
from ..origins.tile_patterns import regular_permutation

Matrix = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]
_LISTED = 16  # places of a permutation
_FIRST = 4  # elements that are elsewhere


def permutations(x: Matrix, y: Matrix, tolerance: float = 0.0) -> Iterator[Remark]:
    """Yield how y holds the values of x; nothing if it does not, or if too many values are equal."""
    ranks = np.argsort(x, axis=None, kind="stable"), np.argsort(y, axis=None, kind="stable")
    same = np.abs(x.reshape(-1)[ranks[0]] - y.reshape(-1)[ranks[1]]) <= tolerance
    if len(np.unique(x)) < x.size // 2 or not same.all() or (np.abs(x - y) <= tolerance).all():
        return
    rows, columns = _order(x, y), _order(x.T, y.T)
    if (size := _transposed_blocks(x, y, tolerance)) is not None:
        yield remark(RemarkKind.BLOCKS, size=size)
    elif rows is not None:
        yield remark(RemarkKind.ROWS, order=_listed(rows), regular=_regular(rows))
    elif columns is not None:
        yield remark(RemarkKind.COLUMNS, order=_listed(columns), regular=_regular(columns))
    else:
        source = np.empty(x.size, np.intp)
        source[ranks[1]] = ranks[0]
        yield _of_elements(source, x.shape)


def _transposed_blocks(x: Matrix, y: Matrix, tolerance: float) -> int | None:
    """Return the size of square blocks that are transposed, each in its place."""
    for size in (8, 16):
        if x.shape[0] % size or x.shape[1] % size:
            continue
        blocks = x.reshape(x.shape[0] // size, size, -1, size).transpose(0, 3, 2, 1).reshape(x.shape)
        if (np.abs(blocks - y) <= tolerance).all():
            return size
    return None


def _order(x: Matrix, y: Matrix) -> list[int] | None:
    """Return which row of x each row of y is."""
    known = {row.tobytes(): at for at, row in enumerate(np.ascontiguousarray(x))}
    found = [known.get(row.tobytes(), -1) for row in np.ascontiguousarray(y)]
    return found if sorted(found) == list(range(len(x))) else None


def _listed(order: list[int]) -> str:
    shown = ", ".join(map(str, order[:_LISTED]))
    return f"({shown}{', …' if len(order) > _LISTED else ''})[{'r' if len(order) == _LISTED else 'i'}]"


def _regular(order: list[int]) -> str:
    """Describe what is regular about a permutation of rows or columns."""
    moved = sum(i != j for i, j in enumerate(order))
    regular = regular_permutation(np.array(order)) or _warps(order)
    return regular or f"{moved} of {len(order)} are elsewhere"


def _warps(order: list[int]) -> str:
    """Describe an exchange of whole warps of a warpgroup, of 16 rows each; empty if there is none."""
    if len(order) % 64:
        return ""
    first = np.array(order).reshape(-1, 16)
    if (first - first[:, :1] != np.arange(16)).any() or (first[:, 0] % 16).any():
        return ""
    held = (first[:, 0] // 16).tolist()
    return f"warps are exchanged: rows of warp i are those of warp {tuple(held)}[i]"


# --- elements ------------------------------------------------------------------------------------------


def _of_elements(source: Index, shape: tuple[int, ...]) -> Remark:
    """Return a permutation of rows and columns both, of bits of the indices, or the first elements."""
    rows, columns = (index.reshape(shape) for index in np.divmod(source, shape[1]))
    if (rows == rows[:, :1]).all() and (columns == columns[:1]).all():
        down, across = rows[:, 0].tolist(), columns[0].tolist()
        return remark(RemarkKind.ROWS_AND_COLUMNS, rows=_listed(down), columns=_listed(across))
    if bits := _of_bits(source, shape):
        return remark(RemarkKind.INDEX_BITS, row=bits[0], column=bits[1])
    if _quads(source, shape):
        return remark(RemarkKind.LANE_ORDER)
    moved = np.flatnonzero(source != np.arange(source.size))
    pairs = [(divmod(at, shape[1]), divmod(int(source[at]), shape[1])) for at in moved[:_FIRST].tolist()]
    first = ", ".join(f"D{list(at)} holds {list(origin)}" for at, origin in pairs)
    count = f", {len(moved)} of {source.size} of them elsewhere" if len(moved) < source.size else ""
    return remark(RemarkKind.ELEMENTS, count=count, first=first)


def _quads(source: Index, shape: tuple[int, ...]) -> bool:
    """Return whether D holds the fragments of m16n8 in the order of lanes, four elements each."""
    if shape != (16, 8):
        return False
    lane = np.arange(32)[:, None]
    row, column = lane // 4 + 8 * np.array([0, 0, 1, 1]), lane % 4 * 2 + np.array([0, 1, 0, 1])
    return bool((source == (row * 8 + column).reshape(-1)).all())


def _of_bits(source: Index, shape: tuple[int, ...]) -> tuple[str, str] | None:
    """Return ``("r3 r2 r1 c0", "…")``: the bits that each bit of row and column is the sum of."""
    size = source.size
    if size & (size - 1) or any(length & (length - 1) for length in shape):
        return None
    count = size.bit_length() - 1
    first = int(source[0])
    each = [int(source[1 << bit]) ^ first for bit in range(count)]
    place, made = np.arange(size), np.full(size, first)
    for bit, value in enumerate(each):
        made ^= (place >> bit & 1) * value
    if (made != source).any():
        return None
    low = shape[1].bit_length() - 1
    names = [f"c{bit}" if bit < low else f"r{bit - low}" for bit in range(count)]
    texts = []
    for bit in reversed(range(count)):
        parts = [names[other] for other in reversed(range(count)) if each[other] >> bit & 1]
        texts.append("^".join(parts) + ("^1" if first >> bit & 1 else ""))
    return " ".join(texts[: count - low]), " ".join(texts[count - low :])
