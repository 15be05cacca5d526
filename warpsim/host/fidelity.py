"""How exact a launch was: its statements by exact, inferred and approximate, and what approximations reached.

What is approximate is taken from the rows of the opcode tables; special registers whose values are made up
count as approximate, too; a matrix instruction is exact where PTX documents its bits, or outputs of the
chip with its types and k have been compared, and inferred otherwise (wgmma as if it added C). Whether an
approximate value could have reached a branch, an address or the operand of a tensor core is a may-analysis
of the statements that were executed: values flow through the registers of each function and through each
state space as a whole, whatever the order of the statements, so that nothing is missed and some reported
flows may not have happened. Not followed: that a statement is executed at all because of a branch (the
branch itself is reported), and the phases of mbarriers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..errors import IllegalInstruction, Location
from ..execution.pipeline import evidence
from ..isa.families import OPCODES, TILE_OPCODES
from ..isa.instruction import Instruction
from ..machine.load.program import Module
from ..machine.run.wave import Record
from ..ptx.operands import Address
from ..ptx.qualifiers import resolve

if TYPE_CHECKING:
    from ..machine.bind.functions import Function

LABELS = ("exact", "inferred", "approximate")
Cell = tuple[str, str, int]  # of a register: its function and number; of a memory: its name
Taint = dict[Cell, int]  # the program counter of the first approximation that may be in a cell

_MATRIX = OPCODES | {"wmma", "tcgen05"}
_JUMPS = frozenset({"bra", "brx", "call"})
_SYNCHRONISATIONS = frozenset({"bar", "barrier", "mbarrier"})
_LOADS = TILE_OPCODES | {"ld", "ldu", "ldmatrix", "prefetch", "prefetchu"}
_STORES = frozenset({"st", "stmatrix"})
_SPACES = ("global", "shared", "local")
_CARRY: Cell = ("carry", "", 0)
_FRAMES: Cell = ("frames", "", 0)  # .param variables of calls


@dataclass(frozen=True, kw_only=True)
class StatementClass:
    """Statements of one mnemonic that were executed: so many of them, and executions, of a wave's lanes at
    once; ``fidelity`` is one of LABELS and ``note`` says why."""

    mnemonic: str
    fidelity: str
    note: str
    statements: int
    executions: int


@dataclass(frozen=True, kw_only=True)
class Reach:
    """An approximate value may have reached a statement: as a branch, a guard, an address, an operand of a
    tensor core, or what warps synchronise by (``role``); ``origin`` is where it came from."""

    role: str
    mnemonic: str
    location: Location
    origin_mnemonic: str
    origin: Location

    def __str__(self) -> str:
        return (
            f"{self.location}: a result of {self.origin_mnemonic} at line {self.origin.line} "
            f"may have reached {self.role} of {self.mnemonic}"
        )


@dataclass(frozen=True, kw_only=True)
class Fidelity:
    """The statements that a launch executed, and what their approximations may have reached."""

    classes: tuple[StatementClass, ...] = ()
    reached: tuple[Reach, ...] = ()
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(LABELS, 0))  # of executions

    def __getitem__(self, label: str) -> tuple[StatementClass, ...]:
        """Return the classes of one label."""
        return tuple(kind for kind in self.classes if kind.fidelity == label)


def fidelity_of(module: Module, counts: Sequence[int], inferred: Mapping[int, str]) -> Fidelity:
    """Return how exact a launch was that executed each statement of a module so often.

    ``inferred`` are statements of which that showed only while they ran, and why.
    """
    executed = [(pc, record) for pc, record in enumerate(module.code) if counts[pc]]
    labels = {pc: _label(module, record) for pc, record in executed}
    labels |= {pc: ("inferred", why) for pc, why in inferred.items() if labels[pc][0] == "exact"}
    found: dict[tuple[str, str, str], list[int]] = {}
    for pc, record in executed:
        tally = found.setdefault((record.statement.mnemonic, *labels[pc]), [0, 0])
        tally[0] += 1
        tally[1] += counts[pc]
    classes = tuple(
        StatementClass(mnemonic=name, fidelity=label, note=note, statements=statements, executions=executions)
        for (name, label, note), (statements, executions) in found.items()
    )
    totals = {label: sum(kind.executions for kind in classes if kind.fidelity == label) for label in LABELS}
    sources = {pc for pc, (label, _) in labels.items() if label == "approximate"}
    return Fidelity(classes=classes, reached=_reached(module, executed, sources), counts=totals)


def matrix_form(module: Module, record: Record) -> Instruction | None:
    """Return the matrix instruction that a statement is, or None."""
    statement = record.statement
    if statement.opcode not in OPCODES:
        return None
    try:
        return resolve(statement.opcode, statement.modifiers, module.target, module.version)
    except IllegalInstruction:
        return None


def _label(module: Module, record: Record) -> tuple[str, str]:
    """Label and note of a statement."""
    form = matrix_form(module, record)
    if form is not None:
        known = evidence(form)
        return "exact" if known.label in ("validated", "documented") else "inferred", str(known)
    if record.flow.made_up:
        return "approximate", f"{', '.join(record.flow.made_up)}: made up, chips have other values"
    return record.fidelity, record.note


# --- flow ------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Step:
    """One executed statement: the cells that it reads, by their roles, and those that it writes."""

    pc: int
    record: Record
    roles: tuple[tuple[str, frozenset[Cell]], ...]
    written: frozenset[Cell]


def _reached(module: Module, executed: Sequence[tuple[int, Record]], sources: set[int]) -> tuple[Reach, ...]:
    """Return where approximations may have got to, each role of a statement once."""
    if not sources:
        return ()
    steps = [_step(module.function_around(pc), pc, record) for pc, record in executed]
    taint = _spread(steps, sources)
    return tuple(reached for step in steps for reached in _of_step(module, step, taint))


def _spread(steps: Iterable[_Step], sources: set[int]) -> Taint:
    """Return the cells that may hold approximations: the least fixpoint."""
    taint: Taint = {}
    steps, changed = list(steps), True
    while changed:
        changed = False
        for step in steps:
            reads = (cell for _, cells in step.roles for cell in cells)
            origin = step.pc if step.pc in sources else min(_origins(reads, taint), default=-1)
            new = step.written - taint.keys() if origin >= 0 else ()
            taint.update(dict.fromkeys(new, origin))
            changed = changed or bool(new)
    return taint


def _origins(cells: Iterable[Cell], taint: Taint) -> Iterator[int]:
    return (taint[cell] for cell in cells if cell in taint)


def _of_step(module: Module, step: _Step, taint: Taint) -> Iterator[Reach]:
    for role, cells in step.roles:
        origin = min(_origins(cells, taint), default=-1) if role else -1
        if origin >= 0:
            source = module.code[origin].statement
            yield Reach(
                role=role,
                mnemonic=step.record.statement.mnemonic,
                location=step.record.statement.location(),
                origin_mnemonic=source.mnemonic,
                origin=source.location(),
            )


def _step(function: Function, pc: int, record: Record) -> _Step:
    opcode, flow = record.statement.opcode, record.flow
    loaded, stored = _memories(record)

    def registers(numbers: Iterable[int]) -> frozenset[Cell]:
        return frozenset(("register", function.name, number) for number in numbers)

    carries = opcode in ("addc", "subc", "madc")
    values = registers(flow.values) | loaded | ({_CARRY} if carries else frozenset())
    guard = registers([record.guard] if record.guard >= 0 else ())
    written = registers(flow.written) | stored
    if "cc" in record.statement.modifiers:
        written |= {_CARRY}
    roles = (
        ("the branch" if opcode == "bra" else "the guard", guard),
        ("an address", registers(flow.addresses)),
        (_role(opcode), values),
    )
    return _Step(pc=pc, record=record, roles=roles, written=written)


def _role(opcode: str) -> str:
    """Return what values mean to an opcode; empty where they are just values."""
    if opcode in _MATRIX:
        return "a tensor-core operand"
    if opcode in _SYNCHRONISATIONS:
        return "the synchronisation"
    return "the target" if opcode in _JUMPS else ""


def _memories(record: Record) -> tuple[frozenset[Cell], frozenset[Cell]]:
    """Return memories that a statement may read, and may write."""
    statement = record.statement
    opcode = statement.opcode
    if opcode == "call":
        return frozenset(), frozenset()
    if record.flow.framed:
        touched = {_FRAMES}
    elif opcode in TILE_OPCODES:
        touched = {("shared", "", 0)}
    elif opcode == "mbarrier" or not any(
        isinstance(operand, Address) for operand in statement.operands or ()
    ):
        touched = set()
    else:
        touched = _named_spaces(statement.modifiers)
    cells, none = frozenset(touched), frozenset[Cell]()
    return none if opcode in _STORES else cells, none if opcode in _LOADS else cells


def _named_spaces(modifiers: tuple[str, ...]) -> set[Cell]:
    """Return the memories that modifiers name; all of them for generic addresses, none that only the host
    writes.
    """
    stems = {modifier.partition("::")[0] for modifier in modifiers}
    if stems & {"const", "param"}:
        return set()
    named = [space for space in _SPACES if space in stems] or [*_SPACES, "frames"]
    return {(space, "", 0) for space in named}
