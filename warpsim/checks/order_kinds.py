"""The kinds of order that the statements of some code ask for: flags, barriers of some threads, copies.

Rules of a kind have nothing to do where the code has no such statement. Knows statements and their modifiers
(PTX ISA 9.1, section 8); does not know clocks, memory or events.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..machine.state.slots import Slot
from .findings import Findings

if TYPE_CHECKING:
    from ..machine.run.wave import Record

ACQUIRES, RELEASES = frozenset({"acquire", "acq_rel", "sc"}), frozenset({"release", "acq_rel", "sc"})
RELAXED = frozenset({"relaxed", "volatile", "mmio"})
FLAGS = frozenset({"ld", "st", "atom", "red"})


@dataclass(eq=False)
class _Kinds:
    """The latest code of a launch that was looked at, and its kinds of order."""

    code: Sequence[Record] | None = None
    kinds: tuple[bool, bool, bool] = (False, False, False)


def _no_kinds(findings: Findings) -> _Kinds:
    return _Kinds()


_KINDS = Slot(_no_kinds)


def kinds_of(findings: Findings, code: Sequence[Record]) -> tuple[bool, bool, bool]:
    """Return whether there are flags, barriers of some threads, and asynchronous copies; found once in a
    launch.
    """
    known = _KINDS.of(findings)
    if known.code is not code:
        known.code = code
        known.kinds = any(map(_is_ordered, code)), any(map(_of_some, code)), any(map(_is_asynchronous, code))
    return known.kinds


def _of_some(record: Record) -> bool:
    """Return whether a statement is a barrier to which not all threads of a CTA have to come, or only
    arrive.
    """
    statement = record.statement
    if statement.opcode not in ("bar", "barrier") or not {"warp", "cluster"}.isdisjoint(statement.modifiers):
        return False
    return len(statement.operands or ()) - 2 * ("red" in statement.modifiers) > 1


def _is_asynchronous(record: Record) -> bool:
    """Return whether a statement starts a copy from or to shared memory, or is of tcgen05; of wgmma alone,
    other rules speak.
    """
    opcode, words = record.statement.opcode, record.statement.modifiers
    if opcode == "tcgen05":
        return True
    return (opcode == "cp" and "bulk" in words) or any("complete_tx::" in word for word in words)


def _is_ordered(record: Record) -> bool:
    """Return whether a statement is a fence, or an access that releases or acquires."""
    statement = record.statement
    if statement.opcode in ("membar", "fence"):
        return "proxy" not in statement.modifiers
    return statement.opcode in FLAGS and not (ACQUIRES | RELEASES).isdisjoint(statement.modifiers)
