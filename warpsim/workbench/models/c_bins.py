"""Coverage bins of a printed bench: each bin of generation/coverage/bins.py as a condition of C.

Conditions are asked of a step (``s``, see bench.c), of a whole dot product, or of a case. Every bin that a
form can reach has a condition, except "shown: ..." bins: the wrong programs of a bench stand for those.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...isa.formats import Format
from ...isa.rules import EmulatedF8, ScaledGroups
from ..generation.coverage.bins import arithmetic_bins
from ..generation.coverage.observations import SIGNS, TAILS
from ..generation.sums.limits import Limits, largest
from .c_parts import c_int, constant

Conditions = dict[str, str]


def bins_of(limits: Limits) -> list[str]:
    """Return the names of the bins that a rule can reach, without what wrong programs show."""
    every = arithmetic_bins(limits)
    return [name for name, reason in every.items() if not reason and not name.startswith("shown: ")]


def hits(bins: Mapping[str, int], conditions: Conditions) -> Iterator[str]:
    """Yield the lines that note conditions which hold, of the bins that there are."""
    for name, condition in conditions.items():
        if name in bins:
            yield f"hit_if({bins[name]}, {condition});  /* {name} */"


# --- a step ----------------------------------------------------------------------------------------


def aligned_step(limits: Limits) -> Conditions:
    """Return the bins of an aligned sum."""
    fraction_bits = limits.fraction_bits
    found = {
        "alignment: set by a product alone": "s->finite && s->by_product && !s->by_c",
        "alignment: set by C alone": "s->finite && s->by_c && !s->by_product",
        "alignment: set by C and a product": "s->finite && s->by_c && s->by_product",
        "alignment: set by the exponent floor": "s->finite && s->live && !s->by_product && !s->by_c",
        "cut: a product": "s->cut_product",
        "cut: C": "s->cut_c",
        "cut: a positive term": "s->cut_plus",
        "cut: a negative term": "s->cut_minus",
        "cut: parts that add up to a unit": "s->cut_unit",
        "alignment: a zero product of larger exponent": "s->finite && s->live && zero_above(s)",
        "cancellation: to zero": "s->finite && s->live > 1 && s->total == 0",
        "cancellation: to one unit of the alignment": (
            "s->finite && s->live > 1 && (s->total == 1 || s->total == -1)"
        ),
    }
    for more in (-1, 0, 1, 2):
        name = f"gap F{more:+d}" if more else "gap F"
        below = fraction_bits + more
        found[f"{name}: product below product"] = f"s->finite && s->by_product && gap(s, {below}, 0)"
        found[f"{name}: product below C"] = f"s->finite && s->by_c && gap(s, {below}, 0)"
        found[f"{name}: C below product"] = f"s->finite && s->by_product && gap(s, {below}, 1)"
    size = "s->finite && length(s->total < 0 ? (uint64_t)-s->total : (uint64_t)s->total)"
    for carry in range(1, limits.carries + 1):
        found[f"carry: {carry} bits above the largest exponent"] = f"{size} == {fraction_bits + carry + 1}"
    return found | rounded_step()


def rounded_step() -> Conditions:
    """Return the bins of a rounding."""
    normal = "s->finite && !s->subnormal && !s->overflow"
    found = {
        "rounding: exact": "s->finite && !s->zero && s->tail == 0",
        "rounding: half a unit above an even number": f"{normal} && s->tail == 2 && !s->odd",
        "rounding: half a unit above an odd number": f"{normal} && s->tail == 2 && s->odd",
        "rounding: carries into the next binade": f"{normal} && s->carried",
        "subnormal result: exact": "s->finite && s->subnormal && s->tail == 0",
        "subnormal result: inexact": "s->finite && s->subnormal && s->tail > 0",
        "chain: a sum before the last overflows": "!last && s->finite && s->overflow",
    }
    for negative, sign in SIGNS:
        own = f"s->negative == {int(negative)}"
        found[f"rounds to zero: {sign}"] = f"s->finite && s->vanished && {own}"
        found[f"overflow: {sign}"] = f"s->finite && s->overflow && {own}"
        for tail, name in TAILS:
            found[f"rounding: {name}, {sign}"] = f"{normal} && s->tail == {tail} && {own}"
    return found


def ieee_step(limits: Limits) -> Conditions:
    """Return the bins of an IEEE operation; of emulated fp8 that which adds C."""
    found = {
        "addition: cancels to zero": "s->finite && s->zero && several(s)",
        "addition: of zeros of different signs": "s->finite && zeros_differ(s)",
        "chain: a sum before the last overflows": "!last && s->finite && s->overflow",
    }
    if not isinstance(limits.rule, EmulatedF8):
        return found | rounded_step()
    for negative, sign in SIGNS:
        own = f"s->negative == {int(negative)}"
        found[f"overflow: {sign}"] = f"s->finite && s->overflow && {own}"
        for tail, name in TAILS:
            found[f"addition of C: {name}, {sign}"] = (
                f"s->finite && !s->overflow && s->tail == {tail} && {own}"
            )
    found["subnormal result: exact"] = "s->finite && s->subnormal && s->tail == 0"
    found["addition of C: -0 to a negative sum rounded to zero"] = (
        "vanished_before && s->x[0].m == 0 && s->x[0].kind == 0 && s->x[0].negative"
    )
    return found


def integer_step(limits: Limits) -> Conditions:
    """Return the bins of an exact sum of integers."""
    form = limits.instruction
    ends = [(-each.sign_bit, each.mask ^ each.sign_bit) for each in (form.a, form.b)]
    products = [x * y for x in ends[0] for y in ends[1]]
    top = "INT64_C(0x80000000)"
    inside = f"s->total >= -{top} && s->total < {top}"
    found = {
        "integer: largest result": f"s->total == {top} - 1",
        "integer: smallest result": f"s->total == -{top}",
        "integer: one above the range": f"s->total == {top}",
        "integer: one below the range": f"s->total == -{top} - 1",
        "integer: above the range": f"s->total >= {top}",
        "integer: below the range": f"s->total < -{top}",
        "integer: leaves the range upwards and comes back": f"{inside} && strays(s, 1)",
        "integer: leaves the range downwards and comes back": f"{inside} && strays(s, 0)",
        "integer: all products zero": "products_are(s, 0)",
        "integer: products cancel": "!products_are(s, 0) && s->total == s->kept[s->count - 1]",
        "integer: largest product in every place": f"products_are(s, {c_int(max(products))})",
        "integer: smallest product in every place": f"products_are(s, {c_int(min(products))})",
    }
    for place in range(form.stored_k):
        found[f"integer: product {place} alone"] = f"lone_product(s) == {place}"
    return found


# --- a dot product ---------------------------------------------------------------------------------


def code_conditions(element: Format) -> Conditions:
    """Return the kinds of codes: conditions of ``code`` and, of a number, ``kind``."""
    if not element.is_float:
        found = {"zero": "code == 0", "one": "code == 1"}
        found["largest"] = f"code == {constant(element.mask ^ element.sign_bit)}"
        found["smallest"] = f"code == {constant(element.sign_bit)}"
        found["minus one"] = f"code == {constant(element.mask)}"
        return found
    kept = f"((code & {constant(element.mask & ~element.sign_bit)}) >> {element.ignored_bits})"
    negative = f"(code & {constant(element.sign_bit)})"
    ignored = f"(code & {constant((1 << element.ignored_bits) - 1)})"
    hidden = 1 << element.fraction_bits
    return {
        "+0": f"{kept} == 0 && !{negative}",
        "-0": f"{kept} == 0 && {negative}",
        "subnormal": f"{kept} > 0 && {kept} < {constant(hidden)}",
        "smallest subnormal": f"{kept} == 1",
        "largest subnormal": f"{kept} == {constant(hidden - 1)}",
        "smallest normal number": f"{kept} == {constant(hidden if element.fraction_bits else 0)}",
        "largest finite number": f"{kept} == {constant(largest(element))}",
        "odd significand": f"kind == FINITE && {kept} % 2 == 1",
        "+Inf": f"kind == INFINITE && !{negative}",
        "-Inf": f"kind == INFINITE && {negative}",
        "NaN": "kind == NOT_A_NUMBER",
        "signaling NaN": (
            f"kind == NOT_A_NUMBER && !({kept} & {constant(1 << max(element.fraction_bits - 1, 0))})"
        ),
        "ignored bits set": f"kind == FINITE && {ignored}",
        "NaN in ignored bits only": f"kind == INFINITE && {ignored}",
    }


def special_dot(limits: Limits) -> Conditions:
    """Return the bins of causes of Inf and NaN: of ``w``, C as ``z``, and whether ``asked``."""
    alone = "w.count == 1 && z->kind == FINITE"
    two = "w.count == 2 && z->kind == FINITE"
    found = {
        "Inf * 0 alone": f"{alone} && w.inf_zero",
        "0 * Inf alone": f"{alone} && w.zero_inf",
        "NaN * 0 alone": f"{alone} && w.nan_zero",
        "0 * NaN alone": f"{alone} && w.zero_nan",
        "NaN of A alone": f"{alone} && w.nan_a",
        "NaN of B alone": f"{alone} && w.nan_b",
        "NaN times Inf alone": f"{alone} && w.nan_inf",
        "in the first place alone": f"{alone} && w.first",
        "in the last place alone": f"{alone} && w.last",
        "+Inf and -Inf products alone": f"{two} && w.plus == 1 && w.minus == 1",
        "Inf product beside Inf * 0": f"{two} && w.beside_invalid",
        "Inf product beside NaN": f"{two} && w.beside_nan",
        "Inf products of one sign in two steps": f"{two} && (w.steps_of_plus == 2 || w.steps_of_minus == 2)",
        "Inf products of both signs in two steps": f"{two} && w.plus && w.minus && !w.same_step",
        "Inf product beside C = NaN": "w.count == 1 && w.infinite && z->kind == NOT_A_NUMBER",
        "C = Inf beside Inf * 0": "w.count == 1 && w.invalid && z->kind == INFINITE",
        "C = Inf beside NaN": "w.count == 1 && w.nan && z->kind == INFINITE",
        "C = NaN alone": "w.count == 0 && z->kind == NOT_A_NUMBER",
    }
    for sign, kind, negative in (("+", "plus", "!"), ("-", "minus", "")):
        other = "-" if sign == "+" else "+"
        c_is = f"z->kind == INFINITE && {negative}z->negative"
        c_not = f"z->kind == INFINITE && {'' if negative else '!'}z->negative"
        found[f"{sign}Inf product alone"] = f"{alone} && w.{kind} == 1"
        found[f"two {sign}Inf products alone"] = f"{two} && w.{kind} == 2"
        found[f"C = {sign}Inf alone"] = f"w.count == 0 && {c_is}"
        found[f"{sign}Inf product and C = {sign}Inf"] = f"w.count == 1 && w.{kind} == 1 && {c_is}"
        found[f"{sign}Inf product against C = {other}Inf"] = f"w.count == 1 && w.{kind} == 1 && {c_not}"
    asked = {f"special: {name}": f"asked && !w.scale && {condition}" for name, condition in found.items()}
    finite = "asked && w.count == 0 && z->kind == FINITE"
    return asked | {
        "special: NaN of scale A alone": f"{finite} && nan_scale_a && !nan_scale_b",
        "special: NaN of scale B alone": f"{finite} && nan_scale_b && !nan_scale_a",
        "special: NaN scale of zero products": f"{finite} && w.scale && !scaled_nonzero",
        "special: product of subnormal numbers": "both_subnormal",
    }


def result_dot(limits: Limits) -> Conditions:
    """Return the bins of a result: of ``magnitude`` and ``negative``."""
    d, spare = limits.instruction.d, limits.instruction.d.fraction_bits + 1 - limits.output.precision
    if not d.is_float:
        return {}
    named = {
        "zero": 0,
        "smallest subnormal": 1 << spare,
        "smallest normal number": 1 << d.fraction_bits,
        "largest finite number": largest(d) & ~((1 << spare) - 1),
        "Inf": d.infinity,
    }
    infinity = constant(d.infinity)
    found = {
        f"result: {sign}{name}": f"magnitude == {constant(code)} && {negative}negative"
        for sign, negative in (("+", "!"), ("-", ""))
        for name, code in named.items()
    }
    found["result: NaN"] = f"magnitude > {infinity}"
    found["result: zero of nothing but negative zeros"] = "only_minus_zeros"
    found["overflow: a product beyond D's range, not the sum"] = f"beyond && magnitude < {infinity}"
    found["unselected B: NaN"] = f"magnitude <= {infinity} && unselected_nan"
    found["unselected B: Inf"] = f"magnitude < {infinity} && unselected_inf"
    return found


def is_scaled_group(limits: Limits) -> bool:
    """Return whether groups of products are scaled before they are aligned."""
    return isinstance(limits.rule, ScaledGroups)
