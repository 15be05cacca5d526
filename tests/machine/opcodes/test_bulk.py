"""Bulk copies and reductions: every direction, byte for byte, whenever they complete."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from warpsim.base.errors import Fault, UndefinedBehavior, WarpsimError
from warpsim.programs.launch.launching import load_text

Array = npt.NDArray[Any]
SCHEDULES = ("program", "earliest", "latest", 1, 2, 3)
CTAS, BYTES = 3, 256
LOAD = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
STORE = "cp.async.bulk.global.shared::cta.bulk_group"

HEAD = """.version 9.0
.target {target}
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out, .param .u64 kept) {{
.reg .b16 %h<4>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p, %q;
.shared .align 128 .b8 a[{size}]; .shared .align 128 .b8 b[{size}]; .shared .align 8 .b64 bar;
ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; ld.param.u64 %d3, [kept];
mov.u32 %r1, %ctaid.x; mul.wide.u32 %d4, %r1, {size};
add.u64 %d1, %d1, %d4; add.u64 %d2, %d2, %d4;
mov.u32 %r2, %tid.x; setp.eq.u32 %q, %r2, 0;
@%q mbarrier.init.shared.b64 [bar], 1;
bar.sync 0;
@!%q bra wait;
{body}
wait:
mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;
@!%p bra wait;
{after}
ret;
}}
"""
EXPECT = "mbarrier.arrive.expect_tx.shared.b64 _, [bar], {size};\n"
FENCE = "fence.proxy.async.shared::cta;\n"
BACK = f"bar.sync 0;\n{FENCE}@%q {STORE} [%d2], [{{of}}], {{size}};\n"
DONE = "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n"
ALL = BACK + DONE


def launch(
    body: str,
    after: str,
    schedule: str | int,
    kept: Array | None = None,
    target: str = "sm_100a",
    size: int = BYTES,
) -> tuple[Array, Array]:
    """What each CTA was given and what came out, ``(CTAS, size)`` uint8."""
    words = {"size": size, "of": "a"}
    text = HEAD.format(body=body.format(**words), after=after.format(**words), target=target, size=size)
    given = np.random.default_rng(5).integers(0, 256, (CTAS, size)).astype(np.uint8)
    out = np.full((CTAS, size), 7, np.uint8)
    kept = np.zeros(64, np.uint8) if kept is None else kept
    load_text(text)["k"](CTAS, 32, [given, out, kept], schedule=schedule, checks="off")
    return given, out


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    "load",
    [
        LOAD + " [a], [%d1], {size}, [bar];",
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [a], [%d1], {size}, [bar];",
        LOAD + ".L2::cache_hint [a], [%d1], {size}, [bar], %d4;",
        "mov.b16 %h1, 1; " + LOAD + ".multicast::cluster [a], [%d1], {size}, [bar], %h1;",
        "mov.b32 %r3, 48; "
        + LOAD
        + " [a], [%d1], %r3, [bar];\n"
        + LOAD
        + " [a+48], [%d1+48], {size}-48, [bar];",
    ],
)
def test_there_and_back(load: str, schedule: str | int) -> None:
    given, out = launch(EXPECT + load.replace("{size}-48", "208"), ALL, schedule)
    np.testing.assert_array_equal(out, given)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_from_shared_to_shared(schedule: str | int) -> None:
    """Through generic stores, a fence and a copy between two places of one CTA."""
    body = "".join(
        f"ld.global.b32 %r3, [%d1+{place}]; st.shared.b32 [b+{place}], %r3;\n" for place in range(0, BYTES, 4)
    )
    body += FENCE + EXPECT
    body += (
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [a], [b], {size}, [bar];\n"
    )
    given, out = launch(body, ALL, schedule)
    np.testing.assert_array_equal(out, given)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("mask", [0xFFFF, 0, 1, 0x8000, 0xA5C3])
def test_byte_masks(mask: int, schedule: str | int) -> None:
    store = f"mov.b16 %h1, {mask};\n@%q {STORE}.cp_mask [%d2], [a], {{size}}, %h1;\n"
    given, out = launch(EXPECT + LOAD + " [a], [%d1], {size}, [bar];", store + DONE, schedule)
    chosen = np.array([mask >> place % 16 & 1 for place in range(BYTES)], np.bool_)
    np.testing.assert_array_equal(out, np.where(chosen, given, np.uint8(7)))


def test_latest_is_late() -> None:
    """Without a wait, a copy has not begun to land; nor has the source been read."""
    peek = EXPECT + LOAD + " [a], [%d1], {size}, [bar];\nld.shared.b32 %r5, [a]; st.global.b32 [%d3], %r5;"
    for schedule, there in (("program", True), ("latest", False)):
        kept = np.zeros(64, np.uint8)
        given, _ = launch(peek, "", schedule, kept)
        assert bool((kept[:4] == given[-1, :4]).all()) is there


def test_a_source_that_is_overwritten() -> None:
    """.read waits for the source only: without it the new bytes may be stored."""
    store = BACK + "cp.async.bulk.commit_group;\n{wait}st.shared.b32 [a], 0x01010101;\n".replace(
        "{wait}", "{{wait}}"
    )
    for schedule, wait, changed in (
        ("latest", "", True),
        ("program", "", False),
        ("latest", "cp.async.bulk.wait_group.read 0;\n", False),
        (9, "cp.async.bulk.wait_group.read 0;\n", False),
    ):
        after = store.replace("{{wait}}", wait) + "cp.async.bulk.wait_group 0;\n"
        given, out = launch(EXPECT + LOAD + " [a], [%d1], {size}, [bar];", after, schedule)
        assert bool((out[:, :4] == 1).all()) is changed
        np.testing.assert_array_equal(out[:, 4:], given[:, 4:])


def test_groups_complete_from_the_oldest() -> None:
    """wait_group 1 waits for all groups but the latest one."""
    stores = (
        "@%q {0} [%d2], [a], 16;\n@%q cp.async.bulk.commit_group;\n"
        "@%q {0} [%d2+16], [a+16], 16;\n@%q cp.async.bulk.commit_group;\n"
        "@%q cp.async.bulk.wait_group {1};\n@%q ld.global.b32 %r5, [%d2]; @%q ld.global.b32 %r6, [%d2+16];\n"
        "mul.wide.u32 %d6, %r1, 8; add.u64 %d6, %d3, %d6;\n"
        "@%q st.global.b32 [%d6], %r5; @%q st.global.b32 [%d6+4], %r6;\n"
    )
    for most, there in ((0, (True, True)), (1, (True, False)), (2, (False, False))):
        kept = np.zeros(64, np.uint8)
        after = FENCE + stores.format(STORE, most)
        given, out = launch(EXPECT + LOAD + " [a], [%d1], {size}, [bar];", after, "latest", kept)
        found = kept[: 8 * CTAS].reshape(CTAS, 2, 4)
        assert tuple((found[:, i] == given[:, 16 * i : 16 * i + 4]).all() for i in range(2)) == there
        np.testing.assert_array_equal(out[:, :32], given[:, :32])


# --- reductions --------------------------------------------------------------------------------------

INTEGERS = {
    "u32": np.uint32,
    "s32": np.int32,
    "u64": np.uint64,
    "s64": np.int64,
    "b32": np.uint32,
    "b64": np.uint64,
}


def _slow(name: str, kind: str, old: Array, new: Array) -> Array:
    """One element after the other, by Python's integers."""
    dtype = np.dtype(INTEGERS[kind])
    bits = dtype.itemsize * 8
    actions = {
        "add": lambda a, b: a + b,
        "min": min,
        "max": max,
        "and": lambda a, b: a & b,
        "or": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b,
        "inc": lambda a, b: 0 if a >= b else a + 1,
        "dec": lambda a, b: b if a == 0 or a > b else a - 1,
    }
    pairs = zip(old.reshape(-1).view(dtype).tolist(), new.reshape(-1).view(dtype).tolist(), strict=True)
    found = [actions[name](a, b) % (1 << bits) for a, b in pairs]
    return np.array(found, f"u{bits // 8}").view(np.uint8).reshape(old.shape)


REDUCTIONS = [
    *((name, kind) for name in ("add",) for kind in ("u32", "s32", "u64")),
    *((name, kind) for name in ("min", "max") for kind in ("u32", "s32", "u64", "s64")),
    *((name, kind) for name in ("and", "or", "xor") for kind in ("b32", "b64")),
    *((name, "u32") for name in ("inc", "dec")),
]


@pytest.mark.parametrize(("name", "kind"), REDUCTIONS)
def test_reductions_of_integers(name: str, kind: str) -> None:
    reduce = f"@%q cp.reduce.async.bulk.global.shared::cta.bulk_group.{name}.{kind} [%d3], [a], {{size}};\n"
    load = EXPECT + LOAD + " [a], [%d1], {size}, [bar];"
    kept = np.random.default_rng(8).integers(0, 256, BYTES).astype(np.uint8)
    expected = kept.copy()
    given, _ = launch(load, FENCE + reduce + DONE, "program", kept)
    for one in given:
        expected = _slow(name, kind, expected, one)
    np.testing.assert_array_equal(kept, expected)


@pytest.mark.parametrize(("name", "kind"), [one for one in REDUCTIONS if one[1] in ("u32", "s32", "b32")])
def test_reductions_in_shared_memory(name: str, kind: str) -> None:
    """The result goes back to global memory when a second phase is over."""
    load = EXPECT.replace("{size}", "512") + "".join(
        LOAD + f" [{to}], [%d{source}], {{size}}, [bar];\n" for to, source in (("a", 1), ("b", 3))
    )
    reduce = (
        f"@%q {EXPECT}@%q cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes."
        f"{name}.{kind} [b], [a], {{size}}, [bar];\n"
        "more:\nmbarrier.try_wait.parity.shared.b64 %p, [bar], 1;\n@!%p bra more;\n"
    )
    kept = np.random.default_rng(8).integers(0, 256, BYTES).astype(np.uint8)
    given, out = launch(load, reduce + ALL.replace("{of}", "b"), "latest", kept)
    for one, found in zip(given, out, strict=True):
        np.testing.assert_array_equal(found, _slow(name, kind, kept, one))


@pytest.mark.parametrize(
    ("spelled", "dtype"), [("add.f32", "f4"), ("add.f64", "f8"), ("add.noftz.f16", "f2"), ("min.f16", "f2")]
)
def test_reductions_of_floats(spelled: str, dtype: str) -> None:
    """One CTA, ordinary numbers: one IEEE operation an element."""
    text = HEAD.format(
        body=(EXPECT + LOAD + " [a], [%d1], {size}, [bar];").format(size=BYTES),
        after=(
            FENCE + f"@%q cp.reduce.async.bulk.global.shared::cta.bulk_group.{spelled} [%d3], [a], {BYTES};\n"
        )
        + DONE,
        target="sm_90a",
        size=BYTES,
    )
    random = np.random.default_rng(4)
    given, kept = (random.normal(size=BYTES // np.dtype(dtype).itemsize).astype(dtype) for _ in range(2))
    expected = kept + given if spelled.startswith("add") else np.minimum(kept, given)
    report = load_text(text)["k"](1, 32, [given, np.zeros(16, np.uint8), kept], checks="off")
    np.testing.assert_array_equal(kept.view(np.uint8), expected.view(np.uint8))
    notes = [one.note for one in report.fidelity["inferred"]]
    assert any("subnormals are flushed" in note for note in notes) == (spelled == "add.f32")


# --- mistakes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        (
            "mov.b32 %r3, 24; " + LOAD + " [a], [%d1], %r3, [bar];",
            Fault,
            "a size of 24: expected a multiple of 16",
        ),
        (LOAD + " [a+8], [%d1], 16, [bar];", Fault, "address 0x8 is not a multiple of 16"),
        (LOAD + " [a], [%d1+4], 16, [bar];", Fault, "is not a multiple of 16"),
        (LOAD + " [a+528], [%d1], 16, [bar];", Fault, "leaves shared memory of 528 bytes"),
        (LOAD + " [a], [%d1], 16, [bar+4];", Fault, "address 0x204 is not a multiple of 8"),
        (LOAD + " [a], [%d1], 16, [b];", UndefinedBehavior, "no mbarrier has been initialised there"),
        (LOAD + ".multicast::cluster [a], [%d1], 16, [bar], 2;", Fault, ""),
        (
            STORE + " [%d3], [a], 512;",
            Fault,
            "512 bytes from there run 448 bytes over the end of kept of 64 bytes",
        ),
        (STORE + " [%d5], [a], 16;", Fault, "is in no allocation"),
        ("cp.async.bulk.prefetch.L2.global [%d1+4], 16;", Fault, "not a multiple of 16"),
    ],
)
def test_mistakes(statement: str, error: type[WarpsimError], message: str) -> None:
    with pytest.raises(error) as caught:
        launch("mov.b64 %d5, 0;\n" + statement + "\n" + EXPECT, "", "program")
    assert message in str(caught.value)
    assert "CTA (0, 0, 0), warp 0, lane 0" in str(caught.value)


# --- clusters ----------------------------------------------------------------------------------------

CLUSTER = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out) .reqnctapercluster 4 {
.reg .b16 %h<4>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p, %q;
.shared .align 128 .b8 a[256]; .shared .align 8 .b64 bar;
ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out];
mov.u32 %r1, %ctaid.x; mul.wide.u32 %d4, %r1, 256; add.u64 %d2, %d2, %d4;
mov.u32 %r2, %tid.x; setp.eq.u32 %q, %r2, 0;
@%q mbarrier.init.shared.b64 [bar], 1;
fence.mbarrier_init.release.cluster;
@%q mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256;
barrier.cluster.arrive.release; barrier.cluster.wait.acquire;
mov.u32 %r3, %cluster_ctarank;
@!%q bra wait;
mul.wide.u32 %d5, %r3, 64; add.u64 %d6, %d1, %d5; mov.u32 %r5, a; shl.b32 %r6, %r3, 6; add.u32 %r5, %r5, %r6;
__COPY__
wait:
mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;
@!%p bra wait;
shl.b32 %r7, %r2, 3; mov.u32 %r8, a; add.u32 %r8, %r8, %r7; ld.shared.b64 %d7, [%r8];
mul.wide.u32 %d8, %r2, 8; add.u64 %d2, %d2, %d8; st.global.b64 [%d2], %d7;
barrier.cluster.arrive; barrier.cluster.wait;
ret;
}
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_multicast(schedule: str | int) -> None:
    """Each CTA brings a quarter to all four: everyone has all of it."""
    copy = f"mov.b16 %h1, 15; {LOAD}.multicast::cluster [%r5], [%d6], 64, [bar], %h1;"
    given = np.random.default_rng(3).integers(0, 256, 256).astype(np.uint8)
    out = np.zeros((8, 256), np.uint8)
    report = load_text(CLUSTER.replace("__COPY__", copy))["k"](8, 32, [given, out], schedule=schedule)
    assert report.hazards == ()
    np.testing.assert_array_equal(out, np.broadcast_to(given, out.shape))


def test_the_ranks_of_a_mask() -> None:
    """Odd CTAs get nothing, and wait for ever; a rank that is not there is an error."""
    copy = f"mov.b16 %h1, 5; {LOAD}.multicast::cluster [%r5], [%d6], 64, [bar], %h1;"
    given, out = np.zeros(256, np.uint8), np.zeros((4, 256), np.uint8)
    with pytest.raises(
        Fault, match=r"phase 1 of the mbarrier bar, which lacks 256 bytes that nothing in flight"
    ):
        load_text(CLUSTER.replace("__COPY__", copy))["k"](4, 32, [given, out])
    with pytest.raises(Fault, match="a CTA of rank 4: the cluster has 4 CTAs"):
        load_text(CLUSTER.replace("__COPY__", copy.replace("5;", "16;")))["k"](4, 32, [given, out])
