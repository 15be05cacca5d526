"""Graphs: made, copied, compared, instantiated, launched; their nodes and edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .....base.files.archives import write_lines
from ...calls import Call, Handle, Pointer, Size, Unsigned, row
from ...cuda_structures import InstantiateParameters, UpdateResult
from ...error_codes import CudaError
from ...graphs import Graph, GraphNode, NodeKind
from ...processes import working_folder
from .conditional_nodes import defaults
from .user_objects import copied_with_objects, release_all

_TOPOLOGY_CHANGED, _KIND_CHANGED = 2, 3  # of cudaGraphExecUpdateResult


@dataclass(eq=False)
class Executable:
    """A graph that can be launched; ``made`` has its nodes by those of the graph that it was made of."""

    graph: Graph
    made: dict[GraphNode, GraphNode]
    number: int = 0
    flags: int = 0


def has_edge_data(call: Call) -> bool:
    """Return whether a function of graphs has the data of edges among its parameters."""
    return call.of_runtime_13 or call.name.endswith(("_v2", "_v3"))


def graph_of(call: Call, handle: int) -> Graph:
    """Return a graph by its handle. Raises CudaError."""
    found: Graph = call.process.held(handle, Graph, "graph")
    return found


def node_of(call: Call, handle: int) -> GraphNode:
    """Return a node by its handle. Raises CudaError."""
    found: GraphNode = call.process.held(handle, GraphNode, "node of a graph")
    return found


def nodes_at(call: Call, place: int, number: int) -> list[GraphNode]:
    """Return the nodes whose handles lie in the client."""
    handles = call.get(place, f"{number}Q") if number else ()
    return [node_of(call, handle) for handle in handles]


def node_handle(call: Call, node: GraphNode) -> int:
    """Return the handle of a node."""
    handles = call.process.handles
    known = next((handle for handle, value in handles.items() if value is node), None)
    return call.process.handle(node) if known is None else known


def graph_handle(call: Call, graph: Graph) -> int:
    """Return the handle of a graph."""
    handles = call.process.handles
    known = next((handle for handle, value in handles.items() if value is graph), None)
    return call.process.handle(graph) if known is None else known


def owner_of(call: Call, node: GraphNode) -> Graph:
    """Return the graph that a node is in. Raises CudaError."""
    for value in call.process.handles.values():
        if isinstance(value, Graph) and node in value.nodes:
            return value
    raise CudaError("InvalidValue", f"{call.name}: {node.label} is in no graph")


def _give(call: Call, nodes: Sequence[GraphNode], place: int, number: int) -> None:
    """Give handles of nodes, as many as there is room for, or how many there are."""
    if place:
        (room,) = call.get(number, "Q")
        for index, node in enumerate(nodes[:room]):
            call.put(place + 8 * index, "Q", node_handle(call, node))
    call.put(number, "Q", len(nodes))


@row("cudaGraphCreate", "cuGraphCreate")
def graph_create(call: Call, result: Pointer, flags: Unsigned) -> None:
    """Make a graph without nodes."""
    call.put(result, "Q", call.process.handle(Graph()))


@row("cudaGraphDestroy", "cuGraphDestroy")
def graph_destroy(call: Call, graph: Handle) -> None:
    """Forget a graph."""
    release_all(call, call.process.drop(graph, Graph, "graph"))


@row("cudaGraphGetId", "cuGraphGetId")
def graph_number(call: Call, graph: Handle, result: Pointer) -> None:
    """Give a number that no other graph has: its handle, which fits."""
    graph_of(call, graph)
    call.put(result, "I", graph & 0xFFFF_FFFF)


@row("cudaGraphExecGetId", "cuGraphExecGetId")
def exec_number(call: Call, executable: Handle, result: Pointer) -> None:
    """Give the number of an executable graph."""
    call.process.held(executable, Executable, "executable graph")
    call.put(result, "I", executable & 0xFFFF_FFFF)


@row("cudaGraphNodeGetLocalId", "cuGraphNodeGetLocalId")
def node_number(call: Call, node: Handle, result: Pointer) -> None:
    """Give a number that no other node of the graph has."""
    node_of(call, node)
    call.put(result, "I", node & 0xFFFF_FFFF)


@row("cudaGraphNodeGetToolsId", "cuGraphNodeGetToolsId")
def node_number_for_tools(call: Call, node: Handle, result: Pointer) -> None:
    """Give a number that no other node has."""
    node_of(call, node)
    call.put(result, "Q", node)


@row("cudaGraphNodeGetContainingGraph", "cuGraphNodeGetContainingGraph")
def graph_of_node(call: Call, node: Handle, result: Pointer) -> None:
    """Give the graph that a node is in."""
    call.put(result, "Q", graph_handle(call, owner_of(call, node_of(call, node))))


@row("cudaGraphInstantiate", "cudaGraphInstantiateWithFlags", "cuGraphInstantiateWithFlags")
def graph_instantiate(call: Call, result: Pointer, graph: Handle, flags: Size) -> None:
    """Make a graph that can be launched, of the nodes as they are now."""
    found = call.process.held(graph, Graph, "graph")
    copied = copied_with_objects(found)
    executable = Executable(copied, dict(copied.origins), flags=flags)
    executable.number = call.process.handle(executable)
    call.put(result, "Q", executable.number)


@row("cudaGraphInstantiateWithParams", "cuGraphInstantiateWithParams")
def graph_instantiate_with(call: Call, result: Pointer, graph: Handle, parameters: Pointer) -> None:
    """Make the same, and write to cudaGraphInstantiateParams that nothing went wrong."""
    asked = call.structure(InstantiateParameters, parameters)
    graph_instantiate(call, result, graph, asked.flags)
    call.put_structure(parameters, asked._replace(error_node=0, result=0))


@row("cudaGraphExecDestroy", "cuGraphExecDestroy")
def exec_destroy(call: Call, executable: Handle) -> None:
    """Forget a graph that can be launched."""
    release_all(call, call.process.drop(executable, Executable, "executable graph").graph)


@row("cudaGraphLaunch", "cuGraphLaunch")
def graph_launch(call: Call, executable: Handle, stream: Handle) -> None:
    """Do the work of a graph as work of a stream."""
    found = call.process.held(executable, Executable, "executable graph")
    begin = defaults(found.graph)
    if begin is not None:
        call.process.submit(call, call.stream(stream), begin)
    call.process.run_graph(call, call.stream(stream), found.graph)


@row("cudaGraphUpload", "cuGraphUpload")
def graph_upload(call: Call, executable: Handle, stream: Handle) -> None:
    """Nothing is to be prepared."""
    call.process.held(executable, Executable, "executable graph")


@row("cudaGraphExecUpdate", "cuGraphExecUpdate_v2")
def exec_update(call: Call, executable: Handle, graph: Handle, result: Pointer, old: Pointer) -> None:
    """Take the work of the nodes of another graph of the same shape, and its objects."""
    found = call.process.held(executable, Executable, "executable graph")
    other = graph_of(call, graph)
    if other.shape() != found.graph.shape():
        same = [after for _, after in other.shape()] == [after for _, after in found.graph.shape()]
        if result:
            call.put_structure(result, UpdateResult(_KIND_CHANGED if same else _TOPOLOGY_CHANGED))
        raise CudaError("GraphExecUpdateFailure", f"{call.name}: kinds or dependencies of nodes have changed")
    copied = copied_with_objects(other)
    release_all(call, found.graph)
    found.graph = copied
    found.made |= copied.origins
    if result:
        call.put_structure(result, UpdateResult(0))


@row("cudaGraphExecGetFlags", "cuGraphExecGetFlags")
def exec_flags(call: Call, executable: Handle, result: Pointer) -> None:
    """Give the flags of an executable graph."""
    call.put(result, "Q", call.process.held(executable, Executable, "executable graph").flags)


@row("cudaGraphClone", "cuGraphClone")
def graph_clone(call: Call, result: Pointer, graph: Handle) -> None:
    """Copy a graph."""
    found = graph_of(call, graph)
    call.put(result, "Q", call.process.handle(copied_with_objects(found)))


@row("cudaGraphNodeFindInClone", "cuGraphNodeFindInClone")
def find_in_clone(call: Call, result: Pointer, node: Handle, graph: Handle) -> None:
    """Give the node of a copied graph that was made of another."""
    found = graph_of(call, graph).origins.get(node_of(call, node))
    if found is None:
        raise CudaError("InvalidValue", f"{call.name}: the graph is not a copy of that node's")
    call.put(result, "Q", node_handle(call, found))


@row("cudaGraphGetNodes", "cuGraphGetNodes")
def get_nodes(call: Call, graph: Handle, nodes: Pointer, number: Pointer) -> None:
    """Give the nodes of a graph, or how many there are."""
    _give(call, graph_of(call, graph).nodes, nodes, number)


@row("cudaGraphGetRootNodes", "cuGraphGetRootNodes")
def root_nodes(call: Call, graph: Handle, nodes: Pointer, number: Pointer) -> None:
    """Give the nodes that come after no other."""
    _give(call, [node for node in graph_of(call, graph).nodes if not node.after], nodes, number)


def _zero_edges(call: Call, place: int, number: int) -> None:
    """Write the data of ordinary edges: zero."""
    if place:
        call.write(place, bytes(8 * number))


@row("cudaGraphGetEdges", "cudaGraphGetEdges_v2", "cuGraphGetEdges", "cuGraphGetEdges_v2")
def get_edges(
    call: Call, graph: Handle, first: Pointer, last: Pointer, fourth: Pointer, fifth: Pointer
) -> None:
    """Give pairs of nodes of which the second comes after the first."""
    data, number = (fourth, fifth) if has_edge_data(call) else (0, fourth)
    pairs = graph_of(call, graph).edges()
    if first and last:
        (room,) = call.get(number, "Q")
        _zero_edges(call, data, min(room, len(pairs)))
        _give(call, [pair[0] for pair in pairs], first, number)
        call.put(number, "Q", room)
        _give(call, [pair[1] for pair in pairs], last, number)
    call.put(number, "Q", len(pairs))


@row(
    *("cudaGraphNodeGetDependencies", "cudaGraphNodeGetDependencies_v2"),
    *("cuGraphNodeGetDependencies", "cuGraphNodeGetDependencies_v2"),
)
def get_dependencies(call: Call, node: Handle, nodes: Pointer, third: Pointer, fourth: Pointer) -> None:
    """Give the nodes that a node comes after."""
    data, number = (third, fourth) if has_edge_data(call) else (0, third)
    found = node_of(call, node).after
    _zero_edges(call, data if nodes else 0, len(found))
    _give(call, found, nodes, number)


@row(
    *("cudaGraphNodeGetDependentNodes", "cudaGraphNodeGetDependentNodes_v2"),
    *("cuGraphNodeGetDependentNodes", "cuGraphNodeGetDependentNodes_v2"),
)
def get_dependents(call: Call, node: Handle, nodes: Pointer, third: Pointer, fourth: Pointer) -> None:
    """Give the nodes that come after a node."""
    data, number = (third, fourth) if has_edge_data(call) else (0, third)
    before = node_of(call, node)
    found = [each for each in owner_of(call, before).nodes if before in each.after]
    _zero_edges(call, data if nodes else 0, len(found))
    _give(call, found, nodes, number)


@row(
    *("cudaGraphAddDependencies", "cudaGraphAddDependencies_v2"),
    *("cuGraphAddDependencies", "cuGraphAddDependencies_v2"),
)
def add_dependencies(
    call: Call, graph: Handle, first: Pointer, last: Pointer, fourth: Size, fifth: Size
) -> None:
    """Let nodes come after others."""
    number = fifth if has_edge_data(call) else fourth
    for before, node in zip(nodes_at(call, first, number), nodes_at(call, last, number), strict=True):
        if before in node.after:
            raise CudaError("InvalidValue", f"{call.name}: {node.label} comes after {before.label} already")
        if before is node or owner_of(call, before) is not owner_of(call, node):
            message = f"{call.name}: {node.label} and {before.label} are not two nodes of a graph"
            raise CudaError("InvalidValue", message)
        node.after.append(before)


@row(
    *("cudaGraphRemoveDependencies", "cudaGraphRemoveDependencies_v2"),
    *("cuGraphRemoveDependencies", "cuGraphRemoveDependencies_v2"),
)
def remove_dependencies(
    call: Call, graph: Handle, first: Pointer, last: Pointer, fourth: Size, fifth: Size
) -> None:
    """Let nodes no longer come after others."""
    number = fifth if has_edge_data(call) else fourth
    for before, node in zip(nodes_at(call, first, number), nodes_at(call, last, number), strict=True):
        if before not in node.after:
            raise CudaError("InvalidValue", f"{call.name}: {node.label} does not come after {before.label}")
        node.after.remove(before)


@row("cudaGraphNodeGetType", "cuGraphNodeGetType")
def node_type(call: Call, node: Handle, result: Pointer) -> None:
    """Give what a node does."""
    call.put(result, "i", int(node_of(call, node).kind))


@row("cudaGraphDestroyNode", "cuGraphDestroyNode")
def destroy_node(call: Call, node: Handle) -> None:
    """Take a node out of its graph, with its edges."""
    found = node_of(call, node)
    graph = owner_of(call, found)
    if any(each.kind in (NodeKind.ALLOCATE, NodeKind.FREE) for each in graph.nodes):
        message = f"{call.name}: a graph that allocates or frees memory keeps its nodes"
        raise CudaError("InvalidValue", message)
    graph.nodes.remove(found)
    for other in graph.nodes:
        other.after = [before for before in other.after if before is not found]
    call.process.drop(node, GraphNode, "node of a graph")
    if found.kind is NodeKind.GRAPH:
        release_all(call, found.fields)


@row("cudaGraphNodeSetEnabled", "cuGraphNodeSetEnabled")
def set_enabled(call: Call, executable: Handle, node: Handle, enabled: Unsigned) -> None:
    """Let a launch do the work of a node, or only order by it."""
    made_of(call, executable, node).enabled = bool(enabled)


@row("cudaGraphNodeGetEnabled", "cuGraphNodeGetEnabled")
def get_enabled(call: Call, executable: Handle, node: Handle, result: Pointer) -> None:
    """Give whether a launch does the work of a node."""
    call.put(result, "I", int(made_of(call, executable, node).enabled))


def made_of(call: Call, executable: int, node: int) -> GraphNode:
    """Return the node of an executable graph that was made of a node. Raises CudaError."""
    found: Executable = call.process.held(executable, Executable, "executable graph")
    made = found.made.get(node_of(call, node))
    if made is None:
        raise CudaError("InvalidValue", f"{call.name}: the executable graph was made without that node")
    return made


@row("cudaGraphDebugDotPrint", "cuGraphDebugDotPrint")
def debug_dot(call: Call, graph: Handle, path: Pointer, flags: Unsigned) -> None:
    """Write a graph to a file, as the language DOT has it."""
    found = graph_of(call, graph)
    places = {node: f"node_{place}" for place, node in enumerate(found.nodes)}
    lines = [f'{name} [label="{_quote_label(node)}"];' for node, name in places.items()]
    lines += [f"{places[before]} -> {places[node]};" for before, node in found.edges()]
    file = working_folder(call.process.number) / call.text(path)
    try:
        write_lines(file, ["digraph dot {", *lines, "}"])
    except OSError as error:
        raise CudaError("OperatingSystem", f"{file}: {error.strerror}") from None


def _quote_label(node: GraphNode) -> str:
    escaped = node.label.replace("\\", "\\\\").replace('"', '\\"')
    return f"{node.kind.name}: {escaped}"
