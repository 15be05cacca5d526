"""What the state space of a variable admits: where it is declared, how large it is, and whether it has
initial values (PTX ISA 9.1, sections 5.1 and 5.4.4).
"""

from __future__ import annotations

from ...base.errors import IllegalInstruction, NotModelled
from ...ptx.statements import OPAQUE, VariableDeclaration

LARGEST_ALIGNMENT = 1 << 16
ARGUMENT_ALIGNMENT = 128  # of what is passed to functions
_COMMON = "global"  # the space of .common variables
_IN_FUNCTIONS = ("local", "param")  # spaces without variables of a module
_NO_PARAMETERS = ("f16x2", *OPAQUE)
_WITH_VALUES = ("global", "const")
_MOST_BYTES = {  # of a variable, by its space; what is beyond is a slip, and no reason to fill the memory
    "global": 1 << 36,  # no chip has more memory
    "const": 1 << 16,   # ptxas: "uses too much global constant data", 0x10000 bytes at most
    "local": 1 << 19,   # of a thread: CUDA C++ Programming Guide, technical specifications
    "param": 1 << 15,
}  # fmt: skip


def check_space(statement: VariableDeclaration, *, in_module: bool) -> None:
    """Raise IllegalInstruction for a variable that its space does not have there, or not with values."""
    message = ""
    if in_module and statement.space in _IN_FUNCTIONS:
        message = f"{statement.name}: .{statement.space} is declared in functions, not in modules"
    elif statement.initializer is not None and statement.space not in _WITH_VALUES:
        message = f"{statement.name}: no variable in .{statement.space} has initial values"
    elif statement.linkage and not in_module:
        message = f"{statement.name}: .{statement.linkage} is for variables of a module"
    elif statement.linkage == "extern" and statement.initializer is not None:
        message = f"{statement.name}: no .extern variable has initial values"
    elif statement.linkage == "common" and statement.space != _COMMON:
        message = f"{statement.name}: .common variables lie in .{_COMMON}, not in .{statement.space}"
    if message:
        raise IllegalInstruction(message, statement.location())
    _check_complete(statement)
    _check_type(statement, in_module=in_module)


def _check_complete(statement: VariableDeclaration) -> None:
    """Raise IllegalInstruction for an array without elements, but [] of what another module has."""
    extents = statement.extents
    message = ""
    if 0 in extents[1:]:
        message = f"{statement.name} has no elements: each extent but the first is at least 1"
    elif 0 in extents and statement.linkage != "extern":
        message = f"{statement.name} has no elements: only .extern variables of a module have []"
    if message:
        raise IllegalInstruction(message, statement.location())


def _check_type(statement: VariableDeclaration, *, in_module: bool) -> None:
    """Raise IllegalInstruction for a type that a space does not have, NotModelled for textures."""
    if statement.type in OPAQUE:
        if not in_module or statement.space != "global":
            message = f"{statement.name}: .{statement.type} is declared in .global, in modules"
            raise IllegalInstruction(message, statement.location())
        raise NotModelled(f"{statement.name}: .{statement.type} is not modelled", statement.location())
    if statement.space == "param":
        check_parameter_type(statement)
        if statement.align is not None:
            check_alignment(statement, statement.align, ARGUMENT_ALIGNMENT)


def check_parameter_type(statement: VariableDeclaration) -> None:
    """Raise IllegalInstruction for a type that nothing in .param has."""
    alone = len(statement.extents) == 1
    if (statement.vector > 1 and alone) or statement.type in _NO_PARAMETERS:
        vector = f".v{statement.vector} " if statement.vector > 1 else ""
        message = f"{statement.name}: nothing in .param has the type {vector}.{statement.type}"
        raise IllegalInstruction(message, statement.location())


def check_extent(statement: VariableDeclaration) -> None:
    """Raise IllegalInstruction for a variable that is larger than its space, or at no power of two."""
    most = _MOST_BYTES.get(statement.space)
    if most is not None and statement.size > most:
        message = f"{statement.name} has {statement.size} bytes, but .{statement.space} has at most {most}"
        raise IllegalInstruction(message, statement.location())
    if statement.align is not None:
        check_alignment(statement, statement.align)


def check_alignment(statement: VariableDeclaration, align: int, most: int = LARGEST_ALIGNMENT) -> None:
    """Raise IllegalInstruction for an alignment that is not a power of two, or more than ``most``."""
    if align < 1 or align & (align - 1) or align > most:
        message = f"{statement.name} has alignment {align}: expected a power of two, {most} at most"
        raise IllegalInstruction(message, statement.location())
