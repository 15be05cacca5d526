"""What ptxas does not take as a call: kernels, other numbers and sizes of arguments, no prototype.

Measured with ptxas 13.0 (PTX ISA 9.1, sections 7.1 and 9.7.12.5). Types of one size are not compared. Does
not execute anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ....ptx.operands import Register
from ....ptx.statements import Kernel, Parameter, RegisterDeclaration, VariableDeclaration
from ....ptx.symbols import shown
from ...bind.scope import FunctionName, LabelTable, Prototype, Variable
from ...bind.value_types import bits_of
from ..statement_binder import StatementBinder

Placed = tuple[Any, int]  # an operand, and its place


class Passed(NamedTuple):
    """The .param variables that a call passes and takes back, and where both stand."""

    given: Sequence[Variable]
    wanted: Sequence[Variable]
    places: tuple[int, int]


def check_call(binder: StatementBinder, callee: Placed, behind: Sequence[Placed], passed: Passed) -> None:
    """Raise IllegalInstruction for a call that ptxas refuses; ``behind`` stands behind the arguments."""
    operand, index = callee
    found = binder.scope.find(operand.name) if isinstance(operand, Register) else None
    for role in (*passed.given, *passed.wanted):
        if role.formal:
            message = f"{role.name} is a {role.formal} of this function, which call does not pass on"
            raise binder.illegal(message, passed.places[0])
    if isinstance(found, FunctionName):
        kernel = binder.module.functions[found.name].kernel
        if kernel.kind == "entry":
            raise binder.illegal(f"{shown(found.name)} is a kernel: call takes functions", index)
        if behind:
            raise binder.illegal(f"a call by name takes no prototype, as '{behind[0][0]}'", behind[0][1])
        _check_signature(binder, kernel, passed)
        return
    for kernel in _signatures(binder, index, behind):
        _check_signature(binder, kernel, passed)


def _signatures(binder: StatementBinder, index: int, behind: Sequence[Placed]) -> Iterator[Kernel]:
    """Yield the prototype of a call by address, or the functions of its list."""
    if not behind:
        message = "a call by address ends in a .callprototype or .calltargets: its label is missing"
        raise binder.illegal(message, index)
    label, place = behind[0]
    meaning = binder.scope.find(label.name) if isinstance(label, Register) else None
    known = isinstance(meaning, Prototype | LabelTable) and meaning.start < binder.statement.start
    if known and isinstance(meaning, Prototype):
        yield meaning.kernel
        return
    names = meaning.names if known and isinstance(meaning, LabelTable) else ()
    functions = [binder.scope.find(name) for name in names]
    if not functions or not all(isinstance(each, FunctionName) for each in functions):
        raise binder.illegal(f"expected a .callprototype or .calltargets before this, not '{label}'", place)
    yield from (binder.module.functions[name].kernel for name in names)


def _check_signature(binder: StatementBinder, kernel: Kernel, passed: Passed) -> None:
    name = "the prototype" if kernel.name == "_" else shown(kernel.name)
    formals = (kernel.parameters, kernel.results)
    if any(isinstance(each, RegisterDeclaration) for each in (*formals[0], *formals[1])):
        raise binder.not_modelled(f"{name} takes or returns registers: only .param is modelled in calls")
    for what, formal, actual, place in zip(
        ("argument", "result"), formals, (passed.given, passed.wanted), passed.places, strict=True
    ):
        open_ended = bool(formal) and _extents(formal[-1]) == (0,)
        if not len(formal) - open_ended <= len(actual) <= len(formal):
            plural = "s"[: len(formal) != 1]
            message = f"{name} has {len(formal)} {what}{plural}, and this call {len(actual)}"
            raise binder.illegal(message, place)
        for parameter, variable in zip(formal, actual, strict=False):
            _check_pair(binder, parameter, variable, place)


def _check_pair(binder: StatementBinder, formal: Parameter, actual: Variable, place: int) -> None:
    """Compare sizes and alignments, of arrays with arrays."""
    assert isinstance(formal, VariableDeclaration)
    alignment = formal.align or bits_of(formal.type) // 8
    same = formal.size == actual.size and bool(formal.extents) == bool(actual.extents)
    if (same or _extents(formal) == (0,)) and alignment == actual.alignment:
        return
    wanted = f"{formal.size} bytes aligned to {alignment}" if formal.size else f"any, aligned to {alignment}"
    given = f"{actual.size} bytes aligned to {actual.alignment}"
    arrays = [", an array" * bool(extents) for extents in (formal.extents, actual.extents)]
    message = f"{actual.name} is {given}{arrays[1]}, but the call takes {wanted}{arrays[0]}"
    raise binder.illegal(message, place)


def _extents(parameter: Parameter) -> tuple[int, ...]:
    return parameter.extents if isinstance(parameter, VariableDeclaration) else ()
