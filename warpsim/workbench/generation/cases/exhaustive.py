"""All pairs of codes: every code of A times every code of B, in every position along k, nothing else.

For formats of at most eight bits. Rows of A have different codes, columns of B too, so that an instruction
multiplies ``m * n`` pairs at once; all other elements and C are zero. Block-scaled forms have all pairs of
scale codes as well, in every chunk, at products of 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np

from ....base.environment import in_default_environment
from ....base.errors import OperandError, present
from ....isa.formats import Format
from ....isa.instruction import Instruction
from ...vectors.sets import VectorSet, make_vectors
from ..sums.exact_numbers import Array
from ..sums.limits import limits_of
from .drafts import Draft
from .placement import Place, arguments_of

_WIDEST = 8  # bits of a format whose pairs of codes are enumerated
_CHUNK = 128  # cases
_OUTPUTS = 1 << 16  # of a chunk, at most


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is enumerated: ``blocks`` of rows and columns of codes for each of the ``places``."""

    instruction: Instruction
    codes: tuple[int, int]  # of A and of B
    blocks: tuple[int, int]  # that hold them, m and n at a time
    places: int
    scales: int  # cases of scale pairs after those

    @property
    def cases(self) -> int:
        """Cases of the whole."""
        return self.places * self.blocks[0] * self.blocks[1] + self.scales

    def __str__(self) -> str:
        form = self.instruction
        pairs = f"all {self.codes[0]} x {self.codes[1]} pairs of {form.a} and {form.b} codes"
        text = f"{pairs} in each of {self.places} positions, C zero"
        if form.scale is None:
            return text
        values = 1 << form.scale.bits
        scales = f"all {values} x {values} pairs of {form.scale} scales in each of {form.scale_chunks} chunks"
        return f"{text}; {scales}"


def plan_of(instruction: Instruction) -> Plan:
    """Return what the exhaustive cases of an instruction are; raises OperandError where they are too many."""
    form = instruction
    for side in "ab":
        element = form.format(side)
        if element.bits > _WIDEST:
            raise OperandError(
                f"{element} has 2**{element.bits} codes: exhaustive vectors are for formats of at most "
                f"{_WIDEST} bits; use --kind corner"
            )
    codes = (1 << form.a.bits, 1 << form.b.bits)
    blocks = (ceil(codes[0] / form.shape.m), ceil(codes[1] / form.shape.n))
    scales = 0
    if form.scale is not None:
        values = 1 << form.scale.bits
        scales = form.scale_chunks * ceil(values / form.shape.m) * ceil(values / form.shape.n)
    return Plan(instruction=form, codes=codes, blocks=blocks, places=form.stored_k, scales=scales)


def chunk_cases(instruction: Instruction) -> int:
    """Return cases of a chunk."""
    return max(1, min(_CHUNK, _OUTPUTS // (instruction.shape.m * instruction.shape.n)))


@in_default_environment
def exhaustive_chunk(plan: Plan, seed: int, index: int, a_in: Place = "shared") -> VectorSet:
    """Return chunk number ``index``; the seed decides only metadata and layouts."""
    form = plan.instruction
    size = chunk_cases(form)
    case = np.arange(index * size, min((index + 1) * size, plan.cases))
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(index,)))
    draft = Draft(limits_of(form), len(case), rng, shift=0)
    draft.a[:], draft.b[:], draft.c[:] = 0, 0, 0
    draft.set_scales(np.zeros_like(draft.lift))
    pairs = plan.cases - plan.scales
    _set_products(plan, draft, case)
    if plan.scales:
        _set_scales(plan, draft, case - pairs)
    labels = tuple("pairs of codes" if number < pairs else "pairs of scales" for number in case)
    arguments = arguments_of(form, draft, rng, a_in)
    return make_vectors(form, title="exhaustive", seed=seed, labels=labels, **arguments)


def _set_products(plan: Plan, draft: Draft, case: Array) -> None:
    """Set the codes of the blocks that cases stand for; 1 where the scales are enumerated."""
    form = plan.instruction
    blocks = plan.blocks[0] * plan.blocks[1]
    place = np.minimum(case // blocks, plan.places - 1)
    row, column = case % blocks // plan.blocks[1], case % plan.blocks[1]
    a = (row[:, None] * draft.m + np.arange(draft.m)) % plan.codes[0]
    b = (column[:, None] * draft.n + np.arange(draft.n)) % plan.codes[1]
    draft.write(place, a.astype(form.a.code_dtype), b.astype(form.b.code_dtype))


def _set_scales(plan: Plan, draft: Draft, number: Array) -> None:
    form, scale = plan.instruction, plan.instruction.scale
    scale = present(scale, "scale")
    scale_a = present(draft.scale_a, "scale a")
    scale_b = present(draft.scale_b, "scale b")
    values, chunks = 1 << scale.bits, form.scale_chunks
    columns = ceil(values / draft.n)
    for tile in np.flatnonzero(number >= 0):
        block, chunk = divmod(int(number[tile]), chunks)
        draft.a[tile], draft.b[tile] = 0, 0
        first = chunk * draft.k // chunks
        draft.a[tile, :, first], draft.b[tile, first, :] = _one(form.a), _one(form.b)
        rows = (block // columns * draft.m + np.arange(draft.m)) % values
        scale_a[tile, :, chunk] = rows
        scale_b[tile, chunk, :] = (block % columns * draft.n + np.arange(draft.n)) % values


def _one(element: Format) -> int:
    return element.bias << element.fraction_bits
