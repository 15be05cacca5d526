"""Mistakes within the instructions of a loop along k: those of the library, in every step or in one.

Knows what a mistake changes in the registers of a step. Does not know the mistakes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..isa.instruction import Codes
from .arithmetic import Arithmetic
from .library import mistakes
from .local import local_mistakes
from .loop_candidates import Candidate
from .loops import Loop, Matrix, Step, numbers
from .mistake import Mistake

_ALL_LOCAL = 16  # steps, up to which mistakes of one lane or row are tried in single steps too


def within_steps(loop: Loop, tile: int) -> Iterator[Candidate]:
    """Every mistake of the library in all steps, and in one; local ones too where there are few steps."""
    setting, count, each = loop.setting, loop.steps, loop.contributions(tile)
    local = local_mistakes(setting) if count <= _ALL_LOCAL else ()
    for mistake in (*mistakes(setting), *local):
        if mistake.arithmetic is None and (mistake.change is None or "c" in mistake.operands):
            continue
        yield from _of_mistake(loop, tile, mistake, each)


def _of_mistake(loop: Loop, tile: int, mistake: Mistake, each: Matrix) -> Iterator[Candidate]:
    """A mistake in all steps, and in each."""
    how = mistake.arithmetic or Arithmetic(instruction=loop.form)
    change, count = _wrong(loop, tile, mistake, how) - each, loop.steps
    yield Candidate(
        name=f"in every step (all steps): {mistake.name}",
        advice=mistake.advice,
        change=change.sum(axis=0),
        exact=_run(loop, mistake, how, range(count)),
    )
    for at in range(count if count > 1 else 0):
        yield Candidate(
            name=f"in step {at} only: {mistake.name}",
            advice=mistake.advice,
            change=change[at],
            exact=_run(loop, mistake, how, (at,)),
        )


def _wrong(loop: Loop, tile: int, mistake: Mistake, how: Arithmetic) -> Matrix:
    """``(steps, m, n)``: what the steps add with the mistake."""
    registers = {name: words[:, tile] for name, words in loop.registers.items()}
    registers["c"] = np.zeros((loop.steps, *loop.accumulators.shape[1:]), loop.accumulators.dtype)
    if mistake.change:
        registers |= mistake.change(registers)
    return numbers(how.simulate(loop.setting, registers), loop.form.d)


def _run(loop: Loop, mistake: Mistake, how: Arithmetic, where: Sequence[int]) -> Callable[[], Codes]:
    def run() -> Codes:
        steps: list[Step] = loop.plain()
        for at in where:
            registers = loop.step(at)
            steps[at] = registers | (mistake.change(registers) if mistake.change else {}), how
        return loop.chain(steps, loop.accumulators)

    return run
