"""Kernels leave the same bits whatever rounding mode or flushing another library has set in the process."""

from __future__ import annotations

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
