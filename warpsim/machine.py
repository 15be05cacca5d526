"""A warp that executes PTX statements one by one on named registers.

Knows statements, guards and what matrix instructions read and write; does not know files. An
instruction that fails leaves every register as it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from .errors import IllegalInstruction, NotModelled, OperandError, UndefinedBehavior, located
from .families import FAMILIES
from .instruction import Inputs, Instruction, ScaleSelectors
from .moves import constant_bits, move
from .pipeline import Engine, Undefined, execute_inputs, is_literal
from .ptx.binding import Bound
from .ptx.constants import Immediate
from .ptx.decode import bind_statement, parse_version
from .ptx.parser import parse
from .ptx.qualifiers import PTX_VERSION, check_target
from .ptx.statements import (
    Binding,
    Block,
    Directive,
    InstructionStatement,
    Kernel,
    Label,
    RegisterDeclaration,
    Statement,
)
from .register_file import Lanes, Mask, RegisterFile, bits_dtype, dtype_bits, register_names, type_bits

LANES = 32
_OPCODES = frozenset(family.opcode for family in FAMILIES if family.lanes == LANES)


@dataclass(frozen=True, kw_only=True, eq=False)
class Event:
    """One executed matrix instruction: where it stands, its operands, and the D registers it computed."""

    statement: InstructionStatement
    bound: Bound
    d: npt.NDArray[Any]  # (32, registers), sinks included

    @property
    def instruction(self) -> Instruction:
        """The instruction on the warp's target."""
        return self.bound.instruction


Origin = tuple[Event, int]  # of a register that a matrix instruction wrote: which one, and its place in D


class Warp:
    """32 lanes with named registers.

    ``warp["%r1"]`` is a register, one unsigned value a lane; ``warp["%r<4>"]`` is ``%r0`` to ``%r3`` as
    an array ``(32, 4)``, ready for warpsim.unpack. Assigning declares the register if need be; scalars
    go to every lane, floats give their bits. Registers of PTX text may be left undeclared as long as the
    text around declares none at all: they then have the right types.

    ``target`` is the chip; ``engine`` and ``undefined`` are those of warpsim.execute. Raises
    IllegalInstruction for an unknown target, OperandError for an unknown engine or mode.
    """

    def __init__(self, target: str, *, engine: Engine = "kernel", undefined: Undefined = "error") -> None:
        check_target(target)
        is_literal(undefined)
        if engine not in get_args(Engine):
            raise OperandError(f"engine {engine!r}: it is 'kernel' or 'reference'")
        self.target = target
        self.engine: Engine = engine
        self.undefined: Undefined = undefined
        self.version = PTX_VERSION
        self._file = RegisterFile(LANES)

    # --- registers ---

    def __getitem__(self, name: str) -> Lanes:
        """A register ``(32,)``, or ``(32, n)`` for ``name<n>``; raises UndefinedBehavior if never written."""
        columns = [self._file.read(one) for one in register_names(name)]
        return np.stack(columns, axis=-1) if "<" in name else columns[0].copy()

    def __setitem__(self, name: str, value: npt.ArrayLike) -> None:
        self._file.assign(name, value)

    def __contains__(self, name: str) -> bool:
        return self._file.holds(name)

    def load(self, name: str, value: npt.ArrayLike) -> None:
        """Assign, but do not declare: OperandError where others are declared and this register is not."""
        self._file.assign(name, value, create=False)

    def registers(self) -> dict[str, Lanes]:
        """Every register that has been written in all lanes, by name; copies."""
        return self._file.written()

    def origin(self, name: str) -> Origin | None:
        """The matrix instruction whose D a register holds, and its place in D; None if there is none."""
        origin: Origin | None = self._file.origin(name)
        return origin

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
                    with self._file.scope():
                        yield from self.steps(statement.statements)
                elif isinstance(statement, Binding):
                    yield statement
                elif isinstance(statement, InstructionStatement):
                    yield from self._instruction(statement)
                elif isinstance(statement, RegisterDeclaration):
                    self._declare(statement, declared)
                else:
                    self._direct(statement)

    def _direct(self, statement: Statement) -> None:
        """Directives and labels mean nothing here, but for ``.version``."""
        if isinstance(statement, Directive):
            if statement.name == "version":
                self.version = parse_version(statement.text.strip())
        elif not isinstance(statement, Label):
            what = "a kernel or function" if isinstance(statement, Kernel) else "a variable in memory"
            raise NotModelled(f"{what} is not modelled; a warp executes the statements of a kernel's body")

    def _declare(self, statement: RegisterDeclaration, declared: set[str]) -> None:
        if statement.vector != 1:
            raise NotModelled(f".v{statement.vector} registers are not modelled")
        counts = Counter(statement.names)
        for name in sorted(name for name in counts if counts[name] > 1 or name in declared)[:1]:
            raise IllegalInstruction(f"{name} is declared twice in this scope")
        declared.update(counts)
        self._file.declare(statement.names, statement.type)

    def _instruction(self, statement: InstructionStatement) -> Iterator[Event]:
        # The guard stands in front of the mnemonic, where the statement starts.
        with located(lambda: Statement.location(statement)):
            lanes = self._guard(statement)
        if statement.opcode in _OPCODES:
            yield from self._matrix(statement, lanes)
        elif statement.opcode == "mov":
            move(self._file, statement, lanes)
        else:
            raise NotModelled(f"'{statement.opcode}' is not modelled; a warp executes mma, mma.sp and mov")

    def _guard(self, statement: InstructionStatement) -> Mask:
        if statement.guard is None:
            return np.ones(LANES, np.bool_)
        negated, name = statement.guard
        value = self._file.read(name)
        if value.dtype != np.bool_:
            raise IllegalInstruction(f"guard {name} is not a predicate")
        if statement.opcode in _OPCODES and value.any() and not value.all():
            raise UndefinedBehavior(
                f"guard {name} differs between lanes, but all lanes must execute {statement.opcode} together"
            )
        return value ^ negated

    # --- matrix instructions ---

    def _matrix(self, statement: InstructionStatement, lanes: Mask) -> Iterator[Event]:
        types = self._file.types() if self._file.strict else None
        bound = bind_statement(statement, self.target, self.version, types)
        assert isinstance(bound, Bound)
        for index, name in enumerate(bound.d):
            with located(partial(statement.operand_location, 0, index)):
                self._check_result(bound, name, index)
        if lanes.all():
            event = Event(statement=statement, bound=bound, d=self._computed(statement, bound))
            for index, name in enumerate(bound.d):
                if name is not None:
                    column = np.ascontiguousarray(event.d[:, index])
                    self._file.write(name, column, origin=(event, index))
            yield event

    def _check_result(self, bound: Bound, name: str | None, index: int) -> None:
        """A register of D can be written, and is so only once."""
        if name is None:
            return
        known, bits = self._file.writable(name), bound.instruction.register_bits
        if known is not None and type_bits(known) != bits:
            raise IllegalInstruction(_wrong_width("d", bits, name, type_bits(known)))
        if name in bound.d[:index]:
            raise UndefinedBehavior(f"{name} is written twice: PTX does not define which value stays")

    def _computed(self, statement: InstructionStatement, bound: Bound) -> npt.NDArray[Any]:
        """The D registers ``(32, n)``; nothing is written yet."""
        form, scales = bound.instruction, 6 if bound.instruction.sparse else 4
        registers = {role: self._vector(statement, bound, role) for role in "abc"}
        for role, name, index in (
            ("e", bound.e, 4),
            ("scale_a", bound.scale_a, scales),
            ("scale_b", bound.scale_b, scales + 2),
        ):
            if name is not None:
                with located(partial(statement.operand_location, index)):
                    registers[role] = self._register(role, name, 32)[:, None]
        with located(partial(statement.operand_location, scales + 1)) if bound.ids else nullcontext():
            ids = ScaleSelectors(*map(self._uniform, bound.ids))
        inputs = Inputs(
            registers=registers,
            selector=bound.selector,
            scale_selectors=ids,
            literal=is_literal(self.undefined),
        )
        # Only metadata can be undefined or not modelled where every register has been written.
        with located(partial(statement.operand_location, 4), (UndefinedBehavior, NotModelled)):
            return execute_inputs(form, inputs, self.engine)

    def _vector(self, statement: InstructionStatement, bound: Bound, role: str) -> npt.NDArray[Any]:
        """The registers ``(32, n)`` of operand a, b or c."""
        bits, columns = bound.instruction.register_bits, list[Lanes]()
        for place, source in enumerate(getattr(bound, role)):
            with located(partial(statement.operand_location, 1 + "abc".index(role), place)):
                if isinstance(source, Immediate):
                    columns.append(np.full(LANES, constant_bits(source, bits), bits_dtype(bits)))
                else:
                    columns.append(self._register(role, source, bits))
        return np.stack(columns, axis=-1)

    def _register(self, role: str, name: str, bits: int) -> Lanes:
        value = self._file.read(name)
        if dtype_bits(value.dtype) != bits:
            raise IllegalInstruction(_wrong_width(role, bits, name, dtype_bits(value.dtype)))
        return value

    def _uniform(self, value: str | int) -> int:
        """A byte or thread id, from a constant or a register."""
        if isinstance(value, int):
            return value
        lanes = self._file.read(value)
        if (lanes != lanes[0]).any():
            raise NotModelled(f"{value} differs between lanes; scale ids are modelled where all lanes agree")
        return int(lanes[0])


def _wrong_width(role: str, bits: int, name: str, has: int) -> str:
    kind = "is a predicate" if has == 1 else f"holds {has} bits"
    return f"{role} takes registers of {bits} bits, but {name} {kind}"
