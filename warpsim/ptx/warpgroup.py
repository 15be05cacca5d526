"""Operands of a ``wgmma.mma_async`` statement: checked against its form, and sorted by role.

PTX ISA 9.1, section 9.7.15.5.2 "wgmma.mma_async" and 9.7.15.6.3 "wgmma.mma_async.sp"; types and counts
are those that ptxas 13.0 takes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..errors import IllegalInstruction
from ..isa.instruction import Instruction
from .binding import METADATA_TYPES, Binder, Types, choices_text
from .constants import Immediate
from .operands import NegatedPredicate, Register, Vector
from .statements import InstructionStatement

_DESCRIPTOR_TYPES = frozenset({"b64", "u64", "s64"})


@dataclass(frozen=True, kw_only=True)
class WarpgroupBound:
    """A wgmma with its operands: register names, immediates, None for the sink ``_``.

    ``a`` is None where A comes from shared memory; ``a_descriptor`` then names its descriptor.
    ``scale_d`` is a constant, or (negated, predicate).
    """

    instruction: Instruction
    d: tuple[str | None, ...]
    a: tuple[str | Immediate, ...] | None
    a_descriptor: str | int | None
    b_descriptor: str | int
    scale_d: bool | tuple[bool, str]
    e: str | None = None
    selector: int = 0
    imm_scale: tuple[int, int] = (1, 1)
    imm_trans: tuple[int, int] = (0, 0)


class _WarpgroupBinder(Binder):
    """Adds the operands that only wgmma has."""

    def result(self) -> tuple[str | None, ...]:
        """The registers of D, which wgmma reads as well."""
        names = super().result()
        if None in names:
            raise self.error("d is read and written: '_' stands for results only", 0, names.index(None))
        return names

    def descriptor(self, index: int, side: str) -> str | int:
        """A matrix descriptor: a 64-bit register, or a constant."""
        operand = self.operands[index]
        if isinstance(operand, Immediate) and operand.kind == "integer":
            return operand.value & (1 << 64) - 1
        if not isinstance(operand, Register):
            raise self.error(f"{side}-desc is a 64-bit register, not '{operand}'", index)
        if self.type_of(operand, 64, index) not in _DESCRIPTOR_TYPES:
            found = self.type_of(operand, 64, index)
            wanted = choices_text([f".{name}" for name in sorted(_DESCRIPTOR_TYPES)])
            raise self.error(f"{side}-desc takes {wanted} registers, but {operand} is .{found}", index)
        return operand.name

    def scale_d(self, index: int) -> bool | tuple[bool, str]:
        """scale-d: 0, 1, a predicate or its negation."""
        operand = self.operands[index]
        if isinstance(operand, Immediate) and operand.kind == "integer" and operand.value in (0, 1):
            return bool(operand.value)
        if isinstance(operand, NegatedPredicate):
            return True, self.predicate(Register(operand.name), index)
        if isinstance(operand, Register):
            return False, self.predicate(operand, index)
        raise self.error(f"scale-d is a predicate, 0 or 1, not '{operand}'", index)

    def predicate(self, register: Register, index: int) -> str:
        """The name of a predicate register."""
        found = "pred" if self.types is None else self.type_of(register, 1, index)
        if found != "pred":
            raise self.error(f"scale-d is a predicate, but {register} is .{found}", index)
        return register.name

    def constant(self, index: int, name: str, legal: tuple[int, int]) -> int:
        """An immediate operand with two legal values."""
        operand = self.operands[index]
        if not isinstance(operand, Immediate) or operand.kind != "integer" or operand.value not in legal:
            raise self.error(f"{name} is {choices_text(legal)}, not '{operand}'", index)
        return operand.value


def bind_warpgroup(
    instruction: Instruction, statement: InstructionStatement, types: Types | None
) -> WarpgroupBound:
    """The statement's operands by role; raises IllegalInstruction pointing at the operand at fault."""
    binder = _WarpgroupBinder(instruction, statement, types)
    binder.check_guard()
    in_registers = len(binder.operands) > 1 and isinstance(binder.operands[1], Vector)
    names = _operand_names(instruction, in_registers)
    if len(binder.operands) != len(names):
        raise IllegalInstruction(
            f"{statement.mnemonic} takes {len(names)} operands ({', '.join(names)}), "
            f"but {len(binder.operands)} are given"
        ).at(statement.location())
    place = {name: index for index, name in enumerate(names)}
    bound = WarpgroupBound(
        instruction=instruction,
        d=binder.result(),
        a=binder.source(1, "a") if in_registers else None,
        a_descriptor=None if in_registers else binder.descriptor(1, "a"),
        b_descriptor=binder.descriptor(2, "b"),
        scale_d=binder.scale_d(place["scale-d"]),
    )
    if instruction.sparse:
        bound = replace(bound, e=binder.single(3, "sp-meta", METADATA_TYPES), selector=binder.selector(4))
    return replace(bound, **_immediates(binder, place))  # type: ignore[arg-type]


def _operand_names(instruction: Instruction, in_registers: bool) -> list[str]:
    """The operands in order; imm-scale belongs to floating point, imm-trans to 16 bits in shared memory."""
    names = ["d", "a" if in_registers else "a-desc", "b-desc"]
    if instruction.sparse:
        names += ["sp-meta", "sp-sel"]
    names.append("scale-d")
    if instruction.a.is_float:
        names += ["imm-scale-a", "imm-scale-b"]
    if instruction.a.bits == 16:
        names += ["imm-trans-b"] if in_registers else ["imm-trans-a", "imm-trans-b"]
    return names


def _immediates(binder: _WarpgroupBinder, place: dict[str, int]) -> dict[str, tuple[int, int]]:
    def value(name: str, legal: tuple[int, int], absent: int) -> int:
        return binder.constant(place[name], name, legal) if name in place else absent

    return {
        "imm_scale": (value("imm-scale-a", (-1, 1), 1), value("imm-scale-b", (-1, 1), 1)),
        "imm_trans": (value("imm-trans-a", (0, 1), 0), value("imm-trans-b", (0, 1), 0)),
    }
