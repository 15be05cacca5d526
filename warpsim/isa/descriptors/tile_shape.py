"""The shape of a tile that a matrix descriptor addresses: extents, width of an element, and major axis.

PTX ISA 9.1, section 9.7.15.5.1.2 "Shared Memory Matrix Layout". Does not know addresses, descriptors or
instructions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.errors import OperandError
from .matrix_descriptor import Major, Tile

_MOST_BYTES = 1 << 18  # start addresses have 14 bits, of 16 bytes each


@dataclass(frozen=True, kw_only=True)
class TileShape:
    """``mn x k`` elements: rows of A (M) or columns of B (N) first, K second, for A and B alike.

    ``element_bits`` is 8, 16 or 32; tiles of 1-bit elements are tiles of bytes, and ``k`` counts bytes.
    Elements that differ by one along ``major`` are neighbours. A shape that no descriptor has can be
    stated, as mistakes have it: ``check`` refuses it.
    """

    mn: int
    k: int
    element_bits: int
    major: Major

    @classmethod
    def of(cls, tile: Tile, major: Major) -> TileShape:
        """Return the shape of tiles ``(..., mn, k)``; raises OperandError for what is no array of tiles."""
        element = element_dtype(tile.dtype)
        if tile.ndim < 2:
            raise OperandError(f"a tile is an array (..., mn, k), not {tile.shape}")
        return cls(mn=tile.shape[-2], k=tile.shape[-1], element_bits=8 * element.itemsize, major=major)

    @property
    def extents(self) -> tuple[int, int]:
        """``mn, k``: the axes of a tile."""
        return self.mn, self.k

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return self.element_bits // 8

    @property
    def code_dtype(self) -> np.dtype[Any]:
        """The unsigned integers that hold the codes of elements."""
        return np.dtype(f"u{self.size}")

    def check(self) -> None:
        """Raise OperandError for a shape that no descriptor has."""
        if self.major not in ("K", "MN"):
            raise OperandError(f"major {self.major!r}: a tile is 'K' or 'MN' major")
        bits = self.element_bits
        if bits == 1:
            raise OperandError("tiles of 1-bit elements are tiles of bytes: element_bits=8, and k in bytes")
        if bits not in (8, 16, 32):
            raise OperandError(f"elements of {bits} bits: wgmma reads elements of 8, 16 or 32 bits")
        if self.major == "MN" and bits != 16:
            raise OperandError(
                f"MN-major tiles have 16-bit elements (f16, bf16), not {bits}-bit elements: "
                f"store the tile K-major"
            )
        unit = 128 // bits if self.major == "K" else 8
        if self.mn < 1 or self.mn % 8 or self.k < 1 or self.k % unit:
            raise OperandError(
                f"{self.major}-major tiles have multiples of 8 x {unit} elements, not {self.mn} x {self.k}"
            )
        if (total := self.mn * self.k * self.size) > _MOST_BYTES:
            raise OperandError(
                f"a tile of {self.mn} x {self.k} elements of {bits} bits has {total:,} bytes, and "
                f"a descriptor addresses {_MOST_BYTES:,}"
            )


def element_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Return the dtype of a tile's elements; raises OperandError where they have not 1, 2 or 4 bytes."""
    element = np.dtype(dtype)
    if element.kind == "b":
        raise OperandError("tiles of 1-bit elements are tiles of bytes: np.packbits(…, bitorder='little')")
    if element.itemsize not in (1, 2, 4):
        raise OperandError(f"elements of dtype {element}: wgmma reads elements of 8, 16 or 32 bits")
    return element
