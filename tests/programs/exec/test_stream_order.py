"""The order of streams against a naive one that keeps everything, on random programs; and what is kept."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

import pytest

from tests.helpers.naive_streams import Bytes, Clock, NaiveOrder, in_conflict
from warpsim.programs.exec.streams import LEGACY, Order, Touches

Stretches = list[tuple[int, int]]


class Given(NamedTuple):
    """Work that a stream has been given and that is not done yet, in both orders."""

    line: int
    clock: Clock
    naive_line: int
    naive_clock: Clock
    label: str


class Program:
    """A random program of stream operations, told to both orders; ``late`` work is done when it must be."""

    def __init__(self, seed: int, *, late: bool) -> None:
        self.random, self.late = Random(seed), late
        self.order, self.naive = Order(), NaiveOrder()
        self.handles, self.given = [LEGACY], list[Given]()
        self.events = list[tuple[Clock, Clock]]()
        self.touched = dict[str, Bytes]()
        self.made = self.conflicts = 0

    def step(self) -> None:
        """Do one operation."""
        kinds = ("create", "end", "work", "work", "work", "work", "graph", "record", "wait", "stream", "all")
        kind = self.random.choice(kinds)
        handle = self.random.choice(self.handles)
        if kind == "create" and len(self.handles) < 6:
            self.create()
        elif kind == "end" and handle != LEGACY:
            self.handles.remove(handle)
            self.order.end(handle)
            self.naive.end(handle)
        elif kind == "work":
            self.give(handle)
        elif kind == "graph":
            self.graph(handle)
        elif kind == "record":
            stream = self.order.streams[handle]
            self.events.append((self.order.begin(stream), self.naive.begin(handle)))
        elif kind == "wait" and self.events:
            mine, naive = self.random.choice(self.events)
            self.order.after(self.order.streams[handle], mine)
            stream = self.naive.streams[handle]
            stream.clock = {**stream.clock, **{a: max(b, stream.clock.get(a, 0)) for a, b in naive.items()}}
        elif kind == "stream" or (kind == "all" and self.random.random() < 0.3):
            self.wait(None if kind == "all" else handle)

    def create(self) -> None:
        blocking = self.random.random() < 0.6
        self.made += 1
        self.order.create(10 + self.made, blocking=blocking)
        self.naive.create(10 + self.made, blocking=blocking)
        self.handles.append(10 + self.made)

    def give(self, handle: int) -> None:
        clock, naive = self.order.begin(self.order.streams[handle]), self.naive.begin(handle)
        self.take(self.order.streams[handle].line, clock, self.naive.streams[handle].line, naive)

    def graph(self, handle: int) -> None:
        """Two nodes beside each other, and one behind the first."""
        stream, other = self.order.streams[handle], self.naive.streams[handle]
        start, naive_start = self.order.begin(stream), self.naive.begin(handle)
        ends, naive_ends = [start], [naive_start]
        for place, behind in enumerate((0, 0, 1)):
            line, clock = self.order.branch(stream, place, ends[behind])
            naive_line = self.naive.new_line()
            naive_clock = self.naive.step(naive_line, naive_ends[behind])
            ends.append(clock)
            naive_ends.append(naive_clock)
            self.take(line, clock, naive_line, naive_clock)
        self.order.meet(stream, ends)
        other.clock = self.naive.step(other.line, *naive_ends)

    def take(self, line: int, clock: Clock, naive_line: int, naive_clock: Clock) -> None:
        self.made += 1
        self.given.append(Given(line, clock, naive_line, naive_clock, f"work {self.made}"))
        if not self.late:
            self.do(self.given[0])

    def do(self, given: Given) -> None:
        """Do work, and compare the conflict that is found with those that there are."""
        self.given.remove(given)
        touches = self.touches()
        bytes_ = tuple(frozenset(b for s, e in part for b in range(s, e)) for part in touches)
        touched: Bytes = (bytes_[0], bytes_[1], bytes_[2])
        found = self.order.done(given.line, given.clock, given.label, Touches(*touches))
        expected = self.naive.done(given.naive_line, given.naive_clock, given.label, touched)
        assert (found is not None) == bool(expected), given.label
        if found is not None:
            self.conflicts += 1
            label, both = expected[0]
            assert (found.first.label, found.second.label) == (label, given.label)
            assert found.byte in both
            assert found.byte in in_conflict(self.touched[label], touched)
        self.touched[given.label] = touched

    def touches(self) -> tuple[Stretches, Stretches, Stretches]:
        parts: tuple[Stretches, Stretches, Stretches] = ([], [], [])
        for _ in range(self.random.choice((0, 1, 1, 1, 2, 3))):
            first = self.random.randrange(40)
            size = self.random.choice((0, 1, 4, 8, 30))
            self.random.choice(parts).append((first, first + size))
        return parts

    def wait(self, handle: int | None) -> None:
        """Let the host wait for a stream, or for all: what is before is done first, in any allowed order."""
        needed = None if handle is None else self.naive.streams[handle].clock
        while any(needed is None or before(each, needed) for each in self.given):
            ready = [
                each
                for each in self.given
                if not any(other is not each and before(other, each.naive_clock) for other in self.given)
            ]
            self.do(self.random.choice(ready))
        if handle is None:
            self.order.wait_for_all()
            self.naive.wait_for_all()
            assert self.order.all_waited()
        else:
            self.order.wait(self.order.streams[handle].clock, forget=not self.given)
            self.naive.wait(self.naive.streams[handle].clock)


def before(given: Given, clock: Clock) -> bool:
    return given.naive_clock[given.naive_line] <= clock.get(given.naive_line, 0)


@pytest.mark.parametrize("late", [False, True])
def test_conflicts_are_those_of_the_naive_order(late: bool) -> None:
    conflicts = 0
    for seed in range(150):
        program = Program(seed, late=late)
        for _ in range(150):
            program.step()
        program.wait(None)
        conflicts += program.conflicts
    assert conflicts > 1000


def given(order: Order, handle: int, first: int) -> bool:
    """Give a stream work that writes 8 bytes; return whether it is in conflict."""
    stream = order.streams[handle]
    clock = order.begin(stream)
    return order.done(stream.line, clock, "work", Touches(writes=((first, first + 8),))) is not None


def test_accesses_and_lines_that_the_host_has_waited_for_are_forgotten() -> None:
    order = Order()
    for number in range(2000):
        order.create(10 + number, blocking=number % 2 == 0)
        assert not given(order, 10 + number, 8 * number)
        order.wait(order.streams[10 + number].clock)
        order.end(10 + number)
        assert max(len(order._accesses), len(order._steps), len(order.host)) < 100


def test_lines_of_streams_that_have_ended_are_used_again() -> None:
    """Each stream waits for an event of the one before; the host waits for none of them."""
    order, event = Order(), dict[int, int]()
    for number in range(500):
        order.create(10 + number, blocking=False)
        order.after(order.streams[10 + number], event)
        assert not given(order, 10 + number, 0)
        event = order.begin(order.streams[10 + number])
        order.end(10 + number)
    assert len(event) == 1
    assert len(order._accesses) == 1


def test_graphs_have_the_same_lines_each_time() -> None:
    order = Order()
    stream = order.create(10, blocking=True)
    for _ in range(100):
        start = order.begin(stream)
        ends = [order.branch(stream, place, start)[1] for place in range(4)]
        order.meet(stream, ends)
    assert len(stream.clock) == 5


def test_a_write_stands_for_the_accesses_before_it() -> None:
    order = Order()
    for handle in (10, 11):
        order.create(handle, blocking=False)
    for place in range(100):
        given(order, 10, 8 * place)
    assert len(order._accesses) == 100
    stream = order.streams[10]
    order.done(stream.line, order.begin(stream), "all", Touches(writes=((0, 800),)))
    assert len(order._accesses) == 1
    assert given(order, 11, 80)
