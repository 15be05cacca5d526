"""Statements that touch registers of a wgmma: records that notify observers before they execute.

Only registers that some wgmma.mma_async names as D, A or metadata count, so that other statements cost
nothing. Knows names and records; does not know what is wrong with a use.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ....isa.families import multiplies_tiles
from ....machine.bind.scope import RegisterName
from ....machine.run.events import RegisterUse, observers_of
from ....machine.state.lanes import DivergentPath, Lanes
from ....ptx.operands import Vector
from ....ptx.statements import operand_names

if TYPE_CHECKING:
    from ....machine.run.wave import Record, Step, Wave
    from ....ptx.statements import InstructionStatement

Key = tuple[int, int]  # of a register: its function, and its number there
_METADATA = 3  # place of its operand


_MOST = 4  # codes of which the uses are kept
_KEPT: OrderedDict[tuple[int, int], RegisterUses] = OrderedDict()  # by identity and length of the code


def uses_of(code: Sequence[Record]) -> RegisterUses:
    """Return the uses of registers in a code; those of the latest codes are kept, as launches repeat them."""
    key = id(code), len(code)
    known = _KEPT.pop(key, None)
    if known is None or known.original is not code:
        known = RegisterUses(code)
    _KEPT[key] = known
    while len(_KEPT) > _MOST:
        _KEPT.popitem(last=False)
    return known


class RegisterUses:
    """The registers of the wgmma of a module; records of ``code`` notify observers of ``touched``."""

    def __init__(self, code: Sequence[Record]) -> None:
        self.original = code
        self.names: dict[Key, str] = {}
        for record in code:
            if is_multiplication(record.statement):
                self._name(record)
        self.code = [self._noting_uses(record) for record in code] if self.names else code

    def named(self, record: Record, numbers: Sequence[int]) -> tuple[str, ...]:
        """Return the names of registers of a wgmma, different names for different registers."""
        function = record.function
        return tuple(self.names[function, number] for number in numbers)

    def _name(self, record: Record) -> None:
        function, taken = record.function, set(self.names.values())
        for name in _registers(record.statement):
            found = None if record.scope is None else record.scope.find(name)
            if isinstance(found, RegisterName) and (function, found.number) not in self.names:
                while name in taken:
                    name += "'"
                taken.add(name)
                self.names[function, found.number] = name

    def _noting_uses(self, record: Record) -> Record:
        if is_multiplication(record.statement):
            return record
        flow, function = record.flow, record.function
        reads = flow.values | flow.addresses | ({record.guard} if record.guard >= 0 else frozenset())
        use = RegisterUse(
            reads=tuple(self._function_registers(function, reads)),
            writes=tuple(self._function_registers(function, flow.written)),
            place=record.statement.location,
            copies=record.statement.opcode == "mov",
        )
        return record.stepping(_noting(record.step, use)) if use.reads or use.writes else record

    def _function_registers(self, function: int, numbers: frozenset[int]) -> Iterator[str]:
        return (
            name for number in sorted(numbers) if (name := self.names.get((function, number))) is not None
        )


def _noting(inner: Step, use: RegisterUse) -> Step:
    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> bool | None:
        observers_of(wave).touched(wave, path, lanes, use)
        return inner(wave, path, lanes)

    return step


def is_multiplication(statement: InstructionStatement) -> bool:
    """Return whether a statement is a wgmma.mma_async."""
    return multiplies_tiles(statement.opcode, statement.modifiers)


def _registers(statement: InstructionStatement) -> Iterator[str]:
    """Yield the names of D, A and metadata."""
    for place, operand in enumerate(statement.operands or ()):
        is_metadata = place == _METADATA and any(
            modifier.startswith("sp") for modifier in statement.modifiers
        )
        if isinstance(operand, Vector) or is_metadata:
            yield from operand_names(operand)
