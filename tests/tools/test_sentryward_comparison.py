"""What SentryWard is asked, and how its answers stand next to ours: without it, but for one question."""

from __future__ import annotations

import pytest

from tools.pipeline_changes import sentryward
from tools.pipeline_changes.changes import Change, changes
from tools.pipeline_changes.comparison import Pair, listed, pairs, summed
from tools.pipeline_changes.kernels import PIPELINES, Pipeline
from tools.pipeline_changes.reduced import expecting, reduced
from tools.pipeline_changes.sentryward import Verdict
from tools.pipeline_changes.trial import Outcome, became

BY_NAME = {one.entry: one for one in PIPELINES}


@pytest.mark.parametrize("pipeline", PIPELINES, ids=lambda one: one.entry)
def test_lines_stay_where_they_are(pipeline: Pipeline) -> None:
    assert reduced(pipeline.text).count("\n") == pipeline.text.count("\n")
    assert "wgmma" not in reduced(pipeline.text)


def test_what_is_only_written_otherwise_leaves_the_same_bits() -> None:
    ring = BY_NAME["tensor_ring"]
    text = reduced(ring.text)
    assert "bfi" in ring.text
    assert "bfi" not in text
    assert became(ring, text, ["program"]) == Outcome(word="missed", schedule="program")


def test_a_reduced_pipeline_gives_no_alarm_and_leaves_what_is_expected() -> None:
    dense = BY_NAME["cooperative_f16"]
    text = reduced(dense.text)
    assert became(dense, text, ["program"]).word == "changed"
    assert became(expecting(dense), text, ["program", 1]).word == "missed"


def test_a_question() -> None:
    asked = sentryward._question(BY_NAME["multicast_f16"])
    assert asked["launch"] == {
        "grid_dim": [2, 1, 1],
        "block_dim": [384, 1, 1],
        "dynamic_shared_bytes": BY_NAME["multicast_f16"].case.shared_bytes,
    }
    assert asked["arguments"] == [{"parameter": "multicast_f16_param_3", "type": "u32", "value": 704}]
    assert asked["tma_descriptors"][0] == {
        "parameter": "multicast_f16_param_0",
        "object": "array_0",
        "element_type": "f16",
        "rank": 2,
        "global_shape": [704, 128],
        "global_strides_bytes": [1408],
        "box_shape": [64, 64],
        "element_strides": [1, 1],
        "swizzle": "128B",
        "interleave": "none",
        "oob_fill": "zero",
    }
    assert sentryward._question(BY_NAME["bulk_ring"])["declarations"][2] == {
        "parameter": "bulk_ring_param_2",
        "type": "pointer",
        "space": "global",
        "object": "array_2",
    }


@pytest.mark.parametrize(
    ("result", "code", "word"),
    [
        ("race_free", "", "fine"),
        ("potential_race", "conflicting_accesses_unordered", "wrong"),
        ("tool_failure", "missing-barrier-initialization", "wrong"),
        ("tool_failure", "unexpected_exception", "undecided"),
        ("unsupported", "unsupported_ptx_instruction", "undecided"),
        ("timeout", "", "undecided"),
    ],
)
def test_a_verdict(result: str, code: str, word: str) -> None:
    found = sentryward._verdict({"result": result, "diagnostics": [{"code": code}] if code else []})
    assert found.word == word


def pair(ours: str, theirs: str) -> Pair:
    change = Change(line=7, statement="bar.sync", what="left out", text="")
    return Pair(
        entry="k", change=change, ours=Outcome(word=ours, kind="race"), theirs=Verdict(word=theirs, why="w")
    )


def test_who_says_something() -> None:
    both, ours, theirs = pair("reported", "wrong"), pair("warned", "fine"), pair("missed", "wrong")
    found = [both, ours, theirs, pair("changed", "fine"), pair("deadlock", "undecided")]
    assert [one.word for one in found] == ["both", "only warpsim", "only SentryWard", "neither", "undecided"]
    assert list(summed(found))[-1] == "| all | 5 | 1 | 1 | 1 | 1 | 1 |"
    assert list(listed(found))[2:] == [
        "| k | `bar.sync`: left out | only warpsim | warned race / w | 7 |",
        "| k | `bar.sync`: left out | only SentryWard | missed race / w | 7 |",
        "| k | `bar.sync`: left out | undecided | deadlock race / w | 7 |",
    ]


def test_it_is_asked_about_lines_from_the_first_to_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not about changes of what it is not shown."""
    monkeypatch.setattr("tools.pipeline_changes.comparison.decided", lambda *given: Verdict(word="fine"))
    monkeypatch.setattr("tools.pipeline_changes.comparison.became", lambda *given: Outcome(word="missed"))
    asked = [one.change for one in pairs(BY_NAME["cooperative_f16"], 2) if one.change]
    sort = ("mbarrier.try_wait.parity.shared::cta.b64", "left out")
    lines = [one.line for one in changes(BY_NAME["cooperative_f16"]) if (one.statement, one.what) == sort]
    assert [one.line for one in asked if (one.statement, one.what) == sort] == [lines[0], lines[-1]]
    assert not [one for one in asked if one.statement.startswith("wgmma.fence")]


@pytest.mark.skipif(not sentryward.available(), reason=sentryward.INSTALL)
def test_it_proves_an_intact_pipeline() -> None:
    ring = BY_NAME["bulk_ring"]
    assert sentryward.decided(ring, reduced(ring.text)) == Verdict(word="fine")
