"""``warpsim check``: modules looked at without running them; what it says of wgmma is what ptxas says."""

from __future__ import annotations

import json
import re
import subprocess

import pytest

from tests.helpers import ptxas
from tests.helpers.command_runner import CliRunner
from warpsim.ptx.parser import parse
from warpsim.show.cli import cli
from warpsim.workbench.diagnosis.linting.pipelines import pipeline_findings

GOOD = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p) { .reg .b32 %r<4>; add.u32 %r1, %r2, 3; ret; }
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(folder, text, *options):
    (folder / "k.ptx").write_text(text)
    return CliRunner().invoke(cli, ["check", "k.ptx", *options], standalone_mode=False)


def test_a_good_module(folder):
    result = check(folder, GOOD)
    assert (result.return_value, result.output) == (
        0,
        "k.ptx: sm_80, PTX 8.0: k; 2 statements: nothing found\n",
    )


def test_every_problem_is_listed(folder):
    text = GOOD.replace("add.u32", "mul.wied.u32 %r1, %r2, %r3; frob.x %r1; addd.u32 %r1, %r2; add.u32")
    result = check(folder, text)
    assert result.return_value == 1
    heads = [line for line in result.output.splitlines() if line.startswith("k.ptx")]
    assert heads == [
        "k.ptx:4:56: error: mul has no modifier .wied here",
        "k.ptx:4:81: error: PTX has no opcode 'frob'",
        "k.ptx:4:93: error: PTX has no opcode 'addd'; did you mean 'add'?",
        "k.ptx: sm_80, PTX 8.0: k; 5 statements: 3 errors",
    ]
    document = json.loads(check(folder, text, "--json").output)
    assert [one["column"] for one in document["illegal"]] == [56, 81, 93]
    assert document["errors"] == document["unmodelled"] == document["warnings"] == []


def test_what_is_legal_but_not_modelled(folder):
    result = check(folder, GOOD.replace("add.u32 %r1, %r2, 3", "suq.width.b32 %r1, [surf]"))
    assert result.return_value == 4
    assert "'suq.width.b32' is not modelled: no such opcode is executed" in result.output
    assert result.output.endswith("2 statements: 1 not modelled\n")


MMA = (
    "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r0,%r1}, "
    "{%f0,%f1,%f2,%f3};"
)
MATRIX = GOOD.replace(".reg .b32 %r<4>;", ".reg .b32 %r<4>; .reg .f32 %f<4>;\n" + MMA)


def test_a_matrix_instruction_of_another_chip(folder):
    text = MATRIX.replace("8.0", "8.7")
    result = check(folder, text)
    assert result.return_value == 1
    assert "is not on sm_80; it is on sm_89" in result.output
    assert check(folder, text, "--target", "sm_89").return_value == 0


def test_versions_and_targets(folder):
    result = check(folder, GOOD.replace("8.0", "6.5"))
    assert result.return_value == 1
    assert result.output.startswith("k.ptx:1:1: error: sm_80 needs PTX ISA 7.0; this is read as 6.5")
    assert check(folder, GOOD.replace("sm_80", "sm_11")).return_value == 3
    assert check(folder, "mul").return_value == 3
    assert CliRunner().invoke(cli, ["check", "none.ptx"], standalone_mode=False).return_value == 3


# --- wgmma -----------------------------------------------------------------------------------------

FUNCTIONS = (  # in one line
    ".extern .func (.param .b32 z) vprintf(.param .b64 x, .param .b64 y); .func own(.param .b64 x) "
    "{ .reg .b64 %rd1; ld.param.b64 %rd1, [x]; st.global.b64 [%rd1], %rd1; }"
)
HEAD = f""".version 8.0
.target sm_90a
.address_size 64 {FUNCTIONS}
.visible .entry k(.param .u64 out, .param .u64 d) {{
.reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .f32 %f<20>; .reg .pred %p;
ld.param.u64 %rd1,[out]; ld.param.u64 %rd2,[d]; ld.param.u64 %rd3,[d]; mov.u32 %r1, 1;
mov.f32 %f0, 0f00000000; mov.f32 %f1, 0f00000000; mov.f32 %f2, 0f00000000; mov.f32 %f3, 0f00000000;
"""
MM = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, %rd2, %rd3, 1, 1, 1, 0, 0;\n"
F, C = "wgmma.fence.sync.aligned;\n", "wgmma.commit_group.sync.aligned;\n"
W = "wgmma.wait_group.sync.aligned 0;\n"
END = (
    "st.global.f32 [%rd1], %f0; st.global.f32 [%rd1+4], %f1; st.global.f32 [%rd1+8], %f2; "
    "st.global.f32 [%rd1+12], %f3; ret; }\n"
)
OTHER = MM.replace("{%f0,%f1,%f2,%f3}", "{%f4,%f5,%f6,%f7}")
LOOP = "add.u32 %r1,%r1,1; setp.lt.u32 %p, %r1, 9;"
CASES = {  # statements -> what is found, by line and rule, and what ptxas says
    "good": (F + MM + C + W, [], {}),
    "no fence": (MM + C + W, [(8, "fence")], {"C7519"}),
    "no wait": (F + MM + C, 4 * [(11, "in-flight")], {"C7517"}),
    "read in flight": (
        F + MM + "add.f32 %f8, %f0, %f0; st.global.f32 [%rd1+32], %f8;\n" + C + W,
        [(10, "in-flight")], {"C7517"},
    ),
    "written since": (F + MM + C + W + "add.f32 %f0,%f0,%f0;\n" + MM + C + W, [(13, "fence")], {"C7519"}),
    "in a loop": (f"L: {F}{MM}{C}{LOOP} @%p bra L;\n{W}", [], {}),
    "defined in a loop": (
        f"L: {F}{MM}{C}{LOOP} mul.f32 %f1,%f1,%f1; @%p bra L;\n{W}", [(11, "in-flight")], {"C7517", "C7515"},
    ),
    "two in a row": (F + MM + MM + C + W, [], {}),
    "one group left": (
        f"{F}{MM}{C}{F}{OTHER}{C}wgmma.wait_group.sync.aligned 1;\nadd.f32 %f0,%f0,%f0;\n{W}"
        "add.f32 %f0,%f0,%f4;\n",
        [], {},
    ),
    "one group too many": (
        f"{F}{MM}{C}{F}{OTHER}{C}wgmma.wait_group.sync.aligned 1;\nadd.f32 %f0,%f4,%f0;\n{W}",
        [(15, "in-flight")], {"C7514"},
    ),
    "other places": (F + MM + C + W + F + MM.replace("%f0,%f1,%f2,%f3", "%f3,%f2,%f1,%f0") + C + W,
                     [(13, "places")], {"C7511"}),
    "the same places again": (F + MM + C + W + F + MM + C + W, [], {}),
    "a function that stays here": (
        F + MM + C + W + "{ .param .b64 x; st.param.b64 [x], %rd1; call.uni own, (x); }\n", [], {},
    ),
    "a function elsewhere": (
        F + MM + C + W + "{ .param .b64 x; .param .b32 z; st.param.b64 [x], %rd1; "
        "call.uni (z), vprintf, (x, x); }\n",
        [(12, "call")], {"C7510"},
    ),
    "a function by address": (
        "mov.u64 %rd5, own;\n" + F + MM + C + W + "{ .param .b64 x; st.param.b64 [x], %rd1;\n"
        "P: .callprototype _ (.param .b64 _);\ncall %rd5, (x), P; }\n",
        [(15, "call")], {"C7510"},
    ),
}  # fmt: skip


def test_a_function_that_ends_with_a_wgmma_in_flight():
    """Where nobody reads D, ptxas waits at the end."""
    (finding,) = pipeline_findings(parse(HEAD + F + MM + C + "ret; }\n"))
    assert (finding.rule, finding.location.line) == ("end", 11)


@pytest.mark.parametrize("name", CASES)
def test_what_ptxas_has_to_guard(name):
    body, expected, _ = CASES[name]
    found = pipeline_findings(parse(HEAD + body + END))
    assert [(one.location.line, one.rule) for one in found] == expected


@pytest.mark.skipif(bool(ptxas.missing_first()), reason=ptxas.missing_first() or "there is a ptxas")
@pytest.mark.parametrize("name", CASES)
def test_ptxas_says_the_same(folder, name):
    body, expected, codes = CASES[name]
    (folder / "k.ptx").write_text(HEAD + body + END)
    command = [str(ptxas.program()), "-arch=sm_90a", "k.ptx", "-o", "k.cubin"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert set(re.findall(r"\((C75\d\d)\)", said)) == set(codes)
    lines = {int(line) for line in re.findall(r"injected in around line (\d+)", said)}
    assert lines <= {line for line, _ in expected}


def test_how_a_pipeline_finding_is_shown():
    (finding,) = pipeline_findings(parse(HEAD + MM + C + W + END, "k.ptx"))
    assert finding.render() == (
        "k.ptx:8:1: warning: this wgmma needs a wgmma.fence before it, but on some way from the start there "
        "is none: ptxas inserts a fence (C7519) [fence]\n"
        f"    {MM.strip()}\n"
        f"    ^{'~' * 48}\n"
        "k.ptx:8:1: fix: put wgmma.fence.sync.aligned; before the first wgmma, behind what writes its "
        "registers"
    )
