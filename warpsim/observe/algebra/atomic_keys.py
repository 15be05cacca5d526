"""Atomics and reductions in memory: the memory's key and the operand's, in the order of the lanes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...isa.formats import FORMATS
from ...machine.run.pending import Moved
from ...machine.run.wave import Wave
from ...machine.state.lanes import Frame
from ...machine.state.memory_access import MemoryAccess
from .key_store import KeyStore
from .keys.finite_fields import Keys, add, hashed
from .keys.key_cells import Cells, MemoryCells, tag_of
from .keys.key_reading import KeyReader, numbers
from .provenance import Place, Step, place_of_wave
from .rules.keyed_statements import Element, Statement, element_of, elements_of
from .rules.rule_calls import chosen, unwrapped

Rows = tuple[Keys, npt.NDArray[np.uint16]]


class Update(NamedTuple):
    """An access that updates memory, and the bytes ``(words, size)`` before it."""

    access: MemoryAccess
    before: npt.NDArray[np.uint8]


def loaded_before(statement: Statement, frame: Frame, lanes: int, index: int) -> npt.NDArray[np.uint8]:
    """Return ``(lanes, bytes)``: the content of an operand, that of a vector side by side."""
    kind = statement.modifiers[-1]
    values = [
        statement.source(each).value(frame, lanes, kind) for each in elements_of(statement.spread(index))
    ]
    parts = [np.ascontiguousarray(each).view(np.uint8).reshape(lanes, -1) for each in values]
    return np.concatenate(parts, axis=1)


def update(
    algebra: KeyStore, statement: Statement, each: Update, operands: tuple[list[Cells], list[Any]], wave: Wave
) -> Rows:
    """Update the cells of memory, lane by lane where several share a place; return those before."""
    access, memory = each.access, algebra.memory(each.access.memory)
    cells, bits = operands
    if not any(each.any for each in cells) and not memory.load(access.offsets, access.size)[1].any():
        memory.store(access.offsets, access.size, None, statement.pc)
        return memory.load(access.offsets, access.size)
    lane_of, done = access.lane_of, np.zeros(access.offsets.size, np.bool_)
    before = memory.load(access.offsets, access.size)
    content = each.before.copy()
    while not done.all():
        left = np.flatnonzero(~done)
        _, first = np.unique(access.offsets[left], return_index=True)
        turn = left[first]
        work = _Turn(
            algebra, statement, memory, access.offsets[turn], access.size, lane_of[turn], place_of_wave(wave)
        )
        old, new_bytes = work.run(
            content[turn], [c.of_lanes(lane_of[turn]) for c in cells], [b[lane_of[turn]] for b in bits]
        )
        before[0][turn], before[1][turn] = old
        done[turn] = True
        _pass_on(content, access.offsets, turn, new_bytes, done)
    algebra.stored(
        wave,
        statement.pc,
        (access.offsets, *memory.load(access.offsets, access.size)),
        access.memory,
        lane_of,
    )
    return before


def _pass_on(content: Any, offsets: Any, turn: Any, new: Any, done: Any) -> None:
    """Let lanes whose turn comes later see what these have written."""
    order = np.argsort(offsets[turn])
    place = np.searchsorted(offsets[turn][order], offsets)
    place = np.minimum(place, len(turn) - 1)
    same = ~done & (offsets[turn][order][place] == offsets)
    content[same] = new[order][place[same]]


class _Turn(NamedTuple):
    """Words of different places that are updated at once."""

    algebra: KeyStore
    statement: Statement
    memory: MemoryCells
    offsets: npt.NDArray[np.int64]
    size: int
    lanes: npt.NDArray[np.intp]
    place: Place

    def run(self, content: Any, cells: list[Cells], bits: list[Any]) -> tuple[Rows, Any]:
        """Update the words; return their cells before, and their bytes after as far as they are known."""
        old = self.memory.load(self.offsets, self.size)
        name = next(word for word in self.statement.modifiers if word in _NAMES)
        operand = np.ascontiguousarray(cells[-1].keys.T), np.ascontiguousarray(cells[-1].tags.T)
        if name in ("exch", "cas"):
            takes = np.ones(len(self.offsets), np.bool_) if name == "exch" else (content == bits[0]).all(1)
            new = tuple(np.where(takes[:, None], operand[place], old[place]) for place in (0, 1))
            self.memory.store(self.offsets, self.size, (new[0], new[1]), self.statement.pc)
            return old, np.where(takes[:, None], bits[-1], content)
        element = element_of(self.statement.modifiers[-1])
        after = content.copy()
        for first in range(0, self.size, element.size):
            part = slice(first, first + element.size)
            held = [Cells(k[:, part].T, t[:, part].T) for k, t in (old, operand)]
            words = [_words(each[:, part]) for each in (content, bits[-1])]
            keys, after[:, part] = self._number(name, element, held, words)
            rows = np.repeat(keys[:, None], element.size, 1), _tags(element, len(keys))
            self.memory.store(self.offsets + first, element.size, rows, self.statement.pc)
        return old, after

    def _number(self, name: str, element: Element, held: list[Cells], words: list[Any]) -> tuple[Keys, Any]:
        """Return the keys of updated numbers, and their bytes."""
        reader = self.algebra.reader
        keys = [reader.read(c, w, element.kind, element.size) for c, w in zip(held, words, strict=True)]
        values = [numbers(w, element.kind, element.size) for w in words]
        after = _bytes(_value(name, values), element)
        found = combined(name, keys, values)
        if name == "add" and element.kind in ("s", "u"):
            exact = values[0].astype(np.float64) + values[1].astype(np.float64)
            found = unwrapped(found, exact, numbers(_words(after), element.kind, element.size), element.size)
        if self.algebra.provenance is not None:
            step = Step(
                self.statement.pc, "+" if name == "add" else name, found, tuple(keys), self.lanes, self.place
            )
            self.algebra.provenance.step(step)
        return found, after


_NAMES = ("add", "min", "max", "and", "or", "xor", "inc", "dec", "exch", "cas")


def combined(name: str, keys: list[Keys], values: list[Any]) -> Keys:
    """Return the keys of an update of two numbers."""
    if name == "add":
        return add(keys[0], keys[1])
    if name in ("min", "max"):
        return chosen([(keys[0], values[0]), (keys[1], values[1])], greatest=name == "max")
    return hashed(f"atomic {name}", keys[0], keys[1])


def _value(name: str, values: list[Any]) -> Any:
    """Return the updated values, in higher precision, for lanes whose turn comes later."""
    functions: dict[str, Any] = {"add": np.add, "min": np.minimum, "max": np.maximum}
    with np.errstate(all="ignore"):
        return functions[name](values[0], values[1]) if name in functions else values[1]


def _words(rows: Any) -> Any:
    size = rows.shape[1]
    return np.ascontiguousarray(rows).view(f"u{size}")[:, 0]


def _bytes(values: Any, element: Element) -> Any:
    """Return ``(n, size)`` bytes of numbers."""
    if element.kind in ("s", "u"):
        words = values.astype(f"{'i' if element.kind == 's' else 'u'}{element.size}")
    else:
        with np.errstate(all="ignore"):
            words = values.astype(FORMATS[element.kind].dtype)
    return np.ascontiguousarray(words).view(np.uint8).reshape(len(values), -1)


def _tags(element: Element, count: int) -> npt.NDArray[np.uint16]:
    first = tag_of(element.kind, element.size)
    return np.broadcast_to(np.arange(first, first + element.size, dtype=np.uint16), (count, element.size))


def updated_words(
    reader: KeyReader, memory: MemoryCells, target: npt.NDArray[np.int64], rows: Rows, moved: Moved
) -> None:
    """Update the numbers of a reduction that has landed; ``memory.data`` has their values afterwards."""
    element = element_of(moved.type)
    size = element.size
    places, keys, tags = target.reshape(-1, size), rows[0].reshape(-1, size), rows[1].reshape(-1, size)
    after = _words(memory.data[places])
    old = Cells(memory.keys[places].T, memory.tags[places].T)
    operand = Cells(np.ascontiguousarray(keys.T), np.ascontiguousarray(tags.T))
    zero = np.zeros_like(after)
    read = [reader.read(each, zero, element.kind, size) for each in (old, operand)]
    values = [numbers(zero, element.kind, size), numbers(after, element.kind, size)]
    found = combined(moved.update, read, values)
    memory.keys[places] = found[:, None]
    memory.tags[places] = _tags(element, len(found))
