"""Keys of bytes of arrays: a key that says which byte it is, so that looking it up needs no table of keys.

Every byte of some buffers has an index, from 1 on, and the index behind the last stands for every D of a
matrix instruction. The lower half of a key is the index, the upper half a hash of it: what a statement has
computed has the key of a byte with a chance of 2^-29. Each of the eight bits of a byte has a key of its own,
by another hash. Knows keys and cells; does not know buffers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ....observe.algebra.keys.finite_fields import ONE, ZERO, Keys, Q
from ....observe.algebra.keys.key_bits import BitTable, extended
from ....observe.algebra.keys.key_cells import NAMES, Mask, tag_of

CONSTANT = 0  # a byte that the arrays have no part in
COMPUTED = -1  # a byte that a statement has computed
Indices = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.int32]  # the index of bytes, CONSTANT or COMPUTED
_U = np.uint64
_BITS, _LOW = _U(32), _U((1 << 32) - 1)
_FACTORS = (_U(0x9E3779B97F4A7C15), _U(0xC2B2AE3D27D4EB4F))  # odd: golden ratio, and a prime
_TABLED = 1 << 22  # bytes of which keys are in a table
BYTE = tag_of("u", 1)
_INTEGERS = [number for number, name in NAMES.items() if name in ("s", "u")]
_WIDEST = 4  # bytes of integers whose bits have keys


def _keys(index: npt.NDArray[Any], salt: int) -> Keys:
    mixed = (index.astype(_U) + _U(salt << 40)) * _FACTORS[0]
    mixed = (mixed ^ mixed >> _U(29)) * _FACTORS[1]
    found: Keys = (mixed ^ mixed >> _U(32)) % _U(Q) << _BITS | index.astype(_U)
    return found


@dataclass(frozen=True)
class ByteKeys:
    """The keys of so many bytes, and of their bits: a leaf of a ``BitTable``."""

    total: int

    @property
    def result(self) -> int:
        """The index of every byte of D."""
        return self.total + 1

    @cached_property
    def _table(self) -> Keys:
        """``(total + 2,)``: the key of each index; 0 is none."""
        return _keys(np.arange(self.total + 2), 0)

    def of(self, index: npt.NDArray[Any]) -> Keys:
        """Return the keys of indices, from 0 to that of D."""
        found: Keys = self._table[index] if self.total < _TABLED else _keys(index, 0)
        return found

    def find(self, keys: Keys) -> tuple[npt.NDArray[np.intp], Mask]:
        """Return the index of bytes by key, and whether they are bytes of the buffers."""
        index = np.minimum(keys & _LOW, _U(self.result)).astype(np.intp)
        return index, (self.of(index) == keys) & (index != 0) & (index <= self.total)

    def rows(self, index: npt.NDArray[np.intp]) -> Keys:
        """Return ``(n, 33)``: the bits of some bytes, zeros above."""
        return extended(np.stack([_keys(index, bit + 1) for bit in range(8)], axis=1), signed=False)

    # --- which bytes cells hold ---

    def indices(self, bits: BitTable, keys: Keys, tags: npt.NDArray[np.uint16]) -> Bytes:
        """Return the index of each byte of cells ``(...)``: of D, of a buffer, CONSTANT or COMPUTED."""
        index: Bytes = np.minimum(keys & _LOW, _U(self.result)).astype(np.int32)
        whole = self.of(index) == keys
        whole &= (tags == BYTE) | (index == self.result)
        if whole.all():
            return index
        found: Bytes = np.where(whole, index, np.where(tags == 0, np.int32(CONSTANT), np.int32(COMPUTED)))
        left = found == COMPUTED
        if left.any():
            left &= np.isin(tags >> 8, _INTEGERS) & (tags >> 4 & 15 <= _WIDEST)
            found[left] = self._of_bits(bits, keys[left], tags[left])
        return found

    def _of_bits(self, bits: BitTable, keys: Keys, tags: npt.NDArray[np.uint16]) -> Bytes:
        """Return the index of bytes of integers by their bits: all of one byte, in their order."""
        rows, known = bits.rows(keys)
        own = np.take_along_axis(rows, (tags & 15).astype(np.intp)[:, None] * 8 + np.arange(8), axis=1)
        index = np.minimum(own[:, 0] & _LOW, _U(self.result)).astype(np.int64)
        moved = (own == self.rows(index)[:, :8]).all(axis=1) & (index > 0) & (index <= self.total)
        constant = ((own == _U(ZERO)) | (own == _U(ONE))).all(axis=1)
        found = np.where(moved & known, index, np.where(constant & known, CONSTANT, COMPUTED))
        return np.asarray(found, np.int32)

    def bits_of(self, rows: Keys) -> tuple[int, int, int] | None:
        """Return the byte of the lowest, its bit and how many bits of a row are consecutive bits of bytes,
        with zeros above; None for other rows."""
        used = int(np.flatnonzero(rows)[-1]) + 1 if rows.any() else 0
        index = (rows[:used] & _LOW).astype(np.int64)
        if not used or ((index < 1) | (index > self.total)).any():
            return None
        matches = self.rows(index)[:, :8] == rows[:used, None]
        place = index * 8 + matches.argmax(axis=1)
        if not matches.any(axis=1).all() or (np.diff(place) != 1).any():
            return None
        return int(index[0]), int(place[0] % 8), used
