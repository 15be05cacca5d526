"""References of the kernels in traces/kernels: NumPy functions of their arguments, by entry.

What they compute is the textbook's: no tiles, no order of sums, no rounding. Metadata and the places of
scales are values, decoded by formulas of their own. Knows no keys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import warpsim
from tests.helpers.tensor_core import metadata_field
from warpsim.isa.metadata.arrangements import convert

Reference = Callable[..., Any]
_SP = "mma.sp::ordered_metadata.sync.aligned."


def product(a: Any, b: Any, d: Any, *more: Any) -> Any:
    """A B of rows of both."""
    return a @ b


def by_columns(a: Any, b: Any, d: Any, *more: Any) -> Any:
    """A B of rows of A and columns of B."""
    return a @ b.T


def added(a: Any, b: Any, d: Any, *more: Any) -> Any:
    """D + A B."""
    return d + a @ b.T


def _dense(a: Any, columns: Any, k: int) -> Any:
    """A with its zeros."""
    found = np.zeros_like(a, shape=(a.shape[0], k))
    found[np.arange(a.shape[0])[:, None], columns] = a
    return found


def _nibbles(x: Any) -> Any:
    """Signed integers of 4 bits, two to a byte."""
    both = np.stack([x & 15, x >> 4 & 15], -1)
    codes = np.reshape(both, (*x.shape[:-1], -1))
    return codes - 2 * (codes & 8)


def sparse(mnemonic: str, target: str, *, fours: bool = False, rows: bool = False) -> Reference:
    """A sparse A with metadata of mma.sp, in the order of lanes, and B by columns or rows."""
    form = warpsim.decode(mnemonic, target=target)
    source = "cutlass" if rows else f"lanes {form.shape} selector 0"

    def reference(a: Any, e: Any, b: Any, d: Any, *more: Any) -> Any:
        pattern, k = form.pattern, int(more[-1])
        assert pattern is not None
        if fours:
            a, b = _nibbles(a), _nibbles(b)
        words = e.values.astype(np.uint16 if rows else np.uint32)
        indices = np.asarray(convert(words, a.shape[0], k, form, source=source, target="indices"))
        unit, part = np.divmod(np.arange(a.shape[1]), pattern.unit)
        first = unit // pattern.kept * pattern.chunk + part
        dense = _dense(a, first + indices[:, unit].astype(int) * pattern.unit, k)
        return dense @ (b if rows else b.T)

    return reference


def block_scaled(a: Any, scale_a: Any, b: Any, scale_b: Any, d: Any, *more: Any) -> Any:
    """A and B by columns, with a scale for some elements along k, in the blocks of tcgen05.cp."""
    left, right = _factors(scale_a, 128, a.shape[0]), _factors(scale_b, 64, b.shape[0])
    each = a.shape[1] // left.shape[1]
    return (a * np.repeat(left, each, 1)) @ (b * np.repeat(right, each, 1)).T


def _factors(blocks: Any, rows: int, tall: int) -> Any:
    """Scales (rows, factors) of blocks of 512 bytes."""
    r, j = np.indices((tall, 4 * blocks.shape[1]))
    own = r % rows
    return blocks[r // rows, j // 4, own % 32 * 16 + own // 32 * 4 + j % 4]


def tensor_sparse(a: Any, words: Any, b: Any, d: Any, n: int, k: int) -> Any:
    """A sparse A with metadata as tcgen05.st takes them."""
    found = np.zeros(a.shape, int)
    for r, chunk in np.ndindex(a.shape[0], k // 4):
        _, lane, _, bit = metadata_field("D", 16, r % 128, chunk % 8)
        code = int(words.values[r // 128, chunk // 8, lane]) >> bit & 15
        found[r, 2 * chunk : 2 * chunk + 2] = 4 * chunk + (code & 3), 4 * chunk + (code >> 2)
    return _dense(a, found, k) @ b.T


def gelu(a: Any, b: Any, bias: Any, d: Any, *more: Any) -> Any:
    """GELU by tanh of A B + bias."""
    y = a @ b + bias
    return 0.5 * y * (1 + np.tanh(0.79788456 * (y + 0.044715 * y**3)))


def softmax(x: Any, y: Any, *more: Any) -> Any:
    """The softmax of rows."""
    powers = np.exp(x - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def rounded(a: Any, b: Any, c: Any, d: Any, h: Any) -> Any:
    """D and its half, of fragments of wmma."""
    d = a @ b.T + c
    return {3: d, 4: d}


def turned(a: Any, b: Any, c: Any, d: Any, h: Any) -> Any:
    """The same of matrices that are stored by columns."""
    return {place: found.T for place, found in rounded(a.T, b.T, c.T, d, h).items()}


def _scan(values: Any, sums: Any, carry: Any, flags: Any) -> Any:
    return {1: np.cumsum(values)}


REFERENCES: dict[str, Reference] = {
    **dict.fromkeys(("dense_f16", "dense_bf16", "ragged_f16"), product),
    **dict.fromkeys(("dense_tf32", "dense_s8", "bulk_ring", "warpgroup_f16", "warpgroup_e4m3"), by_columns),
    **dict.fromkeys(("tensor_ring", "cooperative_f16", "pingpong_f16", "multicast_f16"), by_columns),
    **dict.fromkeys(("cooperative_e4m3", "stream_k_f16", "tensor_f16", "tensor_e4m3"), by_columns),
    **dict.fromkeys(("tensor_tf32", "tensor_s8", "tensor_persistent", "tensor_stationary_f16"), by_columns),
    **dict.fromkeys(("tensor_stream_k", "tensor_stored", "tensor_in_turn", "tensor_pair"), by_columns),
    "tensor_split": added,
    "split_k_f32": product,
    "split_k_s32": by_columns,
    "bias_relu": lambda a, b, bias, d, n, k: np.maximum(a @ b + bias, 0),
    "bias_gelu": gelu,
    "softmax": softmax,
    "sum_all": lambda values, count, total: values.sum(keepdims=True),
    "tensor_attention": lambda q, k, v, o, keys: (np.maximum(q @ k.T, 0) * 0.125) @ v.T,
    "sparse_f16": sparse(f"{_SP}m16n8k32.row.col.f32.f16.f16.f32", "sm_80"),
    "sparse_bf16": sparse(f"{_SP}m16n8k32.row.col.f32.bf16.bf16.f32", "sm_80"),
    "sparse_tf32": sparse(f"{_SP}m16n8k16.row.col.f32.tf32.tf32.f32", "sm_80"),
    "sparse_s8": sparse(f"{_SP}m16n8k64.row.col.s32.s8.s8.s32", "sm_80"),
    "sparse_s4": sparse(f"{_SP}m16n8k128.row.col.s32.s4.s4.s32", "sm_80", fours=True),
    "sparse_e4m3": sparse(f"{_SP}m16n8k64.row.col.f32.e4m3.e4m3.f32", "sm_89"),
    "sparse_product": sparse(f"{_SP}m16n8k32.row.col.f32.f16.f16.f32", "sm_80", rows=True),
    "warpgroup_sparse_f16": sparse("wgmma.mma_async.sp.sync.aligned.m64n64k32.f32.f16.f16", "sm_90a"),
    "cooperative_sparse_f16": sparse("wgmma.mma_async.sp.sync.aligned.m64n64k32.f32.f16.f16", "sm_90a"),
    "tensor_sparse_f16": tensor_sparse,
    "tensor_mxf8": block_scaled,
    "tensor_nvf4": block_scaled,
    **{f"rounded_rows_{size}": rounded for size in ("16x16", "32x8", "8x32")},
    **{f"rounded_columns_{size}": turned for size in ("16x16", "32x8", "8x32")},
    "cluster_sum": lambda values, length, sums: values.sum(1),
    "chained_scan": _scan,
    "last_adds": lambda v, partial, arrived, total: {1: v.sum(1), 3: v.sum(keepdims=True).reshape(1)},
    "locked_sum": lambda values, count, lock, total: {3: values.sum(keepdims=True)},
}
