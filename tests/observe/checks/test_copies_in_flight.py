"""Shared memory that a cp.async may still be writing: nobody reads it before the wait."""

from __future__ import annotations

import numpy as np
import pytest

import warpsim
from warpsim.programs.launch.launching import LaunchReport

KERNEL = """.version 8.0
.target sm_80
.address_size 64
.visible .entry copy(.param .u64 from, .param .u64 to) {
.reg .b64 %d<4>; .reg .b32 %r<6>;
.shared .align 16 .b8 tile[512];
ld.param.u64 %d0, [from]; ld.param.u64 %d1, [to];
mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 4; mov.u32 %r2, tile; add.u32 %r3, %r2, %r1;
cvt.u64.u32 %d2, %r1; add.u64 %d3, %d0, %d2; add.u64 %d1, %d1, %d2;
cp.async.cg.shared.global [%r3], [%d3], 16;
cp.async.commit_group;
WAIT
ld.shared.u32 %r4, [%r3+4];
st.global.u32 [%d1], %r4;
ret; }
"""
SOURCE = np.arange(128, dtype=np.uint32)


def launched(wait: str, checks: str = "error") -> tuple[np.ndarray, LaunchReport]:
    target = np.zeros(128, np.uint32)
    module = warpsim.load(KERNEL.replace("WAIT", wait))
    report = module["copy"](1, 32, [SOURCE, target], checks=checks)
    return target[::4], report


@pytest.mark.parametrize("wait", ["cp.async.wait_group 0;", "cp.async.wait_all;"])
def test_after_the_wait_all_is_there(wait: str) -> None:
    found, report = launched(wait)
    assert found.tolist() == SOURCE[1::4].tolist()
    assert {one.kind for one in report.hazards} <= {"unwritten"}  # elements that nothing is copied to


@pytest.mark.parametrize("wait", ["", "cp.async.wait_group 1;"])
def test_before_the_wait_it_is_an_error(wait: str) -> None:
    with pytest.raises(warpsim.UndefinedBehavior) as caught:
        launched(wait)
    assert caught.value.message == (
        "ld.shared.u32 reads byte 0x4 of shared memory (tile+4) while the cp.async of line 10 is in flight: "
        "no cp.async.wait_group that covers it has come between [CTA (0, 0, 0), warp 0, lane 0]"
    )
    assert str(caught.value.location) == "<string>:13:1"


def test_warnings_name_both_statements() -> None:
    found, report = launched("", "warn")
    assert not found.any()  # what was there before
    (finding,) = [one for one in report.hazards if one.kind == "in flight"]
    assert (finding.location.line, finding.other.line) == (13, 10)
