"""Expectations: compare registers and memory with data, and locate the first bit that differs.

Knows where a bit of a D register lies in the matrix; does not know files.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.environment import in_default_environment
from ...base.errors import Location
from ...isa.codes import matrix_of
from ...isa.fragments import fragment
from ...isa.instruction import Instruction
from ...isa.memory import bytes_of
from ...isa.warps import WARP
from ...machine.bind.register_arrays import converted, dtype_bits, register_names, split
from ...programs.interactive.machines import Machine


@dataclass(frozen=True, kw_only=True)
class Element:
    """An element of the matrix D, with its expected and its actual code.

    ``product`` is the index among the independent products of m8n8k4 f16, None if there is only one; ``warp``
    is the warp of this D, None if there is only one. ``bits`` are the element's lowest and highest bit in its
    register.
    """

    product: int | None
    row: int
    column: int
    bits: tuple[int, int]
    expected: str
    actual: str
    warp: int | None = None

    def __str__(self) -> str:
        product = "" if self.product is None else f" of product {self.product}"
        product += "" if self.warp is None else f" of warp {self.warp}"
        low, high = self.bits
        part = "" if (low, high) in ((0, 31), (0, 63)) else f" (bits {high}..{low})"
        place = f"D[{self.row},{self.column}]{product}{part}"
        return f"{place}: expected {self.expected}, got {self.actual}"


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A register of a lane that differs from its expectation, and the matrix element behind it, if known.

    Of tensor memory ``register`` is the column from the address of D on.
    """

    lane: int
    register: str
    expected: int
    actual: int
    bits: int
    element: Element | None = None
    kind: str = "register"  # or "column", of tensor memory

    def __str__(self) -> str:
        expected, actual = self.words()
        words = f"lane {self.lane}, {self.kind} {self.register}: expected {expected}, got {actual}"
        return f"{words}; {self.element}" if self.element else words

    def words(self) -> tuple[str, str]:
        """Return the expected and the actual word, in hexadecimal as wide as the register."""
        width = 2 + max(self.bits // 4, 1)
        return f"{self.expected:#0{width}x}", f"{self.actual:#0{width}x}"


@dataclass(frozen=True, kw_only=True)
class ByteDifference:
    """A byte of shared memory that differs from its expectation."""

    address: int
    expected: int
    actual: int

    def __str__(self) -> str:
        expected, actual = self.words()
        return f"byte at {self.address:#x} of shared memory: expected {expected}, got {actual}"

    def words(self) -> tuple[str, str]:
        """Return the expected and the actual byte, in hexadecimal."""
        return f"{self.expected:#04x}", f"{self.actual:#04x}"


@dataclass(frozen=True, kw_only=True)
class Check:
    """An expectation: how many words were compared, how many differ, and the first difference.

    ``registers`` is the compared operand as it is written; "shared ..." for bytes of shared memory.
    ``instruction`` wrote the first register, None where no matrix instruction did.
    """

    registers: str
    location: Location
    compared: int
    different: int
    first: Difference | ByteDifference | None = None
    instruction: Instruction | None = None

    @property
    def passed(self) -> bool:
        """Whether every bit is as expected."""
        return self.different == 0


def compare(warp: Machine, registers: str, expected: npt.NDArray[Any], location: Location) -> Check:
    """Compare the registers of a machine with an array ``(lanes, n)``, a column of it, or a scalar for all.

    The first difference is that of the lowest lane, then of the first register. Raises OperandError where the
    array does not fit the registers, UndefinedBehavior for a register never written.
    """
    names = register_names(registers)
    actual = [warp.read(name, location) for name in names]
    parts = zip(names, split(registers, expected, warp.lanes), actual, strict=True)
    wanted = [np.broadcast_to(converted(name, part, lanes.dtype), warp.lanes) for name, part, lanes in parts]
    different = np.stack([x != y for x, y in zip(wanted, actual, strict=True)], axis=-1)
    first = None
    if different.any():
        lane, index = (int(i) for i in np.argwhere(different)[0])
        first = _difference(warp, names[index], lane, wanted[index], actual[index])
    origin = warp.origin(names[0])
    return Check(
        registers=registers,
        location=location,
        compared=different.size,
        different=int(different.sum()),
        first=first,
        instruction=origin[0].instruction if origin else None,
    )


def compare_shared(machine: Machine, where: str, expected: npt.NDArray[Any], location: Location) -> Check:
    """Compare the bytes of shared memory from an address or variable on with those of an array.

    Raises OperandError for an invalid place, or an array that does not fit there.
    """
    wanted = bytes_of(expected)
    address = machine.address(where)
    actual = machine.shared.view(address, wanted.size)
    different = np.flatnonzero(wanted != actual)
    first = None
    if different.size:
        place = int(different[0])
        first = ByteDifference(
            address=address + place, expected=int(wanted[place]), actual=int(actual[place])
        )
    return Check(
        registers=f"shared {where}",
        location=location,
        compared=wanted.size,
        different=different.size,
        first=first,
    )


def _difference(
    warp: Machine, register: str, lane: int, expected: npt.NDArray[Any], actual: npt.NDArray[Any]
) -> Difference:
    words = int(expected[lane]), int(actual[lane])
    element = None
    if origin := warp.origin(register):
        event, index = origin
        element = element_of(event.instruction, lane, index, words)
        if element is not None and event.instruction.lanes < warp.lanes:
            element = replace(element, warp=lane // WARP)
    bits = dtype_bits(actual.dtype)
    return Difference(
        lane=lane, register=register, expected=words[0], actual=words[1], bits=bits, element=element
    )


def element_of(instruction: Instruction, lane: int, index: int, words: tuple[int, int]) -> Element | None:
    """Return the element of D with the lowest bit that differs between two words of a lane's register, or of
    a cell of tensor memory; None where no element has this bit.
    """
    bits, changed, held = instruction.storage("d").bits, words[0] ^ words[1], instruction.held("d")
    slot = ((changed & -changed).bit_length() - 1) // bits
    inside = _fragment_of_d(instruction)[lane % held.lanes, index]
    if slot >= len(inside) or inside[slot, 0] < 0:
        return None
    low, (row, column) = slot * bits, inside[slot].tolist()
    expected, actual = (_value(instruction, word >> low) for word in words)
    return Element(
        product=_product_of(instruction, lane, index, slot),
        row=row,
        column=column,
        bits=(low, low + bits - 1),
        expected=expected,
        actual=actual,
    )


@lru_cache(maxsize=16)
def _fragment_of_d(instruction: Instruction) -> npt.NDArray[np.intp]:
    return fragment(instruction, "d")


def _product_of(instruction: Instruction, lane: int, index: int, slot: int) -> int | None:
    """Return which of several independent products an element of D belongs to, else None."""
    if instruction.products == 1:
        return None
    layout = instruction.in_registers("d").layout
    place = index * (instruction.register_bits // instruction.storage("d").bits) + slot
    return int(layout.row_index[lane % layout.lanes, place]) // instruction.shape.m


@in_default_environment
def _value(instruction: Instruction, bits: int) -> str:
    code = np.array([bits & instruction.d.mask], instruction.d.code_dtype)
    return str(matrix_of(code, instruction.d)[0])
