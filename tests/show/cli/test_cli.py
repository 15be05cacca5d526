"""The command line: what it prints where, its exit codes, and that nothing makes it fail otherwise."""

from __future__ import annotations

import itertools
import json
import os
import pty
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import warpsim
from tests.helpers.families import sample, usual
from warpsim.base.files.archives import read_arrays, write_arrays
from warpsim.isa.families import tcgen05
from warpsim.show.cli import main
from warpsim.workbench.explanation.information import evidence_document

TRACES = Path(__file__).parents[3] / "traces"
FORM = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
DENSE = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"

PASSING = """\
//! target sm_90a
.reg .b32 %r;
//! load %r = 0x5
//! expect %r = 0x5
"""
FAILING = PASSING.replace("expect %r = 0x5", "expect %r = 0x7")
UNMODELLED = "//! target sm_90a\nbra.uni L1;\n"
BROKEN = "//! target sm_90a\nmov.b32 %r %s;\n"
UNSET = "//! target sm_90a\nmov.b32 %r, %s;\n"

MULTIPLY = f"""\
//! target sm_90a
//! load %a<4> = 0x3c003c00
//! load %c<4> = 0x3f800000
{DENSE} {{%d0, %d1, %d2, %d3}}, {{%a0, %a1, %a2, %a3}}, {{%a0, %a1}}, {{%c0, %c1, %c2, %c3}};
//! expect %d<4> = 0x41880000
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test runs in a folder of its own, so that messages name files as they are given."""
    monkeypatch.chdir(tmp_path)
    for name, text in (
        ("pass", PASSING), ("fail", FAILING), ("unmodelled", UNMODELLED), ("broken", BROKEN),
        ("unset", UNSET), ("multiply", MULTIPLY),
    ):  # fmt: skip
        (tmp_path / f"{name}.ptx").write_text(text)
    return tmp_path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command in this process: exit code, stdout and stderr."""

    def command(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as caught:
            main(list(arguments))
        assert isinstance(caught.value.code, int)
        return (caught.value.code, *capsys.readouterr())

    return command


def started(*arguments: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    """Runs ``python -m warpsim`` as a process of its own."""
    command = [sys.executable, "-m", "warpsim", *arguments]
    given = {"capture_output": True, "text": True, "check": False} | settings
    return subprocess.run(command, **given)


# --- run: text -------------------------------------------------------------------------------------


def test_a_trace_that_passes(run: Any) -> None:
    assert run("run", "pass.ptx") == (
        0,
        "pass.ptx: sm_90a, 0 matrix instructions\n"
        "  line 4: %r: 32 words as expected\n"
        "  passed: 1 check, 32 words compared bit by bit\n",
        "",
    )


def test_a_trace_that_fails(run: Any) -> None:
    assert run("run", "fail.ptx") == (
        1,
        "fail.ptx: sm_90a, 0 matrix instructions\n"
        "  line 4: %r: 32 of 32 words differ\n"
        "    first: lane 0, register %r: expected 0x00000007, got 0x00000005\n"
        "  FAILED: 1 check, 32 words compared bit by bit\n",
        "",
    )


def test_a_matrix_is_shown_with_its_evidence(run: Any) -> None:
    code, out, _ = run("run", "multiply.ptx")
    lines = out.splitlines()
    assert code == 0
    assert lines[:5] == [
        "multiply.ptx: sm_90a, 1 matrix instruction",
        f"  line 4: {DENSE}",
        f"  {warpsim.evidence(DENSE, 'sm_90a')}",
        "  D (16 x 8, f32):",
        "      0   1   2   3   4   5   6   7",
    ]
    assert lines[5:21] == [f" {row:2}" + "  17" * 8 for row in range(16)]
    assert lines[21:] == [
        "  line 5: %d<4>: 128 words as expected",
        "  passed: 1 check, 128 words compared bit by bit",
    ]


@pytest.mark.parametrize(("show", "matrices"), [("none", 0), ("last", 1), ("all", 2)])
def test_which_matrices_are_shown(run: Any, folder: Path, show: str, matrices: int) -> None:
    lines = MULTIPLY.splitlines()
    (folder / "two.ptx").write_text("\n".join([*lines[:-1], lines[3]]))
    _, out, _ = run("run", "two.ptx", "--show", show)
    assert out.count("D (16 x 8, f32):") == matrices


def test_the_four_products_of_m8n8k4_are_shown(run: Any, folder: Path) -> None:
    loads = "".join(f"//! load %{role} = 0x0\n" for role in "abc")
    form = "mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16"
    text = f"{form} {{%d0, %d1, %d2, %d3}}, {{%a, %a}}, {{%b, %b}}, {{%c, %c, %c, %c}};\n"
    (folder / "volta.ptx").write_text(f"//! target sm_70\n{loads}{text}")
    _, out, _ = run("run", "volta.ptx")
    for product in range(4):
        assert f"  D of product {product} (8 x 8, f16):\n" in out


def test_integers_are_shown_whole(run: Any, folder: Path) -> None:
    form = "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32"
    loads = "//! load %a = 0x0\n//! load %b = 0x0\n//! load %c = 0x92345678\n"
    text = f"//! target sm_80\n{loads}{form} {{%d0, %d1}}, {{%a}}, {{%b}}, {{%c, %c}};\n"
    (folder / "i.ptx").write_text(text)
    _, out, _ = run("run", "i.ptx")
    assert out.splitlines()[5] == " 0" + "  -1842063752" * 8


def test_several_traces_are_counted_and_the_worst_decides(run: Any) -> None:
    for names, code, passed in (
        (["pass", "pass"], 0, "2 of 2"),
        (["pass", "fail"], 1, "1 of 2"),
        (["fail", "unmodelled", "pass"], 4, "1 of 3"),
        (["unmodelled", "broken", "fail"], 3, "0 of 3"),
    ):
        got, out, _ = run("run", *[f"{name}.ptx" for name in names])
        assert (got, out.splitlines()[-1]) == (code, f"{passed} traces passed")


@pytest.mark.parametrize("engine", ["kernel", "reference"])
def test_engines(run: Any, engine: str) -> None:
    code, out, _ = run("run", "multiply.ptx", "--engine", engine, "--json")
    assert code == 0
    assert json.loads(out)["runs"][0]["engine"] == engine


def test_another_target(run: Any) -> None:
    _, out, _ = run("run", "multiply.ptx", "--target", "sm_80", "--show", "none")
    assert out.startswith("multiply.ptx: sm_80, 1 matrix instruction\n")


def test_a_file_that_names_no_target_or_does_as_a_module(run: Any, folder: Path) -> None:
    (folder / "plain.ptx").write_text("mov.b32 %r, 1;\n//! expect %r = 0x1\n")
    (folder / "module.ptx").write_text(".version 8.0\n.target sm_90a\nmov.b32 %r, 1;\n//! expect %r = 0x1\n")
    other = ("--target", "sm_80")
    lines = [run("run", *one)[1] for one in (("plain.ptx", *other), ("module.ptx",), ("module.ptx", *other))]
    named = ["plain.ptx: sm_80", "module.ptx: sm_90a", "module.ptx: sm_80"]
    assert [line.partition(",")[0] for line in lines] == named


def test_undefined_metadata_needs_leave(run: Any, folder: Path) -> None:
    operands = "{%d0,%d1,%d2,%d3}, {%a0,%a1,%a2,%a3}, {%a0,%a1,%a2,%a3}, {%a0,%a1,%a2,%a3}, %a0, 0"
    (folder / "u.ptx").write_text(f"//! target sm_90a\n//! load %a<4> = 0x0\n{FORM} {operands};\n")
    code, out, err = run("run", "u.ptx")
    assert (code, out) == (3, "")
    assert err.startswith(
        "u.ptx:3:148: error: metadata field 0b0000 in lane 0, bits 3..0 (row 0, chunk 0): "
        "indices 0, 0 are equal, which PTX leaves undefined\n"
    )
    assert run("run", "u.ptx", "--allow-undefined")[0] == 0


# --- diagnostics -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("broken.ptx", 3,
         "broken.ptx:2:12: error: expected ',' or ';', found '%s'\n    mov.b32 %r %s;\n               ^~\n"),
        ("unset.ptx", 3,
         "unset.ptx:2:13: error: register %s is read, but nothing has been written to it\n"
         "    mov.b32 %r, %s;\n                ^~\n"),
        ("unmodelled.ptx", 4,
         "unmodelled.ptx:2:1: error: 'bra.uni' is not modelled in a warp: statements are executed in order; "
         "a launched kernel may execute it\n    bra.uni L1;\n    ^~~~~~~\n"),
        ("none.ptx", 3, "none.ptx: error: No such file or directory\n"),
        (".", 3, ".: error: Is a directory\n"),
        ("pass.ptx/x", 3, "pass.ptx/x: error: Not a directory\n"),
        ("", 3, ".: error: Is a directory\n"),
        ("x" * 300, 3, "x" * 300 + ": error: File name too long\n"),
        (os.devnull, 3,
         f"{os.devnull}:1:1: error: the trace names no target: add a line '//! target sm_90a' or "
         "'.target sm_90a', or give target='sm_…' (--target sm_…)\n"),
        ("/dev/zero", 3, "/dev/zero: error: expected a file or a pipe, given a device\n"),
    ],
)  # fmt: skip
def test_diagnostics_go_to_stderr_as_ptxas_has_them(run: Any, name: str, code: int, message: str) -> None:
    assert run("run", name) == (code, "", message)


INPUTS = {
    "empty": b"",
    "binary": bytes(range(256)) * 20,
    "zeros": bytes(5000),
    "utf-16": PASSING.encode("utf-16"),
    "byte order mark": b"\xef\xbb\xbf" + PASSING.encode(),
    "one huge line": b"//! target sm_90a\nmov.b32 " + b"{%r1," * 200_000,
    "huge list": b"//! target sm_90a\nmov.b32 %r, {" + b"%r1," * 200_000 + b"%r1};",
    "huge binding": b"//! target sm_90a\n//! load %r = " + b"0x1 " * 200_000,
    "huge name": b"//! target sm_90a\nmov.b32 %" + b"r" * 200_000 + b", %s;",
    "huge range": b"//! target sm_90a\n//! load %r<999999999> = 0x1\n",
    "huge declaration": b"//! target sm_90a\n.reg .b32 %r<999999999>;\n",
    "deep braces": b"//! target sm_90a\n" + b"{" * 5000,
    "deep blocks": b"//! target sm_90a\n" + b"{" * 99 + b"mov.b32 %r, %s;" + b"}" * 99,
    "deep parentheses": b"//! target sm_90a\nmov.b32 %r, " + b"(" * 5000,
    "open comment": b"//! target sm_90a\n/* never closed",
    "no semicolon": b"//! target sm_90a\nmov.b32 %r, %s",
    "no operands": b"//! target sm_90a\nmov.b32;",
    "only modifiers": b"//! target sm_90a\nmma.sync.aligned;",
    "kernel": b"//! target sm_90a\n.visible .entry k() { //! load %r = 0x1\n ret; }",
    "no such data": b"//! target sm_90a\n//! data none.npz\n",
    "data is a folder": b"//! target sm_90a\n//! data folder.npz\n",
    "data is empty": b"//! target sm_90a\n//! data empty.npz\n",
    "data is cut": b"//! target sm_90a\n//! data cut.npz\n",
    "data is text": b"//! target sm_90a\n//! data pass.ptx\n",
    "data is pickled": b"//! target sm_90a\n//! data pickle.npz\n",
    "data lacks an array": b"//! target sm_90a\n//! data good.npz\n//! load %r = b\n",
}


@pytest.mark.parametrize("name", INPUTS)
def test_malformed_inputs_end_in_a_diagnostic(run: Any, folder: Path, name: str) -> None:
    write_arrays(folder / "good.npz", {"a": np.zeros(32, np.uint32)})
    (folder / "folder.npz").mkdir()
    (folder / "empty.npz").write_bytes(b"")
    (folder / "cut.npz").write_bytes((folder / "good.npz").read_bytes()[:-30])
    np.savez(folder / "pickle.npz", a=np.array([{}], object))
    (folder / "t.ptx").write_bytes(INPUTS[name])
    code, out, err = run("run", "t.ptx")
    assert code in (3, 4)
    assert out == ""
    assert err.startswith("t.ptx:")
    assert " error: " in err
    assert max(map(len, err.splitlines())) < 2000 or name == "huge name"
    json_code, json_out, json_err = run("run", "t.ptx", "--json")
    ((error,), none) = json.loads(json_out)["errors"], json.loads(json_out)["runs"]
    assert (json_code, json_err, none) == (code, err, [])
    assert err.startswith(f"t.ptx:{error['line']}:{error['column']}: error: {error['message']}")


PIECES = st.sampled_from(
    [
        "//! target sm_90a\n", "//! data t.npz\n", "//! load ", "//! expect ", "%r", "%r<4>", " = ", "0x1",
        "\n", ";", "{", "}", ",", ".reg .b32 %r<4>;", ".reg .pred %p;", "mov.b32 ", "mov.b64 ", "%laneid",
        "a", "@%p ", "{%r0, %r1}",
        f"{DENSE} {{%d0,%d1,%d2,%d3}}, {{%a0,%a1,%a2,%a3}}, {{%b0,%b1}}, {{%c0,%c1,%c2,%c3}};",
        "//! load %a<4> = 0x0\n//! load %b<4> = 0x0\n//! load %c<4> = 0x0\n", "_", "1.5", "/*", "\x00", "é",
        "(", "-",
    ]
)  # fmt: skip


@settings(
    deadline=None, max_examples=usual(150, 300), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(PIECES, max_size=12).map("".join))
def test_no_text_makes_it_fail_otherwise(folder: Path, text: str) -> None:
    (folder / "t.ptx").write_text("//! target sm_90a\n" + text, encoding="utf-8")
    with pytest.raises(SystemExit) as caught:
        main(["run", "t.ptx", "--json"])
    assert caught.value.code in (0, 1, 3, 4)


# --- run: JSON and files ---------------------------------------------------------------------------


def test_the_json_of_a_run(run: Any) -> None:
    code, out, err = run("run", "fail.ptx", "--json")
    assert (code, err) == (1, "")
    difference = {"lane": 0, "register": "%r", "expected": "0x00000007", "actual": "0x00000005"}
    check = {"line": 4, "registers": "%r", "compared": 32, "different": 32, "first": difference}
    trace = {"trace": "fail.ptx", "target": "sm_90a", "engine": "kernel", "passed": False}
    assert json.loads(out) == {"runs": [{**trace, "instructions": [], "checks": [check]}], "errors": []}


def test_the_json_of_a_matrix_instruction(run: Any, folder: Path) -> None:
    (folder / "m.ptx").write_text(MULTIPLY.replace("0x41880000", "0x41880001"))
    _, out, _ = run("run", "m.ptx", "--json")
    (document,) = json.loads(out)["runs"]
    (event,) = document["instructions"]
    assert event.keys() == {"line", "mnemonic", "evidence", "d", "words"}
    assert (event["line"], event["mnemonic"]) == (4, DENSE)
    assert event["evidence"]["label"] == "validated"
    assert event["d"] == ["%d0", "%d1", "%d2", "%d3"]
    assert event["words"] == [["0x41880000"] * 4] * 32
    assert document["checks"][0]["first"] == {
        "lane": 0, "register": "%d0", "expected": "0x41880001", "actual": "0x41880000",
        "row": 0, "column": 0, "expected_value": "17.000002", "actual_value": "17.0",
    }  # fmt: skip


def test_the_json_lists_errors_and_runs(run: Any) -> None:
    names = ["pass.ptx", "broken.ptx", "none.ptx", "unmodelled.ptx"]
    code, out, err = run("run", *names, "--json")
    document = json.loads(out)
    assert code == 3
    assert [one["trace"] for one in document["runs"]] == ["pass.ptx"]
    assert document["errors"] == [
        {"file": "broken.ptx", "line": 2, "column": 12, "kind": "PtxError",
         "message": "expected ',' or ';', found '%s'"},
        {"file": "none.ptx", "line": None, "column": None, "kind": "TraceError",
         "message": "No such file or directory"},
        {"file": "unmodelled.ptx", "line": 2, "column": 1, "kind": "NotModelled",
         "message": "'bra.uni' is not modelled in a warp: statements are executed in order; a "
         "launched kernel may execute it"},
    ]  # fmt: skip
    assert err.count("error:") == 3


def test_the_registers_can_be_written(run: Any, folder: Path) -> None:
    assert run("run", "multiply.ptx", "--out", "o.npz")[0] == 0
    registers = read_arrays(folder / "o.npz")
    assert list(registers) == [f"%{role}{i}" for role in "acd" for i in range(4)]
    assert registers["%d3"].tolist() == [0x41880000] * 32
    assert run("run", "fail.ptx", "--out", "o.npz")[0] == 1
    assert list(read_arrays(folder / "o.npz")) == ["%r"]


@pytest.mark.parametrize("name", ["broken.ptx", "none.ptx"])
def test_nothing_is_written_for_a_trace_that_does_not_run(run: Any, folder: Path, name: str) -> None:
    before = sorted(folder.iterdir())
    assert run("run", name, "--out", "o.npz")[0] == 3
    assert sorted(folder.iterdir()) == before


def test_where_the_registers_cannot_be_written(run: Any, folder: Path) -> None:
    code, out, err = run("run", "pass.ptx", "--out", "none/o.npz")
    assert (code, err) == (3, "none/o.npz: error: No such file or directory\n")
    assert out.endswith("  passed: 1 check, 32 words compared bit by bit\n")
    code, out, _ = run("run", "pass.ptx", "--out", os.devnull, "--json")
    assert code == 3
    document = json.loads(out)
    assert document["runs"][0]["passed"]
    assert document["errors"][0]["message"] == "not a regular file"
    assert Path(os.devnull).is_char_device()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "Error: Missing argument 'TRACE|RECORDING...'."),
        (["run", "pass.ptx", "--target", "sm_1"],
         "Error: Invalid value for '--target': unknown target 'sm_1'; known are sm_70, "),
        (["run", "pass.ptx", "--engine", "x"], "Error: Invalid value for '--engine': 'x' is not one of "),
        (["run", "pass.ptx", "--show", "x"], "Error: Invalid value for '--show': 'x' is not one of "),
        (["run", "pass.ptx", "--out", "."],
         "Error: Invalid value for '-o' / '--out': File '.' is a directory."),
        (["run", "pass.ptx", "fail.ptx", "--out", "o.npz"],
         "Error: --out takes the registers of one trace, but several traces are given"),
        (["run", "--bogus"], "Error: No such option"),
        (["bogus"], "Error: No such command 'bogus'."),
        (["verfy"], "Error: No such command 'verfy'. Is it verify?"),
        (["info", "--target", "x"], "Error: Invalid value for '--target': unknown target 'x'; known are sm"),
        (["info", "--ptx-version", "9"],
         "Error: Invalid value for '--ptx-version': PTX version '9': expected major.minor, such as '8.5'"),
        (["info", "a", "b"], "Error: Got unexpected extra argument (b)"),
    ],
)  # fmt: skip
def test_usage_errors(run: Any, arguments: list[str], message: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("Usage: warpsim ")
    assert err.splitlines()[-1].startswith(message)


# --- info ------------------------------------------------------------------------------------------


def every_form(target: str | None) -> list[warpsim.Instruction]:
    """The forms whose mnemonic states the product, and tcgen05.mma with a typical descriptor."""
    described = (
        replace(form, target=target) for form in tcgen05.typical() if target in (None, *form.targets)
    )
    return [*warpsim.instructions(target), *described]


def test_info_lists_every_form(run: Any) -> None:
    code, out, _ = run("info")
    header, *rows, count = out.splitlines()
    assert code == 0
    assert header.split() == ["form", "registers", "d/a/b/c", "PTX", "targets"]
    assert [row.split()[0] for row in rows] == [form.mnemonic for form in every_form(None)]
    assert count == f"{len(rows)} forms"


def test_info_of_a_target_adds_the_evidence(run: Any) -> None:
    _, out, _ = run("info", "--target", "sm_80")
    header, *rows, _ = out.splitlines()
    assert header.split()[-1] == "evidence"
    forms = list(warpsim.instructions("sm_80"))
    assert [row.split()[-1] for row in rows] == [warpsim.evidence(form).label for form in forms]


def test_info_of_a_form_on_a_target(run: Any) -> None:
    code, out, err = run("info", FORM, "--target", "sm_90a")
    assert (code, err) == (0, "")
    assert out.splitlines()[:8] == [
        FORM,
        "  shape      m16n8k32, 16 stored columns",
        "  d          4 registers of 32 bits: 16 x 8 f32, 32 bits an element",
        "  a          4 registers of 32 bits: 16 x 16 f16, 16 bits an element",
        "  b          4 registers of 32 bits: 32 x 8 f16, 16 bits an element",
        "  c          4 registers of 32 bits: 16 x 8 f32, 32 bits an element",
        "  metadata   1 register, 2:4 sparsity, selector 0, 1",
        "  PTX        8.5, on sm_80 and later",
    ]
    assert out.splitlines()[8:] == [
        "  sm_90a     FusedSum(length 16, fraction_bits 25, output f32 (24 bits, toward zero), "
        "exponent_floor -133)",
        f"             {warpsim.evidence(FORM, 'sm_90a')}",
    ]


def test_info_puts_targets_of_one_rule_together(run: Any) -> None:
    _, out, _ = run("info", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
    assert "\n  sm_90, sm_90a FusedSum(length 16, fraction_bits 25, " in out
    form = warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
    assert all(target in out for target in form.targets)


def test_info_tells_of_scales(run: Any) -> None:
    form = (
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
    )
    _, out, _ = run("info", form)
    assert "\n  scales     4 of ue4m3 a row of A and a column of B\n" in out


@pytest.mark.parametrize("target", [None, "sm_80", "sm_90a", "sm_120a"])
def test_info_describes_every_form(run: Any, target: str | None) -> None:
    options = ["--target", target] if target else []
    code, out, _ = run("info", "--json", *options)
    document = json.loads(out)
    assert (code, document["errors"]) == (0, [])
    forms = every_form(target)
    assert [one["mnemonic"] for one in document["forms"]] == [form.mnemonic for form in forms]
    for one, form in zip(document["forms"], forms, strict=True):
        assert one["registers"] == form.registers
        assert one["target"] == target
        assert set(one["rules"]) == ({target} if target else set(form.targets))
        assert one.get("selectors", []) == list(form.selectors)
        assert one.get("stored_k", form.shape.k) == form.stored_k
        labels = {rule["evidence"]["label"] for rule in one["rules"].values()}
        assert labels <= {"documented", "validated", "reported", "inferred"}


def test_the_json_of_a_rule(run: Any) -> None:
    """The parameters of a step are there, its evidence is that of the rule, once."""
    form = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"
    _, out, _ = run("info", form, "--target", "sm_90", "--json")
    ((document,), none) = json.loads(out).values()
    output = {"format": "f32", "precision": 24, "nearest": False}
    assert none == []
    assert document["since"] == "8.4"
    assert document["rules"]["sm_90"] == {
        "rule": "EmulatedF8",
        "step": {"length": 16, "fraction_bits": 25, "output": output, "exponent_floor": -133},
        "evidence": evidence_document(warpsim.evidence(form, "sm_90")),
    }


def test_info_goes_by_a_ptx_version(run: Any) -> None:
    later = (
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue8m0"
    )
    code, out, err = run("info", later, "--ptx-version", "9.0")
    assert (code, out) == (3, "")
    assert "needs PTX ISA 9.1; this is read as 9.0" in err
    for chosen in ("--ptx-version", "9.1"), ():
        code, out, err = run("info", later, *chosen, "--target", "sm_120a")
        assert (code, err) == (0, "")
        assert "  PTX        9.1, on sm_120a" in out
        listed = [line.split()[0] for line in run("info", *chosen)[1].splitlines()]
        assert later in listed
    early = run("info", "--ptx-version", "7.0", "--target", "sm_80")[1].splitlines()[1:-1]
    forms = list(warpsim.instructions("sm_80", (7, 0)))
    assert [line.split()[0] for line in early] == [form.mnemonic for form in forms]
    assert max(form.since for form in forms) == (7, 0)
    code, _, err = run("info", "--ptx-version", "7.0", "--target", "sm_120a")
    assert code == 3
    assert "sm_120a needs PTX ISA 8.7; this is read as 7.0" in err


def test_info_of_an_illegal_form(run: Any) -> None:
    wrong = FORM.replace("m16n8k32", "m16n8k64")
    code, out, err = run("info", wrong, "--json")
    assert code == 3
    (error,) = json.loads(out)["errors"]
    assert json.loads(out)["forms"] == []
    assert error["kind"] == "IllegalInstruction"
    assert err.splitlines()[0] == f"<string>:1:{error['column']}: error: {error['message']}"
    assert run("info", wrong) == (3, "", err)
    assert run("info", "wgmma.mma_async.sync.aligned")[0] in (3, 4)


# --- the process -----------------------------------------------------------------------------------


def test_it_runs_as_a_module_and_as_a_command() -> None:
    assert started("--version").stdout == f"warpsim, version {warpsim.__version__}\n"
    command = Path(sysconfig.get_path("scripts")) / "warpsim"
    done = subprocess.run([command, "run", "fail.ptx"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (["--help"], {"numpy", "numba", "rich", "ml_dtypes"}),
        (["run", "--help"], {"numpy", "numba", "rich", "ml_dtypes"}),
        (["info", FORM], {"numba"}),
        (["info", "--json"], {"numba"}),
        (["run", "pass.ptx"], {"numba", "rich"}),
        (["run", "multiply.ptx", "--engine", "reference"], {"numba", "rich", "warpsim.workbench.vectors"}),
    ],
)
def test_what_is_imported_when(arguments: list[str], absent: set[str]) -> None:
    script = (
        "import sys, warpsim.show.cli\n"
        "try: warpsim.show.cli.main(sys.argv[1:])\n"
        "except SystemExit as error: assert error.code == 0, error.code\n"
        "sys.stderr.write(' '.join(sys.modules))"
    )
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert absent & set(done.stderr.split()) == set()


def test_a_bare_import_is_light() -> None:
    script = "import sys, warpsim; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize("arguments", [["info"], ["run", "fail.ptx", "multiply.ptx"], ["info", "--json"]])
def test_a_reader_that_leaves_is_no_mishap(arguments: list[str]) -> None:
    """As with ``| head -1``: no traceback, and the exit code of the work itself."""
    command = [sys.executable, "-m", "warpsim", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == (1 if "fail.ptx" in arguments else 0)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_reported() -> None:
    with open("/dev/full", "w") as full:
        done = started("run", "pass.ptx", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (
        3,
        "warpsim: error: cannot write the output: No space left on device\n",
    )


PRINTING = [
    *(
        "run pass.ptx",
        "run pass.ptx --json",
        "lint pass.ptx",
        "verify pass.ptx",
        "view pass.ptx -o page.html",
    ),
    *("--help", "--version", "run --help", "info", "layout FORM", "info FORM"),
    *("vectors FORM --target sm_80 -n 2 -o v.npz", "vectors FORM --target sm_80 -n 2 --coverage"),
]


@pytest.mark.parametrize(
    ("words", "stream"),
    sample(itertools.product(PRINTING, (">&-", "<&- >&-", ">/dev/full")), 4),
)
def test_a_stdout_that_takes_no_text_is_an_output_that_cannot_be_written(
    words: str, stream: str, folder: Path
) -> None:
    words = words.replace("FORM", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    command = f'"{sys.executable}" -m warpsim {words} {stream}'
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True, check=False, cwd=folder)
    reason = "No space left on device" if "full" in stream else "Bad file descriptor"
    assert (done.returncode, done.stderr) == (3, f"warpsim: error: cannot write the output: {reason}\n")


def test_a_closed_stdout_is_not_replaced_by_a_file(folder: Path) -> None:
    """Its number is taken: what a child prints gets into no file that is open."""
    command = f'"{sys.executable}" -m warpsim exec sh -c "echo text" >&-'
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True, check=False, cwd=folder)
    assert done.returncode == 1, done.stderr
    assert "echo: " in done.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams_are_no_mishap(closed: str) -> None:
    command = f'"{sys.executable}" -m warpsim run fail.ptx broken.ptx {closed}'
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [["--json"], []])
def test_file_names_may_be_any_bytes(folder: Path, arguments: list[str]) -> None:
    name = os.fsdecode(b"\xff[bold]\xe9.ptx")
    (folder / name).write_text(PASSING)
    done = started("run", name, name + "x", *arguments, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 3
    assert done.stderr == "\\udcff[bold]\\udce9.ptxx: error: No such file or directory\n"
    if arguments:
        assert json.loads(done.stdout)["runs"][0]["trace"] == name
    else:
        assert done.stdout.startswith("\\udcff[bold]\\udce9.ptx: sm_90a, 0 matrix instructions\n")


def test_an_interrupt_has_its_own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(path: Path, target: str | None) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("warpsim.workbench.traces.reading.read_trace", interrupted)
    with pytest.raises(SystemExit) as caught:
        main(["run", "pass.ptx"])
    assert caught.value.code == 130


# --- terminals -------------------------------------------------------------------------------------


def read_all(descriptor: int) -> Iterator[bytes]:
    """What a terminal shows until its other side is closed."""
    while True:
        try:
            part = os.read(descriptor, 65536)
        except OSError:
            return
        if not part:
            return
        yield part


def on_terminal(*arguments: str, stdout: bool, **environment: str) -> tuple[str, str]:
    """What a process shows on a terminal (stderr, and stdout too if asked for), and what it pipes."""
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "warpsim", *arguments]
    plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
    with subprocess.Popen(
        command, stdout=slave if stdout else subprocess.PIPE, stderr=slave, env=plain | environment
    ) as process:
        os.close(slave)
        shown = b"".join(read_all(master)).decode()
        piped = process.stdout.read().decode() if process.stdout else ""
    os.close(master)
    return shown, piped


def test_colours_are_for_terminals_only() -> None:
    passed, failed = "\x1b[32m  passed", "\x1b[31m  FAILED"
    shown, _ = on_terminal("run", "pass.ptx", "fail.ptx", stdout=True, TERM="xterm-256color")
    assert passed in shown
    assert failed in shown
    for settings_ in ({"TERM": "xterm", "NO_COLOR": "1"}, {"TERM": "dumb"}):
        shown, _ = on_terminal("run", "pass.ptx", "fail.ptx", stdout=True, **settings_)
        assert "  FAILED" in shown
        assert "\x1b" not in shown
    assert "\x1b" not in started("run", "fail.ptx", env=os.environ | {"TERM": "xterm"}).stdout


def test_progress_is_shown_where_results_go_elsewhere() -> None:
    names = ("pass.ptx", "broken.ptx", "fail.ptx")
    terminal = {"TERM": "xterm-256color", "WARPSIM_PROGRESS_AFTER": "0"}
    shown, piped = on_terminal("run", *names, stdout=False, **terminal)
    assert "running" in shown
    assert "broken.ptx:2:12: error: expected ',' or ';'" in shown
    assert piped == started("run", *names).stdout
    assert piped.endswith("1 of 3 traces passed\n")
    shown, piped = on_terminal("run", *names, "--json", stdout=False, **terminal)
    assert "running" in shown
    shown, _ = on_terminal("run", str(TRACES / "mma_m16n8k16_f16.ptx"), stdout=False, **terminal)
    assert "running" in shown
    patient = terminal | {"WARPSIM_PROGRESS_AFTER": "60"}
    shown, _ = on_terminal("run", *names, stdout=False, **patient)
    assert "running" not in shown  # over before it is worth it
    assert len(json.loads(piped)["runs"]) == 2


@pytest.mark.parametrize("names", [["pass.ptx"], ["pass.ptx", "fail.ptx"]])
def test_progress_does_not_stand_between_results(names: list[str]) -> None:
    shown, _ = on_terminal("run", *names, stdout=True, TERM="xterm-256color", WARPSIM_PROGRESS_AFTER="0")
    assert "running" not in shown
    assert "running" not in started("run", *names).stderr


# --- flipped bits ----------------------------------------------------------------------------------


def test_a_flipped_bit_is_found_and_named(run: Any, folder: Path) -> None:
    """The bit is flipped in a copy of the archive by its bytes alone, with nothing of ours."""
    name = "mma_sp_m16n8k32_f16"
    (folder / f"{name}.ptx").write_bytes((TRACES / f"{name}.ptx").read_bytes())
    with np.load(TRACES / f"{name}.npz") as file:
        arrays = dict(file)
    right = int(arrays["d3"][13, 2])
    arrays["d3"][13, 2] ^= 1 << 9
    with zipfile.ZipFile(folder / f"{name}.npz", "w") as archive:
        for key, array in arrays.items():
            with archive.open(f"{key}.npy", "w") as member:
                np.save(member, array)
    code, out, err = run("run", f"{name}.ptx", "--show", "none")
    wrong = np.uint32(right ^ 1 << 9).view(np.float32)
    assert (code, err) == (1, "")
    assert out.splitlines()[4:] == [
        "  line 75: %d3_<4>: 1 of 128 words differ",
        f"    first: lane 13, register %d3_2: expected {right ^ 1 << 9:#010x}, got {right:#010x}; "
        f"D[11,2]: expected {wrong!s}, got {np.uint32(right).view(np.float32)!s}",
        "  FAILED: 4 checks, 384 words compared bit by bit",
    ]
