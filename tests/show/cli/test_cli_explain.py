"""``warpsim explain``: of a trace, of a vector set and of operands; text, JSON, HTML; several targets."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import click
import numpy as np
import pytest

import warpsim
from tests.helpers.command_runner import CliRunner
from warpsim.show.cli import cli
from warpsim.workbench.traces.reading import read_trace
from warpsim.workbench.traces.running import run_trace
from warpsim.workbench.vectors.formats import write_vectors
from warpsim.workbench.vectors.sets import make_vectors

TRACES = Path(__file__).parents[3] / "traces"
TRACE = TRACES / "mma_sp_m16n8k32_f16.ptx"
WGMMA = TRACES / "wgmma_m64n16k16_f16.ptx"
DENSE = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((16, 16)).astype(np.float16), RNG.standard_normal((16, 8)).astype(np.float16)
C = RNG.standard_normal((16, 8)).astype(np.float32)


def run(*arguments):
    return CliRunner().invoke(cli, ["explain", *map(str, arguments)], standalone_mode=False)


def code(result) -> int:
    """D's code as the first line of the text has it."""
    return int(re.search(r"^D\[.*?= (0x[0-9a-f]+) = ", result.output, re.MULTILINE)[1], 16)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, matrix in (("A", A), ("B", B), ("C", C)):
        np.save(f"{name}.npy", matrix)
    registers = {"a": warpsim.pack(DENSE, "a", A), "b": warpsim.pack(DENSE, "b", B)}
    np.savez("ab.npz", **registers)
    np.save("c.npy", warpsim.pack(DENSE, "c", C))
    return tmp_path


# --- traces ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [TRACE, WGMMA], ids=lambda path: path.stem)
def test_the_code_is_that_of_the_trace(path):
    events = run_trace(read_trace(path)).events
    for number, event in enumerate(events):
        D = warpsim.unpack(event.instruction, "d", event.d)
        result = run(path, "--event", number, "--element", "9,3")
        assert result.return_value == 0
        assert result.output.startswith(
            f"{path}:{event.statement.location().line}: event {number} of {len(events)}\n"
        )
        assert code(result) == int(D[9, 3].view(f"u{D.itemsize}"))


def test_the_last_instruction_is_explained_if_none_is_chosen():
    count = len(run_trace(read_trace(TRACE)).events)
    assert (
        run(TRACE, "--element", "0,0").output == run(TRACE, "--event", count - 1, "--element", "0,0").output
    )


def test_each_warp_of_a_warpgroup(tmp_path):
    text = """//! target sm_90a
//! warpgroup 1024
//! data x.npz
//! load %a<4> = a
//! load %b<2> = b
//! load %c<4> = 0x0
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, {%b0, %b1},
    {%c0, %c1, %c2, %c3};
"""
    (tmp_path / "x.ptx").write_text(text)
    matrices = [RNG.standard_normal((16, 16)).astype(np.float16) for _ in range(4)]
    a = np.concatenate([warpsim.pack(DENSE, "a", matrix) for matrix in matrices])
    np.savez(tmp_path / "x.npz", a=a, b=np.tile(warpsim.pack(DENSE, "b", B), (4, 1)))
    for warp, matrix in enumerate(matrices):
        D = warpsim.matmul(DENSE, matrix, B, target="sm_90a")
        result = run(tmp_path / "x.ptx", "--warp", warp, "--element", "3,5")
        assert code(result) == int(D[3, 5].view(np.uint32))
        assert f"event 0 of 1, warp {warp}" in result.output
    assert (
        "warp 4 does not execute this: there are 0, 1, 2, 3"
        in run(tmp_path / "x.ptx", "--warp", 4, "--element", "0,0").stderr
    )


# --- vector sets -------------------------------------------------------------------------------------


def test_cases_of_a_vector_set(tmp_path):
    form = warpsim.decode("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", target="sm_90")
    A = warpsim.prune(RNG.standard_normal((3, 16, 32)).astype(np.float16), form)
    values, indices = warpsim.compress(A, form)
    selector = np.array([0, 1, 1])
    e = [warpsim.pack_metadata(form, index, int(s)) for index, s in zip(indices, selector, strict=True)]
    B = RNG.standard_normal((3, 32, 8)).astype(np.float16)
    vectors = make_vectors(
        form,
        a=warpsim.pack(form, "a", values),
        b=warpsim.pack(form, "b", B),
        c=np.zeros((3, 32, 4), np.uint32),
        e=np.stack(e),
        selector=selector,
        labels=("one", "two", "three"),
    )
    path = tmp_path / "set.npz"
    write_vectors(path, vectors)
    D = warpsim.unpack(form, "d", vectors.d)
    for case, label in enumerate(vectors.labels):
        result = run(path, "--case", case, "--element", "12,7")
        assert result.output.startswith(f"{path}: case {case} of 3, {label}\n")
        assert code(result) == int(D[case, 12, 7].view(np.uint32))
    assert "case 3: the set has 3 cases, 0 to 2" in run(path, "--case", 3, "--element", "0,0").stderr


# --- operands ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "operands",
    [
        ["A=A.npy", "B=B.npy", "C=C.npy"],
        ["ab.npz", "c=c.npy"],
        ["a=ab.npz", "b=ab.npz:b", "c=c.npy"],
    ],
    ids=str,
)
def test_operands_are_registers_or_matrices(folder, operands):
    D = warpsim.matmul(DENSE, A, B, C, target="sm_90a")
    result = run(DENSE, *operands, "--target", "sm_90a", "--element", "3,5")
    assert result.return_value == 0, result.stderr
    assert code(result) == int(D[3, 5].view(np.uint32))


def test_immediates_and_single_words(folder):
    form = warpsim.decode("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target="sm_80")
    arguments = {"a": 0x3C004000, "b": 0x40003C00, "c": 0x3F800000, "e": 0x4E4E4E4E}
    registers = {
        name: np.full((32, form.registers[name]), word, np.uint32) for name, word in arguments.items()
    }
    D = warpsim.unpack(form, "d", warpsim.execute(form, **registers, selector=2))
    given = [f"{name}={word:#x}" for name, word in arguments.items()]
    result = run(form.mnemonic, *given, "selector=2", "--target", "sm_80", "--element", "1,2")
    assert code(result) == int(D[1, 2].view(np.uint32))


@pytest.mark.parametrize("operands", [["A=A.npy", "B=B.npy"], ["ab.npz", "c=0x0"]], ids=str)
def test_targets_side_by_side(folder, operands):
    result = run(DENSE, *operands, "--target", "sm_80,sm_90", "--element", "3,5", "--json")
    document = json.loads(result.output)
    for each, target in zip(document["explanations"], ("sm_80", "sm_90"), strict=True):
        D = warpsim.matmul(DENSE, A, B, target=target)
        assert each["target"] == target
        assert int(each["code"], 16) == int(D[3, 5].view(np.uint32))
    assert document["parting"]["step"] == 0
    text = run(DENSE, *operands, "--target", "sm_80,sm_90", "--element", "3,5").output
    assert "chips first differ at step 0" in text


def test_a_trace_on_other_targets():
    document = json.loads(run(TRACE, "--target", "sm_80,sm_100", "--element", "0,0", "--json").output)
    assert [each["target"] for each in document["explanations"]] == ["sm_80", "sm_100"]
    assert "  mma.sp" in run(TRACE, "--target", "sm_80", "--element", "0,0").output
    assert " on sm_80\n" in run(TRACE, "--target", "sm_80", "--element", "0,0").output


def test_a_page_is_written_instead_of_text(folder):
    result = run(TRACE, "--element", "3,5", "--html", "page.html")
    assert result.return_value == 0
    assert result.output == ""
    text = (folder / "page.html").read_text()
    assert text.startswith("<!DOCTYPE html>")
    assert "D[3,5]" in text
    assert run(TRACE, "--element", "3,5", "--target", "sm_80,sm_90", "--html", "two.html").return_value == 0
    assert "Chips first differ at step" in (folder / "two.html").read_text()


def test_python_prints_the_same(folder):
    one = warpsim.explain(DENSE, 3, 5, target="sm_90", A=A, B=B)
    assert str(one) + "\n" == run(DENSE, "A=A.npy", "B=B.npy", "--target", "sm_90", "--element", "3,5").output
    two = warpsim.compare_targets(DENSE, 3, 5, ["sm_80", "sm_90"], A=A, B=B)
    text = run(DENSE, "A=A.npy", "B=B.npy", "--target", "sm_80,sm_90", "--element", "3,5").output
    assert str(two) + "\n" == text
    registers = {"a": warpsim.pack(DENSE, "a", A), "b": warpsim.pack(DENSE, "b", B)}
    c = np.zeros((32, 4), np.uint32)
    assert warpsim.explain(DENSE, 3, 5, target="sm_90", **registers, c=c).code == one.code
    assert warpsim.compare_targets(DENSE, 3, 5, ["sm_80"], **registers, c=c).codes.keys() == {"sm_80"}


# --- what is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([TRACE, "--element", "16,0"], "16"),
        (
            [TRACE, "--element", "0,0", "--event", "9"],
            "event 9: the trace executes matrix instructions 0 to 7",
        ),
        (["none.ptx", "--element", "0,0"], "none.ptx: error: No such file or directory"),
        (["none.npz", "--element", "0,0"], "none.npz"),
        (["mma.nonsense", "--element", "0,0"], "error: "),
        (
            [DENSE, "a=-1", "b=0", "c=0", "--element", "0,0"],
            "OPERANDS: error: a=-1: line 1: '-0x1' is not a hexadecimal word",
        ),
        ([DENSE, "--element", "0,0"], "needs registers a, b, c; a is missing"),
        ([DENSE, "ab.npz", "c=c.npy", "--element", "0,0"], "has no target, and the result depends on it"),
        ([DENSE, "A=ab.npz", "--element", "0,0"], "ab.npz: no array 'A'; the arrays are a, b"),
        ([DENSE, "A.txt", "--element", "0,0"], "OPERANDS: error: A.txt: No such file or directory"),
        ([TRACE, "--target", "sm_70", "--element", "0,0"], "is not on sm_70"),
    ],
    ids=str,
)
def test_refusals(folder, arguments, message):
    result = run(*arguments)
    assert result.return_value == 3
    assert message in result.stderr
    assert result.stdout == ""
    assert "errors" in json.loads(run(*arguments, "--json").stdout)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            [TRACE, "a=0x0", "--element", "0,0"],
            "operands go with a mnemonic: a trace or vector set has its own",
        ),
        ([DENSE, "x=1", "--element", "0,0"], "'x=1': no operand is called 'x'; there are a, b, c, d"),
        ([DENSE, "selector=x", "--element", "0,0"], "selector=x: expected an integer, decimal or with 0x"),
        ([DENSE, "A.npy", "--element", "0,0"], "'A.npy': which operand is it? NAME=A.npy"),
        (
            [DENSE, "A=A.npy", "--element", "0,0"],
            "matrices are A, B and perhaps C and D, and no registers beside them",
        ),
        ([TRACE, "--element", "3"], "--element '3': expected ROW,COLUMN such as 3,17"),
        ([TRACE, "--element", "3,1", "--target", "sm_80,sm_1"], "unknown target 'sm_1'; known are"),
        ([TRACE, "--element", "3,1", "--case", "1"], "--event and --warp choose from a trace, --case from"),
        (["none.npz", "--element", "3,1", "--event", "1"], "--event and --warp choose from a trace, --case"),
    ],
    ids=str,
)
def test_usage(folder, arguments, message):
    result = run(*arguments)
    assert isinstance(result.exception, click.UsageError)
    assert message in result.exception.message


def test_undefined_metadata_is_read_literally_if_asked(tmp_path):
    shutil.copy(TRACE, tmp_path)
    arrays = dict(np.load(TRACE.with_suffix(".npz")))
    path = tmp_path / TRACE.name
    name = next(name for name in arrays if name.startswith("e"))
    np.savez(path.with_suffix(".npz"), **arrays | {name: np.zeros_like(arrays[name])})
    assert run(path, "--event", 0, "--element", "0,0").return_value == 3
    assert run(path, "--event", 0, "--element", "0,0", "--allow-undefined").return_value == 0
