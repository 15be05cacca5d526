"""Operands in tensor memory: notes of a layout, and its address as CuTe writes it.

CuTe counts addresses of tensor memory in elements: with elements of so many bits a lane is 2^21 / bits and a
column 32 / bits of them (``TMEM::DP``), and an element that fills a cell has as many as its cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ....isa.instruction import Instruction
from ....isa.layouts.strides import Mode, Modes, joined
from ....isa.layouts.tensor_memory import BIT, COLUMN, CTA, LANE, TensorLayout
from ....isa.operand_places.places import tensor_cells

_NAMES = {"a": ("M", "K"), "c": ("M", "N"), "d": ("M", "N"), "e": ("M", "C")}
_SCALES = {"scale_a": ("M", "C"), "scale_b": ("N", "C")}
_UNIT = {"e": 4, "scale_a": 8, "scale_b": 8}  # bits of an address unit, where it is not an element


@dataclass(frozen=True, kw_only=True)
class CellLayout:
    """A layout ``(row, column) -> address``, in units of ``bits``; the CTA of a pair is apart."""

    domain: tuple[str, str]
    rows: Modes
    columns: Modes
    bits: int
    first: int = 0
    copies: tuple[int, ...] = ()

    def __str__(self) -> str:
        shapes, strides = zip(*(_text(modes) for modes in (self.rows, self.columns)), strict=True)
        sizes = f"({','.join(self.domain)}) -> address of {self.bits} bits"
        first = f" + {self.first}" if self.first else ""
        copies = f"  copies at lanes {', '.join(f'+{lane}' for lane in self.copies)}" if self.copies else ""
        return f"{sizes}  ({','.join(shapes)}):({','.join(strides)}){first}{copies}"


def _text(modes: Modes) -> tuple[str, str]:
    """Return shape and stride; a digit that selects the CTA has the stride ``CTA``."""
    shown = modes or (Mode(1, (0, 0)),)
    extents = [str(mode.extent) for mode in shown]
    strides = ["CTA" if mode.along(1) else str(mode.along(0)) for mode in shown]
    return _nested(extents), _nested(strides)


def _nested(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"({','.join(parts)})"


def cell_layout(instruction: Instruction, operand: str) -> CellLayout:
    """Return the layout of an operand in tensor memory; raises OperandError where it lies elsewhere."""
    held = tensor_cells(instruction, operand)
    bits = _UNIT.get(operand) or instruction.storage(operand).bits
    rows, columns = held.layout.shape
    names, begun = (_NAMES | _SCALES)[operand], held.layout.first
    carried = begun and begun + columns > held.layout.columns[0].extent  # no single offset of all columns
    counted = f"{names[1]}{columns}, counted from {begun} on" if carried else f"{names[1]}{columns}"
    own = 0 if carried else int(held.layout.cells[0, 0, BIT]) if begun else 0
    return CellLayout(
        domain=(f"{names[0]}{rows}", counted),
        rows=_addressed(held.layout.rows, bits),
        columns=_addressed(held.layout.columns, bits),
        bits=bits,
        first=(32 * held.first_column + own) // bits,
        copies=held.layout.copies[1:],
    )


def _addressed(modes: Modes, bits: int) -> Modes:
    """Return digits with the steps (address, CTA)."""
    found = []
    for mode in modes:
        cell = (mode.along(LANE) << 21) + 32 * mode.along(COLUMN) + mode.along(BIT)
        found.append(Mode(mode.extent, (cell // bits, mode.along(CTA))))
    return joined(found)


def cell_lines(instruction: Instruction, operand: str) -> Iterator[str]:
    """Yield what belongs under the formula: columns taken, warps that reach them, and how cells are named."""
    held = tensor_cells(instruction, operand)
    layout = held.layout
    yield f"{held.words} columns from its address on; {_warps(layout)}"
    if layout.half:
        yield "lane 16 of the address moves it by 16 lanes; D, A and metadata then have the same lane"
    name = "1.L5 C3: lane 5 of the odd CTA" if layout.ctas > 1 else "L5 C3: lane 5"
    yield f"{name}, column 3 from the address on"


def _warps(layout: TensorLayout) -> str:
    """Return how the warps of a warpgroup, each of which reaches 32 lanes, share the matrix."""
    quarters = len({int(lane) // 32 for lane in layout.cells[..., LANE].flat})
    lanes = sorted({int(lane) for lane in layout.cells[..., LANE].flat})
    each = "lanes 0..15 of each" if layout.half else "its lanes"
    if layout.copies != (0,):
        return f"lanes {lanes[0]}..{lanes[-1]} and copies of them"
    return f"warps 0 to {quarters - 1} reach {each}"
