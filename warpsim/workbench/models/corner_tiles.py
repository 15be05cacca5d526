"""Tiles of corner cases that a bench starts from: matrices of codes, of each theme some.

Knows how vector sets are gathered; does not know C.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.environment import in_default_environment
from ...isa.fragments import fields_of, signed
from ...isa.instruction import Instruction
from ..generation.cases.corners import themes_of
from ..generation.coverage.vector_coverage import coverage_of, gathered
from ..generation.generate import corner_vectors, generate_vectors
from ..vectors.sets import Part

Array = npt.NDArray[Any]
_CODES = 60_000  # of all tiles, about
_TILES = 4  # of a theme, at most


@dataclass(frozen=True, kw_only=True)
class Tiles:
    """Tiles of corner cases: the theme of each, and arrays of codes whose first axis is the tiles."""

    themes: tuple[str, ...]
    codes: Mapping[str, Array]


@in_default_environment
def tiles_of(form: Instruction, seed: int = 0) -> Tiles:
    """Return some tiles of each theme, and others that hit what those miss; operands as matrices of codes."""
    shape = form.shape
    each = (shape.m * form.stored_k + shape.k * shape.n + shape.m * shape.n) * form.products
    themes = len(themes_of(form, "corner"))
    count = themes * max(1, min(_TILES, _CODES // (each * themes)))
    vectors, chosen = generate_vectors(form, kind="corner", count=count, seed=seed), np.arange(count)
    if form.descriptor is None and (missed := coverage_of(vectors).missed):
        vectors, covered = corner_vectors(form, seed=seed)
        first = {covered.hits[name].first for name in missed if name in covered.hits}
        chosen = np.union1d(chosen, sorted(first)).astype(np.int64)
    found: dict[str, list[Array]] = {}
    for part in vectors.inputs():
        for name, array in _matrices(form, part):
            found.setdefault(name, []).append(array)
    order = np.concatenate([np.arange(len(vectors))[part.cases] for part in vectors.inputs()])
    rows = np.argsort(order)[chosen]  # parts have cases of equal immediates
    codes = {name: np.concatenate(parts)[rows] for name, parts in found.items()}
    return Tiles(themes=tuple(vectors.labels[at] for at in chosen), codes=codes)


def _matrices(form: Instruction, part: Part) -> Iterator[tuple[str, Array]]:
    """Yield codes, fields of metadata and scales of the cases of a part, ``(cases, products, ...)``."""
    operands = gathered(form, part)
    arrays = {name: getattr(operands, name) for name in ("a", "b", "c", "scale_a", "scale_b")}
    if form.pattern is not None and operands.columns is not None:
        unit, chunk = form.pattern.unit, form.pattern.chunk
        arrays["e"] = fields_of(form, (operands.columns % chunk // unit)[..., ::unit])
    for side, negated in zip("ab", form.product.negated, strict=True):
        arrays[side] = signed(arrays[side], form.format(side), negated)
    for name, array in arrays.items():
        if array is not None:
            yield name, array.reshape(-1, form.products, *array.shape[1:])
