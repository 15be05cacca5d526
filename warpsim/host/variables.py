"""Variables in shared memory: their addresses, and the scopes that declare them.

Knows names, sizes and alignment; does not know what the memory holds. Addresses are given out from 0 on,
in the order of the declarations, each at the next multiple of its alignment; nothing is ever given out
twice. An array of unknown size, ``.extern .shared .b8 tile[]``, begins where the others end.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ..errors import IllegalInstruction, NotModelled, OperandError
from ..isa.numerals import integer_in
from ..machine.bind.register_arrays import type_bits
from ..ptx.source import NAME
from ..ptx.statements import VariableDeclaration

_PLACE = re.compile(rf"({NAME})?\s*\+?\s*(0[xX][0-9a-fA-F]{{1,16}}|\d{{1,9}})?", re.ASCII)


class SharedVariables:
    """The variables of a kernel whose CTA has ``size`` bytes of shared memory."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._scopes: list[dict[str, int]] = [{}]
        self._end = 0
        self._open_ended = False  # whether an array of unknown size has been declared

    @contextmanager
    def scope(self) -> Iterator[None]:
        """A block whose names end with it; their addresses are not given out again."""
        depth = len(self._scopes)
        self._scopes.append({})
        try:
            yield
        finally:
            del self._scopes[depth:]

    def addresses(self) -> Mapping[str, int]:
        """The address of every variable that is visible here."""
        return ChainMap(*reversed(self._scopes))

    def declare(self, variable: VariableDeclaration) -> None:
        """Give a variable its address; one that has been declared like this before keeps it.

        Raises IllegalInstruction for an initial value, an alignment or a size that PTX does not have,
        NotModelled for other state spaces.
        """
        if variable.space != "shared":
            raise NotModelled(f"variables in .{variable.space} are not modelled; those in .shared are")
        if variable.initializer is not None:
            raise IllegalInstruction(f"{variable.name} is in shared memory, which has no initial values")
        if variable.name in self._scopes[-1]:
            return
        start = -(-self._end // _alignment(variable)) * _alignment(variable)
        if start + variable.size > self.size:
            raise IllegalInstruction(
                f"{variable.name} would end at {start + variable.size:#x}, "
                f"outside the {self.size} bytes of shared memory"
            )
        self._place(variable, start)

    def _place(self, variable: VariableDeclaration, start: int) -> None:
        if self._open_ended and variable.size:
            raise NotModelled(
                f"{variable.name} is declared after an array of unknown size, where that begins"
            )
        self._open_ended |= variable.size == 0
        self._scopes[-1][variable.name] = start
        self._end = start + variable.size

    def place(self, text: str) -> int:
        """The address that ``tile``, ``tile+16``, ``1024`` or ``0x400`` means here. Raises OperandError."""
        match = _PLACE.fullmatch(text)
        offset = (
            integer_in(match[2] or "0") if match else None
        )  # none where PTX and Python read 010 differently
        if not match or offset is None or not text or (match[1] and match[2] and "+" not in text):
            raise OperandError(f"{text!r}: expected an address, or a variable as in 'tile' or 'tile+16'")
        known = self.addresses()
        if match[1] and match[1] not in known:
            names = ", ".join(sorted(known)) or "none"
            raise OperandError(f"no variable {match[1]} in shared memory; there are: {names}")
        return (known[match[1]] if match[1] else 0) + offset


def _alignment(variable: VariableDeclaration) -> int:
    """Bytes: a power of two, that of an element where none is written."""
    alignment = type_bits(variable.type) // 8 if variable.align is None else variable.align
    if alignment < 1 or alignment & (alignment - 1):
        raise IllegalInstruction(f"{variable.name} has alignment {alignment}, which is no power of two")
    return alignment
