"""wmma on keys: loads, stores and products of fragments, by the places that wmma_fragments.py gives bytes.

Where a byte goes is asked of the fragment itself, with the numbers of bytes in place of content.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...isa.formats import FORMATS
from ...isa.warps import WARP
from ...machine.opcodes.matrix.wmma import Stored
from ...machine.opcodes.matrix.wmma_fragments import SHAPES, Fragment
from ...machine.state.lanes import Lanes
from .key_store import KeyStore, Turn
from .keys.finite_fields import Keys, add, matmul
from .keys.key_bits import complement
from .keys.key_cells import Cells
from .provenance import Product
from .rules.keyed_statements import Statement, element_of

Index = npt.NDArray[np.intp]


class Placed(NamedTuple):
    """A fragment of an operand, and how it lies in memory, ``turned`` where lines there are its columns."""

    fragment: Fragment
    stored: Stored
    turned: bool
    registers: int

    def in_registers(self) -> Index:
        """Return ``(registers, 32, bytes)``: which byte of the lines in memory each byte of registers is."""
        shape = 1, self.stored.lines, self.stored.line_bytes
        fragment, numbers = self.fragment, np.arange(shape[1] * shape[2]).reshape(shape)
        found = _through(
            numbers, lambda plane: fragment.words_of(fragment.turned(plane, self.turned), self.registers)
        )
        return np.asarray(found[0].swapaxes(0, 1))

    def in_lines(self) -> Index:
        """Return ``(bytes of all lines,)``: which byte of the registers, lane by lane, each byte in memory
        is.
        """
        fragment, width = self.fragment, self.registers * self.fragment.word.itemsize
        found = _through(
            np.arange(WARP * width).reshape(1, WARP, width),
            lambda plane: fragment.turned(fragment.bytes_of(plane.view(fragment.word)), self.turned),
        )
        return found.reshape(-1)


def _through(numbers: Index, move: Any) -> Index:
    """Return numbers after a function that moves bytes, in two planes of a byte each."""
    planes = [np.ascontiguousarray(numbers >> shift & 255).astype(np.uint8) for shift in (0, 8)]
    low, high = (np.ascontiguousarray(move(plane)) for plane in planes)
    shape = (*low.shape, low.dtype.itemsize) if low.dtype.itemsize > 1 else low.shape
    found: Index = low.view(np.uint8).reshape(shape).astype(np.intp)
    return found | high.view(np.uint8).reshape(shape).astype(np.intp) << 8


@lru_cache(maxsize=256)
def placed(role: str, shape: str, kind: str, layout: str, target: str) -> Placed:
    """Return a fragment and how it lies in memory."""
    fragment = Fragment.of(role, shape, kind, target)
    turned = layout != ("col" if role == "b" else "row")
    lines, length = (fragment.length, fragment.lines) if turned else (fragment.lines, fragment.length)
    stored = Stored(lines, length * fragment.bits // 8, fragment.bits)
    return Placed(fragment, stored, turned, fragment.registers(role))


def operands_of(statement: Statement, target: str) -> list[Placed]:
    """Return the fragments of D, A, B and C of wmma.mma."""
    words = [word for word in statement.modifiers if word != "satfinite"]
    shape = next(word for word in words if word in SHAPES)
    kinds = [word for word in words[words.index(shape) + 1 :] if word in FORMATS]
    if len(kinds) != 4:
        kinds = [kinds[0], "f16", "f16", kinds[1]]
    layouts = ("row", "row", "col", "row")
    return [
        placed(role, shape, kind, layout, target)
        for role, kind, layout in zip("dabc", kinds, layouts, strict=True)
    ]


_C = 3  # the operand of C


class Fragments:
    """The statements of wmma, for an observer of a module for a target."""

    def __init__(self, store: KeyStore) -> None:
        self.store = store
        self._addend = dict[int, Any]()  # registers of C before D takes their place

    def begin(self, turn: Turn) -> None:
        """Keep the bits of C: D may be in the same registers."""
        if turn.statement.modifiers[0] == "mma":
            numbers = turn.statement.numbers(_C)
            bits = {number: turn.frame.values[number] for number in numbers if number >= 0}
            self._addend = {number: None if own is None else own.copy() for number, own in bits.items()}

    def executed(self, turn: Turn, lanes: Lanes) -> None:
        """Move or multiply keys as a statement has done with values."""
        words = turn.statement.modifiers
        shape = next(word for word in words if word in SHAPES)
        if words[0] == "mma":
            self._multiplied(turn, lanes)
            return
        layout = next(word for word in words if word in ("row", "col"))
        held = placed(words[1], shape, words[-1], layout, self.store.target)
        (self._loaded if words[0] == "load" else self._stored)(turn, lanes, held)

    def _offsets(self, turn: Turn, lanes: Lanes, chunk: int) -> Index:
        """Return ``(warps, chunks)``: where the lanes of each access of a warp move so many bytes."""
        found = np.zeros((turn.wave.lanes // WARP, len(self.store.accesses), WARP), np.int64)
        for number, access in enumerate(self.store.accesses):
            assert access.size == chunk
            warp, lane = np.divmod(access.lanes.index, WARP)
            found[warp, number, lane] = access.offsets
        return found[lanes.warps].reshape(len(lanes.warps), -1)

    def _loaded(self, turn: Turn, lanes: Lanes, held: Placed) -> None:
        offsets, memory = self._offsets(turn, lanes, held.stored.chunk), self.store.accesses[0].memory
        cells = self.store.read(turn.wave, turn.statement.pc, memory, offsets.reshape(-1), held.stored.chunk)
        self.store.rearrange(turn, lanes, cells, held.in_registers())

    def _lines(self, turn: Turn, lanes: Lanes, index: int, held: Placed, size: int) -> Cells | None:
        """Return the bytes of an operand in the order of memory, in words of ``size`` bytes."""
        if self.store.registers(turn.frame).keys().isdisjoint(turn.statement.numbers(index)):
            return None
        whole = self.store.joined(turn, index)
        chosen = (lanes.warps[:, None] * WARP + np.arange(WARP)).reshape(-1)
        return whole.of_lanes(chosen).rearranged(len(lanes.warps), held.in_lines().reshape(-1, size))

    def _stored(self, turn: Turn, lanes: Lanes, held: Placed) -> None:
        chunk, pc, memory = held.stored.chunk, turn.statement.pc, self.store.accesses[0].memory
        cells = self._lines(turn, lanes, 1, held, chunk)
        count = held.stored.lines * held.stored.line_bytes // chunk
        offsets = self._offsets(turn, lanes, chunk)[:, :count].reshape(-1)
        threads = (lanes.warps[:, None] * WARP + np.arange(count) % WARP).reshape(-1)
        self.store.write(turn.wave, pc, memory, (offsets, chunk), cells, threads)

    # --- products ---

    def _multiplied(self, turn: Turn, lanes: Lanes) -> None:
        given = operands_of(turn.statement, self.store.target)
        left, right, more = (self._matrix(turn, lanes, i, held) for i, held in enumerate(given[1:], 1))
        right = right.swapaxes(1, 2)
        if "xor" in turn.statement.modifiers:
            left, right = exclusive(left, right)
        result = add(matmul(left, right), more)
        if self.store.provenance is not None:
            self.store.provenance.order.append(Product(turn.statement.pc, left, right, more, result))
        d = given[0]
        cells = Cells.of(result.reshape(-1), element_of(d.fragment.kind).kind, d.fragment.bits // 8)
        self.store.rearrange(turn, lanes, cells, d.in_registers())

    def _matrix(self, turn: Turn, lanes: Lanes, index: int, held: Placed) -> Keys:
        fragment, size = held.fragment, held.fragment.word.itemsize
        held_by = self._addend if index == _C else turn.frame.values
        values = [held_by[number] if number >= 0 else None for number in turn.statement.numbers(index)]
        zero = np.zeros(turn.wave.lanes, fragment.word)
        full = [zero if each is None else np.broadcast_to(each, zero.shape) for each in values]
        words = np.stack(full, axis=-1).reshape(-1, WARP, len(full))[lanes.warps].astype(fragment.word)
        content = np.ascontiguousarray(words).view(np.uint8).reshape(len(words), -1)[:, held.in_lines()]
        bits = np.ascontiguousarray(content).view(fragment.word).reshape(-1)
        cells = self._lines(turn, lanes, index, held, size)
        found = self.store.reader.elements(cells, bits, FORMATS[fragment.kind], 8 * size // fragment.bits)
        return np.ascontiguousarray(found.T).reshape(len(words), fragment.lines, fragment.length)


def exclusive(a: Keys, b: Keys) -> tuple[Keys, Keys]:
    """Return the factors of sums of ``a xor b`` of bits: a (1 - b) + (1 - a) b."""
    return np.concatenate([a, complement(a)], axis=-1), np.concatenate([complement(b), b], axis=-2)
