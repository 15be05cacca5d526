"""Barriers of CTAs and warps: who waits for whom, what is seen afterwards, reductions, deadlocks; fences."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.lane_kernels import run
from warpsim.base.errors import Fault, UndefinedBehavior

Words = npt.NDArray[Any]


def numbers(count: int, seed: int) -> Words:
    return np.random.default_rng(seed).integers(0, 2**32, count, dtype=np.uint32)


# --- reductions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("spelling", ["bar.red", "bar.cta.red", "barrier.red", "barrier.cta.red"])
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("parted", [False, True])
def test_reductions(spelling: str, aligned: bool, parted: bool) -> None:
    """Of three predicates in a row at one barrier, in five CTAs; parted lanes come one after the other."""
    threads, ctas = 96, 5
    a = numbers(threads * ctas, 5) % 100
    a[:96], a[96:192] = 0, 99
    word = ".aligned" if aligned and spelling.startswith("barrier") else ""
    late = "setp.gt.u32 %p3, %lane, 9; @%p3 bra ON; add.u32 %t2, %t2, 1; ON:" if parted else ""
    guard = "@%p3 " if parted else ""
    twice = f"{guard}{spelling}.popc{word}.u32 %d, 3, !%p0;"
    if parted:
        twice += f" @!%p3 {spelling}.popc{word}.u32 %d, 3, !%p0;"
    body = f"""setp.lt.u32 %p0, %a, 40; {late} {twice}
    {spelling}.and{word}.pred %p1, 3, 96, %p0; {spelling}.or{word}.pred %p2, 3, %p0;
    selp.u32 %e, 1, 0, %p1; selp.u32 %f, 1, 0, %p2;"""
    found = run(body, {"a": a}, {"d": 32, "e": 32, "f": 32}, threads=threads, ctas=ctas)
    for cta in range(ctas):
        part = slice(cta * threads, (cta + 1) * threads)
        votes = [value < 40 for value in a[part].tolist()]
        assert set(found["d"][part].tolist()) == {votes.count(False)}
        assert set(found["e"][part].tolist()) == {int(all(votes))}
        assert set(found["f"][part].tolist()) == {int(any(votes))}


def test_reduction_without_those_that_have_exited() -> None:
    body = "setp.gt.u32 %p0, %n, 70; @%p0 ret; setp.gt.u32 %p1, %n, 9; bar.red.popc.u32 %d, 0, %p1;"
    found = run(body, {}, {"d": 32}, threads=96)["d"]
    assert found.tolist() == [61] * 71 + [0] * 25


def test_reductions_of_some_warps_at_two_barriers() -> None:
    body = """shr.u32 %t2, %n, 6; add.u32 %t2, %t2, 4; setp.lt.u32 %p0, %n, 70;
    barrier.red.popc.u32 %d, %t2, 64, %p0;"""
    pairs = body.replace("barrier.red.popc.u32 %d, %t2", "@%p1 barrier.red.popc.u32 %d, 4")
    pairs = pairs.replace("64, %p0;", "64, %p0; @!%p1 barrier.red.popc.u32 %d, 5, 64, %p0;")
    pairs = pairs.replace("setp.lt.u32 %p0", "setp.lt.u32 %p1, %n, 64; setp.lt.u32 %p0")
    found = run(pairs, {}, {"d": 32}, threads=128)["d"]
    assert found.tolist() == [64] * 64 + [6] * 64


# --- counts, producers, consumers -------------------------------------------------------------------------


def test_producers_arrive_and_consumers_wait() -> None:
    """Warps 0 and 1 hand 8 values each to warps 2 and 3, through one word a lane and two barriers."""
    body = """setp.ge.u32 %p0, %t1, 64; mul.lo.u32 %t2, %t1, 4; mov.u32 %t3, sm; and.b32 %t2, %t2, 255;
    add.u32 %t3, %t3, %t2; mov.u32 %t4, 0; @%p0 bra CONSUME;
    PRODUCE: bar.sync 2, 128; mad.lo.u32 %t5, %t4, 1000, %n; st.shared.u32 [%t3], %t5; bar.arrive 1, 128;
    add.u32 %t4, %t4, 1; setp.lt.u32 %p1, %t4, 8; @%p1 bra PRODUCE; bra END;
    CONSUME: bar.arrive 2, 128; bar.sync 1, 128; ld.shared.u32 %t5, [%t3]; mad.lo.u32 %d, %d, 3, %t5;
    add.u32 %t4, %t4, 1; setp.lt.u32 %p1, %t4, 8; @%p1 bra CONSUME;
    END:"""
    ctas = 4
    found = run(body, {}, {"d": 32}, threads=128, ctas=ctas)["d"].reshape(ctas, 128)
    for cta in range(ctas):
        for thread in range(128):
            total = 0
            for turn in range(8):
                total = (total * 3 + turn * 1000 + cta * 128 + thread - 64) % 2**32
            assert int(found[cta, thread]) == (total if thread >= 64 else 0)


def test_ctas_of_a_wave_go_on_at_their_own_pace() -> None:
    """Each CTA turns as often as its number says, with a barrier in the loop."""
    body = """mov.u32 %t3, %ctaid.x; mov.u32 %t4, sm; mov.u32 %t2, 0; st.shared.u32 [%t4], 0;
    LOOP: bar.sync 0; atom.shared.add.u32 %t5, [%t4], 1; bar.sync 0; ld.shared.u32 %d, [%t4];
    add.u32 %t2, %t2, 1; setp.le.u32 %p0, %t2, %t3; @%p0 bra LOOP;"""
    found = run(body, {}, {"d": 32}, threads=64, ctas=6)["d"].reshape(6, 64)
    assert found.tolist() == [[64 * (cta + 1)] * 64 for cta in range(6)]


@pytest.mark.parametrize("leave", ["@%p0 ret;", ""])
def test_counted_barriers_count_whole_warps(leave: str) -> None:
    """Of warp 1, 8 lanes are threads, and some exit; a producer exits as soon as it has arrived."""
    body = f"""setp.gt.u32 %p0, %n, 35; {leave} setp.lt.u32 %p1, %n, 32; @%p1 bra FIRST;
    bar.sync 1, 64; mov.u32 %d, 7; bra END;
    FIRST: bar.arrive 1, 64; ret;
    END:"""
    found = run(body, {}, {"d": 32}, threads=40)["d"].tolist()
    assert found == [0] * 32 + ([7] * 4 + [0] * 4 if leave else [7] * 8)


def test_lanes_of_a_warp_arrive_apart() -> None:
    body = """mov.u32 %t2, sm; setp.lt.u32 %p0, %lane, 5; @%p0 bra LOW;
    barrier.sync 0; bra SEEN;
    LOW: st.shared.u32 [%t2], 5; barrier.sync 0;
    SEEN: ld.shared.u32 %d, [%t2];"""
    assert run(body, {}, {"d": 32}, threads=64, ctas=2)["d"].tolist() == [5] * 128


def test_deadlock_names_both_places() -> None:
    body = "setp.lt.u32 %p0, %n, 32; @%p0 bar.sync 1, 64; @!%p0 bar.sync 2, 64;"
    message = (
        r"deadlock: no lane can continue \(barrier 1 has 32 of 64 threads, barrier 2 has 32 of 64 threads\); "
        r"waiting: "
        r"CTA \(0, 0, 0\), warp 0, lane 0 and 31 more at .* for barrier 1 of 64 threads; "
        r"CTA \(0, 0, 0\), warp 1, lane 0 and 31 more at .* for barrier 2 of 64 threads"
    )
    with pytest.raises(Fault, match=message):
        run(body, {}, {}, threads=64)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("mov.u32 %t2, 16; bar.sync %t2;", "barrier 16: there are 0 to 15"),
        ("mov.u32 %t2, 33; bar.sync 0, %t2;", "a barrier of 33 threads: expected a multiple of 32"),
        ("bar.sync %lane;", "the number of the barrier differs between lanes of a warp"),
        ("bar.red.popc.u32 %t3, 0, %lane, %p0;", "the number of threads differs between lanes of a warp"),
    ],
)
def test_what_no_barrier_takes(body: str, message: str) -> None:
    with pytest.raises(Fault, match=message):
        run(f"setp.eq.u32 %p0, %n, 0; {body}", {}, {}, threads=64)


def test_warps_name_their_barriers_in_registers() -> None:
    """Of eight warps, two at each barrier: the first stores what the second then reads, who waits alone."""
    body = """shr.u32 %t1, %n, 6; add.u32 %t2, %t1, 3; mov.u32 %t3, sm; mad.lo.u32 %t3, %t1, 4, %t3;
    and.b32 %t1, %n, 32; setp.ne.u32 %p0, %t1, 0; @%p0 bra SECOND;
    st.shared.u32 [%t3], %n; bar.arrive %t2, 64; ret;
    SECOND: bar.sync %t2, 64; ld.shared.u32 %d, [%t3];"""
    found = run(body, {}, {"d": 32}, threads=256, ctas=2)["d"].reshape(2, 4, 2, 32)
    assert (found[:, :, 0] == 0).all()
    assert found[:, :, 1, 0].tolist() == [[31, 95, 159, 223], [287, 351, 415, 479]]
    assert (found[:, :, 1] == found[:, :, 1, :1]).all()


def test_no_threads_stand_for_all() -> None:
    body = "mov.u32 %t2, 0; setp.lt.u32 %p0, %n, 3; bar.sync 0, 0; bar.red.popc.u32 %d, 1, %t2, %p0;"
    assert run(body, {}, {"d": 32}, threads=96)["d"].tolist() == [3] * 96


# --- warps -----------------------------------------------------------------------------------------------


def test_warps_meet_anywhere() -> None:
    """Lanes that parted meet at two statements, and each side sees what the other stored before."""
    body = """mov.u32 %t2, sm; setp.lt.u32 %p0, %lane, 9; @%p0 bra LOW;
    st.shared.u32 [%t2+4], 2; bar.warp.sync -1; ld.shared.u32 %d, [%t2]; bra END;
    LOW: st.shared.u32 [%t2], 1; bar.warp.sync 0xffffffff; ld.shared.u32 %d, [%t2+4];
    END:"""
    both = run(body, {}, {"d": 32}, threads=64, ctas=2, checks="off")  # the warps write each other's bytes
    assert both["d"].reshape(-1, 32).tolist() == [[2] * 9 + [1] * 23] * 4


def test_groups_of_a_warp_meet_by_mask() -> None:
    body = """setp.lt.u32 %p0, %lane, 16; selp.b32 %t2, 0xffff, 0xffff0000, %p0; mov.u32 %t3, 0;
    LOOP: bar.warp.sync %t2; add.u32 %t3, %t3, 1; setp.lt.u32 %p1, %t3, %k; @%p1 bra LOOP; mov.b32 %d, %t3;"""
    k = np.where(np.arange(64) % 32 < 16, 3, 7).astype(np.uint32)
    assert run(body, {"k": k}, {"d": 32}, threads=64)["d"].tolist() == k.tolist()


def test_warps_do_not_wait_for_those_that_exit() -> None:
    body = """setp.lt.u32 %p0, %lane, 9; @%p0 bra LOW; bar.warp.sync -1; mov.u32 %d, 3; bra END;
    LOW: ret;
    END:"""
    assert run(body, {}, {"d": 32}, threads=32)["d"].tolist() == [0] * 9 + [3] * 23


def test_warps_that_never_meet() -> None:
    body = "setp.lt.u32 %p0, %lane, 9; @%p0 bar.warp.sync -1; bar.warp.sync 0x1ff; @!%p0 bar.warp.sync -1;"
    with pytest.raises(
        UndefinedBehavior, match=r"bar\.warp\.sync: the lane is not a member of its own mask 0x1ff"
    ):
        run(body, {}, {}, threads=32)
    body = "setp.lt.u32 %p0, %lane, 9; @%p0 bar.warp.sync -1; @!%p0 bar.sync 0;"
    with pytest.raises(
        Fault, match=r"deadlock: .* for lanes 9-31 of its warp, members of its mask 0xffffffff"
    ):
        run(body, {}, {}, threads=32)


# --- fences -----------------------------------------------------------------------------------------------


def test_fences_change_nothing() -> None:
    body = """mov.u32 %d, 4; membar.cta; membar.gl; fence.acq_rel.gpu; fence.proxy.async.shared::cta;
    fence.mbarrier_init.release.cluster; fence.proxy.tensormap::generic.acquire.gpu [%buffer0], 128;
    griddepcontrol.wait; griddepcontrol.launch_dependents;"""
    assert run(body, {}, {"d": 32}, threads=32, buffers=[np.zeros(16, np.uint64)])["d"].tolist() == [4] * 32
