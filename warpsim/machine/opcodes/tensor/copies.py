"""tcgen05.cp and tcgen05.shift: shared memory to tensor memory, and rows of it by one.

The source is K-major behind a shared-memory descriptor. A pair copies in both CTAs, each from its own shared
memory at the same offset. With decompression a chunk holds 16 elements of 6 or 4 bits, each of which
becomes a byte (inferred: the manual has figures). PTX ISA 9.3, section 9.7.17.9 "tcgen05.cp".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....isa.element_packing import byte_per_element
from ....isa.features import Feature
from ....isa.layouts.tensor_memory import COPIES, LANES, Copy
from ...run.pending import Moved
from ...run.wave import Step, Wave
from ...state.lanes import DivergentPath, Lanes
from ...state.tensor_cells import Block, byte_places
from ..effect import Effect
from ..statement_binder import StatementBinder
from .issue_order import Work, family_of, issue_in_order, notifies, notify
from .source_tiles import Tile, checked_tile
from .tensor_places import (
    TENSOR_MEMORY,
    Place,
    check_columns,
    check_integer,
    check_lane,
    misused,
    tensor_address,
    value_in,
)
from .touched_cells import trimmed

_FORMATS = {"": 0, "b8x16.b6x16_p32": 6, "b8x16.b4x16_p64": 4}  # bits of an element of the source
_SHIFTED, _MOVED = 8, 31  # columns and lanes of a shift, whose shape the manual gives as 31x256b
_DOWN = "inferred: row i takes row i + 1 of the 32 lanes of a warp, and the last row stays"
_WHY = "inferred: where decompression puts elements in their bytes; the manual has figures"


@dataclass(frozen=True, eq=False)
class _Work:
    """One copy: cells of some CTAs, and where in their shared memories the rows lie."""

    copy: Copy
    place: Place
    ctas: tuple[int, ...]
    tile: Tile
    bits: int

    def touched(self) -> tuple[Block, ...]:
        """Return the cells that it writes."""
        written = np.zeros((self.copy.columns, LANES), np.bool_)
        written[:, self.copy.lanes.reshape(-1)] = True
        lanes, width, mask = trimmed(written)
        columns = slice(self.place.column, self.place.column + width)
        return tuple(
            Block(name="the copy", cta=cta, lanes=lanes, columns=columns, mask=mask) for cta in self.ctas
        )

    def run(self, wave: Wave) -> None:
        """Copy the rows of every CTA."""
        memory, lanes = TENSOR_MEMORY.of(wave), self.copy.lanes
        columns = self.place.column + np.arange(self.copy.columns)
        for cta in self.ctas:
            data = self.tile.bytes(wave, cta)
            if self.bits:
                data = byte_per_element(data, self.bits)
            words = np.ascontiguousarray(data).view(np.uint32)
            memory.cells[cta, lanes[:, :, None], columns] = words
            memory.written[cta, lanes[:, :, None], columns] = True

    def moved(self, wave: Wave) -> Moved:
        """Return where each byte comes from and goes; elements that are widened come from no byte alone."""
        stride, columns = wave.memories.shared_stride, self.place.column + np.arange(self.copy.columns)
        source = np.concatenate([(self.tile.addresses + cta * stride).reshape(-1) for cta in self.ctas])
        if self.bits:
            source = np.full_like(source, -1)
        ends = []
        for lanes in self.copy.lanes:
            each = [byte_places(cta, lanes[:, None], columns).reshape(-1) for cta in self.ctas]
            ends.append(("tensor", np.concatenate(each)))
        return Moved(space="shared", source=source, targets=tuple(ends), lossy=bool(self.bits))


def ctas_of(wave: Wave, lane: int, count: int) -> tuple[int, ...]:
    """Return the CTAs of the group of a lane, by their places in the wave: the even rank first."""
    own = int(wave.cta[lane])
    if count == 1:
        return (own,)
    first = own - own % wave.cluster.count + (own % wave.cluster.count & ~1)
    return (first, first + 1)


def check_pair(wave: Wave, path: DivergentPath, lane: int, count: int) -> None:
    """Raise Fault where a pair of CTAs is asked for and the cluster has none."""
    if count == 2 and wave.cluster.count % 2:
        message = f"cta_group::2 needs a cluster with pairs of CTAs, but it has {wave.cluster.count}"
        raise misused(wave, path, lane, message)


def _copy(binder: StatementBinder, *modifiers: str) -> Step:
    binder.count(2)
    shape = next(word for word in modifiers if any(word == name for name, _ in COPIES))
    multicast = next((word for word in modifiers if word.startswith("warpx")), "")
    copy = COPIES[shape, multicast]
    bits = _FORMATS[".".join(word for word in modifiers if word.startswith("b") and "x16" in word)]
    count = 2 if "cta_group::2" in modifiers else 1
    check_integer(binder, binder.operands[1], 1)
    address, descriptor = tensor_address(binder, 0), binder.reader(binder.operands[1], "b64", 1)

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        if bits:
            wave.infer(path.pc, _WHY)
        for lane in lanes.index.tolist():
            check_pair(wave, path, lane, count)
            place = Place.of(value_in(wave, path, address, lane))
            ctas = ctas_of(wave, lane, count)
            check_lane(wave, path, lane, "the address", place.lane, (0,))
            check_columns(wave, path, lane, ctas, ("the copy", place.column, place.column + copy.columns))
            rows = (copy.lanes.shape[1], 4 * copy.columns, 1, "K", 2 * bits or 16)
            tile = checked_tile(wave, path, lane, value_in(wave, path, descriptor, lane), rows)
            work = _Work(copy, place, ctas, tile, bits)
            reads = tile.stretches(wave, ctas)
            if notifies(wave):
                notify(wave, path, lane, family_of(count), ((), work.touched()), in_order=True)
            done = Work(work.run, reads, work.moved)
            issue_in_order(wave, path, (lane, count), "copy to tensor memory", done)

    return step


@dataclass(frozen=True, eq=False)
class _Shift:
    """A shift by one row: 32 bytes of 31 lanes of a warp, each from the lane behind it, in some CTAs."""

    place: Place
    ctas: tuple[int, ...]

    def touched(self) -> tuple[tuple[Block, ...], tuple[Block, ...]]:
        """Return the cells that it reads and those that it writes."""
        columns = slice(self.place.column, self.place.column + _SHIFTED)
        lanes = [slice(self.place.lane + first, self.place.lane + first + _MOVED) for first in (1, 0)]
        reads, writes = (
            tuple(Block(name="the shift", cta=cta, lanes=each, columns=columns) for cta in self.ctas)
            for each in lanes
        )
        return reads, writes

    def moved(self, wave: Wave) -> Moved:
        """Return which byte each byte takes."""
        lanes = self.place.lane + np.arange(_MOVED)[:, None]
        columns = self.place.column + np.arange(_SHIFTED)
        to, of = (
            np.concatenate([byte_places(cta, lanes + down, columns).reshape(-1) for cta in self.ctas])
            for down in (0, 1)
        )
        return Moved(space="tensor", source=of, targets=(("tensor", to),))

    def run(self, wave: Wave) -> None:
        """Move the rows; those that were never written stay so."""
        memory, first = TENSOR_MEMORY.of(wave), self.place.lane
        columns = slice(self.place.column, self.place.column + _SHIFTED)
        for array in (memory.cells, memory.written):
            for cta in self.ctas:
                rows = array[cta, first : first + _MOVED + 1, columns]
                rows[:_MOVED] = rows[1:].copy()


def _shift(binder: StatementBinder, *modifiers: str) -> Step:
    binder.count(1)
    address, count = tensor_address(binder, 0), 2 if "cta_group::2" in modifiers else 1

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        wave.infer(path.pc, _DOWN)
        for lane in lanes.index.tolist():
            check_pair(wave, path, lane, count)
            work = _Shift(Place.of(value_in(wave, path, address, lane)), ctas_of(wave, lane, count))
            check_lane(wave, path, lane, "the address", work.place.lane, (0, 32, 64, 96))
            stretch = ("the shift", work.place.column, work.place.column + _SHIFTED)
            check_columns(wave, path, lane, work.ctas, stretch)
            if notifies(wave):
                notify(wave, path, lane, family_of(count), work.touched(), in_order=True)
            issue_in_order(
                wave, path, (lane, count), "shift of tensor memory", Work(work.run, moved=work.moved)
            )

    return step


def _fits(name: str, group: str, shape: str, multicast: str, *formats: str) -> bool:
    """Return whether a shape has the multicast, and a destination format its source format."""
    return (shape, multicast) in COPIES and bool(formats[0]) is bool(formats[1])


_GROUPS = ("cta_group::1", "cta_group::2")
_SHAPES = tuple(dict.fromkeys(shape for shape, _ in COPIES))
_MULTICASTS = tuple(dict.fromkeys(multicast for _, multicast in COPIES))

ROWS: tuple[Effect, ...] = (
    Effect(
        opcode="tcgen05",
        slots=(("cp",), _GROUPS, _SHAPES, _MULTICASTS, ("", "b8x16"), ("", "b6x16_p32", "b4x16_p64")),
        bind=_copy,
        since=(8, 6),
        feature=Feature.TCGEN05,
        legal=_fits,
    ),
    Effect(
        opcode="tcgen05",
        slots=(("shift",), _GROUPS, ("down",)),
        bind=_shift,
        since=(8, 6),
        feature=Feature.TENSOR_VECTORS,
    ),
)
