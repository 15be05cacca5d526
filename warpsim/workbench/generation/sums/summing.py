"""The arithmetic of whole tiles, step by step, with all that coverage asks about.

``summed`` computes every output of a batch of operands by its rule and keeps each step: terms, alignment,
what was cut off, rounding. A ``Change`` alters one thing, to see whether D differs.
Knows the rules of architectures; does not know lanes, bins, or what a generator had in mind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ....base.errors import present
from ....isa.formats import FORMATS, Format
from ....isa.products import Operands
from ....isa.rules import (
    BitCount,
    EmulatedF8,
    FusedMultiplyAdd,
    FusedSum,
    IntegerSum,
    Rule,
    ScaledGroups,
    ScaledQuads,
    SoftwareQuad,
)
from .exact_numbers import (
    FINITE,
    INFINITE,
    NOT_A_NUMBER,
    Array,
    Numbers,
    Rounded,
    beside,
    bit_length,
    cut,
    decode,
    joined,
    product,
    rounded,
    special_of,
    with_specials,
)
from .factors import Factors, as_stored, factors_of
from .terms import Terms, beside_terms, numbers_of, results, terms_of, times

F16, F32 = FORMATS["f16"], FORMATS["f32"]
_MODES = {"": "rn", "rn": "rn", "rz": "rz", "rm": "rm", "rp": "rp"}


@dataclass(frozen=True, kw_only=True)
class Change:
    """One thing done otherwise. The default is the rule as it stands.

    ``cut`` is what alignment does to a term: "zero" truncates its magnitude, "down" its value, "nearest"
    rounds it, and "after" keeps everything until the sum is rounded.
    """

    cut: str = "zero"
    normalise: bool = False  # align products by their leading bit
    carries_align: bool = False  # so are products of 2 and more alone
    other_subnormals: bool = False  # normalise subnormal factors; leave fp8 as it is where it becomes f16
    c_aligns: bool = True  # C takes part in the largest exponent
    spared: int | None = None  # the place of a term of which alignment leaves a bit more
    units_vanish: bool = False  # sums of one unit are zero
    zeros_align: str = ""  # so do terms that are zero: "all", "-products" (where -0), "C", or "-C" (where -0)
    raises_c: bool = False  # the largest subnormal C is the smallest normal number
    flush_inputs: bool = False
    flush_results: bool = False
    reverse: bool = False  # the steps in reversed order
    round_products: bool = False  # before they are added (where each step is a fused multiply-add)

    @property
    def rereads(self) -> bool:
        """Whether it takes the factors, and not their products alone."""
        return self.flush_inputs or self.other_subnormals


AS_IT_IS = Change()


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of every output; arrays ``(tiles, m, n)``, with an axis of terms more where it says so.

    The accumulator is the last of the ``terms``: Terms of aligned sums, otherwise Numbers. ``counted`` are
    those that take part in the largest exponent; ``aligned`` has the terms in units of ``2**unit``, ``kept``
    what alignment leaves of them.
    """

    kind: str  # "fused", "ieee", "integer"
    terms: Any
    code: Array
    special: Array | None = None
    counted: Array | None = None  # (..., terms)
    exponent: Array | None = None
    aligned: Array | None = None  # (..., terms)
    kept: Array | None = None  # (..., terms)
    total: Array | None = None
    unit: Array | None = None
    rounded: Rounded | None = None

    @cached_property
    def lost(self) -> Array:
        """``(..., terms)``: the parts of a unit that alignment cut off; zero where Inf or NaN decides."""
        finite = present(self.special, "special") == FINITE
        with np.errstate(invalid="ignore"):
            rest = np.abs(present(self.aligned, "aligned") - present(self.kept, "kept"))
        return np.fmax(rest, 0.0) * finite[..., None]  # as np.where, which is slow across this layout


@dataclass(frozen=True, kw_only=True)
class Sums:
    """The steps of a batch, and the result codes ``(tiles, m, n)``."""

    steps: tuple[Step, ...]
    code: Array


def summed(operands: Operands, rule: Rule, change: Change = AS_IT_IS) -> Sums:
    """Return every step of every output of a batch of operands."""
    return sums_of(factors_of(operands, rule), rule, change)


def sums_of(factors: Factors, rule: Rule, change: Change = AS_IT_IS) -> Sums:
    """Return every step of outputs whose factors are known."""
    steps = RULES[type(rule)](factors, rule, change)
    return Sums(steps=tuple(steps), code=steps[-1].code.astype(factors.product.d.code_dtype))


def _products(factors: Factors, change: Change, *, converted: bool = False) -> Any:
    """Return the products, with factors read as a change says; ``converted``: factors came from fp8."""
    if not change.rereads:
        return factors.products
    form, (a, b) = factors.product, (factors.a, factors.b)
    if change.flush_inputs:
        a, b = a.flushed(form.a), b.flushed(form.b)
    if change.other_subnormals and converted:
        a, b = as_stored(a, form.a), as_stored(b, form.b)
    elif change.other_subnormals:
        a, b = a.lifted(_LOWEST), b.lifted(_LOWEST)
    return times(a, b) if isinstance(a, Terms) else product(a, b)


def _accumulator(factors: Factors, change: Change) -> Any:
    if change.raises_c:
        return factors.c.raised(factors.product.c)
    return factors.c.flushed(factors.product.c) if change.flush_inputs else factors.c


# --- aligned sums ----------------------------------------------------------------------------------

_LOWEST = np.int16(-(1 << 12))  # an exponent below all others
_LARGEST = (1 << 63) - (1 << 10)  # of sums; only a term that the alignment ignores comes as far
_CUTS: dict[str, Callable[[Array], Array]] = {
    "zero": np.trunc,
    "after": np.trunc,
    "down": np.floor,
    "nearest": np.rint,
}


_ALL_BITS = 38  # fraction bits that stand for infinitely many: sums stay below 2**53


def _fused(terms: Terms, counted: Array, rule: Any, change: Change) -> Step:
    """Return terms aligned to the largest counted exponent, cut, added exactly and rounded once."""
    exponent = ((terms.exponent - _LOWEST) * counted).max(-1).astype(np.int64) + _LOWEST
    exponent = np.maximum(exponent, rule.exponent_floor)
    unit = exponent - (_ALL_BITS if change.cut == "after" else rule.fraction_bits)
    aligned = terms.value * np.ldexp(1.0, -unit.astype(np.int32))[..., None]
    kept = _CUTS[change.cut](aligned)
    if change.spared is not None:
        kept, unit = kept * 2, unit - 1
        kept[..., change.spared] = np.trunc(aligned[..., change.spared] * 2)
    with np.errstate(invalid="ignore"):
        total = kept.sum(-1)
    special, negative = _special_of(total)
    total = np.where(special == FINITE, np.clip(total, -_LARGEST, _LARGEST), 0).astype(np.int64)
    if change.units_vanish:
        total = np.where(np.abs(total) == 1, 0, total)
    done = _rounded(total, unit, rule)
    code = np.where(done.vanished | (total == 0), 0, done.code)
    if change.flush_results:
        code = np.where(done.subnormal, 0, code)
    return Step(
        kind="fused",
        terms=terms,
        code=with_specials(code.astype(np.uint64), special, negative, FORMATS[rule.output.format]),
        special=special,
        counted=counted,
        exponent=exponent,
        aligned=aligned,
        kept=kept,
        total=total,
        unit=unit,
        rounded=done,
    )


def _special_of(total: Array) -> tuple[Array, Array]:
    """Return FINITE, INFINITE or NOT_A_NUMBER of sums, and whether they are negative."""
    infinite, nan = np.isinf(total), np.isnan(total)
    return np.where(nan, NOT_A_NUMBER, np.where(infinite, INFINITE, FINITE)), total < 0


def _rounded(total: Array, unit: Array, rule: Any) -> Rounded:
    mode = "rn" if rule.output.nearest else "cut"
    return rounded(total, unit, FORMATS[rule.output.format], rule.output.precision, mode)


_ZEROS: dict[str, Callable[[Terms], Array]] = {  # the zeros that count in the alignment
    "": lambda terms: np.bool_(False),
    "all": lambda terms: ~terms.nonzero,
    "-products": lambda terms: ~_ZEROS["C"](terms) & ~terms.nonzero & terms.negative,
    "C": lambda terms: ~terms.nonzero & (np.arange(terms.value.shape[-1]) == terms.value.shape[-1] - 1),
    "-C": lambda terms: _ZEROS["C"](terms) & terms.negative,
}


def _counted_terms(terms: Terms, counted: Array, change: Change) -> Array:
    """Return which terms take part in the largest exponent, where these do by the rule."""
    if change.zeros_align:
        counted = counted | _ZEROS[change.zeros_align](terms)
    if not change.c_aligns:
        counted[..., -1] = False
    return counted


def _chain(rule: FusedSum, products: Terms, accumulator: Terms, change: Change) -> list[Step]:
    """Return ``rule.length`` products a step, every step's result accumulating the next."""
    result = FORMATS[rule.output.format]
    starts = list(range(0, products.value.shape[-1], rule.length))
    if change.normalise:
        products = products.lifted(_LOWEST)
    if change.carries_align:
        products = products.lifted(products.exponent)
    steps: list[Step] = []
    for start in reversed(starts) if change.reverse else starts:
        if steps:
            accumulator = results(steps[-1].code, result)
            if change.flush_inputs:
                accumulator = accumulator.flushed(result)
        terms = beside_terms(products[..., start : start + rule.length], accumulator)
        steps.append(_fused(terms, _counted_terms(terms, terms.nonzero, change), rule, change))
    return steps


def _fused_sum(factors: Factors, rule: FusedSum, change: Change) -> list[Step]:
    products = _products(factors, change)
    if factors.scales is not None:
        products = times(products, factors.scales)
    return _chain(rule, products, _accumulator(factors, change), change)


def _emulated_f8(factors: Factors, rule: EmulatedF8, change: Change) -> list[Step]:
    products = _products(factors, change, converted=True)
    stored, result = products.value.shape[-1], factors.product.d
    c = numbers_of(_accumulator(factors, change))
    partial = decode(np.zeros(factors.c.value.shape, np.uint32), result)
    halves = [np.flatnonzero(np.arange(stored) % 4 // 2 == half) for half in (0, 1)]
    steps: list[Step] = []
    for chosen in reversed(halves) if change.reverse else halves:
        steps += _chain(rule.step, products[..., chosen], terms_of(partial), change)
        partial = decode(steps[-1].code, result)
    return [*steps, _ieee(joined([partial, c]), result, "rn", change)]


def _scaled_groups(factors: Factors, rule: ScaledGroups, change: Change) -> list[Step]:
    products, scales = _products(factors, change), present(factors.scales, "scales")
    values, exponents, counted = [], [], []
    for start in range(0, products.value.shape[-1], rule.group):
        members, scale = products[..., start : start + rule.group], scales[..., start]
        total = members.value.sum(-1)
        total = np.where((~members.nonzero & members.negative).all(-1), -0.0, total)
        values.append(total * scale.value)
        exponents.append(scale.exponent)  # the sum is aligned by the scales' exponent
        counted.append(scale.nonzero & members.nonzero.any(-1))
    groups = Terms(value=np.stack(values, -1), exponent=np.stack(exponents, -1))
    if change.normalise:
        groups = groups.lifted(_LOWEST)
    c = _accumulator(factors, change)
    terms = beside_terms(groups, c)
    taking = np.concatenate([np.stack(counted, -1), c.nonzero[..., None]], axis=-1)
    return [_fused(terms, _counted_terms(terms, taking, change), rule, change)]


def _scaled_quads(factors: Factors, rule: ScaledQuads, change: Change) -> list[Step]:
    """Return one step: which products are summed before they are cut depends on the exponent of C."""
    products, scales = terms_of(_products(factors, change)), present(factors.scales, "scales")
    value, c = products.value * scales.value, terms_of(_accumulator(factors, change))
    live, lowest = value != 0, int(_LOWEST)
    exponent = products.exponent + scales.exponent
    pair = np.where(live, scales.exponent, lowest).max(-1).astype(np.int64)
    top = np.where(live, exponent, lowest).max(-1).astype(np.int64)
    of_c = np.where(c.nonzero, c.exponent, lowest).astype(np.int64)
    outranked = c.nonzero & (of_c >= top)
    inside = np.maximum(np.maximum(top, of_c) - rule.product_bits, pair - rule.fraction_bits)
    unit = np.where(outranked, of_c - rule.fraction_bits, inside)
    unit = np.where(live.any(-1) | c.nonzero, unit, 0)  # zeros alone have no exponent to be aligned by
    scale = np.ldexp(1.0, -unit.astype(np.int32))
    cut = _CUTS[change.cut]

    def kept(count: int) -> Array:
        sums = value.reshape(*value.shape[:-1], -1, count).sum(-1)
        return cut(sums * scale[..., None]).sum(-1)

    with np.errstate(invalid="ignore"):
        total = np.where(outranked, kept(rule.outranked), kept(rule.group)) + cut(c.value * scale)
    special, negative = _special_of(total)
    total = np.where(special == FINITE, total, 0).astype(np.int64)
    done = _rounded(total, unit, rule)
    code = np.where(done.vanished | (total == 0), 0, done.code).astype(np.uint64)
    return [
        Step(
            kind="ieee",
            terms=numbers_of(beside_terms(Terms(value=value, exponent=exponent), c)),
            code=with_specials(code, special, negative, FORMATS[rule.output.format]),
            special=special,
            total=total,
            unit=unit,
            rounded=done,
        )
    ]


# --- IEEE operations -------------------------------------------------------------------------------


def _ieee(terms: Numbers, element: Format, mode: str, change: Change) -> Step:
    """Return the exact sum of the terms, rounded once as IEEE 754 has it."""
    total, unit = _exact_sum(terms) if terms.significand.dtype == object else _sticky_sum(terms)
    done = rounded(total, unit, element, element.fraction_bits + 1, mode)
    code = done.code.astype(np.uint64)
    zero = (total == 0).astype(np.bool_)
    both = terms.negative.all(-1) | (terms.negative.any(-1) & (mode == "rm"))
    code = np.where(zero, np.where(both, np.uint64(element.sign_bit), np.uint64(0)), code)
    if change.flush_results:
        code = np.where(done.subnormal, np.uint64(0), code)
    special, negative = special_of(terms)
    return Step(
        kind="ieee",
        terms=terms,
        code=with_specials(code, special, negative, element),
        special=special,
        total=total,
        unit=unit,
        rounded=done,
    )


def _exact_sum(terms: Numbers) -> tuple[Array, Array]:
    """Return ``(total, unit)`` in Python's integers, of any width."""
    lowest = np.where(terms.nonzero, terms.scale, 1 << 20).min(-1)
    lift = np.where(terms.nonzero, terms.scale - lowest[..., None], 0)
    return (terms.significand << lift).sum(-1), np.where(terms.nonzero.any(-1), lowest, 0)


_ROOM = 59  # bits below the leading one of the largest term: two or three more terms fit beside it


def _sticky_sum(terms: Numbers) -> tuple[Array, Array]:
    """Return ``(total, unit)`` of terms below 50 bits: what lies ``_ROOM`` bits below the largest is a last
    bit that is set, so far below the last place of f32 that rounding takes it for what it stands for."""
    lead = np.where(terms.nonzero, terms.scale + bit_length(np.abs(terms.significand)), -(1 << 20)).max(-1)
    unit = np.where(terms.nonzero.any(-1), lead - _ROOM, 0)
    kept, rest, _ = cut(np.abs(terms.significand), unit[..., None] - terms.scale)
    kept = kept | (rest > 0)
    return np.where(terms.significand < 0, -kept, kept).sum(-1), unit


def _multiply_add(factors: Factors, rule: FusedMultiplyAdd, change: Change) -> list[Step]:
    element = factors.product.d
    mode = _MODES[factors.product.rounding]
    products = _products(factors, change)
    d = _accumulator(factors, change)
    order = list(range(products.significand.shape[-1]))
    steps: list[Step] = []
    for k in reversed(order) if change.reverse else order:
        term = products[..., k]
        if change.round_products:
            term = decode(_ieee(joined([term]), element, mode, change).code, element).exact()
        steps.append(_ieee(joined([term, d.exact()]), element, mode, change))
        d = decode(steps[-1].code, element)
    return steps


def _quad(factors: Factors, rule: SoftwareQuad, change: Change) -> list[Step]:
    products = _products(factors, change)
    p = [products[..., k] for k in range(4)]
    if change.reverse:
        p.reverse()
    c = _accumulator(factors, change)
    steps: list[Step] = []

    def add(*terms: Numbers, element: Format = F32) -> Numbers:
        steps.append(_ieee(joined(list(terms)), element, "rn", change))
        return decode(steps[-1].code, element)

    if factors.product.d is F32:
        chain = decode(np.zeros(c.special.shape, np.uint32), F32)
        for term in p:
            chain = add(term, chain)
        add(c, chain)
        return steps
    upper, lower = add(p[3], add(p[2])), add(p[1], add(p[0]))
    add(add(add(c, upper), lower), element=F16)
    return steps


# --- integers --------------------------------------------------------------------------------------


def _integer(factors: Factors, rule: IntegerSum | BitCount, change: Change) -> list[Step]:
    instruction, operation = factors.product, factors.product.bit_operation
    terms = _ones(factors.a, factors.b, operation) if operation else factors.products
    terms = beside(terms, _accumulator(factors, change))
    total = terms.significand.sum(-1)
    top = 1 << (instruction.d.bits - 1)
    code = np.clip(total, -top, top - 1) if instruction.satfinite else total
    return [Step(kind="integer", terms=terms, code=code & instruction.d.mask, total=total)]


def _ones(a: Numbers, b: Numbers, operation: str) -> Numbers:
    both = {"and": np.bitwise_and, "xor": np.bitwise_xor}[operation](a.significand, b.significand)
    return replace(a, significand=both)


RULES: dict[type[Rule], Callable[[Factors, Any, Change], Sequence[Step]]] = {
    FusedSum: _fused_sum,
    EmulatedF8: _emulated_f8,
    ScaledGroups: _scaled_groups,
    ScaledQuads: _scaled_quads,
    FusedMultiplyAdd: _multiply_add,
    SoftwareQuad: _quad,
    IntegerSum: _integer,
    BitCount: _integer,
}
