"""st.bulk: zeros in shared memory, and what ptxas 13.5 says of its operands."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers import ptxas
from warpsim.base.errors import Fault, WarpsimError
from warpsim.programs.launch.launching import load_text

NEWEST = ptxas.bundled("nvidia-cuda-nvcc", "ptxas")
REGISTERS = ".reg .b32 r<9>; .reg .b64 q<9>; .reg .f64 f; .reg .pred p; .shared .align 16 .b8 sm[1024];"
HEAD = ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 out) {\n" + REGISTERS
FILL = """
mov.u32 r0, %tid.x;
mov.u32 r1, sm;
mad.lo.u32 r2, r0, 4, r1;
st.shared.b32 [r2], r0;
bar.sync 0;
setp.eq.u32 p, r0, 5;
cvt.u64.u32 q1, r1;
cvta.shared.u64 q1, q1;
mov.b64 q2, 64;
mov.b32 r3, 64;
STATEMENT
bar.sync 0;
ld.shared.b32 r4, [r2];
ld.param.u64 q0, [out];
mad.wide.u32 q0, r0, 4, q0;
st.global.b32 [q0], r4;
ret; }
"""


def launched(statement: str) -> np.ndarray:
    out = np.zeros(256, np.uint32)
    load_text(HEAD + FILL.replace("STATEMENT", statement))["k"](1, 256, [out])
    return out


@pytest.mark.parametrize(
    "statement",
    [
        "@p st.bulk.weak.shared::cta [r1+32], 64, 0;",
        "@p st.bulk.shared::cta [r1+32], q2, 0;",
        "@p st.bulk [q1+32], r3, 0;",
    ],
)
def test_bytes_become_zero(statement: str) -> None:
    expected = np.arange(256, dtype=np.uint32)
    expected[8:24] = 0
    np.testing.assert_array_equal(launched(statement), expected)


@pytest.mark.parametrize(
    ("statement", "phrase"),
    [
        ("@p st.bulk.shared::cta [r1+4], 64, 0;", "is not a multiple of 8"),
        ("@p st.bulk.shared::cta [r1+1000], 64, 0;", "leaves shared memory of 1024 bytes"),
        ("mov.b32 r3, 60; @p st.bulk.shared::cta [r1], r3, 0;", "a size of 60: expected a multiple of 8"),
        ("ld.param.u64 q0, [out]; @p st.bulk [q0], 64, 0;", "is not in shared memory"),
    ],
)
def test_what_no_machine_allows(statement: str, phrase: str) -> None:
    with pytest.raises(Fault) as found:
        launched(statement)
    assert phrase in found.value.message


STATEMENTS = [
    f"st.bulk{weak}{space} [{address}], {size}, {value};"
    for weak in ("", ".weak", ".relaxed")
    for space, address in (("", "q0"), (".shared::cta", "r0"), (".shared", "r0"), (".shared::cluster", "r0"))
    for size in ("q1", "r1", "64", "60", "0", "-8", "16777216", "16777224", "f")
    for value in ("0", "1", "q2")
]


@pytest.mark.skipif(NEWEST is None, reason="the wheel nvidia-cuda-nvcc is not installed")
@pytest.mark.parametrize("version", ["8.8", "9.0"])
def test_the_machine_takes_what_ptxas_takes(version: str) -> None:
    theirs = ptxas.verdicts(
        STATEMENTS, target="sm_100a", declarations=REGISTERS, version=version, path=NEWEST
    )
    ours: list[WarpsimError | None] = [None] * len(STATEMENTS)
    head = HEAD.replace("9.0", version) + "\n"
    for problem in load_text(head + "\n".join(STATEMENTS) + "\nret; }\n").problems:
        assert problem.location is not None
        ours[problem.location.line - 1 - head.count("\n")] = problem
    pairs = zip(STATEMENTS, ours, theirs, strict=True)
    assert [(text, mine, his) for text, mine, his in pairs if (mine is None) != (his is None)] == []
