"""``mov``: copies, packs and unpacks registers, lane by lane (PTX ISA 9.1, section 9.7.9.7 "mov").

    mov.type  d, a;                 type: .pred .b16 .u16 .s16 .b32 .u32 .s32 .f32 .b64 .u64 .s64 .f64
    mov.type  d, {a, b};            .b16 .b32 .b64: elements of equal width, the first one lowest;
    mov.type  {d, _}, a;            one, two or four of them, and _ for what is not wanted
    mov.type  d, variable+16;       an address, where the machine has variables; integer and .b types

A statement is planned once for the types of its registers, which finds whatever is wrong with it, and then
carried out as often as it is executed. Does not know which registers and constants each type takes (see
ptx/operand_types.py), guards, or what other statements do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..environment import in_default_environment
from ..errors import IllegalInstruction, NotModelled, UndefinedBehavior, WarpsimError, located
from ..ptx.constants import Immediate
from ..ptx.operand_types import CONSTANT_NAMES, CONSTANT_TYPES, VARIABLE_TYPES, moved_types
from ..ptx.operands import Displacement, NegatedPredicate, Operand, Register, Sink, Vector
from ..ptx.statements import InstructionStatement, operand_names
from .register_file import Lanes, Mask, RegisterFile, bits_dtype, type_bits

_TYPES = ("pred", "b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64")
_NOT_YET = frozenset({"b128", "v2", "v4"})
_PACKED = frozenset({"b16", "b32", "b64"})

Part = tuple[str, Lanes, Any]  # a register to write, its value and the origin of that value


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What a mov reads: a register, or its complement, or the bits of a constant if there is no ``name``.

    ``element`` is its place in a vector.
    """

    name: str | None = None
    bits: int = 0
    negated: bool = False
    element: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A mov that may be executed: what it reads, and what it writes with the place of each in a vector.

    ``whole`` is the dtype of all that it moves, ``read`` and ``written`` those of the registers on either
    side; ``names`` are the registers it reads, each once.
    """

    sources: tuple[Source, ...]
    targets: tuple[tuple[str, int], ...]
    whole: np.dtype[Any]
    read: np.dtype[Any]
    written: np.dtype[Any]
    names: tuple[str, ...]

    def parts(self, file: RegisterFile, statement: InstructionStatement, lanes: Mask) -> list[Part]:
        """Every register to write; raises UndefinedBehavior and NotModelled pointing at a source."""
        values = [self._value(one, file, statement, lanes) for one in self.sources]
        if self.whole == self.read == self.written:
            (source,), ((name, _),) = self.sources, self.targets
            copied = source.name is not None and not source.negated and source.element is None
            return [(name, values[0], file.origin(source.name) if copied and source.name else None)]
        bits = 8 * self.read.itemsize
        joined = values[0].astype(self.whole)
        for place, value in enumerate(values[1:], 1):
            joined |= value.astype(self.whole) << self.whole.type(bits * place)
        if self.whole == self.written:
            return [(name, joined, None) for name, _ in self.targets]
        bits = 8 * self.written.itemsize
        return [
            (name, (joined >> self.whole.type(bits * place)).astype(self.written), None)
            for name, place in self.targets
        ]

    def _value(
        self, source: Source, file: RegisterFile, statement: InstructionStatement, lanes: Mask
    ) -> Lanes:
        """The lanes of one source."""
        if source.name is None:
            return np.full(file.lanes, source.bits, self.read)
        try:
            value = file.read(source.name, lanes)
        except WarpsimError as error:
            raise error.at(statement.operand_location(1, source.element)) from None
        assert value.dtype == self.read
        return ~value if source.negated else value


def planned(
    file: RegisterFile, statement: InstructionStatement, addresses: Mapping[str, int] | None = None
) -> Move:
    """What a ``mov`` does on registers of these types; the statement keeps it for the next time.

    ``addresses`` are those of variables in memory. Raises IllegalInstruction, NotModelled and
    UndefinedBehavior that point at the operand at fault.
    """
    names = statement.names
    kinds, known = file.kinds(names), addresses or {}
    places = tuple([known.get(name) for name in names]) if known and None in kinds else ()
    key = "mov", file.strict, kinds, places
    return statement.remembered(key, lambda: _Planner(file, statement, _type(statement), known).plan())


def moved(
    file: RegisterFile,
    statement: InstructionStatement,
    lanes: Mask,
    addresses: Mapping[str, int] | None = None,
) -> list[Part]:
    """What a ``mov`` would write in some lanes of the register file; nothing is written yet.

    Raises as planned does, and UndefinedBehavior for a register that has not been written.
    """
    return planned(file, statement, addresses).parts(file, statement, lanes)


@in_default_environment
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
class _Planner:
    """Checks one mov, and says what it reads and writes."""

    file: RegisterFile
    statement: InstructionStatement
    type: str
    addresses: Mapping[str, int]

    @property
    def mnemonic(self) -> str:
        return f"mov.{self.type}"

    def plan(self) -> Move:
        """The mov, both of whose operands are right."""
        target, source = self.statement.operands or ()
        if isinstance(target, Vector) and isinstance(source, Vector):
            raise self.illegal(f"{self.mnemonic} packs or unpacks, but both operands are vectors", 1)
        read, written = self.type, self.type
        if isinstance(source, Vector):
            read, sources = self.element_type(source, 1), self.packed(source)
        else:
            sources = (self.source(source, self.type, 1),)
        if isinstance(target, Vector):
            written, targets = self.element_type(target, 0), self.unpacked(target)
        else:
            targets = ((self.target(target, self.type, 0), 0),)
        whole, left, right = (bits_dtype(type_bits(one)) for one in (self.type, read, written))
        names = tuple(operand_names(source))
        return Move(sources=sources, targets=targets, whole=whole, read=left, written=right, names=names)

    def illegal(self, message: str, index: int, element: int | None = None) -> IllegalInstruction:
        return IllegalInstruction(message, self.statement.operand_location(index, element))

    # --- sources ---

    def source(self, operand: Operand, wanted: str, index: int, element: int | None = None) -> Source:
        """A register or constant that is read as type ``wanted``."""
        with located(lambda: self.statement.operand_location(index, element)):
            if isinstance(operand, Immediate):
                return self.constant(operand, wanted, element)
            if isinstance(operand, NegatedPredicate) and wanted == "pred":
                return self.register(operand.name, wanted, element, negated=True)
            if (address := self.address(operand)) is not None:
                return self.address_source(address, wanted, element)
            if isinstance(operand, Register):
                return self.register(operand.name, wanted, element)
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

    def address_source(self, address: int, wanted: str, element: int | None) -> Source:
        if wanted not in VARIABLE_TYPES:
            raise IllegalInstruction(f"{self.mnemonic} does not take an address")
        return self.constant(Immediate(address), wanted, element)

    def register(self, name: str, wanted: str, element: int | None, *, negated: bool = False) -> Source:
        known = self.file.types().get(name)
        if known is not None:
            self.check_type(name, known, wanted)
        return Source(name=name, negated=negated, element=element)

    def check_type(self, name: str, known: str, wanted: str) -> None:
        if known not in moved_types(wanted):
            part = "" if wanted == self.type else f" of {type_bits(wanted)}-bit elements"
            raise IllegalInstruction(f"{self.mnemonic}{part} does not take {name}, which is .{known}")

    def constant(self, operand: Immediate, wanted: str, element: int | None) -> Source:
        if wanted not in CONSTANT_TYPES[operand.kind]:
            raise IllegalInstruction(f"{self.mnemonic} does not take {CONSTANT_NAMES[operand.kind]}")
        bits = type_bits(wanted)
        if bits == 1 and operand.value not in (0, 1):
            raise NotModelled(f"{self.mnemonic} of {operand.value} is not modelled; 0 and 1 are")
        return Source(bits=constant_bits(operand, bits), element=element)

    def packed(self, vector: Vector) -> tuple[Source, ...]:
        part, sources = self.element_type(vector, 1), list[Source]()
        for place, element in enumerate(vector.elements):
            if isinstance(element, Sink):
                place_of = self.statement.operand_location(1, place)
                raise UndefinedBehavior("'_' is read here: PTX does not define its bits", place_of)
            sources.append(self.source(element, part, 1, place))
        return tuple(sources)

    # --- targets ---

    def unpacked(self, vector: Vector) -> tuple[tuple[str, int], ...]:
        part = self.element_type(vector, 0)
        if all(isinstance(element, Sink) for element in vector.elements):
            raise self.illegal(f"{self.mnemonic} writes nothing: every element is '_'", 0)
        targets = dict[str, int]()
        for place, element in enumerate(vector.elements):
            if not isinstance(element, Sink):
                name = self.target(element, part, 0, place)
                if name in targets:
                    where = self.statement.operand_location(0, place)
                    raise UndefinedBehavior(f"{self.mnemonic} writes {name} twice", where)
                targets[name] = place
        return tuple(targets.items())

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
