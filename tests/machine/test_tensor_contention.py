"""CTAs of one multiprocessor that wait for each other's columns of tensor memory, where a launch asks for it."""

# ruff: noqa: E501 - messages stand as they are shown

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from warpsim.base.errors import Deadlock, OperandError
from warpsim.programs.launch.launching import LoadedModule, load_text

KERNEL = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 results) {
.reg .b32 cta, tid, where, address, other, v, rank;
.reg .b64 q<4>;
.reg .pred first, odd;
.shared .b32 slot, slot2;
mov.u32 cta, %ctaid.x;
mov.u32 tid, %tid.x;
mov.u32 rank, %cluster_ctarank;
and.b32 v, cta, 1;
setp.ne.u32 odd, v, 0;
ld.param.u64 q0, [results];
mad.wide.u32 q1, cta, 128, q0;
mad.wide.u32 q1, tid, 4, q1;
BODY
ret;
}
"""
ALLOC = (
    "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], {};\nld.shared.b32 address, [slot];\n"
)
FREE = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 address, {};\n"
USE = """mad.lo.u32 v, cta, 1000, tid;
tcgen05.st.sync.aligned.32x32b.x1.b32 [address], {v};
tcgen05.wait::st.sync.aligned;
tcgen05.ld.sync.aligned.32x32b.x1.b32 {other}, [address];
tcgen05.wait::ld.sync.aligned;
st.global.b32 [q1], other;
"""
WHERE = "st.global.b32 [q1], address;\n"
SCHEDULES = ["program", "earliest", "latest", 1, 2, 3]


@cache
def module(body: str) -> LoadedModule:
    return load_text(KERNEL.replace("BODY", body))


def run(body: str, ctas: int = 4, **options: Any) -> tuple[Any, Any]:
    results = np.zeros((ctas, 32), np.uint32)
    return module(body)["k"](ctas, 32, [results], **options), results


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_cta_waits_until_the_other_frees_and_results_stay(schedule: str | int) -> None:
    body = ALLOC.format(512) + USE + FREE.format(512)
    report, results = run(body, ctas=5, resident=2, schedule=schedule)
    np.testing.assert_array_equal(results, 1000 * np.arange(5)[:, None] + np.arange(32))
    assert report.hazards == ()


def test_an_allocation_that_waits_for_other_ctas_counts_as_inferred() -> None:
    body = ALLOC.format(512) + FREE.format(512)
    shared, alone = run(body, resident=2)[0], run(body)[0]
    of = {
        one.mnemonic.split(".")[1]: (one.fidelity, one.note)
        for one in shared.fidelity.classes
        if "tcgen05" in one.mnemonic
    }
    why = "PTX does not say which CTA of a multiprocessor gets free columns of tensor memory first"
    assert of == {"alloc": ("inferred", why), "dealloc": ("exact", "")}
    assert {one.fidelity for one in alone.fidelity.classes} == {"exact"}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_columns_of_ctas_of_a_multiprocessor_are_different(schedule: str | int) -> None:
    """Each of four has a fourth of the columns, and the next four have them again."""
    body = ALLOC.format(128) + WHERE + "barrier.sync 0;\n" + FREE.format(128)
    held = "mov.u32 v, 0;\nagain:\nadd.u32 v, v, 1;\nsetp.lt.u32 first, v, 200;\n@first bra again;\n"
    _, results = run(body.replace("barrier.sync 0;\n", held), ctas=8, resident=4, schedule=schedule)
    if schedule == "program":  # all are there at a time
        assert [sorted(results[part, 0].tolist()) for part in (slice(4), slice(4, 8))] == [
            [0, 128, 256, 384]
        ] * 2
    assert set(results[:, 0].tolist()) <= {0, 128, 256, 384}
    _, alone = run(body, ctas=8)
    assert not alone.any()


def test_columns_that_never_come_are_a_deadlock_that_names_holders() -> None:
    """Both take half of the columns, and want the other half before they free any."""
    second = ALLOC.replace("slot", "slot2").replace("address", "other").format(256)
    body = ALLOC.format(256) + second + FREE.format(256) + FREE.replace("address", "other").format(256)
    run(body)
    with pytest.raises(Deadlock) as found:
        run(body, ctas=2, resident=2)
    holders = "CTA (0, 0, 0){} has columns 0..255 at line 17; CTA (1, 0, 0){} has columns 256..511 at line 17"
    assert found.value.message == (
        "deadlock: no lane can continue; waiting: CTA (0, 0, 0), warp 0, lane 0 and 63 more at <string>:19:1 for "
        f"free columns of tensor memory ({holders.format(' itself', '')})"
    )


def test_a_cta_that_exits_with_its_columns_is_named() -> None:
    body = ALLOC.format(512)
    with pytest.raises(Deadlock) as found:
        run(body, ctas=2, resident=2, checks="off")
    assert found.value.message.endswith(
        "CTA (1, 0, 0), warp 0, lane 0 and 31 more at <string>:17:1 for free columns of tensor memory "
        "(CTA (0, 0, 0) has columns 0..511 at line 17, and has exited without tcgen05.dealloc)"
    )


PAIR = ALLOC + "st.global.b32 [q1], address;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n" + FREE


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("size", [256, 512])
def test_pairs_wait_together_and_have_the_same_columns(size: int, schedule: str | int) -> None:
    """Neither CTA of a pair takes columns that another pair has taken on the other multiprocessor."""
    body = PAIR.replace("cta_group::1", "cta_group::2").format(size, size)
    report, results = run(body, ctas=8, cluster=2, resident=3, schedule=schedule)
    first = results[:, 0].reshape(4, 2)
    np.testing.assert_array_equal(first[:, 0], first[:, 1])
    assert report.hazards == ()
    assert set(first.reshape(-1).tolist()) <= set(range(0, 512, size))


@pytest.mark.parametrize(
    ("resident", "threads", "message"),
    [
        (0, 32, "resident=0: expected a positive integer"),
        (True, 32, "resident=True: expected a positive integer"),
        ("2", 32, "resident='2': expected a positive integer"),
        (
            33,
            32,
            "resident=33: a multiprocessor of sm_100a has at most 32 CTAs of 32 threads and 16 bytes of shared memory",
        ),
        (
            3,
            1024,
            "resident=3: a multiprocessor of sm_100a has at most 2 CTAs of 1024 threads and 16 bytes of shared memory",
        ),
    ],
)
def test_so_many_ctas_as_a_multiprocessor_can_have(resident: Any, threads: int, message: str) -> None:
    kernel = module(ALLOC.format(512) + FREE.format(512))["k"]
    with pytest.raises(OperandError) as found:
        kernel(1, threads, [np.zeros(1024, np.uint32)], resident=resident)
    assert found.value.message == message
