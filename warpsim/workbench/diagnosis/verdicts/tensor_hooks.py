"""Launches whose tcgen05.mma are issued with other operands: descriptors, addresses, enable-input-d.

Knows statements and registers; does not know why others are tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ....isa.descriptors.instruction_descriptor import FIELDS, InstructionDescriptor
from ....isa.families.tcgen05 import Form, form_of
from ....isa.warps import WARP
from ....machine.opcodes.tensor.tensor_products import Given
from ....machine.run.events import helper
from ....machine.run.wave import Wave
from ..origins.kept_products import places_of
from .matrix_hooks import MatrixHook

Place = tuple[int, ...]  # x, y, z of the CTA, warp, how many-th time


@dataclass(frozen=True, kw_only=True)
class Issue:
    """A tcgen05.mma that is issued: its statement, place and form; ``turn`` counts those of its warp."""

    pc: int
    place: Place
    turn: int
    form: Form
    given: Given

    @property
    def descriptor(self) -> InstructionDescriptor:
        """The instruction descriptor. Raises OperandError."""
        return InstructionDescriptor.decode(self.given.word, self.form.kind.name)

    def has(self, attribute: str) -> bool:
        """Return whether the descriptor has a field."""
        return any(field.attribute == attribute for field in FIELDS[self.form.kind.group])

    def with_fields(self, **fields: Any) -> Given:
        """Return the operands with other fields of the instruction descriptor."""
        return replace(self.given, word=replace(self.descriptor, **fields).encode())


Change = Callable[[Issue], Given]


class Reissued(MatrixHook):
    """A launch with other operands; ``issues`` are those that it was given."""

    def __init__(self, change: Change | None = None) -> None:
        super().__init__()
        self.issues: list[Issue] = []
        self._change, self._forms = change, dict[int, Form]()
        self._executed, self._turns = Counter[Place](), Counter[Place]()

    @helper
    def tensor_operands(self, wave: Wave, pc: int, lane: int, given: Given) -> Given:
        """Return the operands that are used."""
        if pc not in self._forms:
            self._forms[pc] = form_of(wave.code[pc].statement.modifiers)
        own = tuple(places_of(wave, np.array([lane // WARP]))[0].tolist())
        place = (*own, self._executed[pc, *own])
        issue = Issue(pc=pc, place=place, turn=self._turns[own], form=self._forms[pc], given=given)
        self._executed[pc, *own] += 1
        self._turns[own] += 1
        self.issues.append(issue)
        return given if self._change is None else self._change(issue)
