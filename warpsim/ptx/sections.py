"""What stands in sections of a module: numbers and places, for DWARF (``.section``, PTX ISA 9.1, section
11.5.3), and the text that the PTX was made from (``.nv_intermediate_source_section``, PTX 9.4).

    section = ".section" "." name "{" { label ":" | type data } "}"
    data    = integer { "," integer }                                   in range of .b8, .b16, .b32 or .b64
            | ( label [ "+" integer | "-" label ] | "." name [ "+" integer ] )      for .b32 and .b64

    intermediate = ".nv_intermediate_source_section" "{" { block } "}"      as ptxas 13.5 takes it
    block        = ".code_block" "{" ".ir_name:" string ".sourceFileName:" integer text "}"
    text         = ".source_begin" end of line, any lines, a line of ".source_end" alone

A negative integer has no U. Labels may be those of code, of this section and of others, or of nothing: ptxas
13.0 asks for none. This module does not know what sections are for.
"""

from __future__ import annotations

import re

from .constants import INTEGER, read_integer
from .source import NAME, TRIVIA, Cursor, Source

__all__ = ["files_of", "labels_of", "read_intermediate_source", "read_section"]

_WORD = r"\.[A-Za-z][\w$]*+"
# Words of PTX, which no section has as its name; those of modifiers are not looked at.
_TAKEN = re.compile(
    r"\.(?:reg|const|global|local|param|shared|tex|extern|visible|weak|common|entry|func|target|address_size"
    r"|file|loc|section|pragma|alias|branchtargets|calltargets|callprototype|align|ptr|attribute|maxntid|maxnreg"
    r"|reqntid|minnctapersm|maxnctapersm|noreturn|explicitcluster|reqnctapercluster|maxclusterrank"
    r"|blocksareclusters|abi_preserve|abi_preserve_control|local_maxnreg|unified|managed|v[24]|[bus](?:8|16|32|64)"
    r"|b128|b?f16(?:x2)?|e4m3|e5m2|f32|f64|pred|(?:tex|sampler|surf)ref)"
)
_SECTION = re.compile(_WORD, re.ASCII)
_LABEL = re.compile(rf"(?!WARP_SZ\b){NAME}", re.ASCII)
_DATA = re.compile(r"\.b(?:8|16|32|64)(?![\w$])", re.ASCII)
_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])(?![\w$.])"
_BYTES = re.compile(rf"{_BYTE}(?:[ \t\r\n]*,[ \t\r\n]*{_BYTE})*+")  # most of what there is, at once
_OF_PLACES = (32, 64)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_LABELLED = re.compile(rf"({NAME})\s*:", re.ASCII)


def read_section(cursor: Cursor) -> str:
    """Return the text of a section from its name on. Raises PtxError."""
    start = cursor.position
    _read_name(cursor)
    cursor.require("{")
    while not cursor.accept("}"):
        if cursor.take(_LABEL):
            cursor.require(":")
        else:
            data = cursor.expect(_DATA, "a label, '.b8', '.b16', '.b32', '.b64' or '}'")
            _read_data(cursor, int(data[2:]))
    return cursor.text[start : cursor.end]


def labels_of(section: str) -> list[str]:
    """Return the labels that stand in the text of a section."""
    return [found[1] for found in _LABELLED.finditer(_COMMENT.sub(" ", section))]


_STRING = re.compile(r'"[^"]*"')
_TEXT = re.compile(r"\.source_begin[ \t]*\n(?:[^\n]*\n)*?[ \t]*\.source_end[ \t]*\n")
_BLOCK = re.compile(
    rf"\.sourceFileName:{TRIVIA}({INTEGER.pattern}){TRIVIA}{_TEXT.pattern}", re.ASCII
)  # from the number of the file on


def read_intermediate_source(cursor: Cursor) -> str:
    """Return the text of a section of intermediate source from its brace on. Raises PtxError."""
    start = cursor.position
    cursor.require("{")
    while not cursor.accept("}"):
        cursor.require(".code_block", "'.code_block' or '}'")
        cursor.require("{")
        cursor.require(".ir_name:")
        cursor.expect(_STRING, "a name in quotes")
        cursor.require(".sourceFileName:")
        read_integer(cursor)
        cursor.expect(_TEXT, "'.source_begin' at the end of a line, and later a line of '.source_end' alone")
        cursor.require("}")
    return cursor.text[start : cursor.end]


def files_of(section: str) -> list[int]:
    """Return the numbers of the files that a section of intermediate source names."""
    return [read_integer(Cursor(Source(found[1]))) for found in _BLOCK.finditer(section)]


def _read_name(cursor: Cursor) -> None:
    start = cursor.position
    name = cursor.expect(_SECTION, "the name of a section, such as '.debug_str'")
    if _TAKEN.fullmatch(name):
        raise cursor.error(f"'{name}' is a word of PTX, not the name of a section", start, cursor.end)


def _read_data(cursor: Cursor, bits: int) -> None:
    if bits in _OF_PLACES and cursor.peek(_SECTION):
        _read_name(cursor)
        if cursor.accept("+"):
            cursor.expect(INTEGER, "an integer")
    elif bits in _OF_PLACES and cursor.take(_LABEL):
        if cursor.accept("+"):
            cursor.expect(INTEGER, "an integer")
        elif cursor.accept("-"):
            cursor.expect(_LABEL, "a label")
    else:
        _read_numbers(cursor, bits)


def _read_numbers(cursor: Cursor, bits: int) -> None:
    if not cursor.take(_BYTES):
        _read_number(cursor, bits)
    while cursor.accept(","):
        if not cursor.take(_BYTES):
            _read_number(cursor, bits)


def _read_number(cursor: Cursor, bits: int) -> None:
    start, negative = cursor.position, cursor.accept("-")
    if not cursor.peek(INTEGER):
        cursor.fail(
            "an integer, a label or a section" if bits in _OF_PLACES and not negative else "an integer"
        )
    value = -read_integer(cursor) if negative else read_integer(cursor)
    lowest, highest = -1 << bits - 1, (1 << bits) - 1
    if cursor.text[cursor.end - 1] == "U" and negative:
        raise cursor.error("a negative integer has no U", start, cursor.end)
    if not lowest <= value <= highest:
        raise cursor.error(f"{value} is not a .b{bits}: {lowest} to {highest}", start, cursor.end)
