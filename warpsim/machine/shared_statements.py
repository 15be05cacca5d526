"""``ld.shared``, ``st.shared``, ``ldmatrix`` and ``stmatrix``: registers from and to shared memory.

    ld[.weak|.volatile].shared[::cta][.v2|.v4].type  d, [a];      type: b, u, s 8 16 32 64, f32, f64
    st[.weak|.volatile].shared[::cta][.v2|.v4].type  [a], b;
    ldmatrix.sync.aligned.m8n8.x1|x2|x4[.trans][.shared[::cta]].b16  {d, ...}, [a];
    stmatrix.sync.aligned.m8n8.x1|x2|x4[.trans][.shared[::cta]].b16  [a], {b, ...};

PTX ISA 9.1, sections 9.7.9.8 "ld", 9.7.9.11 "st", 9.7.14.5.15 "ldmatrix" and 9.7.14.5.16 "stmatrix".
That modifiers may stand in any order is as ptxas 13.0 has it. An access is planned first, which finds
whatever is wrong with it, and carried out by the caller. Knows registers and bytes; does not know which
types of registers an operand takes (see ptx/operand_types.py), guards, or the order of accesses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import IllegalInstruction, NotModelled, UndefinedBehavior, located
from ..isa.memory import Addresses, Bytes
from ..ptx.constants import Immediate
from ..ptx.operand_types import (
    ADDRESS_TYPES,
    CONSTANT_NAMES,
    CONSTANT_TYPES,
    MATRIX_TYPES,
    TypeSet,
    accessed_types,
)
from ..ptx.operands import Address, Atom, Operand, Register, Sink, Vector
from ..ptx.statements import InstructionStatement
from .mov import constant_bits
from .register_file import Lanes, Mask, RegisterFile, bits_dtype, type_bits
from .shared_memory import SharedMemory

_TYPES = (*("".join(pair) for pair in product("bus", ("8", "16", "32", "64"))), "f32", "f64")
_SPACES = ("shared", "shared::cta")
_LANES = 32
_WIDEST = 16  # bytes of one access
_WORDS = {"ld": "ld.shared[.v2|.v4].type", "st": "st.shared[.v2|.v4].type"}


@dataclass(frozen=True, kw_only=True)
class Store:
    """Bytes to write, one row an access: ``addresses (n,)`` and ``rows (n, size)`` uint8."""

    addresses: Addresses
    rows: Bytes

    def write(self, memory: SharedMemory) -> None:
        """Carry it out."""
        size = self.rows.shape[-1]
        words = self.rows.view(f"u{min(size, 8)}")
        memory.store(self.addresses, words if size > 8 else words[:, 0], size)


@dataclass(frozen=True, kw_only=True)
class Access:
    """What a statement does.

    ``ranges (n, 2)`` are the bytes it touches and ``lanes (n,)`` whose they are, ``written`` the registers
    it would write and ``store`` the bytes.
    """

    ranges: npt.NDArray[np.int64]
    lanes: npt.NDArray[np.intp]
    written: Mapping[str, Lanes]
    store: Store | None = None


@dataclass(frozen=True)
class SharedStatements:
    """Plans statements on a register file, a memory, and the variables that are visible."""

    file: RegisterFile
    memory: SharedMemory
    addresses: Mapping[str, int]
    literal: bool  # let the last lane win where several write different values to one byte

    def plan(self, statement: InstructionStatement, lanes: Mask) -> Access:
        """What the statement does in some lanes; nothing has changed yet.

        Raises IllegalInstruction, NotModelled, UndefinedBehavior and OperandError that point at the
        modifier or operand at fault.
        """
        if statement.opcode in _WORDS:
            return _Words(self, statement, lanes, *_words_form(statement)).plan()
        return _Matrices(self, statement, lanes, *_matrices_form(statement)).plan()


# --- modifiers -------------------------------------------------------------------------------------


def _only(
    statement: InstructionStatement, choices: Iterable[str], what: str, absent: str | None = None
) -> str:
    """The one modifier among the choices; ``absent`` where there may be none."""
    given = [one for one in statement.modifiers if one in choices]
    if len(given) == 1 or (not given and absent is not None):
        return given[0] if given else absent or ""
    fault = f"{len(given)} of them" if given else "none"
    raise IllegalInstruction(f"{statement.mnemonic} takes one {what}, but has {fault}")


def _refuse_others(statement: InstructionStatement, known: Iterable[str], modelled: str) -> None:
    for index, modifier in enumerate(statement.modifiers):
        if modifier not in known:
            message = f"{statement.opcode}.{modifier} is not modelled; {modelled} is"
            raise NotModelled(message, statement.modifier_location(index))


def _words_form(statement: InstructionStatement) -> tuple[str, int]:
    """The type and the number of elements of a ld or st."""
    modelled = _WORDS[statement.opcode]
    _refuse_others(statement, (*_TYPES, *_SPACES, "v2", "v4", "weak", "volatile"), modelled)
    if not set(_SPACES) & set(statement.modifiers):
        message = f"{statement.opcode} without a state space is not modelled; {modelled} is"
        raise NotModelled(message)
    _only(statement, _SPACES, "state space")
    kind = _only(statement, _TYPES, "type")
    count = {"": 1, "v2": 2, "v4": 4}[_only(statement, ("v2", "v4"), "vector size", "")]
    size = count * type_bits(kind) // 8
    if size > _WIDEST:
        raise IllegalInstruction(f"{statement.mnemonic} has {size} bytes, but shared memory takes {_WIDEST}")
    return kind, count


def _matrices_form(statement: InstructionStatement) -> tuple[int, bool]:
    """The number of matrices of an ldmatrix or stmatrix, and whether they are transposed."""
    opcode = statement.opcode
    known = ("sync", "aligned", "m8n8", "x1", "x2", "x4", "trans", *_SPACES, "b16")
    _refuse_others(statement, known, f"{opcode}.sync.aligned.m8n8.x1|x2|x4[.trans][.shared].b16")
    for required in ("sync", "aligned", "m8n8", "b16"):
        if required not in statement.modifiers:
            raise IllegalInstruction(f"{opcode} requires .{required}")
    _only(statement, _SPACES, "state space", "shared")
    return int(_only(statement, ("x1", "x2", "x4"), "number of matrices")[1:]), "trans" in statement.modifiers


# --- what both have --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Statement:
    """One statement of either sort: an address, and registers that are written (ld) or read (st)."""

    machine: SharedStatements
    statement: InstructionStatement
    lanes: Mask

    @property
    def is_load(self) -> bool:
        return self.statement.opcode.startswith("ld")

    def operands(self) -> tuple[Operand, Address]:
        """The operand with registers, and the address."""
        operands = self.statement.operands or ()
        if len(operands) != 2:
            raise IllegalInstruction(f"{self.statement.mnemonic} takes two operands, not {len(operands)}")
        registers, address = operands if self.is_load else operands[::-1]
        if not isinstance(address, Address) or address.coordinates:
            message = f"expected an address in brackets, as [%r1+16], not '{address}'"
            raise IllegalInstruction(message, self.statement.operand_location(self.address_index))
        return registers, address

    @property
    def address_index(self) -> int:
        return 1 if self.is_load else 0

    @property
    def register_index(self) -> int:
        return 0 if self.is_load else 1

    def address_lanes(self, address: Address, lanes: Mask) -> Addresses:
        """The address in each lane, of which those of ``lanes`` count."""
        base, file = address.base, self.machine.file
        if base is None:
            raise IllegalInstruction("an address in shared memory is a register or a variable, not a number")
        known = file.types().get(base.name)
        if known is None and base.name in self.machine.addresses:
            start = self.machine.addresses[base.name] + address.offset
            return np.full(file.lanes, start)
        if file.is_special(base.name):
            raise IllegalInstruction(f"{base} is a special register, and no address: copy it with mov first")
        if known is not None and known not in ADDRESS_TYPES:
            raise IllegalInstruction(f"{base} is .{known}: an address is an integer of 32 or 64 bits")
        value = file.read(base.name, lanes)
        offset = value.dtype.type(address.offset & (1 << 8 * value.itemsize) - 1)
        places = (value + offset).astype(np.uint64)  # wraps around
        clipped: Addresses = np.minimum(places, np.uint64(1 << 62)).astype(np.int64)
        return clipped

    def target(self, element: Atom, place: int | None, types: TypeSet) -> str | None:
        """The name of a register that may be written, None for the sink."""
        with located(lambda: self.statement.operand_location(self.register_index, place)):
            if isinstance(element, Sink):
                return None
            if not isinstance(element, Register):
                raise IllegalInstruction(f"{self.statement.opcode} writes registers, not '{element}'")
            known = self.machine.file.writable(element.name)
            if known is not None and known not in types:
                raise self.unsuitable(element, known)
            return element.name

    def source(self, element: Atom, place: int | None, types: TypeSet) -> Lanes:
        """The lanes of a register that is read."""
        with located(lambda: self.statement.operand_location(self.register_index, place)):
            if not isinstance(element, Register):
                raise IllegalInstruction(f"{self.statement.opcode} reads registers, not '{element}'")
            if self.machine.file.is_special(element.name):
                raise IllegalInstruction(f"{self.statement.opcode} does not take special registers")
            known = self.machine.file.types().get(element.name)
            if known is not None and known not in types:
                raise self.unsuitable(element, known)
            return self.machine.file.read(element.name, self.lanes)

    def unsuitable(self, element: Register, known: str) -> IllegalInstruction:
        return IllegalInstruction(f"{self.statement.mnemonic} does not take {element}, which is .{known}")

    def check_distinct(self, names: list[str | None]) -> None:
        for place, name in enumerate(names):
            if name is not None and name in names[:place]:
                location = self.statement.operand_location(self.register_index, place)
                raise UndefinedBehavior(f"{self.statement.opcode} writes {name} twice", location)

    def load(self, addresses: Addresses, size: int, lanes: npt.NDArray[np.intp]) -> Bytes:
        """``(n, size)`` uint8; checks alignment and bounds."""
        with located(lambda: self.statement.operand_location(self.address_index)):
            words = self.machine.memory.load(addresses, size, lanes=lanes)
        return np.ascontiguousarray(words).view(np.uint8).reshape(len(addresses), size)

    def stored(self, addresses: Addresses, rows: Bytes, lanes: npt.NDArray[np.intp]) -> Store:
        """Bytes that can be written; no two lanes write different values to one place."""
        size = rows.shape[-1]
        with located(lambda: self.statement.operand_location(self.address_index)):
            self.machine.memory.check_store(addresses, size, lanes=lanes)
        if not self.machine.literal:
            order = np.lexsort((lanes, addresses))
            same = addresses[order][1:] == addresses[order][:-1]
            clash = same & (rows[order][1:] != rows[order][:-1]).any(axis=1)
            if clash.any():
                first, second = order[int(np.argmax(clash)) :][:2]
                raise UndefinedBehavior(
                    f"lanes {lanes[first]} and {lanes[second]} store different values at address "
                    f"{int(addresses[first]):#x}: PTX does not define which stays",
                    self.statement.operand_location(self.address_index),
                )
        return Store(addresses=addresses, rows=rows)


def _ranges(addresses: Addresses, size: int) -> npt.NDArray[np.int64]:
    return np.stack((addresses, addresses + size), axis=-1)


# --- ld, st ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Words(_Statement):
    """A ld or st of ``count`` elements of a type in every lane."""

    type: str
    count: int

    def plan(self) -> Access:
        registers, address = self.operands()
        elements = self.elements(registers)
        with located(lambda: self.statement.operand_location(self.address_index)):
            places = self.address_lanes(address, self.lanes)
        places, lanes = places[self.lanes], np.flatnonzero(self.lanes)
        size = self.count * type_bits(self.type) // 8
        if self.is_load:
            written = self.loaded(elements, self.load(places, size, lanes))
            return Access(ranges=_ranges(places, size), lanes=lanes, written=written)
        columns = [self.value(element, place) for place, element in enumerate(elements)]
        rows = np.stack(columns, axis=-1)[self.lanes].view(np.uint8).reshape(-1, size)
        store = self.stored(places, rows, lanes)
        return Access(ranges=_ranges(places, size), lanes=lanes, written={}, store=store)

    def elements(self, operand: Operand) -> tuple[Atom, ...]:
        """The registers or constants, as many as the vector has; braces are optional around one."""
        elements = operand.elements if isinstance(operand, Vector) else (operand,)
        if len(elements) != self.count or (self.count > 1 and not isinstance(operand, Vector)):
            message = f"{self.statement.mnemonic} takes a vector of {self.count} elements, not '{operand}'"
            raise IllegalInstruction(message, self.statement.operand_location(self.register_index))
        return elements  # type: ignore[return-value]

    def loaded(self, elements: tuple[Atom, ...], rows: Bytes) -> dict[str, Lanes]:
        """The registers to write, wider ones extended by zeros or, for .s types, by the sign."""
        place = (lambda index: index) if self.count > 1 else (lambda index: None)
        types = accessed_types(self.type)
        names = [self.target(one, place(index), types) for index, one in enumerate(elements)]
        self.check_distinct(names)
        values = rows.view(f"{'i' if self.type[0] == 's' else 'u'}{type_bits(self.type) // 8}")
        written = {}
        for name, column in zip(names, values.T, strict=True):
            if name is not None:
                known = self.machine.file.writable(name)
                dtype = bits_dtype(type_bits(known or self.type))
                written[name] = np.zeros(self.lanes.size, dtype)
                written[name][self.lanes] = column.astype(dtype)
        return written

    def value(self, element: Atom, index: int) -> Lanes:
        """The element to store in each lane, as wide as the type."""
        bits, place = type_bits(self.type), index if self.count > 1 else None
        if not isinstance(element, Immediate):
            return self.source(element, place, accessed_types(self.type)).astype(bits_dtype(bits))
        if self.type not in CONSTANT_TYPES[element.kind]:
            message = f"{self.statement.mnemonic} does not take {CONSTANT_NAMES[element.kind]}"
            location = self.statement.operand_location(self.register_index, place)
            raise IllegalInstruction(message, location)
        return np.full(self.lanes.size, constant_bits(element, bits), bits_dtype(bits))


# --- ldmatrix, stmatrix ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Matrices(_Statement):
    """An ldmatrix or stmatrix of ``count`` 8 x 8 matrices in every warp that executes it.

    Lanes 8j to 8j + 7 give the addresses of the rows of matrix j. Register j of lane L holds elements
    2(L % 4) and 2(L % 4) + 1 of row L // 4 of matrix j, or of column L // 4 where it is transposed.
    """

    count: int
    transposed: bool

    def plan(self) -> Access:
        registers, address = self.operands()
        names = self.elements(registers)
        rows = self.lanes & (np.arange(self.lanes.size) % _LANES < 8 * self.count)
        with located(lambda: self.statement.operand_location(self.address_index)):
            places = self.address_lanes(address, rows)
        places, lanes = places[rows], np.flatnonzero(rows)
        if self.is_load:
            targets = [self.target(one, index, MATRIX_TYPES) for index, one in enumerate(names)]
            self.check_distinct(targets)
            written = self.loaded(targets, self.load(places, _WIDEST, lanes))
            return Access(ranges=_ranges(places, _WIDEST), lanes=lanes, written=written)
        columns = [self.source(one, index, MATRIX_TYPES) for index, one in enumerate(names)]
        store = self.stored(places, self.rows(np.stack(columns, axis=-1)), lanes)
        return Access(ranges=_ranges(places, _WIDEST), lanes=lanes, written={}, store=store)

    def elements(self, operand: Operand) -> tuple[Atom, ...]:
        """The registers; braces are required, even around one."""
        if not isinstance(operand, Vector) or len(operand.elements) != self.count:
            plural = "s" if self.count > 1 else ""
            message = (
                f"{self.statement.opcode} takes {self.count} register{plural} in braces, not '{operand}'"
            )
            raise IllegalInstruction(message, self.statement.operand_location(self.register_index))
        return operand.elements

    def loaded(self, names: list[str | None], rows: Bytes) -> dict[str, Lanes]:
        """The registers to write; rows ``(warps * count * 8, 16)``."""
        matrices = self.turned(rows.view(np.uint16).reshape(-1, self.count, 8, 8))
        words = matrices.view(np.uint32).reshape(-1, self.count, _LANES)
        written = {}
        for index, name in enumerate(names):
            if name is not None:
                written[name] = np.zeros(self.lanes.size, np.uint32)
                written[name][self.lanes] = words[:, index].ravel()
        return written

    def rows(self, words: Lanes) -> Bytes:
        """The rows of memory ``(warps * count * 8, 16)`` of registers ``(lanes, count)``."""
        warps = words[self.lanes].reshape(-1, _LANES, self.count)
        matrices = np.ascontiguousarray(np.swapaxes(warps, 1, 2)).view(np.uint16)
        turned = self.turned(matrices.reshape(-1, self.count, 8, 8))
        return turned.view(np.uint8).reshape(-1, _WIDEST)

    def turned(self, matrices: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.ascontiguousarray(np.swapaxes(matrices, -1, -2) if self.transposed else matrices)
