"""When two ways to sum give the same bits for all inputs of a form: choices that make no difference removed.

Every line of ``settled`` is a small proof; what it does not settle counts as different. Knows formats and
choices; runs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, log2
from typing import Any

from warpsim.isa.formats import FORMATS
from warpsim.isa.instruction import Instruction
from warpsim.isa.rules import Rule

from ..floors import largest_groups, largest_sum, unseen_floor
from .sums import Choices


@dataclass(frozen=True)
class Reach:
    """How small the terms of a form can be: exponents of products, and their last bits; the same of C."""

    lowest: int
    last: int
    c_lowest: int
    c_last: int


def reach(form: Instruction, choices: Choices) -> Reach:
    """Of the numbers that the sum sees; those of an emulation are f16."""
    lowest = form.a.minimum_exponent + form.b.minimum_exponent
    last = lowest - form.a.fraction_bits - form.b.fraction_bits
    if form.scale is not None:
        scale = form.scale.minimum_exponent if form.scale.fraction_bits else -form.scale.bias
        lowest, last = lowest + 2 * scale, last + 2 * (scale - form.scale.fraction_bits)
    if choices.c_last and form.a.bits == 8:
        lowest = max(last, 2 * FORMATS["f16"].minimum_exponent)
    return Reach(lowest, last, form.d.minimum_exponent, form.d.minimum_exponent - form.d.fraction_bits)


def settled(form: Instruction, rule: Rule, choices: Choices) -> tuple[Any, ...]:
    """Return a key that two choices share where no input can tell them apart."""
    changes: dict[str, Any] = {}
    choices = _of_steps(choices)
    if _floor_is_unseen(form, rule, choices):
        changes["floor"] = None
    if _largest(form, choices) <= 2 ** (2 + choices.carry_bits):
        changes["carry_bits"] = None
    if not (form.a.has_infinity or form.b.has_infinity):  # then only C can be an Inf
        changes |= {"zero_times_infinity": "", "opposed": ""}
    if not _can_vanish(form, choices):
        changes["small_zero"] = False
    if not _can_overflow(form, choices):
        changes["saturates"] = False
    changes |= _of_emulation(form, choices) if choices.c_last else {"last_rounding": ""}
    plain = replace(choices, groups=())
    fields = {**vars(plain), **changes}
    fields["groups"] = _sets(choices)
    fields["flushed"] = frozenset(fields["flushed"])
    return tuple(sorted(fields.items(), key=lambda pair: pair[0]))


def _of_steps(choices: Choices) -> Choices:
    """Return the same, with one word for what partial sums do where they do nothing of their own."""
    changes: dict[str, Any] = {}
    if choices.exact > 1:  # exact sums have no exponents of their own
        changes["normalised"] = False
    one_step = len(choices.groups) == 1 or choices.exact > 1
    alike = {"even": "nearest"}  # two words for one rounding
    between, rounding = (alike.get(item, item) for item in (choices.between, choices.rounding))
    if one_step or between == rounding:  # there are no partial sums, or they round alike
        changes["between"] = ""
    if one_step or choices.between_precision == choices.precision:
        changes["between_precision"] = 0
    return replace(choices, **changes)


def _floor_is_unseen(form: Instruction, rule: Rule, choices: Choices) -> bool:
    """Return whether the floor cuts nothing, or only sums that are zero in D with it and without."""
    if _vanish_below_the_floor(form, choices):
        return True
    cut = rule.realigned(fraction_bits=choices.fraction_bits)
    return not choices.normalised and choices.floor <= unseen_floor(form, cut)


def _vanish_below_the_floor(form: Instruction, choices: Choices) -> bool:
    """Return whether all sums are zero that have no exponent as large as the floor, which alone can differ.

    They have no C, whose exponents are D's and above such a floor; cuts toward zero make products no larger.
    """
    roundings = {choices.rounding, choices.between or choices.rounding}
    known = roundings <= {"zero", "even", "nearest", "away"} and choices.cut == "zero"
    if not known or choices.small_zero or choices.c_last:
        return False
    precision = max(choices.precision, choices.between_precision)
    smallest = form.d.minimum_exponent - (precision - 1) - (roundings != {"zero"})
    powers = form.scale is not None and not form.scale.fraction_bits
    groups = choices.exact > 1 and powers and choices.fraction_bits > 12
    largest = largest_groups(form) if groups else _largest_products(form, choices)
    return choices.floor - 1 + log2(largest) < smallest


def _sets(choices: Choices) -> Any:
    """Return the groups without the order inside them: their sums are exact."""
    return None if choices.exact > 1 else tuple(frozenset(group) for group in choices.groups)


def _largest(form: Instruction, choices: Choices) -> float:
    """Return the largest sum, C too, in units of the largest exponent."""
    return _largest_products(form, choices) + 2


def _largest_products(form: Instruction, choices: Choices) -> float:
    """Return the largest sum of products alone, in units of their largest exponent."""
    if choices.exact > 1:  # of e2m1: 6 * 6, and scales below 2 each
        return choices.exact * 36 * 4 * (form.stored_k // choices.exact)
    return largest_sum(form, max(map(len, choices.groups)))


def _can_vanish(form: Instruction, choices: Choices) -> bool:
    """Return whether a sum that is not zero can be smaller than the smallest number of D."""
    smallest = form.d.minimum_exponent - (choices.precision - 1)
    small = reach(form, choices)
    alone = max(small.last, max(choices.floor, small.lowest) - choices.fraction_bits)
    with_c = max(min(small.last, small.c_last), small.c_lowest - choices.fraction_bits)
    return min(alone, alone if choices.c_last else with_c) < smallest


def _can_overflow(form: Instruction, choices: Choices) -> bool:
    """Return whether finite numbers add up to Inf: C of f32 alone does not, nor with products far below
    its end.
    """
    far_scales = form.scale is not None and not form.scale.fraction_bits
    if form.d.name != "f32" or far_scales or choices.cut in ("down", "sticky"):
        return True
    roundings = {choices.rounding, choices.between or choices.rounding}
    if not roundings <= {"zero"} and (choices.precision, choices.between_precision or 24) != (24, 24):
        return True
    highest = sum(2 ** (element.exponent_bits - 1) for element in (form.a, form.b))
    highest += 0 if form.scale is None else 2 * 8
    total = highest + ceil(log2(_largest(form, choices)))
    return "down" in roundings or total >= 2 ** (form.d.exponent_bits - 1) - 26


def _of_emulation(form: Instruction, choices: Choices) -> dict[str, Any]:
    """Return what an addition of C at the end hides: C is not in the sum, and NaNs are written by the
    addition.
    """
    hidden: dict[str, Any] = {"nan": -1, "negative_zero": False}
    flushed = set(choices.flushed) - {"c"}
    if form.d.name == "f32":  # partial sums of fp8 are neither too large nor too small for it
        hidden["saturates"] = False
        flushed -= {"d"}
    if form.a.bits == 8:  # subnormal numbers of e4m3 are normal as f16
        flushed -= {name for name in "ab" if form.format(name).name == "e4m3"}
        small = reach(form, choices)
        highest = [2 ** (form.format(name).exponent_bits - 1) for name in "ab"]
        if max(highest) - 14 - choices.fraction_bits <= small.last:  # a zero's exponent cuts nothing
            hidden["zeros_count"] = False
    return hidden | {"flushed": "".join(sorted(flushed))}
