"""``warpsim debug``: a launch under a debugger, which goes forwards and backwards in time."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from ...ptx.symbols import names_shown
from .launch import Launch, entry_of
from .options import Json
from .output import EXPECTED, MISMATCH, USAGE, complain, perform, print_json, say
from .verbs import Option, record, verb

if TYPE_CHECKING:
    from ..debugger import Session

PROMPT = "(warpsim) "


@dataclass(kw_only=True)
class _Dialog:
    """The commands of a session: what is read, and what came of each. ``code`` is the exit code so far."""

    session: Session
    as_json: bool
    running: bool = False
    documents: list[dict[str, Any]] = field(default_factory=list)
    code: int = EXPECTED

    def do(self, line: str) -> bool:
        """Execute a command and print what it returns; return whether it succeeded."""
        from ...base.errors import WarpsimError

        document: dict[str, Any] = {"command": line.strip()}
        self.running = True
        try:
            text = self.session.do(line)
        except WarpsimError as error:
            self.documents.append({**document, "error": error.message, "time": self.session.time})
            if not self.as_json:
                complain(f"error: {error}")
            return False
        finally:
            self.running = False
        self.documents.append({**document, "output": text, "time": self.session.time})
        self.code = max(self.code, _outcome(self.session))
        if text and not self.as_json:
            say(text)
        return True

    def interrupted(self, number: int, frame: object) -> None:
        """Handle Ctrl-C: stop the launch, or give up the line that is typed."""
        if not self.running:
            raise KeyboardInterrupt
        self.session.interrupt()


@verb
def debug(
    file: Path | None,
    *,
    asked: Launch,
    dap: Annotated[bool, "Speak the Debug Adapter Protocol on standard streams."],
    commands: Annotated[Path | None, Option(metavar="FILE"), "Execute the commands in a file."],
    as_json: Json,
) -> int:
    """Execute a kernel under a debugger that goes forwards and backwards in time.

    FILE is PTX, or a .cu file where nvcc is on the path, and options are those of launch; --entry may be left
    out where there is a single kernel. Commands are read from a terminal, from standard input, or a file:

    \b
    warpsim debug gemm.cu --target sm_90a --grid 4,4 --block 128 --arg A.npy --arg B.npy \\
        --arg zeros:f32:512x512 --arg i32:512 --expect 2=reference.npy
    (warpsim) break gemm.cu:153 if lane == 5
    (warpsim) run
    (warpsim) print %r5
    (warpsim) reverse-stepi
    (warpsim) watch arg2[0,8]
    (warpsim) reverse-continue

    help lists the commands. Without a terminal the first command that fails ends the session with exit code
    2; it is 1 where the launch has ended with an error, or an array is not as expected, and 130 where Ctrl-C
    came; on a terminal Ctrl-C stops the launch, and the session goes on. Arrays are never written.
    """
    if dap:
        if file is not None:
            raise click.UsageError("--dap takes no FILE: the client names it")
        return _serve()
    if file is None:
        raise click.UsageError("Missing argument 'FILE'.")
    with names_shown(mangled=asked.mangled):
        _ = asked.sizes
        values = perform(asked.values, file)
        script = None if commands is None else perform(_script, commands)
        session = perform(session_of, file, asked, values)
        dialog = _Dialog(session=session, as_json=as_json)
        try:
            _talk(dialog, script, str(commands or "standard input"))
        finally:
            session.close()
    if as_json:
        print_json({"file": str(file), "commands": dialog.documents, "errors": []})
    return dialog.code


def _script(path: Path) -> list[str]:
    from ...base.files.archives import read_text

    return read_text(path).splitlines()


def session_of(file: Path, asked: Launch, values: list[Any]) -> Session:
    """Return the session of a launch. Raises UsageError for arguments that do not fit it, WarpsimError for
    files.
    """
    from ...base.errors import OperandError
    from ...base.files.archives import LARGEST_ARRAY, read_array
    from ..debugger import Session

    module, sizes = asked.module(file), asked.sizes
    kernel = module[entry_of(module, asked.entry, alone=True)]
    pairs = asked.expected(values)
    try:
        return Session(
            kernel,
            sizes["grid"],
            sizes["block"],
            values,
            expected={index: read_array(path, LARGEST_ARRAY) for index, path in pairs},
            tolerance=asked.tolerance,
            cluster=sizes["cluster"],
            shared_bytes=asked.shared,
            cooperative=asked.cooperative,
            resident=asked.resident,
            schedule=asked.schedule,
            checks=asked.checks,
            engine=asked.engine,
            undefined=asked.undefined,
            most_statements=asked.limit,
        )
    except OperandError as error:
        if error.location is not None:
            raise
        raise click.UsageError(error.message) from None


# --- commands ----------------------------------------------------------------------------------------


@contextmanager
def _interrupts(dialog: _Dialog) -> Iterator[None]:
    """Stop the launch at Ctrl-C, in the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, dialog.interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _talk(dialog: _Dialog, script: list[str] | None, name: str) -> None:
    """Execute commands until the session ends."""
    if script is None and sys.stdin is not None and sys.stdin.isatty():
        with _interrupts(dialog):
            _converse(dialog)
        return
    lines = script if script is not None else (sys.stdin or ())
    _follow(dialog, lines, name)


def _follow(dialog: _Dialog, lines: Any, name: str) -> None:
    """Execute the commands of a script, each printed before what it gives; the first that fails ends it."""
    from ..debugger.commands.command_table import is_end

    for number, line in enumerate(lines, 1):
        if is_end(line):
            return
        if line.strip() and not dialog.as_json:
            say(f"{PROMPT}{line.strip()}")
        if not dialog.do(line):
            complain(f"{name}:{number}: this command has ended the session")
            dialog.code = USAGE
            return


def _outcome(session: Session) -> int:
    """Return the exit code of what a session has come to."""
    from ..debugger.commands.results import differs

    execution = session.execution
    if execution is None or execution.ended is None:
        return EXPECTED
    return MISMATCH if execution.ended.error is not None or differs(session) else EXPECTED


def _converse(dialog: _Dialog) -> None:
    """Execute what is typed."""
    from ..debugger.commands.command_table import is_end, repeats
    from .debug_prompt import reader

    read: Callable[[], str] = reader(dialog.session, PROMPT)
    latest = ""
    say("help lists the commands; run begins the launch")
    while True:
        try:
            line = read()
        except EOFError:
            return
        except KeyboardInterrupt:
            say("quit, or Ctrl-D, ends the session")
            continue
        if is_end(line):
            return
        line = line if line.strip() else latest
        dialog.do(line)
        latest = line if repeats(line) else ""


# --- the Debug Adapter -------------------------------------------------------------------------------

_REQUESTED = {  # arguments of the launch request, and options
    "entry": "--entry",
    "grid": "--grid",
    "block": "--block",
    "cluster": "--cluster",
    "shared": "--shared",
    "args": "--arg",
    "expect": "--expect",
    "tolerance": "--tolerance",
    "target": "--target",
    "checks": "--checks",
    "schedule": "--schedule",
    "limit": "--limit",
    "nvcc": "--nvcc",
    "symbols": "--symbol",
    "cooperative": "--cooperative",
    "resident": "--resident",
    "engine": "--engine",
}


def _serve() -> int:
    """Speak with a client on standard streams until it disconnects; what else is printed goes to stderr."""
    from ..debugger.dap.adapter import Adapter

    source, sink = sys.stdin.buffer, sys.stdout.buffer
    before, sys.stdout = sys.stdout, sys.stderr
    try:
        Adapter(source, sink, _requested).serve()
    finally:
        sys.stdout = before
    return EXPECTED


def _requested(given: dict[str, Any]) -> Session:
    """Return the session of a launch request. Raises OperandError for what is wrong with it."""
    from ...base.errors import OperandError

    try:
        options = debug.make_context("debug", _command_line(given)).params
        if given.get("cwd"):
            os.chdir(str(given["cwd"]))
        file, asked = Path(options["file"]), record(Launch, options)
        return session_of(file, asked, asked.values(file))
    except click.ClickException as error:
        raise OperandError(error.format_message()) from None
    except OSError as error:
        raise OperandError(f"{error.filename}: {error.strerror}") from None


def _command_line(given: dict[str, Any]) -> list[str]:
    """Return a launch request as the words of a command line. Raises OperandError."""
    from ...base.errors import OperandError

    if not isinstance(given.get("program"), str):
        raise OperandError("launch: program is missing: the PTX or .cu file")
    words = list[str]()
    for name, option in _REQUESTED.items():
        value = given.get(name)
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif isinstance(value, list) and name in ("grid", "block", "cluster"):
            words += [option, ",".join(map(str, value))]
        else:
            words += [
                word
                for each in (value if isinstance(value, list) else [value])
                for word in (option, str(each))
            ]
    return [*words, "--", given["program"]]
