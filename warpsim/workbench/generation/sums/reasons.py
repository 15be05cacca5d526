"""Why bins are out of reach, from the limits of an instruction; empty where they are not."""

from __future__ import annotations

from ....isa.formats import Format
from ....isa.rules import ScaledGroups, SoftwareQuad
from .limits import Limits

Reason = str  # why a bin cannot be hit; empty where it can


def floor_reason(limits: Limits, raised: int) -> Reason:
    """Return why no sum is aligned by the floor; C never is, its exponents lie above."""
    floor = limits.floor + raised
    if limits.products.low < floor:
        return ""
    return f"products have exponents from {limits.products.low}, above the floor of {floor}"


def floor_cut_reason(limits: Limits, raised: int) -> Reason:
    """Return why the floor has no effect: what it cuts."""
    unit = limits.floor + raised - limits.fraction_bits
    if reason := floor_reason(limits, raised):
        return reason
    if limits.products.bit >= unit:
        return f"products are multiples of 2**{limits.products.bit}: a floor of {limits.floor} cuts none"
    return ""


def cut_reason(limits: Limits, fraction_bits: int) -> Reason:
    """Return why no term loses bits."""
    highest = max(limits.products.high, limits.accumulator.high)
    lowest = min(limits.products.bit, limits.accumulator.bit)
    if highest - fraction_bits > lowest:
        return ""
    return f"all terms are multiples of 2**{lowest} and at most 2**{highest + 1}"


def product_cut_reason(limits: Limits) -> Reason:
    """Return why no product loses bits."""
    highest = max(limits.products.high, limits.accumulator.high)
    if highest - limits.fraction_bits > limits.products.bit:
        return ""
    return f"products are multiples of 2**{limits.products.bit}"


def c_cut_reason(limits: Limits) -> Reason:
    """Return why the accumulator loses no bits."""
    if limits.products.high - limits.fraction_bits > limits.accumulator.bit:
        return ""
    return f"the accumulator is a multiple of 2**{limits.accumulator.bit}"


def zero_reason(limits: Limits) -> Reason:
    """Return why zeros would cut nothing if they counted."""
    highest = max(limits.zero_high, limits.accumulator.low)
    lowest = min(limits.products.bit, limits.accumulator.bit)
    if highest - limits.fraction_bits > lowest:
        return ""
    return f"zeros would have exponents up to {highest}: terms are multiples of 2**{lowest}"


def zero_product_reason(limits: Limits) -> Reason:
    """Return why zero products would cut nothing if they counted."""
    if limits.zero_high - limits.fraction_bits > min(limits.products.bit, limits.accumulator.bit):
        return ""
    return f"zero products would have exponents up to {limits.zero_high}, which cut nothing"


def zero_c_reason(limits: Limits, *, negative: bool = False) -> Reason:
    """Return why a C of zero would cut nothing if it counted, with the least exponent of its format."""
    if limits.emulated and negative:
        return "the sum of products that C is added to is never -0"
    exponent = limits.instruction.c.minimum_exponent
    if exponent - limits.fraction_bits > limits.products.bit:
        return ""
    return f"C = 0 would have exponent {exponent}: products are multiples of 2**{limits.products.bit}"


def subnormal_reason(limits: Limits) -> Reason:
    """Return why the exponent by which subnormal factors are aligned has no effect."""
    highest = limits.subnormal_high
    lowest = min(limits.products.bit, limits.accumulator.bit)
    if highest is None:
        return "f16 aligns all factors by the same exponents"
    if highest - limits.fraction_bits > lowest:
        return ""
    return f"their products have exponents up to {highest}: terms are multiples of 2**{lowest}"


def tiny_reason(limits: Limits) -> Reason:
    """Return why nothing is smaller than the smallest result: not the products, and not what is left of C."""
    smallest, products, c = limits.smallest, limits.products.bit, limits.accumulator
    if limits.step is not None:
        products = max(products, limits.floor - limits.fraction_bits)
    left_of_c = max(c.bit, c.low - limits.fraction_bits)
    if min(products, smallest if limits.emulated else left_of_c) < smallest:
        return ""
    return f"sums are multiples of 2**{smallest}, the smallest number of D"


def overflow_reason(limits: Limits) -> Reason:
    """Return why no finite sum is too large: C is the largest number at most, and products add too little."""
    d = limits.instruction.d
    unit = d.bias + 1 - (d.fraction_bits + 1)  # the last place of D's largest numbers
    needed = 2.0 ** (unit - 1) if limits.nearest else 2.0**unit
    if limits.instruction.rounding == "rz":
        return "results too large are the largest finite number under .rz"
    if limits.largest_sum >= needed:
        return ""
    return f"products add up to {limits.largest_sum:.4g} at most, and D's last place is 2**{unit}"


def directed_zero(rounding: str, negative: bool) -> Reason:
    """Return why a directed rounding makes no zero of tiny numbers of a sign."""
    away = {"rm": True, "rp": False}.get(rounding)
    return f".{rounding} rounds tiny numbers of that sign away from zero" if away == negative else ""


def beyond_reason(limits: Limits) -> Reason:
    """Return why no product lies beyond D's range."""
    if limits.step is None:
        return "every step is rounded"
    high = limits.products.high
    if high > limits.instruction.d.bias:
        return ""
    return f"products have exponents up to {high}, which D holds"


def early_reason(limits: Limits) -> Reason:
    """Return why no sum before the last overflows."""
    if isinstance(limits.rule, SoftwareQuad):
        return f"earlier steps are in f32, and products add up to {limits.largest_sum:.4g} at most"
    if not limits.emulated:
        return "" if limits.instruction.rounding in ("rz", "rm", "rp") else overflow_reason(limits)
    if limits.largest_sum > 2.0 ** (limits.instruction.d.bias + 1):
        return ""
    return f"products add up to {limits.largest_sum:.4g} at most"


def no_infinity(*elements: Format) -> Reason:
    """Return why there are no infinite products."""
    if any(element.has_infinity for element in elements):
        return ""
    return f"{' and '.join(dict.fromkeys(map(str, elements)))} have no Inf"


def minus_zero_reason(limits: Limits) -> Reason:
    """Return why no result is -0."""
    if limits.emulated:
        return "the sum of products that C is added to is never -0"
    if limits.step is not None:
        return "zeros are written as +0"
    if isinstance(limits.rule, SoftwareQuad) and limits.instruction.d.name == "f32":
        return "the products are added to +0 first"
    return ""


def small_reason(limits: Limits, exponent: int) -> Reason:
    """Return why no result is as small as ``2**exponent``."""
    c = limits.instruction.c
    lowest = min(limits.products.bit, c.minimum_exponent - c.fraction_bits)
    if lowest <= exponent:
        return ""
    return f"products and C are multiples of 2**{lowest}"


def large_reason(limits: Limits) -> Reason:
    """Return why no result is D's largest number."""
    form = limits.instruction
    if form.c is form.d or limits.largest_sum >= 2.0**form.d.bias:
        return ""
    return f"C is {form.c}, and products add up to {limits.largest_sum:.4g} at most"


def gap_reason(limits: Limits, most: int, gap: int) -> Reason:
    """Return why exponents are never so far apart."""
    if most >= gap:
        return ""
    if isinstance(limits.rule, ScaledGroups) and not most:
        return "all products share one pair of scales"
    return f"exponents differ by {most} at most, not by {gap}"
