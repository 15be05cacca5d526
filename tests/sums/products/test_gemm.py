"""gemm against the tile loop written out with matmul, and everything its bits must not depend on."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import warpsim
from tests.helpers.compilation import done_by_kernels, done_by_numpy
from warpsim.isa.instruction import Instruction
from warpsim.sums.arithmetic import panels
from warpsim.sums.arithmetic.kernels._jit import interpreted
from warpsim.sums.arithmetic.numerics import needs_compiler
from warpsim.sums.execution.compilation_budget import CALL, PROCESS
from warpsim.sums.execution.pipeline import rule_for
from warpsim.sums.products import compiled_chains
from warpsim.sums.products.gemm import gemm, gemm_sparse

Matrix = Any

_DENSE = "mma.sync.aligned.m16n8k{}.row.col.{}"
_SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k{}.row.col.{}"
_BLOCK = "mma.sync.aligned.m16n8k{}.row.col.kind::{}.block_scale.{}"


def _form(mnemonic: str, target: str) -> Instruction:
    return warpsim.decode(mnemonic, target=target)


F16 = _form(_DENSE.format(16, "f32.f16.f16.f32"), "sm_90a")
HALF = _form(_DENSE.format(16, "f16.f16.f16.f16"), "sm_80")
FORMS = [
    F16,
    HALF,
    _form(_DENSE.format(8, "f32.tf32.tf32.f32"), "sm_80"),
    _form(_DENSE.format(16, "f32.bf16.bf16.f32"), "sm_80"),
    _form(_DENSE.format(32, "f32.e4m3.e5m2.f32"), "sm_89"),
    _form(_DENSE.format(32, "f32.e4m3.e5m2.f32"), "sm_90a"),
    _form(_DENSE.format(32, "f16.e5m2.e5m2.f16"), "sm_90a"),
    _form(_DENSE.format(16, "f64.f64.f64.f64"), "sm_90a"),
    _form(_DENSE.format(32, "s32.s8.u8.s32"), "sm_80"),
    _form(_DENSE.format(32, "satfinite.s32.s8.s8.s32"), "sm_80"),
    _form(_DENSE.format(64, "satfinite.s32.u4.s4.s32"), "sm_80"),
    _form(_DENSE.format(256, "s32.b1.b1.s32.xor.popc"), "sm_80"),
    _form(_DENSE.format(256, "s32.b1.b1.s32.and.popc"), "sm_80"),
    _form(_SPARSE.format(32, "f32.f16.f16.f32"), "sm_90a"),
    _form(_SPARSE.format(16, "f32.tf32.tf32.f32"), "sm_80"),
    _form(_SPARSE.format(64, "f32.e4m3.e4m3.f32"), "sm_90a"),
    _form(_SPARSE.format(64, "satfinite.s32.s8.s8.s32"), "sm_80"),
]
every_form = pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.target} {form.mnemonic[17:]}")


def _codes(element: Any, shape: tuple[int, ...], rng: np.random.Generator) -> Matrix:
    """Numbers of moderate size, with some raw bit patterns among them."""
    raw = rng.integers(0, element.mask, shape, np.uint64, endpoint=True).astype(element.code_dtype)
    if not element.is_float:
        return raw
    codes = rng.standard_normal(shape).astype(element.dtype).view(element.code_dtype)
    return np.where(rng.random(shape) < 0.002, raw, codes)


def _operands(form: Instruction, m: int, n: int, k: int, seed: int) -> tuple[Matrix, Matrix, Matrix]:
    rng = np.random.default_rng(seed)
    a = _codes(form.a, (m, k), rng)
    if form.sparse:
        missing = -k % form.shape.k
        a = warpsim.prune(np.pad(a, ((0, 0), (0, missing))), form)[:, :k]
    return a, _codes(form.b, (k, n), rng), _codes(form.c, (m, n), rng)


def _filled(matrix: Matrix, rows: int, columns: int) -> Matrix:
    shape = [(0, -matrix.shape[0] % rows), (0, -matrix.shape[1] % columns)]
    return np.pad(matrix, shape)


def tile_loop(form: Instruction, a: Matrix, b: Matrix, c: Matrix) -> Matrix:
    """D as a kernel computes it: tile by tile, instruction by instruction."""
    m, n, k = form.shape.m, form.shape.n, form.shape.k
    a, b, d = _filled(a, m, k), _filled(b, k, n), _filled(c, m, n).view(form.d.code_dtype)
    for i in range(0, d.shape[0], m):
        for j in range(0, d.shape[1], n):
            tile = d[i : i + m, j : j + n]
            for p in range(0, a.shape[1], k):
                result = warpsim.matmul(form, a[i : i + m, p : p + k], b[p : p + k, j : j + n], tile)
                tile = result.view(form.d.code_dtype)
            d[i : i + m, j : j + n] = tile
    return d[: c.shape[0], : c.shape[1]]


def _bits(matrix: Matrix) -> Matrix:
    return matrix.view(f"u{matrix.dtype.itemsize}")


# --- the tile loop -----------------------------------------------------------------------------------


@every_form
@pytest.mark.parametrize("edges", [(0, 0, 0), (3, 5, 7)], ids=["whole", "ragged"])
def test_gemm_is_the_tile_loop(form: Instruction, edges: tuple[int, int, int]) -> None:
    tiles = (1, 1, 2) if interpreted() else (3, 5, 3)
    m, n, k = (
        size * count - edge
        for size, count, edge in zip((form.shape.m, form.shape.n, form.shape.k), tiles, edges, strict=True)
    )
    a, b, c = _operands(form, m, n, k, seed=1)
    d = gemm(form, a, b, c)
    assert d.dtype == form.d.dtype
    np.testing.assert_array_equal(_bits(d), tile_loop(form, a, b, c))
    np.testing.assert_array_equal(_bits(gemm(form, a, b)), tile_loop(form, a, b, np.zeros_like(c)))


@every_form
def test_numpy_computes_small_products_with_the_same_bits(form: Instruction) -> None:
    """Ragged ones, whichever way instructions along k hang together; a fused multiply-add needs a kernel."""
    a, b, c = _operands(form, 19, 13, 3 * form.shape.k + 2, seed=14)
    chains: list[dict[str, int]] = [{}, {"split_k": 2}, *([{"promote_every": 2}] if form.d.is_float else [])]
    for chain in chains:
        expected = [_bits(gemm(form, a, b, some, **chain)) for some in (c, None)]
        with done_by_numpy():
            found = [_bits(gemm(form, a, b, some, **chain)) for some in (c, None)]
            assert list(PROCESS.spent) == ([] if needs_compiler(rule_for(form)) else [form.product])
        np.testing.assert_array_equal(found, expected)


def test_kernels_compute_what_is_larger_or_comes_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """The products of all instructions count, and those of calls before; progress is reported either way."""
    called: list[Matrix] = []
    by_kernels = compiled_chains.chained
    monkeypatch.setattr(
        compiled_chains, "chained", lambda request, *rest: called.append(1) or by_kernels(request, *rest)
    )
    a, b, c = _operands(F16, 16, 8, 32, seed=15)
    count, seen = 16 * 8 * 32, list[tuple[int, int]]()
    with done_by_numpy(2 * (count + CALL) - 1):
        gemm(F16, a, b, c, progress=lambda *news: seen.append(news))
        assert not called
        gemm(F16, a, b, c, progress=lambda *news: seen.append(news))
        assert len(called) == 1
    assert seen == [(128, 128), (128, 128)]
    with done_by_numpy(count + CALL - 1):
        gemm(F16, a, b, c)
    assert len(called) == 2


@pytest.mark.parametrize("target", ["sm_120a"])
@pytest.mark.parametrize(
    ("kind", "k", "chunks", "types"),
    [
        ("mxf8f6f4", 32, 1, "f32.e4m3.e5m2.f32.ue8m0"),
        ("mxf4nvf4", 64, 4, "scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"),
    ],
)
def test_block_scales(target: str, kind: str, k: int, chunks: int, types: str) -> None:
    form = _form(_BLOCK.format(k, kind, types), target)
    a, b, c = _operands(form, 32, 16, 2 * k, seed=2)
    rng = np.random.default_rng(3)
    scale_a = rng.integers(100, 120, (32, 2 * chunks)).astype(np.uint8)
    scale_b = rng.integers(100, 120, (2 * chunks, 16)).astype(np.uint8)
    if kind == "mxf8f6f4":
        scale_a[3, 1] = scale_b[0, 5] = 255
    d = gemm(form, a, b, c, scale_a=scale_a, scale_b=scale_b)
    with done_by_numpy():
        np.testing.assert_array_equal(_bits(gemm(form, a, b, c, scale_a=scale_a, scale_b=scale_b)), _bits(d))
    expected = c.copy()
    for i in (0, 16):
        for j in (0, 8):
            tile = c[i : i + 16, j : j + 8]
            for p in range(2):
                along, scaled = slice(p * k, (p + 1) * k), slice(p * chunks, (p + 1) * chunks)
                of_a, of_b = scale_a[i : i + 16, scaled], scale_b[scaled, j : j + 8]
                left, right = a[i : i + 16, along], b[along, j : j + 8]
                tile = _bits(warpsim.matmul(form, left, right, tile, of_a, of_b))
            expected[i : i + 16, j : j + 8] = tile
    np.testing.assert_array_equal(_bits(d), expected)


@pytest.mark.parametrize("form", [form for form in FORMS if form.sparse], ids=str)
def test_sparse_operands_may_come_compressed(form: Instruction) -> None:
    a, b, c = _operands(form, 20, 12, 2 * form.shape.k, seed=4)
    values, indices = warpsim.compress(a, form)
    d = gemm(form, a, b, c)
    np.testing.assert_array_equal(_bits(gemm(form, (values, indices), b, c)), _bits(d))
    np.testing.assert_array_equal(_bits(gemm_sparse(form, values, indices, b, c)), _bits(d))


def test_unselected_rows_do_not_matter() -> None:
    form = next(form for form in FORMS if form.sparse)
    a, b, _ = _operands(form, 16, 8, 64, seed=5)
    values, indices = warpsim.compress(a[:1], form)
    spoilt = b.copy()
    spoilt[
        np.setdiff1d(np.arange(64), np.arange(0, 64, 4)[:, None].repeat(2, 1).reshape(-1) + indices[0])
    ] = 0x7E00
    one, other = gemm(form, (values, indices), b), gemm(form, (values, indices), spoilt)
    np.testing.assert_array_equal(_bits(one), _bits(other))


def test_integers_that_clamp_on_the_way() -> None:
    form = _form(_DENSE.format(32, "satfinite.s32.s8.s8.s32"), "sm_80")
    rng = np.random.default_rng(6)
    a = rng.choice(np.array([-128, 127], np.int8), (16, 320))
    b = rng.choice(np.array([-128, 127], np.int8), (320, 8))
    c = rng.choice(np.array([-(2**31), 2**31 - 1, 0, 2**31 - 200_000], np.int32), (16, 8))
    expected = tile_loop(form, a, b, c)
    np.testing.assert_array_equal(_bits(gemm(form, a, b, c)), expected)
    wrapping = _form(_DENSE.format(32, "s32.s8.s8.s32"), "sm_80")
    assert (_bits(gemm(wrapping, a, b, c)) != expected).any()


@pytest.mark.parametrize("types", ["s8.u8", "u8.u8", "s4.s4"])
@pytest.mark.parametrize("share", [0.02, 0.5])
def test_few_and_many_elements_near_the_limits_clamp_alike(types: str, share: float) -> None:
    k = 32 if "8" in types else 64
    form = _form(_DENSE.format(k, f"satfinite.s32.{types}.s32"), "sm_80")
    a, b, c = _operands(form, 16, 136, 5 * k - 3, seed=60)
    rng = np.random.default_rng(61)
    low, high = rng.integers(-(2**31), -(2**31) + 9000, (2, 16, 136))
    chosen = np.where(rng.random((16, 136)) < 0.5, low, -1 - high)
    c = np.where(rng.random((16, 136)) < share, chosen, c.view(np.int32) >> 8).astype(np.int32)
    np.testing.assert_array_equal(_bits(gemm(form, a, b, c)), tile_loop(form, a, b, c))


@pytest.mark.parametrize("types", ["s8", "u8"])
def test_large_integers_stay_exact_in_blas(types: str) -> None:
    form = _form(_DENSE.format(32, f"s32.{types}.{types}.s32"), "sm_80")
    dtype = np.dtype(form.a.dtype)
    worst = np.iinfo(dtype).min or np.iinfo(dtype).max
    a, b = np.full((3, 5000), worst, dtype), np.full((5000, 2), worst, dtype)
    np.testing.assert_array_equal(gemm(form, a, b), np.full((3, 2), 5000 * int(worst) ** 2))


# --- promotion and splitting -------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS[:7], ids=str)
@pytest.mark.parametrize("every", [1, 2, 5])
def test_promotion(form: Instruction, every: int) -> None:
    k = form.shape.k
    a, b, c = _operands(form, 16, 8, 5 * k - 3, seed=7)
    main = c.view(form.c.dtype).astype(np.float32)
    for first in range(0, 5 * k, every * k):
        part = gemm(form, a[:, first : first + every * k], b[first : first + every * k])
        with np.errstate(all="ignore"):
            main = main + part.astype(np.float32)
    with np.errstate(all="ignore"):
        expected = main.astype(form.d.dtype)
    d = gemm(form, a, b, c, promote_every=every)
    np.testing.assert_array_equal(d, expected)
    assert (_bits(d)[np.isnan(expected)] == form.d.canonical_nan).all()


def test_promotion_of_f64_stays_in_f64() -> None:
    a, b = np.full((1, 32), 1e300), np.linspace(0.1, 3.1, 32)[:, None]
    parts = [gemm(FORMS[7], a[:, at], b[at]) for at in (slice(0, 16), slice(16, 32))]
    c = np.array([[1e285]])
    assert gemm(FORMS[7], a, b, c, promote_every=1) == (c + parts[0]) + parts[1] < np.inf


def test_the_top_bit_of_a_ue4m3_scale_is_ignored() -> None:
    form = _form(_BLOCK.format(64, "mxf4nvf4", "scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"), "sm_120a")
    a, b, c = _operands(form, 16, 8, 64, seed=14)
    scale_a, scale_b = np.arange(64, dtype=np.uint8).reshape(16, 4), np.full((4, 8), 0x38, np.uint8)
    plain = gemm(form, a, b, c, scale_a=scale_a, scale_b=scale_b)
    marked = gemm(form, a, b, c, scale_a=scale_a | 128, scale_b=scale_b | 128)
    np.testing.assert_array_equal(_bits(marked), _bits(plain))


def test_split_k_adds_the_parts_in_order_and_c_last() -> None:
    a, b, c = _operands(F16, 32, 24, 112, seed=8)
    parts = [gemm(F16, a[:, at], b[at]) for at in (slice(0, 48), slice(48, 96), slice(96, 112))]
    with np.errstate(all="ignore"):
        expected = ((parts[0] + parts[1]) + parts[2]) + c.view(np.float32)
    np.testing.assert_array_equal(gemm(F16, a, b, c, split_k=3), expected)
    np.testing.assert_array_equal(gemm(F16, a, b, c, split_k=1), gemm(F16, a, b, c))
    promoted = [gemm(F16, a[:, at], b[at], promote_every=1) for at in (slice(0, 64), slice(64, 112))]
    with np.errstate(all="ignore"):
        expected = promoted[0] + promoted[1]
    np.testing.assert_array_equal(gemm(F16, a, b, split_k=2, promote_every=1), expected)


def test_split_k_of_integers_wraps_or_clamps() -> None:
    a, b = np.full((1, 64), -128, np.int8), np.full((64, 1), -128, np.int8)
    c = np.full((1, 1), 2**31 - 1, np.int32)
    wrap = _form(_DENSE.format(32, "s32.s8.s8.s32"), "sm_80")
    assert gemm(wrap, a, b, c, split_k=2)[0, 0] == 64 * 2**14 - 1 - 2**31
    clamp = _form(_DENSE.format(32, "satfinite.s32.s8.s8.s32"), "sm_80")
    assert gemm(clamp, a, b, c, split_k=2)[0, 0] == 2**31 - 1


# --- what the bits do not depend on ------------------------------------------------------------------

_SIZE = (300, 530, 160)


def _large() -> tuple[Matrix, Matrix, Matrix]:
    return _operands(F16, *_SIZE, seed=9)


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_threads_do_not_change_bits(threads: int) -> None:
    for form in (F16, FORMS[13]):
        m, n, k = (20, 12, 64) if interpreted() else _SIZE
        a, b, c = _operands(form, m, n, k, seed=9)
        one = gemm(form, a, b, c)
        np.testing.assert_array_equal(_bits(gemm(form, a, b, c, threads=threads)), _bits(one))


def test_blocks_do_not_change_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c = _large()
    d = gemm(F16, a, b, c)
    part = gemm(F16, a[130:261], b[:, 250:280], c[130:261, 250:280])
    np.testing.assert_array_equal(_bits(part), _bits(d)[130:261, 250:280])
    monkeypatch.setattr(panels, "_A_BYTES", 1)
    np.testing.assert_array_equal(_bits(gemm(F16, a, b, c)), _bits(d))


def test_memory_order_does_not_change_bits() -> None:
    a, b, c = _large()
    d = gemm(F16, np.asfortranarray(a), np.asfortranarray(b), np.asfortranarray(c))
    np.testing.assert_array_equal(_bits(d), _bits(gemm(F16, a, b, c)))
    floats = gemm(F16, a.view(np.float16), b.view(np.float16), c.view(np.float32))
    np.testing.assert_array_equal(_bits(floats), _bits(d))


def test_operands_are_not_written_to() -> None:
    a, b, c = _large()
    before = [x.copy() for x in (a, b, c)]
    gemm(F16, a, b, c.view(np.float32))
    for x, y in zip((a, b, c), before, strict=True):
        np.testing.assert_array_equal(x, y)


def digest(every: int = 1) -> str:
    """A digest of results of several rules, or of each ``every``-th, to compare with other interpreters."""
    found = hashlib.sha256()
    for form in (*FORMS[:7], FORMS[13])[::every]:
        a, b, c = _operands(form, 19, 21, 70 if form.shape.k <= 32 else 130, seed=10)
        with done_by_kernels():
            found.update(_bits(gemm(form, a, b, c)).tobytes())
        found.update(_executed(form).tobytes())
    return found.hexdigest()


def _executed(form: Instruction) -> Matrix:
    """D registers of one instruction, from words of any bits."""
    rng = np.random.default_rng(11)
    words = {
        name: rng.integers(0, 1 << 32, (3, form.lanes, count), np.uint32)
        for name, count in form.registers.items()
        if name in "abc"
    }
    if form.sparse:
        words["e"] = np.full((form.lanes, 1), 0x44444444, np.uint32)
    if form.scale:
        words |= dict.fromkeys(("scale_a", "scale_b"), np.full((32, 1), 0x7F7F7F7F, np.uint32))
    with done_by_kernels():
        return warpsim.execute(form, **words)


def test_the_compiler_does_not_change_bits(tmp_path: Path) -> None:
    """Without a compiler; test_environment.py asks for another processor's code."""
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    code = "from tests.sums.products import test_gemm; print(test_gemm.digest())"
    directory = Path(__file__).parents[3]
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        cwd=directory,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == digest()


# --- shapes and errors -------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(0, 8, 16), (16, 0, 16), (16, 8, 0), (0, 0, 0), (1, 1, 1)])
@pytest.mark.parametrize("form", [F16, HALF, FORMS[9]], ids=str)
def test_empty_and_smallest(form: Instruction, shape: tuple[int, int, int]) -> None:
    a, b, c = _operands(form, *shape, seed=11)
    np.testing.assert_array_equal(_bits(gemm(form, a, b, c)), tile_loop(form, a, b, c))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"A": np.zeros((4, 15), np.float16)}, "A has 15 columns, but B has 16 rows"),
        ({"A": np.broadcast_to(np.uint8(0), (4, 1 << 40))}, "A has 1099511627776 columns, but B has 16 rows"),
        ({"A": np.zeros((4, 16), np.float32)}, "A has dtype float32"),
        ({"A": np.zeros((2, 4, 16), np.float16)}, "gemm takes one matrix"),
        (
            {"C": np.zeros((4, 4), np.float32)},
            r"C has shape \(4, 4\), but gemm takes one matrix with shape \(4, 8\)",
        ),
        ({"order": "z"}, "order 'z': expected 'k'"),
        ({"split_k": 0}, "at least 1"),
        ({"threads": 0}, "at least 1"),
        ({"promote_every": 0}, "at least 1"),
        ({"scale_a": np.zeros((4, 1), np.uint8)}, "has no block scales"),
    ],
)
def test_errors(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"A": np.zeros((4, 16), np.float16), "B": np.zeros((16, 8), np.float16)}
    with pytest.raises(warpsim.OperandError, match=message):
        gemm(F16, **(given | arguments))


def test_illegal_indices() -> None:
    form = next(form for form in FORMS if form.sparse)
    values, b = np.zeros((4, 16), np.float16), np.zeros((32, 8), np.float16)
    with pytest.raises(warpsim.UndefinedBehavior, match="row 0, chunk 0"):
        gemm_sparse(form, values, np.zeros((4, 16), np.uint8), b)
    gemm_sparse(form, values, np.zeros((4, 16), np.uint8), b, undefined="fallback")
    with pytest.raises(warpsim.OperandError, match="0 to 3"):
        gemm_sparse(form, values, np.full((4, 16), 4, np.uint8), b)


@pytest.mark.parametrize("form", [form for form in FORMS if form.sparse], ids=str)
def test_repeated_indices_read_literally(form: Instruction) -> None:
    assert form.pattern is not None
    values, b, c = _operands(form, 16, 8, form.shape.k, seed=12)
    values = values[:, : form.stored_k]
    indices = np.ones((16, form.stored_k), np.uint8)
    d = gemm_sparse(form, values, indices, b, c, undefined="fallback")
    expected = warpsim.matmul(form, (values, indices), b, c, undefined="fallback")
    np.testing.assert_array_equal(_bits(d), _bits(expected))


def test_promotion_is_for_floats() -> None:
    with pytest.raises(warpsim.OperandError, match="adds floats"):
        gemm(FORMS[8], np.zeros((1, 32), np.int8), np.zeros((32, 1), np.uint8), promote_every=2)


def test_integer_and_ml_dtypes_matrices() -> None:
    form = _form(_DENSE.format(32, "s32.s4.u4.s32"), "sm_80")
    a = np.array([[-8, 7] * 16], ml_dtypes.int4)
    b = np.array([[15], [1]] * 16, ml_dtypes.uint4)
    assert gemm(form, a, b)[0, 0] == 16 * (-120 + 7)


@pytest.mark.parametrize("form", [form for form in FORMS if form.sparse], ids=str)
@pytest.mark.parametrize("arrangement", ["cutlass", "torch", "fields", "words"])
def test_metadata_may_be_as_libraries_store_it(form: Instruction, arrangement: str) -> None:
    k = 4 * form.shape.k
    a, b, c = _operands(form, 64, 12, k, seed=14)
    values, indices = warpsim.compress(a, form)
    stored = warpsim.convert_metadata(indices, 64, k, form, source="indices", target=arrangement)
    d = gemm_sparse(form, values, stored, b, c, arrangement=arrangement, threads=1)
    np.testing.assert_array_equal(_bits(d), _bits(gemm(form, a, b, c)))


def test_unknown_arrangements_are_refused() -> None:
    with pytest.raises(warpsim.OperandError, match="arrangement 'ours': expected fields, indices, words"):
        gemm_sparse(
            FORMS[13],
            np.zeros((16, 16), np.float16),
            np.zeros(4),
            np.zeros((32, 8), np.float16),
            arrangement="ours",
        )


def test_rules_without_panels_go_by_tiles_and_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    form = _form(_BLOCK.format(64, "mxf4nvf4", "scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"), "sm_120a")
    a, b, c = _operands(form, 21, 19, 128, seed=12)
    rng = np.random.default_rng(13)
    scales = {
        "scale_a": rng.integers(0, 127, (21, 8), np.uint8),
        "scale_b": rng.integers(0, 127, (8, 19), np.uint8),
    }
    expected = _bits(gemm(form, a, b, c, threads=1, **scales))
    monkeypatch.setattr(compiled_chains, "_SIDE", 8)
    for threads in (1, 3):
        np.testing.assert_array_equal(_bits(gemm(form, a, b, c, threads=threads, **scales)), expected)
