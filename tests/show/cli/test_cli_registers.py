"""``warpsim unpack``, ``pack`` and ``compress``: every file they read and write, and what they refuse."""

from __future__ import annotations

import json

import ml_dtypes
import numpy as np
import pytest

import warpsim
from tests.helpers.command_runner import CliRunner
from warpsim.show.cli import cli
from warpsim.workbench.inputs.register_text import word_lines

SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
DENSE = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
S8 = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
RNG = np.random.default_rng(0)
A = warpsim.prune(RNG.standard_normal((16, 32)).astype(np.float16), SPARSE)
VALUES, INDICES = warpsim.compress(A, SPARSE)
REGISTERS = {"a": warpsim.pack(SPARSE, "a", VALUES), "e": warpsim.pack_metadata(SPARSE, INDICES, 1)}
B = RNG.standard_normal((16, 8)).astype(ml_dtypes.bfloat16)


def run(*arguments, stdin=None):
    return CliRunner().invoke(cli, [*map(str, arguments)], standalone_mode=False, input=stdin)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("A.npy", A)
    np.savez("regs.npz", **REGISTERS)
    (tmp_path / "dump.txt").write_text("\n".join(word_lines(**REGISTERS)))
    return tmp_path


# --- compress ----------------------------------------------------------------------------------------


def test_compress_prints_registers_of_a_and_metadata(folder):
    result = run("compress", SPARSE, "A.npy", "--selector", 1)
    assert result.return_value == 0
    assert result.output.splitlines() == list(word_lines(**REGISTERS))


@pytest.mark.parametrize("source", ["A.npy", "A.npz", "A.npz:A", "codes.npy", "A.txt", "values.txt", "-"])
def test_compress_reads_every_sort_of_file(folder, source):
    np.savez("A.npz", A=A, other=A)
    np.save("codes.npy", A.view(np.uint16))
    (folder / "A.txt").write_text("\n".join(" ".join(map(hex, row)) for row in A.view(np.uint16).tolist()))
    values = "\n".join(" ".join(map(repr, row)) for row in A.astype(float).tolist())
    (folder / "values.txt").write_text(values)
    result = run("compress", SPARSE, source, "-o", "out.npz", stdin=values)
    assert result.return_value == 0, result.output
    written = np.load("out.npz")
    assert set(written) == {"a", "e"}
    assert np.array_equal(written["a"], REGISTERS["a"])
    assert np.array_equal(written["e"], warpsim.pack_metadata(SPARSE, INDICES, 0))


def test_compress_gives_stored_values_and_indices(folder):
    assert run("compress", SPARSE, "A.npy", "--stored", "-o", "stored.npz").return_value == 0
    written = np.load("stored.npz")
    assert written["values"].dtype == np.float16
    assert np.array_equal(written["values"], VALUES)
    assert np.array_equal(written["indices"], INDICES)
    document = json.loads(run("compress", SPARSE, "A.npy", "--stored", "--json").output)
    assert document["indices"] == INDICES.tolist()
    assert document["values"] == VALUES.astype(float).tolist()


def test_compress_json_has_words(folder):
    document = json.loads(run("compress", SPARSE, "A.npy", "--selector", 1, "--json").output)
    words = np.vectorize(lambda word: int(word, 16))(document["registers"]["e"])
    assert np.array_equal(words, REGISTERS["e"])


def test_compress_may_prune_first(folder):
    full = RNG.standard_normal((16, 32)).astype(np.float16)
    np.save("full.npy", full)
    result = run("compress", SPARSE, "full.npy")
    assert result.return_value == 3
    assert "full.npy: error: " in result.stderr
    assert run("compress", SPARSE, "full.npy", "--prune", "-o", "x.npz").return_value == 0
    values, _ = warpsim.compress(warpsim.prune(full, SPARSE), SPARSE)
    assert np.array_equal(np.load("x.npz")["a"], warpsim.pack(SPARSE, "a", values))


# --- unpack ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["regs.npz", "regs.npz:a", "a.npy", "dump.txt", "-"])
def test_unpack_reads_every_sort_of_file(folder, source):
    np.save("a.npy", REGISTERS["a"])
    stdin = (folder / "dump.txt").read_text()
    assert run("unpack", SPARSE, "a", source, "-o", "out.npy", stdin=stdin).return_value == 0
    assert np.array_equal(np.load("out.npy"), VALUES)


def test_unpack_with_metadata_gives_logical_a(folder):
    result = run("unpack", SPARSE, "a", "dump.txt", "--e", "dump.txt", "--selector", 1, "-o", "out.npy")
    assert result.return_value == 0
    assert np.array_equal(np.load("out.npy"), A)


def test_unpack_metadata_gives_indices(folder):
    assert run("unpack", SPARSE, "e", "dump.txt", "--selector", 1, "-o", "i.npy").return_value == 0
    assert np.array_equal(np.load("i.npy"), INDICES)
    document = json.loads(run("unpack", SPARSE, "e", "dump.txt", "--selector", 1, "--json").output)
    assert document["indices"] == INDICES.tolist()
    assert run("unpack", SPARSE, "e", "dump.txt", "--selector", 1).output.splitlines()[1].split() == [
        "0",
        *map(str, INDICES[0]),
    ]


def test_unpack_prints_values_or_codes(folder):
    text = run("unpack", SPARSE, "a", "dump.txt").output.splitlines()
    assert text[1].split()[1] == f"{float(VALUES[0, 0]):.6g}"
    codes = run("unpack", SPARSE, "a", "dump.txt", "--codes").output.splitlines()
    assert codes[0].split()[0] == f"{VALUES.view(np.uint16)[0, 0]:#06x}"
    document = json.loads(run("unpack", SPARSE, "a", "dump.txt", "--json").output)
    assert document["values"] == VALUES.astype(float).tolist()
    assert document["codes"][0][0] == codes[0].split()[0]


def test_json_has_strings_for_what_is_no_number(folder):
    words = warpsim.pack(DENSE, "c", np.full((16, 8), np.nan, np.float32))
    np.save("c.npy", words)
    assert json.loads(run("unpack", DENSE, "c", "c.npy", "--json").output)["values"][0][0] == "nan"


def test_formats_that_numpy_does_not_have_are_written_as_codes(folder):
    np.save("b.npy", warpsim.pack(DENSE, "b", B))
    assert run("unpack", DENSE, "b", "b.npy", "-o", "B.npy").return_value == 0
    assert np.array_equal(np.load("B.npy"), B.view(np.uint16))
    assert run("pack", DENSE, "b", "B.npy", "-o", "again.npy").return_value == 0
    assert np.array_equal(np.load("again.npy"), np.load("b.npy"))


def test_tiles_are_told_apart(folder):
    tiles = warpsim.pack(S8, "b", RNG.integers(-128, 128, (2, 32, 8)).astype(np.int8))
    np.save("b.npy", tiles)
    text = run("unpack", S8, "b", "b.npy").output
    assert [line for line in text.splitlines() if "tile" in line] == ["# tile 0", "# tile 1"]
    assert json.loads(run("unpack", S8, "b", "b.npy", "--json").output)["values"][1] == (
        warpsim.unpack(S8, "b", tiles)[1].tolist()
    )


# --- pack --------------------------------------------------------------------------------------------


def test_pack_is_the_inverse(folder):
    for name, operand in (("stored.txt", "a"), ("i.txt", "e")):
        assert run("unpack", SPARSE, operand, "dump.txt", "--selector", 1, "-o", name).return_value == 0
        result = run("pack", SPARSE, operand, name, "--selector", 1)
        assert result.output.splitlines() == list(word_lines(**{operand: REGISTERS[operand]}))


def test_pack_takes_values_that_the_format_has(folder):
    np.save("B.npy", B.astype(np.float32))
    assert run("pack", DENSE, "b", "B.npy", "-o", "b.npy").return_value == 0
    assert np.array_equal(np.load("b.npy"), warpsim.pack(DENSE, "b", B))
    np.save("B.npy", np.full((16, 8), 0.1))
    result = run("pack", DENSE, "b", "B.npy")
    assert result.return_value == 3
    assert result.stderr == "B.npy: error: B[0, 0] is 0.1, which bf16 does not have: round it first\n"


@pytest.mark.parametrize("end", ["npy", "npz", "txt"])
def test_what_pack_writes_unpack_reads(folder, end):
    np.save("B.npy", RNG.integers(-128, 128, (32, 8)).astype(np.int8))
    assert run("pack", S8, "b", "B.npy", "-o", f"b.{end}").return_value == 0
    assert run("unpack", S8, "b", f"b.{end}", "-o", "again.npy").return_value == 0
    assert np.array_equal(np.load("again.npy"), np.load("B.npy"))


# --- what is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["unpack", SPARSE, "a", "none.npy"], "none.npy: error: No such file or directory"),
        (["unpack", SPARSE, "a", "none.npz"], "none.npz: error: no such file"),
        (["unpack", SPARSE, "a", "regs.npz:x"], "regs.npz: no array 'x'; the arrays are a, e"),
        (["unpack", SPARSE, "b", "regs.npz"], "regs.npz: error: no array 'b'; the arrays are a, e"),
        (["unpack", SPARSE, "c", "A.npy"], "c has dtype float16, but registers are uint32"),
        (["unpack", "mma.bad", "c", "A.npy"], "error: "),
        (["unpack", SPARSE, "e", "dump.txt"], "indices 0, 0 are equal, which PTX leaves undefined"),
        (["unpack", DENSE, "e", "dump.txt"], f"{DENSE} is dense: it has no metadata"),
        (["compress", DENSE, "A.npy"], f"{DENSE} is dense: it has no metadata"),
        (["pack", SPARSE, "a", "A.npy"], "a has shape (16, 32), but this instruction takes (..., 16, 16)"),
        (["pack", SPARSE, "a", "dump.txt"], "line 1: 11 elements, but a row has 16"),
    ],
)
def test_refusals(folder, arguments, message):
    result = run(*arguments)
    assert result.return_value == 3
    assert message in result.stderr
    assert result.stdout == ""
    document = json.loads(run(*arguments, "--json").stdout)
    assert message.partition("error: ")[2] in document["errors"][0]["message"] or message in str(document)


def test_usage(folder):
    import click

    for arguments, message in (
        (["unpack", SPARSE, "b", "x", "--e", "y"], "--e goes with operand a"),
        (["compress", SPARSE, "A.npy", "-o", "x.npy"], "x.npy: a, e are several arrays: write an .npz file"),
    ):
        result = run(*arguments)
        assert isinstance(result.exception, click.UsageError)
        assert result.exception.message == message
