"""Tiles in disorder that another descriptor of tcgen05 would read in order: which field is wrong.

The tile that has its partner's k is looked for in the shared memory of the execution. Knows findings; does
not execute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from .anchors import Anchored
from .loaded_operands import Operand, row_length
from .packing_checks import PackingFinding
from .placed_tiles import Fit, Wanted, fit_of

_OF_STEPS = ("stage", "repeated", "unused")  # a tile in order, of another k


def described(
    operands: Mapping[str, Operand],
    tiles: Mapping[str, Anchored | None],
    found: Sequence[PackingFinding],
) -> list[PackingFinding]:
    """Return findings on A and B of one statement; where a descriptor explains those of an operand, that
    takes their place. ``tiles`` are those of A and of B.
    """
    left = list(found)
    for role, other in (("a", "b"), ("b", "a")):
        wrong = [finding for finding in left if finding.operand == role and finding.kind not in _OF_STEPS]
        if not wrong or role not in operands:
            continue
        fits = _fits(operands[role], tiles.get(other))
        if fits and fits[0].texts:
            own = replace(
                wrong[0], kind="descriptor", message=f"{_text(fits)} ({_where(fits[0])})", fit=tuple(fits)
            )
            left = [finding for finding in left if finding not in wrong] + [own]
    return left


def _fits(operand: Operand, partner: Anchored | None) -> list[Fit]:
    """Return the descriptors of executions whose shared memory is known, none where a tile is not there."""
    found = list[Fit]()
    for snapshot in operand.given.snapshots:
        if operand.role not in snapshot.words:
            continue
        wanted = _wanted(operand, partner, snapshot.event)
        fit = fit_of(operand, snapshot.memory.astype(np.int64), snapshot.words[operand.role], wanted)
        if fit is None:
            return []
        found.append(fit)
    return found


def _wanted(own: Operand, partner: Anchored | None, event: int) -> Wanted:
    """Return which tile an execution should have, in its own elements, from its partner."""
    if partner is None or not partner.usable[event]:
        return Wanted(k=None, size=0)
    other, pattern = partner.tiles.operand, own.instruction.pattern
    length = row_length(other.source, other.width)
    size = length if partner.tiles.inner_axis == "columns" else 8 * other.source.size // other.width // length
    k = int(partner.logical()[event])
    if pattern is None:
        return Wanted(k=k, size=size)
    stored, chunk = pattern.stored, pattern.chunk
    if own.role == "a":
        return Wanted(k=k * stored // chunk, size=size * stored // chunk)
    return Wanted(k=k, size=size * chunk // stored)


def _text(fits: Sequence[Fit]) -> str:
    """Return what is wrong; a start that is off by different bytes only where nothing else is."""
    texts = fits[0].texts
    if len({fit.moved for fit in fits}) > 1 and len(texts) > 1:
        texts = texts[:-1]
    return "; ".join(texts)


def _where(fit: Fit) -> str:
    return f"the tile that is multiplied lies at {fit.fits}"
