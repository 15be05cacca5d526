"""wmma on keys: loads, stores and products of fragments, by the places that wmma_fragments.py gives bytes.

Where a byte goes is asked of the fragment itself, with the numbers of bytes in place of content. Elements of
fewer than 8 bits have no keys here.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...isa.warps import WARP
from ...machine.opcodes.matrix.wmma import Stored
from ...machine.opcodes.matrix.wmma_fragments import SHAPES, Fragment
from ...machine.run.wave import Wave
from ...machine.state.lanes import Frame, Lanes
from .key_store import KeyStore
from .keys.finite_fields import Keys, add, matmul
from .keys.key_cells import Cells, cells_of_rows
from .provenance import Product, place_of_wave
from .rules.keyed_statements import Statement, element_of

Index = npt.NDArray[np.intp]
_U, _T = np.uint64, np.uint16


class Placed(NamedTuple):
    """A fragment of an operand, and how it lies in memory, ``turned`` where lines there are its columns."""

    fragment: Fragment
    stored: Stored
    turned: bool
    registers: int

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return self.fragment.bits // 8

    def in_registers(self) -> Index:
        """Return ``(32, registers, bytes)``: which byte of the lines in memory each byte of registers is."""
        total = self.stored.lines * self.stored.line_bytes
        numbers = np.arange(total).reshape(1, self.stored.lines, self.stored.line_bytes)
        found = _through(
            numbers,
            lambda plane: self.fragment.words_of(self.fragment.turned(plane, self.turned), self.registers),
        )
        first: Index = found[0]
        return first

    def in_lines(self) -> Index:
        """Return ``(bytes of all lines,)``: which byte of the registers, lane by lane, each byte in memory
        is.
        """
        width = self.fragment.word.itemsize
        numbers = np.arange(WARP * self.registers * width).reshape(1, WARP, self.registers * width)
        word = self.fragment.word
        found = _through(
            numbers, lambda plane: self.fragment.turned(self.fragment.bytes_of(plane.view(word)), self.turned)
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
def placed(role: str, shape: str, kind: str, layout: str, target: str) -> Placed | None:
    """Return a fragment and how it lies in memory; None for elements of fewer than 8 bits."""
    fragment = Fragment.of(role, shape, kind, target)
    if fragment.bits < 8:
        return None
    turned = layout != ("col" if role == "b" else "row")
    lines, length = (fragment.length, fragment.lines) if turned else (fragment.lines, fragment.length)
    stored = Stored(lines, length * fragment.bits // 8, fragment.bits)
    return Placed(fragment, stored, turned, fragment.registers(role))


def operands_of(statement: Statement, target: str) -> list[Placed | None]:
    """Return the fragments of D, A, B and C of wmma.mma; None for elements of fewer than 8 bits."""
    words = [word for word in statement.modifiers if word != "satfinite"]
    shape = next(word for word in words if word in SHAPES)
    kinds = [word for word in words[words.index(shape) + 1 :] if word not in ("rn", "rz", "rm", "rp")]
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

    def begin(self, frame: Frame, statement: Statement) -> None:
        """Keep the bits of C: D may be in the same registers."""
        if statement.modifiers[0] == "mma":
            bits = {number: frame.values[number] for number in statement.numbers(3) if number >= 0}
            self._addend = {number: None if own is None else own.copy() for number, own in bits.items()}

    def executed(self, wave: Wave, frame: Frame, lanes: Lanes, statement: Statement) -> None:
        """Move or multiply keys as a statement has done with values."""
        words = statement.modifiers
        shape = next(word for word in words if word in SHAPES)
        layouts = [word for word in words if word in ("row", "col")]
        if words[0] == "mma":
            self._multiplied(wave, frame, lanes, statement)
            return
        held = placed(words[1], shape, words[-1], layouts[0], self.store.target)
        if held is None or len(self.store.accesses) != -(
            -held.stored.lines * held.stored.line_bytes // (WARP * held.stored.chunk)
        ):
            self._without_law(wave, frame, lanes, statement)
        elif words[0] == "load":
            self._loaded(wave, frame, lanes, statement, held)
        else:
            self._stored(wave, frame, lanes, statement, held)

    def _without_law(self, wave: Wave, frame: Frame, lanes: Lanes, statement: Statement) -> None:
        self.store.uninterpreted["wmma"] += 1
        self.store.forget(wave, frame, lanes, statement.writes)

    def _loaded(self, wave: Wave, frame: Frame, lanes: Lanes, statement: Statement, held: Placed) -> None:
        """Write the registers of a load."""
        chunk, warps = held.stored.chunk, wave.lanes // WARP
        shape = (warps, len(self.store.accesses), WARP, chunk)
        keys, tags = np.zeros(shape, _U), np.zeros(shape, _T)
        for number, access in enumerate(self.store.accesses):
            warp, lane = np.divmod(access.lanes.index, WARP)
            memory = self.store.memory(access.memory)
            keys[warp, number, lane], tags[warp, number, lane] = memory.load(access.offsets, chunk)
            self.store.note_writers(statement.pc, memory.writers_of(access.offsets, chunk))
        places = held.in_registers()
        for register, number in enumerate(statement.numbers(0)):
            here = places[:, register]
            own = keys.reshape(warps, -1)[:, here].reshape(wave.lanes, -1)
            marks = tags.reshape(warps, -1)[:, here].reshape(wave.lanes, -1)
            self.store.put(wave, frame, lanes, number, cells_of_rows(own, marks, statement.pc))

    def _cells(self, wave: Wave, frame: Frame, statement: Statement, index: int, width: int) -> list[Cells]:
        registers = self.store.registers(frame)
        empty = Cells.empty(width, wave.lanes)
        return [registers.get(number) or empty for number in statement.numbers(index)]

    def _stored(self, wave: Wave, frame: Frame, lanes: Lanes, statement: Statement, held: Placed) -> None:
        """Write the cells of a store."""
        cells = self._cells(wave, frame, statement, 1, held.fragment.word.itemsize)
        chunk, places = held.stored.chunk, held.in_lines()
        for number, access in enumerate(self.store.accesses):
            warp, lane = np.divmod(access.lanes.index, WARP)
            first = (number * WARP + lane) * chunk
            here = warp[:, None], places[first[:, None] + np.arange(chunk)]
            size = WARP * len(cells) * cells[0].width
            keys = np.concatenate([each.keys for each in cells]).T.reshape(-1, size)[here]
            tags = np.concatenate([each.tags for each in cells]).T.reshape(-1, size)[here]
            self.store.memory(access.memory).store(access.offsets, chunk, (keys, tags), statement.pc)
            stored = access.offsets, keys, tags
            self.store.stored(wave, statement.pc, stored, access.memory, access.lane_of)

    # --- products ---

    def _multiplied(self, wave: Wave, frame: Frame, lanes: Lanes, statement: Statement) -> None:
        given = operands_of(statement, self.store.target)
        if any(each is None for each in given):
            self._without_law(wave, frame, lanes, statement)
            return
        matrices = [
            self._matrix(wave, frame, statement, index, held)
            for index, held in enumerate(given[1:], 1)
            if held
        ]
        result = add(matmul(matrices[0], matrices[1].swapaxes(1, 2)), matrices[2])
        if self.store.provenance is not None:
            some = lanes.warps
            parts = (matrices[0][some], matrices[1].swapaxes(1, 2)[some], matrices[2][some], result[some])
            self.store.provenance.product(Product(statement.pc, *parts, some, place_of_wave(wave)))
        assert given[0] is not None
        self._written(wave, frame, lanes, statement, (given[0], result))

    def _matrix(self, wave: Wave, frame: Frame, statement: Statement, index: int, held: Placed) -> Keys:
        """Return ``(warps, lines, length)``: the keys of an operand."""
        kind, size, _ = element_of(held.fragment.kind)
        width, warps = held.fragment.word.itemsize, wave.lanes // WARP
        registers, numbers = self.store.registers(frame), statement.numbers(index)
        values = np.empty((wave.lanes, len(numbers), width // size), _U)
        for place, number in enumerate(numbers):
            bits = frame.values[number] if number >= 0 else None
            bits = self._addend.get(number) if index == _C else bits
            bits = np.zeros(wave.lanes, held.fragment.word) if bits is None else bits
            bits = np.broadcast_to(bits, (wave.lanes,))
            for part in range(width // size):
                values[:, place, part] = self.store.reader.read(
                    registers.get(number), bits, kind, size, part * size
                )
        elements = held.in_lines().reshape(-1, size)[:, 0] // size
        found: Keys = values.reshape(warps, -1)[:, elements]
        return found.reshape(warps, held.fragment.lines, held.fragment.length)

    def _written(
        self, wave: Wave, frame: Frame, lanes: Lanes, statement: Statement, made: tuple[Placed, Keys]
    ) -> None:
        """Write the registers of D."""
        held, result = made
        kind, size, _ = element_of(held.fragment.kind)
        elements = held.in_registers()[..., ::size] // size
        for register, number in enumerate(statement.numbers(0)):
            keys = result.reshape(len(result), -1)[:, elements[:, register]].reshape(wave.lanes, -1)
            parts = [Cells.of(np.ascontiguousarray(each), kind, size, statement.pc) for each in keys.T]
            self.store.put(wave, frame, lanes, number, Cells.joined(parts, statement.pc))
