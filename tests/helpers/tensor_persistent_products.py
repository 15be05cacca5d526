"""Arguments and expected results of the kernels in traces/kernels/tensor_persistent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

import warpsim
from tests.helpers.kernel_products import Array, Case, Rng
from tests.helpers.tensor_core_products import tensor_case

Size = tuple[int, int, int]
MAPS = {0: (128, 64), 1: (64, 64)}


def _operands(rng: Rng, size: Size) -> tuple[Array, Array]:
    m, n, k = size
    return (
        rng.standard_normal((m, k)).astype(np.float16),
        rng.standard_normal((k, n)).astype(np.float16),
    )


def _product(A: Array, B: Array) -> Array:
    form = warpsim.decode("tcgen05.mma.cta_group::1.kind::f16", target="sm_100a", idesc=0x08100010)
    return np.asarray(warpsim.gemm(form, A, B))


def persistent(rng: Rng, *, size: Size) -> Case:
    """Every tile by its own CTA, or by one that has asked for it."""
    A, B = _operands(rng, size)
    D = np.full((size[0], size[1]), np.nan, np.float32)
    given = (A, np.ascontiguousarray(B.T), D, size[1], size[2])
    return tensor_case("tensor_persistent", "tensor_persistent", given, D, _product(A, B), MAPS)


def stream_k(rng: Rng, *, size: Size, share: int) -> Case:
    """At most two CTAs share a tile, so that the order of their sums does not matter."""
    m, n, k = size
    A, B = _operands(rng, size)
    steps, across, tiles = k // 64, n // 64, m // 128 * (n // 64)
    D, expected = np.zeros((m, n), np.float32), np.zeros((m, n), np.float32)
    for first in range(0, tiles * steps, share):
        at, behind = first, min(first + share, tiles * steps)
        while at < behind:
            tile, begins = divmod(at, steps)
            ends = min(steps, begins + behind - at)
            row, column = divmod(tile, across)
            y, x = slice(128 * row, 128 * row + 128), slice(64 * column, 64 * column + 64)
            along = slice(64 * begins, 64 * ends)
            expected[y, x] += _product(A[y, along], B[along, x])
            at += ends - begins
    given = (A, np.ascontiguousarray(B.T), D, k, across, tiles, share)
    case = tensor_case("tensor_persistent", "tensor_stream_k", given, D, expected, MAPS)
    return replace(case, grid=-(-tiles * steps // share))


TENSOR_PERSISTENT: dict[str, Callable[[Rng], Case]] = {
    "tensor_persistent": partial(persistent, size=(256, 256, 192)),
    "tensor_stream_k": partial(stream_k, size=(128, 192, 256), share=5),
}
