"""Operations that a lane has issued and that complete later: bulk and tensor copies, st.async, wgmma.

An opcode makes a ``Pending`` and issues it; the schedule decides when it reads its source and completes:

    "program", "earliest"    at once
    "latest"                 when lanes wait for it, or no path can run; the newest first
    "random:7"               in between, each at a moment and in an order that the seed decides

Completing writes memory, then signals mbarriers. Groups ("bulk", "wgmma") are counted lane by lane, as in
PTX: ``commit`` closes a group, ``drain`` waits for all but the latest. Knows when; does not know what
operations do. PTX ISA 9.1, sections 8.9.1.1 "asynchronous operations" and 9.7.9.25.1 "completion mechanisms".

To add a kind: prepare everything that can fail, then ``issue(wave, path, Pending(...))``. ``read`` is called
once, before ``complete``, and keeps what it read; leave it out where both happen at once. Observers are
notified of ``issued``, ``fetched``, ``completed``, ``drained`` and ``unfinished`` (events.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from random import Random
from typing import Literal

import numpy as np
import numpy.typing as npt

from ...isa.warps import WARP
from ..state.lanes import DivergentPath, Lanes
from ..state.side_tables import SideTable
from .barriers.mbarrier import arrive_once, awaited, complete_tx
from .events import GroupWait, Observer, observers_of
from .pending import Batch, Pending
from .wave import Wave

Moment = Literal["program", "earliest", "latest", "random"]
AT_ONCE: tuple[Moment, ...] = ("program", "earliest")  # when operations complete where they are issued
Counts = npt.NDArray[np.int64]


@dataclass(eq=False)
class Asynchrony:
    """What is in flight in a wave, and when it completes; ``random`` decides where the moment is "random"."""

    moment: Moment = "program"
    random: Random = field(default_factory=lambda: Random(0))
    flying: dict[Pending, None] = field(default_factory=dict)  # in the order in which they were issued
    committed: dict[str, Counts] = field(default_factory=dict)  # by family: groups that each lane has closed
    issued: Counter[int] = field(default_factory=Counter)  # by lane: operations
    tossed: tuple[int, bool] = (-1, False)  # the statement that issued last, and whether at once

    def closed(self, wave: Wave, family: str) -> Counts:
        """``(lanes,)``: how many groups of a family each lane has closed."""
        found = self.committed.get(family)
        if found is None:
            found = self.committed[family] = np.zeros(wave.lanes, np.int64)
        return found

    # --- moments ---

    def at_once(self, wave: Wave) -> bool:
        """Whether an operation that is issued now completes now; all those of a statement do, or none."""
        if self.moment != "random":
            return self.moment != "latest"
        if self.tossed[0] != wave.scheduler.statements:
            self.tossed = wave.scheduler.statements, self.random.random() < _SOON
        return self.tossed[1]

    def pass_time(self, wave: Wave) -> None:
        """Complete what the schedule completes now, if anything; called between statements."""
        if self.moment == "random":
            chance = self.random.random()
            if chance < 1.5 * _SOON:
                (finish_together if chance < _SOON else fetch_together)(wave, self._random_subset(wave))
        elif all(path.turns >= _SPINNING for path in wave.scheduler.paths):
            self.resolve_stall(wave)

    def _kinds(self, wave: Wave, pendings: Iterable[Pending]) -> list[list[Pending]]:
        """Operations that clusters have in common: those that the same lane issued at the same turn."""
        lanes = wave.cluster.count * wave.warps * WARP
        kinds: dict[tuple[int, int], list[Pending]] = {}
        for pending in pendings:
            kinds.setdefault((pending.lane % lanes, pending.turn), []).append(pending)
        return list(kinds.values())

    def _random_subset(self, wave: Wave) -> list[Pending]:
        """Any number of what flies, in any order, but the same in all clusters."""
        kinds = self._kinds(wave, self.flying)
        return list(chain(*self.random.sample(kinds, self.random.randint(1, len(kinds)))))

    def in_order(self, wave: Wave, pendings: Sequence[Pending]) -> list[Pending]:
        """In the order in which they complete where all may: the newest first, or any."""
        if self.moment != "random":
            return [*reversed(pendings)]
        kinds = self._kinds(wave, pendings)
        return list(chain(*self.random.sample(kinds, len(kinds))))

    def resolve_stall(self, wave: Wave) -> bool:
        """Complete what lanes wait for, in every cluster, or any operation where none wait; return False
        where nothing is in flight.
        """
        if not self.flying:
            return False
        wanted = awaited(wave)
        order = self.in_order(wave, list(self.flying))
        known = [pending for pending in order if wanted.intersection(pending.barriers)]
        first = [*_first_of_each_cluster(wave, known or order)]
        if not known:
            finish_together(wave, first)
        for pending in first if known else ():
            self._wake(wave, next(offset for offset in pending.barriers if offset in wanted), known)
        for path in wave.scheduler.paths:
            path.turns = 0
        return True

    def _wake(self, wave: Wave, barrier: int, known: Sequence[Pending]) -> None:
        """Operations that signal an mbarrier complete, in this order, until no lane waits for it."""
        signalling = [pending for pending in known if barrier in pending.barriers]
        for pending in signalling:
            finish(wave, pending)
            if len(signalling) > 1 and barrier not in awaited(wave):
                return


def _at_once(wave: Wave) -> Asynchrony:
    return Asynchrony()


ASYNCHRONY = SideTable(_at_once)  # set by a launch whose schedule has another moment


def _first_of_each_cluster(wave: Wave, pendings: Sequence[Pending]) -> Iterable[Pending]:
    lanes = wave.cluster.count * wave.warps * WARP
    return {pending.lane // lanes: pending for pending in reversed(pendings)}.values()


_SPINNING = 512  # turns of a loop after which a path is taken to wait for something
_SOON = 0.25  # the chance that something completes where the schedule may change warps


def issue(wave: Wave, path: DivergentPath, *pendings: Pending) -> None:
    """Operations of a statement begin; they complete now or later, as the schedule has it."""
    state, observers = ASYNCHRONY.of(wave), observers_of(wave)
    closed = {group: state.closed(wave, group) for group in {pending.group for pending in pendings} if group}
    for pending in pendings:
        if pending.group:
            pending.number = int(closed[pending.group][pending.lane])
        pending.turn = state.issued[pending.lane]
        state.issued[pending.lane] += 1
        state.flying[pending] = None
        observers.issued(wave, path, pending)
    if state.at_once(wave):
        finish_together(wave, pendings)


def fetch(wave: Wave, pending: Pending) -> None:
    """Read the source of an operation, once."""
    if pending.fetched:
        return
    for earlier in _with_predecessors(wave, pending.after) if pending.after else ():
        finish(wave, earlier)
    pending.fetched = True
    if pending.read is not None:
        pending.read(wave)
        observers_of(wave).fetched(wave, pending)


def finish(wave: Wave, pending: Pending) -> None:
    """Complete an operation, once: write its memory and signal its mbarriers."""
    if pending.done:
        return
    fetch(wave, pending)
    pending.done = True
    del ASYNCHRONY.of(wave).flying[pending]
    pending.complete(wave)
    wave.scheduler.rounds = 0  # lanes may have waited for this
    observers_of(wave).completed(wave, pending)
    if pending.signals:
        for offset, count in pending.signals:
            complete_tx(wave, offset, count, pending)
    for offset in pending.arrivals:
        arrive_once(wave, offset, pending)


# --- several at once ----------------------------------------------------------------------------------


def _with_predecessors(wave: Wave, pendings: Iterable[Pending]) -> list[Pending]:
    """Operations that have not completed, and all that come before them, in the order of their issue."""
    left = [pending for pending in pendings if not pending.done]
    if len(left) < 2 and not any(pending.after for pending in left):
        return left
    found = set[Pending]()
    while left:
        pending = left.pop()
        if not pending.done and pending not in found:
            found.add(pending)
            left += pending.after
    return [pending for pending in ASYNCHRONY.of(wave).flying if pending in found] if found else []


def finish_together(wave: Wave, pendings: Sequence[Pending]) -> None:
    """Operations complete at the same time, in this order."""
    batches: dict[Batch, list[Pending]] = {}
    for pending in _with_predecessors(wave, [pending for pending in pendings if pending.batch]):
        if pending.batch:
            batches.setdefault(pending.batch, []).append(pending)
    for batch, members in batches.items():
        batch(wave, members)
    for pending in pendings:
        finish(wave, pending)


def fetch_together(wave: Wave, pendings: Sequence[Pending]) -> None:
    """Read the sources of operations, in this order."""
    finish_together(wave, [before for pending in pendings for before in pending.after])
    for pending in pendings:
        fetch(wave, pending)


# --- groups ------------------------------------------------------------------------------------------


def commit(wave: Wave, lanes: Lanes, family: str) -> None:
    """Close a group of a family: what these lanes have issued since the last group belongs to it."""
    counts = ASYNCHRONY.of(wave).closed(wave, family)
    ASYNCHRONY.of(wave).committed[family] = counts + lanes.mask


def drain(
    wave: Wave, path: DivergentPath, lanes: Lanes, family: str, most: int = 0, *, reads: bool = False
) -> Sequence[Pending]:
    """Operations of all but the latest ``most`` closed groups of these lanes complete; with ``reads`` their
    sources are read, no more. Returns those that did so only now.
    """
    state = ASYNCHRONY.of(wave)
    before = state.closed(wave, family) - most
    asked = [
        pending
        for pending in state.flying
        if pending.group == family and lanes.mask[pending.lane] and pending.number < before[pending.lane]
    ]
    asked = state.in_order(wave, asked)
    (fetch_together if reads else finish_together)(wave, asked)
    if observers_of(wave).hear(Observer.drained):
        wait = GroupWait(path=path, lanes=lanes, family=family, most=most, reads=reads)
        observers_of(wave).drained(wave, wait)
    return asked


def finish_all(wave: Wave) -> None:
    """Complete what is in flight when every lane has exited, newest first; notify observers."""
    left = list(ASYNCHRONY.of(wave).flying)[::-1]
    if left:
        observers_of(wave).unfinished(wave, left)
    finish_together(wave, left)
