"""Bytes of buffers that nobody has written are found when a kernel reads them, and only then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpsim
from warpsim.programs.launch.launching import LaunchReport, load_text

HEAD = """.version 9.0
.target sm_80
.address_size 64
.entry k(.param .u64 p) {
.reg .b32 %r<9>; .reg .b64 %d<9>; .reg .b16 %h; .reg .f32 %f<5>; .reg .pred %p;
ld.param.u64 %d1, [p]; mov.u32 %r1, %tid.x; mad.wide.u32 %d2, %r1, 16, %d1;
"""


def launched(body: str, buffer: Any, **options: Any) -> LaunchReport:
    return load_text(f"{HEAD}{body}\n}}")["k"](1, 4, [buffer], **options)


def messages(report: LaunchReport) -> list[str]:
    """What is said of reads; it is a note where nothing depends on them, as of most loads here."""
    reads = [one for one in report.hazards if one.kind != "unwritten"]
    assert all(one.kind == "uninitialised" and one.severity in ("note", "warning") for one in reads)
    assert all(one.influence in ("none", "none seen", "seen") for one in reads if one.severity == "note")
    return [one.message.partition("; proved: ")[0].partition("; with ")[0] for one in reads]


def test_a_read_is_found_and_says_where() -> None:
    buffer = warpsim.Device().empty((4, 4), np.float32, "scratch")
    found = messages(launched("ld.global.f32 %f1, [%d2+8];", buffer))
    assert found == [
        f"ld.global.f32 reads 4 bytes at byte 8 of the scratch of 64 bytes at {buffer.address:#x} that "
        "were never written [CTA (0, 0, 0), warp 0, lane 0]"
    ]


@pytest.mark.parametrize(
    ("body", "lane"),
    [
        ("setp.ne.u32 %p, %r1, 2; @%p st.global.u32 [%d2], 5; ld.global.u32 %r2, [%d2];", 2),
        ("st.global.v2.u32 [%d2], {%r1, %r1}; ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d2];", 0),
        ("st.global.u8 [%d2], 5; ld.global.u16 %h, [%d2];", 0),
        ("ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%d2];", 0),
        ("red.global.add.u32 [%d2], 1;", 0),
        ("ld.u32 %r2, [%d2];", 0),
    ],
)
def test_each_byte_counts(body: str, lane: int) -> None:
    (found,) = messages(launched(body, warpsim.Device().empty(64)))
    assert f"that were never written [CTA (0, 0, 0), warp 0, lane {lane}]" in found


@pytest.mark.parametrize(
    "body",
    [
        "st.global.v4.u32 [%d2], {%r1, %r1, %r1, %r1}; ld.global.v2.f32 {%f1, %f2}, [%d2+8];",
        "atom.global.exch.b32 %r2, [%d2], 7; atom.global.add.u32 %r2, [%d2], 7; ld.global.u32 %r2, [%d2];",
        "st.global.u8 [%d2+1], 5; ld.global.u8 %h, [%d2+1];",
    ],
)
def test_what_was_written_is_not_found(body: str) -> None:
    assert messages(launched(body, warpsim.Device().empty(64))) == []


def test_the_host_writes_too() -> None:
    device = warpsim.Device()
    buffer = device.empty(16, np.uint32)
    buffer.set(np.zeros(16, np.uint32))
    assert messages(launched("ld.global.u32 %r2, [%d2];", buffer)) == []
    assert messages(launched("ld.global.u32 %r2, [%d2];", device.array(np.zeros(16, np.uint32)))) == []
    assert messages(launched("ld.global.u32 %r2, [%d2];", np.zeros(16, np.uint32))) == []


def test_what_one_launch_wrote_the_next_reads() -> None:
    device = warpsim.Device()
    buffer = device.empty(64)
    read = "ld.global.u32 %r2, [%d2];"
    assert len(messages(launched(read, buffer))) == 1
    launched("st.global.u32 [%d2], 5;", buffer)
    device.array(np.zeros(5000, np.uint8))  # memory grows
    assert messages(launched(read, buffer)) == []
    assert len(messages(launched("ld.global.u32 %r2, [%d2+4];", buffer))) == 1


def test_without_checks_nobody_knows_what_was_written() -> None:
    buffer = warpsim.Device().empty(64)
    launched("st.global.u32 [%d2], 5;", buffer, checks="off")
    assert messages(launched("ld.global.u64 %d3, [%d2];", buffer)) == []


def test_nothing_is_kept_where_no_buffer_is_fresh() -> None:
    device = warpsim.Device()
    launched("st.global.u32 [%d2], 5;", device.array(np.zeros(64, np.uint8)))
    assert device.memory.fresh is None
