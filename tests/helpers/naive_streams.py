"""The order of streams, slowly: every work is kept, no line is used twice, all pairs are compared."""

from __future__ import annotations

from dataclasses import dataclass, field

Clock = dict[int, int]
Bytes = tuple[frozenset[int], frozenset[int], frozenset[int]]  # read, written, changed by atomics


@dataclass(eq=False)
class NaiveStream:
    line: int
    blocking: bool
    clock: Clock = field(default_factory=dict)


@dataclass(eq=False)
class NaiveWork:
    line: int
    clock: Clock
    label: str
    touched: Bytes

    def before(self, clock: Clock) -> bool:
        return self.clock[self.line] <= clock.get(self.line, 0)


class NaiveOrder:
    """Streams by handle, 1 for the legacy stream; ``ended`` ones still have their work."""

    def __init__(self) -> None:
        self.lines = 1
        self.streams = {1: NaiveStream(1, blocking=False)}
        self.ended = list[NaiveStream]()
        self.host: Clock = {}
        self.steps: Clock = {}
        self.works = list[NaiveWork]()

    def new_line(self) -> int:
        self.lines += 1
        return self.lines

    def create(self, handle: int, *, blocking: bool) -> None:
        self.streams[handle] = NaiveStream(self.new_line(), blocking)

    def end(self, handle: int) -> None:
        self.ended.append(self.streams.pop(handle))

    def step(self, line: int, *clocks: Clock) -> Clock:
        self.steps[line] = self.steps.get(line, 0) + 1
        return latest(*clocks, {line: self.steps[line]})

    def begin(self, handle: int) -> Clock:
        stream = self.streams[handle]
        others = list[Clock]()
        if handle == 1:
            others = [each.clock for each in (*self.streams.values(), *self.ended) if each.blocking]
        elif stream.blocking:
            others = [self.streams[1].clock]
        stream.clock = self.step(stream.line, stream.clock, self.host, *others)
        return stream.clock

    def wait(self, clock: Clock) -> None:
        self.host = latest(self.host, clock)

    def wait_for_all(self) -> None:
        self.wait(latest(*(each.clock for each in (*self.streams.values(), *self.ended))))

    def done(self, line: int, clock: Clock, label: str, touched: Bytes) -> list[tuple[str, frozenset[int]]]:
        """Note work; return the labels of all that it conflicts with, the latest first, with the bytes."""
        found = list[tuple[str, frozenset[int]]]()
        for other in reversed(self.works):
            both = in_conflict(other.touched, touched)
            if both and not other.before(clock):
                found.append((other.label, both))
        self.works.append(NaiveWork(line, clock, label, touched))
        return found


def latest(*clocks: Clock) -> Clock:
    lines = {line for clock in clocks for line in clock}
    return {line: max(clock.get(line, 0) for clock in clocks) for line in lines}


def in_conflict(first: Bytes, second: Bytes) -> frozenset[int]:
    """The bytes that both touch and either writes; two atomics do not conflict."""
    reads, writes, atomics = first
    others, written, changed = second
    return writes & (others | written | changed) | reads & (written | changed) | atomics & (others | written)
