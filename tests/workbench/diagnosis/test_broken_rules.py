"""Verdicts of launches whose outputs are as expected, and which do what PTX leaves undefined."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers.command_runner import CliRunner
from tests.helpers.kernel_cases import FOLDER
from tests.observe.checks.test_tensor_judgements import (
    ALLOC,
    FREE,
    HEAD,
    LD,
    READ,
    ST,
    TURN,
    WAIT_LD,
    WAIT_ST,
)
from warpsim.programs.launch.launching import load_text
from warpsim.show.cli import cli
from warpsim.workbench.diagnosis.verdicts import Verdict

SUM = """.version 8.0
.target sm_80
.address_size 64
.const .align 4 .b32 unset;
.visible .entry k(.param .u64 y) {
.reg .b64 %y; .reg .b32 %t, %r; .reg .f32 %f<3>;
ld.param.u64 %y, [y]; mov.u32 %t, %tid.x; mad.wide.u32 %y, %t, 4, %y;
cvt.rn.f32.u32 %f1, %t;
BODY
st.global.f32 [%y], %f0;
ret; }
"""
TIDS = np.arange(32, dtype=np.float32)


def summed(body: str) -> Verdict:
    """The verdict of a kernel that stores the numbers of its threads."""
    kernel = load_text(SUM.replace("BODY", body))["k"]
    return warpsim.why(kernel, 1, 32, [np.zeros(32, np.float32)], {0: TIDS})


def of_tensor_memory(body: str, threads: int, expected: np.ndarray[Any, Any]) -> Verdict:
    kernel = load_text(HEAD + body + "ret;\n}\n")["k"]
    return warpsim.why(kernel, 1, threads, [np.zeros(threads, np.uint32)], {0: expected})


def check(found: Verdict, kind: str, phrase: str) -> None:
    """It is not an error of the outputs, and none of them is said to be right without the cause."""
    assert (found.outputs_as_expected, found.as_expected) == (True, False)
    assert found.kind == kind
    assert found.location is not None
    assert str(found).startswith(f"verdict: outputs as expected, but {found.location}: ")
    assert phrase in found.cause
    assert not any(cause.message in note for cause in found.causes for note in found.notes)
    document = found.document()
    assert (document["outputs_as_expected"], document["as_expected"]) == (True, False)


def test_an_accumulator_that_was_never_written() -> None:
    check(summed("add.f32 %f0, %f0, %f1;"), "register", "reads a register that was never written, as 0")


def test_a_line_that_breaks_a_rule_twice_is_named_once() -> None:
    found = summed("add.f32 %f0, %f0, %f1; add.f32 %f2, %f2, %f1;")
    assert "(also line" not in found.cause
    found = summed("add.f32 %f0, %f0, %f1;\n.reg .f32 %g; add.f32 %g, %g, %f1;")
    assert found.cause.endswith(" (also line 10)")


def test_unwritten_bytes_that_may_matter_are_noted() -> None:
    """No other filling gives another result, which proves nothing: a rare value would."""
    flag = """.shared .align 4 .b8 s[128]; .reg .b32 %a; .reg .pred %p; mad.lo.u32 %a, %t, 4, 0;
    mov.u32 %r, s; add.u32 %a, %a, %r; ld.shared.u32 %r, [%a]; setp.eq.u32 %p, %r, 12345;
    selp.f32 %f0, 0f3F800000, %f1, %p;"""
    found = summed(flag)
    assert found.as_expected
    (note,) = found.notes
    assert note.endswith("with two other fillings the results were the same")
    assert summed("mov.f32 %f0, %f1;").notes == ()


def test_results_of_a_wgmma_that_are_read_in_flight() -> None:
    text = (FOLDER / "warpgroup_tiles.ptx").read_text()
    random = np.random.default_rng(1)
    matrices = [random.standard_normal((64, 64)).astype(np.float16) for _ in range(2)]

    def given() -> list[Any]:
        return [*matrices, np.zeros((64, 64), np.float32), np.uint32(64), np.uint32(64)]

    right = given()
    load_text(text)["warpgroup_f16"](1, 128, right)
    lines = text.split("\n")
    assert "wgmma.wait_group" in lines[556]
    lines[556] = ""
    kernel = load_text("\n".join(lines))["warpgroup_f16"]
    check(
        warpsim.why(kernel, 1, 128, given(), {2: right[2]}),
        "accumulator-in-flight",
        "is read while the wgmma",
    )


def test_lanes_of_another_warp_in_an_address_of_tensor_memory() -> None:
    body = ALLOC + READ + ST + WAIT_ST + LD + WAIT_LD + "st.global.b32 [q0], v0;\nbar.sync 0;\n" + FREE
    found = of_tensor_memory(body, 128, np.arange(128, dtype=np.uint32))
    check(found, "unspecified", "takes these lanes: the address has lane 0")


def test_a_load_of_tensor_memory_without_its_wait() -> None:
    filled = f"@!first bra filled;\n{ST}{WAIT_ST}filled:\nbar.sync 0;\n"
    roles = f"@!first bra other;\n{LD}{TURN}bra done;\nother:\n@!second bra done;\n{TURN}{ST}{WAIT_ST}done:\n"
    body = ALLOC + READ + filled + roles + "bar.sync 0;\n" + FREE
    check(of_tensor_memory(body, 160, np.zeros(160, np.uint32)), "overwritten early", "has not waited for it")


def test_advice_is_a_note() -> None:
    """PTX initialises variables to zero: that one was never set is worth a warning, and no more."""
    found = summed("ld.const.b32 %r, [unset]; mov.b32 %f2, %r; add.f32 %f0, %f2, %f1;")
    assert found.as_expected
    assert str(found).startswith("verdict: nothing is wrong; 1 output is as expected\nnote: ")
    assert "was never set" in found.notes[0]


def test_without_outputs_nothing_is_said_of_them() -> None:
    kernel = load_text(SUM.replace("BODY", "add.f32 %f0, %f0, %f1;"))["k"]
    found = warpsim.why(kernel, 1, 32, [np.zeros(32, np.float32)])
    assert (found.outputs_as_expected, found.as_expected) == (False, False)
    assert str(found).startswith("verdict: <string>:")


@pytest.mark.parametrize(("body", "code"), [("add.f32 %f0, %f0, %f1;", 1), ("mov.f32 %f0, %f1;", 0)])
def test_the_exit_code(body: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.ptx").write_text(SUM.replace("BODY", body))
    np.save("right.npy", TIDS)
    given = ("k.ptx", "--block", "32", "--arg", "zeros:f32:32", "--expect", "0=right.npy", "--why")
    done = CliRunner().invoke(cli, ["launch", *given], standalone_mode=False)
    assert done.return_value == code
    assert ("outputs as expected, but" in done.output) == bool(code)
    document = json.loads(CliRunner().invoke(cli, ["launch", *given, "--json"], standalone_mode=False).output)
    assert document["outputs_as_expected"]
    assert document["as_expected"] == (not code)
    (compared,) = document["compared"]
    assert (compared["equal"], compared["different"]) == (32, 0)


def test_a_verdict_within_a_tolerance_says_how_near() -> None:
    kernel = load_text(SUM.replace("BODY", "mov.f32 %f0, %f1;"))["k"]
    near = TIDS * np.float32(1.0001)
    found = warpsim.why(kernel, 1, 32, [np.zeros(32, np.float32)], {0: near}, 1e-3)
    assert found.as_expected
    (compared,) = found.agreements.values()
    assert (compared.equal, compared.within, compared.different) == (1, 31, 0)
    assert "output y: 32 elements: 1 equal bit for bit, 31 more within the tolerance 0.001" in str(found)
