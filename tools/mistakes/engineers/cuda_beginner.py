"""A beginner in CUDA C++: sizes in elements for bytes, rows for columns, dtypes of files."""

from __future__ import annotations

from typing import Any

import numpy as np

from tools.mistakes.judging import Brought

from .kernel_author import Gemm
from .listing import Listing

LIST = Listing()


@LIST.mistake(
    "store_matrix_sync col_major: tiles of 16 are transposed in place", r"tile.*transposed|transposed.*tile"
)
def _(rng: Any) -> Brought:
    g = Gemm(rng, 64, 64, 64)
    D = g.run().reshape(4, 16, 4, 16).transpose(0, 3, 2, 1).reshape(64, 64)
    return g.brought(np.ascontiguousarray(D))


@LIST.mistake("cudaMemcpy with elements for bytes: a quarter of D arrives", r"zero|rows? 16", locates=r"row")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    D = g.run().reshape(-1)
    D[len(D) // 4 :] = 0
    return g.brought(D.reshape(64, 32))


@LIST.mistake("the kernel never ran: D is zero", r"(D|all|every).*(zero|0)|nothing.*stored")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    return g.brought(np.zeros((64, 32), np.float32))


@LIST.mistake("for (k = 0; k < K - 1; k++): the last k is left out", r"k (63|= 63)|last|63", locates=r"k")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    A = g.A.copy()
    A[:, 63] = 0
    return g.brought(g.run(A=A))


@LIST.mistake(
    "a race in one tile of warps: step 2 reads A of step 1 there",
    r"(tile|rows).*(step 2|step 1)|step",
    locates=r"tile|rows",
)
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    A = g.A.copy()
    A[32:48, 32:48] = A[32:48, 16:32]
    D, other = g.run(), g.run(A=A)
    D[32:48, 8:16] = other[32:48, 8:16]
    return g.brought(D)


@LIST.mistake(
    "row-major for cuBLAS without exchange: D is B A", r"(B.*A|exchanged|swapped)", locates=r"transpos"
)
def _(rng: Any) -> Brought:
    g = Gemm(rng, 64, 64, 64)
    g.C[:] = 0
    return g.brought(g.run(g.B, g.A))


@LIST.mistake("A went through int: its fractions are lost", r"A.*(integer|int|fraction|whole)")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    g.A = (g.A * 4).astype(np.float16)
    return g.brought(g.run(A=np.trunc(g.A)))


@LIST.right("D came through np.loadtxt and is float64", r"as expected")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    return g.brought(g.run().astype(np.float64))


@LIST.mistake("D.npy has the bits of floats as int32", r"int32|f32|bits", asked=True)
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    return g.brought(g.run().view(np.int32))


@LIST.mistake(
    "threadIdx.y selects the row in both A and B: B is read with the row of D as its k", r"B", locates=r"B"
)
def _(rng: Any) -> Brought:
    g = Gemm(rng, 64, 64, 64)
    return g.brought(g.run(B=np.roll(g.B, 1, axis=1)))


@LIST.mistake("the sum is kept in an int: D is cut to whole numbers", r"integer|int|whole|fraction")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    g.A = (g.A * 4).astype(np.float16)
    return g.brought(np.trunc(g.run()))


@LIST.mistake("C is read as f16 pairs from a f32 array", r"C.*(f16|type|reinterpret|read)", locates=r"C")
def _(rng: Any) -> Brought:
    g = Gemm(rng)
    C = g.C.view(np.float16).reshape(-1)[: 64 * 32].reshape(64, 32)
    C = np.where(np.isfinite(C), C, np.float16(0)).astype(np.float32)
    return g.brought(g.run(C=np.clip(C, -100, 100)))
