"""``mov``: copies, packs and unpacks registers, lane by lane (PTX ISA 9.1, section 9.7.9.7 "mov").

    mov.type  d, a;                 type: .pred .b16 .u16 .s16 .b32 .u32 .s32 .f32 .b64 .u64 .s64 .f64
    mov.type  d, {a, b};            .b16 .b32 .b64: elements of equal width, the first one lowest;
    mov.type  {d, _}, a;            one, two or four of them, and _ for what is not wanted
    mov.type  d, variable+16;       an address, where the machine has variables; integer and .b types

Does not know which registers and constants each type takes (see ptx/operand_types.py), guards, or what
other statements do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import IllegalInstruction, NotModelled, UndefinedBehavior, located
from ..ptx.constants import Immediate
from ..ptx.operand_types import CONSTANT_NAMES, CONSTANT_TYPES, VARIABLE_TYPES, moved_types
from ..ptx.operands import Displacement, NegatedPredicate, Operand, Register, Sink, Vector
from ..ptx.statements import InstructionStatement
from .register_file import Lanes, Mask, RegisterFile, bits_dtype, type_bits

_TYPES = ("pred", "b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64")
_NOT_YET = frozenset({"b128", "v2", "v4"})
_PACKED = frozenset({"b16", "b32", "b64"})

Part = tuple[str, Lanes, Any]  # a register to write, its value and the origin of that value


def moved(
    file: RegisterFile,
    statement: InstructionStatement,
    lanes: Mask,
    addresses: Mapping[str, int] | None = None,
) -> list[Part]:
    """What a ``mov`` would write in some lanes of the register file; nothing is written yet.

    ``addresses`` are those of variables in memory. Raises IllegalInstruction, NotModelled and
    UndefinedBehavior that point at the operand at fault.
    """
    return _Move(file, statement, _type(statement), lanes, addresses or {}).parts()


def constant_bits(constant: Immediate, bits: int) -> int:
    """The bits of a constant in a register: integers are cut, floats become f32 or f64 as it is wide."""
    own = 32 if constant.kind == "f32" else 64
    if constant.kind == "integer" or own == bits:
        return constant.value & (1 << bits) - 1
    with np.errstate(all="ignore"):
        value = np.array(constant.value, f"u{own // 8}").view(f"f{own // 8}").astype(f"f{bits // 8}")
    return int(value.view(f"u{bits // 8}"))


def _type(statement: InstructionStatement) -> str:
    for index, modifier in enumerate(statement.modifiers):
        if modifier in _NOT_YET:
            raise NotModelled(f"mov.{modifier} is not modelled", statement.modifier_location(index))
        if modifier not in _TYPES:
            known = ", ".join(f".{name}" for name in _TYPES)
            message = f"mov has no type .{modifier}; it has {known}"
            raise IllegalInstruction(message, statement.modifier_location(index))
    if len(statement.modifiers) != 1 or len(statement.operands or ()) != 2:
        message = "mov takes one type and two operands, as in 'mov.b32 %r1, %r2;'"
        raise IllegalInstruction(message, statement.location())
    return statement.modifiers[0]


@dataclass(frozen=True)
class _Move:
    """One mov: what it reads and what it would write."""

    file: RegisterFile
    statement: InstructionStatement
    type: str
    lanes: Mask
    addresses: Mapping[str, int] = field(default_factory=dict)

    @property
    def mnemonic(self) -> str:
        return f"mov.{self.type}"

    def parts(self) -> list[Part]:
        """Every register to write."""
        target, source = self.statement.operands or ()
        if isinstance(target, Vector) and isinstance(source, Vector):
            raise self.illegal(f"{self.mnemonic} packs or unpacks, but both operands are vectors", 1)
        value = self.packed(source) if isinstance(source, Vector) else self.value(source, self.type, 1)
        if isinstance(target, Vector):
            return self.unpacked(target, value)
        origin = self.file.origin(source.name) if isinstance(source, Register) else None
        return [(self.target(target, self.type, 0), value, origin)]

    def illegal(self, message: str, index: int, element: int | None = None) -> IllegalInstruction:
        return IllegalInstruction(message, self.statement.operand_location(index, element))

    # --- sources ---

    def value(self, operand: Operand, wanted: str, index: int, element: int | None = None) -> Lanes:
        """The lanes of a register or constant that is read as type ``wanted``."""
        with located(lambda: self.statement.operand_location(index, element)):
            if isinstance(operand, Immediate):
                return self.constant(operand, wanted)
            if isinstance(operand, NegatedPredicate) and wanted == "pred":
                return ~self.register(operand.name, wanted)
            if (address := self.address(operand)) is not None:
                return self.address_lanes(address, wanted)
            if isinstance(operand, Register):
                return self.register(operand.name, wanted)
            if isinstance(operand, Displacement):
                raise NotModelled(f"{self.mnemonic} of an address, '{operand}', is not modelled")
            raise IllegalInstruction(f"{self.mnemonic} reads a register or a constant, not '{operand}'")

    def address(self, operand: Operand) -> int | None:
        """The address that a variable, or a place in it, stands for; None for anything else."""
        base = operand.base if isinstance(operand, Displacement) else operand
        if not isinstance(base, Register) or base.name in self.file.types():
            return None
        if base.name not in self.addresses:
            return None
        offset = operand.offset if isinstance(operand, Displacement) else 0
        return self.addresses[base.name] + offset

    def address_lanes(self, address: int, wanted: str) -> Lanes:
        if wanted not in VARIABLE_TYPES:
            raise IllegalInstruction(f"{self.mnemonic} does not take an address")
        return self.constant(Immediate(address), wanted)

    def register(self, name: str, wanted: str) -> Lanes:
        known = self.file.types().get(name)
        if known is not None:
            self.check_type(name, known, wanted)
        value = self.file.read(name, self.lanes)
        assert value.dtype == bits_dtype(type_bits(wanted))
        return value

    def check_type(self, name: str, known: str, wanted: str) -> None:
        if known not in moved_types(wanted):
            part = "" if wanted == self.type else f" of {type_bits(wanted)}-bit elements"
            raise IllegalInstruction(f"{self.mnemonic}{part} does not take {name}, which is .{known}")

    def constant(self, operand: Immediate, wanted: str) -> Lanes:
        if wanted not in CONSTANT_TYPES[operand.kind]:
            raise IllegalInstruction(f"{self.mnemonic} does not take {CONSTANT_NAMES[operand.kind]}")
        bits = type_bits(wanted)
        if bits == 1 and operand.value not in (0, 1):
            raise NotModelled(f"{self.mnemonic} of {operand.value} is not modelled; 0 and 1 are")
        return np.full(self.file.lanes, constant_bits(operand, bits), bits_dtype(bits))

    def packed(self, vector: Vector) -> Lanes:
        part = self.element_type(vector, 1)
        bits, whole = type_bits(part), bits_dtype(type_bits(self.type))
        joined = np.zeros(self.file.lanes, whole)
        for place, element in enumerate(vector.elements):
            if isinstance(element, Sink):
                place_of = self.statement.operand_location(1, place)
                raise UndefinedBehavior("'_' is read here: PTX does not define its bits", place_of)
            joined |= self.value(element, part, 1, place).astype(whole) << whole.type(bits * place)
        return joined

    # --- targets ---

    def unpacked(self, vector: Vector, value: Lanes) -> list[Part]:
        part = self.element_type(vector, 0)
        if all(isinstance(element, Sink) for element in vector.elements):
            raise self.illegal(f"{self.mnemonic} writes nothing: every element is '_'", 0)
        bits, parts = type_bits(part), list[Part]()
        for place, element in enumerate(vector.elements):
            if not isinstance(element, Sink):
                name = self.target(element, part, 0, place)
                if any(name == other for other, _, _ in parts):
                    where = self.statement.operand_location(0, place)
                    raise UndefinedBehavior(f"{self.mnemonic} writes {name} twice", where)
                parts.append((name, (value >> value.dtype.type(bits * place)).astype(bits_dtype(bits)), None))
        return parts

    def target(self, operand: Operand, wanted: str, index: int, element: int | None = None) -> str:
        """The name of a register that may be written as type ``wanted``."""
        with located(lambda: self.statement.operand_location(index, element)):
            if not isinstance(operand, Register):
                raise IllegalInstruction(f"{self.mnemonic} writes a register, not '{operand}'")
            known = self.file.writable(operand.name)
            if known is not None:
                self.check_type(operand.name, known, wanted)
            return operand.name

    def element_type(self, vector: Vector, index: int) -> str:
        """The type of the elements of a packed register: untyped bits of equal width."""
        count = len(vector.elements)
        bits = type_bits(self.type) // count if count in (1, 2, 4) else 0
        if self.type not in _PACKED or bits < 8:
            raise self.illegal(f"{self.mnemonic} does not take a vector of {count} elements", index)
        return f"b{bits}"
