"""References of the kernels in formulas.cu, as ``warpsim launch --reference`` takes them."""

import numpy as np


def dequantised(x, q, zero, scale, y, n, k):
    """Multiply X with 4-bit weights that have zero points and scales by groups of 32."""
    weights = np.stack([q & 15, q >> 4 & 15], 1).reshape(k, -1)
    return x @ ((weights - np.repeat(zero, 32, 0)) * np.repeat(scale, 32, 0))


def causal_rows(q, k, v, out, rows, scale):
    """Return causal attention."""
    scores = np.where(np.tril(np.ones((rows, rows), bool)), q @ k.T * scale, -np.inf)
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True) @ v


def requantised(a, b, scale, d, rows, columns, k):
    """Multiply int8, four to a word, scale, round and clamp."""
    left, right = (unpacked(words) for words in (a, b))
    return np.clip(np.rint(left @ right.T * scale), -128, 127)


def unpacked(words):
    """Return the four bytes of each word as signed integers."""
    parts = [(words >> 8 * place & 127) - (words >> 8 * place & 128) for place in range(4)]
    return np.stack(parts, -1).reshape(words.shape[0], -1)
