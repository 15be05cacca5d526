"""Where to stop: lines of sources and of the PTX, functions and mnemonics, as statements of a module.

    120   gemm.cu:153   gemm.ptx:120   a kernel or function   mnemonic mma   at a statement: *12

A line may have become several runs of statements: of a loop that was unrolled, of each call that it was
inlined at. Knows statements and their lines; does not know when they are executed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import groupby
from pathlib import PurePath

from ...base.errors import Location, OperandError, SourceLine, inline_stack
from ...isa.numerals import whole_number
from ...machine.load.program import Module
from ...machine.run.wave import Record
from ...ptx.symbols import matching, shown
from ..checks.wgmma.register_uses import is_multiplication

_LINE = re.compile(r"(?:(?P<file>.+):)?(?P<line>[0-9]{1,9})")
_NEAR = 2  # lines that an error names


@dataclass(frozen=True)
class SourcePlace:
    """A line of a source; of the file's path, the last parts are enough."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def names(self, file: str) -> bool:
        """Return whether a file is meant."""
        wanted, parts = PurePath(self.file).parts, PurePath(file).parts
        return parts[-len(wanted) :] == wanted

    def calls(self, source: SourceLine | None) -> tuple[tuple[str, int], ...] | None:
        """Return the calls around this line, where a statement comes from it or from a function inlined
        there.
        """
        stack = [*inline_stack(source)]
        for depth, each in enumerate(stack):
            if each.line == self.line and self.names(each.file):
                return tuple((call.file, call.line) for call in stack[depth + 1 :])
        return None


Break = int | SourcePlace  # a line of the PTX, or of a source


@dataclass(frozen=True, kw_only=True)
class Place:
    """Statements of a module, by their places in its code; ``text`` is how they were asked for."""

    text: str
    pcs: frozenset[int]


# --- lines -------------------------------------------------------------------------------------------


def break_of(text: str) -> Break:
    """Return the line that ``LINE`` or ``FILE:LINE`` spells. Raises OperandError."""
    match = _LINE.fullmatch(text)
    if match is None or not int(match["line"]):
        raise OperandError(
            f"{text}: expected a line of the PTX, as in 120, or of a source, as in gemm.cu:153"
        )
    line = int(match["line"])
    return line if match["file"] is None else SourcePlace(match["file"], line)


def line_of(record: Record) -> int:
    """Return the line of the PTX at which a statement begins; that of the return at the end of a body is the
    head of the function.
    """
    return record.statement.source.location(record.statement.start).line


def statements_at(code: Sequence[Record], place: Break) -> list[int]:
    """Return where to stop for a line of the PTX: at its statements; of a source: at its matrix
    instructions, or where each of its runs begins.

    Raises OperandError for a line without statements, which names the nearest.
    """
    if isinstance(place, SourcePlace):
        return [*_source_statements(code, place)]
    lines = [line_of(record) for record in code]
    found = [number for number, line in enumerate(lines) if line == place]
    if not found:
        near = _nearest(lines, place)
        raise OperandError(f"no statement begins at line {place}; the nearest are at {near}")
    return found


def _source_statements(code: Sequence[Record], place: SourcePlace) -> Iterator[int]:
    sources = [record.statement.location().source for record in code]
    calls = [place.calls(source) for source in sources]
    if all(each is None for each in calls):
        raise OperandError(_missing(place, sources))
    for known, run in groupby(range(len(code)), key=calls.__getitem__):
        if known is not None:
            numbers = list(run)
            products = [each for each in numbers if _is_product(code[each], sources[each], place)]
            yield from products or numbers[:1]


def is_there(code: Sequence[Record], place: Break) -> bool:
    """Return whether a statement comes from a line of a source, or begins at a line of the PTX."""
    try:
        return bool(statements_at(code, place))
    except OperandError:
        return False


def _is_product(record: Record, source: SourceLine | None, place: SourcePlace) -> bool:
    """Return whether a statement is a matrix instruction of the line itself, not of a function inlined."""
    is_matrix = record.statement.opcode == "mma" or is_multiplication(record.statement)
    return is_matrix and source is not None and source.line == place.line and place.names(source.file)


def _missing(place: SourcePlace, sources: Sequence[SourceLine | None]) -> str:
    """Return that no statement comes from a line, and which lines there are."""
    places = {(each.file, each.line) for source in sources for each in inline_stack(source)}
    if not places:
        return f"{place}: the PTX names no lines of a source; nvcc -lineinfo writes them"
    lines = [line for file, line in places if place.names(file)]
    if not lines:
        files = ", ".join(sorted({file for file, _ in places}))
        return f"{place}: no statement comes from that file; the PTX names {files}"
    near = _nearest(lines, place.line)
    return f"no statement comes from {place}; the nearest lines with statements are {near}"


def _nearest(lines: Sequence[int], wanted: int) -> str:
    nearest = sorted({*lines}, key=lambda line: (abs(line - wanted), line))[:_NEAR]
    return " and ".join(map(str, sorted(nearest)))


# --- all places --------------------------------------------------------------------------------------


def place_of(module: Module, text: str, current: Location | None = None) -> Place:
    """Return the statements that a text names. Raises OperandError, which says what there is near to it.

    A line alone is of the source that the current statement comes from, else of the PTX.
    """
    words = text.split()
    if not words:
        raise OperandError("break where? A line, as in gemm.cu:153 or 120, a function, or mnemonic mma")
    if words[0] == "mnemonic":
        pcs = _by_mnemonic(module, " ".join(words[1:]))
    elif text.startswith("*"):
        pcs = _by_number(module, text[1:])
    elif whole_number(text.rpartition(":")[2]) is not None:
        pcs = _by_line(module, break_of(text), current)
    else:
        pcs = _by_function(module, text)
    return Place(text=text, pcs=frozenset(pcs))


def _by_line(module: Module, place: Break, current: Location | None) -> set[int]:
    """Return the statements of a line; of a line of the PTX those where a run of it begins."""
    if isinstance(place, int) and current is not None and current.source is not None:
        place = SourcePlace(current.source.file, place)
    if isinstance(place, SourcePlace) and place.names(module.program.source.file):
        place = place.line
    found = statements_at(module.code, place)
    if isinstance(place, SourcePlace):
        return {*found}
    starts = {function.start for function in module.functions.values()}
    return {number for number in found if number - 1 not in found or number in starts}


def _by_mnemonic(module: Module, wanted: str) -> set[int]:
    """Return the statements whose mnemonic begins with words, at the dots."""
    parts = wanted.split(".")
    found = set[int]()
    for number, record in enumerate(module.code):
        own = record.statement.mnemonic.split(".")[: len(parts)]
        pairs = zip(own, parts, strict=False)
        if wanted and [word if ":" in part else word.partition("::")[0] for word, part in pairs] == parts:
            found.add(number)
    if not found:
        known = sorted({record.statement.opcode for record in module.code})
        near = get_close_matches(parts[0], known, 3, 0.5) or known
        raise OperandError(f"no statement is {wanted or 'without a name'}; there are {', '.join(near)}")
    return found


def _by_number(module: Module, text: str) -> set[int]:
    number = whole_number(text)
    if number is None or number >= len(module.code):
        raise OperandError(f"*{text}: statements are numbered from *0 to *{len(module.code) - 1}")
    return {number}


def _by_function(module: Module, text: str) -> set[int]:
    started = {name: function.start for name, function in module.functions.items() if function.start >= 0}
    if text == "kernel":
        return {started[name] for name in module.entries if name in started}
    found = matching(text, started)
    if not found:
        names = [shown(name) for name in started]
        near = get_close_matches(text, names, 3, 0.5) or names
        raise OperandError(f"nothing is named {text}; functions are {', '.join(near)}")
    return {started[name] for name in found}


# --- names of lines ----------------------------------------------------------------------------------


def lines_with_statements(module: Module) -> Iterator[tuple[str, int]]:
    """Yield the lines of sources that statements come from, and those of the PTX, each of them once."""
    places = dict[tuple[str, int], None]()
    for record in module.code:
        location = record.statement.location()
        places[location.file, line_of(record)] = None
        places |= {(each.file, each.line): None for each in inline_stack(location.source)}
    yield from places


def source_line(record: Record) -> tuple[str, int]:
    """Return the line that stepping goes by: of the source, where the PTX names it, else of the PTX."""
    location = record.statement.location()
    if location.source is not None:
        return location.source.file, location.source.line
    return location.file, line_of(record)


def line_name(location: Location) -> str:
    """Return file and line for a person: of the source, then of the PTX."""
    own = f"{PurePath(location.file).name}:{location.line}"
    source = location.source
    return own if source is None else f"{PurePath(source.file).name}:{source.line} ({own})"
