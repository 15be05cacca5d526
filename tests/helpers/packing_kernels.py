"""A sparse product in PTX, and eight ways to pack its operands wrongly, one switch each.

A CTA of 128 threads makes 64 x 8 of D, a warp 16 rows of it: mma.sp m16n8k32 of f16, twice a stage, two
stages in shared memory. a: the stored values (rows, 32 * stages), swizzled in shared memory; e: the words of
each lane (tiles of 16 rows, 2 * stages, 32); b: columns of B as rows (columns, 64 * stages), padded to 72
in shared memory. Knows text; does not know what the machine makes of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

_A_BYTES = 64 * 64
_B_STRIDE = 144
_STAGE = _A_BYTES + 8 * _B_STRIDE


@dataclass(frozen=True, kw_only=True)
class Packing:
    """What is done wrongly; all as it should be by default."""

    row_slip: bool = False  # lane 5 gives ldmatrix the address of the row below
    stale_warp: bool = False  # warp 2 reads A of the stage before
    metadata_lane: bool = False  # lane 5 reads the metadata of lane 4
    swizzle: bool = False  # A is read with another swizzle than it was written with
    stride: bool = False  # B is read without the padding
    metadata_step: bool = False  # the metadata is that of the next k step
    rotated: bool = False  # rows of A are two too far, round the tile
    halves: bool = False  # the k halves of A are exchanged
    registers: bool = False  # a1 and a3 are exchanged
    stale: bool = False  # every warp reads A of the stage before
    twice: bool = False  # the first product of a stage is added twice
    metadata_rows: bool = False  # the halves of the words of metadata are exchanged


def _swizzled(to: str, row: str, chunk: str, shift: int) -> str:
    """``to`` becomes the place of a chunk of 16 bytes of A in a stage."""
    return f"""
    shr.u32 %t0, {row}, {shift}; and.b32 %t0, %t0, 3; xor.b32 %t0, %t0, {chunk};
    shl.b32 %t0, %t0, 4; shl.b32 {to}, {row}, 6; add.u32 {to}, {to}, %t0;"""


def _fetched(first: int) -> str:
    """Chunks of A of a thread, from global to shared memory."""
    return f"""
    add.u32 %i, %thread, {first}; shr.u32 %row, %i, 2; and.b32 %chunk, %i, 3;
    {_swizzled("%to", "%row", "%chunk", 1)}
    add.u32 %to, %to, %stage;
    shl.b32 %t1, %steps, 6; mad.lo.u32 %t1, %row, %t1, 0; shl.b32 %t2, %step, 6; add.u32 %t1, %t1, %t2;
    shl.b32 %t2, %chunk, 4; add.u32 %t1, %t1, %t2; cvt.u64.u32 %from, %t1; add.u64 %from, %from, %a;
    ld.global.v4.b32 {{%x0, %x1, %x2, %x3}}, [%from]; st.shared.v4.b32 [%to], {{%x0, %x1, %x2, %x3}};"""


_FETCH_B = f"""
    setp.lt.u32 %few, %thread, 64; shr.u32 %row, %thread, 3; and.b32 %chunk, %thread, 7;
    shl.b32 %chunk, %chunk, 4; mad.lo.u32 %to, %row, {_B_STRIDE}, %chunk; add.u32 %to, %to, %stage;
    shl.b32 %t1, %steps, 7; mad.lo.u32 %t1, %row, %t1, %chunk; shl.b32 %t2, %step, 7; add.u32 %t1, %t1, %t2;
    cvt.u64.u32 %from, %t1; add.u64 %from, %from, %b;
    @%few ld.global.v4.b32 {{%x0, %x1, %x2, %x3}}, [%from];
    @%few st.shared.v4.b32 [%to+{_A_BYTES}], {{%x0, %x1, %x2, %x3}};"""


def _metadata(packing: Packing, half: int) -> str:
    """The word of this lane: e[cta.y * 4 + warp][2 step + half][lane]."""
    ahead = (
        "add.u32 %t1, %t1, 1; setp.ge.u32 %p, %t1, %t2; @%p mov.u32 %t1, 0;" if packing.metadata_step else ""
    )
    other = "setp.eq.u32 %p, %lane, 5; @%p mov.u32 %t3, 4;" if packing.metadata_lane else ""
    turn = "prmt.b32 %e, %e, 0, 0x1032;" if packing.metadata_rows else ""
    return f"""
    shl.b32 %t1, %step, 1; add.u32 %t1, %t1, {half}; shl.b32 %t2, %steps, 1; {ahead}
    mad.lo.u32 %t1, %tile, %t2, %t1; mov.u32 %t3, %lane; {other}
    mad.lo.u32 %t1, %t1, 32, %t3; mul.wide.u32 %from, %t1, 4; add.u64 %from, %from, %ebase;
    ld.global.b32 %e, [%from]; {turn}"""


def _left(packing: Packing, half: int) -> str:
    """Four registers of A."""
    rotate = "add.u32 %row, %row, 2; and.b32 %row, %row, 15;" if packing.rotated else ""
    slip = "setp.eq.u32 %p, %lane, 5; @%p add.u32 %row, %row, 1;" if packing.row_slip else ""
    turn = "xor.b32 %chunk, %chunk, 1;" if packing.halves else ""
    who = "%warp" if packing.stale else "2"
    stale = (
        f"setp.eq.u32 %p, %warp, {who}; xor.b32 %t1, %parity, 1; mul.lo.u32 %t1, %t1, {_STAGE};"
        " @%p add.u32 %here, %base, %t1;"
        if packing.stale_warp or packing.stale
        else ""
    )
    return f"""
    and.b32 %row, %lane, 15; {rotate} {slip} shr.u32 %chunk, %lane, 4; {turn}
    add.u32 %chunk, %chunk, {2 * half}; mad.lo.u32 %row, %warp, 16, %row;
    {_swizzled("%to", "%row", "%chunk", 0 if packing.swizzle else 1)}
    mov.u32 %here, %stage; {stale} add.u32 %to, %to, %here;
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%a0, %a1, %a2, %a3}}, [%to];"""


def _right(packing: Packing, half: int) -> str:
    """Four registers of B."""
    stride = 128 if packing.stride else _B_STRIDE
    return f"""
    and.b32 %row, %lane, 7; shr.u32 %chunk, %lane, 3; shl.b32 %chunk, %chunk, 4;
    mad.lo.u32 %to, %row, {stride}, %chunk; add.u32 %to, %to, %stage;
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%b0, %b1, %b2, %b3}}, [%to+{_A_BYTES + 64 * half}];"""


def _product(packing: Packing, half: int) -> str:
    left = "%a0, %a3, %a2, %a1" if packing.registers else "%a0, %a1, %a2, %a3"
    return f"""{_metadata(packing, half)}{_left(packing, half)}{_right(packing, half)}
    mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32
        {{%d0, %d1, %d2, %d3}}, {{{left}}}, {{%b0, %b1, %b2, %b3}}, {{%d0, %d1, %d2, %d3}}, %e, 0x0;"""


def text(packing: Packing) -> str:
    """The module; its kernel is ``packing(a, e, b, d, steps)``."""
    return f""".version 8.7
.target sm_80
.address_size 64
.visible .entry packing(
    .param .u64 a, .param .u64 e, .param .u64 b, .param .u64 d, .param .u32 steps)
{{
    .reg .pred %p, %few, %more;
    .reg .b32 %thread, %lane, %warp, %i, %row, %chunk, %to, %stage, %here, %base, %parity, %step, %steps;
    .reg .b32 %tile, %t<4>, %x<4>, %a<4>, %b<4>, %e, %n;
    .reg .f32 %d<4>;
    .reg .b64 %from, %a, %ebase, %b, %d;
    .shared .align 128 .b8 stages[{2 * _STAGE}];
    ld.param.u64 %a, [a]; ld.param.u64 %ebase, [e]; ld.param.u64 %b, [b]; ld.param.u64 %d, [d];
    ld.param.u32 %steps, [steps];
    mov.u32 %thread, %tid.x; and.b32 %lane, %thread, 31; shr.u32 %warp, %thread, 5; mov.u32 %base, stages;
    mov.u32 %t0, %ctaid.y; mad.lo.u32 %tile, %t0, 4, %warp;
    mul.lo.u32 %t1, %steps, {64 * 64}; mul.wide.u32 %from, %t0, %t1; add.u64 %a, %a, %from;
    mov.u32 %t0, %ctaid.x; mul.lo.u32 %t1, %steps, {8 * 128}; mul.wide.u32 %from, %t0, %t1;
    add.u64 %b, %b, %from;
    mov.f32 %d0, 0f00000000; mov.f32 %d1, %d0; mov.f32 %d2, %d0; mov.f32 %d3, %d0;
    mov.u32 %step, 0;
again:
    and.b32 %parity, %step, 1; mul.lo.u32 %stage, %parity, {_STAGE}; add.u32 %stage, %stage, %base;
    {_fetched(0)}{_fetched(128)}{_FETCH_B}
    bar.sync 0;
    {_product(packing, 0)}{_product(packing, 0) if packing.twice else ""}{_product(packing, 1)}
    bar.sync 0;
    add.u32 %step, %step, 1; setp.lt.u32 %more, %step, %steps; @%more bra again;
    mov.u32 %n, %nctaid.x; shl.b32 %n, %n, 3;
    shr.u32 %row, %lane, 2; mad.lo.u32 %row, %tile, 16, %row; mov.u32 %t0, %ctaid.x; shl.b32 %t0, %t0, 3;
    and.b32 %chunk, %lane, 3; shl.b32 %chunk, %chunk, 1; add.u32 %t0, %t0, %chunk;
    mad.lo.u32 %t1, %row, %n, %t0; mul.wide.u32 %from, %t1, 4; add.u64 %from, %from, %d;
    st.global.v2.f32 [%from], {{%d0, %d1}};
    mul.wide.u32 %a, %n, 32; add.u64 %from, %from, %a;
    st.global.v2.f32 [%from], {{%d2, %d3}};
    ret;
}}
"""


def arguments(rows: int = 128, columns: int = 16, steps: int = 4, seed: int = 0) -> list[Any]:
    """Arrays for a grid of (columns / 8, rows / 64), and the number of stages."""
    random = np.random.default_rng(seed)
    a = random.integers(-4, 5, (rows, 32 * steps)).astype(np.float16)
    fields = random.choice([0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110], (rows // 16, 2 * steps, 32, 8))
    e = (fields.astype(np.uint32) << np.arange(0, 32, 4, dtype=np.uint32)).sum(axis=-1, dtype=np.uint32)
    b = random.integers(-4, 5, (columns, 64 * steps)).astype(np.float16)
    return [a, e, b, np.zeros((rows, columns), np.float32), np.uint32(steps)]
