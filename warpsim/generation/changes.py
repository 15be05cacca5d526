"""Wrong versions of a rule: where D differs under one, a case would show that fault.

Knows which faults make sense for which rule; summing.py carries them out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..isa.architectures import (
    BitCount,
    EmulatedF8,
    FusedMultiplyAdd,
    FusedSum,
    IntegerSum,
    Output,
    Rule,
    ScaledGroups,
    SoftwareQuad,
)
from .limits import Limits
from .summing import Change

_REVERSED = ("products in reversed order", Change(reverse=True))
_ROUNDED = ("products rounded before the addition", Change(round_products=True))
FAULTS: dict[type[Rule], tuple[tuple[str, Change], ...]] = {  # beside those of the aligned sum
    FusedSum: (),
    EmulatedF8: (),
    ScaledGroups: (),
    FusedMultiplyAdd: (_REVERSED, _ROUNDED),
    SoftwareQuad: (_REVERSED,),
    IntegerSum: (),
    BitCount: (),
}


def changes(limits: Limits) -> Iterator[tuple[str, Rule, Change]]:
    """Wrong versions of the rule, by name: where D differs, the operands tell them apart."""
    rule, step = limits.rule, limits.step
    plain = Change()
    if step is not None:
        stepwise = rule.realigned
        yield "one fraction bit fewer", stepwise(fraction_bits=step.fraction_bits - 1), plain
        yield "one fraction bit more", stepwise(fraction_bits=step.fraction_bits + 1), plain
        yield "terms rounded to nearest", rule, Change(cut="nearest")
        yield "terms rounded down", rule, Change(cut="down")
        yield "alignment after the sum", rule, Change(cut="after")
        yield "products normalised before alignment", rule, Change(normalise=True)
        if not isinstance(step, ScaledGroups):
            yield "subnormal factors aligned otherwise", rule, Change(other_subnormals=True)
        yield "C left out of the alignment", rule, Change(c_aligns=False)
        yield "zeros counted in the alignment", rule, Change(zeros_align=True)
        yield "no exponent floor", stepwise(exponent_floor=-(1 << 12)), plain
        yield "exponent floor one lower", stepwise(exponent_floor=step.exponent_floor - 1), plain
        yield "exponent floor one higher", stepwise(exponent_floor=step.exponent_floor + 1), plain
        yield "other rounding of results", stepwise(output=_other(step.output)), plain
        yield "groups half as long", stepwise(**_halved(step, limits)), plain
    if isinstance(step, FusedSum):
        if step.output.precision < 24 and step.output.format == "f32":
            yield "results of 24 bits", stepwise(output=replace(step.output, precision=24)), plain
        if limits.steps > 1:
            yield "steps in reversed order", rule, Change(reverse=True)
            if isinstance(rule, FusedSum):
                yield "all products in one step", replace(rule, length=limits.instruction.stored_k), plain
    yield from ((name, rule, change) for name, change in FAULTS[type(rule)])
    if limits.instruction.a.is_float:
        yield "subnormal operands read as zero", rule, Change(flush_inputs=True)
        yield "subnormal results written as zero", rule, Change(flush_results=True)


def _other(output: Output) -> Output:
    return replace(output, nearest=not output.nearest)


def _halved(step: FusedSum | ScaledGroups, limits: Limits) -> dict[str, int]:
    if isinstance(step, ScaledGroups):
        return {"group": step.group // 2}
    return {"length": int((limits.groups == 0).sum()) // 2}
