"""Objects of the user that graphs keep: a function of the host is called when the last reference goes."""

from __future__ import annotations

from dataclasses import dataclass

from ...calls import Call, Handle, Pointer, Unsigned, row
from ...error_codes import CudaError
from ...graphs import Graph

_MOVE = 1  # of cudaUserObjectRetainFlags: the references are the caller's


@dataclass(eq=False)
class UserObject:
    """What a program gives graphs to keep: ``count`` references are left."""

    data: int
    destroy: int
    count: int


@row("cudaUserObjectCreate", "cuUserObjectCreate")
def create(
    call: Call, result: Pointer, data: Pointer, destroy: Pointer, count: Unsigned, flags: Unsigned
) -> None:
    """Make an object with some references."""
    if not count or not destroy:
        raise CudaError("InvalidValue", f"{call.name}: {count} references, destructor {destroy:#x}")
    call.put(result, "Q", call.process.handle(UserObject(data, destroy, count)))


@row("cudaUserObjectRetain", "cuUserObjectRetain")
def retain(call: Call, handle: Handle, count: Unsigned) -> None:
    """Add references."""
    call.process.held(handle, UserObject, "user object").count += _positive(call, count)


@row("cudaUserObjectRelease", "cuUserObjectRelease")
def release(call: Call, handle: Handle, count: Unsigned) -> None:
    """Give references back; without any, the object is destroyed."""
    _release(call, call.process.held(handle, UserObject, "user object"), _positive(call, count))


@row("cudaGraphRetainUserObject", "cuGraphRetainUserObject")
def graph_retain(call: Call, graph: Handle, handle: Handle, count: Unsigned, flags: Unsigned) -> None:
    """Give references to a graph: more of them, or those of the caller."""
    found = call.process.held(handle, UserObject, "user object")
    kept = call.process.held(graph, Graph, "graph").kept
    kept[found] = kept.get(found, 0) + _positive(call, count)
    found.count += 0 if flags & _MOVE else count


@row("cudaGraphReleaseUserObject", "cuGraphReleaseUserObject")
def graph_release(call: Call, graph: Handle, handle: Handle, count: Unsigned) -> None:
    """Take references from a graph."""
    found = call.process.held(handle, UserObject, "user object")
    kept = call.process.held(graph, Graph, "graph").kept
    if kept.get(found, 0) < _positive(call, count):
        raise CudaError("InvalidValue", f"{call.name}: the graph has {kept.get(found, 0)} references")
    kept[found] -= count
    if not kept[found]:
        del kept[found]
    _release(call, found, count)


def release_all(call: Call, graph: Graph) -> None:
    """Give back the references of a graph that is destroyed."""
    for each in graph.every():
        kept, each.kept = each.kept, {}
        for found, count in kept.items():
            _release(call, found, count)


def copied_with_objects(graph: Graph) -> Graph:
    """Return a copy of a graph for execution, which has references of its own."""
    copied = graph.copy()
    for each in copied.every():
        for found, count in each.kept.items():
            found.count += count
    return copied


def _positive(call: Call, count: int) -> int:
    if not count:
        raise CudaError("InvalidValue", f"{call.name}: no references")
    return count


def _release(call: Call, found: UserObject, count: int) -> None:
    """Take references away; call the destructor with the last."""
    if count > found.count:
        raise CudaError("InvalidValue", f"{call.name}: {count} references, where {found.count} are left")
    found.count -= count
    if not found.count:
        call.connection.call_host(found.destroy, found.data)
