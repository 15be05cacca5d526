"""Integer sums: clamped on the way, of single elements and of whole rows, and those of bits.

Products of matrices of bits are populations of words that 64 elements along k share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ._jit import Array, kernel
from .llvm.vectors import I64, cgutils, intrinsic, ir, types

_LOW, _HIGH = -(1 << 31), (1 << 31) - 1


@kernel
def clamped_sums(a: Array, b: Array, rows: Array, columns: Array, each: int, sums: Array) -> None:
    """Continue ``sums[p]`` (int64) with the products of row ``rows[p]`` of a and row ``columns[p]`` of b.

    After every ``each`` products, the sum is clamped to 32 bits.
    """
    depth = a.shape[1]
    for place in range(len(sums)):
        total = sums[place]
        i, j = rows[place], columns[place]
        for start in range(0, depth, each):
            partial = 0
            for k in range(start, min(start + each, depth)):
                partial += int(a[i, k]) * int(b[j, k])
            total = min(max(total + partial, _LOW), _HIGH)
        sums[place] = total


@kernel
def clamped_rows(a: Array, b: Array, rows: Array, each: int, sums: Array) -> None:
    """Continue the given rows of ``sums (m, n)`` int32 with ``a (m, k)`` times ``b (k, n)``, both int16.

    After every ``each`` products, a multiple of 4 whose sum fits 32 bits, the sums are clamped to 32 bits.
    """
    depth, columns = b.shape
    partial = np.empty(columns, np.int32)
    for i in rows:
        total = sums[i]
        for start in range(0, depth, each):
            partial[:] = 0
            for k in range(start, min(start + each, depth), 4):
                _add_four(a[i, k : k + 4], b[k : k + 4], partial)
            for j in range(columns):
                total[j] = np.int32(min(max(np.int64(total[j]) + partial[j], _LOW), _HIGH))


@kernel
def _add_four(a: Array, b: Array, sums: Array) -> None:
    """Add four products to every column."""
    b0, b1, b2, b3 = b[0], b[1], b[2], b[3]
    x0, x1, x2, x3 = np.int32(a[0]), np.int32(a[1]), np.int32(a[2]), np.int32(a[3])
    for j in range(len(sums)):
        low = np.int32(np.int32(x0 * np.int32(b0[j])) + np.int32(x1 * np.int32(b1[j])))
        high = np.int32(np.int32(x2 * np.int32(b2[j])) + np.int32(x3 * np.int32(b3[j])))
        sums[j] = np.int32(sums[j] + np.int32(low + high))


# --- products of bits ---------------------------------------------------------------------------------


@intrinsic
def _population(typing: Any, word: Any) -> tuple[Any, Callable[..., Any]]:
    """Return the number of set bits of an int64."""

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = ir.FunctionType(I64, [I64])
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.ctpop.i64"), values)

    return types.int64(types.int64), emit


@kernel
def add_populations(a: Array, b: Array, exclusive: bool, total: Array) -> None:
    """Add to ``total (m, n)`` int64 the set bits of AND or XOR of ``a (m, words)`` and ``b (words, n)``
    int64.
    """
    words, columns = b.shape
    for i in range(a.shape[0]):
        row = total[i]
        for word in range(words):
            x, of_b = a[i, word], b[word]
            if exclusive:
                for j in range(columns):
                    row[j] += _population(x ^ of_b[j])
            else:
                for j in range(columns):
                    row[j] += _population(x & of_b[j])
