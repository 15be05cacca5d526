"""Mistakes of formulas, planted in sources of kernels: what changes, and what a verdict should name.

Each is a text of a source and what stands there instead. They were written down before the code that locates
them. Knows sources and launches; does not know keys.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import warpsim
from tests.helpers.kernel_references import REFERENCES
from warpsim.base.files.kept import user_cache
from warpsim.workbench.diagnosis.verdicts.repeated_launch import RepeatedLaunch

KERNELS = Path(__file__).parents[2] / "traces" / "kernels"
OWN = Path(__file__).parent / "formula_kernels"


class Mistake(NamedTuple):
    """``old`` in ``file`` becomes ``new``; ``line`` is part of the line of the source that is to change."""

    name: str
    entry: str
    file: str
    old: str
    new: str
    line: str


MISTAKES = (
    # epilogues
    Mistake(
        "bias of the next tile",
        "bias_gelu",
        "epilogue.cu",
        "(bias + column)",
        "(bias + (column ^ 8))",
        "bias +",
    ),
    Mistake(
        "bias behind relu",
        "bias_relu",
        "epilogue.cu",
        "activation(__fadd_rn(sums[tile][i], more.x))",
        "__fadd_rn(activation(sums[tile][i]), more.x)",
        "__fadd_rn",
    ),
    Mistake("constant of gelu", "bias_gelu", "epilogue.cu", "0.044715f, cube", "0.44715f, cube", "0.44715"),
    Mistake(
        "square for cube",
        "bias_gelu",
        "epilogue.cu",
        "__fmul_rn(__fmul_rn(x, x), x)",
        "__fmul_rn(x, x)",
        "cube",
    ),
    Mistake("gelu without one half", "bias_gelu", "epilogue.cu", "__fmul_rn(0.5f, x)", "x", "bent)"),
    Mistake("minimum for maximum", "bias_relu", "epilogue.cu", "fmaxf", "fminf", "fminf"),
    Mistake(
        "rows of D",
        "bias_gelu",
        "epilogue.cu",
        "(row + i / 2 * 8) * n",
        "(row + i / 2 * 8 ^ 1) * n",
        "__half2*>(d",
    ),
    Mistake(
        "bias left out in odd columns",
        "bias_gelu",
        "epilogue.cu",
        "__fadd_rn(sums[tile][i + 1], more.y)",
        "sums[tile][i + 1]",
        "sums[tile][i + 1]",
    ),
    # products: copies, ldmatrix, mma
    Mistake(
        "ldmatrix of A by half a row",
        "dense_f16",
        "dense.cuh",
        "lane % 16, lane / 16));\n        for",
        "lane % 16, 0));\n        for",
        "load_matrices(left",
    ),
    Mistake(
        "ldmatrix of B from the other pair",
        "dense_f16",
        "dense.cuh",
        "pair * 2 + lane / 16",
        "pair * 2 + (lane / 16 ^ 1)",
        "load_transposed(right",
    ),
    Mistake(
        "chunk of A in the copy",
        "dense_f16",
        "dense.cuh",
        "step) * 32 + chunk * 16);\n    if",
        "step) * 32 + (chunk ^ 1) * 16);\n    if",
        "copy_chunk(stage + place<2>(row, chunk)",
    ),
    Mistake(
        "step of B in the copy",
        "dense_f16",
        "dense.cuh",
        "static_cast<size_t>(step) * 16 + depth",
        "static_cast<size_t>(step ? step - 1 : 0) * 16 + depth",
        "place<4>(depth",
    ),
    Mistake(
        "last step left out",
        "dense_f16",
        "dense.cuh",
        "0, k / Product::depth, product)",
        "0, k / Product::depth - 1, product)",
        "depth - 1",
    ),
    Mistake(
        "rows of the store",
        "dense_f16",
        "tiles.cuh",
        "8 * static_cast<size_t>(n)",
        "4 * static_cast<size_t>(n)",
        "4 * static",
    ),
    # split k, stream k
    Mistake(
        "stores in place of atomics",
        "split_k_f32",
        "split_k.cu",
        "atomicAdd(d + static_cast<size_t>(row + i / 2 * 8) * n + column, sums[tile][i])",
        "d[static_cast<size_t>(row + i / 2 * 8) * n + column] = sums[tile][i]",
        "= sums[tile]",
    ),
    Mistake(
        "share rounded down",
        "split_k_f32",
        "split_k.cu",
        "(steps + gridDim.z - 1) / gridDim.z",
        "steps / gridDim.z",
        "share = steps",
    ),
    Mistake(
        "shares overlap",
        "split_k_f32",
        "split_k.cu",
        "min(first + share, steps)",
        "min(first + share + 1, steps)",
        "share + 1",
    ),
    # 4 bits
    Mistake(
        "zero point of the next group",
        "dequantised",
        "dequantised.cu",
        "zeros[group * n",
        "zeros[(group ^ 1) * n",
        "zeros[",
    ),
    Mistake(
        "scale of the neighbour",
        "dequantised",
        "dequantised.cu",
        "scales[group * n + column]",
        "scales[group * n + (column ^ 1)]",
        "scales[",
    ),
    Mistake(
        "group of 64", "dequantised", "dequantised.cu", "scales[group * n", "scales[group / 2 * n", "scales["
    ),
    Mistake(
        "zero point left out",
        "dequantised",
        "dequantised.cu",
        "static_cast<int>(q & 15) - zero",
        "static_cast<int>(q & 15)",
        "q & 15",
    ),
    Mistake(
        "zero point and one",
        "dequantised",
        "dequantised.cu",
        "(q & 15) - zero",
        "(q & 15) - zero - 1",
        "zero - 1",
    ),
    Mistake(
        "nibbles exchanged",
        "dequantised",
        "dequantised.cu",
        "pack(weight(low, zero, scale), weight(low >> 4, zero, scale))",
        "pack(weight(low >> 4, zero, scale), weight(low, zero, scale))",
        "weight(low",
    ),
    Mistake(
        "scale before the zero point",
        "dequantised",
        "dequantised.cu",
        "__hmul(__int2half_rn(static_cast<int>(q & 15) - zero), scale)",
        "__hsub(__hmul(__int2half_rn(static_cast<int>(q & 15)), scale), __int2half_rn(zero))",
        "__hsub",
    ),
    # softmax, attention
    Mistake(
        "powers of two",
        "softmax",
        "softmax.cu",
        "__fmul_rn(__fsub_rn(x[i], most), 1.44269504f)",
        "__fsub_rn(x[i], most)",
        "most)",
    ),
    Mistake(
        "half of the lanes",
        "softmax",
        "softmax.cu",
        "distance = 16; distance; distance /= 2) sum",
        "distance = 8; distance; distance /= 2) sum",
        "sum, distance",
    ),
    Mistake(
        "maximum of a lane",
        "softmax",
        "softmax.cu",
        "most = fmaxf(most, __shfl_xor_sync(~0u, most, distance));",
        ";",
        "most",
    ),
    Mistake("sums are not rescaled", "online", "online.cu", "sums[j] *= again;", ";", "sums[j]"),
    Mistake("total is not rescaled", "online", "online.cu", "total *= again;", ";", "total"),
    Mistake("scale left out", "online", "online.cu", "score * scale :", "score :", "score"),
    Mistake("mask by one", "online", "online.cu", "first + i <= row", "first + i < row + 2", "row + 2"),
    Mistake(
        "row of V",
        "online",
        "online.cu",
        "v[(first + i) * WIDTH + j]",
        "v[(first + (i ^ 1)) * WIDTH + j]",
        "v[(",
    ),
    Mistake("no quotient", "online", "online.cu", "sums[j] / total", "sums[j]", "= sums[j]"),
    # sparse, block scales, TMA, wgmma
    Mistake(
        "metadata of the first step", "sparse_s8", "sparse.cuh", "e[step * 32 + lane]", "e[lane]", "e[lane]"
    ),
    Mistake(
        "tile of sparse B",
        "sparse_s8",
        "sparse.cuh",
        "place<4>(tile * 8 + lane % 8",
        "place<4>((tile ^ 1) * 8 + lane % 8",
        "tile ^ 1",
    ),
    Mistake(
        "box of B",
        "tensor_ring",
        "tensor_ring.cu",
        "load_box(stage.b, b, step * DEPTH,",
        "load_box(stage.b, b, (step ^ 1) * DEPTH,",
        "load_box(stage.b",
    ),
    Mistake(
        "box of D",
        "tensor_ring",
        "tensor_ring.cu",
        "store<ADDS>(d, tile % across * COLUMNS, tile / across * ROWS",
        "store<ADDS>(d, (tile % across ^ 1) * COLUMNS, tile / across * ROWS",
        "store",
    ),
    Mistake(
        "descriptor of B",
        "warpgroup_f16",
        "warpgroup_tiles.cu",
        "shared_address(right) + 32 * step), 1);",
        "shared_address(right) + 32 * (step ^ 1)), 1);",
        "product_f16(",
    ),
    Mistake(
        "scales of the first step",
        "tensor_mxf8",
        "tensor_core.cu",
        "scales_b + (blockIdx.x * steps + step) * 512, 512",
        "scales_b + (blockIdx.x * steps) * 512, 512",
        "scales_b",
    ),
)


def compiled(source: str, old: str = "", new: str = "", file: str = "") -> Path:
    """Return the PTX of a source with one change in it or in a file that it includes, with lines; kept."""
    folder = OWN if (OWN / source).exists() else KERNELS
    texts = {path.name: path.read_text() for path in folder.glob("*.cu*")}
    if old:
        assert texts[file].count(old) >= 1, (file, old)
        texts[file] = texts[file].replace(old, new)
    word = hashlib.sha256(repr((source, sorted(texts.items()))).encode()).hexdigest()[:24]
    kept = user_cache() / "formula_mistakes" / word
    if not (kept / "k.ptx").exists():
        kept.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (kept / name).write_text(text)
        chip = texts[source].split("// target: sm_", 1)[1].split("\n", 1)[0].strip()
        command = ["nvcc", "-ptx", "-O3", "-lineinfo", f"-arch=compute_{chip}", source, "-o", "k.ptx"]
        subprocess.run(command, cwd=kept, check=True, capture_output=True)
    return kept / "k.ptx"


def has_compiler() -> bool:
    """Return whether sources can be compiled here."""
    return shutil.which("nvcc") is not None


# --- launches ----------------------------------------------------------------------------------------


def _dequantised(a: Any, words: Any, scales: Any, zeros: Any, d: Any, n: int, k: int) -> Any:
    q = np.stack([words >> 4 * i & 15 for i in range(8)], -1).reshape(n, k).T
    w = (q - np.repeat(zeros, 32, 0)) * np.repeat(scales, 32, 0)
    return a @ w


def _attention(q: Any, k: Any, v: Any, o: Any, keys: int, scale: float) -> Any:
    s = q @ k.T * scale
    s = np.where(np.tril(np.ones((keys, keys))) > 0, s, -np.inf)
    p = np.exp(s - np.max(s, axis=1, keepdims=True))
    return p / np.sum(p, axis=1, keepdims=True) @ v


class Launch(NamedTuple):
    """A source, how its entry is launched, and its reference."""

    source: str
    sizes: dict[str, Any]
    arguments: Callable[[np.random.Generator], list[Any]]
    reference: Callable[..., Any]


def _half(rng: np.random.Generator, *shape: int) -> Any:
    return rng.normal(size=shape).astype(np.float16)


def _gemm(rng: np.random.Generator) -> list[Any]:
    return [_half(rng, 32, 96), _half(rng, 96, 64), np.zeros((32, 64), np.float32), 64, 96]


def _biased(rng: np.random.Generator) -> list[Any]:
    bias = rng.normal(size=64).astype(np.float32)
    return [_half(rng, 32, 64), _half(rng, 64, 64), bias, np.zeros((32, 64), np.float16), 64, 64]


def _weights(rng: np.random.Generator) -> list[Any]:
    words = rng.integers(0, 2**32, (16, 16), np.uint64).astype(np.uint32)
    scales = rng.uniform(0.5, 2, (4, 16)).astype(np.float16)
    zeros = rng.integers(1, 15, (4, 16)).astype(np.uint8)
    return [_half(rng, 16, 128), words, scales, zeros, np.zeros((16, 16), np.float32), 16, 128]


def _queries(rng: np.random.Generator) -> list[Any]:
    q, k, v = (rng.normal(size=(32, 16)).astype(np.float32) for _ in range(3))
    return [q, k, v, np.zeros((32, 16), np.float32), 32, np.float32(0.3)]


def _rows(rng: np.random.Generator) -> list[Any]:
    return [rng.normal(scale=3, size=(4, 75)).astype(np.float32), np.zeros((4, 75), np.float32), 4, 75]


def _sparse(rng: np.random.Generator) -> list[Any]:
    form = warpsim.decode(
        "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32", target="sm_80"
    )
    dense = rng.integers(-99, 99, (32, 128)).astype(np.int8)
    values, indices = warpsim.compress(warpsim.prune(dense, form), form)
    blocks = [[indices[16 * r : 16 * r + 16, 32 * c : 32 * c + 32] for c in range(2)] for r in range(2)]
    e = [[warpsim.pack_metadata(form, np.ascontiguousarray(x))[:, 0] for x in row] for row in blocks]
    b = rng.integers(-99, 99, (32, 128)).astype(np.int8)
    return [values, np.array(e, np.uint32), b, np.zeros((32, 32), np.int32), 32, 128]


def _boxes(rng: np.random.Generator) -> list[Any]:
    a, b, d = _half(rng, 64, 128), _half(rng, 64, 128), np.zeros((64, 64), np.float32)
    maps = [
        warpsim.tensor_map(x, box=box, swizzle="128B")
        for x, box in ((a, (64, 64)), (b, (32, 64)), (d, (64, 32)))
    ]
    return [*maps, 64, 64, 128]


def _warpgroup(rng: np.random.Generator) -> list[Any]:
    return [_half(rng, 64, 64), _half(rng, 64, 64), np.zeros((64, 64), np.float32), 64, 64]


def _scaled(rng: np.random.Generator) -> list[Any]:
    a, b = (rng.normal(size=(rows, 256)).astype(ml_dtypes.float8_e4m3fn) for rows in (128, 64))
    scales = [rng.integers(120, 134, (1, 2, 512)).astype(np.uint8) for _ in range(2)]
    maps = [warpsim.tensor_map(x, box=(rows, 128), swizzle="128B") for x, rows in ((a, 128), (b, 64))]
    return [maps[0], scales[0], maps[1], scales[1], np.zeros((128, 64), np.float32), 64, 256]


LAUNCHES = {
    "bias_gelu": Launch("epilogue.cu", {"grid": (2, 1), "block": 64}, _biased, REFERENCES["bias_gelu"]),
    "bias_relu": Launch("epilogue.cu", {"grid": (2, 1), "block": 64}, _biased, REFERENCES["bias_relu"]),
    "dense_f16": Launch("dense_tiles.cu", {"grid": (2, 1), "block": 64}, _gemm, REFERENCES["dense_f16"]),
    "split_k_f32": Launch("split_k.cu", {"grid": (2, 1, 4), "block": 64}, _gemm, REFERENCES["split_k_f32"]),
    "dequantised": Launch("dequantised.cu", {"grid": (2, 1), "block": 32}, _weights, _dequantised),
    "online": Launch("online.cu", {"grid": 1, "block": 32}, _queries, _attention),
    "softmax": Launch("softmax.cu", {"grid": 2, "block": 64}, _rows, REFERENCES["softmax"]),
    "sparse_s8": Launch("sparse_tiles.cu", {"grid": (1, 1), "block": 64}, _sparse, REFERENCES["sparse_s8"]),
    "tensor_ring": Launch("tensor_ring.cu", {"grid": 1, "block": 160}, _boxes, REFERENCES["tensor_ring"]),
    "warpgroup_f16": Launch(
        "warpgroup_tiles.cu", {"grid": (1, 1), "block": 128}, _warpgroup, REFERENCES["warpgroup_f16"]
    ),
    "tensor_mxf8": Launch(
        "tensor_core.cu",
        {"grid": (1, 1), "block": 192, "shared_bytes": 101376},
        _scaled,
        REFERENCES["tensor_mxf8"],
    ),
}


def launch_of(entry: str, mistake: Mistake | None = None, seed: int = 1) -> RepeatedLaunch:
    """Return a launch of an entry, intact or with a mistake."""
    launch = LAUNCHES[entry]
    change = () if mistake is None else (mistake.old, mistake.new, mistake.file)
    kernel = warpsim.load(compiled(launch.source, *change))[entry]
    arguments = launch.arguments(np.random.default_rng(seed))
    return RepeatedLaunch(kernel=kernel, sizes=launch.sizes, args=arguments, options={}, before={})
