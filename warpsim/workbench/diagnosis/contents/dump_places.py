"""The places of a register dump: lane, register and slot, where each belongs, and the bits of its index.

Knows layouts; does not know values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from ....isa.fragments import metadata_map
from ....isa.instruction import Instruction
from ....isa.operand_places.placements import ScaleRegisters
from ....isa.products import Codes, Storage
from ....isa.registers import Words, unpacked
from ..solving.atoms import Flags
from ..solving.views import Index, View, lane_views, view, views_of, whole_views

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

    def weights(self, values: Index, known: Flags, *, xor: bool) -> tuple[list[int], Index]:
        """Return what each bit of the index mostly adds to values of known places, and the sum of these."""
        found = []
        for clear, given in self.pairs:
            both = known[clear] & known[given]
            before, after = values[clear[both]], values[given[both]]
            found.append(most_frequent(before ^ after if xor else after - before))
        each = self.index_bits * np.array(found, np.intp)
        return found, np.bitwise_xor.reduce(each, axis=1) if xor else each.sum(axis=1)

    @property
    def is_matrix(self) -> bool:
        """Whether every element of a matrix has one place."""
        return len(self.row) == self.rows * self.columns

    @cached_property
    def views(self) -> tuple[View, ...]:
        """Readings of the places as fields."""
        if self.form is not None and self.is_matrix:
            return views_of(self.form, self.operand)
        slots = ("register", self.register), (_IN_WORDS.get(self.operand, "slot"), self.slot)
        whole = self.views_in((self.rows, self.columns)) if self.is_matrix else ()
        return (*lane_views(self.lane, *slots), *whole)

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
    row, column = np.indices(shape).reshape(2, -1)
    return (view("matrix", ((axes[0], row), (axes[1], column))),)


_LANE_BITS = 5
_NAMED = 8  # registers


def formula(places: Places, row: Index, column: Index, followed: Flags | None = None) -> str:
    """Return ``row = g + 8*i0, column = 2*t + h + 8*i1`` where each is a sum, or an exclusive or, of bits.

    Bits that are the same in all places that ``followed`` are a part of the base. Empty for other maps.
    """
    chosen = np.ones(len(row), np.bool_) if followed is None else followed
    texts = [_of_axis(places, values, chosen) for values in (row, column)]
    if not all(texts):
        return ""
    return ", ".join(f"{name} = {text}" for name, text in zip(places.axes, texts, strict=True))


def _of_axis(places: Places, values: Index, chosen: Flags) -> str:
    for xor in (False, True):
        weights, moved = places.weights(values, chosen, xor=xor)
        base = np.unique((values ^ moved if xor else values - moved)[chosen])
        if len(base) == 1:
            return _terms(places, weights, int(base[0]), " ^ " if xor else " + ")
    return ""


def most_frequent(values: Index) -> int:
    """Return the most frequent value; 0 of none."""
    unique, counts = np.unique(values, return_counts=True)
    return int(unique[counts.argmax()]) if len(unique) else 0


def _terms(places: Places, weights: Sequence[int], base: int, join: str) -> str:
    """Return the sum of the bits of each name: ``4*g`` where all its bits follow, else a term for each bit.

    Lanes that follow no groups of four are written as l, the lane.
    """
    terms = [str(base)] if base else []
    digits = places.digits
    parts: dict[str, list[str]] = {}
    for name in sorted({name for name, _ in digits}, key="wgtih".index):
        own = [(bit, weight) for (other, bit), weight in zip(digits, weights, strict=True) if other == name]
        first = own[0][1]
        if places.is_whole(name) and all(weight == first << bit for bit, weight in own):
            parts[name] = [_times(first, name)] if first else []
        else:
            parts[name] = [_times(weight, f"{name}{bit}") for bit, weight in own if weight]
    lane = [weight for (name, _), weight in zip(digits, weights, strict=True) if name in "tg"]
    by_bits = any(name in "tg" and terms and terms[0][-1].isdigit() for name, terms in parts.items())
    if by_bits and len(lane) == _LANE_BITS and len(runs := _lane_terms(lane)) <= len(parts["g"] + parts["t"]):
        parts["g"], parts["t"] = runs, []
    terms += [term for part in parts.values() for term in part]
    return join.join(terms).replace("+ -", "- ") or "0"


def _lane_terms(weights: Sequence[int]) -> list[str]:
    """Return the terms of runs of bits of the lane, as ``8*(l / 16)`` and ``l % 16``."""
    terms, start = [], 0
    while start < len(weights):
        end = start + 1
        while end < len(weights) and weights[start] and weights[end] == weights[start] << (end - start):
            end += 1
        if weights[start]:
            text = f"l / {1 << start}" if start else "l"
            text += f" % {1 << (end - start)}" if end < len(weights) else ""
            terms.append(_times(weights[start], f"({text})" if " " in text else text))
        start = end
    return terms


def _times(factor: int, name: str) -> str:
    return name if factor == 1 else f"-{name}" if factor == -1 else f"{factor}*{name}"


def several(values: Sequence[int], most: int = 8) -> str:
    """Return ``0 to 3, 8``: numbers with their ranges."""
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    texts = [str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]
    return ", ".join(texts[:most]) + ", …" * (len(texts) > most)


def where_of(places: Places, chosen: Flags, *, by_row: bool = False) -> str:
    """Return which lanes, registers, rows or columns places are, as ``lanes 0 to 12, a0``; empty if they are
    no product of such. ``by_row``: rows and columns go before lanes and registers.
    """
    sides = [
        ("lane", places.lane),
        (places.operand, places.register),
        ("element", places.slot),
        ("row", places.row),
        ("column", places.column),
    ]
    texts: list[tuple[str, Flags]] = []
    for what, values in (*sides[3:], *sides[:3]) if by_row else sides:
        own = np.unique(values[chosen])
        if len(own) < len(np.unique(values)):
            texts.append((_which(what, own.tolist()), np.isin(values, own)))
    for text, flags in texts:
        if (flags == chosen).all():
            return text
    product = np.ones_like(chosen)
    for _, flags in texts:
        product &= flags
    return ", ".join(text for text, _ in texts) if texts and (product == chosen).all() else ""


def _which(what: str, numbers: list[int]) -> str:
    if len(what) == 1:
        return ", ".join(f"{what}{number}" for number in numbers[:_NAMED]) + ", …" * (len(numbers) > _NAMED)
    return f"{what}{'s'[: len(numbers) > 1]} {several(numbers)}"
