"""Traces and archives: what is read, what is refused with which words, and what a comparison finds."""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import warpsim
from warpsim.base.errors import Location, PtxError, TraceError, UndefinedBehavior, WarpsimError
from warpsim.base.files import archives
from warpsim.base.files.archives import read_arrays, read_text, write_arrays
from warpsim.workbench.traces.checks import Check, compare
from warpsim.workbench.traces.reading import read_trace
from warpsim.workbench.traces.running import Run, run_trace

Words = npt.NDArray[Any]

LANES = np.arange(32, dtype=np.uint32)
DENSE = "mma.sync.aligned.m16n8k16.row.col.{0}.f16.f16.{0}"
NO_TARGET = (
    "t.ptx:1:1: error: the trace names no target: add a line '//! target sm_90a' or '.target sm_90a', "
    "or give target='sm_…' (--target sm_…)"
)


@pytest.fixture
def trace(tmp_path: Path) -> Callable[..., Path]:
    """Writes a trace for sm_90a with the given lines, and its data where arrays are given."""

    def write(*lines: str, head: str = "//! target sm_90a", **arrays: Words) -> Path:
        data = ["//! data t.npz"] if arrays else []
        if arrays:
            write_arrays(tmp_path / "t.npz", arrays)
        path = tmp_path / "t.ptx"
        path.write_text("\n".join([head, *data, *lines]) + "\n")
        return path

    return write


def refusal(path: Path, kind: type[WarpsimError] = TraceError) -> str:
    """The first line of why a trace is not read, or not run, without the folder."""
    with pytest.raises(kind) as caught:
        run_trace(read_trace(path))
    return str(caught.value).splitlines()[0].replace(f"{path.parent}{os.sep}", "")


def checks(path: Path, **settings: Any) -> list[Check]:
    return run_trace(read_trace(path), **settings).checks


def multiplied(accumulator: str) -> tuple[dict[str, Words], Words]:
    """Registers of DENSE with an accumulator, and D."""
    form = warpsim.decode(DENSE.format(accumulator), target="sm_90a")
    random = np.random.default_rng(1)
    dtype = np.float16 if accumulator == "f16" else np.float32
    words = {
        "a": warpsim.pack(form, "a", random.standard_normal((16, 16)).astype(np.float16)),
        "b": warpsim.pack(form, "b", random.standard_normal((16, 8)).astype(np.float16)),
        "c": warpsim.pack(form, "c", random.standard_normal((16, 8)).astype(dtype)),
    }
    return words, warpsim.execute(form, **words)


def statements(accumulator: str) -> list[str]:
    count, kind = (2, "b32") if accumulator == "f16" else (4, "f32")
    d, c = ("{" + ", ".join(f"%{role}{i}" for i in range(count)) + "}" for role in "dc")
    return [
        f".reg .b32 %a<4>, %b<2>; .reg .{kind} %c<{count}>, %d<{count}>;",
        "//! load %a<4> = a",
        "//! load %b<2> = b",
        f"//! load %c<{count}> = c",
        f"{DENSE.format(accumulator)} {d}, {{%a0, %a1, %a2, %a3}}, {{%b0, %b1}}, {c};",
        f"//! expect %d<{count}> = d",
    ]


# --- reading and running ---------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["kernel", "reference"])
@pytest.mark.parametrize("accumulator", ["f16", "f32"])
def test_a_trace_with_what_it_expects_passes(trace: Any, accumulator: str, engine: Any) -> None:
    words, d = multiplied(accumulator)
    run = run_trace(read_trace(trace(*statements(accumulator), **words, d=d)), engine=engine)
    assert run.passed
    assert [(check.registers, check.compared, check.different) for check in run.checks] == [
        (f"%d<{d.shape[1]}>", d.size, 0)
    ]
    assert [event.instruction.mnemonic for event in run.events] == [DENSE.format(accumulator)]
    assert np.array_equal(run.events[0].d, d)


def test_data_may_stand_behind_statements(trace: Any, tmp_path: Path) -> None:
    """Nothing else that is set may."""
    write_arrays(tmp_path / "late.npz", {"x": np.arange(32, dtype=np.uint32)})
    path = trace(".reg .b32 %r;", "//! data late.npz", "//! load %r = x", "//! expect %r = x")
    assert run_trace(read_trace(path)).passed


def test_another_target_can_be_chosen(trace: Any) -> None:
    words, _ = multiplied("f32")
    path = trace(*statements("f32")[:-1], **words)
    targets = [run_trace(read_trace(path), target=target).machine.target for target in (None, "sm_80")]
    assert targets == ["sm_90a", "sm_80"]


@pytest.mark.parametrize(
    ("head", "given", "target"),
    [
        ("//! target sm_90a", None, "sm_90a"),
        ("//! target sm_90a\n.target sm_89", None, "sm_90a"),
        ("//! target sm_90a", "sm_80", "sm_90a"),
        ("// none", "sm_80", "sm_80"),
        (".version 8.0\n.target sm_89, debug\n.target sm_90", None, "sm_89"),
        (".target sm_89", "sm_80", "sm_80"),
    ],
)
def test_who_names_the_target(trace: Any, head: str, given: str | None, target: str) -> None:
    read = read_trace(trace("mov.b32 %r, 1;", "//! expect %r = 0x1", head=head), given)
    assert read.target == target
    assert run_trace(read).passed


def test_a_warp_has_shared_memory(trace: Any) -> None:
    words = np.arange(4, dtype=np.uint32)
    path = trace(
        ".shared .b32 t[4]; .reg .b32 %r, %s;",
        "//! shared t = a",
        "ld.shared.b32 %r, [t+8]; mov.b32 %s, 7; st.shared.b32 [t], %s; bar.warp.sync -1;",
        "//! expect %r = 0x2",
        "//! expect shared t = b",
        a=words,
        b=np.array([7, 1, 2, 3], np.uint32),
    )
    assert [check.passed for check in checks(path)] == [True, True]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("0x00000005", [5] * 32),
        ("0X5", [5] * 32),
        ("0x000000000000000000005", [5] * 32),
        (" ".join(f"{i:#x}" for i in range(32)), list(range(32))),
        (",".join(f"{i:#x}" for i in range(32)), list(range(32))),
        (" , ".join(f"{i:#x}" for i in range(32)) + "  ", list(range(32))),
        ("0xffffffff", [0xFFFFFFFF] * 32),
    ],
)
def test_words_can_be_written_out(trace: Any, line: str, words: list[int]) -> None:
    run = run_trace(read_trace(trace(".reg .b32 %r;", f"//!load %r={line}", f"//! expect %r = {line}")))
    assert run.machine["%r"].tolist() == words
    assert run.passed


def test_one_word_fills_a_range(trace: Any) -> None:
    run = run_trace(read_trace(trace("//! load %r<3> = 0x7", "//! expect %r<3> = 0x7")))
    assert run.machine["%r<3>"].tolist() == [[7, 7, 7]] * 32
    assert run.checks[0].compared == 96


def test_64_bit_words_and_registers(trace: Any) -> None:
    word = 0x123456789ABCDEF0
    run = run_trace(
        read_trace(trace(".reg .b64 %w, %v;", f"//! load %w = {word:#x}", "//! load %v = 0x1",
                         f"//! expect %w = {word:#x}", "//! expect %v = 0x2"))
    )  # fmt: skip
    assert [check.different for check in run.checks] == [0, 32]
    assert str(run.checks[1].first) == (
        "lane 0, register %v: expected 0x0000000000000002, got 0x0000000000000001"
    )


def test_bool_arrays_fill_predicates(trace: Any) -> None:
    odd, wrong = LANES % 2 == 1, LANES % 2 == 1
    wrong[6] = True
    path = trace(
        ".reg .pred %p, %q; .reg .b32 %r;", "//! load %p = odd", "mov.pred %q, !%p; mov.b32 %r, 0;",
        "@%p mov.b32 %r, 1;", "//! expect %p = odd", "//! expect %r = odd", "//! expect %q = wrong",
        "//! expect %q = 0x0", "//! expect %p = wrong", odd=odd, wrong=wrong,
    )  # fmt: skip
    found = checks(path)
    assert [check.different for check in found] == [0, 0, 31, 16, 1]
    assert str(found[2].first) == "lane 0, register %q: expected 0x0, got 0x1"
    assert str(found[4].first) == "lane 6, register %p: expected 0x1, got 0x0"


def test_a_single_register_takes_a_column(trace: Any) -> None:
    run = run_trace(read_trace(trace("//! load %e = e", "//! load %f<1> = f", e=LANES[:, None], f=LANES)))
    assert run.machine["%e"].tolist() == run.machine["%f<1>"][:, 0].tolist() == LANES.tolist()


def test_lines_in_braces_see_the_registers_of_the_block(trace: Any) -> None:
    path = trace(".reg .b32 %r;", "{ .reg .b16 %r;", "//! load %r = 0x5", "{", "//! expect %r = 0x6", "} }",
                 "//! load %r = 0x7", "//! expect %r = 0x7")  # fmt: skip
    found = checks(path)
    assert [(check.location.line, check.different) for check in found] == [(6, 32), (9, 0)]
    assert str(found[0].first) == "lane 0, register %r: expected 0x0006, got 0x0005"


def test_lines_take_effect_where_they_stand(trace: Any) -> None:
    path = trace("//! load %r = 0x1", "//! expect %r = 0x1", "mov.b32 %r, 2;", "//! expect %r = 0x2",
                 "//! load %r = 0x3", "//! expect %r = 0x3", "//!", "//! ")  # fmt: skip
    assert [check.passed for check in checks(path)] == [True] * 3


def test_the_version_rules_which_forms_there_are(trace: Any) -> None:
    words, _ = multiplied("f32")
    lines = statements("f32")[:-1]
    for version in ("8.0", "9.0"):
        assert run_trace(
            read_trace(trace(*lines, head=f"//! version {version}\n//! target sm_90a", **words))
        ).passed
    message = refusal(trace(*lines, head="//! version 7.9\n//! target sm_90a", **words), WarpsimError)
    assert " needs PTX ISA 8.0; this is read as 7.9 " in message


def test_windows_line_ends(trace: Any, tmp_path: Path) -> None:
    path = tmp_path / "w.ptx"
    path.write_bytes(b"//! target sm_90a\r\n//! load %r = 0x5\r\n//! expect %r = 0x5\r\n")
    assert run_trace(read_trace(path)).passed


# --- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], NO_TARGET),
        ([".target sm_1"], "t.ptx:1:1: error: unknown target 'sm_1'; known are sm_70, "),
        (["//! target"], "t.ptx:1:1: error: '//! target': expected target, version, warpgroup, data, "
         "'load REGISTERS = DATA', 'shared PLACE = DATA' or 'expect REGISTERS = DATA'"),
        (["//! target sm_1"], "t.ptx:1:12: error: unknown target 'sm_1'; known are sm_70, "),
        (["//! target sm_80", "//!  target  sm_90"], "t.ptx:2:14: error: target is already given as sm_80"),
        ([".reg .b32 %r;", "//! target sm_80"],
         "t.ptx:2:12: error: target is given after the first statement: it stands before"),
        (["//! target sm_80", "{ }", "//! version 8.0"],
         "t.ptx:3:13: error: version is given after the first statement: it stands before"),
        (["//! version 8"], "t.ptx:1:13: error: PTX version '8': expected major.minor, such as '8.5'"),
        (["//! seed 4"], "t.ptx:1:1: error: '//! seed 4': expected target, version, warpgroup, data, "
         "'load REGISTERS = DATA', 'shared PLACE = DATA' or 'expect REGISTERS = DATA'"),
        (["//! load %r"], "t.ptx:1:1: error: '//! load %r': expected target, "),
        (["//! load = 0x1"], "t.ptx:1:1: error: '//! load = 0x1': expected target, "),
        (["//! load %r = "], "t.ptx:1:1: error: '//! load %r =': expected target, "),
        (["//! " + "x" * 99], "t.ptx:1:1: error: '//! " + "x" * 40 + "...': expected target, "),
        (["//! load %r = a"],
         "t.ptx:1:15: error: no array 'a'; the arrays are none: there is no '//! data' line before"),
        (["//! load %r = 5"], "t.ptx:1:15: error: no array '5'; the arrays are none: "),
        (["//! load %r<1 = 0x1"],
         "t.ptx:1:10: error: '%r<1': expected a register, as '%r1', or up to 4096, as '%r<4>'"),
        (["//! load %r<99999999999> = 0x1"], "t.ptx:1:10: error: '%r<99999999999>': expected a register, "),
        (["//! load %r = 0x1 0x2"], "t.ptx:1:15: error: 2 words: expected 1 for all lanes, or 32"),
        (["//! load %r = 0x1, nine"], "t.ptx:1:15: error: 'nine' is not a hexadecimal word of at "
            "most 64 bits"),
        (["//! load %r = 0x"], "t.ptx:1:15: error: '0x' is not a hexadecimal word of at most 64 bits"),
        (["//! load %r = 0x10000000000000000"],
         "t.ptx:1:15: error: '0x10000000000000000' is not a hexadecimal word of at most 64 bits"),
        (["//! load %r = 0x" + "f" * 50],
         "t.ptx:1:15: error: '0x" + "f" * 38 + "...' is not a hexadecimal word of at most 64 bits"),
        (["//! load %r<2> = " + "0x1 " * 32],
         "t.ptx:1:10: error: %r<2> takes a scalar or an array (32, 2), not an array (32,)"),
        (["//! data ../t.npz"],
         "t.ptx:1:10: error: data '../t.npz': expected the name of a file beside the trace"),
        (["//! data /etc/passwd"], "t.ptx:1:10: error: data '/etc/passwd': expected the name of "),
        (["//! data x\x00"], "t.ptx:1:10: error: x\x00: no such file"),
        (["//! data .."], "t.ptx:1:10: error: ..: no such file"),
        (["//! data none.npz"], "t.ptx:1:10: error: none.npz: no such file"),
    ],
)  # fmt: skip
def test_lines_that_are_refused(trace: Any, lines: list[str], message: str) -> None:
    head, *rest = lines or [""]
    assert refusal(trace(*rest, head=head), WarpsimError).startswith(message)


@pytest.mark.parametrize(
    ("lines", "kind", "message"),
    [
        ([".reg .b32 %r;", "//! load %r = 0x1ffffffff"], TraceError,
         "t.ptx:3:10: error: %r holds 32 bits; 8589934591 does not fit"),
        ([".reg .b32 %r;", "//! load %s = 0x1"], TraceError,
         "t.ptx:3:10: error: register %s is not declared"),
        ([".reg .pred %p;", "//! load %p = 0x2"], TraceError,
         "t.ptx:3:10: error: %p holds 1 bit; 2 does not fit"),
        (["//! load %laneid = 0x2"], TraceError,
         "t.ptx:2:10: error: the special register %laneid is read-only"),
        (["//! load %r = 0x1", "//! expect %r = 0x1ffffffff"], TraceError,
         "t.ptx:3:12: error: %r holds 32 bits; 8589934591 does not fit"),
        (["//! load %p = 0x1", "//! expect %r<2> = 0x1"], UndefinedBehavior,
         "t.ptx:3:12: error: register %r0 is read, but nothing has been written to it"),
        (["mov.b32 %r, %s;"], UndefinedBehavior,
         "t.ptx:2:13: error: register %s is read, but nothing has been written to it"),
        (["mov.b32 %r"], PtxError, "t.ptx:2:11: error: expected ',' or ';', found the end of the text"),
    ],
)  # fmt: skip
def test_traces_that_fail_when_they_are_run(trace: Any, lines: list[str], kind: Any, message: str) -> None:
    assert refusal(trace(*lines), kind) == message


def test_every_array_is_used(trace: Any) -> None:
    path = trace("//! load %r = r", r=LANES, s=LANES)
    assert refusal(path) == "t.ptx:2:10: error: no load or expect uses array 's'"


def test_arrays_have_a_value_for_every_lane_and_register(trace: Any) -> None:
    path = trace("//! load %r<2> = r", r=np.zeros((32, 3), np.uint32))
    assert refusal(path) == (
        "t.ptx:3:10: error: %r<2> takes a scalar or an array (32, 2), not an array (32, 3)"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe/\x00/\x00", "t.ptx:1:1: error: PTX is ASCII text, found '\\udcff'"),
        (b"//! target sm_80\n// caf\xc3\xa9\n", "t.ptx:2:7: error: PTX is ASCII text, found '\\xe9'"),
        (b"//! target sm_80\n\x00", "t.ptx:2:1: error: expected an instruction, found '\\x00'"),
    ],
)
def test_what_is_not_text_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "t.ptx"
    path.write_bytes(content)
    assert refusal(path, PtxError) == message


def test_a_text_has_a_size_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "LARGEST_TEXT", 100)
    path = tmp_path / "t.ptx"
    path.write_text("x" * 100)
    assert read_text(path) == "x" * 100
    path.write_text("x" * 101)
    assert refusal(path) == "t.ptx: more than 100 bytes"


# --- what a comparison finds -----------------------------------------------------------------------


def compared(trace: Any, accumulator: str, change: Callable[[Words], None]) -> Check:
    words, d = multiplied(accumulator)
    change(d)
    (check,) = checks(trace(*statements(accumulator), **words, d=d))
    return check


def test_the_first_difference_is_that_of_the_lowest_lane_and_register(trace: Any) -> None:
    def change(d: Words) -> None:
        d[20, 0] ^= 1
        d[7, 3] ^= 4
        d[7, 2] ^= 2

    check = compared(trace, "f32", change)
    assert (check.different, check.compared) == (3, 128)
    assert check.first is not None
    assert (check.first.lane, check.first.register) == (7, "%d2")


@pytest.mark.parametrize(
    ("bit", "place"), [(0, "D[1,6] (bits 15..0)"), (15, "D[1,6] (bits 15..0)"), (16, "D[1,7] (bits 31..16)")]
)
def test_which_half_of_an_f16_pair_differs(trace: Any, bit: int, place: str) -> None:
    _, d = multiplied("f16")
    form = warpsim.decode(DENSE.format("f16"), target="sm_90a")
    right, word = warpsim.unpack(form, "d", d), int(d[7, 0])
    d[7, 0] ^= np.uint32(1 << bit)
    wrong = warpsim.unpack(form, "d", d)
    column = 6 + bit // 16
    check = compared(trace, "f16", lambda d: np.bitwise_xor.at(d, (7, 0), np.uint32(1 << bit)))
    assert str(check.first) == (
        f"lane 7, register %d0: expected {word ^ 1 << bit:#010x}, got {word:#010x}; "
        f"{place}: expected {wrong[1, column]!s}, got {right[1, column]!s}"
    )


@pytest.mark.parametrize("accumulator", ["f16", "f32"])
def test_a_bit_of_m8n8k4_is_found_in_its_product(accumulator: str) -> None:
    """Every register of every lane, one bit in each element."""
    form = warpsim.decode(f"mma.sync.aligned.m8n8k4.row.col.{accumulator}.f16.f16.{accumulator}", "sm_70")
    count, each = form.registers["d"], 32 // form.d.bits
    names = "{" + ", ".join(f"%d{i}" for i in range(count)) + "}"
    c = "{" + ", ".join("%c" for _ in range(count)) + "}"
    text = f"{form.mnemonic} {names}, {{%a, %a}}, {{%b, %b}}, {c};"
    warp = warpsim.Warp("sm_70")
    warp["%a"] = warp["%b"] = warp["%c"] = 0
    warp.run(text)
    for lane, index, slot in np.ndindex(32, count, each):
        d = np.zeros((32, count), np.uint32)
        d[lane, index] = 1 << slot * form.d.bits
        ((product, row, column),) = np.argwhere(warpsim.unpack(form, "d", d))
        first = compare(warp, f"%d<{count}>", d, Location("t.ptx", 1)).first
        assert first is not None
        assert first.element is not None
        assert (first.lane, first.register) == (lane, f"%d{index}")
        found = first.element
        assert (found.product, found.row, found.column) == (product, row, column)
        assert found.actual == "0.0" != found.expected
        assert f"; D[{row},{column}] of product {product}" in str(first)


def test_a_register_that_was_overwritten_has_no_matrix_element(trace: Any) -> None:
    words, d = multiplied("f32")
    after = ["mov.b32 %d1, 0; mov.b32 %d0, %d2;", "//! expect %d1 = 0x1", "//! expect %d0 = 0x1"]
    path = trace(*statements("f32")[:-1], *after, **words)
    moved, copied = checks(path)
    assert str(moved.first) == "lane 0, register %d1: expected 0x00000001, got 0x00000000"
    assert copied.first is not None
    assert copied.first.element is not None
    assert (copied.first.element.row, copied.first.element.column) == (8, 0)
    assert copied.first.actual == d[0, 2]


# --- archives --------------------------------------------------------------------------------------


def test_arrays_come_back_as_they_were_written(tmp_path: Path) -> None:
    arrays = {
        "a": np.arange(64, dtype=np.uint32).reshape(32, 2),
        "file": np.array(5, np.uint64),
        "x y": np.array([True, False]),
        "big": np.arange(3, dtype=">u2"),
        "empty": np.zeros((0, 4), np.uint8),
        "turned": np.asfortranarray(np.arange(6, dtype=np.uint8).reshape(2, 3)),
    }
    write_arrays(tmp_path / "x.npz", arrays)
    back = read_arrays(tmp_path / "x.npz")
    assert back.keys() == arrays.keys()
    assert all(np.array_equal(back[name], arrays[name]) for name in arrays)
    assert [path.name for path in tmp_path.iterdir()] == ["x.npz"]


def test_the_same_arrays_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("x", "y"):
        write_arrays(tmp_path / name, {"a": LANES})
    assert (tmp_path / "x").read_bytes() == (tmp_path / "y").read_bytes()


def test_numpy_reads_what_is_written_and_writes_what_is_read(tmp_path: Path) -> None:
    write_arrays(tmp_path / "x.npz", {"a": LANES})
    with np.load(tmp_path / "x.npz") as file:
        assert np.array_equal(file["a"], LANES)
    for write in (np.savez, np.savez_compressed):
        write(tmp_path / "y.npz", a=LANES)
        assert np.array_equal(read_arrays(tmp_path / "y.npz")["a"], LANES)


def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    write_arrays(path, {"a": LANES})
    before = path.read_bytes()
    with pytest.raises(ValueError, match="allow_pickle=False"):
        write_arrays(path, {"a": LANES, "b": np.array([None])})
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_only_regular_files_are_replaced(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="not a regular file"):
        write_arrays(tmp_path, {"a": LANES})
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        write_arrays(tmp_path / "pipe", {"a": LANES})


def npy(array: Any, **more: Any) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), **more)
    return stream.getvalue()


def lying_npy(header: str) -> bytes:
    """An .npy file with this header and four bytes of data."""
    text = header.encode("latin-1") + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(4)


def archive(path: Path, *members: tuple[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members:
            file.writestr(name, content)
    return path


ARRAY = "{'descr': '<u4', 'fortran_order': False, 'shape': (%s,), }"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.npy", npy(np.arange(4)), "array 'a' has dtype int64, not unsigned integers or bool"),
        ("a.npy", npy(np.ones(4)), "array 'a' has dtype float64, not unsigned integers or bool"),
        ("a.npy", npy(np.array(["x"])), "array 'a' has dtype <U1, not unsigned integers or bool"),
        ("a.npy", npy(np.zeros(2, "u4,u4")), "array 'a' has dtype "),
        ("a.npy", npy(np.array([{}]), allow_pickle=True),
         "array 'a' has dtype object, not unsigned integers or bool"),
        ("a.npy", npy(LANES, version=(3, 0)), "array 'a' has .npy version 3.0, not 1.0 or 2.0"),
        ("a.npy", npy(LANES)[:-4], "array 'a' claims 128 bytes, but has 124"),
        ("a.npy", npy(LANES) + b"1", "array 'a' claims 128 bytes, but has 129"),
        ("a.npy", lying_npy(ARRAY % "1000000000000"), "array 'a' claims 4,000,000,000,000 bytes, but has 4"),
        ("a.npy", lying_npy(ARRAY % "-1"), "array 'a' claims -4 bytes, but has 4"),
        ("a.npy", lying_npy(ARRAY % "-1, -1"), "cannot be read as an .npz file: "),
        ("a.npy", lying_npy("{'descr': '<u4'}"), "cannot be read as an .npz file: Header does not "),
        ("a.npy", lying_npy("{" * 500), "cannot be read as an .npz file: "),
        ("a.npy", lying_npy("-" * 9000), "cannot be read as an .npz file: "),
        ("a.npy", lying_npy(" " * 20000), "cannot be read as an .npz file: Header info length"),
        ("a.npy", lying_npy("{'descr': '<u4', 'fortran_order': False, 'shape': (1L,), }"),
         "cannot be read as an .npz file: Reading `.npy` or `.npz` file required additional header parsing"),
        ("a.npy", b"", "cannot be read as an .npz file: EOF: reading magic string"),
        ("a.npy", b"\x80\x04N.", "cannot be read as an .npz file: "),
        ("a.txt", b"hello", "member 'a.txt' is not an array (.npy)"),
        ("folder/", b"", "member 'folder/' is not an array (.npy)"),
    ],
)  # fmt: skip
def test_members_that_are_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = archive(tmp_path / "t.npz", (name, content))
    with pytest.raises(TraceError) as caught:
        read_arrays(path)
    assert caught.value.message.startswith(f"{path}: {message}")


def test_an_array_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"):
        path = archive(tmp_path / "t.npz", ("a.npy", npy(LANES)), ("a.npy", npy(LANES)))
    with pytest.raises(TraceError, match=r"array 'a' is there twice$"):
        read_arrays(path)


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = archive(tmp_path / "t.npz", ("a.npy", npy(np.zeros(1 << 20, np.uint8))))
    assert path.stat().st_size < 4000
    monkeypatch.setattr(archives, "LARGEST_ARCHIVE", (1 << 20) + 128)
    assert read_arrays(path)["a"].size == 1 << 20
    monkeypatch.setattr(archives, "LARGEST_ARCHIVE", 1 << 20)
    with pytest.raises(TraceError, match=r"1,048,704 bytes unpacked, more than 1,048,576$"):
        read_arrays(path)


def test_a_zip_bomb_with_a_lying_header_is_not_unpacked(tmp_path: Path) -> None:
    """The headers say 132 bytes, the stream holds a megabyte: no more than 132 bytes are taken."""
    content = npy(np.zeros(1 << 20, np.uint8))
    path = archive(tmp_path / "t.npz", ("a.npy", content))
    raw = path.read_bytes()
    lies = {len(content): 132, zlib.crc32(content): zlib.crc32(content[:132])}
    for truth, lie in lies.items():
        assert raw.count(struct.pack("<I", truth)) == 2
        raw = raw.replace(struct.pack("<I", truth), struct.pack("<I", lie))
    path.write_bytes(raw)
    with pytest.raises(TraceError, match=r"array 'a' claims 1,048,576 bytes, but has 4$"):
        read_arrays(path)


def patched(raw: bytes, offset: int, value: int) -> bytes:
    """An archive of one member with a 16-bit field changed in both of its headers."""
    content = bytearray(raw)
    for start, place in ((0, offset), (raw.index(b"PK\x01\x02"), offset + 2)):
        content[start + place : start + place + 2] = struct.pack("<H", value)
    return bytes(content)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda raw: b"",
    "no zip": lambda raw: b"PK" + bytes(100),
    "cut in half": lambda raw: raw[: len(raw) // 2],
    "cut at the end": lambda raw: raw[:-1],
    "wrong checksum": lambda raw: raw.replace(raw[14:18], bytes(4)),
    "spoiled data": lambda raw: raw[:60] + bytes([raw[60] ^ 0xFF]) + raw[61:],
    "encrypted": lambda raw: patched(raw, 6, 1),
    "unknown compression": lambda raw: patched(raw, 8, 99),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_archives_are_refused(tmp_path: Path, name: str) -> None:
    path = archive(tmp_path / "t.npz", ("a.npy", npy(np.arange(999, dtype=np.uint32))))
    read_arrays(path)
    path.write_bytes(DAMAGES[name](path.read_bytes()))
    with pytest.raises(TraceError) as caught:
        read_arrays(path)
    assert caught.value.message.startswith(f"{path}: cannot be read as an .npz file: ")


def test_every_flipped_byte_of_an_archive_is_read_right_or_refused(tmp_path: Path) -> None:
    """No damage to a file gives anything but its arrays or a TraceError."""
    path = archive(tmp_path / "t.npz", ("a.npy", npy(LANES)))
    raw = path.read_bytes()
    for place in range(len(raw)):
        for change in (0xFF, 0x01):
            path.write_bytes(raw[:place] + bytes([raw[place] ^ change]) + raw[place + 1 :])
            try:
                arrays = read_arrays(path)
            except TraceError:
                continue
            assert all(np.array_equal(array, LANES) for array in arrays.values())


def test_a_run_without_checks_passes(trace: Any) -> None:
    run = run_trace(read_trace(trace("//! load %r = 0x1")))
    assert isinstance(run, Run)
    assert run.passed
