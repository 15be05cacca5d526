"""Graphs of work: captured from streams, or built node by node, and executed as often as is asked for.

Knows nodes and what each comes after; does not know what work is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Protocol

from .streams import Touches

Run = Callable[[Any], Touches]  # of the call (calls.py) that the work is done under


class NodeKind(IntEnum):
    """What a node does, as cudaGraphNodeType numbers it."""

    KERNEL = 0
    COPY = 1
    FILL = 2
    HOST = 3
    GRAPH = 4
    EMPTY = 5
    WAIT = 6
    RECORD = 7
    ALLOCATE = 10
    FREE = 11
    CONDITIONAL = 13


@dataclass(eq=False)
class GraphNode:
    """Work of a graph; without ``run`` it only orders. ``fields`` are what the work was made of."""

    label: str
    run: Run | None = None
    after: list[GraphNode] = field(default_factory=list)
    kind: NodeKind = NodeKind.EMPTY
    fields: Any = None
    enabled: bool = True

    def take(self, other: GraphNode) -> None:
        """Do the work of another node."""
        self.label, self.run, self.kind, self.fields = other.label, other.run, other.kind, other.fields


@dataclass(eq=False)
class Graph:
    """Nodes in the order in which they were added; each comes after others of the same graph.

    ``kept`` are objects of the user with the references that the graph has.
    """

    nodes: list[GraphNode] = field(default_factory=list)
    kept: dict[Any, int] = field(default_factory=dict)
    origins: dict[GraphNode, GraphNode] = field(default_factory=dict)  # of a copy, by the nodes copied

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
        """Return the same nodes as they are now, with copies of graphs in them, and the same references."""
        made = {node: GraphNode(node.label, enabled=node.enabled) for node in self.nodes}
        for node, other in made.items():
            other.take(_COPIES[node.kind](node.fields.copy()) if node.kind in _COPIES else node)
            other.after = [made[before] for before in node.after]
        return Graph(list(made.values()), dict(self.kept), made)

    def every(self) -> Iterator[Graph]:
        """Yield the graph, and those in its nodes."""
        yield self
        for node in self.nodes:
            if node.kind is NodeKind.GRAPH:
                yield from node.fields.every()
            elif node.kind is NodeKind.CONDITIONAL:
                for body in node.fields.bodies:
                    yield from body.every()

    def edges(self) -> list[tuple[GraphNode, GraphNode]]:
        """Return the pairs of which the second node comes after the first."""
        return [(before, node) for node in self.nodes for before in node.after]

    def shape(self) -> list[tuple[NodeKind, list[int]]]:
        """Return kinds and dependencies by the places of nodes: what an update must not change."""
        places = {node: place for place, node in enumerate(self.nodes)}
        return [(node.kind, [places[before] for before in node.after]) for node in self.nodes]


def node_of_graph(inner: Graph) -> GraphNode:
    """Return a node that does the work of a graph."""

    return GraphNode(
        "a graph", lambda later: _union(_run_node(inner, later)), kind=NodeKind.GRAPH, fields=inner
    )


def _run_node(inner: Graph, later: Any) -> list[Touches]:
    """Do the work of a graph in a node; return what it touches."""
    return [node.run(later) for node in inner.ordered() if node.run and node.enabled]


def _union(works: Iterable[Touches]) -> Touches:
    """Return what some works touch, each stretch once."""
    found = Touches()
    for work in works:
        found = Touches(*(tuple(dict.fromkeys((*a, *b))) for a, b in zip(found, work, strict=True)))
    return found


class Branching(IntEnum):
    """What a condition decides, as cudaGraphConditionalNodeType numbers it."""

    IF = 0
    WHILE = 1
    SWITCH = 2


class Condition(Protocol):
    """A value that device code sets: functions/graphs/conditional_nodes.py has it."""

    def value(self, later: Any) -> int:
        """Return it as it is now."""

    def touches(self) -> Touches:
        """Return what is read of it."""


@dataclass(eq=False)
class Conditional:
    """Graphs of which a condition says which is done, and how often."""

    branching: Branching
    condition: Condition
    bodies: list[Graph]

    def copy(self) -> Conditional:
        """Return the same with copies of the graphs."""
        return Conditional(self.branching, self.condition, [body.copy() for body in self.bodies])

    def chosen(self, later: Any) -> Iterator[Graph]:
        """Yield the graphs to be done, in turn."""
        value = self.condition.value(later)
        if self.branching is Branching.WHILE:
            while self.condition.value(later):
                yield self.bodies[0]
        else:
            place = int(not value) if self.branching is Branching.IF else value
            yield from self.bodies[place : place + 1]


def node_of_condition(inner: Conditional) -> GraphNode:
    """Return a node that does what a condition says."""

    def run(later: Any) -> Touches:
        found = inner.condition.touches()
        for body in inner.chosen(later):
            found = _union([found, *_run_node(body, later)])
        return found

    label = f"a conditional node ({inner.branching.name.lower()})"
    return GraphNode(label, run, kind=NodeKind.CONDITIONAL, fields=inner)


_COPIES: dict[NodeKind, Callable[[Any], GraphNode]] = {
    NodeKind.GRAPH: node_of_graph,
    NodeKind.CONDITIONAL: node_of_condition,
}


@dataclass(eq=False)
class Capture:
    """What streams give to a graph, between the begin and the end of a capture.

    ``ends`` has, by stream, the nodes that its next node comes after; ``events`` those of events.
    """

    origin: int
    number: int
    graph: Graph = field(default_factory=Graph)
    handle: int = 0  # of the graph, once it is given
    first: int = 0  # of the graph's nodes that are captured; it may have had others
    broken: bool = False  # by a call that no capture allows
    ends: dict[int, list[GraphNode]] = field(default_factory=dict)
    events: dict[int, list[GraphNode]] = field(default_factory=dict)  # recorded meanwhile, by handle

    def add(self, stream: int, node: GraphNode) -> None:
        """Append a node to what a stream gives."""
        node.after = list(self.ends.get(stream, ()))
        self.graph.nodes.append(node)
        self.ends[stream] = [node]
