"""What corner cases of floating-point forms are about: a theme a function, each directed at one corner.

A theme drafts tiles (see drafts.py) for the arithmetic of an instruction on its target: it knows formats
and the rule's numbers, and never how a result is computed. As in TestFloat few operands are random: most
sit where rules with slightly different numbers part.
"""

from __future__ import annotations

from collections.abc import Callable

from ....isa.rules import (
    FusedSum,
    ScaledGroups,
)
from ..sums.limits import Limits
from ..sums.reasons import zero_c_reason
from .corner_codes import Rng
from .drafts import Draft
from .themes_alignment import (
    chains,
    counterweights,
    floor_crowds,
    gaps,
    group_gaps,
    leaders,
    leading_carries,
    leading_zeros,
    zero_products,
)
from .themes_operands import (
    crowds,
    narrow,
    raw,
    scale_extremes,
    signed_zeros,
    singles,
    specials,
    subnormals,
    wide,
    zero_scales,
)
from .themes_rounding import cancellations, carries, edges, floors, least_accumulators, overflows, ties
from .themes_specials import lone_places, sole_causes, special_scales

Theme = Callable[[Limits, int, Rng], Draft]

FLOATS: tuple[Theme, ...] = (
    gaps, chains, carries, cancellations, ties, edges, floors, overflows, zero_products,
    subnormals, signed_zeros, singles, crowds, specials, sole_causes, narrow, wide, raw,
)  # fmt: skip

THEMES: dict[type[FusedSum | ScaledGroups | None], tuple[Theme, ...]] = {  # of what a rule aligns
    FusedSum: (counterweights, leading_zeros, leading_carries, leaders),
    ScaledGroups: (group_gaps,),
    type(None): (),
}


def float_themes(limits: Limits) -> tuple[Theme, ...]:
    """Return the themes of a floating-point form."""
    scale = limits.instruction.scale
    found = list(FLOATS)
    found[1:1] = THEMES[type(limits.rule.aligned)]
    form = limits.instruction
    if any(x.has_nan or x.has_infinity for x in (form.a, form.b)):
        found.append(lone_places)
    if limits.step is not None and not zero_c_reason(limits):
        found.append(least_accumulators)
    if scale is not None:
        found += [scale_extremes, special_scales]
        if isinstance(limits.rule, FusedSum):
            found.append(floor_crowds)
        if scale.fraction_bits:
            found.append(zero_scales)
    return tuple(found)
