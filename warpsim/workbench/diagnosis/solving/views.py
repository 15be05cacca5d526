"""Views of an operand: the same places as fields of an index, made from the layouts of the instruction.

A place is an element of the operand's stored matrix, counted row by row; the products of m8n8k4 f16 are
stacked along the rows. Places of metadata are indices (2 bits; of 1:2 sparsity 4), of scales bytes, of all
lanes. Does not know values, nor which maps between places are mistakes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from ....isa.fragments import require_sparse
from ....isa.instruction import Instruction
from ....isa.layouts.fragment_layout import COLUMN, ROW, Layout
from ....isa.warps import WARP

Index = npt.NDArray[np.intp]
Numbers = npt.NDArray[np.float64]
NOTHING = -1  # the source of a place that holds zero
ACCUMULATORS = "accumulators"  # the view of A by its order where D of the product before is packed as A
SELECTED = "selected lanes"  # the view of metadata by the lanes that each selector reads, in their order
ORDERS = (ACCUMULATORS, SELECTED)  # views of which the order alone is of use
_BYTE = 8
_FIELD_BITS = 4  # of metadata
_QUAD = 4
_CHUNK_BITS = 128  # that a lane of ldmatrix or cp.async moves, and a swizzle keeps together
_UNIT_BITS = 16  # that ldmatrix.trans keeps together


@dataclass(frozen=True)
class Field:
    """One field of an index: its name, and how many values it has."""

    name: str
    size: int

    @property
    def bits(self) -> int:
        """Bits that hold every value."""
        return (self.size - 1).bit_length()

    @property
    def is_power(self) -> bool:
        """Whether the size is a power of two."""
        return self.size & (self.size - 1) == 0


@dataclass(frozen=True, eq=False)
class View:
    """One reading of the N places of an operand: ``coordinates (N, F)``, the value of every field."""

    name: str
    fields: tuple[Field, ...]
    coordinates: Index

    @cached_property
    def shifts(self) -> Index:
        """``(F,)``: the lowest bit of each field in the packed index, the last field lowest."""
        bits = [field.bits for field in self.fields]
        return np.array([sum(bits[at + 1 :]) for at in range(len(bits))], np.intp)

    @cached_property
    def sizes(self) -> Index:
        """``(F,)``: the number of values of each field."""
        return np.array([field.size for field in self.fields], np.intp)

    @cached_property
    def packed(self) -> Index:
        """``(N,)``: the packed index of every place."""
        return np.asarray((self.coordinates << self.shifts).sum(axis=-1))

    @cached_property
    def places(self) -> Index:
        """The place of every packed index, -1 where there is none."""
        found = np.full(1 << sum(field.bits for field in self.fields), -1, np.intp)
        found[self.packed] = np.arange(len(self.packed))
        return found

    @cached_property
    def order(self) -> Index:
        """``(N,)``: the places in the order of the fields, the first field slowest."""
        return np.argsort(self.packed, kind="stable")

    def at(self, coordinates: Index) -> Index:
        """Return the places of coordinates ``(..., F)``, -1 where nothing is."""
        inside = np.asarray(((coordinates >= 0) & (coordinates < self.sizes)).all(axis=-1))
        packed = np.where(inside, coordinates @ (1 << self.shifts), 0)
        return np.where(inside, self.places.take(packed), -1)

    def of(self, places: Index) -> View:
        """Return the view of some of the places."""
        names = [field.name for field in self.fields]
        return view(self.name, list(zip(names, self.coordinates[places].T, strict=True)))

    def field(self, name: str) -> int:
        """Return the number of the field of a name; raises KeyError."""
        names = [field.name for field in self.fields]
        if name not in names:
            raise KeyError(f"{name}: the fields are {', '.join(names)}")
        return names.index(name)

    def __repr__(self) -> str:
        return f"<view {self.name}: {' '.join(f'{field.name}[{field.size}]' for field in self.fields)}>"


def view(name: str, fields: Sequence[tuple[str, Index]]) -> View:
    """Return the view of ``(name, values (N,))``, without fields of a single value."""
    sized = [(Field(each, int(values.max()) + 1), values) for each, values in fields]
    kept = [(field, values) for field, values in sized if field.size > 1] or sized[:1]
    coordinates = np.stack([np.asarray(values, np.intp) for _, values in kept], axis=-1)
    return View(name, tuple(field for field, _ in kept), coordinates)


@lru_cache(maxsize=256)
def views_of(instruction: Instruction, operand: str) -> tuple[View, ...]:
    """Return the views of operand a, b, c, d, e, scale_a or scale_b, the nearest to the user first.

    Operands that lie in shared memory only have no registers.
    """
    if operand == "e":
        return tuple(_of_metadata(instruction))
    if operand.startswith("scale"):
        return tuple(_of_scales(instruction, operand))
    return tuple(_of_elements(instruction, operand))


# --- elements --------------------------------------------------------------------------------------------


def _of_elements(instruction: Instruction, operand: str) -> Iterator[View]:
    in_registers = instruction.lanes and any(place.lanes for place in instruction.places(operand))
    if in_registers and instruction.descriptor is None:
        layout = instruction.in_registers(operand).layout
        each = instruction.register_bits // instruction.storage(operand).bits
        order = np.argsort((layout.row_index * layout.columns + layout.column_index).reshape(-1))
        lane, value = (index.reshape(-1)[order] for index in np.indices(layout.row_index.shape))
        lanes = ("warp", lane // WARP), ("lane", lane % WARP)
        yield view("registers", (*lanes, ("register", value // each), ("slot", value % each)))
        groups = ("warp", lane // WARP), ("quad", lane % WARP // _QUAD), ("thread", lane % _QUAD)
        yield view("quads", (*groups, *_digits(layout, value, each), ("slot", value % each)))
    k = instruction.stored_k
    if (
        operand in "ab"
        and not instruction.sparse
        and instruction.storage(operand).bits == _BYTE
        and k % 16 == 0
    ):
        yield _accumulators(instruction.matrix_shape(operand), operand)
    yield from matrix_views(
        instruction.matrix_shape(operand),
        instruction.storage(operand).bits,
        along_rows=operand == "b",
        products=instruction.products,
    )


def _digits(layout: Layout, value: Index, each: int) -> list[tuple[str, Index]]:
    """Return the digits of the register, the slowest first: a half or block of rows or columns."""
    found: list[tuple[str, Index]] = []
    step = 1
    for mode in layout.value_modes:
        digit = value // step % mode.extent
        step *= mode.extent
        if step > each:
            axis = "row" if mode.along(ROW) else "column"
            skipped = max(1, each * mode.extent // step)  # values of the digit within one register
            name = f"{axis} block of {mode.along(ROW) or mode.along(COLUMN)}"
            found.insert(0, (name, digit // skipped))
    return found


def _accumulators(shape: tuple[int, int], operand: str) -> View:
    """Return the view in whose order each lane packs its elements of D of two m16n8 to bytes along k."""
    row, column = np.indices(shape).reshape(2, -1)
    line, k = (row, column) if operand == "a" else (column, row)
    tiles = ("step", k // 16), ("thread", k % 8 // 2), ("tile", k // 8 % 2), ("part", k % 2)
    return view(ACCUMULATORS, (("line", line), *tiles))


def matrix_views(
    shape: tuple[int, int], bits: int, *, along_rows: bool = False, products: int = 1
) -> Iterator[View]:
    """Yield the views of a matrix ``(rows, columns)`` in memory: elements, 8 x 8 blocks, 16-byte chunks.

    ``along_rows``: columns are contiguous in memory, as those of B are.
    """
    rows, columns = shape
    number, row, column = np.indices((products, rows, columns)).reshape(3, -1)
    yield view("matrix", (("product", number), ("row", row), ("column", column)))
    line, inner = (column, row) if along_rows else (row, column)
    names = ("column", "row") if along_rows else ("row", "column")
    if along_rows and products == 1:
        yield view("memory", (("column", column), ("row", row)))
    unit = max(1, _UNIT_BITS // bits)
    if rows * columns >= _QUAD * _QUAD and (inner.max() + 1) % (8 * unit) == 0 == (line.max() + 1) % 8:
        tiles = (
            (f"{names[0]} block of 8", line // 8),
            (f"{names[1]} block of {8 * unit}", inner // (8 * unit)),
        )
        inside = (f"{names[0]} in 8", line % 8), (f"{names[1]} in {8 * unit}", inner // unit % 8)
        yield view("blocks", (("product", number), *tiles, *inside, ("part", inner % unit)))
    width = max(1, _CHUNK_BITS // bits)
    if inner.max() + 1 > width:
        yield view(
            "chunks",
            (
                ("product", number),
                (names[0], line),
                ("16-byte chunk", inner // width),
                ("place", inner % width),
            ),
        )


# --- whole matrices of an operand ------------------------------------------------------------------------


def tile_places(shape: tuple[int, int], tile: tuple[int, int], size: tuple[int, int]) -> Index:
    """Return the places of a tile of ``size`` at an element of a matrix."""
    row, column = np.indices(size).reshape(2, -1)
    return np.asarray((row + tile[0]) * shape[1] + column + tile[1], np.intp)


@lru_cache(maxsize=64)
def whole_views(instruction: Instruction, operand: str, shape: tuple[int, int]) -> tuple[View, ...]:
    """Return the views of all elements of a matrix of whole tiles of an operand.

    Those of one tile have the tile's row and step, or row and column, before their fields.
    """
    rows, columns = instruction.matrix_shape(operand)
    row, column = np.indices(shape).reshape(2, -1)
    inside = row % rows * columns + column % columns
    names = {"a": ("row tile", "k step"), "b": ("k step", "column tile")}.get(
        operand, ("row tile", "column tile")
    )
    tiles = [(names[0], row // rows), (names[1], column // columns)]
    found = []
    for each in views_of(instruction, operand):
        if each.name != "matrix" and len(each.coordinates) == rows * columns:
            fields = [(own.name, each.coordinates[inside, at]) for at, own in enumerate(each.fields)]
            before = 1 if each.name == ACCUMULATORS and operand == "a" else 0  # its lines, as in the matrix
            found.append(view(each.name, [tiles[0], *fields[:before], tiles[1], *fields[before:]]))
    bits = instruction.storage(operand).bits
    return (*found, *matrix_views(shape, bits, along_rows=operand == "b"))


# --- metadata and scales ---------------------------------------------------------------------------------


def lane_views(lane: Index, *slots: tuple[str, Index]) -> list[View]:
    """Return the views of fields in lanes of several warps: lane by lane, and in groups of four."""
    warp, lanes = ("warp", lane // WARP), ("lane", lane % WARP)
    groups = ("quad", lane % WARP // _QUAD), ("thread", lane % _QUAD)
    return [view("registers", (warp, lanes, *slots)), view("quads", (warp, *groups, *slots))]


def index_bits(instruction: Instruction) -> int:
    """Return the bits of a place of metadata: half a field, or the whole where it names one unit."""
    return _FIELD_BITS // require_sparse(instruction).kept


def _of_metadata(instruction: Instruction) -> Iterator[View]:
    lanes, bits = instruction.lanes, index_bits(instruction)
    lane, part = np.indices((lanes, 32 // bits)).reshape(2, -1)
    yield from lane_views(lane, ("index", part))
    low = part * bits
    halves = ("half-word", low // 16), ("field", low // _FIELD_BITS % 4), ("index", low % _FIELD_BITS // bits)
    yield view("words", (("warp", lane // WARP), ("lane", lane % WARP), *halves))
    rows = _fields(instruction)
    yield rows
    # the view of metadata as the lanes of each selector, counted among themselves
    names = [field.name for field in rows.fields]
    selector = rows.coordinates[:, names.index("selector")] if "selector" in names else lane * 0
    rank = lane.copy()
    for number in np.unique(selector).tolist():
        own = selector == number
        rank[own] = np.unique(lane[own], return_inverse=True)[1]
    yield view(SELECTED, (("selector", selector), ("lane", rank), ("index", part)))


def _fields(instruction: Instruction) -> View:
    """Return the view of metadata as rows, chunks of k and indices, for every selector."""
    bits = index_bits(instruction)
    selector, row, chunk, index = (np.zeros(instruction.lanes * 32 // bits, np.intp) for _ in range(4))
    for number in instruction.selectors:
        at = instruction.metadata.fields(number).index
        for half in range(_FIELD_BITS // bits):
            places = at[..., 0] * (32 // bits) + at[..., 1] // bits + half
            selector[places], index[places] = number, half
            row[places], chunk[places] = np.indices(places.shape)
    return view("matrix", (("selector", selector), ("row", row), ("chunk", chunk), ("index", index)))


def _of_scales(instruction: Instruction, operand: str) -> Iterator[View]:
    held, part = np.indices((instruction.lanes, 32 // _BYTE)).reshape(2, -1)
    yield from lane_views(held, ("byte", part))
    place = instruction.scales(operand[-1])
    line, thread, byte = (np.zeros(instruction.lanes * 4, np.intp) for _ in range(3))
    for number in place.thread_ids:
        lanes = place.lanes_of(number)
        for at in range(4):
            places = lanes * 4 + at
            line[places], thread[places], byte[places] = np.arange(len(lanes)), number, at
    name = "row" if place.side == "a" else "column"
    yield view("matrix", ((name, line), ("thread id", thread), ("byte", byte)))
