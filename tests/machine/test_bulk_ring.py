"""The ring of bulk copies: the same bits under every schedule; what is said where a statement is missing."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers.families import usual
from tests.helpers.kernel_cases import FOLDER
from tests.helpers.pipeline_changes import Array, Launch, deletions, outcome
from warpsim.observe.checks.findings import Mode
from warpsim.programs.launch.launching import LaunchReport, LoadedModule, load_text

FORM = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
FILE = FOLDER / "bulk_ring.ptx"


@cache
def text() -> str:
    return FILE.read_text()


@cache
def module() -> LoadedModule:
    return load_text(text())


@cache
def operands(m: int, n: int, k: int) -> tuple[Array, Array, Array]:
    """A, the columns of B, and the words of D."""
    random = np.random.default_rng(m + n + k)
    a, b = (random.normal(size=shape).astype(np.float16) for shape in ((m, k), (k, n)))
    d = warpsim.gemm(warpsim.decode(FORM, target="sm_90a"), a, b)
    return a, np.ascontiguousarray(b.T), d.view(np.uint32)


def launching(m: int, n: int, k: int, ctas: int, checks: Mode = "warn") -> Launch:
    a, b, _ = operands(m, n, k)

    def launch(module: Any, schedule: str | int) -> tuple[LaunchReport, Array]:
        d = np.zeros((m, n), np.float32)
        report = module["bulk_ring"](ctas, 96, [a, b, d, m, n, k], schedule=schedule, checks=checks)
        return report, d.view(np.uint32)

    return launch


@pytest.mark.parametrize("schedule", ["program", "earliest", "latest", *range(usual(8, 22))])
def test_every_schedule_leaves_the_same_bits(schedule: str | int) -> None:
    """Two CTAs, one with two tiles: the ring of three stages is gone round twice."""
    m, n, k = 32, 96, 96
    report, d = launching(m, n, k, 2, "error")(module(), schedule)
    np.testing.assert_array_equal(d, operands(m, n, k)[2])
    assert report.hazards == ()


# --- what is missing, and what becomes of it ----------------------------------------------------------

SIZES = (32, 64, 128)  # two tiles of four steps each, in one CTA
SCHEDULES = ("program", "latest")

# By statement, in the order of the text: what a launch says when it is left out.
DELETED = (
    *[("mbarrier.init", "undefined")] * 6,
    ("fence.mbarrier_init", "missed"),  # PTX asks for it where other CTAs use the mbarrier
    ("bar.sync", "reported"),
    ("mbarrier.try_wait", "reported"),  # until the stage is empty
    ("mbarrier.arrive.expect_tx", "deadlock"),
    ("bar.warp.sync", "missed"),  # bytes may come before they are expected: no harm done
    ("cp.async.bulk.shared", "deadlock"),
    ("cp.async.bulk.shared", "deadlock"),
    ("mbarrier.try_wait", "reported"),  # until the stage is full
    ("bar.warp.sync", "missed"),  # the lanes have read: ldmatrix is a statement of the whole warp
    ("mbarrier.arrive", "deadlock"),
    ("cp.async.bulk.wait_group.read", "reported changed"),
    ("bar.warp.sync", "warned"),  # a lane stores where another one's copy has read
    ("fence.proxy.async", "reported"),
    ("bar.warp.sync", "warned"),
    ("cp.async.bulk.global", "changed"),
    ("cp.async.bulk.commit_group", "reported changed"),
    ("cp.async.bulk.wait_group.read", "warned"),
)

# What is changed: a pattern, what stands there instead, and what becomes of it.
CHANGED = {
    "64 bytes less are expected": (r"(mov.u32 \t%r204), 4096", r"\1, 4032", "changed reported warned"),
    "64 bytes more are expected": (r"(mov.u32 \t%r204), 4096", r"\1, 4160", "deadlock"),
    "copies are too short": (r"(mov.u32 \t%r211), 64", r"\1, 48", "deadlock"),
    "full expects two arrivals": (r"(mov.u32 \t%r46), 1", r"\1, 2", "deadlock"),
    "empty expects one arrival": (r"(mov.u32 \t%r48), 2", r"\1, 1", "deadlock"),
    "empty expects three arrivals": (r"(mov.u32 \t%r48), 2", r"\1, 3", "deadlock"),
    "the producer waits for stages that were never full": (r"(mov.u32 \t%r233), 1", r"\1, 0", "deadlock"),
    "consumers take the phase before the first": (r"(mov.u32 \t%r225), %r226", r"\1, 1", "reported"),
    "the producer's parity never changes": (r"xor.b32  \t%r233, %r233, %r218;", "", "reported"),
    "the consumers' parity never changes": (r"xor.b32  \t%r225, %r225, %r162;", "", "reported"),
    "the producer begins with another stage": (r"(mov.u32 \t%r234), 0", r"\1, 1", "deadlock"),
    "the producer uses two stages": (r"(setp.eq.s32 \t%p13, %r217), 3", r"\1, 2", "deadlock"),
    "consumers use two stages": (r"(setp.eq.s32 \t%p6, %r161), 3", r"\1, 2", "deadlock"),
    "consumers arrive at the full stage": (
        r"(add.s32 \t%r158, %r160, %r142;)",
        r"\1 sub.u32 %r158, %r158, 24;",
        "deadlock",
    ),
}


def _becomes(changed: str) -> str:
    return outcome(changed, launching(*SIZES, 1), operands(*SIZES)[2], SCHEDULES)[0]


def test_the_table_has_every_statement() -> None:
    names = [name.split(" without ")[1] for name, _ in deletions(text())]
    assert len(names) == len(DELETED)
    assert all(name.startswith(start) for name, (start, _) in zip(names, DELETED, strict=True))


@pytest.mark.parametrize("place", range(len(DELETED)), ids=lambda place: f"{place} {DELETED[place][0]}")
def test_a_statement_is_missing(place: int) -> None:
    _, changed = list(deletions(text()))[place]
    assert set(DELETED[place][1].split()) <= set(_becomes(changed).split())


@pytest.mark.parametrize("name", CHANGED)
def test_something_is_wrong(name: str) -> None:
    pattern, by, expected = CHANGED[name]
    changed, made = re.subn(pattern, by, text(), count=1)
    assert made
    assert set(expected.split()) <= set(_becomes(changed).split())


def test_what_is_said_of_missing_statements() -> None:
    """The whole message of some: both statements, what is missing, and where it goes."""
    lines = {name.split(" without ")[0]: changed for name, changed in deletions(text())}
    launch = launching(*SIZES, 1)
    for line, message in SAID.items():
        assert outcome(lines[line], launch, operands(*SIZES)[2], ["program"])[1] == message


COPY = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
STORE = "cp.async.bulk.global.shared::cta.bulk_group"
SAID = {
    "230": "read early: ldmatrix.sync.aligned.m8n8.x4.shared.b16 reads stages of shared memory, which "
    f"{COPY} of line 164 brings: it is there when phase 1 of the mbarrier full[0] is over, and warp 0 has "
    "not seen that; put mbarrier.try_wait.parity on full[0] with parity 0 before line 251 "
    "[CTA (0, 0, 0), warp 0, lane 0]",
    "319": f"source overwritten: st.shared.v2.f32 writes results of shared memory, which {STORE} of line 369 "
    "may still read: nothing says here that it has been read; put cp.async.bulk.wait_group.read 0 before "
    "line 332, in warp 0, lane 0, and a barrier behind it if that is another warp "
    "[CTA (0, 0, 0), warp 0, lane 0]",
    "341": f"not visible: {STORE} reads results of shared memory, which warp 0 stores at line 332, through "
    "the async proxy: no fence.proxy.async has come between; put fence.proxy.async.shared::cta behind line "
    "332 [CTA (0, 0, 0), warp 0, lane 0]",
}
