"""Warp and Warpgroup: launches of one CTA whose PTX text comes piece by piece, on named registers.

Statements are bound to rows of machine/opcodes as those of kernels are (interactive_binder.py), and executed
by a wave of one CTA (interactive_wave.py). Knows the statements of a kernel's body, guards, and what Python
reads and writes between them; does not know trace files, or what an opcode does. An instruction that fails
leaves every register as it was. A statement is read from its text once; its place is computed only for an
error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from ...base.environment import in_default_environment
from ...base.errors import (
    IllegalInstruction,
    Location,
    NotModelled,
    OperandError,
    UndefinedBehavior,
    WarpsimError,
    located,
)
from ...isa.memory import SHARED_BYTES, bytes_of
from ...isa.warps import WARP, WARPGROUP
from ...machine.bind.register_arrays import register_names
from ...machine.run.engines import Engine, EngineName
from ...machine.state.lanes import Lanes, Mask, Values
from ...observe.recording.matrix_events import Event, Origin
from ...ptx.decode import parse_version
from ...ptx.parser import parse
from ...ptx.qualifiers import check_target, default_version
from ...ptx.statements import (
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
from ...sums.execution.pipeline import Undefined, is_literal
from .register_file import RegisterFile
from .shared_memory import SharedMemory, SharedVariables

if TYPE_CHECKING:
    from ...observe.checks.wgmma.hazard import Hazard, Mode
    from .interactive_binder import BoundStatement, InteractiveBinder
    from .interactive_wave import InteractiveWave
    from .warpgroup_hazards import WarpgroupHazards

Place = Callable[[], Location]


class Machine:
    """``lanes`` lanes, in warps of 32, with named registers and a shared memory.

    ``machine["%r1"]`` is a register, one unsigned value a lane; ``machine["%r<4>"]`` is ``%r0`` to ``%r3``
    as an array ``(lanes, 4)``, ready for warpsim.unpack. Assigning declares the register if need be;
    scalars go to every lane, floats give their bits. Registers of PTX text may be left undeclared as long
    as the text around declares none at all: they then have the right types.

    ``shared`` is the memory, zero at first: what Python writes into ``shared.data`` counts as visible to
    all threads. ``.shared`` declarations get addresses from 0 on.
    """

    name: ClassVar[str]
    lanes: ClassVar[int]

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
            raise OperandError(f"engine {engine!r}: expected 'kernel' or 'reference', or a function")
        self.target = target
        self.engine = engine
        self.undefined: Undefined = undefined
        self.version = default_version(target)
        self._file = RegisterFile(self.lanes)
        self.shared = SharedMemory(shared_bytes)
        self._variables = SharedVariables(shared_bytes)
        self._order: WarpgroupHazards | None = None  # the checks of ordering rules

    def __repr__(self) -> str:
        return f"<{self.name} of {self.target}>"

    def __getstate__(self) -> dict[str, Any]:
        """Return all attributes but the wave, which is made anew: a copy is taken between statements."""
        return {name: value for name, value in vars(self).items() if name != "_wave"}

    @property
    def engine_name(self) -> str:
        """The engine in a word: "function" for a function of the user."""
        return self.engine if isinstance(self.engine, str) else "function"

    def __copy__(self) -> Self:
        """Return an independent machine: what runs on the copy changes nothing here."""
        return deepcopy(self)

    # --- registers ---

    def __getitem__(self, name: str) -> Values:
        """Return ``(lanes,)``, or ``(lanes, n)`` for ``name<n>``; raise UndefinedBehavior if unwritten."""
        return self.read(name, host_place(f'["{name}"]'))

    @in_default_environment
    def __setitem__(self, name: str, value: npt.ArrayLike) -> None:
        self._access(register_names(name), "write", lambda: host_place(f'["{name}"] = …'))
        self._file.assign(name, value)

    def __contains__(self, name: str) -> bool:
        return self._file.holds(name)

    def read(self, name: str, place: Location) -> Values:
        """Return ``machine[name]`` on behalf of a line of a trace, at that place."""
        names = register_names(name)
        columns = [self._value(register) for register in names]
        self._access(names, "read", lambda: place)
        return np.stack(columns, axis=-1) if "<" in name else columns[0].copy()

    def _value(self, name: str) -> Values:
        """Return a register, special registers included, in all lanes."""
        return self._wave.special_register(name) if self._file.is_special(name) else self._file.read(name)

    @in_default_environment
    def load(self, name: str, value: npt.ArrayLike, place: Location | None = None) -> None:
        """Assign without declaring: OperandError where others are declared and this register is not."""
        self._access(register_names(name), "write", lambda: place or host_place(f'load("{name}", …)'))
        self._file.assign(name, value, create=False)

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """The broken ordering rules that were collected; a warp has none."""
        return () if self._order is None else self._order.hazards

    def registers(self) -> dict[str, Values]:
        """Return copies of all registers that have been written in all lanes, by name."""
        return self._file.written()

    def origin(self, name: str) -> Origin | None:
        """Return the matrix instruction whose D a register holds, and its place in D; None for others."""
        origin: Origin | None = self._file.origin(name)
        return origin

    def _access(self, names: Iterable[str], kind: Literal["read", "write"], place: Place) -> None:
        """Check an access to registers, before it happens, by anything but a wgmma."""
        if self._order is not None:
            self._order.access(names, kind, place)

    # --- shared memory from outside ---

    def address(self, where: str | int) -> int:
        """Return the address of ``"tile"``, ``"tile+16"``, ``"0x400"`` or 1024. Raises OperandError."""
        return where if isinstance(where, int) else self._variables.place(where)

    def write_shared(self, where: str | int, array: npt.ArrayLike, place: Location | None = None) -> None:
        """Write the bytes of an array, little-endian and in C order, as a finished bulk copy would.

        Raises OperandError where they leave the memory.
        """
        start, content = self.address(where), bytes_of(np.asarray(array))
        view = self.shared.view(start, content.size)
        if self._order is not None:
            at = place or host_place(f"write_shared({where!r}, …)")
            self._order.copied(self._wave, start, content.size, lambda: at)
        view[:] = content

    # --- statements ---

    def run(self, text: str, file: str = "<string>") -> list[Event]:
        """Execute PTX statements; return the matrix instructions that were executed, in order.

        Raises PtxError, IllegalInstruction, NotModelled, UndefinedBehavior, Fault or OperandError, pointing
        at the statement or operand; what ran before it stays done.
        """
        return [step for step in self.steps(parse(text, file).statements) if isinstance(step, Event)]

    def steps(self, statements: Iterable[Statement]) -> Generator[Event | Binding]:
        """Execute statements; yield completed matrix instructions, and ``//!`` lines in their turn."""
        declared: set[str] = set()
        for statement in statements:
            try:
                if isinstance(statement, InstructionStatement):
                    yield from self._execute(statement)
                elif isinstance(statement, Block):
                    with self._scope():
                        yield from self.steps(statement.statements)
                elif isinstance(statement, Binding):
                    yield statement
                else:
                    self._declare(statement, declared)
            except WarpsimError as error:
                if error.location is None:
                    error.at(statement.location())
                raise

    def finish(self, place: Location | None = None) -> None:
        """End the program: what is still in flight is reported."""
        if self._order is not None:
            self._order.finish(place or host_place("finish()"))

    @contextmanager
    def _scope(self) -> Iterator[None]:
        with self._file.scope(), self._variables.scope():
            yield

    def _declare(self, statement: Statement, declared: set[str]) -> None:
        """Declare registers and variables; directives and labels mean nothing here but for ``.version``."""
        if isinstance(statement, RegisterDeclaration):
            if statement.vector != 1:
                raise NotModelled(f".v{statement.vector} registers are not modelled")
            declare_once(statement.names, declared)
            self._file.declare(statement.names, statement.type)
        elif isinstance(statement, VariableDeclaration):
            declare_once([statement.name], declared)
            self._variables.declare(statement)
        elif isinstance(statement, Directive):
            if statement.name == "version":
                self.version = parse_version(statement.text.strip())
        elif not isinstance(statement, Label):
            assert isinstance(statement, Kernel)
            what = f"a {self.name} executes the statements of a kernel's body"
            raise NotModelled(f"a kernel or function is not modelled; {what}")

    def _execute(self, statement: InstructionStatement) -> list[Event]:
        """Bind and execute one instruction in the lanes of its guard; return its events."""
        file, wave = self._file, self._wave
        lanes = file.whole if statement.guard is None else self._guarded(statement, *statement.guard)
        bound, created = self._bound(statement)
        done = False
        try:
            if lanes.count:
                if self._order is not None:
                    self._order.access(bound.reads, "read", statement.location)
                    self._order.access(bound.writes, "write", statement.location)
                wave.execute(bound, lanes)
                done = True
        finally:
            if created and not done:
                file.forget(created)
        return wave.products.taken()

    def _guarded(self, statement: InstructionStatement, negated: bool, name: str) -> Lanes:
        """Return the lanes that execute the statement."""
        # The guard stands in path of the mnemonic, where the statement starts.
        with located(lambda: Statement.location(statement)):
            value = self._value(name)
            if value.dtype != np.bool_:
                raise IllegalInstruction(f"guard {name} is not a predicate")
            _check_together(statement, name, value)
            self._access([name], "read", statement.location)
        lanes = Lanes(value ^ negated)
        return self._file.whole if lanes.whole else lanes

    @cached_property
    def _wave(self) -> InteractiveWave:
        """The wave that executes the statements."""
        from .interactive_wave import InteractiveWave

        observers = () if self._order is None else self._order.observers
        return InteractiveWave(self._file, self.shared, observers, self.engine, self.undefined)

    def _bound(self, statement: InstructionStatement) -> tuple[BoundStatement, tuple[str, ...]]:
        """Return the bound statement for the registers that its names stand for, and those it creates.

        It is bound once for the same registers and variables, unless it creates some.
        """
        file, names = self._file, statement.names
        meanings = file.meanings(names)
        places: tuple[int | None, ...] = ()
        if not all(meanings):
            addresses = self._variables.addresses()
            places = tuple(map(addresses.get, names))
            known = zip(names, meanings, places, strict=True)
            if any(width is None and at is None and not file.is_special(name) for name, width, at in known):
                binder = self._binder(statement)
                return binder.bound(self.name), tuple(binder.created)
        key = self.target, self.version, file.strict, meanings, places
        return statement.remembered(key, lambda: self._binder(statement).bound(self.name)), ()

    def _binder(self, statement: InstructionStatement) -> InteractiveBinder:
        from .interactive_binder import InteractiveBinder, InteractiveScope, TextModule

        scope = InteractiveScope(self._file, self._variables.addresses())
        return InteractiveBinder(statement, scope, TextModule(self.target, self.version))


class Warp(Machine):
    """A warp: 32 lanes with named registers, and a shared memory of ``shared_bytes``.

    Executes every opcode that a launched kernel does but for branches, calls and what needs global memory. It
    is a CTA of one warp whose lanes run in step, so a missing barrier between lanes is not detected.
    ``target`` is the chip; ``engine`` and ``undefined`` are those of warpsim.execute, and the engine may be a
    function that takes an instruction and its Inputs and returns D. Raises IllegalInstruction for an unknown
    target, OperandError for an unknown engine or mode, and for a size that no CTA has.
    """

    name = "warp"
    lanes = WARP


class Warpgroup(Machine):
    """Four warps of 32 lanes with named registers, and a shared memory of ``shared_bytes``.

    Executes ``wgmma``, and what a Warp does: ``mma``, ``ldmatrix`` and their like in each warp by itself. D
    of a wgmma is written where it is issued; the checks report an access to it before the wait.

    ``engine`` and ``undefined`` are those of warpsim.execute. ``hazards`` says what becomes of broken
    ordering rules: "error" raises HazardError, an UndefinedBehavior, "warn" collects them in ``hazards``,
    "off" checks nothing; descriptors that differ between warps are then those of lane 0. Raises as Warp
    does, and OperandError for a size that no CTA has.
    """

    name = "warpgroup"
    lanes = WARPGROUP

    def __init__(
        self,
        target: str = "sm_90a",
        shared_bytes: int = SHARED_BYTES,
        *,
        engine: EngineName | Engine = "kernel",
        undefined: Undefined = "error",
        hazards: Mode = "error",
    ) -> None:
        from .warpgroup_hazards import WarpgroupHazards  # late: a warp does not need the checks

        super().__init__(target, shared_bytes, engine=engine, undefined=undefined)
        self._order = None if hazards == "off" else WarpgroupHazards(hazards, self._file)


def host_place(text: str) -> Location:
    """Return the location of an expression of Python that looks at a machine."""
    return Location("<python>", 1, 1, len(text), text)


def declare_once(names: Iterable[str], declared: set[str]) -> None:
    """Note the names that a scope declares; raise IllegalInstruction for a name that it has already."""
    counts = Counter(names)
    for name in sorted(name for name in counts if counts[name] > 1 or name in declared)[:1]:
        raise IllegalInstruction(f"{name} is declared twice in this scope")
    declared.update(counts)


def _check_together(statement: InstructionStatement, name: str, value: Mask) -> None:
    """Check that lanes that must execute an instruction together have the same guard."""
    from ...machine.opcodes import lanes_together

    groups = value.reshape(-1, min(lanes_together(statement), value.size))
    mixed = groups.any(axis=1) & ~groups.all(axis=1)
    if mixed.any():
        several = len(groups) > 1
        between = f"lanes of warp {int(np.argmax(mixed))}" if several else "lanes"
        everyone = "all lanes of a warp" if several else "all lanes"
        raise UndefinedBehavior(
            f"guard {name} differs between {between}, but {everyone} must execute {statement.opcode} together"
        )
