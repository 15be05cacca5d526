"""What one execution reads, for the views: numbers as the pipeline gathers them, and where they lay.

Two ways in, as into the pipeline: the registers of warpsim.execute and the matrices of warpsim.matmul.
One execution at a time, not a batch.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...base.errors import OperandError
from ...isa.families.tcgen05_operands import is_shifted
from ...isa.fragments import Fields, fields_of, gather, read_fields
from ...isa.instruction import Instruction
from ...isa.operand_places.placements import Inputs, ScaleSelectors
from ...isa.operand_places.places import NO_SCALES
from ...isa.products import Operands
from ...sums.execution.logical_matrices import Matrices, matrix_operands
from ...sums.execution.pipeline import checked_inputs, is_literal


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """The numbers of one execution, metadata fields ``(m, chunks)`` of a sparse form, and where to look.

    ``absent`` names the operands that were not read from registers or tensor memory.
    """

    instruction: Instruction
    operands: Operands
    fields: Fields | None = None
    selector: int = 0
    scales: ScaleSelectors = NO_SCALES
    absent: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


def from_registers(instruction: Instruction, inputs: Inputs) -> Gathered:
    """Return what an instruction reads, gathered as for execution; raises what execution raises for it."""
    checked = checked_inputs(instruction, inputs)
    operands = gather(instruction, checked)
    _one_execution(operands)
    fields = None
    if instruction.sparse:
        fields = read_fields(instruction, checked.registers["e"], inputs.selector)
    absent = {"b"} - set(instruction.registers)
    absent |= set() if "a" in checked.registers else {"a"}
    absent |= set() if inputs.scale_d else {"c"}
    absent |= checked.matrices.keys()
    return Gathered(
        instruction=instruction,
        operands=operands,
        fields=fields,
        selector=inputs.selector,
        scales=inputs.scale_selectors,
        absent=frozenset(absent),
        notes=tuple(_conditions(instruction, inputs)),
    )


def _conditions(instruction: Instruction, inputs: Inputs) -> list[str]:
    power = inputs.tensor.scale_input_d
    notes = [f"scale-input-d is {power}: the codes of C are those of C / {1 << power}"] * bool(power)
    notes += [".ashift: a row of A has the codes of the next row"] * is_shifted(instruction)
    notes += [] if inputs.scale_d else ["scale-d is false: C counts as +0"]
    for name, negate in zip("ab", inputs.negate, strict=True):
        notes += [f"imm-scale-{name} is -1: the codes of {name.upper()} have their signs flipped"] * negate
    return notes


def _one_execution(operands: Operands) -> None:
    inner = 3 if operands.product.products > 1 else 2
    for name in ("a", "b", "c", "columns", "scale_a", "scale_b"):
        array = getattr(operands, name)
        if array is not None and array.ndim > inner:
            raise OperandError(f"{name} has batch axes {array.shape[:-inner]}: explain takes one execution")


def from_matrices(instruction: Instruction, matrices: Matrices, undefined: str = "error") -> Gathered:
    """Logical matrices as warpsim.matmul takes them; raises as it does."""
    operands = matrix_operands(instruction, matrices, literal=is_literal(undefined))
    if any(array.ndim > 2 for array in (operands.a, operands.b, operands.c)):
        raise OperandError("matrices with batch axes: explain takes one product")
    absent = frozenset("b") - set(instruction.registers)
    fields = _fields_from(instruction, operands)
    return Gathered(instruction=instruction, operands=operands, fields=fields, absent=absent)


def _fields_from(instruction: Instruction, operands: Operands) -> Fields | None:
    """Return the metadata fields that name the stored columns."""
    pattern, columns = instruction.pattern, operands.columns
    if pattern is None or columns is None:
        return None
    return fields_of(instruction, columns[..., :: pattern.unit] % pattern.chunk // pattern.unit)
