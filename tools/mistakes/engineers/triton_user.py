"""A user of Triton: pointers that advance, program ids, tl.dot with acc, the autotuner."""

from __future__ import annotations

from typing import Any

import numpy as np

from tools.mistakes.case import S8
from tools.mistakes.judging import Brought

from .kernel_author import Gemm
from .listing import Listing
from .quantizer import integers, product

LIST = Listing()
BLOCK = 32


@LIST.mistake("a_ptrs += BLOCK_K * stride_am: A moves down by rows", r"A.*row", locates=r"A")
def _(rng: Any) -> Brought:
    g = Gemm(rng, 64, 48, 128)
    memory = np.concatenate([g.A, np.zeros((128, 128), np.float16)])
    A = np.concatenate([memory[BLOCK * s : BLOCK * s + 64, :BLOCK] for s in range(4)], axis=1)
    return g.brought(g.run(A=A))


@LIST.mistake(
    "pid_m and pid_n are exchanged where D is stored: tiles of 32", r"tile.*(exchanged|transpos)|D.*tile"
)
def _(rng: Any) -> Brought:
    g = Gemm(rng, 96, 96, 64)
    D = g.run().reshape(3, BLOCK, 3, BLOCK).transpose(2, 1, 0, 3).reshape(96, 96)
    return g.brought(np.ascontiguousarray(D))


@LIST.mistake(
    "acc += tl.dot(a, b, acc): what is there is doubled in every step", r"(doubl|twice|times 2|\* 2)"
)
def _(rng: Any) -> Brought:
    g = Gemm(rng, 64, 48, 96)
    acc = g.C
    for s in range(3):
        part = slice(BLOCK * s, BLOCK * s + BLOCK)
        acc = acc + g.run(g.A[:, part].copy(), g.B[part].copy(), acc)
    return g.brought(acc)


@LIST.mistake("acc = tl.dot(a, b): only the last block of k is left", r"(last|steps? 0).*", locates=r"step")
def _(rng: Any) -> Brought:
    g = Gemm(rng, 64, 48, 96)
    g.C[:] = 0
    return g.brought(g.run(g.A[:, 64:].copy(), g.B[64:].copy(), g.C))


@LIST.mistake("s8: the scales of A's rows are applied to the columns", r"column", locates=r"scale|factor")
def _(rng: Any) -> Brought:
    A, B, _ = integers(rng, S8, 64, 64, 96)
    scale = rng.uniform(0.01, 0.1, 64).astype(np.float32)
    A = (A // 16).astype(np.float16)
    g = Gemm(rng, 64, 64, 96)
    g.A, g.B, g.C = A, (B // 16).astype(np.float16), g.C * 0
    return g.brought(product(g.A, g.B).astype(np.float32) * scale)


@LIST.mistake("acc.to(f16) before the bias of each column is added in f16", r"f16")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    g.C = np.broadcast_to(rng.standard_normal(32).astype(np.float16), (64, 32)).astype(np.float32)
    acc = g.run(C=g.C * 0).astype(np.float16)
    return g.brought((acc + g.C.astype(np.float16)).astype(np.float16))


@LIST.mistake(
    "atomic_add into an output that the autotuner did not clear: five runs",
    r"(5|five)( times|x)|times 5|5 \*",
)
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    g.C[:] = 0
    one_run, D = g.run(), g.C.copy()
    for _ in range(5):
        D = D + one_run
    return g.brought(D)


@LIST.mistake("stride_bk and stride_bn are exchanged for B 64 x 48", r"B.*(transpos|stride|column-major)")
def _(rng: Any) -> Brought:
    g = Gemm(rng, 64, 48, 64)
    at = np.arange(64)[:, None] + np.arange(48) * 48
    return g.brought(g.run(B=g.B.reshape(-1)[at]))


@LIST.mistake("offs_n % N is missing: the last block of columns reads on into the next row of B", r"B|column")
def _(rng: Any) -> Brought:
    g = Gemm(rng, 64, 40, 64)
    at = np.arange(64)[:, None] * 40 + np.arange(40)
    at[:, 32:] += 8
    return g.brought(g.run(B=np.append(g.B.reshape(-1), np.zeros(8, np.float16))[at]))
