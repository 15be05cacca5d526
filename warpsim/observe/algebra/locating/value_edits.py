"""What differs between a value of the kernel and the reference's, as edits of the kernel's graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from .formula_graphs import plus

Kind = Literal[
    "operand", "operation", "missing", "extra", "order", "missing term", "extra term", "double term",
    "unknown"
]  # fmt: skip
_LOST = {"unknown": 6.0, "missing": 1.2, "extra": 1.2, "operation": 1.0, "operand": 1.0, "order": 1.1}
_INSIDE, _RESTATED = 5.0, 3.0  # of operands without a reason; of terms in place of others


class Edit(NamedTuple):
    """One thing that differs: ``found`` stands where ``wanted`` belongs, in the statement of ``value``.

    ``value`` is a key of the kernel and ``delta`` what is added to it to put it right. ``partner`` is the
    other operand; ``detail`` the operation that is right, missing or too many. 0 is no key.
    """

    kind: Kind
    value: int
    delta: int
    pc: int
    found: int
    wanted: int
    partner: int = 0
    detail: str = ""


def deltas_of(edits: Sequence[Edit]) -> dict[int, int]:
    """Return what is added to each value, each edit once."""
    found = dict[int, int]()
    once = {(e.value, e.delta, e.found, e.wanted, e.partner, e.kind, e.detail) for e in edits}
    for value, delta, *_ in once:
        found[value] = plus(found.get(value, 0), delta)
    return found


def cost(edits: Sequence[Edit]) -> float:
    """Return how little edits explain: each kind of change counts once, a value without a reason most."""
    groups = {(edit.kind, edit.detail, edit.kind == "unknown" and edit.pc) for edit in edits}
    nowhere = any(edit.pc < 0 for edit in edits)
    return sum(_LOST.get(kind, 1.3) for kind, _, _ in groups) + 0.001 * len(edits) + 3 * nowhere


def is_restated(edits: Sequence[Edit]) -> bool:
    """Return whether terms are taken away and others added: that puts any sum right."""
    kinds = {edit.kind for edit in edits}
    return kinds >= {"extra term"} and bool(kinds & {"missing term", "missing"})


def loss(edits: Sequence[Edit], value: int) -> float:
    """Return the cost of edits of a value: operands without a reason, wherever they are used, explain more
    than that the value itself has none, and than a sum with other terms.
    """
    inside = {edit.pc for edit in edits if edit.kind == "unknown" and not edit.detail and edit.found != value}
    found = cost(edits) + _RESTATED * is_restated(edits)
    return found - (_LOST["unknown"] * len(inside) - _INSIDE if inside else 0)
