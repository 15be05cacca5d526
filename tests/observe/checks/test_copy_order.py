"""Rules of asynchronous copies, one by one: a kernel that keeps each, and kernels that break it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from warpsim.base.errors import WarpsimError
from warpsim.programs.launch.launching import LaunchReport, load_text

SCHEDULES = ("program", "earliest", "latest", 1, 2)
HEAD = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out) {
.reg .b32 %r<9>, %own, %warp; .reg .b64 %in, %out, %base, %place; .reg .pred %first, %p, %second, %one;
.shared .align 128 .b8 a[1024]; .shared .align 128 .b8 b[1024];
.shared .align 8 .b64 full; .shared .align 8 .b64 empty;
ld.param.u64 %in, [in]; ld.param.u64 %out, [out];
mov.u32 %own, %tid.x; shr.u32 %warp, %own, 5;
setp.eq.u32 %first, %own, 0; setp.eq.u32 %one, %own, 32; setp.eq.u32 %second, %warp, 1;
mul.wide.u32 %place, %own, 4; add.u64 %base, %out, %place;
shl.b32 %r1, %own, 2;
"""
INIT = "@%first mbarrier.init.shared.b64 [full], 1; @%first mbarrier.init.shared.b64 [empty], {count};\n"
LOAD = (
    "@%first mbarrier.arrive.expect_tx.shared.b64 _, [full], 256;\n"
    "@%first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [{to}], [%in], 256, [full];\n"
)
SYNC = "bar.sync 0;\n"
FENCE = "fence.proxy.async.shared::cta;\n"
STORE = "@%first cp.async.bulk.global.shared::cta.bulk_group [%out], [{of}], 256;\n"
COMMIT = "cp.async.bulk.commit_group;\n"
READ = "ld.shared.b32 %r2, [%r1];\n"
WRITE = "st.shared.b32 [%r1], %own;\n"
ARRIVE = "mbarrier.arrive.shared.b64 _, [empty];\n"
KEEP = "st.global.b32 [%base], %r2;\n"


def wait(name: str, parity: int, guard: str = "") -> str:
    label = f"L{wait.count}"  # type: ignore[attr-defined]
    wait.count += 1  # type: ignore[attr-defined]
    text = f"mbarrier.try_wait.parity.shared.b64 %p, [{name}], {parity};\n@!%p bra {label};\n"
    return f"{label}:\n{text}" if not guard else f"@!{guard} bra {label}x;\n{label}:\n{text}{label}x:\n"


wait.count = 0  # type: ignore[attr-defined]


def launch(body: str, schedule: str | int = "program", checks: Any = "warn", count: int = 64) -> LaunchReport:
    text = HEAD + INIT.format(count=count) + SYNC + body + "ret;\n}\n"
    given = np.arange(256, dtype=np.uint32)
    return load_text(text)["k"](1, 64, [given, np.zeros(256, np.uint32)], schedule=schedule, checks=checks)


def broken(report: LaunchReport) -> list[str]:
    """The kinds of findings; most of the array that is stored to stays as it was, which is a note."""
    return [one.kind for one in report.hazards if one.kind != "unwritten"]


def kinds(body: str, schedule: str | int = "program") -> set[str]:
    """Of errors that are found, before a deadlock too."""
    found: tuple[Any, ...]
    try:
        found = launch(body, schedule).hazards
    except WarpsimError as error:
        found = error.earlier
    return {one.kind for one in found if one.severity == "error"}


LOADED = LOAD.format(to="a")
END = "cp.async.bulk.wait_group.read 0;\n"
MOVED = (
    "@%first mbarrier.arrive.expect_tx.shared.b64 _, [full], 256;\n"
    "@%first cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [b], [a], 256, [full];\n"
)
COVERED = LOADED + wait("full", 0) + READ + KEEP
KEPT = {
    "each waits": LOADED + wait("full", 0) + READ + KEEP,
    "one waits, all meet": LOADED + wait("full", 0, "%first") + SYNC + READ + KEEP,
    "tested until it is over": LOADED
    + "T: mbarrier.test_wait.parity.shared.b64 %p, [full], 0;\n@!%p bra T;\n"
    + READ
    + KEEP,
    "read, arrived, overwritten": LOADED
    + wait("full", 0)
    + READ
    + ARRIVE
    + wait("empty", 0, "%first")
    + LOADED
    + wait("full", 1)
    + READ
    + KEEP,
    "read, a barrier, overwritten": LOADED + wait("full", 0) + READ + SYNC + LOADED + wait("full", 1) + KEEP,
    "stored, fenced, met, sent": WRITE + FENCE + SYNC + STORE.format(of="a") + COMMIT + END,
    "stored, met, fenced, sent": WRITE + SYNC + FENCE + STORE.format(of="a") + COMMIT + END,
    "sent, waited, met, stored": WRITE + FENCE + SYNC + STORE.format(of="a") + COMMIT + END + SYNC + WRITE,
    "stored, arrived, sent": "@%second bra S;\n"
    + WRITE
    + FENCE
    + "bar.arrive 1, 64;\nbra E;\nS: bar.sync 1, 64;\n"
    + "@%one cp.async.bulk.global.shared::cta.bulk_group [%out], [a], 128;\n"
    + COMMIT
    + END
    + "E:\n",
    "moved, waited for, stored": WRITE + FENCE + SYNC + MOVED + wait("full", 0) + WRITE,
    "brought and sent": LOADED + wait("full", 0) + STORE.format(of="a") + COMMIT + END,
    "expected after it was issued": (
        "@%first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [a], [%in], 256, [full];\n"
        "@%first mbarrier.arrive.expect_tx.shared.b64 _, [full], 256;\n"
    )
    + wait("full", 0)
    + READ
    + KEEP,
}
BROKEN = {
    "nobody waits": (LOADED + READ + KEEP, {"read early", "left in flight"}),
    "one waits, they do not meet": (LOADED + wait("full", 0, "%first") + READ + KEEP, {"read early"}),
    "the parity before": (LOADED + wait("full", 1) + READ + KEEP, {"read early", "left in flight"}),
    "not arrived": (
        LOADED + wait("full", 0) + READ + LOADED + wait("full", 1) + KEEP,
        {"overwritten early"},
    ),
    "arrived, not waited for": (
        LOADED + wait("full", 0) + READ + ARRIVE + LOADED + wait("full", 1) + KEEP,
        {"overwritten early"},
    ),
    "arrived before reading": (
        LOADED
        + wait("full", 0)
        + ARRIVE
        + READ
        + wait("empty", 0, "%first")
        + LOADED
        + wait("full", 1)
        + KEEP,
        {"overwritten early"},
    ),
    "overwritten before it was seen": (
        LOADED
        + "mbarrier.expect_tx.shared.b64 [full], 0;\n"
        + wait("full", 0, "%second")
        + LOADED
        + wait("full", 1),
        {"overwritten early"},
    ),
    "no fence": (WRITE + SYNC + STORE.format(of="a") + COMMIT + END, {"not visible"}),
    "a fence before the store": (FENCE + WRITE + SYNC + STORE.format(of="a") + COMMIT + END, {"not visible"}),
    "no barrier": (WRITE + FENCE + STORE.format(of="a") + COMMIT + END, {"not visible"}),
    "stored while it is sent": (
        WRITE + FENCE + SYNC + STORE.format(of="a") + COMMIT + SYNC + WRITE + END,
        {"source overwritten"},
    ),
    "stored while it is moved": (
        WRITE + FENCE + SYNC + MOVED + WRITE + wait("full", 0),
        {"source overwritten"},
    ),
    "stored where a copy arrives": (LOADED + WRITE + wait("full", 0), {"source overwritten"}),
    "waited for, not met": (
        WRITE + FENCE + SYNC + STORE.format(of="a") + COMMIT + END + WRITE,
        {"source overwritten"},
    ),
    "arrived, then stored": (
        "@%second bra S;\nbar.arrive 1, 64;\n"
        + WRITE
        + FENCE
        + "bra E;\nS: bar.sync 1, 64;\n@%one cp.async.bulk.global.shared::cta.bulk_group [%out], [a], 128;\n"
        + COMMIT
        + END
        + "E:\n",
        {"not visible"},
    ),
    "sent before it is there": (
        LOADED + STORE.format(of="a") + COMMIT + END + wait("full", 0),
        {"not visible"},
    ),
    "another initialises": (
        "@%one mbarrier.init.shared.b64 [empty], 1;\n" + LOADED.replace("full", "empty"),
        {"not initialised"},
    ),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", KEPT)
def test_kept(name: str, schedule: str | int) -> None:
    assert broken(launch(KEPT[name], schedule)) == []


@pytest.mark.parametrize("name", BROKEN)
def test_broken(name: str) -> None:
    """Under any schedule, but where one stops before: at a wait without an end, or an arrival too many."""
    body, expected = BROKEN[name]
    found = [kinds(body, schedule) for schedule in ("program", "latest")]
    assert expected <= found[0] | found[1]
    assert all(expected <= one for one in found) or name in (
        "the parity before",
        "overwritten before it was seen",
    )


# --- wgmma -------------------------------------------------------------------------------------------

TILES = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out) {
.reg .b32 %r<9>, %own; .reg .f32 %f<4>; .reg .b64 %in, %out, %place, %a, %b; .reg .pred %first, %p;
.shared .align 128 .b8 tiles[2304]; .shared .align 8 .b64 full; .shared .align 8 .b64 empty;
ld.param.u64 %in, [in]; ld.param.u64 %out, [out];
mov.u32 %own, %tid.x; setp.eq.u32 %first, %own, 0;
mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;
@%first mbarrier.init.shared.b64 [full], 1; @%first mbarrier.init.shared.b64 [empty], 128;
bar.sync 0;
mov.u64 %a, 0x0000001000080000; mov.u64 %b, 0x0000001000080080;
__BODY__
mul.wide.u32 %place, %own, 16; add.u64 %out, %out, %place; st.global.v4.f32 [%out], {%f0, %f1, %f2, %f3};
ret;
}
"""
BRING = (
    "@%first mbarrier.arrive.expect_tx.shared.b64 _, [full], 2304;\n"
    "@%first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
    "[tiles], [%in], 2304, [full];\n"
)
MULTIPLY = (
    "wgmma.fence.sync.aligned;\n"
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %a, %b, 1, 1, 1, 0, 0;\n"
    "wgmma.commit_group.sync.aligned;\n"
)
DONE = "wgmma.wait_group.sync.aligned 0;\n"
AGAIN = ARRIVE + wait("empty", 0, "%first") + BRING + wait("full", 1)


def multiplied(body: str, schedule: str | int) -> tuple[set[str], np.ndarray]:
    """Kinds of errors, and D."""
    given = np.random.default_rng(1).normal(size=1152).astype(np.float16)
    out = np.zeros((128, 4), np.float32)
    module = load_text(TILES.replace("__BODY__", body))
    found = module["k"](1, 128, [given, out], schedule=schedule, checks="warn").hazards
    return {one.kind for one in found if one.severity == "error"}, out.view(np.uint32)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_wgmma_reads_what_copies_bring(schedule: str | int) -> None:
    once, expected = multiplied(BRING + wait("full", 0) + MULTIPLY + DONE, "program")
    assert once == set()
    assert expected.any()
    body = BRING + wait("full", 0) + MULTIPLY + DONE + AGAIN + MULTIPLY + DONE
    found, twice = multiplied(body, schedule)
    assert found == set()
    assert np.array_equal(twice, multiplied(body, "program")[1])


@pytest.mark.parametrize("schedule", ["program", "latest"])
def test_wgmma_without_a_wait(schedule: str | int) -> None:
    early = BRING + MULTIPLY + DONE + wait("full", 0)
    assert "read early" in multiplied(early, schedule)[0]
    late = BRING + wait("full", 0) + MULTIPLY + AGAIN + DONE
    assert "overwritten early" in multiplied(late, schedule)[0]


LOADED = "shl.b32 %r8, %own, 2;\nmov.u32 %r7, tiles;\nadd.u32 %r8, %r8, %r7;\n" + "".join(
    f"ld.shared.b32 %r{one}, [%r8+{512 * one}];\n" for one in range(4)
)
LOADED_PRODUCT = MULTIPLY.replace("%a, %b, 1, 1, 1, 0, 0", "{%r0, %r1, %r2, %r3}, %b, 1, 1, 1, 0")
RELEASE = "@%first mbarrier.arrive.shared.b64 _, [empty];\n" + wait("empty", 0, "%first")


@pytest.mark.parametrize("schedule", ["program", "latest", 1])
@pytest.mark.parametrize(
    ("middle", "expected"),
    [
        (LOADED + LOADED_PRODUCT + DONE + RELEASE, set()),  # one thread stands for the four warps
        (LOADED + LOADED_PRODUCT + RELEASE, {"overwritten early"}),
        (LOADED_PRODUCT + LOADED + DONE + RELEASE, {"overwritten early"}),
        (LOADED + MULTIPLY + DONE + RELEASE, {"overwritten early"}),  # nothing that was loaded is in it
    ],
)
def test_who_waited_for_wgmma_knows_that_its_registers_were_loaded(
    middle: str, expected: set[str], schedule: str | int
) -> None:
    start = "".join(f"mov.b32 %r{one}, 0;\n" for one in range(4))
    body = (start + BRING + wait("full", 0) + middle + BRING + wait("full", 1)) + DONE
    text = TILES.replace("__BODY__", body).replace("[empty], 128", "[empty], 1")
    given, out = np.ones(1152, np.float16), np.zeros((128, 4), np.float32)
    found = load_text(text)["k"](1, 128, [given, out], schedule=schedule, checks="warn").hazards
    assert {one.kind for one in found if one.severity == "error"} & {"overwritten early"} == expected


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_copy_over_what_was_stored_wants_a_proxy_fence(schedule: str | int) -> None:
    assert broken(launch(WRITE + FENCE + SYNC + COVERED, schedule)) == []
    (told, _) = launch(WRITE + SYNC + COVERED, schedule).hazards  # the other is a note
    assert (told.kind, told.severity) == ("overwritten early", "warning")
    assert "overwrites a of shared memory through the async proxy, which warp " in told.message
    assert "no fence.proxy.async says which comes last" in told.message


@pytest.mark.parametrize("schedule", ["program", "latest", 1])
def test_wgmma_sees_the_copy_and_not_what_was_stored_before_it(schedule: str | int) -> None:
    stored, product = "@%first st.shared.b32 [tiles], 7;\n" + SYNC, MULTIPLY + DONE
    found, d = multiplied(stored + BRING + wait("full", 0) + product, schedule)
    assert found == set()
    assert np.array_equal(d, multiplied(BRING + wait("full", 0) + product, schedule)[1])
    assert multiplied(BRING + wait("full", 0) + stored + product, schedule)[0]


def test_a_wait_for_the_phase_before_is_named() -> None:
    """The second copy is read after a wait for the first one's phase."""
    loaded = LOAD.format(to="a")
    body = loaded + wait("full", 0) + SYNC + loaded + READ + KEEP + wait("full", 1)
    first = next(one for one in launch(body).hazards if one.kind == "read early")
    assert (
        "brings: it is there when phase 2 of the mbarrier full is over, and warp 0 has not seen"
        in first.message
    )
    assert re.search(
        r"\(its wait at line \d+ was over with phase 1\).*wait there for phase 2, parity 1", first.message
    )
