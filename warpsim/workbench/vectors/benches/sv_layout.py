"""The package of a SystemVerilog bench: places of elements, metadata and scales in words of lanes.

The words are registers, or cells of tensor memory.

Restricted to the SystemVerilog of Icarus Verilog 11: widths are numbers, functions return through their
names. Every formula is derived from the layouts that warpsim executes with.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

import numpy as np

from ....base.errors import present
from ....isa.families.tcgen05_operands import is_shifted
from ....isa.fragments import metadata_map
from ....isa.instruction import Instruction
from ....isa.layouts.strides import Mode
from ....isa.layouts.tensor_memory import BIT, COLUMN, CTA, LANE, LANES
from ....isa.operand_places.tensor_placements import TensorCells
from ..sets import VectorSet
from .sv_expressions import expression, function, reading, stepped
from .sv_tiles import tile_lines

_AT = ("row", "column")


def package_lines(name: str, vectors: VectorSet) -> Iterator[str]:
    """Yield the package ``name`` of a set's form: constants, types of all lanes' words, functions."""
    form, word = vectors.instruction, word_name(vectors.instruction)
    yield f"// {form.mnemonic} on {form.target}:"
    yield f"// where everything lies in its {word}s."
    yield "//"
    yield f"// X_{word}s_t holds operand X of all lanes: {word} r of lane l begins at bit"
    yield f"// (l * X_{word.upper()}S + r) * {word.upper()}_BITS. X_place(row, column) is the lowest bit"
    yield f"// of an element, made of its lane, its {word} and its bit in the {word}; X_element is its code."
    yield from _remarks(form)
    yield ""
    yield f"package {name};"
    for constant, value in _constants(form).items():
        yield f"  localparam int {constant} = {value};"
    if form.descriptor is not None:
        yield f"  localparam logic [31:0] INSTRUCTION_DESCRIPTOR = 32'h{form.descriptor:08x};"
    for operand in _in_words(vectors):
        yield from _operand(form, operand)
    if form.sparse:
        yield from _metadata(form)
    for side in "ab" if form.scale else "":
        yield from _scale(form, side)
    if "shared" in vectors.arrays():
        yield from tile_lines(vectors)
    yield "endpackage"


def word_name(form: Instruction) -> str:
    """Return what a word of an operand is: a register, or a cell of tensor memory."""
    return "register" if form.descriptor is None else "cell"


def _remarks(form: Instruction) -> Iterator[str]:
    if form.descriptor is not None:
        yield "// Cell r of a lane is in column r of tensor memory, counted from the operand's address on."
        yield "// What lies in further lanes again is taken from the first."
    if form.lanes > LANES and form.descriptor is not None:
        yield f"// Lanes {LANES} and up are those of the odd CTA of the pair; so is the upper half of shared."
    if is_shifted(form):
        yield "// .ashift: a row of D takes the next row of A, the last row of a CTA its own."
    if form.sparse:
        yield "// A is stored compressed: its columns are stored columns; a_column gives the column in K."
    if form.products > 1:
        yield f"// The {form.products} independent products are stacked: row r of A, C and D of product p is"
        yield f"// row {form.shape.m} * p + r, and row k of B is row {form.shape.k} * p + k."


def _constants(form: Instruction) -> dict[str, int]:
    shape = {"M": form.shape.m, "N": form.shape.n, "K": form.shape.k, "PRODUCTS": form.products}
    constants = shape | {"LANES": form.lanes, f"{word_name(form).upper()}_BITS": form.register_bits}
    if form.descriptor is not None:
        constants |= {f"{side}_NEGATED": int(form.product.negated["AB".index(side)]) for side in "AB"}
    if form.pattern:
        pattern = form.pattern
        constants |= {"CHUNK_COLUMNS": pattern.chunk, "CHUNK_STORED": pattern.stored}
        constants |= {"CHUNK_INDICES": pattern.kept, "INDEX_COLUMNS": pattern.unit}
        constants |= {"CHUNKS": form.shape.k // pattern.chunk}
    if form.scale:
        constants |= {"SCALES": form.scale_chunks, "SCALE_COLUMNS": form.shape.k // form.scale_chunks}
    return constants


def _in_words(vectors: VectorSet) -> Iterator[str]:
    """Return the matrices that the set has in registers or tensor memory."""
    return (name for name in vectors.arrays() if name in tuple("abcd"))


def width(form: Instruction, operand: str) -> int:
    """Return the number of bits of all lanes' words of an operand."""
    return prod(form.held(operand).shape) * form.register_bits


# --- places ------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """Expressions of where something lies: its lane, its word of the lane, its lowest bit."""

    lane: str
    word: str
    bit: str


def _in_cells(cells: TensorCells, names: tuple[str, str]) -> Place:
    """Return the place in tensor memory of what has these names of row and column."""
    layout, (down, across) = cells.layout, names
    indices = {down: layout.rows, f"({across} + {layout.first})" if layout.first else across: layout.columns}

    def along(coordinate: int, first: int = 0) -> str:
        found = stepped(indices, lambda mode: mode.along(coordinate))
        return f"{found} + {first}" if first else found

    def lane(mode: Mode) -> int:
        return mode.along(CTA) * LANES + mode.along(LANE)

    return Place(stepped(indices, lane), along(COLUMN, cells.first_column), along(BIT, cells.low_bit))


def _in_registers(form: Instruction, name: str) -> Place:
    """Return the place of an element of a, b, c or d in registers, as bit maps."""
    registers, storage = form.in_registers(name), form.storage(name)
    each = form.register_bits // storage.bits
    lane, value = np.divmod(registers.layout.inverse, registers.layout.values)
    bit = expression(value % each * storage.bits, _AT) + (f" + {storage.shift}" if storage.shift else "")
    return Place(expression(lane, _AT), expression(value // each, _AT), bit)


def _placed(form: Instruction, name: str, at: tuple[str, ...], place: Place) -> Iterator[str]:
    """Yield the constant and the functions of a place: its lane, its word, its bit, and all of them."""
    word, given = word_name(form), ", ".join(at)
    count = f"{name.upper()}_{word.upper()}S"
    yield f"  localparam int {count} = {form.held(name).words};"
    yield f"  typedef logic [{width(form, name) - 1}:0] {name}_{word}s_t;"
    yield from function(f"{name}_lane", at, place.lane)
    yield from function(f"{name}_{word}", at, place.word)
    yield from function(f"{name}_bit", at, place.bit)
    found = f"({name}_lane({given}) * {count} + {name}_{word}({given}))"
    yield from function(f"{name}_place", at, f"{found} * {word.upper()}_BITS + {name}_bit({given})")


def _slice_function(
    form: Instruction, name: str, returned: str, bits: int, at: tuple[str, ...]
) -> Iterator[str]:
    """Yield the function that takes so many bits of an operand at a place."""
    word, what = word_name(form), "field" if name == "e" else "element"
    value = f"{word}s[{name}_place({', '.join(at)}) +: {bits}]"
    yield from reading(returned, f"{name}_{what}", f"{name}_{word}s_t {word}s", at, value)


# --- a, b, c, d ------------------------------------------------------------------------------------


def _operand(form: Instruction, name: str) -> Iterator[str]:
    rows, columns = form.matrix_shape(name)
    element, capital, held = form.format(name), name.upper(), form.held(name)
    place = _in_cells(held, _AT) if isinstance(held, TensorCells) else _in_registers(form, name)
    yield f"\n  // --- {name}: {rows * form.products} x {columns} elements of {element.name} ---"
    yield f"  localparam int {capital}_ROWS = {rows * form.products};"
    yield f"  localparam int {capital}_COLUMNS = {columns};"
    yield f"  localparam int {capital}_BITS = {element.bits};"
    yield f"  typedef logic [{element.bits - 1}:0] {name}_code_t;"
    yield from _placed(form, name, _AT, place)
    yield from _slice_function(form, name, f"{name}_code_t", element.bits, _AT)


# --- metadata and scales ---------------------------------------------------------------------------


def _metadata(form: Instruction) -> Iterator[str]:
    """Yield fields by (row, chunk, selector), the indices in them, and the columns that they name.

    Of tcgen05 the selector is in the instruction descriptor.
    """
    pattern, held = present(form.pattern, "pattern"), form.held("e")
    shape = form.shape.m, form.shape.k // pattern.chunk
    yield f"\n  // --- e: a field of 4 bits for each of {shape[0]} rows and {shape[1]} chunks of columns ---"
    at: tuple[str, ...] = ("row", "chunk")
    if isinstance(held, TensorCells):
        place = _in_cells(held, ("row", "chunk"))
    else:
        at = ("row", "chunk", "selector")
        yield f"  // selectors: {', '.join(map(str, form.selectors))}"
        maps = [metadata_map(form, selector) for selector in form.selectors]
        lane, bit = (np.stack([item[:, i].reshape(shape) for item in maps], -1) for i in (0, 1))
        place = Place(expression(lane, at), "0", expression(bit, at))
    yield from _placed(form, "e", at, place)
    yield from _slice_function(form, "e", "logic [3:0]", 4, at)
    yield from _columns_of(form, at[2:])


def _columns_of(form: Instruction, selector: tuple[str, ...]) -> Iterator[str]:
    """Yield the indices in a field, and the columns of K that they name."""
    pattern, word = present(form.pattern, "pattern"), word_name(form)
    index = "{30'b0, field[2 * which +: 2]}" if pattern.kept == 2 else "{31'b0, field[1]}"
    named = "pairs of columns" if pattern.unit > 1 else "columns"
    listed = "".join(f", input int {name}" for name in selector)
    at = ", ".join(("row", "stored / CHUNK_STORED", *selector))
    yield f"  // Which of the {pattern.choices} {named} of a chunk an index names."
    yield "  function automatic int e_index(input logic [3:0] field, input int which);"
    yield f"    e_index = {index};"
    yield "  endfunction"
    yield "  // The column in K, which is the row of B, of an element of A in a stored column."
    yield "  function automatic int a_column("
    yield f"      input e_{word}s_t {word}s, input int row, input int stored{listed});"
    yield "    a_column = stored / CHUNK_STORED * CHUNK_COLUMNS + stored % INDEX_COLUMNS + INDEX_COLUMNS"
    yield f"        * e_index(e_field({word}s, {at}), stored % CHUNK_STORED / INDEX_COLUMNS);"
    yield "  endfunction"


def _scale(form: Instruction, side: str) -> Iterator[str]:
    """Yield codes of scales by the row or column that they belong to, the scale along K, and the selectors.

    Of tcgen05 the selectors are in the instruction descriptor.
    """
    name, along = f"scale_{side}", "row" if side == "a" else "column"
    held = form.held(name)
    yield f"\n  // --- {name}: {form.scale_chunks} of {present(form.scale, 'scale').name} a {along} ---"
    at: tuple[str, ...] = (along, "chunk")
    if isinstance(held, TensorCells):
        place = _in_cells(held, (along, "chunk"))
    else:
        at = (along, "chunk", "byte_id", "thread_id")
        scales = form.scales(side)
        lane = scales.lanes_of(np.arange(len(scales.thread_ids))).T
        place = Place(expression(lane, (along, "thread_id")), "0", "8 * (byte_id + chunk)")
    yield from _placed(form, name, at, place)
    yield from _slice_function(form, name, "logic [7:0]", 8, at)
