"""Mistakes of loops along k of wgmma: tiles in shared memory behind descriptors, stages, warpgroups.

Tiles are what Hopper kernels have: K-major, 128 bytes of k in a row, swizzled in 128 bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import warpsim
from tools.mistakes.case import WGMMA, WGMMA_E4M3, WGMMA_S8, WGMMA_SPARSE, WGMMA_TF32, WGMMA_WIDE
from tools.mistakes.judging import Case, Records, said

from .loops import chained, cut, loop

LIST: list[Case] = []
ROW = 128  # bytes of a row of a tile in shared memory
WIDTHS = {"128B": 128, "64B": 64, "32B": 32, "none": 16}
CHUNKS = {"128B": 7, "64B": 3, "32B": 1, "none": 0}  # what the row's number is masked with


def product(name: str, names: str | Records, form: Any = WGMMA, **shape: int) -> Callable[[Any], Any]:
    """Register a mistake of a loop of wgmma: 64 x 64 and eight steps unless ``shape`` states others."""
    shape = {"m": 64, "n": 64, "steps": 8} | shape
    return loop(name, names, form=form, listed=LIST, **shape)


def stored(tile: Any, swizzle: str = "128B") -> Any:
    """Return the bytes of a tile ``(rows, 128 bytes of k)`` in shared memory: chunk c of row r at c xor r."""
    rows = np.ascontiguousarray(tile).view(np.uint8)
    r, b = np.indices(rows.shape)
    memory = np.zeros(2 * rows.size, np.uint8)
    memory[r * ROW + ((b // 16 ^ r & CHUNKS[swizzle]) * 16 + b % 16)] = rows
    return memory


def loaded(memory: Any, rows: int, start: int, size: int, dtype: Any, *, swizzle: str) -> Any:
    """Return what a descriptor of that swizzle reads: ``size`` bytes of k from ``start`` on, SBO 1024."""
    r, b = np.indices((rows, size))
    at = start + r // 8 * 1024 + r % 8 * WIDTHS[swizzle] + b
    at ^= (at >> 7 & CHUNKS[swizzle]) << 4
    return memory[at % len(memory)].view(dtype)


def read(x: Any, steps: int, load: Callable[[Any, int], Any]) -> list[Any]:
    """Return x ``(rows, k)`` as every step reads it: ``load(memory of its stage, step in the stage)``."""
    each = x.shape[1] // steps
    stage = ROW // x.itemsize
    found = []
    for at in range(steps):
        first = at * each // stage * stage
        found.append(load(stored(x[:, first : first + stage]), at * each % stage // each))
    return found


def columns(B: Any, steps: int, load: Callable[[Any, int], Any]) -> list[Any]:
    """Return B ``(k, n)`` as every step reads it: ``read`` of its columns."""
    return [x.T for x in read(np.ascontiguousarray(B.T), steps, load)]


def with_b(form: Any, A: Any, B: Any, C: Any, load: Callable[[Any, int], Any]) -> Any:
    """Return D where ``load`` reads B's tile."""
    pairs = cut(form, A, B)
    read_b = columns(B, len(pairs), load)
    return chained(form, [(a, b) for (a, _), b in zip(pairs, read_b, strict=True)], C)


def with_a(form: Any, A: Any, B: Any, C: Any, load: Callable[[Any, int], Any]) -> Any:
    """Return D where ``load`` reads A's tile."""
    pairs = cut(form, A, B)
    return chained(form, [(a, b) for (_, b), a in zip(pairs, read(A, len(pairs), load), strict=True)], C)


# --- descriptors ---------------------------------------------------------------------------------------


@product("B stored in 128B, its descriptor says 64B", said("", "candidate"))
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return with_b(form, A, B, C, lambda m, s: loaded(m, 64, 32 * s, 32, B.dtype, swizzle="64B"))


@product("A stored in 128B, its descriptor says none", said("", "candidate"))
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    def load(memory: Any, step: int) -> Any:
        r, b = np.indices((64, 32))
        return memory[32 * step + r // 8 * 1024 + r % 8 * 16 + b // 16 * 16 + b % 16].view(A.dtype)  # LBO 16

    return with_a(form, A, B, C, load)


@product("A stored without swizzle", said("a", "swizzled", width=3))
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    def load(memory: Any, step: int) -> Any:
        plain = loaded(memory, 64, 0, ROW, A.dtype, swizzle="128B")
        return loaded(stored(plain, "none"), 64, 32 * step, 32, A.dtype, swizzle="128B")

    return with_a(form, A, B, C, load)


@product("A's start address is not advanced along k", said("a", "sources", order=[0, 0, 0, 0, 4, 4, 4, 4]))
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return with_a(form, A, B, C, lambda m, s: loaded(m, 64, 0, 32, A.dtype, swizzle="128B"))


@product("B's start address is advanced by 64 bytes, not 32", said("", "candidate"))
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return with_b(form, A, B, C, lambda m, s: loaded(m, 64, 64 * s, 32, B.dtype, swizzle="128B"))


@product("B's stride byte offset is 512", said("", "candidate"))
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    def load(memory: Any, step: int) -> Any:
        r, b = np.indices((64, 32))
        at = 32 * step + r // 8 * 512 + r % 8 * ROW + b
        return memory[at ^ (at >> 7 & 7) << 4].view(B.dtype)

    return with_b(form, A, B, C, load)


@product(
    "B is MN-major in memory, the transpose bit is missing", said("b", "nested", field="row", other="column")
)
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    pairs = [(a, np.ascontiguousarray(b.T).reshape(b.shape)) for a, b in cut(form, A, B)]
    return chained(form, pairs, C)


@product("imm-scale-b is -1", said("", "steps", weights=[-1.0] * 8, c=1.0))
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return chained(form, [(a, -b) for a, b in cut(form, A, B)], C)


# --- tiles ---------------------------------------------------------------------------------------------


@product("rows of A's tile are one off", said("a", "rotated", field="row", by=1))
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return chained(form, cut(form, np.roll(A, -1, axis=0), B), C)


@product(
    "the last eight rows of B's tile are zero",
    (*said("b", "zero"), *said("b", "where", field="column block of 8", value=7)),
)
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    B = B.copy()
    B[:, 56:] = 0
    return chained(form, cut(form, A, B), C)


@product("row 37 of A's tile is zero", said("a", "zero") + said("a", "where", field="row", value=37))
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    A = A.copy()
    A[37] = 0
    return chained(form, cut(form, A, B), C)


@product("8 x 8 blocks of A are transposed", said("a", "transposed", width=3))
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    blocks = A.reshape(8, 8, -1, 8).transpose(0, 3, 2, 1).reshape(A.shape)
    return chained(form, cut(form, blocks, B), C)


@product("a0 and a1 exchanged, A in registers", said("a", "xor", field="row", by=8))
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    rows = np.arange(64).reshape(4, 2, 8)[:, ::-1].reshape(-1)  # rows g and g + 8
    return chained(form, cut(form, A[rows], B), C)


@product(
    "fp8 P from accumulators, k permuted",
    said("a", "renumbered", each=1, **{"as": "matrix", "from": "accumulators"}),
    form=WGMMA_E4M3,
    steps=4,
)
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    order = np.array([p % 4 // 2 * 8 + p // 4 % 4 * 2 + p % 2 + p // 16 * 16 for p in range(32)])
    return chained(form, [(a[:, order], b) for a, b in cut(form, A, B)], C)


@product("both halves of B's n exchanged", said("b", "sources", tiles=[1, 0]), m=128, n=128)
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return chained(form, cut(form, A, np.roll(B, 64, axis=1)), C)


@product(
    "both warpgroups read the first A",
    said("a", "sources", tiles=[0, 0]),
    form=WGMMA_WIDE,
    m=128,
    n=128,
    steps=4,
)
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return chained(form, cut(form, np.concatenate([A[:64], A[:64]]), B), C)


@product("warps 1 and 2 exchanged when D is stored", said("d", "swapped", field="warp", first=1, second=2))
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    D = chained(form, cut(form, A, B), C)
    return D.reshape(4, 16, 64)[[0, 2, 1, 3]].reshape(64, 64)


@product("one warp's C is zero", said("d", "without C") + said("d", "where", field="warp", value=2))
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    C = C.copy()
    C[32:48] = 0
    return chained(form, cut(form, A, B), C)


# --- steps and stages ----------------------------------------------------------------------------------


@product(
    "step 3 left out, 128 x 128 x 64",
    said("", "steps", weights=[1.0, 1.0, 1.0, 0.0], c=1.0),
    form=WGMMA_WIDE,
    m=128,
    n=128,
    steps=4,
)
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return chained(form, cut(form, A, B)[:3], C)


@product("step 6 twice", said("", "steps", weights=[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 1.0], c=1.0))
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    steps = cut(form, A, B)
    return chained(form, [*steps[:7], steps[6], *steps[7:]], C)


@product(
    "the last stage left out", said("", "steps", weights=[1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0], c=1.0)
)
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return chained(form, cut(form, A, B)[:4], C)


@product("stage 1 is read before it is loaded", said("a and b", "sources", order=[0, 1, 2, 3, 0, 1, 2, 3]))
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    steps = cut(form, A, B)
    return chained(form, steps[:4] + steps[:4], C)


@product("B of the stage before", said("b", "sources"), steps=12)
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    steps = cut(form, A, B)
    return chained(form, [(a, steps[max(i - 4, i % 4)][1]) for i, (a, _) in enumerate(steps)], C)


@product("two stages exchanged for A", said("a", "sources", order=[4, 5, 6, 7, 0, 1, 2, 3]))
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    steps = cut(form, A, B)
    return chained(form, [(steps[i ^ 4][0], b) for i, (_, b) in enumerate(steps)], C)


@product("step 5 reads B of step 4", said("b", "sources", order=[0, 1, 2, 3, 4, 4, 6, 7]))
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    steps = cut(form, A, B)
    steps[5] = steps[5][0], steps[4][1]
    return chained(form, steps, C)


@product(
    "the tail of k left out",
    said("", "steps", weights=[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0], c=1.0),
    form=WGMMA_S8,
)
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return chained(form, cut(form, A[:, :224], B[:224]), C)


@product(
    "scale-d is 0 in every step", said("", "steps", weights=[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], c=0.0)
)
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return chained(form, cut(form, A, B)[7:], np.zeros_like(C))


@product(
    "scale-d is 0 in the first step of each stage",
    said("", "steps", weights=[0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0], c=0.0),
)
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return chained(form, cut(form, A, B)[4:], np.zeros_like(C))


@product("tf32 not rounded in every step", said("a and b", "values", **{"to even": False}), form=WGMMA_TF32)
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    def rounded(x: Any) -> Any:
        words = np.ascontiguousarray(x, np.float32).view(np.uint32) + np.uint32(0x1000)
        return (words & np.uint32(0xFFFFE000)).view(np.float32)

    return chained(form, cut(form, rounded(A), rounded(B)), C)


# --- sparse --------------------------------------------------------------------------------------------


def sparse(form: Any, A: Any, B: Any, C: Any, change: Callable[[list[Any], int], tuple[Any, Any]]) -> Any:
    """Return D where ``change`` makes the values and indices of every step from those of all steps."""
    parts = [warpsim.compress(a, form) for a, _ in cut(form, A, B)]
    D = C
    for at, (_, b) in enumerate(cut(form, A, B)):
        D = warpsim.gemm(form, change(parts, at), b, D)
    return D


@product(
    "metadata of the step before", said("metadata", "sources", order=[0, 0, 1, 2]), form=WGMMA_SPARSE, steps=4
)
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return sparse(form, A, B, C, lambda parts, at: (parts[at][0], parts[max(at - 1, 0)][1]))


@product(
    "metadata of step 2 in step 3",
    said("metadata", "sources", order=[0, 1, 2, 2]),
    form=WGMMA_SPARSE,
    steps=4,
)
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return sparse(form, A, B, C, lambda parts, at: (parts[at][0], parts[2 if at == 3 else at][1]))


@product(
    "metadata of the next warp", said("metadata", "rotated", field="warp", by=1), form=WGMMA_SPARSE, steps=4
)
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return sparse(form, A, B, C, lambda parts, at: (parts[at][0], np.roll(parts[at][1], -16, axis=0)))


@product(
    "rows g and g + 8 of the metadata exchanged",
    said("metadata", "xor", field="index", by=8),
    form=WGMMA_SPARSE,
    steps=4,
)
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    rows = np.arange(64).reshape(4, 2, 8)[:, ::-1].reshape(-1)
    return sparse(form, A, B, C, lambda parts, at: (parts[at][0], parts[at][1][rows]))


# --- C and the epilogue --------------------------------------------------------------------------------


@product(
    "C forgotten", said("", "c", weights=[1.0, 1.0, 1.0, 1.0], c=0.0), form=WGMMA_WIDE, m=128, n=128, steps=4
)
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return chained(form, cut(form, A, B), np.zeros_like(C))


@product("C twice", said("", "c", weights=[1.0, 1.0, 1.0, 1.0], c=2.0), steps=4)
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return chained(form, cut(form, A, B), C) + C


@product("garbage in the accumulators", r"C.*garbage", steps=4)
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return chained(form, cut(form, A, B), (rng.standard_normal(C.shape) * 30).astype(np.float32))


@product("beta is 3", said("", "c", weights=[1.0, 1.0, 1.0, 1.0], c=3.0), steps=4)
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return chained(form, cut(form, A, B), np.float32(3) * C)


@product("GELU in the epilogue", r"GELU", steps=4)
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    D = chained(form, cut(form, A, B), C).astype(np.float64)
    return (0.5 * D * (1 + np.tanh(0.7978845608 * (D + 0.044715 * D**3)))).astype(np.float32)


@product("SiLU in the epilogue", r"SiLU", steps=4)
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    D = chained(form, cut(form, A, B), C).astype(np.float64)
    return (D / (1 + np.exp(-D))).astype(np.float32)


@product("every row times a scale of its own", r"each row.*(factor|scale)|scale per row", steps=4)
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    scale = rng.uniform(0.5, 2, (64, 1)).astype(np.float32)
    return chained(form, cut(form, A, B), np.zeros_like(C)) * scale


@product("a bias of each row", r"bias per row|each row", steps=4)
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return chained(form, cut(form, A, B), C) + rng.integers(-8, 8, (64, 1)).astype(np.float32)


@product("fp8 promoted every four steps", said("", "sums"), form=WGMMA_E4M3)
def _(form: Any, A: Any, B: Any, C: Any, rng: Any) -> Any:
    return warpsim.gemm(form, A, B, C, promote_every=4)
