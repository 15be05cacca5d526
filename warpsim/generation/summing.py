"""The arithmetic of whole tiles, step by step, with all that coverage asks about.

``summed`` computes every output of a batch of operands by its rule and keeps each step: terms, alignment,
what was cut off, rounding. A ``Change`` makes one thing different, to see whether anyone would notice.
Knows the rules of architectures; does not know lanes, bins, or what a generator had in mind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import present
from ..isa.architectures import (
    BitCount,
    EmulatedF8,
    FusedMultiplyAdd,
    FusedSum,
    IntegerSum,
    Rule,
    ScaledGroups,
    SoftwareQuad,
)
from ..isa.formats import FORMATS, Format
from ..isa.instruction import Operands
from .arithmetic import (
    FINITE,
    Array,
    Numbers,
    Rounded,
    beside,
    bit_length,
    cut,
    decode,
    joined,
    normalised,
    product,
    rounded,
    special_of,
    with_specials,
)

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
    other_subnormals: bool = False  # normalise subnormal factors; leave fp8 as it is where it becomes f16
    c_aligns: bool = True  # C takes part in the largest exponent
    zeros_align: bool = False  # so do terms that are zero
    flush_inputs: bool = False
    flush_results: bool = False
    reverse: bool = False  # the steps in reversed order
    round_products: bool = False  # before they are added (where each step is a fused multiply-add)


AS_IT_IS = Change()


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of every output; arrays ``(tiles, m, n)``, with an axis of terms more where it says so.

    The accumulator is the last of the ``terms``. ``counted`` are those that take part in the largest
    exponent, ``tails`` and ``lost`` what alignment cut off each (class, and part of a unit of ``unit``).
    """

    kind: str  # "fused", "ieee", "integer"
    terms: Numbers
    code: Array
    special: Array | None = None
    counted: Array | None = None  # (..., terms)
    exponent: Array | None = None
    kept: Array | None = None  # (..., terms)
    tails: Array | None = None  # (..., terms)
    lost: Array | None = None  # (..., terms)
    total: Array | None = None
    unit: Array | None = None
    rounded: Rounded | None = None


@dataclass(frozen=True, kw_only=True)
class Sums:
    """The steps of a batch, and the result codes ``(tiles, m, n)``."""

    steps: tuple[Step, ...]
    code: Array


def summed(operands: Operands, rule: Rule, change: Change = AS_IT_IS) -> Sums:
    """Every step of every output of a batch of operands."""
    steps = RULES[type(rule)](operands, rule, change)
    return Sums(steps=tuple(steps), code=steps[-1].code.astype(operands.instruction.d.code_dtype))


# --- factors ---------------------------------------------------------------------------------------


def paired(values: Array, operands: Operands, side: str) -> Array:
    """An array like A ``(tiles, m, stored)`` or B ``(tiles, k, n)`` as ``(tiles, m, n, stored)``: the factor
    of each product."""
    tiles, rows, stored = operands.a.shape
    columns = operands.b.shape[2]
    if side == "a":
        return np.broadcast_to(values[:, :, None], (tiles, rows, columns, stored))
    if operands.columns is None:
        return np.broadcast_to(values.transpose(0, 2, 1)[:, None], (tiles, rows, columns, stored))
    tile, column = np.arange(tiles)[:, None, None, None], np.arange(columns)[None, None, :, None]
    return values[tile, operands.columns[:, :, None, :], column]


def _factor(operands: Operands, side: str, flush: bool, convert: bool = False) -> Numbers:
    element = operands.instruction.format(side)
    numbers = decode(getattr(operands, side), element, flush=flush)
    if convert:
        numbers = _as_f16(numbers, element)
    return Numbers(**{name: paired(array, operands, side) for name, array in vars(numbers).items()})


def _as_f16(numbers: Numbers, element: Format) -> Numbers:
    """Exactly the same numbers; what was subnormal in a smaller format has its leading one in front."""
    room = element.fraction_bits + 1 - bit_length(np.abs(numbers.significand))
    exponent = np.maximum(numbers.exponent - room, F16.minimum_exponent)
    return replace(numbers, exponent=np.where(numbers.nonzero, exponent, F16.minimum_exponent))


def _products(operands: Operands, change: Change, *, convert: bool = False) -> Numbers:
    flush, otherwise = change.flush_inputs, change.other_subnormals
    a, b = (_factor(operands, side, flush, convert and not otherwise) for side in "ab")
    if otherwise and not convert:
        a, b = normalised(a), normalised(b)
    return product(a, b)


def _scales(operands: Operands) -> Numbers:
    """scale_a * scale_b of each product, ``(tiles, m, n, stored)``."""
    instruction = operands.instruction
    scale = present(instruction.scale, "scale")
    scale_a = present(operands.scale_a, "scale a")
    scale_b = present(operands.scale_b, "scale b")
    a = decode(scale_a, scale)[:, :, None, :]
    b = decode(scale_b.swapaxes(1, 2), scale)[:, None, :, :]
    both = product(a, b)  # (tiles, m, n, chunks)
    stored = operands.a.shape[2]
    chunk = np.arange(stored) * instruction.scale_chunks // stored
    return both[..., chunk]


def _accumulator(operands: Operands, change: Change) -> Numbers:
    return decode(operands.c, operands.instruction.c, flush=change.flush_inputs)


# --- aligned sums ----------------------------------------------------------------------------------

_CUTS: dict[str, Callable[[Numbers, Array, Array], Array]] = {
    "zero": lambda terms, kept, tail: kept,
    "after": lambda terms, kept, tail: kept,
    "down": lambda terms, kept, tail: kept + ((terms.significand < 0) & (tail > 0)),
    "nearest": lambda terms, kept, tail: kept + ((tail == 3) | ((tail == 2) & (kept % 2 == 1))),
}
_ALL_BITS = 38  # fraction bits that stand for infinitely many: sums stay below 2**53


def _fused(terms: Numbers, exponents: Array, counted: Array, rule: Any, change: Change) -> Step:
    """Terms aligned to the largest counted exponent, cut, added exactly and rounded once."""
    lowest = np.int64(rule.exponent_floor)
    exponent = np.where(counted, exponents, lowest).max(-1)
    exponent = np.maximum(exponent, lowest)
    fraction_bits = _ALL_BITS if change.cut == "after" else rule.fraction_bits
    unit = exponent - fraction_bits
    kept, rest, tails = cut(np.abs(terms.significand), unit[..., None] - terms.scale)
    kept = _CUTS[change.cut](terms, kept, tails)
    signed = np.where(terms.significand < 0, -kept, kept)
    total = signed.sum(-1)
    result = FORMATS[rule.output.format]
    mode = "rn" if rule.output.nearest else "cut"
    done = rounded(total, unit, result, rule.output.precision, mode)
    code = np.where(done.vanished | (total == 0), 0, done.code)
    if change.flush_results:
        code = np.where(done.subnormal, 0, code)
    special, negative = special_of(terms)
    depth = np.clip(unit[..., None] - terms.scale, 0, 62)
    return Step(
        kind="fused",
        terms=terms,
        code=with_specials(code.astype(np.uint64), special, negative, result),
        special=special,
        counted=counted,
        exponent=exponent,
        kept=signed,
        tails=np.where((special == FINITE)[..., None], tails, 0),
        lost=np.ldexp(rest.astype(np.float64), -depth),
        total=total,
        unit=unit,
        rounded=done,
    )


def _chain(rule: FusedSum, products: Numbers, accumulator: Numbers, change: Change) -> list[Step]:
    """``rule.length`` products a step, every step's result accumulating the next."""
    result = FORMATS[rule.output.format]
    count = products.significand.shape[-1]
    starts = list(range(0, count, rule.length))
    if change.normalise:
        products = normalised(products)
    steps: list[Step] = []
    for start in reversed(starts) if change.reverse else starts:
        terms = beside(products[..., start : start + rule.length], accumulator)
        counted = terms.nonzero | change.zeros_align
        if not change.c_aligns:
            counted[..., -1] = False
        steps.append(_fused(terms, terms.exponent, counted, rule, change))
        accumulator = decode(steps[-1].code, result, flush=change.flush_inputs)
    return steps


def _fused_sum(operands: Operands, rule: FusedSum, change: Change) -> list[Step]:
    products = _products(operands, change)
    if operands.instruction.scale is not None:
        products = product(products, _scales(operands))
    return _chain(rule, products, _accumulator(operands, change), change)


def _emulated_f8(operands: Operands, rule: EmulatedF8, change: Change) -> list[Step]:
    products = _products(operands, change, convert=True)
    stored = operands.a.shape[2]
    c = _accumulator(operands, change)
    result = operands.instruction.d
    partial = decode(np.zeros(c.special.shape, np.uint32), result)
    halves = [np.flatnonzero(np.arange(stored) % 4 // 2 == half) for half in (0, 1)]
    steps: list[Step] = []
    for chosen in reversed(halves) if change.reverse else halves:
        steps += _chain(rule.step, products[..., chosen], partial, change)
        partial = decode(steps[-1].code, result)
    return [*steps, _ieee(joined([partial, c]), result, "rn", change)]


def _scaled_groups(operands: Operands, rule: ScaledGroups, change: Change) -> list[Step]:
    products, scales = _products(operands, change), _scales(operands)
    c = _accumulator(operands, change)
    terms, exponents, counted = [], [], []
    for start in range(0, products.significand.shape[-1], rule.group):
        members, scale = products[..., start : start + rule.group], scales[..., start]
        lowest = members.scale.min(-1)
        total = (members.significand << (members.scale - lowest[..., None])).sum(-1)
        special = np.maximum(members.special.max(-1), scale.special)
        group = Numbers(
            significand=total,
            scale=lowest,
            exponent=scale.exponent * 0,  # the scales' exponent is the one to align by
            special=np.zeros_like(special),
            negative=(total < 0) | (~members.nonzero & members.negative).all(-1),
        )
        terms.append(replace(product(group, scale), special=special))
        exponents.append(_group_exponent(terms[-1], scale, change))
        counted.append(((scale.nonzero) & members.nonzero.any(-1)) | change.zeros_align)
    terms.append(c)
    exponents.append(c.exponent)
    counted.append((c.nonzero | change.zeros_align) & change.c_aligns)
    return [_fused(joined(terms), np.stack(exponents, -1), np.stack(counted, -1), rule, change)]


def _group_exponent(term: Numbers, scale: Numbers, change: Change) -> Array:
    return normalised(term).exponent if change.normalise else scale.exponent


# --- IEEE operations -------------------------------------------------------------------------------


def _ieee(terms: Numbers, element: Format, mode: str, change: Change) -> Step:
    """The exact sum of the terms, rounded once as IEEE 754 has it."""
    wide = terms.exact()
    lowest = np.where(wide.nonzero, wide.scale, 1 << 20).min(-1)
    lift = np.where(wide.nonzero, wide.scale - lowest[..., None], 0)
    shifted = wide.significand << lift
    total = shifted.sum(-1)
    unit = np.where(wide.nonzero.any(-1), lowest, 0)
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
        kept=shifted,
        total=total,
        unit=unit,
        rounded=done,
    )


def _multiply_add(operands: Operands, rule: FusedMultiplyAdd, change: Change) -> list[Step]:
    element = operands.instruction.d
    mode = _MODES[operands.instruction.rounding]
    a, b = (_factor(operands, side, change.flush_inputs).exact() for side in "ab")
    products = product(a, b)
    d = _accumulator(operands, change)
    order = list(range(products.significand.shape[-1]))
    steps: list[Step] = []
    for k in reversed(order) if change.reverse else order:
        term = products[..., k]
        if change.round_products:
            term = decode(_ieee(joined([term]), element, mode, change).code, element).exact()
        steps.append(_ieee(joined([term, d.exact()]), element, mode, change))
        d = decode(steps[-1].code, element)
    return steps


def _quad(operands: Operands, rule: SoftwareQuad, change: Change) -> list[Step]:
    products = _products(operands, change)
    p = [products[..., k] for k in range(4)]
    if change.reverse:
        p.reverse()
    c = _accumulator(operands, change)
    steps: list[Step] = []

    def add(*terms: Numbers, element: Format = F32) -> Numbers:
        steps.append(_ieee(joined(list(terms)), element, "rn", change))
        return decode(steps[-1].code, element)

    if operands.instruction.d is F32:
        chain = decode(np.zeros(c.special.shape, np.uint32), F32)
        for term in p:
            chain = add(term, chain)
        add(c, chain)
        return steps
    upper, lower = add(p[3], add(p[2])), add(p[1], add(p[0]))
    add(add(add(c, upper), lower), element=F16)
    return steps


# --- integers --------------------------------------------------------------------------------------


def _integer(operands: Operands, rule: IntegerSum | BitCount, change: Change) -> list[Step]:
    instruction = operands.instruction
    a, b = (_factor(operands, side, flush=False) for side in "ab")
    terms = _ones(a, b, instruction.bit_operation) if instruction.bit_operation else product(a, b)
    terms = beside(terms, _accumulator(operands, change))
    total = terms.significand.sum(-1)
    top = 1 << (instruction.d.bits - 1)
    code = np.clip(total, -top, top - 1) if instruction.satfinite else total
    return [Step(kind="integer", terms=terms, code=code & instruction.d.mask, total=total)]


def _ones(a: Numbers, b: Numbers, operation: str) -> Numbers:
    both = {"and": np.bitwise_and, "xor": np.bitwise_xor}[operation](a.significand, b.significand)
    return replace(a, significand=both)


RULES: dict[type[Rule], Callable[[Operands, Any, Change], Sequence[Step]]] = {
    FusedSum: _fused_sum,
    EmulatedF8: _emulated_f8,
    ScaledGroups: _scaled_groups,
    FusedMultiplyAdd: _multiply_add,
    SoftwareQuad: _quad,
    IntegerSum: _integer,
    BitCount: _integer,
}
