"""An engineer of quantised inference: zero points, groups of scales, orders of nibbles, fp8 types."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

import warpsim
from tools.mistakes.case import E4M3, F16, MXF8, S8
from tools.mistakes.judging import Brought, said

from .kernel_author import Gemm
from .listing import Listing

LIST = Listing()
U8S8 = "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32", "sm_80"


def integers(rng: Any, form: Any, m: int = 48, n: int = 40, k: int = 96) -> tuple[Any, Any, Any]:
    """Return A and B of eight bits over their whole range, and C of zeros."""
    low, high = (0, 256) if form is U8S8 else (-128, 128)
    A = rng.integers(low, high, (m, k)).astype(np.uint8 if form is U8S8 else np.int8)
    B = rng.integers(-128, 128, (k, n)).astype(np.int8)
    return A, B, np.zeros((m, n), np.int32)


def brought(form: Any, A: Any, B: Any, C: Any, D: Any, **more: Any) -> Brought:
    """Return the operands and D."""
    return Brought(form=form, arrays={"A": A, "B": B, "C": C, "D": D} | more)


def product(A: Any, B: Any) -> Any:
    """Return the sums, which s32 holds."""
    return (A.astype(np.int64) @ B.astype(np.int64)).astype(np.int32)


@LIST.mistake("u8 activations had 128 subtracted, as if they were s8 with an offset", r"A.*(zero point|128)")
def _(rng: Any) -> Brought:
    A, B, C = integers(rng, U8S8)
    return brought(U8S8, A, B, C, product(A.astype(np.int64) - 128, B))


@LIST.mistake("the zero point of the weights, 8, is not subtracted", r"B.*(zero point|8 (more|less))")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    g.B = rng.integers(-8, 8, g.B.shape).astype(np.float16)
    return g.brought(g.run(B=g.B + np.float16(8)))


@LIST.mistake(
    "AWQ's order of nibbles across n is not undone", said("b", "bits", field="lane", order=[0, 1, 4, 2, 3])
)
def _(rng: Any) -> Brought:
    g = Gemm(rng, 48, 64, 128)
    g.B = (rng.integers(0, 16, g.B.shape) - 8).astype(np.float16)
    order = np.arange(64).reshape(-1, 8)[:, [0, 2, 4, 6, 1, 3, 5, 7]].reshape(-1)
    return g.brought(g.run(B=g.B[:, order]))


@LIST.mistake(
    "groups of 32 along k use the scale of the next group",
    r"(k|step).*(scale|factor|times)",
)
def _(rng: Any) -> Brought:
    g = Gemm(rng, 64, 48, 128)
    q = rng.integers(-8, 8, g.B.shape)
    scale = np.array([0.5, 0.125, 1.0, 0.25])
    g.B = (q * np.repeat(scale, 32)[:, None]).astype(np.float16)
    return g.brought(g.run(B=(q * np.repeat(np.roll(scale, -1), 32)[:, None]).astype(np.float16)))


@LIST.mistake("the scale of the last group of 32 is left out", r"(k|step).*(scale|factor|times)")
def _(rng: Any) -> Brought:
    g = Gemm(rng, 64, 48, 128)
    B = g.B.copy()
    B[96:] = (B[96:].astype(np.float32) * 4).astype(np.float16)
    return g.brought(g.run(B=B))


@LIST.mistake("e5m2 bytes of B are multiplied as e4m3", r"B.*e5m2|type of B.*e")
def _(rng: Any) -> Brought:
    form = warpsim.decode(E4M3[0], target=E4M3[1])
    A = rng.standard_normal((32, 64)).astype(ml_dtypes.float8_e4m3fn)
    wide = rng.standard_normal((64, 16)).astype(ml_dtypes.float8_e5m2)
    read = wide.view(ml_dtypes.float8_e4m3fn)
    B = wide.astype(np.float32).astype(ml_dtypes.float8_e4m3fn)
    C = np.zeros((32, 16), np.float32)
    return brought(E4M3, A.view(np.uint8), B.view(np.uint8), C, warpsim.gemm(form, A, read, C))


@LIST.mistake(
    "the four bytes of every word of B along k are in reverse order",
    r"B.*(byte|reverse|order)",
    locates=r"B.*k",
)
def _(rng: Any) -> Brought:
    A, B, C = integers(rng, S8)
    return brought(S8, A, B, C, product(A, B.reshape(-1, 4, 40)[:, ::-1].reshape(96, 40)))


@LIST.mistake(
    "A is shuffled along k for the weights of another kernel: pairs of 8 exchanged in 16",
    said("a", "xor", field="register", by=2),
)
def _(rng: Any) -> Brought:
    g = Gemm(rng, 64, 80, 64)
    A = g.A.reshape(64, -1, 2, 8)[:, :, ::-1].reshape(64, 64)
    return g.brought(g.run(A=A))


@LIST.mistake("A's s8 values pass through u8: negative values are 256 more", r"type of A.*u8|A.*u8")
def _(rng: Any) -> Brought:
    A, B, C = integers(rng, S8)
    return brought(S8, A, B, C, product(A.view(np.uint8), B))


@LIST.mistake(
    "per-column scales are applied to a column further on", r"column.*(scale|factor)|(scale|factor).*column"
)
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    scale = rng.uniform(0.5, 2, g.n).astype(np.float32)
    g.C[:] = 0
    return g.brought(g.run() * np.roll(scale, 1))


@LIST.mistake(
    "the scales of MX blocks are read a chunk late, in every step", r"scales? of A.*(step|byte|chunk)|scale_a"
)
def _(rng: Any) -> Brought:
    form = warpsim.decode(MXF8[0], target=MXF8[1])
    A = rng.standard_normal((32, 128)).astype(ml_dtypes.float8_e4m3fn)
    B = rng.standard_normal((128, 16)).astype(ml_dtypes.float8_e4m3fn)
    sa = rng.integers(120, 134, (32, 4)).astype(np.uint8)
    sb = rng.integers(120, 134, (4, 16)).astype(np.uint8)
    C = np.zeros((32, 16), np.float32)
    D = warpsim.gemm(form, A, B, C, scale_a=np.roll(sa, 1, axis=1), scale_b=sb)
    return brought(MXF8, A.view(np.uint8), B.view(np.uint8), C, D, scale_a=sa, scale_b=sb)


@LIST.mistake(
    "the 0x6400 trick subtracts 1024 and not 1032: weights are 8 more", r"B.*(8 more|zero point|1032)"
)
def _(rng: Any) -> Brought:
    g = Gemm(rng, 32, 64, 64)
    g.B = rng.integers(-8, 8, g.B.shape).astype(np.float16)
    D = g.run(B=g.B + np.float16(8))
    return Brought(form=F16, arrays={"A": g.A, "B": g.B, "C": g.C, "D": D.astype(np.float16)})
