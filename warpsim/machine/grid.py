"""Launching a kernel: CTAs in waves, in sequence or in turns, on the memory of a device.

A wave runs to its end before the next one begins, unless the kernel has atomics or ordered accesses, by which
CTAs may wait for each other: then waves take turns. Only so many CTAs are in flight at a time, as on a chip,
so memory does not grow with the grid; to wait for a CTA that has not begun lasts for ever, there as here.
Waves do not run on several threads: NumPy holds the interpreter's lock in operations as short as these, and
two threads were measured to be no faster than one. Processes are: see helper_processes.py and spreading.py
of warpsim/programs/launch.
Knows grids, blocks and how many CTAs go together; does not know text or arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..base.errors import OperandError
from ..isa.architectures import ARCHITECTURES
from ..isa.warps import WARP
from .bind.scope import Variable
from .bind.tuning import Dimensions
from .independence import dependence
from .load.program import Module
from .opcodes.matrix.wgmma_mending import mended
from .run.addition_orders import ADDITIONS, AdditionOrders
from .run.asynchronous import ASYNCHRONY, AT_ONCE
from .run.basic_blocks import count_executions, is_native, statements_are_compiled
from .run.clusters import cluster_of, ctas_of, grid_of
from .run.engines import DEFAULT_MODES, Modes
from .run.events import Observer, Observers, observe
from .run.execute import Allowance
from .run.geometry import ALONE, Cluster, Geometry
from .run.livelock import LivelockDetector, waiting_loops
from .run.memories import Memories
from .run.schedules import Schedule
from .run.wave import Entry, Record, Wave
from .run.windows import PLACES
from .state.cluster_queue import CLUSTER_QUEUE, ClusterQueue
from .state.device import Device
from .state.device_runtime import DeviceRuntime
from .state.freed_memory import keep_freed_memory
from .state.side_tables import SideTable
from .state.spaces import DEVICE_BASE, Bytes
from .state.tensor_cells import RESIDENT
from .state.undefined_metadata import UNDEFINED_METADATA, UndefinedMetadata

LANES = 4096  # of a wave: twice as fast as 1024 on the 512 cubed product, and no slower elsewhere
IN_FLIGHT = 8192  # CTAs that have begun and not ended
QUANTUM = 2_000_000  # statements of a wave before others get a turn, where they hardly wait for each other
TURN = 20_000  # the same where they may well
GRID_LIMITS = (2**31 - 1, 65535, 65535)
BLOCK_LIMITS = (1024, 1024, 64)
_ORDERED = frozenset({"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"})
_ATOMIC = frozenset({"atom", "red", "membar", "fence"})


def dimensions(given: int | Sequence[int], what: str, limits: Dimensions) -> Dimensions:
    """Return up to three positive integers as three; raises OperandError."""
    known = isinstance(given, int | np.integer | Sequence | np.ndarray) and not isinstance(given, str)
    values = (given,) if isinstance(given, int | np.integer) else tuple(given) if known else ()
    if not 1 <= len(values) <= 3 or not all(isinstance(value, int | np.integer) for value in values):
        raise OperandError(f"{what} {given!r}: expected one to three integers")
    x, y, z = (*(int(value) for value in values), 1, 1)[:3]
    for axis, value, limit in zip("xyz", (x, y, z), limits, strict=True):
        if not 1 <= value <= limit:
            raise OperandError(f"{what} {(x, y, z)}: {axis} is 1 to {limit}")
    return x, y, z


def placed(
    entry: Entry, grid: int | Sequence[int], cluster: int | Sequence[int] | None, target: str
) -> tuple[Dimensions, Cluster]:
    """Return the CTAs of the grid, and of a cluster, which None leaves to the kernel; raises OperandError."""
    given = None if cluster is None else dimensions(cluster, "cluster", GRID_LIMITS)
    found = cluster_of(entry, given, target)
    return grid_of(entry, dimensions(grid, "grid", GRID_LIMITS), found), found


def check_block(entry: Entry, block: Dimensions, target: str) -> None:
    """Check that the chip and the kernel can have a block; raises OperandError."""
    threads, most = block[0] * block[1] * block[2], ARCHITECTURES[target].limits.threads
    if threads > most:
        raise OperandError(f"block {block} has {threads} threads: at most {most} on {target}")
    if entry.tuning.block is not None and block != entry.tuning.block:
        raise OperandError(f"block {block}: the kernel says .reqntid {entry.tuning.block}")
    if entry.tuning.most_threads is not None and threads > entry.tuning.most_threads:
        raise OperandError(
            f"block {block} has {threads} threads: the kernel says .maxntid {entry.tuning.most_threads}"
        )


def shared_total(entry: Entry, shared_bytes: int, target: str) -> int:
    """Return the bytes of shared memory of a CTA; raises OperandError for more than the chip has.

    Static bytes alone are checked by Function.overrun.
    """
    if isinstance(shared_bytes, bool) or not isinstance(shared_bytes, int | np.integer) or shared_bytes < 0:
        raise OperandError(f"shared_bytes={shared_bytes!r}: expected an integer, at least 0")
    total = entry.static_shared_bytes + int(shared_bytes)
    most = ARCHITECTURES[target].limits.shared_bytes
    if total > max(most, entry.static_shared_bytes):
        parts = f"{entry.static_shared_bytes} static, {shared_bytes} dynamic"
        raise OperandError(f"{total} bytes of shared memory ({parts}): a CTA on {target} has at most {most}")
    return total


def resident_of(given: int, sizes: Sizes, target: str) -> int:
    """Return the CTAs that a multiprocessor has at a time; raises OperandError for more than it can have."""
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < 1:
        raise OperandError(f"resident={given!r}: expected a positive integer")
    x, y, z = sizes.block
    most = ARCHITECTURES[target].limits.ctas_of_multiprocessor(x * y * z, sizes.shared_bytes)
    if given > max(most, 1):
        what = f"CTAs of {x * y * z} threads and {sizes.shared_bytes} bytes of shared memory"
        raise OperandError(f"resident={given}: a multiprocessor of {target} has at most {most} {what}")
    return int(given)


_WORKSPACE = 64  # bytes; cooperative groups use the second word


def grid_workspace(device: Device, grid: Dimensions) -> int:
    """Return the address of the barrier of a cooperative grid. Raises OperandError for too many CTAs."""
    ctas = grid[0] * grid[1] * grid[2]
    if ctas > IN_FLIGHT:
        raise OperandError(
            f"grid {grid}: {ctas} CTAs of a cooperative launch, at most {IN_FLIGHT} run at one time"
        )
    return device.memory.allocate(_WORKSPACE, "barrier of the grid").address


def symbols_of(device: Device, module: Module) -> dict[str, int]:
    """Return the addresses of the module's variables on a device, allocated at the first call."""
    known = device.symbols.get(module)
    if known is None:
        places = [
            device.memory.allocate(max(variable.size, 1), variable.name, variable.alignment, variable.space)
            for variable in module.variables
        ]
        known = {
            variable.name: place.address for variable, place in zip(module.variables, places, strict=True)
        }
        for variable, allocation in zip(module.variables, places, strict=True):
            content = np.frombuffer(_initial(variable, module, known), np.uint8)
            device.memory.bytes_of(allocation)[: content.size] = content
            if not variable.initial:
                device.memory.unwritten(allocation)
        device.symbols[module] = known
    return known


def _initial(variable: Variable, module: Module, known: Mapping[str, int]) -> bytes:
    """Return the initial bytes of a variable, now that every address is known."""
    content = bytearray(variable.initial)
    for pointer in variable.addresses:
        address = known[pointer.name] if pointer.name in known else module.function_number(pointer.name)
        content[pointer.place : pointer.place + pointer.size] = pointer.content(address)
    return bytes(content)


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """CTAs, threads of a CTA, CTAs of a cluster, and bytes of shared memory of a CTA, static and dynamic."""

    grid: Dimensions
    block: Dimensions
    cluster: Cluster
    shared_bytes: int


def sizes_of(entry: Entry, grid: Any, block: Any, cluster: Any, shared_bytes: int, target: str) -> Sizes:
    """Return the sizes of a launch; raises OperandError for sizes that the kernel cannot have."""
    ctas, clusters = placed(entry, grid, cluster, target)
    threads = dimensions(block, "block", BLOCK_LIMITS)
    check_block(entry, threads, target)
    total = shared_total(entry, shared_bytes, target)
    return Sizes(grid=ctas, block=threads, cluster=clusters, shared_bytes=total)


class Ahead(Protocol):
    """What executes later waves of a launch at the same time, elsewhere."""

    def look(self) -> None:
        """Do what has to be done now and then while a wave is executed."""

    def taken(self, number: int) -> int:
        """Return how many waves from a number on have been executed elsewhere, with all that they did."""

    def interleave(self) -> None:
        """Take note that a wave has not ended in its turn, so that others come in between."""


@dataclass(frozen=True, kw_only=True)
class Launch:
    """All that the waves of one launch have in common."""

    module: Module
    entry: Entry
    device: Device
    grid: Dimensions
    block: Dimensions
    parameters: Bytes
    shared_bytes: int = 0
    cluster: Cluster = ALONE
    resident: int = 1  # CTAs that a multiprocessor has at a time, which share its tensor memory
    schedule: Schedule
    observers: Callable[[], Sequence[Observer]] = tuple
    modes: Modes = DEFAULT_MODES
    lanes: int | None = None  # of a wave; None for LANES
    inferred: dict[int, str] = field(default_factory=dict)  # what waves inferred: statements, and why
    with_c: dict[int, set[bool]] = field(default_factory=dict)  # matrix instructions: whether they added C
    additions: AdditionOrders = field(default_factory=AdditionOrders)  # of floats, by several threads
    undefined: UndefinedMetadata = field(default_factory=UndefinedMetadata)  # that were executed literally
    most_statements: int | None = None  # that are executed before the launch is said not to end
    first: int = 0  # of the waves, the first that is executed,
    count: int | None = None  # and how many; None for all
    runtime: DeviceRuntime | None = None  # what system calls use
    fill: int | None = None  # a seed of the bytes that shared and local memory begin with; None for zeros
    kept: dict[int, tuple[Sequence[Record], Sequence[Record]]] = field(default_factory=dict)
    ahead: Ahead | None = None  # what executes later waves
    compiled: bool = field(default_factory=statements_are_compiled)  # whether basic blocks of statements are,
    native: bool = field(default_factory=is_native)  # and to machine code

    @property
    def together(self) -> int:
        """CTAs of a wave: all clusters of some multiprocessors."""
        lanes = -(-self.block[0] * self.block[1] * self.block[2] // WARP) * WARP * self.cluster.count
        clusters = max((self.lanes or LANES) // lanes, 1)
        return max(clusters // self.resident, 1) * self.resident * self.cluster.count

    @property
    def wave_count(self) -> int:
        """Waves of the whole grid."""
        return -(-self.grid[0] * self.grid[1] * self.grid[2] // self.together)

    @property
    def total(self) -> int:
        """CTAs that are executed."""
        last = self.wave_count if self.count is None else self.first + self.count
        ctas = self.grid[0] * self.grid[1] * self.grid[2]
        return min(last * self.together, ctas) - min(self.first * self.together, ctas)

    @cached_property
    def queue(self) -> ClusterQueue:
        """Return the clusters that have not begun."""
        x, y, z = self.grid
        order, together = self.schedule.ctas(x * y * z // self.cluster.count), self.together
        last = self.wave_count if self.count is None else self.first + self.count
        part = slice(self.first * together // self.cluster.count, last * together // self.cluster.count)
        return ClusterQueue(order if self.count is None else order[part], self.schedule.grants())

    @cached_property
    def gives_work(self) -> bool:
        """Whether clusters may ask for the work of others, so that not all that fit begin at once."""
        return _GIVES_WORK.of(self.entry)

    @cached_property
    def waits_at(self) -> frozenset[int]:
        """Return the branches of loops in which lanes wait for others."""
        return _WAITS_AT.of(self.entry)

    def wave(self, number: int, ctas: npt.NDArray[np.int64]) -> Wave:
        """Return wave ``number``, of the CTAs with these coordinates."""
        geometry = Geometry(ctas, self.grid, self.block, self.cluster)
        memories = Memories(geometry, self.device.memory, self.parameters, self.shared_bytes, self.fill)
        observers = Observers(self.observers())
        wave = Wave(self.entry, geometry, memories, PLACES)
        wave.code = observers.instrument(self.entry.code)
        observe(wave, observers.without_inactive())
        wave.modes, wave.inferred, wave.with_c = self.modes, self.inferred, self.with_c
        wave.runtime = self.runtime or DeviceRuntime(heap=self.device.heap)
        wave.symbols = symbols_of(self.device, self.module)
        wave.compiled, wave.native = self.compiled, self.native
        wave.scheduler.waits_at = self.waits_at
        wave.scheduler.order = self.schedule.order_of(number)
        ASYNCHRONY.set(wave, self.schedule.asynchrony(number))
        CLUSTER_QUEUE.set(wave, self.queue)
        RESIDENT.set(wave, self.resident)
        ADDITIONS.set(wave, self.additions)
        UNDEFINED_METADATA.set(wave, self.undefined)
        if self.schedule.moment not in AT_ONCE:
            wave.code = self._patch_records(wave.code)
        return wave

    def _patch_records(self, code: Sequence[Record]) -> Sequence[Record]:
        """Return the records as ptxas mends them; they are kept, as waves have them in common."""
        if id(code) not in self.kept:
            self.kept[id(code)] = code, mended(code)
        return self.kept[id(code)][1]

    def waves(self) -> Iterator[Wave]:
        """Yield every wave that is executed, made when it is needed; a cluster is never in two waves.

        Of clusters that may ask for the work of others, half begin at first, or as many as fit.
        """
        x, y, _ = self.grid
        count, queue = self.cluster.count, self.queue
        number = self.first
        while len(queue):
            if self.ahead is not None and (taken := self.ahead.taken(number)):
                queue.skip(taken * self.together // count)
                number += taken
                continue
            most = -(-len(queue) // 2) if self.gives_work and number == self.first else len(queue)
            chosen = queue.begin(min(self.together // count, most))
            if count > 1:
                yield self.wave(number, np.array([*ctas_of(self.cluster, self.grid, chosen)], np.int64))
            else:
                cta = np.array(chosen, np.int64)
                yield self.wave(number, np.stack([cta % x, cta // x % y, cta // (x * y)], axis=1))
            number += 1


def run(launch: Launch, progress: Callable[[int, int], None] | None = None) -> npt.NDArray[np.int64]:
    """Execute every CTA; return how often each statement was executed, by the lanes of a wave at once.

    ``progress`` is called with the CTAs done and their number. Raises what statements raise, and Fault.
    """
    keep_freed_memory()
    counts = np.zeros(len(launch.module.code), np.int64)
    total, done = launch.total, 0
    turn = TURN if communicates(launch.entry) and dependence(launch.entry) else QUANTUM
    left, pending, detector = launch.waves(), list[Wave](), LivelockDetector()
    allowance = Allowance(launch.most_statements, None if launch.ahead is None else launch.ahead.look)
    while done + launch.queue.elsewhere * launch.cluster.count < total:
        going, before = list[Wave](), len(pending)
        for wave in _in_flight(pending, left, IN_FLIGHT):
            if not allowance.run(wave, turn):
                going.append(wave)
                if launch.ahead is not None:
                    launch.ahead.interleave()
                continue
            counts += wave.scheduler.counts
            done += len(wave.ctas)
            if progress:
                progress(done, total)
        detector.check(going, len(going) != before or not all(wave.scheduler.vain for wave in going))
        pending, turn = going, min(2 * turn, QUANTUM)
    if launch.compiled:
        count_executions(launch.entry, counts)
    return counts


def _in_flight(pending: list[Wave], left: Iterator[Wave], most: int) -> Iterator[Wave]:
    """Yield the waves that have begun, then new waves while there is room; each has run before the next."""
    yield from pending
    flying = sum(len(wave.ctas) for wave in pending if wave.alive)
    while flying < most and (wave := next(left, None)) is not None:
        yield wave
        flying += len(wave.ctas) if wave.alive else 0


def communicates(entry: Entry) -> bool:
    """Return whether a module has accesses by which CTAs can wait for each other."""
    return _COMMUNICATES.of(entry)


def _communicates(entry: Entry) -> bool:
    statements = (record.statement for record in entry.code)
    return any(
        statement.opcode in _ATOMIC or not _ORDERED.isdisjoint(statement.modifiers)
        for statement in statements
    )


def _gives_work(entry: Entry) -> bool:
    return any(record.statement.opcode == "clusterlaunchcontrol" for record in entry.code)


def _waits_at(entry: Entry) -> frozenset[int]:
    return waiting_loops(entry.code)


# What the code of a kernel has, found once.
_COMMUNICATES, _GIVES_WORK, _WAITS_AT = SideTable(_communicates), SideTable(_gives_work), SideTable(_waits_at)


__all__ = [
    "DEVICE_BASE",
    "GRID_LIMITS",
    "LANES",
    "Launch",
    "Sizes",
    "run",
    "sizes_of",
    "symbols_of",
]
