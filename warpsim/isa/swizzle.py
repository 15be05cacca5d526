"""Swizzles of shared memory: the exclusive-or that a mode applies to address bits.

Does not know matrices, descriptors (see descriptor.py) or memories.
"""

from __future__ import annotations

from typing import Literal

from .memory import Addresses

Swizzle = Literal["none", "32B", "64B", "128B"]

SWIZZLE_BYTES: dict[Swizzle, int] = {"none": 16, "32B": 32, "64B": 64, "128B": 128}


def pattern_bytes(swizzle: Swizzle) -> int:
    """Bytes after which a swizzle mode repeats: 1024, 512, 256; 16 without swizzle, which has no pattern."""
    return 16 if swizzle == "none" else 8 * SWIZZLE_BYTES[swizzle]


def swizzled(addresses: Addresses, swizzle: Swizzle) -> Addresses:
    """The address where a swizzle mode puts the byte of each unswizzled address; its own inverse.

    Bits 6:4 are exclusive-ored with bits 9:7, of which 32B uses the lowest, 64B two and 128B all three.
    PTX ISA 9.1, section 9.7.15.5.1.2.1.3 "Canonical layouts": Swizzle<0..3, 4, 3> of CuTe, in bytes.
    """
    mask = SWIZZLE_BYTES[swizzle] // 16 - 1
    moved: Addresses = addresses ^ ((addresses >> 7) & mask) << 4
    return moved
