"""Orders of sparse metadata: where the 4-bit field of each row and chunk of a whole matrix lies.

Knows the orders in which kernels and libraries store metadata. Does not know values of A. Every conversion
first checks that its order is one-to-one for the rows and chunks at hand.

Sources: PTX ISA 9.1, section 9.7.14.6 (registers); CUTLASS 2.x ``reorder_meta`` and the layout
``ColumnMajorInterleaved<2>`` that its sparse GEMM reads; torch.sparse semi-structured tensors, whose
CUTLASS back end stores the same order; CUTLASS 3.x ``Sm90GemmSparseConfig`` with a tile of 128 or more
along k, compared with the output of its compressor kernel for f16.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.errors import OperandError
from ..arrays import as_array
from ..fragments import check_selector, metadata_map, require_sparse
from ..instruction import Instruction
from ..sparsity import FIELD_BITS, Pattern

_ATOM_ROWS, _ATOM_COLUMNS = 64, 128  # of CUTLASS 3.x
_LARGEST = 1 << 28  # elements of a matrix whose metadata is looked at

Fields = npt.NDArray[np.uint8]  # (rows, chunks): one 4-bit metadata field each
Index = npt.NDArray[np.intp]
Place = Callable[[Index, Index, int, int], Index]  # (row, chunk, rows, chunks) -> slot of the field
BlobShape = Callable[[int, int], tuple[int, ...]]  # (rows, chunks) -> shape of the blob


@dataclass(frozen=True, kw_only=True)
class Arrangement:
    """One order of the fields of a matrix in an array of words of ``slots`` fields, lowest bits first.

    ``place`` is the slot of each field. Rows and chunks must be multiples of ``row_multiple`` and
    ``chunk_multiple``. ``gaps`` allows slots that no field uses: lanes that a selector does not read.
    """

    name: str
    description: str
    pattern: Pattern
    dtype: np.dtype[Any]
    slots: int
    shape: BlobShape
    place: Place
    row_multiple: int = 1
    chunk_multiple: int = 1
    gaps: bool = False

    def __str__(self) -> str:
        return self.name

    def places(self, rows: int, k: int) -> Index:
        """Return ``(rows, chunks)``: the slot of every field, proven one-to-one; OperandError for rows, k."""
        chunks = self._chunks(rows, k)
        row, chunk = np.indices((rows, chunks))
        slots = self.place(row, chunk, rows, chunks)
        used = np.bincount(slots.ravel(), minlength=self._size(rows, chunks))
        if used.max() > 1 or used.size != self._size(rows, chunks) or not (self.gaps or used.all()):
            raise AssertionError(f"{self.name} is not one-to-one for {rows} rows of {chunks} chunks")
        return slots

    def encode(self, fields: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the blob of fields ``(rows, chunks)``; slots that no field uses are zero."""
        values = np.asarray(fields, np.uint8)
        rows, chunks = values.shape
        flat = np.zeros(self._size(rows, chunks), self._unsigned)
        flat[self.places(rows, chunks * self.pattern.chunk)] = values
        words = np.bitwise_or.reduce(flat.reshape(-1, self.slots) << self._shifts, axis=1)
        blob: npt.NDArray[Any] = words.view(self.dtype).reshape(self.shape(rows, chunks))
        return blob

    def decode(self, blob: npt.ArrayLike, rows: int, k: int) -> Fields:
        """Return the fields ``(rows, chunks)`` of a blob; the inverse of encode. Raises OperandError."""
        words = self.words(as_array(blob), rows, k).reshape(-1, 1)  # first: a blob has the size that it needs
        slots = self.places(rows, k)
        flat = words >> self._shifts & self._unsigned.type(15)
        fields: Fields = flat.reshape(-1)[slots].astype(np.uint8)
        return fields

    def words(self, blob: npt.NDArray[Any], rows: int, k: int) -> npt.NDArray[Any]:
        """Return the blob as unsigned words of the right shape; OperandError if it has another size."""
        chunks = self._chunks(rows, k)
        shape = self.shape(rows, chunks)
        expected = prod(shape) * self.dtype.itemsize
        if blob.dtype.kind not in "iu" or blob.nbytes != expected:
            raise OperandError(
                f"{self.name}: the blob is {blob.nbytes} bytes of {blob.dtype}, but {rows} rows of "
                f"{chunks} chunks take {shape} words of {self.dtype}, {expected} bytes"
            )
        return np.ascontiguousarray(blob).view(self._unsigned).reshape(shape)

    @property
    def _unsigned(self) -> np.dtype[Any]:
        return np.dtype(f"<u{self.dtype.itemsize}")

    @property
    def _shifts(self) -> npt.NDArray[Any]:
        return (FIELD_BITS * np.arange(self.slots)).astype(self._unsigned)

    def _size(self, rows: int, chunks: int) -> int:
        return prod(self.shape(rows, chunks)) * self.slots

    def _chunks(self, rows: int, k: int) -> int:
        chunks, left = divmod(k, self.pattern.chunk)
        check_size(rows, k)
        wrong_k = left or chunks % self.chunk_multiple or not chunks
        if wrong_k or rows % self.row_multiple:
            raise OperandError(
                f"{self.name}: {rows} x {k} does not fit: rows must be a multiple of {self.row_multiple} "
                f"and k of {self.chunk_multiple * self.pattern.chunk}, or fields would share a place"
            )
        return chunks


class IndexPairs(Arrangement):
    """Indices instead of fields: a byte for each, in the order of the stored units."""

    def encode(self, fields: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return ``(rows, units)`` indices of fields ``(rows, chunks)``."""
        values = np.asarray(fields, np.uint8)
        self.places(values.shape[0], values.shape[1] * self.pattern.chunk)
        indices: npt.NDArray[Any] = self.pattern.decode_table[values].reshape(values.shape[0], -1)
        return indices

    def decode(self, blob: npt.ArrayLike, rows: int, k: int) -> Fields:
        """Return the fields of indices; OperandError for an index out of range."""
        indices = self.words(as_array(blob), rows, k)
        units = indices.reshape(rows, -1, self.pattern.kept)
        if units.max() >= self.pattern.choices:
            raise OperandError(f"{self.name}: index {units.max()} in a {self.pattern} chunk")
        fields: Fields = self.pattern.encode_table[tuple(np.moveaxis(units, -1, 0))]
        return fields

    def _size(self, rows: int, chunks: int) -> int:
        return rows * chunks  # a field is as many bytes as it has indices


# --- places: (row, chunk) -> slot ----------------------------------------------------------------------


def _row_major(row: Index, chunk: Index, rows: int, chunks: int) -> Index:
    return row * chunks + chunk


def _cutlass_order(fields_per_word: int) -> Place:
    """Return CUTLASS's order of words E(row, column), as its warps load them with 16-byte loads.

    Rows that one lane needs are brought together (groups of 32 rows with 16-bit words, of 16 rows
    with 32-bit words), then the off-diagonal words of each 2 x 2 block change places, so that a column pair
    of a row pair makes the words of two lanes; pairs of columns are stored column by column.
    """
    group, step = (32, 4) if fields_per_word == 4 else (16, 2)

    def place(row: Index, chunk: Index, rows: int, chunks: int) -> Index:
        column, field = np.divmod(chunk, fields_per_word)
        gathered = row // group * group + row % 8 * step + row % group // 8
        across, down = column % 2, gathered % 2
        word: Index = (column // 2 * rows + gathered - down + across) * 2 + down
        return word * fields_per_word + field

    return place


def _atoms(element_bits: int, per_atom: int) -> Place:
    """Return CUTLASS 3.x's order for wgmma: atoms of 64 rows and 128 columns, those of a column of atoms
    first.

    In an atom of 16- or 32-bit elements what the lanes of a warp read of one instruction's metadata is
    scattered so that a lane's words of all instructions along k are neighbours; fields of 8-bit elements
    are row-major.
    """
    blocks = per_atom // 8  # instructions along k in an atom, of 8 chunks each

    def inside(row: Index, chunk: Index) -> Index:
        if element_bits == 8:
            return row * per_atom + chunk
        four, half, block = chunk % 4, chunk // 4 % 2, chunk // 8
        eight, second, warp = row % 8, row // 8 % 2, row // 16
        return four + 4 * second + 8 * block + 8 * blocks * (eight + 8 * half + 16 * warp)

    def place(row: Index, chunk: Index, rows: int, chunks: int) -> Index:
        atom: Index = chunk // per_atom * (rows // _ATOM_ROWS) + row // _ATOM_ROWS
        return atom * _ATOM_ROWS * per_atom + inside(row % _ATOM_ROWS, chunk % per_atom)

    return place


def _lane_place(instruction: Instruction, selector: int) -> Place:
    """Return (row, chunk) -> slot in the words (row tiles, k tiles, lanes) of whole tiles."""
    mapped = metadata_map(instruction, selector)
    m, pattern, lanes = instruction.shape.m, require_sparse(instruction), instruction.lanes
    per_tile = instruction.shape.k // pattern.chunk
    slot = np.empty((m, per_tile), np.intp)
    slot[mapped[:, 3], mapped[:, 4]] = mapped[:, 0] * 8 + mapped[:, 1] // FIELD_BITS

    def place(row: Index, chunk: Index, rows: int, chunks: int) -> Index:
        tile = row // m * (chunks // per_tile) + chunk // per_tile
        first: Index = tile * lanes * 8
        return first + slot[row % m, chunk % per_tile]

    return place


# --- the arrangements ----------------------------------------------------------------------------------


def lane_words(instruction: Instruction, selector: int = 0) -> Arrangement:
    """Metadata registers of every tile, ``(row tiles, k tiles, lanes, 1)``: pack_metadata's order."""
    pattern = require_sparse(instruction)
    check_selector(instruction, selector)
    m, chunks, lanes = instruction.shape.m, instruction.shape.k // pattern.chunk, instruction.lanes
    return Arrangement(
        name=f"lanes {instruction.shape} selector {selector}",
        description="one 32-bit register a lane and tile, as the instruction reads them",
        pattern=pattern,
        dtype=np.dtype("<u4"),
        slots=8,
        shape=lambda rows, total: (rows // m, total // chunks, lanes, 1),
        place=_lane_place(instruction, selector),
        row_multiple=m,
        chunk_multiple=chunks,
        gaps=instruction.metadata_words < 4,
    )


def fields_matrix(pattern: Pattern) -> Arrangement:
    """Return one field a byte, ``(rows, chunks)``."""
    return Arrangement(
        name="fields",
        description="row-major fields, each in a byte",
        pattern=pattern,
        dtype=np.dtype("u1"),
        slots=1,
        shape=lambda rows, chunks: (rows, chunks),
        place=_row_major,
    )


def index_pairs(pattern: Pattern) -> Arrangement:
    """Return one index a byte, ``(rows, units)``, as compress returns them."""
    return IndexPairs(
        name="indices",
        description="row-major indices, each in a byte",
        pattern=pattern,
        dtype=np.dtype("u1"),
        slots=1,
        shape=lambda rows, chunks: (rows, chunks * pattern.kept),
        place=_row_major,
    )


def row_major_words(pattern: Pattern, width: int) -> Arrangement:
    """Return E before any reordering, ``(rows, chunks / fields per word)``; ``width`` is 2 or 4 bytes."""
    slots = 2 * width
    return Arrangement(
        name="words",
        description="row-major E words, not reordered",
        pattern=pattern,
        dtype=np.dtype(f"<u{width}"),
        slots=slots,
        shape=lambda rows, chunks: (rows, chunks // slots),
        place=_row_major,
        chunk_multiple=slots,
    )


def cutlass(pattern: Pattern, width: int) -> Arrangement:
    """Return CUTLASS 2.x reordered E, flat, ``ColumnMajorInterleaved<2>``; ``width`` is 2 or 4 bytes."""
    slots = 2 * width
    return Arrangement(
        name="cutlass",
        description="CUTLASS 2.x reorder_meta, E interleaved by column pairs",
        pattern=pattern,
        dtype=np.dtype(f"<u{width}"),
        slots=slots,
        shape=lambda rows, chunks: (rows * chunks // slots,),
        place=_cutlass_order(slots),
        row_multiple=64 // width,  # 32 rows with 16-bit words, 16 with 32-bit words
        chunk_multiple=2 * slots,
    )


def torch_cutlass(pattern: Pattern, width: int) -> Arrangement:
    """torch.sparse's ``meta_reordered``, CUTLASS back end: the same order as an int16 or int32 matrix."""
    slots = 2 * width
    return replace(
        cutlass(pattern, width),
        name="torch",
        description="torch.sparse meta_reordered of the CUTLASS back end",
        dtype=np.dtype(f"<i{width}"),
        shape=lambda rows, chunks: (rows, chunks // slots),
    )


def cutlass3(pattern: Pattern, element_bits: int) -> Arrangement:
    """Return CUTLASS 3.x's E for wgmma.sp of sm_90, flat bytes; elements of 8, 16 or 32 bits."""
    per_atom = _ATOM_COLUMNS // pattern.chunk
    return Arrangement(
        name="cutlass3",
        description="CUTLASS 3.x E of Sm90GemmSparseConfig, tiles of 128 or more along k",
        pattern=pattern,
        dtype=np.dtype("u1"),
        slots=2,
        shape=lambda rows, chunks: (rows * chunks // 2,),
        place=_atoms(element_bits, per_atom),
        row_multiple=_ATOM_ROWS,
        chunk_multiple=per_atom,
    )


def check_size(rows: int, k: int) -> None:
    """Raise OperandError for a matrix without elements, or of more than can be looked at."""
    if rows < 1 or k < 1:
        raise OperandError(f"{rows} x {k} does not fit: rows and k are at least 1")
    if rows * k > _LARGEST:
        raise OperandError(f"rows {rows}, k {k}: {rows * k:,} elements, more than the {_LARGEST:,} supported")
