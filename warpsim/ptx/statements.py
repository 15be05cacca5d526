"""The statements of a PTX text, as the parser returns them.

    Statement
      x InstructionStatement   @!p mma.sync.aligned... {d0, d1}, ...;
      x RegisterDeclaration    .reg .b32 %r<9>, x;
      x VariableDeclaration    .shared .align 1024 .b8 tile[1024];
      x Directive              .version 8.7
      x Label                  LOOP:
      x Block                  { ... }
      x Kernel                 .visible .entry name(.param .u64 p) { ... }
      x Binding                //! ...

A statement keeps its source and the offset where it starts; two statements are equal when they say the same,
wherever they stand. Names lose the dot that PTX writes before them: a type is "b32", a modifier is "sync".
Source: PTX ISA 9.1, section 4.3.

This module does not know which opcodes, modifiers and operands belong together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar, overload

from ..base.errors import Location
from .operands import (
    Address,
    Arguments,
    Displacement,
    NegatedPredicate,
    Operand,
    Pair,
    Register,
    Vector,
    parse_operands,
    read_operands,
)
from .source import NAME, Cursor, Source, Span

__all__ = [
    "OPAQUE",
    "Binding",
    "Block",
    "Body",
    "Directive",
    "InstructionStatement",
    "Kernel",
    "Label",
    "NumberedNames",
    "Parameter",
    "Program",
    "RegisterDeclaration",
    "Statement",
    "VariableDeclaration",
    "operand_names",
    "read_instruction",
]

Guard = tuple[bool, str]  # negated, name of the predicate
Made = TypeVar("Made")

_HEAD = re.compile(r"//![^\n]*|[^\s;,{(<]+|.", re.ASCII)
_NAME = re.compile(NAME, re.ASCII)
_MODIFIER = re.compile(r"\.\w+(?:::\w+)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Statement:
    """Anything that can stand in a program."""

    source: Source = field(kw_only=True, repr=False, compare=False)
    start: int = field(kw_only=True, repr=False, compare=False)

    def location(self) -> Location:
        """Return the place of the word that opens the statement."""
        head = _HEAD.match(self.source.text, self.start)
        return self.source.location(self.start, head and head.end())


class _Remembering(Statement):
    """A statement that keeps what was made of it, for it may be executed often; no part of its value."""

    __slots__ = ("_made", "_names", "_operands")
    _operands: tuple[Operand, ...] | None
    _names: tuple[str, ...]
    _made: tuple[Hashable, Any]

    def remembered(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return what ``make`` returns, or what it returned the last time if that was for the same key."""
        try:
            known, made = self._made
        except AttributeError:
            known = None
        if known != key or known is None:
            made = make()
            object.__setattr__(self, "_made", (key, made))
        return made  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class InstructionStatement(_Remembering):
    """One instruction: opcode "mma", modifiers ("sync", "aligned", "m16n8k16", ...), and operands.

    ``operand_text`` is the operands as written, None where there are none; ``operands`` reads it on demand.
    """

    guard: Guard | None
    opcode: str
    modifiers: tuple[str, ...]
    operand_text: str | None = field(compare=False)

    @property
    def operands(self) -> tuple[Operand, ...] | None:
        """The operands in the order written, or None where there are none, as in a bare mnemonic."""
        try:
            return self._operands
        except AttributeError:  # not asked for before
            text = self.operand_text
            operands = None if text is None else parse_operands(text, self.opcode)
            object.__setattr__(self, "_operands", operands)
            return operands

    @property
    def names(self) -> tuple[str, ...]:
        """Every name in the guard and the operands, each of them once."""
        try:
            return self._names
        except AttributeError:  # not asked for before
            guard = [] if self.guard is None else [self.guard[1]]
            named = (name for operand in self.operands or () for name in operand_names(operand))
            names = tuple(dict.fromkeys((*guard, *named)))
            object.__setattr__(self, "_names", names)
            return names

    @property
    def mnemonic(self) -> str:
        """The opcode and its modifiers, joined by dots."""
        return ".".join((self.opcode, *self.modifiers))

    def location(self) -> Location:
        """Return the place of the mnemonic."""
        return self.source.location(*_read_head(Cursor(self.source, self.start)).span)

    def modifier_location(self, index: int) -> Location:
        """Return the place of ``modifiers[index]``, its dot included."""
        return self.source.location(*self._spans().modifiers[index])

    def operand_location(self, index: int, element: int | None = None) -> Location:
        """Return the place of ``operands[index]``, or of one element of that vector, pair or argument
        list.
        """
        operand, *elements = self._spans().operands[index]
        written = element is not None and element < len(elements)  # not so of a vector that has a name
        return self.source.location(*elements[element or 0] if written else operand)

    def _spans(self) -> _Spans:
        # Few statements are ever asked for their spans, so the text is read again instead of keeping them.
        return read_instruction(Cursor(self.source, self.start))[1]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, InstructionStatement):
            return NotImplemented
        heads = [(each.guard, each.opcode, each.modifiers) for each in (self, other)]
        return heads[0] == heads[1] and self.operands == other.operands

    def __str__(self) -> str:
        guard = "" if self.guard is None else f"@{'!' * self.guard[0]}{self.guard[1]} "
        operands = ", ".join(map(str, self.operands or ()))
        return f"{guard}{self.mnemonic}{operands and ' '}{operands};"


def operand_names(operand: Operand) -> Iterator[str]:
    """Yield the names in an operand: of registers, variables, or any other thing that a name may stand
    for.
    """
    if isinstance(operand, Register | NegatedPredicate):
        yield operand.name
    elif isinstance(operand, Displacement):
        yield operand.base.name
    elif isinstance(operand, Vector | Arguments):
        yield from (item.name for item in operand.elements if isinstance(item, Register))
    elif isinstance(operand, Address):
        parts = (operand.base, *operand.coordinates)
        yield from (name for part in parts if part is not None for name in operand_names(part))
    elif isinstance(operand, Pair):
        yield from (item.name for item in (operand.first, operand.second) if isinstance(item, Register))


@dataclass(frozen=True, slots=True)
class _Spans:
    """Where the parts of an instruction stand; an operand's span is followed by those of its elements."""

    modifiers: list[Span]
    operands: list[list[Span]]


class NumberedNames(Sequence[str]):
    """The names that ``%r<2>`` declares, "%r0" and "%r1"; they take no memory, for compilers declare many."""

    __slots__ = ("size", "stem")

    def __init__(self, stem: str, size: int) -> None:
        self.stem = stem
        self.size = size

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        numbers = range(self.size)[index]
        return f"{self.stem}{numbers}" if isinstance(numbers, int) else tuple(map(self.__getitem__, numbers))

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, Sequence) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"NumberedNames({self.stem!r}, {self.size})"


@dataclass(frozen=True, slots=True)
class RegisterDeclaration(Statement):
    """Registers of one type: ``%r<2>`` is given as "%r0", "%r1". ``vector`` is 1, or 2, 4 for .v2, .v4."""

    type: str
    names: Sequence[str]
    vector: int = 1


OPAQUE = ("texref", "samplerref", "surfref")  # types of textures, samplers and surfaces


@dataclass(frozen=True, slots=True)
class VariableDeclaration(Statement):
    """A variable or parameter in memory; a declaration of several gives a statement for each.

    ``size`` is in bytes, 0 for ``name[]`` without initial values; ``align`` is None where not written;
    ``initializer`` is the text after ``=``. ``extents`` are those of an array, then that of a vector.
    """

    space: str
    align: int | None
    type: str
    name: str
    size: int
    initializer: str | None = None
    extents: tuple[int, ...] = ()
    linkage: str = ""  # "extern", "visible", "weak" or "common"
    vector: int = 1
    pointer: tuple[int, ...] = ()  # of a parameter with .ptr: the alignment of what it points to
    hidden: bool = False  # a parameter that the launch API does not take


@dataclass(frozen=True, slots=True)
class Directive(Statement):
    """Any other directive: its name without the dot, and its arguments as written."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Label(Statement):
    """A place to jump to."""

    name: str


@dataclass(frozen=True, slots=True)
class Block(Statement):
    """Statements in braces, which open a scope for declarations and labels."""

    statements: tuple[Statement, ...]


Parameter = VariableDeclaration | RegisterDeclaration


class Body(Sequence[Statement]):
    """The statements in the braces of a function, known to be well-formed: read when they are asked for.

    They stand at the characters ``start`` to ``end``. Of a large module most functions are never asked for.
    """

    __slots__ = ("_read", "_statements", "end", "source", "start")

    def __init__(self, source: Source, start: int, end: int, read: Callable[[Body], tuple[Statement, ...]]):
        self.source = source
        self.start = start
        self.end = end
        self._read = read
        self._statements: tuple[Statement, ...] | None = None

    def all(self) -> tuple[Statement, ...]:
        """Return the statements, read at the first call."""
        if self._statements is None:
            self._statements = self._read(self)
        return self._statements

    def find(self, pattern: re.Pattern[str]) -> bool:
        """Return whether a pattern occurs in the text."""
        return pattern.search(self.source.text, self.start, self.end) is not None

    def __len__(self) -> int:
        return len(self.all())

    def __iter__(self) -> Iterator[Statement]:
        return iter(self.all())

    @overload
    def __getitem__(self, index: int) -> Statement: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Statement, ...]: ...
    def __getitem__(self, index: int | slice) -> Statement | tuple[Statement, ...]:
        return self.all()[index]

    def __eq__(self, other: object) -> bool:
        return self.all() == tuple(other) if isinstance(other, Sequence) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.all())

    def __repr__(self) -> str:
        return repr(self.all())


@dataclass(frozen=True, slots=True)
class Kernel(Statement):
    """An entry or a func; ``body`` is None where it is only declared, ``tuning`` is ".maxntid 128" or so."""

    kind: Literal["entry", "func"]
    name: str
    parameters: tuple[Parameter, ...]
    body: Body | None
    results: tuple[Parameter, ...] = ()
    tuning: str = ""
    linkage: str = ""


@dataclass(frozen=True, slots=True)
class Binding(Statement):
    """A ``//!`` line, which binds data to registers in a trace: the text after the mark."""

    text: str


@dataclass(frozen=True, slots=True)
class Program:
    """The statements of a text in order, and the text."""

    statements: tuple[Statement, ...]
    source: Source = field(repr=False, compare=False)


def instructions_of(statements: Iterable[Statement]) -> Iterator[InstructionStatement]:
    """Yield every instruction among statements, in braces too, in the order of the text."""
    for statement in statements:
        if isinstance(statement, Block):
            yield from instructions_of(statement.statements)
        elif isinstance(statement, InstructionStatement):
            yield statement


def read_instruction(cursor: Cursor) -> tuple[InstructionStatement, _Spans]:
    """Return the instruction at the cursor, up to its ``;``, and where its parts stand. Raises PtxError."""
    start, head, first = cursor.position, _read_head(cursor), cursor.position
    written = not (cursor.at_end() or cursor.sees(";"))
    operand_spans = read_operands(cursor, head.opcode)[1] if written else []
    text = cursor.text[first : cursor.end] if written else None
    statement = InstructionStatement(
        head.guard, head.opcode, head.modifiers, text, source=cursor.source, start=start
    )
    return statement, _Spans(head.modifier_spans, operand_spans)


class _Head(NamedTuple):
    """An instruction up to its operands, and where the mnemonic and its modifiers stand."""

    guard: Guard | None
    opcode: str
    modifiers: tuple[str, ...]
    span: Span
    modifier_spans: list[Span]


def _read_head(cursor: Cursor) -> _Head:
    """Return the instruction at the cursor, up to its operands. Raises PtxError."""
    guard, start = _read_guard(cursor), cursor.position
    opcode = cursor.expect(_NAME, "an instruction")
    modifiers, spans = _read_modifiers(cursor)
    return _Head(guard, opcode, modifiers, (start, cursor.end), spans)


def _read_guard(cursor: Cursor) -> Guard | None:
    if not cursor.accept("@"):
        return None
    return cursor.accept("!"), cursor.expect(_NAME, "a predicate")


def _read_modifiers(cursor: Cursor) -> tuple[tuple[str, ...], list[Span]]:
    modifiers, spans = list[str](), list[Span]()
    while cursor.sees("."):
        start = cursor.position
        modifiers.append(cursor.expect(_MODIFIER, "a modifier")[1:])
        spans.append((start, cursor.end))
    return tuple(modifiers), spans
