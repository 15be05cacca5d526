"""Machines that execute PTX statements one by one on named registers; the warp is one of them.

Knows statements, guards and what ``mma`` reads and writes; all others are bound to rows of opcodes/ (see
step_site.py) and executed by a wave (step_wave.py). Does not know files, or what only a warpgroup has (see
warpgroup.py). An instruction that fails leaves every register as it was. What a statement says is read from
its text once, and where it stands only for an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from copy import deepcopy
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from ..environment import in_default_environment
from ..errors import (
    IllegalInstruction,
    Location,
    NotModelled,
    OperandError,
    UndefinedBehavior,
    WarpsimError,
    located,
)
from ..execution.pipeline import Undefined, execute_inputs, is_literal
from ..isa.instruction import Inputs, Instruction
from ..isa.memory import SHARED_BYTES, bytes_of
from ..isa.warps import WARP
from ..machine.bind.register_arrays import Lanes, register_names, type_bits
from ..machine.run.engines import Engine, EngineName, modes_of
from ..machine.state.lanes import Lanes as FrameLanes
from ..ptx.binding import Bound, bind
from ..ptx.decode import Bind, bind_statement, parse_version
from ..ptx.parser import parse
from ..ptx.qualifiers import check_target, default_version
from ..ptx.statements import (
    Binding,
    Block,
    Directive,
    InstructionStatement,
    Kernel,
    Label,
    RegisterDeclaration,
    Statement,
    VariableDeclaration,
)
from ..ptx.warpgroup import WarpgroupBound
from ..recording.events import Event, Origin
from .matrix_operands import MatrixOperands, Plan, plan_of, wrong_width
from .register_file import Mask, RegisterFile
from .shared_memory import SharedMemory
from .variables import SharedVariables
from .warp_products import computed

if TYPE_CHECKING:
    from ..checks.hazards import Hazard
    from .step_site import BoundStatement, StepBinder
    from .step_wave import StepWave


Execute = Callable[[InstructionStatement, Mask], "Iterable[Event]"]
Place = Callable[[], Location]


B = TypeVar("B", Bound, WarpgroupBound)


class Machine:
    """``lanes`` lanes, in warps of 32, with named registers and a shared memory.

    ``machine["%r1"]`` is a register, one unsigned value a lane; ``machine["%r<4>"]`` is ``%r0`` to ``%r3``
    as an array ``(lanes, 4)``, ready for warpsim.unpack. Assigning declares the register if need be;
    scalars go to every lane, floats give their bits. Registers of PTX text may be left undeclared as long
    as the text around declares none at all: they then have the right types.

    ``shared`` is the memory, zero at first: what Python writes into ``shared.data`` counts as visible to
    everybody. ``.shared`` declarations get addresses from 0 on.
    """

    name: ClassVar[str]
    lanes: ClassVar[int]
    together: ClassVar[Mapping[str, int]]  # opcode -> lanes in a row that must execute it together

    def __init__(
        self,
        target: str,
        shared_bytes: int = SHARED_BYTES,
        *,
        engine: EngineName | Engine = "kernel",
        undefined: Undefined = "error",
    ) -> None:
        check_target(target)
        is_literal(undefined)
        if not callable(engine) and engine not in get_args(EngineName):
            raise OperandError(f"engine {engine!r}: it is 'kernel' or 'reference', or a function")
        self.target = target
        self.engine = engine
        self._asked: Engine | None = modes_of(engine, undefined)["engine"] if callable(engine) else None
        self.undefined: Undefined = undefined
        self.version = default_version(target)
        self._file = RegisterFile(self.lanes)
        self.shared = SharedMemory(shared_bytes)
        self._variables = SharedVariables(shared_bytes)
        self._executes: dict[str, Execute] = {"mma": self._matrix}

    def __getstate__(self) -> dict[str, Any]:
        """All but the wave, which is made anew: a copy is taken between statements."""
        return {name: value for name, value in vars(self).items() if name != "_wave"}

    @property
    def engine_name(self) -> str:
        """What computes, in a word: "function" for one that was given."""
        return self.engine if isinstance(self.engine, str) else "function"

    def __copy__(self) -> Self:
        """A machine of its own: what runs on the copy changes nothing here."""
        return deepcopy(self)

    # --- registers ---

    def __getitem__(self, name: str) -> Lanes:
        """``(lanes,)``, or ``(lanes, n)`` for ``name<n>``; raises UndefinedBehavior if never written."""
        return self.read(name, host_place(f'["{name}"]'))

    @in_default_environment
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

    @in_default_environment
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

    # --- shared memory from outside ---

    def address(self, where: str | int) -> int:
        """The address of ``"tile"``, ``"tile+16"``, ``"0x400"`` or 1024. Raises OperandError."""
        return where if isinstance(where, int) else self._variables.place(where)

    def write_shared(self, where: str | int, array: npt.ArrayLike, place: Location | None = None) -> None:
        """Write the bytes of an array, little-endian and in C order, as a finished bulk copy would.

        Raises OperandError where they leave the memory.
        """
        start, content = self.address(where), bytes_of(np.asarray(array))
        view = self.shared.view(start, content.size)
        self._copied(start, content.size, lambda: place or host_place(f"write_shared({where!r}, …)"))
        view[:] = content

    def _copied(self, start: int, size: int, place: Place) -> None:
        """Bytes of shared memory are about to be written from outside; nobody minds in a warp."""

    def _observers(self) -> tuple[Any, ...]:
        """Who is told what statements do, as observers of a wave are; nobody minds in a warp."""
        return ()

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
            try:
                if isinstance(statement, InstructionStatement):
                    yield from self._instruction(statement)
                elif isinstance(statement, Block):
                    with self._scope():
                        yield from self.steps(statement.statements)
                elif isinstance(statement, Binding):
                    yield statement
                elif isinstance(statement, RegisterDeclaration):
                    self._declare(statement, declared)
                else:
                    self._direct(statement, declared)
            except WarpsimError as error:
                if error.location is None:
                    error.at(statement.location())
                raise

    def finish(self, place: Location | None = None) -> None:
        """The end of the program, where nothing may be in flight; nothing ever is in a warp."""

    def _scope(self) -> AbstractContextManager[None]:
        return _both(self._file.scope(), self._variables.scope())

    def _direct(self, statement: Statement, declared: set[str]) -> None:
        """Variables get their addresses; directives and labels mean nothing here, but for ``.version``."""
        if isinstance(statement, VariableDeclaration):
            declare_once([statement.name], declared)
            self._variables.declare(statement)
        elif isinstance(statement, Directive):
            if statement.name == "version":
                self.version = parse_version(statement.text.strip())
        elif not isinstance(statement, Label):
            assert isinstance(statement, Kernel)
            what = f"a {self.name} executes the statements of a kernel's body"
            raise NotModelled(f"a kernel or function is not modelled; {what}")

    def _declare(self, statement: RegisterDeclaration, declared: set[str]) -> None:
        if statement.vector != 1:
            raise NotModelled(f".v{statement.vector} registers are not modelled")
        declare_once(statement.names, declared)
        self._file.declare(statement.names, statement.type)

    def _instruction(self, statement: InstructionStatement) -> Iterable[Event]:
        lanes = self._file.everyone if statement.guard is None else self._guard(statement, *statement.guard)
        execute = self._executes.get(statement.opcode)
        return self._stepped(statement, lanes) if execute is None else execute(statement, lanes)

    def _guard(self, statement: InstructionStatement, negated: bool, name: str) -> Mask:
        """The lanes that execute the statement."""
        # The guard stands in front of the mnemonic, where the statement starts.
        with located(lambda: Statement.location(statement)):
            value = self._file.read(name)
            if value.dtype != np.bool_:
                raise IllegalInstruction(f"guard {name} is not a predicate")
            together = self.together.get(statement.opcode, 1)
            if together > 1 and statement.modifiers[:1] != ("warp",):
                _check_together(statement.opcode, together, name, value)
            self._access([name], "read", statement.location)
        return value ^ negated

    def _some(self, lanes: Mask) -> bool:
        """Whether any lane executes."""
        return lanes is self._file.everyone or bool(lanes.any())

    @cached_property
    def _wave(self) -> StepWave:
        """What executes everything but matrix instructions; a trace may have nothing else."""
        from .step_wave import StepWave

        return StepWave(self._file, self.shared, self._observers(), is_literal(self.undefined))

    def _stepped(self, statement: InstructionStatement, lanes: Mask) -> Iterable[Event]:
        """Whatever is no matrix instruction, as the tables of opcodes have it."""
        bound, created = self._bound_step(statement)
        done = False
        try:
            if self._some(lanes):
                if bound.reads:
                    self._access(bound.reads, "read", statement.location)
                if bound.writes:
                    self._access(bound.writes, "write", statement.location)
                whole = lanes is self._file.everyone
                self._wave.execute(bound, self._file.whole if whole else FrameLanes(lanes))
                done = True
        finally:
            if created and not done:
                self._file.forget(created)
        return ()

    def _bound_step(self, statement: InstructionStatement) -> tuple[BoundStatement, tuple[str, ...]]:
        """What a statement does with the registers that its names stand for, and those that it creates.

        It is read once for the same registers and variables, unless it creates some.
        """
        file, names = self._file, statement.names
        meanings = file.meanings(names)
        places: tuple[int | None, ...] = ()
        if None in meanings:
            addresses = self._variables.addresses()
            places = tuple(map(addresses.get, names))
            known = zip(names, meanings, places, strict=True)
            if any(one is None and at is None and not file.is_special(name) for name, one, at in known):
                binder = self._binder(statement)
                return binder.bound(self.name), tuple(binder.created)
        key = self.target, self.version, file.strict, meanings, places
        return statement.remembered(key, lambda: self._binder(statement).bound(self.name)), ()

    def _binder(self, statement: InstructionStatement) -> StepBinder:
        from .step_site import StepBinder, StepModule, StepScope

        scope = StepScope(self._file, self._variables.addresses())
        return StepBinder(statement, scope, StepModule(self.target, self.version))

    # --- matrix instructions ---

    def _bind(self, statement: InstructionStatement, binder: Bind[B]) -> Plan[B]:
        """The statement with its operands by role, checked once for the types of its registers."""
        file = self._file
        key = self.target, self.version, file.strict, file.kinds(statement.names)
        return statement.remembered(key, lambda: self._bound(statement, binder))

    def _bound(self, statement: InstructionStatement, binder: Bind[B]) -> Plan[B]:
        """The statement with its operands by role; D can be written."""
        types = self._file.types() if self._file.strict else None
        bound = bind_statement(statement, self.target, self.version, types, binder)
        index = 0
        with located(lambda: statement.operand_location(bound.places["d"], index)):
            for index, name in enumerate(bound.d):
                self._check_result(bound, name, index)
        return plan_of(statement, bound)

    def _check_result(self, bound: Bound | WarpgroupBound, name: str | None, index: int) -> None:
        """A register of D can be written, and is so only once."""
        if name is None:
            return
        known, bits = self._file.writable(name), bound.instruction.register_bits
        if known is not None and type_bits(known) != bits:
            raise IllegalInstruction(wrong_width("d", bits, name, type_bits(known)))
        if name in bound.d[:index]:
            raise UndefinedBehavior(f"{name} is written twice: PTX does not define which value stays")

    def _matrix(self, statement: InstructionStatement, lanes: Mask) -> Iterator[Event]:
        plan = self._bind(statement, bind)
        bound = plan.bound
        if self._some(lanes):
            inputs = self._operands(statement, bound.instruction, lanes).inputs(
                bound, is_literal(self.undefined)
            )
            warps = self._warps(lanes)
            event = computed(self._multiply, statement, bound, inputs, warps=warps, lanes=self.lanes)
            for names in plan.reads:
                self._access(names, "read", statement.location)
            self._access(plan.writes, "write", statement.location)
            self._keep(event, lanes)
            yield event

    def _keep(self, event: Event, lanes: Mask) -> None:
        """Write the D registers of an event in the lanes that executed it."""
        columns = np.ascontiguousarray(event.d.T)
        if columns.base is not None:  # of one register, a view: the event is its user's, who may write to it
            columns = columns.copy()
        if lanes is self._file.everyone or lanes.all():
            self._file.write_results(event.bound.d, list(columns), event)
            return
        for name, column in zip(event.bound.d, columns, strict=True):
            if name is not None:
                self._file.write(name, column, lanes)

    def _warps(self, lanes: Mask) -> tuple[int, ...]:
        """The warps that execute; all lanes of each do, or none."""
        if lanes is self._file.everyone:
            return tuple(range(self.lanes // WARP))
        return tuple(np.flatnonzero(lanes[::WARP]).tolist())

    def _multiply(self, form: Instruction, inputs: Inputs) -> npt.NDArray[Any]:
        """D of the engine; an array of its own."""
        if self._asked is not None:
            return self._asked(form, inputs)
        return execute_inputs(form, inputs, self.engine)  # type: ignore[arg-type]

    def _operands(self, statement: InstructionStatement, form: Instruction, lanes: Mask) -> MatrixOperands:
        return MatrixOperands(self._file, statement, form.register_bits, lanes)


class Warp(Machine):
    """A warp: 32 lanes with named registers, and a shared memory of ``shared_bytes``.

    Executes every opcode that a launched kernel does but for branches, calls and global memory. It is a CTA
    whose lanes run in step: a barrier that PTX asks for between them is not missed. ``target`` is the chip;
    ``engine`` and ``undefined`` are those of warpsim.execute, and the engine may be a function that takes an
    instruction and its Inputs and returns D. Raises IllegalInstruction for an unknown target, OperandError
    for an unknown engine or mode, and for a size that no CTA has.
    """

    name = "warp"
    lanes = WARP
    together: ClassVar[Mapping[str, int]] = dict.fromkeys(("mma", "ldmatrix", "stmatrix"), WARP)


def host_place(text: str) -> Location:
    """Where Python looks at a machine."""
    return Location("<python>", 1, 1, len(text), text)


def declare_once(names: Iterable[str], declared: set[str]) -> None:
    """Note the names that a scope declares; raises IllegalInstruction for one that it has already."""
    counts = Counter(names)
    for name in sorted(name for name in counts if counts[name] > 1 or name in declared)[:1]:
        raise IllegalInstruction(f"{name} is declared twice in this scope")
    declared.update(counts)


@contextmanager
def _both(*contexts: AbstractContextManager[None]) -> Iterator[None]:
    with ExitStack() as stack:
        for context in contexts:
            stack.enter_context(context)
        yield


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
