"""What ptxas does not take as parameters and results of kernels and functions (PTX ISA 9.1, sections 5.1.6
and 11.1).
"""

from __future__ import annotations

from collections.abc import Iterator

from ...base.errors import IllegalInstruction, NotModelled, WarpsimError
from ...ptx.parser import read_prototype
from ...ptx.source import Cursor
from ...ptx.statements import OPAQUE, Directive, Kernel, Parameter, RegisterDeclaration, VariableDeclaration
from .directives import directive_problems
from .variable_spaces import ARGUMENT_ALIGNMENT, LARGEST_ALIGNMENT, check_alignment, check_parameter_type

_HIDDEN_SINCE = (8, 8)
PROTOTYPE = "_"  # the name of a function that is none: ptxas takes any types there


def parameter_problems(kernel: Kernel, version: tuple[int, int]) -> Iterator[WarpsimError]:
    """Yield what is wrong with the parameters and results of a kernel or function in a PTX version."""
    for parameter in (*kernel.parameters, *kernel.results):
        if isinstance(parameter, VariableDeclaration) and parameter.hidden:
            if kernel.kind == "func":
                yield _problem(parameter, f"{parameter.name}: .hidden is for parameters of kernels")
            elif version < _HIDDEN_SINCE:
                yield _problem(parameter, f"{parameter.name}: .hidden needs PTX 8.8")
    for place, parameter in enumerate(kernel.parameters):
        yield from _parameter_problems(kernel, parameter, place == len(kernel.parameters) - 1)
    for result in kernel.results:
        yield from _parameter_problems(kernel, result, last=False)
    framed = [item for item in kernel.results if isinstance(item, VariableDeclaration)]
    if framed and len(kernel.results) > 1:
        yield _problem(framed[0], "several results of a function are registers")


def prototype_of(statement: Directive) -> Kernel:
    """Return the function without a name that a ``.callprototype`` describes. Raises PtxError."""
    return read_prototype(Cursor(statement.source, statement.start + len(".callprototype")))


def prototype_problems(
    statement: Directive, kernel: Kernel, target: str, version: tuple[int, int]
) -> Iterator[WarpsimError]:
    """Yield what is wrong with a ``.callprototype``: as with a function of such parameters, and no more."""
    yield from parameter_problems(kernel, version)
    yield from directive_problems(kernel, target, version)
    if "local_maxnreg" in kernel.tuning:
        yield IllegalInstruction("prototypes have no directive .local_maxnreg", statement.location())


def _parameter_problems(kernel: Kernel, parameter: Parameter, last: bool) -> Iterator[WarpsimError]:
    if isinstance(parameter, RegisterDeclaration):
        if kernel.kind == "entry":
            yield _problem(parameter, "parameters of kernels lie in .param, not in .reg")
        return
    name = parameter.name
    if kernel.kind == "entry" and parameter.type in OPAQUE:
        yield NotModelled(f"{name}: .{parameter.type} is not modelled", parameter.location())
    else:
        yield from _caught(kernel, parameter)
    if 0 in parameter.extents and (kernel.kind == "entry" or not last):
        yield _problem(
            parameter, f"{name} has no elements: only the last parameter of a function may have []"
        )
    if parameter.pointer and kernel.kind == "func":
        yield _problem(parameter, f"{name}: .ptr is for parameters of kernels")


def _caught(kernel: Kernel, parameter: VariableDeclaration) -> Iterator[WarpsimError]:
    called = kernel.kind == "func" and kernel.body is not None
    most = ARGUMENT_ALIGNMENT if called else LARGEST_ALIGNMENT
    try:
        if kernel.name != PROTOTYPE:
            check_parameter_type(parameter)
        for align in (*parameter.pointer, *(() if parameter.align is None else (parameter.align,))):
            check_alignment(parameter, align, most)
    except IllegalInstruction as error:
        yield error


def _problem(parameter: Parameter, message: str) -> IllegalInstruction:
    return IllegalInstruction(message, parameter.location())
