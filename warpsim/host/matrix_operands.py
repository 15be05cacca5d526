"""What a matrix instruction reads from registers: vectors, metadata, scales and their ids.

Knows bound operands (see ptx/binding.py) and the register file; does not know shared memory, guards or what
is computed. The usual case, registers that all lanes have written, looks at no text and no lane; whatever is
wrong is found register by register, and points at its place in the statement.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from ..errors import IllegalInstruction, NotModelled, located
from ..isa.instruction import Inputs, ScaleSelectors
from ..machine.bind.constants import constant_bits
from ..machine.bind.register_arrays import Lanes, bits_dtype, dtype_bits
from ..ptx.binding import Bound, Places
from ..ptx.constants import Immediate
from ..ptx.statements import InstructionStatement, operand_names
from ..ptx.warpgroup import WarpgroupBound
from .register_file import Mask, RegisterFile

B = TypeVar("B", Bound, WarpgroupBound)


@dataclass(frozen=True)
class Plan(Generic[B]):
    """A statement bound to an instruction, whose D can be written.

    ``reads`` are the names in each operand but D, ``writes`` the registers of D.
    """

    bound: B
    reads: tuple[tuple[str, ...], ...]
    writes: tuple[str, ...]


def plan_of(statement: InstructionStatement, bound: B) -> Plan[B]:
    """The plan of a statement that has been bound."""
    operands = enumerate(statement.operands or ())
    reads = tuple(tuple(operand_names(one)) for place, one in operands if place != bound.places["d"])
    return Plan(bound, reads, tuple(filter(None, bound.d)))


@dataclass(frozen=True, slots=True)
class MatrixOperands:
    """Reads the operands of one statement in some lanes of a register file.

    Raises UndefinedBehavior for registers that have not been written, IllegalInstruction for those of
    another width, NotModelled for special registers that are not.
    """

    file: RegisterFile
    statement: InstructionStatement
    bits: int  # of a register of A, B, C and D
    lanes: Mask

    def vector(self, index: int, role: str, sources: Sequence[str | Immediate]) -> npt.NDArray[Any]:
        """The registers ``(lanes, n)`` of the vector at an operand's place."""
        dtype = bits_dtype(self.bits)
        words = self.file.columns(sources, dtype)
        if words is None:
            words = np.empty((self.file.lanes, len(sources)), dtype)
            self._fill(words, index, role, sources)
        return words

    def _fill(
        self, words: npt.NDArray[Any], index: int, role: str, sources: Iterable[str | Immediate]
    ) -> None:
        """The registers and constants, one by one."""
        place = 0
        with located(lambda: self.statement.operand_location(index, place)):
            for place, source in enumerate(sources):
                if isinstance(source, Immediate):
                    words[:, place] = constant_bits(source, self.bits)
                else:
                    words[:, place] = self.register(role, source, self.bits)

    def inputs(self, bound: Bound, literal: bool) -> Inputs:
        """What an ``mma`` reads, in all lanes of the machine."""
        places = bound.places
        registers = {
            role: self.vector(places[role], role, sources)
            for role, sources in (("a", bound.a), ("b", bound.b), ("c", bound.c))
        }
        for role, name in (("e", bound.e), ("scale_a", bound.scale_a), ("scale_b", bound.scale_b)):
            if name is not None:
                registers[role] = self.single(places[role], role, name)
        if not bound.ids:
            return Inputs.plain(registers, bound.selector, literal)
        ids = self.ids(places, bound.ids)
        return Inputs(registers=registers, selector=bound.selector, scale_selectors=ids, literal=literal)

    def single(self, index: int, role: str, name: str) -> npt.NDArray[Any]:
        """The one register ``(lanes, 1)`` of metadata or scales."""
        with located(partial(self.statement.operand_location, index)):
            return self.register(role, name, 32)[:, None]

    def register(self, role: str, name: str, bits: int) -> Lanes:
        """The lanes of a register of so many bits."""
        value = self.file.read(name, self.lanes)
        if dtype_bits(value.dtype) != bits:
            raise IllegalInstruction(wrong_width(role, bits, name, dtype_bits(value.dtype)))
        return value

    def ids(self, places: Places, values: Sequence[str | int]) -> ScaleSelectors:
        """Byte and thread ids, from constants and registers."""
        if not values:
            return ScaleSelectors()
        roles = ("ids_a", "ids_a", "ids_b", "ids_b")
        return ScaleSelectors(
            *(self.uniform(places[role], value) for role, value in zip(roles, values, strict=True))
        )

    def uniform(self, index: int, value: str | int) -> int:
        """A byte or thread id, from a constant or a register, of the operand at an index."""
        if isinstance(value, int):
            return value
        with located(partial(self.statement.operand_location, index)):
            values = self.file.read(value, self.lanes)[self.lanes]
            if (values != values[0]).any():
                raise NotModelled(
                    f"{value} differs between lanes; scale ids are modelled where all lanes agree"
                )
            return int(values[0])


def wrong_width(role: str, bits: int, name: str, has: int) -> str:
    """What is wrong with a register that holds so many bits."""
    kind = "is a predicate" if has == 1 else f"holds {has} bits"
    return f"{role} takes registers of {bits} bits, but {name} {kind}"
