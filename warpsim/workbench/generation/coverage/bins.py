"""Coverage bins: their names, and for what an instruction cannot reach the reason.

A bin is a question that a vector set either asks of a device or does not. Which exist, and which of them
are out of reach, follows from the instruction's formats and rule; observations.py finds which a batch hits.
Soundness is tested: nothing declared unreachable is ever hit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ....isa.formats import Format
from ....isa.instruction import Instruction
from ....isa.rules import FusedSum, ScaledGroups
from ..sums import reasons
from ..sums.limits import Limits, limits_of
from ..sums.rule_changes import slips_of
from .observations import SIGNS, TAILS
from .special_causes import special_bins

Reason = reasons.Reason
Entry = tuple[str, Reason]


def arithmetic_bins(limits: Limits) -> dict[str, Reason]:
    """Return the bins of the arithmetic of an instruction, and why each is out of reach (or "")."""
    found: dict[str, Reason] = {}
    for part in _parts(limits):
        found.update(part(limits))
    return found


def repeated_bins(instruction: Instruction) -> frozenset[str]:
    """Return the bins of which a single hit may be decided by something else."""
    entries = special_bins(limits_of(instruction)) if instruction.a.is_float else ()
    return frozenset(name for name, _ in entries)


def _parts(limits: Limits) -> Iterator[Callable[[Limits], Iterator[Entry]]]:
    if not limits.instruction.a.is_float:
        yield from (_integers, _operand_bins)
        return
    if limits.step is not None:
        yield from (_gaps, _alignment, _cuts, _carries)
    if limits.step is None or limits.emulated:
        yield _additions
    yield from (_roundings, _extremes, _specials, _results, _operand_bins, _shown_bins)


# --- aligned sums ----------------------------------------------------------------------------------


def _gaps(limits: Limits) -> Iterator[Entry]:
    products, c = limits.products, limits.accumulator
    reach = {
        "product below product": limits.spread,
        "product below C": c.high - products.low,
        "C below product": products.high - c.low,
    }
    for more in (-1, 0, 1, 2):
        name = f"gap F{more:+d}" if more else "gap F"
        for role, most in reach.items():
            yield f"{name}: {role}", reasons.gap_reason(limits, most, limits.fraction_bits + more)


def _alignment(limits: Limits) -> Iterator[Entry]:
    yield "alignment: set by a product alone", ""
    yield "alignment: set by C alone", ""
    yield "alignment: set by C and a product", ""
    yield "alignment: set by the exponent floor", reasons.floor_reason(limits, 0)
    if not isinstance(limits.rule, ScaledGroups):
        yield "alignment: a zero product of larger exponent", ""


def _cuts(limits: Limits) -> Iterator[Entry]:
    anything = reasons.cut_reason(limits, limits.fraction_bits)
    yield "cut: a product", reasons.product_cut_reason(limits)
    yield "cut: C", reasons.c_cut_reason(limits)
    yield "cut: a positive term", anything
    yield "cut: a negative term", anything
    yield "cut: parts that add up to a unit", reasons.product_cut_reason(limits)


def _carries(limits: Limits) -> Iterator[Entry]:
    for carry in range(1, limits.carries + 1):
        yield f"carry: {carry} bits above the largest exponent", ""
    yield "cancellation: to zero", ""
    yield "cancellation: to one unit of the alignment", ""


def _additions(limits: Limits) -> Iterator[Entry]:
    yield "addition: cancels to zero", ""
    yield "addition: of zeros of different signs", ""
    if limits.emulated:
        yield "addition of C: -0 to a negative sum rounded to zero", reasons.tiny_reason(limits)
        for _, sign in SIGNS:
            for _, name in TAILS:
                yield f"addition of C: {name}, {sign}", ""


# --- rounding --------------------------------------------------------------------------------------


def _roundings(limits: Limits) -> Iterator[Entry]:
    yield "rounding: exact", ""
    for _, sign in SIGNS:
        for _, name in TAILS:
            yield f"rounding: {name}, {sign}", ""
    yield "rounding: half a unit above an even number", ""
    yield "rounding: half a unit above an odd number", ""
    grows = limits.nearest or limits.instruction.rounding in ("rm", "rp")
    yield "rounding: carries into the next binade", "" if grows else "results are rounded toward zero"
    yield "subnormal result: exact", reasons.small_reason(limits, limits.instruction.d.minimum_exponent - 1)
    yield "subnormal result: inexact", reasons.tiny_reason(limits)


def _extremes(limits: Limits) -> Iterator[Entry]:
    overflow, rounding = reasons.overflow_reason(limits), limits.instruction.rounding
    for negative, sign in SIGNS:
        yield (
            f"rounds to zero: {sign}",
            reasons.tiny_reason(limits) or reasons.directed_zero(rounding, negative),
        )
        yield f"overflow: {sign}", "" if rounding in ("rz", "rm", "rp") else overflow
    yield "overflow: a product beyond D's range, not the sum", reasons.beyond_reason(limits)
    if limits.emulated or limits.steps > 1 or limits.step is None:
        yield "chain: a sum before the last overflows", reasons.early_reason(limits)


# --- infinities, NaNs and results --------------------------------------------------------------------


def _specials(limits: Limits) -> Iterator[Entry]:
    form = limits.instruction
    yield from special_bins(limits)
    if form.sparse:
        yield "unselected B: NaN", "" if form.b.has_nan else f"{form.b} has no NaN"
        yield "unselected B: Inf", reasons.no_infinity(form.b)


def _results(limits: Limits) -> Iterator[Entry]:
    minus_zero = reasons.minus_zero_reason(limits)
    for sign in "+-":
        yield f"result: {sign}zero", minus_zero if sign == "-" else ""
        yield f"result: {sign}smallest subnormal", reasons.small_reason(limits, limits.smallest)
        yield (
            f"result: {sign}smallest normal number",
            reasons.small_reason(limits, limits.instruction.d.minimum_exponent),
        )
        yield f"result: {sign}largest finite number", reasons.large_reason(limits)
        yield f"result: {sign}Inf", ""
    yield "result: NaN", ""
    if limits.step is not None and not limits.emulated:
        yield "result: zero of nothing but negative zeros", ""


def code_classes(element: Format) -> Iterator[Entry]:
    """Yield the kinds of codes of a format, those that it lacks with the reason."""
    if not element.is_float:
        yield from ((name, "") for name in ("zero", "one", "largest"))
        if element.signed and element.bits > 1:
            yield from ((name, "") for name in ("smallest", "minus one"))
        return
    if element.fraction_bits:
        signed = "" if element.signed else f"{element} has no sign"
        yield from (("+0", ""), ("-0", signed), ("subnormal", ""))
        yield from (("smallest subnormal", ""), ("largest subnormal", ""))
    for name in ("smallest normal number", "largest finite number"):
        yield name, ""
    yield "odd significand", ""
    infinite = "" if element.has_infinity else f"{element} has no Inf"
    yield from (("+Inf", infinite), ("-Inf", infinite))
    yield "NaN", "" if element.has_nan else f"{element} has no NaN"
    payload = element.has_infinity and element.fraction_bits > 1
    yield "signaling NaN", "" if payload else f"{element} has no NaNs of different kinds"
    ignored = "" if element.ignored_bits else f"all bits of {element} are read"
    yield from (("ignored bits set", ignored), ("NaN in ignored bits only", ignored))


def _operand_bins(limits: Limits) -> Iterator[Entry]:
    form = limits.instruction
    for side in "abc":
        for name, reason in code_classes(form.format(side)):
            yield f"{side}: {name}", reason
    if form.scale is not None:
        for side in "ab":
            for name, reason in code_classes(form.scale):
                yield f"scale_{side}: {name}", reason


# --- what would show -------------------------------------------------------------------------------


def _shown_bins(limits: Limits) -> Iterator[Entry]:
    if limits.step is not None:
        yield from _shown_of_sums(limits)
    yield from ((f"shown: {name}", "") for name, _ in slips_of(limits.rule))
    yield "shown: subnormal operands read as zero", ""
    tiny = reasons.small_reason(limits, limits.instruction.d.minimum_exponent - 1)
    yield "shown: subnormal results written as zero", tiny


def _shown_of_sums(limits: Limits) -> Iterator[Entry]:
    anything = reasons.cut_reason(limits, limits.fraction_bits)
    yield "shown: one fraction bit fewer", reasons.cut_reason(limits, limits.fraction_bits - 1)
    for name in ("one fraction bit more", "terms rounded to nearest", "terms rounded down"):
        yield f"shown: {name}", anything
    yield "shown: alignment after the sum", anything
    yield "shown: products normalised before alignment", anything
    for place in ("first", "last"):
        yield f"shown: a bit more of the {place} product", reasons.product_cut_reason(limits)
    yield "shown: sums of one unit are zero", ""
    if not isinstance(limits.rule, ScaledGroups):
        yield "shown: products of 2 and more aligned by their leading bit", anything
        yield "shown: subnormal factors aligned otherwise", reasons.subnormal_reason(limits)
        zeros = reasons.zero_product_reason(limits)
        yield "shown: negative zero products counted in the alignment", zeros
    yield "shown: the largest subnormal C read as normal", ""
    yield "shown: C left out of the alignment", reasons.product_cut_reason(limits)
    yield "shown: zeros counted in the alignment", reasons.zero_reason(limits)
    yield "shown: C = -0 counted in the alignment", reasons.zero_c_reason(limits, negative=True)
    yield "shown: C = 0 counted in the alignment", reasons.zero_c_reason(limits)
    yield "shown: no exponent floor", reasons.floor_cut_reason(limits, 0)
    yield "shown: exponent floor one lower", reasons.floor_cut_reason(limits, 0)
    yield "shown: exponent floor one higher", reasons.floor_cut_reason(limits, 1)
    yield "shown: other rounding of results", ""
    yield "shown: groups half as long", ""
    if limits.output.precision < 24 and limits.output.format == "f32":
        yield "shown: results of 24 bits", ""
    if limits.steps > 1:
        yield "shown: steps in reversed order", ""
        if isinstance(limits.rule, FusedSum):
            yield "shown: all products in one step", ""


# --- integers --------------------------------------------------------------------------------------


def _integers(limits: Limits) -> Iterator[Entry]:
    form = limits.instruction
    signed = form.a.signed or form.b.signed
    negative = "" if signed and not form.bit_operation else "no product is negative"
    yield "integer: largest result", ""
    yield "integer: smallest result", ""
    yield "integer: one above the range", ""
    yield "integer: one below the range", negative
    yield "integer: above the range", ""
    yield "integer: below the range", negative
    yield "integer: leaves the range upwards and comes back", negative
    yield "integer: leaves the range downwards and comes back", negative
    yield "integer: all products zero", ""
    yield "integer: products cancel", negative
    yield "integer: largest product in every place", ""
    yield "integer: smallest product in every place", ""
    for place in range(form.stored_k):
        yield f"integer: product {place} alone", ""
