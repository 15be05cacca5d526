"""Streams, events and functions of the host. Times are those of this machine, not of a chip."""

from __future__ import annotations

import time

from ..calls import Call, Handle, Int, Pointer, Unsigned, row
from ..error_codes import CudaError
from ..graphs import GraphNode, NodeKind
from ..streams import Event, Stream, Touches

_NON_BLOCKING, _NO_TIMING = 1, 2
_EVENT_FLAGS = 7  # blocking synchronisation, no timing, between processes


@row("cudaStreamCreate")
def stream_create(call: Call, result: Pointer) -> None:
    """Make a stream."""
    _create(call, result, 0, 0)


@row("cudaStreamCreateWithFlags", "cuStreamCreate")
def stream_create_with_flags(call: Call, result: Pointer, flags: Unsigned) -> None:
    """Make a stream."""
    _create(call, result, flags, 0)


@row("cudaStreamCreateWithPriority", "cuStreamCreateWithPriority")
def stream_create_with_priority(call: Call, result: Pointer, flags: Unsigned, priority: Int) -> None:
    """Make a stream."""
    _create(call, result, flags, priority)


def _create(call: Call, result: int, flags: int, priority: int) -> None:
    process = call.process
    if flags & ~_NON_BLOCKING:
        raise CudaError("InvalidValue", f"{call.name}: flags {flags:#x}")
    handle = process.handle(None)
    stream = process.order.create(
        handle, blocking=not flags & _NON_BLOCKING, priority=min(max(priority, -5), 0)
    )
    process.handles[handle] = stream
    call.put(result, "Q", handle)


@row("cudaStreamDestroy", "cuStreamDestroy_v2")
def stream_destroy(call: Call, handle: Handle) -> None:
    """Forget a stream; its work has been done."""
    process = call.process
    process.drop(handle, Stream, "stream")
    process.order.end(handle)


@row("cudaStreamSynchronize", "cuStreamSynchronize")
def stream_synchronize(call: Call, handle: Handle) -> None:
    """Wait for a stream."""
    stream = call.stream(handle)
    _check_capture(call, stream)
    call.process.wait(call, stream.clock)
    call.connection.synchronise()


def _check_capture(call: Call, stream: Stream) -> None:
    capture = call.process.captures.get(stream.handle)
    if capture is not None:
        capture.broken = True
        raise CudaError("StreamCaptureUnsupported", f"{call.name} on a stream that is captured")


@row("cudaStreamQuery", "cuStreamQuery")
def stream_query(call: Call, handle: Handle) -> None:
    """Return success: all work has been done."""
    stream = call.stream(handle)
    _check_capture(call, stream)
    call.process.wait(call, stream.clock)


@row("cudaStreamGetPriority", "cuStreamGetPriority")
def stream_priority(call: Call, handle: Handle, result: Pointer) -> None:
    """Give the priority of a stream."""
    call.put(result, "i", call.stream(handle).priority)


@row("cudaStreamGetFlags", "cuStreamGetFlags")
def stream_flags(call: Call, handle: Handle, result: Pointer) -> None:
    """Give the flags of a stream."""
    call.put(result, "I", int(not call.stream(handle).blocking))


@row("cudaStreamGetId", "cuStreamGetId")
def stream_id(call: Call, handle: Handle, result: Pointer) -> None:
    """Give the number of a stream."""
    call.put(result, "Q", call.stream(handle).number)


@row("cudaStreamGetDevice")
def stream_device(call: Call, handle: Handle, result: Pointer) -> None:
    """There is one device."""
    call.stream(handle)
    call.put(result, "i", 0)


@row("cuStreamGetCtx", "cuStreamGetCtx_v2")
def stream_context(call: Call, handle: Handle, result: Pointer) -> None:
    """Give the context that a stream was made in; of those that every context has, the current."""
    call.stream(handle)
    call.put(result, "Q", call.process.owners.get(handle, call.process.current))


@row("cudaStreamWaitEvent", "cuStreamWaitEvent")
def stream_wait_event(call: Call, handle: Handle, event: Handle, flags: Unsigned) -> None:
    """Let later work of a stream wait for an event."""
    process = call.process
    stream, found = call.stream(handle), process.held(event, Event, "event")
    capture = next((each for each in process.captures.values() if event in each.events), None)
    if capture is not None:
        process.captures[stream.handle] = capture
        ends = capture.ends.setdefault(stream.handle, [])
        ends += [node for node in capture.events[event] if node not in ends]
        return
    process.order.after(stream, found.clock)


@row("cudaEventCreate")
def event_create(call: Call, result: Pointer) -> None:
    """Make an event."""
    call.put(result, "Q", call.process.handle(Event()))


@row("cudaEventCreateWithFlags", "cuEventCreate")
def event_create_with_flags(call: Call, result: Pointer, flags: Unsigned) -> None:
    """Make an event."""
    if flags & ~_EVENT_FLAGS:
        raise CudaError("InvalidValue", f"{call.name}: flags {flags:#x}")
    call.put(result, "Q", call.process.handle(Event(timed=not flags & _NO_TIMING)))


@row("cudaEventDestroy", "cuEventDestroy_v2")
def event_destroy(call: Call, event: Handle) -> None:
    """Forget an event."""
    call.process.drop(event, Event, "event")


@row("cudaEventRecord", "cuEventRecord")
def event_record(call: Call, event: Handle, stream: Handle) -> None:
    """Note what a stream has done so far."""
    _record(call, event, stream)


@row("cudaEventRecordWithFlags", "cuEventRecordWithFlags")
def event_record_with_flags(call: Call, event: Handle, stream: Handle, flags: Unsigned) -> None:
    """Note what a stream has done so far."""
    _record(call, event, stream)


def _record(call: Call, event: int, handle: int) -> None:
    process = call.process
    found, stream = process.held(event, Event, "event"), call.stream(handle)
    capture = process.captures.get(stream.handle)
    if capture is not None:
        capture.events[event] = list(capture.ends.get(stream.handle, ()))
        return
    if found.timed:
        process.do_held()
    found.clock, found.seconds = process.order.begin(stream), time.perf_counter()


@row("cudaEventSynchronize", "cuEventSynchronize")
def event_synchronize(call: Call, event: Handle) -> None:
    """Wait for an event."""
    call.process.wait(call, call.process.held(event, Event, "event").clock)
    call.connection.synchronise()


@row("cudaEventQuery", "cuEventQuery")
def event_query(call: Call, event: Handle) -> None:
    """Return success: what came before has been done."""
    call.process.wait(call, call.process.held(event, Event, "event").clock)


@row("cudaEventElapsedTime", "cuEventElapsedTime", "cudaEventElapsedTime_v2", "cuEventElapsedTime_v2")
def event_elapsed_time(call: Call, result: Pointer, first: Handle, last: Handle) -> None:
    """Give the milliseconds between two events, of this machine."""
    start, end = (call.process.held(event, Event, "event") for event in (first, last))
    if not start.timed or not end.timed or start.seconds is None or end.seconds is None:
        raise CudaError(
            "InvalidResourceHandle", f"{call.name}: an event that was not recorded, or takes no time"
        )
    call.process.tally.say("times of events are those of this machine, not of a chip")
    call.put(result, "f", max((end.seconds - start.seconds) * 1e3, 1e-6))


def check_function(call: Call, function: int) -> None:
    """Raise CudaError where a function of the host has no address."""
    if not function:
        raise CudaError("InvalidValue", f"{call.name}: a null pointer for a function")


@row("cudaLaunchHostFunc", "cuLaunchHostFunc")
def launch_host_function(call: Call, stream: Handle, function: Pointer, data: Pointer) -> None:
    """Call a function of the host as work of a stream."""
    check_function(call, function)

    def run(later: Call) -> Touches:
        later.connection.call_host(function, data)
        return Touches()

    work = GraphNode(f"host function {function:#x}", run, kind=NodeKind.HOST, fields=(function, data))
    call.process.submit(call, call.stream(stream), work)


@row("cudaStreamAddCallback", "cuStreamAddCallback")
def add_callback(call: Call, stream: Handle, function: Pointer, data: Pointer, flags: Unsigned) -> None:
    """Call a function of the host with stream and status, as work of a stream."""
    check_function(call, function)

    def run(later: Call) -> Touches:
        later.connection.call_host(function, stream, 0, data)
        return Touches()

    work = GraphNode(f"callback {function:#x}", run, kind=NodeKind.HOST, fields=(function, data))
    call.process.submit(call, call.stream(stream), work)
