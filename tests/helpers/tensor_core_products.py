"""Arguments and expected results of the kernels in traces/kernels/tensor_core.

Knows where metadata and scales lie, by formulas of its own; does not know how kernels are executed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

import warpsim
from tests.helpers.kernel_products import Array, Case, Rng
from tests.helpers.tensor_core import metadata_field

_SHARED = 3 * (128 * 128 + 2 * 64 * 128 + 1024)  # a ring of three stages


def tensor_case(
    file: str,
    entry: str,
    arguments: Sequence[Any],
    d: Array,
    expected: Array,
    maps: dict[int, tuple[int, int]],
    more: int = 0,
) -> Case:
    """``maps`` are the boxes of arguments passed as tensor maps; ``more`` bytes lie behind the ring."""
    m, n = d.shape
    return Case(
        file=f"{file}.ptx",
        entry=entry,
        grid=(n // 64, -(-m // 128)),
        block=192,
        arguments=arguments,
        expected={next(i for i, one in enumerate(arguments) if one is d): expected},
        shared_bytes=_SHARED + more,
        passed=partial(_with_maps, maps),
    )


_case = partial(tensor_case, "tensor_core")


def _with_maps(maps: dict[int, tuple[int, int]], given: Sequence[Any]) -> list[Any]:
    return [
        warpsim.tensor_map(one, box=maps[place], swizzle="128B") if place in maps else one
        for place, one in enumerate(given)
    ]


def _columns(B: Array) -> Array:
    return np.ascontiguousarray(B.T)


def f16(rng: Rng, *, size: tuple[int, int, int]) -> Case:
    """Heavy-tailed numbers."""
    m, n, k = size
    A, B = (np.clip(rng.standard_t(3, shape), -64, 64).astype(np.float16) for shape in ((m, k), (k, n)))
    form = warpsim.decode("tcgen05.mma.cta_group::1.kind::f16", target="sm_100a", idesc=0x08100010)
    D = np.full((m, n), np.nan, np.float32)
    given = (A, _columns(B), D, n, k)
    return _case("tensor_f16", given, D, warpsim.gemm(form, A, B), {0: (128, 64), 1: (64, 64)})


def sparse_f16(rng: Rng, *, size: tuple[int, int, int]) -> Case:
    """A pruned A, whose metadata come as words of lanes."""
    m, n, k = size
    form = warpsim.decode("tcgen05.mma.sp.cta_group::1.kind::f16", target="sm_100a", idesc=0x08100014)
    A = warpsim.prune(rng.standard_normal((m, k)).astype(np.float16), form)
    B = rng.standard_normal((k, n)).astype(np.float16)
    values, indices = warpsim.compress(A, form)
    pairs = indices.reshape(m, k // 4, 2).astype(np.uint32)
    fields = pairs[..., 0] | pairs[..., 1] << 2
    words = np.zeros((m // 128, k // 32, 128), np.uint32)
    for (r, chunk), code in np.ndenumerate(fields):
        _, lane, _, bit = metadata_field("D", 16, r % 128, chunk % 8)
        words[r // 128, chunk // 8, lane] |= np.uint32(int(code) << bit)
    D = np.full((m, n), np.nan, np.float32)
    given = (values, words, _columns(B), D, n, k)
    return _case("tensor_sparse_f16", given, D, warpsim.gemm(form, A, B), {0: (128, 64), 2: (64, 64)})


def _blocks(scales: Array, rows: int) -> Array:
    """Blocks of 512 bytes for 128 rows and 4 factors, of scales ``(rows of all, factors)``."""
    tall, factors = scales.shape
    found = np.zeros((tall // rows, factors // 4, 512), np.uint8)
    for (r, j), code in np.ndenumerate(scales):
        own = r % rows
        found[r // rows, j // 4, own % 32 * 16 + own // 32 * 4 + j % 4] = code
    return found


def mxf8(rng: Rng, *, size: tuple[int, int, int]) -> Case:
    """e4m3 with a scale of ue8m0 for 32 elements."""
    m, n, k = size
    form = warpsim.decode(
        "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale", target="sm_100a", idesc=0x08900000
    )
    A, B = (
        rng.standard_normal(shape).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
        for shape in ((m, k), (k, n))
    )
    scales = [rng.integers(120, 134, (rows, k // 32)).astype(np.uint8) for rows in (m, n)]
    expected = warpsim.gemm(form, A, B, scale_a=scales[0], scale_b=_columns(scales[1]))
    D = np.full((m, n), np.nan, np.float32)
    given = (A, _blocks(scales[0], 128), _columns(B), _blocks(scales[1], 64), D, n, k)
    return _case("tensor_mxf8", given, D, expected, {0: (128, 128), 2: (64, 128)})


def nvf4(rng: Rng, *, size: tuple[int, int, int]) -> Case:
    """e2m1 with a scale of ue4m3 for 16 elements."""
    m, n, k = size
    form = warpsim.decode(
        "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16", target="sm_100a", idesc=0x08100480
    )
    A, B = (rng.integers(0, 16, shape).astype(np.uint8) for shape in ((m, k), (k, n)))
    scales = [rng.integers(0x28, 0x48, (rows, k // 16)).astype(np.uint8) for rows in (m, n)]
    expected = warpsim.gemm(form, A, B, scale_a=scales[0], scale_b=_columns(scales[1]))
    D = np.full((m, n), np.nan, np.float32)
    packed = [(codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8) for codes in (A, _columns(B))]
    given = (packed[0], _blocks(scales[0], 128), packed[1], _blocks(scales[1], 64), D, n, k)
    return _case("tensor_nvf4", given, D, expected, {0: (128, 128), 2: (64, 128)})


TENSOR_CORE: dict[str, Callable[[Rng], Case]] = {
    "tensor_f16": partial(f16, size=(256, 64, 320)),
    "tensor_sparse_f16": partial(sparse_f16, size=(128, 128, 256)),
    "tensor_mxf8": partial(mxf8, size=(128, 64, 512)),
    "tensor_nvf4": partial(nvf4, size=(128, 64, 512)),
}
