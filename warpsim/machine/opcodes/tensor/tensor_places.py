"""Tensor memory of a wave: addresses in registers, what is checked about them, and errors that name cells.

An address is ``lane << 16 | column``. PTX ISA 9.3, section 9.7.17.1.1 "Tensor memory addressing".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ....base.errors import WarpsimError
from ....isa.layouts.tensor_memory import COLUMNS, LANES
from ....ptx.constants import Immediate
from ....ptx.operands import Address, Displacement, Operand, Register
from ...run.asynchronous import ASYNCHRONY
from ...run.wave import Wave
from ...state.lanes import DivergentPath, Values
from ...state.side_tables import SideTable
from ...state.tensor_cells import RESIDENT, TensorMemory
from ..statement_binder import Reader, StatementBinder


def _new_memory(wave: Wave) -> TensorMemory:
    return TensorMemory(len(wave.ctas), wave.cluster.count, RESIDENT.of(wave))


TENSOR_MEMORY = SideTable(_new_memory)


class Place(NamedTuple):
    """An address of tensor memory."""

    lane: int
    column: int

    @classmethod
    def of(cls, address: int) -> Place:
        """Return the lane and the column of an address."""
        return cls(address >> 16 & 0xFFFF, address & 0xFFFF)

    def __str__(self) -> str:
        return f"lane {self.lane}, column {self.column}"


def tensor_address(binder: StatementBinder, index: int) -> Reader:
    """Return addresses ``[reg]`` or ``[reg+imm]`` of tensor memory, uint32; raises IllegalInstruction."""
    operand = binder.operands[index]
    base = operand.base if isinstance(operand, Address) else None
    if not isinstance(operand, Address) or not isinstance(base, Register) or operand.coordinates:
        raise binder.illegal(f"expected an address of tensor memory, as [%r1], not '{operand}'", index)
    check_integer(binder, base, index)
    read, offset = binder.reader(base, "b32", index), np.uint32(operand.offset & 0xFFFFFFFF)
    if not offset:
        return read
    return lambda wave, path: read(wave, path) + offset


def check_integer(binder: StatementBinder, operand: Operand, index: int) -> None:
    """Raise IllegalInstruction for a floating-point register or constant, and the address of a variable."""
    if isinstance(operand, Displacement):
        raise binder.illegal(f"expected an integer register or constant, not '{operand}'", index)
    if isinstance(operand, Immediate):
        if operand.kind != "integer":
            raise binder.illegal(f"expected an integer constant, not '{operand}'", index)
    elif isinstance(operand, Register) and binder.register(operand, index).type.startswith("f"):
        kind = binder.register(operand, index).type
        raise binder.illegal(f"{operand} is .{kind}: registers of integers and bits go here", index)


def is_tensor_address(binder: StatementBinder, index: int) -> bool:
    """Return whether an operand is written as an address."""
    return isinstance(binder.operands[index], Address)


def value_in(wave: Wave, path: DivergentPath, read: Reader, lane: int) -> int:
    """Return the value of an operand in one lane."""
    values = read(wave, path)
    return int(values[lane]) if values.ndim else int(values)


def misused(wave: Wave, path: DivergentPath, lane: int, why: str) -> WarpsimError:
    """Return the error of a lane that uses tensor memory as no machine allows."""
    record = wave.code[path.pc]
    return wave.fault(record, lane, f"{record.statement.mnemonic}: {why}")


def check_columns(
    wave: Wave, path: DivergentPath, lane: int, ctas: Sequence[int], stretch: tuple[str, int, int]
) -> None:
    """Raise Fault where columns ``(what, first, past)`` leave tensor memory or are not allocated."""
    what, first, past = stretch
    if past > COLUMNS:
        message = f"{what} takes columns {first}..{past - 1}: tensor memory has {COLUMNS}"
        raise misused(wave, path, lane, message)
    memory = TENSOR_MEMORY.of(wave)
    for cta in ctas:
        outside = memory.columns[cta].outside(first, past)
        if outside is not None:
            message = f"{what} takes columns {first}..{past - 1}, of which column {outside} is not allocated"
            raise misused(wave, path, lane, f"{message} ({memory.columns[cta].named()})")


def check_lane(
    wave: Wave, path: DivergentPath, lane: int, what: str, given: int, legal: Sequence[int]
) -> None:
    """Raise Fault for an address whose lane is none of those that a form takes."""
    if given not in legal:
        listed = ", ".join(map(str, legal))
        where = "" if given < LANES else f": tensor memory has {LANES}"
        raise misused(wave, path, lane, f"{what} begins at lane {given}{where}; legal here: {listed}")


def common(wave: Wave, path: DivergentPath, values: Values, warp: int, what: str) -> int:
    """Return what all lanes of a warp have in common; raises Fault where they differ."""
    if not values.ndim:
        return int(values)
    own = values[32 * warp : 32 * warp + 32]
    if (own != own[0]).any():
        raise misused(wave, path, 32 * warp, f"{what} differs between the lanes of a warp")
    return int(own[0])


# --- where allocations begin -----------------------------------------------------------------------------


def _salt_of(wave: Wave) -> str:
    asynchrony = ASYNCHRONY.of(wave)
    return str(asynchrony.random.random()) if asynchrony.moment == "random" else asynchrony.moment


_SALT = SideTable(_salt_of)


def chosen_column(wave: Wave, count: int, room: Sequence[int]) -> int:
    """Return where an allocation begins: an address that a kernel counts on differs with the schedule.

    The first that is free under "program" and "earliest", the last under "latest", any where a seed decides;
    the same in all CTAs of a wave, so in both of a pair.
    """
    salt = _SALT.of(wave)
    if salt == "latest":
        return room[-1]
    if salt in ("program", "earliest"):
        return room[0]
    return room[sum(map(ord, f"{salt} {count}")) % len(room)]
