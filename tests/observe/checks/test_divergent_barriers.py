"""Barriers that only some lanes of a warp execute, and those that nobody can leave: exact words."""

from __future__ import annotations

import pytest

from warpsim.base.errors import Fault
from warpsim.programs.launch.launching import load_text

HEAD = """.version 9.0
.target sm_80
.address_size 64
.entry k() {
.reg .b32 %r<9>; .reg .pred %p<9>;
mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; setp.lt.u32 %p1, %r1, 32; setp.lt.u32 %p2, %r2, 5;
"""


def findings(body: str, threads: int = 64, **options: object) -> list[str]:
    report = load_text(f"{HEAD}{body}\n}}", "k.ptx")["k"](1, threads, **options)  # type: ignore[arg-type]
    assert all((one.kind, one.severity) == ("divergent barrier", "warning") for one in report.hazards)
    return [f"{one.location.line}: {one.message}" for one in report.hazards]


def stuck(body: str, threads: int = 64) -> str:
    with pytest.raises(Fault) as caught:
        findings(body, threads)
    return caught.value.message


APART = "@%p2 bra LOW;\n{0} 0;\nbra ON;\nLOW: {0} 0;\nON: ret;"
TOGETHER = "all lanes of a warp execute an aligned barrier together [CTA (0, 0, 0), warp 0]"


@pytest.mark.parametrize("spelling", ["bar.sync", "barrier.sync.aligned", "bar.cta.sync"])
def test_lanes_of_a_warp_at_two_statements(spelling: str) -> None:
    assert findings(APART.format(spelling)) == [
        f"8: lanes 5-31 of a warp execute {spelling} while lanes 0-4 are at line 10: {TOGETHER}",
        f"10: lanes 0-4 of a warp execute {spelling} while lanes 5-31 are at line 8: {TOGETHER}",
    ]


def test_what_need_not_be_aligned_is_not_found() -> None:
    assert findings(APART.format("barrier.sync")) == []


def test_some_lanes_of_two_warps_fill_a_barrier() -> None:
    body = """setp.lt.u32 %p2, %r2, 16;
@!%p2 bra ON;
bar.sync 1, 32;
ON: bar.sync 2;"""
    assert findings(body) == [
        f"9: lanes 0-15 of a warp execute bar.sync while lanes 16-31 are at line 10: {TOGETHER}"
    ]


@pytest.mark.parametrize(
    "body",
    [
        "@%p2 ret;\nbar.sync 0;",  # lanes that have exited
        "@%p1 bar.arrive 3, 96;\nbar.sync 0;",
        "@%p2 bra ON; mov.u32 %r3, 1; ON: bar.sync 0;",
        "setp.lt.u32 %p1, %r2, 3; LOOP: add.u32 %r3, %r2, %r3; bar.sync 0; @%p1 bra END; END: bar.sync 0;",
    ],
)
@pytest.mark.parametrize("schedule", ["program", 5, 6])
def test_what_a_chip_does_together_is_not_found(body: str, schedule: str | int) -> None:
    assert findings(f"mov.u32 %r3, 0; {body}", schedule=schedule) == []


START = "deadlock: no lane can continue"


def test_half_of_a_cta_skips_a_barrier_in_a_loop() -> None:
    body = """mov.u32 %r3, 0;
LOOP: @%p1 bra SKIP;
bar.sync 1;
SKIP: add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, 4;
@%p3 bra LOOP;
bar.sync 2;"""
    assert stuck(body) == (
        f"{START} (barrier 1 has 32 of 64 threads, barrier 2 has 32 of 64 threads); waiting: "
        "CTA (0, 0, 0), warp 1, lane 0 and 31 more at k.ptx:9:1 for barrier 1; "
        "CTA (0, 0, 0), warp 0, lane 0 and 31 more at k.ptx:12:1 for barrier 2"
    )


def test_two_barriers_crossed() -> None:
    body = "@!%p1 bra OTHER;\nbar.sync 1;\nbar.sync 2;\nret;\nOTHER: bar.sync 2;\nbar.sync 1;"
    assert stuck(body) == (
        f"{START} (barrier 1 has 32 of 64 threads, barrier 2 has 32 of 64 threads); waiting: "
        "CTA (0, 0, 0), warp 0, lane 0 and 31 more at k.ptx:8:1 for barrier 1; "
        "CTA (0, 0, 0), warp 1, lane 0 and 31 more at k.ptx:11:8 for barrier 2"
    )


def test_a_barrier_of_more_threads_than_there_are() -> None:
    assert stuck("bar.sync 0, 96;") == (
        f"{START} (barrier 0 has 64 of 96 threads); waiting: "
        "CTA (0, 0, 0), warp 0, lane 0 and 63 more at k.ptx:7:1 for barrier 0 of 96 threads"
    )


def test_a_barrier_at_which_nobody_waits() -> None:
    assert stuck("@%p1 bar.arrive 3, 96; bar.sync 0, 96;") == (
        f"{START} (barrier 0 has 64 of 96 threads, barrier 3 has 32 threads); waiting: "
        "CTA (0, 0, 0), warp 0, lane 0 and 63 more at k.ptx:7:24 for barrier 0 of 96 threads"
    )
