"""Explanations as mistakes: what is applied, mended and named. Permutations that are tried by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from ..library.mistake import Mistake
from ..library.setting import Setting
from .linear_operands import unposed
from .naming import words
from .screening import EVERYWHERE, Candidates, alternatives, costs
from .solving import Explanation, explained


def bare_mistake(explanation: Explanation) -> Mistake:
    """Return an explanation as what is applied and mended, without words until they are asked for."""
    back, operand = explanation.inverse, explanation.operand.name
    return Mistake(
        name="",
        advice="",
        operands=tuple(operand) if operand == "cd" else (operand,),
        cost=explanation.cost,
        change=explanation.applied if operand != "d" else None,
        mend=None if back is None or operand == "d" else back.applied,
        read=explanation.stored if explanation.moves_d else None,
        describe=partial(named_mistake, explanation),
    )


def named_mistake(explanation: Explanation) -> Mistake:
    """Return an explanation as what a report names."""
    named = words(explanation)
    return replace(
        bare_mistake(explanation),
        name=named.headline,
        advice=named.advice,
        also=named.also,
        records=named.records,
        describe=None,
    )


def simple_maps(setting: Setting, most: float) -> Iterator[Mistake]:
    """Yield single maps of operands that are multiplied, up to a cost, cheapest first; not named yet."""
    for name in setting.instruction.operands:
        if name in "cd":
            continue
        operand = unposed(setting, name)
        every = alternatives(operand)
        cost = costs(operand, every)
        chosen = np.flatnonzero(cost <= most)
        maps = every.of(chosen[np.argsort(cost[chosen], kind="stable")])
        for number in range(len(chosen)):
            yield replace(bare_mistake(explained(operand, maps, number)), name=f"{name} {number}")


def permutations(setting: Setting, name: str, most: float) -> Iterator[Explanation]:
    """Yield the maps of an operand up to a cost that read every place once, the cheapest first."""
    operand = unposed(setting, name)
    chosen = np.flatnonzero((operand.atoms.cost > 0) & (operand.atoms.cost <= most))
    zeros = np.zeros(len(chosen), np.intp)
    maps = Candidates(zeros, chosen, zeros + EVERYWHERE)
    for number in range(len(chosen)):
        made = explained(operand, maps, number)
        if made.is_permutation:
            yield made
