"""Elements of A and B in shared memory, behind descriptors: functions of a bench's package.

The fields of both descriptors and their swizzles are written out again here: that of wgmma (PTX ISA 9.1,
section 9.7.15.5.1.2) and that of tcgen05 (PTX ISA 9.3, sections 9.7.17.4.1 and 9.7.17.5).
"""

from __future__ import annotations

from collections.abc import Iterator

from ....isa.instruction import Instruction
from ....isa.operand_places.tensor_placements import DescribedTile
from ..sets import VectorSet

_WGMMA_ADDRESS = """
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

_TENSOR_ADDRESS = """
  // --- tiles in shared memory, behind descriptors ---
  // Byte address in the shared memory of a CTA: index runs along M or N, byte_at along K in the bytes of a
  // row, size is that of an element in bytes. Of the swizzles 1 has atoms of 32 bytes, the others of 16.
  function automatic int tile_address(input logic [63:0] descriptor, input logic transposed,
                                      input int index, input int byte_at, input int size);
    int start, leading, stride, first, width, across, deep, atom, moved, linear;
    start   = {14'b0, descriptor[13:0], 4'b0};
    leading = {14'b0, descriptor[29:16], 4'b0};
    stride  = {14'b0, descriptor[45:32], 4'b0};
    first   = {22'b0, descriptor[51:49], 7'b0};  // where the swizzle pattern begins
    case (descriptor[63:61])
      3'd0: width = 16;
      3'd4: width = 64;
      3'd6: width = 32;
      default: width = 128;
    endcase
    atom = descriptor[63:61] == 3'd1 ? 5 : 4;
    deep = descriptor[63:61] == 3'd1 ? 4 : 8;
    across = width / size;
    if (transposed) begin
      linear = start + index % across * size + byte_at / size % deep * width + byte_at % size
          + index / across * (width == 16 ? stride : leading)
          + byte_at / size / deep * (width == 16 ? leading : stride);
    end else begin
      linear = start + index % 8 * width + index / 8 * stride
          + (width == 16 ? byte_at / 16 * leading + byte_at % 16 : byte_at);
      if (descriptor[52] && start % 128 + byte_at >= 128)  // rows go on at the address in leading
        linear = linear + leading - (start - start % 128) - 128;
    end
    moved = linear - first;
    tile_address = first + (moved ^ (((moved >> 7) & (width / (1 << atom) - 1)) << atom));
  endfunction"""


def tile_lines(vectors: VectorSet) -> Iterator[str]:
    """Yield elements of A and B by row and column, from all bytes of shared memory and a descriptor."""
    form, arrays = vectors.instruction, vectors.arrays()
    described = form.descriptor is not None
    yield from (_TENSOR_ADDRESS if described else _WGMMA_ADDRESS).split("\n")
    yield f"  typedef logic [{8 * arrays['shared'].shape[1] - 1}:0] shared_t;"
    for side in "ab":
        if f"{side}_desc" not in arrays:
            continue
        rows, columns = form.matrix_shape(side)
        yield f"  localparam int {side.upper()}_ROWS = {rows};"
        yield f"  localparam int {side.upper()}_COLUMNS = {columns};"
        yield f"  localparam int {side.upper()}_BITS = {form.format(side).bits};"
        yield f"  typedef logic [{form.format(side).bits - 1}:0] {side}_code_t;"
        shared_bytes = arrays["shared"].shape[1]
        yield from _tensor_element(form, side, shared_bytes) if described else _wgmma_element(form, side)


def _wgmma_element(form: Instruction, side: str) -> Iterator[str]:
    """Yield the element of a tile of wgmma, whose major is an immediate."""
    index, depth = ("row", "column") if side == "a" else ("column", "row")
    bits = form.format(side).bits
    size = max(bits // 8, 1)
    packed = max(8 // bits, 1)  # elements of a byte
    inside = f" + {depth} % {packed}" if packed > 1 else ""
    deep = f"{depth} / {packed}" if packed > 1 else depth
    place = f"8 * tile_address(descriptor, transposed, {index}, {deep}, {size}){inside}"
    yield f"  function automatic {side}_code_t {side}_element("
    yield "      input shared_t bytes, input logic [63:0] descriptor, input logic transposed,"
    yield "      input int row, input int column);"
    yield f"    {side}_element = bytes[{place} +: {bits}];"
    yield "  endfunction"


def _tensor_element(form: Instruction, side: str, shared_bytes: int) -> Iterator[str]:
    """Yield the element of a tile of tcgen05, whose major is in the instruction descriptor.

    A pair has the shared memory of the even CTA, and then that of the odd CTA.
    """
    tile = next(place for place in form.places(side) if isinstance(place, DescribedTile))
    index, depth = ("row", "column") if side == "a" else ("column", "row")
    bits, transposed = form.format(side).bits, int(form.product.transposed["ab".index(side)])
    size = tile.element_bytes
    byte, bit = f"{depth} * {size}" if size > 1 else depth, ""
    if bits == 4:
        byte, bit = f"{depth} / 2", f" + {depth} % 2 * 4"
    if bits < 8 and form.storage(side).bits == 8:  # 16 elements in the first bytes of 16
        byte = f"{depth} / 16 * 16 + {depth} % 16 * {bits} / 8"
        bit = f" + {depth} % 16 * {bits} % 8"
    own, cta = index, ""
    if tile.ctas > 1:
        own, cta = f"{index} % {tile.rows}", f"{index} / {tile.rows} * {shared_bytes // tile.ctas} + "
    yield f"  // The lowest bit in shared. {side}_element copies all of it; a part select does not."
    yield f"  function automatic int {side}_place("
    yield "      input logic [63:0] descriptor, input int row, input int column);"
    yield "    int address;"
    yield f"    address = {cta}tile_address(descriptor, 1'b{transposed}, {own}, {byte}, {size});"
    yield f"    {side}_place = 8 * address{bit};"
    yield "  endfunction"
    yield f"  function automatic {side}_code_t {side}_element("
    yield "      input shared_t bytes, input logic [63:0] descriptor, input int row, input int column);"
    yield f"    {side}_element = bytes[{side}_place(descriptor, row, column) +: {bits}];"
    yield "  endfunction"
