"""A person of numerics: references in other precisions, promotions, roundings on the way."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

import warpsim
from tools.mistakes.case import E4M3
from tools.mistakes.judging import Brought

from .kernel_author import Gemm
from .listing import Listing

LIST = Listing()
TF32 = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "sm_80"


@LIST.mistake("D is NumPy's float32 product: only the order of sums differs", r"order|ulp|float32|last bit")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    g.C[:] = 0
    return g.brought(g.A.astype(np.float32) @ g.B.astype(np.float32))


@LIST.mistake("D is a float64 reference, rounded to f32", r"float64|exact|rounded once")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    exact = g.A.astype(np.float64) @ g.B.astype(np.float64) + g.C
    return g.brought(exact.astype(np.float32))


@LIST.mistake("tf32: A is rounded to nearest, and B cut", r"(A|B).*(cut|round|tf32)", locates=r"tf32")
def _(rng: Any) -> Brought:
    form = warpsim.decode(TF32[0], target=TF32[1])
    A, B = rng.standard_normal((32, 32)).astype(np.float32), rng.standard_normal((32, 16)).astype(np.float32)
    C = np.zeros((32, 16), np.float32)
    cut = (B.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    nearest = ((A.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)
    return Brought(form=TF32, arrays={"A": A, "B": B, "C": C, "D": warpsim.gemm(form, nearest, cut, C)})


@LIST.mistake("D is rounded to bf16 at random, up or down", r"bf16")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    words = g.run().view(np.uint32)
    up = rng.integers(0, 0x10000, words.shape).astype(np.uint32)
    return g.brought(((words + up) & np.uint32(0xFFFF0000)).view(np.float32))


@LIST.mistake(
    "fp8: partial sums of 128 along k are added up in f32 outside",
    r"(partial|promot|accumulat|split|sums?).*(128|4 steps|every)",
    locates=r"ulp|order",
)
def _(rng: Any) -> Brought:
    form = warpsim.decode(E4M3[0], target=E4M3[1])
    A = rng.standard_normal((32, 512)).astype(ml_dtypes.float8_e4m3fn)
    B = rng.standard_normal((512, 16)).astype(ml_dtypes.float8_e4m3fn)
    zero = np.zeros((32, 16), np.float32)
    D = zero.copy()
    for at in range(0, 512, 128):
        D += warpsim.gemm(form, A[:, at : at + 128].copy(), B[at : at + 128].copy(), zero)
    return Brought(form=E4M3, arrays={"A": A, "B": B, "C": zero, "D": D})


@LIST.mistake("the scores are in base 2: 0.125 times log2(e)", r"0\.1803|log2|1\.4427")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    g.C[:] = 0
    return g.brought(g.run() * np.float32(0.125 * 1.4426950408889634))


@LIST.mistake(
    "A is scaled by 0.3 and rounded to f16 before the product", r"A.*(0\.3|scale|times)", locates=r"0\.3"
)
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    return g.brought(g.run(A=(g.A * np.float16(0.3)).astype(np.float16)))


@LIST.mistake("the products are squared sums: D holds D squared", r"squar|D \* D|power")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    D = g.run()
    return g.brought(D * D)


@LIST.mistake("B's subnormal f16 are flushed to zero", r"B.*(subnormal|flush)")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    g.B = (g.B * np.float16(2**-14)).astype(np.float16)
    tiny = np.abs(g.B.astype(np.float32)) < 2**-14
    g.C = (g.C * np.float32(2**-16)).astype(np.float32)
    return g.brought(g.run(B=np.where(tiny, np.float16(0), g.B)))
