"""A wave: CTAs that are executed together, all lanes at one statement in one operation.

Lanes that part go on as fronts; the one with the lowest program counter steps first, so that they meet again
without a stack of reconvergence points, and one that only goes round in a loop lets the others pass, so that
nobody waits in vain for lanes that could run (PTX ISA 9.1, section 3.1 "independent thread scheduling").
Knows fronts, barriers and the memories of its CTAs; does not know text, arguments, or what a statement
means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from ..errors import Fault, WarpsimError
from . import spaces
from .asynchrony import Asynchrony, finish_all
from .clusters import ALONE, Cluster, cluster_places, near
from .lanes import Frame, Front, Lanes, Mask, Values
from .spaces import Bytes, DeviceMemory, Offsets, Trespass
from .teams import PATIENCE, Order, in_step

if TYPE_CHECKING:
    from .program import Entry, Record

WARP = 32
_VAIN = 4096  # rounds of loops without a store, after which other waves get their turn
_BARRIERS = 16  # of a CTA (PTX ISA 9.1, section 9.7.13.1 "bar")

Dimensions = tuple[int, int, int]
Step = Callable[["Wave", Front, Lanes], "bool | None"]  # true where fronts have changed


Deliver = Callable[["Wave", Front, Lanes, int], None]  # the last is the number of a barrier


class Observer(Protocol):
    """Who is told what happens; a method that is missing is not called."""


@dataclass(frozen=True, kw_only=True)
class BarrierWait:
    """What lanes at a barrier wait for: its number, and threads, None for all of the CTA.

    ``deliver`` is called with lanes whose barrier is complete, before they go on.
    """

    number: int
    threads: int | None
    deliver: Deliver | None = None

    def __str__(self) -> str:
        return f"barrier {self.number}" + (f" of {self.threads} threads" if self.threads else "")


@dataclass(frozen=True, kw_only=True)
class LaneWait:
    """What lanes at a statement of the whole warp wait for: the lanes that it names.

    They repeat the statement, unless those may meet them ``anywhere``: then they go on behind it. ``explain``
    says in more words what the lanes of a front wait for when nobody can go on.
    """

    names: str
    anywhere: bool = False
    explain: Callable[[Wave, Front], str] | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return self.names


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
        self.arrived = np.zeros((_BARRIERS, len(ctas)), np.int64)
        self.at_barrier = np.zeros((_BARRIERS, self.lanes), np.bool_)  # who has arrived
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
        for wait in {one.waits for one in self.waiting if isinstance(one.waits, BarrierWait)}:
            self._complete(wait)
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

    def barrier(
        self,
        front: Front,
        lanes: Lanes,
        number: int,
        threads: int | None,
        *,
        waits: bool = True,
        deliver: Deliver | None = None,
    ) -> bool:
        """Lanes arrive at a barrier of their CTAs and, where they wait, stop until all have.

        True where fronts changed; ``deliver`` is then called with the lanes that go on, and must be called by
        the caller if not.
        """
        if self.observers:
            self.tell("arriving", front, lanes, number, threads, waits)
        if waits and lanes.count == self.alive and threads in (None, self.threads) and not self.waiting:
            self.tell("barrier", number, np.arange(len(self.ctas)), front)
            self.tell("meeting", number, lanes.mask, lanes.mask)
            return False
        self.arrived[number] += self.count_of(lanes)
        self.at_barrier[number] |= lanes.mask
        if threads is not None:
            self._check_count(front, lanes, number, threads)
        reason = BarrierWait(number=number, threads=threads, deliver=deliver)
        changed = self.wait(front, lanes, reason) if waits else False
        self._complete(reason)
        return changed

    def _check_count(self, front: Front, lanes: Lanes, number: int, threads: int) -> None:
        """Of those that come at once none is left over once the barrier is complete; raises Fault."""
        here = self.arrived[number] + self._absent(number)
        left = np.flatnonzero(here[self.cta[lanes.index]] > threads)
        if left.size:
            lane = int(lanes.index[left[0]])
            came, record = int(here[self.cta[lane]]), self.code[front.pc]
            what = f"{came} threads come to barrier {number}, which is complete with {threads}"
            fix = f"let it expect {came}, or the others another barrier"
            message = f"{record.statement.mnemonic}: {what}: the rest would begin its next phase; {fix}"
            raise self.fault(record, lane, message)

    def _complete(self, wait: BarrierWait) -> None:
        """Wake the lanes of every CTA that has reached the number of threads."""
        arrived = self.arrived[wait.number]
        if wait.threads is None:
            done = (arrived >= self.alive_of_cta) & (arrived > 0)
        else:
            done = (arrived + self._absent(wait.number) >= wait.threads) & (arrived > 0)
        if done.any():
            arrived[done] = 0
            if self.observers:
                self._tell_of_meeting(wait, done[self.cta])
            self.at_barrier[wait.number] &= ~done[self.cta]
            self.tell("barrier", wait.number, np.flatnonzero(done), None)
            self._deliver(wait, done[self.cta])
            for reason in {one.waits for one in self.waiting if _same_barrier(one.waits, wait)}:
                self.wake(reason, done[self.cta])

    def _tell_of_meeting(self, wait: BarrierWait, done: Mask) -> None:
        """Who has arrived at a barrier that is complete, and who of them has waited."""
        waited = [one.lanes.mask for one in self.waiting if _same_barrier(one.waits, wait)]
        here = self.at_barrier[wait.number] & done
        self.tell("meeting", wait.number, here, np.logical_or.reduce([np.zeros_like(here), *waited]) & here)

    def _absent(self, number: int) -> npt.NDArray[np.int64]:
        """How many lanes of each CTA count although they have exited, or are no threads: those of warps that
        are there. Barriers count whole warps, which is why thread counts are multiples of 32.
        """
        there = self.at_barrier[number]
        warps = np.repeat(there.reshape(-1, WARP).any(axis=1), WARP)
        return self.count_of(Lanes(warps & ~there & ~self.alive_mask))

    def _deliver(self, wait: BarrierWait, done: Mask) -> None:
        """Lanes that go on get what they waited for."""
        for one in self.waiting:
            if isinstance(one.waits, BarrierWait) and one.waits.number == wait.number and one.waits.deliver:
                part = Lanes(one.lanes.mask & done)
                if part.count:
                    one.waits.deliver(self, one, part, wait.number)

    def deadlock(self) -> Fault:
        """Who waits where, for what."""
        lines = list[str]()
        places = [self.stands_at(front).statement.location() for front in self.waiting]
        for front, place in zip(self.waiting, places, strict=True):
            explain = getattr(front.waits, "explain", None)
            reason = explain(self, front) if explain else front.waits
            lines.append(f"{self.who(front.lanes)} at {place} for {reason}")
        counts = ", ".join(self._counts(int(self.cta[self.waiting[0].lanes.index[0]])))
        detail = f" ({counts})" if counts else ""
        return Fault(f"deadlock: nobody can go on{detail}; waiting: " + "; ".join(lines), places[0])

    def _counts(self, cta: int) -> Iterator[str]:
        """How many threads of a CTA have arrived at each barrier, and how many it waits for."""
        for number in range(_BARRIERS):
            reasons = [one.waits for one in self.waiting if isinstance(one.waits, BarrierWait)]
            wanted = {one.threads or int(self.alive_of_cta[cta]) for one in reasons if one.number == number}
            if count := int(self.arrived[number, cta]):
                yield f"barrier {number} has {count}{f' of {max(wanted)}' if wanted else ''} threads"

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
        return _PLACES[space](self, lanes, where, size)

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


def _same_barrier(one: object, other: BarrierWait) -> bool:
    return isinstance(one, BarrierWait) and one.number == other.number


# --- places of the spaces ---------------------------------------------------------------------------


def _device_places(wave: Wave, lanes: Lanes, addresses: Offsets, size: int) -> tuple[Bytes, Offsets]:
    return wave.memory.data, wave.memory.offsets(addresses, size, lanes)


def _shared_places(wave: Wave, lanes: Lanes, addresses: Offsets, size: int) -> tuple[Bytes, Offsets]:
    spaces.check_alignment(addresses, size, lanes)
    if spaces.leave(addresses, size, wave.shared_bytes):
        addresses = near(wave, lanes, addresses)
        spaces.check_bounds(addresses, size, wave.shared_bytes, lanes, "shared memory")
    return wave.shared, addresses + lanes.of(wave.shared_base)


def _local_places(wave: Wave, lanes: Lanes, addresses: Offsets, size: int) -> tuple[Bytes, Offsets]:
    spaces.check_alignment(addresses, size, lanes)
    spaces.check_bounds(addresses, size, wave.local_stride, lanes, "local memory")
    return wave.local, addresses + lanes.index * wave.local_stride


def _parameter_places(wave: Wave, lanes: Lanes, addresses: Offsets, size: int) -> tuple[Bytes, Offsets]:
    spaces.check_alignment(addresses, size, lanes)
    spaces.check_bounds(addresses, size, wave.entry.parameter_bytes, lanes, "the parameters")
    return wave.parameters, addresses


def _generic_places(wave: Wave, lanes: Lanes, addresses: Offsets, size: int) -> tuple[Bytes, Offsets]:
    """Words behind generic addresses that all lie in one window; split_windows sees to that."""
    first = int(addresses[0]) // spaces.WINDOW_BYTES * spaces.WINDOW_BYTES
    space = WINDOWS.get(first)
    if space is None:
        return _device_places(wave, lanes, addresses, size)
    if space == "shared":
        return cluster_places(wave, lanes, addresses - first, size)
    return _PLACES[space](wave, lanes, addresses - first, size)


WINDOWS = {
    spaces.SHARED_WINDOW: "shared",
    spaces.LOCAL_WINDOW: "local",
    spaces.PARAM_WINDOW: "param",
}
_PLACES: dict[str, Callable[[Wave, Lanes, Offsets, int], tuple[Bytes, Offsets]]] = {
    "global": _device_places,
    "const": _device_places,
    "shared": _shared_places,
    "shared::cluster": cluster_places,
    "local": _local_places,
    "param": _parameter_places,
    "generic": _generic_places,
}


def split_windows(lanes: Lanes, addresses: Values) -> list[Lanes]:
    """Parts of the lanes whose generic addresses lie in one window each; mostly all of them."""
    window = spaces.integers_of(np.broadcast_to(addresses, (lanes.count,))) // spaces.WINDOW_BYTES
    if (window == window[0]).all():
        return [lanes]
    parts = list[Lanes]()
    for one in np.unique(window):
        mask = np.zeros_like(lanes.mask)
        mask[lanes.index[window == one]] = True
        parts.append(Lanes(mask))
    return parts
