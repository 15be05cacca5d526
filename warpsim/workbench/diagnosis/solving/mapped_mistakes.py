"""Explanations as mistakes: what is applied, mended and named. Simple maps, that are tried by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np

from ..library.grids import Setting
from ..library.mistake import Mistake
from .linear_operands import Operand, unposed
from .naming import words
from .screening import EVERYWHERE, Candidates
from .solving import Explanation, explained

_SIMPLE = 2.0  # cost of the maps that are tried by themselves


def bare_mistake(explanation: Explanation) -> Mistake:
    """Return an explanation as what is applied and mended, without words."""
    back, operand = explanation.inverse, explanation.operand.name
    return Mistake(
        name="",
        advice="",
        operands=tuple(operand) if operand == "cd" else (operand,),
        cost=explanation.cost,
        change=explanation.applied if operand != "d" else None,
        mend=None if back is None or operand == "d" else back.applied,
        read=explanation.stored if explanation.moves_d else None,
        undo=back.stored if back is not None and explanation.moves_d else None,
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
    )


@lru_cache(maxsize=64)
def simple_maps(setting: Setting, operand: str) -> tuple[Mistake, ...]:
    """Return the permutations of an operand's places whose description is short, each with its words."""
    return tuple(map(named_mistake, _permutations(unposed(setting, operand))))


def _permutations(operand: Operand) -> Iterator[Explanation]:
    """Yield the cheap maps that read every place once."""
    chosen = np.flatnonzero((operand.atoms.cost > 0) & (operand.atoms.cost <= _SIMPLE))
    zeros = np.zeros(len(chosen), np.intp)
    maps = Candidates(zeros, chosen, zeros + EVERYWHERE)
    for number in range(len(chosen)):
        made = explained(operand, maps, number)
        if made.is_permutation:
            yield made
