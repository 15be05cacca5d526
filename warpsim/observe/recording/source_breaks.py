"""Where a launch stops for a line of a source: ``gemm.cu:153``.

A line may have become several runs of statements: of a loop that was unrolled, of each call that it was
inlined at. Knows statements and their lines; does not know registers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePath
from typing import TYPE_CHECKING

from ...base.errors import OperandError, SourceLine
from ..checks.wgmma.register_uses import is_multiplication

if TYPE_CHECKING:
    from ...machine.run.wave import Record

_SPELLING = re.compile(r"(?:(?P<file>.+):)?(?P<line>[0-9]{1,9})")
_NEAR = 2  # lines that an error names
Calls = tuple[tuple[str, int], ...]


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

    def calls(self, source: SourceLine | None) -> Calls | None:
        """Return the calls around this line, where a statement comes from it or from a function inlined
        there.
        """
        while source is not None:
            if source.line == self.line and self.names(source.file):
                return tuple((each.file, each.line) for each in _outwards(source.inlined_at))
            source = source.inlined_at
        return None


Break = int | SourcePlace  # a line of the PTX, or of a source


def break_of(text: str) -> Break:
    """Return the line that ``LINE`` or ``FILE:LINE`` spells. Raises OperandError."""
    match = _SPELLING.fullmatch(text)
    if match is None or not int(match["line"]):
        raise OperandError(
            f"{text}: expected a line of the PTX, as in 120, or of a source, as in gemm.cu:153"
        )
    line = int(match["line"])
    return line if match["file"] is None else SourcePlace(match["file"], line)


def stops_of(code: Sequence[Record], place: SourcePlace) -> Iterator[int]:
    """Yield where to stop: at the matrix instructions of the line, or where each of its runs begins.

    Raises OperandError for a line without statements, which names the nearest.
    """
    sources = [record.statement.location().source for record in code]
    calls = [place.calls(source) for source in sources]
    if all(each is None for each in calls):
        raise OperandError(_no_statement_text(place, sources))
    for known, run in groupby(range(len(code)), key=calls.__getitem__):
        if known is not None:
            numbers = list(run)
            products = [each for each in numbers if _is_product(code[each], sources[each], place)]
            yield from products or numbers[:1]


def is_there(code: Sequence[Record], place: Break) -> bool:
    """Return whether a statement comes from a line of a source, or begins at a line of the PTX."""
    statements = (record.statement for record in code)
    if isinstance(place, SourcePlace):
        return any(place.calls(each.location().source) is not None for each in statements)
    return any(each.source.location(each.start).line == place for each in statements)


def _is_product(record: Record, source: SourceLine | None, place: SourcePlace) -> bool:
    """Return whether a statement is a matrix instruction of the line itself, not of a function inlined."""
    is_matrix = record.statement.opcode == "mma" or is_multiplication(record.statement)
    return is_matrix and source is not None and source.line == place.line and place.names(source.file)


def _outwards(source: SourceLine | None) -> Iterator[SourceLine]:
    while source is not None:
        yield source
        source = source.inlined_at


def _no_statement_text(place: SourcePlace, sources: Sequence[SourceLine | None]) -> str:
    """Return that no statement comes from a line, and which lines there are."""
    places = {(each.file, each.line) for source in sources for each in _outwards(source)}
    if not places:
        return f"{place}: the PTX names no lines of a source; nvcc -lineinfo writes them"
    lines = {line for file, line in places if place.names(file)}
    if not lines:
        files = ", ".join(sorted({file for file, _ in places}))
        return f"{place}: no statement comes from that file; the PTX names {files}"
    nearest = sorted(lines, key=lambda line: (abs(line - place.line), line))[:_NEAR]
    others = " and ".join(map(str, sorted(nearest)))
    return f"no statement comes from {place}; the nearest lines with statements are {others}"
