"""Rules: the ways in which chips compute one element of D from its products.

Pure data; no arithmetic. Which target has which rule, and why it is believed, is in architectures.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy.typing as npt

from .comparisons import Evidence


@dataclass(frozen=True, kw_only=True)
class Output:
    """How an exact sum becomes a code: the format, its significant bits and the rounding."""

    format: str
    precision: int
    nearest: bool  # to nearest, ties to even; otherwise toward zero


RZ_F32 = Output(format="f32", precision=24, nearest=False)
RZ_E8M13 = Output(format="f32", precision=14, nearest=False)  # the low 10 bits of the f32 are zero
RN_F16 = Output(format="f16", precision=11, nearest=True)


Slip = Literal["reversed", "rounded products"]  # ways in which a chain of operations is computed wrong
Columns = npt.NDArray[Any]  # of integers

_NO_EVIDENCE = Evidence(label="", detail="")


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One way to compute ``d = sum(a * b) + c``; subclasses hold its parameters.

    Code that treats rules by their class has a table of all of them, called RULES where it computes.
    ``precision`` is the significant bits of each operation of a rule that aligns nothing, and ``slips`` are
    what is easily wrong with the order and the rounding of these operations.
    """

    evidence: Evidence
    precision: ClassVar[int] = 0
    slips: ClassVar[tuple[Slip, ...]] = ()

    @property
    def aligned(self) -> FusedSum | ScaledGroups | None:
        """Return the aligned sum that the rule is or is made of; None where nothing is aligned."""
        return None

    def step_of(self, columns: Columns) -> Columns:
        """Return the step, or the scaled group, that the products of stored columns belong to."""
        return columns

    def steps(self, k: int) -> int:
        """Return how many sums, each rounded, the rule makes of k products; 1 where nothing is chained."""
        return 1

    @property
    def bare(self) -> Rule:
        """Return the numbers of the rule, without the reasons to believe them."""
        return replace(self, evidence=_NO_EVIDENCE)

    def realigned(self, **numbers: Any) -> Rule:
        """Return the rule with other numbers in its aligned sum."""
        return replace(self, **numbers)


@dataclass(frozen=True, kw_only=True)
class FusedSum(Rule):
    """Truncated fused dot-product-add, in steps of at most ``length`` products.

    Every product and the accumulator are aligned to the largest exponent among them (at least
    ``exponent_floor``), truncated ``fraction_bits`` below it, and added exactly; then
    ``output`` rounds. Steps run over ascending stored columns, each rounded sum being the next
    step's accumulator. Block scales, where there are any, add to the exponents of the products.
    """

    length: int
    fraction_bits: int
    output: Output
    exponent_floor: int

    @property
    def aligned(self) -> FusedSum:
        """Return itself."""
        return self

    def steps(self, k: int) -> int:
        """Return the steps of at most ``length`` products."""
        return -(-k // self.length)

    def step_of(self, columns: Columns) -> Columns:
        """Return the steps of ``length`` products."""
        return columns // self.length


@dataclass(frozen=True, kw_only=True)
class EmulatedF8(Rule):
    """What ptxas makes of fp8 where only wgmma multiplies fp8: two f16 MMAs and an addition of C.

    The operands become f16 (exactly). The first step sums the columns with ``k % 4`` in 0, 1 from
    zero, the second continues with those in 2, 3; then C is added in round to nearest even.
    """

    step: FusedSum

    @property
    def aligned(self) -> FusedSum:
        """Return the sum of the products of each half."""
        return self.step

    def step_of(self, columns: Columns) -> Columns:
        """Return the half of each product."""
        return columns % 4 // 2

    @property
    def bare(self) -> Rule:
        """Return the numbers of the rule and of its step."""
        return replace(self, step=replace(self.step, evidence=_NO_EVIDENCE), evidence=_NO_EVIDENCE)

    def realigned(self, **numbers: Any) -> Rule:
        """Return the rule with other numbers in its step."""
        return replace(self, step=replace(self.step, **numbers))


@dataclass(frozen=True, kw_only=True)
class ScaledGroups(Rule):
    """4-bit block-scaled MMA: exact sums of ``group`` products, each aligned by its scales' exponent."""

    group: int
    fraction_bits: int
    output: Output
    exponent_floor: int

    @property
    def aligned(self) -> ScaledGroups:
        """Return itself."""
        return self

    def step_of(self, columns: Columns) -> Columns:
        """Return the groups, each with its scales."""
        return columns // self.group


@dataclass(frozen=True, kw_only=True)
class ScaledQuads(Rule):
    """4-bit block-scaled MMA as a public model of B200 has it: exact sums of ``group`` scaled products.

    They are cut ``fraction_bits`` below the largest pair of scales, or ``product_bits`` below the largest
    exponent of a product or C; where C's is the largest, exact sums of ``outranked`` products are cut
    ``fraction_bits`` below C.
    """

    group: int
    outranked: int
    fraction_bits: int
    product_bits: int
    output: Output

    precision = 24


@dataclass(frozen=True, kw_only=True)
class FusedMultiplyAdd(Rule):
    """f64: a chain of IEEE fused multiply-adds over ascending k, starting from C."""

    precision = 53
    slips = ("reversed", "rounded products")


@dataclass(frozen=True, kw_only=True)
class SoftwareQuad(Rule):
    """m8n8k4 f16 on sm_80 and later: FFMA and FADD in f32, round to nearest even.

    f32 result: ``c + fma(a3,b3, fma(a2,b2, fma(a1,b1, fma(a0,b0, +0))))``; f16 result:
    ``f16((c + fma(a3,b3, a2*b2)) + fma(a1,b1, a0*b0))``.
    """

    precision = 24
    slips = ("reversed",)


@dataclass(frozen=True, kw_only=True)
class IntegerSum(Rule):
    """Exact integers; the result wraps modulo 2**32, or clamps once at the end under .satfinite."""

    precision = 32


@dataclass(frozen=True, kw_only=True)
class BitCount(Rule):
    """b1: C plus the number of bits set in ``a AND b`` or ``a XOR b``."""

    precision = 32
