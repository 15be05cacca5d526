"""Where tcgen05.mma has D, A, metadata and scale factors in tensor memory: extents and strides as data.

A cell is 32 bits of a CTA's 128 lanes and 512 columns. PTX ISA 9.3, sections 9.7.17.10.5 (layouts A to G
of D), 9.7.17.10.6 to 9.7.17.10.9 (metadata), 9.7.17.10.7 (scale factors). The letters are the manual's.
Does not know formats, words or descriptors.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from itertools import product as choices
from typing import NamedTuple

import numpy as np

from .strides import Indices, Modes, extent, modes, points

LANES, COLUMNS = 128, 512  # of a CTA
CTA, LANE, COLUMN, BIT = range(4)
_DOWN = (0, 1, 0, 0)  # a lane
_RIGHT = (0, 0, 1, 0)  # a column


class Block(NamedTuple):
    """Rows and columns of a matrix that lie side by side in the cells of a CTA, from a lane and column on."""

    rows: slice
    columns: slice
    cta: int
    lane: int
    column: int


def _runs(places: Indices, step: tuple[int, ...]) -> list[slice]:
    """Return the stretches of ``places (n, 4)`` in which each place follows the last by a step."""
    breaks = np.flatnonzero((np.diff(places, axis=0) != step).any(axis=1)) + 1
    bounds = [0, *breaks.tolist(), len(places)]
    return [slice(*pair) for pair in pairwise(bounds)]


@dataclass(frozen=True, kw_only=True)
class TensorLayout:
    """``(row, column) -> (cta, lane, column, bit)``: what the digits of both indices add.

    ``copies`` are lanes at which the same element lies again. ``cta`` counts in the pair. ``shape`` is the
    matrix; a digit may be larger than what the matrix has left. ``first`` is where the columns begin in
    their digits.
    """

    shape: tuple[int, int]
    rows: Modes
    columns: Modes
    copies: tuple[int, ...] = (0,)
    letter: str = ""
    first: int = 0

    @property
    def _steps(self) -> tuple[Indices, Indices]:
        """What each row, and each column, adds."""
        across = points(self.columns, 4)[self.first : self.first + self.shape[1]]
        return points(self.rows, 4)[: self.shape[0]], across

    @cached_property
    def cells(self) -> Indices:
        """``(rows, columns, 4)``: CTA, lane, column and lowest bit of each element, of the first copy."""
        down, across = self._steps
        found: Indices = down[:, None, :] + across[None, :, :]
        return found

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The cells of the first copy as blocks, of a layout with a cell for each element."""
        down, across = self._steps
        pairs = choices(_runs(down, _DOWN), _runs(across, _RIGHT))
        return tuple(
            Block(rows, columns, *(down[rows.start] + across[columns.start])[: COLUMN + 1].tolist())
            for rows, columns in pairs
        )

    @cached_property
    def ctas(self) -> int:
        """CTAs that have a part: 1 or 2."""
        return int(self.cells[..., CTA].max()) + 1

    @cached_property
    def width(self) -> int:
        """Columns of cells that it takes."""
        return int(self.cells[..., COLUMN].max()) + 1

    @cached_property
    def half(self) -> bool:
        """Whether it leaves the upper 16 lanes of each quarter free, so that a lane of 16 may be the
        first.
        """
        return bool((self.cells[..., LANE] % 32 < 16).all()) and self.copies == (0,)


# --- D -----------------------------------------------------------------------------------------------

_PEER = (1, 0, 0, 0)  # the other CTA
_ROWS = {  # by the letter of the manual; rows of D
    "A": modes((128, _DOWN), (2, _PEER)),
    "B": modes((64, _DOWN), (2, _PEER)),
    "C": modes((16, _DOWN), (4, (0, 32, 0, 0)), (2, _PEER)),
    "D": modes((128, _DOWN)),
    "E": modes((64, _DOWN)),
    "F": modes((16, _DOWN), (4, (0, 32, 0, 0))),
    "G": modes((32, _DOWN)),
}
_PARTS = {"B": 2, "E": 2, "G": 4}  # into which the columns of D are cut, each in lanes of its own
LETTERS = {  # by (CTAs, .ws, M, sparse)
    (2, False, 256, False): "A", (2, False, 256, True): "A",
    (2, False, 128, False): "B", (2, False, 128, True): "C",
    (1, False, 128, False): "D", (1, False, 128, True): "D",
    (1, False, 64, False): "F", (1, False, 64, True): "F",
    (1, True, 128, False): "D", (1, True, 128, True): "D",
    (1, True, 64, False): "E", (1, True, 64, True): "E",
    (1, True, 32, False): "G", (1, True, 32, True): "G",
}  # fmt: skip


@cache
def accumulator(letter: str, n: int) -> TensorLayout:
    """Return the layout of D with N columns, by the letter of the manual: one cell an element."""
    rows, parts = _ROWS[letter], _PARTS.get(letter, 1)
    columns = modes((n // parts, _RIGHT), (parts, (0, LANES // parts, 0, 0)))
    return TensorLayout(shape=(extent(rows), n), rows=rows, columns=columns, letter=letter)


@cache
def multiplicand(letter: str, k: int, bits: int) -> TensorLayout | None:
    """Return the layout of A with K stored columns of ``bits`` each, K-major; None where it is not known.

    Layout B has the 64 rows of a CTA twice. Those of .ws with M 64 and 32 are not documented in words.
    """
    if letter in "EG":
        return None
    slots = 32 // bits
    columns = modes((slots, (0, 0, 0, bits)), (k // slots, _RIGHT))
    copies = (0, 64) if letter == "B" else (0,)
    rows = _ROWS[letter]
    return TensorLayout(shape=(extent(rows), k), rows=rows, columns=columns, copies=copies, letter=letter)


# --- metadata ----------------------------------------------------------------------------------------

_FIELD = (0, 0, 0, 4)


@cache
def metadata(letter: str, bits: int, chunks: int) -> TensorLayout:
    """Return the layout of the metadata fields ``(row, chunk)`` of a sparse A whose elements have ``bits``.

    16-bit and 32-bit elements fold 16 rows into 16 half words of 16 lanes, as the registers of mma.sp do;
    others have a row a lane. The 16 rows of a group lie where the layout of D has its rows.
    """
    rows = _ROWS[letter]
    copies = tuple(range(0, LANES, extent(rows))) if letter in "EG" else (0,)
    columns = modes((8, _FIELD), (-(-chunks // 8), _RIGHT))
    if bits >= 16:
        groups = {"A": 8, "B": 4, "D": 8, "E": 4, "G": 2}
        outer = modes((groups[letter], (0, 16, 0, 0))) if letter in groups else modes((4, (0, 32, 0, 0)))
        pair = modes((2, _PEER)) if letter in "ABC" else ()
        rows = (*modes((8, _DOWN), (2, (0, 0, 0, 16))), *outer, *pair)
        columns = modes((4, _FIELD), (2, (0, 8, 0, 0)))
    return TensorLayout(
        shape=(extent(rows), chunks), rows=rows, columns=columns, copies=copies, letter=letter
    )


# --- scale factors -----------------------------------------------------------------------------------

_QUARTERS = (0, 32, 64, 96)
_BYTE = (0, 0, 0, 8)


def _factors(rows: int, first: int, factors: int) -> Modes:
    """Return the modes of the factors of a row: four bytes of a cell, then of one behind all rows' cells."""
    return modes((4, _BYTE), (-(-(first + factors) // 4), (0, 0, -(-rows // 128) * 4, 0)))


@cache
def row_scales(rows: int, factors: int, ctas: int, first: int = 0) -> TensorLayout | None:
    """Return the layout of the scale factors of A: rows of a CTA in 32 lanes, four times; ``rows`` are all.

    ``first`` is the byte of the first factor. Six factors or three may continue in a second cell, whose
    place is known for 128 rows of a CTA; None for others.
    """
    own = rows // ctas
    if first + factors > 4 and own != 128:
        return None
    return TensorLayout(
        shape=(rows, factors),
        rows=modes((32, _DOWN), (own // 32, _RIGHT), (ctas, _PEER)),
        columns=_factors(own, first, factors),
        copies=_QUARTERS,
        first=first,
    )


@cache
def column_scales(n: int, factors: int, letter: str, first: int = 0) -> TensorLayout | None:
    """Return the layout of the scale factors of B, a row a column of B; both CTAs of a pair have all.

    ``first`` is the byte of the first factor. With layout B the lanes of each half of D have the factors of
    their half of N, which is known where it is a multiple of 32 columns and a cell has all factors of a
    column; None where it is not.
    """
    across = _factors(n, first, factors)
    if letter != "B":
        rows = modes((32, _DOWN), (-(-n // 32), _RIGHT))
        return TensorLayout(shape=(n, factors), rows=rows, columns=across, copies=_QUARTERS, first=first)
    if n % 64 or first + factors > 4:
        return None
    rows = modes((32, _DOWN), (n // 64, _RIGHT), (2, (0, 64, 0, 0)))
    return TensorLayout(shape=(n, factors), rows=rows, columns=across, copies=(0, 32), first=first)


# --- tcgen05.ld and tcgen05.st ------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """A shape of ld and st: ``(thread, register) -> (lane, column)``, from the lane and column addressed.

    ``repeat`` is what each repetition adds to the column; ``lanes`` of tensor memory are a quarter or half
    of it.
    """

    thread: Modes
    register: Modes
    repeat: int
    counts: tuple[int, ...]
    lanes: int = 16
    split: bool = False  # the upper half of the threads begins at a column that the statement states

    @property
    def registers(self) -> int:
        """Registers of one repetition."""
        return extent(self.register)

    def cells(self, count: int, offset: int = 0) -> Indices:
        """Return ``(32, registers, 2)``: lane and column of each register of each thread."""
        repeats = modes((count, (0, self.repeat)))
        found = points(self.thread, 2)[:, None, :] + points((*self.register, *repeats), 2)[None, :, :]
        if self.split:
            found[16:, :, 1] += offset
        return found


def _powers(most: int) -> tuple[int, ...]:
    return tuple(1 << power for power in range(most.bit_length()))


# PTX ISA 9.3, section 9.7.17.8 "tcgen05.ld": of 16x64b the lowest bit of a thread selects row + 8.
TRANSFERS: dict[str, Transfer] = {
    "32x32b": Transfer(thread=modes((32, (1, 0))), register=(), repeat=1, counts=_powers(128), lanes=32),
    "16x64b": Transfer(
        thread=modes((2, (8, 0)), (2, (0, 1)), (8, (1, 0))), register=(), repeat=2, counts=_powers(128)
    ),
    "16x128b": Transfer(
        thread=modes((4, (0, 1)), (8, (1, 0))), register=modes((2, (8, 0))), repeat=4, counts=_powers(64)
    ),
    "16x256b": Transfer(
        thread=modes((4, (0, 2)), (8, (1, 0))),
        register=modes((2, (0, 1)), (2, (8, 0))),
        repeat=8,
        counts=_powers(32),
    ),
    "16x32bx2": Transfer(
        thread=modes((16, (1, 0)), (2, (0, 0))), register=(), repeat=1, counts=_powers(128), split=True
    ),
}


# --- tcgen05.cp --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Copy:
    """A shape of cp: ``rows`` of the source with ``columns`` cells each, and the first lane of each copy of
    its rows.
    """

    rows: Modes
    columns: int
    copies: tuple[int, ...] = (0,)

    @cached_property
    def lanes(self) -> Indices:
        """``(copies, rows)``: the lanes of each row."""
        return np.array(self.copies)[:, None] + points(self.rows, 1)[:, 0]


# By shape and multicast. PTX ISA 9.3, section 9.7.17.9 "tcgen05.cp".
COPIES: dict[tuple[str, str], Copy] = {
    ("128x256b", ""): Copy(rows=modes((128, (1,))), columns=8),
    ("128x128b", ""): Copy(rows=modes((128, (1,))), columns=4),
    ("4x256b", ""): Copy(rows=modes((4, (32,))), columns=8),
    ("64x128b", "warpx2::02_13"): Copy(rows=modes((64, (1,))), columns=4, copies=(0, 64)),
    ("64x128b", "warpx2::01_23"): Copy(rows=modes((32, (1,)), (2, (64,))), columns=4, copies=(0, 32)),
    ("32x128b", "warpx4"): Copy(rows=modes((32, (1,))), columns=4, copies=(0, 32, 64, 96)),
}
