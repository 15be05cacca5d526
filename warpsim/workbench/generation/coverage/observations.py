"""What happened in a batch's sums, bin by bin: masks over the outputs of a batch.

The classifier. It sees operands and the steps of summing.py, and nothing of how the operands were made. The
names are those of bins.py, which says what they mean and which of them an instruction can reach.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....base.errors import present
from ....isa.formats import Format
from ....isa.instruction import Instruction
from ....isa.products import Operands
from ....isa.rules import EmulatedF8, ScaledGroups
from ..sums.exact_numbers import FINITE, HALF, Array
from ..sums.factors import Factors, factors_of
from ..sums.limits import Limits, largest, limits_of
from ..sums.rule_changes import Concern, Wrong, changes
from ..sums.summing import Step, Sums, sums_of
from .operand_classes import operand_masks
from .special_causes import special_masks

Mask = tuple[str, Array]  # a bin, and where it was hit: (tiles, m, n)
Chosen = tuple[Array, Factors]  # some outputs, and what they are made of

TAILS = ((1, "below half a unit"), (2, "half a unit"), (3, "above half a unit"))
SIGNS = ((False, "positive"), (True, "negative"))


def observations(instruction: Instruction, operands: Operands) -> Iterator[Mask]:
    """Yield bins of the arithmetic that a batch hits, each with its outputs."""
    limits = limits_of(instruction)
    factors = factors_of(operands, limits.rule)
    done = sums_of(factors, limits.rule)
    for index, step in enumerate(done.steps):
        yield from _STEPS[step.kind](step, limits)
        if index + 1 < len(done.steps) and step.rounded is not None:
            yield "chain: a sum before the last overflows", _finite(step) & step.rounded.overflow
    if limits.emulated:
        before, c = present(done.steps[-2].rounded, "rounded"), done.steps[-1].terms[..., -1]
        rounded = _finite(done.steps[-2]) & before.vanished & before.negative
        yield "addition of C: -0 to a negative sum rounded to zero", rounded & ~c.nonzero & c.negative
    yield from _results(done, limits)
    yield from operand_masks(operands, done)
    if limits.instruction.a.is_float:
        yield from special_masks(operands, factors, done, limits)
    chosen: dict[tuple[Concern, bool], Chosen] = {}  # most concern several wrong versions
    for wrong in changes(limits):
        key = wrong.concerns, wrong.change.rereads
        if key not in chosen:
            chosen[key] = _chosen(wrong, factors, done)
        yield f"shown: {wrong.name}", _differs(wrong, *chosen[key], done)


def _chosen(wrong: Wrong, factors: Factors, done: Sums) -> Chosen:
    """Return the outputs that concern a wrong version, and their factors."""
    asked = wrong.concerns(factors, done)
    if asked.all() or not asked.any():
        return asked, factors
    return asked, factors.chosen(asked, whole=wrong.change.rereads)


def _differs(wrong: Wrong, asked: Array, some: Factors, done: Sums) -> Array:
    """Return outputs whose D differs under a wrong rule; ``some`` has those that are ``asked``."""
    found = np.zeros(done.code.shape, np.bool_)
    if asked.all():
        return np.asarray(sums_of(some, wrong.rule, wrong.change).code != done.code)
    if asked.any():
        found[asked] = sums_of(some, wrong.rule, wrong.change).code != done.code[asked]
    return found


def _finite(step: Step) -> Array:
    special = present(step.special, "special")
    return special == FINITE


# --- aligned sums ----------------------------------------------------------------------------------


def _aligned(step: Step, limits: Limits) -> Iterator[Mask]:
    counted = present(step.counted, "counted")
    exponent = present(step.exponent, "exponent")
    total = present(step.total, "total")
    finite, fraction_bits = _finite(step), limits.fraction_bits
    scaled = isinstance(limits.rule, ScaledGroups)
    exponents = step.terms.exponent  # of a scaled group that of its scales: its own is 0
    nonzero = counted  # what is not zero; a scaled group that cancels counts too
    sets = nonzero & (exponents == exponent[..., None])
    by_product, by_c = sets[..., :-1].any(-1), sets[..., -1]
    yield "alignment: set by a product alone", finite & by_product & ~by_c
    yield "alignment: set by C alone", finite & by_c & ~by_product
    yield "alignment: set by C and a product", finite & by_c & by_product
    yield "alignment: set by the exponent floor", finite & nonzero.any(-1) & ~by_product & ~by_c
    below = exponent[..., None] - exponents
    for more in (-1, 0, 1, 2):
        gap = nonzero & (below == fraction_bits + more)
        name = f"gap F{more:+d}" if more else "gap F"
        yield f"{name}: product below product", finite & by_product & gap[..., :-1].any(-1)
        yield f"{name}: product below C", finite & by_c & gap[..., :-1].any(-1)
        yield f"{name}: C below product", finite & by_product & gap[..., -1]
    yield from _cuts(step, finite)
    if not scaled:
        unseen = (~step.terms.nonzero[..., :-1]) & (exponents[..., :-1] > exponent[..., None])
        yield "alignment: a zero product of larger exponent", finite & nonzero.any(-1) & unseen.any(-1)
    size = np.where(total == 0, -1, np.log2(np.maximum(np.abs(total), 1)).astype(np.int64))
    for carry in range(1, limits.carries + 1):
        yield f"carry: {carry} bits above the largest exponent", finite & (size == fraction_bits + carry)
    cancels = finite & nonzero.any(-1) & (nonzero.sum(-1) > 1)
    yield "cancellation: to zero", cancels & (total == 0)
    yield "cancellation: to one unit of the alignment", cancels & (np.abs(total) == 1)
    yield from _rounding(step, finite)


def _cuts(step: Step, finite: Array) -> Iterator[Mask]:
    lost = step.lost
    cut = lost > 0
    yield "cut: a product", finite & cut[..., :-1].any(-1)
    yield "cut: C", finite & cut[..., -1]
    yield "cut: a positive term", finite & (cut & (step.terms.value > 0)).any(-1)
    yield "cut: a negative term", finite & (cut & (step.terms.value < 0)).any(-1)
    signed = np.copysign(lost, step.terms.value).sum(-1)
    yield "cut: parts that add up to a unit", finite & (np.abs(signed) >= 1)


def _rounding(step: Step, finite: Array) -> Iterator[Mask]:
    done = present(step.rounded, "rounded")
    total = present(step.total, "total")
    yield "rounding: exact", finite & (total != 0) & (done.tail == 0)
    normal = finite & ~done.subnormal & ~done.overflow
    for negative, sign in SIGNS:
        for tail, name in TAILS:
            yield f"rounding: {name}, {sign}", normal & (done.tail == tail) & (done.negative == negative)
    tie = normal & (done.tail == HALF)
    yield "rounding: half a unit above an even number", tie & ~done.odd
    yield "rounding: half a unit above an odd number", tie & done.odd
    yield "rounding: carries into the next binade", normal & done.carried
    yield "subnormal result: exact", finite & done.subnormal & (done.tail == 0)
    yield "subnormal result: inexact", finite & done.subnormal & (done.tail > 0)
    for negative, sign in SIGNS:
        yield f"rounds to zero: {sign}", finite & done.vanished & (done.negative == negative)
        yield f"overflow: {sign}", finite & done.overflow & (done.negative == negative)


# --- IEEE and integer steps ------------------------------------------------------------------------


def _ieee(step: Step, limits: Limits) -> Iterator[Mask]:
    total = present(step.total, "total")
    finite = _finite(step)
    several = step.terms.nonzero.astype(np.bool_).sum(-1) > 1
    yield "addition: cancels to zero", finite & several & (total == 0).astype(np.bool_)
    yield "addition: of zeros of different signs", finite & _mixed_zeros(step)
    if isinstance(limits.rule, EmulatedF8):
        done = present(step.rounded, "rounded")
        normal = finite & ~done.overflow & (done.tail > 0)
        for negative, sign in SIGNS:
            for tail, name in TAILS:
                yield (
                    f"addition of C: {name}, {sign}",
                    normal & (done.tail == tail) & (done.negative == negative),
                )
            yield f"overflow: {sign}", finite & done.overflow & (done.negative == negative)
        yield "subnormal result: exact", finite & done.subnormal & (done.tail == 0)
        return
    yield from _rounding(step, finite)


def _mixed_zeros(step: Step) -> Array:
    zeros = ~step.terms.nonzero.astype(np.bool_)
    return zeros.all(-1) & step.terms.negative.any(-1) & ~step.terms.negative.all(-1)


def _integer(step: Step, limits: Limits) -> Iterator[Mask]:
    total = present(step.total, "total")
    top = 1 << 31
    terms = step.terms.significand
    yield "integer: largest result", total == top - 1
    yield "integer: smallest result", total == -top
    yield "integer: one above the range", total == top
    yield "integer: one below the range", total == -top - 1
    yield "integer: above the range", total >= top
    yield "integer: below the range", total < -top
    ordered = np.concatenate([terms[..., -1:], terms[..., :-1]], axis=-1).cumsum(-1)
    inside = (total >= -top) & (total < top)
    yield "integer: leaves the range upwards and comes back", inside & (ordered >= top).any(-1)
    yield "integer: leaves the range downwards and comes back", inside & (ordered < -top).any(-1)
    products = terms[..., :-1]
    yield "integer: all products zero", (products == 0).all(-1)
    yield "integer: products cancel", (products != 0).any(-1) & (products.sum(-1) == 0)
    yield "integer: largest product in every place", (products == _extremes(limits)[1]).all(-1)
    yield "integer: smallest product in every place", (products == _extremes(limits)[0]).all(-1)
    for place in range(products.shape[-1]):
        alone = (products != 0).sum(-1) == 1
        yield f"integer: product {place} alone", alone & (products[..., place] != 0)


def _extremes(limits: Limits) -> tuple[int, int]:
    """Return the smallest and the largest product."""
    form = limits.instruction
    ends = [(-x.sign_bit, x.mask ^ x.sign_bit) for x in (form.a, form.b)]
    products = [x * y for x in ends[0] for y in ends[1]]
    return min(products), max(products)


_STEPS = {"fused": _aligned, "ieee": _ieee, "integer": _integer}


# --- infinities, NaNs, results ---------------------------------------------------------------------


def _results(done: Sums, limits: Limits) -> Iterator[Mask]:
    d = limits.instruction.d
    if not d.is_float:
        return
    magnitude = done.code & d.code_dtype.type(d.mask & ~d.sign_bit)
    negative = done.code != magnitude
    infinity = d.code_dtype.type(d.infinity)
    named = (
        ("zero", 0),
        ("smallest subnormal", 1 << (d.fraction_bits + 1 - limits.output.precision)),
        ("smallest normal number", 1 << d.fraction_bits),
        ("largest finite number", largest(d) & ~((1 << (d.fraction_bits + 1 - limits.output.precision)) - 1)),
        ("Inf", int(infinity)),
    )
    for sign, prefix in ((False, "+"), (True, "-")):
        for name, code in named:
            yield f"result: {prefix}{name}", (magnitude == d.code_dtype.type(code)) & (negative == sign)
    yield "result: NaN", magnitude > infinity
    if limits.step is not None and not limits.emulated:
        yield "result: zero of nothing but negative zeros", _all_negative_zeros(done)
    yield "overflow: a product beyond D's range, not the sum", _overflowing(done, d) & (magnitude < infinity)


def _all_negative_zeros(done: Sums) -> Array:
    every = [~step.terms.nonzero & step.terms.negative for step in done.steps[:1]]
    rest = [(~step.terms.nonzero & step.terms.negative)[..., :-1] for step in done.steps[1:]]
    return np.concatenate([*every, *rest], axis=-1).all(-1)


def _overflowing(done: Sums, d: Format) -> Array:
    """Return outputs with a finite product of an aligned sum that D could not hold."""
    found = np.zeros(done.code.shape, np.bool_)
    for step in done.steps:
        if step.kind == "fused":
            products = step.terms[..., :-1]
            large = products.nonzero & (products.exponent > d.bias) & (products.special == FINITE)
            found |= large.any(-1)
    return found
