"""A statement while it is loaded: its operands become readers and writers, its mistakes errors with a place.

Knows which registers and constants suit a type (PTX ISA 9.1, sections 6.2 and 9.4.1); does not know opcodes.
A reader takes (wave, path) and returns one unsigned value a lane, or one of shape () for all; a writer takes
(wave, path, lanes, values).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, ClassVar, NoReturn, TypeVar

import numpy as np

from ...base.errors import IllegalInstruction, NotModelled, WarpsimError
from ...isa.architectures import has, least_targets
from ...isa.features import Feature
from ...ptx.binding import Bound
from ...ptx.constants import Immediate
from ...ptx.operand_types import (
    CONSTANT_NAMES,
    CONSTANT_TYPES,
    TypeSet,
    accessed_types,
    computed_types,
    constant_type,
    together,
)
from ...ptx.operands import Address, Displacement, NegatedPredicate, Operand, Register, Sink, Vector
from ...ptx.statements import InstructionStatement, operand_names
from ..bind.constants import constant_bits
from ..bind.functions import ModuleNames
from ..bind.members import Member
from ..bind.pure_semantics import NOWHERE, Load, PureSemantics, Source, Widening
from ..bind.scope import Flow, FunctionName, LabelName, Meaning, RegisterName, Scope, Variable
from ..bind.value_types import bits_of, dtype_of
from ..run.clusters import cluster_addresses
from ..run.wave import Wave
from ..state import spaces
from ..state.lanes import DivergentPath, Lanes, Values
from ..state.side_tables import SideTable
from . import special_registers
from .operation import Compute

Problem = TypeVar("Problem", bound=WarpsimError)
Reader = Callable[[Wave, DivergentPath], Values]
Writer = Callable[[Wave, DivergentPath, Lanes, Values], None]


@dataclass(eq=False)
class StatementBinder:
    """One statement, and what the names in it mean; it remembers which registers were asked for."""

    statement: InstructionStatement
    scope: Scope
    module: ModuleNames
    operands: Sequence[Operand] = field(init=False)
    declared: ClassVar[bool] = True  # whether every register has a declared type
    matrix: Bound | None = field(init=False, default=None)  # the operands by role
    semantics: PureSemantics | None = field(
        init=False, default=None
    )  # of a statement that computes lane by lane
    member: Member | None = field(init=False, default=None)  # of a statement of a run
    sources: dict[Reader, Source] = field(init=False, default_factory=dict)  # what readers read
    targets: dict[Writer, int] = field(init=False, default_factory=dict)  # the registers of writers,
    widened: dict[Writer, Widening] = field(init=False, default_factory=dict)  # and how values fill them
    _values: set[int] = field(init=False, default_factory=set)
    _addresses: set[int] = field(init=False, default_factory=set)
    _written: set[int] = field(init=False, default_factory=set)
    _made_up: dict[str, None] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.operands = tuple(map(self._spread, self.statement.operands or ()))

    def _spread(self, operand: Operand) -> Operand:
        """Return a vector of registers where its name stands alone, as ``%v`` of ``.reg .v2 .b32 %v``."""
        if not isinstance(operand, Register) or self.scope.find(operand.name) is not None:
            return operand
        names = [f"{operand.name}.{letter}" for letter in "xyzw"]
        known = [Register(name) for name in names if isinstance(self.scope.find(name), RegisterName)]
        return Vector(tuple(known)) if known else operand

    def flow(self) -> Flow:
        """Return the registers that readers, writers and addresses were made of; others that it names are
        read.
        """
        names = [name for operand in self.operands for name in operand_names(operand)]
        found = [self.scope.find(name) for name in names]
        named = {meaning.number for meaning in found if isinstance(meaning, RegisterName)}
        return _flow(
            values=frozenset(self._values | (named - self._addresses - self._written)),
            addresses=frozenset(self._addresses),
            written=frozenset(self._written),
            framed=any(isinstance(meaning, Variable) and meaning.framed for meaning in found),
            made_up=tuple(self._made_up),
        )

    # --- errors ---

    def illegal(
        self, message: str, operand: int | None = None, element: int | None = None
    ) -> IllegalInstruction:
        """Return an error that points at the statement, or at an operand of it."""
        return self.at(IllegalInstruction(message), operand, element)

    def not_modelled(self, message: str, operand: int | None = None) -> NotModelled:
        """Return an error that points at the statement, or at an operand of it."""
        return self.at(NotModelled(message), operand)

    def at(self, error: Problem, operand: int | None = None, element: int | None = None) -> Problem:
        """Return the error, pointing at the statement or at an operand."""
        place = self.statement
        return error.at(place.location() if operand is None else place.operand_location(operand, element))

    def count(self, *counts: int) -> int:
        """Return the number of operands, which is one of these; raises IllegalInstruction."""
        given = len(self.operands)
        if given not in counts:
            wanted = " or ".join(map(str, counts)) + f" operand{'s'[: counts != (1,)]}"
            have = f"{given} {'is' if given == 1 else 'are'}"
            raise self.illegal(f"{self.statement.mnemonic} takes {wanted}, but {have} given")
        return given

    def check_available(self, since: tuple[int, int], feature: Feature | None = None, name: str = "") -> None:
        """Check that the module's version and target have the statement, or what ``name`` names.

        Raises IllegalInstruction.
        """
        target, version, name = self.module.target, self.module.version, name or self.statement.mnemonic
        if feature is not None and not has(target, feature):
            raise self.illegal(f"{name} is not on {target}: it needs {least_targets(feature)}")
        if version < since:
            wanted, given = (".".join(map(str, numbers)) for numbers in (since, version))
            raise self.illegal(f"{name} needs PTX {wanted}, but the version is {given}")

    # --- names ---

    def meaning(self, name: str, operand: int, element: int | None = None) -> Meaning:
        """Return what a name stands for; raises IllegalInstruction where it is not declared."""
        found = self.scope.find(name)
        if found is None:
            raise self.illegal(f"{name} is not declared", operand, element)
        return found

    def label(self, operand: int) -> LabelName:
        """Return the label that an operand names."""
        given = self.operands[operand]
        found = self.scope.find(given.name) if isinstance(given, Register) else None
        if not isinstance(found, LabelName):
            raise self.illegal(f"expected a label, not '{given}'", operand)
        return found

    def register_operand(self, index: int) -> Register:
        """Return an operand that is a register, and neither a constant nor ``_``."""
        operand = self.operands[index]
        self.register(operand, index)
        assert isinstance(operand, Register)
        return operand

    def register(self, operand: Operand, index: int, element: int | None = None) -> RegisterName:
        """Return the register that an operand, or an element of it, names."""
        if not isinstance(operand, Register):
            raise self.illegal(f"expected a register, not '{operand}'", index, element)
        found = self.meaning(operand.name, index, element)
        if not isinstance(found, RegisterName):
            raise self.illegal(f"{operand.name} is not a register", index, element)
        return found

    # --- sources ---

    def reader(
        self, operand: Operand, type_name: str, index: int, element: int | None = None, *, wide: bool = False
    ) -> Reader:
        """Return a reader of an operand as a type; with ``wide`` a register may be wider than it, and is cut.

        Raises IllegalInstruction for what does not suit the type.
        """
        if isinstance(operand, Immediate):
            return self.constantly(self.constant(operand, type_name, index, element))
        if isinstance(operand, NegatedPredicate):
            if type_name != "pred":
                raise self.illegal(
                    f"'{operand}' negates a predicate, but a .{type_name} goes here", index, element
                )
            inner = self.reader(Register(operand.name), type_name, index, element)
            known = self.sources.get(inner)
            return self._known(
                lambda wave, path: ~inner(wave, path), None if known is None else replace(known, negated=True)
            )
        if isinstance(operand, Displacement):
            return self._variable_address(operand.base, operand.offset, type_name, index, element)
        if not isinstance(operand, Register):
            raise self.illegal(f"expected a register or a constant, not '{operand}'", index, element)
        if self.scope.find(operand.name) is None and special_registers.is_special(operand.name):
            return self._special(operand.name, type_name, index, element)
        if not isinstance(found := self.meaning(operand.name, index, element), RegisterName):
            if isinstance(found, Variable) and self.statement.opcode not in _NAMING:
                raise self.illegal(f"expected a register: mov takes the address of {operand}", index, element)
            return self._variable_address(operand, 0, type_name, index, element)
        found = self.register(operand, index, element)
        self.check_type(operand.name, found.type, type_name, index, element, wide)
        self._values.add(found.number)
        number, dtype = found.number, dtype_of(type_name)
        if bits_of(found.type) == bits_of(type_name):
            return self._known(*_register_reader(number))
        return self._known(
            lambda wave, path: _value(wave, path, number).astype(dtype), Source(register=number, dtype=dtype)
        )

    def _known(self, read: Reader, source: Source | None) -> Reader:
        """Return a reader, of which it is remembered what it reads."""
        if source is not None:
            self.sources[read] = source
        return read

    def apart(self, read: Reader) -> Reader:
        """Return a reader of what is in no register and stays the same while a basic block is executed."""
        return self._known(read, Source(read=read))

    def constantly(self, constant: Values, read: Reader | None = None) -> Reader:
        """Return a reader of a constant, shape (); or ``read``, which reads it."""
        if read is None:
            return self._known(*_constant_reader(constant.tobytes(), constant.dtype))
        return self._known(read, Source(read=read, constant=constant))

    def computes(
        self,
        compute: Compute | None,
        readers: Sequence[Reader],
        writers: Sequence[Writer],
        where: Callable[..., Values] | None = None,
    ) -> None:
        """Keep the pure semantics of a statement that only computes, if all its operands are registers or
        constant during a launch; ``where`` is as Operation has it.
        """
        self._keep_semantics(PureSemantics(compute, (), (), where=where), readers, writers)

    def loads(self, load: Load, address: Reader, writers: Sequence[Writer]) -> None:
        """Keep the pure semantics of a load."""
        self._keep_semantics(PureSemantics(None, (), (), load=load), [address], writers)

    def _keep_semantics(
        self, semantics: PureSemantics, readers: Sequence[Reader], writers: Sequence[Writer]
    ) -> None:
        if all(read in self.sources for read in readers) and all(write in self.targets for write in writers):
            self.semantics = semantics._replace(
                sources=tuple(self.sources[read] for read in readers),
                targets=tuple(self.targets[write] for write in writers),
                widened=tuple(self.widened.get(write) for write in writers),
            )

    def _special(self, name: str, type_name: str, index: int, element: int | None) -> Reader:
        known = special_registers.type_of(name)
        if known is None:
            raise self.at(NotModelled(f"the special register {name} is not modelled"), index, element)
        self._check_special(name, type_name, index, element)
        if special_registers.REGISTERS[name].made_up:
            self._made_up[name] = None
        value, dtype = special_registers.REGISTERS[name].value, dtype_of(type_name)

        def read(wave: Wave, path: DivergentPath) -> Values:
            known = _SPECIAL.of(wave).get(name)
            if known is None:
                known = np.asarray(value(wave)).astype(dtype)
                if special_registers.REGISTERS[name].constant:
                    _SPECIAL.of(wave)[name] = known
            return known.astype(dtype, copy=False)

        return self.apart(read) if special_registers.REGISTERS[name].constant else read

    def _check_special(self, name: str, type_name: str, index: int, element: int | None) -> None:
        """Only mov, and cvt of integers to integers, read special registers; mov at their width."""
        opcode, bits = self.statement.opcode, bits_of(type_name)
        if opcode not in ("mov", "cvt"):
            raise self.illegal(f"{opcode} does not take special registers: mov reads {name}", index, element)
        known, numbers = (
            special_registers.REGISTERS[name].type,
            not any("f" in modifier for modifier in self.statement.modifiers),
        )
        fits = bits <= bits_of(known) if opcode == "cvt" else bits in special_registers.widths(name)
        if not (fits and numbers and (bits == 1) == (known == "pred")):
            raise self.illegal(f"{name} is .{known}, not .{type_name}", index, element)
        self.check_available(*special_registers.needed(name), name)

    def _variable_address(
        self, base: Register, offset: int, type_name: str, index: int, element: int | None
    ) -> Reader:
        """Return the address of a variable or function in its space."""
        found = self.meaning(base.name, index, element)
        dtype = dtype_of(type_name)
        if isinstance(found, FunctionName):
            if self.statement.opcode not in ("mov", "call"):
                raise self.illegal(f"expected a register: mov takes the address of {base}", index, element)
            number = self.module.function_number(found.name)
            handle = np.array(number, dtype)
            return lambda wave, path: handle
        if not isinstance(found, Variable):
            raise self.illegal(f"{base} has no address", index, element)
        if type_name[0] not in "bus" or type_name.startswith("bf") or type_name.endswith("x2"):
            raise self.illegal(f".{type_name} does not take the address of {base}", index, element)
        address = self.address_of(found)
        return self.apart(lambda wave, path: (address(wave, path) + offset).astype(dtype))

    def constant(self, operand: Immediate, type_name: str, index: int, element: int | None = None) -> Values:
        """Return the bits of a constant read as a type, shape ()."""
        bits, dtype = bits_of(type_name), dtype_of(type_name)
        if not self._takes(operand, type_name):
            given = CONSTANT_NAMES[operand.kind]
            raise self.illegal(f".{type_name} does not take {given}, as {operand}", index, element)
        if bits == 1:
            return np.array(bool(operand.value), np.bool_)
        if operand.kind == "integer":
            return np.array(operand.value & (1 << bits) - 1, np.uint64).astype(dtype)
        return np.array(constant_bits(operand, bits), dtype)

    def _takes(self, operand: Immediate, type_name: str) -> bool:
        """Return whether a constant may stand for a type; none for .bf16 where the sum is of .f32."""
        modifiers = self.statement.modifiers
        if self.statement.opcode == "cvt" and type_name[0] == "b" and modifiers[:1] != ("pack",):
            return False
        if self.statement.opcode in ("set", "setp") and type_name == "pred" and "bf16" in "".join(modifiers):
            return False
        if type_name == "bf16" and "f32" in modifiers:
            return False
        bytes_ = ("u8", "s8") if operand.kind == "integer" else ()
        return type_name in bytes_ or type_name in CONSTANT_TYPES[operand.kind]

    def check_type(
        self, name: str, known: str, wanted: str, index: int, element: int | None, wide: bool = False
    ) -> None:
        """Check that a register of a type may stand where another is wanted; raises IllegalInstruction.

        An element of a vector counts as what its elements are together.
        """
        operand, allowed = self.operands[index], accessed_types(wanted) if wide else computed_types(wanted)
        if isinstance(operand, Vector):
            known = self._type_of(operand, known, index) or self._no_vector(operand, index, wanted, allowed)
            floats = wanted in ("f16", "f32", "f64") and self.statement.opcode != "wmma"
            if known[0] in "us" and floats and bits_of(known) == bits_of(wanted):
                return  # ptxas takes vectors of integers for those of floats, but no single register
        if known not in allowed:
            raise self._unsuited(name, known, wanted, index, element)

    def _unsuited(
        self, name: str, known: str, wanted: str, index: int, element: int | None
    ) -> IllegalInstruction:
        message = f"{self.statement.mnemonic} takes .{wanted} here, but {name} is .{known}"
        return self.illegal(message, index, element)

    def _type_of(self, vector: Vector, known: str, index: int) -> str | None:
        """Return the type of a vector in which a register has a known type; None for elements that make
        none.
        """
        types = (self._element_type(element, known) for element in vector.elements)
        return together(tuple(type_name for type_name in types if type_name is not None))

    def _element_type(self, element: Operand, known: str) -> str | None:
        """Return what an element counts as beside one of a known type; None for what is not looked at."""
        if isinstance(element, Immediate):
            return constant_type(element.kind, max(bits_of(known), 16))
        found = self.scope.find(element.name) if isinstance(element, Register) else None
        return found.type if isinstance(found, RegisterName) else None

    def _no_vector(self, vector: Vector, index: int, wanted: str, allowed: TypeSet) -> NoReturn:
        """Return the error of elements that make no vector: of the first that is wrong by itself, or of
        all.
        """
        types = [self._element_type(element, "b32") for element in vector.elements]
        for place, (element, kind) in enumerate(zip(vector.elements, types, strict=True)):
            if isinstance(element, Register) and kind is not None and kind not in allowed:
                raise self._unsuited(str(element), kind, wanted, index, place)
        given = dict.fromkeys(kind for kind in types if kind is not None)
        listed = " and ".join(f".{kind}" if kind[0] in "bsu" or kind[1].isdigit() else kind for kind in given)
        raise self.illegal(f"'{vector}' has elements of {listed}, which make no vector", index)

    def reading(self, number: int) -> Reader:
        """Return a reader of a register by number."""
        self._values.add(number)
        return self._known(*_register_reader(number))

    # --- results ---

    def writing(self, number: int) -> Writer:
        """Return a writer of a register by number."""
        self._written.add(number)
        return self._writing(number)

    def _writing(self, number: int) -> Writer:
        write = _to_register(number)
        self.targets[write] = number
        return write

    def writer(
        self, operand: Operand, type_name: str, index: int, element: int | None = None, *, wide: bool = False
    ) -> Writer:
        """Return a writer of a register; with ``wide`` it may be wider than the type, and the value is
        extended.
        """
        if isinstance(operand, Sink):
            if element is None and self.statement.opcode not in _DISCARDING:
                raise self.illegal(f"{self.statement.opcode} does not take _ for its result", index)
            self.targets[_discard] = NOWHERE
            return _discard
        found = self.register(operand, index, element)
        self.check_type(str(operand), found.type, type_name, index, element, wide)
        self._written.add(found.number)
        number = found.number
        if bits_of(found.type) == bits_of(type_name):
            return self._writing(number)
        if bits_of(found.type) > 64:
            message = f"a .{type_name} that is extended to .{found.type} is not modelled"
            raise self.not_modelled(message, index)
        dtype = dtype_of(found.type)
        signed = np.dtype(f"i{dtype_of(type_name).itemsize}") if type_name[0] == "s" else None
        wide_signed = np.dtype(f"i{dtype.itemsize}")

        def extended(wave: Wave, path: DivergentPath, lanes: Lanes, values: Values) -> None:
            if signed is not None:
                values = values.view(signed).astype(wide_signed).view(dtype)
            wave.write(path, lanes, number, values.astype(dtype, copy=False))

        self.targets[extended] = number
        value = signed or dtype_of(type_name)
        self.widened[extended] = Widening(value=value, register=wide_signed if signed else dtype)
        return extended

    def policy(self, index: int) -> None:
        """Check a cache policy, which nothing here looks at; raises IllegalInstruction for what is none."""
        self.whole(index, "a cache policy")

    def whole(self, index: int, what: str) -> Reader:
        """Return a reader of 64 bits, no float and no address; raises IllegalInstruction for others."""
        operand = self.operands[index]
        if isinstance(operand, Displacement):
            raise self.illegal(f"{what} is a register or an integer, not '{operand}'", index)
        return self.reader(operand, "u64", index)

    def elements(self, index: int, count: int) -> tuple[Operand, ...]:
        """Return the registers of a vector operand of that many, or the operand itself for a count of 1."""
        operand = self.operands[index]
        given = operand.elements if isinstance(operand, Vector) else (operand,)
        if len(given) != count:
            raise self.illegal(f"expected {_count_text(count, 'element')}, not '{operand}'", index)
        return given

    # --- addresses ---

    def address_of(self, variable: Variable) -> Reader:
        """Return the address of a variable in its own space, int64."""
        if variable.space in ("global", "const"):
            name = variable.name
            return lambda wave, path: np.array(wave.symbols[name], np.int64)
        if variable.space == "local" or variable.framed:
            place = variable.offset
            return lambda wave, path: np.array(place + path.frame.local, np.int64)
        if variable.space == "shared" and has(self.module.target, Feature.CTA_PAIRS):
            return partial(_in_window, None if variable.dynamic else variable.offset)
        if variable.space == "shared" and variable.dynamic:
            return lambda wave, path: np.array(wave.entry.static_shared_bytes, np.int64)
        place = variable.offset
        return lambda wave, path: np.array(place, np.int64)

    def place(self, index: int, space: str) -> tuple[Reader, str]:
        """Return address, and the space that it really lies in: .param of a call is kept in local memory."""
        operand = self.operands[index]
        base = operand.base if isinstance(operand, Address) else None
        found = self.scope.find(base.name) if base else None
        framed = space == "param" and isinstance(found, Variable) and found.framed
        if isinstance(found, Variable) and _FORBIDDEN.get(self.statement.opcode) == found.formal:
            way = "read" if found.formal == "parameter" else "written"
            message = f"{found.name} is a {found.formal} of this function: it is only {way}"
            raise self.illegal(message, index)
        return self.address(index, space), "local" if framed else space

    def narrow(self, what: str, index: int) -> IllegalInstruction | NotModelled:
        """Return the error of an address of 32 bits where PTX has only 64: generic, and in .global.

        ptxas 13.0 takes it of some opcodes, though PTX does not say what it means.
        """
        if self.statement.opcode in _NARROW_TOO:
            message = f"{what} has 32 bits: ptxas takes it, PTX does not define it, and it is not modelled"
            return self.not_modelled(message, index)
        return self.illegal(f"{what} has 32 bits: generic addresses and those of .global have 64", index)

    def offset(self, index: int) -> tuple[int, bool]:
        """Return what ``address`` adds to the register of an operand, and whether their sum has 32 bits."""
        operand = self.operands[index]
        base = operand.base if isinstance(operand, Address) else None
        found = self.scope.find(base.name) if base else None
        if not isinstance(operand, Address) or not isinstance(found, RegisterName):
            return 0, False
        return operand.offset, bits_of(found.type) == 32

    def address(self, index: int, space: str, *, box: bool = False) -> Reader:
        """Return the addresses (lanes,) or () of an address operand ``[...]`` in a space, int64.

        Of a ``box`` it is that of its map. Raises IllegalInstruction for a register that holds no address,
        and a variable of another space.
        """
        operand = self.operands[index]
        if not isinstance(operand, Address) or (operand.coordinates and not box):
            raise self.illegal(f"expected an address in brackets, as [%r1+16], not '{operand}'", index)
        offset = operand.offset
        if operand.base is None:
            if space != "local":
                raise self.illegal(f"a constant address lies in .local, not in .{space}", index)
            return self.apart(lambda wave, path: np.array(offset, np.int64))
        found = self.meaning(operand.base.name, index)
        if isinstance(found, RegisterName):
            if found.type not in _ADDRESSES:
                raise self.illegal(f"{operand.base} is .{found.type}: an address has 32 or 64 bits", index)
            wide_only = space in ("generic", "global") and self.statement.opcode not in _NARROW
            if wide_only and bits_of(found.type) == 32:
                raise self.narrow(f"the address {operand.base}", index)
            self._addresses.add(found.number)
            number, narrow = found.number, bits_of(found.type) == 32
            return self._known(
                lambda wave, path: _address(_value(wave, path, number), offset, narrow),
                Source(register=number),
            )
        if not isinstance(found, Variable):
            raise self.illegal(f"{operand.base} has no address", index)
        base = self.address_of(found)
        shift = _WINDOWS.get(found.space, 0) if space == "generic" else 0
        near = space in ("generic", found.space) or (space, found.space) == ("shared::cluster", "shared")
        if not near or (space == "generic" and found.space == "param" and not box):
            raise self.illegal(f"{operand.base} is in .{found.space}, not in .{space}", index)
        return self.apart(lambda wave, path: base(wave, path) + (offset + shift))


_SPECIAL = SideTable[dict[str, Values]](lambda _: {})  # special registers of a wave that stay the same
_NAMING = ("mov", "cvta", "mapa", "getctarank")  # opcodes that take the name of a variable for its address
# Opcodes that take _ for a result; in vectors it may always stand.
_DISCARDING = ("setp", "lop3", "atom", "shfl", "match", "elect", "mbarrier")
_FORBIDDEN = {"st": "parameter", "ld": "result"}  # what opcodes do not take of the function they are in
_NARROW = ("cp", "ldmatrix", "stmatrix", "createpolicy")  # opcodes that take addresses of 32 bits
_NARROW_TOO = ("tcgen05", "fence", "tensormap", "clusterlaunchcontrol")
_ADDRESSES = frozenset({"b32", "u32", "s32", "b64", "u64", "s64"})
_WINDOWS = {
    "shared": spaces.SHARED_WINDOW,
    "local": spaces.LOCAL_WINDOW,
    "param": spaces.PARAM_WINDOW,
}


def _in_window(offset: int | None, wave: Wave, path: DivergentPath) -> Values:
    """Return the address of a variable in shared memory, of dynamic shared memory for an offset of None.

    In a cluster it names the CTA, as kernels count on that clear a bit of it to name the first of a pair.
    """
    place = np.array(wave.entry.static_shared_bytes if offset is None else offset, np.int64)
    return place if wave.cluster.count == 1 else cluster_addresses(wave, place)


# What statements have in common is made once: a large kernel has many statements and few of these.
_SHARED = 1 << 13
_flow = lru_cache(maxsize=_SHARED)(Flow)


@lru_cache(maxsize=_SHARED)
def _register_reader(number: int) -> tuple[Reader, Source]:
    return lambda wave, path: _value(wave, path, number), Source(register=number)


@lru_cache(maxsize=_SHARED)
def _constant_reader(content: bytes, dtype: np.dtype[Any]) -> tuple[Reader, Source]:
    """Return a reader of a constant, shape (), of the given bytes."""
    constant: Values = np.frombuffer(content, dtype).reshape(())

    def read(wave: Wave, path: DivergentPath) -> Values:
        return constant

    return read, Source(read=read, constant=constant)


@lru_cache(maxsize=_SHARED)
def _to_register(number: int) -> Writer:
    def write(wave: Wave, path: DivergentPath, lanes: Lanes, values: Values) -> None:
        wave.write(path, lanes, number, values)

    return write


def _value(wave: Wave, path: DivergentPath, number: int) -> Values:
    """Return the values of a register; ``wave.read`` is called only where not all lanes have written it."""
    frame = path.frame
    value = frame.values[number]
    if value is None or frame.partial:
        return wave.read(path, number)
    return value


def _address(values: Values, offset: int, narrow: bool) -> Values:
    """Return addresses as int64; those of 32 bits are unsigned, and their sum with an offset wraps.

    nvcc counts on that: of ``s[255 - 3 * threadIdx.x]`` it makes ``[%r+1020]`` with a negative register.
    """
    if narrow:
        return values.astype(np.int64) + offset & 0xFFFFFFFF if offset else values.astype(np.int64)
    return values.astype(np.int64) + offset if offset else values.view(np.int64)


def _count_text(count: int, noun: str) -> str:
    return f"{count} {noun}{'s'[: count != 1]}"


def _discard(wave: Wave, path: DivergentPath, lanes: Lanes, values: Values) -> None:
    """Discard a result: the writer of ``_``."""
