"""A wave: CTAs that are executed together, all lanes at one statement in one operation.

Lanes that diverge continue as paths. The path with the lowest program counter runs first, so paths
converge without a reconvergence stack. A path that only repeats a loop yields to the others, so that
no lane waits forever for lanes that could run (PTX ISA 9.1, section 3.1 "independent thread scheduling").
Knows paths and the memories of its CTAs; does not know text, arguments, or what a statement means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...errors import Fault, OperandError, UndefinedBehavior, WarpsimError
from ...isa.warps import WARP
from ..bind.tuning import Dimensions
from ..state import spaces
from ..state.device_runtime import DeviceRuntime
from ..state.lanes import DivergentPath, Frame, Lanes, Mask, Values
from ..state.spaces import Bytes, InvalidAccess, Offsets
from .asynchronous import Asynchrony, finish_all
from .cta_barriers import Barriers
from .engines import DEFAULT_MODES
from .events import Observer, Observers
from .geometry import Cluster, Geometry
from .memories import Memories
from .scheduler import Scheduler
from .waits import LaneWait
from .warp_scheduling import in_step
from .windows import PLACES

if TYPE_CHECKING:
    from .entries import Entry, Record

_VAIN = 4096  # rounds of loops without a store, after which other waves get their turn

Step = Callable[["Wave", DivergentPath, Lanes], "bool | None"]  # true where paths have changed


class Wave:
    """Some CTAs of a launch: their geometry, memories and scheduler, and the registers of their lanes.

    ``alive`` counts the lanes that have not exited, ``alive_of_cta`` (CTAs,) those of each CTA.
    """

    def __init__(
        self, entry: Entry, geometry: Geometry, memories: Memories, observers: Sequence[Observer] = ()
    ) -> None:
        self.entry: Entry = entry
        self.geometry = geometry
        self.memories = memories
        watching = Observers(observers)
        self.code: Sequence[Record] = watching.instrument(entry.code)
        self.observers = watching.without_inactive()
        self.slots: dict[object, object] = {}  # what groups of opcodes keep for the wave (state/slots.py)
        self.modes = DEFAULT_MODES
        self.symbols: Mapping[str, int] = {}  # addresses of the module's variables in device memory
        self.runtime: DeviceRuntime | None = None  # what system calls use
        self.inferred: dict[int, str] = {}  # statements whose results rest on inferred behaviour, and why
        started = Lanes(geometry.thread < geometry.threads)
        self.alive = started.count
        self.alive_of_cta = np.full(len(geometry.ctas), geometry.threads)
        self.alive_mask: Mask = started.mask
        self.frame = Frame(entry.registers)
        first = DivergentPath(entry.start, self.frame, started)
        self.scheduler = Scheduler(first, len(self.code), in_step)
        self.barriers = Barriers(len(geometry.ctas), geometry.lanes)
        self.leaving: list[Callable[[Wave, Lanes], None]] = []  # called with lanes that have exited
        self.asynchrony = Asynchrony()  # what has been issued and has not completed
        memories.reserve_local(entry.local_bytes)

    # --- geometry: properties, since most opcodes and observers use them ---

    @property
    def ctas(self) -> npt.NDArray[np.int64]:
        """Return ``(CTAs, 3)``: the coordinates of the CTAs."""
        return self.geometry.ctas

    @property
    def grid(self) -> Dimensions:
        """Return the CTAs of the grid."""
        return self.geometry.grid

    @property
    def block(self) -> Dimensions:
        """Return the threads of a CTA by axis."""
        return self.geometry.block

    @property
    def cluster(self) -> Cluster:
        """Return the shape of the clusters."""
        return self.geometry.cluster

    @property
    def threads(self) -> int:
        """Return the number of threads of a CTA."""
        return self.geometry.threads

    @property
    def warps(self) -> int:
        """Return the number of warps of a CTA."""
        return self.geometry.warps

    @property
    def lanes(self) -> int:
        """Return the number of lanes, padding included."""
        return self.geometry.lanes

    @property
    def cta(self) -> npt.NDArray[np.int64]:
        """Return ``(lanes,)``: the place of each lane's CTA in the wave."""
        return self.geometry.cta

    @property
    def thread(self) -> npt.NDArray[np.int64]:
        """Return ``(lanes,)``: the number of each lane in its CTA."""
        return self.geometry.thread

    # --- running ---

    def run(self, budget: int | None = None) -> bool:
        """Execute until every lane has exited, or ``budget`` statements; return whether all have exited.

        With a budget, a wave that only repeats loops stops early: it may wait for another wave.
        Raises Fault (deadlock, trespass) and what statements raise, pointing at the statement.
        """
        end = None if budget is None else self.scheduler.statements + budget
        asynchrony = self.asynchrony
        while self.scheduler.paths or (self.scheduler.waiting and asynchrony.resolve_stall(self)):
            if end is not None and (self.scheduler.statements >= end or self.scheduler.rounds >= _VAIN):
                self.scheduler.vain, self.scheduler.rounds = self.scheduler.rounds >= _VAIN, 0
                return False
            if self.scheduler.paths:
                self._advance(self.scheduler.order(self.scheduler, self.geometry))
            if asynchrony.flying:
                asynchrony.pass_time(self)
        if self.scheduler.waiting:
            raise self.deadlock()
        if asynchrony.flying:
            finish_all(self)
        return True

    def _advance(self, path: DivergentPath) -> None:
        """Execute statements until paths change, or this path reaches another."""
        code = self.code
        others = [one.pc for one in self.scheduler.paths if one is not path and one.frame is path.frame]
        stop = min((pc for pc in others if pc > path.pc), default=-1)
        record = code[path.pc]
        try:
            while True:
                record = code[path.pc]
                self.scheduler.statements += 1
                self.scheduler.counts[path.pc] += 1
                lanes: Lanes | None = path.lanes
                if record.guard >= 0:
                    lanes = self._guarded(path, record)
                if lanes is not None and record.step(self, path, lanes):
                    return
                path.pc += 1
                if path.pc == stop:
                    return
        except InvalidAccess as invalid:
            raise self.fault(record, invalid.lane, self._described(record, invalid)) from None
        except WarpsimError as error:
            if error.location is None:
                error.at(record.statement.location())
            raise

    def _guarded(self, path: DivergentPath, record: Record) -> Lanes | None:
        """Return the lanes of a path whose guard holds; None for none."""
        value = self.read(path, record.guard)
        mask = path.lanes.mask & (~value if record.negated else value)
        count = int(np.count_nonzero(mask))
        if count == path.lanes.count:
            return path.lanes
        return Lanes(mask) if count else None

    # --- registers ---

    def read(self, path: DivergentPath, register: int) -> Values:
        """Return a register in all lanes; registers never written read as 0, and observers are notified."""
        frame = path.frame
        value = frame.values[register]
        if value is None or (frame.partial and register in frame.partial):
            if self.observers.hear(Observer.uninitialised):
                self._notify_of_missing(path, register)
            if value is None:
                types = self.entry.dtypes if frame.function is None else frame.function.dtypes
                return np.zeros(self.lanes, types[register])
        return value

    def _notify_of_missing(self, path: DivergentPath, register: int) -> None:
        """Notify observers of lanes that execute the statement and have never written a register."""
        written = path.frame.partial.get(register)
        if written is not None and path.lanes.within(written):
            return
        missing, record = path.frame.missing(register, path.lanes), self.code[path.pc]
        if missing.any():
            guard = path.frame.values[record.guard] if record.guard not in (-1, register) else None
            lacking = missing if guard is None else missing & (guard ^ record.negated)
            self.observers.uninitialised(self, path, register, lacking)

    def write(self, path: DivergentPath, lanes: Lanes, register: int, values: Values) -> None:
        """Write a register in some lanes of a path."""
        path.frame.write(register, values, lanes, lanes.count == self.alive)

    # --- paths ---

    def resume(self, path: DivergentPath, lanes: Lanes) -> bool:
        """Return some lanes to their caller; the return of the kernel itself is its exit."""
        frame = path.frame
        if frame.caller is None:
            return self.retire(path, lanes)
        if frame.leave is not None:
            frame.leave(lanes)
        frame.lanes -= lanes.count
        self.scheduler.leave(path, lanes)
        self.scheduler.paths.append(DivergentPath(frame.resume, frame.caller, lanes))
        return True

    def retire(self, path: DivergentPath, lanes: Lanes) -> bool:
        """Retire lanes that exit; barriers that lacked these lanes only are complete."""
        self.scheduler.leave(path, lanes)
        self.alive -= lanes.count
        self.alive_mask = self.alive_mask & ~lanes.mask
        self.alive_of_cta -= self.count_of(lanes)
        self.observers.exit(self, path, lanes)
        for look in self.leaving:
            look(self, lanes)
        self.barriers.look_again(self)
        self._look_again(lanes)
        return True

    def _look_again(self, exited: Lanes) -> None:
        """Wake lanes that wait for others of their warps, some of which have exited, to count them again."""
        reasons = {one.waits for one in self.scheduler.waiting if isinstance(one.waits, LaneWait)}
        if reasons:
            warps = exited.mask.reshape(-1, WARP).any(axis=1)
            for reason in reasons:
                self.scheduler.wake(reason, np.repeat(warps, WARP))

    def count_of(self, lanes: Lanes) -> npt.NDArray[np.int64]:
        """Return ``(CTAs,)``: how many of the lanes are in each CTA."""
        return self.geometry.count_of(lanes)

    # --- waiting ---

    def deadlock(self) -> Fault:
        """Return the error of a deadlock: which lanes wait, at which statement and for what."""
        lines = list[str]()
        places = [self.waiting_record(path).statement.location() for path in self.scheduler.waiting]
        for path, place in zip(self.scheduler.waiting, places, strict=True):
            explain = getattr(path.waits, "explain", None)
            reason = explain(self, path) if explain else path.waits
            lines.append(f"{self.describe_lanes(path.lanes)} at {place} for {reason}")
        counts = ", ".join(
            self.barriers.counts(self, int(self.cta[self.scheduler.waiting[0].lanes.index[0]]))
        )
        detail = f" ({counts})" if counts else ""
        return Fault(f"deadlock: nobody can go on{detail}; waiting: " + "; ".join(lines), places[0])

    def waiting_record(self, path: DivergentPath) -> Record:
        """Return the statement that lanes wait at: they continue behind it, or repeat it."""
        return self.code[path.pc if isinstance(path.waits, LaneWait) else path.pc - 1]

    # --- memories ---

    def local_bytes_of(self, frame: Frame) -> int:
        """Return the bytes of local memory that an activation uses."""
        used: int = self.entry.local_bytes if frame.function is None else frame.function.local_bytes
        return used

    def locate(self, space: str, lanes: Lanes, addresses: Values, size: int) -> tuple[Bytes, Offsets]:
        """Return the memory of a space and the offsets of the words that lanes address. Raises InvalidAccess.

        ``addresses`` has one value for each of the lanes, or is of shape ().
        """
        where = spaces.integers_of(np.broadcast_to(addresses, (lanes.count,)))
        return PLACES[space](self, lanes, where, size)

    # --- descriptions ---

    def infer(self, pc: int, why: str) -> None:
        """Record that the result of a statement rests on inferred behaviour, and why."""
        self.inferred[pc] = why

    def describe_lanes(self, lanes: Lanes) -> str:
        """Return lanes in words: CTA, warp and lane of the first, and how many more."""
        first = int(lanes.index[0])
        more = f" and {lanes.count - 1} more" if lanes.count > 1 else ""
        return f"{self.describe_lane(first)}{more}"

    def describe_lane(self, lane: int) -> str:
        """Return CTA, warp and lane of a lane of the wave, in words."""
        return self.geometry.describe_lane(lane)

    def name_execution(self, error: WarpsimError, warp: int, lanes: int) -> None:
        """Name in the message of an error the first warp of an execution by so many lanes."""
        error.message += f" [{self.describe_lane(WARP * warp).rpartition(',')[0]}]"

    def operand_error(self, error: WarpsimError, where: str) -> WarpsimError:
        """Return the error of the value of an operand as that of the kernel, with CTA and warpgroup."""
        kind = UndefinedBehavior if isinstance(error, OperandError) else type(error)
        return kind(f"{error.message} [{where}]")

    def fault(self, record: Record, lane: int, message: str) -> Fault:
        """Return the error of a lane at a statement."""
        return Fault(f"{message} [{self.describe_lane(lane)}]", record.statement.location())

    def _described(self, record: Record, invalid: InvalidAccess) -> str:
        return f"{record.statement.mnemonic}: address {invalid.address:#x} {invalid.reason}"
