"""A small kernel with matrix instructions in a loop, and recordings of it.

Knows the text and its lines; does not know what recording does.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from tests.helpers.kernel_cases import FOLDER
from warpsim.programs.launch.launching import LaunchableKernel, LaunchReport, load_text
from warpsim.workbench.vectors.recordings import Recording

MMA_LINE, ADD_LINE, SPARSE_LINE = 15, 17, 20
LOOP = """.version 9.0
.target sm_80
.address_size 64
.visible .entry loop(.param .u64 p) {
.reg .b32 %a<4>, %b<4>, %e; .reg .f32 %d<4>; .reg .u32 %i, %own; .reg .b64 %base, %row; .reg .pred %q;
ld.param.u64 %base, [p];
mov.u32 %own, %tid.x;
mul.wide.u32 %row, %own, 16;
add.u64 %base, %base, %row;
mov.b32 %a0, 0x40003c00; mov.b32 %a1, 0x3c003c00; mov.b32 %a2, 0x3c003c00; mov.b32 %a3, 0x3c003c00;
mov.b32 %b0, 0x3c003c00; mov.b32 %b1, %own; mov.b32 %b2, 0; mov.b32 %b3, 0; mov.b32 %e, 0x44444444;
mov.f32 %d0, 0f00000000; mov.f32 %d1, 0f00000000; mov.f32 %d2, 0f00000000; mov.f32 %d3, 0f00000000;
mov.u32 %i, 0;
again:
    mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32
        {%d0, %d1, %d2, %d3}, {%a0, %a1}, {%b0}, {%d0, %d1, %d2, %d3};
add.u32 %i, %i, 1;
setp.lt.u32 %q, %i, 3;
@%q bra again;
mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
    {%d0, %d1, %d2, %d3}, {%a0, %a1}, {%b0, %b1}, {%d0, %d1, %d2, %d3}, %e, 0x1;
st.global.v4.f32 [%base], {%d0, %d1, %d2, %d3};
ret;
}
"""


def loop_kernel() -> LaunchableKernel:
    """The kernel: in every warp three executions of an mma, then one of an mma.sp."""
    return load_text(LOOP, "loop.ptx")["loop"]


def launched(**options: Any) -> LaunchReport:
    """What a launch of four CTAs of two warps did."""
    return loop_kernel()((2, 2), 64, [np.zeros((64, 4), np.float32)], checks="off", **options)


def recording(**options: Any) -> Recording:
    """The recording of that launch."""
    report = launched(record=True, timeline=True, **options)
    return Recording(
        kernel="loop",
        file="loop.ptx",
        target="sm_80",
        grid=(2, 2, 1),
        block=(64, 1, 1),
        events=report.events,
        timeline=report.timeline,
    )


def repeated_recording(turns: int) -> Recording:
    """The recording with its executions so many times: 32 events each, of eight warps."""
    whole = recording()
    steps = {MMA_LINE: 3, SPARSE_LINE: 1}
    events = [
        replace(event, index=event.index + steps[event.line] * turn, time=event.time + 100 * turn)
        for turn in range(turns)
        for event in whole.events
    ]
    return replace(whole, events=tuple(sorted(events, key=whole.order)))


@cache
def recorded_tiles(side: int) -> Recording:
    """A launch of dense_f16 with side x side CTAs of two warps, with its timeline and CTA 0 recorded."""
    module = load_text((FOLDER / "dense_tiles.ptx").read_text(), "dense_tiles.ptx")
    a, b = np.zeros((32 * side, 32), np.float16), np.zeros((32, 32 * side), np.float16)
    arguments = [a, b, np.zeros((32 * side, 32 * side), np.float32), 32 * side, 32]
    report = module["dense_f16"]((side, side), 64, arguments, timeline=True, record="cta=0", checks="off")
    return Recording(
        kernel="dense_f16",
        file="dense_tiles.ptx",
        target="sm_80",
        grid=(side, side, 1),
        block=(64, 1, 1),
        events=report.events,
        timeline=report.timeline,
    )
