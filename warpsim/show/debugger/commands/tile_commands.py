"""``print tile``: bytes of memory as a matrix, such as a tile that a tensor copy has swizzled.

    print tile smem+0x400 as f16 swizzle 128B 64x64
    print tile smem+0x400 as f16 swizzle 128B 64x64 [0:8,0:16]
    print tile global arg0 as f32 16x16 stride 2048

Rows follow each other; a row that is longer than the swizzle goes on in the next panel, behind all rows.
Knows addresses and formats; does not know descriptors.
"""

from __future__ import annotations

import re
from typing import get_args

import numpy as np

from ....base.errors import OperandError
from ....isa.codes import matrix_of
from ....isa.formats import FORMATS
from ....isa.layouts.swizzle import TensorSwizzle, tensor_swizzled
from ....workbench.debugger.addresses import address_of, offset_of
from ....workbench.debugger.travel import Travel
from ....workbench.debugger.value_formatting import Array, number, width_of
from ....workbench.debugger.written import memory_of
from .matrix_parts import Part, grid, part_of, rest_of

_SPELLING = re.compile(
    r"(?P<place>.+?)\s+as\s+(?P<format>\w+)(?:\s+swizzle\s+(?P<swizzle>\w+))?"
    r"\s+(?P<rows>\d{1,5})x(?P<columns>\d{1,5})(?:\s+stride\s+(?P<stride>\d{1,9}))?\s*(?P<part>\[.*\])?"
)
_EXAMPLE = "print tile smem+0x400 as f16 swizzle 128B 64x64"
_SWIZZLES = get_args(TensorSwizzle)
_WIDTHS = {"none": 0, "32B": 32, "64B": 64}  # bytes of a row; 128 of all others
_SIDE = 16  # rows and columns that are printed where no part is named
_MOST = 1 << 20  # bytes


def tile(session: Travel, text: str) -> str:
    """Print memory as a matrix."""
    match = _SPELLING.fullmatch(text.strip())
    if match is None:
        raise OperandError(f"print tile {text}: expected a tile, as in {_EXAMPLE}")
    rows, columns = int(match["rows"]), int(match["columns"])
    swizzle = match["swizzle"] or "none"
    if match["format"] not in FORMATS:
        raise OperandError(f"{match['format']} is not a format: {', '.join(FORMATS)}")
    if swizzle not in _SWIZZLES:
        raise OperandError(f"swizzle {swizzle}: expected {', '.join(_SWIZZLES)}")
    if not rows or not columns:
        raise OperandError("a tile has at least one row and one column")
    element = FORMATS[match["format"]]
    bits = width_of(element)
    given = address_of(session, match["place"])
    stride = int(match["stride"] or 0)
    _check_size(max((rows - 1) * stride, rows * columns * bits // 8))
    offsets, shifts = _places(given.address, (rows, columns), bits, swizzle, stride)
    size = int(offsets.max()) + max(bits // 8, 1) - given.address
    _check_size(size)
    first = offset_of(session, given, size) - given.address
    memory = memory_of(session.wave()[1], given.space)
    codes = _codes(memory, first + offsets, shifts, bits) & np.uint64(element.mask)
    matrix = matrix_of(codes.astype(element.code_dtype), element)
    default = Part(rows=range(rows)[:_SIDE], columns=range(columns)[:_SIDE])
    part = part_of(match["part"] or "", (rows, columns), default)
    if part.single:
        row, column = part.rows[0], part.columns[0]
        where = f"{given.space}+{int(offsets[row, column]):#x}"
        return f"[{row},{column}] = {number(matrix[row, column])}: {where}"
    lines = grid(part, lambda row, column: number(matrix[row, column]))
    command = f"print tile {text[: match.start('part')] if match['part'] else text}".rstrip() + " "
    return "\n".join([*lines, *rest_of(part, (rows, columns), command)])


def _check_size(size: int) -> None:
    if size > _MOST:
        raise OperandError(f"the tile has {size} bytes, at most {_MOST} are printed")


def _places(start: int, shape: tuple[int, int], bits: int, swizzle: str, stride: int) -> tuple[Array, Array]:
    """Return ``(rows, columns)``: the address of the first byte of each element, and its lowest bit there."""
    rows, columns = shape
    row, place = np.arange(rows)[:, None], np.arange(columns)[None, :] * bits
    byte, width = place // 8, _WIDTHS.get(swizzle, 128)
    if width:
        linear = start + byte // width * (rows * width) + row * width + byte % width
        addresses: Array = tensor_swizzled(linear, swizzle)  # type: ignore[arg-type]
    else:
        addresses = start + row * (stride or -(-columns * bits // 8)) + byte
    return addresses, np.broadcast_to(place % 8, addresses.shape)


def _codes(memory: Array, offsets: Array, shifts: Array, bits: int) -> Array:
    """Return the bits of elements."""
    size = max(bits // 8, 1)
    parts = memory[offsets[..., None] + np.arange(size)].astype(np.uint64)
    words: Array = (parts << (np.arange(size, dtype=np.uint64) * np.uint64(8))).sum(axis=-1, dtype=np.uint64)
    return words >> shifts.astype(np.uint64)
