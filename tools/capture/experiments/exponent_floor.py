"""From which exponent on small products are no longer aligned to the largest one: NUMERICS e_floor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from warpsim.execution.pipeline import rule_for
from warpsim.isa.architectures import FusedSum
from warpsim.isa.codes import values_of
from warpsim.isa.instruction import Instruction
from warpsim.vectors.sets import VectorSet

from ..candidates import Candidate, computing, model
from ..operands import Array, values, vector_set
from .experiment import Experiment, Trial, elements, representatives

_STEPS = 28  # halvings of the small product that are tried
_OTHERS = (-8, -2, -1, 1, 2, 7)  # distances from the floor of the model
_NONE = -1000


def candidates(rule: FusedSum) -> Iterator[Candidate]:
    """The model's floor, others, and none."""
    floor = rule.exponent_floor
    yield Candidate(
        name=f"floor {floor}", meaning=f"no term is aligned below exponent {floor}", arithmetic=model
    )
    for distance in _OTHERS:
        other = floor + distance
        changed = computing(rule=replace(rule, exponent_floor=other))
        yield Candidate(
            name=f"floor {other}", meaning=f"no term is aligned below exponent {other}", arithmetic=changed
        )
    changed = computing(rule=replace(rule, exponent_floor=_NONE))
    yield Candidate(
        name="no floor",
        meaning="terms are aligned to the largest exponent, however small",
        arithmetic=changed,
    )


def _sets(form: Instruction, rule: FusedSum) -> VectorSet:
    """One large product that decides the result alone, and a small one that changes it where it is kept.

    Where results are cut, the large one is the smallest number of D and the small one is against it; where
    they are rounded it is half of that, a tie, and the small one breaks it. Row r of case i halves the small
    one 16 i + r + 1 times.
    """
    smallest = form.d.minimum_exponent - form.d.fraction_bits
    large = smallest - int(rule.output.nearest)
    cases = -(-_STEPS // form.shape.m)
    step = 1 + np.arange(cases * form.shape.m).reshape(cases, form.shape.m)
    in_b = (large // 2, _deepest(form))  # exponents of B's two elements; A has the rest
    in_a = (np.full_like(step, large - in_b[0]), large - step - in_b[1])
    sign = 1.0 if rule.output.nearest else -1.0
    a = np.zeros((2 * cases, *form.matrix_shape("a")))
    b = np.zeros((2 * cases, *form.matrix_shape("b")))
    b[:, 0], b[:, 1] = np.ldexp(1.0, in_b[0]), np.ldexp(1.0, in_b[1])
    for half, direction in ((slice(0, cases), 1.0), (slice(cases, None), -1.0)):
        a[half, :, 0] = np.ldexp(direction, in_a[0])
        a[half, :, 1] = np.ldexp(sign * direction, in_a[1])
    c = np.zeros((2 * cases, *form.matrix_shape("c")))
    codes = [values(form.format(name), array) for name, array in zip("abc", (a, b, c), strict=True)]
    _check_exact(form, codes[0], a)
    labels = [f"{name} large product, case {i}" for name in ("positive", "negative") for i in range(cases)]
    return vector_set(form, *codes, title="exponent-floor", labels=labels)


def _deepest(form: Instruction) -> int:
    """An exponent for B that leaves A one that it can have, however small the product."""
    smallest = form.b.minimum_exponent - form.b.fraction_bits
    return max(smallest, -100)


def _check_exact(form: Instruction, codes: Array, wanted: Array) -> None:
    held = values_of(codes, form.a)
    assert ((held == wanted) | (held == 0)).all(), "an exponent that A does not have"


def _observed(outputs: VectorSet) -> Iterator[str]:
    form = outputs.instruction
    d = elements(form, outputs.d)[: len(outputs) // 2, :, 0].ravel()[:_STEPS]
    plain = int(d[-1])  # there the small product is far too small to count
    kept = [halvings for halvings, code in enumerate(d, 1) if int(code) != plain]
    yield f"the small product counts up to {max(kept, default=0)} halvings"


def _key(form: Instruction) -> object | None:
    observable = form.a.exponent_bits == 8 or form.d.name == "f16"
    if form.sparse or form.a.bits < 16 or not form.a.is_float or form.a.bits == 64 or not observable:
        return None
    return form.family.name, form.shape, form.operation, form.d


def trials(target: str) -> Iterator[Trial]:
    """The dense forms whose results can be so small."""
    for form in representatives(target, _key):
        rule = rule_for(form)
        assert isinstance(rule, FusedSum)
        yield Trial(vectors=_sets(form, rule), candidates=tuple(candidates(rule)), observe=_observed)


EXPONENT_FLOOR = Experiment(
    name="exponent-floor",
    question="how small may the exponent be to which the terms of a sum are aligned?",
    source="two models of published outputs agree on the floor since 2026, and did not before",
    answers="the floor that survives is exponent_floor of the rule in architectures.py",
    trials=trials,
)
