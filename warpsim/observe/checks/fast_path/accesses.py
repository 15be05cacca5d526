"""Checks of shared-memory accesses by lanes: one compiled loop per access answers all rules.

A weak load is checked when the first rule asks, and its time is recorded then: the rules before ``Races``
change neither clocks nor tables. A store is checked and recorded by ``Races``, the last rule, since the rules
before it need the previous contents. The table of reads is filled only if something needs it, which is rare.
Knows how accesses are checked; does not know messages.
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


class LoadCheck(NamedTuple):
    """Suspicions about a load: it may read uninitialised cells, cells that a pending cp.async writes, or be
    in a race.
    """

    uninitialised: bool
    copy_in_flight: bool
    racy: bool


class StoreMark(NamedTuple):
    """The mark of a store in its cells: whether they are initialised; and the statement, plus 1, of the
    pending cp.async that writes them: 0 for none, -1 to keep the mark.
    """

    initialised: bool
    pending_copy: int = -1


class Accesses:
    """Checks accesses of a wave's lanes for the rules; ``flights`` counts cp.async words in flight."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.flights = 0
        self._strong: dict[int, bool] = {}
        self._shadow: Shadow | None = None
        self._seen: tuple[MemoryAccess | None, LoadCheck | None] = None, None

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

    def load(self, wave: Wave, access: MemoryAccess) -> LoadCheck | None:
        """Check a weak load, and record it unless it is racy. Returns None for strong loads,
        which may acquire something first, and if there is no compiled loop.
        """
        if self._seen[0] is not access:
            weak = not self.is_strong(wave, access.path.pc)
            self._seen = access, self._load(wave, access) if weak else None
        return self._seen[1]

    def is_race_free_load(self, wave: Wave, access: MemoryAccess) -> bool:
        """Return whether a load is in no race; record it then."""
        seen = self.load(wave, access) or self._load(wave, access)
        return seen is not None and not seen.racy

    def _load(self, wave: Wave, access: MemoryAccess) -> LoadCheck | None:
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
        return LoadCheck(*(bool(flags & flag) for flag in (loops.UNFILLED, loops.FLYING, loops.LATE)))

    # --- stores ---

    def store(self, wave: Wave, access: MemoryAccess, left: StoreMark) -> tuple[bool, bool]:
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
