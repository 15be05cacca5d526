"""Names for the ways in which a tile is not in order: what was mistaken for what when it was packed.

Knows one tile, its registers and lanes; the first pattern in PATTERNS that gives every element is its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .byte_keys import Indices
from .loaded_operands import Mask, Tiles, layout_of, transposed_blocks

_CHUNK_BITS = 128  # what one address of ldmatrix brings, and what swizzles move
_LISTED = 4


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """One tile: ``relative (outer size, k, 2)``, coordinates from ``outer`` and ``inner`` on."""

    tiles: Tiles
    relative: Indices
    valid: Mask
    outer: int
    inner: int

    @property
    def name(self) -> str:
        """The buffer."""
        return self.tiles.operand.source.name

    @cached_property
    def across(self) -> Indices:
        """``(outer size, k)``: which row of the tile (column of B) each element is of."""
        return self.relative[..., 0]

    @cached_property
    def along(self) -> Indices:
        """``(outer size, k)``: which k of the tile."""
        return self.relative[..., 1]

    @cached_property
    def wrong(self) -> Mask:
        """``(outer size, k)``: elements that are not where they should be."""
        rows, columns = np.indices(self.valid.shape)
        wrong: Mask = self.valid & ((self.across != rows) | (self.along != columns))
        return wrong

    @property
    def chunk(self) -> int:
        """Elements of a chunk of 16 bytes."""
        return _CHUNK_BITS // self.tiles.operand.width

    @property
    def outer_name(self) -> str:
        """What the other side is called: rows of A, columns of B."""
        return "columns" if self.tiles.swapped else "rows"

    def gives(self, rows: npt.ArrayLike, columns: npt.ArrayLike) -> bool:
        """Return whether every element that comes from the buffer is of that row and k of the tile."""
        same = (self.across == rows) & (self.along == columns)
        return bool(same[self.valid].all())

    def registers(self) -> npt.NDArray[np.intp]:
        """Return ``(outer size, k)``: the register that holds each element."""
        return self._held(lambda lane, value: value // self.tiles.operand.each)

    def lanes(self) -> npt.NDArray[np.intp]:
        """Return ``(outer size, k)``: the lane that holds each element."""
        return self._held(lambda lane, value: lane)

    def _held(self, number: Callable[[Indices, Indices], Indices]) -> npt.NDArray[np.intp]:
        layout = layout_of(self.tiles.operand)
        found = layout.collect(number(*np.indices((layout.lanes, layout.values))))
        return found.T if self.tiles.swapped else found


def named(pattern: Pattern) -> tuple[str, str]:
    """Return kind and sentence of the first pattern that fits."""
    for kind, describe in (*ORDERS, *PATTERNS):
        message = describe(pattern)
        if message:
            return kind, message
    raise AssertionError("the last pattern always fits")


def ordered(pattern: Pattern) -> tuple[str, str] | None:
    """Return kind and sentence if the elements are those of the tile in another order."""
    return next(((kind, message) for kind, describe in ORDERS if (message := describe(pattern))), None)


# --- permutations ----------------------------------------------------------------------------------


def _permuted(pattern: Pattern) -> str:
    """Describe one permutation of the rows for every k, and one of k for every row."""
    size, k = pattern.valid.shape
    rows, columns = _common(pattern.across, pattern.valid, 1), _common(pattern.along, pattern.valid, 0)
    if rows is None or columns is None or not pattern.gives(rows[:, None], columns):
        return ""
    if sorted(rows) != list(range(size)) or sorted(columns) != list(range(k)):
        return ""
    texts = list[str]()
    if (rows != np.arange(size)).any():
        what = permutation_text(rows)
        texts.append(f"{pattern.outer_name} of {pattern.name} are permuted within the tile: {what}")
    if (columns != np.arange(k)).any():
        texts.append(_along_text(pattern, columns))
    return "; ".join(texts)


def _along_text(pattern: Pattern, order: npt.NDArray[Any]) -> str:
    k = len(order)
    if (order == (np.arange(k) + k // 2) % k).all():
        half = f"k 0..{k // 2 - 1} of the tile holds {k // 2}..{k - 1}, and the other way round"
        return f"k halves of {pattern.name} are exchanged: {half}"
    return f"{pattern.name} is permuted along k: {permutation_text(order)}"


def permutation_text(order: npt.NDArray[Any]) -> str:
    """Describe what is regular about a permutation of positions; else list them."""
    listed = f"places hold {', '.join(map(str, order.tolist()))}"
    return regular_permutation(order) or _interleaved(order) or listed


def _interleaved(order: npt.NDArray[Any]) -> str:
    """Return that neighbours are taken for places half a tile apart, or these for neighbours; else empty."""
    half, odd = divmod(len(order), 2)
    if odd or half < 2:
        return ""
    place = np.arange(len(order))
    if (order == place % half * 2 + place // half).all():
        return f"places g and g + {half} hold 2g and 2g + 1"
    if (order == place % 2 * half + place // 2).all():
        return f"places 2g and 2g + 1 hold g and g + {half}"
    return ""


def regular_permutation(order: npt.NDArray[Any]) -> str:
    """Describe a rotation, an exchange by xor or a reversal; empty for any other permutation."""
    size = len(order)
    place = np.arange(size)
    by = int(order[0])
    if (order == (place + by) % size).all():
        if 2 * by == size:
            return f"the halves are exchanged, 0..{by - 1} and {by}..{size - 1}"
        left = by if by <= size // 2 else by - size
        return f"rotated by {left}, place r holds r {'+' if left > 0 else '-'} {abs(left)} (mod {size})"
    for mask in range(1, size):
        if (order == place ^ mask).all():
            return f"place r holds r xor {mask}"
    if (order == place[::-1]).all():
        return "in reverse"
    return ""


def _common(values: Indices, valid: Mask, axis: int) -> npt.NDArray[Any] | None:
    """Return the common value along an axis, if every position of the other axis has a common value."""
    least = np.where(valid, values, np.iinfo(np.int64).max).min(axis=axis)
    most = np.where(valid, values, np.iinfo(np.int64).min).max(axis=axis)
    return least if (least == most).all() else None


def _permuted_registers(pattern: Pattern) -> str:
    """Describe whole registers that are where others should be, in every lane."""
    number, lane = pattern.registers(), pattern.lanes()
    count = int(number.max()) + 1
    if pattern.tiles.operand.is_matrix or count == 1 or not pattern.valid.all():
        return ""
    holds = [_register_held(pattern, number, lane, register) for register in range(count)]
    if sorted(holds) != list(range(count)):
        return ""
    role = pattern.tiles.operand.role
    swaps = [(i, j) for i, j in enumerate(holds) if i < j and holds[j] == i]
    if sum(i != j for i, j in enumerate(holds)) == 2 * len(swaps):
        pairs = ", ".join(f"{role}{i} and {role}{j}" for i, j in swaps)
        return f"registers {pairs} hold each other's elements of {pattern.name}"
    order = ", ".join(f"{role}{i} those of {role}{j}" for i, j in enumerate(holds) if i != j)
    return f"registers hold each other's elements of {pattern.name}: {order}"


def _register_held(
    pattern: Pattern, number: npt.NDArray[np.intp], lane: npt.NDArray[np.intp], register: int
) -> int:
    """Return the register whose elements a register holds, lane by lane; -1 for none."""
    rows, columns = pattern.across[number == register], pattern.along[number == register]
    size, k = pattern.valid.shape
    if rows.min() < 0 or columns.min() < 0 or rows.max() >= size or columns.max() >= k:
        return -1
    other = number[rows, columns]
    same_lane = lane[rows, columns] == lane[number == register]
    return int(other[0]) if (other == other[0]).all() and same_lane.all() else -1


# --- shared memory ---------------------------------------------------------------------------------


def _strides(pattern: Pattern) -> str:
    """Return rows are so far apart where they are read, but were written at another distance."""
    place: Any = np.indices(pattern.valid.shape)
    (rows, columns), known = place, pattern.valid
    if known.sum() < 8:
        return ""
    # written * across + along = read * row + column + start
    sides = np.stack([pattern.across[known], -rows[known], -np.ones(int(known.sum()))], axis=1)
    target = (columns - pattern.along)[known]
    solved: Any = np.linalg.lstsq(sides.astype(np.float64), target.astype(np.float64), rcond=None)
    rank, (written, read, start) = int(solved[2]), (round(value) for value in solved[0].tolist())
    exact = written * pattern.across + pattern.along == read * rows + columns + start
    if rank < 3 or written == read or min(written, read) <= 0 or not exact[known].all():
        return ""
    return (
        f"{pattern.name}'s row stride is {read} elements as it is read, the data was written with {written}"
    )


def _swizzled(pattern: Pattern) -> str:
    """Return chunks of 16 bytes are exchanged within a row, by an xor that depends on the row."""
    size = len(pattern.valid)
    rows, columns = np.indices(pattern.valid.shape)
    unit = pattern.chunk
    where, should = pattern.along + pattern.inner, columns + pattern.inner
    in_place = (pattern.across == rows) & (where % unit == should % unit)
    if not in_place[pattern.valid].all() or not pattern.valid.all():
        return ""
    masks = where // unit ^ should // unit
    if (masks != masks[:, :1]).any():
        return ""
    by_row = masks[:, 0].tolist()
    period = next(count for count in (1, 2, 4, 8, 16, size) if by_row == (by_row[:count] * size)[:size])
    shown = ", ".join(map(str, by_row[:period]))
    return (
        f"{pattern.name} is read with another swizzle than it was written with: "
        f"in row r, 16-byte chunk c holds chunk c xor ({shown})[r mod {period}]"
    )


def _transposed(pattern: Pattern) -> str:
    rows, columns = np.indices(pattern.valid.shape)
    if not pattern.gives(*transposed_blocks(pattern.valid.shape)) or pattern.gives(rows, columns):
        return ""
    return f"every 8x8 matrix of the tile of {pattern.name} is transposed: the .trans of ldmatrix is wrong"


def _turned(pattern: Pattern) -> str:
    size, k = pattern.valid.shape
    rows, columns = np.indices(pattern.valid.shape)
    if size != k or not pattern.gives(columns, rows) or pattern.gives(rows, columns):
        return ""
    other = "row_major where col_major is loaded, or the other way round"
    how = f": it lies {other}" if pattern.tiles.operand.of_wmma else ""
    return f"the tile of {pattern.name} is transposed{how}"


def _slipped_rows(pattern: Pattern) -> str:
    """Return some rows of ldmatrix or core matrices, 16 bytes each, are others."""
    units = list(_units(pattern))
    if not units or len(units) > _LISTED:
        return ""
    texts = [_unit_text(pattern, *unit) for unit in units]
    return "; ".join(texts)


def _units(pattern: Pattern) -> Iterator[tuple[int, int]]:
    rows, columns = np.nonzero(pattern.wrong)
    yield from sorted(set(zip(rows.tolist(), (columns // pattern.chunk).tolist(), strict=True)))


def _unit_text(pattern: Pattern, row: int, chunk: int) -> str:
    if pattern.tiles.operand.is_matrix:
        return _core_text(pattern, row, chunk)
    part = slice(chunk * pattern.chunk, (chunk + 1) * pattern.chunk)
    number, lane = pattern.registers()[row, part], pattern.lanes()[row, part]
    register, axis = int(number[0]), pattern.outer_name[:-1]
    held = f"lanes {int(lane.min())}..{int(lane.max())}, {pattern.tiles.operand.role}{register}"
    if not _moved_whole(pattern, row, part):
        return f"{axis} {row}, k {part.start}..{part.stop - 1} ({held}) of {pattern.name} is something else"
    across, along = pattern.across[row, part], pattern.along[row, part]
    same = along[0] == part.start
    at = "" if same else f", k {int(along[0])}..{int(along[-1])}"
    return (
        f"ldmatrix row {row % 8} of matrix {register} ({held}) is {axis} {int(across[0])}{at} of the tile "
        f"of {pattern.name}, not {axis} {row}: the address that lane {8 * register + row % 8} gives"
    )


def _core_text(pattern: Pattern, row: int, chunk: int) -> str:
    part, axis = slice(chunk * pattern.chunk, (chunk + 1) * pattern.chunk), pattern.outer_name[:-1]
    place = f"{axis} {row}, k {part.start}..{part.stop - 1}"
    held = f"{place} of the tile of {pattern.name} {pattern.tiles.operand.holder}"
    if not _moved_whole(pattern, row, part):
        return f"{held} is something else"
    across, along = pattern.across[row, part], pattern.along[row, part]
    return f"{held} holds {axis} {int(across[0])}, k {int(along[0])}..{int(along[-1])}"


def _moved_whole(pattern: Pattern, row: int, part: slice) -> bool:
    across, along = pattern.across[row, part], pattern.along[row, part]
    whole = pattern.valid[row, part].all() and (across == across[0]).all()
    return bool(whole and (np.diff(along) == 1).all())


# --- whatever else ---------------------------------------------------------------------------------


def _scattered(pattern: Pattern) -> str:
    wrong, number, lane = pattern.wrong, pattern.registers(), pattern.lanes()
    if not wrong.any():
        return f"elements of {pattern.name} are not those that it is multiplied with"
    row, column = (int(index) for index in np.argwhere(wrong)[0])
    role = pattern.tiles.operand.role
    registers = ", ".join(f"{role}{register}" for register in np.unique(number[wrong]).tolist())
    lanes = np.unique(lane[wrong]).tolist()
    whole = len(lanes) == layout_of(pattern.tiles.operand).lanes
    holders = "all lanes" if whole else f"lanes {', '.join(map(str, lanes))}"
    operand = pattern.tiles.operand
    where = operand.holder if operand.is_matrix else f"registers {registers}; {holders}"
    return (
        f"{int(wrong.sum())} of {wrong.size} elements of {pattern.name} are not of the tile "
        f"({where}); the first: "
        f"{pattern.outer_name[:-1]} {row}, k {column} holds "
        f"{int(pattern.across[row, column])}, {int(pattern.along[row, column])}"
    )


Description = Callable[[Pattern], str]
ORDERS: tuple[tuple[str, Description], ...] = (  # where the tile begins is known from its own elements
    ("order", _permuted),
    ("registers", _permuted_registers),
    ("transposed", _transposed),
    ("transposed", _turned),
    ("ldmatrix row", _slipped_rows),
)
PATTERNS: tuple[tuple[str, Description], ...] = (
    ("stride", _strides),
    ("swizzle", _swizzled),
    ("scattered", _scattered),
)
