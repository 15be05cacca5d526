"""An author of attention kernels: heads, masks, rescaled accumulators, several mistakes at once, odd data."""

from __future__ import annotations

from typing import Any

import numpy as np

from tools.mistakes.judging import Brought, said

from .kernel_author import Gemm
from .listing import Listing

LIST = Listing()


@LIST.mistake("Q K instead of Q K transposed", r"B.*(major|transpos)")
def _(rng: Any) -> Brought:
    g = Gemm(rng, 64, 64, 64)
    return g.brought(g.run(B=np.ascontiguousarray(g.B.T)))


@LIST.mistake(
    "a causal mask where there should be none: the upper triangle is zero",
    r"(triangle|mask)",
    locates=r"above|below|diagonal",
)
def _(rng: Any) -> Brought:
    g = Gemm(rng, 64, 64, 64)
    return g.brought(np.tril(g.run()))


@LIST.mistake(
    "a causal mask writes -inf above the diagonal", r"(triangle|mask)", locates=r"above|below|diagonal"
)
def _(rng: Any) -> Brought:
    g = Gemm(rng, 64, 64, 64)
    return g.brought(np.where(np.tri(64, dtype=bool), g.run(), -np.inf).astype(np.float32))


@LIST.mistake(
    "rows of head 1 stand in head 0 and the other way round",
    said("a", "sources", tiles=[4, 5, 6, 7, 0, 1, 2, 3]),
)
def _(rng: Any) -> Brought:
    g = Gemm(rng, 128, 32, 48)
    g.C[:] = 0
    return g.brought(g.run(A=np.roll(g.A, 64, axis=0)))


@LIST.mistake(
    "online softmax rescales the old accumulators by row at step 2, and should not",
    r"step.*(scale|factor|times)|(scale|factor|times).*step|row.*(scale|factor)",
)
def _(rng: Any) -> Brought:
    g = Gemm(rng, 64, 48, 64)
    g.C[:] = 0
    old = g.run(g.A[:, :32].copy(), g.B[:32].copy()) * rng.uniform(0.2, 1, (64, 1)).astype(np.float32)
    return g.brought(g.run(g.A[:, 32:].copy(), g.B[32:].copy(), old))


@LIST.mistake("1 / sqrt(d) is applied twice", r"0\.125|1/8")
def _(rng: Any) -> Brought:
    g = Gemm(rng, 64, 64, 64)
    g.C[:] = 0
    return g.brought(g.run() * np.float32(0.125))


@LIST.mistake(
    "two mistakes: B of the previous step, and C forgotten",
    r"B of the previous[\s\S]*C|C[\s\S]*B of the previous",
    locates=r"B of the previous|C (not|was)",
)
def _(rng: Any) -> Brought:
    g = Gemm(rng, 64, 32, 96)
    B = np.concatenate([g.B[:16], g.B[:-16]])
    return g.brought(g.run(B=B, C=g.C * 0))


@LIST.mistake(
    "two mistakes: steps 1 and 4 are left out, C counts twice",
    r"1.*4[\s\S]*C.*(twice|2)|C.*(twice|2)[\s\S]*1.*4",
)
def _(rng: Any) -> Brought:
    g = Gemm(rng, 64, 32, 96)
    A = g.A.copy()
    A[:, 16:32] = 0
    A[:, 64:80] = 0
    return g.brought(g.run(A=A) + g.C)


@LIST.mistake(
    "two mistakes, ragged: M 50 and N 20, b stored [N][K] and the last step left out",
    r"B.*(major|transpos)[\s\S]*(step 3|left out|missing)",
    locates=r"B.*(major|transpos)|left out",
)
def _(rng: Any) -> Brought:
    g = Gemm(rng, 50, 20, 64)
    B = np.ascontiguousarray(g.B.T).reshape(64, 20).copy()
    B[48:] = 0
    return g.brought(g.run(B=B))


@LIST.mistake("NaN of an uninitialised column of B, and step 1 left out", r"step 1.*(left out|missing)")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    g.B[40, 5] = np.nan
    A = g.A.copy()
    A[:, 16:32] = 0
    return g.brought(g.run(A=A))


@LIST.mistake("an infinite element of A, and C twice", r"C.*(twice|2)")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    g.A[3, 9] = np.inf
    return g.brought(g.run() + g.C)


@LIST.mistake(
    "V is taken from the next sequence position: rows of B one down",
    r"B.*(row|k).*(1|one|next|down)",
    locates=r"B.*k",
)
def _(rng: Any) -> Brought:
    g = Gemm(rng, 80, 64, 64)
    return g.brought(g.run(B=np.roll(g.B, -1, axis=0)))


@LIST.mistake(
    "a head of 64 is read from a tensor of heads interleaved in pairs: even then odd columns of A",
    r"A.*(k|column).*",
    locates=r"A.*(k|column)",
)
def _(rng: Any) -> Brought:
    g = Gemm(rng, 64, 80, 64)
    order = np.concatenate([np.arange(0, 64, 2), np.arange(1, 64, 2)])
    return g.brought(g.run(A=g.A[:, order]))
