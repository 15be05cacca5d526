"""Work of streams that has been given and not done yet: which is done next is for the schedule to choose.

Work is ready when all that it comes after has been done, by the clocks of streams and events. Until the host
waits, work of streams without an event between them may be done in any order.

    latest      what was given last
    earliest    what was given first
    random:N    any, by a generator with that seed

Knows clocks; does not know what work is.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass

from ..graphs import GraphNode
from ..streams import Clock

IN_ORDER = "program"  # the schedule by which work is done when it is given


@dataclass(eq=False)
class Pending:
    """Work of a line of execution: ``clock`` is its own step and what comes before, ``name`` the call's."""

    work: GraphNode
    line: int
    clock: Clock
    name: str
    number: int

    def before(self, clock: Clock) -> bool:
        """Return whether a clock comes after the work."""
        return self.clock[self.line] <= clock.get(self.line, 0)


class PendingWork:
    """What streams have been given, by lines of execution, each in its order."""

    def __init__(self, schedule: str) -> None:
        self._schedule = schedule
        self._random = random.Random(schedule)
        self._lines: dict[int, deque[Pending]] = {}
        self._running: set[Pending] = set()

    def add(self, pending: Pending) -> None:
        """Take work."""
        self._lines.setdefault(pending.line, deque()).append(pending)

    def next(self, needed: Clock | None) -> Pending | None:
        """Return work to be done now; None where all that a clock comes after has been done, or is running.

        Without a clock all work is needed.
        """
        heads = [line[0] for line in self._lines.values()]
        if not any(needed is None or head.before(needed) for head in heads):
            return None
        others = [*heads, *self._running]
        ready = [
            head
            for head in heads
            if not any(other.before(head.clock) for other in others if other is not head)
        ]
        if not ready:
            return None
        found = self._chosen(ready)
        self._running.add(found)
        line = self._lines[found.line]
        line.popleft()
        if not line:
            del self._lines[found.line]
        return found

    def _chosen(self, ready: list[Pending]) -> Pending:
        if self._schedule == "latest":
            return max(ready, key=lambda pending: pending.number)
        if self._schedule == "earliest":
            return min(ready, key=lambda pending: pending.number)
        return self._random.choice(ready)

    def __bool__(self) -> bool:
        return bool(self._lines or self._running)

    def ended(self, pending: Pending) -> None:
        """Note that work has been done."""
        self._running.discard(pending)
