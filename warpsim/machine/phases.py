"""mbarrier objects: barriers of 64 bits in shared memory, and lanes that sleep until a phase of one is over.

PTX keeps the bits of an object to itself; here they are, lowest first:

    20  expected   arrivals of a phase
    20  pending    arrivals that are still to come in this phase
    21  tx         bytes that are still to come, signed
     1  valid      set by init, cleared by inval
     1  parity     of the current phase: 0 for the first, then 1, 0, 1, …
     1  zero

Knows objects and sleepers; does not know statements (opcodes/mbarriers.py). PTX ISA 9.1, section 9.7.13.15.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..errors import UndefinedBehavior
from . import spaces
from .lanes import Front, Lanes, Values
from .wave import LaneWait

if TYPE_CHECKING:
    from .asynchrony import Pending
    from .wave import Wave

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
        words[offset] = changed(wave, front, int(lanes.index[place]), words[offset], count, change)
    after = np.array([words[offset] for offset in offsets.tolist()], np.uint64)
    spaces.put_words(memory, offsets, after[:, None])
    if wave.observers:
        wave.tell("mbarrier", front, lanes, memory, offsets)
    _wake(wave, [one for one in words if (words[one] ^ begun[one]) >> 62 & 1])
    return before


def _settled(word: int, count: int, change: Change) -> int:
    """The 64 bits after a change; raises Misuse."""
    one = Object.of(word)
    if not one.valid:
        raise Misuse("no mbarrier has been initialised there")
    after = change(one, count)
    return (one if after == one else after.settled()).word


def changed(wave: Wave, front: Front, lane: int, word: int, count: int, change: Change) -> int:
    """The 64 bits after a lane's change; raises UndefinedBehavior."""
    try:
        return _settled(word, count, change)
    except Misuse as misuse:
        raise undefined(wave, front, lane, str(misuse)) from None


def undefined(wave: Wave, front: Front, lane: int, why: str) -> UndefinedBehavior:
    """The error of one lane at the statement of a front."""
    statement = wave.code[front.pc].statement
    return UndefinedBehavior(f"{statement.mnemonic}: {why} [{wave.place(lane)}]", statement.location())


def _wake(wave: Wave, offsets: list[int]) -> None:
    """Lanes that sleep until the phase of one of these objects is over try again."""
    sleepers = wave.kept.get(_SLEEPERS)
    if offsets and sleepers is not None:
        wave.wake(_SLEEP, np.isin(sleepers, offsets))


def sleep(wave: Wave, front: Front, lanes: Lanes, where: Values) -> bool:
    """Some lanes stop until the phase of their object is over, and then try again."""
    sleepers = wave.kept.get(_SLEEPERS)
    if sleepers is None:
        sleepers = np.full(wave.lanes, -1)
    wave.kept[_SLEEPERS] = np.where(lanes.mask, where + wave.shared_base, sleepers)
    return wave.wait(front, lanes, _SLEEP, behind=False)


def awaited(wave: Wave) -> frozenset[int]:
    """The objects, as offsets in shared memory, that lanes sleep for."""
    asleep = [front.lanes.index for front in wave.waiting if front.waits is _SLEEP]
    if not asleep:
        return frozenset()
    return frozenset(wave.kept[_SLEEPERS][np.concatenate(asleep)].tolist())


def complete_tx(wave: Wave, offset: int, count: int, cause: Pending) -> None:
    """So many bytes have come for the object at an offset of shared memory; who sleeps for it is woken.

    Raises UndefinedBehavior, pointing at the operation that brought them.
    """
    place = np.array([offset])
    word = int(spaces.words_at(wave.shared, place, 8)[0, 0])
    try:
        after = _settled(word, -count, expect)
    except Misuse as misuse:
        statement = cause.record.statement
        message = f"{statement.mnemonic}: {misuse} [{wave.place(cause.lane)}]"
        raise UndefinedBehavior(message, statement.location()) from None
    spaces.put_words(wave.shared, place, np.array([[after]], np.uint64))
    if wave.observers:
        wave.tell("arrived_bytes", cause, offset, count)
    if (word ^ after) >> 62 & 1:
        _wake(wave, [offset])
