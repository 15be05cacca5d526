"""Functions that formulas call, on arrays and on keys alike: softmax, activations, blocks, numbers of 4 bits.

A line here is what a verdict calls an intermediate value of such a function.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....observe.algebra.builtin_references import causal, gelu, relu, silu, softmax

NIBBLE = 4  # bits


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
