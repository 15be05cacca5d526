"""Nodes of graphs, read: the structures of parameters that they were made of."""

from __future__ import annotations

import struct

from ...calls import Call, Handle, Pointer, Unsigned, row
from ...clients.client_launches import LaunchRequest
from ...cuda_structures import (
    ATTRIBUTE_BYTES,
    AllocationNodeParameters,
    DriverCopy3D,
    DriverKernelNodeParameters,
    DriverSide3D,
    Extent,
    FillParameters,
    HostNodeParameters,
    KernelNodeParameters,
    PitchedPointer,
    RuntimeCopy3D,
    RuntimeSide,
)
from ...error_codes import CudaError
from ...graphs import Graph, GraphNode, NodeKind
from ...memory_transfers import Box, Plane, Rows
from .graph_calls import node_of

_HOST, _DEVICE = 1, 2  # of CUmemorytype
_DEFAULT_COPY = 4  # of cudaMemcpyKind: the kinds follow from the addresses


def held_node(call: Call, node: int, kind: NodeKind) -> GraphNode:
    """Return a node of a kind by its handle. Raises CudaError."""
    found = node_of(call, node)
    if found.kind is not kind:
        raise CudaError("InvalidValue", f"{call.name}: the node is {found.kind.name}, not {kind.name}")
    return found


@row("cudaGraphKernelNodeGetParams", "cuGraphKernelNodeGetParams", "cuGraphKernelNodeGetParams_v2")
def get_kernel_parameters(call: Call, node: Handle, result: Pointer) -> None:
    """Give cudaKernelNodeParams; its arguments lie in memory that stays."""
    request: LaunchRequest = held_node(call, node, NodeKind.KERNEL).fields
    process, channel = call.process, call.connection.channel
    places = [process.kept_words(channel, content) for content in request.parameters]
    arguments = process.kept_words(channel, struct.pack(f"<{len(places)}Q", *places)) if places else 0
    given = KernelNodeParameters(
        request.function, request.grid, request.block, request.shared_bytes, arguments
    )
    call.put_structure(result, DriverKernelNodeParameters(given) if call.name.endswith("_v2") else given)


@row("cudaGraphMemcpyNodeGetParams")
def get_copy_parameters(call: Call, node: Handle, result: Pointer) -> None:
    """Give cudaMemcpy3DParms."""
    box: Box = held_node(call, node, NodeKind.COPY).fields
    source, target = (_runtime_side(plane, box.sizes) for plane in (box.source, box.target))
    call.put_structure(result, RuntimeCopy3D(source, target, box.sizes, _DEFAULT_COPY))


def _runtime_side(plane: Plane, sizes: Extent) -> RuntimeSide:
    pitch, rows = _layer(plane, sizes)
    return RuntimeSide(0, (0, 0, 0), PitchedPointer(plane.address, pitch, sizes[0], rows))


@row("cuGraphMemcpyNodeGetParams")
def get_driver_copy_parameters(call: Call, node: Handle, result: Pointer) -> None:
    """Give CUDA_MEMCPY3D; a side begins at its address, and is the host's or the device's."""
    box: Box = held_node(call, node, NodeKind.COPY).fields
    source, target = (_driver_side(call, plane, box.sizes) for plane in (box.source, box.target))
    call.put_structure(result, DriverCopy3D(source, target, box.sizes))


def _driver_side(call: Call, plane: Plane, sizes: Extent) -> DriverSide3D:
    pitch, rows = _layer(plane, sizes)
    on_device = call.process.on_device(plane.address)
    kind, host, device = (_DEVICE, 0, plane.address) if on_device else (_HOST, plane.address, 0)
    return DriverSide3D((0, 0, 0), 0, kind, host, device, 0, 0, pitch, rows)


def _layer(plane: Plane, sizes: Extent) -> tuple[int, int]:
    """Return the bytes from row to row, and the rows of a layer; of a copy without them, those of the box."""
    pitch = plane.pitch or sizes[0]
    return pitch, plane.slice // pitch or sizes[1]


@row("cudaGraphMemsetNodeGetParams", "cuGraphMemsetNodeGetParams")
def get_fill_parameters(call: Call, node: Handle, result: Pointer) -> None:
    """Give cudaMemsetParams."""
    rows: Rows = held_node(call, node, NodeKind.FILL).fields
    value = int.from_bytes(rows.pattern, "little")
    sizes = len(rows.pattern), rows.count, rows.rows
    call.put_structure(result, FillParameters(rows.target.address, rows.target.pitch, value, *sizes))


@row("cudaGraphHostNodeGetParams", "cuGraphHostNodeGetParams")
def get_host_parameters(call: Call, node: Handle, result: Pointer) -> None:
    """Give cudaHostNodeParams."""
    call.put_structure(result, HostNodeParameters(*held_node(call, node, NodeKind.HOST).fields))


@row("cudaGraphChildGraphNodeGetGraph", "cuGraphChildGraphNodeGetGraph")
def get_child(call: Call, node: Handle, result: Pointer) -> None:
    """Give the graph of a node, which is changed in its place."""
    inner: Graph = held_node(call, node, NodeKind.GRAPH).fields
    handles = call.process.handles
    known = next((handle for handle, value in handles.items() if value is inner), None)
    call.put(result, "Q", call.process.handle(inner) if known is None else known)


@row("cudaGraphEventRecordNodeGetEvent", "cuGraphEventRecordNodeGetEvent")
def get_record_event(call: Call, node: Handle, result: Pointer) -> None:
    """Give the event that a node records."""
    call.put(result, "Q", *held_node(call, node, NodeKind.RECORD).fields)


@row("cudaGraphEventWaitNodeGetEvent", "cuGraphEventWaitNodeGetEvent")
def get_wait_event(call: Call, node: Handle, result: Pointer) -> None:
    """Give the event that a node waits for."""
    call.put(result, "Q", *held_node(call, node, NodeKind.WAIT).fields)


@row("cudaGraphMemAllocNodeGetParams", "cuGraphMemAllocNodeGetParams")
def get_allocation(call: Call, node: Handle, result: Pointer) -> None:
    """Give cudaMemAllocNodeParams, without its array of accesses."""
    address, size, pool = held_node(call, node, NodeKind.ALLOCATE).fields
    call.put_structure(result, AllocationNodeParameters(pool, 0, 0, size, address))


@row("cudaGraphMemFreeNodeGetParams", "cuGraphMemFreeNodeGetParams")
def get_free(call: Call, node: Handle, result: Pointer) -> None:
    """Give the address that a node frees."""
    call.put(result, "Q", *held_node(call, node, NodeKind.FREE).fields)


@row("cudaGraphKernelNodeGetAttribute", "cuGraphKernelNodeGetAttribute")
def get_node_attribute(call: Call, node: Handle, attribute: Unsigned, result: Pointer) -> None:
    """Give an attribute of a launch, zero where none was set."""
    attributes = held_node(call, node, NodeKind.KERNEL).fields.attributes
    call.write(result, attributes.get(attribute, bytes(ATTRIBUTE_BYTES)))
