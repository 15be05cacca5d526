"""The exceptions a user of warpsim can meet, and the place in a text that each may point at.

    WarpsimError
      x PtxError              the text is not PTX: a token, an expression or a statement does not parse
      x IllegalInstruction    PTX has no such form, or not on this target, or not with these operands
      x NotModelled           legal PTX whose result on this chip nobody has established
      x UndefinedBehavior     legal PTX whose result PTX leaves undefined
      x Fault                 a kernel did what no machine allows: an address outside, a deadlock, a trap
      x OperandError          an array argument has the wrong shape, type or range (also a ValueError)
      x TraceError            a trace or vector file is malformed
      x ClusterError          a Dask cluster cannot do a job: not there, no workers, or other versions

This module knows how an error is shown. It knows nothing about PTX, and prints nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self, TypeVar

__all__ = [
    "ClusterError",
    "Fault",
    "IllegalInstruction",
    "Location",
    "NotModelled",
    "OperandError",
    "PtxError",
    "TraceError",
    "UndefinedBehavior",
    "WarpsimError",
    "located",
    "present",
]

Value = TypeVar("Value")

_INDENT = "    "
_LONGEST_LINE = 160  # longer source lines are cut around the caret: a terminal would wrap them and lose it
# Control characters would move the cursor, or worse; lone surrogates stand for bytes that are no text.
_PRINTABLE = dict.fromkeys((*range(32), *range(127, 160), *range(0xD800, 0xE000)), "?") | {ord("\t"): "\t"}


@dataclass(frozen=True, slots=True)
class Location:
    """A stretch of one line of a file; ``line`` and ``column`` count from 1.

    ``text`` is the whole line, or of a very long one the part around the stretch, without the first ``cut``
    characters.
    """

    file: str
    line: int
    column: int = 1
    length: int = 1
    text: str = ""
    cut: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def quoted(self) -> str:
        """The stretch itself."""
        start = self.column - 1 - self.cut
        return self.text[start : start + self.length]

    def excerpt(self) -> str:
        """Two lines: the source line, and a caret with tildes under the stretch; empty for a blank line."""
        if not self.text.strip():
            return ""
        start, cut = self.column - 1 - self.cut, self._window()
        lead = "..." if self.cut or cut.start else ""
        shown = lead + self.text[cut].translate(_PRINTABLE) + ("..." if cut.stop < len(self.text) else "")
        # Tabs are repeated in front of the caret, so that it lines up whatever their width.
        before = "".join("\t" if char == "\t" else " " for char in self.text[cut.start : start])
        tildes = "~" * (min(self.length, cut.stop - start) - 1)
        return f"{_INDENT}{shown}\n{_INDENT}{' ' * len(lead)}{before}^{tildes}"

    def _window(self) -> slice:
        if len(self.text) <= _LONGEST_LINE:
            return slice(0, len(self.text))
        start = self.column - 1 - self.cut
        first = max(0, min(start - _LONGEST_LINE // 4, len(self.text) - _LONGEST_LINE))
        return slice(first, first + _LONGEST_LINE)


class WarpsimError(Exception):
    """The base of every error that warpsim reports to its user.

    ``message`` says which rule was broken by which value; ``location`` is where, or None. ``earlier`` is
    what a launch had found before, where findings are collected.
    """

    def __init__(self, message: str, location: Location | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.location = location
        self.earlier: tuple[object, ...] = ()

    def at(self, location: Location) -> Self:
        """This error, now pointing at ``location``."""
        self.location = location
        return self

    def render(self) -> str:
        """`file:line:column: error: message`, source line and caret; without a location, the message."""
        found = "".join(f"\nfound before: {one}" for one in self.earlier)
        if self.location is None:
            return self.message + found
        headline = f"{self.location}: error: {self.message}"
        return f"{headline}\n{self.location.excerpt()}".rstrip("\n") + found

    def __str__(self) -> str:
        return self.render()


class PtxError(WarpsimError):
    """The text does not parse as PTX."""


class IllegalInstruction(WarpsimError):
    """PTX has no such instruction form, or not on this target, or not with these operands."""


class NotModelled(WarpsimError):
    """Legal, but its result on this chip has not been established; the message says why."""


class UndefinedBehavior(WarpsimError):
    """PTX leaves the result undefined: metadata, selector, a register never written, a wait left out."""


class Fault(WarpsimError):
    """A kernel did what no machine allows: an address outside every allocation, a deadlock, a trap."""


class OperandError(WarpsimError, ValueError):
    """An array argument has the wrong shape, type or range."""


class TraceError(WarpsimError):
    """A trace or a vector file is malformed."""


class ClusterError(WarpsimError):
    """A Dask cluster cannot do a job: it is not there, has no workers or other versions, or they die."""


@contextmanager
def located(
    locate: Callable[[], Location], kinds: tuple[type[WarpsimError], ...] = (WarpsimError,)
) -> Iterator[None]:
    """A block whose errors of these kinds, if they have no location, point where ``locate`` says."""
    try:
        yield
    except kinds as error:
        if error.location is None:
            error.at(locate())
        raise


def present(value: Value | None, what: str) -> Value:
    """The value, of a field that this case always has; AssertionError, naming it, is a mistake of warpsim."""
    if value is None:
        raise AssertionError(f"{what}: there is none")
    return value
