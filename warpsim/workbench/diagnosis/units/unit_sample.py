"""Outputs of a unit beside right outputs: operands, codes and what is known, in slices of bounded size.

Outputs are ``(tiles, m, n)``; a case has several tiles where its instruction has several products.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ....isa.fragments import codes_from
from ....isa.products import Codes, Operands
from ....isa.registers import Words
from ...generation.coverage.vector_coverage import gathered
from ...vectors.sets import VectorSet

Array = npt.NDArray[Any]

TERMS = 1 << 19  # products of a slice


@dataclass(frozen=True, kw_only=True, eq=False)
class Slice:
    """Some tiles: their operands, the right codes, those of the unit, which are known, and their cases."""

    operands: Operands
    right: Codes
    given: Codes
    known: Array
    cases: Array  # of each tile

    @property
    def wrong(self) -> Array:
        """Known outputs that differ from the right outputs."""
        return np.asarray(self.known & (self.right != self.given))

    def outputs(self, most: int | None = None) -> Array:
        """Return the numbers of known outputs: all, or so many wrong and as many right, spread."""
        if most is None:
            return np.flatnonzero(self.known)
        kinds = (np.flatnonzero(flags) for flags in (self.wrong, self.known & ~self.wrong))
        return np.concatenate(
            [at[np.linspace(0, len(at) - 1, min(most, len(at))).astype(int)] for at in kinds]
        )


def matrix_codes(vectors: VectorSet, words: Words) -> Codes:
    """Return the codes ``(tiles, m, n)`` of D in registers ``(cases, lanes, registers)``."""
    form = vectors.instruction
    return codes_from(words, form, "d").reshape(-1, form.shape.m, form.shape.n)


def slices(vectors: VectorSet, d: Words, known: Words, chosen: Array | None = None) -> Iterator[Slice]:
    """Yield the outputs of all cases, or of some, in parts of equal immediates."""
    form = vectors.instruction
    right, given = (matrix_codes(vectors, words) for words in (vectors.d, d))
    certain = matrix_codes(vectors, known) == form.d.mask
    per = form.products
    step = max(1, TERMS // (form.shape.m * form.shape.n * form.stored_k * per))
    for part in vectors.inputs():
        cases = np.arange(len(vectors))[part.cases]
        kept = np.ones(len(cases), np.bool_) if chosen is None else np.isin(cases, chosen)
        if not kept.any():
            continue
        operands = gathered(form, part)
        for at in np.array_split(np.flatnonzero(kept), -(-int(kept.sum()) // step)):
            inside = _tiles(at, per)
            tiles = _tiles(cases[at], per)
            yield Slice(
                operands=_chosen(operands, inside),
                right=right[tiles],
                given=given[tiles],
                known=certain[tiles],
                cases=np.repeat(cases[at], per),
            )


def _tiles(cases: Array, per: int) -> Array:
    return np.asarray((cases[:, None] * per + np.arange(per)).reshape(-1))


def _chosen(operands: Operands, tiles: Array) -> Operands:
    names = ("a", "b", "c", "columns", "scale_a", "scale_b")
    arrays = {name: getattr(operands, name) for name in names}
    parts: dict[str, Any] = {name: x if x is None else x[tiles] for name, x in arrays.items()}
    return replace(operands, **parts)
