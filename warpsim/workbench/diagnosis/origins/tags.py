"""Tags: bytes that identify their origin after any number of moves.

Every byte of some buffers has an index, from 1 on, and a code: the index, and above it bits of a hash. In
each of several runs the byte is replaced by one byte of its code; what arrives somewhere in all runs gives
the index back, and the hash distinguishes moved bytes from computed bytes. The first runs have a few bits of
the hash, which are enough where bytes arrive next to their neighbours; all runs have enough for a byte alone.
Knows indices and bytes; does not know kernels. The bytes of D of a matrix instruction have an index of their
own, ``result``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

CONSTANT = 0  # a byte that is the same in all runs
COMPUTED = -1  # a byte that arithmetic has made
_FEWEST = 3  # runs: what depends on the values is to show in one of them
_HASHES = 2  # bytes of hash that all runs have
_CHECKED = 4  # bits of hash that the first runs have, at least: 8 of two bytes, 16 of a word
_ZERO = 256  # indices below it have no hash in the first runs: some of what is compared with zero is zero
_NARROW = 31  # bits of an index and a sign that four bytes hold
_TABLE = 1 << 22  # indices of which codes are tabled
_FACTORS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)  # odd: golden ratio, and a prime

Indices = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Tagging:
    """Tags of so many bytes."""

    total: int

    @property
    def result(self) -> int:
        """The index of every byte of D."""
        return self.total + 1

    @property
    def bits(self) -> int:
        """Bits of an index."""
        return self.result.bit_length()

    @property
    def first_runs(self) -> int:
        """Runs that distinguish indices, and words from what arithmetic has made."""
        return max(_FEWEST, -(-(self.bits + _CHECKED) // 8))

    @property
    def runs(self) -> int:
        """Runs in all."""
        return max(self.first_runs, -(-self.bits // 8) + _HASHES)

    def tags(self, index: Indices, run: int) -> Bytes:
        """Return what the bytes of some indices are replaced by in a run; of others any bytes."""
        if self.result > _TABLE:
            return (self.codes(index) >> np.uint64(8 * run)).astype(np.uint8)
        found: Bytes = self._table[run].take(index, mode="clip")
        return found

    def codes(self, index: Indices) -> npt.NDArray[np.uint64]:
        """Return the codes of indices; no code has the same byte in all of the first runs."""
        whole, first = 8 * self.runs, 8 * self.first_runs
        mixed = index.astype(np.uint64) * np.uint64(_FACTORS[0])
        mixed = (mixed ^ mixed >> np.uint64(29)) * np.uint64(_FACTORS[1])
        codes = mixed >> np.uint64(64 - whole + self.bits) << np.uint64(self.bits)
        if whole > first:  # else nothing of the hash would be left
            codes[index < _ZERO] &= ~np.uint64((1 << first) - 1)
        codes |= index.astype(np.uint64)
        alike = (codes & np.uint64(255)) * np.uint64(int.from_bytes(bytes([1] * self.first_runs)))
        codes[(codes & np.uint64((1 << first) - 1)) == alike] ^= np.uint64(1 << first - 1)
        return codes

    @cached_property
    def _table(self) -> Bytes:
        """``(runs, indices)``: all tags."""
        codes = self.codes(np.arange(self.result + 1))
        return np.stack([(codes >> np.uint64(8 * run)).astype(np.uint8) for run in range(self.runs)])

    def decoded(self, seen: Bytes) -> Indices:
        """Return ``(...)``: the index of bytes ``(runs, ...)``, each alone, CONSTANT, or COMPUTED."""
        index = self._indices([each.astype(self._wide) for each in seen])
        moved = (index >= 1) & (index <= self.result)
        for tags, each in zip(self._all_tags(index), seen, strict=False):
            moved &= tags == each
        constant = (seen[1:] == seen[0]).all(axis=0)
        decoded: Indices = np.where(moved, index, np.where(constant, CONSTANT, COMPUTED)).astype(np.int64)
        return decoded

    def _all_tags(self, index: Words) -> Iterator[Bytes]:
        """Yield the tags of indices, run by run."""
        if self.result <= _TABLE:
            yield from (self.tags(index, run) for run in range(self.runs))
            return
        codes = self.codes(index)
        yield from ((codes >> np.uint64(8 * run)).astype(np.uint8) for run in range(self.runs))

    @property
    def _wide(self) -> np.dtype[Any]:
        """The type that indices are found in."""
        return np.dtype(np.int32 if self.bits < _NARROW else np.int64)

    def _indices(self, seen: Sequence[Words]) -> Words:
        """Return the index in a code, given byte by byte in a type that holds it."""
        index = seen[0] & 255
        for run in range(1, -(-self.bits // 8)):
            index |= (seen[run] & 255) << 8 * run
        return index & (1 << self.bits) - 1

    # --- bytes next to their neighbours --------------------------------------------------------------

    def of_neighbours(self, seen: Sequence[Words]) -> Words | None:
        """Return ``(..., bytes)``: the index of each byte of words ``(...)``, as they are in each run, where
        all bytes are next to their neighbours; None where some are not.

        That is: two bytes, or four, have consecutive indices, are constant, or are of D. Indices are int32
        where that is wide enough: to fill memory takes longer than all else.
        """
        flat = [np.ascontiguousarray(words).reshape(-1).view(np.uint8) for words in seen]
        if flat[0].size % 2:
            return None
        found = self._of_words([part.view(np.uint16 if part.size % 4 else np.uint32) for part in flat])
        return None if found is None else found.reshape(*seen[0].shape, seen[0].itemsize)

    def _of_words(self, seen: Sequence[Words]) -> Words | None:
        """Return ``(n, bytes)``: the index of each byte of words ``(n,)``; None where some are computed."""
        size, first = seen[0].itemsize, self._first(seen)
        left = np.flatnonzero(first == COMPUTED)
        halves = None
        if left.size:
            apart = [words[left] if left.size < words.size else words for words in seen]
            halves = None if size == 2 else self._of_words([words.view(np.uint16) for words in apart])
            if halves is None or left.size == first.size:
                return halves if halves is None else halves.reshape(-1, size)
        found = np.empty((first.size, size), first.dtype)
        for place in range(size):  # column by column: an axis of four costs more than all else
            np.add(first, place, out=found[:, place])
        alike = np.flatnonzero((first == CONSTANT) | (first == self.result))
        found[alike] = first[alike, None]
        if halves is not None:
            found[left] = halves.reshape(-1, size)
        return found

    def _first(self, seen: Sequence[Words]) -> Words:
        """Return ``(n,)``: the index of the first byte of words ``(n,)``, CONSTANT, or COMPUTED."""
        size = seen[0].itemsize
        wide = self._wide
        parts = [words.astype(f"u{wide.itemsize}", copy=False) for words in seen]
        index = self._indices(parts).view(wide)
        moved = (index >= 1) & (index + size <= self.result)
        constant, result = np.ones((2, index.size), np.bool_)
        for run, words in enumerate(seen):
            moved &= self._neighbours(index, run, size) == words
            constant &= words == seen[0]
            result &= words == self._word_of_result(run, size)
        found: Words = np.where(constant, wide.type(CONSTANT), wide.type(COMPUTED))
        np.copyto(found, index, where=moved)
        found[result] = self.result
        return found

    def _neighbours(self, index: Words, run: int, size: int) -> Words:
        """Return the words of ``size`` tags that begin with those of indices."""
        if self.result > _TABLE:
            places = index.astype(np.int64)
            tags = np.stack([self.tags(places + place, run) for place in range(size)], axis=-1)
            return tags.view(f"u{size}")[..., 0]
        if (run, size) not in self._windows:
            tags = np.pad(self._table[run], (0, size)).astype(f"u{size}")
            count = tags.size - size
            window = tags[:count].copy()
            for place in range(1, size):
                window |= tags[place : place + count] << 8 * place
            self._windows[run, size] = window
        found: Words = self._windows[run, size].take(index, mode="clip")
        return found

    @cached_property
    def _windows(self) -> dict[tuple[int, int], Words]:
        """Words of tags by run and size, as far as they have been asked for."""
        return {}

    def _word_of_result(self, run: int, size: int) -> int:
        tag = int(self.tags(np.array([self.result]), run)[0])
        return int.from_bytes(bytes([tag] * size))
