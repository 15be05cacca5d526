"""Operands of an ``mma`` statement: checked against its form, and sorted by role.

Knows how many registers of which types every operand has, as ptxas 13.0 judges them; does not know
what the registers hold. PTX ISA 9.1, sections 9.7.14.5.14 "mma" and 9.7.14.6.3 "mma.sp".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..errors import IllegalInstruction
from ..instruction import Instruction
from .constants import Immediate
from .operands import Operand, Register, Sink, Vector
from .statements import InstructionStatement

Types = Mapping[str, str]  # register name -> declared type without its dot

_MATRICES = ("d", "a", "b", "c")
_ANY_32 = frozenset({"b32", "u32", "s32", "f32", "f16x2", "bf16x2"})
_IDS = frozenset({"b16", "u16", "s16"})
_B32 = frozenset({"b32"})

# Register types that ptxas takes for the elements of a format.
_ACCUMULATOR_TYPES = {
    "f16": frozenset({"b32", "f16x2"}),
    "f32": frozenset({"b32", "f32"}),
    "s32": frozenset({"b32", "s32", "u32"}),
    "f64": frozenset({"f64", "b64"}),
}
_MULTIPLICAND_TYPES = {
    "f16": frozenset({"b32", "f16x2"}),
    "bf16": _B32,
    "tf32": _B32,
    "f64": frozenset({"f64", "b64"}),
}


@dataclass(frozen=True, kw_only=True)
class Bound:
    """An instruction with its operands: register names, immediates, None for the sink ``_``.

    ``ids`` are byte-id-a, thread-id-a, byte-id-b, thread-id-b, as numbers or register names.
    """

    instruction: Instruction
    d: tuple[str | None, ...]
    a: tuple[str | Immediate, ...]
    b: tuple[str | Immediate, ...]
    c: tuple[str | Immediate, ...]
    e: str | None = None
    selector: int = 0
    scale_a: str | None = None
    scale_b: str | None = None
    ids: tuple[str | int, ...] = ()


class _Binder:
    """Checks the operands of one statement in turn; every error points at its operand."""

    def __init__(self, instruction: Instruction, statement: InstructionStatement, types: Types | None):
        self.instruction = instruction
        self.statement = statement
        self.types = types
        self.operands = statement.operands or ()

    def error(self, message: str, index: int, element: int | None = None) -> IllegalInstruction:
        return IllegalInstruction(message).at(self.statement.operand_location(index, element))

    def vector(self, index: int, role: str) -> tuple[Operand, ...]:
        operand = self.operands[index]
        count = self.instruction.registers[role]
        if not isinstance(operand, Vector):
            raise self.error(f"{role} is a vector of {count} registers in braces, not '{operand}'", index)
        if len(operand.elements) != count:
            given = len(operand.elements)
            raise self.error(f"{role} has {count} register{'s'[: count > 1]}, but {given} are given", index)
        return operand.elements

    def register(
        self, operand: Operand, role: str, allowed: frozenset[str], index: int, element: int | None = None
    ) -> str:
        if not isinstance(operand, Register):
            raise self.error(f"{role} takes a register here, not '{operand}'", index, element)
        if self.types is not None:
            declared = self.types.get(operand.name)
            if declared is None:
                raise self.error(f"register {operand} is not declared", index, element)
            if declared not in allowed:
                wanted = " or ".join(f".{name}" for name in sorted(allowed))
                raise self.error(f"{role} takes {wanted} registers, but {operand} is .{declared}", index, element)
        return operand.name

    def types_of(self, role: str) -> frozenset[str]:
        form, name = self.instruction, self.instruction.format(role).name
        if role in "cd":
            return _ACCUMULATOR_TYPES[name]
        if form.sparse and name != "f16":
            return _ANY_32
        return _MULTIPLICAND_TYPES.get(name, _ANY_32)

    def result(self) -> tuple[str | None, ...]:
        elements = self.vector(0, "d")
        if all(isinstance(element, Sink) for element in elements):
            raise self.error("d cannot be all sinks '_': its type is unknown", 0)
        return tuple(
            None if isinstance(element, Sink) else self.register(element, "d", self.types_of("d"), 0, i)
            for i, element in enumerate(elements)
        )

    def source(self, index: int, role: str) -> tuple[str | Immediate, ...]:
        return tuple(
            element
            if isinstance(element, Immediate)
            else self.register(element, role, self.types_of(role), index, i)
            for i, element in enumerate(self.vector(index, role))
        )

    def single(self, index: int, role: str, allowed: frozenset[str]) -> str:
        operand = self.operands[index]
        if isinstance(operand, Vector) and len(operand.elements) == 1:
            operand = operand.elements[0]
        return self.register(operand, role, allowed, index)

    def selector(self, index: int) -> int:
        operand = self.operands[index]
        legal = self.instruction.selectors
        if not isinstance(operand, Immediate) or operand.kind != "integer":
            raise self.error(f"the sparsity selector is a constant, not '{operand}'", index)
        if operand.value not in legal:
            choices = ", ".join(str(value) for value in legal)
            raise self.error(f"sparsity selector {operand.value}: this form has {choices}", index)
        return operand.value

    def ids(self, index: int, side: str) -> tuple[str | int, str | int]:
        operand = self.operands[index]
        if not isinstance(operand, Vector) or len(operand.elements) != 2:
            raise self.error(f"expected {{byte-id-{side}, thread-id-{side}}}, not '{operand}'", index)
        chunks = self.instruction.scale_chunks
        legal = (range(0, 4, chunks), range(2 if side == "a" else 4))
        byte, thread = (
            self.scale_id(element, name, choices, index, i)
            for i, (element, name, choices) in enumerate(
                zip(operand.elements, (f"byte-id-{side}", f"thread-id-{side}"), legal, strict=True)
            )
        )
        return byte, thread

    def scale_id(self, operand: Operand, name: str, legal: range, index: int, element: int) -> str | int:
        if not isinstance(operand, Immediate):
            return self.register(operand, name, _IDS, index, element)
        if operand.kind != "integer" or operand.value not in legal:
            choices = ", ".join(str(value) for value in legal)
            raise self.error(f"{name} {operand}: this form has {choices}", index, element)
        return operand.value


def bind(instruction: Instruction, statement: InstructionStatement, types: Types | None) -> Bound:
    """The statement's operands by role; raises IllegalInstruction pointing at the operand at fault.

    ``types`` None takes every register to have the right type.
    """
    binder = _Binder(instruction, statement, types)
    names = [*_MATRICES]
    if instruction.sparse:
        names += ["metadata", "selector"]
    if instruction.scale:
        names += ["scale_a", "{byte-id-a, thread-id-a}", "scale_b", "{byte-id-b, thread-id-b}"]
    if len(binder.operands) != len(names):
        raise IllegalInstruction(
            f"{statement.mnemonic} takes {len(names)} operands ({', '.join(names)}), "
            f"but {len(binder.operands)} are given"
        ).at(statement.location())
    d, (a, b, c) = binder.result(), (binder.source(i, role) for i, role in enumerate("abc", 1))
    bound = Bound(instruction=instruction, d=d, a=a, b=b, c=c)
    if instruction.sparse:
        bound = replace(bound, e=binder.single(4, "metadata", _ANY_32), selector=binder.selector(5))
    if instruction.scale:
        first = 6 if instruction.sparse else 4
        bound = replace(
            bound,
            scale_a=binder.single(first, "scale_a", _B32),
            scale_b=binder.single(first + 2, "scale_b", _B32),
            ids=(*binder.ids(first + 1, "a"), *binder.ids(first + 3, "b")),
        )
    return bound
