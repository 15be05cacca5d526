"""Variations of sums of 4-bit products with scales: other groups, and other numbers of bits that are kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from warpsim.isa.families.tcgen05 import with_numerics
from warpsim.isa.rules import Rule, ScaledGroups, ScaledQuads
from warpsim.sums.execution.pipeline import rule_for

from ..candidates import computing
from ..experiments.experiment import Trial
from ..operands import Rng
from .variation import Variation

_GROUPS = (1, 2, 4, 8, 16)


def _key(rule: Rule) -> Any:
    """Return the numbers of a rule."""
    if isinstance(rule, ScaledQuads):
        return rule.group, rule.outranked, rule.fraction_bits, rule.product_bits
    assert isinstance(rule, ScaledGroups)
    return rule.group, rule.fraction_bits, rule.exponent_floor


def _public(trial: Trial) -> ScaledQuads:
    """Return the rule of the public model."""
    rule = rule_for(with_numerics(trial.form, "groups_of_4"))
    assert isinstance(rule, ScaledQuads)
    return rule


def listed(trial: Trial) -> dict[str, Any]:
    """Return the keys of the candidates."""
    found = {"groups of 16": _key(rule_for(trial.form))}
    return found | {f"groups of {each}": _key(replace(_public(trial), group=each)) for each in (4, 2, 8)}


def variations(trial: Trial, count: int, rng: Rng) -> Iterator[Variation]:
    """Yield so many, half of them with groups cut as the model cuts them."""
    for number in range(count):
        bits = int(rng.integers(26, 45))
        rule: Rule
        if number % 2:
            rule = replace(rule_for(trial.form), fraction_bits=bits)  # type: ignore[call-arg]
        else:
            group, times = int(rng.choice(_GROUPS)), int(rng.choice((1, 2, 4)))
            more = {"outranked": group * times, "product_bits": bits + int(rng.integers(0, 8))}
            rule = replace(_public(trial), group=group, fraction_bits=bits, **more)
        name = f"{type(rule).__name__} {_key(rule)}"
        yield Variation(name=name, arithmetic=computing(rule=rule), key=_key(rule))
