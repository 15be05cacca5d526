"""The package of a SystemVerilog bench: the places of elements, metadata and scales in a form's registers.

Restricted to the SystemVerilog of Icarus Verilog 11: widths are numbers, functions return through their
names. Every formula is derived from the layouts that warpsim executes with, as a bit map; only the fields
of a matrix descriptor are written out again.

A bit map: the place of a matrix element (a lane, a register, a bit) is made of the bits of its coordinates;
each coordinate bit goes to its own place bit. ``bit_map`` finds the mapping, and proves it for every
coordinate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import present
from ...isa.fragments import metadata_map
from ...isa.instruction import Instruction
from ..sets import VectorSet

_AT = ("row", "column")


def package_lines(name: str, vectors: VectorSet) -> Iterator[str]:
    """Yield the package ``name`` of a set's form: constants, types of all lanes' registers, functions."""
    form = vectors.instruction
    yield f"// {form.mnemonic} on {form.target}:"
    yield "// where everything lies in its registers."
    yield "//"
    yield "// X_registers_t holds operand X of all lanes: register r of lane l begins at bit"
    yield "// (l * X_REGISTERS + r) * REGISTER_BITS. X_place(row, column) is the lowest bit of an element,"
    yield "// made of its lane, its register and its bit in the register; X_element is its code."
    yield from _remarks(form)
    yield ""
    yield f"package {name};"
    for constant, value in _constants(form).items():
        yield f"  localparam int {constant} = {value};"
    for operand in _in_registers(vectors):
        yield from _operand(form, operand)
    if form.sparse:
        yield from _metadata(form)
    for side in "ab" if form.scale else "":
        yield from _scale(form, side)
    if "shared" in vectors.arrays():
        yield from _shared(vectors)
    yield "endpackage"


def _remarks(form: Instruction) -> Iterator[str]:
    if form.sparse:
        yield "// A is stored compressed: its columns are stored columns; a_column gives the column in K."
    if form.products > 1:
        yield f"// The {form.products} independent products are stacked: row r of A, C and D of product p is"
        yield f"// row {form.shape.m} * p + r, and row k of B is row {form.shape.k} * p + k."


def _constants(form: Instruction) -> dict[str, int]:
    shape = {"M": form.shape.m, "N": form.shape.n, "K": form.shape.k, "PRODUCTS": form.products}
    constants = shape | {"LANES": form.lanes, "REGISTER_BITS": form.register_bits}
    if form.pattern:
        pattern = form.pattern
        constants |= {"CHUNK_COLUMNS": pattern.chunk, "CHUNK_STORED": pattern.stored}
        constants |= {"CHUNK_INDICES": pattern.kept, "INDEX_COLUMNS": pattern.unit}
        constants |= {"CHUNKS": form.shape.k // pattern.chunk}
    if form.scale:
        constants |= {"SCALES": form.scale_chunks, "SCALE_COLUMNS": form.shape.k // form.scale_chunks}
    return constants


def _in_registers(vectors: VectorSet) -> Iterator[str]:
    """Return the matrices that the set has in registers."""
    return (name for name in vectors.arrays() if name in tuple("abcd"))


def width(form: Instruction, operand: str) -> int:
    """Return the number of bits of all lanes' registers of an operand."""
    return prod(form.held(operand).shape) * form.register_bits


# --- a, b, c, d ------------------------------------------------------------------------------------


def _operand(form: Instruction, name: str) -> Iterator[str]:
    rows, columns = form.matrix_shape(name)
    element, each = form.format(name), form.register_bits // form.storage(name).bits
    places, capital = form.in_registers(name).layout.inverse, name.upper()
    lane, value = np.divmod(places, form.in_registers(name).layout.values)
    bit = value % each * form.storage(name).bits
    shift = form.storage(name).shift
    yield f"\n  // --- {name}: {rows * form.products} x {columns} elements of {element.name} ---"
    yield f"  localparam int {capital}_REGISTERS = {form.held(name).words};"
    yield f"  localparam int {capital}_ROWS = {rows * form.products};"
    yield f"  localparam int {capital}_COLUMNS = {columns};"
    yield f"  localparam int {capital}_BITS = {element.bits};"
    yield f"  typedef logic [{width(form, name) - 1}:0] {name}_registers_t;"
    yield f"  typedef logic [{element.bits - 1}:0] {name}_code_t;"
    yield from _function(f"{name}_lane", _AT, expression(lane, _AT))
    yield from _function(f"{name}_register", _AT, expression(value // each, _AT))
    yield from _function(f"{name}_bit", _AT, expression(bit, _AT) + (f" + {shift}" if shift else ""))
    yield from _place(name, _AT)
    taken = f"registers[{name}_place(row, column) +: {element.bits}]"
    yield from _reading(f"{name}_element", f"{name}_code_t", f"{name}_registers_t", _AT, taken)


def _function(name: str, arguments: tuple[str, ...], value: str) -> Iterator[str]:
    """Yield a function of integers."""
    listed = ", ".join(f"input int {argument}" for argument in arguments)
    yield f"  function automatic int {name}({listed});"
    yield f"    {name} = {value};"
    yield "  endfunction"


def _reading(
    name: str, returned: str, registers: str, arguments: tuple[str, ...], value: str
) -> Iterator[str]:
    """Yield a function that extracts a value from all lanes' registers."""
    listed = "".join(f", input int {argument}" for argument in arguments)
    yield f"  function automatic {returned} {name}(input {registers} registers{listed});"
    yield f"    {name} = {value};"
    yield "  endfunction"


def _place(name: str, at: tuple[str, ...]) -> Iterator[str]:
    given = ", ".join(at)
    register = f"({name}_lane({given}) * {name.upper()}_REGISTERS + {name}_register({given}))"
    yield from _function(f"{name}_place", at, f"{register} * REGISTER_BITS + {name}_bit({given})")


# --- metadata and scales ---------------------------------------------------------------------------


def _metadata(form: Instruction) -> Iterator[str]:
    """Yield fields by (row, chunk, selector), the indices in them, and the columns that they name."""
    pattern = present(form.pattern, "pattern")
    at, shape = ("row", "chunk", "selector"), (form.shape.m, form.shape.k // pattern.chunk)
    maps = [metadata_map(form, selector) for selector in form.selectors]
    lane, bit = (np.stack([item[:, i].reshape(shape) for item in maps], -1) for i in (0, 1))
    yield f"\n  // --- e: a field of 4 bits for each of {shape[0]} rows and {shape[1]} chunks of columns ---"
    yield f"  // selectors: {', '.join(map(str, form.selectors))}"
    yield "  localparam int E_REGISTERS = 1;"
    yield f"  typedef logic [{width(form, 'e') - 1}:0] e_registers_t;"
    yield from _function("e_lane", at, expression(lane, at))
    yield from _function("e_bit", at, expression(bit, at))
    yield from _function("e_place", at, "e_lane(row, chunk, selector) * 32 + e_bit(row, chunk, selector)")
    yield from _reading(
        "e_field", "logic [3:0]", "e_registers_t", at, "registers[e_place(row, chunk, selector) +: 4]"
    )
    index = "{30'b0, field[2 * which +: 2]}" if pattern.kept == 2 else "{31'b0, field[1]}"
    named = "pairs of columns" if pattern.unit > 1 else "columns"
    yield f"  // Which of the {pattern.choices} {named} of a chunk an index names."
    yield "  function automatic int e_index(input logic [3:0] field, input int which);"
    yield f"    e_index = {index};"
    yield "  endfunction"
    yield "  // The column in K, which is the row of B, of an element of A in a stored column."
    yield "  function automatic int a_column("
    yield "      input e_registers_t registers, input int row, input int stored, input int selector);"
    yield "    a_column = stored / CHUNK_STORED * CHUNK_COLUMNS + stored % INDEX_COLUMNS + INDEX_COLUMNS"
    yield "        * e_index(e_field(registers, row, stored / CHUNK_STORED, selector),"
    yield "                  stored % CHUNK_STORED / INDEX_COLUMNS);"
    yield "  endfunction"


def _scale(form: Instruction, side: str) -> Iterator[str]:
    """Yield codes of scales by the row or column that they belong to, the scale along K, and the
    selectors.
    """
    name, along = f"scale_{side}", "row" if side == "a" else "column"
    scales = form.scales(side)
    lane = scales.lanes_of(np.arange(len(scales.thread_ids))).T
    yield f"\n  // --- {name}: {form.scale_chunks} of {present(form.scale, 'scale').name} a {along} ---"
    yield f"  localparam int {name.upper()}_REGISTERS = 1;"
    yield f"  typedef logic [{width(form, name) - 1}:0] {name}_registers_t;"
    yield from _function(f"{name}_lane", (along, "thread_id"), expression(lane, (along, "thread_id")))
    yield from _function(f"{name}_bit", ("chunk", "byte_id"), "8 * (byte_id + chunk)")
    place = f"{name}_lane({along}, thread_id) * 32 + {name}_bit(chunk, byte_id)"
    yield from _reading(
        f"{name}_element",
        "logic [7:0]",
        f"{name}_registers_t",
        (along, "chunk", "byte_id", "thread_id"),
        f"registers[{place} +: 8]",
    )


# --- tiles in shared memory ------------------------------------------------------------------------

_TILE_ADDRESS = """
  // --- tiles in shared memory, behind descriptors ---
  // Byte address of an element: index runs along M or N, depth along K, size is that of an element in bytes.
  function automatic int tile_address(input logic [63:0] descriptor, input logic transposed,
                                      input int index, input int depth, input int size);
    int start, leading, stride, width, along, across, plain;
    start   = {14'b0, descriptor[13:0], 4'b0};
    leading = {14'b0, descriptor[29:16], 4'b0};
    stride  = {14'b0, descriptor[45:32], 4'b0};
    plain   = descriptor[63:62] == 0 ? 1 : 0;
    width   = plain != 0 ? 16 : 256 >> descriptor[63:62];
    if (transposed) begin
      along = plain != 0 ? stride : leading;
      across = plain != 0 ? leading : stride;
      start = start + index % (width / size) * size + index / (width / size) * along
          + depth % 8 * width + depth / 8 * across;
    end else begin
      along = plain != 0 ? leading : width;
      start = start + index % 8 * width + index / 8 * stride
          + depth % (width / size) * size + depth / (width / size) * along;
    end
    tile_address = start ^ (((start >> 7) & (width / 16 - 1)) << 4);
  endfunction"""


def _shared(vectors: VectorSet) -> Iterator[str]:
    """Yield elements of A and B by row and column, from all bytes of shared memory and a descriptor."""
    form, arrays = vectors.instruction, vectors.arrays()
    yield from _TILE_ADDRESS.split("\n")
    yield f"  typedef logic [{8 * arrays['shared'].shape[1] - 1}:0] shared_t;"
    for side, index, depth in (("a", "row", "column"), ("b", "column", "row")):
        if f"{side}_desc" not in arrays:
            continue
        bits = form.format(side).bits
        size = max(bits // 8, 1)
        packed = max(8 // bits, 1)  # elements of a byte
        inside = f" + {depth} % {packed}" if packed > 1 else ""
        rows, columns = form.matrix_shape(side)
        deep = f"{depth} / {packed}" if packed > 1 else depth
        place = f"8 * tile_address(descriptor, transposed, {index}, {deep}, {size}){inside}"
        yield f"  localparam int {side.upper()}_ROWS = {rows};"
        yield f"  localparam int {side.upper()}_COLUMNS = {columns};"
        yield f"  localparam int {side.upper()}_BITS = {bits};"
        yield f"  typedef logic [{bits - 1}:0] {side}_code_t;"
        yield f"  function automatic {side}_code_t {side}_element("
        yield "      input shared_t bytes, input logic [63:0] descriptor, input logic transposed,"
        yield "      input int row, input int column);"
        yield f"    {side}_element = bytes[{place} +: {bits}];"
        yield "  endfunction"


# --- bit maps -----------------------------------------------------------------------------------------


class Run(NamedTuple):
    """``bits`` consecutive bits of a coordinate, from bit ``source``, that go to bit ``goal`` and up."""

    name: str
    source: int
    goal: int
    bits: int

    def __str__(self) -> str:
        shifted = f"({self.name} >> {self.source})" if self.source else self.name
        masked = f"({shifted} & {(1 << self.bits) - 1})"
        return f"({masked} << {self.goal})" if self.goal else masked


def expression(values: npt.NDArray[Any], names: tuple[str, ...]) -> str:
    """Return an expression of C and SystemVerilog for ``values``, whose axes are
    coordinates of these names.
    """
    return " | ".join(str(run) for run in bit_map(values, names)) or "0"


def bit_map(values: npt.NDArray[Any], names: tuple[str, ...]) -> tuple[Run, ...]:
    """Return where the bits of the coordinates go in ``values``; AssertionError for any other function."""
    goals = {
        (name, bit): int(values[tuple(1 << bit if axis == item else 0 for item in range(values.ndim))])
        for axis, name in enumerate(names)
        for bit in range((values.shape[axis] - 1).bit_length())
    }
    _prove(values, names, goals)
    runs: list[Run] = []
    for (name, bit), goal in goals.items():
        if not goal:
            continue
        last, place = runs[-1] if runs else None, goal.bit_length() - 1
        if last and last.name == name and (last.source + last.bits, last.goal + last.bits) == (bit, place):
            runs[-1] = last._replace(bits=last.bits + 1)
        else:
            runs.append(Run(name, bit, place, 1))
    return tuple(runs)


def _prove(values: npt.NDArray[Any], names: tuple[str, ...], goals: Mapping[tuple[str, int], int]) -> None:
    """Raise AssertionError unless every value is the union of the goals of its coordinates' bits."""
    used = [goal for goal in goals.values() if goal]
    coordinates = dict(zip(names, np.indices(values.shape), strict=True))
    made = np.zeros(values.shape, np.int64)
    for (name, bit), goal in goals.items():
        made |= (coordinates[name] >> bit & 1) * goal
    single = all(goal & goal - 1 == 0 for goal in used) and len(set(used)) == len(used)
    if not single or not np.array_equal(made, values):
        raise AssertionError(f"no bit map of {', '.join(names)}")
