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
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

Clock = dict[int, int]  # the last step of each line of execution that happened before
Stretch = tuple[int, int]  # the first byte, the byte behind the last
LEGACY, PER_THREAD = 1, 2  # handles of cudaStreamLegacy and cudaStreamPerThread


def join(*clocks: Clock) -> Clock:
    """Return what has happened before by any of the clocks."""
    joined: Clock = {}
    for clock in clocks:
        for line, step in clock.items():
            joined[line] = max(step, joined.get(line, 0))
    return joined


class Touches(NamedTuple):
    """The bytes that work reads, writes, and changes by atomics."""

    reads: Sequence[Stretch] = ()
    writes: Sequence[Stretch] = ()
    atomics: Sequence[Stretch] = ()


@dataclass(eq=False)
class Stream:
    """A stream; ``blocking`` are those that wait for the legacy stream."""

    handle: int
    line: int
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


class Work(NamedTuple):
    """Work that has been done: a step of a line of execution."""

    line: int
    step: int
    label: str
    touches: Touches


class Conflict(NamedTuple):
    """Two pieces of work that touch a byte without an order."""

    first: Work
    second: Work
    byte: int


class Order:
    """The streams of one client and what they did, as far as the host has not waited for it."""

    def __init__(self) -> None:
        self._lines = count(1)
        self.legacy = Stream(LEGACY, next(self._lines), name="the legacy stream")
        self.streams: dict[int, Stream] = {LEGACY: self.legacy}
        self.host: Clock = {}
        self.several = False  # whether there has been another stream than the legacy stream
        self._ended: dict[bool, Clock] = {True: {}, False: {}}  # of streams that are no more, by blocking
        self._steps: dict[int, int] = {}
        self._done: list[Work] = []

    def create(self, handle: int, *, blocking: bool, priority: int = 0) -> Stream:
        """Make a stream."""
        line = next(self._lines)
        stream = Stream(handle, line, blocking, priority, name=f"stream {line - 1}")
        self.streams[handle] = stream
        self.several = True
        return stream

    def end(self, handle: int) -> None:
        """Forget a stream; its work still comes before what waits for all."""
        stream = self.streams.pop(handle)
        self._ended[stream.blocking] = join(self._ended[stream.blocking], stream.clock)

    def begin(self, stream: Stream) -> Clock:
        """Return the clock of the next work of a stream, which is then its own."""
        others = list[Clock]()
        if stream is self.legacy:
            others = [self._ended[True], *(other.clock for other in self.streams.values() if other.blocking)]
        elif stream.blocking:
            others = [self.legacy.clock]
        clock = join(stream.clock, self.host, *others)
        stream.clock = self.step(clock, stream.line)
        return stream.clock

    def step(self, clock: Clock, line: int) -> Clock:
        """Return a clock with the next step of a line."""
        self._steps[line] = self._steps.get(line, 0) + 1
        return {**clock, line: self._steps[line]}

    def branch(self, clock: Clock) -> tuple[int, Clock]:
        """Return a new line of execution, and its first step behind a clock."""
        line = next(self._lines)
        return line, self.step(clock, line)

    def wait(self, clock: Clock, *, forget: bool = True) -> None:
        """Let the host wait for what a clock says; work is forgotten unless earlier work is left."""
        self.host = join(self.host, clock)
        if forget:
            self._done = [work for work in self._done if not _before(work, self.host)]

    def wait_for_all(self) -> None:
        """Let the host wait for all streams."""
        self.wait(join(*self._ended.values(), *(stream.clock for stream in self.streams.values())))

    def all_waited(self) -> bool:
        """Return whether the host has waited for all that streams were given."""
        clocks = (*self._ended.values(), *(stream.clock for stream in self.streams.values()))
        return all(step <= self.host.get(line, 0) for clock in clocks for line, step in clock.items())

    def done(self, line: int, clock: Clock, label: str, touches: Touches) -> Conflict | None:
        """Note work that was done; return the first conflict with other work."""
        work = Work(line, clock[line], label, touches)
        found = None
        for other in self._done:
            byte = None if _before(other, clock) else _shared(other.touches, touches)
            if byte is not None:
                found = found or Conflict(other, work, byte)
        self._done.append(work)
        return found


def _before(work: Work, clock: Clock) -> bool:
    return work.step <= clock.get(work.line, 0)


def _shared(first: Touches, second: Touches) -> int | None:
    """Return a byte that both touch and either writes; two atomics do not conflict."""
    pairs = (
        (first.writes, (*second.reads, *second.writes, *second.atomics)),
        (first.reads, (*second.writes, *second.atomics)),
        (first.atomics, (*second.reads, *second.writes)),
    )
    return next((byte for some, other in pairs if (byte := _common(some, other)) is not None), None)


def _common(first: Sequence[Stretch], second: Sequence[Stretch]) -> int | None:
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
