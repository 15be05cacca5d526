"""Pairs of CTAs: tensor copies that signal the barrier of the pair's first CTA, alone and multicast."""

from __future__ import annotations

import numpy as np
import pytest

import warpsim
from warpsim.programs.launch.launching import load_text

KERNEL = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 results) {
.reg .b32 r<20>, rank, tid, mine, first;
.reg .b64 q<9>;
.reg .b16 all;
.reg .pred p, leader, over;
.shared .align 1024 .b8 tile[1024];
.shared .align 8 .b64 full;
mov.u32 rank, %cluster_ctarank;
mov.u32 tid, %tid.x;
setp.eq.u32 p, tid, 0;
setp.eq.u32 leader, rank, 0;
mov.u32 mine, full;
and.b32 first, mine, 0xFEFFFFFF;
mov.b64 q0, map;
cvta.param.u64 q0, q0;
@p mbarrier.init.shared::cta.b64 [full], 1;
@p fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.release;
barrier.cluster.wait.acquire;
@!p bra wait;
@leader mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], EXPECTED;
shl.b32 r1, rank, 3;
mov.u32 r2, tile;
mov.b16 all, 3;
LOAD
wait:
@!leader bra done;
again:
mbarrier.try_wait.parity.shared::cta.b64 over, [full], 0;
@!over bra again;
done:
barrier.cluster.arrive.release;
barrier.cluster.wait.acquire;
ld.param.u64 q1, [results];
mad.wide.u32 q1, rank, 1024, q1;
mad.wide.u32 q1, tid, 4, q1;
shl.b32 r3, tid, 2;
add.u32 r3, r3, r2;
mov.u32 r2, tile;
mad.lo.u32 r3, tid, 4, r2;
ld.shared.b32 r4, [r3];
st.global.b32 [q1], r4;
ret;
}
"""
COPY = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"


@pytest.mark.parametrize("schedule", ["program", "earliest", "latest", 1, 2])
def test_copies_of_both_ctas_signal_the_first(schedule: str | int) -> None:
    """Each loads its half; the even CTA waits for the bytes of both."""
    load = f"{COPY}.cta_group::2 [r2], [q0, {{0, r1}}], [first];"
    text = KERNEL.replace("EXPECTED", "2048").replace("LOAD", load)
    given = np.arange(16 * 32, dtype=np.uint32).reshape(16, 32)
    results = np.zeros((2, 8, 32), np.uint32)
    arguments = [warpsim.tensor_map(given, box=(8, 32)), results]
    load_text(text)["k"](2, 256, arguments, cluster=2, schedule=schedule)
    np.testing.assert_array_equal(results.reshape(16, 32), given)


@pytest.mark.parametrize("schedule", ["program", "latest", 1])
def test_a_multicast_signals_the_first_cta_of_each_pair(schedule: str | int) -> None:
    """The odd CTA copies to both: each destination signals where the parity is that of the barrier's CTA."""
    load = f"@!leader {COPY}.multicast::cluster.cta_group::2 [r2], [q0, {{0, 0}}], [first], all;"
    text = KERNEL.replace("EXPECTED", "2048").replace("LOAD", load)
    given = np.arange(16 * 32, dtype=np.uint32).reshape(16, 32)
    results = np.zeros((2, 8, 32), np.uint32)
    arguments = [warpsim.tensor_map(given, box=(8, 32)), results]
    load_text(text)["k"](2, 256, arguments, cluster=2, schedule=schedule)
    np.testing.assert_array_equal(results, np.stack([given[:8]] * 2))
