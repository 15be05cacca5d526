"""PTX text to statements (PTX ISA 9.1, sections 4 and 11).

    program     = { statement }
    statement   = "//!" text | label ":" | "{" { statement } "}" | instruction ";" | directive
    instruction = [ "@" [ "!" ] name ] name { modifier } [ operands ]
    modifier    = "." word { "::" word }
    directive   = registers | variables | kernel | section | one of _ARGUMENTS and _TO_SEMICOLON
    registers   = ".reg" type name [ "<" integer ">" ] { "," name [ "<" integer ">" ] } ";"
    variables   = [ linkage ] space [ ".align" integer ] type variable { "," variable } ";"
    variable    = name { "[" [ integer ] "]" } [ "=" initializer ]
    kernel      = [ linkage ] ( ".entry" | ".func" [ parameters ] ) name [ parameters ] tuning ( body | ";" )
    type        = [ ".v2" | ".v4" ] ".b32" etc.
    linkage     = ".extern" | ".visible" | ".weak" | ".common"

This is the syntax that ptxas 13.0 takes, except that instructions and declarations may stand outside a
kernel, as in a trace. Left out: textures, ``#line``, and ``name[4]`` as an operand.

Most of a long trace is plain instructions, and one regular expression reads each of those whole. What it does
not match is read token by token, with the same result; every error comes from there.

This module does not know what any opcode, modifier or directive means.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import prod
from typing import Literal, NamedTuple

from ..base.errors import PtxError
from .constants import read_integer
from .operands import REGISTER
from .sections import read_intermediate_source, read_section
from .source import BINDING, NAME, TRIVIA, Cursor, Source
from .source_lines import Reader, unread
from .statements import (
    OPAQUE,
    Binding,
    Block,
    Body,
    Directive,
    InstructionStatement,
    Kernel,
    Label,
    NumberedNames,
    Parameter,
    Program,
    RegisterDeclaration,
    Statement,
    VariableDeclaration,
    read_instruction,
)

__all__ = ["garbage_collection_paused", "parse", "parse_instruction"]


def parse(text: str, file: str = "<string>", read: Reader = unread) -> Program:
    """Return the statements of a PTX text: a trace, a module, or a few lines. Raises PtxError.

    ``read`` gives the lines of the files that the text was compiled from, for messages.
    """
    source = Source(text, file, read)
    with garbage_collection_paused():
        return Program(_read_program(source), source)


def parse_instruction(text: str, file: str = "<string>") -> InstructionStatement:
    """Return the only instruction in ``text``, with or without operands and its ``;``. Raises PtxError."""
    cursor = Cursor(Source(text, file))
    instruction, _ = read_instruction(cursor)
    if not cursor.at_end():
        cursor.require(";", _text_behind_opcode(instruction))
    if not cursor.at_end():
        cursor.fail("one instruction and nothing more")
    return instruction


@contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Run a block without garbage collection: loading makes many objects that stay, and few cycles."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


# One plain instruction and the blanks and comments after it; possessive, so that nothing is tried twice.
_BLANK = r"[ \t\r\n]*+"
_PLAIN_INTEGER = r"0[xX][0-9a-fA-F]{1,16}+|0|[1-9][0-9]{0,18}+"
_PLAIN_FLOAT = r"0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}"
_PLAIN_ATOM = rf"(?:{REGISTER}|_|{_PLAIN_FLOAT}|-?+(?:{_PLAIN_INTEGER}))"
_PLAIN_OPERAND = (
    rf"(?:\{{{_BLANK}{_PLAIN_ATOM}{_BLANK}(?:,{_BLANK}{_PLAIN_ATOM}{_BLANK})*+\}}"
    rf"|\[{_BLANK}{REGISTER}(?:\+-?+(?:{_PLAIN_INTEGER}))?+{_BLANK}\]|{REGISTER}\|{REGISTER}|{_PLAIN_ATOM})"
)
_PLAIN_OPERANDS = rf"{_PLAIN_OPERAND}(?:{_BLANK},{_BLANK}{_PLAIN_OPERAND})*+"
_PLAIN = re.compile(
    rf"(?:@(!?+)({NAME})[ \t]++)?+([A-Za-z][\w.]*+(?:::[\w.]++)*+)"
    rf"(?:[ \t\r\n]++({_PLAIN_OPERANDS}))?+{_BLANK};{TRIVIA}",
    re.ASCII,
)
# Between plain instructions stand labels and, where they were compiled for debuggers, source lines.
_LINE = (
    r"\d+\s+\d+\s+\d+(?:\s*,\s*function_name\s+[\w$]+(?:\s*\+\s*\d+)?\s*,\s*inlined_at\s+\d+\s+\d+\s+\d+)?"
)
_PLACE = r"\d+\s+\d+\s+\d+"
_MARK = re.compile(
    rf"(?:({NAME}){TRIVIA}:(?!:)|\.(loc)(?!\w){TRIVIA}({_LINE})"
    rf"|\.(loc_intermediate)(?!\w){TRIVIA}({_PLACE})){TRIVIA}",
    re.ASCII,
)
# As many of both as follow each other: whether they are well-formed.
_STRETCH = re.compile(
    rf"(?:(?:(?:@!?+{NAME}[ \t]++)?+[A-Za-z]\w*+(?:\.\w++(?:::\w++)*+)*+"
    rf"(?:[ \t\r\n]++{_PLAIN_OPERANDS})?+{_BLANK};"
    rf"|{NAME}{TRIVIA}:(?!:)|\.loc(?!\w){TRIVIA}(?:{_LINE})"
    rf"|\.loc_intermediate(?!\w){TRIVIA}(?:{_PLACE})){TRIVIA})++",
    re.ASCII,
)
_MNEMONIC = re.compile(r"\w+(?:\.\w+(?:::\w+)*)*", re.ASCII)


@lru_cache(maxsize=4096)
def _split(mnemonic: str) -> tuple[str, tuple[str, ...]] | None:
    """Opcode and modifiers, or None where the dots and colons do not make any."""
    if not _MNEMONIC.fullmatch(mnemonic):
        return None
    opcode, *modifiers = mnemonic.split(".")
    return opcode, tuple(modifiers)


_MOST_REGISTERS = 1 << 20  # in one function, or outside; a mistyped count should not fill the memory
_MOST_STATEMENTS = 1 << 20  # in one text; each takes far more memory than the two characters of "{}"
_DEEPEST = 100  # braces; a recursive walk over the statements would exhaust Python's stack


class _Scope(NamedTuple):
    """Braces still open: the statements in them so far, and what makes these a statement at the ``}``.

    Of a function (``later``) plain instructions are not among them: they are read when they are asked for.
    """

    start: int
    close: Callable[[tuple[Statement, ...], int], Statement]
    statements: list[Statement]
    later: bool = False


@dataclass(slots=True)
class _Room:
    """How much of what takes memory a text may still declare."""

    statements: int = _MOST_STATEMENTS
    registers: int = _MOST_REGISTERS

    def take_statement(self, source: Source, position: int) -> None:
        """One statement more; raises PtxError."""
        self.statements -= 1
        if self.statements < 0:
            message = f"this statement is one more than the {_MOST_STATEMENTS} supported"
            raise PtxError(message, source.location(position))

    def take_registers(self, cursor: Cursor, start: int, count: int) -> None:
        """So many registers more; raises PtxError."""
        self.registers -= count
        if self.registers < 0:
            total = _MOST_REGISTERS - self.registers
            message = f"{total} registers are more than the {_MOST_REGISTERS} supported"
            raise cursor.error(message, start, cursor.end)


def _read_program(source: Source, plain: re.Pattern[str] = _PLAIN) -> tuple[Statement, ...]:
    return _Reader(source, plain, _Room()).read(0, len(source.text))


def _read_body(body: Body) -> tuple[Statement, ...]:
    """Return the statements of a function that has been found to be well-formed."""
    with garbage_collection_paused():
        return _Reader(body.source, _PLAIN, _Room()).read(body.start, body.end)


class _Reader:
    """Reads a stretch of text; what ``plain`` does not match, token by token.

    ``later`` counts the functions that it is in: their plain instructions are passed over, as they are read
    when the function is asked for.
    """

    def __init__(self, source: Source, plain: re.Pattern[str], room: _Room) -> None:
        self.source = source
        self.plain = plain
        self.room = room
        # The whole text is the outermost scope, which no brace closes.
        self.scopes = [_Scope(0, partial(_block, source, 0), [])]
        self.later = 0

    def read(self, start: int, end: int) -> tuple[Statement, ...]:
        """Return the statements from one offset to another."""
        cursor = Cursor(self.source, start)
        position = cursor.position
        while position < end:
            position = self._pass_plain(position) if self.later else self._read_plain(position, end)
            if position < end:
                cursor.seek(position)
                self.room.take_statement(self.source, position)
                _read_statement(cursor, self)
                position = cursor.position
        if len(self.scopes) > 1:
            raise cursor.error("this '{' is never closed: no '}' follows", self.scopes[-1].start)
        return tuple(self.scopes[0].statements)

    def _read_plain(self, position: int, end: int) -> int:
        """Read the plain instructions, labels and source lines that follow; return where something else
        stands.
        """
        source, text, match_plain, room = self.source, self.source.text, self.plain.match, self.room
        statements, marks = self.scopes[-1].statements, self.plain is _PLAIN
        while position < end:
            match = match_plain(text, position)
            if match and (split := _split(match[3])):
                negation, predicate, _, operands = match.groups()
                guard = None if predicate is None else (negation == "!", predicate)
                made: Statement = InstructionStatement(guard, *split, operands, source=source, start=position)
            elif marks and (match := _MARK.match(text, position)):
                if label := match[1]:
                    made = Label(label, source=source, start=position)
                else:
                    name, place = filter(None, match.groups())
                    made = Directive(name, place, source=source, start=position)
            else:
                return position
            room.take_statement(source, position)
            statements.append(made)
            position = match.end()
        return position

    def _pass_plain(self, position: int) -> int:
        """Pass over what _read_plain reads, if it is well-formed."""
        match = _STRETCH.match(self.source.text, position)
        if match is None:
            return position
        count = self.source.text.count(";", position, match.end())
        if count > self.room.statements:  # or there are many comments: this counts one by one
            return self._read_plain(position, match.end())
        self.room.statements -= count
        return match.end()


def _block(source: Source, start: int, statements: tuple[Statement, ...], end: int) -> Block:
    return Block(statements, source=source, start=start)


def _read_statement(cursor: Cursor, reader: _Reader) -> None:
    source, start, statements = cursor.source, cursor.position, reader.scopes[-1].statements
    if line := cursor.take(_BINDING):
        statements.append(Binding(line.removeprefix(BINDING).strip(), source=source, start=start))
    elif label := cursor.take(_LABEL):
        cursor.require(":")
        statements.append(Label(label, source=source, start=start))
    elif cursor.sees("{"):
        _open_scope(cursor, reader, partial(_block, source, start))
    elif cursor.sees("}"):
        _close_scope(cursor, reader)
    elif cursor.sees("."):
        _read_directive(cursor, reader)
    else:
        instruction, _ = read_instruction(cursor)
        cursor.require(";", _text_behind_opcode(instruction))
        statements.append(instruction)


def _text_behind_opcode(instruction: InstructionStatement) -> str:
    return "';'" if instruction.operand_text is None else "',' or ';'"


def _open_scope(
    cursor: Cursor,
    reader: _Reader,
    close: Callable[[tuple[Statement, ...], int], Statement],
    later: bool = False,
) -> None:
    start = cursor.position
    if len(reader.scopes) > _DEEPEST:
        raise cursor.error(f"braces are nested more than {_DEEPEST} deep", start)
    cursor.require("{", "'{' or ';'")
    reader.scopes.append(_Scope(start, close, [], later))
    reader.later += later


def _close_scope(cursor: Cursor, reader: _Reader) -> None:
    end = cursor.position
    if len(reader.scopes) == 1:
        raise cursor.error("this '}' closes no '{'", cursor.position)
    cursor.require("}")
    scope = reader.scopes.pop()
    reader.later -= scope.later
    reader.scopes[-1].statements.append(scope.close(tuple(scope.statements), end))


_WORD = re.compile(r"\.\w+", re.ASCII)
_NAME = re.compile(NAME, re.ASCII)
_LABEL = re.compile(rf"{NAME}(?={TRIVIA}:(?!:))", re.ASCII)
_BINDING = re.compile(rf"{BINDING}[^\n]*")
_LINKAGE = re.compile(r"\.(?:extern|visible|weak|common)(?!\w)")
_SPACES = {"const", "global", "local", "param", "shared"}
# Directives that end at a semicolon; then those that end with their arguments, which therefore must be known.
_LIST = rf"{NAME}{TRIVIA}(?:,{TRIVIA}{NAME}{TRIVIA})*"
_TO_SEMICOLON = {
    "alias": (re.compile(rf"{NAME}{TRIVIA},{TRIVIA}{NAME}{TRIVIA}", re.ASCII), "two names"),
    "branchtargets": (re.compile(_LIST, re.ASCII), "labels"),
    "calltargets": (re.compile(_LIST, re.ASCII), "functions"),
    "pragma": (
        re.compile(rf'"[^"\n]*"{TRIVIA}(?:,{TRIVIA}"[^"\n]*"{TRIVIA})*', re.ASCII),
        "words in quotes",
    ),
}
_ARGUMENTS = {
    "version": (re.compile(r"\d+\.\d+(?![\w.])"), "a version, such as 8.7"),
    "target": (re.compile(r"\w+(?:\s*,\s*\w+)*"), "a target, such as sm_90a"),
    "address_size": (re.compile(r"(?:32|64|0[xX](?:20|40))U?(?!\w)"), "32 or 64"),
    "file": (re.compile(r'\d+\s+"[^"\n]*"(?:\s*,\s*\d+(?:\s*,\s*\d+)?)?'), "a number and a name in quotes"),
    "loc": (re.compile(_LINE), "file, line and column"),
    "loc_intermediate": (re.compile(_PLACE), "file, line and column"),
}


def _read_directive(cursor: Cursor, reader: _Reader) -> None:
    source, start, statements = cursor.source, cursor.position, reader.scopes[-1].statements
    linked = cursor.take(_LINKAGE)
    leading = _read_qualities(cursor)
    name = cursor.expect(_WORD, "a directive")[1:]
    if name in _SPACES:
        qualities = leading.joined(_read_qualities(cursor))
        declared = _read_variables(cursor, start, name, reader.room)
        qualities.check(cursor, name)
        align, linkage = qualities.align, (linked or "")[1:]
        statements.extend(replace(each, align=align, linkage=linkage) for each in declared)
    elif leading.given:
        raise cursor.error(f"'{leading.given}' is for variables", start, cursor.end)
    elif name in ("entry", "func"):
        _read_kernel(cursor, start, reader, "entry" if name == "entry" else "func", (linked or "")[1:])
    elif linked:
        raise cursor.error(f"'{linked}' is for '.entry', '.func' and variables only", start, cursor.end)
    elif name == "reg":
        statements.append(_read_registers(cursor, start, reader.room))
    elif name in _ARGUMENTS:
        statements.append(Directive(name, cursor.expect(*_ARGUMENTS[name]), source=source, start=start))
    elif name == "callprototype":
        read_prototype(cursor)
        text = cursor.text[start + len(".callprototype") : cursor.end].strip()
        statements.append(Directive(name, text, source=source, start=start))
        cursor.require(";")
    elif name in _TO_SEMICOLON:
        text = _read_raw(cursor, ";")
        pattern, wanted = _TO_SEMICOLON[name]
        if not pattern.fullmatch(text):
            raise cursor.error(f".{name} takes {wanted}", start, cursor.end)
        statements.append(Directive(name, text, source=source, start=start))
        cursor.require(";")
    elif name in _SECTIONS:
        statements.append(Directive(name, _SECTIONS[name](cursor), source=source, start=start))
    else:
        raise cursor.error(f"PTX has no directive '.{name}'", start, cursor.end)


_SECTIONS = {"section": read_section, "nv_intermediate_source_section": read_intermediate_source}
_TOKEN = re.compile(r'"[^"\n]*"|[\w$%.]+|.', re.ASCII)
# Stretches without brackets, quotes and comments: in which nothing ends, and in which no comma does.
_WITHIN, _BESIDE = (re.compile(rf'[^"{{}}()\[\]/{more}]*[^"{{}}()\[\]/{more}\s]') for more in ("", ",;"))
_NESTING = {"{": 1, "(": 1, "[": 1, "}": -1, ")": -1, "]": -1}


def _read_raw(cursor: Cursor, stops: str) -> str:
    """Return the text up to the first of the characters ``stops`` outside braces, brackets and
    parentheses.
    """
    start, depth = cursor.position, 0
    while not cursor.at_end() and (depth or cursor.text[cursor.position] not in stops):
        if not cursor.take(_WITHIN if depth or stops in "{}" else _BESIDE):
            depth += _NESTING.get(cursor.take(_TOKEN) or "", 0)
    return cursor.text[start : cursor.end]


_BITS = {f"{letter}{bits}": bits for bits in (8, 16, 32, 64) for letter in "bus"}
_BITS |= {"b128": 128, "f16": 16, "f16x2": 32, "f32": 32, "f64": 64}
_BITS |= dict.fromkeys(OPAQUE, 64)  # handles
_VECTOR = re.compile(r"\.v[24](?!\w)")
_LARGEST_VECTOR = 128  # bits (PTX ISA 9.1, section 5.4.2 "Vectors")


def _read_type(cursor: Cursor, place: str) -> tuple[int, str]:
    """Return the vector length (1, 2, 4) and the type of a register or variable."""
    length, start = cursor.take(_VECTOR), cursor.position
    name = cursor.expect(_WORD, "a type, such as '.b32'")[1:]
    known = name in _BITS and not (name in OPAQUE and place == "register")
    if not known and (name, place) != ("pred", "register"):
        raise cursor.error(
            f"no {place} has the type '.{name}': declare it by its size, as '.b32' etc.", start, cursor.end
        )
    count = int(length[2]) if length else 1
    if length and (name == "pred" or name in OPAQUE or count * _BITS[name] > _LARGEST_VECTOR):
        raise cursor.error(f"no vector of {count} .{name}: it has at most 128 bits", start, cursor.end)
    return count, name


def _read_registers(cursor: Cursor, start: int, room: _Room) -> RegisterDeclaration:
    length, kind = _read_register_type(cursor)
    groups = list[Sequence[str]]()
    while not cursor.sees(";") or groups:  # ptxas takes a declaration without names
        name = _read_name(cursor, "a register name")
        groups.append(_read_numbered(cursor, name, room) if cursor.accept("<") else (name,))
        if not cursor.accept(","):
            break
    cursor.require(";", "',' or ';'")
    names = groups[0] if len(groups) == 1 else tuple(name for group in groups for name in group)
    return RegisterDeclaration(kind, names, length, source=cursor.source, start=start)


def _read_register_type(cursor: Cursor) -> tuple[int, str]:
    """Return vector length and type; ptxas passes over alignments, as registers have no places."""
    qualities = _read_qualities(cursor)
    qualities.check(cursor, "reg")
    if qualities.align is not None and (qualities.align < 1 or qualities.align & qualities.align - 1):
        raise cursor.error("an alignment is a power of two", cursor.end - 1, cursor.end)
    return _read_type(cursor, "register")


def _read_numbered(cursor: Cursor, name: str, room: _Room) -> NumberedNames:
    start, count = cursor.position, read_integer(cursor)
    room.take_registers(cursor, start, count)
    cursor.require(">")
    return NumberedNames(name, count)


def _read_variables(cursor: Cursor, start: int, space: str, room: _Room) -> list[VariableDeclaration]:
    length, kind = _read_type(cursor, "variable")
    variables = list[VariableDeclaration]()
    while not cursor.sees(";") or variables:  # ptxas takes a declaration without names
        name, extents = _read_array(cursor)
        initializer = _read_initializer(cursor) if cursor.accept("=") else None
        if extents[:1] == (0,) and initializer is not None:
            extents = (len(initial_items(initializer)), *extents[1:])
        size = length * _BITS[kind] // 8
        for extent in extents:
            size *= extent
            if size >> 63:
                message = f"{name} has {size} bytes, more than 64 bits can address"
                raise cursor.error(message, start, cursor.end)
        if length > 1:
            extents = (*extents, length)
        room.take_statement(cursor.source, start)
        variables.append(
            VariableDeclaration(
                space,
                None,
                kind,
                name,
                size,
                initializer,
                extents,
                vector=length,
                source=cursor.source,
                start=start,
            )
        )
        if not cursor.accept(","):
            break
    cursor.require(";", "',' or ';'")
    return variables


_ATTRIBUTES = re.compile(rf"\.attribute{TRIVIA}\({TRIVIA}", re.ASCII)
_ATTRIBUTE = re.compile(
    rf"\.(?:managed|unified{TRIVIA}\({TRIVIA}\d+{TRIVIA},{TRIVIA}\d+{TRIVIA}\))(?!\w)", re.ASCII
)


class _Qualities(NamedTuple):
    """``.align`` and ``.attribute``, before or behind a space: the latter changes nothing where all addresses
    are in one space (PTX ISA 9.1, section 5.4.8). ``given`` is the first of them as written, "" for none.
    """

    given: str = ""
    align: int | None = None
    attributes: tuple[tuple[str, int, int], ...] = ()  # each with its place

    def joined(self, other: _Qualities) -> _Qualities:
        """Return these and others behind them; the last alignment counts, or the first that is not a power of
        two.
        """
        kept = other.align is None or (self.align is not None and self.align.bit_count() != 1)
        align = self.align if kept else other.align
        return _Qualities(self.given or other.given, align, (*self.attributes, *other.attributes))

    def check(self, cursor: Cursor, what: str) -> None:
        """Raise PtxError for an attribute that a space, or a function, does not have."""
        if what == "function" and self.align is not None:
            raise cursor.error("'.align' is for variables", cursor.position)
        for attribute, start, end in self.attributes:
            if what not in ("global", "function") or (what, attribute) == ("function", ".managed"):
                message = f"'{attribute}' is an attribute of .global variables" + (
                    " and of functions" if attribute != ".managed" else ""
                )
                raise cursor.error(message, start, end)


def _read_qualities(cursor: Cursor) -> _Qualities:
    found = _Qualities()
    while True:
        if word := cursor.take(_ALIGN):
            found = found.joined(_Qualities(word, read_integer(cursor)))
        elif word := cursor.take(_ATTRIBUTES):
            found = found.joined(_Qualities(word.strip(), None, _read_attributes(cursor)))
        else:
            return found


def _read_attributes(cursor: Cursor) -> tuple[tuple[str, int, int], ...]:
    found = list[tuple[str, int, int]]()
    while True:
        start, name = cursor.position, cursor.expect(_ATTRIBUTE, "'.managed' or '.unified(id, id)'")
        found.append((name, start, cursor.end))
        if not cursor.accept(","):
            break
    cursor.require(")", "',' or ')'")
    return tuple(found)


def _read_name(cursor: Cursor, what: str, named: re.Pattern[str] = _NAME) -> str:
    """Return the name of a variable or register."""
    start, name = cursor.position, cursor.expect(named, what)
    if name == "WARP_SZ":
        raise cursor.error("WARP_SZ is a constant, and no name", start, cursor.end)
    return name


def _read_initializer(cursor: Cursor) -> str:
    return _read_raw(cursor, ",;") or cursor.fail("a value")


def initial_items(text: str) -> list[str]:
    """Return what stands in the outermost braces of initial values, item by item; one item without braces."""
    text = text.strip()
    if not (text.startswith("{") and text.endswith("}")):
        return [text]
    items, depth = [""], 0
    for sign in text[1:-1]:
        depth += (sign in "{(") - (sign in "})")
        if sign == "," and not depth:
            items.append("")
        else:
            items[-1] += sign
    return [item.strip() for item in items] if text[1:-1].strip() else []


def _read_array(cursor: Cursor, named: re.Pattern[str] = _NAME) -> tuple[str, tuple[int, ...]]:
    """Return the name, and the extents that follow, 0 for ``[]``."""
    name, extents = _read_name(cursor, "a variable name", named), list[int]()
    while cursor.accept("["):
        extents.append(0 if cursor.sees("]") and not extents else read_integer(cursor))
        cursor.require("]")
    return name, tuple(extents)


_ALIGN = re.compile(r"\.align(?!\w)")
_HIDDEN = re.compile(r"\.hidden(?!\w)")
_POINTER = re.compile(rf"\.ptr(?!\w){TRIVIA}(?:\.(?:global|shared|const|local)(?!\w))?", re.ASCII)
_NAMELESS = re.compile(r"_(?![\w$])")
_NAME_OR_NONE = re.compile(rf"{NAME}|{_NAMELESS.pattern}", re.ASCII)
# Between a kernel's parameters and its body, as in ".maxntid 128, 1, 1 .minnctapersm 2".
_PRAGMA = rf'\.pragma{TRIVIA}"[^"\n]*"{TRIVIA}(?:,{TRIVIA}"[^"\n]*"{TRIVIA})*;{TRIVIA}'
_NUMBER = r"(?:(?:0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?|WARP_SZ)(?![\w$])"
_LANGUAGE = rf'(?:{_NUMBER}|"[^"\n]*"){TRIVIA}'
_TUNING = re.compile(
    rf"(?:{_PRAGMA}|\.language(?!\w){TRIVIA}{_LANGUAGE}(?:,{TRIVIA}{_LANGUAGE})*"
    rf"|\.(?!pragma|language(?!\w))\w+{TRIVIA}(?:{_NUMBER}{TRIVIA}(?:,{TRIVIA}{_NUMBER}{TRIVIA})*)?)*",
    re.ASCII,
)


def read_prototype(cursor: Cursor) -> Kernel:
    """Return the function without a name that follows ``.callprototype``. Raises PtxError."""
    start, results = cursor.position, _read_parameters(cursor, _NAME_OR_NONE)
    cursor.expect(_NAMELESS, "the name _")
    parameters, tuning = _read_parameters(cursor, _NAME_OR_NONE), (cursor.take(_TUNING) or "").strip()
    return Kernel(
        "func", "_", parameters, None, results=results, tuning=tuning, source=cursor.source, start=start
    )


def _read_kernel(
    cursor: Cursor, start: int, reader: _Reader, kind: Literal["entry", "func"], linkage: str
) -> None:
    if kind == "func":
        _read_qualities(cursor).check(cursor, "function")
    results = _read_parameters(cursor) if kind == "func" else ()
    name, parameters = cursor.expect(_NAME, "a name"), _read_parameters(cursor)
    tuning = (cursor.take(_TUNING) or "").strip()
    make = partial(
        Kernel,
        kind,
        name,
        parameters,
        results=results,
        tuning=tuning,
        linkage=linkage,
        source=cursor.source,
        start=start,
    )
    if cursor.accept(";"):
        reader.scopes[-1].statements.append(make(None))
        return
    later, opening = reader.plain is _PLAIN, cursor.position
    reader.room.registers = _MOST_REGISTERS  # of each function: those of others are not kept meanwhile

    def close(statements: tuple[Statement, ...], end: int) -> Kernel:
        return make(Body(cursor.source, opening + 1, end, _read_body if later else lambda body: statements))

    _open_scope(cursor, reader, close, later)


def _read_parameters(cursor: Cursor, name: re.Pattern[str] = _NAME) -> tuple[Parameter, ...]:
    if not cursor.accept("(") or cursor.accept(")"):
        return ()
    parameters = [_read_parameter(cursor, name)]
    while cursor.accept(","):
        parameters.append(_read_parameter(cursor, name))
    cursor.require(")", "',' or ')'")
    return tuple(parameters)


def _read_parameter(cursor: Cursor, named: re.Pattern[str]) -> Parameter:
    source, start = cursor.source, cursor.position
    if cursor.accept(".reg"):
        length, kind = _read_register_type(cursor)
        return RegisterDeclaration(
            kind, (cursor.expect(named, "a register name"),), length, source=source, start=start
        )
    hidden = cursor.take(_HIDDEN) is not None
    leading = _read_qualities(cursor)
    cursor.require(".param", "'.param'" if hidden else "'.param' or '.reg'")
    qualities = leading.joined(_read_qualities(cursor))
    length, kind = _read_type(cursor, "variable")
    qualities = qualities.joined(_read_qualities(cursor))
    qualities.check(cursor, "param")
    pointer: tuple[int, ...] = ()
    if cursor.take(_POINTER):
        pointer = (read_integer(cursor) if cursor.take(_ALIGN) else 1,)
    name, extents = _read_array(cursor, named)
    if len(extents) > 1:
        raise cursor.error(
            f"{name} has {len(extents)} dimensions: a parameter has 1 at most", start, cursor.end
        )
    size = prod(extents) * length * _BITS[kind] // 8
    extents = (*extents, length) if length > 1 else extents
    return VariableDeclaration(
        "param",
        qualities.align,
        kind,
        name,
        size,
        extents=extents,
        vector=length,
        pointer=pointer,
        hidden=hidden,
        source=source,
        start=start,
    )
