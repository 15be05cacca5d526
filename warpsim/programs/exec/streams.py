"""The order of what a client gives to its streams: one happens-before, by vector clocks.

    stream      a clock; the legacy stream waits for all blocking streams, and they wait for it
    event       the clock of a stream at cudaEventRecord
    host        what all threads of the client have waited for (threads order each other unseen, so that the
                host is taken as one line of execution)

Work that touches the same bytes without an order is a race. Knows clocks and stretches of bytes; does not
know calls, and what work does.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from .ordered_accesses import AddressRange, Clock, OrderedAccesses, Touches, Work

__all__ = [
    "LEGACY",
    "PER_THREAD",
    "AddressRange",
    "Clock",
    "Conflict",
    "Event",
    "Order",
    "Stream",
    "Touches",
    "join",
]

LEGACY, PER_THREAD = 1, 2  # handles of cudaStreamLegacy and cudaStreamPerThread
_FEWEST_KEPT = 32  # accesses and lines that are not worth looking through


def join(*clocks: Clock) -> Clock:
    """Return what has happened before by any of the clocks."""
    joined: Clock = {}
    for clock in clocks:
        _advance(joined, clock)
    return joined


@dataclass(eq=False)
class Stream:
    """A stream; ``blocking`` are those that wait for the legacy stream.

    ``line`` is that of its work, from the first on; ``branches`` are those of nodes of graphs.
    """

    handle: int
    number: int
    line: int = 0
    branches: list[int] = field(default_factory=list)
    blocking: bool = True
    priority: int = 0
    clock: Clock = field(default_factory=dict)
    name: str = ""
    attributes: dict[int, bytes] = field(default_factory=dict)  # that the program has set


@dataclass(eq=False)
class Event:
    """An event: when it was recorded, in seconds here, and what happened before."""

    timed: bool = True
    seconds: float | None = None
    clock: Clock = field(default_factory=dict)

    def record(self, clock: Clock) -> None:
        """Note that what a clock says has happened, now."""
        self.clock, self.seconds = clock, time.perf_counter()


class Conflict(NamedTuple):
    """Two pieces of work that touch a byte without an order."""

    first: Work
    second: Work
    byte: int


class Order:
    """The streams of one client and what they did, as far as the host has not waited for it.

    A stream has a line of execution, and another for each node of its graphs. The line of a stream
    that has ended goes to a new stream whose work comes after all of it, and is dropped once the host has
    waited for it. So a clock has an entry for each stream whose work the host has not waited for, no more.
    """

    def __init__(self) -> None:
        self._streams_made, self._lines, self._works = count(1), count(1), count(1)
        self.legacy = Stream(LEGACY, next(self._streams_made), name="the legacy stream")
        self.streams: dict[int, Stream] = {LEGACY: self.legacy}
        self.host: Clock = {}
        self.several = False  # whether there has been another stream than the legacy stream
        self._steps: Clock = {}  # the last of each line
        self._idle = set[int]()  # lines of streams that are no more
        self._blocking: Clock = {}  # of blocking streams, since the last work of the legacy stream
        self._accesses = OrderedAccesses()
        self._kept = _FEWEST_KEPT  # accesses and lines that were left when some were last forgotten

    def create(self, handle: int, *, blocking: bool, priority: int = 0) -> Stream:
        """Make a stream."""
        number = next(self._streams_made)
        stream = Stream(handle, number, blocking=blocking, priority=priority, name=f"stream {number - 1}")
        self.streams[handle] = stream
        self.several = True
        return stream

    def end(self, handle: int) -> None:
        """Forget a stream; its work still comes before what waits for all."""
        stream = self.streams.pop(handle)
        self._idle.update(stream.branches, [stream.line] if stream.line else ())

    def begin(self, stream: Stream) -> Clock:
        """Return the clock of the next work of a stream, which is then its own."""
        others = list[Clock]()
        if stream is self.legacy:
            others, self._blocking = [self._blocking], {}
        elif stream.blocking:
            others = [self.legacy.clock]
        clock = join(stream.clock, self.host, *others)
        stream.line = stream.line or self._line_after(clock)
        self._give(stream, self._step(clock, stream.line))
        return stream.clock

    def _line_after(self, clock: Clock) -> int:
        """Return a line that a clock comes after all of: of a stream that is no more, or a new line."""
        idle = (line for line, step in clock.items() if line in self._idle and step >= self._steps[line])
        found = next(idle, None)
        if found is None:
            return next(self._lines)
        self._idle.discard(found)
        return found

    def _step(self, clock: Clock, line: int) -> Clock:
        """Return a clock with the next step of a line."""
        self._steps[line] = self._steps.get(line, 0) + 1
        return {**clock, line: self._steps[line]}

    def _give(self, stream: Stream, clock: Clock) -> None:
        """Let a stream have a clock, which the legacy stream waits for."""
        stream.clock = clock
        if stream.blocking and stream is not self.legacy:
            _advance(self._blocking, clock)

    def branch(self, stream: Stream, place: int, clock: Clock) -> tuple[int, Clock]:
        """Return the line of a place among a stream's nodes of graphs, and its next step behind a clock."""
        if place == len(stream.branches):
            stream.branches.append(self._line_after(clock))
        return stream.branches[place], self._step(clock, stream.branches[place])

    def meet(self, stream: Stream, clocks: Iterable[Clock]) -> None:
        """Let a stream go on behind clocks, in a step of its own."""
        self._give(stream, self._step(join(*clocks), stream.line))

    def after(self, stream: Stream, clock: Clock) -> None:
        """Let later work of a stream come after a clock."""
        self._give(stream, join(stream.clock, self._lasting(clock)))

    def _lasting(self, clock: Clock) -> Clock:
        """Return a clock without the lines that have been dropped."""
        return {line: step for line, step in clock.items() if line in self._steps}

    def wait(self, clock: Clock, *, forget: bool = True) -> None:
        """Let the host wait for what a clock says; work is forgotten unless earlier work is left."""
        self.host = join(self.host, self._lasting(clock))
        if forget and len(self._accesses) + len(self._steps) >= 2 * self._kept:
            self._forget()

    def wait_for_all(self) -> None:
        """Let the host wait for all streams."""
        self.wait(self._steps)

    def all_waited(self) -> bool:
        """Return whether the host has waited for all that streams were given."""
        return all(step <= self.host.get(line, 0) for line, step in self._steps.items())

    def _forget(self) -> None:
        """Forget accesses that the host has waited for, and drop lines that it has waited for all of."""
        self._accesses.forget(self.host)
        dropped = {line for line in self._idle if self._steps[line] <= self.host.get(line, 0)}
        self._idle -= dropped
        clocks = (stream.clock for stream in self.streams.values())
        for clock in (self._steps, self.host, self._blocking, *clocks):
            for line in dropped & clock.keys():
                del clock[line]
        self._kept = max(len(self._accesses) + len(self._steps), _FEWEST_KEPT)

    def done(self, line: int, clock: Clock, label: str, touches: Touches) -> Conflict | None:
        """Note work that was done; return its conflict with the latest of other work, if there is any."""
        work = Work(line, clock[line], label, touches, next(self._works))
        other = self._accesses.conflict(touches, clock)
        self._accesses.note(work, clock)
        return None if other is None else Conflict(other, work, _conflicting_byte(other.touches, touches))


def _advance(clock: Clock, other: Clock) -> None:
    """Let a clock come after another, too."""
    for line, step in other.items():
        if step > clock.get(line, 0):
            clock[line] = step


def _conflicting_byte(first: Touches, second: Touches) -> int:
    """Return a byte that both touch and either writes; two atomics do not conflict."""
    pairs = (
        (first.writes, (*second.reads, *second.writes, *second.atomics)),
        (first.reads, (*second.writes, *second.atomics)),
        (first.atomics, (*second.reads, *second.writes)),
    )
    return next(byte for some, other in pairs if (byte := _common(some, other)) is not None)


def _common(first: Sequence[AddressRange], second: Sequence[AddressRange]) -> int | None:
    """Return a byte of both."""
    left, right = sorted(first), sorted(second)
    here = there = 0
    while here < len(left) and there < len(right):
        begin = max(left[here][0], right[there][0])
        if begin < min(left[here][1], right[there][1]):
            return begin
        if left[here][1] <= right[there][1]:
            here += 1
        else:
            there += 1
    return None
