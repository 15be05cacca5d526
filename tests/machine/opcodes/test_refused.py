"""What PTX has and a launched kernel does not execute yet is refused by name, apart from what is not PTX."""

from __future__ import annotations

import pytest

from tests.helpers import ptxas
from warpsim.base.errors import IllegalInstruction, NotModelled
from warpsim.machine.opcodes import ALONE, rows, rows_of
from warpsim.programs.launch.launching import load_text

HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k() {\n"


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("multimem.red.relaxed.sys.global.add.u32 [%d1], %r1;", "several devices are not simulated"),
    ],
)
def test_refused_by_name(statement: str, reason: str) -> None:
    head = HEAD.replace("8.0", "8.6").replace("sm_90a", "sm_100a")  # which have them all
    (problem,) = load_text(f"{head}{statement}\n}}").problems
    assert isinstance(problem, NotModelled)
    assert problem.message == f"'{statement.split()[0].rstrip(';')}' is not modelled: {reason}"
    assert str(problem.location) == "<string>:5:1"


def test_no_ptx_is_another_error() -> None:
    (problem,) = load_text(f"{HEAD}cp.async.bulky;\n}}").problems
    assert isinstance(problem, IllegalInstruction)
    assert problem.message == "cp has no modifier .bulky here"


def test_opcodes_of_few_groups_have_all_their_rows() -> None:
    assert all(rows_of(opcode) == rows()[opcode] for opcode in ALONE)


@pytest.mark.parametrize(
    ("statement", "version", "target", "message"),
    [
        ("wgmma.fence.sync.aligned;", "8.0", "sm_90", " is not on sm_90: it needs sm_90a"),
        ("barrier.cluster.arrive;", "7.8", "sm_80", " is not on sm_80: it needs sm_90 or higher"),
        (
            "tcgen05.wait::ld.sync.aligned;", "9.0", "sm_120a",
            " is not on sm_120a: it needs sm_100f or sm_103f or sm_107f or sm_110f",
        ),
        (
            "cp.async.bulk.commit_group;", "7.8", "sm_90",
            " needs PTX 8.0, but the version is 7.8",
        ),
    ],
)  # fmt: skip
def test_what_a_target_lacks_is_illegal(statement: str, version: str, target: str, message: str) -> None:
    text = HEAD.replace("8.0", version).replace("sm_90a", target)
    (problem,) = load_text(f"{text}{statement}\n}}").problems
    assert isinstance(problem, IllegalInstruction)
    assert problem.message == statement.split()[0].rstrip(";") + message


@pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing() or "there is a ptxas")
@pytest.mark.parametrize(
    "statement",
    [
        *(
            "tcgen05.wait::ld.sync.aligned;",
            "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %q1;",
        ),
        *("multimem.red.relaxed.sys.global.add.u32 [%d1], %r1;", "st.bulk.shared::cta [%r1], 64, 0;"),
        *("setmaxnreg.inc.sync.aligned.u32 240;", "mapa.u64 %d1, %d2, %r1;", "getctarank.u64 %r1, %d1;"),
        *("cp.async.bulk.commit_group;", "barrier.cluster.arrive;", "wgmma.fence.sync.aligned;"),
        "tensormap.replace.tile.global_address.global.b1024.b64 [%d1], %d2;",
    ],
)
def test_ptxas_has_them_on_the_same_targets(statement: str) -> None:
    declarations = ".reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .b128 %q<9>;"
    for target in ("sm_75", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_103a", "sm_120a", "sm_121"):
        (verdict,) = ptxas.verdicts([statement], target=target, declarations=declarations, version="9.0")
        text = HEAD.replace("8.0", "9.0").replace("sm_90a", target)
        problems = load_text(f"{text}{declarations}{statement}\n}}").problems
        illegal = any(isinstance(one, IllegalInstruction) for one in problems)
        assert illegal == (verdict is not None), target
