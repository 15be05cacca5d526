"""How the kernels of this folder are launched: chip, sizes, and arguments by seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import warpsim

FOLDER = Path(__file__).parent
f16, f32, bf16, e4m3 = np.float16, np.float32, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn


class Drawn:
    """Arrays of random numbers, by seed."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def normal(self, dtype: Any, *shape: int) -> np.ndarray:
        return self.random.standard_normal(shape).astype(dtype)

    def positive(self, dtype: Any, *shape: int) -> np.ndarray:
        return self.random.uniform(0.25, 2, shape).astype(dtype)

    def integers(self, dtype: Any, low: int, high: int, *shape: int) -> np.ndarray:
        return self.random.integers(low, high, shape).astype(dtype)


@dataclass(frozen=True)
class Unseen:
    """A launch: the chip that its source is compiled for, its sizes, its arguments by seed."""

    chip: str
    grid: tuple[int, ...]
    block: int
    arguments: Callable[[Drawn], list[Any]]


def _marlin(draw: Drawn) -> list[Any]:
    n, k = 64, 160
    words = (
        draw.integers(np.uint32, 0, 2**32, k // 32, n, 4),
        draw.integers(np.uint32, 0, 2**32, k // 32, n // 8),
    )
    return [draw.normal(f16, 16, k), *words, draw.positive(f16, k // 32, n), np.zeros((16, n), f16), n, k]


def _flash(draw: Drawn) -> list[Any]:
    rows, operands = 48, [draw.normal(f16, 2, 48, 32) for _ in range(3)]
    return [*operands, np.zeros((2, rows, 32), f16), np.zeros((2, rows), f32), rows, f32(0.176776695), f32(3)]


def _decode(draw: Drawn) -> list[Any]:
    keys, heads, group, splits = 44, 4, 2, 3
    left = [np.zeros((heads, 32), f32), np.zeros((heads, splits, 32), f32), np.zeros((heads, splits, 2), f32)]
    operands = [draw.normal(f16, heads, 32), *(draw.normal(f16, heads // group, keys, 32) for _ in range(2))]
    return [*operands, *left, np.zeros(heads, np.uint32), keys, group, f32(0.176776695)]


def _deepgemm(draw: Drawn) -> list[Any]:
    m, n, k = 64, 64, 384
    maps = [tensor(draw.normal(e4m3, rows, k), (box, 128)) for rows, box in ((m, 64), (n, 32))]
    scales = [draw.positive(f32, k // 128, m), draw.positive(f32, n // 32, k // 128)]
    return [*maps, *scales, np.zeros((m, n), bf16), m, n, k]


def _streamk(draw: Drawn) -> list[Any]:
    m, n, k, ctas = 32, 16, 80, 3
    operands = [draw.normal(f16, m, k), draw.normal(f16, n, k), draw.normal(f32, m, n), np.zeros((m, n), f32)]
    return [*operands, np.zeros((ctas, 4, 32), f32), np.zeros(ctas, np.int32), m, n, k, f32(0.75), f32(-1.5)]


def _matvec_q4(draw: Drawn) -> list[Any]:
    rows, blocks = 5, 24
    d4, q4 = draw.positive(f16, rows, blocks), draw.integers(np.uint8, 0, 256, rows, blocks, 16)
    ds8, q8 = draw.normal(f16, blocks, 2), draw.integers(np.int8, -127, 128, blocks, 32)
    return [d4, q4, ds8, q8, np.zeros(rows, f32), rows, blocks]


def _rmsnorm(draw: Drawn) -> list[Any]:
    m = 24
    operands = [
        draw.normal(bf16, m, 64),
        draw.positive(bf16, 64),
        draw.normal(bf16, 64, 32),
        draw.normal(bf16, m, 32),
    ]
    return [*operands, np.zeros((m, 32), bf16), m, f32(1e-2)]


def _moe(draw: Drawn) -> list[Any]:
    tokens, top, n, k = 15, 2, 32, 64
    pairs = tokens * top
    ids, experts = np.full(64, pairs, np.int32), np.array([0, 1, 2, 2], np.int32)
    order = draw.random.permutation(pairs).astype(np.int32)
    for block, (start, stop) in enumerate(((0, 5), (5, 12), (12, 28), (28, 30))):
        ids[16 * block : 16 * block + stop - start] = order[start:stop]
    weights = [draw.normal(f16, 3, n, k), draw.positive(f32, pairs)]
    return [draw.normal(f16, tokens, k), *weights, ids, experts, np.zeros((pairs, n), f32), pairs, top, n, k]


def _swiglu(draw: Drawn) -> list[Any]:
    n, k = 64, 128
    operands = [draw.normal(bf16, rows, k) for rows in (64, n, n)]
    return [*operands, draw.normal(bf16, n), np.zeros((64, n), bf16), n, k]


def _sparse24(draw: Drawn) -> list[Any]:
    m, n, k = 32, 16, 96
    first, second = np.triu_indices(4, 1)
    which = draw.integers(np.uint32, 0, 6, m, k // 32, 8)
    groups = (first[which] | second[which] << 2).astype(np.uint32)
    words = (groups << 4 * np.arange(8, dtype=np.uint32)).sum(-1).astype(np.uint32)
    bias = draw.normal(f16, m)
    return [draw.normal(f16, m, k // 2), words, draw.normal(f16, n, k), bias, np.zeros((m, n), f16), m, n, k]


def _mxfp8(draw: Drawn) -> list[Any]:
    n, k = 64, 384
    maps = [tensor(draw.normal(e4m3, rows, k), (box, 128)) for rows, box in ((128, 128), (n, 32))]
    scales = [
        draw.integers(np.uint8, 124, 131, *shape, 32, 4, 4) for shape in ((k // 128,), (n // 32, k // 128))
    ]
    return [maps[0], scales[0], maps[1], scales[1], np.zeros((128, n), f32), n, k]


def _rope(draw: Drawn) -> list[Any]:
    queries, keys, offset = 16, 32, 16
    angles = np.arange(32)[:, None] / 100 ** (np.arange(16) / 16)
    tables = [np.cos(angles).astype(f32), np.sin(angles).astype(f32)]
    operands = [draw.normal(f16, 2, rows, 32) for rows in (queries, keys)]
    sizes = [queries, keys, offset, f32(0.176776695)]
    return [*operands, *tables, np.zeros((2, queries, keys), f32), *sizes]


def _conv(draw: Drawn) -> list[Any]:
    height, width, outputs = 5, 7, 16
    operands = [
        draw.normal(f16, height, width, 16),
        draw.normal(f16, outputs, 3, 3, 16),
        draw.normal(f32, outputs),
    ]
    return [*operands, np.zeros((height, width, outputs), f16), height, width, outputs, f32(0.1)]


def _layernorm_backward(draw: Drawn) -> list[Any]:
    rows, columns = 11, 64
    operands = [draw.normal(f32, rows, columns), draw.normal(f32, rows, columns), draw.positive(f32, columns)]
    left = [np.zeros(shape, f32) for shape in ((rows, columns), columns, columns)]
    return [*operands, *left, rows, f32(1e-2)]


def _requant(draw: Drawn) -> list[Any]:
    batches, m, n, k = 2, 16, 16, 64
    a, b = (draw.integers(np.int8, -128, 128, batches, rows, k) for rows in (m, n))
    sums = b.sum(-1, dtype=np.int32)
    bias, scale = draw.integers(np.int32, -2000, 2000, n), (draw.positive(f32, n) / 500).astype(f32)
    return [a, b, sums, bias, scale, np.zeros((batches, m, n), np.int8), m, n, k, 7, -3]


def _lora(draw: Drawn) -> list[Any]:
    rows, n, k = 32, 32, 64
    operands = [draw.normal(f32, *shape) for shape in ((rows, k), (n, k), (3, 16, k), (3, n, 16))]
    operands[3] /= 10
    return [
        *(each.astype(bf16) for each in operands),
        np.array([2, 0], np.int32),
        np.zeros((rows, n), f32),
        n,
        k,
        f32(0.5),
    ]


def tensor(array: np.ndarray, box: tuple[int, int]) -> Any:
    """Return a tensor map of boxes of swizzled rows of 128 bytes."""
    return warpsim.tensor_map(array, box, swizzle="128B")


LAUNCHES = {
    "marlin": Unseen("sm_80", (2,), 64, _marlin),
    "flash": Unseen("sm_80", (3, 2), 32, _flash),
    "decode": Unseen("sm_80", (3, 4), 32, _decode),
    "deepgemm": Unseen("sm_90a", (2,), 160, _deepgemm),
    "streamk": Unseen("sm_80", (3,), 32, _streamk),
    "matvec_q4": Unseen("sm_80", (3,), 64, _matvec_q4),
    "rmsnorm": Unseen("sm_80", (2,), 64, _rmsnorm),
    "moe": Unseen("sm_80", (2, 4), 32, _moe),
    "swiglu": Unseen("sm_90a", (2,), 128, _swiglu),
    "sparse24": Unseen("sm_80", (2, 2), 32, _sparse24),
    "mxfp8": Unseen("sm_100a", (2,), 128, _mxfp8),
    "rope": Unseen("sm_80", (2, 1, 2), 32, _rope),
    "conv": Unseen("sm_80", (3, 2), 32, _conv),
    "layernorm_backward": Unseen("sm_80", (2,), 128, _layernorm_backward),
    "requant": Unseen("sm_80", (2, 1, 2), 32, _requant),
    "lora": Unseen("sm_80", (2, 2), 32, _lora),
}
