"""Metadata and scales that every step of a loop reads from elsewhere: one map for all steps.

The problem of an operand is the sum of those of its steps, on one tile. Does not know maps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....isa.fragments import registers_of
from ....isa.products import Codes
from ..dumps.dump_comparison import numbers
from ..library.mistake import SPELLED
from ..solving.linear_operands import Operand, Tile, selecting_operands
from ..solving.naming import words
from ..solving.product_loops import Loop
from ..solving.solving import Explanation, single_causes
from ..solving.step_causes import Solution
from ..solving.views import Index, Numbers

_MIXED = np.uint64(0x9E3779B97F4A7C15)  # an odd number, by which codes of steps are mixed


@dataclass(frozen=True, eq=False, kw_only=True)
class InSteps(Operand):
    """One operand of all steps, which the same table moves."""

    steps: tuple[Operand, ...]

    def parts(self, sources: Index, line: int, element: int) -> Numbers:
        """Return ``(..., J)``: what the places of a line add to an element of D in all steps."""
        return np.asarray(sum(step.parts(sources, line, element) for step in self.steps))

    def sums(self, table: Index) -> Numbers:
        """Return ``(L, E)``: what all steps add to D."""
        return np.asarray(sum(step.sums(table) for step in self.steps))


def moved_in_every_step(
    loop: Loop, codes: tuple[Codes, Codes], near: Numbers, tile: int
) -> tuple[list[Solution], int]:
    """Return maps of metadata and scales that explain D of a tile, the simplest first, and how many
    were tried.

    ``codes (tiles, m, n)`` are D as expected and as it came out; ``near (m, n)`` is how far roundings reach.
    """
    form, tried = loop.form, 0
    if form.pattern is None and form.scale is None:
        return [], 0
    c = numbers(loop.tiles_of(loop.c)[tile], form.c)
    rest: Any = numbers(codes[1][tile], form.d) - c
    wrong: Any = codes[0][tile] != codes[1][tile]
    found = list[Explanation]()
    with np.errstate(all="ignore"):
        for steps in zip(*(_operands(loop, step, tile) for step in range(loop.steps)), strict=True):
            target, flags, bound = rest, wrong, near
            if steps[0].name == "scale_b":
                target, flags, bound = rest.T, wrong.T, near.T
            more, count = single_causes(_joined(steps, target, bound), flags, partly=True)
            found, tried = found + more, tried + count
    found.sort(key=lambda each: each.cost)
    return [_solution(loop, each) for each in found], tried


def _operands(loop: Loop, step: int, tile: int) -> Iterator[Operand]:
    """Yield metadata and scales of a step."""
    registers = {name: held[step, tile][None] for name, held in loop.registers.items()}
    registers["c"] = np.zeros_like(loop.accumulators[:1])
    d = registers_of(np.zeros((1, *loop.form.matrix_shape("d")), loop.form.d.code_dtype), loop.form, "d")
    yield from selecting_operands(Tile(loop.setting, registers, (d, d), 0))


def _joined(steps: tuple[Operand, ...], target: Numbers, near: Numbers) -> InSteps:
    first = steps[0]
    codes = np.zeros(len(first.codes), np.uint64)
    for step in steps:
        codes = codes * _MIXED + step.codes.astype(np.uint64)
    return InSteps(
        name=first.name,
        setting=first.setting,
        views=first.views,
        sources=first.sources,
        codes=codes,
        values=np.asarray(sum(np.abs(step.values) for step in steps)),
        where=first.where,
        T=target,
        near=near,
        wraps=first.wraps,
        steps=steps,
    )


def _solution(loop: Loop, found: Explanation) -> Solution:
    """Return an explanation in words, with the function that computes D of all tiles."""
    name, named = found.operand.name, words(found)

    def run() -> Codes:
        changed: dict[str, Any] = {name: found.operand.changed(found.table, loop.registers)}
        steps = [
            (registers | {name: changed[name][at]}, how) for at, (registers, how) in enumerate(loop.plain())
        ]
        return loop.chain(steps, loop.accumulators)

    return Solution(
        text=named.headline,
        advice=named.advice,
        kind="operand",
        facts={"operand": SPELLED[name], "map": found.kind, **found.facts},
        also=named.also,
        computed=(run,),
    )
