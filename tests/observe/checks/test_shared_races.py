"""Races of warps of a CTA: what orders two accesses, and what does not."""

from __future__ import annotations

import numpy as np
import pytest

from warpsim.base.errors import UndefinedBehavior
from warpsim.programs.launch.launching import load_text

HEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {
.reg .b32 %r<20>; .reg .b64 %d<9>; .reg .pred %p<9>; .shared .align 8 .b8 s[512]; .shared .align 8 .b64 bar;
ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; shl.b32 %r3, %r1, 2; mov.u32 %r4, s; add.u32 %r5, %r4, %r3;
xor.b32 %r6, %r3, 128; add.u32 %r6, %r6, %r4; setp.lt.u32 %p1, %r1, 32; setp.eq.u32 %p2, %r1, 0;
setp.eq.u32 %p3, %r1, 32; cvt.u64.u32 %d2, %r3; add.u64 %d1, %d1, %d2;
"""
# The first warp stores words that the second one reads, from line 10 on.
WRITE = "@%p1 st.shared.u32 [%r5], 7;\n"
READ = "@!%p1 ld.shared.u32 %r8, [%r6];\nst.global.u32 [%d1], %r8;\n"
ARRIVE = "bar.warp.sync -1;\n@%p2 mbarrier.arrive.shared.b64 _, [bar];\n"
RELEASE = "bar.warp.sync -1;\n@%p2 st.release.cta.shared.u32 [s+256], 1;\n"
BEGIN = """mov.u32 %r8, 0; @%p2 mbarrier.init.shared.b64 [bar], 1;
@%p2 st.shared.u32 [s+256], 0; bar.sync 0;
"""
WAIT = """@%p1 bra LN;
L: mbarrier.try_wait.parity.shared.b64 %p5, [bar], 0;
@!%p5 bra L;
LN:
"""
SPIN = """@%p1 bra SN;
S: ld{order}.shared.u32 %r9, [s+256]; setp.eq.u32 %p6, %r9, 0; @%p6 bra S;
SN: bar.warp.sync -1;
"""


def run(body: str, **options: object) -> np.ndarray:
    found = np.zeros(64, np.uint32)
    load_text(f"{HEAD}{body}ret; }}")["k"](1, 64, [found], **options)
    return found


RIGHT = {
    "a barrier": f"{BEGIN}{WRITE}bar.sync 0;\n{READ}",
    "a named barrier of both": f"{BEGIN}{WRITE}bar.sync 1, 64;\n{READ}",
    "an arrival and a wait": f"{BEGIN}{WRITE}@%p1 bar.arrive 1, 64;\n@!%p1 bar.sync 1, 64;\n{READ}",
    "an mbarrier": f"{BEGIN}{WRITE}{ARRIVE}{WAIT}{READ}",
    "a flag that is released": f"{BEGIN}{WRITE}{RELEASE}{SPIN.replace('{order}', '.acquire.cta')}{READ}",
    "fences and a relaxed flag": f"{BEGIN}{WRITE}bar.warp.sync -1;\nfence.acq_rel.cta;\n"
    "@%p2 st.relaxed.cta.shared.u32 [s+256], 1;\n"
    f"{SPIN.replace('{order}', '.relaxed.cta')}fence.acq_rel.cta;\n{READ}",
    "membar and a volatile flag": f"{BEGIN}{WRITE}bar.warp.sync -1;\nmembar.cta;\n"
    f"@%p2 st.volatile.shared.u32 [s+256], 1;\n{SPIN.replace('{order}', '.volatile')}membar.cta;\n{READ}",
    "threads that have exited": f"{BEGIN}{WRITE}@%p1 ret;\nbar.sync 0;\n{READ}",
}
WRONG = {
    "nothing": f"{BEGIN}{WRITE}{READ}",
    "a named barrier of the reader alone": f"{BEGIN}{WRITE}@!%p1 bar.sync 1, 32;\n{READ}",
    "an mbarrier at which the reader arrives": f"{BEGIN}{WRITE}{ARRIVE.replace('p2', 'p3')}{WAIT}{READ}",
    "a fence of the reader alone": f"{BEGIN}{WRITE}@!%p1 fence.acq_rel.cta;\n{READ}",
    "an arrival before the store": f"{BEGIN}@%p2 mbarrier.arrive.shared.b64 _, [bar];\n{WRITE}{WAIT}{READ}",
    "a flag that is not released": f"{BEGIN}{WRITE}{RELEASE.replace('release', 'relaxed')}"
    f"{SPIN.replace('{order}', '.acquire.cta')}{READ}",
    "a flag that is not acquired": f"{BEGIN}{WRITE}{RELEASE}{SPIN.replace('{order}', '.relaxed.cta')}{READ}",
}
SCHEDULES = ["program", "latest", 1, 2, 3, 4, 5]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_what_orders_warps(body: str, schedule: str | int) -> None:
    assert run(body, schedule=schedule)[32:].tolist() == [7] * 32


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG)
def test_what_does_not(body: str, schedule: str | int) -> None:
    race = (
        r"race: (ld.shared.u32 reads|st.shared.u32 writes) byte \w+ of shared memory \(\w+(\+\d+)?\), "
        "which another warp has "
    )
    with pytest.raises(UndefinedBehavior, match=race):
        run(body, schedule=schedule)


PARTED = """.version 8.0
.target sm_80
.address_size 64
.entry k() {
.reg .b32 %r<9>; .reg .pred %p<3>; .shared .b32 tile[64];
mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; shl.b32 %r3, %r1, 2; mov.u32 %r4, tile; add.u32 %r3, %r3, %r4;
setp.eq.u32 %p0, %r2, AHEAD; @!%p0 bra RACE;
"""
RACE = "RACE:\nst.shared.u32 [%r3], %r1; xor.b32 %r5, %r3, 128; ld.shared.u32 %r6, [%r5];\nret; }"


@pytest.mark.parametrize("barriers", [0, 8])
@pytest.mark.parametrize("ahead", [0, 1, 2])
def test_ctas_that_share_a_page_have_their_own_order(ahead: int, barriers: int) -> None:
    """One CTA has met at barriers before others store; its clocks say nothing about theirs."""
    text = PARTED.replace("AHEAD", str(ahead)) + "bar.sync 0;\n" * barriers + "ret;\n" + RACE
    report = load_text(text)["k"](3, 64, [], checks="warn")
    (race,) = report.hazards
    where = f"[CTA ({int(ahead == 0)}, 0, 0), warp 0, lane 0]"
    assert (race.kind, race.message[-len(where) :]) == ("race", where)
