"""What the kernels of this folder compute, as ``warpsim launch --reference FILE.py:FUNCTION`` takes it."""

import numpy as np


def marlin(x, q, zero, scale, y, n, k):
    """Return X times 4-bit weights with zero points and scales of groups of 32 rows."""
    weights = np.stack([q >> 4 * place & 15 for place in (0, 4, 1, 5, 2, 6, 3, 7)], -1)
    weights = weights.reshape(k // 32, n, 4, 4, 2).transpose(0, 3, 2, 4, 1).reshape(k, n)
    zeros = np.stack([zero >> 4 * place & 15 for place in range(8)], -1).reshape(k // 32, n)
    return x @ ((weights - np.repeat(zeros, 32, 0)) * np.repeat(scale, 32, 0))


def flash(q, k, v, out, lse, rows, scale, cap):
    """Return causal attention with a softcap, and the logarithms of its sums."""
    scores = cap * np.tanh(q @ k.transpose(0, 2, 1) * scale / cap)
    scores = np.where(np.tril(np.ones((rows, rows), bool)), scores, -np.inf)
    largest = scores.max(-1, keepdims=True)
    powers = np.exp(scores - largest)
    sums = powers.sum(-1, keepdims=True)
    return {"out": powers @ v / sums, "lse": (largest + np.log(sums))[..., 0]}


def decode(q, k, v, out, partial, state, arrived, keys, group, scale):
    """Return attention of one query a head; ``group`` heads share keys and values."""
    scores = (np.repeat(k, group, 0) @ q[:, :, None])[..., 0] * scale
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return {"out": (powers[:, None] @ np.repeat(v, group, 0))[:, 0] / powers.sum(-1, keepdims=True)}


def deepgemm(a, b, scale_a, scale_b, d, m, n, k):
    """Return A B' with scales of 1 x 128 of A and 32 x 128 of B."""
    left = a * np.repeat(scale_a.T, 128, 1)
    right = b * np.repeat(np.repeat(scale_b, 32, 0), 128, 1)
    return left @ right.T


def streamk(a, b, c, d, workspace, flags, m, n, k, alpha, beta):
    """Return alpha A B' + beta C."""
    return {"d": alpha * (a @ b.T) + beta * c}


def matvec_q4(d4, q4, ds8, q8, y, rows, blocks):
    """Return q4_0 times q8_1: d4 (nibbles . bytes * d8 - 8 * s8), block by block."""
    nibbles = np.concatenate([q4 & 15, q4 >> 4], -1)
    dots = (nibbles * q8).sum(-1)
    return (d4 * (dots * ds8[:, 0] - 8 * ds8[:, 1])).sum(-1)


def rmsnorm(x, gamma, w, residual, y, m, eps):
    """Return rmsnorm(x) * gamma times W, plus a residual."""
    factor = 1 / np.sqrt((x * x).mean(1, keepdims=True) + eps)
    return (x * factor * gamma) @ w + residual


def moe(x, w, weight, ids, experts, y, pairs, top, n, k):
    """Return the weighted product of each pair of a token and an expert."""
    result = np.zeros((pairs, n))
    for block, expert in enumerate(experts):
        chosen = ids[16 * block : 16 * block + 16]
        chosen = chosen[chosen < pairs]
        result[chosen] = x[chosen // top] @ w[expert].T * weight[chosen][:, None]
    return result


def swiglu(x, gate, up, bias, y, n, k):
    """Return silu(x gate' + bias) * (x up')."""
    gated = x @ gate.T + bias
    return gated / (1 + np.exp(-gated)) * (x @ up.T)


def sparse24(a, e, b, bias, d, m, n, k):
    """Return relu(A B' + bias) of a 2:4 sparse A with its indices."""
    indices = np.stack([e >> 2 * place & 3 for place in range(16)], -1).reshape(m, k // 2)
    columns = np.arange(k // 2) // 2 * 4 + indices
    sums = np.stack([a[row] @ b.T[columns[row]] for row in range(m)])
    return np.maximum(sums + bias[:, None], 0)


def mxfp8(a, scales_a, b, scales_b, d, n, k):
    """Return A B' of e4m3 with a scale of ue8m0 for 32 elements of k."""
    left = scales_a.transpose(2, 1, 0, 3).reshape(128, k // 32)
    right = scales_b[..., 0, :].transpose(0, 2, 1, 3).reshape(n, k // 32)
    return (a * np.repeat(left, 32, 1)) @ (b * np.repeat(right, 32, 1)).T


def rope(q, k, cosine, sine, scores, queries, keys, offset, scale):
    """Return scores of rotated queries and keys."""

    def rotated(x, c, s):
        first, second = x[..., :16], x[..., 16:]
        return np.concatenate([first * c - second * s, second * c + first * s], -1)

    left = rotated(q, cosine[offset : offset + queries], sine[offset : offset + queries])
    return left @ rotated(k, cosine[:keys], sine[:keys]).transpose(0, 2, 1) * scale


def conv(x, w, bias, y, height, width, outputs, slope):
    """Return leaky relu of a 3 x 3 convolution with zeros around the picture."""
    padded = np.zeros((height + 2, width + 2, 16))
    padded[1:-1, 1:-1] = x
    taps = [padded[i : i + height, j : j + width] @ w[:, i, j].T for i in range(3) for j in range(3)]
    sums = sum(taps) + bias
    return np.where(sums > 0, sums, sums * slope)


def layernorm_backward(x, dy, w, dx, dw, db, rows, eps):
    """Return the gradients of x, w and the bias."""
    centred = x - x.mean(1, keepdims=True)
    rstd = 1 / np.sqrt((centred * centred).mean(1, keepdims=True) + eps)
    normal, product = centred * rstd, dy * w
    c1, c2 = (normal * product).mean(1, keepdims=True), product.mean(1, keepdims=True)
    return {"dx": (product - (normal * c1 + c2)) * rstd, "dw": (dy * normal).sum(0), "db": dy.sum(0)}


def requant(a, b, sums_b, bias, scale, d, m, n, k, zero_a, zero_d):
    """Return int8 products, corrected by the zero point of A, scaled, rounded, moved and clamped."""
    sums = a @ b.transpose(0, 2, 1) - zero_a * sums_b[:, None] + bias
    return np.clip(np.rint(sums * scale) + zero_d, -128, 127)


def lora(x, w, a, b, adapters, y, n, k, scale):
    """Return x W' + scale (x A') B', an adapter for each 16 rows."""
    blocks = x.reshape(-1, 16, k)
    low = [rows @ a[which].T * scale @ b[which].T for rows, which in zip(blocks, adapters, strict=True)]
    return x @ w.T + np.concatenate(low)
