"""Functions that formulas call, on arrays and on keys alike: softmax, activations, blocks, numbers of 4 bits.

A line here is what a verdict calls an intermediate value of such a function.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_ROOT = float(np.sqrt(2 / np.pi))
NIBBLE = 4  # bits


def softmax(x: Any) -> Any:
    """Return the softmax of rows."""
    powers = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return powers / np.sum(powers, axis=-1, keepdims=True)


def causal(x: Any) -> Any:
    """Return scores of which row i has the columns up to i, counted from the last, and else -inf."""
    rows, columns = x.shape[-2:]
    allowed = np.tril(np.ones((rows, columns), bool), columns - rows)
    return np.where(allowed, x, -np.inf)


def relu(x: Any) -> Any:
    """Return x, and 0 where it is negative."""
    return np.maximum(x, 0)


def gelu(x: Any) -> Any:
    """Return GELU by tanh."""
    bent = np.tanh(_ROOT * (x + 0.044715 * x**3))
    return 0.5 * x * (1 + bent)


def silu(x: Any) -> Any:
    """Return x times its sigmoid."""
    return x / (1 + np.exp(-x))


def sigmoid(x: Any) -> Any:
    """Return 1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-x))


def transposed(x: Any) -> Any:
    """Return an array with its last two axes exchanged."""
    return np.swapaxes(x, -1, -2)


def blocks(x: Any, rows: int, columns: int) -> Any:
    """Return a matrix each element of which is repeated along both axes."""
    return np.repeat(np.repeat(x, rows, axis=0), columns, axis=1)


def nibbles(x: Any, count: int, axis: int = -1, signed: bool = False) -> Any:
    """Return the ``count`` numbers of 4 bits of each element along an axis, the lowest bits first."""
    parts = [x >> NIBBLE * part & 15 for part in range(count)]
    if signed:
        parts = [(part ^ 8) - 8 for part in parts]
    shape = [*x.shape]
    shape[axis] *= count
    return np.stack(parts, len(shape) if axis == -1 else axis + 1).reshape(shape)


FUNCTIONS = {
    each.__name__: each for each in (softmax, causal, relu, gelu, silu, sigmoid, transposed, blocks, nibbles)
}
