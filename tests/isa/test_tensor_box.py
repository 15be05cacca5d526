"""Boxes of tensors: every element and every byte, against a walk that counts as the manual's text does.

``walk`` steps through coordinates one by one and knows swizzles as the manual's tables; it shares nothing
with the package.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from warpsim.errors import NotModelled, OperandError, UndefinedBehavior
from warpsim.isa.descriptor import Descriptor, tile_addresses
from warpsim.isa.swizzle import tensor_swizzled
from warpsim.isa.tensor_box import box_pieces, row_pieces
from warpsim.isa.tensor_map import SWIZZLES, Im2col, TensorMap

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
BITS = {"u8": 8, "f16": 16, "f32": 32, "f64": 64}


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
    """(bytes from the box's start, global address or None) of every element in tile mode."""
    size, place = BITS[map_.element] // 8, 0
    extents = []
    for dimension in range(map_.rank):
        step = 1 if dimension == 0 else map_.element_strides[dimension]
        extents.append(range(coordinates[dimension], coordinates[dimension] + map_.box[dimension], step))
    for index in product(*reversed(extents)):
        yield place, _address(map_, index[::-1], size)
        place += size


def _address(map_: TensorMap, index: tuple[int, ...], size: int) -> int | None:
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


def elements(map_: TensorMap, pieces, start: int) -> dict[int, int | None]:
    """Shared address -> global address of every byte of pieces."""
    found = {}
    for address, inside, place in zip(
        pieces.addresses.tolist(), pieces.inside.tolist(), pieces.landing(start, map_).tolist(), strict=True
    ):
        for byte in range(pieces.size):
            assert place + byte not in found
            found[place + byte] = address + byte if inside else None
    return found


def expected(map_: TensorMap, steps, start: int) -> dict[int, int | None]:
    size, found = BITS[map_.element] // 8, {}
    for place, address in steps:
        for byte in range(size):
            where = moved(start + place + byte, map_.swizzle)
            found[where] = None if address is None else address + byte
    return found


@pytest.mark.parametrize("swizzle", SWIZZLES)
def test_swizzles_are_the_manuals_tables(swizzle) -> None:
    addresses = np.arange(4096)
    found = tensor_swizzled(addresses, swizzle).tolist()
    assert found == [moved(address, swizzle) for address in range(4096)]


def _tiled(rank: int, element: str, swizzle: str, seed: int) -> tuple[TensorMap, list[tuple[int, ...]]]:
    rng = np.random.default_rng([rank, seed, *map(ord, element + swizzle)])
    size = BITS[element] // 8
    row = int(rng.choice([16, 32, 64, 128])) if swizzle == "none" else int(rng.choice([16, 32]))
    box = (row // size, *(int(one) for one in rng.integers(1, 6, rank - 1)))
    sizes = tuple(int(one) for one in rng.integers(1, 40, rank))
    strides, least = [], sizes[0] * size
    for extent in sizes[1:]:
        strides.append(-(-least // 16) * 16 + 16 * int(rng.integers(0, 3)))
        least = strides[-1] * extent
    map_ = TensorMap(
        address=4096 + 16 * int(rng.integers(0, 9)),
        element=element,
        sizes=sizes,
        strides=tuple(strides),
        box=box,
        element_strides=tuple(int(one) for one in rng.integers(1, 4, rank)),
        swizzle=swizzle,  # type: ignore[arg-type]
    )
    starts = [tuple(int(one) for one in rng.integers(-5, 40, rank)) for _ in range(4)]
    return map_, [(0,) * rank, (-1,) * rank, (-(2**31),) * rank, (2**31 - 1,) * rank, *starts]


@pytest.mark.parametrize("rank", range(1, 6))
@pytest.mark.parametrize("swizzle", SWIZZLES)
@pytest.mark.parametrize("element", BITS)
def test_boxes(rank: int, swizzle: str, element: str) -> None:
    map_, starts = _tiled(rank, element, swizzle, 0)
    for coordinates in starts:
        for start in (0, 128 * 7):
            wanted = expected(map_, walk(map_, coordinates), start)
            assert elements(map_, box_pieces(map_, coordinates), start) == wanted
            assert elements(map_, box_pieces(map_, coordinates, element=True), start) == wanted


def test_bytes_of_a_box_count_what_is_outside() -> None:
    map_ = TensorMap(address=0, element="f16", sizes=(64, 8), strides=(128,), box=(64, 8), swizzle="128B")
    assert box_pieces(map_, (0, 0)).bytes == box_pieces(map_, (40, 7)).bytes == 1024
    assert box_pieces(map_, (0, 0)).size == 16


@pytest.mark.parametrize("swizzle", ["32B", "64B", "128B"])
@pytest.mark.parametrize("rows", [8, 64, 128, 256])
def test_a_box_lands_where_wgmma_reads_it(swizzle, rows: int) -> None:
    """K-major: rows of the box are rows of the tile; MN-major: they are columns."""
    span = int(swizzle[:-1])
    wide = span // 2
    map_ = TensorMap(
        address=0, element="f16", sizes=(wide, rows), strides=(512,), box=(wide, rows), swizzle=swizzle
    )
    start = 8 * span * 3
    landing = box_pieces(map_, (0, 0), element=True).landing(start, map_).reshape(rows, wide)
    tile = Descriptor(start_address=start, stride_byte_offset=8 * span, swizzle=swizzle)
    k_major = tile_addresses(tile, mn=rows, k=wide, element_bits=16, major="K")
    np.testing.assert_array_equal(landing, k_major)
    mn_major = tile_addresses(tile, mn=wide, k=rows, element_bits=16, major="MN")
    np.testing.assert_array_equal(landing.T, mn_major)


# --- four rows -------------------------------------------------------------------------------------


@pytest.mark.parametrize("swizzle", ["none", "128B", "128B_ATOM_64B"])
def test_four_rows(swizzle) -> None:
    map_ = TensorMap(address=64, element="f32", sizes=(50, 20), strides=(208,), box=(32, 1), swizzle=swizzle)
    for rows in ((2, 5, 0, 9), (19, 20, -1, 3), (7, 7, 7, 7)):
        steps = []
        for turn, row in enumerate(rows):
            steps += [(turn * 128 + place, one) for place, one in walk(map_, (24, row))]
        assert elements(map_, row_pieces(map_, (24, *rows)), 256) == expected(map_, steps, 256)
    with pytest.raises(OperandError, match="take two dimensions and a box of one row"):
        row_pieces(replace(map_, box=(32, 2)), (0, 1, 2, 3, 4))


# --- im2col ----------------------------------------------------------------------------------------

IMAGES = [  # sizes (C, W, H, D, N), lower, upper, element strides, pixels, start, offsets
    ((16, 14, 9, 3), (-1, -1), (-1, -1), (1, 1, 1, 1), 64, (0, 4, 7, 1), (0, 0)),
    ((16, 14, 9, 3), (0, 0), (-2, -2), (1, 1, 1, 1), 64, (8, 4, 6, 2), (2, 2)),
    ((16, 14, 8, 3), (-1, -1), (-1, -1), (1, 2, 2, 1), 32, (0, 5, 6, 0), (1, 1)),
    ((24, 7, 4), (-2,), (1,), (1, 3, 1), 40, (16, -2, 1), (3,)),
    ((16, 5, 4, 3, 2), (-1, 0, -1), (0, 1, -1), (1, 2, 1, 2, 1), 100, (0, -1, 2, 0, 0), (1, 0, 2)),
]


@pytest.mark.parametrize(("sizes", "lower", "upper", "steps", "pixels", "start", "offsets"), IMAGES)
def test_columns_of_pixels(sizes, lower, upper, steps, pixels: int, start, offsets) -> None:
    strides = tuple(int(np.prod(sizes[:place])) * 2 for place in range(1, len(sizes)))
    map_ = TensorMap(
        address=1 << 20,
        element="f16",
        sizes=sizes,
        strides=strides,
        element_strides=steps,
        im2col=Im2col(lower=lower, upper=upper, channels=16, pixels=pixels),
        swizzle="32B",
    )
    wanted, place = [], 0
    for pixel in columns(map_, start, offsets):
        for channel in range(start[0], start[0] + 16):
            wanted.append((place, _address(map_, (channel, *pixel), 2)))
            place += 2
    found = elements(map_, box_pieces(map_, start, offsets=offsets), 512)
    assert found == expected(map_, wanted, 512)


def test_a_filter_that_starts_outside_of_its_box() -> None:
    map_ = TensorMap(
        address=0,
        element="f16",
        sizes=(16, 8, 4),
        strides=(32, 256),
        im2col=Im2col(lower=(-1,), upper=(-1,), channels=16, pixels=8),
    )
    with pytest.raises(UndefinedBehavior, match=r"coordinate 7 along W is outside the bounding box, -1 to 6"):
        box_pieces(map_, (0, 7, 0))
    with pytest.raises(UndefinedBehavior, match=r"offset 65536 of im2col: .* it is 0 to 65535"):
        box_pieces(map_, (0, 0, 0), offsets=(65536,))


# --- packed elements -------------------------------------------------------------------------------


def test_packed_elements() -> None:
    """b4x16 as it is; with gaps, 16 elements of 8 or 12 bytes take 16."""
    plain = TensorMap(address=0, element="b4x16", sizes=(96, 3), strides=(48,), box=(64, 2))
    pieces = box_pieces(plain, (2, 1))
    assert (pieces.size, pieces.bytes, pieces.addresses[:2].tolist()) == (1, 64, [49, 50])
    for element, size in (("b4x16_p64", 8), ("b6x16_p32", 12)):
        padded = TensorMap(address=0, element=element, sizes=(256, 3), strides=(192,), box=(128, 2))
        pieces = box_pieces(padded, (128, 1))
        assert (pieces.size, pieces.pitch, pieces.bytes) == (size, 16, 256)
        assert pieces.addresses.tolist() == [
            192 * row + size * (8 + group) for row in (1, 2) for group in range(8)
        ]
        with pytest.raises(UndefinedBehavior, match=r"with b.x16_p.. it is a multiple of 128"):
            box_pieces(padded, (64, 0))


def test_what_nobody_has_established() -> None:
    map_ = TensorMap(
        address=0, element="f16", sizes=(64, 8, 8), strides=(16, 128), box=(8, 2, 2), interleave="16B"
    )
    with pytest.raises(NotModelled, match="no manual says which of its strides"):
        box_pieces(map_, (0, 0, 0))
