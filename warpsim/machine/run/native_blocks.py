"""Basic blocks in machine code: statements that compute lane by lane, or load, in one loop over the lanes.

Only the first statement of a block may have a label. A block is compiled after ``COLD`` executions, or at
once if its machine code is in the user's cache; a note in the cache says whether to look, since writing the
function's text takes longer than executing it once. The function writes to new arrays, which replace the
registers at the end. If a load leaves its memory, or a value or register needs a message, nothing has changed
and the statements are executed separately. Observers of loads are notified afterwards, in order; a block does
not depend on them.

Knows registers and memories; does not know how a function is compiled (machine/native).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.errors import WarpsimError
from ..bind.pure_semantics import Load, Source
from ..native.lane_functions import APART, LEFT, LOAD_WORDS, Piece, Places, Uncompiled, Writer
from ..native.objects import Function, NoCompiler, function, is_kept, is_noted, note
from ..state.lanes import DivergentPath, Frame, Lanes, Values
from ..state.memory_access import MemoryAccess
from ..state.spaces import DEVICE_BASE, Allocation, Bytes
from .events import Observer, observers_of
from .wave import Record, Wave

COLD = 96  # executions before a basic block is compiled
LONGEST = 192  # statements: the time to compile more grows faster than their number
_LEAST = 6  # total weight of statements from which machine code is faster
_WEIGHT = 5  # of a statement with a guard, a load or a widened result; others have 1
_PATIENCE = 16  # failed executions in a row before machine code is given up
_SPACES = frozenset({"global", "const", "generic", "shared", "local", "param"})
_DEVICE = frozenset({"global", "const", "generic"})


def compiles(record: Record) -> bool:
    """Return whether a statement may have machine code: it computes, or loads from a known memory."""
    semantics = record.semantics
    return semantics is not None and (semantics.load is None or semantics.load.space in _SPACES)


def pays(records: Sequence[Record]) -> bool:
    """Return whether machine code is faster than the statements executed otherwise."""
    plain = sum(
        record.guard < 0 and record.semantics is not None and record.semantics.plain for record in records
    )
    return plain + _WEIGHT * (len(records) - plain) >= _LEAST


class NativeBlock:
    """The statements from ``first`` to before ``past`` of a module's ``code``."""

    __slots__ = ("code", "failures", "first", "natives", "past", "records", "refused", "times")

    def __init__(self, code: list[Record], first: int, past: int) -> None:
        self.code, self.first, self.past = code, first, past
        self.records = code[first:past]
        self.natives: dict[bool, Native] = {}  # by whether loads are observed
        self.times = self.failures = 0
        self.refused = False

    def run(self, wave: Wave, path: DivergentPath, stop: int) -> bool:
        """Execute the block and return True; or change nothing and return False."""
        code = wave.code
        if (self.first < stop < self.past) or (
            code is not self.code and list(code[self.first : self.past]) != self.records
        ):
            return False
        if wave.native and not self.refused:
            observed = observers_of(wave).hear(Observer.load)
            native = self.natives.get(observed) or self._compiled(wave, path, observed)
            if native is not None and native.run(wave, path, self.first):
                self.failures = 0
                wave.scheduler.executed(self.first, self.past)
                path.pc = self.past
                return True
            if native is not None:
                self.failures += 1
                self.refused = self.failures >= _PATIENCE
        return False

    def _compiled(self, wave: Wave, path: DivergentPath, observed: bool) -> Native | None:
        """Return the machine code of the block, None if it is not compiled yet or cannot be."""
        self.times += 1
        early = self.times < COLD and not self.natives
        if early and (self.times > 1 or not is_noted(self._origin())):
            return None
        types = wave.entry.dtypes if path.frame.function is None else path.frame.function.dtypes
        try:
            pieces = [_piece(record, wave, path) for record in self.records]
            scalar = [
                source for source in _run_time_sources(pieces) if not _run_time_value(source, wave, path).ndim
            ]
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
        """Return the text of the statements: the key of the note in the cache."""
        first, last = self.records[0].statement, self.records[-1].statement
        return f"{first.source.text[first.start : last.start]}{last.mnemonic} {last.operand_text}"

    def _shorten(self, place: int, times: int) -> None:
        """End before a statement that has no machine code; begin another block behind it.

        Both start with an execution count of ``times``.
        """
        behind = self.first + place + 1
        if pays(self.records[place + 1 :]):
            block = self.code[behind].basic_block = NativeBlock(self.code, behind, self.past)
            block.times = times
        self.past, self.records = self.first + place, self.records[:place]
        self.times, self.refused = times, not pays(self.records)


def _piece(record: Record, wave: Wave, path: DivergentPath) -> Piece:
    semantics = record.semantics
    assert semantics is not None
    sources = tuple(_with_dtype(source, wave, path) for source in semantics.sources)
    return Piece(semantics=semantics._replace(sources=sources), guard=record.guard, negated=record.negated)


def _with_dtype(source: Source, wave: Wave, path: DivergentPath) -> Source:
    """Return the source with its dtype, if it is read at run time."""
    if source.read is None or source.constant is not None:
        return source
    return replace(source, dtype=source.read(wave, path).dtype)


def _run_time_sources(pieces: Sequence[Piece]) -> list[Source]:
    """Return the sources that are read at run time: neither registers nor constants."""
    found = [source for piece in pieces for source in piece.semantics.sources]
    return [source for source in found if source.read is not None and source.constant is None]


def _run_time_value(source: Source, wave: Wave, path: DivergentPath) -> Values:
    assert source.read is not None
    return source.read(wave, path)


class Native:
    """The compiled function of a block: gathers arguments, calls it, writes registers."""

    def __init__(self, places: Places, types: Sequence[np.dtype[Any]], pieces: Sequence[Piece]) -> None:
        self.places = places
        self.call: Function = function(places.text)
        self.inputs = [(number, types[number]) for number in (*places.reads, *places.olds)]
        self.needed = (*places.reads, *places.merged)
        self.outputs = [(number, types[number]) for number in places.outputs]
        self.guarded = frozenset(places.guarded)
        self.simple = not (places.guarded or places.offsets)  # it only writes registers
        self.loads = [_LoadSite(load, piece, pieces[piece].guard >= 0) for piece, load, _ in places.loads]
        objects = len(self.inputs) + len(places.apart) + places.mask + places.bases + len(self.loads)
        objects += len(places.tables) + len(self.outputs) + len(self.guarded)
        objects += len(places.offsets) + len(places.ran)
        self._objects = ctypes.c_size_t * objects
        self._numbers = ctypes.c_uint64 * (len(places.scalars) + len(LOAD_WORDS) * len(self.loads) + 1)
        self._report = ctypes.c_uint64 * (len(self.loads) + 1)

    def run(self, wave: Wave, path: DivergentPath, first: int) -> bool:
        """Execute the block and return True, or do nothing and return False."""
        inputs = self._inputs(wave, path)
        if inputs is None:
            return False
        lanes = wave.lanes
        made = [np.empty(lanes, dtype) for _, dtype in self.outputs]
        if self.simple:
            if not self._call(wave, path, inputs, made):
                return False
            self._write(wave, path, made, {})
            return True
        written = [np.empty(lanes, np.bool_) for _ in self.places.guarded]
        offsets = [np.empty(lanes, np.int64) for _ in self.places.offsets]
        ran = [np.empty(lanes, np.bool_) for _ in self.places.ran]
        if not self._call(wave, path, inputs, [*made, *written, *offsets, *ran]):
            return False
        if offsets:
            self._notify(wave, path, first, offsets, dict(zip(self.places.ran, ran, strict=True)))
        self._write(wave, path, made, dict(zip(self.places.guarded, written, strict=True)))
        return True

    # --- arguments ---

    def _inputs(self, wave: Wave, path: DivergentPath) -> list[Values] | None:
        """Return the input arrays; None if lanes would read an unwritten register."""
        frame = path.frame
        if wave.uninitialised is not None and not _all_written(frame, path.lanes, self.needed):
            return None
        values = frame.values
        inputs = list[Values]()
        for number, dtype in self.inputs:
            value = values[number]
            inputs.append(np.zeros(wave.lanes, dtype) if value is None else value)
        for source in self.places.apart:
            value = _run_time_value(source, wave, path)
            if not value.ndim:
                return None
            inputs.append(value)
        return inputs

    def _call(self, wave: Wave, path: DivergentPath, inputs: list[Values], made: list[Values]) -> bool:
        """Call the function; retry if a load needs another allocation or an array is not contiguous."""
        places, before = self.places, list[Values]()
        before += [path.lanes.mask] * places.mask
        before += [wave.memories.shared_base] * places.bases
        for _ in range(3):
            memories, numbers = (
                list[Values](),
                [_bits64(_run_time_value(source, wave, path)) for source in places.scalars],
            )
            for place in self.loads:
                found = place.arguments(wave)
                if found is None:
                    return False
                memories.append(found[0])
                numbers += found[1:]
            objects = [*inputs, *before, *memories, *places.tables, *made]
            report = self._report()
            answer = self.call(self._objects(*map(id, objects)), wave.lanes, self._numbers(*numbers), report)
            if not answer:
                return True
            if answer & APART:
                inputs[:] = map(np.ascontiguousarray, inputs)
                before[:] = map(np.ascontiguousarray, before)
            elif answer != LEFT or not self._find_allocations(wave, report):
                return False
        return False

    def _find_allocations(self, wave: Wave, report: ctypes.Array[ctypes.c_uint64]) -> bool:
        """Look up the allocations of loads that left theirs; return whether any has changed."""
        changed = [
            place.find_allocation(wave, int(report[number])) for number, place in enumerate(self.loads)
        ]
        return any(changed)

    # --- results ---

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
    """Return whether all lanes have written all the registers."""
    values, partial = frame.values, frame.partial
    if any(values[number] is None for number in registers):
        return False
    return not partial or all(lanes.within(partial[number]) for number in registers if number in partial)


def _merge(frame: Frame, number: int, values: Values, written: npt.NDArray[np.bool_], alive: int) -> None:
    """Write a register in the lanes ``written``; other lanes keep their values."""
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


def _bits64(value: Values) -> int:
    """Return the bits of a value of shape ()."""
    return int(value) & 0xFFFF_FFFF_FFFF_FFFF


class _LoadSite:
    """A load in the block: ``piece`` is the number of its statement, ``allocation`` the last that it read."""

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

    def arguments(self, wave: Wave) -> tuple[Any, int, int, int, int] | None:
        """Return the memory and the words of LOAD_WORDS; None if no word fits in it."""
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

    def find_allocation(self, wave: Wave, lowest: int) -> bool:
        """Look up the allocation at an address; return whether it has changed."""
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
