"""Kernels, dumps and prints in which nothing is wrong, or whose D says nothing: no cause may be claimed.

Where the order of a sum is another, bits may differ, and the answer may say so; it may not blame an operand.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

import warpsim
from tools.mistakes.case import F16, S8, SPARSE, one
from tools.mistakes.judging import Brought

from .kernel_author import Gemm
from .listing import Listing

LIST = Listing()
_ORDER = r"as expected|right but for roundings|in another order|harmless|order of (k|the sum)"


def permuted(rng: Any, order: Any, **size: int) -> Brought:
    """Return a kernel that takes k in another order on both sides."""
    g = Gemm(rng, **size)
    return g.brought(g.run(np.ascontiguousarray(g.A[:, order]), np.ascontiguousarray(g.B[order])))


@LIST.right("k permuted on both sides, at random", _ORDER)
def _(rng: Any) -> Brought:
    return permuted(rng, rng.permutation(64))


@LIST.right("k permuted on both sides: consecutive k in each lane", _ORDER)
def _(rng: Any) -> Brought:
    order = np.arange(64).reshape(4, 2, 4, 2).transpose(0, 2, 1, 3).reshape(-1)
    return permuted(rng, order)


@LIST.right("k permuted on both sides: even then odd", _ORDER)
def _(rng: Any) -> Brought:
    return permuted(rng, np.r_[0:96:2, 1:96:2], m=48, n=24, k=96)


@LIST.right("k reversed on both sides", _ORDER)
def _(rng: Any) -> Brought:
    return permuted(rng, np.arange(64)[::-1])


@LIST.right("k permuted on both sides, registers of one instruction", _ORDER)
def _(rng: Any) -> Brought:
    p = one(F16, rng)
    order = rng.permutation(16)
    d = p.run(a=p.packed("a", p.A[:, order]), b=p.packed("b", p.B[order]))
    return p.brought(d)


@LIST.right("k permuted on both sides, small integers: every bit is right")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    g.A, g.B, g.C = (np.round(x) for x in (g.A, g.B, g.C))
    order = rng.permutation(64)
    return g.brought(g.run(np.ascontiguousarray(g.A[:, order]), np.ascontiguousarray(g.B[order])))


@LIST.right("s8, k permuted on both sides")
def _(rng: Any) -> Brought:
    A, B = (
        rng.integers(-128, 128, (32, 64)).astype(np.int8),
        rng.integers(-128, 128, (64, 16)).astype(np.int8),
    )
    D = (A.astype(np.int64) @ B.astype(np.int64)).astype(np.int32)
    return Brought(form=S8, arrays={"A": A, "B": B, "C": np.zeros((32, 16), np.int32), "D": D})


@LIST.right("two accumulators for even and odd steps, added in the end", _ORDER)
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    even = np.r_[0:16, 32:48]
    odd = np.r_[16:32, 48:64]
    first, second = (
        g.run(np.ascontiguousarray(g.A[:, k]), np.ascontiguousarray(g.B[k]), g.C * 0) for k in (even, odd)
    )
    return g.brought(first + second + g.C)


@LIST.right("split in two along k", _ORDER)
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    first, second = (
        g.run(np.ascontiguousarray(g.A[:, k]), np.ascontiguousarray(g.B[k]), g.C * 0)
        for k in (slice(0, 32), slice(32, 64))
    )
    return g.brought(g.C + first + second)


@LIST.right("cuBLAS in FP32: the exact sum rounded once", _ORDER)
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    D = g.A.astype(np.float64) @ g.B.astype(np.float64) + g.C
    return g.brought(D.astype(np.float32))


@LIST.right("a ragged product, 50 x 20 x 40")
def _(rng: Any) -> Brought:
    g = Gemm(rng, 50, 20, 40)
    return g.brought(g.run())


@LIST.right("stored as f16")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    return g.brought(g.run().astype(np.float16))


@LIST.right("stored as bf16, and widened again", r"as expected|rounded to bf16")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    return g.brought(g.run().astype(ml_dtypes.bfloat16).astype(np.float32))


@LIST.right("stored as e4m3, saturated at 448")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    g.A = (g.A * 16).astype(np.float16)
    D = np.clip(g.run(), -448, 448).astype(ml_dtypes.float8_e4m3fn)
    return g.brought(D, "--type", "e4m3")


@LIST.right("NaN and infinities where they belong")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    g.A[3, 5], g.B[7, 2], g.A[9, 9] = np.nan, np.inf, -np.inf
    return g.brought(g.run())


@LIST.right("all zeros")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    g.A[:], g.C[:] = 0, 0
    return g.brought(g.run())


@LIST.right("all ones")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    g.A[:], g.B[:] = 1, 1
    return g.brought(g.run())


@LIST.right("D is garbage: nothing may be claimed", r"no explanation")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    return g.brought(rng.standard_normal((64, 32)).astype(np.float32) * 8)


@LIST.right("D is garbage, stored as bf16", r"no explanation")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    return g.brought((rng.standard_normal((64, 32)) * 8).astype(ml_dtypes.bfloat16))


@LIST.right("D is garbage, k smaller than m and n: operands could be solved", r"no explanation")
def _(rng: Any) -> Brought:
    g = Gemm(rng, 64, 64, 32)
    return g.brought(rng.standard_normal((64, 64)).astype(np.float32) * 8)


@LIST.right("noise of an instrument: D is right but for 1 in a thousand", r"no explanation|right but for")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    return g.brought((g.run() * (1 + 1e-3 * rng.standard_normal((64, 32)))).astype(np.float32))


@LIST.right("a sparse product, metadata and all")
def _(rng: Any) -> Brought:
    form = warpsim.decode(SPARSE[0], target=SPARSE[1])
    A = warpsim.prune(rng.standard_normal((32, 64)).astype(np.float16), form)
    B, C = rng.standard_normal((64, 16)).astype(np.float16), rng.standard_normal((32, 16)).astype(np.float32)
    return Brought(form=SPARSE, arrays={"A": A, "B": B, "C": C, "D": warpsim.gemm(form, A, B, C)})


@LIST.right("a dump of A that holds it", r"holds the matrix")
def _(rng: Any) -> Brought:
    p = one(F16, rng)
    return Brought(form=F16, arrays={"A": p.A, "a": p.registers["a"]})


@LIST.right("a dump of A in which all values are equal", r"holds the matrix")
def _(rng: Any) -> Brought:
    form = warpsim.decode(F16[0], target=F16[1])
    A = np.full((32, 64), 1.5, np.float16)
    return Brought(form=F16, arrays={"A": A, "a": warpsim.pack(form, "a", A[:16, :16])})


@LIST.right("a dump of A that is garbage", r"no map|in no matrix|0 of")
def _(rng: Any) -> Brought:
    A = rng.standard_normal((16, 16)).astype(np.float16)
    return Brought(form=F16, arrays={"A": A, "a": rng.integers(0, 1 << 32, (32, 4), np.uint32)})
