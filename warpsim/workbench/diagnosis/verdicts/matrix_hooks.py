"""Computing the matrix instructions of a launch in another way, by statement.

Knows waves and warps; does not know what is computed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.errors import present
from ....isa.descriptors.instruction_descriptor import FIELDS, InstructionDescriptor
from ....isa.families import OPCODES
from ....isa.families.tcgen05 import Form, form_of
from ....isa.instruction import Instruction
from ....isa.operand_places.placements import Inputs
from ....isa.warps import WARP
from ....machine.opcodes.matrix.wmma import product
from ....machine.opcodes.tensor.tensor_products import Given, Multiplication
from ....machine.run.events import Observer, helper
from ....machine.run.wave import Record, Step, Wave
from ....machine.state.lanes import DivergentPath, Lanes
from ....sums.execution.pipeline import execute_inputs, execute_operands, rule_for
from ..origins.kept_products import Numbers, places_of

Array = npt.NDArray[Any]
_OPCODES = OPCODES | {"wmma", "tcgen05"}


class MatrixHook(Observer):
    """An observer of one launch that computes its matrix instructions."""

    def __init__(self) -> None:
        self._now: int | None = None

    def instrument(self, code: Sequence[Record]) -> Sequence[Record]:
        """Return the records, those of matrix instructions with a note of what is executed."""
        return [
            record.stepping(self._noted(pc, record.step)) if record.statement.opcode in _OPCODES else record
            for pc, record in enumerate(code)
        ]

    def _noted(self, pc: int, before: Step) -> Step:
        def noted(wave: Wave, path: DivergentPath, lanes: Lanes) -> bool | None:
            if wave.modes.interposed is not self:
                wave.modes = replace(wave.modes, interposed=self)
            self._now = pc
            return before(wave, path, lanes)

        return noted

    @helper
    def registers(self, wave: Wave, warps: Numbers, form: Instruction, inputs: Inputs) -> Array:
        """Return D of mma and wgmma."""
        return self.of_registers(present(self._now, "a statement"), form, inputs)

    @helper
    def fragments(self, wave: Wave, warps: Numbers, form: Instruction, codes: Mapping[str, Array]) -> Array:
        """Return D of wmma, as it is: its fragments have no layout that a program may rely on."""
        return product(execute_inputs, form, codes["a"], codes["b"], codes["c"])

    def descriptors(self, pc: int, role: str, words: Array) -> Array:
        """Return the descriptors of wgmma that are used: these, unless a hook has others."""
        return words

    @helper
    def tensor_operands(self, wave: Wave, pc: int, lane: int, given: Given) -> Given:
        """Return the operands of tcgen05.mma that are used: these, unless a hook has others."""
        return given

    @helper
    def tensor_product(self, wave: Wave, work: Multiplication) -> Array:
        """Return codes of D of tcgen05.mma."""
        return execute_operands(work.operands(wave), rule_for(work.made.instruction))

    def of_registers(self, pc: int, form: Instruction, inputs: Inputs) -> Array:
        """Return D ``(n, lanes, registers)`` of executions of a statement."""
        return execute_inputs(form, inputs)


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
