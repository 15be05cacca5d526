"""D as kernels store it, in f16, bf16 or fp8, after scales, biases and activations; ragged sizes; pairs.

What a kernel computes is written in float64: the operands are small integers over 16, so that sums are exact
and the only roundings are those of the epilogue.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tools.mistakes.case import F16, SPARSE
from tools.mistakes.judging import Brought, Case

from .packings import two_of_four

LIST: list[Case] = []
BF16 = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "sm_80"


def stored(name: str, names: str, hints: str = "") -> Callable[[Any], Any]:
    """Register a function that makes what a user brings."""

    def register(make: Callable[[np.random.Generator], Brought]) -> Any:
        LIST.append(Case(name=name, make=make, names=names, hints=hints or names))
        return make

    return register


class Product:
    """A, B and C whose sums are exact in f32, and their steps of 16."""

    def __init__(self, rng: Any, m: int = 32, n: int = 16, k: int = 64) -> None:
        self.A = rng.integers(-64, 65, (m, k)) / 16.0
        self.B = rng.integers(-64, 65, (k, n)) / 16.0
        self.C = rng.integers(-64, 65, (m, n)) / 4.0

    def D(self, A: Any = None, B: Any = None, C: Any = None) -> Any:
        """Return the sum, exactly."""
        return (self.A if A is None else A) @ (self.B if B is None else B) + (self.C if C is None else C)

    def brought(self, D: Any, dtype: Any, **more: Any) -> Brought:
        """Return the product and D rounded to f32, and then to its own type."""
        given = {
            "A": self.A.astype(np.float16),
            "B": self.B.astype(np.float16),
            "C": self.C.astype(np.float32),
        }
        return Brought(form=F16, arrays=given | {"D": np.asarray(D).astype(np.float32).astype(dtype)}, **more)


def swapped(A: Any) -> Any:
    """Return A with a1 and a2 exchanged: the 8 x 8 blocks off the diagonal of each 16 x 16 tile."""
    out = A.copy()
    for r in range(0, A.shape[0] - 15, 16):
        for k in range(0, A.shape[1], 16):
            out[r + 8 : r + 16, k : k + 8], out[r : r + 8, k + 8 : k + 16] = (
                A[r : r + 8, k + 8 : k + 16],
                A[r + 8 : r + 16, k : k + 8],
            )
    return out


@stored("a right kernel that stores f16", r"as expected")
def _(rng: Any) -> Brought:
    p = Product(rng)
    return p.brought(p.D(), np.float16)


@stored("a right kernel that stores bf16, D given as f32 again", r"as expected|rounded to bf16")
def _(rng: Any) -> Brought:
    p = Product(rng)
    return p.brought(p.D().astype(np.float32).astype(ml_dtypes.bfloat16), np.float32)


@stored("a right kernel that stores e4m3", r"as expected|rounded to e4m3")
def _(rng: Any) -> Brought:
    p = Product(rng)
    p.A, p.B = p.A / 4, p.B / 4
    return p.brought(p.D().astype(np.float32).astype(ml_dtypes.float8_e4m3fn), np.float32)


@stored("a1 and a2 exchanged, stored as f16", r"A: regist")
def _(rng: Any) -> Brought:
    p = Product(rng)
    return p.brought(p.D(swapped(p.A)), np.float16)


@stored("step 2 left out, stored as bf16 (.npy of ml_dtypes)", r"step 2.*(left out|missing)")
def _(rng: Any) -> Brought:
    p = Product(rng)
    A = p.A.copy()
    A[:, 32:48] = 0
    return p.brought(p.D(A), ml_dtypes.bfloat16)


@stored("C forgotten, stored as f16", r"C.*(not added|forgotten)")
def _(rng: Any) -> Brought:
    p = Product(rng)
    return p.brought(p.D(C=p.C * 0), np.float16)


@stored("a bias of each column, stored as f16", r"column")
def _(rng: Any) -> Brought:
    p = Product(rng)
    return p.brought(p.D() + rng.integers(-32, 32, 16) / 4, np.float16)


@stored("alpha of 0.125, stored as bf16", r"0\.125|1/8")
def _(rng: Any) -> Brought:
    p = Product(rng)
    return p.brought(p.D() * 0.125, ml_dtypes.bfloat16)


@stored("ReLU, stored as f16", r"ReLU|negative values")
def _(rng: Any) -> Brought:
    p = Product(rng)
    return p.brought(np.maximum(p.D(), 0), np.float16)


@stored("SiLU, stored as bf16", r"SiLU|sigmoid")
def _(rng: Any) -> Brought:
    p = Product(rng)
    D = p.D() / 16
    p.A = p.A / 16
    p.C = p.C / 16
    return p.brought(D / (1 + np.exp(-D)), ml_dtypes.bfloat16)


@stored("dequantised per column (W8A8), stored as f16", r"(scale|factor).*column|column.*(scale|factor)")
def _(rng: Any) -> Brought:
    p = Product(rng)
    return p.brought(p.D(C=p.C * 0) * rng.uniform(0.01, 0.1, 16), np.float16, words=())


@stored("scaled per row, stored as e5m2", r"(scale|factor).*row|row.*(scale|factor)")
def _(rng: Any) -> Brought:
    p = Product(rng)
    p.C = p.C * 0
    return p.brought(p.D() * rng.uniform(0.1, 1, (32, 1)), ml_dtypes.float8_e5m2, words=("--type", "e5m2"))


@stored("b of the next step, stored as f16", r"B.*next step|step i \+ 1")
def _(rng: Any) -> Brought:
    p = Product(rng)
    return p.brought(p.D(B=np.roll(p.B, -16, axis=0)), np.float16)


@stored(
    "f16 after ReLU, and a1 and a2 exchanged", r"A: regist.*(ReLU|negative)|(ReLU|negative)[\s\S]*A: regist"
)
def _(rng: Any) -> Brought:
    p = Product(rng)
    return p.brought(np.maximum(p.D(swapped(p.A)), 0), np.float16)


@stored("ragged: M 28 and N 12, a1 and a2 exchanged, f32", r"A: regist")
def _(rng: Any) -> Brought:
    p = Product(rng, 28, 12)
    padded = np.concatenate([p.A, np.zeros((4, 64))])
    return p.brought(p.D(swapped(padded)[:28]), np.float32)


@stored("ragged: M 28 and N 12, step 1 twice, f16", r"step 1.*twice")
def _(rng: Any) -> Brought:
    p = Product(rng, 28, 12)
    return p.brought(p.D() + p.A[:, 16:32] @ p.B[16:32], np.float16)


@stored("ragged: the last row tile is not stored (zeros)", r"rows? (16|2[0-9]|28)|tile")
def _(rng: Any) -> Brought:
    p = Product(rng, 28, 16)
    D = p.D()
    D[16:] = 0
    return p.brought(D, np.float32)


@stored(
    "two mistakes: step 0 left out and C twice", r"(step 0|starts late)[\s\S]*C twice|C twice[\s\S]*step 0"
)
def _(rng: Any) -> Brought:
    p = Product(rng)
    A = p.A.copy()
    A[:, :16] = 0
    return p.brought(p.D(A) + p.C, np.float32)


@stored(
    "two mistakes: a1 and a2 exchanged, and the last step left out",
    r"A: regist[\s\S]*step 3|step 3[\s\S]*A: regist",
)
def _(rng: Any) -> Brought:
    p = Product(rng)
    A = swapped(p.A)
    A[:, 48:] = 0
    return p.brought(p.D(A), np.float32)


@stored(
    "two mistakes, stored as f16: C forgotten and step 1 twice",
    r"C not added[\s\S]*step 1 twice|step 1 twice[\s\S]*C not",
)
def _(rng: Any) -> Brought:
    p = Product(rng)
    return p.brought(p.D(C=p.C * 0) + p.A[:, 16:32] @ p.B[16:32], np.float16)


@stored("NaN in rows of B that no metadata selects, a row of D wrong", r"row 5")
def _(rng: Any) -> Brought:
    A, kept = two_of_four(rng, 16, 32)
    A[:, 3::4] = 0
    for r in range(16):
        for g in range(8):
            if kept[r, g, 1] == 3:
                kept[r, g] = (0, 1) if kept[r, g, 0] > 1 else (kept[r, g, 0], 2)
    A = (np.round(A * 16) / 16).astype(np.float16)
    B = (rng.integers(-64, 65, (32, 8)) / 16).astype(np.float16)
    D = (A.astype(np.float64) @ B.astype(np.float64)).astype(np.float32)
    D[5] = 0
    B[3::4] = np.nan
    return Brought(form=SPARSE, arrays={"A": A, "B": B, "C": np.zeros((16, 8), np.float32), "D": D})


@stored("Inf in A and B, ragged, C forgotten", r"C.*(not added|forgotten)")
def _(rng: Any) -> Brought:
    p = Product(rng)
    p.A[3, 5], p.B[9, 2] = np.inf, -np.inf
    with np.errstate(all="ignore"):
        return p.brought(p.D(C=p.C * 0), np.float32)


@stored("A padded by NaN (uninitialised) in ragged k", r"NaN|k|finite")
def _(rng: Any) -> Brought:
    p = Product(rng)
    D = p.D()
    D[7] = np.nan
    return p.brought(D, np.float32)
