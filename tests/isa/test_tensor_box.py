"""Boxes of tensors: every element and every byte, against a walk that counts as the manual's text does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.helpers.slow_boxes import BITS, expected, moved, pixel_steps, row_steps, walk
from warpsim.base.errors import NotModelled, OperandError, UndefinedBehavior
from warpsim.isa.descriptors.matrix_descriptor import Descriptor
from warpsim.isa.descriptors.tile_addresses import tile_addresses
from warpsim.isa.descriptors.tile_shape import TileShape
from warpsim.isa.layouts.swizzle import tensor_swizzled
from warpsim.isa.tensor_maps.tensor_box import box_pieces, row_pieces, runs_of_pieces
from warpsim.isa.tensor_maps.tensor_fields import SWIZZLES, Im2col
from warpsim.isa.tensor_maps.tensor_map import TensorMap


def elements(map_: TensorMap, pieces, start: int) -> dict[int, int | None]:
    """Shared address -> global address of every byte of pieces."""
    found = {}
    for address, inside, place in zip(
        pieces.addresses.tolist(),
        pieces.inside.tolist(),
        pieces.landing(start, map_).places.tolist(),
        strict=True,
    ):
        for byte in range(pieces.size):
            assert place + byte not in found
            found[place + byte] = address + byte if inside else None
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
@pytest.mark.parametrize("element", ["u8", "f16", "f32", "f64"])
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


def test_boxes_of_a_map_land_alike_wherever_they_come_from() -> None:
    """More places than are kept; runs of bytes lie where pieces do, joined where they meet."""
    map_ = TensorMap(address=0, element="f16", sizes=(64, 32), strides=(128,), box=(32, 8), swizzle="64B")
    here, there = box_pieces(map_, (0, 0)), box_pieces(map_, (32, 24))
    starts = [128 * place for place in range(100)]
    for start in (*starts, *starts[::-1]):
        landing = here.landing(start, map_)
        assert landing.places.tolist() == tensor_swizzled(here.places + start, "64B").tolist()
        assert there.landing(start, map_).places.tolist() == landing.places.tolist()
        assert landing.runs.tolist() == [[start, start + 512]]
        assert landing.end == start + 512
    assert here.landing(0, map_) is there.landing(0, map_)
    assert here.addresses.tolist() != there.addresses.tolist()


def test_runs_of_pieces_are_joined_where_they_meet() -> None:
    places = np.array([96, 0, 16, 64, 48])
    assert runs_of_pieces(places, 16).tolist() == [[0, 32], [48, 80], [96, 112]]
    assert runs_of_pieces(places, 8).tolist() == [[at, at + 8] for at in (0, 16, 48, 64, 96)]
    assert runs_of_pieces(places[:0], 16).shape == (0, 2)


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
    landing = box_pieces(map_, (0, 0), element=True).landing(start, map_).places.reshape(rows, wide)
    tile = Descriptor(start_address=start, stride_byte_offset=8 * span, swizzle=swizzle)
    k_major = tile_addresses(tile, TileShape(mn=rows, k=wide, element_bits=16, major="K"))
    np.testing.assert_array_equal(landing, k_major)
    mn_major = tile_addresses(tile, TileShape(mn=wide, k=rows, element_bits=16, major="MN"))
    np.testing.assert_array_equal(landing.T, mn_major)


# --- four rows -------------------------------------------------------------------------------------


@pytest.mark.parametrize("swizzle", ["none", "128B", "128B_ATOM_64B"])
def test_four_rows(swizzle) -> None:
    map_ = TensorMap(address=64, element="f32", sizes=(50, 20), strides=(208,), box=(32, 1), swizzle=swizzle)
    for rows in ((2, 5, 0, 9), (19, 20, -1, 3), (7, 7, 7, 7)):
        steps = row_steps(map_, 24, rows)
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
    found = elements(map_, box_pieces(map_, start, offsets=offsets), 512)
    assert found == expected(map_, pixel_steps(map_, start, offsets), 512)


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
