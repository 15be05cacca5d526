"""Memory as commands print it: ``x``, ``print tile``, ``print tmem``, ``info tmem``; parts of matrices.

    x/8xw shared+0x400
    print tile smem+0x400 as f16 swizzle 128B 64x64 [0:8,0:16]
    print tile global arg0 as f32 16x16 stride 2048
    print tmem[0:4,0:8] as f32       lanes 0 to 3, columns 0 to 7; of f16 two elements a cell
    print tmem[3,5]                  one cell

Rows of a tile follow each other; a row that is longer than the swizzle goes on in the next panel, behind all
rows. PTX ISA 9.3, section 9.7.17.1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import get_args

import numpy as np

from ....base.errors import OperandError
from ....base.text_columns import numbers
from ....isa.codes import matrix_of
from ....isa.formats import FORMATS
from ....isa.layouts.swizzle import TensorSwizzle, tensor_swizzled
from ....isa.layouts.tensor_memory import COLUMNS, LANES
from ....machine.opcodes.tensor.tensor_places import TENSOR_MEMORY
from ....machine.state.tensor_cells import Columns, TensorMemory
from ....observe.stops.areas import CELL, memory_of
from ....observe.stops.values import TYPES, Array, check_format, number, shown, width_of
from ....workbench.debugger.addresses import address_of, offset_of
from ....workbench.debugger.travel import Travel

_PART = re.compile(r"\[\s*(\d{1,6})(?::(\d{1,6}))?\s*,\s*(\d{1,6})(?::(\d{1,6}))?\s*\]")
_SIDE_BY_SIDE = 8  # of a matrix, side by side


@dataclass(frozen=True, kw_only=True)
class Part:
    """Rows and columns of a matrix; ``single`` where a text names an element."""

    rows: range
    columns: range
    single: bool = False


def split_part(text: str) -> tuple[str, str]:
    """Return what stands before brackets, and the brackets."""
    name, bracket, rest = text.partition("[")
    return name.strip(), bracket + rest.strip()


def part_of(text: str, shape: tuple[int, int], default: Part) -> Part:
    """Return the part that brackets name, the default without them. Raises OperandError."""
    if not text:
        return default
    match = _PART.fullmatch(text)
    if match is None:
        raise OperandError(f"{text}: expected an element, as in [3,5], or a part, as in [0:8,16:32]")
    row, row_end, column, column_end = (None if each is None else int(each) for each in match.groups())
    assert row is not None
    assert column is not None
    rows = range(row, min(row_end, shape[0]) if row_end is not None else row + 1)
    columns = range(column, min(column_end, shape[1]) if column_end is not None else column + 1)
    if not rows or not columns or rows[-1] >= shape[0] or columns[-1] >= shape[1]:
        raise OperandError(f"{text} is outside of {shape[0]} x {shape[1]} elements")
    return Part(rows=rows, columns=columns, single=row_end is None and column_end is None)


def grid(part: Part, cell: Callable[[int, int], str]) -> list[str]:
    """Return the cells of a part with row and column numbers, some columns side by side."""
    lines = list[str]()
    for start in range(0, len(part.columns), _SIDE_BY_SIDE):
        columns = part.columns[start : start + _SIDE_BY_SIDE]
        rows = [[str(row), *(cell(row, column) for column in columns)] for row in part.rows]
        lines += numbers([["", *map(str, columns)], *rows])
    return lines


def rest_of(part: Part, shape: tuple[int, int], command: str) -> list[str]:
    """Return how the rest is printed, if there is a rest."""
    if len(part.rows) == shape[0] and len(part.columns) == shape[1]:
        return []
    return [f"of {shape[0]} x {shape[1]}: {command}[0:{shape[0]},0:{shape[1]}] prints all"]


_COUNTED = re.compile(r"/(?P<count>[0-9]{0,6})(?P<letters>.*)")
_SIZES = {"b": 1, "h": 2, "w": 4, "g": 8}
_LINE = 16  # bytes in a line
_MOST_WORDS = 4096  # words


def examine(session: Travel, text: str) -> str:
    """Print words of memory."""
    count, letters, size, place = _asked(text)
    if not place:
        raise OperandError("x where? An address, as in x/8xw shared+0x400, or arg2[3,5]")
    given = address_of(session, place)
    kind = given.type or ""
    width = size or (TYPES[kind].itemsize if kind else 4)
    if kind and TYPES[kind].itemsize != width:
        kind = ""
    if given.space != "tmem" and given.address % width:
        raise OperandError(f"{given.space} {given.address:#x} is not a multiple of {width}")
    first = offset_of(session, given, width * count)
    _, wave, _ = session.wave()
    content = memory_of(wave, given.space)[first : first + width * count]
    words = content.copy().view(f"u{width}")
    letters = letters or ("" if kind else "x")
    texts = [shown(word, kind, letters) for word in words]
    if given.space == "tmem":
        known = TENSOR_MEMORY.of(wave).written.reshape(-1)[first // CELL :]
        texts = [text if written else "never written" for text, written in zip(texts, known, strict=False)]
    return "\n".join(_rows(given.space, given.address, words, texts))


def _asked(text: str) -> tuple[int, str, int, str]:
    """Return count, format, size in bytes (0 for none) and address. Raises OperandError."""
    if not text.startswith("/"):
        return 1, "", 0, text
    spelled, _, rest = text.partition(" ")
    match = _COUNTED.fullmatch(spelled)
    assert match is not None
    count, letters = int(match["count"] or 1), match["letters"]
    if not 1 <= count <= _MOST_WORDS:
        raise OperandError(f"{spelled}: from 1 to {_MOST_WORDS} words")
    size = 0
    if letters[-1:] in _SIZES and letters not in ("h", "bf") and (len(letters) == 1 or letters[:-1]):
        size, letters = _SIZES[letters[-1]], letters[:-1]
    elif letters == "h":
        size, letters = 2, "f16"
    return count, check_format(letters), size, rest.strip()


def _rows(space: str, address: int, words: Array, texts: list[str]) -> Iterator[str]:
    size = words.dtype.itemsize
    width, in_line = max(map(len, texts)), max(_LINE // size, 1)
    for start in range(0, len(texts), in_line):
        row = "  ".join(f"{text:>{width}}" for text in texts[start : start + in_line])
        yield f"{_address_name(space, address, start * size)}:  {row}"


def _address_name(space: str, address: int, more: int) -> str:
    """Return the address that lies so many bytes behind another."""
    if space == "tmem":
        return f"tmem[{address >> 16},{(address & 0xFFFF) + more // CELL}]"
    return f"{space} {address + more:#x}"


_TILE = re.compile(
    r"(?P<place>.+?)\s+as\s+(?P<format>\w+)(?:\s+swizzle\s+(?P<swizzle>\w+))?"
    r"\s+(?P<rows>\d{1,5})x(?P<columns>\d{1,5})(?:\s+stride\s+(?P<stride>\d{1,9}))?\s*(?P<part>\[.*\])?"
)
_EXAMPLE = "print tile smem+0x400 as f16 swizzle 128B 64x64"
_SWIZZLES = get_args(TensorSwizzle)
_WIDTHS = {"none": 0, "32B": 32, "64B": 64}  # bytes of a row; 128 of all others
_TILE_SIDE = 16  # rows and columns that are printed where no part is named
_LARGEST_TILE = 1 << 20  # bytes


def tile(session: Travel, text: str) -> str:
    """Print memory as a matrix."""
    match = _TILE.fullmatch(text.strip())
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
    default = Part(rows=range(rows)[:_TILE_SIDE], columns=range(columns)[:_TILE_SIDE])
    part = part_of(match["part"] or "", (rows, columns), default)
    if part.single:
        row, column = part.rows[0], part.columns[0]
        where = f"{given.space}+{int(offsets[row, column]):#x}"
        return f"[{row},{column}] = {number(matrix[row, column])}: {where}"
    lines = grid(part, lambda row, column: number(matrix[row, column]))
    command = f"print tile {text[: match.start('part')] if match['part'] else text}".rstrip() + " "
    return "\n".join([*lines, *rest_of(part, (rows, columns), command)])


def _check_size(size: int) -> None:
    if size > _LARGEST_TILE:
        raise OperandError(f"the tile has {size} bytes, at most {_LARGEST_TILE} are printed")


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


_CELLS = re.compile(r"tmem\s*(?P<part>\[[^\]]*\])?(?:\s+as\s+(?P<format>\S+))?")
_CELLS_SIDE = 8  # lanes and columns that are printed where no part is named


def is_cells(text: str) -> bool:
    """Return whether a text names cells by lane and column, or all of tensor memory."""
    match = _CELLS.fullmatch(text.strip())
    return match is not None and (match["part"] is None or "," in match["part"])


def cells(session: Travel, text: str, letters: str = "") -> str:
    """Print cells of tensor memory; ``letters`` is a format as in print/x."""
    match = _CELLS.fullmatch(text.strip())
    assert match is not None
    letters = check_format(match["format"]) if match["format"] else letters or "x"
    _, wave, lane = session.wave()
    memory, cta = TENSOR_MEMORY.of(wave), int(wave.cta[lane])
    part = part_of(match["part"] or "", (LANES, COLUMNS), _default(session, memory.columns[cta]))

    def cell(row: int, column: int) -> str:
        known = memory.written[cta, row, column]
        return shown(memory.cells[cta, row, column], "", letters) if known else "-"

    if part.single:
        row, column = part.rows[0], part.columns[0]
        known = memory.written[cta, row, column]
        word = memory.cells[cta, row, column] if known else None
        return f"tmem[{row},{column}] = {shown(word, '', letters)}"
    lines = grid(part, cell)
    return "\n".join(["lanes down, columns across; - was never written", *lines])


def _default(session: Travel, columns: Columns) -> Part:
    """Return what is printed without brackets: lanes of the warp, from the first allocated column on."""
    if not columns.held:
        raise OperandError("no columns of tensor memory are allocated; print tmem[0:4,0:8] prints some")
    first, lane = min(columns.held), 32 * (session.focus.warp % 4)
    return Part(rows=range(lane, lane + _CELLS_SIDE), columns=range(first, first + _CELLS_SIDE))


def allocations(session: Travel) -> Iterator[str]:
    """Yield the allocations of the CTA of the focus, and which of their cells are written."""
    _, wave, lane = session.wave()
    memory, cta = TENSOR_MEMORY.of(wave), int(wave.cta[lane])
    columns = memory.columns[cta]
    for first, size in sorted(columns.held.items()):
        place = f"columns {first}..{first + size - 1}, allocated at line {columns.lines[first]} of the PTX"
        yield f"{place}: {_written(memory, cta, first, size)}"
    for first, line in sorted(columns.freed.items()):
        if first not in columns.held:
            yield f"column {first} and those behind it: freed at line {line} of the PTX"
    if columns.relinquished:
        yield f"the right to allocate was relinquished at line {columns.relinquished} of the PTX"


def _written(memory: TensorMemory, cta: int, first: int, size: int) -> str:
    """Return which cells of columns are written, in words."""
    known = memory.written[cta, :, first : first + size]
    if not known.any():
        return "nothing is written"
    lanes, own = np.flatnonzero(known.any(axis=1)), np.flatnonzero(known.any(axis=0)) + first
    box = f"lanes {lanes[0]}..{lanes[-1]} of columns {own[0]}..{own[-1]}"
    whole = known[lanes[0] : lanes[-1] + 1, own[0] - first : own[-1] - first + 1].all()
    return f"{box} are written" if whole else f"some cells in {box} are written"
