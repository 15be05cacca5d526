"""mbarrier: barriers that are objects of 64 bits in shared memory, and arrive at the end of copies.

PTX keeps the bits of an object to itself; here they are, lowest first:

    20  expected   arrivals of a phase
    20  pending    arrivals that are still to come in this phase
    21  tx         bytes that are still to come, signed
     1  valid      set by init, cleared by inval
     1  parity     of the current phase: 0 for the first, then 1, 0, 1, …
     1  zero

A state, as arrive returns it, is the object as it was before. Lanes of one statement arrive in the order of
their numbers. Lanes of try_wait sleep until the phase is over: its time limit never passes. All CTAs are
clusters of their own. PTX ISA 9.1, section 9.7.13.15.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ...errors import UndefinedBehavior
from ...ptx.constants import Immediate
from ...ptx.operands import Sink
from .. import spaces
from ..lanes import Front, Lanes, Values
from ..wave import LaneWait
from . import check_available
from .asynchronous import land_all
from .effect import Effect, no_operation
from .operation import Row, Version
from .transfers import load, store

if TYPE_CHECKING:
    from ..site import Reader, Site
    from ..wave import Step, Wave

MOST = (1 << 20) - 1  # arrivals, and bytes either way
_SLEEP = LaneWait(names="the end of a phase of an mbarrier")
_SLEEPERS = "mbarriers that lanes wait for"


@dataclass(frozen=True, slots=True)
class Object:
    """What the 64 bits hold."""

    expected: int
    pending: int
    tx: int = 0
    valid: bool = True
    parity: int = 0

    @classmethod
    def of(cls, word: int) -> Object:
        """The object of 64 bits."""
        tx = word >> 40 & 0x1FFFFF
        return cls(
            word & MOST, word >> 20 & MOST, tx - ((tx >> 20) << 21), bool(word >> 61 & 1), word >> 62 & 1
        )

    @property
    def word(self) -> int:
        """The 64 bits."""
        counts = self.expected | self.pending << 20 | (self.tx & 0x1FFFFF) << 40
        return counts | self.valid << 61 | self.parity << 62

    def settled(self) -> Object:
        """The next phase, if nothing is left to come in this one."""
        if self.pending or self.tx:
            return self
        return replace(self, pending=self.expected, parity=1 - self.parity)


class Misuse(Exception):
    """An operation that PTX leaves undefined, and why."""


def arrive(one: Object, count: int, *, drop: bool = False) -> Object:
    """The object after so many arrivals, before it settles; raises Misuse."""
    if not 1 <= count <= one.pending:
        raise Misuse(f"{count} arrivals, but {one.pending} are pending")
    return replace(one, pending=one.pending - count, expected=one.expected - count * drop)


def expect(one: Object, count: int) -> Object:
    """The object with so many more bytes to come; raises Misuse."""
    if not -MOST <= one.tx + count <= MOST:
        raise Misuse(f"the tx-count becomes {one.tx + count}: it is {-MOST} to {MOST}")
    return replace(one, tx=one.tx + count)


# --- objects in memory -------------------------------------------------------------------------------

Change = Callable[[Object, int], Object]


def update(
    wave: Wave, front: Front, lanes: Lanes, addresses: Values, counts: Values, change: Change
) -> Values:
    """``(lanes.count,)``: the objects before, as each lane in its turn found them; sleepers are woken.

    Raises UndefinedBehavior for what is no object, and for what ``change`` does not allow.
    """
    memory, offsets = wave.places("shared", lanes, addresses, 8)
    words = dict(zip(offsets.tolist(), spaces.words_at(memory, offsets, 8)[:, 0].tolist(), strict=True))
    before, begun = np.zeros(lanes.count, np.uint64), dict(words)
    for place, (offset, count) in enumerate(zip(offsets.tolist(), counts.tolist(), strict=True)):
        before[place] = words[offset]
        words[offset] = _changed(wave, front, int(lanes.index[place]), words[offset], count, change)
    after = np.array([words[offset] for offset in offsets.tolist()], np.uint64)
    spaces.put_words(memory, offsets, after[:, None])
    if wave.observers:
        wave.tell("mbarrier", front, lanes, memory, offsets)
    _wake(wave, [one for one in words if (words[one] ^ begun[one]) >> 62 & 1])
    return before


def _changed(wave: Wave, front: Front, lane: int, word: int, count: int, change: Change) -> int:
    one = Object.of(word)
    try:
        if not one.valid:
            raise Misuse("no mbarrier has been initialised there")
        after = change(one, count)
        return (one if after == one else after.settled()).word
    except Misuse as misuse:
        raise _undefined(wave, front, lane, str(misuse)) from None


def _undefined(wave: Wave, front: Front, lane: int, why: str) -> UndefinedBehavior:
    statement = wave.code[front.pc].statement
    return UndefinedBehavior(f"{statement.mnemonic}: {why} [{wave.place(lane)}]", statement.location())


def _wake(wave: Wave, offsets: list[int]) -> None:
    """Lanes that sleep until the phase of one of these objects is over try again."""
    sleepers = wave.kept.get(_SLEEPERS)
    if offsets and sleepers is not None:
        wave.wake(_SLEEP, np.isin(sleepers, offsets))


# --- statements --------------------------------------------------------------------------------------


def _space(modifiers: tuple[str, ...]) -> str:
    return "shared" if any(one.startswith("shared") for one in modifiers) else "generic"


def _address(site: Site, index: int, modifiers: tuple[str, ...]) -> Reader:
    """Addresses (lanes,) of objects; generic ones that are not in shared memory are reported."""
    generic = _space(modifiers) == "generic"
    read = site.address(index, "generic" if generic else "shared")

    def address(wave: Wave, front: Front) -> Values:
        where = np.broadcast_to(read(wave, front), (wave.lanes,))
        if not generic:
            return where
        outside = front.lanes.mask & (spaces.window_of(where) != spaces.window_of(spaces.SHARED_WINDOW))
        if outside.any():
            lane = int(outside.argmax())
            message = f"the generic address {int(where[lane]):#x} is not in shared memory"
            raise wave.fault(wave.code[front.pc], lane, message)
        return where - spaces.SHARED_WINDOW

    return address


def _count(site: Site, index: int) -> Reader:
    read = site.reader(site.operands[index], "u32", index)
    return lambda wave, front: np.broadcast_to(read(wave, front), (wave.lanes,)).astype(np.int64)


def _one(wave: Wave, front: Front) -> Values:
    return np.ones(wave.lanes, np.int64)


def _same(one: Object, count: int) -> Object:
    return one


def _initialise(site: Site, *modifiers: str) -> Step:
    site.count(2)
    address, count = _address(site, 0, modifiers), _count(site, 1)

    def step(wave: Wave, front: Front, lanes: Lanes) -> None:
        counts = lanes.of(count(wave, front))
        wrong = np.flatnonzero((counts < 1) | (counts > MOST))
        if wrong.size:
            message = f"a count of {int(counts[wrong[0]])}: it is 1 to {MOST}"
            raise _undefined(wave, front, int(lanes.index[wrong[0]]), message)
        words = np.array([Object(one, one).word for one in counts.tolist()], np.uint64)
        store(wave, front, lanes, "shared", lanes.of(address(wave, front)), words[:, None])

    return step


def _invalidate(site: Site, *modifiers: str) -> Step:
    site.count(1)
    address = _address(site, 0, modifiers)

    def step(wave: Wave, front: Front, lanes: Lanes) -> None:
        where = lanes.of(address(wave, front))
        words = load(wave, front, lanes, "shared", where, 8, 1)
        for place, word in enumerate(words[:, 0].tolist()):
            _changed(wave, front, int(lanes.index[place]), word, 0, _same)
        store(wave, front, lanes, "shared", where, np.zeros_like(words))

    return step


def _transaction(site: Site, *modifiers: str) -> Step:
    """expect_tx and complete_tx."""
    site.count(2)
    address, count = _address(site, 0, modifiers), _count(site, 1)
    sign = 1 if "expect_tx" in modifiers else -1

    def step(wave: Wave, front: Front, lanes: Lanes) -> None:
        counts = lanes.of(count(wave, front))
        update(
            wave, front, lanes, lanes.of(address(wave, front)), counts, lambda one, n: expect(one, sign * n)
        )

    return step


def _arrival(modifiers: tuple[str, ...]) -> Change:
    """What one lane's arrival does to the object."""
    drop = "arrive_drop" in modifiers
    if "expect_tx" in modifiers:
        return lambda one, count: arrive(expect(one, count), 1, drop=drop)
    if "noComplete" not in modifiers:
        return lambda one, count: arrive(one, count, drop=drop)

    def incomplete(one: Object, count: int) -> Object:
        after = arrive(one, count, drop=drop)
        if not after.pending and not after.tx:
            raise Misuse("the arrival completes the phase, which .noComplete rules out")
        return after

    return incomplete


_COUNTED = Row(opcode="mbarrier", slots=(), build=no_operation, since=(7, 8), chip=90)  # a count, to arrive
_SINK = Row(opcode="mbarrier", slots=(), build=no_operation, since=(7, 1), chip=80)  # '_' for the state


def _arrive(site: Site, *modifiers: str) -> Step:
    needs = {"expect_tx", "noComplete"} & set(modifiers)
    given = site.count(3) if needs else site.count(2, 3)
    if given == 3 and not needs:
        check_available(site, _COUNTED)
    if isinstance(site.operands[0], Sink):
        check_available(site, _SINK)
    if "shared::cluster" in modifiers and not isinstance(site.operands[0], Sink):
        raise site.illegal("an arrival at .shared::cluster returns no state: write '_'", 0)
    write, address = site.writer(site.operands[0], "b64", 0), _address(site, 1, modifiers)
    count, change = _count(site, 2) if given == 3 else _one, _arrival(modifiers)

    def step(wave: Wave, front: Front, lanes: Lanes) -> None:
        counts = lanes.of(count(wave, front))
        before = update(wave, front, lanes, lanes.of(address(wave, front)), counts, change)
        write(wave, front, lanes, lanes.spread(before))

    return step


def _wait(site: Site, *modifiers: str) -> Step:
    """test_wait and try_wait: whether the phase of a state, or of a parity, is over."""
    sleeps, by_parity = "try_wait" in modifiers, "parity" in modifiers
    given = site.count(3, 4) if sleeps else site.count(3)
    if isinstance(site.operands[0], Sink):
        raise site.illegal("expected a predicate, not '_'", 0)
    write, address = site.writer(site.operands[0], "pred", 0), _address(site, 1, modifiers)
    last = site.operands[2]
    if by_parity and isinstance(last, Immediate) and last.value not in (0, 1):
        raise site.illegal(f"a parity is 0 or 1, not {last}", 2)
    phase = site.reader(site.operands[2], "u32" if by_parity else "b64", 2)
    if given == 4:
        site.reader(site.operands[3], "u32", 3)

    def step(wave: Wave, front: Front, lanes: Lanes) -> bool:
        where = lanes.of(address(wave, front))
        value = phase(wave, front)
        wanted = value & 1 if by_parity else value >> np.uint64(62) & np.uint64(1)
        over = _over(wave, front, lanes, where, lanes.of(wanted))
        asleep = lanes.mask & ~lanes.spread(over)
        if not sleeps or not asleep.any():
            write(wave, front, lanes, lanes.spread(over))
            return False
        if over.any():
            write(wave, front, Lanes(lanes.mask & ~asleep), np.ones(wave.lanes, np.bool_))
        return _sleep(wave, front, Lanes(asleep), lanes.spread(where))

    return step


def _sleep(wave: Wave, front: Front, lanes: Lanes, where: Values) -> bool:
    """Some lanes stop until the phase of their object is over, and then try again."""
    sleepers = wave.kept.get(_SLEEPERS)
    if sleepers is None:
        sleepers = np.full(wave.lanes, -1)
    wave.kept[_SLEEPERS] = np.where(lanes.mask, where + wave.shared_base, sleepers)
    return wave.wait(front, lanes, _SLEEP, behind=False)


def _over(wave: Wave, front: Front, lanes: Lanes, where: Values, wanted: Values) -> Values:
    """(lanes.count,) bool: whether the phase with the wanted parity is over."""
    memory, offsets = wave.places("shared", lanes, where, 8)
    words = spaces.words_at(memory, offsets, 8)[:, 0]
    invalid = np.flatnonzero(words >> np.uint64(61) & np.uint64(1) == 0)
    if invalid.size:
        lane = int(lanes.index[invalid[0]])
        raise _undefined(wave, front, lane, "no mbarrier has been initialised there")
    found: Values = (words >> np.uint64(62) & np.uint64(1)) != wanted
    if wave.observers:
        wave.tell("mbarrier", front, lanes, memory, offsets)
        if found.any():
            wave.tell("ordered", Lanes(lanes.mask & lanes.spread(found)))
    return found


def _pending(site: Site, *modifiers: str) -> Step:
    site.count(2)
    write, read = site.writer(site.operands[0], "b32", 0), site.reader(site.operands[1], "b64", 1)

    def step(wave: Wave, front: Front, lanes: Lanes) -> None:
        state = np.broadcast_to(read(wave, front), (wave.lanes,))
        write(wave, front, lanes, (state >> np.uint64(20) & np.uint64(MOST)).astype(np.uint32))

    return step


def _arrive_when_copied(site: Site, *modifiers: str) -> Step:
    """cp.async.mbarrier.arrive: the lane's copies land, and it arrives; without noinc as one more."""
    site.count(1)
    address, counts = _address(site, 0, modifiers), "noinc" in modifiers

    def step(wave: Wave, front: Front, lanes: Lanes) -> None:
        where = lanes.of(address(wave, front))
        wave.places("shared", lanes, where, 8)  # raises before anything lands
        land_all(wave, front, lanes)
        update(wave, front, lanes, where, np.ones(lanes.count, np.int64), arrive if counts else _same)

    return step


# --- rows --------------------------------------------------------------------------------------------

Need = tuple[Version, int]  # the first PTX version, the first target

_SPACES: dict[str, Need] = {
    "": ((7, 0), 80),
    "shared": ((7, 0), 80),
    "shared::cta": ((7, 8), 80),
    "shared::cluster": ((8, 0), 90),
}
_OWN = ("", "shared", "shared::cta")
_ALL = tuple(_SPACES)
_NONE: dict[tuple[str, str], Need] = {("", ""): ((7, 0), 80)}
_RELAXED: dict[tuple[str, str], Need] = {
    ("relaxed", "cta"): ((8, 6), 90),
    ("relaxed", "cluster"): ((8, 6), 90),
}


def _ordered(order: str) -> dict[tuple[str, str], Need]:
    return {**_NONE, (order, "cta"): ((8, 0), 80), (order, "cluster"): ((8, 0), 90), **_RELAXED}


_BYTES = {**_NONE, ("relaxed", "cta"): ((8, 0), 90), ("relaxed", "cluster"): ((8, 0), 90)}
_RELEASE, _ACQUIRE = _ordered("release"), _ordered("acquire")
_INCOMPLETE = {**_NONE, ("release", "cta"): ((8, 0), 80)}


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
            chip=max(need[1], _SPACES[space][1], chip),
        )
        for space in spaces_
        for (order, scope), (since, chip) in orders.items()
    )


_FIRST, _HOPPER = ((7, 0), 80), ((8, 0), 90)

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
    *_rows(("test_wait", "parity"), _wait, ((7, 1), 80), _OWN, _ACQUIRE),
    *_rows(("try_wait",), _wait, ((7, 8), 90), _OWN, _ACQUIRE),
    *_rows(("try_wait", "parity"), _wait, ((7, 8), 90), _OWN, _ACQUIRE),
    *_rows(("pending_count",), _pending, _FIRST, ("",)),
    *_rows(("async", "mbarrier", "arrive"), _arrive_when_copied, _FIRST, opcode="cp"),
    *_rows(("async", "mbarrier", "arrive", "noinc"), _arrive_when_copied, _FIRST, opcode="cp"),
)
