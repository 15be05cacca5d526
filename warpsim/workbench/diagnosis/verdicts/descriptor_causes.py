"""Fields of matrix descriptors that are wrong: the launch again with other values in them.

A field is named where another value of it, in every wgmma of the kernel, makes every output right. Knows
descriptors; does not know tiles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.errors import Location, WarpsimError
from ....isa.descriptors.matrix_descriptor import Descriptor
from ..descriptors.descriptor_views import UNIT, DescriptorView, Rewrite, differences, of_words, remedy
from ..origins.element_origins import Origins
from .launch_causes import Cause
from .tried_repairs import MatrixHook, Trial

Array = npt.NDArray[Any]
Words = Mapping[int, int]  # the first descriptor of each statement
Change = Callable[[int, int, int], int]  # statement, descriptor, and how often it was executed, to another
_BOTH = "ab"
_FIELD = 0x3FFF
_LOST = 14  # the first bit of an address in bytes that the field has no place for
_STAGES = 4
_STEPS = (32, 64, 128, 256, 512, 1024, 2048)
_PLACES = {"a": 1, "b": 2}  # operands of the statement
_EVIDENCE = "the launch was executed with this value in the descriptors: every output is as expected"


@dataclass(frozen=True, kw_only=True)
class _Candidate:
    message: str
    fix: str
    change: Change


class Redescribed(MatrixHook):
    """A launch with other descriptors of an operand; ``first`` has those that it was given."""

    def __init__(self, role: str = "", change: Change | None = None) -> None:
        super().__init__()
        self.first: dict[str, dict[int, int]] = {}
        self._role, self._change = role, change
        self._turns = Counter[tuple[int, str]]()

    def descriptors(self, pc: int, role: str, words: Array) -> Array:
        """Return the descriptors that are used."""
        self.first.setdefault(role, {}).setdefault(pc, int(words[0]))
        if role not in self._role or self._change is None:
            return words
        turn = self._turns[pc, role]
        self._turns[pc, role] += 1
        return np.array([self._change(pc, int(word), turn) for word in words.tolist()], np.uint64)


def descriptor_causes(trial: Trial, roles: Sequence[str] = ("b", "a")) -> list[Cause]:
    """Return the field of a descriptor of an operand that makes every output right with another value."""
    noted = Redescribed()
    trial.wrong(noted)
    together = _BOTH if set(roles) == set(_BOTH) == noted.first.keys() else ""
    with trial.budget.search("fields of descriptors"):
        for role in (*filter(None, [together]), *roles):
            words = noted.first.get(role[0], {})
            for candidate in _candidates(words) if words else ():
                if trial.wrong(Redescribed(role, candidate.change)) == 0:
                    return [_cause(trial, role, min(words), candidate)]
    return []


def suspected(origins: Origins) -> list[str]:
    """Return the operands behind descriptors of which something is found, but no other k step alone."""
    return sorted(
        {
            finding.operand
            for finding in origins.findings
            if finding.kind not in ("stage", "repeated") and finding.fault is not None
            if finding.fault.tiles.tiles.operand.is_matrix and not finding.fault.tiles.tiles.operand.of_wmma
        }
    )


def _cause(trial: Trial, role: str, pc: int, candidate: _Candidate) -> Cause:
    statement = trial.launch.kernel._entry.code[pc].statement
    location: Location = statement.operand_location(_PLACES[role[0]])
    which = "operands a and b" if role == _BOTH else f"operand {role}"
    return Cause(
        kind="descriptor",
        message=f"{which} of the matrix instruction: {candidate.message}",
        location=location,
        evidence=trial.again(_EVIDENCE),
        operand=role[0],
        fix=candidate.fix,
    )


# --- candidates ------------------------------------------------------------------------------------


def _candidates(words: Words) -> Iterator[_Candidate]:
    """Yield other values of the fields, the shortest description first."""
    try:
        first = DescriptorView.of(Descriptor.decode(words[min(words)]))
    except WarpsimError:
        return
    for rewrite, view in of_words(first):
        phrases = differences(first, view, of=" of the descriptor")
        yield _Candidate(message="; ".join(phrases), fix=remedy(first, view), change=_rewritten(rewrite))
    # start addresses in bytes: bits from 14 on are lost, and are the same again after some stages
    for stages in range(1, _STAGES + 1):
        yield _Candidate(
            message="the start address in the descriptor is in bytes, not in units of 16: >> 4 is missing",
            fix="put (address & 0x3FFFF) >> 4 into bits 13..0",
            change=_in_units(stages),
        )
    yield from _of_steps(words)


def _rewritten(rewrite: Rewrite) -> Change:
    """Return a change of words; a word that is then no descriptor stays as it is."""

    def change(pc: int, word: int, turn: int) -> int:
        try:
            return rewrite.change(DescriptorView.of(Descriptor.decode(word))).descriptor.encode()
        except WarpsimError:
            return word

    return change


def _in_units(stages: int) -> Change:
    return lambda pc, word, turn: word & ~_FIELD | (word & _FIELD | turn % stages << _LOST) // UNIT


def _of_steps(words: Words) -> Iterator[_Candidate]:
    """Yield other distances between the start addresses of the statements, in the order of the text."""
    order = sorted(words)
    starts = [(words[pc] & _FIELD) * UNIT for pc in order]
    if len(order) < 2:
        return
    own = starts[1] - starts[0]
    if any(later - before != own for before, later in pairwise(starts)):
        return
    for step in _STEPS:
        if step != own:
            shifts = {pc: number * (step - own) // UNIT for number, pc in enumerate(order)}
            yield _Candidate(
                message=f"the start of the descriptor advances by {own} bytes from step to step where "
                f"{step} fit",
                fix=f"add {step} bytes ({step // UNIT} units of 16) in each step",
                change=_shifted_each(shifts),
            )


def _shifted_each(shifts: Words) -> Change:
    return lambda pc, word, turn: _moved(word, shifts.get(pc, 0))


def _moved(word: int, units: int) -> int:
    return word & ~_FIELD | ((word & _FIELD) + units) & _FIELD


__all__ = ["Redescribed", "descriptor_causes", "suspected"]
