"""``warpsim launch``: arguments, files, what is said, and the exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import click
import ml_dtypes
import numpy as np
import pytest

from tests.helpers.command_runner import CliRunner
from tests.helpers.printing import PRINTING
from warpsim.show.cli import cli
from warpsim.show.cli.launch_arguments import argument

SCALE = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 out, .param .u64 in, .param .f32 factor, .param .u32 n)
{
    .reg .pred %p; .reg .b32 %r<6>; .reg .b64 %rd<6>; .reg .f32 %f<4>;
    ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [in]; ld.param.f32 %f1, [factor]; ld.param.u32 %r5, [n];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;
    mad.lo.u32 %r4, %r2, %r3, %r1;
    setp.ge.u32 %p, %r4, %r5; @%p ret;
    mul.wide.u32 %rd3, %r4, 4; add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3;
    ld.global.f32 %f2, [%rd2]; mul.f32 %f2, %f2, %f1; st.global.f32 [%rd1], %f2;
    ret;
}
.visible .entry race(.param .u64 out)
{
    .reg .b32 %r<6>; .shared .b32 cell;
    mov.u32 %r1, %tid.x; st.shared.u32 [cell], %r1; ret;
}
.visible .entry broken() { .reg .b32 %r<6>; mul.u32 %r1, %r2, %r3; ret; }
.visible .entry nothing() { ret; }
"""
LISTING = """
kernels:
  scale
    0 out: .u64, 8 bytes
    1 in: .u64, 8 bytes
    2 factor: .f32, 4 bytes
    3 n: .u32, 4 bytes
  race
    0 out: .u64, 8 bytes
  broken, which has no parameters
  nothing, which has no parameters"""


def run(*arguments):
    return CliRunner().invoke(cli, ["launch", *map(str, arguments)], standalone_mode=False)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.ptx").write_text(SCALE)
    np.save("in.npy", np.arange(40, dtype=np.float32))
    np.save("good.npy", 1.5 * np.arange(40, dtype=np.float32))
    return tmp_path


SIZES = ("--entry", "scale", "--grid", "2", "--block", "32,1")
GIVEN = ("--arg", "zeros:f32:40", "--arg", "in.npy", "--arg", "f32:1.5", "--arg", "i32:40")


def test_results_are_written_and_compared(folder):
    result = run("k.ptx", *SIZES, *GIVEN, "--save", "0=out.npy", "--expect", "0=good.npy")
    assert result.output == (
        "k.ptx: scale on sm_80\n"
        "  statements executed: 17 exact\n"
        "  argument 0 written to out.npy\n"
        "  argument 0 and good.npy: 40 elements equal, bit for bit\n"
    )
    assert result.return_value == 0
    assert np.load("out.npy").tobytes() == np.load("good.npy").tobytes()
    assert not np.load("in.npy")[0]
    assert sorted(one.name for one in folder.iterdir()) == ["good.npy", "in.npy", "k.ptx", "out.npy"]


def test_a_bit_that_differs():
    wrong = np.load("good.npy")
    wrong.view(np.uint32)[7] ^= 1
    np.save("wrong.npy", wrong)
    result = run("k.ptx", *SIZES, *GIVEN, "--expect", "0=wrong.npy")
    assert result.return_value == 1
    assert result.output.endswith(
        "  argument 0 and wrong.npy: 1 of 40 elements differ\n"
        "    first: [7] is 0x41280000, expected 0x41280001\n"
    )
    document = json.loads(run("k.ptx", *SIZES, *GIVEN, "--expect", "0=wrong.npy", "--json").output)
    assert document["checks"] == [
        {
            "index": 0, "file": "wrong.npy", "compared": 40, "equal": 39,
            "within_tolerance": 0, "different": 1, "tolerance": 0.0,
            "largest_difference": {"value": 2.0**-20, "place": [7]},
            "first": {"place": [7], "is": "0x41280000", "expected": "0x41280001"},
        }
    ]  # fmt: skip
    assert document["kernel"] == "scale"
    assert document["errors"] == document["hazards"] == []
    assert document["fidelity"]["executions"]["approximate"] == 0


def test_a_tolerance_says_how_many_are_equal_and_how_far_the_others_are():
    """Within the tolerance: 3 elements have other bits, of which one has another sign of zero alone."""
    near = np.load("good.npy")
    near[[5, 9]] *= np.float32(1.0001)
    near[0] = -0.0
    np.save("near.npy", near)
    given = (*SIZES, *GIVEN, "--expect", "0=near.npy", "--tolerance", "1e-3")
    result = run("k.ptx", *given)
    assert result.return_value == 0
    assert result.output.splitlines()[-1] == (
        "  argument 0 and near.npy: 40 elements: 37 equal bit for bit, 3 more within the tolerance 0.001; "
        "largest difference 0.0013504 at [9]"
    )
    (check,) = json.loads(run("k.ptx", *given, "--json").output)["checks"]
    counts = [check[name] for name in ("compared", "equal", "within_tolerance", "different")]
    assert counts == [40, 37, 3, 0]
    assert check["largest_difference"] == {"value": float(near[9] - np.float32(13.5)), "place": [9]}
    near[7] = np.nan
    np.save("near.npy", near)
    result = run("k.ptx", *given)
    assert result.return_value == 1
    assert (
        "40 elements: 1 beyond the tolerance 0.001, 36 equal bit for bit, 3 more within it" in result.output
    )


def test_a_tolerance_where_all_bits_are_equal_and_another_dtype():
    given = (*SIZES, *GIVEN, "--tolerance", "1e-3", "--expect")
    assert "40 elements equal, bit for bit" in run("k.ptx", *given, "0=good.npy").output
    np.save("wide.npy", np.load("good.npy").astype(np.float64))
    assert "40 elements equal, in value" in run("k.ptx", *given, "0=wide.npy").output


def usage(*arguments):
    result = run(*arguments)
    assert isinstance(result.exception, click.UsageError)
    return result.exception.message


def test_kernels_are_listed_where_none_is_named():
    listed = run("k.ptx")
    assert (listed.exit_code, listed.return_value) == (0, 0)
    assert listed.stdout.splitlines() == ["k.ptx: kernels for sm_80", *LISTING.splitlines()[2:]]
    document = json.loads(run("k.ptx", "--json").stdout)
    assert [kernel["entry"] for kernel in document["kernels"]] == ["scale", "race", "broken", "nothing"]
    assert document["kernels"][0]["parameters"][2] == {
        "index": 2, "name": "factor", "kind": "f32", "bytes": 4, "alignment": 4
    }  # fmt: skip
    assert usage("k.ptx", "--expect", "0=good.npy") == f"--entry is missing{LISTING}"
    assert usage("k.ptx", "--why") == f"--entry is missing{LISTING}"
    assert run("none.ptx").return_value == 3
    assert usage("k.ptx", "--entry", "x") == f"--entry x: there is no such kernel{LISTING}"
    said = "1 arguments, but the kernel has 4 parameters: out (.u64), in (.u64), factor (.f32), n (.u32)"
    assert usage("k.ptx", "--entry", "scale", "--arg", "null") == said + LISTING
    bad = usage("k.ptx", *SIZES, *GIVEN[:4], "--arg", "zeros:f32:2", "--arg", "i32:40")
    assert bad.startswith(
        "parameter 2, factor (.f32, 4 bytes): given an array, which is passed by its address,"
    )


def test_the_only_kernel_needs_no_name():
    alone = SCALE[: SCALE.index(".visible .entry race")]
    Path("alone.ptx").write_text(alone)
    assert run("alone.ptx", *SIZES[2:], *GIVEN, "--expect", "0=good.npy").exit_code == 0
    assert "  scale\n    0 out: .u64, 8 bytes\n" in run("alone.ptx").stdout  # without arguments it is listed
    with Path("alone.ptx").open("a") as file:
        file.write(".visible .entry nothing() { ret; }\n")
    assert usage("alone.ptx", *SIZES[2:], *GIVEN).startswith("--entry is missing\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--grid", "2,x"), "--grid 2,x: expected one to three numbers, as in 4,4"),
        (("--save", "0"), "--save 0: expected INDEX=FILE.npy, with the number of a parameter"),
        (("--save", "9=x.npy"), "--save 9=x.npy: there are 4 arguments, 0 to 3"),
        (("--expect", "3=x.npy"), "3=x.npy: argument 3, i32:40, is not an array"),
        (("--block", "2000"), "block (2000, 1, 1): x is 1 to 1024" + LISTING),
        (("--shared", "-4"), "shared_bytes=-4: expected an integer, at least 0" + LISTING),
        (
            ("--schedule", "x"),
            "schedule='x': expected 'program', 'earliest', 'latest', an integer or 'random:SEED'",
        ),
    ],
)
def test_options_that_do_not_fit(options, message):
    assert usage("k.ptx", *SIZES, *GIVEN, *options) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("what", "--arg what: expected FILE.npy, zeros:TYPE:SHAPE, random:TYPE:SHAPE:SEED, TYPE:NUMBER, "
         "hex:TYPE:BITS, bytes:FILE, null"),
        ("512", "--arg 512: a number has its type in front, as in i32:512; expected FILE.npy, "
         "zeros:TYPE:SHAPE, random:TYPE:SHAPE:SEED, TYPE:NUMBER, hex:TYPE:BITS, bytes:FILE, null"),
        ("-1.5", "--arg -1.5: a number has its type in front, as in f32:-1.5; expected FILE.npy, "
         "zeros:TYPE:SHAPE, random:TYPE:SHAPE:SEED, TYPE:NUMBER, hex:TYPE:BITS, bytes:FILE, null"),
        ("zeros:f32:4by4", "--arg zeros:f32:4by4: the shape '4by4' is not like 512x512"),
        ("zeros:f32:99999x99999x9", "--arg zeros:f32:99999x99999x9: 359,992,800,036 bytes, "
         "more than 17,179,869,184"),
        ("random:f32:4:x", "--arg random:f32:4:x: the seed 'x' is not a number"),
        ("i8:200", "--arg i8:200: i8 goes from -128 to 127"),
        ("i32:1.5", "--arg i32:1.5: '1.5' is not an integer"),
        ("f32:one", "--arg f32:one: 'one' is not a number"),
        ("hex:f16:0x10000", "--arg hex:f16:0x10000: 0x10000 does not fit in 16 bits"),
    ],
)  # fmt: skip
def test_arguments_that_are_not_understood(text, message):
    assert usage("k.ptx", *SIZES, "--arg", text) == message


def test_unknown_types():
    assert usage("k.ptx", "--arg", "zeros:q32:4").startswith(
        "--arg zeros:q32:4: no type 'q32'; there are u8, u16,"
    )


def test_what_arguments_mean(folder):
    (folder / "s.bin").write_bytes(b"abc")
    assert argument("null") is None
    assert argument("bytes:s.bin") == b"abc"
    assert argument("zeros:bf16:2x3").dtype == ml_dtypes.bfloat16
    assert argument("zeros:e4m3:2x3").shape == (2, 3)
    assert argument("i32:-0x10") == np.array(-16, np.int32)
    assert argument("b64:0xffffffffffffffff").dtype == np.uint64
    assert argument("hex:f32:0x7fc00001").tobytes() == b"\x01\0\xc0\x7f"
    assert argument("f16:0.1") == np.float16(0.1)
    assert np.array_equal(argument("random:f16:64x2:3"), argument("random:f16:64x2:3"))
    assert not np.array_equal(argument("random:u8:64"), argument("random:u8:64:1"))
    assert np.array_equal(argument("in.npy"), np.arange(40, dtype=np.float32))


def test_what_cannot_be_read_or_is_not_legal(folder):
    assert run("missing.ptx", "--entry", "k").return_value == 3
    assert run("k.ptx", *SIZES, "--arg", "missing.npy").return_value == 3
    result = run("k.ptx", "--entry", "broken")
    assert result.return_value == 3
    assert "error: mul" in result.output + result.stderr
    (folder / "bad.ptx").write_text("no ptx at all {{")
    assert run("bad.ptx", "--entry", "k").return_value == 3


def test_clusters(folder):
    """Each CTA of a cluster stores its rank; a grid that no clusters fit in is a mistake in the call."""
    text = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) { .reg .b32 %r<3>; .reg .b64 %d<3>; mov.u32 %r0, %cluster_ctarank;
mov.u32 %r1, %ctaid.x; ld.param.u64 %d0, [out]; mad.wide.u32 %d1, %r1, 4, %d0; st.global.u32 [%d1], %r0;
ret; }
"""
    (folder / "c.ptx").write_text(text)
    np.save("ranks.npy", np.array([0, 1, 2, 0, 1, 2], np.uint32))
    given = ("--entry", "k", "--grid", "6", "--cluster", "3,1,1", "--arg", "zeros:u32:6")
    assert run("c.ptx", *given, "--expect", "0=ranks.npy").return_value == 0
    result = run("c.ptx", "--entry", "k", "--grid", "4", "--cluster", "3,1,1", "--arg", "zeros:u32:6")
    assert isinstance(result.exception, click.UsageError)
    assert "grid (4, 1, 1): x is not a multiple of 3" in result.exception.message


def test_faults_and_races_write_nothing(folder):
    short = ("--arg", "zeros:f32:8", *GIVEN[2:])
    result = run("k.ptx", *SIZES, *short, "--save", "0=out.npy")
    assert result.return_value == 3
    assert "is in no allocation: 0 bytes past the end of out of 32 bytes" in result.stderr
    assert not (folder / "out.npy").exists()
    document = json.loads(run("k.ptx", *SIZES, *short, "--json").stdout)
    assert document["errors"][0]["kind"] == "Fault"
    race = ("--entry", "race", "--block", "64", "--arg", "null")
    assert run("k.ptx", *race).return_value == 3
    warned = run("k.ptx", *race, "--checks", "warn")
    assert warned.return_value == 0
    assert "race: st.shared.u32" in warned.output
    assert run("k.ptx", *race, "--checks", "off").output.count("race:") == 0


def test_arrays_of_other_shapes_are_not_compared():
    result = run("k.ptx", *SIZES, *GIVEN, "--expect", "0=k.npy")
    assert result.return_value == 3
    np.save("k.npy", np.zeros((4, 10), np.float32))
    result = run("k.ptx", *SIZES, *GIVEN, "--expect", "0=k.npy")
    assert result.return_value == 3
    assert "k.npy: holds float32 (4, 10), but parameter 0 is float32 (40,)" in result.stderr


# --- tensor maps -------------------------------------------------------------------------------------

BOX = """\
.version 8.0
.target sm_90a
.address_size 64
.visible .entry box(.param .align 64 .b8 from[128], .param .align 64 .b8 to[128], .param .u64 in)
{
    .reg .b64 %rd<3>; .reg .b32 %r<3>; .reg .pred %p;
    .shared .align 128 .b8 tile[1024]; .shared .b64 bar;
    mov.b64 %rd1, from; cvta.param.u64 %rd1, %rd1; mov.b64 %rd2, to; cvta.param.u64 %rd2, %rd2;
    mov.u32 %r1, tile; mov.u32 %r2, bar;
    mbarrier.init.shared.b64 [bar], 1;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 1024;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {16, 4}], [%r2];
    again: mbarrier.try_wait.parity.shared.b64 %p, [bar], 0; @!%p bra again;
    cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd2, {0, 8}], [%r1];
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
    ret;
}
"""


def test_arrays_of_files_keep_their_shape_in_tensor_maps():
    """numpy.load returns a view of an array of one dimension; origins are in rows and columns."""
    np.save("A.npy", np.ones((64, 64), np.float16))
    np.save("B.npy", np.ones((32, 64), np.float16))
    assert np.load("A.npy").base is None or np.load("A.npy").base.ndim == 1
    maps = [f"tensor_map:{name}.npy:box={box}x64:swizzle=128B" for name, box in (("A", 64), ("B", 32))]
    maps.append("tensor_map:zeros:f32:64x32:box=64x32:swizzle=128B")
    arguments = (f"--arg={each}" for each in (*maps, "u32:64", "u32:32", "u32:64"))
    file = Path(__file__).parents[3] / "traces" / "kernels" / "tensor_ring.ptx"
    result = run(file, "--entry", "tensor_ring", "--block", 160, *arguments, "--origins", "A=0,B=1")
    assert "A: parameter 0, float16 (64, 64), 100.0%" in result.output
    assert "  b: from B, row = n, column = k (" in result.output


def test_tensor_maps_are_made_of_other_arguments():
    """The first map is one of argument 2, the second one has an array of its own, which is saved."""
    given = np.arange(40 * 64, dtype=np.float16).reshape(40, 64)
    wanted = np.zeros((24, 32), np.float16)
    wanted[8:] = given[4:20, 16:48]
    np.save("given.npy", given)
    np.save("wanted.npy", wanted)
    Path("box.ptx").write_text(BOX)
    maps = ("tensor_map:2:box=16x32", "tensor_map:zeros:f16:24x32:box=16x32")
    done = run(
        *("box.ptx", "--entry", "box", "--arg", maps[0], "--arg", maps[1], "--arg", "given.npy"),
        *("--save", "1=out.npy", "--expect", "1=wanted.npy"),
    )
    assert done.return_value == 0, done.output
    assert "768 elements equal, bit for bit" in done.output
    np.testing.assert_array_equal(np.load("out.npy"), wanted)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tensor_map:2", "expected tensor_map:INDEX-or-ARRAY:box=64x128[:swizzle=128B][:fill=nan]..."),
        ("tensor_map:2:box=16x32:shape", "no field 'shape'; there are box, element_strides, "),
        ("tensor_map:2:box=16xY", "box=16xY is not like box=64x128 or box=64"),
        ("tensor_map:2:box=16x30", "a box with 30 elements of the innermost dimension of f16 has rows of 60"),
        ("tensor_map:2:box=16x32:pixels=3", "fields are missing, or too many: box, or lower, "),
        ("tensor_map:7:box=16x32", "argument 7 is not an earlier argument that is an array"),
        ("tensor_map:3:box=16x32", "argument 3, i32:5, is not an array"),
    ],
)
def test_tensor_maps_that_are_none(text, message):
    np.save("given.npy", np.zeros((40, 64), np.float16))
    Path("box.ptx").write_text(BOX)
    arguments = ("--arg", text, "--arg", "null", "--arg", "given.npy", "--arg", "i32:5")
    done = run("box.ptx", "--entry", "box", *arguments)
    assert isinstance(done.exception, click.UsageError)
    assert message in done.exception.message


MANGLED = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry _Z5scalePfi(.param .u64 p, .param .u32 n) { ret; }
.visible .entry _ZN2ns5scaleEPf(.param .u64 p) { ret; }
.visible .entry _Z4tmplIiEvPT_(.param .u64 p) { ret; }
"""


@pytest.mark.parametrize(
    ("entry", "shown"),
    [
        ("tmpl<int>", "void tmpl<int>(int*)"),
        ("ns::scale", "ns::scale(float*)"),
        ("_Z4tmplIiEvPT_", "void tmpl<int>(int*)"),
    ],
)
def test_a_kernel_is_found_by_its_c_name(tmp_path, entry, shown):
    path = tmp_path / "k.ptx"
    path.write_text(MANGLED)
    result = run(path, "--entry", entry, "--arg", "zeros:f32:4")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{path}: {shown} on sm_80\n")


def test_kernels_are_listed_by_their_c_names(tmp_path):
    path = tmp_path / "k.ptx"
    path.write_text(MANGLED)
    error = run(path, "--entry", "sgemm").exception
    assert str(error).startswith("--entry sgemm: there is no such kernel\nkernels:\n  scale(float*, int)\n")


def test_what_a_kernel_prints_is_shown_before_the_report(tmp_path):
    path = tmp_path / "k.ptx"
    path.write_text(PRINTING)
    shown = run(path, "--entry", "k", "--block", 2).stdout
    assert shown.startswith(f"hi\nhi\n{path}: k on sm_80\n")


def test_what_a_kernel_prints_is_part_of_the_document(tmp_path):
    path = tmp_path / "k.ptx"
    path.write_text(PRINTING)
    document = json.loads(run(path, "--entry", "k", "--json").stdout)
    place = {"file": str(path), "line": 11, "column": 1, "source": None}
    assert document["printed"] == [
        {"text": "hi\n", "cta": [0, 0, 0], "warp": 0, "lane": 0, "location": place}
    ]
