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
from typing import TYPE_CHECKING, NamedTuple

from ....base.errors import WarpsimError
from ....isa.architectures import ARCHITECTURES
from ....machine.grid import IN_FLIGHT, sizes_of
from ....machine.run.events import Observer
from ....observe.checks.undefined_rows import KIND as UNDEFINED
from ...launch.forks import idle_threads
from ...launch.launch_ahead import LaunchAhead
from ..deadlines import Deadline, shortened
from ..error_codes import CudaError, error_of
from ..host_launch import HostLaunch
from ..messages import Gone
from ..streams import Touches
from .access_log import AccessLog
from .client import Process
from .client_modules import Kernel

if TYPE_CHECKING:
    from ...launch.launching import LaunchReport

Dimensions3 = tuple[int, int, int]
COOPERATIVE, CLUSTER = 2, 4  # of cudaLaunchAttributeID and CUlaunchAttributeID
_PORTABLE_SHARED = 48 << 10
_MANY_CTAS = 256  # of a launch that goes to a cluster of machines
_PATIENCE = 5.0  # seconds without a word
_OF_ALL_MEMORY = ("uninitialised", UNDEFINED)  # findings that other bytes are tried for
Say = Callable[[str], object]


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

    def begin(self, process: Process) -> LaunchAhead:
        """Begin the launch before its turn, in another process."""
        return begin(process, self)

    def taken(self, process: Process, ahead: LaunchAhead) -> Touches:
        """Take what it did before its turn, or execute it."""
        return taken(process, self, ahead)

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
            options={
                "schedule": process.settings.schedule,
                "undefined": process.settings.undefined,
                "cooperative": self.cooperative,
                "resident": process.settings.resident,
            },
        )

    @property
    def label(self) -> str:
        """What findings call the launch."""
        return f"kernel {self.kernel.signature}"

    def check(self) -> None:
        """Raise CudaError for what no launch of the kernel can be."""
        kernel = self.kernel
        static = kernel.launchable.entry.static_shared_bytes
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
    name = request.kernel.signature
    log = AccessLog() if process.order.several or settings.compares else None
    others = [] if log is None else [log]
    try:
        with (
            settings.looking.at(request.on(process)) as watching,
            Deadline(settings.limit, name) as process.deadline,
            idle_threads(),
        ):
            start = time.perf_counter()
            report = _launch(process, request, [*watching, *others], process.printed.append)
    except Gone:
        tally.say(f"{name} was stopped: its program has left")
        raise
    except WarpsimError as error:
        _fail(process, request, error)
        return Touches() if log is None else log.touches()
    seconds = time.perf_counter() - start
    process.together.note(request, seconds)
    tally.launched(name, report, seconds)
    if settings.compares:
        tally.copies.launched(report.open_words, process.memory.data)
    return Touches() if log is None else log.touches()


def _launch(
    process: Process,
    request: LaunchRequest,
    observers: Sequence[Observer],
    output: Callable[[str], object],
    processes: int | None = None,
) -> LaunchReport:
    """Execute a launch. Raises WarpsimError."""
    settings, kernel = process.settings, request.kernel.launchable
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
        observers=observers,
        output=output,
        cooperative=request.cooperative,
        resident=settings.resident,
        scheduler=settings.scheduler if _spreads(request, observers) else None,
        progress=progress(kernel.signature, process.tally.progress),
        processes=processes,
    )
    return replace(report, launched=None)


# --- a launch before its turn ----------------------------------------------------------------------


class Ahead(NamedTuple):
    """What a launch did that was executed before its turn."""

    report: LaunchReport
    seconds: float
    touches: Touches
    printed: Sequence[str]


def begin(process: Process, request: LaunchRequest) -> LaunchAhead:
    """Begin a launch before its turn, in another process."""

    def executed(touched: Observer) -> Ahead:
        log, printed, start = AccessLog(), list[str](), time.perf_counter()
        report = _launch(process, request, [touched, log], printed.append, processes=1)
        if any(finding.kind in _OF_ALL_MEMORY for finding in report.hazards):
            raise RuntimeError("findings depend on bytes that the launch has not read")
        return Ahead(report, time.perf_counter() - start, log.touches(), printed)

    return LaunchAhead(process.memory, executed)


def taken(process: Process, request: LaunchRequest, ahead: LaunchAhead) -> Touches:
    """Take what a launch did before its turn, or execute it, where it would do something else now."""
    with Deadline(None, request.kernel.signature) as process.deadline:
        found: Ahead | None = ahead.take()
    if found is None:
        process.together.wasted += 1
        return execute(process, request)
    process.together.note(request, found.seconds)
    process.printed += found.printed
    process.tally.launched(request.kernel.signature, found.report, found.seconds)
    return found.touches


def _spreads(request: LaunchRequest, observers: Sequence[Observer]) -> bool:
    """Return whether a launch may go to other machines, and is large enough for that."""
    x, y, z = request.grid
    if observers or request.cooperative or x * y * z < _MANY_CTAS:
        return False
    from ...launch.spreading import why_together

    entry, chip = request.kernel.launchable.entry, request.kernel.image.chip
    sizes = sizes_of(entry, request.grid, request.block, request.cluster, request.shared_bytes, chip)
    return not why_together(entry, sizes.cluster.count)


def check_sizes(process: Process, request: LaunchRequest) -> None:
    """Raise CudaError for sizes that the kernel cannot have: what a launch says before its work is done."""
    entry, chip = request.kernel.launchable.entry, request.kernel.image.chip
    try:
        sizes_of(entry, request.grid, request.block, request.cluster, request.shared_bytes, chip)
    except WarpsimError as error:
        _fail(process, request, error)


def _fail(process: Process, request: LaunchRequest, error: WarpsimError) -> None:
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
