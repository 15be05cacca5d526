"""What may be wrong with the operands of a launch, each with the elements that would be right instead.

Knows findings of origins and tiles; does not execute.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ....base.errors import Location
from ..origins.anchors import Anchored
from ..origins.byte_keys import Indices
from ..origins.element_origins import OperandOrigins, Origins
from ..origins.packing_checks import (
    PackingFinding,
    TilesAtFault,
    expected_inner,
    inner_of_partner,
    steps_of_operand,
)
from .corrections import Correction, Tile, codes_at
from .repeated_launch import RepeatedLaunch

ORDER = (  # of origins: what says most about the mistake comes first
    "stage",
    "repeated",
    "registers",
    "transposed",
    "ldmatrix row",
    "swizzle",
    "stride",
    "metadata step",
    "metadata lane",
    "metadata bytes",
    "metadata rows",
    "order",
    "scattered",
)
_OF_TILES = ("registers", "transposed", "ldmatrix row", "swizzle", "stride", "order", "scattered")


@dataclass(frozen=True, kw_only=True)
class Hypothesis:
    """Findings of one kind and operand that are taken for one mistake, and their operands put right."""

    findings: tuple[PackingFinding, ...]
    corrections: tuple[Correction, ...]

    @property
    def first(self) -> PackingFinding:
        """The finding that stands for all."""
        return self.findings[0]


def hypotheses(launch: RepeatedLaunch, origins: Origins) -> list[Hypothesis]:
    """Return what may be wrong, what says most about the mistake first."""
    groups: dict[tuple[str, str], list[PackingFinding]] = {}
    for finding in origins.findings:
        if finding.kind in _OF_TILES:
            groups.setdefault((finding.kind, finding.operand), []).append(finding)
    for role in _roles_of_steps(origins):
        for a, b in _pairs(origins):
            groups.setdefault(("stage", role), []).extend(steps_of_operand(a, b, role))
    found = []
    for _, findings in sorted(groups.items(), key=lambda item: rank(item[0][0])):
        corrections = [_correction(launch, finding) for finding in findings]
        known = tuple(correction for correction in corrections if correction is not None)
        if findings and len(known) == len(findings):
            found.append(Hypothesis(findings=tuple(findings), corrections=known))
    return found


def rank(kind: str) -> int:
    """Return how little a kind says about the mistake."""
    return ORDER.index(kind) if kind in ORDER else len(ORDER)


def _roles_of_steps(origins: Origins) -> Sequence[str]:
    """Return the operands that may be of another k, first what is blamed."""
    blamed = [finding.operand for finding in origins.findings if finding.kind == "stage"]
    if not blamed:
        return ()
    votes = [blamed.count(role) for role in "ab"]
    if any(operand.operand.of_tensor for operand in origins.operands):  # one thread issues: no warp votes
        votes = [_strides(origins, role) for role in "ab"]
    return ("a", "b") if votes[0] >= votes[1] else ("b", "a")


def _strides(origins: Origins, role: str) -> int:
    """Return how many different steps along k an operand takes: that in order takes fewest."""
    order = list[tuple[list[int], int, int]]()
    for given in origins.statements:
        tiles = _tiles(given, role)
        if tiles is not None:
            operand = tiles.tiles.operand
            warps, times = operand.places[:, :4].tolist(), operand.given.times.tolist()
            order += zip(warps, times, tiles.logical().tolist(), strict=True)
    order.sort()
    warps = [before[0] == after[0] for before, after in pairwise(order)]
    return len(np.unique(np.diff([k for *_, k in order])[warps]))


def _pairs(origins: Origins) -> Iterator[tuple[Anchored, Anchored]]:
    for given in origins.statements:
        a, b = (_tiles(given, role) for role in "ab")
        if a is not None and b is not None:
            yield a, b


def _tiles(given: Mapping[str, OperandOrigins], role: str) -> Anchored | None:
    return given[role].tiles if role in given else None


def _correction(launch: RepeatedLaunch, finding: PackingFinding) -> Correction | None:
    """Return what would be right in the place of tiles; None where that is not known."""
    fault = finding.fault
    if fault is None:
        return None
    operand, places = fault.tiles.tiles.operand, fault.tiles.tiles.operand.places
    assert operand.buffer is not None
    array = launch.initial(operand.buffer.parameter)
    starts = _starts(finding.kind, fault)
    codes = {}
    for event in fault.events.tolist():
        found = codes_at(
            array, operand, _tile(fault.tiles, int(fault.tiles.outer[event]), int(starts[event]))
        )
        if found is None:
            return None
        codes[tuple(places[event].tolist())] = found
    return Correction(pc=number_of(launch, finding.location), role=operand.role, codes=codes)


def _starts(kind: str, fault: TilesAtFault) -> Indices:
    """Return ``(n,)``: the first k that each tile should have."""
    if kind == "stage" and fault.other is not None:
        return inner_of_partner(fault.tiles, fault.other)
    return expected_inner(fault.tiles, fault.other)


def _tile(anchored: Anchored, outer: int, inner: int) -> Tile:
    """Return the tile that begins at an element, in order."""
    _, size, depth = anchored.tiles.outer.shape
    across, along = np.broadcast_arrays(outer + np.arange(size)[:, None], inner + np.arange(depth))
    if anchored.tiles.inner_axis == "columns":
        return Tile(rows=across, columns=along)
    return Tile(rows=along, columns=across)


def number_of(launch: RepeatedLaunch, location: Location) -> int:
    """Return the number of the statement at a place."""
    code = launch.kernel._entry.code
    return next(pc for pc, record in enumerate(code) if record.statement.location() == location)
