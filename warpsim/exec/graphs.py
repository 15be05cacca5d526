"""Graphs of work: captured from streams, or built node by node, and executed as often as is asked for.

Knows nodes and what each comes after; does not know what work is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .streams import Touches

Run = Callable[[Any], Touches]  # of the call (calls.py) that the work is done under


@dataclass(eq=False)
class GraphNode:
    """Work of a graph; without ``run`` it only orders."""

    label: str
    run: Run | None = None
    after: list[GraphNode] = field(default_factory=list)


@dataclass(eq=False)
class Graph:
    """Nodes in the order in which they were added; each comes after others of the same graph.

    ``kept`` are objects of the user with the references that the graph has.
    """

    nodes: list[GraphNode] = field(default_factory=list)
    kept: dict[Any, int] = field(default_factory=dict)

    def ordered(self) -> Iterator[GraphNode]:
        """Yield every node behind those that it comes after."""
        done, left = set[GraphNode](), list(self.nodes)
        while left:
            ready = [node for node in left if done.issuperset(node.after)]
            if not ready:
                return
            yield from ready
            done.update(ready)
            left = [node for node in left if node not in done]

    def copy(self) -> Graph:
        """Return the same nodes as they are now, for a graph that is executed."""
        made = {node: GraphNode(node.label, node.run) for node in self.nodes}
        for node, other in made.items():
            other.after = [made[before] for before in node.after]
        return Graph(list(made.values()))


@dataclass(eq=False)
class Capture:
    """What streams give to a graph, between the begin and the end of a capture.

    ``ends`` has, by stream, the nodes that its next node comes after; ``events`` those of events.
    """

    origin: int
    number: int
    graph: Graph = field(default_factory=Graph)
    handle: int = 0  # of the graph, once it is given
    ends: dict[int, list[GraphNode]] = field(default_factory=dict)
    events: dict[int, list[GraphNode]] = field(default_factory=dict)  # recorded meanwhile, by handle

    def add(self, stream: int, node: GraphNode) -> None:
        """Append a node to what a stream gives."""
        node.after = list(self.ends.get(stream, ()))
        self.graph.nodes.append(node)
        self.ends[stream] = [node]
