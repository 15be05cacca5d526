"""The program of each rule: one template for each way in which chips sum.

The parameters are those of isa/rules.py. PTX ISA 9.1, sections 9.7.14.3, 9.7.14.5.14 and 9.7.15, for what PTX
defines; the sources of the rest stand in isa/architectures.py, with the evidence of each rule. The reference
(arithmetic/reference.py) is the same a second time, by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from ...isa.products import Product
from ...isa.rules import (
    BitCount,
    EmulatedF8,
    FusedMultiplyAdd,
    FusedSum,
    IntegerSum,
    Output,
    Rule,
    ScaledGroups,
    ScaledQuads,
    SoftwareQuad,
)
from .rule_operations import Builder, Program

LOWEST = -4096  # below every exponent


class Factors(NamedTuple):
    """Names of the numbers of A, B and C, and of each product's scale, "" without block scaling."""

    a: str
    b: str
    c: str
    scale: str


@cache
def program_of(rule: Rule, form: Product) -> Program:
    """Return the program of a dot product of a form: codes in stored order, a scale for each product."""
    make, k = Builder(), form.stored_k
    a, b = make.read("a", form.a.name, k, "A"), make.read("b", form.b.name, k, "B")
    c, scale = make.read("c", form.c.name, 1, "C"), ""
    if form.scale is not None:
        sides = [make.read(f"scale_{side}", form.scale.name, k, f"S{side.upper()}") for side in "ab"]
        scale = make.add("mul", *sides, result="S")
    TEMPLATES[type(rule)](make, rule, form, Factors(a, b, c, scale))
    return make.program()


def _aligned(make: Builder, terms: str, number: int, fraction_bits: int, output: Output, floor: int) -> str:
    """Align to the largest exponent, truncate, add, round."""
    top = make.add("top", terms, terms, given=(floor,), result=f"top{number}")
    unit = make.add("add", top, given=(-fraction_bits,), result=f"unit{number}")
    kept = make.add("cut", terms, unit, given=("zero",), result=f"kept{number}")
    total = make.add("total", kept, result=f"total{number}")
    return make.add("round", total, unit, terms, given=(output,), result=f"d{number}")


def _chain(
    make: Builder, products: str, count: int, c: str, rule: FusedSum, first: int = 0
) -> tuple[str, int]:
    """Sum in steps of ``rule.length`` products; return the last result, and the number of the next step."""
    number = first
    for start in range(0, count, rule.length):
        members = products
        if count > rule.length:
            places = tuple(range(start, min(start + rule.length, count)))
            members = make.add("take", products, given=(places,), result=f"products{number}")
        terms = make.add("join", members, c, result=f"terms{number}")
        code = _aligned(make, terms, number, rule.fraction_bits, rule.output, rule.exponent_floor)
        c = make.add("read", code, given=(rule.output.format,), result=f"sum{number}")
        number += 1
    return c, number


def _fused_sum(make: Builder, rule: FusedSum, form: Product, of: Factors) -> None:
    products = make.add("mul", of.a, of.b, result="P")
    if of.scale:
        products = make.add("mul", products, of.scale, result="PS")
    _chain(make, products, form.stored_k, of.c, rule)


def _emulated_f8(make: Builder, rule: EmulatedF8, form: Product, of: Factors) -> None:
    a, b = (make.add("convert", each, given=("f16",), result=f"{each}16") for each in (of.a, of.b))
    products, partial, number = make.add("mul", a, b, result="P"), make.add("zero", result="zero"), 0
    for halves in ((0, 1), (2, 3)):  # the bytes of a register that each step unpacks
        places = tuple(k for k in range(form.stored_k) if k % 4 in halves)
        half = make.add("take", products, given=(places,), result=f"half{halves[0] // 2}")
        partial, number = _chain(make, half, len(places), partial, rule.step, number)
    make.add("ieee", make.add("join", of.c, partial), given=(form.d.name, "rn"), result=f"d{number}")


def _scaled_groups(make: Builder, rule: ScaledGroups, form: Product, of: Factors) -> None:
    sums = make.add("sum", make.add("mul", of.a, of.b, result="P"), given=(rule.group,), result="G")
    firsts = tuple(range(0, form.stored_k, rule.group))
    groups = make.add("mul", sums, make.add("take", of.scale, given=(firsts,), result="scales"), result="GS")
    terms = make.add("join", groups, of.c, result="terms0")
    _aligned(make, terms, 0, rule.fraction_bits, rule.output, rule.exponent_floor)


def _scaled_quads(make: Builder, rule: ScaledQuads, form: Product, of: Factors) -> None:
    products = make.add("mul", make.add("mul", of.a, of.b, result="P"), of.scale, result="PS")
    few = make.add("sum", products, given=(rule.group,), result="few")
    many = make.add("sum", products, given=(rule.outranked,), result="many")
    top = make.add("top", products, products, given=(LOWEST,), result="top_products")
    top_c = make.add("top", of.c, of.c, given=(LOWEST,), result="top_c")
    top_scale = make.add("top", of.scale, products, given=(LOWEST,), result="top_scales")
    outranked = make.add("ge", top_c, top, result="outranked")
    below_c = make.add("add", top_c, given=(-rule.fraction_bits,))
    below = make.add("add", make.add("max", top, top_c), given=(-rule.product_bits,))
    below_scale = make.add("add", top_scale, given=(-rule.fraction_bits,))
    unit = make.add("pick", outranked, below_c, make.add("max", below, below_scale), result="unit0")
    totals = list[str]()
    for name, each in (("kept_many", many), ("kept_few", few)):
        kept = make.add("cut", make.add("join", each, of.c), unit, given=("zero",), result=name)
        totals.append(make.add("total", kept))
    total = make.add("pick", outranked, *totals, result="total0")
    make.add("round", total, unit, make.add("join", products, of.c), given=(rule.output,), result="d0")


def _fused_multiply_add(make: Builder, rule: FusedMultiplyAdd, form: Product, of: Factors) -> None:
    products, d = make.add("mul", of.a, of.b, result="P"), of.c
    for k in range(form.stored_k):
        terms = make.add("join", make.add("take", products, given=((k,),)), d, result=f"terms{k}")
        code = make.add("ieee", terms, given=(form.d.name, form.rounding or "rn"), result=f"d{k}")
        d = make.add("read", code, given=(form.d.name,), result=f"sum{k}")


class _Quad:
    """The f32 operations of m8n8k4 without tensor cores, each rounded to nearest even."""

    def __init__(self, make: Builder, of: Factors) -> None:
        self.make, self._count = make, 0
        self._products = make.add("mul", of.a, of.b, result="P")

    def product(self, k: int) -> str:
        """Return a product, exact."""
        return self.make.add("take", self._products, given=((k,),))

    def rounded(self, *terms: str, element: str = "f32") -> str:
        """Return the sum of terms as a number of a format."""
        joined = self.make.add("join", *terms) if len(terms) > 1 else terms[0]
        code = self.make.add("ieee", joined, given=(element, "rn"), result=f"d{self._count}")
        self._count += 1
        return self.make.add("read", code, given=(element,))


def _software_quad(make: Builder, rule: SoftwareQuad, form: Product, of: Factors) -> None:
    quad = _Quad(make, of)
    if form.d.name == "f32":
        chain = make.add("zero", result="zero")
        for k in range(4):
            chain = quad.rounded(quad.product(k), chain)
        quad.rounded(of.c, chain)
        return
    upper = quad.rounded(of.c, quad.rounded(quad.product(3), quad.rounded(quad.product(2))))
    lower = quad.rounded(quad.product(1), quad.rounded(quad.product(0)))
    quad.rounded(quad.rounded(upper, lower), element=form.d.name)


def _exact(make: Builder, products: str, form: Product, of: Factors) -> None:
    """Add integers, and wrap or clamp once."""
    terms = make.add("join", products, of.c, result="terms0")
    unit = make.add("int", given=(0,), result="unit0")
    kept = make.add("cut", terms, unit, given=("zero",), result="kept0")
    total = make.add("total", kept, result="total0")
    make.add("wrap", total, given=(form.d.bits, form.satfinite), result="d0")


def _integer_sum(make: Builder, rule: IntegerSum, form: Product, of: Factors) -> None:
    _exact(make, make.add("mul", of.a, of.b, result="P"), form, of)


def _bit_count(make: Builder, rule: BitCount, form: Product, of: Factors) -> None:
    _exact(make, make.add("bits", of.a, of.b, given=(form.bit_operation,), result="P"), form, of)


TEMPLATES: dict[type[Rule], Callable[[Builder, Any, Product, Factors], None]] = {
    FusedSum: _fused_sum,
    EmulatedF8: _emulated_f8,
    ScaledGroups: _scaled_groups,
    ScaledQuads: _scaled_quads,
    FusedMultiplyAdd: _fused_multiply_add,
    SoftwareQuad: _software_quad,
    IntegerSum: _integer_sum,
    BitCount: _bit_count,
}
