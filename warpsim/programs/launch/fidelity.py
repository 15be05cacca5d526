"""How exact a launch was: its statements by LABELS, and what values that are not the chip's for sure reached.

What is approximate is taken from the rows of the opcode tables; special registers whose values are made up
count as approximate, too; a matrix instruction is exact where PTX documents its bits, or outputs of the
chip with its types and k have been compared, and inferred otherwise (of a wgmma with and without C, as it
added C or did not). Additions of floats by several threads to one address have the order that the schedule
chose, where their sums depend on it, or an old value that is used; so have old values of other updates, and
what updates leave that do not commute.
Whether approximate values and those of an open order may have reached a branch, an address or the operand of
a tensor core is found by value_flow.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from ...base.errors import IllegalInstruction, Location
from ...isa.displayed import Displayed
from ...isa.families import OPCODES
from ...isa.instruction import Instruction
from ...machine.load.program import Module
from ...machine.run.addition_orders import NOT_COMMUTING, OpenAddition, Place, place_of
from ...machine.run.wave import Record
from ...ptx.qualifiers import Version, resolve
from ...sums.execution.pipeline import evidence
from .value_flow import Arguments, Arrival, Cell, arrivals, registers_of

if TYPE_CHECKING:
    pass

SCHEDULED = "order chosen by the schedule"
LABELS = ("exact", "inferred", SCHEDULED, "approximate")
_ADDING = frozenset({"atom", "red", "cp"})


@dataclass(frozen=True, kw_only=True)
class StatementClass:
    """Statements of one mnemonic that were executed: so many of them, and executions, of a wave's lanes at
    once; ``fidelity`` is one of LABELS and ``note`` says why. ``location`` is that of the first."""

    mnemonic: str
    fidelity: str
    note: str
    statements: int
    executions: int
    location: Location | None = None


@dataclass(frozen=True, kw_only=True)
class Reach:
    """An approximate value, or that of an open order, may have reached a statement: as a branch, a guard,
    an address, an operand of a tensor core, or what warps synchronise by (``role``); ``origin`` is where it
    came from.
    """

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
class Fidelity(Displayed):
    """The statements that a launch executed, and what values that chips may not have may have ``reached``,
    which is found when it is asked for.
    """

    classes: tuple[StatementClass, ...] = ()
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(LABELS, 0))  # of executions
    find: Callable[[], tuple[Reach, ...]] = field(default=tuple, repr=False, compare=False)

    @cached_property
    def reached(self) -> tuple[Reach, ...]:
        """Where values that chips may not have may have got to."""
        return self.find()

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "reached": self.reached, "find": tuple}

    def __str__(self) -> str:
        shown = ", ".join(f"{label} {count:,}" for label, count in self.counts.items() if count)
        return f"statements executed: {shown or 'none'}"

    def __repr__(self) -> str:
        return f"<{self}>"

    def __getitem__(self, label: str) -> tuple[StatementClass, ...]:
        """Return the classes of one label."""
        return tuple(kind for kind in self.classes if kind.fidelity == label)


class Shown(NamedTuple):
    """What showed only while statements ran: what is ``inferred``, and why; matrix instructions that added
    C (True) or did not, and additions whose order is open, by their places."""

    inferred: Mapping[int, str]
    with_c: Mapping[int, Set[bool]]
    additions: Mapping[Place, OpenAddition]


Kind = tuple[str, str, str]  # mnemonic, label and note
_KINDS: WeakKeyDictionary[Module, dict[int, Kind]] = WeakKeyDictionary()  # by module and statement
_LOCATIONS: WeakKeyDictionary[Module, dict[int, Location]] = WeakKeyDictionary()  # each takes 40 us


def fidelity_of(module: Module, counts: npt.ArrayLike, shown: Shown, arguments: Arguments) -> Fidelity:
    """Return how exact a launch was that executed each statement ``(statements,)`` of a module so often."""
    times = np.asarray(counts)
    executed = [(pc, module.code[pc]) for pc in np.flatnonzero(times).tolist()]
    kinds = _KINDS.setdefault(module, {})
    labels = {pc: kinds.get(pc) or _kind(module, pc, record, shown.with_c) for pc, record in executed}
    shows = {pc: why for pc, why in shown.inferred.items() if labels[pc][1] == "exact"}
    labels |= {pc: (labels[pc][0], "inferred", why) for pc, why in shows.items()}
    for pc, (label, note) in _scheduled(module, executed, shown.additions).items():
        labels[pc] = labels[pc][0], label, note
    found: dict[Kind, list[int]] = {}  # the statements of each class
    for pc, kind in labels.items():
        found.setdefault(kind, []).append(pc)
    classes = tuple(
        StatementClass(
            mnemonic=name,
            fidelity=label,
            note=note,
            statements=len(members),
            executions=int(times[members].sum()),
            location=_location(module, members[0]),
        )
        for (name, label, note), members in found.items()
    )
    totals = {label: sum(kind.executions for kind in classes if kind.fidelity == label) for label in LABELS}
    sources = {pc for pc, kind in labels.items() if kind[1] in (SCHEDULED, "approximate")}
    find = partial(_reaches, module, executed, sources, arguments)
    return Fidelity(classes=classes, counts=totals, find=find)


def _reaches(
    module: Module, executed: Sequence[tuple[int, Record]], sources: set[int], arguments: Arguments
) -> tuple[Reach, ...]:
    """Return what results of some statements may have reached."""
    return tuple(_reach(module, each) for each in arrivals(module, executed, sources, arguments))


def _reach(module: Module, arrival: Arrival) -> Reach:
    statement, source = (module.code[pc].statement for pc in (arrival.pc, arrival.origin))
    return Reach(
        role=arrival.role,
        mnemonic=statement.mnemonic,
        location=statement.location(),
        origin_mnemonic=source.mnemonic,
        origin=source.location(),
    )


def _location(module: Module, pc: int) -> Location:
    """Return where a statement stands, found once."""
    known = _LOCATIONS.setdefault(module, {})
    if pc not in known:
        known[pc] = module.code[pc].statement.location()
    return known[pc]


def matrix_form(module: Module, record: Record) -> Instruction | None:
    """Return the matrix instruction that a statement is, or None."""
    statement = record.statement
    if statement.opcode not in OPCODES:
        return None
    return _form(statement.opcode, statement.modifiers, module.target, module.version)


@lru_cache(maxsize=1024)
def _form(
    opcode: str, modifiers: tuple[str, ...], target: str | None, version: Version
) -> Instruction | None:
    """Return the form of a matrix instruction, None for others of its opcode, as ``wgmma.fence``: to find
    out that there is none takes half a millisecond, most of it for advice.
    """
    try:
        return resolve(opcode, modifiers, target, version)
    except IllegalInstruction:
        return None


@lru_cache(maxsize=1024)
def _kept(mnemonic: str, label: str, note: str) -> Kind:
    """Return the kind, the same object for all its statements."""
    return mnemonic, label, note


def _kind(module: Module, pc: int, record: Record, with_c: Mapping[int, Set[bool]]) -> Kind:
    """Return mnemonic, label and note of a statement; kept, but of matrix instructions, of which they depend
    on the launch.
    """
    kind = _kept(record.statement.mnemonic, *_label(module, record, with_c.get(pc, {True})))
    if record.statement.opcode not in OPCODES:
        _KINDS[module][pc] = kind
    return kind


def _label(module: Module, record: Record, with_c: Set[bool]) -> tuple[str, str]:
    """Label and note of a statement, of a matrix instruction that added C or not, or now and then."""
    form = matrix_form(module, record)
    if form is not None:
        known = [evidence(form, with_c=added) for added in sorted(with_c, reverse=True)]
        exact = all(found.label in ("validated", "documented") for found in known)
        return "exact" if exact else "inferred", "; where C is not added: ".join(
            dict.fromkeys(map(str, known))
        )
    if record.flow.made_up:
        return "approximate", f"{', '.join(record.flow.made_up)}: made up, chips have other values"
    return record.fidelity, record.note


def _scheduled(
    module: Module, executed: Sequence[tuple[int, Record]], additions: Mapping[Place, OpenAddition]
) -> dict[int, tuple[str, str]]:
    """Return labels and notes of additions whose order is open, and shows: in sums or in used old values."""
    found, used = dict[int, tuple[str, str]](), set[Cell]()
    if not additions:
        return found
    for pc, record in executed:
        used |= registers_of(module.function_around(pc), _read(record))
    for pc, record in executed:
        known = additions.get(place_of(record.statement)) if record.statement.opcode in _ADDING else None
        if known is None:
            continue
        returned = registers_of(module.function_around(pc), record.flow.written) & used
        left = known.differing and not NOT_COMMUTING.isdisjoint(record.statement.modifiers)
        if known.words or returned or left:
            found[pc] = SCHEDULED, "; ".join(_order_notes(known, bool(returned), left))
    return found


def _order_notes(known: OpenAddition, returned: bool, left: bool) -> Iterator[str]:
    if known.words:
        yield (
            f"several threads add to one address, PTX leaves their order open, and sums at {known.words:,} "
            f"address{'es'[: 2 * (known.words != 1)]} depend on it (schedules=4 shows how much)"
        )
    if returned:
        yield "the old values returned are those of an order of several threads, which PTX leaves open"
    if left:
        yield "the value left in memory is that of an order of several threads, which PTX leaves open"


def _read(record: Record) -> frozenset[int]:
    """Return the registers that a statement reads."""
    guard = frozenset([record.guard] if record.guard >= 0 else ())
    return frozenset(record.flow.values) | frozenset(record.flow.addresses) | guard
