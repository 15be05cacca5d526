"""The table of changed pipelines: a sample of it made again, and the rules that it asked for."""

from __future__ import annotations

import random
from functools import cache

import pytest

from tools.pipeline_changes.changes import Change, changes
from tools.pipeline_changes.kernels import PIPELINES, Pipeline
from tools.pipeline_changes.page import Row
from tools.pipeline_changes.trial import alarms, became

BY_NAME = {one.entry: one for one in PIPELINES}
QUICK = ("cooperative_f16", "pingpong_f16", "bulk_ring", "tensor_ring", "cluster_argmax", "tensor_in_turn")


@cache
def changed(entry: str) -> tuple[Change, ...]:
    return tuple(changes(BY_NAME[entry]))


@cache
def sample() -> dict[str, list[Change]]:
    """Two of each."""
    draw = random.Random(12)
    return {entry: draw.sample(changed(entry), 2) for entry in QUICK}


@pytest.mark.parametrize("pipeline", PIPELINES, ids=lambda one: one.entry)
def test_changes_keep_the_lines(pipeline: Pipeline) -> None:
    lines = pipeline.text.split("\n")
    for one in changed(pipeline.entry):
        assert len(one.text.split("\n")) == len(lines)
        assert one.statement in lines[one.line - 1]
        assert one.text != pipeline.text


@pytest.mark.parametrize("number", range(2))
@pytest.mark.parametrize("entry", QUICK)
def test_nothing_that_does_harm_is_missed(entry: str, number: int) -> None:
    change = sample()[entry][number]
    row = Row(entry=entry, change=change, outcome=became(BY_NAME[entry], change.text))
    assert row.outcome.word not in ("missed", "refused") or row.why


@pytest.mark.parametrize("entry", QUICK)
def test_intact_ones_give_no_alarm(entry: str) -> None:
    """With 5, a wgmma of cooperative_f16 completes for one warpgroup before the other one has any."""
    assert not list(alarms(BY_NAME[entry], [5]))


# What the table asked for: the entry, a line, the change; kind or word, and a part of what is said.
ASKED = (
    (
        "bulk_ring",
        139,
        "the next stage's mbarrier",
        "phase overrun",
        "the wait would then go on until phase 2",
    ),
    ("bulk_ring", 302, "the next stage's mbarrier", "phase overrun", "waits for the phase before the first"),
    ("bulk_ring", 321, "left out", "source overwritten", "nothing says here that it has been read"),
    ("cluster_argmax", 279, "left out", "race", "without a barrier in between"),
    ("cluster_argmax", 337, "left out", "race", "without a barrier in between"),
    (
        "pingpong_f16",
        1022,
        "32 threads less",
        "undefined",
        "256 threads come to barrier 1, which is complete",
    ),
    ("pingpong_f16", 1392, "the next barrier", "barrier reuse", "others go on without warp 0"),
    ("pingpong_f16", 1418, "the next barrier", "barrier reuse", "others go on without warp 4"),
    ("tensor_stored", 44, "count - 1", "phase split", "before all lanes of the warp have arrived"),
    ("tensor_stored", 210, "left out", "not visible", "no fence.proxy.async has come between"),
    (
        "tensor_stored",
        233,
        "left out",
        "overwritten early",
        "of line 250 may still read",
    ),
    ("tensor_stored", 403, "left out", "deallocated early", "no barrier orders this behind tcgen05.wait::ld"),
    (
        "tensor_stored",
        408,
        "left out",
        "not deallocated",
        "columns 0..63 of tensor memory are still",
    ),
    ("tensor_in_turn", 1277, "left out", "read early", "has arrived at the mbarrier ready[0]"),
    ("tensor_in_turn", 1299, "left out", "overwritten early", "only a use of its registers says"),
    ("tensor_attention", 876, "left out", "read early", "reads A in columns 64..71"),
    ("tensor_attention", 804, "left out", "overwritten early", "warp 0 has not waited for it"),
    ("tensor_pair", 1699, "left out", "deallocated early", "of tensor memory, which tcgen05.ld"),
    ("tensor_pair", 1611, "only to itself", "deadlock", "does the mask of a multicast leave out CTA rank 1?"),
)


@pytest.mark.parametrize(("entry", "line", "what", "kind", "said"), ASKED)
def test_what_the_table_asked_for(entry: str, line: int, what: str, kind: str, said: str) -> None:
    (change,) = (one for one in changed(entry) if (one.line, one.what) == (line, what))
    found = became(BY_NAME[entry], change.text, ["program", 1])
    assert kind in (found.kind, found.word)
    assert said in found.message
