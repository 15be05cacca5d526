"""Cooperative launches: grid.sync() as nvcc compiles it."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import warpsim

# Both halves of the workspace's address, and a barrier of all CTAs as cooperative groups make it.
TEXT = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b)
{
  .reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .pred %p<4>;
  mov.u32 %r0, %envreg2; cvt.u64.u32 %rd0, %r0; mov.u32 %r1, %envreg1; cvt.u64.u32 %rd1, %r1;
  bfi.b64 %rd0, %rd1, %rd0, 32, 32; setp.ne.s64 %p0, %rd0, 0; @%p0 bra GO; trap;
GO:
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r5, %r2, %r3, %r4;
  mov.u32 %r6, %nctaid.x; mul.lo.u32 %r7, %r6, %r3;
  ld.param.u64 %rd2, [a]; ld.param.u64 %rd3, [b];
  mad.wide.u32 %rd4, %r5, 4, %rd2; ld.global.u32 %r8, [%rd4];
  mad.wide.u32 %rd5, %r5, 4, %rd3; st.global.u32 [%rd5], %r8;
  barrier.sync 0; setp.ne.u32 %p1, %r4, 0; @%p1 bra MET;
  sub.u32 %r9, 0x80000001, %r6; setp.eq.u32 %p2, %r2, 0; selp.b32 %r9, %r9, 1, %p2;
  add.s64 %rd0, %rd0, 4; atom.add.release.gpu.u32 %r10, [%rd0], %r9;
SPIN:
  ld.acquire.gpu.u32 %r11, [%rd0]; xor.b32 %r11, %r11, %r10; setp.gt.s32 %p3, %r11, -1; @%p3 bra SPIN;
MET:
  barrier.sync 0;
  sub.u32 %r12, %r7, %r5; sub.u32 %r12, %r12, 1; mad.wide.u32 %rd6, %r12, 4, %rd3;
  ld.global.u32 %r13, [%rd6]; st.global.u32 [%rd4], %r13; ret;
}
"""


@pytest.mark.parametrize("schedule", ["program", "random:1", "latest"])
@pytest.mark.parametrize("ctas", [1, 40])
def test_a_grid_meets(ctas: int, schedule: str) -> None:
    given = np.arange(ctas * 64, dtype=np.uint32)
    mirrored, between = given.copy(), np.zeros_like(given)
    kernel = warpsim.load(TEXT)["k"]
    report = kernel(ctas, 64, [mirrored, between], cooperative=True, schedule=schedule)
    assert np.array_equal(mirrored, given[::-1])
    assert not report.hazards
    assert not report.fidelity["approximate"]


def test_a_launch_that_is_not_cooperative_says_so() -> None:
    with pytest.raises(warpsim.Fault) as caught:
        warpsim.load(TEXT)["k"](2, 64, [np.zeros(128, np.uint32), np.zeros(128, np.uint32)])
    assert caught.value.message.startswith("trap: the kernel synchronises its grid")
    assert (
        "launch it with cooperative=True, or --cooperative [CTA (0, 0, 0), warp 0, lane 0 and 127 more]"
        in caught.value.message
    )


def test_too_many_ctas() -> None:
    arrays = [np.zeros(9000, np.uint32), np.zeros(9000, np.uint32)]
    with pytest.raises(warpsim.OperandError, match="9000 CTAs of a cooperative launch, at most 8192"):
        warpsim.load(TEXT)["k"](9000, 1, arrays, cooperative=True)


SOURCE = """\
#include <cooperative_groups.h>
extern "C" __global__ void reverse(const int* a, int* b, int* c, int n) {
    auto grid = cooperative_groups::this_grid();
    int i = grid.thread_rank();
    if (i < n) b[i] = 2 * a[i];
    grid.sync();
    if (i < n) c[i] = b[n - 1 - i];
    grid.sync();
    if (i == 0) c[0] += 1000 * grid.num_blocks();
}
"""


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on the path")
def test_cooperative_groups_of_a_source(tmp_path: Path) -> None:
    path = tmp_path / "reverse.cu"
    path.write_text(SOURCE)
    a = np.arange(300, dtype=np.int32)
    b, c = np.zeros_like(a), np.zeros_like(a)
    warpsim.load(path)["reverse"](5, 64, [a, b, c, 300], cooperative=True)
    expected = 2 * a[::-1]
    expected[0] += 5000
    assert np.array_equal(c, expected)
