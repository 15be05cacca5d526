"""Statements as keys see them: operands by register or constant, types, and the rule of the opcode.

Knows records and operands; does not know keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ....isa.formats import FORMATS
from ....machine.bind.constants import constant_bits
from ....machine.bind.scope import RegisterName
from ....machine.bind.value_types import bits_of, dtype_of
from ....machine.opcodes import forms_of, operation_of
from ....machine.opcodes.effect import Effect
from ....machine.opcodes.operation import Operation
from ....machine.run.wave import Record
from ....machine.state.lanes import Frame
from ....ptx.constants import Immediate
from ....ptx.operands import Arguments, Operand, Pair, Register, Vector

Values = npt.NDArray[Any]


class Element(NamedTuple):
    """A PTX type as numbers: so many of a kind (key_cells.py), of so many bytes each."""

    kind: str
    size: int
    parts: int


def element_of(type_name: str) -> Element:
    """Return what a type holds; bits count as unsigned integers."""
    stem, _, count = type_name.partition("x")
    if stem in FORMATS and FORMATS[stem].is_float:
        kind = "f32" if stem == "tf32" else stem
        return Element(kind, FORMATS[stem].code_dtype.itemsize, int(count or 1))
    return Element("s" if stem[0] == "s" else "u", max(int(stem[1:]), 8) // 8, int(count or 1))


class Source(NamedTuple):
    """An operand that is read: a register by number and the bits of its type, or a constant; -1 for
    neither.
    """

    number: int
    constant: Immediate | None
    bits: int

    def value(self, frame: Frame, lanes: int, type_name: str) -> Values:
        """Return ``(lanes,)``: the operand in all lanes, cut to a type."""
        dtype = dtype_of(type_name)
        if self.constant is not None:
            return np.full(lanes, constant_bits(self.constant, bits_of(type_name)), dtype)
        held = frame.values[self.number] if self.number >= 0 else None
        if held is None:
            return np.zeros(lanes, dtype)
        held = np.broadcast_to(held, (lanes,)) if held.ndim == 0 else held
        return held.astype(dtype) if held.dtype != dtype else held


class Statement:
    """A record: its operands, types and rule, found once."""

    def __init__(self, pc: int, record: Record) -> None:
        self.pc, self.record = pc, record
        self.opcode, self.modifiers = record.statement.opcode, record.statement.modifiers
        self.operands: tuple[Operand, ...] = tuple(record.statement.operands or ())
        self.reads = tuple(record.flow.values)
        self.writes = tuple(record.flow.written)
        self.roles = dict[str, list[int]]()  # the registers of the operands of a matrix instruction
        self._named = dict[Any, RegisterName | None]()

    @cached_property
    def _row(self) -> tuple[Any, tuple[str, ...]]:
        """The row that the statement spells, and its choice."""
        fits = forms_of(self.opcode, self.modifiers)
        if len(fits) > 1:
            counted = (pair for pair in fits if isinstance(pair[0], Effect) or self._suits(*pair))
            return next(counted, fits[0])
        return fits[0]

    def _suits(self, row: Any, choice: tuple[str, ...]) -> bool:
        operation = operation_of(row, choice)
        return len(operation.sources) - max(operation.vector - 1, 0) + 1 == len(self.operands)

    @cached_property
    def meaning(self) -> str:
        """The rule's name, "" for none."""
        found: str = self._row[0].meaning
        return found

    @cached_property
    def operation(self) -> Operation | None:
        """What a scalar statement computes; None for others."""
        row, choice = self._row
        return None if isinstance(row, Effect) else operation_of(row, choice)

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """The operands behind the first, those of vectors one by one."""
        return tuple(self.source(each) for operand in self.operands[1:] for each in elements_of(operand))

    @cached_property
    def target(self) -> int:
        """The register of the first result, -1 for a sink."""
        first = self.operands[0]
        return self.number(first.first if isinstance(first, Pair) else first)

    def source(self, operand: Operand | None) -> Source:
        """Return an operand that is read."""
        if isinstance(operand, Immediate):
            return Source(-1, operand, 0)
        found = self._register(operand)
        return Source(-1, None, 0) if found is None else Source(found.number, None, bits_of(found.type))

    def number(self, operand: Operand | str | None) -> int:
        """Return the register that an operand names, -1 for none."""
        found = self._register(operand)
        return -1 if found is None else found.number

    def numbers(self, index: int) -> list[int]:
        """Return the registers of an operand, those of a vector one by one."""
        return [self.number(each) for each in elements_of(self.operands[index])]

    def width(self, operand: Operand | str | None) -> int:
        """Return the bytes of the register that an operand names."""
        found = self._register(operand)
        return 0 if found is None else max(bits_of(found.type), 8) // 8

    def _register(self, operand: Any) -> RegisterName | None:
        name = operand if isinstance(operand, str) else getattr(operand, "name", None)
        if name not in self._named:
            scope = self.record.scope
            found = scope.find(name) if isinstance(name, str) and scope is not None else None
            self._named[name] = found if isinstance(found, RegisterName) else None
        return self._named[name]

    def spread(self, index: int) -> Operand:
        """Return an operand; the name of a vector register as the vector of its elements."""
        operand = self.operands[index]
        if not isinstance(operand, Register) or self._register(operand) is not None:
            return operand
        names = [Register(f"{operand.name}.{letter}") for letter in "xyzw"]
        known = tuple(name for name in names if self._register(name) is not None)
        return Vector(known) if known else operand


def elements_of(operand: Operand) -> Iterator[Operand]:
    """Yield the elements of a vector, or the operand."""
    if isinstance(operand, Vector | Arguments):
        yield from operand.elements
    else:
        yield operand
