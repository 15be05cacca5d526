"""tcgen05 in timelines: what is in flight, from its issue to its completion, and what ends which wait."""

from __future__ import annotations

import numpy as np
import pytest

import warpsim
from tests.helpers.tensor_core_products import mxf8
from warpsim.observe.recording.strips import Strip, Timeline

ISSUER = 5  # the warp that multiplies


@pytest.fixture(scope="module")
def timeline() -> Timeline:
    case = mxf8(np.random.default_rng(0), size=(128, 64, 128))
    kernel = warpsim.load(f"traces/kernels/{case.file}")[case.entry]
    given = case.passed(case.arguments)
    report = kernel(case.grid, case.block, given, shared_bytes=case.shared_bytes, timeline=True)
    assert report.timeline is not None
    return report.timeline


def _named(timeline: Timeline, name: str) -> list[Strip]:
    return [strip for strip in timeline.of((0, 0, 0), ISSUER) if strip.name == name]


def test_copies_and_products_complete_in_the_order_of_issue(timeline: Timeline) -> None:
    copies, products = (_named(timeline, name) for name in ("copy to tensor memory", "tcgen05.mma"))
    assert [strip.kind for strip in copies] == ["copy"] * 2
    assert [strip.size for strip in copies] == [512] * 2
    assert [strip.kind for strip in products] == ["tensor"] * 4
    assert [strip.size for strip in products] == [(128 + 64) * 32] * 4
    ends = [strip.last for strip in (*copies, *products)]
    assert None not in ends
    assert ends == sorted(ends, key=lambda end: end or 0)


def test_commits_end_the_waits_of_readers(timeline: Timeline) -> None:
    commits = _named(timeline, "commit")
    assert [strip.kind for strip in commits] == ["tensor"] * 2
    ended = {link.target.warp for link in timeline.links if link.source in commits}
    assert ended >= {0, 1, 2, 3}


def test_waits_for_loads_are_waits(timeline: Timeline) -> None:
    waits = [strip for strip in timeline.strips if "wait::ld" in strip.statement]
    assert {strip.warp for strip in waits} == {0, 1, 2, 3}
    assert all(strip.kind == "wait" and strip.last is not None for strip in waits)
