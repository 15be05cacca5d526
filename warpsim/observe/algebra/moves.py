"""Statements that move bytes: copies, loads, stores, atomics, matrices, shuffles, asynchronous copies.

Cells go where bytes go. What is asynchronous takes its cells when it reads and puts them when it lands, in
the order of the launch. Knows accesses and registers by byte; does not know what keys mean, but for atomics
and redux, which add.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...isa.warps import WARP
from ...machine.opcodes.control.exchange import sources_of
from ...machine.opcodes.matrix.tiles import byte_places as matrix_bytes
from ...machine.run.events import helper
from ...machine.run.pending import Moved, Pending
from ...machine.run.wave import Wave
from ...machine.state.lanes import DivergentPath, Lanes
from ...machine.state.memory_access import MemoryAccess
from ...ptx.operands import Address
from .atomic_keys import Update, loaded_before, reduced, update
from .key_store import KeyStore, Turn, bytes_of_space, spread
from .keys.key_cells import Cells, tag_of
from .keys.key_reading import KeyReader, numbers
from .matrix_keys import Matrices
from .provenance import Provenance
from .rules.keyed_statements import element_of, elements_of

Handler = Callable[[Turn], "bool | None"]


class _Flight(NamedTuple):
    """Copies of one statement in flight: where they go, of which lanes, and their cells."""

    offsets: npt.NDArray[np.int64]
    lanes: Lanes
    cells: Cells | None
    pc: int

    def holds(self, access: MemoryAccess) -> bool:
        """Return whether copies that land are among these."""
        if self.offsets is access.offsets:
            return True
        here = np.isin(self.lanes.index, access.lanes.index)
        return int(here.sum()) == access.lanes.count and bool((self.offsets[here] == access.offsets).all())

    def of(self, chosen: npt.NDArray[np.bool_], mask: npt.NDArray[np.bool_]) -> _Flight:
        """Return some of the copies, of a mask of lanes."""
        cells = None if self.cells is None else self.cells.of_lanes(np.flatnonzero(chosen))
        return _Flight(self.offsets[chosen], Lanes(self.lanes.mask & mask), cells, self.pc)


class _Held(NamedTuple):
    """The cells of words that an operation has read, None for no keys, and the words ``(words, bytes)``."""

    cells: Cells | None
    words: npt.NDArray[np.uint8]


class Moves(KeyStore):
    """The statements that move bytes, of an observer."""

    def __init__(self, reader: KeyReader, by_value: Sequence[str], provenance: Provenance | None) -> None:
        super().__init__(reader, by_value, provenance)
        self.matrices = Matrices(self)
        self._updates = list[Update]()
        self._flying = dict[int, list[_Flight]]()  # copies of cp.async, by wave
        self._held = dict[Pending, _Held]()
        self.handlers: dict[str, Handler] = {
            "copy": self._copy,
            "load": self._load,
            "store": self._store,
            "atomic": self._atomic,
            "matrices": self._matrix,
            "exchange": self._exchange,
            "matrix product": self.matrices.executed,
        }

    # --- registers ---

    def _copy(self, turn: Turn) -> bool | None:
        statement = turn.statement
        if self.registers(turn.frame).keys().isdisjoint(statement.reads):
            return self.forgetting(turn)
        whole = self.joined(turn, 1)
        turn.inner(turn.wave, turn.path, turn.lanes)
        targets = list(elements_of(statement.spread(0)))
        size = whole.width // len(targets)
        for place, target in enumerate(targets):
            part = whole.part(place * size, size).resized(statement.width(target) or size)
            self.put(turn, statement.number(target), part)
        return None

    def _exchange(self, turn: Turn) -> bool | None:
        wave, statement = turn.wave, turn.statement
        sources = [statement.source(each) for each in statement.operands[1:]]
        cells = self.registers(turn.frame).get(sources[0].number)
        values = [each.value(turn.frame, wave.lanes, "b32") for each in sources]
        changed, together = self.execute(turn)
        if together is None:
            return changed
        if cells is not None and statement.opcode == "shfl":
            mode = next(word for word in statement.modifiers if word in ("up", "down", "bfly", "idx"))
            lane = wave.thread % WARP
            source, _ = sources_of(mode, lane, values[1], values[2])
            cells = cells.of_lanes(np.arange(wave.lanes) - lane + source)
        elif cells is not None:
            cells = self.matrices.reduced(statement, cells, values[0], together)
        self.put(turn, statement.target, cells, together)
        return changed

    # --- memory ---

    def _load(self, turn: Turn) -> bool | None:
        changed = turn.inner(turn.wave, turn.path, turn.lanes)
        for access in self.accesses:
            cells = self.read(turn.wave, turn.statement.pc, access.memory, access.offsets, access.size)
            self._loaded(turn, cells, access.lanes)
        if not self.accesses:
            self.forget(turn, turn.statement.writes)
        return changed

    def _loaded(self, turn: Turn, cells: Cells | None, lanes: Lanes) -> None:
        statement = turn.statement
        if cells is None:
            self.forget(turn, statement.writes, lanes)
            return
        elements = list(elements_of(statement.spread(0)))
        size = cells.width // len(elements)
        for place, element in enumerate(elements):
            number, own = statement.number(element), cells.part(place * size, size)
            if not own.any:
                self.put(turn, number, None, lanes)
                continue
            if statement.width(element) > size:
                own = self._extended(turn, number, own, (lanes, statement.width(element)))
            value = turn.frame.values[number]
            if self.by_value.names and own.kind == "f32" and own.number is not None and value is not None:
                self.by_value.follow(turn.wave, lanes, own.number, numbers(lanes.of(value), "f32"))
            self.put(turn, number, spread(own, lanes, turn.wave.lanes), lanes)

    def _extended(self, turn: Turn, number: int, cells: Cells, into: tuple[Lanes, int]) -> Cells:
        lanes, width = into
        value = turn.frame.values[number]
        if cells.number is None or cells.kind not in ("s", "u") or value is None:
            return cells.resized(width)
        kind = "s" if turn.statement.modifiers[-1][0] == "s" else "u"
        bits = lanes.of(value).astype(f"u{cells.size}")
        keys = self.reader.read(cells, bits, kind, cells.size)
        return Cells.of(keys, kind, width)

    def _store(self, turn: Turn) -> bool | None:
        statement = turn.statement
        elements = [statement.number(each) for each in elements_of(statement.spread(1))]
        registers, values = self.registers(turn.frame), turn.frame.values
        held = [(registers.get(each), values[each] if each >= 0 else None) for each in elements]
        changed = turn.inner(turn.wave, turn.path, turn.lanes)
        for access in self.accesses:
            size, where = access.size // len(elements), (access.offsets, access.size)
            own = [self._stored(*each, access.lane_of, size) for each in held]
            full = [each or Cells.empty(size, len(access.offsets)) for each in own]
            whole = Cells.joined(full) if any(own) else None
            self.write(turn.wave, statement.pc, access.memory, where, whole, access.lane_of)
        return changed

    def _stored(self, cells: Cells | None, value: Any, lane_of: Any, size: int) -> Cells | None:
        """Return the low bytes of a register; an integer is the number that these hold."""
        if cells is None:
            return None
        own = cells.of_lanes(lane_of)
        if own.width <= size or value is None:
            return own
        keys, tags = own.keys[:size].copy(), own.tags[:size].copy()
        for kind in ("s", "u"):
            some = np.flatnonzero(own.tags[0] == tag_of(kind, own.width))
            if some.size:
                bits = value[lane_of][some]
                read = self.reader.read(own.of_lanes(some), bits, kind, size)
                if some.size == own.lanes:
                    return Cells.of(read, kind, size)
                keys[:, some], tags[:, some] = read, Cells.of(read, kind, size).tags
        return own.part(0, size) if own.kind and own.size <= size else Cells(keys, tags)

    def atomic(self, wave: Wave, access: MemoryAccess) -> None:
        """Keep the content of words that are about to be updated."""
        self._updates.append(Update(access, access.memory[access.cells]))

    def _atomic(self, turn: Turn) -> bool | None:
        self._updates.clear()
        returns = int(turn.statement.opcode == "atom")
        places = [returns + 1, returns + 2][: 1 + ("cas" in turn.statement.modifiers)]
        cells = [self.joined(turn, place) for place in places]
        bits = [loaded_before(turn, place) for place in places]
        changed = turn.inner(turn.wave, turn.path, turn.lanes)
        for each in self._updates:
            before = update(self, turn, each, cells, bits)
            if returns:
                self._loaded(turn, before, each.access.lanes)
        return changed

    # --- matrices of 8 rows ---

    def _matrix(self, turn: Turn) -> bool | None:
        wave, statement = turn.wave, turn.statement
        places = matrix_bytes(statement.opcode, statement.modifiers)
        source = self.joined(turn, 1) if statement.opcode != "ldmatrix" else None
        changed, together = self.execute(turn)
        if together is None:
            return changed
        if source is not None:  # the lanes of its warps, their bytes one behind the other
            chosen = np.flatnonzero(np.repeat(together.mask.reshape(-1, WARP).any(1), WARP))
            source = source.of_lanes(chosen) if len(chosen) < wave.lanes else source
        if places is None:
            self.uninterpreted[statement.opcode] += 1
            self.forget(turn, statement.writes, together)
        elif statement.opcode == "stmatrix":
            self._matrix_stored(turn, source, places, len(together.warps))
        else:
            if source is None:
                (access,) = self.accesses
                source = self.read(wave, statement.pc, access.memory, access.offsets, access.size)
            self.rearrange(turn, together, source if source and source.any else None, places)
        return changed

    def _matrix_stored(self, turn: Turn, source: Cells | None, places: Any, warps: int) -> None:
        """Store the rows of stmatrix: their bytes are those of registers, by the inverse of ``places``."""
        (access,) = self.accesses
        assert source is not None
        back = np.empty(places.size, np.intp)  # of each byte of the rows: which of a lane's, lane by lane
        lane, byte = np.meshgrid(np.arange(WARP), np.arange(4), indexing="ij")
        for register, here in enumerate(places):
            back[here] = lane * source.width + 4 * register + byte
        cells = source.rearranged(warps, back.reshape(-1, access.size)) if source.any else None
        where = access.offsets, access.size
        self.write(turn.wave, turn.statement.pc, access.memory, where, cells, access.lane_of)

    # --- asynchronous copies ---

    def copying(self, wave: Wave, access: MemoryAccess) -> None:
        """Take the cells that cp.async has read: whole copies, and bytes of those that zeros fill."""
        pc, count = access.path.pc, len(access.offsets)
        row = np.zeros(wave.lanes, np.intp)
        row[access.lanes.index] = np.arange(count)
        done, cells = np.zeros(count, np.intp), None
        for source in self.accesses:
            own = self.read(wave, pc, source.memory, source.offsets, source.size)
            here = row[source.lanes.index]
            if own is not None and len(here) == count and source.size == access.size:
                cells = own
            elif own is not None:
                cells = Cells.empty(access.size, count) if cells is None else cells
                keys, tags = cells.keys.copy(), cells.tags.copy()
                places = done[here] + np.arange(source.size)[:, None]
                keys[places, here], tags[places, here] = own.keys, own.tags
                cells = Cells(keys, tags)
            done[here] += source.size
        self.accesses.clear()
        flight = _Flight(access.offsets, access.lanes, cells, pc)
        self._flying.setdefault(id(wave), []).append(flight)

    def landed(self, wave: Wave, access: MemoryAccess) -> None:
        """Put the cells of copies that have landed, the first that were issued to each place."""
        flights, offsets = self._flying[id(wave)], access.offsets
        place = next(place for place, each in enumerate(flights) if each.holds(access))
        flight = flights.pop(place)
        if flight.offsets is not offsets:
            chosen = np.isin(flight.lanes.index, access.lanes.index)
            if not chosen.all():
                flights.insert(place, flight.of(~chosen, ~access.lanes.mask))
            flight = flight.of(chosen, access.lanes.mask)
        where = offsets, access.size
        self.write(wave, flight.pc, access.memory, where, flight.cells, access.lane_of)

    @helper
    def forget_wave(self, wave: Wave) -> None:
        """Forget the memories, and the copies, of a wave that has ended."""
        super().forget_wave(wave)
        self._flying.pop(id(wave), None)

    def issued(self, wave: Wave, path: DivergentPath, pending: Pending) -> None:
        """Take the cells of registers that an operation stores later."""
        moved = None if pending.moved is None else pending.moved(wave)
        if moved is None or moved.space != "registers":
            return
        statement = self.statement(wave, path.pc)
        index = next(place for place, each in enumerate(statement.operands) if not isinstance(each, Address))
        turn = Turn(wave, path, path.lanes, path.frame, statement, statement.record.step)
        lanes, places = np.arange(moved.lanes) + pending.lane, moved.source.reshape(-1, _words_of(moved))
        cells, words = self.joined(turn, index).of_lanes(lanes), loaded_before(turn, index)[lanes]
        found = cells.rearranged(1, np.maximum(places, 0)) if cells.any else None
        self._held[pending] = _Held(_filled(found, places[:, 0] < 0), words.reshape(-1)[places])

    def fetched(self, wave: Wave, pending: Pending) -> None:
        """Take the cells that an operation has read."""
        if pending.moved is not None and pending not in self._held:
            moved = pending.moved(wave)
            size, data = _words_of(moved), bytes_of_space(wave, moved.space)
            first = moved.source.reshape(-1, size)[:, 0]
            cells = self.read(wave, self._pc_of(wave, pending), data, np.maximum(first, 0), size)
            words = data[first[:, None] + np.arange(size)] if moved.update else np.zeros((0, size), np.uint8)
            self._held[pending] = _Held(_filled(cells, first < 0), words)

    def completed(self, wave: Wave, pending: Pending) -> None:
        """Put the cells of an operation where its bytes are."""
        if pending.moved is None:
            return
        self.fetched(wave, pending)
        (cells, words), moved = self._held.pop(pending), pending.moved(wave)
        size = words.shape[1]
        if moved.lossy:
            self.uninterpreted[pending.record.statement.opcode] += 1
        pc = self._pc_of(wave, pending)
        for space, target in moved.targets:
            data = bytes_of_space(wave, space)
            memory, offsets = self.memory(data), target.reshape(-1, size)[:, 0]
            own = reduced(self, memory, offsets, cells, words, moved) if moved.update else cells
            lanes = np.full(len(offsets), pending.lane)
            self.write(wave, pc, data, (offsets, size), own, lanes)

    def _pc_of(self, wave: Wave, pending: Pending) -> int:
        return next((pc for pc, record in enumerate(wave.code) if record is pending.record), -1)


def _filled(cells: Cells | None, mask: npt.NDArray[np.bool_]) -> Cells | None:
    """Return cells without those of words that are filled."""
    return cells if cells is None or not mask.any() else cells.merged(~mask, None)


def _words_of(moved: Moved) -> int:
    """Return the most bytes that stay together, aligned, wherever an operation moves them."""
    if moved.update:
        return element_of(moved.type).size
    places: Sequence[npt.NDArray[np.int64]] = [moved.source, *(target for _, target in moved.targets)]
    return next(size for size in (16, 8, 4, 2, 1) if all(_in_words(each, size) for each in places))


def _in_words(places: npt.NDArray[np.int64], size: int) -> bool:
    if len(places) % size:
        return False
    rows = places.reshape(-1, size)
    first = rows[:, :1]
    whole = (rows == first + np.arange(size)) & (first % size == 0)
    return bool((whole | ((rows < 0) & (first < 0))).all())
