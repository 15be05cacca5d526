"""Lanes of one warp that went different ways and touch the same shared memory, which nothing orders."""

from __future__ import annotations

import numpy as np
import pytest

from warpsim.base.errors import UndefinedBehavior
from warpsim.programs.launch.launching import load_text

HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out) {
.reg .b32 %r<20>; .reg .b64 %d<9>; .reg .pred %p<9>; .shared .align 4 .b8 s[256];
ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; shl.b32 %r3, %r1, 2; mov.u32 %r4, s;
add.u32 %r5, %r4, %r3; setp.eq.u32 %p1, %r2, 0; setp.lt.u32 %p2, %r2, 16; cvt.u64.u32 %d2, %r3;
add.u64 %d1, %d1, %d2;
"""
WRITE_BY_ONE = "@!%p1 bra NEXT;\nadd.u32 %r6, %r1, 7;\nst.shared.u32 [%r5], %r6;\nNEXT:\n"
READ = (
    "and.b32 %r7, %r3, 128;\nadd.u32 %r7, %r7, %r4;\nld.shared.u32 %r8, [%r7];\nst.global.u32 [%d1], %r8;\n"
)
READ_BY_MOST = f"setp.lt.u32 %p3, %r2, 4;\n@%p3 bra LAST;\n{READ}LAST:\n"


def two_ways(one: str, other: str) -> str:
    """Half a warp does one, the other half the other."""
    return f"@%p2 bra NEXT;\n{one};\nret;\nNEXT: {other};\n"


def run(body: str, threads: int = 64, **options: object) -> np.ndarray:
    found = np.zeros(threads, np.uint32)
    load_text(f"{HEAD}{body}ret; }}")["k"](1, threads, [found], **options)
    return found


@pytest.mark.parametrize("read", [READ, READ_BY_MOST])
def test_one_lane_writes_and_others_read(read: str) -> None:
    with pytest.raises(UndefinedBehavior) as raised:
        run(WRITE_BY_ONE + read)
    lanes = "0-31" if read == READ else "4-31"
    line = 15 if read == READ else 17
    assert raised.value.message == (
        "race: ld.shared.u32 reads byte 0x0 of shared memory (s), which lane 0 of the same warp has written "
        "at line 11 on a way of its own: no bar.warp.sync has come between "
        f"[CTA (0, 0, 0), warp 0, lanes {lanes}]"
    )
    assert raised.value.location is not None
    assert raised.value.location.line == line


@pytest.mark.parametrize(
    "between",
    [
        *("bar.warp.sync -1;", "bar.sync 0;", "shfl.sync.idx.b32 %r9, %r1, 0, 31, -1;", "membar.cta;"),
        *("vote.sync.any.pred %p5, %p1, -1;", "barrier.sync 1, 64;"),
    ],
)
def test_what_orders_lanes(between: str) -> None:
    found = run(f"{WRITE_BY_ONE}{between}\n{READ}")
    assert found.tolist() == [7] * 32 + [39] * 32


@pytest.mark.parametrize(
    "body",
    [
        f"add.u32 %r6, %r1, 7;\n@%p1 st.shared.u32 [%r5], %r6;\n{READ}",  # side by side: nobody has parted
        f"{WRITE_BY_ONE}@%p1 ld.shared.u32 %r8, [%r5];\n",  # what a lane has written itself
        two_ways("st.shared.u32 [%r5], 1", "st.shared.u32 [%r5], 2"),  # places of their own
        two_ways("st.shared.u32 [%r4], 1", "st.shared.u32 [%r4], 1"),  # the same value
        two_ways("st.volatile.shared.u32 [%r4], 1", "st.volatile.shared.u32 [%r4], 2"),
        two_ways("atom.shared.add.u32 %r8, [%r4], 1", "atom.shared.add.u32 %r8, [%r4], 2"),
    ],
)
def test_no_race(body: str) -> None:
    run(f"st.shared.u32 [%r5], 0;\nbar.sync 0;\n{body}", 32)


def test_two_ways_write() -> None:
    body = "@%p2 bra NEXT;\nst.shared.u32 [%r4], 1;\nret;\nNEXT: st.shared.u32 [%r4], 2;\n"
    with pytest.raises(
        UndefinedBehavior,
        match=r"writes byte 0x0 of shared memory \(s\), which lane \d+ of the same warp has written",
    ):
        run(body, 32)


def test_a_read_before_a_write() -> None:
    body = "st.shared.u32 [%r5], 0;\nbar.sync 0;\n@%p1 bra NEXT;\nld.shared.u32 %r8, [%r4];\nNEXT:\n"
    body += "@!%p1 bra LAST;\nst.shared.u32 [%r4], 5;\nLAST:\n"
    with pytest.raises(UndefinedBehavior, match=r"writes byte 0x0 .* lane 31 of the same warp has read"):
        run(body, 32)


def test_it_is_found_in_every_schedule() -> None:
    for seed in range(3):
        with pytest.raises(UndefinedBehavior, match="of the same warp has"):
            run(WRITE_BY_ONE + READ_BY_MOST, schedule=seed)


def test_it_may_be_listed_or_left() -> None:
    assert run(WRITE_BY_ONE + READ, checks="off").tolist() == [7] * 32 + [39] * 32
    assert run(WRITE_BY_ONE + READ, checks="warn").tolist() == [7] * 32 + [39] * 32
