"""Runs of members: statements of one kind that are executed at once (machine/bind/members.py).

What they do is the business of their opcode. Where another path stands among them, or an observer has put
other records in place of theirs, the interpreter executes them. Does not know what they compute.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..bind.members import Member, at_once
from ..state.lanes import DivergentPath
from .wave import Record, Wave

_LONGEST = 64  # statements


class MmaBatch:
    """The statements from ``first`` to before ``past`` of a module's ``code``."""

    __slots__ = ("code", "first", "members", "past", "records")

    def __init__(self, code: list[Record], first: int, past: int) -> None:
        self.code, self.first, self.past = code, first, past
        self.records = code[first:past]
        self.members = [*_members(self.records)]

    def run(self, wave: Wave, path: DivergentPath, stop: int) -> bool:
        """Execute all of it at once, and return True; or nothing where the interpreter has to."""
        code = wave.code
        if (self.first < stop < self.past) or (
            code is not self.code and list(code[self.first : self.past]) != self.records
        ):
            return False
        if not self.members[0].execute(wave, path, self.members):
            return False
        wave.scheduler.executed(self.first, self.past)
        path.pc = self.past
        return True


def run_from(code: list[Record], pc: int, labels: frozenset[int]) -> MmaBatch | None:
    """Return the run that begins at a statement; None where it begins inside of a run, or alone."""
    first, least = pc, max(pc - _LONGEST, 0)
    while first not in labels and first > least and _is_alike(code[first - 1], code[pc]):
        first -= 1
    while first <= pc:
        past = min(pc + _LONGEST, len(code))
        last = next((place for place in range(first + 1, past) if place in labels), past)
        count = at_once([*_members(code[first:last])])
        if first == pc:
            return MmaBatch(code, pc, pc + count) if count > 1 else None
        first += max(count, 1)
    return None


def _is_alike(record: Record, other: Record) -> bool:
    return (
        record.guard < 0
        and record.member is not None
        and other.member is not None
        and record.member.kind == other.member.kind
    )


def _members(records: Iterable[Record]) -> Iterator[Member]:
    """Yield the members of records up to the first that is none."""
    for record in records:
        if record.guard >= 0 or record.member is None:
            return
        yield record.member
