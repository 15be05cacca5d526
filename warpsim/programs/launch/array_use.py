"""What a launch did with arrays among its arguments: left parts unwritten, wrote twice, mistook the type.

    unwritten       part of an array that the kernel writes, and does not read before, was never written
    written twice   CTAs that nothing orders store different values to the same bytes
    element type    a kernel reads or writes an array of floats only in pieces of its elements

An unwritten part that holds different values is an update in place, and is left out. Where CTAs can wait for
each other (atomics, fences, clusters) they may write in turn, on purpose. Does not know when a
launch ends: ``report`` is called then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...machine.run.events import Observer, helper
from ...machine.run.pending import Pending
from ...machine.state.device import Buffer
from ...machine.state.memory_access import MemoryAccess
from ...machine.state.spaces import DEVICE_BASE, DeviceMemory
from ...observe.checks import fast_path
from ...observe.checks.findings import Findings, LaunchFinding, Severity
from .touched_bytes import gathered, put_pages

if TYPE_CHECKING:
    from ...base.errors import Location
    from ...machine.run.geometry import Geometry
    from ...machine.run.wave import Record, Wave

_ALL = {size: int.from_bytes(b"\1" * size, "little") for size in (1, 2, 4, 8)}  # every byte is written
_NONE = np.zeros((0, 1), np.uint8)  # bytes that are stored, where they are not known
_UNASKED = np.zeros(0, np.int32)  # times of warps, which nothing asks for
_UNNAMED = frozenset({1})  # bytes of accesses that say nothing of the type: any array may be copied so


@dataclass
class _Use:
    """How statements use an allocation: ``reads`` says that they take what was there before the launch, and
    ``sizes`` the bytes that a lane takes at once, and those of an element."""

    reads: bool = False
    atomics: bool = False
    first: Record | None = None  # the first that writes
    sizes: dict[tuple[int, int], Record] = field(default_factory=dict)

    def pieces(self, size: int) -> Record | None:
        """Return a statement that takes less than elements of a size, where none takes a whole element."""
        known = {sizes: record for sizes, record in self.sizes.items() if sizes[1] not in _UNNAMED}
        if any(element >= size for _, element in known):
            return None
        return next((record for (taken, _), record in known.items() if taken < size), None)


class Noted(NamedTuple):
    """What a statement does with arrays the first time: their addresses, the bytes that a lane takes, those
    of an element, and whether it reads what was there before the launch."""

    addresses: tuple[int, ...]
    taken: int
    size: int
    reads: bool
    atomic: bool


class ArrayNotes(NamedTuple):
    """What is noted of arrays: by statement, and the addresses of asynchronous reads and writes."""

    seen: dict[tuple[int, bool], Noted]
    fetched: set[int]
    completed: set[int]

    def since(self, before: ArrayNotes) -> ArrayNotes:
        """Return what came after earlier notes."""
        new = {key: noted for key, noted in self.seen.items() if key not in before.seen}
        return ArrayNotes(new, self.fetched - before.fetched, self.completed - before.completed)


class ArrayUse(Observer):
    """An observer of all waves of a launch; ``ordered`` says that CTAs can wait for each other."""

    def __init__(self, findings: Findings, *, ordered: bool) -> None:
        self.findings, self.waiting = findings, ordered
        self.uses: dict[int, _Use] = {}  # by the address of the allocation
        self.seen: dict[tuple[int, bool], Noted] = {}  # statements whose arrays are known
        self.reading: set[int] = set()  # addresses of arrays that asynchronous operations read,
        self.writing: set[int] = set()  # and write
        self.written: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)  # by byte of the device
        self.unit = 16  # bytes, the smallest that a store has written
        self.owner: npt.NDArray[np.int32] = np.zeros(0, np.int32)  # by unit: the CTA that wrote it, plus 1
        self.numbers: tuple[Geometry | None, npt.NDArray[np.int32]] = None, np.zeros(0, np.int32)  # by lane
        self.statement: npt.NDArray[np.int32] = np.zeros(0, np.int32)  # by unit: where

    # --- events ---

    def load(self, wave: Wave, access: MemoryAccess) -> None:
        """Note what a statement reads, the first time."""
        if access.memory is wave.memories.device.data and (access.path.pc, False) not in self.seen:
            self._room(wave)
            marks, places = access.marks_in(self.written.view(np.uint8))
            own = bool((marks[places] == _ALL[marks.itemsize]).all())  # only what the launch has written
            self._typed(wave, access, stores=False, reads=not own)

    def atomic(self, wave: Wave, access: MemoryAccess) -> None:
        """Note arrays that atomics change."""
        if access.memory is wave.memories.device.data:
            self._typed(wave, access, stores=True, atomic=True)
            self._room(wave)
            self.written[access.cells] = True

    def store(self, wave: Wave, access: MemoryAccess) -> None:
        """Mark bytes as written; CTAs that write others than are there are found."""
        if access.memory is not wave.memories.device.data:
            return
        if (access.path.pc, True) not in self.seen:
            self._typed(wave, access, stores=True)
        self._room(wave)
        if not self.waiting and self._changes_own_bytes(wave, access):
            return
        if not self.waiting:
            self._owned(wave, access)
        marks, places = access.marks_in(self.written.view(np.uint8))
        marks[places] = _ALL[marks.itemsize]

    def completed(self, wave: Wave, pending: Pending) -> None:
        """Mark what an asynchronous operation has written."""
        for stretches in pending.writes:
            if stretches.space == "global" and stretches.some is not None:
                self._room(wave)
                address, use = self._use(wave, stretches.some)
                use.first = use.first or pending.record
                self.writing.add(address)
                for first, past in stretches.ranges.tolist():
                    self.written[first:past] = True

    def fetched(self, wave: Wave, pending: Pending) -> None:
        """Note what an asynchronous operation reads."""
        for stretches in pending.reads:
            if stretches.space == "global" and stretches.some is not None:
                address, use = self._use(wave, stretches.some)
                use.reads = True
                self.reading.add(address)

    # --- notes ---

    @helper
    def _use(self, wave: Wave, offset: int) -> tuple[int, _Use]:
        address = wave.memories.device.allocation_at(DEVICE_BASE + offset).address
        return address, self.uses.setdefault(address, _Use())

    @helper
    def _typed(
        self, wave: Wave, access: MemoryAccess, *, stores: bool, reads: bool = False, atomic: bool = False
    ) -> None:
        """Note the allocations of an access, and in which pieces a statement takes them."""
        key = access.path.pc, stores
        taken = access.size * (access.offsets.size // access.lanes.count)
        bounds = (int(access.offsets.min()), int(access.offsets.max()))
        addresses = tuple(self._use(wave, offset)[0] for offset in dict.fromkeys(bounds))
        noted = Noted(addresses, taken, access.size, reads, atomic)
        self.seen.setdefault(key, noted)
        self._note(wave.code[access.path.pc], noted, stores=stores)

    def _note(self, record: Record, noted: Noted, *, stores: bool) -> None:
        for address in noted.addresses:
            use = self.uses.setdefault(address, _Use())
            use.first = use.first or (record if stores else None)
            use.sizes.setdefault((noted.taken, noted.size), record)
            use.reads |= noted.reads
            use.atomics |= noted.atomic

    @helper
    def _room(self, wave: Wave) -> None:
        self._reach(wave.memories.device.data.size)

    def _reach(self, size: int) -> None:
        if self.written.size < size:  # a kernel may ask for more memory while it runs
            for name, unit in (("written", 1), ("owner", self.unit), ("statement", self.unit)):
                grown = np.zeros(size // unit, getattr(self, name).dtype)
                grown[: getattr(self, name).size] = getattr(self, name)
                setattr(self, name, grown)

    @helper
    def _units(self, wave: Wave, access: MemoryAccess) -> npt.NDArray[np.int64]:
        """Return ``(words, units)``: the units of the words of an access, which is of whole units."""
        self._part(access.size & -access.size)
        first, count = (access.offsets // self.unit)[:, None], access.size // self.unit
        return first if count == 1 else first + np.arange(count)

    def _part(self, least: int) -> None:
        """Part units that are larger, each of which becomes several with the same content.

        Memory of units that no store has reached stays untouched: a device may have much of it.
        """
        if least < self.unit:
            held, parts = np.flatnonzero(self.owner), self.unit // least
            self.owner, self.statement = (
                _parted(table, held, parts) for table in (self.owner, self.statement)
            )
            self.unit = least

    @helper
    def _numbers(self, wave: Wave) -> npt.NDArray[np.int32]:
        """Return ``(lanes,)``: the number of the CTA of each, plus 1."""
        if self.numbers[0] is not wave.geometry:
            x, y, _ = wave.grid
            ctas = wave.ctas[:, 0] + x * (wave.ctas[:, 1] + y * wave.ctas[:, 2]) + 1
            self.numbers = wave.geometry, ctas[wave.cta].astype(np.int32)
        return self.numbers[1]

    @helper
    def _changes_own_bytes(self, wave: Wave, access: MemoryAccess) -> bool:
        """Note a store that changes no bytes of other CTAs; false where it has to be looked at."""
        loops = fast_path.loops_for(wave, access)
        if loops is None:
            return False
        self._part(access.size & -access.size)
        place, stored = access.path.pc, access.stored
        tables = self.owner, self.statement, self.written.view(np.uint8), access.memory
        words = loops.Words(
            fast_path.plain(access.lanes.index),
            fast_path.plain(access.offsets),
            access.size,
            place,
            0,
            0,
            _UNASKED,
        )
        owners = loops.Owners(self.unit.bit_length() - 1, *tables)
        given = _NONE if stored is None else fast_path.plain(stored)
        found = loops.own(owners, words, self._numbers(wave), given)
        if found == loops.SEVERAL and stored is not None:
            self._together(wave, access, access.cells, stored)
        return bool(found != loops.CLOSER)

    @helper
    def _owned(self, wave: Wave, access: MemoryAccess) -> None:
        """Find bytes that another CTA has written with another value, then note the CTA that writes them."""
        lanes, stored = access.lane_of, access.stored
        numbers = self._numbers(wave)[lanes][:, None]
        units = self._units(wave, access)
        before = self.owner[units] if stored is not None else numbers
        other = (before != 0) & (before != numbers)
        if stored is not None and other.any():
            bytes_ = np.repeat(other, self.unit, axis=1)
            bytes_ &= wave.memories.device.data[access.cells] != stored
            if bytes_.any():
                row, column = (int(place) for place in np.argwhere(bytes_)[0])
                self._twice(wave, access, int(lanes[row]), int(access.offsets[row]) + column)
        self.owner[units] = numbers
        self.statement[units] = access.path.pc
        if stored is not None and (self.owner[units[:, :1]] != numbers).any():  # CTAs stand here together
            self._together(wave, access, access.cells, stored)

    @helper
    def _together(
        self, wave: Wave, access: MemoryAccess, cells: npt.NDArray[np.int64], stored: npt.NDArray[np.uint8]
    ) -> None:
        """Find a byte that lanes of several CTAs write with different values by one statement."""
        flat, values = cells.reshape(-1), stored.reshape(-1)
        order = np.argsort(flat, kind="stable")
        same = flat[order][1:] == flat[order][:-1]
        unlike = same & (values[order][1:] != values[order][:-1])
        lanes = np.repeat(access.lane_of, cells.shape[1])[order]
        unlike &= wave.cta[lanes[1:]] != wave.cta[lanes[:-1]]
        if unlike.any():
            place = int(unlike.argmax()) + 1
            self._twice(wave, access, int(lanes[place]), int(flat[order][place]))

    @helper
    def _twice(self, wave: Wave, access: MemoryAccess, lane: int, offset: int) -> None:
        here = wave.code[access.path.pc]
        statement = int(self.statement[offset // self.unit])
        first = wave.code[statement] if self.owner[offset // self.unit] else here
        allocation = wave.memories.device.allocation_at(DEVICE_BASE + offset)
        message = (
            f"{here.statement.mnemonic} writes byte {DEVICE_BASE + offset - allocation.address} of the "
            f"{allocation}, where another CTA writes another value: nothing orders them, and either may stay "
            f"[{wave.describe_lane(lane)}]"
        )
        location, other = here.statement.location(), first.statement.location()
        finding = _finding("written twice", "warning", message, location, other)
        self.findings.add(("written twice", access.path.pc, statement), finding)

    # --- waves that another process executes ---

    def noted(self) -> ArrayNotes:
        """Return a copy of what is noted by now, but for bytes."""
        return ArrayNotes(dict(self.seen), set(self.reading), set(self.writing))

    def owners(self, size: int) -> tuple[npt.NDArray[np.int32], ...]:
        """Return for each unit of a memory the CTA and the statement that wrote it; nothing where no check
        asks for them.
        """
        self._reach(size)
        return () if self.waiting else (self.owner, self.statement)

    def apart(
        self, notes: ArrayNotes, pages: npt.NDArray[np.int64], marks: npt.NDArray[np.bool_], size: int
    ) -> bool:
        """Return whether other waves, which have written marked bytes of pages, are judged alike in any order
        with those here.
        """
        if any(address not in self.uses or self.uses[address].first is None for address in notes.completed):
            return False
        self._reach(size)
        return self.waiting or not bool((gathered(self.written, pages) & marks).any())

    def absorb(self, notes: ArrayNotes, code: Sequence[Record], size: int) -> None:
        """Add what other waves, which come after those here, have noted."""
        self._reach(size)
        for (pc, stores), noted in notes.seen.items():
            if (pc, stores) not in self.seen or noted.atomic:
                self.seen.setdefault((pc, stores), noted)
                self._note(code[pc], noted, stores=stores)
        for address in notes.fetched:
            self.uses.setdefault(address, _Use()).reads = True
        self.reading |= notes.fetched
        self.writing |= notes.completed

    def own(
        self,
        pages: npt.NDArray[np.int64],
        marks: npt.NDArray[np.bool_],
        owners: Sequence[npt.NDArray[np.int32]],
        unit: int,
    ) -> None:
        """Mark bytes of pages as written by others, with CTAs and statements of units of ``unit`` bytes."""
        put_pages(self.written, pages, marks, marks)
        self._part(unit)
        units = np.asarray(marks.reshape(len(marks), -1, self.unit).any(axis=2))
        for table, content in zip(self.owners(self.written.size), owners, strict=True):
            put_pages(table, pages, units, np.repeat(content, unit // self.unit, axis=1))

    # --- the end of the launch ---

    def report(self, memory: DeviceMemory, buffers: Sequence[tuple[str, Buffer]]) -> None:
        """Add what became of arrays; ``buffers`` are those of arguments, and their names."""
        for name, buffer in {buffer.address: (name, buffer) for name, buffer in buffers}.values():
            use = self.uses.get(buffer.address)
            if use is None:
                continue
            for finding in (*_pieces(name, buffer, use), *self._unwritten(memory, name, buffer, use)):
                self.findings.add((finding.kind, buffer.address), finding)

    def _unwritten(
        self, memory: DeviceMemory, name: str, buffer: Buffer, use: _Use
    ) -> Iterator[LaunchFinding]:
        size, start = buffer.dtype.itemsize, buffer.address - DEVICE_BASE
        if use.first is None or use.reads or use.atomics or not buffer.allocation.size:
            return
        left = _none_of(self.written[start : start + buffer.allocation.size], size)
        if not left.any() or left.all():
            return
        rest = memory.bytes_of(buffer.allocation).reshape(-1, size)[left]
        if (rest != rest[0]).any():
            return
        first = tuple(int(place) for place in np.unravel_index(int(left.argmax()), buffer.shape))
        message = (
            f"{int(left.sum())} of {left.size} elements of {name} ({_array(buffer)}) were never written, "
            f"the first of them {list(first)}; {use.first.statement.mnemonic} is the first that writes there"
        )
        yield _finding("unwritten", "note", message, use.first.statement.location())


def _none_of(marks: npt.NDArray[np.bool_], size: int) -> npt.NDArray[np.bool_]:
    """Return which elements of so many bytes have no mark."""
    if size in _ALL:
        return np.asarray(marks.view(f"u{size}") == 0)  # ten times as fast as to look at each byte
    return np.asarray(~marks.reshape(-1, size).any(axis=1))


def _parted(table: npt.NDArray[np.int32], held: npt.NDArray[np.int64], parts: int) -> npt.NDArray[np.int32]:
    """Return a table with ``parts`` elements for each of those before; what is not held is zero."""
    parted = np.zeros((table.size, parts), table.dtype)
    parted[held] = table[held][:, None]
    return parted.reshape(-1)


def _pieces(name: str, buffer: Buffer, use: _Use) -> Iterator[LaunchFinding]:
    """Yield an array of floats of which all statements take less than an element."""
    record = use.pieces(buffer.dtype.itemsize) if _floating(buffer.dtype) else None
    if record is None:
        return
    taken = next(taken for (taken, _), known in use.sizes.items() if known is record)
    message = (
        f"{record.statement.mnemonic} takes {taken} bytes at a time of {name} ({_array(buffer)}), whose "
        f"elements have {buffer.dtype.itemsize}, and no statement takes a whole element: the kernel "
        "expects an array of another type"
    )
    yield _finding("element type", "warning", message, record.statement.location())


def _floating(dtype: np.dtype[Any]) -> bool:
    """Return whether an array holds floats, whose halves mean nothing."""
    return dtype.names is None and dtype.itemsize > 1 and dtype.kind in "fV"


def _array(buffer: Buffer) -> str:
    """Return dtype and shape in words."""
    return f"{buffer.dtype} {buffer.shape}"


def _finding(
    kind: str, severity: Severity, message: str, location: Location, other: Location | None = None
) -> LaunchFinding:
    return LaunchFinding(
        kind=kind,
        severity=severity,
        message=message,
        location=location,
        other=other,
        legal=kind == "element type",
    )
