"""What a computed operand is computed from: the matrix instructions behind its registers, and the way.

Registers are followed backwards through the text, and through shared memory to what was stored there. Knows
statements; does not know values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...errors import Location
from ...isa.families import OPCODES
from ...machine.run.wave import Record
from .statement_chains import SharedWriters, definer, operand_registers, split_registers

_MATRIX = OPCODES | {"wmma"}
_LOADS = ("ld", "ldmatrix")
_TELLING = ("ex2", "tanh", "cvt", "st", "stmatrix", "ldmatrix", "ld", "shfl", "max", "div", "rcp")
_MOST = 4000  # statements that are followed


@dataclass(frozen=True, kw_only=True)
class ComputedFrom:
    """``makers`` are numbers of matrix statements, ``way`` of those between, in the text's order."""

    makers: tuple[int, ...]
    way: tuple[int, ...]

    def first(self, code: Sequence[Record], *opcodes: str) -> Location | None:
        """Return the first statement on the way with one of these opcodes."""
        found = (code[pc].statement for pc in self.way if code[pc].statement.opcode in opcodes)
        return next((statement.location() for statement in found), None)

    def shown(self, code: Sequence[Record]) -> Iterator[tuple[str, Location]]:
        """Yield statements on the way that say most, the first of each opcode."""
        seen = set[str]()
        for pc in self.way:
            statement = code[pc].statement
            if statement.opcode in _TELLING and statement.opcode not in seen:
                seen.add(statement.opcode)
                yield f"on the way: {statement.opcode}", statement.location()


def computed_from(code: Sequence[Record], number: int, role: str, writers: SharedWriters) -> ComputedFrom:
    """Return what operand ``role`` of statement ``number`` is computed from."""
    registers = operand_registers(code[number].statement.operand_text or "", role)
    wanted = [(register, number) for register in registers]
    makers, way, seen = set[int](), set[int](), set[tuple[str, int]]()
    while wanted and len(seen) < _MOST:
        register, before = wanted.pop()
        pc = definer(code, before, register)
        if pc is None or (register, pc) in seen:
            continue
        seen.add((register, pc))
        if code[pc].statement.opcode in _MATRIX and not _loads(code[pc]):
            makers.add(pc)
            continue
        way.add(pc)
        wanted += _before(code, pc, writers)
    return ComputedFrom(makers=tuple(sorted(makers)), way=tuple(sorted(way)))


def _before(code: Sequence[Record], pc: int, writers: SharedWriters) -> Iterator[tuple[str, int]]:
    """Yield registers that a statement computes from, with the statement at which they are read."""
    statement = code[pc].statement
    if statement.opcode in _LOADS or _loads(code[pc]):
        for writer in writers.written_by.get(pc, ()):
            if writer >= 0 and code[writer].statement.opcode in ("st", "stmatrix"):
                _, stored = split_registers(code[writer].statement.operand_text or "")
                yield from ((register, writer) for register in stored)
        return
    written, read = split_registers(statement.operand_text or "")
    yield from ((register, pc) for register in read if register not in written or len(written) == 1)


def _loads(record: Record) -> bool:
    return record.statement.opcode == "wmma" and "load" in record.statement.mnemonic
