"""Vector clocks against a graph of events: which access is before which, on random programs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.families import usual
from tests.helpers.slow_order import SlowOrder
from warpsim.observe.checks.clocks import BEGUN, HAPPENED, PROXY, VISIBLE, Clocks
from warpsim.observe.checks.flags import Flags

WARPS = 4
ROWS = {"visible": (VISIBLE,), "proxy": (PROXY,), "happened": (VISIBLE, HAPPENED), "begun": (VISIBLE, BEGUN)}
warps, two, some = st.integers(0, WARPS - 1), st.integers(0, 1), st.booleans()
EVENTS = st.one_of(
    st.tuples(st.just("access"), warps),
    st.tuples(st.just("meet"), st.lists(warps, min_size=1, unique=True).map(sorted)),
    st.tuples(st.just("happen"), st.lists(warps, min_size=1, unique=True).map(sorted)),
    st.tuples(st.just("fence"), warps, some, some),
    st.tuples(st.just("fence_init"), warps),
    st.tuples(st.just("fence_proxy"), warps),
    st.tuples(st.just("arrive"), warps, two, some, some),
    st.tuples(st.just("issue"), warps, two),
    st.tuples(st.just("end"), two),
    st.tuples(st.just("wait"), warps, two, some),
    st.tuples(st.just("write"), warps, two, some, some),
    st.tuples(st.just("read"), warps, two, some),
)


class Both:
    """A program, told to clocks and to the graph."""

    def __init__(self) -> None:
        self.clocks, self.slow = Clocks(WARPS, WARPS), SlowOrder()
        self.flags = Flags(self.clocks, 0, {}, follows=True)
        self.accesses: list[tuple[int, int, int]] = []  # warp, time, node
        self.phases: list[tuple[int, int, int]] = []  # component, number, node

    def step(self, kind: str, *rest: object) -> None:
        getattr(self, f"_{kind}")(*rest)

    def _access(self, warp: int) -> None:
        self.accesses.append((warp, int(self.clocks.own(np.array([warp]))[0]), self.slow.access(warp)))

    def _meet(self, met: list[int]) -> None:
        self.clocks.meet(np.array([met]))
        self.slow.meet(met)

    def _happen(self, met: list[int]) -> None:
        self.clocks.happen_together(np.array([met]))
        self.slow.happen(met)

    def _fence(self, warp: int, acquire: bool, release: bool) -> None:
        self.clocks.fence(np.array([warp]), acquire=acquire, release=release)
        self.slow.fence(warp, acquire, release)

    def _fence_init(self, warp: int) -> None:
        self.clocks.fence_begun(np.array([warp]))
        self.slow.fence_init(warp)

    def _fence_proxy(self, warp: int) -> None:
        self.clocks.fence_proxy(np.array([warp]))
        self.slow.fence_proxy(warp)

    def _arrive(self, warp: int, barrier: int, relaxed: bool, ends: bool) -> None:
        known = self.clocks.barrier(0, barrier)
        self.clocks.arrive(known, np.array([warp]), ends=int(ends), relaxed=relaxed)
        self.slow.arrive(warp, barrier, relaxed, ends)
        if ends:
            self.phases.append((known.component, known.phases, self.slow.phases[barrier][-1]))

    def _issue(self, warp: int, barrier: int) -> None:
        self.clocks.issue(self.clocks.barrier(0, barrier), np.array([warp]))
        self.slow.issue(warp, barrier)

    def _end(self, barrier: int) -> None:
        known = self.clocks.barrier(0, barrier)
        self.clocks.complete_phases(known, 1)
        self.slow.end(barrier)
        self.phases.append((known.component, known.phases, self.slow.phases[barrier][-1]))

    def _wait(self, warp: int, barrier: int, relaxed: bool) -> None:
        self.clocks.acquire(np.array([warp]), self.clocks.barrier(0, barrier).over, relaxed=relaxed)
        self.slow.wait(warp, barrier, relaxed)

    def _write(self, warp: int, place: int, relaxed: bool, joins: bool) -> None:
        self.flags.begin()
        self.flags.write("shared", place, np.array([warp]), relaxed=relaxed, joins=joins)
        self.slow.write(warp, place, relaxed, joins)

    def _read(self, warp: int, place: int, relaxed: bool) -> None:
        self.flags.begin()
        self.flags.read("shared", place, np.array([warp]), relaxed=relaxed)
        self.slow.read(warp, place, relaxed)

    def check(self) -> None:
        """Each access, and each phase, is before what each warp does now in both or in neither."""
        for row, numbers in ROWS.items():
            known = self.clocks.state[list(numbers)].max(axis=0)
            for warp in range(WARPS):
                before = self.slow.before(row, warp)
                for by, time, node in self.accesses:
                    if by != warp or row == "proxy":
                        assert (known[warp, by] >= time) == (node in before), (row, by, warp)
                for component, number, node in self.phases if row == "visible" else ():
                    assert (known[warp, component] >= number) == (node in before), (component, warp)


@given(st.lists(EVENTS, max_size=40))
@settings(max_examples=usual(150, 300), deadline=None)
def test_clocks_and_the_graph_agree(program: list[tuple[object, ...]]) -> None:
    both = Both()
    for kind, *rest in program:
        both.step(str(kind), *rest)
    for warp in range(WARPS):
        both.step("access", warp)
    both.check()


def test_agreement_after_each_event_of_long_programs() -> None:
    draw = np.random.default_rng(3)
    for _ in range(20):
        both = Both()
        for _ in range(60):
            warp, other, place = (int(one) for one in draw.integers(0, (WARPS, WARPS, 2)))
            first, second = (bool(one) for one in draw.integers(0, 2, 2))
            events = [
                ("access", warp), ("meet", sorted({warp, other})), ("fence", warp, first, second),
                ("fence_proxy", warp), ("arrive", warp, place, first, second), ("issue", warp, place),
                ("wait", warp, place, first), ("write", warp, place, first, second),
                ("read", warp, place, first), ("access", other),
            ]  # fmt: skip
            both.step(*events[int(draw.integers(len(events)))])
        both.check()


def test_an_acquire_orders_what_its_release_covers_and_no_more() -> None:
    clocks = Clocks(2, 2)
    first, second = np.array([0]), np.array([1])
    time = int(clocks.own(first)[0])
    clocks.arrive(clocks.barrier(0, 8), second, ends=1)
    clocks.acquire(second, clocks.barrier(0, 8).over)
    assert clocks.visible[1, 0] < time  # a barrier of one's own says nothing of others
    clocks.arrive(clocks.barrier(0, 0), first, ends=1)
    late = int(clocks.own(first)[0])
    clocks.acquire(second, clocks.barrier(0, 0).over)
    assert clocks.visible[1, 0] >= time
    assert clocks.visible[1, 0] < late


@pytest.mark.parametrize("count", [1, 7, 70])
def test_components_grow(count: int) -> None:
    clocks = Clocks(2, 1)
    for name in range(count):
        for cluster in (0, 1):
            clocks.arrive(clocks.barrier(cluster, name), np.array([cluster]), ends=1)
    assert clocks.components == 1 + count
    clocks.acquire(np.array([0]), clocks.barrier(0, count - 1).over)
    assert clocks.visible[0, count] == 1
    assert clocks.visible[1, count] == 0
