"""Results that PTX leaves open are not given in silence: a finding, or a label."""

from __future__ import annotations

import numpy as np
import pytest

import warpsim

HEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 to) {
.reg .b64 %d<3>; .reg .b32 %r<6>; .reg .pred %p<3>;
ld.param.u64 %d0, [to]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.u64 %d2, %d0, %d1;
"""


def launched(body: str) -> tuple[np.ndarray, object]:
    found = np.zeros(32, np.uint32)
    report = warpsim.load(f"{HEAD}{body}\nst.global.u32 [%d2], %r1; ret; }}")["k"](1, 32, [found])
    return found, report


def test_a_lane_that_takes_no_part_is_read() -> None:
    """Lanes 0 to 15 read lane 16 and beyond, which are not in their mask."""
    body = "setp.lt.u32 %p0, %r0, 16; mov.u32 %r1, 7;\n@%p0 shfl.sync.idx.b32 %r1, %r0, 20, 31, 0xffff;"
    found, report = launched(body)
    assert found.tolist() == [0] * 16 + [7] * 16
    (finding,) = report.hazards
    assert (finding.kind, finding.severity, finding.location.line) == ("unspecified", "warning", 8)
    assert finding.message == (
        "shfl.sync.idx.b32 reads a lane that does not take part: PTX leaves the result open "
        "[CTA (0, 0, 0), warp 0, lane 0]"
    )


@pytest.mark.parametrize("body", ["shfl.sync.idx.b32 %r1, %r0, 20, 31, -1;"])
def test_among_members_nothing_is_open(body: str) -> None:
    found, report = launched(body)
    assert found.tolist() == [20] * 32
    assert report.hazards == ()


def test_the_elected_lane_is_inferred() -> None:
    _, report = launched("elect.sync %r1|%p0, -1;")
    (found,) = [one for one in report.fidelity.classes if one.mnemonic == "elect.sync"]
    assert found.fidelity == "inferred"
    assert "which lane" in found.note


def test_a_register_that_some_lanes_have_not_written_is_read() -> None:
    """Lanes 0 to 15 have; the first that has not is named."""
    _, report = launched("setp.lt.u32 %p0, %r0, 16; @%p0 mov.u32 %r1, 7;")
    (finding,) = report.hazards
    assert (finding.kind, finding.severity) == ("register", "warning")
    assert finding.message.startswith("st.global.u32 reads a register that was never written, as 0")
    assert finding.message.endswith("[CTA (0, 0, 0), warp 0, lane 16]")


def test_without_being_asked_for_there_is_no_dynamic_shared_memory() -> None:
    found, _ = launched("mov.u32 %r1, %dynamic_smem_size;")
    assert found.tolist() == [0] * 32


def test_lanes_that_have_written_twice_have_written() -> None:
    """Lanes 0 to 23 write, then 8 to 31."""
    body = "setp.lt.u32 %p0, %r0, 24; setp.ge.u32 %p1, %r0, 8;\n@%p0 mov.u32 %r1, 7;\n@%p1 mov.u32 %r1, 8;"
    found, report = launched(body)
    assert found.tolist() == [7] * 8 + [8] * 24
    assert report.hazards == ()
