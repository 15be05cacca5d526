"""The arithmetic a second time, in Python integers, one dot product at a time, without regard to speed.

The slow twin of kernels and encoding. It shares nothing with them but the facts in formats and architectures:
codes are decoded from their bit fields, sums are exact integers, and every result is rounded and packed in
one place. Knows formats and rules; does not know lanes, registers or metadata.

Sources: PTX ISA 9.1, sections 9.7.14.5.14 (mma), 9.7.14.3 (block scaling), 9.7.14.6 (mma.sp) and 9.7.15
(wgmma), for what PTX defines. For what it leaves open, Fasi, Higham, Mikaitis and Pranesh, "Numerical
behavior of NVIDIA tensor cores" (PeerJ CS 7:e330, 2021); Khattak and Mikaitis, "Accurate Models of NVIDIA
Tensor Cores" (arXiv 2512.07004); MMA-Sim (arXiv 2511.10909).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from itertools import product as pairs
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...isa.formats import FORMATS, Format, Specials
from ...isa.products import Operands, Product
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

F16, F32 = FORMATS["f16"], FORMATS["f32"]

# --- numbers ---------------------------------------------------------------------------------------


class Kind(IntEnum):
    """The kind of a number; of two factors the greater kind determines the product's kind."""

    FINITE = 0
    INFINITE = 1
    NAN = 2


class Number(NamedTuple):
    """``(-1)**negative * significand * 2**scale``, or an Inf (significand not 0), or a NaN.

    ``exponent`` is the exponent that tensor cores align by: the exponent field's, or the sum of the factors'
    exponents. Leading zeros of a subnormal and the carry of a product do not change it.
    """

    kind: Kind
    negative: bool
    significand: int
    scale: int
    exponent: int

    @property
    def signed(self) -> int:
        """The significand with the sign."""
        return -self.significand if self.negative else self.significand


ZERO = Number(Kind.FINITE, negative=False, significand=0, scale=0, exponent=0)

# The meaning of an exponent field of all set bits: (whether the fraction is zero, whether all its bits are
# set) -> kind.
_KINDS: dict[Specials, Callable[[bool, bool], Kind]] = {
    Specials.INFINITIES: lambda zero, full: Kind.INFINITE if zero else Kind.NAN,
    Specials.ONE_NAN: lambda zero, full: Kind.NAN if full else Kind.FINITE,
    Specials.NONE: lambda zero, full: Kind.FINITE,
}


def decode(code: int, element: Format) -> Number:
    """Return the number of a code of a floating-point or integer format.

    IEEE 754 section 3.4; PTX ISA 9.1 section 5.2.3; OCP MX 1.0. Bits beyond the format's width, and those the
    multiplier ignores (tf32), are dropped before anything else.
    """
    if not element.is_float:
        return _decode_integer(code, element)
    bits = (code & element.mask) >> element.ignored_bits
    fraction = bits % (1 << element.fraction_bits)
    field = (bits >> element.fraction_bits) % (1 << element.exponent_bits)
    normal = field > 0 or element.fraction_bits == 0  # without fractions neither zero nor subnormals
    exponent = field - element.bias if normal else element.minimum_exponent
    return Number(
        kind=_kind(field, fraction, element),
        negative=bool(code & element.sign_bit),
        significand=fraction + (int(normal) << element.fraction_bits),
        scale=exponent - element.fraction_bits,
        exponent=exponent,
    )


def _decode_integer(code: int, element: Format) -> Number:
    bits = code & element.mask
    value = bits - ((bits & element.sign_bit) << 1)
    return Number(Kind.FINITE, value < 0, abs(value), scale=0, exponent=0)


def _kind(field: int, fraction: int, element: Format) -> Kind:
    if field != (1 << element.exponent_bits) - 1:
        return Kind.FINITE
    full = (1 << element.fraction_bits) - 1
    return _KINDS[element.specials](fraction == 0, fraction == full)


def product(x: Number, y: Number) -> Number:
    """Return ``x * y``, exact and not normalised: 1.5 * 1.5 = 2.25 keeps exponent 0. Inf * 0 is NaN."""
    kind = max(x.kind, y.kind)
    significand = x.significand * y.significand
    return Number(
        kind=Kind.NAN if kind is Kind.INFINITE and significand == 0 else kind,
        negative=x.negative != y.negative,
        significand=significand,
        scale=x.scale + y.scale,
        exponent=x.exponent + y.exponent,
    )


def exact_sum(terms: Sequence[Number]) -> tuple[int, int]:
    """Return ``(total, scale)``: the finite terms add up to ``total * 2**scale``."""
    scale = min(term.scale for term in terms)
    return sum(term.signed << (term.scale - scale) for term in terms), scale


# --- rounding --------------------------------------------------------------------------------------


class Rounding(NamedTuple):
    """A way to round a magnitude (IEEE 754 section 4.3).

    ``increments(negative, odd, rest)`` is whether the kept magnitude grows by a unit. ``rest`` is the dropped
    part: 0 nothing, 1 less than half a unit, 2 half, 3 more. ``overflows(negative)`` is whether a magnitude
    that is too large becomes Inf (otherwise the largest finite number); ``zero_is_negative`` whether numbers
    that cancel leave -0.
    """

    increments: Callable[[bool, bool, int], bool]
    overflows: Callable[[bool], bool]
    zero_is_negative: bool = False


NEAREST_EVEN = Rounding(lambda negative, odd, rest: rest + odd > 2, lambda negative: True)
TOWARD_ZERO = Rounding(lambda negative, odd, rest: False, lambda negative: False)
DOWNWARD = Rounding(lambda negative, odd, rest: negative and rest > 0, lambda negative: negative, True)
UPWARD = Rounding(lambda negative, odd, rest: not negative and rest > 0, lambda negative: not negative)

# Tensor cores truncate as TOWARD_ZERO does, but a magnitude that is too large becomes Inf.
TRUNCATED = Rounding(lambda negative, odd, rest: False, lambda negative: True)

# The rounding qualifiers of f64, PTX ISA 9.1 section 9.7.14.5.14; .rn where there is none.
ROUNDINGS = {"": NEAREST_EVEN, "rn": NEAREST_EVEN, "rz": TOWARD_ZERO, "rm": DOWNWARD, "rp": UPWARD}


def pack(
    negative: bool, magnitude: int, scale: int, element: Format, precision: int, rounding: Rounding
) -> int:
    """Return the code of ``magnitude * 2**scale`` with that sign, rounded once to ``precision`` significant
    bits.

    Below the smallest normal number the unit stays that of the smallest normal number (gradual underflow). A
    carry out of the fraction runs into the exponent field, as it should. ``element`` is a format with Inf.
    """
    smallest_unit = element.minimum_exponent - (precision - 1)
    own_unit = magnitude.bit_length() + scale - precision
    unit = max(own_unit, smallest_unit) if magnitude else smallest_unit
    kept, rest = _truncate(magnitude, unit - scale)
    kept += rounding.increments(negative, kept % 2 == 1, rest)
    binades = unit - smallest_unit
    code = (binades << element.fraction_bits) + (kept << (element.fraction_bits + 1 - precision))
    if code >= element.infinity:
        code = element.infinity if rounding.overflows(negative) else element.infinity - 1
    return code | (element.sign_bit if negative else 0)


def _truncate(magnitude: int, count: int) -> tuple[int, int]:
    """Return the magnitude without its ``count`` lowest bits (or shifted up), and the
    dropped part, 0 to 3.
    """
    if count <= 0:
        return magnitude << -count, 0
    half = 1 << (count - 1)
    kept, rest = divmod(magnitude, 2 * half)
    return kept, 2 * (rest >= half) + (rest % half > 0)


def special_code(terms: Sequence[Number], element: Format) -> int | None:
    """Return the code of a sum with Inf or NaN among its terms; None where all are finite.

    NaN, and Inf of both signs, give the canonical NaN: signs and payloads are lost.
    """
    infinities = {term.negative for term in terms if term.kind is Kind.INFINITE}
    if len(infinities) == 2 or any(term.kind is Kind.NAN for term in terms):
        return element.canonical_nan
    if not infinities:
        return None
    return element.infinity | (element.sign_bit if infinities.pop() else 0)


# --- IEEE 754 arithmetic ---------------------------------------------------------------------------


def ieee_sum(terms: Sequence[Number], element: Format, rounding: Rounding = NEAREST_EVEN) -> int:
    """Return the code of the sum, rounded once: of a conversion (one term), an addition, an fma (a product
    and an addend).

    IEEE 754 sections 5.4.1 and 6.3; NaN results are canonical.
    """
    special = special_code(terms, element)
    if special is not None:
        return special
    total, scale = exact_sum(terms)
    negative = total < 0 if total else _zero_is_negative(terms, rounding)
    return pack(negative, abs(total), scale, element, element.fraction_bits + 1, rounding)


def _zero_is_negative(terms: Sequence[Number], rounding: Rounding) -> bool:
    signs = {term.negative for term in terms}
    return signs.pop() if len(signs) == 1 else rounding.zero_is_negative


def ieee(element: Format, *terms: Number) -> Number:
    """Return the sum of the terms rounded to nearest in a format."""
    return decode(ieee_sum(terms, element), element)


# --- tensor-core sums ------------------------------------------------------------------------------


class Step(NamedTuple):
    """A fused sum: its terms, their alignment, and the resulting code.

    ``kept[i]`` is ``terms[i]`` after alignment, in units of ``2**unit``; it means nothing where a term is Inf
    or NaN. The accumulator is the last term.
    """

    terms: tuple[Number, ...]
    exponent: int
    unit: int
    kept: tuple[int, ...]
    code: int


def fuse(terms: Sequence[Number], exponents: Sequence[int], rule: FusedSum | ScaledGroups) -> Step:
    """Return the truncated fused sum: align to the largest exponent, truncate each term, add exactly, round
    once.

    ``exponents`` are those that take part in the maximum. Khattak and Mikaitis; MMA-Sim's T-FDPA, and for
    scaled groups its GST-FDPA.
    """
    exponent = max([rule.exponent_floor, *exponents])
    unit = exponent - rule.fraction_bits
    kept = tuple(_align(term, unit) for term in terms)
    special = special_code(terms, FORMATS[rule.output.format])
    code = _round(sum(kept), unit, rule.output) if special is None else special
    return Step(tuple(terms), exponent, unit, kept, code)


def _align(term: Number, unit: int) -> int:
    """Return the term in units of ``2**unit``, its magnitude truncated toward zero."""
    magnitude, _ = _truncate(term.significand, unit - term.scale)
    return -magnitude if term.negative else magnitude


def _round(total: int, unit: int, output: Output) -> int:
    """Return the code of ``total * 2**unit``. Zero is +0, also where a negative result rounds to it."""
    element = FORMATS[output.format]
    rounding = NEAREST_EVEN if output.nearest else TRUNCATED
    code = pack(total < 0, abs(total), unit, element, output.precision, rounding)
    return 0 if code == element.sign_bit else code


def fused_chain(rule: FusedSum, products: Sequence[Number], accumulator: Number) -> list[Step]:
    """Return the steps of a sum: ``rule.length`` products each, every step's result accumulating the next.

    A product or accumulator that is zero takes no part in the alignment.
    """
    steps: list[Step] = []
    for start in range(0, len(products), rule.length):
        terms = [*products[start : start + rule.length], accumulator]
        exponents = [term.exponent for term in terms if term.significand]
        steps.append(fuse(terms, exponents, rule))
        accumulator = decode(steps[-1].code, FORMATS[rule.output.format])
    return steps


# --- the rules: an element of D --------------------------------------------------------------------


class Dot(NamedTuple):
    """The factors of an element of D in stored order, C's element, each product's scale.

    ``scales`` holds scale_a * scale_b of each product; it is empty without block scaling.
    """

    a: Sequence[Number]
    b: Sequence[Number]
    c: Number
    scales: Sequence[Number] = ()

    @property
    def products(self) -> list[Number]:
        """``a * b`` in stored order, not scaled."""
        return [product(x, y) for x, y in zip(self.a, self.b, strict=True)]


def _fused_sum(rule: FusedSum, form: Product, inputs: Dot) -> int:
    """Sum f16, bf16, tf32 and fp8 to fp4; block scales add to the exponents (9.7.14.3, .kind::mxf8f6f4)."""
    products = inputs.products
    if inputs.scales:
        products = [product(x, scale) for x, scale in zip(products, inputs.scales, strict=True)]
    return fused_chain(rule, products, inputs.c)[-1].code


def _emulated_f8(rule: EmulatedF8, form: Product, inputs: Dot) -> int:
    """Sum fp8 as ptxas writes it for f16 units: the operands become f16, C is added last.

    An e4m3 subnormal is a normal number of f16, so that f16's exponent aligns it.
    """
    as_f16 = Dot([ieee(F16, x) for x in inputs.a], [ieee(F16, x) for x in inputs.b], inputs.c)
    products = as_f16.products
    partial = ZERO
    for halves in ((0, 1), (2, 3)):  # the two bytes of a register that each step unpacks
        chosen = [term for position, term in enumerate(products) if position % 4 in halves]
        partial = decode(fused_chain(rule.step, chosen, partial)[-1].code, form.d)
    return ieee_sum([inputs.c, partial], form.d)


def _scaled_groups(rule: ScaledGroups, form: Product, inputs: Dot) -> int:
    """Sum with 4-bit block scaling (9.7.14.3, .kind::mxf4 and mxf4nvf4): exact groups, aligned by their
    scales.

    Only the scales' exponent counts in the alignment; it does so even if the group's products cancel.
    """
    products = inputs.products
    terms, exponents = [], [inputs.c.exponent] if inputs.c.significand else []
    for start in range(0, len(products), rule.group):
        members, scale = products[start : start + rule.group], inputs.scales[start]
        total, unit = exact_sum(members)
        group = Number(Kind.FINITE, total < 0, abs(total), unit, exponent=0)
        terms.append(product(group, scale))
        if scale.significand and any(member.significand for member in members):
            exponents.append(scale.exponent)
    return fuse([*terms, inputs.c], exponents, rule).code


def quads_step(rule: ScaledQuads, inputs: Dot) -> Step:
    """Return the sum of nvfp4 as a public model of B200 has it: see ScaledQuads. C is the last term.

    Where a term is Inf or NaN, or all are zero, the terms are the products one by one.
    """
    scaled = [product(term, scale) for term, scale in zip(inputs.products, inputs.scales, strict=True)]
    special = special_code([*scaled, inputs.c], FORMATS[rule.output.format])
    tops = [term.exponent for term in scaled if term.significand]
    pairs = [s.exponent for term, s in zip(scaled, inputs.scales, strict=True) if term.significand]
    of_c = [inputs.c.exponent] if inputs.c.significand else []
    if special is not None or not (tops or of_c):
        code = 0 if special is None else special
        return Step((*scaled, inputs.c), 0, 0, (0,) * (len(scaled) + 1), code)
    outranked = bool(of_c) and of_c[0] >= max(tops, default=of_c[0])
    unit = max(tops + of_c) - rule.product_bits
    unit = of_c[0] - rule.fraction_bits if outranked else max(unit, max(pairs) - rule.fraction_bits)
    count = rule.outranked if outranked else rule.group
    sums = [exact_sum(scaled[start : start + count]) for start in range(0, len(scaled), count)]
    terms = [Number(Kind.FINITE, value < 0, abs(value), scale, exponent=0) for value, scale in sums]
    kept = tuple(_align(term, unit) for term in (*terms, inputs.c))
    return Step(
        (*terms, inputs.c), unit + rule.fraction_bits, unit, kept, _round(sum(kept), unit, rule.output)
    )


def _scaled_quads(rule: ScaledQuads, form: Product, inputs: Dot) -> int:
    """Sum nvfp4 by groups of 4 (9.7.14.3)."""
    return quads_step(rule, inputs).code


def _fused_multiply_add(rule: FusedMultiplyAdd, form: Product, inputs: Dot) -> int:
    """Sum f64 (9.7.14.5.14): IEEE fused multiply-adds over ascending k, starting from C."""
    d = inputs.c
    for term in inputs.products:
        d = decode(ieee_sum([term, d], form.d, ROUNDINGS[form.rounding]), form.d)
    return ieee_sum([d], form.d)


def _software_quad(rule: SoftwareQuad, form: Product, inputs: Dot) -> int:
    """Sum m8n8k4 f16 without tensor cores: FFMA, FMUL and FADD in f32, as ptxas writes them."""
    p0, p1, p2, p3 = inputs.products
    if form.d == F32:
        chain = ieee(F32, p3, ieee(F32, p2, ieee(F32, p1, ieee(F32, p0, ZERO))))
        return ieee_sum([inputs.c, chain], F32)
    upper = ieee(F32, inputs.c, ieee(F32, p3, ieee(F32, p2)))
    lower = ieee(F32, p1, ieee(F32, p0))
    return ieee_sum([ieee(F32, upper, lower)], form.d)


def _integer_sum(rule: IntegerSum, form: Product, inputs: Dot) -> int:
    """Sum integers exactly (9.7.14.5.14); .satfinite clamps once at the end, otherwise the result wraps."""
    total = inputs.c.signed + sum(term.signed for term in inputs.products)
    if form.satfinite:
        total = max(-form.d.sign_bit, min(total, form.d.sign_bit - 1))
    return total & form.d.mask


_BIT_OPERATIONS: dict[str, Callable[[int, int], int]] = {"and": int.__and__, "xor": int.__xor__}


def _bit_count(rule: BitCount, form: Product, inputs: Dot) -> int:
    """Sum b1 (9.7.14.5.14, .and.popc and .xor.popc): C plus the number of set bits."""
    combine = _BIT_OPERATIONS[form.bit_operation]
    ones = sum(combine(x.significand, y.significand) for x, y in zip(inputs.a, inputs.b, strict=True))
    return (inputs.c.signed + ones) & form.d.mask


RULES: dict[type[Rule], Callable[[Any, Product, Dot], int]] = {
    FusedSum: _fused_sum,
    EmulatedF8: _emulated_f8,
    ScaledGroups: _scaled_groups,
    ScaledQuads: _scaled_quads,
    FusedMultiplyAdd: _fused_multiply_add,
    SoftwareQuad: _software_quad,
    IntegerSum: _integer_sum,
    BitCount: _bit_count,
}


def dot(rule: Rule, form: Product, inputs: Dot) -> int:
    """Return the code of an element of D."""
    return RULES[type(rule)](rule, form, inputs)


def inputs_of(
    form: Product,
    a: Sequence[int],
    b: Sequence[int],
    c: int,
    scales: Sequence[tuple[int, int]] = (),
) -> Dot:
    """Return the dot of codes: factors in stored order and, with block scaling, each product's two scales."""
    return Dot(
        a=[decode(code, form.a) for code in a],
        b=[decode(code, form.b) for code in b],
        c=decode(c, form.c),
        scales=[product(*(decode(code, _scale(form)) for code in both)) for both in scales],
    )


# --- matrices --------------------------------------------------------------------------------------


def compute(operands: Operands, rule: Rule) -> npt.NDArray[Any]:
    """Return codes of D, ``(batch, m, n)`` in the code dtype of D's format."""
    form = operands.product
    codes = [
        dot(rule, form, inputs) for matrix in range(len(operands.c)) for inputs in _elements(operands, matrix)
    ]
    return np.array(codes, form.d.code_dtype).reshape(operands.c.shape)


def _elements(operands: Operands, matrix: int) -> Iterator[Dot]:
    """Yield the dots of every element of D of a matrix of the batch, row by row."""
    form = operands.product
    a = _numbers(operands.a[matrix], form.a)
    b = _numbers(operands.b[matrix].T, form.b)
    c = _numbers(operands.c[matrix], form.c)
    scales = _scales(operands, matrix)
    for row, column in pairs(range(len(c)), range(len(b))):
        stored = _stored_columns(operands, matrix, row)
        yield Dot(
            a=a[row],
            b=[b[column][k] for k in stored],
            c=c[row][column],
            scales=[scales(row, column, k) for k in stored] if scales else (),
        )


def _stored_columns(operands: Operands, matrix: int, row: int) -> Sequence[int]:
    """Return the logical column of each stored element of a row of A."""
    if operands.columns is None:
        return range(operands.a.shape[2])
    return [int(column) for column in operands.columns[matrix, row]]


def _scales(operands: Operands, matrix: int) -> Callable[[int, int, int], Number] | None:
    """Return (row, column, k) -> the scale of that product: both scales of the chunk that holds logical k."""
    if operands.scale_a is None or operands.scale_b is None:
        return None
    form = operands.product
    width = form.shape.k // form.scale_chunks
    scale_a = _numbers(operands.scale_a[matrix], _scale(form))
    scale_b = _numbers(operands.scale_b[matrix].T, _scale(form))
    return lambda row, column, k: product(scale_a[row][k // width], scale_b[column][k // width])


def _scale(form: Product) -> Format:
    if form.scale is None:
        raise AssertionError(f"{form} has no block scales")
    return form.scale


def _numbers(codes: npt.NDArray[Any], element: Format) -> list[list[Number]]:
    return [[decode(code, element) for code in row] for row in codes.tolist()]
