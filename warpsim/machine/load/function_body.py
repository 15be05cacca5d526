"""The body of a function: its statements become records of the module's code.

Two passes: what names mean, then what statements do. PTX ISA 9.1, sections 5 and 7. Knows declarations and
labels; does not know what an opcode does (see opcodes/).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Protocol

from ...base.errors import IllegalInstruction, Location, WarpsimError
from ...ptx.constants import Immediate
from ...ptx.statements import (
    Block,
    Directive,
    InstructionStatement,
    Label,
    NumberedNames,
    Program,
    RegisterDeclaration,
    Statement,
    VariableDeclaration,
)
from ..bind.functions import Function, ModuleNames
from ..bind.scope import FunctionName, LabelName, LabelTable, Prototype, RegisterName, Scope, Variable
from ..opcodes import bind
from ..opcodes.statement_binder import StatementBinder
from ..opcodes.wide import needed, word_type
from ..run.wave import Execution, Record
from .directives import check_pragma
from .module_structure import LABELLED, misplaced, too_early
from .parameters import prototype_of, prototype_problems
from .statement_shapes import Shape, ShapeReader


class Loading(ModuleNames, Protocol):
    """The module that a body is loaded into."""

    program: Program
    scope: Scope
    shapes: dict[Shape, tuple[str, str]]  # of statements that can be executed: fidelity and note

    def execution(self, record: Record) -> Execution:
        """Bind the statement of a record."""

    def noted(self, action: Callable[[], object]) -> None:
        """Do something; its error is a problem of the module."""

    def parameter(self, statement: VariableDeclaration, function: Function, place: int) -> Variable:
        """Return a .param variable behind ``place`` among those of a kernel, elsewhere in the frame."""

    def declare_variable(
        self, scope: Scope, statement: VariableDeclaration, function: Function | None
    ) -> None:
        """Give a variable its place in its space."""


def load_body(module: Loading, function: Function) -> list[Record]:
    """Return the records of a function; what cannot be executed is noted in the module.

    Program counters of its labels are counted from its first statement, until it has its place.
    """
    return _Body(module, function).load()


def _check_granularity(statements: Iterable[InstructionStatement]) -> None:
    """Raise IllegalInstruction for a function whose tcgen05 uses single CTAs and pairs, as ptxas does."""
    first = ""
    for statement in statements:
        groups = statement.modifiers if statement.opcode == "tcgen05" else ()
        group = next((word for word in groups if word.startswith("cta_group::")), "")
        first = first or group
        if group and group != first:
            message = f"{statement.mnemonic}: the function uses .{first}, and all of its tcgen05 must"
            raise IllegalInstruction(message, statement.location())


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
        self._execution = module.execution  # one object for all records
        self.function = function
        self.binders: list[tuple[InstructionStatement, Scope]] = []
        self.shapes: dict[int, ShapeReader] = {}  # by the identity of their scope
        self._table_after = ""  # the label just before a table of targets
        self.tables: list[tuple[Directive, tuple[str, ...], Scope]] = []

    def load(self) -> list[Record]:
        """Return the records of the function."""
        scope = Scope(self.module.scope)
        self._parameters(scope)
        self._read_statements(self.function.kernel.body or (), scope)
        for table in self.tables:
            self.module.noted(partial(self._check_table, *table))
        self.module.noted(partial(_check_granularity, [statement for statement, _ in self.binders]))
        end = _End(None, "ret", (), None, source=self.module.program.source, start=self.function.kernel.start)
        records = list[Record]()
        for statement, around in (*self.binders, (end, scope)):
            try:
                record = self._record(statement, around)
            except WarpsimError as error:
                self.module.noted(partial(_raise, error))
                record = Record(statement=statement, bind=_unreachable)  # nothing runs, but places stay right
            else:
                self._note_increase(statement, around)
            records.append(record)
        for shapes in self.shapes.values():
            self.function.named |= shapes.named(self.module.scope.names)
        return records

    def _note_increase(self, statement: InstructionStatement, scope: Scope) -> None:
        """Keep the largest count of setmaxnreg.inc, which decides how many registers lanes begin with."""
        if statement.opcode == "setmaxnreg" and "inc" in statement.modifiers:
            (count,) = StatementBinder(statement, scope, self.module).operands
            if isinstance(count, Immediate):
                self.function.increase = max(self.function.increase, count.value)

    def _parameters(self, scope: Scope) -> None:
        for kind in ("results", "parameters"):
            place = 0
            for declaration in getattr(self.function.kernel, kind):
                if isinstance(declaration, RegisterDeclaration):
                    self._registers(declaration, scope)
                    continue
                formal = kind.removesuffix("s")
                variable = replace(self.module.parameter(declaration, self.function, place), formal=formal)
                scope.declare(declaration.name, variable, declaration)
                getattr(self.function, kind).append(variable)
                place = variable.offset + declaration.size

    def _read_statements(self, statements: Iterable[Statement], scope: Scope) -> None:
        """First pass: declarations, labels, and which statement stands where."""
        for statement in statements:
            if isinstance(statement, Block):
                self._read_statements(statement.statements, Scope(scope))
            elif isinstance(statement, InstructionStatement):
                self.binders.append((statement, scope))
            elif isinstance(statement, Label):
                label = LabelName(statement.name, len(self.binders))
                self.function.labels.append(label)
                self.module.noted(partial(scope.declare, label.name, label, statement))
                self._table_after = label.name
                continue
            else:
                self.module.noted(partial(self._declaration, statement, scope))
            self._table_after = ""

    def _declaration(self, statement: Statement, scope: Scope) -> None:
        if isinstance(statement, RegisterDeclaration):
            self._registers(statement, scope)
        elif isinstance(statement, VariableDeclaration):
            self.module.declare_variable(scope, statement, self.function)
        elif problem := misplaced(statement):
            raise problem
        elif isinstance(statement, Directive) and statement.name == "pragma":
            check_pragma(statement, self.module.version)
        elif isinstance(statement, Directive) and (early := [*too_early(statement, self.module.version)]):
            raise early[0]
        elif isinstance(statement, Directive) and statement.name in LABELLED:
            if not self._table_after:
                message = f".{statement.name} has no label before it, which would name it"
                raise IllegalInstruction(message, statement.location())
            self._take_label_list(statement, scope)

    def _take_label_list(self, statement: Directive, scope: Scope) -> None:
        """Take a list of labels or functions, or a prototype, which the label before it names."""
        if statement.name == "callprototype":
            kernel = prototype_of(statement)
            scope.names[self._table_after] = Prototype(kernel, statement.start)
            for problem in prototype_problems(statement, kernel, self.module.target, self.module.version):
                raise problem
            return
        names = tuple(name.strip() for name in statement.text.split(","))
        scope.names[self._table_after] = LabelTable(names, statement.start)
        self.tables.append((statement, names, scope))

    def _check_table(self, statement: Directive, names: Iterable[str], scope: Scope) -> None:
        """Raise IllegalInstruction for a name in a list that is not a label or a function."""
        label = statement.name == "branchtargets"
        wanted, what = (LabelName | LabelTable, "label") if label else (FunctionName, "function")
        for name in names:
            if not isinstance(scope.find(name), wanted):
                raise IllegalInstruction(f".{statement.name}: {name} is not a {what}", statement.location())

    def _registers(self, statement: RegisterDeclaration, scope: Scope) -> None:
        types = self.function.types
        if self.module.version < needed((statement.type,)):
            message = f"registers of type .{statement.type} need PTX 8.3"
            raise IllegalInstruction(message, statement.location())
        word, count = word_type(statement.type)
        names, plain = statement.names, count == statement.vector == 1
        if (
            isinstance(names, NumberedNames)
            and plain
            and scope.declare_numbered(names, len(types), statement.type)
        ):
            types += [word] * len(names)
            return
        elements = "xyzw"[: statement.vector] if statement.vector > 1 else ""
        for name in names:
            for place, spelled in enumerate([f"{name}.{element}" for element in elements] or [name]):
                scope.declare(spelled, RegisterName(len(types), statement.type), statement)
                types += [word] * count
                if elements:
                    scope.names[f"{name}.{'rgba'[place]}"] = scope.names[spelled]

    def _record(self, statement: InstructionStatement, scope: Scope) -> Record:
        """Second pass: one statement. It is bound now where it is the first of its shape."""
        guard = -1 if statement.guard is None else self._guard(statement, statement.guard[1], scope)
        shapes = self.shapes.get(id(scope)) or self.shapes.setdefault(id(scope), ShapeReader(scope))
        shape = shapes.shape(statement)
        known = None if shape is None else self.module.shapes.get(shape)
        execution, fidelity, note = (None, *known) if known else self._bind(statement, scope)
        if shape is not None and known is None:
            self.module.shapes[shape] = fidelity, note
        record = Record(
            statement=statement,
            bind=self._execution,
            guard=guard,
            negated=guard >= 0 and statement.guard[0],  # type: ignore[index]
            fidelity=fidelity,
            note=note,
            scope=scope,
        )
        return record if execution is None else record.does(execution)

    def _guard(self, statement: InstructionStatement, name: str, scope: Scope) -> int:
        """Return the number of the guard's register."""
        found = scope.find(name)
        if not isinstance(found, RegisterName) or found.type != "pred":
            binder = StatementBinder(statement, scope, self.module)
            raise binder.illegal(f"guard {name} is not a predicate")
        return found.number

    def _bind(self, statement: InstructionStatement, scope: Scope) -> tuple[Execution, str, str]:
        """Return what a statement does, and how exact it is."""
        self.function.named.update(name for name in statement.names if name in self.module.scope.names)
        if statement.opcode == "call":
            self.function.calls_by_address |= any(map(scope.register_type, statement.names))
        return execution_of(self.module, statement, scope)


def execution_of(
    module: ModuleNames, statement: InstructionStatement, scope: Scope
) -> tuple[Execution, str, str]:
    """Bind a statement: return what it does, its fidelity and note."""
    binder = StatementBinder(statement, scope, module)
    bound = bind(binder)
    found = Execution(bound.step, binder.flow(), binder.matrix, binder.semantics, binder.member)
    return found, bound.fidelity, bound.note


def _unreachable(record: Record) -> Execution:
    """Return what a statement with a problem does: observers may ask for it, and no launch executes it."""
    return Execution(_raise_unreachable)


def _raise_unreachable(*_: object) -> None:
    raise AssertionError("a statement with a problem is executed")


def _raise(error: WarpsimError) -> None:
    raise error
