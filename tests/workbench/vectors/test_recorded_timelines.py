"""Timelines in recordings: written and read back, and what a reader refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from tests.helpers.recorded import recording
from tests.observe.recording.test_timeline import timeline
from warpsim.base.errors import TraceError
from warpsim.observe.recording.strips import Timeline
from warpsim.workbench.vectors.formats.recording import read_recording, write_recording
from warpsim.workbench.vectors.formats.recording_parts import timeline_document, timeline_from

Document = dict[str, Any]


def texts(found: Timeline) -> list[Any]:
    """Everything of a timeline, strips by their number."""
    numbers = {strip: number for number, strip in enumerate(found.strips)}
    strips = [{**vars(one), "flying": 0} for one in found.strips]
    links = [(numbers[one.source], numbers[one.target], one.moment) for one in found.links]
    return [strips, links, dict(found.warps), list(found.warps), found.moments, found.schedule]


@pytest.mark.parametrize("name", ["cooperative_f16", "multicast_f16", "bulk_ring normal", "dense_f16 normal"])
def test_written_and_read(name: str) -> None:
    found = timeline(name, "latest")
    document = json.loads(json.dumps(timeline_document(found)))
    assert texts(timeline_from(document, (1 << 20, 1 << 20, 1), 12)) == texts(found)


def test_a_recording_keeps_it(tmp_path: Any) -> None:
    whole = recording()
    assert whole.timeline is not None
    write_recording(tmp_path / "whole.npz", whole)
    read = read_recording(tmp_path / "whole.npz").timeline
    assert read is not None
    assert texts(read) == texts(whole.timeline)
    assert read.schedule == "program"


@cache
def _document() -> str:
    """The text of a right document, which is changed below; made by the first test that needs it."""
    return json.dumps(timeline_document(timeline("bulk_ring normal", "program")))


def _change(path: str, value: Any) -> Callable[[Document], None]:
    *places, last = [int(one) if one.isdigit() else one for one in path.split("/")]

    def change(document: Document) -> None:
        inner: Any = document
        for place in places:
            inner = inner[place]
        inner[last] = value

    return change


WRONG: dict[str, tuple[Callable[[Document], Any], str]] = {
    "a key more": (_change("more", 1), "timeline: an object with the keys moments, schedule, warps, "),
    "a key less": (lambda document: document.pop("links"), "timeline: an object with the keys moments, "),
    "moments": (_change("moments", -1), "timeline: moments: -1 is not a number from 0 to "),
    "true": (_change("moments", True), "timeline: moments: True is not a number from 0 to "),
    "schedule": (_change("schedule", "two\nlines"), "timeline: schedule is printable text on one line"),
    "a warp that the launch lacks": (
        _change("warps/0/3", 3),
        "timeline: warps: 3 is not a number from 0 to 2",
    ),
    "a CTA that the launch lacks": (
        _change("warps/0/1", 1),
        "timeline: warps: 1 is not a number from 0 to 0",
    ),
    "a warp of four": (
        _change("warps/0", [0, 0, 0, 0]),
        "timeline: warps: each has x, y, z, a warp and an end",
    ),
    "no strips": (_change("strips", None), "timeline: strips is an array of at most 4,000"),
    "too many": (
        lambda one: one["strips"].extend(one["strips"] * 200),
        "timeline: strips is an array of at ",
    ),
    "kind": (_change("strips/3/kind", "rest"), "timeline: strip 3: there is no kind 'rest'"),
    "of no warp": (
        _change("strips/3/warp", 9),
        "timeline: strip 3 is of a warp that the timeline does not have",
    ),
    "of no CTA": (_change("strips/3/cta", [0, 0]), "timeline: strip 3 is of a warp that the timeline does "),
    "of no statement": (
        _change("strips/3/pc", 9999),
        "timeline: strip 3 is of a statement that the timeline ",
    ),
    "late": (
        _change("strips/3/first", 10**6),
        "timeline: strip 3: first: 1000000 is not a number from 0 to ",
    ),
    "backwards": (_change("strips/9/last", 0), "timeline: strip 9 ends before it begins"),
    "no line": (_change("strips/3/lines", []), "timeline: strip 3: lines is empty"),
    "notes": (
        _change("strips/3/notes", ["\x1b[31m"]),
        "timeline: strip 3: notes is printable text on one line",
    ),
    "executions": (
        _change("strips/3/executions", [[1]]),
        "timeline: strip 3: executions: each has a place and ",
    ),
    "a link of no strip": (
        _change("links/0/0", 10**6),
        "timeline: links: each has the numbers of two strips ",
    ),
    "a statement": (_change("statements/0", [1]), "timeline: statements: each has a place and a text"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused(name: str) -> None:
    change, message = WRONG[name]
    document = json.loads(_document())
    change(document)
    with pytest.raises(TraceError) as raised:
        timeline_from(document, (1, 1, 1), 3)
    assert raised.value.message.startswith(message)


def test_a_recording_in_which_nobody_looked_at_packing_has_no_notes() -> None:
    assert replace(recording(), packing=None).notes_of(1) == ()
