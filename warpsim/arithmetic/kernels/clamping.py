"""Integer sums that are clamped on the way, for single elements of a product."""

from __future__ import annotations

from ._jit import Array, kernel

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
