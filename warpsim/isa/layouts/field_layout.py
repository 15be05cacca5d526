"""Field layouts: which lane and bits hold the metadata or the block scales of a line of a matrix.

A line is a row of A or a column of B, a chunk its part that one field describes. Does not know which
fields are legal, nor what they mean.
"""

from __future__ import annotations

from dataclasses import dataclass

from .strides import Indices, Modes, extent, modes, points

LANE, BIT = 0, 1


@dataclass(frozen=True, kw_only=True)
class FieldLayout:
    """A map ``(line, chunk, …) -> (lane, lowest bit)``: the sum of what the digits of all inputs add.

    ``inputs`` are names with modes, whose steps are ``(lanes, bits)``; line and chunk come first.
    """

    inputs: tuple[tuple[str, Modes], ...]
    field_bits: int
    first_lane: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of every input."""
        return tuple(extent(digits) for _, digits in self.inputs)

    @property
    def index(self) -> Indices:
        """``(line, chunk, …, 2)``: lane and lowest bit of every field."""
        total = points((), 2)
        for _, digits in self.inputs:
            total = total[..., None, :] + points(digits, 2)
        found: Indices = total[0]
        found[..., LANE] += self.first_lane
        return found


def metadata_fields(
    *, rows: int, chunks: int, field_bits: int, element_bits: int, first_lane: int
) -> FieldLayout:
    """Return the layout of the metadata of sparse A: ``(row, chunk) -> (lane, lowest bit)``.

    A word holds eight fields. With elements of 16 bits and more it describes four chunks of row g (low
    half) and of row g + 8 (high half), and the lanes that the selector reads step along k. With narrower
    elements it describes eight chunks of one row: lane bit 0 selects the row half and bit 1 steps along
    k. PTX ISA 9.1, sections 9.7.14.6.2.1 to 9.7.14.6.2.8, the metadata figures.
    """
    wide = element_bits >= 16
    side_by_side = min(4 if wide else 8, chunks)
    half = (0, 4 * field_bits) if wide else (1, 0)
    row = modes((8, (4, 0)), (2, half), (rows // 16, (32, 0)))
    chunk = modes((side_by_side, (0, field_bits)), (chunks // side_by_side, (1 if wide else 2, 0)))
    return FieldLayout(inputs=(("row", row), ("chunk", chunk)), field_bits=field_bits, first_lane=first_lane)


def scale_fields(*, side: str, lines: int, chunks: int, threads: int) -> FieldLayout:
    """Return the layout of the block scales of A or B, with the ids of thread and byte as inputs.

    The scales of a row or column are bytes of one word. PTX ISA 9.1, section 9.7.14.3.
    """
    line = modes((8, (4, 0)), (lines // 8, (1, 0)))
    named = (("row" if side == "a" else "col"), line)
    thread = modes((threads, (4 // threads, 0)))
    byte = modes((4, (0, 8)))
    chunk = modes((chunks, (0, 8)))
    return FieldLayout(
        inputs=(named, ("chunk", chunk), (f"thread_id_{side}", thread), (f"byte_id_{side}", byte)),
        field_bits=8,
    )
