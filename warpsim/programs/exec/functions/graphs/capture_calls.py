"""Capture of streams: what they are given becomes a graph."""

from __future__ import annotations

import struct
from itertools import count
from typing import NamedTuple

from ...calls import Call, Handle, Int, Pointer, Size, row
from ...error_codes import CudaError
from ...graphs import Capture, Graph, GraphNode
from .graph_calls import graph_of, has_edge_data, node_handle, nodes_at

_NUMBERS = count(1)
_NONE, _ACTIVE = 0, 1  # of cudaStreamCaptureStatus
_SET_DEPENDENCIES = 1  # of cudaStreamUpdateCaptureDependenciesFlags
_EDGE_BYTES = 8  # of cudaGraphEdgeData; zeros are of a plain edge


@row("cudaStreamBeginCapture", "cuStreamBeginCapture_v2")
def begin_capture(call: Call, handle: Handle, mode: Int) -> None:
    """Begin to keep what is given to a stream."""
    _begin(call, handle, Graph(), [])


class CaptureToGraph(NamedTuple):
    """The parameters of cudaStreamBeginCaptureToGraph."""

    stream: Handle
    graph: Handle
    nodes: Pointer
    edges: Pointer
    number: Size
    mode: Int


@row("cudaStreamBeginCaptureToGraph", "cuStreamBeginCaptureToGraph")
def begin_capture_to_graph(call: Call, asked: CaptureToGraph) -> None:
    """Begin to add what is given to a stream to a graph, behind nodes of it."""
    found = graph_of(call, asked.graph)
    behind = nodes_at(call, asked.nodes, asked.number)
    for node in behind:
        if node not in found.nodes:
            raise CudaError("InvalidValue", f"{call.name}: {node.label} is in another graph")
    _begin(call, asked.stream, found, behind).handle = asked.graph


def _begin(call: Call, handle: int, graph: Graph, behind: list[GraphNode]) -> Capture:
    """Begin a capture of a stream to a graph, behind nodes. Raises CudaError."""
    process = call.process
    stream = call.stream(handle)
    if stream is process.order.legacy:
        raise CudaError("StreamCaptureUnsupported", "the legacy stream cannot be captured")
    if stream.handle in process.captures:
        raise CudaError("IllegalState", "the stream is captured already")
    capture = Capture(stream.handle, next(_NUMBERS), graph, first=len(graph.nodes))
    capture.ends[stream.handle] = behind
    process.captures[stream.handle] = capture
    return capture


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
    if capture.broken:
        call.put(result, "Q", 0)
        raise CudaError("StreamCaptureInvalidated", "a call that no capture allows has ended the capture")
    joined = set(capture.ends.get(stream.handle, ()))
    loose = [node for node in capture.graph.nodes[capture.first :] if not _precedes(node, joined)]
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


def _precedes(node: GraphNode, ends: set[GraphNode]) -> bool:
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


class CaptureInfo(NamedTuple):
    """The parameters of cudaStreamGetCaptureInfo; the data of edges stands in newer forms alone."""

    stream: Handle
    status: Pointer
    number: Pointer
    graph: Pointer
    nodes: Pointer
    fifth: Pointer
    sixth: Pointer


@row(
    *("cudaStreamGetCaptureInfo", "cudaStreamGetCaptureInfo_v2", "cudaStreamGetCaptureInfo_v3"),
    *("cuStreamGetCaptureInfo", "cuStreamGetCaptureInfo_v2", "cuStreamGetCaptureInfo_v3"),
)
def capture_info(call: Call, asked: CaptureInfo) -> None:
    """Give whether a stream is captured, the number of the capture, its graph, and what comes next after."""
    handle = call.stream(asked.stream).handle
    capture = call.process.captures.get(handle)
    call.put(asked.status, "i", _NONE if capture is None else _ACTIVE)
    if capture is None:
        return
    call.put_some(asked.number, "Q", capture.number)
    if not call.name.endswith(("_v2", "_v3")) and not call.of_runtime_13:
        return
    call.put_some(asked.graph, "Q", _graph_handle(call, capture))
    ends = [node_handle(call, node) for node in capture.ends.get(handle, ())]
    words = struct.pack(f"<{len(ends)}Q", *ends)
    call.put_some(asked.nodes, "Q", call.process.kept_words(call.connection.channel, words))
    has_edges = call.of_runtime_13 or call.name.endswith("_v3")
    if has_edges:
        plain = bytes(_EDGE_BYTES * len(ends))
        call.put_some(asked.fifth, "Q", call.process.kept_words(call.connection.channel, plain))
    call.put_some(asked.sixth if has_edges else asked.fifth, "Q", len(ends))


@row(
    *("cudaStreamUpdateCaptureDependencies", "cudaStreamUpdateCaptureDependencies_v2"),
    *("cuStreamUpdateCaptureDependencies", "cuStreamUpdateCaptureDependencies_v2"),
)
def update_dependencies(
    call: Call, handle: Handle, nodes: Pointer, third: Size, fourth: Size, fifth: Size
) -> None:
    """Change what the next work of a captured stream comes after: more nodes, or others."""
    stream = call.stream(handle).handle
    capture = call.process.captures.get(stream)
    if capture is None:
        raise CudaError("IllegalState", "the stream is not captured")
    number, flags = (fourth, fifth) if has_edge_data(call) else (third, fourth)
    named = nodes_at(call, nodes, number)
    before = [] if flags & _SET_DEPENDENCIES else capture.ends.get(stream, [])
    capture.ends[stream] = [*before, *(node for node in named if node not in before)]


@row("cudaThreadExchangeStreamCaptureMode", "cuThreadExchangeStreamCaptureMode")
def exchange_mode(call: Call, mode: Pointer) -> None:
    """Exchange the mode of captures of the thread; nothing depends on it."""
    (new,) = call.get(mode, "i")
    call.put(mode, "i", call.connection.capture_mode)
    call.connection.capture_mode = new
