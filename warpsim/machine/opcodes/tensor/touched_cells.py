"""Which cells of tensor memory a statement touches, as blocks of lanes and columns for observers.

Knows layouts and places; does not know statements or what observers make of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ....isa.layouts.tensor_memory import COLUMN, CTA, LANE, LANES, TensorLayout
from ...state.tensor_cells import Block
from .tensor_places import Place

Mask = npt.NDArray[np.bool_]
_Part = tuple[int, slice, int, Mask | None]  # a CTA of the group, lanes, columns, which cells


@lru_cache(maxsize=512)
def _parts(layout: TensorLayout) -> tuple[_Part, ...]:
    """Return the cells of a layout at lane 0, column 0, with all copies."""
    cells = layout.cells.reshape(-1, layout.cells.shape[-1])
    found = []
    for cta in range(layout.ctas):
        own = cells[cells[:, CTA] == cta]
        touched = np.zeros((layout.width, LANES), np.bool_)
        for copy in layout.copies:
            touched[own[:, COLUMN], own[:, LANE] + copy] = True
        found.append((cta, *trimmed(touched)))
    return tuple(found)


def trimmed(touched: Mask) -> tuple[slice, int, Mask | None]:
    """Return the lanes and columns around cells of a mask ``(columns, lanes)``; no mask where it is all."""
    lanes = np.flatnonzero(touched.any(axis=0))
    around = slice(int(lanes[0]), int(lanes[-1]) + 1)
    inner = np.ascontiguousarray(touched[:, around])
    return around, len(touched), None if inner.all() else inner


def blocks_of(
    name: str, layout: TensorLayout, place: Place, ctas: Sequence[int], *, everywhere: bool = False
) -> tuple[Block, ...]:
    """Return the blocks of an operand at a place; with ``everywhere`` each of the CTAs has all of it."""
    parts = _parts(layout)
    each = [(cta, parts[0]) for cta in ctas] if everywhere else [(ctas[part[0]], part) for part in parts]
    return tuple(
        Block(
            name=name,
            cta=cta,
            lanes=slice(lanes.start + place.lane, lanes.stop + place.lane),
            columns=slice(place.column, place.column + width),
            mask=mask,
        )
        for cta, (_, lanes, width, mask) in each
    )


def without_lanes(blocks: tuple[Block, ...], disabled: int, ctas: Sequence[int]) -> tuple[Block, ...]:
    """Return blocks less the lanes of CTAs whose bits are set, 128 bits a CTA."""
    if not disabled:
        return blocks
    found = []
    for block in blocks:
        word = disabled >> LANES * ctas.index(block.cta)
        kept = np.array([not word >> lane & 1 for lane in range(block.lanes.start, block.lanes.stop)])
        width = block.columns.stop - block.columns.start
        inner = np.ones((width, kept.size), np.bool_) if block.mask is None else block.mask
        found.append(
            Block(name=block.name, cta=block.cta, lanes=block.lanes, columns=block.columns, mask=inner & kept)
        )
    return tuple(found)
