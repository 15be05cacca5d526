"""Whether reads of bytes that were never written matter: the launch again, with other bytes in their place.

Kernels read rows that they never use, as FlashAttention-2 does of the last tile. Where nothing that a launch
leaves depends on such bytes (no result, no text, no fault, and each statement is executed as often), reading
them is worth a note only. Does not say which read matters.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from ..checks.findings import Findings, LaunchFinding
from ..machine.state.spaces import DEVICE_BASE, Bytes
from ..machine.state.undefined_metadata import UndefinedMetadata
from .repetition import Counts, Repetition

_FILLS = (1, 2)  # seeds of the bytes that are tried
_HARMLESS = "; no result depends on them: with other bytes there the launch leaves the same"


def judge_reads(
    repetition: Repetition, findings: Findings, counts: Counts, places: frozenset[int] = frozenset()
) -> bool:
    """Make notes of the warnings about unwritten bytes, where nothing depends on these; return whether so.

    Nothing depends on the rows of undefined metadata of the statements ``places`` either, then: they have
    other values, too. Where something depends on either, the warnings are left for another call.
    """
    data = repetition.data
    if data is None or not any(map(_questionable, findings.found)):
        return False
    tried = (
        repetition.difference(
            _filled(repetition, data.copy(), fill), counts, fill=fill, undefined=UndefinedMetadata(places)
        )
        for fill in _FILLS
    )
    differs = next(filter(None, tried), "")
    if differs and places:
        return False
    change = partial(_depended_on, differs) if differs else _noted
    findings.found[:] = [change(found) if _questionable(found) else found for found in findings.found]
    return not differs


def _filled(repetition: Repetition, data: Bytes, fill: int) -> Bytes:
    """Return the memory with other bytes where none were written, variables apart."""
    if repetition.fresh is not None:
        places = repetition.fresh != 0
        for allocation in repetition.allocations:
            start = allocation.address - DEVICE_BASE
            places[start : start + allocation.size] &= not allocation.space
        data[places] = np.random.default_rng(fill).integers(0, 256, int(places.sum()), np.uint8)
    return data


def _questionable(finding: LaunchFinding) -> bool:
    """Return whether a finding is about bytes that were read and never written, and is no variable's."""
    return finding.kind == "uninitialised" and finding.severity == "warning" and not finding.fix


def _noted(finding: LaunchFinding) -> LaunchFinding:
    return replace(finding, severity="note", message=finding.message + _HARMLESS)


def _depended_on(differs: str, finding: LaunchFinding) -> LaunchFinding:
    return replace(finding, message=f"{finding.message}; with other bytes there {differs}")
