"""A k that is no multiple of the instruction's: what stands where a kernel should have put zeros.

Knows memory; does not know instructions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ...isa.codes import codes_of, matrix_of
from ...isa.products import Codes
from ...products.gemm import gemm
from .loop_candidates import Candidate
from .product_loops import Loop, View

Values = npt.NDArray[Any]
_ADVICE = "k is no multiple of the instruction's: what lies beyond it must be zero in A or in B"
_STAGES = (1, 2, 3, 4)  # of a pipeline, whose buffers still hold earlier steps


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
            yield _candidate(loop, view, name, (A, B), k)


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


def _candidate(loop: Loop, view: View, name: str, read: tuple[Values, Values], k: int) -> Candidate:
    A, B = (np.ascontiguousarray(each) for each in read)

    def run() -> Codes:
        return loop.tiles_of(codes_of(gemm(loop.form, A, B, loop.given.C), loop.form.d, "D"))

    with np.errstate(all="ignore"):
        more = A[:, k:].astype(np.float64) @ B[k:].astype(np.float64)
    m, n = loop.rows * loop.form.shape.m, loop.columns * loop.form.shape.n
    padded = np.pad(more, [(0, m - more.shape[0]), (0, n - more.shape[1])])
    change = view.part.of_result(loop.tiles_of(padded)[view.tile])
    return Candidate(name=name, advice=_ADVICE, change=change, exact=run, whole=True)
