"""Events of a launch, and the observers that are notified of them.

An observer derives from ``Observer`` and overrides the methods of the events that it wants; each takes the
wave first. A public method that takes a wave and is not an event, or an event with other parameters, is an
error when the class is made; mypy checks the types. A wave sends its events to one ``Observers``, which calls
those observers that override the event, in their order. Nothing is built for an event without observers:

    if observers_of(wave).hear(Observer.load):
        observers_of(wave).load(wave, MemoryAccess(...))

Knows what happened; does not know what observers do with it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache, cached_property, lru_cache
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from ...base.errors import Location, OperandError
from ...isa.instruction import Instruction
from ...isa.operand_places.placements import Inputs
from ..state.lanes import DivergentPath, Lanes, Mask, Values
from ..state.memory_access import MemoryAccess
from ..state.side_tables import SideTable
from ..state.spaces import Offsets
from ..state.tensor_cells import Block
from .pending import Pending
from .wave import Record, Wave

Numbers = npt.NDArray[np.intp]  # of CTAs, clusters, warps or warpgroups in the wave
Groups = npt.NDArray[np.intp]  # numbers of warpgroups in the wave
Ranges = npt.NDArray[np.int64]  # (n, 2): the first byte, the byte after the last, in the memory of a CTA
Chunks = npt.NDArray[np.int64]
CHUNK = 16  # bytes that wgmma reads as a whole: a row of a core matrix
Method = TypeVar("Method", bound=Callable[..., object])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MatrixExecution:
    """A matrix instruction that is done: ``inputs`` and ``d`` have an axis of executions in front.

    ``pc`` is the place of its statement, which the paths of the wave may have left long ago. ``warps``
    (executions,) are the numbers in the wave of the warps that executed it, of the first warp of each
    warpgroup for wgmma, of the warp whose thread issued it for tcgen05.mma. ``whole`` says that all lanes of
    the wave did. ``addresses`` are those of operands in tensor memory.
    """

    pc: int
    record: Record
    instruction: Instruction
    inputs: Inputs
    d: npt.NDArray[Any]
    warps: Numbers
    whole: bool = False
    addresses: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BarrierArrival:
    """Lanes come to barrier ``number`` of their CTAs; ``threads`` is its count, None for all of the CTA.

    ``waits`` is False for bar.arrive.
    """

    path: DivergentPath
    lanes: Lanes
    number: int
    threads: int | None
    waits: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupWait:
    """Lanes have waited until at most ``most`` of their groups of a ``family`` are in flight.

    ``family`` is "bulk" or "wgmma"; with ``reads`` only the sources have been read.
    """

    path: DivergentPath
    lanes: Lanes
    family: str
    most: int
    reads: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterUse:
    """Registers of a wgmma that a statement reads and writes, by name; ``place`` is the statement, and
    ``copies`` says that it is a mov."""

    reads: tuple[str, ...]
    writes: tuple[str, ...]
    place: Callable[[], Location]
    copies: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TensorAccess:
    """A statement touches tensor memory, asynchronously: ``lane`` issues it, as the ``number``-th group, from
    0, of a ``family`` of groups (``asynchronous.py``).

    ``in_order`` says that what the lane issues in this family completes in the order of issue.
    """

    path: DivergentPath
    lane: int
    family: str
    number: int
    reads: tuple[Block, ...] = ()
    writes: tuple[Block, ...] = ()
    in_order: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TensorColumns:
    """A warp allocates columns of tensor memory for its CTA, or frees them."""

    path: DivergentPath
    lane: int
    first: int
    size: int
    allocates: bool


class WgmmaStatement(Protocol):
    """A statement wgmma.mma_async: ``registers`` has the numbers of D, A and metadata."""

    @property
    def form(self) -> Instruction:
        """The instruction on the module's target."""

    @property
    def sources(self) -> Mapping[str, object]:
        """A and the metadata, where they are in registers."""

    @property
    def registers(self) -> Mapping[str, tuple[int, ...]]:
        """The numbers of registers by "D", "A", "metadata"."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Share:
    """The warpgroups of one execution that have the same descriptors and scale-d, and the bytes that each
    of them reads."""

    groups: Groups
    a: int | None
    b: int
    scale_d: bool
    ranges: Ranges

    @cached_property
    def key(self) -> tuple[bytes, bytes]:
        """The same for the same warpgroups and bytes."""
        return self.ranges.tobytes(), self.groups.tobytes()

    @cached_property
    def chunks(self) -> Chunks:
        """The chunks of 16 bytes in the memory of a CTA that each of the warpgroups reads."""
        return _chunks(self.ranges.tobytes())


@lru_cache(maxsize=1024)
def _chunks(ranges: bytes) -> Chunks:
    bounds = np.frombuffer(ranges, np.int64).reshape(-1, 2) // CHUNK
    return np.unique(np.concatenate([np.arange(first, past) for first, past in bounds.tolist()]))


def helper(method: Method) -> Method:
    """Mark a public method of an observer that takes a wave and is not an event."""
    method.is_helper = True  # type: ignore[attr-defined]
    return method


class Observer:
    """Base of all observers: a method for each event, which does nothing here.

    ``active`` is read once, after ``instrument``: an observer that is not active receives no events.
    """

    active: bool = True

    def instrument(self, code: Sequence[Record]) -> Sequence[Record]:
        """Return the records that the wave executes: those of the module, or some that do more."""
        return code

    # --- memory accesses ---

    def load(self, wave: Wave, access: MemoryAccess) -> None:
        """Lanes read memory."""

    def store(self, wave: Wave, access: MemoryAccess) -> None:
        """Lanes are about to write memory."""

    def atomic(self, wave: Wave, access: MemoryAccess) -> None:
        """Lanes are about to read and change memory."""

    def copying(self, wave: Wave, access: MemoryAccess) -> None:
        """Lanes issue cp.async: the bytes of shared memory that it will write."""

    def landed(self, wave: Wave, access: MemoryAccess) -> None:
        """Handle bytes of cp.async that have been written."""

    def passed(self, wave: Wave, lanes: Lanes, source: Offsets, target: Offsets, size: int) -> None:
        """Lanes have passed a variable to a function or back: bytes of local memory that were copied."""

    def mbarrier(self, wave: Wave, access: MemoryAccess) -> None:
        """Lanes read or change mbarrier objects."""

    def ordered(self, wave: Wave, lanes: Lanes) -> None:
        """Lanes acquire what others have released."""

    def fence(self, wave: Wave, path: DivergentPath, lanes: Lanes, words: tuple[str, ...]) -> None:
        """Lanes execute a fence with these modifiers."""

    # --- registers and results ---

    def uninitialised(self, wave: Wave, path: DivergentPath, register: int, mask: Mask) -> None:
        """Lanes read a register, by number, that they have never written."""

    def unspecified(self, wave: Wave, path: DivergentPath, lanes: Lanes, what: str) -> None:
        """Lanes get a result that PTX leaves undefined."""

    def unusual(self, wave: Wave, path: DivergentPath, lane: int, what: str) -> None:
        """Handle what PTX allows and few kernels mean."""

    def setmaxnreg(self, wave: Wave, path: DivergentPath, warp: int, moves: bool) -> None:
        """Handle a warp that sets its number of registers; ``moves`` where that number changes."""

    def setmaxnreg_apart(self, wave: Wave, path: DivergentPath, warp: int, other: int, before: int) -> None:
        """Another warp of the warpgroup has executed setmaxnreg at another statement, ``before``."""

    def setmaxnreg_ignored(self, wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        """Handle a setmaxnreg without effect: the kernel does not state its number of registers."""

    # --- barriers ---

    def arriving(self, wave: Wave, arrival: BarrierArrival) -> None:
        """Lanes come to a barrier of their CTAs."""

    def meeting(self, wave: Wave, number: int, arrived: Mask, waited: Mask) -> None:
        """Handle a complete barrier: the lanes that arrived, and those of them that waited."""

    def barrier(self, wave: Wave, number: int, ctas: Numbers, path: DivergentPath | None) -> None:
        """Handle a complete barrier of these CTAs; ``number`` is -1 for that of a cluster.

        ``path`` is that of all lanes where they came together, else None.
        """

    def arrived(self, wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        """Lanes arrive at the barrier of their cluster."""

    def cluster_barrier(self, wave: Wave, clusters: Numbers) -> None:
        """Handle complete barriers of these clusters (``ClusterBarrier.of(wave)``)."""

    def cluster_met(self, wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        """Lanes continue behind the barrier of their cluster."""

    def met(self, wave: Wave, lanes: Lanes, members: Values, orders: bool) -> None:
        """Lanes of warps synchronize: all members of their masks are there."""

    def exit(self, wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        """Lanes have exited."""

    # --- mbarriers ---

    def initialised(self, wave: Wave, path: DivergentPath, lanes: Lanes, offsets: Offsets) -> None:
        """Lanes have initialised mbarriers at these offsets of shared memory."""

    def invalidated(self, wave: Wave, path: DivergentPath, lanes: Lanes, offsets: Offsets) -> None:
        """Lanes have invalidated mbarriers."""

    def updated(
        self, wave: Wave, path: DivergentPath, lanes: Lanes, offsets: Offsets, ends: dict[int, int]
    ) -> None:
        """Lanes have arrived at mbarriers, or expect bytes; ``ends`` counts completed phases by offset."""

    def acquired(self, wave: Wave, path: DivergentPath, lanes: Lanes, offsets: Offsets) -> None:
        """Lanes have seen the end of a phase of mbarriers."""

    def bytes_came(self, wave: Wave, pending: Pending, offset: int, over: bool) -> None:
        """Bytes of an operation complete at an mbarrier; ``over`` where that completes the phase."""

    # --- asynchronous operations ---

    def issued(self, wave: Wave, path: DivergentPath, pending: Pending) -> None:
        """Handle an operation that is issued."""

    def fetched(self, wave: Wave, pending: Pending) -> None:
        """Handle an operation that has read its source."""

    def completed(self, wave: Wave, pending: Pending) -> None:
        """Handle an operation that has written its destination; its mbarriers are signalled afterwards."""

    def drained(self, wave: Wave, wait: GroupWait) -> None:
        """Lanes have waited for groups of operations."""

    def unfinished(self, wave: Wave, pendings: Sequence[Pending]) -> None:
        """All lanes have exited, and these operations have not completed."""

    def tensor_access(self, wave: Wave, access: TensorAccess) -> None:
        """Handle what is about to be issued, by a lane or a warp, and touches tensor memory."""

    def tensor_columns(self, wave: Wave, change: TensorColumns) -> None:
        """Columns of tensor memory have been allocated, or are about to be freed."""

    def map_used(self, wave: Wave, path: DivergentPath, lanes: Lanes, address: int) -> None:
        """Handle a lane that uses the tensor map at an address of global memory."""

    def map_changed(
        self, wave: Wave, path: DivergentPath, lanes: Lanes, address: int, released: bool
    ) -> None:
        """Handle a lane that changes the tensor map at an address; ``released`` with a fence."""

    # --- matrix instructions ---

    def matrix(self, wave: Wave, execution: MatrixExecution) -> None:
        """Warps or warpgroups have executed a matrix instruction."""

    def wgmma(self, wave: Wave, path: DivergentPath, statement: WgmmaStatement, share: Share) -> None:
        """Warpgroups are about to issue a wgmma."""

    def wgmma_order(
        self,
        wave: Wave,
        path: DivergentPath,
        groups: Numbers,
        verb: Literal["fence", "commit", "wait"],
        most: int,
    ) -> None:
        """Warpgroups execute wgmma.fence, commit_group or wait_group with at most ``most`` in flight."""

    def differing(self, wave: Wave, path: DivergentPath, group: int, role: str, values: Values) -> None:
        """Handle an operand that must be the same in all lanes of a warpgroup and is not: its values."""

    def touched(self, wave: Wave, path: DivergentPath, lanes: Lanes, use: RegisterUse) -> None:
        """Lanes are about to use registers of a wgmma (sent by records of checks/wgmma/register_uses.py)."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, method in vars(cls).items():
            if inspect.isfunction(method) and not name.startswith("_"):
                _check_method(cls, name, method)


EVENTS: dict[str, tuple[str, ...]] = {  # parameters by name, without self
    name: tuple(inspect.signature(method).parameters)[1:]
    for name, method in vars(Observer).items()
    if inspect.isfunction(method) and name != "instrument" and not name.startswith("_")
}


def _check_method(owner: type, name: str, method: Callable[..., object]) -> None:
    """Raise OperandError for a method that is neither an event with its parameters nor a helper."""
    given = tuple(inspect.signature(method).parameters)[1:]
    wanted = EVENTS.get(name)
    if wanted is not None and len(given) != len(wanted):
        raise OperandError(
            f"{owner.__name__}.{name} takes ({', '.join(given)}): the event has ({', '.join(wanted)})"
        )
    if wanted is None and given[:1] == ("wave",) and not hasattr(method, "is_helper"):
        near = get_close_matches(name, EVENTS, 1, 0)[0]
        raise OperandError(
            f"{owner.__name__}.{name}: no event has this name; the nearest is {near}. The name of a helper "
            "begins with an underscore, or it is marked by @helper"
        )


class Observers(Observer):
    """Several observers together: each method calls those of the observers that override it, in order."""

    def __init__(self, observers: Iterable[Observer]) -> None:
        self.members = tuple(observers)
        types = tuple(type(member) for member in self.members)
        self._heard: set[Callable[..., object]] = set()
        for name, places in _listeners(types):
            self._heard.add(getattr(Observer, name))
            methods = [getattr(self.members[place], name) for place in places]
            setattr(self, name, methods[0] if len(methods) == 1 else _in_turn(methods))

    def hear(self, event: Callable[..., object]) -> bool:
        """Whether some observer overrides a method of Observer, as ``Observer.load``."""
        return event in self._heard

    def instrument(self, code: Sequence[Record]) -> Sequence[Record]:
        """Return the records as all observers, in their order, make them."""
        for member in self.members:
            code = member.instrument(code)
        return code

    def without_inactive(self) -> Observers:
        """Return those that are active."""
        return Observers(member for member in self.members if member.active)

    def __bool__(self) -> bool:
        return bool(self.members)

    def __iter__(self) -> Iterator[Observer]:
        return iter(self.members)


@cache
def _listeners(types: tuple[type, ...]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return the events that some of the types override, and the places of these types."""
    for kind in types:
        if not issubclass(kind, Observer):
            raise OperandError(f"{kind.__name__} is not an observer: it derives from {__name__}.Observer")
    found = {
        name: tuple(
            place for place, kind in enumerate(types) if getattr(kind, name) is not getattr(Observer, name)
        )
        for name in EVENTS
    }
    return tuple((name, places) for name, places in found.items() if places)


def _in_turn(methods: Sequence[Callable[..., None]]) -> Callable[..., None]:
    def send(*event: object) -> None:
        for method in methods:
            method(*event)

    return send


def mention_pattern(wave: Wave, path: DivergentPath, lane: int, unusual: str, base_offset: int) -> None:
    """Record that where the swizzle pattern of a tile lies is inferred, and notify observers.

    Tiles that begin inside a pattern with base offset 0 are common: kernels of CUTLASS step from row to row.
    """
    wave.infer(path.pc, _PATTERN)
    if base_offset and observers_of(wave).hear(Observer.unusual):
        observers_of(wave).unusual(wave, path, lane, f"reads a tile whose {unusual}")


_PATTERN = "inferred: rows of a swizzled tile count from where the base offset places the pattern"


def _unobserved(wave: Wave) -> Observers:
    return Observers(())


_OBSERVERS = SideTable(_unobserved)
observers_of = _OBSERVERS.of  # the observers of a wave


def observe(wave: Wave, observers: Observers) -> Observers:
    """Send the events of a wave to these observers; return those that had them before."""
    before = observers_of(wave)
    _OBSERVERS.set(wave, observers)
    wave.uninitialised = observers.uninitialised if observers.hear(Observer.uninitialised) else None
    return before
