"""Statements that move bytes: copies, loads, stores, atomics, matrices, shuffles, asynchronous copies.

Cells go where bytes go. What is asynchronous takes its cells when it reads and puts them when it lands, in
the order of the launch. Knows accesses and registers by byte; does not know what keys mean, but for atomics
and redux, which add.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...isa.warps import WARP
from ...machine.opcodes.control.exchange import sources_of
from ...machine.opcodes.matrix.tiles import byte_places as matrix_bytes
from ...machine.run.pending import Moved, Pending
from ...machine.run.wave import Step, Wave
from ...machine.state.lanes import DivergentPath, Frame, Lanes
from ...machine.state.memory_access import MemoryAccess
from ...ptx.operands import Address, Pair
from .atomic_keys import Update, loaded_before, update, updated_words
from .key_store import KeyStore, bytes_of_space, spread_over
from .keys.key_cells import Cells, MemoryCells, cells_of_rows, tag_of
from .keys.key_reading import numbers
from .matrix_keys import Matrices
from .rules.keyed_statements import Statement, elements_of

Rows = tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint16]]
Handler = Callable[..., Any]


class _Flight(NamedTuple):
    """Copies of one statement in flight: where they go, of which lanes, and their cells."""

    offsets: npt.NDArray[np.int64]
    lanes: Lanes
    rows: Rows
    pc: int

    def holds(self, access: MemoryAccess) -> bool:
        """Return whether copies that land are among these."""
        if self.offsets is access.offsets:
            return True
        here = np.isin(self.lanes.index, access.lanes.index)
        return int(here.sum()) == access.lanes.count and bool((self.offsets[here] == access.offsets).all())


class Moves:
    """The statements that move bytes, for an observer."""

    def __init__(self, algebra: KeyStore) -> None:
        self.algebra = algebra
        self.matrices = Matrices(algebra)
        self._updates = list[Update]()
        self._flying = dict[int, list[_Flight]]()  # copies of cp.async, by wave
        self._held = dict[Pending, Rows]()
        self.handlers: dict[str, Handler] = {
            "copy": self._copy,
            "load": self._load,
            "store": self._store,
            "atomic": self._atomic,
            "matrices": self._matrix,
            "exchange": self._exchange,
            "asynchronous": self._forgetting,
            "matrix product": self.matrices.executed,
        }

    def _forgetting(
        self, wave: Wave, path: DivergentPath, lanes: Lanes, statement: Statement, inner: Step
    ) -> bool | None:
        self.algebra.accesses.clear()
        return self.algebra.forgetting(wave, path, lanes, statement, inner)

    # --- registers ---

    def _copy(
        self, wave: Wave, path: DivergentPath, lanes: Lanes, statement: Statement, inner: Step
    ) -> bool | None:
        algebra, frame = self.algebra, path.frame
        registers = algebra.registers(frame)
        if registers.keys().isdisjoint(statement.reads):
            return algebra.forgetting(wave, path, lanes, statement, inner)
        whole = self._joined(wave, frame, statement, 1)
        inner(wave, path, lanes)
        targets = list(elements_of(statement.spread(0)))
        size = whole.width // len(targets)
        for place, target in enumerate(targets):
            number, width = statement.number(target), statement.width(target)
            algebra.put(wave, frame, lanes, number, whole.part(place * size, size).resized(width or size))
        return None

    def _joined(self, wave: Wave, frame: Frame, statement: Statement, index: int) -> Cells:
        """Return the cells of an operand, those of a vector side by side."""
        registers, elements = self.algebra.registers(frame), list(elements_of(statement.spread(index)))
        sizes = [statement.width(each) for each in elements]
        known = max(sizes) or statement.width(statement.operands[0]) // len(elements) or 4
        parts = [
            registers.get(statement.number(each)) or Cells.empty(size or known, wave.lanes)
            for each, size in zip(elements, sizes, strict=True)
        ]
        return Cells.joined(parts)

    def _exchange(
        self, wave: Wave, path: DivergentPath, lanes: Lanes, statement: Statement, inner: Step
    ) -> bool | None:
        algebra, frame = self.algebra, path.frame
        sources = [statement.source(each) for each in statement.operands[1:]]
        cells = algebra.registers(frame).get(sources[0].number)
        values = [each.value(frame, wave.lanes, "b32") for each in sources]
        changed = inner(wave, path, lanes)
        first = statement.operands[0]
        target = statement.number(first.first if isinstance(first, Pair) else first)
        together = algebra.together or (None if changed else lanes)
        if together is None:
            return changed
        if cells is None:
            algebra.forget(wave, frame, together, [target])
        elif statement.opcode == "shfl":
            mode = next(word for word in statement.modifiers if word in ("up", "down", "bfly", "idx"))
            lane = wave.thread % WARP
            source, _ = sources_of(mode, lane, values[1], values[2])
            algebra.put(wave, frame, together, target, cells.of_lanes(np.arange(wave.lanes) - lane + source))
        else:
            found = self.matrices.reduced(statement, cells, values[0], together)
            algebra.put(wave, frame, together, target, found)
        return changed

    # --- memory ---

    def _load(
        self, wave: Wave, path: DivergentPath, lanes: Lanes, statement: Statement, inner: Step
    ) -> bool | None:
        self.algebra.accesses.clear()
        changed = inner(wave, path, lanes)
        for access in self.algebra.accesses:
            self._loaded(wave, path.frame, statement, access)
        if not self.algebra.accesses:
            self.algebra.forget(wave, path.frame, lanes, statement.writes)
        return changed

    def _loaded(self, wave: Wave, frame: Frame, statement: Statement, access: MemoryAccess) -> None:
        """Write the registers of a load."""
        algebra, memory = self.algebra, self._memory(wave, access)
        elements = list(elements_of(statement.spread(0)))
        size = access.size // len(elements)
        keys, tags = memory.load(access.offsets, access.size)
        if not tags.any():
            algebra.forget(wave, frame, access.lanes, statement.writes)
            return
        self.algebra.note_writers(statement.pc, memory.writers_of(access.offsets, access.size))
        algebra.copied(wave, statement.pc, access.memory, (keys, tags))
        for place, element in enumerate(elements):
            number, width = statement.number(element), statement.width(element)
            part = slice(place * size, (place + 1) * size)
            cells = cells_of_rows(keys[:, part], tags[:, part], statement.pc)
            if cells is not None and width > size:
                cells = self._extended(frame, statement, number, (cells, access.lanes, width))
            if cells is not None:
                self._open(wave, frame, access.lanes, number, cells)
                cells = spread_over(cells, access.lanes, wave.lanes)
            algebra.put(wave, frame, access.lanes, number, cells)

    def _open(self, wave: Wave, frame: Frame, lanes: Lanes, number: int, cells: Cells) -> None:
        """Let functions of what is loaded follow, that are recognised by value."""
        value = frame.values[number]
        if self.algebra.by_value.names and cells.kind == "f32" and value is not None:
            self.algebra.by_value.follow(wave, lanes, cells.keys[0], numbers(lanes.of(value), "f32"))

    def _extended(
        self, frame: Frame, statement: Statement, number: int, loaded: tuple[Cells, Lanes, int]
    ) -> Cells:
        """Return the cells of a load into a wider register."""
        cells, lanes, width = loaded
        value = frame.values[number]
        if cells.kind not in ("s", "u") or value is None:
            return cells.resized(width)
        kind = "s" if statement.modifiers[-1][0] == "s" else "u"
        bits = lanes.of(value).astype(f"u{cells.size}")
        return Cells.of(self.algebra.reader.read(cells, bits, kind, cells.size), kind, width, statement.pc)

    def _store(
        self, wave: Wave, path: DivergentPath, lanes: Lanes, statement: Statement, inner: Step
    ) -> bool | None:
        self.algebra.accesses.clear()
        frame, elements = path.frame, list(elements_of(statement.spread(1)))
        registers = self.algebra.registers(frame)
        held = [registers.get(statement.number(each)) for each in elements]
        values = [
            frame.values[number] if (number := statement.number(each)) >= 0 else None for each in elements
        ]
        changed = inner(wave, path, lanes)
        for access in self.algebra.accesses:
            size = access.size // len(elements)
            for place, (cells, value) in enumerate(zip(held, values, strict=True)):
                offsets = access.offsets + place * size
                rows = self._stored_rows(cells, value, access.lane_of, size)
                self._put(wave, statement.pc, access.memory, (offsets, rows), access.lane_of, size)
        return changed

    def _stored_rows(self, cells: Cells | None, value: Any, lane_of: Any, size: int) -> Rows | None:
        """Return the low bytes ``(words, size)`` of a register; an integer is the number that these hold."""
        if cells is None:
            return None
        own = cells.of_lanes(lane_of)
        if own.width <= size:
            return np.ascontiguousarray(own.keys.T), np.ascontiguousarray(own.tags.T)
        keys, tags = own.keys[:size].T.copy(), own.tags[:size].T.copy()
        for kind in ("s", "u"):
            some = np.flatnonzero(own.tags[0] == tag_of(kind, own.width))
            if some.size:
                bits = value[lane_of][some]
                keys[some] = self.algebra.reader.read(own.of_lanes(some), bits, kind, size)[:, None]
                tags[some] = tag_of(kind, size) + np.arange(size)
        return keys, tags

    def _put(
        self, wave: Wave, pc: int, data: Any, stored: tuple[Any, Rows | None], lane_of: Any, size: int
    ) -> None:
        offsets, rows = stored
        self.algebra.memory(data, wave).store(offsets, size, rows, pc)
        if rows is not None:
            self.algebra.stored(wave, pc, (offsets, *rows), data, lane_of)
            self.algebra.copied(wave, pc, data, rows, written=True)

    def _memory(self, wave: Wave, access: MemoryAccess) -> MemoryCells:
        return self.algebra.memory(access.memory, wave)

    def updating(self, access: MemoryAccess) -> None:
        """Keep the content of words that are about to be updated."""
        self._updates.append(Update(access, access.memory[access.cells]))

    def _atomic(
        self, wave: Wave, path: DivergentPath, lanes: Lanes, statement: Statement, inner: Step
    ) -> bool | None:
        self._updates.clear()
        algebra, frame = self.algebra, path.frame
        returns = int(statement.opcode == "atom")
        operands = [self._joined(wave, frame, statement, returns + 1)]
        bits = [loaded_before(statement, frame, wave.lanes, returns + 1)]
        if "cas" in statement.modifiers:
            operands.append(self._joined(wave, frame, statement, returns + 2))
            bits.append(loaded_before(statement, frame, wave.lanes, returns + 2))
        changed = inner(wave, path, lanes)
        for each in self._updates:
            before = update(algebra, statement, each, (operands, bits), wave)
            if returns:
                self._results(wave, frame, statement, each, before)
        return changed

    def _results(self, wave: Wave, frame: Frame, statement: Statement, each: Update, before: Rows) -> None:
        """Write what an atomic returns: what the memory had."""
        elements = list(elements_of(statement.spread(0)))
        size = each.access.size // len(elements)
        for place, element in enumerate(elements):
            part = slice(place * size, (place + 1) * size)
            cells = cells_of_rows(before[0][:, part], before[1][:, part], statement.pc)
            if cells is not None:
                cells = spread_over(cells, each.access.lanes, wave.lanes)
            self.algebra.put(wave, frame, each.access.lanes, statement.number(element), cells)

    # --- matrices of 8 rows ---

    def _matrix(
        self, wave: Wave, path: DivergentPath, lanes: Lanes, statement: Statement, inner: Step
    ) -> bool | None:
        self.algebra.accesses.clear()
        algebra, frame = self.algebra, path.frame
        places = matrix_bytes(statement.opcode, statement.modifiers)
        source = self._joined(wave, frame, statement, 1) if statement.opcode != "ldmatrix" else None
        changed = inner(wave, path, lanes)
        together = algebra.together or (None if changed else lanes)
        if together is None:
            return changed
        warps = together.warps
        if statement.opcode == "stmatrix" and source is not None and places is not None:
            self._matrix_stored(wave, statement, source, places, warps)
        elif places is None or (source is not None and not source.any):
            algebra.uninterpreted.update([statement.opcode] if places is None else [])
            algebra.forget(wave, frame, together, statement.writes)
        else:
            rows = self._matrix_rows(wave, statement, source, warps)
            self._matrix_loaded(wave, frame, statement, together, (rows, places))
        return changed

    def _matrix_rows(self, wave: Wave, statement: Statement, source: Cells | None, warps: Any) -> Rows:
        """Return keys and tags ``(warps, bytes of all rows)``."""
        if source is not None:  # movmatrix: the registers are the rows
            by_lane = [each.T.reshape(-1, WARP, each.shape[0])[warps] for each in (source.keys, source.tags)]
            return by_lane[0].reshape(len(warps), -1), by_lane[1].reshape(len(warps), -1)
        (access,) = self.algebra.accesses
        memory = self._memory(wave, access)
        keys, tags = memory.load(access.offsets, access.size)
        if tags.any():
            self.algebra.note_writers(statement.pc, memory.writers_of(access.offsets, access.size))
            self.algebra.copied(wave, statement.pc, access.memory, (keys, tags))
        return keys.reshape(len(warps), -1), tags.reshape(len(warps), -1)

    def _matrix_loaded(
        self, wave: Wave, frame: Frame, statement: Statement, lanes: Lanes, given: tuple[Rows, Any]
    ) -> None:
        (keys, tags), places = given
        for register, number in enumerate(statement.numbers(0)):
            here = places[register]
            full = np.zeros((wave.lanes, 4), np.uint64), np.zeros((wave.lanes, 4), np.uint16)
            full[0].reshape(-1, WARP, 4)[lanes.warps] = keys[:, here]
            full[1].reshape(-1, WARP, 4)[lanes.warps] = tags[:, here]
            self.algebra.put(wave, frame, lanes, number, cells_of_rows(*full, statement.pc))

    def _matrix_stored(
        self, wave: Wave, statement: Statement, source: Cells, places: Any, warps: Any
    ) -> None:
        (access,) = self.algebra.accesses
        found = []
        for table in (source.keys, source.tags):
            by_warp = table.reshape(-1, 4, table.shape[1] // WARP, WARP)[
                :, :, warps
            ]  # register, byte, warp, lane
            rows = np.zeros((len(warps), places.size), table.dtype)
            rows[:, places] = by_warp.transpose(2, 0, 3, 1)
            found.append(rows.reshape(len(access.offsets), -1))
        self._put(
            wave,
            statement.pc,
            access.memory,
            (access.offsets, (found[0], found[1])),
            access.lane_of,
            access.size,
        )

    # --- asynchronous copies ---

    def copying(self, wave: Wave, access: MemoryAccess) -> None:
        """Take the cells that cp.async has read: whole copies, and bytes of those that zeros fill."""
        keys = np.zeros((len(access.offsets), access.size), np.uint64)
        tags = np.zeros(keys.shape, np.uint16)
        row = np.zeros(wave.lanes, np.intp)
        row[access.lanes.index] = np.arange(len(access.offsets))
        done = np.zeros(len(keys), np.intp)
        for source in self.algebra.accesses:
            here = row[source.lanes.index]
            places = done[here][:, None] + np.arange(source.size)
            own = self._memory(wave, source).load(source.offsets, source.size)
            keys[here[:, None], places], tags[here[:, None], places] = own
            done[here] += source.size
            self.algebra.copied(wave, access.path.pc, source.memory, own)
        self.algebra.accesses.clear()
        self._flying.setdefault(id(wave), []).append(
            _Flight(access.offsets, access.lanes, (keys, tags), access.path.pc)
        )

    def landed(self, wave: Wave, access: MemoryAccess) -> None:
        """Put the cells of copies that have landed, the first that were issued to each place."""
        flights, offsets = self._flying[id(wave)], access.offsets
        place = next(place for place, each in enumerate(flights) if each.holds(access))
        flight = flights[place]
        if flight.offsets is offsets:
            rows = flights.pop(place).rows
        else:
            chosen = np.isin(flight.lanes.index, access.lanes.index)
            rows = flight.rows[0][chosen], flight.rows[1][chosen]
            rest = Lanes(flight.lanes.mask & ~access.lanes.mask)
            left = flight.rows[0][~chosen], flight.rows[1][~chosen]
            flights[place : place + 1] = (
                [_Flight(flight.offsets[~chosen], rest, left, flight.pc)] if rest.count else []
            )
        self.algebra.memory(access.memory).store(offsets, access.size, rows, flight.pc)
        self.algebra.copied(wave, flight.pc, access.memory, rows, written=True)

    def forget_wave(self, wave: Wave) -> None:
        """Forget the copies of a wave that has ended."""
        self._flying.pop(id(wave), None)

    def issued(self, wave: Wave, path: DivergentPath, pending: Pending) -> None:
        """Take the cells of registers that an operation stores later."""
        moved = None if pending.moved is None else pending.moved(wave)
        if moved is None or moved.space != "registers":
            return
        statement = self.algebra.statement(path.pc)
        index = next(place for place, each in enumerate(statement.operands) if not isinstance(each, Address))
        cells = self._joined(wave, path.frame, statement, index)
        first = pending.lane
        part = cells.of_lanes(np.arange(first, first + moved.lanes))
        rows = np.ascontiguousarray(part.keys.T).reshape(-1), np.ascontiguousarray(part.tags.T).reshape(-1)
        self._held[pending] = _chosen(rows, moved)

    def fetched(self, wave: Wave, pending: Pending) -> None:
        """Take the cells that an operation has read."""
        if pending.moved is not None and pending not in self._held:
            moved = pending.moved(wave)
            memory = self.algebra.memory(bytes_of_space(wave, moved.space))
            self._held[pending] = _chosen((memory.keys, memory.tags), moved)

    def completed(self, wave: Wave, pending: Pending) -> None:
        """Put the cells of an operation where its bytes are."""
        if pending.moved is None:
            return
        self.fetched(wave, pending)
        rows, moved = self._held.pop(pending), pending.moved(wave)
        if moved.lossy:
            self.algebra.uninterpreted[pending.record.statement.opcode] += 1
        pc = next((pc for pc, record in enumerate(wave.code) if record is pending.record), -1)
        if moved.space == "global":
            self.algebra.copied(wave, pc, wave.memories.device.data, rows)
        for space, target in moved.targets:
            data = bytes_of_space(wave, space)
            memory = self.algebra.memory(data)
            if moved.update:
                self._reduced(memory, target, rows, moved)
            else:
                memory.keys[target], memory.tags[target] = rows
            memory.writers[target] = pc
            keys = rows if not moved.update else (memory.keys[target], memory.tags[target])
            lanes = np.full(len(target), pending.lane)
            self.algebra.copied(wave, pc, data, rows, written=True)
            self.algebra.stored(wave, pc, (target, keys[0][:, None], keys[1][:, None]), data, lanes)

    def _reduced(self, memory: MemoryCells, target: Any, rows: Rows, moved: Moved) -> None:
        """Update words of a memory, one behind the other."""
        updated_words(self.algebra.reader, memory, target, rows, moved)


def _chosen(rows: Rows, moved: Moved) -> Rows:
    """Return the cells of the bytes that an operation reads; those that are filled have no keys."""
    keys, tags = rows[0][moved.source], rows[1][moved.source]
    filled = moved.source < 0
    return (
        (np.where(filled, np.uint64(0), keys), np.where(filled, np.uint16(0), tags))
        if filled.any()
        else (keys, tags)
    )
