"""``warpsim run``: execute traces."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import engine_option, json_option, undefined_option
from .output import CONTEXT, EXPECTED, MISMATCH, Failure, attempt, check_target, print_json, say, worst
from .progress import watching

if TYPE_CHECKING:
    from ..execution.pipeline import Engine, Undefined
    from ..machine.hazards import Mode
    from ..traces.running import Run


@click.command(context_settings=CONTEXT)
@click.argument("traces", nargs=-1, required=True, metavar="TRACE...", type=click.Path(path_type=Path))
@click.option(
    "--target",
    metavar="SM",
    callback=check_target,
    help="Run on this chip instead of the trace's own, such as sm_80; a trace may then name none.",
)
@engine_option
@undefined_option
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
@json_option
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
    undefined: Undefined = "fallback" if allow_undefined else "error"
    modes = {"target": target, "engine": engine, "undefined": undefined, "hazards": hazards}
    for path in _tracked(traces, as_json):
        done = attempt(_executed, path, modes, len(traces) == 1)
        if isinstance(done, Failure):
            failures.append(done)
            continue
        runs.append(done)
        if not as_json:
            _say_run(done, show)
        if out and (failure := attempt(_write_registers, out, done)):
            failures.append(failure)
    if as_json:
        _say_json(runs, failures)
    elif len(traces) > 1:
        say(f"{sum(done.passed for done in runs)} of {len(traces)} traces passed")
    codes = [EXPECTED if one.passed else MISMATCH for one in runs]
    return worst([*codes, *(failure.code() for failure in failures)])


def _tracked(traces: tuple[Path, ...], as_json: bool) -> Iterator[Path]:
    """The traces, behind a progress bar on stderr where someone watches that and reads no results there."""
    quiet = as_json or not sys.stdout.isatty()
    if len(traces) < 2 or not quiet or not sys.stderr.isatty():
        yield from traces
        return
    with watching("running") as watch:
        for number, path in enumerate(traces):
            if watch:
                watch(number, len(traces))
            yield path


def _executed(path: Path, modes: dict[str, Any], alone: bool) -> Run:
    from ..traces.reading import read_trace
    from ..traces.running import run_trace

    trace = read_trace(path, modes["target"])
    with watching("running") if alone and not sys.stdout.isatty() else nullcontext() as watch:
        return run_trace(trace, progress=watch, **modes)


def _write_registers(out: Path, done: Run) -> None:
    from ..files.archives import write_arrays

    write_arrays(out, done.machine.registers())


def _say_run(done: Run, show: str) -> None:
    from ..views.report import run_lines

    *lines, verdict = run_lines(done, show)
    colour = "green" if done.passed else "red"
    say("\n".join([*lines, click.style(verdict, fg=colour)]))


def _say_json(runs: list[Run], failures: list[Failure]) -> None:
    from ..views.report import error_document, run_document

    errors = [error_document(failure.error, str(failure.path)) for failure in failures]
    print_json({"runs": [run_document(done) for done in runs], "errors": errors})
