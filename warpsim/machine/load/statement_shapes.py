"""Shapes of statements: two of one shape differ in the registers, labels and offsets that they name only.

Whether a statement can be executed depends on its shape, so that one of each shape is bound to find out, and
the others when they are first executed. Knows names and their meanings; does not know opcodes.
"""

from __future__ import annotations

import re
from collections.abc import Container, Hashable

from ...ptx.statements import InstructionStatement
from ..bind.scope import FunctionName, LabelName, Scope, Variable
from ..opcodes import special_registers, takes_any_constant

__all__ = ["Shape", "ShapeReader"]

Shape = tuple[Hashable, ...]

# Words, and offsets of addresses, with what stands between them. An offset of 0 is none.
_split = re.compile(r"(\+-?[1-9]\d*(?=\])|[\w$%.]+)", re.ASCII).split
_OFFSET, _LABEL = "+0", "label"
_CONSTANTS = (  # of any value, where only their kind counts
    (re.compile(r"0[xX][0-9a-fA-F]{1,16}|0|[1-9]\d{0,17}", re.ASCII), "0"),
    (re.compile(r"0[fF][0-9a-fA-F]{8}", re.ASCII), "0f"),
    (re.compile(r"0[dD][0-9a-fA-F]{16}", re.ASCII), "0d"),
)


class _Unknown(LookupError):
    """A word of which not everything that counts is known."""


class _Kinds(dict[str, Hashable]):
    """What counts of each word in a scope: the type of a register, the place and size of a variable."""

    def __init__(self, scope: Scope) -> None:
        super().__init__()
        self._scope = scope

    def __missing__(self, word: str) -> Hashable:
        kind = self[word] = self._kind(word)
        return kind

    def _kind(self, word: str) -> Hashable:
        first = word[:1]
        if first == "%" or first.isalpha() or first in ("_", "$"):
            return self._scope.register_type(word) or self._meaning(word)
        if first == "+" and word[-1].isdigit():
            return _OFFSET
        if first.isdigit():
            return next((kind for rule, kind in _CONSTANTS if rule.fullmatch(word)), word)
        return word

    def _meaning(self, name: str) -> Hashable:
        found = self._scope.find(name)
        if isinstance(found, Variable):
            return (found.space, found.size, found.alignment, found.dynamic, found.framed)
        if isinstance(found, LabelName):
            return _LABEL
        if isinstance(found, FunctionName):
            return (name,)
        if found is None and (special_registers.is_special(name) or name in ("_", "WARP_SZ")):
            return name
        raise _Unknown(name)


class ShapeReader:
    """The shapes of the statements of one scope of a function, which notes what they name of the module."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._kinds = _Kinds(scope)

    def shape(self, statement: InstructionStatement) -> Shape | None:
        """Return the shape of a statement; None where only binding says whether it can be executed."""
        opcode, modifiers, text = statement.opcode, statement.modifiers, statement.operand_text
        if text is None:
            return (opcode, modifiers, statement.guard is None)
        if opcode == "call" or (text[0] == "{" and _repeats(text)):
            return None
        words = _split(text)
        try:
            kinds = tuple(map(self._kinds.__getitem__, words))
        except _Unknown:
            return None
        if takes_any_constant(opcode, modifiers):
            return (opcode, modifiers, statement.guard is None, kinds)
        constants = tuple(word for word in words if word[:1].isdigit())
        return (opcode, modifiers, statement.guard is None, kinds, constants)

    def named(self, names: Container[str]) -> set[str]:
        """Return those of some names that statements had words for."""
        return {word for word in self._kinds if word in names}


def _repeats(text: str) -> bool:
    """Return whether a vector of results has something twice."""
    elements = text[1 : text.find("}")].replace(" ", "").split(",")
    return len(set(elements)) < len(elements)
