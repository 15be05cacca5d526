"""Whether reads of bytes that were never written matter: the launch again, with other bytes in their place.

Kernels read rows that they never use, as FlashAttention-2 does of the last tile. Where a launch with other
bytes there leaves the same (results, text, no fault, and each statement is executed as often), reading them
is worth a note only; that is no proof, and the note says so. The first launch of a kernel is tried with two
fillings, each later launch with a filling of its own. Does not say which read matters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count

import numpy as np

from ....machine.run.wave import Entry
from ....machine.state.side_tables import SideTable
from ....machine.state.spaces import DEVICE_BASE, Bytes
from ....machine.state.undefined_metadata import UndefinedMetadata
from ....observe.checks.findings import Findings, LaunchFinding
from .repetition import Counts, Repetition

_FIRST = (1, 2)  # seeds of the bytes that are tried in the first launch of a kernel
_TURNS = SideTable(lambda entry: count(_FIRST[-1]))  # the last seed that a launch has used
_PROVED = "; proved: no result depends on them, as the values that come of them reach none"
_FILLINGS = {1: "another filling", 2: "two other fillings"}


def next_fills(entry: Entry) -> tuple[int, ...]:
    """Return the seeds of the bytes that the next launch of a kernel is tried with."""
    last = next(_TURNS.of(entry))
    return _FIRST if last == _FIRST[-1] else (last,)


def judge_reads(
    repetition: Repetition,
    findings: Findings,
    counts: Counts,
    fills: Sequence[int],
    places: frozenset[int] = frozenset(),
) -> bool:
    """Make notes of the warnings about unwritten bytes, where other bytes change nothing; return whether so.

    Rows of undefined metadata of the statements ``places`` have other values, too. Where either changes
    something, the warnings are left for another call.
    """
    if repetition.data is None or not any_questionable(findings):
        return False
    tried = (
        repetition.difference(
            _filled(repetition, fill), counts, fill=fill, undefined=UndefinedMetadata(places)
        )
        for fill in fills
    )
    differs = next(filter(None, tried), "")
    if differs and places:
        return False
    if differs:
        _change(findings, partial(_depended_on, differs))
    else:
        _change(findings, partial(_noted, len(fills)))
    return not differs


def prove_reads(findings: Findings) -> None:
    """Make notes of the warnings about unwritten bytes: it is proved that nothing depends on these."""
    _change(findings, _proved)


def _change(findings: Findings, change: Callable[[LaunchFinding], LaunchFinding]) -> None:
    findings.found[:] = [change(found) if _questionable(found) else found for found in findings.found]


def _filled(repetition: Repetition, fill: int) -> Bytes:
    """Return the memory with other bytes where none were written, variables apart."""
    data, fresh, random = repetition.copy(), repetition.fresh, np.random.default_rng(fill)
    for allocation in () if fresh is None else repetition.allocations:
        start = allocation.address - DEVICE_BASE
        places = slice(start, start + allocation.size)
        if fresh is not None and not allocation.space and fresh[places].any():
            others = random.integers(0, 256, allocation.size, np.uint8)
            data[places] = np.where(fresh[places] != 0, others, data[places])
    return data


def any_questionable(findings: Findings) -> bool:
    """Return whether there are warnings about unwritten bytes."""
    return any(map(_questionable, findings.found))


def _questionable(finding: LaunchFinding) -> bool:
    """Return whether a finding is about bytes that were read and never written, and is no variable's."""
    return finding.kind == "uninitialised" and finding.severity == "warning" and not finding.fix


def _proved(finding: LaunchFinding) -> LaunchFinding:
    return replace(finding, severity="note", message=finding.message + _PROVED, influence="none")


def _noted(fills: int, finding: LaunchFinding) -> LaunchFinding:
    message = f"{finding.message}; with {_FILLINGS[fills]} the results were the same"
    return replace(finding, severity="note", message=message, influence="none seen")


def _depended_on(differs: str, finding: LaunchFinding) -> LaunchFinding:
    return replace(finding, message=f"{finding.message}; with other bytes there {differs}", influence="seen")
