"""``warpsim layout`` of wgmma's operands in shared memory: a figure of the packed tile with its swizzle.

A box is 16 bytes that stay together, with its address; boxes of the same colour lie in the same four
banks. Where elements lie is known to isa/descriptors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.errors import OperandError
from ....isa.descriptors.matrix_descriptor import Descriptor, Major
from ....isa.descriptors.packed_tiles import canonical_descriptor
from ....isa.descriptors.tile_addresses import tile_addresses
from ....isa.instruction import Instruction
from ....isa.layouts.swizzle import SWIZZLE_BYTES, Swizzle
from ..drawings.drawing import escaped, figure_lines, figure_markup
from ..drawings.svg import boxed, element, figures_element, figures_svg, page
from .figures import Cell, Figure, span

Document = dict[str, Any]

_UNIT = 16  # bytes that no swizzle separates
_SECTION = "PTX ISA 9.1, section 9.7.15.5.1.2.1.3"
_SWIZZLED = {"32B": "bit 4 ^= bit 7", "64B": "bits 5:4 ^= bits 8:7", "128B": "bits 6:4 ^= bits 9:7"}


@dataclass(frozen=True, kw_only=True)
class TileCell(Cell):
    """A box of a tile in shared memory, at a byte address."""

    address: int

    @property
    def detail(self) -> str:
        """The bytes behind the text, and the elements covered."""
        bytes_ = f"bytes {self.address:#06x}..{self.address + _UNIT - 1:#06x}"
        return f"{bytes_}: row {span(self.rows)}, column {span(self.columns)}"


@dataclass(frozen=True, kw_only=True)
class SharedTile:
    """The packed tile of A or B at address 0, as wide along K as its swizzle pattern.

    ``addresses (mn, k)`` are those of the elements, bytes where an element has one bit.
    """

    instruction: Instruction
    operand: str
    major: Major
    descriptor: Descriptor
    addresses: npt.NDArray[np.int64]

    @property
    def size(self) -> int:
        """Bytes of an element, or of eight 1-bit elements."""
        return max(self.instruction.a.bits, 8) // 8

    def address(self, row: int, column: int) -> int:
        """Return the byte address of element (row, column) of the operand; raises OperandError."""
        rows, columns = self.instruction.matrix_shape(self.operand)
        if row not in range(rows) or column not in range(columns):
            name = self.operand.upper()
            raise OperandError(
                f"{name}[{row},{column}]: {self.instruction} has {rows} rows, {columns} columns"
            )
        mn, k = (row, column) if self.operand == "a" else (column, row)
        return int(self.addresses[mn, k * self.instruction.a.bits // (8 * self.size)])


def shared_tile(
    instruction: Instruction, operand: str, swizzle: Swizzle = "none", major: Major = "K"
) -> SharedTile:
    """Return the packed tile of A or B of wgmma.

    Raises OperandError for other operands and layouts, NotModelled where k does not fit into the pattern.
    """
    if instruction.lanes == 32 or operand not in ("a", "b"):
        raise OperandError(f"{operand} of {instruction} does not lie in shared memory: wgmma's a and b do")
    shape = instruction.in_shared_memory(operand).shape(transposed=major == "MN")
    if major == "K":
        shape = replace(shape, k=max(shape.k, SWIZZLE_BYTES[swizzle] // shape.size))
    descriptor = canonical_descriptor(0, shape, swizzle=swizzle)
    addresses = tile_addresses(descriptor, shape)
    return SharedTile(
        instruction=instruction, operand=operand, major=major, descriptor=descriptor, addresses=addresses
    )


def tile_figure(tile: SharedTile) -> Figure:
    """Return the tile in boxes of 16 bytes, along K or along M or N as it is stored."""
    across = tile.addresses if tile.major == "K" else tile.addresses.T
    step = _UNIT // tile.size
    along, name = ("k", "m" if tile.operand == "a" else "n")[:: 1 if tile.major == "K" else -1]
    form = tile.instruction
    title = f"{tile.operand.upper()} of {form.shape}, .{form.format(tile.operand)}, in shared memory, "
    title += f"{tile.major}-major, swizzle {tile.descriptor.swizzle}: addresses of 16 bytes"
    starts = range(0, across.shape[1], step)
    return Figure(
        title=title,
        corner=f"{name} \\ {along}",
        row_labels=tuple(str(row) for row in range(across.shape[0])),
        column_labels=tuple(span(range(first, first + step)) for first in starts),
        grid=tuple(
            tuple(_cell(int(line[first]), row, range(first, first + step)) for first in starts)
            for row, line in enumerate(across)
        ),
    )


def _cell(address: int, row: int, columns: range) -> TileCell:
    return TileCell(
        text=f"{address:#06x}",
        lane=4 * (address // _UNIT % 8),
        places=(),
        rows=range(row, row + 1),
        columns=columns,
        address=address,
    )


def tile_notes(tile: SharedTile) -> list[str]:
    """Return what belongs under the figure: the descriptor, and the rule of the swizzle."""
    descriptor = tile.descriptor
    lines = [f"descriptor at address 0: {descriptor.encode():#018x} ({descriptor})"]
    if descriptor.swizzle != "none":
        lines.append(f"address {_SWIZZLED[descriptor.swizzle]}, {_SECTION}")
    if tile.instruction.a.bits < 8:
        lines.append("a column is a byte of eight elements, the first in its lowest bit")
    return lines


# --- text, pages and data --------------------------------------------------------------------------


def tile_lines(tile: SharedTile, width: int | None = None) -> list[str]:
    """Return the figure and its notes as plain text."""
    return [tile.instruction.mnemonic, "", *figure_lines(tile_figure(tile), width), "", *tile_notes(tile)]


def tile_markup(tile: SharedTile, width: int | None = None) -> list[str]:
    """Return the same in the markup of the rich library, coloured by banks."""
    figure = figure_markup(tile_figure(tile), width)
    return [
        f"[bold]{escaped(tile.instruction.mnemonic)}[/]",
        "",
        *figure,
        "",
        *map(escaped, tile_notes(tile)),
    ]


def tile_svg(tile: SharedTile) -> str:
    """Return the figure as one SVG document."""
    return figures_svg([tile_figure(tile)])


def tile_page(tile: SharedTile) -> str:
    """Return the figure and its notes as a page of HTML that loads nothing from anywhere."""
    parts = [boxed(figures_element([tile_figure(tile)])), element("pre", "\n".join(tile_notes(tile)))]
    return page(tile.instruction.mnemonic, parts)


def tile_document(tile: SharedTile) -> Document:
    """Return address of every element ``(mn, k)`` as JSON-ready data."""
    return {
        "mnemonic": tile.instruction.mnemonic,
        "operand": tile.operand,
        "major": tile.major,
        "swizzle": tile.descriptor.swizzle,
        "descriptor": f"{tile.descriptor.encode():#018x}",
        "addresses": tile.addresses.tolist(),
    }
