"""What becomes of open values in the statements of a kernel: which follow from which registers.

Knows opcodes by name, and registers by number; does not know which values are open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum, auto
from typing import NamedTuple

from ....isa.instruction import Instruction
from ....machine.bind.scope import RegisterName
from ....machine.run.wave import Entry, Record
from ....machine.state.side_tables import SideTable
from ....ptx.binding import WarpBound
from .open_products import is_one


class Kind(Enum):
    """What becomes of open values in a statement."""

    COMPUTES = auto()  # lane by lane: results are open where a source is
    LOADS = auto()  # results are open where a byte is
    MATRICES = auto()  # the same of ldmatrix, which a lane gives an address for others
    PRODUCT = auto()  # D is open where C is, in rows of A and of undefined metadata, and in columns of B
    STORES = auto()  # bytes are open where a source is
    COPIES = auto()  # what is copied, and where to, must not be open
    MEETS = auto()  # no source may be open: other lanes, or what comes next, depend on them
    UNKNOWN = auto()


_MEETING = (
    *("bar", "barrier", "bra", "brx", "exit", "ret", "fence", "membar", "mov", "nanosleep", "prefetch"),
    *("shfl", "vote", "match", "redux", "elect", "activemask"),
)
_KINDS = dict.fromkeys(_MEETING, Kind.MEETS) | {
    "ld": Kind.LOADS,
    "ldmatrix": Kind.MATRICES,
    "mma": Kind.PRODUCT,
    "st": Kind.STORES,
}
_COPYING = (frozenset({"async", "ca"}), frozenset({"async", "cg"}))
_OTHER_STORES = frozenset({"async", "bulk"})
_GROUPS = frozenset({"commit_group", "wait_group", "wait_all"})


class Product(NamedTuple):
    """A matrix instruction: registers of C and of D, those of each operand ``spread`` over rows or columns
    of D, and those of which every element of D may come. A register is -1 for a constant or a sink; C is
    empty where it does not lie as D.
    """

    form: Instruction
    selector: int
    c: tuple[int, ...]
    d: tuple[int, ...]
    spread: tuple[tuple[str, tuple[int, ...]], ...]
    others: tuple[int, ...]

    @property
    def operands(self) -> Iterator[int]:
        """The registers of all operands but C."""
        yield from self.others
        for _, numbers in self.spread:
            yield from numbers


class Statement(NamedTuple):
    """What there is to know of a statement; ``touched`` are the registers that it reads or writes."""

    kind: Kind
    guard: int
    values: frozenset[int]
    addresses: frozenset[int]
    written: frozenset[int]
    touched: frozenset[int]
    simple: bool  # it computes in all lanes
    product: Product | None = None
    moved: tuple[int, ...] = ()  # the registers that are loaded or stored, in the order of memory

    @property
    def parts(self) -> int:
        """The registers of a load that are open apart."""
        return len(self.moved) if self.kind is Kind.LOADS and self.moved else 1


class Statements:
    """What is known of the statements of a kernel, when they have been executed."""

    def __init__(self, entry: Entry) -> None:
        self.code = entry.code
        self._at = dict[int, Statement]()
        self._touched = dict[tuple[int, int], frozenset[int] | None]()

    def at(self, pc: int) -> Statement:
        """Return what is known of a statement."""
        found = self._at.get(pc)
        if found is None:
            found = self._at[pc] = _statement(self.code[pc])
        return found

    def touched(self, first: int, past: int) -> frozenset[int] | None:
        """Return the registers that some statements read or write; None where one cannot be followed."""
        try:
            return self._touched[first, past]
        except KeyError:
            every = [self.at(pc) for pc in range(first, past)]
            followed = all(each.kind is not Kind.UNKNOWN for each in every)
            sets = (each.touched for each in every)
            found = self._touched[first, past] = frozenset[int]().union(*sets) if followed else None
            return found


STATEMENTS = SideTable(Statements)


def _statement(record: Record) -> Statement:
    """Return what is known of a statement."""
    flow, kind = record.flow, _kind(record)
    product = _product(record) if kind is Kind.PRODUCT else None
    moved = _moved(record, kind)
    simple = kind is Kind.COMPUTES and record.guard < 0
    touched = flow.values | flow.addresses | flow.written | ({record.guard} - {-1})
    return Statement(
        kind, record.guard, flow.values, flow.addresses, flow.written, touched, simple, product, moved
    )


def _kind(record: Record) -> Kind:
    """Return what becomes of open values; sums with a carry have a result that is in no register."""
    opcode, modifiers = record.statement.opcode, frozenset(record.statement.modifiers)
    if record.flow.framed:
        return Kind.UNKNOWN
    if record.semantics is not None and record.semantics.load is None:
        return Kind.MEETS if "cc" in modifiers else Kind.COMPUTES
    if opcode == "cp" and any(modifiers >= copying for copying in _COPYING):
        return Kind.COPIES
    if opcode == "cp" and "async" in modifiers and modifiers & _GROUPS and "bulk" not in modifiers:
        return Kind.MEETS
    if opcode == "st" and modifiers & _OTHER_STORES:
        return Kind.UNKNOWN
    return _KINDS.get(opcode, Kind.UNKNOWN)


def _product(record: Record) -> Product | None:
    """Return a matrix instruction; None where something is named that is no register."""
    bound = record.matrix
    if not isinstance(bound, WarpBound):
        return None
    form, others = bound.instruction, (bound.scale_a, bound.scale_b, *bound.ids)
    e = () if bound.e is None else (bound.e,)
    given = [*(("a", bound.a), ("b", bound.b), ("e", e), ("", others), ("c", bound.c), ("d", bound.d))]
    found = {role: tuple(_numbers(record, names)) for role, names in given}
    if any(None in numbers for numbers in found.values()):
        return None
    registers = {role: tuple(number for number in of if number is not None) for role, of in found.items()}
    alike = form.c == form.d and len(bound.c) == len(bound.d)
    spread = tuple((role, registers[role]) for role in "abe" if registers[role]) if is_one(form) else ()
    whole = [role for role in ("a", "b", "e") if not spread] + ["c"] * (not alike)
    every = sum((registers[role] for role in whole), registers[""])
    c = registers["c"] if alike else ()
    return Product(form, bound.selector, c, registers["d"], spread, every)


_MOVED = {Kind.LOADS: 0, Kind.MATRICES: 0, Kind.STORES: 1}  # the operand that is in memory, too


def _moved(record: Record, kind: Kind) -> tuple[int, ...]:
    """Return the registers of a vector, -1 for what is none; empty where they are not known apart."""
    if kind not in _MOVED:
        return ()
    operand, flow = (record.statement.operands or ())[_MOVED[kind]], record.flow
    names = [getattr(each, "name", None) for each in getattr(operand, "elements", (operand,))]
    numbers = [number for number in _numbers(record, names) if number is not None]
    known = {*numbers} - {-1}
    whole = known <= flow.values if kind is Kind.STORES else known == flow.written
    return (*numbers,) if whole and len(numbers) == len(names) else ()


def _numbers(record: Record, names: Iterable[object]) -> Iterator[int | None]:
    """Yield the number of each register, -1 for what is a constant or not there; None for any other name."""
    for name in names:
        found = record.scope.find(name) if isinstance(name, str) and record.scope is not None else None
        number = found.number if isinstance(found, RegisterName) else None
        yield number if isinstance(name, str) else -1
