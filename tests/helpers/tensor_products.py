"""Arguments and expected results of the kernels in traces/kernels that multiply boxes of tensors.

Knows the maps that each takes; does not know how kernels are executed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import warpsim
from tests.helpers.kernel_products import Array, Case, Rng

_F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


def _maps(given: Sequence[Any]) -> list[Any]:
    """A, B and D as maps with boxes of rows of 128 bytes."""
    boxes = ((64, 64), (32, 64), (64, 32))
    maps = [warpsim.tensor_map(one, box=box, swizzle="128B") for one, box in zip(given, boxes, strict=False)]
    return [*maps, *given[3:]]


def _operands(rng: Rng, size: tuple[int, int, int]) -> tuple[Array, Array]:
    """A (m, k) and B (k, n): heavy-tailed."""
    m, n, k = size
    with np.errstate(over="ignore"):
        A, B = (np.clip(rng.standard_t(3, shape), -64, 64) for shape in ((m, k), (k, n)))
    return A.astype(np.float16), B.astype(np.float16)


def ring(rng: Rng, *, size: tuple[int, int, int], ctas: int) -> Case:
    """Any m, any k that is a multiple of 8, any n that is one of 4: the rest of a tile is outside."""
    m, n, k = size
    A, B = _operands(rng, size)
    D = np.full((m, n), np.nan, np.float32)
    form = warpsim.decode(_F16, target="sm_90a")
    return Case(
        file="tensor_ring.ptx",
        entry="tensor_ring",
        grid=ctas,
        block=160,
        arguments=(A, np.ascontiguousarray(B.T), D, m, n, k),
        expected={2: warpsim.gemm(form, A, B)},
        passed=_maps,
    )


def split(rng: Rng) -> Case:
    """Shares of k of small integers, whose sums are exact in any order."""
    m, n, k = 40, 40, 136
    A, B = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    D = rng.integers(-9, 10, (m, n)).astype(np.float32)
    return Case(
        file="tensor_ring.ptx",
        entry="tensor_split",
        grid=(2, 2),
        block=160,
        arguments=(A, np.ascontiguousarray(B.T), D, m, n, k),
        expected={2: D + A.astype(np.float32) @ B.astype(np.float32)},
        passed=_maps,
    )
