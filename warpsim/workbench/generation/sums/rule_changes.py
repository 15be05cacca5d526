"""Wrong versions of a rule: where D differs under such a rule, a case would show that fault.

Knows which faults make sense for which rule; summing.py carries them out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from ....base.errors import present
from ....isa.rules import (
    FusedSum,
    Output,
    Rule,
    ScaledGroups,
    Slip,
)
from .exact_numbers import FINITE, Array, Rounded
from .factors import Factors
from .limits import Limits
from .summing import Change, Step, Sums

Concern = Callable[[Factors, Sums], Array]

_SLIPS: dict[Slip, tuple[str, Change]] = {
    "reversed": ("products in reversed order", Change(reverse=True)),
    "rounded products": ("products rounded before the addition", Change(round_products=True)),
}


def slips_of(rule: Rule) -> tuple[tuple[str, Change], ...]:
    """Return the faults of the operations of a rule, beside those of an aligned sum."""
    return tuple(_SLIPS[slip] for slip in rule.slips)


@dataclass(frozen=True, kw_only=True)
class Wrong:
    """A wrong version of a rule, and the outputs that it can concern: all others have the same D under it.

    ``concerns`` sees the sums as the rule has them. It saves work, and does not say which outputs differ.
    """

    name: str
    rule: Rule
    change: Change = field(default_factory=Change)
    concerns: Concern = lambda factors, done: _anything(done)


def changes(limits: Limits) -> Iterator[Wrong]:
    """Yield wrong versions of the rule, by name: where D differs, the operands distinguish them."""
    rule, step = limits.rule, limits.step
    if step is not None:
        yield from _sum_changes(limits, step)
    if isinstance(step, FusedSum):
        yield from _step_changes(limits, step)
    yield from (Wrong(name=name, rule=rule, change=change) for name, change in slips_of(rule))
    if limits.instruction.a.is_float:
        flush = Change(flush_inputs=True)
        yield Wrong(name="subnormal operands read as zero", rule=rule, change=flush, concerns=_subnormal)
        flush = Change(flush_results=True)
        yield Wrong(name="subnormal results written as zero", rule=rule, change=flush, concerns=_tiny)


def _sum_changes(limits: Limits, step: FusedSum | ScaledGroups) -> Iterator[Wrong]:
    """Yield changes of every aligned sum."""
    rule, floor = limits.rule, step.exponent_floor

    def other(name: str, concerns: Concern, **numbers: Any) -> Wrong:
        return Wrong(name=name, rule=rule.realigned(**numbers), concerns=concerns)

    def changed(name: str, concerns: Concern, **change: Any) -> Wrong:
        return Wrong(name=name, rule=rule, change=Change(**change), concerns=concerns)

    yield other("one fraction bit fewer", _last_bits, fraction_bits=step.fraction_bits - 1)
    yield other("one fraction bit more", _lost_bits, fraction_bits=step.fraction_bits + 1)
    yield changed("terms rounded to nearest", _lost_bits, cut="nearest")
    yield changed("terms rounded down", _lost_bits, cut="down")
    yield changed("alignment after the sum", _lost_bits, cut="after")
    yield changed("products normalised before alignment", _normalised(step), normalise=True)
    for name, place in (("first", 0), ("last", -2)):
        yield changed(f"a bit more of the {name} product", _cut_at(place), spared=place)
    yield changed("sums of one unit are zero", _unit, units_vanish=True)
    if not isinstance(step, ScaledGroups):
        name = "products of 2 and more aligned by their leading bit"
        yield changed(name, _carried(step), carries_align=True)
        yield changed("subnormal factors aligned otherwise", _subnormal, other_subnormals=True)
        yield changed("negative zero products counted in the alignment", _zeros, zeros_align="-products")
    yield changed("the largest subnormal C read as normal", _subnormal_c, raises_c=True)
    yield changed("C left out of the alignment", _c_sets, c_aligns=False)
    yield changed("zeros counted in the alignment", _zeros, zeros_align="all")
    yield changed("C = -0 counted in the alignment", _zero_c, zeros_align="-C")
    yield changed("C = 0 counted in the alignment", _zero_c, zeros_align="C")
    yield other("no exponent floor", _at(floor), exponent_floor=-(1 << 9))
    yield other("exponent floor one lower", _at(floor), exponent_floor=floor - 1)
    yield other("exponent floor one higher", _at(floor), exponent_floor=floor + 1)
    yield other("other rounding of results", _inexact, output=_other_output(step.output))
    yield other("groups half as long", _any, **_halved(step, limits))


def _step_changes(limits: Limits, step: FusedSum) -> Iterator[Wrong]:
    """Yield changes of sums in steps."""
    rule = limits.rule
    if step.output.precision < 24 and step.output.format == "f32":
        wide = rule.realigned(output=replace(step.output, precision=24))
        yield Wrong(name="results of 24 bits", rule=wide, concerns=_inexact)
    if limits.steps > 1:
        yield Wrong(name="steps in reversed order", rule=rule, change=Change(reverse=True))
        if isinstance(rule, FusedSum):
            whole = replace(rule, length=limits.instruction.stored_k)
            yield Wrong(name="all products in one step", rule=whole)


# --- what they concern -------------------------------------------------------------------------------
# Each by induction over the steps: where no step of an output has it, no step gives another code.


def _any(factors: Factors, done: Sums) -> Array:
    return _anything(done)


def _anything(done: Sums) -> Array:
    return np.ones(done.code.shape, np.bool_)


def _somewhere(done: Sums, found: Callable[[Step], Array]) -> Array:
    """Return outputs with an aligned step in which something holds."""
    masks = [found(step) for step in done.steps if step.kind == "fused"]
    flags: Array = np.logical_or.reduce(masks)
    return flags


def _lost_bits(factors: Factors, done: Sums) -> Array:
    """Return a term lost something in the alignment."""
    return _somewhere(done, lambda step: (step.lost > 0).any(-1))


@cache
def _cut_at(place: int) -> Concern:
    """Return the term of a place lost something in the alignment."""
    return lambda factors, done: _somewhere(done, lambda step: step.lost[..., place] > 0)


@cache
def _carried(rule: FusedSum) -> Concern:
    """Return a product is twice the power of two that the terms are aligned by, or more."""
    twice = 2.0 ** (rule.fraction_bits + 1)
    return lambda factors, done: _somewhere(done, lambda step: _largest(step) >= twice)


@cache
def _normalised(rule: FusedSum | ScaledGroups) -> Concern:
    """Return whether alignment uses another power of two than that of the largest product's leading bit.

    The largest of a group may cancel, or a product that is smaller than its scales say.
    """
    if isinstance(rule, ScaledGroups):
        return _any
    return lambda factors, done: _somewhere(done, lambda step: _leads(step, rule))


def _leads(step: Step, rule: FusedSum) -> Array:
    """Return whether leading 1 bits of products, C and the floor have another maximum than in step."""
    exponent, c = present(step.exponent, "exponent"), step.terms[..., -1]
    lead = np.frexp(_largest(step))[1] - 1 - rule.fraction_bits + exponent
    lead = np.maximum(lead, np.where(c.nonzero, c.exponent, rule.exponent_floor))
    flags: Array = np.maximum(lead, rule.exponent_floor) != exponent
    return flags


def _largest(step: Step) -> Array:
    """Return the largest product in units of the alignment; 0 where Inf or NaN decides."""
    largest = np.abs(present(step.aligned, "aligned")[..., :-1]).max(-1)
    return np.where(present(step.special, "special") == FINITE, largest, 0)


def _unit(factors: Factors, done: Sums) -> Array:
    """Return whether a sum is one unit of the alignment."""
    return _somewhere(done, lambda step: np.abs(present(step.total, "total")) == 1)


def _last_bits(factors: Factors, done: Sums) -> Array:
    """Return whether a term would lose bits, or more bits, one bit above."""
    return _somewhere(done, lambda step: (_halves(step) != np.trunc(_halves(step))).any(-1))


def _halves(step: Step) -> Array:
    finite = present(step.special, "special") == FINITE
    return np.where(finite[..., None], present(step.aligned, "aligned"), 0) * 0.5


def _c_sets(factors: Factors, done: Sums) -> Array:
    """Return the accumulator has the largest exponent."""
    return _somewhere(done, _c_leads)


def _c_leads(step: Step) -> Array:
    largest = step.terms.exponent[..., -1] == present(step.exponent, "exponent")
    flags: Array = present(step.counted, "counted")[..., -1] & largest
    return flags


def _zeros(factors: Factors, done: Sums) -> Array:
    """Return whether a zero term has an exponent above the largest; not known in groups."""
    if factors.scales is not None:
        return _anything(done)
    return _somewhere(done, _zero_above)


def _zero_above(step: Step) -> Array:
    above = step.terms.exponent > present(step.exponent, "exponent")[..., None]
    flags: Array = (above & ~step.terms.nonzero).any(-1) & _anything_counts(step)
    return flags


def _zero_c(factors: Factors, done: Sums) -> Array:
    """Return whether the accumulator is zero, with an exponent above the largest."""
    return _somewhere(done, _zero_c_above)


def _zero_c_above(step: Step) -> Array:
    c = step.terms[..., -1]
    flags: Array = (c.exponent > present(step.exponent, "exponent")) & ~c.nonzero & _anything_counts(step)
    return flags


@cache
def _at(floor: int) -> Concern:
    """Return the exponent floor is the largest exponent of a step with a term that is not zero."""
    return lambda factors, done: _somewhere(
        done, lambda step: (present(step.exponent, "exponent") == floor) & _anything_counts(step)
    )


def _anything_counts(step: Step) -> Array:
    """Return where nothing takes part in the alignment the sum is zero, however it is aligned."""
    return present(step.counted, "counted").any(-1)


def _inexact(factors: Factors, done: Sums) -> Array:
    """Return a sum was rounded, or was too large."""
    return _somewhere(done, lambda step: _lossy(present(step.rounded, "rounded")))


def _lossy(done: Rounded) -> Array:
    flags: Array = (done.tail > 0) | done.overflow
    return flags


def _tiny(factors: Factors, done: Sums) -> Array:
    """Return the result of a step is subnormal."""
    found: Array = np.logical_or.reduce([present(x.rounded, "rounded").subnormal for x in done.steps])
    return found.astype(np.bool_)


def _subnormal(factors: Factors, done: Sums) -> Array:
    """Return a factor, C or an accumulator is subnormal."""
    return factors.subnormal | _tiny(factors, done)


def _subnormal_c(factors: Factors, done: Sums) -> Array:
    """Return C is subnormal."""
    return np.asarray(factors.c.subnormal(factors.product.c))


def _other_output(output: Output) -> Output:
    return replace(output, nearest=not output.nearest)


def _halved(step: FusedSum | ScaledGroups, limits: Limits) -> dict[str, int]:
    if isinstance(step, ScaledGroups):
        return {"group": step.group // 2}
    return {"length": int((limits.groups == 0).sum()) // 2}
