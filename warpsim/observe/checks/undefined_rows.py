"""Rows of D that come of metadata which PTX leaves undefined: findings where something depends on them.

Kernels have such rows and never use them, as CUTLASS's tiles are zero outside of the matrix. What a launch
leaves without them is the caller's to say: with other values in them it is executed again. Knows statements;
does not know launches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ...machine.state.undefined_metadata import UndefinedField
from .findings import Findings, Influence, LaunchFinding, Severity

KIND = "undefined metadata"
Reaches = Callable[[frozenset[int]], str]
_ALONE = 8  # statements that are tried alone; others are tried together
_EARLIER = "its row of D has reached a result in an earlier launch of the kernel"
_SAME = "with other values in its row of D the results were the same"
_FIX = "give metadata of two different indices a chunk to the rows that are used"


def judge_rows(
    found: Mapping[int, UndefinedField],
    reaches: Reaches | None,
    findings: Findings,
    known: set[int] | None = None,
) -> None:
    """Add a warning for every statement whose rows something depends on, and a note of those of which other
    values change nothing.

    ``reaches`` returns what a launch leaves otherwise with other values in the rows of some statements, ""
    for nothing. Where it is None that is not known, which is a note. ``known`` are the statements whose rows
    reached a result in earlier launches of the kernel; more are added. Where they are all that is found,
    the launch is not executed again.
    """
    if not found or findings.mode == "off":
        return
    if reaches is None:
        why = "not known to reach a result: this launch is not executed again to find out"
        _add(findings, found, [next(iter(found))], "note", why)
        return
    known = set() if known is None else known
    if known.issuperset(found):
        for place in found:
            _add(findings, found, [place], "warning", _EARLIER)
        return
    if not (differs := reaches(frozenset(found))):
        note_rows(found, findings)
        return
    for places in _parts(list(found)):
        reached = reaches(frozenset(places)) if len(places) < len(found) else differs
        if reached:
            why = f"its row of D reaches a result: with other values there {reached}"
            _add(findings, found, places, "warning", why, "seen")
            known.update(places)


def note_rows(found: Mapping[int, UndefinedField], findings: Findings) -> None:
    """Add a note that other values in rows changed nothing, which is not a proof."""
    if found and findings.mode != "off":
        _add(findings, found, list(found), "note", _SAME, "none seen")


def _parts(places: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield the statements that are tried together: each alone, and those behind the first all at once."""
    yield from ([place] for place in places[:_ALONE])
    if places[_ALONE:]:
        yield places[_ALONE:]


def _add(
    findings: Findings,
    found: Mapping[int, UndefinedField],
    places: Sequence[int],
    severity: Severity,
    why: str,
    influence: Influence = "",
) -> None:
    """Add the finding of statements, the first of which stands for all."""
    first, *others = (found[place] for place in places)
    findings.add(
        (KIND, places[0]),
        LaunchFinding(
            kind=KIND,
            severity=severity,
            message=f"{first.mnemonic}: {first.message}; {why}",
            location=first.location,
            fix=_FIX if severity == "warning" else "",
            others=tuple((other.location, None) for other in others),
            influence=influence,
        ),
    )
