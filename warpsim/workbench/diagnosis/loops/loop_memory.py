"""Tiles of a wgmma in shared memory, step by step along k: what a kernel reads whose descriptors are wrong.

Knows layouts of kernels: rows of 128 bytes of k, K-major and swizzled, and less usual layouts; the steps
of a stage advance the start address along the row. Given matrices alone, mistakes are tried on each layout.
Does not know what the tiles are multiplied with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ....isa.codes import codes_of, matrix_of
from ....isa.descriptors.matrix_descriptor import Major
from ....isa.descriptors.packed_tiles import canonical_bytes, canonical_descriptor, canonical_image
from ....isa.descriptors.tile_shape import TileShape
from ....isa.formats import Format
from ....isa.layouts.swizzle import Swizzle
from ....isa.products import Codes
from ....sums.products.gemm import gemm
from ..descriptors.described_tiles import codes_at, view_addresses
from ..descriptors.descriptor_views import UNIT, DescriptorView, differences, rewrites
from ..dumps.dump_comparison import numbers
from ..library.mistake import Mistake
from ..library.setting import Registers
from ..solving.product_loops import Loop, Matrix, View
from .loop_mistakes import Candidate, Change, Tiles, WithinSteps

Addresses = npt.NDArray[np.int64]
_ROW = 128  # bytes of k in a row of a tile
_LAYOUTS: tuple[tuple[Major, Swizzle], ...] = (
    ("K", "128B"),
    ("K", "64B"),
    ("K", "32B"),
    ("K", "none"),
    ("MN", "128B"),
)


@dataclass(frozen=True, kw_only=True)
class Tile:
    """Where one operand lies: ``mn x k`` of an instruction in a block whose descriptor advances by steps."""

    operand: str
    element: Format
    mn: int
    k: int
    major: Major
    swizzle: Swizzle

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return self.element.bits // 8

    @property
    def block(self) -> int:
        """Elements along k of a block."""
        return max(_ROW // self.size, self.k)

    @property
    def phases(self) -> int:
        """Steps of a block."""
        return self.block // self.k

    def view(self, phase: int) -> DescriptorView:
        """Return the right descriptor of a step of a block."""
        whole = replace(self.shape, k=self.block)
        right = canonical_descriptor(0, whole, swizzle=self.swizzle, first_k=phase * self.k)
        return DescriptorView.of(right, self.major)

    @property
    def shape(self) -> TileShape:
        """The shape of what one instruction reads."""
        return TileShape(mn=self.mn, k=self.k, element_bits=self.element.bits, major=self.major)

    def addresses(self, view: DescriptorView) -> Addresses | None:
        """Return ``(mn, k)``: the bytes that a descriptor reads, None outside of the memory."""
        whole = replace(self.shape, k=self.block)
        return view_addresses(view, self.shape, 2 * canonical_bytes(whole, swizzle=self.swizzle))

    def image(self, codes: Any) -> Any:
        """Return ``(..., bytes)`` of blocks ``(..., mn, block)``, and as much again that is zero."""
        memory = canonical_image(codes, major=self.major, swizzle=self.swizzle)
        return np.concatenate([memory, np.zeros_like(memory)], axis=-1)


# --- mistakes: the descriptor of a phase that was meant -> what was read ---------------------------------

Read = Callable[[int], DescriptorView]  # phase -> view


def _mistakes(tile: Tile) -> Iterator[tuple[str, Read]]:
    """Yield what may be wrong with all descriptors of a tile, and start addresses at other distances."""
    last = tile.view(tile.phases - 1)
    for rewrite in rewrites(last):
        changed = rewrite.change(last)
        if changed != last and changed.start_address == last.start_address:
            phrase = "; ".join(differences(changed, last, size=tile.size))
            yield phrase, lambda phase, change=rewrite.change: change(tile.view(phase))  # type: ignore[misc]
    right = tile.view(1).start_address - tile.view(0).start_address if tile.phases > 1 else 0
    for by in (0, *(UNIT << bit for bit in range(8))) if right else ():
        if by != right:
            what = f"advances by {by} bytes along k" if by else "is not advanced along k"
            yield f"the start address {what}, not by {right}", _advanced(tile, by)


def _advanced(tile: Tile, by: int) -> Read:
    first = tile.view(0)
    return lambda phase: replace(first, start_address=first.start_address + by * phase)


# --- candidates ----------------------------------------------------------------------------------------


class Memory:
    """The tiles of a loop in shared memory, judged on one view."""

    def __init__(self, loop: Loop, view: View) -> None:
        self.loop, self.view = loop, view

    def candidates(self, within: WithinSteps) -> Iterator[Candidate]:
        """Yield every mistake on every layout, those that read the same once."""
        seen: set[bytes] = set()
        for major, swizzle in _LAYOUTS:
            for operand in "ab":
                tile = self._tile(operand, major, swizzle)
                if tile is None:
                    continue
                for phrase, read in _mistakes(tile):
                    change = self._change(tile, read)
                    if change is None or (key := self._key(operand, change)) in seen:
                        continue
                    seen.add(key)
                    mistake = Mistake(
                        name=f"{operand.upper()} descriptor: {phrase}",
                        advice=f"the tile lies {major}-major, swizzle {swizzle}",
                        operands=(operand,),
                    )
                    yield from within.made(mistake, change)

    def _tile(self, operand: str, major: Major, swizzle: Swizzle) -> Tile | None:
        """Return the operand's, where it can lie like that."""
        element = self.loop.form.format(operand)
        mn, k = self.loop.registers[operand].shape[-2:]
        if element.bits < 8 or (major == "MN" and element.bits != 16):
            return None
        return Tile(operand=operand, element=element, mn=mn, k=k, major=major, swizzle=swizzle)

    def _key(self, operand: str, change: Change) -> bytes:
        registers = {operand: self.loop.registers[operand][:, self.view.tile]}
        read = change(registers, range(self.loop.steps), self.view.tile)[operand]
        return operand.encode() + np.ascontiguousarray(read).tobytes()

    def _change(self, tile: Tile, read: Read) -> Change | None:
        """Return what every step reads; None where that leaves the memory or is no descriptor."""
        addresses = list[Addresses]()
        for phase in range(tile.phases):
            found = tile.addresses(read(phase))
            if found is None:
                return None
            addresses.append(found)

        def change(registers: Registers, steps: Sequence[int], tiles: Tiles) -> Registers:
            memory = tile.image(self._blocks(tile, steps, tiles))
            parts = [
                codes_at(addresses[at % tile.phases], tile.element, memory[i]) for i, at in enumerate(steps)
            ]
            return {tile.operand: np.stack(parts)}

        return change

    def _blocks(self, tile: Tile, steps: Sequence[int], tiles: Tiles) -> Any:
        """Return ``(steps, ..., mn, block)``: the block of each step; past the last step zero."""
        held = self.loop.registers[tile.operand][:, tiles]
        first = np.asarray(steps)[:, None] // tile.phases * tile.phases + np.arange(tile.phases)
        inside = (first < len(held)).reshape(*first.shape, *(1,) * (held.ndim - 1))
        parts = np.where(inside, held[np.minimum(first, len(held) - 1)], held.dtype.type(0))
        # (steps, phases, ..., mn, k) -> (steps, ..., mn, phases * k)
        parts = np.moveaxis(parts, 1, -2)
        return np.ascontiguousarray(parts.reshape(*parts.shape[:-2], -1))


Values = npt.NDArray[Any]
Cuts = list[tuple[slice, slice]]
_TAIL_ADVICE = "k is no multiple of the instruction's: what lies beyond it must be zero in A or in B"
_STAGES = (1, 2, 3, 4)  # of a pipeline, whose buffers still hold earlier steps
_MOST = 64  # tiles that follow each other
_KEPT_ADVICE = "clear the accumulators before each tile: they still hold the sums of the tile before"


# --- a k that is no multiple of the instruction's ---------------------------------------------------


def tails(loop: Loop, view: View) -> Iterator[Candidate]:
    """Yield what the last step may have read beyond k; nothing where k is a multiple, or of scaled forms."""
    form, given = loop.form, loop.given
    if not loop.tail or form.scale is not None or form.sparse:
        return
    a, b = (
        np.ascontiguousarray(matrix_of(codes_of(M, element, "A or B"), element))
        for M, element in ((given.A, form.a), (given.B, form.b))
    )
    k, wide = a.shape[1], loop.steps * form.shape.k
    lines = np.ascontiguousarray(b.T)
    for what_a, rest_a in _beyond(a, wide, form.shape.k):
        for what_b, rest_b in _beyond(lines, wide, form.shape.k):
            name = f"the tail, k from {k} on, is not zero: A has {what_a} there, and B has {what_b}"
            A, B = np.concatenate([a, rest_a], axis=1), np.concatenate([b, rest_b.T], axis=0)
            yield _tail_candidate(loop, view, name, (A, B), k)


def _beyond(lines: Values, wide: int, step: int) -> Iterator[tuple[str, Values]]:
    """Yield what stands beyond the end of every row ``(rows, k)``."""
    rows, k = lines.shape
    memory = np.concatenate([lines.reshape(-1), np.zeros(wide, lines.dtype)])
    yield "the beginning of the next row", memory[np.arange(rows)[:, None] * k + np.arange(k, wide)]
    for stages in _STAGES:
        first = k - stages * step
        if first >= 0:
            before = f"{stages} step{'s'[: stages != 1]} before"
            yield f"what the buffer held {before}", lines[:, first : first + wide - k]


def _tail_candidate(loop: Loop, view: View, name: str, read: tuple[Values, Values], k: int) -> Candidate:
    A, B = (np.ascontiguousarray(each) for each in read)

    def run() -> Codes:
        return loop.tiles_of(codes_of(gemm(loop.form, A, B, loop.given.C), loop.form.d, "D"))

    with np.errstate(all="ignore"):
        more = A[:, k:].astype(np.float64) @ B[k:].astype(np.float64)
    m, n = loop.rows * loop.form.shape.m, loop.columns * loop.form.shape.n
    padded = np.pad(more, [(0, m - more.shape[0]), (0, n - more.shape[1])])
    change = view.part.of_result(loop.tiles_of(padded)[view.tile])
    return Candidate(name=name, advice=_TAIL_ADVICE, change=change, exact=run, whole=True)


# --- accumulators that are taken from one tile of D to the next -------------------------------------


def kept_accumulators(loop: Loop, view: View) -> Iterator[Candidate]:
    """Yield every order and size of tiles; none of scaled forms."""
    if loop.form.scale is not None:
        return
    (m, n), shape = loop.shape, loop.form.shape
    a, b = (numbers(codes, element) for codes, element in ((loop.a, loop.form.a), (loop.b, loop.form.b)))
    with np.errstate(all="ignore"):
        products = (a @ b)[:m, :n]
    for height in _sizes(m, shape.m):
        for width in _sizes(n, shape.n):
            for down, order in ((False, "row after row"), (True, "column after column")):
                tiles = _tiles((m, n), (height, width), down)
                alone = down and (height >= m or width >= n)  # the same order twice
                if 1 < len(tiles) <= _MOST and not alone:
                    name = f"accumulators are not cleared between tiles of {height} x {width}, {order}"
                    yield _kept_candidate(loop, view, name, tiles, products)


def _sizes(total: int, step: int) -> list[int]:
    """Return the multiples of a tile of the instruction, doubled each time, and the whole."""
    found = [step << bit for bit in range(8) if step << bit < total]
    return [*found, -(-total // step) * step]


def _tiles(total: tuple[int, int], size: tuple[int, int], down: bool) -> Cuts:
    rows, columns = (
        [slice(at, at + by) for at in range(0, most, by)] for most, by in zip(total, size, strict=True)
    )
    if down:
        return [(row, column) for column in columns for row in rows]
    return [(row, column) for row in rows for column in columns]


def _kept_candidate(loop: Loop, view: View, name: str, tiles: Cuts, products: Matrix) -> Candidate:
    change = np.zeros(products.shape)
    before: npt.NDArray[np.float64] = np.zeros((0, 0))
    for row, column in tiles:
        here = products[row, column]
        kept = np.zeros(here.shape)
        height, width = (min(x, y) for x, y in zip(before.shape, here.shape, strict=True))
        kept[:height, :width] = before[:height, :width]
        change[row, column] = kept
        with np.errstate(all="ignore"):
            before = kept + here
    padded = np.zeros((len(loop.a), loop.b.shape[1]))
    padded[: loop.shape[0], : loop.shape[1]] = change
    part = view.part.of_result(loop.tiles_of(padded)[view.tile])
    return Candidate(
        name=name, advice=_KEPT_ADVICE, change=part, exact=lambda: _chained(loop, tiles), whole=True
    )


def _chained(loop: Loop, tiles: Cuts) -> Codes:
    """Return D: each tile's sums begin with those of the tile before, and C is added in the end."""
    form, given = loop.form, loop.given
    D = np.zeros(loop.shape, form.d.dtype)
    before: npt.NDArray[Any] = np.zeros((0, 0), form.c.dtype)
    for row, column in tiles:
        kept = np.zeros(D[row, column].shape, form.c.dtype)
        height, width = (min(x, y) for x, y in zip(before.shape, kept.shape, strict=True))
        kept[:height, :width] = before[:height, :width]
        A, B = np.asarray(given.A)[row], np.ascontiguousarray(np.asarray(given.B)[:, column])
        before = np.asarray(gemm(form, A, B, kept)).astype(form.c.dtype)
        D[row, column] = before
    if given.C is not None:
        C = matrix_of(codes_of(given.C, form.c, "C"), form.c)
        D = np.asarray(D + C, form.d.dtype) if C.any() else D
    return loop.tiles_of(codes_of(D, form.d, "D"))
