"""Exact integer sums and bit counts."""

from __future__ import annotations

from .._jit import Array, kernel

_LOW, _HIGH = -(1 << 31), (1 << 31) - 1


@kernel
def integer_sum(
    operands: tuple[Array, Array, Array, Array], saturate: bool, exclusive: bool, result: Array
) -> None:
    """Write ``c + sum(a * b)`` as int64 codes modulo 2**32 into ``result (batch, m, n)``.

    ``operands = (a, b, c, columns)``. ``saturate`` clamps the final sum to 32 bits first. ``exclusive``
    adds ``a XOR b`` in place of the product, which for bits is AND.
    """
    a, b, c, columns = operands
    batches, m, n = result.shape
    for batch in range(batches):
        for i in range(m):
            for j in range(n):
                total = c[batch, i, j]
                for s in range(columns.shape[2]):
                    x, y = a[batch, i, s], b[batch, columns[batch, i, s], j]
                    total += x ^ y if exclusive else x * y
                if saturate:
                    total = min(max(total, _LOW), _HIGH)
                result[batch, i, j] = total & 0xFFFFFFFF
