"""Arguments and expected results of the kernels in traces/kernels that multiply matrices.

Three sorts of operands. "integers": small ones, the expectation being NumPy's own product, which is exact.
"normal": heavy-tailed random numbers. "codes": any finite code of the format, subnormals included. The last
two expect what warpsim.gemm says, one instruction along k after the other. Knows nothing about how kernels
are executed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

import warpsim
from warpsim.isa.codes import codes_of, integers, values_of
from warpsim.isa.formats import Format
from warpsim.isa.instruction import Instruction
from warpsim.isa.metadata.arrangements import convert

Array = npt.NDArray[Any]
Rng = np.random.Generator


@dataclass(frozen=True, kw_only=True)
class Case:
    """One launch: ``expected`` has the arrays that it leaves, by the index of the parameter.

    ``passed`` makes arguments of these: tensor maps of arrays, where a kernel takes some.
    """

    file: str
    entry: str
    grid: int | tuple[int, ...]
    block: int
    arguments: Sequence[Any]
    expected: dict[int, Array]
    shared_bytes: int = 0
    passed: Callable[[Sequence[Any]], Sequence[Any]] = list
    cluster: int | None = None


# --- operands ----------------------------------------------------------------------------------------


def _finite(codes: Array, element: Format) -> Array:
    """Codes with those of NaN and infinity replaced by zero."""
    return np.where(np.isfinite(values_of(codes, element)), codes, codes.dtype.type(0))


def _integers(rng: Rng, shape: tuple[int, ...], element: Format) -> Array:
    """Codes of integers from -2 to 2, or of any for a format of integers."""
    if not element.is_float:
        return _any(rng, shape, element)
    return codes_of(rng.integers(-2, 3, shape).astype(element.dtype), element, "operand")


def _normal(rng: Rng, shape: tuple[int, ...], element: Format) -> Array:
    """Codes of random numbers over some binades."""
    if not element.is_float:
        return _any(rng, shape, element)
    limit = 4.0 if element.bits <= 8 else 64.0
    values = np.clip(rng.standard_t(3, shape), -limit, limit).astype(element.dtype)
    return codes_of(values, element, "operand")


def _any(rng: Rng, shape: tuple[int, ...], element: Format) -> Array:
    """Any codes, but no NaN or infinity."""
    codes = rng.integers(0, 1 << element.bits, shape, np.uint64).astype(element.code_dtype)
    return _finite(codes, element) if element.is_float else codes


_SORTS: dict[str, Callable[[Rng, tuple[int, ...], Format], Array]] = {
    "integers": _integers,
    "normal": _normal,
    "codes": _any,
}
SORTS = tuple(_SORTS)


def _operand(sort: str, rng: Rng, shape: tuple[int, ...], element: Format) -> Array:
    """Codes of an operand; tf32 has its own 19 bits only."""
    codes = _SORTS[sort](rng, shape, element)
    return codes & element.code_dtype.type(~((1 << element.ignored_bits) - 1) & element.mask)


def _number(codes: Array, element: Format) -> Array:
    """Exact values, of which NumPy forms exact products."""
    return values_of(codes, element) if element.is_float else integers(codes, element)


def _stored(codes: Array, element: Format) -> Array:
    """As they lie in memory: formats of four bits two to a byte, the first one lower."""
    if element.bits > 4:
        return np.ascontiguousarray(codes)
    return codes[..., ::2] | codes[..., 1::2] << 4


def _pattern(rng: Rng, rows: int, k: int, form: Instruction) -> Array:
    """Ascending indices ``(rows, units)`` of the units that each chunk keeps."""
    pattern = form.pattern
    assert pattern is not None
    order = rng.random((rows, k // pattern.chunk, pattern.choices)).argsort(axis=-1)
    return np.sort(order[..., : pattern.kept], axis=-1).reshape(rows, -1).astype(np.uint8)


def _decompressed(values: Array, indices: Array, k: int, form: Instruction) -> Array:
    """A ``(rows, k)`` with its zeros."""
    pattern = form.pattern
    assert pattern is not None
    dense = np.zeros((values.shape[0], k), values.dtype)
    for row, column in np.ndindex(values.shape):
        unit, part = divmod(column, pattern.unit)
        chunk = unit // pattern.kept
        place = chunk * pattern.chunk + int(indices[row, unit]) * pattern.unit + part
        dense[row, place] = values[row, column]
    return dense


def _product(form: Instruction, A: Array, B: Array) -> Array:
    """The exact product of numbers, as words of D."""
    if form.d.is_float:
        exact: Array = (A @ B).astype(np.float32)
        return exact.view(np.uint32)
    return (A.astype(np.int64) @ B.astype(np.int64)).astype(np.int32).view(np.uint32)


def _words(D: Array) -> Array:
    return np.ascontiguousarray(D).view(np.uint32)


# --- products ----------------------------------------------------------------------------------------


def _sparse(sort: str, rng: Rng, *, mnemonic: str, target: str, file: str, entry: str) -> Case:
    form = warpsim.decode(f"mma.sp::ordered_metadata.sync.aligned.{mnemonic}", target=target)
    m, n, k = 64, 96, 5 * form.shape.k
    indices = _pattern(rng, m, k, form)
    values = _operand(sort, rng, (m, k // 2), form.a)
    B = _operand(sort, rng, (k, n), form.b)
    scales = _scales(sort, rng, form, m, n, 5) if form.scale else {}
    if sort == "integers":
        A = _decompressed(_number(values, form.a), indices, k, form)
        numbers = _number(B, form.b)
        if form.scale:
            A, numbers = _scaled(form, A, numbers, **scales)
        expected = _product(form, A, numbers)
    else:
        expected = _words(warpsim.gemm(form, (values, indices), B, **scales))
    e = convert(indices, m, k, form, source="indices", target=f"lanes {form.shape} selector 0")
    right = _stored(np.ascontiguousarray(B.T), form.b)
    words = [_scale_words(scales["scale_a"], 5), _scale_words(scales["scale_b"].T, 5)] if scales else []
    return Case(
        file=file,
        entry=entry,
        grid=(n // 32, m // 32),
        block=64,
        arguments=(_stored(values, form.a), e, right, np.zeros((m, n), np.uint32), *words, n, k),
        expected={3: expected},
    )


def _scales(sort: str, rng: Rng, form: Instruction, m: int, n: int, steps: int) -> dict[str, Array]:
    """Scales of A and B: powers of two near 1 with integers, else any finite ones."""
    assert form.scale is not None
    chunks = steps * form.scale_chunks
    shapes = {"scale_a": (m, chunks), "scale_b": (chunks, n)}
    if sort == "integers":
        choices = np.array([0.5, 1.0, 2.0]).astype(form.scale.dtype).view(np.uint8)
        return {name: rng.choice(choices, shape) for name, shape in shapes.items()}
    if sort == "codes" and form.scale.name == "ue4m3":
        return {name: rng.integers(0, 127, shape).astype(np.uint8) for name, shape in shapes.items()}
    middle = form.scale.dtype.type(1).view(np.uint8)
    return {name: (middle + rng.integers(-8, 9, shape)).astype(np.uint8) for name, shape in shapes.items()}


def _scaled(form: Instruction, A: Array, B: Array, scale_a: Array, scale_b: Array) -> tuple[Array, Array]:
    """The matrices with every element multiplied by the scale of its chunk."""
    assert form.scale is not None
    width = form.shape.k // form.scale_chunks
    left, right = (one.view(form.scale.dtype).astype(np.float64) for one in (scale_a, scale_b))
    return A * np.repeat(left, width, axis=1), B * np.repeat(right, width, axis=0)


def _scale_words(codes: Array, steps: int) -> Array:
    """``(rows, steps)``: the scales of a step in one word, the first one lowest."""
    parts = codes.reshape(codes.shape[0], steps, -1).astype(np.uint32)
    shifts = 8 * np.arange(parts.shape[-1], dtype=np.uint32)
    return np.bitwise_or.reduce(parts << shifts, axis=-1)


@dataclass(frozen=True, kw_only=True)
class _Dense:
    """Operands of a dense product, and what they make."""

    form: Instruction
    left: Array
    right: Array
    expected: Array


def _operands(
    sort: str, rng: Rng, mnemonic: str, size: tuple[int, int, int], splits: int = 1, target: str = "sm_80"
) -> _Dense:
    """A (m, k) and B (k, n) as codes."""
    form = warpsim.decode(f"mma.sync.aligned.{mnemonic}", target=target)
    m, n, k = size
    A, B = _operand(sort, rng, (m, k), form.a), _operand(sort, rng, (k, n), form.b)
    if sort == "integers":
        expected = _product(form, _number(A, form.a), _number(B, form.b))
    else:
        expected = _words(warpsim.gemm(form, A, B, split_k=splits))
    return _Dense(form=form, left=A, right=B, expected=expected)


def _in_memory(operands: _Dense, transposes: bool) -> tuple[Array, Array]:
    """A row by row; B so too where the kernel transposes, else column by column."""
    right = operands.right if transposes else operands.right.T
    return _stored(operands.left, operands.form.a), _stored(right, operands.form.b)


_F16 = "m16n8k16.row.col.f32.f16.f16.f32"
_S8 = "m16n8k32.row.col.s32.s8.s8.s32"


def _dense(sort: str, rng: Rng, *, mnemonic: str, entry: str, transposes: bool) -> Case:
    form = warpsim.decode(f"mma.sync.aligned.{mnemonic}", target="sm_80")
    m, n, k = 64, 96, 5 * form.shape.k
    operands = _operands(sort, rng, mnemonic, (m, n, k))
    return Case(
        file="dense_tiles.ptx",
        entry=entry,
        grid=(n // 32, m // 32),
        block=64,
        arguments=(*_in_memory(operands, transposes), np.zeros((m, n), np.uint32), n, k),
        expected={2: operands.expected},
    )


def _ring(sort: str, rng: Rng) -> Case:
    """Four CTAs for six tiles of seven steps: two have two tiles, and the ring of three stages goes round."""
    m, n, k = 64, 96, 7 * 32
    operands = _operands(sort, rng, _F16, (m, n, k), target="sm_90a")
    return Case(
        file="bulk_ring.ptx",
        entry="bulk_ring",
        grid=4,
        block=96,
        arguments=(*_in_memory(operands, False), np.zeros((m, n), np.uint32), m, n, k),
        expected={2: operands.expected},
    )


def _split(sort: str, rng: Rng, *, mnemonic: str, entry: str, transposes: bool) -> Case:
    """Six steps in four shares: two each, and none for the last."""
    form = warpsim.decode(f"mma.sync.aligned.{mnemonic}", target="sm_80")
    m, n, k = 32, 64, 6 * form.shape.k
    operands = _operands(sort, rng, mnemonic, (m, n, k), splits=4)
    return Case(
        file="split_k.ptx",
        entry=entry,
        grid=(n // 32, m // 32, 4),
        block=64,
        arguments=(*_in_memory(operands, transposes), np.zeros((m, n), np.uint32), n, k),
        expected={2: operands.expected},
    )


def _ragged(sort: str, rng: Rng, *, size: tuple[int, int, int]) -> Case:
    m, n, k = size
    operands = _operands(sort, rng, _F16, size)
    return Case(
        file="ragged.ptx",
        entry="ragged_f16",
        grid=(-(-n // 16), -(-m // 32)),
        block=64,
        arguments=(operands.left, operands.right, np.zeros((m, n), np.uint32), m, n, k),
        expected={2: operands.expected},
    )


def _benchmark(sort: str, rng: Rng, *, size: tuple[int, int, int]) -> Case:
    form = warpsim.decode(
        "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", target="sm_80"
    )
    m, n, k = size
    indices = _pattern(rng, m, k, form)
    values, B = _operand(sort, rng, (m, k // 2), form.a), _operand(sort, rng, (k, n), form.b)
    if sort == "integers":
        A = _decompressed(_number(values, form.a), indices, k, form)
        expected = _product(form, A, _number(B, form.b))
    else:
        expected = _words(warpsim.gemm(form, (values, indices), B))
    e = convert(indices, m, k, form, source="indices", target="cutlass")
    return Case(
        file="sparse_product.ptx",
        entry="sparse_product",
        grid=(n // 64, m // 128),
        block=128,
        arguments=(values, e, B, np.zeros((m, n), np.uint32), m, n, k),
        expected={3: expected},
        shared_bytes=49152,
    )


# --- warpgroups --------------------------------------------------------------------------------------


def _warpgroup_dense(
    sort: str, rng: Rng, *, mnemonic: str, entry: str, size: tuple[int, int, int], rows: int, **options: Any
) -> Case:
    """CTAs of ``rows`` rows, 64 for each warpgroup; ``options`` are those of gemm."""
    form = warpsim.decode(f"wgmma.mma_async.sync.aligned.{mnemonic}", target="sm_90a")
    m, n, k = size
    A, B = _operand(sort, rng, (m, k), form.a), _operand(sort, rng, (k, n), form.b)
    if sort == "integers":
        expected = _product(form, _number(A, form.a), _number(B, form.b))
    else:
        expected = _words(warpsim.gemm(form, A, B, **options))
    return Case(
        file="warpgroup_tiles.ptx",
        entry=entry,
        grid=(n // 64, m // rows),
        block=2 * rows,
        arguments=(A, np.ascontiguousarray(B.T), np.zeros((m, n), np.uint32), n, k),
        expected={2: expected},
    )


def _warpgroup_sparse(sort: str, rng: Rng, *, size: tuple[int, int, int]) -> Case:
    form = warpsim.decode("wgmma.mma_async.sp.sync.aligned.m64n64k32.f32.f16.f16", target="sm_90a")
    m, n, k = size
    indices = _pattern(rng, m, k, form)
    values, B = _operand(sort, rng, (m, k // 2), form.a), _operand(sort, rng, (k, n), form.b)
    if sort == "integers":
        A = _decompressed(_number(values, form.a), indices, k, form)
        expected = _product(form, A, _number(B, form.b))
    else:
        expected = _words(warpsim.gemm(form, (values, indices), B))
    e = convert(indices, m, k, form, source="indices", target=f"lanes {form.shape} selector 0")
    return Case(
        file="warpgroup_tiles.ptx",
        entry="warpgroup_sparse_f16",
        grid=(n // 64, m // 64),
        block=128,
        arguments=(values, e, np.ascontiguousarray(B.T), np.zeros((m, n), np.uint32), n, k),
        expected={3: expected},
    )


# --- epilogues ---------------------------------------------------------------------------------------


def _relu(x: Array) -> Array:
    return np.where(x > 0, x, np.float32(0))


def _gelu(x: Array) -> Array:
    """Every operation rounded to f32; tanh is NumPy's of float64, rounded once."""
    cube = x * x * x
    inner = np.float32(0.79788456) * (x + np.float32(0.044715) * cube)
    bent = np.tanh(inner.astype(np.float64)).astype(np.float32)
    result: Array = np.float32(0.5) * x * (np.float32(1) + bent)
    return result


def _epilogue(sort: str, rng: Rng, *, entry: str, activation: Callable[[Array], Array]) -> Case:
    m, n, k = 32, 64, 48
    operands = _operands(sort, rng, _F16, (m, n, k))
    bias = rng.normal(size=n).astype(np.float32)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        results = activation(operands.expected.view(np.float32) + bias).astype(np.float16)
    return Case(
        file="epilogue.ptx",
        entry=entry,
        grid=(n // 32, m // 32),
        block=64,
        arguments=(operands.left, operands.right, bias, np.zeros((m, n), np.uint16), n, k),
        expected={3: results.view(np.uint16)},
    )


# --- the kernels -------------------------------------------------------------------------------------

_SPARSE: tuple[tuple[str, str, str, str], ...] = (
    #  entry           file                 target     form
    ("sparse_f16", "sparse_tiles.ptx", "sm_80", "m16n8k32.row.col.f32.f16.f16.f32"),
    ("sparse_bf16", "sparse_tiles.ptx", "sm_80", "m16n8k32.row.col.f32.bf16.bf16.f32"),
    ("sparse_tf32", "sparse_tiles.ptx", "sm_80", "m16n8k16.row.col.f32.tf32.tf32.f32"),
    ("sparse_s8", "sparse_tiles.ptx", "sm_80", "m16n8k64.row.col.s32.s8.s8.s32"),
    ("sparse_s4", "sparse_tiles.ptx", "sm_80", "m16n8k128.row.col.s32.s4.s4.s32"),
    ("sparse_e4m3", "sparse_e4m3.ptx", "sm_89", "m16n8k64.row.col.f32.e4m3.e4m3.f32"),
    (
        *("sparse_nvf4", "sparse_fp4.ptx", "sm_120a"),
        "m16n8k128.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
    ),
    (
        *("sparse_mxf4", "sparse_fp4.ptx", "sm_120a"),
        "m16n8k128.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0",
    ),
)
_DENSE = (
    #  entry        form                                  B is transposed on the way
    ("dense_f16", _F16, True),
    ("dense_bf16", "m16n8k16.row.col.f32.bf16.bf16.f32", True),
    ("dense_tf32", "m16n8k8.row.col.f32.tf32.tf32.f32", False),
    ("dense_s8", _S8, False),
)
_SIZES = ((1, 1, 1), (33, 17, 19), (5, 31, 3), (40, 24, 48), (64, 16, 32))


_WARPGROUP_F16: dict[str, Any] = {
    "mnemonic": "m64n64k16.f32.f16.f16",
    "entry": "warpgroup_f16",
    "rows": 64,
}
_WARPGROUP_E4M3: dict[str, Any] = {
    "mnemonic": "m64n64k32.f32.e4m3.e4m3",
    "entry": "warpgroup_e4m3",
    "rows": 128,
    "promote_every": 4,
}


def products() -> Iterator[tuple[str, Callable[[str, Rng], Case]]]:
    """Names, and the launch with operands of a sort; it is the same for the same generator."""
    for entry, file, target, form in _SPARSE:
        yield entry, partial(_sparse, mnemonic=form, target=target, file=file, entry=entry)
    for entry, form, transposes in _DENSE:
        yield entry, partial(_dense, mnemonic=form, entry=entry, transposes=transposes)
    yield "bulk_ring", _ring
    yield "split_k_s32", partial(_split, mnemonic=_S8, entry="split_k_s32", transposes=False)
    for size in _SIZES:
        yield "ragged_f16 {}x{}x{}".format(*size), partial(_ragged, size=size)
    yield "bias_relu", partial(_epilogue, entry="bias_relu", activation=_relu)
    yield "sparse_product", partial(_benchmark, size=(128, 128, 256))
    yield "warpgroup_f16", partial(_warpgroup_dense, **_WARPGROUP_F16, size=(128, 192, 192))
    yield "warpgroup_sparse_f16", partial(_warpgroup_sparse, size=(192, 128, 192))
    yield "warpgroup_e4m3", partial(_warpgroup_dense, **_WARPGROUP_E4M3, size=(256, 128, 384))


def inexact_products() -> Iterator[tuple[str, Callable[[str, Rng], Case]]]:
    """Those that are not for every sort: sums in nobody's order, and an approximate function."""
    yield "split_k_f32", partial(_split, mnemonic=_F16, entry="split_k_f32", transposes=True)
    yield "bias_gelu", partial(_epilogue, entry="bias_gelu", activation=_gelu)


def benchmark(rng: Rng) -> Case:
    """A product of 512 x 512 x 512: 32,768 mma.sp."""
    return _benchmark("normal", rng, size=(512, 512, 512))


def warpgroup_benchmark(rng: Rng) -> Case:
    """A product of 512 x 512 x 512: 2,048 wgmma."""
    return _warpgroup_dense("normal", rng, **_WARPGROUP_F16, size=(512, 512, 512))
