"""Products of matrices modulo two numbers at once: two halves of each word.

Does not know what words stand for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from ._jit import Array, variant_kernel

_EXACT = 16  # products of numbers below 2^30 whose sum, with another such number, has 64 bits


@lru_cache(maxsize=8)
def modular_product(upper: int, lower: int, bits: int) -> Callable[[Array, Array, Array], None]:
    """Return what writes ``found (e, m, n)``: ``a (e, m, k)`` times ``b (e, k, n)``, uint64 words.

    The low ``bits`` of the upper 32 bits of a word are below ``upper``, those below ``lower``; both are below
    2^30.
    """
    high, low = np.uint64(upper), np.uint64(lower)
    shift, mask, used = np.uint64(32), np.uint64((1 << 32) - 1), np.uint64((1 << bits) - 1)

    @variant_kernel(upper, lower, bits)
    def multiply(a: Array, b: Array, found: Array) -> None:
        executions, rows, depth = a.shape
        columns = b.shape[2]
        first, second = np.empty(columns, np.uint64), np.empty(columns, np.uint64)
        for e in range(executions):
            for i in range(rows):
                first[:] = 0
                second[:] = 0
                for k in range(depth):
                    x, y = a[e, i, k] >> shift & used, a[e, i, k] & mask
                    for j in range(columns):
                        first[j] += x * (b[e, k, j] >> shift & used)
                        second[j] += y * (b[e, k, j] & mask)
                    if k % _EXACT == _EXACT - 1 and k + 1 < depth:
                        for j in range(columns):
                            first[j] %= high
                            second[j] %= low
                for j in range(columns):
                    found[e, i, j] = first[j] % high << shift | second[j] % low

    return multiply
