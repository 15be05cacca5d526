"""What makes an Inf or a NaN: bins of the outputs in which one cause decides the result, and no other.

A cause is one product, a pair of products, a product and C, C alone or a scale; every other term is finite,
and no sum on the way is too large. A model that misreads the cause has another D. Looks at operands
alone; which sum follows does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ....base.errors import present
from ....isa.formats import Format
from ....isa.products import Operands
from ....isa.rules import ScaledGroups
from ..sums import reasons
from ..sums.exact_numbers import FINITE, INFINITE, NOT_A_NUMBER, Array, decode
from ..sums.factors import Factors
from ..sums.limits import Limits
from ..sums.summing import Sums

Mask = tuple[str, Array]
Reason = str
Causes = dict[str, Array]  # of some outputs: which products (outputs, stored) are what


# --- which there are ---------------------------------------------------------------------------------


def special_bins(limits: Limits) -> Iterator[tuple[str, Reason]]:
    """Yield the bins of a floating-point form, and why its formats lack some."""
    form = limits.instruction
    a, b, scale = form.a, form.b, form.scale
    infinite = reasons.no_infinity(a, b)
    one_nan = "" if a.has_nan or b.has_nan else f"{a} and {b} have no NaN"
    meet = (a.has_nan and b.has_infinity) or (a.has_infinity and b.has_nan)
    nan_times_inf = "" if meet else f"NaN of {a} or {b} meets no Inf of the other"
    anything = "" if not (infinite and one_nan) else "products are finite"
    yield "special: Inf * 0 alone", reasons.no_infinity(a)
    yield "special: 0 * Inf alone", reasons.no_infinity(b)
    yield "special: NaN * 0 alone", _no_nan(a)
    yield "special: 0 * NaN alone", _no_nan(b)
    yield "special: NaN of A alone", _no_nan(a)
    yield "special: NaN of B alone", _no_nan(b)
    yield "special: NaN times Inf alone", nan_times_inf
    for place in ("first", "last"):
        yield f"special: in the {place} place alone", anything
    for sign in "+-":
        yield f"special: {sign}Inf product alone", infinite
        yield f"special: two {sign}Inf products alone", infinite
        yield f"special: {sign}Inf product and C = {sign}Inf", infinite
        yield f"special: {sign}Inf product against C = {'-' if sign == '+' else '+'}Inf", infinite
        yield f"special: C = {sign}Inf alone", ""
    yield "special: +Inf and -Inf products alone", infinite
    if limits.steps > 1:
        yield "special: Inf products of one sign in two steps", infinite
        yield "special: Inf products of both signs in two steps", infinite
    yield "special: Inf product beside Inf * 0", infinite
    yield "special: Inf product beside NaN", infinite or one_nan
    yield "special: Inf product beside C = NaN", infinite
    yield "special: C = Inf beside Inf * 0", infinite
    yield "special: C = Inf beside NaN", one_nan
    yield "special: C = NaN alone", ""
    if scale is not None:
        for name in ("NaN of scale A alone", "NaN of scale B alone", "NaN scale of zero products"):
            yield f"special: {name}", _no_nan(scale)
    yield "special: product of subnormal numbers", ""


def _no_nan(element: Format) -> Reason:
    return "" if element.has_nan else f"{element} has no NaN"


# --- which are hit -----------------------------------------------------------------------------------


def special_masks(operands: Operands, factors: Factors, done: Sums, limits: Limits) -> Iterator[Mask]:
    """Yield the bins that outputs hit."""
    asked = _with_special_operands(factors) & ~_overflows(done)
    some = factors.chosen(asked, whole=True)
    causes = _causes(some)
    c = (some.c.special, some.c.negative)
    two = (causes["count"] == 2) & (c[0] == FINITE)
    found = (
        *_product_bins(causes, c[0] != FINITE, limits),
        *_step_bins(causes, two, limits),
        *_accumulator_bins(causes, *c),
    )
    for name, hit in found:
        yield f"special: {name}", _spread(asked, hit & ~causes["scale"].any(-1))
    if factors.scales is not None:
        finite = (causes["count"] == 0) & (c[0] == FINITE)
        for name, hit in _scale_bins(operands, asked, some):
            yield f"special: {name}", _spread(asked, hit & finite)


def _spread(asked: Array, hit: Array) -> Array:
    found = np.zeros(asked.shape, np.bool_)
    found[asked] = hit
    return found


def _with_special_operands(factors: Factors) -> Array:
    """Return outputs with an Inf or a NaN among their operands."""
    found = (factors.products.special != FINITE).any(-1) | (factors.c.special != FINITE)
    if factors.scales is not None:
        found = found | (factors.scales.special != FINITE).any(-1)
    return np.asarray(found)


def _overflows(done: Sums) -> Array:
    """Return outputs of which a sum of finite terms is too large."""
    found = np.zeros(done.code.shape, np.bool_)
    for step in done.steps:
        finite = present(step.special, "special") == FINITE
        found |= finite & present(step.rounded, "rounded").overflow
    return found


def _causes(some: Factors) -> Causes:
    """Return which products are what, by name; how many are special (``count``), and which scales are."""
    a, b = some.a.special, some.b.special
    zero_a, zero_b = ~some.a.nonzero.astype(np.bool_), ~some.b.nonzero.astype(np.bool_)
    negative = some.a.negative ^ some.b.negative
    invalid = ((a == INFINITE) & zero_b) | (zero_a & (b == INFINITE))
    nan = (a == NOT_A_NUMBER) | (b == NOT_A_NUMBER)
    infinite = ((a == INFINITE) | (b == INFINITE)) & ~invalid & ~nan
    scales = some.scales
    return {
        "Inf * 0": (a == INFINITE) & zero_b,
        "0 * Inf": zero_a & (b == INFINITE),
        "NaN * 0": (a == NOT_A_NUMBER) & zero_b,
        "0 * NaN": zero_a & (b == NOT_A_NUMBER),
        "NaN of A": (a == NOT_A_NUMBER) & (b == FINITE) & ~zero_b,
        "NaN of B": (b == NOT_A_NUMBER) & (a == FINITE) & ~zero_a,
        "NaN times Inf": nan & ((a == INFINITE) | (b == INFINITE)),
        "+Inf product": infinite & ~negative,
        "-Inf product": infinite & negative,
        "invalid": invalid,
        "NaN": nan,
        "Inf": infinite,
        "special": invalid | nan | infinite,
        "count": (invalid | nan | infinite).sum(-1),
        "scale": np.zeros((len(a), 1), np.bool_) if scales is None else scales.special != FINITE,
    }


_ALONE = ("Inf * 0", "0 * Inf", "NaN * 0", "0 * NaN", "NaN of A", "NaN of B", "NaN times Inf")


def _product_bins(causes: Causes, c: Array, limits: Limits) -> Iterator[Mask]:
    """Yield bins of one product, or of two; C is finite (``c`` marks where it is not)."""
    single, two = (causes["count"] == 1) & ~c, (causes["count"] == 2) & ~c
    for name in (*_ALONE, "+Inf product", "-Inf product"):
        yield f"{name} alone", single & causes[name].any(-1)
    for name, place in (("first", 0), ("last", -1)):
        yield f"in the {name} place alone", single & causes["special"][..., place]
    plus, minus = causes["+Inf product"].sum(-1), causes["-Inf product"].sum(-1)
    yield "two +Inf products alone", two & (plus == 2)
    yield "two -Inf products alone", two & (minus == 2)
    yield "+Inf and -Inf products alone", two & (plus == 1) & (minus == 1)
    yield "Inf product beside Inf * 0", two & _both_causes(causes, "Inf", "invalid", limits)
    yield "Inf product beside NaN", two & _both_causes(causes, "Inf", "NaN", limits)


def _both_causes(causes: Causes, first: str, other: str, limits: Limits) -> Array:
    """Return outputs with both, in one step where products of a step are added at once."""
    groups = limits.groups if limits.step is not None else limits.groups * 0
    if isinstance(limits.rule, ScaledGroups):
        groups = groups * 0
    of_steps = [np.flatnonzero(groups == group) for group in range(groups.max() + 1)]
    flags: Array = np.logical_or.reduce(
        [causes[first][..., step].any(-1) & causes[other][..., step].any(-1) for step in of_steps]
    )
    return flags


def _step_bins(causes: Causes, two: Array, limits: Limits) -> Iterator[Mask]:
    """Yield two Inf products that are added in different steps."""
    if limits.steps == 1:
        return
    signs = [
        [causes[name][..., limits.groups == group].any(-1) for group in range(limits.groups.max() + 1)]
        for name in ("+Inf product", "-Inf product")
    ]
    plus, minus = np.stack(signs[0], -1), np.stack(signs[1], -1)
    yield "Inf products of one sign in two steps", two & ((plus.sum(-1) == 2) | (minus.sum(-1) == 2))
    apart = plus.any(-1) & minus.any(-1) & ~(plus & minus).any(-1)
    yield "Inf products of both signs in two steps", two & apart


def _accumulator_bins(causes: Causes, special: Array, negative: Array) -> Iterator[Mask]:
    """Yield C alone, or C and one product."""
    none, single = causes["count"] == 0, causes["count"] == 1
    infinite = {"+": (special == INFINITE) & ~negative, "-": (special == INFINITE) & negative}
    nan = special == NOT_A_NUMBER
    for sign, other in ("+-", "-+"):
        product = single & causes[f"{sign}Inf product"].any(-1)
        yield f"C = {sign}Inf alone", none & infinite[sign]
        yield f"{sign}Inf product and C = {sign}Inf", product & infinite[sign]
        yield f"{sign}Inf product against C = {other}Inf", product & infinite[other]
    yield "C = NaN alone", none & nan
    yield "Inf product beside C = NaN", single & nan & causes["Inf"].any(-1)
    yield "C = Inf beside Inf * 0", single & (special == INFINITE) & causes["invalid"].any(-1)
    yield "C = Inf beside NaN", single & (special == INFINITE) & causes["NaN"].any(-1)


def _scale_bins(operands: Operands, asked: Array, some: Factors) -> Iterator[Mask]:
    """Yield a NaN of one of the scales."""
    scale = present(operands.product.scale, "scale")
    nan: Callable[[Array], Array] = lambda codes: decode(codes, scale).special == NOT_A_NUMBER  # noqa: E731
    of_a = np.broadcast_to(nan(present(operands.scale_a, "scale a")).any(-1)[:, :, None], asked.shape)[asked]
    of_b = np.broadcast_to(nan(present(operands.scale_b, "scale b")).any(-2)[:, None, :], asked.shape)[asked]
    yield "NaN of scale A alone", of_a & ~of_b
    yield "NaN of scale B alone", of_b & ~of_a
    scaled = present(some.scales, "scales").special == NOT_A_NUMBER
    yield "NaN scale of zero products", scaled.any(-1) & ~(scaled & some.products.nonzero).any(-1)
