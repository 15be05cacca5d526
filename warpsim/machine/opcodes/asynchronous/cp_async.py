"""cp.async: copies from global to shared memory that a lane starts now and waits for later.

What is copied is read when the copy starts; it lands in shared memory when the lane waits for the group of
the copy (or for all), and not before: a kernel that forgets to wait reads what was there. Groups are counted
lane by lane. Copies of lanes that exit without waiting never land. ``flights(wave)`` are the copies in
flight; observers are notified by ``copying(wave, path, lanes, memory, offsets, size)`` when copies start and
``landed(wave, path, lanes, memory, offsets, size)`` when they land. PTX ISA 9.1, section 9.7.9.25.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ....isa.features import Feature
from ....ptx.constants import Immediate
from ....ptx.operands import NegatedPredicate, Operand, Register
from ...bind.scope import RegisterName
from ...run.events import Observer, observers_of
from ...run.wave import Step, Wave
from ...state import spaces
from ...state.lanes import DivergentPath, Lanes, Mask, Values, for_each
from ...state.memory_access import MemoryAccess
from ...state.side_tables import SideTable
from ..effect import Effect
from ..memory.transfers import load
from ..statement_binder import Reader, StatementBinder

Counts = npt.NDArray[np.int64]


@dataclass(eq=False)
class Flight:
    """Copies that one statement started, ``(copies,)`` each: groups, places in shared memory, data.

    ``pc`` is the place of the statement.
    """

    pc: int
    lanes: Lanes
    groups: Counts
    offsets: spaces.Offsets
    words: Values  # (copies, words of a copy)

    @property
    def size(self) -> int:
        """Bytes of one copy."""
        return int(self.words.itemsize * self.words.shape[1])

    def part(self, chosen: Mask) -> Flight:
        """Return some of the copies."""
        mask = np.zeros_like(self.lanes.mask)
        mask[self.lanes.index[chosen]] = True
        return Flight(self.pc, Lanes(mask), self.groups[chosen], self.offsets[chosen], self.words[chosen])


@dataclass(eq=False)
class Copies:
    """The copies of a wave: ``committed`` (lanes,) counts the groups that each lane has closed."""

    committed: Counts
    flights: list[Flight] = field(default_factory=list)  # in the order in which they started

    def land(self, wave: Wave, path: DivergentPath, lanes: Lanes, before: Counts) -> None:
        """Write what these lanes copied in groups with numbers below ``before`` (lanes,)."""
        left = list[Flight]()
        for flight in self.flights:
            done = flight.lanes.of(lanes.mask) & (flight.groups < flight.lanes.of(before))
            if not done.any():
                left.append(flight)
                continue
            _write(wave, path, flight if done.all() else flight.part(done))
            if not done.all():
                left.append(flight.part(~done))
        self.flights = left


def _write(wave: Wave, path: DivergentPath, flight: Flight) -> None:
    spaces.put_words(wave.memories.shared, flight.offsets, flight.words)
    if observers_of(wave).hear(Observer.landed):
        observers_of(wave).landed(
            wave, MemoryAccess(path, flight.lanes, wave.memories.shared, flight.offsets, flight.size)
        )


def _no_copies(wave: Wave) -> Copies:
    return Copies(np.zeros(wave.lanes, np.int64))


_COPIES = SideTable(_no_copies)


def flights(wave: Wave) -> list[Flight]:
    """Return the copies in flight, those of lanes that have exited included."""
    return list(_COPIES.of(wave).flights)


def closed_groups(wave: Wave) -> Counts:
    """Return ``(lanes,)``: how many groups each lane has closed; copies of the next are in none yet."""
    return _COPIES.of(wave).committed


def land_all(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
    """Every copy that these lanes have started lands."""
    copies = _COPIES.of(wave)
    copies.land(wave, path, lanes, copies.committed + 1)


# --- starting a copy ---------------------------------------------------------------------------------


def _copy(binder: StatementBinder, *modifiers: str) -> Step:
    hint = "L2::cache_hint" in modifiers
    size = _size(binder, whole="cg" in modifiers)
    given = binder.count(4, 5) if hint else binder.count(3, 4)
    target, source = binder.address(0, "shared"), binder.address(1, "global")
    if hint:
        binder.policy(given - 1)
    filled = _source_size(binder, size) if given - hint == 4 else None

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        to = lanes.of(for_each(target(wave, path), wave.lanes))
        where = for_each(source(wave, path), wave.lanes)
        memory, offsets = wave.locate("shared", lanes, to, size)
        sizes = None if filled is None else for_each(filled(wave, path), wave.lanes)
        words = _read_sources(wave, path, lanes, where, size, sizes)
        copies = _COPIES.of(wave)
        copies.flights.append(Flight(path.pc, lanes, copies.committed[lanes.index], offsets, words))
        if observers_of(wave).hear(Observer.copying):
            observers_of(wave).copying(wave, MemoryAccess(path, lanes, memory, offsets, size))

    return step


def _size(binder: StatementBinder, *, whole: bool) -> int:
    """Return bytes of a copy; with ``whole`` it is 16."""
    binder.count(3, 4, 5)
    operand, legal = binder.operands[2], (16,) if whole else (4, 8, 16)
    if not isinstance(operand, Immediate) or operand.kind != "integer" or operand.value not in legal:
        raise binder.illegal(f"the size is {' or '.join(map(str, legal))}, not '{operand}'", 2)
    return operand.value


_IGNORE = (7, 5)  # the first PTX version with a predicate


def _source_size(binder: StatementBinder, size: int) -> Reader:
    """Return bytes that are read, the others being zero: a number, or none where a predicate holds."""
    operand = binder.operands[3]
    if isinstance(operand, Immediate) and not 0 <= operand.value <= size:
        raise binder.illegal(f"the source size {operand} is not in 0 to {size}", 3)
    if not _is_predicate(binder, operand):
        return binder.reader(operand, "u32", 3)
    binder.check_available(_IGNORE)
    ignored = binder.reader(operand, "pred", 3)
    return lambda wave, path: np.where(ignored(wave, path), np.uint32(0), np.uint32(size))


def _is_predicate(binder: StatementBinder, operand: Operand) -> bool:
    if isinstance(operand, NegatedPredicate):
        return True
    found = binder.scope.find(operand.name) if isinstance(operand, Register) else None
    return isinstance(found, RegisterName) and found.type == "pred"


def _read_sources(
    wave: Wave, path: DivergentPath, lanes: Lanes, where: Values, size: int, sizes: Values | None
) -> Values:
    """Return ``(lanes.count, words)``: the source of each lane, of which ``sizes`` bytes count."""
    width = min(size, 8)
    if sizes is None or (lanes.of(sizes) == size).all():
        return load(wave, path, lanes, "global", lanes.of(where), width, size // width)
    _check_sizes(wave, path, lanes, sizes, size)
    spaces.check_alignment(lanes.of(where), size, lanes)
    own = lanes.of(sizes)
    whole = own == size
    words = np.zeros((lanes.count, size // width), f"u{width}")
    if whole.any():
        part = Lanes(lanes.mask & (sizes == size))
        words[whole] = load(wave, path, part, "global", part.of(where), width, size // width)
    if (whole | (own == 0)).all():
        return words
    rows = words.view(np.uint8)
    for count in np.unique(own[~whole]).tolist():
        part = Lanes(lanes.mask & (sizes == count))
        for place in range(count):
            rows[own == count, place] = load(wave, path, part, "global", part.of(where) + place, 1, 1)[:, 0]
    return words


def _check_sizes(wave: Wave, path: DivergentPath, lanes: Lanes, sizes: Values, size: int) -> None:
    above = lanes.mask & (sizes > size)
    if above.any():
        lane = int(above.argmax())
        message = f"the source size {int(sizes[lane])} is above the size {size}: undefined"
        raise wave.fault(wave.code[path.pc], lane, message)


# --- groups ------------------------------------------------------------------------------------------


def _commit(binder: StatementBinder, *modifiers: str) -> Step:
    binder.count(0)

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        copies = _COPIES.of(wave)
        copies.committed = copies.committed + lanes.mask

    return step


def _wait_group(binder: StatementBinder, *modifiers: str) -> Step:
    """Wait until at most so many of the latest groups are in flight."""
    binder.count(1)
    operand = binder.operands[0]
    if not isinstance(operand, Immediate) or operand.kind != "integer":
        raise binder.illegal(f"the number of groups is an integer constant, not '{operand}'", 0)
    most = min(operand.value & 0xFFFF_FFFF, 1 << 31)

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        copies = _COPIES.of(wave)
        copies.land(wave, path, lanes, copies.committed - most)

    return step


def _wait_all(binder: StatementBinder, *modifiers: str) -> Step:
    """Wait for every copy, those included that are in no group yet."""
    binder.count(0)
    return land_all


_PREFETCHES = ("L2::64B", "L2::128B", "L2::256B")
_ASYNC = ("async",)
_COPY = (_ASYNC, ("ca", "cg"), ("shared", "shared::cta"), ("global",))

_NEW = Feature.CP_ASYNC
ROWS: tuple[Effect, ...] = (
    Effect(opcode="cp", slots=_COPY, bind=_copy, since=(7, 0), feature=_NEW),
    Effect(opcode="cp", slots=(*_COPY, _PREFETCHES), bind=_copy, since=(7, 4), feature=_NEW),
    Effect(
        opcode="cp",
        slots=(*_COPY, ("L2::cache_hint",), ("", *_PREFETCHES)),
        bind=_copy,
        since=(7, 4),
        feature=_NEW,
    ),
    Effect(opcode="cp", slots=(_ASYNC, ("commit_group",)), bind=_commit, since=(7, 0), feature=_NEW),
    Effect(opcode="cp", slots=(_ASYNC, ("wait_group",)), bind=_wait_group, since=(7, 0), feature=_NEW),
    Effect(opcode="cp", slots=(_ASYNC, ("wait_all",)), bind=_wait_all, since=(7, 0), feature=_NEW),
)
