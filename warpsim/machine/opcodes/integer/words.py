"""Lanes seen as other numbers: signed, wider, by halves.

Knows widths only; what is computed with them is the work of the groups. Everything here keeps the shape, ()
included. Sums and differences are spelled ``np.add`` and ``np.subtract`` throughout the groups: the operators
warn of an overflow when all operands have shape ().
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...bind.value_types import bits_of
from ..operation import Values

UNSIGNED = {bits: np.dtype(f"u{bits // 8}") for bits in (8, 16, 32, 64)}
SIGNED = {bits: np.dtype(f"i{bits // 8}") for bits in (8, 16, 32, 64)}


def is_signed(type_name: str) -> bool:
    """Return whether a PTX type is s8 to s64, or a vector of such."""
    return type_name.startswith("s")


def number_dtype(type_name: str) -> np.dtype[Any]:
    """Return the dtype whose numbers are those of an integer type: int32 for s32, uint32 for u32 and b32."""
    return (SIGNED if is_signed(type_name) else UNSIGNED)[bits_of(type_name)]


def wide_dtype(type_name: str) -> np.dtype[Any]:
    """Return int64 for signed types, uint64 for others: holds products of 32 bits."""
    return (SIGNED if is_signed(type_name) else UNSIGNED)[64]


def signed(values: Values) -> Values:
    """Return the same bits as two's complement numbers."""
    return values.view(SIGNED[values.dtype.itemsize * 8])


def unsigned(values: Values) -> Values:
    """Return the same bits as unsigned numbers."""
    return values.view(UNSIGNED[values.dtype.itemsize * 8])


def halves(values: Values) -> tuple[Values, Values]:
    """Low and high uint16 of uint32 lanes."""
    return (values & 0xFFFF).astype(np.uint16), (values >> 16).astype(np.uint16)


def packed(low: Values, high: Values) -> Values:
    """Return uint32 lanes of two uint16 halves."""
    return low.astype(np.uint32) | (high.astype(np.uint32) << 16)
