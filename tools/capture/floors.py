"""Which exponent floors of a rule inputs can tell apart. Knows formats and rules, no experiments."""

from __future__ import annotations

from math import ceil, log2

from warpsim.isa.formats import FORMATS
from warpsim.isa.instruction import Instruction
from warpsim.isa.rules import EmulatedF8, FusedSum, Rule, ScaledGroups


def unseen_floor(form: Instruction, rule: Rule) -> int:
    """Return the highest floor that gives the same bits as none, and so does every lower one.

    A floor above every exponent of a sum changes nothing unless it moves the place where bits are cut above
    the last place of some term. Terms below it are products, and C where even C's exponents are below it.
    """
    aligned = rule.aligned
    assert aligned is not None
    a, b = (FORMATS["f16"],) * 2 if isinstance(rule, EmulatedF8) else (form.a, form.b)
    lowest = form.a.minimum_exponent + form.b.minimum_exponent
    last = lowest - form.a.fraction_bits - form.b.fraction_bits
    if isinstance(rule, EmulatedF8):  # subnormal fp8 numbers are normal as f16
        lowest = max(last, a.minimum_exponent + b.minimum_exponent)
    if form.scale is not None:
        scale = form.scale.minimum_exponent if form.scale.fraction_bits else -form.scale.bias
        lowest, last = lowest + 2 * scale, last + 2 * (scale - form.scale.fraction_bits)
    products = max(lowest, last + aligned.fraction_bits)
    if isinstance(rule, EmulatedF8):  # C is added elsewhere; the partial sum is one of these products
        return products
    c = form.d
    return min(
        products, max(c.minimum_exponent, c.minimum_exponent - c.fraction_bits + aligned.fraction_bits)
    )


def idle_floor(form: Instruction, rule: Rule) -> int:
    """Return the highest floor that gives the same D as none: nothing is cut, or only sums that are zero
    in D.

    A floor changes sums whose exponents are all below it. Of emulated ones, and where scales have fractions,
    only the first counts.
    """
    unseen = unseen_floor(form, rule)
    if isinstance(rule, EmulatedF8) or (form.scale is not None and form.scale.fraction_bits):
        return unseen
    assert isinstance(rule, FusedSum | ScaledGroups)
    smallest = form.d.minimum_exponent - (rule.output.precision - 1) - int(rule.output.nearest)
    if isinstance(rule, FusedSum):
        largest = largest_sum(form, min(rule.length, form.stored_k))
    else:
        largest = largest_groups(form)
    return max(unseen, ceil(smallest + 1 - log2(largest)) - 1)


def largest_sum(form: Instruction, count: int) -> float:
    """Return the largest sum of so many products, in units of their largest exponent."""
    a, b = (2 - 2.0**-element.fraction_bits for element in (form.a, form.b))
    return count * a * b


def largest_groups(form: Instruction) -> float:
    """Return the largest sum of scaled groups of which some are cut, in units of the largest exponent of
    scales.

    Groups of e2m1 are multiples of 2**-2, and scales of ue8m0 powers of two: a floor f and F fraction bits
    cut only those whose scales have exponents up to f - F + 1, and a chunk has one scale. What all of these
    add up to is below one unit for any F above 12; the other chunks have products of 6 * 6.
    """
    chunk = form.stored_k // form.scale_chunks
    return 36.0 * (form.stored_k - chunk) + 1


def floor_of(rule: Rule) -> int:
    """Return the rule's own floor."""
    aligned = rule.aligned
    assert isinstance(aligned, FusedSum | ScaledGroups)
    return aligned.exponent_floor
