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
from bisect import insort
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, count

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
    """What streams have been given, by lines of execution, each in its order.

    The first work of a line is ready, or waits for work of another line to end: it is looked at again then.
    """

    def __init__(self, schedule: str) -> None:
        self._schedule = schedule
        self._random = random.Random(schedule)
        self._lines: dict[int, deque[Pending]] = {}
        self._running: dict[int, Pending] = {}  # by line
        self._ready: list[tuple[int, int]] = []  # places in the schedule, and lines, in order
        self._waiting: dict[int, list[Pending]] = {}  # by a line that they wait for
        self._places, self._numbers = dict[int, int](), count()  # of lines, as they were given work

    def add(self, pending: Pending) -> None:
        """Take work, all that it comes after before it."""
        if pending.line not in self._lines:
            self._lines[pending.line] = deque()
            self._places[pending.line] = next(self._numbers)
        line = self._lines[pending.line]
        line.append(pending)
        if len(line) == 1:
            self._sort(pending)

    def next(self, needed: Clock | None) -> Pending | None:
        """Return work to be done now; None where all that a clock comes after has been done, or is running.

        Without a clock all work is needed.
        """
        if not self._ready or not (needed is None or self._has_before(needed)):
            return None
        found = self._chosen()
        self._running[found.line] = found
        line = self._lines[found.line]
        line.popleft()
        if line:
            self._sort(line[0])
        else:
            del self._lines[found.line]
        return found

    def _chosen(self) -> Pending:
        """Take work that is ready."""
        if self._schedule in ("earliest", "latest"):
            place = 0 if self._schedule == "earliest" else -1
        else:
            place = self._random.choice(range(len(self._ready)))
        return self._lines[self._ready.pop(place)[1]][0]

    def _has_before(self, clock: Clock) -> bool:
        """Return whether the first work of a line comes before a clock."""
        return any(self._lines[line][0].before(clock) for line in _common(self._lines, clock))

    def _sort(self, first: Pending) -> None:
        """Put the first work of a line where it belongs: ready, or behind work that has not ended."""
        clock = first.clock
        for line in chain(_common(self._running, clock), _common(self._lines, clock)):
            other = self._running.get(line) or self._lines[line][0]
            if other is not first and other.before(clock):
                self._waiting.setdefault(line, []).append(first)
                return
        is_random = self._schedule not in ("earliest", "latest")
        insort(self._ready, (self._places[first.line] if is_random else first.number, first.line))

    def __bool__(self) -> bool:
        return bool(self._lines or self._running)

    def ended(self, pending: Pending) -> None:
        """Note that work has been done."""
        del self._running[pending.line]
        for first in self._waiting.pop(pending.line, ()):
            self._sort(first)


def _common(lines: Mapping[int, object], clock: Clock) -> Iterator[int]:
    """Yield the lines that a clock has, too; by the lines of the shorter of the two."""
    shorter, longer = (lines, clock) if len(lines) < len(clock) else (clock, lines)
    return (line for line in shorter if line in longer)
