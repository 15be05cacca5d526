"""Where a matrix descriptor puts the elements of a tile, and the tiles in shared memories.

A tile is ``mn x k`` elements, rows of A (M) or columns of B (N) first, K second, for A and B alike. Tiles
of 1-bit elements are tiles of bytes: element_bits is 8 and k counts bytes, the element of lowest k in the
lowest bit. PTX ISA 9.1, section 9.7.15.5.1.2 "Shared Memory Matrix Layout". Does not know instructions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import NotModelled, OperandError, UndefinedBehavior
from ..layouts.strides import Modes, modes, points
from ..layouts.swizzle import SWIZZLE_BYTES, Swizzle, pattern_bytes, swizzled
from ..memory import SHARED_BYTES, Addresses, Bytes, element_view, write_elements
from .matrix_descriptor import BASE_OFFSET_MESSAGE, Descriptor, Major, Tile, unaligned_message

# --- addresses -------------------------------------------------------------------------------------


def tile_addresses(
    descriptor: Descriptor,
    *,
    mn: int,
    k: int,
    element_bits: int,
    major: Major,
    memory_bytes: int = SHARED_BYTES,
    literal: bool = False,
) -> Addresses:
    """Return ``(mn, k)``: the byte address of each element of the tile that one instruction reads.

    ``element_bits`` is 8, 16 or 32; 1-bit elements come as bytes, with ``k`` in bytes. Raises
    OperandError for a tile that no descriptor has (MN-major other than 16-bit, extents) or that leaves
    ``memory_bytes``; NotModelled for a base offset, and for a tile that crosses a swizzled row's end;
    UndefinedBehavior for a start address beyond the first row of the swizzle pattern while base offset 0
    says that the pattern is aligned. ``literal`` takes the last two by the formulas as they stand: a row
    runs on into the next, and the exclusive-or uses absolute address bits. PTX ISA 9.1, sections
    9.7.15.5.1.2.1 and 9.7.15.5.1.2.2.
    """
    check_tile(mn, k, element_bits, major)
    _check_descriptor(descriptor, mn, k, element_bits // 8, major, literal)
    linear = descriptor.start_address + tile_offsets(descriptor, mn, k, element_bits // 8, major)
    addresses = swizzled(linear, descriptor.swizzle)
    _check_inside(addresses, element_bits // 8, memory_bytes)
    return addresses


def tile_offsets(descriptor: Descriptor, mn: int, k: int, size: int, major: Major) -> Addresses:
    """Return ``(mn, k)``: the distance in bytes of each element from the first, before swizzling."""
    along_mn, along_k = tile_modes(descriptor, mn, k, size, major)
    return points(along_mn, 1)[:mn] + points(along_k, 1)[:k, 0]


def tile_modes(descriptor: Descriptor, mn: int, k: int, size: int, major: Major) -> tuple[Modes, Modes]:
    """Return the modes of M or N and of K, whose steps are bytes before swizzling.

    A tile may end inside the slowest digit of either index.
    """
    plain = descriptor.swizzle == "none"
    width = SWIZZLE_BYTES[descriptor.swizzle]
    leading, stride = descriptor.leading_byte_offset, descriptor.stride_byte_offset
    if major == "K":
        along_k = leading if plain else width
        return _two_digits(mn, 8, width, stride), _two_digits(k, width // size, size, along_k)
    along_mn, along_k = (stride, leading) if plain else (leading, stride)
    return _two_digits(mn, width // size, size, along_mn), _two_digits(k, 8, width, along_k)


def _two_digits(count: int, period: int, inside: int, outside: int) -> Modes:
    """Return the modes of an index that steps by ``inside`` in a period and by ``outside`` after it."""
    return modes((min(count, period), (inside,)), (-(-count // period), (outside,)))


def check_tile(mn: int, k: int, element_bits: int, major: Major) -> None:
    """Raise OperandError for a tile that no descriptor has."""
    if major not in ("K", "MN"):
        raise OperandError(f"major {major!r}: a tile is 'K' or 'MN' major")
    if element_bits == 1:
        raise OperandError("tiles of 1-bit elements are tiles of bytes: element_bits=8, and k in bytes")
    if element_bits not in (8, 16, 32):
        raise OperandError(f"elements of {element_bits} bits: wgmma reads elements of 8, 16 or 32 bits")
    if major == "MN" and element_bits != 16:
        raise OperandError(
            f"MN-major tiles have 16-bit elements (f16, bf16), not {element_bits}-bit elements: "
            f"store the tile K-major"
        )
    unit = 128 // element_bits if major == "K" else 8
    if mn < 1 or mn % 8 or k < 1 or k % unit:
        raise OperandError(f"{major}-major tiles have multiples of 8 x {unit} elements, not {mn} x {k}")


def _check_descriptor(
    descriptor: Descriptor, mn: int, k: int, size: int, major: Major, literal: bool
) -> None:
    """Refuse what PTX does not say; ``literal`` allows all but a base offset."""
    if descriptor.base_offset:
        raise NotModelled(BASE_OFFSET_MESSAGE.format(descriptor.base_offset))
    if literal:
        return
    if not is_aligned(descriptor.start_address, descriptor.swizzle):
        raise UndefinedBehavior(unaligned_message(descriptor))
    first, end = row_bytes(descriptor.start_address, descriptor.swizzle, mn, k, size, major)
    width = SWIZZLE_BYTES[descriptor.swizzle]
    if end > width:
        raise NotModelled(
            f"the tile has bytes {first}..{end - 1} of each {major}-major row, but with "
            f"{descriptor.swizzle} swizzle a row has {width}, and PTX does not say where it continues"
        )


def is_aligned(start: int, swizzle: Swizzle) -> bool:
    """Return whether a start lies in the first row of its swizzle pattern, as after steps along K."""
    return start % pattern_bytes(swizzle) < SWIZZLE_BYTES[swizzle]


def row_bytes(start: int, swizzle: Swizzle, mn: int, k: int, size: int, major: Major) -> tuple[int, int]:
    """Return the stretch ``first <= byte < end`` that a tile takes of each row; all of it without swizzle."""
    width = SWIZZLE_BYTES[swizzle]
    if swizzle == "none":
        return 0, width
    extent = k * size if major == "K" else min(mn * size, width)
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


def load_tile(
    memory: Bytes,
    descriptor: Descriptor,
    *,
    mn: int,
    k: int,
    dtype: npt.DTypeLike,
    major: Major,
    literal: bool = False,
) -> Tile:
    """Return ``(..., mn, k)`` of ``dtype``: the tile in each memory ``(..., bytes)``.

    ``dtype`` has 1, 2 or 4 bytes. Raises as tile_addresses does.
    """
    element, view = element_dtype(dtype), element_view(memory, np.dtype(dtype).itemsize)
    addresses = tile_addresses(
        descriptor,
        mn=mn,
        k=k,
        element_bits=8 * element.itemsize,
        major=major,
        memory_bytes=memory.shape[-1],
        literal=literal,
    )
    tile: Tile = view.take(addresses // element.itemsize, -1).view(element)
    return tile


def store_tile(
    memory: Bytes, descriptor: Descriptor, tile: Tile, *, major: Major, literal: bool = False
) -> None:
    """Write a tile ``(..., mn, k)`` into memories ``(..., bytes)`` where the descriptor will read it.

    One tile may go to a batch of memories. Raises as tile_addresses does, and OperandError where the
    strides put two elements at one address.
    """
    element = element_dtype(tile.dtype)
    if tile.ndim < 2:
        raise OperandError(f"a tile is an array (..., mn, k), not {tile.shape}")
    addresses = tile_addresses(
        descriptor,
        mn=tile.shape[-2],
        k=tile.shape[-1],
        element_bits=8 * element.itemsize,
        major=major,
        memory_bytes=memory.shape[-1],
        literal=literal,
    )
    if np.unique(addresses).size < addresses.size:
        raise OperandError(f"two elements of the tile share an address: {descriptor}")
    codes = np.ascontiguousarray(tile).view(f"u{element.itemsize}")
    write_elements(memory, addresses // element.itemsize, codes)


def touched_bytes(
    descriptor: Descriptor,
    *,
    mn: int,
    k: int,
    element_bits: int,
    major: Major,
    memory_bytes: int = SHARED_BYTES,
    literal: bool = False,
) -> Addresses:
    """Return ``(n, 2)``: disjoint, ascending byte ranges ``first <= address < end`` of an instruction.

    Raises as tile_addresses does.
    """
    addresses = tile_addresses(
        descriptor,
        mn=mn,
        k=k,
        element_bits=element_bits,
        major=major,
        memory_bytes=memory_bytes,
        literal=literal,
    )
    starts, size = np.unique(addresses), element_bits // 8
    gaps = np.flatnonzero(np.diff(starts) != size)
    firsts = starts[np.concatenate(([0], gaps + 1))]
    ends = starts[np.concatenate((gaps, [starts.size - 1]))] + size
    return np.stack((firsts, ends), axis=-1)


def element_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Return the dtype of a tile's elements; raises OperandError where they have not 1, 2 or 4 bytes."""
    element = np.dtype(dtype)
    if element.kind == "b":
        raise OperandError("tiles of 1-bit elements are tiles of bytes: np.packbits(…, bitorder='little')")
    if element.itemsize not in (1, 2, 4):
        raise OperandError(f"elements of dtype {element}: wgmma reads elements of 8, 16 or 32 bits")
    return element
