"""A module, loaded once: PTX text becomes records that are executed without looking at the text again.

Directives, variables in memory, functions, and the kernels, each an Entry. Everything that cannot be
executed is listed, with its place, before anything runs. Knows names and statements; does not know
arguments, memories, or what an opcode does (see opcodes/). PTX ISA 9.1, sections 5, 7 and 11.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property, partial

from ...base.errors import IllegalInstruction, PtxError, WarpsimError, located
from ...isa.architectures import ARCHITECTURES
from ...ptx.decode import parse_version
from ...ptx.parser import garbage_collection_paused, parse
from ...ptx.qualifiers import check_target
from ...ptx.source_lines import Reader, unread
from ...ptx.statements import Directive, Kernel, Program, RegisterDeclaration, VariableDeclaration
from ...ptx.symbols import matching, shown
from ..bind.functions import Function
from ..bind.scope import FunctionName, InitialAddress, Scope, Variable
from ..opcodes.control.setmaxnreg import registers_at_entry
from ..run.wave import Entry, Execution, Parameter, Record
from . import initial
from .directives import directive_problems, tuning_of
from .function_body import execution_of, load_body
from .module_structure import structure_problems, too_early, unknown_version
from .parameters import parameter_problems
from .problems import NoSuchKernel, joined
from .shared_layout import SharedLayout
from .statement_shapes import Shape
from .variable_spaces import check_extent, check_space

_CODE_ALIGNMENT = 16  # bytes
_LARGE_PARAMETERS = (8, 1)  # the PTX version from which on kernels may have more bytes of parameters


class Module:
    """A PTX module: ``target``, ``version`` and, by name, its kernels and variables.

    A kernel is bound when it is taken (``entry``), with the functions that it may call, in the order in
    which they are declared. ``bound`` are the functions whose code there is, in its order.
    """

    def __init__(self, program: Program, target: str | None = None) -> None:
        self.program = program
        self.target = target or _directive(program, "target").split(",")[0].strip()
        self.version = parse_version(_directive(program, "version"))
        self._problems: list[WarpsimError] = []
        self._general: list[WarpsimError] = []  # problems of every kernel
        self._of_variables: dict[str, WarpsimError] = {}
        self._check_directives(target)
        self.code: list[Record] = []
        self.shapes: dict[Shape, tuple[str, str]] = {}  # of statements bound so far: fidelity and note
        self.scope = Scope()
        self.variables: list[Variable] = []  # of global and const space
        self.functions: dict[str, Function] = {}
        self._names: list[str] = []  # of functions, by the number that stands for their address
        self.shared: list[Variable] = []  # of shared space, that no kernel declares
        self._layout = SharedLayout(self.functions)
        self.bound: list[str] = []
        self._loaded: dict[str, list[Record]] = {}  # of functions that have no place in the code yet
        found = list(structure_problems(program))
        self._problems += found
        self._general += found
        self._declare_all()
        self._check_addresses()
        if any(function.kernel.kind == "func" and _declares_shared(function) for function in self._bodies()):
            self.bind()  # what lies where in shared memory must not depend on which kernel is taken first

    @property
    def problems(self) -> list[WarpsimError]:
        """The errors of all statements that cannot be executed, in the order of the text; binds all."""
        self.bind()
        return sorted(self._problems, key=_place)

    def entry(self, name: str) -> Entry:
        """Return a kernel by name; raises NoSuchKernel, and all problems of the kernel as one error."""
        function = self._kernel(name)
        reached = self._reachable_names(function.name)
        if any(self.functions[name].calls_by_address for name in reached & self.functions.keys()):
            reached |= {other.name for other in self._bodies() if other.kernel.kind == "func"}
        self.bind([other.name for other in self._bodies() if other.name in reached])
        if found := self.problems_of(function.name):
            raise joined(found)
        increase = max(self.functions[name].increase for name in reached & self.functions.keys())
        return _entry(self, function, increase)

    def parameters_of(self, name: str) -> tuple[Parameter, ...]:
        """Return the parameters of a kernel, whether it can run or not; raises NoSuchKernel."""
        return tuple(_parameters(self, self._kernel(name)))

    def _kernel(self, name: str) -> Function:
        found = matching(name, self.entries)
        if len(found) != 1:
            known = ", ".join(map(shown, found or self.entries)) or "none"
            problem = f"{name!r} names several kernels:" if found else f"no kernel {name!r}; the kernels are"
            raise NoSuchKernel(f"{problem} {known}")
        return self.functions[found[0]]

    def problems_of(self, name: str) -> list[WarpsimError]:
        """Return the problems of a kernel and of what it calls, in the order of the text."""
        found = list(self._general)
        for reached in self._reachable_names(name):
            found += self.functions[reached].problems if reached in self.functions else ()
            found += [self._of_variables[reached]] if reached in self._of_variables else ()
        return sorted({id(problem): problem for problem in found}.values(), key=_place)

    def _reachable_names(self, name: str) -> set[str]:
        """Return the functions and variables that a function names, and those that these name; load them."""
        reached, left = set[str](), [name]
        while left:
            name = left.pop()
            if name not in reached:
                reached.add(name)
                function = self.functions.get(name)
                if function is None:
                    left += self._address_names(name)
                elif function.kernel.body is not None:
                    self._load(function)
                    left += function.named
        return reached

    def _bodies(self) -> list[Function]:
        """Return the functions that have statements, in the order in which they are declared."""
        return [function for function in self.functions.values() if function.kernel.body is not None]

    def _address_names(self, name: str) -> list[str]:
        """Return what a variable holds addresses of."""
        return [address.name for address in self._addresses_in(name)]

    def _addresses_in(self, name: str) -> tuple[InitialAddress, ...]:
        found = self.scope.names.get(name)
        return found.addresses if isinstance(found, Variable) else ()

    @cached_property
    def entries(self) -> tuple[str, ...]:
        """The names of the kernels, in the order of the text."""
        kernels = ((name, function.kernel) for name, function in self.functions.items())
        return tuple(name for name, kernel in kernels if kernel.kind == "entry" and kernel.body is not None)

    @property
    def statements(self) -> int:
        """How many there are, without the return that each function ends in; binds the module."""
        self.bind()
        return len(self.code) - sum(function.start >= 0 for function in self.functions.values())

    def function_number(self, name: str) -> int:
        """Return the number that stands for the address of a function.

        The lowest bits are 0, as code is aligned: pointers to members of C++ keep a flag there.
        """
        if name not in self._names:
            self._names.append(name)
        return (self._names.index(name) + 1) * _CODE_ALIGNMENT

    def function_at(self, number: int) -> Function | None:
        """Return the function whose address a number is."""
        place, rest = divmod(number, _CODE_ALIGNMENT)
        known = not rest and 1 <= place <= len(self._names)
        return self.functions.get(self._names[place - 1]) if known else None

    def function_around(self, pc: int) -> Function:
        """Return the function whose code a program counter lies in."""
        started = [function for function in self.functions.values() if 0 <= function.start <= pc]
        return max(started, key=lambda function: function.start)

    # --- declarations ---

    def _check_directives(self, target: str | None) -> None:
        """Check the target, and that the version of the text has it; raises IllegalInstruction."""
        if target is not None:
            check_target(target)
            return
        with located(lambda: _directive_of(self.program, "target").location()):
            check_target(self.target)
        try:
            with located(lambda: _directive_of(self.program, "version").location()):
                if message := unknown_version(self.version):
                    raise IllegalInstruction(message)
                check_target(self.target, self.version)
        except WarpsimError as error:
            self._problems.append(error)
            self._general.append(error)

    def _declare_all(self) -> None:
        for statement in self.program.statements:
            if isinstance(statement, VariableDeclaration):
                count = len(self._problems)
                self.noted(partial(self.declare_variable, self.scope, statement, None))
                if len(self._problems) > count:
                    self._of_variables[statement.name] = self._problems[-1]
            elif isinstance(statement, Directive):
                self._problems += too_early(statement, self.version)
            elif isinstance(statement, RegisterDeclaration):
                message = "registers are declared in functions, not in modules"
                self._problems.append(IllegalInstruction(message, statement.location()))
            elif isinstance(statement, Kernel):
                self._declare_function(statement)

    def _check_addresses(self) -> None:
        """Check that initial values name a function, or a variable in memory of the device, declared
        before.
        """
        before: dict[str, int] = {}
        for statement in self.program.statements:
            if isinstance(statement, VariableDeclaration) and statement.name not in self._of_variables:
                for address in self._addresses_in(statement.name):
                    name, found = address.name, self.scope.names.get(address.name)
                    plain = not address.generic and not address.addend
                    if not isinstance(found, FunctionName) and found not in self.variables:
                        what = "which is neither a function nor a variable in .global or .const"
                    elif isinstance(found, FunctionName) and not plain:
                        what = "which is a function: only its name alone is an initial value"
                    elif before.get(name, statement.start) >= statement.start:
                        what = "which is not declared before it"
                    else:
                        continue
                    message = f"{statement.name} starts with the address of {name}, {what}"
                    self._problems.append(IllegalInstruction(message, statement.location()))
                    self._of_variables[statement.name] = self._problems[-1]
            if isinstance(statement, VariableDeclaration | Kernel):
                before.setdefault(statement.name, statement.start)

    def _declare_function(self, kernel: Kernel) -> None:
        if kernel.body is None:
            self._problems += parameter_problems(kernel, self.version)
            self._problems += directive_problems(kernel, self.target, self.version)
        known = self.functions.get(kernel.name)
        if known is None or known.kernel.body is None:
            self.functions[kernel.name] = Function(name=kernel.name, kernel=kernel)
            self.scope.names[kernel.name] = FunctionName(kernel.name)

    def declare_variable(
        self, scope: Scope, statement: VariableDeclaration, function: Function | None
    ) -> None:
        """Give a variable its place in its space; raises IllegalInstruction where it has none there."""
        check_space(statement, in_module=function is None)
        alignment = statement.align or max(initial.element_bytes(statement.type), 1)
        offset, dynamic = 0, False
        if statement.space == "param" and function is not None:
            scope.declare(statement.name, self.parameter(statement, function, 0, framed=True), statement)
            return
        if statement.space == "shared":
            dynamic = statement.size == 0
            offset = self._layout.place(statement, alignment, function)
        elif statement.space == "local" and function is not None:
            offset = -(-function.local_bytes // alignment) * alignment
            function.local_bytes = offset + statement.size
        variable = Variable(
            name=statement.name,
            space=statement.space,
            size=statement.size,
            alignment=alignment,
            offset=offset,
            element=initial.element_bytes(statement.type),
            extents=statement.extents,
            dynamic=dynamic,
        )
        scope.declare(statement.name, variable, statement)
        check_extent(statement)
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
        """Return a .param variable: behind ``place`` among those of a kernel, elsewhere in the frame."""
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
            extents=statement.extents,
            framed=framed,
        )

    def static_shared_bytes(self, function: Function) -> int:
        """Return bytes that declarations take of a kernel's shared memory, up to where the dynamic part
        begins.
        """
        return self._layout.static_bytes(function)

    # --- code ---

    def bind(self, names: Iterable[str] | None = None) -> None:
        """Give functions their places in the code, in this order; without names all, as declared."""
        for function in self._bodies() if names is None else [self.functions[name] for name in names]:
            if function.start < 0:
                self._load(function)
                function.start = len(self.code)
                for label in function.labels:
                    label.pc += function.start
                self.code += self._loaded.pop(function.name)
                self.bound.append(function.name)

    def _load(self, function: Function) -> None:
        """Make records of the statements of a function, if that has not been done."""
        if function.start >= 0 or function.name in self._loaded:
            return
        known = len(self._problems)
        self._problems += directive_problems(function.kernel, self.target, self.version)
        self._problems += parameter_problems(function.kernel, self.version)
        self.noted(partial(self._check_parameters, function))
        with garbage_collection_paused():
            self._loaded[function.name] = load_body(self, function)
        function.problems, function.overrun = self._problems[known:], self._overrun(function)
        self._problems += [function.overrun] if function.overrun else []

    def _check_parameters(self, function: Function) -> None:
        """Raise IllegalInstruction for a kernel with more bytes of parameters than there may be."""
        limits, early = ARCHITECTURES[self.target].limits, self.version < _LARGE_PARAMETERS
        most = limits.early_parameter_bytes if early else limits.parameter_bytes
        last = max((each.offset + each.bytes for each in _parameters(self, function)), default=0)
        if function.kernel.kind == "entry" and last > most:
            version = ".".join(map(str, self.version))
            message = (
                f"{shown(function.name)} takes {last} bytes of parameters: at most {most} on {self.target} "
                f"with PTX {version}"
            )
            raise IllegalInstruction(message, function.kernel.location())

    def _overrun(self, function: Function) -> IllegalInstruction | None:
        """Return what is wrong with a kernel that declares more shared memory than its target lets it."""
        most, size = ARCHITECTURES[self.target].static_shared_bytes, self.static_shared_bytes(function)
        if function.kernel.kind != "entry" or size <= most:
            return None
        message = (
            f"{shown(function.name)} declares {size} bytes of shared memory: at most {most} on "
            f"{self.target}; declare it .extern, with its size given at the launch, for more"
        )
        return IllegalInstruction(message, function.kernel.location())

    def execution(self, record: Record) -> Execution:
        """Bind the statement of a record; a statement like it has been bound."""
        assert record.scope is not None
        return execution_of(self, record.statement, record.scope)[0]

    def noted(self, action: Callable[[], object]) -> None:
        """Do something; its error is a problem of the module."""
        try:
            action()
        except WarpsimError as error:
            self._problems.append(error)


def load_module(
    text: str, file: str = "<string>", target: str | None = None, read: Reader = unread
) -> Module:
    """Return the module of a PTX text; raises PtxError, and IllegalInstruction where directives are
    missing.
    """
    return Module(parse(text, file, read), target)


def _place(error: WarpsimError) -> tuple[int, int]:
    return (0, 0) if error.location is None else (error.location.line, error.location.column)


def _directive(program: Program, name: str) -> str:
    return _directive_of(program, name).text.strip()


def _directive_of(program: Program, name: str) -> Directive:
    for statement in program.statements:
        if isinstance(statement, Directive) and statement.name == name:
            return statement
    raise PtxError(
        f"a module begins with .version and .target: .{name} is missing", program.source.location(0)
    )


_SHARED = re.compile(r"(?<![\w:])\.shared(?![\w:])", re.ASCII)  # a variable, and no modifier


def _declares_shared(function: Function) -> bool:
    return function.kernel.body is not None and function.kernel.body.find(_SHARED)


def _entry(module: Module, function: Function, increase: int) -> Entry:
    parameters, tuning = tuple(_parameters(module, function)), tuning_of(function.kernel)
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
        tuning=tuning,
        lane_registers=registers_at_entry(tuning, increase, ARCHITECTURES[module.target].limits),
    )


def _parameters(module: Module, function: Function) -> Iterator[Parameter]:
    """Yield the parameters of a kernel, bound or not."""
    declared = [
        parameter for parameter in function.kernel.parameters if isinstance(parameter, VariableDeclaration)
    ]
    end = 0
    for index, parameter in enumerate(declared):
        variable = module.parameter(parameter, function, end, framed=False)
        end = variable.offset + parameter.size
        yield Parameter(
            index=index,
            name=parameter.name,
            kind=parameter.type,
            bytes=variable.size,
            alignment=variable.alignment,
            offset=variable.offset,
        )
