"""Values of 128 bits: a register .b128 is two of 64, the lower half first (PTX ISA 9.1, section 5.2.1).

Statements that take .b128 next to narrower types ask here for the words of an operand: two of 64 bits, or the
operand itself. Does not know opcodes.
"""

from __future__ import annotations

from ...ptx.constants import Immediate
from ...ptx.operands import Operand, Register
from ..bind.scope import Variable
from .statement_binder import Reader, StatementBinder, Writer

WIDE = "b128"
SINCE = (8, 3)
_SYSTEM_SINCE = (8, 4)  # of .b128 with .sys
_HALF = "b64"


def word_type(type_name: str) -> tuple[str, int]:
    """Return the type of the words that a value consists of, and how many there are."""
    return (_HALF, 2) if type_name == WIDE else (type_name, 1)


def needed(modifiers: tuple[str, ...]) -> tuple[int, int]:
    """Return the first PTX version of a statement with these modifiers, as far as .b128 decides."""
    if WIDE not in modifiers:
        return (1, 0)
    return _SYSTEM_SINCE if "sys" in modifiers else SINCE


def word_readers(
    binder: StatementBinder,
    operand: Operand,
    type_name: str,
    index: int,
    element: int | None = None,
    *,
    wide: bool = False,
) -> list[Reader]:
    """Return readers of the words of an operand, the lowest first.

    Raises IllegalInstruction, and NotModelled for what ptxas takes and no manual explains.
    """
    if type_name != WIDE:
        return [binder.reader(operand, type_name, index, element, wide=wide)]
    if isinstance(operand, Immediate):
        if operand.kind != "integer" or not 0 <= operand.value < 1 << 63:
            raise binder.not_modelled(f"the constant {operand} as .{WIDE} is not modelled", index)
        parts = (operand, Immediate(0))
        return [binder.reader(part, _HALF, index, element) for part in parts]
    if isinstance(operand, Register) and isinstance(binder.scope.find(operand.name), Variable):
        raise binder.not_modelled(f"the address of {operand} as .{WIDE} is not modelled", index)
    found = binder.register(operand, index, element)
    binder.check_type(str(operand), found.type, type_name, index, element)
    return [binder.reading(found.number), binder.reading(found.number + 1)]


def word_writers(
    binder: StatementBinder,
    operand: Operand,
    type_name: str,
    index: int,
    element: int | None = None,
    *,
    wide: bool = False,
) -> list[Writer]:
    """Return writers of the words of a register, the lowest first; raises IllegalInstruction."""
    if type_name != WIDE:
        return [binder.writer(operand, type_name, index, element, wide=wide)]
    found = binder.register(operand, index, element)
    binder.check_type(str(operand), found.type, type_name, index, element)
    return [binder.writing(found.number), binder.writing(found.number + 1)]
