"""Rules of tensor memory: what must happen before statements of tcgen05 touch a cell.

    read early           a cell is read that an operation may still write: no wait for its commit, or no
                         tcgen05.wait::st
    overwritten early    a cell is written that an operation may still read or write: as above, or
                         tcgen05.wait::ld and a barrier; where tcgen05.wait::ld alone is missing: a warning
    not allocated yet    a cell of an allocation of another warp, perhaps of the other CTA of a pair, which
                         nothing says is done
    deallocated early    columns are freed that an operation may still read or write
    not deallocated      a CTA ends that has not freed its columns
    issue order          a note: a copy or product overwrites what an earlier statement of the same thread
                         uses, and relies on an order of issue that the manual does not list

tcgen05.mma and cp of a thread complete in the order of their issue, and a commit says that those before
it are complete; a warp's loads and stores are complete when it has waited for them (PTX ISA 9.3, section
9.7.17.6). A missing tcgen05.fence is no error: mbarriers and barriers acquire and release without. Registers
of a load may be used without a wait. Messages are in tensor_words.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from ....isa.layouts.tensor_memory import COLUMNS, LANES
from ....isa.warps import WARP
from ....machine.run.events import Observer, TensorAccess, TensorColumns, helper
from ....machine.run.pending import Pending
from ....machine.state.lanes import DivergentPath, Lanes, Mask
from ....machine.state.tensor_cells import Block
from ..clocks import Clocks
from ..findings import Findings
from ..order import Order
from ..order_kinds import places_of
from ..shadow import OPERATION, Records, places, record, times, whose
from .tensor_words import Held, Late, Words

if TYPE_CHECKING:
    from ....machine.run.wave import Record, Wave

_IN_ORDER = 0  # the row of reads that stands for operations of single threads; others are of warpgroups
_NONE = -1  # no component
_QUARTERS = 4  # warps of a warpgroup, each of which reaches a quarter of the lanes
Times = npt.NDArray[np.int32]  # by component of a clock
_Extent = tuple[int, int, int, int]  # the first column and lane, and those behind the last


class TensorOrder(Observer):
    """An observer of tensor memory: accesses that nothing orders, and columns that stay allocated."""

    wrote: Records  # (CTAs, columns, lanes)
    taken: Records  # (kinds, CTAs, columns, lanes)

    def __init__(self, findings: Findings, order: Order) -> None:
        self.order, self.words = order, Words(findings, order)
        self.active, self.ready = True, False
        self.held: dict[int, dict[int, Held]] = {}  # by CTA and first column
        self.reused: set[int] = set()  # CTAs that have freed columns
        self.used: dict[int, None] = {}  # kinds that have read anything
        self.extents: dict[tuple[int, int], _Extent] = {}  # by CTA and statement: what it wrote last

    def instrument(self, code: Sequence[Record]) -> Sequence[Record]:
        """Return the code as it is; without tcgen05 nothing is looked at."""
        self.active = bool(places_of(code, "tcgen05"))
        return code

    @helper
    def prepare(self, wave: Wave) -> Clocks:
        """Return the clocks of the wave; the first call makes tables."""
        if not self.ready:
            self.ready, shadow = True, self.order.tensor(wave)
            cells = len(wave.ctas), COLUMNS, LANES
            kinds = 1 + -(-wave.warps // _QUARTERS)
            self.wrote = shadow.wrote.reshape(cells)
            self.taken = shadow.taken_of(kinds)[:kinds].reshape(kinds, *cells)
        return self.order.clocks

    # --- columns ---

    def tensor_columns(self, wave: Wave, change: TensorColumns) -> None:
        """Columns are allocated: other warps must know of that; or freed: nothing may use them any more."""
        clocks, lane = self.prepare(wave), change.lane
        cta, pc, warp = int(wave.cta[lane]), change.path.pc, lane // WARP
        columns = slice(change.first, change.first + change.size)
        if change.allocates:
            now = record(int(clocks.own(np.array([warp]))[0]), pc, int(clocks.column[warp]), OPERATION)
            self.wrote[cta, columns] = now
            if cta in self.reused:
                self.taken[:, cta, columns] = 0
            self.held.setdefault(cta, {})[change.first] = Held(lane, pc, change.size)
            return
        self.held.get(cta, {}).pop(change.first, None)
        self.reused.add(cta)
        block = Block(name="the columns", cta=cta, lanes=slice(0, LANES), columns=columns)
        known = clocks.happened(warp)  # no value is read or written: what is over is enough, visible or not
        late = self._read(block, known, ()) or self._late_write(block, known, _NONE)
        if late is not None:
            self.words.freed(wave, change.path, lane, late)

    def exit(self, wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        """Lanes have exited, perhaps the last of their CTAs."""
        for cta in np.unique(wave.cta[lanes.index]).tolist() if self.held else ():
            if not wave.alive_of_cta[cta]:
                for first, held in self.held.pop(cta, {}).items():
                    self.words.kept(wave, first, held)

    # --- accesses ---

    def issued(self, wave: Wave, path: DivergentPath, pending: Pending) -> None:
        """Remember commits, which messages name."""
        if pending.arrivals:
            self.words.committed(pending, path.pc)

    def tensor_access(self, wave: Wave, access: TensorAccess) -> None:
        """Check what is read and written, and note it."""
        clocks, lane, pc = self.prepare(wave), access.lane, access.path.pc
        warp = lane // WARP
        component = clocks.group_of(access.family, lane)
        self.words.issued(clocks, access)
        free = component if access.in_order else _NONE
        known = clocks.visible[warp]
        for block in access.reads:
            late = self._late_change(block, clocks, warp, free)
            if late is not None:
                self.words.read_early(wave, access, late)
        for block in access.writes:
            late = self._late_change(block, clocks, warp, free)
            late = late or self._read(block, known, (free, self._own_loads(clocks, access)))
            if late is not None:
                self.words.overwritten(wave, access, late)
            elif access.in_order:
                self._note_order(wave, access, block, component)
            if access.in_order:
                self.extents[block.cta, pc] = _extent(block)
        now = record(access.number + 1, pc, component, OPERATION)
        kind = _IN_ORDER if access.in_order else 1 + warp % wave.warps // _QUARTERS
        for block in access.reads:
            self.used[kind] = None
            self._put(self.taken[kind], block, now)
        for block in access.writes:
            self._put(self.wrote, block, now)
            for used in self.used:
                self._put(self.taken[used], block, 0)

    def _late_change(self, block: Block, clocks: Clocks, warp: int, free: int) -> Late | None:
        """Return where a cell may still be written, or not be allocated, as far as a warp knows.

        An allocation is not a value that must be visible: it is enough that it has happened.
        """
        late = self._late_write(block, clocks.visible[warp], free)
        if late is None or int(whose(late.earlier)) >= clocks.of_cluster:
            return late
        known, own = clocks.visible[warp].copy(), slice(clocks.of_cluster)
        known[own] = clocks.happened(warp)[own]
        return self._late_write(block, known, free)

    def _own_loads(self, clocks: Clocks, access: TensorAccess) -> int:
        """Return the component of loads of the warp that stores, issued before; _NONE for others.

        A store often has what it stores from registers of these loads.
        """
        if access.in_order or "tcgen05.ld" not in clocks.groups:
            return _NONE
        return clocks.group_of("tcgen05.ld", access.lane)

    @staticmethod
    def _put(table: Records, block: Block, now: int) -> None:
        cells = table[block.cta, block.columns, block.lanes]
        if block.mask is None:
            cells[...] = now
        else:
            cells[block.mask] = now

    def _late_write(self, block: Block, known: Times, free: int) -> Late | None:
        """Return where a cell may still be written, by the times that are known; ``free`` is a component."""
        records = self.wrote[block.cta, block.columns, block.lanes]
        late = _late(records, known, block.mask, (free,))
        return None if late is None else Late(block, late, int(records[late][0]), "write")

    def _read(self, block: Block, known: Times, free: tuple[int, ...]) -> Late | None:
        """Return where a cell may still be read."""
        for kind in self.used:
            records = self.taken[kind, block.cta, block.columns, block.lanes]
            late = _late(records, known, block.mask, free)
            if late is not None:
                return Late(block, late, int(records[late][0]), "read")
        return None

    def _note_order(self, wave: Wave, access: TensorAccess, block: Block, component: int) -> None:
        """Note what only the order of issue keeps apart, and the manual does not list."""
        visible = self.order.clocks.visible[access.lane // WARP]
        tables: tuple[tuple[Records, Literal["read", "write"]], ...]
        tables = (self.taken[_IN_ORDER], "read"), (self.wrote, "write")
        for table, how in tables:
            records = table[block.cta, block.columns, block.lanes]
            own = _pending(records, component, int(visible[component]))
            if own is not None:
                first = int(records[own][0])
                if how == "read" or self.extents.get((block.cta, int(places(first)))) != _extent(block):
                    self.words.ordered_by_issue(wave, access, Late(block, own, first, how))


def _extent(block: Block) -> _Extent:
    return block.columns.start, block.lanes.start, block.columns.stop, block.lanes.stop


def _pending(records: Records, component: int, known: int) -> Mask | None:
    """Return which accesses are of a component and not known to be over; None for none."""
    first = int(records[0, 0])
    over = int(whose(first)) != component or int(times(first)) <= known
    if over and (records == first).all():  # of one operation, as most are
        return None
    own: Mask = (whose(records) == component) & (times(records) > known)
    return own if own.any() else None


def _late(records: Records, known: Times, mask: Mask | None, free: tuple[int, ...]) -> Mask | None:
    """Return which accesses a warp does not know to be over, less those of some components; None for none."""
    first = int(records[0, 0])
    if (records == first).all():  # of one operation, as most are
        owner = int(whose(first))
        if not first or owner in free or int(known[owner]) >= int(times(first)):
            return None
    owners = whose(records)
    late: Mask = (records != 0) & (known[owners] < times(records))
    for component in free:
        late &= owners != component
    if mask is not None:
        late &= mask
    return late if late.any() else None
