"""Recordings of launches as text and data: what was executed where, recomputed, and compared.

Returns text; does not know files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

from ...observe.recording.recorder import LaunchEvent
from ...ptx.symbols import shown
from ...sums.execution.pipeline import evidence
from ...workbench.diagnosis.recordings.divergence import (
    Divergence,
    EventDifference,
    OperandChange,
    RecordingComparison,
)
from ...workbench.diagnosis.search.diagnose import Diagnosis
from ...workbench.diagnosis.search.tensor_search import TensorDiagnosis
from ...workbench.explanation.information import Document, evidence_document
from ...workbench.vectors.recordings import PackingNote, Recording
from ...workbench.vectors.sets import adds_c
from ...workbench.vectors.verification import Item
from .findings import diagnosis_document, diagnosis_lines
from .report import event_lines
from .verification import ended_lines, tally_document

_SHOWN = 10  # events of a list
_LANES = 8


@dataclass(frozen=True)
class Misplaced:
    """What does not fit of the operands of a statement, by their origins."""

    notes: tuple[PackingNote, ...]
    as_expected = False

    def lines(self) -> Iterator[str]:
        """Yield a line each."""
        yield from (f"  {note}" for note in self.notes)

    def document(self) -> Document:
        """Return the same as JSON-ready data."""
        return {"as_expected": False, "packing": [asdict(note) for note in self.notes]}


@dataclass(frozen=True)
class Followed:
    """Instructions whose D is as expected if they start from the D that was expected before them."""

    count: int
    as_expected = False

    def lines(self) -> Iterator[str]:
        """Yield one line."""
        several = "s are" if self.count > 1 else " is"
        start = "they start" if self.count > 1 else "it starts"
        yield f"{self.count:,} more D{several} as expected where {start} from the D expected before"

    def document(self) -> Document:
        """Return the same as JSON-ready data."""
        return {"as_expected": False, "followed": self.count}


def recording_lines(recording: Recording, items: Sequence[Item], show: str) -> Iterator[str]:
    """Yield what was recorded and compared, and the D of instructions (``last``, ``all``, ``none``)."""
    count = len(recording.events)
    counted = f"{count:,} matrix instruction{'s'[: count != 1]}"
    yield f"{recording.path}: {recording.target}, kernel {shown(recording.kernel)}, {counted}"
    for event in {"all": recording.events, "last": recording.events[-1:], "none": ()}[show]:
        yield f"  {event.place}:"
        yield from event_lines(event)
    for entry, item in zip(recording.sets(), items, strict=True):
        tally = item.tally
        place = f"  {entry.location.short}: {len(entry.events):,} execution{'s'[: len(entry.events) != 1]}"
        if tally.passed:
            yield f"{place}, {tally.words:,} words as recorded"
            continue
        yield f"{place}, {tally.different_words:,} of {tally.words:,} words differ"
        yield from (f"    {mismatch}" for mismatch in tally.first)
    yield from (f"  {line}" for line in ended_lines(recording.error))
    words = sum(item.tally.words for item in items)
    verdict = "passed" if all(item.tally.passed for item in items) else "FAILED"
    yield f"  {verdict}: {counted}, {words:,} words compared bit by bit"


def recording_document(recording: Recording, items: Sequence[Item]) -> Document:
    """Return the same as JSON-ready data; every event with its place."""
    statements = [
        {
            "line": entry.statement.location().line,
            "statement": str(entry.statement),
            "mnemonic": entry.vectors.instruction.mnemonic,
            "evidence": evidence_document(
                evidence(entry.vectors.instruction, with_c=adds_c(entry.vectors.immediates))
            ),
            **tally_document(item.tally),
        }
        for entry, item in zip(recording.sets(), items, strict=True)
    ]
    return {
        "recording": recording.path,
        "kernel": recording.kernel,
        "target": recording.target,
        "grid": list(recording.grid),
        "block": list(recording.block),
        "passed": all(item.tally.passed for item in items),
        **({"ended": recording.error} if recording.error else {}),
        "statements": statements,
        "events": [event_document(event) for event in recording.events],
    }


def event_document(event: LaunchEvent) -> Document:
    """Return where a recorded instruction was executed."""
    source = None if event.source is None else str(event.source)
    return {
        "line": event.line,
        "source": source,
        "cta": list(event.cta),
        "warp": event.warp,
        "step": event.index,
    }


def divergence_lines(found: Divergence, paths: tuple[str, str]) -> Iterator[str]:
    """Yield the first execution that differs by itself: what it read, what its D shows, and what follows."""
    differing = found.difference
    events = " and ".join(map(str, dict.fromkeys(found.numbers)))
    yield f"the first that differs by itself: {differing.first.where}, event {events}"
    yield from (f"  {_change_text(change)}" for change in found.changes)
    elsewhere = [name for name in differing.operands if name not in {change.name for change in found.changes}]
    if elsewhere:
        yield f"  it read another {', '.join(elsewhere)}"
    yield f"  {_made_text(found)}"
    if not differing.operands and all(found.made) and found.element is not None:
        row, column = found.element
        chips = ",".join(str(event.instruction.target) for event in (differing.first, differing.second))
        command = f"warpsim explain {paths[0]} --event {found.numbers[0]} --element {row},{column}"
        yield f"  the chips part here: {command} --target {chips}"
    if found.diagnosis is not None:
        yield f"  {found.subject}:"
        yield from (f"    {line}" for line in _lines_of(found.diagnosis))
    if found.follows:
        others = "others differ" if found.follows > 1 else "other differs"
        yield f"  {found.follows:,} {others} by nothing but accumulators that had parted before"
    if found.apart:
        more = "more differ" if len(found.apart) > 1 else "more differs"
        yield f"  {len(found.apart):,} {more} by themselves, first: {found.apart[0]}"


def _change_text(change: OperandChange) -> str:
    lanes = change.lanes
    whole = list(lanes) == list(range(lanes[0], lanes[-1] + 1))
    shown = ", ".join(map(str, lanes[:_LANES])) + (" …" if len(lanes) > _LANES else "")
    where = f"lane{'s'[: len(lanes) != 1]} {shown}"
    if whole and len(lanes) > 1:
        where = f"lanes {lanes[0]} to {lanes[-1]}"
    known = {"": "", "zeros": "; the second has zeros"}.get(
        change.known, f"; the second has what the first reads in {change.known}"
    )
    return f"{change.name}: {change.words} of {change.total} words differ, in {where}{known}"


def _made_text(found: Divergence) -> str:
    """Return which D is the model's."""
    if all(found.made):
        return "both D are right for what was read"
    if not any(found.made):
        return "neither D is right for what was read"
    right, wrong = ("first", "second") if found.made[0] else ("second", "first")
    return f"D of the {right} is right for what was read, D of the {wrong} is not"


def divergence_document(found: Divergence) -> Document:
    """Return the same as JSON-ready data."""
    return {
        **_difference_document(found.difference),
        "events": list(found.numbers),
        "changes": [{**asdict(change), "lanes": list(change.lanes)} for change in found.changes],
        "as_modelled": list(found.made),
        "element": None if found.element is None else list(found.element),
        "subject": found.subject,
        "diagnosis": _document_of(found.diagnosis),
        "follows": found.follows,
        "apart": [_difference_document(item) for item in found.apart[:_SHOWN]],
        "apart_count": len(found.apart),
    }


def _lines_of(diagnosis: Diagnosis | TensorDiagnosis) -> Iterable[str]:
    return diagnosis.lines() if isinstance(diagnosis, TensorDiagnosis) else diagnosis_lines(diagnosis)


def _document_of(diagnosis: Diagnosis | TensorDiagnosis | None) -> Document | None:
    if diagnosis is None:
        return None
    return diagnosis.document() if isinstance(diagnosis, TensorDiagnosis) else diagnosis_document(diagnosis)


def comparison_lines(comparison: RecordingComparison) -> Iterator[str]:
    """Yield how many executions were compared, and the first differences."""
    found = comparison.differences
    if comparison.equal:
        yield f"equal, bit for bit: {comparison.compared:,} matrix instructions"
        return
    yield f"{len(found):,} of {comparison.compared:,} matrix instructions differ"
    yield from (f"  {item}" for item in found[:_SHOWN])
    if len(found) > _SHOWN:
        yield f"  and {len(found) - _SHOWN:,} more"
    sides = ("the first", comparison.only_first), ("the second", comparison.only_second)
    for side, events in sides:
        if events:
            yield f"  {len(events):,} in {side} only; first: {events[0].where}"


def comparison_document(comparison: RecordingComparison) -> Document:
    """Return the same as JSON-ready data."""
    return {
        "equal": comparison.equal,
        "compared": comparison.compared,
        "differences": [_difference_document(difference) for difference in comparison.differences],
        "only_first": [event_document(event) for event in comparison.only_first],
        "only_second": [event_document(event) for event in comparison.only_second],
    }


def _difference_document(difference: EventDifference) -> Document:
    return event_document(difference.first) | {
        "operands": list(difference.operands),
        "words": difference.words,
    }
