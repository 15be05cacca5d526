"""Tiles of shared memory behind descriptors: their bytes, looked up once for each descriptor and shape.

A ring of stages passes the same few descriptors again and again. Knows descriptors and the shared memory of
a CTA; does not know what reads a tile. PTX ISA 9.3, section 9.7.17.4 "Matrix descriptors".
"""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np

from ....base.errors import WarpsimError
from ....isa.descriptors.tensor_descriptor import WINDOW, TensorDescriptor, tile_byte_addresses
from ....isa.memory import Addresses
from ...run.events import Ranges, mention_pattern, observers_of
from ...run.pending import Stretches
from ...run.wave import Wave
from ...state.lanes import DivergentPath
from ...state.spaces import Bytes
from .tensor_places import misused

Shape = tuple[int, int, int, str, int]  # rows, bytes of a row, bytes of an element, major, bytes used of 16


class Tile:
    """``addresses (rows, bytes)`` in a CTA's shared memory, not to be written to.

    ``pattern``: what is unusual of where its swizzle pattern lies, and the base offset. Of every 16 bytes
    the first ``used`` are read: packed elements leave gaps behind them.
    """

    def __init__(self, addresses: Addresses, pattern: tuple[str, int] = ("", 0), used: int = 16) -> None:
        self.addresses, self.pattern, self.used = addresses, pattern, used
        self.last = int(addresses.max())

    @cached_property
    def ranges(self) -> Ranges:
        """``(n, 2)``: the first byte of each stretch, and the one behind its last."""
        taken = np.zeros(self.last + 2, np.bool_)
        taken[self.addresses] = True
        taken[np.arange(taken.size) % 16 >= self.used] = False
        edges = np.flatnonzero(np.diff(taken, prepend=np.False_))
        found: Ranges = edges.reshape(-1, 2)
        return found

    def bytes(self, wave: Wave, cta: int) -> Bytes:
        """Return ``(rows, bytes)``: what the memory of a CTA holds there."""
        data: Bytes = wave.memories.shared[self.addresses + cta * wave.memories.shared_stride]
        return data

    def stretches(self, wave: Wave, ctas: tuple[int, ...]) -> tuple[Stretches, ...]:
        """Return its bytes in each CTA, as offsets in the wave's shared memory; nothing where nothing
        observes.
        """
        if not observers_of(wave):
            return ()
        stride = wave.memories.shared_stride
        return tuple(Stretches(space="shared", ranges=self.ranges + cta * stride) for cta in ctas)


@lru_cache(maxsize=1024)
def _tile_behind(word: int, shape: Shape) -> Tile:
    """Return the tile behind a descriptor; raises as TensorDescriptor.decode and tile_byte_addresses do."""
    rows, row_bytes, element_bytes, major, used = shape
    descriptor = TensorDescriptor.decode(word)
    addresses = tile_byte_addresses(
        descriptor,
        rows=rows,
        row_bytes=row_bytes,
        element_bytes=element_bytes,
        major="K" if major == "K" else "MN",
    )
    return Tile(addresses, (descriptor.unusual, descriptor.base_offset), used)


def checked_tile(wave: Wave, path: DivergentPath, lane: int, word: int, shape: Shape) -> Tile:
    """Return the tile behind a descriptor. Errors name the statement and the lane."""
    try:
        tile = _tile_behind(word, shape)
    except WarpsimError as error:
        raise wave.operand_error(error, wave.describe_lane(lane)) from None
    if tile.last >= wave.memories.shared_bytes:
        message = (
            f"the tile behind descriptor {word:#018x} ends at {tile.last:#x}, outside the "
            f"{wave.memories.shared_bytes} bytes of shared memory (the window is {WINDOW + 1} bytes)"
        )
        raise misused(wave, path, lane, message)
    if tile.pattern[0]:
        mention_pattern(wave, path, lane, *tile.pattern)
    return tile
