"""Words of metadata and scales, byte by byte: which bytes an instruction reads, and where each comes from.

The place of a byte is taken for a sum of what each bit of its number adds: two bits for the byte in its word,
the others for the lane. So a word may be one word of a buffer, or be made up of smaller words that lie apart.
Knows words and lanes; does not know what is right.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .....isa.fragments import metadata_map
from ..byte_keys import Indices, cell_uses
from ..loaded_operands import Kept, Mask, Operand, bits_of, kept_property, sums_of_bits

BYTES = 4  # of a word
_LEAST = 0.75  # of the bytes follow the sum, or it says nothing
NAMES = {"e": "metadata", "scale_a": "scales of A", "scale_b": "scales of B"}


@dataclass(frozen=True, kw_only=True)
class Uses:
    """The bytes that an instruction reads: ``used (lanes, 4)``, and of which ``line`` and ``k`` each is.

    A line is a row of A or a column of B of the tile, ``k`` the first element along k that the byte serves.
    """

    used: Mask
    line: Indices
    k: Indices


@dataclass(frozen=True, kw_only=True)
class Words(Kept):
    """Words of lanes: ``byte (n, lanes, 4)``, where in the buffer each byte comes from, and ``valid``.

    ``base (n,)`` and the ``steps`` of the bits of a byte's number add up to the place of each byte, mostly.
    """

    operand: Operand
    uses: Uses
    byte: Indices
    valid: Mask
    base: Indices
    steps: Indices  # (2 + bits of the lane,): what each bit of 4 * lane + byte adds

    @kept_property
    def known(self) -> Mask:
        """``(n,)``: executions in which any word comes from the buffer."""
        return np.asarray(self.valid.any(axis=(1, 2)))

    @kept_property
    def summed(self) -> Indices:
        """``(n, lanes, 4)``: where each byte is by the sum."""
        return self._sums(self.steps)

    @kept_property
    def follow_sums(self) -> bool:
        """Whether most bytes are where the sum says."""
        wrong = self.valid & (self.byte != self.summed)
        return bool(wrong.sum() <= (1 - _LEAST) * self.valid.sum())

    @kept_property
    def order_of_bytes(self) -> tuple[Indices, Mask]:
        """Return the order of the bytes of each word ``(n, lanes, 4)``, and which words are not in order.

        Bytes that lie together are in order if they ascend. A word of two halves that lie apart is in order
        if the halves are, and the upper half comes later in the buffer: rows and k ascend in every
        arrangement.
        """
        ascends = (self.byte[..., 1:] >= self.byte[..., :-1]).all(axis=2)
        if ascends.all():
            return np.broadcast_to(np.arange(BYTES), self.byte.shape), np.zeros(ascends.shape, np.bool_)
        whole = self.valid.all(axis=2)
        order = np.argsort(np.argsort(self.byte, axis=2), axis=2)
        together = self.byte.max(axis=2) - self.byte.min(axis=2) == BYTES - 1
        halves = (self.byte[..., 1::2] - self.byte[..., ::2] == 1).all(axis=2)
        return order, whole & (together | halves) & (order != np.arange(BYTES)).any(axis=2)

    @kept_property
    def expected(self) -> Indices:
        """``(n, lanes, 4)``: where each byte should be; bits that subtract are exchanged places."""
        steps = self.steps
        expected: Indices = self._sums(np.abs(steps)) + steps[steps < 0].sum()
        return expected

    def _sums(self, steps: Indices) -> Indices:
        lanes = self.byte.shape[1]
        total: Indices = self.base[:, None, None] + (bits_of(BYTES * lanes) @ steps).reshape(lanes, BYTES)
        return total

    @kept_property
    def first(self) -> Indices:
        """``(n,)``: the first byte of the buffer that an execution reads."""
        first: Indices = np.where(self.valid, self.byte, np.iinfo(np.int64).max).min(axis=(1, 2))
        return np.where(self.known, first, -1)


def words_of(operand: Operand) -> Words | None:
    """Return the words of an operand, found once; None where they come from no buffer."""
    words = operand.once("words", lambda: _words_of(operand))
    return None if words is None else replace(words, operand=operand, shared=words.kept)


def _words_of(operand: Operand) -> Words | None:
    if operand.buffer is None:
        return None
    uses = uses_of(operand)
    valid = operand.moved & uses.used
    if not valid.any():
        return None
    byte = np.where(valid, operand.index, -1)
    steps, base = sums_of_bits(byte.reshape(len(byte), -1), valid.reshape(len(byte), -1), -1)
    return Words(operand=operand, uses=uses, byte=byte, valid=valid, base=base, steps=steps)


def uses_of(operand: Operand) -> Uses:
    """Return the bytes of metadata or scales that the instruction reads."""
    form, lanes = operand.instruction, operand.bits.shape[1]
    if operand.of_tensor:
        return _uses_of_cells(operand)
    used = np.zeros((lanes, BYTES), np.bool_)
    line, k = np.zeros((2, lanes, BYTES), np.int64)
    if operand.role == "e":
        fields = metadata_map(form, operand.given.selector)
        lane, byte, row, chunk = fields[:, 0], fields[:, 1] // 8, fields[:, 3], fields[:, 4]
        depth = form.shape.k // (int(chunk.max()) + 1)
        chunk = chunk[::-1]  # where fields share a byte, the first of them is kept
        used[lane, byte] = True
        line[lane, byte], k[lane[::-1], byte[::-1]] = row, chunk * depth
        return Uses(used=used, line=line, k=k)
    side = operand.role[-1]
    ids, depth = operand.given.scale_selectors, form.shape.k // form.scale_chunks
    holders = form.scales(side).lanes_of(getattr(ids, f"thread_id_{side}"))
    for chunk_of_word in range(form.scale_chunks):
        byte_id = getattr(ids, f"byte_id_{side}") + chunk_of_word
        used[holders, byte_id] = True
        line[holders, byte_id], k[holders, byte_id] = np.arange(len(holders)), chunk_of_word * depth
    return Uses(used=used, line=line, k=k)


def _uses_of_cells(operand: Operand) -> Uses:
    """Return the bytes that a tcgen05.mma reads in the cells of an operand; "lanes" are cells here."""
    form = operand.instruction
    cell, byte, row, chunk = cell_uses(form, operand.role)
    line, k = np.zeros((2, operand.bits.shape[1], BYTES), np.int64)
    used = np.zeros(line.shape, np.bool_)
    used[cell, byte] = True
    depth = form.shape.k // (int(chunk.max()) + 1)
    line[cell[::-1], byte[::-1]] = row[::-1]  # where fields share a byte, the first of them is kept
    k[cell[::-1], byte[::-1]] = chunk[::-1] * depth
    return Uses(used=used, line=line, k=k)
