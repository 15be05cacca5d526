"""Tags: bytes that identify their origin after any number of moves.

Every byte of some buffers has an index, from 1 on. In each of several runs it is replaced by one digit of
that index to the base 256, and then by two hashes of it; the bytes that arrive somewhere in all runs give the
index back, and the hashes distinguish moved bytes from computed bytes. Knows indices and bytes;
does not know kernels. The bytes of D of a matrix instruction have an index of their own, ``result``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

CONSTANT = 0  # a byte that is the same in all runs
COMPUTED = -1  # a byte that arithmetic has made
_HASHES = 2
_TABLE = 1 << 22  # indices of which tags are tabled
_FACTORS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)  # odd: golden ratio, and a prime

Indices = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True)
class Tagging:
    """Tags of so many bytes."""

    total: int

    @property
    def result(self) -> int:
        """The index of every byte of D."""
        return self.total + 1

    @property
    def digits(self) -> int:
        """Runs that are needed to distinguish all indices."""
        return -(-self.result.bit_length() // 8)

    @property
    def runs(self) -> int:
        """Runs in all."""
        return self.digits + _HASHES

    def tags(self, index: Indices, run: int) -> Bytes:
        """Return what the bytes of some indices are replaced by in a run."""
        if run < self.digits:
            return (index >> 8 * run & 255).astype(np.uint8)
        return _hash(index, run - self.digits)

    def decoded(self, seen: Bytes) -> Indices:
        """Return ``(...)``: the index of bytes ``(runs, ...)``, CONSTANT, or COMPUTED."""
        index = seen[0].astype(np.int32 if self.digits < 4 else np.int64)
        for run in range(1, self.digits):
            index |= seen[run].astype(index.dtype) << 8 * run
        moved = (index >= 1) & (index <= self.result)
        for run in range(self.digits, self.runs):
            moved &= self._tags_of(index, run) == seen[run]
        if moved.all():
            whole: Indices = index.astype(np.int64)
            return whole
        constant = (seen[1:] == seen[0]).all(axis=0)
        decoded: Indices = np.where(moved, index, np.where(constant, CONSTANT, COMPUTED)).astype(np.int64)
        return decoded

    def _tags_of(self, index: Indices, run: int) -> Bytes:
        """Return ``tags``, from a table where there are few; of indices above ``result`` any bytes."""
        if self.result > _TABLE:
            return self.tags(index, run)
        return _table(self, run).take(index, mode="clip")


@lru_cache(maxsize=2)
def _table(tagging: Tagging, run: int) -> Bytes:
    """Return the tags of all indices."""
    return tagging.tags(np.arange(tagging.result + 1), run)


def _hash(index: Indices, number: int) -> Bytes:
    """Return one byte of an index; the second is never the first: no constant passes for an index."""
    mixed = [index.astype(np.uint64) * np.uint64(factor) >> np.uint64(40) for factor in _FACTORS]
    first = mixed[0].astype(np.uint8)
    if number == 0:
        return first
    return first ^ (mixed[1] % np.uint64(255) + np.uint64(1)).astype(np.uint8)
