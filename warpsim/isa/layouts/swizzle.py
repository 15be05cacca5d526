"""Swizzles of shared memory: the exclusive-or that a mode applies to address bits.

wgmma has four of them; tensor copies have those and more, which move larger atoms or swap halves of an atom.
Does not know matrices, descriptors (see descriptors), boxes (see tensor_box.py) or memories.
"""

from __future__ import annotations

from typing import Literal

from ..memory import Addresses

Swizzle = Literal["none", "32B", "64B", "128B"]

SWIZZLE_BYTES: dict[Swizzle, int] = {"none": 16, "32B": 32, "64B": 64, "128B": 128}


def pattern_bytes(swizzle: Swizzle) -> int:
    """Return the bytes after which a swizzle mode repeats: 1024, 512, 256; 16 without swizzle."""
    return 16 if swizzle == "none" else 8 * SWIZZLE_BYTES[swizzle]


def swizzled(addresses: Addresses, swizzle: Swizzle) -> Addresses:
    """Return the address where a swizzle mode puts the byte of each unswizzled address; its own inverse.

    Bits 6:4 are exclusive-ored with bits 9:7, of which 32B uses the lowest, 64B two and 128B all three.
    PTX ISA 9.1, section 9.7.15.5.1.2.1.3 "Canonical layouts": Swizzle<0..3, 4, 3> of CuTe, in bytes.
    """
    mask = SWIZZLE_BYTES[swizzle] // 16 - 1
    moved: Addresses = addresses ^ ((addresses >> 7) & mask) << 4
    return moved


TensorSwizzle = Literal[
    "none", "32B", "64B", "128B", "96B", "128B_ATOM_32B", "128B_ATOM_32B_FLIP_8B", "128B_ATOM_64B"
]
_MOVES: dict[str, tuple[tuple[int, int, int], ...]] = {  # (lowest bit changed, bits, lowest bit taken)
    "none": (),
    "32B": ((4, 1, 7),),
    "64B": ((4, 2, 7),),
    "96B": ((4, 1, 7),),
    "128B": ((4, 3, 7),),
    "128B_ATOM_32B": ((5, 2, 7),),
    "128B_ATOM_32B_FLIP_8B": ((5, 2, 7), (3, 1, 7)),
    "128B_ATOM_64B": ((6, 1, 7),),
}


def swizzle_moves(swizzle: TensorSwizzle) -> tuple[tuple[int, int, int], ...]:
    """Return what a mode changes, in order: the lowest bit changed, how many bits, the lowest bit taken."""
    return _MOVES[swizzle]


def tensor_swizzled(addresses: Addresses, swizzle: TensorSwizzle) -> Addresses:
    """Return the shared address to which a tensor copy moves each unswizzled byte; its own inverse.

    PTX ISA 9.1, section 5.5.7 "Swizzling Modes", whose tables show 16-byte cells of lines of 128 bytes.
    Inferred: that FLIP_8B swaps in odd lines; that rows shorter than the span follow each other closely.
    """
    moved: Addresses = addresses
    for to, bits, taken in _MOVES[swizzle]:
        moved = moved ^ ((addresses >> taken) & ((1 << bits) - 1)) << to
    return moved
