"""The happens-before relation of a wave, made from its events: barriers, mbarriers, operations, groups.

One observer, of which all rules ask "may these two accesses be in any order?". An access is at the time of
its warp (``clocks.own``); an access of a warp is before what another does where that knows of this time.
Lanes of a warp are ordered where they have met since (``lanes``, a ``LaneClocks``). Rules look before this
observer changes anything, and are notified of what they may want to know later (``Watcher``).

Orders are those of PTX ISA 9.1, section 8: .relaxed orders nothing without a fence, an acquire what the
release covers that it observes, and no more. Scopes are taken as large enough. Does not know
memory; fences and flags are flags.py's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...isa.layouts.tensor_memory import COLUMNS, LANES
from ...isa.warps import WARP
from ...machine.run.asynchronous import ASYNCHRONY
from ...machine.run.convergence import Warpgroups, warp_words, warps_by_cta, warps_of
from ...machine.run.events import CHUNK, BarrierArrival, GroupWait, Observer, helper
from ...machine.state.lanes import DivergentPath, Lanes, Mask, Values
from ...machine.state.side_tables import SideTable
from ...machine.state.spaces import Bytes, Offsets
from . import fast_path
from .clocks import BEGUN, VISIBLE, Barrier, Clock, Clocks, LaneClocks, Warps, joined
from .fast_path import UNKNOWN, Tiles
from .findings import Findings
from .order_kinds import kinds_of
from .shadow import Cells, Shadow, Shadows

if TYPE_CHECKING:
    from ...machine.opcodes.matrix.wgmma_groups import Verb
    from ...machine.run.events import Groups, Share, WgmmaStatement
    from ...machine.run.pending import Pending
    from ...machine.run.wave import Record, Wave

_WGMMA = "wgmma"  # the family of its groups
_CLUSTER = "the barrier of the cluster"  # a name of a barrier


# Of a kernel, by memory: the bytes of cells, as waves before left them.
_WIDTHS = SideTable[dict[str, Cells]](lambda _: {})


class Watcher:
    """What wants to know of mbarriers, as they are before or after an event."""

    def waited(self, wave: Wave, path: DivergentPath, warps: Warps, offset: int) -> None:
        """Warps have acquired the latest phase of an mbarrier."""

    def ended(self, wave: Wave, offset: int, record: Record, lane: int) -> None:
        """Take the end of a phase of an mbarrier, by what a lane has done there."""


class Order(Observer):
    """Keeps the clocks of a wave."""

    clocks: Clocks
    lanes: LaneClocks
    shadows: Shadows
    stride: int  # bytes of shared memory of a cluster
    committed: npt.NDArray[np.int64]  # by warpgroup: groups of wgmma

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.ready = False
        self.relaxed: dict[int, int] = {}  # by CTA: where it arrived last at its cluster's barrier, relaxed
        self.begun: dict[int, tuple[int, int, int]] = {}  # by mbarrier: warp, its time, statement
        self.everyone: dict[int, bool] = {}  # by barrier: whether it waits for all threads of a CTA
        self.gone: dict[int, Clock] = {}  # by CTA: what lanes that have exited release
        self.loaded: dict[int, dict[int, Clock]] = {}  # by warpgroup and group: known as operands were read
        self.arrivals: dict[Pending, Clock] = {}  # of operations: what each releases when it arrives
        self.asynchronous = False
        self.watchers: list[Watcher] = []
        empty = np.zeros((0, 0), np.int32)
        self.known: tuple[int, Cells | None, Clock] = -1, None, empty  # by all warps, in pages; of a version
        self._components: dict[bytes, npt.NDArray[np.int64]] = {}  # of the groups of warpgroups
        # The latest wgmma, its cells, and what may have to be said of these.
        self.looked: tuple[Share | None, Cells, Tiles] = None, np.zeros((0, 0), np.int64), UNKNOWN
        self._barriers: dict[int, Barrier] = {}  # mbarriers that were asked for, by offset
        self.left: dict[tuple[int, int], list[Clock]] = {}  # by CTA and barrier: of warps that arrived only

    def instrument(self, code: Sequence[Record]) -> Sequence[Record]:
        """Return the code as it is: whether it has asynchronous operations."""
        self.asynchronous = kinds_of(code).asynchronous
        return code

    @helper
    def prepare(self, wave: Wave) -> Clocks:
        """Return the clocks, made when first asked for."""
        if not self.ready:
            self.ready = True
            self.stride = wave.memories.shared_stride * wave.cluster.count
            self.committed = np.zeros(len(Warpgroups.of(wave).first), np.int64)
            self.clocks = Clocks(wave.lanes // WARP, wave.warps * wave.cluster.count)
            self.lanes = LaneClocks(self.clocks)
            self.shadows = Shadows(_WIDTHS.of(wave.entry), wave.warps)
        return self.clocks

    @helper
    def shadow_of(self, wave: Wave, memory: Bytes) -> Shadow | None:
        """Return the shadow of a memory of the wave; device memory and parameters have none."""
        if memory is wave.memories.shared:
            return self.shared(wave)
        if memory is wave.memories.local:
            self.prepare(wave)
            return self.shadows.at("local", memory.size, 4)
        return None

    @helper
    def shared(self, wave: Wave) -> Shadow:
        """Return the shadow of the shared memory of the wave."""
        self.prepare(wave)
        return self.shadows.at("shared", wave.memories.shared.size)

    @helper
    def tensor(self, wave: Wave) -> Shadow:
        """Return the shadow of the tensor memories of the wave."""
        self.prepare(wave)
        return self.shadows.at("tensor", 4 * LANES * COLUMNS * len(wave.ctas), 4)

    @helper
    def tiles(self, wave: Wave, share: Share) -> Cells:
        """Return ``(warpgroups, cells)``: the cells of shared memory that each warpgroup of a wgmma reads."""
        return self._looked_at(wave, share)[1]

    @helper
    def reads(self, wave: Wave, share: Share) -> Tiles:
        """Return what may have to be said of the cells that a wgmma reads."""
        return self._looked_at(wave, share)[2]

    @helper
    def _looked_at(self, wave: Wave, share: Share) -> tuple[Share | None, Cells, Tiles]:
        """Return a wgmma, its cells and what is known of them, for which several rules ask."""
        if self.looked[0] is not share:
            shadow, groups = self.shared(wave), Warpgroups.of(wave)
            first = groups.cta[share.groups] * wave.memories.shared_stride
            cells, _, pages = shadow.tiles(share.key, lambda: share.chunks * CHUNK + first[:, None])
            known = self.clocks.visible[groups.members(share.groups)].min(axis=1)
            tiles = fast_path.tiles(wave, shadow, known, cells)
            if tiles is UNKNOWN and not shadow.writes[:, pages].any():  # by warps, whatever they knew
                tiles = UNKNOWN._replace(generic=False, unordered=False)
            self.looked = share, cells, tiles
        return self.looked

    @helper
    def knows(self, wave: Wave, lane: int, offset: int) -> bool:
        """Return whether a lane knows that an mbarrier of its CTA has been initialised."""
        warp, time, _ = self.begun.get(offset, (lane // WARP, 0, 0))
        mine = lane // WARP
        if warp // wave.warps != mine // wave.warps:
            return True
        state, column = self.clocks.state, self.clocks.column[warp]
        return bool(state[VISIBLE, mine, column] >= time or state[BEGUN, mine, column] >= time)

    def barrier_at(self, offset: int) -> Barrier:
        """Return the mbarrier at an offset of the shared memory of the wave."""
        found = self._barriers.get(offset)
        if found is None:
            found = self._barriers[offset] = self.clocks.barrier(*divmod(offset, self.stride))
        return found

    def offset_of(self, cluster: int, component: int) -> int | None:
        """Return the offset of the mbarrier of a cluster that has a component."""
        for name, known in self.clocks.names.items():
            if known == component and isinstance(name, int):
                return cluster * self.stride + name
        return None

    # --- lanes of a warp ---

    def met(self, wave: Wave, lanes: Lanes, members: Values, orders: bool) -> None:
        """Lanes execute a statement together with the members of their warps."""
        self.prepare(wave)
        if lanes.count == wave.alive and not members.ndim:
            self.lanes.meet_all(orders=orders)
            return
        named = np.broadcast_to(members, lanes.mask.shape)
        alive = warp_words(wave.alive_mask)
        for value in np.unique(named[lanes.mask]):
            group = lanes.mask & (named == value)
            words = warp_words(group)
            whole = words == alive
            self.lanes.meet(np.flatnonzero(whole & (words != 0)), orders=orders)
            some = np.flatnonzero(~whole & (words != 0))
            if some.size:
                self.lanes.meet_some(some, group.reshape(-1, WARP)[some], orders=orders)

    @helper
    def converge(self, wave: Wave, mask: Mask) -> None:
        """All lanes of warps are ordered, or taken to be, where some are in a mask."""
        self.prepare(wave)
        if mask.all():
            self.lanes.meet_all(orders=True)
        else:
            self.lanes.meet(warps_of(mask), orders=True)

    def all_lanes_know(self, latest: npt.NDArray[np.int32]) -> bool:
        """Return whether lanes of all warps are ordered since times ``latest`` (rows of warps, pages)."""
        rows = latest[: self.clocks.of_cluster].max(axis=1, initial=0)
        since = self.lanes.ordered.since.reshape(-1, self.clocks.of_cluster)[:, : len(rows)]
        return bool((rows < since).all())

    def fresh(self, shadow: Shadow, latest: npt.NDArray[np.int32]) -> Mask:
        """Return ``(rows, pages)``: where warps have done what not all warps of their cluster know of."""
        latest = latest[: self.clocks.of_cluster]
        known = self._known_in(shadow)[: len(latest)]
        found: Mask = latest > known
        return found

    def _known_in(self, shadow: Shadow) -> npt.NDArray[np.int32]:
        """Return ``(components, pages)``: what all warps know of whose cluster is in a page; kept until one
        knows more.
        """
        visible, bounds = self.clocks.visible, shadow.owners(self.stride)
        version, of, known = self.known
        if of is not bounds or version != self.clocks.version:
            every = visible.reshape(-1, self.clocks.of_cluster, visible.shape[1]).min(axis=1)
            known = np.minimum.reduceat(np.concatenate([every, every[-1:]]), bounds)[::2].T
            self.known = self.clocks.version, bounds, known
        return known

    def unfenced(self, shadow: Shadow) -> bool:
        """Return whether warps may have stored since they have executed a proxy fence."""
        clocks, latest = self.clocks, shadow.writes.max(axis=1, initial=0)
        fenced = clocks.proxy[np.arange(clocks.warps), clocks.column].reshape(-1, clocks.of_cluster)
        return bool((latest[: clocks.of_cluster] > fenced.min(axis=0)[: len(latest)]).any())

    # --- barriers ---

    def arriving(self, wave: Wave, arrival: BarrierArrival) -> None:
        """Lanes come to a barrier: those that do not wait release what they know now."""
        clocks = self.prepare(wave)
        number, lanes = arrival.number, arrival.lanes
        self.everyone[number] = arrival.threads is None
        self.converge(wave, np.repeat(_whole_warps(wave, lanes.mask), WARP))
        if not arrival.waits:
            for cta, warps in warps_by_cta(wave, lanes.mask):
                self.left.setdefault((cta, number), []).append(clocks.release(warps))

    def meeting(self, wave: Wave, number: int, arrived: Mask, waited: Mask) -> None:
        """Order the lanes at a complete barrier of some CTAs: those that have arrived before those that have
        waited.
        """
        clocks = self.prepare(wave)
        if arrived is waited and not self.left and not self.gone:
            self._meet(wave, warps_of(waited))
            if wave.cluster.count == 1 and waited.all():
                self.shared(wave).forget_noted()  # every warp knows of all reads
        else:
            waiting = dict(warps_by_cta(wave, waited))
            gone = {cta: [clock] for cta, clock in self.gone.items()} if self.everyone.get(number) else {}
            for cta, _ in warps_by_cta(wave, arrived):
                released, warps = self.left.pop((cta, number), []), waiting.get(cta)
                if warps is not None:
                    clocks.meet(warps[None])
                    for clock in (*released, *gone.get(cta, ())):
                        clocks.acquire(warps, clock)
        self.converge(wave, waited)

    def _meet(self, wave: Wave, warps: Warps) -> None:
        """Warps meet in each of their CTAs."""
        counts = np.bincount(warps // wave.warps, minlength=len(wave.ctas))
        counts = counts[counts > 0]
        if (counts == counts[0]).all():
            self.clocks.meet(warps.reshape(len(counts), -1))
            return
        for part in np.split(warps, np.cumsum(counts)[:-1]):
            self.clocks.meet(part[None])

    def arrived(self, wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        """Lanes arrive at the barriers of their clusters."""
        clocks = self.prepare(wave)
        relaxed = "relaxed" in wave.code[path.pc].statement.modifiers
        for cluster, warps in self.clocks.by_cluster(warps_of(lanes.mask)):
            clocks.arrive(clocks.barrier(cluster, _CLUSTER), warps, ends=0, relaxed=relaxed)
        for cta in np.unique(wave.cta[lanes.index]).tolist():
            self.relaxed.pop(cta, None)
            if relaxed:
                self.relaxed[cta] = path.pc

    def cluster_barrier(self, wave: Wave, clusters: npt.NDArray[np.intp]) -> None:
        """Complete a phase of the barriers of some clusters."""
        clocks = self.prepare(wave)
        for cluster in clusters.tolist():
            clocks.complete_phases(clocks.barrier(cluster, _CLUSTER), 1)

    def cluster_met(self, wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        """Lanes go on behind the barriers of their clusters."""
        clocks = self.prepare(wave)
        for cluster, warps in self.clocks.by_cluster(warps_of(lanes.mask)):
            clocks.acquire(warps, clocks.barrier(cluster, _CLUSTER).over)
        self.converge(wave, lanes.mask)

    # --- mbarriers ---

    def initialised(self, wave: Wave, path: DivergentPath, lanes: Lanes, offsets: Offsets) -> None:
        """mbarriers begin."""
        clocks = self.prepare(wave)
        warps = lanes.index // WARP
        for warp, time, offset in zip(warps, clocks.own(warps).tolist(), offsets.tolist(), strict=True):
            clocks.begin(*divmod(offset, self.stride))
            self._barriers.pop(offset, None)
            self.begun[offset] = int(warp), time, path.pc

    def updated(
        self, wave: Wave, path: DivergentPath, lanes: Lanes, offsets: Offsets, ends: dict[int, int]
    ) -> None:
        """Lanes have arrived at mbarriers, some of whose phases are complete now."""
        clocks = self.prepare(wave)
        relaxed = "relaxed" in wave.code[path.pc].statement.modifiers
        at = _warps_at(lanes.index, offsets)
        for offset, count in ends.items():
            barrier = self.barrier_at(offset)
            clocks.arrive(barrier, at[offset], ends=count, relaxed=relaxed)  # of one cluster, as its memory
            for watcher in self.watchers if count else ():
                last = int(lanes.index[offsets == offset][-1])
                watcher.ended(wave, offset, wave.code[path.pc], last)

    def acquired(self, wave: Wave, path: DivergentPath, lanes: Lanes, offsets: Offsets) -> None:
        """Lanes have observed that the latest phases of mbarriers are complete."""
        clocks = self.prepare(wave)
        relaxed = "relaxed" in wave.code[path.pc].statement.modifiers
        for offset, warps in sorted(_warps_at(lanes.index, offsets).items()):
            clocks.acquire(warps, self.barrier_at(offset).over, relaxed=relaxed)
            for watcher in self.watchers:
                watcher.waited(wave, path, warps, offset)
        self.converge(wave, lanes.mask)

    # --- operations ---

    def issued(self, wave: Wave, path: DivergentPath, pending: Pending) -> None:
        """Issue an operation that will signal mbarriers; its arrival makes visible what its warp knows now,
        and that its group is complete.
        """
        if pending.signals:
            clocks, warps = self.prepare(wave), np.array([pending.lane // WARP])
            for offset, _ in pending.signals:
                clocks.issue(self.barrier_at(offset), warps)
        if pending.arrivals:
            clocks = self.prepare(wave)
            component = clocks.group_of(pending.group, pending.lane)
            released = clocks.release(np.array([pending.lane // WARP]))
            released[:, component] = np.maximum(released[:, component], pending.number)
            self.arrivals[pending] = released

    def bytes_came(self, wave: Wave, pending: Pending, offset: int, over: bool) -> None:
        """Complete the signal of an operation to its mbarrier, or its arrival there."""
        clocks, barrier = self.prepare(wave), self.barrier_at(offset)
        if pending in self.arrivals:
            barrier.coming = joined(self.arrivals[pending], barrier.coming)
        clocks.complete_phases(barrier, int(over))
        for watcher in self.watchers if over else ():
            watcher.ended(wave, offset, pending.record, pending.lane)

    def drained(self, wave: Wave, wait: GroupWait) -> None:
        """Lanes have waited for their groups."""
        clocks = self.prepare(wave)
        if self.asynchronous and wait.family in clocks.groups:
            size = clocks.of_cluster * WARP
            counted = wait.lanes.index[clocks.groups[wait.family][wait.lanes.index % size] > 0]
            complete = ASYNCHRONY.of(wave).closed(wave, wait.family) - wait.most
            clocks.complete_groups(wait.family, counted, counted // WARP, complete[counted])

    def wgmma(self, wave: Wave, path: DivergentPath, statement: WgmmaStatement, share: Share) -> None:
        """Warpgroups execute a statement together, which begins when they have loaded its registers."""
        self.wgmma_order(wave, path, share.groups, "fence", 0)
        for group in share.groups.tolist() if statement.sources else ():
            warps = Warpgroups.of(wave).members(np.array([group]))[0]
            number = int(self.committed[group]) + 1
            self.loaded.setdefault(group, {})[number] = self.clocks.release(warps)

    def wgmma_order(self, wave: Wave, path: DivergentPath, groups: Groups, verb: Verb, most: int) -> None:
        """Warpgroups execute a statement together; a warpgroup that has waited knows that its warps have
        come.
        """
        clocks = self.prepare(wave)
        if len(groups) == len(self.committed):
            self.lanes.meet_all(orders=False)
        else:
            self.lanes.meet(Warpgroups.of(wave).members(groups).reshape(-1), orders=False)
        if verb == "commit":
            self.committed[groups] += 1
        if verb != "wait":
            return
        warps, complete = Warpgroups.of(wave).members(groups), np.maximum(self.committed[groups] - most, 0)
        first = Warpgroups.of(wave).first[groups]
        clocks.complete_groups(_WGMMA, first[:, None], warps, complete[:, None])
        for group, own, number in zip(groups.tolist(), warps, complete.tolist(), strict=True):
            loaded = self.loaded.get(group, {})
            for known in [step for step in loaded if step <= number]:
                clocks.acquire(own, loaded.pop(known))
        clocks.happen_together(warps)

    @helper
    def groups_of(self, wave: Wave, groups: Groups) -> npt.NDArray[np.int64]:
        """Return the component of the wgmma-groups of each warpgroup (``Clocks.groups_of``)."""
        key = groups.tobytes()
        found = self._components.get(key)
        if found is None:
            found = self._components[key] = self.clocks.groups_of(_WGMMA, Warpgroups.of(wave).first[groups])
        return found

    @helper
    def group_of(self, wave: Wave, group: int) -> int:
        """Return the component of the wgmma-groups of a warpgroup."""
        return self.clocks.group_of(_WGMMA, int(Warpgroups.of(wave).first[group]))

    def exit(self, wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        """Lanes have exited: a barrier of their CTA no longer waits for them."""
        clocks = self.prepare(wave)
        self.shadows.keep()
        for cta, warps in warps_by_cta(wave, lanes.mask):
            if wave.alive_of_cta[cta]:
                released = clocks.release(warps)
                self.gone[cta] = joined(self.gone.get(cta), released)


def _warps_at(lanes: npt.NDArray[np.intp], offsets: Offsets) -> dict[int, Warps]:
    """Return the warps of lanes, which ascend, by the offset that each lane has; each warp once."""
    warps = lanes // WARP
    new = warps[1:] != warps[:-1]
    if not new.all():
        if not (new | (offsets[1:] == offsets[:-1])).all():  # lanes of a warp differ
            return {offset: np.unique(warps[offsets == offset]) for offset in np.unique(offsets).tolist()}
        first = np.concatenate(([True], new))
        warps, offsets = warps[first], offsets[first]
    return {offset: warps[offsets == offset] for offset in dict.fromkeys(offsets.tolist())}


def _whole_warps(wave: Wave, mask: Mask) -> Mask:
    """Return ``(warps,)``: of which warps all lanes that have not exited are in a mask."""
    here = mask.reshape(-1, WARP)
    found: Mask = (here == wave.alive_mask.reshape(-1, WARP)).all(axis=1) & here.any(axis=1)
    return found
