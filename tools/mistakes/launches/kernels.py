"""The kernels of ``sources``: their arguments, what they should leave, and their PTX with a mistake in it."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

import warpsim

Array = npt.NDArray[Any]
SOURCES = Path(__file__).parent / "sources"


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A launch: its sizes and arguments, what each output should hold, and within which tolerance."""

    grid: tuple[int, ...]
    block: int
    arguments: list[Any]
    expected: dict[int, Array]
    tolerance: float
    shared_bytes: int = 0
    cluster: int | None = None


@cache
def compiled(name: str, mistake: int, defines: tuple[str, ...] = ()) -> str:
    """Return the PTX of a source with a mistake in it; 0 is none."""
    source = SOURCES / f"{name}.cu"
    chip = dict(re.findall(r"^// (target): sm_(.*)$", source.read_text(), re.MULTILINE))["target"]
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "module.ptx"
        command = ["nvcc", "-ptx", "-O3", "-lineinfo", f"-arch=compute_{chip}", f"-DMISTAKE={mistake}"]
        subprocess.run([*command, *defines, source.name, "-o", str(result)], cwd=source.parent, check=True)
        return result.read_text()


def _numbers(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape)


def _product(m: int, n: int, k: int, *, columns: bool, each: tuple[int, int], block: int) -> Prepared:
    """Return f16 matrices; B as it is or, for ``columns``, its columns one after the other."""
    A, B = _numbers(1, m, k).astype(np.float16), _numbers(2, k, n).astype(np.float16)
    D = A.astype(np.float32) @ B.astype(np.float32)
    given = np.ascontiguousarray(B.T) if columns else B
    return Prepared(
        grid=(n // each[1], m // each[0]),
        block=block,
        arguments=[A, given, np.zeros((m, n), np.float32), n, k],
        expected={2: D},
        tolerance=1e-2,
    )


def _integers() -> Prepared:
    random = np.random.default_rng(3)
    A, B = (random.integers(-128, 128, shape).astype(np.int8) for shape in ((32, 128), (128, 16)))
    D = A.astype(np.int32) @ B.astype(np.int32)
    arguments = [A, np.ascontiguousarray(B.T), np.zeros((32, 16), np.int32), 16, 128]
    return Prepared(grid=(2, 2), block=32, arguments=arguments, expected={2: D}, tolerance=0.0)


def _attention() -> Prepared:
    length, depth = 64, 64
    Q, K, V = (2 * _numbers(seed, length, depth).astype(np.float16) for seed in (4, 5, 6))
    scores = Q.astype(np.float64) @ K.astype(np.float64).T / 8
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    out = weights @ V.astype(np.float64) / weights.sum(axis=1, keepdims=True)
    arguments = [Q, K, V, np.zeros((length, depth), np.float32), length]
    return Prepared(
        grid=(2,), block=64, arguments=arguments, expected={3: out.astype(np.float32)}, tolerance=2e-2
    )


def _attention_turned() -> Prepared:
    Q, K, V = (_numbers(seed, rows, 64).astype(np.float16) for seed, rows in ((15, 32), (16, 16), (17, 16)))
    scores = Q.astype(np.float64) @ K.astype(np.float64).T / 8
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    out = (weights @ V.astype(np.float64) / weights.sum(axis=1, keepdims=True)).T
    arguments = [Q, K, np.ascontiguousarray(V.T), np.zeros((64, 32), np.float32), 32]
    return Prepared(
        grid=(2,), block=32, arguments=arguments, expected={3: out.astype(np.float32)}, tolerance=2e-2
    )


def _sparse() -> Prepared:
    m, n, k = 32, 16, 128
    form = warpsim.decode(
        "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", target="sm_80"
    )
    A, B = _numbers(7, m, k).astype(np.float16), _numbers(8, k, n).astype(np.float16)
    A = warpsim.prune(A, form)
    values, indices = warpsim.compress(A, form)
    words = np.zeros((m // 16, k // 32, 32), np.uint32)
    for row in range(m // 16):
        for step in range(k // 32):
            part = indices[16 * row : 16 * row + 16, 16 * step : 16 * step + 16]
            words[row, step] = warpsim.pack_metadata(form, part).reshape(-1)
    D = A.astype(np.float32) @ B.astype(np.float32)
    arguments = [values, words, np.ascontiguousarray(B.T), np.zeros((m, n), np.float32), n, k]
    return Prepared(grid=(2, 2), block=32, arguments=arguments, expected={3: D}, tolerance=1e-2)


def _scaled() -> Prepared:
    m, n, k = 32, 16, 256
    random = np.random.default_rng(9)
    A, B = (
        _numbers(seed, *shape).astype(ml_dtypes.float8_e4m3fn) for seed, shape in ((10, (m, k)), (11, (n, k)))
    )
    left, right = (random.integers(124, 131, (rows, k // 32)).astype(np.uint8) for rows in (m, n))
    factors = [2.0 ** (np.repeat(scales, 32, axis=1).astype(np.float64) - 127) for scales in (left, right)]
    D = (A.astype(np.float64) * factors[0]) @ (B.astype(np.float64) * factors[1]).T
    arguments = [A, B, left, right, np.zeros((m, n), np.float32), n, k]
    return Prepared(
        grid=(2, 2), block=32, arguments=arguments, expected={4: D.astype(np.float32)}, tolerance=1e-2
    )


def _staged() -> Prepared:
    m, n, k = 64, 128, 160
    A, B = _numbers(12, m, k).astype(np.float16), _numbers(13, n, k).astype(np.float16)
    C = _numbers(14, m, n).astype(np.float32)
    D = 0.5 * (A.astype(np.float64) @ B.astype(np.float64).T) + C
    arguments = [A, B, C, np.zeros((m, n), np.float16), n, k, np.float32(0.5)]
    return Prepared(
        grid=(2, 1), block=128, arguments=arguments, expected={3: D.astype(np.float16)}, tolerance=1e-2
    )


def _tutorial() -> Prepared:
    m, n, k = 256, 128, 256
    A, B = _numbers(18, m, k).astype(np.float16), _numbers(19, k, n).astype(np.float16)
    D = A.astype(np.float32) @ B.astype(np.float32)
    return Prepared(
        grid=(n // 64, m // 128),
        block=128,
        arguments=[A, B, np.zeros((m, n), np.float32), n, k],
        expected={2: D},
        tolerance=1e-2,
        shared_bytes=49152,
    )


KERNELS: dict[str, Callable[[], Prepared]] = {
    "loop_f16": lambda: _product(64, 64, 128, columns=False, each=(32, 32), block=64),
    "loop_s8": _integers,
    "loop_bf16": lambda: _product(32, 16, 96, columns=True, each=(16, 8), block=32),
    "fragments_wmma": lambda: _product(64, 64, 96, columns=False, each=(32, 32), block=128),
    "warpgroup": lambda: _product(128, 128, 256, columns=True, each=(64, 64), block=128),
    "attention": _attention,
    "attention_turned": _attention_turned,
    "sparse": _sparse,
    "scaled": _scaled,
    "staged": _staged,
    "tensor_plain": _tutorial,
}
