"""The last accesses of each byte, by address: finds work in conflict with new work, and without an order.

The bytes are cut into segments that the same work has touched. A segment keeps the last read, write and
atomic of each line of execution. A write replaces all accesses that come before it: work that conflicts with
an earlier access conflicts with the write, too. So the time of an access grows with the segments under it,
not with the work that was done before.

Knows clocks and addresses; does not know streams, nor what work is.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

Clock = dict[int, int]  # the last step of each line of execution that happened before
AddressRange = tuple[int, int]  # the first byte, the byte behind the last


class Touches(NamedTuple):
    """The bytes that work reads, writes, and changes by atomics."""

    reads: Sequence[AddressRange] = ()
    writes: Sequence[AddressRange] = ()
    atomics: Sequence[AddressRange] = ()


@dataclass(eq=False, frozen=True, slots=True)
class Work:
    """Work that has been done: a step of a line of execution. ``number`` counts work as it is done."""

    line: int
    step: int
    label: str
    touches: Touches
    number: int

    def before(self, clock: Clock) -> bool:
        """Return whether a clock comes after the work."""
        return self.step <= clock.get(self.line, 0)


READS, ATOMICS, WRITES = range(3)
_CONFLICTS = {READS: (ATOMICS, WRITES), ATOMICS: (READS, WRITES), WRITES: (READS, ATOMICS, WRITES)}
_REPLACES = {READS: (READS,), ATOMICS: (ATOMICS,), WRITES: (READS, ATOMICS, WRITES)}
_Accesses = dict[int, Work]  # by line, the latest last


@dataclass(eq=False, slots=True)
class _Segment:
    """Bytes before ``past`` that the same work has touched: its accesses by kind."""

    past: int
    accesses: tuple[_Accesses, _Accesses, _Accesses] = field(default_factory=lambda: ({}, {}, {}))

    def copy(self) -> _Segment:
        """Return the same for a part of the bytes."""
        reads, atomics, writes = self.accesses
        return _Segment(self.past, (reads.copy(), atomics.copy(), writes.copy()))

    def conflict(self, clock: Clock, kind: int) -> Work | None:
        """Return the latest work that an access of a kind is in conflict with."""
        found = None
        for other in _CONFLICTS[kind]:
            latest = next(_without_order(self.accesses[other], clock), None)
            if latest is not None and (found is None or latest.number > found.number):
                found = latest
        return found

    def note(self, work: Work, clock: Clock, kind: int) -> None:
        """Take an access, in place of those before it that it stands for."""
        for other in _REPLACES[kind]:
            _forget(self.accesses[other], clock)
        self.accesses[kind][work.line] = work


def _without_order(accesses: _Accesses, clock: Clock) -> Iterator[Work]:
    """Yield work that no clock comes after, the latest first."""
    return (work for work in reversed(accesses.values()) if not work.before(clock))


def _forget(accesses: _Accesses, clock: Clock) -> None:
    """Forget work that a clock comes after; by the lines of the shorter of the two."""
    lines = accesses if len(accesses) < len(clock) else clock
    for line in [line for line in lines if line in accesses and accesses[line].before(clock)]:
        del accesses[line]


class OrderedAccesses:
    """All accesses that later work may still be in conflict with."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._segments: list[_Segment] = []

    def __len__(self) -> int:
        return len(self._starts)

    def conflict(self, touches: Touches, clock: Clock) -> Work | None:
        """Return the latest work that touches a byte, too, which either writes, and that a clock does not
        come after.
        """
        found = None
        for kind, (first, past) in _stretches(touches):
            for place in range(
                max(bisect_right(self._starts, first) - 1, 0), bisect_left(self._starts, past)
            ):
                segment = self._segments[place]
                other = segment.conflict(clock, kind) if segment.past > first else None
                if other is not None and (found is None or other.number > found.number):
                    found = other
        return found

    def note(self, work: Work, clock: Clock) -> None:
        """Take all accesses of work, whose clock has its own step."""
        for kind, (first, past) in _stretches(work.touches):
            self._note(first, past, partial(_Segment.note, work=work, clock=clock, kind=kind))

    def forget(self, clock: Clock) -> None:
        """Forget the work that a clock comes after."""
        kept = list[tuple[int, _Segment]]()
        for start, segment in zip(self._starts, self._segments, strict=True):
            for accesses in segment.accesses:
                _forget(accesses, clock)
            if any(segment.accesses):
                kept.append((start, segment))
        self._starts, self._segments = [start for start, _ in kept], [segment for _, segment in kept]

    def _note(self, first: int, past: int, note: Callable[[_Segment], None]) -> None:
        """Change what is known of some bytes; neighbours that have become alike are one segment."""
        self._split_at(first)
        self._split_at(past)
        here, end = bisect_left(self._starts, first), bisect_left(self._starts, past)
        changed = list[tuple[int, _Segment]]()
        for start, segment in self._segments_without_gaps(first, past, here, end):
            note(segment)
            last = changed[-1][1] if changed else None
            if last is not None and last.accesses == segment.accesses:
                last.past = segment.past
            else:
                changed.append((start, segment))
        self._starts[here:end] = [start for start, _ in changed]
        self._segments[here:end] = [segment for _, segment in changed]

    def _segments_without_gaps(
        self, first: int, past: int, here: int, end: int
    ) -> Iterator[tuple[int, _Segment]]:
        """Yield segments with their first bytes, and new segments for the bytes between them."""
        for place in range(here, end):
            start, segment = self._starts[place], self._segments[place]
            if first < start:
                yield first, _Segment(start)
            yield start, segment
            first = segment.past
        if first < past:
            yield first, _Segment(past)

    def _split_at(self, byte: int) -> None:
        """Let a segment begin at a byte, where one lies around it."""
        place = bisect_right(self._starts, byte) - 1
        if place < 0 or self._starts[place] == byte or self._segments[place].past <= byte:
            return
        segment = self._segments[place]
        self._starts.insert(place + 1, byte)
        self._segments.insert(place + 1, segment.copy())
        segment.past = byte


def _stretches(touches: Touches) -> Iterator[tuple[int, AddressRange]]:
    """Yield kinds and stretches, writes last: they stand for the other accesses of the same work."""
    for kind, stretches in ((READS, touches.reads), (ATOMICS, touches.atomics), (WRITES, touches.writes)):
        for first, past in stretches:
            if first < past:
                yield kind, (first, past)
