"""Flags in memory: what strong writes release, and strong reads that observe them acquire.

A release pattern is a write with .release, or a relaxed write behind a fence; an acquire pattern a read with
.acquire, or a relaxed read before a fence. They synchronise where the read observes the write, or a
read-modify-write that follows it (PTX ISA 9.1, sections 8.7 to 8.9). Memory is sequentially consistent here,
so a read observes the latest write. Clocks of other clusters have other columns: a flag from one of these
passes on what the own cluster has released through global memory, which is all that may have come back. Does
not know statements; scopes are taken as large enough.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from .clocks import Clock, Clocks, Warps

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
        released = self.clocks.release(warps, relaxed=relaxed)
        cluster = int(warps[0]) // self.clocks.of_cluster
        owner = self.wave, cluster
        flag.released[owner] = joined(flag.released.get(owner), released)
        flag.observers.clear()
        if space == "global":
            self.exported[cluster] = joined(self.exported.get(cluster), released)

    def read(self, space: str, offset: int, warps: Warps, *, relaxed: bool) -> bool:
        """Record that warps of a cluster read a place; return whether they observe anything new."""
        flag = self.places[space].get(offset)
        if flag is None:
            return False
        new = [warp for warp in warps.tolist() if (self.wave, warp, relaxed) not in flag.observers]
        if not new:
            return False
        flag.observers |= {(self.wave, warp, relaxed) for warp in new}
        cluster = int(warps[0]) // self.clocks.of_cluster
        own = flag.released.get((self.wave, cluster))
        if len(flag.released) > (own is not None) and cluster in self.exported:
            own = joined(own, self.exported[cluster])
        if own is not None:
            self.clocks.acquire(np.array(new), own, relaxed=relaxed)
        return own is not None


def joined(first: Clock | None, other: Clock) -> Clock:
    """Return the maximum of two clocks, of which the first may have fewer components."""
    if first is None:
        return other
    found = other.copy()
    found[:, : first.shape[1]] = np.maximum(found[:, : first.shape[1]], first)
    return found


def of_each_place(offsets: npt.NDArray[np.int64], warps: Warps) -> list[tuple[int, Warps]]:
    """Return the places that words lie in, each with the warps of its words, in the order of the words."""
    found: dict[int, dict[int, None]] = {}
    for offset, warp in zip(offsets.tolist(), warps.tolist(), strict=True):
        found.setdefault(offset, {})[warp] = None
    return [(offset, np.array([*known])) for offset, known in found.items()]
