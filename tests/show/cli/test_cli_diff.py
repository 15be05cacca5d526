"""``warpsim diff``: mistakes found from the command line, and dumps compared."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import click
import ml_dtypes
import numpy as np
import pytest

import warpsim
from tests.helpers.command_runner import CliRunner
from tools import example_dump
from warpsim.isa.descriptors.matrix_descriptor import Descriptor
from warpsim.isa.descriptors.tile_addresses import store_tile
from warpsim.show.cli import cli
from warpsim.show.cli.sources import mnemonic_of
from warpsim.show.views.findings import comparison_lines
from warpsim.workbench.diagnosis import compare
from warpsim.workbench.inputs.register_text import word_lines
from warpsim.workbench.vectors.formats import write_vectors
from warpsim.workbench.vectors.sets import make_vectors

TRACES = Path(__file__).parents[3] / "traces"
TRACE = TRACES / "mma_sp_m16n8k32_f16.ptx"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
RNG = np.random.default_rng(0)
FORM = warpsim.decode(SPARSE, target="sm_90a")
A = warpsim.prune(RNG.standard_normal((16, 32)).astype(np.float16), FORM)
B = RNG.standard_normal((32, 8)).astype(np.float16)
C = RNG.standard_normal((16, 8)).astype(np.float32)
VALUES, INDICES = warpsim.compress(A, FORM)
REGISTERS = {
    "a": warpsim.pack(FORM, "a", VALUES),
    "b": warpsim.pack(FORM, "b", B),
    "c": warpsim.pack(FORM, "c", C),
    "e": warpsim.pack_metadata(FORM, INDICES),
}
GOOD = warpsim.execute(FORM, **REGISTERS)
SWAPPED = warpsim.execute(FORM, **REGISTERS | {"a": REGISTERS["a"][:, [0, 2, 1, 3]]})
FOUND = "matches bit for bit: A: registers 1 and 2 exchanged"


def run(*arguments):
    return CliRunner().invoke(cli, ["diff", *map(str, arguments)], standalone_mode=False)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, matrix in (("A", A), ("B", B), ("C", C), ("D", warpsim.unpack(FORM, "d", SWAPPED))):
        np.save(f"{name}.npy", matrix)
    np.save("good.npy", GOOD)
    np.save("bad.npy", SWAPPED)
    np.savez("regs.npz", **REGISTERS)
    (tmp_path / "dump.txt").write_text("\n".join(word_lines(**REGISTERS, d=SWAPPED)))
    return tmp_path


# --- the search ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "operands",
    [
        ["dump.txt"],
        ["regs.npz", "d=bad.npy"],
        ["regs.npz", "D=D.npy"],
        ["A=A.npy", "B=B.npy", "C=C.npy", "D=D.npy"],
    ],
    ids=str,
)
def test_registers_or_matrices(folder, operands):
    result = run(SPARSE, *operands, "--target", "sm_90a")
    assert result.return_value == 1
    assert result.output == (
        f"{SPARSE} on sm_90a\n"
        "  D differs: 128 of 128 elements (by more than 1 ulp)\n"
        "  where: every element wrong\n"
        f"  {FOUND}\n"
        "    exchange registers 1 and 2 of A\n"
    )


def test_python_finds_the_same():
    found = warpsim.diagnose(FORM, **REGISTERS, d=SWAPPED)
    assert [match.simplest.names for match in found.matches] == [("A: registers 1 and 2 exchanged",)]


def test_d_as_expected(folder):
    result = run(SPARSE, "regs.npz", "d=good.npy", "--target", "sm_90a")
    assert (result.return_value, result.output) == (
        0,
        f"{SPARSE} on sm_90a\n  D is as expected, bit for bit\n",
    )


def test_json(folder):
    result = run(SPARSE, "dump.txt", "--target", "sm_90a", "--json")
    assert result.return_value == 1
    (subject,) = json.loads(result.output)["subjects"]
    assert not subject["as_expected"]
    assert subject["classes"]["more"] == 128
    assert subject["wrong"]["rows"] == list(range(16))
    ((first, *_),) = subject["matches"]
    assert first["fraction"] == 1.0
    assert first["mistakes"][0]["name"] == "A: registers 1 and 2 exchanged"
    assert first["left"] is None


def test_two_mistakes_unless_asked_for_single_ones(folder):
    d = warpsim.execute(
        FORM, **REGISTERS | {"a": REGISTERS["a"][:, [0, 2, 1, 3]], "c": np.zeros_like(REGISTERS["c"])}
    )
    np.save("d.npy", d)
    result = run(SPARSE, "regs.npz", "d=d.npy", "--target", "sm_90a")
    assert "A: registers 1 and 2 exchanged + C: not added" in result.output
    result = run(SPARSE, "regs.npz", "d=d.npy", "--target", "sm_90a", "--singles")
    assert "no explanation reproduces D" in result.output
    assert result.return_value == 1


def test_the_closest_explanation(folder):
    d = SWAPPED.copy()
    d[9, 2] ^= np.uint32(1)
    np.save("d.npy", d)
    text = run(SPARSE, "regs.npz", "d=d.npy", "--target", "sm_90a", "--singles").output
    assert (
        "  99.2% of D, 100% close: A: registers 1 and 2 exchanged\n"
        "    then still: column 2 of row 10 wrong; at most 1 ulps off, which is rounding\n"
    ) in text
    document = json.loads(
        run(SPARSE, "regs.npz", "d=d.npy", "--target", "sm_90a", "--singles", "--json").output
    )
    assert document["subjects"][0]["closest"][0]["left"]["rows"] == [10]


# --- traces and vector sets ----------------------------------------------------------------------------


@pytest.fixture
def trace(tmp_path):
    """A trace that expects what it would get with A's registers 1 and 2 exchanged."""
    path = tmp_path / "kernel.ptx"
    path.write_text(
        f"""//! target sm_90a
//! data kernel.npz
//! load %a<4> = a
//! load %b<4> = b
//! load %c<4> = c
//! load %e = e
{SPARSE}
    {{%d0, %d1, %d2, %d3}}, {{%a0, %a1, %a2, %a3}}, {{%b0, %b1, %b2, %b3}}, {{%c0, %c1, %c2, %c3}}, %e, 0x0;
//! expect %d<4> = d
"""
    )
    np.savez(tmp_path / "kernel.npz", **REGISTERS | {"e": REGISTERS["e"][:, 0]}, d=SWAPPED)
    return path


def test_a_d_that_a_trace_expects(trace):
    result = run(trace)
    assert result.return_value == 1
    assert result.output.startswith(f"{trace}:7: event 0: the expected D against what was read\n")
    assert FOUND in result.output


def test_each_warp_of_a_warpgroup(tmp_path, trace):
    text = trace.read_text().replace("//! data", "//! warpgroup 1024\n//! data")
    trace.write_text(text)
    four = {name: np.concatenate([words] * 4) for name, words in REGISTERS.items()}
    d = np.concatenate([GOOD, GOOD, SWAPPED, GOOD])
    np.savez(tmp_path / "kernel.npz", **four | {"e": four["e"][:, 0]}, d=d)
    result = run(trace)
    assert f"{trace}:8: event 0, warp 2: the expected D against what was read\n" in result.output
    assert result.output.count("event") == 1
    assert FOUND in result.output


def test_a_trace_that_gets_what_it_expects():
    result = run(TRACE)
    assert (result.return_value, result.output) == (0, "every D is as expected, bit for bit\n")


def test_cases_of_a_vector_set(tmp_path):
    stacked = {name: np.stack([words, words + 0, words]) for name, words in REGISTERS.items()}
    stacked["c"][1] = warpsim.pack(FORM, "c", -C)
    vectors = make_vectors(FORM, **stacked, selector=0)
    write_vectors(tmp_path / "good.npz", vectors)
    assert run(tmp_path / "good.npz").return_value == 0
    swapped = dict(stacked, a=stacked["a"][:, :, [0, 2, 1, 3]])
    wrong = warpsim.execute(FORM, **swapped)
    write_vectors(tmp_path / "bad.npz", replace(vectors, d=np.stack([vectors.d[0], wrong[1], wrong[2]])))
    result = run(tmp_path / "bad.npz")
    assert result.return_value == 1
    assert result.output.startswith(f"{tmp_path / 'bad.npz'}: 2 of 3 cases differ\n")
    assert FOUND in result.output


@pytest.fixture
def parts(monkeypatch):
    """Let sets be larger than what is read at once, and their parts have two cases."""
    monkeypatch.setattr("warpsim.workbench.vectors.formats.manifest.LARGEST_SET", 1)
    monkeypatch.setattr("warpsim.show.cli.diff._PART", 2)
    case = sum(words.nbytes for words in REGISTERS.values()) + GOOD.nbytes + 1  # of the selector
    monkeypatch.setattr("warpsim.workbench.vectors.sets.PART_BYTES", 2 * case)


def several(count, **more):
    return make_vectors(FORM, **{name: np.stack([x] * count) for name, x in REGISTERS.items()}, **more)


def test_sets_larger_than_the_memory_are_compared_in_parts(tmp_path, parts):
    """A set that vectors had written was refused by diff and explain."""
    vectors = several(7, selector=0)
    d = vectors.d.copy()
    d[1, 3, 2] ^= 1
    d[4:, :2, 0] ^= 0x80000000
    for name, words in (("a.npz", vectors.d), ("b.npz", d)):
        write_vectors(tmp_path / name, replace(vectors, d=words))
    assert run(tmp_path / "a.npz", tmp_path / "a.npz").output == "equal, bit for bit\n"
    lines = run(tmp_path / "a.npz", tmp_path / "b.npz").output.splitlines()
    assert lines == [*comparison_lines(compare(vectors.d, d, "f32"), vectors.d, d)]
    assert len(lines) == 8
    refused = run(tmp_path / "a.npz", "d=unit.log")
    assert "make several sets, each with a seed of its own" in refused.stderr


def test_wrong_cases_of_large_sets_are_explained_together(tmp_path, parts):
    vectors = several(7, selector=np.array([0, 1, 0, 1, 0, 0, 0], np.int8), undefined="fallback")
    wrong = vectors.d.copy()
    wrong[[0, 2, 4, 5]] = SWAPPED
    write_vectors(tmp_path / "bad.npz", replace(vectors, d=wrong))
    result = run(tmp_path / "bad.npz")
    assert result.output.startswith(
        f"{tmp_path / 'bad.npz'}: 4 of 5 cases differ; explained are the first 2\n"
    )
    assert FOUND in result.output
    shown = CliRunner().invoke(cli, ["explain", str(tmp_path / "bad.npz"), "--case", "5", "--element", "0,0"])
    assert f"{tmp_path / 'bad.npz'}: case 5 of 7" in shown.output


def test_the_example_of_the_readme(tmp_path):
    example_dump.main(tmp_path)
    for name in ("rows_8_15.npz", "rows_8_15.txt"):
        assert (tmp_path / name).read_bytes() == (TRACES / "dumps" / name).read_bytes()
    result = run(SPARSE, tmp_path / "rows_8_15.npz", f"d={tmp_path / 'rows_8_15.txt'}", "--target", "sm_90a")
    assert "where: rows 8-15 wrong, columns all alike" in result.output
    assert "matches bit for bit: A: registers 1 and 3 exchanged\n" in result.output


# --- two dumps -----------------------------------------------------------------------------------------


def test_two_dumps(folder):
    other = GOOD.copy()
    other[3, 1] ^= np.uint32(1)
    other[5, 2] ^= np.uint32(1 << 30)
    np.save("other.npy", other)
    result = run("good.npy", "other.npy")
    assert result.return_value == 1
    assert result.output == (
        "different: 2 of 128 elements (1 by 1 ulp, 1 by more than 1 ulp)\n"
        f"  lane 3, register 1: {GOOD[3, 1]:#010x} {other[3, 1]:#010x}  by 1 ulp\n"
        f"  lane 5, register 2: {GOOD[5, 2]:#010x} {other[5, 2]:#010x}  by more than 1 ulp\n"
    )
    document = json.loads(run("good.npy", "other.npy", "--json").output)
    assert document["differences"] == [
        {"place": [3, 1], "class": "1 ulp"},
        {"place": [5, 2], "class": "more"},
    ]
    assert run("good.npy", "good.npy").output == "equal, bit for bit\n"
    assert run("good.npy", "good.npy").return_value == 0
    (folder / "other.txt").write_text("\n".join(word_lines(d=other)))
    assert run("good.npy", "other.txt").output == result.output


def test_arrays_of_numbers_show_bits_values_and_ulps(folder):
    np.save("x.npy", np.float32([[3.5, 1.0], [-0.0, 2.0]]))
    np.save("y.npy", np.float32([[3.25, 1.0], [0.0, np.inf]]))
    result = run("x.npy", "y.npy")
    assert result.return_value == 1
    assert result.output == (
        "different: 3 of 4 elements (1 in the sign of zero, 2 by more than 1 ulp)\n"
        "  [0, 0]: 0x40600000 0x40500000  3.5 against 3.25, -1,048,576 ulps  by more than 1 ulp\n"
        "  [1, 0]: 0x80000000 0x00000000  -0.0 against 0.0, +0 ulps  in the sign of zero\n"
        "  [1, 1]: 0x40000000 0x7f800000  2.0 against inf  by more than 1 ulp\n"
    )
    np.save("x.npy", np.float64([0.1]))
    np.save("y.npy", np.nextafter([0.1], 1.0))
    assert (
        "0x3fb999999999999a 0x3fb999999999999b  0.1 against 0.10000000000000002, +1 ulps"
        in run("x.npy", "y.npy").output
    )
    np.save("x.npy", np.float16([1]))
    np.save("y.npy", np.float16([-1]))
    assert "0x3c00 0xbc00  1.0 against -1.0, -30,720 ulps" in run("x.npy", "y.npy").output
    np.save("x.npy", np.int32([3, 4]))
    np.save("y.npy", np.int32([3, -4]))
    assert "[1]: 0x00000004 0xfffffffc  4 against -4, -8  by more than 1" in run("x.npy", "y.npy").output


WGMMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"


def test_b_of_a_wgmma_is_a_matrix(folder):
    form = warpsim.decode(WGMMA, target="sm_90a")
    a, b = RNG.standard_normal((64, 16)).astype(np.float16), RNG.standard_normal((16, 8)).astype(np.float16)
    c = RNG.standard_normal((64, 8)).astype(np.float32)
    wrong = warpsim.unpack(form, "a", warpsim.pack(form, "a", a)[:, [0, 2, 1, 3]])
    for name, matrix in (("A", a), ("B", b), ("C", c), ("D", warpsim.matmul(form, wrong, b, c))):
        np.save(f"{name}.npy", matrix)
    given = [WGMMA, "A=A.npy", "B=B.npy", "C=C.npy", "D=D.npy", "--target", "sm_90a"]
    assert FOUND in run(*given).output
    np.save("memory.npy", np.zeros(1024, np.uint8))
    result = run(*given, "shared=memory.npy")
    assert "give shared= and b_desc= (0x" in result.stderr
    word = result.stderr.split("b_desc= (")[1].split(" ")[0]
    result = run(*given, "shared=memory.npy", f"b_desc={word}")
    assert "shared memory does not hold B by b_desc: 0 of 128 elements are B's" in result.stderr
    memory = np.zeros(1024, np.uint8)
    store_tile(memory, Descriptor.decode(int(word, 16)), b.T.copy(), major="K")
    np.save("memory.npy", memory)
    assert FOUND in run(*given, "shared=memory.npy", f"b_desc={word}").output


def test_a_matrix_beside_a_dump(folder):
    given = [SPARSE, "A=A.npy", "a=regs.npz", "e=regs.npz", "b=regs.npz", "B=B.npy", "--target", "sm_90a"]
    result = run(*given)
    assert result.return_value == 0
    assert result.output.splitlines() == [
        "A: the dump holds the matrix, all 128 words that are read",
        "B: the dump holds the matrix, all 128 words that are read",
        "metadata (e): the dump holds the matrix, all 16 words that are read",
    ]
    np.save("e.npy", np.roll(REGISTERS["e"] | warpsim.pack_metadata(FORM, INDICES, 1), -4, axis=0))
    result = run(SPARSE, "A=A.npy", "e=e.npy", "--target", "sm_90a")
    assert result.return_value == 1
    assert "the dump does not hold the matrix: 0 of 16 words are right" in result.output
    assert "128 of 128 elements: lane group off by +1" in result.output
    (document,) = json.loads(run(SPARSE, "A=A.npy", "e=e.npy", "--target", "sm_90a", "--json").output)[
        "subjects"
    ]
    assert (document["operand"], document["holds"], document["equal"]) == ("e", False, 0)


def test_names_of_disassemblers(folder):
    result = run("HMMA.SP.16832.F32", "regs.npz", "d=bad.npy", "--target", "sm_90a")
    assert result.output.startswith(f"{SPARSE} on sm_90a")
    for name, mnemonic in (
        ("HMMA.16816.F32", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
        ("HMMA.16816.F32.BF16", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"),
        ("IMMA.16832.S8.U8.SAT", "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32"),
        ("DMMA.884", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"),
        ("QGMMA.64x8x32.F32.E4M3.E4M3", "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3"),
    ):
        assert mnemonic_of(name, "sm_90a") == mnemonic
    result = run("HMMA.999.F32", "regs.npz", "d=bad.npy", "--target", "sm_90a")
    assert "HMMA.999.F32: no instruction is known by this name on sm_90a" in result.stderr


def test_arrays_of_ml_dtypes_are_typed(folder):
    np.save("x.npy", np.array([1, 2, 3], ml_dtypes.float8_e4m3fn))
    np.save("y.npy", np.array([1, 2, 3.25], ml_dtypes.float8_e4m3fn))
    result = run("x.npy", "y.npy", "--type", "e4m3")
    assert result.output.splitlines()[0] == "different: 1 of 3 elements (by 1 ulp)"
    assert "  [2]: 0x44 0x45  3.0 against 3.25, +1 ulps" in result.output
    result = run("x.npy", "y.npy")
    assert result.return_value == 3
    assert "an array of |V1: state its type by --type, one of e4m3, e5m2" in result.stderr


def test_tensors_in_safetensors(folder):
    D = warpsim.unpack(FORM, "d", SWAPPED)
    arrays = {"A": A, "B": B, "C": C, "D": D}
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, array in arrays.items():
        kind = {"float16": "F16", "float32": "F32"}[array.dtype.name]
        offsets = [len(data), len(data) + array.nbytes]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": offsets}
        data += array.tobytes()
    text = json.dumps(header).encode()
    (folder / "all.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    result = run(SPARSE, *(f"{name}=all.safetensors" for name in arrays), "--target", "sm_90a")
    assert FOUND in result.output
    assert (
        FOUND
        in run(SPARSE, "A=all.safetensors:A", "B=B.npy", "C=C.npy", "D=D.npy", "--target", "sm_90a").output
    )
    (folder / "bad.safetensors").write_bytes(b"\xff" * 40)
    result = run(SPARSE, "A=bad.safetensors", "--target", "sm_90a")
    assert "cannot be read as safetensors" in result.stderr


def test_many_differences_are_counted(folder):
    assert run("good.npy", "bad.npy").output.splitlines()[-1] == "  and 120 more words"


def test_the_format_of_a_dump(folder):
    (folder / "x.txt").write_text("0x3c008000")
    (folder / "y.txt").write_text("0x3c010000")
    said = run("x.txt", "y.txt", "--format", "f16").output
    assert "different: 2 of 2 elements (1 in the sign of zero, 1 by 1 ulp)" in said
    result = run("x.txt", "y.txt", "--format", "f17")
    assert result.return_value == 3
    assert "format 'f17': it is one of" in result.stderr


def test_the_d_of_vector_sets(tmp_path):
    form = warpsim.decode("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16", target="sm_90")
    arrays = {
        name: np.zeros((2, 32, count), np.uint32) for name, count in form.registers.items() if name != "d"
    }
    vectors = make_vectors(form, **arrays)
    write_vectors(tmp_path / "x.npz", vectors)
    other = vectors.d.copy()
    other[1, 4, 1] = 0x80000000
    write_vectors(tmp_path / "y.npz", replace(vectors, d=other))
    result = run(tmp_path / "x.npz", tmp_path / "y.npz")
    assert result.output == (
        "different: 1 of 256 elements (in the sign of zero)\n"
        "  tile 1, lane 4, register 1: 0x00000000 0x80000000  in the sign of zero\n"
    )


# --- what is refused -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["good.npy", "none.npy"], "No such file or directory"),
        (["good.npy", "A.npy"], "register dumps are 32- or 64-bit words"),
        ([SPARSE, "dump.txt"], "has no target, and the result depends on it"),
        (
            [SPARSE, "a=dump.txt", "d=bad.npy", "--target", "sm_90a"],
            "needs registers a, b, c, e; b is missing",
        ),
        ([SPARSE, "regs.npz", "D=A.npy", "--target", "sm_90a"], "D"),
    ],
    ids=str,
)
def test_refusals(folder, arguments, message):
    result = run(*arguments)
    assert result.return_value == 3
    assert message in result.stderr
    assert "errors" in json.loads(run(*arguments, "--json").stdout)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            [SPARSE, "regs.npz", "--target", "sm_90a"],
            "give the D that came out: d=FILE (registers) or D=FILE (matrix)",
        ),
        (
            [SPARSE, "regs.npz", "d=bad.npy", "D=D.npy", "--target", "sm_90a"],
            "d is given as registers and by a matrix",
        ),
        ([TRACE, "--target", "sm_90a"], "operands and --target go with a mnemonic; two dumps are two files"),
    ],
    ids=str,
)
def test_usage(folder, arguments, message):
    result = run(*arguments)
    assert isinstance(result.exception, click.UsageError)
    assert result.exception.message == message


def test_a_trace_that_cannot_run(tmp_path):
    shutil.copy(TRACE, tmp_path)  # without its data
    assert run(tmp_path / TRACE.name).return_value == 3
