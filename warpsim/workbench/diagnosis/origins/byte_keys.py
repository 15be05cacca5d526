"""Keys of bytes of arrays: a key that says which byte it is, so that looking it up needs no table of keys.

Every byte of some buffers has an index, from 1 on, and the index behind the last stands for every D of a
matrix instruction. The lower half of a key is the index, the upper half a hash of it: what a statement has
computed has the key of a byte with a chance of 2^-29. Each of the eight bits of a byte has a key of its own,
by another hash. Knows keys and cells; does not know buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ....base.errors import present
from ....isa.families.tcgen05_operands import layout_of
from ....isa.instruction import Instruction
from ....isa.layouts.tensor_memory import BIT, COLUMN, CTA, LANE, LANES
from ....isa.warps import WARP
from ....machine.opcodes.tensor.tensor_products import Multiplication, Part
from ....machine.run.wave import Wave
from ....machine.state.lanes import Frame
from ....machine.state.tensor_cells import byte_places
from ....observe.algebra.fragment_keys import Placed
from ....observe.algebra.key_store import KeyStore, tensor_bytes
from ....observe.algebra.keys.finite_fields import ONE, ZERO, Keys, Q
from ....observe.algebra.keys.key_bits import BitTable, extended
from ....observe.algebra.keys.key_cells import NAMES, Cells, Mask, tag_of
from ....observe.algebra.matrix_keys import MatrixOperands

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


Numbers = npt.NDArray[np.intp]
_REMEMBERED = 256  # registers whose bytes are known: a fragment is multiplied with several others


class SourceBytes(NamedTuple):
    """Bytes of an operand, and the keys of what is computed of them; None where nothing is."""

    bytes: Bytes
    keys: Keys | None = None

    def moved(self, move: Callable[[Any], Any]) -> SourceBytes:
        """Return both after a function of their places."""
        return SourceBytes(move(self.bytes), None if self.keys is None else move(self.keys))

    def arranged(self, shape: tuple[int, ...]) -> SourceBytes:
        """Return them in another shape."""
        return self.moved(lambda each: each.reshape(shape))


class OperandBytes:
    """The bytes that operands have in registers and memories of an observer."""

    def __init__(self, store: KeyStore, keys: ByteKeys) -> None:
        self.store, self.keys = store, keys
        self._known = dict[tuple[int, ...], tuple[list[Cells | None], SourceBytes]]()

    def seen(self, keys: Keys, tags: npt.NDArray[np.uint16]) -> SourceBytes:
        """Return the bytes that keys and tags say."""
        found = self.keys.indices(self.store.reader.bits, keys, tags)
        return SourceBytes(found, keys if (found == COMPUTED).any() else None)

    def of_registers(
        self, wave: Wave, frame: Frame, numbers: Sequence[int], width: int, lanes: Numbers
    ) -> SourceBytes:
        """Return ``(lanes, registers, bytes)`` of some lanes of a wave; the same for the same registers."""
        held = self.store.registers(frame)
        cells = [held.get(number) for number in numbers]
        every = len(lanes) == wave.lanes and bool((lanes[1:] > lanes[:-1]).all())
        key = wave.lanes, width, *map(id, cells)
        if every and key in self._known:
            return self._known[key][1]
        seen = self._of_cells(cells, width, slice(None) if every else lanes, len(lanes))
        if every:
            if len(self._known) >= _REMEMBERED:
                del self._known[next(iter(self._known))]
            self._known[key] = cells, seen
        return seen

    def _of_cells(self, cells: Sequence[Cells | None], width: int, lanes: Any, count: int) -> SourceBytes:
        keys, tags = np.zeros((2, len(cells), width, count), np.uint64)
        for place, each in enumerate(cells):
            if each is not None:
                own = min(each.width, width)
                keys[place, :own], tags[place, :own] = each.keys[:own, lanes], each.tags[:own, lanes]
        seen = self.seen(keys, tags.astype(np.uint16))
        return seen.moved(lambda each: np.ascontiguousarray(each.transpose(2, 0, 1)))

    # --- mma and wgmma ---

    def of_execution(self, work: MatrixOperands) -> dict[str, SourceBytes]:
        """Return the operands of mma or wgmma."""
        form, inputs = work.form, work.inputs
        found = {role: self._of_words(work, role) for role in inputs.registers}
        for role, place in form.tiles(inputs).items():
            size = max(form.product.format(role).bits, 8) // 8
            addresses = work.tile_addresses(place, role)
            addresses = addresses.swapaxes(1, 2) if role == "b" else addresses
            memory = self.store.memory(work.wave.memories.shared)
            here = addresses[..., None].astype(np.intp) + np.arange(size)
            found[role] = self.seen(*memory.of_bytes(here))
            self.store.note_writers(work.wave, work.statement.pc, addresses, size, role)
        return found

    def _of_words(self, work: MatrixOperands, role: str) -> SourceBytes:
        words = work.inputs.registers[role]
        width, numbers = words.dtype.itemsize, work.numbers_of(role)
        seen = self.of_registers(work.wave, work.turn.frame, numbers, width, work.index)
        return seen.arranged((work.count, -1, len(numbers), width))

    # --- wmma ---

    def of_fragment(
        self, wave: Wave, frame: Frame, numbers: Sequence[int], held: Placed, warps: Numbers
    ) -> SourceBytes:
        """Return ``(warps, lines, length, bytes of an element)`` of a fragment."""
        lanes = (warps[:, None] * WARP + np.arange(WARP)).reshape(-1)
        seen = self.of_registers(wave, frame, numbers, held.fragment.word.itemsize, lanes)
        places, shape = held.in_lines(), (len(warps), held.fragment.lines, held.fragment.length, -1)
        return seen.moved(lambda each: each.reshape(len(warps), -1)[:, places]).arranged(shape)

    # --- tcgen05.mma ---

    def of_tensor(self, wave: Wave, work: Multiplication) -> dict[str, SourceBytes]:
        """Return what a tcgen05.mma reads: elements ``(1, rows, k, bytes)`` of A and B, ``(1, m, n, bytes)``
        of D before, and words ``(1, cells, 1, 4)`` of the others.
        """
        return {role: seen.moved(lambda each: each[None]) for role, seen in self._tensor(wave, work)}

    def _tensor(self, wave: Wave, work: Multiplication) -> Iterator[tuple[str, SourceBytes]]:
        product, form = work.made.instruction.product, work.made.instruction
        size = {role: max(product.storage(role).bits, 8) // 8 for role in "ab"}
        if work.a_part is not None:
            slots = 32 // product.storage("a").bits
            index = tuple(each[:, ::slots] for each in work.a_part.index(work.ctas))
            yield "a", _elements(self._of_tensor_memory(wave, index), size["a"])
        for role, tile in (("a", work.a), ("b", work.b)):
            if tile is not None and product.format(role).bits in (product.storage(role).bits, 8):
                memory, stride = self.store.memory(wave.memories.shared), wave.memories.shared_stride
                here = np.concatenate([tile.addresses + cta * stride for cta in work.ctas])
                self.store.note_writers(wave, work.pc, here, 1, role)
                yield role, _elements(self.seen(*memory.of_bytes(here)), size[role])
        d = self._of_tensor_memory(wave, work.d.index(work.ctas))
        width = np.dtype(form.c.code_dtype).itemsize
        yield "c", d.moved(lambda each: each[..., :width])
        scales = work.scales or (None, None)
        for role, part in (("e", work.metadata), ("scale_a", scales[0]), ("scale_b", scales[1])):
            if part is not None:
                yield role, self._of_tensor_memory(wave, _cells(work, part))

    def _of_tensor_memory(self, wave: Wave, index: tuple[Any, ...]) -> SourceBytes:
        """Return ``(..., 4)``: the bytes of cells, by CTA, lane and column."""
        cta, lane, column = index
        memory, here = self.store.memory(tensor_bytes(wave)), byte_places(cta, lane, column)
        return self.seen(*memory.of_bytes(here))

    def shared(self, wave: Wave, cta: int) -> Bytes:
        """Return the bytes of the shared memory of a CTA."""
        memory, base = self.store.memory(wave.memories.shared), cta * wave.memories.shared_stride
        own = slice(base, base + wave.memories.shared_bytes)
        return self.keys.indices(self.store.reader.bits, *memory.of_bytes(own))


def _elements(seen: SourceBytes, size: int) -> SourceBytes:
    """Return ``(rows, elements, bytes)`` of rows of bytes."""
    return seen.arranged((len(seen.bytes), -1, size))


def _cells(work: Multiplication, part: Part) -> tuple[Numbers, ...]:
    """Return the cells of the columns of an operand ``(cells, 1)`` each, in the order of ``cell_numbers``."""
    own = np.array(work.ctas[: part.layout.ctas])
    columns = part.place.column + np.arange(part.layout.width)
    found = np.broadcast_arrays(own[:, None, None], np.arange(LANES), columns[:, None])
    return tuple(each.reshape(-1, 1) for each in found)


def cell_uses(form: Instruction, role: str) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Return cell, byte, line and chunk along k of every field or factor of an operand of words.

    Cells are counted lane by lane, then column by column, then CTA by CTA.
    """
    layout = present(layout_of(form, role), f"a layout of {role}")
    line, chunk = (index.reshape(-1) for index in np.indices(layout.cells.shape[:2]))
    cells = layout.cells.reshape(-1, layout.cells.shape[-1])
    numbers: Numbers = (cells[:, CTA] * layout.width + cells[:, COLUMN]) * LANES + cells[:, LANE]
    return numbers, layout.cells[..., BIT].reshape(-1) // 8, line, chunk
