"""Bytes with keys: what registers and memories hold beside their values.

A byte has a key and a tag: the format of the number that it is a part of, the size of that number, and which
byte of it this is. Tag 0 is a byte without a key: its value is all there is to know. Copies move cells and
compute nothing, so packed pairs, detours through wider registers and shuffles need no rules.

    register  Cells: keys and tags (bytes, lanes)
    memory    MemoryCells: keys, tags and last writer (bytes,)

Knows bytes; does not know what reads them (key_reading.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ....isa.formats import FORMATS
from .finite_fields import Keys

_U, _T = np.uint64, np.uint16
Tags = npt.NDArray[np.uint16]
Mask = npt.NDArray[np.bool_]

# Formats by number. "s" and "u" are integers: the key is that of the number that the sign makes of the bits.
# tf32 is f32 in memory.
_FLOATS = {name: each for name, each in FORMATS.items() if each.is_float and not each.ignored_bits}
_NAMED = ("s", "u", *_FLOATS)
KINDS = {name: number for number, name in enumerate(_NAMED, 1)}
NAMES = {number: name for name, number in KINDS.items()}
SIZES = {name: each.bits // 8 for name, each in _FLOATS.items() if each.bits > 8}  # bytes; of other floats 1
PAIRED = next(name for name, each in _FLOATS.items() if each.bits == 4)  # two codes share a byte


def tag_of(kind: str, size: int) -> int:
    """Return the tag of the first byte of a number."""
    return KINDS[kind] << 8 | size << 4


class Cells:
    """The keys and tags ``(bytes, lanes)`` of a register, never changed in place.

    ``kind`` and ``size`` are those of the numbers where every lane holds a number from byte 0 on with nothing
    behind it, whose keys are then ``keys[0]``; "" otherwise. ``writer`` is the statement that made or copied
    the cells, or those of each lane ``(lanes,)``; -1 for none.
    """

    __slots__ = ("keys", "kind", "size", "tags", "writer")

    def __init__(self, keys: Keys, tags: Tags, writer: Any = -1, kind: str = "", size: int = 0) -> None:
        self.keys, self.tags, self.writer = keys, tags, writer
        self.kind, self.size = kind, size

    @classmethod
    def of(cls, keys: Keys, kind: str, size: int, writer: Any = -1) -> Cells:
        """Return cells that hold one number in each lane, of keys ``(lanes,)``."""
        tags = np.arange(tag_of(kind, size), tag_of(kind, size) + size, dtype=_T)
        shape = (size, len(keys))
        return cls(np.broadcast_to(keys, shape), np.broadcast_to(tags[:, None], shape), writer, kind, size)

    @classmethod
    def joined(cls, parts: list[Cells], writer: Any = -1) -> Cells:
        """Return the cells of parts, the lowest first."""
        if len(parts) == 1:
            return parts[0]
        keys = np.concatenate([part.keys for part in parts])
        return cls(keys, np.concatenate([part.tags for part in parts]), writer)

    @classmethod
    def empty(cls, size: int, lanes: int) -> Cells:
        """Return cells without keys."""
        return cls(np.zeros((size, lanes), _U), np.zeros((size, lanes), _T))

    @property
    def width(self) -> int:
        """Bytes."""
        return len(self.keys)

    @property
    def any(self) -> bool:
        """Whether any byte has a key."""
        return bool(self.kind) or bool(self.tags.any())

    def part(self, first: int, size: int) -> Cells:
        """Return some bytes."""
        if first == 0 and size == self.width:
            return self
        return Cells(self.keys[first : first + size], self.tags[first : first + size], self.writer)

    def resized(self, width: int) -> Cells:
        """Return the low bytes, or more bytes without keys above."""
        if width <= self.width:
            return self.part(0, width)
        return Cells.joined([self, Cells.empty(width - self.width, self.keys.shape[1])], self.writer)

    def of_lanes(self, index: Any) -> Cells:
        """Return the cells of some lanes, by number."""
        writer = self.writer[index] if np.ndim(self.writer) else self.writer
        if self.kind:
            return Cells.of(self.keys[0][index], self.kind, self.size, writer)
        return Cells(self.keys[:, index], self.tags[:, index], writer)

    def merged(self, mask: Mask, others: Cells) -> Cells:
        """Return these cells where a mask of lanes is set, others elsewhere."""
        writer = self.writer if self.writer is others.writer else np.where(mask, self.writer, others.writer)
        if self.kind and (self.kind, self.size) == (others.kind, others.size):
            return Cells.of(np.where(mask, self.keys[0], others.keys[0]), self.kind, self.size, writer)
        keys, tags = np.where(mask, self.keys, others.keys), np.where(mask, self.tags, others.tags)
        return Cells(keys, tags, writer)


class MemoryCells:
    """The keys, tags and last writers ``(bytes,)`` of a memory."""

    def __init__(self, data: npt.NDArray[np.uint8]) -> None:
        self.data = data  # so that its identity stays its own
        self.keys, self.tags = np.zeros(data.size, _U), np.zeros(data.size, _T)
        self.writers = np.full(data.size, -1, np.int32)

    def load(self, offsets: npt.NDArray[np.int64], size: int) -> tuple[Keys, Tags]:
        """Return keys and tags ``(words, size)`` of so many bytes at each offset."""
        return _rows(self.keys, offsets, size), _rows(self.tags, offsets, size)

    def writers_of(self, offsets: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int32]:
        """Return ``(words, size)``: the statements that have written these bytes."""
        return _rows(self.writers, offsets, size)

    def store(
        self, offsets: npt.NDArray[np.int64], size: int, cells: tuple[Keys, Tags] | None, writer: int
    ) -> None:
        """Write keys and tags ``(words, size)`` at each offset, None for bytes without keys."""
        places = _places(offsets, size)
        width = _width(offsets, size)
        for table, value in ((self.keys, 0), (self.tags, 1)):
            rows = table[: len(table) // width * width].reshape(-1, width)
            rows[places] = 0 if cells is None else cells[value].reshape(len(offsets), -1, width)
        self.writers[: len(self.writers) // width * width].reshape(-1, width)[places] = writer


def _width(offsets: npt.NDArray[np.int64], size: int) -> int:
    """Return how many bytes can be moved at a time."""
    low = int(np.bitwise_or.reduce(offsets, initial=size))
    return min(low & -low, 16)


def _places(offsets: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int64]:
    """Return ``(words, rows)``: rows of as many bytes as can be moved at a time."""
    width = _width(offsets, size)
    return (offsets // width)[:, None] + np.arange(size // width)


def _rows(table: npt.NDArray[Any], offsets: npt.NDArray[np.int64], size: int) -> npt.NDArray[Any]:
    width = _width(offsets, size)
    rows = table[: len(table) // width * width].reshape(-1, width)
    return rows[_places(offsets, size)].reshape(len(offsets), size)


def cells_of_rows(keys: Keys, tags: Tags, writer: Any = -1) -> Cells | None:
    """Return the cells of a register from ``(lanes, bytes)`` of memory; None for bytes without keys."""
    if not tags.any():
        return None
    first = int(tags[0, 0])
    size, width = first >> 4 & 15, tags.shape[1]
    if first and size == width and first & 15 == 0:
        expected = np.arange(first, first + size, dtype=_T)
        if (tags == expected).all() and (keys == keys[:, :1]).all():
            return Cells.of(np.ascontiguousarray(keys[:, 0]), NAMES[first >> 8], size, writer)
    return Cells(np.ascontiguousarray(keys.T), np.ascontiguousarray(tags.T), writer)
