"""What the state space of a variable admits: where it is declared, how large it is, and whether it has
initial values (PTX ISA 9.1, sections 5.1 and 5.4.4).
"""

from __future__ import annotations

from ...errors import IllegalInstruction
from ...ptx.statements import VariableDeclaration

_IN_FUNCTIONS = ("local", "param")  # spaces without variables of a module
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
    if message:
        raise IllegalInstruction(message, statement.location())


def check_extent(statement: VariableDeclaration) -> None:
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
