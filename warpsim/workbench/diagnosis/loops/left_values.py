"""What a kernel does not clear: the tail of k beyond the matrix, and accumulators of the tile before.

Knows memory, and in which order the tiles of a persistent block may follow each other. A tile is some tiles
of the instruction; its sums begin with those of the tile before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ....isa.codes import codes_of, matrix_of
from ....isa.products import Codes
from ....sums.products.gemm import gemm
from ..dumps.dump_comparison import numbers
from ..solving.product_loops import Loop, Matrix, View
from .loop_candidates import Candidate

Values = npt.NDArray[Any]
Tiles = list[tuple[slice, slice]]
_TAIL_ADVICE = "k is no multiple of the instruction's: what lies beyond it must be zero in A or in B"
_STAGES = (1, 2, 3, 4)  # of a pipeline, whose buffers still hold earlier steps
_MOST = 64  # tiles that follow each other
_KEPT_ADVICE = "clear the accumulators before each tile: they still hold the sums of the tile before"


# --- a k that is no multiple of the instruction's ---------------------------------------------------


def tails(loop: Loop, view: View) -> Iterator[Candidate]:
    """Yield what the last step may have read beyond k; nothing where k is a multiple, or of scaled forms."""
    form, given = loop.form, loop.given
    if not loop.tail or form.scale is not None or form.sparse:
        return
    a, b = (
        np.ascontiguousarray(matrix_of(codes_of(M, element, "A or B"), element))
        for M, element in ((given.A, form.a), (given.B, form.b))
    )
    k, wide = a.shape[1], loop.steps * form.shape.k
    lines = np.ascontiguousarray(b.T)
    for what_a, rest_a in _beyond(a, wide, form.shape.k):
        for what_b, rest_b in _beyond(lines, wide, form.shape.k):
            name = f"the tail, k from {k} on, is not zero: A has {what_a} there, and B has {what_b}"
            A, B = np.concatenate([a, rest_a], axis=1), np.concatenate([b, rest_b.T], axis=0)
            yield _tail_candidate(loop, view, name, (A, B), k)


def _beyond(lines: Values, wide: int, step: int) -> Iterator[tuple[str, Values]]:
    """Yield what stands beyond the end of every row ``(rows, k)``."""
    rows, k = lines.shape
    memory = np.concatenate([lines.reshape(-1), np.zeros(wide, lines.dtype)])
    yield "the beginning of the next row", memory[np.arange(rows)[:, None] * k + np.arange(k, wide)]
    for stages in _STAGES:
        first = k - stages * step
        if first >= 0:
            before = f"{stages} step{'s'[: stages != 1]} before"
            yield f"what the buffer held {before}", lines[:, first : first + wide - k]


def _tail_candidate(loop: Loop, view: View, name: str, read: tuple[Values, Values], k: int) -> Candidate:
    A, B = (np.ascontiguousarray(each) for each in read)

    def run() -> Codes:
        return loop.tiles_of(codes_of(gemm(loop.form, A, B, loop.given.C), loop.form.d, "D"))

    with np.errstate(all="ignore"):
        more = A[:, k:].astype(np.float64) @ B[k:].astype(np.float64)
    m, n = loop.rows * loop.form.shape.m, loop.columns * loop.form.shape.n
    padded = np.pad(more, [(0, m - more.shape[0]), (0, n - more.shape[1])])
    change = view.part.of_result(loop.tiles_of(padded)[view.tile])
    return Candidate(name=name, advice=_TAIL_ADVICE, change=change, exact=run, whole=True)


# --- accumulators that are taken from one tile of D to the next -------------------------------------


def kept_accumulators(loop: Loop, view: View) -> Iterator[Candidate]:
    """Yield every order and size of tiles; none of scaled forms."""
    if loop.form.scale is not None:
        return
    (m, n), shape = loop.shape, loop.form.shape
    a, b = (numbers(codes, element) for codes, element in ((loop.a, loop.form.a), (loop.b, loop.form.b)))
    with np.errstate(all="ignore"):
        products = (a @ b)[:m, :n]
    for height in _sizes(m, shape.m):
        for width in _sizes(n, shape.n):
            for down, order in ((False, "row after row"), (True, "column after column")):
                tiles = _tiles((m, n), (height, width), down)
                alone = down and (height >= m or width >= n)  # the same order twice
                if 1 < len(tiles) <= _MOST and not alone:
                    name = f"accumulators are not cleared between tiles of {height} x {width}, {order}"
                    yield _kept_candidate(loop, view, name, tiles, products)


def _sizes(total: int, step: int) -> list[int]:
    """Return the multiples of a tile of the instruction, doubled each time, and the whole."""
    found = [step << bit for bit in range(8) if step << bit < total]
    return [*found, -(-total // step) * step]


def _tiles(total: tuple[int, int], size: tuple[int, int], down: bool) -> Tiles:
    rows, columns = (_cut(most, by) for most, by in zip(total, size, strict=True))
    if down:
        return [(row, column) for column in columns for row in rows]
    return [(row, column) for row in rows for column in columns]


def _cut(total: int, size: int) -> list[slice]:
    return [slice(at, at + size) for at in range(0, total, size)]


def _kept_candidate(loop: Loop, view: View, name: str, tiles: Tiles, products: Matrix) -> Candidate:
    change = np.zeros(products.shape)
    before: npt.NDArray[np.float64] = np.zeros((0, 0))
    for row, column in tiles:
        here = products[row, column]
        kept = np.zeros(here.shape)
        height, width = (min(x, y) for x, y in zip(before.shape, here.shape, strict=True))
        kept[:height, :width] = before[:height, :width]
        change[row, column] = kept
        with np.errstate(all="ignore"):
            before = kept + here
    padded = np.zeros((len(loop.a), loop.b.shape[1]))
    padded[: loop.shape[0], : loop.shape[1]] = change
    part = view.part.of_result(loop.tiles_of(padded)[view.tile])
    return Candidate(
        name=name, advice=_KEPT_ADVICE, change=part, exact=lambda: _chained(loop, tiles), whole=True
    )


def _chained(loop: Loop, tiles: Tiles) -> Codes:
    """Return D: each tile's sums begin with those of the tile before, and C is added in the end."""
    form, given = loop.form, loop.given
    D = np.zeros(loop.shape, form.d.dtype)
    before: npt.NDArray[Any] = np.zeros((0, 0), form.c.dtype)
    for row, column in tiles:
        kept = np.zeros(D[row, column].shape, form.c.dtype)
        height, width = (min(x, y) for x, y in zip(before.shape, kept.shape, strict=True))
        kept[:height, :width] = before[:height, :width]
        A, B = np.asarray(given.A)[row], np.ascontiguousarray(np.asarray(given.B)[:, column])
        before = np.asarray(gemm(form, A, B, kept)).astype(form.c.dtype)
        D[row, column] = before
    if given.C is not None:
        C = matrix_of(codes_of(given.C, form.c, "C"), form.c)
        D = np.asarray(D + C, form.d.dtype) if C.any() else D
    return loop.tiles_of(codes_of(D, form.d, "D"))
