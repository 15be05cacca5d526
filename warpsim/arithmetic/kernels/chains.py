"""Chains of IEEE operations, all columns of D at a time: float64 fused multiply-adds, and m8n8k4 in software.

Operands are values, and any number of instructions long along k. A NaN stays a NaN to the end of its chain,
where the caller makes it canonical. The loops suit LLVM's vectoriser: four products in a pass, columns
inside.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._jit import Array, kernel
from .hardware import fused

_MAGNITUDE, _INFINITY = 0x7FFFFFFF, 0x7F800000
_LOWEST_NORMAL = 0x38800000  # 2**-14 as float32
_TOO_LARGE = 0x47800000  # 65536: the value that 65520 and more round to
_MAGIC = np.float32(0.75)  # its last place is that of f16's subnormal numbers


@kernel
def fused_chain(a: Array, b: Array, result: Array) -> None:
    """Continue ``result (batch, m, n)`` with ``a (batch, m, k)`` times ``b (batch, k, n)``, all float64.

    k is a multiple of 4; every product is added with one rounding, in the order of k.
    """
    for batch, i in np.ndindex(a.shape[:2]):
        for k in range(0, a.shape[2], 4):
            _add_fused(a[batch, i, k : k + 4], b[batch, k : k + 4], result[batch, i])


@kernel
def quad_chain(a: Array, b: Array, result: Array) -> None:
    """Continue ``result (batch, m, n)`` by SoftwareQuad's f32 steps; all float32, products of f16 exact."""
    for batch, i in np.ndindex(a.shape[:2]):
        for k in range(0, a.shape[2], 4):
            _add_quad(a[batch, i, k : k + 4], b[batch, k : k + 4], result[batch, i])


@kernel
def half_quad_chain(a: Array, b: Array, result: Array) -> None:
    """Compute quad_chain for f16 results, which are held as float32."""
    for batch, i in np.ndindex(a.shape[:2]):
        for k in range(0, a.shape[2], 4):
            _add_half_quad(a[batch, i, k : k + 4], b[batch, k : k + 4], result[batch, i])


@kernel
def _add_fused(a: Array, b: Array, row: Array) -> None:
    """Add four products to every column, in order."""
    x0, x1, x2, x3 = a[0], a[1], a[2], a[3]
    b0, b1, b2, b3 = b[0], b[1], b[2], b[3]
    for j in range(len(row)):
        value = fused(x1, b1[j], fused(x0, b0[j], row[j]))
        row[j] = fused(x3, b3[j], fused(x2, b2[j], value))


@kernel
def _add_quad(a: Array, b: Array, row: Array) -> None:
    """Add four products, summed from +0, to every column."""
    x0, x1, x2, x3 = a[0], a[1], a[2], a[3]
    b0, b1, b2, b3 = b[0], b[1], b[2], b[3]
    for j in range(len(row)):
        chain = (x0 * b0[j] + np.float32(0)) + x1 * b1[j]
        row[j] = row[j] + ((chain + x2 * b2[j]) + x3 * b3[j])


@kernel
def _add_half_quad(a: Array, b: Array, row: Array) -> None:
    """Add two pairs of products to every column, the later pair first, and round to f16."""
    x0, x1, x2, x3 = a[0], a[1], a[2], a[3]
    b0, b1, b2, b3 = b[0], b[1], b[2], b[3]
    for j in range(len(row)):
        late = row[j] + (x2 * b2[j] + x3 * b3[j])
        row[j] = _half(late + (x0 * b0[j] + x1 * b1[j]))


@kernel
def _half(value: Any) -> Any:
    """Return a float32 rounded to f16, to nearest even, as float32."""
    bits = np.int32(np.float32(value).view(np.int32))
    magnitude = np.int32(bits & np.int32(_MAGNITUDE))
    odd = np.int32(np.int32(magnitude >> np.int32(13)) & np.int32(1))
    normal = np.int32(np.int32(magnitude + odd + np.int32(0xFFF)) & np.int32(~0x1FFF))
    small = np.int32(np.float32(np.float32(abs(value) + _MAGIC) - _MAGIC).view(np.int32))
    rounded = small if magnitude < np.int32(_LOWEST_NORMAL) else normal
    rounded = np.int32(_INFINITY) if rounded >= np.int32(_TOO_LARGE) else rounded
    rounded = magnitude if magnitude > np.int32(_INFINITY) else rounded
    return np.float32(np.int32(rounded | np.int32(bits & ~np.int32(_MAGNITUDE))).view(np.float32))
