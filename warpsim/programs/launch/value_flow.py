"""Where values of some statements may have got to, of the statements that a launch executed: a may-analysis.

Values flow through the registers of a function, and through memories: global memory by its allocations, as
far as addresses are computed from the pointers that the kernel was given, the others as a whole. A statement
has nothing of what is computed after it: in registers of its thread, nor in shared and tensor memory, where a
thread that comes to a statement later has passed the same barriers. Other CTAs may be anywhere: global memory
has no order. Not followed: that a statement is executed at all because of a branch (the branch itself is
reported), the phases of mbarriers, and what a thread gives another that is at an earlier statement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...isa.families import OPCODES, TILE_OPCODES
from ...machine.bind.scope import RegisterName, Variable
from ...machine.load.program import Module
from ...machine.load.statement_order import StatementOrder
from ...machine.run.wave import Record
from ...machine.state.spaces import Allocation, Bytes
from ...ptx.operands import Address, Register

if TYPE_CHECKING:
    from ...machine.bind.functions import Function

Cell = tuple[str, str, int]  # of a register: its function and number; of a memory: its name, and allocation
Executed = Sequence[tuple[int, Record]]
Pointed = frozenset[int]  # addresses of allocations that a value may point into
Taint = dict[Cell, dict[int, int]]  # by the statement that has put it there: the first source of a value

_SPACES = ("global", "shared", "local")
_ORDERED = frozenset({"register", "shared", "tensor", "local"})  # cells that have an order
_LOADS = TILE_OPCODES | {"load", "ld", "ldu", "ldmatrix", "prefetch", "prefetchu"}
_STORES = frozenset({"store", "st", "stmatrix"})  # load and store are those of wmma
_READS_MEMORY = frozenset({"ld", "ldu", "atom"})
_NO_ADDRESSES = frozenset({"mul", "mul24", "shl", "setp", "set"})  # a product of an address is none
_PRODUCTS = frozenset({"mad", "mad24"})  # of two factors, plus what may be an address
_JUMPS = frozenset({"bra", "brx", "call"})
_SYNCHRONISATIONS = frozenset({"bar", "barrier", "mbarrier"})
_CARRY: Cell = ("carry", "", 0)
_FRAMES: Cell = ("frames", "", 0)  # .param variables of calls
_ANY = -1  # an allocation that is not known
_WORD = 8  # bytes of a pointer


class Arguments(NamedTuple):
    """The parameters of a launch, and the allocations that it has."""

    content: Bytes
    allocations: Sequence[Allocation]

    def allocation_at(self, address: int) -> int | None:
        """Return the address of the allocation that an address lies in, or None."""
        held = (each for each in self.allocations if each.address <= address < each.address + each.size)
        return next((each.address for each in held), None)


class Arrival(NamedTuple):
    """A statement that a value may have reached, as what (``role``), and the statement that it is of."""

    pc: int
    role: str
    origin: int


class _Step(NamedTuple):
    """One executed statement: the cells that it reads, by their roles, and those that it writes."""

    pc: int
    roles: tuple[tuple[str, frozenset[Cell]], ...]
    written: frozenset[Cell]


def arrivals(
    module: Module, executed: Executed, sources: set[int], arguments: Arguments
) -> Iterator[Arrival]:
    """Yield what results of the statements ``sources`` may have reached, each role of a statement once."""
    if not sources:
        return
    functions = {pc: module.function_around(pc) for pc, _ in executed}
    pointed = _pointed(executed, functions, arguments)
    steps = [_step(functions[pc], pc, record, pointed) for pc, record in executed]
    flow = _Flow(StatementOrder(executed), sources, steps)
    for step in steps:
        for role, cells in step.roles:
            origin = flow.origin(cells, step.pc) if role else -1
            if origin >= 0:
                yield Arrival(step.pc, role, origin)


class _Flow:
    """What cells may hold: the least fixpoint."""

    def __init__(self, order: StatementOrder, sources: set[int], steps: Sequence[_Step]) -> None:
        self._order, changed = order, True
        self._taint: Taint = {}
        while changed:
            changed = False
            for step in steps:
                reads = (cell for _, cells in step.roles for cell in cells)
                origin = step.pc if step.pc in sources else self.origin(reads, step.pc)
                for cell in step.written if origin >= 0 else ():
                    known = self._taint.setdefault(cell, {})
                    changed |= step.pc not in known
                    known.setdefault(step.pc, origin)

    def origin(self, cells: Iterable[Cell], pc: int) -> int:
        """Return the first source of which a statement may read a value in some cells; -1 for none."""
        found = (
            origin
            for cell in cells
            for place in self._places(cell)
            for before, origin in self._taint.get(place, {}).items()
            if self._may_read(cell, pc, before)
        )
        return min(found, default=-1)

    def _places(self, cell: Cell) -> Iterable[Cell]:
        """Return the cells that a cell may be: of global memory any, where its allocation is not known."""
        if cell[0] != "global":
            return (cell,)
        any_of = ("global", "", _ANY)
        return [key for key in self._taint if key[0] == "global"] if cell == any_of else (cell, any_of)

    def _may_read(self, cell: Cell, pc: int, before: int) -> bool:
        """Return whether a statement may read what another has put into a cell."""
        if cell[0] not in _ORDERED or self._order.follows(pc, before):
            return True
        return cell[0] != "register" and not self._order.follows(before, pc)  # roles of other warps


# --- statements ------------------------------------------------------------------------------------


def registers_of(function: Function, numbers: Iterable[int]) -> frozenset[Cell]:
    """Return the cells of registers of a function."""
    return frozenset(("register", function.name, number) for number in numbers)


def _step(function: Function, pc: int, record: Record, pointed: Mapping[Cell, Pointed]) -> _Step:
    statement, flow = record.statement, record.flow
    addresses = registers_of(function, flow.addresses)
    loaded, stored = _memories(record, frozenset[int]().union(*(pointed.get(x, ()) for x in addresses)))
    carried = frozenset({_CARRY} if statement.opcode in ("addc", "subc", "madc") else ())
    carries = frozenset({_CARRY} if "cc" in statement.modifiers else ())
    guard = registers_of(function, [record.guard] if record.guard >= 0 else ())
    roles = (
        ("the branch" if statement.opcode == "bra" else "the guard", guard),
        ("an address", addresses),
        (_role(record), registers_of(function, flow.values) | loaded | carried),
    )
    return _Step(pc, roles, registers_of(function, flow.written) | stored | carries)


def _role(record: Record) -> str:
    """Return what values mean to a statement; empty where they are just values."""
    opcode = record.statement.opcode
    if opcode in OPCODES or (opcode in ("tcgen05", "wmma") and "mma" in record.statement.modifiers):
        return "a tensor-core operand"
    if opcode in _SYNCHRONISATIONS:
        return "the synchronisation"
    return "the target" if opcode in _JUMPS else ""


def _memories(record: Record, pointed: Pointed) -> tuple[frozenset[Cell], frozenset[Cell]]:
    """Return memories that a statement may read, and may write, at addresses that point into allocations."""
    statement, none = record.statement, frozenset[Cell]()
    opcode = statement.modifiers[0] if statement.opcode == "wmma" else statement.opcode
    addressed = any(isinstance(operand, Address) for operand in statement.operands or ())
    if opcode == "call" or opcode == "mbarrier":
        return none, none
    if opcode == "tcgen05" and not record.flow.framed:
        read, written = _TENSOR_MEMORY.get(statement.modifiers[0], ((), ()))
        return _cells(read, pointed), _cells(written, pointed)
    if opcode in TILE_OPCODES and not record.flow.framed:
        return _cells(["shared"], pointed), none
    if not addressed and not record.flow.framed:
        return none, none
    spaces = _named_spaces(statement.modifiers, pointed)
    if opcode == "cp":  # the first space is that of the destination
        return _cells(spaces[1:], pointed), _cells(spaces[:1], pointed)
    cells = frozenset({_FRAMES}) if record.flow.framed else _cells(spaces, pointed)
    return none if opcode in _STORES else cells, none if opcode in _LOADS else cells


_TENSOR_MEMORY = {  # what tcgen05 reads, and writes
    "mma": (("tensor", "shared"), ("tensor",)),
    "ld": (("tensor",), ()),
    "st": ((), ("tensor",)),
    "cp": (("shared",), ("tensor",)),
    "shift": (("tensor",), ("tensor",)),
}


def _named_spaces(modifiers: tuple[str, ...], pointed: Pointed) -> list[str]:
    """Return the memories that modifiers name, in their order; all of them for generic addresses that are
    no pointer, none that only the host writes.
    """
    stems = [modifier.partition("::")[0] for modifier in modifiers]
    if {"const", "param"} & {*stems}:
        return []
    named = [stem for stem in dict.fromkeys(stems) if stem in _SPACES]
    return named or (["global"] if pointed and _ANY not in pointed else [*_SPACES, "frames"])


def _cells(spaces: Iterable[str], pointed: Pointed) -> frozenset[Cell]:
    """Return the cells of memories; of global memory those of the allocations that are pointed into."""
    allocations = {_ANY} if not pointed or _ANY in pointed else pointed
    others = {(space, "", 0) for space in spaces if space != "global"}
    return frozenset(others | {("global", "", at) for at in allocations if "global" in spaces})


# --- pointers --------------------------------------------------------------------------------------


def _pointed(
    executed: Executed, functions: Mapping[int, Function], arguments: Arguments
) -> dict[Cell, Pointed]:
    """Return the allocations that registers may point into: the least fixpoint."""
    found, changed = dict[Cell, Pointed](), True
    moves = [(functions[pc], record, _given(record, arguments)) for pc, record in executed]
    while changed:
        changed = False
        for function, record, given in moves:
            passed = registers_of(function, _passed(record)) if given is None else ()
            points = frozenset(given or ()).union(*(found.get(cell, ()) for cell in passed))
            for cell in registers_of(function, record.flow.written) if points else ():
                known = found.get(cell, frozenset())
                changed |= not points <= known
                found[cell] = known | points
    return found


def _passed(record: Record) -> Iterable[int]:
    """Return the registers whose addresses a statement may hand on to its results."""
    statement, operands = record.statement, record.statement.operands or ()
    if statement.opcode in _NO_ADDRESSES:
        return ()
    if statement.opcode == "cvt" and not statement.modifiers[-1].endswith("64"):
        return ()  # of a word that is too narrow
    last = operands[-1] if operands else None
    if statement.opcode in _PRODUCTS and record.scope is not None:
        name = record.scope.find(last.name) if isinstance(last, Register) else None
        return (name.number,) if isinstance(name, RegisterName) else ()
    return record.flow.values


def _given(record: Record, arguments: Arguments) -> Pointed | None:
    """Return where results point that are loaded, or the address of a variable; None for other results."""
    statement, scope = record.statement, record.scope
    names = [
        operand for operand in (statement.operands or ())[1:2] if isinstance(operand, Address | Register)
    ]
    base = names[0].base if names and isinstance(names[0], Address) else names[0] if names else None
    found = scope.find(base.name) if scope is not None and isinstance(base, Register) else None
    if statement.opcode == "ld" and "param" in statement.modifiers and not record.flow.framed:
        size = (None, None) if not isinstance(found, Variable) else (found.offset, found.offset + found.size)
        return _pointers(arguments, *size)
    if statement.opcode in _READS_MEMORY:
        return frozenset({_ANY})
    if not isinstance(found, Variable):
        return None
    if found.space == "param" and not found.framed:  # a tensor map, or a structure with pointers
        return _pointers(arguments, found.offset, found.offset + found.size)
    return frozenset({_ANY}) if found.space in ("global", "const") or found.framed else frozenset()


def _pointers(arguments: Arguments, first: int | None = None, past: int | None = None) -> Pointed:
    """Return the allocations that words of parameters point into."""
    content = np.asarray(arguments.content, np.uint8)[first:past]
    words = content[: len(content) // _WORD * _WORD].view(np.uint64).tolist()
    return frozenset(at for at in map(arguments.allocation_at, words) if at is not None)
