"""The reference against results worked out by hand, against Python's floats and against real chips.

Every expected code below was derived on paper; the comments say how. Codes of powers of two, for
following along: f16 2**e is ``(e + 15) << 10``, bf16 ``(e + 127) << 7``, f32 ``(e + 127) << 23``,
e5m2 ``(e + 15) << 2``, e4m3 ``(e + 7) << 3``, ue8m0 ``e + 127``.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warpsim.isa.architectures import ARCHITECTURES
from warpsim.isa.formats import FORMATS, Format
from warpsim.isa.products import Operands, Product, Shape
from warpsim.isa.rules import FusedSum, Rule
from warpsim.isa.sparsity import FOUR_OF_EIGHT, TWO_OF_FOUR
from warpsim.sums.arithmetic import reference
from warpsim.sums.arithmetic.reference import Kind, decode, dot, ieee_sum, inputs_of

F32 = FORMATS["f32"]
DEFAULT_F64_NAN = 0x7FF8_0000_0000_0000


def form(types: str, k: int = 32, m: int = 1, n: int = 1, scale: str = "", **more: Any) -> Product:
    """A product of PTX's ``d.a.b.c`` types with the facts that arithmetic looks at."""
    d, a, b, c = (FORMATS[name] for name in types.split("."))
    return Product(
        shape=Shape(m, n, k),
        a=a,
        b=b,
        c=c,
        d=d,
        operation="",
        scale=FORMATS[scale] if scale else None,
        **more,
    )


def rule_for(target: str, operation: str, result: str, family: str = "mma") -> Rule:
    return ARCHITECTURES[target].table[(family, operation, result)]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One dot product: factors as ``{stored position: (a, b)}``, C and the code expected of D."""

    name: str
    target: str
    operation: str
    types: str
    c: int
    factors: dict[int, tuple[int, int]]
    expected: int
    length: int = 16
    family: str = "mma"
    scale: str = ""
    scales: tuple[tuple[int, int], ...] = ()
    more: dict[str, Any] = field(default_factory=dict)

    def result(self) -> int:
        instruction = form(self.types, k=self.length, scale=self.scale, **self.more)
        pairs = [self.factors.get(position, (0, 0)) for position in range(self.length)]
        a, b = zip(*pairs, strict=True)
        group = self.length // len(self.scales) if self.scales else 0
        scales = [pair for pair in self.scales for _ in range(group)]
        rule = rule_for(self.target, self.operation, instruction.d.name, self.family)
        return dot(rule, instruction, inputs_of(instruction, a, b, self.c, scales))


def cases(
    target: str, operation: str, types: str, length: int, *rows: tuple[Any, ...], **more: Any
) -> list[Case]:
    """Rows are ``(name, c, factors from position 0 on or by position, expected)``."""
    return [
        Case(
            name=f"{target} {types}: {name}",
            target=target,
            operation=operation,
            types=types,
            length=length,
            c=c,
            factors=factors if isinstance(factors, dict) else dict(enumerate(factors)),
            expected=expected,
            **more,
        )
        for name, c, factors, expected in rows
    ]


def check(table: Sequence[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", table, ids=[case.name for case in table])


# --- FusedSum --------------------------------------------------------------------------------------

ONE, TWO, HALF, MINUS_ONE, INF, MINUS_INF, NAN = 0x3C00, 0x4000, 0x3800, 0xBC00, 0x7C00, 0xFC00, 0xFE01
P2 = {exponent: (exponent + 15) << 10 for exponent in range(-14, 16)}  # f16 powers of two
SUB = {exponent: 1 << (exponent + 24) for exponent in range(-24, -14)}  # f16 subnormal powers of two

_VOLTA_F32 = cases(
    "sm_70", "m8n8k4.f16", "f32.f16.f16.f32", 4,
    # 1*1 + 2*2 + 0.5 = 5.5 = 1.375 * 2**2
    ("exact", 0x3F000000, [(ONE, ONE), (TWO, TWO)], 0x40B00000),
    # Unit 2**-23: each 2**-24 is cut although the two together would be a unit.
    ("each term is cut", 0x3F800000, [(P2[-12], P2[-12])] * 2, 0x3F800000),
    ("2**-23 survives", 0x3F800000, [(P2[-12], P2[-11])], 0x3F800001),
    # A floor shift would make -1 unit of -2**-24.
    ("negative terms are cut toward zero", 0x3F800000, [(0x8000 | P2[-12], P2[-12])], 0x3F800000),
    # 1.5 * 1.5 = 2.25 aligns as 2**0, so both 2**-23 survive: 2.25 + 2**-22.
    ("products are not normalised", 0, [(0x3E00, 0x3E00), *[(P2[-12], P2[-11])] * 2], 0x40100001),
    # 0 * 2**15 would have exponent -14 + 15 = 1; without it the unit is 2**-24: 0.5 + 2**-24.
    ("a zero product does not align", 0x3F000000, [(0, P2[15]), (P2[-12], P2[-12])], 0x3F000001),
    # Exact sum 1 - 2**-23 = 0x3f7ffffe; -1 unit of 2**-23.
    ("a difference keeps more bits", 0x3F800000, [(0x8000 | P2[-12], P2[-11])], 0x3F7FFFFE),
)  # fmt: skip

_C_AS_F16 = cases(
    "sm_70", "m8n8k4.f16", "f32.f16.f16.f16", 4,
    # C = 2**-24 as f16 has exponent -14: unit 2**-37, both 2**-38 are cut. As f32 it would be
    # exponent -24 and 2**-24 + 2**-37 = 0x33800400.
    ("subnormal C keeps f16's exponent", 0x0001, [(SUB[-19], SUB[-19])] * 2, 0x33800000),
    ("C is widened exactly", 0xC100, [], 0xC0200000),  # -2.5
)  # fmt: skip

_LATER_F32 = cases(
    "sm_75", "f16", "f32.f16.f16.f32", 8,
    # Unit 2**-24: two times 2**-24 are 2**-23. One alone is added, then the result is cut to 24 bits.
    ("2 * 2**-24", 0x3F800000, [(P2[-12], P2[-12])] * 2, 0x3F800001),
    ("2**-24", 0x3F800000, [(P2[-12], P2[-12])], 0x3F800000),
) + cases(
    "sm_80", "f16", "f32.f16.f16.f32", 8,
    ("4 * 2**-25 are cut", 0x3F800000, [(P2[-12], P2[-13])] * 4, 0x3F800000),
) + cases(
    "sm_90", "f16", "f32.f16.f16.f32", 16,
    # Unit 2**-25.
    ("4 * 2**-25", 0x3F800000, [(P2[-12], P2[-13])] * 4, 0x3F800001),
    ("8 * 2**-26 are cut", 0x3F800000, [(P2[-13], P2[-13])] * 8, 0x3F800000),
    # 1 - 2**-25 has 25 bits: toward zero is 1 - 2**-24.
    ("1 - 2**-25", 0x3F800000, [(0x8000 | P2[-12], P2[-13])], 0x3F7FFFFF),
    ("-1 + 2**-25", 0xBF800000, [(P2[-12], P2[-13])], 0xBF7FFFFF),
)  # fmt: skip

# 1 + 2**-24 in the first eight, -1 in the second: the rounding between two groups loses 2**-24.
_TWO_GROUPS = {0: (ONE, ONE), 1: (P2[-12], P2[-12]), 8: (MINUS_ONE, ONE)}
# 2**-11 in each half: f16 accumulators rounded between groups stay at 1.
_TWO_TIES = {0: (P2[-5], P2[-6]), 8: (P2[-5], P2[-6])}
_CHAINS = cases(
    "sm_80", "f16", "f32.f16.f16.f32", 16,
    ("groups of eight", 0, _TWO_GROUPS, 0x00000000),
    ("Inf goes through", 0, {0: (INF, ONE), 8: (ONE, ONE)}, 0x7F800000),
    ("Inf meets -Inf later", 0, {0: (INF, ONE), 8: (MINUS_INF, ONE)}, 0x7FFFFFFF),
) + cases(
    "sm_90", "f16", "f32.f16.f16.f32", 16, ("one group", 0, _TWO_GROUPS, 0x33800000)
) + cases(
    "sm_90a", "f16", "f32.f16.f16.f32", 16, ("wgmma", 0, _TWO_GROUPS, 0x33800000), family="wgmma"
) + cases(
    "sm_80", "f16", "f16.f16.f16.f16", 16, ("groups of eight", ONE, _TWO_TIES, 0x3C00)
) + cases(
    "sm_90", "f16", "f16.f16.f16.f16", 16, ("one group", ONE, _TWO_TIES, 0x3C01)
) + cases(
    "sm_80", "bf16", "f32.bf16.bf16.f32", 16,
    ("overflow between groups", 0, {0: (0x7F00, 0x4000), 8: (0xFF00, 0x4000)}, 0x7F800000),  # 2**128 - 2**128
)  # fmt: skip


def _tie(exponents: tuple[int, int]) -> list[tuple[int, int]]:
    """2**-25, half of the smallest f16, and something tiny that decides whether it is a tie."""
    return [(P2[-12], P2[-13]), (SUB[exponents[0]], SUB[exponents[1]])]


_F16_FLOORS = [
    # Alignment at least 2**-19, unit 2**-42 with 23 fraction bits.
    *cases("sm_70", "m8n8k4.f16", "f16.f16.f16.f16", 4, ("floor keeps 2**-42", 0, _tie((-18, -24)), 0x0001)),
    *cases("sm_70", "m8n8k4.f16", "f16.f16.f16.f16", 4, ("floor cuts 2**-43", 0, _tie((-19, -24)), 0x0000)),
    # At least 2**-20, unit 2**-44.
    *cases("sm_80", "f16", "f16.f16.f16.f16", 8, ("floor keeps 2**-44", 0, _tie((-20, -24)), 0x0001)),
    *cases("sm_80", "f16", "f16.f16.f16.f16", 8, ("floor cuts 2**-45", 0, _tie((-21, -24)), 0x0000)),
    # At least 2**-21, unit 2**-46.
    *cases("sm_90", "f16", "f16.f16.f16.f16", 16, ("floor keeps 2**-46", 0, _tie((-22, -24)), 0x0001)),
    *cases("sm_90", "f16", "f16.f16.f16.f16", 16, ("floor cuts 2**-47", 0, _tie((-23, -24)), 0x0000)),
]  # fmt: skip

_F16_RESULTS = cases(
    "sm_90", "f16", "f16.f16.f16.f16", 16,
    # 1 + 2**-11 ties to even; 2**-25 more is not lost on the way (one rounding): 1 + 2**-10.
    ("tie to even", ONE, [(P2[-5], P2[-6])], 0x3C00),
    ("one rounding", ONE, [(P2[-5], P2[-6]), (P2[-12], P2[-13])], 0x3C01),
    ("tie to even, upward", 0x3C01, [(P2[-5], P2[-6])], 0x3C02),
    # 65504 + 14 rounds down, 65504 + 16 is the first to overflow.
    ("65518", 0x7BFF, [(0x4400, 0x4300)], 0x7BFF),
    ("65520", 0x7BFF, [(0x4400, 0x4400)], 0x7C00),
    ("-65520", 0xFBFF, [(0x4400, 0xC400)], 0xFC00),
    ("subnormal result", 0x8001, [(P2[-12], P2[-10])], 0x0003),  # 4 - 1 times 2**-24
    ("-2**-26 is +0", 0, [(0x8000 | P2[-13], P2[-13])], 0x0000),
    ("NaN", NAN, [], 0x7FFF),
    ("-Inf", 0, [(INF, MINUS_ONE)], 0xFC00),
)  # fmt: skip

_SPECIAL = cases(
    "sm_90", "f16", "f32.f16.f16.f32", 16,
    ("all -0", 0x80000000, [(0x8000, ONE)] * 16, 0x00000000),
    ("cancellation", 0xBF800000, [(ONE, ONE)], 0x00000000),
    ("NaN in A loses sign and payload", 0, [(NAN, ONE)], 0x7FFFFFFF),
    ("NaN in B", 0, [(0, NAN)], 0x7FFFFFFF),
    ("NaN in C", 0xFFC12345, [(ONE, ONE)], 0x7FFFFFFF),
    ("Inf * 0", 0, [(INF, 0)], 0x7FFFFFFF),
    ("Inf - Inf among products", 0, [(INF, ONE), (MINUS_INF, ONE)], 0x7FFFFFFF),
    ("Inf and C = -Inf", 0xFF800000, [(INF, ONE)], 0x7FFFFFFF),
    ("-Inf and C = -Inf", 0xFF800000, [(MINUS_INF, ONE)], 0xFF800000),
    ("Inf * -1", 0x3F800000, [(INF, MINUS_ONE)], 0xFF800000),
    ("subnormal C passes", 0x80000001, [], 0x80000001),
    ("subnormal factors", 0, [(0x0001, 0x8001)], 0xA7800000),  # -2**-48: exponent field 79
)  # fmt: skip


def _bf16(exponent: int) -> int:
    return (exponent + 127) << 7


def _wide(exponent: int, sign: int = 0) -> tuple[int, int]:
    """bf16 factors of a power of two."""
    half = exponent // 2
    return _bf16(half) | sign << 15, _bf16(exponent - half)


_BF16 = cases(
    "sm_80", "bf16", "f32.bf16.bf16.f32", 8,
    ("2**128", 0, [_wide(128)], 0x7F800000),
    ("-2**128", 0, [_wide(128, 1)], 0xFF800000),
    ("largest + half a unit", 0x7F7FFFFF, [_wide(103)], 0x7F7FFFFF),
    ("largest + a unit", 0x7F7FFFFF, [_wide(104)], 0x7F800000),
    # 2**254 does not overflow on the way; the 1 is far below the unit 2**230.
    ("2**254 - 2**254 + 1", 0x3F800000, [_wide(254), _wide(254, 1)], 0x00000000),
    ("2**-150", 0, [_wide(-150)], 0x00000000),
    ("-2**-150 is +0", 0, [_wide(-150, 1)], 0x00000000),
    # Alignment at least 2**-132, unit 2**-156: what lies below does not pull 2**-149 toward zero.
    ("floor keeps -2**-156", 0, [_wide(-149), _wide(-156, 1)], 0x00000000),
    ("floor cuts -2**-157", 0, [_wide(-149), _wide(-157, 1)], 0x00000001),
) + cases(
    "sm_90", "bf16", "f32.bf16.bf16.f32", 16,
    ("floor keeps -2**-158", 0, [_wide(-149), _wide(-158, 1)], 0x00000000),
    ("floor cuts -2**-159", 0, [_wide(-149), _wide(-159, 1)], 0x00000001),
)  # fmt: skip

_TF32_SUBNORMALS = [(0x00002000, 0x79800000), (0x80002000, 0x79800000)]  # +-2**-136 * 2**116
_TF32 = cases(
    "sm_80", "tf32", "f32.tf32.tf32.f32", 4,
    ("low bits are dropped", 0, [(0x3F801FFF, 0x3F800000)], 0x3F800000),
    ("the lowest bit that counts", 0, [(0x3F802000, 0x3F800000)], 0x3F802000),
    ("NaN payload in the low bits: Inf", 0, [(0x7F800001, 0x3F800000)], 0x7F800000),
    ("... and -Inf", 0, [(0xFF801FFF, 0x3F800000)], 0xFF800000),
    ("NaN payload above", 0, [(0x7F802000, 0x3F800000)], 0x7FFFFFFF),
    ("such an Inf times what becomes 0", 0, [(0x7F800001, 0x00001FFF)], 0x7FFFFFFF),
    ("C is a whole f32", 0x3F801FFF, [], 0x3F801FFF),
    ("subnormal 2**-136 * 2**10", 0, [(0x00002000, 0x44800000)], 0x00800000),
    # 2**-136 has exponent -126: the products align as 2**-10, with unit 2**-34.
    ("subnormals are not normalised", 0x2E800000, _TF32_SUBNORMALS, 0x2E800000),
    ("... 2**-35 is cut", 0x2E000000, _TF32_SUBNORMALS, 0x00000000),
)  # fmt: skip


@check(_VOLTA_F32 + _C_AS_F16 + _LATER_F32 + _CHAINS + _F16_FLOORS + _F16_RESULTS + _SPECIAL + _BF16 + _TF32)
def test_fused_sum(case: Case) -> None:
    assert f"{case.result():08x}" == f"{case.expected:08x}"


# --- 8-bit and narrower --------------------------------------------------------------------------------

E4_256, E4_MINUS_256, E4_ONE = 0x78, 0xF8, 0x38
# Group one: 256 * 256 - 256 * 256 + 1 * 1, the 1 is below the unit 2**3; group two: 1 * 1.
_F8_GROUPS = {0: (E4_256, E4_256), 1: (E4_MINUS_256, E4_256), 2: (E4_ONE, E4_ONE), 16: (E4_ONE, E4_ONE)}
_ADA_F32 = cases(
    "sm_89", "f8f6f4", "f32.e4m3.e4m3.f32", 32,
    ("C is cut to 13 bits", 0x3F8003FF, [], 0x3F800000),
    ("the lowest bit that counts", 0x3F8007FF, [], 0x3F800400),
    ("two times 2**-14", 0x3F800000, [(0x01, 0x10)] * 2, 0x3F800000),  # 2**-9 * 2**-5
    ("2**-13", 0x3F800000, [(0x04, 0x08)], 0x3F800400),  # 2**-7 * 2**-6
    # 1.875 * 1.875 = 3.515625 and 2**-13: 15 bits, one too many for the result.
    ("14 bits of a carried sum", 0, [(0x3F, 0x3F), (0x04, 0x08)], 0x40610000),
    ("groups of sixteen", 0, _F8_GROUPS, 0x3F800000),
    ("0x7f is NaN", 0, [(0x7F, 0)], 0x7FFFFFFF),
    ("0xff is NaN", 0, [(E4_ONE, 0xFF)], 0x7FFFFFFF),
    ("0x7e is 448", 0, [(0x7E, E4_ONE)], 0x43E00000),
    ("-0", 0x80000000, [(0x80, 0x38)], 0x00000000),
) + cases(
    "sm_89", "f8f6f4", "f32.e5m2.e4m3.f32", 32,
    ("e5m2 Inf", 0, [(0x7C, E4_ONE)], 0x7F800000),
    ("e5m2 NaN", 0, [(0xFD, E4_ONE)], 0x7FFFFFFF),
    ("e5m2 Inf * 0", 0, [(0x7C, 0x80)], 0x7FFFFFFF),
    ("e5m2 subnormal", 0, [(0x03, E4_ONE)], 0x38400000),  # 3 * 2**-16
)  # fmt: skip
_ADA_F16 = cases(
    "sm_89", "f8f6f4", "f16.e4m3.e4m3.f16", 32,
    # 2**-11 ties to 1; three of them are 1.5 units and tie to 2 units.
    ("2**-11", ONE, [(0x08, 0x10)], 0x3C00),
    ("3 * 2**-11", ONE, [(0x08, 0x10)] * 3, 0x3C02),
    ("448 * 448 overflows", 0, [(0x7E, 0xFE)], 0xFC00),
)  # fmt: skip
_HOPPER_F8 = cases(
    "sm_90a", "f8f6f4", "f32.e4m3.e4m3.f32", 32,
    ("one group of 32", 0, _F8_GROUPS, 0x00000000),
    ("C is cut to 13 bits", 0x3F8007FF, [], 0x3F800400),
    family="wgmma",
)  # fmt: skip
_NARROW = cases(
    "sm_120", "f8f6f4", "f32.e2m3.e2m1.f32", 32,
    ("-7.5 * 0.5", 0, [(0x3F, 0x1)], 0xC0700000),
    ("0.125 * -6", 0, [(0x01, 0xF)], 0xBF400000),  # -0.75
) + cases(
    "sm_120", "f8f6f4", "f32.e3m2.e5m2.f32", 32,
    ("28 * 2**-16", 0, [(0x1F, 0x01)], 0x39E00000),  # 1.75 * 2**-12
    ("0x3f is -28", 0, [(0x3F, 0x3C)], 0xC1E00000),
) + cases(
    "sm_120", "f8f6f4", "f32.e5m2.e5m2.f32", 32,
    # Unit 2**-25, as for f16.
    ("4 * 2**-25", 0x3F800000, [(0x0C, 0x08)] * 4, 0x3F800001),
    ("8 * 2**-26 are cut", 0x3F800000, [(0x08, 0x08)] * 8, 0x3F800000),
    # 1 + 2**-24 - 1: 2**-24 if nothing is rounded after sixteen products.
    ("one group of 32", 0, {0: (0x3C, 0x3C), 1: (0x0C, 0x0C), 16: (0xBC, 0x3C)}, 0x33800000),
)  # fmt: skip


@check(_ADA_F32 + _ADA_F16 + _HOPPER_F8 + _NARROW)
def test_f8_and_narrower(case: Case) -> None:
    assert f"{case.result():08x}" == f"{case.expected:08x}"


E5_ONE, E5_MINUS_ONE, E5_FOUR = 0x3C, 0xBC, 0x44


def _at(*, one: int, tiny: int, minus_one: int) -> dict[int, tuple[int, int]]:
    """e5m2 factors of 1, 2**-24 and -1 at stored positions."""
    return {one: (E5_ONE, E5_ONE), tiny: (0x0C, 0x0C), minus_one: (E5_MINUS_ONE, E5_ONE)}


_EMULATED_F32 = cases(
    "sm_90", "f8f6f4", "f32.e5m2.e5m2.f32", 16,
    # 1.5 * 2**-24 rounds up to 2**-23 in the final addition; a tensor core would cut it.
    ("C is added last, to nearest", 0x3F800000, [(0x0E, 0x0C)], 0x3F800001),
    ("... ties to even", 0x3F800000, [(0x0C, 0x0C)], 0x3F800000),
    # 1 + 2**-24 - 1: one step if all have k % 4 in 0, 1; else 1 + 2**-24 is cut before the -1.
    ("first step", 0, _at(one=0, tiny=1, minus_one=8), 0x33800000),
    ("two steps", 0, _at(one=0, tiny=1, minus_one=2), 0x00000000),
    ("second step", 0, _at(one=2, tiny=3, minus_one=15), 0x33800000),
    ("the first step comes first", 0, _at(one=3, tiny=6, minus_one=1), 0x33800000),
    # An e5m2 subnormal is a subnormal of f16: 2**-16 * 2**15 aligns as 2**1 and cuts 2**-25.
    ("e5m2 subnormal", 0, [(0x01, 0x78), (0xB8, 0x3C), (0, 0), (0, 0), (0x0C, 0x08)], 0x00000000),
    ("C = -0 is added to +0", 0x80000000, [(0x80, E5_ONE)] * 16, 0x00000000),
    ("NaN", 0, [(0x7F, 0)], 0x7FFFFFFF),
    ("NaN in C", 0xFFC00000, [], 0x7FFFFFFF),
    ("Inf - Inf", 0xFF800000, [(0x7C, E5_ONE)], 0x7FFFFFFF),
) + cases(
    "sm_100", "f8f6f4", "f32.e4m3.e5m2.f32", 16,
    # e4m3 2**-9 is normal in f16: 2**-9 * 2**15 aligns as 2**6, unit 2**-19, so 2**-17 survives. By
    # e4m3's own smallest exponent it would align as 2**9 and cut it.
    ("e4m3 subnormal", 0, {0: (0x01, 0x78), 1: (0x68, 0xBC), 4: (0x08, 0x10)}, 0x37000000),
)  # fmt: skip
_EMULATED_F16 = cases(
    "sm_90", "f8f6f4", "f16.e5m2.e5m2.f16", 16,
    # 1 + 2**-11 ties to 1 in the step, and once more with C = 2**-11. Exactly, 1 + 2**-10.
    ("every rounding is f16", 0x1000, [(E5_ONE, E5_ONE), (0x28, 0x24)], 0x3C00),
    ("65504 + 16", 0x7BFF, [(E5_FOUR, E5_FOUR)], 0x7C00),
    ("the step overflows before C", 0xFBFF, [(0x7B, E5_FOUR)], 0x7C00),  # 57344 * 4
    ("NaN", 0, [(0x7D, 0)], 0x7FFF),
    ("-0 + +0", 0x8000, [], 0x0000),
)  # fmt: skip


@check(_EMULATED_F32 + _EMULATED_F16)
def test_emulated_f8(case: Case) -> None:
    assert f"{case.result():08x}" == f"{case.expected:08x}"


# --- block scales ----------------------------------------------------------------------------------

ONE8 = 0x7F  # ue8m0 1


def scaled(name: str, c: int, factors: Any, scales: Sequence[tuple[int, int]], expected: int) -> Case:
    """kind::mxf8f6f4: one pair of scales."""
    row = (name, c, factors, expected)
    return cases("sm_120a", "mxf8f6f4", "f32.e4m3.e4m3.f32", 32, row, scale="ue8m0", scales=tuple(scales))[0]


_ONE_MINUS_ONE = [(E4_ONE, E4_ONE), (E4_ONE, 0xB8)]
_MX = [
    scaled("scales multiply", 0, [(E4_ONE, E4_ONE)], [(0x80, 0x81)], 0x41000000),  # 2 * 4
    scaled("C is not scaled", 0x3F800000, [(E4_ONE, E4_ONE)], [(0x80, 0x81)], 0x41100000),
    # 8 - 8 aligns as 2**3, unit 2**-22.
    scaled("scales take part in the alignment", 0x34800000, _ONE_MINUS_ONE, [(0x81, 0x80)], 0x34800000),
    scaled("... and cut C", 0x34000000, _ONE_MINUS_ONE, [(0x81, 0x80)], 0x00000000),
    scaled("zero products do not align, however scaled", 0x34000000, [], [(0xFE, 0xFE)], 0x34000000),
    scaled("NaN scale of zeros", 0x3F800000, [], [(0xFF, 0x00)], 0x7FFFFFFF),
    scaled("2**-254", 0, [(E4_ONE, E4_ONE)], [(0x00, 0x00)], 0x00000000),
    scaled("2**254", 0, [(E4_ONE, 0xB8)], [(0xFE, 0xFE)], 0xFF800000),
    scaled("scale 2**-127 is not zero", 0, [(E4_256, E4_256)], [(0x00, ONE8)], 0x08000000),  # 2**-111
]

F4_ONE, F4_MINUS_ONE, F4_SIX, F4_HALF = 0x2, 0xA, 0x7, 0x1


def grouped(
    name: str, c: int, factors: Any, scales: Sequence[tuple[int, int]], expected: int, scale: str = "ue8m0"
) -> Case:
    """kind::mxf4nvf4 with 4X scales: a pair for each group of 16, missing ones being 1."""
    one = (ONE8, ONE8) if scale == "ue8m0" else (0x38, 0x38)
    padded = (*scales, *[one] * (4 - len(scales)))
    row = (name, c, factors, expected)
    return cases("sm_120a", "mxf4", "f32.e2m1.e2m1.f32", 64, row, scale=scale, scales=padded)[0]


_CANCELS = [(F4_ONE, F4_ONE), (F4_ONE, F4_MINUS_ONE)]
_PLUS_MINUS_36 = {0: (F4_SIX, F4_SIX), 16: (F4_SIX, F4_SIX | 8), 32: (F4_ONE, F4_ONE)}
_ONES = [(ONE8, ONE8)] * 2
_PLUS_MINUS_1 = {0: (F4_ONE, F4_ONE), 16: (F4_ONE, F4_MINUS_ONE)}
_GROUPS = [
    grouped("sums are exact", 0, [(F4_SIX, F4_SIX), (F4_HALF, F4_HALF)], [], 0x42110000),  # 36.25
    # 2**20 * (1 - 1) still aligns as 2**20: unit 2**-15.
    grouped("a group that cancels aligns", 0x37800000, _CANCELS, [(0x93, ONE8)], 0x00000000),
    grouped("... and keeps 2**-15", 0x38000000, _CANCELS, [(0x93, ONE8)], 0x38000000),
    grouped("a group of zeros does not", 0x37800000, [(F4_ONE, 0x8)], [(0x93, ONE8)], 0x37800000),
    # 36 - 36 align as 2**0, not as 2**5: unit 2**-35.
    grouped("groups are not normalised", 0, _PLUS_MINUS_36, [*_ONES, (0x5C, ONE8)], 0x2E000000),
    grouped("... 2**-36 is cut", 0, _PLUS_MINUS_36, [*_ONES, (0x5B, ONE8)], 0x00000000),
    # Alignment at least 2**-139, unit 2**-174.
    grouped("floor keeps -2**-174", 0, _PLUS_MINUS_1, [(0x00, 0x69), (0x00, 0x50)], 0x00000000),
    grouped("floor cuts -2**-175", 0, _PLUS_MINUS_1, [(0x00, 0x69), (0x00, 0x4F)], 0x00000001),
    grouped("NaN scale of zeros", 0x3F800000, [], [(ONE8,) * 2, (0xFF, 0)], 0x7FFFFFFF),
    grouped("C = -Inf", 0xFF800000, [(F4_ONE, F4_ONE)], [], 0xFF800000),
    grouped("C = NaN", 0x7F800001, [], [], 0x7FFFFFFF),
    grouped("2**254", 0, [(F4_ONE, F4_ONE)], [(0xFE, 0xFE)], 0x7F800000),
    grouped("-0", 0x80000000, [(F4_ONE, 0x8)] * 64, [], 0x00000000),
    grouped("-36 and C = 36", 0x42100000, [(F4_SIX, 0xF)], [], 0x00000000),
]
_UE4M3 = [
    grouped("1.5 * 1.5", 0, [(F4_ONE, F4_ONE)], [(0x3C, 0x3C)], 0x40100000, "ue4m3"),
    grouped("bit 7 is ignored", 0, [(F4_ONE, F4_ONE)], [(0xBC, 0x3C)], 0x40100000, "ue4m3"),
    grouped("0x7f is NaN", 0, [], [(0x7F, 0x38)], 0x7FFFFFFF, "ue4m3"),
    grouped("0xff is NaN", 0, [], [(0x38, 0xFF)], 0x7FFFFFFF, "ue4m3"),
    grouped("448 * 448", 0, [(F4_ONE, F4_ONE)], [(0x7E, 0x7E)], 0x48440000, "ue4m3"),  # 1.53125 * 2**17
    # Scale 0 * 256 has exponent -6 + 8 = 2, which would cut 2**-34.
    grouped("scale zero does not align", 0x2E800000, [(F4_ONE, F4_ONE)], [(0x00, 0x78)], 0x2E800000, "ue4m3"),
    # 2**-9 is 0.125 * 2**-6: two groups that cancel align as 2**-6, unit 2**-41.
    grouped("subnormal scales", 0x2B000000, _PLUS_MINUS_1, [(0x01, 0x38)] * 2, 0x2B000000, "ue4m3"),
    grouped("... cut 2**-42", 0x2A800000, _PLUS_MINUS_1, [(0x01, 0x38)] * 2, 0x00000000, "ue4m3"),
]  # fmt: skip


@check(_MX + _GROUPS + _UE4M3)
def test_block_scales(case: Case) -> None:
    assert f"{case.result():08x}" == f"{case.expected:08x}"


# --- FusedMultiplyAdd ------------------------------------------------------------------------------

D1, D_MINUS_1, D_HALF, D_TWO = 0x3FF0 << 48, 0xBFF0 << 48, 0x3FE0 << 48, 0x4000 << 48
D_MAX, D_INF, D_SIGN = 0x7FEF_FFFF_FFFF_FFFF, 0x7FF0 << 48, 1 << 63
D_2_53 = 0x4340 << 48

_F64 = {
    # name: c, factors, (rn, rz, rm, rp)
    "2**53 + 1 + 1": (D_2_53, [(D1, D1), (D1, D1)], (D_2_53, D_2_53, D_2_53, D_2_53 + 2)),
    "-2**53 - 1": (D_SIGN | D_2_53, [(D_MINUS_1, D1)], tuple(D_SIGN | D_2_53 + i for i in (0, 0, 1, 0))),
    # (1 + u)**2 - (1 + 2u) = u**2 = 2**-104, exact only if the product is not rounded.
    "fused": (0xBFF0_0000_0000_0002, [(D1 + 1, D1 + 1)], (0x3970 << 48,) * 4),
    "2**-1075": (0, [(1, D_HALF)], (0, 0, 0, 1)),
    "-2**-1075": (0, [(1, D_SIGN | D_HALF)], (D_SIGN, D_SIGN, D_SIGN | 1, D_SIGN)),
    "1.5 * 2**-1074": (0, [(3, D_HALF)], (2, 1, 1, 2)),
    "2**-1074 + 2**-2148": (1, [(1, 1)], (1, 1, 1, 2)),
    "subnormal carries into normal": (
        0x000F_FFFF_FFFF_FFFF,
        [(1, D_HALF)],
        (0x0010 << 48, 0x000F_FFFF_FFFF_FFFF, 0x000F_FFFF_FFFF_FFFF, 0x0010 << 48),
    ),
    "overflow": (0, [(D_MAX, D_TWO)], (D_INF, D_MAX, D_MAX, D_INF)),
    "-overflow": (0, [(D_MAX, D_SIGN | D_TWO)], tuple(D_SIGN | x for x in (D_INF, D_MAX, D_INF, D_MAX))),
    "largest + half a unit": (D_MAX, [(0x7C90 << 48, D1)], (D_INF, D_MAX, D_MAX, D_INF)),
    "largest + a quarter": (D_MAX, [(0x7C80 << 48, D1)], (D_MAX, D_MAX, D_MAX, D_INF)),
    "1 - 1": (D_MINUS_1, [(D1, D1)], (0, 0, D_SIGN, 0)),
    "+0 + +0": (0, [(0, D1)], (0, 0, 0, 0)),
    "-0 + -0": (D_SIGN, [(D_SIGN, D1)], (D_SIGN,) * 4),
    "-0 + +0": (0, [(D_SIGN, D1)], (0, 0, D_SIGN, 0)),
    "Inf": (D_MAX, [(D_INF, D1)], (D_INF,) * 4),
    "Inf - Inf": (D_SIGN | D_INF, [(D_INF, D1)], (DEFAULT_F64_NAN,) * 4),
    "Inf * 0": (0, [(D_INF, 0)], (DEFAULT_F64_NAN,) * 4),
    "NaN": (0xFFF0_0000_0000_0001, [(D1, D1)], (DEFAULT_F64_NAN,) * 4),
}  # fmt: skip


@pytest.mark.parametrize("name", _F64)
def test_fused_multiply_add(name: str) -> None:
    c, factors, expected = _F64[name]
    rule = rule_for("sm_80", "f64", "f64")
    a, b = zip(*factors, strict=True)
    for rounding, code in zip(("rn", "rz", "rm", "rp"), expected, strict=True):
        instruction = form("f64.f64.f64.f64", k=len(a), rounding=rounding)
        result = dot(rule, instruction, inputs_of(instruction, a, b, c))
        assert (rounding, f"{result:016x}") == (rounding, f"{code:016x}")


def _f64_of(code: int) -> float:
    value: float = struct.unpack("<d", struct.pack("<Q", code))[0]
    return value


def _nearest(value: Fraction) -> float:
    try:
        return float(value)  # int / int is correctly rounded, subnormals included
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def test_fused_multiply_add_against_fractions() -> None:
    random_codes = random.Random(64)
    rule = rule_for("sm_80", "f64", "f64")
    for low, high in [(1, 2046), (1, 100), (500, 520), (1480, 1560)]:
        for _ in range(400):
            a, b, c = (
                random_codes.getrandbits(1) << 63
                | random_codes.randint(low, high) << 52
                | random_codes.getrandbits(52)
                for _ in range(3)
            )
            exact = Fraction(_f64_of(a)) * Fraction(_f64_of(b)) + Fraction(_f64_of(c))
            results = {}
            for rounding in ("", "rz", "rm", "rp"):
                instruction = form("f64.f64.f64.f64", k=1, rounding=rounding)
                results[rounding] = _f64_of(dot(rule, instruction, inputs_of(instruction, [a], [b], c)))
            assert results[""] == _nearest(exact)
            assert results["rm"] <= exact <= results["rp"]
            assert results[""] in (results["rm"], results["rp"])
            assert results["rz"] == (results["rm"] if exact > 0 else results["rp"])


# --- SoftwareQuad ----------------------------------------------------------------------------------

_T24 = (P2[-12], P2[-12])  # 2**-24
_QUAD_F32 = cases(
    "sm_80", "m8n8k4.f16", "f32.f16.f16.f32", 4,
    # fma by fma, 1 + 2**-24 ties to 1; in the other order they meet first.
    ("k ascends", 0, [(ONE, ONE), _T24, _T24], 0x3F800000),
    ("small ones first", 0, [_T24, _T24, (ONE, ONE)], 0x3F800001),
    ("C is added last", 0x3F800000, [(P2[-12], P2[-13])] * 4, 0x3F800001),
    ("to nearest", 0x3F800000, [(0x0E00, P2[-12])], 0x3F800001),  # 1.5 * 2**-24
    ("the chain starts at +0", 0x80000000, [(0x8000, ONE)] * 4, 0x00000000),
    ("NaN", 0, [(NAN, ONE)], 0x7FFFFFFF),
    ("Inf * 0", 0, [(INF, 0x8000)], 0x7FFFFFFF),
    ("subnormals", 0, [(0x0001, 0x0001)], 0x27800000),
) + cases(
    "sm_90", "m8n8k4.f16", "f32.f16.f16.f16", 4,
    ("C is widened", 0x0001, [], 0x33800000),
    ("C = Inf", 0xFC00, [(ONE, ONE)], 0xFF800000),
)  # fmt: skip
_QUAD_F16 = cases(
    "sm_80", "m8n8k4.f16", "f16.f16.f16.f16", 4,
    # a0*b0 and a1*b1 meet before C: 1 + 2**-11 + 2**-24 ties to 1 + 2**-11 in f32, that to 1 in f16.
    ("two roundings", ONE, [(P2[-5], P2[-6]), _T24], 0x3C00),
    ("2**-23 decides", ONE, [(P2[-5], P2[-6]), (P2[-12], P2[-11])], 0x3C01),
    # C meets a2*b2 + a3*b3 first: 1 + 2**-24 ties to 1, -1 leaves 0.
    ("C meets the upper half", MINUS_ONE, [_T24, (0, 0), (ONE, ONE), (0, 0)], 0x0001),
    ("... 2**-24 is lost there", ONE, [(MINUS_ONE, ONE), (0, 0), _T24, (0, 0)], 0x0000),
    ("all -0", 0x8000, [(0x8000, ONE)] * 4, 0x8000),
    ("one +0 of the lower half", 0x8000, [(0, ONE), *[(0x8000, ONE)] * 3], 0x0000),
    ("-2**-26 is -0", 0x8000, [(0x8000 | P2[-13], P2[-13]), *[(0x8000, ONE)] * 3], 0x8000),
    ("65504 + 16", 0x7BFF, [(0x4400, 0x4400)], 0x7C00),
    ("NaN", NAN, [], 0x7FFF),
)  # fmt: skip


@check(_QUAD_F32 + _QUAD_F16)
def test_software_quad(case: Case) -> None:
    assert f"{case.result():08x}" == f"{case.expected:08x}"


# --- integers and bits -----------------------------------------------------------------------------


def integer(name: str, types: str, c: int, factors: Any, wraps: int, saturates: int) -> list[Case]:
    rows = [(f"{name} (wraps)", False, wraps), (f"{name} (satfinite)", True, saturates)]
    return [
        cases("sm_80", "integer", types, 16, (text, c, factors, code), more={"satfinite": satfinite})[0]
        for text, satfinite, code in rows
    ]


_INTEGERS = [
    *integer("-128 * -128", "s32.s8.s8.s32", 0, [(0x80, 0x80)], 0x00004000, 0x00004000),
    *integer("255 * 255", "s32.u8.u8.s32", 0, [(0xFF, 0xFF)], 0x0000FE01, 0x0000FE01),
    *integer("255 * -1", "s32.u8.s8.s32", 0, [(0xFF, 0xFF)], 0xFFFFFF01, 0xFFFFFF01),
    *integer("-8 * 7", "s32.s4.s4.s32", 0, [(0x8, 0x7)], 0xFFFFFFC8, 0xFFFFFFC8),
    *integer("15 * -8", "s32.u4.s4.s32", 1, [(0xF, 0x8)], 0xFFFFFF89, 0xFFFFFF89),
    *integer("2**31 - 1 + 1", "s32.s8.s8.s32", 0x7FFFFFFF, [(1, 1)], 0x80000000, 0x7FFFFFFF),
    *integer("-2**31 - 1", "s32.s8.s8.s32", 0x80000000, [(1, 0xFF)], 0x7FFFFFFF, 0x80000000),
    *integer("there and back", "s32.s8.s8.s32", 0x7FFFFFFF, [(1, 1), (2, 0xFF)], 0x7FFFFFFE, 0x7FFFFFFE),
]
_A_BITS, _B_BITS = (1, 0, 1, 1, 0), (1, 1, 0, 0, 1)
_BITS = list(zip(_A_BITS, _B_BITS, strict=True))
_COUNTS = [
    *cases("sm_80", "b1", "s32.b1.b1.s32", 128, ("and", 5, _BITS, 6), more={"bit_operation": "and"}),
    *cases(
        "sm_80", "b1", "s32.b1.b1.s32", 128,
        ("xor", 5, _BITS, 9),
        ("wraps", 0x7FFFFFFF, _BITS, 0x80000003),
        more={"bit_operation": "xor"},
    ),
]  # fmt: skip


@check(_INTEGERS + _COUNTS)
def test_integers(case: Case) -> None:
    assert f"{case.result():08x}" == f"{case.expected:08x}"


# --- decoding --------------------------------------------------------------------------------------

_SMALL_FLOATS = [element for element in FORMATS.values() if element.is_float and element.bits <= 16]


@pytest.mark.parametrize("element", _SMALL_FLOATS, ids=str)
def test_every_code_decodes_as_in_numpy(element: Format) -> None:
    codes = np.arange(1 << element.bits, dtype=element.code_dtype)
    with np.errstate(invalid="ignore"):
        values = codes.view(element.dtype).astype(np.float64).tolist()
    for code, value in enumerate(values):
        number = decode(code, element)
        if number.kind is Kind.NAN:
            assert value != value
        elif number.kind is Kind.INFINITE:
            assert value == (float("-inf") if number.negative else float("inf"))
        else:
            assert Fraction(value) == number.signed * Fraction(2) ** number.scale
            assert number.exponent >= element.minimum_exponent
            assert number.significand < 2 << element.fraction_bits


@pytest.mark.parametrize(
    ("name", "code", "significand", "scale", "exponent"),
    [
        ("f32", 0x3FC00000, 0xC00000, -23, 0),
        ("f32", 0x80000001, 1, -149, -126),
        ("tf32", 0x3F801FFF, 0x400, -10, 0),
        ("tf32", 0x00003FFF, 1, -136, -126),
        ("f64", 0x0000000000000001, 1, -1074, -1022),
        ("f64", 0x4000000000000000, 1 << 52, -51, 1),
        ("e4m3", 0x01, 1, -9, -6),
        ("ue8m0", 0x00, 1, -127, -127),
        ("ue4m3", 0x81, 1, -9, -6),
        ("e2m1", 0x1, 1, -1, 0),
    ],
)
def test_decode(name: str, code: int, significand: int, scale: int, exponent: int) -> None:
    number = decode(code, FORMATS[name])
    assert (number.significand, number.scale, number.exponent) == (significand, scale, exponent)


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_every_code_survives_the_way_through_f32(name: str) -> None:
    element = FORMATS[name]
    for code in range(1 << 16):
        number = decode(code, element)
        widened = decode(ieee_sum([number], F32), F32)
        expected = element.canonical_nan if number.kind is Kind.NAN else code
        assert ieee_sum([widened], element) == expected


def test_f32_results_round_like_numpy() -> None:
    random_codes = random.Random(32)
    f64 = FORMATS["f64"]
    codes = [random_codes.getrandbits(52) | random_codes.randint(860, 1160) << 52 for _ in range(2000)]
    codes += [code & ~0xFFFFFFF | 1 << 28 for code in codes]  # ties
    with np.errstate(over="ignore", under="ignore"):
        expected = np.array(codes, np.uint64).view(np.float64).astype(np.float32).view(np.uint32).tolist()
    assert [ieee_sum([decode(code, f64)], F32) for code in codes] == expected


# --- steps, for explanations -----------------------------------------------------------------------


def test_the_steps_of_a_chain() -> None:
    rule = rule_for("sm_80", "f16", "f32")
    instruction = form("f32.f16.f16.f32", k=16)
    a, b = zip(*[_TWO_GROUPS.get(position, (0, 0)) for position in range(16)], strict=True)
    inputs = inputs_of(instruction, a, b, 0x3F800000)
    assert isinstance(rule, FusedSum)
    first, second = reference.fused_chain(rule, inputs.products, inputs.c)
    assert (first.exponent, first.unit, first.code) == (0, -24, 0x40000000)
    assert first.kept == (1 << 24, 1, 0, 0, 0, 0, 0, 0, 1 << 24)
    assert (second.exponent, second.unit, second.code) == (1, -23, 0x3F800000)
    assert second.kept == (-1 << 23, 0, 0, 0, 0, 0, 0, 0, 1 << 24)


# --- matrices --------------------------------------------------------------------------------------


def _array(values: Any, dtype: str) -> np.ndarray[Any, Any]:
    return np.array(values, dtype)


def test_compute_takes_rows_columns_and_a_batch() -> None:
    instruction = form("f32.f16.f16.f32", k=2, m=2, n=1)
    operands = Operands(
        product=instruction,
        a=_array([[[ONE, TWO], [HALF, 0]]] * 2, "u2"),
        b=_array([[[ONE], [TWO]], [[TWO], [ONE]]], "u2"),
        c=_array([[[0], [0x3F800000]]] * 2, "u4"),
    )
    d = reference.compute(operands, rule_for("sm_80", "f16", "f32"))
    assert d.dtype == np.uint32
    assert d.tolist() == [[[0x40A00000], [0x3FC00000]], [[0x40800000], [0x40000000]]]  # 5, 1.5; 4, 2


def test_sparse_factors_come_from_the_named_columns() -> None:
    instruction = form("f32.f16.f16.f32", k=8, m=1, n=1, pattern=TWO_OF_FOUR)
    operands = Operands(
        product=instruction,
        a=_array([[[ONE, ONE, TWO, 0]]], "u2"),
        b=_array([[[ONE], [NAN], [NAN], [TWO], [NAN], [TWO], [ONE], [NAN]]], "u2"),
        c=_array([[[0]]], "u4"),
        columns=_array([[[0, 3, 5, 6]]], "i8"),
    )
    d = reference.compute(operands, rule_for("sm_80", "f16", "f32"))
    assert d.tolist() == [[[0x40E00000]]]  # 1*1 + 1*2 + 2*2 + 0*1, and no NaN


def test_scales_go_by_logical_columns() -> None:
    # 4:8 pattern, k = 128, 2X: stored columns 0..31 lie in the first chunk, 32..63 in the second.
    instruction = form("f32.e2m1.e2m1.f32", k=128, scale="ue8m0", scale_chunks=2, pattern=FOUR_OF_EIGHT)
    stored = [8 * chunk + column for chunk in range(16) for column in (0, 1, 4, 5)]
    operands = Operands(
        product=instruction,
        a=_array([[[F4_ONE if position in (0, 31, 32) else 0 for position in range(64)]]], "u1"),
        b=_array([[[F4_ONE]] * 128], "u1"),
        c=_array([[[0]]], "u4"),
        columns=_array([[stored]], "i8"),
        scale_a=_array([[[ONE8, ONE8 + 3]]], "u1"),
        scale_b=_array([[[ONE8 + 1], [ONE8]]], "u1"),
    )
    d = reference.compute(operands, rule_for("sm_120a", "mxf4", "f32"))
    assert d.tolist() == [[[0x41400000]]]  # 2 * (1 + 1) + 8 * 1 = 12


def test_the_reference_imports_neither_kernels_nor_planes() -> None:
    source = Path(reference.__file__).read_text(encoding="utf-8")
    for module in ("kernels", "planes", "numba", "ml_dtypes"):
        assert f"import {module}" not in source
        assert f"from .{module}" not in source
        assert f"isa.{module}" not in source


# --- published outputs of real chips -----------------------------------------------------------------

# north-numerical-computing/MATLAB-tensor-core (BSD 2-Clause), as float32 bit patterns; not part of
# this repository.
_SAMPLES = Path(__file__).resolve().parents[3].parent / "shared" / "hw"
_ROWS = 200
_TARGETS = {
    "V100": "sm_70",
    "A100": "sm_80",
    "A2": "sm_86",
    "L40S": "sm_89",
    "Ada": "sm_89",
    "H100": "sm_90a",
    "H200": "sm_90a",
    "B200": "sm_100",
}


def _sample_sets() -> Iterator[tuple[str, str]]:
    """(file name, name of its D) of every published set."""
    for path in sorted(_SAMPLES.glob("*.npz")):
        with np.load(path) as arrays:
            yield from ((path.stem, name) for name in arrays if name.startswith("D_"))


@lru_cache
def _code_of_pattern(element: Format) -> dict[int, int]:
    """Codes of a narrow format by the float32 bit pattern of their value."""
    return {ieee_sum([decode(code, element)], F32): code for code in range(1 << element.bits)}


def _factor_codes(patterns: Any, element: Format) -> list[list[int]]:
    if element.bits == F32.bits:
        return [[int(pattern) for pattern in row] for row in patterns]
    codes = _code_of_pattern(element)
    return [[codes[pattern] for pattern in row] for row in patterns.tolist()]


def _sampled_rule(chip: str, factor: Format, result: Format) -> tuple[Rule, bool]:
    """The rule the samples were made with, and whether C was added (the wgmma runs had scale-d 0)."""
    narrow = factor.bits == 8
    wgmma = narrow and chip in ("H100", "H200") and result == F32
    operation = "m8n8k4.f16" if chip == "V100" else "f8f6f4" if narrow else factor.name
    rule = rule_for(_TARGETS[chip], operation, result.name, "wgmma" if wgmma else "mma")
    return rule, not wgmma


@pytest.mark.skipif(not _SAMPLES.is_dir(), reason="the published samples are not here")
@pytest.mark.parametrize(("stem", "name"), list(_sample_sets()))
def test_published_hardware_outputs(stem: str, name: str) -> None:
    chip, kind = stem.split("_")
    factor = FORMATS[{"fp16": "f16"}.get(kind, kind.lower())]
    result = FORMATS[{"D_fp32": "f32", "D_fp16": "f16"}[name]]
    rule, adds_c = _sampled_rule(chip, factor, result)
    instruction = form(".".join((result.name, factor.name, factor.name, result.name)))
    with np.load(_SAMPLES / f"{stem}.npz") as arrays:
        rows = slice(0, None, len(arrays["C"]) // _ROWS)
        a, b = (_factor_codes(arrays[operand][rows], factor) for operand in "AB")
        c, expected = arrays["C"][rows].tolist(), arrays[name][rows].tolist()
    for case in range(len(c)):
        c_code = ieee_sum([decode(c[case], F32)], result) if adds_c else 0
        code = dot(rule, instruction, inputs_of(instruction, a[case], b[case], c_code))
        assert f"{ieee_sum([decode(code, result)], F32):08x}" == f"{expected[case]:08x}", case
