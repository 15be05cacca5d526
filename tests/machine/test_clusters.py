"""Launches of clusters: what they ask for, who is in which, and distributed shared memory, bit for bit."""

from __future__ import annotations

import re
from random import Random

import numpy as np
import pytest

from tests.helpers.cluster_kernels import MEET, launched, run, text_of
from warpsim.base.errors import Fault, IllegalInstruction, OperandError, UndefinedBehavior
from warpsim.programs.launch.launching import load_text

SCHEDULES = ["program", "earliest", "latest", 1, 2]
PLACE = "shl.b32 %t2, %own, 2; mov.u32 %t3, sm; add.u32 %t2, %t2, %t3;\n"  # %t2: a word of the own CTA


# --- launches -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [None, (2, 1, 2)])
@pytest.mark.parametrize("schedule", ["program", 3])
def test_who_is_in_which_cluster(given: tuple[int, int, int] | None, schedule: str | int) -> None:
    """By directive or by launch; a CTA of the same cluster is reached, whatever the order of clusters."""
    tuning = "" if given else ".reqnctapercluster 2, 1, 2"
    body = f"""mov.u32 %t2, %ctaid.y; mov.u32 %t3, %ctaid.z; mad.lo.u32 %n, %t3, 3, %t2;
    mad.lo.u32 %n, %n, 4, %t0; st.shared.u32 [sm], %n; {MEET}
    mapa.shared::cluster.u32 %t4, sm, 3; ld.shared::cluster.u32 %d0, [%t4];
    mov.u32 %d1, %cluster_ctarank; mov.pred %p1, %is_explicit_cluster; selp.u32 %d2, 1, 0, %p1; {MEET}"""
    text = text_of(body, 3, tuning=tuning)
    found = np.zeros((4, 3, 4, 3), np.uint32)
    load_text(text)["k"]((4, 3, 4), 1, [np.zeros(48, np.uint32), found], cluster=given, schedule=schedule)
    z, y, x = np.indices((4, 3, 4))
    last = (z | 1) * 12 + y * 4 + (x | 1)  # the CTA of the highest rank
    np.testing.assert_array_equal(found[..., 0], last)
    np.testing.assert_array_equal(found[..., 1], x % 2 + z % 2 * 2)
    assert (found[..., 2] == 1).all()


def test_waves_hold_whole_clusters() -> None:
    """More CTAs than fit in one wave; the number of a wave's CTAs is not a multiple of the cluster's."""
    body = f"{PLACE} st.shared.u32 [%t2], %a; {MEET} mapa.shared::cluster.u32 %t4, %t2, %peer;"
    body += f"ld.shared::cluster.u32 %d0, [%t4]; {MEET}"
    ctas, threads = 36, 352
    found = run(body, ctas, threads, 3, shared=2048)[..., 0]
    numbers = np.arange(1, ctas * threads + 1).reshape(-1, 3, threads)
    np.testing.assert_array_equal(found, np.roll(numbers, -1, axis=1).reshape(ctas, threads))


@pytest.mark.parametrize(
    ("grid", "cluster", "tuning", "message"),
    [
        (3, 2, "", "grid (3, 1, 1): x is not a multiple of 2, as clusters are 2 x 1 x 1 CTAs"),
        ((4, 3), (2, 2), "", "grid (4, 3, 1): y is not a multiple of 2, as clusters are 2 x 2 x 1 CTAs"),
        (34, 17, "",
         "a cluster of 17 x 1 x 1 CTAs has 17: at most 8 on sm_90a, or 16 where the host allows it"),
        (4, 0, "", "cluster (0, 1, 1): x is 1 to 2147483647"),
        (4, 4, ".reqnctapercluster 2", "cluster (4, 1, 1): the kernel says .reqnctapercluster (2, 1, 1)"),
        (3, None, ".reqnctapercluster 2",
         "grid (3, 1, 1): x is not a multiple of 2, as clusters are 2 x 1 x 1 CTAs"),
        (4, 4, ".maxclusterrank 2", "a cluster of 4 x 1 x 1 CTAs has 4: the kernel says .maxclusterrank 2"),
        (4, None, ".explicitcluster", "the kernel says .explicitcluster: the launch must name its cluster"),
        (4, None, ".reqnctapercluster 0", "a cluster of 0 x 1 x 1 CTAs: at least 1 along each axis"),
    ],
)  # fmt: skip
def test_what_a_launch_refuses(grid: object, cluster: object, tuning: str, message: str) -> None:
    with pytest.raises(OperandError) as caught:
        load_text(text_of("", tuning=tuning))["k"](grid, 1, [None, None], cluster=cluster)  # type: ignore[arg-type]
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("tuning", "message"),
    [
        (".explicitcluster 2", ".explicitcluster takes no numbers, not 1"),
        (".maxclusterrank", ".maxclusterrank takes 1 number, not 0"),
        (".maxnreg 2, 3", ".maxnreg takes 1 number, not 2"),
        (".reqnctapercluster", ".reqnctapercluster takes 1 to 3 numbers, not 0"),
    ],
)
def test_directives_have_their_numbers(tuning: str, message: str) -> None:
    with pytest.raises(IllegalInstruction) as caught:
        load_text(text_of("", tuning=tuning))["k"]
    assert caught.value.message == message


def test_blocks_are_clusters() -> None:
    found = np.zeros((6, 4, 2), np.uint32)
    tuning = ".blocksareclusters .reqntid 4 .reqnctapercluster 2"
    module = load_text(text_of("mov.u32 %d0, %nctaid.x; mov.u32 %d1, %clusterid.x;", 2, tuning=tuning))
    module["k"](3, 4, [np.zeros(24, np.uint32), found])
    assert found[:, 0].tolist() == [[6, 0], [6, 0], [6, 1], [6, 1], [6, 2], [6, 2]]


def test_clusters_that_are_not_portable_are_a_warning() -> None:
    body = "mov.u32 %d0, %cluster_ctarank;"
    found, report = launched(body, 16, 1, 16)
    assert found[:, 0, 0].tolist() == list(range(16))
    (warning,) = report.hazards
    assert (warning.kind, warning.severity) == ("not portable", "warning")
    assert warning.message.startswith("a cluster of 16 x 1 x 1 CTAs has 16: up to 8 are portable")
    assert warning.location.line == 4
    assert launched(body, 8, 1, 8)[1].hazards == ()


# --- addresses ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cluster", [1, 2, 4])
def test_ranks_and_windows_of_addresses(cluster: int) -> None:
    """mapa and getctarank are inverse; the own CTA's memory is in .shared::cta too, by its rank as well."""
    body = f"""{PLACE} cvt.u64.u32 %x1, %t2; cvta.shared.u64 %x2, %x1; mov.u32 %t8, 0;
    mapa.shared::cluster.u32 %t4, %t2, %peer; mapa.u64 %x3, %x2, %peer;
    mapa.shared::cluster.u64 %x4, %x1, %rank; getctarank.shared::cluster.u32 %d0, %t4;
    getctarank.u64 %d1, %x3; getctarank.shared::cluster.u32 %d2, %t2;
    cvta.to.shared::cluster.u64 %x5, %x3; cvt.u32.u64 %t5, %x5; setp.eq.u32 %p1, %t5, %t4;
    selp.u32 %d3, 1, 0, %p1;
    isspacep.shared::cluster %p1, %x3; selp.u32 %d4, 1, 0, %p1; isspacep.shared::cta %p1, %x3;
    selp.u32 %d5, 1, 0, %p1; isspacep.shared %p1, %x2; selp.u32 %d6, 1, 0, %p1;
    st.shared.u32 [%t2], %a; cvt.u32.u64 %t6, %x4; ld.shared::cta.u32 %d7, [%t6];
    cvta.shared::cluster.u64 %x6, %x4; isspacep.shared::cta %p1, %x6; selp.u32 %d8, 1, 0, %p1;
    ld.u32 %d9, [%x6];"""
    found = run(body, 4, 40, cluster, outputs=10)
    rank = np.arange(4)[:, None] % cluster
    words = np.arange(1, 161).reshape(4, 40)
    alone = int(cluster == 1)
    for place, wanted in enumerate(
        ((rank + 1) % cluster, (rank + 1) % cluster, rank, 1, 1, alone, 1, words, 1, words)
    ):
        np.testing.assert_array_equal(found[..., place], np.broadcast_to(wanted, (4, 40)), str(place))


def test_the_last_word_of_another_ctas_memory() -> None:
    body = f"""mov.u32 %t2, 0; mapa.shared::cluster.u32 %t4, %t2, %peer; {MEET}
    st.shared::cluster.u64 [%t4+LAST], 11; {MEET} ld.shared.u32 %d0, [%t2+LAST]; {MEET}"""
    with pytest.raises(Fault, match=r"leaves shared memory of \d+ bytes of CTA") as caught:
        run(body.replace("LAST", "4096"), 2, 1, 2)
    size = int(re.findall(r"memory of (\d+) bytes", caught.value.message)[0])
    assert (run(body.replace("LAST", str(size - 8)), 2, 1, 2) == 11).all()
    with pytest.raises(Fault, match=rf"leaves shared memory of {size} bytes of CTA"):
        run(body.replace("LAST", str(size)), 2, 1, 2)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("generic", [False, True])
def test_loads_stores_and_atomics_of_other_ctas(schedule: str | int, generic: bool) -> None:
    """Each CTA writes its neighbour's memory, adds to a word of every CTA, and reads what was left."""
    space, address = ("", "%x3") if generic else (".shared::cluster", "%t4")
    counter = "%x5" if generic else "%t6"
    body = f"""{PLACE} @%p8 st.shared.u32 [sm+512], 5; {MEET}
    cvt.u64.u32 %x1, %t2; cvta.shared::cta.u64 %x2, %x1; mapa.u64 %x3, %x2, %peer;
    mapa.shared::cluster.u32 %t4, %t2, %peer; st{space}.u32 [{address}], %a;
    mapa.shared::cluster.u32 %t6, sm+512, 0; cvt.u64.u32 %x4, %t6; cvta.shared::cluster.u64 %x5, %x4;
    atom{space}.add.u32 %t7, [{counter}], %rank; red{space}.max.u32 [{counter}+0], 0;
    {MEET} ld.shared.u32 %d0, [%t2]; ld{space}.u32 %d1, [{counter}]; {MEET}"""
    ctas, threads, cluster = 6, 64, 3
    found = run(body, ctas, threads, cluster, outputs=2, schedule=schedule)
    words = np.arange(1, ctas * threads + 1).reshape(-1, cluster, threads)
    np.testing.assert_array_equal(found[..., 0], np.roll(words, 1, axis=1).reshape(ctas, threads))
    assert (found[..., 1] == 5 + threads * (0 + 1 + 2)).all()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("mapa.shared::cluster.u32 %t4, sm, 5; ld.shared::cluster.u32 %d0, [%t4];",
         "address 0x7000000 is in shared memory of a CTA of rank 5: the cluster has 2 CTAs"),
        ("mapa.shared::cluster.u32 %t4, sm, 1000; st.shared::cluster.u32 [%t4], 1;",
         "the cluster has 2 CTAs"),
        ("mapa.shared::cluster.u32 %t4, sm, %peer; ld.shared.u32 %d0, [%t4];",
         "address 0x3000000 is in shared memory of CTA (1, 0, 0), rank 1, which .shared::cluster reaches"),
        ("mapa.shared::cluster.u32 %t4, sm, %peer; red.shared::cluster.add.u32 [%t4+99328], 1;",
         "address 0x3018400 leaves shared memory of 1072 bytes of CTA (1, 0, 0), rank 1"),
        ("mapa.shared::cluster.u32 %t4, sm, %peer; ld.shared::cluster.u32 %d0, [%t4+2];",
         "address 0x3000002 is not a multiple of 4"),
        ("mov.u64 %x1, 64; mapa.u64 %x2, %x1, 0;",
         "mapa.u64: the generic address 0x40 is not in shared memory"),
        ("setp.eq.u32 %p1, %rank, 1; @%p1 ret; mapa.shared::cluster.u32 %t4, sm, 1;"
         "ld.shared::cluster.u32 %d0, [%t4];",
         "address 0x3000000 is in shared memory of CTA (1, 0, 0), rank 1, which has ended"),
    ],
)  # fmt: skip
def test_what_no_address_reaches(body: str, message: str) -> None:
    with pytest.raises(Fault) as caught:
        run(body, 2, 32, checks="off")
    assert message in caught.value.message
    assert caught.value.location is not None
    assert caught.value.location.line == 14


def test_a_cta_alone_has_rank_0() -> None:
    body = "mapa.shared::cluster.u32 %t4, sm, 1; ld.shared::cluster.u32 %d0, [%t4];"
    with pytest.raises(Fault, match="of a CTA of rank 1: there is no cluster: 1 CTA"):
        run(body, 2, 32, None)


# --- the barrier ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("aligned", ["", ".aligned"])
def test_everyone_waits_for_everyone(schedule: str | int, aligned: str) -> None:
    """CTAs turn at their own pace, and meet in every turn; work stands between arriving and waiting."""
    body = f"""{PLACE} mov.u32 %t6, 0; mov.u32 %t7, %a; mapa.shared::cluster.u32 %t4, %t2, %peer;
    TURN: st.shared.u32 [%t2], %t7; barrier.cluster.arrive.release{aligned}; mul.lo.u32 %t8, %t7, 3;
    barrier.cluster.wait.acquire{aligned}; ld.shared::cluster.u32 %t5, [%t4]; add.u32 %t7, %t8, %t5;
    barrier.cluster.arrive{aligned}; barrier.cluster.wait{aligned}; add.u32 %t6, %t6, 1;
    setp.lt.u32 %p1, %t6, 5; @%p1 bra TURN; mov.u32 %d0, %t7;"""
    ctas, threads, cluster = 8, 96, 4
    words = np.arange(1, ctas * threads + 1, dtype=np.uint32).reshape(-1, cluster, threads)
    for _ in range(5):
        words = words * np.uint32(3) + np.roll(words, -1, axis=1)
    found = run(body, ctas, threads, cluster, schedule=schedule)[..., 0]
    np.testing.assert_array_equal(found, words.reshape(ctas, threads))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_lanes_that_exit_are_not_missed(schedule: str | int) -> None:
    """The second CTA leaves without arriving, some lanes of the first one too."""
    body = f"""setp.gt.u32 %p1, %own, 40; @%p1 bra END; setp.eq.u32 %p1, %rank, 1; @%p1 bra END;
    {MEET} mov.u32 %d0, 7; END:"""
    found = run(body, 4, 64, 2, schedule=schedule)[..., 0]
    np.testing.assert_array_equal(found, [[7] * 41 + [0] * 23, [0] * 64] * 2)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("barrier.cluster.wait;", "the lane has not arrived: barrier.cluster.arrive is missing"),
        ("barrier.cluster.arrive; barrier.cluster.arrive;",
         "the lane has arrived at line 14 and has not waited since: barrier.cluster.wait is missing"),
        (f"{MEET} barrier.cluster.wait;", "the lane has not arrived"),
    ],
)  # fmt: skip
def test_misuse_of_the_barrier(body: str, message: str) -> None:
    with pytest.raises(UndefinedBehavior) as caught:
        run(body, 2, 32)
    assert message in caught.value.message


def test_deadlock_says_who_is_missing() -> None:
    body = f"setp.eq.u32 %p1, %rank, 0; @%p1 bra A; bar.sync 1, 128; A: {MEET.splitlines()[0]}"
    message = (
        r"deadlock: no lane can continue \(barrier 1 has 64 of 128 threads\); waiting: "
        r"CTA \(1, 0, 0\), warp 0, "
        r"lane 0 and 63 more at .*:14:\d+ for barrier 1 of 128 threads; CTA \(0, 0, 0\), warp 0, lane 0 "
        r"and 63 more at .*:14:\d+ for the cluster barrier, at which CTA \(1, 0, 0\), warp 0, lane 0 and 63 "
        r"more have not arrived"
    )
    with pytest.raises(Fault, match=message):
        run(body, 2, 64)


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_of_phases(seed: int) -> None:
    """Rounds that exchange words with random ranks by loads, stores or additions, in any schedule."""
    random = Random(seed)
    cluster, threads = random.choice([2, 3, 4]), random.choice([8, 33, 64])
    ctas, lines = cluster * random.choice([1, 2]), [PLACE, "mov.u32 %t7, %a;"]
    words = np.arange(1, ctas * threads + 1, dtype=np.uint32).reshape(-1, cluster, threads)
    for turn in range(4):
        shift, kind = random.randrange(cluster), random.choice(["load", "store", "add"])
        arrive = random.choice(["", ".release"]) + random.choice(["", ".aligned"])
        meet = f"barrier.cluster.arrive{arrive}; barrier.cluster.wait;"
        lines.append(f"add.u32 %t5, %rank, {shift}; rem.u32 %t5, %t5, %ranks;")
        lines.append("mapa.shared::cluster.u32 %t4, %t2, %t5;")
        if kind == "load":
            lines.append(f"st.shared.u32 [%t2], %t7; {meet} ld.shared::cluster.u32 %t6, [%t4];")
        else:
            write = "st.shared::cluster.u32" if kind == "store" else "red.shared::cluster.add.u32"
            lines.append(
                f"st.shared.u32 [%t2], {turn}; {meet} {write} [%t4], %t7; {meet} ld.shared.u32 %t6, [%t2];"
            )
        lines.append(f"{meet} mad.lo.u32 %t7, %t7, 5, %t6;")
        other = np.roll(words, -shift if kind == "load" else shift, axis=1)
        words = words * np.uint32(5) + other + np.uint32(turn if kind == "add" else 0)
    body = "\n".join([*lines, "mov.u32 %d0, %t7;"])
    found = run(body, ctas, threads, cluster, schedule=random.choice(["program", "earliest", seed]))[..., 0]
    np.testing.assert_array_equal(found, words.reshape(ctas, threads))


# --- mistakes, and where they are -----------------------------------------------------------------------

TOLD = "st.async.shared::cluster.mbarrier::complete_tx::bytes"


@pytest.mark.parametrize(
    ("statement", "column", "message"),
    [
        ("mapa.shared.u32 %t1, sm, 1;", 5, "mapa has no modifier .shared here"),
        ("mapa.shared::cluster.u32 _, sm, 1;", 26, "mapa does not take '_' for its result"),
        ("mapa.u64 %x1, in, 1;", 15, "in is in .param, not in .shared"),
        ("getctarank.u64 %d0, %clock64;", 21, "getctarank does not take a special register"),
        ("barrier.cluster.wait.relaxed;", 1,
         "barrier has no form barrier.cluster.wait.relaxed: its modifiers do not go together"),
        ("barrier.cluster.arrive 0;", 1, "barrier.cluster.arrive takes 0 operands, but 1 is given"),
        ("setmaxnreg.inc.sync.aligned.u32 20;", 33, "a count of 20: expected 24 to 256 in steps of 8"),
        ("setmaxnreg.inc.sync.aligned.u32 %t1;", 33, "expected a constant, not '%t1'"),
        (f"{TOLD}.b32 [%t1], %x2, [%t3];", 66, f"{TOLD}.b32 takes .b32 here, but %x2 is .b64"),
        (f"{TOLD}.v2.b32 [%t1], %t2, [%t3];", 69, "expected 2 elements, not '%t2'"),
        (f"{TOLD}.b32 [%t1], %t2;", 1, f"{TOLD}.b32 takes 3 operands, but 2 are given"),
        ("cvta.to.shared::cluster.u64 %x1, sm;", 34,
         "expected a register, not 'sm'"),
    ],
)  # fmt: skip
def test_mistakes_have_a_place(statement: str, column: int, message: str) -> None:
    (problem,) = load_text(text_of(statement)).problems
    assert isinstance(problem, IllegalInstruction)
    assert problem.message == message
    assert str(problem.location) == f"<string>:14:{column}"


def test_directives_have_a_place() -> None:
    (problem,) = load_text(text_of("", tuning=".reqnctapercluster 2 .maxclusterrank 4")).problems
    assert problem.message == ".reqnctapercluster and .maxclusterrank do not go together"
    assert str(problem.location) == "<string>:4:73"
