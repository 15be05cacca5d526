"""Tightly packed tiles in shared memory, as CuTe lays them out, and the descriptors that address them.

CuTe ``mma_traits_sm90_gmma.hpp``: atoms follow each other along M or N first, then along K.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...base.errors import OperandError
from ..layouts.swizzle import SWIZZLE_BYTES, Swizzle, pattern_bytes
from ..memory import Bytes
from .matrix_descriptor import Descriptor, Major, Tile
from .tile_addresses import store_tile
from .tile_shape import TileShape


def canonical_descriptor(
    start: int, shape: TileShape, *, swizzle: Swizzle, first_mn: int = 0, first_k: int = 0
) -> Descriptor:
    """Return the descriptor of a tightly packed tile at ``start``, as CuTe lays it out.

    Atoms follow each other along M or N first, then along K (``tile_to_shape`` of the Layout_*_Atom);
    a tile that ends inside an atom still takes all of it. ``first_mn, first_k`` is where the part that
    one instruction reads begins. Raises OperandError for a start that is not a multiple of the pattern and
    for a part that begins outside the tile or inside a core matrix.
    """
    packing = _Packing.of(shape, swizzle)
    unit = 128 // shape.element_bits if shape.major == "K" else 8
    if first_mn not in range(0, shape.mn, 8) or first_k not in range(0, shape.k, unit):
        raise OperandError(
            f"a part of a packed {shape.mn} x {shape.k} tile begins at multiples of 8 x {unit} inside it, "
            f"not at ({first_mn}, {first_k})"
        )
    if start % pattern_bytes(swizzle):
        raise OperandError(
            f"start address {start:#x} of a packed tile with swizzle {swizzle} is not a multiple of "
            f"{pattern_bytes(swizzle)} bytes"
        )
    return packing.descriptor(start, first_mn, first_k)


def canonical_bytes(shape: TileShape, *, swizzle: Swizzle) -> int:
    """Return the bytes that a packed tile takes."""
    return _Packing.of(shape, swizzle).bytes


def canonical_image(tile: Tile, *, major: Major, swizzle: Swizzle) -> Bytes:
    """Return ``(..., canonical_bytes)`` uint8: the bytes of packed tiles ``(..., mn, k)``.

    The image is right at every start that is a multiple of the pattern; bytes of partial atoms that no
    element occupies are 0.
    """
    packing = _Packing.of(TileShape.of(tile, major), swizzle)
    image: Bytes = np.zeros((*tile.shape[:-2], packing.bytes), np.uint8)
    for first in range(0, tile.shape[-1], packing.step):
        part = tile[..., first : first + packing.step]
        store_tile(image, packing.descriptor(0, 0, first), part, major=major)
    return image


@dataclass(frozen=True, kw_only=True)
class _Packing:
    """Numbers of one packed tile: elements to an atom, distances between atoms, and K of one descriptor."""

    size: int
    major: Major
    swizzle: Swizzle
    atom_mn: int
    atom_k: int
    along_mn: int
    along_k: int
    step: int
    bytes: int

    @classmethod
    def of(cls, shape: TileShape, swizzle: Swizzle) -> _Packing:
        """Return the packing of a tile; raises OperandError for a shape that no descriptor has."""
        shape.check()
        width, size, major = SWIZZLE_BYTES[swizzle], shape.size, shape.major
        atom = (8, width // size) if major == "K" else (width // size, 8)
        across, along = -(-shape.mn // atom[0]), -(-shape.k // atom[1])
        return cls(
            size=size,
            major=major,
            swizzle=swizzle,
            atom_mn=atom[0],
            atom_k=atom[1],
            along_mn=8 * width,
            along_k=8 * width * across,
            step=atom[1] if major == "K" and swizzle != "none" else shape.k,
            bytes=8 * width * across * along,
        )

    def descriptor(self, start: int, mn: int, k: int) -> Descriptor:
        """Return the descriptor of what begins at element (mn, k)."""
        width = SWIZZLE_BYTES[self.swizzle]
        inside = (width, self.size) if self.major == "K" else (self.size, width)
        skipped = mn % self.atom_mn * inside[0] + mn // self.atom_mn * self.along_mn
        skipped += k % self.atom_k * inside[1] + k // self.atom_k * self.along_k
        leading, stride = self.along_k, self.along_mn
        if self.swizzle != "none":
            leading, stride = (16, self.along_mn) if self.major == "K" else (self.along_mn, self.along_k)
        return Descriptor(
            start_address=start + skipped,
            leading_byte_offset=leading,
            stride_byte_offset=stride,
            swizzle=self.swizzle,
        )
