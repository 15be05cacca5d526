"""``warpsim verify``: execute vector sets and traces again, and compare every bit."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

from .options import Differences, Engine, InputFiles, Json, Scheduler, Target, Threads, Undefined
from .output import EXPECTED, MISMATCH, Failure, attempt, colourful, perform, print_json, say, worst
from .progress import cluster
from .verbs import Option, verb

if TYPE_CHECKING:
    from distributed import Client

    from ...workbench.vectors.outcomes import Outcome
    from ...workbench.vectors.verification import Tally

Watch = Callable[[Path, "Tally"], object]

_VERB = Path("warpsim verify")  # the subject of a failure that concerns no file


@dataclass(frozen=True, kw_only=True)
class Options:
    """How files are verified."""

    target: Annotated[
        Target, "Verify against the rules of this chip instead of the file's own, such as sm_80."
    ]
    engine: Engine = "kernel"
    undefined: Undefined
    kept: Differences = 3
    threads: Annotated[Threads, Option(older="--jobs"), "Threads that execute the cases of a set."]


@verb
def verify(
    files: Annotated[InputFiles, Option(metavar="FILE...")],
    *,
    options: Options,
    scheduler: Scheduler,
    junit: Annotated[Path | None, Option(metavar="FILE.xml"), "Write a JUnit report, for CI."],
    as_json: Json,
) -> int:
    """Execute vector sets and traces again and compare every bit of D.

    FILE is a vector set (.npz, or any format of 'warpsim convert'), the recording of a launch (.npz), or a
    trace (.ptx). Sets in .npz files may have any size: they are read and executed in parts. What is shown as
    expected comes from the file, what is shown as got from the model.
    """
    outcomes, failures = perform(_all_verified, _VERB, files, options, scheduler)
    if junit and (unwritten := attempt(_write_junit, junit, outcomes)):
        failures.append(unwritten)
    _report(outcomes, as_json)
    codes = [MISMATCH if not (outcome.passed or outcome.error) else EXPECTED for outcome in outcomes]
    return worst([*codes, *(failure.code() for failure in failures)])


def _all_verified(
    _: Path, files: tuple[Path, ...], options: Options, scheduler: str | None
) -> tuple[list[Outcome], list[Failure]]:
    """Return the outcome of every file, and the failures. Raises ClusterError."""
    outcomes, failures = [], []
    with cluster(scheduler) as client, _progress(files) as watch:
        for path in files:
            outcome, failure = _verified(path, options, client, watch)
            outcomes.append(outcome)
            failures += [failure] if failure else []
    return outcomes, failures


def _verified(
    path: Path, options: Options, client: Client | None, watch: Watch
) -> tuple[Outcome, Failure | None]:
    """Return the outcome of a file; a failure is reported."""
    from ...workbench.vectors.outcomes import Outcome

    start = perf_counter()
    outcome = attempt(_outcome, path, options, client, lambda tally: watch(path, tally))
    if isinstance(outcome, Failure):
        seconds = perf_counter() - start
        return Outcome(path=str(path), error=outcome.error, seconds=seconds), outcome
    return outcome, None


def _outcome(
    path: Path, options: Options, client: Client | None, watch: Callable[[Tally], object]
) -> Outcome:
    from ...workbench.vectors.outcomes import outcome_of

    return outcome_of(
        path,
        target=options.target,
        engine=options.engine,
        undefined=options.undefined,
        kept=options.kept,
        jobs=options.threads,
        scheduler=client,
        watch=watch,
    )


# --- output ----------------------------------------------------------------------------------------


@contextmanager
def _progress(files: tuple[Path, ...]) -> Iterator[Watch]:
    """Yield the function to call after every part: it prints a line on stderr, where that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda path, tally: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[cases]:,} cases"),
        TimeElapsedColumn(),
    )
    console = Console(stderr=True, no_color=not colourful())
    order = {path: index for index, path in enumerate(files)}
    with Progress(*columns, console=console, transient=True, redirect_stdout=False) as progress:
        task = progress.add_task("verifying", total=len(files), cases=0)
        done = 0

        def watch(path: Path, tally: Tally) -> None:
            nonlocal done
            done += tally.cases
            progress.update(task, completed=order[path], cases=done)

        yield watch


def _report(outcomes: list[Outcome], as_json: bool) -> None:
    from ..views.verification import outcome_lines, summary_lines, verdict_line, verification_document

    if as_json:
        print_json(verification_document(outcomes))
        return
    for outcome in outcomes:
        if not outcome.error:
            say("\n".join(outcome_lines(outcome)))
    if any(outcome.items for outcome in outcomes):
        say("\n" + "\n".join(summary_lines(outcomes)))
    colour = "green" if all(outcome.passed for outcome in outcomes) else "red"
    say(verdict_line(outcomes), colour)


def _write_junit(path: Path, outcomes: list[Outcome]) -> None:
    from ...base.files.archives import write_lines
    from ..views.verification import junit_lines

    write_lines(path, junit_lines(outcomes))
