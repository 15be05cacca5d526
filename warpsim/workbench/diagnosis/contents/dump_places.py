"""The places of a register dump: lane, register and slot, where each belongs, and the bits of its index.

Knows layouts; does not know values.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from ....isa.fragments import metadata_map
from ....isa.instruction import Instruction
from ....isa.operand_places.placements import ScaleRegisters
from ....isa.products import Codes, Storage
from ....isa.registers import Words, unpacked
from ....isa.warps import WARP
from ..solving.views import Index, View, view, views_of, whole_views

FIELD_BITS = 4  # of metadata, as the manual counts them
SCALE_BITS = 8
_IN_WORDS = {"e": "field", "scale_a": "byte", "scale_b": "byte"}  # operands of one register, and their parts
_AXES = {"e": ("row", "chunk"), "scale_a": ("row", "chunk"), "scale_b": ("chunk", "column")}
_QUAD = 4


@dataclass(frozen=True, kw_only=True)
class Places:
    """``(n,)`` places of an operand's registers: ``lane``, ``register``, ``slot`` of ``bits`` each, and the
    ``row`` and ``column`` of the operand's stored matrix that belong there.
    """

    operand: str
    lane: Index
    register: Index
    slot: Index
    row: Index
    column: Index
    bits: int
    form: Instruction | None = None  # whose layout of an operand it is

    @cached_property
    def rows(self) -> int:
        """Rows of the matrix of one instruction."""
        return int(self.row.max()) + 1

    @cached_property
    def columns(self) -> int:
        """Columns of the matrix of one instruction."""
        return int(self.column.max()) + 1

    @property
    def axes(self) -> tuple[str, str]:
        """Names of rows and columns: of metadata and scales, one axis counts chunks of k."""
        return _AXES.get(self.operand, ("row", "column"))

    @property
    def legend(self) -> str:
        """What the letters of a formula are, of metadata and scales; empty for elements of matrices."""
        part = _IN_WORDS.get(self.operand)
        if part is None:
            return ""
        bits = f"bits {self.bits}*h to {self.bits}*h + {self.bits - 1} of the word"
        return f"g = lane / 4, t = lane % 4, h = {part}, {bits}"

    @cached_property
    def digits(self) -> tuple[tuple[str, int], ...]:
        """Name and number of each bit of an index that varies, lowest first: h (slot), i (register), t, g, w
        (of the lane).
        """
        numbers = {"h": range(8), "i": range(8), "t": range(2), "g": range(3), "w": range(2)}
        every = [(name, bit) for name, bits in numbers.items() for bit in bits]
        return tuple((name, bit) for name, bit in every if np.ptp(self._digit(name) >> bit & 1))

    def is_whole(self, name: str) -> bool:
        """Return whether a name is the sum of its bits that vary: its other bits are zero."""
        varying = sum(1 << bit for other, bit in self.digits if other == name)
        return not (self._digit(name) & ~varying).any()

    def _digit(self, name: str) -> Index:
        lane = {"t": self.lane % _QUAD, "g": self.lane // _QUAD % 8, "w": self.lane // 32}
        return {"h": self.slot, "i": self.register, **lane}[name]

    @cached_property
    def index_bits(self) -> Index:
        """``(n, bits)``: the bits of every place's index, each 0 or 1."""
        return np.stack([self._digit(name) >> bit & 1 for name, bit in self.digits], axis=1)

    @cached_property
    def pairs(self) -> tuple[tuple[Index, Index], ...]:
        """For each bit the places that have it clear, and those that differ from them in it alone."""
        flat = self.index_bits @ (1 << np.arange(len(self.digits)))
        at = np.full(1 << len(self.digits), -1, np.intp)
        at[flat] = np.arange(len(flat))
        found = []
        for bit in range(len(self.digits)):
            first = np.flatnonzero(self.index_bits[:, bit] == 0)
            second = at[flat[first] | 1 << bit]
            found.append((first[second >= 0], second[second >= 0]))
        return tuple(found)

    @property
    def is_matrix(self) -> bool:
        """Whether every element of a matrix has one place."""
        return len(self.row) == self.rows * self.columns

    @cached_property
    def views(self) -> tuple[View, ...]:
        """Readings of the places as fields."""
        if self.form is not None and self.is_matrix:
            return views_of(self.form, self.operand)
        warp, lane = self.lane // WARP, self.lane % WARP
        slots = ("register", self.register), (_IN_WORDS.get(self.operand, "slot"), self.slot)
        registers = view("registers", (("warp", warp), ("lane", lane), *slots))
        groups = ("quad", lane // _QUAD), ("thread", lane % _QUAD)
        quads = view("quads", (("warp", warp), *groups, *slots))
        whole = self.views_in((self.rows, self.columns)) if self.is_matrix else ()
        return (registers, quads, *whole)

    def views_in(self, shape: tuple[int, int]) -> tuple[View, ...]:
        """Return readings of all elements of a larger matrix."""
        if self.form is not None:
            return whole_views(self.form, self.operand, shape)
        return tuple(_matrix_views(shape, self.axes))

    def codes(self, dump: Words, mask: int, register_bits: int, shift: int = 0) -> Codes:
        """Return ``(n,)``: what the places hold; ``shift`` is that of elements in wider containers."""
        if self.operand in _IN_WORDS:
            shifts = (self.slot * self.bits).astype(np.uint32)
            fields: Codes = dump[self.lane, self.register] >> shifts & np.uint32(mask)
            return fields
        found = unpacked(dump, Storage(bits=self.bits, shift=shift), register_bits, mask)
        each = register_bits // self.bits
        return np.asarray(found.reshape(len(dump), -1)[self.lane, self.register * each + self.slot])

    def named(self, at: int) -> str:
        """Return the name of a place, such as ``lane 5, a0, half 1``."""
        parts = {4: "nibble", 8: "byte", 16: "half"}
        slots = int(self.slot.max()) + 1
        slot = f", {parts.get(self.bits, 'element')} {self.slot[at]}" if slots > 1 else ""
        inside = _IN_WORDS.get(self.operand)
        slot = f", {inside} {self.slot[at]}" if inside else slot
        number = "" if inside else str(self.register[at])
        return f"lane {self.lane[at]}, {self.operand}{number}{slot}"


@lru_cache(maxsize=64)
def places_of(form: Instruction, operand: str, selector: int = 0) -> Places:
    """Return the places of operand a, b, c, d, or of the metadata that a selector reads."""
    if operand == "e":
        lane, bit, _, row, chunk = metadata_map(form, selector).T
        order = np.lexsort((chunk, row))
        return Places(
            operand=operand,
            lane=lane[order],
            register=np.zeros_like(lane),
            slot=bit[order] // FIELD_BITS,
            row=row[order],
            column=chunk[order],
            bits=FIELD_BITS,
        )
    layout, storage = form.in_registers(operand).layout, form.storage(operand)
    each = form.register_bits // storage.bits
    row, column = layout.row_index.reshape(-1), layout.column_index.reshape(-1)
    order = np.lexsort((column, row))
    lane, value = (index.reshape(-1)[order] for index in np.indices(layout.row_index.shape))
    return Places(
        operand=operand,
        lane=lane,
        register=value // each,
        slot=value % each,
        row=row[order],
        column=column[order],
        bits=storage.bits,
        form=form,
    )


@lru_cache(maxsize=64)
def scale_places(place: ScaleRegisters, byte_id: int, thread_id: int) -> Places:
    """Return the places of the scales that ids read: a byte for each line and chunk of k."""
    lanes = place.lanes_of(thread_id)
    line, chunk = np.indices((len(lanes), place.chunks)).reshape(2, -1)
    row, column = (line, chunk) if place.side == "a" else (chunk, line)
    order = np.lexsort((column, row))
    return Places(
        operand=place.operand,
        lane=lanes[line][order],
        register=np.zeros_like(line),
        slot=byte_id + chunk[order],
        row=row[order],
        column=column[order],
        bits=SCALE_BITS,
    )


@lru_cache(maxsize=64)
def _matrix_views(shape: tuple[int, int], axes: tuple[str, str]) -> tuple[View, ...]:
    """Return the view of a matrix by its axes."""
    row, column = np.indices(shape).reshape(2, -1)
    return (view("matrix", ((axes[0], row), (axes[1], column))),)
