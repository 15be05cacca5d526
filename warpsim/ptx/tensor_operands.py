"""Operands of a ``tcgen05.mma`` statement: their order, and as they stand in the text.

PTX ISA 9.3, sections 9.7.17.10.9 to 9.7.17.10.12. Registers hold addresses and descriptors; which values they
take, the machine checks while it runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..base.errors import IllegalInstruction
from ..isa.families.tcgen05 import Form, form_of
from ..isa.instruction import Instruction
from .binding import Bound, Types
from .operands import Address, Operand, Vector
from .statements import InstructionStatement


@dataclass(frozen=True, kw_only=True)
class TensorBound(Bound):
    """A tcgen05.mma with its operands as they stand in the text: addresses of tensor memory, and descriptors.

    ``a`` is None where A comes from shared memory. ``places`` are those of operand_names.
    """

    a: tuple[str, ...] | None
    scale_a: str | None = None
    scale_b: str | None = None


def operand_names(form: Form, operands: Sequence[Operand]) -> tuple[tuple[str, ...], str]:
    """Return the operands that a form needs in their order, and the further that it may have, "" for none.

    The words of disable-output-lane are among the first where they are given.
    """
    names = ("d", "a", "b", *(("metadata",) if form.sparse else ()), "idesc")
    if form.kind.is_scaled:
        return (*names, "scale_a", "scale_b", "enable"), ""
    if len(operands) > len(names) and isinstance(operands[len(names)], Vector):
        names = (*names, "mask")
    return (*names, "enable"), "zero_columns" if form.weight_stationary else "scale_d"


def bind_tensor(
    instruction: Instruction, statement: InstructionStatement, types: Types | None
) -> TensorBound:
    """Return the statement's operands by role; raises IllegalInstruction for too few or too many."""
    operands = statement.operands or ()
    names, optional = operand_names(form_of(statement.modifiers), operands)
    if len(operands) not in (len(names), len(names) + bool(optional)):
        listed = ", ".join(names) + f" and perhaps {optional}" * bool(optional)
        message = f"{statement.mnemonic} takes {listed}, but {len(operands)} operands are given"
        raise IllegalInstruction(message).at(statement.location())
    texts = dict(zip((*names, optional), map(str, operands), strict=False))
    in_memory = isinstance(operands[1], Address)
    return TensorBound(
        instruction=instruction,
        places={name: index for index, name in enumerate(texts)},
        d=(texts["d"],),
        a=(texts["a"],) if in_memory else None,
        e=texts.get("metadata"),
        scale_a=texts.get("scale_a"),
        scale_b=texts.get("scale_b"),
    )
