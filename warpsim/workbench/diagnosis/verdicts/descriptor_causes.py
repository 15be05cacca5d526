"""Fields of matrix descriptors that are wrong: the launch again with other values in them.

A field is named where another value of it, in every wgmma of the kernel, makes every output right. Knows
descriptors; does not know tiles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ....base.errors import WarpsimError
from ....isa.descriptors.matrix_descriptor import Descriptor
from ..descriptors.descriptor_views import UNIT, DescriptorView, Rewrite, differences, of_words, remedy
from ..origins.element_origins import Origins
from .launch_causes import Cause
from .tried_repairs import MatrixHook, Repair, Trial

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


class _Candidate(NamedTuple):
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
    return trial.first("fields of descriptors", _repairs(trial, noted, (*filter(None, [together]), *roles)))


def _repairs(trial: Trial, noted: Redescribed, roles: Sequence[str]) -> Iterator[Repair]:
    for role in roles:
        words = noted.first.get(role[0], {})
        which = "operands a and b" if role == _BOTH else f"operand {role}"
        for message, fix, change in _candidates(words) if words else ():
            statement = trial.launch.kernel._entry.code[min(words)].statement
            cause = Cause(
                kind="descriptor",
                message=f"{which} of the matrix instruction: {message}",
                location=statement.operand_location(_PLACES[role[0]]),
                evidence=_EVIDENCE,
                operand=role[0],
                fix=fix,
            )
            yield Repair(cause=cause, hook=Redescribed(role, change))


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


# --- candidates ------------------------------------------------------------------------------------


def _candidates(words: Words) -> Iterator[_Candidate]:
    try:
        first = DescriptorView.of(Descriptor.decode(words[min(words)]))
    except WarpsimError:
        return
    for rewrite, view in of_words(first):
        phrases = differences(first, view, of=" of the descriptor")
        yield _Candidate("; ".join(phrases), remedy(first, view), _rewritten(rewrite))
    # start addresses in bytes: bits from 14 on are lost, and are the same again after some stages
    for stages in range(1, _STAGES + 1):
        yield _Candidate(
            "the start address in the descriptor is in bytes, not in units of 16: >> 4 is missing",
            "put (address & 0x3FFFF) >> 4 into bits 13..0",
            _in_units(stages),
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
                f"the start of the descriptor advances by {own} bytes from step to step where {step} fit",
                f"add {step} bytes ({step // UNIT} units of 16) in each step",
                _shifted_each(shifts),
            )


def _shifted_each(shifts: Words) -> Change:
    return lambda pc, word, turn: word & ~_FIELD | ((word & _FIELD) + shifts.get(pc, 0)) & _FIELD
