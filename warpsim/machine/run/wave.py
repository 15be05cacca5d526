"""A wave: CTAs that are executed together, all lanes at one statement in one operation.

Lanes that part go on as fronts; the one with the lowest program counter steps first, so that they meet again
without a stack of reconvergence points, and one that only goes round in a loop lets the others pass, so that
nobody waits in vain for lanes that could run (PTX ISA 9.1, section 3.1 "independent thread scheduling").
Knows fronts and the memories of its CTAs; does not know text, arguments, or what a statement means.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...errors import Fault, WarpsimError
from ...isa.warps import WARP
from ..state import spaces
from ..state.lanes import Frame, Front, Lanes, Mask, Values
from ..state.spaces import Bytes, DeviceMemory, Offsets, Trespass
from ..state.windows import PLACES
from .asynchronous import Asynchrony, finish_all
from .clusters import ALONE, Cluster
from .cta_barriers import Barriers
from .waits import LaneWait
from .warp_scheduling import PATIENCE, Order, in_step

if TYPE_CHECKING:
    from ..load.entries import Entry, Record

_VAIN = 4096  # rounds of loops without a store, after which other waves get their turn

Dimensions = tuple[int, int, int]
Step = Callable[["Wave", Front, Lanes], "bool | None"]  # true where fronts have changed


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
        observers: Sequence[Any] = (),
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
        self.observers = tuple(observers)
        for observer in self.observers:
            if hasattr(observer, "instrument"):
                self.code = observer.instrument(self.code)
        self.observers = tuple(one for one in observers if getattr(one, "active", True))
        self._listening: tuple[Any, ...] = ()  # the observers
        self._listeners: dict[str, list[Callable[..., None]]] = {}  # whose methods these are, by event
        self.kept: dict[
            str, Any
        ] = {}  # what opcode groups keep for the wave: special registers, async copies
        everyone = Lanes(self.thread < self.threads)
        self.alive = everyone.count
        self.alive_of_cta = np.full(len(ctas), self.threads)
        self.alive_mask: Mask = everyone.mask
        self.frame = Frame(entry.registers)
        self.fronts = [Front(entry.start, self.frame, everyone)]
        self.waiting: list[Front] = []
        self.barriers = Barriers(len(ctas), self.lanes)
        self.leaving: list[Callable[[Wave, Lanes], None]] = []  # who is told of lanes that have exited
        self.statements = 0  # executed so far, one for each front
        self.rounds = 0  # of loops since something was last stored
        self.counts = [0] * len(self.code)  # of executions of each statement, however many lanes
        self.vain = False  # whether it has stopped because it only went round
        self.waits_at: frozenset[int] = frozenset()  # the branches of loops that wait for others
        self.order: Order = in_step  # which front is next
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
        while self.fronts or (self.waiting and asynchrony.nobody_goes_on(self)):
            if end is not None and (self.statements >= end or self.rounds >= _VAIN):
                self.vain, self.rounds = self.rounds >= _VAIN, 0
                return False
            if self.fronts:
                self._advance(self.order(self))
            if asynchrony.flying:
                asynchrony.pass_time(self)
        if self.waiting:
            raise self.deadlock()
        if asynchrony.flying:
            finish_all(self)
        return True

    def _advance(self, front: Front) -> None:
        """Execute statements until fronts change, or this one meets another."""
        code = self.code
        others = [one.pc for one in self.fronts if one is not front and one.frame is front.frame]
        stop = min((pc for pc in others if pc > front.pc), default=-1)
        record = code[front.pc]
        try:
            while True:
                record = code[front.pc]
                self.statements += 1
                self.counts[front.pc] += 1
                lanes: Lanes | None = front.lanes
                if record.guard >= 0:
                    lanes = self._guarded(front, record)
                if lanes is not None and record.step(self, front, lanes):
                    return
                front.pc += 1
                if front.pc == stop:
                    return
        except Trespass as trespass:
            raise self.fault(record, trespass.lane, self._described(record, trespass)) from None
        except WarpsimError as error:
            if error.location is None:
                error.at(record.statement.location())
            raise

    def _guarded(self, front: Front, record: Record) -> Lanes | None:
        """The lanes of a front whose guard holds; None for none."""
        value = self.read(front, record.guard)
        mask = front.lanes.mask & (~value if record.negated else value)
        count = int(np.count_nonzero(mask))
        if count == front.lanes.count:
            return front.lanes
        return Lanes(mask) if count else None

    # --- registers ---

    def read(self, front: Front, register: int) -> Values:
        """A register in all lanes; what was never written reads as 0, and observers are told."""
        frame = front.frame
        value = frame.values[register]
        if value is None or (frame.partial and register in frame.partial):
            if self.observers:
                self._tell_of_missing(front, register)
            if value is None:
                types = self.entry.dtypes if frame.function is None else frame.function.dtypes
                return np.zeros(self.lanes, types[register])
        return value

    def _tell_of_missing(self, front: Front, register: int) -> None:
        """Observers are told of lanes that execute the statement and have never written a register."""
        written = front.frame.partial.get(register)
        if written is not None and front.lanes.within(written):
            return
        missing, record = front.frame.missing(register, front.lanes), self.code[front.pc]
        if missing.any():
            guard = front.frame.values[record.guard] if record.guard not in (-1, register) else None
            lacking = missing if guard is None else missing & (guard ^ record.negated)
            self.tell("uninitialised", front, register, lacking)

    def write(self, front: Front, lanes: Lanes, register: int, values: Values) -> None:
        """Write a register in some lanes of a front."""
        front.frame.write(register, values, lanes, lanes.count == self.alive)

    # --- fronts ---

    def jump(self, front: Front, lanes: Lanes, target: int) -> bool:
        """Some lanes of a front go on elsewhere, the others behind this statement."""
        if lanes.count == front.lanes.count:
            if target <= front.pc:
                front.turns += (turns := self._turns(front.pc))
                self.rounds += turns
                if len(self.fronts) == 1 and front.turns % PATIENCE:
                    front.pc = target - 1  # goes on at once: nobody to meet
                    return False
            front.pc = target
            return True
        turns = front.turns + (self._turns(front.pc) if target <= front.pc else 0)
        self._leave(front, lanes)
        self.fronts.append(Front(target, front.frame, lanes, turns))
        return True

    def _turns(self, pc: int) -> int:
        """For how many rounds one of the loop counts that a branch closes."""
        return PATIENCE if pc in self.waits_at else 1

    def _leave(self, front: Front, lanes: Lanes) -> None:
        """Lanes leave a front; those that stay, if any, go on behind this statement."""
        if lanes.count == front.lanes.count:
            self.fronts.remove(front)
        else:
            front.lanes = Lanes(front.lanes.mask & ~lanes.mask)
            front.pc += 1

    def split(self, front: Front, parts: Sequence[Lanes]) -> list[Front]:
        """Parts of a front's lanes stand at this statement by themselves; the others go on behind it."""
        own = [Front(front.pc, front.frame, part, front.turns) for part in parts]
        self._leave(front, Lanes(np.logical_or.reduce([part.mask for part in parts])))
        self.fronts += own
        return own

    def scatter(self, front: Front, lanes: Lanes, chosen: Values, targets: Sequence[int]) -> bool:
        """Each lane goes on at the target that its value of ``chosen`` numbers."""
        self._leave(front, lanes)
        for number in np.unique(chosen[lanes.index]).tolist():
            part = Lanes(lanes.mask & (chosen == number))
            self.fronts.append(Front(targets[number], front.frame, part, front.turns))
        return True

    def call(self, front: Front, lanes: Lanes, entered: Sequence[Front]) -> bool:
        """Some lanes go on in other frames; they come back behind this statement."""
        self._leave(front, lanes)
        self.fronts += entered
        for one in entered:
            one.frame.lanes += one.lanes.count
        return True

    def resume(self, front: Front, lanes: Lanes) -> bool:
        """Some lanes return to their caller; the kernel's own return is the exit."""
        frame = front.frame
        if frame.caller is None:
            return self.retire(front, lanes)
        if frame.leave is not None:
            frame.leave(lanes)
        frame.lanes -= lanes.count
        self._leave(front, lanes)
        self.fronts.append(Front(frame.resume, frame.caller, lanes))
        return True

    def retire(self, front: Front, lanes: Lanes) -> bool:
        """Some lanes exit; barriers that waited for them only are complete."""
        self._leave(front, lanes)
        self.alive -= lanes.count
        self.alive_mask = self.alive_mask & ~lanes.mask
        self.alive_of_cta -= self.count_of(lanes)
        self.tell("exit", front, lanes)
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

    def wait(self, front: Front, lanes: Lanes, reason: object, *, behind: bool = True) -> bool:
        """Some lanes stop until somebody wakes them; they go on behind this statement, or repeat it."""
        halted = Front(front.pc + behind, front.frame, lanes, front.turns)
        halted.waits = reason
        self._leave(front, lanes)
        self.waiting.append(halted)
        return True

    def wake(self, reason: object, mask: Mask) -> None:
        """Lanes that wait for that reason run again."""
        left = list[Front]()
        for front in self.waiting:
            woken = front.lanes.mask & mask if front.waits == reason else None
            if woken is None or not woken.any():
                left.append(front)
                continue
            self.fronts.append(Front(front.pc, front.frame, Lanes(woken), front.turns))
            front.lanes = Lanes(front.lanes.mask & ~mask)
            if front.lanes.count:
                left.append(front)
        self.waiting = left

    def release(self, halted: Front, mask: Mask) -> None:
        """Those of some lanes that wait and are in a mask go on behind their statement."""
        freed = Lanes(halted.lanes.mask & mask)
        if not freed.count:
            return
        self.fronts.append(Front(halted.pc + 1, halted.frame, freed, halted.turns))
        halted.lanes = Lanes(halted.lanes.mask & ~mask)
        if not halted.lanes.count:
            self.waiting.remove(halted)

    def deadlock(self) -> Fault:
        """Who waits where, for what."""
        lines = list[str]()
        places = [self.stands_at(front).statement.location() for front in self.waiting]
        for front, place in zip(self.waiting, places, strict=True):
            explain = getattr(front.waits, "explain", None)
            reason = explain(self, front) if explain else front.waits
            lines.append(f"{self.who(front.lanes)} at {place} for {reason}")
        counts = ", ".join(self.barriers.counts(self, int(self.cta[self.waiting[0].lanes.index[0]])))
        detail = f" ({counts})" if counts else ""
        return Fault(f"deadlock: nobody can go on{detail}; waiting: " + "; ".join(lines), places[0])

    def stands_at(self, front: Front) -> Record:
        """The statement that lanes wait at: they may go on behind it, or repeat it."""
        return self.code[front.pc if isinstance(front.waits, LaneWait) else front.pc - 1]

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

    def places(self, space: str, lanes: Lanes, addresses: Values, size: int) -> tuple[Bytes, Offsets]:
        """The memory of a space, and where in it the words lie that some lanes address. Raises Trespass.

        ``addresses`` has one value for each of the lanes, or is of shape ().
        """
        where = spaces.integers_of(np.broadcast_to(addresses, (lanes.count,)))
        return PLACES[space](self, lanes, where, size)

    # --- telling ---

    def tell(self, what: str, *news: Any) -> None:
        """Every observer that has a method of that name is called."""
        if self._listening is not self.observers:
            self._listening, self._listeners = self.observers, {}
        listeners = self._listeners.get(what)
        if listeners is None:
            found = (getattr(observer, what, None) for observer in self.observers)
            listeners = self._listeners[what] = [one for one in found if one is not None]
        for listener in listeners:
            listener(self, *news)

    def infer(self, pc: int, why: str) -> None:
        """What a statement did here rests on what is inferred, for that reason."""
        self.kept.setdefault("inferred", {})[pc] = why

    def who(self, lanes: Lanes) -> str:
        """Lanes in words: CTA, warp and lane of the first, and how many more."""
        first = int(lanes.index[0])
        more = f" and {lanes.count - 1} more" if lanes.count > 1 else ""
        return f"{self.place(first)}{more}"

    def place(self, lane: int) -> str:
        """CTA, warp and lane of a lane of the wave, in words."""
        cta = ", ".join(map(str, self.ctas[self.cta[lane]].tolist()))
        thread = int(self.thread[lane])
        return f"CTA ({cta}), warp {thread // WARP}, lane {thread % WARP}"

    def fault(self, record: Record, lane: int, message: str) -> Fault:
        """An error of one lane at a statement."""
        return Fault(f"{message} [{self.place(lane)}]", record.statement.location())

    def _described(self, record: Record, trespass: Trespass) -> str:
        return f"{record.statement.mnemonic}: address {trespass.address:#x} {trespass.reason}"
