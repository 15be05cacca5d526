"""What is found in clusters: races, CTAs not begun or gone, mbarriers not yet known; and no false alarm."""

from __future__ import annotations

import re

import pytest

from tests.helpers.cluster_kernels import MEET, launched, run
from warpsim.base.errors import Fault, UndefinedBehavior

ARRIVE, WAIT = MEET.split()[0], MEET.split()[1]
WORDS = """shl.b32 %t2, %own, 2; mov.u32 %t3, sm; add.u32 %t2, %t2, %t3;
mapa.shared::cluster.u32 %t4, %t2, %peer;
"""
# The neighbour's word, read and written; line 16 and the following.
EXCHANGE = [
    "st.shared.u32 [%t2], %a;",
    ARRIVE,
    WAIT,
    "ld.shared::cluster.u32 %d0, [%t4];",
    ARRIVE,
    WAIT,
    "st.shared::cluster.u32 [%t4], %d0;",
    ARRIVE,
    WAIT,
    "ld.shared.u32 %d1, [%t2];",
]
SCHEDULES = ["program", "earliest", "latest", *range(4)]


def body_of(lines: list[str]) -> str:
    return WORDS + "\n".join(lines)


def found_in(body: str, schedule: str | int = "program", **options: object) -> str:
    """What is said; some random schedules catch the mistake in the act, where a CTA has ended too soon."""
    random = isinstance(schedule, int)
    with pytest.raises((UndefinedBehavior, Fault) if random else UndefinedBehavior) as caught:
        run(body, 4, 64, schedule=schedule, **({"outputs": 2} | options))
    return str(caught.value.message)


# --- races ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", [*SCHEDULES, *range(4, 20)])
def test_no_alarm_where_all_is_well(schedule: str | int) -> None:
    found, report = launched(body_of(EXCHANGE), 4, 64, outputs=2, schedule=schedule)
    assert report.hazards == ()
    assert found[:, 0].tolist() == [[65, 1], [1, 65], [193, 129], [129, 193]]


DELETED = {  # the first line of a meeting that is left out -> what is found
    17: r"ld.shared::cluster.u32 reaches 0x0 of shared memory \(sm\) of CTA \(1, 0, 0\), rank 1, and nothing "
    r"says that this CTA has begun: put barrier.cluster.arrive and barrier.cluster.wait before line 19 ",
    23: r"race: ld.shared.u32 reads byte 0x0 of shared memory \(sm\), which CTA \(1, 0, 0\), rank 1, has "
    r"written at line 22, and nothing orders the two: put barrier.cluster.arrive behind line 22, and "
    r"barrier.cluster.wait before this ",
}


@pytest.mark.parametrize("first", sorted(DELETED))
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_meetings_that_are_left_out(first: int, schedule: str | int) -> None:
    lines = list(EXCHANGE)
    lines[first - 16] = lines[first - 15] = ""
    message = found_in(body_of(lines), schedule)
    if schedule == "program":
        assert re.search(DELETED[first], message)


def test_some_lanes_reach_a_cta_that_has_not_begun() -> None:
    """Even lanes read their own CTA's memory."""
    lines = ["st.shared.u32 [%t2], %a; and.b32 %t5, %own, 1; setp.eq.u32 %p1, %t5, 0;"]
    lines += ["@%p1 mapa.shared::cluster.u32 %t4, %t2, %rank;", EXCHANGE[3], ARRIVE, WAIT]
    message = found_in(body_of(lines))
    assert "nothing says that this CTA has begun" in message
    assert message.endswith("warp 0, lane 1]")


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_reads_that_nobody_waits_for(schedule: str | int) -> None:
    """What a CTA reads of another, the other overwrites in its own memory."""
    lines = [*EXCHANGE[:4], "st.shared.u32 [%t2], 0;", ARRIVE, WAIT]
    message = found_in(body_of(lines), schedule)
    if schedule == "program":
        assert message == (
            "race: st.shared.u32 writes byte 0x0 of shared memory (sm), which CTA (1, 0, 0), rank 1, has "
            "read at line 19, and nothing orders the two: put barrier.cluster.arrive behind line 19, and "
            "barrier.cluster.wait before this [CTA (0, 0, 0), warp 0, lane 0]"
        )


def test_accesses_behind_an_arrival_are_not_ordered() -> None:
    lines = [ARRIVE, "st.shared.u32 [%t2], %a;", WAIT, "ld.shared::cluster.u32 %d0, [%t4];", ARRIVE, WAIT]
    assert "which CTA (1, 0, 0), rank 1, has written at line 17" in found_in(body_of(lines))


@pytest.mark.parametrize("fence", ["", "fence.acq_rel.cluster;", "fence.mbarrier_init.release.cluster;"])
def test_relaxed_arrivals_need_a_fence(fence: str) -> None:
    relaxed = ARRIVE.replace(";", ".relaxed;")
    lines = [EXCHANGE[0], fence, relaxed, WAIT, EXCHANGE[3], ARRIVE, WAIT]
    if "acq_rel" in fence:
        assert launched(body_of(lines), 4, 64)[1].hazards == ()
        return
    assert "barrier.cluster.arrive.relaxed at line 18 orders nothing: leave out .relaxed" in found_in(
        body_of(lines)
    )


def test_atomics_and_flags_are_no_races() -> None:
    """A flag that is released and acquired orders; strong accesses and atomics may meet."""
    body = f"""{WORDS} @%p8 st.shared.u32 [sm+512], 0; {MEET} st.shared::cluster.u32 [%t4], %a;
    mapa.shared::cluster.u32 %t5, sm+512, %peer; red.release.cluster.shared::cluster.add.u32 [%t5], 1;
    SPIN: ld.acquire.cluster.shared::cta.u32 %t6, [sm+512]; setp.lt.u32 %p1, %t6, 64; @%p1 bra SPIN;
    ld.shared.u32 %d0, [%t2]; {MEET}"""
    for schedule in SCHEDULES:
        found, report = launched(body, 2, 64, schedule=schedule)
        assert report.hazards == ()
        assert found[:, 0, 0].tolist() == [65, 1]


def test_two_ctas_write_one_byte() -> None:
    body = f"{MEET} mapa.shared::cluster.u32 %t4, sm, 0; @%p8 st.shared::cluster.u32 [%t4], %a; {MEET}"
    assert "writes byte 0x0 of shared memory" in found_in(body)


# --- beginning and end ----------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_cta_that_ends_too_soon(schedule: str | int) -> None:
    """By rule, and in the act where the schedule has it end first."""
    lines = [*EXCHANGE[:3], "mov.u32 %d1, 3;", "ld.shared::cluster.u32 %d0, [%t4];"]
    message = (
        r"CTA \(\d, 0, 0\), rank \d, ends while CTA \(\d, 0, 0\), rank \d, may still use its shared memory: "
        r"nothing says that ld.shared::cluster.u32 of line 20 is done; put barrier.cluster.arrive behind "
        r"line 20, and barrier.cluster.wait before this end|which has ended"
    )
    with pytest.raises((UndefinedBehavior, Fault), match=message):
        run(body_of(lines), 4, 64, outputs=2, schedule=schedule)


def test_an_arrival_behind_the_last_access_keeps_a_cta() -> None:
    lines = [*EXCHANGE[:4], ARRIVE, WAIT]
    assert launched(body_of(lines), 4, 64)[1].hazards == ()
    late = [*EXCHANGE[:3], ARRIVE, EXCHANGE[3], WAIT]  # the access is behind the arrival
    assert "ends while" in found_in(body_of(late))


# --- mbarriers of others --------------------------------------------------------------------------------

INIT = "@%p8 mbarrier.init.shared::cta.b64 [bar], 1;"
FENCE = "fence.mbarrier_init.release.cluster;"
FAR = "mapa.shared::cluster.u32 %t5, bar, %peer; @%p8 "
FAR += "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%t5];"
TRY = "T: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [bar], 0; @!%p1 bra T;"


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("arrive", [ARRIVE, ARRIVE.replace(";", ".relaxed;")])
def test_arrivals_behind_a_fence_and_a_barrier(schedule: str | int, arrive: str) -> None:
    body = "\n".join([INIT, FENCE, arrive, WAIT, FAR, TRY])
    assert launched(body, 4, 64, schedule=schedule)[1].hazards == ()


def test_an_arrival_before_the_initialisation_is_known() -> None:
    message = (
        "mbarrier.arrive.release.cluster.shared::cluster.b64 reaches the mbarrier at 0x400 of shared memory "
        "(bar) of CTA (1, 0, 0), rank 1, whose initialisation at line 14 it need not see: put "
        "fence.mbarrier_init.release.cluster and barrier.cluster.arrive behind that line, and "
        "barrier.cluster.wait before line {} [CTA (0, 0, 0), warp 0, lane 0]"
    )
    relaxed = ARRIVE.replace(";", ".relaxed;")
    assert found_in("\n".join([INIT, FENCE, FAR, TRY])) == message.format(16)
    assert found_in("\n".join([INIT, relaxed, WAIT, FAR, TRY])) == message.format(17)
    assert found_in("\n".join([INIT, FENCE, "bar.sync 0;", FAR, TRY])) == message.format(17)


# --- operations in flight -------------------------------------------------------------------------------

SEND = [
    INIT,
    "@%p8 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;",
    FENCE,
    ARRIVE,
    WAIT,
    "mapa.shared::cluster.u32 %t5, bar, %peer;",
    "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%t4], %a, [%t5];",
    TRY,
    "ld.shared.u32 %d0, [%t2];",
]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("arrive", [ARRIVE, ARRIVE.replace(";", ".relaxed;")])
def test_stores_in_flight_are_waited_for(schedule: str | int, arrive: str) -> None:
    body = body_of(SEND).replace(ARRIVE, arrive, 1)  # the fence tells the other warp of the mbarrier
    found, report = launched(body, 4, 64, schedule=schedule)
    assert report.hazards == ()
    assert found[:, 0, 0].tolist() == [65, 1, 193, 129]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("instead", ["", MEET])
def test_a_store_in_flight_that_is_read_too_early(schedule: str | int, instead: str) -> None:
    """A cluster barrier is not a phase of the mbarrier: the store need not have completed."""
    lines = [*SEND[:-2], instead, SEND[-1], TRY]
    assert re.search("ld.shared.u32|st.async.weak", found_in(body_of(lines), schedule))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_cta_ends_before_its_bytes_have_come(schedule: str | int) -> None:
    with pytest.raises(Exception, match=r"the CTA ends while st.async|which has ended"):
        run(body_of(SEND[:-2]), 4, 64, schedule=schedule)


def test_an_aligned_arrival_of_half_a_warp() -> None:
    body = f"""setp.lt.u32 %p1, %own, 16; @%p1 bra LOW; barrier.cluster.arrive.aligned; bra BOTH;
    LOW: barrier.cluster.arrive.aligned;
    BOTH: {WAIT}"""
    warning = launched(body, 2, 32)[1].hazards[0]
    assert warning.kind == "divergent barrier"
    assert warning.message.startswith("lanes 16-31 of a warp execute barrier.cluster.arrive.aligned")


# --- acquires order what their releases cover, and no more ------------------------------------------------

OWN = """@%p8 mbarrier.init.shared::cta.b64 [bar], 1; bar.sync 0;
@%p8 mbarrier.arrive.shared::cta.b64 _, [bar];
OWN: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0; @!%p1 bra OWN;"""


@pytest.mark.parametrize("schedule", [*SCHEDULES, *range(4, 40)])
def test_a_wait_at_an_mbarrier_of_ones_own_orders_no_other_cta(schedule: str | int) -> None:
    """Nothing but the CTA's own arrivals is released into a fresh mbarrier of its own."""
    lines = [*EXCHANGE[:7], OWN, EXCHANGE[9], ARRIVE, WAIT]
    message = found_in(body_of(lines), schedule)
    assert re.search(r"race: \S+ (reads|writes) byte 0x\w+ of shared memory.*, which CTA \(", message)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_wait_at_an_mbarrier_of_ones_own_does_not_say_that_another_cta_has_begun(
    schedule: str | int,
) -> None:
    lines = [EXCHANGE[0], OWN, *EXCHANGE[3:]]
    assert "nothing says that this CTA has begun" in found_in(body_of(lines), schedule)


@pytest.mark.parametrize("order", ["release", "relaxed"])
def test_a_relaxed_flag_orders_nothing(order: str) -> None:
    body = f"""{WORDS} @%p8 st.shared.u32 [sm+512], 0; {MEET} st.shared::cluster.u32 [%t4], %a;
    mapa.shared::cluster.u32 %t5, sm+512, %peer; red.{order}.cluster.shared::cluster.add.u32 [%t5], 1;
    SPIN: ld.acquire.cluster.shared::cta.u32 %t6, [sm+512]; setp.lt.u32 %p1, %t6, 64; @%p1 bra SPIN;
    ld.shared.u32 %d0, [%t2]; {MEET}"""
    if order == "release":
        assert launched(body, 2, 64)[1].hazards == ()
        return
    assert re.search(r"race: ld.shared.u32 reads byte \w+ of shared memory \(sm\), which CTA", found_in(body))
