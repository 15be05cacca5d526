"""The body of a function: its statements become records of the module's code.

Two passes: what names mean, then what statements do. PTX ISA 9.1, sections 5 and 7. Knows declarations and
labels; does not know what an opcode does (see opcodes/).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol

from ...errors import IllegalInstruction, Location
from ...ptx.statements import (
    Block,
    Directive,
    InstructionStatement,
    Label,
    Program,
    RegisterDeclaration,
    Statement,
    VariableDeclaration,
)
from ..bind.functions import Function, ModuleNames
from ..bind.scope import LabelName, LabelTable, RegisterName, Scope, Variable
from ..opcodes import bind
from ..opcodes.statement_binder import StatementBinder
from ..opcodes.wide import needed, word_type
from ..run.wave import Record


class Loading(ModuleNames, Protocol):
    """The module that a body is loaded into."""

    program: Program
    scope: Scope
    code: list[Record]

    def noted(self, action: Callable[[], object]) -> None:
        """Do something; its error is a problem of the module."""

    def parameter(self, statement: VariableDeclaration, function: Function, place: int) -> Variable:
        """Return a .param variable behind ``place`` among those of a kernel, elsewhere in the frame."""

    def declare_variable(
        self, scope: Scope, statement: VariableDeclaration, function: Function | None
    ) -> None:
        """Give a variable its place in its space."""


def load_body(module: Loading, function: Function) -> None:
    """Append the records of a function to the module's code; what cannot be executed is noted there."""
    _Body(module, function).load()


class _End(InstructionStatement):
    """The return behind the last statement of a function, which is not in the text: it points at the
    function.
    """

    __slots__ = ()

    def location(self) -> Location:
        """Return the place of the word that opens the function."""
        return Statement.location(self)


class _Body:
    """The statements of one function."""

    def __init__(self, module: Loading, function: Function) -> None:
        self.module = module
        self.function = function
        self.binders: list[tuple[InstructionStatement, Scope]] = []
        self.start = len(module.code)

    def load(self) -> None:
        """Append the records of the function to the module's code."""
        scope = Scope(self.module.scope)
        self._parameters(scope)
        self._read(self.function.kernel.body or (), scope)
        end = _End(None, "ret", (), None, source=self.module.program.source, start=self.function.kernel.start)
        for number, (statement, around) in enumerate([*self.binders, (end, scope)]):
            self.module.noted(partial(self._record, statement, around, self.start + number))
            if len(self.module.code) == self.start + number:  # a problem: nothing runs, but places stay right
                self.module.code.append(Record(step=_broken, statement=statement))

    def _parameters(self, scope: Scope) -> None:
        for kind in ("results", "parameters"):
            place = 0
            for declaration in getattr(self.function.kernel, kind):
                if isinstance(declaration, RegisterDeclaration):
                    self._registers(declaration, scope)
                    continue
                variable = self.module.parameter(declaration, self.function, place)
                scope.declare(declaration.name, variable, declaration)
                getattr(self.function, kind).append(variable)
                place = variable.offset + declaration.size

    def _read(self, statements: Iterable[Statement], scope: Scope) -> None:
        """First pass: declarations, labels, and which statement stands where."""
        for statement in statements:
            if isinstance(statement, Block):
                self._read(statement.statements, Scope(scope))
            elif isinstance(statement, InstructionStatement):
                self.binders.append((statement, scope))
            elif isinstance(statement, Label):
                label = LabelName(statement.name, self.start + len(self.binders))
                self.module.noted(partial(scope.declare, label.name, label, statement))
                self._table_after = label.name
            else:
                self.module.noted(partial(self._declaration, statement, scope))

    def _declaration(self, statement: Statement, scope: Scope) -> None:
        if isinstance(statement, RegisterDeclaration):
            self._registers(statement, scope)
        elif isinstance(statement, VariableDeclaration):
            self.module.declare_variable(scope, statement, self.function)
        elif isinstance(statement, Directive) and statement.name in ("branchtargets", "calltargets"):
            names = tuple(name.strip() for name in statement.text.split(","))
            scope.names[self._table_after] = LabelTable(names)

    def _registers(self, statement: RegisterDeclaration, scope: Scope) -> None:
        types = self.function.types
        if self.module.version < needed((statement.type,)):
            message = f"registers of type .{statement.type} need PTX 8.3"
            raise IllegalInstruction(message, statement.location())
        elements = "xyzw"[: statement.vector] if statement.vector > 1 else ""
        for name in statement.names:
            for place, spelled in enumerate([f"{name}.{element}" for element in elements] or [name]):
                scope.declare(spelled, RegisterName(len(types), statement.type), statement)
                word, count = word_type(statement.type)
                types += [word] * count
                if elements:
                    scope.names[f"{name}.{'rgba'[place]}"] = scope.names[spelled]

    def _record(self, statement: InstructionStatement, scope: Scope, pc: int) -> None:
        """Second pass: one statement."""
        binder = StatementBinder(statement, scope, self.module, pc)
        self.function.named.update(name for name in statement.names if name in self.module.scope.names)
        guard = -1
        if statement.guard is not None:
            found = scope.find(statement.guard[1])
            if not isinstance(found, RegisterName) or found.type != "pred":
                raise binder.illegal(f"guard {statement.guard[1]} is not a predicate")
            guard = found.number
        bound = bind(binder)
        record = Record(
            step=bound.step,
            statement=statement,
            guard=guard,
            negated=statement.guard is not None and statement.guard[0],
            fidelity=bound.fidelity,
            note=bound.note,
            flow=binder.flow(),
            scope=scope,
            matrix=binder.matrix,
        )
        self.module.code.append(record)


def _broken(wave: object, path: object, lanes: object) -> None:
    raise AssertionError("a statement with a problem is executed")
