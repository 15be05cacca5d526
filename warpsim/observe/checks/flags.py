"""Fences, and flags in memory: what strong writes release, and strong reads that observe them acquire.

A release pattern is a write with .release, or a relaxed write behind a fence; an acquire pattern a read with
.acquire, or a relaxed read before a fence. They synchronise where the read observes the write, or a
read-modify-write that follows it (PTX ISA 9.1, sections 8.7 to 8.9). Memory is sequentially consistent here,
so a read observes the latest write. Clocks of other clusters have other columns: a flag from one of these
passes on what the own cluster has released through global memory, which is all that may have come back.
Scopes are taken as large enough. A warp is one thread here: its lanes count as ordered by a fence where the
code has any strong access, by which they may have been, and by an acquire.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...isa.warps import WARP
from ...machine.run.convergence import warps_of
from ...machine.run.events import Observer
from ...machine.state.lanes import DivergentPath, Lanes
from ...machine.state.memory_access import MemoryAccess
from ...machine.state.side_tables import SideTable
from .clocks import Clock, Clocks, Warps, joined
from .findings import Findings
from .order import Order
from .order_kinds import ACQUIRES, FLAGS, RELAXED, RELEASES, kinds_of

if TYPE_CHECKING:
    from ...machine.run.wave import Record, Wave

Owner = tuple[int, int]  # a wave and a cluster


@dataclass(eq=False)
class Flag:
    """What has been released into a place, by owner, and the warps that have observed it since."""

    released: dict[Owner, Clock] = field(default_factory=dict)
    observers: set[tuple[int, int, bool]] = field(default_factory=set)  # wave, warp, relaxed


class Flags:
    """The flags that warps of a wave use; those in global memory are ``shared`` by all waves of a launch."""

    def __init__(self, clocks: Clocks, wave: int, shared: dict[int, Flag], *, follows: bool) -> None:
        self.clocks, self.wave, self.follows = clocks, wave, follows
        self.places: dict[str, dict[int, Flag]] = {"shared": {}, "global": shared}
        self.exported: dict[int, Clock] = {}  # by cluster: what it has released through global memory
        self.begin()

    def begin(self) -> None:
        """Begin a statement: clocks of its places that are the same are joined and acquired once.

        Its lanes are threads of their own, so that none knows what another has just released.
        """
        self._exported = dict(self.exported)
        self._released: dict[bytes, Clock] = {}  # by warps that have acquired nothing since
        self._acquired: dict[bytes, list[Clock]] = {}
        self._joined: dict[tuple[int, int], tuple[Clock, Clock, Clock]] = {}  # two clocks, and both

    def write(self, space: str, offset: int, warps: Warps, *, relaxed: bool, joins: bool) -> None:
        """Warps of a cluster write a place; ``joins`` says that what was released there before stays."""
        known = self.places[space]
        if relaxed and not self.follows and not self.clocks.published[:, warps].any():
            if not joins:
                known.pop(offset, None)
            return
        flag = known.get(offset)
        if flag is None or not joins:
            flag = known[offset] = Flag()
        cluster = int(warps[0]) // self.clocks.of_cluster
        owner = self.wave, cluster
        key = warps.tobytes()
        released = self._released.get(key)
        if released is None:
            released = self._released[key] = self.clocks.release(warps, relaxed=relaxed)
            if space == "global":
                self.exported[cluster] = joined(self.exported.get(cluster), released)
        flag.released[owner] = self._maximum(flag.released.get(owner), released)
        flag.observers.clear()

    def _maximum(self, first: Clock | None, other: Clock) -> Clock:
        """Return the maximum of two clocks."""
        if first is None:
            return other
        key = id(first), id(other)  # of clocks that are kept here
        if key not in self._joined:
            self._joined[key] = first, other, joined(first, other)
        return self._joined[key][2]

    def read(self, space: str, offset: int, warps: Warps, *, relaxed: bool) -> None:
        """Record that warps of a cluster read a place, and acquire what is released there."""
        flag = self.places[space].get(offset)
        if flag is None:
            return
        new = [warp for warp in warps.tolist() if (self.wave, warp, relaxed) not in flag.observers]
        if not new:
            return
        flag.observers |= {(self.wave, warp, relaxed) for warp in new}
        cluster = int(warps[0]) // self.clocks.of_cluster
        own = flag.released.get((self.wave, cluster))
        if len(flag.released) > (own is not None) and cluster in self._exported:
            own = self._maximum(own, self._exported[cluster])
        if own is not None:
            self._acquire(np.array(new), own, relaxed=relaxed)

    def _acquire(self, warps: Warps, clock: Clock, *, relaxed: bool) -> None:
        """Let warps acquire a clock, unless they have in this statement."""
        known = self._acquired.setdefault(warps.tobytes(), [])
        if not any(each is clock for each in known):
            known.append(clock)
            self._released.pop(warps.tobytes(), None)
            self.clocks.acquire(warps, clock, relaxed=relaxed)


@dataclass(eq=False)
class _Launch:
    """What the waves of a launch have in common: flags in global memory, and the number of waves."""

    flags: dict[int, Flag] = field(default_factory=dict)
    waves: int = 0


def _launch(findings: Findings) -> _Launch:
    return _Launch()


_LAUNCH = SideTable(_launch)


class FlagOrder(Observer):
    """Orders warps by their fences and flags; stands behind ``Order``, whose clocks it changes."""

    def __init__(self, findings: Findings, order: Order) -> None:
        self.findings, self.order = findings, order
        self.uses_flags = self.some_arrive = self.has_strong = False
        self.flags: Flags | None = None

    def instrument(self, code: Sequence[Record]) -> Sequence[Record]:
        """Return the code as it is: whether it has flags, or what acts like them."""
        kinds = kinds_of(code)
        self.some_arrive, self.has_strong = kinds.of_some, kinds.strong
        self.uses_flags = kinds.flags or kinds.of_some
        return code

    def fence(self, wave: Wave, path: DivergentPath, lanes: Lanes, words: tuple[str, ...]) -> None:
        """Apply a fence, of the proxy or of memory."""
        clocks, warps = self.order.prepare(wave), warps_of(lanes.mask)
        if "proxy" in words:
            if words[1].startswith("async") and "global" not in words:
                clocks.fence_proxy(warps)
            return
        if "mbarrier_init" in words:
            clocks.fence_begun(warps)
        else:
            clocks.fence(warps, acquire="release" not in words, release="acquire" not in words)
        if self.has_strong:
            self.order.converge(wave, lanes.mask)

    def load(self, wave: Wave, access: MemoryAccess) -> None:
        """Observe the flag of a strong load."""
        self._flag(wave, access, reads=True, writes=False)

    def store(self, wave: Wave, access: MemoryAccess) -> None:
        """Set the flag of a strong store."""
        self._flag(wave, access, reads=False, writes=True)

    def atomic(self, wave: Wave, access: MemoryAccess) -> None:
        """Observe and set the flag of an atomic; a reduction only sets it."""
        reads = wave.code[access.path.pc].statement.opcode == "atom"
        self._flag(wave, access, reads=reads, writes=True)

    def _flag(self, wave: Wave, access: MemoryAccess, *, reads: bool, writes: bool) -> None:
        statement = wave.code[access.path.pc].statement
        if not self.uses_flags or statement.opcode not in FLAGS or access.memory is wave.memories.local:
            return
        words, is_atomic = statement.modifiers, statement.opcode in ("atom", "red")
        space = "shared" if access.memory is wave.memories.shared else "global"
        acquires, releases = not ACQUIRES.isdisjoint(words), not RELEASES.isdisjoint(words)
        if not (acquires or releases or is_atomic or not RELAXED.isdisjoint(words)):
            return
        flags = self._flags(wave)
        flags.begin()
        for offset, warps in self._parts(wave, access, apart=is_atomic):
            if reads:
                flags.read(space, offset, warps, relaxed=not acquires)
            if writes:
                flags.write(space, offset, warps, relaxed=not releases, joins=is_atomic)
        if acquires:
            self.order.converge(wave, access.lanes.mask)

    def _flags(self, wave: Wave) -> Flags:
        """Return the flags of the wave, made when first asked for."""
        if self.flags is None:
            launch = _LAUNCH.of(self.findings)
            launch.waves += 1
            clocks = self.order.prepare(wave)
            self.flags = Flags(clocks, launch.waves, launch.flags, follows=self.some_arrive)
        return self.flags

    def _parts(self, wave: Wave, access: MemoryAccess, *, apart: bool) -> Iterator[tuple[int, Warps]]:
        """Yield each place with the warps of a cluster that access it, each by itself where ``apart``."""
        clocks = self.order.prepare(wave)
        for offset, every in of_each_place(access.offsets, access.lane_of // WARP):
            for warps in every[:, None] if apart else (every,):
                for _, part in clocks.by_cluster(warps):
                    yield offset, part


def of_each_place(offsets: npt.NDArray[np.int64], warps: Warps) -> list[tuple[int, Warps]]:
    """Return the places that words lie in, each with the warps of its words, in the order of the words."""
    found: dict[int, dict[int, None]] = {}
    for offset, warp in zip(offsets.tolist(), warps.tolist(), strict=True):
        found.setdefault(offset, {})[warp] = None
    return [(offset, np.array([*known])) for offset, known in found.items()]
