"""What coverage sums by is a third implementation: it gives the kernels' bits, and its bins are sound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import warpsim
from tests.helpers import nasty
from warpsim.isa.formats import FORMATS
from warpsim.isa.instruction import Instruction
from warpsim.isa.rules import FusedSum
from warpsim.sums.arithmetic.numerics import compute
from warpsim.sums.execution.pipeline import rule_for
from warpsim.workbench.generation.cases.corners import theme_chunk
from warpsim.workbench.generation.coverage.bins import arithmetic_bins
from warpsim.workbench.generation.coverage.observations import observations
from warpsim.workbench.generation.coverage.vector_coverage import gathered
from warpsim.workbench.generation.sums.exact_numbers import ABOVE_HALF, BELOW_HALF, HALF, cut, decode
from warpsim.workbench.generation.sums.factors import factors_of
from warpsim.workbench.generation.sums.limits import limits_of
from warpsim.workbench.generation.sums.rule_changes import changes
from warpsim.workbench.generation.sums.summing import Change, summed, sums_of

Drawn = tuple[Instruction, nasty.Operands]
ARITHMETICS = nasty.arithmetics()


@pytest.mark.parametrize("part", range(4))
def test_the_sums_have_the_bits_of_the_kernels(part):
    """Every arithmetic of every form, on dots made elsewhere."""
    for instruction in ARITHMETICS[part::4]:
        rng = np.random.default_rng(3)
        for maker in nasty.makers(instruction):
            dots = nasty.operands(instruction, maker(instruction, 20, rng), rng)
            done = summed(dots, rule_for(instruction))
            wanted = compute(dots, rule_for(instruction))
            assert np.array_equal(done.code, wanted), (nasty.name(instruction), maker.__name__)


@pytest.mark.parametrize("part", range(2))
def test_nothing_declared_unreachable_is_ever_hit(part):
    for instruction in ARITHMETICS[part::14]:
        bins = arithmetic_bins(limits_of(instruction))
        rng = np.random.default_rng(4)
        for maker in nasty.makers(instruction):
            dots = nasty.operands(instruction, maker(instruction, 60, rng), rng)
            for name, mask in observations(instruction, dots):
                assert name in bins, name
                assert not (bins[name] and mask.any()), (nasty.name(instruction), name, bins[name])


@pytest.mark.parametrize("part", range(2))
def test_outputs_that_a_change_does_not_concern_have_the_same_bits(part):
    for instruction in ARITHMETICS[part::16]:
        rng = np.random.default_rng(5)
        for maker in nasty.makers(instruction):
            dots = nasty.operands(instruction, maker(instruction, 60, rng), rng)
            assert unconcerned(instruction, dots) == [], (nasty.name(instruction), maker.__name__)


@pytest.mark.parametrize(
    ("mnemonic", "target"),
    [
        ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", "sm_89"),
        ("mma.sync.aligned.m16n8k16.row.col.f16.e5m2.e4m3.f16", "sm_90"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "sm_80"),
    ],
)
def test_nor_do_those_of_corner_cases(mnemonic, target):
    vectors = theme_chunk(warpsim.decode(mnemonic, target=target), "corner", 3, 0)
    for part in vectors.inputs():
        assert unconcerned(vectors.instruction, gathered(vectors.instruction, part)) == []


def unconcerned(instruction: Instruction, operands: nasty.Operands) -> list[str]:
    """Changes that change an output that they say they do not concern."""
    limits = limits_of(instruction)
    factors = factors_of(operands, limits.rule)
    done = sums_of(factors, limits.rule)
    return [
        wrong.name
        for wrong in changes(limits)
        if (
            (sums_of(factors, wrong.rule, wrong.change).code != done.code) & ~wrong.concerns(factors, done)
        ).any()
    ]


def dots_of(text: str, a: list[int], b: list[int], c: int) -> Drawn:
    """One output of the first form whose short name contains the text; other factors are zero."""
    instruction = next(form for form in ARITHMETICS if text in nasty.name(form))
    rest = [0] * (instruction.stored_k - len(a))
    dots = nasty.Dots(
        a=np.array([a + rest], instruction.a.code_dtype),
        b=np.array([b + rest], instruction.b.code_dtype),
        c=np.array([c], instruction.c.code_dtype),
    )
    return instruction, nasty.operands(instruction, dots, np.random.default_rng(0))


def hit(drawn: Drawn) -> set[str]:
    return {name for name, mask in observations(*drawn) if mask.any()}


def test_gaps_are_counted_from_the_largest_term():
    """sm_90: F is 25. C is 2**10; a subnormal factor counts as the smallest normal one, 2**-14."""
    name, one, small = "sm_90 m16n8k16.f32.f16.f16", 0x3C00, 0x1400  # 2**-10

    def gaps(a: int, b: int) -> list[str]:
        found = hit(dots_of(name, [a], [b], 0x44800000))
        return sorted(one for one in found if one.startswith(("gap", "cut: a product")))

    assert gaps(0x0200, one) == ["gap F-1: product below C"]
    assert gaps(small, 0x2C00) == ["gap F-1: product below C"]  # 2**-14
    assert gaps(small, 0x2800) == ["gap F: product below C"]
    assert gaps(small, 0x2400) == ["cut: a product", "gap F+1: product below C"]
    assert gaps(small, 0x2000) == ["cut: a product", "gap F+2: product below C"]
    assert gaps(small, 0x1C00) == ["cut: a product"]


def test_a_tie_is_told_from_its_neighbours():
    """f16 sums: 1 + 2**-11 is half a unit above an even number, 1 + 3 * 2**-11 above an odd one."""
    name, one = "sm_75 m16n8k8.f16.f16.f16.f16", 0x3C00
    assert "rounding: half a unit above an even number" in hit(dots_of(name, [0x1000], [one], one))
    assert "rounding: half a unit above an odd number" in hit(dots_of(name, [0x1000], [one], one + 1))
    assert "rounding: above half a unit, positive" in hit(dots_of(name, [0x1001], [one], one))
    assert "rounding: below half a unit, negative" in hit(dots_of(name, [0x8FFF], [one], 0xBC00))


def test_signed_zeros_infinities_and_nans_are_seen():
    name = "sm_75 m16n8k8.f16.f16.f16.f16"
    assert "special: Inf * 0 alone" in hit(dots_of(name, [0x7C00], [0], 0))
    assert "special: +Inf product against C = -Inf" in hit(dots_of(name, [0x7C00], [0x3C00], 0xFC00))
    assert "special: +Inf and -Inf products alone" in hit(dots_of(name, [0x7C00, 0xFC00], [0x3C00] * 2, 0))
    assert "a: signaling NaN" in hit(dots_of(name, [0x7C01], [0], 0))
    negative = dots_of(name, [0x8000] * 8, [0x3C00] * 8, 0x8000)
    assert "result: zero of nothing but negative zeros" in hit(negative)


def test_changes_show_only_where_bits_differ():
    """A change that cannot matter shows nowhere: exact sums have nothing to cut."""
    form, dots = dots_of("sm_75 m16n8k8.f32.f16.f16.f32", [0x3C00, 0x4000], [0x3C00, 0x3C00], 0x3F800000)
    assert not {name for name in hit((form, dots)) if name.startswith("shown")}
    rule = rule_for(form)
    assert isinstance(rule, FusedSum)
    coarse = replace(rule, fraction_bits=0)
    assert summed(dots, coarse).code != summed(dots, rule).code
    assert summed(dots, coarse, Change(cut="after")).code == summed(dots, rule).code


def test_cut_tells_what_was_cut_off():
    kept, rest, tail = cut(np.array([0b1001, 0b1010, 0b1011, 0b1000, 3]), np.array([2, 2, 2, 2, -2]))
    assert kept.tolist() == [2, 2, 2, 2, 12]
    assert rest.tolist() == [1, 2, 3, 0, 0]
    assert tail.tolist() == [BELOW_HALF, HALF, ABOVE_HALF, 0, 0]


@pytest.mark.parametrize("name", [x.name for x in FORMATS.values() if x.is_float and x.bits <= 16])
def test_decoding_agrees_with_the_formats_dtype(name):
    element = FORMATS[name]
    codes = np.arange(1 << element.bits, dtype=element.code_dtype)
    numbers = decode(codes, element)
    value = np.ldexp(numbers.significand.astype(float), numbers.scale)
    with np.errstate(invalid="ignore"):  # signaling NaNs
        wanted = codes.view(element.dtype).astype(float)
    finite = np.isfinite(wanted)
    assert np.array_equal(value[finite], wanted[finite])
    assert np.array_equal(numbers.special != 0, ~finite)
