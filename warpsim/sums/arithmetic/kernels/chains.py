"""Chains of IEEE operations, all columns of D at a time: float64 fused multiply-adds, and m8n8k4 in software.

Operands are values, and any number of instructions long along k. A NaN stays a NaN to the end of its chain,
where the caller makes it canonical. Blocks of D stay in registers (see llvm.chain_blocks); of a panel of B,
_DEEP rows at a time stay in the first-level cache. The loops for f16 results suit LLVM's vectoriser: four
products in a pass, columns inside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ._jit import Array, fingerprint, kernel, variant_kernel
from .llvm import chain_blocks, vectors
from .llvm.chain_blocks import LANES, ROWS, STEPS, emit_block
from .llvm.vectors import cgutils, intrinsic, pointers, types

_MAGNITUDE, _INFINITY = 0x7FFFFFFF, 0x7F800000
_LOWEST_NORMAL = 0x38800000  # 2**-14 as float32
_TOO_LARGE = 0x47800000  # 65536: the value that 65520 and more round to
_DEEP = 64  # products of a block between loading and storing it
# Numba's cache sees edits only of the file that defines a kernel; this constant sees edits of the others.
_FINGERPRINT = fingerprint(chain_blocks, vectors)
_MAGIC = np.float32(0.75)  # its last place is that of f16's subnormal numbers


def chain_kernel(kind: str, count: int) -> Callable[..., None]:
    """Return the compiled ``chain`` of "f64" fused multiply-adds or of SoftwareQuad's "f32" steps (below).

    Panels of B and D have ``count`` vectors of llvm.chain_blocks.LANES columns.
    """
    code = list(STEPS).index(kind) | count << 4 | (_FINGERPRINT & 0x3FFFFFF) << 8
    width = count * LANES[kind]

    @variant_kernel(code)
    def chain(a: Array, b: Array, c: Array, shape: tuple[int, int, int]) -> None:
        """Continue ``c (batch, m, panels, columns)`` with ``a (batch, m, k)`` and ``b (batch, panels, k,
        columns)``.

        All flat, of float64 or of float32 that are f16 in a and b; ``shape = (m, panels, k)``, where m is a
        multiple of ROWS and k of 4.
        """
        m, panels, depth = shape
        stride = panels * width
        for case in range(len(c) // (m * stride)):
            for panel in range(panels):
                right = (case * panels + panel) * depth
                for k in range(0, depth, _DEEP):
                    numbers = (depth, stride, min(_DEEP, depth - k))
                    for i in range(0, m, ROWS):
                        row = case * m + i
                        at = (row * depth + k, (right + k) * width, row * stride + panel * width)
                        _block(code, (a, b, c), at, numbers)

    return chain


@intrinsic
def _block(typing: Any, code: Any, arrays: Any, at: Any, numbers: Any) -> Any:
    """Continue a block of D; ``at``: its first elements in a, b and c, ``numbers`` as emit_block has them."""
    if not isinstance(code, types.IntegerLiteral):
        return None  # Numba asks again with the literal type
    kind, count = list(STEPS)[code.literal_value & 15], code.literal_value >> 4 & 15

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        whole = pointers(context, builder, signature.args[1], values[1])
        places = cgutils.unpack_tuple(builder, values[2], 3)
        at_block = [builder.gep(array, [place]) for array, place in zip(whole, places, strict=True)]
        emit_block(builder, kind, count, at_block, cgutils.unpack_tuple(builder, values[3], 3))
        return context.get_dummy_value()

    return types.none(code, arrays, at, numbers), emit


@kernel
def half_quad_chain(a: Array, b: Array, result: Array) -> None:
    """Continue ``result (batch, m, n)`` by SoftwareQuad's steps for f16 results; all held as float32."""
    for batch, i in np.ndindex(a.shape[:2]):
        for k in range(0, a.shape[2], 4):
            _add_half_quad(a[batch, i, k : k + 4], b[batch, k : k + 4], result[batch, i])


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
