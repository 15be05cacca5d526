"""Machines that execute PTX statements one by one on named registers; the warp is one of them.

Knows statements, guards and what ``mma`` and ``mov`` read and write; does not know files, memories, or
what only a warpgroup has (see warpgroup.py). An instruction that fails leaves every register as it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from ..errors import (
    IllegalInstruction,
    Location,
    NotModelled,
    OperandError,
    UndefinedBehavior,
    WarpsimError,
    located,
)
from ..execution.pipeline import Engine, Undefined, execute_inputs, is_literal
from ..isa.instruction import Inputs, Instruction, ScaleSelectors
from ..ptx.binding import Bound, bind
from ..ptx.constants import Immediate
from ..ptx.decode import Bind, bind_statement, parse_version
from ..ptx.operands import Address, Displacement, NegatedPredicate, Operand, Register, Vector
from ..ptx.parser import parse
from ..ptx.qualifiers import PTX_VERSION, check_target
from ..ptx.statements import (
    Binding,
    Block,
    Directive,
    InstructionStatement,
    Kernel,
    Label,
    RegisterDeclaration,
    Statement,
)
from ..ptx.warpgroup import WarpgroupBound
from .mov import constant_bits, moved
from .register_file import Lanes, Mask, RegisterFile, bits_dtype, dtype_bits, register_names, type_bits

if TYPE_CHECKING:
    from .hazards import Hazard

WARP, WARPGROUP = 32, 128  # lanes

Execute = Callable[[InstructionStatement, Mask], "Iterable[Event]"]
Place = Callable[[], Location]


@dataclass(frozen=True, kw_only=True, eq=False)
class Event:
    """One executed matrix instruction: where it stands, what it read, and the D registers it computed.

    ``inputs`` holds registers and shared memory as they were then; nothing that follows changes them.
    ``warps`` are the warps that executed it.
    """

    statement: InstructionStatement
    bound: Bound | WarpgroupBound
    inputs: Inputs  # registers (lanes of the machine, registers)
    d: npt.NDArray[Any]  # (lanes of the machine, registers), sinks included, 0 in lanes that did not execute
    warps: tuple[int, ...]

    @property
    def instruction(self) -> Instruction:
        """The instruction on the machine's target."""
        return self.bound.instruction

    def executions(self) -> Iterator[tuple[int, Inputs, npt.NDArray[Any]]]:
        """First lane, inputs and D of each execution: an ``mma`` is one for each warp, a ``wgmma`` is one."""
        lanes = self.instruction.family.lanes
        for first in sorted({WARP * warp // lanes * lanes for warp in self.warps}):
            part = slice(first, first + lanes)
            words = {name: array[part] for name, array in self.inputs.registers.items()}
            yield first, replace(self.inputs, registers=words), self.d[part]


B = TypeVar("B", Bound, WarpgroupBound)
Origin = tuple[Event, int]  # of a register that a matrix instruction wrote: which one, and its place in D


class Machine:
    """``lanes`` lanes, in warps of 32, with named registers.

    ``machine["%r1"]`` is a register, one unsigned value a lane; ``machine["%r<4>"]`` is ``%r0`` to ``%r3``
    as an array ``(lanes, 4)``, ready for warpsim.unpack. Assigning declares the register if need be;
    scalars go to every lane, floats give their bits. Registers of PTX text may be left undeclared as long
    as the text around declares none at all: they then have the right types.
    """

    name: ClassVar[str]
    lanes: ClassVar[int]
    modelled: ClassVar[str]  # what it executes, in words
    together: ClassVar[Mapping[str, int]]  # opcode -> lanes in a row that must execute it together

    def __init__(self, target: str, *, engine: Engine = "kernel", undefined: Undefined = "error") -> None:
        check_target(target)
        is_literal(undefined)
        if engine not in get_args(Engine):
            raise OperandError(f"engine {engine!r}: it is 'kernel' or 'reference'")
        self.target = target
        self.engine: Engine = engine
        self.undefined: Undefined = undefined
        self.version = PTX_VERSION
        self._file = RegisterFile(self.lanes)
        self._executes: dict[str, Execute] = {"mma": self._matrix, "mov": self._move}

    # --- registers ---

    def __getitem__(self, name: str) -> Lanes:
        """``(lanes,)``, or ``(lanes, n)`` for ``name<n>``; raises UndefinedBehavior if never written."""
        return self.read(name, host_place(f'["{name}"]'))

    def __setitem__(self, name: str, value: npt.ArrayLike) -> None:
        self._access(register_names(name), "write", lambda: host_place(f'["{name}"] = …'))
        self._file.assign(name, value)

    def __contains__(self, name: str) -> bool:
        return self._file.holds(name)

    def read(self, name: str, place: Location) -> Lanes:
        """``machine[name]`` on behalf of what stands at a place."""
        names = register_names(name)
        columns = [self._file.read(one) for one in names]
        self._access(names, "read", lambda: place)
        return np.stack(columns, axis=-1) if "<" in name else columns[0].copy()

    def load(self, name: str, value: npt.ArrayLike, place: Location | None = None) -> None:
        """Assign, but do not declare: OperandError where others are declared and this register is not."""
        self._access(register_names(name), "write", lambda: place or host_place(f'load("{name}", …)'))
        self._file.assign(name, value, create=False)

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """Broken ordering rules that were collected; a warp has none."""
        return ()

    def registers(self) -> dict[str, Lanes]:
        """Every register that has been written in all lanes, by name; copies, whatever is in flight."""
        return self._file.written()

    def origin(self, name: str) -> Origin | None:
        """The matrix instruction whose D a register holds, and its place in D; None if there is none."""
        origin: Origin | None = self._file.origin(name)
        return origin

    def _access(self, names: Iterable[str], kind: Literal["read", "write"], place: Place) -> None:
        """Registers are about to be read or written by anything but a wgmma; nobody minds in a warp."""

    # --- statements ---

    def run(self, text: str, file: str = "<string>") -> list[Event]:
        """Execute PTX statements; return what matrix instructions were executed, in order.

        Raises PtxError, IllegalInstruction, NotModelled, UndefinedBehavior or OperandError, pointing at
        the statement or operand; what ran before it stays done.
        """
        return [step for step in self.steps(parse(text, file).statements) if isinstance(step, Event)]

    def steps(self, statements: Iterable[Statement]) -> Generator[Event | Binding]:
        """Execute statements; yield matrix instructions that are done, and ``//!`` lines in their turn."""
        declared: set[str] = set()
        for statement in statements:
            with located(statement.location):
                if isinstance(statement, Block):
                    with self._scope():
                        yield from self.steps(statement.statements)
                elif isinstance(statement, Binding):
                    yield statement
                elif isinstance(statement, InstructionStatement):
                    yield from self._instruction(statement)
                elif isinstance(statement, RegisterDeclaration):
                    self._declare(statement, declared)
                else:
                    self._direct(statement, declared)

    def finish(self, place: Location | None = None) -> None:
        """The end of the program, where nothing may be in flight; nothing ever is in a warp."""

    def _scope(self) -> AbstractContextManager[None]:
        return self._file.scope()

    def _direct(self, statement: Statement, declared: set[str]) -> None:
        """Directives and labels mean nothing here, but for ``.version``."""
        if isinstance(statement, Directive):
            if statement.name == "version":
                self.version = parse_version(statement.text.strip())
        elif not isinstance(statement, Label):
            what = "a kernel or function" if isinstance(statement, Kernel) else "a variable in memory"
            raise NotModelled(
                f"{what} is not modelled; a {self.name} executes the statements of a kernel's body"
            )

    def _declare(self, statement: RegisterDeclaration, declared: set[str]) -> None:
        if statement.vector != 1:
            raise NotModelled(f".v{statement.vector} registers are not modelled")
        declare_once(statement.names, declared)
        self._file.declare(statement.names, statement.type)

    def _instruction(self, statement: InstructionStatement) -> Iterable[Event]:
        # The guard stands in front of the mnemonic, where the statement starts.
        with located(lambda: Statement.location(statement)):
            lanes = self._guard(statement)
        execute = self._executes.get(statement.opcode)
        if execute is None:
            raise NotModelled(f"'{statement.opcode}' is not modelled; a {self.name} executes {self.modelled}")
        return execute(statement, lanes)

    def _guard(self, statement: InstructionStatement) -> Mask:
        if statement.guard is None:
            return np.ones(self.lanes, np.bool_)
        negated, name = statement.guard
        value = self._file.read(name)
        if value.dtype != np.bool_:
            raise IllegalInstruction(f"guard {name} is not a predicate")
        _check_together(statement.opcode, self.together.get(statement.opcode, 1), name, value)
        self._access([name], "read", statement.location)
        return value ^ negated

    def _move(self, statement: InstructionStatement, lanes: Mask) -> Iterable[Event]:
        parts = moved(self._file, statement, lanes, self._addresses())
        if lanes.any():
            _, source = statement.operands or ()
            self._access(operand_names(source), "read", statement.location)
            self._access([name for name, _, _ in parts], "write", statement.location)
        for name, value, origin in parts:
            self._file.write(name, value, lanes, origin)
        return ()

    def _addresses(self) -> Mapping[str, int]:
        """The variables in memory, by name; a warp has none."""
        return {}

    # --- matrix instructions ---

    def _bind(self, statement: InstructionStatement, binder: Bind[B]) -> B:
        """The statement with its operands by role; D can be written."""
        types = self._file.types() if self._file.strict else None
        bound = bind_statement(statement, self.target, self.version, types, binder)
        index = 0
        with located(lambda: statement.operand_location(bound.places["d"], index)):
            for index, name in enumerate(bound.d):
                self._check_result(bound, name, index)
        return bound

    def _check_result(self, bound: Bound | WarpgroupBound, name: str | None, index: int) -> None:
        """A register of D can be written, and is so only once."""
        if name is None:
            return
        known, bits = self._file.writable(name), bound.instruction.register_bits
        if known is not None and type_bits(known) != bits:
            raise IllegalInstruction(_wrong_width("d", bits, name, type_bits(known)))
        if name in bound.d[:index]:
            raise UndefinedBehavior(f"{name} is written twice: PTX does not define which value stays")

    def _matrix(self, statement: InstructionStatement, lanes: Mask) -> Iterator[Event]:
        bound = self._bind(statement, bind)
        if lanes.any():
            event = self._computed(statement, bound, lanes)
            for place, operand in enumerate(statement.operands or ()):
                if place != bound.places["d"]:
                    self._access(operand_names(operand), "read", statement.location)
            self._access(filter(None, bound.d), "write", statement.location)
            self._keep(event, lanes)
            yield event

    def _keep(self, event: Event, lanes: Mask) -> None:
        """Write the D registers of an event in the lanes that executed it."""
        for index, name in enumerate(event.bound.d):
            if name is not None:
                column = np.ascontiguousarray(event.d[:, index])
                self._file.write(name, column, lanes, origin=(event, index))

    def _computed(self, statement: InstructionStatement, bound: Bound, lanes: Mask) -> Event:
        """What every warp that executes computes; nothing is written yet."""
        form, inputs = bound.instruction, self._read(statement, bound, lanes)
        warps = tuple(np.flatnonzero(lanes[::WARP]).tolist())
        d = np.zeros((self.lanes, form.registers["d"]), bits_dtype(form.register_bits))
        event = Event(statement=statement, bound=bound, inputs=inputs, d=d, warps=warps)
        for first, part, result in event.executions():
            # Only metadata can be undefined or not modelled where every register has been written.
            place = partial(statement.operand_location, bound.places.get("e", 0))
            with self._of_warp(first // WARP), located(place, (UndefinedBehavior, NotModelled)):
                result[:] = execute_inputs(form, part, self.engine)
        return event

    def _read(self, statement: InstructionStatement, bound: Bound, lanes: Mask) -> Inputs:
        """What an ``mma`` reads, in all lanes of the machine."""
        registers = {
            role: self._vector(statement, role, sources, bound, lanes)
            for role, sources in (("a", bound.a), ("b", bound.b), ("c", bound.c))
        }
        for role, name in (("e", bound.e), ("scale_a", bound.scale_a), ("scale_b", bound.scale_b)):
            if name is not None:
                registers[role] = self._single(statement, bound.places[role], role, name, lanes)
        with located(partial(statement.operand_location, bound.places.get("ids_a", 0))):
            ids = ScaleSelectors(*(self._uniform(value, lanes) for value in bound.ids))
        return Inputs(
            registers=registers,
            selector=bound.selector,
            scale_selectors=ids,
            literal=is_literal(self.undefined),
        )

    @contextmanager
    def _of_warp(self, warp: int) -> Iterator[None]:
        """A block whose errors say which warp they are about, where there are several."""
        try:
            yield
        except WarpsimError as error:
            if self.lanes > WARP:
                error.message = f"warp {warp}: {error.message}"
            raise

    def _vector(
        self,
        statement: InstructionStatement,
        role: str,
        sources: Iterable[str | Immediate],
        bound: Bound | WarpgroupBound,
        lanes: Mask,
    ) -> npt.NDArray[Any]:
        """The registers ``(lanes, n)`` of the vector of an operand."""
        bits, index, place = bound.instruction.register_bits, bound.places[role], 0
        words = np.empty((self.lanes, bound.instruction.registers[role]), bits_dtype(bits))
        with located(lambda: statement.operand_location(index, place)):
            for place, source in enumerate(sources):
                if isinstance(source, Immediate):
                    words[:, place] = constant_bits(source, bits)
                else:
                    words[:, place] = self._register(role, source, bits, lanes)
        return words

    def _single(
        self, statement: InstructionStatement, index: int, role: str, name: str, lanes: Mask
    ) -> npt.NDArray[Any]:
        """The one register ``(lanes, 1)`` of metadata or scales."""
        with located(partial(statement.operand_location, index)):
            return self._register(role, name, 32, lanes)[:, None]

    def _register(self, role: str, name: str, bits: int, lanes: Mask) -> Lanes:
        value = self._file.read(name, lanes)
        if dtype_bits(value.dtype) != bits:
            raise IllegalInstruction(_wrong_width(role, bits, name, dtype_bits(value.dtype)))
        return value

    def _uniform(self, value: str | int, lanes: Mask) -> int:
        """A byte or thread id, from a constant or a register."""
        if isinstance(value, int):
            return value
        values = self._file.read(value, lanes)[lanes]
        if (values != values[0]).any():
            raise NotModelled(f"{value} differs between lanes; scale ids are modelled where all lanes agree")
        return int(values[0])


class Warp(Machine):
    """A warp: 32 lanes with named registers, which executes ``mma``, ``mma.sp`` and ``mov``.

    ``target`` is the chip; ``engine`` and ``undefined`` are those of warpsim.execute. Raises
    IllegalInstruction for an unknown target, OperandError for an unknown engine or mode.
    """

    name = "warp"
    lanes = WARP
    modelled = "mma, mma.sp and mov"
    together: ClassVar[Mapping[str, int]] = {"mma": WARP}


def operand_names(operand: Operand) -> list[str]:
    """The names in an operand: registers, but perhaps also variables."""
    if isinstance(operand, Register | NegatedPredicate):
        return [operand.name]
    if isinstance(operand, Vector):
        return [element.name for element in operand.elements if isinstance(element, Register)]
    if isinstance(operand, Address | Displacement) and operand.base:
        return [operand.base.name]
    return []


def host_place(text: str) -> Location:
    """Where Python looks at a machine."""
    return Location("<python>", 1, 1, len(text), text)


def declare_once(names: Iterable[str], declared: set[str]) -> None:
    """Note the names that a scope declares; raises IllegalInstruction for one that it has already."""
    counts = Counter(names)
    for name in sorted(name for name in counts if counts[name] > 1 or name in declared)[:1]:
        raise IllegalInstruction(f"{name} is declared twice in this scope")
    declared.update(counts)


def _check_together(opcode: str, count: int, name: str, value: Mask) -> None:
    """Lanes that must execute an instruction together have the same guard."""
    groups = value.reshape(-1, count)
    mixed = groups.any(axis=1) & ~groups.all(axis=1)
    if mixed.any():
        several = len(groups) > 1
        between = f"lanes of warp {int(np.argmax(mixed))}" if several else "lanes"
        everyone = "all lanes of a warp" if several else "all lanes"
        raise UndefinedBehavior(
            f"guard {name} differs between {between}, but {everyone} must execute {opcode} together"
        )


def _wrong_width(role: str, bits: int, name: str, has: int) -> str:
    kind = "is a predicate" if has == 1 else f"holds {has} bits"
    return f"{role} takes registers of {bits} bits, but {name} {kind}"
