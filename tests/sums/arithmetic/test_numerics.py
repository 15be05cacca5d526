"""The fast engine, compiled and not, against the reference, bit for bit, on every distinct arithmetic.

Operands come from the catalogue in nasty.py; the long run over the same catalogue is tools/soak. The last
tests check the catalogue itself: a rule with one number changed must not get away with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers import nasty
from tests.helpers.dot_codes import ARITHMETICS
from tests.helpers.families import each_of, sample, usual
from warpsim.isa.architectures import ARCHITECTURES
from warpsim.isa.formats import FORMATS, Format
from warpsim.isa.instruction import Instruction
from warpsim.isa.rules import EmulatedF8, FusedSum, Rule, ScaledGroups
from warpsim.sums.arithmetic import numerics, reference
from warpsim.sums.execution.pipeline import rule_for

DOTS = 24  # of each kind; a multiple of 12 has every gap in every role


# --- kernel = reference ----------------------------------------------------------------------------


@each_of(ARITHMETICS, nasty.name, parts=16)
def test_engines_agree_on_nasty_dots(instruction: Instruction) -> None:
    rule = rule_for(instruction)
    for seed, make in enumerate(nasty.makers(instruction)):
        rng = np.random.default_rng(seed)
        operands = nasty.operands(instruction, make(instruction, usual(5, DOTS), rng), rng)
        fast, slow = numerics.compute(operands, rule), reference.compute(operands, rule)
        assert fast.dtype == slow.dtype == instruction.d.code_dtype
        assert not nasty.difference(instruction, operands, fast, slow), f"{make.__name__}, seed {seed}"
        if not numerics.needs_compiler(rule):
            at_once = numerics.compute_uncompiled(operands, rule)
            assert at_once.dtype == slow.dtype
            assert not nasty.difference(instruction, operands, at_once, slow), (
                f"{make.__name__}, seed {seed}, NumPy"
            )


def matrices(instruction: Instruction, codes: Callable[..., Any], rng: nasty.Rng) -> dict[str, Any]:
    """Arguments of matmul, as raw codes; sparse A as values and indices."""
    shapes = {name.upper(): instruction.matrix_shape(name) for name in "abc"}
    arguments = {name: codes(instruction.format(name.lower()), shape, rng) for name, shape in shapes.items()}
    if instruction.sparse:
        units = nasty.indices(instruction, (instruction.shape.m,), rng)
        arguments["A"] = (arguments["A"], units)
    if instruction.scale is not None:
        m, n, chunks = instruction.shape.m, instruction.shape.n, instruction.scale_chunks
        arguments["scale_a"] = codes(instruction.scale, (m, chunks), rng)
        arguments["scale_b"] = codes(instruction.scale, (chunks, n), rng)
    return arguments


def narrow_codes(element: Format, shape: tuple[int, ...], rng: nasty.Rng) -> Any:
    if not element.is_float:
        return nasty.random_codes(element, shape, rng)
    return nasty.near(element, shape, 3, rng, middle=0 if element.bits == 32 else None)


def bits(matrix: Any) -> Any:
    """A matrix as unsigned integers."""
    return matrix.view(f"u{matrix.dtype.itemsize}")


@each_of(
    sample(product(ARITHMETICS, [nasty.random_codes, narrow_codes]), 3),
    lambda case: nasty.name(case[0]),
    parts=8,
)
def test_engines_agree_through_matmul(instruction: Instruction, codes: Callable[..., Any]) -> None:
    arguments = matrices(instruction, codes, np.random.default_rng(instruction.stored_k))
    fast = warpsim.matmul(instruction, **arguments, engine="kernel")
    slow = warpsim.matmul(instruction, **arguments, engine="reference")
    assert fast.dtype == slow.dtype == instruction.d.dtype
    assert fast.shape == (instruction.shape.m, instruction.shape.n)
    assert np.array_equal(bits(fast), bits(slow))


WGMMA = [
    (key, rule, form)
    for key, rule in ARCHITECTURES["sm_90a"].table.items()
    for form in [next(f for f in warpsim.instructions("sm_89") if (f.operation, f.d.name) == key[1:])]
    if key[0] == "wgmma"
]


@pytest.mark.parametrize(("key", "rule", "form"), WGMMA, ids=["-".join(key) for key, _, _ in WGMMA])
def test_engines_agree_on_the_rules_of_wgmma(key: tuple[str, ...], rule: Rule, form: Instruction) -> None:
    """No form uses them yet; the operands are those of the mma form with the same formats on Ada."""
    for seed, make in enumerate(nasty.makers(form)):
        rng = np.random.default_rng(seed)
        operands = nasty.operands(form, make(form, 5 * DOTS, rng), rng)
        slow = reference.compute(operands, rule)
        for engine in (numerics.compute, numerics.compute_uncompiled):
            difference = nasty.difference(form, operands, engine(operands, rule), slow)
            assert not difference, f"{make.__name__}, seed {seed}, {engine.__name__}"


def test_every_kind_of_rule_is_compared() -> None:
    assert {type(rule_for(instruction)) for instruction in ARITHMETICS} == set(Rule.__subclasses__())


def test_every_form_of_every_target_has_its_arithmetic_compared() -> None:
    compared = {nasty.arithmetic(instruction) for instruction in ARITHMETICS}
    for target in ARCHITECTURES:
        assert {nasty.arithmetic(form) for form in warpsim.instructions(target)} <= compared


# --- what only shows in the codes ------------------------------------------------------------------


def one_product(mnemonic: str, target: str, a: int, b: int, c: int = 0) -> list[int]:
    """Codes that both engines give for ``a * b + c``, all other factors being +0."""
    form = warpsim.decode(mnemonic, target=target)
    (A, B, C) = (np.zeros(form.matrix_shape(x), form.format(x).code_dtype) for x in "abc")
    A[0, 0], B[0, 0], C[0, 0] = a, b, c
    results = [warpsim.matmul(form, A, B, C, engine=engine) for engine in ("kernel", "reference")]
    return [int(bits(D)[0, 0]) for D in results]


TF32 = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
@pytest.mark.parametrize(
    ("a", "result"),
    [
        (0x3F801FFF, 0x3F800000),
        (0x3F803FFF, 0x3F802000),
        (0x00001FFF, 0x00000000),
        (0x00003FFF, 0x00002000),
        (0x7F801FFF, 0x7F800000),
        (0xFF800001, 0xFF800000),
        (0x7F802000, 0x7FFFFFFF),
    ],
)
def test_tf32_drops_its_low_bits_first_even_where_they_make_a_nan(target: str, a: int, result: int) -> None:
    one = 0x3F800000
    assert one_product(TF32, target, a, one) == [result, result]
    assert one_product(TF32, target, one, a) == [result, result]


NEGATIVE_ZERO = [
    ("sm_70", "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"),
    ("sm_80", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"),
    ("sm_89", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"),
    ("sm_90", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"),
    ("sm_90", "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32"),
    ("sm_120a", "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e3m2.f32"),
]


@pytest.mark.parametrize(("target", "mnemonic"), NEGATIVE_ZERO)
def test_nothing_but_negative_zeros_is_positive_zero(target: str, mnemonic: str) -> None:
    form = warpsim.decode(mnemonic, target=target)
    A = np.full(form.matrix_shape("a"), form.a.sign_bit, form.a.code_dtype)
    B = np.zeros(form.matrix_shape("b"), form.b.code_dtype)
    C = np.full(form.matrix_shape("c"), form.c.sign_bit, form.c.code_dtype)
    for engine in ("kernel", "reference"):
        assert not bits(warpsim.matmul(form, A, B, C, engine=engine)).any()


def test_f64_keeps_a_negative_zero() -> None:
    minus_zero = 1 << 63
    mnemonic = "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"
    form = warpsim.decode(mnemonic, target="sm_80")
    A = np.full((8, 4), minus_zero, np.uint64)
    for engine in ("kernel", "reference"):
        D = warpsim.matmul(form, A, np.zeros((4, 8)), np.full((8, 8), -0.0), engine=engine)
        assert (bits(D) == minus_zero).all()


def test_results_depend_on_the_target() -> None:
    """1 + 2**-24 and then -1, in two groups of eight: the rounding between the groups loses 2**-24."""
    A, B = np.zeros((16, 16), np.float16), np.zeros((16, 8), np.float16)
    A[0, [0, 1, 8]] = 1, 2**-12, -1
    B[[0, 1, 8], 0] = 1, 2**-12, 1
    mnemonic = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    results = {target: warpsim.matmul(mnemonic, A, B, target=target)[0, 0] for target in ("sm_80", "sm_90")}
    assert results == {"sm_80": 0.0, "sm_90": 2**-24}


# --- the catalogue ---------------------------------------------------------------------------------

FLOATS = [element for element in FORMATS.values() if element.is_float]


@pytest.mark.parametrize("element", FLOATS, ids=str)
def test_the_catalogue_has_the_corners_of_the_format(element: Format) -> None:
    codes = nasty.catalogue(element)
    value = nasty.values(codes, element)
    finite = value[np.isfinite(value)]
    every = np.abs(finite[finite != 0])
    smallest = 2.0 ** (element.minimum_exponent - element.fraction_bits)
    full = 2.0 - 2.0**-element.fraction_bits
    assert every.min() == smallest
    assert 2.0**element.minimum_exponent in every
    assert every.max() >= full * 2.0 ** (nasty.top_exponent(element) - 1)
    if element.signed:
        assert {-x for x in finite} == set(finite)
        assert {np.signbit(x) for x in finite[finite == 0]} == {True, False}
    if element.name in ("f16", "bf16", "tf32", "f32", "f64", "e5m2"):
        assert {np.inf, -np.inf} <= set(value)
        assert np.isnan(value).sum() >= 4


@pytest.mark.parametrize("element", [x for x in FLOATS if x.bits <= 16], ids=str)
def test_the_largest_finite_code_and_the_special_ones_are_those_of_ml_dtypes(element: Format) -> None:
    codes = np.arange(1 << element.bits, dtype=element.code_dtype)
    value = nasty.values(codes, element)
    assert np.array_equal(nasty.is_special(codes, element), ~np.isfinite(value))
    top = nasty.values(np.array([nasty.largest(element)], element.code_dtype), element)[0]
    assert top == value[np.isfinite(value)].max()


def changed_rules(rule: Rule) -> Iterator[tuple[str, Rule]]:
    """The rule with one of its numbers changed, and the number's name."""
    if isinstance(rule, EmulatedF8):  # its steps are as long as half of k
        changes = changed_rules(rule.step)
        yield from ((name, replace(rule, step=step)) for name, step in changes if name != "length")  # type: ignore[arg-type]
    if not isinstance(rule, (FusedSum, ScaledGroups)):
        return
    for change in (-1, 1):
        yield "fraction bits", replace(rule, fraction_bits=rule.fraction_bits + change)
        yield "floor", replace(rule, exponent_floor=rule.exponent_floor + change)
    yield "rounding", replace(rule, output=replace(rule.output, nearest=not rule.output.nearest))
    if isinstance(rule, FusedSum):
        yield "length", replace(rule, length=rule.length // 2)
    else:
        yield "length", replace(rule, group=rule.group // 2)


def binades(element: Format) -> int:
    """Binades from the smallest to the largest power of two of a format."""
    return nasty.top_exponent(element) - element.minimum_exponent + element.fraction_bits


def observable(instruction: Instruction, change: str) -> bool:
    """Whether operands of these formats can show the change at all.

    The floor matters where results come near the smallest subnormal number: f16 sums of f16, bf16 and
    tf32, and whatever ue8m0 scales bring there, if the products under one scale can be 2**10 apart. A step
    longer than k is like one of k.
    """
    a, d = str(instruction.a), str(instruction.d)
    if change == "floor":
        if str(instruction.scale) == "ue8m0":
            return instruction.scale_chunks > 1 or binades(instruction.a) + binades(instruction.b) >= 10
        return a in ("bf16", "tf32") or a == d == "f16"
    step = nasty.step_of(rule_for(instruction))
    return change != "length" or not isinstance(step, FusedSum) or instruction.stored_k > step.length // 2


ALIGNED = [form for form in ARITHMETICS if nasty.step_of(rule_for(form)) and not form.sparse]


@each_of(sample(ALIGNED, 2), nasty.name, parts=4)
def test_nasty_dots_tell_a_rule_from_its_neighbours(instruction: Instruction) -> None:
    rule = rule_for(instruction)
    rng = np.random.default_rng(0)
    batches = [
        nasty.operands(instruction, make(instruction, 10 * DOTS, rng), rng)
        for make in nasty.makers(instruction)
    ]
    right = [numerics.compute(operands, rule) for operands in batches]
    for change, other in changed_rules(rule):
        wrong = [numerics.compute(operands, other) for operands in batches]
        differ = sum(int((x != y).sum()) for x, y in zip(right, wrong, strict=True))
        assert (differ > 0) >= observable(instruction, change), f"{change}: {other.bare}"
