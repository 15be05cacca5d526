"""alloca, stacksave, stackrestore: ptxas 13.0 takes the same statements; places, frames and limits."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers import ptxas
from tests.helpers.lane_kernels import run
from warpsim.base.errors import Fault, UndefinedBehavior
from warpsim.programs.launch.launching import load_text

REGISTERS = ".reg .b64 %d<9>; .reg .b32 %r<9>;"
STATEMENTS = (
    *(
        f"alloca.u64 %d1, {size}{more};"
        for size in ("64", "%d2", "%r2")
        for more in ("", ", 16", ", 12", ", 1")
    ),
    "alloca.u64 %d1, %d2, 0;",
    "alloca.u64 %d1, %d2, 4096;",
    "alloca.u64 %d1, %d2, %r1;",
    "alloca.u32 %r1, %r2, 16;",
    "alloca.u32 %d1, %r2;",
    "alloca.b64 %d1, %d2;",
    "alloca.u64 _, %d2;",
    *(
        f"{one}.{kind};"
        for one in ("stacksave", "stackrestore")
        for kind in ("u64 %d1", "u32 %r1", "u32 %d1", "b64 %d1", "u64 5")
    ),
)


@pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing() or "ptxas is there")
@pytest.mark.parametrize("version", ["9.0", "7.3", "7.2"])
def test_legality(version: str) -> None:
    said = ptxas.verdicts(STATEMENTS, target="sm_80", declarations=REGISTERS, version=version)
    differ = []
    for one, verdict in zip(STATEMENTS, said, strict=True):
        text = f".version {version}\n.target sm_80\n.address_size 64\n.entry k() {{ {REGISTERS}\n{one}\n}}"
        problems = load_text(text).problems
        if bool(problems) != bool(verdict):
            differ.append((one, verdict, *map(str, problems)))
    assert differ == []


def test_each_lane_takes_what_it_asks_for() -> None:
    body = """.local .align 16 .b8 own[20]; .local .align 4 .b8 more[4];
    cvt.u64.u32 %y1, %lane; alloca.u64 %y2, %y1; alloca.u64 %y3, 4, 64; stacksave.u64 %y4;
    st.local.u32 [%y3], %lane; ld.local.u32 %t1, [%y3];
    cvt.u32.u64 %first, %y2; cvt.u32.u64 %second, %y3; cvt.u32.u64 %end, %y4; mov.u32 %held, %t1;"""
    names = ("first", "second", "end", "held")
    found = run(body, {}, dict.fromkeys(names, 32), threads=40)
    lane = np.arange(40) % 32
    second = -(-(32 + lane) // 64) * 64
    for name, wanted in zip(names, (np.full(40, 32), second, second + 4, lane), strict=True):
        np.testing.assert_array_equal(found[name], wanted)


def test_a_loop_that_restores_takes_no_more() -> None:
    body = """mov.u32 %t1, 0; LOOP: stacksave.u64 %y1; alloca.u64 %y2, 65536; st.local.u32 [%y2+65532], %t1;
    stackrestore.u64 %y1; add.u32 %t1, %t1, 1; setp.lt.u32 %p1, %t1, 100; @%p1 bra LOOP;
    cvt.u32.u64 %o, %y2;"""
    np.testing.assert_array_equal(run(body, {}, {"o": 32}, threads=3)["o"], 0)


CALL = """.version 9.0
.target sm_90
.address_size 64
.func (.param .b32 out) f(.param .b32 in) { .reg .b32 %r<4>; .reg .b64 %d<4>;
.local .align 4 .b8 own[4];
alloca.u64 %d1, 4; ld.param.u32 %r1, [in]; st.local.u32 [%d1], %r1; st.local.u32 [own], 7;
ld.local.u32 %r2, [%d1]; st.param.b32 [out], %r2; ret; }
.entry k(.param .u64 p) { .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p;
ld.param.u64 %d1, [p]; mov.u32 %r1, %tid.x; mad.wide.u32 %d1, %r1, 8, %d1; setp.lt.u32 %p, %r1, 5;
@!%p bra JOIN;
alloca.u64 %d2, 40; st.local.u32 [%d2+36], 11;
JOIN: { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), f, (a); ld.param.b32 %r2, [b]; }
mov.u32 %r3, 11; @%p ld.local.u32 %r3, [%d2+36]; st.global.v2.u32 [%d1], {%r2, %r3}; }
"""


def test_functions_have_their_own() -> None:
    found = np.zeros((40, 2), np.uint32)
    load_text(CALL)["k"](1, 40, [found])
    np.testing.assert_array_equal(found, [[lane, 11] for lane in range(40)])


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        ("mov.b64 %y1, 0x7FFFFFFFFFFFFFFF; alloca.u64 %y2, %y1;", Fault,
         "alloca of 9223372036854775807 bytes: a thread has 524288 bytes of local memory "
         "[CTA (0, 0, 0), warp 0, lane 0]"),
        ("alloca.u64 %y2, 524289;", Fault,
         "alloca of 524289 bytes: a thread has 524288 bytes of local memory [CTA (0, 0, 0), warp 0, lane 0]"),
        ("mov.b64 %y1, 8; stackrestore.u64 %y1;", UndefinedBehavior,
         "stackrestore of 0x8, which no stacksave of this function gave [CTA (0, 0, 0), warp 0, lane 0]"),
    ],
)  # fmt: skip
def test_messages(body: str, kind: type[Fault], message: str) -> None:
    with pytest.raises(kind) as caught:
        run(body, {}, {}, threads=2)
    assert caught.value.message == message
