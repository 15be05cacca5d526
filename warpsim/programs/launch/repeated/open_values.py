"""Which values come of bytes that were never written, or of undefined metadata: followed through a launch.

Such a value is open: with other bytes it may be another. Where a launch stores none of them in global memory,
and no branch, guard, address or other thread depends on any, each statement does the same whatever they are,
and what the launch leaves does not depend on them: it need not be executed again to find out. Registers are
followed lane by lane, shared memory byte by byte; whatever a statement has computed from an open value is
open. A statement of an unknown kind ends it, as does all that lets an open value out: then nothing
is said. Does not know what any statement computes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ....isa.instruction import Instruction
from ....isa.warps import WARP
from ....machine.run.asynchronous import ASYNCHRONY
from ....machine.run.events import helper
from ....machine.run.following import Follower
from ....machine.run.wave import Wave
from ....machine.state.lanes import DivergentPath, Frame, Lanes, Mask
from ....machine.state.memory_access import MemoryAccess
from ....machine.state.spaces import Bytes
from .followed_statements import STATEMENTS, Kind, Product, Statement, Statements
from .open_products import lanes_of_rows, reach_of, reach_of_matrices, reached

_PAGE = 16  # bytes that the widest access has
_WIDEST = 8  # bytes of an element of NumPy
_MOST_KEPT = 64


class Following:
    """The open values of all waves of a launch."""

    def __init__(self) -> None:
        self.waves = list[OpenValues]()

    def begin(self) -> OpenValues:
        """Return the open values of another wave."""
        self.waves.append(OpenValues())
        return self.waves[-1]

    def closed(self, undefined: Mapping[int, object], waves: int) -> bool:
        """Return whether nothing that the launch leaves is open: all of its ``waves`` were followed, and
        nothing has escaped. ``undefined`` are the statements of which undefined metadata was found.
        """
        seen = set[int]().union(*(wave.sparse for wave in self.waves))
        followed = len(self.waves) == waves and seen.issuperset(undefined)
        return followed and not any(wave.escaped for wave in self.waves)


class OpenValues(Follower):
    """The open values of a wave: ``registers`` by number, the lanes in which they are; ``shared`` has a mark
    for each byte.

    ``escaped`` says that something may depend on them, and ``sparse`` are the statements that had undefined
    metadata.
    """

    def __init__(self) -> None:
        self.due = self.escaped = False
        self.sparse = set[int]()
        self.registers = dict[int, Mask]()
        self._statements: Statements | None = None
        self.shared: Bytes | None = None
        self._loaded = dict[int, Mask]()  # by statement, (parts, lanes) that have just loaded open bytes,
        self._kept = dict[tuple[object, ...], tuple[object, object, Sequence[Mask | None]]]()
        self._alike = dict[bytes, Mask]()  # a mask for all that are alike
        self._rows = dict[int, list[Mask]]()  # and those whose registers of D are of undefined rows

    # --- where values begin to be open ---

    @helper
    def unwritten(self, wave: Wave, access: MemoryAccess, missing: Mask) -> None:
        """Note the lanes that load bytes that were never written."""
        self._load_open(wave, access, missing[:, None])

    @helper
    def unwritten_elsewhere(self, wave: Wave) -> None:
        """Give up: what an operation does with bytes that were never written is not followed."""
        self._escape(wave)

    def undefined_rows(
        self, places: Sequence[int], form: Instruction, warps: npt.NDArray[np.intp], rows: Mask
    ) -> None:
        """Note ``rows (statements, warps, m)`` of D of some warps."""
        self.due = not self.escaped
        self.sparse.update(places)
        numbers, alike = np.asarray(warps, np.intp).tobytes(), bool((rows == rows[:1]).all())
        found = [lanes_of_rows(form, numbers, of.tobytes()) for of in (rows[:1] if alike else rows)]
        self._rows |= zip(places, found * len(places) if alike else found, strict=True)

    def _load_open(self, wave: Wave, access: MemoryAccess, opened: Mask) -> None:
        """Note ``opened (words, parts)`` of a load: a part is of a register, or of all."""
        if self.escaped:
            return
        if len(access.offsets) != access.lanes.count or (not self.due and ASYNCHRONY.of(wave).flying):
            self._escape(wave)
            return
        self.due = True
        known, places = STATEMENTS.of(wave.entry).at(access.path.pc), access.lanes.index
        lanes = self._loaded.setdefault(access.path.pc, np.zeros((known.parts, wave.lanes), np.bool_))
        for part, mask in enumerate(lanes):
            mask[places] |= opened[:, part if opened.shape[1] > 1 else 0]

    def _escape(self, wave: Wave) -> None:
        """Say nothing of this wave: it is not followed any longer."""
        self.escaped = True
        self._end(wave)

    def exit(self, wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        """Forget what is open when a wave has ended: a launch may have thousands. That its last lanes exit
        must not depend on it.
        """
        if not wave.alive:
            guard = STATEMENTS.of(wave.entry).at(path.pc).guard
            self.escaped |= _any_in(lanes, (self.registers.get(guard),))
            self._end(wave)

    def _end(self, wave: Wave) -> None:
        self.due, self.shared, wave.follower = False, None, None
        for known in (self.registers, self._loaded, self._rows, self._kept, self._alike):
            known.clear()

    # --- memory ---

    def load(self, wave: Wave, access: MemoryAccess) -> None:
        """Note lanes that load open bytes of shared memory."""
        if self.shared is None or access.memory is not wave.memories.shared:
            return
        table, places = self._parts(self.shared, access, STATEMENTS.of(wave.entry).at(access.path.pc).parts)
        opened = table[places] != 0
        if opened.any():
            self._load_open(wave, access, opened.any(axis=2))

    @staticmethod
    def _parts(table: Bytes, access: MemoryAccess, parts: int) -> tuple[Bytes, npt.NDArray[np.int64]]:
        """Return a table with a mark for some bytes, and ``(words, parts, marks)``: where those of so many
        parts of each word are.
        """
        size = access.size // parts if access.size % parts == 0 else access.size
        width = min(size & -size, _WIDEST)
        steps = np.arange(access.size // width).reshape(-1, size // width)
        return table.view(f"u{width}"), (access.offsets // width)[:, None, None] + steps

    def store(self, wave: Wave, access: MemoryAccess) -> None:
        """Mark the bytes of shared memory that lanes are about to write; open values go nowhere else."""
        if not self.due:
            return
        known = STATEMENTS.of(wave.entry).at(access.path.pc)
        opened = self._opened_of(known, access)
        if opened is not None and (
            access.memory is not wave.memories.shared or len(access.offsets) != access.lanes.count
        ):
            self._escape(wave)
        elif access.memory is wave.memories.shared:
            self._mark(access, opened)

    def _opened_of(self, known: Statement, access: MemoryAccess) -> Mask | None:
        """Return ``(words, parts)``: which parts of what is stored are open; None where none is."""
        masks = [*map(self.registers.get, known.moved)] or [self._any_of(known.values)]
        if all(mask is None for mask in masks):
            return None
        lanes, closed = access.lane_of, np.zeros(len(access.offsets), np.bool_)
        found = np.stack([closed if mask is None else mask[lanes] for mask in masks], axis=1)
        return found if found.any() else None

    def _mark(self, access: MemoryAccess, opened: Mask | None) -> None:
        """Mark bytes of shared memory, open those of some parts of words."""
        if self.shared is None:
            if opened is None:
                return
            self.shared = np.zeros(-(-access.memory.size // _PAGE) * _PAGE, np.uint8)
        table, places = self._parts(self.shared, access, 1 if opened is None else opened.shape[1])
        marked = table.dtype.type(np.iinfo(table.dtype).max)
        table[places] = 0 if opened is None else opened[:, :, None] * marked

    # --- statements ---

    @helper
    def executed(self, wave: Wave, frame: Frame, lanes: Lanes, first: int, past: int) -> None:
        """Follow each of some statements that touches open values."""
        known = self._statements = self._statements or STATEMENTS.of(wave.entry)
        if frame.caller is not None:
            self._escape(wave)
            return
        registers, whole = self.registers, past - first > 1 and not (self._loaded or self._rows)
        touched = known.touched(first, past) if whole else None
        if touched is not None and registers.keys().isdisjoint(touched):
            return
        for pc in range(first, past):
            if not self.due:
                return
            each = known.at(pc)
            apart = registers.keys().isdisjoint(each.touched)
            if each.simple and not apart:
                opened = self._any_of(each.values)
                for number in each.written:
                    self._write(number, lanes, opened, always=True)
            elif not (each.simple or (apart and self._is_plain(each))):
                self._executed(wave, lanes, pc, each)

    def _is_plain(self, known: Statement) -> bool:
        """Return whether a statement that touches no open registers leaves all as it is."""
        return known.kind is not Kind.UNKNOWN and not (self._loaded or self._rows)

    def _executed(self, wave: Wave, lanes: Lanes, pc: int, known: Statement) -> None:
        """Follow a statement."""
        closed = (self.registers.get(known.guard), self._any_of(known.addresses))
        if known.kind is Kind.UNKNOWN or _any_in(lanes, closed):
            self._escape(wave)
        elif known.kind is Kind.PRODUCT:
            self._product(wave, lanes, pc, known)
        elif known.kind is Kind.MATRICES:
            self._matrices(wave, lanes, pc, known)
        elif known.kind is not Kind.STORES:
            opened = self._any_of(known.values)
            if known.kind in _ALONE and _any_in(lanes, (opened,)):
                self._escape(wave)
            else:
                self._results(wave, lanes, pc, known, opened)

    def _results(self, wave: Wave, lanes: Lanes, pc: int, known: Statement, opened: Mask | None) -> None:
        """Let the results of a statement be open, or not."""
        loaded = self._loaded.pop(pc, None)
        if loaded is not None and known.kind is not Kind.LOADS:
            self._escape(wave)
            return
        if loaded is not None and len(loaded) == len(known.moved):
            for number, mask in zip(known.moved, loaded, strict=True):
                part = _either(opened, mask if mask.any() else None)
                self._write(number, lanes, part, always=known.guard < 0)
            return
        found = _either(opened, None if loaded is None else loaded[0])
        for number in known.written:
            self._write(number, lanes, found, always=known.guard < 0)

    def _matrices(self, wave: Wave, lanes: Lanes, pc: int, known: Statement) -> None:
        """Let registers of an ldmatrix be open where their rows are."""
        loaded, modifiers = self._loaded.pop(pc, None), wave.code[pc].statement.modifiers
        if not (_are_whole(lanes) and known.moved) or ("m8n8" not in modifiers and loaded is not None):
            self._escape(wave)
            return
        found: Sequence[Mask | None] = [None] * len(known.moved)
        if loaded is not None:
            every = reached(loaded, reach_of_matrices(len(found), transposed="trans" in modifiers))
            found = [*map(self._shared_mask, every)]
        for number, opened in zip(known.moved, found, strict=True):
            self._write(number, lanes, opened, always=known.guard < 0)

    def _product(self, wave: Wave, lanes: Lanes, pc: int, known: Statement) -> None:
        """Let D of a matrix instruction be open where C is, in rows of A and of undefined metadata, and in
        columns of B.
        """
        product, rows = known.product, self._rows.pop(pc, None)
        if product is None or not _are_whole(lanes) or self._changes_errors(wave, product):
            self._escape(wave)
            return
        parts, before = self._parts_of_d(wave, product, rows), [*map(self.registers.get, product.c)]
        for place, number in enumerate(product.d):
            found = _either(before[place] if before else None, parts[place] if parts else None)
            self._write(number, lanes, found, always=known.guard < 0)

    def _parts_of_d(
        self, wave: Wave, product: Product, rows: Sequence[Mask] | None
    ) -> Sequence[Mask | None] | None:
        """Return the lanes of each register of D that do not come of C alone, None for none.

        Instructions in a row have operands in common: what was found last is kept.
        """
        masks = [*map(self.registers.get, product.operands)]
        if rows is None and not any(mask is not None for mask in masks):
            return None
        key = (product.form, product.selector, id(rows), *map(id, masks))
        if key not in self._kept:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[key] = rows, masks, self._found_of_d(wave, product, rows)
        return self._kept[key][2]

    def _found_of_d(self, wave: Wave, product: Product, rows: Sequence[Mask] | None) -> Sequence[Mask | None]:
        """Return the same: in rows of A and of undefined metadata, in columns of B, and wherever any lane
        of a warp has what is in no row or column.
        """
        closed = np.zeros(wave.lanes, np.bool_)
        every = self._any_of(product.others)
        found = [closed if every is None else _whole_warps(every)] * len(product.d)
        for role, numbers in product.spread:
            masks = [self.registers.get(number) for number in numbers]
            if any(mask is not None for mask in masks):
                held = np.stack([closed if mask is None else mask for mask in masks])
                reaching = reached(held, reach_of(product.form, role, product.selector))
                found = [mask | other for mask, other in zip(found, reaching, strict=True)]
        if rows is not None:
            found = [mask | _of_lanes(row, wave) for mask, row in zip(found, rows, strict=True)]
        return [*map(self._shared_mask, found)]

    def _shared_mask(self, mask: Mask) -> Mask | None:
        """Return the same mask for all that are alike, None for that of no lane."""
        return self._alike.setdefault(mask.tobytes(), mask) if mask.any() else None

    def _changes_errors(self, wave: Wave, product: Product) -> bool:
        """Return whether metadata are open, and may be an error: they are executed literally else."""
        metadata = dict(product.spread).get("e", ()) if product.spread else product.others
        return not wave.modes.literal and self._any_of(metadata) is not None

    def _write(self, number: int, lanes: Lanes, opened: Mask | None, *, always: bool) -> None:
        """Let a register be open in some of the lanes that have written it, ``always`` or perhaps.

        A sink, -1, is none.
        """
        if number < 0:
            return
        before = self.registers.get(number)
        if before is None and opened is None:
            return
        if always and lanes.whole:
            found = opened
        else:
            kept = before if before is None or not always else before & ~lanes.mask
            found = _either(kept, None if opened is None else opened & lanes.mask)
            found = found if found is not None and found.any() else None
        if found is not None:
            self.registers[number] = found
        elif before is not None:
            del self.registers[number]

    def _any_of(self, numbers: Iterable[int]) -> Mask | None:
        """Return the lanes in which any of some registers is open, None for none."""
        found: Mask | None = None
        if self.registers:
            for number in numbers:
                found = _either(found, self.registers.get(number))
        return found


_ALONE = frozenset({Kind.MEETS, Kind.COPIES})


def _either(first: Mask | None, second: Mask | None) -> Mask | None:
    """Return what is in either mask; masks are never changed."""
    if first is None or second is None:
        return second if first is None else first
    return first if first is second else first | second


def _any_in(lanes: Lanes, masks: Sequence[Mask | None]) -> bool:
    """Return whether any of the lanes is in a mask."""
    return any(mask is not None and bool((mask & lanes.mask).any()) for mask in masks)


def _whole_warps(mask: Mask) -> Mask:
    """Return all lanes of warps of which any is in a mask."""
    return np.repeat(mask.reshape(-1, WARP).any(axis=1), WARP)


def _are_whole(lanes: Lanes) -> bool:
    """Return whether lanes are those of whole warps."""
    return lanes.whole or bool((_whole_warps(lanes.mask) == lanes.mask).all())


def _of_lanes(mask: Mask, wave: Wave) -> Mask:
    """Return a mask of all lanes of a wave."""
    return mask if mask.size == wave.lanes else np.concatenate([mask, np.zeros(wave.lanes - mask.size, bool)])
