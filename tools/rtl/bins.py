"""Coverage bins: the situations that a sum can be in, and why some configurations have no such sum.

A bin that a configuration cannot reach says why; one that is hit all the same is a mistake in the reason,
and fails the run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log2

from warpsim.sums.arithmetic.reference import Kind

from . import events
from .configuration import Configuration, highest_exponent
from .events import Event

Test = Callable[[Event], bool]
Reason = Callable[[Configuration], str]  # why no operands lead there; "" where some do


@dataclass(frozen=True, kw_only=True)
class Bin:
    """A situation: its name, whether a clock is in it, and why some configurations have no such clock."""

    name: str
    test: Test
    unreachable: Reason


# --- why not ---------------------------------------------------------------------------------------


def _reachable(configuration: Configuration) -> str:
    return ""


def _span(gap: Callable[[int], int]) -> Reason:
    """Return exponents lie at most so far apart."""

    def reason(configuration: Configuration) -> str:
        lowest = min(configuration.lowest_product, configuration.result.minimum_exponent)
        span = max(configuration.highest_product, highest_exponent(configuration.result)) - lowest
        return "" if span >= gap(configuration.rule.fraction_bits) else f"exponents span {span}"

    return reason


def _narrow(low: int, high: int) -> Reason:
    """No gap lies in a range of F + low to high."""

    def reason(configuration: Configuration) -> str:
        fraction_bits = configuration.rule.fraction_bits
        return "" if fraction_bits + low <= high else f"F is {fraction_bits}"

    return reason


def _floor(configuration: Configuration) -> str:
    floor = configuration.rule.exponent_floor
    return "" if configuration.lowest_product < floor else f"no product is below the floor, 2^{floor}"


def _tiny_bits(configuration: Configuration) -> str:
    """Return bits below the smallest result come from products, or from a C that has more bits than D."""
    form, rule = configuration.instruction, configuration.rule
    smallest = form.d.minimum_exponent - (rule.output.precision - 1)
    finest = configuration.lowest_product - form.a.fraction_bits - form.b.fraction_bits
    products = max(finest, rule.exponent_floor - rule.fraction_bits) < smallest
    c = rule.fraction_bits >= rule.output.precision <= form.d.fraction_bits
    return "" if products or c else f"no sum has bits below the smallest result, 2^{smallest}"


def _overflow(configuration: Configuration) -> str:
    output, top = configuration.rule.output, highest_exponent(configuration.result)
    rounds_up = output.nearest and output.precision <= configuration.result.fraction_bits
    seen = configuration.highest_product + 1 >= top - configuration.rule.fraction_bits
    return "" if seen or rounds_up else "beside the largest C every product is cut off"


def _topmost_bit(configuration: Configuration) -> str:
    """Return the adder is as wide as if all terms reached 4; whether the largest sum needs its last bit."""
    form, length = configuration.instruction, configuration.length
    product = (2 - 2.0**-form.a.fraction_bits) * (2 - 2.0**-form.b.fraction_bits)
    largest, last = length * product + 2, 2 ** (1 + ceil(log2(length + 1)))
    return "" if largest > last else f"sums stay below {largest:.1f} units, the bit is worth {last}"


def _to_nearest(configuration: Configuration) -> str:
    return "" if configuration.rule.output.nearest else "rounds toward zero"


def _one_clock(configuration: Configuration) -> str:
    return "" if configuration.clocks > 1 else "one clock makes a dot product"


def _dense(configuration: Configuration) -> str:
    return "" if configuration.instruction.sparse else "dense"


def _ordered(configuration: Configuration) -> str:
    return "metadata is ordered" if configuration.instruction.ordered else _dense(configuration)


def _no_infinity(*operands: str) -> Reason:
    """None of the operands has one."""

    def reason(configuration: Configuration) -> str:
        formats = [configuration.instruction.format(operand) for operand in operands]
        having = [element for element in formats if element.has_infinity]
        return "" if having else f"{formats[0]} has no Inf"

    return reason


def _ieee(configuration: Configuration) -> str:
    """Return IEEE formats keep the largest exponent field for Inf and NaN."""
    element = configuration.instruction.a
    return f"{element} keeps that exponent for Inf" if element.has_infinity else ""


# --- the bins --------------------------------------------------------------------------------------


def _bin(name: str, test: Test, unreachable: Reason = _reachable) -> Bin:
    return Bin(name=name, test=test, unreachable=unreachable)


def _fraction_bits(event: Event) -> int:
    return event.configuration.rule.fraction_bits


_ALIGNMENT = (
    _bin("gap: 0, several terms on top", lambda e: e.gaps.count(0) > 1),
    _bin("gap: 1 to F - 1", lambda e: events.at_gap(e, 1, _fraction_bits(e) - 1)),
    _bin("gap: F", lambda e: events.at_gap(e, _fraction_bits(e), _fraction_bits(e)), _span(lambda f: f)),
    _bin("gap: F + 1, a bit is kept", lambda e: events.just_beyond(e, kept=True), _span(lambda f: f + 1)),
    _bin("gap: F + 1, all is lost", lambda e: events.just_beyond(e, kept=False), _span(lambda f: f + 1)),
    _bin("gap: F + 2 to 31", lambda e: events.at_gap(e, _fraction_bits(e) + 2, 31), _narrow(2, 31)),
    _bin("gap: 32 or more", lambda e: any(gap >= 32 for gap in e.gaps), _span(lambda f: 32)),
    _bin("largest: a product", lambda e: events.largest(e) == (True, False)),
    _bin("largest: C", lambda e: events.largest(e) == (False, True)),
    _bin("largest: a product and C", lambda e: events.largest(e) == (True, True)),
    _bin("largest: the exponent floor", lambda e: bool(e.gaps) and min(e.gaps) > 0, _floor),
    _bin("largest: of a zero, ignored", events.zero_above),
    _bin("largest: a product of 2 or more", events.wide_product),
    _bin("cut: a positive product", lambda e: events.cuts(e, negative=False)),
    _bin("cut: a negative product", lambda e: events.cuts(e, negative=True)),
    _bin("cut: C", events.cuts_c),
    _bin("cut: several terms", lambda e: len(e.cut) > 1),
)
_SUM = (
    _bin("sum: cancels to zero", lambda e: not e.total and e.finite and any(e.step.kept)),
    _bin("sum: cancels to the last bit", lambda e: abs(e.total) == 1 and sum(map(abs, e.step.kept)) > 1),
    _bin("sum: 8 leading bits cancel", lambda e: 0 < abs(e.total) < max(map(abs, e.step.kept)) >> 8),
    _bin("sum: negative", lambda e: e.total < 0),
    _bin("sum: carries past one term", lambda e: events.units(e) >= 4),
    _bin("sum: carries into the topmost bit", events.uses_topmost_bit, _topmost_bit),
)
_ROUNDING = (
    _bin("rounding: exact", lambda e: e.total != 0 and not e.discarded),
    _bin("rounding: less than half", lambda e: e.discarded == 1),
    _bin("rounding: half, even", lambda e: e.discarded == 2 and e.magnitude % 2 == 0),
    _bin("rounding: half, odd", lambda e: e.discarded == 2 and e.magnitude % 2 == 1),
    _bin("rounding: more than half", lambda e: e.discarded == 3),
    _bin("rounding: negative, inexact", lambda e: e.discarded > 0 and e.total < 0),
    _bin("rounding: carries into the exponent", events.rounding_carries, _to_nearest),
)
_RESULT = (
    _bin("result: normal", lambda e: e.finite and not e.subnormal),
    _bin("result: subnormal, exact", lambda e: e.subnormal and e.total != 0 and not e.discarded),
    _bin("result: subnormal, inexact", lambda e: e.subnormal and e.code != 0 and e.discarded > 0, _tiny_bits),
    _bin("result: rounds to +0", lambda e: e.total > 0 and e.code == 0, _tiny_bits),
    _bin("result: negative, rounds to +0", lambda e: e.total < 0 and e.code == 0, _tiny_bits),
    _bin("result: +0 of zeros", lambda e: e.finite and events.all_zero(e)),
    _bin("result: +0 of negative zeros", events.all_negative_zero),
    _bin("result: overflows to Inf", lambda e: e.finite and e.infinite, _overflow),
)
_OPERANDS = (
    _bin("operand: subnormal A", lambda e: events.any_subnormal(e.a, e.configuration.instruction.a)),
    _bin("operand: subnormal B", lambda e: events.any_subnormal(e.b, e.configuration.instruction.b)),
    _bin("operand: subnormal C", lambda e: events.any_subnormal([e.c], e.configuration.result)),
    _bin("operand: A beyond IEEE formats", events.beyond_ieee, _ieee),
    _bin("operand: C = 0", lambda e: e.finite and not e.c.significand and bool(e.gaps)),
    _bin("special: NaN in A only", lambda e: events.only_special(e, e.a)),
    _bin("special: NaN in B only", lambda e: events.only_special(e, e.b)),
    _bin("special: quiet NaN in C only", lambda e: events.nan_in_c(e, quiet=True)),
    _bin("special: signalling NaN in C only", lambda e: events.nan_in_c(e, quiet=False)),
    _bin("special: signalling NaN in A only", events.signalling_nan_in_a, _no_infinity("a")),
    _bin("special: Inf times zero", events.infinity_times_zero, _no_infinity("a", "b")),
    _bin(
        "special: Inf product",
        lambda e: len(e.infinities[0]) == 1 and not e.infinities[1],
        _no_infinity("a", "b"),
    ),
    _bin("special: Inf minus Inf", lambda e: len(e.infinities[0]) == 2, _no_infinity("a", "b")),
    _bin(
        "special: Inf product and C = -Inf",
        lambda e: len(e.infinities[0]) == 1 and len(e.infinities[0] | e.infinities[1]) == 2,
        _no_infinity("a", "b"),
    ),
    _bin("special: C = Inf", lambda e: bool(e.infinities[1]) and not e.infinities[0]),
)
_CHAIN = (
    _bin(
        "chain: partial sum, finite", lambda e: e.clock > 0 and e.finite and e.c.significand > 0, _one_clock
    ),
    _bin("chain: partial sum, Inf", lambda e: e.clock > 0 and e.c.kind is Kind.INFINITE, _one_clock),
    _bin("chain: partial sum, NaN", lambda e: e.clock > 0 and e.c.kind is Kind.NAN, _one_clock),
)
_METADATA = (
    _bin("metadata: Inf or NaN not selected", events.special_not_selected, _dense),
    *(
        _bin(
            f"metadata: field {first | second << 2:#06b}",
            lambda e, field=first | second << 2: events.has_field(e, field),  # type: ignore[misc]
            _dense if first < second else _ordered,
        )
        for second in range(4)
        for first in range(4)
        if first != second
    ),
)

BINS: tuple[Bin, ...] = (*_ALIGNMENT, *_SUM, *_ROUNDING, *_RESULT, *_OPERANDS, *_CHAIN, *_METADATA)
NAMES = {place.name: place for place in BINS}
