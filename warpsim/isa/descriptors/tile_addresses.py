"""Where a matrix descriptor puts the elements of a tile, and the tiles in shared memories.

PTX ISA 9.1, section 9.7.15.5.1.2 "Shared Memory Matrix Layout". Does not know instructions.
"""

from __future__ import annotations

import numpy as np

from ...base.errors import NotModelled, OperandError
from ..layouts.strides import Modes, modes, points
from ..layouts.swizzle import SWIZZLE_BYTES, Swizzle, pattern_bytes, swizzled
from ..memory import SHARED_BYTES, Addresses, Bytes, element_view, write_elements
from .matrix_descriptor import Descriptor, Major, Tile
from .tile_shape import TileShape

# --- addresses -------------------------------------------------------------------------------------


def tile_addresses(
    descriptor: Descriptor, shape: TileShape, *, memory_bytes: int = SHARED_BYTES, literal: bool = False
) -> Addresses:
    """Return ``(mn, k)``: the byte address of each element of the tile that one instruction reads.

    Raises OperandError for a shape that no descriptor has (MN-major other than 16-bit, extents) or a tile
    that leaves ``memory_bytes``, and for a base offset without a swizzle; NotModelled for a tile that crosses
    a swizzled row's end, which ``literal`` takes by the formula as it stands: a row runs on into the next.
    The base offset says where the swizzle pattern begins, whatever the start address (Descriptor.unusual).
    PTX ISA 9.1, sections 9.7.15.5.1.2.1 and 9.7.15.5.1.2.2.
    """
    shape.check()
    _check_descriptor(descriptor, shape, literal)
    linear = descriptor.start_address + tile_offsets(descriptor, shape)
    begin = descriptor.pattern_begin
    addresses = begin + swizzled(linear - begin, descriptor.swizzle)
    _check_inside(addresses, shape.size, memory_bytes)
    return addresses


def tile_offsets(descriptor: Descriptor, shape: TileShape) -> Addresses:
    """Return ``(mn, k)``: the distance in bytes of each element from the first, before swizzling."""
    along_mn, along_k = tile_modes(descriptor, shape)
    return points(along_mn, 1)[: shape.mn] + points(along_k, 1)[: shape.k, 0]


def tile_modes(descriptor: Descriptor, shape: TileShape) -> tuple[Modes, Modes]:
    """Return the modes of M or N and of K, whose steps are bytes before swizzling.

    A tile may end inside the slowest digit of either index.
    """
    plain = descriptor.swizzle == "none"
    width, size = SWIZZLE_BYTES[descriptor.swizzle], shape.size
    leading, stride = descriptor.leading_byte_offset, descriptor.stride_byte_offset
    if shape.major == "K":
        along_k = leading if plain else width
        return _two_digits(shape.mn, 8, width, stride), _two_digits(shape.k, width // size, size, along_k)
    along_mn, along_k = (stride, leading) if plain else (leading, stride)
    return _two_digits(shape.mn, width // size, size, along_mn), _two_digits(shape.k, 8, width, along_k)


def _two_digits(count: int, period: int, inside: int, outside: int) -> Modes:
    """Return the modes of an index that steps by ``inside`` in a period and by ``outside`` after it."""
    return modes((min(count, period), (inside,)), (-(-count // period), (outside,)))


def _check_descriptor(descriptor: Descriptor, shape: TileShape, literal: bool) -> None:
    """Refuse a base offset of no pattern, and what PTX does not say, which ``literal`` allows."""
    if descriptor.base_offset and descriptor.swizzle == "none":
        raise OperandError(f"base offset is {descriptor.base_offset} (bits 51:49); legal without swizzle: 0")
    if literal:
        return
    first, end = row_bytes(descriptor.start_address, descriptor.swizzle, shape)
    width = SWIZZLE_BYTES[descriptor.swizzle]
    if end > width:
        raise NotModelled(
            f"the tile has bytes {first}..{end - 1} of each {shape.major}-major row, but with "
            f"{descriptor.swizzle} swizzle a row has {width}, and PTX does not say where it continues"
        )


def is_aligned(start: int, swizzle: Swizzle) -> bool:
    """Return whether a start lies in the first row of its swizzle pattern, as after steps along K."""
    return start % pattern_bytes(swizzle) < SWIZZLE_BYTES[swizzle]


def row_bytes(start: int, swizzle: Swizzle, shape: TileShape) -> tuple[int, int]:
    """Return the stretch ``first <= byte < end`` that a tile takes of each row; all of it without swizzle."""
    width = SWIZZLE_BYTES[swizzle]
    if swizzle == "none":
        return 0, width
    extent = shape.k * shape.size if shape.major == "K" else min(shape.mn * shape.size, width)
    return start % width, start % width + extent


def _check_inside(addresses: Addresses, size: int, memory_bytes: int) -> None:
    if addresses.max() + size <= memory_bytes:
        return
    mn, k = np.unravel_index(int(np.argmax(addresses)), addresses.shape)
    raise OperandError(
        f"element ({mn}, {k}) of the tile lies at {int(addresses[mn, k]):#x}, "
        f"outside the {memory_bytes} bytes of memory"
    )


# --- tiles in memory -------------------------------------------------------------------------------


def load_tile(memory: Bytes, descriptor: Descriptor, shape: TileShape, *, literal: bool = False) -> Tile:
    """Return codes ``(..., mn, k)``, unsigned integers: the tile in each memory ``(..., bytes)``.

    Raises as tile_addresses does.
    """
    shape.check()
    view = element_view(memory, shape.size)
    addresses = tile_addresses(descriptor, shape, memory_bytes=memory.shape[-1], literal=literal)
    tile: Tile = view.take(addresses // shape.size, -1).view(shape.code_dtype)
    return tile


def store_tile(
    memory: Bytes, descriptor: Descriptor, tile: Tile, *, major: Major, literal: bool = False
) -> None:
    """Write a tile ``(..., mn, k)`` into memories ``(..., bytes)`` where the descriptor will read it.

    One tile may go to a batch of memories. Raises as tile_addresses does, and OperandError where the
    strides put two elements at one address.
    """
    shape = TileShape.of(tile, major)
    addresses = tile_addresses(descriptor, shape, memory_bytes=memory.shape[-1], literal=literal)
    if np.unique(addresses).size < addresses.size:
        raise OperandError(f"two elements of the tile share an address: {descriptor}")
    write_elements(memory, addresses // shape.size, np.ascontiguousarray(tile).view(shape.code_dtype))


def touched_bytes(
    descriptor: Descriptor, shape: TileShape, *, memory_bytes: int = SHARED_BYTES, literal: bool = False
) -> Addresses:
    """Return ``(n, 2)``: disjoint, ascending byte ranges ``first <= address < end`` of an instruction.

    Raises as tile_addresses does.
    """
    addresses = tile_addresses(descriptor, shape, memory_bytes=memory_bytes, literal=literal)
    starts = np.unique(addresses)
    gaps = np.flatnonzero(np.diff(starts) != shape.size)
    firsts = starts[np.concatenate(([0], gaps + 1))]
    ends = starts[np.concatenate((gaps, [starts.size - 1]))] + shape.size
    return np.stack((firsts, ends), axis=-1)
