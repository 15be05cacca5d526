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

from ....base.errors import OperandError
from ....isa.descriptors.matrix_descriptor import Descriptor, Major
from ....isa.descriptors.packed_tiles import canonical_descriptor, canonical_image
from ....isa.descriptors.tile_addresses import tile_offsets
from ....isa.descriptors.tile_shape import TileShape
from ....isa.formats import Format
from ....isa.layouts.swizzle import SWIZZLE_BYTES, Swizzle, swizzled
from ..library.setting import Registers
from ..library.tile_mistakes import codes_at
from ..solving.product_loops import Loop, View
from .loop_candidates import Candidate
from .loop_mistakes import Change, Tiles, WithinSteps

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

    def descriptor(self, phase: int) -> Descriptor:
        """Return the right tile."""
        whole = replace(self.shape(), k=self.block)
        return canonical_descriptor(0, whole, swizzle=self.swizzle, first_k=phase * self.k)

    def shape(self, major: Major | None = None) -> TileShape:
        """Return the shape of what one instruction reads, along the tile's own axis or another."""
        bits = self.element.bits
        return TileShape(mn=self.mn, k=self.k, element_bits=bits, major=major or self.major)

    def addresses(
        self, descriptor: Descriptor, major: Major | None = None, *, plain: bool = False
    ) -> Addresses:
        """Return ``(mn, k)``: the bytes that a descriptor reads; ``plain``: nothing is swizzled."""
        offsets = tile_offsets(descriptor, self.shape(major))
        linear: Addresses = descriptor.start_address + offsets
        return linear if plain else swizzled(linear, descriptor.swizzle)

    def image(self, codes: Any) -> Any:
        """Return ``(..., bytes)`` of blocks ``(..., mn, block)``, and as much again that is zero."""
        memory = canonical_image(codes, major=self.major, swizzle=self.swizzle)
        return np.concatenate([memory, np.zeros_like(memory)], axis=-1)


# --- mistakes: the descriptor of a phase that was meant -> what was read ---------------------------------

Read = Callable[[Tile, int], Addresses]


def _mistakes(tile: Tile) -> Iterator[tuple[str, Read]]:
    """Yield what may be wrong with all descriptors of a tile."""
    for mode in SWIZZLE_BYTES:
        if mode != tile.swizzle:
            phrase = f"the swizzle mode is {mode}, but the tile was stored with {tile.swizzle}"
            yield phrase, _with(lambda d, mode=mode: replace(d, swizzle=mode))  # type: ignore[misc]
    yield "the tile was stored without swizzle", lambda t, p: t.addresses(t.descriptor(p), plain=True)
    other: Major = "MN" if tile.major == "K" else "K"
    phrase = f"the tile is read {other}-major, but was stored {tile.major}-major (transpose bit)"
    yield phrase, lambda t, p: t.addresses(t.descriptor(p), other)
    yield "LBO and SBO are exchanged", _with(_crossed)
    for name, short in (("leading_byte_offset", "LBO"), ("stride_byte_offset", "SBO")):
        for factor, text in _FACTORS:
            yield f"{short} {text}", _with(lambda d, n=name, f=factor: _times(d, n, f))  # type: ignore[misc]
    yield from _advances(tile)


_FACTORS = (
    (0.0, "is zero"),
    (0.5, "is half of what it should be"),
    (2.0, "is twice what it should be"),
    (0.0625, "was shifted right by 4 twice"),
    (16.0, "is written in bytes, without >> 4"),
)


def _with(change: Callable[[Descriptor], Descriptor]) -> Read:
    return lambda tile, phase: tile.addresses(change(tile.descriptor(phase)))


def _crossed(descriptor: Descriptor) -> Descriptor:
    return replace(
        descriptor,
        leading_byte_offset=descriptor.stride_byte_offset,
        stride_byte_offset=descriptor.leading_byte_offset,
    )


def _times(descriptor: Descriptor, name: str, factor: float) -> Descriptor:
    values: Any = {name: int(getattr(descriptor, name) * factor) // 16 * 16}
    return replace(descriptor, **values)


def _advances(tile: Tile) -> Iterator[tuple[str, Read]]:
    """Yield the start address of each step of a block at another distance from that of the first."""
    if tile.phases < 2:
        return
    right = tile.descriptor(1).start_address - tile.descriptor(0).start_address
    for by in (0, 16, 32, 64, 128, 256, 512, 1024, 2048):
        if by != right:
            what = f"advances by {by} bytes along k" if by else "is not advanced along k"
            yield f"the start address {what}, not by {right}", _advanced(by)


def _advanced(by: int) -> Read:
    return lambda tile, phase: tile.addresses(tile.descriptor(0).advanced(by * phase))


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
                    name = f"{operand.upper()} descriptor: {phrase}"
                    yield from within.made(name, f"the tile lies {major}-major, swizzle {swizzle}", change)

    def _tile(self, operand: str, major: Major, swizzle: Swizzle) -> Tile | None:
        """Return the operand's, where it can lie like that."""
        element = self.loop.form.format(operand)
        mn, k = self.loop.registers[operand].shape[-2:]
        if element.bits < 8 or (major == "MN" and element.bits != 16):
            return None
        return Tile(operand=operand, element=element, mn=mn, k=k, major=major, swizzle=swizzle)

    def _key(self, operand: str, change: Change) -> bytes:
        """Return what the steps of the view read then."""
        registers = {operand: self.loop.registers[operand][:, self.view.tile]}
        read = change(registers, range(self.loop.steps), self.view.tile)[operand]
        return operand.encode() + np.ascontiguousarray(read).tobytes()

    def _change(self, tile: Tile, read: Read) -> Change | None:
        """Return what every step reads; None where that leaves the memory or is no descriptor."""
        try:
            addresses = [read(tile, phase) for phase in range(tile.phases)]
        except OperandError:
            return None
        size = tile.image(np.zeros((tile.mn, tile.block), tile.element.code_dtype)).size
        if any(
            address.min() < 0 or address.max() >= size or (address % tile.size).any() for address in addresses
        ):
            return None

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
