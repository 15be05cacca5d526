"""Which registers of D come of which lanes of A, B and metadata, and which of ldmatrix of which addresses.

An element of D comes of a row of A and of its metadata, of a column of B, and of the same element of C: no
row or column has anything of another. Knows layouts; does not know which values are open.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ....isa.fragments import fragment, metadata_map
from ....isa.instruction import Instruction
from ....isa.warps import WARP
from ....machine.state.lanes import Mask
from ....machine.state.undefined_metadata import rows_of_d

Bits = npt.NDArray[np.uint64]


class Reach(NamedTuple):
    """Rows or columns, a bit for each: ``sources (registers, 32)`` are those that a register of a lane has
    something of, ``results (registers, 32)`` those that a result comes of.
    """

    sources: Bits
    results: Bits


@lru_cache(maxsize=256)
def is_one(form: Instruction) -> bool:
    """Return whether the lanes of a warp hold one product, and not several."""
    places = fragment(form, "d").reshape(-1, 2)
    return len({*map(tuple, places.tolist())}) == form.shape.m * form.shape.n == len(places)


@lru_cache(maxsize=256)
def reach_of(form: Instruction, role: str, selector: int) -> Reach:
    """Return which registers of D come of which of a, b or e."""
    axis = 1 if role == "b" else 0
    held = _rows_of_metadata(form, selector) if role == "e" else _held(form, role, axis)
    return Reach(held, _held(form, "d", axis))


def _held(form: Instruction, role: str, axis: int) -> Bits:
    """Return ``(registers, 32)``: the rows or columns that registers of an operand have elements of."""
    places = fragment(form, role)[..., axis].swapaxes(0, 1)
    return np.asarray(np.bitwise_or.reduce(np.uint64(1) << places.astype(np.uint64), axis=2))


def _rows_of_metadata(form: Instruction, selector: int) -> Bits:
    """Return ``(1, 32)``: the rows that the metadata register of a lane has fields of."""
    found = np.zeros((1, WARP), np.uint64)
    for lane, _, _, row, _ in metadata_map(form, selector).tolist():
        found[0, lane] |= np.uint64(1 << row)
    return found


@lru_cache(maxsize=16)
def reach_of_matrices(count: int, *, transposed: bool) -> Reach:
    """Return which registers of an ldmatrix of 8 x 8 b16 come of the address that a lane gives.

    Lane 8 j + r gives row r of matrix j, which lanes 4 r to 4 r + 3 have; transposed, lane l has two elements
    of column l / 4 from row 2 (l mod 4) on. PTX ISA 9.1, section 9.7.14.5.15.
    """
    lane, matrix = np.arange(WARP, dtype=np.uint64), np.arange(count, dtype=np.uint64)[:, None]
    rows = np.uint64(3) << 2 * (lane % 4) if transposed else np.uint64(1) << lane // 4
    return Reach(np.uint64(1) << lane[None], rows << 8 * matrix)


def reached(masks: npt.NDArray[np.bool_], reach: Reach) -> list[Mask]:
    """Return the lanes of each result that come of ``masks (registers, lanes)``, warp by warp."""
    each = np.where(masks.reshape(len(masks), -1, WARP), reach.sources[:, None], np.uint64(0))
    opened = np.bitwise_or.reduce(each, axis=(0, 2))[:, None]
    return [(opened & results != 0).reshape(-1) for results in reach.results]


@lru_cache(maxsize=256)
def lanes_of_rows(form: Instruction, warps: bytes, rows: bytes) -> list[Mask]:
    """Return for each register of D the lanes that have some of ``rows (warps, m)``, up to the last warp;
    ``warps`` are the numbers of the warps.
    """
    numbers = np.frombuffer(warps, np.intp)
    elements = np.frombuffer(rows, np.bool_).reshape(len(numbers), -1)[:, rows_of_d(form)]
    parts = elements.reshape(len(numbers), form.lanes, form.registers["d"], -1)
    marks = np.asarray(parts.any(axis=3))
    found = np.zeros((form.registers["d"], int(numbers.max()) + 1, form.lanes), np.bool_)
    found[:, numbers] = marks.transpose(2, 0, 1)
    return [*found.reshape(len(found), -1)]
