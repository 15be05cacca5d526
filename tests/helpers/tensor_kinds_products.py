"""Arguments and expected results of the kernels in traces/kernels/tensor_kinds.

Knows where metadata lie, by formulas of its own; does not know how kernels are executed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

import warpsim
from tests.helpers.kernel_products import Array, Case, Rng
from tests.helpers.tensor_core import metadata_field
from tests.helpers.tensor_core_products import tensor_case

METADATA = 3 * 128 * 32  # bytes behind the stages
Size = tuple[int, int, int]


def _columns(B: Array) -> Array:
    return np.ascontiguousarray(B.T)


def _normal(rng: Rng, shape: tuple[int, int], dtype: Any) -> Array:
    return rng.standard_normal(shape).astype(dtype)


def _integers(rng: Rng, shape: tuple[int, int], dtype: Any) -> Array:
    return rng.integers(-128, 128, shape).astype(dtype)


def dense(rng: Rng, *, entry: str, kind: str, word: int, draw: Any, dtype: Any, size: Size) -> Case:
    """A and B of one type."""
    m, n, k = size
    form = warpsim.decode(f"tcgen05.mma.cta_group::1.kind::{kind}", target="sm_100a", idesc=word)
    A, B = draw(rng, (m, k), dtype), draw(rng, (k, n), dtype)
    expected = warpsim.gemm(form, A, B)
    D = np.full((m, n), 0x7FC00001, np.uint32)
    given, width = (A, _columns(B), D, n, k), 128 // A.itemsize
    return tensor_case(
        "tensor_kinds", entry, given, D, expected.view(np.uint32), {0: (128, width), 1: (64, width)}
    )


def stationary(rng: Rng, *, size: tuple[int, int]) -> Case:
    """32 rows of A."""
    n, k = size
    form = warpsim.decode("tcgen05.mma.ws.cta_group::1.kind::f16", target="sm_100a", idesc=0x02100010)
    A, B = _normal(rng, (32, k), np.float16), _normal(rng, (k, n), np.float16)
    D = np.full((32, n), np.nan, np.float32)
    given, maps = (A, _columns(B), D, n, k), {0: (32, 64), 1: (64, 64)}
    return tensor_case("tensor_kinds", "tensor_stationary_f16", given, D, warpsim.gemm(form, A, B), maps)


def _words(indices: Array, m: int, k: int, *, chunks: int, bits: int) -> Array:
    """Words ``(tile of rows, step, column of the step, lane)`` of a step of four instructions."""
    pairs = indices.reshape(m, k // 4, 2).astype(np.uint32)
    fields = pairs[..., 0] | pairs[..., 1] << 2
    each = chunks // 8 if bits == 8 else 1  # columns of an instruction
    words = np.zeros((m // 128, k // 4 // (4 * chunks), 4 * each, 128), np.uint32)
    for (r, chunk), code in np.ndenumerate(fields):
        step, inner = divmod(chunk, 4 * chunks)
        part, own = divmod(inner, chunks)
        _, lane, column, bit = metadata_field("D", bits, r % 128, own)
        words[r // 128, step, part * each + column, lane] |= np.uint32(int(code) << bit)
    return words


def sparse(rng: Rng, *, entry: str, kind: str, word: int, dtype: Any, size: Size) -> Case:
    """A pruned A, whose metadata lie in shared memory as tcgen05.cp takes them: 16 bytes of every row."""
    m, n, k = size
    form = warpsim.decode(f"tcgen05.mma.sp.cta_group::1.kind::{kind}", target="sm_100a", idesc=word)
    A = warpsim.prune(_normal(rng, (m, k), dtype), form)
    B = _normal(rng, (k, n), dtype)
    values, indices = warpsim.compress(A, form)
    bits = 8 * A.itemsize
    words = _words(indices, m, k, chunks=128 // bits, bits=bits)
    tall, steps, columns, lanes = words.shape
    pieces = np.ascontiguousarray(words.reshape(tall, steps, columns // 4, 4, lanes).swapaxes(3, 4))
    D = np.full((m, n), np.nan, np.float32)
    given = (values, pieces, _columns(B), D, n, k)
    maps = {0: (128, 1024 // bits), 2: (64, 1024 // bits)}
    return tensor_case("tensor_kinds", entry, given, D, warpsim.gemm(form, A, B), maps, more=METADATA)


_E4M3 = ml_dtypes.float8_e4m3fn
TENSOR_KINDS: dict[str, Callable[[Rng], Case]] = {
    "tensor_e4m3": partial(
        dense, entry="tensor_e4m3", kind="f8f6f4", word=0x08100010, draw=_normal, dtype=_E4M3,
        size=(128, 64, 512),
    ),
    "tensor_s8": partial(
        dense, entry="tensor_s8", kind="i8", word=0x081004A0, draw=_integers, dtype=np.int8,
        size=(128, 64, 384),
    ),
    "tensor_tf32": partial(
        dense, entry="tensor_tf32", kind="tf32", word=0x08100910, draw=_normal, dtype=np.float32,
        size=(128, 128, 64),
    ),
    "tensor_sparse_e4m3": partial(
        sparse, entry="tensor_sparse_e4m3", kind="f8f6f4", word=0x08100014, dtype=_E4M3,
        size=(128, 64, 512),
    ),
    "tensor_copied_metadata": partial(
        sparse, entry="tensor_copied_metadata", kind="f16", word=0x08100014, dtype=np.float16,
        size=(128, 64, 256),
    ),
    "tensor_stationary_f16": partial(stationary, size=(128, 256)),
}  # fmt: skip
