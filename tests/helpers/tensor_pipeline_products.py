"""Arguments and expected results of the kernels in traces/kernels/tensor_pipelines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import warpsim
from tests.helpers.kernel_products import Array, Case, Rng

_STAGES = 2 * (128 + 64) * 128  # bytes of two stages
_F16 = "tcgen05.mma.cta_group::{}.kind::f16"


def _form(ctas: int = 1) -> warpsim.Instruction:
    return warpsim.decode(_F16.format(ctas), target="sm_100a", idesc=0x00100010 | ctas << 27)


def _numbers(rng: Rng, *shape: int) -> Array:
    return np.clip(rng.standard_t(3, shape), -64, 64).astype(np.float16)


def _columns(B: Array) -> Array:
    return np.ascontiguousarray(B.T)


def _with_maps(rows: Sequence[int], given: Sequence[Any]) -> list[Any]:
    """The first arguments become maps with boxes of so many rows."""
    maps = [
        warpsim.tensor_map(one, box=(row, 64), swizzle="128B") for one, row in zip(given, rows, strict=False)
    ]
    return [*maps, *given[len(rows) :]]


def _case(entry: str, given: Sequence[Any], expected: dict[int, Array], rows: Sequence[int] = ()) -> Case:
    return Case(
        file="tensor_pipelines.ptx",
        entry=entry,
        grid=1,
        block=192 if rows else 160,
        arguments=given,
        expected=expected,
        shared_bytes=_STAGES,
        passed=partial(_with_maps, rows),
    )


def stored(rng: Rng, *, k: int) -> Case:
    A, B = _numbers(rng, 128, k), _numbers(rng, k, 64)
    D = np.full((128, 64), np.nan, np.float32)
    given = (A, _columns(B), D, k)
    return _case("tensor_stored", given, {2: warpsim.gemm(_form(), A, B)})


def attention(rng: Rng, *, keys: int) -> Case:
    Q, K, V = (rng.standard_normal((rows, 64)).astype(np.float16) for rows in (128, keys, keys))
    S = warpsim.gemm(_form(), Q, _columns(K))
    P = (np.maximum(S, np.float32(0)) * np.float32(0.125)).astype(np.float16)
    O = np.full((128, 64), np.nan, np.float32)  # noqa: E741 - as papers call it
    given = (Q, K, _columns(V), O, keys)
    return _case("tensor_attention", given, {3: warpsim.gemm(_form(), P, V)}, (128, 64, 64))


def in_turn(rng: Rng, *, tiles: int, k: int) -> Case:
    A, B = _numbers(rng, 128 * tiles, k), _numbers(rng, k, 64)
    D = np.full((128 * tiles, 64), np.nan, np.float32)
    given = (A, _columns(B), D, tiles, k)
    return _case("tensor_in_turn", given, {2: warpsim.gemm(_form(), A, B)}, (128, 64))


def pair(rng: Rng, *, k: int) -> Case:
    A, B = _numbers(rng, 256, k), _numbers(rng, k, 64)
    D = np.full((256, 64), np.nan, np.float32)
    made = _case("tensor_pair", (A, _columns(B), D, k), {2: warpsim.gemm(_form(2), A, B)}, (128, 32))
    return replace(made, grid=2, cluster=2)


TENSOR_PIPELINES: dict[str, Callable[[Rng], Case]] = {
    "tensor_stored": partial(stored, k=256),
    "tensor_attention": partial(attention, keys=256),
    "tensor_in_turn": partial(in_turn, tiles=4, k=128),
    "tensor_pair": partial(pair, k=320),
}
