"""A small kernel under the debugger: a loop, a function, a divergent branch and shared memory, 64 threads."""

from __future__ import annotations

import numpy as np

import warpsim
from warpsim.show.debugger import Session

TEXT = """\
.version 8.0
.target sm_80
.address_size 64
.func (.param .b32 result) twice(.param .b32 given)
{
    .reg .b32 %t<3>;
    ld.param.b32 %t1, [given];
    add.u32 %t2, %t1, %t1;
    st.param.b32 [result], %t2;
    ret;
}
.visible .entry k(.param .u64 out, .param .u32 rounds)
{
    .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<4>; .reg .f32 %f<3>;
    .shared .align 16 .b32 cells[64];
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [rounds];
    mov.u32 %r2, %tid.x;
    mov.u32 %r3, 0;
LOOP:
    add.u32 %r3, %r3, %r2;
    sub.u32 %r1, %r1, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra LOOP;
    setp.lt.u32 %p2, %r2, 40;
    @%p2 bra LOW;
    add.u32 %r3, %r3, 1000;
LOW:
    { .param .b32 a; .param .b32 b;
    st.param.b32 [a], %r3;
    call (b), twice, (a);
    ld.param.b32 %r4, [b]; }
    mov.u32 %r5, cells;
    mad.lo.u32 %r6, %r2, 4, %r5;
    st.shared.u32 [%r6], %r4;
    bar.sync 0;
    xor.b32 %r7, %r6, 4;
    ld.shared.u32 %r8, [%r7];
    cvt.rn.f32.u32 %f1, %r8;
    mul.wide.u32 %rd2, %r2, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.f32 [%rd3], %f1;
    ret;
}
"""
LINES = {line.strip(): number for number, line in enumerate(TEXT.splitlines(), 1)}


def line(text: str) -> int:
    """The line of a statement."""
    return LINES[text]


def results(rounds: int = 3) -> np.ndarray:
    """What the kernel leaves."""
    own = np.arange(64)
    held = 2 * (own * rounds + np.where(own < 40, 0, 1000))
    return held[own ^ 1].astype(np.float32)


_KERNEL = warpsim.load(TEXT)["k"]


def session(**options: object) -> Session:
    """A session of the kernel, that has not begun."""
    return Session(_KERNEL, 1, 64, [np.zeros(64, np.float32), np.uint32(3)], **options)
