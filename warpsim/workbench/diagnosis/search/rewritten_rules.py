"""D that comes of another arithmetic than the chip's: a rewrite of the rule's program gives every bit.

Some elements screen. Few wrong elements are no evidence: some rewrite has them by chance.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ....isa.fragments import codes_from
from ....isa.instruction import Instruction
from ....sums.execution.pipeline import rule_for
from ....sums.rule_programs.program_rewrites import Rewrite, rewrites, rewritten
from ...generation.sums.limits import limits_of
from ...generation.sums.program_sums import inputs_of, program_codes
from ...generation.sums.rewrite_words import rewrite_words
from ..library.arithmetic_mistakes import Arithmetic, as_tiles, gathered_operands
from ..library.mistake import Mistake
from .mistake_search import Case

_EVIDENCE = 3  # wrong elements
_SCREENED = 48  # wrong elements, and as many right


def rewritten_rules(case: Case, equal: npt.NDArray[np.bool_]) -> tuple[list[Mistake], int]:
    """Return the rewrites that give some elements of D, the simplest first, and how many were tried.

    ``equal (tiles, [products,] m, n)`` marks elements that are as expected.
    """
    form = case.setting.instruction
    if form.target is None or int((~equal).sum()) < _EVIDENCE:
        return [], 0
    rule = rule_for(form).bare
    operands = as_tiles(gathered_operands(case.setting, form, case.registers))
    kinds = [np.flatnonzero(flags) for flags in (~equal, equal)]
    spread = [np.linspace(0, len(at) - 1, min(_SCREENED, len(at))).astype(int) for at in kinds]
    at = np.concatenate([numbers[chosen] for numbers, chosen in zip(kinds, spread, strict=True)])
    inputs = inputs_of(operands, at)
    wanted = codes_from(case.actual, form, "d").reshape(-1)[at]
    every = rewrites(rule, form.product)
    found = list[Mistake]()
    for each in every:
        made = program_codes(rewritten(rule, form.product, each), inputs).astype(wanted.dtype)
        if (case.settled(made, wanted) == wanted).all():
            found.append(_mistake(form, each))
    return found, len(every)


def _mistake(form: Instruction, rewrite: Rewrite) -> Mistake:
    name = rewrite_words(limits_of(form), rewrite)
    return Mistake(
        name=f"arithmetic: {name}",
        advice=_advice(form, rewrite.kind, rewrite.facts),
        operands=(),
        records=((rewrite.kind, dict(rewrite.facts)),),
        cost=rewrite.cost + _MORE,
        arithmetic=Arithmetic(instruction=form, rewrite=rewrite),
    )


_MORE = 1.0  # than the cost of a rewrite: of saying that the arithmetic is another


def _advice(form: Instruction, kind: str, facts: Any) -> str:
    if kind == "step":
        shape = replace(form.shape, k=form.shape.k * facts["size"] // form.stored_k)
        return f"sums are rounded after every {facts['size']} products, as several of {shape} do in sequence"
    return "no chip sums so: compare with the arithmetic of the unit, or of the program, that computed D"
