"""Timelines of launches: what warps did in which order, under every schedule, and what is selected of it."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.helpers.kernel_cases import FOLDER, case
from warpsim.base.errors import OperandError, WarpsimError
from warpsim.observe.recording.selection import selection_of
from warpsim.observe.recording.strips import Strip, Timeline
from warpsim.observe.recording.timeline import TimelineRecorder
from warpsim.programs.launch.launching import LoadedModule, load_text

SCHEDULES = ("program", "earliest", "latest", "random:7")


@cache
def loaded(file: str) -> LoadedModule:
    return load_text((FOLDER / file).read_text(), file)


def timeline(name: str, schedule: str, selection: str | bool = "cta=0") -> Timeline:
    """Of a launch that must leave what it is expected to."""
    one = case(name)
    kernel = loaded(one.file)[one.entry]
    given = one.passed(one.arguments)
    report = kernel(
        one.grid,
        one.block,
        given,
        shared_bytes=one.shared_bytes,
        schedule=schedule,
        checks="off",
        timeline=selection,
    )
    for index, expected in one.expected.items():
        left = one.arguments[index]
        np.testing.assert_array_equal(left.view(np.uint8), expected.view(np.uint8))
    assert report.timeline is not None
    return report.timeline


def of_kind(found: Timeline, kind: str) -> list[Strip]:
    return [one for one in found.strips if one.kind == kind]


def check_order(found: Timeline) -> None:
    """Everything ends after it began, nothing after the last moment, and causes come before effects."""
    for one in found.strips:
        assert one.last is not None
        assert 0 <= one.first <= one.last < found.moments
    for link in found.links:
        assert link.target.kind in ("wait", "barrier")
        assert link.target.last is not None
        assert link.source.first <= link.moment <= link.target.last
    for name, end in found.warps.items():
        assert end is not None
        assert all(one.first < end for one in found.of(*name))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_warp_specialised_kernel(schedule: str) -> None:
    """Seven steps of k: two copies each by warp 8, four wgmma each of two warpgroups."""
    found = timeline("cooperative_f16", schedule)
    check_order(found)
    assert list(found.warps) == [((0, 0, 0), warp) for warp in range(12)]
    copies = of_kind(found, "copy")
    assert len(copies) == 14
    assert {(one.warp, one.name) for one in copies} == {(8, "tensor copy")}
    assert {one.size for one in copies} == {16384, 8192}
    multiplications = of_kind(found, "wgmma")
    assert [one.warp for one in multiplications].count(0) == 7
    assert {(one.warp, one.warps, one.count) for one in multiplications} == {(0, 4, 4), (4, 4, 4)}
    assert {link.source.kind for link in found.links} >= {"copy", "wgmma", "arrival", "store"}


def test_waits_take_longer_where_copies_are_late() -> None:
    early, late = (timeline("cooperative_f16", one) for one in ("program", "latest"))

    def longest(found: Timeline) -> int:
        return max(one.last - one.first for one in of_kind(found, "copy") if one.last is not None)

    assert longest(early) == 1
    assert longest(late) > 10


@pytest.mark.parametrize("schedule", ["latest", "random:7"])
def test_a_ring_of_bulk_copies(schedule: str) -> None:
    """Each copy of a row is told, lanes that copy together in one strip."""
    found = timeline("bulk_ring normal", schedule)
    check_order(found)
    assert list(found.warps) == [((0, 0, 0), warp) for warp in range(3)]
    copies = of_kind(found, "copy")
    assert {one.warp for one in copies} == {2}
    assert sum(one.count for one in copies) == 32 * 28
    assert sum(one.count for one in of_kind(found, "matrix")) == sum(
        one.count for one in timeline("bulk_ring normal", "program").strips if one.kind == "matrix"
    )
    assert {one.warp for one in of_kind(found, "store")} == {0, 1}


@pytest.mark.parametrize("schedule", ["program", "random:7"])
def test_a_kernel_with_cp_async(schedule: str) -> None:
    """Two warps; copies land when they are waited for, each group at a wait of its own."""
    found = timeline("dense_f16 normal", schedule)
    check_order(found)
    copies = of_kind(found, "copy")
    assert {(one.name, one.count) for one in copies} == {("cp.async", 2)}
    for one in copies:
        (link,) = (link for link in found.links if link.source is one)
        assert link.moment == one.last
        assert link.target.first < one.last < link.target.last
        assert link.target.warp == one.warp


def test_what_is_selected() -> None:
    everything = timeline("dense_f16 normal", "program", True)
    assert len({cta for cta, _ in everything.warps}) > 1
    some = timeline("dense_f16 normal", "program", "cta=0 warp=1")
    assert list(some.warps) == [((0, 0, 0), 1)]
    assert {(one.cta, one.warp) for one in some.strips} == {((0, 0, 0), 1)}
    line = of_kind(some, "matrix")[0].lines[0]
    lines = timeline("dense_f16 normal", "program", f"cta=0 line={line}")
    assert {one.kind for one in lines.strips} == {"matrix"}
    first = timeline("dense_f16 normal", "program", f"cta=0 line={line} step=0")
    assert [(one.warp, one.count) for one in first.strips] == [(0, 1), (1, 1)]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_ctas_of_a_cluster_are_shown_together(schedule: str) -> None:
    """Copies and arrivals of one CTA end waits of the other; alone, they have no cause there."""
    found = timeline("multicast_f16", schedule, "cta=0 cta=1")
    check_order(found)
    assert {cta for cta, _ in found.warps} == {(0, 0, 0), (1, 0, 0)}
    across = [link for link in found.links if link.source.cta != link.target.cta]
    kinds = {(one.source.kind, one.target.kind) for one in across}
    assert kinds >= {("arrival", "wait"), ("arrival", "barrier")}
    assert ("copy", "wait") in kinds or schedule in ("program", "earliest")  # where copies are late
    remote = [one for one in of_kind(found, "arrival") if any("of CTA" in note for note in one.notes)]
    assert {tuple(one.cta) for one in remote} == {(0, 0, 0), (1, 0, 0)}
    alone = timeline("multicast_f16", schedule, "cta=1")
    assert not [link for link in alone.links if link.source.cta != link.target.cta]


@pytest.mark.parametrize("name", ["cooperative_f16", "dense_f16 normal", "bulk_ring normal"])
@pytest.mark.parametrize("schedule", ["program", "random:7"])
def test_strips_name_the_executions_that_are_recorded(name: str, schedule: str) -> None:
    one = case(name)
    kernel = loaded(one.file)[one.entry]
    report = kernel(
        one.grid,
        one.block,
        one.passed(one.arguments),
        shared_bytes=one.shared_bytes,
        schedule=schedule,
        checks="off",
        timeline="cta=0",
        record="cta=0",
    )
    assert report.timeline is not None
    named = [(strip.warp, *one) for strip in report.timeline.strips for one in strip.executions]
    assert sorted(named) == sorted((one.warp, one.pc, one.index) for one in report.events)


def test_a_timeline_on_which_nobody_insists_stops_nothing() -> None:
    one = case("dense_f16 normal")
    kernel = loaded(one.file)[one.entry]
    recorder = TimelineRecorder(selection_of(True), limit=20, insisted=False)
    kernel(one.grid, one.block, one.passed(one.arguments), observers=[recorder])
    assert recorder.is_full


def test_without_a_timeline_there_is_none() -> None:
    one = case("dense_f16 normal")
    kernel = loaded(one.file)[one.entry]
    assert kernel(one.grid, one.block, one.passed(one.arguments)).timeline is None


def test_too_many_events() -> None:
    one = case("dense_f16 normal")
    kernel = loaded(one.file)[one.entry]
    recorder = TimelineRecorder(selection_of(True), limit=20)
    with pytest.raises(OperandError) as raised:
        kernel(one.grid, one.block, one.passed(one.arguments), observers=[recorder])
    assert raised.value.message == (
        "the timeline has more than 20 events: select fewer, by cta=, warp=, line= or step="
    )
    assert raised.value.location is not None
    assert len(recorder.timeline().strips) == 20


def test_a_deadlock_leaves_waits_that_do_not_end() -> None:
    one = case("bulk_ring normal")
    text = (FOLDER / one.file).read_text()
    expecting = "mbarrier.arrive.expect_tx"
    changed = "\n".join("" if expecting in line else line for line in text.split("\n"))
    recorder = TimelineRecorder(selection_of("cta=0"))
    with pytest.raises(WarpsimError, match="deadlock"):
        load_text(changed)[one.entry](
            one.grid, one.block, one.passed(one.arguments), observers=[recorder], checks="off"
        )
    found = recorder.timeline()
    assert {strip.kind for strip in found.strips if strip.last is None} == {"wait"}
    assert {tuple(strip.notes) for strip in found.strips if strip.last is None} == {
        ("mbarrier full[0]",),
        ("mbarrier empty[0]",),
    }
    assert set(found.warps.values()) == {None}
