"""Operands of an ``mma`` statement: checked against its form, and sorted by role.

Knows how many registers of which types every operand has, as ptxas 13.0 judges them; does not know
what the registers hold. PTX ISA 9.1, sections 9.7.14.5.14 "mma" and 9.7.14.6.3 "mma.sp".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

from ..errors import IllegalInstruction, Location
from ..isa.instruction import Instruction
from .constants import Immediate
from .operands import Atom, Register, Sink, Vector
from .statements import InstructionStatement

Types = Mapping[str, str]  # register name -> declared type without its dot

# --- types -----------------------------------------------------------------------------------------
#
# A vector has one type. Where its elements agree it is theirs; where they differ it is untyped bits,
# and then they must be of kin: .b32 goes with every type of its width, signed with unsigned integers
# and both with integer constants, floats with float constants. An operand takes certain types. So
# `{u32, b32}` may stand in places where `{u32, u32}` may not.

_INTEGER, _FLOAT = "integer constants", "float constants"
_CONSTANT_TYPES = {
    32: {"integer": _INTEGER, "f32": "f32", "f64": _FLOAT},
    64: {"integer": _INTEGER, "f32": _FLOAT, "f64": _FLOAT},
    16: {"integer": _INTEGER, "f32": _FLOAT, "f64": _FLOAT},
}
_KIN = (
    {"u16", "s16", "u32", "s32", "u64", "s64", _INTEGER},
    {"f16", "f32", "f64", _FLOAT},
)
_WIDTH = re.compile(r"\D+(\d+)(x2)?")
_GUARD = re.compile(r"@\s*!?\s*[\w$%]+", re.ASCII)

_IDS = frozenset({"b16", "u16", "s16", _INTEGER})
_B32 = frozenset({"b32"})
_S32 = frozenset({"b32", "u32", "s32"})
_F32 = frozenset({"b32", "f32"})
_F16X2 = frozenset({"b32", "f16x2"})
_ANY_32 = _S32 | _F32 | _F16X2
_ANY_64 = frozenset({"b64", "u64", "s64", "f64", _INTEGER, _FLOAT})
METADATA_TYPES = _S32 | _F16X2

# What the vector of a multiplicand may be, by operation; anything of 32 bits where none is named.
_MULTIPLICANDS = {
    "m8n8k4.f16": _F16X2,
    "f16": _F16X2,
    "bf16": _B32,
    "tf32": _B32,
    "f64": _ANY_64,
    "mxf8f6f4": _B32,
    "mxf4": _B32,
}
_SPARSE_MULTIPLICANDS = _MULTIPLICANDS | {"bf16": _ANY_32, "tf32": _ANY_32}

# What the vector of C or D may be, by element; for f32 some operations take more.
_ACCUMULATORS = {"f16": _F16X2, "s32": _S32 | {_INTEGER}, "f32": _F32, "f64": _ANY_64}
_F32_ACCUMULATORS = {"f8f6f4": _F32 | {_FLOAT}}
_SPARSE_F32_ACCUMULATORS = _F32_ACCUMULATORS | dict.fromkeys(("f16", "bf16", "tf32"), _ANY_32)


@lru_cache(maxsize=4096)
def _types_of(form: Instruction, role: str) -> frozenset[str]:
    """The types that the vector of operand a, b, c or d may have."""
    element = form.format(role).name
    if role in "cd":
        floats = _SPARSE_F32_ACCUMULATORS if form.sparse else _F32_ACCUMULATORS
        return floats.get(form.operation, _F32) if element == "f32" else _ACCUMULATORS[element]
    if str(form.shape) == "m8n8k16":
        return _S32
    return (_SPARSE_MULTIPLICANDS if form.sparse else _MULTIPLICANDS).get(form.operation, _ANY_32)


@cache
def _kin(first: str, second: str) -> bool:
    """Whether elements of two types may stand in one vector; vector registers never do."""
    if "." in first + second or len({_width(first), _width(second)} - {0}) > 1:
        return False
    untyped = first.startswith("b") or second.startswith("b")
    return first == second or untyped or any({first, second} <= group for group in _KIN)


@cache
def _width(name: str) -> int:
    """Bits of a register of the type; 0 for constants, which take the width of their neighbours."""
    match = _WIDTH.fullmatch(name)
    if match is None:
        return 1 if name == "pred" else 0
    return int(match[1]) * (2 if match[2] else 1)


def _vector_type(types: Sequence[str]) -> str:
    """The type of a vector whose elements are of kin."""
    return types[0] if len(set(types)) == 1 else f"b{max(map(_width, types))}"


@cache
def _width_of(types: frozenset[str]) -> int:
    return max(map(_width, types))


@cache
def _suit(types: tuple[str | None, ...], allowed: frozenset[str]) -> bool:
    """Whether registers of these types (None: not declared) make a vector that an operand may be.

    What check_types says in many words; a trace has few different vectors of types.
    """
    kinds = [kind for kind in types if kind is not None]
    alike = all(_kin(before, kind) for before, kind in pairwise(kinds))
    return len(kinds) == len(types) and alike and _vector_type(kinds) in allowed


def _fits(constant: Immediate, bits: int) -> bool:
    """Whether an integer constant has no more bits than a register, signed or unsigned; ``~0`` is -1."""
    signed = constant.value - (1 << 64) if constant.value >> 63 == 1 else constant.value
    return constant.kind != "integer" or -(1 << (bits - 1)) <= signed < 1 << bits


# --- wording ---------------------------------------------------------------------------------------


def choices_text(values: Sequence[object]) -> str:
    """``0``, ``0 or 1``, ``0, 1 or 2``."""
    words = [str(value) for value in values]
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _spelled(kind: str) -> str:
    return {_INTEGER: "an integer", _FLOAT: "a float"}.get(kind, f".{kind}")


def _unsuitable(role: str, allowed: frozenset[str], element: Atom, kind: str) -> str:
    """What is wrong with a vector or register whose type the operand does not take."""
    wanted = choices_text([f".{name}" for name in sorted(allowed) if _width(name)])
    if isinstance(element, Immediate):
        return f"{role} takes {wanted} registers; {kind} may stand among them, but not alone"
    return f"{role} takes {wanted} registers, but {element} is .{kind}"


# --- operands --------------------------------------------------------------------------------------


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


class Binder:
    """Checks the operands of one statement in turn; every error points at its operand."""

    def __init__(self, instruction: Instruction, statement: InstructionStatement, types: Types | None):
        self.instruction = instruction
        self.statement = statement
        self.types = types
        self.operands = statement.operands or ()

    def error(self, message: str, index: int, element: int | None = None) -> IllegalInstruction:
        """An error that points at an operand, or at one element of it."""
        return IllegalInstruction(message).at(self.statement.operand_location(index, element))

    def written(self, index: int, element: int | None = None) -> str:
        """An operand, or one element of it, as it stands in the text."""
        place = self.statement.operand_location(index, element)
        return place.text[place.column - 1 :][: place.length]

    # --- vectors ---

    def result(self) -> tuple[str | None, ...]:
        """The registers of D."""
        elements = self.vector(0, "d")
        if names := self.plain(elements, "d"):
            return names
        if all(isinstance(element, Sink) for element in elements):
            raise self.error("d is all sinks '_', which leaves its type open: name one register", 0)
        for place, element in enumerate(elements):
            if isinstance(element, Immediate):
                constant = self.written(0, place)
                raise self.error(f"d is written: it takes registers or '_', not {constant}", 0, place)
        self.check_types(elements, "d", _types_of(self.instruction, "d"), 0)
        return tuple(element.name if isinstance(element, Register) else None for element in elements)

    def source(self, index: int, role: str) -> tuple[str | Immediate, ...]:
        """The registers and constants of A, B or C."""
        elements = self.vector(index, role)
        if names := self.plain(elements, role):
            return names
        for place, element in enumerate(elements):
            self.check_source(element, role, self.instruction.register_bits, index, place)
        self.check_types(elements, role, _types_of(self.instruction, role), index)
        return tuple(one if isinstance(one, Immediate) else str(one) for one in elements)

    def plain(self, elements: Sequence[Atom], role: str) -> tuple[str, ...] | None:
        """The names of a vector that is all registers and that nothing is wrong with; None for others."""
        names = tuple([element.name for element in elements if type(element) is Register])
        if len(names) != len(elements):
            return None
        if self.types is None:
            return names
        types = self.types
        kinds = tuple([types[name] if name in types else None for name in names])  # noqa: SIM401 (ChainMap.get is slow)
        return names if _suit(kinds, _types_of(self.instruction, role)) else None

    def vector(self, index: int, role: str) -> tuple[Atom, ...]:
        """The elements of a vector of the right size."""
        operand, count = self.operands[index], self.instruction.registers[role]
        wanted = f"{count} register{'s'[: count > 1]}"
        if not isinstance(operand, Vector):
            raise self.error(f"{role} is a vector of {wanted} in braces, not '{self.written(index)}'", index)
        given = len(operand.elements)
        if given != count:
            raise self.error(f"{role} has {wanted}, but {given} {'is' if given == 1 else 'are'} given", index)
        return operand.elements

    def check_source(self, element: Atom, role: str, bits: int, index: int, place: int) -> None:
        """An element that is read is a register, or a constant that fits."""
        if isinstance(element, Sink):
            raise self.error(f"{role} is read: '_' stands for results only", index, place)
        if isinstance(element, Immediate) and not _fits(element, bits):
            constant = self.written(index, place)
            raise self.error(f"constant {constant} does not fit in the {bits} bits of {role}", index, place)

    def check_types(self, elements: Sequence[Atom], role: str, allowed: frozenset[str], index: int) -> None:
        """Registers and constants of one vector suit their neighbours and the operand."""
        typed = [
            (self.type_of(element, _width_of(allowed), index, place), place)
            for place, element in enumerate(elements)
            if not isinstance(element, Sink)
        ]
        registers = [pair for pair in typed if _width(pair[0])]  # a constant does not separate widths
        for (before, first), (kind, place) in (*pairwise(typed), *pairwise(registers)):
            if not _kin(before, kind):
                left, right = (self.written(index, i) for i in (first, place))
                pair = f"{left} ({_spelled(before)}) and {right} ({_spelled(kind)})"
                raise self.error(f"{pair} cannot stand in one vector", index, place)
        if _vector_type([kind for kind, _ in typed]) not in allowed:
            kind, place = next((pair for pair in typed if pair[0] not in allowed), typed[0])
            raise self.error(_unsuitable(role, allowed, elements[place], kind), index, place)

    def type_of(self, element: Atom, bits: int, index: int, place: int | None = None) -> str:
        """The type of a register or constant; untyped bits for a register where no types are known."""
        if isinstance(element, Immediate):
            return _CONSTANT_TYPES[bits][element.kind]
        if self.types is None:
            return f"b{bits}"
        if str(element) not in self.types:
            raise self.error(f"register {element} is not declared", index, place)
        return self.types[str(element)]

    # --- single operands ---

    def single(self, index: int, role: str, allowed: frozenset[str]) -> str:
        """The one register of the metadata or of scales, which ptxas also takes in braces."""
        operand = self.operands[index]
        if isinstance(operand, Vector) and len(operand.elements) == 1:
            operand = operand.elements[0]
        if not isinstance(operand, Register):
            raise self.error(f"{role} is one register, not '{self.written(index)}'", index)
        found = self.type_of(operand, 32, index)
        if found not in allowed:
            raise self.error(_unsuitable(role, allowed, operand, found), index)
        return operand.name

    def selector(self, index: int) -> int:
        """The sparsity selector."""
        operand, legal = self.operands[index], self.instruction.selectors
        if not isinstance(operand, Immediate) or operand.kind != "integer":
            found = self.written(index)
            raise self.error(f"the sparsity selector is an integer constant, not '{found}'", index)
        if operand.value not in legal:
            raise self.error(f"sparsity selector {operand.value}: this form has {choices_text(legal)}", index)
        return operand.value

    def ids(self, index: int, side: str) -> tuple[str | int, ...]:
        """Byte id and thread id of one scale operand, as numbers or register names."""
        operand, names = self.operands[index], (f"byte-id-{side}", f"thread-id-{side}")
        if not isinstance(operand, Vector) or len(operand.elements) != 2:
            raise self.error(f"expected {{{', '.join(names)}}}, not '{self.written(index)}'", index)
        legal = (range(0, 4, self.instruction.scale_chunks), range(2 if side == "a" else 4))
        for place, (element, name, choices) in enumerate(zip(operand.elements, names, legal, strict=True)):
            self.check_source(element, name, 16, index, place)
            if isinstance(element, Immediate) and element.kind == "integer" and element.value not in choices:
                raise self.error(f"{name} {element}: this form has {choices_text(choices)}", index, place)
        self.check_types(operand.elements, f"{names[0]}, {names[1]}", _IDS, index)
        return tuple(one.value if isinstance(one, Immediate) else str(one) for one in operand.elements)

    def check_guard(self) -> None:
        """The guard, if there is one, is a predicate."""
        if self.statement.guard is None or self.types is None:
            return
        name = self.statement.guard[1]
        found = self.types.get(name)
        if found != "pred":
            fault = "is not declared" if found is None else f"is .{found}, not a predicate"
            raise IllegalInstruction(f"guard {name} {fault}").at(_guard_location(self.statement))


def bind(instruction: Instruction, statement: InstructionStatement, types: Types | None) -> Bound:
    """The statement's operands by role; raises IllegalInstruction pointing at the operand at fault.

    ``types`` None takes every register to have the right type.
    """
    binder = Binder(instruction, statement, types)
    binder.check_guard()
    _check_number(instruction, statement)
    parts: dict[str, Any] = {"d": binder.result()}
    parts |= {role: binder.source(place, role) for place, role in enumerate("abc", 1)}
    if instruction.sparse:
        parts |= {"e": binder.single(4, "metadata", METADATA_TYPES), "selector": binder.selector(5)}
    if instruction.scale:
        first = 6 if instruction.sparse else 4
        parts["scale_a"] = binder.single(first, "scale-a", _ANY_32)
        parts["scale_b"] = binder.single(first + 2, "scale-b", _ANY_32)
        parts["ids"] = (*binder.ids(first + 1, "a"), *binder.ids(first + 3, "b"))
    return Bound(instruction=instruction, **parts)


def _check_number(instruction: Instruction, statement: InstructionStatement) -> None:
    names, given = _operand_names(instruction), len(statement.operands or ())
    if given != len(names):
        verb = "is" if given == 1 else "are"
        wanted = f"{len(names)} operands ({', '.join(names)})"
        message = f"{statement.mnemonic} takes {wanted}, but {given} {verb} given"
        raise IllegalInstruction(message).at(statement.location())


@lru_cache(maxsize=4096)
def _operand_names(instruction: Instruction) -> tuple[str, ...]:
    names = ["d", "a", "b", "c"]
    if instruction.sparse:
        names += ["metadata", "selector"]
    if instruction.scale:
        names += ["scale-a", "{byte-id-a, thread-id-a}", "scale-b", "{byte-id-b, thread-id-b}"]
    return tuple(names)


def _guard_location(statement: InstructionStatement) -> Location:
    guard = _GUARD.match(statement.source.text, statement.start)
    return statement.source.location(statement.start, guard and guard.end())
