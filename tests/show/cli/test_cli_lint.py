"""``warpsim lint`` and ``warpsim metadata``: what is looked at, what is said, and the exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import click
import numpy as np
import pytest

import warpsim
from tests.helpers.command_runner import CliRunner
from warpsim.show.cli import cli
from warpsim.workbench.vectors.formats import write_vectors
from warpsim.workbench.vectors.sets import make_vectors

TRACES = Path(__file__).parents[3] / "traces"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
DENSE = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
RNG = np.random.default_rng(0)
A = warpsim.prune(RNG.standard_normal((16, 32)).astype(np.float16), SPARSE)
VALUES, INDICES = warpsim.compress(A, SPARSE)
E0, E1 = (warpsim.pack_metadata(SPARSE, INDICES, selector) for selector in (0, 1))


def run(*arguments):
    return CliRunner().invoke(cli, [*map(str, arguments)], standalone_mode=False)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("A.npy", A)
    np.savez("regs.npz", a=warpsim.pack(SPARSE, "a", VALUES), e=E1)
    return tmp_path


# --- lint --------------------------------------------------------------------------------------------


def test_nothing_is_found_in_good_registers(folder):
    result = run("lint", SPARSE, "regs.npz", "selector=1", "A=A.npy")
    assert (result.return_value, result.output) == (0, f"{SPARSE}\n  nothing found\n")


def test_metadata_in_the_lanes_of_another_selector(folder):
    result = run("lint", SPARSE, "regs.npz", "A=A.npy", "--target", "sm_90a")
    assert result.return_value == 1
    said = (
        "error: selector 0 ignores lanes 2, 3 of each quad, which alone hold legal metadata [ignored-lanes]"
    )
    assert f"  {said}\n    fix: selector 1 reads these lanes\n" in result.output
    assert "logical A comes out if metadata: selector 1 meant is undone [arrangement]" in result.output


def test_rows_of_the_wrong_half(folder):
    halves = warpsim.pack_metadata(SPARSE, np.roll(INDICES, 8, axis=0))
    np.save("e.npy", halves)
    result = run("lint", SPARSE, "e=e.npy", "A=A.npy")
    assert result.return_value == 1
    assert "[row-half]" in result.output


def test_findings_as_json(folder):
    np.save("e.npy", np.where(E0[5] == E0, np.uint32(0x44444454), E0))
    document = json.loads(run("lint", SPARSE, "e=e.npy", "--json").output)
    (subject,) = document["subjects"]
    assert subject["subject"] == SPARSE
    assert subject["findings"][0] == {
        "severity": "error",
        "rule": subject["findings"][0]["rule"],
        "message": subject["findings"][0]["message"],
        "fix": subject["findings"][0]["fix"],
        "lane": 5,
        "bits": [4, 7],
        "row": 1,
        "chunk": 5,
        "tile": None,
    }


def test_notes_alone_are_no_error(folder):
    plain = SPARSE.replace("::ordered_metadata", "")
    result = run("lint", plain, "regs.npz", "selector=1")
    assert result.return_value == 0
    assert "note: plain .sp may run slower" in result.output
    assert result.output.endswith("  1 note\n")


def test_every_sparse_instruction_of_a_trace():
    path = TRACES / "mma_sp_m16n8k32_f16.ptx"
    result = run("lint", path)
    assert result.return_value == 0
    heads = [line for line in result.output.splitlines() if line.startswith(str(path))]
    assert len(heads) == 8
    assert heads[0].endswith("event 0: mma.sp.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16")


def test_a_trace_without_sparse_instructions():
    assert run("lint", TRACES / "wgmma_m64n16k16_f16.ptx").output == "no sparse instruction\n"


def test_cases_of_a_vector_set_are_tiles(tmp_path):
    form = warpsim.decode(SPARSE, target="sm_90a")
    e = np.stack([E0, np.where(E0[5] == E0, np.uint32(0x44444454), E0)])
    zero = np.zeros((2, 32, 4), np.uint32)
    vectors = make_vectors(form, a=zero, b=zero, c=zero, e=e, selector=0, undefined="fallback")
    write_vectors(tmp_path / "set.npz", vectors)
    document = json.loads(run("lint", tmp_path / "set.npz", "--json").output)
    errors = [one for one in document["subjects"][0]["findings"] if one["severity"] == "error"]
    assert [one["tile"] for one in errors] == [[1]] * len(errors) != []


def test_a_set_in_parts_is_a_subject_for_each_selector(tmp_path, monkeypatch):
    """Tiles have the numbers of their cases, whatever is read together."""
    form = warpsim.decode(SPARSE, target="sm_90a")
    zero = np.zeros((9, 32, 4), np.uint32)
    selector = np.array([0, 1, 0, 0, 1, 1, 0, 0, 1], np.int8)
    e = np.where(np.arange(9)[:, None, None] == [[[4]]], 0, E0 | E1)
    vectors = make_vectors(form, a=zero, b=zero, c=zero, e=e, selector=selector, undefined="fallback")
    write_vectors(tmp_path / "set.npz", vectors)
    whole = run("lint", tmp_path / "set.npz"), run("lint", tmp_path / "set.npz", "--json")
    monkeypatch.setattr("warpsim.workbench.vectors.sets.PART_BYTES", 2 * 2177)
    monkeypatch.setattr("warpsim.workbench.diagnosis.linting.lint._TILES", 1)
    parts = run("lint", tmp_path / "set.npz"), run("lint", tmp_path / "set.npz", "--json")
    assert [each.output for each in parts] == [each.output for each in whole]
    subjects = json.loads(whole[1].output)["subjects"]
    assert [one["subject"][-10:] for one in subjects] == ["selector 0", "selector 1"]
    assert {tuple(one["tile"]) for one in subjects[1]["findings"] if one["rule"] == "empty-word"} == {(4,)}
    assert "and 3 more like these" in whole[0].output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lint", DENSE, "regs.npz"], f"OPERANDS: error: {DENSE} is dense: it has no metadata"),
        (["lint", SPARSE, "e=A.npy"], "OPERANDS: error: e has dtype float16, but registers are uint32"),
        (["lint", "none.ptx"], "none.ptx: error: No such file or directory"),
    ],
)
def test_lint_refusals(folder, arguments, message):
    result = run(*arguments)
    assert result.return_value == 3
    assert result.stderr.startswith(message)
    assert "errors" in json.loads(run(*arguments, "--json").stdout)


def test_lint_usage(folder):
    for arguments, message in (
        (
            [SPARSE, "c=0x0"],
            "give what is to be looked at: e=FILE, a=FILE, b=FILE, A=FILE, or a dump of them",
        ),
        ([TRACES / "mma_sp_m16n8k32_f16.ptx", "e=0x0"], "operands and --target go with a mnemonic"),
    ):
        result = run("lint", *arguments)
        assert isinstance(result.exception, click.UsageError)
        assert message in result.exception.message


# --- metadata ----------------------------------------------------------------------------------------

BIG = warpsim.prune(RNG.standard_normal((64, 64)).astype(np.float16), SPARSE)


@pytest.fixture
def blobs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, indices = warpsim.compress(BIG, SPARSE)
    np.save("BIG.npy", BIG)
    np.save("indices.npy", indices)
    return indices


def convert(source, wanted, file, out):
    return run("metadata", "f16", file, "--rows", 64, "--k", 64, "--from", source, "--to", wanted, "-o", out)


@pytest.mark.parametrize("name", ["fields", "words", "cutlass", "torch", "lanes m16n8k32 selector 1"])
def test_there_and_back(blobs, name):
    assert convert("indices", name, "indices.npy", "blob.npy").return_value == 0
    assert not np.array_equal(np.load("blob.npy"), blobs)
    assert np.array_equal(
        np.load("blob.npy"),
        warpsim.convert_metadata(blobs, 64, 64, "f16", source="indices", target=name),
    )
    assert convert(name, "indices", "blob.npy", "again.npy").return_value == 0
    assert np.array_equal(np.load("again.npy"), blobs)


def test_lanes_are_those_of_the_instruction(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("indices.npy", INDICES)
    given = ("--rows", 16, "--k", 32, "--from", "indices", "--to", "lanes m16n8k32 selector 1")
    assert run("metadata", SPARSE, "indices.npy", *given, "-o", "e.npy").return_value == 0
    assert np.array_equal(np.load("e.npy")[0, 0], E1)


def test_detection(blobs):
    assert convert("indices", "cutlass", "indices.npy", "blob.npy").return_value == 0
    size = ("--rows", 64, "--k", 64, "--detect")
    result = run("metadata", "f16", "blob.npy", *size, "--matrix", "BIG.npy")
    assert (result.return_value, result.output) == (0, "decodes as cutlass (= torch) only\n")
    document = json.loads(run("metadata", "f16", "blob.npy", *size, "--matrix", "BIG.npy", "--json").output)
    assert document["candidates"] == ["cutlass", "torch"]
    assert "words" in document["legal"]
    np.save("zero.npy", np.zeros_like(np.load("blob.npy")))
    result = run("metadata", "f16", "zero.npy", *size)
    assert (result.return_value, result.output) == (1, "decodes as none of the known arrangements\n")
    assert warpsim.detect_metadata(np.load("blob.npy"), 64, 64, "f16", BIG).candidates == ("cutlass", "torch")


def test_the_arrangements_are_listed():
    text = run("metadata", "s8").output
    assert "CUTLASS 2.x reorder_meta" in text
    assert "lanes m16n8k64 selector 0" in text
    assert json.loads(run("metadata", SPARSE, "--json").output)["arrangements"][0]["name"] == "fields"


def test_metadata_refusals(blobs):
    result = convert("indices", "nonsense", "indices.npy", "x.npy")
    assert result.return_value == 3
    assert result.stderr.startswith("indices.npy: error: arrangement 'nonsense': expected fields, indices")
    assert convert("cutlass", "indices", "indices.npy", "x.npy").return_value == 3
    assert run("metadata", "f99").return_value == 3
    for arguments, message in (
        (["indices.npy"], "--rows and --k are needed: the size of logical A"),
        (["indices.npy", "--rows", 1, "--k", 1], "give --from and --to, or --detect"),
        (["indices.npy", "--rows", 1, "--k", 1, "--from", "x"], "--from and --to go together"),
        (
            ["indices.npy", "--rows", 1, "--k", 1, "--from", "x", "--detect"],
            "give --from and --to, or --detect",
        ),
    ):
        result = run("metadata", "f16", *arguments)
        assert isinstance(result.exception, click.UsageError)
        assert result.exception.message == message
