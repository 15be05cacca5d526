"""``warpsim desc``: descriptors explained, their bytes, and what is wrong with them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.helpers.command_runner import CliRunner
from warpsim.isa.descriptors.packed_tiles import canonical_descriptor
from warpsim.isa.descriptors.tile_addresses import store_tile
from warpsim.isa.descriptors.tile_shape import TileShape
from warpsim.show.cli import cli

WORD = 0xC000001000010040  # start 1024, SBO 256, 32B swizzle


def run(*arguments):
    return CliRunner().invoke(cli, ["desc", *map(str, arguments)], standalone_mode=False)


@pytest.fixture
def files(tmp_path):
    tile = np.random.default_rng(0).standard_normal((64, 16)).astype(np.float16)
    descriptor = canonical_descriptor(1024, TileShape(mn=64, k=16, element_bits=16, major="K"), swizzle="32B")
    memory = np.zeros(8192, np.uint8)
    store_tile(memory, descriptor, tile, major="K")
    np.save(tmp_path / "memory.npy", memory)
    np.save(tmp_path / "tile.npy", tile)
    assert descriptor.encode() == WORD
    return "--shared", tmp_path / "memory.npy", "--tile", tmp_path / "tile.npy"


def test_a_word_is_explained_field_by_field():
    result = run(hex(WORD))
    assert result.return_value == 0
    assert result.output.startswith("matrix descriptor 0xc000001000010040, read K-major\n")
    assert "bits 45:32  stride dimension byte offset   0x0010  0x00100 (256 bytes)" in result.output
    assert "rows of 32 bytes; bit 4 of an address ^= bit 7; repeats every 256 bytes" in result.output


def test_fields_in_bytes_make_a_word():
    result = run("--start", 1024, "--lbo", 16, "--sbo", "0x100", "--swizzle", "32B", "--json")
    assert json.loads(result.output)["word"] == WORD


def test_the_bytes_of_a_tile_are_listed():
    result = run(hex(WORD), "--touches", 8, 16, 16)
    assert result.output.endswith("reads 256 bytes:\n  0x00400..0x004ff (256 bytes)\n")


def test_a_tile_that_no_descriptor_addresses_is_refused_before_it_is_computed():
    result = run(hex(WORD), "--touches", 1 << 31, 16, 16)
    assert result.return_value == 3
    assert "has 68,719,476,736 bytes, and a descriptor addresses 262,144" in result.output


def test_the_right_descriptor_reads_the_tile(files):
    result = run(hex(WORD), *files)
    assert result.return_value == 0
    assert result.output.endswith("the descriptor reads the expected tile\n")


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        (0x8000001000010040, "the swizzle is 64B where 32B fits"),
        (
            0xC000010000010400,
            "SBO is 4096 where 256 fits (in bytes, without >> 4); and the start address is",
        ),
    ],
)
def test_a_wrong_descriptor_is_told_what_to_be(files, word, sentence):
    result = run(hex(word), *files)
    assert result.return_value == 1
    assert "the descriptor does not read the expected tile" in result.output
    assert sentence in result.output
    assert f"use {WORD:#018x}" in result.output


def test_a_tile_that_is_not_there_is_explained_by_no_mistake(files, tmp_path):
    np.save(tmp_path / "other.npy", np.load(files[3]) + np.float16(1))
    result = run(hex(WORD), "--shared", files[1], "--tile", tmp_path / "other.npy")
    assert result.return_value == 1
    assert result.output.endswith("expected tile\n  no change of its fields explains it\n")


@pytest.mark.parametrize("arguments", [(), (hex(WORD), "--start", 0), (hex(WORD), "--shared", "x.npy")])
def test_wrong_usage_is_refused(arguments):
    result = CliRunner().invoke(cli, ["desc", *map(str, arguments)])
    assert result.exit_code == 2


def test_a_file_that_is_no_array_is_refused(tmp_path):
    (tmp_path / "bad.npy").write_bytes(b"not an array")
    result = run(hex(WORD), "--shared", tmp_path / "bad.npy", "--tile", tmp_path / "bad.npy")
    assert result.return_value == 3
    assert "cannot be read as an .npy file" in result.stderr


def test_memory_and_tile_have_their_shapes(files, tmp_path):
    result = run(hex(WORD), "--shared", files[3], "--tile", files[1])
    assert result.return_value == 3


def test_words_of_tcgen05_are_explained_and_made():
    result = run("0x4000404000010800")
    assert result.return_value == 0
    assert result.output.startswith("shared-memory descriptor of tcgen05 0x4000404000010800, read K-major\n")
    made = run("--tcgen05", "--start", "0x8000", "--lbo", 16, "--sbo", 1024, "--swizzle", "128B", "--json")
    assert json.loads(made.output)["word"] == 0x4000404000010800
    result = run("--kind", "f16", "0x08100010")
    assert "bits 28:24  M                  0x08  128" in result.output
    made = run("--kind", "f16", "--field", "m=128", "--field", "n=64", "--field", "d_type=1", "--json")
    assert json.loads(made.output)["word"] == 0x08100010


def test_a_word_of_hopper_is_named():
    assert run("--tcgen05", "0x4000004000010800").return_value == 3
    assert "looks like a descriptor of wgmma" in run("--tcgen05", "0x4000004000010800").stderr
    assert run("--kind", "f16", "0x08100050").return_value == 3
    assert run("--kind", "f16", "--field", "m=130").return_value == 3


@pytest.mark.parametrize(
    "arguments", [("--kind", "f16"), ("--field", "m=1"), ("--kind", "f16", "--field", "m")]
)
def test_fields_of_tcgen05_that_do_not_fit(arguments):
    result = CliRunner().invoke(cli, ["desc", *arguments])
    assert result.exit_code == 2
