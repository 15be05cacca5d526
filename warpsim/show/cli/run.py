"""``warpsim run``: execute traces."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import engine_option, json_option, undefined_option
from .output import CONTEXT, EXPECTED, MISMATCH, Failure, attempt, check_target, print_json, say, worst
from .progress import watching
from .sources import is_recording, recorded

if TYPE_CHECKING:
    from ...workbench.traces.running import Run
    from ...workbench.vectors.recordings import Recording
    from ...workbench.vectors.verification import Item


@click.command(context_settings=CONTEXT)
@click.argument(
    "traces", nargs=-1, required=True, metavar="TRACE|RECORDING...", type=click.Path(path_type=Path)
)
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
    traces: tuple[Path, ...], allow_undefined: bool, show: str, as_json: bool, out: Path | None, **modes: Any
) -> int:
    """Execute traces and compare every bit they expect.

    A trace is PTX text with '//!' lines that load registers and state what they must hold afterwards: the
    statements of one warp or warpgroup, any opcode but branches, calls and those of global memory. Of the
    recording of a launch (.npz) every matrix instruction is executed again.
    """
    if out and len(traces) > 1:
        raise click.UsageError("--out takes the registers of one trace, but several traces are given")
    if out and is_recording(str(traces[0])):
        raise click.UsageError("--out takes the registers of a trace, not of a recording")
    runs: list[Run | Again] = []
    failures: list[Failure] = []
    modes["undefined"] = "fallback" if allow_undefined else "error"
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
    codes = [EXPECTED if item.passed else MISMATCH for item in runs]
    return worst([*codes, *(failure.code() for failure in failures)])


def _tracked(traces: tuple[Path, ...], as_json: bool) -> Iterator[Path]:
    """Yield the traces, behind a progress bar on stderr if it is a terminal and stdout is not."""
    quiet = as_json or not sys.stdout.isatty()
    if len(traces) < 2 or not quiet or not sys.stderr.isatty():
        yield from traces
        return
    with watching("running") as watch:
        for number, path in enumerate(traces):
            if watch:
                watch(number, len(traces))
            yield path


@dataclass(frozen=True, kw_only=True)
class Again:
    """A recording that was executed again."""

    recording: Recording
    items: list[Item]

    @property
    def passed(self) -> bool:
        """Whether every bit is as it was recorded."""
        return all(item.tally.passed for item in self.items)


def _executed_again(path: Path, modes: dict[str, Any]) -> Again:
    from ...workbench.vectors.outcomes import recording_items

    recording = recorded(str(path))
    options = {name: modes[name] for name in ("target", "engine", "undefined")}
    return Again(recording=recording, items=recording_items(recording, **options))


def _executed(path: Path, modes: dict[str, Any], alone: bool) -> Run | Again:
    if is_recording(str(path)):
        return _executed_again(path, modes)
    from ...workbench.traces.reading import read_trace
    from ...workbench.traces.running import run_trace

    trace = read_trace(path, modes["target"])
    with watching("running") if alone and not sys.stdout.isatty() else nullcontext() as watch:
        return run_trace(trace, progress=watch, **modes)


def _write_registers(out: Path, done: Run | Again) -> None:
    from ...base.files.archives import write_arrays

    assert not isinstance(done, Again)
    write_arrays(out, done.machine.registers())


def _say_run(done: Run | Again, show: str) -> None:
    if isinstance(done, Again):
        from ..views.recordings import recording_lines

        *lines, verdict = recording_lines(done.recording, done.items, show)
    else:
        from ..views.report import run_lines

        *lines, verdict = run_lines(done, show)
    colour = "green" if done.passed else "red"
    if lines:
        say("\n".join(lines))
    say(verdict, colour)


def _say_json(runs: list[Run | Again], failures: list[Failure]) -> None:
    from ..views.report import error_document

    errors = [error_document(failure.error, str(failure.path)) for failure in failures]
    print_json({"runs": [_document(done) for done in runs], "errors": errors})


def _document(done: Run | Again) -> Any:
    if isinstance(done, Again):
        from ..views.recordings import recording_document

        return recording_document(done.recording, done.items)
    from ..views.report import run_document

    return run_document(done)
