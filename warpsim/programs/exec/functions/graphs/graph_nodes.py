"""Nodes of graphs: added and changed, by what they do.

A node's work is made of a structure of parameters: cudaKernelNodeParams, cudaMemcpy3DParms, cudaMemsetParams,
cudaHostNodeParams, or a single handle. The driver's structures differ in copies alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from ...calls import Call, Handle, Int, Pointer, Size, Unsigned, row
from ...clients.client_launches import LaunchRequest, parameter_bytes
from ...cuda_structures import (
    ATTRIBUTE_BYTES,
    DriverKernelNodeParameters,
    FillParameters,
    HostNodeParameters,
    KernelNodeParameters,
)
from ...error_codes import CudaError
from ...graphs import Graph, GraphNode, NodeKind, node_of_graph
from ...memory_transfers import Plane, Rows
from ...streams import Event, Touches
from ..launch_calls import launch_work
from ..memory.copy_calls import box_at, box_work, copy_work, driver_box_at, fill_work, symbol_place
from ..memory.pool_calls import allocated_in_graph, freed_in_graph
from ..registration import kernel_of
from ..stream_calls import check_function
from .conditional_nodes import conditional_node
from .graph_calls import graph_of, has_edge_data, made_of, node_handle, node_of, nodes_at
from .node_reading import held_node
from .user_objects import copied_with_objects

Maker = Callable[[Call, int], GraphNode]


class NewNode(NamedTuple):
    """The parameters of cudaGraphAdd...Node, and up to two words of it."""

    result: Pointer
    graph: Handle
    before: Pointer
    number: Size
    fifth: Size
    sixth: Size


def _add(call: Call, asked: NewNode, node: GraphNode) -> None:
    """Add a node behind others of a graph."""
    found = graph_of(call, asked.graph)
    node.after = nodes_at(call, asked.before, asked.number)
    found.nodes.append(node)
    call.put(asked.result, "Q", node_handle(call, node))


# --- what structures of parameters say -------------------------------------------------------------


def _kernel(call: Call, parameters: int) -> GraphNode:
    """Return a launch: cudaKernelNodeParams, which CUDA_KERNEL_NODE_PARAMS begins with."""
    asked = call.structure(KernelNodeParameters, parameters)
    function = asked.function
    if not function and call.name.startswith("cu") and not call.name.startswith("cuda"):
        function = call.structure(DriverKernelNodeParameters, parameters).kernel
    kernel = kernel_of(call, function)
    return launch_work(
        LaunchRequest(
            kernel=kernel,
            function=function,
            grid=asked.grid,
            block=asked.block,
            parameters=parameter_bytes(kernel, call.read, asked.arguments),
            shared_bytes=asked.shared,
        )
    )


def _copy(call: Call, parameters: int) -> GraphNode:
    box = box_at if call.name.startswith("cuda") else driver_box_at
    return box_work(call.name, box(call, parameters))


def _fill(call: Call, parameters: int) -> GraphNode:
    """Return a fill: cudaMemsetParams."""
    target, pitch, value, size, width, height = call.structure(FillParameters, parameters)
    if size not in (1, 2, 4):
        raise CudaError("InvalidValue", f"{call.name}: elements of {size} bytes: 1, 2 or 4")
    pattern = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
    rows = Rows(target=Plane(address=target, pitch=pitch), pattern=pattern, count=width, rows=height)
    if rows.past > 1 << 64:
        raise CudaError("InvalidValue", f"{call.name}: {height} rows of {width * size} bytes, pitch {pitch}")
    return fill_work(f"{call.name}({target:#x}, {width * height * size})", rows)


def _host(call: Call, parameters: int) -> GraphNode:
    """Return a function of the host: cudaHostNodeParams."""
    function, data = call.structure(HostNodeParameters, parameters)
    check_function(call, function)

    def run(later: Call) -> Touches:
        later.connection.call_host(function, data)
        return Touches()

    return GraphNode(f"host function {function:#x}", run, kind=NodeKind.HOST, fields=(function, data))


def _child(call: Call, handle: int) -> GraphNode:
    """Return the work of a copy of a graph."""
    return node_of_graph(copied_with_objects(graph_of(call, handle)))


def _event(kind: NodeKind) -> Maker:
    """Return what makes a node that records an event, or waits for it."""

    def made(call: Call, handle: int) -> GraphNode:
        call.process.held(handle, Event, "event")

        def run(later: Call) -> Touches:
            if kind is NodeKind.RECORD:
                later.process.held(handle, Event, "event").record(dict(later.process.order.host))
            return Touches()

        return GraphNode(f"{kind.name.lower()} of an event", run, kind=kind, fields=(handle,))

    return made


_MAKERS: dict[NodeKind, Maker] = {
    NodeKind.KERNEL: _kernel,
    NodeKind.COPY: _copy,
    NodeKind.FILL: _fill,
    NodeKind.HOST: _host,
    NodeKind.GRAPH: _child,
    NodeKind.WAIT: _event(NodeKind.WAIT),
    NodeKind.RECORD: _event(NodeKind.RECORD),
}


# --- nodes are added -------------------------------------------------------------------------------


@row("cudaGraphAddEmptyNode", "cuGraphAddEmptyNode")
def add_empty(call: Call, asked: NewNode) -> None:
    """Add a node that only orders."""
    _add(call, asked, GraphNode("nothing"))


_BY_NAME = {
    "KernelNode": NodeKind.KERNEL,
    "MemcpyNode": NodeKind.COPY,
    "MemsetNode": NodeKind.FILL,
    "HostNode": NodeKind.HOST,
    "ChildGraphNode": NodeKind.GRAPH,
    "EventRecordNode": NodeKind.RECORD,
    "EventWaitNode": NodeKind.WAIT,
}


def _kind(call: Call) -> NodeKind:
    """Return the kind of node that a function is named after."""
    return next(kind for name, kind in _BY_NAME.items() if name in call.name)


@row(
    *("cudaGraphAddKernelNode", "cuGraphAddKernelNode", "cuGraphAddKernelNode_v2", "cudaGraphAddMemcpyNode"),
    *("cuGraphAddMemcpyNode", "cudaGraphAddMemsetNode", "cuGraphAddMemsetNode", "cudaGraphAddHostNode"),
    *("cuGraphAddHostNode", "cudaGraphAddChildGraphNode", "cuGraphAddChildGraphNode"),
    *("cudaGraphAddEventRecordNode", "cuGraphAddEventRecordNode", "cudaGraphAddEventWaitNode"),
    "cuGraphAddEventWaitNode",
)
def add_node(call: Call, asked: NewNode) -> None:
    """Add a node by a structure of parameters, or by a handle."""
    _add(call, asked, _MAKERS[_kind(call)](call, asked.fifth))


@row("cudaGraphAddNode", "cudaGraphAddNode_v2", "cuGraphAddNode", "cuGraphAddNode_v2", "cuGraphAddNode_v3")
def add_any(call: Call, asked: NewNode) -> None:
    """Add a node by cudaGraphNodeParams: its kind, and from byte 16 on its parameters."""
    shifted = has_edge_data(call)
    number, parameters = (asked.fifth, asked.sixth) if shifted else (asked.number, asked.fifth)
    node = _generic_node(call, parameters, graph_of(call, asked.graph))
    _add(call, asked._replace(number=number), node)


def _generic_node(call: Call, parameters: int, graph: Graph | None = None) -> GraphNode:
    """Return a node by cudaGraphNodeParams; only one that is added to a graph may be conditional."""
    (kind,) = call.get(parameters, "i")
    place = parameters + 16
    if kind == NodeKind.CONDITIONAL and graph is not None:
        return conditional_node(call, graph, place)
    if kind == NodeKind.EMPTY:
        return GraphNode("nothing")
    if kind == NodeKind.COPY:
        return _copy(call, place + 16)  # behind flags, and the context of the driver
    if kind in (NodeKind.GRAPH, NodeKind.WAIT, NodeKind.RECORD):
        (place,) = call.get(place, "Q")
    if kind == NodeKind.ALLOCATE:
        return allocated_in_graph(call, place)
    if kind == NodeKind.FREE:
        return freed_in_graph(*call.get(place, "Q"))
    if kind not in _MAKERS:
        raise CudaError("NotSupported", f"{call.name}: nodes of type {kind} are not there")
    return _MAKERS[NodeKind(kind)](call, place)


@row("cudaGraphAddMemAllocNode", "cuGraphAddMemAllocNode")
def add_allocation(call: Call, asked: NewNode) -> None:
    """Add memory that a graph has, whose address is that of every launch."""
    _add(call, asked, allocated_in_graph(call, asked.fifth))


@row("cudaGraphAddMemFreeNode", "cuGraphAddMemFreeNode")
def add_free(call: Call, asked: NewNode) -> None:
    """Add the end of a use of memory that a graph has."""
    if not asked.fifth:
        raise CudaError("InvalidValue", f"{call.name}: a free of address 0")
    _add(call, asked, freed_in_graph(asked.fifth))


class CopyNode(NamedTuple):
    """The parameters of cudaGraphAddMemcpyNode1D."""

    new: NewNode
    size: Size
    kind: Int


@row("cudaGraphAddMemcpyNode1D")
def add_memcpy(call: Call, asked: CopyNode) -> None:
    """Add a copy."""
    _add(call, asked.new, copy_work(call.name, asked.new.fifth, asked.new.sixth, asked.size))


class SymbolNode(NamedTuple):
    """The parameters of cudaGraphAddMemcpyNodeToSymbol; from a symbol, it comes second."""

    new: NewNode
    size: Size
    offset: Size
    kind: Int


@row("cudaGraphAddMemcpyNodeToSymbol", "cudaGraphAddMemcpyNodeFromSymbol")
def add_symbol_copy(call: Call, asked: SymbolNode) -> None:
    """Add a copy to a variable, or from it."""
    _add(call, asked.new, _symbol_copy(call, asked.new.fifth, asked.new.sixth, (asked.size, asked.offset)))


def _symbol_copy(call: Call, target: int, source: int, part: tuple[int, int]) -> GraphNode:
    size, offset = part
    if "ToSymbol" in call.name:
        target = symbol_place(call, target, size, offset)
    else:
        source = symbol_place(call, source, size, offset)
    return copy_work(call.name, target, source, size)


# --- nodes are changed -----------------------------------------------------------------------------


@row(
    *("cudaGraphKernelNodeSetParams", "cuGraphKernelNodeSetParams", "cuGraphKernelNodeSetParams_v2"),
    *("cudaGraphMemcpyNodeSetParams", "cuGraphMemcpyNodeSetParams", "cudaGraphMemsetNodeSetParams"),
    *("cuGraphMemsetNodeSetParams", "cudaGraphHostNodeSetParams", "cuGraphHostNodeSetParams"),
    *("cudaGraphEventRecordNodeSetEvent", "cuGraphEventRecordNodeSetEvent"),
    *("cudaGraphEventWaitNodeSetEvent", "cuGraphEventWaitNodeSetEvent"),
)
def set_parameters(call: Call, node: Handle, parameters: Pointer) -> None:
    """Change the work of a node."""
    _change(call, node_of(call, node), _MAKERS[_kind(call)](call, parameters))


@row(
    *("cudaGraphExecKernelNodeSetParams", "cuGraphExecKernelNodeSetParams"),
    *("cuGraphExecKernelNodeSetParams_v2", "cudaGraphExecMemcpyNodeSetParams"),
    *("cuGraphExecMemcpyNodeSetParams", "cudaGraphExecMemsetNodeSetParams"),
    *("cuGraphExecMemsetNodeSetParams", "cudaGraphExecHostNodeSetParams", "cuGraphExecHostNodeSetParams"),
    *("cudaGraphExecChildGraphNodeSetParams", "cuGraphExecChildGraphNodeSetParams"),
    *("cudaGraphExecEventRecordNodeSetEvent", "cuGraphExecEventRecordNodeSetEvent"),
    *("cudaGraphExecEventWaitNodeSetEvent", "cuGraphExecEventWaitNodeSetEvent"),
)
def exec_set_parameters(call: Call, executable: Handle, node: Handle, parameters: Pointer) -> None:
    """Change a node of a graph that can be launched; the graph that it was made of stays as it is."""
    _change(call, made_of(call, executable, node), _MAKERS[_kind(call)](call, parameters))


@row("cudaGraphNodeSetParams", "cuGraphNodeSetParams", "cuGraphNodeSetParams_v2")
def set_any(call: Call, node: Handle, parameters: Pointer) -> None:
    """Change the work of a node by cudaGraphNodeParams."""
    _change(call, node_of(call, node), _generic_node(call, parameters))


@row("cudaGraphExecNodeSetParams", "cuGraphExecNodeSetParams")
def exec_set_any(call: Call, executable: Handle, node: Handle, parameters: Pointer) -> None:
    """Change a node of a graph that can be launched by cudaGraphNodeParams."""
    _change(call, made_of(call, executable, node), _generic_node(call, parameters))


def _change(call: Call, node: GraphNode, work: GraphNode) -> None:
    if node.kind is not work.kind:
        raise CudaError("InvalidValue", f"{call.name}: the node is {node.kind.name}, not {work.kind.name}")
    attributes = node.fields.attributes if node.kind is NodeKind.KERNEL else {}
    node.take(_with_attributes(work, attributes) if attributes else work)


def _with_attributes(work: GraphNode, attributes: Mapping[int, bytes]) -> GraphNode:
    """Return a launch with attributes: parameters of a node are set without them."""
    return launch_work(replace(work.fields, attributes=attributes))


class CopyChange(NamedTuple):
    """The parameters of cudaGraphMemcpyNodeSetParams1D, behind a node."""

    target: Pointer
    source: Pointer
    size: Size
    fourth: Size


@row("cudaGraphMemcpyNodeSetParams1D")
def set_copy(call: Call, node: Handle, asked: CopyChange) -> None:
    """Change a copy."""
    _change(call, node_of(call, node), copy_work(call.name, asked.target, asked.source, asked.size))


@row("cudaGraphExecMemcpyNodeSetParams1D")
def exec_set_copy(call: Call, executable: Handle, node: Handle, asked: CopyChange) -> None:
    """Change a copy of a graph that can be launched."""
    work = copy_work(call.name, asked.target, asked.source, asked.size)
    _change(call, made_of(call, executable, node), work)


@row("cudaGraphMemcpyNodeSetParamsToSymbol", "cudaGraphMemcpyNodeSetParamsFromSymbol")
def set_symbol_copy(call: Call, node: Handle, asked: CopyChange) -> None:
    """Change a copy of a variable."""
    work = _symbol_copy(call, asked.target, asked.source, (asked.size, asked.fourth))
    _change(call, node_of(call, node), work)


@row("cudaGraphExecMemcpyNodeSetParamsToSymbol", "cudaGraphExecMemcpyNodeSetParamsFromSymbol")
def exec_set_symbol_copy(call: Call, executable: Handle, node: Handle, asked: CopyChange) -> None:
    """Change a copy of a variable, of a graph that can be launched."""
    work = _symbol_copy(call, asked.target, asked.source, (asked.size, asked.fourth))
    _change(call, made_of(call, executable, node), work)


@row("cudaGraphKernelNodeSetAttribute", "cuGraphKernelNodeSetAttribute")
def set_node_attribute(call: Call, node: Handle, attribute: Unsigned, value: Pointer) -> None:
    """Set an attribute of a launch: nothing depends on others than those of clusters and cooperation."""
    found = held_node(call, node, NodeKind.KERNEL)
    content = call.read(value, ATTRIBUTE_BYTES)
    found.take(_with_attributes(found, {**found.fields.attributes, attribute: content}))


@row("cudaGraphKernelNodeCopyAttributes", "cuGraphKernelNodeCopyAttributes")
def copy_node_attributes(call: Call, target: Handle, source: Handle) -> None:
    """Give a launch the attributes of another."""
    found, other = (held_node(call, node, NodeKind.KERNEL) for node in (target, source))
    found.take(_with_attributes(found, other.fields.attributes))
