"""Recordings of launches as text and data: what was executed where, recomputed, and compared.

Returns text; does not know files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from ..diagnosis.recordings import EventDifference, RecordingComparison
from ..execution.pipeline import evidence
from ..machine.observers.recorder import LaunchEvent
from ..vectors.recordings import PackingNote, Recording
from ..vectors.verification import Item
from .information import Document, evidence_document
from .report import event_lines
from .verification import tally_document

_SHOWN = 10  # events of a list


@dataclass(frozen=True)
class Misplaced:
    """What does not fit of the operands of a statement, by their origins."""

    notes: tuple[PackingNote, ...]
    as_expected = False

    def lines(self) -> Iterator[str]:
        """A line each."""
        yield from (f"  {note}" for note in self.notes)

    def document(self) -> Document:
        """The same as JSON-ready data."""
        return {"as_expected": False, "packing": [asdict(note) for note in self.notes]}


def recording_lines(recording: Recording, items: Sequence[Item], show: str) -> Iterator[str]:
    """What was recorded, instructions whose D is shown (``last``, ``all``, ``none``), what was compared."""
    count = len(recording.events)
    counted = f"{count:,} matrix instruction{'s'[: count != 1]}"
    yield f"{recording.path}: {recording.target}, kernel {recording.kernel}, {counted}"
    for event in {"all": recording.events, "last": recording.events[-1:], "none": ()}[show]:
        yield f"  {event.place}:"
        yield from event_lines(event)
    for one, item in zip(recording.sets(), items, strict=True):
        line, tally = one.statement.location().line, item.tally
        place = f"  line {line}: {len(one.events):,} execution{'s'[: len(one.events) != 1]}"
        if tally.passed:
            yield f"{place}, {tally.words:,} words as recorded"
            continue
        yield f"{place}, {tally.different_words:,} of {tally.words:,} words differ"
        yield from (f"    {mismatch}" for mismatch in tally.first)
    words = sum(item.tally.words for item in items)
    verdict = "passed" if all(item.tally.passed for item in items) else "FAILED"
    yield f"  {verdict}: {counted}, {words:,} words compared bit by bit"


def recording_document(recording: Recording, items: Sequence[Item]) -> Document:
    """The same as JSON-ready data; every event with its place."""
    statements = [
        {
            "line": one.statement.location().line,
            "statement": str(one.statement),
            "mnemonic": one.vectors.instruction.mnemonic,
            "evidence": evidence_document(evidence(one.vectors.instruction)),
            **tally_document(item.tally),
        }
        for one, item in zip(recording.sets(), items, strict=True)
    ]
    return {
        "recording": recording.path,
        "kernel": recording.kernel,
        "target": recording.target,
        "grid": list(recording.grid),
        "block": list(recording.block),
        "passed": all(item.tally.passed for item in items),
        "statements": statements,
        "events": [event_document(event) for event in recording.events],
    }


def event_document(event: LaunchEvent) -> Document:
    """Where a recorded instruction was executed."""
    return {"line": event.line, "cta": list(event.cta), "warp": event.warp, "step": event.index}


def comparison_lines(comparison: RecordingComparison) -> Iterator[str]:
    """How many executions were compared, and the first ones that differ."""
    found = comparison.differences
    if comparison.equal:
        yield f"equal, bit for bit: {comparison.compared:,} matrix instructions"
        return
    yield f"{len(found):,} of {comparison.compared:,} matrix instructions differ"
    yield from (f"  {one}" for one in found[:_SHOWN])
    if len(found) > _SHOWN:
        yield f"  and {len(found) - _SHOWN:,} more"
    sides = ("the first", comparison.only_first), ("the second", comparison.only_second)
    for side, events in sides:
        if events:
            yield f"  {len(events):,} in {side} only; first: line {events[0].line}, {events[0].place}"


def comparison_document(comparison: RecordingComparison) -> Document:
    """The same as JSON-ready data."""
    return {
        "equal": comparison.equal,
        "compared": comparison.compared,
        "differences": [_difference_document(one) for one in comparison.differences],
        "only_first": [event_document(event) for event in comparison.only_first],
        "only_second": [event_document(event) for event in comparison.only_second],
    }


def _difference_document(one: EventDifference) -> Document:
    return event_document(one.first) | {"operands": list(one.operands), "words": one.words}
