"""Capture of streams, and graphs: built, instantiated, launched."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from ..calls import Call, Handle, Int, Pointer, Size, Unsigned, row
from ..client_launches import LaunchRequest, execute, parameter_bytes
from ..error_codes import CudaError
from ..graphs import Capture, Graph, GraphNode, Run
from ..memory_transfers import copy
from ..streams import Touches
from .registration import kernel_of
from .user_objects import copied_with_objects, release_all

_NUMBERS = count(1)
_NONE, _ACTIVE = 0, 1  # of cudaStreamCaptureStatus


@dataclass(eq=False)
class Executable:
    """A graph that can be launched; ``made`` has its nodes by those of the graph that it was made of."""

    graph: Graph
    made: dict[GraphNode, GraphNode]


@row("cudaStreamBeginCapture", "cuStreamBeginCapture_v2")
def begin_capture(call: Call, handle: Handle, mode: Int) -> None:
    """Begin to keep what is given to a stream."""
    process = call.process
    stream = call.stream(handle)
    if stream is process.order.legacy:
        raise CudaError("StreamCaptureUnsupported", "the legacy stream cannot be captured")
    if stream.handle in process.captures:
        raise CudaError("IllegalState", "the stream is captured already")
    process.captures[stream.handle] = Capture(stream.handle, next(_NUMBERS))


@row("cudaStreamEndCapture", "cuStreamEndCapture")
def end_capture(call: Call, handle: Handle, result: Pointer) -> None:
    """End a capture; give the graph."""
    process = call.process
    stream = call.stream(handle)
    capture = process.captures.get(stream.handle)
    if capture is None:
        raise CudaError("IllegalState", "the stream is not captured")
    if capture.origin != stream.handle:
        raise CudaError("StreamCaptureUnmatched", "another stream began the capture")
    for other in [key for key, value in process.captures.items() if value is capture]:
        del process.captures[other]
    joined = set(capture.ends.get(stream.handle, ()))
    loose = [node for node in capture.graph.nodes if not _reached(node, joined)]
    if loose:
        call.put(result, "Q", 0)
        raise CudaError(
            "StreamCaptureUnjoined", f"{loose[0].label} is on a stream that the first does not wait for"
        )
    call.put(result, "Q", _graph_handle(call, capture))


def _graph_handle(call: Call, capture: Capture) -> int:
    """Return the handle of the graph of a capture: the same while it is captured and at its end."""
    capture.handle = capture.handle or call.process.handle(capture.graph)
    return capture.handle


def _reached(node: GraphNode, ends: set[GraphNode]) -> bool:
    """Return whether a node comes before some of the ends, or is among them."""
    left, known = list(ends), set[GraphNode]()
    while left:
        found = left.pop()
        if found is node:
            return True
        left += [other for other in found.after if other not in known]
        known.update(found.after)
    return False


@row("cudaStreamIsCapturing", "cuStreamIsCapturing")
def is_capturing(call: Call, handle: Handle, result: Pointer) -> None:
    """Give whether a stream is captured."""
    stream = call.stream(handle)
    call.put(result, "i", _ACTIVE if stream.handle in call.process.captures else _NONE)


@row(
    "cudaStreamGetCaptureInfo_v2",
    "cudaStreamGetCaptureInfo_v3",
    "cuStreamGetCaptureInfo_v2",
    "cuStreamGetCaptureInfo_v3",
)
def capture_info(call: Call, handle: Handle, status: Pointer, number: Pointer, graph: Pointer) -> None:
    """Give whether a stream is captured, the number of the capture, and its graph; no dependencies."""
    numbered_capture(call, handle, status, number)
    capture = call.process.captures.get(call.stream(handle).handle)
    if capture is not None:
        call.put_some(graph, "Q", _graph_handle(call, capture))


@row("cudaStreamGetCaptureInfo")
def numbered_capture(call: Call, handle: Handle, status: Pointer, number: Pointer) -> None:
    """Give whether a stream is captured, and the number of the capture."""
    capture = call.process.captures.get(call.stream(handle).handle)
    call.put(status, "i", _NONE if capture is None else _ACTIVE)
    if capture is not None:
        call.put_some(number, "Q", capture.number)


@row("cudaThreadExchangeStreamCaptureMode", "cuThreadExchangeStreamCaptureMode")
def exchange_mode(call: Call, mode: Pointer) -> None:
    """Exchange the mode of captures of the thread; nothing depends on it."""
    (new,) = call.get(mode, "i")
    call.put(mode, "i", call.connection.capture_mode)
    call.connection.capture_mode = new


# --- graphs ----------------------------------------------------------------------------------------


@row("cudaGraphCreate", "cuGraphCreate")
def graph_create(call: Call, result: Pointer, flags: Unsigned) -> None:
    """Make a graph without nodes."""
    call.put(result, "Q", call.process.handle(Graph()))


@row("cudaGraphDestroy", "cuGraphDestroy")
def graph_destroy(call: Call, graph: Handle) -> None:
    """Forget a graph."""
    release_all(call, call.process.drop(graph, Graph, "graph"))


@row("cudaGraphInstantiate", "cudaGraphInstantiateWithFlags", "cuGraphInstantiateWithFlags")
def graph_instantiate(call: Call, result: Pointer, graph: Handle, flags: Size) -> None:
    """Make a graph that can be launched, of the nodes as they are now."""
    found = call.process.held(graph, Graph, "graph")
    copied = copied_with_objects(found)
    made = dict(zip(found.nodes, copied.nodes, strict=True))
    call.put(result, "Q", call.process.handle(Executable(copied, made)))


@row("cudaGraphInstantiateWithParams", "cuGraphInstantiateWithParams")
def graph_instantiate_with(call: Call, result: Pointer, graph: Handle, parameters: Pointer) -> None:
    """Make the same, and write to a structure that nothing went wrong: no node at 16, success at 24."""
    graph_instantiate(call, result, graph, 0)
    call.put(parameters + 16, "Qi", 0, 0)


@row("cudaGraphExecDestroy", "cuGraphExecDestroy")
def exec_destroy(call: Call, executable: Handle) -> None:
    """Forget a graph that can be launched."""
    release_all(call, call.process.drop(executable, Executable, "executable graph").graph)


@row("cudaGraphLaunch", "cuGraphLaunch")
def graph_launch(call: Call, executable: Handle, stream: Handle) -> None:
    """Do the work of a graph as work of a stream."""
    found = call.process.held(executable, Executable, "executable graph")
    call.process.run_graph(call, call.stream(stream), found.graph)


@row("cudaGraphUpload", "cuGraphUpload")
def graph_upload(call: Call, executable: Handle, stream: Handle) -> None:
    """Nothing is to be prepared."""
    call.process.held(executable, Executable, "executable graph")


@row("cudaGraphExecUpdate", "cuGraphExecUpdate_v2")
def exec_update(call: Call, executable: Handle, graph: Handle, result: Pointer) -> None:
    """Take the nodes of another graph."""
    found = call.process.held(executable, Executable, "executable graph")
    found.graph = call.process.held(graph, Graph, "graph").copy()
    found.made = dict(zip(found.made, found.graph.nodes, strict=False))
    call.put_some(result, "i4xQQ", 0, 0, 0)


@row("cudaGraphGetNodes", "cuGraphGetNodes")
def get_nodes(call: Call, graph: Handle, nodes: Pointer, number: Pointer) -> None:
    """Give the nodes of a graph, or how many there are."""
    found = call.process.held(graph, Graph, "graph")
    if nodes:
        (room,) = call.get(number, "Q")
        for place, node in enumerate(found.nodes[:room]):
            call.put(nodes + 8 * place, "Q", _node_handle(call, node))
    call.put(number, "Q", len(found.nodes))


def _node_handle(call: Call, node: GraphNode) -> int:
    handles = call.process.handles
    known = next((handle for handle, value in handles.items() if value is node), None)
    return call.process.handle(node) if known is None else known


def _add(call: Call, result: int, graph: int, before: tuple[int, int], node: GraphNode) -> None:
    """Add a node behind others of a graph."""
    process = call.process
    found = process.held(graph, Graph, "graph")
    place, number = before
    handles = call.get(place, f"{number}Q") if number else ()
    node.after = [process.held(handle, GraphNode, "node of a graph") for handle in handles]
    found.nodes.append(node)
    call.put(result, "Q", process.handle(node))


@row("cudaGraphAddEmptyNode", "cuGraphAddEmptyNode")
def add_empty(call: Call, result: Pointer, graph: Handle, before: Pointer, number: Size) -> None:
    """Add a node that only orders."""
    _add(call, result, graph, (before, number), GraphNode("nothing"))


def _kernel_work(call: Call, parameters: int) -> tuple[str, Run]:
    """Return label and work of a launch: cudaKernelNodeParams, which CUDA_KERNEL_NODE_PARAMS begins with."""
    function, *sizes, shared, arguments, _ = call.get(parameters, "Q7I4xQQ")
    kernel = kernel_of(call, function)
    request = LaunchRequest(
        kernel=kernel,
        grid=(sizes[0], sizes[1], sizes[2]),
        block=(sizes[3], sizes[4], sizes[5]),
        parameters=parameter_bytes(kernel, call.read, arguments),
        shared_bytes=shared,
    )
    request.check()
    return request.label, lambda later: execute(later.process, request)


@row("cudaGraphAddKernelNode", "cuGraphAddKernelNode", "cuGraphAddKernelNode_v2")
def add_kernel(
    call: Call, result: Pointer, graph: Handle, before: Pointer, number: Size, parameters: Pointer
) -> None:
    """Add a launch."""
    _add(call, result, graph, (before, number), GraphNode(*_kernel_work(call, parameters)))


@row(
    "cudaGraphExecKernelNodeSetParams", "cuGraphExecKernelNodeSetParams", "cuGraphExecKernelNodeSetParams_v2"
)
def exec_kernel(call: Call, executable: Handle, node: Handle, parameters: Pointer) -> None:
    """Change a launch of a graph that can be launched; the graph that it was made of stays as it is."""
    found = call.process.held(executable, Executable, "executable graph")
    changed = found.made.get(call.process.held(node, GraphNode, "node of a graph"))
    if changed is None:
        raise CudaError("InvalidValue", f"{call.name}: the executable graph was made without that node")
    changed.label, changed.run = _kernel_work(call, parameters)


class CopyNode(NamedTuple):
    """The parameters of cudaGraphAddMemcpyNode1D."""

    result: Pointer
    graph: Handle
    before: Pointer
    number: Size
    target: Pointer
    source: Pointer
    size: Size
    kind: Int


@row("cudaGraphAddMemcpyNode1D")
def add_memcpy(call: Call, asked: CopyNode) -> None:
    """Add a copy."""

    def run(later: Call) -> Touches:
        return copy(later, asked.target, asked.source, asked.size)

    node = GraphNode(f"copy of {asked.size} bytes", run)
    _add(call, asked.result, asked.graph, (asked.before, asked.number), node)


@row("cudaGraphAddHostNode", "cuGraphAddHostNode")
def add_host(
    call: Call, result: Pointer, graph: Handle, before: Pointer, number: Size, parameters: Pointer
) -> None:
    """Add a function of the host."""
    function, data = call.get(parameters, "QQ")
    _add(
        call,
        result,
        graph,
        (before, number),
        GraphNode(f"host function {function:#x}", _host(function, data)),
    )


def _host(function: int, data: int) -> Run:
    def run(later: Call) -> Touches:
        later.connection.call_host(function, data)
        return Touches()

    return run
