"""A wave: CTAs that are executed together, all lanes at one statement in one operation.

Lanes that part go on as paths; the one with the lowest program counter steps first, so that they meet again
without a stack of reconvergence points, and one that only goes round in a loop lets the others pass, so that
nobody waits in vain for lanes that could run (PTX ISA 9.1, section 3.1 "independent thread scheduling").
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
from ..state.spaces import Bytes, DeviceMemory, InvalidAccess, Offsets
from .asynchronous import Asynchrony, finish_all
from .clusters import ALONE, Cluster
from .cta_barriers import Barriers
from .engines import DEFAULT_MODES
from .events import Observer, Observers
from .waits import LaneWait
from .warp_scheduling import PATIENCE, Order, in_step
from .windows import PLACES

if TYPE_CHECKING:
    from .entries import Entry, Record

_VAIN = 4096  # rounds of loops without a store, after which other waves get their turn

Step = Callable[["Wave", DivergentPath, Lanes], "bool | None"]  # true where paths have changed


class Wave:
    """Some CTAs of a launch: ``ctas`` are their coordinates (CTAs, 3).

    Lanes are numbered CTA by CTA; each CTA is padded to whole warps with lanes that never run.
    ``cta`` and ``thread`` (lanes,) are the place of its CTA in the wave and its number in the CTA. The CTAs
    of a cluster lie side by side.
    """

    def __init__(
        self,
        entry: Entry,
        *,
        ctas: npt.NDArray[np.int64],
        grid: Dimensions,
        block: Dimensions,
        memory: DeviceMemory,
        parameters: Bytes,
        shared_bytes: int,
        observers: Sequence[Observer] = (),
        cluster: Cluster = ALONE,
    ) -> None:
        self.entry: Entry = entry
        self.code: Sequence[Record] = entry.code
        self.ctas: npt.NDArray[np.int64] = ctas
        self.grid: Dimensions = grid
        self.block: Dimensions = block
        self.cluster: Cluster = cluster
        self.threads = block[0] * block[1] * block[2]
        self.warps: int = -(-self.threads // WARP)  # of a CTA
        self.lanes = len(ctas) * self.warps * WARP
        number = np.arange(self.lanes)
        self.cta: npt.NDArray[np.int64] = number // (self.warps * WARP)
        self.thread: npt.NDArray[np.int64] = number % (self.warps * WARP)
        self.memory = memory
        self.parameters = parameters
        self.shared_bytes: int = shared_bytes
        self.shared_stride = max(-(-shared_bytes // 128) * 128, 128)
        self.shared: Bytes = spaces.padded(len(ctas) * self.shared_stride)
        self.shared_base = self.cta * self.shared_stride
        self.local_stride = 0
        self.local: Bytes = spaces.padded(0)
        watching = Observers(observers)
        self.code = watching.instrument(self.code)
        self.observers = watching.without_inactive()
        self.slots: dict[object, object] = {}  # what groups of opcodes keep for the wave (state/slots.py)
        self.modes = DEFAULT_MODES
        self.symbols: Mapping[str, int] = {}  # addresses of the module's variables in device memory
        self.runtime: DeviceRuntime | None = None  # what system calls use
        self.inferred: dict[int, str] = {}  # statements that rest on what is inferred, and why
        everyone = Lanes(self.thread < self.threads)
        self.alive = everyone.count
        self.alive_of_cta = np.full(len(ctas), self.threads)
        self.alive_mask: Mask = everyone.mask
        self.frame = Frame(entry.registers)
        self.paths = [DivergentPath(entry.start, self.frame, everyone)]
        self.waiting: list[DivergentPath] = []
        self.barriers = Barriers(len(ctas), self.lanes)
        self.leaving: list[Callable[[Wave, Lanes], None]] = []  # called with lanes that have exited
        self.statements = 0  # executed so far, one for each path
        self.rounds = 0  # of loops since something was last stored
        self.counts = [0] * len(self.code)  # of executions of each statement, however many lanes
        self.vain = False  # whether it has stopped because it only went round
        self.waits_at: frozenset[int] = frozenset()  # the branches of loops that wait for others
        self.order: Order = in_step  # which path is next
        self.asynchrony = Asynchrony()  # what has been issued and has not completed
        self.reserve_local(entry.local_bytes)

    # --- running ---

    def run(self, budget: int | None = None) -> bool:
        """Execute until every lane has exited, or so many statements; whether all have.

        With a budget, a wave that only goes round in loops stops early: it may wait for another one.
        Raises Fault (deadlock, trespass) and what statements raise, pointing at the statement.
        """
        end = None if budget is None else self.statements + budget
        asynchrony = self.asynchrony
        while self.paths or (self.waiting and asynchrony.nobody_goes_on(self)):
            if end is not None and (self.statements >= end or self.rounds >= _VAIN):
                self.vain, self.rounds = self.rounds >= _VAIN, 0
                return False
            if self.paths:
                self._advance(self.order(self))
            if asynchrony.flying:
                asynchrony.pass_time(self)
        if self.waiting:
            raise self.deadlock()
        if asynchrony.flying:
            finish_all(self)
        return True

    def _advance(self, path: DivergentPath) -> None:
        """Execute statements until paths change, or this one meets another."""
        code = self.code
        others = [one.pc for one in self.paths if one is not path and one.frame is path.frame]
        stop = min((pc for pc in others if pc > path.pc), default=-1)
        record = code[path.pc]
        try:
            while True:
                record = code[path.pc]
                self.statements += 1
                self.counts[path.pc] += 1
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
        """The lanes of a path whose guard holds; None for none."""
        value = self.read(path, record.guard)
        mask = path.lanes.mask & (~value if record.negated else value)
        count = int(np.count_nonzero(mask))
        if count == path.lanes.count:
            return path.lanes
        return Lanes(mask) if count else None

    # --- registers ---

    def read(self, path: DivergentPath, register: int) -> Values:
        """A register in all lanes; what was never written reads as 0; observers are notified."""
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

    def jump(self, path: DivergentPath, lanes: Lanes, target: int) -> bool:
        """Some lanes of a path go on elsewhere, the others behind this statement."""
        if lanes.count == path.lanes.count:
            if target <= path.pc:
                path.turns += (turns := self._turns(path.pc))
                self.rounds += turns
                if len(self.paths) == 1 and path.turns % PATIENCE:
                    path.pc = target - 1  # goes on at once: nobody to meet
                    return False
            path.pc = target
            return True
        turns = path.turns + (self._turns(path.pc) if target <= path.pc else 0)
        self._leave(path, lanes)
        self.paths.append(DivergentPath(target, path.frame, lanes, turns))
        return True

    def _turns(self, pc: int) -> int:
        """For how many rounds one of the loop counts that a branch closes."""
        return PATIENCE if pc in self.waits_at else 1

    def _leave(self, path: DivergentPath, lanes: Lanes) -> None:
        """Lanes leave a path; those that stay, if any, go on behind this statement."""
        if lanes.count == path.lanes.count:
            self.paths.remove(path)
        else:
            path.lanes = Lanes(path.lanes.mask & ~lanes.mask)
            path.pc += 1

    def split(self, path: DivergentPath, parts: Sequence[Lanes]) -> list[DivergentPath]:
        """Parts of a path's lanes stand at this statement by themselves; the others go on behind it."""
        own = [DivergentPath(path.pc, path.frame, part, path.turns) for part in parts]
        self._leave(path, Lanes(np.logical_or.reduce([part.mask for part in parts])))
        self.paths += own
        return own

    def scatter(self, path: DivergentPath, lanes: Lanes, chosen: Values, targets: Sequence[int]) -> bool:
        """Each lane goes on at the target that its value of ``chosen`` numbers."""
        self._leave(path, lanes)
        for number in np.unique(chosen[lanes.index]).tolist():
            part = Lanes(lanes.mask & (chosen == number))
            self.paths.append(DivergentPath(targets[number], path.frame, part, path.turns))
        return True

    def call(self, path: DivergentPath, lanes: Lanes, entered: Sequence[DivergentPath]) -> bool:
        """Some lanes go on in other frames; they come back behind this statement."""
        self._leave(path, lanes)
        self.paths += entered
        for one in entered:
            one.frame.lanes += one.lanes.count
        return True

    def resume(self, path: DivergentPath, lanes: Lanes) -> bool:
        """Some lanes return to their caller; the kernel's own return is the exit."""
        frame = path.frame
        if frame.caller is None:
            return self.retire(path, lanes)
        if frame.leave is not None:
            frame.leave(lanes)
        frame.lanes -= lanes.count
        self._leave(path, lanes)
        self.paths.append(DivergentPath(frame.resume, frame.caller, lanes))
        return True

    def retire(self, path: DivergentPath, lanes: Lanes) -> bool:
        """Some lanes exit; barriers that waited for them only are complete."""
        self._leave(path, lanes)
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
        """Lanes that wait for others of their warps, some of which have exited, count them again."""
        reasons = {one.waits for one in self.waiting if isinstance(one.waits, LaneWait)}
        if reasons:
            warps = exited.mask.reshape(-1, WARP).any(axis=1)
            for reason in reasons:
                self.wake(reason, np.repeat(warps, WARP))

    def count_of(self, lanes: Lanes) -> npt.NDArray[np.int64]:
        """How many of the lanes are in each CTA."""
        return np.bincount(self.cta[lanes.index], minlength=len(self.ctas))

    # --- waiting ---

    def wait(self, path: DivergentPath, lanes: Lanes, reason: object, *, behind: bool = True) -> bool:
        """Some lanes stop until somebody wakes them; they go on behind this statement, or repeat it."""
        halted = DivergentPath(path.pc + behind, path.frame, lanes, path.turns)
        halted.waits = reason
        self._leave(path, lanes)
        self.waiting.append(halted)
        return True

    def wake(self, reason: object, mask: Mask) -> None:
        """Lanes that wait for that reason run again."""
        left = list[DivergentPath]()
        for path in self.waiting:
            woken = path.lanes.mask & mask if path.waits == reason else None
            if woken is None or not woken.any():
                left.append(path)
                continue
            self.paths.append(DivergentPath(path.pc, path.frame, Lanes(woken), path.turns))
            path.lanes = Lanes(path.lanes.mask & ~mask)
            if path.lanes.count:
                left.append(path)
        self.waiting = left

    def release(self, halted: DivergentPath, mask: Mask) -> None:
        """Those of some lanes that wait and are in a mask go on behind their statement."""
        freed = Lanes(halted.lanes.mask & mask)
        if not freed.count:
            return
        self.paths.append(DivergentPath(halted.pc + 1, halted.frame, freed, halted.turns))
        halted.lanes = Lanes(halted.lanes.mask & ~mask)
        if not halted.lanes.count:
            self.waiting.remove(halted)

    def deadlock(self) -> Fault:
        """Who waits where, for what."""
        lines = list[str]()
        places = [self.waiting_record(path).statement.location() for path in self.waiting]
        for path, place in zip(self.waiting, places, strict=True):
            explain = getattr(path.waits, "explain", None)
            reason = explain(self, path) if explain else path.waits
            lines.append(f"{self.describe_lanes(path.lanes)} at {place} for {reason}")
        counts = ", ".join(self.barriers.counts(self, int(self.cta[self.waiting[0].lanes.index[0]])))
        detail = f" ({counts})" if counts else ""
        return Fault(f"deadlock: nobody can go on{detail}; waiting: " + "; ".join(lines), places[0])

    def waiting_record(self, path: DivergentPath) -> Record:
        """The statement that lanes wait at: they may go on behind it, or repeat it."""
        return self.code[path.pc if isinstance(path.waits, LaneWait) else path.pc - 1]

    # --- memories ---

    def reserve_local(self, size: int) -> None:
        """Give every lane at least that many bytes of local memory; what is there stays."""
        if size <= self.local_stride:
            return
        stride = -(-size // 16) * 16
        grown = np.zeros((self.lanes, stride), np.uint8)
        grown[:, : self.local_stride] = self.local[: self.lanes * self.local_stride].reshape(self.lanes, -1)
        self.local, self.local_stride = grown.reshape(-1), stride

    def local_bytes_of(self, frame: Frame) -> int:
        """Bytes of local memory that an activation takes up."""
        used: int = self.entry.local_bytes if frame.function is None else frame.function.local_bytes
        return used

    def locate(self, space: str, lanes: Lanes, addresses: Values, size: int) -> tuple[Bytes, Offsets]:
        """The memory of a space, and where in it the words lie that some lanes address. Raises InvalidAccess.

        ``addresses`` has one value for each of the lanes, or is of shape ().
        """
        where = spaces.integers_of(np.broadcast_to(addresses, (lanes.count,)))
        return PLACES[space](self, lanes, where, size)

    # --- descriptions ---

    def infer(self, pc: int, why: str) -> None:
        """What a statement did here rests on what is inferred, for that reason."""
        self.inferred[pc] = why

    def describe_lanes(self, lanes: Lanes) -> str:
        """Lanes in words: CTA, warp and lane of the first, and how many more."""
        first = int(lanes.index[0])
        more = f" and {lanes.count - 1} more" if lanes.count > 1 else ""
        return f"{self.describe_lane(first)}{more}"

    def describe_lane(self, lane: int) -> str:
        """CTA, warp and lane of a lane of the wave, in words."""
        cta = ", ".join(map(str, self.ctas[self.cta[lane]].tolist()))
        thread = int(self.thread[lane])
        return f"CTA ({cta}), warp {thread // WARP}, lane {thread % WARP}"

    def name_execution(self, error: WarpsimError, warp: int, lanes: int) -> None:
        """Name in the message of an error the first warp of an execution by so many lanes."""
        error.message += f" [{self.describe_lane(WARP * warp).rpartition(',')[0]}]"

    def operand_error(self, error: WarpsimError, where: str) -> WarpsimError:
        """Return the error of the value of an operand as that of the kernel, with CTA and warpgroup."""
        kind = UndefinedBehavior if isinstance(error, OperandError) else type(error)
        return kind(f"{error.message} [{where}]")

    def fault(self, record: Record, lane: int, message: str) -> Fault:
        """An error of one lane at a statement."""
        return Fault(f"{message} [{self.describe_lane(lane)}]", record.statement.location())

    def _described(self, record: Record, invalid: InvalidAccess) -> str:
        return f"{record.statement.mnemonic}: address {invalid.address:#x} {invalid.reason}"
