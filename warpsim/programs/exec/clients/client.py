"""A client: one process that uses CUDA, with its memory, modules, streams and errors.

Knows what a process owns, and lets go of it when the process has left. Does not know functions of CUDA.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from ....base.errors import WarpsimError
from ....base.files.archives import read_content
from ....machine.host.device import Device
from ....machine.state.spaces import DEVICE_BASE, Allocation
from ..deadlines import Deadline
from ..error_codes import CudaError
from ..fills import Fills
from ..graphs import Capture, Graph, GraphNode, NodeKind
from ..messages import Channel
from ..processes import HostMemory, working_folder
from ..settings import Settings
from ..streams import PER_THREAD, Clock, Conflict, Event, Order, Stream, Touches, join
from ..tally import Tally
from .client_memory import DEVICE, PAGE, PINNED, ClientMemory, Kind, OutOfMemory
from .client_modules import ModulePool, Modules
from .held_launches import HeldLaunches
from .pending_work import IN_ORDER, Pending, PendingWork
from .shared_writes import SharedWrites

if TYPE_CHECKING:
    from ...launch.launch_ahead import LaunchAhead

_TEXT_BYTES = 256  # of a string that the client keeps
_FIRST_HANDLE, _HANDLE_STEP = 0x10000, 16


@dataclass(eq=False)
class Context:
    """A context: what the driver has threads make current. ``flags`` are those of its making."""

    handle: int
    flags: int = 0
    primary: bool = False
    uses: int = 0


class AddressRange(Protocol):
    """A range of addresses that a program places memory in: functions/memory/virtual_memory.py has it."""

    address: int
    size: int


@dataclass(eq=False)
class Registered:
    """Memory of the host that cudaHostRegister was given; ``place`` is its address on the device, once that
    is asked for: its pages then are those of the device.
    """

    size: int
    flags: int
    place: int | None = None


@dataclass(eq=False)
class Process:
    """A client process; ``first`` is the address of its first exported function of the driver."""

    number: int
    first: int
    settings: Settings
    tally: Tally
    pool: ModulePool = field(default_factory=ModulePool)
    device: Device = field(init=False)
    failed: CudaError | None = None  # an error that no later call survives
    failure_given: bool = False  # whether a call has returned it: a launch that fails does not
    printed: list[str] = field(default_factory=list)  # by device code, until the next synchronisation
    handles: dict[int, Any] = field(default_factory=dict)
    events: dict[int, Event] = field(default_factory=dict)
    limits: dict[int, int] = field(default_factory=dict)
    current: int = 0  # the context of the call that is answered
    uses_runtime: bool = False  # whose primary context threads then have

    def __post_init__(self) -> None:
        self.client_memory = HostMemory(self.number)
        self.memory = ClientMemory(self.settings.memory_bytes)
        self.device = Device(self.settings.chip, memory=self.memory)
        self.order = Order()
        self.fills = Fills()
        self.shared_writes = SharedWrites(self.memory)
        self.pending = PendingWork(self.settings.schedule)
        self.together = HeldLaunches(self.settings)
        self._given_work = count(1)
        self.captures: dict[int, Capture] = {}  # by the handle of the stream
        self.modules = Modules(self.settings.chip, self.tally.program, self.pool)
        self.ranges: list[AddressRange] = []  # that the program places memory in
        self.used_pools: dict[str, int] = {}  # handles, by the kind of memory
        self.hints: dict[int, dict[int, Any]] = {}  # what was said about allocations, by address
        self.graph_memory: set[int] = set()  # addresses that nodes of graphs have allocated
        self.owners: dict[int, int] = {}  # contexts, by addresses and handles
        self.primary = Context(handle=0, primary=True)
        self.primary.handle = self.current = self.handle(self.primary)
        self.deadline: Deadline | None = None  # of the last launch
        self._numbers = count(1)
        self._texts: dict[str, int] = {}
        self._words: dict[bytes, int] = {}
        self.threads = 0  # that are connected
        self.registered: dict[int, Registered] = {}  # host memory that cudaHostRegister knows, by address
        self.descriptor = -1  # of the memory of the device, in the client

    # --- handles ---

    def handle(self, value: Any) -> int:
        """Return a new handle of an object."""
        number = _FIRST_HANDLE + _HANDLE_STEP * len(self.handles)
        self.handles[number] = value
        if not isinstance(value, Context):
            self.owners[number] = self.current
        return number

    def held(self, handle: int, kind: type, what: str) -> Any:
        """Return the object of a handle; raises CudaError "InvalidResourceHandle"."""
        found = self.handles.get(handle)
        if not isinstance(found, kind):
            name = "DeviceUninitialized" if kind is Context else "InvalidResourceHandle"
            raise CudaError(name, f"no {what} has the handle {handle:#x}")
        return found

    def drop(self, handle: int, kind: type, what: str) -> Any:
        """Forget a handle; return its object. Raises CudaError."""
        found = self.held(handle, kind, what)
        self.handles[handle] = None
        return found

    # --- memory ---

    def allocate(self, size: int, what: str, kind: Kind = DEVICE) -> Allocation:
        """Allocate memory of the device; raises CudaError "MemoryAllocation"."""
        name = f"{what} #{next(self._numbers)}"
        try:
            found = self.memory.host_allocate(size, name, kind)
        except OutOfMemory as error:
            raise CudaError("MemoryAllocation", f"{what}: {error}") from None
        if kind is not _STRING:
            self.owners[found.address] = self.current
        return found

    def shared_allocation(self, channel: Channel, size: int, what: str, kind: Kind) -> Allocation:
        """Allocate memory that the client reads and writes, too."""
        allocation = self.allocate(size, what, kind)
        if channel.protect(allocation.address, max(size, 1), accessible=True):
            self.memory.host_free(allocation.address)
            raise CudaError("MemoryAllocation", f"{what}: the client cannot map {size} bytes")
        return allocation

    def registered_at(self, address: int) -> tuple[int, Registered] | None:
        """Return the registered memory that an address lies in, with its own address; None for none."""
        for base, found in self.registered.items():
            if base <= address < base + found.size:
                return base, found
        return None

    def map_registered(self, channel: Channel, base: int) -> int:
        """Return the address on the device of registered memory, whose pages both then have.

        What other threads write there during the call is lost. Raises CudaError.
        """
        found = self.registered[base]
        if found.place is None:
            first, past = _pages(base, found.size)
            for other, held in self.registered.items():
                start, end = _pages(other, held.size)
                if held.place is not None and start < past and first < end:
                    raise CudaError("NotSupported", f"{base:#x} shares a page with registered {other:#x}")
            content = self.client_memory.read(channel, first, past - first)
            allocation = self.allocate(past - first, "registered memory", PINNED)
            self.bytes_at(allocation.address, past - first)[:] = np.frombuffer(content, np.uint8)
            offset = allocation.address - DEVICE_BASE
            if channel.map_over(self.descriptor, first, past - first, offset, shared=True) != first:
                self.memory.host_free(allocation.address)
                raise CudaError("NotSupported", f"{base:#x}: the client cannot map its memory again")
            found.place = allocation.address + base - first
        return found.place

    def unregister(self, channel: Channel, base: int) -> None:
        """Forget registered memory; its pages are the client's own again, as they are. Raises KeyError."""
        found = self.registered.pop(base)
        if found.place is not None:
            first, past = _pages(base, found.size)
            address = found.place - (base - first)
            channel.map_over(self.descriptor, first, past - first, address - DEVICE_BASE, shared=False)
            self.memory.withhold(address)
            self.owners.pop(address, None)

    def free(self, channel: Channel, address: int) -> None:
        """Free an allocation; raises CudaError for an address where none begins."""
        try:
            allocation, kind = self.memory.host_free(address)
        except KeyError:
            raise CudaError("InvalidValue", f"{address:#x} {self.where(address)}") from None
        self.fills.forget(allocation)
        self.hints.pop(address, None)
        self.owners.pop(address, None)
        if kind.shared:
            channel.protect(allocation.address, max(allocation.size, 1), accessible=False)

    def on_device(self, address: int) -> bool:
        """Return whether an address is one of device memory, allocated or not."""
        return DEVICE_BASE <= address < DEVICE_BASE + self.memory.capacity

    def where(self, address: int) -> str:
        """Describe an address that is none of an allocation's first byte."""
        found = self.memory.find(address)
        if found is not None:
            return f"is byte {address - found.address} of {found}"
        if not self.on_device(address):
            return "is memory of the host"
        if any(each.address <= address < each.address + each.size for each in self.ranges):
            return "is in a range of reserved addresses, where cuMemMap and cuMemSetAccess give no access"
        return self.memory.describe(address)

    def bytes_at(self, address: int, size: int) -> npt.NDArray[np.uint8]:
        """Return bytes of the device, to read or write. Raises CudaError, naming the nearest allocation."""
        if size and self.memory.find(address, size) is None:
            found = self.memory.find(address)
            place = f"leave {found} from byte {address - found.address} on" if found else self.where(address)
            raise CudaError("InvalidValue", f"{size} bytes at {address:#x}: {place}")
        start = address - DEVICE_BASE
        return self.memory.data[start : start + size]

    def fresh_at(self, address: int, size: int) -> npt.NDArray[np.uint8] | None:
        """Return which bytes of the device are unwritten (255); None where all are written."""
        fresh, start = self.memory.fresh, address - DEVICE_BASE
        return None if fresh is None else fresh[start : start + size]

    def kept_text(self, channel: Channel, text: str) -> int:
        """Return the address of a string in memory that the client reads."""
        if text not in self._texts:
            content = text.encode(errors="surrogateescape") + b"\0"
            allocation = self.shared_allocation(channel, max(len(content), _TEXT_BYTES), "a string", _STRING)
            self.bytes_at(allocation.address, len(content))[:] = np.frombuffer(content, np.uint8)
            self._texts[text] = allocation.address
        return self._texts[text]

    def kept_words(self, channel: Channel, words: bytes) -> int:
        """Return the address of bytes in memory that the client reads, and that nothing writes again."""
        if words not in self._words:
            found = self.shared_allocation(channel, max(len(words), _TEXT_BYTES), "words", _STRING)
            self.bytes_at(found.address, len(words))[:] = np.frombuffer(words, np.uint8)
            self._words[words] = found.address
        return self._words[words]

    # --- files of the client ---

    def file_content(self, name: str) -> bytes:
        """Return a file that the client names. Raises CudaError "FileNotFound"."""
        try:
            return read_content(working_folder(self.number) / name)
        except (OSError, WarpsimError) as error:
            raise CudaError("FileNotFound", f"{name}: {error}") from None

    # --- streams ---

    def stream(self, handle: int, own: int) -> Stream:
        """Return a stream by its handle; ``own`` is that of the thread's stream. Raises CudaError."""
        if handle == PER_THREAD:
            handle = own
            if handle not in self.order.streams:
                self.order.create(handle, blocking=True)
        found = self.order.streams.get(handle)
        if found is None:
            raise CudaError("InvalidResourceHandle", f"{handle:#x} is not a stream")
        return found

    def submit(self, call: Any, stream: Stream, work: GraphNode) -> None:
        """Do work of a stream, now; or keep it, where the stream is being captured."""
        capture = self.captures.get(stream.handle)
        if capture is not None:
            capture.add(stream.handle, work)
            return
        clock = self.order.begin(stream)
        self._schedule_work(call, work, stream.line, clock)

    def _schedule_work(self, call: Any, work: GraphNode, line: int, clock: Clock) -> None:
        """Do work now; or, where a schedule chooses, when the host waits; or long launches together."""
        pending = Pending(work, line, clock, call.name, next(self._given_work))
        if self.settings.schedule != IN_ORDER:
            self.pending.add(pending)
        elif self.order.several and self.together.takes(work):
            self.together.add(call, pending)
        else:
            self.do_held()
            self._do(call, pending)

    def do_held(self) -> None:
        """Do launches that are held. Raises CudaError for what a launch ends with."""
        if self.together:
            self.together.do(lambda request: request.begin(self), self._do, lambda: self.failed is not None)

    def _do(self, call: Any, pending: Pending, ahead: LaunchAhead | None = None) -> None:
        work = pending.work
        self.tally.copies.place = pending.number
        if ahead is not None:
            touches = work.fields.taken(self, ahead)
        else:
            touches = work.run(call) if work.run and work.enabled else Touches()
        if self.settings.compares and work.kind is not NodeKind.COPY:  # which is compared itself
            self.shared_writes.note(touches)
        if self.order.several:
            self._note(self.order.done(pending.line, pending.clock, work.label, touches))

    def do_until(self, call: Any, needed: Clock | None = None) -> None:
        """Do the work before a clock, all where none is given. Raises CudaError for what it ends with."""
        while (pending := self.pending.next(needed)) is not None:
            try:
                self._do(replace(call, name=pending.name), pending)
            finally:
                self.pending.ended(pending)
            if self.failed is not None:
                raise CudaError(self.failed.name)

    def wait(self, call: Any, clock: Clock) -> None:
        """Let the host wait for what a clock says."""
        self.do_until(call, clock)
        self.order.wait(clock, forget=not self.pending)
        self._gives(call)

    def wait_for_all(self, call: Any) -> None:
        """Let the host wait for all streams."""
        self.do_until(call)
        self.order.wait_for_all()
        self._gives(call)

    def _gives(self, call: Any) -> None:
        """Keep what the host may read without a copy, where it is compared with that of another run.

        Until the host has waited for all work, what it may read depends on what is still to be done.
        """
        if self.settings.compares and self.order.all_waited():
            self.tally.copies.place = next(self._given_work)
            for found, content in self.shared_writes.given():
                first = found.address - DEVICE_BASE
                self.tally.copies.add(f"{call.name}, {found}", content, first, shared=True)

    def run_graph(self, call: Any, stream: Stream, graph: Graph) -> None:
        """Do the work of a graph as work of a stream."""
        start = self.order.begin(stream)
        ends: dict[GraphNode, Clock] = {}
        for place, node in enumerate(graph.ordered()):
            before = [ends[other] for other in node.after]
            line, clock = self.order.branch(stream, place, join(start, *before))
            self._schedule_work(call, node, line, clock)
            ends[node] = clock
        self.order.meet(stream, (start, *ends.values()))

    def _note(self, conflict: Conflict | None) -> None:
        if conflict is not None:
            allocation = self.memory.find(conflict.byte)
            place = (
                f"byte {conflict.byte - allocation.address} of {allocation}" if allocation else "host memory"
            )
            self.tally.stream_race(conflict, place)

    # --- the end ---

    def reset(self, channel: Channel) -> None:
        """Forget all memory, streams, events and graphs, and what was set, as cudaDeviceReset does."""
        for base in list(self.registered):
            self.unregister(channel, base)
        for address, kind in list(self.memory.kinds.items()):
            if kind.shared and kind is not _STRING:
                self.free(channel, address)
        self.memory.clear(_STRING)
        for handle, value in self.handles.items():
            if isinstance(value, Stream | Event | Graph | GraphNode):
                self.handles[handle] = None
        self.failed, self.failure_given = None, False
        self.order, self.fills = Order(), Fills()
        self.captures.clear()
        self.ranges.clear()
        self.graph_memory.clear()
        self.limits.clear()
        self.owners.clear()
        self.device = Device(self.settings.chip, memory=self.memory)

    def destroy(self, channel: Channel, context: int) -> None:
        """Free the memory of a context, and forget its handles; registered memory stays with the client."""
        self.order.wait_for_all()
        for base, found in list(self.registered.items()):
            if found.place is not None and self.owners.get(found.place // PAGE * PAGE) == context:
                self.unregister(channel, base)
        for place in [place for place, owner in self.owners.items() if owner == context]:
            del self.owners[place]
            if place in self.memory.kinds:
                self.free(channel, place)
            elif isinstance(self.handles.get(place), Stream):
                self.order.end(place)
            if place in self.handles:
                self.handles[place] = None

    def close(self) -> None:
        """Free all that the process had."""
        self.modules.close(reusable=self.failed is None and not (self.deadline and self.deadline.stopped))
        self.client_memory.close()
        self.memory.close()


_STRING = Kind(name="string", shared=True)


def _pages(address: int, size: int) -> tuple[int, int]:
    """Return the bounds of the pages that bytes lie in."""
    return address // PAGE * PAGE, -(-(address + size) // PAGE) * PAGE
