"""The return that nobody wrote, behind the last statement of a kernel."""

from __future__ import annotations

import pytest

import warpsim

KERNEL = """.version 8.0
.target sm_80
.address_size 64
.visible .entry halves() {
.reg .pred %p; .reg .b32 %r;
mov.u32 %r, %tid.x; setp.lt.u32 %p, %r, 32;
@%p bar.sync 1, 64;
}
"""


def test_a_kernel_without_ret_ends_and_may_wait_for_ever() -> None:
    kernel = warpsim.load(KERNEL)["halves"]
    with pytest.raises(warpsim.Fault, match="deadlock") as caught:
        kernel(1, 64)
    assert caught.value.location.line == 7


def test_a_kernel_of_nothing() -> None:
    warpsim.load(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry none() {}")["none"](3, 40)
