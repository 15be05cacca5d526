"""mbarrier objects: barriers of 64 bits in shared memory, and lanes that sleep until a phase is over.

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
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from ....base.errors import UndefinedBehavior
from ...bind.variable_names import place_name
from ...state import spaces
from ...state.lanes import DivergentPath, Lanes, Values
from ...state.memory_access import MemoryAccess
from ...state.side_tables import SideTable
from ..clusters import RANK_BYTES
from ..events import observers_of
from ..pending import Pending
from ..wave import Wave
from .waits import LaneWait

MOST = (1 << 20) - 1  # arrivals, and bytes either way


def _asleep_nowhere(wave: Wave) -> Values:
    return np.full(wave.lanes, -1)


_SLEEPERS = SideTable(_asleep_nowhere)  # (lanes,): offsets of the mbarriers that lanes wait for, -1 for none


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
        """Decode the object of 64 bits."""
        tx = word >> 40 & 0x1FFFFF
        return cls(
            word & MOST, word >> 20 & MOST, tx - ((tx >> 20) << 21), bool(word >> 61 & 1), word >> 62 & 1
        )

    @property
    def word(self) -> int:
        """Return the 64 bits."""
        counts = self.expected | self.pending << 20 | (self.tx & 0x1FFFFF) << 40
        return counts | self.valid << 61 | self.parity << 62

    def settled(self) -> Object:
        """Return the next phase, if nothing is left to come in this phase."""
        if self.pending or self.tx:
            return self
        return replace(self, pending=self.expected, parity=1 - self.parity)


class Misuse(Exception):
    """An operation that PTX leaves undefined, and why."""


def arrive(barrier: Object, count: int, *, drop: bool = False) -> Object:
    """Return the object after so many arrivals, before it settles; raises Misuse."""
    if not 1 <= count <= barrier.pending:
        raise Misuse(f"{count} arrivals, but {barrier.pending} are pending")
    return replace(barrier, pending=barrier.pending - count, expected=barrier.expected - count * drop)


def expect(barrier: Object, count: int) -> Object:
    """Return the object with so many more bytes to come; raises Misuse."""
    if not -MOST <= barrier.tx + count <= MOST:
        raise Misuse(f"the tx-count becomes {barrier.tx + count}: expected {-MOST} to {MOST}")
    return replace(barrier, tx=barrier.tx + count)


# --- objects in memory -------------------------------------------------------------------------------

Change = Callable[[Object, int], Object]


def update(
    wave: Wave,
    path: DivergentPath,
    lanes: Lanes,
    addresses: Values,
    counts: Values,
    change: Change,
    space: str = "shared",
) -> Values:
    """Return ``(lanes.count,)``: the objects before, as each lane in its turn found them; wake sleepers.

    ``space`` is "shared::cluster" for those that may lie in other CTAs of the cluster.
    Raises UndefinedBehavior for what is not an object, and for what ``change`` does not allow.
    """
    memory, offsets = wave.locate(space, lanes, addresses, 8)
    words = dict(zip(offsets.tolist(), spaces.words_at(memory, offsets, 8)[:, 0].tolist(), strict=True))
    before, begun = np.zeros(lanes.count, np.uint64), dict(words)
    for place, (offset, count) in enumerate(zip(offsets.tolist(), counts.tolist(), strict=True)):
        before[place] = words[offset]
        words[offset] = changed(wave, path, int(lanes.index[place]), words[offset], count, change)
    after = np.array([words[offset] for offset in offsets.tolist()], np.uint64)
    spaces.put_words(memory, offsets, after[:, None])
    ends = _record(wave, path, lanes, offsets, before, after)
    if observers_of(wave):
        observers_of(wave).mbarrier(wave, MemoryAccess(path, lanes, memory, offsets, 8))
        observers_of(wave).updated(wave, path, lanes, offsets, ends)
    _wake(wave, [offset for offset in words if (words[offset] ^ begun[offset]) >> 62 & 1])
    return before


@lru_cache(maxsize=1 << 14)  # the lanes of all CTAs, in all phases, make the same changes
def _settled(word: int, count: int, change: Change) -> int:
    """Return the 64 bits after a change; raises Misuse."""
    barrier = Object.of(word)
    if not barrier.valid:
        raise Misuse("no mbarrier has been initialised there")
    after = change(barrier, count)
    return (barrier if after == barrier else after.settled()).word


def changed(wave: Wave, path: DivergentPath, lane: int, word: int, count: int, change: Change) -> int:
    """Return the 64 bits after a lane's change; raises UndefinedBehavior."""
    try:
        return _settled(word, count, change)
    except Misuse as misuse:
        raise undefined(wave, path, lane, str(misuse)) from None


def undefined(wave: Wave, path: DivergentPath, lane: int, why: str) -> UndefinedBehavior:
    """Return the error of a lane at the statement of a path."""
    statement = wave.code[path.pc].statement
    return UndefinedBehavior(
        f"{statement.mnemonic}: {why} [{wave.describe_lane(lane)}]", statement.location()
    )


def _wake(wave: Wave, offsets: list[int]) -> None:
    """Wake lanes that sleep until the phase of one of these objects is over: they try again."""
    if not offsets or not wave.scheduler.waits_for(_SLEEP):
        return
    sleepers = _SLEEPERS.of(wave)
    mask = sleepers == offsets[0] if len(offsets) == 1 else np.isin(sleepers, offsets)
    wave.scheduler.wake(_SLEEP, mask)


def sleep(wave: Wave, path: DivergentPath, lanes: Lanes, where: Values) -> bool:
    """Stop some lanes until the phase of their object is over; they then try again."""
    offsets = where % RANK_BYTES + wave.memories.shared_base
    _SLEEPERS.set(wave, np.where(lanes.mask, offsets, _SLEEPERS.of(wave)))
    return wave.scheduler.wait(path, lanes, _SLEEP, behind=False)


# --- what has happened ---------------------------------------------------------------------------------


@dataclass(slots=True)
class History:
    """Of an object: how many phases are over, and of each warp of the wave in which phase, counted from 1, it
    arrived last, and at which statement.
    """

    over: int = 0
    arrivals: dict[int, tuple[int, int]] = field(default_factory=dict)


_HISTORIES = SideTable[dict[int, History]](lambda _: {})  # by offset


def history_of(wave: Wave, offset: int) -> History:
    """Return what has happened to the object at an offset of shared memory since it was initialised."""
    return _HISTORIES.of(wave).setdefault(offset, History())


def known_objects(wave: Wave) -> list[int]:
    """Return the offsets in shared memory of the objects that have been initialised."""
    return sorted(_HISTORIES.of(wave))


def begin(wave: Wave, offsets: spaces.Offsets) -> None:
    """Begin the history of initialised objects."""
    _HISTORIES.of(wave).update({offset: History() for offset in offsets.tolist()})


def _record(
    wave: Wave, path: DivergentPath, lanes: Lanes, offsets: spaces.Offsets, before: Values, after: Values
) -> dict[int, int]:
    """Record the arrivals of warps; return how many phases ended, by object."""
    ends: dict[int, int] = {}
    last: dict[int, int] = {}
    words = zip(offsets.tolist(), (lanes.index // 32).tolist(), before.tolist(), strict=True)
    for offset, warp, word in words:
        if offset in last:
            ends[offset] += (last[offset] ^ word) >> 62 & 1
        last[offset] = word
        ends.setdefault(offset, 0)
        history = history_of(wave, offset)
        history.arrivals[warp] = (history.over + ends[offset] + 1, path.pc)
    for offset, word in zip(offsets.tolist(), after.tolist(), strict=True):
        if offset in last:
            ends[offset] += (last.pop(offset) ^ word) >> 62 & 1
            history_of(wave, offset).over += ends[offset]
    return ends


def named(wave: Wave, offset: int, *, mbarrier: bool = True) -> str:
    """Name an mbarrier in shared memory, or a byte, by the variable that it is in, or by its address."""
    address = offset % wave.memories.shared_stride
    return place_name(wave.entry.shared, address, mbarrier=mbarrier) or f"{address:#x}"


def _missing_arrivals_text(wave: Wave, path: DivergentPath) -> str:
    """Return what the phases lack that lanes wait for, and the warps that have not arrived."""
    wanted = np.unique(_SLEEPERS.of(wave)[path.lanes.index]).tolist()
    return "; ".join(list(dict.fromkeys(_lacks(wave, offset) for offset in wanted))[:_FEW])


def _lacks(wave: Wave, offset: int) -> str:
    """Describe what an object waits for."""
    barrier = Object.of(int(spaces.words_at(wave.memories.shared, np.array([offset]), 8)[0, 0]))
    history = history_of(wave, offset)
    found = f"phase {history.over + 1} of the mbarrier {named(wave, offset)}"
    lacking = [f"{barrier.pending} of {barrier.expected} arrivals"] if barrier.pending else []
    lacking += [f"{barrier.tx} bytes that nothing in flight brings"] if barrier.tx > 0 else []
    found += f", which lacks {' and '.join(lacking)}" if lacking else ""
    if barrier.tx < 0:
        found += f", {'and ' * bool(lacking)}to which {-barrier.tx} bytes more have come than it expects"
    return found + (
        f" ({_arrivals(wave, history)}{_ahead(wave, offset, history)})" if barrier.pending else ""
    )


def _ahead(wave: Wave, offset: int, history: History) -> str:
    """Return where the same object of another CTA of the cluster is in a later phase."""
    stride, count = wave.memories.shared_stride, wave.cluster.count
    own, place = divmod(offset, stride)
    for peer in range(own - own % count, own - own % count + count):
        other = _HISTORIES.of(wave).get(peer * stride + place)
        if other is not None and other.over > history.over:
            return (
                f"; that of CTA rank {peer % count} is in phase {other.over + 1}: does the mask of a "
                f"multicast leave out CTA rank {own % count}?"
            )
    return ""


def _arrivals(wave: Wave, history: History) -> str:
    """Return the warps that arrived before and not in the current phase, else those that have arrived."""
    now = {warp: pc for warp, (phase, pc) in history.arrivals.items() if phase > history.over}
    before = {warp: at for warp, at in history.arrivals.items() if warp not in now}
    if before:
        most = max(phase for phase, _ in before.values())
        late = [(warp, pc) for warp, (phase, pc) in sorted(before.items()) if phase == most]
        names = [
            f"warp {warp % wave.warps} arrived last in phase {most}{_at(wave, warp, pc)}" for warp, pc in late
        ]
    else:
        names = [
            f"warp {warp % wave.warps} has arrived{_at(wave, warp, pc)}" for warp, pc in sorted(now.items())
        ]
    return ", ".join(names[:_FEW]) or "no warp has ever arrived there"


def _at(wave: Wave, warp: int, pc: int) -> str:
    gone = not wave.alive_mask[warp * 32 : warp * 32 + 32].any()
    return f", at line {wave.code[pc].statement.location().line}" + ", and has exited" * gone


_FEW = 4
_SLEEP = LaneWait(names="the end of a phase of an mbarrier", explain=_missing_arrivals_text)


def awaited(wave: Wave) -> frozenset[int]:
    """Return the objects, as offsets in shared memory, that lanes sleep for."""
    asleep = [path.lanes.index for path in wave.scheduler.waiting if path.waits is _SLEEP]
    if not asleep:
        return frozenset()
    return frozenset(_SLEEPERS.of(wave)[np.concatenate(asleep)].tolist())


def complete_tx(wave: Wave, offset: int, count: int, cause: Pending) -> None:
    """Count bytes that have come for the object at an offset of shared memory; wake lanes that wait for it.

    Raises UndefinedBehavior, pointing at the operation that brought them.
    """
    _change(wave, offset, -count, expect, cause)


def arrive_once(wave: Wave, offset: int, cause: Pending) -> None:
    """Arrive for an operation at the object at an offset of shared memory; lanes that wait for it are woken.

    Raises UndefinedBehavior, pointing at the operation.
    """
    history = history_of(wave, offset)
    history.arrivals[cause.lane // 32] = (history.over + 1, wave.code.index(cause.record))
    _change(wave, offset, 1, arrive, cause)


def _change(wave: Wave, offset: int, count: int, change: Change, cause: Pending) -> None:
    place = np.array([offset])
    word = int(spaces.words_at(wave.memories.shared, place, 8)[0, 0])
    try:
        after = _settled(word, count, change)
    except Misuse as misuse:
        statement = cause.record.statement
        message = f"{statement.mnemonic}: {misuse} [{wave.describe_lane(cause.lane)}]"
        raise UndefinedBehavior(message, statement.location()) from None
    spaces.put_words(wave.memories.shared, place, np.array([[after]], np.uint64))
    over = bool((word ^ after) >> 62 & 1)
    history_of(wave, offset).over += over
    observers_of(wave).bytes_came(wave, cause, offset, over)
    if over:
        _wake(wave, [offset])
