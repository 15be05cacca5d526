"""Where the elements of a tensor's box lie, found slowly: coordinates step one by one, swizzles are tables.

``walk`` counts as the manual's text does and knows swizzles as its tables show them; it shares nothing with
the package. PTX ISA 9.1, sections 5.5.3, 5.5.4 and 5.5.7.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from warpsim.isa.tensor_maps.tensor_map import TensorMap

Steps = Iterable[tuple[int, int | None]]  # bytes from the box's start, global address or None

TABLES = {  # line of 128 bytes -> which 16-byte cell lies at each place of it (PTX ISA 9.1, section 5.5.7)
    "none": ["01234567"],
    "32B": ["01234567", "10325476"],
    "96B": ["01234567", "10325476"],
    "64B": ["01234567", "10325476", "23016745", "32107654"],
    "128B": [
        *("01234567", "10325476", "23016745", "32107654"),
        *("45670123", "54761032", "67452301", "76543210"),
    ],
    "128B_ATOM_32B": ["01234567", "23016745", "45670123", "67452301"],
    "128B_ATOM_32B_FLIP_8B": ["01234567", "23016745", "45670123", "67452301"],
    "128B_ATOM_64B": ["01234567", "45670123"],
}
BITS = {"u8": 8, "f16": 16, "f32": 32, "f64": 64, "bf16": 16, "u16": 16, "s32": 32}


def moved(address: int, swizzle: str) -> int:
    """Where the tables put the byte of an address."""
    line, byte = divmod(address, 128)
    row = TABLES[swizzle][line % len(TABLES[swizzle])]
    place = row.index(str(byte // 16))
    inside = byte % 16
    if swizzle.endswith("FLIP_8B") and line % 2:
        inside = (inside + 8) % 16
    return line * 128 + place * 16 + inside


def walk(map_: TensorMap, coordinates: tuple[int, ...]) -> Iterator[tuple[int, int | None]]:
    """The steps of tile mode, one an element."""
    size, place = BITS[map_.element] // 8, 0
    extents = []
    for dimension in range(map_.rank):
        step = 1 if dimension == 0 else map_.element_strides[dimension]
        extents.append(range(coordinates[dimension], coordinates[dimension] + map_.box[dimension], step))
    for index in product(*reversed(extents)):
        yield place, address_of(map_, index[::-1], size)
        place += size


def address_of(map_: TensorMap, index: tuple[int, ...], size: int) -> int | None:
    """The global address of an element by its coordinates, None outside of the tensor."""
    if any(not 0 <= one < limit for one, limit in zip(index, map_.sizes, strict=True)):
        return None
    return map_.address + sum(a * b for a, b in zip(index, (size, *map_.strides), strict=True))


def columns(map_: TensorMap, start: tuple[int, ...], offsets: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The coordinates of every pixel of an im2col box, without C."""
    assert map_.im2col is not None
    lower, upper = map_.im2col.lower, map_.im2col.upper
    position = list(start[1:])
    for _ in range(map_.im2col.pixels):
        yield (*(a + b for a, b in zip(position[:-1], offsets, strict=True)), position[-1])
        for place in range(len(lower)):
            position[place] += map_.element_strides[place + 1]
            if position[place] <= map_.sizes[place + 1] - 1 + upper[place]:
                break
            position[place] = lower[place]
        else:
            position[-1] += 1


def pixel_steps(map_: TensorMap, start: tuple[int, ...], offsets: tuple[int, ...]) -> Steps:
    """The steps of im2col, one an element."""
    assert map_.im2col is not None
    size, place = BITS[map_.element] // 8, 0
    for pixel in columns(map_, start, offsets):
        for channel in range(start[0], start[0] + map_.im2col.channels):
            yield place, address_of(map_, (channel, *pixel), size)
            place += size


def row_steps(map_: TensorMap, column: int, rows: Iterable[int]) -> Steps:
    """The steps of four rows, one an element."""
    size, place = BITS[map_.element] // 8, 0
    for row in rows:
        for index in range(column, column + map_.box[0]):
            yield place, address_of(map_, (index, row), size)
            place += size


def expected(map_: TensorMap, steps: Steps, start: int) -> dict[int, int | None]:
    """Shared address -> global address of every byte, None for those outside of the tensor."""
    found = dict[int, int | None]()
    size = BITS[map_.element] // 8
    for place, address in steps:
        for byte in range(size):
            where = moved(start + place + byte, map_.swizzle)
            found[where] = None if address is None else address + byte
    return found
