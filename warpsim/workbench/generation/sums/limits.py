"""How far the numbers of one instruction reach: what its formats and its rule make possible at all.

The facts behind every "unreachable" of a coverage report, and behind the choices of the generator. Knows
formats and rules; does not know which bins exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from ....isa.formats import FORMATS, Format
from ....isa.instruction import Instruction
from ....isa.rules import (
    EmulatedF8,
    FusedSum,
    Output,
    Rule,
    ScaledGroups,
)
from ....sums.execution.pipeline import rule_for
from .exact_numbers import Array, decode


@cache
def largest(element: Format) -> int:
    """Return the largest finite code, without the ignored bits."""
    return element.largest_finite >> element.ignored_bits


@cache
def top_exponent(element: Format) -> int:
    """Return the exponent of the largest finite number."""
    return (largest(element) >> element.fraction_bits) - element.bias


@cache
def largest_value(element: Format) -> float:
    """Return the largest finite number."""
    number = decode(np.array([element.largest_finite], np.uint64), element)
    return float(np.ldexp(float(number.significand[0]), int(number.scale[0])))


@dataclass(frozen=True, kw_only=True)
class Range:
    """Exponents of a kind of term: the least and greatest that alignment sees, and the lowest bit."""

    low: int
    high: int
    bit: int


@dataclass(frozen=True, kw_only=True)
class Limits:
    """One instruction on its target, its rule, and the reach of its products and accumulators."""

    instruction: Instruction
    rule: Rule

    @property
    def step(self) -> FusedSum | ScaledGroups | None:
        """The aligned sum within the rule, if it has such a sum."""
        return self.rule.aligned

    @property
    def emulated(self) -> bool:
        """Whether C is added after all products."""
        return isinstance(self.rule, EmulatedF8)

    @cached_property
    def output(self) -> Output:
        """How results are rounded."""
        if self.step is not None:
            return self.step.output
        d = self.instruction.d
        return Output(format=d.name, precision=d.fraction_bits + 1, nearest=True)

    @cached_property
    def fraction_bits(self) -> int:
        """Where alignment cuts; of IEEE operations, their precision."""
        if self.step is not None:
            return self.step.fraction_bits
        return self.rule.precision

    @property
    def floor(self) -> int:
        """The exponent floor of an aligned sum."""
        assert self.step is not None
        return self.step.exponent_floor

    @property
    def nearest(self) -> bool:
        """Whether results are rounded to nearest."""
        if self.step is None:
            return self.instruction.rounding in ("", "rn")
        return self.output.nearest

    @property
    def smallest(self) -> int:
        """The exponent of the smallest result."""
        return self.instruction.d.minimum_exponent - (self.output.precision - 1)

    @cached_property
    def groups(self) -> Array:
        """``(stored k,)``: the step, or the scaled group, that each product belongs to."""
        return self.rule.step_of(np.arange(self.instruction.stored_k))

    @property
    def steps(self) -> int:
        """Aligned sums, each accumulating the next."""
        return (
            1 if isinstance(self.rule, ScaledGroups) else int(self.groups[-1 if not self.emulated else 2]) + 1
        )

    def factor(self, side: str) -> Range:
        """Return exponents of A's or B's elements; of emulated fp8 as f16, whose subnormals are lower."""
        element = self.instruction.format(side)
        bit = element.minimum_exponent - element.fraction_bits
        low = max(bit, FORMATS["f16"].minimum_exponent) if self.emulated else element.minimum_exponent
        return Range(low=low, high=top_exponent(element), bit=bit)

    @cached_property
    def scales(self) -> Range:
        """Exponents of scale_a * scale_b; zero without block scales."""
        scale = self.instruction.scale
        if scale is None:
            return Range(low=0, high=0, bit=0)
        bit = scale.minimum_exponent - scale.fraction_bits
        return Range(low=2 * scale.minimum_exponent, high=2 * top_exponent(scale), bit=2 * bit)

    @cached_property
    def plain_products(self) -> Range:
        """Exponents of products without their scales."""
        a, b = self.factor("a"), self.factor("b")
        return Range(low=a.low + b.low, high=a.high + b.high, bit=a.bit + b.bit)

    @cached_property
    def products(self) -> Range:
        """Exponents that non-zero products, or scaled groups, are aligned by."""
        plain, scales = self.plain_products, self.scales
        if isinstance(self.rule, ScaledGroups):
            return Range(low=scales.low, high=scales.high, bit=plain.bit + scales.bit)
        return Range(low=plain.low + scales.low, high=plain.high + scales.high, bit=plain.bit + scales.bit)

    @cached_property
    def accumulator(self) -> Range:
        """Exponents of the accumulator of a step: C, or where C comes last a sum of products."""
        c = self.instruction.c
        bit = c.minimum_exponent - c.fraction_bits
        if not self.emulated:
            return Range(low=c.minimum_exponent, high=top_exponent(c), bit=bit)
        products = self.plain_products
        return Range(
            low=max(products.bit, c.minimum_exponent),
            high=min(products.high + 4, top_exponent(c)),
            bit=max(products.bit, bit),
        )

    @cached_property
    def spread(self) -> int:
        """The largest difference of exponents between two products of one step."""
        if isinstance(self.rule, ScaledGroups):
            return self.scales.high - self.scales.low if self.instruction.scale_chunks > 1 else 0
        return self.plain_products.high - self.plain_products.low

    @cached_property
    def zero_high(self) -> int:
        """The largest exponent that a zero product would have; an f16 zero where fp8 is emulated."""
        if isinstance(self.rule, ScaledGroups):
            return self.scales.high
        a, b = self.factor("a"), self.factor("b")
        zero = [FORMATS["f16"] if self.emulated else x for x in (self.instruction.a, self.instruction.b)]
        low = [x.minimum_exponent for x in zero]
        return max(low[0] + b.high, a.high + low[1]) + self.scales.high

    @cached_property
    def subnormal_high(self) -> int | None:
        """The largest exponent of a product of a subnormal factor; None where f16 has the same exponents."""
        a, b = self.instruction.a, self.instruction.b
        pairs = ((a, self.factor("b")), (b, self.factor("a")))
        lowest = FORMATS["f16"].minimum_exponent if self.emulated else -(1 << 12)
        reach = [x.minimum_exponent + y.high for x, y in pairs if x.minimum_exponent > lowest]
        return max(reach) + self.scales.high if reach else None

    @cached_property
    def largest_sum(self) -> float:
        """The largest sum of products; Inf where float64 does not hold it."""
        form = self.instruction
        with np.errstate(over="ignore"):
            each = np.float64(largest_value(form.a)) * largest_value(form.b)
            scale = largest_value(form.scale) if form.scale else 1.0
            return float(each * scale * scale * form.stored_k)

    @cached_property
    def carries(self) -> int:
        """The most bits by which a sum can exceed the largest exponent."""
        form = self.instruction
        largest = [2.0 - 2.0**-x.fraction_bits for x in (form.a, form.b)]
        if isinstance(self.rule, ScaledGroups):
            assert form.scale is not None
            scale = (2.0 - 2.0**-form.scale.fraction_bits) ** 2 if form.scale.fraction_bits else 1.0
            terms = form.stored_k * largest_value(form.a) * largest_value(form.b) * scale
        else:
            terms = int((self.groups == 0).sum()) * largest[0] * largest[1]
        return int(np.floor(np.log2(terms + (0 if self.emulated and self.steps < 2 else 1.9))))


@cache
def limits_of(instruction: Instruction) -> Limits:
    """Return the limits of an instruction on its target; raises IllegalInstruction without a target."""
    return Limits(instruction=instruction, rule=rule_for(instruction))
