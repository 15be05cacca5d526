"""Cases by theme: chunks of corner cases and of random cases.

A chunk is a pure function of the instruction, the kind, the seed and its number: chunks can be made in any
order and on any machine, and the set is the same. Case ``i`` of the whole is of theme ``i % themes``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from ....base.cluster.distribution import in_order
from ....base.environment import in_default_environment
from ....isa.instruction import Instruction
from ...vectors.sets import VectorSet, make_vectors
from ..sums.limits import Limits, limits_of
from .assembly import joined_arguments
from .drafts import Draft
from .integer_themes import integer_themes
from .integer_themes import raw as raw_integers
from .placement import Place, arguments_of
from .themes import Theme, float_themes
from .themes_operands import narrow, ordinary, wide

if TYPE_CHECKING:
    from distributed import Client

_OUTPUTS = 1 << 15  # of a chunk, about
_ROUNDS = {True: 8, False: 32}  # of all themes in a chunk, at most: of floating-point forms, of others


def themes_of(instruction: Instruction, kind: str) -> tuple[Theme, ...]:
    """Return the themes of corner or random cases of an instruction."""
    limits = limits_of(instruction)
    if kind == "random":
        return (ordinary, narrow, wide) if instruction.a.is_float else (raw_integers,)
    return float_themes(limits) if instruction.a.is_float else integer_themes(limits)


def rounds_of(instruction: Instruction, kind: str) -> int:
    """Return how often each theme occurs in a chunk."""
    form = instruction
    outputs = form.shape.m * form.shape.n * form.products * len(themes_of(form, kind))
    return min(max(_OUTPUTS // outputs, 1), _ROUNDS[form.a.is_float])


@in_default_environment
def theme_chunk(
    instruction: Instruction, kind: str, seed: int, index: int, a_in: Place = "shared"
) -> VectorSet:
    """Return chunk number ``index`` of the corner or random cases of an instruction on its target."""
    limits: Limits = limits_of(instruction)
    themes, rounds = themes_of(instruction, kind), rounds_of(instruction, kind)
    parts = []
    for number, theme in enumerate(themes):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(index, number)))
        draft: Draft = theme(limits, rounds * instruction.products, rng)
        parts.append(arguments_of(instruction, draft, rng, a_in))
    order = np.arange(rounds * len(themes)).reshape(len(themes), rounds).T.ravel()
    labels = tuple(theme.__name__.replace("_", " ") for theme in themes) * rounds
    arguments: dict[str, Any] = {name: array[order] for name, array in joined_arguments(parts).items()}
    return make_vectors(instruction, title=kind, seed=seed, labels=labels, **arguments)


def theme_chunks(
    instruction: Instruction,
    kind: str,
    seed: int,
    a_in: Place = "shared",
    scheduler: str | Client | None = None,
) -> Iterator[VectorSet]:
    """Yield chunks without end, made on the cluster of a scheduler if given."""
    return in_order(theme_chunk, ((instruction, kind, seed, index, a_in) for index in count()), scheduler)
