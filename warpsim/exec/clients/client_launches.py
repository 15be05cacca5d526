"""A launch of a client's kernel: parameters as bytes, limits of CUDA and of time, what it touches, its end.

A launch that is over its time ends with an error that names the statement it was at, as a watchdog of a
display ends it. Bytes are noted by an observer of all waves, where a process has several streams.

Knows kernels and sizes; does not know which function of CUDA asked.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from ...errors import WarpsimError
from ...isa.architectures import ARCHITECTURES
from ...machine.grid import IN_FLIGHT, sizes_of
from ...machine.run.events import Observer, helper
from ...machine.run.pending import Pending
from ...machine.run.wave import Wave
from ...machine.state.memory_access import MemoryAccess
from ...machine.state.spaces import DEVICE_BASE, Offsets
from ..deadlines import Deadline, shortened
from ..error_codes import CudaError, error_of
from ..host_launch import HostLaunch
from ..messages import Gone
from ..streams import Stretch, Touches
from .client import Process
from .client_modules import Kernel

Dimensions3 = tuple[int, int, int]
COOPERATIVE, CLUSTER = 2, 4  # of cudaLaunchAttributeID and CUlaunchAttributeID
ATTRIBUTE_BYTES = 64  # of cudaLaunchAttributeValue
_PORTABLE_SHARED = 48 << 10
_MANY_CTAS = 256  # of a launch that goes to a cluster of machines
_PATIENCE = 5.0  # seconds without a word
Say = Callable[[str], object]
Mask = npt.NDArray[np.bool_]
_BLOCK = 16  # bits of the places in a block of a mask


@dataclass(frozen=True, kw_only=True)
class LaunchRequest:
    """What a client launches; ``parameters`` are the bytes of each, ``function`` is what the client named.

    ``attributes`` are values of cudaLaunchAttributeValue by cudaLaunchAttributeID.
    """

    kernel: Kernel
    grid: Dimensions3
    block: Dimensions3
    parameters: Sequence[bytes]
    shared_bytes: int = 0
    attributes: Mapping[int, bytes] = field(default_factory=dict)
    function: int = 0

    @property
    def cluster(self) -> Dimensions3 | None:
        """The size of clusters; None for that of the kernel."""
        x, y, z = struct.unpack_from("<3I", self.attributes.get(CLUSTER, bytes(12)))
        return (x, y, z) if (x, y, z) != (0, 0, 0) else None

    @property
    def cooperative(self) -> bool:
        """Whether the grid may synchronise as a whole."""
        return any(self.attributes.get(COOPERATIVE, b"")[:4])

    def on(self, process: Process) -> HostLaunch:
        """Return the launch as observers are given it."""
        return HostLaunch(
            module=self.kernel.image.loaded,
            kernel=self.kernel.launchable,
            grid=self.grid,
            block=self.block,
            parameters=self.parameters,
            shared_bytes=self.shared_bytes,
            cluster=self.cluster,
            device=process.device,
            fills=process.fills,
        )

    @property
    def label(self) -> str:
        """What findings call the launch."""
        return f"kernel {self.kernel.signature}"

    def check(self) -> None:
        """Raise CudaError for what no launch of the kernel can be."""
        kernel = self.kernel
        static = kernel.launchable._entry.static_shared_bytes
        allowed = kernel.dynamic_bytes
        if allowed is None:
            allowed = max(_PORTABLE_SHARED - static, 0)
        if self.shared_bytes > allowed:
            raise CudaError(
                "InvalidValue",
                f"{kernel.signature}: {self.shared_bytes} bytes of dynamic shared memory, where "
                f"{allowed} are allowed: set cudaFuncAttributeMaxDynamicSharedMemorySize",
            )
        ctas = self.grid[0] * self.grid[1] * self.grid[2]
        if self.cooperative and ctas > IN_FLIGHT:
            raise CudaError(
                "CooperativeLaunchTooLarge",
                f"{kernel.signature}: {ctas} CTAs of a cooperative launch, at most {IN_FLIGHT} run at a time",
            )
        if 0 in self.grid or 0 in self.block:
            raise CudaError(
                "InvalidConfiguration", f"{kernel.signature}: grid {self.grid}, block {self.block}"
            )


def parameter_bytes(kernel: Kernel, read: Callable[[int, int], bytes], pointers: int) -> list[bytes]:
    """Return the parameters of a launch, whose addresses lie behind ``pointers`` in the client."""
    parameters = kernel.parameters
    if not parameters:
        return []
    if not pointers:
        raise CudaError("InvalidValue", f"{kernel.name} has {len(parameters)} parameters, and none is given")
    raw = read(pointers, 8 * len(parameters))
    places = [int.from_bytes(raw[8 * index : 8 * index + 8], "little") for index in range(len(parameters))]
    return [read(place, parameter.bytes) for place, parameter in zip(places, parameters, strict=True)]


def packed_parameters(kernel: Kernel, content: bytes) -> list[bytes]:
    """Return the parameters of a launch that come as a block of bytes."""
    last = max((each.offset + each.bytes for each in kernel.parameters), default=0)
    if len(content) < last:
        raise CudaError("InvalidValue", f"{kernel.name}: parameters of {len(content)} bytes, not {last}")
    return [content[each.offset : each.offset + each.bytes] for each in kernel.parameters]


def execute(process: Process, request: LaunchRequest) -> Touches:
    """Execute a launch; an error that no later call survives is kept in the process. Raises CudaError.

    Returns the bytes that it touches, where the process has several streams or is compared with another run.
    """
    settings, tally = process.settings, process.tally
    kernel = request.kernel.launchable
    log = AccessLog() if process.order.several or settings.compares else None
    others = [] if log is None else [log]
    try:
        with (
            settings.looking.at(request.on(process)) as watching,
            Deadline(settings.limit, kernel.signature) as process.deadline,
        ):
            start = time.perf_counter()
            report = kernel(
                request.grid,
                request.block,
                request.parameters,
                request.shared_bytes,
                request.cluster,
                schedule=settings.schedule,
                checks=settings.checks,
                undefined=settings.undefined,
                device=process.device,
                observers=[*watching, *others],
                output=process.printed.append,
                cooperative=request.cooperative,
                resident=settings.resident,
                scheduler=settings.scheduler if _spreads(request, [*watching, *others]) else None,
                progress=progress(kernel.signature, tally.progress),
            )
    except Gone:
        tally.say(f"{kernel.signature} was stopped: its program has left")
        raise
    except WarpsimError as error:
        _failed(process, request, error)
        return Touches() if log is None else log.touches()
    tally.launched(kernel.signature, replace(report, launched=None), time.perf_counter() - start)
    if settings.compares:
        tally.copies.launched(report.open_words, process.memory.data)
    return Touches() if log is None else log.touches()


def _spreads(request: LaunchRequest, observers: Sequence[Observer]) -> bool:
    """Return whether a launch may go to other machines, and is large enough for that."""
    x, y, z = request.grid
    if observers or request.cooperative or x * y * z < _MANY_CTAS:
        return False
    from ...host.spreading import why_together

    entry, chip = request.kernel.launchable._entry, request.kernel.image.chip
    sizes = sizes_of(entry, request.grid, request.block, request.cluster, request.shared_bytes, chip)
    return not why_together(entry, sizes.cluster.count)


def check_sizes(process: Process, request: LaunchRequest) -> None:
    """Raise CudaError for sizes that the kernel cannot have: what a launch says before its work is done."""
    entry, chip = request.kernel.launchable._entry, request.kernel.image.chip
    try:
        sizes_of(entry, request.grid, request.block, request.cluster, request.shared_bytes, chip)
    except WarpsimError as error:
        _failed(process, request, error)


def _failed(process: Process, request: LaunchRequest, error: WarpsimError) -> None:
    """Keep what ended a launch: a fault for all later calls, anything else as the error of this call."""
    known = error_of(error)
    process.tally.fault(request.kernel.signature, error, known.name)
    _hint(process, request)
    if not known.sticky:
        raise CudaError(known.name)
    process.failed = CudaError(known.name)


def _hint(process: Process, request: LaunchRequest) -> None:
    """Name parameters that are addresses of the host: what a forgotten copy passes."""
    for parameter, content in zip(request.kernel.parameters, request.parameters, strict=True):
        if parameter.kind not in ("u64", "b64", "s64"):
            continue
        address = int.from_bytes(content, "little")
        if address >> 40 in (0x55, 0x56, 0x7E, 0x7F):
            process.tally.host_finding(
                "host pointer",
                "note",
                f"{request.kernel.name} {parameter.index}",
                f"{request.kernel.signature}: parameter {parameter.index} is {address:#x}, an address of the "
                "host: copy the data with cudaMemcpy, or allocate it with cudaMallocManaged",
            )


def cluster_limit(kernel: Kernel) -> int:
    """Return the most CTAs of a cluster."""
    limits = ARCHITECTURES[kernel.image.chip].limits
    return limits.cluster if kernel.any_cluster else limits.portable_cluster


# --- how far a launch is ---------------------------------------------------------------------------


def progress(kernel: str, say: Say) -> Callable[[int, int], None]:
    """Return what takes the CTAs done and their total, and says after a while how long it will take."""
    start = time.monotonic()
    due = start + _PATIENCE
    name = shortened(kernel)

    def watch(done: int, total: int) -> None:
        nonlocal due
        now = time.monotonic()
        if now >= due and done < total:
            due = now + _PATIENCE
            left = (now - start) / max(done, 1) * (total - done)
            say(f"{name}: {done} of {total} CTAs, about {left:.0f} s left")

    return watch


# --- which bytes of global memory a launch reads, writes and changes by atomics -----------------------


class ByteMask:
    """Which bytes of a memory are touched; ``blocks`` has which stretches of 64 KiB hold any of them."""

    def __init__(self, size: int) -> None:
        self.bytes: Mask = np.zeros(size, np.bool_)
        self.blocks: Mask = np.zeros(-(-size >> _BLOCK), np.bool_)

    def add(self, offsets: Offsets, size: int) -> None:
        """Note words of so many bytes, each aligned to its size."""
        self.bytes.reshape(-1, size)[offsets // size] = True
        self.blocks[offsets >> _BLOCK] = True

    def add_range(self, first: int, past: int) -> None:
        """Note bytes."""
        self.bytes[first:past] = True
        self.blocks[first >> _BLOCK : -(-past >> _BLOCK)] = True

    def stretches(self) -> tuple[Stretch, ...]:
        """Return stretches of addresses."""
        found = list[Stretch]()
        for first, past in _runs(self.blocks):
            start = first << _BLOCK
            part = self.bytes[start : past << _BLOCK]
            base = DEVICE_BASE + start
            found += [(base + begin, base + end) for begin, end in _runs(part)]
        return tuple(found)


def _runs(mask: Mask) -> list[tuple[int, int]]:
    """Return where stretches of what is set begin and end."""
    edges = np.flatnonzero(np.diff(mask.view(np.int8), prepend=0, append=0))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


class AccessLog(Observer):
    """The bytes of one launch, as masks over the memory of the device."""

    def __init__(self) -> None:
        self.masks: dict[str, ByteMask] = {}

    def load(self, wave: Wave, access: MemoryAccess) -> None:
        """Note what is read."""
        self._note(wave, access, "reads")

    def store(self, wave: Wave, access: MemoryAccess) -> None:
        """Note what is written."""
        self._note(wave, access, "writes")

    def atomic(self, wave: Wave, access: MemoryAccess) -> None:
        """Note what atomics change."""
        self._note(wave, access, "atomics")

    def completed(self, wave: Wave, pending: Pending) -> None:
        """Note what an asynchronous operation has read and written."""
        for name, all_of in (("reads", pending.reads), ("writes", pending.writes)):
            for stretches in all_of:
                if stretches.space == "global":
                    mask = self._mask(wave, name)
                    for first, past in stretches.ranges.tolist():
                        mask.add_range(first, past)

    def touches(self) -> Touches:
        """Return all bytes as stretches of addresses."""
        return Touches(
            *(self.masks[name].stretches() if name in self.masks else () for name in Touches._fields)
        )

    @helper
    def _note(self, wave: Wave, access: MemoryAccess, name: str) -> None:
        if access.memory is wave.memories.device.data:
            self._mask(wave, name).add(access.offsets, access.size)

    @helper
    def _mask(self, wave: Wave, name: str) -> ByteMask:
        size = wave.memories.device.data.size
        mask = self.masks.get(name)
        if mask is None or mask.bytes.size < size:
            grown = ByteMask(size)
            if mask is not None:
                grown.bytes[: mask.bytes.size], grown.blocks[: mask.blocks.size] = mask.bytes, mask.blocks
            self.masks[name] = mask = grown
        return mask
