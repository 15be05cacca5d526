"""Operands of ``mma``, ``wgmma`` and ``tcgen05.mma`` statements: checked against their form, sorted by role.

Knows how many registers every operand has and in which order operands stand, as ptxas 13.0 judges them;
does not know what the registers hold, nor which types they may have (see operand_types.py). PTX ISA 9.1,
sections 9.7.14.5.14 "mma", 9.7.14.6.3 "mma.sp", 9.7.15.5.2 "wgmma.mma_async" and 9.7.15.6.3
"wgmma.mma_async.sp"; 9.3, sections 9.7.17.10.9 to 9.7.17.10.12, whose addresses and descriptors the machine
checks while it runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

from ..base.errors import IllegalInstruction, Location
from ..isa.families.tcgen05 import Form, form_of
from ..isa.instruction import Instruction
from .constants import Immediate
from .operand_types import (
    FLOAT,
    GUARD_TYPES,
    INTEGER,
    TypeSet,
    constant_type,
    kin,
    operand_types,
    suit,
    vector_type,
    width,
    width_of,
)
from .operands import Address, Atom, NegatedPredicate, Operand, Register, Sink, Vector
from .statements import InstructionStatement

Types = Mapping[str, str]  # register name -> declared type without its dot
Places = Mapping[str, int]  # operand -> where it stands in the statement, counted from 0

_GUARD = re.compile(r"@\s*!?\s*[\w$%]+", re.ASCII)


def _fits(constant: Immediate, bits: int) -> bool:
    """Return whether an integer constant has no more bits than a register, signed or unsigned; ``~0`` is
    -1.
    """
    signed = constant.value - (1 << 64) if constant.value >> 63 == 1 else constant.value
    return constant.kind != "integer" or -(1 << (bits - 1)) <= signed < 1 << bits


# --- wording ---------------------------------------------------------------------------------------


def choices_text(values: Sequence[object]) -> str:
    """Return ``0``, ``0 or 1``, ``0, 1 or 2``."""
    words = [str(value) for value in values]
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _kind_text(kind: str) -> str:
    return {INTEGER: "an integer", FLOAT: "a float"}.get(kind, f".{kind}")


def _unsuitable(role: str, allowed: TypeSet, element: Atom, kind: str) -> str:
    """Return what is wrong with a vector or register whose type the operand does not take."""
    wanted = choices_text([f".{name}" for name in sorted(allowed) if width(name)])
    if isinstance(element, Immediate):
        return f"{role} takes {wanted} registers; {kind} may stand among them, but not alone"
    return f"{role} takes {wanted} registers, but {element} is .{kind}"


# --- operands --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A matrix instruction with its operands: register names, immediates, None for the sink ``_``.

    ``places`` says where each operand stands in the statement. What the operands are besides D and metadata
    depends on where they lie: see the classes derived from it.
    """

    instruction: Instruction
    places: Places = field(compare=False, repr=False)
    d: tuple[str | None, ...]
    e: str | None = None
    selector: int = 0


@dataclass(frozen=True, kw_only=True)
class WarpBound(Bound):
    """An mma with its operands, all of which lie in registers.

    ``places`` are those of d, a, b and c; e and selector; scale_a, ids_a, scale_b and ids_b. ``ids`` are
    byte-id-a, thread-id-a, byte-id-b, thread-id-b, as numbers or register names.
    """

    a: tuple[str | Immediate, ...]
    b: tuple[str | Immediate, ...]
    c: tuple[str | Immediate, ...]
    scale_a: str | None = None
    scale_b: str | None = None
    ids: tuple[str | int, ...] = ()


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


@dataclass(frozen=True, kw_only=True)
class TensorBound(Bound):
    """A tcgen05.mma with its operands as they stand in the text: addresses of tensor memory, and descriptors.

    ``a`` is None where A comes from shared memory. ``places`` are those of tensor_operand_names.
    """

    a: tuple[str, ...] | None
    scale_a: str | None = None
    scale_b: str | None = None


class _Binder:
    """Checks the operands of one statement in turn; every error points at its operand.

    ``names`` are the operands in the order in which they stand, with what messages call them.
    """

    def __init__(
        self,
        instruction: Instruction,
        statement: InstructionStatement,
        types: Types | None,
        names: Mapping[str, str],
    ):
        self.instruction = instruction
        self.statement = statement
        self.types = types
        self.names = names
        self.places = _places(tuple(names))
        self.operands = statement.operands or ()

    def error(self, message: str, index: int, element: int | None = None) -> IllegalInstruction:
        """Return an error that points at an operand, or at one element of it."""
        return IllegalInstruction(message).at(self.statement.operand_location(index, element))

    def written(self, index: int, element: int | None = None) -> str:
        """Return an operand, or one element of it, as it stands in the text."""
        place = self.statement.operand_location(index, element)
        return place.quoted()

    def check(self) -> None:
        """Check that the guard is a predicate, and that there are as many operands as the form has."""
        self.check_guard()
        given = len(self.operands)
        if given != len(self.names):
            wanted = f"{len(self.names)} operands ({', '.join(self.names.values())})"
            found = f"{given} {'is' if given == 1 else 'are'} given"
            message = f"{self.statement.mnemonic} takes {wanted}, but {found}"
            raise IllegalInstruction(message).at(self.statement.location())

    # --- vectors ---

    def result(self) -> tuple[str | None, ...]:
        """Return the registers of D."""
        index = self.places["d"]
        elements = self.vector("d")
        if names := self.plain(elements, "d"):
            return names
        if all(isinstance(element, Sink) for element in elements):
            raise self.error("d is all sinks '_', which leaves its type open: name one register", index)
        for place, element in enumerate(elements):
            if isinstance(element, Immediate):
                constant = self.written(index, place)
                raise self.error(f"d is written: it takes registers or '_', not {constant}", index, place)
        self.check_types(elements, "d", operand_types(self.instruction, "d"), index)
        return tuple(element.name if isinstance(element, Register) else None for element in elements)

    def source(self, role: str) -> tuple[str | Immediate, ...]:
        """Return the registers and constants of A, B or C."""
        index = self.places[role]
        elements = self.vector(role)
        if names := self.plain(elements, role):
            return names
        for place, element in enumerate(elements):
            self.check_source(element, role, self.instruction.register_bits, index, place)
        self.check_types(elements, role, operand_types(self.instruction, role), index)
        return tuple(item if isinstance(item, Immediate) else str(item) for item in elements)

    def plain(self, elements: Sequence[Atom], role: str) -> tuple[str, ...] | None:
        """Return the names of a vector that is all registers and that nothing is wrong with; None for
        others.
        """
        names = tuple([element.name for element in elements if type(element) is Register])
        if len(names) != len(elements):
            return None
        if self.types is None:
            return names
        types = self.types
        kinds = tuple([types[name] if name in types else None for name in names])  # noqa: SIM401 (ChainMap.get is slow)
        return names if suit(kinds, operand_types(self.instruction, role)) else None

    def vector(self, role: str) -> tuple[Atom, ...]:
        """Return the elements of a vector of the right size."""
        index = self.places[role]
        operand, count = self.operands[index], self.instruction.registers[role]
        wanted = f"{count} register{'s'[: count > 1]}"
        if not isinstance(operand, Vector):
            raise self.error(f"{role} is a vector of {wanted} in braces, not '{self.written(index)}'", index)
        given = len(operand.elements)
        if given != count:
            raise self.error(f"{role} has {wanted}, but {given} {'is' if given == 1 else 'are'} given", index)
        return operand.elements

    def check_source(self, element: Atom, role: str, bits: int, index: int, place: int) -> None:
        """Check that an element that is read is a register, or a constant that fits."""
        if isinstance(element, Sink):
            raise self.error(f"{role} is read: '_' stands for results only", index, place)
        if isinstance(element, Immediate) and not _fits(element, bits):
            constant = self.written(index, place)
            raise self.error(f"constant {constant} does not fit in the {bits} bits of {role}", index, place)

    def check_types(self, elements: Sequence[Atom], role: str, allowed: TypeSet, index: int) -> None:
        """Check that registers and constants of a vector suit their neighbours and the operand."""
        typed = [
            (self.type_of(element, width_of(allowed), index, place), place)
            for place, element in enumerate(elements)
            if not isinstance(element, Sink)
        ]
        registers = [pair for pair in typed if width(pair[0])]  # a constant does not separate widths
        for (before, first), (kind, place) in (*pairwise(typed), *pairwise(registers)):
            if not kin(before, kind):
                left, right = (self.written(index, i) for i in (first, place))
                pair = f"{left} ({_kind_text(before)}) and {right} ({_kind_text(kind)})"
                raise self.error(f"{pair} cannot stand in one vector", index, place)
        if vector_type([kind for kind, _ in typed]) not in allowed:
            kind, place = next((pair for pair in typed if pair[0] not in allowed), typed[0])
            raise self.error(_unsuitable(role, allowed, elements[place], kind), index, place)

    def type_of(self, element: Atom, bits: int, index: int, place: int | None = None) -> str:
        """Return the type of a register or constant; untyped bits for a register where no types are known."""
        if isinstance(element, Immediate):
            return constant_type(element.kind, bits)
        if self.types is None:
            return f"b{bits}"
        if str(element) not in self.types:
            raise self.error(f"register {element} is not declared", index, place)
        return self.types[str(element)]

    # --- single operands ---

    def single(self, role: str) -> str:
        """Return the one register of the metadata or of scales, which ptxas also takes in braces."""
        index, name, allowed = self.places[role], self.names[role], operand_types(self.instruction, role)
        operand = self.operands[index]
        if isinstance(operand, Vector) and len(operand.elements) == 1:
            operand = operand.elements[0]
        if not isinstance(operand, Register):
            raise self.error(f"{name} is one register, not '{self.written(index)}'", index)
        found = self.type_of(operand, width_of(allowed), index)
        if found not in allowed:
            raise self.error(_unsuitable(name, allowed, operand, found), index)
        return operand.name

    def selector(self) -> int:
        """Return the sparsity selector."""
        index = self.places["selector"]
        operand, legal = self.operands[index], self.instruction.selectors
        if not isinstance(operand, Immediate) or operand.kind != "integer":
            found = self.written(index)
            raise self.error(f"the sparsity selector is an integer constant, not '{found}'", index)
        if operand.value not in legal:
            raise self.error(f"sparsity selector {operand.value}: this form has {choices_text(legal)}", index)
        return operand.value

    def ids(self, side: str) -> tuple[str | int, ...]:
        """Byte id and thread id of one scale operand, as numbers or register names."""
        role, names = f"ids_{side}", (f"byte-id-{side}", f"thread-id-{side}")
        index, allowed = self.places[role], operand_types(self.instruction, role)
        operand = self.operands[index]
        if not isinstance(operand, Vector) or len(operand.elements) != 2:
            raise self.error(f"expected {self.names[role]}, not '{self.written(index)}'", index)
        scales = self.instruction.scales(side)
        legal = scales.byte_ids, scales.thread_ids
        for place, (element, name, choices) in enumerate(zip(operand.elements, names, legal, strict=True)):
            self.check_source(element, name, width_of(allowed), index, place)
            if isinstance(element, Immediate) and element.kind == "integer" and element.value not in choices:
                raise self.error(f"{name} {element}: this form has {choices_text(choices)}", index, place)
        self.check_types(operand.elements, f"{names[0]}, {names[1]}", allowed, index)
        return tuple(item.value if isinstance(item, Immediate) else str(item) for item in operand.elements)

    def sparsity(self) -> dict[str, Any]:
        """Return metadata and selector of a sparse form."""
        return {"e": self.single("e"), "selector": self.selector()} if self.instruction.sparse else {}

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
        if not isinstance(operand, Register | NegatedPredicate):
            raise self.error(f"scale-d is a predicate, 0 or 1, not '{operand}'", index)
        register = Register(operand.name)
        if self.types is not None:
            found = self.type_of(register, 1, index)
            if found not in operand_types(self.instruction, "scale_d"):
                raise self.error(f"scale-d is a predicate, but {register} is .{found}", index)
        return isinstance(operand, NegatedPredicate), operand.name

    def constant(self, role: str, legal: tuple[int, int], absent: int) -> int:
        """Return an immediate operand with two legal values; ``absent`` where the form has none."""
        if role not in self.places:
            return absent
        index = self.places[role]
        operand = self.operands[index]
        if not isinstance(operand, Immediate) or operand.kind != "integer" or operand.value not in legal:
            raise self.error(f"{self.names[role]} is {choices_text(legal)}, not '{operand}'", index)
        return operand.value

    def check_guard(self) -> None:
        """Check that the guard, if any, is a predicate."""
        if self.statement.guard is None or self.types is None:
            return
        name = self.statement.guard[1]
        found = self.types.get(name)
        if found not in GUARD_TYPES:
            fault = "is not declared" if found is None else f"is .{found}, not a predicate"
            raise IllegalInstruction(f"guard {name} {fault}").at(_guard_location(self.statement))


def bind(instruction: Instruction, statement: InstructionStatement, types: Types | None) -> WarpBound:
    """Return the operands of an mma by role; raises IllegalInstruction pointing at the operand at fault.

    ``types`` None takes every register to have the right type.
    """
    binder = _Binder(instruction, statement, types, _warp_operands(instruction))
    binder.check()
    d, a, b, c = binder.result(), binder.source("a"), binder.source("b"), binder.source("c")
    others = binder.sparsity()
    if instruction.scale:
        others |= {role: binder.single(role) for role in ("scale_a", "scale_b")}
        others |= {"ids": (*binder.ids("a"), *binder.ids("b"))}
    return WarpBound(instruction=instruction, places=binder.places, d=d, a=a, b=b, c=c, **others)


@lru_cache(maxsize=4096)
def _warp_operands(instruction: Instruction) -> Mapping[str, str]:
    """Return the operands in order, and what messages call them."""
    names = {role: role for role in "dabc"}
    if instruction.sparse:
        names |= {"e": "metadata", "selector": "selector"}
    if instruction.scale:
        for side in "ab":
            names |= {
                f"scale_{side}": f"scale-{side}",
                f"ids_{side}": f"{{byte-id-{side}, thread-id-{side}}}",
            }
    return names


def bind_warpgroup(
    instruction: Instruction, statement: InstructionStatement, types: Types | None
) -> WarpgroupBound:
    """Return the operands of a wgmma by role; raises IllegalInstruction as bind does."""
    operands = statement.operands or ()
    in_registers = len(operands) > 1 and isinstance(operands[1], Vector)
    binder = _Binder(instruction, statement, types, _warpgroup_operands(instruction, in_registers))
    binder.check()
    d = binder.result()
    if None in d:
        message = "d is read and written: '_' stands for results only"
        raise binder.error(message, binder.places["d"], d.index(None))
    return WarpgroupBound(
        instruction=instruction,
        places=binder.places,
        d=d,
        a=binder.source("a") if in_registers else None,
        a_descriptor=None if in_registers else binder.descriptor("a"),
        b_descriptor=binder.descriptor("b"),
        scale_d=binder.scale_d(),
        **binder.sparsity(),
        imm_scale=(binder.constant("imm_scale_a", (-1, 1), 1), binder.constant("imm_scale_b", (-1, 1), 1)),
        imm_trans=(binder.constant("imm_trans_a", (0, 1), 0), binder.constant("imm_trans_b", (0, 1), 0)),
    )


@lru_cache(maxsize=4096)
def _warpgroup_operands(instruction: Instruction, in_registers: bool) -> Mapping[str, str]:
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


def tensor_operand_names(form: Form, operands: Sequence[Operand]) -> tuple[tuple[str, ...], str]:
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
    names, optional = tensor_operand_names(form_of(statement.modifiers), operands)
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


@cache
def _places(roles: tuple[str, ...]) -> Places:
    return {role: index for index, role in enumerate(roles)}


def _guard_location(statement: InstructionStatement) -> Location:
    guard = _GUARD.match(statement.source.text, statement.start)
    return statement.source.location(statement.start, guard and guard.end())
