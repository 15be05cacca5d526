"""``warpsim desc --map``: tensor maps explained, and where their boxes land."""

from __future__ import annotations

import json

import click
import numpy as np
import pytest

import warpsim
from tests.helpers.command_runner import CliRunner
from tests.helpers.slow_boxes import moved
from warpsim.isa.descriptors.matrix_descriptor import Descriptor
from warpsim.isa.descriptors.tile_addresses import tile_addresses
from warpsim.isa.descriptors.tile_shape import TileShape
from warpsim.show.cli import cli

TEXT = """\
tensor map, tile: 100 x 96 elements of f16 at 0x0
  dimension          elements    bytes apart   box  step  moved
  0, innermost             96              2    32     1     32
  1                       100            192     8     2      4
  swizzle       64B: bits 5:4 of an address ^= bits 8:7; repeats every 512 bytes
  outside       reads as NaN (0x7ff7 in every 16 bits, inferred)
  interleave    none; L2 promotion none
a box has 256 bytes, which its mbarrier expects
  shared memory   the row and the 16-byte cell of it in each 16 bytes
  0x00080            0.1     0.0     0.3     0.2     1.1     1.0     1.3     1.2
  0x00100            2.2     2.3     2.0     2.1     3.2     3.3     3.0     3.1
  the pattern does not begin with the box: 0x80 is not a multiple of 512
no wgmma descriptor reads the whole box as one tile
"""


def run(*arguments):
    return CliRunner().invoke(cli, ["desc", *map(str, arguments)], standalone_mode=False)


def test_what_is_said():
    given = "f16:100x96:box=8x32:swizzle=64B:fill=nan:element_strides=2x1"
    result = run("--map", given, "--start", "0x80")
    assert result.return_value == 0, result.output
    assert result.output == TEXT


@pytest.mark.parametrize("swizzle", ["none", "32B", "64B", "128B"])
def test_descriptors_read_the_box(swizzle):
    """Every cell is where the manual's tables have it, and every descriptor reads it there."""
    span = 16 if swizzle == "none" else int(swizzle[:-1])
    text = f"bf16:512x512:box=128x{span // 2}:swizzle={swizzle}"
    document = json.loads(run("--map", text, "--start", "8192", "--json").output)
    assert document["bytes"] == 128 * span
    for line in document["cells"]:
        for place, cell in enumerate(line["cells"]):
            if cell is not None:
                plain = 8192 + cell[0] * span + cell[1] * 16
                assert moved(plain, swizzle) == line["address"] + 16 * place
    assert {one["major"] for one in document["descriptors"]} >= {"K"}
    for one in document["descriptors"]:
        descriptor = Descriptor.decode(one["word"])
        shape = TileShape(mn=one["mn"], k=one["k"], element_bits=16, major=one["major"])
        addresses = tile_addresses(descriptor, shape, literal=True)
        rows = addresses if one["major"] == "K" else addresses.T
        for row, column in ((0, 0), (3, 1), (127, span // 2 - 1)):
            assert rows[row, column] == moved(8192 + row * span + column * 2, swizzle)


def test_a_file_of_128_bytes(tmp_path):
    buffer = warpsim.Device("sm_90a").array(np.zeros((64, 64), np.float32))
    (tmp_path / "map").write_bytes(bytes(warpsim.tensor_map(buffer, box=(8, 32), swizzle="128B")))
    result = run("--map", tmp_path / "map")
    assert f"64 x 64 elements of f32 at {buffer.address:#x}" in result.output
    (tmp_path / "map").write_bytes(bytes(128))
    result = run("--map", tmp_path / "map")
    assert result.return_value == 3
    assert "no tensor map: 00 00 00 00 00 00 00 00 is not how" in result.stderr


def test_images_and_what_is_not_modelled():
    result = run("--map", "u8:8x30x28x64:lower=-1x-2:upper=-1x0:channels=64:pixels=128:swizzle=64B")
    assert "128 of 64 channels; the filter's base visits W -2 to 27, H -1 to 28" in result.output
    result = run("--map", "f16:4x8x64:box=1x8x64:interleave=16B")
    assert "where a box lands is not modelled: a tensor with interleave 16B" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--map", "f16:64x64"), "expected tensor_map:INDEX-or-ARRAY:box=64x128"),
        (("--map", "f16:box=64"), "expected TYPE:SHAPE:box=64x64 or a file"),
        (("--map", "half:64x64:box=8x64"), "no type 'half'; there are"),
        (("--map", "f16:64x64:box=8x64", "--lbo", "16"), "--map goes with --start and --json only"),
        (("0x0", "--map", "f16:64x64:box=8x64"), "--map goes with --start and --json only"),
    ],
)
def test_what_is_not_understood(arguments, message):
    result = run(*arguments)
    assert isinstance(result.exception, click.UsageError)
    assert message in result.exception.message


def test_limits_are_named():
    result = run("--map", "f16:64x64:box=8x12")
    assert result.return_value == 3
    assert "has rows of 24 bytes: expected a multiple of 16 bytes" in result.stderr
    assert (
        "boxes of tensors begin at multiples of 128"
        in run("--map", "u8:64x64:box=8x16", "--start", 64).stderr
    )
