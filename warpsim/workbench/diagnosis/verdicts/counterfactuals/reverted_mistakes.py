"""Mistakes that every execution of a matrix instruction suffers from, undone in a launch.

The order of elements in a word, a selector, a type: the operands come from the right place, and are held or
read in another way. The launch is executed again with one simple map of an operand, or another cause of
``warpsim diff``, undone in each execution; what makes every output right is the cause. Knows registers; does
not know what fills them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from .....base.errors import present
from .....isa.fragments import registers_of
from .....isa.instruction import Instruction
from .....isa.operand_places.placements import Inputs
from .....sums.execution.pipeline import execute_inputs
from ...library.mistake import SPELLED, Mistake
from ...library.setting import Setting
from ...search.cases import setting_of
from ...solving.other_causes import bare_mistake, byte_places, other_causes, permutations
from ..launch_causes import Cause, along, chain_to, traced
from ..tried_repairs import MatrixHook, Trial

Array = npt.NDArray[Any]
_EVIDENCE = (
    "each known mistake of a matrix instruction was reverted in turn; without this mistake, every output is "
    "as expected"
)
_LISTED = 2  # mistakes of the same effect
_SIMPLE = 2.0  # cost of the maps that are undone
_OPERANDS = ("e", "a", "b", "scale_a", "scale_b")


class Settings(MatrixHook):
    """A launch that notes what is executed of instructions whose operands are all registers."""

    def __init__(self) -> None:
        super().__init__()
        self.executed: dict[int, Setting] = {}

    def of_registers(self, pc: int, form: Instruction, inputs: Inputs) -> Array:
        """Return D, as it is; undefined metadata is read literally."""
        if inputs.warp_level:
            self.executed.setdefault(pc, setting_of(form, inputs))
        return execute_inputs(form, inputs.with_words(inputs.registers, literal=True))


class RevertedMistake(MatrixHook):
    """A launch in which statements have a mistake undone, by their number."""

    def __init__(self, chosen: Mapping[int, Mistake]) -> None:
        super().__init__()
        self._chosen = chosen

    def of_registers(self, pc: int, form: Instruction, inputs: Inputs) -> Array:
        """Return D of what the registers should hold, or of what should be computed of them."""
        mistake = self._chosen.get(pc)
        if mistake is None:
            return execute_inputs(form, inputs)
        registers = {name: np.ascontiguousarray(words) for name, words in inputs.registers.items()}
        if mistake.mend is not None:
            mended = registers | mistake.mend(registers)
            return execute_inputs(form, inputs.with_words(mended, literal=True))
        arithmetic = present(mistake.arithmetic, "arithmetic")
        codes = arithmetic.simulate(setting_of(form, inputs), registers)
        return registers_of(codes, form, "d")


def reverted_mistakes(trial: Trial) -> list[Cause]:
    """Return the mistake of which every output is as expected once it is undone; nothing where none is."""
    settings = Settings()
    if trial.wrong(settings) is None or not settings.executed:
        return []
    found = dict[str, dict[int, Mistake]]()
    with trial.budget.search("known mistakes"):
        for chosen in _candidates(settings.executed):
            if len(found) <= _LISTED and trial.wrong(RevertedMistake(chosen)) == 0:
                named = {pc: each.named for pc, each in chosen.items()}
                found[next(iter(named.values())).name] = named
    return [_cause(trial, found)] if found else []


def _candidates(executed: Mapping[int, Setting]) -> list[dict[int, Mistake]]:
    """Return what can be undone, by the statements that may suffer from it, the most certain first."""
    found = defaultdict[tuple[int, str], dict[int, Mistake]](dict)
    for pc, setting in executed.items():
        form = setting.instruction
        for mistake in other_causes(setting):
            if _can_be_undone(mistake, form):
                found[0, mistake.name][pc] = mistake
        for name in (name for name in _OPERANDS if name in form.operands):
            for mistake in byte_places(setting, name):
                found[2, mistake.name][pc] = mistake
            for made in permutations(setting, name, _SIMPLE):
                found[1 if name == "e" else 2, f"{name} {made.atom}"][pc] = bare_mistake(made)
    return [found[key] for key in sorted(found, key=lambda key: key[0])]


def _can_be_undone(mistake: Mistake, form: Instruction) -> bool:
    """Return whether operands alone are wrong and nothing is lost, or another form is meant."""
    if mistake.arithmetic is None:
        return mistake.mend is not None and not {"c", "d"} & {*mistake.operands}
    other, meant = mistake.arithmetic, mistake.arithmetic.instruction
    return not other.adds_c and (meant.c, meant.d) == (form.c, form.d)


def _cause(trial: Trial, found: Mapping[str, Mapping[int, Mistake]]) -> Cause:
    """Return mistakes of the same effect as a cause: of an operand at what loads it, of a form at the
    instruction.
    """
    (name, chosen), *others = found.items()
    pc, mistake = next(iter(chosen.items()))
    launch = trial.launch
    at = launch.kernel._entry.code[pc].statement.location()
    or_else = "".join(f"; or, with the same outputs, {other}" for other, _ in others[:_LISTED])
    same = tuple(f"the same as: {other}" for other in mistake.also)
    if mistake.arithmetic is not None:
        meant = mistake.arithmetic.instruction
        fix = f"use {meant.mnemonic}, or convert the operands"
        if name.startswith("numerics"):
            fix = (
                f"what is expected are results of {meant.target}: launch for it, or compare with this chip's"
            )
        said = f"what is expected is what another instruction computes of the same registers: {name}{or_else}"
        return Cause(
            kind="instruction", message=said, location=at, evidence=trial.again(_EVIDENCE), fix=fix,
            symptoms=same,
        )  # fmt: skip
    role = mistake.operands[0] if len(mistake.operands) == 1 else ""
    chain = chain_to(launch, at, role, traced(launch, [*trial.expected]))
    what = name.removeprefix(f"{SPELLED.get(role, role.upper())}: ") if role else name
    operands = f"operand{'s' * (not role)} {' and '.join(mistake.operands)}"
    return Cause(
        kind="registers held",
        message=f"{operands} of the matrix instruction: {what}{or_else}",
        location=chain.nearest or at,
        evidence=trial.again(_EVIDENCE),
        operand=role,
        fix=mistake.advice,
        also=tuple(along(chain, at)) if chain.loads else (),
        symptoms=same,
    )
