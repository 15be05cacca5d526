"""What lint, diff and detection found: as text for people, and as plain data for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from ...isa.formats import Format
from ...isa.metadata.detection import Detection
from ...workbench.diagnosis import (
    CLASSES,
    Cause,
    Diagnosis,
    DumpComparison,
    LoopCause,
    LoopDiagnosis,
    Match,
    Wrong,
    ulps,
)
from ...workbench.diagnosis.dumps.dump_comparison import Known
from ...workbench.diagnosis.linting.lint import by_tile, joined
from ...workbench.diagnosis.linting.subject import Alike, Finding, Severity

Document = dict[str, Any]
Words = npt.NDArray[Any] | Mapping[tuple[int, ...], Any]  # by their place
SHOWN = 8  # differences that are listed
_OTHERS = 3  # other names of a mistake that are listed
ALIKE = 2  # findings of one kind that are listed

# --- lint ------------------------------------------------------------------------------------------


def finding_lines(found: Iterable[Alike]) -> list[str]:
    """Return findings with their remedies, the first few of each kind, then a count of each severity."""
    kinds: dict[tuple[str, str], list[Alike]] = {}
    counts = dict.fromkeys(get_args(Severity), 0)
    for each in joined(found, ALIKE):
        kinds.setdefault((each.rule, each.fix), []).append(each)
        counts[each.severity] += each.count
    lines = [line for kind in kinds.values() for line in _kind_lines(kind)]
    named = [f"{count} {name}{'s'[: count != 1]}" for name, count in counts.items() if count]
    return [*lines, ", ".join(named) or "nothing found"]


def _kind_lines(kind: Sequence[Alike]) -> Iterator[str]:
    """Yield findings of one rule with one remedy, of any severity."""
    for finding in by_tile(kind)[:ALIKE]:
        where = f"tile {', '.join(map(str, finding.tile))}: " if finding.tile else ""
        yield f"{finding.severity}: {where}{finding.message} [{finding.rule}]"
    count = sum(each.count for each in kind)
    if count > ALIKE:
        yield f"  and {count - ALIKE} more like these"
    yield f"  fix: {kind[0].fix}"


def finding_document(finding: Finding) -> Document:
    """Return one finding as JSON-ready data; what does not apply is null."""
    return {
        "severity": finding.severity,
        "rule": finding.rule,
        "message": finding.message,
        "fix": finding.fix,
        "lane": finding.lane,
        "bits": None if finding.bits is None else list(finding.bits),
        "row": finding.row,
        "chunk": finding.chunk,
        "tile": None if finding.tile is None else list(finding.tile),
    }


# --- the search for mistakes -----------------------------------------------------------------------


def diagnosis_lines(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield how D differs, and every explanation that gives all of it, or the closest explanations."""
    form = diagnosis.instruction
    yield f"{form.mnemonic} on {form.target}"
    if diagnosis.printed is not None:
        yield f"  D is known to {diagnosis.printed}: {diagnosis.printed.equality} counts as equal"
    if diagnosis.as_expected:
        yield f"  D is as expected{_how_equal(diagnosis.printed)}"
        return
    yield f"  D differs: {diagnosis.classes}"
    yield f"  where: {diagnosis.wrong}"
    how = f"matches {diagnosis.printed.extent}" if diagnosis.printed else "matches bit for bit"
    for match in diagnosis.matches:
        yield from _match_lines(match, how)
    if diagnosis.found:
        return
    for remark in diagnosis.remarks:
        yield f"  seen in D: {remark}"
    yield f"  no explanation reproduces D ({diagnosis.simulated:,} tried)"
    for each in diagnosis.closest:
        yield f"  {each.fraction:.1%} of D, {each.closeness:.0%} close: {' + '.join(each.names)}"
        yield f"    then still: {each.remainder}"


def _how_equal(printed: Known | None) -> str:
    """Return how far D is equal: in every bit, to its digits, or after it was rounded."""
    return ", bit for bit" if printed is None else f": equal {printed.reach}"


def product_lines(found: LoopDiagnosis) -> Iterator[str]:
    """Yield how D of a whole product differs, and what explains it."""
    form = found.instruction
    yield f"{form.mnemonic} on {form.target}, {found.steps} step{'s'[: found.steps != 1]} along k"
    if found.printed is not None:
        yield f"  D is known to {found.printed}: {found.printed.equality} counts as equal"
    if found.as_expected:
        yield f"  D is as expected{_how_equal(found.printed)}"
        return
    yield f"  D differs: {found.different:,} of {found.total:,} elements" + f"; {found.where}" * bool(
        found.where
    )
    for remark in found.remarks:
        yield f"  seen in D: {remark}"
    for each in found.matches:
        how = found.printed.extent if found.printed else "bit for bit"
        yield from (f"  matches {how}: {each.name}", f"    {each.advice}")
        if each.also:
            more = f", and {len(each.also) - _OTHERS} more" * (len(each.also) > _OTHERS)
            yield f"    the same as: {'; '.join(each.also[:_OTHERS])}{more}"
    if not found.matches:
        yield f"  no explanation reproduces D {_search_extent(found)}"
    for each in found.near:
        yield f"  {each.fraction:.1%} of D, {each.closeness:.0%} close: {each.name}"


def _search_extent(found: LoopDiagnosis) -> str:
    """Return the counts of tried and untested explanations, and whether a remark ended the search."""
    text = f"({found.tried - found.uncomputed:,} tried)"
    if found.uncomputed:
        text += f"; search stopped early: {found.uncomputed:,} candidates untested"
    return text + "; the search ended because the remark explains D" * found.stopped


def product_document(found: LoopDiagnosis) -> Document:
    """Return the same as JSON-ready data."""

    def causes(listed: Sequence[LoopCause]) -> list[Document]:
        return [
            {
                "name": item.name,
                "advice": item.advice,
                "fraction": item.fraction,
                "closeness": item.closeness,
                "also": list(item.also),
                "operands": [item.facts["operand"]] if "operand" in item.facts else [],
                "records": list(_records(item)),
            }
            for item in listed
        ]

    return {
        "mnemonic": found.instruction.mnemonic,
        "target": found.instruction.target,
        "steps": found.steps,
        "as_expected": found.as_expected,
        "different": found.different,
        "total": found.total,
        "where": found.where,
        "remarks": list(map(str, found.remarks)),
        "simulated": found.tried,
        "not_computed": found.uncomputed,
        "stopped": found.stopped,
        "matches": causes(found.matches),
        "closest": causes(found.near),
    }


def _records(cause: LoopCause) -> Iterator[Document]:
    """Yield the kind of a map, or of a cause, with its facts, and the places where it holds; no arrays."""
    facts = {name: fact for name, fact in cause.facts.items() if isinstance(fact, int | float | str | tuple)}
    yield facts | {"kind": facts.pop("map", cause.kind)}
    yield from ({"kind": "where"} | dict(each) for each in cause.facts.get("where", ()))


def _match_lines(match: Match, how: str = "matches bit for bit") -> Iterator[str]:
    simplest = match.simplest
    yield f"  {how}: {' + '.join(simplest.names)}"
    for mistake in simplest.mistakes:
        yield f"    {mistake.advice}"
    names = [" + ".join(other.names) for other in match.equivalent[1:]]
    names += [name for mistake in simplest.mistakes for name in mistake.also] * (len(simplest.mistakes) == 1)
    if names:
        more = f", and {len(names) - _OTHERS} more" if len(names) > _OTHERS else ""
        yield f"    the same as: {'; '.join(names[:_OTHERS])}{more}"


def diagnosis_document(diagnosis: Diagnosis) -> Document:
    """Return a diagnosis as JSON-ready data."""
    return {
        "mnemonic": diagnosis.instruction.mnemonic,
        "target": diagnosis.instruction.target,
        "as_expected": diagnosis.as_expected,
        "classes": diagnosis.classes.counts,
        "wrong": _wrong_document(diagnosis.wrong),
        "simulated": diagnosis.simulated,
        "remarks": list(map(str, diagnosis.remarks)),
        "matches": [
            [_explanation_document(entry) for entry in match.equivalent] for match in diagnosis.matches
        ],
        "closest": [_explanation_document(item) for item in diagnosis.closest],
    }


def _explanation_document(explanation: Cause) -> Document:
    mistakes = [
        {
            "name": mistake.name,
            "advice": mistake.advice,
            "also": list(mistake.also),
            "operands": list(mistake.operands),
            "records": [{"kind": kind, **facts} for kind, facts in mistake.records],
        }
        for mistake in explanation.mistakes
    ]
    wrong = _wrong_document(explanation.wrong) if explanation.wrong.count else None
    return {
        "mistakes": mistakes,
        "fraction": explanation.fraction,
        "closeness": explanation.closeness,
        "left": wrong,
    }


def _wrong_document(wrong: Wrong) -> Document:
    return {
        "count": wrong.count,
        "total": wrong.total,
        "rows": list(wrong.rows),
        "columns": list(wrong.columns),
        "lanes": list(wrong.lanes),
        "registers": list(wrong.registers),
        "text": wrong.text,
    }


# --- two dumps -------------------------------------------------------------------------------------


def comparison_lines(comparison: DumpComparison, x: Words, y: Words) -> Iterator[str]:
    """Yield how many elements are of each class, and the first words or numbers that differ.

    ``x`` and ``y`` have at least the first SHOWN of these.
    """
    yield "equal, bit for bit" if comparison.equal else f"different: {comparison}"
    words = comparison.words
    places = np.argwhere(words)
    for place in map(tuple, places[:SHOWN].tolist()):
        kind = comparison.apart(int(words[place]))
        if comparison.numbers:
            yield f"  {list(place)}: {_numbers_text(x[place], y[place], comparison.format)}  {kind}"
        else:
            yield f"  {_place_text(place)}: {_hex(x[place])} {_hex(y[place])}  {kind}"
    if len(places) > SHOWN:
        yield f"  and {len(places) - SHOWN} more {'numbers' if comparison.numbers else 'words'}"


def _numbers_text(x: Any, y: Any, element: Format) -> str:
    """Return bits, values, and how far apart they are."""
    codes = [int(item.view(element.code_dtype)) for item in (x, y)]
    bits = " ".join(f"{code:#0{2 + -(-element.bits // 4)}x}" for code in codes)
    apart = ulps(codes[0], codes[1], element)
    far = "" if apart is None else f", {apart:+,d} {'ulps' if element.is_float else ''}".rstrip()
    return f"{bits}  {value_text(x)} against {value_text(y)}{far}"


def value_text(value: Any) -> str:
    """Return the shortest decimal that gives the value back."""
    if value.dtype.kind == "f":
        return str(value)
    return str(int(value)) if value.dtype.kind == "i" else repr(float(value))


def _place_text(place: tuple[int, ...]) -> str:
    """Return the last two axes are lanes and registers."""
    if len(place) < 2:
        return f"word {place[0] if place else 0}"
    *tile, lane, register = map(str, place)
    where = f"tile {', '.join(tile)}, " if tile else ""
    return f"{where}lane {lane}, register {register}"


def _hex(word: Any) -> str:
    return f"{int(word):#0{2 + 2 * word.itemsize}x}"


def comparison_document(comparison: DumpComparison) -> Document:
    """Return counts of each class, and of every word that differs its place and class."""
    words = comparison.words
    places = np.argwhere(words).tolist()
    return {
        "equal": comparison.equal,
        "classes": comparison.counts,
        "differences": [{"place": place, "class": CLASSES[int(words[tuple(place)])]} for place in places],
    }


# --- arrangements ----------------------------------------------------------------------------------


def detection_document(detection: Detection) -> Document:
    """Return what a blob of metadata can be, as JSON-ready data."""
    return {
        "candidates": list(detection.candidates),
        "legal": list(detection.legal),
        "ascending": list(detection.ascending),
        "consistent": None if detection.consistent is None else list(detection.consistent),
        "text": str(detection),
    }
