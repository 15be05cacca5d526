"""Kernels leave the same bits, and checks find the same, whatever the environment and the thread."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import warpsim
from tests.helpers.environments import ENVIRONMENTS, control, set_environment, supported

KERNEL = """.version 8.0
.target sm_80
.address_size 64
.visible .entry sums(.param .u64 to, .param .f32 small, .param .f64 large) {
.reg .b64 %d; .reg .f32 %f<6>; .reg .f64 %g<4>; .reg .b16 %h<2>; .reg .b32 %r;
ld.param.u64 %d, [to]; ld.param.f32 %f0, [small]; ld.param.f64 %g0, [large];
add.f32 %f1, %f0, 1e-40; mul.f32 %f2, %f1, 0.1; fma.rn.f32 %f3, %f0, 0.3, 1e-42;
mul.f64 %g1, %g0, 1e-160; cvt.rn.f32.f64 %f4, 0.1; cvt.rn.f16.f32 %h0, %f3; cvt.rn.f16.f32 %h1, 0.3333;
ex2.approx.f32 %f5, %f4; mov.b32 %r, {%h0, %h1};
st.global.f64 [%d], %g1; st.global.v4.f32 [%d+16], {%f1, %f2, %f3, %f4};
st.global.f32 [%d+32], %f5; st.global.b32 [%d+36], %r; ret; }
"""


def left() -> bytes:
    """What a kernel leaves that is loaded and launched now: constants, subnormals, roundings."""
    words = np.zeros(12, np.uint32)
    warpsim.load(KERNEL)["sums"](1, 1, [words, np.uint32(713_621).view(np.float32), 1.25e-155])
    return words.tobytes()


@pytest.mark.skipif(not supported(), reason="environments cannot be set here")
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_launch_does_not_depend_on_it(name: str) -> None:
    expected, before = left(), control()
    try:
        set_environment(name)
        inside = control()
        assert left() == expected
        assert control() == inside, "what was found is restored"
    finally:
        set_environment("default")
    assert control() == before


def test_checks_find_the_same_in_every_thread() -> None:
    """NumPy before 2.1.2 computes with other types in all threads but the first: then no race is found."""
    kernel = warpsim.load(_RACE)["k"]

    def findings() -> list[str]:
        return [found.kind for found in kernel(1, 64, [np.zeros(64, np.uint32)], checks="warn").hazards]

    with ThreadPoolExecutor(1) as pool:
        elsewhere = pool.submit(findings).result()
    assert elsewhere == findings() == ["race"]


_RACE = """
.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<6>; .reg .b64 %d<3>;
  .shared .align 4 .b8 cells[256];
  ld.param.u64 %d1, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, cells;
  mad.lo.u32 %r3, %r1, 4, %r2;
  st.shared.u32 [%r3], %r1;
  xor.b32 %r4, %r1, 32;
  mad.lo.u32 %r3, %r4, 4, %r2;
  ld.shared.u32 %r5, [%r3];
  mul.wide.u32 %d2, %r1, 4;
  add.u64 %d1, %d1, %d2;
  st.global.u32 [%d1], %r5;
  ret;
}
"""
