"""What PTX has and a launched kernel does not execute yet is refused by name, apart from what is no PTX."""

from __future__ import annotations

import pytest

from warpsim.errors import IllegalInstruction, NotModelled
from warpsim.machine.launching import load_text

HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k() {\n"


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        (
            "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, q;",
            "no launch hands the work of CTAs that have not begun to others",
        ),
        ("tcgen05.wait::ld.sync.aligned;", "tensor memory is not simulated"),
        ("multimem.red.add.u32 [a], b;", "several devices are not simulated"),
        ("cp.async.bulk.prefetch.tensor.1d.L2.global.tile [%d1, {%r1}];", "tensor maps are not executed yet"),
    ],
)
def test_refused_by_name(statement: str, reason: str) -> None:
    (problem,) = load_text(f"{HEAD}{statement}\n}}").problems
    assert isinstance(problem, NotModelled)
    assert problem.message == f"'{statement.split()[0].rstrip(';')}' is not modelled: {reason}"
    assert str(problem.location) == "<string>:5:1"


def test_no_ptx_is_another_error() -> None:
    (problem,) = load_text(f"{HEAD}cp.async.bulky;\n}}").problems
    assert isinstance(problem, IllegalInstruction)
    assert problem.message == "cp has no modifier .bulky here"
