"""Cases of whole matrix products."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

import warpsim
from warpsim.base.errors import present
from warpsim.isa.formats import Format
from warpsim.sums.products.gemm import gemm, gemm_sparse

from .measure import Result, best, matmul_seconds

Matrix = npt.NDArray[Any]
Make = Callable[[int], Callable[[], object]]


@dataclass(frozen=True, kw_only=True)
class Product:
    """A product of m = n = k = size, compared with matmul of that size."""

    name: str
    size: int
    goal: float | None
    make: Make

    def run(self, repeat: int) -> Result:
        """Time it, between two measurements of matmul."""
        function = self.make(self.size)
        function()
        before = matmul_seconds(self.size, repeat)
        seconds = best(function, repeat)
        reference = min(before, matmul_seconds(self.size, repeat))
        return Result(
            name=self.name, seconds=seconds, figure=reference / seconds, unit="x matmul", goal=self.goal
        )


def _random(dtype: Any, shape: tuple[int, int], seed: int) -> Matrix:
    rng = np.random.default_rng(seed)
    if np.dtype(dtype) == np.int8:
        return rng.integers(-128, 128, shape, np.int8)
    return rng.standard_normal(shape).astype(dtype)


def _dense(mnemonic: str, target: str, dtype: Any, spoil: Callable[[Matrix], None] | None = None) -> Make:
    def make(size: int) -> Callable[[], object]:
        form = warpsim.decode(mnemonic, target=target)
        a, b = _random(dtype, (size, size), 1), _random(dtype, (size, size), 2)
        if spoil is not None:
            spoil(a)
            spoil(b)
        return lambda: gemm(form, a, b, threads=1)

    return make


def _sparse(mnemonic: str, target: str, dtype: Any) -> Make:
    def make(size: int) -> Callable[[], object]:
        form = warpsim.decode(mnemonic, target=target)
        values, indices = warpsim.compress(warpsim.prune(_random(dtype, (size, size), 1), form), form)
        b = _random(dtype, (size, size), 2)
        return lambda: gemm_sparse(form, values, indices, b, threads=1)

    return make


def _pruned(mnemonic: str, target: str, dtype: Any) -> Make:
    """From a matrix that obeys the pattern, which is compressed in the time."""

    def make(size: int) -> Callable[[], object]:
        form = warpsim.decode(mnemonic, target=target)
        a, b = warpsim.prune(_random(dtype, (size, size), 1), form), _random(dtype, (size, size), 2)
        return lambda: gemm(form, a, b, threads=1)

    return make


def _accumulated(mnemonic: str, target: str, dtype: Any, spoil: Callable[[Matrix], None]) -> Make:
    """With a C that has been spoilt."""

    def make(size: int) -> Callable[[], object]:
        form = warpsim.decode(mnemonic, target=target)
        a, b = _random(dtype, (size, size), 1), _random(dtype, (size, size), 2)
        c = _random(form.c.dtype, (size, size), 3)
        spoil(c)
        return lambda: gemm(form, a, b, c, threads=1)

    return make


def _codes(element: Format, shape: tuple[int, int], seed: int) -> Matrix:
    return np.random.default_rng(seed).integers(0, 1 << element.bits, shape).astype(element.code_dtype)


def _coded(mnemonic: str, target: str) -> Make:
    """Of random codes."""

    def make(size: int) -> Callable[[], object]:
        form = warpsim.decode(mnemonic, target=target)
        a, b = _codes(form.a, (size, size), 1), _codes(form.b, (size, size), 2)
        return lambda: gemm(form, a, b, threads=1)

    return make


def _scaled(mnemonic: str, target: str) -> Make:
    """Of random codes, with block scales around 1."""

    def make(size: int) -> Callable[[], object]:
        form = warpsim.decode(mnemonic, target=target)
        scale = present(form.scale, "scale")
        shape = size, size * form.scale_chunks // form.shape.k
        near = np.random.default_rng(3).integers(scale.bias - 4, scale.bias + 5, (2, *shape))
        of_a, of_b = (near << scale.fraction_bits).astype(np.uint8)
        a, b = _codes(form.a, (size, size), 1), _codes(form.b, (size, size), 2)
        return lambda: gemm(form, a, b, threads=1, scale_a=of_a, scale_b=of_b.T)

    return make


def _limited(mnemonic: str, target: str) -> Make:
    """With every element of C so near its limit that sums may clamp."""

    def make(size: int) -> Callable[[], object]:
        form = warpsim.decode(mnemonic, target=target)
        a, b = _random(np.int8, (size, size), 1), _random(np.int8, (size, size), 2)
        c = np.full((size, size), np.iinfo(np.int32).max - 1000, np.int32)
        return lambda: gemm(form, a, b, c, threads=1)

    return make


def _sprinkled(value: float, share: float) -> Callable[[Matrix], None]:
    def spoil(matrix: Matrix) -> None:
        places = np.random.default_rng(4).random(matrix.shape) < share
        matrix[places] = np.where(np.random.default_rng(5).random(matrix.shape) < 0.5, value, -value)[places]

    return spoil


def _subnormal(mnemonic: str, target: str) -> Make:
    """One column of B in a hundred so small that its dot products are subnormal."""

    def make(size: int) -> Callable[[], object]:
        form = warpsim.decode(mnemonic, target=target)
        a, b = _random(form.a.dtype, (size, size), 1), _random(form.b.dtype, (size, size), 2)
        b[:, ::100] *= np.asarray(2.0**-133, b.dtype)
        return lambda: gemm(form, a, b, threads=1)

    return make


_F16 = "mma.sync.aligned.m16n8k{}.row.col.{}.f16.f16.{}"
_VOLTA = "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"
_SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
_E4M3 = "mma.sync.aligned.m16n8k32.row.col.{0}.e4m3.e4m3.{0}"
_BF16 = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
_TF32 = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
_S8 = "mma.sync.aligned.m16n8k32.row.col{}.s32.s8.s8.s32"
_F64 = "mma.sync.aligned.m16n8k8.row.col{}.f64.f64.f64.f64"
_S4 = "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32"
_B1 = "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.{}.popc"
_FP4 = "mma.sync.aligned.m16n8k64.row.col.kind::{}.block_scale.scale_vec::{}.f32.e2m1.e2m1.f32.{}"
_MXF4, _NVF4 = _FP4.format("mxf4", "2X", "ue8m0"), _FP4.format("mxf4nvf4", "4X", "ue4m3")
_E4 = ml_dtypes.float8_e4m3fn


def product_cases(size: int) -> Iterator[Product]:
    """Return every case, with its goal."""
    f32, f16 = _F16.format(16, "f32", "f32"), _F16.format(16, "f16", "f16")
    infinite, overflowing = _sprinkled(np.inf, 0.01), _sprinkled(3e38, 0.01)
    rows: tuple[tuple[str, float | None, Make], ...] = (
        ("f16 to f32, 16 fused (sm_90a)", 0.30, _dense(f32, "sm_90a", np.float16)),
        ("f16 to f32, 8 fused (sm_80)", 0.28, _dense(f32, "sm_80", np.float16)),
        ("f16 to f32, 4 fused (sm_70)", 0.14, _dense(_VOLTA, "sm_70", np.float16)),
        ("bf16, 16 fused (sm_90a)", 0.27, _dense(_BF16, "sm_90a", ml_dtypes.bfloat16)),
        ("bf16, 8 fused (sm_80)", 0.27, _dense(_BF16, "sm_80", ml_dtypes.bfloat16)),
        ("tf32, 8 fused (sm_90a)", 0.27, _dense(_TF32, "sm_90a", np.float32)),
        ("tf32, 4 fused (sm_80)", 0.27, _dense(_TF32, "sm_80", np.float32)),
        ("f16 to f16, 16 fused (sm_90a)", 0.27, _dense(f16, "sm_90a", np.float16)),
        ("f16 to f16, 8 fused (sm_80)", 0.27, _dense(f16, "sm_80", np.float16)),
        ("e4m3 to f32, F 25, 32 fused (sm_120a)", 0.27, _dense(_E4M3.format("f32"), "sm_120a", _E4)),
        ("e4m3 to f32, F 13, 16 fused (sm_89)", 0.17, _dense(_E4M3.format("f32"), "sm_89", _E4)),
        ("e4m3 to f32, emulated (sm_90a)", 0.27, _dense(_E4M3.format("f32"), "sm_90a", _E4)),
        ("e4m3 to f16, F 13 (sm_89)", 0.13, _dense(_E4M3.format("f16"), "sm_89", _E4)),
        ("f16 2:4 to f32, 16 fused (sm_90a)", 0.42, _sparse(_SPARSE, "sm_90a", np.float16)),
        ("f16 2:4 to f32, from the matrix (sm_90a)", 0.42, _pruned(_SPARSE, "sm_90a", np.float16)),
        ("f16 2:4 to f32, 8 fused (sm_80)", 0.25, _sparse(_SPARSE, "sm_80", np.float16)),
        ("f64 (sm_90)", 0.12, _dense(_F64.format(""), "sm_90", np.float64)),
        ("f64 toward zero (sm_90)", 0.12, _dense(_F64.format(".rz"), "sm_90", np.float64)),
        ("f16 m8n8k4 in software (sm_80)", 0.15, _dense(_VOLTA, "sm_80", np.float16)),
        ("mxf4 (sm_120a)", 0.10, _scaled(_MXF4, "sm_120a")),
        ("nvf4 (sm_120a)", 0.10, _scaled(_NVF4, "sm_120a")),
        ("s8", 0.9, _dense(_S8.format(""), "sm_90a", np.int8)),
        ("s8 satfinite", 0.85, _dense(_S8.format(".satfinite"), "sm_90a", np.int8)),
        ("s8 satfinite, C near the limit", 0.2, _limited(_S8.format(".satfinite"), "sm_90a")),
        ("s4", 0.6, _coded(_S4, "sm_80")),
        ("b1 and", 0.7, _coded(_B1.format("and"), "sm_80")),
        ("b1 xor", None, _coded(_B1.format("xor"), "sm_80")),
        ("f16, 1 % Inf in A and B", 0.10, _dense(f32, "sm_90a", np.float16, infinite)),
        ("f16, 1 % Inf in C", 0.10, _accumulated(f32, "sm_90a", np.float16, infinite)),
        ("f16, 1 % NaN in C", 0.10, _accumulated(f32, "sm_90a", np.float16, _sprinkled(np.nan, 0.01))),
        (
            "f16, 1 % of C near overflow",
            0.10,
            _accumulated(f32, "sm_90a", np.float16, overflowing),
        ),
        (
            "bf16, 1 % of columns subnormal",
            0.085,
            _subnormal(_BF16, "sm_90a"),
        ),
    )
    return (Product(name=name, size=size, goal=goal, make=make) for name, goal, make in rows)
