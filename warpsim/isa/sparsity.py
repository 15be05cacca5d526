"""Structured sparsity: patterns, metadata fields, compression, decompression and pruning.

Knows chunks, units and 4-bit metadata fields of one row of A. Does not know which lane and which
bits a field lies in (see families/mma_sp.py) nor what an element's value means.

Words: a *chunk* is a group of consecutive logical columns of a row; a *unit* is the group of
elements that is kept or dropped together (one element, or an aligned pair of 4-bit elements); a
*field* is the 4 bits of metadata of one chunk. PTX ISA 9.1, section 9.7.14.6.1 "Sparse matrix
storage".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.errors import OperandError

FIELD_BITS = 4
_RANKS = 3  # of units: not zero, -0, +0
_TOO_MANY = {np.dtype(np.uint8): 0xFF, np.dtype("<u2"): 0xFFFF}  # indices of no chunk


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """``stored`` of ``chunk`` consecutive elements are kept, in units of ``unit`` elements."""

    name: str
    chunk: int
    stored: int
    unit: int

    def __hash__(self) -> int:
        return hash(self.name)  # names are unique, and hashing is on the way of every call

    def __str__(self) -> str:
        return self.name

    @property
    def kept(self) -> int:
        """Units kept of each chunk: 1 or 2."""
        return self.stored // self.unit

    @property
    def choices(self) -> int:
        """Units in a chunk: 2 or 4."""
        return self.chunk // self.unit

    @cached_property
    def decode_table(self) -> npt.NDArray[np.uint8]:
        """``(16, kept)``: the unit index or indices that each field value names, read literally.

        A field holds two 2-bit indices, the first unit's in the low bits. A tf32 element counts as
        two 16-bit halves, so a 1:2 field is a 2:4 field that names both halves (0b0100 or 0b1110)
        and bit 1 selects which; the other values are undefined by PTX and this reading of them is
        only the deterministic fallback.
        """
        field = np.arange(16, dtype=np.uint8)
        if self.kept == 1:
            return (field[:, None] >> 1 & 1).astype(np.uint8)
        return np.stack([field & 3, field >> 2], axis=1)

    @cached_property
    def decode_numbers(self) -> npt.NDArray[Any]:
        """``(16,)``: the rows of decode_table as single numbers, which NumPy looks up five times as fast."""
        rows = self.decode_table
        return rows.view(f"u{rows.shape[1]}").reshape(16)

    @cached_property
    def encode_table(self) -> npt.NDArray[np.uint8]:
        """``(choices,) * kept``: the field value for the given unit indices."""
        if self.kept == 1:
            return np.array([0b0100, 0b1110], np.uint8)
        first, second = np.indices((4, 4), np.uint8)
        return (first | second << 2).astype(np.uint8)

    def fields(self, units: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Return the fields ``(..., chunks)`` of unit indices ``(..., units)``; see encode_table."""
        number = units[..., :: self.kept]
        for place in range(1, self.kept):
            number = number * np.uint8(self.choices) + units[..., place :: self.kept]
        return np.take(self.encode_table.reshape(-1), number)

    @cached_property
    def distinct(self) -> npt.NDArray[np.bool_]:
        """``(16,)``: fields with a meaning under plain ``.sp``."""
        if self.kept == 1:
            return np.isin(np.arange(16), self.encode_table)
        return np.not_equal(self.decode_table[:, 0], self.decode_table[:, 1])

    @cached_property
    def ascending(self) -> npt.NDArray[np.bool_]:
        """``(16,)``: fields with a meaning under ``.sp::ordered_metadata``."""
        if self.kept == 1:
            return self.distinct
        return np.less(self.decode_table[:, 0], self.decode_table[:, 1])


ONE_OF_TWO = Pattern(name="1:2", chunk=2, stored=1, unit=1)
TWO_OF_FOUR = Pattern(name="2:4", chunk=4, stored=2, unit=1)
FOUR_OF_EIGHT = Pattern(name="4:8", chunk=8, stored=4, unit=2)  # two aligned pairs out of four


def stored_columns(indices: npt.NDArray[np.uint8], pattern: Pattern) -> npt.NDArray[np.intp]:
    """Logical column of every stored element: ``(..., m, units)`` indices to ``(..., m, stored columns)``.

    k = chunk size * chunk + unit size * index + element of the unit.
    """
    units = indices.shape[-1]
    chunk_start = np.repeat(np.arange(units // pattern.kept) * pattern.chunk, pattern.kept)
    unit_start: npt.NDArray[np.intp] = indices.astype(np.intp)
    if pattern.unit > 1:
        unit_start *= pattern.unit
    unit_start += chunk_start
    if pattern.unit == 1:  # an axis of one element would cost more than all else
        return unit_start
    columns = unit_start[..., None] + np.arange(pattern.unit)
    return columns.reshape(*indices.shape[:-1], units * pattern.unit)


def compress(
    matrix: npt.NDArray[Any], ranks: npt.NDArray[np.uint8], pattern: Pattern
) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint8]]:
    """Return stored values ``(..., m, k * stored / chunk)`` and unit indices ``(..., m, units)`` of a sparse
    matrix.

    ``ranks`` has the shape of ``matrix``: 2 for what is not zero, 1 for what may be dropped, and 0 for what
    is dropped first (codes.zero_ranks). Indices ascend within a chunk; a chunk with fewer non-zeros than
    the pattern keeps is padded with its lowest unused units. Raises OperandError, naming row and
    chunk, where a chunk has too many non-zeros.
    """
    units = _units(ranks, pattern)
    rank = np.maximum.reduce([units[..., place] for place in range(pattern.unit)])
    number = _numbers(rank, pattern)
    order = np.take(_kept_units(pattern), number)
    if (order == _TOO_MANY[order.dtype]).any():
        _refuse_dense(_too_many(pattern)[number], rank == _RANKS - 1, pattern)
    indices = order.view(np.uint8)
    first = np.arange(number.size, dtype=np.intp) * pattern.choices
    places = (first[:, None] + indices.reshape(-1, pattern.kept)).reshape(-1)
    values = np.take(matrix.reshape(-1, pattern.unit), places, axis=0)  # row by row, whatever the matrix
    return values.reshape(*number.shape[:-1], number.shape[-1] * pattern.stored), indices


def _numbers(rank: npt.NDArray[np.uint8], pattern: Pattern) -> npt.NDArray[np.uint8]:
    """Return which of ``_chunks`` each chunk is, ``(..., m, chunks)``, by the ranks of its units.

    The bytes of a chunk are one integer, whose product with powers of _RANKS has the sum that is wanted in
    its highest byte; sums of lower bytes are below 256.
    """
    last = pattern.choices - 1
    kind = np.dtype(f"<u{pattern.choices}")
    powers = sum(_RANKS**place << 8 * (last - place) for place in range(pattern.choices))
    words = np.ascontiguousarray(rank).view(kind)[..., 0]
    numbers: npt.NDArray[np.uint8] = (words * kind.type(powers) >> kind.type(8 * last)).astype(np.uint8)
    return numbers


def decompress(
    values: npt.NDArray[Any], indices: npt.NDArray[np.uint8], pattern: Pattern
) -> npt.NDArray[Any]:
    """Return the dense ``(..., m, k)`` matrix, zeros where nothing was stored; the inverse of compress."""
    columns = stored_columns(indices, pattern)
    rows = values.shape[:-1]
    matrix = np.zeros((*rows, values.shape[-1] // pattern.stored * pattern.chunk), values.dtype)
    np.put_along_axis(matrix, np.broadcast_to(columns, values.shape), values, axis=-1)
    return matrix


def prune(matrix: npt.NDArray[Any], magnitude: npt.NDArray[Any], pattern: Pattern) -> npt.NDArray[Any]:
    """Return the matrix with all but the largest units of every chunk set to zero.

    A pair of elements weighs the sum of their magnitudes; the lower unit wins a tie.
    """
    weight = np.maximum(_units(magnitude, pattern), 0).sum(axis=-1)
    order = _strongest(weight, pattern)
    keep = np.zeros(weight.shape, np.bool_)
    np.put_along_axis(keep, order, True, axis=-1)
    kept = np.where(keep[..., None], _units(matrix, pattern), np.zeros((), matrix.dtype))
    return kept.reshape(matrix.shape).astype(matrix.dtype)


def _units(matrix: npt.NDArray[Any], pattern: Pattern) -> npt.NDArray[Any]:
    """Return ``(..., m, k)`` seen as ``(..., m, chunks, choices, unit)``."""
    chunks = matrix.shape[-1] // pattern.chunk
    return matrix.reshape(*matrix.shape[:-1], chunks, pattern.choices, pattern.unit)


@cache
def _kept_units(pattern: Pattern) -> npt.NDArray[Any]:
    """``(_RANKS ** choices,)``: the units that are kept, a byte of an integer each, by the ranks of all units
    of a chunk; _TOO_MANY where more are not zero.
    """
    units = np.ascontiguousarray(_strongest(_chunks(pattern), pattern), np.uint8)
    words = units.view(f"<u{pattern.kept}")[:, 0]
    return np.where(_too_many(pattern), words.dtype.type(_TOO_MANY[words.dtype]), words)


@cache
def _too_many(pattern: Pattern) -> npt.NDArray[np.bool_]:
    """``(_RANKS ** choices,)``: whether more units are not zero than the pattern keeps."""
    return np.asarray((_chunks(pattern) == _RANKS - 1).sum(axis=-1) > pattern.kept)


def _chunks(pattern: Pattern) -> npt.NDArray[np.int64]:
    """Return the ranks of the units of every chunk there can be, the first unit counting least."""
    return np.arange(_RANKS**pattern.choices)[:, None] // _RANKS ** np.arange(pattern.choices) % _RANKS


def _strongest(weight: npt.NDArray[Any], pattern: Pattern) -> npt.NDArray[np.intp]:
    """Ascending indices of the heaviest units of each chunk; the lower index wins a tie."""
    heaviest = np.argsort(-weight, axis=-1, kind="stable")[..., : pattern.kept]
    return np.sort(heaviest, axis=-1)


def _refuse_dense(too_many: npt.NDArray[np.bool_], nonzero: npt.NDArray[np.bool_], pattern: Pattern) -> None:
    if not too_many.any():
        return
    *batch, row, chunk = (int(i) for i in np.argwhere(too_many)[0])
    count = int(nonzero[(*batch, row, chunk)].sum())
    first = chunk * pattern.chunk
    unit = "pairs of elements" if pattern.unit > 1 else "elements"
    where = f" of matrix {tuple(batch)}" if batch else ""
    raise OperandError(
        f"A{where}, row {row}, columns {first}..{first + pattern.chunk - 1} (chunk {chunk}): "
        f"{count} non-zero {unit}, but {pattern} sparsity keeps {pattern.kept} of {pattern.choices}"
    )
