"""Why no operands whatever show some faults on some forms: from the reach of formats and rules."""

from __future__ import annotations

from collections.abc import Callable

from warpsim.workbench.generation.sums import reasons
from warpsim.workbench.generation.sums.limits import Limits


def c_cut_at(limits: Limits, fraction_bits: int) -> str:
    """Prove that C loses nothing at so many fraction bits."""
    if limits.products.high - fraction_bits > limits.accumulator.bit:
        return ""
    return f"the accumulator is a multiple of 2**{limits.accumulator.bit}"


def small_c(limits: Limits) -> str:
    """Prove that the exponent of a subnormal C is never the largest of those that cut."""
    low = limits.accumulator.low
    if low <= limits.floor:
        return f"the exponent floor, {limits.floor}, is not below it"
    if low - limits.fraction_bits <= limits.products.bit:
        return f"products are multiples of 2**{limits.products.bit}, which it cuts none of"
    return ""


def vanishing(limits: Limits) -> str:
    """Prove that no sum rounds to zero."""
    return reasons.tiny_reason(limits)


def positive_zeros(limits: Limits) -> str:
    """Prove that the sign of a zero C is never seen."""
    return reasons.minus_zero_reason(limits)


def last_bit(side: str) -> Callable[[Limits], str]:
    """Return a proof that C's last bits are cut at its own exponent, or at a larger exponent."""

    def proof(limits: Limits) -> str:
        c, kept = limits.instruction.c, limits.fraction_bits
        if side != "c" or limits.step is None or limits.emulated or kept >= c.fraction_bits:
            return ""
        return f"alignment cuts C {kept} bits below its own exponent at least, and {c} has {c.fraction_bits}"

    return proof


def floor(limits: Limits, raised: int) -> str:
    """Prove that neither products nor C lie below a floor so much higher, or that it cuts none of them."""
    lowest = limits.floor + raised
    if min(limits.products.low, limits.accumulator.low) >= lowest:
        return f"products have exponents from {limits.products.low}, C from {limits.accumulator.low}"
    if min(limits.products.bit, limits.accumulator.bit) >= lowest - limits.fraction_bits:
        return f"all terms are multiples of 2**{min(limits.products.bit, limits.accumulator.bit)}"
    return reasons.floor_cut_reason(limits, raised) if raised <= 2 else ""


def largest(limits: Limits) -> str:
    """Prove that no result is the largest number, or that whatever is too large becomes it."""
    if limits.instruction.rounding == "rz":
        return "results too large are the largest number under .rz"
    return reasons.large_reason(limits)


def finite_partial(limits: Limits) -> str:
    """Prove, for fp8 by way of f16, that the sum that stands for C in the second step is never infinite."""
    form = limits.instruction
    if limits.emulated and reasons.no_infinity(form.a, form.b):
        return reasons.early_reason(limits)
    return ""
