"""Launches of the kernels of fragments.cu: products of wmma, and their elements rounded to f16."""

from __future__ import annotations

from functools import partial

import numpy as np

import warpsim
from tests.helpers.kernel_products import Case, Rng

SIZES = ((16, 16), (32, 8), (8, 32))
FORM = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


def _rounded(rng: Rng, *, size: tuple[int, int], order: str) -> Case:
    m, n = size
    a, b = rng.normal(size=(m, 16)).astype(np.float16), rng.normal(size=(16, n)).astype(np.float16)
    c = rng.normal(size=(m, n)).astype(np.float32)
    form = warpsim.decode(FORM, target="sm_80")
    padded = np.zeros((-m % 16, 16), np.float16), np.zeros((-m % 16, n), np.float32)
    d = warpsim.gemm(form, np.concatenate([a, padded[0]]), b, np.concatenate([c, padded[1]]))[:m]
    given = (a, b.T, c, d, d.astype(np.float16))
    a, b, c, d, h = (np.ascontiguousarray(one if order == "rows" else one.T) for one in given)
    return Case(
        file="fragments.ptx",
        entry=f"rounded_{order}_{m}x{n}",
        grid=1,
        block=32,
        arguments=(a, b, c, np.zeros_like(d), np.zeros_like(h)),
        expected={3: d, 4: h},
    )


FRAGMENTS = {
    f"rounded_{order}_{m}x{n}": partial(_rounded, size=(m, n), order=order)
    for m, n in SIZES
    for order in ("rows", "columns")
}
