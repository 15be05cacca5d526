"""st.async, red.async and arrivals at mbarriers of other CTAs: bits, bytes that are told, misuse."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.cluster_kernels import MEET, run
from warpsim.base.errors import Fault, UndefinedBehavior
from warpsim.programs.launch.launching import load_text

SCHEDULES = ["program", "earliest", "latest", 1, 2, 3]
TOLD = ".shared::cluster.mbarrier::complete_tx::bytes"


def begun(count: int, size: int) -> str:
    """The first thread makes an mbarrier that waits for arrivals and bytes; then the cluster meets."""
    expect = f"@%p8 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], {size};" if size else ""
    fence = "@%p8 fence.mbarrier_init.release.cluster;"
    return f"@%p8 mbarrier.init.shared::cta.b64 [bar], {count}; {expect} {fence} {MEET}"


ARRIVE = "@%p8 mbarrier.arrive.shared::cta.b64 _, [bar];"
WAIT = "WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [bar], 0; @!%p1 bra WAIT;"
PEER = "mapa.shared::cluster.u32 %t3, sm, %peer; mapa.shared::cluster.u32 %t5, bar, %peer;"

# type, elements, how many bytes
STORES = [
    ("b32", 1, 4), ("u32", 1, 4), ("s32", 1, 4), ("f32", 1, 4), ("b64", 1, 8), ("u64", 1, 8), ("s64", 1, 8),
    ("f64", 1, 8), ("b32", 2, 8), ("f32", 4, 16), ("u64", 2, 16),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "count", "size"), STORES)
@pytest.mark.parametrize("generic", [False, True])
def test_stores(kind: str, count: int, size: int, generic: bool) -> None:
    """Every lane sends words to the next CTA, which waits for all bytes."""
    threads, words = 40, size // 4
    mechanism = TOLD.replace(".shared::cluster", "") if generic else f".weak{TOLD}"
    wide = kind.endswith("64")
    sent = [f"%x{place}" if wide else f"%t{4 + place}" for place in range(4, 4 + count)] if wide else []
    values = sent or [f"%v{place}" for place in range(count)]
    vector = f".v{count}" if count > 1 else ""
    operand = "{" + ", ".join(values) + "}" if count > 1 else values[0]
    make = "".join(f"mul.lo.u32 %v{place}, %a, {3 + 2 * place};" for place in range(words))
    pack = "".join(
        f"mov.b64 %x{4 + place}, {{%v{2 * place}, %v{2 * place + 1}}};" for place in range(count * wide)
    )
    to = "cvt.u64.u32 %x1, %t4; cvta.shared::cluster.u64 %x1, %x1; cvt.u64.u32 %x2, %t5;"
    to += "cvta.shared::cluster.u64 %x2, %x2;"
    places = ("%x1", "%x2") if generic else ("%t4", "%t5")
    read = "".join(f"ld.shared.u32 %d{place}, [%t6+{4 * place}];" for place in range(words))
    body = f""".reg .b32 %v<4>; {begun(1, threads * size)} {PEER} {make} {pack}
    mad.lo.u32 %t4, %own, {size}, %t3;
    mov.u32 %t6, sm; mad.lo.u32 %t6, %own, {size}, %t6; {to}
    st.async{mechanism}{vector}.{kind} [{places[0]}], {operand}, [{places[1]}];
    {ARRIVE} {WAIT} {read}"""
    source = np.arange(1, 2 * threads + 1, dtype=np.uint32).reshape(2, threads, 1)[::-1]
    expected = source * (3 + 2 * np.arange(words, dtype=np.uint32))
    for schedule in ("program", "latest", 5):
        np.testing.assert_array_equal(run(body, 2, threads, outputs=words, schedule=schedule), expected)


# what lanes send to a word, what it begins with, and what Python makes of it
REDUCTIONS = [
    ("add.u32", 7, lambda old, values: (old + sum(values)) % 2**32),
    ("add.s32", 7, lambda old, values: (old + sum(values)) % 2**32),
    ("min.u32", 2**31, lambda old, values: min(old, *values)),
    ("max.u32", 5, lambda old, values: max(old, *values)),
    ("min.s32", 5, lambda old, values: min((value ^ 2**31) - 2**31 for value in (old, *values)) % 2**32),
    ("max.s32", 2**31, lambda old, values: max((value ^ 2**31) - 2**31 for value in (old, *values)) % 2**32),
    ("and.b32", 2**32 - 1, lambda old, values: int(np.bitwise_and.reduce(np.uint32(values), initial=old))),
    ("or.b32", 1, lambda old, values: int(np.bitwise_or.reduce(np.uint32(values), initial=old))),
    ("xor.b32", 1, lambda old, values: int(np.bitwise_xor.reduce(np.uint32(values), initial=old))),
]


@pytest.mark.parametrize(("operation", "begin", "oracle"), REDUCTIONS)
def test_reductions(operation: str, begin: int, oracle: object) -> None:
    threads, cluster = 32, 3
    values = np.random.default_rng(1).integers(0, 2**32, (cluster, threads), np.uint32)
    body = f"""@%p8 st.shared.u32 [sm], {begin}; {begun(1, 4 * threads * (cluster - 1))} mov.u32 %t6, 1;
    TURN: add.u32 %t7, %rank, %t6; rem.u32 %t7, %t7, %ranks; mapa.shared::cluster.u32 %t3, sm, %t7;
    mapa.shared::cluster.u32 %t5, bar, %t7; red.async.relaxed.cluster{TOLD}.{operation} [%t3], %a, [%t5];
    add.u32 %t6, %t6, 1; setp.lt.u32 %p2, %t6, %ranks; @%p2 bra TURN;
    {ARRIVE} {WAIT} ld.shared.u32 %d0, [sm];"""
    for schedule in ("program", "latest", 5):
        found = run(body, cluster, threads, cluster, values=values, schedule=schedule)
        for cta in range(cluster):
            wanted = oracle(begin, np.delete(values, cta, axis=0).reshape(-1).tolist())  # type: ignore[operator]
            assert set(found[cta, :, 0].tolist()) == {wanted}


def test_a_counter_of_64_bits_and_one_that_wraps() -> None:
    body = f"""@%p8 st.shared.u64 [sm], 0xffffffff; @%p8 st.shared.u32 [sm+8], 30; {begun(1, 64 * 12)} {PEER}
    cvt.u64.u32 %x1, %a; red.async.relaxed.cluster{TOLD}.add.u64 [%t3], %x1, [%t5];
    red.async.relaxed.cluster{TOLD}.inc.u32 [%t3+8], 40, [%t5];
    {ARRIVE} {WAIT} ld.shared.v2.u32 {{%d0, %d1}}, [sm]; ld.shared.u32 %d2, [sm+8];"""
    found = run(body, 2, 64, outputs=3)
    for cta, total in enumerate((sum(range(65, 129)), sum(range(1, 65)))):
        whole = 0xFFFF_FFFF + total
        assert found[cta, 0].tolist() == [whole % 2**32, whole >> 32, (30 + 64) % 41]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("generic", [False, True])
def test_arrivals_at_other_ctas(schedule: str | int, generic: bool) -> None:
    """A full and an empty barrier between a CTA that produces and one that consumes, four times around."""
    address = "cvt.u64.u32 %x1, %t5; cvta.shared::cluster.u64 %x1, %x1;" if generic else ""
    arrive = "mbarrier.arrive.release.cluster"
    arrive += ".b64 _, [%x1];" if generic else ".shared::cluster.b64 _, [%t5];"
    wait = "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [bar], %t6; @!%p1 bra"
    body = f"""{begun(32, 0)} {PEER} {address} shl.b32 %t7, %own, 2; add.u32 %t3, %t3, %t7; mov.u32 %t8, sm;
    add.u32 %t7, %t7, %t8; mov.u32 %t6, 0; mov.u32 %t4, 0; setp.eq.u32 %p2, %rank, 1; @%p2 bra CONSUME;
    PRODUCE: mad.lo.u32 %t2, %t4, 1000, %a; st.shared::cluster.u32 [%t3], %t2; {arrive}
    EMPTY: {wait} EMPTY; xor.b32 %t6, %t6, 1; add.u32 %t4, %t4, 1; setp.lt.u32 %p3, %t4, 4; @%p3 bra PRODUCE;
    bra END;
    CONSUME: {wait} CONSUME; xor.b32 %t6, %t6, 1; ld.shared.u32 %t2, [%t7]; mad.lo.u32 %d0, %d0, 3, %t2;
    {arrive} add.u32 %t4, %t4, 1; setp.lt.u32 %p3, %t4, 4; @%p3 bra CONSUME;
    END:"""
    found = run(body, 4, 32, schedule=schedule)[..., 0]
    for cta in (1, 3):
        wanted = np.zeros(32, np.int64)
        for turn in range(4):
            wanted = wanted * 3 + turn * 1000 + 32 * (cta - 1) + np.arange(1, 33)
        assert found[cta].tolist() == wanted.tolist()


def test_bytes_are_expected_and_completed_from_afar() -> None:
    """mbarrier.expect_tx, complete_tx and arrive.expect_tx, arrive_drop at an object of another CTA."""
    body = f"""{begun(2, 0)} {PEER}
    @%p8 mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%t5], 24;
    @%p8 mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%t5], 8;
    @%p8 mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%t5], 32;
    @%p8 mbarrier.arrive_drop.release.cluster.shared::cluster.b64 _, [%t5];
    {WAIT} ld.shared.v2.u32 {{%d0, %d1}}, [bar];"""
    found = run(body, 2, 1, outputs=2)
    words = found[:, 0, 0].astype(np.uint64) | found[:, 0, 1].astype(np.uint64) << np.uint64(32)
    assert (words & np.uint64((1 << 20) - 1)).tolist() == [1, 1]  # arrivals of the next phase


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        (f"st.async{TOLD}.b32 [%t3], %a, [bar];", UndefinedBehavior,
         "the mbarrier is not in the CTA of the destin"),
        (f"red.async.relaxed.cluster{TOLD}.add.u32 [sm], %a, [bar];", UndefinedBehavior,
         "the destination is in the lane's own CTA"),
        (f"st.async{TOLD}.b32 [%t3], %a, [%t5+8];", UndefinedBehavior,
         "no mbarrier has been initialised there"),
        (f"st.async{TOLD}.b32 [%t3+2], %a, [%t5];", Fault, "is not a multiple of 4"),
        ("mov.u64 %x1, 64; st.async.mbarrier::complete_tx::bytes.b32 [%x1], %a, [%x1];", Fault,
         "the generic address 0x40 is not in shared memory"),
        ("mbarrier.test_wait.parity.shared::cta.b64 %p1, [%t5], 0;", Fault, "which .shared::cluster reaches"),
        ("mbarrier.arrive.shared::cta.b64 _, [%t5];", Fault, "which .shared::cluster reaches"),
    ],
)  # fmt: skip
def test_misuse(body: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        run(begun(1, 0) + PEER + body, 2, 32)


def test_a_cta_alone_is_no_cluster_for_stores() -> None:
    with pytest.raises(UndefinedBehavior, match="the CTA is alone in its cluster"):
        run(f"{begun(1, 0)} st.async{TOLD}.b32 [sm], %a, [bar];", 2, 32, 1)


# --- global memory ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_released_stores_and_reductions(schedule: str | int) -> None:
    """They reach global memory before the launch is over."""
    text = """.version 9.0
.target sm_100a
.address_size 64
.entry k(.param .u64 out) { .reg .b32 %r<4>; .reg .b64 %d<6>; .reg .b16 %h<3>; mov.u32 %r0, %tid.x;
ld.param.u64 %d0, [out]; mad.wide.u32 %d1, %r0, 16, %d0; add.u32 %r1, %r0, 100; cvt.u64.u32 %d2, %r1;
cvt.u16.u32 %h1, %r1;
st.async.release.gpu.global.b32 [%d1], %r1; st.async.mmio.release.sys.global.u64 [%d1+8], %d2;
st.async.release.sys.b16 [%d1+4], %h1; red.async.release.gpu.global.add.u32 [%d0+512], %r0;
red.async.mmio.release.sys.max.u32 [%d0+516], %r0; ret; }"""
    found = np.zeros(130, np.uint32)
    load_text(text)["k"](1, 32, [found], schedule=schedule)
    numbers = np.arange(100, 132)
    np.testing.assert_array_equal(
        found[:128].reshape(32, 4), np.stack([numbers, numbers, numbers, 0 * numbers], axis=1)
    )
    assert found[128:].tolist() == [sum(range(32)), 31]
