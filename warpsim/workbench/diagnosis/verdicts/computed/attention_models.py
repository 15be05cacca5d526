"""Attention in double precision: at once, and tile by tile with the statistics of rows that a kernel uses.

Knows matrices; does not know launches.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.intp]


def attention(Q: Array, K: Array, V: Array, scale: float) -> Array:
    """Return softmax(scale Q K^T) V, ``(rows of Q, columns of V)``."""
    scores = scale * Q.astype(np.float64) @ K.astype(np.float64).T
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    found: Array = weights @ V.astype(np.float64) / weights.sum(axis=1, keepdims=True)
    return found


def running_attention(
    matrices: tuple[Array, Array, Array], scale: float, keys: int, maxima: Rows, factors: Rows
) -> Array:
    """Return attention summed over tiles of ``keys`` rows of K, with a maximum that grows from tile to tile.

    ``maxima (rows,)`` is the row of a tile of Q whose maximum each row subtracts, ``factors (rows, columns)``
    that whose factor each element of the sums is multiplied with; -2 for none. The total of the weights is
    multiplied with the factor of its own row.
    """
    Q, K, V = (matrix.astype(np.float64) for matrix in matrices)
    scores, rows = scale * Q @ K.T, np.arange(len(Q))
    within, start = rows % len(maxima), rows - rows % len(maxima)
    chosen = factors[within][:, np.arange(V.shape[1]) % factors.shape[1]]
    most, total, sums = np.full(len(Q), -np.inf), np.zeros(len(Q)), np.zeros((len(Q), V.shape[1]))
    for first in range(0, len(K), keys):
        tile = scores[:, first : first + keys]
        grown = np.maximum(most, tile.max(axis=1))
        factor, most = np.exp(most - grown), grown
        weights = np.exp(tile - most[start + maxima[within]][:, None])
        total = total * factor + weights.sum(axis=1)
        by = np.where(chosen == -2, 1.0, factor[start[:, None] + np.maximum(chosen, 0)])
        sums = sums * by + weights @ V[first : first + keys]
    found: Array = sums / total[:, None]
    return found
