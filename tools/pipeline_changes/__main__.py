"""Leave out or change one synchronising statement of a pipeline after the other, and say what launches say.

    python -m tools.pipeline_changes [--entry NAME] [--target SM] [--only TEXT] [--show] [--page FILE]
    python -m tools.pipeline_changes --schedules N [--first SEED] [--entry NAME]    intact ones
    python -m tools.pipeline_changes --sentryward [--lines N] [--entry NAME] [--page FILE]    what it says
    python -m tools.pipeline_changes --messages [--target SM]        a dozen, as users see them

Exit code 1 if a change was missed that is not known to be harmless, or if an intact pipeline gives an alarm.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click

from . import comparison
from .changes import changes
from .comparison import pairs
from .kernels import PIPELINES, Pipeline
from .messages import messages
from .page import Row, listed, summed
from .sentryward import INSTALL, available
from .trial import alarms, became


@click.command()
@click.option("--entry", default="", help="Pipelines whose names begin with this.")
@click.option("--target", default="", help="Pipelines for this target: sm_90a or sm_100a.")
@click.option("--only", default="", help="Changes with this in their line.")
@click.option("--show", is_flag=True, help="The messages, too.")
@click.option("--schedules", type=int, help="Run intact ones under so many random schedules instead.")
@click.option("--first", type=int, default=0, help="The first of their seeds.")
@click.option("--sentryward", is_flag=True, help="Ask SentryWard, too, of what it follows.")
@click.option("--lines", type=click.IntRange(min=1), default=2, help="So many lines of each sort.")
@click.option("--messages", "dozen", is_flag=True, help="What is said of a dozen mistakes instead.")
@click.option("--page", type=click.Path(path_type=Path), help="Write the tables there; a heading stays.")
def main(
    entry: str,
    target: str,
    only: str,
    show: bool,
    schedules: int | None,
    first: int,
    sentryward: bool,
    lines: int,
    dozen: bool,
    page: Path | None,
) -> None:
    """Try each change, print a line for it, and print the sums."""
    if dozen:
        click.echo("\n".join(messages(target or "sm_90a")))
        return
    chosen = [one for one in PIPELINES if one.entry.startswith(entry) and target in ("", one.target)]
    if schedules is not None:
        sys.exit(_intact(chosen, range(first, first + schedules)))
    if sentryward:
        _compare(chosen, lines, page)
        return
    rows = []
    for row in _rows(chosen, only):
        rows.append(row)
        click.echo(row.line + (f"\n{row.outcome.message}" if show else ""))
    click.echo("\n".join(summed(rows)))
    if page:
        entries = dict.fromkeys(row.entry for row in rows)
        tables = [line for one in entries for line in listed(one, [row for row in rows if row.entry == one])]
        _write(page, [*summed(rows), "", *tables])
    sys.exit(any(row.outcome.word == "missed" and not row.why for row in rows))


def _rows(chosen: list[Pipeline], only: str) -> Iterator[Row]:
    """Try the changes of the chosen pipelines in order, and yield a row for each."""
    for pipeline in chosen:
        for change in changes(pipeline):
            if only in f"{change.line} {change.statement}: {change.what}":
                yield Row(entry=pipeline.entry, change=change, outcome=became(pipeline, change.text))


def _intact(chosen: list[Pipeline], seeds: range) -> bool:
    """Print the alarms of intact pipelines under fixed and random schedules; return whether there are any."""
    found = False
    for pipeline in chosen:
        start, schedules = time.perf_counter(), ["program", "earliest", "latest", *seeds]
        said = list(alarms(pipeline, schedules))
        found |= bool(said)
        what = said[0].message or said[0].word if said else "no alarm, the same bits"
        seconds = time.perf_counter() - start
        click.echo(f"{pipeline.entry:24}{len(schedules):5} schedules in {seconds:4.0f} s: {what}")
    return found


def _compare(chosen: list[Pipeline], lines: int, page: Path | None) -> None:
    """Compare with SentryWard: print a line for each change that it is asked about, and the sums."""
    if not available():
        sys.exit(INSTALL)
    found = []
    for pair in (pair for pipeline in chosen for pair in pairs(pipeline, lines)):
        found.append(pair)
        click.echo(f"{pair.word:16} {pair.entry} {pair.what}  {pair.said}")
    tables = [*comparison.summed(found), "", *comparison.listed(found)]
    click.echo("\n".join(tables))
    if page:
        _write(page, tables)


def _write(page: Path, tables: list[str]) -> None:
    """Put tables behind what stands above the first one."""
    old = page.read_text(encoding="utf-8") if page.exists() else ""
    head = old[: old.index("| pipeline")] if "| pipeline" in old else old
    page.write_text(head + "\n".join(tables).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
