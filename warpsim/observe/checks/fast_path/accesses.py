"""Accesses of shared memory by lanes, each looked at in one compiled loop for all rules that ask of it.

A load that is weak is looked at when the first rule asks, and its time noted there: the rules before
``Races`` change neither clocks nor tables then. A store is looked at and noted by ``Races`` alone, the last
rule, since those before it ask what was there. What reads leave in the table of reads goes there when it is
asked for, mostly never. Knows how accesses are looked at; does not know what is said of them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ....machine.state.memory_access import MemoryAccess
from ..order_kinds import is_strong
from ..shadow import STRONG, Shadow
from . import loops_for, plain

if TYPE_CHECKING:
    from ....machine.run.wave import Wave
    from ..order import Order


class Seen(NamedTuple):
    """What may have to be said of a load: that cells were never written, that a cp.async may still write
    them, or that it is in a race.
    """

    unfilled: bool
    flying: bool
    late: bool


class Left(NamedTuple):
    """What a store leaves in its cells: whether they are written, and the statement, plus 1, of a cp.async
    that may still write them; 0 for none, -1 for that of before.
    """

    filled: bool
    flight: int = -1


class Accesses:
    """What rules know of the accesses of a wave's lanes; ``flights`` counts words of cp.async in flight."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.flights = 0
        self._strong: dict[int, bool] = {}
        self._shadow: Shadow | None = None
        self._seen: tuple[MemoryAccess | None, Seen | None] = None, None

    def shadow(self, wave: Wave) -> Shadow:
        """Return the shadow of the wave's shared memory."""
        if self._shadow is None:
            self._shadow = self.order.shared(wave)
        return self._shadow

    def is_strong(self, wave: Wave, pc: int) -> bool:
        """Return whether a statement's accesses are strong: they may meet others that are."""
        known = self._strong.get(pc)
        if known is None:
            known = self._strong[pc] = is_strong(wave.code[pc])
        return known

    # --- loads ---

    def load(self, wave: Wave, access: MemoryAccess) -> Seen | None:
        """Return what may have to be said of a load, which is noted if it is in no race; None for strong
        loads, which may acquire something first, and where no loop looks.
        """
        if self._seen[0] is not access:
            weak = not self.is_strong(wave, access.path.pc)
            self._seen = access, self._load(wave, access) if weak else None
        return self._seen[1]

    def is_quiet_load(self, wave: Wave, access: MemoryAccess) -> bool:
        """Return whether a load is in no race, and is noted."""
        seen = self.load(wave, access) or self._load(wave, access)
        return seen is not None and not seen.late

    def _load(self, wave: Wave, access: MemoryAccess) -> Seen | None:
        loops = loops_for(wave, access)
        if loops is None:
            return None
        tables, words = self._operands(loops, wave, access)
        shadow = self.shadow(wave)
        own = np.zeros(self.order.clocks.warps, np.int32)
        marks = loops.Marks(shadow.filled, shadow.flying)
        flags = loops.load(tables, words, marks, bool(self.flights), own)
        if not flags & loops.LATE:
            note = partial(loops.note_reads, *shadow.places, words, own)
            shadow.note_later(words.offsets.size, note)
        return Seen(*(bool(flags & flag) for flag in (loops.UNFILLED, loops.FLYING, loops.LATE)))

    # --- stores ---

    def store(self, wave: Wave, access: MemoryAccess, left: Left) -> tuple[bool, bool]:
        """Return whether a store is in no race with what was before, and is noted with what it leaves; and
        whether warps may have met in a cell.
        """
        loops = loops_for(wave, access)
        if loops is None:
            return False, False
        shadow = self.shadow(wave)
        marks = loops.Marks(shadow.filled, shadow.flying)
        operands = *self._operands(loops, wave, access), marks, *left
        found = loops.store(*operands, shadow.stale)
        if found == loops.STALE:
            shadow.write_noted()
            found = loops.store(*operands, False)
        return found != loops.CLOSER, found == loops.SEVERAL

    # --- what loops are given ---

    def _operands(self, loops: Any, wave: Wave, access: MemoryAccess) -> tuple[Any, Any]:
        """Return tables and words."""
        shadow, clocks, pc = self.shadow(wave), self.order.clocks, access.path.pc
        self.order.lanes.accessed += 1
        tables = loops.Tables(*shadow.places, *shadow.tables(clocks.of_cluster), clocks.visible)
        flags = STRONG * int(self.is_strong(wave, pc))
        words = plain(access.lanes.index), plain(access.offsets), access.size
        return tables, loops.Words(*words, pc, flags, clocks.of_cluster, self.order.lanes.ordered.since)
