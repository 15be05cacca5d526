"""mbarrier: barriers that are objects of 64 bits in shared memory, and arrive at the end of copies.

A state, as arrive returns it, is the object as it was before. Lanes of one statement arrive in the order of
their numbers. Lanes of try_wait sleep until the phase is over: its time limit never passes. Objects of other
CTAs of the cluster take arrivals and bytes, and nothing else: they are initialised and waited for where they
lie. The objects are in phases.py. PTX ISA 9.1, section 9.7.13.15.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from ....isa.features import Feature
from ....ptx.constants import Immediate
from ....ptx.operands import Sink
from ...run.barriers.mbarrier import (
    MOST,
    Change,
    Misuse,
    Object,
    arrive,
    begin,
    changed,
    expect,
    sleep,
    undefined,
    update,
)
from ...run.events import Observer, observers_of
from ...run.wave import Step, Wave
from ...state import spaces
from ...state.lanes import DivergentPath, Lanes, Values
from ...state.memory_access import MemoryAccess
from ..effect import Effect
from ..memory.transfers import load, store
from ..operation import Version
from ..statement_binder import Reader, StatementBinder
from .cp_async import land_all

# --- statements --------------------------------------------------------------------------------------


def _space(modifiers: tuple[str, ...]) -> str:
    return "shared" if any(modifier.startswith("shared") for modifier in modifiers) else "generic"


def _reach(modifiers: tuple[str, ...]) -> str:
    """Return the space of objects that take arrivals and bytes: other CTAs' too, by generic addresses as
    well.
    """
    return "shared" if {"shared", "shared::cta"} & set(modifiers) else "shared::cluster"


def _address(binder: StatementBinder, index: int, modifiers: tuple[str, ...]) -> Reader:
    """Return addresses (lanes,) of objects; generic addresses outside shared memory are reported."""
    generic = _space(modifiers) == "generic"
    read = binder.address(index, "generic" if generic else "shared")  # a variable is of either kind

    def address(wave: Wave, path: DivergentPath) -> Values:
        where = np.broadcast_to(read(wave, path), (wave.lanes,))
        if not generic:
            return where
        outside = path.lanes.mask & (spaces.window_of(where) != spaces.window_of(spaces.SHARED_WINDOW))
        if outside.any():
            lane = int(outside.argmax())
            message = f"the generic address {int(where[lane]):#x} is not in shared memory"
            raise wave.fault(wave.code[path.pc], lane, message)
        return where - spaces.SHARED_WINDOW

    return address


def _count(binder: StatementBinder, index: int, most: int | None = None) -> Reader:
    """Return a count; a constant count is at least 1, and at most ``most``. Raises IllegalInstruction."""
    operand = binder.operands[index]
    if most is not None and isinstance(operand, Immediate) and operand.kind == "integer":
        word = operand.value & (1 << 32) - 1
        if not 1 <= word - (word >> 31 << 32) <= most:
            raise binder.illegal(f"a count of {operand.value}: expected 1 to {most}", index)
    read = binder.reader(binder.operands[index], "u32", index)
    return lambda wave, path: np.broadcast_to(read(wave, path), (wave.lanes,)).astype(np.int64)


def _one(wave: Wave, path: DivergentPath) -> Values:
    return np.ones(wave.lanes, np.int64)


def _unchanged(barrier: Object, count: int) -> Object:
    return barrier


def _initialise(binder: StatementBinder, *modifiers: str) -> Step:
    binder.count(2)
    address, count = _address(binder, 0, modifiers), _count(binder, 1, MOST)

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        counts = lanes.of(count(wave, path))
        wrong = np.flatnonzero((counts < 1) | (counts > MOST))
        if wrong.size:
            message = f"a count of {int(counts[wrong[0]])}: expected 1 to {MOST}"
            raise undefined(wave, path, int(lanes.index[wrong[0]]), message)
        words = np.array([Object(count, count).word for count in counts.tolist()], np.uint64)
        where = lanes.of(address(wave, path))
        store(wave, path, lanes, "shared", where, words[:, None])
        offsets = wave.locate("shared", lanes, where, 8)[1]
        begin(wave, offsets)
        observers_of(wave).initialised(wave, path, lanes, offsets)

    return step


def _invalidate(binder: StatementBinder, *modifiers: str) -> Step:
    binder.count(1)
    address = _address(binder, 0, modifiers)

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        where = lanes.of(address(wave, path))
        words = load(wave, path, lanes, "shared", where, 8, 1)
        for place, word in enumerate(words[:, 0].tolist()):
            changed(wave, path, int(lanes.index[place]), word, 0, _unchanged)
        store(wave, path, lanes, "shared", where, np.zeros_like(words))
        if observers_of(wave).hear(Observer.invalidated):
            observers_of(wave).invalidated(wave, path, lanes, wave.locate("shared", lanes, where, 8)[1])

    return step


def _transaction(binder: StatementBinder, *modifiers: str) -> Step:
    """expect_tx and complete_tx."""
    binder.count(2)
    address, count = _address(binder, 0, modifiers), _count(binder, 1)
    sign, space = 1 if "expect_tx" in modifiers else -1, _reach(modifiers)

    def change(barrier: Object, bytes_: int) -> Object:
        return expect(barrier, sign * bytes_)

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        counts = lanes.of(count(wave, path))
        update(wave, path, lanes, lanes.of(address(wave, path)), counts, change, space)

    return step


@cache
def _arrival(modifiers: tuple[str, ...]) -> Change:
    """Return what one lane's arrival does to the object."""
    drop = "arrive_drop" in modifiers
    if "expect_tx" in modifiers:
        return lambda barrier, count: arrive(expect(barrier, count), 1, drop=drop)
    if "noComplete" not in modifiers:
        return lambda barrier, count: arrive(barrier, count, drop=drop)

    def incomplete(barrier: Object, count: int) -> Object:
        after = arrive(barrier, count, drop=drop)
        if not after.pending and not after.tx:
            raise Misuse("the arrival completes the phase, which .noComplete rules out")
        return after

    return incomplete


_POSITIVE = (1 << 31) - 1
_COUNTED = (7, 8), Feature.MBARRIER_TRANSACTIONS  # a count, to arrive
_SINK = (7, 1), Feature.MBARRIER  # '_' for the state


def _arrive(binder: StatementBinder, *modifiers: str) -> Step:
    needs = {"expect_tx", "noComplete"} & set(modifiers)
    given = binder.count(3) if needs else binder.count(2, 3)
    if given == 3 and not needs:
        binder.check_available(*_COUNTED)
    if isinstance(binder.operands[0], Sink):
        binder.check_available(*_SINK)
    if "shared::cluster" in modifiers and not isinstance(binder.operands[0], Sink):
        raise binder.illegal("an arrival at .shared::cluster returns no state: write '_'", 0)
    write, address = binder.writer(binder.operands[0], "u64", 0), _address(binder, 1, modifiers)
    most = None if "expect_tx" in modifiers else _POSITIVE
    count, change = _count(binder, 2, most) if given == 3 else _one, _arrival(modifiers)
    space = _reach(modifiers) if isinstance(binder.operands[0], Sink) else "shared"

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        counts = lanes.of(count(wave, path))
        before = update(wave, path, lanes, lanes.of(address(wave, path)), counts, change, space)
        write(wave, path, lanes, lanes.spread(before))

    return step


def _wait(binder: StatementBinder, *modifiers: str) -> Step:
    """test_wait and try_wait: whether the phase of a state, or of a parity, is over."""
    sleeps, by_parity = "try_wait" in modifiers, "parity" in modifiers
    given = binder.count(3, 4) if sleeps else binder.count(3)
    if isinstance(binder.operands[0], Sink):
        raise binder.illegal("expected a predicate, not '_'", 0)
    write, address = binder.writer(binder.operands[0], "pred", 0), _address(binder, 1, modifiers)
    last = binder.operands[2]
    if by_parity and isinstance(last, Immediate) and last.value not in (0, 1):
        raise binder.illegal(f"a parity is 0 or 1, not {last}", 2)
    phase = binder.reader(last, "u32", 2) if by_parity else binder.whole(2, "a state")
    if given == 4:
        binder.reader(binder.operands[3], "u32", 3)

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> bool:
        where = lanes.of(address(wave, path))
        value = phase(wave, path)
        wanted = value & 1 if by_parity else value >> np.uint64(62) & np.uint64(1)
        over = _phase_complete(wave, path, lanes, where, lanes.of(wanted))
        asleep = lanes.mask & ~lanes.spread(over)
        if not sleeps or not asleep.any():
            write(wave, path, lanes, lanes.spread(over))
            return False
        if over.any():
            write(wave, path, Lanes(lanes.mask & ~asleep), np.ones(wave.lanes, np.bool_))
        return sleep(wave, path, Lanes(asleep), lanes.spread(where))

    return step


def _phase_complete(wave: Wave, path: DivergentPath, lanes: Lanes, where: Values, wanted: Values) -> Values:
    """Return (lanes.count,) bool: whether the phase with the wanted parity is over."""
    memory, offsets = wave.locate("shared", lanes, where, 8)
    words = spaces.words_at(memory, offsets, 8)[:, 0]
    invalid = np.flatnonzero(words >> np.uint64(61) & np.uint64(1) == 0)
    if invalid.size:
        lane = int(lanes.index[invalid[0]])
        raise undefined(wave, path, lane, "no mbarrier has been initialised there")
    found: Values = (words >> np.uint64(62) & np.uint64(1)) != wanted
    if observers_of(wave):
        observers_of(wave).mbarrier(wave, MemoryAccess(path, lanes, memory, offsets, 8))
        if found.any():
            seen = Lanes(lanes.mask & lanes.spread(found))
            observers_of(wave).ordered(wave, seen)
            observers_of(wave).acquired(wave, path, seen, offsets[found])
    return found


def _pending(binder: StatementBinder, *modifiers: str) -> Step:
    binder.count(2)
    if isinstance(binder.operands[0], Sink):
        raise binder.illegal("mbarrier.pending_count does not take '_' for its result", 0)
    write, read = binder.writer(binder.operands[0], "u32", 0), binder.whole(1, "a state")

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        state = np.broadcast_to(read(wave, path), (wave.lanes,))
        write(wave, path, lanes, (state >> np.uint64(20) & np.uint64(MOST)).astype(np.uint32))

    return step


def _arrive_when_copied(binder: StatementBinder, *modifiers: str) -> Step:
    """cp.async.mbarrier.arrive: the lane's copies land, and it arrives; without noinc as one more."""
    binder.count(1)
    address, counts = _address(binder, 0, modifiers), "noinc" in modifiers

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        where = lanes.of(address(wave, path))
        wave.locate("shared", lanes, where, 8)  # raises before anything lands
        land_all(wave, path, lanes)
        update(wave, path, lanes, where, np.ones(lanes.count, np.int64), arrive if counts else _unchanged)

    return step


# --- rows --------------------------------------------------------------------------------------------

Need = tuple[Version, Feature]  # the first PTX version

_OLD, _NEW = Feature.MBARRIER, Feature.MBARRIER_TRANSACTIONS
_SPACES: dict[str, Need] = {
    "": ((7, 0), _OLD),
    "shared": ((7, 0), _OLD),
    "shared::cta": ((7, 8), _OLD),
    "shared::cluster": ((8, 0), _NEW),
}
_OWN = ("", "shared", "shared::cta")
_ALL = tuple(_SPACES)
_NONE: dict[tuple[str, str], Need] = {("", ""): ((7, 0), _OLD)}
_RELAXED: dict[tuple[str, str], Need] = {
    ("relaxed", "cta"): ((8, 6), _NEW),
    ("relaxed", "cluster"): ((8, 6), _NEW),
}


def _needs_of_order(order: str) -> dict[tuple[str, str], Need]:
    return {**_NONE, (order, "cta"): ((8, 0), _OLD), (order, "cluster"): ((8, 0), _NEW), **_RELAXED}


_BYTES = {**_NONE, ("relaxed", "cta"): ((8, 0), _NEW), ("relaxed", "cluster"): ((8, 0), _NEW)}
_RELEASE, _ACQUIRE = _needs_of_order("release"), _needs_of_order("acquire")
_INCOMPLETE = {**_NONE, ("release", "cta"): ((8, 0), _OLD)}


def _rows(
    names: tuple[str, ...],
    bind: Callable[..., Step],
    need: Need,
    spaces_: tuple[str, ...] = _OWN,
    orders: dict[tuple[str, str], Need] = _NONE,
    opcode: str = "mbarrier",
) -> tuple[Effect, ...]:
    """One row for each space and order, since all that it spells is there."""
    return tuple(
        Effect(
            opcode=opcode,
            slots=(*((name,) for name in names), (order,), (scope,), (space,), ("b64",)),
            bind=bind,
            since=max(need[0], _SPACES[space][0], since),
            feature=_NEW if _NEW in (need[1], _SPACES[space][1], feature) else _OLD,
        )
        for space in spaces_
        for (order, scope), (since, feature) in orders.items()
    )


_FIRST, _HOPPER = ((7, 0), _OLD), ((8, 0), _NEW)

ROWS: tuple[Effect, ...] = (
    *_rows(("init",), _initialise, _FIRST),
    *_rows(("inval",), _invalidate, _FIRST),
    *_rows(("expect_tx",), _transaction, _HOPPER, _ALL, _BYTES),
    *_rows(("complete_tx",), _transaction, _HOPPER, _ALL, _BYTES),
    *_rows(("arrive",), _arrive, _FIRST, _ALL, _RELEASE),
    *_rows(("arrive", "noComplete"), _arrive, _FIRST, _OWN, _INCOMPLETE),
    *_rows(("arrive", "expect_tx"), _arrive, _HOPPER, _ALL, _RELEASE),
    *_rows(("arrive_drop",), _arrive, _FIRST, _ALL, _RELEASE),
    *_rows(("arrive_drop", "noComplete"), _arrive, _FIRST, _OWN, _INCOMPLETE),
    *_rows(("arrive_drop", "expect_tx"), _arrive, _HOPPER, _ALL, _RELEASE),
    *_rows(("test_wait",), _wait, _FIRST, _OWN, _ACQUIRE),
    *_rows(("test_wait", "parity"), _wait, ((7, 1), _OLD), _OWN, _ACQUIRE),
    *_rows(("try_wait",), _wait, ((7, 8), _NEW), _OWN, _ACQUIRE),
    *_rows(("try_wait", "parity"), _wait, ((7, 8), _NEW), _OWN, _ACQUIRE),
    *_rows(("pending_count",), _pending, _FIRST, ("",)),
    *_rows(("async", "mbarrier", "arrive"), _arrive_when_copied, _FIRST, opcode="cp"),
    *_rows(("async", "mbarrier", "arrive", "noinc"), _arrive_when_copied, _FIRST, opcode="cp"),
)
