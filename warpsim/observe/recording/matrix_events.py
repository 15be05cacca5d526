"""What a machine has executed: one matrix instruction, with what it read and the D that came of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt

from ...base.errors import Location
from ...isa.instruction import Instruction
from ...isa.operand_places.placements import Inputs
from ...isa.warps import WARP
from ...ptx.binding import Bound
from ...ptx.statements import InstructionStatement


@dataclass(frozen=True, kw_only=True, eq=False)
class Event:
    """One executed matrix instruction: where it stands, what it read, and the D registers it computed.

    ``inputs`` holds registers and shared memory as they were then; nothing that follows changes them.
    ``warps`` are the warps that executed it.
    """

    statement: InstructionStatement
    bound: Bound
    inputs: Inputs  # registers (lanes of the machine, registers)
    d: npt.NDArray[Any]  # (lanes of the machine, registers), sinks included, 0 in lanes that did not execute
    warps: tuple[int, ...]

    @property
    def location(self) -> Location:
        """The place of the statement."""
        return self.statement.location()

    @property
    def instruction(self) -> Instruction:
        """The instruction on the machine's target."""
        return self.bound.instruction

    def executions(self) -> Iterator[tuple[int, Inputs, npt.NDArray[Any]]]:
        """First lane, inputs and D of each execution: an ``mma`` has an execution for each warp, a ``wgmma``
        just one.
        """
        lanes = self.instruction.lanes
        for first in sorted({WARP * warp // lanes * lanes for warp in self.warps}):
            part = slice(first, first + lanes)
            words = {name: array[part] for name, array in self.inputs.registers.items()}
            yield first, replace(self.inputs, registers=words), self.d[part]


Origin = tuple[Event, int]  # of a register: the matrix instruction that wrote it, and its place in D
