"""The operands of an instruction, and the grammar that reads them (PTX ISA 9.1, section 6).

    operands  = operand { "," operand }
    operand   = vector | address | arguments | "!" name | place "|" place | register "+" immediate | atom
    vector    = "{" atom { "," atom } "}"
    address   = "[" ( name [ "+" immediate ] | immediate ) { "," ( vector | atom ) } "]"
    arguments = "(" [ atom { "," atom } ] ")"                                        of call only
    atom      = place | immediate
    place     = register | "_"
    register  = name [ "." component ]                                               as in %tid.x

``str`` of an operand is PTX text that reads back as the same operand.

This module does not know what is declared: a register, a variable, a label and a function are all a Register
here. Nor does it know how many operands an instruction takes, or of which sort.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..base.errors import PtxError
from .constants import Immediate, read_immediate
from .source import NAME, TRIVIA, Cursor, Source, Span

__all__ = [
    "REGISTER",
    "Address",
    "Arguments",
    "Displacement",
    "NegatedPredicate",
    "Operand",
    "Pair",
    "Register",
    "Sink",
    "Vector",
    "parse_operands",
    "read_operands",
]


@dataclass(frozen=True, slots=True)
class Register:
    """A name: of a register, or of any other thing that a name may stand for."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Sink:
    """``_``: a result that is thrown away."""

    def __str__(self) -> str:
        return "_"


Atom = Register | Sink | Immediate


@dataclass(frozen=True, slots=True)
class Vector:
    """``{a, b, c, d}``; never empty."""

    elements: tuple[Atom, ...]

    def __str__(self) -> str:
        return f"{{{_join_items(self.elements)}}}"


@dataclass(frozen=True, slots=True)
class Arguments:
    """``(a, b)``: the results or the arguments of a call."""

    elements: tuple[Atom, ...]

    def __str__(self) -> str:
        return f"({_join_items(self.elements)})"


@dataclass(frozen=True, slots=True)
class Address:
    """``[base+offset]``, ``[offset]`` with no base, or ``[base, {coordinates}]`` of a tensor or texture."""

    base: Register | None
    offset: int = 0
    coordinates: tuple[Vector | Atom, ...] = ()

    def __str__(self) -> str:
        place: object = self.offset if self.base is None else self.base
        if self.base and self.offset:
            place = Displacement(self.base, self.offset)
        return f"[{_join_items((place, *self.coordinates))}]"


@dataclass(frozen=True, slots=True)
class Displacement:
    """``base+offset`` outside brackets, as in ``mov.u32 %r1, buffer+16``."""

    base: Register
    offset: int

    def __str__(self) -> str:
        return f"{self.base}+{self.offset}"


@dataclass(frozen=True, slots=True)
class NegatedPredicate:
    """``!p``."""

    name: str

    def __str__(self) -> str:
        return f"!{self.name}"


@dataclass(frozen=True, slots=True)
class Pair:
    """``d|p``: two results of one instruction."""

    first: Register | Sink
    second: Register | Sink

    def __str__(self) -> str:
        return f"{self.first}|{self.second}"


Operand = Vector | Arguments | Address | Displacement | NegatedPredicate | Pair | Atom


def _join_items(items: tuple[object, ...]) -> str:
    return ", ".join(map(str, items))


# WARP_SZ is a constant. Components belong to vector registers; bytes and halves, to video instructions.
_NOT_CONSTANT = rf"(?!WARP_SZ(?![\w$])){NAME}"
REGISTER = rf"{_NOT_CONSTANT}(?:\.(?:[xyzwrga]|b[0-3]?|h[01])(?![\w$]))?+"

_NAME = re.compile(NAME, re.ASCII)
_REGISTER = re.compile(REGISTER, re.ASCII)
_NOT = re.compile(rf"!(?={TRIVIA}{_NOT_CONSTANT})", re.ASCII)
_SINK = re.compile(r"_(?![\w$])", re.ASCII)
_CONSTANT_START = re.compile(r"[-+!~(0-9]|\.[0-9]|WARP_SZ(?![\w$])", re.ASCII)


def read_operands(cursor: Cursor, opcode: str) -> tuple[tuple[Operand, ...], list[list[Span]]]:
    """Return the operands at the cursor, and for each its span and those of its elements. Raises PtxError."""
    operands, spans, wanted = list[Operand](), list[list[Span]](), "an operand or ';'"
    while True:
        start, elements = cursor.position, list[Span]()
        operands.append(_read_operand(cursor, opcode, elements, wanted))
        spans.append([(start, cursor.end), *elements])
        if not cursor.accept(","):
            return tuple(operands), spans
        wanted = "an operand"


def _read_operand(cursor: Cursor, opcode: str, spans: list[Span], wanted: str = "an operand") -> Operand:
    if cursor.accept("{"):
        return Vector(_read_atoms(cursor, "}", spans))
    if cursor.accept("["):
        return _read_address(cursor)
    if opcode == "call" and cursor.accept("("):
        return Arguments(() if cursor.accept(")") else _read_atoms(cursor, ")", spans))
    if cursor.take(_NOT):
        return NegatedPredicate(cursor.expect(_NAME, "a predicate"))
    first = _read_atom(cursor, spans, wanted)
    if not isinstance(first, Immediate) and cursor.accept("|"):
        return Pair(first, _read_place(cursor, spans))
    if isinstance(first, Register) and cursor.accept("+"):
        return Displacement(first, _read_offset(cursor))
    return first


def _read_atoms(cursor: Cursor, close: str, spans: list[Span]) -> tuple[Atom, ...]:
    atoms = [_read_atom(cursor, spans)]
    while cursor.accept(","):
        atoms.append(_read_atom(cursor, spans))
    cursor.require(close, f"',' or '{close}'")
    return tuple(atoms)


def _read_atom(cursor: Cursor, spans: list[Span], wanted: str = "a register or a constant") -> Atom:
    if not cursor.peek(_CONSTANT_START):
        return _read_place(cursor, spans, wanted)
    start, value = cursor.position, read_immediate(cursor)
    spans.append((start, cursor.end))
    return value


def _read_place(cursor: Cursor, spans: list[Span], wanted: str = "a register or '_'") -> Register | Sink:
    start = cursor.position
    place = Sink() if cursor.take(_SINK) else Register(cursor.expect(_REGISTER, wanted))
    spans.append((start, cursor.end))
    return place


def _read_address(cursor: Cursor) -> Address:
    name, offset = cursor.take(_REGISTER), 0
    base = Register(name) if name else None
    if base is None or cursor.accept("+"):
        offset = _read_offset(cursor)
    elif cursor.sees("-"):
        raise cursor.error("an address has no '-': PTX writes a negative offset as '+-'", cursor.position)
    coordinates = list[Vector | Atom]()
    while cursor.accept(","):
        vector = cursor.accept("{")
        coordinates.append(Vector(_read_atoms(cursor, "}", [])) if vector else _read_atom(cursor, []))
    cursor.require("]", "'+', ',' or ']'" if base and not coordinates and not offset else "']'")
    return Address(base, offset, tuple(coordinates))


def _read_offset(cursor: Cursor) -> int:
    with cursor.blamed():
        immediate = read_immediate(cursor)
        if immediate.kind != "integer":
            raise PtxError("the offset of an address is an integer")
    return immediate.value


_PIECE = re.compile(r"\{[^}]*\}|[^,]+")


@lru_cache(maxsize=4096)
def parse_operands(text: str, opcode: str) -> tuple[Operand, ...]:
    """Return the operands in ``text``, known to be well-formed. Remembered, for traces are full of loops."""
    spaced = " ".join(text.split())
    # Without these marks a comma outside braces separates operands, and blanks mean nothing.
    if "(" in spaced or "[" in spaced or "/" in spaced or "% " in spaced:
        return read_operands(Cursor(Source(text)), opcode)[0]
    return tuple([_parse_piece(piece) for piece in _PIECE.findall(spaced.replace(" ", ""))])


def _parse_piece(piece: str) -> Operand:
    if piece[0] == "{":
        return Vector(tuple(map(_word, piece[1:-1].split(","))))
    return _word(piece)  # type: ignore[no-any-return]


class _Words(dict[str, Any]):
    """The operand that each word spells (an Atom within braces), for a trace names few registers often."""

    def __missing__(self, word: str) -> Operand:
        if len(self) >= 65536:
            self.clear()
        is_register = _REGISTER.fullmatch(word)
        operand = self[word] = Register(word) if is_register else _read_operand(Cursor(Source(word)), "", [])
        return operand


_word = _Words().__getitem__
