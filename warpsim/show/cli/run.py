"""``warpsim run``: execute traces."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click

from .options import Engine, InputFiles, Json, Out, Target, Undefined
from .output import EXPECTED, MISMATCH, Failure, attempt, print_json, say, worst
from .progress import watching
from .sources import is_recording, recorded
from .verbs import Option, verb

if TYPE_CHECKING:
    from ...workbench.traces.running import Run
    from ...workbench.vectors.recordings import Recording
    from ...workbench.vectors.verification import Item


@dataclass(frozen=True, kw_only=True)
class Modes:
    """How a trace is executed."""

    target: Annotated[
        Target, "Run on this chip instead of the trace's own, such as sm_80; a trace may then name none."
    ]
    engine: Engine = "kernel"
    undefined: Undefined
    hazards: Annotated[
        Literal["error", "warn", "off"],
        "Broken ordering rules of wgmma: stop at the first, list them, or do not look.",
    ] = "error"


@verb
def run(
    traces: Annotated[InputFiles, Option(metavar="TRACE|RECORDING...")],
    *,
    modes: Modes,
    show: Annotated[Literal["last", "all", "none"], "Which D matrices to print."] = "last",
    as_json: Json,
    out: Annotated[Out, Option(metavar="FILE.npz"), "Write all registers after the run of a single trace."],
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


def _executed_again(path: Path, modes: Modes) -> Again:
    from ...workbench.vectors.outcomes import recording_items

    recording = recorded(str(path))
    items = recording_items(recording, target=modes.target, engine=modes.engine, undefined=modes.undefined)
    return Again(recording=recording, items=items)


def _executed(path: Path, modes: Modes, alone: bool) -> Run | Again:
    if is_recording(str(path)):
        return _executed_again(path, modes)
    from ...workbench.traces.reading import read_trace
    from ...workbench.traces.running import run_trace

    trace = read_trace(path, modes.target)
    with watching("running") if alone and not sys.stdout.isatty() else nullcontext() as watch:
        return run_trace(
            trace,
            target=modes.target,
            engine=modes.engine,
            undefined=modes.undefined,
            hazards=modes.hazards,
            progress=watch,
        )


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
