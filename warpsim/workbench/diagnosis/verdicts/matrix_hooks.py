"""Computing the matrix instructions of a launch in another way, with statement and execution of each.

Knows waves and warps; does not know what is computed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.errors import present
from ....isa.families import OPCODES
from ....isa.instruction import Instruction
from ....isa.operand_places.placements import Inputs
from ....isa.products import Operands
from ....isa.warps import WARP
from ....machine.opcodes.tensor.tensor_products import Given, Multiplication
from ....machine.run.events import Observer, helper
from ....machine.run.wave import Record, Step, Wave
from ....machine.state.lanes import DivergentPath, Lanes
from ....sums.execution.pipeline import execute_operands, rule_for
from ..origins.kept_products import Numbers, places_of

Array = npt.NDArray[Any]
_OPCODES = OPCODES | {"wmma", "tcgen05"}


@dataclass(frozen=True, kw_only=True)
class MatrixStep:
    """Executions of one statement: its number in the text, and ``places (n, 5)`` as those of origins.

    ``shape`` is that of D, ``form`` of a wmma a mma of the target that computes parts of it.
    """

    pc: int
    form: Instruction
    shape: tuple[int, int]
    places: npt.NDArray[np.int64]


class MatrixHook(Observer, ABC):
    """An observer of one launch that computes its matrix instructions."""

    def __init__(self) -> None:
        self._now: int | None = None
        self._times = Counter[tuple[int, ...]]()

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
        pc = present(self._now, "a statement")
        return self.of_registers(self._step(wave, warps, (pc, form, form.matrix_shape("d"))), inputs)

    @helper
    def fragments(self, wave: Wave, warps: Numbers, form: Instruction, codes: Mapping[str, Array]) -> Array:
        """Return D of wmma."""
        pc = present(self._now, "a statement")
        return self.of_fragments(self._step(wave, warps, (pc, form, codes["c"].shape[1:])), codes)

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
        form = work.made.instruction
        what = work.pc, form, form.product.matrix_shape("d")
        step = self._step(wave, np.array([work.lane // WARP]), what)
        return self.of_operands(step, work.operands(wave))

    def _step(self, wave: Wave, warps: Numbers, what: tuple[int, Instruction, Any]) -> MatrixStep:
        (pc, form, shape), places = what, places_of(wave, warps)
        times = []
        for place in places.tolist():
            times.append(self._times[pc, *place])
            self._times[pc, *place] += 1
        return MatrixStep(pc=pc, form=form, shape=shape, places=np.column_stack([places, times]))

    @abstractmethod
    def of_registers(self, step: MatrixStep, inputs: Inputs) -> Array:
        """Return D ``(n, lanes, registers)``."""

    def of_operands(self, step: MatrixStep, operands: Operands) -> Array:
        """Return codes of D ``(1, m, n)`` of tcgen05.mma, whose operands these are."""
        return execute_operands(operands, rule_for(step.form))

    @abstractmethod
    def of_fragments(self, step: MatrixStep, codes: Mapping[str, Array]) -> Array:
        """Return codes of D ``(n, rows, columns)``."""
