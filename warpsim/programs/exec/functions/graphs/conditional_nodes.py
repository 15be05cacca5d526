"""Conditional nodes of graphs: a value on the device says which graph of a node is done, and how often.

The handle of a condition is the address of its value, which cudaGraphSetConditional of device code writes
(clients/device_functions.py). Knows conditions; graphs.py has what they decide.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from ...calls import Call, Handle, Pointer, Unsigned, row
from ...clients.client_memory import DEVICE
from ...cuda_structures import ConditionalNodeParameters
from ...error_codes import CudaError
from ...graphs import Branching, Conditional, Graph, GraphNode, NodeKind, node_of_condition
from ...streams import Touches

_BYTES = 4  # of a value
_ASSIGN_DEFAULT = 1  # of the flags of a condition
_SIZES = {Branching.IF: (1, 2), Branching.WHILE: (1, 1), Branching.SWITCH: (1, 1 << 16)}  # graphs of a node


@dataclass(eq=False)
class DeviceCondition:
    """A value in device memory; with ``assigns`` each launch of the graph begins with ``default``."""

    address: int
    graph: Graph
    default: int
    assigns: bool
    used: bool = False

    def value(self, later: Call) -> int:
        """Return the value as it is now."""
        return int(later.process.bytes_at(self.address, _BYTES).view(np.uint32)[0])

    def touches(self) -> Touches:
        """Return the bytes that a node reads."""
        return Touches(reads=((self.address, self.address + _BYTES),))

    def assign(self, later: Call) -> Touches:
        """Set the default."""
        later.process.bytes_at(self.address, _BYTES).view(np.uint32)[0] = self.default
        return Touches(writes=self.touches().reads)


@row("cudaGraphConditionalHandleCreate")
def runtime_condition_create(
    call: Call, result: Pointer, graph: Handle, default: Unsigned, flags: Unsigned
) -> None:
    """Make a condition of a graph."""
    if flags & ~_ASSIGN_DEFAULT:
        raise CudaError("InvalidValue", f"{call.name}: flags {flags:#x}")
    process = call.process
    found = process.held(graph, Graph, "graph")
    address = process.allocate(_BYTES, "condition", DEVICE).address
    process.bytes_at(address, _BYTES)[:] = 0
    process.memory.written(process.memory.allocation_at(address))
    process.handles[address] = DeviceCondition(address, found, default, bool(flags))
    call.put(result, "Q", address)


@row("cuGraphConditionalHandleCreate", "cudaGraphConditionalHandleCreate_v2")
def condition_create(
    call: Call, result: Pointer, graph: Handle, context: Handle, default: Unsigned, flags: Unsigned
) -> None:
    """Make a condition of a graph, for a context."""
    runtime_condition_create(call, result, graph, default, flags)


def conditional_node(call: Call, graph: Graph, place: int) -> GraphNode:
    """Return a node by cudaConditionalNodeParams, and give where the handles of its graphs are."""
    handle, kind, size = call.structure(ConditionalNodeParameters, place)
    condition = call.process.handles.get(handle)
    if not isinstance(condition, DeviceCondition) or condition.graph is not graph or condition.used:
        raise CudaError(
            "InvalidValue", f"{call.name}: {handle:#x} is not a condition of the graph that is free"
        )
    branching = next((each for each in Branching if each == kind), None)
    least, most = (1, 0) if branching is None else _SIZES[branching]
    if branching is None or not least <= size <= most:
        raise CudaError("InvalidValue", f"{call.name}: {size} graphs of a conditional node of type {kind}")
    bodies = [Graph() for _ in range(size)]
    handles = struct.pack(f"<{size}Q", *(call.process.handle(body) for body in bodies))
    call.put(place + 16, "Q", call.process.kept_words(call.connection.channel, handles))
    condition.used = True
    return node_of_condition(Conditional(branching, condition, bodies))


def defaults(graph: Graph) -> GraphNode | None:
    """Return the work that a launch of a graph begins with, where conditions have defaults."""
    found = [
        node.fields.condition
        for each in graph.every()
        for node in each.nodes
        if node.kind is NodeKind.CONDITIONAL and node.fields.condition.assigns
    ]

    def run(later: Call) -> Touches:
        works = [condition.assign(later) for condition in found]
        return Touches(writes=tuple(stretch for work in works for stretch in work.writes))

    return GraphNode("defaults of conditions", run, kind=NodeKind.FILL) if found else None
