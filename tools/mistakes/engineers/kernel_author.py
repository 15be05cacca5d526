"""The author of a CUDA kernel, who compares whole matrices: leading dimensions, tiles, pipelines, epilogues.

What the kernel computed is a product of the matrices that it really read, by the hardware's arithmetic.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

import warpsim
from tools.mistakes.case import F16
from tools.mistakes.judging import Brought, said

from .listing import Listing

LIST = Listing()
FORM = warpsim.decode(F16[0], target=F16[1])
BF16 = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "sm_80"


class Gemm:
    """A (m, k), B (k, n) and C (m, n), normally distributed, as f16 and f32."""

    def __init__(self, rng: Any, m: int = 64, n: int = 32, k: int = 64) -> None:
        self.rng, self.m, self.n, self.k = rng, m, n, k
        self.A = rng.standard_normal((m, k)).astype(np.float16)
        self.B = rng.standard_normal((k, n)).astype(np.float16)
        self.C = rng.standard_normal((m, n)).astype(np.float32)

    def run(self, A: Any = None, B: Any = None, C: Any = None) -> Any:
        """Return what the tensor cores make of what was read."""
        A, B, C = (own if x is None else x for x, own in ((A, self.A), (B, self.B), (C, self.C)))
        return warpsim.gemm(FORM, A.astype(np.float16), B.astype(np.float16), C.astype(np.float32))

    def brought(self, D: Any, *words: str, **other: Any) -> Brought:
        """Return the right operands and this D."""
        arrays = {"A": self.A, "B": self.B, "C": self.C} | other | {"D": D}
        return Brought(form=F16, arrays=arrays, words=words)


def strided(flat: Any, rows: int, columns: int, ld: int, start: int = 0) -> Any:
    """Return the matrix that lies in a memory at this leading dimension; beyond its end are zeros."""
    at = start + np.arange(rows)[:, None] * ld + np.arange(columns)
    memory = np.concatenate([flat.reshape(-1), np.zeros(at.max() + 1, flat.dtype)])
    return memory[at]


@LIST.mistake("B stored with rows padded by 8, read as dense", r"B.*(stride|leading|pad)")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    padded = np.pad(g.B, [(0, 0), (0, 8)])
    return g.brought(g.run(B=strided(padded, g.k, g.n, g.n)))


@LIST.mistake("A read with lda = K + 8, stored dense", r"A.*(stride|leading|pad)")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    return g.brought(g.run(A=strided(g.A, g.m, g.k, g.k + 8)))


@LIST.mistake("C read with ldc = N + 4", r"C.*(stride|leading|pad)")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    return g.brought(g.run(C=strided(g.C, g.m, g.n, g.n + 4)))


@LIST.mistake("D written with ldd = N + 8 and read back as dense", r"D.*(stride|leading|pad)")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    memory = np.zeros((g.m * (g.n + 8),), np.float32)
    memory.reshape(g.m, -1)[:, : g.n] = g.run()
    return g.brought(memory[: g.m * g.n].reshape(g.m, g.n))


@LIST.mistake("accumulators are not cleared between 32 x 16 tiles, row after row", r"(not cleared|clear)")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    D, before = np.zeros((g.m, g.n), np.float32), np.zeros((32, 16), np.float32)
    for r in range(0, g.m, 32):
        for c in range(0, g.n, 16):
            before = warpsim.gemm(FORM, g.A[r : r + 32], g.B[:, c : c + 16].copy(), before)
            D[r : r + 32, c : c + 16] = before
    return g.brought(D, C=np.zeros((g.m, g.n), np.float32))


@LIST.mistake(
    "a persistent CTA keeps its accumulators: 16 x 8 tiles down the columns", r"(not cleared|clear)"
)
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    D, before = np.zeros((g.m, g.n), np.float32), np.zeros((16, 8), np.float32)
    for c in range(0, g.n, 8):
        for r in range(0, g.m, 16):
            before = warpsim.gemm(FORM, g.A[r : r + 16], g.B[:, c : c + 8].copy(), before)
            D[r : r + 16, c : c + 8] = before
    return g.brought(D, C=np.zeros((g.m, g.n), np.float32))


@LIST.mistake(
    "three stages: A is read one stage ahead, the last step gets a stage that was not refilled",
    r"A of (step|the next)",
    locates=r"A.*k",
)
def _(rng: Any) -> Brought:
    g = Gemm(rng, k=96)
    blocks = [g.A[:, 16 * s : 16 * s + 16] for s in range(6)]
    return g.brought(g.run(A=np.concatenate([*blocks[1:], blocks[3]], axis=1)))


@LIST.mistake(
    "no wait before the first stage: step 0 reads zeros of A", r"step 0.*(left out|missing|starts late)"
)
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    A = g.A.copy()
    A[:, :16] = 0
    return g.brought(g.run(A=A))


@LIST.mistake(
    "ldmatrix.x2 for .x4: b2 and b3 repeat b0 and b1, so odd column tiles are even ones",
    said("b", "sources", tiles=[0, 0, 2, 2]),
)
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    B = g.B.copy()
    for c in range(0, g.n, 16):
        B[:, c + 8 : c + 16] = B[:, c : c + 8]
    return g.brought(g.run(B=B))


@LIST.mistake(
    "K = 70: the last step reads on into the next row of A and of B transposed",
    r"k.*(tail|residue|rest|beyond)|tail.*(next|beyond|not zero)",
    locates=r"tail|k 64|beyond",
)
def _(rng: Any) -> Brought:
    g = Gemm(rng, k=70)
    A = strided(g.A, g.m, 80, 70)
    B = strided(np.ascontiguousarray(g.B.T), g.n, 80, 70).T
    return g.brought(warpsim.gemm(FORM, A, np.ascontiguousarray(B), g.C))


@LIST.mistake("K = 72: integer division drops the last eight", r"tail.*left out|k.*64")
def _(rng: Any) -> Brought:
    g = Gemm(rng, k=72)
    return g.brought(g.run(A=g.A[:, :64], B=g.B[:64]))


@LIST.mistake(
    "split along k in three with overlapping ends: steps 2 and 4 are added twice",
    r"steps? 2.*4.*(twice|times 2)",
)
def _(rng: Any) -> Brought:
    g = Gemm(rng, k=96)
    parts = [(0, 48), (32, 80), (64, 96)]
    D = g.C.copy()
    for first, last in parts:
        D = D + g.run(g.A[:, first:last].copy(), g.B[first:last].copy(), g.C * 0)
    return g.brought(D)


@LIST.mistake(
    "pairs of warps are exchanged: rows 0-15 and 16-31 change places",
    said("d", "xor", field="row tile", by=1),
)
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    D = g.run().reshape(-1, 2, 16, g.n)[:, ::-1].reshape(g.m, g.n)
    return g.brought(D)


@LIST.mistake(
    "the block index of A is dropped: every row of tiles reads A's first 32 rows", r"(rows of A|A of).*"
)
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    return g.brought(g.run(A=np.tile(g.A[:32], (2, 1))))


@LIST.mistake(
    "the scale of 0.5 is applied in the loop, after every step",
    r"scale.*(loop|step)|step.*(times|factor).*0\.5",
)
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    D = g.C * 0
    for s in range(0, g.k, 16):
        D = g.run(g.A[:, s : s + 16].copy(), g.B[s : s + 16].copy(), D) * np.float32(0.5)
    return g.brought(D, C=g.C * 0)


@LIST.mistake("B is stored [N][K] and read [K][N]", r"B.*(major|transpos|order)")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    return g.brought(g.run(B=np.ascontiguousarray(g.B.T).reshape(g.k, g.n)))


@LIST.mistake("the bias of the columns is added to the rows", r"(bias|C).*row")
def _(rng: Any) -> Brought:
    g = Gemm(rng, 32, 32)
    bias = rng.standard_normal(32).astype(np.float32)
    D = g.run(C=np.broadcast_to(bias[:, None], (32, 32)).copy())
    return g.brought(D, C=np.broadcast_to(bias, (32, 32)).copy())


@LIST.mistake("alpha 0.75 and beta 0.5, where both should be 1", r"0\.75[\s\S]*0\.5")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    return g.brought(np.float32(0.75) * g.run(C=g.C * 0) + np.float32(0.5) * g.C)


@LIST.mistake("ReLU before the bias instead of after it", r"ReLU.*(before|then|C|bias)")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    return g.brought(np.maximum(g.run(C=g.C * 0), 0) + g.C)


@LIST.mistake("C is read transposed", said("c", "by columns", stride=48, own=48))
def _(rng: Any) -> Brought:
    g = Gemm(rng, 48, 48)
    return g.brought(g.run(C=np.ascontiguousarray(g.C.T)))


@LIST.mistake(
    "D is cut to bf16 by a shift instead of rounded",
    r"(truncat|cut|toward zero).*bf16|bf16.*(truncat|cut|toward zero)",
)
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    D = (g.run().view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    return g.brought(D.astype(ml_dtypes.bfloat16))


@LIST.mistake("f16 accumulators in every step, D widened to f32", r"accumulator type.*f16|f16.*accumul")
def _(rng: Any) -> Brought:
    g = Gemm(rng, k=128)
    half = warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", target="sm_80")
    D = warpsim.gemm(half, g.A, g.B, g.C.astype(np.float16)).astype(np.float32)
    return g.brought(D, C=g.C.astype(np.float16).astype(np.float32))


@LIST.mistake(
    "stages of 32 along k: the second half of A's stage repeats the first",
    r"A of the first step of|A.*(not advanced|stage)",
)
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    A = g.A.reshape(g.m, -1, 2, 16).copy()
    A[:, :, 1] = A[:, :, 0]
    return g.brought(g.run(A=A.reshape(g.m, g.k)))


@LIST.mistake(
    "cp.async of 8 bytes instead of 16: the second half of every chunk of A is stale zeros",
    r"A.*(column|k).*(zero|missing)|k .*(zero|missing|left out)",
)
def _(rng: Any) -> Brought:
    g = Gemm(rng, 64, 64, 48)
    A = g.A.reshape(g.m, -1, 8).copy()
    A[:, :, 4:] = 0
    return g.brought(g.run(A=A.reshape(g.m, g.k)))


@LIST.mistake(
    "B's shared tile is swizzled by (row >> 1) & 3 on the store only",
    r"B.*(swizzle|chunk)",
    locates=r"B.*(column|row)",
)
def _(rng: Any) -> Brought:
    g = Gemm(rng, 64, 32, 64)
    chunk = np.arange(32) // 8 ^ (np.arange(64)[:, None] >> 1 & 3)
    at = chunk * 8 + np.arange(32) % 8
    return g.brought(g.run(B=np.take_along_axis(g.B, at, axis=1)))
