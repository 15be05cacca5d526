"""Stretches in machine code: statements that compute lane by lane, or load, in one loop over the lanes.

Such a stretch may have guards and loads, which a stretch of Python's (stretches.py) has not. It is compiled
when it has been executed ``COLD`` times, or at once where that was done before and is kept: whether to look
for it a note says, since to write the text of a function takes longer than to execute it. Its function
writes to new arrays, and only when it has computed everything do registers hold these: where a load leaves
its memory, or something has to be said of a value or a register, nothing has happened, and its statements are
executed by themselves. Observers of loads are notified afterwards, in order: nothing in a stretch depends on
what they do.

Knows registers and memories; does not know how a function is made (machine/native).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ...base.errors import WarpsimError
from ..bind.twins import Load, Source
from ..native.lane_functions import APART, LEFT, LOAD_WORDS, Piece, Places, Uncompiled, Writer
from ..native.objects import Function, NoCompiler, function, is_kept, is_noted, note
from ..state.lanes import DivergentPath, Frame, Lanes, Values
from ..state.memory_access import MemoryAccess
from ..state.spaces import DEVICE_BASE, Allocation, Bytes
from .events import Observer, observers_of
from .wave import Record, Wave

COLD = 96  # executions from which on a stretch is worth a compiler
LONGEST = 192  # statements: the time to compile more grows faster than their number
_LEAST = 6  # of what statements weigh, from which on a call of machine code takes less time than they do
_WEIGHT = 5  # of a statement that Python executes by itself: with a guard, a load, a result that is widened
_PATIENCE = 16  # executions in vain, without others between, from which on there are no more
_SPACES = frozenset({"global", "const", "generic", "shared", "local", "param"})
_DEVICE = frozenset({"global", "const", "generic"})


class Other(Protocol):
    """What executes statements where machine code does not."""

    def run(self, wave: Wave, path: DivergentPath, stop: int) -> bool:
        """Execute them all and return True, or nothing."""


def compiles(record: Record) -> bool:
    """Return whether a statement may have machine code: it computes, or loads from a memory known here."""
    twin = record.twin
    return twin is not None and (twin.load is None or twin.load.space in _SPACES)


def pays(records: Sequence[Record]) -> bool:
    """Return whether machine code of some statements takes less time than they do."""
    plain = sum(record.guard < 0 and record.twin is not None and record.twin.plain for record in records)
    return plain + _WEIGHT * (len(records) - plain) >= _LEAST


class NativeStretch:
    """The statements from ``first`` to before ``past`` of a module's ``code``; ``other`` executes those at
    its beginning until there is machine code.
    """

    __slots__ = ("code", "failures", "first", "natives", "other", "past", "records", "refused", "times")

    def __init__(self, code: list[Record], first: int, past: int, other: Other | None) -> None:
        self.code, self.first, self.past, self.other = code, first, past, other
        self.records = code[first:past]
        self.natives: dict[bool, Native] = {}  # by whether loads are observed
        self.times = self.failures = 0
        self.refused = False

    def run(self, wave: Wave, path: DivergentPath, stop: int) -> bool:
        """Execute all of it at once, and return True; or nothing where the interpreter has to."""
        code = wave.code
        if (self.first < stop < self.past) or (
            code is not self.code and list(code[self.first : self.past]) != self.records
        ):
            return False
        if wave.native and not self.refused:
            observed = observers_of(wave).hear(Observer.load)
            native = self.natives.get(observed) or self._made(wave, path, observed)
            if native is not None and native.run(wave, path, self.first):
                self.failures = 0
                wave.scheduler.executed(self.first, self.past)
                path.pc = self.past
                return True
            if native is not None:
                self.failures += 1
                self.refused = self.failures >= _PATIENCE
        return self.other is not None and self.other.run(wave, path, stop)

    def _made(self, wave: Wave, path: DivergentPath, observed: bool) -> Native | None:
        """Return its function, when it is worth that."""
        self.times += 1
        early = self.times < COLD and not self.natives
        if early and (self.times > 1 or not is_noted(self._origin())):
            return None
        types = wave.entry.dtypes if path.frame.function is None else path.frame.function.dtypes
        try:
            pieces = [_piece(record, wave, path) for record in self.records]
            scalar = [source for source in _apart(pieces) if not _read(source, wave, path).ndim]
            places = Writer(types, scalar, observed).write(pieces)
            if early and not is_kept(places.text):
                return None
            native = self.natives[observed] = Native(places, types, pieces)
        except Uncompiled as error:
            native, place = None, error.place
        except NoCompiler:
            self.refused = True
            return None
        if not early:
            note(self._origin())
        if native is None:
            self._shorten(place, 0 if early else COLD - 1)
        return native

    def _origin(self) -> str:
        """Return the text of the statements, by which machine code is noted."""
        first, last = self.records[0].statement, self.records[-1].statement
        return f"{first.source.text[first.start : last.start]}{last.mnemonic} {last.operand_text}"

    def _shorten(self, place: int, times: int) -> None:
        """End before a statement that has no machine code; what is behind it is a stretch of its own.

        Both have been executed so many ``times`` then.
        """
        behind = self.first + place + 1
        if pays(self.records[place + 1 :]):
            record = self.code[behind]
            record.stretch = NativeStretch(self.code, behind, self.past, record.stretch)
            record.stretch.times = times
        self.past, self.records = self.first + place, self.records[:place]
        self.times, self.refused = times, not pays(self.records)


def _piece(record: Record, wave: Wave, path: DivergentPath) -> Piece:
    twin = record.twin
    assert twin is not None
    sources = tuple(_typed(source, wave, path) for source in twin.sources)
    return Piece(twin=twin._replace(sources=sources), guard=record.guard, negated=record.negated)


def _typed(source: Source, wave: Wave, path: DivergentPath) -> Source:
    """Return a source that is in no register with its type."""
    if source.read is None or source.constant is not None:
        return source
    return replace(source, dtype=source.read(wave, path).dtype)


def _apart(pieces: Sequence[Piece]) -> list[Source]:
    """Return the sources that are neither registers nor constants."""
    found = [source for piece in pieces for source in piece.twin.sources]
    return [source for source in found if source.read is not None and source.constant is None]


def _read(source: Source, wave: Wave, path: DivergentPath) -> Values:
    assert source.read is not None
    return source.read(wave, path)


class Native:
    """A function, what it is called with, and what becomes of what it leaves."""

    def __init__(self, places: Places, types: Sequence[np.dtype[Any]], pieces: Sequence[Piece]) -> None:
        self.places = places
        self.call: Function = function(places.text)
        self.inputs = [(number, types[number]) for number in (*places.reads, *places.olds)]
        self.needed = (*places.reads, *places.merged)
        self.outputs = [(number, types[number]) for number in places.outputs]
        self.guarded = frozenset(places.guarded)
        self.simple = not (places.guarded or places.offsets)  # it leaves nothing but registers
        self.loads = [_Place(load, piece, pieces[piece].guard >= 0) for piece, load, _ in places.loads]
        objects = len(self.inputs) + len(places.apart) + places.mask + places.bases + len(self.loads)
        objects += len(places.tables) + len(self.outputs) + len(self.guarded)
        objects += len(places.offsets) + len(places.ran)
        self._objects = ctypes.c_size_t * objects
        self._numbers = ctypes.c_uint64 * (len(places.scalars) + len(LOAD_WORDS) * len(self.loads) + 1)
        self._report = ctypes.c_uint64 * (len(self.loads) + 1)

    def run(self, wave: Wave, path: DivergentPath, first: int) -> bool:
        """Execute, and return True; or do nothing."""
        taken = self._taken(wave, path)
        if taken is None:
            return False
        lanes = wave.lanes
        made = [np.empty(lanes, dtype) for _, dtype in self.outputs]
        if self.simple:
            if not self._called(wave, path, taken, made):
                return False
            self._write(wave, path, made, {})
            return True
        written = [np.empty(lanes, np.bool_) for _ in self.places.guarded]
        offsets = [np.empty(lanes, np.int64) for _ in self.places.offsets]
        ran = [np.empty(lanes, np.bool_) for _ in self.places.ran]
        if not self._called(wave, path, taken, [*made, *written, *offsets, *ran]):
            return False
        if offsets:
            self._notify(wave, path, first, offsets, dict(zip(self.places.ran, ran, strict=True)))
        self._write(wave, path, made, dict(zip(self.places.guarded, written, strict=True)))
        return True

    # --- what it takes ---

    def _taken(self, wave: Wave, path: DivergentPath) -> list[Values] | None:
        """Return the arrays that it reads; None where a register lacks what lanes would read."""
        frame = path.frame
        if wave.uninitialised is not None and not _all_written(frame, path.lanes, self.needed):
            return None
        values = frame.values
        taken = list[Values]()
        for number, dtype in self.inputs:
            value = values[number]
            taken.append(np.zeros(wave.lanes, dtype) if value is None else value)
        for source in self.places.apart:
            value = _read(source, wave, path)
            if not value.ndim:
                return None
            taken.append(value)
        return taken

    def _called(self, wave: Wave, path: DivergentPath, taken: list[Values], made: list[Values]) -> bool:
        """Call the function, and again where it lacked an allocation or an array had gaps."""
        places, before = self.places, list[Values]()
        before += [path.lanes.mask] * places.mask
        before += [wave.memories.shared_base] * places.bases
        for _ in range(3):
            memories, numbers = (
                list[Values](),
                [_number(_read(source, wave, path)) for source in places.scalars],
            )
            for place in self.loads:
                found = place.found(wave)
                if found is None:
                    return False
                memories.append(found[0])
                numbers += found[1:]
            objects = [*taken, *before, *memories, *places.tables, *made]
            report = self._report()
            answer = self.call(self._objects(*map(id, objects)), wave.lanes, self._numbers(*numbers), report)
            if not answer:
                return True
            if answer & APART:
                taken[:] = map(np.ascontiguousarray, taken)
                before[:] = map(np.ascontiguousarray, before)
            elif answer != LEFT or not self._learned(wave, report):
                return False
        return False

    def _learned(self, wave: Wave, report: ctypes.Array[ctypes.c_uint64]) -> bool:
        """Find the allocations of loads that lay in others; return whether there are any."""
        changed = [place.learned(wave, int(report[number])) for number, place in enumerate(self.loads)]
        return any(changed)

    # --- what it leaves ---

    def _notify(
        self,
        wave: Wave,
        path: DivergentPath,
        first: int,
        offsets: Sequence[Values],
        ran: dict[int, npt.NDArray[np.bool_]],
    ) -> None:
        """Notify observers of the loads, in their order."""
        observers = observers_of(wave)
        try:
            for number, (place, where) in enumerate(zip(self.loads, offsets, strict=True)):
                lanes = Lanes(ran[number]) if place.guarded else path.lanes
                if lanes.count:
                    path.pc = first + place.piece
                    memory, size = place.memory(wave), place.load.size * place.load.words
                    observers.load(wave, MemoryAccess(path, lanes, memory, lanes.of(where), size))
        except WarpsimError as error:
            if error.location is None:
                error.at(wave.code[path.pc].statement.location())
            raise
        path.pc = first

    def _write(
        self,
        wave: Wave,
        path: DivergentPath,
        made: Sequence[Values],
        written: dict[int, npt.NDArray[np.bool_]],
    ) -> None:
        """Write registers."""
        frame, lanes = path.frame, path.lanes
        whole = lanes.count == wave.alive
        if whole and self.simple and not frame.partial:
            for (number, _), values in zip(self.outputs, made, strict=True):
                frame.values[number] = values
            return
        for (number, _), values in zip(self.outputs, made, strict=True):
            if number in self.guarded:
                _merge(frame, number, values, written[number], wave.alive)
            elif whole:
                frame.values[number] = values
                frame.partial.pop(number, None)
            else:
                wave.write(path, lanes, number, values)


def _all_written(frame: Frame, lanes: Lanes, registers: Sequence[int]) -> bool:
    """Return whether all lanes have written some registers."""
    values, partial = frame.values, frame.partial
    if any(values[number] is None for number in registers):
        return False
    return not partial or all(lanes.within(partial[number]) for number in registers if number in partial)


def _merge(frame: Frame, number: int, values: Values, written: npt.NDArray[np.bool_], alive: int) -> None:
    """Write a register that holds values from before in lanes that have not been written."""
    count = int(np.count_nonzero(written))
    if not count:
        return
    if count == alive or frame.values[number] is not None:
        if count == alive:
            frame.partial.pop(number, None)
            frame.values[number] = values
        else:
            frame.replace(number, values, Lanes(written))
        return
    frame.values[number], frame.partial[number] = values, written


def _number(value: Values) -> int:
    """Return the bits of a value of shape ()."""
    return int(value) & 0xFFFF_FFFF_FFFF_FFFF


class _Place:
    """A load of a function: ``piece`` is the number of its statement, ``allocation`` that of its lanes."""

    __slots__ = ("allocation", "bytes", "guarded", "load", "piece")

    def __init__(self, load: Load, piece: int, guarded: bool) -> None:
        self.load, self.piece, self.guarded = load, piece, guarded
        self.bytes = load.size * load.words
        self.allocation: Allocation | None = None

    def memory(self, wave: Wave) -> Bytes:
        """Return the memory that it loads from."""
        memories = wave.memories
        if self.load.space in _DEVICE:
            return memories.device.data
        found: Bytes = getattr(memories, _MEMORIES[self.load.space])
        return found

    def found(self, wave: Wave) -> tuple[Any, int, int, int, int] | None:
        """Return the memory and the numbers of the load; None where nothing can be loaded."""
        memories, memory = wave.memories, self.memory(wave)
        if self.load.space in _DEVICE:
            allocation = self.allocation
            if allocation is None or not memories.device.holds(allocation):
                self.allocation = allocation = next(iter(memories.device.allocations), None)
            if allocation is None or allocation.size < self.bytes:
                return (memory, 1, 0, 0, 0) if memory.size >= self.bytes else None
            start = allocation.address
            return memory, start, allocation.size - self.bytes, start - DEVICE_BASE, 0
        size = _SIZES[self.load.space](wave)
        if size < self.bytes:
            return None
        return memory, 0, size - self.bytes, 0, memories.local_stride

    def learned(self, wave: Wave, lowest: int) -> bool:
        """Find the allocation of the lowest address; return whether it is another than before."""
        if self.load.space not in _DEVICE:
            return False
        found = wave.memories.device.find(lowest, self.bytes)
        changed = found is not None and found is not self.allocation
        self.allocation = found or self.allocation
        return changed


_MEMORIES = {"shared": "shared", "local": "local", "param": "parameters"}
_SIZES = {
    "shared": lambda wave: wave.memories.shared_bytes,
    "local": lambda wave: wave.memories.local_bytes,
    "param": lambda wave: wave.entry.parameter_bytes,
}
