"""Tables of branch targets without a label, and ``!`` before operands that are not predicates: ptxas refuses
both.
"""

from __future__ import annotations

import pytest

from tests.helpers import ptxas
from warpsim.programs.launch.launching import load_text

HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n"
REGISTERS = ".reg .pred %p<4>; .reg .b32 %r<9>; .reg .f32 %f<4>; .reg .b64 %d<4>;"
NO_PREDICATES = {  # and the type of what is negated
    "mov.u32 %r1, !%r2;": "u32",
    "add.u32 %r1, !%r1, %r2;": "u32",
    "add.f32 %f1, !%f1, %f2;": "f32",
    "and.b32 %r1, !%r2, %r3;": "b32",
    "cvt.rn.f32.u32 %f1, !%r1;": "u32",
    "fma.rn.f32 %f1, !%f2, %f3, %f1;": "f32",
    "st.global.u32 [%d1], !%r1;": "u32",
}
PREDICATES = (
    "selp.u32 %r1, %r2, %r3, %p1;",
    "setp.eq.and.u32 %p1, %r1, %r2, !%p3;",
    "vote.sync.any.pred %p1, !%p2, -1;",
    "bar.red.popc.u32 %r1, 0, !%p1;",
    "@!%p1 mov.u32 %r1, 1;",
)


def module(*statements: str) -> str:
    return f"{HEAD}.visible .entry k() {{\n{REGISTERS}\n" + "\n".join(statements) + "\nret;\n}\n"


def test_only_predicates_are_negated() -> None:
    found = load_text(module(*NO_PREDICATES, *PREDICATES)).problems
    assert [problem.location.line for problem in found if problem.location] == [
        6 + number for number in range(len(NO_PREDICATES))
    ]
    for problem, (statement, kind) in zip(found, NO_PREDICATES.items(), strict=True):
        operand = statement[statement.index("!") :].split(",")[0].rstrip(";")
        assert problem.message == f"'{operand}' negates a predicate, but a .{kind} goes here"


@pytest.mark.parametrize("name", ["branchtargets", "calltargets"])
def test_a_table_without_a_label(name: str) -> None:
    """It was a traceback."""
    (problem,) = load_text(module(f".{name} L;", "L:")).problems
    assert problem.message == f".{name} has no label before it, which would name it"
    assert str(problem.location) == "<string>:6:1"


@pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing() or "there is a ptxas")
def test_ptxas_refuses_the_same() -> None:
    found = ptxas.verdicts([*NO_PREDICATES, *PREDICATES], target="sm_90a", declarations=REGISTERS)
    assert [one is None for one in found] == [False] * len(NO_PREDICATES) + [True] * len(PREDICATES)
