"""Bytes with keys: what registers and memories hold beside their values.

A byte has a key and a tag: the format of the number that it is a part of, the size of that number, and which
byte of it this is. Tag 0 is a byte without a key: its value is all there is to know. Copies move cells and
compute nothing, so packed pairs, detours through wider registers and shuffles need no rules.

    register  Cells: numbers of one format (count, lanes), or else keys and tags (bytes, lanes)
    memory    MemoryCells: keys, tags and last writer (bytes,)

Knows bytes; does not know what reads them (key_reading.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
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
PAIRED = next(name for name, each in _FLOATS.items() if each.bits == 4)  # two codes share a byte


def tag_of(kind: str, size: int) -> int:
    """Return the tag of the first byte of a number."""
    return KINDS[kind] << 8 | size << 4


@cache
def pattern_of(kind: str, size: int, width: int) -> Tags:
    """Return the tags of the bytes of numbers side by side."""
    return np.resize(np.arange(tag_of(kind, size), tag_of(kind, size) + size, dtype=_T), width)


LOOSE = 8  # in the tags of a memory: bytes that may be of several numbers, whose keys have to be compared


_NONE = np.zeros((0, 0), _U)


class Cells:
    """The keys and tags of a register, or of words of a memory in place of lanes; never changed in place.

    Where lanes hold numbers of one format side by side, or nothing, ``kind`` and ``size`` are those of the
    numbers, ``numbers (count, lanes)`` their keys, and ``there (lanes,)`` the lanes that do, None for all.
    Otherwise ``kind`` is "".
    """

    __slots__ = ("_keys", "_tags", "kind", "numbers", "size", "there", "width")

    def __init__(self, keys: Any, tags: Any) -> None:
        self._keys, self._tags, self.width = keys, tags, len(keys)
        self.kind, self.size = "", 0
        self.numbers: Keys = _NONE
        self.there: Mask | None = None

    @classmethod
    def of(cls, keys: Keys, kind: str, size: int, there: Mask | None = None) -> Cells:
        """Return cells that hold a number in each lane, of keys ``(lanes,)``, or several ``(count, lanes)``;
        where lanes without are given, their keys are 0.
        """
        found = cls.__new__(cls)
        found.numbers = keys if keys.ndim > 1 else keys[None]
        found.kind, found.size = kind, size
        found.there = None if there is None or there.all() else there
        found.width = len(found.numbers) * size
        found._keys = found._tags = None
        return found

    @classmethod
    def joined(cls, parts: Sequence[Cells]) -> Cells:
        """Return the cells of parts, the lowest first."""
        first = parts[0]
        if len(parts) == 1:
            return first
        if all(_alike(first, each) and first.there is each.there for each in parts):
            numbers = np.concatenate([each.numbers for each in parts])
            return cls.of(numbers, first.kind, first.size, first.there)
        keys = np.concatenate([part.keys for part in parts])
        return cls(keys, np.concatenate([part.tags for part in parts]))

    @classmethod
    def beside(cls, registers: Sequence[Cells | None], width: int, lanes: int) -> Cells | None:
        """Return the cells of the lanes of several registers in a row; None for registers without keys."""
        first = next((each for each in registers if each is not None), None)
        if first is None:
            return None
        if all(each is None or _alike(first, each) for each in registers):
            none, every = np.zeros_like(first.numbers), np.ones(lanes, np.bool_)
            numbers = np.concatenate([none if each is None else each.numbers for each in registers], axis=1)
            there = [
                ~every if each is None else every if each.there is None else each.there for each in registers
            ]
            return cls.of(numbers, first.kind, first.size, np.concatenate(there))
        full = [cls.empty(width, lanes) if each is None else each for each in registers]
        keys, tags = (np.concatenate([getattr(e, name) for e in full], axis=1) for name in ("keys", "tags"))
        return cls(keys, tags)

    @classmethod
    def empty(cls, size: int, lanes: int) -> Cells:
        """Return cells without keys."""
        return cls(np.zeros((size, lanes), _U), np.zeros((size, lanes), _T))

    @property
    def keys(self) -> Keys:
        """``(bytes, lanes)``."""
        if self._keys is None:
            self._keys = self.numbers if self.size == 1 else np.repeat(self.numbers, self.size, axis=0)
        found: Keys = self._keys
        return found

    @property
    def tags(self) -> Tags:
        """``(bytes, lanes)``."""
        if self._tags is None:
            own = pattern_of(self.kind, self.size, self.width)[:, None]
            lanes = self.numbers.shape[1]
            self._tags = np.broadcast_to(own, (self.width, lanes)) if self.there is None else own * self.there
        found: Tags = self._tags
        return found

    @property
    def number(self) -> Keys | None:
        """The keys ``(lanes,)`` where every lane holds one number and nothing else; None otherwise."""
        whole = self.kind and self.size == self.width and self.there is None
        return self.numbers[0] if whole else None

    @property
    def lanes(self) -> int:
        """Lanes."""
        count: int = (self.numbers if self.kind else self._keys).shape[1]
        return count

    @property
    def any(self) -> bool:
        """Whether any byte has a key."""
        return bool(self.kind) or bool(self._tags.any())

    def known(self) -> Keys:
        """Return every key that some byte has, once or more often."""
        if not self.kind:
            return np.asarray(self.keys[self.tags != 0])
        return (self.numbers if self.there is None else self.numbers[:, self.there]).reshape(-1)

    def tagged(self, byte: int) -> Iterator[tuple[int, Any, Keys]]:
        """Yield the tags that a byte has, and of each the numbers of its lanes and their keys."""
        if self.kind:
            every = np.arange(self.lanes) if self.there is None else np.flatnonzero(self.there)
            tag = tag_of(self.kind, self.size) + byte % self.size
            yield tag, every, self.numbers[byte // self.size, every]
            return
        for tag in np.unique(self.tags[byte]).tolist():
            if tag:
                some = np.flatnonzero(self.tags[byte] == tag)
                yield tag, some, self.keys[byte][some]

    def part(self, first: int, size: int) -> Cells:
        """Return some bytes."""
        if first == 0 and size == self.width:
            return self
        if self.kind and first % self.size == size % self.size == 0:
            some = self.numbers[first // self.size : (first + size) // self.size]
            return Cells.of(some, self.kind, self.size, self.there)
        return Cells(self.keys[first : first + size], self.tags[first : first + size])

    def resized(self, width: int) -> Cells:
        """Return the low bytes, or more bytes without keys above."""
        if width <= self.width:
            return self.part(0, width)
        return Cells.joined([self, Cells.empty(width - self.width, self.lanes)])

    def of_lanes(self, index: Any) -> Cells:
        """Return the cells of some lanes, by number."""
        if self.kind:
            there = None if self.there is None else self.there[index]
            if there is None or there.any():
                return Cells.of(self.numbers[:, index], self.kind, self.size, there)
        return Cells(self.keys[:, index], self.tags[:, index])

    def merged(self, mask: Mask, others: Cells | None) -> Cells | None:
        """Return these cells where a mask of lanes is set, others elsewhere; None where no key is left."""
        if others is None or (self.kind and not others.any):
            return self._only(mask)
        if others.kind and not self.any:
            return others._only(~mask)
        if _alike(self, others):
            numbers: Keys = np.where(mask, self.numbers, others.numbers)
            there = None
            if self.there is not None or others.there is not None:
                there = np.where(mask, _mask(self), _mask(others))
                if not there.any():
                    return None
            return Cells.of(numbers, self.kind, self.size, there)
        keys, tags = np.where(mask, self.keys, others.keys), np.where(mask, self.tags, others.tags)
        return Cells(keys, tags) if tags.any() else None

    def _only(self, mask: Mask) -> Cells | None:
        """Return the cells of a mask of lanes alone; None where these have no keys."""
        if self.kind:
            there = mask if self.there is None else mask & self.there
            if not there.any():
                return None
            return Cells.of(self.numbers * there, self.kind, self.size, there)
        tags = self.tags * mask
        return Cells(self.keys * mask, tags) if tags.any() else None

    def rearranged(self, groups: int, places: npt.NDArray[np.intp]) -> Cells:
        """Return ``(bytes, groups * n)``: of each group of lanes the bytes ``places (n, bytes)``, counted
        lane by lane.
        """
        count, width = places.shape
        size = self.size
        if size and (self.there is None or self.there.all()) and _in_rows(places, size):
            flat = self.numbers.T.reshape(groups, -1)
            found = flat[:, places[:, ::size] // size].reshape(groups * count, width // size)
            return Cells.of(np.ascontiguousarray(found.T), self.kind, size)
        keys, tags = (
            np.ascontiguousarray(
                np.ascontiguousarray(each.T).reshape(groups, -1)[:, places].reshape(groups * count, width).T
            )
            for each in (self.keys, self.tags)
        )
        return Cells(keys, tags)


def _alike(a: Cells, b: Cells) -> bool:
    return bool(a.kind) and (a.kind, a.size, a.width) == (b.kind, b.size, b.width)


def _mask(cells: Cells) -> Any:
    return True if cells.there is None else cells.there


def _in_rows(places: npt.NDArray[np.intp], size: int) -> bool:
    if size == 1:
        return True
    if places.shape[1] % size:
        return False
    rows = places.reshape(-1, size)
    return bool((rows[:, 0] % size == 0).all() and (rows == rows[:, :1] + np.arange(size)).all())


class MemoryCells:
    """The keys, tags and last writers ``(bytes,)`` of a memory."""

    def __init__(self, data: npt.NDArray[np.uint8]) -> None:
        self.data = data  # so that its identity stays its own
        self.keys, self.tags = np.zeros(data.size, _U), np.zeros(data.size, _T)
        self.writers = np.full(data.size, -1, np.int32)

    def load(self, offsets: npt.NDArray[np.int64], size: int) -> Cells | None:
        """Return the cells of so many bytes at each offset, None where they have no keys."""
        tags = _rows(self.tags, offsets, size)
        words = tags.view(f"u{2 * min(size & -size, 4)}")  # of several tags: a quarter of the comparisons
        if not words.any():
            return None
        some = tags[:, 0] != 0
        first = int(tags[np.argmax(some), 0])
        own = first >> 4 & 15
        if own and not first & 15 and size % own == 0:
            wanted = np.resize(np.arange(first, first + own, dtype=_T), size).view(words.dtype)
            if (words == (wanted if some.all() else wanted * some[:, None])).all():
                numbers = self.keys[offsets + np.arange(0, size, own)[:, None]]
                return Cells.of(numbers, NAMES[first >> 8], own, some)
        keys = np.ascontiguousarray(_rows(self.keys, offsets, size).T)
        return Cells(keys, np.ascontiguousarray(tags.T) & _T(0xFFFF - LOOSE))

    def of_bytes(self, places: Any) -> tuple[Keys, Tags]:
        """Return the keys and the tags of bytes, in any shape."""
        return self.keys[places], self.tags[places] & _T(0xFFFF - LOOSE)

    def store(self, offsets: npt.NDArray[np.int64], size: int, cells: Cells | None, writer: int) -> None:
        """Write the cells of words at each offset, None for bytes without keys."""
        places = _places(offsets, size)
        width = _width(offsets, size)
        keys: Any = 0
        tags: Any = 0
        if cells is not None:
            shape = len(offsets), -1, width
            keys = np.repeat(cells.numbers.T, cells.size, axis=1) if cells.kind else cells.keys.T
            keys, tags = keys.reshape(shape), _marked(cells).T.reshape(shape)
        for table, value in ((self.keys, keys), (self.tags, tags), (self.writers, writer)):
            table[: len(table) // width * width].reshape(-1, width)[places] = value


def _marked(cells: Cells) -> Tags:
    """Return the tags of cells as memories have them: ``LOOSE`` unless all bytes are of whole numbers."""
    tags, keys = cells.tags, cells.keys
    if cells.kind:
        return tags
    follows = np.zeros((len(tags) + 1, tags.shape[1]), np.bool_)
    follows[1:-1] = (tags[1:] == tags[:-1] + 1) & (keys[1:] == keys[:-1])
    whole = (follows[:-1] | (tags & 15 == 0)) & (follows[1:] | ((tags & 15) + 1 == tags >> 4 & 15))
    return tags if (whole | (tags == 0)).all() else np.where(tags != 0, tags | _T(LOOSE), tags)


def _width(offsets: npt.NDArray[np.int64], size: int) -> int:
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
