"""Tiles in shared memory: every address drawn is where packing puts the element."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

import warpsim
from warpsim.base.errors import NotModelled, OperandError
from warpsim.isa.descriptors.packed_tiles import canonical_image
from warpsim.isa.layouts.swizzle import SWIZZLE_BYTES
from warpsim.show.views.layouts.shared_tiles import (
    shared_tile,
    tile_document,
    tile_figure,
    tile_lines,
    tile_markup,
    tile_notes,
    tile_page,
    tile_svg,
)

F16 = warpsim.decode("wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16")
FORMS = [
    F16,
    warpsim.decode("wgmma.mma_async.sp.sync.aligned.m64n24k16.f32.tf32.tf32"),
    warpsim.decode("wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2"),
    warpsim.decode("wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc"),
]
SWIZZLES = ("none", "32B", "64B", "128B")


@pytest.mark.parametrize("major", ["K", "MN"])
@pytest.mark.parametrize("swizzle", SWIZZLES)
@pytest.mark.parametrize("operand", ["a", "b"])
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_addresses_are_where_packing_puts_elements(form, operand, swizzle, major):
    if major == "MN" and form.a.bits != 16:
        with pytest.raises(OperandError, match="MN-major tiles have 16-bit elements"):
            shared_tile(form, operand, swizzle, major)
        return
    extent = form.matrix_shape(operand)["ba".index(operand)] * form.a.bits // 8
    if major == "K" and SWIZZLE_BYTES[swizzle] < extent and swizzle != "none":
        with pytest.raises(NotModelled, match="PTX does not say where it continues"):
            shared_tile(form, operand, swizzle, major)
        return
    tile = shared_tile(form, operand, swizzle, major)
    mn, k = tile.addresses.shape
    codes = np.arange(mn * k, dtype=np.uint64).reshape(mn, k).astype(f"u{tile.size}")
    image = canonical_image(codes, major=major, swizzle=swizzle).view(f"u{tile.size}")
    assert np.array_equal(image[tile.addresses // tile.size], codes)
    rows, columns = form.matrix_shape(operand)
    for row in range(rows):
        place = (row, columns - 1) if operand == "a" else (columns - 1, row)
        byte = place[1] * form.a.bits // (8 * tile.size)
        if operand == "b":
            place, byte = (rows - 1, row % columns), (rows - 1) * form.a.bits // (8 * tile.size)
        expected = codes[place[0], byte] if operand == "a" else codes[place[1], byte]
        assert image[tile.address(*place) // tile.size] == expected


@pytest.mark.parametrize("major", ["K", "MN"])
@pytest.mark.parametrize("swizzle", SWIZZLES)
def test_boxes_are_16_bytes_of_the_tile(swizzle, major):
    tile = shared_tile(F16, "b", swizzle, major)
    found = []
    for cell in tile_figure(tile).cells:
        (row,) = cell.rows
        for offset, column in enumerate(cell.columns):
            mn, k = (row, column) if major == "K" else (column, row)
            assert tile.addresses[mn, k] == cell.address + 2 * offset
            found.append((mn, k))
        assert int(cell.text, 16) == cell.address
        assert cell.lane // 4 == cell.address % 128 // 16
    assert sorted(found) == list(np.ndindex(tile.addresses.shape))


def test_the_text():
    assert tile_lines(
        shared_tile(warpsim.decode("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"), "b", "32B")
    ) == [
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16",
        "",
        "B of m64n8k16, .f16, in shared memory, K-major, swizzle 32B: addresses of 16 bytes",
        r"n \ k |  0..7  | 8..15",
        "    0 | 0x0000 | 0x0010",
        "    1 | 0x0020 | 0x0030",
        "    2 | 0x0040 | 0x0050",
        "    3 | 0x0060 | 0x0070",
        "    4 | 0x0090 | 0x0080",
        "    5 | 0x00b0 | 0x00a0",
        "    6 | 0x00d0 | 0x00c0",
        "    7 | 0x00f0 | 0x00e0",
        "",
        "descriptor at address 0: 0xc000001000010000 (start 0x0000, LBO 16, SBO 256, swizzle 32B)",
        "address bit 4 ^= bit 7, PTX ISA 9.1, section 9.7.15.5.1.2.1.3",
    ]


def test_other_renderings():
    tile = shared_tile(F16, "a", "128B")
    assert len(list(tile_figure(tile).cells)) == 64 * 8
    boxes = [box for box in ET.fromstring(tile_svg(tile)).iter() if "data-lane" in box.attrib]
    assert len(boxes) == 64 * 8
    page = tile_page(tile)
    assert "bits 6:4 ^= bits 9:7" in page
    assert "bytes 0x0010..0x001f: row 0, column 8..15" in page
    assert len(tile_markup(tile, 60)) > len(tile_markup(tile))
    assert tile_document(tile)["addresses"] == tile.addresses.tolist()
    assert tile_notes(shared_tile(FORMS[3], "b"))[-1].startswith("a column is a byte of eight elements")


def test_refusals():
    with pytest.raises(OperandError, match="does not lie in shared memory: wgmma's a and b do"):
        shared_tile(F16, "d")
    dense = warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    with pytest.raises(OperandError, match="does not lie in shared memory"):
        shared_tile(dense, "b")
    with pytest.raises(OperandError, match=r"B\[16,0\]: .* has 16 rows, 16 columns"):
        shared_tile(F16, "b").address(16, 0)
