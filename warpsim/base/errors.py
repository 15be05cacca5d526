"""The exceptions that users of warpsim can meet, and the text location that each exception may carry.

    WarpsimError
      x PtxError              the text is not PTX: a token, an expression or a statement does not parse
      x IllegalInstruction    PTX has no such form, or not on this target, or not with these operands
      x NotModelled           legal PTX whose result on this chip is not established
      x UndefinedBehavior     legal PTX whose result PTX leaves undefined
      x Fault                 a kernel did what no machine allows: an address outside, a deadlock, a trap
        x Deadlock            no lane can continue
          x Stopped           a launch takes longer than the caller allows
        x StackOverflow       calls nest deeper than the memory of a thread allows
        x DeviceAssertion     an assert of device code fails
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
    "SourceLine",
    "TraceError",
    "UndefinedBehavior",
    "WarpsimError",
    "inline_stack",
    "located",
    "present",
]

Value = TypeVar("Value")

_INDENT = "    "
_LONGEST_LINE = 160  # a longer source line is cut around the caret, as a terminal would wrap it
# Control characters can move the cursor of a terminal. Lone surrogates stand for bytes that are not text.
_PRINTABLE = dict.fromkeys((*range(32), *range(127, 160), *range(0xD800, 0xE000)), "?") | {ord("\t"): "\t"}


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of the source that a compiler made PTX from; ``line`` and ``column`` count from 1.

    ``text`` is the line, "" where the file cannot be read. ``inlined_at`` is the line of the call, where the
    compiler put the body of a function in the place of a call.
    """

    file: str
    line: int
    column: int = 0
    text: str = ""
    inlined_at: SourceLine | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def excerpt(self) -> str:
        """Return the source line, and the calls that it was inlined at."""
        text = self.text.translate(_PRINTABLE).rstrip()[:_LONGEST_LINE]
        lines = [_INDENT + text] if text else []
        if self.inlined_at is not None:
            lines += [f"{_INDENT}inlined at {self.inlined_at}", self.inlined_at.excerpt()]
        return "\n".join(filter(None, lines))


def inline_stack(source: SourceLine | None) -> Iterator[SourceLine]:
    """Yield a line, and the calls that it was inlined at, outwards."""
    while source is not None:
        yield source
        source = source.inlined_at


@dataclass(frozen=True, slots=True)
class Location:
    """A span of one line of a file; ``line`` and ``column`` count from 1.

    ``text`` is the whole line. Of a very long line it is the part around the span, without the first ``cut``
    characters. ``source`` is the line that a compiler made the statement from, None where the text has none.
    """

    file: str
    line: int
    column: int = 1
    length: int = 1
    text: str = ""
    cut: int = 0
    source: SourceLine | None = None

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}"
        return place if self.source is None else f"{self.source} ({place})"

    @property
    def line_name(self) -> str:
        """File and line, of the source first: ``gemm.cu:153 (gemm.ptx:210)``."""
        own = f"{self.file}:{self.line}"
        return own if self.source is None else f"{self.source} ({own})"

    @property
    def short(self) -> str:
        """The line, of the source first: ``gemm.cu:153 (line 210)``."""
        own = f"line {self.line}"
        return own if self.source is None else f"{self.source} ({own})"

    def quoted(self) -> str:
        """Return the text of the span."""
        start = self.column - 1 - self.cut
        return self.text[start : start + self.length]

    def excerpt(self) -> str:
        """Return the line, and a caret with tildes under the span; empty for a blank line.

        The line of the source stands before it, if any.
        """
        own = self._excerpt()
        return own if self.source is None else "\n".join(filter(None, (self.source.excerpt(), own)))

    def _excerpt(self) -> str:
        if not self.text.strip():
            return ""
        start, cut = self.column - 1 - self.cut, self._window()
        lead = "..." if self.cut or cut.start else ""
        shown = lead + self.text[cut].translate(_PRINTABLE) + ("..." if cut.stop < len(self.text) else "")
        # Repeat tabs in front of the caret, so that it lines up at any tab width.
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

    ``message`` names the rule that was broken and the value that broke it; ``location`` is the place in the
    text, or None. ``earlier`` holds the findings that a launch had collected before the error, ``executed``
    the number of its statements.
    """

    def __init__(self, message: str, location: Location | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.location = location
        self.earlier: tuple[object, ...] = ()
        self.executed = 0

    def at(self, location: Location) -> Self:
        """Return this error with its location set to ``location``."""
        self.location = location
        return self

    def render(self) -> str:
        """Return `file:line:column: error: message`, source line and caret; without a
        location, the message.
        """
        found = "".join(f"\nfound before: {item}" for item in self.earlier)
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
    """A legal instruction whose result on this chip is not established; the message gives the reason."""


class UndefinedBehavior(WarpsimError):
    """A legal program whose result PTX leaves undefined: metadata, selector, uninitialised register, missing
    wait.
    """


class Fault(WarpsimError):
    """An operation that no machine allows: an address outside every allocation, a deadlock, a trap.

    ``lane`` is the number in its wave of the lane that does it, None where no single lane does.
    """

    lane: int | None = None


class Deadlock(Fault):
    """Lanes that wait for something that no lane can still do."""


class Stopped(Deadlock):
    """A launch that takes longer than the caller allows."""


class StackOverflow(Fault):
    """Functions that call each other deeper than the local memory of a thread is."""


class DeviceAssertion(Fault):
    """An assert of device code that does not hold."""


class OperandError(WarpsimError, ValueError):
    """An array argument of the wrong shape, type or range."""


class TraceError(WarpsimError):
    """A malformed trace or vector file; ``file`` is what its message begins with, None for no file."""

    file: str | None = None

    def named(self, file: object) -> Self:
        """Return this error with a file before its message, unless it has a file or a place."""
        if self.file is None and self.location is None:
            self.file, self.message = str(file), f"{file}: {self.message}"
            self.args = (self.message,)
        return self


class ClusterError(WarpsimError):
    """A Dask cluster that cannot do a job: not there, without workers, with other versions, or failing."""


@contextmanager
def located(
    locate: Callable[[], Location], kinds: tuple[type[WarpsimError], ...] = (WarpsimError,)
) -> Iterator[None]:
    """Give errors of these kinds raised in the block the location that ``locate``
    returns, if they have none.
    """
    try:
        yield
    except kinds as error:
        if error.location is None:
            error.at(locate())
        raise


def present(value: Value | None, what: str) -> Value:
    """Return the value of a field that this case always has; AssertionError names the field: a bug of
    warpsim.
    """
    if value is None:
        raise AssertionError(f"{what}: there is none")
    return value
