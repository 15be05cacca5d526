"""Panels and batches against the scalar kernels, bit for bit, on nasty operands of every arithmetic.

Rows of A and columns of B come from the catalogue in nasty.py: the diagonal of their product are its
directed dots, and the rest are pairs of factors that were not made for each other. Three ways compute
every product: the compiled panels, NumPy alone, and batches of small matrices or registers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers import nasty
from tests.helpers.families import sample
from warpsim.base.errors import present
from warpsim.isa.descriptors.packed_tiles import canonical_descriptor
from warpsim.isa.descriptors.tile_shape import TileShape
from warpsim.isa.fragments import fields_of, registers_of, write_fields
from warpsim.isa.instruction import Instruction
from warpsim.isa.operand_places.placements import Inputs
from warpsim.isa.products import Operands
from warpsim.sums.arithmetic import numerics, panels, plans
from warpsim.sums.arithmetic.cores import thread_count
from warpsim.sums.arithmetic.kernels import decode, variants
from warpsim.sums.arithmetic.kernels._jit import interpreted
from warpsim.sums.arithmetic.kernels.variants import Variant
from warpsim.sums.execution import fused_registers, matrix_kernels, pipeline, recipes
from warpsim.sums.execution.compilation_budget import CompilationBudget
from warpsim.sums.execution.pipeline import rule_for
from warpsim.sums.products.gemm import gemm

Array = Any
BLOCKS, SIDE = 2, 16  # instructions along k; rows and columns
SHARE = 512  # instructions of 128 words of D that one thread takes under the fixture

# Of the 25 pairs of formats that 8-bit kinds have, those of equal formats and those with e5m2 first.
FORMS = [
    form
    for form in nasty.arithmetics()
    if plans.applies(form.product, rule_for(form)) and (form.a == form.b or form.a.name == "e5m2")
]
compiled = pytest.mark.skipif(interpreted(), reason="no JIT: there is only NumPy's way")


@dataclass(frozen=True, kw_only=True)
class Product:
    """Codes of one product; ``indices`` of A's units, and its logical columns, where it is sparse."""

    a: Array
    b: Array
    c: Array
    indices: Array = None
    columns: Array = None
    scale_a: Array = None
    scale_b: Array = None

    def operands(self, form: Instruction, number: int, c: Array) -> Operands:
        """The operands of one instruction along k, as a batch of one."""
        s, k, chunks = form.stored_k, form.shape.k, form.scale_chunks
        along = slice(number * s, (number + 1) * s)
        scaled = slice(number * chunks, (number + 1) * chunks)
        return Operands(
            product=form.product,
            a=np.ascontiguousarray(self.a[None, :, along]),
            b=np.ascontiguousarray(self.b[None, number * k : (number + 1) * k]),
            c=c[None],
            columns=None if self.columns is None else self.columns[None, :, along] - number * k,
            scale_a=None if self.scale_a is None else self.scale_a[None, :, scaled],
            scale_b=None if self.scale_b is None else self.scale_b[None, scaled],
        )


def product(form: Instruction, make: nasty.Maker, blocks: int, side: int, seed: int) -> Product:
    rng = np.random.default_rng(seed)
    dots = [make(form, side, rng) for _ in range(blocks)]
    a = np.concatenate([part.a for part in dots], axis=1)
    b = np.concatenate([part.b for part in dots], axis=1).T
    more: dict[str, Array] = {}
    if form.sparse:
        units = [nasty.indices(form, (side,), rng, ordered=form.ordered) for _ in range(blocks)]
        where = [nasty.columns(form, unit) + i * form.shape.k for i, unit in enumerate(units)]
        more = {"indices": np.concatenate(units, 1), "columns": np.concatenate(where, 1)}
        chosen, b = b, nasty.random_codes(form.b, (blocks * form.shape.k, side), rng)
        np.put_along_axis(b, more["columns"].T, chosen, axis=0)
    if form.scale:
        more["scale_a"] = np.concatenate([part.scale_a for part in dots], axis=1)
        more["scale_b"] = np.concatenate([part.scale_b for part in dots], axis=1).T
    c = np.repeat(dots[0].c[:, None], side, axis=1)
    return Product(a=a, b=b, c=c, **more)


def one_by_one(form: Instruction, problem: Product) -> Array:
    c = problem.c
    for number in range(problem.b.shape[0] // form.shape.k):
        c = numerics.compute(problem.operands(form, number, c), rule_for(form))[0]
    return c


def whole(form: Instruction, problem: Product) -> Array:
    a = problem.a if problem.indices is None else (problem.a, problem.indices)
    d = gemm(
        form,
        a,
        problem.b,
        problem.c,
        scale_a=problem.scale_a,
        scale_b=problem.scale_b,
        undefined="fallback",
    )
    return d.view(form.d.code_dtype)


@pytest.mark.parametrize("form", sample(FORMS, 5), ids=nasty.name)
def test_panels_equal_the_scalar_kernels(form: Instruction, monkeypatch: pytest.MonkeyPatch) -> None:
    side = 4 if interpreted() else SIDE
    for seed, make in enumerate(nasty.makers(form)):
        problem = product(form, make, BLOCKS, side, seed)
        expected = one_by_one(form, problem)
        np.testing.assert_array_equal(whole(form, problem), expected, make.__name__)
        with monkeypatch.context() as patch:
            patch.setattr(panels, "interpreted", lambda: True)
            np.testing.assert_array_equal(whole(form, problem), expected, f"{make.__name__}, NumPy")


@compiled
@pytest.mark.parametrize("form", sample(FORMS, 6, 1), ids=nasty.name)
def test_batches_equal_the_scalar_kernels(form: Instruction) -> None:
    rule = rule_for(form)
    for seed, make in enumerate(nasty.makers(form)):
        problem = product(form, make, 1, 16, seed)
        one = problem.operands(form, 0, problem.c)
        m, n = form.shape.m, form.shape.n
        one = replace(one, a=one.a[:, :m], b=one.b[..., :n].copy(), c=one.c[:, :m, :n].copy())
        one = replace(one, columns=None if one.columns is None else one.columns[:, :m])
        if one.scale_a is not None:
            one = replace(one, scale_a=one.scale_a[:, :m], scale_b=one.scale_b[..., :n])
        operands = _twice(one)
        expected = numerics.compute(operands, rule)
        np.testing.assert_array_equal(
            matrix_kernels.compute_matrices(operands, rule), expected, make.__name__
        )
        if form.family.rules == "mma" and recipes.applies_to_registers(form.product, rule):
            indices = None if problem.indices is None else problem.indices[:m]
            _check_registers(form, operands, indices, expected)


NARROW = [
    ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_80"),
    ("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", "sm_90a"),
    ("mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32", "sm_89"),
    ("mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32", "sm_90a"),
    ("mma.sync.aligned.m16n8k32.row.col.f16.e5m2.e5m2.f16", "sm_90a"),
    ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "sm_90a"),
]


@compiled
@pytest.mark.parametrize(("mnemonic", "target"), NARROW)
def test_infinite_sums_and_accumulators_beside_which_products_vanish(mnemonic: str, target: str) -> None:
    """Such sums need no alignment where factors are narrow; bf16's are not."""
    form = warpsim.decode(mnemonic, target=target)
    rng, cases = np.random.default_rng(4), 24
    shapes = {name: (cases, *form.matrix_shape(name)) for name in "abc"}
    codes = dict[str, Array]()
    for name in "ab":
        element = form.format(name)
        codes[name] = nasty.random_codes(element, shapes[name], rng)
        special = nasty.is_special(codes[name], element)
        if element.has_infinity:  # instead of NaN, ever fewer of them
            codes[name] = np.where(special, element.infinity | codes[name] & element.sign_bit, codes[name])
        share = np.linspace(1, 0, cases)[:, None, None]
        codes[name] = np.where(special & (rng.random(special.shape) > share), 1, codes[name])
    top = form.c.bias + 1
    exponents = rng.integers(top - 11, top + 1, shapes["c"])
    fractions = rng.integers(0, 1 << form.c.fraction_bits, shapes["c"]) * (exponents < top)  # NaN would stay
    codes["c"] = nasty.encode(form.c, exponents, fractions, rng.random(shapes["c"]) < 0.5)
    given = {name: warpsim.pack(form, name, codes[name]) for name in "abc"}
    if form.sparse:
        units = nasty.indices(form, (cases, form.shape.m), rng)
        given["e"] = warpsim.pack_metadata(form, units)
    expected = warpsim.execute(form, **given, engine="reference")
    call = present(fused_registers.fused_call(form, Inputs(registers=given)), "call")
    assert np.array_equal(fused_registers.run(call, 1), expected)
    if not form.sparse:
        d = warpsim.unpack(form, "d", expected).view(form.d.code_dtype)
        for case in range(0, cases, 5):
            found = gemm(form, *(codes[name][case] for name in "abc"))
            assert np.array_equal(found.view(form.d.code_dtype), d[case])


def _twice(operands: Operands) -> Operands:
    """A batch of two, the second with rows of A and C the other way round."""
    names = ("a", "c", "columns", "scale_a")
    given = {name: getattr(operands, name) for name in names if getattr(operands, name) is not None}
    turned = {name: np.concatenate([x, x[:, ::-1]]) for name, x in given.items()}
    same = {"b": np.repeat(operands.b, 2, axis=0)}
    if operands.scale_b is not None:
        same["scale_b"] = np.repeat(operands.scale_b, 2, axis=0)
    return replace(operands, **turned, **same)


def _check_registers(form: Instruction, operands: Operands, indices: Array, expected: Array) -> None:
    words = [registers_of(getattr(operands, name), form, name) for name in "abc"]
    for selector in form.selectors or (0,):
        e = None
        if indices is not None:
            both = np.stack([indices, indices[::-1]])
            e = write_fields(form, fields_of(form, both), selector)
        registers = dict(zip("abc", words, strict=True)) | ({} if e is None else {"e": e})
        d = fused_registers.execute(form, Inputs(registers=registers, selector=selector, literal=True))
        assert d is not None
        np.testing.assert_array_equal(d, registers_of(expected, form, "d"))


@compiled
@pytest.mark.parametrize("variant", ["sp", "sp::ordered_metadata"])
def test_illegal_metadata_is_left_to_the_caller(variant: str) -> None:
    mnemonic = f"mma.{variant}.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
    form = next(form for form in warpsim.instructions("sm_90a") if form.mnemonic == mnemonic)
    zero = {name: np.zeros((3, 32, count), np.uint32) for name, count in form.registers.items()}
    e = np.full((3, 32, 1), 0x44444444, np.uint32)
    del zero["d"]

    def run(literal: bool = False) -> Array:
        return fused_registers.execute(form, Inputs(registers=zero | {"e": e}, literal=literal))

    assert run() is not None
    e[2, 5] = 0x44144444  # descending in chunk 5
    assert (run() is None) == form.ordered
    e[2, 5] = 0x44544444  # equal
    assert run() is None
    assert run(literal=True) is not None


@compiled
def test_what_is_not_for_batches_is_left_to_the_caller() -> None:
    mnemonic = "mma.sp.sync.aligned.m16n8k32.row.col.f32.{0}.{0}.f32"
    registers = {
        name: np.zeros((2, 3, 32, count), np.uint32) for name, count in zip("abce", (4, 4, 4, 1), strict=True)
    }
    registers["e"][...] = 0x44444444
    form = warpsim.decode(mnemonic.format("bf16"), target="sm_100a")
    d = fused_registers.execute(form, Inputs(registers=registers))
    assert d is not None
    assert d.shape == (2, 3, 32, 4)
    assert fused_registers.execute(form, Inputs(registers=registers, selector=3)) is None
    assert fused_registers.execute(form, Inputs(registers=registers | {"a": registers["a"][:, :2]})) is None
    narrow = {"a": registers["a"][..., :2]}
    assert fused_registers.execute(form, Inputs(registers=registers | narrow)) is None
    assert fused_registers.execute(form, Inputs(registers=registers | {"d": registers["c"]})) is None
    assert (
        fused_registers.execute(form, Inputs(registers=registers | {"c": registers["c"].astype(np.int64)}))
        is None
    )
    no_target = warpsim.decode(mnemonic.format("bf16"))
    assert fused_registers.execute(no_target, Inputs(registers=registers)) is None
    registers["e"][1, 2, 9] = 0x44414444  # descending: its effect on sm_100 is not known for bf16
    assert fused_registers.execute(form, Inputs(registers=registers)) is None
    sorted_in_software = warpsim.decode(mnemonic.format("f16"), target="sm_100a")
    assert fused_registers.execute(sorted_in_software, Inputs(registers=registers)) is not None


@compiled
@pytest.mark.parametrize("columns", [8, 24, 32, 96, 256])
def test_matrices_of_many_columns(columns: int) -> None:
    form = next(form for form in FORMS if form.operation == "f16" and form.d.name == "f32")
    rng = np.random.default_rng(0)
    operands = Operands(
        product=form.product,
        a=nasty.random_codes(form.a, (2, 64, form.shape.k), rng),
        b=nasty.random_codes(form.b, (2, form.shape.k, columns), rng),
        c=nasty.random_codes(form.c, (2, 64, columns), rng),
    )
    expected = numerics.compute(operands, rule_for(form))
    np.testing.assert_array_equal(matrix_kernels.compute_matrices(operands, rule_for(form)), expected)


@compiled
def test_small_calls_count_together_until_a_kernel_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    form = warpsim.decode("tcgen05.mma.cta_group::1.kind::f16", target="sm_100a", idesc=0x08100010)
    rng, rule = np.random.default_rng(0), rule_for(form)
    shapes = {"a": (1, 128, 16), "b": (1, 16, 64), "c": (1, 128, 64)}
    codes = {name: nasty.random_codes(form.format(name), shape, rng) for name, shape in shapes.items()}
    operands, calls = Operands(product=form.product, **codes), list[int]()
    budget = CompilationBudget(many=3 * form.product.multiplications)
    kernel = matrix_kernels.compute_matrices

    def counted(*given: Any) -> Any:
        calls.append(len(calls))
        return kernel(*given)

    monkeypatch.setattr(matrix_kernels, "compute_matrices", counted)
    results = [matrix_kernels.computed(operands, rule, 1, budget) for _ in range(4)]
    assert len(calls) == 2
    for codes_of_d in results:
        np.testing.assert_array_equal(codes_of_d, numerics.compute(operands, rule))


# --- decoding ----------------------------------------------------------------------------------------


@compiled
@pytest.mark.parametrize("name", ["f16", "bf16", "tf32", "e5m2", "e4m3", "e3m2", "e2m3", "e2m1"])
@pytest.mark.parametrize("as_half", [False, True])
def test_decoding_equals_the_planes_of_encoding(name: str, as_half: bool) -> None:
    element = panels.FORMATS[name]
    if as_half and element.bits > 8:
        pytest.skip("emulation is of fp8")
    codes = np.arange(1 << min(element.bits, 16)).astype(element.code_dtype)
    if element.bits == 32:
        codes = np.concatenate([codes << np.uint32(16), codes << np.uint32(13), codes])
    half = panels.FORMATS["f16"]
    values = panels.values_of(codes, element)
    split = panels.planes(codes, element)
    if as_half:
        split = panels.planes(panels.converted(codes, element, half), half)
    exponents = np.where(split.significand == 0, variants.ZERO, split.exponent)
    exponents = np.where(split.special != 0, variants.SPECIAL, exponents)
    found, powers = np.empty(codes.size, np.float32), np.empty(codes.size, np.int16)
    decode.decode_all(codes, found, powers, plans.coding_of(element, as_half=as_half))
    np.testing.assert_array_equal(powers, exponents)
    number = ~np.isnan(values)
    np.testing.assert_array_equal(np.isnan(found), ~number)
    np.testing.assert_array_equal(found[number], values[number])
    np.testing.assert_array_equal(np.signbit(found[number]), np.signbit(values[number]))


@compiled
@pytest.mark.parametrize("name", ["f16", "e5m2", "e4m3"])
def test_exponents_in_bytes_are_the_same_raised(name: str) -> None:
    element = panels.FORMATS[name]
    codes = np.arange(1 << element.bits).astype(element.code_dtype)
    coding = plans.coding_of(element, lift=variants.LIFT_B)
    values, wide, narrow = (np.empty(codes.size, dtype) for dtype in (np.float32, np.int16, np.uint8))
    decode.decode_all(codes, values, wide, coding)
    decode.decode_all(codes, values, narrow, coding)
    raised = np.where(wide == variants.ZERO, variants.BYTE_ZERO, wide + variants.LIFT_B)
    np.testing.assert_array_equal(narrow, np.where(wide == variants.SPECIAL, variants.BYTE_SPECIAL, raised))


@compiled
@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize("name", ["e5m2", "e4m3"])
def test_lowest_bits_are_those_of_exact_numbers(name: str, negative: bool) -> None:
    element = panels.FORMATS[name]
    values = panels.values_of(np.arange(256).astype(np.uint8), element).astype(np.float32)
    values = values[np.isfinite(values)]
    lows = np.empty(values.size, np.uint8)
    decode.pack_lows(values, lows, int(negative))
    for value, low in zip(values.tolist(), lows.tolist(), strict=True):
        numerator, denominator = value.as_integer_ratio()
        exponent = (numerator & -numerator).bit_length() - denominator.bit_length()
        marked = variants.OTHER_SIGN * ((value < 0) == negative)
        assert low == (variants.LOW_ZERO if value == 0 else exponent + variants.LIFT_LOW + marked)


F13 = [
    "mma.sync.aligned.m16n8k32.row.col.{0}.e4m3.e5m2.{0}",
    "mma.sync.aligned.m16n8k16.row.col.{0}.e4m3.e4m3.{0}",
]


@compiled
@pytest.mark.parametrize("result", ["f32", "f16"])
@pytest.mark.parametrize("mnemonic", F13)
def test_floors_equal_what_other_cpus_compute(
    mnemonic: str, result: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    form, rng = warpsim.decode(mnemonic.format(result), target="sm_89"), np.random.default_rng(5)
    a, b = (rng.integers(0, 256, shape, np.uint8) for shape in ((40, 96), (96, 130)))
    a[rng.random(a.shape) < 0.3] &= 0x9F  # some smaller ones, and few NaN
    b[(b & 0x7F) >= 0x7C] = 0
    c = (rng.standard_normal((40, 130)) * 2.0 ** rng.integers(-20, 14, (40, 130))).astype(form.c.dtype)
    found = gemm(form, a, b, c)
    monkeypatch.setattr(plans, "has_roundings", lambda: False)
    np.testing.assert_array_equal(gemm(form, a, b, c).view(np.uint8), found.view(np.uint8))
    monkeypatch.setattr(panels, "interpreted", lambda: True)
    np.testing.assert_array_equal(gemm(form, a, b, c).view(np.uint8), found.view(np.uint8))


def test_memory_is_aligned_and_used_again() -> None:
    one = panels.scratch("test", 1000, np.float32)
    assert one.ctypes.data % 64 == 0
    assert one.size == 1000
    assert np.shares_memory(panels.scratch("test", 100, np.int16), one)
    large = panels.scratch("test", panels.KEPT + 1, np.uint8)
    assert not np.shares_memory(large, panels.scratch("test", 10, np.uint8))
    assert np.shares_memory(panels.scratch("test", 10, np.uint8), one)
    assert panels.scratch("other", 0, np.uint8).size == 0


def test_a_variant_survives_being_a_number() -> None:
    for flags in range(256):
        bits = [bool(flags >> i & 1) for i in range(8)]
        variant = Variant(
            width=64,
            stride=256,
            length=32,
            steps=2,
            half=bits[0],
            emulated=bits[1],
            scaled=bits[2],
            sparse=bits[3],
            compact=bits[4],
            floored=bits[5],
            relative=bits[6],
            short=bits[7],
        )
        assert Variant.of(variant.code | 123 << 36) == variant


@compiled
def test_leading_axes_broadcast() -> None:
    form = warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target="sm_80")
    rng = np.random.default_rng(0)
    shapes = {"a": (3, 1, 32, 4), "b": (32, 2), "c": (2, 32, 4)}
    registers = {name: rng.integers(0, 1 << 32, shape, np.uint32) for name, shape in shapes.items()}
    d = fused_registers.execute(form, Inputs(registers=registers))
    assert d is not None
    assert d.shape == (3, 2, 32, 4)
    one = {"a": registers["a"][2, 0], "b": registers["b"], "c": registers["c"][1]}
    np.testing.assert_array_equal(d[2, 1], fused_registers.execute(form, Inputs(registers=one)))


@pytest.fixture
def few_for_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Share work that is small among threads."""
    monkeypatch.setattr(fused_registers, "_SHARE", 128 * SHARE)
    monkeypatch.setattr(matrix_kernels, "_SHARED", matrix_kernels.LARGE)


@compiled
@pytest.mark.parametrize("make", ["from registers", "from matrices"])
def test_bits_do_not_depend_on_threads(make: str, few_for_a_thread: None) -> None:
    form = warpsim.decode("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target="sm_80")
    rng = np.random.default_rng(1)
    count = 3 * SHARE + 5
    if make == "from registers":
        counts = {name: number for name, number in form.registers.items() if name != "d"}
        words = {name: rng.integers(0, 1 << 32, (count, 32, n), np.uint32) for name, n in counts.items()}
        words["e"][...] = 0x4E94E944
        one, several = (warpsim.execute(form, **words, threads=threads) for threads in (1, 3))
    else:
        left = rng.standard_normal((count, 16, 8)).astype(np.float16)
        units = np.tile(np.array([1, 3], np.uint8), (count, 16, 4))
        right = rng.standard_normal((count, 16, 8)).astype(np.float16)
        one, several = (warpsim.matmul(form, (left, units), right, threads=t) for t in (1, 3))
    np.testing.assert_array_equal(one.view(np.uint32), several.view(np.uint32))


@compiled
def test_calls_that_end_in_less_time_than_threads_start_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """2 and 3 million products."""
    monkeypatch.setattr(fused_registers, "ThreadPoolExecutor", None)
    monkeypatch.setattr(matrix_kernels, "ThreadPoolExecutor", None)
    form = warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target="sm_80")
    words = {name: np.zeros((2 * SHARE, 32, form.registers[name]), np.uint32) for name in "abc"}
    assert not warpsim.execute(form, **words, threads=2).any()
    left, right = np.ones((3 * SHARE, 16, 16), np.float16), np.ones((3 * SHARE, 16, 8), np.float16)
    assert (warpsim.matmul(form, left, right, threads=2) == 16).all()


@compiled
def test_an_illegal_field_in_any_threads_share_is_reported(few_for_a_thread: None) -> None:
    form = warpsim.decode("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target="sm_80")
    count = 3 * SHARE
    counts = {name: number for name, number in form.registers.items() if name != "d"}
    words = {name: np.zeros((count, 32, number), np.uint32) for name, number in counts.items()}
    words["e"][...] = 0x44444444
    words["e"][SHARE + 7, 4] = 0x44444440
    with pytest.raises(warpsim.UndefinedBehavior, match="lane 4"):
        warpsim.execute(form, **words, threads=2)


def test_threads_are_at_least_one() -> None:
    with pytest.raises(warpsim.OperandError, match="threads=0: at least 1, or None for all cores"):
        thread_count(0)
    assert thread_count(None) >= 1


# --- wgmma: words of registers and of shared memory ---------------------------------------------------


def _warpgroup_forms() -> list[Instruction]:
    """A form of each arithmetic and kernel."""
    forms = {}
    for form in warpsim.instructions("sm_90a"):
        rule = rule_for(form)
        if form.family.rules == "wgmma" and recipes.applies_to_registers(form.product, rule):
            columns = {8: 8, 24: 24, 64: 64, 256: 256}.get(form.shape.n)
            if columns:
                forms.setdefault((form.operation, form.d.name, form.sparse, columns), form)
    return list(forms.values())


def _warpgroup_words(form: Instruction, count: int, rng: np.random.Generator) -> dict[str, Array]:
    """Registers of random numbers that are not too far apart, with some raw words among them."""

    def words(element: Any, shape: tuple[int, ...]) -> Array:
        codes = rng.standard_normal((*shape, 32 // element.bits)).astype(element.dtype)
        near = codes.view(np.uint32)[..., 0]
        raw = rng.integers(0, 1 << 32, shape, np.uint32)
        return np.where(rng.random(shape) < 0.01, raw, near)

    registers = {name: (count, 128, form.registers[name]) for name in "ac"}
    made = {name: words(form.format(name), shape) for name, shape in registers.items()}
    made["shared"] = words(form.b, (count, 12 << 10)).view(np.uint8)
    if form.sparse:
        units = nasty.indices(form, (count, 64), rng, ordered=True)
        made["e"] = warpsim.pack_metadata(form, units)
    return made


def _both_ways(form: Instruction, monkeypatch: pytest.MonkeyPatch, **operands: Any) -> None:
    fast = warpsim.execute(form, **operands)
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "_shortcut", lambda: SimpleNamespace(fused_call=lambda *_: None))
        slow = warpsim.execute(form, **operands)
    np.testing.assert_array_equal(fast, slow)


@compiled
@pytest.mark.parametrize("form", sample(_warpgroup_forms(), 5), ids=nasty.name)
def test_warpgroups_equal_the_scalar_kernels(form: Instruction, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(form.shape.n)
    given = _warpgroup_words(form, 2, rng)
    swizzle = ("none", "64B", "128B")[rng.integers(3)]  # 32B is too narrow for sparse forms
    b = _descriptor(form, 0, form.shape.n, form.shape.k, swizzle)
    assert recipes.tiles_of(form, _inputs(given, b)) is not None
    assert fused_registers.execute(form, _inputs(given, b)) is not None
    _both_ways(form, monkeypatch, b_desc=b, **given)
    _both_ways(form, monkeypatch, b_desc=b, **given | {"c": None}, scale_d=0)
    _both_ways(form, monkeypatch, b_desc=b, **given | {"shared": given["shared"][1]})
    a = _descriptor(form, 32768, 64, form.stored_k, "none")
    _both_ways(form, monkeypatch, a_desc=a, b_desc=b, **given | {"a": None})


def _descriptor(form: Instruction, start: int, mn: int, k: int, swizzle: Any) -> int:
    shape = TileShape(mn=mn, k=k, element_bits=form.b.bits, major="K")
    return canonical_descriptor(start, shape, swizzle=swizzle).encode()


def _inputs(given: dict[str, Array], descriptor: int) -> Inputs:
    registers = {name: array for name, array in given.items() if name != "shared"}
    return Inputs(registers=registers, shared=given["shared"], b_descriptor=np.array(descriptor, np.uint64))


@compiled
def test_what_is_not_in_words_along_k_is_left_to_the_slow_way() -> None:
    form = warpsim.decode("wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16", target="sm_90a")
    given = _warpgroup_words(form, 2, np.random.default_rng(0))
    b = _descriptor(form, 0, 16, 16, "none")
    inputs = _inputs(given, b)
    assert fused_registers.execute(form, inputs) is not None
    other = _descriptor(form, 512, 16, 16, "none")
    for change in (
        {"transposed": (False, True)},
        {"negate": (True, False)},
        {"b_descriptor": np.array([b, other], np.uint64)},
        {"b_descriptor": np.zeros(0, np.uint64)},
        {"shared": given["shared"][:, :-1]},
        {"shared": given["shared"].astype(np.int16)},
        {"shared": given["shared"][:, :256]},
    ):
        assert fused_registers.execute(form, replace(inputs, **change)) is None, change
