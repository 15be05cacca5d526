"""Does this dump hold these block scales? The bytes that are read, beside the matrix of scales.

Knows which lanes and bytes an instruction reads; a tile and a step of larger scales are looked for.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...environment import in_default_environment
from ...errors import OperandError, present
from ...isa.codes import scale_codes_of
from ...isa.formats import Format
from ...isa.instruction import Instruction
from ...isa.placements import ScaleSelectors
from ...isa.products import Codes
from ...isa.registers import Words
from .changed_lines import described
from .dump_contents import Holding

Tiles = dict[tuple[int, int], Codes]  # by their first line and chunk


@in_default_environment
def held_scales(
    form: Instruction, operand: str, scales: npt.ArrayLike, dump: Words, selectors: ScaleSelectors
) -> Holding:
    """Return whether the words ``(lanes, 1)`` of scale_a or scale_b hold ``scales``, of any size.

    ``scales`` are ``(m, chunks)`` of A, ``(chunks, n)`` of B. Raises OperandError for a form without scales,
    and for words of another shape.
    """
    side = operand.removeprefix("scale_")
    place, element = form.scales(side), present(form.scale, "scale")
    words = np.asarray(dump)
    if words.shape != (form.lanes, 1):
        raise OperandError(f"{operand} has shape {words.shape}, but a dump of scales is ({form.lanes}, 1)")
    ids = (getattr(selectors, f"{name}_{side}") for name in ("byte_id", "thread_id"))
    read = place.codes(words, *ids)
    codes = scale_codes_of(scales, element, operand.upper()).astype(read.dtype)
    if codes.ndim != 2:
        raise OperandError(f"{operand.upper()} has shape {codes.shape}, but scales have rows and columns")
    lines, got = (codes, read) if side == "a" else (codes.T, read.T)
    tiles = _tiles(lines, got.shape)
    equal = {at: int((tile == got).sum()) for at, tile in tiles.items()}
    best = max(equal, key=lambda at: equal[at])
    note = "" if equal[best] == got.size else _said(tiles, best, got, (operand, element))
    line, chunk = best
    return Holding(
        operand=operand,
        equal=equal[best],
        total=got.size,
        tile=(line, chunk) if side == "a" else (chunk, line),
        size=got.shape if side == "a" else got.shape[::-1],
        note=note,
    )


def _said(tiles: Tiles, best: tuple[int, int], got: Codes, what: tuple[str, Format]) -> str:
    """Return what the scales are: by a rule in any tile, else where they are wrong."""
    operand, element = what
    read = np.ascontiguousarray(got)
    for tile in (tiles[best], *tiles.values()):
        text, rule = described(operand, np.ascontiguousarray(tile), read, element)
        if rule:
            return text
    return described(operand, np.ascontiguousarray(tiles[best]), read, element)[0]


def _tiles(lines: Codes, size: tuple[int, ...]) -> Tiles:
    """Return the tiles of scales by their first line and chunk; ends beyond them are zero."""
    height, width = size
    padded = np.pad(lines, [(0, -lines.shape[0] % height), (0, -lines.shape[1] % width)])
    return {
        (row, column): padded[row : row + height, column : column + width]
        for row in range(0, padded.shape[0], height)
        for column in range(0, padded.shape[1], width)
    }
