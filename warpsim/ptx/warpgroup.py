"""Operands of a ``wgmma.mma_async`` statement: checked against its form, and sorted by role.

PTX ISA 9.1, section 9.7.15.5.2 "wgmma.mma_async" and 9.7.15.6.3 "wgmma.mma_async.sp"; counts are those
that ptxas 13.0 takes, and so are the types (see operand_types.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from ..isa.instruction import Instruction
from .binding import Binder, Bound, Types, choices_text
from .constants import Immediate
from .operand_types import operand_types, width_of
from .operands import NegatedPredicate, Register, Vector
from .statements import InstructionStatement


@dataclass(frozen=True, kw_only=True)
class WarpgroupBound(Bound):
    """A wgmma with its operands.

    ``a`` is None where A comes from shared memory; ``a_descriptor`` then names its descriptor.
    ``scale_d`` is a constant, or (negated, predicate). ``places`` are those of d; a or a_descriptor;
    b_descriptor; e and selector; scale_d; and the immediates.
    """

    a: tuple[str | Immediate, ...] | None
    a_descriptor: str | int | None
    b_descriptor: str | int
    scale_d: bool | tuple[bool, str]
    imm_scale: tuple[int, int] = (1, 1)
    imm_trans: tuple[int, int] = (0, 0)


class _WarpgroupBinder(Binder):
    """Adds the operands that only wgmma has."""

    def result(self) -> tuple[str | None, ...]:
        """Return the registers of D, which wgmma reads as well."""
        names = super().result()
        if None in names:
            message = "d is read and written: '_' stands for results only"
            raise self.error(message, self.places["d"], names.index(None))
        return names

    def descriptor(self, side: str) -> str | int:
        """Return a matrix descriptor: a 64-bit register, or a constant."""
        role = f"{side}_descriptor"
        index, allowed = self.places[role], operand_types(self.instruction, role)
        operand = self.operands[index]
        if isinstance(operand, Immediate) and operand.kind == "integer":
            return operand.value & (1 << 64) - 1
        if not isinstance(operand, Register):
            raise self.error(f"{side}-desc is a 64-bit register, not '{operand}'", index)
        found = self.type_of(operand, width_of(allowed), index)
        if found not in allowed:
            wanted = choices_text([f".{name}" for name in sorted(allowed)])
            raise self.error(f"{side}-desc takes {wanted} registers, but {operand} is .{found}", index)
        return operand.name

    def scale_d(self) -> bool | tuple[bool, str]:
        """scale-d: 0, 1, a predicate or its negation."""
        index = self.places["scale_d"]
        operand = self.operands[index]
        if isinstance(operand, Immediate) and operand.kind == "integer" and operand.value in (0, 1):
            return bool(operand.value)
        if isinstance(operand, NegatedPredicate):
            return True, self.predicate(Register(operand.name), index)
        if isinstance(operand, Register):
            return False, self.predicate(operand, index)
        raise self.error(f"scale-d is a predicate, 0 or 1, not '{operand}'", index)

    def predicate(self, register: Register, index: int) -> str:
        """Return the name of a predicate register."""
        if self.types is not None:
            found = self.type_of(register, 1, index)
            if found not in operand_types(self.instruction, "scale_d"):
                raise self.error(f"scale-d is a predicate, but {register} is .{found}", index)
        return register.name

    def constant(self, role: str, legal: tuple[int, int], absent: int) -> int:
        """Return an immediate operand with two legal values; ``absent`` where the form has none."""
        if role not in self.places:
            return absent
        index = self.places[role]
        operand = self.operands[index]
        if not isinstance(operand, Immediate) or operand.kind != "integer" or operand.value not in legal:
            raise self.error(f"{self.names[role]} is {choices_text(legal)}, not '{operand}'", index)
        return operand.value


def bind_warpgroup(
    instruction: Instruction, statement: InstructionStatement, types: Types | None
) -> WarpgroupBound:
    """Return the statement's operands by role; raises IllegalInstruction pointing at the operand at fault."""
    operands = statement.operands or ()
    in_registers = len(operands) > 1 and isinstance(operands[1], Vector)
    binder = _WarpgroupBinder(instruction, statement, types, _operand_names(instruction, in_registers))
    binder.check()
    bound = WarpgroupBound(
        instruction=instruction,
        places=binder.places,
        d=binder.result(),
        a=binder.source("a") if in_registers else None,
        a_descriptor=None if in_registers else binder.descriptor("a"),
        b_descriptor=binder.descriptor("b"),
        scale_d=binder.scale_d(),
    )
    if instruction.sparse:
        bound = replace(bound, e=binder.single("e"), selector=binder.selector())
    scales = [binder.constant(f"imm_scale_{side}", (-1, 1), 1) for side in "ab"]
    transposed = [binder.constant(f"imm_trans_{side}", (0, 1), 0) for side in "ab"]
    return replace(bound, imm_scale=(scales[0], scales[1]), imm_trans=(transposed[0], transposed[1]))


@lru_cache(maxsize=4096)
def _operand_names(instruction: Instruction, in_registers: bool) -> Mapping[str, str]:
    """Return the operands in order, and what messages call them.

    imm-scale belongs to floating point, imm-trans to 16 bits in shared memory.
    """
    names = {"d": "d"} | ({"a": "a"} if in_registers else {"a_descriptor": "a-desc"})
    names |= {"b_descriptor": "b-desc"}
    if instruction.sparse:
        names |= {"e": "sp-meta", "selector": "sp-sel"}
    others = ["scale_d"]
    if instruction.a.is_float:
        others += ["imm_scale_a", "imm_scale_b"]
    if instruction.a.bits == 16:
        others += ["imm_trans_b"] if in_registers else ["imm_trans_a", "imm_trans_b"]
    return names | {role: role.replace("_", "-") for role in others}
