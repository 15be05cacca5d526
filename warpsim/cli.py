"""The command line: ``warpsim run`` and ``warpsim info``. The only module that prints.

Exit codes: 0 as expected, 1 a bit differs, 2 usage, 3 input not readable or not legal PTX, 4 could not
check (legal PTX that is not modelled). Results go to stdout, progress and diagnostics to stderr.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from . import __version__

if TYPE_CHECKING:
    from .errors import WarpsimError
    from .hazards import Mode
    from .instruction import Instruction
    from .pipeline import Engine, Undefined
    from .traces import Run

EXPECTED, MISMATCH, USAGE, UNREADABLE, UNCHECKED = range(5)
INTERRUPTED = 130  # as shells have it: 128 and the number of the signal

Result = TypeVar("Result")

_CONTEXT = {"help_option_names": ["-h", "--help"]}


@click.group(context_settings=_CONTEXT)
@click.version_option(__version__, prog_name="warpsim")
def cli() -> None:
    """Run PTX tensor-core instructions bit for bit, without a GPU.

    Exit codes: 0 as expected, 1 a bit differs, 2 usage, 3 input not readable or not legal PTX, 4 could
    not check.
    """


def main(arguments: list[str] | None = None) -> None:
    """The entry point of the ``warpsim`` command; raises SystemExit."""
    _prepare_streams()
    try:
        raise SystemExit(cli.main(arguments, prog_name="warpsim", standalone_mode=False))
    except click.ClickException as error:
        error.show()
        raise SystemExit(error.exit_code) from None
    except click.Abort:
        raise SystemExit(INTERRUPTED) from None
    except OSError as error:  # files have been dealt with: this is stdout, on a full disk
        _complain(f"warpsim: error: cannot write the output: {error.strerror or error}")
        raise SystemExit(UNREADABLE) from None


# --- output ----------------------------------------------------------------------------------------


def _prepare_streams() -> None:
    """Streams that take any text: file names may be any bytes, and a stream may be closed (``>&-``)."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (open until the process ends)
        stream = getattr(sys, name)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _say(text: str) -> None:
    _echo(text, sys.stdout)


def _complain(text: str) -> None:
    _echo(text, sys.stderr)


def _echo(text: str, stream: Any) -> None:
    """Print, without colour where nobody asked for it; whoever reads may leave at any time."""
    try:
        click.echo(text, file=stream, color=None if _colourful() else False)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _colourful() -> bool:
    """Whether a terminal, if it is one, may be given colours; nothing else ever is."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _print_json(document: Any) -> None:
    _say(json.dumps(document, indent=1))


def _check_target(context: click.Context, parameter: click.Parameter, target: str | None) -> str | None:
    from .architectures import ARCHITECTURES

    if target is not None and target not in ARCHITECTURES:
        raise click.BadParameter(f"{target!r} is none of {', '.join(ARCHITECTURES)}")
    return target


@dataclass(frozen=True)
class Failure:
    """Something that could not be done with a file, and why."""

    path: Path
    error: WarpsimError

    def __str__(self) -> str:
        return str(self.error) if self.error.location else f"{self.path}: error: {self.error.message}"

    def code(self) -> int:
        """The exit code that this failure alone would give."""
        from .errors import NotModelled

        return UNCHECKED if isinstance(self.error, NotModelled) else UNREADABLE


def _attempt(action: Callable[..., Result], path: Path, *arguments: Any) -> Result | Failure:
    """What the action makes of the file, or the failure that it ends in, which is reported."""
    from .errors import TraceError, WarpsimError

    try:
        return action(path, *arguments)
    except WarpsimError as error:
        failure = Failure(path, error)
    except OSError as error:
        failure = Failure(path, TraceError(error.strerror or str(error)))
    _complain(str(failure))
    return failure


def _worst(codes: Iterable[int]) -> int:
    """The exit code that says most: unreadable, then unchecked, then a mismatch."""
    return max(codes, key=(EXPECTED, MISMATCH, UNCHECKED, UNREADABLE).index, default=EXPECTED)


# --- run -------------------------------------------------------------------------------------------


@cli.command(context_settings=_CONTEXT)
@click.argument("traces", nargs=-1, required=True, metavar="TRACE...", type=click.Path(path_type=Path))
@click.option(
    "--target",
    metavar="SM",
    callback=_check_target,
    help="Run on this chip instead of the trace's own, such as sm_80.",
)
@click.option(
    "--engine",
    type=click.Choice(["kernel", "reference"]),
    default="kernel",
    show_default=True,
    help="The compiled kernels, or plain Python integers.",
)
@click.option(
    "--allow-undefined",
    is_flag=True,
    help="Execute metadata that PTX leaves undefined or that is not modelled, reading each field literally.",
)
@click.option(
    "--hazards",
    type=click.Choice(["error", "warn", "off"]),
    default="error",
    show_default=True,
    help="Broken ordering rules of wgmma: stop at the first, list them, or do not look.",
)
@click.option(
    "--show",
    type=click.Choice(["last", "all", "none"]),
    default="last",
    show_default=True,
    help="Which D matrices to print.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.npz",
    help="Write all registers after the run of a single trace.",
)
def run(
    traces: tuple[Path, ...],
    target: str | None,
    engine: Engine,
    allow_undefined: bool,
    hazards: Mode,
    show: str,
    as_json: bool,
    out: Path | None,
) -> int:
    """Execute traces and compare every bit they expect.

    A trace is PTX text with '//!' lines that load registers and state what they must hold afterwards.
    """
    if out and len(traces) > 1:
        raise click.UsageError("--out takes the registers of one trace, but several traces are given")
    runs: list[Run] = []
    failures: list[Failure] = []
    for path in _tracked(traces, as_json):
        undefined = "fallback" if allow_undefined else "error"
        done = _attempt(_executed, path, target, engine, undefined, hazards)
        if isinstance(done, Failure):
            failures.append(done)
            continue
        runs.append(done)
        if not as_json:
            _say_run(done, show)
        if out and (failure := _attempt(_write_registers, out, done)):
            failures.append(failure)
    if as_json:
        _say_json(runs, failures)
    elif len(traces) > 1:
        _say(f"{sum(done.passed for done in runs)} of {len(traces)} traces passed")
    codes = [EXPECTED if one.passed else MISMATCH for one in runs]
    return _worst([*codes, *(failure.code() for failure in failures)])


def _tracked(traces: tuple[Path, ...], as_json: bool) -> Iterator[Path]:
    """The traces, behind a progress bar on stderr where someone watches that and reads no results there."""
    quiet = as_json or not sys.stdout.isatty()
    if len(traces) < 2 or not quiet or not sys.stderr.isatty():
        yield from traces
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, redirect_stdout=False) as progress:
        yield from progress.track(traces, description="running")


def _executed(path: Path, target: str | None, engine: Engine, undefined: Undefined, hazards: Mode) -> Run:
    from .traces import read_trace, run_trace

    trace = read_trace(path)
    return run_trace(trace, target=target, engine=engine, undefined=undefined, hazards=hazards)


def _write_registers(out: Path, done: Run) -> None:
    from .archives import write_arrays

    write_arrays(out, done.warp.registers())


def _say_run(done: Run, show: str) -> None:
    from .views.report import run_lines

    *lines, verdict = run_lines(done, show)
    colour = "green" if done.passed else "red"
    _say("\n".join([*lines, click.style(verdict, fg=colour)]))


def _say_json(runs: list[Run], failures: list[Failure]) -> None:
    from .views.report import error_document, run_document

    errors = [error_document(failure.error, str(failure.path)) for failure in failures]
    _print_json({"runs": [run_document(done) for done in runs], "errors": errors})


# --- info ------------------------------------------------------------------------------------------


@cli.command(context_settings=_CONTEXT)
@click.argument("mnemonic", required=False)
@click.option("--target", metavar="SM", callback=_check_target, help="Only this chip, such as sm_90a.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def info(mnemonic: str | None, target: str | None, as_json: bool) -> int:
    """List the instruction forms, or describe the one that MNEMONIC spells."""
    from .views.information import form_document, form_lines, forms_lines

    forms = _attempt(_forms, Path("MNEMONIC"), mnemonic, target)
    if isinstance(forms, Failure):
        if as_json:
            from .views.report import error_document

            _print_json({"forms": [], "errors": [error_document(forms.error, "MNEMONIC")]})
        return forms.code()
    if as_json:
        _print_json({"forms": [form_document(form) for form in forms], "errors": []})
    else:
        _say("\n".join(form_lines(forms[0]) if mnemonic else forms_lines(forms)))
    return EXPECTED


def _forms(_: Path, mnemonic: str | None, target: str | None) -> list[Instruction]:
    from .interface import decode, instructions

    return list(instructions(target)) if mnemonic is None else [decode(mnemonic, target=target)]


# --- desc ------------------------------------------------------------------------------------------


class _Number(click.ParamType[int]):
    """An integer, decimal or with 0x."""

    name = "integer"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> int:
        try:
            return int(str(value), 0)
        except ValueError:
            self.fail(f"{value!r} is no integer, decimal or with 0x", parameter, context)


_NUMBER = _Number()
_FIELDS = ("start_address", "leading_byte_offset", "stride_byte_offset", "swizzle")


@cli.command(context_settings=_CONTEXT)
@click.argument("word", required=False, type=_NUMBER)
@click.option("--start", "start_address", type=_NUMBER, help="Start address in bytes, to build a descriptor.")
@click.option("--lbo", "leading_byte_offset", type=_NUMBER, help="Leading dimension byte offset, in bytes.")
@click.option("--sbo", "stride_byte_offset", type=_NUMBER, help="Stride dimension byte offset, in bytes.")
@click.option("--swizzle", type=click.Choice(["none", "32B", "64B", "128B"]), help="Swizzle mode.")
@click.option(
    "--major",
    type=click.Choice(["K", "MN"]),
    default="K",
    show_default=True,
    help="imm-trans 0 or 1.",
)
@click.option(
    "--touches",
    nargs=3,
    type=int,
    metavar="MN K BITS",
    help="List the bytes of a tile of MN x K elements of so many bits.",
)
@click.option(
    "--shared",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.npy",
    help="Shared memory as bytes (uint8), to read the tile from.",
)
@click.option(
    "--tile",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.npy",
    help="The tile (MN, K) that --shared should hold; says what is wrong if it does not.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
def desc(
    word: int | None,
    major: Any,
    touches: tuple[int, int, int] | None,
    shared: Path | None,
    tile: Path | None,
    as_json: bool,
    **fields: Any,
) -> int:
    """Explain a wgmma matrix descriptor: WORD (64 bits), or one built from its fields.

    With --shared and --tile, compare the tile that the descriptor reads with the one expected and, where
    they differ, propose what would read it. Exit code 1: they differ.
    """
    given = {name: value for name, value in fields.items() if value is not None}
    if (word is None) == (not given):
        raise click.UsageError("give either WORD, or fields such as --start 1024 --sbo 256 --swizzle 128B")
    if (shared is None) != (tile is None):
        raise click.UsageError("--shared and --tile go together")
    document = _attempt(_described, Path("WORD"), word, given, major, touches, shared, tile)
    if isinstance(document, Failure):
        return document.code()
    if as_json:
        _print_json({name: value for name, value in document.items() if name != "lines"})
    else:
        _say("\n".join(document["lines"]))
    return MISMATCH if document.get("differs") else EXPECTED


def _described(
    _: Path,
    word: int | None,
    fields: dict[str, Any],
    major: Any,
    touches: tuple[int, int, int] | None,
    shared: Path | None,
    tile: Path | None,
) -> dict[str, Any]:
    from .archives import read_array
    from .views.descriptors import compared, explained, touched

    document = explained(word, fields, major)
    if touches:
        touched(document, *touches)
    if shared and tile:
        compared(document, read_array(shared), read_array(tile))
    return document


# --- layout ----------------------------------------------------------------------------------------


@cli.command(context_settings=_CONTEXT)
@click.argument("mnemonic")
@click.option(
    "--operand", type=click.Choice(["a", "b", "c", "d", "e", "scale_a", "scale_b"]), help="Only this one."
)
@click.option("--selector", type=int, default=0, show_default=True, help="Sparsity selector.")
@click.option(
    "--notation",
    type=click.Choice(["ptx", "cute"]),
    default="ptx",
    show_default=True,
    help="T0:{a0,a1}, or shape:stride.",
)
@click.option(
    "--element", metavar="ROW,COLUMN", help="Where one element of --operand lies; of d also what feeds it."
)
@click.option("--lane", type=int, help="What one lane holds of --operand.")
@click.option("--register", type=int, help="With --lane: only this register.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
def layout(mnemonic: str, as_json: bool, **choices: Any) -> int:
    """Draw which lane and register hold which element, and which metadata bits describe what."""
    if choices["element"] and choices["lane"] is not None:
        raise click.UsageError("--element and --lane are two questions: ask one at a time")
    if (choices["element"] or choices["lane"] is not None) and choices["operand"] is None:
        raise click.UsageError("--element and --lane need --operand")
    lines = _attempt(_layout, Path("MNEMONIC"), mnemonic, as_json, choices)
    if isinstance(lines, Failure):
        return lines.code()
    if as_json:
        _print_json(lines)
    else:
        _say("\n".join(lines))
    return EXPECTED


def _layout(_: Path, mnemonic: str, as_json: bool, choices: dict[str, Any]) -> Any:
    from .interface import decode
    from .views.layout import layout_document, layout_lines
    from .views.lookups import element_lines, feeds_lines, lane_lines

    form, operand, selector = decode(mnemonic), choices["operand"], choices["selector"]
    if choices["element"]:
        row, column = _place(choices["element"])
        lines = element_lines(form, operand, row, column)
        return lines + feeds_lines(form, row, column, selector=selector) if operand == "d" else lines
    if choices["lane"] is not None:
        return lane_lines(form, operand, choices["lane"], choices["register"], selector=selector)
    if as_json:
        return layout_document(form, operand, selector=selector)
    return layout_lines(form, operand, selector=selector, notation=choices["notation"])


def _place(text: str) -> tuple[int, int]:
    """``3,17`` as row and column."""
    row, comma, column = text.partition(",")
    if not (comma and row.strip().isdecimal() and column.strip().isdecimal()):
        raise click.UsageError(f"--element {text!r}: expected ROW,COLUMN such as 3,17")
    return int(row), int(column)
