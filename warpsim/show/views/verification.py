"""What verification found, as text, as data and as JUnit XML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from xml.etree import ElementTree

from ...base.text_columns import words
from ...isa.comparisons import Evidence
from ...isa.instruction import Instruction
from ...workbench.explanation.information import Document, evidence_document, rule_on
from ...workbench.vectors.outcomes import Outcome
from ...workbench.vectors.verification import Item, Mismatch, Tally
from .report import difference_document, error_document

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


# --- text ------------------------------------------------------------------------------------------


def outcome_lines(outcome: Outcome) -> Iterator[str]:
    """Yield a line a file, and for every instruction that differs its first differences."""
    total = outcome.tally
    yield f"{outcome.path}: {_count_text(total)}{_origin(outcome.provenance)}"
    for item in outcome.items:
        if item.tally.passed:
            continue
        yield f"  {_name(item)} on {item.target}: {_verdict(item.tally)}"
        yield from (f"    {mismatch}" for mismatch in item.tally.first)
        if rest := item.tally.different_words - len(item.tally.first):
            yield f"    and {rest:,} more {_plural('word', rest)}"
    yield from (f"  {line}" for line in ended_lines(outcome.ended))


def ended_lines(error: str) -> Iterator[str]:
    """Yield a line where an error ended the recorded launch."""
    if error:
        yield f"an error stopped the launch, and the recording ends there: {error}"


def _count_text(tally: Tally) -> str:
    if tally.passed:
        return f"{tally.words:,} {_plural('word', tally.words)} as expected"
    return f"{tally.different_words:,} of {tally.words:,} words differ"


def _verdict(tally: Tally) -> str:
    cases = f", in {tally.different_cases:,} of {tally.cases:,} {_plural('case', tally.cases)}"
    return f"{tally.different_words:,} of {tally.words:,} words differ{cases if tally.cases else ''}"


def _origin(provenance: dict[str, Any]) -> str:
    """Return where the expected results come from, in a few words."""
    if not provenance:
        return ""
    name = provenance.get("chip") or f"warpsim {provenance.get('version', '')}".strip()
    return f" (by {provenance['kind']}: {name})"


def _name(item: Item) -> str:
    return item.instruction.mnemonic if item.instruction else "not of a matrix instruction"


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"


def summary_lines(outcomes: Sequence[Outcome]) -> list[str]:
    """Return a line for every instruction and target, over all files."""
    header = ["instruction", "target", "files", "cases", "words", "differ"]
    rows = [
        [name, target, *(f"{n:,}" for n in (files, tally.cases, tally.words, tally.different_words))]
        for (name, target), (files, tally) in _summary(outcomes).items()
    ]
    return words([header, *rows])


def _summary(outcomes: Iterable[Outcome]) -> dict[tuple[str, str], tuple[int, Tally]]:
    """Return files and tally of every instruction and target."""
    summary: dict[tuple[str, str], tuple[int, Tally]] = {}
    for outcome in outcomes:
        for item in outcome.items:
            key = _name(item), item.target
            files, tally = summary.get(key, (0, Tally()))
            summary[key] = files + 1, tally + item.tally
    return dict(sorted(summary.items()))


def verdict_line(outcomes: Sequence[Outcome]) -> str:
    """Return whether all is as expected, and how much was compared."""
    total = sum((outcome.tally for outcome in outcomes), Tally())
    good = sum(outcome.passed for outcome in outcomes)
    verdict = "passed" if good == len(outcomes) else "FAILED"
    return f"{verdict}: {good} of {len(outcomes)} files, {total.words:,} words compared bit by bit"


# --- data ------------------------------------------------------------------------------------------


def verification_document(outcomes: Sequence[Outcome]) -> Document:
    """Return everything that was found as JSON-ready data."""
    return {
        "passed": all(outcome.passed for outcome in outcomes),
        "files": [_outcome_document(outcome) for outcome in outcomes if not outcome.error],
        "summary": [
            {"mnemonic": name, "target": target, "files": files, **tally_document(tally)}
            for (name, target), (files, tally) in _summary(outcomes).items()
        ],
        "errors": [error_document(item.error, item.path) for item in outcomes if item.error],
    }


def _outcome_document(outcome: Outcome) -> Document:
    return {
        "file": outcome.path,
        "kind": outcome.kind,
        "passed": outcome.passed,
        "seconds": round(outcome.seconds, 3),
        "provenance": outcome.provenance,
        **({"ended": outcome.ended} if outcome.ended else {}),
        "instructions": [_item_document(item) for item in outcome.items],
    }


def _evidence(form: Instruction, item: Item) -> Evidence:
    return rule_on(form, item.target, with_c=item.with_c).evidence


def _item_document(item: Item) -> Document:
    form = item.instruction
    return {
        "mnemonic": form.mnemonic if form else None,
        "target": item.target,
        "evidence": evidence_document(_evidence(form, item)) if form else None,
        **tally_document(item.tally),
        "first": [_mismatch_document(mismatch) for mismatch in item.tally.first],
    }


def tally_document(tally: Tally) -> Document:
    """Return how much was compared and differs."""
    return {
        "cases": tally.cases,
        "words": tally.words,
        "different_cases": tally.different_cases,
        "different_words": tally.different_words,
    }


def _mismatch_document(mismatch: Mismatch) -> Document:
    place: Document = {"line": mismatch.line} if mismatch.case is None else {"case": mismatch.case}
    place |= {"label": mismatch.label} if mismatch.label else {}
    return place | difference_document(mismatch.difference)


# --- JUnit -----------------------------------------------------------------------------------------


def junit_lines(outcomes: Sequence[Outcome]) -> list[str]:
    """JUnit XML: a suite a file, and in it a test case for every instruction on a target."""
    root = ElementTree.Element("testsuites", name="warpsim verify")
    for outcome in outcomes:
        suite = ElementTree.SubElement(root, "testsuite", _attributes(outcome))
        for item in outcome.items:
            _junit_case(suite, outcome, item)
        if outcome.error:
            name = _text(outcome.path)
            case = ElementTree.SubElement(suite, "testcase", classname=name, name="read and executed")
            error = ElementTree.SubElement(case, "error", message=_text(outcome.error.message))
            error.set("type", type(outcome.error).__name__)
            error.text = _text(str(outcome.error))
    ElementTree.indent(root, " ")
    text = ElementTree.tostring(root, encoding="unicode")
    return ['<?xml version="1.0" encoding="UTF-8"?>', *text.split("\n")]


def _attributes(outcome: Outcome) -> dict[str, str]:
    failures = sum(not item.tally.passed for item in outcome.items)
    errors = int(outcome.error is not None)
    counts = {"tests": len(outcome.items) + errors, "failures": failures, "errors": errors, "skipped": 0}
    attributes = {"name": _text(outcome.path), "time": f"{outcome.seconds:.3f}"}
    return attributes | {name: str(count) for name, count in counts.items()}


def _junit_case(suite: ElementTree.Element, outcome: Outcome, item: Item) -> None:
    name = f"{_name(item)} on {item.target}"
    case = ElementTree.SubElement(suite, "testcase", classname=_text(outcome.path), name=name)
    case.set("time", f"{outcome.seconds / max(len(outcome.items), 1):.3f}")
    if not item.tally.passed:
        failure = ElementTree.SubElement(case, "failure", message=_verdict(item.tally), type="mismatch")
        failure.text = _text("\n".join(map(str, item.tally.first)))


def _text(text: str) -> str:
    """Return the text with question marks for what XML cannot hold."""
    return _NOT_XML.sub("?", text)
