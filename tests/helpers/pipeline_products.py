"""Arguments and expected results of the kernels of traces/kernels that feed wgmma by tensor copies.

Knows the maps that each takes; does not know how kernels are executed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

import warpsim
from tests.helpers.kernel_products import Array, Case, Rng
from warpsim.isa.metadata.arrangements import convert

_SHARED = 4 * 3 * 64 * 128 + 1024 + 2 * 64 * 64 * 4  # stages, barriers, what the copies of D read
_DENSE = "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16"
_SPARSE = "wgmma.mma_async.sp.sync.aligned.m64n64k32.f32.f16.f16"
_E4M3 = "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3"
Size = tuple[int, int, int]
Map = tuple[tuple[int, int], str]  # box, swizzle

_B: Map = ((64, 64), "128B")
_D: Map = ((64, 64), "none")


def _passed(given: Sequence[Any], maps: Mapping[int, Map]) -> list[Any]:
    """The arguments, some of which are passed as maps."""
    return [
        warpsim.tensor_map(one, maps[place][0], swizzle=maps[place][1]) if place in maps else one  # type: ignore[arg-type]
        for place, one in enumerate(given)
    ]


def _case(entry: str, grid: tuple[int, ...], given: Sequence[Any], maps: Mapping[int, Map], d: Array) -> Case:
    """The launch of an entry whose D is expected to be ``d``; the last array is D."""
    place = max(index for index, one in enumerate(given) if isinstance(one, np.ndarray))
    return Case(
        file="pipelines.ptx",
        entry=entry,
        grid=grid,
        block=256 if entry == "stream_k_f16" else 384,
        arguments=given,
        expected={place: d},
        shared_bytes=_SHARED,
        passed=partial(_passed, maps=maps),
    )


def _operands(rng: Rng, size: Size, mnemonic: str) -> tuple[Array, Array]:
    """A (m, k) and B (k, n) of random values of the instruction's type."""
    m, n, k = size
    form = warpsim.decode(mnemonic, target="sm_90a")
    A, B = (rng.normal(size=shape).astype(form.a.dtype) for shape in ((m, k), (k, n)))
    return A, B


def dense(rng: Rng, *, entry: str, size: Size, rows: int = 128, promote: int | None = None) -> Case:
    """One of the kernels whose CTA makes 128 x 64 of D, ``rows`` being those of the boxes of A."""
    mnemonic = _E4M3 if promote else _DENSE
    m, n, k = size
    A, B = _operands(rng, size, mnemonic)
    form = warpsim.decode(mnemonic, target="sm_90a")
    width = 128 // form.a.dtype.itemsize
    given = (A, np.ascontiguousarray(B.T), np.zeros((m, n), np.float32), k)
    maps: dict[int, Map] = {0: ((rows, width), "128B"), 1: ((64, width), "128B"), 2: _D}
    return _case(entry, (n // 64, m // 128), given, maps, warpsim.gemm(form, A, B, promote_every=promote))


def sparse(rng: Rng, *, size: Size) -> Case:
    """A stored two of four."""
    form = warpsim.decode(_SPARSE, target="sm_90a")
    m, n, k = size
    A, B = _operands(rng, size, _SPARSE)
    values, indices = warpsim.compress(warpsim.prune(A, form), form)
    e = convert(indices, m, k, form, source="indices", target=f"lanes {form.shape} selector 0")
    given = (values, e, np.ascontiguousarray(B.T), np.zeros((m, n), np.float32), k)
    maps: dict[int, Map] = {0: ((128, 32), "64B"), 2: _B, 3: _D}
    expected = warpsim.gemm(form, (values, indices), B)
    return _case("cooperative_sparse_f16", (n // 64, m // 128), given, maps, expected)


def pingpong(rng: Rng, *, size: Size, ctas: int) -> Case:
    """Warpgroups that take turns, over so many tiles below each other."""
    m, n, k = size
    A, B = _operands(rng, size, _DENSE)
    given = (A, np.ascontiguousarray(B.T), np.zeros((m, n), np.float32), k, m // 64 // ctas)
    expected = warpsim.gemm(warpsim.decode(_DENSE, target="sm_90a"), A, B)
    return _case("pingpong_f16", (n // 64, ctas), given, {0: _B, 1: _B, 2: _D}, expected)


def stream_k(rng: Rng, *, size: Size, share: int) -> Case:
    """Small integers, whose sums are exact in any order."""
    m, n, k = size
    A, B = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    tiles, steps = m // 64 * (n // 64), k // 64
    given = (A, np.ascontiguousarray(B.T), np.zeros((m, n), np.float32), k, n // 64, tiles, share)
    expected = A.astype(np.float32) @ B.astype(np.float32)
    return _case("stream_k_f16", (-(-tiles * steps // share),), given, {0: _B, 1: _B}, expected)


PIPELINES: dict[str, Callable[[Rng], Case]] = {
    "cooperative_f16": partial(dense, entry="cooperative_f16", size=(128, 128, 448)),
    "multicast_f16": partial(dense, entry="multicast_f16", size=(128, 256, 320), rows=64),
    "cooperative_e4m3": partial(dense, entry="cooperative_e4m3", size=(128, 64, 768), promote=4),
    "cooperative_sparse_f16": partial(sparse, size=(128, 64, 384)),
    "pingpong_f16": partial(pingpong, size=(192, 64, 192), ctas=1),
    "stream_k_f16": partial(stream_k, size=(128, 128, 192), share=5),
}
PIPELINE_OF_512: Callable[[Rng], Case] = partial(dense, entry="cooperative_f16", size=(512, 512, 512))
