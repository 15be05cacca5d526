"""The search that fits where an instruction has its operands: registers and tiles, or tensor memory.

Knows both searches; each of them knows its places.
"""

from __future__ import annotations

import numpy.typing as npt

from ....isa.instruction import Instruction
from ....isa.operand_places.placements import Inputs
from .diagnose import Diagnosis, diagnose_inputs
from .tensor_search import TensorDiagnosis, diagnose_tensor


def diagnose_executions(
    instruction: Instruction, inputs: Inputs, d: npt.ArrayLike, *, most: int = 2
) -> Diagnosis | TensorDiagnosis:
    """Return what explains the D of executions, as words; raises what both searches raise.

    ``most`` mistakes at once are looked for in registers, and single changes in tensor memory.
    """
    if instruction.descriptor is not None:
        return diagnose_tensor(instruction, inputs, d)
    return diagnose_inputs(instruction, inputs, d, most=most)
