"""Variations of the NaN that is written: one for each cause, and which cause comes first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np

from warpsim.isa.instruction import Instruction
from warpsim.isa.products import Operands
from warpsim.isa.rules import Rule

from ..candidates import computing, paired, rule_compute
from ..experiments.experiment import Trial
from ..experiments.nan_payload import chained, is_nan, nan_patterns
from ..operands import Array, Rng
from .variation import Variation

_ORDERS = tuple(map("".join, permutations("abc")))


@dataclass(frozen=True, kw_only=True)
class Written:
    """The code where there is a NaN in a, b or c, the first in ``order``; ``made`` where there is none."""

    order: str
    a: int
    b: int
    c: int
    made: int


def written(operands: Operands, rule: Rule, *, codes: Written) -> Array:
    """Return codes of D."""
    form = operands.product
    found = rule_compute(operands, rule)
    nan = is_nan(found, form.d)
    b = is_nan(paired(operands, operands.b), form.b).any(axis=2)
    causes = {
        "a": np.broadcast_to(is_nan(operands.a, form.a).any(axis=2)[..., None], nan.shape),
        "b": np.broadcast_to(b, nan.shape),
        "c": is_nan(operands.c, form.c),
    }
    kind = form.d.code_dtype.type
    result = np.where(nan, kind(codes.made), found)
    for name in reversed(codes.order):
        result = np.where(nan & causes[name], kind(getattr(codes, name)), result)
    return result


def settled(form: Instruction, codes: Written) -> Any:
    """One code where all causes that the form has write the same."""
    causes = {"c": codes.c}
    causes |= {name: getattr(codes, name) for name in "ab" if form.format(name).has_nan}
    if form.a.has_infinity or form.b.has_infinity:
        causes["made"] = codes.made
    return causes["c"] if len(set(causes.values())) == 1 else (codes.order, tuple(sorted(causes.items())))


def variations(trial: Trial, count: int, rng: Rng) -> Iterator[Variation]:
    """So many; of f64 chains among them, which hand on the NaN that they meet first."""
    form, seen = trial.form, set[Any]()
    patterns = list(nan_patterns(form.d).values())
    while len(seen) < count:
        codes = _drawn(rng, form, patterns)
        chain = form.a.bits == 64 and len(seen) % 2 == 0
        key: Any = ("chain", codes.order, codes.made) if chain else settled(form, codes)
        if key in seen:
            continue
        seen.add(key)
        computed = (
            partial(chained, order=codes.order, invalid=codes.made)
            if chain
            else partial(written, codes=codes)
        )
        yield Variation(name=str(codes), arithmetic=computing(computed), key=key)


def listed(trial: Trial) -> dict[str, Any]:
    """Return the keys of the candidates but 'C's'."""
    patterns = nan_patterns(trial.form.d)
    found: dict[str, Any] = dict(patterns)
    for name, invalid in patterns.items():
        found |= {f"first of {order}, {name}": ("chain", order, invalid) for order in _ORDERS}
    return {
        candidate.name: found[candidate.name] for candidate in trial.candidates if candidate.name in found
    }


def _drawn(rng: Rng, form: Instruction, patterns: list[int]) -> Written:
    fraction = form.d.fraction_bits
    random = [
        form.d.infinity | int(rng.integers(1, 1 << fraction)) | int(rng.choice([0, form.d.sign_bit]))
        for _ in range(2)
    ]
    pool = [*patterns, *random]
    a, b, c, made = (pool[int(place)] for place in rng.integers(0, len(pool), 4))
    return Written(order=_ORDERS[int(rng.integers(6))], a=a, b=b, c=c, made=made)
