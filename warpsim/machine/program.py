"""A module, loaded once: PTX text becomes records that are executed without looking at the text again.

    Module   directives, variables in memory, functions, and the kernels, each an Entry
    Entry    what one launch needs: code, registers, parameters, static shared memory
    Record   one statement: its guard, and the step that it does

Everything that cannot be executed is listed, with its place, before anything runs. Knows names and
statements; does not know arguments, memories, or what an opcode does (see opcodes/). PTX ISA 9.1, sections 5,
7 and 11.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import IllegalInstruction, Location, NotModelled, PtxError, WarpsimError, located
from ..ptx.decode import parse_version
from ..ptx.operands import Register
from ..ptx.parser import parse
from ..ptx.qualifiers import check_target
from ..ptx.statements import (
    Block,
    Directive,
    InstructionStatement,
    Kernel,
    Label,
    Program,
    RegisterDeclaration,
    Statement,
    VariableDeclaration,
    instructions_of,
)
from . import initial
from .directives import Tuning, directive_problems, tuning_of
from .opcodes import bind
from .opcodes.operation import dtype_of
from .problems import NoSuchKernel, joined
from .scope import FunctionName, LabelName, LabelTable, RegisterName, Scope, Variable
from .site import NOTHING, Flow, Site
from .wave import Step
from .wide import needed, word_type

_WORD = re.compile(r"[\w$%]+")

_CODE_ALIGNMENT = 16  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One statement as it is executed: ``guard`` is the number of a predicate, -1 for none.

    ``fidelity`` and ``note`` say how exact its results are, ``flow`` which registers they come from.
    """

    step: Step
    statement: InstructionStatement
    guard: int = -1
    negated: bool = False
    fidelity: str = "exact"
    note: str = ""
    flow: Flow = NOTHING
    scope: Scope | None = None  # what the names in the statement mean, for who asks


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of a kernel: its place, name, kind ("u64", "b8" for bytes), size and alignment in bytes."""

    index: int
    name: str
    kind: str
    bytes: int
    alignment: int
    offset: int = 0


@dataclass(eq=False, kw_only=True)
class Function:
    """A kernel or device function while it is loaded: its declarations and where its code begins."""

    name: str
    kernel: Kernel
    start: int = -1
    types: list[str] = field(default_factory=list)  # of registers, by number
    local_bytes: int = 0
    shared_end: int = 0  # of the kernel's own variables in shared memory
    shared: list[Variable] = field(default_factory=list)  # those variables
    parameters: list[Variable] = field(default_factory=list)
    results: list[Variable] = field(default_factory=list)
    problems: list[WarpsimError] = field(default_factory=list)  # of its own statements
    named: set[str] = field(default_factory=set)  # functions and variables of the module that it names

    @cached_property
    def dtypes(self) -> list[np.dtype[Any]]:
        """Of the registers, by number."""
        return [dtype_of(one) for one in self.types]


@dataclass(frozen=True, eq=False, kw_only=True)
class Entry:
    """A kernel, ready to run: ``code`` is that of the whole module, and begins for it at ``start``."""

    name: str
    code: list[Record]
    start: int
    registers: int
    dtypes: list[np.dtype[Any]]
    parameters: tuple[Parameter, ...]
    parameter_bytes: int
    static_shared_bytes: int
    shared: tuple[Variable, ...]  # what has a name in shared memory
    dynamic_shared: bool
    local_bytes: int
    tuning: Tuning


class Module:
    """A PTX module: ``target``, ``version`` and, by name, its kernels and variables.

    ``problems`` are the errors of all statements that cannot be executed, in the order of the text.
    """

    def __init__(self, program: Program, target: str | None = None) -> None:
        self.program = program
        self.target = target or _directive(program, "target").split(",")[0].strip()
        self.version = parse_version(_directive(program, "version"))
        self.problems: list[WarpsimError] = []
        self._general: list[WarpsimError] = []  # problems of every kernel
        self._of_variables: dict[str, WarpsimError] = {}
        self._check_directives(target)
        self.code: list[Record] = []
        self.scope = Scope()
        self.variables: list[Variable] = []  # of global and const space
        self.functions: dict[str, Function] = {}
        self._names: list[str] = []  # of functions, by the number that stands for their address
        self.shared: list[Variable] = []  # of shared space, that no kernel declares
        self._common_shared: dict[str, int] = {}  # end of each that no kernel declares
        self._shared_end = 0  # of all
        self._dynamic_alignment = 16
        self._declare_all()
        self._check_addresses()
        self._load_all()

    def entry(self, name: str) -> Entry:
        """A kernel by name; raises NoSuchKernel, and all problems of the kernel as one error."""
        function = self._kernel(name)
        if found := self.problems_of(name):
            raise joined(found)
        return _entry(self, function)

    def parameters_of(self, name: str) -> tuple[Parameter, ...]:
        """The parameters of a kernel, whether it can run or not; raises NoSuchKernel."""
        return tuple(_described(self._kernel(name)))

    def _kernel(self, name: str) -> Function:
        if name not in self.entries:
            known = ", ".join(self.entries) or "none"
            raise NoSuchKernel(f"no kernel {name!r}; the kernels are {known}")
        return self.functions[name]

    def problems_of(self, name: str) -> list[WarpsimError]:
        """The problems of a kernel and of what it calls, in the order of the text."""
        reached, left = set[str](), [name]
        while left:
            one = left.pop()
            if one not in reached:
                reached.add(one)
                left += self.functions[one].named if one in self.functions else self._held(one)
        found = list(self._general)
        for one in reached:
            found += self.functions[one].problems if one in self.functions else ()
            found += [self._of_variables[one]] if one in self._of_variables else ()
        known = {id(one) for one in found}
        return [one for one in self.problems if id(one) in known]

    def _held(self, name: str) -> list[str]:
        """What a variable holds addresses of."""
        found = self.scope.names.get(name)
        return [one.name for one in found.addresses] if isinstance(found, Variable) else []

    @cached_property
    def entries(self) -> tuple[str, ...]:
        """The names of the kernels, in the order of the text."""
        kernels = ((name, one.kernel) for name, one in self.functions.items())
        return tuple(name for name, one in kernels if one.kind == "entry" and one.body is not None)

    @property
    def statements(self) -> int:
        """How many there are, without the return that each function ends in."""
        return len(self.code) - sum(one.start >= 0 for one in self.functions.values())

    def function_number(self, name: str) -> int:
        """The number that stands for the address of a function.

        The lowest bits are 0, as code is aligned: pointers to members of C++ keep a flag there.
        """
        if name not in self._names:
            self._names.append(name)
        return (self._names.index(name) + 1) * _CODE_ALIGNMENT

    def function_at(self, number: int) -> Function | None:
        """The function whose address a number is."""
        place, rest = divmod(number, _CODE_ALIGNMENT)
        known = not rest and 1 <= place <= len(self._names)
        return self.functions.get(self._names[place - 1]) if known else None

    def function_around(self, pc: int) -> Function:
        """The function whose code a program counter lies in."""
        started = [one for one in self.functions.values() if 0 <= one.start <= pc]
        return max(started, key=lambda one: one.start)

    # --- declarations ---

    def _check_directives(self, target: str | None) -> None:
        """The target is known, and the version of the text has its own; raises IllegalInstruction."""
        if target is not None:
            check_target(target)
            return
        with located(lambda: _directive_of(self.program, "target").location()):
            check_target(self.target)
        try:
            with located(lambda: _directive_of(self.program, "version").location()):
                check_target(self.target, self.version)
        except WarpsimError as error:
            self.problems.append(error)
            self._general.append(error)

    def _declare_all(self) -> None:
        for statement in self.program.statements:
            if isinstance(statement, VariableDeclaration):
                count = len(self.problems)
                self._noted(lambda one=statement: self.declare_variable(self.scope, one, None))
                if len(self.problems) > count:
                    self._of_variables[statement.name] = self.problems[-1]
            elif isinstance(statement, Kernel):
                self._declare_function(statement)

    def _check_addresses(self) -> None:
        """What initial values name is a function or lies in memory of the device."""
        for statement in self.program.statements:
            if isinstance(statement, VariableDeclaration) and statement.name not in self._of_variables:
                for name in self._held(statement.name):
                    found = self.scope.names.get(name)
                    if isinstance(found, FunctionName) or found in self.variables:
                        continue
                    message = (
                        f"{statement.name} starts with the address of {name}, "
                        "which is no function and no variable in .global or .const"
                    )
                    self.problems.append(IllegalInstruction(message, statement.location()))
                    self._of_variables[statement.name] = self.problems[-1]

    def _declare_function(self, kernel: Kernel) -> None:
        known = self.functions.get(kernel.name)
        if known is None or known.kernel.body is None:
            self.functions[kernel.name] = Function(name=kernel.name, kernel=kernel)
            self.scope.names[kernel.name] = FunctionName(kernel.name)

    def declare_variable(
        self, scope: Scope, statement: VariableDeclaration, function: Function | None
    ) -> None:
        """Give a variable its place in its space."""
        alignment = statement.align or max(initial.element_bytes(statement.type), 1)
        offset, dynamic = 0, False
        if statement.space == "param" and function is not None:
            scope.declare(statement.name, self.parameter(statement, function, 0, framed=True), statement)
            return
        if statement.space == "shared":
            dynamic = statement.size == 0
            offset = self._shared_place(statement, alignment, function)
        elif statement.space == "local" and function is not None:
            offset = -(-function.local_bytes // alignment) * alignment
            function.local_bytes = offset + statement.size
        variable = Variable(
            name=statement.name,
            space=statement.space,
            size=statement.size,
            alignment=alignment,
            offset=offset,
            dynamic=dynamic,
        )
        scope.declare(statement.name, variable, statement)
        _check_extent(statement)
        content, addresses = initial.initial_bytes(statement), initial.initial_addresses(statement)
        variable = replace(variable, initial=content, addresses=addresses)
        scope.names[statement.name] = variable
        if statement.space in ("global", "const"):
            self.variables.append(variable)
        elif statement.space == "shared":
            entered = function is not None and function.kernel.kind == "entry"
            (function.shared if function and entered else self.shared).append(variable)

    def parameter(
        self, statement: VariableDeclaration, function: Function, place: int, framed: bool | None = None
    ) -> Variable:
        """A .param variable: behind ``place`` among those of a kernel, elsewhere in the frame."""
        alignment = statement.align or initial.element_bytes(statement.type)
        framed = function.kernel.kind == "func" if framed is None else framed
        offset = -(-(function.local_bytes if framed else place) // alignment) * alignment
        if framed:
            function.local_bytes = offset + statement.size
        return Variable(
            name=statement.name,
            space="param",
            size=statement.size,
            alignment=alignment,
            offset=offset,
            framed=framed,
        )

    def _shared_place(self, statement: VariableDeclaration, alignment: int, function: Function | None) -> int:
        """The address of a variable in shared memory; variables of different kernels may share theirs."""
        size = statement.size
        own = function if function is not None and function.kernel.kind == "entry" else None
        start = max(own.shared_end, self._common_shared_end(own)) if own else self._shared_end
        offset = -(-start // alignment) * alignment
        self._shared_end = max(self._shared_end, offset + size)
        if not size:
            self._dynamic_alignment = max(self._dynamic_alignment, alignment)
        elif own:
            own.shared_end = offset + size
        else:
            self._common_shared[statement.name] = offset + size
        return offset

    def _common_shared_end(self, function: Function) -> int:
        """The end of those shared variables that no kernel declares and this one may use: that its text
        names, or all where it names functions of the module.
        """
        if not self._common_shared:
            return 0
        words = set[str]()
        for one in instructions_of(function.kernel.body or ()):
            words |= {*_WORD.findall(one.operand_text or "")}
        calls = any(self.functions[name].kernel.body for name in words & self.functions.keys())
        used = self._common_shared if calls else words & self._common_shared.keys()
        return max((self._common_shared[name] for name in used), default=0)

    def static_shared_bytes(self, function: Function) -> int:
        """Bytes that declarations take of a kernel's shared memory, up to where the dynamic part begins."""
        end = max(function.shared_end, self._common_shared_end(function))
        return -(-end // self._dynamic_alignment) * self._dynamic_alignment

    # --- code ---

    def _load_all(self) -> None:
        for function in list(self.functions.values()):
            if function.kernel.body is not None:
                function.start, known = len(self.code), len(self.problems)
                self.problems += directive_problems(function.kernel, self.target, self.version)
                _Body(self, function).load()
                function.problems = self.problems[known:]

    def _noted(self, action: Any) -> None:
        try:
            action()
        except WarpsimError as error:
            self.problems.append(error)


def load_module(text: str, file: str = "<string>", target: str | None = None) -> Module:
    """The module of a PTX text; raises PtxError, and IllegalInstruction where directives are missing."""
    return Module(parse(text, file), target)


def _directive(program: Program, name: str) -> str:
    return _directive_of(program, name).text.strip()


def _directive_of(program: Program, name: str) -> Directive:
    for statement in program.statements:
        if isinstance(statement, Directive) and statement.name == name:
            return statement
    raise PtxError(
        f"a module begins with .version and .target: .{name} is missing", program.source.location(0)
    )


class _End(InstructionStatement):
    """The return behind the last statement of a function, which nobody wrote: it points at the function."""

    __slots__ = ()

    def location(self) -> Location:
        """The place of the word that opens the function."""
        return Statement.location(self)


class _Body:
    """The statements of one function, in two passes: what names mean, then what statements do."""

    def __init__(self, module: Module, function: Function) -> None:
        self.module = module
        self.function = function
        self.sites: list[tuple[InstructionStatement, Scope]] = []
        self.start = len(module.code)

    def load(self) -> None:
        """Append the records of the function to the module's code."""
        scope = Scope(self.module.scope)
        self._parameters(scope)
        self._read(self.function.kernel.body or (), scope)
        end = _End(None, "ret", (), None, source=self.module.program.source, start=self.function.kernel.start)
        for number, (statement, around) in enumerate([*self.sites, (end, scope)]):
            self.module._noted(lambda: self._record(statement, around, self.start + number))  # noqa: B023
            if len(self.module.code) == self.start + number:  # a problem: nothing runs, but places stay right
                self.module.code.append(Record(step=_broken, statement=statement))

    def _parameters(self, scope: Scope) -> None:
        for kind in ("results", "parameters"):
            place = 0
            for one in getattr(self.function.kernel, kind):
                if isinstance(one, RegisterDeclaration):
                    self._registers(one, scope)
                    continue
                variable = self.module.parameter(one, self.function, place)
                scope.declare(one.name, variable, one)
                getattr(self.function, kind).append(variable)
                place = variable.offset + one.size

    def _read(self, statements: Iterable[Statement], scope: Scope) -> None:
        """First pass: declarations, labels, and which statement stands where."""
        for statement in statements:
            if isinstance(statement, Block):
                self._read(statement.statements, Scope(scope))
            elif isinstance(statement, InstructionStatement):
                self.sites.append((statement, scope))
            elif isinstance(statement, Label):
                label = LabelName(statement.name, self.start + len(self.sites))
                self.module._noted(lambda: scope.declare(label.name, label, statement))  # noqa: B023
                self._table_after = label.name
            else:
                self.module._noted(lambda: self._declaration(statement, scope))  # noqa: B023

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
        if self.module.version < needed((statement.type,))[0]:
            message = f"registers of type .{statement.type} need PTX 8.3"
            raise IllegalInstruction(message, statement.location())
        elements = "xyzw"[: statement.vector] if statement.vector > 1 else ""
        for name in statement.names:
            for place, spelled in enumerate([f"{name}.{one}" for one in elements] or [name]):
                scope.declare(spelled, RegisterName(len(types), statement.type), statement)
                word, count = word_type(statement.type)
                types += [word] * count
                if elements:
                    scope.names[f"{name}.{'rgba'[place]}"] = scope.names[spelled]

    def _record(self, statement: InstructionStatement, scope: Scope, pc: int) -> None:
        """Second pass: one statement."""
        site = Site(statement, scope, self.module, pc)
        self.function.named.update(one for one in statement.names if one in self.module.scope.names)
        guard = -1
        if statement.guard is not None:
            found = scope.find(statement.guard[1])
            if not isinstance(found, RegisterName) or found.type != "pred":
                raise site.illegal(f"guard {statement.guard[1]} is not a predicate")
            guard = found.number
        bound = bind(site)
        record = Record(
            step=bound.step,
            statement=statement,
            guard=guard,
            negated=statement.guard is not None and statement.guard[0],
            fidelity=bound.fidelity,
            note=bound.note,
            flow=site.flow(),
            scope=scope,
        )
        self.module.code.append(record)


_MOST_BYTES = {  # of a variable, by its space; what is beyond is a slip, and no reason to fill the memory
    "global": 1 << 36,  # no chip has more memory
    "const": 1 << 16,   # ptxas: "uses too much global constant data", 0x10000 bytes at most
    "local": 1 << 19,   # of a thread: CUDA C++ Programming Guide, technical specifications
    "param": 1 << 15,
}  # fmt: skip


def _check_extent(statement: VariableDeclaration) -> None:
    """Raise IllegalInstruction for a variable that is larger than its space, or at no power of two."""
    most, align = _MOST_BYTES.get(statement.space), statement.align
    if most is not None and statement.size > most:
        message = f"{statement.name} has {statement.size} bytes, but .{statement.space} has at most {most}"
        raise IllegalInstruction(message, statement.location())
    if align is not None and (align < 1 or align & (align - 1) or align > _MOST_BYTES["const"]):
        message = (
            f"{statement.name} has alignment {align}: it is a power of two, {_MOST_BYTES['const']} at most"
        )
        raise IllegalInstruction(message, statement.location())


def _broken(wave: object, front: object, lanes: object) -> None:
    raise AssertionError("a statement with a problem is executed")


def _entry(module: Module, function: Function) -> Entry:
    parameters = tuple(_described(function))
    last = parameters[-1] if parameters else None
    return Entry(
        name=function.name,
        code=module.code,
        start=function.start,
        registers=len(function.types),
        dtypes=function.dtypes,
        parameters=parameters,
        parameter_bytes=last.offset + last.bytes if last else 0,
        static_shared_bytes=module.static_shared_bytes(function),
        shared=(*module.shared, *function.shared),
        dynamic_shared=True,
        local_bytes=function.local_bytes,
        tuning=tuning_of(function.kernel),
    )


def _described(function: Function) -> Iterator[Parameter]:
    declared = [one for one in function.kernel.parameters if isinstance(one, VariableDeclaration)]
    for index, (one, variable) in enumerate(zip(declared, function.parameters, strict=True)):
        yield Parameter(
            index=index,
            name=one.name,
            kind=one.type,
            bytes=variable.size,
            alignment=variable.alignment,
            offset=variable.offset,
        )


__all__ = ["Entry", "Function", "Module", "NotModelled", "Parameter", "Record", "Register", "load_module"]
