"""References by name, for what is usual; arguments in the order in which most kernels have them.

Each takes the first arrays of the kernel and ignores the rest: pointers to outputs, sizes, strides. It
returns the only output. What a kernel has in another order takes a function of two lines in a file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_ROOT = float(np.sqrt(2 / np.pi))


def _numbers(more: tuple[Any, ...]) -> list[Any]:
    """Return the arguments behind the output that are floats: alpha, beta, scales."""
    return [each for each in more if getattr(each, "shape", None) == ()]


def gemm(a: Any, b: Any, d: Any, *more: Any) -> Any:
    """Return A @ B of A (m, k) and B (k, n), times the first float behind them."""
    found = a @ b
    return found * _numbers(more)[0] if _numbers(more) else found


def gemm_nt(a: Any, b: Any, d: Any, *more: Any) -> Any:
    """Return A @ B.T of A (m, k) and B (n, k)."""
    return gemm(a, b.T, d, *more)


def gemm_add(a: Any, b: Any, d: Any, *more: Any) -> Any:
    """Return D + A @ B: what is added to the output, as atomics do."""
    return d + gemm(a, b, d, *more)


def _activated(activation: Callable[[Any], Any]) -> Callable[..., Any]:
    def reference(a: Any, b: Any, bias: Any, d: Any, *more: Any) -> Any:
        return activation(a @ b + bias)

    return reference


def _attention(q: Any, k: Any, v: Any, more: tuple[Any, ...], masked: Callable[[Any], Any]) -> Any:
    scale = _numbers(more)[0] if _numbers(more) else 1 / np.sqrt(q.shape[-1])
    return softmax(masked(q @ np.swapaxes(k, -1, -2) * scale)) @ v


def softmax(x: Any, y: Any = None, *more: Any) -> Any:
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


def attention(q: Any, k: Any, v: Any, out: Any, *more: Any) -> Any:
    """Return softmax(Q K^T scale) V of (..., rows, d); the scale is the first float, or 1 / sqrt(d)."""
    return _attention(q, k, v, more, lambda scores: scores)


def causal_attention(q: Any, k: Any, v: Any, out: Any, *more: Any) -> Any:
    """Return the same, where row i of Q sees the rows of K up to i."""
    return _attention(q, k, v, more, causal)


def sparse_gemm(a: Any, e: Any, b: Any, d: Any, *more: Any) -> Any:
    """Return A @ B of a 2:4 sparse A (m, k / 2) and B (k, n).

    ``e`` are the indices of its elements, each of 4: two of 2 bits for two neighbours, the first one lower,
    4 bits for each group of 4 columns of a row, as cuSPARSELt and PyTorch's to_sparse_semi_structured order
    them before any permutation: words of 16 or 32 bits (m, k / words).
    """
    fields = np.asarray(e.values) if hasattr(e, "values") else np.asarray(e)
    rows, stored = a.shape
    bits = 8 * fields.dtype.itemsize if not hasattr(e, "values") else 4 * (stored // 2) * rows // fields.size
    parts = fields.reshape(rows, -1)[..., None] >> 2 * np.arange(bits // 2) & 3
    columns = parts.reshape(rows, -1)[:, :stored] + 4 * (np.arange(stored) // 2)
    dense = np.zeros_like(a, shape=(rows, 2 * stored))
    dense[np.arange(rows)[:, None], columns] = a
    return dense @ (b if b.shape[0] == 2 * stored else b.T)


def scaled_gemm(a: Any, b: Any, scale_a: Any, scale_b: Any, d: Any, *more: Any) -> Any:
    """Return A @ B.T of block-scaled A (m, k) and B (n, k): scales (m, blocks) and (n, blocks) along k."""
    left = a * np.repeat(scale_a, a.shape[1] // scale_a.shape[1], axis=1)
    right = b * np.repeat(scale_b, b.shape[1] // scale_b.shape[1], axis=1)
    return left @ right.T


BUILT_IN: dict[str, Callable[..., Any]] = {
    "gemm": gemm,
    "gemm_nt": gemm_nt,
    "gemm_add": gemm_add,
    "gemm_bias": _activated(lambda x: x),
    "gemm_bias_relu": _activated(relu),
    "gemm_bias_gelu": _activated(gelu),
    "gemm_bias_silu": _activated(silu),
    "sparse_gemm": sparse_gemm,
    "scaled_gemm": scaled_gemm,
    "softmax": softmax,
    "attention": attention,
    "causal_attention": causal_attention,
}
