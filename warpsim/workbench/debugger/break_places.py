"""Where to stop: what ``break`` takes, as statements of a module.

    120   gemm.cu:153   gemm.ptx:120   a kernel or function   mnemonic mma   at a statement: *12

Knows statements and their lines; does not know when they are executed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import PurePath

from ...base.errors import Location, OperandError, SourceLine
from ...isa.numerals import whole_number
from ...machine.load.program import Module
from ...machine.run.wave import Record
from ...observe.recording.source_breaks import SourcePlace, break_of, stops_of
from ...ptx.symbols import matching, shown


@dataclass(frozen=True, kw_only=True)
class Place:
    """Statements of a module, by their places in its code; ``text`` is how they were asked for."""

    text: str
    pcs: frozenset[int]


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
    elif _is_line(text):
        pcs = _by_line(module, text, current)
    else:
        pcs = _by_function(module, text)
    return Place(text=text, pcs=frozenset(pcs))


def _is_line(text: str) -> bool:
    return whole_number(text.rpartition(":")[2]) is not None


def _by_line(module: Module, text: str, current: Location | None) -> set[int]:
    place = break_of(text)
    code = module.code
    if isinstance(place, int) and current is not None and current.source is not None:
        place = SourcePlace(current.source.file, place)
    if isinstance(place, SourcePlace) and _is_own(module, place.file):
        place = place.line
    if isinstance(place, SourcePlace):
        return {*stops_of(code, place)}
    lines = [line_of(record) for record in code]
    found = {  # where each run of the line begins
        number
        for number, line in enumerate(lines)
        if line == place and (not number or lines[number - 1] != place or _begins(module, number))
    }
    if not found:
        lines = sorted({*lines}, key=lambda line: (abs(line - place), line))[:2]
        near = " and ".join(map(str, sorted(lines)))
        raise OperandError(f"no statement begins at line {place}; the nearest are at {near}")
    return found


def _begins(module: Module, number: int) -> bool:
    """Return whether a statement is the first of a function."""
    return any(function.start == number for function in module.functions.values())


def _is_own(module: Module, file: str) -> bool:
    """Return whether a file is the PTX itself."""
    own, wanted = PurePath(module.program.source.file).parts, PurePath(file).parts
    return own[-len(wanted) :] == wanted


def line_of(record: Record) -> int:
    """Return the line of the PTX at which a statement begins."""
    return record.statement.source.location(record.statement.start).line


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


def lines_with_statements(module: Module) -> Iterator[tuple[str, int]]:
    """Yield the lines of sources that statements come from, and those of the PTX, each of them once."""
    seen = set[tuple[str, int]]()
    for record in module.code:
        location = record.statement.location()
        source: SourceLine | None = location.source
        places = [(location.file, line_of(record))]
        while source is not None:
            places.append((source.file, source.line))
            source = source.inlined_at
        for place in places:
            if place not in seen:
                seen.add(place)
                yield place


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
