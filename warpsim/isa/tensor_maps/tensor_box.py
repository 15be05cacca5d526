"""Boxes of tensors: where each piece that a tensor copy moves lies in global and in shared memory.

Knows tile mode, gather4 and scatter4, and im2col; element strides, bounds and packed elements. Does not know
memories, lanes or instructions. PTX ISA 9.1, sections 5.5.3 to 5.5.7.

A *piece* is as many neighbours as are moved together: up to 16 bytes, all of them inside the tensor or all
outside; of elements with gaps, the 16 that share a gap. Shared memory is linear: pieces follow each other in
the order of the box, and the swizzle moves 16-byte cells by address bits (swizzle.py).

In im2col, pixels are visited with W fastest, then H, D and N; where W leaves the box, the walk goes on at the
box's lower corner of the next H. That is what the manual's figures show and CUTLASS's convolutions build on;
the text gives no formula: inferred. So is that a start off the grid of element strides returns to that grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from ...base.errors import NotModelled, OperandError, UndefinedBehavior
from ..layouts.swizzle import tensor_swizzled
from ..memory import Addresses
from .tensor_fields import Im2col
from .tensor_map import TensorMap

Inside = npt.NDArray[np.bool_]
Axis = tuple[Addresses, Inside]  # positions along a dimension, and which are inside

_GROUP = 16  # packed elements that share a gap
_FLIPPED = 64  # bits that FLIP_8B keeps together
_REACH = 1 << 63
_MOST_LANDINGS = 64  # of a box that are kept
_OFFSETS = {3: 1 << 16, 4: 1 << 8, 5: 1 << 5}  # of im2col, by rank: they are less


def runs_of_pieces(places: Addresses, size: int) -> npt.NDArray[np.int64]:
    """Return ``(runs, 2)``: runs of bytes, so many from each place, joined where they meet."""
    if not places.size:
        return np.zeros((0, 2), np.int64)
    starts = np.sort(places)
    gaps = (starts[1:] - starts[:-1] > size).nonzero()[0]
    firsts = starts[np.concatenate(([0], gaps + 1))]
    ends = starts[np.concatenate((gaps, [starts.size - 1]))] + size
    return np.stack((firsts, ends), axis=-1)


@dataclass(frozen=True, eq=False)
class Landing:
    """Where the pieces of a box lie in shared memory, ``places`` (n,); each takes ``pitch`` bytes."""

    places: Addresses
    pitch: int

    @cached_property
    def end(self) -> int:
        """The byte behind the last."""
        return int(self.places.max()) + self.pitch

    @cached_property
    def runs(self) -> npt.NDArray[np.int64]:
        """``(runs, 2)``: the first byte of each run of pieces, and the one behind its last; with gaps."""
        return runs_of_pieces(self.places, self.pitch)


@dataclass(frozen=True, kw_only=True, eq=False)
class Pieces:
    """Every piece of a box, ``(n,)`` each, in the order of shared memory.

    ``addresses`` in global memory, 0 where not ``inside``, which all are of a ``whole`` box; ``places`` are
    distances from the box's first byte in shared memory, before swizzling. ``size`` bytes are moved of each,
    which takes ``pitch`` bytes of shared memory. ``landings`` are known, of boxes that differ in
    addresses alone.
    """

    size: int
    pitch: int
    addresses: Addresses
    inside: Inside
    places: Addresses
    whole: bool
    landings: dict[tuple[int, str], Landing] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """Bytes of the box in shared memory, those outside of the tensor and gaps included."""
        return self.pitch * self.places.size

    @property
    def counted(self) -> int:
        """Bytes by which a load lowers the tx-count: those of ``bytes`` that are not gaps."""
        return self.size * self.places.size

    def landing(self, start: int, map_: TensorMap) -> Landing:
        """Return where pieces lie in shared memory if the box is put at ``start``."""
        found = self.landings.get((start, map_.swizzle))
        if found is None:
            found = Landing(tensor_swizzled(self.places + start, map_.swizzle), self.pitch)
            if len(self.landings) < _MOST_LANDINGS:
                self.landings[start, map_.swizzle] = found
        return found


def box_pieces(
    map_: TensorMap, coordinates: Sequence[int], *, offsets: Sequence[int] = (), element: bool = False
) -> Pieces:
    """Return the pieces of the box at some coordinates, in tile mode or im2col, as the map has it.

    ``offsets`` are those of im2col, W first. With ``element`` every piece is one element. Raises
    OperandError for another number of coordinates, UndefinedBehavior for some that the manual excludes,
    NotModelled for interleaved tensors and im2col::w.
    """
    _check(map_, coordinates, map_.rank)
    if not element and map_.im2col is None and _within(map_, coordinates):
        return _shift_pieces(map_, coordinates)
    return _box_pieces(map_, coordinates, offsets, element)


def _within(map_: TensorMap, coordinates: Sequence[int]) -> bool:
    """Return whether a box of tile mode is in its tensor and its rows begin at multiples of 16 bytes."""
    if coordinates[0] * map_.type.bits % 128:
        return False
    return all(
        0 <= item <= size - box for item, size, box in zip(coordinates, map_.sizes, map_.box, strict=True)
    )


def _shift_pieces(map_: TensorMap, coordinates: Sequence[int]) -> Pieces:
    """Return the pieces of a box inside of its tensor: those of any such box, so many bytes further on."""
    first = _first_box(map_)
    outer = sum(item * stride for item, stride in zip(coordinates[1:], map_.strides, strict=True))
    distance = coordinates[0] * map_.type.bits // 8 + outer
    if map_.address + distance >= _REACH:
        raise OperandError(f"coordinates {tuple(coordinates)} are beyond address 2**63")
    return replace(first, addresses=first.addresses + distance)


@lru_cache(maxsize=64)
def _first_box(map_: TensorMap) -> Pieces:
    """Return the pieces of the box at coordinates 0, for maps of tensors that hold it."""
    return _box_pieces(map_, (0,) * map_.rank, (), False)


def _box_pieces(map_: TensorMap, coordinates: Sequence[int], offsets: Sequence[int], element: bool) -> Pieces:
    """Return the pieces of any box, dimension by dimension."""
    if map_.im2col is not None:
        outer, inside = _pixels(map_, map_.im2col, coordinates, offsets)
        return _row_pieces(map_, coordinates[0], outer, inside, element)
    outer, inside = np.zeros(1, np.int64), np.ones(1, np.bool_)
    for dimension in range(map_.rank - 1, 0, -1):
        steps = np.arange(map_.counts[dimension], dtype=np.int64) * map_.element_strides[dimension]
        axis = _axis(map_, dimension, coordinates[dimension] + steps)
        outer, inside = _product_axis((outer, inside), axis)
    return _row_pieces(map_, coordinates[0], outer, inside, element)


def row_pieces(map_: TensorMap, coordinates: Sequence[int], *, element: bool = False) -> Pieces:
    """Return the pieces of gather4 and scatter4: a column, and four rows in succession in shared memory.

    Raises as box_pieces, and OperandError for a map with other than two dimensions or more than one row.
    """
    if map_.rank != 2 or map_.im2col is not None or map_.box[1] != 1:
        box = " x ".join(map(str, map_.box[::-1])) or map_.mode
        raise OperandError(
            f"four rows of a tensor of {map_.rank} dimensions with a box of {box}: "
            "gather4 and scatter4 take two dimensions and a box of one row"
        )
    _check(map_, coordinates, 5)
    outer, inside = _axis(map_, 1, np.array(coordinates[1:], np.int64))
    return _row_pieces(map_, coordinates[0], outer, inside, element)


def _check(map_: TensorMap, coordinates: Sequence[int], count: int) -> None:
    if len(coordinates) != count:
        raise OperandError(f"{len(coordinates)} coordinates, but the map's tensor takes {count}")
    if map_.interleave != "none":
        raise NotModelled(
            f"a tensor with interleave {map_.interleave}: no manual says which of its strides leads "
            "from slice to slice"
        )
    if map_.mode in ("im2col::w", "im2col::w::128"):
        raise NotModelled(f"{map_.mode}: the manual shows the order of its pixels in figures only")
    multiple = {"b4x16": 2, "b4x16_p64": 128, "b6x16_p32": 128}.get(map_.element, 1)
    if coordinates[0] % multiple:
        raise UndefinedBehavior(
            f"the first coordinate {coordinates[0]}: with {map_.element} it is a multiple of {multiple}"
        )


# --- dimensions ------------------------------------------------------------------------------------


def _axis(map_: TensorMap, dimension: int, positions: Addresses) -> Axis:
    """Return distances in bytes of positions along an outer dimension, and which are inside."""
    inside = (positions >= 0) & (positions < map_.sizes[dimension])
    kept = np.where(inside, positions, 0)
    stride = map_.strides[dimension - 1]
    if map_.address + int(kept.max(initial=0)) * stride >= _REACH:
        raise OperandError(f"dimension {dimension} from inside reaches beyond 2**63 with stride {stride}")
    return kept * stride, inside


def _product_axis(outer: Axis, axis: Axis) -> Axis:
    """Return every pair of two axes, the second faster."""
    distances = outer[0][:, None] + axis[0]
    return distances.reshape(-1), (outer[1][:, None] & axis[1]).reshape(-1)


def _row_pieces(map_: TensorMap, column: int, outer: Addresses, inside: Inside, element: bool) -> Pieces:
    """Return rows of the innermost dimension from a column on, a row at each distance."""
    count = _piece_elements(map_, column, element)
    step, pitch = count * map_.type.bits // 8, count * map_.type.shared_bits // 8
    starts = column // count + np.arange(map_.inner // count, dtype=np.int64)
    within = (starts >= 0) & (starts < -(-map_.sizes[0] // count))
    distances, inside = _product_axis((outer, inside), (np.where(within, starts, 0) * step, within))
    return Pieces(
        size=step,
        pitch=pitch,
        addresses=np.where(inside, distances + map_.address, 0),
        inside=inside,
        places=np.arange(distances.size, dtype=np.int64) * pitch,
        whole=bool(inside.all()),
    )


def _piece_elements(map_: TensorMap, column: int, element: bool) -> int:
    """Return how many neighbours make a piece: a power of two that divides column and tensor edge."""
    bits = map_.type.bits
    if map_.type.padded:
        return _GROUP
    if element:
        return max(1, 8 // bits)
    most = _FLIPPED if map_.swizzle == "128B_ATOM_32B_FLIP_8B" else 128
    whole = column >= 0 and column + map_.inner <= map_.sizes[0]
    count = most // bits
    while column % count or (not whole and map_.sizes[0] % count):
        count //= 2
    return count


# --- im2col ----------------------------------------------------------------------------------------


def _pixels(map_: TensorMap, im2col: Im2col, coordinates: Sequence[int], offsets: Sequence[int]) -> Axis:
    """Return distances of the pixels in the order in which they are visited, and which are inside."""
    spatial = range(1, map_.rank - 1)
    offsets = tuple(offsets) or (0,) * len(spatial)
    _check_offsets(map_, offsets)
    turn = np.arange(im2col.pixels, dtype=np.int64)
    carried, distances, inside = turn, np.zeros_like(turn), np.ones(turn.size, np.bool_)
    for place, dimension in enumerate(spatial):
        low, high = im2col.lower[place], map_.sizes[dimension] - 1 + im2col.upper[place]
        _check_start(map_, dimension, coordinates[dimension], low, high)
        base, carried = _wheel(carried, coordinates[dimension], low, high, map_.element_strides[dimension])
        more, within = _axis(map_, dimension, base + offsets[place])
        distances, inside = distances + more, inside & within
    more, within = _axis(map_, map_.rank - 1, coordinates[-1] + carried)
    return distances + more, inside & within


def _check_offsets(map_: TensorMap, offsets: Sequence[int]) -> None:
    if len(offsets) != map_.rank - 2:
        raise OperandError(f"{len(offsets)} offsets of im2col, but the map's tensor takes {map_.rank - 2}")
    for offset in offsets:
        if not 0 <= offset < _OFFSETS[map_.rank]:
            raise UndefinedBehavior(
                f"offset {offset} of im2col: in a tensor of {map_.rank} dimensions it is 0 to "
                f"{_OFFSETS[map_.rank] - 1}"
            )


def _check_start(map_: TensorMap, dimension: int, start: int, low: int, high: int) -> None:
    if not low <= start <= high:
        raise UndefinedBehavior(
            f"coordinate {start} along {'WHD'[dimension - 1]} is outside the bounding box, {low} to {high}"
        )


def _wheel(turns: Addresses, start: int, low: int, high: int, step: int) -> tuple[Addresses, Addresses]:
    """Return positions after so many steps from the start, and how often they have gone back to ``low``."""
    first, every = (high - start) // step + 1, (high - low) // step + 1
    late = turns - first
    back = np.where(late < 0, 0, late // every + 1)
    return np.where(late < 0, start + turns * step, low + late % every * step), back
