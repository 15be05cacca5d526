"""Atomics and reductions in memory: the memory's key and the operand's, in the order of the lanes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...isa.formats import FORMATS
from ...machine.run.pending import Moved
from ...machine.state.memory_access import MemoryAccess
from .key_store import KeyStore, Turn
from .keys.finite_fields import Keys, add, hashed
from .keys.key_cells import Cells, MemoryCells
from .keys.key_reading import numbers
from .rules.keyed_statements import Element, element_of, elements_of
from .rules.rule_calls import chosen, unwrapped

Words = npt.NDArray[Any]


class Update(NamedTuple):
    """An access that updates memory, and the bytes ``(words, size)`` before it."""

    access: MemoryAccess
    before: npt.NDArray[np.uint8]


def loaded_before(turn: Turn, index: int) -> npt.NDArray[np.uint8]:
    """Return ``(lanes, bytes)``: the content of an operand, that of a vector side by side."""
    statement, lanes = turn.statement, turn.wave.lanes
    values = [
        statement.source(each).value(turn.frame, lanes, statement.modifiers[-1])
        for each in elements_of(statement.spread(index))
    ]
    parts = [np.ascontiguousarray(each).view(np.uint8).reshape(lanes, -1) for each in values]
    return np.concatenate(parts, axis=1)


def update(
    algebra: KeyStore, turn: Turn, each: Update, operands: list[Cells], bits: list[Words]
) -> Cells | None:
    """Update the cells of memory, lane by lane where several share a place; return those before."""
    access, pc, memory = each.access, turn.statement.pc, algebra.memory(each.access.memory)
    before = memory.load(access.offsets, access.size)
    if before is None and not any(cells.any for cells in operands):
        memory.store(access.offsets, access.size, None, pc)
        return None
    lane_of, done = access.lane_of, np.zeros(access.offsets.size, np.bool_)
    content, kept = each.before.copy(), before or Cells.empty(access.size, len(lane_of))
    while not done.all():
        left = np.flatnonzero(~done)
        _, first = np.unique(access.offsets[left], return_index=True)
        place = left[first]
        work = _Turn(algebra, turn, memory, access.offsets[place], access.size, lane_of[place])
        old, new_bytes = work.run(
            content[place], [c.of_lanes(lane_of[place]) for c in operands], [b[lane_of[place]] for b in bits]
        )
        if old is not None and done.any():  # what lanes before have left
            keys, tags = kept.keys.copy(), kept.tags.copy()
            keys[:, place], tags[:, place] = old.keys, old.tags
            kept = Cells(keys, tags)
        done[place] = True
        _pass_on(content, access.offsets, place, new_bytes, done)
    after = memory.load(access.offsets, access.size)
    algebra.stored(turn.wave, pc, access.memory, access.offsets, after, lane_of)
    return kept if kept.any else None


def _pass_on(content: Any, offsets: Any, turn: Any, new: Any, done: Any) -> None:
    """Let lanes whose turn comes later see what these have written."""
    order = np.argsort(offsets[turn])
    place = np.searchsorted(offsets[turn][order], offsets)
    place = np.minimum(place, len(turn) - 1)
    same = ~done & (offsets[turn][order][place] == offsets)
    content[same] = new[order][place[same]]


class _Turn(NamedTuple):
    algebra: KeyStore
    turn: Turn
    memory: MemoryCells
    offsets: npt.NDArray[np.int64]
    size: int
    lanes: npt.NDArray[np.intp]

    def run(self, content: Words, cells: list[Cells], bits: list[Words]) -> tuple[Cells | None, Words]:
        """Update the words; return their cells before, and their bytes after as far as they are known."""
        statement, old = self.turn.statement, self.memory.load(self.offsets, self.size)
        name = next(word for word in statement.modifiers if word in _NAMES)
        if name in ("exch", "cas"):
            takes = np.ones(len(self.offsets), np.bool_) if name == "exch" else (content == bits[0]).all(1)
            new = cells[-1].merged(takes, old) if cells[-1].any or old is not None else None
            self.memory.store(self.offsets, self.size, new, statement.pc)
            return old, np.where(takes[:, None], bits[-1], content)
        element, after = element_of(statement.modifiers[-1]), content.copy()
        for first in range(0, self.size, element.size):
            part = slice(first, first + element.size)
            held = [None if c is None else c.part(first, element.size) for c in (old, cells[-1])]
            words = [_words(each[:, part]) for each in (content, bits[-1])]
            keys, after[:, part] = self._number(name, element, held, words)
            own = Cells.of(keys, element.kind, element.size)
            self.memory.store(self.offsets + first, element.size, own, statement.pc)
        return old, after

    def _number(
        self, name: str, element: Element, held: list[Cells | None], words: list[Words]
    ) -> tuple[Keys, Words]:
        reader = self.algebra.reader
        keys = [reader.read(c, w, element.kind, element.size) for c, w in zip(held, words, strict=True)]
        values = [numbers(w, element.kind, element.size) for w in words]
        after = _bytes(_value(name, values), element)
        found = _combined(name, keys, values, _words(after), element)
        self.algebra.made(self.turn, "+" if name == "add" else name, found, keys, self.lanes)
        return found, after


_NAMES = ("add", "min", "max", "and", "or", "xor", "inc", "dec", "exch", "cas")


def _combined(name: str, keys: list[Keys], values: list[Any], after: Words, element: Element) -> Keys:
    """Return the keys of an update of two numbers, after which these bits are in memory."""
    if name in ("min", "max"):
        return chosen([(keys[0], values[0]), (keys[1], values[1])], greatest=name == "max")
    if name != "add":
        return hashed(f"atomic {name}", keys[0], keys[1])
    if element.kind not in ("s", "u"):
        return add(*keys)
    exact = values[0].astype(np.float64) + values[1].astype(np.float64)
    return unwrapped(add(*keys), exact, numbers(after, element.kind, element.size), element.size)


def _value(name: str, values: list[Any]) -> Any:
    """Return the updated values, in higher precision, for lanes whose turn comes later."""
    functions: dict[str, Any] = {"add": np.add, "min": np.minimum, "max": np.maximum}
    with np.errstate(all="ignore"):
        return functions[name](values[0], values[1]) if name in functions else values[1]


def _words(rows: Any) -> Any:
    size = rows.shape[1]
    return np.ascontiguousarray(rows).view(f"u{size}")[:, 0]


def _bytes(values: Any, element: Element) -> Any:
    if element.kind in ("s", "u"):
        words = values.astype(f"{'i' if element.kind == 's' else 'u'}{element.size}")
    else:
        with np.errstate(all="ignore"):
            words = values.astype(FORMATS[element.kind].dtype)
    return np.ascontiguousarray(words).view(np.uint8).reshape(len(values), -1)


def reduced(
    algebra: KeyStore, memory: MemoryCells, offsets: Any, operand: Cells | None, given: Words, moved: Moved
) -> Cells | None:
    """Return the cells of numbers at offsets that a reduction has updated: ``memory`` has their values now.

    ``operand`` and ``given (numbers, bytes)`` are those of the operand.
    """
    element, old = element_of(moved.type), memory.load(offsets, given.shape[1])
    if old is None and operand is None:
        return None
    kind, size, _ = element
    after, own = _words(memory.data[offsets[:, None] + np.arange(size)]), _words(given)
    before = after - own if moved.update == "add" and kind in ("s", "u") else np.zeros_like(after)
    keys = [algebra.reader.read(old, before, kind, size), algebra.reader.read(operand, own, kind, size)]
    if moved.update in ("min", "max"):
        return Cells.of(np.where(own == after, keys[1], keys[0]), kind, size)
    values = [numbers(each, kind, size) for each in (before, own)]
    return Cells.of(_combined(moved.update, keys, values, after, element), kind, size)
