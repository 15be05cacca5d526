"""Happens-before as a graph of events, looked through edge by edge: a slow reference for vector clocks.

Nodes are events of warps in the order in which they happen, and complete phases of mbarriers. There are edges
from each event of a warp to its next one, and from what releases to what acquires. An access is before
another one if there is a path. Shares no code with warpsim/observe/checks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Source = tuple[int | None, int]  # what a write releases: a node visible to others, and the write itself


@dataclass(eq=False)
class SlowOrder:
    """``strong`` and ``weak`` are the edges by which all is visible, and those by which it has happened."""

    kinds: list[str] = field(default_factory=list)
    strong: list[set[int]] = field(default_factory=list)  # by node: nodes before it
    weak: list[set[int]] = field(default_factory=list)
    init: list[set[int]] = field(default_factory=list)
    last: dict[int, int] = field(default_factory=dict)  # by warp: its latest node
    fences: dict[int, int] = field(default_factory=dict)  # by warp: its latest fence that releases
    init_fences: dict[int, int] = field(default_factory=dict)
    observed: dict[int, list[tuple[list[int], list[int]]]] = field(default_factory=dict)
    arrivals: dict[int, list[tuple[int | None, int, int | None]]] = field(default_factory=dict)
    over: dict[int, list[tuple[int | None, int, int | None]]] = field(default_factory=dict)
    phases: dict[int, list[int]] = field(default_factory=dict)  # by mbarrier: nodes
    flags: dict[int, list[tuple[int | None, int, int | None]]] = field(default_factory=dict)

    def node(self, warp: int | None, kind: str) -> int:
        number = len(self.kinds)
        self.kinds.append(kind)
        for edges in (self.strong, self.weak, self.init):
            edges.append(set())
        if warp is not None:
            if warp in self.last:
                self.strong[number].add(self.last[warp])
            self.last[warp] = number
        return number

    def _source(self, warp: int, node: int, relaxed: bool) -> tuple[int | None, int, int | None]:
        """The node that is visible to those who acquire, the write, and the node of initialisations."""
        if not relaxed:
            return node, node, node
        known = [one for one in (self.fences.get(warp), self.init_fences.get(warp)) if one is not None]
        return self.fences.get(warp), node, max(known, default=None)

    def _observe(
        self, warp: int, node: int, sources: list[tuple[int | None, int, int | None]], relaxed: bool
    ) -> None:
        seen = [one for one, _, _ in sources if one is not None]
        begun = [one for _, _, one in sources if one is not None]
        self.weak[node] |= {one for _, one, _ in sources}
        if relaxed:
            self.observed.setdefault(warp, []).append((seen, begun))
        else:
            self.strong[node] |= set(seen)
            self.init[node] |= set(begun)

    # --- events ---

    def access(self, warp: int) -> int:
        return self.node(warp, "access")

    def meet(self, warps: list[int]) -> None:
        before = [self.node(one, "arrive") for one in warps]
        for one in warps:
            self.strong[self.node(one, "meet")] |= set(before)

    def happen(self, warps: list[int]) -> None:
        before = [self.node(one, "arrive") for one in warps]
        for one in warps:
            self.weak[self.node(one, "happen")] |= set(before)

    def fence(self, warp: int, acquire: bool, release: bool) -> None:
        node = self.node(warp, "fence")
        if acquire:
            for seen, begun in self.observed.get(warp, ()):
                self.strong[node] |= set(seen)
                self.init[node] |= set(begun)
        if release:
            self.fences[warp] = node

    def fence_init(self, warp: int) -> None:
        self.init_fences[warp] = self.node(warp, "init")

    def fence_proxy(self, warp: int) -> None:
        self.node(warp, "proxy")

    def arrive(self, warp: int, barrier: int, relaxed: bool, ends: bool) -> None:
        node = self.node(warp, "arrive")
        self.arrivals.setdefault(barrier, []).append(self._source(warp, node, relaxed))
        if ends:
            self.end(barrier)

    def issue(self, warp: int, barrier: int) -> None:
        node = self.node(warp, "issue")
        self.arrivals.setdefault(barrier, []).append((None, node, None))

    def end(self, barrier: int) -> None:
        node = self.node(None, "phase")
        self.phases.setdefault(barrier, []).append(node)
        self.arrivals.setdefault(barrier, []).append((node, node, node))
        self.over[barrier] = list(self.arrivals[barrier])

    def wait(self, warp: int, barrier: int, relaxed: bool) -> None:
        self._observe(warp, self.node(warp, "wait"), self.over.get(barrier, []), relaxed)

    def write(self, warp: int, place: int, relaxed: bool, joins: bool) -> None:
        source = self._source(warp, self.node(warp, "write"), relaxed)
        self.flags[place] = [*(self.flags.get(place, ()) if joins else ()), source]

    def read(self, warp: int, place: int, relaxed: bool) -> None:
        self._observe(warp, self.node(warp, "read"), self.flags.get(place, []), relaxed)

    # --- questions ---

    def before(self, row: str, warp: int) -> set[int]:
        """The nodes that are before what a warp does next; of "proxy", with a proxy fence on the way."""
        edges = {
            "visible": [self.strong],
            "happened": [self.strong, self.weak],
            "begun": [self.strong, self.init],
        }
        if warp not in self.last:
            return set()
        if row == "proxy":
            visible = self._reach(self.last[warp], [self.strong])
            fences = [one for one in visible if self.kinds[one] == "proxy"]
            return set().union(*(self._reach(one, [self.strong]) for one in fences))
        return self._reach(self.last[warp], edges[row])

    def _reach(self, node: int, edges: list[list[set[int]]]) -> set[int]:
        found, left = {node}, [node]
        while left:
            here = left.pop()
            for one in set().union(*(kind[here] for kind in edges)) - found:
                found.add(one)
                left.append(one)
        return found
