"""Operands of a warpgroup in shared memory: reading their tiles, and the mistakes of descriptors.

Knows where a descriptor finds the elements of A and B, and what else could have been read there. Does not
know what a tile is multiplied with.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.errors import present
from ....isa.descriptors.matrix_descriptor import Descriptor
from ....isa.descriptors.tile_addresses import tile_addresses
from ....isa.descriptors.tile_shape import TileShape
from ....isa.formats import Format
from ....isa.memory import Bytes, element_view
from .descriptor_mistakes import Misreading, misreadings
from .setting import Index, Setting

Codes = npt.NDArray[Any]  # (..., mn, k): of A, or of B transposed


def _shape(setting: Setting, operand: str) -> TileShape:
    tile = setting.instruction.in_shared_memory(operand)
    return tile.shape(transposed=present(setting.tiles, "tiles").transposed[tile.side])


def read_tile(setting: Setting, operand: str, memory: Bytes) -> Codes:
    """Return codes ``(..., mn, k)`` of A or B as its descriptor finds them in memories ``(..., bytes)``."""
    descriptor, shape = _descriptor(setting, operand), _shape(setting, operand)
    addresses = tile_addresses(descriptor, shape, memory_bytes=memory.shape[-1], literal=True)
    return codes_at(addresses, setting.instruction.format(operand), memory)


def codes_at(addresses: Index, element: Format, memory: Bytes) -> Codes:
    """Return the codes at byte addresses; eight 1-bit elements are a byte, the first in its lowest bit."""
    size = max(element.bits, 8) // 8
    words: Codes = element_view(memory, size)[..., addresses // size]
    return words if element.bits >= 8 else np.unpackbits(words, axis=-1, bitorder="little")


def _descriptor(setting: Setting, operand: str) -> Descriptor:
    tiles = present(setting.tiles, "tiles")
    word = tiles.b if operand == "b" else tiles.a
    word = present(word, "word")
    return Descriptor.decode(word)


def misread(setting: Setting, operand: str) -> Iterator[tuple[Misreading, Format]]:
    """Yield every way to read a tile with one mistake in its descriptor, and the format of its elements."""
    tiles = present(setting.tiles, "tiles")
    descriptor, element = _descriptor(setting, operand), setting.instruction.format(operand)
    found = misreadings(descriptor, _shape(setting, operand), tiles.memory_bytes)
    yield from ((reading, element) for reading in found)
