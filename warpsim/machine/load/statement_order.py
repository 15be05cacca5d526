"""Which of the statements that a launch executed a thread may execute after which.

Knows branches and their labels; does not know predicates, or what threads do for each other. Where a table or
a call says what comes next, any statement may.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from ...ptx.operands import Register
from ..bind.scope import LabelName
from ..run.wave import Record

_ENDS = frozenset({"bra", "ret", "exit", "trap"})
_ANYWHERE = frozenset({"brx", "call"})


class StatementOrder:
    """The order of the statements ``executed``: program counters, ascending, with their records."""

    def __init__(self, executed: Sequence[tuple[int, Record]]) -> None:
        self._places = [pc for pc, _ in executed]
        self._any = any(record.statement.opcode in _ANYWHERE for _, record in executed)
        targets = {pc: [*map(self._next, _labels(record))] for pc, record in executed}
        ends = [pc for pc, record in executed if record.statement.opcode in _ENDS]
        starts = {*self._places[:1], *(self._next(pc + 1) for pc in ends)}.union(*targets.values())
        self._starts = sorted(starts - {-1})
        self._reach = self._transitive_closure([*self._edges(executed, targets)])

    def follows(self, pc: int, before: int) -> bool:
        """Return whether a thread may execute a statement after another, or again after itself."""
        block, first = self._block(pc), self._block(before)
        return self._any or bool(self._reach[first] >> block & 1) or (block == first and before < pc)

    def _next(self, pc: int) -> int:
        """Return the first statement executed from a program counter on; -1 for none."""
        place = bisect_left(self._places, pc)
        return self._places[place] if place < len(self._places) else -1

    def _block(self, pc: int) -> int:
        return bisect_right(self._starts, pc) - 1

    def _edges(self, executed: Sequence[tuple[int, Record]], targets: dict[int, list[int]]) -> Iterator[int]:
        """Yield a bit for each block that may follow a block, block by block."""
        last = {self._block(pc): (pc, record) for pc, record in executed}
        for block in range(len(self._starts)):
            pc, record = last[block]
            ends = record.statement.opcode in _ENDS and record.guard < 0
            after = [*targets[pc], *([] if ends else [self._next(pc + 1)])]
            yield sum(1 << self._block(place) for place in {*after} - {-1})

    @staticmethod
    def _transitive_closure(reach: list[int]) -> list[int]:
        """Return a bit for each block that a block leads to, over others too."""
        changed = True
        while changed:
            changed = False
            for block in reversed(range(len(reach))):
                found = reach[block]
                for other in range(len(reach)):
                    if reach[block] >> other & 1:
                        found |= reach[other]
                changed |= found != reach[block]
                reach[block] = found
        return reach


def _labels(record: Record) -> Iterator[int]:
    """Yield where a branch leads."""
    if record.statement.opcode != "bra" or record.scope is None:
        return
    for operand in record.statement.operands or ():
        label = record.scope.find(operand.name) if isinstance(operand, Register) else None
        if isinstance(label, LabelName):
            yield label.pc
