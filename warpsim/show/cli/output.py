"""Parts that verbs share: streams, exit codes, and failures that are reported and not raised.

Exit codes: 0 as expected, 1 a bit differs, 2 usage, 3 input not readable or not legal PTX, 4 could not check
(legal PTX that is not modelled, no cluster, not enough memory), 70 a bug of warpsim itself, 130, 143
and 129 after SIGINT, SIGTERM and SIGHUP. Results go to stdout, progress and diagnostics to stderr.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ...base.files.escaping import escaped

if TYPE_CHECKING:
    from ...base.errors import WarpsimError

EXPECTED, MISMATCH, USAGE, UNREADABLE, UNCHECKED = range(5)
BROKEN = 70  # a bug of warpsim itself: EX_SOFTWARE of sysexits.h
CONTEXT = {"help_option_names": ["-h", "--help"]}

Result = TypeVar("Result")


class UnwritableStream(OSError):
    """Stdout or stderr takes no text: its disk is full, or it is closed. No file of a verb is at fault."""


def prepare_streams() -> None:
    """Make the streams take any text: file names may be any bytes, and a stream may be closed (``>&-``).

    What is printed on a closed stdout is an error, as on a full disk; a closed stderr is none.
    """
    for name, number, mode in (("stdout", 1, os.O_RDONLY), ("stderr", 2, os.O_WRONLY)):
        if getattr(sys, name) is None:
            free = os.open(os.devnull, mode)  # no file that is opened later gets the number of the stream
            os.dup2(free, number)
            if free != number:
                os.close(free)
            setattr(sys, name, open(number, "w", closefd=False))  # noqa: SIM115 (open until the end)
        stream = getattr(sys, name)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def say(text: str, colour: str | None = None) -> None:
    """Print a result on stdout."""
    echo(text, sys.stdout, colour=colour)


def complain(text: str) -> None:
    """Print a diagnostic on stderr; where stderr is closed or full, only the exit code
    reports the failure.
    """
    try:
        echo(text, sys.stderr)
    except OSError:
        give_up(sys.stderr)


def complain_of_usage(error: click.ClickException) -> None:
    """Print click's message on a wrong command line, on stderr."""
    message = io.StringIO()
    error.show(message)
    complain(message.getvalue().rstrip("\n"))


def pass_on(text: str) -> None:
    """Print what device code prints on stdout, without a line end of its own; a terminal gets no escapes."""
    if sys.stdout.isatty():
        text = "\r".join(map(escaped, text.split("\r")))
    _print(text, sys.stdout, line_end=False)


def echo(text: str, stream: Any, *, colour: str | None = None) -> None:
    """Print a text, its control characters escaped, in a colour where the stream takes it."""
    _print(click.style(escaped(text), fg=colour) if colour else escaped(text), stream)


def _print(text: str, stream: Any, *, line_end: bool = True) -> None:
    """Print; the reader may close the pipe at any time. Raises UnwritableStream."""
    try:
        click.echo(text, file=stream, nl=line_end, color=None if colourful() else False)
    except BrokenPipeError:
        give_up(stream)
    except OSError as error:
        raise UnwritableStream(error.errno, error.strerror) from None


def give_up(stream: Any) -> None:
    """Discard everything that is written to a stream from now on, also at the end of the process."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def colourful() -> bool:
    """Return whether a stream is a terminal that takes colours."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def print_json(document: Any) -> None:
    """Print a result as one JSON document on stdout."""
    say(json.dumps(document, indent=1))


@dataclass(frozen=True)
class Failure:
    """An action on a file that failed, and why."""

    path: Path
    error: WarpsimError

    def __str__(self) -> str:
        message = self.error.message.removeprefix(f"{self.path}: ")  # which errors of a file begin with
        return str(self.error) if self.error.location else f"{self.path}: error: {message}"

    def code(self) -> int:
        """Return the exit code that this failure alone would give."""
        from ...base.errors import ClusterError, NotModelled

        return UNCHECKED if isinstance(self.error, (NotModelled, ClusterError)) else UNREADABLE


def fail(failure: Failure, as_json: bool, rest: Mapping[str, Any] = MappingProxyType({})) -> int:
    """Return the exit code of a verb that failed as a whole; its JSON document gives the reason, after the
    ``rest``.
    """
    if as_json:
        from ..views.report import error_document

        print_json({**rest, "errors": [error_document(failure.error, str(failure.path))]})
    return failure.code()


def attempt(action: Callable[..., Result], path: Path, *arguments: Any) -> Result | Failure:
    """Return the action's result for the file, or the failure that ended it, which is reported."""
    from ...base.errors import TraceError, WarpsimError

    try:
        return action(path, *arguments)
    except UnwritableStream:
        raise
    except WarpsimError as error:
        failure = Failure(path, error)
    except OSError as error:
        place = path if error.filename is None else Path(os.fsdecode(error.filename))
        failure = Failure(place, TraceError(error.strerror or str(error)))
    complain(str(failure))
    return failure


class Ended(Exception):
    """A failure that ends a verb: its command returns the exit code; ``rest`` is what else JSON has."""

    def __init__(self, failure: Failure, **rest: Any) -> None:
        super().__init__(failure)
        self.failure, self.rest = failure, rest


def perform(action: Callable[..., Result], path: Path, *arguments: Any) -> Result:
    """Return the action's result for the file; a failure is reported. Raises Ended."""
    found = attempt(action, path, *arguments)
    if isinstance(found, Failure):
        raise Ended(found)
    return found


def deliver(document: Any, lines: Any, code: int = EXPECTED) -> int:
    """Print the result of a verb: the document with --json, else the lines; return the exit code.

    Both may be functions; only that of the chosen form is called.
    """
    as_json = click.get_current_context().params["as_json"]
    chosen = document if as_json else lines
    found = chosen() if callable(chosen) else chosen
    if as_json:
        print_json(found)
    else:
        say(found if isinstance(found, str) else "\n".join(found))
    return code


def worst(codes: Iterable[int]) -> int:
    """Return the most important exit code: unreadable, then unchecked, then a mismatch."""
    return max(codes, key=(EXPECTED, MISMATCH, UNCHECKED, UNREADABLE).index, default=EXPECTED)
